"""The ledger as routes take it."""

from __future__ import annotations

from typing import Annotated

from fastapi import Depends, Request

from rocerf.ledger import Ledger
from rocerf.service.guard import Who


def the_ledger(request: Request) -> Ledger:
    """The ledger that this service is over."""
    found: Ledger = request.app.state.ledger
    return found


#: For parameters of routes: ``def route(ledger: TheLedger) -> ...``.
TheLedger = Annotated[Ledger, Depends(the_ledger)]


def own_key(who: Who, key: str | None) -> str | None:
    """A caller's idempotency key, apart from everybody else's."""
    return None if key is None else f"{who.token.id}:{key}"
