"""The point nearest to the origin inside half-spaces and a box, for many problems at once.

For each problem: ``min |u|^2 / 2 s.t. normals u >= offsets, lower <= u <= upper``. Its dual,

    min_{lam >= 0}  h(lam) = sum_j psi_j((normals'lam)_j) - offsets'lam,    u = clip(normals'lam, lower, upper),

has as many unknowns as half-spaces (a handful) and a piecewise linear gradient ``normals u - offsets``. A projected
semismooth Newton method with line search solves it; the few problems it leaves open go one by one to an exact method
(Lawson and Hanson's least distance programming).
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from scipy.optimize import nnls

from rocerf.types import Array, Mask

#: Largest violation of a unit-length half-space that counts as satisfied, relative to 1 + |offset|.
FEASIBLE = 1e-10

#: A step is halved up to so many times, so many of them tried at once.
HALVINGS, HALVED_AT_ONCE = 30, 6

#: Problems handled at a time.
BLOCK = 2048


@dataclass(frozen=True, eq=False)
class Projection:
    """Nearest points (P, d), NaN where ``feasible`` (P,) is false: there the constraints contradict each other.

    ``failed`` (P,) marks the problems whose solution was not found although nothing showed that there is none.
    """

    points: Array
    feasible: Mask
    failed: Mask


def project(normals: Array, offsets: Array, lower: Array, upper: Array) -> Projection:
    """Solve P problems with m half-spaces each in d dimensions.

    Parameters
    ----------
    normals : (P, m, d); all-zero rows with offset <= 0 stand for "no half-space".
    offsets : (P, m)
    lower, upper : (P, d), finite.

    Examples
    --------
    >>> one = project(np.array([[[1.0, 1.0]]]), np.array([[2.0]]), np.full((1, 2), -9.0), np.array([[9.0, 0.5]]))
    >>> one.points.round(9).tolist()
    [[1.5, 0.5]]
    """
    points = np.full(lower.shape, np.nan)
    feasible, failed = np.zeros(len(lower), dtype=bool), np.zeros(len(lower), dtype=bool)
    # A half-space is as long as it is inside the box: a column that hardly moves must not decide what counts as met.
    room = np.minimum(np.maximum(np.abs(lower), np.abs(upper)), 1.0)
    length = np.linalg.norm(normals * room[:, None, :], axis=2)
    unit = np.where(length > 0, length, 1.0)
    normals, offsets = normals / unit[:, :, None], offsets / unit
    reach = np.maximum(normals * lower[:, None, :], normals * upper[:, None, :]).sum(axis=2)
    possible = (reach >= offsets - FEASIBLE * (1 + np.abs(offsets))).all(axis=1) & (lower <= upper).all(axis=1)
    for start in range(0, len(lower), BLOCK):
        rows = np.flatnonzero(possible[start : start + BLOCK]) + start
        points[rows], solved = _newton(normals[rows], offsets[rows], lower[rows], upper[rows])
        feasible[rows] = solved
        for row in rows[~solved]:
            try:
                exact = least_distance(normals[row], offsets[row], lower[row], upper[row])
            except ArithmeticError:
                exact, failed[row] = None, True
            feasible[row] = exact is not None
            points[row] = np.nan if exact is None else exact
    return Projection(points, feasible, failed)


def _newton(normals: Array, offsets: Array, lower: Array, upper: Array) -> tuple[Array, Mask]:
    """Points (P, d) and which of them are optimal."""
    people, m, d = normals.shape
    lam = np.zeros((people, m))
    points = np.clip(np.zeros((people, d)), lower, upper)
    solved = np.zeros(people, dtype=bool)
    open_ = np.arange(people)
    for _ in range(60):
        N, r, lo, up, dual = normals[open_], offsets[open_], lower[open_], upper[open_], lam[open_]
        pull = (dual[:, None, :] @ N)[:, 0, :]
        u = np.clip(pull, lo, up)
        gradient = (N @ u[:, :, None])[:, :, 0] - r
        tolerance = FEASIBLE * (1 + np.abs(r))
        done = ((gradient >= -tolerance) & ((dual <= 0) | (gradient <= tolerance))).all(axis=1)
        points[open_] = u
        solved[open_[done]] = True
        if done.all():
            break
        stay = ~done
        open_ = open_[stay]
        step = _newton_step(N[stay], gradient[stay], dual[stay], (pull > lo)[stay] & (pull < up)[stay])
        lam[open_] = _line_search(N[stay], r[stay], lo[stay], up[stay], dual[stay], step, gradient[stay])
    return points, solved


def _newton_step(N: Array, gradient: Array, dual: Array, free: Mask) -> Array:
    # Multipliers close to 0 that want to fall are put at 0 and left out of the step (Bertsekas' two-metric rule):
    # truncating them afterwards could turn a descent direction into an ascent one.
    residual = np.abs(dual - np.maximum(dual - gradient, 0.0)).max(axis=1)
    moving = (dual > np.minimum(0.1, residual)[:, None]) | (gradient < 0)
    masked = N * moving[:, :, None]
    hessian = (masked * free[:, None, :]) @ masked.transpose(0, 2, 1)
    places = np.arange(N.shape[1])
    # Parallel cuts make the Hessian singular; a little more on its diagonal keeps the step finite.
    hessian[:, places, places] += np.where(moving, 1e-9 * np.maximum(hessian[:, places, places], 1.0), 1.0)
    step = -np.linalg.solve(hessian, np.where(moving, gradient, 0.0)[:, :, None])[:, :, 0]
    return np.where(moving, step, -dual)


def _dual_value(N: Array, r: Array, lo: Array, up: Array, dual: Array) -> Array:
    return _dual_values(N, r, lo, up, dual[:, None, :])[:, 0]


def _dual_values(N: Array, r: Array, lo: Array, up: Array, duals: Array) -> Array:
    """Of several multipliers (P, t, m) for each problem; (P, t)."""
    pull = duals @ N
    u = np.clip(pull, lo[:, None, :], up[:, None, :])
    return np.asarray((pull * u - 0.5 * u * u).sum(axis=2) - (duals @ r[:, :, None])[:, :, 0])


def _line_search(N: Array, r: Array, lo: Array, up: Array, dual: Array, step: Array, gradient: Array) -> Array:
    value = _dual_value(N, r, lo, up, dual)
    slack = 1e-13 * (1 + np.abs(value))  # rounding of the value, which would reject the last, tiny steps
    chosen = np.maximum(dual + step, 0.0)
    waiting = np.flatnonzero(
        _dual_value(N, r, lo, up, chosen) > value + 1e-4 * (gradient * (chosen - dual)).sum(axis=1) + slack
    )
    # Those who overshoot try several halvings at a time: few people, and many calls otherwise.
    lengths = 0.5 ** np.arange(1, HALVINGS + 1)
    for some in (lengths[at : at + HALVED_AT_ONCE] for at in range(0, HALVINGS, HALVED_AT_ONCE)):
        if not len(waiting):
            break
        before = dual[waiting][:, None, :]
        trials = np.maximum(before + some[:, None] * step[waiting][:, None, :], 0.0)
        slopes = ((trials - before) * gradient[waiting][:, None, :]).sum(axis=2)
        allowed = (value + slack)[waiting][:, None] + 1e-4 * slopes
        good = _dual_values(N[waiting], r[waiting], lo[waiting], up[waiting], trials) <= allowed
        first = np.where(good.any(axis=1), good.argmax(axis=1), len(some) - 1)
        chosen[waiting] = trials[np.arange(len(waiting)), first]
        waiting = waiting[~good.any(axis=1)]
    return chosen


def least_distance(normals: Array, offsets: Array, lower: Array, upper: Array) -> Array | None:
    """One problem, exactly: normals (m, d), offsets (m,), box (d,). None if it is infeasible.

    Raises ``ArithmeticError`` where rounding decides and neither can be said.

    Lawson and Hanson, Solving Least Squares Problems, chapter 23: the box joins the half-spaces as ``G u >= h``; the
    residual of one non-negative least squares problem is the answer.
    """
    d = len(lower)
    G = np.vstack([normals, np.eye(d), -np.eye(d)])
    h = np.concatenate([offsets, lower, -upper])
    E = np.vstack([G.T, h[None, :]])
    f = np.zeros(d + 1)
    f[-1] = 1.0
    try:
        weights, _ = nnls(E, f, maxiter=50 * len(h))
    except RuntimeError as error:
        raise ArithmeticError("the least squares problem was not solved") from error
    residual = E @ weights - f
    if abs(residual[-1]) < 1e-9:
        return None
    u = np.clip(-residual[:-1] / residual[-1], lower, upper)
    ok = (normals @ u >= offsets - 1e-7 * (1 + np.abs(offsets))).all()
    if not ok:
        raise ArithmeticError("the solution misses its constraints")
    return np.asarray(u)
