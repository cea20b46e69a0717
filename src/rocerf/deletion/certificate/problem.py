"""One fitted model with the deletions to be covered, and its white coordinates."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from scipy.special import expit

from rocerf.deletion.certificate.curvature_bounds import Mask, slope
from rocerf.types import Array

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


def whiten(problem: Problem) -> White | None:
    """Express a problem in white coordinates; None if its Hessian is not safely positive."""
    x, theta = problem.design, problem.theta
    z = x @ theta
    curvature = problem.weight * slope(z)
    hessian = (x * curvature[:, None]).T @ x + np.diag(problem.penalty)
    diagonal = np.diag(hessian)
    if not np.isfinite(hessian).all() or (diagonal <= 0).any():
        return None
    scale = 1 / np.sqrt(diagonal)
    values, vectors = np.linalg.eigh(hessian * scale[:, None] * scale)
    if values[0] <= WORST_CONDITION * values[-1]:
        return None
    refined = _refined(problem, curvature, scale[:, None] * vectors / np.sqrt(values))
    if refined is None:
        return None
    to_white, rows, rounding, error = refined
    gradient = x.T @ gradient_factor(problem, z) + problem.penalty * theta
    return White(
        problem=problem,
        to_white=to_white,
        rows=rows,
        norms=np.linalg.norm(rows, axis=1),
        z=z,
        slope=curvature,
        gradient=to_white.T @ gradient,
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
        gram = (rows * curvature[:, None]).T @ rows + (to_white.T * problem.penalty) @ to_white
        if not np.isfinite(gram).all():
            return None
        rounding = (p + 4) * np.finfo(float).eps * np.linalg.norm(np.abs(x) @ np.abs(to_white), axis=1)
        hidden = float(np.sqrt(curvature @ rounding**2))
        left = float(np.linalg.norm(gram - np.eye(p), 2))
        error = left + 3 * hidden + 8 * np.sqrt(len(x)) * p * np.finfo(float).eps
        if best is None or error < best[3]:
            best = (to_white, rows, rounding, error)
        if left <= _WHITE_ENOUGH * p:
            break
        try:
            to_white = np.linalg.solve(np.linalg.cholesky(gram), to_white.T).T
        except np.linalg.LinAlgError:
            break
    return best if best is not None and best[3] <= WORST_WHITENING else None


def gradient_factor(problem: Problem, z: Array) -> Array:
    """Return ``omega_i (sigma(z_i) - y_i)`` without cancellation."""
    return np.asarray(problem.weight * problem.sign * expit(problem.sign * z))
