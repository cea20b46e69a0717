"""The harms of all rows for many models, as a matrix: what :class:`~rocerf.deletion.harms.HarmsAtHand` holds."""

from __future__ import annotations

import operator
from dataclasses import dataclass
from typing import Any

import numpy as np

from rocerf.deletion.deletions import Deletions
from rocerf.deletion.squares import CHUNK
from rocerf.models.loss import Loss
from rocerf.passes import over_rows
from rocerf.types import Array

#: A leverage above this counts as this much.
MOST = 0.999


@dataclass(frozen=True, eq=False)
class Levers:
    """Leverages of rows, from their lengths (n,), or of each model (M, n), and weights (n,)."""

    loss: Loss
    lengths: Array
    weights: Array

    def of(self, pulls: Array, rows: slice) -> Array:
        """Of neighbouring rows by their pulls (M, m), in the precision of these."""
        known = self.lengths[..., rows] * self.weights[rows]
        return np.asarray(self.loss.curvature_of_pull(pulls) * known.astype(pulls.dtype, copy=False))

    def at(self, pulls: Array, models: Any, rows: Any) -> Array:
        """Of rows (m,), each of its own model (m,), by their pulls (m,)."""
        own = self.lengths[rows] if self.lengths.ndim == 1 else self.lengths[models, rows]
        return np.asarray(self.loss.curvature_of_pull(pulls) * (own * self.weights[rows]))


def row_harms(
    signed: Array,
    toward: Array,
    pulls: Array,
    weights: Array | None,
    shrunk: Array | None,
    levers: Levers | None,
    deletions: Deletions,
) -> Array:
    """``toward'x_i`` times the pull and weight of row i, plus what the penalty adds; (M, n), in the pulls' precision.

    With ``levers`` a row still in is divided by 1 - leverage, a row already out by 1 + leverage. ``signed`` (n, p),
    ``toward`` (M, p), ``pulls`` (M, n) or of one model for all (1, n), ``shrunk`` (M, 1).
    """

    def partial(rows: slice) -> list[Array]:
        own = np.matmul(toward, signed[rows].T)
        own *= pulls[:, rows]
        if weights is not None:
            own *= weights[rows]
        if shrunk is not None:
            own += shrunk
        if levers is not None:
            kept_in = levers.of(pulls[:, rows], rows)
            np.minimum(kept_in, MOST, out=kept_in)
            own /= np.subtract(1.0, kept_in, out=kept_in)
        return [own]

    harms = np.concatenate(over_rows(partial, operator.add, len(signed), CHUNK), axis=1)
    if levers is not None:
        model, place = np.nonzero(deletions.amounts > 0)
        gone = deletions.rows[model, place]
        first = np.unique(model * len(signed) + gone, return_index=True)[1]  # a row may be named twice
        model, gone = model[first], gone[first]
        out = levers.at(pulls[model, gone], model, gone)
        harms[model, gone] *= (1.0 - np.minimum(out, MOST)) / (1.0 + out)
    return harms
