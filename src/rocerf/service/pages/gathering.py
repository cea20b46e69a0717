"""From the ledger to what each page shows. Whoever sees no person is given none here, whatever a template asks for."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import replace
from datetime import date, datetime
from typing import Any

from rocerf.errors import ErasedError
from rocerf.ledger import AuditEvent, DeletionRequest, JobState, Ledger, LetterRecord, RequestState
from rocerf.ledger.access import Role
from rocerf.ledger.overview import Overview
from rocerf.letters.page import body_html
from rocerf.service.guard import Who
from rocerf.service.pages.acting import acts, letter_acts, waits_for_other
from rocerf.service.pages.answers import reader_of
from rocerf.service.pages.rendering import BUDGET_COLUMNS, Reader
from rocerf.service.pages.views import (
    Affected,
    Budget,
    Event,
    LetterLine,
    LetterPage,
    ModelLine,
    Portfolio,
    Preview,
    PromiseRow,
    RequestLine,
    RequestPage,
    Step,
    Trail,
)
from rocerf.service.views import FREE_TEXT
from rocerf.words import Said

#: Letters and requests on one page, and events of the audit trail.
MOST_LETTERS, MOST_REQUESTS, EVENTS = 50, 200, 50

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

#: The steps of a request on its straight way.
STEPS = (
    RequestState.RECEIVED,
    RequestState.IDENTITY_VERIFIED,
    RequestState.PREVIEWED,
    RequestState.APPROVED,
    RequestState.UNLEARNED,
    RequestState.RECHECKED,
    RequestState.PURGED,
    RequestState.CERTIFIED,
)

#: The event by which each step stands in the audit trail.
STEP_EVENTS: Mapping[RequestState, str] = {
    RequestState.RECEIVED: "request_received",
    RequestState.IDENTITY_VERIFIED: "request_identity_verified",
    RequestState.PREVIEWED: "deletion_previewed",
    RequestState.APPROVED: "request_approved",
    RequestState.ON_HOLD: "request_on_hold",
    RequestState.REFUSED: "request_refused",
    RequestState.UNLEARNED: "model_unlearned",
    RequestState.RECHECKED: "letters_rechecked",
    RequestState.PURGED: "traces_removed",
    RequestState.CERTIFIED: "erasure_certified",
}

#: Counts that are told only where they are not 0.
SELDOM = frozenset(
    {
        "rows_elsewhere",
        "rows_of_others",
        "unwritten",
        "beyond_promise",
        "broken_within_promise",
        "withdrawn",
        "without_recourse",
        "copies",
        "word_broken",
        "rows_outside",
    }
)


def portfolio(ledger: Ledger, reader: Reader, promise: str, budget: str) -> Portfolio:
    """The first page; letters of one promise, or with so much left, if asked for."""
    counted = ledger.letters.portfolio()["outstanding"]
    lines = open_requests(ledger, reader)
    still_open, overdue = Overview(ledger.core).open_and_overdue()
    lowest, highest = next(((low, high) for key, low, high in BUDGET_COLUMNS if key == budget), (None, None))
    found = Overview(ledger.core).by_budget(promise=promise or None, lowest=lowest, highest=highest, limit=MOST_LETTERS)
    matching = sum(
        entry["letters"]
        for entry in counted
        if (not promise or entry["promise"] == promise)
        and (lowest is None or highest is None or lowest <= entry["remaining"] <= highest)
    )
    return Portfolio(
        outstanding=sum(entry["letters"] for entry in counted),
        used_up=sum(entry["letters"] for entry in counted if entry["remaining"] <= 0),
        open_requests=still_open,
        overdue=overdue,
        rows=_by_promise(counted),
        letters=tuple(letter_line(ledger, letter, reader) for letter in found),
        requests=lines,
        shows_letters=True,
        promise=promise,
        budget=budget,
        more_letters=max(matching - len(found), 0),
    )


def _by_promise(counted: Iterable[Mapping[str, Any]]) -> tuple[PromiseRow, ...]:
    counts: dict[str, list[int]] = {}
    for entry in counted:
        row = counts.setdefault(entry["promise"], [0] * len(BUDGET_COLUMNS))
        for place, (_, low, high) in enumerate(BUDGET_COLUMNS):
            row[place] += entry["letters"] if low <= entry["remaining"] <= high else 0
    return tuple(PromiseRow(promise, tuple(row), sum(row)) for promise, row in counts.items())


def letter_line(ledger: Ledger, letter: LetterRecord, reader: Reader) -> LetterLine:
    """A letter in a list."""
    return LetterLine(
        id=str(letter.id),
        person=_person_of_letter(ledger, letter.id) if reader.sees_people else None,
        promise=letter.promise,
        state=letter.state.code,
        budget=Budget(letter.remaining, letter.k),
        issued=ledger.core.day(letter.issued),
        valid_until=letter.valid_until,
        answered=letter.answered,
    )


def _person_of_letter(ledger: Ledger, number: int) -> str | None:
    """What the person is called in their own letter; None once it is erased."""
    try:
        return str(ledger.letters.document(number).person)
    except ErasedError:
        return None


def letter_page(ledger: Ledger, number: int, who: Who) -> LetterPage:
    """One letter with its history."""
    letter, reader = ledger.letters.get(number), reader_of(who)
    body = None
    if reader.sees_people:
        try:
            body = body_html(ledger.letters.document(number))
        except ErasedError:
            body = None
    history = [
        Event(
            place,
            entry.at,
            f"letter_{entry.state.code}",
            None,
            facts=_letter_facts(entry.version, entry.used, entry.reason if reader.sees_people else ""),
        )
        for place, entry in enumerate(ledger.letters.history(number), start=1)
    ]
    return LetterPage(
        line=letter_line(ledger, letter, reader),
        body=body,
        model_version=str(letter.version),
        history=tuple(history),
        replaced_by=None if letter.replaced_by is None else str(letter.replaced_by),
        replaces=None if letter.replaces is None else str(letter.replaces),
        language=letter.language,
        acts=letter_acts(letter, who),
    )


def _letter_facts(version: int, used: int, reason: str) -> tuple[tuple[str, Any], ...]:
    facts: list[tuple[str, Any]] = [("version", version), ("used", used)]
    return tuple([*facts, ("reason", reason)] if reason else facts)


def open_requests(ledger: Ledger, reader: Reader) -> tuple[RequestLine, ...]:
    """Open requests by deadline."""
    return request_lines(ledger, ledger.requests.by_deadline(limit=MOST_REQUESTS), reader)


def closed_requests(ledger: Ledger, reader: Reader) -> tuple[RequestLine, ...]:
    """Requests that are carried out or refused, the latest first."""
    return request_lines(ledger, Overview(ledger.core).closed(limit=MOST_LETTERS), reader)


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


def request_page(ledger: Ledger, request: DeletionRequest, who: Who) -> RequestPage:
    """One request: how far it has come, what it does to letters, what this reader can do."""
    reader = reader_of(who)
    history = events_of(ledger, request, reader)
    (line,) = request_lines(ledger, [request], reader)
    job = Overview(ledger.core).job_of_batch(request.batch) if request.open and request.batch is not None else None
    return RequestPage(
        line=line,
        steps=steps(request, history),
        preview=preview(ledger, request.id, reader),
        acts=acts(ledger, request, who),
        history=history,
        reason=request.reason if reader.sees_people else "",
        extended=request.extended,
        waits_for_other=who.role is Role.PROTECTION and waits_for_other(ledger, request, who),
        certificate=request.certificate is not None,
        working="" if job is None else job.state.code,
        at_source=job is not None and job.state is JobState.WAITING and job.step == "reissue" and job.error != "",
    )


def steps(request: DeletionRequest, history: Sequence[Event]) -> tuple[Step, ...]:
    """The way of a request, with what is done, what comes next, and where it was stopped."""
    stopped = request.state in (RequestState.REFUSED, RequestState.ON_HOLD)
    at = {state: event for state, kind in STEP_EVENTS.items() for event in history if event.kind == kind}
    reached = request.held_from or request.state
    if request.state is RequestState.REFUSED:
        reached = next((one for one in reversed(STEPS[:4]) if one in at), RequestState.RECEIVED)
    place = STEPS.index(reached)
    found = []
    for number, step in enumerate(STEPS):
        mark = "done" if number <= place else "next" if number == place + 1 and not stopped else "later"
        event = at.get(step) if mark == "done" else None
        found.append(Step(step.code, mark, event.at if event else None, event.by if event else None))
    if stopped:
        event = at.get(request.state)
        here = Step(request.state.code, "stopped", event.at if event else None, event.by if event else None)
        found.insert(place + 1, here)
    return tuple(found if request.state is not RequestState.REFUSED else found[: place + 2])


def preview(ledger: Ledger, number: int, reader: Reader) -> Preview | None:
    """The last preview of a request."""
    kept = Overview(ledger.core).previewed(number)
    if kept is None:
        return None
    return Preview(
        at=datetime.fromisoformat(kept.summary["made"]),
        rows=kept.summary["rows"],
        letters=kept.summary["letters"],
        breaks=kept.summary["broken"],
        withdrawn=kept.summary["withdrawn"],
        elsewhere=kept.summary["rows_elsewhere"],
        of_others=kept.summary.get("rows_of_others", 0),
        affected=tuple(
            Affected(
                letter=str(one.letter),
                person=_person_of_letter(ledger, one.letter) if reader.sees_people else None,
                promise=one.promise,
                breaks=one.breaks,
                uses=one.used_after - one.used_before,
                budget=Budget(one.k - one.used_after, one.k),
            )
            for one in kept.budgets[:MOST_LETTERS]
        ),
        more=kept.summary["letters"] - min(len(kept.budgets), MOST_LETTERS),
    )


def events_of(ledger: Ledger, request: DeletionRequest, reader: Reader) -> tuple[Event, ...]:
    """What the audit trail says about one request, and about the batch in which it was carried out."""
    events = [event(one, reader) for one in Overview(ledger.core).events_about(request)]
    own = ("request", "requests")  # which it is stands above
    return tuple(replace(one, facts=tuple(fact for fact in one.facts if fact[0] not in own)) for one in events)


def event(found: AuditEvent, reader: Reader) -> Event:
    """An event of the audit trail, as this reader may see it."""
    facts = tuple(
        (name, value)
        for name, value in found.facts.items()
        if (reader.sees_people or name not in FREE_TEXT)
        and name != "made"
        and value != ""
        and not (name in SELDOM and not value)
    )
    return Event(found.seq, found.at, found.kind.replace(" ", "_"), found.actor, facts=facts, hash=found.hash)


def trail(ledger: Ledger, reader: Reader, page: int) -> Trail:
    """A part of the audit trail, the newest first; events are numbered without gaps."""
    length = ledger.audit.head().seq
    pages = max(1, -(-length // EVENTS))
    page = min(max(page, 1), pages)
    last = length - (page - 1) * EVENTS
    first = max(0, last - EVENTS)
    found = ledger.audit.events(after=first, limit=last - first)
    return Trail(tuple(event(one, reader) for one in reversed(found)), length, page, pages)


def verified(ledger: Ledger, reader: Reader, code: str) -> Trail:
    """The newest part of the audit trail with what going through the whole chain has found."""
    report = ledger.audit.verify()

    def said(sentences: Iterable[str]) -> tuple[str, ...]:
        return tuple(one.in_language(code) if isinstance(one, Said) else one for one in sentences)

    return replace(
        trail(ledger, reader, 1),
        verdict="whole" if report.whole else "broken",
        length=report.events,
        faults=said(report.faults),
        undetectable=said(report.undetectable),
        head=report.head.hash,
    )


def models(ledger: Ledger) -> tuple[ModelLine, ...]:
    """Model versions, the newest first."""
    outstanding = Overview(ledger.core).outstanding_by_version()
    return tuple(
        ModelLine(
            version=str(one.id),
            label=one.label,
            made=one.created,
            rows=one.training_rows,
            forgotten=one.rows_forgotten,
            promise=one.promise,
            k=one.k,
            state=one.state.code,
            letters=outstanding.get(one.id, 0),
            checksum=one.artefact_sha256,
        )
        for one in ledger.models.all()
    )
