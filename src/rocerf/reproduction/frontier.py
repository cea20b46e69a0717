"""What a method's knob buys: validity against cost, point by point, and who is as valid for less.

A method is not one point. Each has a knob (a score margin, a box of parameters, a number of deletions, a radius), and
whoever compares two methods must compare what both reach at *some* setting of it. Everything here is about measured
points (``sweeps.csv``); nothing is interpolated, so that "as valid for less" names a setting that was really tried.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from itertools import product
from typing import TYPE_CHECKING

import numpy as np

from rocerf.reproduction.published import DATASETS, METHODS, MODELS, OURS, SETTINGS, SIMPLE
from rocerf.reproduction.tables import Row, where

if TYPE_CHECKING:
    import pandas as pd

    from rocerf.reproduction.tables import Results

#: The two ways in which rows go: at random, or picked against each point.
KINDS = {"random": "rows deleted at random", "picked": "rows picked against each answer"}

#: The share of rows that the paper's method is meant to withstand, the largest that the paper deletes, half the
#: side of ROAR's box of parameters and the width of C-CHVAE's shells in the paper: what each method's own knob is.
SHARE, LARGEST, BOX, SHELL = 0.005, 0.05, 0.1, 0.05


@dataclass(frozen=True)
class Tried:
    """One setting of a knob: mean cost of the answered, and shares of all denied people asked.

    Means are over the seeds for which every setting was tried (``averaged`` of them), so that no curve mixes networks.
    ``random`` and ``picked`` are NaN where they were not measured. The ranges are over all ``seeds`` that have this
    setting, or two standard errors where there is one, and the shares ``_all`` are of everybody asked in any of them.
    """

    value: float
    l2: float
    l2_range: tuple[float, float]
    random: float
    random_range: tuple[float, float]
    picked: float
    picked_range: tuple[float, float]
    people: int
    answered: int
    seeds: int
    averaged: int = 1
    random_most: float = math.nan
    random_all: float = math.nan
    picked_all: float = math.nan
    people_all: int = 0

    def share(self, kind: str) -> float:
        """``random``, ``picked``, or ``random_most``: after the largest random deletions of the run."""
        return float(getattr(self, kind))

    def over_seeds(self, kind: str) -> float:
        """The share ``random`` or ``picked`` of everybody asked, in all seeds that have this setting."""
        every = float(getattr(self, f"{kind}_all"))
        return every if math.isfinite(every) else self.share(kind)


@dataclass(frozen=True)
class Frontier:
    """Every setting of one method's knob that was tried, in its order; ``own`` is the one it is meant to have."""

    setting: str
    dataset: str
    model: str
    method: str
    knob: str
    tried: tuple[Tried, ...]
    own: Tried | None

    def cheapest(self, kind: str, at_least: float) -> Tried | None:
        """The cheapest setting that keeps at least such a share valid; None where no setting does."""
        reach = [point for point in self.tried if point.share(kind) >= at_least and math.isfinite(point.l2)]
        return min(reach, key=lambda point: point.l2, default=None)

    def best(self, kind: str) -> float:
        """The largest share that any setting keeps valid; NaN where none was measured."""
        shares = [point.share(kind) for point in self.tried]
        return max((share for share in shares if math.isfinite(share)), default=math.nan)


def frontiers_of(results: Results) -> list[Frontier]:
    """Every curve of a run, in the order of the tables; none where nothing was swept."""
    if results.sweeps is None:
        return []
    common = {
        key: set.intersection(*(set(rows["seed"]) for _, rows in case.groupby(["method", "value"])))
        for key, case in results.sweeps.groupby(["setting", "dataset", "model"])
    }
    found = []
    for setting, dataset, model, method in product(SETTINGS, DATASETS, MODELS, METHODS):
        case = {"setting": setting, "dataset": dataset, "model": model}
        rows = where(results.sweeps, **case, method=method)
        if len(rows):
            sizes = where(results.models, **case)["train_rows"]
            own = own_value(method, sorted(set(rows["value"])), int(sizes.iloc[0]) if len(sizes) else 0)
            tried = tuple(
                _tried(value, group, common[setting, dataset, model]) for value, group in rows.groupby("value")
            )
            mine = next((point for point in tried if point.value == own), None)
            found.append(Frontier(setting, dataset, model, method, str(rows["knob"].iloc[0]), tried, mine))
    return found


