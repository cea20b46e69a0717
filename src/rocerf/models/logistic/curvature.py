"""A symmetric positive definite Hessian, factorised once."""

from __future__ import annotations

import numpy as np
from scipy.linalg import solve_triangular

from rocerf.errors import SingularCurvatureError
from rocerf.types import Array, Mask

#: Smallest squared pivot of the unit-diagonal Hessian that still counts as invertible.
SINGULAR_PIVOT = 1e-13


class Curvature:
    """The Hessian ``H`` of a total (not mean) training loss, with its Cholesky factor.

    ``H`` is brought to unit diagonal before it is factorised, so that columns in very different units do not cost
    accuracy. Raises :class:`SingularCurvatureError` where ``H`` is not positive definite within :data:`SINGULAR_PIVOT`.
    Parameters that are ``fixed`` (p,) do not move: they count as infinitely curved.

    >>> Curvature(np.array([[4.0, 0.0], [0.0, 1.0]])).solve(np.array([8.0, 3.0])).tolist()
    [2.0, 3.0]
    """

    def __init__(self, hessian: Array, fixed: Mask | None = None) -> None:
        fixed = np.zeros(len(hessian), dtype=bool) if fixed is None else fixed
        diagonal = np.where(fixed, 1.0, np.diagonal(hessian))
        if not np.isfinite(hessian).all() or (diagonal <= 0).any():
            raise _singular(hessian.shape[0], 0.0)
        self.hessian = hessian
        self._unit = np.where(fixed, 0.0, 1.0 / np.sqrt(diagonal))
        try:
            self._lower = np.linalg.cholesky(hessian * np.outer(self._unit, self._unit) + np.diag(1.0 * fixed))
        except np.linalg.LinAlgError:
            raise _singular(hessian.shape[0], 0.0) from None
        pivot = float(np.diagonal(self._lower).min() ** 2)
        if pivot < SINGULAR_PIVOT:
            raise _singular(hessian.shape[0], pivot)

    @property
    def width(self) -> int:
        """Number of parameters p."""
        return len(self.hessian)

    def whiten(self, vectors: Array) -> Array:
        """``W v`` for each row v, where ``W'W = H^-1``: so ``|W v|`` is the length in the H^-1 norm.

        ``vectors`` has shape (m, p), as has the result.
        """
        return np.asarray(solve_triangular(self._lower, (vectors * self._unit).T, lower=True, check_finite=False).T)

    def unwhiten(self, vectors: Array) -> Array:
        """``W^-1 v`` for each row v (m, p): what :meth:`whiten` was given."""
        return np.asarray(vectors @ self._lower.T / self._unit)

    def covectors(self, vectors: Array) -> Array:
        """For each row v (m, p) the one whose products with whitened vectors are those of v with the vectors."""
        return np.asarray(vectors / self._unit @ self._lower)

    def solve(self, vectors: Array) -> Array:
        """``H^-1 v`` for one vector of shape (p,) or for each row of an array of shape (m, p)."""
        rows = np.atleast_2d(vectors)
        half = self.whiten(rows)
        full = solve_triangular(self._lower, half.T, lower=True, trans="T", check_finite=False).T * self._unit
        return np.asarray(full.reshape(vectors.shape))


def _singular(p: int, pivot: float) -> SingularCurvatureError:
    return SingularCurvatureError(
        f"Expected an invertible {p} x {p} Hessian, got a singular one (smallest relative pivot {pivot:.1e}): "
        "the columns are linearly dependent or some never vary, and the penalty does not make up for it; "
        "use a finite C (for example C=1), or drop redundant columns."
    )
