"""The search against exact optima: projections for linear models, every cell of small forests and boosted trees."""

from __future__ import annotations

from functools import cache
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from sklearn.ensemble import GradientBoostingClassifier, RandomForestClassifier
from sklearn.svm import SVC

from problems import random_training_set, refused_people
from rocerf import EstimatorModel, FeatureSchema, LogisticModel, TrainingSet
from rocerf.data.feature import Feature
from rocerf.promises import Plain
from rocerf.promises.promise import Reading
from rocerf.recourse.costs.cost import Norm
from rocerf.recourse.costs.norms import NormCost
from rocerf.recourse.costs.registry import cost_named
from rocerf.recourse.master.feasible_set import FeasibleSet
from rocerf.recourse.master.master import Master
from rocerf.recourse.solvers import search
from rocerf.recourse.solvers.search import solve_by_search
from rocerf.recourse.solvers.solution import GUARD, Outcome, Solution


class Values:
    """A promise that says its values and nothing else; counts the points it was asked for."""

    def __init__(self, score: Any) -> None:
        self.score, self.asked, self.calls = score, 0, 0

    def read(self, X: np.ndarray, target: float = -np.inf) -> Reading:
        self.asked, self.calls = self.asked + len(X), self.calls + 1
        return Reading(self.score(X), np.full(X.shape, np.nan))


def box(X0: np.ndarray) -> FeasibleSet:
    return FeasibleSet(np.full(X0.shape, -np.inf), np.full(X0.shape, np.inf), X0)


def solve(score: Any, X0: np.ndarray, train: TrainingSet, norm: str = "l2", **options: Any) -> Solution:
    allowed = options.pop("allowed", None) or box(X0)
    options = {"lower": train.X.min(axis=0), "upper": train.X.max(axis=0), "anchors": train.X} | options
    master = Master(X0, NormCost(Norm(norm), np.asarray(train.spread)), allowed)
    promise = score if hasattr(score, "read") else Values(score)
    return solve_by_search(promise, master, options.pop("delta", 0.0), **options)


def costs(solution: Solution, X0: np.ndarray, train: TrainingSet, norm: str) -> np.ndarray:
    assert all(outcome is Outcome.FOUND for outcome in solution.outcomes)
    return NormCost(Norm(norm), np.asarray(train.spread)).of(solution.points, X0)


# --- linear models: the projection --------------------------------------------------------------------


def excess_over_projection(d: int, norm: str) -> np.ndarray:
    """How much dearer than the exact optimum in the same box, a share for each person."""
    ratios = []
    for seed in range(2):
        model = LogisticModel.fit(random_training_set(seed, n=150, d=d), C=1.0)
        train, X0 = model.train, refused_people(model, seed, 8)
        slopes, constants = Plain(model).known_cuts()
        inside = FeasibleSet(np.minimum(train.X.min(0), X0), np.maximum(train.X.max(0), X0), X0)
        cost = NormCost(Norm(norm), np.asarray(train.spread))
        cuts = np.broadcast_to(slopes, (8, 1, d)), np.broadcast_to(constants, (8, 1))
        best = Master(X0, cost, inside).cheapest(np.arange(8), *cuts, GUARD)
        exact, found = best.points, best.found
        solution = solve(model.score, X0[found], train, norm)
        ratios.append(costs(solution, X0[found], train, norm) / cost.of(exact, X0)[found] - 1)
    return np.concatenate(ratios)


@pytest.mark.parametrize("norm", ["l2", "l1"])
@pytest.mark.parametrize(("d", "mean", "most"), [(3, 1e-4, 1e-3), (5, 1e-4, 1e-3), (13, 1e-3, 1e-2), (30, 0.04, 0.2)])
def test_linear_models_are_solved_to_their_projection(d: int, mean: float, most: float, norm: str) -> None:
    excess = excess_over_projection(d, norm)
    assert excess.min() > -1e-5  # the guard differs by a quarter
    assert excess.mean() <= mean
    assert excess.max() <= most


# --- trees: every cell --------------------------------------------------------------------------------


@cache
def tree_problem(kind: str, d: int, seed: int) -> tuple[EstimatorModel, np.ndarray]:
    """A small model of trees on a wavy boundary, and people it refuses."""
    rng = np.random.default_rng(seed)
    X = rng.normal(size=(200, d))
    z = X @ rng.normal(size=d) + 1.5 * np.sin(2 * X[:, 0]) * X[:, 1] + 0.5 * X[:, -1] ** 2 + rng.normal(size=200)
    train = TrainingSet(X, (z > 0.8).astype(int))
    estimator = (
        GradientBoostingClassifier(n_estimators=12, max_depth=2, random_state=0)
        if kind == "boosting"
        else RandomForestClassifier(n_estimators=6, max_depth=3, random_state=0)
    )
    model = EstimatorModel.fit(estimator, train)
    people = 1.2 * rng.normal(size=(300, d))
    return model, people[model.score(people) < -0.1][:12]


