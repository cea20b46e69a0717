"""Long work with leases: whoever holds a job's token may keep what it did; whoever is silent too long loses it.

Nothing is done twice, whatever clocks say: the token is looked at in the very transaction that keeps a step. Deletions
are carried out one after the other, in the order in which they were asked for, because each begins at the model that
the one before left.
"""

from __future__ import annotations

import secrets
from dataclasses import dataclass
from datetime import timedelta
from typing import Any

from sqlalchemy import and_, or_, select
from sqlalchemy.orm import Session, aliased

from rocerf.errors import LeaseLostError
from rocerf.ledger.core import Core, check_same_body, found_or_refused
from rocerf.ledger.records import Job
from rocerf.ledger.states import JobState, check_job
from rocerf.ledger.tables import JobRow

#: The kinds of work that there are.
DELETION, RENEWAL = "deletion", "renewal"

_Earlier = aliased(JobRow)


@dataclass(frozen=True)
class Lease:
    """The right to work on a job, and what the work is."""

    job: int
    kind: str
    token: str
    options: dict[str, Any]
    #: Which attempt this is, from 1.
    attempt: int = 1


@dataclass(frozen=True, eq=False)
class Jobs:
    """The jobs of a ledger."""

    core: Core

    def get(self, number: int) -> Job:
        """The job of this number."""
        with self.core.database.reading() as session:
            return job_of(found_or_refused(session, JobRow, number, "job"))

    def find(self, *, state: JobState | None = None, after: int = 0, limit: int = 100) -> tuple[Job, ...]:
        """Jobs by number, those after ``after``."""
        query = select(JobRow).where(JobRow.id > after).order_by(JobRow.id).limit(limit)
        if state is not None:
            query = query.where(JobRow.state == state.code)
        with self.core.database.reading() as session:
            return tuple(map(job_of, session.scalars(query)))

    def retry(self, number: int, *, actor: str) -> Job:
        """Try a job again that failed; it goes on where it stopped."""
        with self.core.database.writing() as session:
            row: JobRow = found_or_refused(session, JobRow, number, "job")
            check_job(JobState(row.state), JobState.WAITING)
            row.state, row.attempts, row.error, row.not_before = JobState.WAITING.code, 0, "", self.core.now()
            self.core.note(session, "job retried", actor, {"job": number})
            return job_of(row)

    def add(
        self, session: Session, kind: str, options: dict[str, Any], key: str | None = None, body: str | None = None
    ) -> JobRow:
        """A new job, in this transaction."""
        now = self.core.now()
        row = JobRow(
            kind=kind,
            options=options,
            state=JobState.WAITING.code,
            created=now,
            not_before=now,
            idempotency=self.core.key_hash(key, "job"),
            idempotency_body=None if key is None else body,
        )
        session.add(row)
        session.flush()
        return row

    def asked_before(self, session: Session, key: str | None, body: str) -> JobRow | None:
        """The job that was made with this idempotency key, which must be for the same."""
        hashed = self.core.key_hash(key, "job")
        found = None if hashed is None else session.scalar(select(JobRow).where(JobRow.idempotency == hashed))
        if found is not None:
            check_same_body(found.idempotency_body, body)
        return found

    def claim(self, worker: str) -> Lease | None:
        """The next job to be done, now this worker's; None if there is none."""
        now, lease = self.core.now(), self.core.policy.lease
        silent = or_(JobRow.leased_until < now, JobRow.leased_until > now + 2 * lease)  # or the clock went back
        ready = or_(
            and_(JobRow.state == JobState.WAITING.code, JobRow.not_before <= now),
            # A wait that is longer than we ever set: the clock went back.
            and_(JobRow.state == JobState.WAITING.code, JobRow.not_before > now + MOST_WAIT * 2),
            and_(JobRow.state == JobState.RUNNING.code, silent),
        )
        unfinished = or_(
            _Earlier.state.in_([JobState.WAITING.code, JobState.RUNNING.code]),
            and_(_Earlier.state == JobState.FAILED.code, _Earlier.step != ""),
        )
        before = select(_Earlier.id).where(_Earlier.kind == DELETION, _Earlier.id < JobRow.id, unfinished).exists()
        query = select(JobRow).where(ready, or_(JobRow.kind != DELETION, ~before)).order_by(JobRow.id).limit(1)
        with self.core.database.writing(alone=False) as session:
            row = session.scalar(query.with_for_update(skip_locked=True, of=JobRow))
            if row is None:
                return None
            check_job(JobState(row.state), JobState.RUNNING)
            row.state, row.worker, row.token = JobState.RUNNING.code, worker, secrets.token_hex(16)
            row.attempts, row.leased_until = row.attempts + 1, now + lease
            return Lease(row.id, row.kind, row.token, dict(row.options), row.attempts)

    def heartbeat(self, lease: Lease) -> None:
        """Say that the work goes on."""
        with self.core.database.writing(alone=False) as session:
            self.fence(session, lease).leased_until = self.core.now() + self.core.policy.lease

    def fence(self, session: Session, lease: Lease) -> JobRow:
        """The job's row, if it is still ours; in the transaction that keeps what was done."""
        row = session.get(JobRow, lease.job, with_for_update=True, populate_existing=True)
        if row is None or row.token != lease.token or row.state != JobState.RUNNING.code:
            raise LeaseLostError(
                f"Expected job {lease.job} to be still this worker's, got one that another worker has taken over; "
                "nothing of this step was kept here."
            )
        return row

    def finish(self, lease: Lease, result: dict[str, Any]) -> None:
        """The work is done."""
        with self.core.database.writing(alone=False) as session:
            row = self.fence(session, lease)
            check_job(JobState(row.state), JobState.DONE)
            row.state, row.finished, row.result, row.token = JobState.DONE.code, self.core.now(), result, ""
            row.error = ""  # what once was in the way

    def postpone(self, lease: Lease, why: str) -> Job:
        """The work waits for somebody outside: it is tried again every while, however often; ``why`` says for what."""
        with self.core.database.writing(alone=False) as session:
            row = self.fence(session, lease)
            check_job(JobState(row.state), JobState.WAITING)
            row.state, row.error, row.token, row.attempts = JobState.WAITING.code, why, "", 0
            row.not_before = self.core.now() + POSTPONED
            return job_of(row)

    def give_up(self, lease: Lease, error: str, *, for_good: bool) -> Job:
        """The work failed; it is tried again after a while, unless it was tried often enough or never can succeed."""
        with self.core.database.writing(alone=False) as session:
            row = self.fence(session, lease)
            last = for_good or row.attempts >= self.core.policy.tries
            to = JobState.FAILED if last else JobState.WAITING
            check_job(JobState(row.state), to)
            row.state, row.error, row.token = to.code, error, ""
            row.not_before = self.core.now() + min(MOST_WAIT, timedelta(seconds=2**row.attempts))
            row.finished = self.core.now() if last else None
            return job_of(row)


#: The longest wait before a job is tried again; and how long one waits for somebody outside.
MOST_WAIT, POSTPONED = timedelta(minutes=5), timedelta(minutes=1)


def job_of(row: JobRow) -> Job:
    """The row as a record."""
    return Job(
        id=row.id,
        kind=row.kind,
        state=JobState(row.state),
        step=row.step or "",
        attempts=row.attempts or 0,
        created=row.created,
        not_before=row.not_before,
        finished=row.finished,
        error=row.error or "",
        result=dict(row.result or {}),
    )
