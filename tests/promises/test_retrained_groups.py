"""The promise of retraining from new starts: attacked with networks it has not seen, kept, and at its edges."""

from __future__ import annotations

from dataclasses import replace
from datetime import date
from functools import cache
from typing import Any

import numpy as np
import pandas as pd
import pytest
from scipy.stats import binom
from sklearn.base import clone
from sklearn.ensemble import GradientBoostingClassifier, RandomForestClassifier

from networks import finite_differences, from_torch, people_near, refit_of, small_network, standardised
from problems import random_training_set
from rocerf import (
    Adversary,
    EstimatorModel,
    Feature,
    FeatureSchema,
    NeuralModel,
    Rocerf,
    Status,
    TrainingSet,
    load_dataset,
)
from rocerf.deletion.efforts import EFFORTS
from rocerf.deletion.group_attack import other_starts
from rocerf.deletion.guesses import worst_sets
from rocerf.errors import OptionError, RocerfError
from rocerf.promises import FreshStarts
from rocerf.promises.retrained_groups import SLACK, RetrainedGroups

FEW = FreshStarts(starts=3, rounds=3, attackers=1, checking=3)


def refused(model: Any, count: int) -> np.ndarray:
    X = people_near(model, 200)
    return X[model.score(X) < 0][:count]


@cache
def german() -> tuple[NeuralModel, np.ndarray]:
    data = load_dataset("german")
    model = NeuralModel.fit(data.train, width=6, epochs=20, learning_rate=0.1)
    return model, data.test.X[model.score(data.test.X) < 0]


# --- attacked -----------------------------------------------------------------------------------------


def accepted_after_attack(model: NeuralModel, points: np.ndarray, k: int, each: int, seed: int) -> np.ndarray:
    """Accepted by each of so many fresh networks without the rows that an unseen network picks; (each, P)."""
    (picker,) = other_starts(model, 1, seed=seed)
    sets = [model.train.ids[rows] for rows in worst_sets(picker.harms(points, "first order"), k)]
    scores = model.refitted([ids for ids in sets for _ in range(each)], seed=seed + 1).scores(points)
    return np.array([scores[each * j : each * (j + 1), j] >= 0 for j in range(len(points))]).T


@pytest.mark.slow
def test_points_keep_their_share_after_deletions_picked_by_unseen_networks(monkeypatch: pytest.MonkeyPatch) -> None:
    model, people = german()
    k, share, each, X = 16, 0.9, 12, people[:8]
    options = FreshStarts(share=share, attackers=1, checking=2)
    points = Rocerf(model, k, promise=options).explain(X).points
    accepted = accepted_after_attack(model, points, k, each, seed=4711)
    # Every network has a start of its own, so given points and rows they are independent trials.
    limit = binom.ppf(0.001, accepted.size, share)
    assert accepted.sum() >= limit
    # With the same options but no deletion in the pool, the same test fails, and by far.
    monkeypatch.setattr(RetrainedGroups, "harden", lambda self, X: None)
    without = Rocerf(model, k, promise=options).explain(X).points
    assert accepted_after_attack(model, without, k, each, seed=4711).sum() < 0.5 * limit


def test_points_hold_with_every_group_of_the_pool() -> None:
    model = small_network()
    explainer = Rocerf(model, 3, promise=FEW)
    recourses = explainer.explain(refused(model, 4))
    assert recourses.answered.all()
    promise = explainer.promise
    for rows, (first, size) in zip(
        promise.pool.sets, zip(promise.pool.starts, promise.pool.sizes, strict=True), strict=True
    ):
        assert len(rows) <= 3
        own = promise.pool.models[first : first + size].scores(recourses.points)
        assert (own.mean(axis=0) > 1.6 * own.std(axis=0)).all()
    assert (promise.check(recourses.points, recourses.people) >= 0).all()
    assert (recourses.margins >= 0).all()


def test_readings_are_the_lowest_value_and_slopes_those_of_differences() -> None:
    model = small_network()
    promise = FEW.about(model, 3, seed=1)
    X = people_near(model, 4)
    promise.harden(X)
    reading, lowest = promise.read(X), promise._group_values(X).values().min(axis=0)
    today = model.score(X)
    np.testing.assert_allclose(reading.foreseen, np.minimum(lowest, today), atol=1e-9)
    aimed = lowest - SLACK * np.maximum(today - lowest, 0.0)
    np.testing.assert_allclose(reading.values, np.minimum(aimed, today), atol=1e-9)
    for point in range(4):
        slowly = finite_differences(lambda x: promise.read(x[None]).values, X[point], 1e-5 * model.train.spread)[0]
        np.testing.assert_allclose(reading.slopes[point], slowly, rtol=1e-3, atol=1e-4 * np.abs(slowly).max())
    assert promise.read(X[:0]).values.shape == (0,)
    assert promise.check(X[:0], X[:0]).shape == (0,)


