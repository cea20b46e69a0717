"""Rows in single precision, seen from the full model: what walks over sets of rows choose by.

A walk needs models, harms and scores to a few parts in a million of what a deletion changes; only what it ends at is
retrained in double precision. So margins, pulls and gradients are taken as *differences* from the full model's, in
coordinates in which its Hessian is the unit matrix. Differences are small and nothing cancels: single precision errs by
about a ten-millionth of the change, whatever units the columns have, and takes half the time.
"""

from __future__ import annotations

from typing import Any, TypeAlias

import numpy as np
from numpy.typing import NDArray

from rocerf.models.logistic.curvature import Curvature
from rocerf.models.loss import Loss
from rocerf.passes import added, over_rows
from rocerf.types import Array

#: Arrays of single precision, which go where those of double precision do.
Single: TypeAlias = NDArray[Any]


class RoughRows:
    """Signed rows ``e_i x_i`` (n, p) with weights (n,) or none, about the full model ``theta`` (p,)."""

    def __init__(self, signed: Array, weights: Array | None, theta: Array, curvature: Curvature, loss: Loss) -> None:
        self._theta, self._curvature, self._loss = theta, curvature, loss
        margins = signed @ theta
        pulls = loss.pull(margins)
        self._gradient = (pulls if weights is None else weights * pulls) @ signed
        self.rows = _single(curvature.whiten(signed))
        self.weights = None if weights is None else _single(weights)
        self._margins = _single(margins)
        # Of the rounded margins, so that what rounding does to them cancels in differences.
        self._pulls: Single = np.asarray(loss.quick_pull(self._margins.copy()))

    def along(self, vectors: Array) -> Single:
        """Vectors (M, p) whose products with rows are asked for, as they are multiplied with :attr:`rows`."""
        return _single(self._curvature.covectors(vectors))

    def look(self, thetas: Array, chunk: int) -> tuple[Array, Single]:
        """One pass at parameters (M, p): weighted sums of pulling rows (M, p), and how all rows pull (M, n)."""
        moved = self.along(thetas - self._theta)

        def partial(rows: slice) -> tuple[Array, list[Single]]:
            x = self.rows[rows]
            margins = moved @ x.T
            margins += self._margins[rows]
            own = self._loss.quick_pull(margins)
            changed = own - self._pulls[rows]
            if self.weights is not None:
                changed *= self.weights[rows]
            return np.asarray(changed @ x, np.float64), [own]

        with np.errstate(over="ignore", invalid="ignore"):  # models that are lost
            sums, pulls = over_rows(partial, added, len(self.rows), chunk)
        return self._gradient + self._curvature.unwhiten(sums), np.concatenate(pulls, axis=1)


def _single(values: Array) -> Single:
    with np.errstate(over="ignore", invalid="ignore"):
        return np.ascontiguousarray(values, np.float32)
