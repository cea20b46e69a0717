"""L1 penalties and SGDClassifier: exact retraining, attacks, answers, refusals."""

from __future__ import annotations

import itertools
import warnings
from dataclasses import replace
from typing import Any

import numpy as np
import pandas as pd
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from sklearn.base import clone
from sklearn.linear_model import LogisticRegression, SGDClassifier
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import OneHotEncoder, StandardScaler

import rocerf
from pipelines import applicants, columns, fitted, model_of
from rocerf import LogisticModel, Rocerf, TrainingSet
from rocerf.deletion.adversary import Adversary
from rocerf.deletion.batched_newton import BatchedNewton
from rocerf.deletion.certificate import certify_model
from rocerf.deletion.deletions import Deletions
from rocerf.deletion.kinked_newton import KinkedNewton
from rocerf.deletion.row_effects import RowEffects
from rocerf.errors import NotAtOptimumError, OptionError, SingularCurvatureError, UnsupportedModelError
from rocerf.models.logistic.kinks import Kinks
from rocerf.promises.certified import Certified
from rocerf.promises.first_order import FirstOrder


def _problem(seed: int, n: int, p: int, spread: float = 0.0) -> tuple[Any, Any]:
    """Rows and labels of both classes, columns in units that differ by up to so many powers of ten."""
    rng = np.random.default_rng(seed)
    X = rng.normal(size=(n, p))
    y = (X[:, 0] + rng.normal(size=n) > 0).astype(int)
    y[:4] = [0, 1, 0, 1]
    return X * 10 ** rng.uniform(-spread, spread, p), y


def _violation(model: LogisticModel) -> float:
    """How far a model is from the conditions of an optimum, by their definition, in the norm of the curvatures."""
    gradient, hessian = model.objective.gradient_and_hessian(model.theta)
    kinks = model.objective.kinks
    assert kinks is not None
    beyond = np.where(
        model.theta == 0,
        np.maximum(np.abs(gradient) - kinks.strengths, 0.0),
        np.abs(gradient + kinks.strengths * np.sign(model.theta)),
    )
    return float((beyond / np.sqrt(np.maximum(np.diagonal(hessian), 1e-300))).max())


@settings(max_examples=60, deadline=None)
@given(
    st.integers(0, 10**6),
    st.integers(8, 80),
    st.integers(1, 7),
    st.floats(-4, 4),
    st.sampled_from([0.1, 0.5, 1.0]),
    st.sampled_from(["plain", "weighted", "balanced", "constant", "dependent", "integers", "rare"]),
)
def test_every_fit_meets_the_conditions_of_its_optimum(
    seed: int, n: int, p: int, logC: float, ratio: float, kind: str
) -> None:
    X, y = _problem(seed, n, p, spread=1.0)
    rng = np.random.default_rng(seed)
    if kind == "constant":
        X = np.column_stack([X, np.full(n, 3.0), np.zeros(n)])
    elif kind == "dependent":
        X = np.column_stack([X > 0, X <= 0]).astype(float)  # with the intercept, every pair of columns adds up to it
    elif kind == "integers":
        X = np.round(X).astype(np.int64)
    elif kind == "rare":
        X = np.column_stack([X, np.arange(n) == n - 1])
    weights = rng.uniform(0.1, 3.0, n) if kind == "weighted" else None
    train = TrainingSet(X, y, sample_weight=weights)
    class_weight = "balanced" if kind == "balanced" else None
    model = LogisticModel.fit(train, C=10**logC, l1_ratio=ratio, class_weight=class_weight, scale=kind != "dependent")
    assert _violation(model) < 1e-7
    gone = rng.choice(np.arange(4, n), 3, replace=False)
    assert _violation(model.without(gone)) < 1e-7


