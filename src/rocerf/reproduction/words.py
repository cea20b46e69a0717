"""What the report says of accuracy, validity and who is better: a plain sentence for each, made from the numbers.

"Proven" is kept for what is proven: retraining, searching and simulating show, they do not prove.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import TYPE_CHECKING

import numpy as np

from rocerf.reproduction.published import BASELINES, DATASETS, METHODS, MODELS, OURS, PAPER, SETTINGS
from rocerf.reproduction.tables import Row, where

if TYPE_CHECKING:
    import pandas as pd

    from rocerf.reproduction.tables import Curve

#: A part of what the paper says, and whether this run shows it.
Claim = tuple[str, bool]


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
    step, shown = 10.0**-digits, round(100 * share, digits)
    if 0 < share < 1:
        shown = min(max(shown, step), 100 - step)
    return f"{shown:.{digits}f}\N{NO-BREAK SPACE}%"


def part_of(answered: float, people: float) -> str:
    """``30 of 40``."""
    return f"{answered:,.0f} of {people:,.0f}"


def listed(words: Sequence[str]) -> str:
    """``a, b and c``."""
    return " and ".join(filter(None, [", ".join(words[:-1]), *words[-1:]]))


def accuracy_sentence(row: Row) -> str:
    """How one accuracy compares with the paper's."""
    said = []
    for setting, words in SETTINGS.items():
        if not math.isfinite(row[setting]):
            said.append(f"{words} not measured")
            continue
        points = 100 * (row[setting] - row["paper"])
        side = f"{abs(points):.1f} points {'above' if points > 0 else 'below'}" if round(points, 1) else "the same"
        rows = part_of(abs(row[f"{setting}_rows"]), row[f"{setting}_test_rows"])
        said.append(f"{words} {percent(row[setting])}, {side} ({rows} test rows)")
    paper, german = percent(row["paper"]), (row["dataset"], row["model"]) == ("german", "lr")
    more = f" No setting that we tried gives the paper's {paper}." if german else ""
    return f"{DATASETS[row['dataset']]}, {MODELS[row['model']]} (paper {paper}): {'; '.join(said)}.{more}"


def validity_sentences(curves: Sequence[Curve], methods: pd.DataFrame | None = None) -> list[str]:
    """The published setting against what the paper's text says of validity, over all denied people as in the paper."""
    published = [curve for curve in curves if curve.setting == "published" and curve.deleted]
    logistic = [_logistic_validity(published, dataset, curves, methods) for dataset in DATASETS]
    if any(logistic):
        text = f"the paper's text says that {PAPER['validity_lr']}. Its figures print no numbers."
        logistic = [f"Logistic regression: {text}", *logistic, _drops(published)]
    networks = [_network_validity(_of(published, "nn", dataset), dataset) for dataset in DATASETS]
    return [sentence for sentence in (*logistic, *networks) if sentence]


def _of(curves: Sequence[Curve], model: str, dataset: str) -> list[Curve]:
    return [c for c in curves if (c.model, c.dataset) == (model, dataset)]


def _ranked(curves: Sequence[Curve]) -> str:
    """Methods with their mean over the alphas above 0, best first, and who was answered where not all were."""
    said = []
    for curve in sorted(curves, key=lambda curve: -float(np.mean(curve.deleted))):
        shares = [mean for alpha, mean in zip(curve.alphas, curve.means, strict=True) if alpha > 0]
        own = f", {percent(float(np.mean(shares)))} of these" if curve.answered else ""
        some = curve.answered < curve.people
        answered = f" ({part_of(curve.answered, curve.people)} answered{own})" if some else ""
        said.append(f"{METHODS[curve.method]} {percent(float(np.mean(curve.deleted)))}{answered}")
    return ", ".join(said)


def _judged(claims: Sequence[Claim]) -> str:
    """Each part of what the paper says, and whether this run shows it."""
    each = "; ".join(f"{words}: {'yes' if held else 'not reproduced'}" for words, held in claims)
    return f" As in the paper? {each}." if each else ""


def _logistic_validity(
    published: Sequence[Curve], dataset: str, curves: Sequence[Curve], methods: pd.DataFrame | None
) -> str:
    shown = {curve.method: curve for curve in _of(published, "lr", dataset)}
    if not shown:
        return ""
    said = (
        f"{DATASETS[dataset]}, logistic regression: means over the α above 0, best first: {_ranked([*shown.values()])}."
    )
    shares = {method: curve.deleted for method, curve in shown.items()}
    if {*BASELINES, "rocerf"} <= set(shares):
        said += _judged([*logistic_claims(dataset, shares), *cost_claims(dataset, methods)])
    if dataset == "german" and "rocerf" in shares and min(shares["rocerf"]) < FULL:
        said += " The paper, too, sees a slight drop on German when more rows go than k."
    if "scfe" in shares and methods is not None:
        said += _beside_the_boundary(dataset, curves, methods)
    return said


