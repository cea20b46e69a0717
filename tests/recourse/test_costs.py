"""What a change costs, computed once more in plain loops."""

from __future__ import annotations

import itertools
from typing import Any

import numpy as np
import pandas as pd
import pytest
from hypothesis import HealthCheck, given, settings

from rocerf import CostTable, FeatureSchema, LogisticModel, Rocerf, TrainingSet
from rocerf.data.schema import Feature
from rocerf.errors import OptionError
from rocerf.recourse.costs.percentile import percentiles
from rocerf.recourse.costs.registry import cost_named
from schema_problems import COSTS, Problem, cost_of, problems

SCHEMA = FeatureSchema(
    (
        Feature("pay", weight=2.0),
        Feature("age", "integer"),
        Feature("home", "categorical", categories=("free", "rent", "own")),
        Feature("married", "binary"),
    )
)


def rows(count: int, seed: int) -> np.ndarray:
    rng = np.random.default_rng(seed)
    homes = np.eye(3)[rng.integers(3, size=count)]
    pay, age, married = rng.lognormal(7, 1, count), rng.integers(18, 80, count), rng.integers(2, size=count)
    return np.column_stack([pay, age, homes, married]).astype(float)


TRAIN = TrainingSet(rows(200, 0), np.arange(200) % 2)
X0, X = rows(30, 1), rows(30, 2)


def by_hand(name: str, x0: np.ndarray, x: np.ndarray) -> float:
    moves = np.abs(x - x0)
    if name in ("l1", "l2"):
        scaled = moves * np.array([2.0, 1, 1, 1, 1, 1]) / TRAIN.X.std(axis=0)
        return float(scaled.sum() if name == "l1" else np.sqrt((scaled**2).sum()))
    total = float((x[2:5] != x0[2:5]).any()) + float(x[5] != x0[5])
    for column, weight in ((0, 2.0), (1, 1.0)):
        values = TRAIN.X[:, column]
        if name == "mad":
            total += weight * moves[column] / np.median(np.abs(values - np.median(values)))
        else:
            total += weight * abs(share_below(values, x[column]) - share_below(values, x0[column]))
    return total


def share_below(values: np.ndarray, value: float) -> float:
    """Between the 101 percentiles, ties in the middle of their levels; beyond the ends a range costs 1."""
    heights: dict[float, list[float]] = {}
    for level in range(101):
        heights.setdefault(float(np.quantile(values, level / 100)), []).append(level / 100)
    knots = sorted((at, float(np.mean(levels))) for at, levels in heights.items())
    width = knots[-1][0] - knots[0][0]
    if value <= knots[0][0]:
        return knots[0][1] - (knots[0][0] - value) / width
    for (left, low), (right, high) in itertools.pairwise(knots):
        if value <= right:
            return low + (high - low) * (value - left) / (right - left)
    return knots[-1][1] + (value - knots[-1][0]) / width


def test_nobody_is_sent_far_beyond_all_rows_for_nothing() -> None:
    rng = np.random.default_rng(0)
    rows = rng.normal(size=(200, 2)) * [800.0, 2.0] + [3000.0, 3.0]
    train = TrainingSet(rows, ((rows - rows.mean(0)) / rows.std(0) @ [1.0, -1.0] > 0).astype(int))
    richest = np.array([[rows[:, 0].max() + 1.0, 60.0]])
    found = Rocerf(LogisticModel.fit(train), 1, promise="first_order", cost="percentile").explain(richest)
    assert found.answered.all()
    assert found.costs[0] > 1.0
    assert found.matrix[0, 1] < 20.0  # fewer of the second, which is cheaper than twenty times the largest income


@pytest.mark.slow
@pytest.mark.parametrize("name", ["l1", "l2", "mad", "percentile"])
def test_named_costs_are_what_they_say(name: str) -> None:
    cost = cost_named(name, TRAIN, SCHEMA)
    expected = [by_hand(name, x0, x) for x0, x in zip(X0, X, strict=True)]
    np.testing.assert_allclose(cost.of(X, X0), expected, rtol=1e-9)
    assert (cost.of(X0, X0) == 0).all()
    assert cost.name == name


