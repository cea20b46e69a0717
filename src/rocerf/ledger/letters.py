"""Letters issued: who has one (as a number), what it promises, how much of its budget is used, and how it stands."""

from __future__ import annotations

import hashlib
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from datetime import date
from typing import TYPE_CHECKING, Any

from sqlalchemy import func, insert, select
from sqlalchemy.orm import Session, aliased

from rocerf.errors import ErasedError, OptionError, TransitionError
from rocerf.ledger import issuing
from rocerf.ledger.core import Core, found_or_refused
from rocerf.ledger.failpoints import reached
from rocerf.ledger.issuing import DOCUMENT, LETTER, Written, keep
from rocerf.ledger.jobs import RENEWAL, Jobs, Lease, job_of
from rocerf.ledger.models import Models
from rocerf.ledger.records import HistoryEntry, Job, LetterRecord
from rocerf.ledger.renewing import person_now, rewritten
from rocerf.ledger.states import LETTER_WAYS, OUTSTANDING, LetterState, check_letter
from rocerf.ledger.tables import LetterEventRow, LetterRow
from rocerf.letters.letter import Letter
from rocerf.recourse.result import Status

if TYPE_CHECKING:
    import pandas as pd

_Replacing = aliased(LetterRow)


@dataclass(frozen=True, eq=False)
class Letters:
    """The letters of a ledger."""

    core: Core
    models: Models
    jobs: Jobs

    def issue(
        self,
        people: pd.DataFrame,
        *,
        valid_until: date | None,
        actor: str,
        language: str = "en",
        options: int = 1,
        idempotency_key: str | None = None,
    ) -> tuple[LetterRecord, ...]:
        """A letter for each person of a table whose index holds what they are called; in their order.

        Whoever cannot be answered gets a letter too, which says so and promises nothing. With the ``idempotency_key``
        of an earlier call, the letters of that call are given back and none is made.
        """
        names = [str(name) for name in people.index]
        if len(set(names)) != len(names):
            raise OptionError("Expected each person once, got some twice in the index; give each a row of their own.")
        keys = None if idempotency_key is None else [_issue_key(idempotency_key, place) for place in range(len(names))]
        if keys:
            with self.core.database.reading() as session:
                before = _by_keys(session, keys)
            if before:
                return before
        version = self.models.current().id
        explainer = self.models.explainer(version)
        issued = self.core.now().date()
        made = issuing.written(
            explainer,
            people,
            valid_until=valid_until,
            issued=issued,
            version=version,
            language=language,
            options=options,
        )
        with self.core.database.writing() as session:
            if keys and (before := _by_keys(session, keys)):  # the same call, at the same time
                return before
            if self.models.current_row(session).id != version:
                raise OptionError(
                    "Expected the model to stay the same while letters were written, got a new version; issue them "
                    "again: they would speak of a model that no longer judges."
                )
            numbers = self.core.subjects(session, names)
            subjects = [numbers[name] for name in names]
            made_now = issuing.keep(session, self.core, made, subjects, version, issue_keys=keys)
            self.core.note(session, "letters issued", actor, {"letters": len(made_now), "version": version})
            return _records(session, made_now)

    def get(self, number: int) -> LetterRecord:
        """The letter of this number."""
        with self.core.database.reading() as session:
            found_or_refused(session, LetterRow, number, "letter")
            return _records(session, [number])[0]

    def find(
        self,
        *,
        state: LetterState | None = None,
        person: str | None = None,
        outstanding: bool | None = None,
        after: int = 0,
        limit: int = 100,
    ) -> tuple[LetterRecord, ...]:
        """Letters by number, those after ``after``; of one state, of one person, or those still outstanding."""
        query = select(LetterRow.id).where(LetterRow.id > after).order_by(LetterRow.id).limit(limit)
        if state is not None:
            query = query.where(LetterRow.state == state.code)
        if outstanding is not None:
            is_out = LetterRow.answered & LetterRow.state.in_([one.code for one in OUTSTANDING])
            query = query.where(is_out if outstanding else ~is_out)
        with self.core.database.reading() as session:
            if person is not None:
                query = query.where(LetterRow.subject == self.core.known_subject(session, person))
            return _records(session, list(session.scalars(query)))

    def document(self, number: int) -> Letter:
        """What the person reads, opened with their key; once they are erased there is none."""
        with self.core.database.reading() as session:
            found_or_refused(session, LetterRow, number, "letter")
            content = self.core.get(session, LETTER, number, DOCUMENT)
        if content is None:
            raise ErasedError(
                f"Expected the text of letter {number}, got none: it was erased with the person's data; only how the "
                "letter stood is left."
            )
        return Letter.from_json(content.decode())

    def history(self, number: int) -> tuple[HistoryEntry, ...]:
        """What happened to a letter, in order."""
        with self.core.database.reading() as session:
            found_or_refused(session, LetterRow, number, "letter")
            rows = session.scalars(
                select(LetterEventRow).where(LetterEventRow.letter == number).order_by(LetterEventRow.id)
            )
            return tuple(HistoryEntry(r.at, LetterState(r.state), r.used, r.version, r.reason) for r in rows)

    def withdraw(self, number: int, *, reason: str, actor: str) -> LetterRecord:
        """Take a letter back, with a reason."""
        with self.core.database.writing() as session:
            row = found_or_refused(session, LetterRow, number, "letter")
            move(session, self.core, [row], LetterState.WITHDRAWN, reason=reason)
            self.core.note(session, "letter withdrawn", actor, {"letter": number}, subject=row.subject)
        return self.get(number)

    def expire(self, *, actor: str = "clock") -> int:
        """Letters whose last day has passed are expired; how many."""
        today = self.core.now().date()
        alive = [LetterState.ISSUED, LetterState.RECHECKED, LetterState.BROKEN, LetterState.HONOURED]
        query = select(LetterRow).where(
            LetterRow.valid_until < today, LetterRow.state.in_([state.code for state in alive])
        )
        with self.core.database.writing() as session:
            rows = session.scalars(query).all()
            move(session, self.core, rows, LetterState.EXPIRED)
            if rows:
                self.core.note(session, "letters expired", actor, {"letters": len(rows)})
            return len(rows)

    def due(self) -> tuple[LetterRecord, ...]:
        """Outstanding letters for which a new one is due: little of their budget is left, or nothing."""
        left = LetterRow.k - LetterRow.used
        query = select(LetterRow.id).where(
            LetterRow.answered,
            LetterRow.state.in_([state.code for state in OUTSTANDING]),
            LetterRow.used > 0,
            left <= LetterRow.k * self.core.policy.renew_at,
        )
        with self.core.database.reading() as session:
            return _records(session, list(session.scalars(query.order_by(LetterRow.id))))

    def renew(self, numbers: Iterable[int], *, actor: str, idempotency_key: str | None = None) -> Job:
        """Have new letters made in place of these, from the people's data as they are now: a job to poll."""
        wanted = list(dict.fromkeys(numbers))
        with self.core.database.writing() as session:
            before = self.jobs.asked_before(session, idempotency_key)
            if before is not None:
                return job_of(before)
            for number in wanted:
                row = found_or_refused(session, LetterRow, number, "letter")
                check_letter(LetterState(row.state), LetterState.REISSUED)
            job = self.jobs.add(session, RENEWAL, {"letters": wanted, "actor": actor}, idempotency_key)
            self.core.note(session, "renewal ordered", actor, {"letters": len(wanted), "job": job.id})
            return job_of(job)

    def run_renewal(self, lease: Lease) -> dict[str, int]:
        """Make the new letters; those that were replaced or ended meanwhile are left alone."""
        with self.core.database.reading() as session:
            version = self.models.current_row(session).id
            people = [
                person
                for row in _renewable(session, lease.options["letters"])
                if (person := person_now(session, self.core, row)) is not None
            ]
        if not people:
            return {"reissued": 0, "without_recourse": 0}
        made, old = rewritten(self.core, self.models.explainer(version), version, people)
        reached("renew:computed")
        with self.core.database.writing() as session:
            self.jobs.fence(session, lease)
            rows = _renewable(session, [row.id for row in old])
            if self.models.current_row(session).id != version or len(rows) != len(old):
                raise TransitionError("Expected model and letters to stay while new ones were written; try again.")
            by_number = {row.id: row for row in rows}
            facts = replaced(session, self.core, made, [by_number[row.id] for row in old], version)
            self.core.note(session, "letters renewed", lease.options["actor"], {"job": lease.job, **facts})
            reached("renew:in-transaction")
        return facts

    def portfolio(self) -> dict[str, Any]:
        """Counts for an overview: letters by state, and outstanding ones by promise and what is left of the budget."""
        with self.core.database.reading() as session:
            states = session.execute(select(LetterRow.state, func.count()).group_by(LetterRow.state)).all()
            left = session.execute(
                select(LetterRow.promise, LetterRow.k, LetterRow.used, func.count())
                .where(LetterRow.answered, LetterRow.state.in_([state.code for state in OUTSTANDING]))
                .group_by(LetterRow.promise, LetterRow.k, LetterRow.used)
                .order_by(LetterRow.promise, LetterRow.k, LetterRow.used)
            ).all()
        return {
            "states": {row[0]: row[1] for row in states},
            "outstanding": [
                {"promise": promise, "k": k, "remaining": k - used, "letters": count}
                for promise, k, used, count in left
            ],
        }


