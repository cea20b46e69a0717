"""The service under load, on loopback: a deletion previewed and carried out while clients read; many letters are out.

Adult with the promise ``first_order`` about 40 deletions; server and worker are processes of their own over one SQLite
ledger. One person asks to be deleted who has the 60 rows that harm outstanding letters most: more than the promise
speaks about, and the worst that could be chosen, so that thousands of letters break and are written anew. Reported:
preview, the deletion from its order to its certificate (retrain, recheck every letter, reissue what broke, purge), in
seconds of the clock and of the processes' own processor time, and as multiples of one retraining plus one product
people x parameters measured here; and what clients saw meanwhile. Bounded in requests and time. Run:
``python -m benchmarks.service_load`` (``--letters 500 --clients 5`` for a glance).
"""

from __future__ import annotations

import argparse
import http.client
import json
import os
import socket
import statistics
import subprocess
import sys
import tempfile
import threading
import time
from dataclasses import dataclass, field
from datetime import timedelta
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd

import rocerf
from benchmarks.record import processor_seconds, seconds, write_record
from rocerf.deletion.row_effects import RowEffects
from rocerf.ledger import Ledger
from rocerf.ledger.access import Role
from rocerf.service.server import access_of

K = 40
LIMIT_PREVIEW, LIMIT_DELETION = 5.0, 60.0
MOST_REQUESTS, MOST_SECONDS = 50_000, 300.0
READ = ("/api/v1/portfolio", "/api/v1/letters?limit=50", "/api/v1/letters/{n}", "/api/v1/letters/{n}/history")


@dataclass
class Seen:
    """What clients saw: milliseconds of answers, and what was no answer."""

    milliseconds: list[float] = field(default_factory=list)
    errors: list[str] = field(default_factory=list)


class Client:
    """One connection with one token, kept open."""

    def __init__(self, port: int, token: str) -> None:
        self._connection = http.client.HTTPConnection("127.0.0.1", port, timeout=60)
        self._headers = {"Authorization": f"Bearer {token}", "Content-Type": "application/json"}

    def ask(self, method: str, path: str, body: Any = None) -> tuple[int, Any]:
        """The status and the document of an answer."""
        self._connection.request(method, path, None if body is None else json.dumps(body), self._headers)
        answer = self._connection.getresponse()
        return answer.status, json.loads(answer.read())


def filled(ledger: Ledger, letters: int, rows: int) -> rocerf.Rocerf:
    """A ledger with Adult's model, so many letters, and one person who has the rows that harm most."""
    data = rocerf.load_dataset("adult")
    model = rocerf.LogisticModel.fit(data.train, C=1.0)
    explainer = rocerf.Rocerf(model, K, promise="first_order")
    people = pd.concat([data.test.frame(), data.train.frame()], ignore_index=True)
    denied = people[model.predict(people) == 0].head(letters)
    denied.index = [f"applicant-{place}" for place in range(len(denied))]
    ledger.models.register(explainer, actor="benchmark", label="Adult")
    until = ledger.core.now().date() + timedelta(days=180)
    ledger.letters.issue(denied, valid_until=until, actor="benchmark")
    points = explainer.explain(denied.head(500)).points
    effects = RowEffects.of(model)
    harm = effects.vectors @ model.score_gradient(points).mean(axis=0)
    ids = model.train.ids[effects.rows[np.argsort(harm)[:rows]]].tolist()
    ledger.people.assign_rows({"asks to be deleted": ids}, actor="benchmark")
    return explainer


def floor(explainer: rocerf.Rocerf, ids: list[Any], letters: int) -> dict[str, float]:
    """One retraining without the rows, and one product people x parameters: seconds of the clock and the processor."""
    model, points = explainer.model, np.zeros((letters, len(explainer.model.train.columns)))
    retraining, new = seconds(lambda: model.forget(ids))
    product, _ = seconds(lambda: new.score(points))
    return {
        "retraining_seconds": retraining,
        "product_seconds": product,
        "retraining_cpu": processor_seconds(lambda: model.forget(ids))[0],
        "product_cpu": processor_seconds(lambda: new.score(points))[0],
    }


def cpu_of(process: int) -> float:
    """Seconds of the processor that a process has used so far (Linux; elsewhere not a number)."""
    try:
        fields = Path(f"/proc/{process}/stat").read_text("ascii").rpartition(")")[2].split()
    except OSError:
        return float("nan")
    return (int(fields[11]) + int(fields[12])) / float(os.sysconf("SC_CLK_TCK"))


def read_on(client: Client, letters: int, pause: float, seed: int, stop: threading.Event, seen: Seen) -> None:
    """Read one thing after another until told to stop."""
    rng = np.random.default_rng(seed)
    while not stop.is_set() and len(seen.milliseconds) < MOST_REQUESTS:
        path = READ[int(rng.integers(len(READ)))].replace("{n}", str(int(rng.integers(1, letters + 1))))
        began = time.perf_counter()
        try:
            status, _ = client.ask("GET", path)
            if status != 200:
                seen.errors.append(f"{status} {path.partition('?')[0]}")
        except (OSError, http.client.HTTPException, ValueError) as error:
            seen.errors.append(type(error).__name__)
        seen.milliseconds.append(1000 * (time.perf_counter() - began))
        stop.wait(pause)


