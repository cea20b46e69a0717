"""Costs that are not of the package: handed over as objects and by name, optimal under every solver that takes them."""

from __future__ import annotations

from dataclasses import dataclass
from itertools import product
from typing import Any

import numpy as np
import pytest
from scipy.optimize import minimize
from sklearn.ensemble import RandomForestClassifier

from networks import small_network
from problems import random_training_set, refused_people
from rocerf import EstimatorModel, FeatureSchema, LogisticModel, Rocerf, TrainingSet, load_dataset
from rocerf.data.feature import Feature
from rocerf.errors import OptionError
from rocerf.promises import Plain
from rocerf.recourse.costs import registry
from rocerf.recourse.costs.cost import Cost, Norm
from rocerf.recourse.costs.norms import NormCost
from rocerf.recourse.costs.prices import CostTable
from rocerf.recourse.costs.registry import cost_named, register_cost
from rocerf.recourse.master.feasible_set import FeasibleSet
from rocerf.recourse.master.master import Master
from rocerf.recourse.solvers.cutting_plane import solve_by_cuts
from rocerf.recourse.solvers.penalty import solve_by_penalty
from rocerf.recourse.solvers.search import solve_by_search
from rocerf.recourse.solvers.sequential import solve_by_linearisation
from rocerf.recourse.solvers.solution import GUARD, Outcome


@dataclass(frozen=True, eq=False)
class Huber(Cost):
    """Quadratic for small moves, linear for large ones; downwards twice as dear."""

    scale: Any
    name: str = "huber"
    norm: Norm = Norm.CONVEX

    def parts(self, steps: Any, X0: Any) -> Any:
        size = np.abs(steps)
        return np.where(steps < 0, 2.0, 1.0) * np.where(size <= 1, size * size / 2, size - 0.5)

    def slopes(self, steps: Any, X0: Any) -> Any:
        return np.where(steps < 0, 2.0, 1.0) * np.clip(steps, -1, 1)


@dataclass(frozen=True, eq=False)
class Uneven(Cost):
    """So much a unit up, three times as much down, in units in which nothing is near 1."""

    scale: Any
    name: str = "uneven"
    norm: Norm = Norm.L1

    def prices(self, X0: Any) -> tuple[Any, Any]:
        price = np.broadcast_to(400.0 / self.scale * (1 + np.arange(X0.shape[1])), X0.shape)
        return price, 3.0 * price


class Follows:
    """Every member of the protocol and no base class."""

    def __init__(self, scale: Any) -> None:
        own = Huber(scale)
        self.name, self.norm, self.scale = "follows", own.norm, own.scale
        self.parts, self.slopes, self.of = own.parts, own.slopes, own.of
        self.prices, self.curve, self.relaxed = own.prices, own.curve, own.relaxed


KINDS = {"huber": Huber, "uneven": Uneven, "follows": Follows}


