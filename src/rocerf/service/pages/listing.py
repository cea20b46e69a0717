"""Lists in the order in which people work through them: letters and requests in parts, and those of one person."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from datetime import date
from typing import Any

from rocerf.errors import ErasedError, NotInLedgerError
from rocerf.ledger import DeletionRequest, Ledger, LetterRecord, LetterState, RequestState
from rocerf.ledger.overview import Overview
from rocerf.service.pages.rendering import BUDGET_COLUMNS, Reader
from rocerf.service.pages.views import Budget, Found, LetterLine, Part, Portfolio, PromiseRow, RequestLine

#: Letters and requests in one part of a list, and requests on the first page.
IN_A_PART, PRESSING = 50, 20

#: What is due next in each state (a key of ``due``); states that are not here wait for nobody.
NEXT: Mapping[RequestState, str] = {
    RequestState.RECEIVED: "verify",
    RequestState.IDENTITY_VERIFIED: "preview",
    RequestState.PREVIEWED: "approve",
    RequestState.APPROVED: "carry_out",
    RequestState.ON_HOLD: "resume",
    RequestState.UNLEARNED: "finish",
    RequestState.RECHECKED: "finish",
    RequestState.PURGED: "finish",
}


def part_of(count: int, page: int) -> Part:
    """The part of a list of so many that is nearest to the one asked for."""
    pages = max(1, -(-count // IN_A_PART))
    return Part(min(max(page, 1), pages), pages)


def portfolio(
    ledger: Ledger, reader: Reader, *, promise: str = "", budget: str = "", state: str = "", page: int = 1
) -> Portfolio:
    """The first page; letters of one promise, with so much left, or of a state, if asked for."""
    overview, counted = Overview(ledger.core), ledger.letters.portfolio()["outstanding"]
    still_open, overdue = overview.open_and_overdue()
    lowest, highest = next(((low, high) for key, low, high in BUDGET_COLUMNS if key == budget), (None, None))
    chosen = next((one for one in LetterState if one.code == state), None)
    like: dict[str, Any] = {"promise": promise or None, "lowest": lowest, "highest": highest, "state": chosen}
    part = part_of(overview.count(**like), page)
    found = overview.by_budget(**like, limit=IN_A_PART, offset=(part.page - 1) * IN_A_PART)
    return Portfolio(
        outstanding=sum(entry["letters"] for entry in counted),
        used_up=sum(entry["letters"] for entry in counted if entry["remaining"] <= 0),
        open_requests=still_open,
        overdue=overdue,
        rows=_by_promise(counted),
        letters=tuple(letter_line(ledger, letter, reader) for letter in found),
        requests=request_lines(ledger, ledger.requests.by_deadline(limit=PRESSING), reader),
        due=ledger.letters.count_due(pending=ledger.requests.pending_rows()),
        promise=promise,
        budget=budget,
        state="" if chosen is None else state,
        part=part,
    )


def _by_promise(counted: Iterable[Mapping[str, Any]]) -> tuple[PromiseRow, ...]:
    counts: dict[str, list[int]] = {}
    for entry in counted:
        row = counts.setdefault(entry["promise"], [0] * len(BUDGET_COLUMNS))
        for place, (_, low, high) in enumerate(BUDGET_COLUMNS):
            row[place] += entry["letters"] if low <= entry["remaining"] <= high else 0
    return tuple(PromiseRow(promise, tuple(row), sum(row)) for promise, row in counts.items())


def found_of(ledger: Ledger, reader: Reader, person: str) -> Found:
    """All letters and requests of one person, the latest first."""
    try:
        letters = ledger.letters.find(person=person, limit=1000)
        requests = ledger.requests.find(person=person, limit=1000)
    except NotInLedgerError:
        return Found(person, (), (), known=False)
    return Found(
        person,
        tuple(letter_line(ledger, letter, reader) for letter in reversed(letters)),
        request_lines(ledger, requests[::-1], reader),
    )


def letter_line(ledger: Ledger, letter: LetterRecord, reader: Reader) -> LetterLine:
    """A letter in a list."""
    return LetterLine(
        id=str(letter.id),
        person=person_of_letter(ledger, letter.id) if reader.sees_people else None,
        promise=letter.promise,
        state=letter.state.code,
        budget=Budget(letter.remaining, letter.k),
        issued=ledger.core.day(letter.issued),
        valid_until=letter.valid_until,
        answered=letter.answered,
    )


def person_of_letter(ledger: Ledger, number: int) -> str | None:
    """What the person is called in their own letter; None once it is erased."""
    try:
        return str(ledger.letters.document(number).person)
    except ErasedError:
        return None


def open_requests(ledger: Ledger, reader: Reader, page: int) -> tuple[tuple[RequestLine, ...], Part]:
    """Open requests by deadline, and which part of them these are."""
    part = part_of(Overview(ledger.core).open_and_overdue()[0], page)
    found = ledger.requests.by_deadline(limit=IN_A_PART, offset=(part.page - 1) * IN_A_PART)
    return request_lines(ledger, found, reader), part


def closed_requests(ledger: Ledger, reader: Reader, page: int) -> tuple[tuple[RequestLine, ...], Part]:
    """Requests that are carried out or refused, the latest first, and which part of them these are."""
    overview = Overview(ledger.core)
    part = part_of(overview.count_closed(), page)
    found = overview.closed(limit=IN_A_PART, offset=(part.page - 1) * IN_A_PART)
    return request_lines(ledger, found, reader), part


def request_lines(ledger: Ledger, requests: Sequence[DeletionRequest], reader: Reader) -> tuple[RequestLine, ...]:
    """Requests in a list; who asks, for those who may see it and as long as they are not erased."""
    today: date = ledger.core.today()
    names = Overview(ledger.core).asking(one.id for one in requests) if reader.sees_people else {}
    return tuple(
        RequestLine(
            id=str(one.id),
            subject=names.get(one.id),
            state=one.state.code,
            received=ledger.core.day(one.received),
            due=one.deadline,
            days_left=(one.deadline - today).days,
            next="finish" if one.batch is not None and one.open else NEXT.get(one.state, ""),
        )
        for one in requests
    )
