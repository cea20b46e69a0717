"""The lists that pages show: in the order in which people work, with who asks only as long as they are not erased."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import ledgers
from rocerf.ledger.overview import Overview
from rocerf.ledger.states import JobState, RequestState
from rocerf.ledger.worker import Worker


def test_letters_with_the_least_left_come_first(tmp_path: Path, database: Callable[[], str]) -> None:
    with ledgers.filled(ledgers.opened(tmp_path, url=database()), 4) as ledger:
        overview = Overview(ledger.core)
        assert [letter.id for letter in overview.by_budget()] == [1, 2, 3, 4]
        ledger.deletions.carry_out(ledgers.approved(ledger, "owner-3"), actor="dpo")
        Worker(ledger).run_once()
        people = ledgers.asking(ledger.models.explainer().model, 6).iloc[4:]
        ledger.letters.issue(people, valid_until=ledgers.UNTIL, actor="officer")
        found = overview.by_budget()
        assert [letter.remaining for letter in found] == sorted(letter.remaining for letter in found)
        assert {letter.remaining for letter in found} == {2, 3}
        assert [letter.id for letter in overview.by_budget(lowest=3)] == [5, 6]
        assert [letter.id for letter in overview.by_budget(highest=2, limit=2)] == [1, 2]
        assert overview.by_budget(promise="another") == ()
        assert overview.outstanding_by_version() == {1: 4, 2: 2}
        for letter in found:
            assert letter == ledger.letters.get(letter.id)


def test_requests_open_closed_and_overdue(tmp_path: Path) -> None:
    clock = ledgers.Clock()
    with ledgers.filled(ledgers.opened(tmp_path, clock), 1) as ledger:
        overview = Overview(ledger.core)
        for person in ("owner-1", "owner-2", "owner-3"):
            ledger.requests.receive(person, actor="desk")
        assert overview.open_and_overdue() == (3, 0)
        ledger.requests.refuse(1, reason="not the person", actor="dpo")
        ledger.requests.refuse(3, reason="not the person", actor="dpo")
        assert [request.id for request in overview.closed()] == [3, 1]
        assert [request.id for request in overview.closed(limit=1)] == [3]
        clock.jump(days=40)
        assert overview.open_and_overdue() == (1, 1)


def test_who_asks_is_known_until_they_are_erased(tmp_path: Path, database: Callable[[], str]) -> None:
    with ledgers.filled(ledgers.opened(tmp_path, url=database()), 1) as ledger:
        overview = Overview(ledger.core)
        number, other = ledgers.approved(ledger, "owner-3"), ledger.requests.receive("owner-4", actor="desk").id
        assert overview.asking([number, other]) == {number: "owner-3", other: "owner-4"}
        job = ledger.deletions.carry_out(number, actor="dpo")
        batch = ledger.requests.get(number).batch
        assert batch is not None
        assert overview.job_of_batch(batch) == job
        assert overview.job_of_batch(batch + 1) is None
        Worker(ledger).run_once()
        done = overview.job_of_batch(batch)
        assert done is not None
        assert done.state is JobState.DONE
        assert overview.asking([number, other]) == {other: "owner-4"}


def test_a_preview_is_kept_with_the_worst_first(tmp_path: Path, database: Callable[[], str]) -> None:
    with ledgers.filled(ledgers.opened(tmp_path, url=database()), 5) as ledger:
        overview = Overview(ledger.core)
        number = ledger.requests.receive("owner-3", rows=ledgers.harmful(), actor="desk").id
        ledger.requests.verify_identity(number, actor="desk")
        assert overview.previewed(number) is None
        made = ledger.requests.preview(number, actor="dpo")
        kept = overview.previewed(number)
        assert kept is not None
        assert kept.summary == made.summary()
        assert made.broken, "the rows are chosen to break some"
        assert {one.letter for one in kept.budgets[: len(made.broken)]} == set(made.broken)
        assert sorted(kept.budgets, key=lambda one: one.letter) == sorted(made.budgets, key=lambda one: one.letter)


def test_events_of_a_request_are_its_own(tmp_path: Path) -> None:
    with ledgers.filled(ledgers.opened(tmp_path), 1) as ledger:
        overview = Overview(ledger.core)
        first, second = ledgers.approved(ledger, "owner-3"), ledgers.approved(ledger, "owner-4")
        ledger.deletions.carry_out(first, actor="dpo")
        Worker(ledger).run_once()
        kinds = [event.kind for event in overview.events_about(ledger.requests.get(first))]
        assert kinds[:4] == [
            "request received",
            "request identity_verified",
            "deletion previewed",
            "request approved",
        ]
        assert kinds[-1] == "erasure certified"
        assert len(kinds) == len(set(kinds))
        still = overview.events_about(ledger.requests.get(second))
        assert [event.kind for event in still] == kinds[:4]
        assert ledger.requests.get(second).state is RequestState.APPROVED
