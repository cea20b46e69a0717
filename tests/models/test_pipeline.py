"""Pipelines taken over: the user's own pipeline, refitted by scikit-learn, is the truth."""

from __future__ import annotations

from typing import Any

import numpy as np
import pandas as pd
import pytest
from sklearn.compose import ColumnTransformer
from sklearn.decomposition import PCA
from sklearn.ensemble import GradientBoostingClassifier
from sklearn.experimental import enable_iterative_imputer  # noqa: F401
from sklearn.feature_selection import SelectKBest
from sklearn.impute import IterativeImputer, KNNImputer, SimpleImputer
from sklearn.linear_model import LogisticRegression
from sklearn.pipeline import FeatureUnion, Pipeline, make_pipeline
from sklearn.preprocessing import (
    FunctionTransformer,
    MaxAbsScaler,
    MinMaxScaler,
    OneHotEncoder,
    OrdinalEncoder,
    RobustScaler,
    StandardScaler,
)
from sklearn.tree import DecisionTreeClassifier

import rocerf
from pipelines import (
    ONE_HOT,
    TEXTS,
    applicants,
    classifier,
    columns,
    fitted,
    frozen_from_scratch,
    log_odds,
    model_of,
    refitted_from_scratch,
    usual,
)
from rocerf import FeatureSchema
from rocerf.errors import ColumnError, NotAtOptimumError, UnsupportedModelError

FILLED = make_pipeline(SimpleImputer(), StandardScaler())

#: name -> preprocessing, whether the table has missing values
AFFINE: dict[str, tuple[Any, bool]] = {
    "standard, one-hot": (columns(StandardScaler(), OneHotEncoder()), False),
    "min-max, first dropped": (columns(MinMaxScaler(), OneHotEncoder(drop="first")), False),
    "robust, dense": (columns(RobustScaler(), OneHotEncoder(sparse_output=False, handle_unknown="ignore")), False),
    "maximum, ordinal": (columns(MaxAbsScaler(), OrdinalEncoder()), False),
    "as it is, ordinal unknown": (
        columns("passthrough", OrdinalEncoder(handle_unknown="use_encoded_value", unknown_value=-1)),
        False,
    ),
    "numbers dropped": (columns("drop", OneHotEncoder(drop="if_binary")), False),
    "remainder scaled": (ColumnTransformer([("texts", ONE_HOT, TEXTS)], remainder=StandardScaler()), False),
    "remainder passed": (ColumnTransformer([("texts", ONE_HOT, TEXTS)], remainder="passthrough"), False),
    "remainder dropped": (ColumnTransformer([("numbers", StandardScaler(), ["age"])]), False),
    "nested": (
        make_pipeline(FunctionTransformer(), columns(make_pipeline(MinMaxScaler(), RobustScaler()), ONE_HOT)),
        False,
    ),
    "linear function": (columns(FunctionTransformer(lambda X: 2 * X + 1), ONE_HOT), False),
    "frames out": (columns(StandardScaler(), OneHotEncoder(sparse_output=False)).set_output(transform="pandas"), False),
    "scaled afterwards": (make_pipeline(columns("passthrough", ONE_HOT), StandardScaler(with_mean=False)), False),
    "rare joined": (columns(StandardScaler(), OneHotEncoder(min_frequency=30)), False),
    "components": (make_pipeline(columns(StandardScaler(), OneHotEncoder(sparse_output=False)), PCA(4)), False),
    "chosen": (make_pipeline(columns(StandardScaler(), ONE_HOT), SelectKBest(k=5)), False),
    "union": (columns(FeatureUnion([("a", StandardScaler()), ("b", MinMaxScaler())]), ONE_HOT), False),
    "mean, most frequent": (columns(FILLED, make_pipeline(SimpleImputer(strategy="most_frequent"), ONE_HOT)), True),
    "median, own category": (
        columns(
            SimpleImputer(strategy="median"), make_pipeline(SimpleImputer(strategy="constant", fill_value="?"), ONE_HOT)
        ),
        True,
    ),
    "missing encoded, filled after": (columns(make_pipeline(StandardScaler(), SimpleImputer()), ONE_HOT), True),
}


