"""The processes of a run: tasks go to and fro, a dead one is told, and an interruption leaves nobody behind."""

from __future__ import annotations

import os
import signal
import sys
import time
from pathlib import Path

import pytest

from interrupting import hearing_ctrl_c, interrupted
from rocerf.reproduction import workers
from rocerf.reproduction.workers import WorkerPool, interruptible

pytestmark = pytest.mark.slow


def task(kind: str, path: str = "") -> object:
    """What a worker is asked to do here."""
    if kind == "die":
        os._exit(1)
    if kind == "stubborn":
        signal.signal(signal.SIGTERM, signal.SIG_IGN)
        Path(path).write_text(str(os.getpid()), "utf-8")
        time.sleep(600)
    return kind, signal.getsignal(signal.SIGINT) is signal.SIG_IGN


def alive(pid: int) -> bool:
    try:
        os.kill(pid, 0)
    except ProcessLookupError:
        return False
    return True


def test_results_come_back_and_deaths_are_told() -> None:
    with WorkerPool(task, 2) as pool:
        pool.submit("one", ("hello",))
        pool.submit("two", ("die",))
        assert (pool.free, sorted(pool.running)) == (0, ["one", "two"])
        found = []
        while pool.running:
            found += pool.ended()
        assert sorted(found) == [("one", ("hello", True), False), ("two", None, True)]
        pool.submit("three", ("again",))
        while pool.running:
            found += pool.ended()
        assert found[-1] == ("three", ("again", True), False)


def whoami() -> int:
    return os.getpid()


def test_tasks_of_a_kind_stay_with_their_worker() -> None:
    with WorkerPool(whoami, 2) as pool:
        seen: dict[str, set[int]] = {"a": set(), "b": set()}
        for kind in "abaabb":
            pool.submit(kind, (), kind)
            while not (found := pool.ended()):
                pass
            seen[kind].add(found[0][1])
        assert [len(pids) for pids in seen.values()] == [1, 1]
        assert seen["a"] != seen["b"]
        pool.submit("c", (), "c")  # a third kind takes one of the two
        while not (found := pool.ended()):
            pass
        assert found[0][1] in seen["a"] | seen["b"]


@pytest.mark.skipif(os.name == "nt", reason="signals")
def test_a_worker_that_does_not_end_is_killed(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(workers, "GRACE", 0.5)
    mark = tmp_path / "pid"
    with WorkerPool(task, 1) as pool:
        pool.submit("one", ("stubborn", str(mark)))
        deadline = time.monotonic() + 120
        while not mark.is_file() or not mark.read_text("utf-8"):
            assert time.monotonic() < deadline
            pool.ended()
    assert not alive(int(mark.read_text("utf-8")))


def press(times: int) -> list[str]:
    """Ctrl-C so often; how far it came before it was raised."""
    reached = []
    try:
        with interruptible() as check:
            for _ in range(times):
                os.kill(os.getpid(), signal.SIGINT)
                time.sleep(0.05)  # where it would be raised
                reached.append("pressed")
            check()
            reached.append("checked")
    except KeyboardInterrupt:
        reached.append("raised")
    return reached


@pytest.mark.skipif(os.name == "nt", reason="signals")
def test_ctrl_c_is_held_back_until_asked_for() -> None:
    with hearing_ctrl_c():
        assert press(0) == ["checked"]
        assert press(1) == ["pressed", "raised"]
        assert press(2) == ["pressed", "raised"]  # the second time at once
        assert signal.getsignal(signal.SIGINT) is signal.default_int_handler


SCRIPT = """
import sys
from pathlib import Path
sys.path[:0] = {folders!r}
from test_workers import task
from rocerf.reproduction.workers import WorkerPool, interruptible

if __name__ == "__main__":
    with interruptible() as check, WorkerPool(task, 2) as pool:
        pool.submit("one", ("hello",))
        pool.submit("two", ("hello",))
        Path({mark!r}).touch()
        while True:
            pool.ended()
            check()
"""


@pytest.mark.skipif(os.name == "nt", reason="signals")
def test_ctrl_c_while_workers_are_being_born(tmp_path: Path) -> None:
    """They import for seconds, and a terminal's Ctrl-C reaches them too: no trace of theirs, and nobody stays."""
    mark, script = tmp_path / "mark", tmp_path / "script.py"
    script.write_text(
        SCRIPT.format(folders=[str(folder) for folder in Path(__file__).parents[:2]], mark=str(mark)), "utf-8"
    )
    _, err = interrupted([sys.executable, str(script)], mark.exists)
    assert err.count("Traceback") == 1
    assert err.splitlines()[-1] == "KeyboardInterrupt"
