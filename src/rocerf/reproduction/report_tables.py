"""The rows of the report's tables, as cells of text; a cell that disagrees with the paper is marked."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from itertools import groupby, product
from pathlib import Path
from typing import TYPE_CHECKING

from rocerf.html import tag
from rocerf.reproduction.claims import Claim
from rocerf.reproduction.costs import mark_of, shown_cost
from rocerf.reproduction.frontier import KINDS, Frontier, beaten_table
from rocerf.reproduction.intervals import binomial_interval
from rocerf.reproduction.published import COSTS, DATASETS, METHODS, MODELS, OURS, SETTINGS, TABLES
from rocerf.reproduction.tables import (
    Curve,
    Results,
    Row,
    accuracy_table,
    case_name,
    cost_table,
    over_seeds,
    validity_table,
    where,
)
from rocerf.reproduction.words import as_printed, part_of, percent, signed
from rocerf.storage.whole_file import write_files

if TYPE_CHECKING:
    import pandas as pd

#: Rows of a table, some of them titles across it.
Rows = list[Sequence[str] | str]

#: The methods that a target is held against; SCFE is a constant margin of 0.
RIVALS = ("margin", "roar", "cchvae", "rocerf")


def write_tables(results: Results, folder: Path) -> dict[str, pd.DataFrame]:
    """Write every table as CSV; returns them by file name."""
    tables = {"accuracy.csv": accuracy_table(results)}
    for norm in COSTS:
        tables |= {f"cost_{norm}_{model}.csv": cost_table(results, norm, model) for model in MODELS}
    tables["beaten.csv"] = beaten_table(results)
    tables["validity.csv"] = validity_table(results)
    write_files((folder / name, table.to_csv(index=False)) for name, table in tables.items())
    return tables


def _grouped(table: pd.DataFrame, names: dict[str, str], key: str, cells: Callable[[Row], list[str]]) -> Rows:
    """Rows of a table under a title for each value of a column."""
    rows: Rows = []
    for value, group in table.groupby(key, sort=False):
        rows += [names[value], *(cells(row) for row in group.to_dict("records"))]
    return rows


def cost_rows(table: pd.DataFrame) -> Rows:
    """The paper's value, ours, the mark, and the corrected setting; within a table by data set."""

    def cells(row: Row) -> list[str]:
        judged = row["published_verdict"]
        kind = {"within": "in", "higher": "out", "lower": "out"}.get(judged, "")
        ours = shown_cost(row, "published") if judged else "–"
        corrected = shown_cost(row, "corrected")
        marked = [tag("span", text, kind=kind) if kind else text for text in (ours, mark_of(row))]
        return [METHODS[row["method"]], as_printed(row["paper"], row["paper_se"]), *marked, corrected]

    return _grouped(table, DATASETS, "dataset", cells)


def accuracy_rows(table: pd.DataFrame) -> Rows:
    """Accuracy and denied people, with their ranges over seeds."""

    def share(row: Row, setting: str) -> str:
        some = row[f"{setting}_seeds"] > 1
        ends = f" [{percent(row[f'{setting}_low'])}–{percent(row[f'{setting}_high'])}]" if some else ""
        return percent(row[setting]) + ends

    def denied(row: Row, setting: str) -> str:
        low, high = row[f"{setting}_denied_low"], row[f"{setting}_denied_high"]
        if not math.isfinite(low):
            return "–"
        return f"{low:,.0f}" if low == high else f"{low:,.0f}–{high:,.0f}"

    def cells(row: Row) -> list[str]:
        shares, counts = ([tell(row, key) for key in SETTINGS] for tell in (share, denied))
        return [DATASETS[row["dataset"]], percent(row["paper"]), *shares, *counts]

    return _grouped(table, MODELS, "model", cells)