def cheapest_cell(model: EstimatorModel, X0: np.ndarray, norm: str) -> np.ndarray:
    """The exact optimum: trees are constant on the cells between their thresholds, so look at every cell."""
    d, train = X0.shape[1], model.train
    ends: list[set[float]] = [set() for _ in range(d)]
    for tree in np.ravel(model.estimator.estimators_):
        for column, threshold in zip(tree.tree_.feature, tree.tree_.threshold, strict=True):
            if column >= 0:
                ends[column].add(float(threshold))
    walls = [np.array([train.X[:, j].min() - 9, *sorted(ends[j]), train.X[:, j].max() + 9]) for j in range(d)]
    places = np.stack(np.meshgrid(*[np.arange(len(w) - 1) for w in walls], indexing="ij"), -1).reshape(-1, d)
    low = np.stack([walls[j][places[:, j]] for j in range(d)], 1)
    high = np.stack([walls[j][places[:, j] + 1] for j in range(d)], 1)
    good = model.score((low + high) / 2) >= GUARD
    low, high, cost = low[good], high[good], NormCost(Norm(norm), np.asarray(train.spread))
    best = []
    for x0 in X0:
        inner, outer = np.minimum(train.X.min(0), x0), np.maximum(train.X.max(0), x0)
        reachable = ((low <= outer) & (high >= inner)).all(axis=1)
        nearest = np.clip(x0, np.maximum(low[reachable], inner), np.minimum(high[reachable], outer))
        best.append(cost.of(nearest, x0).min())
    return np.array(best)


@pytest.mark.slow
@pytest.mark.parametrize("norm", ["l2", "l1"])
@pytest.mark.parametrize("d", [2, 3])
@pytest.mark.parametrize("kind", ["boosting", "forest"])
def test_trees_are_solved_nearly_to_their_cheapest_cell(kind: str, d: int, norm: str) -> None:
    excess = []
    for seed in range(2):
        model, X0 = tree_problem(kind, d, seed)
        found = costs(solve(model.score, X0, model.train, norm), X0, model.train, norm)
        excess.append(found / cheapest_cell(model, X0, norm) - 1)
    all_ = np.concatenate(excess)
    assert all_.min() >= 0
    assert np.median(all_) <= 0.005
    assert all_.mean() <= 0.02
    assert all_.max() <= 0.25  # a narrow cell near the person can be missed


def test_a_fine_grid_finds_nothing_much_cheaper() -> None:
    """An oracle that knows nothing of trees."""
    model, X0 = tree_problem("boosting", 2, 5)
    axes = [np.linspace(model.train.X[:, j].min(), model.train.X[:, j].max(), 400) for j in range(2)]
    grid = np.stack(np.meshgrid(*axes), -1).reshape(-1, 2)
    grid = grid[model.score(grid) >= GUARD]
    cost = NormCost(Norm("l2"), np.asarray(model.train.spread))
    best = np.array([cost.of(grid, x0).min() for x0 in X0])
    found = costs(solve(model.score, X0, model.train), X0, model.train, "l2")
    assert (found <= 1.03 * best).all()
    assert (found <= best).mean() > 0.7


@pytest.mark.slow
def test_smooth_scores_are_followed_to_a_local_optimum() -> None:
    """At the optimum of a smooth score no allowed direction along the boundary is cheaper: more reads gain nothing."""
    train = random_training_set(3, n=120, d=4)
    scaled = TrainingSet((train.X - train.X.mean(0)) / train.spread, train.y.astype(int))
    model = EstimatorModel.fit(SVC(), scaled)
    X0 = scaled.X[model.score(scaled.X) < -0.2][:10]
    few, many = (costs(solve(model.score, X0, scaled, budget=b), X0, scaled, "l2") for b in (4000, 12000))
    assert (few / many - 1).mean() <= 0.01
    assert np.median(few / many - 1) <= 1e-3


# --- rules --------------------------------------------------------------------------------------------


