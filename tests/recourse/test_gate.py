"""Nothing leaves that was not checked at the very point that leaves, whoever found it and however it was moved."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from every_deletion import lowest_scores
from problems import random_training_set, refused_people
from rocerf import Adversary, FeatureSchema, LogisticModel, Rocerf, Status, TrainingSet
from rocerf.data.feature import Feature
from rocerf.deletion.worst_rows import drops_by_duality, find_worst_rows
from rocerf.promises import Certified, FirstOrder, Retrained
from rocerf.promises.plain import Plain
from rocerf.recourse.gate import Gate
from rocerf.recourse.master.feasible_set import FeasibleSet
from rocerf.recourse.master.master import Master
from rocerf.recourse.solvers.solution import Outcome, Solution


def with_an_outlier(seed: int) -> LogisticModel:
    """Raw columns; one value is so large that its column's spread makes every ordinary change look like nothing."""
    rng = np.random.default_rng(seed)
    X = rng.normal(size=(30, 2))
    y = (rng.random(30) < 1 / (1 + np.exp(-2 * X.sum(axis=1)))).astype(int)
    y[:2] = [0, 1]
    X[0, 0] = 1e10 if y[0] else -1e10
    return LogisticModel.fit(TrainingSet(X, y), C=1.0, scale=False)


@pytest.mark.parametrize("cost", ["l1", "l2"])
def test_a_point_that_is_tidied_up_is_read_again(cost: str) -> None:
    schema = FeatureSchema((Feature("x0", lower=-0.2, upper=0.2), Feature("x1")))
    certified = 0
    for seed in range(4):
        model = with_an_outlier(seed)
        people = np.random.default_rng(seed + 100).normal(size=(20, 2)) * [0.0, 1.0]
        found = Rocerf(model, 1, promise="certified", schema=schema, cost=cost).explain(people)
        proven = found.certified
        truth = lowest_scores(model, found.matrix[proven], 1)
        assert (found.margins[proven] <= truth + 1e-9).all()
        assert (truth >= 0).all()
        certified += int(proven.sum())
    assert certified >= 20


def barely_accepted(master: Master, model: LogisticModel, room: float) -> Solution:
    """What a careless solver returns: points just behind the model's boundary, said to be found."""
    slopes, constant = (part[0] for part in model.halfspaces(model.theta[None]))
    missing = room - (master.X0 @ slopes + constant)
    solution = Solution.blank(*master.X0.shape)
    solution.points[:] = master.X0 + missing[:, None] * slopes / (slopes @ slopes)
    solution.values[:] = 1.0
    solution.outcomes[:] = Outcome.FOUND
    return solution


@pytest.mark.parametrize("room", [1e-9, 0.05, 0.4, 1.5])
@pytest.mark.parametrize("promise", ["certified", "retrained", "first_order"])
def test_no_solver_is_believed(promise: str, room: float) -> None:
    model = LogisticModel.fit(random_training_set(1, n=30, d=2))
    people = refused_people(model, 1, 8)
    explainer = Rocerf(model, 1, promise=promise)
    found = explainer.explain_by(lambda master, _: barely_accepted(master, model, room), people)
    truth = lowest_scores(
        model, barely_accepted(Master.over(people, explainer.cost, _free(people)), model, room).points, 1
    )
    for recourse, lowest in zip(found, truth, strict=True):
        if promise != "first_order":  # one deletion is searched for exhaustively on so few rows
            assert recourse.answered == (lowest >= 0)
        if recourse.answered:
            estimate = 0.5 if promise == "first_order" else 1e-9
            assert recourse.margin <= lowest + estimate
            assert recourse.margin < room
        else:
            assert recourse.status is Status.GAVE_UP
            assert "at exactly the values that would be handed out the promise is not kept" in recourse.reason
            assert not recourse.certified
    assert room <= 0.05 or found.answered.all()
    assert room > 0.05 or not found.answered.all()


def _free(people: np.ndarray) -> FeasibleSet:
    return FeasibleSet.around(people, None)


class _Accepting:
    """A model that accepts everything."""

    def __init__(self, model: LogisticModel) -> None:
        self._model = model

    def __getattr__(self, name: str) -> Any:
        return getattr(self._model, name)

    def deployed_score(self, X: Any) -> np.ndarray:
        return np.ones(len(X))


