"""``rocerf serve`` and ``rocerf worker``: what they open, print and answer; the socket itself in one slow test."""

from __future__ import annotations

import functools
import json
import os
import re
import signal
import socket
import subprocess
import sys
import time
import urllib.request
from contextlib import nullcontext
from pathlib import Path
from typing import Any

import pytest
from fastapi.testclient import TestClient

import ledgers
from rocerf.ledger import FileRows, Ledger
from rocerf.service import demo, logs, server


@pytest.fixture
def served(monkeypatch: pytest.MonkeyPatch) -> list[Any]:
    """Applications that a command would have served, asked for their portfolio with each printed token."""
    found: list[Any] = []

    def answer(app: Any, **options: Any) -> None:
        found.append((app, options, TestClient(app).get("/ready").status_code))

    monkeypatch.setattr(server, "serve", answer)
    monkeypatch.setattr(server, "listen", Listening)
    monkeypatch.setattr(demo, "fill", functools.partial(demo.fill, letters=2))
    yield found
    for handler in list(logs.log.handlers):
        logs.log.removeHandler(handler)


class Listening(nullcontext[Any]):
    """What listens nowhere: several tests run at once."""

    def __init__(self, *place: Any) -> None:
        super().__init__(self)
        self.place = place

    def getsockname(self) -> tuple[Any, ...]:
        return self.place


def tokens(out: str) -> dict[str, str]:
    return dict(re.findall(r"^Token \(([a-z-]+)\), shown once: (\S+)$", out, flags=re.MULTILINE))


def test_a_first_start_prints_one_token_and_a_second_none(run: Any, served: list[Any], tmp_path: Path) -> None:
    first = run("serve", "--no-worker")
    again = run("serve", "--no-worker", "--port", "9000", "--host", "::1")
    lost = run("serve", "--no-worker", "--admin-token")
    assert [list(tokens(one.out)) for one in (first, again, lost)] == [["admin"], [], ["admin"]]
    assert "Listening at http://127.0.0.1:8000" in first.out
    assert [ready for _, _, ready in served] == [200] * 3
    assert "Listening at http://[::1]:9000" in again.out
    assert served[1][1]["listening"].place == ("::1", 9000)
    assert served[1][1]["proxy"] is None
    assert (tmp_path / "rocerf-ledger.db").exists()
    secret = tokens(first.out)["admin"].encode()
    assert all(secret not in path.read_bytes() for path in tmp_path.iterdir())


