"""Small problems of recourse on networks and logistic models, and what every solution must keep."""

from __future__ import annotations

from functools import cache
from typing import Any

import numpy as np
import pytest

from networks import moons
from problems import refused_people
from rocerf import FeatureSchema, NeuralModel
from rocerf.promises import FirstOrder, Plain, Promise
from rocerf.recourse.costs.cost import Norm
from rocerf.recourse.costs.norms import NormCost
from rocerf.recourse.master.feasible_set import FeasibleSet
from rocerf.recourse.master.master import Master
from rocerf.recourse.solvers.solution import Outcome, Solution

DELTA = 0.05


@cache
def curved() -> NeuralModel:
    """A network whose boundary is bent: no straight line parts half moons."""
    return NeuralModel.fit(moons(120), epochs=150, learning_rate=0.5, width=6, weight_decay=0.001, seed=1)


def master(model: Any, X0: np.ndarray, norm: str = "l2", schema: FeatureSchema | None = None) -> Master:
    return Master(X0, NormCost(Norm(norm), np.asarray(model.train.spread)), FeasibleSet.around(X0, schema))


def costs(problem: Master, solution: Solution) -> np.ndarray:
    return problem.cost.of(solution.points, problem.X0)


def rules(model: Any) -> FeatureSchema:
    """All columns inside the range of the training rows; of three, the one that matters least is fixed.

    The one that matters most may only go where the score rises.
    """
    X = model.train.X
    slopes = model.score_and_slope(X)[1].mean(axis=0) * model.train.spread
    least, most = np.argsort(np.abs(slopes))[[0, -1]]
    schema = FeatureSchema.free(model.train.columns)
    for j, name in enumerate(model.train.columns):
        schema = schema.edit(name, lower=X[:, j].min(), upper=X[:, j].max())
    if X.shape[1] > 2:
        schema = schema.edit(f"x{least}", direction="fixed")
    return schema.edit(f"x{most}", direction="increase" if slopes[most] > 0 else "decrease")


def refused(model: Any, seed: int, count: int) -> np.ndarray:
    """Refused people inside the range of the training rows."""
    people = np.clip(refused_people(model, seed, 5 * count), model.train.X.min(axis=0), model.train.X.max(axis=0))
    return people[model.score(people) < -0.05][:count]


def holds(promise: Promise, solution: Solution) -> None:
    """Every point, read again, one at a time, keeps the promise; what was not found is said so."""
    found = solution.outcomes == Outcome.FOUND
    assert np.isfinite(solution.points[found]).all()
    assert np.isnan(solution.points[~found]).all()
    for point, value in zip(solution.points[found], solution.values[found], strict=True):
        again = promise.read(point[None]).values[0]
        assert again >= DELTA
        assert again == pytest.approx(value, abs=1e-8)


def promises(model: Any) -> dict[str, Promise]:
    return {"plain": Plain(model), "first order": FirstOrder(model, 3)}
