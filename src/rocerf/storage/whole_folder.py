"""A folder of files written in one step: the old one or the new one, never a mixture, whatever happens meanwhile.

Everything goes into a draft beside it, for its owner only, and is flushed to the disk. Then draft and folder swap
names: in one step where the system can exchange two folders (Linux), else by two renames, and whoever comes between
them, or finds what a killed writer left there, waits or puts the folder back. What was there is then removed, and only
if it holds nothing but the files that such a folder has.
"""

from __future__ import annotations

import errno
import os
import stat
import time
from collections.abc import Callable, Collection
from os import PathLike
from pathlib import Path

from rocerf.errors import OptionError
from rocerf.storage import disk
from rocerf.storage.drafts import ASIDE, PART, abandoned, done, draft_beside, drafts_of, is_draft

#: Another writer may come between looking and swapping; so often it is tried again.
TRIES = 200

#: Seconds to wait for a writer between its two renames, and between two looks; looks at nothing until nothing is there.
WAIT, LOOK, MISSES = 2.0, 0.01, 5

_TAKEN = (errno.ENOTEMPTY, errno.EEXIST)


def write_folder(path: str | PathLike[str], fill: Callable[[Path], None], *, known: Collection[str]) -> None:
    """Let ``fill`` write files into a folder that then takes the place of ``path`` in one step.

    ``known`` are the names of files that such a folder has. A folder that holds anything else is not replaced. Of
    several writers at once the last one wins.
    """
    target = Path(os.path.realpath(path))
    put_back(target)
    check_replaceable(target, known)
    target.parent.mkdir(parents=True, exist_ok=True)
    draft = draft_beside(target)
    try:
        disk.make_folder(draft)
        fill(draft)
        _settle(draft)
        _swap(draft, target, known)
        disk.flush_folder(target.parent)
    finally:
        remove_folder(draft, known)  # what was replaced, or a draft that came to nothing
        done(draft)
    for left in (*drafts_of(target, PART), *drafts_of(target, ASIDE)):
        if abandoned(left):
            remove_folder(left, known)


def read_folder(path: str | PathLike[str], known: Collection[str]) -> dict[str, bytes]:
    """The files of a folder that have these names, all of one moment, though somebody replace it meanwhile."""
    target, missed = Path(os.path.realpath(path)), 0
    for _ in range(TRIES):
        put_back(target)
        try:
            before = _moment(target)
            found = {name: (target / name).read_bytes() for name in known if (target / name).exists()}
            if before == _moment(target):
                return found
        except FileNotFoundError:  # it is not there, or a writer has just moved it
            missed += not os.path.lexists(target)
            if missed == MISSES:
                raise
        time.sleep(LOOK)
    raise OSError(errno.EBUSY, "The folder was replaced again and again while it was read", os.fspath(path))


def put_back(target: Path) -> None:
    """Where a folder is missing because a writer was killed between two renames, give it back its name."""
    deadline = time.monotonic() + WAIT
    while not os.path.lexists(target):
        asides = drafts_of(target, ASIDE)
        left = [aside for aside in asides if abandoned(aside)]
        if not asides:
            return
        if left:
            try:
                disk.rename_folder(left[0], target)
            except FileNotFoundError:  # somebody else did
                continue
            return
        if time.monotonic() > deadline:
            return
        time.sleep(LOOK)


def remove_folder(folder: Path, known: Collection[str]) -> None:
    """Remove a folder that holds only files of these names; one that holds anything else stays."""
    try:
        names = os.listdir(folder)
        if _others(names, known):
            return
        for name in names:
            (folder / name).unlink(missing_ok=True)
        folder.rmdir()
    except OSError:  # not there, or somebody else is removing it: what was written is in place all the same
        return


def _others(names: Collection[str], known: Collection[str]) -> list[str]:
    return sorted(name for name in names if name not in known and not is_draft(name))


def check_replaceable(path: str | PathLike[str], known: Collection[str]) -> None:
    """Refuse a folder that :func:`write_folder` would not replace; to be asked before long work, too."""
    target = Path(os.path.realpath(path))
    try:
        others = _others(os.listdir(target), known)
    except FileNotFoundError:
        return
    except NotADirectoryError:
        raise OptionError(f"Expected a folder to write to, got the file {target}; name another.") from None
    if others:
        raise OptionError(
            f"Expected a folder that is new, empty, or holds nothing but {', '.join(sorted(known))}, got {target} with "
            f"{others[0]!r} in it: it is replaced as a whole, and nothing of yours may be lost; name a new folder."
        )
    if Path.cwd() == target:
        raise OptionError(
            f"Expected a folder that can be replaced as a whole, got the one we are in, {target}; name a folder in it."
        )


def _settle(draft: Path) -> None:
    """All files are their owner's only, and on the disk."""
    for name in os.listdir(draft):
        path = draft / name
        if stat.S_IMODE(path.stat().st_mode) != 0o600:
            path.chmod(0o600)
        handle = os.open(path, os.O_RDONLY)
        try:
            disk.flush(handle)
        finally:
            os.close(handle)
    disk.flush_folder(draft)


def _swap(draft: Path, target: Path, known: Collection[str]) -> None:
    try:
        for _ in range(TRIES):
            if _swapped(draft, target, known):
                return
    except OSError as error:
        if error.errno != errno.EBUSY:
            raise
        raise OptionError(
            f"Expected a folder that can be replaced as a whole, got {target}, which is mounted or in use; name a "
            "folder in it."
        ) from error
    raise OSError(errno.EBUSY, "Others write this folder again and again", os.fspath(target))


def _swapped(draft: Path, target: Path, known: Collection[str]) -> bool:
    """One attempt; False where somebody else came between."""
    if not os.path.lexists(target):
        return _renamed(draft, target)
    check_replaceable(target, known)
    try:
        if disk.exchange(draft, target):
            return True
        aside = draft_beside(target, ASIDE)
        disk.rename_folder(target, aside)
    except FileNotFoundError:
        return False
    try:
        swapped = _renamed(draft, target)
    except BaseException:
        disk.rename_folder(aside, target)
        raise
    finally:
        done(aside)
    remove_folder(aside, known)
    return swapped


def _renamed(draft: Path, target: Path) -> bool:
    try:
        disk.rename_folder(draft, target)
    except OSError as error:
        if error.errno in _TAKEN:
            return False
        raise
    return True


def _moment(target: Path) -> tuple[int, ...]:
    """What changes when another folder gets this name."""
    told = target.stat()
    return told.st_dev, told.st_ino, told.st_ctime_ns, told.st_mtime_ns
