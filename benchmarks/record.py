"""Writing measurements down with what is needed to make them again."""

from __future__ import annotations

import json
import os
import platform
import time
from collections.abc import Callable
from importlib.metadata import version
from pathlib import Path
from typing import Any

import rocerf
from rocerf.storage.whole_file import write_text

PACKAGES = ("numpy", "scipy", "scikit-learn", "pandas")


def seconds(action: Callable[[], Any], repeats: int = 3) -> tuple[float, Any]:
    """The shortest of several timings, and what the action returned."""
    best, result = float("inf"), None
    for _ in range(repeats):
        start = time.perf_counter()
        result = action()
        best = min(best, time.perf_counter() - start)
    return best, result


def write_record(name: str, measured: dict[str, Any], *, seed: int, checksums: dict[str, str]) -> Path:
    """Measurements as JSON under out/, with versions, machine, seed and data checksums."""
    target = Path("out") / f"{name}.json"
    target.parent.mkdir(exist_ok=True)
    document = {
        "benchmark": name,
        "measured": measured,
        "seed": seed,
        "data_sha256": checksums,
        "versions": {"rocerf": rocerf.__version__, "python": platform.python_version()}
        | {package: version(package) for package in PACKAGES},
        "machine": {"cpus": os.cpu_count(), "processor": platform.machine()},
    }
    write_text(target, json.dumps(document, indent=1))
    return target
