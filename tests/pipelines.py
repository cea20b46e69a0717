"""Tables with texts and missing values, pipelines on them, and scikit-learn's own refits as the truth."""

from __future__ import annotations

import warnings
from typing import Any

import numpy as np
import pandas as pd
from sklearn.base import clone
from sklearn.compose import ColumnTransformer
from sklearn.linear_model import LogisticRegression
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import OneHotEncoder, StandardScaler

import rocerf
from rocerf import LogisticModel

NUMBERS = ["age", "income", "cars", "member"]
TEXTS = ["job", "home"]


def applicants(n: int = 200, seed: int = 0, *, missing: bool = False) -> tuple[pd.DataFrame, pd.Series]:
    """Whole numbers, decimals, yes/no, text and a pandas category; labels that overlap."""
    rng = np.random.default_rng(seed)
    frame = pd.DataFrame(
        {
            "age": rng.integers(20, 70, n),
            "job": rng.choice(["clerk", "driver", "nurse", "smith"], n, p=[0.5, 0.3, 0.15, 0.05]),
            "income": rng.gamma(5.0, 10.0, n).round(2),
            "home": pd.Categorical(rng.choice(["own", "rent"], n)),
            "cars": rng.integers(0, 4, n),
            "member": rng.random(n) < 0.5,
        },
        index=[f"row-{i}" for i in range(n)],
    )
    noise = rng.normal(0.0, 0.7, n)
    y = (frame["age"] / 50 + frame["income"] / 50 + (frame["job"] == "nurse") + noise > 2.1).astype(int)
    if missing:
        frame.loc[frame.index[::7], "income"] = np.nan
        frame.loc[frame.index[3::11], "job"] = None
    return frame, y


#: One-hot encoding that gives an unknown category no column.
ONE_HOT = OneHotEncoder(handle_unknown="ignore")


def classifier(**options: Any) -> LogisticRegression:
    """A LogisticRegression that goes to its optimum."""
    return LogisticRegression(**{"solver": "newton-cholesky", "tol": 1e-10, "max_iter": 1000, **options})


def columns(numbers: Any, texts: Any, **options: Any) -> ColumnTransformer:
    """One transformer for the numbers of :func:`applicants` and one for the texts."""
    return ColumnTransformer([("numbers", numbers, NUMBERS), ("texts", texts, TEXTS)], **options)


def usual(handle_unknown: str = "ignore", **options: Any) -> Any:
    """Scaling, one-hot encoding, logistic regression; not fitted."""
    return make_pipeline(columns(StandardScaler(), OneHotEncoder(handle_unknown=handle_unknown)), classifier(**options))


def model_of(pipeline: Any, frame: pd.DataFrame, y: Any, **options: Any) -> LogisticModel:
    """The pipeline taken over as a logistic model."""
    model = rocerf.from_pipeline(pipeline, frame, y, **options)
    assert isinstance(model, LogisticModel)
    return model


def fitted(pipeline: Any, frame: pd.DataFrame, y: Any, **options: Any) -> Any:
    """The pipeline fitted by scikit-learn, its warnings aside."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        return clone(pipeline).fit(frame, y, **options)


def log_odds(pipeline: Any, frame: pd.DataFrame) -> np.ndarray:
    """scikit-learn's scores, its warnings aside."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        return pipeline.decision_function(frame)


def refitted_from_scratch(pipeline: Any, frame: pd.DataFrame, y: pd.Series, gone: Any) -> Any:
    """The truth about preprocessing that is fitted again: everything anew on the rows left."""
    return fitted(pipeline, frame.drop(index=gone), y.drop(index=gone))


def frozen_from_scratch(pipeline: Any, frame: pd.DataFrame, y: pd.Series, gone: Any) -> np.ndarray:
    """The truth about frozen preprocessing: scores of all rows by a classifier fitted anew on the rows left."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        left = pipeline[:-1].transform(frame.drop(index=gone))
        return clone(pipeline[-1]).fit(left, y.drop(index=gone)).decision_function(pipeline[:-1].transform(frame))
