"""`rocerf reproduce`: settings in, a folder with every table, figure and the report out."""

from __future__ import annotations

import os
import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import cache
from itertools import product
from os import PathLike
from pathlib import Path

from rocerf.data.datasets import load_dataset
from rocerf.errors import DatasetUnavailableError, MissingExtraError, OptionError
from rocerf.models.options import positive_whole
from rocerf.reproduction.as_published import DATA, WEIGHTS, left_out
from rocerf.reproduction.expected import expected_seconds, uses_network
from rocerf.reproduction.experiment import Experiment
from rocerf.reproduction.identity import identities
from rocerf.reproduction.jobs import JobFolder, Plan
from rocerf.reproduction.parts import joined_settings, pack, read_part, refuse_other_code, take_over
from rocerf.reproduction.planning import KINDS, CasePlan, cases_of, plan_case, theorem_jobs
from rocerf.reproduction.provenance import sitting_facts
from rocerf.reproduction.run_record import finished_records, refuse_other_versions, write_run_record
from rocerf.reproduction.scheduling import Order, PlanOutcome, Standing, run_jobs
from rocerf.reproduction.settings import ExperimentSettings
from rocerf.reproduction.tidy import write_tables
from rocerf.storage.whole_file import write_text

#: Said of a job that none of the parts put together has.
IN_NO_PART = "in none of the parts"


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
    gpu_jobs: int | None = None,
    only: Sequence[str] | None = None,
    pack_into: str | PathLike[str] | None = None,
    progress: Callable[[Standing], None] | None = None,
) -> Reproduction:
    """Run the experiment into a folder, taking over what is finished there; then write tables and the report.

    ``gpu_jobs`` is how many jobs with networks are done at a time, where a GPU has not room for one of each worker.
    ``only`` are the kinds of jobs to do now, with what they need: the networks on a machine with a GPU, say, and the
    rest elsewhere. ``pack_into`` is a file that gets the records of all jobs, also of a run that is interrupted. A data
    set that cannot be had is left out and named; a job that fails is named with its reason.
    """
    positive_whole(workers, "workers")
    limit = None if gpu_jobs is None else positive_whole(gpu_jobs, "gpu_jobs")
    if only is not None and (not only or set(only) - set(KINDS)):
        got = ", ".join(only) or "none"
        raise OptionError(f"Expected kinds of jobs among {', '.join(KINDS)}, got {got}; correct it.")
    start, target = time.perf_counter(), _target(folder)
    if "nn" in settings.models:
        _refuse_without_torch(settings.device)
    run = _Run(settings, target)
    refuse_other_versions(run.plan, run.jobs)
    run.begin()
    run.jobs.made = sitting_facts(settings.device, workers, limit)
    asked = run.plan if only is None else run.plan.only(only)
    order, compute = Order(expected_seconds, uses_network, limit), Experiment(settings.device)
    try:
        run_jobs(asked, run.jobs, compute, workers=workers, progress=progress, outcome=run.outcome, order=order)
    finally:  # also of a run that is interrupted
        if run.outcome.ran or run.outcome.kept:
            run.write()
        if pack_into is not None:
            pack(target, Path(pack_into))
    return run.end(time.perf_counter() - start)


def join(
    parts: Sequence[str | PathLike[str]],
    folder: str | PathLike[str],
    *,
    pack_into: str | PathLike[str] | None = None,
) -> Reproduction:
    """Put parts of one run together in a folder and write tables and the report; nothing is computed.

    Parts are folders of :func:`reproduce` or files packed from them, made by the code at hand and with the same
    settings but for what is crossed. What the folder holds already is the first part. Jobs that no part has are named;
    :func:`reproduce` with the settings of the folder does them.
    """
    start, target = time.perf_counter(), _target(folder)
    given = [Path(part) for part in parts]
    found = [read_part(path) for path in ([target] if (target / "settings.yaml").is_file() else []) + given]
    if not found:
        raise OptionError("Expected at least one part to put together, got none; name a folder or a packed file.")
    run = _Run(joined_settings(found), target)
    refuse_other_code(found, run.plan)
    take_over(found, run.plan, run.jobs)
    run.begin()
    done = finished_records(run.plan, run.jobs)
    run.outcome.kept += done
    run.outcome.failed |= dict.fromkeys((name for name in run.plan.jobs if name not in done), IN_NO_PART)
    run.write()
    if pack_into is not None:
        pack(target, Path(pack_into))
    return run.end(time.perf_counter() - start)


