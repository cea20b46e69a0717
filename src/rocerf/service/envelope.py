"""What every request goes through, whatever its route: an id, a limit to its size, secure headers, a line in the log.

Plain ASGI, around everything else: a mistake of ours ends here as a problem document too.
"""

from __future__ import annotations

import re
import secrets
import time
from typing import TYPE_CHECKING

from starlette.datastructures import Headers, MutableHeaders
from starlette.exceptions import HTTPException
from starlette.requests import Request
from starlette.types import ASGIApp, Message, Receive, Scope, Send

from rocerf.service.logs import log, place_of
from rocerf.service.problems import Problem, ProblemResponse, mistake_of_ours

if TYPE_CHECKING:
    from rocerf.service.guard import Who
    from rocerf.service.metrics import Metrics

#: Pages load what this site has and nothing else; scripts and styles are files, never in the page.
POLICY = (
    "default-src 'none'; script-src 'self'; style-src 'self'; img-src 'self' data:; font-src 'self'; "
    "connect-src 'self'; form-action 'self'; base-uri 'none'; frame-ancestors 'none'"
)
HEADERS = {
    "content-security-policy": POLICY,
    "x-content-type-options": "nosniff",
    "referrer-policy": "same-origin",
    "cross-origin-opener-policy": "same-origin",
    "cross-origin-resource-policy": "same-origin",
    "permissions-policy": "camera=(), geolocation=(), microphone=()",
    "cache-control": "no-store",
}
HSTS = "max-age=31536000"
LARGEST_BODY = 4 * 2**20
#: What a caller's own id may look like: hexadecimal, as of UUIDs and traces. It is logged, so no name may fit.
_ID = re.compile(r"(?=.*[0-9])[0-9a-f-]{16,64}", re.IGNORECASE)
#: The route of what no route has answered.
NOWHERE = "-"


class Envelope:
    """The outermost layer of the application."""

    def __init__(self, app: ASGIApp, metrics: Metrics, *, largest_body: int = LARGEST_BODY) -> None:
        self.app, self.metrics, self.largest_body = app, metrics, largest_body

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Answer one request."""
        if scope["type"] != "http":
            await self.app(scope, receive, send)
            return
        began = time.perf_counter()
        given = Headers(scope=scope).get("x-request-id", "")
        request_id = given if _ID.fullmatch(given) else secrets.token_hex(8)
        scope.setdefault("state", {})["request_id"] = request_id
        status = 0

        async def sealed(message: Message) -> None:
            nonlocal status
            if message["type"] == "http.response.start":
                status = message["status"]
                headers = MutableHeaders(scope=message)
                for name, value in HEADERS.items():
                    headers.setdefault(name, value)
                if scope.get("scheme") == "https":
                    headers["strict-transport-security"] = HSTS
                headers["x-request-id"] = request_id
            await send(message)

        try:
            await self._answer(scope, receive, sealed)
        except Exception as error:
            log.error("mistake", extra={"facts": _facts(error, request_id)})
            if status:  # too late for an answer: whoever listens must see that it broke off, and nothing else
                raise RuntimeError("the answer broke off") from None
            await (await mistake_of_ours(Request(scope)))(scope, receive, sealed)
        finally:
            self._count(scope, status, time.perf_counter() - began)

    async def _answer(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Pass it on, unless its body is too large."""
        announced = Headers(scope=scope).get("content-length", "0")
        if not announced.isdecimal() or int(announced) > self.largest_body:
            await self._too_large(scope)(scope, receive, send)
            return
        left = self.largest_body

        async def limited() -> Message:
            nonlocal left
            message = await receive()
            left -= len(message.get("body", b""))
            if left < 0:  # nobody announced it, so it is found out by whoever reads: their errors become problems
                raise HTTPException(413, self._said())
            return message

        await self.app(scope, limited, send)

    def _said(self) -> str:
        return f"Expected a body of at most {self.largest_body} bytes, got a larger one; send less at once."

    def _too_large(self, scope: Scope) -> ProblemResponse:
        said = Problem(
            title="Content Too Large", status=413, detail=self._said(), request_id=scope["state"]["request_id"]
        )
        return ProblemResponse(said.model_dump(), 413)

    def _count(self, scope: Scope, status: int, seconds: float) -> None:
        state = scope["state"]
        route = state.get("route", NOWHERE)
        method = scope["method"] if scope["method"] in _METHODS else "other"
        who: Who | None = state.get("who")
        self.metrics.count(method, route, status, seconds)
        facts = {
            "request_id": state["request_id"],
            "method": method,
            "route": route,
            "status": status,
            "ms": round(1000 * seconds, 1),
            "token": who.token.id if who else None,
            "role": who.role.value if who else None,
        }
        log.info("request", extra={"facts": facts})


_METHODS = frozenset({"GET", "HEAD", "POST", "PUT", "PATCH", "DELETE", "OPTIONS"})


def _facts(error: BaseException, request_id: str) -> dict[str, object]:
    return {"kind": type(error).__name__, "where": place_of(error), "request_id": request_id}
