"""Where a person may go: a box around each of them in schema space, and the rules inside it."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from decimal import Decimal
from functools import cached_property, lru_cache

import numpy as np

from rocerf.data.schema import Attribute, FeatureSchema, Kind
from rocerf.types import Array, Mask, Places

#: A relation may be missed by this much, relative to the size of its terms: the rounding of a sum.
ROUNDING = 1e-9


@lru_cache(maxsize=2**16)
def step_value(anchor: float, step: float, count: int) -> float:
    """So many steps from an anchor, in decimals, as people count.

    A bin may begin at 0.3, and the number beside it is of another bin.

    >>> step_value(0.1, 0.1, 2), 0.1 + 2 * 0.1
    (0.3, 0.30000000000000004)
    """
    if anchor.is_integer() and step.is_integer():
        return anchor + step * count
    return float(Decimal(repr(anchor)) + count * Decimal(repr(step)))


def step_values(anchors: Array | float, steps: Array | float, counts: Array) -> Array:
    """:func:`step_value` of arrays; infinite where the count is."""
    found = np.asarray(anchors + steps * counts, np.float64)
    parts = np.broadcast_arrays(anchors, steps, counts)
    for place in zip(*np.nonzero(np.isfinite(found)), strict=True):
        anchor, step, count = (part[place] for part in parts)
        found[place] = step_value(float(anchor), float(step), int(count))
    return found


@dataclass(frozen=True, eq=False)
class Rules:
    """Rules that are no bounds, the same for everybody.

    ``steps`` (d,) is the distance between allowed values of a column, 0 where all are; it counts from the person's own
    value where ``from_own`` (d,), else from 0. ``relations`` (r, d) and ``limits`` (r,) mean ``relations x <= limits``.
    At most ``most_changes`` attributes may change. An own value between the steps of its column is allowed too: what a
    model fills in for a missing whole number need not be one, and nobody must change what they did not give.
    ``closed`` (d,), NaN where there is none, are numbers that stand for missing ones: nobody is moved there.
    """

    steps: Array
    from_own: Mask
    attributes: tuple[Attribute, ...]
    relations: Array
    limits: Array
    most_changes: int | None = None
    whole: Mask | None = None  # columns of whole numbers (d,), whose steps never count from a fraction
    closed: Array | None = None

    @classmethod
    def of(
        cls, schema: FeatureSchema, most_changes: int | None = None, closed: Mapping[str, float] | None = None
    ) -> Rules:
        """The rules of a schema, with numbers by feature that stand for missing ones."""
        whole = np.array([feature.kind is Kind.INTEGER for feature in schema.column_features], bool)
        numbers = np.array([(closed or {}).get(feature.name, np.nan) for feature in schema.column_features])
        rules = cls(*schema.steps, schema.attributes, *schema.relation_rows, most_changes, whole)
        return replace(rules, closed=numbers) if closed else rules

    def shut(self, X: Array, X0: Array) -> Mask:
        """Where people at X0 would be moved to a number that stands for a missing one, both (P, d)."""
        return np.zeros(X.shape, bool) if self.closed is None else np.asarray((self.closed == X) & (X != X0))

    @cached_property
    def spacing(self) -> Array:
        """The steps, 1 where there are none, (d,)."""
        return np.where(self.steps > 0, self.steps, 1.0)

    def room(self, X: Array, X0: Array) -> Array:
        """By how much rounding may miss each relation on the way from X0 to X, both (P, d); (P, r).

        Relative to what is added up: there is no size that is small in every unit.
        """
        terms = np.maximum(np.abs(X), np.abs(X0)) @ np.abs(self.relations).T
        return np.asarray(ROUNDING * (np.abs(self.limits) + terms))

    def half_spaces(self, X0: Array, scale: Array) -> tuple[Array, Array]:
        """The relations as ``normals u >= offsets`` for steps ``u = (x - X0) / scale``: (r, d) and (P, r).

        In lengths of the row, so that tolerances mean the same in every unit.
        """
        normals = -self.relations * scale
        length = np.abs(normals).max(axis=1, initial=0.0)
        length = np.where(length > 0, length, 1.0)
        return normals / length[:, None], (X0 @ self.relations.T - self.limits) / length


@dataclass(frozen=True, eq=False)
class FeasibleSet:
    """Boxes ``lower <= x <= upper`` around people ``X0``, all (P, d), bounds possibly infinite, and rules inside them.

    ``excluded`` holds for each person sets of attributes (by place): at least one of each set must stay as it is.
    ``absent`` (P, d) marks numbers that a person did not give: steps do not count from what is filled in for them.
    """

    lower: Array
    upper: Array
    X0: Array
    rules: Rules | None = None
    excluded: tuple[tuple[frozenset[int], ...], ...] | None = None
    absent: Mask | None = None

    @classmethod
    def around(
        cls,
        X0: Array,
        schema: FeatureSchema | None,
        most_changes: int | None = None,
        missing: Sequence[Sequence[str]] | None = None,
        kept: Mapping[str, float] | None = None,
    ) -> FeasibleSet:
        """What the schema allows each person, who came without the features ``missing``; without one, everything.

        Of the features ``kept`` what is missing stays missing, and what is not stays off the number given for it, which
        stands for missing ones.
        """
        if schema is None and most_changes is None:
            return cls(np.full(X0.shape, -np.inf), np.full(X0.shape, np.inf), X0)
        schema = schema or FeatureSchema.free(f"x{place}" for place in range(X0.shape[1]))
        absent = None
        if missing is not None:
            gone = [[feature.name in lacking for feature in schema.column_features] for lacking in missing]
            absent = np.array(gone, bool).reshape(X0.shape)
        lower, upper = schema.box(X0, missing)
        if absent is not None and kept:
            stays = absent & np.array([feature.name in kept for feature in schema.column_features], bool)
            lower, upper = np.where(stays, X0, lower), np.where(stays, X0, upper)
        return cls(lower, upper, X0, Rules.of(schema, most_changes, kept), absent=absent)

    def of(self, people: Places) -> FeasibleSet:
        """The sets of these people."""
        excluded = None if self.excluded is None else tuple(self.excluded[person] for person in people)
        absent = None if self.absent is None else self.absent[people]
        return FeasibleSet(self.lower[people], self.upper[people], self.X0[people], self.rules, excluded, absent)

    def within(self, lower: Array, upper: Array) -> FeasibleSet:
        """The same sets inside further boxes (P, d)."""
        return replace(self, lower=np.maximum(self.lower, lower), upper=np.minimum(self.upper, upper))

    def affordable(self, up: Array, down: Array) -> FeasibleSet:
        """The same sets without moves whose price (P, d), up or down, is infinite."""
        return self.within(np.where(np.isinf(down), self.X0, -np.inf), np.where(np.isinf(up), self.X0, np.inf))

    def excluding(self, excluded: tuple[tuple[frozenset[int], ...], ...]) -> FeasibleSet:
        """The same sets without the changes of all attributes of each of these sets, besides those excluded before."""
        before = self.excluded or ((),) * len(excluded)
        return replace(self, excluded=tuple((*old, *new) for old, new in zip(before, excluded, strict=True)))

    def boxes(self) -> FeasibleSet:
        """The boxes alone, with the relations: what is left when every value in between is allowed."""
        if self.rules is None:
            return self
        free = replace(self.rules, steps=np.zeros_like(self.rules.steps), attributes=(), most_changes=None)
        return FeasibleSet(self.lower, self.upper, self.X0, free)

    @property
    def movable(self) -> Mask:
        """Columns in which each person has more than one value, (P, d)."""
        return np.asarray(self.lower < self.upper)

    @property
    def stepped(self) -> Mask:
        """Columns in which a person may move, but only in steps, (P, d)."""
        if self.rules is None:
            return np.zeros(self.lower.shape, bool)
        return np.asarray(self.movable & (self.rules.steps > 0))

    @property
    def mixed(self) -> Mask:
        """People for whom not every point of the box (and behind the relations) is allowed, (P,)."""
        if self.rules is None:
            return np.zeros(len(self.lower), bool)
        mixed = (self.movable if self.rules.most_changes is not None else self.stepped).any(axis=1)
        return np.asarray(mixed if self.excluded is None else mixed | np.array([bool(sets) for sets in self.excluded]))

    @property
    def anchors(self) -> Array:
        """Where the steps of each column count from, (P, d)."""
        if self.rules is None:
            return np.zeros(self.X0.shape)
        start = self.X0 if self.rules.whole is None else np.where(self.rules.whole, np.rint(self.X0), self.X0)
        own = self.rules.from_own if self.absent is None else self.rules.from_own & ~self.absent
        return np.where(own, start, 0.0)

    @property
    def _ends(self) -> tuple[Array, Array]:
        """The first and last step inside the boxes, counted from the anchors, two arrays (P, d)."""
        steps = np.ones(self.X0.shape[1]) if self.rules is None else self.rules.spacing
        least = np.ceil((self.lower - self.anchors) / steps - ROUNDING)
        return least, np.floor((self.upper - self.anchors) / steps + ROUNDING)

    @property
    def loose(self) -> Mask:
        """Columns with steps in which a person stands between two of them, inside the box, (P, d)."""
        if self.rules is None:
            return np.zeros(self.X0.shape, bool)
        inside = (self.lower <= self.X0) & (self.upper >= self.X0)
        return np.asarray(self.stepped & ~self._on_steps(self.rules, self.X0) & inside)

    def _on_steps(self, rules: Rules, X: Array) -> Mask:
        """Which values of X (P, d) are whole numbers of steps from their anchors."""
        places = (X - self.anchors) / rules.spacing
        return np.asarray(np.abs(places - np.rint(places)) <= ROUNDING * (1 + np.abs(places)))

    def complete(self, attribute: Attribute) -> Mask:
        """Who must have one of the categories with a column, (P,); others may have the reference category."""
        return np.asarray((self.X0[:, list(attribute.tied)] == 1).any(axis=1) | attribute.complete)

    @property
    def empty(self) -> Mask:
        """People whose own values contradict the rules, shape (P,)."""
        empty = (self.lower > self.upper).any(axis=1)
        if self.rules is not None:
            least, most = self._ends
            empty = empty | (self.stepped & ~self.loose & (most < least)).any(axis=1)
        return np.asarray(empty)

    def clip(self, X: Array) -> Array:
        """The nearest points in the boxes."""
        return np.clip(X, self.lower, self.upper)

    def landed(self, X: Array) -> Array:
        """Points (P, d) moved to nearby ones on the steps, with one category each; other rules may still be broken."""
        rules = self.rules
        if rules is None:
            return self.clip(X)
        steps, (least, most) = rules.spacing, self._ends
        places = np.rint((X - self.anchors) / steps)
        on_steps = X.copy()
        moves = self.stepped & np.isfinite(X)
        whole = np.broadcast_to(steps, X.shape)[moves]
        on_steps[moves] = step_values(self.anchors[moves], whole, np.clip(places, least, most)[moves])
        stays = self.loose & ((most < least) | (np.abs(X - self.X0) <= np.abs(X - on_steps)))
        on_steps = np.where(stays | (np.abs(on_steps - self.X0) <= ROUNDING * steps), self.X0, on_steps)
        X = self.clip(np.where(self.stepped, on_steps, X))  # a last step may miss its bound by rounding
        X = np.where(rules.shut(X, self.X0), np.nextafter(X, self.X0), X)
        for attribute in rules.attributes:
            columns = list(attribute.places)
            if attribute.categories is not None:
                open_ = np.where(self.upper[:, columns] >= 1, X[:, columns], -np.inf)
                one = open_.argmax(axis=1)[:, None] == np.arange(len(columns))
                X[:, columns] = np.where(self.complete(attribute)[:, None], one, X[:, columns])
        return X

    def changed(self, X: Array) -> Mask:
        """Which attributes differ from the person's own values at X (P, d), shape (P, attributes)."""
        attributes = () if self.rules is None else self.rules.attributes
        differs = X != self.X0
        moved = [differs[:, list(attribute.places)].any(axis=1) for attribute in attributes]
        return np.array(moved, bool).reshape(len(attributes), len(X)).T

    def holds(self, X: Array) -> Mask:
        """Whether each point (P, d) obeys every rule, shape (P,)."""
        inside = (self.lower <= X).all(axis=1) & (self.upper >= X).all(axis=1)
        rules = self.rules
        if rules is None:
            return np.asarray(inside)
        inside &= (~self.stepped | self._on_steps(rules, X) | (X == self.X0)).all(axis=1)
        inside &= ~rules.shut(X, self.X0).any(axis=1)
        for attribute in rules.attributes:
            if attribute.categories is not None:
                total = X[:, list(attribute.places)].sum(axis=1)
                inside &= (total == 1) | ((total == 0) & ~self.complete(attribute))
        inside &= (rules.limits + rules.room(X, self.X0) >= X @ rules.relations.T).all(axis=1)
        if rules.most_changes is not None:
            inside &= self.changed(X).sum(axis=1) <= rules.most_changes
        if self.excluded is not None:
            pairs = zip(self.changed(X), self.excluded, strict=True)
            inside &= np.array([not any(row[list(group)].all() for group in groups) for row, groups in pairs], bool)
        return np.asarray(inside)
