"""Deletion requests up to their approval: ways that are open, deadlines, previews that touch nothing."""

from __future__ import annotations

import hashlib
from collections.abc import Callable
from datetime import UTC, date, datetime
from pathlib import Path
from typing import Any
from zoneinfo import ZoneInfo

import numpy as np
import pandas as pd
import pytest
from sqlalchemy import text

from ledgers import UNTIL, Clock, approved, asking, filled, fitted_without, harmful, opened
from rocerf.errors import KeyReusedError, NotInLedgerError, OptionError, TransitionError
from rocerf.ledger import Ledger, LetterState, RequestState, core, previews
from rocerf.ledger.overview import Overview
from rocerf.ledger.states import LETTER_WAYS, REQUEST_WAYS, check_letter, check_request
from rocerf.ledger.tables import RequestRow
from rocerf.ledger.worker import Worker


def test_a_request_goes_its_way_to_approval_and_no_other(tmp_path: Path) -> None:
    ledger = filled(opened(tmp_path))
    number = ledger.requests.receive("owner-7", actor="desk").id
    with pytest.raises(TransitionError, match="may become 'approved', got one that is 'received'"):
        ledger.requests.approve(number, actor="dpo")
    ledger.requests.verify_identity(number, actor="desk")
    ledger.requests.hold(number, reason="waiting for a signature", actor="desk")
    with pytest.raises(TransitionError, match="go back to 'identity_verified'"):
        ledger.requests.approve(number, actor="dpo")
    assert ledger.requests.resume(number, actor="desk").state is RequestState.IDENTITY_VERIFIED
    ledger.requests.preview(number, actor="dpo")
    assert ledger.requests.approve(number, actor="dpo").state is RequestState.APPROVED
    with pytest.raises(NotInLedgerError):
        ledger.requests.get(99)
    with pytest.raises(OptionError, match="reason"):
        ledger.requests.refuse(number, reason=" ", actor="dpo")
    assert ledger.audit.verify().whole


def test_every_way_that_is_not_in_the_table_is_refused() -> None:
    refused = 0
    for now, ways in LETTER_WAYS.items():
        for then in LetterState:
            if then not in ways:
                refused += 1
                with pytest.raises(TransitionError):
                    check_letter(now, then)
    for start, onwards in REQUEST_WAYS.items():
        for end in RequestState:
            if end not in onwards:
                refused += 1
                with pytest.raises(TransitionError):
                    check_request(start, end)
    assert refused > 80
    assert all(state.sentence for state in (*LetterState, *RequestState))


def test_four_eyes_are_two_people_not_two_tokens(tmp_path: Path, database: Callable[[], str]) -> None:
    ledger = filled(opened(tmp_path, url=database(), four_eyes=True))
    number = ledger.requests.receive("owner-7", actor="desk").id
    with pytest.raises(TransitionError, match="belongs to nobody"):
        ledger.requests.verify_identity(number, actor="dpo:1", colleague=" ")
    ledger.requests.verify_identity(number, actor="dpo:1", colleague="Ada Lovelace")
    ledger.requests.preview(number, actor="dpo:1")
    for actor, colleague in (("dpo:1", "Ada Lovelace"), ("dpo:2", "ada  lovelace "), ("dpo:1", "Grace Hopper")):
        with pytest.raises(TransitionError, match="four-eyes"):
            ledger.requests.approve(number, actor=actor, colleague=colleague)
    with pytest.raises(TransitionError, match="belongs to nobody"):
        ledger.requests.approve(number, actor="dpo:9", colleague="")
    approved_now = ledger.requests.approve(number, actor="dpo:3", colleague="Grace Hopper")
    assert (approved_now.approved_by, approved_now.verified_person) == ("dpo:3", "Ada Lovelace")


