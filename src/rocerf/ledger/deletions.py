"""Carrying out deletions: one retraining for a batch of requests, in steps that are each one transaction.

Whoever picks the work up after a crash begins at the first step that was not kept. What a step computes comes from what
the steps before it kept, so it comes out the same.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Any

from sqlalchemy import select
from sqlalchemy.orm import Session

from rocerf.errors import OptionError, TransitionError
from rocerf.ledger import erasing, rechecking
from rocerf.ledger.certificates import certificate_of, certify
from rocerf.ledger.chain import note_mark
from rocerf.ledger.core import Broken, Core, found_or_refused
from rocerf.ledger.failpoints import reached
from rocerf.ledger.jobs import DELETION, Jobs, Lease, job_of
from rocerf.ledger.models import Models, to_bytes
from rocerf.ledger.people import People
from rocerf.ledger.previews import split
from rocerf.ledger.records import ErasureCertificate, Job
from rocerf.ledger.requests import rows_named, set_state
from rocerf.ledger.states import RequestState
from rocerf.ledger.tables import BatchRow, CertificateRow, JobRow, RequestRow

#: The steps, in order; those after a crash begin where the batch stands.
STEPS = ("unlearn", "recheck", "reissue", "erase", "compact", "certify")


@dataclass(frozen=True, eq=False)
class Deletions:
    """What carries out deletion requests."""

    core: Core
    models: Models
    people: People
    jobs: Jobs

    def carry_out(
        self,
        numbers: int | Iterable[int],
        *,
        actor: str,
        broken: Broken | None = None,
        idempotency_key: str | None = None,
    ) -> Job:
        """Have approved requests carried out together, by one retraining: a job to poll, done by a worker.

        ``broken`` says what happens to letters that break, by default as the policy has it.
        """
        wanted = [numbers] if isinstance(numbers, int) else list(dict.fromkeys(numbers))
        if not wanted:
            raise OptionError("Expected deletion requests to carry out, got none; name some that are approved.")
        rule = broken or self.core.policy.broken
        with self.core.database.writing() as session:
            before = self.jobs.asked_before(session, idempotency_key)
            if before is not None:
                return job_of(before)
            rows = [found_or_refused(session, RequestRow, number, "deletion request") for number in wanted]
            for row in rows:
                if row.state != RequestState.APPROVED.code or row.batch is not None:
                    stands = row.state if row.batch is None else "being carried out"
                    raise TransitionError(
                        f"Expected approved deletion requests to carry out, got request {row.id}, which is {stands!r}; "
                        "leave it out, or have it approved first."
                    )
            batch = BatchRow(created=self.core.now(), actor=actor, broken=rule, facts={})
            session.add(batch)
            session.flush()
            for row in rows:
                row.batch = batch.id
            job = self.jobs.add(session, DELETION, {"batch": batch.id}, idempotency_key)
            facts = {"requests": wanted, "batch": batch.id, "job": job.id, "broken": rule}
            self.core.note(session, "deletion ordered", actor, facts)
            return job_of(job)

    def due(self) -> tuple[int, ...]:
        """Approved requests that must be carried out now: all that wait, once the first deadline is near."""
        query = select(RequestRow.id, RequestRow.deadline).where(
            RequestRow.state == RequestState.APPROVED.code, RequestRow.batch.is_(None)
        )
        with self.core.database.reading() as session:
            waiting = session.execute(query.order_by(RequestRow.id)).all()
        near = (self.core.now() + self.core.policy.lead).date()
        return tuple(number for number, _ in waiting) if any(day <= near for _, day in waiting) else ()

    def certificate(self, request: int) -> ErasureCertificate:
        """The certificate of a request that was carried out."""
        with self.core.database.reading() as session:
            found_or_refused(session, RequestRow, request, "deletion request")
            row = session.get(CertificateRow, request)
            if row is None:
                raise TransitionError(
                    f"Expected a request that is certified, got request {request}, which is not yet; see how it stands."
                )
            return certificate_of(row)

    def run(self, lease: Lease) -> dict[str, Any]:
        """Do all steps of a deletion that are not done yet; the facts."""
        number = int(lease.options["batch"])
        steps: dict[str, Callable[[int, Lease], None]] = {
            "unlearn": self._unlearn,
            "recheck": self._recheck,
            "reissue": self._reissue,
            "erase": self._erase,
            "compact": self._compact,
            "certify": self._certify,
        }
        with self.core.database.reading() as session:
            batch = session.get_one(BatchRow, number)
            done = batch.step
            if not requests_of(session, batch):  # they were given back when it failed
                return {"requests": 0}
        for step in STEPS[STEPS.index(done) + 1 if done else 0 :]:
            reached(f"{step}:before")
            steps[step](number, lease)
            reached(f"{step}:after")
        with self.core.database.reading() as session:
            return dict(session.get_one(BatchRow, number).facts)

    def release(self, lease: Lease) -> None:
        """Requests of a batch that failed before anything was touched wait for another one."""
        with self.core.database.writing() as session:
            batch = session.get_one(BatchRow, int(lease.options["batch"]))
            if batch.step == "":
                for row in requests_of(session, batch):
                    row.batch = None

    @contextmanager
    def _step(self, step: str, number: int, lease: Lease) -> Iterator[tuple[Session, BatchRow, dict[str, Any]]]:
        """The transaction of a step, with what it finds out to be noted; whoever lost the job meanwhile has none."""
        with self.core.database.writing() as session:
            job: JobRow = self.jobs.fence(session, lease)
            batch, facts = session.get_one(BatchRow, number), dict[str, Any]()
            yield session, batch, facts
            job.step = batch.step = step
            batch.facts = {**batch.facts, **facts}
            session.flush()
            reached(f"{step}:in-transaction")

    def _unlearn(self, number: int, lease: Lease) -> None:
        """Train anew without the rows of all requests; the new version judges from here on."""
        with self.core.database.reading() as session:
            current = self.models.current_row(session).id
            batch = session.get_one(BatchRow, number)
            named = [
                row
                for request in requests_of(session, batch)
                for row in rows_named(self.core, self.people, session, request)
            ]
        explainer = self.models.explainer(current)
        ours, elsewhere = split(explainer, list(dict.fromkeys(named)))
        new = explainer.forget(ours) if ours else explainer
        content = to_bytes(new) if ours else b""
        reached("unlearn:computed")
        with self._step("unlearn", number, lease) as (session, batch, facts):
            row = self.models.current_row(session)
            if row.id != current:
                raise TransitionError(
                    "Expected the model to stay the same while rows were forgotten, got another that was registered "
                    "meanwhile; the job is tried again, from that one."
                )
            after, sha = current, ""
            if ours:
                after = self.models.add(
                    session, new, content, label=row.label, made_from=current, rows_forgotten=len(ours)
                )
                sha = self.models.hash_of(session, after)
            batch.version_before, batch.version_after, batch.rows = current, after, len(ours)
            for request in requests_of(session, batch):
                set_state(request, RequestState.UNLEARNED)
                request.rows = len(split(explainer, rows_named(self.core, self.people, session, request))[0])
            facts.update(rows=len(ours), rows_elsewhere=len(elsewhere), version=after)
            self.core.note(session, "model unlearned", batch.actor, {"batch": number, **facts, "sha256": sha})

    def _recheck(self, number: int, lease: Lease) -> None:
        """Hold every outstanding letter against the new version."""
        with self.core.database.reading() as session:
            after = session.get_one(BatchRow, number).version_after
            assert after is not None
        self.models.explainer(after)  # loaded before the transaction begins
        with self._step("recheck", number, lease) as (session, batch, facts):
            asked = requests_of(session, batch)
            facts.update(rechecking.recheck(session, self.core, self.models, batch, [row.subject for row in asked]))
            for request in asked:
                set_state(request, RequestState.RECHECKED)
            self.core.note(session, "letters rechecked", batch.actor, {"batch": number, **facts})

    def _reissue(self, number: int, lease: Lease) -> None:
        """New letters for the broken ones, or the old ones are honoured."""
        with self.core.database.reading() as session:
            batch = session.get_one(BatchRow, number)
            asked = [row.subject for row in requests_of(session, batch)]
            prepared = rechecking.prepared(session, self.core, self.models, batch, asked)
        with self._step("reissue", number, lease) as (session, batch, facts):
            facts.update(rechecking.settle(session, self.core, batch, asked, prepared))
            self.core.note(session, "broken letters settled", batch.actor, {"batch": number, **facts})

    def _erase(self, number: int, lease: Lease) -> None:
        """Remove from the tables what is left of the people and of earlier versions."""
        with self._step("erase", number, lease) as (session, batch, facts):
            facts.update(erasing.erase(session, self.core, batch, requests_of(session, batch)))
            told = {"batch": number, **{name: facts[name] for name in ("subjects", "versions")}}
            self.core.note(session, "data erased", batch.actor, told)

    def _compact(self, number: int, lease: Lease) -> None:
        """Destroy the keys, remove copies, and write the database anew without what was deleted."""
        with self.core.database.reading() as session:
            known = dict(session.get_one(BatchRow, number).facts)
        erasing.destroy_keys(self.core, known)
        reached("compact:keys-destroyed")
        self.models.dropped([int(version) for version in known["versions"]])
        copies = erasing.remove_copies(self.core, known)
        reached("compact:copies-removed")
        erasing.compact(self.core)
        reached("compact:compacted")
        with self._step("compact", number, lease) as (session, batch, facts):
            for request in requests_of(session, batch):
                set_state(request, RequestState.PURGED)
            self.core.note(session, "traces removed", batch.actor, {"batch": number, "copies": copies})
            facts["copies"] = copies

    def _certify(self, number: int, lease: Lease) -> None:
        """Say what was removed from where, for each request."""
        with self._step("certify", number, lease) as (session, batch, _):
            for request in requests_of(session, batch):
                certify(session, self.core, batch, request)
                set_state(request, RequestState.CERTIFIED)
        with self.core.database.reading() as session:
            note_mark(session, self.core.keys)


def requests_of(session: Session, batch: BatchRow) -> list[RequestRow]:
    """The requests of a batch, in order."""
    return list(session.scalars(select(RequestRow).where(RequestRow.batch == batch.id).order_by(RequestRow.id)))
