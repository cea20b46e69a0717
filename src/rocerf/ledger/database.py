"""The database: SQLite by default, PostgreSQL for more than one machine's worth of processes. One way to write.

Every change is one transaction that began as a writer's: ``BEGIN IMMEDIATE`` on SQLite, a lock on the end of the audit
chain on PostgreSQL. What a crash interrupts was never there.
"""

from __future__ import annotations

import re
import sqlite3
import time
from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from importlib.resources import as_file, files
from pathlib import Path
from typing import Any

from sqlalchemy import Connection, Engine, create_engine, event, make_url, text
from sqlalchemy.exc import DBAPIError, InterfaceError, OperationalError, SQLAlchemyError
from sqlalchemy.orm import Session

from rocerf.errors import FileFormatError, LedgerUnavailableError, MissingExtraError, OptionError, PostponedError

#: Seconds that SQLite waits for another writer, and PostgreSQL for a connection.
PATIENCE = 30

#: Seconds that PostgreSQL waits for a table that is to be written anew: whoever reads it meanwhile waits behind us.
BRIEFLY = 3


class Database:
    """An engine with our ways to read and write; ``Database(url).migrate()`` makes or updates the tables."""

    def __init__(self, url: str) -> None:
        try:
            made = make_url(url)
        except SQLAlchemyError as error:
            raise _no_url(url) from error
        if made.get_backend_name() == "sqlite":
            if made.database in (None, "", ":memory:"):
                raise _no_url(url)
            self.file: Path | None = Path(str(made.database))
            self.file.parent.mkdir(parents=True, exist_ok=True)
            self.engine: Engine = create_engine(
                made, connect_args={"timeout": PATIENCE, "isolation_level": None}, hide_parameters=True
            )
            event.listen(self.engine, "connect", _sqlite_settings)
            event.listen(self.engine, "begin", _sqlite_begin)
        elif made.get_backend_name() == "postgresql":
            self.file = None
            try:
                self.engine = create_engine(
                    made.set(drivername="postgresql+psycopg"),
                    pool_pre_ping=True,
                    hide_parameters=True,  # an error's text must hold no value
                    connect_args={"connect_timeout": PATIENCE},
                )
            except ImportError as error:
                raise MissingExtraError("psycopg", "service", "a ledger on PostgreSQL") from error
        else:
            raise _no_url(url)
        self._writing = self.engine.execution_options(writes=True)

    @property
    def is_sqlite(self) -> bool:
        """Whether the database is a file of ours."""
        return self.file is not None

    def close(self) -> None:
        """Give back all connections."""
        self.engine.dispose()

    @contextmanager
    def reading(self) -> Iterator[Session]:
        """A session that sees one moment and changes nothing."""
        with _told(), Session(self.engine) as session:
            if not self.is_sqlite:
                session.connection(execution_options={"isolation_level": "REPEATABLE READ"})
            yield session
            session.expunge_all()  # what was read stays readable
            session.rollback()

    @contextmanager
    def writing(self, *, alone: bool = True) -> Iterator[Session]:
        """A session whose changes are kept together at the end, or not at all.

        Writers come one after the other. Only the leases of jobs need not be ``alone``: a long step of somebody else's
        must not keep a worker from saying that it lives.
        """
        with _told(), Session(self._writing, expire_on_commit=False) as session, session.begin():
            if alone and not self.is_sqlite:
                session.execute(text("SELECT seq FROM chain_head WHERE id = 1 FOR UPDATE"))
            yield session

    def migrate(self) -> None:
        """Bring the tables to today's form, from whatever form they have."""
        from alembic.config import Config
        from alembic.runtime.environment import EnvironmentContext
        from alembic.script import ScriptDirectory
        from alembic.util import CommandError

        with _told(), as_file(files("rocerf.ledger") / "migrations") as folder:
            steps = ScriptDirectory(str(folder))
            with self._writing.connect() as connection, connection.begin():
                if not self.is_sqlite:  # two processes that open at once
                    connection.execute(text("SELECT pg_advisory_xact_lock(7205759403)"))

                def upgrade(at: Any, _: Any) -> Any:
                    try:
                        return steps._upgrade_revs("head", at)
                    except CommandError as error:
                        raise FileFormatError(
                            "Expected a ledger of this release of rocerf or an earlier one, got tables in a form that "
                            "it does not know; open it with the later release that made it. Nothing was changed."
                        ) from error

                with EnvironmentContext(Config(), steps, fn=upgrade) as running:
                    running.configure(connection=connection, render_as_batch=True)
                    running.run_migrations()

    def compact(self, tables: Iterable[str]) -> None:
        """Write the database anew, without what was deleted: no old page, no log, no dead row.

        Whoever reads an older moment all the while (a backup, a report) keeps what was deleted in the files: that is an
        error, and nothing is taken for removed.
        """
        if self.is_sqlite:
            with _told(), self._raw() as raw:
                _checkpoint(raw)
                raw.execute("VACUUM")
                _checkpoint(raw)
            return
        with _told(), self.engine.connect().execution_options(isolation_level="AUTOCOMMIT") as connection:
            _vacuum(connection, list(tables))

    @contextmanager
    def _raw(self) -> Iterator[sqlite3.Connection]:
        held = self.engine.raw_connection()
        try:
            connection: Any = held.driver_connection
            yield connection
        finally:
            held.close()


