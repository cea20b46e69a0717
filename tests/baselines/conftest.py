"""Models that the tests of the baselines share."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

from rocerf import LogisticModel, NeuralModel, TrainingSet


class Bare:
    """A model that can only be asked its score: neither slopes nor parameters."""

    def __init__(self, model: LogisticModel) -> None:
        self._model = model
        for name in (
            *("train", "matrix", "score", "deployed_score", "predict", "without", "refitted", "restored"),
            *("removable_class", "assumptions", "save"),
        ):
            setattr(self, name, getattr(model, name))


@pytest.fixture
def bare() -> Callable[[LogisticModel], Any]:
    """Strips a model of everything but its decisions."""
    return Bare


@pytest.fixture(scope="session")
def network() -> NeuralModel:
    """A small network on a ring, whose boundary is curved."""
    rng = np.random.default_rng(0)
    X = rng.normal(size=(300, 2)) * [1.0, 10.0] + [0.0, 5.0]
    z = (X - X.mean(axis=0)) / X.std(axis=0)
    y = ((z**2).sum(axis=1) + 0.3 * rng.normal(size=300) < 1.6).astype(int)
    return NeuralModel.fit(TrainingSet(X, y), seed=0, width=8, epochs=150, learning_rate=0.1)
