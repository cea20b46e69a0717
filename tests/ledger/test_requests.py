"""Deletion requests up to their approval: ways that are open, deadlines, previews that touch nothing."""

from __future__ import annotations

from datetime import UTC, date, datetime
from pathlib import Path

import numpy as np
import pytest

from ledgers import UNTIL, Clock, approved, asking, filled, fitted_without, harmful, opened
from rocerf.errors import NotInLedgerError, OptionError, TransitionError
from rocerf.ledger import LetterState, RequestState
from rocerf.ledger.states import LETTER_WAYS, REQUEST_WAYS, check_letter, check_request


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


def test_four_eyes(tmp_path: Path) -> None:
    ledger = filled(opened(tmp_path, four_eyes=True))
    number = ledger.requests.receive("owner-7", actor="desk").id
    ledger.requests.verify_identity(number, actor="desk")
    ledger.requests.preview(number, actor="desk")
    with pytest.raises(TransitionError, match="four-eyes"):
        ledger.requests.approve(number, actor="desk")
    assert ledger.requests.approve(number, actor="dpo").approved_by == "dpo"


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