@pytest.mark.parametrize("seed", range(6))
def test_retraining_is_what_scikit_learn_comes_to(seed: int) -> None:
    X, y = _problem(seed, 60, 5)
    weights = np.linspace(0.5, 2.0, 60) if seed % 2 else None
    solver, ratio = [("saga", 1.0), ("saga", 0.4), ("liblinear", 1.0)][seed % 3]
    own = LogisticRegression(C=0.4, l1_ratio=ratio, solver=solver, random_state=0, max_iter=100_000)
    own.set_params(tol=1e-12, intercept_scaling=2.0 if solver == "liblinear" else 1.0)
    own.set_params(class_weight={0: 2.0, 1: 1.0} if seed == 5 else None)
    model = LogisticModel.from_sklearn(own.fit(X, y, sample_weight=weights), TrainingSet(X, y), sample_weight=weights)
    np.testing.assert_allclose(model.score(X), own.decision_function(X), atol=1e-6)
    gone = np.array([7, 20, 33])
    kept = np.delete(np.arange(60), gone)
    again = clone(own).fit(X[kept], y[kept], sample_weight=None if weights is None else weights[kept])
    np.testing.assert_allclose(model.without(gone).score(X), again.decision_function(X), atol=1e-6)


@pytest.mark.parametrize("ratio", [0.5, 1.0])
@pytest.mark.parametrize("seed", range(4))
def test_models_retrained_together_are_those_retrained_alone(seed: int, ratio: float) -> None:
    X, y = _problem(seed, 16, 1 + seed)
    model = LogisticModel.fit(TrainingSet(X, y), C=[0.05, 0.3, 1.0, 5.0][seed], l1_ratio=ratio)
    models = BatchedNewton.of(model)
    assert isinstance(models, KinkedNewton)
    sets = [np.array(chosen) for size in (1, 2) for chosen in itertools.combinations(range(16), size)]
    deletions = Deletions.of(sets, 2)
    together = models.converge(models.first_guess(deletions), deletions)
    for place in range(0, len(sets), 5):
        np.testing.assert_allclose(together[place], model.without(sets[place]).theta, atol=1e-8)


def test_a_step_that_leads_out_of_all_bounds_loses_its_model_alone() -> None:
    """0 times an infinite end is no number: whether a search came by one hung on the machine's last digits."""
    X, y = _problem(2, 17, 4)
    models = BatchedNewton.of(LogisticModel.fit(TrainingSet(X, y), C=2.0, l1_ratio=1.0))
    thetas = np.array([[1.0, -0.5, 0.0, 2.0, 0.0], [0.0, 0.0, 0.0, 0.0, 1.0]])
    moves = np.array([[-2.0, 0.25, 1.0, 0.0, 1.0], [np.inf, 0.0, -np.inf, 0.0, 0.0]])
    ends = models.moved(thetas, moves)
    np.testing.assert_array_equal(ends[0], [0.0, -0.25, 1.0, 2.0, 1.0])
    assert np.isnan(ends[1]).all()


@pytest.mark.parametrize("seed", range(5))
def test_the_adversary_finds_the_worst_of_all_deletions(seed: int) -> None:
    X, y = _problem(seed, 17, 2 + seed % 3)
    model = LogisticModel.fit(TrainingSet(X, y), C=[0.1, 0.5, 2.0][seed % 3], l1_ratio=[1.0, 0.5][seed % 2])
    models, k = BatchedNewton.of(model), 3
    sets = [np.array(chosen) for size in range(k + 1) for chosen in itertools.combinations(range(17), size)]
    deletions = Deletions.of(sets, k)
    thetas = models.converge(models.first_guess(deletions), deletions)
    points = np.random.default_rng(seed).normal(size=(4, X.shape[1]))
    truth = (model.score_gradient(points) @ thetas.T).min(axis=1)
    adversary = Adversary(model, k)
    adversary.effort = replace(adversary.effort, brute_force=0)
    np.testing.assert_allclose(adversary.attack_all(points).scores, truth, atol=1e-7)


