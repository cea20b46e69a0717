"""How far values move among the training rows, from 0 (lowest) to 1 (highest)."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np

from rocerf.recourse.costs.cost import Cost, Curve, Norm
from rocerf.recourse.costs.norms import OpenGroup, with_open_groups
from rocerf.types import Array

#: Levels of the training rows between which the percentile of a value is interpolated.
LEVELS = 101

#: Levels that are off a value of the rows by no more than this share of the largest one are that value.
SAME = 1e-12

#: Ranges of the training rows over which a percentile's price is continued: farther than any bound that makes sense.
CONTINUED = 1e4


@dataclass(frozen=True, eq=False)
class PercentileCost(Cost):
    """The sum of how far each value moves among the training rows; a changed category or answer costs 1.

    The percentile of a value is interpolated between 101 levels of the training rows; several levels with one value
    count as their middle. Beyond the outermost values it goes on at the mean price of the range between them: there are
    no rows to pass there, but nobody is sent to ten times the largest income for nothing.
    """

    scale: Array
    curves: tuple[Curve | None, ...]
    halves: Array  # price of a unit in columns without a curve: 1/2 for one of a group's columns, which move in pairs
    open_groups: tuple[OpenGroup, ...] = ()
    name: str = "percentile"
    norm: Norm = Norm.L1

    def parts(self, steps: Any, X0: Any) -> Any:
        """Differences of percentiles, and prices."""
        parts, X = super().parts(steps, X0), X0 + self.scale * steps
        for column, curve in enumerate(self.curves):
            if curve is not None:
                parts[:, column] = np.abs(np.interp(X[:, column], *curve) - np.interp(X0[:, column], *curve))
        return parts

    def slopes(self, steps: Any, X0: Any) -> Any:
        """Those of the curves' pieces, and prices."""
        slopes, X = super().slopes(steps, X0), X0 + self.scale * steps
        for column, curve in enumerate(self.curves):
            if curve is not None:
                values, heights = curve
                piece = np.clip(np.searchsorted(values, X[:, column], side="right") - 1, 0, len(values) - 2)
                rise = (np.diff(heights) / np.diff(values))[piece]
                slopes[:, column] = rise * self.scale[column] * np.sign(steps[:, column])
        return slopes

    def prices(self, X0: Array) -> tuple[Array, Array]:
        """Those of the columns without a curve."""
        prices = np.broadcast_to(self.halves, X0.shape)
        return with_open_groups(prices, prices, X0, self.open_groups)

    def curve(self, column: int) -> Curve | None:
        """The percentiles of a number."""
        return self.curves[column]


def _of_rows(values: Array, rows: Array) -> Array:
    """Levels as values of the rows, in order, where an interpolation between two alike missed them by its rounding.

    >>> _of_rows(np.array([0.5, 0.9999999999999998, 1.0]), np.array([0.0, 1.0])).tolist()
    [0.5, 1.0, 1.0]
    """
    above = np.clip(np.searchsorted(rows, values), 0, len(rows) - 1)
    below = np.maximum(above - 1, 0)
    nearest = np.where(values - rows[below] < rows[above] - values, rows[below], rows[above])
    return np.where(np.abs(values - nearest) <= SAME * np.abs(rows[[0, -1]]).max(), nearest, values)


def percentiles(column: Array, weight: float, spread: float) -> Curve:
    """The weighted percentile of each value of a column (n,), continued on both sides."""
    levels = np.linspace(0.0, 1.0, LEVELS)
    values = _of_rows(np.quantile(column, levels), np.unique(column))
    knots, first, counts = np.unique(values, return_index=True, return_counts=True)
    heights = np.array([levels[start : start + count].mean() for start, count in zip(first, counts, strict=True)])
    beyond = CONTINUED * (float(knots[-1] - knots[0]) or spread)
    knots = np.array([knots[0] - beyond, *knots, knots[-1] + beyond])
    heights = np.array([heights[0] - CONTINUED, *heights, heights[-1] + CONTINUED])
    return knots, weight * heights
