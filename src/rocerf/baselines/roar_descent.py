"""ROAR as the authors run it: one gradient descent for everybody, one weight for everybody.

In standardised columns, for a linear model ``w'z + b`` of a person (the model itself, or for networks a linear
stand-in fitted around the person, :class:`rocerf.models.local_linear.LocalLinearModel`), Adam with steps of 1e-3 on

    J(z) = softplus(-f_box(z)) + lambda ||z - z0||,      f_box(z) = w'z + b - delta_max (||z||_1 + 1),

from z0 until J changes by at most 1e-4 in a step. ``lambda`` is the last value at which all of the first 5 % of the
people asked for (at least 5) are accepted by the linear model: 0, 0.1, 0.2, ... for linear models, 0.1, 0.2, 0.4, ...
for stand-ins. So it depends on who is asked for together, and 0 is a possible outcome.

Where the original code would go wrong we do not follow: it returns -0.1 where not even 0 will do, for networks the
first value that fails instead of the last that works, and it has no limit on the number of steps.
"""

from __future__ import annotations

import itertools
from collections.abc import Iterator
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray
from scipy.special import expit

from rocerf.baselines.standard import Adam, Standard, StandardProblem, points_of
from rocerf.models.local_linear import LocalLinearModel
from rocerf.models.model import LinearModel, Refittable
from rocerf.recourse.master import Master
from rocerf.recourse.solution import Progress

Array = NDArray[np.float64]

STEP_SIZE = 1e-3
TOLERANCE = 1e-4
#: Most steps of a person; the original names this number and does not use it.
STEPS = 50_000
#: Share of the people, and the least number of them, on whom lambda is chosen.
SHARE, LEAST = 0.05, 5


@dataclass(frozen=True, eq=False)
class Linear:
    """Linear models ``w'z + b`` of P people in standardised columns: w (P, d), b (P,); NaN where there is none."""

    w: Array
    b: Array

    def rows(self, people: NDArray[np.intp] | NDArray[np.bool_] | slice) -> Linear:
        """Those of these people."""
        return Linear(self.w[people], self.b[people])

    def score(self, z: Array) -> Array:
        """Scores (P,) of each person's own point (P, d)."""
        return np.asarray((self.w * z).sum(axis=1) + self.b)


@dataclass(frozen=True)
class Descent:
    """What is descended on: a model, and how far each of its parameters may move."""

    model: Refittable
    delta_max: float
    seed: int = 0

    def linear_models(self, X0: Array, space: Standard, progress: Progress | None) -> Linear:
        """The model of each person: itself where it is linear, else a stand-in around them."""
        if isinstance(self.model, LinearModel):
            w, b = space.linear(*self.model.halfspaces(self.model.theta))
            return Linear(np.broadcast_to(w, X0.shape), np.broadcast_to(b, len(X0)))
        found = Linear(np.full(X0.shape, np.nan), np.full(len(X0), np.nan))
        for person, x0 in enumerate(X0):
            local = LocalLinearModel.around(self.model, x0, seed=self.seed)
            if local is not None:
                found.w[person], found.b[person] = space.linear(*local.halfspaces(local.theta))
            if progress is not None:
                progress(person, len(X0))
        return found

    def weights(self) -> Iterator[float]:
        """Values of lambda to try, in order."""
        if isinstance(self.model, LinearModel):
            return (0.1 * step for step in itertools.count())
        return (0.1 * 2.0**step for step in itertools.count())


def find_by_descent(descent: Descent, master: Master, lam: float | None, progress: Progress | None = None) -> Array:
    """Where the authors' descent ends for each person (P, d), accepted or not; missing where there is no stand-in."""
    space = Standard.of(descent.model.train)
    problem = StandardProblem.of(master, space)
    models = descent.linear_models(master.X0, space, progress)
    points = np.full(master.X0.shape, np.nan)
    there = np.flatnonzero(np.isfinite(models.b))
    if len(there):
        problem, models = problem.rows(there), models.rows(there)
        chosen = choose_lambda(descent, models, problem) if lam is None else lam
        z = descend(models, problem, descent.delta_max, chosen)
        points[there] = points_of(master.of(there), space, z)
    if progress is not None:
        progress(len(points), len(points))
    return points


def choose_lambda(descent: Descent, models: Linear, problem: StandardProblem) -> float:
    """The last of the weights at which everybody among the first few people is accepted; the first one at least."""
    few = np.arange(min(len(problem.z0), max(LEAST, int(SHARE * len(problem.z0)))))
    models, problem = models.rows(few), problem.rows(few)
    last = next(descent.weights())
    for lam in descent.weights():
        z = descend(models, problem, descent.delta_max, lam)
        # Weights that outweigh every slope leave people where they are.
        if not (models.score(z) > 0).all():
            break
        last = lam
    return last


def descend(models: Linear, problem: StandardProblem, delta_max: float, lam: float) -> Array:
    """Adam on J for each person until it changes by at most the tolerance; where that ends, (P, d).

    >>> from rocerf.recourse.cost import Norm
    >>> free = np.full((1, 1), np.inf)
    >>> problem = StandardProblem(np.array([[-1.0]]), -free, free, Norm.L2)
    >>> z = descend(Linear(np.array([[2.0]]), np.zeros(1)), problem, 0.1, 0.0)
    >>> bool(2 * z[0, 0] - 0.1 * (abs(z[0, 0]) + 1) > 0)
    True
    """
    z, result = problem.start(), problem.start()
    people, adam, loss = np.arange(len(z)), Adam(z.shape, STEP_SIZE), np.ones(len(z))
    for _ in range(STEPS):
        worst = models.score(z) - delta_max * (np.abs(z).sum(axis=1) + 1.0)
        before, loss = loss, np.logaddexp(0.0, -worst) + lam * problem.cost(z)
        pull = -expit(-worst)[:, None] * (models.w - delta_max * np.sign(z))
        move = adam.move(pull + lam * problem.cost_slope(z))
        z = np.clip(z - move, problem.lower, problem.upper)
        result[people] = z
        open_ = np.abs(loss - before) > TOLERANCE
        if not open_.any():
            break
        if not open_.all():
            people, z, loss = people[open_], z[open_], loss[open_]
            models, problem = models.rows(open_), problem.rows(open_)
            adam.keep(open_)
    return result