def test_where_most_rows_agree_the_standard_deviation_replaces_the_median_one() -> None:
    values = np.zeros(50)
    values[:5] = 10.0
    train = TrainingSet(np.column_stack([values, np.arange(50.0)]), np.arange(50) % 2)
    cost = cost_named("mad", train, FeatureSchema.free(["x0", "x1"]))
    assert cost.of(np.array([[3.0, 0.0]]), np.zeros((1, 2)))[0] == pytest.approx(3.0 / values.std())


def test_a_price_table_counts_units_and_changes() -> None:
    table = CostTable(
        {"pay": (0.5, 0.25), "age": 3.0, "home": {"rent": {"own": 40.0}, "own": {"rent": 1.0}}, "married": 7}
    )
    cost = cost_named(table, TRAIN, SCHEMA)
    me = np.array([[1000.0, 30, 0, 1, 0, 0]])
    for change, price in (
        ({0: 1100.0}, 50.0),
        ({0: 900.0}, 25.0),
        ({1: 32.0}, 6.0),
        ({3: 0.0, 4: 1.0}, 40.0),
        ({5: 1.0}, 7.0),
        ({0: 900.0, 3: 0.0, 4: 1.0, 5: 1.0}, 72.0),
        ({3: 0.0, 2: 1.0}, np.inf),  # not for sale
    ):
        x = me.copy()
        x[0, list(change)] = list(change.values())
        assert cost.of(x, me)[0] == pytest.approx(price)


@pytest.mark.parametrize(
    ("prices", "message"),
    [
        ({"pay": 1, "age": 1, "home": 1}, "got none for 'married'"),
        ({"pay": 1, "age": 1, "home": 1, "married": 1, "dog": 1}, "got 'dog'"),
        ({"pay": 0, "age": 1, "home": 1, "married": 1}, "a price above 0 for 'pay'"),
        ({"pay": (1, -1), "age": 1, "home": 1, "married": 1}, "a price above 0 for 'pay'"),
        ({"pay": "dear", "age": 1, "home": 1, "married": 1}, "a price above 0 for 'pay'"),
        ({"pay": 1, "age": 1, "home": {"rent": {"castle": 1}}, "married": 1}, "'rent' -> 'castle'"),
        ({"pay": 1, "age": 1, "home": {"rent": 3}, "married": 1}, "category -> category"),
        ({"pay": 1, "age": 1, "home": "dear", "married": 1}, "for 'home', got 'dear'"),
    ],
)
def test_price_tables_that_cannot_be(prices: dict[str, Any], message: str) -> None:
    with pytest.raises(OptionError, match=message):
        cost_named(CostTable(prices), TRAIN, SCHEMA)


def test_fixed_features_need_no_price() -> None:
    schema = SCHEMA.edit("married", direction="fixed")
    assert cost_named(CostTable({"pay": 1, "age": 1, "home": 1}), TRAIN, schema).name == "table"


# --- random schemas, and groups whose reference category has no column ---------------------------------


@pytest.mark.parametrize("name", COSTS)
@settings(derandomize=True, deadline=None, max_examples=25, suppress_health_check=list(HealthCheck))
@given(problems(people=4))
def test_costs_over_random_schemas_are_what_the_documentation_says(name: str, problem: Problem) -> None:
    cost = cost_named(problem.cost(name), problem.model.train, problem.schema)
    for x0 in problem.people:
        prices = cost.of(problem.people, np.broadcast_to(x0, problem.people.shape))
        expected = [cost_of(name, problem, x0, x) for x in problem.people]
        np.testing.assert_allclose(prices, expected, rtol=1e-9, atol=1e-12)


@pytest.mark.parametrize("name", COSTS)
@settings(derandomize=True, deadline=None, max_examples=15, suppress_health_check=list(HealthCheck))
@given(problems(people=4))
def test_solvers_are_told_the_prices_that_are_paid(name: str, problem: Problem) -> None:
    """A move in one column costs its price up or down, or what the column's curve says."""
    cost = cost_named(problem.cost(name), problem.model.train, problem.schema)
    rng = np.random.default_rng(problem.seed)
    up, down = cost.prices(problem.people)
    for place, x0 in enumerate(problem.people):
        for column in range(len(x0)):
            x, move = x0.copy(), float(rng.normal() * cost.scale[column])
            x[column] += move
            curve = cost.curve(column)
            if curve is not None:
                expected = abs(np.interp(x[column], *curve) - np.interp(x0[column], *curve))
            else:
                expected = up[place, column] * move if move > 0 else -down[place, column] * move
            assert cost.of(x[None], x0[None])[0] == pytest.approx(expected, rel=1e-9, abs=1e-12)