def _tried(value: float, rows: pd.DataFrame, common: set[int]) -> Tried:
    """One setting: means over the seeds that have every setting, ranges over all seeds that have this one."""
    cells: Row = {}
    even = rows[rows["seed"].isin(common)] if common else rows
    for name in ("l2", "random", "picked"):
        known, seen = even[name].dropna(), rows[name].dropna()
        cells[name] = round(float(known.mean()), 12) if len(known) else math.nan
        error = float(even[f"{name}_se"].fillna(0.0).iloc[0]) if len(even) else 0.0
        ends = (seen.min(), seen.max()) if len(seen) > 1 else (cells[name] - 2 * error, cells[name] + 2 * error)
        low, high = (float(end) for end in ends)
        cells[f"{name}_range"] = (low, high) if name == "l2" else (max(0.0, low), min(1.0, high))
        if name != "l2" and len(seen):
            asked = rows.loc[seen.index, "people"]
            cells[f"{name}_all"] = round(float((seen * asked).sum() / asked.sum()), 12)
    cells |= {name: int(even[name].sum()) for name in ("people", "answered")}
    cells["people_all"] = int(rows["people"].sum())
    if "random_most" in even.columns and even["random_most"].notna().any():  # older runs do not have it
        cells["random_most"] = round(float(even["random_most"].mean()), 12)
    return Tried(value=float(value), **cells, seeds=rows["seed"].nunique(), averaged=even["seed"].nunique())


def own_value(method: str, values: list[float], rows: int) -> float:
    """The setting that a method is meant to have: margin 0 for SCFE, delta_max 0.1 for ROAR, k = 0.5 % of the rows.

    `simulated` is meant for random deletions of up to 5 %. ``k`` may be told as a share or as a number, rounded up or
    cut off. NaN where the method has none (a constant margin) or where it was not tried.

    >>> own_value("rocerf", [2.0, 4.0, 8.0], 800), own_value("roar", [0.02, 0.1], 800)
    (4.0, 0.1)
    """
    if method == "margin":
        return math.nan
    if method == "scfe":
        wanted: tuple[float, ...] = (0.0,)
    elif method == "roar":
        wanted = (BOX,)
    elif method.startswith("cchvae"):
        wanted = (SHELL,)
    elif method == "simulated":  # random deletions up to the largest share that the paper tries
        wanted = (LARGEST, math.ceil(LARGEST * rows - 1e-9), math.floor(LARGEST * rows + 1e-9))
    else:
        wanted = (SHARE, math.ceil(SHARE * rows - 1e-9), math.floor(SHARE * rows + 1e-9))
    return next((value for value in values if any(np.isclose(value, aim) for aim in wanted)), math.nan)


def find(frontiers: list[Frontier], **case: str) -> Frontier | None:
    """The curve of a method, or None."""
    return next((f for f in frontiers if all(getattr(f, name) == value for name, value in case.items())), None)


def beaten_table(results: Results) -> pd.DataFrame:
    """Corrected setting: does any setting of a method keep as many answers valid as ROCERF's or ours, for less?

    ``target`` is ROCERF or one of ours at its own k; ``other`` any method that knows nothing of deletions (and ROCERF,
    against ours). ``beats`` is "yes" where some setting of the other has at least the target's share at a lower mean
    cost, "no" where it costs as much or more, "never" where no setting reaches that share, and empty where either was
    not measured. Once for rows deleted at random and once for rows picked against each point.
    """
    import pandas as pd

    frontiers = [f for f in frontiers_of(results) if f.setting == "corrected"]
    rows = []
    for dataset, model in product(DATASETS, MODELS):
        case = {"dataset": dataset, "model": model}
        for target, other, kind in product(("rocerf", *OURS[model]), (*SIMPLE, "rocerf"), KINDS):
            ours, theirs = (find(frontiers, **case, method=method) for method in (target, other))
            if target != other and ours and theirs:
                rows.append({**case, "target": target, "other": other, "kind": kind, **_against(ours, theirs, kind)})
    names = ["target_share", "target_l2", "beats", "value", "share", "l2", "best_share"]
    return pd.DataFrame(rows, columns=["dataset", "model", "target", "other", "kind", *names])


def _against(ours: Frontier, theirs: Frontier, kind: str) -> Row:
    row: Row = {"beats": "", "best_share": theirs.best(kind)}
    if ours.own is None or not math.isfinite(ours.own.share(kind)) or not math.isfinite(row["best_share"]):
        return row
    row |= {"target_share": ours.own.share(kind), "target_l2": ours.own.l2, "beats": "never"}
    found = theirs.cheapest(kind, ours.own.share(kind))
    if found is not None:
        row |= {"value": found.value, "share": found.share(kind), "l2": found.l2}
        row["beats"] = "yes" if found.l2 < ours.own.l2 else "no"
    return row
