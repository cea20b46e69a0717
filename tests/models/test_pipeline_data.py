"""Pipelines on random tables and on the raw data sets; pipelines that are not affine, as estimators."""

from __future__ import annotations

from inspect import signature
from typing import Any

import hypothesis.strategies as st
import numpy as np
import pandas as pd
import pytest
from hypothesis import given, settings
from sklearn.cluster import KMeans
from sklearn.compose import ColumnTransformer
from sklearn.ensemble import GradientBoostingClassifier, HistGradientBoostingClassifier
from sklearn.impute import KNNImputer, SimpleImputer
from sklearn.linear_model import LinearRegression, LogisticRegression, LogisticRegressionCV, SGDClassifier
from sklearn.model_selection import FixedThresholdClassifier
from sklearn.neighbors import KNeighborsClassifier
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import (
    KBinsDiscretizer,
    MaxAbsScaler,
    MinMaxScaler,
    OneHotEncoder,
    OrdinalEncoder,
    RobustScaler,
    StandardScaler,
)
from sklearn.svm import LinearSVC

import rocerf
from length import share
from pipelines import (
    NUMBERS,
    ONE_HOT,
    TEXTS,
    applicants,
    classifier,
    columns,
    fitted,
    log_odds,
    model_of,
    refitted_from_scratch,
    usual,
)
from rocerf import FeatureSchema, LogisticModel
from rocerf.data import adult, german
from rocerf.data.frames import Frames
from rocerf.data.schema import Feature
from rocerf.data.tables import split_rows
from rocerf.errors import DataError, ModelError, UnsupportedModelError
from rocerf.models.sklearn.pipeline_estimator import stand_ins
from rocerf.promises import Simulated


def test_numbers_of_single_precision() -> None:
    frame, y = applicants()
    narrow = frame.astype({"income": "float32"})
    pipeline = fitted(usual(), narrow, y)
    model = model_of(pipeline, narrow, y, preprocessing="refitted")
    np.testing.assert_allclose(model.score(narrow), log_odds(pipeline, narrow), atol=1e-4)


@st.composite
def _tables(draw: st.DrawFn) -> tuple[pd.DataFrame, np.ndarray, Any]:
    """A table of up to five columns of random kinds with an affine transformer for each."""
    rng = np.random.default_rng(draw(st.integers(0, 2**32 - 1)))
    n, frame, parts, pull = 60, {}, [], rng.normal(size=60)
    scalers = [StandardScaler(), MinMaxScaler(), RobustScaler(), MaxAbsScaler(), "passthrough", "drop"]
    encoders = [ONE_HOT, OneHotEncoder(drop="first"), OneHotEncoder(sparse_output=False), OrdinalEncoder()]
    kinds = draw(st.lists(st.sampled_from(["float", "int", "bool", "text", "gaps", "Int64"]), min_size=1, max_size=5))
    for place, kind in enumerate(kinds):
        name = f"{kind}-{place}"
        if kind == "text":
            frame[name] = rng.choice(list("abcde")[: draw(st.integers(2, 5))], n)
            parts.append((name, draw(st.sampled_from(encoders)), [name]))
            continue
        values = (rng.normal(size=n) + draw(st.sampled_from([0.0, 1.0, 20.0]))) * 10.0 ** draw(st.integers(-3, 4))
        pull += values / np.abs(values).max()
        scaler = draw(st.sampled_from(scalers))
        if kind in ("gaps", "Int64"):
            column = pd.Series(values)
            column[rng.random(n) < 0.2] = np.nan
            frame[name] = column.round().astype("Int64") if kind == "Int64" else column
            filler = SimpleImputer(strategy=draw(st.sampled_from(["mean", "median", "most_frequent"])))
            scaler = make_pipeline(filler, "passthrough" if scaler == "drop" else scaler)
        else:
            frame[name] = values > 0 if kind == "bool" else values.round().astype(int) if kind == "int" else values
        parts.append((name, scaler, [name]))
    transformer = ColumnTransformer(parts, sparse_threshold=draw(st.sampled_from([0.0, 1.0])))
    return pd.DataFrame(frame), (pull > np.median(pull)).astype(int), transformer


