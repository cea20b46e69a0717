"""Pipelines taken over: the user's own pipeline, refitted by scikit-learn, is the truth."""

from __future__ import annotations

import warnings
from typing import Any

import hypothesis.strategies as st
import numpy as np
import pandas as pd
import pytest
from hypothesis import given, settings
from sklearn.compose import ColumnTransformer
from sklearn.decomposition import PCA
from sklearn.ensemble import GradientBoostingClassifier
from sklearn.feature_selection import SelectKBest
from sklearn.impute import KNNImputer, SimpleImputer
from sklearn.linear_model import LogisticRegression, LogisticRegressionCV
from sklearn.model_selection import GridSearchCV
from sklearn.pipeline import FeatureUnion, Pipeline, make_pipeline
from sklearn.preprocessing import (
    FunctionTransformer,
    KBinsDiscretizer,
    MaxAbsScaler,
    MinMaxScaler,
    Normalizer,
    OneHotEncoder,
    OrdinalEncoder,
    PolynomialFeatures,
    PowerTransformer,
    RobustScaler,
    StandardScaler,
    TargetEncoder,
)

import rocerf
from pipelines import (
    NUMBERS,
    TEXTS,
    applicants,
    classifier,
    columns,
    fitted,
    frozen_from_scratch,
    log_odds,
    refitted_from_scratch,
    usual,
)
from rocerf import FeatureSchema, LogisticModel
from rocerf.data import adult, german
from rocerf.data.tables import split_rows
from rocerf.errors import (
    ColumnError,
    DataError,
    LabelError,
    NotAtOptimumError,
    OptionError,
    SchemaError,
    UnsupportedModelError,
)

ONE_HOT = OneHotEncoder(handle_unknown="ignore")
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


def model_of(pipeline: Any, frame: pd.DataFrame, y: Any, **options: Any) -> LogisticModel:
    model = rocerf.from_pipeline(pipeline, frame, y, **options)
    assert isinstance(model, LogisticModel)
    return model


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
    with pytest.raises(UnsupportedModelError, match=r"not in 'cars'.*categories"):
        model_of(pipeline, frame, y)
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


NOT_AFFINE: dict[str, tuple[Any, bool, str]] = {
    "logarithm": (
        columns(FunctionTransformer(lambda X: np.log1p(X.astype(float))), ONE_HOT),
        False,
        "'age', 'income', 'cars':",
    ),
    "bins": (
        columns(KBinsDiscretizer(3, quantile_method="averaged_inverted_cdf"), ONE_HOT),
        False,
        "'age', 'income', 'cars':",
    ),
    "products": (columns(PolynomialFeatures(2), ONE_HOT), False, "'age', 'income', 'cars', 'member':"),
    "indicator": (columns(SimpleImputer(add_indicator=True), ONE_HOT), True, "'income': a missing value"),
    "neighbours": (columns(KNNImputer(), ONE_HOT), True, "'income':"),
    "clipped": (
        columns(MinMaxScaler(clip=True), ONE_HOT),
        False,
        "'age', 'income', 'cars': rows within and somewhat beyond",
    ),
    "power": (columns(PowerTransformer(), ONE_HOT), False, "'age', 'income', 'cars':"),
    "unit length": (columns(Normalizer(), ONE_HOT), False, "'age', 'income', 'cars', 'member':"),
    "of the batch": (
        columns(FunctionTransformer(lambda X: X - X.mean(axis=0)), ONE_HOT),
        False,
        "'age', 'income', 'cars'",
    ),
    "one kink": (
        make_pipeline(
            FunctionTransformer(lambda f: f.assign(income=f["income"].clip(upper=60))),
            columns(StandardScaler(), ONE_HOT),
        ),
        False,
        "'income':",
    ),
}


@pytest.mark.parametrize("name", NOT_AFFINE)
def test_what_is_not_affine_is_refused_by_name(name: str) -> None:
    preprocessing, missing, named = NOT_AFFINE[name]
    frame, y = applicants(missing=missing)
    pipeline = fitted(make_pipeline(preprocessing, classifier()), frame, y)
    with pytest.raises(UnsupportedModelError, match=f"not in {named}.*outside the pipeline.*otherwise='estimator'"):
        rocerf.from_pipeline(pipeline, frame, y)


def _unfitted(frame: pd.DataFrame, y: pd.Series) -> Any:
    return usual()


def _searched(frame: pd.DataFrame, y: pd.Series) -> Any:
    return GridSearchCV(usual(), {"logisticregression__C": [1.0]}, cv=2).fit(frame, y)


def _other(last: Any) -> Any:
    return lambda frame, y: make_pipeline(columns(StandardScaler(), ONE_HOT), last).fit(frame, y)


@pytest.mark.parametrize(
    ("make", "said"),
    [
        (_unfitted, "not fitted"),
        (_searched, "best_estimator_"),
        (
            _other(GradientBoostingClassifier(n_estimators=2)),
            "ends in GradientBoostingClassifier.*otherwise='estimator'",
        ),
        (
            _other(LogisticRegressionCV(cv=2, l1_ratios=(0.0,), use_legacy_attributes=False, scoring="accuracy")),
            "LogisticRegressionCV",
        ),
        (_other(LogisticRegression(solver="saga", l1_ratio=1.0, max_iter=5000)), "L2 penalty"),
        (_other(LogisticRegression(class_weight="balanced")), "class_weight"),
        (lambda frame, y: make_pipeline(columns(StandardScaler(), ONE_HOT)).fit(frame), "ends in ColumnTransformer"),
    ],
)
def test_pipelines_that_cannot_be_taken_over(make: Any, said: str) -> None:
    frame, y = applicants(80)
    with pytest.raises(UnsupportedModelError, match=said):
        rocerf.from_pipeline(make(frame, y), frame, y)