@pytest.mark.slow
@pytest.mark.parametrize("intercept", [True, False])
@pytest.mark.parametrize("name", AFFINE)
def test_every_affine_pipeline_scores_and_retrains_as_itself(name: str, intercept: bool) -> None:
    preprocessing, missing = AFFINE[name]
    frame, y = applicants(missing=missing)
    pipeline = fitted(make_pipeline(preprocessing, classifier(fit_intercept=intercept)), frame, y)
    model = model_of(pipeline, frame, y)
    own = log_odds(pipeline, frame)
    np.testing.assert_allclose(model.score(frame), own, atol=1e-7)
    np.testing.assert_allclose(model.deployed_score(frame), own, atol=1e-12)
    np.testing.assert_allclose(model.deployed_score(model.train.X), own, atol=1e-12)
    np.testing.assert_array_equal(model.predict(frame), (own >= 0).astype(int))
    again = model.with_preprocessing("refitted")
    for trial in range(2):
        gone = np.random.default_rng(trial).choice(frame.index, 9, replace=False)
        np.testing.assert_allclose(
            model.without(gone).score(frame), frozen_from_scratch(pipeline, frame, y, gone), atol=1e-6
        )
        truth = log_odds(refitted_from_scratch(pipeline, frame, y, gone), frame)
        np.testing.assert_allclose(again.without(gone).score(frame), truth, atol=1e-6)


def test_points_live_in_schema_space() -> None:
    frame, y = applicants()
    model = model_of(fitted(usual(), frame, y), frame, y)
    assert model.train.columns == (
        *("age", "job=clerk", "job=driver", "job=nurse", "job=smith", "income", "home=own", "home=rent"),
        *("cars", "member"),
    )
    assert model.train.ids.tolist() == frame.index.tolist()
    assert model.schema is not None
    assert model.schema.names == tuple(frame.columns)
    assert (model.frames, model.preprocessing) == (model.frames, "frozen")
    np.testing.assert_array_equal(
        model.train.X[:, 1:5], frame["job"].to_numpy()[:, None] == ["clerk", "driver", "nurse", "smith"]
    )
    slopes, _ = model.halfspaces(model.theta)
    assert slopes.shape == (10,)
    # One-hot columns keep their own coefficients: the map found is the sparsest one.
    np.testing.assert_allclose(slopes[1:5], model.theta[4:8])


def test_people_come_in_the_users_columns_in_those_of_schema_space_or_as_numbers() -> None:
    frame, y = applicants()
    model = model_of(fitted(usual(), frame, y), frame, y)
    X = model.train.X
    shuffled = frame[frame.columns[::-1]].assign(note="aside")
    for people in (X, pd.DataFrame(X, columns=model.train.columns), X.tolist(), shuffled):
        np.testing.assert_array_equal(model.matrix(people), X)
        np.testing.assert_array_equal(model.deployed_score(people), model.deployed_score(frame))
    with pytest.raises(ColumnError, match="none named 'age'"):
        model.matrix(frame.drop(columns="age"))


def test_unusable_people_score_nan() -> None:
    frame, y = applicants()
    model = model_of(fitted(usual(), frame, y), frame, y)
    people = frame.iloc[:5].astype({"age": float, "job": object})
    people.iloc[1, 0], people.iloc[2, 1], people.iloc[3, 1] = np.nan, "astronaut", None
    for scores in (model.score(people), model.deployed_score(people)):
        assert np.isnan(scores).tolist() == [False, True, True, True, False]
    assert model.predict(people)[1:4].tolist() == [0, 0, 0]
    assert np.isnan(model.deployed_score(np.full((2, 10), np.nan))).all()


def test_points_that_the_users_columns_cannot_hold_are_scored_by_the_map() -> None:
    frame, y = applicants()
    model = model_of(fitted(usual(), frame, y), frame, y)
    points = model.train.X[:3].copy()
    points[0, 1:5] = 0.25  # a mixture of jobs
    points[1, 0] += 0.5  # half a year
    np.testing.assert_allclose(model.deployed_score(points), model.score(points), atol=1e-7)


def test_missing_numbers_are_what_the_pipeline_fills_in() -> None:
    frame, y = applicants(missing=True)
    texts = make_pipeline(SimpleImputer(strategy="most_frequent"), ONE_HOT)
    pipeline = fitted(make_pipeline(columns(FILLED, texts), classifier()), frame, y)
    model = model_of(pipeline, frame, y)
    assert model.frames is not None
    assert model.frames.fills["income"] == pytest.approx(frame["income"].mean(), rel=1e-12)
    assert model.frames.fills["age"] == pytest.approx(frame["age"].mean(), rel=1e-12)  # no training row needed it
    assert "job=missing" in model.train.columns
    people = frame.iloc[:20].astype({"age": float})
    people.iloc[4, 0] = np.nan
    np.testing.assert_allclose(model.deployed_score(people), log_odds(pipeline, people))
    np.testing.assert_allclose(model.score(people), log_odds(pipeline, people), atol=1e-7)


