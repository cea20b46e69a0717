"""What the report says of accuracy, validity and who is better: a plain sentence for each, made from the numbers.

"Proven" is kept for what is proven: retraining, searching and simulating show, they do not prove.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

import numpy as np

from rocerf.evaluation.paper_values import (
    BASELINES,
    DATASETS,
    METHODS,
    MODELS,
    OURS,
    SETTINGS,
    VALIDITY_LR,
    VALIDITY_NN,
)

if TYPE_CHECKING:
    import pandas as pd

    from rocerf.evaluation.paper_tables import Curve

Row = dict[str, Any]


def with_error(mean: float, error: float) -> str:
    """``0.82 ± 0.12``; a third digit where the error needs it."""
    if not math.isfinite(mean):
        return "–"
    digits = 3 if math.isfinite(error) and 0 < error < 0.01 else 2
    return f"{mean:.{digits}f} ± {error:.{digits}f}" if math.isfinite(error) else f"{mean:.2f}"


def as_printed(mean: float, error: float) -> str:
    """A value of the paper with the digits it has there.

    >>> as_printed(1.0, 0.09), as_printed(3.79, 0.013)
    ('1.00 ± 0.09', '3.79 ± 0.013')
    """
    return f"{mean:.2f} ± {error:g}" if math.isfinite(mean) else "–"


def percent(share: float, digits: int = 1) -> str:
    """``99.6 %`` with a space that does not break; less than all is never rounded up to 100, nor some down to 0."""
    if not math.isfinite(share):
        return "–"
    step = 10.0**-digits
    shown = round(100 * share, digits)
    if 0 < share < 1:
        shown = min(max(shown, step), 100 - step)
    return f"{shown:.{digits}f}\N{NO-BREAK SPACE}%"


def listed(words: Sequence[str]) -> str:
    """``a, b and c``."""
    return " and ".join(filter(None, [", ".join(words[:-1]), *words[-1:]]))


def accuracy_sentence(row: Row) -> str:
    """How one accuracy compares with the paper's."""
    parts = [f"{DATASETS[row['dataset']]}, {MODELS[row['model']]} (paper {percent(row['paper'])}):"]
    said = []
    for setting, words in SETTINGS.items():
        if not math.isfinite(row[setting]):
            said.append(f"{words} not measured")
            continue
        points, spread = 100 * (row[setting] - row["paper"]), 200 * math.sqrt(2) * row[f"{setting}_se"]
        where = "within" if row[f"{setting}_verdict"] == "within" else "outside"
        said.append(
            f"{words} {percent(row[setting])}, {abs(points):.1f} points {'above' if points > 0 else 'below'}, {where} "
            f"two combined standard errors over {row[f'{setting}_test_rows']:,.0f} test rows ({spread:.1f} points)"
        )
    parts.append("; ".join(said) + ".")
    if (row["dataset"], row["model"]) == ("german", "lr"):
        parts.append("The paper's 72.2 % was not reached with any setting we tried.")
    return " ".join(parts)


def validity_sentences(curves: Sequence[Curve], methods: pd.DataFrame | None = None) -> list[str]:
    """The published setting against what the paper's text says of validity."""
    published = [curve for curve in curves if curve.setting == "published"]
    logistic = [
        " ".join(filter(None, [_logistic_validity(c), _why_scfe(c, curves, methods)]))
        for c in published
        if c.model == "lr" and c.method in VALIDITY_LR and _above_zero(c)
    ]
    networks = [_network_validity(published, dataset) for dataset in DATASETS if _networks(published, dataset)]
    return logistic + networks


def _above_zero(curve: Curve) -> list[float]:
    """The means where rows were deleted."""
    return [mean for alpha, mean in zip(curve.alphas, curve.means, strict=True) if alpha > 0]


def _fits(curve: Curve) -> bool:
    _, low, high = VALIDITY_LR[curve.method]
    shares = _above_zero(curve)
    return low <= min(shares) and max(shares) <= high


def _logistic_validity(curve: Curve) -> str:
    words, low, high = VALIDITY_LR[curve.method]
    shares = _above_zero(curve)
    agrees = _fits(curve)
    said = (
        f"{METHODS[curve.method]} on {DATASETS[curve.dataset]}, logistic regression: {_range(shares)} over the α "
        f"above 0; the paper says {words}. "
        f"This {'agrees' if agrees else 'does not agree'} (we count {percent(low, 0)} to {percent(high, 0)} as that)."
    )
    if (curve.method, curve.dataset, agrees) == ("rocerf", "german", False):
        said += " The paper, too, sees a slight drop on German when more rows go than k."
    return said


