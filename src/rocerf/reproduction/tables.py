"""The paper's tables from a folder of results: ours beside the paper's, cell by cell.

Everything here is computed from the CSV files that ``rocerf reproduce`` writes; nothing is drawn. What a run did not
measure is left out of a table and named by :meth:`Results.missing`. What depends on a seed (networks, autoencoders) is
a mean over seeds, with its range.
"""

from __future__ import annotations

import json
import math
from collections.abc import Sequence
from dataclasses import dataclass, replace
from itertools import product
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from rocerf.errors import FileFormatError
from rocerf.evaluation.methods import METHODS as EXPECTED
from rocerf.reproduction.published import ACCURACY, DATASETS, METHODS, MODELS, SETTINGS, VARIANT_OF, is_run, printed

if TYPE_CHECKING:
    import pandas as pd

Row = dict[str, Any]

#: The columns that say of what a row of a table is.
KEY = ("setting", "dataset", "model", "method")

#: Files of a run and the columns read from them. Each may also be a .csv.xz; where there is no column `seed`, it is 0.
COLUMNS = {
    "results": (*KEY, "alpha", "trial", "validity"),
    "methods": (
        *(*KEY, "people", "answered", "l2", "l2_se", "l1", "l1_se", "changed", "distance_to_data"),
        *("seconds_per_person", "cost_over_plain", "k"),
    ),
    "models": (*KEY[:3], "train_rows", "test_rows", "denied", "accuracy"),
    "sensitivity": ("dataset", "k_share", "k", "l2", "alpha", "validity", "validity_se"),
    "theorem": ("n", "k", "k_over_n", "extra_cost", "bound"),
    "sweeps": (
        *(*KEY[:3], "seed", "method", "knob", "value", "people", "answered", "l2", "l2_se"),
        *("random", "random_se", "picked", "picked_se", "judge"),
    ),
    "worst": (*KEY, "seed", "k", "people", "validity"),
}
#: Parts of every full run that may be absent.
OPTIONAL = ("sensitivity", "theorem", "sweeps", "worst")


@dataclass(frozen=True, eq=False)
class Results:
    """A run as it lies in a folder: one table a CSV file, the run's record and the settings as text."""

    results: pd.DataFrame
    methods: pd.DataFrame
    models: pd.DataFrame
    sensitivity: pd.DataFrame | None
    theorem: pd.DataFrame | None
    sweeps: pd.DataFrame | None
    worst: pd.DataFrame | None
    run: dict[str, Any]
    settings: str

    def missing(self, elsewhere: Sequence[str] = ()) -> list[str]:
        """Each thing a full run has and this one has not, in words; models that are ``elsewhere`` are left out."""
        present = [key for key in DATASETS if key in set(self.methods["dataset"])]
        models = [key for key in MODELS if key in set(self.methods["model"])]
        reasons = self.run.get("missing", {})
        known = reasons if isinstance(reasons, dict) else {}
        nothing = "no results in this run"
        wanted = [key for key in DATASETS if any(is_run("published", key, model) for model in models or MODELS)]
        named = [f"{DATASETS[key]}: {known.get(key) or nothing}" for key in wanted if key not in present]
        named += [
            f"{MODELS[key].capitalize()}: {nothing}" for key in MODELS if models and key not in (*models, *elsewhere)
        ]
        rows = set(self.methods[list(KEY)].itertuples(index=False, name=None))
        for ((setting, model), methods), dataset in product(EXPECTED.items(), present):
            full = [m for m in methods if is_run(setting, dataset, model, m)]
            gone = [METHODS[m] for m in full if (setting, dataset, model, m) not in rows]
            if gone and model in models:
                named.append(f"{case_name(dataset, model, setting)}: {', '.join(gone)}")
        return named + [f"{name}.csv: {nothing}" for name in OPTIONAL if getattr(self, name) is None]


def case_name(dataset: str, model: str, setting: str) -> str:
    """``Adult, logistic regression, corrected``."""
    return f"{DATASETS[dataset]}, {MODELS[model]}, {SETTINGS[setting]}"


