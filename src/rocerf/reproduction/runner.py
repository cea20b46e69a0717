"""`rocerf reproduce`: settings in, a folder with every table, figure and the report out."""

from __future__ import annotations

import json
import os
import platform
import sys
import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from functools import cache
from importlib.metadata import PackageNotFoundError, version
from itertools import product
from os import PathLike
from pathlib import Path
from typing import Any

from rocerf.data.columns import is_number
from rocerf.data.datasets import load_dataset
from rocerf.errors import DatasetUnavailableError, FileFormatError, MissingExtraError, OptionError
from rocerf.models.options import positive_whole
from rocerf.reproduction.experiment import DATA, KINDS, Case, CasePlan, Experiment, plan_case, theorem_jobs
from rocerf.reproduction.jobs import JobFolder, Plan, PlanOutcome, Standing, run_jobs
from rocerf.reproduction.settings import ExperimentSettings
from rocerf.reproduction.tidy import write_tables
from rocerf.storage.whole_file import write_text
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
        got = ", ".join(only) or "none"
        raise OptionError(f"Expected kinds of jobs among {', '.join(KINDS)}, got {got}; correct it.")
    start = time.perf_counter()
    target = Path(folder)
    if target.exists() and not target.is_dir():
        raise OptionError(f"Expected a folder to write to, got the file {target}; name another with --out.")
    earlier = _earlier_sessions(target / "run.json")  # before the work: a file that cannot be read must not cost it
    cases, missing = plan_cases(settings)
    target.mkdir(parents=True, exist_ok=True)
    write_text(target / "settings.yaml", settings.to_yaml())
    plan = Plan([job for case in cases for job in case.jobs] + theorem_jobs(settings))
    jobs = JobFolder(target / "jobs")
    asked, experiment = plan if only is None else plan.only(only), Experiment(settings.device)
    record = _Record(target / "run.json", settings, cases, jobs, missing, workers, start, earlier)
    outcome = record.outcome

    def tell(standing: Standing) -> None:
        record.write()  # after every job, so that a run that is stopped or killed has its time on record
        if progress is not None:
            progress(standing)

    try:
        run_jobs(asked, jobs, experiment, workers=workers, progress=tell, outcome=outcome)
        write_tables(target, settings, plan, cases, jobs)
    except BaseException:
        if outcome.ran:  # else nothing was done that earlier records do not tell
            record.write()
        raise
    seconds = record.write()
    report, said = _report(target)
    failed = {**outcome.failed, **({"report": said} if said else {})}
    return Reproduction(target, report, len(outcome.ran), len(outcome.kept), missing, failed, seconds)


def plan_cases(settings: ExperimentSettings) -> tuple[list[CasePlan], dict[str, str]]:
    """The jobs of every case whose data can be had, and why the others are missing."""
    cases: list[CasePlan] = []
    missing: dict[str, str] = {}
    if "nn" in settings.models:
        _refuse_without_torch(settings.device)
    load = cache(lambda name: len(load_dataset(name).test))  # here and once: workers find a fetched file in the cache
    for dataset, setting in product(settings.datasets, settings.settings):
        try:
            rows = 0 if dataset in missing else load(DATA.get((setting, dataset), dataset))
        except DatasetUnavailableError as error:
            missing[dataset] = str(error)
        if dataset not in missing:
            cases += [plan_case(settings, Case(setting, dataset, model), rows) for model in settings.models]
    return cases, missing


def _refuse_without_torch(device: str) -> None:
    from importlib.util import find_spec

    if find_spec("torch") is None:
        raise MissingExtraError("torch", "nn", "Reproducing the networks (leave them out with --models lr)")
    from rocerf.models.network.network import checked_device

    checked_device(device)


@dataclass
class _Record:
    """run.json: what is needed to make the run again, and what it met; runs that were continued are listed.

    Jobs may have been copied here from other machines. Put their sessions (each is in its own run.json) into the list
    ``sessions`` of this one before going on: they are kept, and a ``note`` is shown in the report.
    """

    path: Path
    settings: ExperimentSettings
    cases: list[CasePlan]
    jobs: JobFolder
    missing: dict[str, str]
    workers: int
    start: float
    earlier: list[dict[str, Any]]
    outcome: PlanOutcome = field(default_factory=PlanOutcome)

    def write(self) -> float:
        """Write how the run stands now; returns the seconds since its start."""
        seconds = time.perf_counter() - self.start
        outcome, versions = self.outcome, _versions()
        session = {"machine": _machine(), "device": _device(self.settings.device), "workers": self.workers}
        session |= {"wall_seconds": seconds, "jobs_run": len(outcome.ran), "jobs_kept": len(outcome.kept)}
        session["versions"] = versions
        earlier = self.earlier if outcome.kept else []
        sessions = [*earlier, session] if outcome.ran or not earlier else earlier
        document: dict[str, Any] = {
            "preset": self.settings.preset,
            "wall_seconds": sum(float(part["wall_seconds"]) for part in sessions),
            "sessions": sessions,
            "seeds": {"seed": self.settings.seed, "evaluation_seed": self.settings.evaluation_seed},
            "versions": versions,
            "data_sha256": {
                case.case.name: self.jobs.result(case.model_job)["data_sha256"]
                for case in self.cases
                if case.model_job in outcome.finished
            },
            "missing": self.missing,
            "failed": outcome.failed,
        }
        write_text(self.path, json.dumps(document, indent=1))
        return seconds


def _earlier_sessions(path: Path) -> list[dict[str, Any]]:
    """The sessions of a run.json that is there already, some perhaps entered by hand."""
    if not path.exists():
        return []
    try:
        document = json.loads(path.read_text("utf-8"))
    except (OSError, ValueError) as error:
        raise FileFormatError(
            f"Expected the record of an earlier run in {path}, got what cannot be read ({error}); correct or remove it."
        ) from None
    sessions = document.get("sessions", []) if isinstance(document, dict) else None
    if not isinstance(sessions, list) or not all(
        isinstance(part, dict) and is_number(part.get("wall_seconds")) for part in sessions
    ):
        raise FileFormatError(
            f"Expected an object with a list of sessions in {path}, each with its wall_seconds as a number, got "
            "something else; correct or remove it."
        )
    return sessions


def _machine() -> str:
    return f"{os.cpu_count()} CPU cores, {platform.machine()}, {platform.system()}"


@cache
def _device(name: str) -> str:
    """Where networks were trained, with the name of a GPU."""
    if not name.startswith("cuda"):
        return name
    import torch

    return f"{name}: {torch.cuda.get_device_name(name)}"


@cache
def _versions() -> dict[str, str]:
    found = {"rocerf": __version__, "python": platform.python_version()}
    for package in PACKAGES:
        try:
            found[package] = version(package)
        except PackageNotFoundError:  # some images have torch on the path but not on record
            found[package] = str(getattr(sys.modules.get(package), "__version__", "not installed"))
    return found


def _report(target: Path) -> tuple[Path | None, str]:
    """The report, or why there is none: it must not cost the figures that are already written."""
    try:
        from rocerf.reproduction.report import write_report

        return write_report(target), ""
    except Exception as error:
        if os.environ.get("ROCERF_DEBUG"):
            raise
        return None, f"{type(error).__name__}: {error}"
