"""Trees with native categories and missing values, in the user's own columns: against the library, and all cells."""

from __future__ import annotations

import itertools
from importlib.util import find_spec
from typing import Any

import numpy as np
import pandas as pd
import pytest
from sklearn.calibration import CalibratedClassifierCV
from sklearn.compose import make_column_transformer
from sklearn.ensemble import HistGradientBoostingClassifier, RandomForestClassifier
from sklearn.impute import SimpleImputer
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import OneHotEncoder, OrdinalEncoder, StandardScaler

from rocerf import EstimatorModel, Rocerf, Status, from_pipeline
from rocerf.errors import UnsupportedModelError

N = 160


def table(seed: int = 0) -> tuple[pd.DataFrame, pd.Series]:
    """Numbers with gaps; categories in an order of the user's own, one of them never seen, one column with gaps."""
    rng = np.random.default_rng(seed)
    frame = pd.DataFrame(
        {
            "income": rng.integers(2, 18, N),
            "months": rng.integers(1, 9, N).astype(float),
            "home": pd.Categorical(
                rng.choice(["rent", "own", "free"], N), categories=["rent", "castle", "own", "free"]
            ),
            "job": pd.Categorical(rng.choice(list("zyxw"), N), categories=list("zwyx")),
        }
    )
    frame.loc[rng.random(N) < 0.25, "months"] = np.nan
    frame.loc[rng.random(N) < 0.2, "job"] = np.nan
    paid = frame["income"] + 3 * (frame["home"] == "own") + frame["months"].fillna(-3) / 2 + 3 * (frame["job"] == "y")
    return frame, (paid + rng.normal(size=N) > 12).astype(int)


def in_texts(frame: pd.DataFrame) -> pd.DataFrame:
    """Categories as CatBoost takes them: a missing one is a text."""
    texts = {
        name: frame[name].astype(object).where(frame[name].notna(), "none").astype(str) for name in ("home", "job")
    }
    return frame.assign(**texts)


def library(package: str, kind: str, **options: Any) -> Any:
    if find_spec(package) is None:
        pytest.skip(f"{package} is not installed")
    return getattr(__import__(package), kind)(**options)


def catboost(**options: Any) -> Any:
    quiet = {"verbose": 0, "allow_writing_files": False, "thread_count": 1}
    return library("catboost", "CatBoostClassifier", iterations=8, depth=3, **quiet, **options)


def forest(*steps: Any) -> Any:
    return make_pipeline(
        make_column_transformer(*steps, remainder="passthrough"), RandomForestClassifier(6, max_depth=3, random_state=0)
    )


CASES: dict[str, Any] = {
    "xgboost": lambda: library(
        "xgboost", "XGBClassifier", n_estimators=6, max_depth=3, enable_categorical=True, max_cat_to_onehot=1, n_jobs=1
    ),
    "xgboost one-hot": lambda: library(
        "xgboost", "XGBClassifier", n_estimators=6, max_depth=3, enable_categorical=True, max_cat_to_onehot=9, n_jobs=1
    ),
    "lightgbm": lambda: library(
        "lightgbm",
        "LGBMClassifier",
        n_estimators=6,
        num_leaves=6,
        min_data_per_group=5,
        cat_smooth=1.0,
        n_jobs=1,
        verbose=-1,
    ),
    "hist boosting": lambda: HistGradientBoostingClassifier(max_iter=6, max_leaf_nodes=6, min_samples_leaf=5),
    "catboost": lambda: catboost(cat_features=("home", "job"), max_ctr_complexity=1),
    "catboost one-hot": lambda: catboost(cat_features=("home", "job"), one_hot_max_size=9),
    "steps": lambda: forest(
        (OneHotEncoder(), ["home"]), (OrdinalEncoder(encoded_missing_value=-1), ["job"]), (SimpleImputer(), ["months"])
    ),
}


def model_of(family: str, seed: int = 0) -> tuple[Any, pd.DataFrame, EstimatorModel]:
    frame, y = table(seed)
    frame = in_texts(frame) if family.startswith("catboost") else frame
    fitted = CASES[family]().fit(frame, y)
    model = from_pipeline(fitted, frame, y, otherwise="estimator")
    assert isinstance(model, EstimatorModel)
    return fitted, frame, model


@pytest.mark.parametrize("family", CASES)
def test_read_as_the_library_says_at_every_value_and_gap(family: str) -> None:
    fitted, frame, model = model_of(family)
    assert model.trees is not None
    job = ["none", *"wxyz"] if family.startswith("catboost") else [np.nan, *"wxyz"]
    rows = itertools.product(range(1, 20), [np.nan, *range(10)], ["rent", "own", "free"], job)
    every = pd.DataFrame(rows, columns=list(frame.columns))
    every = every.astype({name: frame[name].dtype for name in ("months", "home", "job")})
    own = fitted.predict_proba(every)[:, 1]
    X, _, problems = model.frames.encode(every)  # type: ignore[union-attr]
    assert not any(problems)
    assert model.trees.form.apart(X, own) < 2e-6
    again = model.refitted([model.train.ids[:3]])
    (trees,) = model.trees_retrained(again)
    assert trees is not None
    assert trees.scores(X) == pytest.approx(again.scores(X)[0], abs=1e-4)


