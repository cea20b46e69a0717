"""Pages to read: portfolio, letters, requests, certificates, model versions, audit trail. Reading changes nothing."""

from __future__ import annotations

import base64
import hashlib
import re
from typing import Annotated, Any

from fastapi import Form, Query, Request
from fastapi.responses import HTMLResponse

from rocerf.ledger import LetterState
from rocerf.service.fields import Number, Person
from rocerf.service.guard import Caller, guarded_router
from rocerf.service.ledgers import TheLedger
from rocerf.service.pages import gathering, listing
from rocerf.service.pages.acting import may_receive, may_write
from rocerf.service.pages.answers import TRAIL_READERS, answer, done_notice, language_of, reader_of
from rocerf.service.permissions import EVERYBODY, PEOPLE, declare

declare(
    {
        ("GET", "/"): EVERYBODY,
        ("POST", "/letters/search"): PEOPLE,
        ("GET", "/letters/{number}"): EVERYBODY,
        ("GET", "/letters/{number}/page"): PEOPLE,
        ("GET", "/requests"): EVERYBODY,
        ("GET", "/requests/{number}"): EVERYBODY,
        ("GET", "/requests/{number}/certificate"): EVERYBODY,
        ("GET", "/models"): EVERYBODY,
        ("GET", "/trail"): TRAIL_READERS,
        ("POST", "/trail/verify"): TRAIL_READERS,
    }
)

router = guarded_router(include_in_schema=False, default_response_class=HTMLResponse)

Word = Annotated[str, Query(max_length=60)]
Page = Annotated[int, Query(ge=1, le=10**9)]


@router.get("/")
def portfolio(
    request: Request,
    ledger: TheLedger,
    caller: Caller,
    promise: Word = "",
    budget: Word = "",
    state: Word = "",
    page: Page = 1,
    done: Word = "",
) -> HTMLResponse:
    """Outstanding letters by promise and remaining budget, and requests by deadline."""
    view = listing.portfolio(ledger, reader_of(caller), promise=promise, budget=budget, state=state, page=page)
    told: dict[str, Any] = {"may_write": may_write(caller), "states": [one.code for one in LetterState]}
    notice = done_notice(request, done)
    return answer(request, "portfolio.html", caller, view=view, here="portfolio", notice=notice, **told)


@router.post("/letters/search")
def search(request: Request, ledger: TheLedger, caller: Caller, person: Annotated[Person, Form()]) -> HTMLResponse:
    """All letters and requests of one person; asked for by a form, since addresses are kept on their way."""
    view = listing.found_of(ledger, reader_of(caller), person.strip())
    return answer(request, "found.html", caller, view=view, here="portfolio")


@router.get("/letters/{number}")
def letter(request: Request, ledger: TheLedger, caller: Caller, number: Number, done: Word = "") -> HTMLResponse:
    """A letter as its person reads it, and what happened to it."""
    view = gathering.letter_page(ledger, number, caller)
    return answer(request, "letter.html", caller, view=view, notice=done_notice(request, done))


@router.get("/letters/{number}/page")
def letter_alone(ledger: TheLedger, number: Number) -> HTMLResponse:
    """The letter's own page, to be printed: it brings its style along, which is allowed by its checksum alone."""
    text = ledger.letters.document(number).to_html()
    found = re.search(r"<style>(.*?)</style>", text, flags=re.DOTALL)
    style = "" if found is None else found.group(1)
    allowed = base64.b64encode(hashlib.sha256(style.encode()).digest()).decode()
    policy = f"default-src 'none'; style-src 'sha256-{allowed}'; base-uri 'none'; frame-ancestors 'none'"
    return HTMLResponse(text, headers={"content-security-policy": policy})


@router.get("/requests")
def requests(request: Request, ledger: TheLedger, caller: Caller, page: Page = 1, closed: Page = 1) -> HTMLResponse:
    """Open requests by deadline, and those that are closed; of both lists a part."""
    reader = reader_of(caller)
    still_open, part = listing.open_requests(ledger, reader, page)
    done, part_done = listing.closed_requests(ledger, reader, closed)
    lists: dict[str, Any] = {"open": still_open, "part": part, "closed": done, "part_closed": part_done}
    return answer(request, "requests.html", caller, may_receive=may_receive(caller), here="requests", **lists)


@router.get("/requests/{number}")
def deletion(request: Request, ledger: TheLedger, caller: Caller, number: Number, done: Word = "") -> HTMLResponse:
    """One request: how far it has come, what it does to letters, and what this reader can do."""
    view = gathering.request_page(ledger, ledger.requests.get(number), caller)
    return answer(request, "request.html", caller, view=view, here="requests", notice=done_notice(request, done))


@router.get("/requests/{number}/certificate")
def certificate(request: Request, ledger: TheLedger, caller: Caller, number: Number) -> HTMLResponse:
    """The certificate of an erasure; it names nobody."""
    return answer(request, "certificate.html", caller, view=ledger.deletions.certificate(number), here="requests")


@router.get("/models")
def models(request: Request, ledger: TheLedger, caller: Caller) -> HTMLResponse:
    """The versions of the model."""
    return answer(request, "models.html", caller, versions=gathering.models(ledger), here="models")


@router.get("/trail")
def trail(request: Request, ledger: TheLedger, caller: Caller, page: Page = 1) -> HTMLResponse:
    """The audit trail, the newest first."""
    return answer(request, "trail.html", caller, view=gathering.trail(ledger, reader_of(caller), page), here="trail")


@router.post("/trail/verify")
def verify_chain(request: Request, ledger: TheLedger, caller: Caller) -> HTMLResponse:
    """Go through the whole chain and say what was found, above its newest part."""
    view = gathering.verified(ledger, reader_of(caller), language_of(request))
    return answer(request, "trail.html", caller, view=view, here="trail")
