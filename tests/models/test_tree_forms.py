"""Ensembles of every library read into one form: against their own answers, at the very thresholds and beside them."""

from __future__ import annotations

import warnings
from importlib.util import find_spec
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from sklearn.ensemble import (
    ExtraTreesClassifier,
    GradientBoostingClassifier,
    HistGradientBoostingClassifier,
    RandomForestClassifier,
)
from sklearn.linear_model import LogisticRegression
from sklearn.tree import DecisionTreeClassifier

from problems import random_training_set
from rocerf import EstimatorModel
from rocerf.models.trees import reading
from rocerf.models.trees.form import below_or_equal, last_rounding_to, strictly_below
from rocerf.models.trees.reading import at_thresholds, reader_of, trees_of

TRAIN = random_training_set(4, n=150, d=4)
X, Y = np.array(TRAIN.X), np.asarray(TRAIN.y).astype(int)

QUIET: dict[str, dict[str, Any]] = {
    "xgboost": {"n_jobs": 1},
    "lightgbm": {"n_jobs": 1, "verbose": -1},
    "catboost": {"verbose": 0, "allow_writing_files": False, "thread_count": 1},
}


def make(package: str, kind: str, **options: Any) -> Any:
    if find_spec(package) is None:
        pytest.skip(f"{package} is not installed")
    module = __import__(package)
    return getattr(module, kind)(**QUIET[package], **options)


CASES: dict[str, Any] = {
    "tree": lambda: DecisionTreeClassifier(max_depth=5, random_state=0),
    "forest": lambda: RandomForestClassifier(12, random_state=0),
    "extra trees": lambda: ExtraTreesClassifier(12, random_state=0),
    "gradient boosting": lambda: GradientBoostingClassifier(n_estimators=15, random_state=0),
    "hist boosting": lambda: HistGradientBoostingClassifier(max_iter=15, random_state=0),
    "xgboost": lambda: make("xgboost", "XGBClassifier", n_estimators=12),
    "xgboost forest": lambda: make("xgboost", "XGBRFClassifier", n_estimators=6),
    "lightgbm": lambda: make("lightgbm", "LGBMClassifier", n_estimators=12, min_child_samples=5),
    "lightgbm forest": lambda: make(
        "lightgbm", "LGBMClassifier", n_estimators=6, boosting_type="rf", bagging_freq=1, bagging_fraction=0.7
    ),
    "catboost": lambda: make("catboost", "CatBoostClassifier", iterations=12, depth=3),
    "catboost grown": lambda: make("catboost", "CatBoostClassifier", iterations=12, grow_policy="Lossguide"),
}


@pytest.mark.parametrize("family", CASES)
@pytest.mark.parametrize("favourable", [0, 1])
def test_what_is_read_says_what_the_library_says(family: str, favourable: int) -> None:
    estimator = CASES[family]()
    estimator.fit(X, Y)
    form = trees_of(estimator, favourable, X)
    assert form is not None
    rng = np.random.default_rng(1)
    asked = np.concatenate([X, rng.normal(size=(200, 4)) * 2.0, at_thresholds(form, X)])
    own = estimator.predict_proba(asked)[:, favourable]
    assert form.apart(asked, own) < 1e-6
    single = {"xgboost", "xgboost forest"}
    assert form.rounding < (1e-4 if family in single else 2e-9)


@settings(deadline=None, derandomize=True, max_examples=100)
@given(st.floats(-(2.0**120), 2.0**120, width=32), st.integers(-3, 3))
def test_thresholds_in_single_precision_end_at_the_right_double(number: float, beside: int) -> None:
    threshold = np.float32([number])
    for ends, goes_left in (
        (last_rounding_to(threshold), lambda x: np.float32(x) <= threshold[0]),
        (strictly_below(threshold), lambda x: np.float32(x) < threshold[0]),
        (below_or_equal(threshold.astype(np.float64)), lambda x: np.float32(x) <= threshold[0]),
    ):
        assert goes_left(ends[0])
        assert not goes_left(np.nextafter(ends[0], np.inf))
    between = float(np.float64(number) * (1.0 + beside * 1e-9))  # a threshold that single precision does not have
    (end,) = below_or_equal(np.array([between]))
    assert np.float64(np.float32(end)) <= between
    assert np.float64(np.float32(np.nextafter(end, np.inf))) > between


