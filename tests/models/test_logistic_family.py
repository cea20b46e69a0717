"""The rest of the logistic family: balanced weights, searches, calibrations, scorecards."""

from __future__ import annotations

import subprocess
import sys
from importlib.util import find_spec
from inspect import signature
from typing import Any

import numpy as np
import pandas as pd
import pytest
from sklearn.calibration import CalibratedClassifierCV
from sklearn.frozen import FrozenEstimator
from sklearn.linear_model import LogisticRegression, LogisticRegressionCV
from sklearn.model_selection import FixedThresholdClassifier, GridSearchCV, TunedThresholdClassifierCV
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler

import rocerf
from pipelines import ONE_HOT, applicants, classifier, columns, fitted, log_odds, model_of, usual
from problems import random_training_set, refused_people
from rocerf import LogisticModel, Rocerf, TrainingSet
from rocerf.errors import UnsupportedModelError
from rocerf.models.sklearn.wrapped import _lowest

#: Fits that go to their optimum.
TIGHT = {"solver": "newton-cholesky", "tol": 1e-10, "max_iter": 1000}


@pytest.mark.parametrize("weights", [False, True])
def test_balanced_weights_are_balanced_anew_when_rows_go(weights: bool, tmp_path: Any) -> None:
    rng = np.random.default_rng(1)
    X = rng.normal(size=(80, 2))
    y = (X[:, 0] + rng.normal(size=80) > 0.8).astype(int)
    w = np.linspace(0.5, 2.0, 80) if weights else None
    own = LogisticRegression(class_weight="balanced", **TIGHT).fit(X, y, sample_weight=w)
    model = LogisticModel.from_sklearn(own, TrainingSet(X, y), sample_weight=w)
    gone = np.flatnonzero(y == 1)[:6]
    kept = np.delete(np.arange(80), gone)
    again = LogisticRegression(class_weight="balanced", **TIGHT)
    again.fit(X[kept], y[kept], sample_weight=None if w is None else w[kept])
    np.testing.assert_allclose(model.without(gone).score(X), again.decision_function(X), atol=1e-5)
    model.save(tmp_path / "model.npz")
    read = LogisticModel.load(tmp_path / "model.npz")
    np.testing.assert_allclose(read.without(gone).score(X), model.without(gone).score(X), atol=1e-9)
    assert any("balanced anew" in said for said in model.assumptions())


@pytest.mark.parametrize("seed", [5, 6, 7, 8])
def test_answers_with_balanced_weights_survive_every_deletion_of_one_row(seed: int) -> None:
    train = random_training_set(seed, n=60)
    own = LogisticRegression(class_weight="balanced", **TIGHT).fit(train.X, train.y)
    model = LogisticModel.from_sklearn(own, TrainingSet(train.X, train.y.astype(int)))
    explainer = Rocerf(model, 1)
    recourses = explainer.explain(refused_people(model, seed, 6))
    assert recourses.answered.all()
    for row in range(60):
        again = LogisticRegression(class_weight="balanced", **TIGHT)
        again.fit(np.delete(train.X, row, axis=0), np.delete(train.y, row))
        assert (again.decision_function(recourses.matrix) >= 0).all()
    assert any("balanced anew" in said for said in recourses.settings.assumptions)
    proven = Rocerf(model, 1, promise="certified")
    assert any("class weights as they are today" in said for said in proven.settings().assumptions)


def test_a_search_is_the_pipeline_it_chose_and_says_so() -> None:
    frame, y = applicants()
    search = GridSearchCV(usual(), {"logisticregression__C": [0.1, 1.0]}, cv=2).fit(frame, y)
    model = rocerf.from_pipeline(search, frame, y)
    np.testing.assert_array_equal(model.deployed_score(frame), search.decision_function(frame))
    assert any("search chose" in said for said in model.assumptions())
    newer = "use_legacy_attributes" in signature(LogisticRegressionCV).parameters  # scikit-learn 1.7 has no such thing
    asked: dict[str, Any] = {"l1_ratios": (0.0,), "use_legacy_attributes": False} if newer else {}
    last = LogisticRegressionCV(cv=2, scoring="accuracy", max_iter=500, **asked)
    pipeline = fitted(make_pipeline(columns(StandardScaler(), ONE_HOT), last), frame, y)
    model = model_of(pipeline, frame, y)
    np.testing.assert_allclose(model.deployed_score(frame), log_odds(pipeline, frame))
    assert any("search chose" in said for said in model.assumptions())
    later = model.forget(frame.index[:5])
    assert any("search chose" in said for said in later.assumptions())