def move(session: Session, core: Core, rows: Sequence[LetterRow], to: LetterState, *, reason: str = "") -> None:
    """Letters go to a state, by a way that is open, and their history says so."""
    now = core.now()
    for row in rows:
        check_letter(LetterState(row.state), to)
        row.state, row.reason = to.code, reason
    events = [
        {"letter": r.id, "at": now, "state": to.code, "used": r.used, "version": r.version, "reason": reason}
        for r in rows
    ]
    session.flush()
    if events:
        session.execute(insert(LetterEventRow), events)


def replaced(session: Session, core: Core, made: Written, old: Sequence[LetterRow], version: int) -> dict[str, int]:
    """Keep written letters in place of old ones; how many, and how many of them name no change."""
    keep(session, core, made, [row.subject for row in old], version, replaces=[row.id for row in old])
    move(session, core, old, LetterState.REISSUED)
    useful = (Status.ANSWERED, Status.ALREADY_ACCEPTED)
    without = sum(letter.status not in useful for letter in made.letters)
    return {"reissued": len(old), "without_recourse": without}


def _renewable(session: Session, numbers: Sequence[int]) -> Sequence[LetterRow]:
    alive = [state.code for state in LetterState if LetterState.REISSUED in LETTER_WAYS[state]]
    query = select(LetterRow).where(LetterRow.id.in_(numbers), LetterRow.state.in_(alive))
    return session.scalars(query.order_by(LetterRow.id)).all()


