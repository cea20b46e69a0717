"""What the authors' ROCERF descends on: the linear model that first order foresees without the k worst rows.

In standardised columns with a constant, ``z~ = [z, 1]``, for a linear model theta (the model itself, or for networks a
linear stand-in fitted around the person as the authors do, :mod:`rocerf.models.local_linear`):

    g_i = (p_i - y_i) z~_i,    H = mean_i p_i (1 - p_i) z~_i z~_i' + 0.01 I,    a_i = z0~' H^-1 g_i,

and theta is moved by ``H^-1 g_i / n`` of the k rows with the smallest ``a_i``. These are chosen once, at the person as
they stand, and the penalty of the fit enters neither ``g_i`` nor ``H``. Kept as it is in their code: rows with equal
``a_i`` are taken only if all of them fit into k, so where rows are repeated fewer than k are feared.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property

import numpy as np

from rocerf.baselines.answers import valid
from rocerf.baselines.roar_descent import Linear
from rocerf.baselines.standard import Standard
from rocerf.data.training_set import TrainingSet
from rocerf.models.loss import LOGISTIC
from rocerf.types import Array, Mask

DAMPING = 0.01

#: Entries of one block of effects (rows times people).
BLOCK = 2**24


@dataclass(frozen=True, eq=False)
class Rows:
    """The training rows in standardised columns."""

    train: TrainingSet

    @cached_property
    def Z(self) -> Array:
        """With a constant, (n, d + 1)."""
        inside = Standard.of(self.train).inwards(self.train.X)
        return np.column_stack([inside, np.ones(len(inside))])

    def effects(self, theta: Array) -> Array:
        """``H^-1 g_i`` of all rows at parameters theta (d + 1,), shape (n, d + 1)."""
        Z, weights = self.Z, self.train.weights
        scores = Z @ theta
        pull = LOGISTIC.pull(scores) - self.train.y
        bend = LOGISTIC.curvature(scores)
        if weights is not None:
            pull, bend = pull * weights, bend * weights
        H = Z.T @ (Z * bend[:, None]) / len(Z) + DAMPING * np.eye(Z.shape[1])
        return np.asarray((Z * pull[:, None]) @ np.linalg.inv(H))

    def shifts(self, effects: Array, z0: Array, k: int) -> Array:
        """What theta moves by without the k worst rows of each person z0 (P, d), shape (P, d + 1)."""
        here = np.column_stack([z0, np.ones(len(z0))])
        moved, size = np.empty(here.shape), max(1, BLOCK // len(effects))
        for first in range(0, len(here), size):
            # In their precision: rows that are the same must count as the same.
            drops = (here[first : first + size] @ effects.T).astype(np.float32)
            limit = np.partition(drops, k, axis=1)[:, k]
            moved[first : first + size] = (drops < limit[:, None]).astype(np.float64) @ effects / len(effects)
        return moved


def shifted(models: Linear, rows: Rows, z0: Array, k: int) -> Linear:
    """The models of the people z0 (P, d) without their k worst rows; NaN where there is none."""
    theta = np.column_stack([models.w, models.b])
    moved = np.full(theta.shape, np.nan)
    there = np.flatnonzero(np.isfinite(models.b))
    if len(there) and (theta[there] == theta[there[0]]).all():
        moved[there] = rows.shifts(rows.effects(theta[there[0]]), z0[there], k)
    else:
        for person in there:
            moved[person] = rows.shifts(rows.effects(theta[person]), z0[person : person + 1], k)[0]
    return Linear(models.w + moved[:, :-1], models.b + moved[:, -1])


class ShiftedTarget:
    """Each person's shifted model, descended on; accepted is what it accepts and, if they are given, the own ones."""

    def __init__(self, moved: Linear, own: Linear | None) -> None:
        self.moved, self.own = moved, own

    def read(self, z: Array) -> tuple[Array, Array, Mask]:
        """As :class:`rocerf.baselines.wachter.Target`."""
        scores = self.moved.score(z)
        good = valid(scores)
        if self.own is not None:
            good &= valid(self.own.score(z))
        return scores, self.moved.w, good

    def keep(self, open_: Mask) -> None:
        """Go on with these people only, a mask (Q,)."""
        self.moved = self.moved.rows(open_)
        self.own = None if self.own is None else self.own.rows(open_)
