"""The paper's tables from a folder of results: ours beside the paper's, and who is better at both validity and cost.

Everything here is computed from the CSV files that ``rocerf reproduce`` writes; nothing is drawn. What a run did not
measure is left out of a table and named by :meth:`Results.missing`.
"""

from __future__ import annotations

import json
import math
from dataclasses import dataclass, replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from rocerf.errors import FileFormatError
from rocerf.evaluation.methods import METHODS as EXPECTED
from rocerf.reproduction.published import (
    ACCURACY,
    BASELINES,
    COSTS,
    DATASETS,
    METHODS,
    MODELS,
    OURS,
    SETTINGS,
    PaperValue,
)
from rocerf.storage.whole_file import write_files

if TYPE_CHECKING:
    import pandas as pd

#: Files of a run and the columns read from them; the last three may be absent. Each may also be a .csv.gz.
COLUMNS = {
    "results": ("setting", "dataset", "model", "method", "alpha", "trial", "validity"),
    "methods": (
        *("setting", "dataset", "model", "method", "people", "answered", "l2", "l2_se", "l1", "l1_se", "changed"),
        *("distance_to_data", "seconds_per_person", "cost_over_plain", "worst_case_validity", "worst_case_people", "k"),
    ),
    "models": ("setting", "dataset", "model", "train_rows", "test_rows", "denied", "accuracy"),
    "sensitivity": ("dataset", "k_share", "k", "l2", "alpha", "validity", "validity_se"),
    "theorem": ("n", "k", "k_over_n", "extra_cost", "bound"),
    "checks": ("check", "dataset", "model", "value", "people", "answered", "denied", "l2", "share"),
}
#: Parts of every full run, and what is measured beside it (:mod:`rocerf.reproduction.checks`).
OPTIONAL = ("sensitivity", "theorem")
BESIDE = ("checks",)


@dataclass(frozen=True, eq=False)
class Results:
    """A run as it lies in a folder: one table a CSV file, the run's record and the settings as text."""

    results: pd.DataFrame
    methods: pd.DataFrame
    models: pd.DataFrame
    sensitivity: pd.DataFrame | None
    theorem: pd.DataFrame | None
    checks: pd.DataFrame | None
    run: dict[str, Any]
    settings: str

    def missing(self) -> list[str]:
        """Each thing a full run has and this one has not, in words."""
        named = [f"{DATASETS[key]}: {self._why_absent(key)}" for key in DATASETS if key not in self.datasets]
        rows = _keys(self.methods)
        for (setting, model), methods in EXPECTED.items():
            for dataset in self.datasets:
                gone = [METHODS[m] for m in methods if (setting, dataset, model, m) not in rows]
                if gone:
                    named.append(f"{DATASETS[dataset]}, {MODELS[model]}, {SETTINGS[setting]}: {', '.join(gone)}")
        return named + [f"{name}.csv: no results in this run" for name in OPTIONAL if getattr(self, name) is None]

    @property
    def datasets(self) -> list[str]:
        """Data sets with at least one method measured."""
        present = set(self.methods["dataset"])
        return [key for key in DATASETS if key in present]

    def _why_absent(self, dataset: str) -> str:
        reasons = self.run.get("missing", {})
        reason = reasons.get(dataset) if isinstance(reasons, dict) else None
        return str(reason) if reason else "no results in this run"


@dataclass(frozen=True, eq=False)
class Curve:
    """Average validity of one method over the shares of deleted rows, with standard errors over trials.

    ``means`` and ``errors`` are about the people whom the method answered. The paper divides by all denied people:
    ``means_all`` and ``errors_all`` count those without an answer as not valid.
    """

    setting: str
    dataset: str
    model: str
    method: str
    alphas: list[float]
    means: list[float]
    errors: list[float]
    trials: int
    answered: int = 1
    people: int = 1

    @property
    def means_all(self) -> list[float]:
        """Means over all denied people."""
        share = self.answered / self.people
        return [round(mean * share, 12) if self.answered else 0.0 for mean in self.means]

    @property
    def errors_all(self) -> list[float]:
        """Standard errors over trials of :attr:`means_all`."""
        return [error * self.answered / self.people for error in self.errors]

    @property
    def worst(self) -> tuple[float, float]:
        """The lowest mean over all denied people, and the alpha where it is."""
        place = int(np.argmin(self.means_all))
        return self.means_all[place], self.alphas[place]