def _checkpoint(raw: sqlite3.Connection) -> None:
    busy, *_ = raw.execute("PRAGMA wal_checkpoint(TRUNCATE)").fetchone()
    if busy:
        raise _still_read()


def _vacuum(connection: Connection, tables: list[str]) -> None:
    """Write tables anew, again and again while somebody else still sees rows that are dead; not for ever.

    The server says after each table how many dead rows it had to keep. Whoever reads a table now is waited for shortly:
    those who come meanwhile wait behind us.
    """
    until, kept = time.monotonic() + PATIENCE, list[int]()

    def heard(notice: Any) -> None:
        found = re.search(r"\d+", (notice.message_detail or "").partition("\n")[0])
        kept.append(0 if found is None else int(found.group()))

    driver: Any = connection.connection.driver_connection
    driver.add_notice_handler(heard)
    connection.detach()  # nobody else gets it afterwards, with what is set here
    connection.execute(text(f"SET lock_timeout = '{BRIEFLY}s'"))
    while tables:
        left = []
        for table in tables:
            kept.clear()
            if not _vacuumed(connection, table) or any(kept):
                left.append(table)
        if left and time.monotonic() > until:
            raise _still_read()
        time.sleep(0.5 if left else 0.0)
        tables = left


def _vacuumed(connection: Connection, table: str) -> bool:
    """Whether the table could be written anew, or somebody held it."""
    try:
        connection.execute(text(f'VACUUM (FULL, VERBOSE) "{table}"'))
    except OperationalError as error:
        if getattr(error.orig, "sqlstate", "") != "55P03":  # the lock was not to be had in time
            raise
        return False
    return True


def _still_read() -> PostponedError:
    return PostponedError(
        f"Expected to write the database anew without what was deleted, got others who read an older state of it for "
        f"{PATIENCE} seconds (a backup, a report, a transaction left open); end them, and the deletion goes on by "
        "itself."
    )


def _sqlite_settings(raw: sqlite3.Connection, _: object) -> None:
    for setting in ("journal_mode = WAL", "foreign_keys = ON", "secure_delete = ON", "synchronous = FULL"):
        raw.execute(f"PRAGMA {setting}")


def _sqlite_begin(connection: Connection) -> None:
    connection.exec_driver_sql("BEGIN IMMEDIATE" if connection.get_execution_options().get("writes") else "BEGIN")


@contextmanager
def _told() -> Iterator[None]:
    """What keeps us from the database is an error of ours; what it refuses by its rules stays what it is."""
    try:
        yield
    except (OperationalError, InterfaceError) as error:
        raise LedgerUnavailableError(
            f"Expected to reach the ledger's database, got {_first_line(error)}; see that it runs, can be written to "
            "and has room, then try again: nothing of this step was kept."
        ) from error
    except sqlite3.OperationalError as error:  # what was asked of the driver itself
        raise LedgerUnavailableError(
            f"Expected to write the ledger's database anew, got {error}; see that it can be written to and its disk "
            "has room, then try again: nothing of this step was kept."
        ) from error
    except DBAPIError as error:
        if error.connection_invalidated:
            raise LedgerUnavailableError(
                f"Expected the ledger's database to stay, got {_first_line(error)}; try again: nothing of this step "
                "was kept."
            ) from error
        if "not a database" in str(error.orig):
            raise FileFormatError("Expected a database of the ledger, got another file; check the path.") from error
        raise


def _first_line(error: DBAPIError) -> str:
    return str(error.orig).strip().splitlines()[0] if error.orig is not None else "no answer"


def _no_url(url: str) -> OptionError:
    shown = url if "@" not in url else "one with a password"
    return OptionError(
        f"Expected a database such as sqlite:///ledger.db or postgresql://user@host/name, got {shown!r}; SQLite needs "
        "a file."
    )
