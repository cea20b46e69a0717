"""Says in words which rules of a schema a point breaks, and lists all points that break none.

Written from what the documentation of ``Feature`` and ``FeatureSchema`` says, in plain loops over features. It shares
nothing with the solvers: it imports nothing of them, and of the schema it reads only what its author wrote (the fields
of its features, relations, changes of groups, open groups).

How the documentation is read where it leaves room:

* Nobody may stay outside the bounds, except in what cannot change ("a person there is sent inside"). Who stands
  between whole numbers may stay there (a number that is filled in for a missing one need not be whole), or go to whole
  ones; steps then count from the nearest.
* Who has a category of an open group whose changes are listed may go to the reference category only if None is among
  them.
"""

from __future__ import annotations

import itertools
import re
from collections.abc import Collection, Iterator, Sequence
from typing import Any

import numpy as np

from rocerf.data.schema import Feature, FeatureSchema

#: Shares by which rounding may miss a multiple of a step and a sum.
STEP_ROUNDING, SUM_ROUNDING = 1e-9, 2e-9


class TooManyPointsError(Exception):
    """There are more points than somebody wanted to look at."""


class Point:
    """A point of schema space as a person reads it: a number or a category for each feature."""

    def __init__(self, schema: FeatureSchema, x: Sequence[float]) -> None:
        self.numbers: dict[str, float] = {}
        self.codes: dict[str, list[float]] = {}
        self.columns: dict[str, float] = {}
        values = [float(value) for value in x]
        for feature in schema.features:
            if feature.kind == "categorical":
                code = [values.pop(0) for _ in feature.categories]
                self.codes[feature.name] = code
                for category, value in zip(feature.categories, code, strict=True):
                    self.columns[f"{feature.name}={'missing' if category is None else category}"] = value
            else:
                self.numbers[feature.name] = self.columns[feature.name] = values.pop(0)
        assert not values, "the point has more columns than the schema"

    def category(self, feature: Feature) -> Any:
        """The category whose column is 1; an error where there is none."""
        (place,) = [place for place, value in enumerate(self.codes[feature.name]) if value == 1.0]
        return feature.categories[place]


def attributes(schema: FeatureSchema) -> dict[str, list[Feature]]:
    """What a person thinks of as one thing: a feature, or the columns of a group under the group's name."""
    found: dict[str, list[Feature]] = {}
    for feature in schema.features:
        found.setdefault(feature.group or feature.name, []).append(feature)
    return found


def columns_of(schema: FeatureSchema) -> dict[str, list[int]]:
    """The places in schema space of each attribute."""
    found: dict[str, list[int]] = {}
    place = 0
    for feature in schema.features:
        width = len(feature.categories) or 1
        found.setdefault(feature.group or feature.name, []).extend(range(place, place + width))
        place += width
    return found


def changed(schema: FeatureSchema, x0: Sequence[float], x: Sequence[float]) -> set[str]:
    """Names of the attributes in which two points differ."""
    return {name for name, places in columns_of(schema).items() if any(x[j] != x0[j] for j in places)}


def condition_holds(schema: FeatureSchema, person: Point, text: str) -> bool:
    """Whether "feature operator value" holds for a person; text is compared as text, numbers as numbers."""
    match = re.fullmatch(r"\s*(?:`([^`]*)`|([^<>=!`]*?))\s*(<=|>=|==|!=|=|<|>)\s*(.*?)\s*", text)
    assert match is not None, text
    name, sign, wanted = match[1] or match[2], match[3], match[4].strip("`'\"")
    (feature,) = [feature for feature in schema.features if feature.name == name]
    own: Any = person.category(feature) if feature.kind == "categorical" else person.numbers[name]
    try:
        right = float(wanted)
    except ValueError:
        return bool((str(own) == wanted) == (sign != "!="))
    try:
        left = float(own)
    except (TypeError, ValueError):
        return sign == "!="
    answers = {"<": left < right, "<=": left <= right, ">": left > right, ">=": left >= right, "!=": left != right}
    return answers.get(sign, left == right)


