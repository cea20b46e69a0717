"""What a change costs, computed once more in plain loops."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from rocerf import CostTable, FeatureSchema, TrainingSet
from rocerf.data.schema import Feature
from rocerf.errors import OptionError
from rocerf.recourse.cost import cost_named

SCHEMA = FeatureSchema(
    (
        Feature("pay", weight=2.0),
        Feature("age", "integer"),  # type: ignore[arg-type]
        Feature("home", "categorical", categories=("free", "rent", "own")),  # type: ignore[arg-type]
        Feature("married", "binary"),  # type: ignore[arg-type]
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
    """Between the 101 percentiles, ties in the middle of their levels; flat beyond the ends."""
    heights: dict[float, list[float]] = {}
    for level in range(101):
        heights.setdefault(float(np.quantile(values, level / 100)), []).append(level / 100)
    knots = sorted((at, float(np.mean(levels))) for at, levels in heights.items())
    if value <= knots[0][0]:
        return knots[0][1]
    for (left, low), (right, high) in zip(knots, knots[1:], strict=False):
        if value <= right:
            return low + (high - low) * (value - left) / (right - left)
    return knots[-1][1]


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
