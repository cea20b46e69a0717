"""Guesses of harmful rows: against formulas written out densely, and models asked one by one."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from scipy.sparse import csr_array

from networks import dense_curvature, from_torch, jacobian_by_loop, people_near, row_gradients_by_loop, small_network
from rocerf.deletion.group_attack import other_starts
from rocerf.deletion.groups import Groups
from rocerf.deletion.guesses import LEAST_GROUPS, RIDGES, Guesses, _ridge_around, unit
from rocerf.deletion.row_effects import RowEffects
from rocerf.models.network import objective

MODELS = [
    pytest.param(small_network, id="weight decay"),
    pytest.param(lambda: small_network(weights=True), id="weights"),
    pytest.param(lambda: small_network(weight_decay=0.0), id="no decay"),
    pytest.param(lambda: from_torch("tied", weights=True), id="from torch"),
]


@pytest.mark.parametrize("make", MODELS)
def test_harms_are_first_order_effects(make: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    model = make()
    X = people_near(model, 4)
    harms = model.harms(X, "first order")
    assert harms.shape == (4, len(model.train))
    by_hand = jacobian_by_loop(model, X) @ np.linalg.solve(dense_curvature(model), row_gradients_by_loop(model).T)
    np.testing.assert_allclose(harms, by_hand, atol=1e-9 * np.abs(by_hand).max())
    effects = model.score_gradient(X) @ RowEffects.of(model).in_training_order().T
    np.testing.assert_allclose(harms, effects, atol=1e-9 * np.abs(by_hand).max())
    monkeypatch.setattr(objective, "JACOBIAN_BYTES", 8 * len(model.theta) * 7)  # seven rows at a time
    np.testing.assert_allclose(model.harms(X, "first order"), harms, atol=1e-12)
    assert model.harms(X[:0], "first order").shape == (0, len(model.train))


@pytest.mark.parametrize("make", MODELS)
def test_kinship_is_the_cosine_of_jacobians(make: Any) -> None:
    model = make()
    X = people_near(model, 4)
    of_points, of_rows = jacobian_by_loop(model, X), jacobian_by_loop(model, model.train.X)
    slowly = np.array([[a @ b / np.linalg.norm(a) / np.linalg.norm(b) for b in of_rows] for a in of_points])
    harms = model.harms(X, "kernel")
    np.testing.assert_allclose(harms, -model.train.y * np.maximum(slowly, 0.0), atol=1e-9)
    assert harms.min() < -0.5
    assert not harms[:, model.train.y == 0].any()  # only favourable rows hold a point up


def test_other_starts_are_averaged_at_unit_length() -> None:
    model = small_network()
    X, others = people_near(model, 3), other_starts(model, 3, seed=4)
    assert len(others) == 3
    assert other_starts(model, 0, seed=4) == []
    found = Guesses(model, others).by_other_starts(X)
    slowly = np.mean([[h / np.linalg.norm(h) for h in other.harms(X, "first order")] for other in others], axis=0)
    np.testing.assert_allclose(found, slowly, atol=1e-12)
    again = other_starts(model, 2, seed=4)
    np.testing.assert_allclose(again[1].score(X), others[1].score(X), atol=1e-6)
    assert np.abs(others[0].score(X) - others[1].score(X)).max() > 1e-3
    assert np.isfinite(unit(np.zeros((2, 5)))).all()


def test_relinearised_is_the_proposal_of_the_model_retrained_without_the_worst_set() -> None:
    model, groups = small_network(), Groups()
    X = people_near(model, 4)
    sets = [np.array([], np.intp), np.array([3, 8]), np.array([0, 1, 2])]
    groups.retrain(model, sets[:1], 3, seed=1, starts=3)
    groups.retrain(model, sets[1:], 2, seed=2, starts=2)
    worst = np.array([2, 0, 1, 2])
    found = Guesses(model, []).relinearised(X, groups, worst)
    for point, group in enumerate(worst):
        there = model.as_retrained(groups.models, [0, 3, 5][group])
        assert there.train is model.train
        np.testing.assert_allclose(there.score(X), groups.of(group).scores(X)[0], atol=1e-12)
        np.testing.assert_allclose(found[point], there.harms(X[point : point + 1], "first order")[0], atol=1e-9)


def ridge_by_hand(gone: np.ndarray, scores: np.ndarray, around: np.ndarray) -> np.ndarray:
    """One point: every ridge, every group left out of the kernel regression by striking it from the matrix."""
    drops, guessed = scores - scores.mean(), gone @ around
    guessed = guessed - guessed.mean()
    step = max(guessed @ drops, 0.0) / (guessed @ guessed)
    rest = drops - step * guessed
    rows = gone - gone.mean(axis=0)
    kernel = rows @ rows.T
    errors, every = [], []
    for share in RIDGES:
        ridge = share * np.trace(kernel) / len(kernel)
        missed = 0.0
        for out in range(len(rest)):
            left = np.delete(np.arange(len(rest)), out)
            dual = np.linalg.solve(kernel[np.ix_(left, left)] + ridge * np.eye(len(left)), rest[left])
            missed += (rest[out] - kernel[out, left] @ dual) ** 2
        errors.append(missed)
        primal = np.linalg.solve(rows.T @ rows + ridge * np.eye(rows.shape[1]), rows.T @ rest)
        every.append((step if step > 0 else 1.0) * around + primal)
    return every[int(np.argmin(errors))]


@pytest.mark.parametrize("noise", [0.0, 0.3, 10.0])
def test_the_regression_is_a_dense_ridge_that_predicts_left_out_groups_best(noise: float) -> None:
    rng = np.random.default_rng(5)
    gone = (rng.random((14, 25)) < 0.2).astype(float)
    truth = rng.normal(size=(3, 25))
    scores = gone @ truth.T + noise * rng.normal(size=(14, 3)) + 2.0
    around = truth + rng.normal(size=(3, 25))
    around[2] = -truth[2]  # a guess that points the wrong way: no step along it
    found = _ridge_around(csr_array(gone), scores, around)
    for point in range(3):
        np.testing.assert_allclose(found[point], ridge_by_hand(gone, scores[:, point], around[point]), atol=1e-8)


def test_the_regression_finds_rows_that_the_guess_missed() -> None:
    rng = np.random.default_rng(0)
    truth = np.where(np.arange(30) < 3, -1.0, 0.0)
    gone = (rng.random((200, 30)) < 0.3).astype(float)
    found = _ridge_around(csr_array(gone), (gone @ truth)[:, None], rng.normal(size=(1, 30)) * 0.01)
    assert set(np.argsort(found[0])[:3]) == {0, 1, 2}


def test_few_groups_say_nothing() -> None:
    model = small_network()
    few = Groups([np.array([row]) for row in range(LEAST_GROUPS - 1)])
    assert Guesses(model, []).regressed(few, np.zeros((len(few), 1)), np.zeros((1, len(model.train)))) is None
    few = Groups([np.array([row]) for row in range(LEAST_GROUPS)])
    found = Guesses(model, []).regressed(few, np.zeros((len(few), 1)), np.ones((1, len(model.train))))
    assert found is not None
    np.testing.assert_allclose(found, 1.0)  # scores that do not move leave the guess as it is
