"""What pages ask of the ledger beyond single records: lists in the order in which people work through them."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import Any

from sqlalchemy import ColumnElement, func, or_, select
from sqlalchemy.orm import aliased

from rocerf.ledger.audit import event_of
from rocerf.ledger.core import Core, found_or_refused
from rocerf.ledger.jobs import DELETION, job_of
from rocerf.ledger.keys import SUBJECT, opened
from rocerf.ledger.letters import record_of
from rocerf.ledger.records import AuditEvent, DeletionRequest, Job, LetterBudget, LetterRecord
from rocerf.ledger.requests import request_of
from rocerf.ledger.states import OUTSTANDING, LetterState, RequestState
from rocerf.ledger.tables import BatchRow, EventRow, JobRow, LetterRow, RequestRow

#: The kind of the event that holds, sealed, who asked.
RECEIVED = "request received"

#: The states of requests of which nothing is left to be done.
CLOSED = (RequestState.REFUSED.code, RequestState.CERTIFIED.code)

_Replacing = aliased(LetterRow)

#: The kinds of events that are about several requests, by their numbers or by that of their batch, and so about no
#: single subject.
OF_SEVERAL = ("deletion previewed", "deletion ordered")
OF_BATCHES = (
    "deletion ordered",
    "model unlearned",
    "letters rechecked",
    "broken letters settled",
    "source checked",
    "data erased",
    "traces removed",
)


@dataclass(frozen=True)
class KeptPreview:
    """The last preview of a request: its counts, and the letters that it is about, the worst first."""

    summary: dict[str, Any]
    budgets: tuple[LetterBudget, ...]


@dataclass(frozen=True, eq=False)
class Overview:
    """Lists over a ledger; reading only."""

    core: Core

    def by_budget(
        self,
        *,
        promise: str | None = None,
        lowest: int | None = None,
        highest: int | None = None,
        state: LetterState | None = None,
        limit: int = 50,
        offset: int = 0,
    ) -> tuple[LetterRecord, ...]:
        """Letters, those with the least budget left first; of a promise, or with so much left. Outstanding ones, or
        those of another state."""
        left = LetterRow.k - LetterRow.used
        query = select(LetterRow, _Replacing.id).outerjoin(_Replacing, _Replacing.replaces == LetterRow.id)
        query = query.where(*_like(promise, lowest, highest, state)).order_by(left, LetterRow.id)
        with self.core.database.reading() as session:
            rows = session.execute(query.limit(limit).offset(offset)).all()
            return tuple(record_of(row, replaced_by) for row, replaced_by in rows)

    def count(
        self,
        *,
        promise: str | None = None,
        lowest: int | None = None,
        highest: int | None = None,
        state: LetterState | None = None,
    ) -> int:
        """How many letters there are like this, as in :meth:`by_budget`."""
        query = select(func.count()).select_from(LetterRow).where(*_like(promise, lowest, highest, state))
        with self.core.database.reading() as session:
            return session.scalar(query) or 0

    def outstanding_by_version(self) -> dict[int, int]:
        """How many outstanding letters were written with each model version."""
        query = (
            select(LetterRow.version, func.count())
            .where(LetterRow.answered, LetterRow.state.in_([one.code for one in OUTSTANDING]))
            .group_by(LetterRow.version)
        )
        with self.core.database.reading() as session:
            return {row[0]: row[1] for row in session.execute(query)}

    def open_and_overdue(self) -> tuple[int, int]:
        """How many requests are open, and how many of those are past their deadline."""
        query = select(func.count()).select_from(RequestRow).where(RequestRow.state.not_in(CLOSED))
        with self.core.database.reading() as session:
            late = query.where(RequestRow.deadline < self.core.today())
            return session.scalar(query) or 0, session.scalar(late) or 0

    def count_closed(self) -> int:
        """How many requests are carried out or refused."""
        query = select(func.count()).select_from(RequestRow).where(RequestRow.state.in_(CLOSED))
        with self.core.database.reading() as session:
            return session.scalar(query) or 0

    def closed(self, limit: int = 50, offset: int = 0) -> tuple[DeletionRequest, ...]:
        """Requests that are carried out or refused, the latest first."""
        query = select(RequestRow).where(RequestRow.state.in_(CLOSED)).order_by(RequestRow.id.desc())
        query = query.limit(limit).offset(offset)
        with self.core.database.reading() as session:
            return tuple(request_of(session, self.core, row) for row in session.scalars(query).all())

    def asking(self, numbers: Iterable[int]) -> dict[int, str]:
        """Who asks, by the number of the request; those who are erased are not in it."""
        wanted = set(numbers)
        with self.core.database.reading() as session:
            rows = [found_or_refused(session, RequestRow, number, "deletion request") for number in wanted]
            subjects = {row.id: row.subject for row in rows}
            keys = self.core.keys.of(SUBJECT, set(subjects.values()))
            query = select(EventRow).where(EventRow.kind == RECEIVED, EventRow.subject.in_(set(keys)))
            sealed = {row.subject: row for row in session.scalars(query) if row.sealed is not None}
        found = {}
        for number, subject in subjects.items():
            if subject in sealed:
                row = sealed[subject]
                content = opened(keys.get(subject), bytes(row.sealed or b""), f"event/{row.seq}")
                found[number] = content.decode().partition("\n")[0]
        return found

    def job_of_batch(self, batch: int) -> Job | None:
        """The job that carries out a batch of requests."""
        mine = JobRow.options["batch"].as_integer() == batch
        with self.core.database.reading() as session:
            row = session.scalar(select(JobRow).where(JobRow.kind == DELETION, mine))
            return None if row is None else job_of(row)

    def given_back(self, request: int) -> Job | None:
        """The last job that was to carry a request out and failed before anything was touched."""
        query = select(BatchRow).where(BatchRow.step == "").order_by(BatchRow.id.desc())
        with self.core.database.reading() as session:
            found = (row.id for row in session.scalars(query) if request in row.facts.get("given_back", ()))
            batch = next(found, None)
        return None if batch is None else self.job_of_batch(batch)

    def events_about(self, request: DeletionRequest, limit: int = 200) -> tuple[AuditEvent, ...]:
        """What the audit trail says about a request and about the batch in which it was carried out, in order."""
        # Facts are JSON, and few of many events are about this one: the database looks for the numbers as written.
        number, batch = request.id, f'"batch": {request.batch}'
        listed = or_(*(EventRow.facts.contains(one) for one in (f"[{number}", f" {number},", f" {number}]")))
        named = or_(
            EventRow.kind.in_(OF_SEVERAL) & listed, EventRow.kind.in_(OF_BATCHES) & EventRow.facts.contains(batch)
        )
        query = select(EventRow).where(or_(EventRow.subject == request.subject, named))
        with self.core.database.reading() as session:
            events = [event_of(row) for row in session.scalars(query.order_by(EventRow.seq))]

        def mine(facts: Mapping[str, Any]) -> bool:
            own = facts.get("request") == request.id or request.id in facts.get("requests", ())
            return own or (request.batch is not None and facts.get("batch") == request.batch)

        return tuple(event for event in events if mine(event.facts))[:limit]

    def previewed(self, number: int) -> KeptPreview | None:
        """The last preview of a request; None if there is none."""
        with self.core.database.reading() as session:
            row: RequestRow = found_or_refused(session, RequestRow, number, "deletion request")
            found = dict(row.preview) if row.preview else None
        if found is None:
            return None
        budgets = found.pop("budgets", [])
        return KeptPreview(found, tuple(LetterBudget(*values) for values in budgets))


def _like(
    promise: str | None, lowest: int | None, highest: int | None, state: LetterState | None
) -> list[ColumnElement[bool]]:
    """What letters must be like."""
    left = LetterRow.k - LetterRow.used
    found: list[ColumnElement[bool]]
    if state is None:
        found = [LetterRow.answered.is_(True), LetterRow.state.in_([one.code for one in OUTSTANDING])]
    else:
        found = [LetterRow.state == state.code]
    found += [] if promise is None else [LetterRow.promise == promise]
    found += [] if lowest is None else [left >= lowest]
    return found + ([] if highest is None else [left <= highest])
