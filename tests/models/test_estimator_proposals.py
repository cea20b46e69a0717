"""Rows that are guessed to hold a point up: against slow sums over trees, and against really deleting them."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from scipy.stats import spearmanr
from sklearn.calibration import CalibratedClassifierCV
from sklearn.compose import make_column_transformer
from sklearn.ensemble import (
    BaggingClassifier,
    ExtraTreesClassifier,
    GradientBoostingClassifier,
    HistGradientBoostingClassifier,
    RandomForestClassifier,
)
from sklearn.neighbors import KNeighborsClassifier
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import OneHotEncoder, StandardScaler
from sklearn.svm import SVC
from sklearn.tree import DecisionTreeClassifier

import rocerf
from pipelines import applicants
from problems import random_training_set
from rocerf import EstimatorModel
from rocerf.errors import OptionError
from rocerf.models.model import Proposing
from rocerf.models.sklearn import proposals
from rocerf.models.sklearn.leaves import trees_in
from rocerf.models.sklearn.proposals import leaf_effects

TRAIN = random_training_set(2, n=240)
K = 8

FAMILIES = [
    pytest.param(HistGradientBoostingClassifier(max_iter=30, min_samples_leaf=10), id="hist-boosting"),
    pytest.param(GradientBoostingClassifier(n_estimators=30), id="boosting"),
    pytest.param(RandomForestClassifier(40), id="forest"),
    pytest.param(ExtraTreesClassifier(40), id="extra-trees"),
    pytest.param(DecisionTreeClassifier(min_samples_leaf=8), id="tree"),
    pytest.param(BaggingClassifier(DecisionTreeClassifier(min_samples_leaf=4), 20), id="bagging"),
    pytest.param(CalibratedClassifierCV(RandomForestClassifier(15), cv=3), id="calibrated"),
    pytest.param(make_pipeline(StandardScaler(), RandomForestClassifier(40)), id="pipeline"),
]
WITHOUT_TREES = [
    pytest.param(make_pipeline(StandardScaler(), KNeighborsClassifier(9)), id="neighbours"),
    pytest.param(make_pipeline(StandardScaler(), SVC()), id="svc"),
]


def accepted(model: EstimatorModel, count: int) -> np.ndarray:
    """Training rows nudged a little, that the model accepts but not by much."""
    points = model.train.X + 0.1 * model.train.spread * np.random.default_rng(0).normal(size=model.train.X.shape)
    scores = model.score(points)
    found = points[np.argsort(np.where(scores > 0.2, scores, np.inf))]
    return np.asarray(found[:count])


def scores_without(model: EstimatorModel, points: np.ndarray, rows: list[np.ndarray]) -> np.ndarray:
    """The score of each point, really retrained without its own rows."""
    return np.array([model.without(model.train.ids[r]).score(x[None])[0] for x, r in zip(points, rows, strict=True)])


@pytest.mark.parametrize("estimator", FAMILIES)
def test_rows_of_shared_leaves_lower_scores_more_than_others_do(estimator: Any) -> None:
    model = EstimatorModel.fit(estimator, TRAIN)
    assert isinstance(model, Proposing)
    boosted = "Boosting" in type(estimator).__name__
    assert model.proposals == (("leaves", "later trees", "neighbours") if boosted else ("leaves", "neighbours"))
    points, rng = accepted(model, 8), np.random.default_rng(1)
    at_random = scores_without(model, points, [rng.permutation(len(TRAIN))[:K] for _ in points])
    for proposal in model.proposals[:-1]:
        harms = model.harms(points, proposal)
        assert harms.shape == (8, len(TRAIN))
        assert harms.dtype == np.float64
        picked = scores_without(model, points, [np.argsort(h)[:K] for h in harms])
        assert picked.mean() < at_random.mean() - 0.3
        assert (picked < 0).sum() > (at_random < 0).sum()


@pytest.mark.parametrize("estimator", WITHOUT_TREES)
def test_without_trees_rows_nearby_are_picked(estimator: Any) -> None:
    model = EstimatorModel.fit(estimator, TRAIN)
    assert model.proposals == ("neighbours", "nearest")
    points, rng = accepted(model, 8), np.random.default_rng(1)
    at_random = scores_without(model, points, [rng.permutation(len(TRAIN))[:K] for _ in points])
    for proposal in model.proposals:
        picked = scores_without(model, points, [np.argsort(h)[:K] for h in model.harms(points, proposal)])
        assert picked.mean() < at_random.mean() - 0.1


@pytest.mark.parametrize(
    "estimator",
    [
        pytest.param(GradientBoostingClassifier(n_estimators=20, max_depth=2, random_state=0), id="boosting"),
        pytest.param(HistGradientBoostingClassifier(max_iter=20, min_samples_leaf=10), id="hist-boosting"),
        pytest.param(ExtraTreesClassifier(60, min_samples_leaf=5, random_state=0), id="extra-trees"),
    ],
)
def test_harms_follow_what_single_deletions_do(estimator: Any) -> None:
    train = random_training_set(7, n=60)
    model = EstimatorModel.fit(estimator, train)
    points = accepted(model, 5)
    before = model.score(points)
    moved = np.array([model.without([row]).score(points) - before for row in train.ids]).T
    for proposal in model.proposals[:-1]:
        harms = model.harms(points, proposal)
        assert np.mean([spearmanr(h, m).statistic for h, m in zip(harms, moved, strict=True)]) > 0.3


@pytest.mark.parametrize("weights", [False, True])
@pytest.mark.parametrize("estimator", FAMILIES[:5])
def test_harms_are_the_effects_in_shared_leaves_added_up(estimator: Any, weights: bool) -> None:
    train = random_training_set(3, n=50, weights=weights)
    model = EstimatorModel.fit(estimator, train)
    points = accepted(model, 4)
    (trees,) = trees_in(model._estimator)
    of_rows, of_points = trees.leaves(train.X), trees.leaves(points)
    effects = leaf_effects(of_rows, trees, train)
    slowly = [
        [sum(effects[i, t] for t in range(effects.shape[1]) if row[t] == x[t]) for i, row in enumerate(of_rows)]
        for x in of_points
    ]
    assert np.allclose(model.harms(points, "leaves"), slowly, rtol=0.0, atol=1e-12)


def test_a_leaf_share_moves_by_what_leaving_one_row_out_moves_it() -> None:
    """One leaf for everybody: the share with one average row more, computed with each row left out."""
    train = random_training_set(5, n=30, weights=True)
    model = EstimatorModel.fit(DecisionTreeClassifier(max_depth=1, min_samples_leaf=15), train)
    model._estimator.tree_.children_left[0] = model._estimator.tree_.children_right[0] = -1  # cut down to its root
    y, w = np.asarray(train.y, dtype=float), np.asarray(train.weights)
    usual, average = w @ y / w.sum(), w.mean()

    def share(kept: np.ndarray) -> float:
        return float(((w * y)[kept].sum() + average * usual) / (w[kept].sum() + average))

    everybody = np.ones(30, dtype=bool)
    left_out = [share(np.arange(30) != row) - share(everybody) for row in range(30)]
    assert np.allclose(model.harms(np.array(train.X[:1]), "leaves")[0], left_out, rtol=0.0, atol=1e-12)


@pytest.mark.parametrize("proposal", ["leaves", "later trees", "neighbours"])
def test_chunks_do_not_matter(proposal: str, monkeypatch: pytest.MonkeyPatch) -> None:
    model = EstimatorModel.fit(HistGradientBoostingClassifier(max_iter=10), TRAIN)
    points = accepted(model, 9)
    at_once = model.harms(points, proposal)
    monkeypatch.setattr(proposals, "BLOCK", 2 * len(TRAIN) + 1)
    assert np.allclose(model.harms(points, proposal), at_once, rtol=0.0, atol=1e-9)
    assert model.harms(points[:0], proposal).shape == (0, len(TRAIN))


def test_of_very_many_trees_every_so_many_are_asked(monkeypatch: pytest.MonkeyPatch) -> None:
    points = accepted(EstimatorModel.fit(RandomForestClassifier(40), TRAIN), 3)
    whole = EstimatorModel.fit(RandomForestClassifier(40), TRAIN).harms(points, "leaves")
    monkeypatch.setattr(proposals, "PAIRS", 20 * len(TRAIN))
    half = EstimatorModel.fit(RandomForestClassifier(40), TRAIN).harms(points, "leaves")
    assert not np.array_equal(half, whole)
    assert all(spearmanr(h, w).statistic > 0.5 for h, w in zip(half, whole, strict=True))


def test_a_retrained_estimator_guesses_about_the_same_rows() -> None:
    model = EstimatorModel.fit(RandomForestClassifier(20), TRAIN)
    points = accepted(model, 3)
    models = model.refitted([TRAIN.ids[:0], TRAIN.ids[:20]], seed=5)
    again = model.as_retrained(models, 1)
    assert again.train is model.train
    assert np.array_equal(again.score(points), models.scores(points)[1])
    harms = again.harms(points, "leaves")
    assert harms.shape == (3, len(TRAIN))
    assert not np.array_equal(harms, model.harms(points, "leaves"))


def test_a_proposal_that_is_none_is_refused() -> None:
    model = EstimatorModel.fit(RandomForestClassifier(4), TRAIN)
    with pytest.raises(OptionError, match="one of leaves, neighbours, got 'nearest'"):
        model.harms(np.array(TRAIN.X[:1]), "nearest")


def mixed(handle_unknown: str, last: Any) -> Any:
    """Texts one-hot encoded, numbers as they are, gaps included."""
    encoder = OneHotEncoder(handle_unknown=handle_unknown, sparse_output=False)
    return make_pipeline(make_column_transformer((encoder, ["job", "home"]), remainder="passthrough"), last)


def test_rows_of_pipelines_are_prepared_by_their_steps() -> None:
    frame, y = applicants(missing=True)
    fitted = mixed("ignore", HistGradientBoostingClassifier(max_iter=20, min_samples_leaf=5)).fit(frame, y)
    model = rocerf.from_pipeline(fitted, frame, y, otherwise="estimator")
    assert isinstance(model, EstimatorModel)
    assert model.proposals == ("leaves", "later trees", "neighbours")
    ready = np.asarray(fitted[0].transform(frame), dtype=np.float64)
    assert np.isnan(ready).any()
    (by_pipeline,), (bare,) = trees_in(model._estimator), trees_in(fitted[-1])
    assert np.array_equal(by_pipeline.leaves(model.train.X), bare.leaves(ready))
    assert model.harms(model.train.X[:5], "leaves").shape == (5, len(frame))


def test_rows_that_a_retrained_pipeline_cannot_take_are_left_alone() -> None:
    frame, y = applicants()
    fitted = mixed("error", RandomForestClassifier(20, random_state=0)).fit(frame, y)
    model = rocerf.from_pipeline(fitted, frame, y, otherwise="estimator")
    smiths = np.flatnonzero(frame["job"] == "smith")
    retrained = model.as_retrained(model.refitted([model.train.ids[smiths]]), 0)
    for proposal in retrained.proposals:
        harms = retrained.harms(np.vstack([model.train.X[:3], model.train.X[smiths[:1]]]), proposal)
        assert np.isfinite(harms).all()
    harms = retrained.harms(model.train.X, "leaves")
    assert not harms[:, smiths].any()
    assert not harms[smiths].any()
    assert harms[:, np.setdiff1d(np.arange(len(y)), smiths)].any()
