"""Preprocessing that is fitted again when rows go: against scikit-learn's refits, every deletion tried."""

from __future__ import annotations

from typing import Any

import numpy as np
import pandas as pd
import pytest
from sklearn.compose import ColumnTransformer
from sklearn.impute import SimpleImputer
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import OneHotEncoder, OrdinalEncoder, StandardScaler

import rocerf
from pipelines import applicants, classifier, columns, fitted, log_odds, refitted_from_scratch, usual
from rocerf import Adversary, LogisticModel, Rocerf
from rocerf.deletion.pipeline_refits import PipelineRefits
from rocerf.errors import OptionError
from rocerf.models.sklearn.pipeline_parts import UNSEEN
from rocerf.promises import Certified, FirstOrder, Retrained


def small(handle_unknown: str = "ignore", n: int = 40, seed: int = 3) -> tuple[Any, pd.DataFrame, pd.Series]:
    """A pipeline on few rows, one of whose jobs only two rows have."""
    frame, y = applicants(n, seed)
    frame["job"] = np.where(np.arange(n) < 2, "smith", np.where(frame["job"] == "smith", "clerk", frame["job"]))
    return fitted(usual(handle_unknown), frame, y), frame, y


def refits(pipeline: Any, frame: pd.DataFrame, y: pd.Series) -> LogisticModel:
    model = rocerf.from_pipeline(pipeline, frame, y, preprocessing="refitted")
    assert isinstance(model, LogisticModel)
    return model


def test_a_category_that_vanishes_and_is_ignored_counts_for_nothing() -> None:
    pipeline, frame, y = small("ignore")
    model = refits(pipeline, frame, y)
    gone = frame.index[:2]
    later, truth = model.without(gone), refitted_from_scratch(pipeline, frame, y, gone)
    np.testing.assert_allclose(later.score(frame), log_odds(truth, frame), atol=1e-7)
    slopes, _ = later.halfspaces(later.theta)
    assert slopes[model.train.columns.index("job=smith")] == 0
    assert later.design.width == model.design.width - 1
    # From there on everything goes on: other rows, other people.
    last = later.without(frame.index[2:5])
    truth = refitted_from_scratch(pipeline, frame, y, frame.index[:5])
    np.testing.assert_allclose(last.score(frame), log_odds(truth, frame), atol=1e-7)


def test_a_category_that_vanishes_and_is_an_error_is_refused() -> None:
    pipeline, frame, y = small("error")
    model = refits(pipeline, frame, y)
    gone = frame.index[:2]
    later, truth = model.without(gone), refitted_from_scratch(pipeline, frame, y, gone)
    with pytest.raises(ValueError, match="unknown categories"):
        truth.decision_function(frame)
    rest = frame.iloc[2:]
    np.testing.assert_allclose(later.score(rest), truth.decision_function(rest), atol=1e-7)
    assert (later.score(frame.iloc[:2]) < -UNSEEN / 2).all()
    assert later.predict(frame.iloc[:2]).tolist() == [0, 0]
    ensemble = model.refitted([np.asarray(gone), frame.index.to_numpy()[:0]])
    np.testing.assert_allclose(ensemble.scores(model.train.X)[0], later.score(model.train.X), atol=1e-9)
    np.testing.assert_allclose(ensemble.scores(model.train.X)[1], model.score(model.train.X), atol=1e-9)


@pytest.mark.slow
def test_deleting_a_category_is_found_although_frozen_models_hardly_mind() -> None:
    pipeline, frame, y = small("error")
    model = refits(pipeline, frame, y)
    attacks = Adversary(model, 2).attack(frame)
    assert set(attacks.found_by[:2]) == {"a category vanishes"}
    assert [set(ids) for ids in attacks.deleted_ids[:2]] == [set(frame.index[:2])] * 2
    assert (attacks.scores[:2] < -UNSEEN / 2).all()
    assert (attacks.scores[2:] > -UNSEEN / 2).all()


@pytest.mark.parametrize(
    ("texts", "gone"),
    [
        pytest.param(OrdinalEncoder(handle_unknown="use_encoded_value", unknown_value=-1), slice(0, 2), id="ordinal"),
        pytest.param(OneHotEncoder(drop="first", handle_unknown="ignore"), "clerk", id="reference"),
        pytest.param(make_pipeline(SimpleImputer(strategy="most_frequent"), OneHotEncoder()), "most", id="mode"),
    ],
)
def test_refits_that_the_first_design_cannot_express(texts: Any, gone: Any) -> None:
    _, frame, y = small(n=60)
    if gone == "most":
        frame.loc[frame.index[5::6], "job"] = None
        counts = frame["job"].value_counts()
        gone = frame.index[frame["job"] == counts.index[0]][: int(counts.iloc[0] - counts.iloc[1]) + 1]
    else:
        gone = frame.index[frame["job"] == gone] if isinstance(gone, str) else frame.index[gone]
    for intercept in (True, False):
        encode = columns(StandardScaler(), texts)
        pipeline = fitted(make_pipeline(encode, classifier(fit_intercept=intercept)), frame, y)
        model = refits(pipeline, frame, y)
        later, truth = model.without(gone), refitted_from_scratch(pipeline, frame, y, gone)
        np.testing.assert_allclose(later.score(frame), log_odds(truth, frame), atol=1e-7)


