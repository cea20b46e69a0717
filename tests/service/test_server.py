"""The service as a process: its worker is followed by another where it is lost, and what it made goes when it ends."""

from __future__ import annotations

import errno
import os
import re
import signal
import subprocess
import sys
import time
from collections.abc import Callable
from multiprocessing import active_children
from multiprocessing.context import SpawnProcess
from pathlib import Path
from typing import TypeVar

import pytest

from ledgers import approved, filled, opened
from rocerf.ledger import RequestState
from rocerf.service.server import working

T = TypeVar("T")


def awaited(look: Callable[[], T | None], seconds: float = 90.0) -> T:
    """What this gives once it gives something."""
    until = time.monotonic() + seconds
    while time.monotonic() < until:
        found = look()
        if found:
            return found
        time.sleep(0.1)
    raise AssertionError("waited in vain")


def test_a_worker_that_is_lost_is_followed_by_another(tmp_path: Path) -> None:
    ledger = filled(opened(tmp_path), 2)
    with working(ledger):
        first = awaited(active_children)[0].pid
        assert first is not None
        os.kill(first, signal.SIGKILL)
        number = approved(ledger, "owner-2")  # long due, by the clock of workers: ordered by itself
        awaited(lambda: ledger.requests.get(number).state is RequestState.CERTIFIED)
        assert first not in [child.pid for child in active_children()]
    assert active_children() == []


def test_a_worker_that_cannot_begin_is_tried_again(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    ledger, refused = filled(opened(tmp_path), 2), []
    own = SpawnProcess.start

    def without_memory(process: SpawnProcess) -> None:
        if not refused:
            refused.append(process)
            raise OSError(errno.ENOMEM, "Cannot allocate memory")
        own(process)

    monkeypatch.setattr(SpawnProcess, "start", without_memory)
    with working(ledger):
        awaited(active_children)
    assert len(refused) == 1
    assert active_children() == []


@pytest.mark.slow
@pytest.mark.parametrize("told", [signal.SIGTERM, signal.SIGINT])
def test_a_demonstration_that_is_told_to_end_leaves_nothing(tmp_path: Path, told: signal.Signals) -> None:
    folder, log = tmp_path / "temporary", tmp_path / "log"
    folder.mkdir()
    command = [sys.executable, "-m", "rocerf.cli", "serve", "--demo", "--port", "0", "--no-worker"]
    with log.open("wb") as stream:
        server = subprocess.Popen(command, env={**os.environ, "TMPDIR": str(folder)}, stdout=stream, stderr=stream)
    try:
        awaited(lambda: re.search("Listening", log.read_text()))
        assert list(folder.rglob("*.keys"))
        time.sleep(1.0)  # uvicorn takes signals over
    finally:
        server.send_signal(told)
        server.wait(timeout=60)
    assert server.returncode == 0, log.read_text()
    assert list(folder.iterdir()) == []
