"""Promises about the retraining that really happens: the user's own estimator, which stops short of the optimum."""

from __future__ import annotations

import threading
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pytest
from sklearn.base import clone
from sklearn.datasets import load_breast_cancer
from sklearn.linear_model import LogisticRegression
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import MinMaxScaler, StandardScaler

import rocerf
from own_fits import PIPELINES, K, audited, fitted, loans, refitted_scores
from rocerf import LogisticModel, Rocerf
from rocerf.deletion.random_deletions import random_deletions
from rocerf.errors import OptionError
from rocerf.evaluation.metrics import average_validity, worst_case_validity
from rocerf.models.logistic.ensemble import LinearEnsemble
from rocerf.promises import Certified, FirstOrder, Retrained
from rocerf.promises.allowance import SAFETY, SAFETY_OF_RANDOM_FITS, Allowance
from rocerf.promises.promise import Learning, NearPoint


@pytest.fixture(scope="module")
def taken() -> tuple[Any, LogisticModel]:
    frame, y = loans()
    pipeline = fitted(PIPELINES["minmax"], frame, y)
    return pipeline, rocerf.from_pipeline(pipeline, frame, y)


@pytest.mark.parametrize(
    "name",
    [name if name in ("minmax", "liblinear") else pytest.param(name, marks=pytest.mark.slow) for name in PIPELINES],
)
def test_the_users_own_refit_accepts_every_answer(name: str) -> None:
    frame, y = loans()
    pipeline = fitted(PIPELINES[name], frame, y)
    assert (audited(pipeline, rocerf.from_pipeline(pipeline, frame, y), whole=False) >= 0).all()


@pytest.mark.slow
@pytest.mark.parametrize("name", ["minmax", "raw remainder", "saga"])
def test_the_whole_pipeline_fitted_again_accepts_every_answer(name: str) -> None:
    frame, y = loans()
    pipeline = fitted(PIPELINES[name], frame, y)
    model = rocerf.from_pipeline(pipeline, frame, y, preprocessing="refitted")
    assert (audited(pipeline, model, whole=True) >= 0).all()


@pytest.mark.slow
def test_what_survives_exact_retraining_is_refused_by_the_users_own(taken: Any) -> None:
    """Without this, the tests above could not fail."""
    pipeline, model = taken
    assert (audited(pipeline, model.with_retraining("exact"), whole=False) < 0).sum() >= 3


@pytest.mark.slow
@pytest.mark.parametrize("name", ["minmax", "newton-cg"])
def test_errors_measured_on_some_deletions_cover_others(name: str) -> None:
    frame, y = loans()
    model = rocerf.from_pipeline(fitted(PIPELINES[name], frame, y), frame, y)
    allowance = Rocerf(model, K).promise.allowance
    assert len(allowance.errors) == 17
    X = model.train.X[np.abs(model.score(model.train.X)) < 1]
    allowed, below = allowance.at(X)[0], []
    for ids in random_deletions(model.train, K, 40, seed=99):
        own, exact = model.own_refit.without(model.train.positions(ids)).scores(X), model.without(ids).score(X)
        below.append(own - exact < -allowed)
    share = np.mean(below)
    assert share < 0.005, f"{1 - share:.3%} of the errors are covered"
    assert np.abs(allowance.errors.scores(X)).max(axis=0) * SAFETY == pytest.approx(allowed)


@pytest.mark.parametrize(("kind", "also"), [(Retrained, Learning), (FirstOrder, NearPoint), (Certified, None)])
def test_every_promise_about_exact_retraining_allows_for_it(taken: Any, kind: Any, also: Any) -> None:
    model = taken[1]
    promise = kind(model, 1)
    X = model.train.X[:40]
    exact = promise.read(X)  # nobody uses it yet: it is about exact retraining alone
    assert promise.allowance is None
    assert Rocerf(model, 1, promise=promise).promise is promise
    assert isinstance(promise, Learning) == (also is Learning)
    assert isinstance(promise, NearPoint) == (also is NearPoint)
    reading = promise.read(X)
    np.testing.assert_allclose(reading.values, exact.values - promise.allowance.at(X)[0], atol=1e-12)
    own = np.min([X @ fit.slopes + fit.constant for fit in promise.allowance.fits], axis=0)
    own = np.inf if kind is FirstOrder else own  # an estimate is not held against picked deletions
    np.testing.assert_allclose(promise.check(X, X), np.minimum(reading.foreseen, own), atol=1e-9)
    slopes, constants = reading.cuts(X)  # every gradient is a cut of everybody else's value
    assert (reading.values[None, :] <= slopes @ X.T + constants[:, None] + 1e-9).all()
    if also is NearPoint:
        np.testing.assert_allclose(promise.frozen_at(X)(X).values, reading.values, atol=1e-12)
    if also is Learning:
        assert (promise.remembered(X).values >= reading.values - 1e-12).all()


