"""A model whose retrainings have a known distribution, so that what a simulation says can be held against the truth."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import Any

import numpy as np
from scipy.stats import norm

from rocerf import TrainingSet
from rocerf.models.logistic.ensemble import LinearEnsemble
from rocerf.models.model import Refittable
from rocerf.promises import Simulated
from rocerf.promises.simulated import SimulatedPromise

SLOPES, ACCEPTANCE = np.array([1.5, -1.0]), -0.3

#: Standard deviations of what retraining does to two slopes and a constant.
NOISES = {
    "differs among people": np.diag([0.3, 0.3, 0.1]),
    "shared by people": np.diag([0.0, 0.0, 0.4]),
    "both": np.diag([0.3, 0.2, 0.3]),
}


class Noisy(Refittable):
    """A linear model whose retraining adds Gaussian noise to its parameters, so that all chances are known exactly.

    ``spoil`` adds this much to the scores of the models of a slice, as if they had been retrained badly.
    """

    def __init__(self, noise: np.ndarray, *, n: int = 120, spoil: tuple[slice, float] = (slice(0, 0), 0.0)) -> None:
        rng = np.random.default_rng(0)
        X = rng.normal(size=(n, 2))
        self._train = TrainingSet(X, (X @ SLOPES + ACCEPTANCE + rng.normal(size=n) > 0).astype(int))
        self.noise, self.spoil = noise, spoil
        self.asked: list[tuple[list[tuple[Any, ...]], str, int]] = []

    @property
    def train(self) -> TrainingSet:
        return self._train

    def matrix(self, X: Any) -> np.ndarray:
        return np.asarray(X, dtype=np.float64)

    def score(self, X: Any) -> np.ndarray:
        return self.matrix(X) @ SLOPES + ACCEPTANCE

    def score_and_slope(self, X: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        return self.score(X), np.broadcast_to(SLOPES, X.shape)

    def without(self, ids: Iterable[Any]) -> Noisy:
        return self

    def refitted(
        self, deletions: Sequence[Any], *, retraining: str = "fresh", seed: int = 0, progress: Any = None
    ) -> LinearEnsemble:
        self.asked.append(([tuple(ids.tolist()) for ids in deletions], retraining, seed))
        drawn = np.array([np.random.default_rng([seed, m, 7]).normal(size=3) for m in range(len(deletions))])
        moved = drawn @ self.noise.T
        moved[self.spoil[0], 2] += self.spoil[1]
        return LinearEnsemble(SLOPES + moved[:, :2], ACCEPTANCE + moved[:, 2])

    def restored(self, arrays: Sequence[Any]) -> LinearEnsemble:
        return LinearEnsemble(*arrays)

    def removable_class(self, k: int) -> None:
        return None

    def assumptions(self) -> tuple[str, ...]:
        return ("retraining adds noise",)

    def chances(self, X: np.ndarray) -> np.ndarray:
        """The share of all retrained models that accept each point: exact."""
        return norm.cdf(self.score(X) / np.linalg.norm(np.column_stack([X, np.ones(len(X))]) @ self.noise, axis=1))


def climb(promise: SimulatedPromise, X0: np.ndarray) -> np.ndarray:
    """Points where the promise just holds, on the line in which the score rises; NaN where it never does."""
    low, high = np.zeros(len(X0)), np.full(len(X0), 30.0)
    for _ in range(40):
        middle = (low + high) / 2
        good = promise.read(X0 + middle[:, None] * SLOPES).values >= 0
        low, high = np.where(good, low, middle), np.where(good, middle, high)
    points = X0 + high[:, None] * SLOPES
    return np.where((promise.read(points).values >= 0)[:, None], points, np.nan)


def chosen(model: Any, options: Simulated, seed: int, k: int = 6) -> SimulatedPromise:
    promise = options.about(model, k, seed=seed)
    promise.choose(climb)
    return promise


PEOPLE = np.random.default_rng(99).normal(size=(300, 2))
REFUSED = PEOPLE[PEOPLE @ SLOPES + ACCEPTANCE < 0]
