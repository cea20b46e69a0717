"""Errors as ``application/problem+json`` (RFC 9457): our own sentences, and nothing of what we did not mean to say.

Each of our exceptions has a status here by its place in the tree of :mod:`rocerf.errors`; the ``type`` is its name.
What a request held is not repeated in the answer, and a mistake of ours says only under which id it stands in the log.
"""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from http import HTTPStatus
from typing import Any

from fastapi import FastAPI, Request, Response
from fastapi.exceptions import RequestValidationError
from fastapi.responses import JSONResponse
from pydantic import BaseModel, ConfigDict, Field
from sqlalchemy.exc import OperationalError, TimeoutError
from starlette.exceptions import HTTPException

from rocerf import errors
from rocerf.service.logs import log, place_of
from rocerf.visible import one_line

MEDIA_TYPE = "application/problem+json"


#: Our exceptions -> the status of the answer; the nearest ancestor counts.
STATUSES: dict[type[errors.RocerfError], int] = {
    errors.NotSignedInError: 401,
    errors.ForbiddenError: 403,
    errors.UnknownTokenError: 404,
    errors.TooOftenError: 429,
    errors.DataError: 422,
    errors.SchemaError: 422,
    errors.OptionError: 422,
    errors.FileFormatError: 422,
    errors.ModelError: 409,
    errors.NotInLedgerError: 404,
    errors.TransitionError: 409,
    errors.KeyReusedError: 422,
    errors.ErasedError: 410,
    errors.LedgerUnavailableError: 503,
    errors.LedgerError: 409,
    errors.NotRemovedError: 500,
    errors.MissingExtraError: 501,
    errors.RocerfError: 500,
}


class FieldProblem(BaseModel):
    """One thing that is wrong with a request."""

    where: str = Field(examples=["body.role"])
    what: str = Field(examples=["Field required"])


class Problem(BaseModel):
    """What went wrong, as RFC 9457 has it."""

    model_config = ConfigDict(
        json_schema_extra={
            "examples": [
                {
                    "type": "urn:rocerf:problem:ForbiddenError",
                    "title": "Forbidden",
                    "status": 403,
                    "detail": "Expected the role admin here, got auditor; ask somebody who has it.",
                    "request_id": "5f0c1d2e3b4a",
                }
            ]
        }
    )

    type: str = "about:blank"
    title: str
    status: int
    detail: str
    request_id: str = ""
    fields: list[FieldProblem] = []


class ProblemResponse(JSONResponse):
    """A problem on its way out."""

    media_type = MEDIA_TYPE


#: Draws a problem for people: (request, problem) -> page; the pages set it as ``app.state.problem_page``.
ProblemPage = Callable[[Request, Problem], Response | Awaitable[Response]]


def documented(*statuses: int) -> dict[int | str, dict[str, Any]]:
    """The problems that a route may answer with, for its OpenAPI description."""
    schema = {"schema": {"$ref": "#/components/schemas/Problem"}}
    return {status: {"description": HTTPStatus(status).phrase, "content": {MEDIA_TYPE: schema}} for status in statuses}


def schemas() -> dict[str, Any]:
    """The schemas that :func:`documented` refers to."""
    made = Problem.model_json_schema(ref_template="#/components/schemas/{model}")
    return {**made.pop("$defs"), "Problem": made}


def status_of(error: errors.RocerfError) -> int:
    """The status of the nearest ancestor that has one."""
    return next(STATUSES[kind] for kind in type(error).__mro__ if kind in STATUSES)


async def _answer(request: Request, problem: Problem, headers: dict[str, str] | None = None) -> Response:
    problem.request_id = getattr(request.state, "request_id", "")
    page: ProblemPage | None = getattr(request.app.state, "problem_page", None)
    if page is not None and "text/html" in request.headers.get("accept", ""):
        drawn = page(request, problem)
        return drawn if isinstance(drawn, Response) else await drawn
    return ProblemResponse(problem.model_dump(exclude_defaults=False), problem.status, headers)


async def _ours(request: Request, error: Exception) -> Response:
    assert isinstance(error, errors.RocerfError)
    status = status_of(error)
    headers = {}
    if status == 401:
        headers["WWW-Authenticate"] = "Bearer"
    if status == 503:
        headers["Retry-After"] = "5"
    if isinstance(error, errors.TooOftenError):
        headers["Retry-After"] = str(error.seconds)
    kind = f"urn:rocerf:problem:{type(error).__name__}"
    title = HTTPStatus(status).phrase
    return await _answer(request, Problem(type=kind, title=title, status=status, detail=one_line(str(error))), headers)


async def _http(request: Request, error: Exception) -> Response:
    assert isinstance(error, HTTPException)
    if error.status_code == 400:  # a body that cannot even be read, not text say: as any other that is not right
        return await _invalid(request, RequestValidationError([]))
    phrase = HTTPStatus(error.status_code).phrase
    detail = f"Expected a path, method and body that the service knows, got another ({phrase}); see /openapi.json."
    if str(error.detail).startswith("Expected"):
        detail = str(error.detail)
    headers = dict(error.headers) if error.headers else None
    return await _answer(request, Problem(title=phrase, status=error.status_code, detail=detail), headers)


async def _invalid(request: Request, error: Exception) -> Response:
    """What is wrong with each field; never what stood there, which may be a person's."""
    assert isinstance(error, RequestValidationError)
    fields = [
        FieldProblem(where=one_line(".".join(str(part) for part in one["loc"])), what=one_line(one["msg"]))
        for one in error.errors()[:20]
    ]
    detail = "Expected a request as /openapi.json describes it, got another; correct what the fields name."
    problem = Problem(
        type="urn:rocerf:problem:invalid-request", title="Unprocessable Content", status=422, detail=detail
    )
    problem.fields = fields
    return await _answer(request, problem)


async def mistake_of_ours(request: Request) -> Response:
    """The answer where something failed that should not: the log has its kind and place under the same id."""
    detail = "Expected to answer, got a mistake of ours; give the administrator the id of this request."
    return await _answer(request, Problem(title="Internal Server Error", status=500, detail=detail))


async def _no_database(request: Request, error: Exception) -> Response:
    """A database that is gone, busy for too long, or full."""
    log.error("database", extra={"facts": {"kind": type(error).__name__, "where": place_of(error)}})
    detail = "Expected the database to answer, got none; nothing was changed: try again in a few seconds."
    problem = Problem(type="urn:rocerf:problem:database", title="Service Unavailable", status=503, detail=detail)
    return await _answer(request, problem, {"Retry-After": "5"})


def install(app: FastAPI) -> None:
    """Answer every error with a problem."""
    app.add_exception_handler(errors.RocerfError, _ours)
    app.add_exception_handler(HTTPException, _http)
    app.add_exception_handler(RequestValidationError, _invalid)
    app.add_exception_handler(OperationalError, _no_database)
    app.add_exception_handler(TimeoutError, _no_database)
