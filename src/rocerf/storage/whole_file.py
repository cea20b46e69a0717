"""Files written in one step: whoever looks finds the old file or the new one, whole, whatever happens meanwhile.

The content goes into a draft beside the file, is flushed to the disk, and then takes the file's name. If that fails
(the disk is full, the process is killed), the old file stays as it was.
"""

from __future__ import annotations

import errno
import os
import stat
import time
from collections import deque
from collections.abc import Collection, Iterable, Iterator
from contextlib import ExitStack, contextmanager
from os import PathLike
from pathlib import Path

from rocerf.storage import disk
from rocerf.storage.drafts import done, draft_beside, remove_abandoned_files
from rocerf.storage.locks import writing_in

#: Files of one batch that are flushed one by one; beyond, the disk is flushed once for all.
FLUSHED_SINGLY = 64

#: When each process last looked in a folder for drafts of killed writers, and how many seconds it then leaves it be:
#: looking through a folder for every one of thousands of files would take long.
_looked_through: dict[tuple[int, Path], float] = {}
LEFT_ALONE = 10.0


def write_text(path: str | PathLike[str], text: str, *, private: bool = False) -> None:
    """Write a text file (UTF-8) in one step; as :func:`write_bytes`."""
    write_files([(path, text)], private=private)


def write_bytes(path: str | PathLike[str], content: bytes, *, private: bool = False) -> None:
    """Write a file in one step; ``private`` ones only their owner can read, from the first byte on."""
    write_files([(path, content)], private=private)


def write_files(contents: Iterable[tuple[str | PathLike[str], str | bytes]], *, private: bool = False) -> None:
    """Write several files, each in one step, and none before all are on the disk: a full disk changes nothing.

    Links are followed. What is no plain file (a pipe, ``/dev/stdout``) is written to as it is.
    """
    with ExitStack() as held:
        folders = _written(contents, private, held)
    for folder in folders:
        disk.flush_folder(folder)
        _look_through(folder)


def _written(
    contents: Iterable[tuple[str | PathLike[str], str | bytes]], private: bool, held: ExitStack
) -> Collection[Path]:
    """Write the files, holding the folders they are in; these folders."""
    waiting: deque[tuple[Path, Path]] = deque()
    folders: set[Path] = set()
    try:
        for path, given in contents:
            content = given.encode("utf-8") if isinstance(given, str) else given
            with _named(path):
                if _is_stream(path):
                    Path(path).write_bytes(content)
                    continue
                target = Path(os.path.realpath(path))
                if target.parent not in folders:
                    folders.add(target.parent)
                    held.enter_context(writing_in(target.parent))
                draft = draft_beside(target)
                waiting.append((draft, target))
                _fill(draft, target, content, private=private, flush=len(waiting) <= FLUSHED_SINGLY)
        if len(waiting) > FLUSHED_SINGLY:
            disk.flush_all()
        while waiting:
            draft, target = waiting[0]
            with _named(target):
                disk.put_in_place(draft, target)
            done(draft)
            waiting.popleft()
    finally:
        for draft, _ in waiting:
            draft.unlink(missing_ok=True)
            done(draft)
    return folders


def _fill(draft: Path, target: Path, content: bytes, *, private: bool, flush: bool) -> None:
    if target.is_dir():
        raise IsADirectoryError(errno.EISDIR, os.strerror(errno.EISDIR), os.fspath(target))
    handle = disk.create(draft, 0o600 if private else 0o666)
    try:
        if not private and hasattr(os, "fchmod") and target.exists():
            os.fchmod(handle, stat.S_IMODE(target.stat().st_mode))
        disk.write(handle, content)
        if flush:
            disk.flush(handle)
    finally:
        os.close(handle)


@contextmanager
def _named(path: str | PathLike[str]) -> Iterator[None]:
    """An error names the file that was to be written, not its draft."""
    try:
        yield
    except OSError as error:
        error.filename, error.filename2 = os.fspath(path), None
        raise


def _is_stream(path: str | PathLike[str]) -> bool:
    """Whether something is there that cannot be replaced by a file: a device, a pipe, or what a shell redirects."""
    given = Path(path)
    if given.is_symlink() and os.readlink(given).startswith("/proc/"):
        return True
    if os.path.realpath(given.parent).startswith("/proc/"):
        return True
    return given.exists() and not given.is_file() and not given.is_dir()


def _look_through(folder: Path) -> None:
    key, now = (os.getpid(), folder), time.monotonic()
    if now - _looked_through.get(key, -LEFT_ALONE) >= LEFT_ALONE:
        if len(_looked_through) > 1000:
            _looked_through.clear()
        _looked_through[key] = now
        remove_abandoned_files(folder)
