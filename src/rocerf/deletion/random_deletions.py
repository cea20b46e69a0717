"""Deletions drawn at random."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

from rocerf.data.training_set import TrainingSet
from rocerf.errors import OptionError
from rocerf.models.options import checked_seed


def random_deletions(train: TrainingSet, count: int, trials: int, *, seed: int, first: int = 0) -> list[NDArray[Any]]:
    """Ids of ``count`` rows drawn without replacement, ``trials`` times, beginning with trial ``first``.

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
    for trial in range(first, first + trials):
        rng = np.random.default_rng([seed, trial])
        drawn.append(train.ids[np.sort(rng.choice(len(train), count, replace=False))])
    return drawn


def random_deletion_sizes(most: int, trials: int, *, seed: int) -> NDArray[np.intp]:
    """Numbers of rows to delete, each from 0 to ``most`` with the same probability, shape (trials,)."""
    return np.random.default_rng([checked_seed(seed), most]).integers(0, most + 1, size=trials)
