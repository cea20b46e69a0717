"""Faults, counted: whatever dies, fills up, comes twice or jumps, nothing is lost, nothing is done twice.

Every case is held against the same deletion without a fault: the same letters in the same states with the same budgets,
the same versions, requests and certificates, and the same events in the audit chain, each once.
"""

from __future__ import annotations

import re
import resource
import signal
import sqlite3
import threading
import time
from collections.abc import Callable
from datetime import timedelta
from pathlib import Path
from typing import Any

import pytest
from sqlalchemy import text

from faults import Template, in_a_process, ledger_state, outcome, until_done
from ledgers import UNTIL, Clock, approved, asking, filled, harmful, opened
from rocerf.errors import LeaseLostError, LedgerUnavailableError
from rocerf.ledger import JobState, Ledger, LetterState, RequestState, deletions
from rocerf.ledger.worker import Worker

#: In the source: every place at which a process can be told to die.
SOURCE = Path(deletions.__file__).parent
STEPS = deletions.STEPS
PLACES = [
    *(f"{step}:{when}" for step in STEPS for when in ("before", "in-transaction", "after")),
    *("unlearn:computed", "compact:keys-destroyed", "compact:copies-removed", "compact:compacted"),
    "noted:erasure certified",  # after the first of two certificates
]


@pytest.fixture(scope="module", params=["SQLite", "PostgreSQL"])
def template(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> Template:
    server = request.getfixturevalue("postgres") if request.param == "PostgreSQL" else None
    return Template(tmp_path_factory.mktemp("faults"), server)


@pytest.fixture(scope="module")
def expected(template: Template) -> dict[str, Any]:
    """What a deletion comes to when nothing goes wrong."""
    ledger = template.copy()
    done = Worker(ledger).run_once()
    assert done is not None
    assert done.state is JobState.DONE
    return outcome(ledger)


def test_every_place_in_the_source_is_tried() -> None:
    found: set[str] = set()
    for path in SOURCE.glob("*.py"):
        found |= set(re.findall(r'reached\(f?"([^"]+)"', path.read_text("utf-8")))
    fixed = {place for place in found if "{" not in place}
    assert fixed - {"renew:computed", "renew:in-transaction"} <= set(PLACES)
    assert {place for place in found if "{" in place} == {
        *("{step}:before", "{step}:after", "{step}:in-transaction", "noted:{kind}")
    }


@pytest.mark.slow
def test_killed_at_every_step(template: Template, expected: dict[str, Any], figures: list[str]) -> None:
    killed = 0
    for place in PLACES:
        clock = Clock()
        ledger = template.copy(clock)
        assert in_a_process(ledger, Worker(ledger).run_once, place) == -signal.SIGKILL, place
        killed += 1
        assert ledger.audit.verify().whole, place
        assert Worker(ledger).run_once() is None  # the dead one's lease still runs
        clock.jump(minutes=10)
        until_done(ledger, clock)
        assert outcome(ledger) == expected, place
        ledger.close()
    kind = "PostgreSQL" if template.server else "SQLite"
    figures.append(f"faults on {kind}: killed at {killed} places of a deletion, {killed} came to the same end")


@pytest.mark.slow
def test_killed_again_and_again(template: Template, expected: dict[str, Any]) -> None:
    clock = Clock()
    ledger = template.copy(clock, tries=100)
    for step in STEPS:
        for place in (f"{step}:in-transaction", f"{step}:after"):
            assert in_a_process(ledger, Worker(ledger).run_once, place) == -signal.SIGKILL
            clock.jump(minutes=10)
    until_done(ledger, clock)
    assert outcome(ledger) == expected


def test_an_officer_killed_at_every_step_and_asking_again(template: Template, figures: list[str]) -> None:
    ledger, killed = template.copy(), 0
    people = asking(ledger.models.explainer().model, 2).set_axis(["new-1", "new-2"], axis=0)
    number = 0
    steps: list[tuple[str, Callable[[], Any]]] = [
        ("request received", lambda: ledger.requests.receive("owner-9", actor="desk", idempotency_key="9")),
        ("request identity_verified", lambda: ledger.requests.verify_identity(number, actor="desk")),
        ("deletion previewed", lambda: ledger.requests.preview(number, actor="dpo")),
        ("request approved", lambda: ledger.requests.approve(number, actor="dpo")),
        ("deletion ordered", lambda: ledger.deletions.carry_out(number, actor="dpo", idempotency_key="9")),
        (
            "letters issued",
            lambda: ledger.letters.issue(people, valid_until=None, actor="officer", idempotency_key="9"),
        ),
        ("person updated", lambda: ledger.people.update("new-1", {"income": 1.0}, actor="officer")),
    ]
    for kind, step in steps:
        before = ledger.audit.head(), ledger.letters.portfolio(), ledger.requests.find(), ledger.jobs.find()
        assert in_a_process(ledger, step, f"noted:{kind}") == -signal.SIGKILL, kind
        killed += 1
        after = ledger.audit.head(), ledger.letters.portfolio(), ledger.requests.find(), ledger.jobs.find()
        assert after == before, kind
        step()
        number = ledger.requests.find(person="owner-9")[0].id
        assert ledger.audit.verify().whole
    assert ledger.requests.get(number).state is RequestState.APPROVED
    assert len(ledger.letters.find(person="new-1")) == 1
    name = "PostgreSQL" if template.server else "SQLite"
    figures.append(f"faults on {name}: killed in {killed} steps of officers, nothing of them was kept, all done again")


def test_two_workers_at_once(template: Template, expected: dict[str, Any], figures: list[str]) -> None:
    ledger = template.copy()

    def work() -> None:
        while not all(job.state is JobState.DONE for job in ledger.jobs.find()):
            if Worker(ledger).run_once() is None:
                time.sleep(0.02)

    ledger.core.database.engine.dispose()
    threads = [threading.Thread(target=lambda: in_a_process(ledger, work)) for _ in range(3)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert outcome(ledger) == expected
    figures.append(f"faults on {'PostgreSQL' if template.server else 'SQLite'}: 3 workers at once, done once")


@pytest.mark.slow
def test_a_worker_that_was_taken_for_dead_keeps_nothing(
    template: Template, expected: dict[str, Any], monkeypatch: pytest.MonkeyPatch
) -> None:
    for place in ("unlearn:computed", "recheck:before", "erase:before", "compact:compacted", "certify:before"):
        clock = Clock()
        ledger, lost = template.copy(clock), []

        def sleeps(here: str, clock: Clock = clock, ledger: Ledger = ledger, place: str = place) -> None:
            if here == place:
                monkeypatch.setattr(deletions, "reached", lambda _: None)
                clock.jump(minutes=10)  # so long that another one takes the job, and does it
                until_done(ledger, clock)

        monkeypatch.setattr(deletions, "reached", sleeps)
        lease = ledger.jobs.claim("slow")
        assert lease is not None
        try:
            ledger.deletions.run(lease)
        except LeaseLostError:
            lost.append(place)
        assert lost == [place]
        assert outcome(ledger) == expected, place
        ledger.close()


@pytest.mark.slow
def test_clocks_that_jump(template: Template, expected: dict[str, Any], monkeypatch: pytest.MonkeyPatch) -> None:
    for jump in ({"days": 4000}, {"days": -4000}, {"hours": 2}, {"seconds": -90}):
        clock = Clock()
        ledger = template.copy(clock)
        count = iter(range(1000))

        def jumps(_: str, clock: Clock = clock, jump: dict[str, float] = jump, count: Any = count) -> None:
            clock.jump(**(jump if next(count) % 2 == 0 else {name: -by for name, by in jump.items()}))

        monkeypatch.setattr(deletions, "reached", jumps)
        until_done(ledger, clock)
        found = outcome(ledger)
        assert found == expected, jump
    # A lease that lies far in the future was given before the clock went back: nobody holds it.
    monkeypatch.setattr(deletions, "reached", lambda _: None)
    clock = Clock()
    ledger = template.copy(clock)
    assert ledger.jobs.claim("gone") is not None
    clock.jump(days=-30)
    clock.jump(minutes=-10)
    until_done(ledger, clock)
    assert outcome(ledger) == expected


def test_letters_that_a_wrong_clock_expired_are_taken_up_again(tmp_path: Path, database: Callable[[], str]) -> None:
    clock = Clock()
    ledger = filled(opened(tmp_path, clock, database(), broken="honour"), 12, k=1)
    ledger.deletions.carry_out(approved(ledger, "somebody", rows=harmful()), actor="dpo")
    Worker(ledger).run_once()
    ledger.letters.issue(asking(ledger.models.explainer().model, 2), valid_until=UNTIL, actor="officer")
    ledger.letters.withdraw(2, reason="a mistake", actor="officer")
    before = {one.id: one.state for one in ledger.letters.find(limit=1000)}
    assert set(before.values()) == {LetterState.ISSUED, LetterState.HONOURED, LetterState.WITHDRAWN}
    clock.jump(days=4000)
    assert ledger.letters.expire() == len(before) - 1
    assert ledger.letters.expire() == 0
    clock.jump(days=-4000)
    assert ledger.letters.expire() == 0
    assert {one.id: one.state for one in ledger.letters.find(limit=1000)} == before
    # After a deletion that was not held against them nobody knows whether they hold.
    clock.jump(days=4000)
    ledger.letters.expire()
    number = approved(ledger, "owner-9")
    ledger.deletions.carry_out(number, actor="dpo")
    Worker(ledger).run_once()
    clock.jump(days=-4000)
    ledger.letters.expire()
    now = {one.id: one.state for one in ledger.letters.find(limit=1000)}
    assert {one for one in now if now[one] != before[one]} == {one for one in now if now[one] is LetterState.EXPIRED}
    assert {before[one] for one in now if now[one] is LetterState.EXPIRED} == {LetterState.ISSUED}
    assert ledger.audit.verify().whole


@pytest.mark.slow
def test_a_full_disk(template: Template, expected: dict[str, Any], figures: list[str]) -> None:
    refused = 0
    if template.server:
        for table in ("artefacts", "letter_events", "certificates", "events", "letters"):
            clock = Clock()
            ledger = template.copy(clock)
            with ledger.core.database.engine.begin() as connection:
                connection.execute(text(FULL.format(table=table)))
            with pytest.raises(LedgerUnavailableError):
                Worker(ledger).run_once()
            refused += 1
            with ledger.core.database.engine.begin() as connection:
                connection.execute(text(f"DROP TRIGGER full_disk ON {table}"))
            clock.jump(minutes=10)
            until_done(ledger, clock)
            assert outcome(ledger) == expected, table
            ledger.close()
    else:
        for room in (0.05, 0.15, 0.3, 0.5):
            clock = Clock()
            ledger = template.copy(clock)
            assert in_a_process(ledger, lambda ledger=ledger, room=room: crammed(ledger, room)) in (0, 1)
            assert ledger.audit.verify().whole
            refused += ledger.jobs.get(1).state is not JobState.DONE
            clock.jump(minutes=10)
            until_done(ledger, clock)
            assert outcome(ledger) == expected, room
            ledger.close()
    assert refused >= 3
    name = "PostgreSQL" if template.server else "SQLite"
    figures.append(f"faults on {name}: disk full {refused} times, each came to the same end once there was room")


#: The server's own word for a full disk, at the first row that is written to a table.
FULL = """
CREATE OR REPLACE FUNCTION full_disk() RETURNS trigger AS $$
BEGIN RAISE EXCEPTION 'could not extend file: no space left on device' USING ERRCODE = '53100'; END $$ LANGUAGE plpgsql;
CREATE TRIGGER full_disk BEFORE INSERT OR UPDATE ON {table} EXECUTE FUNCTION full_disk();
"""


def crammed(ledger: Ledger, room: float) -> None:
    """Work where no file can be written to beyond this share of the database's size."""
    assert ledger.core.database.file is not None
    limit = int(ledger.core.database.file.stat().st_size * room)
    signal.signal(signal.SIGXFSZ, signal.SIG_IGN)
    resource.setrlimit(resource.RLIMIT_FSIZE, (limit, limit))
    Worker(ledger).run_once()


@pytest.mark.slow
@pytest.mark.parametrize(
    ("seconds", "places"),
    [(1.5, ("recheck:in-transaction", "compact:before")), (10.0, ("reissue:in-transaction",))],
)
def test_a_database_that_is_gone_for_a_while(
    template: Template,
    expected: dict[str, Any],
    monkeypatch: pytest.MonkeyPatch,
    figures: list[str],
    seconds: float,
    places: tuple[str, ...],
) -> None:
    clock = Clock()
    if not template.server:  # in a transaction the ledger has SQLite's lock itself, and another waits for it
        places = tuple(place.replace("in-transaction", "before") for place in places)
    ledger, gone = template.copy(clock, lease=timedelta(seconds=30)), []
    began, failed = time.monotonic(), 0

    def leaves(place: str) -> None:
        if place not in places or place in gone:
            return
        gone.append(place)
        if template.server:
            template.server.stop()
            threading.Timer(seconds, template.server.start).start()
        else:
            threading.Thread(target=locked_for, args=(ledger, seconds)).start()
            time.sleep(0.2)

    monkeypatch.setattr(deletions, "reached", leaves)
    deadline = time.monotonic() + 300  # for the machine, which may be busy: the ledger has no such limit
    while ledger_state(ledger) is not JobState.DONE and time.monotonic() < deadline:
        try:
            Worker(ledger).run_once()
        except LedgerUnavailableError:
            failed += 1
            time.sleep(0.2)
        clock.jump(minutes=10)
    assert len(gone) == len(places)
    assert time.monotonic() - began >= seconds * len(places)  # it was really gone for so long
    assert failed or not template.server  # SQLite's writers wait for the lock; PostgreSQL's find no server
    assert outcome(ledger) == expected
    kind = "PostgreSQL stopped" if template.server else "SQLite locked"
    figures.append(f"faults: {kind} for {seconds} s, {len(gone)} times within a deletion; it came to the same end")


def locked_for(ledger: Ledger, seconds: float) -> None:
    other = sqlite3.connect(str(ledger.core.database.file), timeout=30, isolation_level=None)
    other.execute("BEGIN EXCLUSIVE")
    time.sleep(seconds)
    other.execute("ROLLBACK")
    other.close()


def test_the_same_order_many_times_at_once(template: Template) -> None:
    ledger = template.copy()
    number = approved(ledger, "owner-11")
    found: list[Any] = []

    def ask() -> None:
        found.append(ledger.deletions.carry_out(number, actor="dpo", idempotency_key="same").id)
        found.append(ledger.requests.receive("owner-12", actor="desk", idempotency_key="same").id)

    threads = [threading.Thread(target=ask) for _ in range(6)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert len(found) == 12
    assert len(set(found)) == 2
    assert ledger.audit.verify().whole