def read_results(folder: Path) -> Results:
    """The CSV files, ``run.json`` and ``settings.yaml`` of one run."""
    tables = {name: _read(folder / f"{name}.csv", columns) for name, columns in COLUMNS.items()}
    run, settings = folder / "run.json", folder / "settings.yaml"
    return Results(
        **tables,
        run=_read_record(run) if run.is_file() else {},
        settings=settings.read_text("utf-8") if settings.is_file() else "",
    )


def _read(path: Path, columns: tuple[str, ...]) -> pd.DataFrame | None:
    import pandas as pd

    packed = path.with_name(f"{path.name}.gz")
    if not path.is_file() and not packed.is_file():
        if path.stem in (*OPTIONAL, *BESIDE):
            return None
        raise FileFormatError(f"Expected {path.name} in {path.parent}, found none; run `rocerf reproduce` first.")
    try:
        table = pd.read_csv(path if path.is_file() else packed)
    except ValueError as error:
        raise FileFormatError(
            f"Expected a table in {path}, got an error: {error}; run `rocerf reproduce` again."
        ) from error
    absent = [name for name in columns if name not in table.columns]
    if not (len(table) or absent) and path.stem in (*OPTIONAL, *BESIDE):
        return None
    if absent:
        raise FileFormatError(
            f"Expected the columns {', '.join(columns)} in {path.name}, {', '.join(absent)} not found; "
            "run `rocerf reproduce` again with this version."
        )
    return table


def _read_record(path: Path) -> dict[str, Any]:
    try:
        record = json.loads(path.read_text("utf-8"))
    except ValueError as error:
        raise FileFormatError(
            f"Expected JSON in {path}, got an error: {error}; run `rocerf reproduce` again."
        ) from error
    if not isinstance(record, dict):
        raise FileFormatError(f"Expected a JSON object in {path}, got {type(record).__name__}; run it again.")
    return record


def _keys(table: pd.DataFrame) -> set[tuple[str, str, str, str]]:
    return set(zip(table["setting"], table["dataset"], table["model"], table["method"], strict=True))


def row_of(table: pd.DataFrame, **where: str) -> dict[str, Any] | None:
    """The one row with these values, or None."""
    for name, value in where.items():
        table = table[table[name] == value]
    if len(table) > 1:
        said = ", ".join(where.values())
        raise FileFormatError(f"Expected one row for {said}, got {len(table)}; run `rocerf reproduce` afresh.")
    return dict(table.iloc[0]) if len(table) else None


def validity_curves_of(results: Results) -> list[Curve]:
    """Mean and standard error over trials for every (setting, dataset, model, method), in the order of the tables."""
    found = []
    names = ["setting", "dataset", "model", "method"]
    groups = dict(iter(results.results.groupby(names)))
    for key in sorted(groups, key=_place):
        by_alpha = groups[key].groupby("alpha")["validity"]
        counts, means = by_alpha.size(), by_alpha.mean()
        errors = (by_alpha.std(ddof=1) / np.sqrt(counts)).fillna(0.0)
        # 0.1 + 0.2 is not 0.3: equal trials must give equal means, or a tie looks like a victory.
        rounded = [round(float(mean), 12) for mean in means]
        alphas = [float(alpha) for alpha in means.index]
        spread = [float(error) for error in errors]
        measured = row_of(results.methods, **dict(zip(names, key, strict=True))) or {}
        answered, people = (int(measured.get(name, 0)) for name in ("answered", "people"))
        setting, dataset, model, method = key
        curve = Curve(setting, dataset, model, method, alphas, rounded, spread, int(counts.max()))
        found.append(replace(curve, answered=answered, people=people) if people else curve)
    return found