@pytest.mark.slow
@settings(max_examples=20, deadline=None)
@given(
    seed=st.integers(0, 10**6),
    d=st.integers(1, 5),
    norm=st.sampled_from(["l2", "l1"]),
    kind=st.sampled_from(["linear", "steps", "never"]),
    delta=st.sampled_from([0.0, 0.3]),
)
def test_rules_are_kept_and_the_promise_holds(seed: int, d: int, norm: str, kind: str, delta: float) -> None:
    rng = np.random.default_rng(seed)
    train = TrainingSet(rng.normal(size=(40, d)) * 10.0 ** rng.integers(-3, 4, size=d), [0, 1] * 20)
    slope = rng.normal(size=d) / train.spread

    def score(X: np.ndarray) -> np.ndarray:
        z = X @ slope - 0.5
        return z if kind == "linear" else np.floor(2 * z) / 2 if kind == "steps" else np.minimum(z, 0) - 1

    X0 = train.X[rng.integers(40, size=4)] + rng.normal(size=(4, d)) * train.spread
    width = rng.exponential(size=(2, 4, d)) * train.spread
    lower, upper = X0 - width[0], X0 + width[1]
    rule = rng.integers(6, size=(4, d))
    lower[rule == 0], upper[rule == 0] = X0[rule == 0], X0[rule == 0]  # fixed
    lower[rule == 1] = X0[rule == 1]  # may only rise
    upper[rule == 2], lower[rule == 2] = np.inf, X0[rule == 2] + 0.1 * width[0][rule == 2]  # must rise
    lower[rule == 3] = -np.inf
    lower[rule == 4], upper[rule == 4] = -np.inf, np.inf
    solution = solve(score, X0, train, norm, allowed=FeasibleSet(lower, upper, X0), delta=delta, budget=600)
    found = np.array([outcome is Outcome.FOUND for outcome in solution.outcomes])
    assert all(outcome in (Outcome.FOUND, Outcome.GAVE_UP) for outcome in solution.outcomes)
    assert (solution.rounds <= 600).all()
    points = solution.points[found]
    assert np.isnan(solution.points[~found]).all()
    assert (points >= lower[found]).all()
    assert (points <= upper[found]).all()
    fixed = (rule == 0)[found]
    assert (points[fixed] == X0[found][fixed]).all()
    # Open sides end with the training range, or where the person stands (or must go) beyond it.
    floor, ceiling = np.minimum(train.X.min(0), X0), np.maximum(np.maximum(train.X.max(0), X0), lower)
    assert (points[~np.isfinite(lower[found])] >= floor[found][~np.isfinite(lower[found])]).all()
    assert (points[~np.isfinite(upper[found])] <= ceiling[found][~np.isfinite(upper[found])]).all()
    assert (score(points) >= delta + GUARD / 2).all()
    np.testing.assert_allclose(solution.values[found], score(points), atol=1e-12)
    if kind == "never":
        assert not found.any()


def test_nobody_is_told_that_nothing_exists() -> None:
    model, X0 = tree_problem("forest", 2, 0)
    tight = FeasibleSet(X0 - 1e-9, X0 + 1e-9, X0)
    solution = solve(model.score, X0, model.train, allowed=tight)
    assert all(outcome is Outcome.GAVE_UP for outcome in solution.outcomes)
    contradiction = FeasibleSet(X0 + np.array([1.0, -1.0]), X0, X0)
    solution = solve(model.score, X0, model.train, allowed=contradiction)
    assert all(outcome is Outcome.GAVE_UP for outcome in solution.outcomes)
    assert (solution.rounds == 0).all()
    empty = solve(model.score, X0[:0], model.train)
    assert len(empty.outcomes) == 0


def test_who_holds_the_promise_already_stays() -> None:
    model, _ = tree_problem("boosting", 3, 1)
    X0 = model.train.X[model.score(model.train.X) > 0.1][:5]
    solution = solve(model.score, X0, model.train)
    np.testing.assert_array_equal(solution.points, X0)
    assert solution.rounds.max() < 200


@pytest.mark.parametrize("anchors", [0, 1])
def test_anchors_are_a_help_not_a_need(anchors: int) -> None:
    model, X0 = tree_problem("boosting", 3, 2)
    without = costs(solve(model.score, X0, model.train, anchors=model.train.X[:anchors]), X0, model.train, "l2")
    exact = cheapest_cell(model, X0, "l2")
    assert np.median(without / exact) <= 1.01
    assert (without / exact).mean() <= 1.05


def test_columns_take_turns_in_high_dimension() -> None:
    rng = np.random.default_rng(0)
    train = TrainingSet(rng.normal(size=(100, 60)), [0, 1] * 50)
    X0 = rng.normal(size=(3, 60))
    solution = solve(lambda X: np.floor(3 * (X[:, 7] + X[:, 51])) - 2.0, X0, train, "l1")
    lack = np.maximum(1.0 - X0[:, 7] - X0[:, 51], 0.0)  # the step from 2 to 3 clears the guard
    assert lack.min() > 1
    np.testing.assert_allclose(np.abs(solution.points - X0).sum(axis=1), lack, rtol=0.05)


# --- randomness, reads, odd promises ------------------------------------------------------------------