def is_held(schema: FeatureSchema, person: Point, feature: Feature) -> bool:
    """Whether the person cannot change this feature."""
    if feature.direction == "fixed":
        return True
    return feature.fixed_if is not None and condition_holds(schema, person, feature.fixed_if)


def broken_rules(
    schema: FeatureSchema,
    x0: Sequence[float],
    x: Sequence[float],
    *,
    max_changes: int | None = None,
    excluded: Collection[Collection[str]] = (),
) -> list[str]:
    """Every rule that going from x0 to x breaks; ``excluded`` holds sets of attributes, not all of which may change."""
    person, point = Point(schema, x0), Point(schema, x)
    said = [words for name in attributes(schema) for words in _broken_by_attribute(schema, name, person, point)]
    return said + _broken_by_all(schema, person, point, changed(schema, x0, x), max_changes, excluded)


def _broken_by_attribute(schema: FeatureSchema, name: str, person: Point, point: Point) -> Iterator[str]:
    features = attributes(schema)[name]
    for feature in features:
        if feature.kind == "categorical":
            yield from _broken_by_category(schema, feature, person, point)
        else:
            yield from _broken_by_number(schema, feature, person, point)
    if features[0].group is not None:
        yield from _broken_by_group(schema, features, person, point)


def _broken_by_number(schema: FeatureSchema, feature: Feature, person: Point, point: Point) -> Iterator[str]:
    name, own, new = feature.name, person.numbers[feature.name], point.numbers[feature.name]
    if not np.isfinite(new):
        yield f"{name} is no number"
        return
    if is_held(schema, person, feature):
        if new != own:
            yield f"{name} cannot change, but went from {own} to {new}"
        return
    if not feature.lower <= new <= feature.upper:
        yield f"{name} is {new}, outside {feature.lower} to {feature.upper}"
    if feature.kind == "binary" and new not in (0.0, 1.0, own):
        yield f"{name} is {new}, neither 0 nor 1"
    if feature.kind == "integer" and new not in (round(new), own):
        yield f"{name} is {new}, no whole number"
    if feature.step is not None and new != own:
        steps = (new - _start(feature, own)) / feature.step
        if abs(steps - round(steps)) > STEP_ROUNDING * (1 + abs(steps) + abs(own / feature.step)):
            yield f"{name} went from {own} to {new}, which is no multiple of {feature.step}"
    if feature.direction == "increase" and new < own:
        yield f"{name} may only rise, but went from {own} to {new}"
    if feature.direction == "decrease" and new > own:
        yield f"{name} may only fall, but went from {own} to {new}"


def _start(feature: Feature, own: float) -> float:
    """Where the values of a feature count from."""
    if feature.step is None:
        return 0.0
    return float(round(own)) if feature.kind == "integer" else own


def _broken_by_category(schema: FeatureSchema, feature: Feature, person: Point, point: Point) -> Iterator[str]:
    name, code = feature.name, point.codes[feature.name]
    if sorted(code) != [0.0] * (len(code) - 1) + [1.0]:
        yield f"{name} is {code}, not one category"
        return
    own, new = person.category(feature), point.category(feature)
    if own == new:
        return
    if is_held(schema, person, feature):
        yield f"{name} cannot change, but went from {own} to {new}"
    if new is None:
        yield f"{name} went from {own} to missing"
    order = list(feature.categories)
    if feature.direction == "increase" and order.index(new) < order.index(own):
        yield f"{name} may only go up, but went from {own} to {new}"
    if feature.direction == "decrease" and order.index(new) > order.index(own):
        yield f"{name} may only go down, but went from {own} to {new}"
    if feature.changes is not None and own in feature.changes and new not in feature.changes[own]:
        yield f"{name} may not go from {own} to {new}"


