"""Standardised columns: the space in which the authors' methods take their steps.

``z = (x - mean) / spread`` over the training rows. There a cost is a plain norm of ``z - z0``, and the parameters of a
linear model are those of a model fitted on standardised data, whatever scaling the model itself has.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from rocerf.data.training_set import TrainingSet
from rocerf.models.model import LinearModel, Refittable, ValueAndSlope
from rocerf.promises.plain import Plain
from rocerf.recourse.cost import Norm
from rocerf.recourse.master.master import Master
from rocerf.types import Array


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

    def rows(self, people: NDArray[np.intp] | NDArray[np.bool_]) -> StandardProblem:
        """The problem of these people."""
        return StandardProblem(self.z0[people], self.lower[people], self.upper[people], self.norm)

    def start(self) -> Array:
        """Where people stand, moved into their boxes."""
        return np.clip(self.z0, self.lower, self.upper)

    def cost(self, z: Array) -> Array:
        """Length of the change, (P,)."""
        step = z - self.z0
        return np.asarray(np.abs(step).sum(axis=1) if self.norm is Norm.L1 else np.sqrt((step * step).sum(axis=1)))

    def cost_slope(self, z: Array) -> Array:
        """A subgradient of the length, (P, d): 0 at z0, as torch has it."""
        step = z - self.z0
        if self.norm is Norm.L1:
            return np.sign(step)
        length = np.sqrt((step * step).sum(axis=1))[:, None]
        return np.asarray(step / np.where(length > 0, length, 1.0))


def points_of(master: Master, space: Standard, z: Array) -> Array:
    """Points in the user's units (P, d); a column that did not move is the person's own value to the last digit."""
    moved = master.allowed.clip(space.outwards(z))
    return np.where(z == space.inwards(master.X0), master.X0, moved)


def scores_in(space: Standard, model: Refittable) -> ValueAndSlope:
    """The model's score in force and its slope, as a map of standardised columns (P, d) to (P,) and (P, d).

    Gradient methods ask tens of thousands of times: what a linear model is, is found out once.
    """
    promise = Plain(model)
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


class Adam:
    """Adam (Kingma and Ba) for P people at once, each with a count of steps of their own.

    >>> adam = Adam((1, 2), 0.5)
    >>> adam.move(np.array([[3.0, -0.1]])).round(6).tolist()  # the first step is the sign
    [[0.5, -0.5]]
    """

    FIRST, SECOND, EPSILON = 0.9, 0.999, 1e-8

    def __init__(self, shape: tuple[int, int], step_size: float) -> None:
        self.step_size = step_size
        self.first, self.second = np.zeros(shape), np.zeros(shape)
        self.first_left, self.second_left = np.ones((shape[0], 1)), np.ones((shape[0], 1))

    def move(self, gradient: Array) -> Array:
        """What to take from the iterate (P, d)."""
        self.first *= self.FIRST
        self.first += (1 - self.FIRST) * gradient
        self.second *= self.SECOND
        self.second += (1 - self.SECOND) * gradient * gradient
        self.first_left *= self.FIRST
        self.second_left *= self.SECOND
        size = np.sqrt(self.second / (1 - self.second_left)) + self.EPSILON
        return np.asarray(self.step_size / (1 - self.first_left) * self.first / size)

    def restart(self, people: NDArray[np.bool_]) -> None:
        """Forget the past of these people, a mask (P,)."""
        self.first[people], self.second[people] = 0.0, 0.0
        self.first_left[people], self.second_left[people] = 1.0, 1.0

    def keep(self, people: NDArray[np.bool_]) -> None:
        """Go on with these people only, a mask (P,)."""
        self.first, self.second = self.first[people], self.second[people]
        self.first_left, self.second_left = self.first_left[people], self.second_left[people]
