"""What the report says of accuracy, validity and who is better: a plain sentence for each, made from the numbers.

"Proven" is kept for what is proven: retraining, searching and simulating show, they do not prove.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

import numpy as np

from rocerf.reproduction.published import (
    BASELINES,
    DATASETS,
    DROPS_LR,
    METHODS,
    MODELS,
    OURS,
    SETTINGS,
    VALIDITY_LR,
    VALIDITY_NN,
)

if TYPE_CHECKING:
    import pandas as pd

    from rocerf.reproduction.tables import Curve

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
        points = 100 * (row[setting] - row["paper"])
        side = f"{abs(points):.1f} points {'above' if points > 0 else 'below'}" if round(points, 1) else "the same"
        said.append(
            f"{words} {percent(row[setting])}, {side} ({abs(row[f'{setting}_rows']):,.0f} of "
            f"{row[f'{setting}_test_rows']:,.0f} test rows)"
        )
    parts.append("; ".join(said) + ".")
    if (row["dataset"], row["model"]) == ("german", "lr"):
        parts.append(f"No setting that we tried gives the paper's {percent(row['paper'])}.")
    return " ".join(parts)


def validity_sentences(curves: Sequence[Curve], methods: pd.DataFrame | None = None) -> list[str]:
    """The published setting against what the paper's text says of validity, over all denied people as in the paper."""
    published = [curve for curve in curves if curve.setting == "published" and _above_zero(curve)]
    logistic = [_logistic_validity(published, dataset, curves, methods) for dataset in DATASETS]
    if any(logistic):
        text = f"the paper's text says that {VALIDITY_LR}. Its figures print no numbers."
        logistic = [f"Logistic regression: {text}", *logistic, _drops(published)]
    networks = [_network_validity(published, dataset) for dataset in DATASETS]
    return [sentence for sentence in (*logistic, *networks) if sentence]


def _above_zero(curve: Curve) -> list[float]:
    """The means over all denied people where rows were deleted."""
    return [mean for alpha, mean in zip(curve.alphas, curve.means_all, strict=True) if alpha > 0]


def _range(shares: Sequence[float]) -> str:
    low, high = percent(min(shares)), percent(max(shares))
    return low if low == high else f"{low} to {high}"


def _of(curves: Sequence[Curve], model: str, dataset: str) -> list[Curve]:
    return [c for c in curves if (c.model, c.dataset) == (model, dataset)]


def _ranked(curves: Sequence[Curve]) -> str:
    """Methods with their mean over the alphas above 0, best first, and who was answered where not all were."""
    ranked = sorted(curves, key=lambda curve: -float(np.mean(_above_zero(curve))))
    return ", ".join(
        f"{METHODS[curve.method]} {percent(float(np.mean(_above_zero(curve))))}{_among_answered(curve)}"
        for curve in ranked
    )


def _among_answered(curve: Curve) -> str:
    if curve.answered == curve.people:
        return ""
    shares = [mean for alpha, mean in zip(curve.alphas, curve.means, strict=True) if alpha > 0]
    own = f", {percent(float(np.mean(shares)))} of these" if curve.answered else ""
    return f" ({curve.answered:,} of {curve.people:,} answered{own})"


def _judged(claims: Sequence[tuple[str, bool]]) -> str:
    """Each part of what the paper says, and whether this run shows it."""
    told = "; ".join(f"{words}: {'yes' if held else 'not reproduced'}" for words, held in claims)
    return f" As in the paper? {told}." if told else ""


def _logistic_validity(
    published: Sequence[Curve], dataset: str, curves: Sequence[Curve], methods: pd.DataFrame | None
) -> str:
    shown = _of(published, "lr", dataset)
    if not shown:
        return ""
    said = (
        f"{DATASETS[dataset]}, logistic regression: means over the α above 0, best first: {_ranked(shown)}."
        f"{_judged(_logistic_claims(dataset, shown, methods))}"
    )
    rocerf = [_above_zero(curve) for curve in shown if curve.method == "rocerf"]
    if dataset == "german" and rocerf and min(rocerf[0]) < FULL:
        said += " The paper, too, sees a slight drop on German when more rows go than k."
    return " ".join(filter(None, [said, _beside_the_boundary(shown, curves, methods)]))


#: A mean validity from here on counts as the paper's 100 %, one below the second as a significant drop.
FULL, DROP = 0.995, 0.95


def _logistic_claims(dataset: str, curves: Sequence[Curve], methods: pd.DataFrame | None) -> list[tuple[str, bool]]:
    """What the paper's text says of logistic regression, each part held against this run, alpha by alpha."""
    shares = {curve.method: _above_zero(curve) for curve in curves}
    if not {*BASELINES, "rocerf"} <= set(shares):
        return []
    rocerf, roar = shares["rocerf"], shares["roar"]
    others = zip(*(shares[method] for method in ("cchvae", "roar", "rocerf")), strict=True)
    lowest = all(mean < min(rest) for mean, rest in zip(shares["scfe"], others, strict=True))
    nowhere_worse = all(mean >= other for mean, other in zip(rocerf, roar, strict=True))
    claims = [
        (f"ROCERF at {percent(FULL)} or more at all α but one at most", sum(m < FULL for m in rocerf) <= 1),
        ("SCFE least valid at every α", lowest),
        ("ROCERF nowhere less valid than ROAR and somewhere more", nowhere_worse and rocerf != roar),
    ]
    if dataset in ("compas", "adult"):
        worse = all(mean < other for mean, other in zip(shares["cchvae"], rocerf, strict=True))
        claims.append(("C-CHVAE less valid than ROCERF at every α", worse))
    return claims + _cost_claims(dataset, methods)


