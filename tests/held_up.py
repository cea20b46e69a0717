"""A model whose every retraining is known: each training row holds all points up by a number of its own."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from scipy.stats import norm

from rocerf import TrainingSet
from rocerf.models.model import Proposing


@dataclass(frozen=True)
class Lines:
    """M models of one column: model m scores ``x - bars[m]``."""

    bars: np.ndarray

    def __len__(self) -> int:
        return len(self.bars)

    def __getitem__(self, part: slice) -> Lines:
        return Lines(self.bars[part])

    def joined(self, other: Lines) -> Lines:
        return Lines(np.append(self.bars, other.bars))

    def arrays(self) -> list[np.ndarray]:
        return [self.bars]

    def scores(self, X: np.ndarray) -> np.ndarray:
        return X[:, 0] - self.bars[:, None]

    def scores_and_pullback(self, X: np.ndarray) -> tuple[np.ndarray, Any]:
        return self.scores(X), lambda weights: weights.sum(axis=0)[:, None] * np.ones_like(X)


class HeldUp(Proposing):
    """Accepts from 0 on; deleting rows moves that bar up by their ``lifts``, and a new start by ``noise``."""

    def __init__(self, lifts: Sequence[float] = (), noise: float = 0.0, *, rows: int = 40) -> None:
        X = np.linspace(-3.0, 3.0, rows)[:, None]
        self._train = TrainingSet(X, (X[:, 0] > 0.0).astype(int))
        self.lifts = np.zeros(rows)
        self.lifts[: len(lifts)] = lifts
        self.noise, self.retrained = noise, 0

    @property
    def train(self) -> TrainingSet:
        return self._train

    def matrix(self, X: Any) -> np.ndarray:
        return np.asarray(X, dtype=np.float64)

    def score(self, X: Any) -> np.ndarray:
        return self.matrix(X)[:, 0]

    def score_and_slope(self, X: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        return X[:, 0].copy(), np.ones_like(X)

    def without(self, ids: Iterable[Any]) -> HeldUp:
        return self

    def refitted(
        self,
        deletions: Sequence[Any],
        *,
        retraining: str = "fresh",
        seed: int = 0,
        trials: Sequence[int] | None = None,
        progress: Any = None,
    ) -> Lines:
        bars = []
        for place, ids in enumerate(deletions):
            rng = np.random.default_rng([seed, place if trials is None else trials[place]])
            bars.append(self.lifts[self.train.positions(ids)].sum() + self.noise * rng.normal())
            if progress is not None:
                progress(place + 1, len(deletions))
        self.retrained += len(bars)
        return Lines(np.array(bars))

    def seconds_to_retrain(self, count: int, *, retraining: str = "fresh") -> float:
        return 1.0 * count

    @property
    def proposals(self) -> tuple[str, ...]:
        return ("lifts",)

    def harms(self, X: np.ndarray, proposal: str) -> np.ndarray:
        return np.tile(-self.lifts, (len(X), 1))

    def as_retrained(self, models: Lines, place: int) -> HeldUp:
        return self

    def restored(self, arrays: Sequence[Any]) -> Lines:
        return Lines(*arrays)

    def removable_class(self, k: int) -> None:
        return None

    def assumptions(self) -> tuple[str, ...]:
        return ("rows hold points up",)

    def chance(self, x: float, k: int) -> float:
        """The share of models retrained without the k rows of largest lift that accept a point; the worst one."""
        moved = x - np.sort(self.lifts)[::-1][:k].sum()
        return float(moved >= 0) if self.noise == 0 else float(norm.cdf(moved / self.noise))

    def budget(self, x: float, share: float, most: int) -> int:
        """The largest number of deletions up to which at least that share accepts; -1 if none."""
        return max((k for k in range(most + 1) if self.chance(x, k) >= share), default=-1)
