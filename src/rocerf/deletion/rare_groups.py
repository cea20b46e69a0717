"""Groups of rows that act together: the holders of a rare value, by label.

Deleting one row of a rare category does little; deleting all its favourable rows turns the category's coefficient
around. A search that adds rows one by one by their own harm does not see that coming, so such groups are offered to it
as starting points.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from rocerf.deletion.batched_newton import BatchedNewton
from rocerf.deletion.deletions import Deletions
from rocerf.deletion.harms import Harms
from rocerf.deletion.streamed_rows import LONG_CHUNK, StreamedRows
from rocerf.deletion.threshold_pass import sampled_rows
from rocerf.passes import Threads, added, over_rows
from rocerf.types import Array, Places

#: A value is rare if at most this many times k rows hold it (or lie that far out, for a measured column).
RARE = 4

#: Standard deviations from which a measured value lies far out.
FAR_OUT = 3.0


@dataclass(frozen=True, eq=False)
class RareGroups:
    """Sets of rows, and the first guess of the model without (the k heaviest of) each; (groups, p)."""

    sets: list[Places]
    thetas: Array

    @classmethod
    def of(cls, models: BatchedNewton, k: int) -> RareGroups:
        """The rare groups of a training set for deletions of at most k rows."""
        found = _by_passes(models.X, k) if isinstance(models.X, StreamedRows) else _by_column_and_label(models, k)
        sets = [chosen for chosen in found if len(chosen) > 1]
        if not sets or k < 2:
            return cls([], np.empty((0, models.X.shape[1])))
        heaviest = [chosen[np.argsort(-models.push(chosen), kind="stable")[:k]] for chosen in sets]
        return cls(sets, models.first_guess(Deletions.of(heaviest, k)))

    def starts(self, directions: Array, harms: Harms, k: int, which: int) -> Deletions:
        """For each point (M, p) the set with its ``which``-th worst group, filled up with the most harmful others."""
        scores = np.nan_to_num(directions @ self.thetas.T, nan=np.inf)
        order = np.argsort(scores, axis=1, kind="stable")[:, which]
        chosen, worst = [], harms.worst(2 * k, 2 * k)
        for point, group in enumerate(order):
            own = self.sets[group]
            own = own[np.argsort(harms.at(point, own), kind="stable")[:k]]
            others = worst.members(point)
            others = others[np.argsort(harms.at(point, others), kind="stable")]
            others = others[~np.isin(others, own)]
            chosen.append(np.concatenate([own, others[: k - len(own)]]))
        return Deletions.of(chosen, k)


def _by_column_and_label(models: BatchedNewton, k: int) -> list[Places]:
    groups: dict[bytes, Places] = {}
    for column in models.X.T:
        values, counts = np.unique(column, return_counts=True)
        usual = values[counts.argmax()]
        candidates = [column != usual]
        if len(values) > 2:
            centre, spread = column.mean(), column.std()
            candidates = [column > centre + FAR_OUT * spread, column < centre - FAR_OUT * spread, *candidates]
        for holders in candidates:
            for sign in (-1.0, 1.0):
                rows = np.flatnonzero(holders & (models.sign == sign))
                if 1 < len(rows) <= RARE * k:
                    groups[rows.tobytes()] = rows
    return list(groups.values())


@dataclass(frozen=True, eq=False)
class _Holders:
    """The rows of a chunk that hold a column's rare values, by label; lists that end where they are many.

    ``usual`` (p,) are the usual values; below ``low`` and above ``high`` (p,) values lie far out.
    """

    rows: StreamedRows
    usual: Array
    low: Array
    high: Array
    most: int

    def __call__(self, rows: slice) -> list[Places]:
        x, sign = self.rows[rows], self.rows.sign(rows)
        found = []
        for column, usual, low, high in zip(x.T, self.usual, self.low, self.high, strict=True):
            for holders in (column > high, column < low, column != usual):
                for label in (-1.0, 1.0):
                    found.append(rows.start + np.flatnonzero(holders & (sign == label))[: self.most + 1])
        return found

    def joined(self, one: list[Places], two: list[Places]) -> list[Places]:
        """Both, one behind the other, and one row more than is of use at most."""
        return [np.concatenate(both)[: self.most + 1] for both in zip(one, two, strict=True)]


def _by_passes(rows: StreamedRows, k: int) -> list[Places]:
    """The same for rows that are not held; which value is usual a sample says.

    It can err only between values that are both frequent, whose holders are too many to be rare anyway.
    """
    sample = rows[sampled_rows(len(rows))]
    usual, few = np.empty(rows.shape[1]), np.empty(rows.shape[1], dtype=bool)
    for place, column in enumerate(sample.T):
        values, counts = np.unique(column, return_counts=True)
        usual[place], few[place] = values[counts.argmax()], len(values) <= 2
    sums, squares = over_rows(_Moments(rows, usual), added, len(rows), LONG_CHUNK, Threads())
    centre = usual + sums / len(rows)
    spread = np.sqrt(np.maximum(squares / len(rows) - (sums / len(rows)) ** 2, 0.0))
    high = np.where(few, np.inf, centre + FAR_OUT * spread)
    low = np.where(few, -np.inf, centre - FAR_OUT * spread)
    holders = _Holders(rows, usual, low, high, RARE * k)
    found: list[Places] = over_rows(holders, holders.joined, len(rows), LONG_CHUNK, Threads())
    return list({chosen.tobytes(): chosen for chosen in found if 1 < len(chosen) <= RARE * k}.values())


@dataclass(frozen=True, eq=False)
class _Moments:
    """Sums and sums of squares of a chunk's columns, about a value of each (p,)."""

    rows: StreamedRows
    about: Array

    def __call__(self, rows: slice) -> tuple[Array, Array]:
        away = self.rows[rows] - self.about
        return away.sum(axis=0), (away * away).sum(axis=0)
