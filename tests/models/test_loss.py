"""The loss of one row: derivatives against differences, and another family through the same objective."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest
from scipy.optimize import minimize
from scipy.stats import norm

from problems import random_training_set, refused_people
from rocerf import Adversary, LogisticModel, Rocerf, TrainingSet
from rocerf.errors import UnsupportedModelError
from rocerf.models.design import Design
from rocerf.models.logistic.fit import LogisticFit
from rocerf.models.logistic.objective import LogisticObjective, Penalty
from rocerf.models.loss import LOGISTIC, LOSSES, Loss
from rocerf.types import Array


class SmoothedHinge(Loss):
    """``v Phi(v) + phi(v)``: the pull is the normal distribution function, the curvature its density."""

    def value(self, margin: Array) -> Array:
        return np.asarray(margin * norm.cdf(margin) + norm.pdf(margin))

    def pull(self, margin: Array) -> Array:
        return np.asarray(norm.cdf(margin))

    def curvature(self, score: Array) -> Array:
        return np.asarray(norm.pdf(score))

    def curvature_of_pull(self, pull: Array) -> Array:
        return np.asarray(norm.pdf(norm.ppf(pull)))


def smoothed(train: TrainingSet) -> LogisticModel:
    design = Design(train.X.mean(axis=0), train.X.std(axis=0), intercept=True)
    return LogisticModel(LogisticFit.minimised(train, design, Penalty.fixed(1.0), None, 0.5, loss="smoothed"))


@pytest.mark.parametrize("loss", [LOGISTIC, SmoothedHinge()])
def test_pull_and_curvature_are_the_derivatives(loss: Loss) -> None:
    margin, step = np.linspace(-6, 6, 41), 1e-5
    slope = (loss.value(margin + step) - loss.value(margin - step)) / (2 * step)
    bend = (loss.pull(margin + step) - loss.pull(margin - step)) / (2 * step)
    np.testing.assert_allclose(loss.pull(margin), slope, atol=1e-9)
    np.testing.assert_allclose(loss.curvature(margin), bend, atol=1e-9)
    for sign in (-1.0, 1.0):
        np.testing.assert_allclose(loss.residual(margin, np.full(41, sign)), sign * loss.pull(sign * margin))


def test_shortcuts_of_the_logistic_loss_agree_with_its_careful_forms() -> None:
    margin = np.linspace(-30, 30, 61)
    pulls = LOGISTIC.quick_pull(margin.copy())
    np.testing.assert_allclose(pulls, LOGISTIC.pull(margin), atol=1e-15)
    np.testing.assert_allclose(LOGISTIC.curvature_of_pull(pulls), LOGISTIC.curvature(margin), atol=1e-15)


@pytest.mark.parametrize("loss", [LOGISTIC, SmoothedHinge()])
def test_another_family_is_fitted_by_the_same_newton(loss: Loss) -> None:
    train = random_training_set(4, n=70)
    design = Design(train.X.mean(axis=0), train.X.std(axis=0), intercept=True)
    objective = LogisticObjective(train.X, train.y, None, design, Penalty.fixed(1.0), 0.0, loss)
    found = objective.minimise(np.zeros(design.width)).theta
    rows, sign, lam = design(train.X), 1.0 - 2.0 * train.y, objective.penalty_diagonal
    oracle = minimize(
        lambda theta: loss.value(sign * (rows @ theta)).sum() + 0.5 * lam @ theta**2,
        np.zeros(design.width),
        jac=lambda theta: loss.residual(rows @ theta, sign) @ rows + lam * theta,
        options={"gtol": 1e-10},
    )
    np.testing.assert_allclose(found, oracle.x, atol=1e-6)


def test_a_model_with_another_loss_lives_like_any_other(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    """Retraining, attacks, recourse, forgetting and files follow its loss; nothing is called proven."""
    monkeypatch.setitem(LOSSES, "smoothed", SmoothedHinge())
    train = random_training_set(5, n=80)
    model = smoothed(train)
    later = smoothed(train.without(train.ids[:3]))
    rows = later.design(later.train.X)
    theta = model.without(train.ids[:3]).theta
    start = LogisticFit.minimised(later.train, model.design, Penalty.fixed(1.0), None, 0.5, loss="smoothed")
    np.testing.assert_allclose(theta, start.minimum.theta, atol=1e-8)
    assert np.abs(rows @ theta).max() > 0.1
    people = refused_people(model, 5, 4)
    found = Rocerf(model, 2).explain(people)
    attack = Adversary(model, 2, seed=3).attack(found.matrix)
    for x, one in zip(found.matrix, attack, strict=True):
        assert model.without(one.deleted_ids).score(x[None])[0] == pytest.approx(one.score, abs=1e-7)
    assert (attack.scores >= 0).all()
    model.save(tmp_path / "model.npz")
    np.testing.assert_array_equal(LogisticModel.load(tmp_path / "model.npz").theta, model.theta)
    forgotten = model.forget(train.ids[:3])
    assert isinstance(forgotten.objective.loss, SmoothedHinge)
    with pytest.raises(UnsupportedModelError, match="has none; use the promise 'retrained'"):
        Rocerf(model, 1, promise="certified").explain(people)