def test_row_effects_are_the_first_order_while_no_coefficient_comes_or_goes() -> None:
    X, y = _problem(3, 400, 6)
    model = LogisticModel.fit(TrainingSet(X, y), C=0.05, l1_ratio=0.9)
    effects = RowEffects.of(model).in_training_order()
    assert (model.theta == 0).any()
    assert not effects[:, model.theta == 0].any()
    for row in (0, 100, 200):
        moved = model.without([row]).theta - model.theta
        if ((moved + model.theta == 0) == (model.theta == 0)).all():
            np.testing.assert_allclose(moved, effects[row], atol=0.05 * np.abs(effects[row]).max())


@pytest.mark.parametrize("solver", ["saga", "liblinear"])
def test_answers_survive_every_deletion_of_one_row_and_the_estimators_own_fit(solver: str) -> None:
    X, y = _problem(11, 60, 3)
    own = LogisticRegression(C=0.3, l1_ratio=1.0, solver=solver, max_iter=10_000, tol=1e-8, random_state=0).fit(X, y)
    model = LogisticModel.from_sklearn(own, TrainingSet(X, y))
    recourses = Rocerf(model, 1).explain(X[model.predict(X) == 0][:8])
    assert recourses.answered.all()
    for row in range(60):
        again = clone(own).fit(np.delete(X, row, axis=0), np.delete(y, row))
        assert (again.decision_function(recourses.matrix) >= 0).all()
        assert (model.without([row]).score(recourses.matrix) >= 0).all()
    assert any("|theta|_1" in said for said in recourses.settings.assumptions)


def test_fits_that_differ_each_time_are_measured_several_times() -> None:
    X, y = _problem(2, 120, 4)
    own = LogisticRegression(C=0.3, l1_ratio=1.0, solver="saga", max_iter=500, tol=1e-2).fit(X, y)
    explainer = Rocerf(LogisticModel.from_sklearn(own, TrainingSet(X, y)), 1)
    recourses = explainer.explain(X[own.predict(X) == 0][:5])
    allowance: Any = explainer.promise.allowance  # type: ignore[attr-defined]
    assert allowance.varies
    assert allowance.safety == 3.0
    for seed in range(10):  # none of them is a fit that was measured
        again = clone(own).set_params(random_state=seed + 1000).fit(X, y)
        assert (again.decision_function(recourses.matrix[recourses.answered]) >= 0).all()
    assert any("random state is open" in said for said in recourses.settings.assumptions)


def test_a_penalty_that_leaves_no_coefficient_leaves_no_recourse_and_says_so() -> None:
    X, y = _problem(4, 50, 3)
    y[:30] = 0
    own = LogisticRegression(C=1e-3, l1_ratio=1.0, solver="liblinear", intercept_scaling=1e4, tol=1e-10).fit(X, y)
    model = LogisticModel.from_sklearn(own, TrainingSet(X, y))
    assert not model.theta[:-1].any()
    recourses = Rocerf(model, 1).explain(X[:3])
    assert not recourses.answered.any()
    assert all(recourses[place].reason for place in range(3))
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        early = LogisticRegression(C=1e-3, l1_ratio=1.0, solver="saga", random_state=0).fit(X, y)
    with pytest.raises(NotAtOptimumError, match="before it had found the intercept"):
        LogisticModel.from_sklearn(early, TrainingSet(X, y))


@pytest.mark.parametrize("promise", ["certified", "first_order"])
def test_proofs_and_first_order_are_refused_with_the_way_out(promise: str) -> None:
    X, y = _problem(5, 40, 2)
    model = LogisticModel.fit(TrainingSet(X, y), l1_ratio=0.5)
    with pytest.raises(OptionError, match=r"L1 part.*'retrained' or 'simulated'"):
        Rocerf(model, 1, promise=promise)
    with pytest.raises(OptionError, match="L1 part"):
        (Certified if promise == "certified" else FirstOrder)(model, 1)
    with pytest.raises(OptionError, match="L1 part"):
        certify_model(model, 1)
    for able in ("simulated", "plain"):
        assert Rocerf(model, 1, promise=able).explain(X[model.predict(X) == 0][:2]).answered.all()


