"""What one pass over the rows tells of many models."""

from __future__ import annotations

from dataclasses import dataclass
from typing import NamedTuple

import numpy as np

from rocerf.deletion.hessians import Weights
from rocerf.models.loss import Loss
from rocerf.types import Array, Places

#: Models with parameters beyond this are lost.
LOST = 1e12


class Look(NamedTuple):
    """Gradients (M, p) and Hessians (as kept) of M models, and how all rows pull on them (M, n), without weights."""

    gradients: Array
    hessians: Array
    pulls: Array

    def of(self, models: Places) -> Look:
        """What was seen of these models."""
        return self if len(models) == len(self.gradients) else type(self)(*(seen[models] for seen in self))


@dataclass(frozen=True, eq=False)
class RowCurvatures(Weights):
    """The weights of rows in Hessians by their pulls (M, n) on models; their own weights (n,), where they have any."""

    loss: Loss
    weights: Array | None
    pulls: Array

    def of(self, rows: slice | Places) -> Array:
        """As :meth:`Weights.of`."""
        curvatures = self.loss.curvature_of_pull(self.pulls[:, rows])
        if self.weights is not None:
            curvatures *= self.weights[rows]
        return curvatures

    def of_each(self, rows: Places) -> Array:
        """As :meth:`Weights.of_each`."""
        curvatures = self.loss.curvature_of_pull(np.take_along_axis(self.pulls, rows, axis=1))
        return curvatures if self.weights is None else self.weights[rows] * curvatures


def decrements(moves: Array, gradients: Array) -> Array:
    """Newton's decrements (M,); far out, rounding leaves descents below zero, which are no sign of having arrived."""
    with np.errstate(over="ignore", invalid="ignore"):
        return np.asarray(np.sqrt(np.abs(np.einsum("ij,ij->i", moves, gradients))))


def unless_lost(thetas: Array) -> Array:
    """These parameters, but NaN for models that are so far out that no step leads back."""
    largest = np.abs(thetas).max(axis=-1, keepdims=True)
    return np.where(largest <= LOST, thetas, np.nan)
