"""Routes about what was done: model versions, the audit chain."""

from __future__ import annotations

from typing import Annotated

from fastapi import Query
from pydantic import BaseModel, ConfigDict, Field

from rocerf.ledger import ChainHead
from rocerf.service.fields import After, Limit, Number
from rocerf.service.guard import Caller, guarded_router
from rocerf.service.ledgers import TheLedger
from rocerf.service.problems import documented
from rocerf.service.views import ChainView, EventView, HeadView, ModelView

router = guarded_router(prefix="/api/v1", tags=["audit"])


class Models(BaseModel):
    """Model versions, the newest first."""

    models: list[ModelView]


class Events(BaseModel):
    """Links of the audit chain, in their order."""

    events: list[EventView]


class Anchor(BaseModel):
    """An end of the chain that was noted elsewhere before."""

    model_config = ConfigDict(extra="forbid")

    seq: int = Field(ge=0, le=2**31 - 1)
    hash: str = Field(pattern=r"^[0-9a-f]{64}$", examples=["0" * 64])


@router.get("/models", responses=documented(401, 403, 429, 503))
def models(ledger: TheLedger) -> Models:
    """All model versions; of erased ones a hash is left."""
    return Models(models=[ModelView.of(version) for version in ledger.models.all()])


@router.get("/models/{number}", responses=documented(401, 403, 404, 422, 429, 503))
def model(ledger: TheLedger, number: Number) -> ModelView:
    """A model version."""
    return ModelView.of(ledger.models.get(number))


@router.get("/audit/events", responses=documented(401, 403, 422, 429, 503))
def events(
    ledger: TheLedger,
    caller: Caller,
    after: After = 0,
    limit: Limit = 100,
    kind: Annotated[str | None, Query(max_length=100, pattern=r"^[a-z _]*$")] = None,
) -> Events:
    """What was done by whom, in order."""
    found = ledger.audit.events(after=after, limit=limit, kind=kind)
    return Events(events=[EventView.of(event, caller) for event in found])


@router.get("/audit/head", responses=documented(401, 403, 429, 503))
def head(ledger: TheLedger) -> HeadView:
    """The end of the chain, to be noted elsewhere."""
    end = ledger.audit.head()
    return HeadView(seq=end.seq, hash=end.hash)


@router.post("/audit/verify", responses=documented(401, 403, 413, 422, 429, 503))
def verify(ledger: TheLedger, anchor: Anchor | None = None) -> ChainView:
    """Go through the whole chain; with an end noted elsewhere before, no rewriting up to it goes unseen."""
    noted = None if anchor is None else ChainHead(anchor.seq, anchor.hash)
    return ChainView.of(ledger.audit.verify(noted))
