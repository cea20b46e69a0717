"""Norms of the change, each column in units of its own: ``l2``, ``l1`` and ``mad``."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from rocerf.recourse.costs.cost import Cost, Norm, priced
from rocerf.types import Array

#: Columns of a one-hot group whose reference category was left out, and what a change of category costs.
OpenGroup = tuple[tuple[int, ...], float]


@dataclass(frozen=True, eq=False)
class NormCost(Cost):
    """A norm over columns measured in units of ``scale`` (d,).

    With ``open_groups``, for L1, a change of category has one price in groups without a column for their reference.

    >>> NormCost(Norm.L2, np.array([10.0, 1.0])).of(np.array([[30.0, 4.0]]), np.zeros((1, 2))).tolist()
    [5.0]
    """

    norm: Norm
    scale: Any
    name: str = ""
    open_groups: tuple[OpenGroup, ...] = ()

    def __post_init__(self) -> None:
        object.__setattr__(self, "name", self.name or str(self.norm))

    def parts(self, steps: Any, X0: Any) -> Any:
        """Squares or lengths; arrays of NumPy or torch."""
        if self.open_groups:
            up, down = self.prices(X0)
            return priced(steps, up * self.scale, down * self.scale)
        return steps * steps if self.norm is Norm.L2 else abs(steps)

    def slopes(self, steps: Any, X0: Any) -> Any:
        """Those of the parts; arrays of NumPy or torch."""
        if self.open_groups:
            return super().slopes(steps, X0)
        return 2.0 * steps if self.norm is Norm.L2 else 1.0 * (steps > 0) - 1.0 * (steps < 0)

    def prices(self, X0: Array) -> tuple[Array, Array]:
        """The same both ways, but for the columns of open groups."""
        prices = np.broadcast_to(1.0 / self.scale, X0.shape)
        return with_open_groups(prices, prices, X0, self.open_groups)

    def relaxed(self) -> NormCost:
        """Itself."""
        return self


def with_open_groups(up: Array, down: Array, X0: Array, groups: Sequence[OpenGroup]) -> tuple[Array, Array]:
    """Prices (P, d) where a reference category has no column: who has a category pays to leave it, others to enter one.

    Half a price for each of two columns would make the way to the reference, on which one column moves, half as dear.
    """
    up, down = up.copy(), down.copy()
    for places, price in groups:
        own = X0[:, list(places)] == 1
        up[:, list(places)] = np.where(own.any(axis=1)[:, None], 0.0, price)
        down[:, list(places)] = np.where(own, price, 0.0)
    return up, down
