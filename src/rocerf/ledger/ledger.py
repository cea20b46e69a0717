"""Ledger: one database and one key file, and the parts that work on them."""

from __future__ import annotations

from contextlib import ExitStack
from dataclasses import dataclass
from os import PathLike
from pathlib import Path
from types import TracebackType
from typing import Self

from rocerf.errors import OptionError
from rocerf.ledger.audit import Audit
from rocerf.ledger.chain import begin
from rocerf.ledger.copies import Copies
from rocerf.ledger.core import Clock, Core, Policy, key_older_hashes, utc_now
from rocerf.ledger.database import Database
from rocerf.ledger.deletions import Deletions
from rocerf.ledger.jobs import Jobs
from rocerf.ledger.keys import KeyFile
from rocerf.ledger.letters import Letters
from rocerf.ledger.models import Load, Models
from rocerf.ledger.people import People
from rocerf.ledger.requests import Requests
from rocerf.ledger.sources import RowSource


@dataclass(frozen=True, eq=False)
class Ledger:
    """Letters issued and deletion requests, with the model versions between them; see :mod:`rocerf.ledger`.

    Examples
    --------
    >>> import tempfile
    >>> folder = tempfile.mkdtemp()
    >>> with Ledger.open(f"sqlite:///{folder}/ledger.db") as ledger:
    ...     request = ledger.requests.receive("customer-17", actor="desk")
    ...     request.state.code, ledger.audit.verify().whole
    ('received', True)
    """

    core: Core
    models: Models
    people: People
    letters: Letters
    requests: Requests
    deletions: Deletions
    jobs: Jobs
    copies: Copies
    audit: Audit

    @classmethod
    def open(
        cls,
        url: str = "sqlite:///ledger.db",
        *,
        keys: str | PathLike[str] | None = None,
        clock: Clock = utc_now,
        policy: Policy | None = None,
        load: Load | None = None,
        rows: RowSource | None = None,
    ) -> Self:
        """Open a ledger, make its tables or bring them to today's form.

        Parameters
        ----------
        url : str
            ``sqlite:///file`` or ``postgresql://user@host/name``.
        keys : path, optional
            The key file; for SQLite by default the database's name with ``.keys`` behind it. Keep its backups apart.
        clock : callable
            Gives the time, with its zone.
        policy : Policy, optional
            The organisation's own rules.
        load : callable, optional
            Makes an explainer of its states, for models that we cannot read back (steps of a pipeline of your own).
        rows : RowSource, optional
            Where training rows are that stay with you (:class:`rocerf.ledger.FileRows`,
            :class:`rocerf.ledger.CalledRows`); without one, they are kept inside, sealed.
        """
        database = Database(url)
        if keys is None and database.file is None:
            raise OptionError(
                "Expected a key file for a ledger in PostgreSQL, got none; give keys=path, on a disk of its own: what "
                "is erased there can be read from no backup of the database."
            )
        with ExitStack() as unless_open:
            unless_open.callback(database.close)
            database.migrate()
            file = Path(keys) if keys is not None else Path(f"{database.file}.keys")
            core = Core(database, KeyFile(file), clock, policy or Policy())
            with database.writing() as session:
                begin(session, core.keys)
                key_older_hashes(session, core.keys)
            unless_open.pop_all()
        models, jobs = Models(core, load, rows), Jobs(core)
        people = People(core, models)
        return cls(
            core=core,
            models=models,
            people=people,
            letters=Letters(core, models, jobs),
            requests=Requests(core, models, people),
            deletions=Deletions(core, models, people, jobs),
            jobs=jobs,
            copies=Copies(core),
            audit=Audit(core),
        )

    def close(self) -> None:
        """Give back all connections."""
        self.core.database.close()

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.close()
