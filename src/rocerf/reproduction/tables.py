"""The paper's tables from a folder of results: ours beside the paper's, and who is better at both validity and cost.

Everything here is computed from the CSV files that ``rocerf reproduce`` writes; nothing is drawn. What a run did not
measure is left out of a table and named by :meth:`Results.missing`.
"""

from __future__ import annotations

import json
import math
from dataclasses import dataclass
from itertools import product
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from rocerf.errors import FileFormatError
from rocerf.evaluation.methods import METHODS as EXPECTED
from rocerf.reproduction.published import ACCURACY, BASELINES, COSTS, DATASETS, METHODS, MODELS, OURS, SETTINGS
from rocerf.storage.whole_file import write_files

if TYPE_CHECKING:
    import pandas as pd

Row = dict[str, Any]

#: The columns that say of what a row of a table is.
KEY = ("setting", "dataset", "model", "method")

#: Files of a run and the columns read from them; the last three may be absent. Each may also be a .csv.gz.
COLUMNS = {
    "results": (*KEY, "alpha", "trial", "validity"),
    "methods": (
        *(*KEY, "people", "answered", "l2", "l2_se", "l1", "l1_se", "changed", "distance_to_data"),
        *("seconds_per_person", "cost_over_plain", "worst_case_validity", "worst_case_people", "k"),
    ),
    "models": (*KEY[:3], "train_rows", "test_rows", "denied", "accuracy"),
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
        present = [key for key in DATASETS if key in set(self.methods["dataset"])]
        reasons = self.run.get("missing", {})
        known = reasons if isinstance(reasons, dict) else {}
        nothing = "no results in this run"
        named = [f"{DATASETS[key]}: {known.get(key) or nothing}" for key in DATASETS if key not in present]
        rows = set(self.methods[list(KEY)].itertuples(index=False, name=None))
        for ((setting, model), methods), dataset in product(EXPECTED.items(), present):
            gone = [METHODS[m] for m in methods if (setting, dataset, model, m) not in rows]
            if gone:
                named.append(f"{case_name(dataset, model, setting)}: {', '.join(gone)}")
        return named + [f"{name}.csv: {nothing}" for name in OPTIONAL if getattr(self, name) is None]


def case_name(dataset: str, model: str, setting: str) -> str:
    """``Adult, logistic regression, corrected``."""
    return f"{DATASETS[dataset]}, {MODELS[model]}, {SETTINGS[setting]}"


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
    def deleted(self) -> list[float]:
        """Those where rows were deleted."""
        return [mean for alpha, mean in zip(self.alphas, self.means_all, strict=True) if alpha > 0]

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
            f"Expected the columns {', '.join(columns)} in {path.name}, {', '.join(absent)} not found; run "
            "`rocerf reproduce` again with this version."
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


def where(table: pd.DataFrame, **values: Any) -> pd.DataFrame:
    """The rows with these values."""
    for name, value in values.items():
        table = table[table[name] == value]
    return table


def row_of(table: pd.DataFrame, **values: str) -> Row | None:
    """The one row with these values, or None."""
    found = where(table, **values)
    if len(found) > 1:
        said = ", ".join(values.values())
        raise FileFormatError(f"Expected one row for {said}, got {len(found)}; run `rocerf reproduce` afresh.")
    return dict(found.iloc[0]) if len(found) else None


def validity_curves_of(results: Results) -> list[Curve]:
    """Mean and standard error over trials for every (setting, dataset, model, method), in the order of the tables."""
    found = []
    groups = dict(iter(results.results.groupby(list(KEY))))
    for key in sorted(groups, key=_place):
        by_alpha = groups[key].groupby("alpha")["validity"]
        counts, means = by_alpha.size(), by_alpha.mean()
        errors = (by_alpha.std(ddof=1) / np.sqrt(counts)).fillna(0.0)
        # 0.1 + 0.2 is not 0.3: equal trials must give equal means, or a tie looks like a victory.
        rounded = [round(float(mean), 12) for mean in means]
        case: Row = dict(zip(KEY, key, strict=True))
        measured = row_of(results.methods, **case) or {}
        answered, people = (int(measured.get(name, 0)) for name in ("answered", "people"))
        alphas, spread = ([float(value) for value in values] for values in (means.index, errors))
        shares: Row = {"alphas": alphas, "means": rounded, "errors": spread, "trials": int(counts.max())}
        shares |= {"answered": answered, "people": people} if people else {}
        found.append(Curve(**case, **shares))
    return found


def validity_table(results: Results) -> pd.DataFrame:
    """The curves as rows: mean validity over the trials and its standard error, for every method and alpha.

    ``validity`` is about the answered, ``validity_all`` about all denied people.
    """
    import pandas as pd

    rows = [
        (c.setting, c.dataset, c.model, c.method, *shares, c.answered, c.people)
        for c in validity_curves_of(results)
        for shares in zip(c.alphas, c.means, c.errors, c.means_all, c.errors_all, strict=True)
    ]
    shares = ["alpha", "validity", "validity_se", "validity_all", "validity_all_se"]
    return pd.DataFrame(rows, columns=[*KEY, *shares, "answered", "people"])


def _place(key: tuple[str, ...]) -> tuple[int, ...]:
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
    for model, dataset in product(MODELS, DATASETS):
        row: Row = {"dataset": dataset, "model": model}
        paper = ACCURACY[model][dataset]
        for setting in SETTINGS:
            found = row_of(results.models, setting=setting, dataset=dataset, model=model)
            if found:
                share, count = float(found["accuracy"]), int(found["test_rows"])
                row |= {setting: share, f"{setting}_denied": int(found["denied"]), f"{setting}_test_rows": count}
                row[f"{setting}_rows"] = round((share - paper) * count)
        if len(row) > 2:
            rows.append(row | {"paper": paper})
    cells = [f"{setting}{part}" for setting in SETTINGS for part in ("", "_denied", "_test_rows", "_rows")]
    return pd.DataFrame(rows, columns=["dataset", "model", *cells, "paper"])


def cost_table(results: Results, norm: str, model: str) -> pd.DataFrame:
    """Mean cost (``l2`` or ``l1``) of each method: ours in both settings beside the paper's, each with its error."""
    import pandas as pd

    rows = []
    for dataset, method in product(DATASETS, METHODS):
        case = {"dataset": dataset, "model": model, "method": method}
        found = {setting: row_of(results.methods, setting=setting, **case) for setting in SETTINGS}
        if not any(found.values()):
            continue
        paper = COSTS[norm][model].get(method, {}).get(dataset)
        row: Row = {"dataset": dataset, "method": method, "published_verdict": "", "corrected_verdict": ""}
        for setting, measured in found.items():
            if measured:
                # One person has no spread.
                mean, error = measured[norm], measured[f"{norm}_se"] if measured["answered"] > 1 else math.nan
                row |= {setting: mean, f"{setting}_se": error}
                row |= {f"{setting}_{name}": measured[name] for name in ("answered", "people")}
                row[f"{setting}_verdict"] = verdict(mean, error, *paper) if paper else ""
        row["paper"], row["paper_se"] = paper or (math.nan, math.nan)
        rows.append(row)
    cells = [f"{setting}{part}" for setting in SETTINGS for part in ("", "_se", "_answered", "_people", "_verdict")]
    return pd.DataFrame(rows, columns=["dataset", "method", *cells, "paper", "paper_se"])


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
    shares = ("worst_validity", "worst_alpha", "worst_validity_answered")
    carried = ("l2", "l2_se", "answered", "people", "worst_case_validity")
    rows = []
    for dataset, (model, ours) in product(DATASETS, OURS.items()):
        group = []
        for method in METHODS:
            case = {"dataset": dataset, "model": model, "method": method}
            measured = row_of(results.methods, setting="corrected", **case)
            if measured is not None:
                role = "ours" if method == ours else "baseline" if method in BASELINES else "first order"
                found = worst.get((dataset, model, method), (math.nan,) * 3)
                row = {**case, "role": role, **dict(zip(shares, found, strict=True))}
                group.append(row | {name: measured[name] for name in carried})
        best = next((row for row in group if row["method"] == ours), None)
        rows += [row | {"dominates_ours": "" if row is best else _dominates(row, best)} for row in group]
    return pd.DataFrame(rows, columns=["dataset", "model", "method", "role", *shares, *carried, "dominates_ours"])


def _dominates(row: Row, ours: Row | None) -> str:
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
