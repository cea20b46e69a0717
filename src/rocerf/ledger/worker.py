"""A worker: takes jobs one by one and does them, whatever became of those who had them before."""

from __future__ import annotations

import os
import re
import secrets
import socket
import threading
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from dataclasses import dataclass, field

from rocerf.errors import (
    LeaseLostError,
    LedgerError,
    LedgerUnavailableError,
    PostponedError,
    RocerfError,
    TransitionError,
)
from rocerf.ledger.jobs import DELETION, RENEWAL, Lease
from rocerf.ledger.ledger import Ledger
from rocerf.ledger.records import Job
from rocerf.ledger.states import JobState


def _own_name() -> str:
    return f"{socket.gethostname()}-{os.getpid()}-{secrets.token_hex(3)}"


@dataclass(frozen=True, eq=False)
class Worker:
    """Does the ledger's jobs. Any number of workers may run at once, in any number of processes.

    Examples
    --------
    >>> import tempfile
    >>> ledger = Ledger.open(f"sqlite:///{tempfile.mkdtemp()}/ledger.db")
    >>> Worker(ledger).run_once() is None
    True
    >>> ledger.close()
    """

    ledger: Ledger
    name: str = field(default_factory=_own_name)

    def run_once(self) -> Job | None:
        """Do one job as far as it goes; how it stands then, None if there was none.

        A job that another worker took over meanwhile is left to it. Where the database is gone the error is raised:
        the job is taken up again when its lease has ended, by whoever comes.
        """
        lease = self.ledger.jobs.claim(self.name)
        if lease is None:
            return None
        with self._beating(lease), suppress(LeaseLostError):
            try:
                self._check_attempts(lease)
                self.ledger.jobs.finish(lease, self._done(lease))
            except (LeaseLostError, LedgerUnavailableError):
                raise
            except PostponedError as error:
                self.ledger.jobs.postpone(lease, str(error))
            except Exception as error:
                self._failed(lease, error)
        return self.ledger.jobs.get(lease.job)

    def run(self, stop: threading.Event, *, every: float = 1.0, actor: str = "clock") -> None:
        """Do jobs until told to stop; meanwhile letters expire, and requests whose deadline is near are carried out."""
        while not stop.is_set():
            try:
                self.ledger.letters.expire(actor=actor)
                due = self.ledger.deletions.due()
                if due:
                    with suppress(TransitionError):  # another worker was first
                        self.ledger.deletions.carry_out(due, actor=actor)
                busy = self.run_once() is not None
            except LedgerUnavailableError:  # it will come back
                busy = False
            if not busy:
                stop.wait(every)

    def _done(self, lease: Lease) -> dict[str, object]:
        if lease.kind == DELETION:
            facts = self.ledger.deletions.run(lease)
            # What the certificate is about.
            private = ("subjects", "versions", "copies_to_remove", "source", "rows_were_inside", "row_hashes")
            return {name: fact for name, fact in facts.items() if name not in private}
        if lease.kind == RENEWAL:
            return dict(self.ledger.letters.run_renewal(lease))
        raise AssertionError(f"a job of unknown kind {lease.kind!r}")

    def _check_attempts(self, lease: Lease) -> None:
        """Give up a job whose workers died again and again: it may be the job that kills them."""
        tries = self.ledger.core.policy.tries
        if lease.attempt > tries:
            raise LedgerError(
                f"Expected a job that ends within {tries} attempts, got one whose workers were lost each time; see why "
                "they died or were cut off, then have it tried again: it goes on where it stopped."
            )

    def _failed(self, lease: Lease, error: Exception) -> None:
        """Note why; messages of others than us may hold anything, so of those only the kind is kept."""
        told = quoting_nobody(error) if isinstance(error, RocerfError) else f"an unexpected {type(error).__name__}"
        # What our own rules refuse will be refused again; what was only in the way of somebody else will not.
        for_good = isinstance(error, RocerfError) and not isinstance(error, (OSError, TransitionError))
        job = self.ledger.jobs.give_up(lease, told[:1000], for_good=for_good)
        if job.state is JobState.FAILED and lease.kind == DELETION:
            self.ledger.deletions.release(lease)

    @contextmanager
    def _beating(self, lease: Lease) -> Iterator[None]:
        """Meanwhile the ledger is told again and again that the work goes on."""
        over = threading.Event()
        pause = self.ledger.core.policy.lease.total_seconds() / 3

        def beat() -> None:
            while not over.wait(pause):
                with suppress(LedgerUnavailableError):
                    try:
                        self.ledger.jobs.heartbeat(lease)
                    except LeaseLostError:
                        return

        thread = threading.Thread(target=beat, name=f"heartbeat-{lease.job}", daemon=True)
        thread.start()
        try:
            yield
        finally:
            over.set()
            thread.join()


#: What an error quotes; an apostrophe within a word opens nothing.
_QUOTED = re.compile(r"""(?<!\w)(?:'(?:[^'\\]|\\.)*'|"(?:[^"\\]|\\.)*")(?!\w)""")


def quoting_nobody(error: RocerfError) -> str:
    """What an error says, without what it quotes: everybody reads why a job failed, and a quoted value may be a
    person's. The ledger's own errors quote states and names of columns, and nothing of people.

    >>> from rocerf.errors import DataError
    >>> quoting_nobody(DataError("Expected a number in Newton's column 'age', got 'Erika'; correct it."))
    "Expected a number in Newton's column '...', got '...'; correct it."
    """
    return str(error) if isinstance(error, LedgerError) else _QUOTED.sub("'...'", str(error))
