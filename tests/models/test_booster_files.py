"""Models of XGBoost, LightGBM and CatBoost in files: the same scores, the same refits, and nothing else is made."""

from __future__ import annotations

import json
from importlib.util import find_spec
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pytest
from sklearn.compose import make_column_transformer
from sklearn.model_selection import FixedThresholdClassifier
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import OneHotEncoder

from problems import random_training_set, refused_people
from rocerf import EstimatorModel, Rocerf, TrainingSet, from_pipeline
from rocerf.errors import UnsupportedModelError
from rocerf.models.sklearn.estimator_bytes import estimator_read, estimator_written
from rocerf.promises import Plain

TRAIN = random_training_set(7, n=80, d=3)

LIBRARIES: dict[str, tuple[str, dict[str, Any]]] = {
    "xgboost": ("XGBClassifier", {"n_estimators": 4, "n_jobs": 1}),
    "lightgbm": ("LGBMClassifier", {"n_estimators": 4, "n_jobs": 1, "verbose": -1, "min_child_samples": 5}),
    "catboost": ("CatBoostClassifier", {"iterations": 4, "verbose": 0, "allow_writing_files": False}),
}


def booster(package: str, **more: Any) -> Any:
    if find_spec(package) is None:
        pytest.skip(f"{package} is not installed")
    kind, options = LIBRARIES[package]
    return getattr(__import__(package), kind)(**options, **more)


@pytest.mark.parametrize("package", LIBRARIES)
def test_a_model_comes_back_and_is_fitted_again_as_it_was(package: str, tmp_path: Path) -> None:
    model = EstimatorModel.fit(booster(package), TRAIN)
    model.save(tmp_path / "model.npz")
    again = EstimatorModel.load(tmp_path / "model.npz")
    X = np.asarray(TRAIN.X)
    assert again.score(X) == pytest.approx(model.score(X), abs=1e-12)
    assert again.refitted([TRAIN.ids[:4]]).scores(X) == pytest.approx(model.refitted([TRAIN.ids[:4]]).scores(X))
    assert again.trees is not None


def test_a_catboost_with_categories_that_was_kept_is_fitted_again(tmp_path: Path) -> None:
    rng = np.random.default_rng(0)
    frame = pd.DataFrame({"income": rng.integers(1, 50, 90), "home": rng.choice(["own", "rent"], 90)})
    y = (frame["income"] + 10 * (frame["home"] == "own") > 25).astype(int)
    model = from_pipeline(booster("catboost", cat_features=("home",)).fit(frame, y), frame, y, otherwise="estimator")
    people = frame[model.predict(frame) == 0].head(3)
    explainer = Rocerf(model, 2, promise="retrained", effort="quick")
    explainer.explain(people)
    explainer.save(tmp_path / "kept")
    after = Rocerf.load(tmp_path / "kept").explain(people)
    np.testing.assert_array_equal(after.matrix, explainer.explain(people).matrix)  # from the same pool


@pytest.mark.parametrize("package", LIBRARIES)
def test_a_booster_under_a_threshold_of_its_own_is_kept(package: str, tmp_path: Path) -> None:
    fixed = FixedThresholdClassifier(booster(package), threshold=0.7).fit(np.asarray(TRAIN.X), TRAIN.y)
    rows = TrainingSet(np.asarray(TRAIN.X), TRAIN.y)
    model = EstimatorModel.from_sklearn(fixed, rows)
    model.save(tmp_path / "model.npz")
    again = EstimatorModel.load(tmp_path / "model.npz")
    assert again.threshold == 0.7
    X = np.asarray(TRAIN.X)
    assert again.score(X) == pytest.approx(model.score(X), abs=1e-12)
    assert again.refitted([rows.ids[:4]]).scores(X) == pytest.approx(model.refitted([rows.ids[:4]]).scores(X))


def test_an_explainer_of_boosted_trees_is_kept_in_a_folder(tmp_path: Path) -> None:
    model = EstimatorModel.fit(booster("lightgbm"), TRAIN)
    people = refused_people(model, 0, 3)
    explainer = Rocerf(model, 2, promise="retrained", effort="quick")
    before = explainer.explain(people)
    explainer.save(tmp_path / "kept")
    after = Rocerf.load(tmp_path / "kept")
    points = before.matrix[before.answered]
    assert len(points)
    assert np.array_equal(after.promise.read(points).values, explainer.promise.read(points).values)
    assert after.solver == "cells"


def test_a_pipeline_that_ends_in_a_booster_is_kept(tmp_path: Path) -> None:
    rng = np.random.default_rng(0)
    frame = pd.DataFrame({"income": rng.integers(1, 50, 90), "home": rng.choice(["own", "rent"], 90)})
    y = (frame["income"] + 10 * (frame["home"] == "own") > 25).astype(int)
    steps = make_column_transformer((OneHotEncoder(), ["home"]), remainder="passthrough")
    pipeline = make_pipeline(steps, booster("xgboost")).fit(frame, y)
    model = from_pipeline(pipeline, frame, y, otherwise="estimator")
    assert isinstance(model, EstimatorModel)
    model.save(tmp_path / "model.npz")
    again = EstimatorModel.load(tmp_path / "model.npz")
    assert again.score(frame) == pytest.approx(model.score(frame), abs=1e-12)


def test_a_file_cannot_ask_for_another_class() -> None:
    parts = estimator_written(EstimatorModel.fit(booster("xgboost"), TRAIN).estimator)
    about = json.loads(parts["booster_about"].tobytes())
    for package, kind in (("os", "system"), ("xgboost", "DMatrix")):
        changed = json.dumps(about | {"package": package, "kind": kind}).encode()
        with pytest.raises(ValueError, match="not trusted"):
            estimator_read(parts | {"booster_about": np.frombuffer(changed, np.uint8)})


def test_options_that_are_code_are_refused_with_the_way_out() -> None:
    class Told:
        pass

    fitted = booster("xgboost").fit(np.asarray(TRAIN.X), TRAIN.y.astype(int))
    fitted.callbacks = [Told()]
    with pytest.raises(UnsupportedModelError, match="options are numbers and texts"):
        estimator_written(fitted)


def test_plain_answers_of_a_loaded_model_are_proven(tmp_path: Path) -> None:
    model = EstimatorModel.fit(booster("catboost"), TRAIN)
    model.save(tmp_path / "model.npz")
    again = EstimatorModel.load(tmp_path / "model.npz")
    found = Rocerf(again, 0, promise=Plain(again)).explain(refused_people(again, 1, 3))
    assert found.settings.solver == "cells"
    assert (np.asarray(found.gaps)[found.answered] == 0).all()
