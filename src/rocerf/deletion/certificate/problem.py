"""One fitted model with the deletions to be covered, and its white coordinates."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from scipy.special import expit

from rocerf.deletion.certificate.curvature_bounds import Array, Mask, slope

#: Smallest accepted ratio of extreme eigenvalues of the (diagonally scaled) Hessian.
WORST_CONDITION = 1e-10


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
    to_white = scale[:, None] * vectors / np.sqrt(values)
    rows = x @ to_white
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
    )


def gradient_factor(problem: Problem, z: Array) -> Array:
    """Return ``omega_i (sigma(z_i) - y_i)`` without cancellation."""
    return np.asarray(problem.weight * problem.sign * expit(problem.sign * z))