@pytest.mark.slow
def test_words_never_call_the_users_own_fit_proven(taken: Any) -> None:
    model = taken[1]
    explainer = Rocerf(model, 1, promise="certified")
    said = explainer.settings()
    assert said.sentence.endswith("that part is measured, not proven")
    assert "followed by exact retraining" in said.sentence
    explainer.explain(loans(20, seed=1)[0])
    assert any("LogisticRegression(solver='lbfgs', tol=0.0001" in told for told in explainer.settings().assumptions)
    assert len(explainer.promise.allowance.errors) == 17
    assert any("in 17 fits the user's own estimator was measured" in told for told in explainer.settings().assumptions)
    exact = Rocerf(model.with_retraining("exact"), 1, promise="certified")
    assert exact.promise.allowance is None
    assert any("rocerf's exact retraining (model.without)" in told for told in exact.settings().assumptions)


@pytest.mark.slow
def test_answers_that_the_refit_refuses_are_found_again_with_its_error(taken: Any) -> None:
    pipeline, model = taken
    frame, y = loans()
    people = loans(60, seed=1)[0]
    explainer = Rocerf(model, K, effort="quick")
    promise = explainer.promise
    d = model.train.X.shape[1]
    promise.allowance._errors = LinearEnsemble(
        np.zeros((1, d)), np.zeros(1)
    )  # as if nothing had been measured beforehand
    recourses = explainer.explain(people[pipeline.predict(people) == 0])
    assert len(promise.allowance.errors) > 1
    assert recourses.answered.all()
    deleted = [model.train.positions(ids) for ids in recourses.worst_ids]
    assert (refitted_scores(pipeline, frame, y, deleted, recourses.points, whole=False) >= 0).all()
    assert (recourses.margins >= 0).all()
    own = np.min([recourses.matrix @ fit.slopes + fit.constant for fit in promise.allowance.fits], axis=0)
    told = np.minimum(promise.remembered(recourses.matrix).foreseen, own)  # no fit that was made says less
    np.testing.assert_allclose(recourses.margins, told, atol=1e-9)


