"""Letters issued: who has one (as a number), what it promises, how much of its budget is used, and how it stands."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, replace
from datetime import date
from typing import TYPE_CHECKING, Any

from sqlalchemy import ColumnElement, and_, func, insert, select
from sqlalchemy.orm import Session, aliased

from rocerf.errors import ErasedError, OptionError, TransitionError
from rocerf.ledger import issuing
from rocerf.ledger.core import Core, check_same_body, found_or_refused
from rocerf.ledger.failpoints import reached
from rocerf.ledger.issuing import DOCUMENT, LETTER, REASON, Written, keep
from rocerf.ledger.jobs import RENEWAL, Jobs, Lease, job_of
from rocerf.ledger.models import Models
from rocerf.ledger.people import as_json
from rocerf.ledger.records import HistoryEntry, Job, LetterRecord
from rocerf.ledger.renewing import people_now, rewritten
from rocerf.ledger.states import LETTER_WAYS, OUTSTANDING, LetterState, check_letter
from rocerf.ledger.tables import BatchRow, LetterEventRow, LetterRow
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
        asked = (str(valid_until), language, options)
        once = None if idempotency_key is None else Once.of(self.core, idempotency_key, people, asked)
        if once:
            with self.core.database.reading() as session:
                before = once.before(session)
            if before:
                return before
        version = self.models.current().id
        explainer = self.models.explainer(version)
        issued = self.core.today()
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
            if once and (before := once.before(session)):  # the same call, at the same time
                return before
            if self.models.current_row(session).id != version:
                raise OptionError(
                    "Expected the model to stay the same while letters were written, got a new version; issue them "
                    "again: they would speak of a model that no longer judges."
                )
            numbers = self.core.subjects(session, names)
            subjects = [numbers[name] for name in names]
            pairs = None if once is None else once.pairs
            made_now = issuing.keep(session, self.core, made, subjects, version, once=pairs)
            self.core.note(session, "letters issued", actor, {"letters": len(made_now), "version": version})
            return _records(session, made_now)

    def get(self, number: int) -> LetterRecord:
        """The letter of this number, with the reason if it was withdrawn."""
        with self.core.database.reading() as session:
            found_or_refused(session, LetterRow, number, "letter")
            found, why = _records(session, [number])[0], self.core.get(session, LETTER, number, REASON)
            return found if why is None else replace(found, reason=why.decode())

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
            sealed = (self.core.get(session, LETTER, number, REASON) or b"").decode()
            why = {LetterState.WITHDRAWN.code: sealed}
            return tuple(
                HistoryEntry(r.at, LetterState(r.state), r.used, r.version, r.reason or why.get(r.state, ""))
                for r in rows
            )

    def withdraw(self, number: int, *, reason: str, actor: str) -> LetterRecord:
        """Take a letter back, with a reason."""
        with self.core.database.writing() as session:
            row = found_or_refused(session, LetterRow, number, "letter")
            move(session, self.core, [row], LetterState.WITHDRAWN)
            self.core.put(session, [(LETTER, number, REASON, row.subject, reason.encode())])
            self.core.note(session, "letter withdrawn", actor, {"letter": number}, subject=row.subject)
        return self.get(number)

    def expire(self, *, actor: str = "clock") -> int:
        """Letters whose last day has passed are expired; how many.

        Those whose last day has not passed after all (the clock was wrong) are again what they were before, unless a
        deletion was carried out meanwhile that was not held against them. Honoured letters are held against none.
        """
        today = self.core.today()
        alive = [LetterState.ISSUED, LetterState.RECHECKED, LetterState.BROKEN, LetterState.HONOURED]
        over = (LetterRow.valid_until < today, LetterRow.state.in_([state.code for state in alive]))
        deleted = select(BatchRow.id).where(BatchRow.version_before >= LetterRow.checked_by, BatchRow.rows > 0)
        honoured = select(LetterEventRow.id).where(
            LetterEventRow.letter == LetterRow.id, LetterEventRow.state == LetterState.HONOURED.code
        )
        still_known = ~deleted.exists() | honoured.exists()
        early = (LetterRow.valid_until >= today, LetterRow.state == LetterState.EXPIRED.code, still_known)
        with self.core.database.reading() as session:  # as a rule there are none, and nobody is kept from writing
            if session.scalar(select(LetterRow.id).where(and_(*over) | and_(*early)).limit(1)) is None:
                return 0
        with self.core.database.writing() as session:
            rows = session.scalars(select(LetterRow).where(*over)).all()
            move(session, self.core, rows, LetterState.EXPIRED)
            if rows:
                self.core.note(session, "letters expired", actor, {"letters": len(rows)})
            back = session.scalars(select(LetterRow).where(*early)).all()
            for row in back:
                move(session, self.core, [row], _before_it_expired(session, row))
            if back:
                self.core.note(session, "letters not expired after all", actor, {"letters": len(back)})
            return len(rows)

    def due(self, *, pending: int = 0) -> tuple[LetterRecord, ...]:
        """Outstanding letters for which a new one is due, before the budget is used up.

        Of a letter that deletions have used, no more than the share ``renew_at`` is left, or a single deletion; or
        ``pending`` rows (``ledger.requests.pending_rows()``: approved, and not deleted yet) are more than is left,
        and a new letter would cover them.
        """
        query = select(LetterRow.id).where(*self._due(pending)).order_by(LetterRow.id)
        with self.core.database.reading() as session:
            return _records(session, list(session.scalars(query)))

    def count_due(self, *, pending: int = 0) -> int:
        """How many letters are due, as in :meth:`due`."""
        query = select(func.count()).select_from(LetterRow).where(*self._due(pending))
        with self.core.database.reading() as session:
            return session.scalar(query) or 0

    def _due(self, pending: int) -> tuple[ColumnElement[bool], ...]:
        left = LetterRow.k - LetterRow.used
        little = (left <= LetterRow.k * self.core.policy.renew_at) | (left <= 1)
        soon = (left < pending) & (LetterRow.k >= pending)
        is_out = LetterRow.answered & LetterRow.state.in_([state.code for state in OUTSTANDING])
        return is_out, LetterRow.used > 0, little | soon

    def renew(
        self, numbers: Iterable[int] | None, *, actor: str, pending: int = 0, idempotency_key: str | None = None
    ) -> Job:
        """Have new letters made in place of these, from the people's data as they are now: a job to poll. None stands
        for all that are due, with ``pending`` as in :meth:`due`."""
        wanted = None if numbers is None else list(dict.fromkeys(numbers))
        body = self.core.print_of("renew", wanted)
        with self.core.database.writing() as session:
            before = self.jobs.asked_before(session, idempotency_key, body)
            if before is not None:
                return job_of(before)
            if wanted is None:
                wanted = list(session.scalars(select(LetterRow.id).where(*self._due(pending)).order_by(LetterRow.id)))
            for number in wanted:
                row = found_or_refused(session, LetterRow, number, "letter")
                check_letter(LetterState(row.state), LetterState.REISSUED)
            job = self.jobs.add(session, RENEWAL, {"letters": wanted, "actor": actor}, idempotency_key, body)
            self.core.note(session, "renewal ordered", actor, {"letters": len(wanted), "job": job.id})
            return job_of(job)

    def run_renewal(self, lease: Lease) -> dict[str, int]:
        """Make the new letters; those that were replaced or ended meanwhile are left alone."""
        with self.core.database.reading() as session:
            version = self.models.current_row(session).id
            people = people_now(session, self.core, _renewable(session, lease.options["letters"]))
        if not people:
            return {"reissued": 0, "without_recourse": 0, "unwritten": 0}
        found = rewritten(self.core, self.models.explainer(version), version, people)
        if found is None:
            return {"reissued": 0, "without_recourse": 0, "unwritten": len(people)}
        made, old = found
        reached("renew:computed")
        with self.core.database.writing() as session:
            self.jobs.fence(session, lease)
            rows = _renewable(session, [row.id for row in old])
            if self.models.current_row(session).id != version or len(rows) != len(old):
                raise TransitionError("Expected model and letters to stay while new ones were written; try again.")
            by_number = {row.id: row for row in rows}
            facts = replaced(session, self.core, made, [by_number[row.id] for row in old], version)
            facts["unwritten"] = len(people) - len(old)
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


def move(session: Session, core: Core, rows: Sequence[LetterRow], to: LetterState) -> None:
    """Letters go to a state, by a way that is open, and their history says so."""
    now = core.now()
    for row in rows:
        check_letter(LetterState(row.state), to)
        row.state = to.code
    events = [
        {"letter": r.id, "at": now, "state": to.code, "used": r.used, "version": r.version, "reason": ""} for r in rows
    ]
    session.flush()
    if events:
        session.execute(insert(LetterEventRow), events)


def _before_it_expired(session: Session, row: LetterRow) -> LetterState:
    """The state that an expired letter came from."""
    events = select(LetterEventRow.state).where(LetterEventRow.letter == row.id).order_by(LetterEventRow.id.desc())
    return next(state for state in map(LetterState, session.scalars(events)) if state is not LetterState.EXPIRED)


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


@dataclass(frozen=True)
class Once:
    """A batch of letters that must not be issued twice: for each, its key and a keyed hash of what it is made from."""

    pairs: tuple[tuple[str, str], ...]
    #: The key that one letter more would have had: a batch that came before with more people has it.
    beyond: str

    @classmethod
    def of(cls, core: Core, key: str, people: pd.DataFrame, asked: Sequence[Any]) -> Once:
        """The batch that came with this idempotency key."""
        values = [as_json(record).decode() for record in people.to_dict("records")]
        bodies = [core.print_of(str(name), own, *asked) for name, own in zip(people.index, values, strict=True)]
        keys = [str(core.key_hash(f"{key}\0{place}", "letters")) for place in range(len(values) + 1)]
        return cls(tuple(zip(keys[:-1], bodies, strict=True)), keys[-1])

    def before(self, session: Session) -> tuple[LetterRecord, ...]:
        """The letters that were made with this key; none if there are none, an error if they were made from others."""
        bodies, found = {**dict(self.pairs), self.beyond: ""}, list[LetterRow]()
        wanted = list(bodies)
        for start in range(0, len(wanted), 500):
            chosen = LetterRow.issue_key.in_(wanted[start : start + 500])
            found += session.scalars(select(LetterRow).where(chosen))
        for row in found:
            check_same_body(row.issue_body, bodies[row.issue_key or ""])
        if found and len(found) != len(self.pairs):
            check_same_body("fewer letters", "more")
        return _records(session, sorted(row.id for row in found))


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