def test_attacking_again_retrains_nothing_and_new_people_less() -> None:
    model = small_network()
    quick = replace(FEW, effort="quick")  # one search, and not one that goes on from the worst group so far
    promise, X = quick.about(model, 3, seed=1), people_near(model, 20)
    promise.harden(X[:10])
    groups = len(promise.pool)
    promise.harden(X[:10])
    assert len(promise.pool) == groups
    promise.harden(X)
    alone = quick.about(model, 3, seed=1)
    alone.harden(X[10:])
    assert len(promise.pool) - groups < len(alone.pool) - 1


@pytest.mark.slow
def test_the_same_seed_gives_the_same_answers() -> None:
    model = small_network()
    X = refused(model, 3)
    first, again = (Rocerf(model, 2, promise=FEW, seed=4).explain(X) for _ in range(2))
    np.testing.assert_array_equal(first.points, again.points)
    assert first.held_out.to_dict() == again.held_out.to_dict()
    other = Rocerf(model, 2, promise=FEW, seed=5).explain(X)
    assert not np.array_equal(first.points, other.points)
    # In another order people meet another pool: points differ, costs hardly.
    turned = Rocerf(model, 2, promise=FEW, seed=4).explain(X[::-1])
    np.testing.assert_allclose(turned.costs[::-1], first.costs, rtol=0.25)


# --- kept ---------------------------------------------------------------------------------------------


def forest() -> EstimatorModel:
    return EstimatorModel.fit(RandomForestClassifier(8, min_samples_leaf=4), random_training_set(5, n=60, d=3))


@pytest.mark.parametrize("make", [small_network, forest, lambda: from_torch("tied", refit=refit_of("tied"))])
def test_a_promise_comes_back_from_its_state(make: Any) -> None:
    model = make()
    X = people_near(model, 6)
    promise = FEW.about(model, 2, seed=3)
    promise.harden(X[:4])
    again = FreshStarts().about(model, 2, seed=3)
    again.restore(promise.state())
    assert again.options == FEW
    assert again.searches == promise.searches
    assert [rows.tolist() for rows in again.pool.sets] == [rows.tolist() for rows in promise.pool.sets]
    assert again.pool.calls == promise.pool.calls
    np.testing.assert_allclose(again.pool.models.scores(X), promise.pool.models.scores(X), atol=1e-9)
    np.testing.assert_allclose(again.read(X).values, promise.read(X).values, atol=1e-9)
    for one in (again, promise):
        one.harden(X)
    assert again.pool.calls == promise.pool.calls
    blank = FreshStarts().about(model, 2)
    blank.restore(FEW.about(model, 2).state())
    assert not blank.prepared


def test_an_explainer_in_a_folder_remembers_its_pool(tmp_path: Any) -> None:
    model = small_network()
    X = refused(model, 4)
    explainer = Rocerf(model, 2, promise=FEW, seed=2)
    before = explainer.explain(X[:2])
    explainer.save(tmp_path / "kept")
    again = Rocerf.load(tmp_path / "kept")
    assert len(again.promise.pool) == len(explainer.promise.pool)
    after = again.explain(X[:2])
    np.testing.assert_allclose(after.points, before.points, rtol=0.05, atol=0.05)
    assert len(again.promise.pool) <= len(explainer.promise.pool) + 4


def test_forgetting_leaves_nothing_of_the_pool() -> None:
    model = small_network()
    explainer = Rocerf(model, 2, promise=FEW, seed=2)
    explainer.explain(refused(model, 2))
    later = explainer.forget(model.train.ids[:3])
    assert isinstance(later.promise, RetrainedGroups)
    assert not later.promise.prepared
    assert later.promise.searches == ()
    assert later.promise.options == FEW
    assert later.promise.model is later.model
    answered = later.explain(refused(later.model, 2))
    assert answered.answered.all()
    assert max(rows.max(initial=0) for rows in later.promise.pool.sets) < len(later.model.train)


# --- other models, rules and letters ------------------------------------------------------------------


