"""Stacks for the tests of the training kernel: sizes to pad and not to pad, deletions, short batches, weights."""

from __future__ import annotations

import numpy as np
import pytest
import torch

from rocerf.models.network.training import Task

N = 23
#: Rows that are left after four deletions of different size, one of which leaves a single row.
KEPT = [np.delete(np.arange(N), gone) for gone in ([], [3], range(5, 18), [0, 7, 22], range(1, N))]
SEEDS = [11, 5, 2**62 + 3, 0, 11]
CPU = torch.device("cpu")


def task(inputs: int, n: int = N, *, seed: int = 0) -> Task:
    rng = np.random.default_rng(seed)
    X = rng.normal(size=(n, inputs))
    return Task(X, (X[:, 0] + rng.normal(size=n) > 0).astype(float), rng.uniform(0.2, 3.0, size=n))


def distance(some: list[np.ndarray], others: list[np.ndarray]) -> float:
    return max(float(np.abs(a - b).max()) for a, b in zip(some, others, strict=True))


CASES = [
    pytest.param((3, 4, 2), {"batch_size": 7}, id="two layers, batches of 7"),
    pytest.param((3, 4, 2), {"batch_size": 4, "shuffle": False, "weight_decay": 0.2, "epochs": 2}, id="in order"),
    pytest.param((13, 26, 2), {"batch_size": 32, "weight_decay": 0.05}, id="the size of Adult"),
    pytest.param((60, 120, 2), {"batch_size": 16, "epochs": 1}, id="the size of German"),
    pytest.param((17, 1, 2), {"batch_size": 20, "weight_decay": 0.01}, id="one unit a layer"),
    pytest.param((2, 5, 1), {"batch_size": 1, "epochs": 1, "weight_decay": 0.1}, id="one layer, single rows"),
    pytest.param((16, 16, 1), {"batch_size": 16}, id="nothing to pad"),
    pytest.param((3, 4, 0), {"batch_size": 5, "weight_decay": 0.3}, id="no hidden layer"),
]
