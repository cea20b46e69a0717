"""The application: routes behind the guard, in the envelope, over one ledger."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

from fastapi import FastAPI
from fastapi.openapi.utils import get_openapi
from fastapi.routing import APIRoute

from rocerf.ledger import Ledger
from rocerf.ledger.access import Access
from rocerf.service import deletions, hooks, jobs, letters, pages, problems, sessions, status, tokens, trail
from rocerf.service.envelope import LARGEST_BODY, Envelope
from rocerf.service.examples import with_examples
from rocerf.service.metrics import Metrics, holdings
from rocerf.service.permissions import roles_of
from rocerf.service.rates import Rates
from rocerf.service.resolving import Resolver, known_by_name
from rocerf.version import __version__

ABOUT = """Recourse letters and deletion requests, and what each does to the other.

Send `Authorization: Bearer <token>`. Errors are `application/problem+json` (RFC 9457): what was expected, what came,
and what to do. Times are in UTC. Margins are rounded; parameters of models and their curvature are never published.
"""


@dataclass(frozen=True)
class ServiceSettings:
    """What can be chosen about a service."""

    #: Requests a minute with one token, and wrong tokens a minute from one address.
    requests_per_minute: int = 1200
    failures_per_minute: int = 30
    #: Largest body of a request in bytes.
    largest_body: int = LARGEST_BODY


def create_app(
    ledger: Ledger,
    *,
    access: Access | None = None,
    settings: ServiceSettings | None = None,
    resolver: Resolver = known_by_name,
) -> FastAPI:
    """The service over a ledger, as an ASGI application; see :mod:`rocerf.service` for routes of your own.

    ``access`` holds the tokens, in the ledger's own database by default; ``resolver`` turns the identities that privacy
    tools send into people of the ledger. Rules about letters and deletions are the ledger's (its ``Policy``).
    """
    settings = settings or ServiceSettings()
    app = FastAPI(
        title="rocerf", version=__version__, description=ABOUT, openapi_url=None, redirect_slashes=False, docs_url=None
    )
    app.state.ledger = ledger
    app.state.access = access or Access(ledger.core.database.engine)
    app.state.resolver = resolver
    app.state.settings = settings
    app.state.metrics = Metrics(lambda: holdings(ledger))
    app.state.rates = Rates(per_minute=settings.requests_per_minute, failures_per_minute=settings.failures_per_minute)
    problems.install(app)
    for room in (status, sessions, tokens, letters, deletions, jobs, hooks, trail):
        app.include_router(room.router)
    pages.install(app)
    app.add_middleware(Envelope, metrics=app.state.metrics, largest_body=settings.largest_body)
    app.openapi = lambda: _described(app)  # type: ignore[method-assign]
    return app


def _described(app: FastAPI) -> dict[str, Any]:
    """The OpenAPI description, made once, with the schema of problems and how to sign in."""
    if app.openapi_schema is None:
        made = get_openapi(title=app.title, version=app.version, description=app.description, routes=app.routes)
        parts = made.setdefault("components", {})
        parts.setdefault("schemas", {}).update(problems.schemas())
        parts["securitySchemes"] = {"token": {"type": "http", "scheme": "bearer"}}
        for path, methods in made["paths"].items():
            for method, operation in methods.items():
                operation["security"] = [] if roles_of(method.upper(), path) is None else [{"token": []}]
        app.openapi_schema = with_examples(made)
    return app.openapi_schema


def every_route(app: FastAPI) -> Iterator[APIRoute]:
    """The routes that answer, out of all the routers that the application holds."""
    waiting: list[Any] = list(app.routes)
    while waiting:
        route = waiting.pop()
        inner = getattr(route, "original_router", None)
        if inner is not None:
            waiting.extend(inner.routes)
        elif isinstance(route, APIRoute):
            yield route