def sweep_rows(frontiers: Sequence[Frontier], model: str) -> Rows:
    """Every setting of every knob that was tried."""
    rows: Rows = []
    shown = [f for f in frontiers if f.model == model]
    for (setting, dataset), group in groupby(shown, lambda f: (f.setting, f.dataset)):
        rows.append(f"{DATASETS[dataset]}, {SETTINGS[setting]}")
        for curve in group:
            for point in curve.tried:
                own = " (own)" if point is curve.own else ""
                value = f"{100 * point.value:g} %" if curve.knob == "k" else f"{point.value:g}"
                shares = [_share(point.share(kind), getattr(point, f"{kind}_range"), point.seeds) for kind in KINDS]
                cost = f"{point.l2:.3f}" if math.isfinite(point.l2) else "–"
                name = METHODS[curve.method]
                answered = part_of(point.answered, point.people)
                rows.append([name, f"{curve.knob} {value}{own}", cost, *shares, answered])
    return rows


def _share(share: float, ends: tuple[float, float], seeds: int) -> str:
    if seeds < 2 or not math.isfinite(share):
        return percent(share)
    return f"{percent(share)} [{percent(ends[0])}–{percent(ends[1])}]"


def beaten_rows(table: pd.DataFrame) -> Rows:
    """For each target and way of deletion, what the others cost for as many valid answers."""
    rows: Rows = []
    for dataset, model in product(TABLES, MODELS):
        case = where(table, dataset=dataset, model=model)
        if len(case):
            rows.append(f"{DATASETS[dataset]}, {MODELS[model]}")
        for target, kind in product(("rocerf", *OURS[model]), KINDS):
            group = {row["other"]: row for row in where(case, target=target, kind=kind).to_dict("records")}
            known = [row for row in group.values() if row["beats"]]
            if known:
                share, cost = known[0]["target_share"], known[0]["target_l2"]
                head = f"{METHODS[target].partition(' (')[0]}, {kind}: {percent(share)} at {cost:.2f}"
                rows.append([head, *(_beaten(group.get(other)) for other in RIVALS)])
    return rows


def _beaten(row: Row | None) -> str:
    if row is None or not row["beats"]:
        return ""
    if row["beats"] == "never":
        return f"– ({percent(row['best_share'])})"
    extra = signed(row["l2"] / row["target_l2"] - 1)
    text = f"{'●' if row['beats'] == 'yes' else '○'} {row['l2']:.2f} ({extra})"
    return tag("b", text) if row["beats"] == "yes" else text


def validity_rows(curves: Sequence[Curve]) -> tuple[list[str], Rows]:
    """Head and rows of validity by share of deleted rows."""
    alphas = sorted({alpha for curve in curves for alpha in curve.alphas})
    rows: Rows = []
    for (setting, dataset), group in groupby(curves, lambda curve: (curve.setting, curve.dataset)):
        rows.append(f"{DATASETS[dataset]}, {SETTINGS[setting]}")
        for curve in group:
            own, everybody = (
                [percent(by_alpha.get(alpha, math.nan)) for alpha in alphas]
                for means in (curve.means, curve.means_all)
                for by_alpha in [dict(zip(curve.alphas, means, strict=True))]
            )
            several = len(curve.by_seed) > 1
            together = f" in {len(curve.by_seed)} seeds" if several else ""  # the same people more than once
            rows.append([METHODS[curve.method], part_of(curve.answered, curve.people) + together, *everybody])
            if several:
                ends = dict(zip(curve.alphas, curve.ranges, strict=True))
                each = [f"{percent(ends[a][0])}–{percent(ends[a][1])}" if a in ends else "–" for a in alphas]
                rows.append([f"range over {len(curve.by_seed)} seeds", "", *each])
            if curve.answered < curve.people:
                rows.append(["of those answered", "", *own])
    return ["", "answered", *(f"α = {100 * alpha:g} %" for alpha in alphas)], rows


