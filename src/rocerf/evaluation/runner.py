"""`rocerf reproduce`: settings in, a folder with every table, figure and the report out."""

from __future__ import annotations

import json
import os
import platform
import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from importlib.metadata import version
from os import PathLike
from pathlib import Path
from typing import Any

from rocerf.data.datasets import load_dataset
from rocerf.errors import DatasetUnavailableError, MissingExtraError, OptionError
from rocerf.evaluation.experiment import DATA, KINDS, Case, CasePlan, Experiment, plan_case, theorem_jobs
from rocerf.evaluation.jobs import JobFolder, Outcome, Plan, Standing, run_jobs
from rocerf.evaluation.settings import ExperimentSettings
from rocerf.evaluation.tidy import write_tables
from rocerf.models.options import positive_whole
from rocerf.version import __version__

PACKAGES = ("numpy", "scipy", "scikit-learn", "pandas", "torch", "matplotlib", "PyYAML")


@dataclass(frozen=True)
class Reproduction:
    """What a run left behind: its folder, the report, what was missing and what failed, each with its reason.

    ``ran`` and ``kept`` count jobs done now and taken over from earlier runs.
    """

    folder: Path
    report: Path | None
    ran: int
    kept: int
    missing: dict[str, str]
    failed: dict[str, str]
    wall_seconds: float

    @property
    def causes(self) -> dict[str, str]:
        """The failed jobs that failed by themselves, not for want of another one."""
        return {name: reason for name, reason in self.failed.items() if not reason.endswith(", which failed")}


def reproduce(
    settings: ExperimentSettings,
    folder: str | PathLike[str],
    *,
    workers: int = 1,
    only: Sequence[str] | None = None,
    progress: Callable[[Standing], None] | None = None,
) -> Reproduction:
    """Run the experiment into a folder, taking over what is finished there; then write tables and the report.

    ``only`` are the kinds of jobs to do now, with what they need: the networks on a machine with a GPU, say, and the
    rest elsewhere. A data set that cannot be had is left out and named; a job that fails is named with its reason.
    """
    positive_whole(workers, "workers")
    if only is not None and (not only or set(only) - set(KINDS)):
        raise OptionError(
            f"Expected kinds of jobs among {', '.join(KINDS)}, got {', '.join(only) or 'none'}; correct it."
        )
    start = time.perf_counter()
    target = Path(folder)
    if target.exists() and not target.is_dir():
        raise OptionError(f"Expected a folder to write to, got the file {target}; name another with --out.")
    cases, missing = plan_cases(settings)
    target.mkdir(parents=True, exist_ok=True)
    (target / "settings.yaml").write_text(settings.to_yaml(), "utf-8")
    plan = Plan([job for case in cases for job in case.jobs] + theorem_jobs(settings))
    jobs = JobFolder(target / "jobs")
    asked = plan if only is None else plan.only(only)
    outcome = run_jobs(asked, jobs, Experiment(settings.device), workers=workers, progress=progress)
    write_tables(target, settings, plan, cases, jobs)
    seconds = time.perf_counter() - start
    _write_run(target, settings, cases, jobs, outcome, missing, workers, seconds)
    report, said = _report(target)
    failed = {**outcome.failed, **({"report": said} if said else {})}
    return Reproduction(target, report, len(outcome.ran), len(outcome.kept), missing, failed, seconds)


def plan_cases(settings: ExperimentSettings) -> tuple[list[CasePlan], dict[str, str]]:
    """The jobs of every case whose data can be had, and why the others are missing."""
    cases, missing = [], {}
    if "nn" in settings.models:
        _refuse_without_torch(settings.device)
    sizes: dict[str, int] = {}
    for dataset in settings.datasets:
        for setting in settings.settings:
            name = DATA.get((setting, dataset), dataset)
            if dataset in missing:
                continue
            try:  # here and once, so that workers find a fetched file in the cache
                if name not in sizes:
                    sizes[name] = len(load_dataset(name).test)
            except DatasetUnavailableError as error:
                missing[dataset] = str(error)
                continue
            cases += [plan_case(settings, Case(setting, dataset, model), sizes[name]) for model in settings.models]
    return cases, missing


def _refuse_without_torch(device: str) -> None:
    from importlib.util import find_spec

    if find_spec("torch") is None:
        raise MissingExtraError("torch", "nn", "Reproducing the networks (leave them out with --models lr)")
    from rocerf.models.network import checked_device

    checked_device(device)


def _write_run(
    target: Path,
    settings: ExperimentSettings,
    cases: list[CasePlan],
    jobs: JobFolder,
    outcome: Outcome,
    missing: dict[str, str],
    workers: int,
    seconds: float,
) -> None:
    """run.json: what is needed to make the run again, and what it met; runs that were continued are listed.

    Jobs may have been copied here from other machines. Put their sessions (each is in its own run.json) into the list
    ``sessions`` of this one before going on: they are kept, and a ``note`` is shown in the report.
    """
    path = target / "run.json"
    session = {
        "machine": _machine(),
        "device": _device(settings.device),
        "workers": workers,
        "wall_seconds": seconds,
        "jobs_run": len(outcome.ran),
        "jobs_kept": len(outcome.kept),
        "versions": _versions(),
    }
    try:
        earlier = json.loads(path.read_text("utf-8"))["sessions"] if outcome.kept else []
    except (OSError, ValueError, KeyError):
        earlier = []
    sessions = [*earlier, session] if outcome.ran or not earlier else earlier
    checksums = {
        case.case.name: jobs.result(case.model_job)["data_sha256"]
        for case in cases
        if case.model_job in outcome.finished
    }
    document: dict[str, Any] = {
        "preset": settings.preset,
        "wall_seconds": sum(float(part["wall_seconds"]) for part in sessions),
        "sessions": sessions,
        "seeds": {"seed": settings.seed, "evaluation_seed": settings.evaluation_seed},
        "versions": _versions(),
        "data_sha256": checksums,
        "missing": missing,
        "failed": outcome.failed,
    }
    jobs.replace_text(path, json.dumps(document, indent=1))


def _machine() -> str:
    return f"{os.cpu_count()} CPU cores, {platform.machine()}, {platform.system()}"


def _device(name: str) -> str:
    """Where networks were trained, with the name of a GPU."""
    if not name.startswith("cuda"):
        return name
    import torch

    return f"{name}: {torch.cuda.get_device_name(name)}"


def _versions() -> dict[str, str]:
    from importlib.metadata import PackageNotFoundError

    found = {"rocerf": __version__, "python": platform.python_version()}
    for package in PACKAGES:
        try:
            found[package] = version(package)
        except PackageNotFoundError:
            found[package] = "not installed"
    return found


def _report(target: Path) -> tuple[Path | None, str]:
    """The report, or why there is none: it must not cost the figures that are already written."""
    try:
        from rocerf.evaluation.paper_report import write_report

        return write_report(target), ""
    except Exception as error:
        if os.environ.get("ROCERF_DEBUG"):
            raise
        return None, f"{type(error).__name__}: {error}"
