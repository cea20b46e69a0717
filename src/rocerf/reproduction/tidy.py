"""The tidy CSV files of a run, out of its finished jobs: one fact a row, empty where there is none."""

from __future__ import annotations

import csv
from collections.abc import Iterable, Sequence
from io import StringIO
from pathlib import Path
from typing import Any

from rocerf.reproduction.experiment import mean_and_error
from rocerf.reproduction.jobs import JobFolder, Plan
from rocerf.reproduction.planning import CasePlan, at_k
from rocerf.reproduction.settings import ExperimentSettings
from rocerf.storage.whole_file import write_text

WHERE = ("setting", "dataset", "model", "seed")
COSTS = ("people", "answered", "l2", "l2_se", "l1", "l1_se", "changed", "distance_to_data")
#: Tables with rows of every case, and their columns.
COLUMNS = {
    "results": (
        *WHERE,
        "method",
        "alpha",
        "trial",
        "validity",
        "validity_all",
        "answered",
        "people",
        "evaluation_seed",
    ),
    "methods": (
        *(*WHERE, "method", *COSTS, "seconds_per_person", "cost_over_plain"),
        *("worst_case_validity", "worst_case_people", "k", "parameters"),
    ),
    "models": (
        *(*WHERE, "train_rows", "test_rows", "denied", "accuracy", "parameters", "seconds_fit", "data_sha256"),
        "epochs",
    ),
    "worst": (*WHERE, "method", "k", "people", "validity", "validity_se", "judge"),
    "sweeps": (
        *(*WHERE, "method", "knob", "value", "people", "answered", "l2", "l2_se", "l1", "l1_se"),
        *("random", "random_se", "random_most", "random_most_se", "picked", "picked_se", "judge"),
    ),
    "sensitivity": ("dataset", "k_share", "k", "l2", "alpha", "validity", "validity_se"),
}
THEOREM = ("n", "k", "k_over_n", "extra_cost", "bound", "bound_42", "constant", "slope_norm", "people")

Row = dict[str, Any]


def write_tables(
    path: Path, settings: ExperimentSettings, plan: Plan, cases: Sequence[CasePlan], folder: JobFolder
) -> None:
    """Write the tables of :data:`COLUMNS` and theorem.csv from what is finished."""
    tables = _Tables(settings, plan, folder)
    for name, columns in COLUMNS.items():
        rows = getattr(tables, name)
        write_csv(path / f"{name}.csv", columns, (row for case in cases for row in rows(case)))
    write_csv(path / "theorem.csv", THEOREM, tables.theorem())


class _Tables:
    def __init__(self, settings: ExperimentSettings, plan: Plan, folder: JobFolder) -> None:
        self.settings, self.plan, self.folder = settings, plan, folder

    def found(self, name: str) -> Row | None:
        """The result of a job of this plan, if it is finished."""
        done = name in self.plan.jobs and self.folder.is_done(name, self.plan.hashes[name])
        return self.folder.result(name) if done else None

    def measured(self, plan: CasePlan, methods: Iterable[str]) -> Iterable[tuple[str, Row, Row]]:
        """Each method that was measured: its name, what was measured, and its first explain job's result."""
        for method in methods:
            name = plan.measure(method)
            result = self.found(name)
            if result is not None:
                yield method, result, self.folder.result(self.plan.jobs[name].inputs["points"][0])

    def results(self, plan: CasePlan) -> Iterable[Row]:
        for method, measured, _ in self.measured(plan, plan.methods):
            fixed = {**plan.case.where, "method": method}
            fixed["evaluation_seed"] = self.settings.evaluation_seed
            fixed |= {name: measured[name] for name in ("answered", "people")}
            alphas = self.settings.of(plan.case.model).alphas
            each = zip(alphas, measured["validity"], measured["validity_all"], strict=True)
            for alpha, answered, everybody in each:
                for trial, (share, of_all) in enumerate(zip(answered, everybody, strict=True)):
                    yield {**fixed, "alpha": alpha, "trial": trial, "validity": share, "validity_all": of_all}

    def methods(self, plan: CasePlan) -> Iterable[Row]:
        for method, measured, explained in self.measured(plan, plan.methods):
            worst = self.found(plan.worst(method)) or {}
            found = {f"worst_case_{name}": worst.get(name) for name in ("validity", "people")}
            found |= {name: explained[name] for name in ("k", "parameters")}
            yield {**plan.case.where, "method": method, **measured, **found}

    def models(self, plan: CasePlan) -> Iterable[Row]:
        own = any(job.name == plan.model_job for job in plan.jobs)  # else it is that of seed 0
        fitted = self.found(plan.model_job) if own else None
        if fitted is not None:
            yield {**plan.case.where, **fitted}

    def worst(self, plan: CasePlan) -> Iterable[Row]:
        """The share accepted without the rows picked for each point, of every method."""
        for method in plan.methods:
            found = self.found(plan.worst(method))
            if found is not None:
                yield {**plan.case.where, "method": method, **found}

    def sweeps(self, plan: CasePlan) -> Iterable[Row]:
        """One row for each value of each method's knob, from small to large."""
        found = [(self.plan.jobs[name].inputs, self.found(name)) for name in plan.sweeps]
        place = {method: place for place, method in enumerate(plan.methods)}
        for inputs, result in sorted(found, key=lambda pair: (place[pair[0]["method"]], pair[0]["value"])):
            if result is not None:
                yield {**plan.case.where, **{name: inputs[name] for name in ("method", "knob", "value")}, **result}

    def sensitivity(self, plan: CasePlan) -> Iterable[Row]:
        named = {"rocerf" if share == self.settings.k else at_k(share): share for share in plan.sensitivity}
        for method, measured, explained in self.measured(plan, named):
            where = {"dataset": plan.case.dataset, "k_share": named[method], "k": explained["k"], "l2": measured["l2"]}
            alphas = self.settings.of(plan.case.model).alphas
            for alpha, shares in zip(alphas, measured["validity_all"], strict=True):
                mean, error = mean_and_error(shares)
                yield {**where, "alpha": alpha, "validity": mean, "validity_se": error}

    def theorem(self) -> Iterable[Row]:
        for job in self.plan:
            if job.kind == "theorem":
                yield from (self.found(job.name) or {"rows": []})["rows"]


def write_csv(path: Path, columns: Sequence[str], rows: Iterable[Row]) -> None:
    """A CSV of these columns; None becomes an empty cell, further entries of a row are left aside."""
    text = StringIO()
    writer = csv.DictWriter(text, columns, extrasaction="ignore", restval="", lineterminator="\n")
    writer.writeheader()
    writer.writerows(rows)
    write_text(path, text.getvalue())
