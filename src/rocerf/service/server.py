"""The service as a process: a ledger opened, tokens for a first start, uvicorn, and a worker beside it."""

from __future__ import annotations

import hashlib
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING

from rocerf.errors import NotInLedgerError
from rocerf.ledger import Ledger
from rocerf.ledger.access import Access, IssuedToken, Role
from rocerf.ledger.worker import Worker

if TYPE_CHECKING:
    from fastapi import FastAPI

    from rocerf.explainer.explainer import Rocerf

#: Who does what the command line asks for, in the audit trail.
ACTOR = "command line"


def access_of(ledger: Ledger) -> Access:
    """The tokens in a ledger's database."""
    return Access(ledger.core.database.engine, clock=lambda: ledger.core.now().timestamp())


def first_tokens(access: Access, *, every_role: bool = False, another: bool = False) -> tuple[IssuedToken, ...]:
    """Tokens to begin with: an administrator's where there is none yet, or one of every role; else none."""
    if every_role:
        return tuple(access.issue(f"demo {role.value}", role, days=1) for role in Role)
    now = access.now()
    alive = [token for token in access.tokens() if token.revoked_at is None and token.expires_at > now]
    if another or not any(token.role is Role.ADMIN for token in alive):
        return (access.issue("administrator", Role.ADMIN),)
    return ()


def registered(ledger: Ledger, folder: Path, explainer: Rocerf) -> bool:
    """Make a saved explainer the model that judges, unless this very one was registered before; whether it was done."""
    print_of = hashlib.sha256((folder / "explainer.json").read_bytes()).hexdigest()[:12]
    label = f"{folder.resolve().name} {print_of}"
    if any(version.label == label for version in ledger.models.all()):
        return False
    ledger.models.register(explainer, actor=ACTOR, label=label)
    return True


def has_model(ledger: Ledger) -> bool:
    """Whether there is a model that judges people."""
    try:
        ledger.models.current()
    except NotInLedgerError:
        return False
    return True


@contextmanager
def working(ledger: Ledger, *, threads: int = 1) -> Iterator[None]:
    """Meanwhile jobs are done by workers of this process."""
    stop = threading.Event()
    running = [threading.Thread(target=Worker(ledger).run, args=(stop,), daemon=True) for _ in range(threads)]
    for thread in running:
        thread.start()
    try:
        yield
    finally:
        stop.set()
        for thread in running:
            thread.join(timeout=30)


def serve(app: FastAPI, *, host: str, port: int, proxy: str | None = None) -> None:
    """Answer until interrupted. Only behind a ``proxy`` are its words about addresses and https believed."""
    import uvicorn

    uvicorn.run(
        app,
        host=host,
        port=port,
        log_config=None,
        access_log=False,
        server_header=False,
        proxy_headers=proxy is not None,
        forwarded_allow_ips=proxy,
        timeout_graceful_shutdown=10,
    )
