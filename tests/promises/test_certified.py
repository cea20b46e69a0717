"""The proven promise inside the search: what is called proven survives every subset, and abstentions say why."""

from __future__ import annotations

import numpy as np
import pytest
from sklearn.linear_model import LogisticRegression

from problems import random_training_set, refused_people, subsets
from rocerf import Adversary, LogisticModel, Rocerf, Status, TrainingSet
from rocerf.promises import Certified


@pytest.mark.slow
@pytest.mark.parametrize("options", [{"C": 0.3}, {"gamma": 0.05}, {"C": 0.3, "threshold": 0.7}])
@pytest.mark.parametrize("seed", range(3))
def test_certified_points_survive_every_deletion(seed: int, options: dict) -> None:
    train = random_training_set(seed, n=30, d=2, weights=seed == 2)
    model = LogisticModel.fit(train, **options)
    k = 2
    people = refused_people(model, seed, 5)
    recourses = Rocerf(model, k, promise="certified").explain(people)
    slopes, constants = model.halfspaces(
        np.array([model.without(train.ids[list(S)]).theta if S else model.theta for S in subsets(30, k)])
    )
    worst = (recourses.matrix @ slopes.T + constants).min(axis=1)
    for recourse, truth in zip(recourses, worst, strict=True):
        if recourse.certified:
            assert truth >= recourse.margin - 1e-9 >= -1e-9
            assert recourse.certificate.bound == recourse.margin
            assert "proven to stay accepted" in recourse.promise
    assert recourses.certified.any()


def test_proven_costs_more_than_tested_and_not_much_more_for_one_deletion() -> None:
    model = LogisticModel.fit(random_training_set(4, n=80), C=1.0)
    people = refused_people(model, 4, 8)
    proven = Rocerf(model, 1, promise="certified").explain(people)
    tested = Rocerf(model, 1, promise="retrained").explain(people)
    assert proven.certified.all()
    assert not tested.certified.any()
    assert (proven.costs <= 1.02 * tested.costs).all()  # one deletion is enumerated: the same optimum, without slack
    assert "tested, not proven" in tested.settings.sentence
    assert "proven" not in tested[0].certificate.reason.replace("nothing is proven", "")


def test_an_abstention_is_a_result_with_reason_and_a_smaller_k_that_closes() -> None:
    model = LogisticModel.fit(random_training_set(5, n=40), C=100.0)
    recourses = Rocerf(model, 12, promise="certified").explain(refused_people(model, 5, 2))
    assert all(status is Status.PROMISE_IMPOSSIBLE for status in recourses.statuses)
    assert "does not close" in recourses.reasons[0]
    assert "closes for up to" in recourses.reasons[0]
    assert np.isnan(recourses[0].certificate.bound)
    assert recourses[0].certificate.reason == recourses.reasons[0]


@pytest.mark.slow
def test_the_bound_can_be_asked_for_any_point() -> None:
    model = LogisticModel.fit(random_training_set(9, n=60), C=0.5, threshold=0.4)
    promise = Certified(model, 2)
    np.testing.assert_allclose(promise.bound(model.train.X), promise.read(model.train.X).values, atol=1e-9)
    attacked = Adversary(model, 2, effort="thorough").attack(model.train.X[:20])
    assert (promise.bound(model.train.X[:20]) <= attacked.scores + 1e-9).all()
    wild = LogisticModel.fit(random_training_set(5, n=40), C=100.0)
    assert (Certified(wild, 12).bound(wild.train.X) == -np.inf).all()


def test_a_class_that_can_vanish_is_named() -> None:
    rng = np.random.default_rng(0)
    train = TrainingSet(rng.normal(size=(30, 2)), [1] * 27 + [0] * 3)
    promise = Certified(LogisticModel.fit(train), 3)
    assert "labelled 0" in (promise.impossible() or "")


def test_cuts_lie_above_the_bound_everywhere_in_schema_space() -> None:
    model = LogisticModel.fit(random_training_set(6, n=60), C=0.5, threshold=0.6)
    promise = Certified(model, 3)
    assert promise.impossible() is None
    rng = np.random.default_rng(1)
    at = model.train.X[:6]
    elsewhere = model.train.X + 2 * rng.normal(size=model.train.X.shape) * model.train.spread
    reading = promise.read(at)
    slopes, constants = reading.cuts(at)
    gaps = elsewhere @ slopes.T + constants - promise.read(elsewhere).values[:, None]
    assert gaps.min() > -1e-8


def test_the_deployed_scikit_learn_model_accepts_too() -> None:
    train = random_training_set(7, n=200)
    X = (train.X - train.X.mean(0)) / train.spread
    fitted = LogisticRegression(tol=1e-3).fit(X, train.y)
    model = LogisticModel.from_sklearn(fitted, TrainingSet(X, train.y))
    people = X[fitted.predict(X) == 0][:10]
    for promise in ("certified", "retrained", "first_order"):
        recourses = Rocerf(model, 1, promise=promise).explain(people)
        assert recourses.answered.all()
        assert (fitted.predict(recourses.matrix) == 1).all()


def test_assumptions_are_stated() -> None:
    model = LogisticModel.fit(random_training_set(8), gamma=0.1)
    settings = Rocerf(model, 1, promise="certified").explain(refused_people(model, 8, 1)).settings
    text = " ".join(settings.assumptions)
    for word in ("the paper's convention", "scaling", "Newton decrement", "double precision"):
        assert word in text


@pytest.mark.slow
def test_a_long_proof_says_how_far_it_is() -> None:
    model = LogisticModel.fit(random_training_set(5, n=60), C=100.0)
    told: list[tuple[int, int]] = []
    explainer = Rocerf(model, 3, promise="certified")
    explainer.prepare(lambda done, total: told.append((done, total)))
    assert told
    assert all(0 <= done <= total for done, total in told)
    before = explainer.promise.certificate
    explainer.prepare(lambda *_: told.clear())
    assert explainer.promise.certificate is before  # once is enough
    assert told
