"""Costs by name: the four that come with the package, and those registered from outside.

``l2``, ``l1``   the change in units of the column's training standard deviation, times the schema's weight; on
                 standardised data this is the paper's cost
``mad``          L1 in units of the median absolute deviation; a changed category or answer costs 1
``percentile``   how far the value moves among the training rows, from 0 (lowest) to 1 (highest); a changed category or
                 answer costs 1
"""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from typing import Any

import numpy as np

from rocerf.data.column_statistics import are_answers
from rocerf.data.feature import Feature, Kind
from rocerf.data.schema import FeatureSchema
from rocerf.data.training_set import TrainingSet
from rocerf.errors import OptionError
from rocerf.recourse.costs.cost import Cost, Norm
from rocerf.recourse.costs.norms import NormCost, OpenGroup
from rocerf.recourse.costs.percentile import PercentileCost, percentiles
from rocerf.recourse.costs.prices import CostTable
from rocerf.types import Array

#: Makes a cost over the columns of these training rows, under this schema.
CostFactory = Callable[[TrainingSet, FeatureSchema | None], Cost]

COSTS: dict[str, CostFactory] = {}


def register_cost(name: str, factory: CostFactory) -> None:
    """Make a cost known by name; ``factory(train, schema)`` gives it, and its own ``name`` must be the same."""
    if name in COSTS:
        raise OptionError(f"Expected a new name for a cost, got {name!r}, which is taken; choose another.")
    COSTS[name] = factory


def cost_named(cost: Any, train: TrainingSet, schema: FeatureSchema | None) -> Cost:
    """The cost called so, a price table over the training rows' columns, or a cost as it is."""
    if isinstance(cost, CostTable):
        return cost.of_schema(schema or FeatureSchema.free(train.columns), np.asarray(train.spread))
    if isinstance(cost, Cost):
        return _checked(cost, len(train.columns))
    if not isinstance(cost, str) or cost not in COSTS:
        raise OptionError(f"Expected cost to be one of {', '.join(COSTS)} or a CostTable, got {cost!r}.")
    made = _checked(COSTS[cost](train, schema), len(train.columns))
    if made.name != cost:  # files and results know it by its own name
        raise OptionError(f"Expected a cost named {cost!r}, got one named {made.name!r}; register it by that.")
    return made


def _checked(cost: Cost, columns: int) -> Cost:
    """The cost, if it has a length for each of so many columns."""
    if np.shape(cost.scale) != (columns,):
        raise OptionError(
            f"Expected the cost {cost.name!r} to have a scale for each of {columns} columns, got shape "
            f"{np.shape(cost.scale)}; make it for these columns."
        )
    if not (np.isfinite(cost.scale) & (np.asarray(cost.scale) > 0)).all():
        raise OptionError(f"Expected the cost {cost.name!r} to have finite scales above 0, got {cost.scale!r}.")
    return cost


def _norm(norm: Norm, train: TrainingSet, schema: FeatureSchema | None) -> NormCost:
    return NormCost(norm, np.asarray(train.spread) / _Columns(train, schema).weights)


def _mad(train: TrainingSet, schema: FeatureSchema | None) -> NormCost:
    columns = _Columns(train, schema)
    deviation = np.array([_median_deviation(train.X[:, place]) for place in range(len(train.columns))])
    # Where more than half of the rows agree the median deviation is 0 and says nothing; the standard one does.
    deviation = np.where(deviation > 0, deviation, np.asarray(train.spread))
    lengths = np.where(columns.answers, columns.unit, deviation) / columns.weights
    return NormCost(Norm.L1, lengths, "mad", columns.open_groups)


def _median_deviation(column: Array) -> float:
    return float(np.median(np.abs(column - np.median(column))))


def _percentile(train: TrainingSet, schema: FeatureSchema | None) -> PercentileCost:
    columns, spread = _Columns(train, schema), np.asarray(train.spread)
    weights, answers = columns.weights, columns.answers
    curves = tuple(
        None if answer else percentiles(train.X[:, place], weights[place], spread[place])
        for place, answer in enumerate(answers)
    )
    halves = np.where(answers, weights / columns.unit, 0.0)
    return PercentileCost(spread / weights, curves, halves, columns.open_groups)


class _Columns:
    """What costs ask about d columns: weights, which are answers or categories, and how many move in a change of one.

    Without a schema, a column of zeros and ones is a question.
    """

    def __init__(self, train: TrainingSet, schema: FeatureSchema | None) -> None:
        kinds = np.where(are_answers(train.X), Kind.BINARY, Kind.CONTINUOUS)
        plain = (Feature(name, Kind(str(kind))) for name, kind in zip(train.columns, kinds, strict=True))
        features = tuple(plain) if schema is None else schema.column_features
        self.weights: Array = np.array([feature.weight for feature in features])
        self.answers = np.array([feature.kind in (Kind.BINARY, Kind.CATEGORICAL) for feature in features])
        pairs = [feature.kind is Kind.CATEGORICAL or feature.group is not None for feature in features]
        self.unit: Array = np.where(pairs, 2.0, 1.0)
        attributes = () if schema is None else schema.attributes
        self.open_groups: tuple[OpenGroup, ...] = tuple(
            (a.places, float(self.weights[list(a.places)].mean())) for a in attributes if not a.complete
        )


register_cost("l2", partial(_norm, Norm.L2))
register_cost("l1", partial(_norm, Norm.L1))
register_cost("mad", _mad)
register_cost("percentile", _percentile)