@pytest.mark.slow
@settings(max_examples=share(60), deadline=None)
@given(_tables())
def test_random_tables_and_pipelines(made: tuple[pd.DataFrame, np.ndarray, Any]) -> None:
    frame, y, transformer = made
    if all(part == "drop" for _, part, _ in transformer.transformers):
        return
    pipeline = fitted(make_pipeline(transformer, StandardScaler(with_mean=False), classifier()), frame, y)
    model = model_of(pipeline, frame, y, preprocessing="refitted")
    own = log_odds(pipeline, frame)
    np.testing.assert_allclose(model.score(frame), own, atol=1e-6)
    np.testing.assert_allclose(model.score(model.train.X), own, atol=1e-6)
    np.testing.assert_allclose(model.deployed_score(model.train.X), own, atol=1e-6)
    gone = [0, 7, 13]
    truth = refitted_from_scratch(pipeline, frame, pd.Series(y), gone)
    left = frame.drop(index=gone)
    np.testing.assert_allclose(model.without(gone).score(left), log_odds(truth, left), atol=1e-5)


# --- the raw data sets --------------------------------------------------------------------------------


def _german() -> tuple[pd.DataFrame, pd.Series, pd.DataFrame]:
    table = german.raw_table()
    y = table.pop(german.LABEL)
    train, test = split_rows("german")
    return table.iloc[train], y.iloc[train], table.iloc[test]


def _adult() -> tuple[pd.DataFrame, pd.Series, pd.DataFrame]:
    table = adult.text_table()
    y = table.pop(adult.LABEL).str.startswith(">50K").astype(int)
    numbers = ["age", "fnlwgt", "education-num", "capital-gain", "capital-loss", "hours-per-week"]
    table = table.astype(dict.fromkeys(numbers, int))
    train, test = split_rows("adult")
    return table.loc[train], y.loc[train], table.loc[test]


@pytest.mark.parametrize("name", ["german", pytest.param("adult", marks=pytest.mark.slow)])
def test_raw_data_sets(name: str) -> None:
    frame, y, test = {"german": _german, "adult": _adult}[name]()
    numbers = frame.select_dtypes("number").columns.tolist()
    texts = [column for column in frame if column not in numbers]
    encode = ColumnTransformer([("numbers", StandardScaler(), numbers), ("texts", ONE_HOT, texts)])
    pipeline = fitted(make_pipeline(encode, classifier()), frame, y)
    model = model_of(pipeline, frame, y, preprocessing="refitted")
    assert len(model.frozen.train.columns) == {"german": 61, "adult": 103}[name]
    np.testing.assert_array_equal(model.predict(test), pipeline.predict(test))
    known = np.isfinite(model.score(test))  # one country of Adult is in no training row
    assert (~known).sum() == {"german": 0, "adult": 1}[name]
    test = test[known]
    np.testing.assert_allclose(model.score(test), log_odds(pipeline, test), atol=1e-6)
    gone = frame.index[:40]
    truth = log_odds(refitted_from_scratch(pipeline, frame, y, gone), test)
    frozen = model.frozen.without(gone).score(test)
    np.testing.assert_allclose(model.without(gone).score(test), truth, atol=1e-6)
    assert np.abs(frozen - truth).max() > 1e-6  # which of the two is meant can be told


# --- what is not affine, as an estimator ----------------------------------------------------------------


@pytest.mark.parametrize("last", [KNeighborsClassifier(3), GradientBoostingClassifier(n_estimators=10, random_state=0)])
def test_other_pipelines_become_estimators_over_schema_space(last: Any, tmp_path: Any) -> None:
    frame, y = applicants(120)
    bins = KBinsDiscretizer(3, encode="ordinal", quantile_method="averaged_inverted_cdf")
    pipeline = fitted(make_pipeline(columns(bins, ONE_HOT), last), frame, y)
    model = rocerf.from_pipeline(pipeline, frame, y, otherwise="estimator")
    assert isinstance(model, rocerf.EstimatorModel)
    assert model.schema is not None
    assert model.schema.names == tuple(frame.columns)
    assert "Pipeline" in repr(model)
    np.testing.assert_array_equal(model.predict(frame), pipeline.predict(frame))
    np.testing.assert_array_equal(model.score(frame), model.score(model.train.X))
    gone = frame.index[:5]
    truth = refitted_from_scratch(pipeline, frame, y, gone).predict(frame)
    np.testing.assert_array_equal(model.without(gone).predict(frame), truth)
    model.save(tmp_path / "model.npz")
    again = rocerf.EstimatorModel.load(tmp_path / "model.npz")
    np.testing.assert_array_equal(again.score(frame), model.score(frame))
    people = frame.iloc[:3].astype({"job": object})
    people.iloc[1, 1] = "astronaut"
    assert np.isnan(again.score(people)).tolist() == [False, True, False]