def _issue_key(key: str, place: int) -> str:
    return hashlib.sha256(f"letters\0{key}\0{place}".encode()).hexdigest()


def _by_keys(session: Session, keys: Sequence[str]) -> tuple[LetterRecord, ...]:
    first = session.scalar(select(LetterRow.id).where(LetterRow.issue_key == keys[0])) if keys else None
    if first is None:
        return ()
    numbers: list[int] = []
    for start in range(0, len(keys), 500):
        numbers += session.scalars(select(LetterRow.id).where(LetterRow.issue_key.in_(keys[start : start + 500])))
    return _records(session, sorted(numbers))


def _records(session: Session, numbers: Iterable[int]) -> tuple[LetterRecord, ...]:
    wanted, found = list(numbers), {}
    for start in range(0, len(wanted), 500):
        query = (
            select(LetterRow, _Replacing.id)
            .outerjoin(_Replacing, _Replacing.replaces == LetterRow.id)
            .where(LetterRow.id.in_(wanted[start : start + 500]))
        )
        found.update({row.id: record_of(row, replaced_by) for row, replaced_by in session.execute(query)})
    return tuple(found[number] for number in wanted)


def record_of(row: LetterRow, replaced_by: int | None) -> LetterRecord:
    """The row as a record."""
    return LetterRecord(
        id=row.id,
        subject=row.subject,
        version=row.version,
        state=LetterState(row.state),
        answered=row.answered,
        promise=row.promise,
        proven=row.proven,
        k=row.k,
        used=row.used,
        margin=row.margin,
        options=row.options,
        language=row.language,
        issued=row.issued,
        valid_until=row.valid_until,
        replaces=row.replaces,
        replaced_by=replaced_by,
        reason=row.reason,
    )
