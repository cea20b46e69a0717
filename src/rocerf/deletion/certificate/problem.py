"""One fitted model with the deletions to be covered, and its white coordinates."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from rocerf.deletion.certificate.bound_pieces import Rows
from rocerf.deletion.certificate.matrices import gram, lengths
from rocerf.models.loss import LARGEST_MOVE, LOGISTIC, Loss
from rocerf.types import Array, Places

Mask = NDArray[np.bool_]

#: Smallest accepted ratio of extreme eigenvalues of the (diagonally scaled) Hessian.
WORST_CONDITION = 1e-10
#: Largest accepted distance of T'HT from the identity; what is left of it enters the bounds.
WORST_WHITENING = 1e-8
_REFINEMENTS = 3
_WHITE_ENOUGH = 1e-13  # times the number of columns: what is left is rounding, not worth another refinement


@dataclass(frozen=True)
class Problem:
    """One fitted model and the deletions to be covered: at most ``k`` of the ``deletable`` rows."""

    design: Array  # (n, p), column of ones included
    sign: Array  # (n,), 1 - 2 y
    weight: Array  # (n,), 0 for rows that are already gone
    theta: Array  # (p,)
    penalty: Array  # (p,), diagonal of Lambda
    row_penalty: Array  # (p,), diagonal of Q: what one deleted row takes from Lambda
    k: int
    deletable: Mask  # (n,), bool
    loss: Loss = LOGISTIC

    @property
    def rows(self) -> Rows:
        """What the pieces of a bound need of it."""
        return Rows(self.design, self.sign)

    def nearest(self, count: int) -> Array:
        """The so many design rows nearest to the decision boundary, at which bounds are compared; (count, p)."""
        return self.design[np.argsort(np.abs(self.design @ self.theta))[:count]]

    def value(self, theta: Array) -> float:
        """The objective."""
        loss = self.weight @ self.loss.value(self.sign * (self.design @ theta))
        return float(loss + self.penalty @ (theta * theta) / 2)

    def residual(self, z: Array) -> Array:
        """``omega_i (sigma(z_i) - y_i)`` without cancellation, for scores (n,) or (m, n)."""
        return self.weight * self.loss.residual(z, self.sign)

    def curvature(self, z: Array) -> Array:
        """``omega_i sigma'(z_i)``."""
        return self.weight * self.loss.curvature(z)

    def gradient(self, theta: Array, z: Array) -> Array:
        """The gradient of the objective at theta, where the scores are z; (p,)."""
        return self.design.T @ self.residual(z) + self.penalty * theta

    def hessian(self, z: Array) -> Array:
        """The Hessian of the objective where the scores are z; (p, p)."""
        return gram(self.design, self.curvature(z)) + np.diag(self.penalty)


@dataclass(frozen=True)
class White:
    """A problem in coordinates where the Hessian at theta is the identity."""

    problem: Problem
    to_white: Array  # T, (p, p): white = x @ T
    rows: Array  # (n, p)
    norms: Array  # (n,), |H^{-1/2} x_i|
    z: Array  # (n,)
    slope: Array  # (n,), omega_i sigma'(z_i)
    gradient: Array  # g0, white
    pull: Array  # Q theta, white
    penalty: Array  # Lambda, white, (p, p)
    row_penalty: Array  # Q, white, (p, p)
    rounding: Array  # (n,), bound of what rounding did to each white row, in norm
    error: float  # bound of |T'HT - I|, rounding of the white rows included

    @property
    def live(self) -> Mask:
        """Rows whose move matters: present and not all zeros."""
        return (self.norms > 0) & (self.problem.weight > 0)

    def allows(self, box: Array) -> bool:
        """Whether no live row moves by more than LARGEST_MOVE in this box; False also where a bound is no number."""
        return bool((np.abs(box).max(axis=0) <= LARGEST_MOVE)[self.live].all())

    def residual_bound(self, down: Array, up: Array) -> Array:
        """Bounds of ``omega_i |rho_i|`` for all moves in the box, 0 where a row cannot be deleted; (n,)."""
        problem = self.problem
        bound = problem.weight * problem.loss.residual_bound(self.z, problem.sign, down, up)
        return np.where(problem.deletable, bound, 0.0)

    def margin(self, curvature: Array, rows: Places | slice = slice(None)) -> float:
        """What rounding of the white rows may have done to ``sum_i curvature_i x_i x_i'`` over these rows, in norm."""
        size, off = (float(curvature @ part[rows] ** 2) for part in (self.norms, self.rounding))
        return 3 * float(np.sqrt(size * off))


def whiten(problem: Problem) -> White | None:
    """Express a problem in white coordinates; None if its Hessian is not safely positive."""
    x, theta = problem.design, problem.theta
    z = x @ theta
    hessian = problem.hessian(z)
    diagonal = np.diag(hessian)
    if not np.isfinite(hessian).all() or (diagonal <= 0).any():
        return None
    scale = 1 / np.sqrt(diagonal)
    values, vectors = np.linalg.eigh(hessian * scale[:, None] * scale)
    if values[0] <= WORST_CONDITION * values[-1]:
        return None
    curvature = problem.curvature(z)
    refined = _refined(problem, curvature, scale[:, None] * vectors / np.sqrt(values))
    if refined is None:
        return None
    to_white, rows, rounding, error = refined
    return White(
        problem=problem,
        to_white=to_white,
        rows=rows,
        norms=lengths(rows),
        z=z,
        slope=curvature,
        gradient=to_white.T @ problem.gradient(theta, z),
        pull=to_white.T @ (problem.row_penalty * theta),
        penalty=(to_white.T * problem.penalty) @ to_white,
        row_penalty=(to_white.T * problem.row_penalty) @ to_white,
        rounding=rounding,
        error=error,
    )


def _refined(problem: Problem, curvature: Array, to_white: Array) -> tuple[Array, Array, Array, float] | None:
    """Turn a rough T into one with ``T'HT = I`` as nearly as doubles allow; T, white rows, rounding and what is left.

    In nearly white coordinates the Hessian is summed almost without cancellation, so its Cholesky factor corrects T.
    What is left is measured, and what rounding may have hidden from the measurement is added.
    """
    x, p = problem.design, problem.design.shape[1]
    best: tuple[Array, Array, Array, float] | None = None
    for _ in range(_REFINEMENTS):
        rows = x @ to_white
        found = gram(rows, curvature) + (to_white.T * problem.penalty) @ to_white
        if not np.isfinite(found).all():
            return None
        rounding = (p + 4) * np.finfo(float).eps * lengths(np.abs(x) @ np.abs(to_white))
        hidden = float(np.sqrt(curvature @ rounding**2))
        left = float(np.linalg.norm(found - np.eye(p), 2))
        error = left + 3 * hidden + 8 * np.sqrt(len(x)) * p * np.finfo(float).eps
        if best is None or error < best[3]:
            best = (to_white, rows, rounding, error)
        if left <= _WHITE_ENOUGH * p:
            break
        try:
            to_white = np.linalg.solve(np.linalg.cholesky(found), to_white.T).T
        except np.linalg.LinAlgError:
            break
    return best if best is not None and best[3] <= WORST_WHITENING else None
