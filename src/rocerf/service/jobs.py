"""Routes about long work: asked for here, done by a worker, polled until it is done; and the certificate at its end."""

from __future__ import annotations

import json
from typing import Annotated, Any, Literal

from fastapi import Response
from pydantic import BaseModel, ConfigDict, Field

from rocerf.ledger import JobState
from rocerf.service.deletions import Several
from rocerf.service.fields import After, Column, IdempotencyKey, Limit, Number, Person, RowId, Value
from rocerf.service.guard import Caller, guarded_router
from rocerf.service.ledgers import TheLedger, own_key
from rocerf.service.permissions import PEOPLE
from rocerf.service.problems import documented
from rocerf.service.views import SHA256, JobView

router = guarded_router(prefix="/api/v1", tags=["jobs"])

_PROBLEMS = documented(401, 403, 404, 409, 413, 422, 429, 503)


class CarryOut(Several):
    """Approved requests, to be carried out by one retraining."""

    broken: Literal["reissue", "honour", "replace"] | None = Field(
        default=None, description="What happens to letters that break; as the policy has it by default."
    )


class Renewal(BaseModel):
    """Letters of whose budget little is left."""

    model_config = ConfigDict(extra="forbid")

    letters: list[Annotated[int, Field(ge=1, le=2**31 - 1)]] = Field(
        default_factory=list, max_length=10_000, description="None: all that are due.", examples=[[1, 2]]
    )


class Jobs(BaseModel):
    """Jobs, by number."""

    jobs: list[JobView]


class Rows(BaseModel):
    """Which training rows are whose."""

    model_config = ConfigDict(extra="forbid")

    rows: dict[Person, list[RowId]] = Field(min_length=1, max_length=10_000, examples=[{"customer-17": [4, 311]}])


class DataNow(BaseModel):
    """A person's data as they are now, in the model's own columns."""

    model_config = ConfigDict(extra="forbid")

    person: Person
    values: dict[Column, Value] = Field(min_length=1, max_length=2000, examples=[{"duration": 24, "housing": "own"}])


class Counted(BaseModel):
    """How many."""

    people: int


class Certificate(BaseModel):
    """What was removed from where, for one request; it names nobody."""

    model_config = ConfigDict(extra="allow")

    number: str = Field(examples=["00ee4d0baa9abd89"])
    request: int
    subject: int | None = Field(examples=[7])
    rows: int
    removed: dict[str, int] = Field(
        examples=[{"keys": 2, "payloads": 12, "mapping": 1, "letters": 1, "versions": 1, "copies": 0}]
    )
    beyond_reach: list[str] = Field(examples=[["key_backups", "letters_sent", "source", "disk", "memory"]])
    chain: dict[str, Any] = Field(examples=[{"seq": 18, "hash": SHA256}])


@router.post("/deletions/carry-out", status_code=202, responses=_PROBLEMS)
def carry_out(
    ledger: TheLedger, caller: Caller, response: Response, wanted: CarryOut, key: IdempotencyKey = None
) -> JobView:
    """Have approved requests carried out together now: unlearned, letters rechecked and reissued, purged, certified.

    Without this, workers carry out what is approved when the first deadline comes near.
    """
    job = ledger.deletions.carry_out(
        wanted.requests, actor=caller.actor, broken=wanted.broken, idempotency_key=own_key(caller, key)
    )
    response.headers["Location"] = f"/api/v1/jobs/{job.id}"
    return JobView.of(job)


@router.get("/deletions/{number}/certificate", responses=documented(401, 403, 404, 409, 422, 429, 503))
def certificate(ledger: TheLedger, caller: Caller, number: Number) -> Certificate:
    """The certificate of a request that was carried out."""
    document = json.loads(ledger.deletions.certificate(number).to_json())
    return Certificate(**(document if caller.role in PEOPLE else {**document, "subject": None}))


@router.post("/letters/renew", status_code=202, responses=_PROBLEMS)
def renew(
    ledger: TheLedger, caller: Caller, response: Response, wanted: Renewal, key: IdempotencyKey = None
) -> JobView:
    """New letters in place of those of whose budget little is left."""
    pending = ledger.requests.pending_rows() if not wanted.letters else 0
    job = ledger.letters.renew(
        wanted.letters or None, actor=caller.actor, pending=pending, idempotency_key=own_key(caller, key)
    )
    response.headers["Location"] = f"/api/v1/jobs/{job.id}"
    return JobView.of(job)


@router.get("/jobs", responses=documented(401, 403, 422, 429, 503))
def jobs(ledger: TheLedger, after: After = 0, limit: Limit = 100, state: JobState | None = None) -> Jobs:
    """Jobs by number."""
    return Jobs(jobs=[JobView.of(job) for job in ledger.jobs.find(state=state, after=after, limit=limit)])


@router.get("/jobs/{number}", responses=documented(401, 403, 404, 422, 429, 503))
def job(ledger: TheLedger, number: Number) -> JobView:
    """How a job stands."""
    return JobView.of(ledger.jobs.get(number))


@router.post("/jobs/{number}/retry", responses=documented(401, 403, 404, 409, 422, 429, 503))
def retry(ledger: TheLedger, caller: Caller, number: Number) -> JobView:
    """Try a job again that failed; it goes on where it stopped."""
    return JobView.of(ledger.jobs.retry(number, actor=caller.actor))


@router.post("/people/rows", responses=documented(401, 403, 413, 422, 429, 503))
def assign_rows(ledger: TheLedger, caller: Caller, given: Rows) -> Counted:
    """Note which training rows belong to whom, in place of what was noted of these people."""
    return Counted(people=ledger.people.assign_rows(given.rows, actor=caller.actor))


@router.post("/people/data", responses=documented(401, 403, 413, 422, 429, 503))
def update(ledger: TheLedger, caller: Caller, given: DataNow) -> Counted:
    """Keep a person's data as they are now: should their letter break, the new one is made from these."""
    ledger.people.update(given.person, given.values, actor=caller.actor)
    return Counted(people=1)
