"""Ranges that hold: a box around an answer in which every point keeps the rules, the model and the promise.

Two reasons widen a number to a range. Inside a bin nothing changes: every value of it has the same design row, so that
whatever was checked at one was checked at all. And where moving on in the direction of the change lowers no score of a
model that the promise speaks of by more than the answer has to spare, whoever does more than asked is still accepted
(:mod:`rocerf.recourse.ranges_onwards`). All the same the user's own pipeline is asked about the values inside
(:mod:`rocerf.recourse.ranges_asked`), the corners go through the gate, and a box of which anything fails is given up.
What the gate learns of one box may tell against another: ranges are found again until they stay.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from decimal import ROUND_CEILING, ROUND_FLOOR, Context, Decimal
from itertools import product
from math import floor, log10

import numpy as np

from rocerf.data.feature import Kind
from rocerf.data.frames import Frames
from rocerf.data.schema import FeatureSchema
from rocerf.models.model import ExactModel, LinearModel
from rocerf.recourse.asked import handed_out
from rocerf.recourse.gate import Gate
from rocerf.recourse.master.feasible_set import ROUNDING, FeasibleSet
from rocerf.recourse.ranges_asked import end_where_asked, far_from
from rocerf.recourse.ranges_onwards import Ends, widen_onwards
from rocerf.types import Array, Mask

#: Corners of a box that are looked at one by one; of larger boxes those where all numbers are at the same end.
MOST_CORNERS = 32

#: What is left of an answer's room above the margin, for rounding.
SPARE = 1e-5

#: Times that ranges are looked for until they stay; those that still change are then given up.
ROUNDS = 4

_EXACT = Context(prec=400)


@dataclass(frozen=True, eq=False)
class Ranges:
    """Boxes ``low <= x <= high`` around points, (P, d) each, ends possibly infinite; equal where there is no range."""

    low: Array
    high: Array

    @property
    def wide(self) -> Mask:
        """Columns with more than one value, (P, d)."""
        return np.asarray(self.high > self.low)


def ranges_around(
    gate: Gate,
    points: Array,
    allowed: FeasibleSet,
    schema: FeatureSchema,
    missing: Sequence[Sequence[str]] | None = None,
    frames: Frames | None = None,
    *,
    overshoot: bool = False,
) -> Ranges:
    """Ranges around answers (P, d) that passed the gate, for the people of ``allowed``.

    Within bins; with ``overshoot`` also onwards in the direction of each change.
    """
    found = Ranges(points.copy(), points.copy())
    model = gate.model
    if not isinstance(model, ExactModel) or not len(points):
        return found
    for _ in range(ROUNDS):
        before, found = found, _ranges(gate, model, points, allowed, schema, missing, frames, overshoot)
        same = ((found.low == before.low) & (found.high == before.high)).all(axis=1)
        if same.all() or not overshoot:  # inside a bin nothing changes, whatever is learned
            return found
    return Ranges(np.where(same[:, None], found.low, points), np.where(same[:, None], found.high, points))


def _ranges(
    gate: Gate,
    model: ExactModel,
    points: Array,
    allowed: FeasibleSet,
    schema: FeatureSchema,
    missing: Sequence[Sequence[str]] | None,
    frames: Frames | None,
    overshoot: bool,
) -> Ranges:
    """The ranges by what is known of the promise now."""
    low, high = points.copy(), points.copy()
    least, most = np.minimum(allowed.lower, points), np.maximum(allowed.upper, points)
    numbers = np.array([f.kind in (Kind.CONTINUOUS, Kind.INTEGER) and not f.step for f in schema.column_features], bool)
    whole = np.array([feature.kind is Kind.INTEGER for feature in schema.column_features], bool)
    changed = (points != allowed.X0) & numbers
    _widen_to_bins(model, points, changed, low, high)
    spent = np.zeros(points.shape)
    if overshoot:
        room = np.nan_to_num(gate(points, allowed, missing, frames).margins, nan=gate.delta) - gate.delta - SPARE
        ends = Ends(low, high, least, most, whole, room, spent)
        widen_onwards(gate.promise, model, points, allowed.X0, changed, ends)
    np.clip(low, least, points, out=low)
    np.clip(high, points, most, out=high)
    wide = whole & (high > low)
    low, high = np.where(wide, np.ceil(low), low), np.where(wide, np.floor(high), high)
    fits = (low <= points) & (points <= high)
    low, high = np.where(fits, low, points), np.where(fits, high, points)
    end_where_asked(model, points, whole, far_from(model, points), spent, low, high)
    _keep_relations(points, allowed, low, high)
    for person in range(len(points)):
        one = np.array([person])
        without = None if missing is None else [missing[person]]
        if not _holds(gate, model, points[one], allowed.of(one), low[person], high[person], without, frames):
            low[person], high[person] = points[person], points[person]
    return Ranges(low, high)


def _widen_to_bins(model: LinearModel, points: Array, changed: Mask, low: Array, high: Array) -> None:
    if model.lift is None:
        return
    for column, pieces in model.lift.pieces.items():
        piece, people = pieces.piece_of(points[:, column]), changed[:, column] & (points[:, column] != pieces.fill)
        people &= pieces.flat[piece]
        people &= (pieces.reach(-1)[piece] <= points[:, column]) & (points[:, column] <= pieces.reach(1)[piece])
        low[people, column] = pieces.reach(-1)[piece][people]
        high[people, column] = pieces.reach(1)[piece][people]


def _keep_relations(points: Array, allowed: FeasibleSet, low: Array, high: Array) -> None:
    """Take back the ranges of columns in a relation that some point of the box would break."""
    rules = allowed.rules
    if rules is None:
        return
    for relation, limit in zip(rules.relations, rules.limits, strict=True):
        columns = np.flatnonzero(relation)
        ends = np.where(relation[columns] > 0, high[:, columns], low[:, columns])
        room = ROUNDING * (abs(limit) + np.abs(points[:, columns]) @ np.abs(relation[columns]))
        broken = ~(ends @ relation[columns] <= limit + room)
        wide = broken[:, None] & (high[:, columns] > low[:, columns])
        low[:, columns] = np.where(wide, points[:, columns], low[:, columns])
        high[:, columns] = np.where(wide, points[:, columns], high[:, columns])


def _holds(
    gate: Gate,
    model: ExactModel,
    point: Array,
    allowed: FeasibleSet,
    low: Array,
    high: Array,
    missing: Sequence[Sequence[str]] | None,
    frames: Frames | None,
) -> bool:
    """Whether the corners of one person's box keep everything; where all have the point's own design row, it does."""
    wide = np.flatnonzero(high > low)
    if not len(wide):
        return True
    far = far_from(model, point)[0]
    ends = np.stack([np.maximum(low, point[0] - far), np.minimum(high, point[0] + far)])
    few = 2 ** len(wide) <= MOST_CORNERS
    sides = np.array(list(product((0, 1), repeat=len(wide))) if few else [[side] * len(wide) for side in (0, 1)])
    corners = np.tile(point, (len(sides), 1))
    corners[:, wide] = ends[sides, wide]
    if allowed.rules is not None:  # an end far away need not be a whole number
        corners = np.where(allowed.rules.steps > 0, np.rint(corners), corners)
    same = allowed.of(np.zeros(len(corners), np.intp))
    if not same.holds(corners).all():
        return False
    everybody = None if missing is None else list(missing) * len(corners)
    rows, own = handed_out(model, corners, same.X0, everybody), handed_out(model, point, allowed.X0, missing)
    if (model.own_design(rows)[0] == model.own_design(own)[0]).all():
        return True
    return bool(gate(corners, same, everybody, frames).passed.all())


def readable_range(low: float, high: float, point: float) -> tuple[float, float]:
    """A range with ends that people can read, inside the range given, and with the point inside.

    >>> readable_range(11.0000001, 23.9999999, 12.0), readable_range(-np.inf, 7.123456, 7.0)
    ((12.0, 23.0), (-inf, 7.12))
    """
    ends = [end for end in (low, high) if np.isfinite(end)]
    width = high - low if len(ends) == 2 else abs(ends[0] - point) or abs(ends[0]) if ends else 1.0
    grid = Decimal(1).scaleb(floor(log10(width)) - 2 + 1) if width > 0 else Decimal(1)
    if np.isfinite(low) and not float(low).is_integer():
        low = float(Decimal(repr(float(low))).quantize(grid, ROUND_CEILING, _EXACT))
    if np.isfinite(high) and not float(high).is_integer():
        high = float(Decimal(repr(float(high))).quantize(grid, ROUND_FLOOR, _EXACT))
    return min(low, point), max(high, point)
