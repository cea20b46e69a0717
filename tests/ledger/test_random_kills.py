"""Two workers killed at instants that nobody chose, again and again, during deletions of several requests each."""

from __future__ import annotations

import os
import random
import signal
import time
from datetime import datetime, timedelta
from pathlib import Path

import pytest

from faults import Template, begun, outcome
from ledgers import Clock
from length import THOROUGH
from rocerf.ledger import JobState, Ledger
from rocerf.ledger.worker import Worker

ORDERS = 4
#: From one kill to the next it takes this share of what all deletions take undisturbed, on average, and at most so many
#: seconds: on a fast machine too few would die otherwise.
SHARE, PAUSE = 0.05, 0.1
LEASE = timedelta(seconds=0.5)


class Going(Clock):
    """A clock that goes on, from the same moment in every process."""

    def __init__(self) -> None:
        super().__init__()
        self.began = time.monotonic()

    def __call__(self) -> datetime:
        return self.at + timedelta(seconds=time.monotonic() - self.began)


def is_done(ledger: Ledger) -> bool:
    return all(job.state is JobState.DONE for job in ledger.jobs.find())


def work(ledger: Ledger) -> None:
    """As a worker does, whatever is there to be done."""
    while not is_done(ledger):
        if Worker(ledger).run_once() is None:
            time.sleep(0.02)


def killed_until_done(ledger: Ledger, rng: random.Random, kills: int, pause: float) -> int:
    """Two workers, one of which dies every now and then and is followed by another; how many died at work."""
    alive, dead = [begun(ledger, lambda: work(ledger)) for _ in range(2)], 0
    until = time.monotonic() + 200
    while alive and time.monotonic() < until:
        time.sleep(rng.expovariate(1 / pause))
        if dead < kills:
            os.kill(rng.choice(alive), signal.SIGKILL)
        for process in list(alive):
            found, status = os.waitpid(process, os.WNOHANG)
            if found:
                alive.remove(process)
                if os.waitstatus_to_exitcode(status) == -signal.SIGKILL:
                    dead += 1
                    alive.append(begun(ledger, lambda: work(ledger)))
    for process in alive:
        os.kill(process, signal.SIGKILL)
        os.waitpid(process, 0)
    return dead


@pytest.mark.slow
@pytest.mark.parametrize("kind", ["SQLite", "PostgreSQL"])
def test_whenever_workers_die_it_comes_to_the_same_end(
    tmp_path: Path, kind: str, request: pytest.FixtureRequest, figures: list[str]
) -> None:
    server = request.getfixturevalue("postgres") if kind == "PostgreSQL" else None
    template = Template(tmp_path, server, ORDERS)
    ledger = template.copy()
    start = time.monotonic()
    work(ledger)
    pause = min(PAUSE, SHARE * (time.monotonic() - start))
    expected, dead = outcome(ledger), 0
    for seed in range(6 if THOROUGH else 1):
        ledger = template.copy(Going(), lease=LEASE, tries=10**6)
        dead += killed_until_done(ledger, random.Random(seed), 30, pause)
        assert is_done(ledger)
        assert outcome(ledger) == expected
        ledger.close()
    assert dead >= 10
    figures.append(f"faults on {kind}: {dead} workers killed at random instants of deletions, all came to the same end")
