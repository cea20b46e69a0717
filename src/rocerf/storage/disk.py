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

#: What was written to a handle is on the disk, not only in memory.
flush = os.fsync

#: A draft becomes the target in one step, whatever file was there.
put_in_place = os.replace

#: Remove a file, by its name; and a folder that holds nothing.
remove, remove_empty = os.unlink, os.rmdir

#: A folder gets another name in one step; refused where that is a folder that holds something.
rename_folder = os.rename


def create(path: Path, mode: int) -> int:
    """A new file that nobody else made, open for writing."""
    return os.open(path, os.O_CREAT | os.O_EXCL | os.O_WRONLY | getattr(os, "O_BINARY", 0), mode)


def write(handle: int, content: bytes) -> None:
    """All of the content."""
    rest = memoryview(content)
    while rest:
        rest = rest[os.write(handle, rest) :]


def flush_all() -> None:
    """Everything written so far is on the disk, by one call: thousands of single ones would take half a minute."""
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