#: Calibrations by one temperature are newer than the oldest scikit-learn that is supported.
METHODS = sorted(CalibratedClassifierCV._parameter_constraints["method"][0].options)


@pytest.mark.parametrize("favourable", [0, 1])
@pytest.mark.parametrize("threshold", [0.35, 0.5])
@pytest.mark.parametrize("method", METHODS)
def test_a_calibration_is_a_threshold_on_the_score_below_it(method: str, threshold: float, favourable: int) -> None:
    frame, y = applicants(200)
    calibrated = CalibratedClassifierCV(usual(), method=method, cv=3, ensemble=False).fit(frame, y.to_numpy())
    model = rocerf.from_pipeline(calibrated, frame, y, threshold=threshold, favourable=favourable)
    chance = calibrated.predict_proba(frame)[:, favourable]
    # A threshold that is said is reached; of 0.5, which is the classifier's own, its own predict says who is accepted.
    accepted = chance >= threshold if threshold != 0.5 else calibrated.predict(frame) == favourable
    np.testing.assert_array_equal(model.predict(frame), accepted)
    assert any("calibration stays" in said for said in model.assumptions())
    people = frame[~accepted].head(3)
    answers = Rocerf(model, 1, cost="l1").explain(people)
    assert answers.answered.any()
    points = answers.points[answers.answered]
    assert (calibrated.predict_proba(points)[:, favourable] >= threshold).all()


@pytest.mark.parametrize("favourable", [0, 1])
@pytest.mark.parametrize("own_threshold", [False, True])
def test_who_stands_on_a_level_of_one_half_is_told_what_predict_says(favourable: int, own_threshold: bool) -> None:
    """Isotonic calibrations stay at 0.5 over whole ranges, where scikit-learn chooses the first class."""
    frame = pd.DataFrame({"income": np.arange(80.0)})
    y = np.repeat([0, 1], 40)
    y[30:50:2], y[31:50:2] = 1, 0  # among incomes of 30 to 50 every second one
    below = FrozenEstimator(LogisticRegression().fit(frame, y))
    calibrated: Any = CalibratedClassifierCV(below, method="isotonic", ensemble=False)
    if own_threshold:
        calibrated = FixedThresholdClassifier(calibrated, threshold=0.5)
    calibrated.fit(frame, y)
    level = calibrated.predict_proba(frame)[:, 1] == 0.5
    assert level.sum() > 5
    model = rocerf.from_pipeline(calibrated, frame, y, favourable=favourable, retraining="exact")
    np.testing.assert_array_equal(model.predict(frame), calibrated.predict(frame) == favourable)
    people = frame[calibrated.predict(frame) != favourable].iloc[::5]
    for promise in ("plain", "retrained"):
        answers = Rocerf(model, None if promise == "plain" else 1, promise=promise).explain(people)
        assert answers.answered.any()
        assert (calibrated.predict(answers.points[answers.answered]) == favourable).all()


def test_a_calibration_inside_a_pipeline_and_one_that_accepts_nobody() -> None:
    frame, y = applicants(200)
    last = CalibratedClassifierCV(classifier(), method="sigmoid", cv=3, ensemble=False)
    pipeline = fitted(make_pipeline(columns(StandardScaler(), ONE_HOT), last), frame, y)
    model = model_of(pipeline, frame, y)
    np.testing.assert_array_equal(model.predict(frame), (pipeline.predict_proba(frame)[:, 1] >= 0.5).astype(int))
    with pytest.raises(UnsupportedModelError, match=r"stays below the threshold 0.5.*otherwise='estimator'"):
        _lowest(lambda scores: np.full(len(scores), 0.4), 0.5)
    with pytest.raises(UnsupportedModelError, match=r"falls somewhere; leave the calibration out"):
        _lowest(lambda scores: np.exp(-(scores**2)), 0.5)