def test_a_mean_that_moves_moves_what_is_filled_in() -> None:
    frame, y = applicants(80, missing=True)
    numbers = make_pipeline(SimpleImputer(), StandardScaler())
    texts = make_pipeline(SimpleImputer(strategy="most_frequent"), OneHotEncoder(handle_unknown="ignore"))
    pipeline = fitted(make_pipeline(columns(numbers, texts), classifier()), frame, y)
    model = refits(pipeline, frame, y)
    gone = frame["income"].nlargest(8).index
    later, truth = model.without(gone), refitted_from_scratch(pipeline, frame, y, gone)
    assert later.frames is not None
    assert later.frames.fills["income"] == pytest.approx(frame["income"].drop(gone).mean())
    np.testing.assert_allclose(later.score(frame), log_odds(truth, frame), atol=1e-7)
    frozen = model.frozen.without(gone)
    assert frozen.frames is not None
    assert frozen.frames.fills["income"] == pytest.approx(frame["income"].mean())
    assert np.abs(frozen.score(frame) - later.score(frame)).max() > 1e-3


@pytest.mark.slow
def test_the_adversary_speaks_about_refitted_pipelines() -> None:
    """For one deletion, every one is tried by scikit-learn."""
    pipeline, frame, y = small()
    model, people = refits(pipeline, frame, y), frame.iloc[5:25]
    every = np.array([log_odds(refitted_from_scratch(pipeline, frame, y, [row]), people) for row in frame.index])
    attacks = Adversary(model, 1, effort="thorough").attack(people)
    for place, attack in enumerate(attacks):
        claimed = log_odds(refitted_from_scratch(pipeline, frame, y, attack.deleted_ids), people.iloc[[place]])[0]
        assert attack.score == pytest.approx(claimed, abs=1e-7)
    truth = every.min(axis=0)
    assert (attacks.scores >= truth - 1e-7).all()
    assert np.mean(attacks.scores <= truth + 1e-7) >= 0.9
    assert np.isnan(attacks.thetas).all()
    frozen = Adversary(model.frozen, 1, effort="thorough").attack(people)
    assert np.abs(frozen.scores - attacks.scores).max() > 1e-4
    np.testing.assert_allclose(
        np.einsum("ij,ij->i", attacks.slopes, model.matrix(people)) + attacks.constants, attacks.scores
    )


@pytest.mark.slow
def test_searches_go_on_where_only_the_frozen_model_falls_below() -> None:
    pipeline, frame, y = small()
    model, people = refits(pipeline, frame, y), frame.iloc[5:25]
    X = model.matrix(people)
    frozen, full = Adversary(model.frozen, 2).attack_all(X), Adversary(model, 2).attack_all(X)
    between = (frozen.scores + full.scores) / 2  # below it for one of the two only
    stopped = Adversary(model, 2).attack_all(X, stop_below=between)
    undecided = stopped.scores >= between
    assert undecided.any()
    np.testing.assert_allclose(stopped.scores[undecided], full.scores[undecided], atol=1e-9)


@pytest.mark.slow
def test_retrained_promises_hold_for_refitted_pipelines() -> None:
    pipeline, frame, y = small("error", n=80)
    model = refits(pipeline, frame, y)
    denied = frame[model.predict(frame) == 0].iloc[:8]
    promise = Retrained(model, 2)
    X = model.matrix(denied)
    reading = promise.read(X)
    truths = []
    for place in range(len(X)):
        later = refitted_from_scratch(pipeline, frame, y, reading.worst_ids(place))
        try:
            truths.append(log_odds(later, denied.iloc[[place]])[0])
        except ValueError:  # its category is gone
            truths.append(-UNSEEN)
    np.testing.assert_allclose(np.maximum(reading.margins, -UNSEEN / 2), np.maximum(truths, -UNSEEN / 2), atol=1e-7)
    assert any("preprocessing fitted again" in said for said in promise.assumptions)
    slopes, constants = reading.cuts(X)
    np.testing.assert_allclose(np.einsum("ij,ij->i", slopes, X) + constants, reading.values)


