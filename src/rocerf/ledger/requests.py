"""Deletion requests: from the day one is received to its approval. What carries them out is in ``deletions``."""

from __future__ import annotations

import json
import unicodedata
from collections.abc import Callable, Iterable
from dataclasses import dataclass, field
from datetime import datetime
from typing import Any

from sqlalchemy import select
from sqlalchemy.orm import Session

from rocerf.errors import OptionError, TransitionError
from rocerf.ledger import deadlines, previews
from rocerf.ledger.core import Core, check_same_body, found_or_refused
from rocerf.ledger.models import Models
from rocerf.ledger.people import People, plain
from rocerf.ledger.records import DeletionRequest, Preview
from rocerf.ledger.states import REQUEST_WAYS, RequestState, check_request
from rocerf.ledger.tables import CertificateRow, RequestRow
from rocerf.ledger.written import as_written

#: Kind and parts of what is kept of a request: the rows named with it, the last reason given, where it came from.
REQUEST, NAMED, REASON, SOURCE = "request", "rows", "reason", "source"

#: Ways in that name nobody; any other text about where a request came from is kept under the person's key.
SOURCES = ("page", "hook", "demo", "policy")


#: States of requests that are still to be carried out: those that can still be refused.
BEFORE_DELETION = tuple(one.code for one in RequestState if RequestState.REFUSED in REQUEST_WAYS[one])

#: Ways to verify who somebody is, that say nothing about them.
EVIDENCE = ("signed_in", "document", "in_person", "representative")