OPEN = FeatureSchema(
    (*(Feature(f"h_{i}", "binary", group="h") for i in (1, 2)), Feature("pay")),
    open_groups=("h",),
)
OPEN_ROWS = TrainingSet(np.array([[1, 0, 1.0], [0, 1, 2.0], [0, 0, 3.0], [1, 0, 4.0]]), [0, 1, 0, 1])
NONE, FIRST, SECOND = [0.0, 0.0, 1.0], [1.0, 0.0, 1.0], [0.0, 1.0, 1.0]


@pytest.mark.parametrize(
    "cost", ["mad", "percentile", CostTable({"h": 5, "pay": 1})], ids=["mad", "percentile", "table"]
)
@pytest.mark.parametrize("weight", [1.0, 3.0])
def test_every_change_of_category_costs_the_same_with_a_left_out_reference(cost: Any, weight: float) -> None:
    """The way to the reference moves one column, the way between others two."""
    schema = OPEN.edit("h_1", weight=weight).edit("h_2", weight=weight)
    price = 5.0 if isinstance(cost, CostTable) else weight
    for before in (NONE, FIRST, SECOND):
        for after in (NONE, FIRST, SECOND):
            paid = cost_named(cost, OPEN_ROWS, schema).of(np.array([after]), np.array([before]))[0]
            assert paid == (0.0 if before == after else price)


def test_prices_from_category_to_category_need_a_name_for_every_category() -> None:
    with pytest.raises(OptionError, match="one price for every change of 'h', whose reference category has no column"):
        cost_named(CostTable({"h": {"h_1": {"h_2": 3.0}}, "pay": 1}), OPEN_ROWS, OPEN)


def test_without_a_schema_columns_of_zeros_and_ones_are_answers() -> None:
    train = TrainingSet(np.column_stack([np.arange(20.0), np.arange(20) % 2]), np.arange(20) % 2)
    for name in ("mad", "percentile"):
        assert cost_named(name, train, None).of(np.array([[3.0, 1.0]]), np.array([[3.0, 0.0]]))[0] == 1.0


@pytest.mark.parametrize("cost", ["l3", None, 3, ["l1"], {"pay": 1}])
def test_what_is_no_cost(cost: Any) -> None:
    with pytest.raises(OptionError, match="Expected cost to be one of l2, l1, mad, percentile or a CostTable"):
        cost_named(cost, TRAIN, SCHEMA)


def test_percentiles_of_whole_numbers_stand_at_whole_numbers_and_answers_are_the_cheapest() -> None:
    """Interpolated between two rows with 1, a level came out a rounding error beside 1, as a step of no width: what a
    program reckoned with was not the cost, and answers that it called the cheapest were dearer than others."""
    rng = np.random.default_rng(338)
    rows = rng.integers(0, 6, size=(60, 2)).astype(float)
    y = (rows @ [1.0, -0.8] + rng.normal(size=60) < 0).astype(int)
    for count in range(40, 61):
        values, heights = percentiles(rows[:count, 0], 1.0, 1.0)
        assert np.diff(values).min() > 1e-9
        assert (np.diff(heights) > 0).all()
    schema = FeatureSchema([Feature(name, "integer", lower=0, upper=5) for name in ("u", "v")])
    grid = np.array(list(itertools.product(range(6), repeat=2)), float)
    for count in range(30, 61, 2):
        train = TrainingSet(pd.DataFrame(rows[:count], columns=["u", "v"]), y[:count])
        explainer = Rocerf(LogisticModel.fit(train), promise="plain", schema=schema, cost="percentile")
        accepted = grid[explainer.model.predict(grid) == 1]
        found = explainer.explain(grid[explainer.model.predict(grid) == 0])
        assert found.answered.all()
        for x0, cost, gap in zip(found.people, found.costs, found.gaps, strict=True):
            cheapest = explainer.cost.of(accepted, np.broadcast_to(x0, accepted.shape)).min()
            assert cost == pytest.approx(cheapest, abs=1e-9) or gap >= 1 - cheapest / cost - 1e-9
