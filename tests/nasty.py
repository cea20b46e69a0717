"""Small nasty problems, and the truth about them by brute force over every subset."""

from __future__ import annotations

import itertools
from collections.abc import Iterator
from dataclasses import dataclass

import numpy as np
from scipy.special import expit

from rocerf import LogisticModel, TrainingSet
from rocerf.deletion.batched_newton import BatchedNewton
from rocerf.deletion.deletions import Deletions

KINDS = (
    "plain",
    "heavy tailed",
    "imbalanced",
    "one row of a class",
    "nearly separable",
    "duplicated rows",
    "weighted",
    "no intercept",
    "mean penalty",
    "weak penalty",
    "collinear",
    "bad scaling",
)


@dataclass(frozen=True, eq=False)
class Problem:
    """A model, a number of deletions and a point to be attacked."""

    kind: str
    model: LogisticModel
    k: int
    point: np.ndarray

    def every_model(self) -> np.ndarray:
        """Parameters after every deletion of 1..k rows, (m, p), NaN where there is no optimum."""
        n = len(self.model.train)
        sets = [np.array(s) for size in range(1, self.k + 1) for s in itertools.combinations(range(n), size)]
        models = BatchedNewton(self.model)
        found = []
        for start in range(0, len(sets), 2048):
            deletions = Deletions.of(sets[start : start + 2048], self.k)
            found.append(models.converge(models.first_guess(deletions), deletions))
        return np.concatenate(found)

    def truth(self) -> float:
        """The lowest score at the point over all deletions; -inf if some deletion leaves no model."""
        thetas = self.every_model()
        if np.isnan(thetas).any():
            return -np.inf
        direction = self.model.score_gradient(self.point[None])[0]
        return float(min((thetas @ direction).min(), direction @ self.model.theta) - self.model.offset)


def problems(count: int, seed: int = 0, *, most_rows: int = 60) -> Iterator[Problem]:
    """A stream of problems: n 20 to most_rows, d 2 to 4, k 1 to 3, every kind in turn."""
    made = 0
    for number in itertools.count():
        if made == count:
            return
        problem = _problem(np.random.default_rng([seed, number]), KINDS[number % len(KINDS)], most_rows)
        if problem is not None:
            made += 1
            yield problem


def _problem(rng: np.random.Generator, kind: str, most_rows: int) -> Problem | None:
    n, d, k = int(rng.integers(20, most_rows + 1)), int(rng.integers(2, 5)), int(rng.integers(1, 4))
    if k == 3:
        n = min(n, 40)  # keeps brute force at ten thousand retrainings
    X = rng.normal(size=(n, d))
    if kind == "heavy tailed":
        X = rng.standard_t(1.5, size=(n, d))
    if kind == "collinear":
        X[:, -1] = X[:, 0] + 1e-3 * rng.normal(size=n)
    slope = rng.normal(size=d) * (6.0 if kind == "nearly separable" else 1.5)
    shift = {"imbalanced": 2.5, "one row of a class": 9.0}.get(kind, 0.0)
    y = (rng.random(n) < expit(X @ slope + shift)).astype(int)
    if kind == "one row of a class":
        y[:] = 1
        y[rng.integers(n)] = 0
    if kind == "duplicated rows":
        copies = rng.integers(0, n // 3, size=n)
        X, y = X[copies], y[copies]
    if len(set(y.tolist())) < 2:
        return None
    if kind == "bad scaling":
        X = X * 10.0 ** rng.integers(-3, 4, size=d)
    weights = rng.uniform(0.1, 4.0, size=n) if kind == "weighted" else None
    train = TrainingSet(X, y, sample_weight=weights)
    options: dict = {"C": float(10.0 ** rng.uniform(-1, 1.5))}
    if kind == "weak penalty":
        options = {"C": 1e3}
    if kind == "mean penalty":
        options = {"gamma": float(10.0 ** rng.uniform(-3, -1))}
    options["fit_intercept"] = kind not in ("no intercept", "one row of a class") or bool(rng.random() < 0.5)
    options["scale"] = kind in ("bad scaling", "heavy tailed") or bool(rng.random() < 0.5)
    point = X[rng.integers(n)] + rng.normal(size=d) * train.spread
    return Problem(kind, LogisticModel.fit(train, **options), k, point)