def _range(shares: Sequence[float]) -> str:
    low, high = percent(min(shares)), percent(max(shares))
    return low if low == high else f"{low} to {high}"


def _why_scfe(curve: Curve, curves: Sequence[Curve], methods: pd.DataFrame | None) -> str:
    """SCFE's validity is not the paper's where the authors' search walks past the boundary."""
    if curve.method != "scfe" or methods is None or _fits(curve):
        return ""
    here = (methods["dataset"] == curve.dataset) & (methods["model"] == "lr") & (methods["method"] == "scfe")
    rows = methods[here & (methods["setting"] == "published")]
    near = [
        c for c in curves if (c.setting, c.dataset, c.model, c.method) == ("corrected", curve.dataset, "lr", "scfe")
    ]
    said = ""
    if len(rows):
        ratio = float(rows["cost_over_plain"].iloc[0])
        said = f"The authors' search walks past the boundary: it costs {ratio:.2f} times what the nearest point costs."
    if near and _above_zero(near[0]):
        said += f" The nearest accepted point itself, in the corrected setting: {_range(_above_zero(near[0]))}."
    return said.strip()


def _networks(curves: Sequence[Curve], dataset: str) -> list[Curve]:
    return [c for c in curves if (c.model, c.dataset) == ("nn", dataset)]


def _network_validity(curves: Sequence[Curve], dataset: str) -> str:
    shown = [curve for curve in _networks(curves, dataset) if _above_zero(curve)]
    means = {curve.method: float(np.mean(_above_zero(curve))) for curve in shown}
    ranked = sorted(means, key=lambda method: -means[method])
    order = ", ".join(f"{METHODS[method]} {percent(means[method])}" for method in ranked)
    claims = "; ".join(f"{words}: {'yes' if held else 'no'}" for words, held in _claims(dataset, shown, means))
    return (
        f"{DATASETS[dataset]}, networks: the paper's text says that {VALIDITY_NN[dataset]}; it prints no numbers. "
        f"Here, means over the α above 0, best first: {order}.{f' As in the paper? {claims}.' if claims else ''}"
    )


def _claims(dataset: str, curves: Sequence[Curve], means: dict[str, float]) -> list[tuple[str, bool]]:
    """What the paper's text says of networks, each part held against this run; nothing where a method is missing."""
    if not {*BASELINES, "rocerf"} <= set(means):
        return []
    best = max(means, key=lambda method: means[method])
    if dataset == "german":
        last = min(curve.means[-1] for curve in curves)
        return [("all at 100 % where most rows go", last >= 0.995), ("C-CHVAE best", best == "cchvae")]
    if dataset == "compas":
        return [("ROCERF best", best == "rocerf")]
    worse, better = max(means["scfe"], means["cchvae"]), min(means["rocerf"], means["roar"])
    alike = abs(means["rocerf"] - means["roar"]) <= 0.05
    return [("SCFE and C-CHVAE worse", worse < better), ("ROCERF and ROAR within 5 points", alike)]


def pareto_sentences(table: pd.DataFrame) -> tuple[str, list[str]]:
    """One verdict over all, and one sentence for each data set and model."""
    groups = [(key, group.to_dict("records")) for key, group in table.groupby(["dataset", "model"], sort=False)]
    said = [_pareto_sentence(dataset, model, rows) for (dataset, model), rows in groups]
    judged = [rows for _, rows in groups if any(row["dominates_ours"] and row["role"] == "baseline" for row in rows)]
    if not judged:
        return "Nothing can be judged: ours or every baseline is missing.", said
    beaten = sum(bool(_better(rows, "baseline")) for rows in judged)
    if beaten:
        whole = f"In {beaten} of {len(judged)} cases a baseline has both validity and cost better than ours; see below."
    else:
        cases = f"the {len(judged)} cases" if len(judged) > 1 else "the one case"
        whole = f"In {cases} judged, no baseline has both validity and cost better than ours."
    cheaper = sum(bool(_better(rows, "first order")) for rows in judged)
    if cheaper:
        whole += (
            f" In {cheaper} of {len(judged)} the paper's own first-order constraint, which is not counted as a "
            "baseline, does at least as well in both under random deletions and better in one."
        )
    return whole, said


def _better(rows: list[Row], role: str) -> list[Row]:
    return [row for row in rows if row["role"] == role and row["dominates_ours"] == "yes"]