def deleted(client: Client, deadline: float, server: int, worker: int) -> dict[str, Any]:
    """Take a request in, preview it, approve it, have it carried out; how long the two took, and what came of it."""
    _, made = client.ask("POST", "/api/v1/deletions", {"person": "asks to be deleted"})
    place = f"/api/v1/deletions/{made['id']}"
    client.ask("POST", f"{place}/verify", {})
    began, at_server = time.perf_counter(), cpu_of(server)
    status, preview = client.ask("POST", f"{place}/preview")
    preview_seconds, preview_cpu = time.perf_counter() - began, cpu_of(server) - at_server
    assert status == 200, preview
    client.ask("POST", f"{place}/approve")
    began, at_worker = time.perf_counter(), cpu_of(worker)
    _, job = client.ask("POST", "/api/v1/deletions/carry-out", {"requests": [made["id"]]})
    while job["state"] not in ("done", "failed") and time.perf_counter() < deadline:
        time.sleep(0.25)
        _, job = client.ask("GET", f"/api/v1/jobs/{job['id']}")
    took, deletion_cpu = time.perf_counter() - began, cpu_of(worker) - at_worker
    counts = {name: preview[name] for name in ("rows", "letters", "broken", "broken_within_promise")}
    outcome = {"job": job["state"], "result": job["result"]}
    clock = {"preview_seconds": preview_seconds, "deletion_seconds": took}
    # The server's own time while it previewed, readers included; the worker's while it carried out.
    return {**clock, "preview_cpu": preview_cpu, "deletion_cpu": deletion_cpu, "preview": counts, **outcome}


def measure(letters: int, clients: int, rows: int, pause: float) -> tuple[dict[str, Any], str]:
    """Everything, in a folder that goes afterwards; and the checksum of the rows."""
    with tempfile.TemporaryDirectory() as folder:
        url = f"sqlite:///{folder}/ledger.db"
        with Ledger.open(url) as ledger:
            explainer = filled(ledger, letters, rows)
            ids = list(ledger.people.rows_of("asks to be deleted"))
            access = access_of(ledger)
            readers = [access.issue(f"reader {place}", Role.OFFICER, days=1).secret for place in range(clients)]
            officer = access.issue("protection", Role.PROTECTION, days=1).secret
        least = floor(explainer, ids, letters)
        with socket.socket() as probe:
            probe.bind(("127.0.0.1", 0))
            port = probe.getsockname()[1]
        command = [sys.executable, "-m", "rocerf.cli"]
        with (Path(folder) / "log").open("w") as log:
            running = [
                subprocess.Popen([*command, *more, "--database", url], stdout=log, stderr=log, env=dict(os.environ))
                for more in (["serve", "--no-worker", "--port", str(port)], ["worker"])
            ]
            try:
                pids = (running[0].pid, running[1].pid)
                measured = _under_load(port, officer, readers, letters, pause, pids)
            finally:
                for process in running:
                    process.terminate()
                for process in running:
                    process.wait(timeout=60)
        clock = least["retraining_seconds"] + least["product_seconds"]
        processor = least["retraining_cpu"] + least["product_cpu"]
        measured |= {
            "letters": letters,
            "clients": clients,
            "pause_seconds": pause,
            "k": K,
            "promise": "first_order",
            "schema": None,
            "database": "sqlite",
            "load_average": list(os.getloadavg()),
            **least,
            "preview_floors": measured["preview_seconds"] / clock,
            "deletion_floors": measured["deletion_seconds"] / clock,
            "preview_cpu_floors": measured["preview_cpu"] / processor,
            "deletion_cpu_floors": measured["deletion_cpu"] / processor,
        }
        return measured, explainer.model.train.checksum


def _under_load(
    port: int, officer: str, readers: list[str], letters: int, pause: float, pids: tuple[int, int]
) -> dict[str, Any]:
    for _ in range(600):
        try:
            if Client(port, officer).ask("GET", "/ready")[0] == 200:
                break
        except OSError:
            time.sleep(0.1)
    stop, seen = threading.Event(), [Seen() for _ in readers]
    threads = [
        threading.Thread(target=read_on, args=(Client(port, token), letters, pause, place, stop, seen[place]))
        for place, token in enumerate(readers)
    ]
    for thread in threads:
        thread.start()
    try:
        time.sleep(2.0)
        told = deleted(Client(port, officer), time.perf_counter() + MOST_SECONDS, *pids)
    finally:
        stop.set()
        for thread in threads:
            thread.join(timeout=120)
    times = sorted(ms for one in seen for ms in one.milliseconds)
    errors = [error for one in seen for error in one.errors]
    return {
        **told,
        "requests": len(times),
        "errors": len(errors),
        "first_errors": errors[:5],
        "p50_milliseconds": statistics.median(times),
        "p99_milliseconds": times[int(0.99 * (len(times) - 1))],
        "longest_milliseconds": times[-1],
    }


def main() -> int:
    """Measure, write the record, and say what was missed."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--letters", type=int, default=10_000)
    parser.add_argument("--clients", type=int, default=50)
    parser.add_argument("--rows", type=int, default=60, help="training rows of the person who asks")
    parser.add_argument("--pause", type=float, default=0.5, help="seconds that a client waits between two requests")
    given = parser.parse_args()
    measured, checksum = measure(given.letters, given.clients, given.rows, given.pause)
    print(json.dumps(measured, indent=1))
    path = write_record("service_load", measured, seed=0, checksums={"adult": checksum})
    print(f"Record: {path}")
    missed = [
        what
        for what, bad in (
            ("an error", measured["errors"] > 0 or measured["job"] != "done"),
            (f"preview over {LIMIT_PREVIEW} s", measured["preview_seconds"] > LIMIT_PREVIEW),
            (f"deletion over {LIMIT_DELETION} s", measured["deletion_seconds"] > LIMIT_DELETION),
        )
        if bad
    ]
    print(f"Missed: {', '.join(missed) or 'nothing'}")
    return 1 if missed else 0


if __name__ == "__main__":
    raise SystemExit(main())
