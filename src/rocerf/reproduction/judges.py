"""Who judges a point after deletions: models retrained without random rows, and without rows picked for that point.

Rows of a logistic model are picked by the adversary, and the model retrained to its true optimum says yes or no. A
network has no single outcome: its rows are picked by the first-order effects of another network that has no part in any
answer, and networks trained from fresh starts without them say which share of them accepts.
"""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

from rocerf.deletion.adversary import Adversary
from rocerf.deletion.guesses import worst_sets
from rocerf.models.model import ExactModel
from rocerf.types import Array, Mask

#: Numbers of effects held at a time (points times rows).
BLOCK = 2**24


def survived(model: ExactModel, points: Array, k: int | str, *, effort: str, seed: int) -> Array:
    """1.0 where no deletion of up to k rows that the adversary found refutes a point (P, d), 0.0 where one does; (P,).

    NaN where there is no point.
    """
    shares, there = _blank(points)
    if there.any():
        shares[there] = Adversary(model, k, effort=effort, seed=seed).attack_all(points[there]).scores >= 0
    return shares


def accepted_without_picked(model: Any, outsider: Any, points: Array, k: int, *, starts: int, seed: int) -> Array:
    """Share of the networks retrained from fresh starts without the rows picked for each point (P, d) that accept it.

    The starts are the same for everybody. NaN where there is no point; (P,).
    """
    shares, there = _blank(points)
    chosen = points[there]
    if len(chosen):
        deletions = picked_rows(outsider, chosen, k)
        trials = [start for _ in deletions for start in range(starts)]
        later = model.refitted([ids for ids in deletions for _ in range(starts)], seed=seed, trials=trials)
        own = [later[j * starts : (j + 1) * starts].scores(chosen[j : j + 1])[:, 0] for j in range(len(chosen))]
        shares[there] = (np.array(own) >= 0).mean(axis=1)
    return shares


def picked_rows(network: Any, points: Array, k: int) -> list[Any]:
    """Ids of the k training rows that first-order effects of a network pick for each point (P, d)."""
    size = max(1, BLOCK // len(network.train))
    parts = [network.harms(points[first : first + size]) for first in range(0, len(points), size)]
    return [network.train.ids[rows] for part in parts for rows in worst_sets(part, k)]


def accepted_by(models: Any, points: Array) -> NDArray[np.intp]:
    """How many of the points (P, d) each of M retrained models accepts, (M,); where there is no point none does."""
    there = np.asarray(np.isfinite(points).all(axis=1))
    return np.asarray(((models.scores(np.where(there[:, None], points, 0.0)) >= 0) & there).sum(axis=1))


def _blank(points: Array) -> tuple[Array, Mask]:
    return np.full(len(points), np.nan), np.asarray(np.isfinite(points).all(axis=1))
