"""A real browser before a real server on this machine: Debian's Chromium, driven by Playwright."""

from __future__ import annotations

import os
import shutil
import socket
import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager
from typing import TYPE_CHECKING

import pytest
import uvicorn
from fastapi import FastAPI

from rocerf.ledger import Ledger
from rocerf.ledger.worker import Worker

if TYPE_CHECKING:
    from playwright.sync_api import Browser

CHROMIUM = shutil.which("chromium")
REASON = "needs a browser: Debian's package chromium"
needs_chromium = pytest.mark.skipif(CHROMIUM is None, reason=REASON)

#: A file of axe-core (npm package axe-core, axe.min.js), which looks for what keeps people out; it is not shipped.
AXE = os.environ.get("ROCERF_AXE", "")
needs_axe = pytest.mark.skipif(not AXE, reason="needs axe-core: ROCERF_AXE names its file axe.min.js")

FLAGS = [
    *("--no-sandbox", "--disable-gpu", "--disable-quic", "--no-first-run", "--disable-background-networking"),
    *("--disable-component-update", "--disable-sync", "--disable-dev-shm-usage"),
]


@contextmanager
def chromium() -> Iterator[Browser]:
    """A browser without a window, with a new profile of its own."""
    from playwright.sync_api import sync_playwright

    with sync_playwright() as play:
        browser = play.chromium.launch(executable_path=CHROMIUM, args=FLAGS, timeout=120_000)
        try:
            yield browser
        finally:
            browser.close()


@contextmanager
def serving(app: FastAPI) -> Iterator[str]:
    """The address of a server on a free port of this machine."""
    with socket.socket() as listening:
        listening.bind(("127.0.0.1", 0))
        server = uvicorn.Server(uvicorn.Config(app, log_config=None, access_log=False, lifespan="off"))
        thread = threading.Thread(target=server.run, kwargs={"sockets": [listening]}, daemon=True)
        thread.start()
        while not server.started:
            assert thread.is_alive(), "the server did not start"
            time.sleep(0.02)
        try:
            yield f"http://127.0.0.1:{listening.getsockname()[1]}"
        finally:
            server.should_exit = True
            thread.join(timeout=30)


@contextmanager
def working(ledger: Ledger) -> Iterator[None]:
    """Meanwhile jobs are done."""
    stop = threading.Event()
    thread = threading.Thread(target=Worker(ledger).run, args=(stop,), kwargs={"every": 0.2}, daemon=True)
    thread.start()
    try:
        yield
    finally:
        stop.set()
        thread.join(timeout=60)
