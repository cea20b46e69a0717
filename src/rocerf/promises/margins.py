"""What M retrained models say of a point, as one value: two margins, each with a level.

* ``spread``: ``mean - level * sd``. The margin follows the spread of the scores at x; right where scores are near
  normal, as those of networks are.
* ``count``: the score that a share of the models reaches, so that it is 0 or more where so many accept. Levels up to 1
  are that share; beyond 1 all must accept, by ``level - 1`` spreads. Scores of trees move in steps and may be skewed: a
  spread that is large because some models are very sure of a yes is no reason to ask for more.

Both are weighted sums of scores with weights that are their slopes, so that a slope in x comes for free.
"""

from __future__ import annotations

import numpy as np

from rocerf.promises.held_out import clopper_pearson
from rocerf.types import Array

#: Below this a spread is taken for a rounding error.
LEAST_SPREAD = 1e-12

#: Levels of ``count`` from cheap to dear.
LADDER = (0.5, 0.7, 0.8, 0.9, 0.95, 1.0, 1.1, 1.2, 1.3, 1.4, 1.6, 1.8, 2.0, 2.3, 2.6, 3.0, 4.0, 5.0, 7.0)


def spread_below_mean(scores: Array, level: float) -> tuple[Array, Array]:
    """``mean - level * sd`` of scores (M, P), shape (P,), and its derivatives by the scores, (M, P)."""
    count = len(scores)
    mean, spread = scores.mean(axis=0), np.maximum(scores.std(axis=0, ddof=1), LEAST_SPREAD)
    return mean - level * spread, 1.0 / count - level * (scores - mean) / ((count - 1) * spread)


def counted(scores: Array, level: float) -> tuple[Array, Array]:
    """The score that a share ``level`` of the models reaches at each point, (P,), and its derivatives, (M, P).

    Beyond level 1 the lowest score less ``level - 1`` standard deviations.

    >>> scores = np.array([[3.0], [1.0], [2.0], [4.0]])
    >>> [float(counted(scores, level)[0][0]) for level in (0.5, 0.75, 1.0)]
    [3.0, 2.0, 1.0]
    """
    if level > 1.0:
        lowest, at_lowest = counted(scores, 1.0)
        below, at_below = spread_below_mean(scores, level - 1.0)
        mean = scores.mean(axis=0)
        return lowest + below - mean, at_lowest + at_below - 1.0 / len(scores)
    count = len(scores)
    place = count - needed(level, count)
    which = np.argpartition(scores, place, axis=0)[place]
    weights = np.zeros_like(scores)
    people = np.arange(scores.shape[1])
    weights[which, people] = 1.0
    return scores[which, people], weights


def needed(share: float, count: int) -> int:
    """How many of so many models this share is, at least one.

    >>> needed(0.95, 40), needed(1.0, 40), needed(0.01, 40)
    (38, 40, 1)
    """
    return max(1, int(np.ceil(share * count - 1e-9)))


def enough_for(validity: float, count: int, confidence: float) -> int:
    """The fewest of so many models that must accept a point for a bound on their share to reach ``validity``.

    All of them where not even all would show it.

    >>> enough_for(0.9, 100, 0.95), enough_for(0.99, 100, 0.95)
    (96, 100)
    """
    shown = (m for m in range(1, count) if clopper_pearson(m, count, confidence) >= validity)
    return next(shown, count)