def worst_rows(results: Results) -> Rows:
    """Survivors of the worst deletion found, with the cost, in both settings."""
    rows: Rows = []
    for model, dataset in product(MODELS, DATASETS):
        group: Rows = []
        for method in METHODS:
            cells, sizes = [], []
            for setting in SETTINGS:
                case = {"setting": setting, "dataset": dataset, "model": model, "method": method}
                found = over_seeds(results.worst, ("validity",), **case) if results.worst is not None else None
                cost = over_seeds(results.methods, ("l2",), **case)
                cells += [survivors(found) if found else "–", f"{cost['l2']:.2f}" if found and cost else "–"]
                sizes += [f"{found['k']:.0f}"] if found else []
            if sizes:
                group.append([METHODS[method], " / ".join(dict.fromkeys(sizes)), *cells])
        rows += [f"{DATASETS[dataset]}, {MODELS[model]}", *group] if group else []
    return rows


def survivors(row: Row) -> str:
    """Points of a method that survive, of those searched, with an interval; a mean share where seeds differ."""
    share, people = row["validity"], row["people"]
    if not math.isfinite(share):
        return "–"
    if row["seeds"] > 1:
        return f"{percent(share)} [{percent(row['validity_low'], 0)}–{percent(row['validity_high'], 0)}]"
    low, high = binomial_interval(share, people)
    ends = f"[{percent(low, 0)}–{percent(high, 0)}]"
    if row["model"] == "nn":  # a mean share of retrained networks, not a count of people
        return f"{percent(share)} of {people:.0f} people"
    return f"{round(share * people)} of {people:.0f} {ends}"


def claim_rows(found: Sequence[Claim]) -> Rows:
    """Claims under their parts, the verdict marked."""
    rows: Rows = []
    for part in dict.fromkeys(claim.part for claim in found):
        rows.append(part)
        for claim in (claim for claim in found if claim.part == part):
            kind = {"holds": "in", "not measured": ""}.get(claim.verdict, "out")
            sign = {"in": "✓ ", "out": "✗ ", "": ""}[kind]
            mixed = claim.verdict.startswith("holds on")
            verdict = ("◐ " if mixed else sign) + claim.verdict
            rows.append([claim.said, tag("span", verdict, kind=kind) if kind else verdict, claim.evidence])
    return rows


def sensitivity_rows(table: pd.DataFrame) -> Rows:
    """Cost and lowest validity for each k."""
    rows: Rows = []
    for dataset, part in table.groupby("dataset", sort=False):
        rows.append(DATASETS[dataset])
        for share, group in part.groupby("k_share"):
            size = f"{100 * share:g} % ({group['k'].iloc[0]:,.0f} rows)"
            rows.append([size, f"{group['l2'].iloc[0]:.2f}", percent(float(group["validity"].min()))])
    return rows


def measure_rows(results: Results) -> Rows:
    """What else was measured of each method, at the first seed."""
    rows: Rows = []
    first = where(results.methods, seed=0)
    for setting, dataset, model in product(SETTINGS, DATASETS, MODELS):
        found = where(first, setting=setting, dataset=dataset, model=model).to_dict("records")
        known = [row for method in METHODS for row in found if row["method"] == method]
        if known:
            rows.append(case_name(dataset, model, setting))
            rows += [[METHODS[row["method"]], *_measure_cells(row)] for row in known]
    return rows


def _measure_cells(row: Row) -> list[str]:
    without = 1 - row["answered"] / row["people"] if row["people"] else math.nan
    numbers = {"cost_over_plain": ".2f", "changed": ".1f", "distance_to_data": ".2f"}
    shown = [f"{row[name]:{form}}" if math.isfinite(row[name]) else "–" for name, form in numbers.items()]
    return [percent(without), *shown, _seconds(float(row["seconds_per_person"]) if row["people"] else math.nan)]


def _seconds(value: float) -> str:
    if not math.isfinite(value):
        return "–"
    return f"{value:.1f} s" if value >= 1 else f"{1000 * value:.2g} ms" if value < 0.0995 else f"{1000 * value:.0f} ms"
