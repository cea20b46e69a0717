"""Routes for whoever runs the service: is it alive, can it work, what has it counted, what does it offer."""

from __future__ import annotations

from typing import Any, Literal

from fastapi import Request
from fastapi.responses import PlainTextResponse
from pydantic import BaseModel
from sqlalchemy import text

from rocerf.service.guard import guarded_router
from rocerf.service.problems import documented
from rocerf.version import __version__

router = guarded_router(tags=["status"])


class Health(BaseModel):
    """The process answers."""

    status: Literal["ok"] = "ok"
    version: str = __version__


@router.get("/health")
def health() -> Health:
    """Whether the process is alive; it asks nothing of the database."""
    return Health()


@router.get("/ready", responses=documented(503))
def ready(request: Request) -> Health:
    """Whether the database answers."""
    with request.app.state.access.engine.connect() as connection:
        connection.execute(text("SELECT 1"))
    return Health()


@router.get("/metrics", response_class=PlainTextResponse, responses=documented(401, 403, 429))
def metrics(request: Request) -> PlainTextResponse:
    """What was counted, for Prometheus."""
    return PlainTextResponse(request.app.state.metrics.text(), media_type="text/plain; version=0.0.4; charset=utf-8")


@router.get("/openapi.json", include_in_schema=False)
def openapi(request: Request) -> dict[str, Any]:
    """This description of the service."""
    description: dict[str, Any] = request.app.openapi()
    return description