def _target(folder: str | PathLike[str]) -> Path:
    target = Path(folder)
    if target.exists() and not target.is_dir():
        raise OptionError(f"Expected a folder to write to, got the file {target}; name another with --out.")
    return target


class _Run:
    """A plan, its folder, and how far it came."""

    def __init__(self, settings: ExperimentSettings, target: Path) -> None:
        self.settings, self.target, self.outcome = settings, target, PlanOutcome()
        self.cases, self.missing = plan_cases(settings)
        jobs = [job for case in self.cases for job in case.jobs] + theorem_jobs(settings)
        once = {job.name: job for job in jobs}  # autoencoders are planned by every model's case
        self.plan, self.jobs = Plan(list(once.values()), identities()), JobFolder(target / "jobs")

    def begin(self) -> None:
        """Make the folder, with the settings in it."""
        self.target.mkdir(parents=True, exist_ok=True)
        write_text(self.target / "settings.yaml", self.settings.to_yaml())

    def write(self) -> None:
        """Tables and run.json, of what is finished."""
        write_tables(self.target, self.settings, self.plan, self.cases, self.jobs)
        met = (self.missing, self.outcome.failed)
        write_run_record(self.target / "run.json", self.settings, self.plan, self.jobs, *met)

    def end(self, seconds: float) -> Reproduction:
        """The report, and what became of all."""
        report, said = _report(self.target)
        failed = {**self.outcome.failed, **({"report": said} if said else {})}
        counts = (len(self.outcome.ran), len(self.outcome.kept))
        return Reproduction(self.target, report, *counts, self.missing, failed, seconds)


def plan_cases(settings: ExperimentSettings) -> tuple[list[CasePlan], dict[str, str]]:
    """The jobs of every case whose data can be had, and why the others are missing.

    First seeds come first: a run that is stopped has all tables, of fewer seeds.
    """
    cases: list[CasePlan] = []
    missing: dict[str, str] = {}
    load = cache(lambda name: len(load_dataset(name).test))  # here and once: workers find a fetched file in the cache
    for dataset, setting in product(settings.datasets, settings.settings):
        if dataset in missing or not (asked := cases_of(settings, setting, dataset)):
            continue
        try:
            rows = load(DATA.get((setting, dataset), dataset))
        except DatasetUnavailableError as error:
            # As published some tables come from other files than elsewhere.
            missing[dataset if setting == "corrected" else f"{dataset}, as published"] = str(error)
            continue
        cases += [plan_case(settings, case, rows) for case in asked]
        wanted = {name for case in asked for name in settings.methods_of(setting, case.model)}
        gone = {name: why for name, why in left_out(setting, dataset).items() if name in wanted and dataset in WEIGHTS}
        missing |= {f"{name} on {dataset}, as published": why for name, why in gone.items()}
    return sorted(cases, key=lambda plan: plan.case.seed), missing


def _refuse_without_torch(device: str) -> None:
    from importlib.util import find_spec

    if find_spec("torch") is None:
        raise MissingExtraError("torch", "nn", "Reproducing the networks (leave them out with --models lr)")
    from rocerf.models.network.network import checked_device

    checked_device(device)


def _report(target: Path) -> tuple[Path | None, str]:
    """The report, or why there is none: it must not cost the figures that are already written."""
    try:
        from rocerf.reproduction.report import write_report

        return write_report(target), ""
    except Exception as error:
        if os.environ.get("ROCERF_DEBUG"):
            raise
        return None, f"{type(error).__name__}: {error}"
