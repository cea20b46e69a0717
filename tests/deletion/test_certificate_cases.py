"""Random problems for the tests of the certificate, with the truth by brute force, and a check of that truth."""

from __future__ import annotations

from dataclasses import dataclass, replace
from itertools import combinations

import numpy as np
import pytest
from scipy.special import expit

from problems import random_training_set
from rocerf import LogisticModel
from rocerf.deletion.certificate import Certificate, Options, certify
from rocerf.deletion.certificate.exact_deletions import retrain
from rocerf.deletion.certificate.problem import Problem

KINDS = (
    "plain",
    "heavy",
    "imbalanced",
    "separable",
    "duplicated",
    "mean",
    "weighted",
    "weighted mean",
    "perturbed",
    "penalised intercept",
    "zero rows",
    "scaled",
)


@dataclass
class Case:
    """A problem, what :func:`certify` is given for it, and points (design rows) to ask about."""

    kind: str
    problem: Problem
    y: np.ndarray
    weights: np.ndarray | None
    per_row: float | None
    points: np.ndarray

    def certify(self, **options: object) -> Certificate:
        problem = self.problem
        chosen = Options(**{"branch_nodes": 60, **options})
        return certify(
            problem.design,
            self.y,
            problem.theta,
            problem.penalty,
            problem.k,
            weights=self.weights,
            per_row_penalty=self.per_row,
            options=chosen,
        )

    def truth(self) -> np.ndarray | None:
        """The lowest ``x'theta_S`` at each point over all deletions; None if one has no optimum."""
        thetas = retrain_all_subsets(self.problem)
        return None if thetas is None else (self.points @ thetas.T).min(axis=1)


def make_case(seed: int) -> Case:
    """Draw one random problem; its kind is the seed modulo the number of kinds."""
    rng = np.random.default_rng(seed)
    kind = KINDS[seed % len(KINDS)]
    k = int(rng.integers(1, 4))
    n = int(rng.integers(20, 61 if k < 3 else 31))
    d = int(rng.integers(2, 5))
    x = rng.standard_t(2, size=(n, d)) if kind == "heavy" else rng.normal(size=(n, d))
    if kind == "scaled":
        x *= 10.0 ** rng.uniform(-2, 2, size=d)
    if kind == "duplicated":
        x = x[rng.integers(0, max(4, n // 4), size=n)]
    if kind == "zero rows":
        x[: n // 6] = 0
    direction = rng.normal(size=d) / np.maximum(x.std(axis=0), 1e-6)
    z = x @ direction * (4 if kind == "separable" else 0.7) + rng.normal()
    y = (rng.random(n) < expit(z)).astype(float)
    if kind == "separable":
        y = (z > np.median(z)).astype(float)
    if kind == "imbalanced":
        y = np.zeros(n)
        y[: int(rng.integers(1, 6))] = 1
    y[0], y[1] = (0.0, 1.0) if kind != "imbalanced" else (1.0, y[1])
    design = np.c_[x, np.ones(n)]
    free = kind != "penalised intercept" and rng.random() < 0.8
    penalty = np.full(d + 1, 10 ** rng.uniform(-1, 1.5))
    if free:
        penalty[-1] = 0
    weights = rng.uniform(0.2, 3.0, size=n) if "weighted" in kind else None
    if weights is not None:
        weights[2::9] = 0.0  # such rows have no loss, but their share of a mean penalty goes with them
    per_row = penalty[0] / n if "mean" in kind else None
    row_penalty = np.zeros(d + 1) if per_row is None else penalty / n
    weight = np.ones(n) if weights is None else weights
    deletable = (weight > 0) | (per_row is not None)
    bare = Problem(design, 1 - 2 * y, weight, np.zeros(d + 1), penalty, row_penalty, k, deletable)
    theta = retrain(bare, bare.theta)
    assert theta is not None
    if kind == "perturbed":
        theta = theta + 1e-4 * rng.normal(size=d + 1)
    points = np.r_[design[rng.integers(0, n, 6)], np.c_[2 * rng.normal(size=(6, d)), np.ones(6)]]
    return Case(kind, replace(bare, theta=theta), y, weights, per_row, points)


def retrain_all_subsets(problem: Problem) -> np.ndarray | None:
    """Retrain after every deletion of at most k rows, in one batch; None if one has no optimum."""
    x, n = problem.design, len(problem.sign)
    p = x.shape[1]
    subsets = [s for j in range(problem.k + 1) for s in combinations(range(n), j)]
    weight = np.tile(problem.weight, (len(subsets), 1))
    sizes = np.array([len(s) for s in subsets], dtype=float)
    for at, subset in enumerate(subsets):
        weight[at, list(subset)] = 0
    penalty = problem.penalty - sizes[:, None] * problem.row_penalty
    thetas = np.tile(problem.theta, (len(subsets), 1))
    outer = (x[:, :, None] * x[:, None, :]).reshape(n, p * p)
    for _ in range(80):
        z = thetas @ x.T
        gradient = (weight * problem.sign * expit(problem.sign * z)) @ x + penalty * thetas
        hessian = ((weight * expit(z) * expit(-z)) @ outer).reshape(-1, p, p)
        hessian = hessian + penalty[:, :, None] * np.eye(p) + 1e-13 * np.eye(p)
        step = np.linalg.solve(hessian, gradient[:, :, None])[:, :, 0]
        moved = np.abs(step @ x.T).max(axis=1)
        thetas = thetas - step * np.minimum(1.0, 2.0 / np.maximum(moved, 1e-300))[:, None]
        if moved.max() < 1e-11:
            return thetas
    return None


@pytest.mark.parametrize("penalty", [{"C": 2.0}, {"gamma": 0.02}])
def test_brute_force_is_what_the_model_s_own_retraining_says(penalty: dict[str, float]) -> None:
    model = LogisticModel.fit(random_training_set(7, n=30, weights=True), **penalty)
    objective = model.objective
    problem = Problem(
        model.design(model.train.X),
        1.0 - 2.0 * model.train.y,
        objective.weights,
        model.theta,
        objective.penalty_diagonal,
        model.penalty.per_row * objective.penalised,
        2,
        np.ones(30, bool),
    )
    thetas = retrain_all_subsets(problem)
    assert thetas is not None
    subsets = [s for j in range(3) for s in combinations(range(30), j)]
    for at in range(0, len(subsets), 60):
        later = model.without(model.train.ids[list(subsets[at])])
        np.testing.assert_allclose(thetas[at], later.theta, atol=1e-7)