def validity_table(results: Results) -> pd.DataFrame:
    """The curves as rows: mean validity over the trials and its standard error, for every method and alpha.

    ``validity`` is about the answered, ``validity_all`` about all denied people.
    """
    import pandas as pd

    rows = [
        {"setting": c.setting, "dataset": c.dataset, "model": c.model, "method": c.method}
        | {"alpha": alpha, "validity": mean, "validity_se": error, "validity_all": of_all, "validity_all_se": of_all_se}
        | {"answered": c.answered, "people": c.people}
        for c in validity_curves_of(results)
        for alpha, mean, error, of_all, of_all_se in zip(
            c.alphas, c.means, c.errors, c.means_all, c.errors_all, strict=True
        )
    ]
    names = ["setting", "dataset", "model", "method", "alpha", "validity", "validity_se"]
    return pd.DataFrame(rows, columns=[*names, "validity_all", "validity_all_se", "answered", "people"])


def _place(key: tuple[str, str, str, str]) -> tuple[int, ...]:
    orders = (SETTINGS, DATASETS, MODELS, METHODS)
    return tuple(list(order).index(part) if part in order else 99 for order, part in zip(orders, key, strict=True))


def verdict(ours: float, ours_se: float, paper: float, paper_se: float) -> str:
    """``within`` two combined standard errors of the paper's value, ``higher``, ``lower``, or ``unknown`` spread."""
    spread = 2 * math.hypot(ours_se, paper_se)
    if not (math.isfinite(ours) and math.isfinite(spread)):
        return "unknown"
    if abs(ours - paper) <= spread * (1 + 1e-12):  # a difference as large as the spread is within, rounding or not
        return "within"
    return "higher" if ours > paper else "lower"


def accuracy_table(results: Results) -> pd.DataFrame:
    """Test accuracy: ours in both settings beside the paper's.

    Both were measured on the same test rows, by models that mostly agree, so that neither's standard error judges the
    difference; ``rows`` says how many test rows it is.
    """
    import pandas as pd

    rows = []
    for model in MODELS:
        for dataset in DATASETS:
            row: dict[str, Any] = {"dataset": dataset, "model": model}
            for setting in SETTINGS:
                measured = row_of(results.models, setting=setting, dataset=dataset, model=model)
                row |= _accuracy_cells(setting, measured, ACCURACY[model][dataset])
            if any(math.isfinite(row[setting]) for setting in SETTINGS):
                rows.append(row | {"paper": ACCURACY[model][dataset]})
    cells = [f"{setting}{part}" for setting in SETTINGS for part in ("", "_denied", "_test_rows", "_rows")]
    return pd.DataFrame(rows, columns=["dataset", "model", *cells, "paper"])


def _accuracy_cells(setting: str, measured: dict[str, Any] | None, paper: float) -> dict[str, Any]:
    if measured is None:
        return {f"{setting}{name}": math.nan for name in ("", "_denied", "_test_rows", "_rows")}
    share, rows = float(measured["accuracy"]), int(measured["test_rows"])
    return {
        setting: share,
        f"{setting}_denied": int(measured["denied"]),
        f"{setting}_test_rows": rows,
        f"{setting}_rows": round((share - paper) * rows),
    }


def cost_table(results: Results, norm: str, model: str) -> pd.DataFrame:
    """Mean cost (``l2`` or ``l1``) of each method: ours in both settings beside the paper's, each with its error."""
    import pandas as pd

    rows = []
    for dataset in DATASETS:
        for method in METHODS:
            where = {"dataset": dataset, "model": model, "method": method}
            found = {setting: row_of(results.methods, setting=setting, **where) for setting in SETTINGS}
            if not any(found.values()):
                continue
            paper = COSTS[norm][model].get(method, {}).get(dataset)
            row: dict[str, Any] = {"dataset": dataset, "method": method}
            for setting, measured in found.items():
                row |= _cost_cells(setting, norm, measured, paper)
            row["paper"] = paper.mean if paper else math.nan
            row["paper_se"] = paper.standard_error if paper else math.nan
            rows.append(row)
    cells = [f"{setting}{part}" for setting in SETTINGS for part in ("", "_se", "_answered", "_people", "_verdict")]
    return pd.DataFrame(rows, columns=["dataset", "method", *cells, "paper", "paper_se"])


