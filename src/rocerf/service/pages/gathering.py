"""From the ledger to what each page shows. Whoever sees no person is given none here, whatever a template asks for."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import replace
from datetime import datetime
from typing import Any

from rocerf.errors import ErasedError
from rocerf.ledger import AuditEvent, DeletionRequest, Job, JobState, Ledger, RequestState
from rocerf.ledger.access import Role
from rocerf.ledger.overview import Overview
from rocerf.letters.page import body_html
from rocerf.service.guard import Who
from rocerf.service.pages.acting import acts, letter_acts, waits_for_other
from rocerf.service.pages.answers import reader_of
from rocerf.service.pages.listing import letter_line, person_of_letter, request_lines
from rocerf.service.pages.rendering import Reader
from rocerf.service.pages.views import (
    Affected,
    Budget,
    Event,
    LetterPage,
    ModelLine,
    Preview,
    RequestPage,
    Step,
    Trail,
)
from rocerf.service.views import FREE_TEXT
from rocerf.words import Said

#: Letters of a preview on one page, and events of the audit trail.
MOST_LETTERS, EVENTS = 50, 50

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


def request_page(ledger: Ledger, request: DeletionRequest, who: Who) -> RequestPage:
    """One request: how far it has come, what it does to letters, what this reader can do."""
    reader = reader_of(who)
    history = events_of(ledger, request, reader)
    (line,) = request_lines(ledger, [request], reader)
    overview, job, failed = Overview(ledger.core), None, None
    if request.open and request.batch is not None:
        job = failed = overview.job_of_batch(request.batch)
    elif request.state is RequestState.APPROVED:
        failed = overview.given_back(request.id)
    return RequestPage(
        line=line,
        steps=steps(request, history),
        preview=preview(ledger, request.id, reader),
        acts=acts(ledger, request, who, job),
        history=history,
        reason=request.reason if reader.sees_people else "",
        extended=request.extended,
        waits_for_other=who.role is Role.PROTECTION and waits_for_other(ledger, request, who),
        certificate=request.certificate is not None,
        working="" if job is None else job.state.code,
        waits_for=_waits_for(job),
        failed=failed.error if failed is not None and failed.state is JobState.FAILED else "",
    )


def _waits_for(job: Job | None) -> str:
    """What a job that was put off waits for, by the step that it has come to."""
    if job is None or job.state is not JobState.WAITING or not job.error:
        return ""
    return {"reissue": "source", "erase": "reader"}.get(job.step, "")


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
                person=person_of_letter(ledger, one.letter) if reader.sees_people else None,
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
