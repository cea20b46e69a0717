"""Writing measurements down with what is needed to make them again."""

from __future__ import annotations

import hashlib
import json
import os
import platform
import time
from collections.abc import Callable
from functools import reduce
from importlib.metadata import version
from pathlib import Path
from typing import Any

import rocerf
from rocerf.reproduction.code_hash import ROOT
from rocerf.reproduction.provenance import commit_of, cpu_model
from rocerf.storage.whole_file import write_text

PACKAGES = ("numpy", "scipy", "scikit-learn", "pandas")


def seconds(action: Callable[[], Any], repeats: int = 3) -> tuple[float, Any]:
    """The shortest of several timings, and what the action returned."""
    return _shortest(time.perf_counter, action, repeats)


def processor_seconds(action: Callable[[], Any], repeats: int = 3) -> tuple[float, Any]:
    """The same in processor time of all threads, so that other work on the machine does not count."""
    return _shortest(time.process_time, action, repeats)


def _shortest(clock: Callable[[], float], action: Callable[[], Any], repeats: int) -> tuple[float, Any]:
    best, result = float("inf"), None
    for _ in range(repeats):
        start = clock()
        result = action()
        best = min(best, clock() - start)
    return best, result


def code_sha256() -> str:
    """One hash of all source files of the package: which code was measured, without a repository at hand."""
    root = Path(rocerf.__file__).parent
    digest = hashlib.sha256()
    for path in sorted(root.rglob("*.py")):
        digest.update(path.relative_to(root).as_posix().encode() + b"\0" + path.read_bytes() + b"\0")
    return digest.hexdigest()


def write_record(name: str, measured: dict[str, Any], *, seed: int, checksums: dict[str, str]) -> Path:
    """Measurements as JSON under out/, with versions, machine, seed and data checksums."""
    target = Path("out") / f"{name}.json"
    target.parent.mkdir(exist_ok=True)
    document = {
        "benchmark": name,
        "measured": measured,
        "seed": seed,
        "data_sha256": checksums,
        "code_sha256": code_sha256(),
        "versions": {"rocerf": rocerf.__version__, "python": platform.python_version()}
        | {package: version(package) for package in PACKAGES},
        **commit_of(ROOT),
        "machine": {"cpus": os.cpu_count(), "cpu": cpu_model(), "processor": platform.machine()},
    }
    write_text(target, json.dumps(document, indent=1))
    return target


def add_to_record(name: str, pieces: dict[str, dict[str, Any]], *, seed: int, checksums: dict[str, str]) -> Path:
    """Put pieces, each under its name and with the code that it was measured with, beside those of out/<name>.json.

    So a long measurement can be made in several sittings; a piece that is measured again takes the old one's place.
    """
    target = Path("out") / f"{name}.json"
    before = json.loads(target.read_text()) if target.exists() else {"measured": {}, "data_sha256": {}}
    code = code_sha256()
    measured = before["measured"] | {key: {**piece, "code_sha256": code} for key, piece in pieces.items()}
    return write_record(name, measured, seed=seed, checksums=before["data_sha256"] | checksums)


def joined_record(paths: list[str], name: str, *, part: str | None = None) -> int:
    """Put records together that measured parts of one thing with the same code; writes out/<name>.json.

    With ``part``, mappings that have this key are taken whole, the later one where two are of the same thing, and name
    the code that they were measured with: then it may differ.
    """
    documents = [json.loads(Path(path).read_text()) for path in paths]
    if part is None and len({document["code_sha256"] for document in documents}) != 1:
        raise SystemExit("expected records of one version of the code; measure again what is older")
    for document in documents:
        _name_code(document["measured"], part, document["code_sha256"])
    whole = {**reduce(lambda first, second: _together(first, second, part), documents), "benchmark": name}
    target = Path("out") / f"{name}.json"
    target.parent.mkdir(exist_ok=True)
    write_text(target, json.dumps(whole, indent=1))
    print("written:", target)
    return 0


def _name_code(found: Any, part: str | None, code: str) -> None:
    if isinstance(found, dict) and part in found:
        found.setdefault("code_sha256", code)
    elif isinstance(found, dict):
        for below in found.values():
            _name_code(below, part, code)


def _together(first: Any, second: Any, part: str | None) -> Any:
    if isinstance(first, dict) and isinstance(second, dict) and part not in second:
        both = {key: _together(first[key], second[key], part) for key in first.keys() & second.keys()}
        return first | second | both
    return second