def test_categories_in_one_column_each_are_taken_though_their_columns_depend() -> None:
    frame, y = applicants(200)
    last = LogisticRegression(C=0.5, l1_ratio=1.0, solver="saga", tol=1e-9, max_iter=50_000, random_state=0)
    pipeline = fitted(make_pipeline(columns(StandardScaler(), OneHotEncoder()), last), frame, y)
    model = model_of(pipeline, frame, y)
    np.testing.assert_allclose(model.score(frame), model.deployed_score(frame), atol=1e-5)
    assert model.determined(model.train.X).all()
    recourses = Rocerf(model, 1).explain(frame[model.predict(frame) == 0].head(4))
    assert recourses.answered.all()
    assert (pipeline.predict(recourses.points) == 1).all()
    later, worst = model.without([frame.index[3]]), frame.drop(index=frame.index[3])
    again = make_pipeline(pipeline[0], clone(last).fit(pipeline[0].transform(worst), y.drop(index=frame.index[3])))
    np.testing.assert_allclose(later.score(frame), again.decision_function(frame), atol=1e-4)


def test_columns_that_depend_where_people_can_break_it_are_refused() -> None:
    X, y = _problem(6, 60, 2)
    train = TrainingSet(pd.DataFrame({"a": X[:, 0], "b": X[:, 1], "again": 2 * X[:, 0] + 1}), y)
    with pytest.raises(SingularCurvatureError, match=r"'a' among some that do.*elasticnet"):
        LogisticModel.fit(train, l1_ratio=1.0)
    LogisticModel.fit(train, l1_ratio=0.9)  # an L2 part shares the weight
    sums = TrainingSet(pd.DataFrame({"a": X[:, 0], "b": X[:, 1], "sum": X.sum(axis=1)}), y)
    LogisticModel.fit(sums, C=0.1, l1_ratio=1.0)  # one of the three is held at 0: one optimum
    halves = TrainingSet(pd.DataFrame({"a": X[:, 0], "own": 1.0 * (X[:, 1] > 0), "rent": 1.0 * (X[:, 1] <= 0)}), y)
    model = LogisticModel.fit(halves, l1_ratio=1.0, scale=False)
    assert model.determined(np.array([[0.0, 1.0, 0.0], [0.0, 1.0, 1.0]])).tolist() == [True, False]


def test_files_and_forgetting_keep_the_penalty(tmp_path: Any) -> None:
    X, y = _problem(7, 50, 3)
    model = LogisticModel.fit(TrainingSet(X, y), C=0.4, l1_ratio=0.7)
    model.save(tmp_path / "model.npz")
    read = LogisticModel.load(tmp_path / "model.npz")
    assert read.penalty == model.penalty
    np.testing.assert_array_equal(read.theta, model.theta)
    scratch = LogisticModel.fit(TrainingSet(X[3:], y[3:]), C=0.4, l1_ratio=0.7)
    np.testing.assert_allclose(model.forget([0, 1, 2]).score(X), scratch.score(X), atol=1e-9)
    Rocerf(model, 1).save(tmp_path / "explainer")
    again = Rocerf.load(tmp_path / "explainer").explain(X[model.predict(X) == 0][:3])
    np.testing.assert_allclose(again.matrix, Rocerf(model, 1).explain(X[model.predict(X) == 0][:3]).matrix, atol=1e-7)


def test_balanced_weights_and_refitted_preprocessing_go_with_an_l1_penalty() -> None:
    frame, y = applicants(150)
    last = LogisticRegression(
        C=0.5, l1_ratio=0.5, solver="saga", tol=1e-9, max_iter=50_000, random_state=0, class_weight="balanced"
    )
    pipeline = fitted(make_pipeline(columns(StandardScaler(), OneHotEncoder(handle_unknown="ignore")), last), frame, y)
    model = model_of(pipeline, frame, y, preprocessing="refitted")
    gone = frame.index[[2, 9]]
    again = fitted(clone(pipeline), frame.drop(index=gone), y.drop(index=gone))
    np.testing.assert_allclose(model.without(gone).score(frame), again.decision_function(frame), atol=1e-4)