@dataclass(frozen=True, eq=False)
class Curve:
    """Average validity of one method over the shares of deleted rows, with standard errors over trials.

    ``means`` and ``errors`` are about the people whom the method answered. The paper divides by all denied people:
    ``means_all`` and ``errors_all`` count those without an answer as not valid. Over several seeds all of these are
    means; ``by_seed`` then has the shares of all denied people for each seed.
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
    by_seed: tuple[list[float], ...] = ()

    @property
    def means_all(self) -> list[float]:
        """Means over all denied people."""
        if self.by_seed:
            return [round(float(np.mean(shares)), 12) for shares in zip(*self.by_seed, strict=True)]
        share = self.answered / self.people
        return [round(mean * share, 12) if self.answered else 0.0 for mean in self.means]

    @property
    def ranges(self) -> list[tuple[float, float]]:
        """Lowest and highest share of all denied people over the seeds; two standard errors either way for one."""
        if len(self.by_seed) > 1:
            return [(min(shares), max(shares)) for shares in zip(*self.by_seed, strict=True)]
        both = zip(self.means_all, self.errors_all, strict=True)
        return [(max(0.0, mean - 2 * error), min(1.0, mean + 2 * error)) for mean, error in both]

    @property
    def deleted(self) -> list[float]:
        """Those where rows were deleted."""
        return [mean for alpha, mean in zip(self.alphas, self.means_all, strict=True) if alpha > 0]

    @property
    def mean_range(self) -> tuple[float, float]:
        """Lowest and highest mean over the alphas above 0, over the seeds; the mean twice where there is one."""
        above = [place for place, alpha in enumerate(self.alphas) if alpha > 0]
        means = [float(np.mean([shares[place] for place in above])) for shares in self.by_seed or (self.means_all,)]
        return min(means), max(means)

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

    packed = path.with_name(f"{path.name}.xz")
    if not path.is_file() and not packed.is_file():
        if path.stem in OPTIONAL:
            return None
        raise FileFormatError(f"Expected {path.name} in {path.parent}, found none; run `rocerf reproduce` first.")
    try:
        table = pd.read_csv(path if path.is_file() else packed)
    except ValueError as error:
        raise FileFormatError(
            f"Expected a table in {path}, got an error: {error}; run `rocerf reproduce` again."
        ) from error
    absent = [name for name in columns if name not in table.columns]
    if not (len(table) or absent) and path.stem in OPTIONAL:
        return None
    if absent:
        raise FileFormatError(
            f"Expected the columns {', '.join(columns)} in {path.name}, {', '.join(absent)} not found; run "
            "`rocerf reproduce` again with this version."
        )
    # Plain Python texts are compared many times faster than Arrow's in tables of a few hundred rows.
    table = table.astype(dict.fromkeys(table.columns[table.dtypes == "str"], object))
    return table if "seed" in table.columns else table.assign(seed=0)


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
    chosen = np.ones(len(table), dtype=bool)
    for name, value in values.items():
        chosen &= table[name].to_numpy() == value
    return table[chosen]


def row_of(table: pd.DataFrame, **values: Any) -> Row | None:
    """The one row with these values, or None."""
    found = where(table, **values)
    if len(found) > 1:
        said = ", ".join(map(str, values.values()))
        raise FileFormatError(f"Expected one row for {said}, got {len(found)}; run `rocerf reproduce` afresh.")
    return dict(found.iloc[0]) if len(found) else None


def over_seeds(table: pd.DataFrame, numbers: tuple[str, ...], **values: str) -> Row | None:
    """The row of the first seed with its numbers replaced by means over seeds; ``_low``, ``_high``, ``_sd`` beside.

    ``seeds`` says how many there are. Seeds that were asked for less than half as many people as the first count for
    range and deviation alone, since other people have another mean; but where a seed moves a number by more than people
    could, they count for the mean too, or it would be that of one seed. None where there is no row.
    """
    found = where(table, **values).sort_values("seed")
    if not len(found):
        return None
    if found["seed"].duplicated().any():
        said = ", ".join(map(str, values.values()))
        raise FileFormatError(f"Expected one row for {said} and a seed, got more; run `rocerf reproduce` afresh.")
    row: Row = dict(found.iloc[0]) | {"seeds": len(found)}
    even = found[2 * found["people"] >= found["people"].iloc[0]] if "people" in found else found
    for name in numbers:
        all_known = found[name].dropna()
        known = all_known if _seeds_matter(found, name) else even[name].dropna()
        row[name] = float(known.mean()) if len(known) else math.nan
        row[f"{name}_low"], row[f"{name}_high"] = float(all_known.min()), float(all_known.max())
        alike = known if len(known) > 1 else all_known.iloc[1:] if len(all_known) > 2 else all_known
        row[f"{name}_sd"] = float(alike.std(ddof=1)) if len(alike) > 1 else 0.0
    return row


def _seeds_matter(found: pd.DataFrame, name: str) -> bool:
    """Whether seeds move a number by more than two standard errors of two means over people, the largest ones."""
    errors = sorted(found[f"{name}_se"].dropna())[-2:] if f"{name}_se" in found else []
    return bool(len(errors) == 2 and found[name].max() - found[name].min() > 2 * math.hypot(*errors))


def validity_curves_of(results: Results) -> list[Curve]:
    """Mean and standard error over trials for every (setting, dataset, model, method), in the order of the tables."""
    groups: dict[tuple[str, ...], list[Curve]] = {}
    for (*key, seed), rows in results.results.groupby([*KEY, "seed"]):
        groups.setdefault(tuple(key), []).append(_curve(results.methods, dict(zip(KEY, key, strict=True)), seed, rows))
    return [_together(groups[key]) for key in sorted(groups, key=_place)]


def _curve(methods: pd.DataFrame, case: Row, seed: int, rows: pd.DataFrame) -> Curve:
    by_alpha = rows.groupby("alpha")["validity"]
    counts, means = by_alpha.size(), by_alpha.mean()
    errors = (by_alpha.std(ddof=1) / np.sqrt(counts)).fillna(0.0)
    # 0.1 + 0.2 is not 0.3: equal trials must give equal means, or a tie looks like a victory.
    rounded = [round(float(mean), 12) for mean in means]
    measured = row_of(methods, **case, seed=seed) or {}
    answered, people = (int(measured.get(name, 0)) for name in ("answered", "people"))
    alphas, spread = ([float(value) for value in values] for values in (means.index, errors))
    shares: Row = {"alphas": alphas, "means": rounded, "errors": spread, "trials": int(counts.max())}
    shares |= {"answered": answered, "people": people} if people else {}
    return Curve(**case, **shares)


def _together(seeds: list[Curve]) -> Curve:
    """One curve of the seeds' means; answered and people are sums."""
    first = seeds[0]
    if len(seeds) == 1:
        return first
    if any(curve.alphas != first.alphas for curve in seeds):
        said = ", ".join((first.setting, first.dataset, first.model, first.method))
        raise FileFormatError(f"Expected the same alphas for every seed of {said}; run `rocerf reproduce` afresh.")
    means, squares = (
        [float(np.mean([value**power for value in values])) for values in zip(*columns, strict=True)]
        for power, columns in ((1, [c.means for c in seeds]), (2, [c.errors for c in seeds]))
    )
    return replace(
        first,
        means=[round(mean, 12) for mean in means],
        errors=[math.sqrt(square / len(seeds)) for square in squares],
        answered=sum(c.answered for c in seeds),
        people=sum(c.people for c in seeds),
        by_seed=tuple(c.means_all for c in seeds),
    )


