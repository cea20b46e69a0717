"""Boosted trees under `retrained`: packed trees, groups asked in order, and points that survive a fresh adversary."""

from __future__ import annotations

import numpy as np
import pytest
from sklearn.ensemble import HistGradientBoostingClassifier

import rocerf
from rocerf.deletion.adversary import Adversary
from rocerf.deletion.cover import serving
from rocerf.deletion.groups import Groups
from rocerf.models.sklearn.packed import PackedTrees
from rocerf.promises.group_value import GroupValues
from rocerf.promises.step_reads import StepReads

K = 3


@pytest.fixture(scope="module")
def model() -> rocerf.EstimatorModel:
    rng = np.random.default_rng(0)
    X = np.column_stack([rng.normal(size=(150, 3)), rng.integers(0, 2, 150)])
    y = (X[:, 0] + X[:, 1] * X[:, 3] + rng.normal(scale=0.7, size=150) > 0).astype(int)
    estimator = HistGradientBoostingClassifier(max_iter=20, max_leaf_nodes=6, min_samples_leaf=5, random_state=0)
    return rocerf.EstimatorModel.fit(estimator, rocerf.TrainingSet(X, y))


@pytest.fixture(scope="module")
def pool(model: rocerf.EstimatorModel) -> Groups:
    rng, groups = np.random.default_rng(1), Groups()
    sets = [np.sort(rng.choice(150, 12, replace=False)) for _ in range(12)]
    groups.retrain(model, sets, 1, seed=0, starts=1)
    return groups


def test_packed_trees_answer_as_the_estimator_does(model: rocerf.EstimatorModel) -> None:
    packed = PackedTrees.of(model.estimator, model.train.X)
    assert packed is not None
    # values on the thresholds themselves, one step of float64 beside them, and repeated points
    X = np.repeat(model.train.X, 3, axis=0)
    for column, own in enumerate(packed.thresholds):
        X[: 3 * len(own) : 3, column][: len(own)] = own
        X[1 : 3 * len(own) : 3, column][: len(own)] = np.nextafter(own, np.inf)
        X[2 : 3 * len(own) : 3, column][: len(own)] = np.nextafter(own, -np.inf)
    assert np.array_equal(packed.decision_function(X), model.estimator.decision_function(X))
    assert np.allclose(packed.predict_proba(X), model.estimator.predict_proba(X), rtol=0, atol=1e-15)


def test_trees_with_categories_are_not_packed(model: rocerf.EstimatorModel) -> None:
    estimator = HistGradientBoostingClassifier(max_iter=3, categorical_features=[3])
    estimator.fit(model.train.X, model.train.y)
    assert PackedTrees.of(estimator, model.train.X) is None


def test_early_exit_never_changes_whether_a_point_is_accepted(model: rocerf.EstimatorModel, pool: Groups) -> None:
    X = model.train.X
    assert pool.models is not None
    every = GroupValues(pool.models.scores(X), pool.sizes, 0.95, smooth=False).values()
    reads = StepReads(0.95)
    for floor in (0.5, 0.0, 0.0, -0.5):  # again and again: the order of groups changes
        values, group = reads.lowest(pool, X, floor)
        accepted = values >= floor
        assert np.array_equal(accepted, every.min(axis=0) >= floor)
        assert 0 < accepted.sum() < len(X)
        assert np.allclose(values[accepted], every.min(axis=0)[accepted])
        assert np.allclose(values, every[group, np.arange(len(X))])
    assert np.allclose(reads.lowest(pool, X)[0], every.min(axis=0))
    assert np.allclose(reads.lowest(pool, X, first=5)[0], every[5:].min(axis=0))


def test_a_set_serves_the_point_it_was_picked_for_whatever_the_rounding() -> None:
    rng = np.random.default_rng(2)
    for _ in range(20):
        harms = rng.normal(size=(30, 200)) * 10.0 ** rng.uniform(-8, 8, (30, 1))
        new, group = serving(harms, 8, Groups(), 1.0)
        assert len(new) == 30
        assert sorted(group.tolist()) == list(range(30))


@pytest.mark.slow
def test_retrained_points_survive_an_adversary_that_breaks_plain_ones(model: rocerf.EstimatorModel) -> None:
    people = model.train.X[model.predict(model.train.X) == 0][:4]

    def survive(promise: object) -> tuple[int, float]:
        recourses = rocerf.Rocerf(model, K, promise=promise).explain(people)
        points = recourses.matrix[recourses.answered]
        assert len(points) >= 3
        return len(points), float((Adversary(model, K, seed=777).attack(points).scores >= 0).mean())

    _, before = survive(rocerf.promises.Simulated(shaping=5, choosing=5, checking=5))
    _, after = survive("retrained")
    assert before <= 0.6
    assert after == 1.0
