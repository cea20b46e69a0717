"""What solvers ask of a cost, whatever its class.

A cost is put together from what the move in each column adds. Solvers work in *steps* ``u = (x - x0) / scale``, in
which the person stands at 0. :class:`Norm` says how the columns are put together, and so which program finds the
cheapest point; the search asks for :meth:`Cost.parts` only, the penalty method for :meth:`Cost.slopes` too.
"""

from __future__ import annotations

from enum import StrEnum
from typing import Any, Protocol, runtime_checkable

import numpy as np

from rocerf.types import Array

#: A column's price as a curve: values in ascending order and the height at each; a move costs the difference in height.
Curve = tuple[Array, Array]


class Norm(StrEnum):
    """How the parts of the columns are put together, and what they are."""

    L2 = "l2"  # the root of the sum; the parts are the squares of the steps
    L1 = "l1"  # the sum; the parts are prices of a unit up and down, or follow a curve
    CONVEX = "convex"  # the sum; the parts are convex and known by their values and slopes alone

    def total(self, parts: Any) -> Any:
        """The cost out of its parts, (..., d) -> (...)."""
        return parts.sum(axis=-1) ** 0.5 if self is Norm.L2 else parts.sum(axis=-1)

    def untotal(self, cost: Any) -> Any:
        """The sum of the parts out of the cost."""
        return cost * cost if self is Norm.L2 else cost


@runtime_checkable
class Cost(Protocol):
    """What moves cost. Whoever takes this class as base need only give the first three members and ``prices``, or with
    the norm ``CONVEX`` instead ``parts`` and ``slopes``; the others have defaults.
    """

    name: str  #: what the cost is called in results
    norm: Norm  #: how columns are put together
    scale: Any  #: a natural length of a move in each column, shape (d,)

    def parts(self, steps: Any, X0: Any) -> Any:
        """What steps (P, d) from X0 (P, d) add in each column, (P, d): to the cost, for L2 to its square."""
        up, down = self.prices(X0)
        return priced(steps, up * self.scale, down * self.scale)

    def slopes(self, steps: Any, X0: Any) -> Any:
        """Slopes of the parts in the steps, (P, d); 0 where a column has not moved."""
        up, down = self.prices(X0)
        return (np.where(steps > 0, up, 0.0) - np.where(steps < 0, down, 0.0)) * self.scale

    def of(self, X: Array, X0: Array) -> Array:
        """Cost of going from each row of X0 to that of X, (P, d) -> (P,)."""
        return np.asarray(self.norm.total(self.parts((X - X0) / self.scale, X0)))

    def prices(self, X0: Array) -> tuple[Array, Array]:
        """What a unit up and a unit down costs in each column, two arrays (P, d); infinite where nobody may move.

        Exact for the norm L1 in columns without a curve; elsewhere what the first ``scale`` costs.
        """
        ones = np.ones_like(X0)
        return self.parts(ones, X0) / self.scale, self.parts(-ones, X0) / self.scale

    def curve(self, column: int) -> Curve | None:
        """The column's curve, where its price is not the same everywhere."""
        return None

    def relaxed(self) -> Cost:
        """A norm in the same scales, near enough to choose margins and to measure distances with."""
        from rocerf.recourse.costs.norms import NormCost

        return NormCost(Norm.L1, self.scale)


def priced(steps: Array, up: Array, down: Array) -> Array:
    """What steps cost at these prices a step, elementwise; a price that nobody pays may be infinite."""
    return np.asarray(np.where(steps > 0, up, 0.0) * steps - np.where(steps < 0, down, 0.0) * steps)


def gradient(cost: Cost, steps: Any, X0: Any) -> Any:
    """A subgradient of the cost in the steps, (P, d): 0 where nothing has moved."""
    slopes = cost.slopes(steps, X0)
    if cost.norm is not Norm.L2:
        return slopes
    length = cost.norm.total(cost.parts(steps, X0))[:, None]
    return slopes / (2.0 * (length + (length == 0)))