def _cost_claims(dataset: str, methods: pd.DataFrame | None) -> list[tuple[str, bool]]:
    if methods is None:
        return []
    here = (methods["setting"] == "published") & (methods["dataset"] == dataset) & (methods["model"] == "lr")
    rows = methods[here]
    costs = dict(zip(rows["method"], rows["l2"], strict=True))
    if not all(math.isfinite(costs.get(method, math.nan)) for method in (*BASELINES, "rocerf")):
        return []
    return [
        ("SCFE cheapest", min(costs, key=lambda method: costs[method]) == "scfe"),
        ("C-CHVAE dearer than ROCERF", costs["cchvae"] > costs["rocerf"]),
        ("ROCERF at most 5 % dearer than ROAR", costs["rocerf"] <= 1.05 * costs["roar"]),
    ]


def _drops(published: Sequence[Curve]) -> str:
    """What the paper says of the baselines over all data sets together."""
    lowest = {
        method: min(min(_above_zero(c)) for c in published if (c.model, c.method) == ("lr", method))
        for method in BASELINES
        if any((c.model, c.method) == ("lr", method) for c in published)
    }
    if len(lowest) < len(BASELINES):
        return ""
    said = ", ".join(f"{METHODS[method]} {percent(share)}" for method, share in lowest.items())
    claim = (f"every baseline below {percent(DROP)} somewhere", max(lowest.values()) < DROP)
    return (
        f"Logistic regression, all data sets together: the paper's text says that {DROPS_LR}. Lowest means here: "
        f"{said}.{_judged([claim])}"
    )


def _beside_the_boundary(shown: Sequence[Curve], curves: Sequence[Curve], methods: pd.DataFrame | None) -> str:
    """Why SCFE's validity depends on its search: how far past the boundary it walks, and the nearest point's."""
    scfe = next((curve for curve in shown if curve.method == "scfe"), None)
    if scfe is None or methods is None:
        return ""
    here = (methods["dataset"] == scfe.dataset) & (methods["model"] == "lr") & (methods["method"] == "scfe")
    rows = methods[here & (methods["setting"] == "published")]
    near = [c for c in _of(curves, "lr", scfe.dataset) if (c.setting, c.method) == ("corrected", "scfe")]
    said = ""
    if len(rows) and math.isfinite(rows["cost_over_plain"].iloc[0]):
        ratio = float(rows["cost_over_plain"].iloc[0])
        said = (
            f"SCFE's search, as its authors run it, walks past the boundary: it costs {ratio:.2f} times what the "
            "nearest point costs."
        )
    if near and _above_zero(near[0]):
        said += f" The nearest accepted point itself, in the corrected setting: {_range(_above_zero(near[0]))}."
    return said.strip()


def _network_validity(published: Sequence[Curve], dataset: str) -> str:
    shown = _of(published, "nn", dataset)
    if not shown:
        return ""
    return (
        f"{DATASETS[dataset]}, networks: the paper's text says that {VALIDITY_NN[dataset]}. Here, means over the α "
        f"above 0, best first: {_ranked(shown)}.{_judged(_network_claims(dataset, shown))}"
    )


def _network_claims(dataset: str, curves: Sequence[Curve]) -> list[tuple[str, bool]]:
    """What the paper's text says of networks, each part held against this run; nothing where a method is missing."""
    means = {curve.method: float(np.mean(_above_zero(curve))) for curve in curves}
    if not {*BASELINES, "rocerf"} <= set(means):
        return []
    best = max(means, key=lambda method: means[method])
    alike = ("ROCERF and ROAR within 5 points", abs(means["rocerf"] - means["roar"]) <= 0.05)
    if dataset == "german":
        last = min(curve.means_all[-1] for curve in curves)
        return [("all at 100 % where most rows go", last >= FULL), ("C-CHVAE best", best == "cchvae"), alike]
    if dataset == "compas":
        return [("ROCERF best", best == "rocerf")]
    worse, better = max(means["scfe"], means["cchvae"]), min(means["rocerf"], means["roar"])
    return [("SCFE and C-CHVAE worse", worse < better), alike]


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
            own = percent(row["worst_validity_answered"])
            parts.append(
                f"{METHODS[row['method']]} answers {row['answered']:,.0f} of {row['people']:,.0f} people: its cost is "
                f"about those, its validity about all (of those answered {own})."
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
            sentence
            + (f"; in {none} of {len(table)} k/n is so large that our version of the bound ends." if none else ".")
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
