"""What a change costs a person.

Costs are sums over columns of schema space of what the move in each column costs (for L2, of squares):

``l2``, ``l1``   the change in units of the column's training standard deviation, times the schema's weight; on
                 standardised data this is the paper's cost
``mad``          L1 in units of the median absolute deviation; a changed category or answer costs 1
``percentile``   how far the value moves among the training rows, from 0 (lowest) to 1 (highest); a changed category or
                 answer costs 1
a price table    :class:`CostTable`: so much for each unit up or down, so much for each change of category
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from enum import StrEnum
from typing import Any, Protocol

import numpy as np

from rocerf.data.columns import is_number
from rocerf.data.feature import Direction, Feature, Kind
from rocerf.data.schema import FeatureSchema
from rocerf.data.training_set import TrainingSet
from rocerf.errors import OptionError
from rocerf.types import Array

COSTS = ("l2", "l1", "mad", "percentile")

#: Levels of the training rows between which the percentile of a value is interpolated.
LEVELS = 101


class Norm(StrEnum):
    """How the moves of the columns are put together."""

    L2 = "l2"
    L1 = "l1"


#: A column's price as a curve: values in ascending order and the height at each; a move costs the difference in height.
Curve = tuple[Array, Array]


class Cost(Protocol):
    """What moving from X0 to X costs, and what solvers need to know of it.

    ``scale`` (d,) is a natural length of a move in each column.
    """

    @property
    def name(self) -> str:
        """What the cost is called in results."""
        ...

    @property
    def norm(self) -> Norm:
        """How columns are put together."""
        ...

    @property
    def scale(self) -> Array:
        """Natural lengths, shape (d,)."""
        ...

    def of(self, X: Array, X0: Array) -> Array:
        """Cost of going from each row of X0 to that of X, (P, d) -> (P,)."""
        ...

    def prices(self, X0: Array) -> tuple[Array, Array]:
        """What a unit up and a unit down costs in each column, two arrays (P, d); for L2 the root of it."""
        ...

    def curve(self, column: int) -> Curve | None:
        """The column's curve, where its price is not the same everywhere."""
        ...

    def relaxed(self) -> Cost:
        """A cost that needs no 0/1 variables, near enough to choose a margin with."""
        ...


@dataclass(frozen=True, eq=False)
class NormCost:
    """A norm over columns measured in units of ``scale`` (d,).

    >>> NormCost(Norm.L2, np.array([10.0, 1.0])).of(np.array([[30.0, 4.0]]), np.zeros((1, 2))).tolist()
    [5.0]
    """

    norm: Norm
    scale: Array
    name: str = ""

    def __post_init__(self) -> None:
        object.__setattr__(self, "name", self.name or str(self.norm))

    def of(self, X: Array, X0: Array) -> Array:
        """Cost of each move."""
        scaled = (X - X0) / self.scale
        if self.norm is Norm.L2:
            return np.asarray(np.sqrt((scaled**2).sum(axis=1)))
        return np.asarray(np.abs(scaled).sum(axis=1))

    def prices(self, X0: Array) -> tuple[Array, Array]:
        """The same both ways."""
        prices = np.broadcast_to(1.0 / self.scale, X0.shape)
        return prices, prices

    def curve(self, column: int) -> None:
        """None: the price of a unit is the same everywhere."""

    def relaxed(self) -> Cost:
        """Itself."""
        return self


#: Columns of a one-hot group whose reference category was left out, and what a change of category costs.
OpenGroup = tuple[tuple[int, ...], float]


def _with_open_groups(up: Array, down: Array, X0: Array, groups: Sequence[OpenGroup]) -> tuple[Array, Array]:
    """Prices (P, d) where a reference category has no column: who has a category pays to leave it, others to enter one.

    Half a price for each of two columns would make the way to the reference, on which one column moves, half as dear.
    """
    up, down = up.copy(), down.copy()
    for places, price in groups:
        own = X0[:, list(places)] == 1
        up[:, list(places)] = np.where(own.any(axis=1)[:, None], 0.0, price)
        down[:, list(places)] = np.where(own, price, 0.0)
    return up, down


def _paid(change: Array, up: Array, down: Array) -> Array:
    """What changes (P, d) cost at these prices, (P,)."""
    return np.asarray((np.where(change > 0, up, 0.0) * change - np.where(change < 0, down, 0.0) * change).sum(axis=1))


@dataclass(frozen=True, eq=False)
class OpenNormCost(NormCost):
    """The L1 norm where a change of category in groups without a column for their reference has one price."""

    open_groups: tuple[OpenGroup, ...] = ()

    def of(self, X: Array, X0: Array) -> Array:
        """Cost of each move."""
        return _paid(X - X0, *self.prices(X0))

    def prices(self, X0: Array) -> tuple[Array, Array]:
        """The same both ways, but for the columns of these groups."""
        return _with_open_groups(*super().prices(X0), X0, self.open_groups)


