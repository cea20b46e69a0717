"""Leaves of tree ensembles: against walks node by node, and against what the ensembles themselves predict."""

from __future__ import annotations

from typing import Any

import numpy as np
import pandas as pd
import pytest
from sklearn.calibration import CalibratedClassifierCV
from sklearn.ensemble import (
    BaggingClassifier,
    ExtraTreesClassifier,
    GradientBoostingClassifier,
    HistGradientBoostingClassifier,
    RandomForestClassifier,
    VotingClassifier,
)
from sklearn.linear_model import LogisticRegression
from sklearn.model_selection import FixedThresholdClassifier, GridSearchCV
from sklearn.naive_bayes import GaussianNB
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import OneHotEncoder, StandardScaler
from sklearn.tree import DecisionTreeClassifier

from problems import random_training_set
from rocerf import TrainingSet
from rocerf.models.sklearn.leaves import trees_in
from rocerf.models.sklearn.replay import followed, stages

ROWS = random_training_set(4, n=150, weights=True)
X, Y = np.array(ROWS.X), np.asarray(ROWS.y)


def leaf_by_hand(nodes: Any, cats: Any, known: set[float], x: np.ndarray) -> int:
    """The leaf of one row, node by node; column 0 alone has categories."""
    place = 0
    while not nodes[place]["is_leaf"]:
        node = nodes[place]
        value = x[node["feature_idx"]]
        if np.isnan(value) or (node["is_categorical"] and value not in known):
            left = bool(node["missing_go_to_left"])
        elif node["is_categorical"]:
            word, bit = divmod(int(value), 32)
            left = bool(int(cats[node["bitset_idx"]][word]) >> bit & 1)
        else:
            left = value <= node["num_threshold"]
        place = int(node["left"] if left else node["right"])
    return place


def gappy() -> tuple[np.ndarray, np.ndarray]:
    """Rows with a column of categories, and gaps in both kinds of column."""
    rng = np.random.default_rng(0)
    rows = rng.normal(size=(400, 3))
    rows[:, 0] = rng.integers(0, 40, size=400)
    rows[rng.random(rows.shape) < 0.15] = np.nan
    y = (np.nan_to_num(rows[:, 1]) + (rows[:, 0] % 3 == 0) + 0.5 * rng.normal(size=400) > 0.4).astype(int)
    return rows, y


@pytest.mark.parametrize("categories", [None, [0]])
def test_leaves_of_hist_boosting_are_those_its_own_predictions_come_from(categories: list[int] | None) -> None:
    rows, y = gappy()
    fitted = HistGradientBoostingClassifier(max_iter=15, categorical_features=categories, min_samples_leaf=5)
    fitted.fit(rows, y)
    asked = np.vstack([rows, [[77.0, 0.1, 0.2], [np.nan, np.nan, np.nan]]])  # a category that nobody had
    (trees,) = trees_in(fitted)
    leaves = trees.leaves(asked)
    assert leaves.shape == (402, 15)
    known = set(rows[~np.isnan(rows[:, 0]), 0]) if categories else set()
    total = np.full(len(asked), float(fitted._baseline_prediction.ravel()[0]))
    for tree, (predictor,) in enumerate(fitted._predictors):
        by_hand = [leaf_by_hand(predictor.nodes, predictor.raw_left_cat_bitsets, known, x) for x in asked]
        assert leaves[:, tree].tolist() == by_hand
        assert predictor.nodes["is_leaf"][leaves[:, tree]].all()
        total += predictor.nodes["value"][leaves[:, tree]]
    assert np.array_equal(total, fitted.decision_function(asked))
    assert np.array_equal(predictor.nodes["value"][leaves[:, -1]], fitted._predictors[-1][0].nodes["value"][by_hand])


@pytest.mark.parametrize(
    "estimator",
    [
        HistGradientBoostingClassifier(max_iter=20, l2_regularization=2.0),
        HistGradientBoostingClassifier(max_iter=20, class_weight="balanced"),
        GradientBoostingClassifier(n_estimators=20, max_depth=2, learning_rate=0.3),
    ],
)
def test_boosting_is_replayed_from_the_leaves_alone(estimator: Any) -> None:
    weights = np.asarray(ROWS.weights)
    fitted = estimator.fit(X, Y, sample_weight=weights)
    if estimator.get_params().get("class_weight"):
        weights = weights * np.where(Y == 1, len(Y) / (2 * Y.sum()), len(Y) / (2 * (1 - Y).sum()))
    (trees,) = trees_in(fitted)
    margins, steps = stages(trees.leaves(X), trees, Y.astype(float), weights)
    assert np.allclose(margins[-1] + steps[-1], fitted.decision_function(X), rtol=0.0, atol=1e-5)


def test_later_trees_are_followed_as_small_changes_of_weights_show() -> None:
    """Derivatives through all trees against replays with one weight a little larger or smaller."""
    fitted = HistGradientBoostingClassifier(max_iter=12, min_samples_leaf=5, l2_regularization=0.5).fit(X, Y)
    (trees,) = trees_in(fitted)
    leaves, y, weights = trees.leaves(X), Y.astype(float), np.asarray(ROWS.weights)

    def replay(own: np.ndarray) -> np.ndarray:
        margins, steps = stages(leaves, trees, y, own)
        return np.asarray(margins[-1] + steps[-1])

    points, tiny = [0, 7, 30], 1e-5
    effects = followed(leaves, leaves[points], trees, y, weights)
    for row in range(0, 150, 10):
        moved = tiny * (np.arange(150) == row)
        slopes = (replay(weights + moved) - replay(weights - moved)) / (2.0 * tiny)
        assert np.allclose(effects[:, row], -weights[row] * slopes[points], rtol=1e-5, atol=1e-8)