@pytest.mark.parametrize("imputer", [KNNImputer(), IterativeImputer(random_state=0)])
@pytest.mark.parametrize("preprocessing", ["frozen", "refitted"])
def test_what_is_filled_in_from_other_columns_has_no_number(imputer: Any, preprocessing: str) -> None:
    frame, y = applicants()
    numbers = frame[["age", "income", "cars"]].astype(float)
    scaled = make_pipeline(StandardScaler(), imputer)
    mixed = ColumnTransformer([("mixed", scaled, ["age", "income"]), ("filled", SimpleImputer(), ["cars"])])
    model = model_of(fitted(make_pipeline(mixed, classifier()), numbers, y), numbers, y, preprocessing=preprocessing)
    for known in (model, model.without(numbers.index[:3])):
        assert known.frames is not None
        assert list(known.frames.fills) == ["cars"]
    people = numbers.head(4).copy()
    people.iloc[1, 1], people.iloc[2, 2] = np.nan, np.nan
    assert np.isnan(model.score(people)).tolist() == [False, True, False, False]
    assert model.predict(people)[1] == 0


def test_a_fill_of_zero_is_a_fill() -> None:
    frame, y = applicants()
    numbers = frame[["age", "income"]] - frame[["age", "income"]].median()
    numbers.iloc[::7, 0] = np.nan
    filled = make_pipeline(SimpleImputer(strategy="constant", fill_value=0.0), RobustScaler())
    model = model_of(fitted(make_pipeline(filled, classifier()), numbers, y), numbers, y)
    assert model.frames is not None
    assert model.frames.fills == pytest.approx({"age": 0.0, "income": 0.0}, abs=1e-9)


def test_numbers_that_only_together_are_more_than_their_fills() -> None:
    frame, y = applicants()
    numbers = frame[["age", "income", "cars"]].astype(float)

    def counted(rows: pd.DataFrame) -> pd.DataFrame:
        filled = rows.fillna({"age": 40.0, "income": 50.0, "cars": 1.0})
        return filled.assign(alone=(rows[["age", "income"]].isna().sum(axis=1) > 1).astype(float))

    pipeline = fitted(make_pipeline(FunctionTransformer(counted), classifier()), numbers, y)
    model = model_of(pipeline, numbers, y)
    assert model.frames is not None
    assert not {"age", "income"} & set(model.frames.fills)


@pytest.mark.parametrize("marker", [None, np.nan])
@pytest.mark.parametrize("texts", [OneHotEncoder(), make_pipeline(SimpleImputer(strategy="most_frequent"), ONE_HOT)])
def test_none_and_nan_are_told_apart_as_pipelines_do(marker: Any, texts: Any) -> None:
    frame, y = applicants()
    frame["job"] = frame["job"].astype(object)
    frame.loc[frame.index[::9], "job"] = marker
    pipeline = fitted(make_pipeline(columns(StandardScaler(), texts), classifier()), frame, y)
    model = model_of(pipeline, frame, y)
    np.testing.assert_allclose(model.deployed_score(model.train.X), log_odds(pipeline, frame), atol=1e-12)


def test_columns_that_the_pipeline_ignores_have_no_slope() -> None:
    frame, y = applicants()
    pipeline = fitted(
        make_pipeline(ColumnTransformer([("n", StandardScaler(), ["age", "income"])]), classifier()), frame, y
    )
    wider = frame.assign(town=np.resize(["north", "south"], len(frame)))  # not even there when it was fitted
    model = model_of(pipeline, wider, y)
    slopes, _ = model.halfspaces(model.theta)
    used = [name in ("age", "income") for name in model.train.columns]
    assert (slopes != 0).tolist() == used
    np.testing.assert_allclose(model.score(wider), log_odds(pipeline, frame), atol=1e-8)


