"""ROAR as the authors run it: one gradient descent for everybody, one weight for everybody.

In standardised columns, for a linear model ``w'z + b`` of a person (the model itself, or for networks a linear stand-in
fitted around the person, :class:`rocerf.models.local_linear.LocalLinearModel`), Adam with steps of 1e-3 on

    J(z) = softplus(-f_box(z)) + lambda ||z - z0||,      f_box(z) = w'z + b - delta_max (||z||_1 + 1),

from z0 until J changes by at most 1e-4 in a step. ``lambda`` is chosen on the first of the people asked for, or on the
first of each :class:`Parts` of them (the authors' code works on the test files in parts):

* for linear models on 5 % of a part, at least 5; of 0, 0.1, 0.2, ... the last value at which the model accepts all
  their ends. 0 is a possible outcome.
* for stand-ins on 5 % of everybody, at least 5 and at most 20; of 0.1, 0.2, 0.4, ... the *first* value at which not
  all their ends are accepted by their stand-ins, 0.1 where a part has fewer people than are to be tried. So some ends
  are refused by the very model that was descended on.

The stand-ins are fitted as the authors do (``sampling="authors"``), and the network is never asked. Every end counts,
also those that model or stand-in refuse.

Where the original code would go wrong we do not follow: where not even 0 will do, or a linear model's part has fewer
than 5 people, it goes on with -0.1 and never ends (here: 0, and as many people as there are); it doubles for ever where
the stand-ins accept people as they stand; it has no limit on the number of steps.
"""

from __future__ import annotations

import itertools
from collections.abc import Iterator
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from rocerf.baselines.standard import BoxedAdam, Standard, StandardProblem, points_of, refuse_pieces
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


@dataclass(frozen=True, eq=False)
class Parts:
    """The parts in which people are worked on, by their ``labels`` (P,), and how many are denied in ``total``."""

    labels: NDArray[np.intp]
    total: int

    @classmethod
    def one(cls, people: int) -> Parts:
        """All of them together.

        >>> Parts.one(2).of(np.array([1])).labels.tolist()
        [0]
        """
        return cls(np.zeros(people, np.intp), people)

    def of(self, places: Places) -> Parts:
        """Those of these people."""
        return Parts(self.labels[places], self.total)


@dataclass(frozen=True)
class Descent:
    """What is descended on: a model, and how far each of its parameters may move."""

    model: Refittable
    delta_max: float
    seed: int = 0

    def linear_models(self, X0: Array, space: Standard, progress: Progress | None) -> Linear:
        """The model of each person: itself where it is linear, else a stand-in around them."""
        refuse_pieces(self.model)
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

    def tried(self, people: int, total: int) -> int:
        """On how many of a part's people, of so many in total, lambda is chosen; it may be more than there are."""
        if isinstance(self.model, LinearModel):
            return min(people, max(LEAST, int(SHARE * people)))
        return min(MOST, max(LEAST, int(SHARE * total)))


def find_by_descent(
    descent: Descent, master: Master, lam: float | None, progress: Progress | None = None, parts: Parts | None = None
) -> Array:
    """Where the authors' descent ends for each person (P, d), accepted or not; missing where there is no stand-in.

    With the lambda given, or their choice of it for each part.
    """
    space = Standard.of(descent.model.train)
    problem = StandardProblem.of(master, space)
    parts = parts or Parts.one(len(master.X0))
    models = descent.linear_models(master.X0, space, progress)
    points = np.full(master.X0.shape, np.nan)
    there = np.flatnonzero(np.isfinite(models.b))
    if len(there):
        problem, own = problem.rows(there), models.rows(there)
        weights = choose_lambdas(descent, own, problem, parts.of(there)) if lam is None else np.full(len(there), lam)
        points[there] = points_of(master.of(there), space, descend(own, problem, descent.delta_max, weights))
    if progress is not None:
        progress(len(points), len(points))
    return points


def choose_lambda(descent: Descent, models: Linear, problem: StandardProblem) -> float:
    """The weight of people who are all in one part."""
    return float(choose_lambdas(descent, models, problem, Parts.one(len(problem.z0)))[0])


def choose_lambdas(descent: Descent, models: Linear, problem: StandardProblem, parts: Parts) -> Array:
    """Weights (P,), the same for everybody in a part.

    For linear models the last weight at which the first few people of the part are all accepted, the first at least;
    for stand-ins the first weight at which not all of them are.
    """
    places = np.unique(parts.labels, return_inverse=True)[1]
    counts = np.bincount(places)
    tried = np.array([descent.tried(count, parts.total) for count in counts.tolist()])
    rank = np.empty(len(places), np.intp)
    rank[np.argsort(places, kind="stable")] = np.concatenate([np.arange(count) for count in counts])
    few = np.flatnonzero((rank < tried[places]) & (tried <= counts)[places])
    linear = isinstance(descent.model, LinearModel)
    chosen = np.full(len(counts), next(descent.weights(models)))
    for lam in descent.weights(models.rows(few)) if len(few) else ():
        own = models.rows(few)
        refused = ~(own.score(descend(own, problem.rows(few), descent.delta_max, lam)) > 0)
        open_ = np.isin(np.arange(len(counts)), places[few])
        fails = np.isin(np.arange(len(counts)), places[few[refused]])
        # Weights that outweigh every slope leave people where they are: there is an end.
        chosen[open_ & ~fails if linear else open_] = lam
        few = few[~fails[places[few]]]
        if not len(few):
            break
    return np.asarray(chosen[places])


def descend(models: Linear, problem: StandardProblem, delta_max: float, lam: float | Array) -> Array:
    """Adam on J for each person until it changes by at most the tolerance; where that ends, (P, d).

    ``lam`` is one weight for everybody or one for each person (P,).

    >>> from rocerf.recourse.costs.cost import Norm
    >>> free = np.full((1, 1), np.inf)
    >>> problem = StandardProblem(np.array([[-1.0]]), -free, free, Norm.L2)
    >>> z = descend(Linear(np.array([[2.0]]), np.zeros(1)), problem, 0.1, 0.0)
    >>> bool(2 * z[0, 0] - 0.1 * (abs(z[0, 0]) + 1) > 0)
    True
    """
    on, result, loss = BoxedAdam(problem, STEP_SIZE), problem.start(), np.ones(len(problem.z0))
    weights = np.broadcast_to(np.asarray(lam, dtype=np.float64), loss.shape)
    for _ in range(STEPS):
        worst = models.score(on.z) - delta_max * (np.abs(on.z).sum(axis=1) + 1.0)
        before, loss = loss, LOGISTIC.value(-worst) + weights * on.cost()
        on.step(-LOGISTIC.pull(-worst)[:, None] * (models.w - delta_max * np.sign(on.z)), weights[:, None])
        result[on.people] = on.z
        open_ = np.abs(loss - before) > TOLERANCE
        if not open_.any():
            break
        if not open_.all():
            loss, models, weights = loss[open_], models.rows(open_), weights[open_]
            on.keep(open_)
    return result
