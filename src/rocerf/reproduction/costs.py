"""What the report says of costs: for every cell within the paper's spread or outside it, and by how much.

Nothing is explained here that was not measured in the same run. A named variant (the exact solver, an autoencoder
trained anew, the other COMPAS) is a row of its own beside the cell, with its own verdict.
"""

from __future__ import annotations

import math
from typing import TYPE_CHECKING

from rocerf.reproduction.published import COSTS, DATASETS, EXCHANGED, METHODS, VARIANT_OF, WIDTHS
from rocerf.reproduction.tables import Row, verdict
from rocerf.reproduction.words import as_printed, part_of, with_error

if TYPE_CHECKING:
    import pandas as pd

#: How a verdict is marked, so that colour is not needed to see it.
MARKS = {"within": "✓", "higher": "▲", "lower": "▼", "unknown": "?"}


def shown_cost(row: Row, setting: str) -> str:
    """Mean ± standard error; the range over seeds and who was answered, where there is something to say.

    >>> seeds = {"c_seeds": 5, "c_low": 0.4, "c_high": 0.6}
    >>> shown_cost({"c": 0.5, "c_se": 0.1, **seeds, "c_answered": 3, "c_people": 4}, "c")
    '0.50 ± 0.10 [0.40–0.60] (3 of 4)'
    """
    if not math.isfinite(row[setting]):
        people = row[f"{setting}_people"]
        return "–" if not people >= 0 else "nobody denied" if people == 0 else "nobody answered"
    said = with_error(row[setting], row[f"{setting}_se"])
    if row[f"{setting}_seeds"] > 1:
        said += f" [{row[f'{setting}_low']:.2f}–{row[f'{setting}_high']:.2f}]"
    answered, people = row[f"{setting}_answered"], row[f"{setting}_people"]
    return said + (f" ({part_of(answered, people)})" if answered < people else "")


def mark_of(row: Row, setting: str = "published") -> str:
    r"""``✓ within`` or how far outside the paper's spread a cost is, in units and as a share of the paper's value.

    >>> row = {"published": 1.5, "paper": 1.0, "published_spread": 0.2, "published_verdict": "higher"}
    >>> print(mark_of(row).replace("\N{NO-BREAK SPACE}", " "))
    ▲ +0.50 (+50 %), 0.30 outside
    """
    judged = row[f"{setting}_verdict"]
    if not judged:
        return "–"
    if judged == "unknown":
        return "? not comparable"
    gap = row[setting] - row["paper"]
    size = f"{gap:+.2f} ({gap / row['paper']:+.0%})".replace("-", "−").replace("%", "\N{NO-BREAK SPACE}%")
    if judged == "within":
        return f"{MARKS[judged]} {size}, within ±{row[f'{setting}_spread']:.2f}"
    return f"{MARKS[judged]} {size}, {abs(gap) - row[f'{setting}_spread']:.2f} outside"


def is_variant(row: Row) -> bool:
    """Whether a row is a named variant beside a cell of the paper."""
    return row["dataset"] in VARIANT_OF or row["method"] in VARIANT_OF


def cells_of(table: pd.DataFrame) -> list[Row]:
    """The rows that stand for the paper's cells: a variant only where what it is a variant of was not measured."""
    rows = [row for row in table.to_dict("records") if row["published_verdict"]]
    direct = {(row["dataset"], row["method"]) for row in rows}

    def stands(row: Row) -> bool:
        return not is_variant(row) or _plain(row) not in direct

    return [row for row in rows if stands(row)]


def cost_summary(table: pd.DataFrame, model: str = "lr", norm: str = "l2") -> str:
    """How many costs of the published setting agree with the paper; for networks also with two columns exchanged."""
    rows = cells_of(table)
    verdicts = [row["published_verdict"] for row in rows]
    counts = {name: verdicts.count(name) for name in MARKS}
    said = f"As published, {counts['within']} of {len(rows)} costs are within the spread of both, "
    said += f"{counts['higher']} above and {counts['lower']} below it."
    said += f" {counts['unknown']} cannot be judged." if counts["unknown"] else ""
    other = [exchanged_verdict(row, model, norm) for row in rows]
    if any(other):
        within = [new or old for new, old in zip(other, verdicts, strict=True)].count("within")
        said += f" With the paper's German and Adult columns exchanged {within} of {len(rows)} are within it."
    return said


def outside_sentences(table: pd.DataFrame, model: str, norm: str) -> list[str]:
    """Each cell outside the paper's spread, with what named variants of it gave in the same run."""
    rows = table.to_dict("records")
    said = []
    for row in cells_of(table):
        if row["published_verdict"] not in ("higher", "lower"):
            continue
        beside = [
            f"{_name(other)} {shown_cost(other, 'published')} ({mark_of(other)})"
            for other in rows
            if is_variant(other) and other["published_verdict"] and _plain(other) == _plain(row) and other is not row
        ]
        variants = f" In the same run: {'; '.join(beside)}." if beside else ""
        paper = as_printed(row["paper"], row["paper_se"])
        exchanged = _if_exchanged(row, model, norm)
        said.append(
            f"{_name(row)}: {shown_cost(row, 'published')}, the paper's {paper}; {mark_of(row)}.{exchanged}{variants}"
        )
    return said


def _name(row: Row) -> str:
    return f"{METHODS[row['method']]} on {DATASETS[row['dataset']]}"


def _plain(row: Row) -> tuple[str, str]:
    """Data set and method of the paper that a row stands for, or is a variant of."""
    dataset, method = str(row["dataset"]), str(row["method"])
    return VARIANT_OF.get(dataset, dataset), VARIANT_OF.get(method, method)


def exchange_sentence() -> str:
    """The evidence that two columns of the paper's network tables are exchanged, from its own numbers."""
    l1, l2 = (COSTS[norm]["nn"] for norm in ("l1", "l2"))
    ratios = {dataset: [l1[method][dataset].mean / l2[method][dataset].mean for method in l2] for dataset in EXCHANGED}
    limit, ends = math.sqrt(WIDTHS["adult"]), {key: f"{min(r):.1f} to {max(r):.1f}" for key, r in ratios.items()}
    return (
        f"Over the same points a mean L1 cost is at most the square root of the number of columns times the mean L2 "
        f"cost, for Adult's {WIDTHS['adult']} columns {limit:.2f} times. The paper's network costs under Adult have "
        f"ratios of {ends['adult']}, those under German (60 columns) {ends['german']}. We show both as printed and say "
        "how ours compare if they are exchanged."
    )


def exchanged_verdict(row: Row, model: str, norm: str) -> str:
    """How a cost as published compares with the one printed under the other name; empty where that is no question."""
    if model != "nn" or row["dataset"] not in EXCHANGED or not row["published_verdict"]:
        return ""
    method = _plain(row)[1]
    other = COSTS[norm][model][method][EXCHANGED[row["dataset"]]]
    # The spread with the other cell's error in the place of this one's.
    own = (row["published_spread"] / 2) ** 2 - row["paper_se"] ** 2
    spread = 2 * math.sqrt(max(own, 0.0) + other.standard_error**2) if math.isfinite(own) else math.nan
    return verdict(row["published"], other.mean, spread)


def _if_exchanged(row: Row, model: str, norm: str) -> str:
    judged = exchanged_verdict(row, model, norm)
    if judged in ("", "unknown"):
        return ""
    other = EXCHANGED[row["dataset"]]
    printed = as_printed(*COSTS[norm][model][_plain(row)[1]][other])
    side = "within" if judged == "within" else "outside"
    return f" Against the {printed} printed under {DATASETS[other]} it is {side} the spread."