def test_an_affine_pipeline_stays_logistic() -> None:
    frame, y = applicants(120)
    assert isinstance(rocerf.from_pipeline(fitted(usual(), frame, y), frame, y, otherwise="estimator"), LogisticModel)


@pytest.mark.parametrize(
    "last",
    [
        LogisticRegression(C=np.inf, max_iter=2000),  # one-hot columns add up to one: no single optimum
        SGDClassifier(loss="log_loss", alpha=1e-6, random_state=0),
        SGDClassifier(loss="modified_huber", random_state=0),
    ],
    ids=["no penalty", "descent astray", "another loss"],
)
def test_logistic_regressions_that_cannot_be_followed_exactly_become_estimators(last: Any) -> None:
    frame, y = applicants(120)
    pipeline = fitted(make_pipeline(columns(StandardScaler(), ONE_HOT), last), frame, y)
    with pytest.raises(ModelError):
        rocerf.from_pipeline(pipeline, frame, y)
    model = rocerf.from_pipeline(pipeline, frame, y, otherwise="estimator")
    assert isinstance(model, rocerf.EstimatorModel)
    np.testing.assert_array_equal(model.predict(frame), pipeline.predict(frame))


def test_what_a_search_chose_may_have_an_l1_penalty() -> None:
    frame, y = applicants(120)
    newer = "use_legacy_attributes" in signature(LogisticRegressionCV).parameters  # scikit-learn 1.7 says it otherwise
    asked: dict[str, Any] = {"l1_ratios": (1.0,), "use_legacy_attributes": False} if newer else {"penalty": "l1"}
    last = LogisticRegressionCV(cv=2, solver="liblinear", scoring="accuracy", tol=1e-8, **asked)
    pipeline = fitted(make_pipeline(columns(StandardScaler(), ONE_HOT), last), frame, y)
    model = rocerf.from_pipeline(pipeline, frame, y)
    assert model.kinked
    np.testing.assert_allclose(model.score(frame), pipeline.decision_function(frame), atol=1e-4)


@pytest.mark.slow
@pytest.mark.parametrize(
    ("numbers", "last"),
    [
        (SimpleImputer(add_indicator=True), GradientBoostingClassifier(n_estimators=10, random_state=0)),
        (KNNImputer(), classifier()),
        (SimpleImputer(), GradientBoostingClassifier(n_estimators=10, random_state=0)),
        ("passthrough", HistGradientBoostingClassifier(max_iter=10, random_state=0)),
    ],
    ids=["indicator", "neighbours", "filled, trees", "trees"],
)
def test_an_estimator_deals_with_missing_numbers_in_its_own_way(numbers: Any, last: Any, tmp_path: Any) -> None:
    gaps, y = applicants(160, missing=True)
    gaps["cars"] = gaps["cars"].astype("float" if numbers == "passthrough" else "Int64").mask(np.arange(160) % 13 == 0)
    texts = OneHotEncoder(handle_unknown="ignore", sparse_output=False)
    pipeline = fitted(make_pipeline(columns(numbers, texts), last), gaps, y)
    model = rocerf.from_pipeline(pipeline, gaps, y, otherwise="estimator")
    assert isinstance(model, rocerf.EstimatorModel)
    assert model.frames is not None
    assert set(model.frames.fills) == {"income", "cars"}
    assert np.isfinite(model.train.X).all()
    chance = pipeline.predict_proba(gaps)[:, 1]
    np.testing.assert_allclose(model.score(gaps), np.log(chance / (1 - chance)), atol=1e-9)
    np.testing.assert_array_equal(model.score(model.train.X), model.score(gaps))
    gone = gaps.index[:9]  # fitted again, it sees the gaps as gaps
    truth = refitted_from_scratch(pipeline, gaps, y, gone).predict_proba(gaps)[:, 1]
    np.testing.assert_allclose(model.without(gone).score(gaps), np.log(truth / (1 - truth)), atol=1e-9)
    model.save(tmp_path / "model.npz")
    np.testing.assert_array_equal(rocerf.EstimatorModel.load(tmp_path / "model.npz").score(gaps), model.score(gaps))