def test_who_verified_before_people_were_noted_is_asked_for_again(tmp_path: Path) -> None:
    ledger = filled(opened(tmp_path, four_eyes=True))
    number = ledger.requests.receive("owner-7", actor="desk").id
    ledger.requests.verify_identity(number, actor="dpo:1", colleague="Ada Lovelace")
    ledger.requests.preview(number, actor="dpo:1")
    with ledger.core.database.writing() as session:
        session.get_one(RequestRow, number).verified_person = ""
    with pytest.raises(TransitionError, match="verified again"):
        ledger.requests.approve(number, actor="dpo:3", colleague="Grace Hopper")
    again = ledger.requests.verify_identity(number, actor="dpo:1", colleague="Ada Lovelace")
    assert again.state is RequestState.IDENTITY_VERIFIED
    ledger.requests.preview(number, actor="dpo:1")
    assert ledger.requests.approve(number, actor="dpo:3", colleague="Grace Hopper").state is RequestState.APPROVED


def test_an_idempotency_key_with_another_body_is_refused_and_does_nothing(
    tmp_path: Path, database: Callable[[], str]
) -> None:
    ledger = filled(opened(tmp_path, url=database()))
    people = asking(ledger.models.explainer().model, 3).set_axis(["a", "b", "c"], axis=0)
    letters = ledger.letters.issue(people, valid_until=UNTIL, actor="officer", idempotency_key="k")
    number = ledger.requests.receive("owner-1", actor="desk", idempotency_key="k").id
    ready = approved(ledger, "owner-2")
    job = ledger.deletions.carry_out(ready, actor="dpo", idempotency_key="k")
    renewal = ledger.letters.renew([letters[0].id], actor="officer", idempotency_key="r")
    before = ledger.audit.head()
    others: list[Callable[[], object]] = [
        lambda: ledger.letters.issue(people.iloc[:2], valid_until=UNTIL, actor="officer", idempotency_key="k"),
        lambda: ledger.letters.issue(people + 1.0, valid_until=UNTIL, actor="officer", idempotency_key="k"),
        lambda: ledger.letters.issue(people, valid_until=None, actor="officer", idempotency_key="k"),
        lambda: ledger.letters.issue(
            people.set_axis(["a", "b", "z"], axis=0), valid_until=UNTIL, actor="officer", idempotency_key="k"
        ),
        lambda: ledger.letters.issue(
            pd.concat([people, people.iloc[:1].set_axis(["d"], axis=0)]),
            valid_until=UNTIL,
            actor="officer",
            idempotency_key="k",
        ),
        lambda: ledger.requests.receive("owner-3", actor="desk", idempotency_key="k"),
        lambda: ledger.requests.receive("owner-1", actor="desk", rows=["row-1"], idempotency_key="k"),
        lambda: ledger.deletions.carry_out(ready, actor="dpo", broken="honour", idempotency_key="k"),
        lambda: ledger.deletions.carry_out([number], actor="dpo", idempotency_key="k"),
        lambda: ledger.letters.renew([letters[1].id], actor="officer", idempotency_key="r"),
    ]
    for other in others:
        with pytest.raises(KeyReusedError, match="with another one"):
            other()
    assert ledger.audit.head() == before
    assert ledger.letters.issue(people, valid_until=UNTIL, actor="officer", idempotency_key="k") == letters
    assert ledger.requests.receive("owner-1", actor="desk", idempotency_key="k").id == number
    assert ledger.deletions.carry_out(ready, actor="dpo", idempotency_key="k") == job
    assert ledger.letters.renew([letters[0].id], actor="officer", idempotency_key="r") == renewal


