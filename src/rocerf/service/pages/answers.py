"""From a request to a page: who reads, in which language."""

from __future__ import annotations

from typing import Any

from fastapi import Request
from fastapi.responses import HTMLResponse

from rocerf.service.guard import Who
from rocerf.service.pages.rendering import Notice, Reader, render
from rocerf.service.pages.texts import asked_language, page_language
from rocerf.service.permissions import ADMIN, AUDITOR, PEOPLE, PROTECTION

#: What forms may say is done, on the page to which they send the browser back.
DONE = frozenset(
    {"receive", "verify", "preview", "approve", "refuse", "hold", "resume", "extend", "carry_out", "retry"}
    | {"withdraw", "renew", "renew_due"}
)

#: Who reads the audit trail.
TRAIL_READERS = frozenset({PROTECTION, AUDITOR, ADMIN})

#: The language somebody chose.
LANGUAGE_COOKIE = "rocerf_language"


def language_of(request: Request) -> str:
    """The language of whoever asks."""
    return asked_language(request.cookies.get(LANGUAGE_COOKIE), request.headers.get("accept-language", ""))


def reader_of(who: Who) -> Reader:
    """Who reads."""
    return Reader(who.token.name, who.role.value, who.role in PEOPLE, who.role in TRAIL_READERS, who.csrf)


def answer(
    request: Request,
    template: str,
    who: Who | None,
    *,
    notice: Notice | None = None,
    status: int = 200,
    **values: Any,
) -> HTMLResponse:
    """A page for whoever asks. Browsers must ask again in another language, so it varies with what they send."""
    back = request.url.path if request.method == "GET" else "/"
    if request.method == "GET" and request.url.query:
        back = f"{back}?{request.url.query}"
    code = language_of(request)
    reader = None if who is None else reader_of(who)
    text = render(template, code, reader=reader, back=back, notice=notice, **values)
    return HTMLResponse(text, status, {"content-language": code, "vary": "accept-language, cookie"})


def done_notice(request: Request, done: str) -> Notice | None:
    """The sentence above a page to which a form has sent the browser back."""
    if done not in DONE:
        return None
    return Notice("good", page_language(language_of(request)).say(f"pages.done.{done}"))
