"""What columns are like: extremes, centre, spread; by passes over the rows, so that these may be on the disk.

One chunk holds as many rows as small tables have: there the sums are those of the whole array.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from rocerf.data.disk_rows import CHUNK, RowsOnDisk
from rocerf.passes import SERIAL, Runner, Threads, over_rows
from rocerf.types import Array, Mask

#: Relative difference of numbers that are equal but for rounding: a few units in the last place.
ROUNDING = 8 * np.finfo(np.float64).eps


def runner_for(X: Any) -> Runner:
    """Threads for rows on the disk, which are many; rows in memory one chunk after another."""
    return Threads() if isinstance(X, RowsOnDisk) else SERIAL


def extremes(X: Any) -> tuple[Array, Array]:
    """The smallest and the largest number of each column of rows (n, d); (d,) each."""

    def partial(rows: slice) -> tuple[Array, Array]:
        block = X[rows]
        return block.min(axis=0), block.max(axis=0)

    def merged(one: tuple[Array, Array], two: tuple[Array, Array]) -> tuple[Array, Array]:
        return np.minimum(one[0], two[0]), np.maximum(one[1], two[1])

    return over_rows(partial, merged, len(X), CHUNK, runner_for(X))


def units(X: Any) -> Array:
    """A power of two near the largest number of each column: sums and squares in it neither overflow nor vanish."""
    low, high = extremes(X)
    return np.asarray(np.ldexp(1.0, np.frexp(np.maximum(np.abs(low), np.abs(high)))[1] - 1))


def means(X: Any, unit: Array) -> Array:
    """Mean of each column, in these units; (d,)."""

    def partial(rows: slice) -> Array:
        return np.asarray((X[rows] / unit).sum(axis=0))

    return np.asarray(over_rows(partial, np.add, len(X), CHUNK, runner_for(X)) / len(X))


def centre_of(X: Any, unit: Array) -> Array:
    """Mean of each column, the number itself where it is the same in all rows; (d,)."""
    low, high = extremes(X)
    return np.where(low == high, X[0], unit * means(X, unit))


def spread_of(X: Any, unit: Array) -> Array:
    """Standard deviation of each column, 1 where a column is constant; (d,)."""
    low, high = (ends / unit for ends in extremes(X))
    # Numbers that differ in their last digits only are one number and rounding, whatever the unit they are in.
    constant = high - low <= ROUNDING * np.maximum(np.abs(low), np.abs(high))
    rounding_alone = np.where(high > low, np.maximum(1.0, unit), 1.0)
    mean = means(X, unit)

    def partial(rows: slice) -> Array:
        away = X[rows] / unit - mean
        return np.asarray((away * away).sum(axis=0))

    squares = over_rows(partial, np.add, len(X), CHUNK, runner_for(X))
    return np.where(constant, rounding_alone, unit * np.sqrt(squares / len(X)))


def are_answers(X: Any) -> Mask:
    """Whether all numbers of a column are 0 or 1; (d,)."""

    def partial(rows: slice) -> Mask:
        block = X[rows]
        return np.asarray(((block == 0.0) | (block == 1.0)).all(axis=0))

    return over_rows(partial, np.logical_and, len(X), CHUNK, runner_for(X))
