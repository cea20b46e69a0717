"""Somebody with rare values is erased through a real server and worker; then every byte they wrote is searched."""

from __future__ import annotations

import json
import os
import re
import signal
import socket
import subprocess
import sys
import time
import urllib.request
from pathlib import Path
from typing import Any

import pytest

import ledgers
from ledgers import PLANTED
from residue import Planted

NAME = "Zephyrine Quintaloup 1871"
WORDS = "Zephyrine wrote from Quixotebury"


class Asking:
    """One token at one address."""

    def __init__(self, port: int, token: str) -> None:
        self.port, self.token = port, token

    def __call__(self, method: str, path: str, body: Any = None) -> Any:
        headers = {"Authorization": f"Bearer {self.token}", "Content-Type": "application/json"}
        data = None if body is None else json.dumps(body).encode()
        url = f"http://127.0.0.1:{self.port}{path}"
        with urllib.request.urlopen(urllib.request.Request(url, data, headers, method=method), timeout=60) as answer:
            return json.load(answer)


def until(what: Any, seconds: float = 120.0) -> Any:
    """What is there in the end; a server that is not up yet is asked again."""
    end = time.monotonic() + seconds
    while time.monotonic() < end:
        try:
            if found := what():
                return found
        except OSError:
            pass
        time.sleep(0.1)
    raise AssertionError("it did not come")


@pytest.mark.slow
def test_nothing_of_a_person_is_left_by_a_real_server_and_a_real_worker(tmp_path: Path, figures: list[str]) -> None:
    home, scratch = tmp_path / "home", tmp_path / "scratch"
    home.mkdir()
    scratch.mkdir()
    ledgers.explainer().save(home / "credit")
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        port = probe.getsockname()[1]
    command = [sys.executable, "-m", "rocerf.cli", "serve", "--port", str(port), "--model", "credit", "--hand-over"]
    with (home / "out.log").open("w") as out, (home / "err.log").open("w") as err:
        server = subprocess.Popen(command, cwd=home, stdout=out, stderr=err, env={**os.environ, "TMPDIR": str(scratch)})
    looked = Planted([NAME, WORDS, "Quixotebury"], PLANTED.values())
    try:
        shown = until(lambda: re.search(r"shown once: (\S+)", (home / "out.log").read_text()))
        admin = Asking(port, shown[1])
        until(lambda: admin("GET", "/api/v1/me"))
        assert looked.in_files(home)  # the search finds the saved explainer
        officer, one, two = (
            Asking(port, admin("POST", "/api/v1/tokens", {"name": who, "person": who, "role": role})["secret"])
            for who, role in (
                ("Ann", "officer"),
                ("Ben", "data-protection-officer"),
                ("Cid", "data-protection-officer"),
            )
        )
        one("POST", "/api/v1/people/rows", {"rows": {NAME: ["row-7"]}})
        values = {"income": 9000.5, "debt": 41987.65625}
        issued = officer("POST", "/api/v1/letters", {"people": [{"person": NAME, "values": values}]})["letters"][0]
        officer("POST", "/api/v1/people/data", {"person": NAME, "values": PLANTED})
        officer("POST", f"/api/v1/letters/{issued['id']}/withdraw", {"reason": WORDS})
        number = one("POST", "/api/v1/deletions", {"person": NAME, "source": "Quixotebury"})["id"]
        place = f"/api/v1/deletions/{number}"
        one("POST", f"{place}/hold", {"reason": WORDS})
        one("POST", f"{place}/resume")
        one("POST", f"{place}/verify", {"how": "passport of Quixotebury"})
        one("POST", f"{place}/preview")
        two("POST", f"{place}/approve")
        job = two("POST", "/api/v1/deletions/carry-out", {"requests": [number]})["id"]
        done = until(lambda: (j := two("GET", f"/api/v1/jobs/{job}"))["state"] in ("done", "failed") and j)
        assert (done["state"], done["error"]) == ("done", "")
        certificate = two("GET", f"{place}/certificate")
        assert certificate["removed"]["copies"] == 1
        assert not (home / "credit").exists()
        assert looked.in_files(tmp_path) == []  # while server and worker run: database, its log, keys, streams
        assert two("POST", "/api/v1/audit/verify")["whole"]
    finally:
        server.send_signal(signal.SIGINT)
        server.wait(timeout=60)
    written = sorted(path.name for path in tmp_path.rglob("*") if path.is_file())
    assert looked.in_files(tmp_path) == []
    figures.append(f"a real server and worker: searched {', '.join(written)}; nothing of the person was left")