@pytest.fixture
def registered(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(registry, "COSTS", dict(registry.COSTS))
    register_cost("huber", lambda train, schema: Huber(np.asarray(train.spread)))
    register_cost("uneven", lambda train, schema: Uneven(np.asarray(train.spread)))


def oracle(cost: Any, x0: np.ndarray, slopes: np.ndarray, constants: np.ndarray, low: Any, high: Any) -> float:
    """The least cost by sequential quadratic programming from many starts, in two non-negative halves of each step."""
    d, rng = len(x0), np.random.default_rng(0)
    ends = np.concatenate([np.maximum((high - x0) / cost.scale, 0), np.maximum((x0 - low) / cost.scale, 0)])
    ends, unit = np.minimum(ends, 50.0), float(cost.parts(np.ones((1, d)), x0[None]).sum())

    def price(halves: np.ndarray) -> float:
        up, down = cost.parts(halves[None, :d], x0[None])[0], cost.parts(-halves[None, d:], x0[None])[0]
        return float((up + down).sum()) / unit

    def room(halves: np.ndarray) -> np.ndarray:
        return slopes @ (x0 + cost.scale * (halves[:d] - halves[d:])) + constants - GUARD

    best = np.inf
    for _ in range(6):
        found = minimize(
            price,
            rng.uniform(0, np.minimum(ends, 2.0)),
            bounds=[(0.0, end) for end in ends],
            constraints={"type": "ineq", "fun": room},
            method="SLSQP",
            options={"ftol": 1e-13, "maxiter": 500},
        )
        if room(found.x).min() >= -1e-8:
            best = min(best, found.fun * unit)
    return best


@pytest.mark.slow
@pytest.mark.parametrize("kind", list(KINDS))
@pytest.mark.parametrize("solve", [solve_by_cuts, solve_by_linearisation, solve_by_search], ids=lambda f: f.__name__)
def test_the_cheapest_point_in_a_box_against_a_slow_oracle(kind: str, solve: Any) -> None:
    model = LogisticModel.fit(random_training_set(3, n=80, d=3), C=1.0)
    X0, X = refused_people(model, 3, 4), model.train.X
    low, high = np.minimum(X.min(axis=0), X0), np.maximum(X.max(axis=0), X0)
    cost = KINDS[kind](np.asarray(model.train.spread))
    master = Master.over(X0, cost, FeasibleSet(low, high, X0))
    slopes, constants = Plain(model).known_cuts()
    near = {"anchors": X} if solve is solve_by_search else {}
    found = solve(Plain(model), master, 0.0, **near)
    assert (found.outcomes == Outcome.FOUND).all()
    paid = cost.of(found.points, X0)
    best = np.array([oracle(cost, x0, slopes, constants, *box) for x0, *box in zip(X0, low, high, strict=True)])
    room = 0.03 if solve is solve_by_search else 1e-5  # a search is no proof
    np.testing.assert_array_less(paid, best * (1 + room))
    np.testing.assert_array_less(best * (1 - 1e-5), paid)


@pytest.mark.slow
@pytest.mark.parametrize("kind", list(KINDS))
def test_algorithm_1_takes_any_cost_with_slopes(kind: str) -> None:
    model = LogisticModel.fit(random_training_set(3, n=80, d=3), C=1.0)
    X0 = refused_people(model, 3, 4)
    master = Master(X0, KINDS[kind](np.asarray(model.train.spread)), FeasibleSet.around(X0, None))
    found, exact = solve_by_penalty(Plain(model), master, 0.0), solve_by_cuts(Plain(model), master, 0.0)
    assert (found.outcomes == Outcome.FOUND).all()
    ratio = master.cost.of(found.points, X0) / master.cost.of(exact.points, X0)
    assert 1 - 1e-5 < ratio.min() <= ratio.max() < 1.05


@pytest.mark.slow
@pytest.mark.parametrize("kind", [*KINDS, "table", "percentile"])
@pytest.mark.parametrize("solve", [solve_by_cuts, solve_by_linearisation, solve_by_search], ids=lambda f: f.__name__)
def test_the_cheapest_allowed_point_against_all_of_them(kind: str, solve: Any) -> None:
    """Whole numbers, an answer and a category: few enough to try every point."""
    schema = FeatureSchema(
        (
            Feature("a", "integer", lower=0, upper=6),
            Feature("b", "binary"),
            *(Feature(f"c_{i}", "binary", group="c") for i in range(3)),
            Feature("d", step=0.5, lower=0, upper=3),
        )
    )
    rng = np.random.default_rng(1)
    X = np.column_stack(
        [rng.integers(0, 7, 90), rng.integers(0, 2, 90), np.eye(3)[rng.integers(0, 3, 90)], rng.integers(0, 7, 90) / 2]
    ).astype(float)
    model = LogisticModel.fit(TrainingSet(X, (X @ [0.5, 1, 1, 0, -1, 0.7] + rng.normal(size=90) > 2.6).astype(int)))
    X0 = X[model.score(X) < -0.8][:6]
    prices = CostTable({"x0": (20.0, 5.0), "x1": 3.0, "c": 4.0, "x5": (2.0, 7.0)})
    scale = np.asarray(model.train.spread)
    made = {"table": prices, "percentile": "percentile"}.get(kind) or KINDS[kind](scale)
    schema = FeatureSchema(
        tuple(Feature(**{**vars(f), "name": n}) for f, n in zip(schema, model.train.columns, strict=True))
    )
    cost = cost_named(made, model.train, schema)
    master = Master.over(X0, cost, FeasibleSet.around(X0, schema))
    every = np.array(
        [[a, b, *c, d] for a, b, c, d in product(range(7), range(2), np.eye(3), np.arange(0, 3.1, 0.5))], float
    )
    accepted = every[Plain(model).read(every).values >= GUARD]
    near = {"anchors": X} if solve is solve_by_search else {}
    found = solve(Plain(model), master, 0.0, **near)
    best = [cost.of(accepted, np.broadcast_to(x0, accepted.shape)).min() for x0 in X0]
    np.testing.assert_allclose(cost.of(found.points, X0), best, rtol=0.05 if solve is solve_by_search else 1e-6)


@pytest.mark.slow
def test_a_network_under_a_cost_from_outside() -> None:
    """In any unit of price: trust in linearisations is a distance, not a cost."""
    model = small_network()
    people = refused_people(model, 0, 4)
    spread = np.asarray(model.train.spread)

    @dataclass(frozen=True, eq=False)
    class Dear(NormCost):
        def prices(self, X0: Any) -> tuple[Any, Any]:
            up, down = super().prices(X0)
            return 1e4 * up, 1e4 * down

        parts, slopes, relaxed = Cost.parts, Cost.slopes, Cost.relaxed

    plain = Rocerf(model, 0, promise=Plain(model), cost=NormCost(Norm.L1, spread)).explain(people)
    dear = Rocerf(model, 0, promise=Plain(model), cost=Dear(Norm.L1, spread, "dear")).explain(people)
    np.testing.assert_allclose(dear.costs, 1e4 * plain.costs, rtol=1e-6)


@pytest.mark.slow
@pytest.mark.usefixtures("registered")
def test_a_cost_from_outside_by_name_and_as_object_on_german() -> None:
    data = load_dataset("german")
    model = LogisticModel.fit(data.train)
    people = data.test.X[model.predict(data.test.X) == 0][:6]
    assert tuple(registry.COSTS) == ("l2", "l1", "mad", "percentile", "huber", "uneven")
    huber = Huber(np.asarray(model.train.spread))
    answers = [Rocerf(model, 4, cost=cost, effort="quick").explain(people) for cost in ("huber", huber)]
    np.testing.assert_array_equal(answers[0].matrix, answers[1].matrix)
    found, norm = answers[0], Rocerf(model, 4, cost="l1", effort="quick").explain(people)
    assert found.answered.all()
    assert found.settings.cost == "huber"
    assert (found.costs < huber.of(norm.matrix, people)).all()  # another cost, another cheapest point
    with_rules = Rocerf(model, 4, cost="uneven", schema=data.schema, effort="quick").explain(people[:3])
    assert with_rules.answered.all()
    assert (with_rules.costs > 400).all()


def test_a_forest_under_prices() -> None:
    train = random_training_set(5, n=80, d=3)
    model = EstimatorModel.from_sklearn(RandomForestClassifier(5, random_state=0).fit(train.X, train.y), train)
    people = train.X[model.predict(train.X) == 0][:4]
    for cost in (Uneven(np.asarray(train.spread)), "percentile"):
        found = Rocerf(model, 0, promise=Plain(model), cost=cost).explain(people)
        assert found.settings.solver == "cells"
        assert found.answered.all()
        searched = Rocerf(model, 0, promise=Plain(model), cost=cost, solver="search").explain(people)
        assert (found.costs <= searched.costs + 1e-9).all()


def test_a_cost_for_other_columns_is_refused() -> None:
    train = random_training_set(0, n=40, d=3)
    with pytest.raises(OptionError, match=r"a scale for each of 3 columns, got shape \(2,\)"):
        cost_named(Huber(np.ones(2)), train, None)


@dataclass(frozen=True, eq=False)
class Paying(Uneven):
    """A change that earns something."""

    price: float = -1.0

    def prices(self, X0: Any) -> tuple[Any, Any]:
        return np.full(X0.shape, self.price), np.ones(X0.shape)


@pytest.mark.parametrize("price", [-1.0, np.nan])
def test_a_cost_that_is_none_is_not_reported(price: float) -> None:
    model = LogisticModel.fit(random_training_set(0, n=60), C=1.0)
    schema = FeatureSchema.from_frame(model.train.frame())
    cost = Paying(np.ones(len(model.train.columns)), price=price)
    with pytest.raises(OptionError, match="the cost 'uneven' of every change to be a number >= 0"):
        Rocerf(model, 0, promise=Plain(model), cost=cost, schema=schema).explain(refused_people(model, 0, 5))


@pytest.mark.parametrize("length", [0.0, -1.0, np.inf])
def test_a_cost_with_strange_lengths_is_refused(length: float) -> None:
    with pytest.raises(OptionError, match="'uneven' to have finite scales above 0"):
        cost_named(Uneven(np.array([1.0, length])), random_training_set(0, n=40, d=2), None)


def test_a_cost_is_called_what_it_is_registered_as(monkeypatch: pytest.MonkeyPatch) -> None:
    with pytest.raises(OptionError, match="a new name for a cost, got 'l2'"):
        register_cost("l2", lambda train, _: Huber(np.asarray(train.spread)))
    monkeypatch.setitem(registry.COSTS, "renamed", lambda train, _: Huber(np.asarray(train.spread)))
    with pytest.raises(OptionError, match="a cost named 'renamed', got one named 'huber'"):
        cost_named("renamed", random_training_set(0, n=40, d=2), None)
