"""The service as a process: a ledger opened, tokens for a first start, uvicorn, and a worker beside it."""

from __future__ import annotations

import hashlib
import os
import signal
import socket
import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from multiprocessing import get_context
from multiprocessing.process import BaseProcess
from pathlib import Path
from typing import TYPE_CHECKING

from rocerf.errors import NotInLedgerError, OptionError
from rocerf.ledger import Ledger, Policy, RowSource
from rocerf.ledger.access import Access, IssuedToken, Role
from rocerf.ledger.worker import Worker
from rocerf.service.logs import log, others_to, to_stream

if TYPE_CHECKING:
    from fastapi import FastAPI

    from rocerf.explainer.explainer import Rocerf

#: Who does what the command line asks for, in the audit trail.
ACTOR = "command line"

#: Seconds until a worker that was lost is followed by another, and at most, where they are lost again and again.
PAUSE, LONGEST_PAUSE = 1.0, 60.0


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
    """Meanwhile jobs are done by a worker in a process of its own: those who read do not wait for what it computes.

    One that is lost (killed where memory was short, say) is followed by another.
    """
    engine = ledger.core.database.engine
    url = engine.url.set(drivername=engine.url.get_backend_name()).render_as_string(hide_password=False)
    given = (url, ledger.core.keys.path, ledger.core.policy, ledger.models.rows, os.getpid())
    ending = threading.Event()

    def keep_one() -> None:
        pause = PAUSE
        while not ending.is_set():
            began, process = time.monotonic(), get_context("spawn").Process(target=_work, args=given, daemon=True)
            lost: dict[str, object]
            try:
                process.start()  # what is given goes through a pipe: no password in a list of processes
            except OSError as error:  # no memory, say
                lost = {"error": type(error).__name__}
            else:
                while process.exitcode is None and not ending.wait(0.2):
                    process.join(0)
                if ending.is_set():
                    _end(process)
                    return
                lost = {"exit": process.exitcode}
            log.error("worker lost", extra={"facts": lost})
            pause = PAUSE if time.monotonic() - began > LONGEST_PAUSE else min(2 * pause, LONGEST_PAUSE)
            ending.wait(pause)

    keeper = threading.Thread(target=keep_one, name="worker-keeper")
    keeper.start()
    try:
        yield
    finally:
        ending.set()
        keeper.join()


def _end(process: BaseProcess) -> None:
    """Ask the worker to end, and end it where it is in the middle of a long step, which nobody keeps."""
    process.terminate()
    process.join(timeout=30)
    if process.exitcode is None:
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


def listen(host: str, port: int) -> socket.socket:
    """A socket that listens there, taken before anything is begun; at port 0 at any that is free."""
    try:
        family, _, _, _, place = socket.getaddrinfo(host, port, type=socket.SOCK_STREAM, flags=socket.AI_PASSIVE)[0]
        return socket.create_server((str(place[0]), int(place[1])), family=family, backlog=2048)
    except OSError as error:
        raise OptionError(
            f"Expected an address to listen at that is free, got {host}, port {port} ({error.strerror or error}); end "
            "what listens there, or choose another (--port, --host)."
        ) from None


def address_of(listening: socket.socket) -> str:
    """The address as a browser takes it."""
    host, port = listening.getsockname()[:2]
    return f"http://{f'[{host}]' if ':' in host else host}:{port}"


class _ToldToEndError(SystemExit):
    """A signal to end, in the midst of whatever is done."""


def _told_to_end(number: int, _: object) -> None:
    raise _ToldToEndError(128 + number)


def serve(app: FastAPI, *, listening: socket.socket, proxy: str | None = None) -> None:
    """Answer until interrupted. Only behind a ``proxy`` are its words about addresses and https believed."""
    import uvicorn

    config = uvicorn.Config(
        app,
        log_config=None,
        access_log=False,
        server_header=False,
        proxy_headers=proxy is not None,
        forwarded_allow_ips=proxy,
        timeout_graceful_shutdown=10,
    )
    # Told to end, uvicorn answers what it has begun and raises the signal again: by default that would end the process
    # on the spot, with the folder of a demonstration left behind.
    signal.signal(signal.SIGTERM, _told_to_end)
    with suppress(KeyboardInterrupt, _ToldToEndError):
        uvicorn.Server(config).run(sockets=[listening])