@dataclass(frozen=True, eq=False)
class PercentileCost:
    """The sum of how far each value moves among the training rows; a changed category or answer costs 1.

    The percentile of a value is interpolated between 101 levels of the training rows; several levels with one value
    count as their middle. Beyond the outermost values it goes on at the mean price of the range between them: there are
    no rows to pass there, but nobody is sent to ten times the largest income for nothing.
    """

    scale: Array
    curves: tuple[Curve | None, ...]
    halves: Array  # price of a unit in columns without a curve: 1/2 for one of a group's columns, which move in pairs
    open_groups: tuple[OpenGroup, ...] = ()
    name: str = "percentile"
    norm: Norm = Norm.L1

    def of(self, X: Array, X0: Array) -> Array:
        """Cost of each move."""
        total = _paid(X - X0, *self.prices(X0))
        for column, curve in enumerate(self.curves):
            if curve is not None:
                total += np.abs(np.interp(X[:, column], *curve) - np.interp(X0[:, column], *curve))
        return total

    def prices(self, X0: Array) -> tuple[Array, Array]:
        """Those of the columns without a curve."""
        prices = np.broadcast_to(self.halves, X0.shape)
        return _with_open_groups(prices, prices, X0, self.open_groups)

    def curve(self, column: int) -> Curve | None:
        """The percentiles of a number."""
        return self.curves[column]

    def relaxed(self) -> Cost:
        """A norm of the change."""
        return NormCost(Norm.L1, self.scale)


@dataclass(frozen=True)
class CostTable:
    """A user's own prices: for a number a price a unit or ``(up, down)``, for a category one price or one a change.

    ``prices`` maps a feature (or one-hot group) to a number, to a pair (up, down), or, for categories, to a mapping
    from category to category to price; changes that are not listed are not for sale. A group whose reference category
    was left out has one price for every change. Features that may change and have no price are refused.

    Examples
    --------
    >>> import rocerf
    >>> table = CostTable({"duration": (2.0, 1.0), "housing": {"rent": {"own": 40.0}}})
    >>> table.name
    'table'
    """

    prices: Mapping[str, Any]
    name: str = field(default="table", init=False)

    def to_pairs(self) -> list[Any]:
        """Plain lists for JSON, whose keys could only be texts."""
        pairs: list[Any] = _pairs(self.prices)
        return pairs

    @classmethod
    def from_pairs(cls, pairs: list[Any]) -> CostTable:
        """The inverse of :meth:`to_pairs`."""
        return cls(_mapping(pairs))

    def of_schema(self, schema: FeatureSchema, scale: Array) -> TableCost:
        """The cost over the columns of a schema."""
        known = [attribute.name for attribute in schema.attributes]
        unknown = [name for name in self.prices if name not in known]
        if unknown:
            raise OptionError(
                f"Expected prices for features or groups of the schema, got {unknown[0]!r}; known: "
                f"{', '.join(known[:20])}."
            )
        d = len(schema.columns)
        up, down = np.zeros(d), np.zeros(d)
        switches: list[tuple[tuple[int, ...], Array]] = []
        open_groups: list[OpenGroup] = []
        for attribute in schema.attributes:
            features = [schema.column_features[place] for place in attribute.places]
            price = self.prices.get(attribute.name)
            if price is None:
                if any(feature.direction is not Direction.FIXED for feature in features):
                    raise OptionError(
                        f"Expected a price for every feature that may change, got none for {attribute.name!r}; add one "
                        "or make the feature fixed."
                    )
                continue
            if not attribute.complete:
                open_groups.append((attribute.places, _one_price(price, attribute.name)))
            elif attribute.categories is not None:
                switches.append((attribute.places, _switch_prices(price, attribute.categories, attribute.name)))
            else:
                up[attribute.places[0]], down[attribute.places[0]] = _two_prices(price, attribute.name)
        return TableCost(scale, up, down, tuple(switches), tuple(open_groups))


@dataclass(frozen=True, eq=False)
class TableCost:
    """Prices over the columns of schema space; ``switches`` hold for groups of columns the price from each to each."""

    scale: Array
    up: Array
    down: Array
    switches: tuple[tuple[tuple[int, ...], Array], ...]
    open_groups: tuple[OpenGroup, ...] = ()
    name: str = "table"
    norm: Norm = Norm.L1

    def of(self, X: Array, X0: Array) -> Array:
        """Cost of each move."""
        return _paid(X - X0, *self.prices(X0))

    def prices(self, X0: Array) -> tuple[Array, Array]:
        """Units up and down; a category is paid for by the column that becomes 1."""
        up, down = np.tile(self.up, (len(X0), 1)), np.tile(self.down, (len(X0), 1))
        for places, table in self.switches:
            own = X0[:, list(places)]
            up[:, list(places)] = table[own.argmax(axis=1)]
        return _with_open_groups(up, down, X0, self.open_groups)

    def curve(self, column: int) -> None:
        """None: the price of a unit is the same everywhere."""

    def relaxed(self) -> Cost:
        """A norm of the change."""
        return NormCost(Norm.L1, self.scale)


def _pairs(value: Any) -> Any:
    if isinstance(value, Mapping):
        return [["map", [[key, _pairs(entry)] for key, entry in value.items()]]]
    return list(value) if isinstance(value, tuple) else value