@pytest.mark.slow
def test_a_forest_is_promised_by_those_fitted_again() -> None:
    model = forest()
    explainer = Rocerf(model, 1, promise=FreshStarts(share=0.7, starts=3, rounds=2, attackers=1, checking=4))
    recourses = explainer.explain(refused(model, 3))
    points = recourses.points[recourses.answered]
    assert len(points)
    for group in range(len(explainer.promise.pool)):
        own = explainer.promise.pool.of(group).scores(points)
        assert ((own >= 0).mean(axis=0) >= 0.7 - 1e-9).all()
    assert recourses.held_out.retrainings == 4


def test_where_nothing_is_left_to_chance_one_model_is_a_group_and_nothing_is_sampled() -> None:
    from sklearn.neighbors import KNeighborsClassifier

    model = EstimatorModel.fit(KNeighborsClassifier(9), random_training_set(5, n=60, d=3))
    explainer = Rocerf(model, 2, promise="retrained")
    recourses = explainer.explain(refused(model, 2))
    assert recourses.answered.any()
    assert not explainer.promise.random
    assert set(explainer.promise.pool.sizes[1:].tolist()) <= {1}
    assert recourses.held_out is None  # copies of one model are no trials
    told = " ".join([*recourses.settings.assumptions, *(one.promise for one in recourses if one.promise)])
    assert "confidence" not in told
    assert "other models pick rows" not in told
    assert "survived the strongest deletion" in told


def test_rules_are_kept_and_letters_say_how_rounded_points_fare() -> None:
    model = small_network()
    X = refused(model, 3)
    names = model.train.columns
    frame = pd.DataFrame(X, columns=names, index=["a", "b", "c"])
    stepped = [Feature(names[0], step=0.25), *(Feature(name) for name in names[1:])]
    explainer = Rocerf(model, 2, promise=FEW, schema=FeatureSchema(stepped), max_changes=2)
    recourses = explainer.explain(frame)
    assert recourses.answered.any()
    changed = ~np.isclose(recourses.matrix, X)[recourses.answered]
    assert changed.sum(axis=1).max() <= 2
    steps = (recourses.matrix - X)[recourses.answered, 0] / 0.25
    np.testing.assert_allclose(steps, np.round(steps), atol=1e-6)
    letters = explainer.letters(recourses, valid_until=date(2030, 1, 1), issued=date(2029, 1, 1))
    assert len(letters) == 3
    german_letters = explainer.letters(recourses, valid_until=date(2030, 1, 1), issued=date(2029, 1, 1), language="de")
    for letter, auf_deutsch, given in zip(letters, german_letters, recourses.answered, strict=True):
        told, gesagt = " ".join(str(letter).split()), " ".join(str(auf_deutsch).split())
        assert ("tested, not proven" in told) == given
        assert ("getestet, nicht bewiesen" in gesagt) == given
        assert "certified" not in told


# --- edges --------------------------------------------------------------------------------------------


def test_nobody_and_those_accepted_already_retrain_nothing() -> None:
    model = small_network()
    X = people_near(model, 60)
    explainer = Rocerf(model, 2, promise=FEW)
    assert len(explainer.explain(X[:0])) == 0
    accepted = explainer.explain(X[model.score(X) > 0.1][:3])
    assert set(accepted.statuses) == {Status.ALREADY_ACCEPTED}
    assert accepted.held_out is None
    assert not explainer.promise.searches


def test_a_class_that_can_go_is_a_result_and_no_error() -> None:
    model = small_network()
    explainer = Rocerf(model, 80, promise="retrained")
    found = explainer.explain(refused(model, 2))
    assert set(found.statuses) == {Status.PROMISE_IMPOSSIBLE}
    assert "can remove every training row labelled" in found.reasons[0]
    assert found.held_out is None


def test_without_deletions_it_speaks_of_new_starts() -> None:
    model = small_network()
    explainer = Rocerf(model, 0, promise=FEW)
    assert explainer.explain(refused(model, 1)).answered.all()
    assert len(explainer.promise.pool) == 1


def test_a_module_that_cannot_be_trained_again_is_refused_clearly() -> None:
    model = from_torch("tied")
    with pytest.raises(RocerfError, match="refit"):
        Rocerf(model, 2, promise="retrained").explain(refused(model, 1))