@pytest.mark.slow
def test_recourse_without_a_number_that_is_missing_is_what_the_pipeline_says(monkeypatch: pytest.MonkeyPatch) -> None:
    # It is not asked how good the margin is, nor how cheap the points are.
    monkeypatch.setattr("rocerf.promises.simulated.PEOPLE_SEARCHED", 3)
    monkeypatch.setattr("rocerf.promises.margin_choice.HALVINGS", 0)
    monkeypatch.setattr("rocerf.recourse.solvers.search.BUDGET", 600)
    gaps, y = applicants(160, missing=True)
    pipeline = fitted(make_pipeline(columns(SimpleImputer(add_indicator=True), ONE_HOT), classifier()), gaps, y)
    model = rocerf.from_pipeline(pipeline, gaps, y, otherwise="estimator")
    schema = model.schema.edit("income", direction="fixed")
    people = gaps[(pipeline.predict(gaps) == 0) & gaps["income"].isna()][:2]
    few = Simulated(validity=0.8, shaping=5, choosing=5, checking=5)
    found = rocerf.Rocerf(model, 2, promise=few, schema=schema).explain(people)
    assert found.answered.any()
    points = found.points[found.answered]
    assert points["income"].isna().all()
    assert (pipeline.predict(points) == 1).all()


@pytest.mark.parametrize(
    ("make", "said"),
    [
        (lambda f, y: None, "got NoneType"),
        (lambda f, y: make_pipeline(columns(StandardScaler(), ONE_HOT), LinearSVC()), "not fitted; call its fit"),
        (
            lambda f, y: fitted(make_pipeline(columns(StandardScaler(), ONE_HOT), LinearRegression()), f, y),
            "got Linear",
        ),
        (lambda f, y: fitted(make_pipeline(columns(StandardScaler(), ONE_HOT), KMeans(2)), f, y), "got KMeans"),
    ],
)
def test_what_cannot_become_an_estimator(make: Any, said: str) -> None:
    frame, y = applicants(60)
    pipeline = make(frame, y)
    with pytest.raises(UnsupportedModelError, match=said):
        rocerf.from_pipeline(pipeline, frame, y, otherwise="estimator")


def test_an_estimator_must_take_the_rows_given() -> None:
    frame, y = applicants(60)
    pipeline = fitted(usual(), frame, y)
    with pytest.raises(
        UnsupportedModelError, match=r"takes the rows it was fitted on, got a Pipeline that cannot.*age"
    ):
        rocerf.from_pipeline(pipeline, frame.drop(columns="age"), y, otherwise="estimator")


def test_a_threshold_of_its_own_holds() -> None:
    frame, y = applicants(160)
    strict = FixedThresholdClassifier(usual(), threshold=0.8).fit(frame, y)
    taken = rocerf.from_pipeline(strict, frame, y)
    assert isinstance(taken, rocerf.LogisticModel)
    np.testing.assert_array_equal(taken.predict(frame), strict.predict(frame))
    with pytest.raises(UnsupportedModelError, match=r"has itself, 0.8, got threshold=0.6; leave it out"):
        rocerf.from_pipeline(strict, frame, y, threshold=0.6)
    with pytest.raises(UnsupportedModelError, match=r"has itself, 0.8, got threshold=0.6"):
        rocerf.from_pipeline(strict, frame, y, otherwise="estimator", threshold=0.6)
    model = rocerf.from_pipeline(strict, frame, y, otherwise="estimator", threshold=0.8)
    np.testing.assert_array_equal(model.predict(frame), strict.predict(frame))
    inner = model_of(strict.estimator_, frame, y, threshold=0.8)
    np.testing.assert_array_equal(inner.predict(frame), strict.predict(frame))


