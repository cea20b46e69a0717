"""A model without slopes whose scores move in steps, and whose retrainings are known: what trees are like."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from rocerf import TrainingSet
from rocerf.models.model import Refittable


@dataclass(frozen=True)
class Stairs:
    """M models of one column: model m scores ``(floor(4 x) / 4 - bars[m]) * slopes[m]``."""

    bars: np.ndarray
    slopes: np.ndarray

    def __len__(self) -> int:
        return len(self.bars)

    def __getitem__(self, part: slice) -> Stairs:
        return Stairs(self.bars[part], self.slopes[part])

    def joined(self, other: Stairs) -> Stairs:
        return Stairs(np.append(self.bars, other.bars), np.append(self.slopes, other.slopes))

    def arrays(self) -> list[np.ndarray]:
        return [self.bars, self.slopes]

    def scores(self, X: np.ndarray) -> np.ndarray:
        return (np.floor(4 * X[:, 0]) / 4 - self.bars[:, None]) * self.slopes[:, None]


class Stepped(Refittable):
    """Accepts from about 1 on; retraining moves that bar by ``noise``, and of a share ``moody`` of models beyond reach.

    Slopes differ, as those of boosted trees do that are more or less sure of themselves.
    """

    def __init__(self, noise: float = 0.2, moody: float = 0.0, *, bar: float = 1.0) -> None:
        X = np.linspace(-2.0, 4.0, 60)[:, None]
        self._train = TrainingSet(X, (X[:, 0] > 1.0).astype(int))
        self.noise, self.moody, self.bar = noise, moody, bar

    @property
    def train(self) -> TrainingSet:
        return self._train

    def matrix(self, X: Any) -> np.ndarray:
        return np.asarray(X, dtype=np.float64)

    def score(self, X: Any) -> np.ndarray:
        return Stairs(np.array([self.bar]), np.ones(1)).scores(self.matrix(X))[0]

    def without(self, ids: Iterable[Any]) -> Stepped:
        return self

    def refitted(
        self, deletions: Sequence[Any], *, retraining: str = "fresh", seed: int = 0, progress: Any = None
    ) -> Stairs:
        rngs = [np.random.default_rng([seed, m]) for m in range(len(deletions))]
        bars = np.array([self.bar + self.noise * rng.normal() + 1e3 * (rng.random() < self.moody) for rng in rngs])
        if progress is not None:
            progress(len(bars), len(bars))
        return Stairs(bars, np.array([np.exp(0.3 * rng.normal()) for rng in rngs]))

    def restored(self, arrays: Sequence[Any]) -> Stairs:
        return Stairs(*arrays)

    def removable_class(self, k: int) -> None:
        return None

    def assumptions(self) -> tuple[str, ...]:
        return ("bars are moved",)