@pytest.mark.parametrize(
    ("change", "error", "said"),
    [
        (lambda f, y: {"train_df": f.to_numpy()}, ColumnError, "as a DataFrame"),
        (lambda f, y: {"train_df": f.rename(columns={"age": 0})}, ColumnError, "names that are text, got 0"),
        (
            lambda f, y: {"train_df": f.drop(columns="age")},
            UnsupportedModelError,
            "cannot.*pass the columns it was fitted on",
        ),
        (lambda f, y: {"y": y[:-1]}, DataError, "labels"),
        (lambda f, y: {"y": np.where(y == 1, "a", "b"), "favourable": "a"}, LabelError, "fitted on the labels"),
        (lambda f, y: {"ids": [1] * len(f)}, DataError, "unique id"),
        (lambda f, y: {"schema": "age"}, OptionError, "FeatureSchema.from_frame"),
        (lambda f, y: {"schema": FeatureSchema.from_frame(f.drop(columns="age"))}, SchemaError, "lacks 'age'"),
        (lambda f, y: {"schema": FeatureSchema.from_frame(f.assign(x=1))}, SchemaError, "has 'x' besides"),
        (
            lambda f, y: {"schema": FeatureSchema.from_frame(f).edit("job", categories=["clerk", "driver"])},
            SchemaError,
            "that are not; the first is row .*'job' is '(nurse|smith)'",
        ),
        (lambda f, y: {"preprocessing": "thawed"}, OptionError, "'frozen'.*'refitted'.*'thawed'"),
        (lambda f, y: {"otherwise": "guess"}, OptionError, "'refuse' or 'estimator'"),
        (lambda f, y: {"threshold": 1.0}, OptionError, "threshold"),
    ],
)
def test_bad_requests_say_what_is_wrong(change: Any, error: type, said: str) -> None:
    frame, y = applicants(80)
    asked = {"pipeline": fitted(usual(), frame, y), "train_df": frame, "y": y, **change(frame, y)}
    with pytest.raises(error, match=said):
        rocerf.from_pipeline(asked.pop("pipeline"), asked.pop("train_df"), asked.pop("y"), **asked)


def test_categories_that_the_pipeline_cannot_take() -> None:
    frame, y = applicants()
    pipeline = fitted(usual("error"), frame, y)
    schema = FeatureSchema.from_frame(frame).edit("job", categories=["clerk", "driver", "nurse", "smith", "baker"])
    with pytest.raises(UnsupportedModelError, match="got 'job=baker', which it cannot take; leave that category out"):
        rocerf.from_pipeline(pipeline, frame, y, schema=schema)
    model_of(fitted(usual("ignore"), frame, y), frame, y, schema=schema)  # encoded as nothing
    # Categories of the type that no row has are left out of the guess.
    unused = frame.assign(home=frame["home"].cat.add_categories(["boat"]))
    assert "home=boat" not in model_of(fitted(usual("error"), unused, y), unused, y).train.columns


def test_rows_that_the_pipeline_was_not_fitted_on() -> None:
    frame, y = applicants()
    other, labels = applicants(seed=1)
    pipeline = fitted(usual(), other, labels)
    with pytest.raises(NotAtOptimumError, match="fitted on other rows"):
        rocerf.from_pipeline(pipeline, frame, y)
    # A scaler fitted elsewhere is fine as long as it stays.
    scaled = fitted(columns(StandardScaler(), ONE_HOT), other, labels)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        mixed = Pipeline([("columns", scaled), ("classifier", classifier().fit(scaled.transform(frame), y))])
    model_of(mixed, frame, y)
    with pytest.raises(NotAtOptimumError, match=r"fitted on other rows.*'frozen'"):
        rocerf.from_pipeline(mixed, frame, y, preprocessing="refitted")


def test_encoders_that_treat_their_own_rows_differently_cannot_be_refitted() -> None:
    frame, y = applicants()
    pipeline = fitted(make_pipeline(columns(StandardScaler(), TargetEncoder(random_state=0)), classifier()), frame, y)
    with pytest.raises(NotAtOptimumError, match="TargetEncoder"):
        rocerf.from_pipeline(pipeline, frame, y, preprocessing="refitted")


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
@settings(max_examples=60, deadline=None)
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
    table = adult.raw_table()
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


@pytest.mark.parametrize("last", [classifier(), GradientBoostingClassifier(n_estimators=10, random_state=0)])
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


def test_an_affine_pipeline_stays_logistic_and_missing_numbers_need_one() -> None:
    frame, y = applicants(120)
    assert isinstance(rocerf.from_pipeline(fitted(usual(), frame, y), frame, y, otherwise="estimator"), LogisticModel)
    gaps, y = applicants(120, missing=True)
    pipeline = fitted(make_pipeline(columns(KNNImputer(), ONE_HOT), classifier()), gaps, y)
    with pytest.raises(DataError, match=r"missing numbers.*'income'"):
        rocerf.from_pipeline(pipeline, gaps, y, otherwise="estimator")


def test_numbers_and_texts_of_the_helpers_cover_the_table() -> None:
    assert sorted(NUMBERS + TEXTS) == sorted(applicants(5)[0].columns)