@dataclass(frozen=True, eq=False)
class Requests:
    """The deletion requests of a ledger."""

    core: Core
    models: Models
    people: People
    #: Of the rows that were counted last, how many; by a number that says nothing of them.
    _counted: dict[int, int] = field(default_factory=dict, repr=False)

    def receive(
        self,
        person: str,
        *,
        actor: str,
        rows: Iterable[Any] | None = None,
        received: datetime | None = None,
        source: str = "",
        idempotency_key: str | None = None,
        fingerprint: str | None = None,
    ) -> DeletionRequest:
        """Take a request in. ``rows`` are ids of training rows, beside those already assigned to the person.

        The deadline runs from ``received``, now by default. With the ``idempotency_key`` of an earlier call, that
        call's request is given back, if it was about the same (or had the same ``fingerprint``, where one is given);
        and so is the one that is open, where somebody asks again.
        """
        key = self.core.key_hash(idempotency_key, "request")
        named = None if rows is None else json.dumps([plain(row) for row in rows]).encode()
        told = (named or b"").decode(), None if received is None else received.isoformat(), source
        body = self.core.print_of("receive", person, *(told if fingerprint is None else [fingerprint]))
        with self.core.database.writing() as session:
            before = None if key is None else session.scalar(select(RequestRow).where(RequestRow.idempotency == key))
            if before is not None:
                check_same_body(before.idempotency_body, body)
                return request_of(session, self.core, before)
            subject = self.core.subject(session, person)
            already = self._open(session, subject)
            if already is not None:
                return self._asked_again(session, already, named, actor)
            moment = self.core.now() if received is None else received
            row = RequestRow(
                subject=subject,
                state=RequestState.RECEIVED.code,
                received=moment,
                deadline=deadlines.deadline(moment, zone=self.core.zone),
                source=source if source in SOURCES else "",
                idempotency=key,
                idempotency_body=None if key is None else body,
            )
            session.add(row)
            session.flush()
            if named is not None:
                self.core.put(session, [(REQUEST, row.id, NAMED, subject, named)])
            if source not in ("", *SOURCES):
                self.core.put(session, [(REQUEST, row.id, SOURCE, subject, source.encode())])
            facts = {"request": row.id, "deadline": row.deadline.isoformat(), "source": row.source}
            private = f"{person}\n".encode() + (named or b"")
            self.core.note(session, "request received", actor, facts, subject=subject, private=private)
            return request_of(session, self.core, row)

    def verify_identity(
        self, number: int, *, actor: str, how: str = "", colleague: str | None = None
    ) -> DeletionRequest:
        """The person is who they say they are.

        ``how`` is one of :data:`EVIDENCE`, which the audit trail shows; any other text may name somebody, so it is kept
        under the person's key. ``colleague`` is the human being behind the ``actor`` (who may have several tokens), by
        default the actor; under the four-eyes rule somebody else must approve.
        """
        by = self._colleague(actor, colleague)
        known = how in EVIDENCE
        facts, private = {"how": how if known else ""}, "" if known else how
        to = RequestState.IDENTITY_VERIFIED
        return self._moved(number, to, actor, facts, private=private, verified_by=actor, verified_person=by)

    def preview(self, numbers: int | Iterable[int], *, actor: str, keep: bool = True) -> Preview:
        """What carrying out these requests together would do to outstanding letters; nothing else is touched.

        Those whose identity is verified become previewed, unless ``keep`` is false.
        """
        wanted = [numbers] if isinstance(numbers, int) else list(dict.fromkeys(numbers))
        if keep:
            with self.core.database.reading() as session:
                asked = self._still_to_come(session, wanted)
        preview = previews.preview(self.core, self.models, self.people, wanted)
        if keep:
            with self.core.database.writing() as session:
                if self._still_to_come(session, wanted) != asked:
                    raise TransitionError(
                        "Expected the rows of a request to stay while it was previewed, got others; make the preview "
                        "again: what is approved is what was looked at."
                    )
                for row in self._rows(session, wanted):
                    if row.state in (RequestState.IDENTITY_VERIFIED.code, RequestState.PREVIEWED.code):
                        set_state(row, RequestState.PREVIEWED)
                    row.preview = preview.kept()
                self.core.note(session, "deletion previewed", actor, preview.summary())
        return preview

    def _still_to_come(self, session: Session, numbers: Iterable[int]) -> list[tuple[Any, ...]]:
        """The rows that each of these requests is about, which are all still to be carried out."""
        rows = self._rows(session, numbers)
        for row in rows:
            _check_before_deletion(row)
        return [rows_named(self.core, self.people, session, row) for row in rows]

    def approve(self, number: int, *, actor: str, colleague: str | None = None) -> DeletionRequest:
        """The deletion may be carried out, once its preview was seen; ``colleague`` as in :meth:`verify_identity`."""
        by = self._colleague(actor, colleague)

        def two_people(row: RequestRow) -> None:
            if not self.core.policy.four_eyes:
                return
            if not row.verified_person:
                raise TransitionError(
                    "Expected to know who verified the identity (four-eyes rule), got a request from before people "
                    "were noted; have the identity verified again, with a token that belongs to a named person."
                )
            if same_colleague(row.verified_person, by) or row.verified_by == actor:
                raise TransitionError(
                    "Expected two people for a deletion (four-eyes rule), got the one who verified the identity as the "
                    "one who approves; ask somebody else to approve."
                )

        approved = {"approved_by": actor, "approved_person": by}
        return self._moved(number, RequestState.APPROVED, actor, {}, check=two_people, **approved)

    def _colleague(self, actor: str, given: str | None) -> str:
        """The human being behind an actor; under the four-eyes rule there must be one."""
        by = actor if given is None else given
        if self.core.policy.four_eyes and not by.strip():
            raise TransitionError(
                "Expected a token that belongs to a named person (four-eyes rule), got one that belongs to nobody; ask "
                "an administrator for a token in your name."
            )
        return by

    def refuse(self, number: int, *, reason: str, actor: str) -> DeletionRequest:
        """Refuse a request, with the reason that the person is told."""
        return self._moved(number, RequestState.REFUSED, actor, {}, reason=_given(reason))

    def hold(self, number: int, *, reason: str, actor: str) -> DeletionRequest:
        """Put a request on hold, with a reason; its deadline runs on."""
        return self._moved(number, RequestState.ON_HOLD, actor, {}, reason=_given(reason))

    def resume(self, number: int, *, actor: str) -> DeletionRequest:
        """Take a request up again where it was put on hold."""
        with self.core.database.reading() as session:
            row = found_or_refused(session, RequestRow, number, "deletion request")
            if row.held_from is None:
                raise TransitionError(
                    f"Expected a deletion request that is on hold, got one that is {row.state!r}; nothing is to resume."
                )
            back = RequestState(row.held_from)
        return self._moved(number, back, actor, {}, reason="")

    def extend(self, number: int, *, reason: str, actor: str) -> DeletionRequest:
        """Extend the deadline by two months; the person is told why, within the first month."""
        with self.core.database.writing() as session:
            row: RequestRow = found_or_refused(session, RequestRow, number, "deletion request")
            if not request_of(session, self.core, row).open:
                raise TransitionError(f"Expected an open deletion request, got one that is {row.state!r}.")
            if not row.extended:
                deadlines.check_extendable(row.received, self.core.now(), self.core.zone)
                row.extended = True
                row.deadline = deadlines.deadline(row.received, extended=True, zone=self.core.zone)
                self._keep_reason(session, row, _given(reason))
                facts = {"request": number, "deadline": row.deadline.isoformat()}
                self.core.note(session, "deadline extended", actor, facts, subject=row.subject, private=reason.encode())
            return request_of(session, self.core, row)

    def get(self, number: int) -> DeletionRequest:
        """The request of this number."""
        with self.core.database.reading() as session:
            return request_of(session, self.core, found_or_refused(session, RequestRow, number, "deletion request"))

    def find(
        self, *, state: RequestState | None = None, person: str | None = None, after: int = 0, limit: int = 100
    ) -> tuple[DeletionRequest, ...]:
        """Requests by number, those after ``after``."""
        query = select(RequestRow).where(RequestRow.id > after).order_by(RequestRow.id).limit(limit)
        if state is not None:
            query = query.where(RequestRow.state == state.code)
        with self.core.database.reading() as session:
            if person is not None:
                query = query.where(RequestRow.subject == self.core.known_subject(session, person))
            return tuple(request_of(session, self.core, row) for row in session.scalars(query).all())

    def by_deadline(self, limit: int = 100, offset: int = 0) -> tuple[DeletionRequest, ...]:
        """Open requests, the most urgent first."""
        closed = [state.code for state in (RequestState.REFUSED, RequestState.CERTIFIED)]
        query = select(RequestRow).where(RequestRow.state.not_in(closed))
        query = query.order_by(RequestRow.deadline, RequestRow.id).limit(limit).offset(offset)
        with self.core.database.reading() as session:
            return tuple(request_of(session, self.core, row) for row in session.scalars(query).all())

    def pending_rows(self) -> int:
        """How many rows of the current model the approved requests will delete that are not carried out yet."""
        query = select(RequestRow).where(RequestRow.state == RequestState.APPROVED.code)
        with self.core.database.reading() as session:
            rows = session.scalars(query).all()
            if not rows:
                return 0
            version = self.models.current_row(session).id
            named = list(dict.fromkeys(i for row in rows for i in rows_named(self.core, self.people, session, row)))
            key = hash((version, *map(as_written, named)))
            found = self._counted.get(key)
            if found is None:  # whoever looks at the portfolio asks again and again
                found = len(previews.split(self.models.ids(session, version), named)[0])
                self._counted.clear()
                self._counted[key] = found
            return found

    def _rows(self, session: Session, numbers: Iterable[int]) -> list[RequestRow]:
        return [found_or_refused(session, RequestRow, number, "deletion request") for number in numbers]

    def _open(self, session: Session, subject: int) -> RequestRow | None:
        closed = [state.code for state in (RequestState.REFUSED, RequestState.CERTIFIED)]
        query = select(RequestRow).where(RequestRow.subject == subject, RequestRow.state.not_in(closed))
        return session.scalar(query.order_by(RequestRow.id).limit(1))

    def _asked_again(self, session: Session, row: RequestRow, named: bytes | None, actor: str) -> DeletionRequest:
        """A person asks once more: the request that is open stands for both, with the rows of both."""
        known = rows_named(self.core, self.people, session, row)
        rows = list(dict.fromkeys((*known, *json.loads(named or b"[]"))))
        if len(rows) > len(known):
            if row.state not in (RequestState.RECEIVED.code, RequestState.IDENTITY_VERIFIED.code):
                raise TransitionError(
                    "Expected further rows of a person before their request was previewed, got some afterwards; refuse "
                    "the open request, or wait until it is certified, and ask again."
                )
            self.core.put(session, [(REQUEST, row.id, NAMED, row.subject, json.dumps(rows).encode())])
        self.core.note(session, "request repeated", actor, {"request": row.id}, subject=row.subject)
        return request_of(session, self.core, row)

    def _moved(
        self,
        number: int,
        to: RequestState,
        actor: str,
        facts: dict[str, Any],
        *,
        private: str = "",
        reason: str | None = None,
        check: Callable[[RequestRow], None] = lambda row: None,
        **values: str,
    ) -> DeletionRequest:
        with self.core.database.writing() as session:
            row: RequestRow = found_or_refused(session, RequestRow, number, "deletion request")
            check(row)
            held_from = row.state if to is RequestState.ON_HOLD else None
            if row.state == RequestState.ON_HOLD.code and to is not RequestState.REFUSED and to.code != row.held_from:
                raise TransitionError(
                    f"Expected a request on hold to go back to {row.held_from!r}, got {to.code!r}; resume it first."
                )
            if row.batch is not None and to in (RequestState.REFUSED, RequestState.ON_HOLD):
                raise TransitionError(
                    "Expected a request that is not being carried out, got one that is; it can no longer be stopped."
                )
            set_state(row, to)
            row.held_from = held_from
            for name, value in values.items():
                setattr(row, name, value)
            if reason is not None:
                self._keep_reason(session, row, reason)
            sealed = (reason or private).encode() or None
            told = {"request": number, **{name: fact for name, fact in facts.items() if fact}}
            self.core.note(session, f"request {to.code}", actor, told, subject=row.subject, private=sealed)
            return request_of(session, self.core, row)

    def _keep_reason(self, session: Session, row: RequestRow, reason: str) -> None:
        """The reason that the person is told, under their key."""
        row.reason = ""
        self.core.put(session, [(REQUEST, row.id, REASON, row.subject, reason.encode())])


