"""Where a job was done and with what: recorded by the program in every job, never entered by hand.

A *sitting* is one call of the program on one machine. Every job carries the facts of its sitting; the list of sittings
of a run is read from its jobs (:func:`sittings_of`), so a run that was killed, or put together from parts, has them
all. Names of machines and folders are not recorded.
"""

from __future__ import annotations

import os
import platform
import subprocess
import sys
from collections.abc import Iterable, Mapping
from datetime import UTC, datetime
from functools import cache
from importlib import import_module
from importlib.metadata import PackageNotFoundError, version
from importlib.util import find_spec
from pathlib import Path
from typing import Any
from uuid import uuid4

from rocerf.reproduction.code_hash import ROOT, code_hash
from rocerf.version import __version__

PACKAGES = ("numpy", "scipy", "scikit-learn", "pandas", "highspy", "torch", "matplotlib", "PyYAML")

#: Packages that only draw and read: other versions of them compute nothing else.
NOT_COMPUTING = ("matplotlib", "PyYAML")

Facts = dict[str, Any]


def sitting_facts(device: str, workers: int, gpu_jobs: int | None = None) -> Facts:
    """What every job of a sitting that begins now records: code, versions and machine."""
    started = now()
    return {
        "sitting": f"{started}-{uuid4().hex[:8]}",
        "sitting_started": started,
        "code_sha256": code_hash(),
        **commit_of(ROOT),
        "machine": machine(),
        "cpu": cpu_model(),
        "cores": os.cpu_count(),
        "gpu": gpu_name(device),
        "device": device,
        "workers": workers,
        "gpu_jobs": gpu_jobs,
        "versions": versions(),
    }


def now() -> str:
    """The time in UTC, as ``2024-05-01T12:00:00.000+00:00``."""
    return datetime.now(UTC).isoformat(timespec="milliseconds")


def seconds_between(start: str, end: str) -> float:
    """Seconds from one time to another, both as :func:`now` writes them.

    >>> seconds_between("2024-05-01T12:00:00.000+00:00", "2024-05-01T12:01:30.500+00:00")
    90.5
    """
    return (datetime.fromisoformat(end) - datetime.fromisoformat(start)).total_seconds()


def commit_of(root: Path) -> Facts:
    """The commit of the package's folder and whether it was changed since; None where there is no repository of it."""
    nothing = {"commit": None, "dirty": None}
    if _git(root, "ls-files", "--error-unmatch", "__init__.py") is None:  # installed beside somebody else's repository
        return nothing
    commit, changed = _git(root, "rev-parse", "HEAD"), _git(root, "status", "--porcelain", "--", ".")
    return nothing if commit is None or changed is None else {"commit": commit, "dirty": bool(changed)}


def _git(folder: Path, *arguments: str) -> str | None:
    try:
        done = subprocess.run(
            ["git", "-C", str(folder), *arguments], capture_output=True, text=True, timeout=60, check=False
        )
    except (OSError, subprocess.SubprocessError):
        return None
    return done.stdout.strip() if done.returncode == 0 else None


@cache
def cpu_model() -> str:
    """The processor's name, as the system tells it."""
    try:
        lines = Path("/proc/cpuinfo").read_text("utf-8", errors="replace").splitlines()
    except OSError:
        lines = []
    named = (line.partition(":")[2].strip() for line in lines if line.lower().startswith("model name"))
    return next(named, "") or platform.processor() or platform.machine()


def machine() -> str:
    """Cores, processor and system in words."""
    return f"{os.cpu_count()} CPU cores ({cpu_model()}), {platform.machine()}, {platform.system()}"


@cache
def gpu_name(device: str) -> str | None:
    """The name of the GPU that networks live on; None where they live on the processor."""
    if not device.startswith("cuda"):
        return None
    import torch

    return str(torch.cuda.get_device_name(device))


@cache
def versions() -> dict[str, str]:
    """Of rocerf, Python and what computes or draws."""
    found = {"rocerf": __version__, "python": platform.python_version()}
    return found | {package: _version(package) for package in PACKAGES}


def _version(package: str) -> str:
    try:
        return version(package)
    except PackageNotFoundError:  # some images have torch on the path but not on record
        if find_spec(package) is None:
            return "not installed"
        return str(getattr(import_module(package), "__version__", "unknown"))


def computing_versions(facts: Mapping[str, Any]) -> dict[str, str]:
    """Those versions of a record on which its figures may depend."""
    known = facts.get("versions")
    return {} if not isinstance(known, Mapping) else {k: v for k, v in known.items() if k not in NOT_COMPUTING}


def threads_in_use() -> int:
    """The most threads that a numerical library of this process would take."""
    from threadpoolctl import threadpool_info

    counts = [int(library["num_threads"]) for library in threadpool_info()]
    torch = sys.modules.get("torch")
    if torch is not None:
        counts.append(int(torch.get_num_threads()))
    return max(counts, default=1)


def sittings_of(records: Iterable[Mapping[str, Any]]) -> list[Facts]:
    """The sittings in which these jobs were done, in order of time: facts, jobs done, and the time they took.

    A sitting lasts from its start until the last of its jobs that is used here ended.
    """
    found: dict[str, Facts] = {}
    for record in records:
        made = record.get("made")
        if not isinstance(made, Mapping) or "sitting" not in made:
            continue
        facts = found.setdefault(made["sitting"], _opened(made))
        facts["jobs_run"] += 1
        facts["ended"] = max(facts["ended"], made["ended"])
        facts["threads"] = max(facts["threads"], made["threads"])
        facts["job_seconds"] += float(record.get("seconds") or 0.0)
    for facts in found.values():
        facts["wall_seconds"] = seconds_between(facts["started"], facts["ended"])
    return sorted(found.values(), key=lambda facts: (facts["started"], facts["sitting"]))


def _opened(made: Mapping[str, Any]) -> Facts:
    """A sitting before its jobs are counted, from the facts that one of them recorded."""
    own = ("started", "ended", "threads", "sitting_started")
    facts = {name: value for name, value in made.items() if name not in own}
    return facts | {
        "started": made["sitting_started"], "ended": made["ended"], "threads": 0, "jobs_run": 0, "job_seconds": 0.0
    }  # fmt: skip