def test_options_that_make_no_penalty() -> None:
    X, y = _problem(8, 30, 2)
    train = TrainingSet(X, y)
    with pytest.raises(OptionError, match="l1_ratio from 0"):
        LogisticModel.fit(train, l1_ratio=1.5)
    with pytest.raises(OptionError, match="with gamma"):
        LogisticModel.fit(train, gamma=0.1, l1_ratio=0.5)


def test_a_step_of_dependent_columns_ends_in_a_corner() -> None:
    kinks, hessian = Kinks(np.array([1.0, 1.0, 0.0])), np.array([[2.0, 0.0, 2.0], [0.0, 3.0, 3.0], [2.0, 3.0, 5.0]])
    theta, _ = kinks.corner(np.array([0.5, -0.25, 0.1]), hessian)
    assert (theta == 0).sum() == 1
    np.testing.assert_allclose(hessian @ theta, hessian @ [0.5, -0.25, 0.1], atol=1e-12)
    assert kinks.value(theta) <= 0.75 + 1e-12


@pytest.mark.parametrize("penalty", ["l2", "elasticnet"])
def test_sgd_is_carried_to_the_optimum_of_its_objective(penalty: str) -> None:
    X, y = _problem(9, 500, 3)
    own = SGDClassifier("log_loss", alpha=0.02, penalty=penalty, l1_ratio=0.3, random_state=0, tol=1e-5).fit(X, y)
    model = LogisticModel.from_sklearn(own, TrainingSet(X, y))
    share = 0.3 if penalty == "elasticnet" else 0.0
    same = LogisticRegression(C=1 / (0.02 * 500), l1_ratio=share, solver="saga", tol=1e-10, max_iter=20_000)
    np.testing.assert_allclose(model.score(X), same.fit(X, y).decision_function(X), atol=1e-5)
    kept = np.arange(5, 500)
    same.set_params(C=1 / (0.02 * 495)).fit(X[kept], y[kept])
    np.testing.assert_allclose(model.without(range(5)).score(X), same.decision_function(X), atol=1e-5)
    np.testing.assert_allclose(model.deployed_score(X), own.decision_function(X))
    recourses = Rocerf(model, 2).explain(X[model.predict(X) == 0][:5])
    assert recourses.answered.all()
    for seed in range(5):
        rows = np.random.default_rng(seed).permutation(500)[2:]
        again = clone(own).fit(X[rows], y[rows])
        assert (again.decision_function(recourses.matrix) >= 0).all()
    assert any("SGDClassifier(alpha=0.02" in said for said in recourses.settings.assumptions)


def test_sgd_fits_that_cannot_be_followed() -> None:
    X, y = _problem(10, 300, 8)
    train = TrainingSet(X, y)
    astray = SGDClassifier("log_loss", alpha=1e-5, random_state=0).fit(X, y)
    with pytest.raises(UnsupportedModelError, match=r"single rows.*LogisticRegression\(C=333.333\).*'estimator'"):
        LogisticModel.from_sklearn(astray, train)
    for options, said in (({"loss": "hinge"}, "loss='log_loss'"), ({"early_stopping": True}, "early_stopping=False")):
        other = SGDClassifier(**{"loss": "log_loss", "random_state": 0, **options}).fit(X, y)
        with pytest.raises(UnsupportedModelError, match=said):
            LogisticModel.from_sklearn(other, train)
    frame, labels = applicants(200)
    last = SGDClassifier("log_loss", alpha=0.05, random_state=0)
    pipeline = fitted(make_pipeline(columns(StandardScaler(), OneHotEncoder()), last), frame, labels)
    assert isinstance(rocerf.from_pipeline(pipeline, frame, labels), LogisticModel)
