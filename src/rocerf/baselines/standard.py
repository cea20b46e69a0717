"""Standardised columns: the space in which the authors' methods take their steps.

``z = (x - mean) / spread`` over the training rows. There a cost is a plain norm of ``z - z0``, and the parameters of a
linear model are those of a model fitted on standardised data, whatever scaling the model itself has.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np

from rocerf.data.training_set import TrainingSet
from rocerf.errors import UnsupportedModelError
from rocerf.models.model import LinearModel, Refittable, ValueAndSlope
from rocerf.promises.plain import Plain
from rocerf.recourse.costs.cost import Norm, gradient
from rocerf.recourse.costs.norms import NormCost
from rocerf.recourse.master.master import Master
from rocerf.recourse.solvers.adam import Adam
from rocerf.types import Array, Mask, Places


@dataclass(frozen=True, eq=False)
class Standard:
    """The map between schema space and standardised columns; mean and spread have shape (d,).

    >>> train = TrainingSet([[1.0], [3.0]], [0, 1])
    >>> space = Standard.of(train)
    >>> space.inwards(np.array([[4.0]])).tolist(), space.outwards(np.array([[2.0]])).tolist()
    ([[2.0]], [[4.0]])
    """

    mean: Array
    spread: Array

    @classmethod
    def of(cls, train: TrainingSet) -> Standard:
        """The standardisation of these rows."""
        return cls(np.asarray(train.centre), np.asarray(train.spread))

    def inwards(self, X: Array) -> Array:
        """Standardised columns of points (..., d)."""
        return np.asarray((X - self.mean) / self.spread)

    def outwards(self, Z: Array) -> Array:
        """Points (..., d) of standardised columns."""
        return np.asarray(self.mean + self.spread * Z)

    def linear(self, slopes: Array, constants: Array) -> tuple[Array, Array]:
        """Models ``slopes'x + constants`` in schema space as ``w'z + b``: w (..., d) and b (...)."""
        return slopes * self.spread, constants + slopes @ self.mean


@dataclass(frozen=True, eq=False)
class StandardProblem:
    """A master problem's people in standardised columns: z0, and the box lower, upper, each (P, d)."""

    z0: Array
    lower: Array
    upper: Array
    norm: Norm

    @classmethod
    def of(cls, master: Master, space: Standard) -> StandardProblem:
        """The same people and boxes."""
        bounds = master.allowed
        return cls(space.inwards(master.X0), space.inwards(bounds.lower), space.inwards(bounds.upper), master.cost.norm)

    def rows(self, people: Places | Mask) -> StandardProblem:
        """The problem of these people."""
        return StandardProblem(self.z0[people], self.lower[people], self.upper[people], self.norm)

    def start(self) -> Array:
        """Where people stand, moved into their boxes."""
        return np.clip(self.z0, self.lower, self.upper)

    @property
    def price(self) -> NormCost:
        """The length of a change."""
        return NormCost(Norm.L2 if self.norm is Norm.L2 else Norm.L1, 1.0)


class BoxedAdam:
    """Adam for the people of a problem, each kept in their box: ``z`` (Q, d) of those ``people`` (Q,) still open."""

    def __init__(self, problem: StandardProblem, step_size: float) -> None:
        self.problem, self.z, self.people = problem, problem.start(), np.arange(len(problem.z0))
        self.adam = Adam(self.z, step_size)

    def cost(self) -> Array:
        """Length of the change, (Q,)."""
        return self.problem.price.of(self.z, self.problem.z0)

    def step(self, pull: Array, lam: Array | float) -> None:
        """One step down ``pull`` (Q, d), the slope of a loss, plus lam times the slope of the length."""
        problem = self.problem
        slope = gradient(problem.price, self.z - problem.z0, problem.z0)
        self.z = np.clip(self.z - self.adam.move(pull + lam * slope), problem.lower, problem.upper)

    def keep(self, open_: Mask) -> None:
        """Go on with these people only, a mask (Q,)."""
        self.people, self.z, self.problem = self.people[open_], self.z[open_], self.problem.rows(open_)
        self.adam.keep(open_)


def points_of(master: Master, space: Standard, z: Array) -> Array:
    """Points in the user's units (P, d); a column that did not move is the person's own value to the last digit."""
    moved = master.allowed.clip(space.outwards(z))
    return np.where(z == space.inwards(master.X0), master.X0, moved)


def refuse_pieces(model: Any) -> None:
    """These methods move in the columns themselves, where a model of bins or curves has no slope."""
    if isinstance(model, LinearModel) and model.lift is not None:
        raise UnsupportedModelError(
            "Expected a model that is linear in its columns, got one with bins or curves, of which this method has no "
            "slope; compare it by 'scfe' or 'margin' (preset 'corrected'), or leave this method out."
        )


def scores_in(space: Standard, model: Refittable) -> ValueAndSlope:
    """The model's score in force and its slope, as a map of standardised columns (P, d) to (P,) and (P, d).

    Gradient methods ask tens of thousands of times: what a linear model is, is found out once.
    """
    promise = Plain(model)
    refuse_pieces(model)
    if isinstance(model, LinearModel):
        slopes, constants = space.linear(*promise.known_cuts())

        def read_linear(z: Array) -> tuple[Array, Array]:
            # Row by row, not by a matrix product: a person's search must not depend on who else is in the batch.
            scores = (z[:, None, :] * slopes).sum(axis=2) + constants
            lower = scores.argmin(axis=1)
            return scores[np.arange(len(z)), lower], slopes[lower]

        return read_linear

    def read(z: Array) -> tuple[Array, Array]:
        reading = promise.read(space.outwards(z))
        return reading.values, reading.slopes * space.spread

    return read