@pytest.mark.slow
def test_answers_depend_on_person_and_seed_alone(monkeypatch: pytest.MonkeyPatch) -> None:
    model, X0 = tree_problem("forest", 3, 3)
    X0 = X0[:5]
    all_ = solve(model.score, X0, model.train, seed=5, budget=700)
    np.testing.assert_array_equal(all_.points, solve(model.score, X0, model.train, seed=5, budget=700).points)
    backwards = solve(model.score, X0[::-1], model.train, seed=5, budget=700)
    np.testing.assert_array_equal(all_.points, backwards.points[::-1])
    np.testing.assert_array_equal(all_.rounds, backwards.rounds[::-1])
    np.testing.assert_array_equal(all_.points[3:4], solve(model.score, X0[3:4], model.train, seed=5, budget=700).points)
    monkeypatch.setattr(search, "MOST_POINTS", 600)  # a person at a time
    np.testing.assert_array_equal(all_.points, solve(model.score, X0, model.train, seed=5, budget=700).points)
    assert (all_.points != solve(model.score, X0, model.train, seed=6, budget=700).points).any()


@pytest.mark.parametrize("budget", [1, 2, 30, 100, 700, 4000])
def test_reads_are_counted_and_kept_within_the_budget(budget: int) -> None:
    model, X0 = tree_problem("boosting", 3, 0)
    promise = Values(model.score)
    solution = solve(promise, X0, model.train, budget=budget)
    assert solution.rounds.max() <= budget
    assert promise.asked == solution.rounds.sum() + len(model.train)  # and the anchors, once
    assert promise.calls <= 100
    if budget >= 100:
        assert all(outcome is Outcome.FOUND for outcome in solution.outcomes)


def test_more_reads_do_not_cost_more() -> None:
    means = []
    model, X0 = tree_problem("forest", 3, 1)
    for budget in (300, 1000, 4000):
        means.append(costs(solve(model.score, X0, model.train, budget=budget), X0, model.train, "l2").mean())
    assert means[0] >= means[1] - 1e-3 >= means[2] - 2e-3


def test_values_that_are_no_numbers_do_not_hold() -> None:
    train = random_training_set(0, n=40, d=2)
    X0 = train.X.min(axis=0)[None] + 0.1 * train.spread

    def holes(X: np.ndarray) -> np.ndarray:
        z = ((X - train.X.mean(0)) / train.spread).sum(axis=1)
        return np.select([z < -1, z < 0, z < 0.5], [-np.inf, np.nan, z - 0.5], np.inf)

    solution = solve(holes, X0, train)
    assert solution.outcomes[0] is Outcome.FOUND
    assert solution.values[0] == np.inf
    none = solve(lambda X: np.full(len(X), np.nan), X0, train)
    assert none.outcomes[0] is Outcome.GAVE_UP


def test_progress_is_told_and_may_interrupt(monkeypatch: pytest.MonkeyPatch) -> None:
    model, X0 = tree_problem("boosting", 2, 0)
    monkeypatch.setattr(search, "MOST_POINTS", 2000)
    seen: list[tuple[int, int]] = []
    solve(model.score, X0, model.train, budget=200, progress=lambda done, total: seen.append((done, total)))
    assert len(seen) > 1
    assert seen[-1] == (len(X0), len(X0))

    def stop(done: int, total: int) -> None:
        raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        solve(model.score, X0, model.train, budget=200, progress=stop)


# --- other costs ---------------------------------------------------------------------------------------


@pytest.mark.parametrize("own", [(0.0, 0.0), (1.0, 0.0)], ids=["from the reference", "to the reference"])
def test_the_search_pays_the_price_that_is_reported_where_a_reference_category_has_no_column(own: Any) -> None:
    """Another category is one column away and costs 1, not the 1/2 of a column that moves in pairs; pay costs 0.8."""
    schema = FeatureSchema(
        (*(Feature(f"h_{i}", "binary", group="h") for i in (1, 2)), Feature("pay")), open_groups=("h",)
    )
    train = TrainingSet(np.array([[1, 0, 1.0], [0, 1, 2.0], [0, 0, 3.0], [1, 0, 4.0]]), [0, 1, 0, 1])
    X0 = np.array([[*own, 1.0]])
    cost = cost_named("mad", train, schema)
    master = Master.over(X0, cost, FeasibleSet.around(X0, schema))
    promise = Values(lambda X: np.maximum(X[:, 2] - 1.8, (X[:, 0] != own[0]) - 0.5))
    lower, upper = train.X.min(axis=0), train.X.max(axis=0)
    found = solve_by_search(promise, master, 0.0, lower=lower, upper=upper, anchors=train.X)
    assert cost.of(found.points, X0)[0] == pytest.approx(0.8, abs=1e-5)
