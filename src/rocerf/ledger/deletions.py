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
from rocerf.ledger import erased, erasing, rechecking
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
from rocerf.ledger.source_checks import source_check
from rocerf.ledger.states import RequestState, VersionState
from rocerf.ledger.tables import BatchRow, CertificateRow, JobRow, RequestRow, VersionRow

#: The steps, in order; those after a crash begin where the batch stands.
STEPS = ("unlearn", "recheck", "reissue", "source", "erase", "compact", "certify")


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
        rule, body = broken or self.core.policy.broken, self.core.print_of("carry out", wanted, broken)
        with self.core.database.writing() as session:
            before = self.jobs.asked_before(session, idempotency_key, body)
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
            job = self.jobs.add(session, DELETION, {"batch": batch.id}, idempotency_key, body)
            facts = {"requests": wanted, "batch": batch.id, "job": job.id, "broken": rule}
            self.core.note(session, "deletion ordered", actor, facts)
            return job_of(job)

    def due(self) -> tuple[int, ...]:
        """Approved requests that must be carried out now: all that wait, once the first deadline is near.

        Those that could not be carried out together (without all their rows there is no model, say) are due one by
        one; one that could not be alone is not ordered again by itself while the model is the same: people decide.
        """
        query = select(RequestRow.id, RequestRow.deadline).where(
            RequestRow.state == RequestState.APPROVED.code, RequestRow.batch.is_(None)
        )
        with self.core.database.reading() as session:
            waiting = session.execute(query.order_by(RequestRow.id)).all()
            together = self._given_back(session) if waiting else {}
        near = self.core.day(self.core.now() + self.core.policy.lead)
        if not any(day <= near for _, day in waiting):
            return ()
        fresh = tuple(number for number, _ in waiting if number not in together)
        return fresh or tuple(number for number, _ in waiting if together[number] > 1)[:1]

    def _given_back(self, session: Session) -> dict[int, int]:
        """Requests that could not be carried out with this model, and in how large a batch at the least."""
        current, found = _current(session), dict[int, int]()
        for facts in session.scalars(select(BatchRow.facts).where(BatchRow.step == "")):
            if facts.get("model") == current:
                numbers = facts.get("given_back", [])
                found.update({number: min(len(numbers), found.get(number, len(numbers))) for number in numbers})
        return found

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
            "source": self._source,
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
        """Requests of a batch that failed before anything was touched wait for another one; that they did is noted."""
        with self.core.database.writing() as session:
            batch = session.get_one(BatchRow, int(lease.options["batch"]))
            if batch.step == "":
                rows, model = requests_of(session, batch), _current(session)
                batch.facts = {**batch.facts, "given_back": [row.id for row in rows], "model": model}
                for row in rows:
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
        own = explainer.model.train.ids.tolist()
        ours, elsewhere = split(own, list(dict.fromkeys(named)))
        new = explainer.forget(ours) if ours else explainer
        content = to_bytes(new, self.models.rows) if ours else b""
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
            by_request = dict[int, tuple[Any, ...]]()
            for request in requests_of(session, batch):
                set_state(request, RequestState.UNLEARNED)
                by_request[request.id] = rows_named(self.core, self.people, session, request)
                request.rows = len(split(own, by_request[request.id])[0])
            # From here on nobody registers a model that has them: also rows that only other models had.
            hashes = {str(n): erased.note(session, self.core, ids) for n, ids in by_request.items()}
            facts.update(rows=len(ours), rows_elsewhere=len(elsewhere), version=after)
            self.core.note(session, "model unlearned", batch.actor, {"batch": number, **facts, "sha256": sha})
            facts["row_hashes"] = hashes

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

    def _source(self, number: int, lease: Lease) -> None:
        """Where training rows stay with the user: they must be gone there, or masked, before their ids are erased."""
        with self.core.database.reading() as session:
            batch = session.get_one(BatchRow, number)
            checked = source_check(session, self.core, self.models, self.people, batch, requests_of(session, batch))
        with self._step("source", number, lease) as (session, batch, facts):
            if checked is not None:
                facts["source"] = checked
                told = {"row_source": checked["source"], "sha256": checked["sha256"]}
                self.core.note(session, "source checked", batch.actor, {"batch": number, **told})

    def _erase(self, number: int, lease: Lease) -> None:
        """Remove from the tables what is left of the people and of earlier versions."""
        with self.core.database.reading() as session:
            batch = session.get_one(BatchRow, number)
            asked = requests_of(session, batch)
            shared = erasing.shared_notes(session, self.core, self.models, self.people, batch, asked)
        with self._step("erase", number, lease) as (session, batch, facts):
            facts.update(erasing.erase(session, self.core, batch, requests_of(session, batch), shared))
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


def _current(session: Session) -> int | None:
    """The number of the version that judges people, if there is one."""
    return session.scalar(select(VersionRow.id).where(VersionRow.state == VersionState.CURRENT.code))


def requests_of(session: Session, batch: BatchRow) -> list[RequestRow]:
    """The requests of a batch, in order."""
    return list(session.scalars(select(RequestRow).where(RequestRow.batch == batch.id).order_by(RequestRow.id)))
