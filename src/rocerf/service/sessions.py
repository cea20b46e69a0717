"""Signing in with a browser: a token for a session cookie that scripts cannot read and other sites cannot send."""

from __future__ import annotations

from typing import Annotated

from fastapi import Form, Request
from fastapi.responses import RedirectResponse
from starlette.concurrency import run_in_threadpool

from rocerf.errors import NotSignedInError
from rocerf.ledger.access import SESSION_SECONDS, Access
from rocerf.service.guard import COOKIE, guarded_router, refuse_other_sites
from rocerf.service.problems import documented
from rocerf.service.rates import Rates

router = guarded_router(tags=["signing in"])


@router.post("/login", status_code=303, responses=documented(401, 403, 413, 422, 429), response_class=RedirectResponse)
async def login(
    request: Request, token: Annotated[str, Form(min_length=1, max_length=200, examples=["rocerf_..."])]
) -> RedirectResponse:
    """Exchange a token for a session cookie, and go to the first page."""
    refuse_other_sites(request)
    access: Access = request.app.state.access
    rates: Rates = request.app.state.rates
    address = request.client.host if request.client else ""
    try:
        found = await run_in_threadpool(access.authenticate, token.strip())
    except NotSignedInError:
        rates.count_failure(address)
        raise
    before = request.cookies.get(COOKIE)
    if before is not None:  # nobody goes on in a session that its browser has forgotten
        await run_in_threadpool(access.close_session, before)
    secret = await run_in_threadpool(access.open_session, found)
    answer = RedirectResponse("/", status_code=303)
    secure = request.url.scheme == "https"
    answer.set_cookie(
        COOKIE, secret, max_age=SESSION_SECONDS, path="/", httponly=True, samesite="strict", secure=secure
    )
    return answer


@router.post("/logout", status_code=303, responses=documented(403, 413), response_class=RedirectResponse)
async def logout(request: Request) -> RedirectResponse:
    """End the session of this browser, and go to the page to sign in."""
    refuse_other_sites(request)
    session = request.cookies.get(COOKIE)
    if session is not None:
        await run_in_threadpool(request.app.state.access.close_session, session)
    answer = RedirectResponse("/login", status_code=303)
    answer.delete_cookie(COOKIE, path="/", httponly=True, samesite="strict")
    return answer