@pytest.mark.parametrize("last", [classifier(), GradientBoostingClassifier(n_estimators=5, random_state=0)])
def test_columns_that_the_pipeline_ignores_need_no_place_in_the_schema(last: Any) -> None:
    frame, y = applicants()
    frame.insert(0, "name", [f"person {i}" for i in range(len(frame))])  # too many texts for categories
    frame.insert(3, "born", pd.date_range("1970-01-01", periods=len(frame)))
    transformer = ColumnTransformer([("n", StandardScaler(), ["age", "income"]), ("t", ONE_HOT, ["job"])])
    pipeline = fitted(make_pipeline(transformer, last), frame, y)
    model = rocerf.from_pipeline(pipeline, frame, y, otherwise="estimator")
    assert model.schema.names == ("age", "job", "income")
    np.testing.assert_array_equal(model.predict(frame), pipeline.predict(frame))
    np.testing.assert_array_equal(model.predict(frame[["job", "income", "age"]]), pipeline.predict(frame))
    given = rocerf.from_pipeline(pipeline, frame, y, schema=model.schema, otherwise="estimator")
    assert given.train.columns == model.train.columns
    gone = frame.index[:5]
    truth = refitted_from_scratch(pipeline, frame, y, gone).predict(frame)
    np.testing.assert_array_equal(model.without(gone).predict(frame), truth)


def test_an_ignored_column_stays_where_others_are_chosen_by_place() -> None:
    frame, y = applicants()
    frame = frame[["cars", "age", "income"]]
    pipeline = fitted(make_pipeline(ColumnTransformer([("n", StandardScaler(), [1, 2])]), classifier()), frame, y)
    model = model_of(pipeline, frame, y, preprocessing="refitted")
    assert model.train.columns == ("cars", "age", "income")
    gone = frame.index[:5]
    truth = log_odds(refitted_from_scratch(pipeline, frame, y, gone), frame)
    np.testing.assert_allclose(model.without(gone).score(frame), truth, atol=1e-6)


@pytest.mark.parametrize("favourable", ["bad", "good"])
def test_labels_threshold_and_orientation(favourable: str) -> None:
    frame, y = applicants()
    labels = np.where(y == 1, "good", "bad")
    pipeline = fitted(usual(), frame, labels)
    model = model_of(pipeline, frame, labels, favourable=favourable, threshold=0.7)
    chance = pipeline.predict_proba(frame)[:, pipeline.classes_.tolist().index(favourable)]
    np.testing.assert_array_equal(model.predict(frame), (chance >= 0.7).astype(int))
    later = model.with_preprocessing("refitted").without(frame.index[:4])
    truth = refitted_from_scratch(pipeline, frame, pd.Series(labels, index=frame.index), frame.index[:4])
    chance = truth.predict_proba(frame)[:, truth.classes_.tolist().index(favourable)]
    np.testing.assert_array_equal(later.predict(frame), (chance >= 0.7).astype(int))


@pytest.mark.parametrize(
    "options",
    [
        {"class_weight": {0: 2.0, 1: 0.5}},
        {"solver": "liblinear", "intercept_scaling": 2.0, "tol": 1e-12, "max_iter": 100000},
        {"C": np.inf},
    ],
)
def test_settings_of_the_classifier_are_kept(options: dict) -> None:
    frame, y = applicants()
    encoder = OneHotEncoder(drop="first")  # without a penalty the columns must be independent
    pipeline = fitted(make_pipeline(columns(StandardScaler(), encoder), classifier(**options)), frame, y)
    gone = frame.index[[0, 5, 9]]
    model = model_of(pipeline, frame, y, preprocessing="refitted")
    truth = refitted_from_scratch(pipeline, frame, y, gone)
    np.testing.assert_allclose(model.without(gone).score(frame), log_odds(truth, frame), atol=2e-5)


def test_sample_weights() -> None:
    frame, y = applicants()
    weights = pd.Series(np.random.default_rng(0).uniform(0.2, 3.0, len(y)), index=y.index)
    pipeline = fitted(usual(), frame, y, logisticregression__sample_weight=weights)
    model = model_of(pipeline, frame, y, preprocessing="refitted", sample_weight=weights)
    gone = frame.index[:6]
    left = weights.drop(gone)
    truth = fitted(usual(), frame.drop(gone), y.drop(gone), logisticregression__sample_weight=left)
    np.testing.assert_allclose(model.without(gone).score(frame), log_odds(truth, frame), atol=1e-6)
    with pytest.raises(NotAtOptimumError, match="sample weights"):
        model_of(fitted(usual(), frame, y, logisticregression__sample_weight=weights**4), frame, y)


