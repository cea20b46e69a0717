"""The pages before anything of the ledger: signing in, the language, files, and problems as people read them."""

from __future__ import annotations

from typing import Annotated

from fastapi import Query, Request, Response
from fastapi.responses import HTMLResponse, RedirectResponse

from rocerf.service.guard import Who, asking, guarded_router
from rocerf.service.pages import static
from rocerf.service.pages.answers import LANGUAGE_COOKIE, answer, language_of
from rocerf.service.pages.rendering import Notice, place
from rocerf.service.pages.texts import page_language, page_languages, speaker
from rocerf.service.permissions import PUBLIC, declare, roles_of
from rocerf.service.problems import Problem

declare({("GET", "/login"): PUBLIC, ("GET", "/language"): PUBLIC, ("GET", "/static/{name}"): PUBLIC})

router = guarded_router(include_in_schema=False)

#: For how many seconds the chosen language is remembered.
REMEMBERED = 366 * 24 * 3600

#: The status of a problem -> how its page is headed.
HEADINGS = {
    403: "forbidden",
    404: "not_found",
    405: "not_found",
    409: "conflict",
    410: "not_found",
    413: "invalid",
    422: "invalid",
    429: "too_often",
    503: "unavailable",
}


@router.get("/login", response_class=HTMLResponse)
async def login_page(request: Request, why: Annotated[str, Query(max_length=20)] = "") -> Response:
    """The form to sign in; whoever is signed in goes on to the first page."""
    if await asking(request) is not None:
        return RedirectResponse(place("portfolio"), status_code=303)
    say = speaker(page_language(language_of(request)))
    notice = Notice("note", say("login.first")) if why == "first" else None
    return answer(request, "login.html", None, notice=notice)


@router.get("/language", response_class=RedirectResponse)
async def choose_language(
    to: Annotated[str, Query(max_length=10)], back: Annotated[str, Query(max_length=500)] = "/"
) -> Response:
    """Remember a language and go back to where one was, on this site."""
    inside = back.startswith("/") and not back.startswith(("//", "/\\")) and back.isprintable()
    found = RedirectResponse(back if inside else "/", status_code=303)
    if to in page_languages():
        found.set_cookie(LANGUAGE_COOKIE, to, max_age=REMEMBERED, path="/", httponly=True, samesite="lax")
    return found


@router.get("/static/{name}")
async def file(request: Request, name: str, v: Annotated[str, Query(max_length=64)] = "") -> Response:
    """A file that pages load; kept by browsers if they ask for the very one."""
    if name not in static.KINDS:
        return problem_page(request, Problem(title="", status=404, detail=""))
    kept = "public, max-age=31536000, immutable" if v == static.checksum(name) else "no-cache"
    return Response(static.contents(name), media_type=static.KINDS[name], headers={"cache-control": kept})


def problem_page(request: Request, problem: Problem) -> Response:
    """What went wrong, for people; strangers are sent to sign in."""
    code = language_of(request)
    say = speaker(page_language(code))
    if problem.status == 401 and not (request.method == "POST" and request.url.path == place("login")):
        to = f"{place('login')}?why=first"
        if request.headers.get("hx-request"):
            return Response(status_code=401, headers={"hx-redirect": to})
        return RedirectResponse(to, status_code=303)
    if problem.status == 401:
        return answer(request, "login.html", None, notice=Notice("bad", say("login.refused")), status=401)
    who: Who | None = getattr(request.state, "who", None)
    heading = HEADINGS.get(problem.status, "mistake")
    if heading == "forbidden" and who is None:  # a form of another site
        heading = "invalid"
    values = {"role": say(f"roles.{who.role.value}")} if who else {}
    return answer(
        request,
        "problem.html",
        who,
        status=problem.status,
        heading=say(f"problem.{heading}"),
        text=say(f"problem.{_text(request, heading)}", **values),
        detail=problem.detail if heading in ("invalid", "conflict") else "",
        request_id=problem.request_id if heading == "mistake" else "",
    )


def _text(request: Request, heading: str) -> str:
    """The key of what to do."""
    if heading == "forbidden":
        roles = roles_of(request.method, request.state.route) or frozenset()
        return "forbidden_text" if request.state.who.role not in roles else "form_text"
    return f"{heading}_text"
