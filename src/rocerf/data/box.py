"""The box that a schema allows around each person: bounds, directions, allowed categories and conditions in one."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

import numpy as np
from numpy.typing import NDArray

from rocerf.data.feature import Direction, Feature, Kind
from rocerf.data.rules import Condition
from rocerf.types import Array

if TYPE_CHECKING:
    from rocerf.data.schema import FeatureSchema


def box_around(schema: FeatureSchema, X0: Array, missing: Sequence[Sequence[str]] | None) -> tuple[Array, Array]:
    """Lower and upper ends (P, d), as :meth:`~rocerf.FeatureSchema.box` describes them."""
    features = schema.column_features
    bounds = [(0.0, 1.0) if f.kind is Kind.CATEGORICAL else (f.lower, f.upper) for f in features]
    lower, upper = np.broadcast_to(np.reshape(bounds, (-1, 2)).T[:, None], (2, *X0.shape)).copy()
    for feature, columns in schema.slices:
        if feature.kind is Kind.CATEGORICAL:
            upper[:, columns] = _destinations(feature, X0[:, columns])
        elif feature.direction is Direction.INCREASE:
            lower[:, columns] = np.maximum(lower[:, columns], X0[:, columns])
        elif feature.direction is Direction.DECREASE:
            upper[:, columns] = np.minimum(upper[:, columns], X0[:, columns])
        held = _held(schema, feature, X0)
        lower[held, columns] = upper[held, columns] = X0[held, columns]
    _close_group_changes(schema, X0, upper)
    if missing is not None:
        gone = np.array([[f.name in names and not f.categories for f in features] for names in missing], bool)
        outside = gone.reshape(X0.shape) & ((lower > X0) | (upper < X0))
        lower, upper = np.where(outside, X0, lower), np.where(outside, X0, upper)
    return lower, upper


def _destinations(feature: Feature, own: Array) -> Array:
    """1 for each category (P, c) that a person may have afterwards, the own one included."""
    order = np.arange(len(feature.categories))
    allowed = np.ones((len(order), len(order)))
    if feature.direction is Direction.INCREASE:
        allowed[order[:, None] > order] = 0.0
    elif feature.direction is Direction.DECREASE:
        allowed[order[:, None] < order] = 0.0
    if None in feature.categories:
        allowed[:, feature.categories.index(None)] = 0.0
    for before, after in (feature.changes or {}).items():
        allowed[feature.categories.index(before)] *= [value in after for value in feature.categories]
    np.fill_diagonal(allowed, 1.0)
    known = own.sum(axis=1) == 1
    return np.where(known[:, None], allowed[own.argmax(axis=1)], 1.0)


def _held(schema: FeatureSchema, feature: Feature, X0: Array) -> NDArray[np.bool_]:
    """Who cannot change this feature, shape (P,)."""
    if feature.fixed_if is None or feature.direction is Direction.FIXED:
        return np.full(len(X0), feature.direction is Direction.FIXED)
    condition = Condition.parsed(feature.fixed_if)
    return condition.holds(schema.values_of(condition.column, X0))


def _close_group_changes(schema: FeatureSchema, X0: Array, upper: Array) -> None:
    for group, changes in schema.group_changes.items():
        places = {f.name: place for place, f in enumerate(schema.column_features) if f.group == group}
        for before, after in changes.items():
            people = X0[:, places[before]] == 1
            for name, place in places.items():
                if name != before and name not in after:
                    upper[people, place] = np.minimum(upper[people, place], 0.0)