@pytest.mark.parametrize("weakened", ["rules", "model", "promise"])
def test_weakening_any_check_of_the_gate_lets_something_through(weakened: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """The gate is all there is between a careless solver and a person: each of its checks withholds something."""
    model = LogisticModel.fit(random_training_set(2, n=30, d=2))
    people = refused_people(model, 2, 6)
    columns = model.train.columns
    schema = FeatureSchema(tuple(Feature(name, direction="fixed") for name in columns)) if weakened == "rules" else None
    room = {"rules": 1.5, "model": -0.5, "promise": 1e-9}[weakened]
    promise = "plain-like" if weakened == "model" else "certified"

    def answered() -> int:
        asked: Any = Plain(model) if promise == "plain-like" else promise
        explainer = Rocerf(model, 0 if promise == "plain-like" else 1, promise=asked, schema=schema)
        found = explainer.explain_by(lambda master, _: barely_accepted(master, model, room), people)
        return int(found.answered.sum())

    assert answered() == 0
    if weakened == "rules":
        monkeypatch.setattr(FeasibleSet, "holds", lambda self, X: np.ones(len(X), bool))
    elif weakened == "model":
        unasked = property(lambda self: Gate(_Accepting(self.model), self.promise, self.delta))
        monkeypatch.setattr(Rocerf, "gate", unasked)
        monkeypatch.setattr(Plain, "check", lambda self, X, *_: np.ones(len(X)))
    else:
        monkeypatch.setattr(Certified, "check", lambda self, X, *_: np.ones(len(X)))
    assert answered() > 0


def test_margins_are_those_of_the_points_told() -> None:
    model = LogisticModel.fit(random_training_set(3, n=40))
    people = refused_people(model, 3, 6)
    for promise in ("certified", "retrained", "first_order"):
        explainer = Rocerf(model, 2, promise=promise)
        found = explainer.explain(people)
        again = explainer.gate(found.matrix, _free(people))
        assert again.passed.all()
        np.testing.assert_allclose(again.margins, found.margins, rtol=0, atol=1e-12)


def test_the_gate_says_which_check_failed() -> None:
    model = LogisticModel.fit(random_training_set(4, n=40))
    people = refused_people(model, 4, 2)
    gate = Gate(model, FirstOrder(model, 2), 0.0)
    verdict = gate(people, _free(people))
    assert not verdict.passed.any()
    assert "the model in use refuses it" in verdict.reasons[0]
    boxed = FeasibleSet(people, people, people)
    assert "a rule is broken" in gate(people + 1.0, boxed).reasons[1]


# --- the promises, read by other code ---------------------------------------------------------------


@pytest.mark.parametrize("k", [0, 1, 3, 20])
def test_first_order_by_duality_is_first_order_by_selection(k: int) -> None:
    model = LogisticModel.fit(random_training_set(5, n=300, d=4))
    promise, X = FirstOrder(model, k), refused_people(model, 5, 70)
    by_selection = promise.read(X).foreseen
    np.testing.assert_allclose(promise.check(X, X), by_selection, rtol=0, atol=1e-10)
    unread = FirstOrder(model, k)
    np.testing.assert_allclose(unread.check(X, X), by_selection, rtol=0, atol=1e-10)
    unread._thresholds = dict.fromkeys(unread._thresholds, -1e-3)  # a wrong start makes it lower, never higher
    assert (unread.check(X, X) <= by_selection + 1e-12).all()


def test_duality_never_lies_above_the_sum_of_the_smallest() -> None:
    rng = np.random.default_rng(0)
    beta, effects = rng.normal(size=(150, 3)), rng.normal(size=(500, 3))
    for k in (0, 1, 7, 499):
        sums = np.minimum(np.sort(beta @ effects.T, axis=1)[:, :k], 0.0).sum(axis=1)
        exact = find_worst_rows(beta, effects, k)
        np.testing.assert_allclose(drops_by_duality(beta, effects, exact.thresholds(k), k), sums, atol=1e-9)
        for threshold in (-3.0, -0.1, 0.0, 2.0):
            assert (drops_by_duality(beta, effects, np.full(150, threshold), k) <= sums + 1e-9).all()


def test_retrained_searches_wherever_nobody_has_searched() -> None:
    model = LogisticModel.fit(random_training_set(6, n=40, d=2))
    promise = Retrained(model, 2)
    points = refused_people(model, 6, 5)
    margins = promise.check(points, points)
    np.testing.assert_allclose(margins, lowest_scores(model, points, 2), atol=1e-8)
    searched = len(promise._searched)
    assert searched == 5
    pool = len(promise.pool)
    np.testing.assert_allclose(promise.check(points, points), margins, atol=1e-12)
    assert len(promise.pool) == pool  # known points are held against the pool alone
    attack = Adversary(model, 2).attack(points[0])
    assert margins[0] <= attack.score + 1e-9
