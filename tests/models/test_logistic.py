"""The logistic model against formulas, finite differences and scikit-learn."""

from __future__ import annotations

import numpy as np
import pytest
from scipy.special import expit
from sklearn.linear_model import LogisticRegression

from problems import random_training_set, weighted_objective
from rocerf import LogisticModel, TrainingSet
from rocerf.errors import FileFormatError
from rocerf.models.design import Design

SETTINGS = [
    pytest.param({"C": 1.0}, id="fixed"),
    pytest.param({"C": 100.0, "fit_intercept": False}, id="no-intercept"),
    pytest.param({"gamma": 1e-2}, id="mean"),
    pytest.param({"C": 0.1, "class_weight": {0: 3.0, 1: 0.5}}, id="class-weight"),
    pytest.param({"C": 2.0, "threshold": 0.7, "scale": False}, id="unscaled"),
]


@pytest.mark.parametrize("weights", [False, True])
@pytest.mark.parametrize("options", SETTINGS)
def test_fit_is_the_minimum_of_the_stated_objective(options: dict, weights: bool) -> None:
    model = LogisticModel.fit(random_training_set(1, weights=weights), **options)
    reference = weighted_objective(model, np.ones(len(model.train)))
    gap = model.design(model.train.X) @ (model.theta - reference)
    assert np.abs(gap).max() < 1e-5  # BFGS's accuracy, not ours
    assert model.optimality <= 1e-10
    gradient, _ = model.objective.gradient_and_hessian(model.theta)
    assert np.abs(gradient).max() < 1e-7 * len(model.train)


def test_gradient_and_hessian_match_finite_differences_of_the_value() -> None:
    model = LogisticModel.fit(random_training_set(2, weights=True), gamma=0.05)
    objective, theta = model.objective, model.theta + 0.3
    gradient, hessian = objective.gradient_and_hessian(theta)
    step = 1e-5
    for j, unit in enumerate(np.eye(len(theta))):
        up, down = theta + step * unit, theta - step * unit
        assert gradient[j] == pytest.approx((objective.value(up) - objective.value(down)) / (2 * step), abs=1e-5)
        slopes = (objective.gradient_and_hessian(up)[0] - objective.gradient_and_hessian(down)[0]) / (2 * step)
        np.testing.assert_allclose(hessian[j], slopes, atol=1e-5)


@pytest.mark.parametrize("options", [{"C": 1.0}, {"gamma": 0.02}])
def test_row_gradients_add_up_to_the_objective_s_gradient(options: dict) -> None:
    model = LogisticModel.fit(random_training_set(3), **options)
    total = model.row_gradients().sum(axis=0)
    if "C" in options:  # a fixed penalty belongs to no row
        total = total + model.objective.penalty_diagonal * model.theta
    np.testing.assert_allclose(total, 0.0, atol=1e-8)


def test_score_is_the_log_odds_minus_those_of_the_threshold() -> None:
    model = LogisticModel.fit(random_training_set(4), C=1.0, threshold=0.8)
    plain = LogisticModel.fit(model.train, C=1.0)
    probability = expit(plain.score(model.train.X))
    np.testing.assert_array_equal(model.predict(model.train.X) == 1, probability >= 0.8)
    slopes, constants = model.halfspaces(model.theta[None])
    np.testing.assert_allclose(model.train.X @ slopes[0] + constants[0], model.score(model.train.X), atol=1e-9)


@pytest.mark.parametrize("weights", [False, True])
@pytest.mark.parametrize("options", SETTINGS)
def test_without_is_exact_retraining(options: dict, weights: bool) -> None:
    """Deleting rows equals minimising with their weight set to 0; scaling stays frozen."""
    model = LogisticModel.fit(random_training_set(5, weights=weights), **options)
    gone = [3, 7, 20]
    keep = np.ones(len(model.train))
    keep[gone] = 0.0
    later = model.without(model.train.ids[gone])
    gap = model.design(model.train.X) @ (later.theta - weighted_objective(model, keep))
    assert np.abs(gap).max() < 1e-5
    assert len(later.train) == len(model.train) - 3
    assert later.optimality <= 1e-10
    np.testing.assert_array_equal(later.design.scale, model.design.scale)


def test_without_does_not_depend_on_the_order_or_number_of_steps() -> None:
    model = LogisticModel.fit(random_training_set(6), C=1.0)
    ids = model.train.ids
    at_once = model.without([ids[1], ids[9]]).theta
    one_by_one = model.without([ids[9]]).without([ids[1]]).theta
    np.testing.assert_allclose(at_once, one_by_one, atol=1e-9)


def test_from_sklearn_without_equals_a_scikit_learn_refit() -> None:
    train = random_training_set(7)
    X = (train.X - train.X.mean(0)) / train.spread
    tight = LogisticRegression(C=0.5, tol=1e-12, max_iter=10_000)
    model = LogisticModel.from_sklearn(tight.fit(X, train.y), TrainingSet(X, train.y))
    later = model.without([0, 5])
    keep = np.setdiff1d(np.arange(len(X)), [0, 5])
    refit = tight.fit(X[keep], train.y[keep])
    np.testing.assert_allclose(later.theta, [*refit.coef_[0], refit.intercept_[0]], atol=1e-5)


