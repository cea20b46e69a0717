"""Pipelines asked about many points at once answer as they do one by one."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from sklearn.calibration import CalibratedClassifierCV
from sklearn.compose import ColumnTransformer
from sklearn.ensemble import RandomForestClassifier
from sklearn.impute import SimpleImputer
from sklearn.linear_model import LogisticRegression
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import (
    FunctionTransformer,
    KBinsDiscretizer,
    MinMaxScaler,
    OneHotEncoder,
    PolynomialFeatures,
    QuantileTransformer,
    StandardScaler,
)

import rocerf
from pipelines import NUMBERS, TEXTS, applicants, columns, fitted
from rocerf.models.sklearn.blockwise import COMPARED_KIN, Kin, Quick
from rocerf.models.sklearn.bulk import asked_in_bulk

BLOCKS = ColumnTransformer(
    [
        ("products", make_pipeline(StandardScaler(), PolynomialFeatures(2)), NUMBERS[:2]),
        ("texts", OneHotEncoder(handle_unknown="ignore"), TEXTS),
    ],
    remainder="passthrough",
)


@pytest.mark.parametrize(
    "pipeline",
    [
        make_pipeline(BLOCKS, CalibratedClassifierCV(LogisticRegression(max_iter=2000), cv=2)),
        CalibratedClassifierCV(make_pipeline(BLOCKS, LogisticRegression(max_iter=2000)), cv=2),
        make_pipeline(BLOCKS, RandomForestClassifier(5, random_state=0)),
    ],
    ids=["calibrated inside", "calibrated around", "forest"],
)
def test_many_models_say_in_bulk_what_each_says_alone(pipeline: Any) -> None:
    frame, y = applicants(200)
    model = rocerf.from_pipeline(fitted(pipeline, frame, y), frame, y, otherwise="estimator")
    models = model.refitted([frame.index[:5], frame.index[5:10]])
    rng = np.random.default_rng(0)
    for _ in range(3):  # rows seen before, and new ones
        X = model.train.X[rng.integers(0, 200, 150)]
        X[:, 0] = rng.integers(20, 70, 150)
        alone = np.array([model.as_retrained(models, place).score(X) for place in range(2)])
        np.testing.assert_allclose(models.scores(X), alone, rtol=1e-9, atol=1e-9)


def test_of_refits_a_few_are_compared_and_the_others_believed() -> None:
    frame, y = applicants(200)
    blocks = columns(StandardScaler(), OneHotEncoder(handle_unknown="ignore"))
    pipeline = fitted(CalibratedClassifierCV(make_pipeline(blocks, LogisticRegression()), cv=2), frame, y)
    model = rocerf.from_pipeline(pipeline, frame, y, otherwise="estimator")
    models = model.refitted([frame.index[place : place + 3] for place in range(COMPARED_KIN + 2)])
    scores = models.scores(model.train.X)
    compared = [bool(estimator._quick._trusted) for estimator in models.estimators]
    assert compared == [True] * COMPARED_KIN + [False] * 2
    alone = np.array([model.as_retrained(models, place).deployed_score(model.train.X) for place in range(len(models))])
    np.testing.assert_allclose(scores, alone, rtol=1e-9, atol=1e-9)


def test_where_one_refit_says_something_else_every_one_is_compared() -> None:
    kin = Kin()
    for same in [True] * COMPARED_KIN:
        assert not kin.trusted("predict_proba")
        kin.compared("predict_proba", same=same)
    assert kin.trusted("predict_proba")
    assert not kin.trusted("decision_function")
    kin.compared("predict_proba", same=False)
    assert not kin.trusted("predict_proba")


def test_refits_that_lost_a_category_or_a_range_share_nothing_with_the_others() -> None:
    frame, y = applicants(200)
    bins = KBinsDiscretizer(4, encode="onehot", strategy="uniform")
    blocks = columns(bins, OneHotEncoder(handle_unknown="ignore"))
    around = CalibratedClassifierCV(make_pipeline(blocks, LogisticRegression(max_iter=2000)), cv=2)
    pipeline = fitted(around, frame, y)
    model = rocerf.from_pipeline(pipeline, frame, y, otherwise="estimator")
    rare = frame.index[(frame[TEXTS[0]] == frame[TEXTS[0]].iloc[0]).to_numpy()]
    oldest = frame.index[(frame[NUMBERS[0]] >= frame[NUMBERS[0]].quantile(0.8)).to_numpy()]
    models = model.refitted([frame.index[:2], rare, oldest, frame.index[2:4]])
    alone = np.array([model.as_retrained(models, place).deployed_score(model.train.X) for place in range(len(models))])
    np.testing.assert_allclose(models.scores(model.train.X), alone, rtol=1e-9, atol=1e-9)


def asked(pipeline: Any, frame: Any) -> tuple[Any, Any]:
    """What answers for the pipeline, and whether that goes the shorter way."""
    found = Quick(pipeline)
    with asked_in_bulk():
        np.testing.assert_allclose(found.predict_proba(frame), pipeline.predict_proba(frame), rtol=1e-9)
    return found, found._ways["predict_proba"] is not None


@pytest.mark.parametrize(
    "steps",
    [
        make_pipeline(SimpleImputer(strategy="median"), MinMaxScaler()),
        make_pipeline(FunctionTransformer(np.log1p), StandardScaler(with_mean=False)),
        make_pipeline(StandardScaler(), PolynomialFeatures(3, interaction_only=True)),
        KBinsDiscretizer(4, encode="onehot", strategy="uniform"),
        KBinsDiscretizer(4, encode="ordinal", strategy="uniform"),
        FunctionTransformer(lambda table: table.to_numpy() / 7.0),
        QuantileTransformer(n_quantiles=20),
    ],
    ids=["filled", "logarithm", "products", "bins", "ordinal bins", "own function", "itself"],
)
@pytest.mark.parametrize("unknown", ["ignore", "error"])
def test_the_shorter_way_leads_to_the_same(steps: Any, unknown: str) -> None:
    frame, y = applicants(200)
    pipeline = make_pipeline(
        columns(steps, OneHotEncoder(handle_unknown=unknown)), LogisticRegression(max_iter=2000)
    ).fit(frame, y)
    _, shorter = asked(pipeline, frame)
    assert shorter


def test_a_transformer_that_looks_at_all_rows_is_asked_as_it_is() -> None:
    frame, y = applicants(200)
    centred = FunctionTransformer(lambda X: X - X.mean(axis=0))
    pipeline = make_pipeline(columns(centred, OneHotEncoder()), LogisticRegression()).fit(frame, y)
    found = Quick(pipeline)
    with asked_in_bulk():
        np.testing.assert_array_equal(found.predict_proba(frame), pipeline.predict_proba(frame))
    assert found._ways["predict_proba"] is None


def test_values_that_are_equal_and_of_two_types_are_not_taken_for_each_other() -> None:
    frame, y = applicants(200)
    frame = frame.assign(**{TEXTS[0]: np.array([1, True] * 100, dtype=object)})
    told = FunctionTransformer(lambda table: table.map(lambda value: float(isinstance(value, bool))))
    blocks = ColumnTransformer([("told", told, [TEXTS[0]]), ("numbers", StandardScaler(), NUMBERS[:2])])
    asked(make_pipeline(blocks, LogisticRegression()).fit(frame, y), frame)


def test_a_category_that_a_model_does_not_know_is_left_to_the_model() -> None:
    frame, y = applicants(200)
    few = frame[TEXTS[0]] != frame[TEXTS[0]].iloc[0]
    pipeline = make_pipeline(columns(StandardScaler(), OneHotEncoder()), LogisticRegression()).fit(frame[few], y[few])
    with asked_in_bulk(), pytest.raises(ValueError, match="unknown categories"):
        Quick(pipeline).predict_proba(frame)


def test_what_leaves_is_judged_by_the_pipeline_as_it_is(monkeypatch: pytest.MonkeyPatch) -> None:
    frame, y = applicants(200)
    forest = RandomForestClassifier(5, max_depth=3, random_state=0)
    pipeline = make_pipeline(columns(StandardScaler(), OneHotEncoder()), forest).fit(frame, y)
    model = rocerf.from_pipeline(pipeline, frame, y, otherwise="estimator")

    def lies(self: Quick, method: str, rows: Any) -> Any:
        return np.tile([1.0, 0.0], (len(rows), 1))

    monkeypatch.setattr(Quick, "_answers", lies)
    favourable = pipeline.classes_.tolist().index(model.train.favourable)
    np.testing.assert_array_equal(model.predict(frame) == 1, pipeline.predict(frame) == pipeline.classes_[favourable])