def test_idempotency_keys_cannot_be_tried_with_the_database_alone(
    tmp_path: Path, database: Callable[[], str], monkeypatch: pytest.MonkeyPatch
) -> None:
    """They may name somebody, and outlive the deletion; what an earlier release kept is brought to the same."""
    url, key = database(), "Zephyrine-1871"

    def plain(use: str, end: str = "") -> str:
        return hashlib.sha256(f"{use}\0{key}{end}".encode()).hexdigest()

    def kept(ledger: Ledger) -> set[str]:
        tables = ("requests", "idempotency"), ("jobs", "idempotency"), ("letters", "issue_key")
        with ledger.core.database.engine.connect() as connection:
            return {
                value
                for table, column in tables
                for value in connection.execute(text(f"SELECT {column} FROM {table}")).scalars()
                if value is not None
            }

    with monkeypatch.context() as before:
        before.setattr(core, "keyed", lambda _, hashed: hashed)
        ledger = filled(opened(tmp_path, url=url))
        people = asking(ledger.models.explainer().model, 2).set_axis(["a", "b"], axis=0)
        letters = ledger.letters.issue(people, valid_until=UNTIL, actor="officer", idempotency_key=key)
        number = ledger.requests.receive("owner-1", actor="desk", idempotency_key=key).id
        ready = approved(ledger, "owner-2")
        job = ledger.deletions.carry_out(ready, actor="dpo", idempotency_key=key)
    guesses = {plain("request"), plain("job"), plain("letters", "\x000"), plain("letters", "\x001")}
    assert kept(ledger) == guesses

    again = opened(tmp_path, url=url)
    assert len(kept(again)) == 4
    assert not kept(again) & guesses
    assert all(value.startswith(core.KEYED) for value in kept(again))
    assert again.letters.issue(people, valid_until=UNTIL, actor="officer", idempotency_key=key) == letters
    assert again.requests.receive("owner-1", actor="desk", idempotency_key=key).id == number
    with pytest.raises(KeyReusedError):
        again.requests.receive("owner-3", actor="desk", idempotency_key=key)
    assert again.deletions.carry_out(ready, actor="dpo", idempotency_key=key) == job
    new = opened(tmp_path / "new", url=database())
    new.requests.receive("owner-1", actor="desk", idempotency_key=key)
    assert not kept(new) & guesses


def test_what_was_looked_at_is_not_replaced_once_it_is_done(tmp_path: Path) -> None:
    ledger = filled(opened(tmp_path), 2)
    done, refused = approved(ledger, "owner-2"), ledger.requests.receive("owner-3", actor="desk").id
    ledger.requests.refuse(refused, reason="not proven", actor="dpo")
    ledger.deletions.carry_out(done, actor="dpo")
    Worker(ledger).run_once()
    before, head = Overview(ledger.core).previewed(done), ledger.audit.head()
    for wanted in (done, refused, [done, refused]):
        with pytest.raises(TransitionError, match="nothing to preview"):
            ledger.requests.preview(wanted, actor="dpo")
    assert (Overview(ledger.core).previewed(done), ledger.audit.head()) == (before, head)
    assert ledger.requests.preview(done, actor="dpo", keep=False).rows == 0