def _pareto_sentence(dataset: str, model: str, rows: list[Row]) -> str:
    where = f"{DATASETS[dataset]}, {MODELS[model]}"
    ours = next((row for row in rows if row["role"] == "ours"), None)
    if ours is None:
        return f"{where}: cannot be judged, {METHODS[OURS[model]]} was not measured."
    known = {row["method"] for row in rows if row["dominates_ours"]}
    unknown = [METHODS[method] for method in BASELINES if method not in known]
    winners = _better(rows, "baseline")
    parts = [f"{where}: {_both(ours)}."]
    if winners:
        parts.append(f"Better in both: {'; '.join(_both(row) for row in winners)}.")
    elif len(unknown) < len(BASELINES):
        parts.append("No baseline that was judged is at least as good in both and better in one.")
    if unknown:
        parts.append(f"Not judged: {', '.join(unknown)}.")
    parts += [_first_order(row, ours) for row in _better(rows, "first order")]
    for row in rows:
        if row["answered"] < row["people"]:
            parts.append(
                f"{METHODS[row['method']]} answers {row['answered']:.0f} of {row['people']:.0f} people; its "
                "figures are about those."
            )
    return " ".join(parts)


def _both(row: Row) -> str:
    cost = with_error(row["l2"], row["l2_se"])
    return f"{METHODS[row['method']]} has validity {percent(row['worst_validity'])} at its worst α and costs {cost}"


def _first_order(row: Row, ours: Row) -> str:
    """The paper's own constraint is no baseline; where it looks better under random deletions, that is said too."""
    said = (
        "Under random deletions the paper's first-order constraint does at least as well in both and better in one: "
        f"{_both(row)}."
    )
    if math.isfinite(row["worst_case_validity"]) and math.isfinite(ours["worst_case_validity"]):
        said += (
            f" Of its points {percent(row['worst_case_validity'], 0)} survive the worst deletion found, of ours "
            f"{percent(ours['worst_case_validity'], 0)}; that is what the higher cost buys."
        )
    return said


def theorem_sentences(table: pd.DataFrame) -> list[str]:
    """What the check shows: how often the cost is below the bound, by how much, and how it grows with k/n."""
    said = []
    for name, words in (("bound", "Theorem 4.1"), ("bound_42", "Theorem 4.2")):
        if name not in table:
            continue
        known = table[table[name].notna()]
        kept = int((known["extra_cost"] <= known[name]).sum())
        sentence = f"{words}: the extra cost is at most the bound in {kept} of {len(known)} cases"
        if len(known):
            ratios = known[name] / known["extra_cost"].where(known["extra_cost"] > 0)
            sentence += f"; the bound is {ratios.min():.3g} to {ratios.max():.3g} times the cost measured"
        none = len(table) - len(known)
        said.append(
            sentence + (f"; in {none} of {len(table)} k/n is so large that there is no bound." if none else ".")
        )
    positive = table[table["extra_cost"] > 0]
    if positive["k_over_n"].nunique() > 1:
        slope = np.polyfit(np.log(positive["k_over_n"]), np.log(positive["extra_cost"]), 1)[0]
        said.append(
            f"Over all {len(positive)} cases the extra cost grows like k/n to the power {slope:.2f} (least squares on "
            "logarithms; the bound of the theorems has power 1 for small k/n)."
        )
    return said


def worst_case_sentences(points: pd.DataFrame) -> list[str]:
    """For each data set, how many points of each method survive the worst deletion found."""
    said = []
    for dataset, group in points.groupby("dataset", sort=False):
        order = list(METHODS)
        rows = sorted(group.to_dict("records"), key=lambda row: order.index(row["method"]))
        each = [
            f"{METHODS[row['method']]} {round(row['worst_case_validity'] * row['worst_case_people'])} of "
            f"{row['worst_case_people']:.0f}"
            for row in rows
        ]
        said.append(f"{DATASETS[dataset]}: {', '.join(each)}.")
    return said


def price_sentences(pareto: pd.DataFrame) -> list[str]:
    """The paper's constraint against `retrained`, data set by data set: random deletions, worst deletions, cost."""
    said = []
    logistic = pareto[pareto["model"] == "lr"]
    for dataset, group in logistic.groupby("dataset", sort=False):
        rows = {row["method"]: row for row in group.to_dict("records")}
        if not {"rocerf", "retrained"} <= set(rows):
            continue
        first, second = rows["rocerf"], rows["retrained"]
        said.append(
            f"{DATASETS[dataset]}: when rows are deleted at random, {percent(first['worst_validity'])} of the paper's "
            f"points and {percent(second['worst_validity'])} of ours are valid at the worst α; when the worst k rows "
            f"found are deleted, {percent(first['worst_case_validity'], 0)} and "
            f"{percent(second['worst_case_validity'], 0)}. The mean cost is {first['l2']:.3f} and {second['l2']:.3f} "
            f"({second['l2'] / first['l2'] - 1:+.1%})."
        )
    return said