@pytest.mark.slow
def test_the_demonstration_has_a_token_for_every_role_and_leaves_nothing(
    run: Any, served: list[Any], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("tempfile.tempdir", str(tmp_path / "scratch"))
    (tmp_path / "scratch").mkdir()
    done = run("serve", "--demo", "--no-worker")
    assert set(tokens(done.out)) == {"officer", "data-protection-officer", "auditor", "admin"}
    assert list((tmp_path / "scratch").iterdir()) == []
    assert not (tmp_path / "rocerf-ledger.db").exists()


def test_a_saved_explainer_is_registered_once(run: Any, served: list[Any], tmp_path: Path) -> None:
    ledgers.explainer().save(tmp_path / "credit")
    for expected in ("Registered:", "Already registered:"):
        assert expected in run("serve", "--no-worker", "--model", "credit").out
    with Ledger.open(f"sqlite:///{tmp_path}/rocerf-ledger.db") as ledger:
        assert [version.label.split()[0] for version in ledger.models.all()] == ["credit"]


def test_a_worker_does_what_waits(run: Any, tmp_path: Path) -> None:
    with ledgers.filled(Ledger.open(f"sqlite:///{tmp_path}/rocerf-ledger.db")) as ledger:
        number = ledgers.approved(ledger, "owner-7")
        ledger.deletions.carry_out(number, actor="dpo")
    assert run("worker", "--once").out == "Done: 1 job\n"
    assert run("worker", "--once").out == "Done: 0 jobs\n"
    with Ledger.open(f"sqlite:///{tmp_path}/rocerf-ledger.db") as ledger:
        assert ledger.requests.get(number).state.code == "certified"


@pytest.mark.parametrize(
    ("arguments", "sentence"),
    [
        (["--demo", "--model", "x"], "Expected --demo or --model"),
        (["--resolver", "nowhere:none"], "Expected a resolver"),
        (["--resolver", "math:pi"], "something to call"),
        (["--database", "mysql://x"], "Expected a database"),
        (["--database", "postgresql://localhost:1/x"], "Expected a key file"),
        (["--model", "nowhere"], "Expected"),
    ],
)
def test_bad_options_are_one_sentence(run: Any, arguments: list[str], sentence: str) -> None:
    done = run("serve", "--no-worker", *arguments)
    assert done.code == 2
    assert sentence in done.err
    assert "Traceback" not in done.err


def test_an_address_that_is_taken_is_said_before_anything_is_begun(run: Any, tmp_path: Path) -> None:
    with server.listen("127.0.0.1", 0) as taken:
        done = run("serve", "--no-worker", "--port", taken.getsockname()[1])
    assert (done.code, done.out) == (2, "")
    assert "Expected an address to listen at that is free" in done.err
    assert not (tmp_path / "rocerf-ledger.db").exists()


@pytest.mark.slow
def test_a_real_server_answers_and_ends(tmp_path: Path) -> None:
    """A process of its own on a free port: asked, told to end, and nothing but our lines on its streams."""
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        port = probe.getsockname()[1]
    command = [sys.executable, "-m", "rocerf.cli", "serve", "--port", str(port)]
    process = subprocess.Popen(
        command, cwd=tmp_path, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True, env=dict(os.environ)
    )
    try:
        health: dict[str, str] = {}
        for _ in range(600):
            try:
                with urllib.request.urlopen(f"http://127.0.0.1:{port}/health", timeout=5) as answer:
                    health = json.load(answer)
                break
            except OSError:
                assert process.poll() is None, process.communicate()
                time.sleep(0.1)
        assert health["status"] == "ok"
        process.send_signal(signal.SIGINT)
        out, err = process.communicate(timeout=60)
    finally:
        process.kill()
        process.wait()
    assert list(tokens(out)) == ["admin"]
    lines = [line for line in err.splitlines() if line != "rocerf: interrupted."]
    assert lines
    assert {json.loads(line)["event"] for line in lines} == {"request"}
    assert tokens(out)["admin"] not in err


def test_rows_stay_where_the_option_says(run: Any, served: list[Any], tmp_path: Path) -> None:
    frame, labels = ledgers.rows()
    table = frame.assign(repaid=labels).rename_axis("customer").reset_index()
    table.to_csv(tmp_path / "rows.csv", index=False)
    ledgers.explainer().save(tmp_path / "credit")
    rows = ["--rows", "rows.csv", "--rows-label", "repaid", "--rows-id", "customer"]
    started = run("serve", "--no-worker", "--model", "credit", "--hand-over", *rows)
    assert "keeps the ids alone" in started.out
    assert "the next deletion removes it" in started.out
    with Ledger.open(f"sqlite:///{tmp_path}/rocerf-ledger.db", rows=_source(tmp_path)) as ledger:
        ledger.people.assign_rows({"owner": ["row-7"]}, actor="admin")
        number = ledgers.approved(ledger, "owner")
        ledger.deletions.carry_out(number, actor="dpo")
    assert run("worker", "--once").code == 0  # without the rows nothing can be unlearned
    with Ledger.open(f"sqlite:///{tmp_path}/rocerf-ledger.db") as ledger:
        assert "rocerf serve --rows" in ledger.jobs.get(1).error
        assert ledger.requests.get(number).state.code == "approved"
        again = ledger.deletions.carry_out(number, actor="dpo")
    assert run("worker", "--once", *rows).code == 0
    with Ledger.open(f"sqlite:///{tmp_path}/rocerf-ledger.db") as ledger:
        assert "still gives out" in ledger.jobs.get(again.id).error
        assert ledger.requests.get(number).state.code == "rechecked"
    assert (tmp_path / "credit").exists()  # nothing is erased before


def _source(folder: Path) -> FileRows:
    return FileRows(folder / "rows.csv", label="repaid", id="customer")


@pytest.mark.parametrize(
    ("arguments", "sentence"),
    [(["--rows-label", "x"], "Expected --rows with"), (["--rows", "x.csv"], "Expected --rows-label with")],
)
def test_rows_are_named_whole(run: Any, arguments: list[str], sentence: str) -> None:
    for command in (["serve", "--no-worker"], ["worker", "--once"]):
        done = run(*command, *arguments)
        assert done.code == 2
        assert sentence in done.err