def test_rows_that_come_while_the_preview_is_made_are_not_approved_unseen(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    ledger = filled(opened(tmp_path))
    number = ledger.requests.receive("owner-1", actor="desk").id
    ledger.requests.verify_identity(number, actor="dpo")
    look = previews.preview

    def meanwhile(*given: Any) -> Any:
        found = look(*given)
        ledger.requests.receive("owner-1", actor="officer", rows=["row-2"])
        return found

    monkeypatch.setattr(previews, "preview", meanwhile)
    with pytest.raises(TransitionError, match="make the preview again"):
        ledger.requests.preview(number, actor="dpo")
    assert ledger.requests.get(number).state is RequestState.IDENTITY_VERIFIED
    monkeypatch.setattr(previews, "preview", look)
    assert ledger.requests.preview(number, actor="dpo").rows == 2
    assert ledger.requests.approve(number, actor="dpo").state is RequestState.APPROVED


def test_rows_of_somebody_whose_deletion_was_previewed_stay_those_that_were_looked_at(tmp_path: Path) -> None:
    ledger = filled(opened(tmp_path))
    approved(ledger, "owner-7")
    with pytest.raises(TransitionError, match="previewed already"):
        ledger.people.assign_rows({"owner-7": ["row-7", "row-8"], "owner-9": ["row-9"]}, actor="admin")
    assert ledger.people.assign_rows({"owner-7": ["row-7"], "owner-9": ["row-10"]}, actor="admin") == 2
    assert ledger.people.rows_of("owner-9") == ("row-10",)


def test_what_people_write_about_somebody_is_sealed_from_the_first_day(tmp_path: Path) -> None:
    ledger = filled(opened(tmp_path))
    words = ["Zephyrine moved to Ulm", "no passport of Zephyrine", "Zephyrine is on holiday", "letter by Zephyrine"]
    letter = ledger.letters.find(outstanding=True)[0]
    ledger.letters.withdraw(letter.id, reason=words[0], actor="officer")
    one, two = (ledger.requests.receive(f"owner-{n}", actor="desk", source=words[3]).id for n in (1, 2))
    ledger.requests.hold(one, reason=words[1], actor="dpo")
    ledger.requests.extend(two, reason=words[2], actor="dpo")
    assert ledger.letters.get(letter.id).reason == words[0]
    assert ledger.letters.history(letter.id)[-1].reason == words[0]
    assert [ledger.requests.get(number).reason for number in (one, two)] == words[1:3]
    assert ledger.requests.get(one).source == words[3]
    assert ledger.requests.resume(one, actor="dpo").reason == ""
    ledger.close()
    assert not any(b"Zephyrine" in path.read_bytes() for path in tmp_path.rglob("*") if path.is_file())


def test_deadlines_are_calendar_months_and_extensions_are_told_in_the_first(tmp_path: Path) -> None:
    clock = Clock(datetime(2026, 1, 31, 23, 59, tzinfo=UTC))
    ledger = filled(opened(tmp_path, clock))
    first = ledger.requests.receive("owner-1", actor="desk")
    assert first.deadline == date(2026, 2, 28)
    clock.jump(days=28)  # the last day of the first month
    assert ledger.requests.extend(first.id, reason="many requests", actor="dpo").deadline == date(2026, 4, 30)
    second = ledger.requests.receive("owner-2", actor="desk", received=datetime(2026, 1, 20, tzinfo=UTC))
    with pytest.raises(OptionError, match="within one month"):
        ledger.requests.extend(second.id, reason="too late", actor="dpo")
    assert [request.id for request in ledger.requests.by_deadline()] == [second.id, first.id]


@pytest.mark.parametrize(
    ("zone", "received", "first", "last"),
    [
        ("UTC", datetime(2026, 1, 31, 23, 30, tzinfo=UTC), date(2026, 2, 28), date(2026, 4, 30)),
        ("Europe/Berlin", datetime(2026, 1, 31, 23, 30, tzinfo=UTC), date(2026, 3, 1), date(2026, 5, 1)),
        ("America/New_York", datetime(2026, 2, 1, 3, 0, tzinfo=UTC), date(2026, 2, 28), date(2026, 4, 30)),
        ("UTC", datetime(2028, 1, 30, 12, 0, tzinfo=UTC), date(2028, 2, 29), date(2028, 4, 30)),  # a leap year
        ("UTC", datetime(2026, 11, 30, 12, 0, tzinfo=UTC), date(2026, 12, 30), date(2027, 2, 28)),
        # Within the month the clocks go forward: days, not hours.
        ("Europe/Berlin", datetime(2026, 3, 15, 22, 59, tzinfo=UTC), date(2026, 4, 15), date(2026, 6, 15)),
        ("Europe/Berlin", datetime(2026, 3, 15, 23, 1, tzinfo=UTC), date(2026, 4, 16), date(2026, 6, 16)),
    ],
)
def test_deadlines_are_days_where_the_organisation_is(
    tmp_path: Path, zone: str, received: datetime, first: date, last: date
) -> None:
    clock = Clock(received)
    ledger = opened(tmp_path, clock, zone=zone)
    request = ledger.requests.receive("somebody", actor="desk")
    assert request.deadline == first
    there = ZoneInfo(zone)
    clock.at = datetime(first.year, first.month, first.day, 23, 59, tzinfo=there)
    assert Overview(ledger.core).open_and_overdue() == (1, 0)
    assert ledger.requests.extend(request.id, reason="many requests", actor="dpo").deadline == last
    late = ledger.requests.receive("another", actor="desk", received=received)
    clock.jump(minutes=2)  # the day after
    assert Overview(ledger.core).open_and_overdue() == (2, 1)
    with pytest.raises(OptionError, match="within one month"):
        ledger.requests.extend(late.id, reason="too late", actor="dpo")


def test_a_time_zone_that_is_none_is_refused(tmp_path: Path) -> None:
    with pytest.raises(OptionError, match="Expected a time zone"):
        opened(tmp_path, zone="Berlin/Europe")


def test_the_same_request_twice_is_one(tmp_path: Path) -> None:
    ledger = filled(opened(tmp_path))
    one = ledger.requests.receive("owner-7", actor="desk", idempotency_key="abc")
    events = ledger.audit.head().seq
    assert ledger.requests.receive("owner-7", actor="desk", idempotency_key="abc") == one
    assert ledger.audit.head().seq == events
    people = asking(ledger.models.explainer().model, 3)
    letters = ledger.letters.issue(people, valid_until=UNTIL, actor="officer", idempotency_key="x")
    assert ledger.letters.issue(people, valid_until=UNTIL, actor="officer", idempotency_key="x") == letters


def test_a_preview_is_what_retraining_from_nothing_says_and_touches_nothing(tmp_path: Path) -> None:
    ledger = filled(opened(tmp_path), 40, k=1)
    letters = ledger.letters.find(outstanding=True)
    gone = harmful()
    number = ledger.requests.receive("somebody", actor="desk", rows=[*gone, "row-of-another-table"]).id
    ledger.requests.verify_identity(number, actor="desk")
    before = ledger.audit.head(), ledger.letters.portfolio(), ledger.models.all()
    preview = ledger.requests.preview(number, actor="dpo", keep=False)
    assert (ledger.audit.head(), ledger.letters.portfolio(), ledger.models.all()) == before
    # The oracle: each letter's own words, one by one, held against a model fitted on the rows that are left.
    model = fitted_without(gone)
    falling = []
    for letter in letters:
        document = ledger.letters.document(letter.id)
        person = asking(ledger.models.explainer().model, 40).loc[[document.person]].copy()
        for change in document.options[0].changes:
            person[change.feature] = change.after
        if float(np.min(model.score(person))) < 0:
            falling.append(letter.id)
    assert preview.broken == tuple(falling)
    assert falling
    assert (preview.rows, preview.rows_elsewhere, preview.letters) == (12, 1, len(letters))
    assert all(budget.used_after == 12 and not budget.within for budget in preview.budgets)


def test_rows_of_people_who_did_not_ask_are_counted(tmp_path: Path) -> None:
    ledger = filled(opened(tmp_path), 2)
    one = ledger.requests.receive("owner-1", actor="desk", rows=["row-1", "row-2", "row-99"]).id
    two = ledger.requests.receive("owner-2", actor="desk").id
    previews = [ledger.requests.preview(numbers, actor="dpo") for numbers in (one, two, [one, two])]
    assert [(found.rows, found.rows_of_others) for found in previews] == [(3, 1), (1, 0), (3, 0)]
    assert previews[0].summary()["rows_of_others"] == 1


def test_letters_are_kept_and_read_back(tmp_path: Path) -> None:
    clock = Clock()
    ledger = filled(opened(tmp_path, clock))
    letter = ledger.letters.find(outstanding=True)[0]
    assert (letter.k, letter.used, letter.remaining, letter.promise) == (3, 0, 3, "first_order")
    assert ledger.letters.document(letter.id).valid_until == UNTIL
    taken = ledger.letters.withdraw(letter.id, reason="a mistake", actor="officer")
    assert [entry.state for entry in ledger.letters.history(letter.id)] == [LetterState.ISSUED, taken.state]
    clock.jump(days=500)
    assert ledger.letters.expire() == 5
    assert not ledger.letters.find(outstanding=True)
    assert approved(ledger, "owner-7") == 1


def test_how_somebody_was_verified_is_in_the_trail_only_where_it_names_nobody(tmp_path: Path) -> None:
    ledger = filled(opened(tmp_path))
    for person, how in (("owner-7", "document"), ("owner-8", "passport of Jane Roe, C01X00T47")):
        ledger.requests.verify_identity(ledger.requests.receive(person, actor="desk").id, actor="desk", how=how)
    facts = [event.facts for event in ledger.audit.events(limit=100, kind="request identity_verified")]
    assert [fact.get("how") for fact in facts] == ["document", None]
    ledger.close()
    assert not any(b"C01X00T47" in path.read_bytes() for path in tmp_path.rglob("*") if path.is_file())
