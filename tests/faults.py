"""Ledgers to be harmed: copies of one with ordered deletions, work in processes that may die, and what it comes to."""

from __future__ import annotations

import os
import shutil
import warnings
from collections import Counter
from collections.abc import Callable
from pathlib import Path
from typing import Any

from ledgers import Clock, approved, filled, harmful, opened
from postgres import Server
from rocerf.errors import LedgerUnavailableError
from rocerf.ledger import JobState, Ledger, failpoints
from rocerf.ledger.worker import Worker


class Template:
    """A ledger with letters and ordered deletions, made once and copied for each case."""

    def __init__(self, folder: Path, server: Server | None, orders: int = 1) -> None:
        self.folder, self.server, self.count = folder, server, 0
        self.home = folder / "template"
        self.home.mkdir()
        self.url = server.fresh() if server else f"sqlite:///{self.home}/ledger.db"
        ledger = filled(opened(self.home, url=self.url), 12, k=1)
        harm, each = harmful(), len(harmful()) // orders
        for place in range(orders):
            rows = harm[place * each : (place + 1) * each]
            numbers = [approved(ledger, f"somebody {place}", rows=rows), approved(ledger, f"owner-{7 + place}")]
            ledger.deletions.carry_out(numbers, actor="dpo")
        ledger.close()

    def copy(self, clock: Clock | None = None, **policy: Any) -> Ledger:
        self.count += 1
        home = self.folder / f"copy-{self.count}"
        shutil.copytree(self.home, home)
        url = f"sqlite:///{home}/ledger.db"
        if self.server:
            name = f"copy_{os.getpid()}_{self.count}_{self.url.rpartition('_')[2]}"
            self.server.sql(f"CREATE DATABASE {name} TEMPLATE {self.url.rpartition('/')[2]}")
            url = f"{self.url.rpartition('/')[0]}/{name}"
        return opened(home, clock or Clock(), url, **policy)


def outcome(ledger: Ledger) -> dict[str, Any]:
    """Everything that is kept, but for random numbers and times; numbers by their order, as PostgreSQL skips some."""
    assert ledger.audit.verify().faults == ()
    letters, requests, versions = ledger.letters.find(limit=1000), ledger.requests.find(), ledger.models.all()
    place = {one.id: at for at, one in enumerate(letters)} | {None: None}
    made = {one.id: at for at, one in enumerate(reversed(versions))}
    return {
        "letters": [
            (place[one.id], one.state, one.used, made[one.version], place[one.replaces], place[one.replaced_by])
            for one in letters
        ],
        "history": [[(e.state, e.used, made[e.version]) for e in ledger.letters.history(one.id)] for one in letters],
        "versions": [(made[one.id], one.state, one.training_rows) for one in versions],
        "requests": [(one.state, one.certificate is not None) for one in requests],
        "removed": [ledger.deletions.certificate(one.id).removed for one in requests if one.certificate],
        "events": sorted(Counter(event.kind for event in ledger.audit.events(limit=10_000)).items()),
        "theta": ledger.models.explainer().model.theta.tolist(),
    }


def begun(ledger: Ledger, work: Callable[[], Any], failpoint: str | None = None) -> int:
    """Begin the work in a process of its own; its number."""
    ledger.core.database.engine.dispose()
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", DeprecationWarning)  # Python 3.12 minds the threads of the test runner
        child = os.fork()
    if child == 0:  # pragma: no cover (in the child)
        code = 1
        try:
            if failpoint is not None:
                os.environ[failpoints.VARIABLE] = failpoint
            work()
            code = 0
        finally:
            os._exit(code)
    return child


def in_a_process(ledger: Ledger, work: Callable[[], Any], failpoint: str | None = None) -> int:
    """Do the work in a process of its own; how it ended (a signal as a negative number)."""
    return os.waitstatus_to_exitcode(os.waitpid(begun(ledger, work, failpoint), 0)[1])


def until_done(ledger: Ledger, clock: Clock, tries: int = 8) -> None:
    """Others take over, once the lease of the dead has ended."""
    for _ in range(tries):
        job = Worker(ledger).run_once()
        if (job is not None and job.state is JobState.DONE) or ledger_state(ledger) is JobState.DONE:
            return
        clock.jump(minutes=10)
    raise AssertionError([(job.state, job.step, job.error) for job in ledger.jobs.find()])


def ledger_state(ledger: Ledger) -> JobState | None:
    try:
        return ledger.jobs.get(1).state
    except LedgerUnavailableError:
        return None