def same_colleague(one: str, other: str) -> bool:
    """Whether two names are one person's, as far as names can tell: written alike but for case and spaces.

    >>> same_colleague("Ada  Lovelace", "ada lovelace "), same_colleague("Ada Lovelace", "Ada King")
    (True, False)
    """

    def plain_name(name: str) -> str:
        return " ".join(unicodedata.normalize("NFKC", name).casefold().split())

    return plain_name(one) == plain_name(other)


def set_state(row: RequestRow, to: RequestState) -> None:
    """A request goes to a state, by a way that is open."""
    check_request(RequestState(row.state), to)
    row.state = to.code


def rows_named(core: Core, people: People, session: Session, row: RequestRow) -> tuple[Any, ...]:
    """Ids of all rows that a request is about: assigned to the person, and named with the request; each once."""
    named = core.get(session, REQUEST, row.id, NAMED)
    return tuple(dict.fromkeys((*people.rows(session, row.subject), *json.loads(named or b"[]"))))


def request_of(session: Session, core: Core, row: RequestRow) -> DeletionRequest:
    """The row as a record, with the last reason given; once the person is erased there is none."""
    session.flush()
    reason, source = (core.get(session, REQUEST, row.id, part) for part in (REASON, SOURCE))
    certificate = session.scalar(select(CertificateRow.number).where(CertificateRow.request == row.id))
    return DeletionRequest(
        id=row.id,
        subject=row.subject,
        state=RequestState(row.state),
        held_from=None if row.held_from is None else RequestState(row.held_from),
        received=row.received,
        deadline=row.deadline,
        extended=bool(row.extended),
        source=row.source or (source or b"").decode(),
        reason=row.reason or (reason or b"").decode(),
        verified_by=row.verified_by or "",
        approved_by=row.approved_by or "",
        verified_person=row.verified_person or "",
        batch=row.batch,
        certificate=certificate,
    )


def _check_before_deletion(row: RequestRow) -> None:
    """What was looked at before a deletion stays noted: no later preview, of a model without the rows, replaces it."""
    if row.state not in BEFORE_DELETION:
        raise TransitionError(
            f"Expected a deletion request that is still to be carried out, got request {row.id}, which is "
            f"{row.state!r}; there is nothing to preview any more."
        )


def _given(reason: str) -> str:
    if not reason.strip():
        raise OptionError("Expected a reason that the person can be told, got none; write one.")
    return reason