def _cost_cells(setting: str, norm: str, measured: dict[str, Any] | None, paper: PaperValue | None) -> dict[str, Any]:
    found = measured or {}
    mean, error = float(found.get(norm, math.nan)), float(found.get(f"{norm}_se", math.nan))
    if not found.get("answered", 0) > 1:
        error = math.nan  # one person has no spread
    return {
        setting: mean,
        f"{setting}_se": error,
        f"{setting}_answered": found.get("answered", math.nan),
        f"{setting}_people": found.get("people", math.nan),
        f"{setting}_verdict": verdict(mean, error, paper.mean, paper.standard_error) if paper and found else "",
    }


def pareto_table(results: Results) -> pd.DataFrame:
    """Corrected setting: each method's lowest average validity over alphas and its mean L2 cost, against ours.

    Validity is about all denied people, whoever has no answer counted as not valid; ``worst_validity_answered`` is
    about the answered alone, as the costs are.

    ``dominates_ours`` is "yes" where a method is at least as good as ours in both and better in one, and empty where
    either was not measured. Ours is `retrained` for logistic regression and `simulated` for networks.
    """
    import pandas as pd

    worst = {
        (c.dataset, c.model, c.method): (*c.worst, min(c.means))
        for c in validity_curves_of(results)
        if c.setting == "corrected" and c.means
    }
    rows = []
    for dataset in DATASETS:
        for model, ours in OURS.items():
            found = [_pareto_cells(results, worst, dataset, model, method) for method in METHODS]
            group = [row for row in found if row is not None]
            best = next((row for row in group if row["method"] == ours), None)
            for row in group:
                rows.append(row | {"dominates_ours": "" if row is best else _dominates(row, best)})
    names = ["dataset", "model", "method", "role", "worst_validity", "worst_alpha", "worst_validity_answered"]
    names += ["l2", "l2_se", "answered", "people", "worst_case_validity", "dominates_ours"]
    return pd.DataFrame(rows, columns=names)


def _pareto_cells(
    results: Results,
    worst: dict[tuple[str, str, str], tuple[float, float, float]],
    dataset: str,
    model: str,
    method: str,
) -> dict[str, Any] | None:
    where = {"dataset": dataset, "model": model, "method": method}
    measured = row_of(results.methods, setting="corrected", **where)
    if measured is None:
        return None
    unknown = (math.nan, math.nan, math.nan)
    shares = zip(
        ("worst_validity", "worst_alpha", "worst_validity_answered"),
        worst.get((dataset, model, method), unknown),
        strict=True,
    )
    role = "ours" if method == OURS[model] else "baseline" if method in BASELINES else "first order"
    carried = {name: measured[name] for name in ("l2", "l2_se", "answered", "people", "worst_case_validity")}
    return {**where, "role": role, **dict(shares), **carried}


def _dominates(row: dict[str, Any], ours: dict[str, Any] | None) -> str:
    if ours is None:
        return ""
    validity, cost, our_validity, our_cost = (r[name] for r in (row, ours) for name in ("worst_validity", "l2"))
    if not np.isfinite([validity, cost, our_validity, our_cost]).all():
        return ""
    no_worse = validity >= our_validity and cost <= our_cost
    return "yes" if no_worse and (validity > our_validity or cost < our_cost) else "no"


def write_tables(results: Results, folder: Path) -> dict[str, pd.DataFrame]:
    """Write every table as CSV; returns them by file name."""
    tables = {"accuracy.csv": accuracy_table(results)}
    for norm in COSTS:
        tables |= {f"cost_{norm}_{model}.csv": cost_table(results, norm, model) for model in MODELS}
    tables["pareto.csv"] = pareto_table(results)
    tables["validity.csv"] = validity_table(results)
    write_files((folder / name, table.to_csv(index=False)) for name, table in tables.items())
    return tables
