"""Every route asks first who is there, and whether they may; only then is anything of the request read.

A program sends ``Authorization: Bearer <token>``. A browser has a session cookie (http only, same site), and whatever
it changes must carry the session's CSRF token: as the form field ``csrf_token`` or the header ``X-CSRF-Token``.
"""

from __future__ import annotations

import hashlib
import hmac
from collections.abc import Callable, Coroutine
from dataclasses import dataclass
from typing import Annotated, Any

from fastapi import APIRouter, Depends, Request, Response
from fastapi.routing import APIRoute
from starlette.concurrency import run_in_threadpool

from rocerf.errors import ForbiddenError, NotSignedInError, TooOftenError
from rocerf.ledger.access import Access, Role, Token
from rocerf.service.permissions import roles_of
from rocerf.service.rates import Rates

COOKIE = "rocerf_session"
CSRF_FIELD = "csrf_token"
CSRF_HEADER = "x-csrf-token"
_SAFE = frozenset({"GET", "HEAD"})


@dataclass(frozen=True)
class Who:
    """Who asks: the token, and the session's CSRF token if it is a browser."""

    token: Token
    csrf: str | None = None

    @property
    def role(self) -> Role:
        """The role of the token."""
        return self.token.role

    @property
    def actor(self) -> str:
        """How the audit trail calls them."""
        return f"{self.token.role.value}:{self.token.id}"

    @property
    def colleague(self) -> str:
        """The human being whose token it is; "" where that was never noted."""
        return self.token.person


def csrf_token(session: str) -> str:
    """What the forms of a session carry; it does not give the session away."""
    return hmac.new(session.encode(), b"rocerf form", hashlib.sha256).hexdigest()


class GuardedRoute(APIRoute):
    """A route that lets in whom the table of permissions names for it."""

    def get_route_handler(self) -> Callable[[Request], Coroutine[Any, Any, Response]]:
        """The route's own handler behind the guard."""
        handle = super().get_route_handler()
        path = self.path
        allowed = {method: roles_of(method, path) for method in self.methods or ()}

        async def guarded(request: Request) -> Response:
            request.state.route = path
            roles = allowed[request.method]
            if roles is not None:
                await _admit(request, roles)
            return await handle(request)

        return guarded


def guarded_router(**options: Any) -> APIRouter:
    """A router whose routes are guarded; every one needs its line in the table of permissions."""
    return APIRouter(route_class=GuardedRoute, **options)


def who(request: Request) -> Who:
    """Who asks, in a route that is not public."""
    found: Who = request.state.who
    return found


#: For parameters of routes: ``def page(who: Caller) -> ...``.
Caller = Annotated[Who, Depends(who)]


async def asking(request: Request) -> Who | None:
    """Who asks, or None if nobody has signed in; for public pages that greet those who have."""
    try:
        return await _who(request)
    except NotSignedInError:
        return None


async def _admit(request: Request, roles: frozenset[Role]) -> None:
    rates: Rates = request.app.state.rates
    try:
        found = await _who(request)
    except NotSignedInError:
        if request.headers.get("authorization") or COOKIE in request.cookies:  # who shows nothing, guesses nothing
            rates.count_failure(request.client.host if request.client else "")
        raise
    request.state.who = found
    wait = rates.take(found.token.id)
    if wait:
        raise TooOftenError(
            f"Expected at most {rates.per_minute} requests a minute with one token, got more; wait {wait} s.", wait
        )
    if found.role not in roles:
        may = " or ".join(sorted(role.value for role in roles))
        raise ForbiddenError(f"Expected the role {may} here, got {found.role.value}; ask somebody who has it.")
    if found.csrf is not None and request.method not in _SAFE:
        await _check_form(request, found.csrf)


async def _who(request: Request) -> Who:
    access: Access = request.app.state.access
    header = request.headers.get("authorization")
    if header is not None:
        kind, _, secret = header.partition(" ")
        if kind.lower() != "bearer":
            raise NotSignedInError("Expected 'Authorization: Bearer <token>', got another kind; send a token.")
        return Who(await run_in_threadpool(access.authenticate, secret.strip()))
    session = request.cookies.get(COOKIE)
    if session is None:
        raise NotSignedInError("Expected a token, got none; send it as 'Authorization: Bearer <token>', or sign in.")
    return Who(await run_in_threadpool(access.session, session), csrf_token(session))


async def _check_form(request: Request, expected: str) -> None:
    """Refuse what another site made a browser send."""
    given: Any = request.headers.get(CSRF_HEADER)
    if given is None and "form" in request.headers.get("content-type", ""):
        given = (await request.form()).get(CSRF_FIELD)
    if not isinstance(given, str) or not hmac.compare_digest(given.encode(), expected.encode()):
        raise ForbiddenError("Expected the form of a page that you have opened here, got none; open the page again.")
    refuse_other_sites(request)


def refuse_other_sites(request: Request) -> None:
    """Refuse a form that a browser says comes from elsewhere."""
    if request.headers.get("sec-fetch-site", "same-origin") not in ("same-origin", "none"):
        raise ForbiddenError("Expected a form of this site, got one of another; open the page here and try again.")
