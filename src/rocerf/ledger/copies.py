"""Copies in our reach: backups that the ledger makes, and files or folders that users tell it of.

Every deletion removes all of them, since they hold what is to be erased; make a new backup then. Copies that nobody
told of stay, but what is personal in a copy of the database can be read by nobody once the keys are destroyed.
"""

from __future__ import annotations

import os
import sqlite3
from contextlib import closing
from os import PathLike
from pathlib import Path

from sqlalchemy import select

from rocerf.errors import OptionError
from rocerf.ledger.core import Core
from rocerf.ledger.tables import CopyRow
from rocerf.storage import disk


class Copies:
    """The copies that a ledger knows of."""

    def __init__(self, core: Core) -> None:
        self.core = core

    def tell(self, path: str | PathLike[str], *, actor: str, kind: str = "explainer") -> None:
        """Tell the ledger of a file or folder to be removed **as a whole** with the next deletion: a saved explainer,
        an exported table of letters."""
        self._noted(Path(path).resolve(), kind, actor)

    def backup(self, path: str | PathLike[str], *, actor: str) -> Path:
        """Write a backup of an SQLite ledger to a new file, without the keys: those are to be kept elsewhere."""
        target, source = Path(path).resolve(), self.core.database.file
        if source is None:
            raise OptionError(
                "Expected a ledger in SQLite to back up, got one in PostgreSQL; use its own tools (pg_dump), and tell "
                "the ledger of the file (ledger.copies.tell)."
            )
        if target.exists():
            raise OptionError(f"Expected a new file for a backup, got {target}, which is there; name another.")
        self._noted(target, "backup", actor)  # first: a copy that was begun is known, whatever happens
        os.close(disk.create(target, 0o600))
        with closing(sqlite3.connect(source)) as here, closing(sqlite3.connect(target)) as there:
            here.backup(there)
        return target

    def paths(self) -> tuple[Path, ...]:
        """What would be removed with the next deletion."""
        with self.core.database.reading() as session:
            return tuple(Path(p) for p in session.scalars(select(CopyRow.path).where(CopyRow.removed.is_(None))))

    def _noted(self, path: Path, kind: str, actor: str) -> None:
        with self.core.database.writing() as session:
            session.add(CopyRow(kind=kind, path=str(path), made=self.core.now()))
            self.core.note(session, "copy noted", actor, {"kind": kind})