def _mapping(value: Any) -> Any:
    if isinstance(value, list) and value and isinstance(value[0], list) and value[0][:1] == ["map"]:
        return {key: _mapping(entry) for key, entry in value[0][1]}
    return value


#: What a change that is not for sale costs.
NOT_FOR_SALE = np.inf


def _switch_prices(price: Any, categories: Sequence[Any], name: str) -> Array:
    table = np.full((len(categories), len(categories)), NOT_FOR_SALE)
    if is_number(price):
        table[:] = _price(price, name)
    elif isinstance(price, Mapping):
        for before, row in price.items():
            for after, value in row.items() if isinstance(row, Mapping) else ((None, None),):
                if before not in categories or after not in categories:
                    raise OptionError(
                        f"Expected prices of {name!r} as category -> category -> number among "
                        f"{', '.join(map(str, categories))}, got {before!r} -> {after!r}; correct it."
                    )
                table[categories.index(before), categories.index(after)] = _price(value, name)
    else:
        raise OptionError(f"Expected a price or prices from category to category for {name!r}, got {price!r}.")
    np.fill_diagonal(table, 0.0)
    return table


def _one_price(price: Any, name: str) -> float:
    if not is_number(price):
        raise OptionError(
            f"Expected one price for every change of {name!r}, whose reference category has no column and so no name, "
            f"got {price!r}; give a number."
        )
    return _price(price, name)


def _two_prices(price: Any, name: str) -> tuple[float, float]:
    if isinstance(price, Sequence) and not isinstance(price, str) and len(price) == 2:
        return _price(price[0], name), _price(price[1], name)
    return _price(price, name), _price(price, name)


def _price(value: Any, name: str) -> float:
    if not is_number(value) or not 0 < value < np.inf:
        raise OptionError(f"Expected a price above 0 for {name!r}, got {value!r}; give a number, or (up, down).")
    return float(value)


def cost_named(cost: Any, train: TrainingSet, schema: FeatureSchema | None) -> Cost:
    """The cost called so, or a price table, over the training rows' columns."""
    spread = np.asarray(train.spread)
    if isinstance(cost, CostTable):
        return cost.of_schema(schema or FeatureSchema.free(train.columns), spread)
    if not isinstance(cost, str) or cost not in COSTS:
        raise OptionError(f"Expected cost to be one of {', '.join(COSTS)} or a CostTable, got {cost!r}.")
    features = _features(train, schema)
    weights = np.array([feature.weight for feature in features])
    if cost in ("l2", "l1"):
        return NormCost(Norm(cost), spread / weights)
    answers = np.array([feature.kind in (Kind.BINARY, Kind.CATEGORICAL) for feature in features])
    in_pairs = np.array([feature.kind is Kind.CATEGORICAL or feature.group is not None for feature in features])
    unit = np.where(in_pairs, 2.0, 1.0)
    open_groups = _open_groups(schema, weights)
    if cost == "mad":
        deviation = np.median(np.abs(train.X - np.median(train.X, axis=0)), axis=0)
        # Where more than half of the rows agree the median deviation is 0 and says nothing; the standard one does.
        deviation = np.where(deviation > 0, deviation, spread)
        lengths = np.where(answers, unit, deviation) / weights
        if open_groups:
            return OpenNormCost(Norm.L1, lengths, "mad", open_groups)
        return NormCost(Norm.L1, lengths, "mad")
    curves = tuple(
        None if answer else _percentiles(train.X[:, place], weights[place], spread[place])
        for place, answer in enumerate(answers)
    )
    return PercentileCost(spread / weights, curves, np.where(answers, weights / unit, 0.0), open_groups)


def _open_groups(schema: FeatureSchema | None, weights: Array) -> tuple[OpenGroup, ...]:
    attributes = () if schema is None else schema.attributes
    return tuple((a.places, float(weights[list(a.places)].mean())) for a in attributes if not a.complete)


def _features(train: TrainingSet, schema: FeatureSchema | None) -> tuple[Feature, ...]:
    """Without a schema, a column of zeros and ones is a question."""
    if schema is not None:
        return schema.column_features
    kinds = np.where(np.isin(train.X, (0.0, 1.0)).all(axis=0), Kind.BINARY, Kind.CONTINUOUS)
    return tuple(Feature(name, Kind(str(kind))) for name, kind in zip(train.columns, kinds, strict=True))


#: Ranges of the training rows over which a percentile's price is continued: farther than any bound that makes sense.
CONTINUED = 1e4


def _percentiles(column: Array, weight: float, spread: float) -> Curve:
    levels = np.linspace(0.0, 1.0, LEVELS)
    values = np.quantile(column, levels)
    knots, first, counts = np.unique(values, return_index=True, return_counts=True)
    heights = np.array([levels[start : start + count].mean() for start, count in zip(first, counts, strict=True)])
    beyond = CONTINUED * (float(knots[-1] - knots[0]) or spread)
    knots = np.array([knots[0] - beyond, *knots, knots[-1] + beyond])
    heights = np.array([heights[0] - CONTINUED, *heights, heights[-1] + CONTINUED])
    return knots, weight * heights
