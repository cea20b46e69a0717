"""The audit trail: who did what when, in a chain that shows every change to it."""

from __future__ import annotations

import json
from dataclasses import dataclass

from sqlalchemy import select

from rocerf.ledger import chain
from rocerf.ledger.core import Core
from rocerf.ledger.records import AuditEvent, ChainHead, ChainReport
from rocerf.ledger.tables import EventRow


@dataclass(frozen=True, eq=False)
class Audit:
    """The audit trail of a ledger."""

    core: Core

    def events(
        self, *, after: int = 0, limit: int = 100, kind: str | None = None, subject: int | None = None
    ) -> tuple[AuditEvent, ...]:
        """Events in their order, those after ``after``; they name no person."""
        query = select(EventRow).where(EventRow.seq > after).order_by(EventRow.seq).limit(limit)
        if kind is not None:
            query = query.where(EventRow.kind == kind)
        if subject is not None:
            query = query.where(EventRow.subject == subject)
        with self.core.database.reading() as session:
            return tuple(event_of(row) for row in session.scalars(query))

    def note(self, kind: str, *, actor: str, facts: dict[str, str | int | float | bool | None] | None = None) -> int:
        """Add an event of the caller's own (somebody signed in, say); ``facts`` must name no data subject."""
        with self.core.database.writing() as session:
            return self.core.note(session, kind, actor, dict(facts or {}))

    def head(self) -> ChainHead:
        """The end of the chain: note it elsewhere from time to time."""
        with self.core.database.reading() as session:
            return chain.head_of(session)

    def verify(self, anchor: ChainHead | None = None) -> ChainReport:
        """Go through the whole chain; with an end that was noted elsewhere before, nothing up to it can be forged."""
        with self.core.database.reading() as session:
            report = chain.verify(session, self.core.keys, anchor)
        if report.whole:
            self.core.keys.set_mark(report.head.seq, report.head.hash)
        return report


def event_of(row: EventRow) -> AuditEvent:
    """The row as a record."""
    return AuditEvent(
        seq=row.seq,
        at=row.at,
        kind=row.kind,
        actor=row.actor,
        subject=row.subject,
        facts=json.loads(row.facts),
        sealed=row.sealed is not None,
        hash=row.hash,
    )
