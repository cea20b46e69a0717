"""The smallest level of a margin at which points reach the validity asked for, by models that had no part in it.

A *verdict* on a level is true, false, or None where nobody can be answered there. Levels are ordered from cheap to
dear, and verdicts are taken to change once.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from itertools import pairwise

import numpy as np

from rocerf.types import Array

#: Whether a level will do; None where nobody can be answered there.
Verdict = Callable[[float], bool | None]

#: One-sided normal quantile for 95 %, and that share.
ONE_SIDED, CONFIDENCE = 1.645, 0.95

#: Levels tried on a line: 0, FIRST, doubled up to so often; then the interval is halved so often.
FIRST, DOUBLINGS, HALVINGS = 0.5, 6, 4

#: People asked first; then twice as many, and so on.
FEW = 10


def verdicts_on_line() -> int:
    """Verdicts that :func:`lowest_on_line` asks for at most."""
    return 1 + DOUBLINGS + HALVINGS


def lowest_on_line(verdict: Verdict, unit: float) -> float | None:
    """The smallest level that will do, found by doubling and halving in these units; None if none was found."""
    tried = [0.0, *(FIRST * unit * 2.0**i for i in range(DOUBLINGS))]
    low, high, reached = 0.0, 0.0, None
    for level in tried:
        said, high = verdict(level), level
        if said is not False:
            reached = high if said else None
            break
        low = high
    for _ in range(HALVINGS if high > low else 0):
        middle = (low + high) / 2
        said = verdict(middle)
        reached = middle if said else reached
        low, high = (middle, high) if said is False else (low, middle)
    return reached


def verdicts_on_ladder(levels: int) -> int:
    """Verdicts that :func:`lowest_on_ladder` asks for at most, of so many levels."""
    return int(levels).bit_length()


def lowest_on_ladder(verdict: Verdict, levels: Sequence[float]) -> float | None:
    """The first of ascending levels that will do, found by halving; None if none was found."""
    low, high, reached = 0, len(levels), None
    while low < high:
        middle = (low + high) // 2
        said = verdict(levels[middle])
        reached = levels[middle] if said else reached
        low, high = (middle + 1, high) if said is False else (low, middle)
    return reached


def parts_of(people: int) -> list[tuple[int, int]]:
    """People in parts, from and to, the first of which often decide.

    >>> parts_of(40), parts_of(5)
    ([(0, 10), (10, 30), (30, 40)], [(0, 5)])
    """
    ends = [FEW * (2**part - 1) for part in range(people.bit_length() + 1)]
    return [(first, min(last, people)) for first, last in pairwise(ends) if first < people]


def cannot_reach(scores: Array, validity: float, others: int) -> bool:
    """Whether :func:`reaches` is false whatever the models say of so many other people's points; scores (M, P).

    They could at best be accepted by every model, and the bound is never above the share.
    """
    accepted = (scores >= 0).mean(axis=0)
    people = len(accepted) + others
    return bool(len(accepted) and (accepted.sum() + others) / people < validity)


def reaches(scores: Array, validity: float, *, skewed: bool = False) -> bool:
    """Whether models with these scores of points, (M, P), show that a share ``validity`` of such models accepts.

    ``skewed`` scores, some of which may be far above the others, need not be normal in their upper half.
    """
    expected = expected_validity(scores)
    if skewed:
        expected = max(expected, expected_from_lower_half(scores))
    return min(counted_validity(scores), expected) >= validity


def counted_validity(scores: Array) -> float:
    """Lower bound of the share accepted, from the share of points that each model accepts; scores (M, P)."""
    by_model = (scores >= 0).mean(axis=1)
    return float(by_model.mean() - ONE_SIDED * by_model.std(ddof=1) / np.sqrt(len(by_model)))


def expected_validity(scores: Array) -> float:
    """The same from normal scores (M, P): at each point ``mean / sd``, less what M models leave open about it."""
    from scipy.special import ndtr

    distance = scores.mean(axis=0) / np.maximum(scores.std(axis=0, ddof=1), 1e-12)
    error = np.sqrt((1.0 + distance**2 / 2.0) / len(scores))
    return float(ndtr(distance - ONE_SIDED * error).mean())


def expected_from_lower_half(scores: Array) -> float:
    """The same from scores (M, P) whose lower half is normal: at each point the median against the deviations below it.

    Medians and half of the deviations leave more open than means and all of them.
    """
    from scipy.special import ndtr

    centre = np.median(scores, axis=0)
    below = np.minimum(scores - centre, 0.0)
    distance = centre / np.maximum(np.sqrt(2.0 * (below**2).mean(axis=0)), 1e-12)
    error = np.sqrt((np.pi / 2.0 + distance**2) / len(scores))
    return float(ndtr(distance - ONE_SIDED * error).mean())
