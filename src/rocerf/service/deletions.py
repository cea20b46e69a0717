"""Routes about deletion requests: taken in, verified, previewed, approved, carried out."""

from __future__ import annotations

from typing import Annotated

from fastapi import Query
from pydantic import BaseModel, ConfigDict, Field

from rocerf.ledger import RequestState
from rocerf.service.fields import (
    After,
    IdempotencyKey,
    Limit,
    Moment,
    Number,
    Person,
    Reason,
    RowId,
    Source,
    not_later,
)
from rocerf.service.guard import Caller, guarded_router
from rocerf.service.ledgers import TheLedger, own_key
from rocerf.service.problems import documented
from rocerf.service.views import DeletionView, PreviewView

router = guarded_router(prefix="/api/v1", tags=["deletions"])

_PROBLEMS = documented(401, 403, 404, 409, 413, 422, 429, 503)


class NewDeletion(BaseModel):
    """A person who asks to be deleted. Without ``rows`` those count that are assigned to the person already."""

    model_config = ConfigDict(extra="forbid")

    person: Person
    rows: list[RowId] | None = Field(
        default=None, max_length=10_000, description="Ids of training rows of theirs.", examples=[[4, 311]]
    )
    received: Moment | None = Field(default=None, description="When it came in; now by default.")
    source: Source = ""


class Because(BaseModel):
    """Why."""

    model_config = ConfigDict(extra="forbid")

    reason: Reason


class How(BaseModel):
    """How the identity was verified; name the way, not the person."""

    model_config = ConfigDict(extra="forbid")

    how: Source = Field(default="", examples=["passport at the desk"])


class Several(BaseModel):
    """Requests that would be carried out together."""

    model_config = ConfigDict(extra="forbid")

    requests: list[Annotated[int, Field(ge=1, le=2**31 - 1)]] = Field(min_length=1, max_length=1000, examples=[[1, 2]])


class Deletions(BaseModel):
    """Deletion requests."""

    deletions: list[DeletionView]


@router.post("/deletions", status_code=201, responses=documented(401, 403, 409, 413, 422, 429, 503))
def receive(ledger: TheLedger, caller: Caller, wanted: NewDeletion, key: IdempotencyKey = None) -> DeletionView:
    """Take a request in; its deadline (one month, GDPR article 12(3)) runs from the day it was received."""
    made = ledger.requests.receive(
        wanted.person,
        actor=caller.actor,
        rows=wanted.rows,
        received=not_later(wanted.received, ledger.core.now()),
        source=wanted.source,
        idempotency_key=own_key(caller, key),
    )
    return DeletionView.of(made, caller)


@router.get("/deletions", responses=documented(401, 403, 422, 429, 503))
def deletions(
    ledger: TheLedger,
    caller: Caller,
    after: After = 0,
    limit: Limit = 100,
    state: RequestState | None = None,
    urgent: Annotated[bool, Query(description="Open ones, the nearest deadline first, instead.")] = False,
) -> Deletions:
    """Requests by number, or open ones by deadline."""
    found = (
        ledger.requests.by_deadline(limit) if urgent else ledger.requests.find(state=state, after=after, limit=limit)
    )
    return Deletions(deletions=[DeletionView.of(request, caller) for request in found])


@router.post("/deletions/preview", responses=_PROBLEMS)
def preview_several(ledger: TheLedger, caller: Caller, wanted: Several) -> PreviewView:
    """What carrying out several requests together would do to outstanding letters; no letter is touched."""
    return PreviewView.of(ledger.requests.preview(wanted.requests, actor=caller.actor))


@router.get("/deletions/{number}", responses=documented(401, 403, 404, 422, 429, 503))
def deletion(ledger: TheLedger, caller: Caller, number: Number) -> DeletionView:
    """A request as it stands."""
    return DeletionView.of(ledger.requests.get(number), caller)


@router.post("/deletions/{number}/verify", responses=_PROBLEMS)
def verify(ledger: TheLedger, caller: Caller, number: Number, how: How) -> DeletionView:
    """The person is who they say they are."""
    who = {"actor": caller.actor, "colleague": caller.colleague}
    return DeletionView.of(ledger.requests.verify_identity(number, **who, how=how.how), caller)


@router.post("/deletions/{number}/preview", responses=_PROBLEMS)
def preview(ledger: TheLedger, caller: Caller, number: Number) -> PreviewView:
    """Which outstanding letters a deletion would break, and how much of their budgets it would use."""
    return PreviewView.of(ledger.requests.preview(number, actor=caller.actor))


@router.post("/deletions/{number}/approve", responses=_PROBLEMS)
def approve(ledger: TheLedger, caller: Caller, number: Number) -> DeletionView:
    """The deletion may be carried out; under the four-eyes rule by somebody else than who verified the identity."""
    return DeletionView.of(ledger.requests.approve(number, actor=caller.actor, colleague=caller.colleague), caller)


@router.post("/deletions/{number}/refuse", responses=_PROBLEMS)
def refuse(ledger: TheLedger, caller: Caller, number: Number, why: Because) -> DeletionView:
    """Refuse a request, with the reason that the person is told."""
    return DeletionView.of(ledger.requests.refuse(number, reason=why.reason, actor=caller.actor), caller)


@router.post("/deletions/{number}/hold", responses=_PROBLEMS)
def hold(ledger: TheLedger, caller: Caller, number: Number, why: Because) -> DeletionView:
    """Put a request on hold; its deadline runs on."""
    return DeletionView.of(ledger.requests.hold(number, reason=why.reason, actor=caller.actor), caller)


@router.post("/deletions/{number}/resume", responses=_PROBLEMS)
def resume(ledger: TheLedger, caller: Caller, number: Number) -> DeletionView:
    """Take a request up again where it was put on hold."""
    return DeletionView.of(ledger.requests.resume(number, actor=caller.actor), caller)


@router.post("/deletions/{number}/extend", responses=_PROBLEMS)
def extend(ledger: TheLedger, caller: Caller, number: Number, why: Because) -> DeletionView:
    """Extend the deadline by two months; the person must be told why within the first."""
    return DeletionView.of(ledger.requests.extend(number, reason=why.reason, actor=caller.actor), caller)