def _broken_by_group(schema: FeatureSchema, features: Sequence[Feature], person: Point, point: Point) -> Iterator[str]:
    group = features[0].group
    assert group is not None
    before = [feature.name for feature in features if person.numbers[feature.name] == 1.0]
    after = [feature.name for feature in features if point.numbers[feature.name] == 1.0]
    if len(after) > 1 or (not after and group not in schema.open_groups):
        yield f"{group} has {len(after)} categories"
    listed = schema.group_changes.get(group, {})
    for name in before:
        goals: set[str | None] = set(after) or {None}
        if name in listed and after != [name] and not goals & set(listed[name]):
            yield f"{group} may not go from {name} to {after or 'its reference'}"


def _broken_by_all(
    schema: FeatureSchema,
    person: Point,
    point: Point,
    moved: set[str],
    max_changes: int | None,
    excluded: Collection[Collection[str]],
) -> list[str]:
    said = []
    for relation in schema.relations:
        parts = [coefficient * point.columns[name] for name, coefficient in relation.coefficients.items()]
        # Relative to what is added up, here or where the person came from: a size that is small in one unit is not in
        # another.
        before = [coefficient * person.columns[name] for name, coefficient in relation.coefficients.items()]
        size = abs(relation.upper) + sum(max(abs(new), abs(old)) for new, old in zip(parts, before, strict=True))
        if sum(parts) > relation.upper + SUM_ROUNDING * size:
            said.append(f"the relation {relation.words!r} is broken: {sum(parts)} > {relation.upper}")
    if max_changes is not None and len(moved) > max_changes:
        said.append(f"{len(moved)} attributes change, at most {max_changes} may")
    said += [f"all of {sorted(group)} change" for group in excluded if set(group) <= moved]
    return said


def allowed_points(
    schema: FeatureSchema,
    x0: Sequence[float],
    *,
    max_changes: int | None = None,
    excluded: Collection[Collection[str]] = (),
    most: int = 100_000,
) -> Iterator[tuple[float, ...]]:
    """All points that break no rule, for a schema in which no number is free to take any value."""
    names = list(attributes(schema))
    person = Point(schema, x0)
    places = columns_of(schema)
    choices = []
    for name in names:
        possible = []
        for values in _values(schema, name, x0):
            x = [float(value) for value in x0]
            for place, value in zip(places[name], values, strict=True):
                x[place] = value
            if not list(_broken_by_attribute(schema, name, person, Point(schema, x))):
                possible.append(values)
        choices.append(possible)
    if np.prod([float(len(values)) for values in choices]) > most:
        raise TooManyPointsError(f"more than {most}")
    for chosen in itertools.product(*choices):
        x = [0.0] * len(x0)
        for name, values in zip(names, chosen, strict=True):
            for place, value in zip(places[name], values, strict=True):
                x[place] = value
        if not _broken_by_all(schema, person, Point(schema, x), changed(schema, x0, x), max_changes, excluded):
            yield tuple(x)


def _values(schema: FeatureSchema, name: str, x0: Sequence[float]) -> Iterator[tuple[float, ...]]:
    """Whatever an attribute could be, allowed or not."""
    features = attributes(schema)[name]
    places = columns_of(schema)[name]
    own = tuple(float(x0[place]) for place in places)
    yield own
    if len(places) > 1 or features[0].kind in ("binary", "categorical"):
        codes = [tuple(float(j == i) for j in range(len(places))) for i in range(len(places))]
        codes.append((0.0,) * len(places))
        yield from (code for code in codes if code != own)
        return
    feature = features[0]
    step, start = feature.step or 1.0, _start(feature, own[0])
    free = feature.kind == "continuous" and feature.step is None
    if free and is_held(schema, Point(schema, x0), feature):
        return
    assert not free, f"{name} has too many values to look at them all"
    first = int(np.floor((feature.lower - start) / step)) - 1
    last = int(np.ceil((feature.upper - start) / step)) + 1
    assert last - first < 10_000, f"{name} has no bounds"
    for count in range(first, last + 1):
        value = start + count * step
        # A bound that is a multiple of the step but for rounding is one.
        for bound in (feature.lower, feature.upper):
            if abs(value - bound) <= STEP_ROUNDING * step:
                value = bound
        if value != own[0]:
            yield (value,)
