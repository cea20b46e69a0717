"""Names of files and folders that are still being written, and what is left of writers that were killed.

A draft lies beside what it will become. Its name says which file it is for and who writes it, so that whoever writes
there next can tell the drafts of the dead, and remove them, from those of the living.
"""

from __future__ import annotations

import hashlib
import os
import re
import secrets
import socket
import time
from functools import cache
from pathlib import Path

from rocerf.storage.locks import clearing_up

#: A draft; and a folder moved aside for a moment, where two folders cannot swap names.
PART, ASIDE = ".rocerf-part", ".rocerf-aside"

#: Age in seconds from which drafts of other machines (on a shared disk) count as left behind.
OLD = 24 * 3600.0

_NAME = re.compile(
    r"\.(?P<shown>.*)\.(?P<target>[0-9a-f]{8})-(?P<host>[0-9a-f]{8})-(?P<pid>\d+)-[0-9a-f]{12}\.rocerf-(part|aside)"
)

#: Drafts of this process that are being written.
_own: set[str] = set()


def _digest(text: str) -> str:
    return hashlib.sha256(text.encode("utf-8", "surrogateescape")).hexdigest()[:8]


@cache
def _host() -> str:
    return _digest(socket.gethostname())


def draft_beside(target: Path, ending: str = PART) -> Path:
    """A name of one's own beside the target; :func:`done` says that it is no longer written."""
    writer = f"{_digest(target.name)}-{_host()}-{os.getpid()}-{secrets.token_hex(6)}"
    name = f".{target.name[:40]}.{writer}{ending}"
    _own.add(name)
    return target.with_name(name)


def done(draft: Path) -> None:
    """The draft became what it was for, or was removed."""
    _own.discard(draft.name)


def is_draft(name: str) -> bool:
    """Whether a file or folder has the name of a draft."""
    return _NAME.fullmatch(name) is not None


def drafts_of(target: Path, ending: str) -> list[Path]:
    """The drafts for one target that lie beside it, newest first."""
    digest = _digest(target.name)
    found = [
        path
        for path in _listed(target.parent, ending)
        if (parts := _NAME.fullmatch(path.name)) and parts["target"] == digest
    ]
    return sorted(found, key=_changed, reverse=True)


def abandoned(draft: Path) -> bool:
    """Whether the writer of a draft is gone: its process ended, or on another machine it was long ago."""
    parts = _NAME.fullmatch(draft.name)
    if parts is None:
        return False
    if parts["host"] != _host() or os.name != "posix":
        return time.time() - _changed(draft) > OLD
    pid = int(parts["pid"])
    return draft.name not in _own if pid == os.getpid() else not _alive(pid)


def removable(draft: Path, alone: bool | None) -> bool:
    """Whether an abandoned draft may go: only if nobody writes there, since a number may be another container's.

    ``alone`` is what :func:`rocerf.storage.locks.clearing_up` says; where the system cannot tell, age does.
    """
    long_ago = time.time() - _changed(draft) > OLD
    return abandoned(draft) and alone is not False and (alone is True or long_ago)


def remove_abandoned_files(folder: Path) -> None:
    """Remove the files that killed writers left in a folder."""
    with clearing_up(folder) as alone:
        for path in _listed(folder, PART):
            if removable(path, alone) and path.is_file():
                path.unlink(missing_ok=True)


def _alive(pid: int) -> bool:
    try:
        os.kill(pid, 0)
    except ProcessLookupError:
        return False
    except (PermissionError, OverflowError):
        return True
    return True


def _listed(folder: Path, ending: str) -> list[Path]:
    try:
        return [folder / name for name in os.listdir(folder) if name.endswith(ending)]
    except OSError:
        return []


def _changed(path: Path) -> float:
    try:
        return path.stat().st_mtime
    except OSError:
        return time.time()
