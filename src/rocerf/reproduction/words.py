"""How the report writes numbers, and what it says of accuracy and of the theorems: sentences made from the numbers.

"Proven" is kept for what is proven: retraining, searching and simulating show, they do not prove.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import TYPE_CHECKING

import numpy as np

from rocerf.reproduction.published import DATASETS, MODELS, SETTINGS
from rocerf.reproduction.tables import Row

if TYPE_CHECKING:
    import pandas as pd


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


def signed(share: float) -> str:
    """``−0.6 %`` or ``+27 %``: a tenth only where it is small."""
    return f"{100 * share:+.{1 if abs(share) < 0.0995 else 0}f}\N{NO-BREAK SPACE}%".replace("-", "−")


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
            continue
        points = 100 * (row[setting] - row["paper"])
        side = f"{abs(points):.1f} points {'above' if points > 0 else 'below'}" if round(points, 1) else "the same"
        rows = part_of(abs(row[f"{setting}_rows"]), row[f"{setting}_test_rows"])
        some = row[f"{setting}_seeds"] > 1
        range_ = f", {row[f'{setting}_seeds']:.0f} seeds {percent(row[f'{setting}_low'])} to" if some else ""
        range_ += f" {percent(row[f'{setting}_high'])}" if some else ""
        said.append(f"{words} {percent(row[setting])}, {side} ({rows} test rows{range_})")
    paper, german = percent(row["paper"]), (row["dataset"], row["model"]) == ("german", "lr")
    more = f" No setting that we tried gives the paper's {paper}." if german else ""
    return f"{DATASETS[row['dataset']]}, {MODELS[row['model']]} (paper {paper}): {'; '.join(said)}.{more}"


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