@pytest.mark.parametrize(
    "estimator", [RandomForestClassifier(7), ExtraTreesClassifier(7), GradientBoostingClassifier(n_estimators=7)]
)
def test_ensembles_with_apply_are_asked_by_it(estimator: Any) -> None:
    fitted = estimator.set_params(random_state=0).fit(X, Y)
    (trees,) = trees_in(fitted)
    assert np.array_equal(trees.leaves(X), fitted.apply(X).reshape(len(X), 7))
    assert (trees.rate is None) == (not isinstance(estimator, GradientBoostingClassifier))


def test_a_single_tree_is_an_ensemble_of_one() -> None:
    fitted = DecisionTreeClassifier(max_depth=3).fit(X, Y)
    (trees,) = trees_in(fitted)
    assert np.array_equal(trees.leaves(X), fitted.apply(X)[:, None])


@pytest.mark.parametrize(
    ("estimator", "count"),
    [
        (CalibratedClassifierCV(RandomForestClassifier(5), cv=3), 3),
        (BaggingClassifier(DecisionTreeClassifier(max_depth=3), 6, max_features=2), 6),
        (VotingClassifier([("a", GaussianNB()), ("b", RandomForestClassifier(4))], voting="soft"), 1),
        (FixedThresholdClassifier(RandomForestClassifier(4), threshold=0.4), 1),
        (GridSearchCV(RandomForestClassifier(4), {"max_depth": [2, 3]}, cv=2), 1),
        (make_pipeline(StandardScaler(), make_pipeline(StandardScaler(), RandomForestClassifier(4))), 1),
        (make_pipeline(StandardScaler(), LogisticRegression()), 0),
    ],
)
def test_trees_are_found_within_other_classifiers(estimator: Any, count: int) -> None:
    found = trees_in(estimator.fit(X, Y))
    assert len(found) == count
    assert all(len(part.leaves(X)) == len(X) for part in found)


def test_bagged_trees_are_asked_about_their_own_columns() -> None:
    fitted = BaggingClassifier(DecisionTreeClassifier(), 4, max_features=2, random_state=0)
    fitted.fit(pd.DataFrame(X, columns=list("abc")), Y)
    for part, tree, columns in zip(trees_in(fitted), fitted.estimators_, fitted.estimators_features_, strict=True):
        assert np.array_equal(part.leaves(X)[:, 0], tree.apply(X[:, columns]))


def test_points_that_a_pipeline_cannot_take_have_no_leaves() -> None:
    rows = np.repeat([[0.0], [1.0]], 20, axis=0)
    fitted = make_pipeline(OneHotEncoder(handle_unknown="error"), RandomForestClassifier(3)).fit(rows, [0, 1] * 20)
    (trees,) = trees_in(fitted)
    leaves = trees.leaves(np.array([[5.0], [1.0], [0.0], [7.0]]))
    assert (leaves[[0, 3]] == -1).all()
    assert np.array_equal(leaves[1:3], trees.leaves(np.array([[1.0], [0.0]])))


class Boosted(GradientBoostingClassifier):  # type: ignore[misc]
    """Asked as other packages' classifiers are."""

    def catboost(self) -> Any:
        self.calc_leaf_indexes = lambda rows: self.apply(rows)[:, :, 0].astype(np.uint32)
        return self

    def lightgbm(self) -> Any:
        self.booster_, own = "a booster", self.predict
        self.predict = lambda rows, pred_leaf=False: self.apply(rows)[:, :, 0] if pred_leaf else own(rows)
        return self

    def xgboost(self) -> Any:
        self.get_booster = lambda: "a booster"
        return self


@pytest.mark.parametrize("package", ["catboost", "lightgbm", "xgboost"])
def test_other_packages_are_asked_through_their_own_methods(package: str) -> None:
    fitted = Boosted(n_estimators=6).fit(X, Y)
    (trees,) = trees_in(getattr(fitted, package)())
    assert np.array_equal(trees.leaves(X), fitted.apply(X)[:, :, 0])
    assert trees.rate == 0.1


@pytest.mark.parametrize(
    ("package", "name", "options", "precision"),
    [
        ("xgboost", "XGBClassifier", {"n_estimators": 10, "n_jobs": 1}, 1e-3),
        ("lightgbm", "LGBMClassifier", {"n_estimators": 10, "n_jobs": 1, "verbose": -1}, 1e-5),
    ],
)
def test_other_packages_where_they_are_installed(package: str, name: str, options: Any, precision: float) -> None:
    fitted = getattr(pytest.importorskip(package), name)(**options).fit(X, Y)
    (trees,) = trees_in(fitted)
    margins, steps = stages(trees.leaves(X), trees, Y.astype(float), np.ones(len(Y)))
    chance = fitted.predict_proba(X)[:, 1]
    assert np.allclose(margins[-1] + steps[-1], np.log(chance / (1.0 - chance)), rtol=0.0, atol=precision)


def test_a_training_set_is_not_needed_to_find_trees() -> None:
    named = TrainingSet(pd.DataFrame(X, columns=list("abc")), Y)
    fitted = RandomForestClassifier(3, random_state=0).fit(named.frame()[list("abc")], Y)
    (trees,) = trees_in(fitted)
    assert np.array_equal(trees.leaves(named.X), fitted.apply(named.frame()[list("abc")]))
