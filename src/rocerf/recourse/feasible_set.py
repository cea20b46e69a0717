"""Where a person may go: a box around each of them in schema space."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from rocerf.data.schema import FeatureSchema

Array = NDArray[np.float64]


@dataclass(frozen=True, eq=False)
class FeasibleSet:
    """Boxes ``lower <= x <= upper`` of shape (P, d), bounds possibly infinite."""

    lower: Array
    upper: Array

    @classmethod
    def around(cls, X0: Array, schema: FeatureSchema | None) -> FeasibleSet:
        """What the schema allows each person; without a schema, everything."""
        if schema is None:
            return cls(np.full(X0.shape, -np.inf), np.full(X0.shape, np.inf))
        return cls(*schema.box(X0))

    @property
    def empty(self) -> NDArray[np.bool_]:
        """People whose own values contradict the rules, shape (P,)."""
        return np.asarray((self.lower > self.upper).any(axis=1))

    def clip(self, X: Array) -> Array:
        """The nearest points in the boxes."""
        return np.clip(X, self.lower, self.upper)
