"""What recourses cost, in several measures, and how far they lie from the training rows."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

from rocerf.models.model import Refittable
from rocerf.types import Array

#: A column counts as changed from this many standard deviations on.
CHANGED = 1e-6

#: Entries of one block of distances.
BLOCK = 2_000_000


def costs_of(model: Refittable, people: Array, points: Array, plain: Array) -> dict[str, Any]:
    """Costs, sparsity and nearness of the answered; ``plain`` are the nearest accepted points of the same people."""
    answered = np.isfinite(points).all(axis=1)
    steps = (points[answered] - people[answered]) / model.train.spread
    l2, l1 = np.sqrt((steps**2).sum(axis=1)), np.abs(steps).sum(axis=1)
    both = answered & np.isfinite(plain).all(axis=1)
    least = np.sqrt((((plain[both] - people[both]) / model.train.spread) ** 2).sum(axis=1))
    compared = np.sqrt((((points[both] - people[both]) / model.train.spread) ** 2).sum(axis=1))
    nearest = distance_to_rows(points[answered], model.train.X, np.asarray(model.train.spread))
    return {
        "people": len(people),
        "answered": int(answered.sum()),
        "l2": _mean(l2),
        "l2_se": _standard_error(l2),
        "l1": _mean(l1),
        "l1_se": _standard_error(l1),
        "changed": _mean((np.abs(steps) > CHANGED).sum(axis=1)),
        "distance_to_data": _mean(nearest),
        "cost_over_plain": _mean(compared) / _mean(least) if len(least) and least.mean() > 0 else None,
    }


def distance_to_rows(points: Array, rows: Array, spread: Array) -> Array:
    """Euclidean distance of each point (P, d) to the nearest of the rows (n, d), columns in units of spread.

    >>> distance_to_rows(np.array([[0.0, 8.0]]), np.array([[0.0, 0.0], [9.0, 9.0]]), np.array([1.0, 2.0])).tolist()
    [4.0]
    """
    targets = rows / spread
    squares = (targets**2).sum(axis=1)
    found = np.empty(len(points))
    size = max(1, BLOCK // len(rows))
    for first in range(0, len(points), size):
        block = points[first : first + size] / spread
        nearest = (squares - 2.0 * block @ targets.T).argmin(axis=1)
        found[first : first + size] = np.sqrt(((block - targets[nearest]) ** 2).sum(axis=1))
    return found


def _mean(values: NDArray[Any]) -> float:
    return float(values.mean()) if len(values) else float("nan")


def _standard_error(values: Array) -> float:
    if not len(values):
        return float("nan")
    return float(values.std(ddof=1) / np.sqrt(len(values))) if len(values) > 1 else 0.0
