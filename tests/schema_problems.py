"""Random schemas with training rows, models and people over them; and what moves cost, computed once more."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from functools import cache
from typing import Any

import numpy as np
from hypothesis import strategies as st

from rocerf import LogisticModel, TrainingSet
from rocerf.data.schema import Feature, FeatureSchema
from rocerf.recourse.costs.prices import CostTable
from rule_checker import attributes, columns_of

Draw = Callable[[Any], Any]

KINDS = ("continuous", "integer", "stepped", "whole steps", "binary", "categorical", "group")
DISCRETE = KINDS[1:]
DIRECTIONS = ("any", "any", "any", "any", "any", "increase", "decrease", "fixed")

COSTS = ("l2", "l1", "mad", "percentile", "table")


@dataclass(frozen=True, eq=False)
class Problem:
    """A schema, a model on rows of its columns, and people (P, d), all of whom the model refuses."""

    schema: FeatureSchema
    model: LogisticModel
    people: np.ndarray
    seed: int

    def cost(self, name: str) -> str | CostTable:
        """The cost of this name; "table" makes up prices."""
        return CostTable(prices(self.schema, self.seed)) if name == "table" else name


class _Columns:
    """Draws features one by one, and values of them for any number of rows."""

    def __init__(self, draw: Draw, seed: int) -> None:
        self.draw, self.rng = draw, np.random.default_rng(seed)
        self.features: list[Feature] = []
        self.values: list[Callable[[int], np.ndarray]] = []
        self.group_changes: dict[str, Mapping[str, tuple[Any, ...]]] = {}
        self.open_groups: list[str] = []

    def add(self, kind: str) -> None:
        """One more feature, or the columns of one more group."""
        name = f"{kind.split(maxsplit=1)[0][:3]}{len(self.features)}"
        if kind == "group":
            self._add_group(name)
        elif kind == "categorical":
            self._add_categorical(name)
        elif kind == "binary":
            self.features.append(Feature(name, "binary", **self._common()))
            self.values.append(lambda n: (self.rng.random((n, 1)) < 0.5).astype(float))
        else:
            self._add_number(name, kind)

    def _common(self) -> dict[str, Any]:
        weight = float(self.draw(st.sampled_from([1.0, 1.0, 0.5, 3.0])))
        return {"direction": self.draw(st.sampled_from(DIRECTIONS)), "weight": weight}

    def _add_number(self, name: str, kind: str) -> None:
        steps = {"stepped": self.draw(st.sampled_from([0.3, 0.7, 0.2])), "whole steps": 2.0}
        size = 1.0 if kind != "continuous" else float(self.draw(st.sampled_from([0.01, 1.0, 1000.0])))
        # Steps of 0.3 and bounds among their multiples: sums that miss each other by rounding.
        first, last = 0.0, 4.0 if kind != "stepped" else 5 * steps["stepped"]
        whole = kind in ("integer", "whole steps")
        grid = 1.0 if whole else steps["stepped"] if kind == "stepped" and self.draw(st.booleans()) else None

        def values(n: int) -> np.ndarray:
            numbers = self.rng.uniform(first - 0.5, last + 0.5, size=(n, 1)) * size
            return numbers if grid is None else np.rint(numbers / grid) * grid

        bounds: dict[str, Any] = {}
        if kind != "continuous" or self.draw(st.booleans()):  # the range, tighter, or wider: some are outside
            shift = self.draw(st.sampled_from([(0.0, 0.0), (0.5, 0.0), (0.0, -0.6), (-1.0, 1.0)]))
            bounds = {"lower": size * (first + shift[0]), "upper": size * (last + shift[1])}
        self.features.append(
            Feature(name, "integer" if whole else "continuous", step=steps.get(kind), **bounds, **self._common())
        )
        self.values.append(values)

    def _add_categorical(self, name: str) -> None:
        categories: list[Any] = list("abcd"[: self.draw(st.integers(2, 4))])
        if self.draw(st.integers(0, 3)) == 0:
            categories[self.draw(st.integers(0, len(categories) - 1))] = None
        changes = None
        if self.draw(st.integers(0, 2)) == 0:
            changes = {
                before: tuple(c for c in categories if self.draw(st.booleans()))
                for before in categories
                if self.draw(st.booleans())
            }
        self.features.append(Feature(name, "categorical", categories=categories, changes=changes, **self._common()))
        self.values.append(lambda n: np.eye(len(categories))[self.rng.integers(len(categories), size=n)])

    def _add_group(self, name: str) -> None:
        columns = [f"{name}_{letter}" for letter in "abc"[: self.draw(st.integers(2, 3))]]
        weight = float(self.draw(st.sampled_from([1.0, 2.0])))
        for column in columns:
            direction = self.draw(st.sampled_from(("any", "any", "any", "any", "fixed", "increase")))
            self.features.append(Feature(column, "binary", group=name, direction=direction, weight=weight))
        if open_ := self.draw(st.integers(0, 3)) == 0:
            self.open_groups.append(name)
        if self.draw(st.integers(0, 2)) == 0:
            goals = [*columns, None] if open_ else columns
            self.group_changes[name] = {
                before: tuple(c for c in goals if self.draw(st.booleans()))
                for before in columns
                if self.draw(st.booleans())
            }
        codes = np.vstack([np.eye(len(columns)), np.zeros((1, len(columns)))]) if open_ else np.eye(len(columns))
        self.values.append(lambda n: codes[self.rng.integers(len(codes), size=n)])

    def rows(self, n: int) -> np.ndarray:
        """Values (n, d) of all columns."""
        return np.hstack([values(n) for values in self.values])

    def schema(self) -> FeatureSchema:
        """With relations and conditions between the features."""
        plain = FeatureSchema(tuple(self.features), (), self.group_changes, tuple(self.open_groups))
        if self.draw(st.integers(0, 2)) == 0:
            subject, other = self.draw(st.sampled_from(plain.names)), self.draw(st.sampled_from(plain.names))
            plain = plain.edit(subject, fixed_if=self._condition(plain[other]))
        relations = [self._relation(plain) for _ in range(self.draw(st.sampled_from([0, 0, 0, 1, 2])))]
        return plain.relate(*relations)

    def _condition(self, feature: Feature) -> str:
        if feature.kind == "categorical":
            known = [category for category in feature.categories if category is not None]
            return f"{feature.name} {self.draw(st.sampled_from(['==', '!=']))} {self.draw(st.sampled_from(known))}"
        middle = (feature.lower + feature.upper) / 2 if np.isfinite(feature.upper) else 1.0
        return f"{feature.name} {self.draw(st.sampled_from(['<', '>=', '<=', '>']))} {middle}"

    def _relation(self, schema: FeatureSchema) -> str:
        """Two columns compared, in units of their ranges, so that it matters."""
        columns = self.draw(st.lists(st.sampled_from(schema.columns), min_size=2, max_size=2, unique=True))
        rows = self.rows(50)
        sizes = [float(np.ptp(rows[:, schema.columns.index(column)])) or 1.0 for column in columns]
        slack = self.draw(st.sampled_from([0.8, 0.3, 0.0]))
        sign = self.draw(st.sampled_from(["<=", ">="]))
        return (
            f"`{columns[0]}` / {sizes[0]} {sign} `{columns[1]}` * {1 / sizes[1]} + {slack if sign == '<=' else -slack}"
        )


@st.composite
def problems(
    draw: Draw, kinds: tuple[str, ...] = KINDS, most: int = 5, people: int = 3, rows: int = 40, related: bool = True
) -> Problem:
    """A random problem; people whom the model accepts are left out, so there may be none."""
    seed = draw(st.integers(0, 10_000))
    columns = _Columns(draw, seed)
    for _ in range(draw(st.integers(2, most))):
        columns.add(draw(st.sampled_from(kinds)))
    schema = columns.schema()
    if not related:
        schema = FeatureSchema(schema.features, (), schema.group_changes, schema.open_groups)
    X = columns.rows(rows)
    rng = np.random.default_rng(seed)
    spread = np.where(X.std(axis=0) > 0, X.std(axis=0), 1.0)
    z = (X - X.mean(axis=0)) / spread @ rng.normal(size=X.shape[1])
    y = (z + rng.normal(size=rows) > np.quantile(z, 0.6)).astype(int)
    y[:4] = [0, 1, 0, 1]
    model = LogisticModel.fit(TrainingSet(_frame(X, schema), y), C=draw(st.sampled_from([0.1, 1.0])))
    candidates = _partly_filled(columns.rows(6 * people), schema, rng)
    refused = candidates[model.score(candidates) < -0.05][:people]
    return Problem(schema, model, refused, seed)


def _partly_filled(people: np.ndarray, schema: FeatureSchema, rng: np.random.Generator) -> np.ndarray:
    """The people, some with what a model puts in the place of a missing whole number: a mean."""
    gone = rng.random(people.shape) < 0.15
    return np.where(gone & [feature.kind == "integer" for feature in schema.column_features], 2.4, people)


def _frame(X: np.ndarray, schema: FeatureSchema) -> Any:
    import pandas as pd

    return pd.DataFrame(X, columns=list(schema.columns))


def prices(schema: FeatureSchema, seed: int) -> dict[str, Any]:
    """A price for everything that may change; some changes of category are not for sale."""
    rng = np.random.default_rng(seed)
    table: dict[str, Any] = {}
    for name, features in attributes(schema).items():
        up, down = (float(price) for price in rng.uniform(0.2, 3.0, size=2).round(2))
        values = features[0].categories or tuple(feature.name for feature in features)
        if len(features) == 1 and features[0].kind != "categorical":
            table[name] = up if rng.random() < 0.5 else (up, down)
        elif rng.random() < 0.5 or name in schema.open_groups:
            table[name] = up
        else:
            table[name] = {
                before: {after: round(float(rng.uniform(0.2, 3.0)), 2) for after in values if rng.random() < 0.8}
                for before in values
                if rng.random() < 0.8
            }
    return table


def cost_of(name: str, problem: Problem, x0: np.ndarray, x: np.ndarray) -> float:
    """What going from x0 to x costs by the words of the documentation; infinite where it is not for sale."""
    if name == "table":
        return _by_table(problem, x0, x)
    parts = []
    places = columns_of(problem.schema)
    for attribute, features in attributes(problem.schema).items():
        columns = places[attribute]
        rows = problem.model.train.X[:, columns]
        change = [float(x[j] - x0[j]) for j in columns]
        if name in ("l2", "l1"):
            for part, values, feature in zip(change, rows.T, features * (len(columns) // len(features)), strict=True):
                parts.append(abs(part) * feature.weight / (values.std() if np.ptp(values) else 1.0))
        elif features[0].kind in ("binary", "categorical"):
            parts.append(features[0].weight * float(any(change)))
        elif name == "mad":
            distance = float(np.median(np.abs(rows - np.median(rows))))
            parts.append(features[0].weight * abs(change[0]) / (distance or rows.std() or 1.0))
        else:
            heights = [_percentile(rows[:, 0], point[columns[0]]) for point in (x0, x)]
            parts.append(features[0].weight * abs(heights[1] - heights[0]))
    return float(np.sqrt(np.sum(np.square(parts)))) if name == "l2" else float(np.sum(parts))


@cache
def _levels(values: tuple[float, ...]) -> tuple[list[float], list[float]]:
    """The different values among 101 levels, and the middle of the levels of each."""
    levels = np.percentile(values, range(101)).tolist()
    knots = sorted(set(levels))
    return knots, [float(np.mean([i for i, level in enumerate(levels) if level == knot])) / 100 for knot in knots]


def _percentile(values: np.ndarray, at: float) -> float:
    """Interpolated between the levels; beyond the outermost a further range of the values counts 1."""
    knots, heights = _levels(tuple(values))
    width = knots[-1] - knots[0] or 1.0
    if at <= knots[0]:
        return heights[0] - (knots[0] - at) / width
    for left, right, low, high in zip(knots, knots[1:], heights, heights[1:], strict=False):
        if at <= right:
            return low + (high - low) * (at - left) / (right - left)
    return heights[-1] + (at - knots[-1]) / width


def unit_prices(name: str, problem: Problem, column: int) -> tuple[float, float]:
    """What a unit up and down costs in the column of a number; for l2 the root of what a unit costs."""
    (attribute,) = [name for name, places in columns_of(problem.schema).items() if column in places]
    if name == "table":
        price = prices(problem.schema, problem.seed)[attribute]
        return price if isinstance(price, tuple) else (price, price)
    values = problem.model.train.X[:, column]
    length = values.std() if np.ptp(values) else 1.0
    if name == "mad":
        length = float(np.median(np.abs(values - np.median(values)))) or length
    return (float(problem.schema[attribute].weight / length),) * 2


def _by_table(problem: Problem, x0: np.ndarray, x: np.ndarray) -> float:
    table = prices(problem.schema, problem.seed)
    total = 0.0
    places = columns_of(problem.schema)
    for name, features in attributes(problem.schema).items():
        before, after = (list(point[places[name]]) for point in (x0, x))
        if before == after:
            continue
        price = table[name]
        values = features[0].categories or tuple(feature.name for feature in features)
        if len(features) == 1 and features[0].kind != "categorical":
            up, down = price if isinstance(price, tuple) else (price, price)
            change = float(after[0] - before[0])
            total += up * change if change > 0 else -down * change
        elif isinstance(price, float):
            total += price
        else:
            total += price.get(values[before.index(1.0)], {}).get(values[after.index(1.0)], np.inf)
    return total
