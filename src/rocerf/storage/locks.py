"""Who is writing in a folder: whoever writes drafts holds a shared lock on it, whoever clears up an exclusive one.

Process numbers do not say who is alive: containers that share a disk each count their own. A lock is the system's own
word, and goes with the process that held it, however it ended. The folder itself is locked, so nothing is left in it.
"""

from __future__ import annotations

import os
import sys
import time
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path

if sys.platform != "win32":
    import fcntl

#: Seconds to wait for somebody who is clearing up, and between two tries. A lock that is held longer is none of ours,
#: and as long as it is held, nobody clears up.
WAIT, LOOK = 2.0, 0.01


@contextmanager
def writing_in(folder: Path) -> Iterator[None]:
    """Meanwhile nobody takes our drafts in this folder for abandoned ones."""
    with _opened(folder) as handle:
        deadline = time.monotonic() + WAIT
        while _locked(handle, shared=True) is False and time.monotonic() < deadline:
            time.sleep(LOOK)
        yield


@contextmanager
def clearing_up(folder: Path) -> Iterator[bool | None]:
    """Whether nobody writes in this folder, nor begins to meanwhile; None where the system cannot tell."""
    with _opened(folder) as handle:
        yield _locked(handle, shared=False)


@contextmanager
def _opened(folder: Path) -> Iterator[int | None]:
    """The folder, to be locked; None where a system cannot open or lock one."""
    handle = None
    if sys.platform != "win32":
        with suppress(OSError):
            handle = os.open(folder, os.O_RDONLY)
    try:
        yield handle
    finally:
        if sys.platform != "win32" and handle is not None:
            with suppress(OSError):
                fcntl.flock(handle, fcntl.LOCK_UN)  # a child that was forked meanwhile has the handle, too
            os.close(handle)


def _locked(handle: int | None, *, shared: bool) -> bool | None:
    if sys.platform == "win32" or handle is None:
        return None
    try:
        fcntl.flock(handle, (fcntl.LOCK_SH if shared else fcntl.LOCK_EX) | fcntl.LOCK_NB)
    except BlockingIOError:
        return False
    except OSError:  # network disks may know no such locks
        return None
    return True
