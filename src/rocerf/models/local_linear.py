"""The paper's local linear stand-in for a network: a logistic model of its decisions around one person.

Following LIME: points are drawn from a normal distribution around x0 (standard deviation 0.1 in units of the training
spread, widened by 0.05 until the network decides both ways), weighted by ``exp(-distance^2)`` (distances shrunk by as
much as the cloud was widened), and a logistic model (C = 10,000) is fitted to the network's decisions there. It is
then treated as if it were the linear model trained on the training rows: their gradients and curvature are taken at
its parameters,

    g_i = omega_i (p_i - y_i) x~_i,      H = sum_i omega_i p_i (1 - p_i) x~_i x~_i' + n damping I,

with the damping 0.01 of the authors' code. It depends on x0, and so does the promise made with it.
"""

from __future__ import annotations

from collections.abc import Iterable
from functools import cached_property
from typing import Any, NoReturn

import numpy as np
from numpy.typing import ArrayLike, NDArray
from scipy.special import expit

from rocerf.data.training_set import TrainingSet
from rocerf.errors import UnsupportedModelError
from rocerf.models.curvature import Curvature
from rocerf.models.design import Design
from rocerf.models.logistic_objective import LogisticObjective, Penalty
from rocerf.models.model import Refittable, ValueAndSlope

Array = NDArray[np.float64]

SAMPLES = 10_000
WIDTH, WIDER, WIDEST = 0.1, 0.05, 5.0
C = 1e4
DAMPING = 0.01


class LocalLinearModel:
    """A logistic model of another model's decisions around one person; it cannot be retrained."""

    deployed_theta: Array | None = None

    def __init__(self, train: TrainingSet, theta: Array, design: Design, class_counts: dict[Any, int]) -> None:
        self._train, self._theta, self.design, self._class_counts = train, theta, design, class_counts

    @classmethod
    def around(cls, model: Refittable, x0: Array, *, seed: int = 0) -> LocalLinearModel | None:
        """The stand-in at one person (d,); None if the model decides one way as far as it was looked."""
        train = model.train
        drawn = np.random.default_rng(seed).standard_normal((SAMPLES, len(x0)))
        width = WIDTH
        while True:
            accepted = model.score(x0 + width * drawn * train.spread) >= 0
            if accepted.any() and not accepted.all():
                break
            width += WIDER
            if width > WIDEST:
                return None
        design = Design(np.zeros(len(x0)), np.asarray(train.spread), True)
        # The kernel widens with the cloud: measured in fixed units it would leave a handful of points in 60 dimensions.
        weights = np.exp(-((WIDTH * drawn) ** 2).sum(axis=1))
        points = x0 + width * drawn * train.spread
        objective = LogisticObjective(
            points, accepted.astype(np.float64), weights / weights.max(), design, Penalty.fixed(C), 0.0
        )
        good = int(train.y.sum())
        counts = {train.favourable: good, train.unfavourable: len(train) - good}
        return cls(train, objective.minimise(np.zeros(design.width)).theta, design, counts)

    @property
    def train(self) -> TrainingSet:
        """The rows whose deletion is feared: those of the model it stands in for."""
        return self._train

    @property
    def theta(self) -> Array:
        """Parameters over the design row, shape (d + 1,)."""
        return self._theta

    def score(self, X: ArrayLike) -> Array:
        """Scores of shape (P,)."""
        return self.design(np.asarray(X, dtype=np.float64)) @ self.theta

    def predict(self, X: ArrayLike) -> NDArray[np.int64]:
        """1 where the stand-in accepts, else 0."""
        return (self.score(X) >= 0).astype(np.int64)

    def score_and_slope(self, X: Array) -> tuple[Array, Array]:
        """Scores (P,) and slopes (P, d)."""
        slopes, constants = self.halfspaces(self.theta)
        return X @ slopes + constants, np.broadcast_to(slopes, X.shape)

    def score_gradient(self, X: Array) -> Array:
        """Design rows, shape (P, d + 1)."""
        return self.design(X)

    @cached_property
    def _rows(self) -> tuple[Array, Array, Array]:
        rows = self.design(self.train.X)
        weights = np.ones(len(rows)) if self.train.weights is None else self.train.weights
        return rows, expit(rows @ self.theta), weights

    def row_gradients(self, rows: slice | NDArray[np.intp] = slice(None)) -> Array:
        """``g_i`` of these training rows at the stand-in's parameters, shape (m, d + 1)."""
        design, p, weights = self._rows
        return (weights[rows] * (p[rows] - self.train.y[rows]))[:, None] * design[rows]

    def curvature(self) -> Curvature:
        """``H`` at the stand-in's parameters."""
        design, p, weights = self._rows
        return Curvature(
            (design * (weights * p * (1.0 - p))[:, None]).T @ design + len(design) * DAMPING * np.eye(design.shape[1])
        )

    def shifted_score(self, shifts: Array) -> ValueAndSlope:
        """Scores and slopes of the stand-in with moved parameters."""
        slopes, constants = self.halfspaces(self.theta + shifts)
        return lambda X: (np.einsum("ij,ij->i", slopes, X) + constants, slopes)

    def halfspaces(self, coefficients: Array) -> tuple[Array, Array]:
        """Slopes and constants in schema space."""
        return self.design.in_schema_space(coefficients)

    def removable_class(self, k: int) -> Any | None:
        """A label all of whose rows k deletions could remove."""
        label, count = min(self._class_counts.items(), key=lambda item: item[1])
        return label if count <= k else None

    def without(self, ids: Iterable[Any]) -> NoReturn:
        """It has no training of its own."""
        raise UnsupportedModelError(
            "Expected a model that can be retrained, got a local linear stand-in; retrain the model it stands in for."
        )