@pytest.mark.parametrize("family", CASES)
@pytest.mark.parametrize("cost", ["l1", "l2"])
def test_cheapest_of_all_rows_and_what_is_missing_stays_missing(family: str, cost: str) -> None:
    fitted, frame, model = model_of(family, 1)
    people = frame[fitted.predict(frame) == 0].head(8)
    assert people["months"].isna().any()
    explainer = Rocerf(model, 0, promise="plain", cost=cost)
    assert explainer.solver == "cells"
    found = explainer.explain(people)
    points = found.points
    schema = model.frames.schema  # type: ignore[union-attr]
    numbers = {name: range(int(schema[name].lower), int(schema[name].upper) + 1) for name in ("income", "months")}
    X0 = model.matrix(people)
    for place, (index, person) in enumerate(people.iterrows()):
        gone = bool(pd.isna(person["months"]))
        months = [np.nan] if gone else list(numbers["months"])
        jobs = [value for value in schema["job"].categories if value is not None]
        jobs = [*jobs, np.nan] if pd.isna(person["job"]) else jobs
        rows = pd.DataFrame(
            itertools.product(numbers["income"], months, schema["home"].categories, jobs), columns=list(frame.columns)
        ).astype({name: frame[name].dtype for name in ("months", "home", "job")})
        X = model.matrix(rows[fitted.predict_proba(rows)[:, 1] >= 0.5 + 1e-6])
        prices = explainer.cost.of(X, np.broadcast_to(X0[place], X.shape))
        if found.statuses[place] is not Status.ANSWERED:
            assert not len(prices)
            continue
        assert found.gaps[place] == 0.0
        assert found.costs[place] == pytest.approx(prices.min(), rel=1e-9)
        answer = points.loc[index]
        assert pd.isna(answer["months"]) == gone
        assert answer["home"] in ("rent", "own", "free")  # nobody has the fourth
        assert pd.isna(person["job"]) or not pd.isna(answer["job"])
    assert (fitted.predict(points[found.answered]) == 1).all()
    assert found.answered.any()


def test_unknown_categories_are_refused_with_the_known_ones() -> None:
    fitted, frame, model = model_of("hist boosting")
    strange = frame[fitted.predict(frame) == 0].head(2).copy()
    strange["home"] = ["castle", "rent"]
    found = Rocerf(model, 0, promise="plain").explain(strange)
    assert found.statuses[0] is not Status.ANSWERED
    assert "castle" in found.reasons[0]
    assert "own" in found.reasons[0]
    assert found.statuses[1] is Status.ANSWERED


def test_statistics_of_several_columns_and_scaled_numbers_are_searched_not_read() -> None:
    frame, y = table()
    scaled = forest((StandardScaler(), ["income"]), (OneHotEncoder(), ["home", "job"])).fit(frame, y)
    model = from_pipeline(scaled, frame, y, otherwise="estimator")
    assert model.trees is None
    assert Rocerf(model, 0, promise="plain").solver == "search"


def test_nobody_who_gave_a_number_is_sent_to_the_one_that_stands_for_a_missing_one() -> None:
    frame, _ = table(3)
    frame["months"] += np.random.default_rng(3).random(N).round(2)  # no whole numbers
    y = (frame["months"].isna() | (frame["months"] > 7)).astype(int)  # a gap is as good as the best number
    boosted = HistGradientBoostingClassifier(max_iter=8, max_leaf_nodes=6, min_samples_leaf=5, random_state=0)
    fitted = CalibratedClassifierCV(boosted, cv=2).fit(frame[["income", "months"]], y)
    model = from_pipeline(fitted, frame[["income", "months"]], y, otherwise="estimator")
    assert isinstance(model, EstimatorModel)
    assert model.trees is None
    people = frame[["income", "months"]][fitted.predict(frame[["income", "months"]]) == 0].head(6)
    number = model.frames.fills["months"]  # type: ignore[union-attr]
    explainer = Rocerf(model, 0, promise="plain", cost="l1")
    found = explainer.explain(people)
    assert found.answered.all()
    assert (fitted.predict(found.points) == 1).all()
    assert (found.points["months"] != number).all()
    X0 = model.matrix(people)
    allowed = explainer.problem(X0, [()] * len(X0)).allowed
    there = X0.copy()
    there[:, 1] = number
    assert not allowed.holds(there).any()
    beside = allowed.landed(there)
    assert allowed.holds(beside).all()
    np.testing.assert_allclose(beside, there, rtol=1e-12)
    stays = X0.copy()  # who came without the number keeps what stands for it
    stays[:, 1] = number
    assert explainer.problem(stays, [("months",)] * len(X0)).allowed.holds(stays).all()


def test_a_catboost_that_cannot_be_cloned_says_how_it_can() -> None:
    frame, y = table()
    frame = in_texts(frame)
    fitted = catboost(cat_features=["home", "job"], max_ctr_complexity=1).fit(frame, y)
    model = from_pipeline(fitted, frame, y, otherwise="estimator")
    assert model.trees is not None
    with pytest.raises(UnsupportedModelError, match="a tuple for cat_features"):
        model.refitted([model.train.ids[:2]])