@pytest.mark.parametrize("form", ["pipeline", "classifier", "nested", "array"])
def test_pipelines_of_numbers_alone(form: str) -> None:
    frame, y = applicants()
    numbers = frame[["age", "income"]].astype(float)
    made = {
        "pipeline": Pipeline([("classifier", classifier())]),
        "classifier": classifier(),
        "nested": make_pipeline(StandardScaler(), make_pipeline(MinMaxScaler(), classifier())),
        "array": make_pipeline(StandardScaler(), classifier()),
    }[form]
    pipeline = fitted(made, numbers.to_numpy() if form == "array" else numbers, y)
    own = pipeline.decision_function(numbers.to_numpy() if form == "array" else numbers)
    model = model_of(pipeline, numbers, y, preprocessing="refitted")
    np.testing.assert_array_equal(model.deployed_score(numbers), own)
    gone = numbers.index[:7]
    truth = fitted(made, numbers.drop(gone), y.drop(gone)).decision_function(numbers)
    np.testing.assert_allclose(model.without(gone).score(numbers), truth, atol=1e-6)


def test_codes_are_categories_if_the_schema_says_so() -> None:
    frame, y = applicants()
    transformer = ColumnTransformer([("n", StandardScaler(), ["age"]), ("c", ONE_HOT, ["cars", "job"])])
    pipeline = fitted(make_pipeline(transformer, classifier()), frame, y)
    as_numbers = model_of(pipeline, frame, y)  # each code adds what its own column does
    np.testing.assert_allclose(as_numbers.score(frame), log_odds(pipeline, frame), atol=1e-6)
    codes = {"kind": "categorical", "categories": [0, 1, 2, 3], "lower": -np.inf, "upper": np.inf}
    schema = FeatureSchema.from_frame(frame).edit("cars", **codes)
    model = model_of(pipeline, frame, y, schema=schema)
    np.testing.assert_array_equal(model.deployed_score(model.train.X), log_odds(pipeline, frame))
    assert model.frames is not None
    pd.testing.assert_series_equal(model.frames.decode(model.train.X, index=frame.index)["cars"], frame["cars"])


def test_a_schema_in_another_order_of_the_same_columns() -> None:
    frame, y = applicants()
    pipeline = fitted(usual(), frame, y)
    schema = FeatureSchema.from_frame(frame[frame.columns[::-1]], immutable=["age"])
    model = model_of(pipeline, frame, y, schema=schema)
    assert model.train.columns[0] == "member"
    np.testing.assert_allclose(model.score(frame), log_odds(pipeline, frame), atol=1e-8)
    np.testing.assert_array_equal(model.deployed_score(model.train.X), log_odds(pipeline, frame))


@pytest.mark.parametrize("last", [classifier(class_weight={0: 1.0, 1: 2.0}), DecisionTreeClassifier(max_depth=3)])
def test_the_users_pipeline_stays_theirs(last: Any) -> None:
    frame, y = applicants(120)
    pipeline = fitted(make_pipeline(columns(StandardScaler(), ONE_HOT), last), frame, y)
    labels = y.to_numpy().copy()
    options = {"preprocessing": "refitted", "otherwise": "estimator"}
    model = rocerf.from_pipeline(pipeline, frame, labels, **options)
    before = model.deployed_score(frame), model.without(frame.index[:2]).score(frame)
    pipeline.fit(frame.iloc[:50], 1 - y[:50])
    if isinstance(last, LogisticRegression):
        pipeline[-1].class_weight[1] = 50.0
    labels[:] = 1 - labels
    np.testing.assert_array_equal(model.deployed_score(frame), before[0])
    np.testing.assert_array_equal(model.without(frame.index[:2]).score(frame), before[1])


def test_what_cannot_be_copied_is_refused() -> None:
    frame, y = applicants(60)
    pipeline = fitted(usual(), frame, y)
    pipeline.lock = (i for i in range(3))
    with pytest.raises(UnsupportedModelError, match="can be copied, got a Pipeline that cannot"):
        rocerf.from_pipeline(pipeline, frame, y)


def test_ids_are_the_users_and_their_table_stays_theirs() -> None:
    frame, y = applicants(60)
    pipeline = fitted(usual(), frame, y)
    model = model_of(pipeline, frame, y, preprocessing="refitted", ids=np.arange(60) + 1000)
    before = model.without([1003]).score(frame)
    kept = frame.copy()
    frame.loc[:, "income"] = 0.0
    np.testing.assert_array_equal(model.without([1003]).score(kept), before)
    truth = refitted_from_scratch(pipeline, kept, y, kept.index[[3]])
    np.testing.assert_allclose(before, log_odds(truth, kept), atol=1e-7)
