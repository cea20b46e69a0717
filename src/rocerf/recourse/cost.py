"""What a change costs a person.

A change of a column is divided by that column's scale, its standard deviation over the training
rows, before a norm is taken; on standardised data this is the paper's cost.
"""

from __future__ import annotations

from dataclasses import dataclass
from enum import StrEnum

import numpy as np
from numpy.typing import NDArray

from rocerf.errors import OptionError

Array = NDArray[np.float64]


class Norm(StrEnum):
    """The norms a change can be measured in."""

    L2 = "l2"
    L1 = "l1"


@dataclass(frozen=True, eq=False)
class Cost:
    """A norm over columns measured in units of ``scale`` (d,).

    >>> Cost(Norm.L2, np.array([10.0, 1.0])).of(np.array([[30.0, 4.0]])).tolist()
    [5.0]
    """

    norm: Norm
    scale: Array

    @classmethod
    def named(cls, name: str, scale: Array) -> Cost:
        """The cost called "l2" or "l1"."""
        try:
            return cls(Norm(name), scale)
        except ValueError:
            raise OptionError(f"Expected cost to be one of {', '.join(Norm)}, got {name!r}.") from None

    def of(self, changes: Array) -> Array:
        """Cost of each change, (P, d) -> (P,)."""
        scaled = changes / self.scale
        if self.norm is Norm.L2:
            return np.asarray(np.sqrt((scaled**2).sum(axis=1)))
        return np.asarray(np.abs(scaled).sum(axis=1))