@pytest.mark.slow
def test_recourse_for_refitted_pipelines_is_accepted_by_every_single_refit() -> None:
    pipeline, frame, y = small("error", n=60)
    model = refits(pipeline, frame, y)
    denied = frame[model.predict(frame) == 0].iloc[:6]
    explainer = Rocerf(model, 1, schema=model.schema)
    recourses = explainer.explain(denied)
    answered = recourses.points[recourses.answered]
    assert len(answered) >= 5
    for row in frame.index:
        assert (refitted_from_scratch(pipeline, frame, y, [row]).decision_function(answered) >= 0).all()
    assert rocerf.evaluation.worst_case_validity(model, answered, 1) == 1.0
    budget = explainer.removal_budget(answered, most=3)
    assert (budget.found >= 1).all()
    assert budget.proofs == ()
    check = explainer.recheck(recourses, frame.index[:1])
    assert check.preprocessing is not None
    assert check.preprocessing.rule == "refitted"
    frozen = model.frozen.without(frame.index[:1]).score(answered)
    gap = np.abs(frozen - model.without(frame.index[:1]).score(answered)).max()
    assert check.preprocessing.largest == pytest.approx(gap, abs=1e-9)
    assert "frozen preprocessing scores differ" in str(check)


@pytest.mark.slow
def test_recheck_of_a_frozen_pipeline_reports_the_other_way() -> None:
    pipeline, frame, y = small("ignore", n=60)
    model = rocerf.from_pipeline(pipeline, frame, y)
    denied = frame[model.predict(frame) == 0].iloc[:6]
    explainer = Rocerf(model, 1, schema=model.schema)
    recourses = explainer.explain(denied)
    gone = frame["income"].nlargest(12).index
    check = explainer.recheck(recourses, gone)
    X = recourses.matrix[recourses.answered]
    one, two = model.without(gone).score(X), model.with_preprocessing("refitted").without(gone).score(X)
    assert check.preprocessing is not None
    assert check.preprocessing.largest == pytest.approx(np.abs(one - two).max(), abs=1e-9)
    assert check.preprocessing.decisions == int(((one >= 0) != (two >= 0)).sum())
    assert '"preprocessing": {"rule": "frozen"' in check.to_json()


def test_promises_about_frozen_preprocessing_refuse() -> None:
    pipeline, frame, y = small()
    model = refits(pipeline, frame, y)
    for name, promise in (("first_order", FirstOrder), ("certified", Certified)):
        with pytest.raises(OptionError, match=rf"'frozen' for the promise '{name}'.*'retrained' or 'simulated'"):
            Rocerf(model, 1, promise=name)
        with pytest.raises(OptionError, match=r"model\.frozen"):
            promise(model, 1)
        promise(model.frozen, 1)
    assert any("fitted again on the rows left" in said for said in model.assumptions())
    assert any("stay as they are" in said and "encoding" in said for said in model.frozen.assumptions())


def test_promises_about_frozen_preprocessing_hold_for_pipelines() -> None:
    pipeline, frame, y = small(n=80)
    model = rocerf.from_pipeline(pipeline, frame, y)
    X = model.train.X[:20]
    worst = Adversary(model, 1, effort="thorough").attack(X).scores
    proof = Certified(model, 1)
    assert proof.certificate.closed
    assert (proof.bound(X) <= worst + 1e-9).all()
    np.testing.assert_allclose(proof.bound(frame.iloc[:20]), proof.bound(X))
    estimate = FirstOrder(model, 1).read(X)
    np.testing.assert_allclose(estimate.values, worst, atol=0.3)
    np.testing.assert_allclose(estimate.cuts(X)[0], estimate.slopes)


def test_a_column_that_no_row_left_has_a_value_of() -> None:
    frame, y = applicants(30)
    frame["bonus"] = np.where(np.arange(30) < 2, [1.0, 2.0] + [np.nan] * 28, np.nan)
    encode = ColumnTransformer([("n", SimpleImputer(strategy="mean"), ["age", "bonus"])])
    pipeline = fitted(make_pipeline(encode, classifier()), frame, y)
    model = refits(pipeline, frame, y)
    # Without these two rows the imputer drops the column, and the model goes on without it.
    later = model.without(frame.index[:2])
    truth = refitted_from_scratch(pipeline, frame, y, frame.index[:2])
    np.testing.assert_allclose(later.score(frame.iloc[5:]), log_odds(truth, frame.iloc[5:]), atol=1e-7)


def test_every_set_is_refitted_once(monkeypatch: pytest.MonkeyPatch) -> None:
    pipeline, frame, y = small()
    model = refits(pipeline, frame, y)
    counted: list[int] = []
    original = LogisticModel.without
    monkeypatch.setattr(LogisticModel, "without", lambda self, ids: counted.append(len(ids)) or original(self, ids))
    models = PipelineRefits.of(model)
    sets = [np.array([3, 1]), np.array([1, 3]), np.empty(0, np.intp)]
    models.halfspaces(sets)
    PipelineRefits.of(model).halfspaces(sets)
    assert counted == [2]
