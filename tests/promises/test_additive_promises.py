"""Promises about models of bins and curves, attacked: by every subset of small tables, by scikit-learn's refits."""

from __future__ import annotations

from datetime import date
from functools import cache
from typing import Any

import numpy as np
import pandas as pd
import pytest
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import FunctionTransformer, KBinsDiscretizer, SplineTransformer, StandardScaler

import rocerf
from every_deletion import lowest_scores
from pipelines import ONE_HOT, applicants, classifier, columns, fitted, model_of
from rocerf import Adversary, FeatureSchema, LogisticModel, Rocerf, TrainingSet
from rocerf.models.additive import AdditiveDesign, Pieces
from rocerf.models.logistic.fit import LogisticFit
from rocerf.models.logistic.objective import Penalty
from rocerf.promises import Certified


def _binned(seed: int, n: int = 14) -> LogisticModel:
    """One column in bins, with a code of its own for each, and one as it is."""
    rng = np.random.default_rng(seed)
    edges = np.unique(np.concatenate([[0], rng.integers(1, 12, 3), [12]])).astype(float)
    codes = rng.normal(size=(len(edges) - 1, 1))
    bins = Pieces(np.array([0]), edges[:-1], edges[1:] - 1, codes, codes)
    design = AdditiveDesign(np.array([[0.0, 0.0], [0.0, 1.0]]), np.zeros(2), True, {0: bins})
    X = np.column_stack([rng.integers(0, 12, n), rng.normal(size=n)]).astype(float)
    y = (design(X)[:, 0] + X[:, 1] + rng.normal(size=n) > 0).astype(int)
    y[:6] = [0, 1, 0, 1, 0, 1]
    return LogisticModel(
        LogisticFit.minimised(TrainingSet(X, y), design, Penalty.fixed(rng.choice([0.3, 1.0])), None, 0.5)
    )


@pytest.mark.parametrize("group", range(11))
def test_certificates_of_binned_models_hold_for_every_subset(group: int) -> None:
    closed = 0
    for seed in range(20 * group, 20 * group + 20):
        model, k = _binned(seed), 1 + seed % 2
        promise = Certified(model, k)
        if promise.impossible() is not None:
            continue
        closed += 1
        rng = np.random.default_rng(1000 + seed)
        points = np.column_stack([rng.integers(0, 12, 6), rng.normal(size=6)]).astype(float)
        rows, images = model.design(model.train.X), model.design(points)
        truth = lowest_scores(model, points, k, design=rows, images=images)
        assert (promise.bound(points) <= truth + 1e-9).all()
        reading = promise.read(points)
        np.testing.assert_allclose(reading.values, promise.bound(points), atol=1e-9)
        slopes, constants = reading.cuts(model.lifted(points))
        everywhere = promise.read(model.train.X).values  # a cut is never below the promise, wherever it is read
        assert (model.lifted(model.train.X) @ slopes.T + constants >= everywhere[:, None] - 1e-9).all()
    assert closed >= 10


@pytest.mark.parametrize("promise", ["certified", "retrained"])
@pytest.mark.parametrize("seed", range(3))
def test_answers_of_binned_models_survive_every_subset(seed: int, promise: str) -> None:
    model, k = _binned(seed, n=30), 2
    schema = FeatureSchema.free(model.train.columns).edit(model.train.columns[0], kind="integer", lower=0, upper=11)
    explainer = Rocerf(model, k, promise=promise, schema=schema, cost="l1")
    people = model.train.X[model.predict(model.train.X) == 0][:6]
    recourses = explainer.explain(people)
    assert recourses.answered.any()
    points = recourses.matrix[recourses.answered]
    truth = lowest_scores(model, points, k, design=model.design(model.train.X), images=model.design(points))
    if promise == "certified":
        assert (truth >= recourses.margins[recourses.answered] - 1e-9).all()
    assert (truth >= 0).all()
    assert (recourses.gaps[recourses.answered] == 0).all()  # type: ignore[index]