@pytest.mark.parametrize(
    ("wrong", "said"),
    [
        ({"share": 1.0}, "share between 0 and 1"),
        ({"confidence": 0}, "confidence between 0 and 1"),
        ({"share": "0.9"}, "share between 0 and 1"),
        ({"starts": 1}, "starts to be at least 2"),
        ({"rounds": 0}, "rounds"),
        ({"checking": 2.5}, "checking"),
        ({"effort": "much"}, "effort to be one of quick, normal, thorough"),
        ({"effort": EFFORTS["quick"]}, "effort to be one of"),
        ({"effort": ["quick"]}, "effort to be one of"),
    ],
)
def test_options_that_mean_nothing_are_refused(wrong: dict[str, Any], said: str) -> None:
    with pytest.raises(OptionError, match=said):
        FreshStarts(**wrong)


def test_weights_and_a_logistic_model() -> None:
    from rocerf import LogisticModel

    weighted = small_network(weights=True)
    assert Rocerf(weighted, 2, promise=FEW).explain(refused(weighted, 1)).answered.all()
    with pytest.raises(OptionError, match="for a logistic model use"):
        Rocerf(LogisticModel.fit(standardised()), 2, promise=FEW)


def test_what_is_counted_was_retrained_without_something() -> None:
    model = small_network()
    explainer = Rocerf(model, 2, promise=FEW)
    recourses = explainer.explain(refused(model, 2))
    pool = explainer.promise.pool
    gone = int(pool.sizes[[len(rows) > 0 for rows in pool.sets]].sum())
    assert f"and {gone} models were retrained without what was found" in " ".join(recourses.settings.assumptions)


# --- every row alone ----------------------------------------------------------------------------------


@pytest.mark.parametrize("k", [1, 2])
def test_no_single_row_breaks_a_point_where_training_again_gives_the_same_model(k: int) -> None:
    """Guesses missed it for two points of three, though trying all of them takes a fit for every row."""
    rng = np.random.default_rng(1)
    X = np.column_stack([rng.gamma(3, 500, 80).round(), rng.integers(18, 80, 80), rng.normal(size=80).round(2)])
    y = (X[:, 0] / 700 - 3 + X[:, 1] / 40 + X[:, 2] + 0.6 * rng.normal(size=80) > 0.3).astype(int)
    fitted = GradientBoostingClassifier(n_estimators=10, max_depth=2, random_state=0).fit(X, y)
    model = EstimatorModel.from_sklearn(fitted, TrainingSet(X, y))
    people = X[fitted.predict(X) == 0][:6]
    explainer = Rocerf(model, k, cost="l1")
    found = explainer.explain(people)
    points = found.matrix[found.answered]
    assert len(points) > 2
    assert "each row" in explainer.promise.searches
    without = [clone(fitted).fit(np.delete(X, row, axis=0), np.delete(y, row)) for row in range(80)]
    assert all((one.predict(points) == 1).all() for one in without)
    plain = Rocerf(model, promise="plain", cost="l1").explain(people).matrix
    falls = np.array([one.predict(plain) == 0 for one in without]).any(axis=0)
    assert falls.any()
    attacked = Adversary(model, 1, effort="quick").attack(plain)
    assert [one.score < 0 for one in attacked] == falls.tolist()
    assert (explainer.removal_budget(plain, most=2).found[falls] == 0).all()


def test_every_row_alone_is_retrained_once_for_a_model_whoever_asks(monkeypatch: pytest.MonkeyPatch) -> None:
    X = np.random.default_rng(2).normal(size=(60, 3))
    y = (X.sum(axis=1) > 0).astype(int)
    estimator = GradientBoostingClassifier(n_estimators=5, max_depth=2, random_state=0)
    model = EstimatorModel.fit(estimator, TrainingSet(X, y))
    counted: list[int] = []
    refitted = EstimatorModel.refitted

    def counting(self: EstimatorModel, deletions: Any, **options: Any) -> Any:
        counted.append(len(deletions))
        return refitted(self, deletions, **options)

    monkeypatch.setattr(EstimatorModel, "refitted", counting)
    people, told = X[model.predict(X) == 0][:3], []
    answers = Rocerf(model, 2, cost="l1").explain(people, progress=lambda done, total: told.append((done, total)))
    first, again = (Adversary(model, 2, seed=seed).attack(answers).scores for seed in (1, 2))
    assert counted.count(60) == 1
    np.testing.assert_array_equal(first, again)  # nothing is left to chance
    assert [done for done, _ in told] == sorted(done for done, _ in told)