def test_a_threshold_at_the_end_of_a_pipeline_must_be_said_too() -> None:
    frame, y = applicants(160)
    last = FixedThresholdClassifier(classifier(), threshold=0.8)
    strict = fitted(make_pipeline(columns(StandardScaler(), ONE_HOT), make_pipeline(MinMaxScaler(), last)), frame, y)
    with pytest.raises(UnsupportedModelError, match=r"has itself, 0.8, got threshold=0.6"):
        rocerf.from_pipeline(strict, frame, y, otherwise="estimator", threshold=0.6)
    model = rocerf.from_pipeline(strict, frame, y, otherwise="estimator", threshold=0.8)
    np.testing.assert_array_equal(model.predict(frame), strict.predict(frame))


@pytest.mark.parametrize(
    ("values", "kind", "between"),
    [
        ([1.0, 2.0, 4.0], "continuous", (2.0, 4.0)),
        ([1.0, 4.0, 4.0], "continuous", (1.0, 4.0)),  # the median is the largest
        ([0.0, 1e-6, 1e-6], "continuous", (0.0, 1e-6)),
        ([1e17, 2e17, 2e17], "continuous", (1e17, 2e17)),
        ([-1e308, 1e308], "continuous", (-1e308, 1e308)),
        ([1e17, 1e17], "continuous", (0.0, 1e17)),
        ([-30.0, -30.0], "integer", (-30.0, 0.0)),
        ([0.0, 0.0], "continuous", (0.0, 1.0)),
        ([0.0, 1.0, 1.0], "binary", (0.0, 1.0)),
        ([1.0], "binary", (0.0, 1.0)),
        ([1.0, np.nextafter(1.0, 2.0)], "continuous", (1.0, 1.0 + 1e-12)),
    ],
)
def test_what_stands_for_a_missing_number_is_nobody_s_and_of_their_size(values: Any, kind: str, between: Any) -> None:
    frames = Frames(FeatureSchema((Feature("a", kind),)), {"a": "float64"})
    X = np.array([[np.nan], *([value] for value in values)])
    number = stand_ins(X, np.isnan(X), frames)["a"]
    assert between[0] < number < between[1]
    assert number not in values


def test_a_column_without_any_number_has_no_stand_in() -> None:
    frame, y = applicants(60)
    frame["income"] = np.nan
    numbers = SimpleImputer(keep_empty_features=True)
    last = GradientBoostingClassifier(n_estimators=2)
    pipeline = fitted(make_pipeline(columns(numbers, ONE_HOT), last), frame, y)
    schema = FeatureSchema.from_frame(frame.assign(income=1.5))
    with pytest.raises(DataError, match="numbers in 'income' in some of the 60 training rows, got none; leave"):
        rocerf.from_pipeline(pipeline, frame, y, schema=schema, otherwise="estimator")


def test_numbers_and_texts_of_the_helpers_cover_the_table() -> None:
    assert sorted(NUMBERS + TEXTS) == sorted(applicants(5)[0].columns)


@pytest.mark.parametrize("last", [GradientBoostingClassifier(n_estimators=5, random_state=0), LinearSVC()])
def test_an_estimator_that_loses_a_category_refuses_it(last: Any) -> None:
    frame, y = applicants(60)
    frame["job"] = np.where(np.arange(60) < 2, "smith", "clerk")
    pipeline = fitted(make_pipeline(columns(StandardScaler(), OneHotEncoder()), last), frame, y)
    model = rocerf.from_pipeline(pipeline, frame, y, otherwise="estimator")
    gone = frame.index[:2]
    later, truth = model.without(gone), refitted_from_scratch(pipeline, frame, y, gone)
    with pytest.raises(ValueError, match="unknown categories"):
        truth.predict(frame)
    assert later.predict(frame)[:2].tolist() == [0, 0]
    np.testing.assert_array_equal(later.predict(frame)[2:], truth.predict(frame.iloc[2:]))
    scores = model.refitted([np.asarray(gone)]).scores(model.train.X)[0]
    assert np.isfinite(scores).all()
    assert (scores[:2] < -10).all()
