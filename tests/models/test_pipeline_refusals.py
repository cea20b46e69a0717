"""Pipelines that are refused, and what is said about them."""

from __future__ import annotations

import warnings
from typing import Any

import numpy as np
import pandas as pd
import pytest
from sklearn.calibration import CalibratedClassifierCV
from sklearn.ensemble import GradientBoostingClassifier
from sklearn.impute import KNNImputer
from sklearn.linear_model import LogisticRegression
from sklearn.pipeline import Pipeline, make_pipeline
from sklearn.preprocessing import (
    FunctionTransformer,
    Normalizer,
    PolynomialFeatures,
    StandardScaler,
    TargetEncoder,
)

import rocerf
from pipelines import ONE_HOT, applicants, classifier, columns, fitted, model_of, usual
from rocerf import FeatureSchema
from rocerf.errors import (
    ColumnError,
    DataError,
    LabelError,
    NotAtOptimumError,
    OptionError,
    SchemaError,
    UnsupportedModelError,
)

JOINING: dict[str, tuple[Any, bool, str]] = {
    "products": (columns(PolynomialFeatures(2), ONE_HOT), False, "'age', 'income', 'cars', 'member':"),
    "neighbours": (columns(KNNImputer(), ONE_HOT), True, "'income':"),
    "unit length": (columns(Normalizer(), ONE_HOT), False, "'age', 'income', 'cars', 'member':"),
    "of the batch": (
        columns(FunctionTransformer(lambda X: X - X.mean(axis=0)), ONE_HOT),
        False,
        "'age', 'income', 'cars'",
    ),
}


@pytest.mark.parametrize("name", JOINING)
def test_what_joins_columns_is_refused_by_name(name: str) -> None:
    preprocessing, missing, named = JOINING[name]
    frame, y = applicants(missing=missing)
    pipeline = fitted(make_pipeline(preprocessing, classifier()), frame, y)
    with pytest.raises(UnsupportedModelError, match=f"not in {named}.*outside the pipeline.*otherwise='estimator'"):
        rocerf.from_pipeline(pipeline, frame, y)


def _unfitted(frame: pd.DataFrame, y: pd.Series) -> Any:
    return usual()


def _other(last: Any) -> Any:
    return lambda frame, y: make_pipeline(columns(StandardScaler(), ONE_HOT), last).fit(frame, y)


@pytest.mark.parametrize(
    ("make", "said"),
    [
        (_unfitted, "not fitted"),
        (
            _other(GradientBoostingClassifier(n_estimators=2)),
            "ends in GradientBoostingClassifier.*otherwise='estimator'",
        ),
        (_other(CalibratedClassifierCV(LogisticRegression(max_iter=500), cv=2)), "ensemble=False.*'estimator'"),
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
        (
            lambda f, y: {"y": np.where(y == 1, "a", "b"), "favourable": "a"},
            LabelError,
            "the training set's labels 'b' and 'a'",
        ),
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


def test_codes_from_folds_are_refused_with_a_way_out_that_works() -> None:
    frame, y = applicants(60, seed=4)
    frame["job"] = np.random.default_rng(0).choice([f"job {i}" for i in range(12)], len(frame))
    pipeline = fitted(make_pipeline(columns(StandardScaler(), TargetEncoder(random_state=0)), classifier()), frame, y)
    with pytest.raises(UnsupportedModelError, match=r"codes from folds of the rows.*otherwise='estimator'"):
        rocerf.from_pipeline(pipeline, frame, y)
    model = rocerf.from_pipeline(pipeline, frame, y, otherwise="estimator")
    np.testing.assert_array_equal(model.predict(frame), pipeline.predict(frame))
