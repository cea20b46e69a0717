"""A table and pipelines whose fits stop short of their optimum, and scikit-learn's own refits as the truth."""

from __future__ import annotations

import warnings
from typing import Any

import numpy as np
import pandas as pd
from sklearn.base import clone
from sklearn.compose import ColumnTransformer
from sklearn.linear_model import LogisticRegression
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import MinMaxScaler, OneHotEncoder, StandardScaler

import rocerf

NUMBERS = ["income", "debt", "age", "years"]
K = 3


def loans(n: int = 300, seed: int = 0) -> tuple[pd.DataFrame, np.ndarray]:
    """Skewed numbers, one text, labels that overlap."""
    rng = np.random.default_rng(seed)
    frame = pd.DataFrame(
        {
            "income": rng.gamma(3.0, 12.0, n),
            "debt": rng.gamma(2.0, 6.0, n),
            "age": rng.uniform(18.0, 75.0, n),
            "years": rng.exponential(4.0, n),
            "home": rng.choice(["own", "rent", "none"], n, p=[0.45, 0.45, 0.1]),
        }
    )
    home = frame["home"].map({"own": 0.6, "rent": 0.0, "none": -1.0})
    score = 0.06 * (frame["income"] - 36) - 0.12 * (frame["debt"] - 12) + 0.02 * (frame["age"] - 45) + home
    return frame, (score + 0.1 * (frame["years"] - 4) + 1.5 * rng.logistic(size=n) > 0).astype(int).to_numpy()


def _pipeline(scaler: Any, **options: Any) -> Any:
    encode = ColumnTransformer([("numbers", scaler, NUMBERS), ("texts", OneHotEncoder(), ["home"])])
    return make_pipeline(encode, LogisticRegression(**options))


#: Not fitted; under the exact promise the first seven have answers that their own refit refuses.
PIPELINES: dict[str, Any] = {
    "minmax": _pipeline(MinMaxScaler()),
    "raw remainder": _pipeline("passthrough", tol=1e-2, max_iter=2000),
    "loose": _pipeline(StandardScaler(), tol=1e-3),
    "saga": _pipeline(StandardScaler(), solver="saga", tol=1e-2, random_state=0),
    "liblinear": _pipeline(StandardScaler(), solver="liblinear", tol=1e-2),
    "newton-cg": _pipeline(StandardScaler(), solver="newton-cg", tol=1e-2),
    "class weights": _pipeline(MinMaxScaler(), class_weight={0: 1.0, 1: 2.0}),
    "large C": _pipeline(StandardScaler(), C=1e6),
}


def fitted(pipeline: Any, frame: pd.DataFrame, y: np.ndarray, **options: Any) -> Any:
    """A clone fitted from scratch by scikit-learn, its warnings aside."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        return clone(pipeline).fit(frame, y, **options)


def refitted_scores(
    pipeline: Any, frame: pd.DataFrame, y: np.ndarray, deleted: list[Any], points: pd.DataFrame, *, whole: bool
) -> np.ndarray:
    """Each point's score by the user's own refit without its rows: of the whole pipeline, or its last step alone."""
    scores = np.empty(len(points))
    for place, rows in enumerate(deleted):
        kept = np.setdiff1d(np.arange(len(y)), rows)
        if whole:
            again = fitted(pipeline, frame.iloc[kept], y[kept])
        else:
            last = fitted(pipeline[-1], pipeline[:-1].transform(frame.iloc[kept]), y[kept])
            again = make_pipeline(pipeline[:-1], last)
        scores[place] = again.decision_function(points.iloc[[place]])[0]
    return scores


def audited(pipeline: Any, model: Any, *, whole: bool, promise: str = "retrained") -> np.ndarray:
    """Scores of all answers after the worst deletions of an adversary with another seed, by the user's own refits."""
    frame, y = loans()
    people = loans(60, seed=1)[0]
    explainer = rocerf.Rocerf(model, K, effort="quick", promise=promise)
    recourses = explainer.explain(people[pipeline.predict(people) == 0])
    assert recourses.answered.all()
    assert len(recourses) >= 10
    deleted = list(rocerf.Adversary(model, K, seed=9).attack_all(recourses.matrix).deleted_rows)
    return refitted_scores(pipeline, frame, y, deleted, recourses.points, whole=whole)
