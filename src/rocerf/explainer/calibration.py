"""Choosing the margin delta by simulation: the paper's "validation set and a few retrainings"."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
from numpy.typing import NDArray

from rocerf.data.disk_rows import CHUNK
from rocerf.deletion.random_deletions import random_deletions
from rocerf.errors import NotConvergedError
from rocerf.models.model import Refittable
from rocerf.passes import SERIAL, chunks, each
from rocerf.promises.promise import Promise
from rocerf.recourse.master.master import Master
from rocerf.recourse.solvers.solving import Solver
from rocerf.types import Array

RETRAININGS = 20
PEOPLE = 200
TARGET_VALIDITY = 0.999
DOUBLINGS = 12


def calibrate_delta(
    model: Refittable, promise: Promise, master_of: Callable[[Array], Master], solver: Solver, *, seed: int
) -> float:
    """The smallest margin of a doubling grid at which refused people's recourse survives random deletions.

    ``master_of`` makes the problem of people (P, d). The people are up to 200 training rows that the model refuses
    (only their features are used); the retrained models are 20, each without k random rows. Margins tried: 0, then
    1/256 of the scores' standard deviation, doubled each time. Survival asked for: 99.9 % of all pairs.
    """
    rng = np.random.default_rng(seed)
    refused = np.flatnonzero(_of_training_rows(model.predict, model) == 0)
    X0 = model.train.X[np.sort(rng.permutation(refused)[:PEOPLE])]
    if not len(X0) or promise.k == 0:
        return 0.0
    deletions = random_deletions(model.train, promise.k, RETRAININGS, seed=seed)
    retrained = model.refitted(deletions, seed=seed)
    master = master_of(X0)
    step = float(_of_training_rows(model.score, model).std()) / 256.0
    counted: NDArray[np.bool_] | None = None
    for delta in [0.0, *(step * 2.0**i for i in range(DOUBLINGS))]:
        points = solver(promise, master, delta).points
        answered = np.asarray(np.isfinite(points).all(axis=1))
        counted = answered if counted is None else counted  # those who can be answered at all, whatever the margin
        survive = answered[:, None] & (retrained.scores(np.where(answered[:, None], points, X0)).T >= 0)
        if not counted.any() or float(survive[counted].mean()) >= TARGET_VALIDITY:
            return delta
    raise NotConvergedError(
        f"Expected a margin at which {TARGET_VALIDITY:.1%} of recourses survive random deletions of {promise.k} rows, "
        f"found none up to {delta:.3g}; give delta as a number, or use a smaller k."
    )


def _of_training_rows(asked: Callable[[Array], NDArray[Any]], model: Refittable) -> NDArray[Any]:
    """What the model says of each of its training rows, chunk by chunk; (n,)."""
    X = model.train.X
    return np.concatenate(each(lambda rows: asked(X[rows]), chunks(len(X), CHUNK), SERIAL))
