"""ROAR as the authors run it: one gradient descent for everybody, one weight for everybody.

In standardised columns, for a linear model ``w'z + b`` of a person (the model itself, or for networks a linear stand-in
fitted around the person, :class:`rocerf.models.local_linear.LocalLinearModel`), Adam with steps of 1e-3 on

    J(z) = softplus(-f_box(z)) + lambda ||z - z0||,      f_box(z) = w'z + b - delta_max (||z||_1 + 1),

from z0 until J changes by at most 1e-4 in a step. ``lambda`` is chosen on the first 5 % of the people asked for, so it
depends on who is asked for together:

* for linear models at least 5 of them; of 0, 0.1, 0.2, ... the last value at which the model accepts all their ends.
  0 is a possible outcome.
* for stand-ins at least 5 and at most 20; of 0.1, 0.2, 0.4, ... the *first* value at which not all their ends are
  accepted by their stand-ins, 0.1 where fewer people are asked for than are to be tried. So some ends are refused by
  the very model that was descended on.

The stand-ins are fitted as the authors do (``sampling="authors"``), and what counts is what the stand-in says of an
end: the network is never asked, and may refuse it. The authors' code counts the cost of every end, also of those that
the stand-in refuses; we keep the ends that it accepts, as for a linear model.

Where the original code would go wrong we do not follow: it returns -0.1 where not even 0 will do, doubles for ever
where the stand-ins accept people as they stand, and has no limit on the number of steps.
"""

from __future__ import annotations

import itertools
from collections.abc import Iterator
from dataclasses import dataclass

import numpy as np

from rocerf.baselines.standard import BoxedAdam, Standard, StandardProblem, points_of
from rocerf.models.local_linear import LocalLinearModel
from rocerf.models.loss import LOGISTIC
from rocerf.models.model import LinearModel, Refittable
from rocerf.recourse.master.master import Master
from rocerf.types import Array, Mask, Places, Progress

STEP_SIZE = 1e-3
TOLERANCE = 1e-4
#: Most steps of a person; the original names this number and does not use it.
STEPS = 50_000
#: Share of the people, and the least number of them, on whom lambda is chosen; the most of them for stand-ins.
SHARE, LEAST, MOST = 0.05, 5, 20


@dataclass(frozen=True, eq=False)
class Linear:
    """Linear models ``w'z + b`` of P people in standardised columns: w (P, d), b (P,); NaN where there is none."""

    w: Array
    b: Array

    def rows(self, people: Places | Mask | slice) -> Linear:
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
            local = LocalLinearModel.around(self.model, x0, seed=self.seed, sampling="authors")
            if local is not None:
                found.w[person], found.b[person] = space.linear(*local.halfspaces(local.theta))
            if progress is not None:
                progress(person, len(X0))
        return found

    def weights(self, models: Linear) -> Iterator[float]:
        """Values of lambda to try on the ends of these models, in order."""
        if isinstance(self.model, LinearModel):
            return (0.1 * step for step in itertools.count())
        # The slope of the worst loss is never longer: beyond it the best is to stay, and a larger weight says no more.
        steepest = np.sqrt((models.w**2).sum(axis=1)).max() + self.delta_max * np.sqrt(models.w.shape[1])
        doublings = int(np.ceil(np.log2(max(10.0 * steepest, 1.0))))
        return (0.1 * 2.0**step for step in range(doublings + 1))

    def tried(self, people: int) -> int:
        """On how many of so many people lambda is chosen; for stand-ins it may be more than there are."""
        share = max(LEAST, int(SHARE * people))
        return min(people, share) if isinstance(self.model, LinearModel) else min(MOST, share)


def find_by_descent(descent: Descent, master: Master, lam: float | None, progress: Progress | None = None) -> Array:
    """Where the authors' descent ends for each person (P, d), accepted or not; missing where there is no stand-in.

    With the lambda given, or their choice of it.
    """
    return _ends(descent, master, lam, progress)[0]


def find_accepted_by_stand_ins(
    descent: Descent, master: Master, lam: float | None, progress: Progress | None = None
) -> Array:
    """The ends (P, d), moved to allowed values, that the person's own linear model accepts, as the authors ask (above
    0); missing elsewhere.
    """
    ends, models, space = _ends(descent, master, lam, progress)
    found = np.asarray(np.isfinite(ends).all(axis=1))
    points = np.where(found[:, None], master.allowed.landed(ends), np.nan)
    return np.where((models.score(space.inwards(points)) > 0)[:, None], points, np.nan)


def _ends(
    descent: Descent, master: Master, lam: float | None, progress: Progress | None
) -> tuple[Array, Linear, Standard]:
    """Where the descent of each person ends (P, d), missing without a stand-in, and on which model it went."""
    space = Standard.of(descent.model.train)
    problem = StandardProblem.of(master, space)
    models = descent.linear_models(master.X0, space, progress)
    points = np.full(master.X0.shape, np.nan)
    there = np.flatnonzero(np.isfinite(models.b))
    if len(there):
        problem, own = problem.rows(there), models.rows(there)
        chosen = choose_lambda(descent, own, problem) if lam is None else lam
        points[there] = points_of(master.of(there), space, descend(own, problem, descent.delta_max, chosen))
    if progress is not None:
        progress(len(points), len(points))
    return points, models, space


def choose_lambda(descent: Descent, models: Linear, problem: StandardProblem) -> float:
    """For linear models the last weight at which everybody among the first few people is accepted, the first at least.

    For stand-ins the first weight at which not everybody is.
    """
    tried, people = descent.tried(len(problem.z0)), len(problem.z0)
    if tried > people:
        return next(descent.weights(models))
    few = np.arange(tried)
    models, problem = models.rows(few), problem.rows(few)
    before = lam = next(descent.weights(models))
    for lam in descent.weights(models):
        z = descend(models, problem, descent.delta_max, lam)
        # Weights that outweigh every slope leave people where they are.
        if not (models.score(z) > 0).all():
            break
        before = lam
    return before if isinstance(descent.model, LinearModel) else lam


def descend(models: Linear, problem: StandardProblem, delta_max: float, lam: float) -> Array:
    """Adam on J for each person until it changes by at most the tolerance; where that ends, (P, d).

    >>> from rocerf.recourse.costs.cost import Norm
    >>> free = np.full((1, 1), np.inf)
    >>> problem = StandardProblem(np.array([[-1.0]]), -free, free, Norm.L2)
    >>> z = descend(Linear(np.array([[2.0]]), np.zeros(1)), problem, 0.1, 0.0)
    >>> bool(2 * z[0, 0] - 0.1 * (abs(z[0, 0]) + 1) > 0)
    True
    """
    on, result, loss = BoxedAdam(problem, STEP_SIZE), problem.start(), np.ones(len(problem.z0))
    for _ in range(STEPS):
        worst = models.score(on.z) - delta_max * (np.abs(on.z).sum(axis=1) + 1.0)
        before, loss = loss, LOGISTIC.value(-worst) + lam * on.cost()
        on.step(-LOGISTIC.pull(-worst)[:, None] * (models.w - delta_max * np.sign(on.z)), lam)
        result[on.people] = on.z
        open_ = np.abs(loss - before) > TOLERANCE
        if not open_.any():
            break
        if not open_.all():
            loss, models = loss[open_], models.rows(open_)
            on.keep(open_)
    return result
