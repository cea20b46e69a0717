"""Cells of tree ensembles against all allowed points of small problems, under random rules, costs and several trees."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import numpy as np
import pytest
from hypothesis import HealthCheck, given, reject, settings
from hypothesis import strategies as st
from sklearn.ensemble import GradientBoostingClassifier, HistGradientBoostingClassifier, RandomForestClassifier

from length import share
from problems import random_training_set, refused_people
from rocerf import EstimatorModel, FeatureSchema, Rocerf, Status, load_dataset
from rocerf.explainer.preparation import points_for
from rocerf.models.trees.scored import ScoredTrees
from rocerf.promises import FreshStarts, Plain, Promise, Simulated, simulated
from rocerf.promises.promise import Reading
from rocerf.recourse.costs.cost import Norm
from rocerf.recourse.costs.norms import NormCost
from rocerf.recourse.costs.registry import cost_named
from rocerf.recourse.master.feasible_set import FeasibleSet
from rocerf.recourse.master.master import Master
from rocerf.recourse.solvers.cells import solve_by_cells
from rocerf.recourse.solvers.search import solve_by_search
from rocerf.recourse.solvers.solution import GUARD, Outcome
from rule_checker import TooManyPointsError, allowed_points, broken_rules
from schema_problems import COSTS, DISCRETE, cost_of, problems

quiet = settings(derandomize=True, deadline=None, suppress_health_check=list(HealthCheck))


class Unanimous(Promise):
    """All of some models must accept, the first of them by a margin too: what a pool of retrained ones asks for."""

    name = "unanimous"

    def __init__(self, models: list[EstimatorModel]) -> None:
        super().__init__(models[0], 0)
        self.models = models

    readable = True

    def read(self, X: np.ndarray, target: Any = -np.inf) -> Reading:
        scores = np.array([model.score(X) for model in self.models]).reshape(len(self.models), len(X))
        return Reading(scores.min(axis=0), np.full(X.shape, np.nan))

    def tree_models(self) -> list[ScoredTrees | None]:
        return [model.trees for model in self.models]

    def ceiling(self, scores: np.ndarray, models: Any) -> np.ndarray:
        return scores.min(axis=0)

    def floors(self, target: float) -> np.ndarray:
        return np.full(len(self.models), target)


def ensembles(train: Any, seed: int, count: int) -> list[EstimatorModel]:
    kinds = [
        GradientBoostingClassifier(n_estimators=6, max_depth=2, random_state=seed),
        HistGradientBoostingClassifier(max_iter=5, max_leaf_nodes=5, min_samples_leaf=3, random_state=seed),
        RandomForestClassifier(5, max_depth=3, random_state=seed),
    ]
    return [EstimatorModel.fit(kinds[(seed + place) % 3], train) for place in range(count)]


@pytest.mark.slow
def test_no_allowed_point_is_cheaper() -> None:
    seen = {"answered": 0, "none": 0}

    @settings(quiet, max_examples=share(120))
    @given(problems(DISCRETE, most=4), st.sampled_from(COSTS), st.sampled_from([None, None, 1, 2]), st.integers(1, 3))
    def check(problem: Any, cost: str, most: int | None, count: int) -> None:
        models = ensembles(problem.model.train, problem.seed, count)
        assert all(model.trees is not None for model in models)
        promise = Unanimous(models)
        price = cost_named(problem.cost(cost), models[0].train, problem.schema)
        refused = problem.people[promise.read(problem.people).values < 0]
        master = Master.over(refused, price, FeasibleSet.around(refused, problem.schema, most))
        found = solve_by_cells(promise, master, 0.0, anchors=np.asarray(models[0].train.X))
        for person, x0 in enumerate(refused):
            try:
                points = np.array(list(allowed_points(problem.schema, x0, max_changes=most))).reshape(-1, len(x0))
            except TooManyPointsError:
                reject()
            good = points[promise.read(points).values >= GUARD] if len(points) else points
            prices = np.array([cost_of(cost, replace(problem, model=models[0]), x0, x) for x in good])
            prices = prices[np.isfinite(prices)]
            if found.outcomes[person] is Outcome.FOUND:
                seen["answered"] += 1
                x = found.points[person]
                assert broken_rules(problem.schema, x0, x, max_changes=most) == []
                assert promise.read(x[None]).values[0] >= GUARD / 2
                assert found.gaps[person] == 0.0
                assert price.of(x[None], x0[None])[0] == pytest.approx(prices.min(), rel=1e-9, abs=1e-12)
            else:
                seen["none"] += 1
                assert not len(prices)

    check()
    assert seen["answered"] >= 15
    assert seen["none"] >= 3


def free_problem(seed: int, count: int, norm: str = "l2") -> tuple[Unanimous, Master, np.ndarray]:
    train = random_training_set(seed, n=80, d=3)
    models = ensembles(train, seed, count)
    X0 = refused_people(models[0], seed, 6)
    cost = NormCost(Norm(norm), np.asarray(train.spread))
    allowed = FeasibleSet(np.full(X0.shape, -np.inf), np.full(X0.shape, np.inf), X0)
    return Unanimous(models), Master(X0, cost, allowed), np.asarray(train.X)


@pytest.mark.parametrize("norm", ["l2", "l1"])
@pytest.mark.parametrize("seed", range(4))
def test_numbers_without_rules_are_as_cheap_as_the_best_of_all_cells(seed: int, norm: str) -> None:
    promise, master, anchors = free_problem(seed, 2, norm)
    found = solve_by_cells(promise, master, 0.0, anchors=anchors)
    thresholds = [
        np.unique(np.concatenate([model.trees.form.thresholds(j) for model in promise.models])) for j in range(3)
    ]
    for person, x0 in enumerate(master.X0):
        sides = []
        for j, cuts in enumerate(thresholds):
            low = np.concatenate([[-np.inf], np.nextafter(cuts, np.inf)])
            sides.append(np.clip(x0[j], low, np.concatenate([cuts, [np.inf]])))
        points = np.stack(np.meshgrid(*sides, indexing="ij"), axis=-1).reshape(-1, 3)
        good = points[promise.read(points).values >= GUARD]
        if found.outcomes[person] is not Outcome.FOUND:
            assert not len(good)
            continue
        best = master.cost.of(good, np.broadcast_to(x0, good.shape)).min()
        assert master.cost.of(found.points[[person]], x0[None])[0] == pytest.approx(best, rel=1e-12)


def test_where_work_is_used_up_the_gap_is_said_and_is_true() -> None:
    promise, master, anchors = free_problem(1, 3)
    exact = solve_by_cells(promise, master, 0.0, anchors=anchors)
    seen = 0
    for work in (0, 3_000, 30_000):
        rough = solve_by_cells(promise, master, 0.0, anchors=anchors, work=work)
        for person in np.flatnonzero(exact.outcomes == Outcome.FOUND):
            assert rough.outcomes[person] is Outcome.FOUND
            costs = [float(master.cost.of(s.points[[person]], master.X0[[person]])[0]) for s in (exact, rough)]
            gap = rough.gaps[person]
            if not np.isnan(gap):  # else the search found it
                assert costs[0] >= (1.0 - gap) * costs[1] - 1e-9
                seen += gap > 0
    assert seen


def test_the_search_finds_nothing_cheaper() -> None:
    promise, master, anchors = free_problem(2, 3)
    found = solve_by_cells(promise, master, 0.0, anchors=anchors)
    searched = solve_by_search(promise, master, 0.0, anchors=anchors)
    both = (found.outcomes == Outcome.FOUND) & (searched.outcomes == Outcome.FOUND)
    assert both.any()
    mine, theirs = (master.cost.of(s.points[both], master.X0[both]) for s in (found, searched))
    assert (mine <= theirs + 1e-9).all()
    assert not ((found.outcomes != Outcome.FOUND) & (searched.outcomes == Outcome.FOUND)).any()


# --- promises ------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    "promise",
    [
        FreshStarts(rounds=2, starts=2, checking=2, attackers=1, effort="quick"),
        Simulated(validity=0.6, shaping=4, choosing=4, checking=4),
        Simulated(validity=0.6, shaping=4, choosing=4, checking=4, margin="fixed"),
    ],
)
@pytest.mark.parametrize("kind", [GradientBoostingClassifier, RandomForestClassifier])
def test_bounds_of_promises_are_never_below_their_values(
    kind: Any, promise: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(simulated, "PEOPLE_SEARCHED", 3)
    train = random_training_set(3, n=60, d=2)
    model = EstimatorModel.fit(kind(n_estimators=4, max_depth=2, random_state=0), train)
    explainer = Rocerf(model, 2, promise=promise)
    assert explainer.solver == "cells"
    people = refused_people(model, 3, 2)
    answers = explainer.explain(people)
    made: Any = explainer.promise
    X = np.random.default_rng(0).normal(size=(200, 2)) * np.asarray(train.spread) + np.asarray(train.X).mean(axis=0)
    models = made.tree_models()
    assert all(trees is not None for trees in models)
    scores = np.array([trees.scores(X) for trees in models])
    values = made.read(X).values
    assert values == pytest.approx(made.ceiling(scores, range(len(models))), abs=1e-9)
    for some in ([0], [0, len(models) - 1], [len(models) - 1]):
        assert (made.ceiling(scores[some], some) >= values - 1e-9).all()
    for place in np.flatnonzero(answers.answered):
        assert made.read(answers.matrix[[place]]).foreseen[0] >= 0


def test_a_margin_is_chosen_at_points_that_keep_the_rules() -> None:
    data = load_dataset("german")
    model = EstimatorModel.fit(GradientBoostingClassifier(n_estimators=10, max_depth=2, random_state=0), data.train)
    explainer = Rocerf(model, 4, promise=Simulated(shaping=3, choosing=3, checking=3), schema=data.schema)
    promise: Any = explainer.promise
    refused = data.train.X[model.predict(data.train.X) == 0][:6]
    points = points_for(explainer, promise.at(1.0), refused, 0.0)
    found = np.isfinite(points).all(axis=1)
    assert found.sum() >= 4
    assert FeasibleSet.around(refused[found], data.schema).holds(points[found]).all()


def test_answers_of_plain_trees_are_proven_and_relations_kept() -> None:
    train = random_training_set(5, n=120, d=3)
    model = EstimatorModel.fit(GradientBoostingClassifier(n_estimators=10, random_state=0), train)
    people = refused_people(model, 5, 6)
    names = train.columns
    schema = FeatureSchema.free(names).relate(f"`{names[0]}` <= `{names[1]}` + 0.5")
    free = Rocerf(model, 0, promise=Plain(model)).explain(people)
    held = Rocerf(model, 0, promise=Plain(model), schema=schema).explain(people)
    assert (np.asarray(free.gaps)[free.answered] == 0).all()
    both = free.answered & held.answered
    assert both.any()
    assert (held.costs[both] >= free.costs[both] - 1e-9).all()
    assert (held.matrix[held.answered][:, 0] <= held.matrix[held.answered][:, 1] + 0.5 + 1e-9).all()
    assert all(status in (Status.ANSWERED, Status.NOT_ROBUST, Status.UNREACHABLE, Status.CONTRADICTION)
               for status in held.statuses)  # fmt: skip
