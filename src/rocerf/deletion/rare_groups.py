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
        sets = [chosen for chosen in _by_column_and_label(models, k) if len(chosen) > 1]
        if not sets or k < 2:
            return cls([], np.empty((0, models.X.shape[1])))
        weight = models.push()
        heaviest = [chosen[np.argsort(-weight[chosen], kind="stable")[:k]] for chosen in sets]
        return cls(sets, models.first_guess(Deletions.of(heaviest, k)))

    def starts(self, directions: Array, harms: Array, k: int, which: int) -> Deletions:
        """For each point (M, p) the set with its ``which``-th worst group, filled up with the most harmful others."""
        scores = np.nan_to_num(directions @ self.thetas.T, nan=np.inf)
        order = np.argsort(scores, axis=1, kind="stable")[:, which]
        chosen = []
        for point, group in enumerate(order):
            own = self.sets[group]
            own = own[np.argsort(harms[point, own], kind="stable")[:k]]
            others = np.argpartition(harms[point], min(2 * k, harms.shape[1] - 1))[: 2 * k]
            others = others[np.argsort(harms[point, others], kind="stable")]
            others = others[~np.isin(others, own) & (harms[point, others] < 0)]
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
