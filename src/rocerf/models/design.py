"""The map from schema space (the user's columns and units) to the model's design rows.

Two kinds: each column scaled by itself (:class:`Design`), or any affine map (:class:`AffineDesign`), as the
preprocessing of a pipeline is.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property
from typing import TYPE_CHECKING, Protocol

import numpy as np

from rocerf.types import Array

if TYPE_CHECKING:
    from rocerf.data.training_set import TrainingSet


#: Rows that are scaled as if they were one.
TILED = 16


def frozen_copy(values: Array) -> Array:
    """A copy that nobody can write to: what was proven with these numbers is about these numbers."""
    kept = np.array(values, dtype=np.float64)
    kept.setflags(write=False)
    return kept


class AnyDesign(Protocol):
    """What a linear model needs of its design."""

    @property
    def intercept(self) -> bool:
        """Whether the last entry of a design row is 1."""
        ...

    @property
    def width(self) -> int:
        """Number of parameters p."""
        ...

    def __call__(self, X: Array, out: Array | None = None) -> Array:
        """Design rows of shape (m, p) for points of shape (m, d), written to ``out`` if that is given."""
        ...

    def in_schema_space(self, coefficients: Array) -> tuple[Array, Array]:
        """Slopes (..., d) and constants (...) of models with parameters (..., p)."""
        ...


@dataclass(frozen=True, eq=False)
class Design:
    """``x~ = [(x - centre) / scale, 1]``, the 1 only with an intercept.

    Scaling belongs to the model and is frozen: it is not estimated again when rows are deleted. ``standardises`` says
    that it was made from rows, and is to be made again from others when some are forgotten.

    >>> design = Design(centre=np.array([10.0]), scale=np.array([2.0]), intercept=True)
    >>> design(np.array([[14.0]])).tolist()
    [[2.0, 1.0]]
    >>> slopes, constants = design.in_schema_space(np.array([3.0, 1.0]))  # 3 (x - 10)/2 + 1
    >>> slopes.tolist(), float(constants)
    ([1.5], -14.0)
    """

    centre: Array
    scale: Array
    intercept: bool
    standardises: bool = False

    def __post_init__(self) -> None:
        object.__setattr__(self, "centre", frozen_copy(self.centre))
        object.__setattr__(self, "scale", frozen_copy(self.scale))

    @classmethod
    def identity(cls, d: int, *, intercept: bool) -> Design:
        """No scaling: the design row is the row as it is."""
        return cls(np.zeros(d), np.ones(d), intercept)

    @classmethod
    def for_rows(cls, train: TrainingSet, *, scale: bool, intercept: bool) -> Design:
        """Columns of these rows in units of their own spread, about their own mean; or as they are."""
        if not scale:
            return cls.identity(train.X.shape[1], intercept=intercept)
        return cls(np.array(train.centre), np.array(train.spread), intercept, standardises=True)

    def made_anew(self, train: TrainingSet) -> Design:
        """The scaling that these rows call for, with nothing of the present one; none where none was asked for."""
        return Design.for_rows(train, scale=self.standardises, intercept=self.intercept)

    @property
    def width(self) -> int:
        """Number of parameters p: d, plus one with an intercept."""
        return len(self.scale) + int(self.intercept)

    def __call__(self, X: Array, out: Array | None = None) -> Array:
        """Design rows of shape (m, p) for points of shape (m, d), written to ``out`` if that is given."""
        d, m = len(self.scale), len(X)
        rows = np.empty((m, self.width)) if out is None else out
        rows[:, :d] = X
        rows[:, d:] = 1.0  # which (1 - 0) / 1 is
        # Several rows as one: NumPy spends as long on beginning a short row as on its numbers.
        tiled = m - m % TILED if rows.flags.c_contiguous else 0
        centre, scale = self._tiles
        if tiled:
            long = rows[:tiled].reshape(-1, len(centre))
            np.subtract(long, centre, out=long)
            np.divide(long, scale, out=long)
        rest = rows[tiled:]
        rest -= centre[: self.width]
        rest /= scale[: self.width]
        return rows

    @cached_property
    def _tiles(self) -> tuple[Array, Array]:
        """Centre and scale of a design row, side by side as often as rows are taken for one."""
        free = int(self.intercept)
        centre, scale = np.append(self.centre, np.zeros(free)), np.append(self.scale, np.ones(free))
        return np.tile(centre, TILED), np.tile(scale, TILED)

    def in_schema_space(self, coefficients: Array) -> tuple[Array, Array]:
        """Slopes (..., d) and constants (...) such that ``x~'theta = slopes'x + constant``.

        ``coefficients`` has shape (..., p).
        """
        d = len(self.scale)
        slopes = coefficients[..., :d] / self.scale
        constants = -(slopes @ self.centre)
        if self.intercept:
            constants = constants + coefficients[..., d]
        return slopes, constants


@dataclass(frozen=True, eq=False)
class AffineDesign:
    """``x~ = [A x + b, 1]``, the 1 only with an intercept; ``matrix`` is A (q, d) and ``shift`` is b (q,).

    >>> design = AffineDesign(np.array([[1.0, 2.0]]), np.array([10.0]), intercept=True)
    >>> design(np.array([[3.0, 4.0]])).tolist()
    [[21.0, 1.0]]
    >>> slopes, constants = design.in_schema_space(np.array([2.0, 1.0]))  # 2 (x1 + 2 x2 + 10) + 1
    >>> slopes.tolist(), float(constants)
    ([2.0, 4.0], 21.0)
    """

    matrix: Array
    shift: Array
    intercept: bool

    def __post_init__(self) -> None:
        object.__setattr__(self, "matrix", frozen_copy(self.matrix))
        object.__setattr__(self, "shift", frozen_copy(self.shift))

    @property
    def width(self) -> int:
        """Number of parameters p: q, plus one with an intercept."""
        return len(self.shift) + int(self.intercept)

    def __call__(self, X: Array, out: Array | None = None) -> Array:
        """Design rows of shape (m, p) for points of shape (m, d), written to ``out`` if that is given."""
        q = len(self.shift)
        rows = np.empty((len(X), self.width)) if out is None else out
        np.matmul(X, self.matrix.T, out=rows[:, :q])
        rows[:, :q] += self.shift
        if self.intercept:
            rows[:, q] = 1.0
        return rows

    def in_schema_space(self, coefficients: Array) -> tuple[Array, Array]:
        """Slopes (..., d) and constants (...) such that ``x~'theta = slopes'x + constant``.

        ``coefficients`` has shape (..., p).
        """
        q = len(self.shift)
        slopes = coefficients[..., :q] @ self.matrix
        constants = coefficients[..., :q] @ self.shift
        if self.intercept:
            constants = constants + coefficients[..., q]
        return slopes, constants


def with_ones(images: Array, design: AnyDesign) -> Array:
    """Design rows (m, p) out of what preprocessing made of rows, (m, q): with the 1 of the intercept, if there is one.

    >>> with_ones(np.array([[2.0]]), Design.identity(1, intercept=True)).tolist()
    [[2.0, 1.0]]
    """
    return np.column_stack([images, np.ones(len(images))]) if design.intercept else np.asarray(images)