def test_a_loose_scikit_learn_fit_is_polished_and_the_shift_recorded() -> None:
    train = random_training_set(8, n=400)
    X = (train.X - train.X.mean(0)) / train.spread
    loose = LogisticRegression(C=1.0, tol=1e-3).fit(X, train.y)
    model = LogisticModel.from_sklearn(loose, TrainingSet(X, train.y))
    assert model.polish is not None
    assert 1e-9 < model.polish.shift <= 0.1
    assert model.polish.largest_shift >= model.polish.shift
    np.testing.assert_array_equal(model.predict(X), loose.predict(X))
    assert model.optimality <= 1e-10


def test_rank_deficient_columns_are_handled_by_the_penalty() -> None:
    train = random_training_set(9)
    doubled = TrainingSet(np.column_stack([train.X, train.X[:, 0] + train.X[:, 1], np.ones(len(train))]), train.y)
    model = LogisticModel.fit(doubled, C=1.0)
    assert model.optimality <= 1e-10
    assert model.without([4]).optimality <= 1e-10


def test_separable_rows_are_handled_by_the_penalty() -> None:
    train = TrainingSet([[float(i)] for i in range(20)], [0] * 10 + [1] * 10)
    model = LogisticModel.fit(train, C=1e6)
    assert model.predict(train.X).tolist() == train.y.astype(int).tolist()
    assert model.optimality <= 1e-10


def test_the_users_objects_stay_theirs() -> None:
    train, weights = random_training_set(10), {0: 1.0, 1: 2.0}
    fitted = LogisticRegression(class_weight=weights, tol=1e-10, max_iter=1000).fit(train.X, train.y)
    models = LogisticModel.fit(train, class_weight=weights), LogisticModel.from_sklearn(fitted, train)
    before = [(model.deployed_score(train.X), model.without([train.ids[3]]).theta) for model in models]
    weights[1] = 50.0
    fitted.fit(train.X, 1 - train.y)
    for model, (scores, theta) in zip(models, before, strict=True):
        np.testing.assert_array_equal(model.deployed_score(train.X), scores)
        np.testing.assert_array_equal(model.without([train.ids[3]]).theta, theta)


def test_badly_scaled_columns_do_not_cost_accuracy() -> None:
    train = random_training_set(10, n=300)
    scaled = LogisticModel.fit(train, C=np.inf)
    wild = TrainingSet(train.X * np.array([1e8, 1e-8, 1.0]) + np.array([0.0, 0.0, 1e4]), train.y)
    unscaled = LogisticModel.fit(wild, C=np.inf, scale=False)
    np.testing.assert_allclose(unscaled.score(wild.X), scaled.score(train.X), atol=1e-6)


@pytest.mark.parametrize("weights", [False, True])
def test_save_and_load_keep_everything(tmp_path, weights: bool) -> None:
    model = LogisticModel.fit(
        random_training_set(11, weights=weights), gamma=0.01, class_weight={1: 2.0}, threshold=0.6
    )
    model.save(tmp_path / "model.npz")
    again = LogisticModel.load(tmp_path / "model.npz")
    np.testing.assert_array_equal(again.theta, model.theta)
    assert again.train.checksum == model.train.checksum
    assert again.train.ids.tolist() == model.train.ids.tolist()
    np.testing.assert_allclose(again.without(["row-3"]).theta, model.without(["row-3"]).theta, atol=1e-12)


def test_load_refuses_other_files(tmp_path) -> None:
    (tmp_path / "other.npz").write_bytes(b"not a model")
    with pytest.raises(FileFormatError, match=r"LogisticModel\.save"):
        LogisticModel.load(tmp_path / "other.npz")
    np.savez(tmp_path / "arrays.npz", theta=np.zeros(3))
    with pytest.raises(FileFormatError):
        LogisticModel.load(tmp_path / "arrays.npz")


@pytest.mark.parametrize("intercept", [False, True])
@pytest.mark.parametrize("rows", [0, 1, 15, 16, 33, 500])
def test_design_rows_are_made_to_the_bit_however_many(rows: int, intercept: bool) -> None:
    """Several are scaled as if they were one row; also into an array that is given, of any layout."""
    rng = np.random.default_rng(rows)
    design = Design(10.0 * rng.normal(size=7), rng.random(7) + 0.1, intercept)
    X = rng.normal(size=(rows, 7))
    plain = np.column_stack([(X - design.centre) / design.scale, np.ones((rows, int(intercept)))])
    np.testing.assert_array_equal(design(X), plain)
    for given in (np.empty_like(plain), np.empty((rows, design.width + 2))[:, 1:-1], np.empty_like(plain, order="F")):
        assert design(np.asfortranarray(X), given) is given
        np.testing.assert_array_equal(given, plain)
