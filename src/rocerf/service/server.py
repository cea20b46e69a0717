"""The service as a process: a ledger opened, tokens for a first start, uvicorn, and a worker beside it."""

from __future__ import annotations

import hashlib
import os
import signal
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from multiprocessing import get_context
from pathlib import Path
from typing import TYPE_CHECKING

from rocerf.errors import NotInLedgerError
from rocerf.ledger import Ledger, Policy, RowSource
from rocerf.ledger.access import Access, IssuedToken, Role
from rocerf.ledger.worker import Worker
from rocerf.service.logs import others_to, to_stream

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


def registered(
    ledger: Ledger, folder: Path, explainer: Rocerf, *, hand_over: bool = False, reused_ids: bool = False
) -> bool:
    """Make a saved explainer the model that judges, unless this very one was registered before; whether it was done.

    With ``hand_over`` the folder is noted as a copy, which the next deletion removes; ``reused_ids`` as in
    :meth:`rocerf.ledger.models.Models.register`.
    """
    print_of = hashlib.sha256((folder / "explainer.json").read_bytes()).hexdigest()[:12]
    label = f"{folder.resolve().name} {print_of}"
    if any(version.label == label for version in ledger.models.all()):
        return False
    if hand_over:  # first: a folder that was registered is known, whatever happens
        ledger.copies.tell(folder, actor=ACTOR)
    ledger.models.register(explainer, actor=ACTOR, label=label, reused_ids=reused_ids)
    return True


def has_model(ledger: Ledger) -> bool:
    """Whether there is a model that judges people."""
    try:
        ledger.models.current()
    except NotInLedgerError:
        return False
    return True


@contextmanager
def working(ledger: Ledger) -> Iterator[None]:
    """Meanwhile jobs are done by a worker in a process of its own: those who read do not wait for what it computes."""
    engine = ledger.core.database.engine
    url = engine.url.set(drivername=engine.url.get_backend_name()).render_as_string(hide_password=False)
    given = (url, ledger.core.keys.path, ledger.core.policy, ledger.models.rows, os.getpid())
    process = get_context("spawn").Process(target=_work, args=given, daemon=True)  # a pipe: no password in a list
    process.start()
    try:
        yield
    finally:
        process.terminate()
        process.join(timeout=30)
        if process.exitcode is None:  # in the middle of a long step, which nobody keeps
            process.kill()
            process.join()


def _work(url: str, keys: Path, policy: Policy, rows: RowSource | None, parent: int) -> None:
    """The worker's process: until it is told to end, or whoever started it is gone."""
    stop = threading.Event()
    signal.signal(signal.SIGINT, signal.SIG_IGN)  # meant for the server, which then tells us
    signal.signal(signal.SIGTERM, lambda *_: stop.set())

    def watch() -> None:
        while not stop.wait(1.0):
            if os.getppid() != parent:
                stop.set()

    threading.Thread(target=watch, daemon=True).start()
    others_to(to_stream())
    with Ledger.open(url, keys=keys, policy=policy, rows=rows) as ledger:
        Worker(ledger).run(stop)


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
