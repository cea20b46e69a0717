"""Small random problems shared by the tests, and slow, obvious oracles for what the package computes fast."""

from __future__ import annotations

import itertools
from collections.abc import Iterable

import clarabel
import numpy as np
from scipy import sparse
from scipy.optimize import minimize
from scipy.special import expit

from rocerf import LogisticModel, TrainingSet


def random_training_set(seed: int, n: int = 60, d: int = 3, *, weights: bool = False) -> TrainingSet:
    """Overlapping classes, correlated columns in different units."""
    rng = np.random.default_rng(seed)
    X = rng.normal(size=(n, d)) @ rng.normal(size=(d, d)) + 0.5 * rng.normal(size=(n, d))
    X = X * 10.0 ** rng.integers(-2, 3, size=d) + rng.normal(size=d)
    z = (X - X.mean(0)) / X.std(0) @ rng.normal(size=d)
    y = (rng.random(n) < expit(1.5 * z)).astype(int)
    y[:2] = [0, 1]
    sample_weight = rng.uniform(0.2, 3.0, size=n) if weights else None
    return TrainingSet(X, y, ids=[f"row-{i}" for i in range(n)], sample_weight=sample_weight)


def refused_people(model: LogisticModel, seed: int, count: int) -> np.ndarray:
    """Points near the training rows that the model refuses."""
    rng = np.random.default_rng(seed)
    X = model.train.X
    found: list[np.ndarray] = []
    for _ in range(1000):
        x = X[rng.integers(len(X))] + rng.normal(size=X.shape[1]) * model.train.spread
        if model.score(x[None])[0] < -0.1:
            found.append(x)
        if len(found) == count:
            return np.array(found)
    raise AssertionError("the model refuses nobody")


def weighted_objective(model: LogisticModel, row_weights: np.ndarray) -> LogisticModel:
    """The model retrained with row i's share of the objective multiplied by row_weights[i], by plain BFGS.

    Written from the formula, sharing nothing with the package but the numbers.
    """
    train, design = model.train, model.design
    Z = (train.X - design.centre) / design.scale
    if design.intercept:
        Z = np.column_stack([Z, np.ones(len(Z))])
    P = np.ones(Z.shape[1])
    if design.intercept:
        P[-1] = model.objective.intercept_penalty
    omega = np.ones(len(Z)) if model.objective.weights is None else model.objective.weights
    lam = model.penalty.per_model + model.penalty.per_row * row_weights.sum()

    def value(theta: np.ndarray) -> float:
        z = Z @ theta
        loss = np.logaddexp(0, z) - train.y * z
        return float((row_weights * omega * loss).sum() + lam / 2 * (P * theta**2).sum())

    def gradient(theta: np.ndarray) -> np.ndarray:
        return Z.T @ (row_weights * omega * (expit(Z @ theta) - train.y)) + lam * P * theta

    found = minimize(value, model.theta, jac=gradient, method="BFGS", options={"gtol": 1e-9, "maxiter": 2000})
    return found.x


def subsets(n: int, k: int) -> Iterable[tuple[int, ...]]:
    """All sets of at most k of n rows, the empty one included."""
    return itertools.chain.from_iterable(itertools.combinations(range(n), size) for size in range(k + 1))


def quadratic_program(A: np.ndarray, b: np.ndarray, lower: np.ndarray, upper: np.ndarray) -> np.ndarray | None:
    """``min |u|^2 / 2  s.t.  A u >= b`` in a box, by Clarabel's interior points; None if infeasible."""
    d = len(lower)
    bounded = [upper < 1e4, lower > -1e4]  # wider than that is no bound, and only hurts the solver's scaling
    G = sparse.csc_matrix(np.vstack([-A, np.eye(d)[bounded[0]], -np.eye(d)[bounded[1]]]))
    h = np.concatenate([-b, upper[bounded[0]], -lower[bounded[1]]])
    settings = clarabel.DefaultSettings()
    settings.verbose = False
    settings.tol_gap_abs = settings.tol_gap_rel = settings.tol_feas = 1e-11
    identity = sparse.csc_matrix(np.eye(d))
    solver = clarabel.DefaultSolver(identity, np.zeros(d), G, h, [clarabel.NonnegativeConeT(len(h))], settings)
    found = solver.solve()
    if "Infeasible" in str(found.status):
        return None
    assert "Solved" in str(found.status), found.status
    return np.array(found.x)
