"""Retraining, and all single deletions of one model at once, each with a proven error."""

from __future__ import annotations

from dataclasses import replace

import numpy as np

from rocerf.deletion.certificate.bound_pieces import CutsPiece
from rocerf.deletion.certificate.matrices import gram, largest_eigenvalue, length, lengths
from rocerf.deletion.certificate.problem import Problem, White, whiten
from rocerf.passes import chunks
from rocerf.types import Array, Places

_GRADIENT_GOAL = 1e-11  # of a full retraining, in white coordinates
_BLOCK_GOAL = 1e-9  # of the models retrained in blocks; their error bound follows from it
_BLOCK_ENTRIES = 200_000


def retrain(problem: Problem, start: Array, steps: int = 60) -> Array | None:
    """Minimise the problem's objective by damped Newton steps; None if it does not converge."""
    theta, value = start.copy(), problem.value(start)
    for _ in range(steps):
        z = problem.design @ theta
        gradient = problem.gradient(theta, z)
        try:
            step = np.linalg.solve(problem.hessian(z), gradient)
        except np.linalg.LinAlgError:
            return None
        decrement = float(gradient @ step)
        if not np.isfinite(decrement) or np.abs(theta).max(initial=0) > 1e6:
            return None
        if decrement <= _GRADIENT_GOAL**2:
            return theta
        length = 1.0
        while length > 1e-8:
            trial = problem.value(theta - length * step)
            if trial <= value - 1e-4 * length * decrement or decrement < 1e-10 * (1 + abs(value)):
                break
            length /= 2
        theta = theta - length * step
        value = problem.value(theta)
    return theta if decrement <= 1e-14 else None


def delete_row(problem: Problem, row: int) -> Problem | None:
    """Return the problem after one row has gone for good: retrained, one deletion fewer."""
    weight, deletable = problem.weight.copy(), problem.deletable.copy()
    weight[row], deletable[row] = 0.0, False
    penalty = problem.penalty - problem.row_penalty
    left = replace(problem, weight=weight, deletable=deletable, penalty=penalty, k=problem.k - 1)
    theta = retrain(left, problem.theta)
    return None if theta is None else replace(left, theta=theta)


def error_radius(white: White) -> float | None:
    """Bound ``|H^{1/2}(optimum - theta)|`` from the gradient at theta; None if it is too large.

    On the ball of radius r the Hessian is at least ``e^{-R r} H`` with ``R = max |H^{-1/2} x_i|``, so the gradient
    points outwards on its surface once ``r e^{-R r} > |g|_{H^{-1}}``: the optimum exists and is inside. ``r = 2 |g|``
    does when ``R r <= 1/2``.
    """
    radius = 2 * length(white.gradient) + 1e-13
    reach = float(white.norms[white.live].max(initial=0.0))
    return radius if radius * reach <= 0.5 else None


def rows_to_delete(problem: Problem) -> Places:
    """The rows whose single deletions differ: those with weight, and one without if rows share the penalty.

    A row of weight 0 has no loss, but under the mean penalty its deletion still takes Q from the penalty.
    """
    if problem.k == 0:
        return np.empty(0, dtype=np.intp)
    weightless = np.flatnonzero(problem.deletable & (problem.weight == 0))
    present = np.flatnonzero(problem.deletable & (problem.weight > 0))
    return np.concatenate([present, weightless[:1]]) if problem.row_penalty.any() else present


def single_deletions(white: White) -> CutsPiece | None:
    """Retrain the model and every model with one deletable row less; None if one has no optimum.

    Newton steps with the Hessian of the full model, the deleted row taken out by a rank-one formula, full gradient in
    every step. Where that stalls, a full retraining. The error of each is bounded as in :func:`error_radius`, with

        Hessian after deletion at theta + delta  >=  e^{-max|u|} (1 - leverage_j) H - Q.
    """
    problem = white.problem
    own = error_radius(white)
    if own is None:
        return None
    rows = rows_to_delete(problem)
    thetas, errors = [problem.theta[None]], [np.array([own])]
    for part in chunks(len(rows), max(1, _BLOCK_ENTRIES // len(white.z))):
        batch = rows[part]
        moves, error = _newton_block(white, batch)
        theta = problem.theta + moves @ white.to_white.T
        for at in np.flatnonzero(~np.isfinite(error)):
            single = _one_deletion(white, int(batch[at]))
            if single is None:
                return None
            theta[at], error[at] = single
        thetas.append(theta)
        errors.append(error)
    return CutsPiece(np.concatenate(thetas), np.concatenate(errors), white.to_white)


def _newton_block(white: White, batch: Places, steps: int = 14) -> tuple[Array, Array]:
    """Newton with a fixed matrix for a block of single deletions: moves and error radii."""
    problem, rows = white.problem, white.rows
    count, p = len(batch), rows.shape[1]
    moves, gradients = np.zeros((count, p)), np.zeros((count, p))
    largest = np.zeros(count)
    base = white.to_white.T @ (problem.penalty * problem.theta)
    penalty = white.penalty - white.row_penalty
    inverse = np.linalg.inv(np.eye(p) - white.row_penalty)
    out = rows[batch]
    out_inverse = out @ inverse
    left = 1 - white.slope[batch] * np.einsum("ij,ij->i", out, out_inverse)
    factor = np.where(left > 1e-3, white.slope[batch] / np.maximum(left, 1e-3), 0.0)
    todo = np.arange(count)
    for _ in range(steps):
        z = white.z + moves[todo] @ rows.T
        largest[todo] = np.abs((z - white.z)[:, white.live]).max(axis=1, initial=0.0)
        residual = problem.residual(z)
        residual[np.arange(len(todo)), batch[todo]] = 0.0
        gradient = residual @ rows + moves[todo] @ penalty + base - white.pull
        gradients[todo] = gradient
        ongoing = lengths(gradient) > _BLOCK_GOAL
        todo, gradient = todo[ongoing], gradient[ongoing]
        if len(todo) == 0:
            break
        step = gradient @ inverse
        along = np.einsum("ij,ij->i", step, out[todo]) * factor[todo]
        moves[todo] -= step + along[:, None] * out_inverse[todo]
    size = lengths(gradients)
    lost = largest_eigenvalue(white.row_penalty)
    leverage = white.slope[batch] * white.norms[batch] ** 2
    curvature = np.exp(-largest) * (1 - leverage) - lost
    radius = 2 * (size + 1e-13) / np.maximum(curvature, 1e-300)
    reach = float(white.norms[white.live].max(initial=0.0))
    # A step may have been taken after the last gradient: those never count as converged.
    good = (curvature > 1e-3) & (radius * reach <= 0.5) & (size <= _BLOCK_GOAL)
    return moves, np.where(good, radius, np.inf)


def _one_deletion(white: White, row: int) -> tuple[Array, float] | None:
    """Retrain one deletion fully; its error in the norm of the undeleted model."""
    left = delete_row(white.problem, row)
    own = whiten(left) if left is not None else None
    radius = error_radius(own) if own is not None else None
    if left is None or own is None or radius is None:
        return None
    hessian = gram(white.rows, left.curvature(left.design @ left.theta)) + white.penalty - white.row_penalty
    smallest = float(np.linalg.eigvalsh(hessian)[0])
    if smallest <= 1e-9:
        return None
    return left.theta, radius / np.sqrt(smallest) * (1 + 1e-6)