#: A mean validity from here on counts as the paper's 100 %, one below the second as a significant drop.
FULL, DROP = 0.995, 0.95


def logistic_claims(dataset: str, shares: dict[str, list[float]]) -> list[Claim]:
    """What the paper's text says of logistic regression, each part held against this run, alpha by alpha."""
    scfe, cchvae, roar, rocerf = (shares[method] for method in (*BASELINES, "rocerf"))
    each = list(zip(scfe, cchvae, roar, rocerf, strict=True))
    claims = [
        (f"ROCERF at {percent(FULL)} or more at all α but one at most", sum(mean < FULL for mean in rocerf) <= 1),
        ("SCFE least valid at every α", all(first < min(others) for first, *others in each)),
        (
            "ROCERF nowhere less valid than ROAR and somewhere more",
            all(mean >= other for *_, other, mean in each) and rocerf != roar,
        ),
    ]
    if dataset in ("compas", "adult"):
        worse = all(mean < other for _, mean, _, other in each)
        claims.append(("C-CHVAE less valid than ROCERF at every α", worse))
    return claims


def cost_claims(dataset: str, methods: pd.DataFrame | None) -> list[Claim]:
    """What it says of their costs; nothing where one of the methods has none."""
    if methods is None:
        return []
    rows = where(methods, setting="published", dataset=dataset, model="lr")
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
    found = {m: [min(c.deleted) for c in published if (c.model, c.method) == ("lr", m)] for m in BASELINES}
    if not all(found.values()):
        return ""
    lowest = {method: min(shares) for method, shares in found.items()}
    said = ", ".join(f"{METHODS[method]} {percent(share)}" for method, share in lowest.items())
    claim = (f"every baseline below {percent(DROP)} somewhere", max(lowest.values()) < DROP)
    head = f"Logistic regression, all data sets together: the paper's text says that {PAPER['drops_lr']}."
    return f"{head} Lowest means here: {said}.{_judged([claim])}"


def _beside_the_boundary(dataset: str, curves: Sequence[Curve], methods: pd.DataFrame) -> str:
    """Why SCFE's validity depends on its search: how far past the boundary it walks, and the nearest point's."""
    ratios = where(methods, setting="published", dataset=dataset, model="lr", method="scfe")["cost_over_plain"]
    near = [c.deleted for c in _of(curves, "lr", dataset) if (c.setting, c.method) == ("corrected", "scfe")]
    said = ""
    if len(ratios) and math.isfinite(ratios.iloc[0]):
        said = " SCFE's search, as its authors run it, walks past the boundary: "
        said += f"it costs {ratios.iloc[0]:.2f} times what the nearest point costs."
    if near and near[0]:
        ends = dict.fromkeys(map(percent, (min(near[0]), max(near[0]))))
        said += f" The nearest accepted point itself, in the corrected setting: {' to '.join(ends)}."
    return said


def _network_validity(shown: Sequence[Curve], dataset: str) -> str:
    if not shown:
        return ""
    head = f"{DATASETS[dataset]}, networks: the paper's text says that {PAPER['validity_nn'][dataset]}."
    here = f"Here, means over the α above 0, best first: {_ranked(shown)}."
    return f"{head} {here}{_judged(network_claims(dataset, shown))}"


def network_claims(dataset: str, curves: Sequence[Curve]) -> list[Claim]:
    """What the paper's text says of networks, each part held against this run; nothing where a method is missing."""
    means = {curve.method: float(np.mean(curve.deleted)) for curve in curves}
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
    beaten, cheaper = (sum(bool(_better(rows, role)) for rows in judged) for role in ("baseline", "first order"))
    cases = f"the {len(judged)} cases" if len(judged) > 1 else "the one case"
    whole = f"In {cases} judged, no baseline has both validity and cost better than ours."
    if beaten:
        whole = f"In {beaten} of {len(judged)} cases a baseline has both validity and cost better than ours; see below."
    if cheaper:
        whole += (
            f" In {cheaper} of {len(judged)} the paper's own first-order constraint, which is not counted as a "
            "baseline, does at least as well in both under random deletions and better in one."
        )
    return whole, said


