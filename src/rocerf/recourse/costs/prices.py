"""A user's own prices: so much for each unit up or down, so much for each change of category."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np

from rocerf.data.columns import is_number
from rocerf.data.feature import Direction
from rocerf.data.schema import FeatureSchema
from rocerf.errors import OptionError
from rocerf.recourse.costs.cost import Cost, Norm
from rocerf.recourse.costs.norms import OpenGroup, with_open_groups
from rocerf.types import Array

#: What a change costs that the table does not list: nobody can pay it.
UNLISTED = np.inf


@dataclass(frozen=True)
class CostTable:
    """A user's own prices: for a number a price a unit or ``(up, down)``, for a category one price or one a change.

    ``prices`` maps a feature (or one-hot group) to a number, to a pair (up, down), or, for categories, to a mapping
    from category to category to price; changes that are not listed are not offered. A group whose reference category
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
        return list(_pairs(self.prices))

    @classmethod
    def from_pairs(cls, pairs: list[Any]) -> CostTable:
        """The inverse of :meth:`to_pairs`."""
        return cls(_mapping(pairs))

    def of_schema(self, schema: FeatureSchema, scale: Array) -> TableCost:
        """The cost over the columns of a schema."""
        known = [attribute.name for attribute in schema.attributes]
        unknown = [name for name in self.prices if name not in known]
        if unknown:
            some = ", ".join(known[:20])
            raise OptionError(
                f"Expected prices for features or groups of the schema, got {unknown[0]!r}; known: {some}."
            )
        up, down = np.zeros((2, len(schema.columns)))
        switches: list[tuple[tuple[int, ...], Array]] = []
        open_groups: list[OpenGroup] = []
        for attribute in schema.attributes:
            name, places, price = attribute.name, attribute.places, self.prices.get(attribute.name)
            if price is None:
                if any(schema.column_features[place].direction is not Direction.FIXED for place in places):
                    raise OptionError(
                        f"Expected a price for every feature that may change, got none for {name!r}; add one or make "
                        "the feature fixed."
                    )
            elif not attribute.complete:
                open_groups.append((places, _one_price(price, name)))
            elif attribute.categories is not None:
                switches.append((places, _switch_prices(price, attribute.categories, name)))
            else:
                up[places[0]], down[places[0]] = _two_prices(price, name)
        return TableCost(scale, up, down, tuple(switches), tuple(open_groups))


@dataclass(frozen=True, eq=False)
class TableCost(Cost):
    """Prices over the columns of schema space; ``switches`` hold for groups of columns the price from each to each."""

    scale: Array
    up: Array
    down: Array
    switches: tuple[tuple[tuple[int, ...], Array], ...]
    open_groups: tuple[OpenGroup, ...] = ()
    name: str = "table"
    norm: Norm = Norm.L1

    def prices(self, X0: Array) -> tuple[Array, Array]:
        """Units up and down; a category is paid for by the column that becomes 1."""
        up, down = np.tile(self.up, (len(X0), 1)), np.tile(self.down, (len(X0), 1))
        for places, table in self.switches:
            own = X0[:, list(places)]
            up[:, list(places)] = table[own.argmax(axis=1)]
        return with_open_groups(up, down, X0, self.open_groups)


def _pairs(value: Any) -> Any:
    if isinstance(value, Mapping):
        return [["map", [[key, _pairs(entry)] for key, entry in value.items()]]]
    return list(value) if isinstance(value, tuple) else value


def _mapping(value: Any) -> Any:
    if isinstance(value, list) and value and isinstance(value[0], list) and value[0][:1] == ["map"]:
        return {key: _mapping(entry) for key, entry in value[0][1]}
    return value


def _switch_prices(price: Any, categories: Sequence[Any], name: str) -> Array:
    table = np.full((len(categories), len(categories)), UNLISTED)
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
