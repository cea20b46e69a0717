"""Retraining after many deletions."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

from rocerf.data.columns import is_number
from rocerf.data.training_set import TrainingSet
from rocerf.errors import OptionError
from rocerf.models.logistic import LogisticModel

Array = NDArray[np.float64]


def random_deletions(train: TrainingSet, count: int, trials: int, *, seed: int) -> list[NDArray[Any]]:
    """Ids of ``count`` rows drawn without replacement, ``trials`` times.

    Trial t depends on (seed, t) alone, so a run can be cut into parts or continued.

    >>> import rocerf
    >>> train = rocerf.TrainingSet([[1.0], [2.0], [3.0]], [0, 1, 1])
    >>> [ids.tolist() for ids in random_deletions(train, 1, 2, seed=0)]
    [[2], [1]]
    """
    if not 0 <= count < len(train):
        raise OptionError(
            f"Expected to delete between 0 and {len(train) - 1} of {len(train)} rows, got {count}; delete fewer."
        )
    checked_seed(seed)
    drawn = []
    for trial in range(trials):
        rng = np.random.default_rng([seed, trial])
        drawn.append(train.ids[np.sort(rng.choice(len(train), count, replace=False))])
    return drawn


def checked_seed(seed: Any) -> int:
    """The seed, if it is one that NumPy takes."""
    if not is_number(seed, whole=True) or seed < 0:
        raise OptionError(f"Expected seed to be a whole number >= 0, got {seed!r}; use for example seed=0.")
    return int(seed)


def retrain_each(
    model: LogisticModel, deletions: Sequence[NDArray[Any]], *, progress: Callable[[int, int], None] | None = None
) -> Array:
    """Parameters of the model exactly retrained after each deletion, shape (M, p)."""
    thetas = np.empty((len(deletions), len(model.theta)))
    for trial, ids in enumerate(deletions):
        thetas[trial] = model.without(ids).theta if len(ids) else model.theta
        if progress is not None:
            progress(trial + 1, len(deletions))
    return thetas