def _better(rows: list[Row], role: str) -> list[Row]:
    return [row for row in rows if row["role"] == role and row["dominates_ours"] == "yes"]


def _pareto_sentence(dataset: str, model: str, rows: list[Row]) -> str:
    case = f"{DATASETS[dataset]}, {MODELS[model]}"
    ours = next((row for row in rows if row["role"] == "ours"), None)
    if ours is None:
        return f"{case}: cannot be judged, {METHODS[OURS[model]]} was not measured."
    known = {row["method"] for row in rows if row["dominates_ours"]}
    unknown = [METHODS[method] for method in BASELINES if method not in known]
    winners = _better(rows, "baseline")
    parts = [f"{case}: {_both(ours)}."]
    if winners:
        parts.append(f"Better in both: {'; '.join(_both(row) for row in winners)}.")
    elif len(unknown) < len(BASELINES):
        parts.append("No baseline that was judged is at least as good in both and better in one.")
    if unknown:
        parts.append(f"Not judged: {', '.join(unknown)}.")
    parts += [_first_order(row, ours) for row in _better(rows, "first order")]
    for row in rows:
        if row["answered"] < row["people"]:
            answered, own = part_of(row["answered"], row["people"]), percent(row["worst_validity_answered"])
            parts.append(
                f"{METHODS[row['method']]} answers {answered} people: its cost is about those, its validity about all "
                f"(of those answered {own})."
            )
    return " ".join(parts)


def _both(row: Row) -> str:
    cost = with_error(row["l2"], row["l2_se"])
    return f"{METHODS[row['method']]} has validity {percent(row['worst_validity'])} at its worst α and costs {cost}"


def _first_order(row: Row, ours: Row) -> str:
    """The paper's own constraint is no baseline; where it looks better under random deletions, that is said too."""
    said = "Under random deletions the paper's first-order constraint does at least as well in both and better in one: "
    said += f"{_both(row)}."
    shares = row["worst_case_validity"], ours["worst_case_validity"]
    if all(map(math.isfinite, shares)):
        theirs, survive = (percent(share, 0) for share in shares)
        said += f" Of its points {theirs} survive the worst deletion found, of ours {survive}; "
        said += "that is what the higher cost buys."
    return said


def theorem_sentences(table: pd.DataFrame) -> list[str]:
    """What the check shows: how often the cost is below the bound, by how much, and how it grows with k/n."""
    said = []
    for name, words in {"bound": "Theorem 4.1", "bound_42": "Theorem 4.2"}.items():
        if name not in table:
            continue
        known = table[table[name].notna()]
        kept, none = int((known["extra_cost"] <= known[name]).sum()), len(table) - len(known)
        sentence = f"{words}: the extra cost is at most the bound in {kept} of {len(known)} cases"
        if len(known):
            ratios = known[name] / known["extra_cost"].where(known["extra_cost"] > 0)
            sentence += f"; the bound is {ratios.min():.3g} to {ratios.max():.3g} times the cost measured"
        if none:
            sentence += f"; in {none} of {len(table)} k/n is so large that our version of the bound ends"
        said.append(f"{sentence}.")
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
        rows = sorted(group.to_dict("records"), key=lambda row: list(METHODS).index(row["method"]))
        each = ", ".join(f"{METHODS[row['method']]} {survivors(row)}" for row in rows)
        said.append(f"{DATASETS[dataset]}: {each}.")
    return said


def survivors(row: Row) -> str:
    """Points of a method that survive the worst deletion found, of those searched."""
    return f"{round(row['worst_case_validity'] * row['worst_case_people'])} of {row['worst_case_people']:.0f}"


def price_sentences(pareto: pd.DataFrame) -> list[str]:
    """The paper's constraint against `retrained`, data set by data set: random deletions, worst deletions, cost."""
    said = []
    for dataset, group in where(pareto, model="lr").groupby("dataset", sort=False):
        rows = {row["method"]: row for row in group.to_dict("records")}
        if not {"rocerf", "retrained"} <= set(rows):
            continue
        first, second = rows["rocerf"], rows["retrained"]
        worst = " and ".join(percent(row["worst_case_validity"], 0) for row in (first, second))
        said.append(
            f"{DATASETS[dataset]}: when rows are deleted at random, {percent(first['worst_validity'])} of the paper's "
            f"points and {percent(second['worst_validity'])} of ours are valid at the worst α; when the worst k rows "
            f"found are deleted, {worst}. The mean cost is {first['l2']:.3f} and {second['l2']:.3f} "
            f"({second['l2'] / first['l2'] - 1:+.1%})."
        )
    return said
