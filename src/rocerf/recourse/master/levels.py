"""What one person can choose among where a model moves in steps: for each attribute a few levels.

Between two thresholds all values of a number are the same to every tree, so of each such interval the cheapest allowed
value stands for all. A category is a level of its attribute. Whatever the trees say, they say of a choice of levels.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from functools import cached_property

import numpy as np

from rocerf.recourse.costs.cost import Cost
from rocerf.recourse.master.feasible_set import ROUNDING, FeasibleSet, step_values
from rocerf.types import Array, Mask, Places


@dataclass(frozen=True, eq=False)
class Levels:
    """S levels of A attributes ("axes"), axis by axis, for one person.

    ``values`` (S, d) holds the person's own row with the columns of the level's axis moved to it; ``low`` and ``high``
    (S, d) are the ends of the interval that the level stands for, own values elsewhere. ``parts`` (S,) are what moves
    add to the cost. ``starts`` (A,) is where each axis begins, ``axis`` (S,) whose level it is, ``place`` (A,) the
    number of the attribute among those of the rules, ``columns`` (d,) the axis of each column.
    """

    x0: Array
    values: Array
    low: Array
    high: Array
    parts: Array
    starts: Places
    axis: Places
    place: Places
    columns: Places

    @classmethod
    def of(
        cls, allowed: FeasibleSet, cost: Cost, thresholds: list[Array], gaps: Mapping[int, float] | None = None
    ) -> Levels | None:
        """Of one person's allowed set; None where an attribute has no allowed value. ``thresholds`` are by column.

        ``gaps`` are numbers that stand for missing ones: nobody is sent there.
        """
        gaps = gaps or {}
        x0, rules = allowed.X0[0], allowed.rules
        axes: list[tuple[tuple[int, ...], tuple[Array, Array, Array]]] = []
        if rules is None or not rules.attributes:
            axes = [((j,), _of_number(allowed, j, thresholds[j], gaps.get(j))) for j in range(len(x0))]
        else:
            for attribute in rules.attributes:
                if attribute.categories is None:
                    j = attribute.places[0]
                    axes.append(((j,), _of_number(allowed, j, thresholds[j], gaps.get(j))))
                else:
                    may_be_none = not allowed.complete(attribute)[0]
                    axes.append((attribute.places, _of_categories(allowed, attribute.places, may_be_none)))
        if any(not len(found[0]) for _, found in axes):
            return None
        return cls._joined(x0, cost, axes)

    @classmethod
    def _joined(cls, x0: Array, cost: Cost, axes: list[tuple[tuple[int, ...], tuple[Array, Array, Array]]]) -> Levels:
        sizes = np.array([len(found[0]) for _, found in axes], np.intp)
        starts, total = np.cumsum(sizes) - sizes, int(sizes.sum())
        values, low, high = table = np.tile(x0, (3, total, 1))
        parts, columns = np.zeros(total), np.zeros(len(x0), np.intp)
        for number, ((places, found), first, size) in enumerate(zip(axes, starts, sizes, strict=True)):
            own, at = slice(first, first + size), list(places)
            columns[at] = number
            for kind in range(3):
                table[kind, first : first + size, at] = found[kind].T
            moved = np.tile(x0, (size, 1))
            moved[:, at] = found[0]
            base = np.broadcast_to(x0, moved.shape)
            parts[own] = cost.parts((moved - base) / cost.scale, base)[:, at].sum(axis=1)
        axis = np.repeat(np.arange(len(axes)), sizes)
        return cls(x0, values, low, high, parts, starts, axis, np.arange(len(axes)), columns)

    def __len__(self) -> int:
        return len(self.parts)

    @cached_property
    def inside(self) -> Mask:
        """Whether a level is about a column, (d, S)."""
        return np.asarray(self.columns[:, None] == self.axis[None, :])

    @cached_property
    def own(self) -> Mask:
        """Levels at which nothing changes, (S,)."""
        return np.asarray((self.values == self.x0).all(axis=1))

    def only(self, kept: Mask) -> Levels:
        """Some of the levels (S,), at least one for each axis."""
        axis = self.axis[kept]
        starts = np.searchsorted(axis, np.arange(len(self.starts)))
        table = (self.values[kept], self.low[kept], self.high[kept])
        return Levels(self.x0, *table, self.parts[kept], starts, axis, self.place, self.columns)

    def cheapest(self, chosen: Mask) -> Places:
        """The cheapest level of each axis among those chosen (S,); (A,)."""
        parts = np.where(chosen, self.parts, np.inf)
        order = np.lexsort((parts, self.axis))
        return np.asarray(order[self.starts])

    def points(self, levels: Places) -> Array:
        """The points (m, d) of choices of one level for each axis, (m, A)."""
        columns = np.arange(len(self.columns))
        return np.asarray(self.values[levels[:, self.columns], columns])

    def box(self, levels: Places) -> tuple[Array, Array]:
        """The ends (d,) of what a choice of levels (A,) stands for."""
        columns = np.arange(len(self.columns))
        return self.low[levels[self.columns], columns], self.high[levels[self.columns], columns]

    def around(self, finer: Levels) -> Places:
        """For each of other levels of the same axes the one here that it lies in, -1 where there is none; (S',)."""
        found = np.full(len(finer), -1, np.intp)
        for axis, first in enumerate(self.starts):
            at, theirs = np.flatnonzero(self.columns == axis), np.flatnonzero(finer.axis == axis)
            mine = slice(first, first + int((self.axis == axis).sum()))
            above = (finer.low[np.ix_(theirs, at)][:, None] >= self.low[None, mine, at]).all(axis=2)
            below = (finer.high[np.ix_(theirs, at)][:, None] <= self.high[None, mine, at]).all(axis=2)
            inside: Mask = np.logical_and(above, below)
            found[theirs] = np.where(inside.any(axis=1), first + inside.argmax(axis=1), -1)
        return found

    def nearest(self, X: Array) -> Places:
        """For each of some rows (m, d) the level of each axis that it falls into, or the nearest one; (m, A)."""
        found = np.empty((len(X), len(self.starts)), np.intp)
        ends = np.append(self.starts[1:], len(self))
        for number, (first, last) in enumerate(zip(self.starts, ends, strict=True)):
            at = np.flatnonzero(self.columns == number)
            values = X[:, None, at]
            outside = np.maximum(self.low[None, first:last, at] - values, values - self.high[None, first:last, at])
            found[:, number] = first + np.maximum(outside, 0.0).sum(axis=2).argmin(axis=1)
        return found


def _of_number(allowed: FeasibleSet, j: int, thresholds: Array, gap: float | None = None) -> tuple[Array, Array, Array]:
    """Values, lower and upper ends of a number's levels, each (s, 1)."""
    lower, upper, own = float(allowed.lower[0, j]), float(allowed.upper[0, j]), float(allowed.X0[0, j])
    if lower > upper:
        return (np.empty((0, 1)),) * 3
    cuts = thresholds[(thresholds >= lower) & (thresholds < upper)]
    low, high = np.concatenate([[lower], np.nextafter(cuts, np.inf)]), np.concatenate([cuts, [upper]])
    values = np.clip(own, low, high)
    if allowed.stepped[0, j]:
        values, kept = _on_steps(allowed, j, low, high)
        low, high, values = low[kept], high[kept], values[kept]
    if gap is not None and own != gap:
        kept = (low != gap) | (high != gap)
        low, high, values = low[kept], high[kept], values[kept]
    return values[:, None], low[:, None], high[:, None]


def _on_steps(allowed: FeasibleSet, j: int, low: Array, high: Array) -> tuple[Array, Mask]:
    """The allowed value next to the person's own in each interval, and whether there is one; (s,) each."""
    assert allowed.rules is not None
    own, step, start = float(allowed.X0[0, j]), float(allowed.rules.spacing[j]), float(allowed.anchors[0, j])
    least, most = np.ceil((low - start) / step - ROUNDING), np.floor((high - start) / step + ROUNDING)
    # Rounding may take a step that is just beyond a threshold: it must be inside.
    bounds = allowed.lower[0, j], allowed.upper[0, j]
    least = np.where((step_values(start, step, least) < low) & (low > bounds[0]), least + 1.0, least)
    most = np.where((step_values(start, step, most) > high) & (high < bounds[1]), most - 1.0, most)
    place = np.clip(np.rint((own - start) / step), least, np.maximum(most, least))
    values = np.clip(step_values(start, step, place), *bounds)
    values = np.where(np.abs(values - own) <= ROUNDING * step, own, values)
    stays = (low <= own) & (own <= high)
    return np.where(stays, own, values), np.asarray(stays | (most >= least))


def _of_categories(allowed: FeasibleSet, places: tuple[int, ...], may_be_none: bool) -> tuple[Array, Array, Array]:
    """One row for each category that may be chosen, and one for none where that may be; (s, places)."""
    at = list(places)
    rows = np.eye(len(at))
    if may_be_none:
        rows = np.vstack([rows, np.zeros(len(at))])
    fits = ((rows >= allowed.lower[0, at]) & (rows <= allowed.upper[0, at])).all(axis=1)
    return (rows[fits],) * 3