def test_native_categories_and_missing_values_go_where_they_do_in_the_library() -> None:
    rng = np.random.default_rng(0)
    Z = rng.normal(size=(300, 3))
    Z[:, 0] = rng.integers(0, 12, size=300)
    Z[rng.random(300) < 0.2, 1] = np.nan
    y = ((Z[:, 0] % 3 == 0) + np.nan_to_num(Z[:, 1]) > 0.5).astype(int)
    hist = HistGradientBoostingClassifier(max_iter=10, random_state=0).fit(np.nan_to_num(Z), y)
    assert reader_of(hist) is not None
    candidates = [HistGradientBoostingClassifier(max_iter=10, random_state=0)]
    if find_spec("lightgbm") is not None:
        candidates.append(make("lightgbm", "LGBMClassifier", n_estimators=8, min_child_samples=5))
    if find_spec("xgboost") is not None:
        candidates.append(make("xgboost", "XGBClassifier", n_estimators=8))
    for estimator in candidates:
        estimator.fit(Z, y)
        form = reader_of(estimator)(estimator, 1)  # type: ignore[misc]
        assert form is not None
        form = form.based_on(Z, estimator.predict_proba(Z)[:, 1])
        assert form.apart(Z, estimator.predict_proba(Z)[:, 1]) < 1e-6
    if find_spec("lightgbm") is not None:
        light = make("lightgbm", "LGBMClassifier", n_estimators=8, min_child_samples=5, min_data_per_group=5)
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            light.fit(Z, y, categorical_feature=[0])
        form = reader_of(light)(light, 1).based_on(Z, light.predict_proba(Z)[:, 1])  # type: ignore[misc,union-attr]
        assert len(form.subsets)
        assert form.apart(Z, light.predict_proba(Z)[:, 1]) < 1e-6


def test_what_differs_is_not_used(monkeypatch: pytest.MonkeyPatch) -> None:
    estimator = GradientBoostingClassifier(n_estimators=3, random_state=0).fit(X, Y)
    monkeypatch.setattr(reading, "below_or_equal", lambda thresholds: thresholds + 0.3)
    assert reading._verified(estimator, 1, X) is None
    assert trees_of(LogisticRegression().fit(X, Y), 1, X) is None


def test_models_know_their_trees_and_those_fitted_again() -> None:
    model = EstimatorModel.fit(GradientBoostingClassifier(n_estimators=5, random_state=0), TRAIN, threshold=0.6)
    assert model.trees is not None
    assert model.trees.scores(X) == pytest.approx(model.score(X), abs=1e-9)
    again = model.refitted([TRAIN.ids[:3], TRAIN.ids[5:9]])
    for trees, scores in zip(model.trees_retrained(again), again.scores(X), strict=True):
        assert trees is not None
        assert trees.scores(X) == pytest.approx(scores, abs=1e-9)


def test_classifiers_with_a_threshold_of_their_own_are_taken_over_with_it_and_refused_with_another() -> None:
    from sklearn.model_selection import FixedThresholdClassifier

    from rocerf.errors import UnsupportedModelError

    inner = GradientBoostingClassifier(n_estimators=5, random_state=0)
    fixed = FixedThresholdClassifier(inner, threshold=0.3, response_method="predict_proba").fit(X, Y)
    model = EstimatorModel.from_sklearn(fixed, TRAIN, threshold=fixed.threshold)
    assert (model.predict(X) == (fixed.predict(X) == TRAIN.favourable)).all()
    assert model.trees is not None  # its probabilities are those of the trees inside
    assert model.trees.scores(X) == pytest.approx(model.score(X), abs=1e-9)
    assert EstimatorModel.from_sklearn(fixed, TRAIN).threshold == 0.3
    with pytest.raises(UnsupportedModelError, match="leave threshold= out"):
        EstimatorModel.from_sklearn(fixed, TRAIN, threshold=0.6)


def test_a_tuned_threshold_is_tuned_again_with_every_refit() -> None:
    from sklearn.model_selection import TunedThresholdClassifierCV

    inner = GradientBoostingClassifier(n_estimators=5, max_depth=2, random_state=0)
    tuned = TunedThresholdClassifierCV(inner, cv=3, random_state=0, scoring="balanced_accuracy").fit(X, Y)
    model = EstimatorModel.from_sklearn(tuned, TRAIN)
    assert model.threshold == pytest.approx(tuned.best_threshold_)
    again = model.refitted([TRAIN.ids[place : place + 20] for place in (0, 20, 40)])
    own = [estimator.best_threshold_ for estimator in again.estimators]
    assert len({*own, tuned.best_threshold_}) > 1
    decided = [estimator.predict(X) == TRAIN.favourable for estimator in again.estimators]
    np.testing.assert_array_equal(again.scores(X) >= 0, decided)
    for trees, scores in zip(model.trees_retrained(again), again.scores(X), strict=True):
        assert trees is not None
        assert trees.scores(X) == pytest.approx(scores, abs=1e-9)