@pytest.mark.slow
def test_a_point_that_no_error_saves_is_taken_back(taken: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    pipeline, model = taken
    people = loans(20, seed=1)[0]
    explainer = Rocerf(model, K, effort="quick")
    monkeypatch.setattr(Allowance, "confirm", lambda self, X, worst_ids, delta=0.0: np.full(len(X), -1.0))
    recourses = explainer.explain(people[pipeline.predict(people) == 0])
    assert {status.code for status in recourses.statuses} == {"gave_up"}


def test_errors_are_kept_in_a_file_without_the_estimator(taken: Any, tmp_path: Path) -> None:
    model = taken[1]
    explainer = Rocerf(model, K, effort="quick")
    explainer.save(tmp_path / "kept")
    again = Rocerf.load(tmp_path / "kept")
    assert again.model.own_refit is None
    X = model.train.X[:30]
    np.testing.assert_allclose(again.promise.allowance.at(X)[0], explainer.promise.allowance.at(X)[0], atol=1e-12)
    assert len(again.promise.pool) == len(explainer.promise.pool)
    assert np.isnan(again.promise.allowance.confirm(X, [None] * 30)).all()


@pytest.mark.slow
def test_audits_fit_the_users_own_object(taken: Any) -> None:
    pipeline, model = taken
    people = loans(60, seed=1)[0]
    explainer = Rocerf(model.with_retraining("exact"), K, effort="quick")
    given = explainer.explain(people[pipeline.predict(people) == 0])
    shares = [worst_case_validity(model, given.points, K, effort="quick", seed=9, refit=by) for by in ("exact", "own")]
    assert shares[0] == 1.0 > shares[1]
    assert worst_case_validity(model, given.points, K, effort="quick", seed=9) == shares[1]  # the model's own rule
    rows = rocerf.Adversary(model, K, seed=9).attack_all(given.matrix[:1]).deleted_rows[0]
    after = explainer.recheck(given, model.train.ids[rows], refit="own")
    frame, y = loans()
    truth = refitted_scores(pipeline, frame, y, [rows], given.points.iloc[:1], whole=False)
    np.testing.assert_allclose(after.after[:1], truth, atol=1e-12)
    assert "and retraining by the user's own estimator (within" in str(after)
    exact = explainer.recheck(given, model.train.ids[rows])
    assert np.abs(exact.after - after.after).max() > 1e-4
    assert average_validity(model, given.points, 0.01, 5, refit="own").mean > 0.9
    with pytest.raises(OptionError, match="refit='own'"):
        average_validity(LogisticModel.fit(model.train), given.matrix, 0.01, 5, refit="own")


@pytest.mark.slow
def test_points_are_read_while_another_thread_fits(taken: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    """A fit that ends while the fits made so far are gone through must not disturb it."""
    promise = Rocerf(taken[1], K).promise
    allowance, train = promise.allowance, taken[1].train
    assert len(allowance.errors) == 17
    own = taken[1].own_refit

    class Watched(dict[Any, Any]):
        def values(self) -> Any:
            for fit in super().values():
                other = threading.Thread(target=allowance._fit_without, args=(own, np.array([len(self)])))
                other.start()
                other.join(0.5)
                yield fit

    monkeypatch.setattr(allowance, "_fits", Watched(list(allowance._fits.items())[:2]))
    assert np.isfinite(promise.check(train.X[:3], train.X[:3])).all()


@pytest.mark.slow
def test_fits_that_are_random_are_allowed_for(figures: list[str]) -> None:
    """The user's refit is another one each time: with the allowance of settled fits 1 of 720 was refused."""
    random = clone(PIPELINES["saga"]).set_params(logisticregression__random_state=None)
    frame, y = loans()
    pipeline = fitted(random, frame, y)
    model = rocerf.from_pipeline(pipeline, frame, y)
    explainer = rocerf.Rocerf(model, K, effort="quick")
    people = loans(60, seed=1)[0]
    recourses = explainer.explain(people[pipeline.predict(people) == 0])
    allowance = explainer.promise.allowance
    assert (allowance.varies, allowance.safety) == (True, SAFETY_OF_RANDOM_FITS)
    assert any("fits of the same rows differ" in said for said in map(str, recourses.settings.assumptions))
    deleted = list(rocerf.Adversary(model, K, seed=9).attack_all(recourses.matrix).deleted_rows)
    np.random.seed(11)  # noqa: NPY002 - scikit-learn draws from here where the state is open
    scores = [refitted_scores(pipeline, frame, y, deleted, recourses.points, whole=False) for _ in range(8)]
    figures.append(f"random refits: {np.sum(np.array(scores) < 0)} of {np.size(scores)} answers refused")
    assert np.ptp(scores, axis=0).max() > 0
    assert (np.array(scores) >= 0).all()


def test_a_settled_state_or_solver_does_not_vary() -> None:
    frame, y = loans()
    for name, settled in (("saga", True), ("minmax", True)):
        model = rocerf.from_pipeline(fitted(PIPELINES[name], frame, y), frame, y)
        assert model.own_refit.varies is not settled
        assert model.own_refit.refits == 0  # nothing was fitted to find that out


def cells(people: int, cost: str = "l2") -> tuple[Rocerf, Any]:
    """An explainer over 30 columns that say much the same, where scikit-learn stops far from its optimum."""
    table = load_breast_cancer(as_frame=True)
    pipeline = make_pipeline(StandardScaler(), LogisticRegression(max_iter=1000)).fit(table.data, table.target)
    model = rocerf.from_pipeline(pipeline, table.data, table.target)
    return Rocerf(model, "0.5%", cost=cost), table.data[pipeline.predict(table.data) == 0].head(people)


@pytest.mark.parametrize(("people", "cost"), [(6, "l2"), (40, "l1")])
def test_who_falls_by_a_fit_that_was_made_for_somebody_else_is_answered_by_another_point(
    people: int, cost: str
) -> None:
    explainer, refused = cells(people, cost)
    answers = explainer.explain(refused)
    assert answers.answered.all(), [str(answer.reason) for answer in answers if not answer.answered]
    assert min(fit.affine_scores(answers.matrix).min() for fit in explainer.promise.allowance.fits) >= 0


def test_every_fit_that_was_made_is_held_against_every_point(taken: Any) -> None:
    model = taken[1]
    allowance = Rocerf(model, K, effort="quick").promise.allowance
    known, X = len(allowance.errors), model.train.X[:5]
    rows = np.arange(K, dtype=np.intp)
    fit = allowance._fit_without(model.own_refit, rows)
    allowance._fits[rows.tobytes(), 0] = replace(fit, slopes=0 * fit.slopes, constant=-1.0)
    assert (allowance.confirm(X, [None] * 5) <= -1.0).all()
    assert len(allowance.errors) > known


def test_models_retrained_to_measure_errors_are_cuts_of_the_promise(taken: Any) -> None:
    promise = Rocerf(taken[1], K, effort="quick").promise
    assert len(promise.pool) == 1
    errors = len(promise.allowance.errors)
    assert 1 < len(promise.pool) <= errors  # all but today's fit, the same deletion once
    X = promise.model.train.X[:20]
    for rows, scores in zip(promise.pool.deleted_rows, promise.pool.models.scores(X), strict=True):
        later = promise.model.without(promise.model.train.ids[rows]) if len(rows) else promise.model
        np.testing.assert_allclose(scores, later.score(X), atol=1e-8)


@pytest.mark.parametrize("solver", ["lbfgs", "liblinear"])
def test_nothing_is_promised_about_a_class_that_the_users_own_estimator_could_not_be_fitted_without(
    solver: str,
) -> None:
    """Without a free intercept the exact optimum of one class exists; scikit-learn fits no such rows all the same."""
    rng = np.random.default_rng(0)
    X, y = rng.normal(size=(12, 2)), np.arange(12) < 2
    X[y] += 1.0
    train = rocerf.TrainingSet(X, y.astype(int))
    fitted_on = LogisticRegression(solver=solver, fit_intercept=solver == "liblinear", tol=1e-8).fit(X, train.y)
    own = LogisticModel.from_sklearn(fitted_on, train)
    exact = own.with_retraining("exact")
    assert [model.removable_class(k) for model in (own, exact) for k in (1, 2)] == [None, 1, None, None]
    denied = X[own.predict(X) == 0][:2]
    for promise in ("retrained", "certified"):
        said = Rocerf(own, 2, promise=promise).explain(denied)
        assert {status.code for status in said.statuses} == {"promise_impossible"}
    answers = Rocerf(exact, 2).explain(denied)
    assert answers.answered.any()
    assert rocerf.evaluation.worst_case_validity(exact, answers.points, 2) == 1.0
    assert rocerf.evaluation.worst_case_validity(exact, answers.points, 2, refit="own") == 0.0


def test_no_budget_is_proven_that_the_users_own_refit_undoes() -> None:
    """Points of exact proofs stand at the boundary, where a fit that stops at its tolerance may refuse them."""
    rng = np.random.default_rng(0)
    frame = pd.DataFrame({"a": rng.normal(size=150), "b": rng.gamma(2, 2, 150), "c": rng.normal(size=150)})
    y = (frame["a"] + frame["b"] / 3 - 1 + rng.normal(size=150) > 0.2).astype(int).to_numpy()
    pipeline = make_pipeline(MinMaxScaler(), LogisticRegression(C=100)).fit(frame, y)
    exact, own = (rocerf.from_pipeline(pipeline, frame, y, retraining=rule) for rule in ("exact", "own"))
    points = Rocerf(exact, 1, promise="certified").explain(frame[pipeline.predict(frame) == 0].head(30)).points
    rows, asked = pipeline[0].transform(frame), pipeline[0].transform(points)
    holds = np.ones(30, bool)
    for row in range(150):
        holds &= clone(pipeline[1]).fit(np.delete(rows, row, 0), np.delete(y, row)).predict(asked) == 1
    assert not holds.all()
    assert (Rocerf(exact, 1).removal_budget(points).certified >= 1).all()
    budget = Rocerf(own, 1).removal_budget(points)
    assert (budget.certified[~holds] < 1).all()
    assert "leaves room for what the user's own estimator was measured to be off" in str(budget)