def validity_table(results: Results) -> pd.DataFrame:
    """The curves as rows: mean validity over the trials and its standard error, for every method and alpha.

    ``validity`` is about the answered, ``validity_all`` about all denied people; ``low`` and ``high`` are the range of
    the latter over seeds.
    """
    import pandas as pd

    rows = [
        (c.setting, c.dataset, c.model, c.method, *shares, *ends, c.answered, c.people, max(1, len(c.by_seed)))
        for c in validity_curves_of(results)
        for *shares, ends in zip(c.alphas, c.means, c.errors, c.means_all, c.errors_all, _seed_ranges(c), strict=True)
    ]
    shares = ["alpha", "validity", "validity_se", "validity_all", "validity_all_se", "low", "high"]
    return pd.DataFrame(rows, columns=[*KEY, *shares, "answered", "people", "seeds"])


def _seed_ranges(curve: Curve) -> list[tuple[float, float]]:
    return curve.ranges if len(curve.by_seed) > 1 else [(mean, mean) for mean in curve.means_all]


def _place(key: tuple[str, ...]) -> tuple[int, ...]:
    orders = (SETTINGS, DATASETS, MODELS, METHODS)
    return tuple(list(order).index(part) if part in order else 99 for order, part in zip(orders, key, strict=True))


def spread_of(error: float, paper_error: float, seed_sd: float = 0.0, seeds: int = 1) -> float:
    """How far two means may be apart: twice the combined standard error over people and the spread over seeds.

    The paper has one network or autoencoder: one more draw beside ours, so that a seed's deviation counts once for it
    and once, divided by the number of seeds, for our mean.
    """
    return 2 * math.hypot(error, paper_error, seed_sd * math.sqrt(1 + 1 / seeds))


