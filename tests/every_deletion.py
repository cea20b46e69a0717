"""The truth about all deletions of at most k rows of a small table, by code that shares nothing with the package.

Models are fitted by Newton's method for all subsets at once, from the design rows and the objective's numbers alone;
those that score a point lowest are then fitted again in long doubles.
"""

from __future__ import annotations

import itertools

import numpy as np

from rocerf import LogisticModel


def lowest_scores(
    model: LogisticModel,
    points: np.ndarray,
    k: int,
    *,
    design: np.ndarray | None = None,
    images: np.ndarray | None = None,
) -> np.ndarray:
    """The lowest score of points (P, d) over every deletion of at most k rows, (P,); -inf where one leaves no model.

    ``design`` (n, p) are the rows the model is trained on, and ``images`` (P, p) those of the points, if they are not
    what the model's own map makes of them.
    """
    train = model.train
    rows = _design(model, train.X) if design is None else design
    images = _design(model, points) if images is None else images
    weights = np.ones(len(rows)) if model.objective.weights is None else model.objective.weights
    P = np.ones(rows.shape[1])
    if model.design.intercept:
        P[-1] = model.objective.intercept_penalty
    thetas = []
    lams = []
    masks = []
    for size in range(k + 1):
        for gone in itertools.combinations(range(len(rows)), size):
            mask = np.ones(len(rows))
            mask[list(gone)] = 0.0
            masks.append(mask)
            lams.append(model.penalty.per_model + model.penalty.per_row * (len(rows) - size))
    masks, lams = np.array(masks), np.array(lams)
    thetas = np.concatenate(
        [
            _newton(rows, train.y, masks[part] * weights, lams[part, None] * P, model.theta)
            for part in (slice(start, start + 4096) for start in range(0, len(masks), 4096))
        ]
    )
    if not np.isfinite(thetas).all():
        return np.full(len(points), -np.inf)
    scores = images @ thetas.T - model.offset
    lowest = np.empty(len(points))
    for place, image in enumerate(images):
        few = np.argsort(scores[place])[:3]
        exact = [_polished(rows, train.y, masks[at] * weights, lams[at] * P, thetas[at]) for at in few]
        lowest[place] = float(min(image.astype(np.longdouble) @ theta for theta in exact) - model.offset)
    return lowest


def _design(model: LogisticModel, X: np.ndarray) -> np.ndarray:
    """Design rows from the numbers of the map."""
    design = model.design
    rows = X @ design.matrix.T + design.shift if hasattr(design, "matrix") else (X - design.centre) / design.scale
    return np.column_stack([rows, np.ones(len(X))]) if design.intercept else rows


def _newton(rows: np.ndarray, y: np.ndarray, weights: np.ndarray, penalty: np.ndarray, start: np.ndarray) -> np.ndarray:
    """Minimisers (m, p) for row weights (m, n) and penalty diagonals (m, p); NaN where there is none."""
    m, p = len(weights), rows.shape[1]
    theta = np.tile(start, (m, 1))
    products = (rows[:, :, None] * rows[:, None, :]).reshape(len(rows), p * p)
    sign = 1.0 - 2.0 * y
    eye = np.eye(p)

    def value(points: np.ndarray, of: np.ndarray) -> np.ndarray:
        z = points @ rows.T
        return (weights[of] * np.logaddexp(0.0, sign * z)).sum(axis=1) + 0.5 * (penalty[of] * points**2).sum(axis=1)

    open_ = np.arange(m)
    for _ in range(200):
        z = theta[open_] @ rows.T
        q = 1.0 / (1.0 + np.exp(-np.clip(sign * z, -700, 700)))
        gradient = (weights[open_] * sign * q) @ rows + penalty[open_] * theta[open_]
        hessian = ((weights[open_] * q * (1 - q)) @ products).reshape(-1, p, p) + penalty[open_][:, :, None] * eye
        try:
            step = np.linalg.solve(hessian, gradient[:, :, None])[:, :, 0]
        except np.linalg.LinAlgError:
            theta[:] = np.nan
            return theta
        decrement = (gradient * step).sum(axis=1)
        going = decrement > 1e-26
        open_, step, decrement = open_[going], step[going], decrement[going]
        if not len(open_):
            return theta
        length, before = np.ones(len(open_)), value(theta[open_], open_)
        for _ in range(40):
            after = value(theta[open_] - length[:, None] * step, open_)
            worse = after > before - 1e-4 * length * decrement + 1e-12 * (1 + np.abs(before))
            if not worse.any():
                break
            length[worse] /= 2
        theta[open_] -= length[:, None] * step
    lost = np.abs(theta[open_]).max(axis=1) > 1e8
    theta[open_[lost]] = np.nan
    return theta


def _polished(
    rows: np.ndarray, y: np.ndarray, weight: np.ndarray, penalty: np.ndarray, start: np.ndarray
) -> np.ndarray:
    """Newton's method in long doubles, from next to the minimiser."""
    rows, weight, penalty, theta = (part.astype(np.longdouble) for part in (rows, weight, penalty, start))
    sign = (1 - 2 * y).astype(np.longdouble)
    for _ in range(6):
        q = 1 / (1 + np.exp(-np.clip(sign * (rows @ theta), -10000, 10000)))
        gradient = rows.T @ (weight * sign * q) + penalty * theta
        hessian = (rows * (weight * q * (1 - q))[:, None]).T @ rows + np.diag(penalty)
        theta = theta - _solved(hessian, gradient)
    return theta


def _solved(matrix: np.ndarray, right: np.ndarray) -> np.ndarray:
    """Gauss' elimination with pivots: NumPy solves no long doubles."""
    matrix, right = matrix.copy(), right.copy()
    p = len(right)
    for column in range(p):
        pivot = column + int(np.argmax(np.abs(matrix[column:, column])))
        matrix[[column, pivot]], right[[column, pivot]] = matrix[[pivot, column]], right[[pivot, column]]
        for below in range(column + 1, p):
            factor = matrix[below, column] / matrix[column, column]
            matrix[below] -= factor * matrix[column]
            right[below] -= factor * right[column]
    solution = np.zeros(p, np.longdouble)
    for row in range(p - 1, -1, -1):
        solution[row] = (right[row] - matrix[row] @ solution) / matrix[row, row]
    return solution