#: What is done to the numbers.
KINDS: dict[str, Any] = {
    "bins": KBinsDiscretizer(4, quantile_method="averaged_inverted_cdf", encode="onehot-dense"),
    "logarithm": make_pipeline(FunctionTransformer(lambda X: np.log1p(X.astype(float))), StandardScaler()),
    "splines": make_pipeline(StandardScaler(), SplineTransformer(n_knots=3)),
}


@cache
def _explained(kind: str, promise: str, cost: str = "l1", k: int = 3) -> tuple[Rocerf, Any, pd.DataFrame, Any, Any]:
    frame, y = applicants(200)
    pipeline = fitted(make_pipeline(columns(KINDS[kind], ONE_HOT), classifier()), frame, y)
    model = model_of(pipeline, frame, y)
    explainer = Rocerf(model, 0 if promise == "plain" else k, promise=promise, cost=cost)
    denied = frame[pipeline.predict(frame) == 0].head(4)
    return explainer, pipeline, frame, y, explainer.explain(denied)


@pytest.mark.parametrize(
    ("kind", "promise"),
    [("bins", "retrained"), ("logarithm", "retrained"), ("splines", "first_order"), ("bins", "plain")],
)
def test_points_are_accepted_by_the_pipeline_itself_refitted_without_the_worst_rows(kind: str, promise: str) -> None:
    explainer, pipeline, frame, y, recourses = _explained(kind, promise)
    assert recourses.answered.all()
    points = recourses.points
    assert (pipeline.predict(points) == 1).all()
    if promise != "retrained":
        return
    images, at = pipeline[:-1].transform(frame), pipeline[:-1].transform(points)
    attacks = Adversary(explainer.model, explainer.k, effort="thorough", seed=5).attack_all(recourses.matrix)
    for person, rows in enumerate(attacks.deleted_rows):
        again = classifier().fit(np.delete(images, rows, axis=0), np.delete(y.to_numpy(), rows))
        assert again.decision_function(at[[person]])[0] >= -1e-7


@pytest.mark.parametrize("cost", ["l2", "percentile"])
def test_bins_under_other_costs(cost: str) -> None:
    _, pipeline, _, _, recourses = _explained("bins", "retrained", cost)
    assert recourses.answered.all()
    assert (pipeline.predict(recourses.points) == 1).all()
    assert (recourses.gaps == 0).all()


def test_a_saved_explainer_of_bins_answers_the_same(tmp_path: Any) -> None:
    explainer, _, frame, _, recourses = _explained("bins", "retrained")
    explainer.save(tmp_path / "explainer")
    again = Rocerf.load(tmp_path / "explainer").explain(frame.loc[recourses.index])
    np.testing.assert_allclose(again.matrix, recourses.matrix)
    letters = explainer.letters(recourses, valid_until=date(2030, 1, 1))
    assert all(letter.to_text() for letter in letters)


def test_forgetting_rows_makes_the_bins_anew() -> None:
    explainer, _, frame, _, _ = _explained("bins", "retrained")
    later = explainer.forget(frame.index[:20])
    assert len(later.model.train) == len(frame) - 20
    assert later.explain(frame.iloc[20:24]).statuses


def test_methods_that_move_along_slopes_are_refused_with_the_way_out() -> None:
    explainer, _, frame, _, _ = _explained("bins", "retrained")
    for preset in ("corrected", "authors"):
        with pytest.raises(rocerf.errors.UnsupportedModelError, match=r"bins or curves.*'margin'"):
            rocerf.baselines.Roar(explainer.model, preset=preset).explain(frame.head(3))


def test_solvers_that_need_slopes_are_refused_with_the_way_out() -> None:
    explainer, *_ = _explained("bins", "first_order")
    for solver in ("penalty", "sequential"):
        with pytest.raises(rocerf.errors.OptionError, match=r"cutting_plane.*no slopes.*auto"):
            Rocerf(explainer.model, 2, promise="first_order", solver=solver)