def verdict(ours: float, paper: float, spread: float) -> str:
    """``within`` so much of the paper's value, ``higher``, ``lower``, or ``unknown`` spread."""
    if not (math.isfinite(ours) and math.isfinite(spread)):
        return "unknown"
    if abs(ours - paper) <= spread * (1 + 1e-12):  # a difference as large as the spread is within, rounding or not
        return "within"
    return "higher" if ours > paper else "lower"


def accuracy_table(results: Results) -> pd.DataFrame:
    """Test accuracy: ours in both settings beside the paper's; for networks the mean over seeds.

    Both were measured on the same test rows, by models that mostly agree, so that neither's standard error judges the
    difference; ``rows`` says how many test rows it is.
    """
    import pandas as pd

    rows = []
    for model, dataset in product(MODELS, DATASETS):
        row: Row = {"dataset": dataset, "model": model}
        paper = ACCURACY[model][VARIANT_OF.get(dataset, dataset)]
        for setting in SETTINGS:
            case = {"setting": setting, "dataset": dataset, "model": model}
            found = over_seeds(results.models, ("accuracy", "denied"), **case)
            if found:
                share, count = found["accuracy"], int(found["test_rows"])
                row |= {setting: share, f"{setting}_test_rows": count, f"{setting}_seeds": found["seeds"]}
                row |= {f"{setting}_{end}": found[f"accuracy_{end}"] for end in ("low", "high")}
                row |= {f"{setting}_denied_{end}": found[f"denied_{end}"] for end in ("low", "high")}
                row[f"{setting}_rows"] = round((share - paper) * count)
        if len(row) > 2:
            rows.append(row | {"paper": paper})
    parts = ("", "_low", "_high", "_denied_low", "_denied_high", "_test_rows", "_rows", "_seeds")
    cells = [f"{setting}{part}" for setting in SETTINGS for part in parts]
    return pd.DataFrame(rows, columns=["dataset", "model", *cells, "paper"])


#: What a cost table says of each setting.
CELL = ("", "_se", "_low", "_high", "_seeds", "_answered", "_people", "_spread", "_verdict")


def cost_table(results: Results, norm: str, model: str) -> pd.DataFrame:
    """Mean cost (``l2`` or ``l1``) of each method: ours in both settings beside the paper's, each with its error."""
    import pandas as pd

    rows = []
    for dataset, method in product(DATASETS, METHODS):
        case = {"dataset": dataset, "model": model, "method": method}
        found = {name: over_seeds(results.methods, (norm,), setting=name, **case) for name in SETTINGS}
        if not any(found.values()):
            continue
        paper = printed(norm, model, method, dataset)
        row: Row = {"dataset": dataset, "method": method, "published_verdict": "", "corrected_verdict": ""}
        for setting, measured in found.items():
            if measured:
                row |= {f"{setting}{part}": value for part, value in _cell(measured, norm, paper).items()}
        row["paper"], row["paper_se"] = paper or (math.nan, math.nan)
        rows.append(row)
    cells = [f"{setting}{part}" for setting in SETTINGS for part in CELL]
    return pd.DataFrame(rows, columns=["dataset", "method", *cells, "paper", "paper_se"])


def _cell(measured: Row, norm: str, paper: tuple[float, float] | None) -> Row:
    """One cost with its spread and its verdict against the paper's."""
    mean, sd, seeds = measured[norm], measured[f"{norm}_sd"], measured["seeds"]
    error = measured[f"{norm}_se"] if measured["answered"] > 1 else math.nan  # one person has no spread
    spread = spread_of(error, paper[1], sd, seeds) if paper else math.nan
    cell = {"": mean, "_se": error, "_seeds": seeds, "_spread": spread}
    cell |= {f"_{end}": measured[f"{norm}_{end}"] for end in ("low", "high")}
    cell |= {f"_{name}": measured[name] for name in ("answered", "people")}
    return cell | {"_verdict": verdict(mean, paper[0], spread) if paper else ""}
