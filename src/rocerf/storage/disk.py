"""The few calls by which files come about on disk: all writing goes through these, so that tests can let each fail."""

from __future__ import annotations

import errno
import os
import sys
from functools import cache
from pathlib import Path
from typing import Any

#: What the system answers where it cannot exchange two folders, or flush the names in one.
_CANNOT = (errno.ENOSYS, errno.EINVAL, errno.EOPNOTSUPP, errno.ENOTSUP, errno.EPERM)

_RENAME_EXCHANGE, _AT_FDCWD = 2, -100


def create(path: Path, mode: int) -> int:
    """A new file that nobody else made, open for writing."""
    return os.open(path, os.O_CREAT | os.O_EXCL | os.O_WRONLY | getattr(os, "O_BINARY", 0), mode)


def write(handle: int, content: bytes) -> None:
    """All of the content."""
    rest = memoryview(content)
    while rest:
        rest = rest[os.write(handle, rest) :]


def flush(handle: int) -> None:
    """What was written is on the disk, not only in memory."""
    os.fsync(handle)


def flush_all() -> None:
    """The same for everything written so far, by one call: thousands of single ones would take half a minute."""
    if hasattr(os, "sync"):
        os.sync()


def flush_folder(folder: Path) -> None:
    """The names in a folder are on the disk; where a system cannot say so, it is left to it."""
    if not hasattr(os, "O_DIRECTORY"):
        return
    handle = os.open(folder, os.O_RDONLY | os.O_DIRECTORY)
    try:
        flush(handle)
    except OSError as error:
        if error.errno not in _CANNOT:
            raise
    finally:
        os.close(handle)


def make_folder(folder: Path) -> None:
    """A new folder for its owner only."""
    folder.mkdir(mode=0o700)


def put_in_place(draft: Path, target: Path) -> None:
    """The draft becomes the target in one step, whatever file was there."""
    os.replace(draft, target)


def remove(path: Path) -> None:
    """A file, by its name."""
    path.unlink()


def remove_empty(folder: Path) -> None:
    """A folder that holds nothing."""
    folder.rmdir()


def rename_folder(old: Path, new: Path) -> None:
    """In one step; refused where the new name is a folder that holds something."""
    os.rename(old, new)


def exchange(one: Path, other: Path) -> bool:
    """Two folders swap names in one step; False where this system cannot do that."""
    call = _renameat2()
    if call is None:
        return False
    if call(_AT_FDCWD, os.fsencode(one), _AT_FDCWD, os.fsencode(other), _RENAME_EXCHANGE) == 0:
        return True
    import ctypes

    code = ctypes.get_errno()
    if code in _CANNOT:
        return False
    raise OSError(code, os.strerror(code), os.fspath(other))


@cache
def _renameat2() -> Any | None:
    """Linux's call, through the C library: Python has no name for it."""
    if not sys.platform.startswith("linux"):
        return None
    import ctypes

    return getattr(ctypes.CDLL(None, use_errno=True), "renameat2", None)