SCORECARD = """
import warnings
warnings.simplefilter("ignore")
import numpy as np
from optbinning import BinningProcess, Scorecard
from sklearn.linear_model import LogisticRegression
import rocerf

data = rocerf.load_raw("german")
train = data.train[["duration", "amount", "savings", "age", "housing"]]
schema = rocerf.FeatureSchema.from_frame(train, immutable=["age"])
own = LogisticRegression(solver="newton-cholesky", tol=1e-8)
card = Scorecard(BinningProcess(list(train.columns), categorical_variables=["savings", "housing"]), own)
card.fit(train, data.y_train)
model = rocerf.from_pipeline(card, train, data.y_train, schema=schema)
assert np.array_equal(model.predict(train), (card.predict_proba(train)[:, 1] >= 0.5).astype(int))
denied = train[model.predict(train) == 0].head(5)
answers = rocerf.Rocerf(model, 4, cost="l1").explain(denied)
assert answers.answered.all(), answers
assert (card.predict_proba(answers.points)[:, 1] >= 0.5).all()
print("held")
"""


@pytest.mark.slow
@pytest.mark.skipif(find_spec("optbinning") is None, reason="optbinning is not installed")
def test_a_scorecard_is_answered_though_or_tools_brings_a_highs_of_its_own() -> None:
    # In a process of its own: of two libraries called libhighs only the first can be loaded.
    run = subprocess.run([sys.executable, "-c", SCORECARD], capture_output=True, text=True, timeout=600, check=False)
    assert run.stdout.strip().endswith("held"), run.stderr


@pytest.mark.parametrize("favourable", [0, 1])
@pytest.mark.parametrize("threshold", [0.5, 0.7])
def test_calibrations_of_one_frozen_classifier_are_a_threshold_on_its_score(threshold: float, favourable: int) -> None:
    frame, y = applicants(200)
    frozen = FrozenEstimator(fitted(usual(), frame, y))
    several = CalibratedClassifierCV(frozen, cv=3, ensemble=True).fit(frame, y)
    assert len(several.calibrated_classifiers_) == 3
    model = rocerf.from_pipeline(several, frame, y, threshold=threshold, favourable=favourable)
    accepted = several.predict_proba(frame)[:, favourable] >= threshold
    np.testing.assert_array_equal(model.predict(frame), accepted.astype(int))
    different = CalibratedClassifierCV(usual(), cv=2).fit(frame, y)
    with pytest.raises(UnsupportedModelError, match=r"2 different ones whose probabilities are averaged.*Frozen"):
        rocerf.from_pipeline(different, frame, y)


def test_a_tuned_threshold_is_that_of_the_model_taken_over() -> None:
    frame, y = applicants(200)
    tuned = TunedThresholdClassifierCV(usual(), cv=2, random_state=0).fit(frame, y)
    model = rocerf.from_pipeline(tuned, frame, y)
    assert model.threshold == tuned.best_threshold_
    np.testing.assert_array_equal(model.predict(frame), tuned.predict(frame))
    of_scores = FixedThresholdClassifier(usual(), threshold=0.3, response_method="decision_function").fit(frame, y)
    with pytest.raises(UnsupportedModelError, match="decides by the decision function"):
        rocerf.from_pipeline(of_scores, frame, y)


AFTERWARDS = """
import warnings
warnings.simplefilter("ignore")
import numpy as np
import rocerf

rng = np.random.default_rng(0)
X = rng.normal(size=(200, 3))
y = (X.sum(axis=1) + rng.normal(size=200) > 0).astype(int)
model = rocerf.LogisticModel.fit(rocerf.TrainingSet(X, y))
denied = X[model.predict(X) == 0][:3]
before = rocerf.Rocerf(model, 2, cost="l1").explain(denied)
from optbinning import OptimalBinning
for solver in ("cp", "mip"):
    assert OptimalBinning(solver=solver).fit(X[:, 0], y).status == "OPTIMAL"
assert np.array_equal(before.costs, rocerf.Rocerf(model, 2, cost="l1").explain(denied).costs)
print("held")
"""


@pytest.mark.slow
@pytest.mark.skipif(find_spec("optbinning") is None, reason="optbinning is not installed")
def test_optbinning_can_be_imported_after_an_answer_was_given() -> None:
    run = subprocess.run([sys.executable, "-c", AFTERWARDS], capture_output=True, text=True, timeout=600, check=False)
    assert run.stdout.strip().endswith("held"), run.stderr
