"""The rows and columns of one person's mixed-integer program, and the call of HiGHS."""

from __future__ import annotations

from math import ceil, floor

import numpy as np
from scipy.sparse import csr_array

from rocerf.recourse.costs.cost import Cost, Norm
from rocerf.recourse.master.cells import Cell, Cells
from rocerf.recourse.master.feasible_set import ROUNDING, FeasibleSet, step_value
from rocerf.recourse.master.highs import minimised
from rocerf.types import Array, Places

#: A gap below this is the rounding of the bounds.
NO_GAP = 1e-6


class Program:
    """``min cost z  s.t.  rows z <= limits, equal z = values, lower <= z <= upper``, some entries of z whole.

    The first d entries of z are the columns: ``x_j = base_j + unit_j z_j``. Further entries are made as needed.
    """

    def __init__(self, x0: Array, cost: Cost, allowed: FeasibleSet, reach: float, cells: Cells | None = None) -> None:
        self.x0, self.cost, self.allowed, self.cells = x0, cost, allowed, cells
        d = len(x0)
        rules = allowed.rules
        low = np.maximum(allowed.lower[0], np.minimum(x0 - reach * cost.scale, allowed.upper[0]))
        high = np.minimum(allowed.upper[0], np.maximum(x0 + reach * cost.scale, allowed.lower[0]))
        steps = np.ones(d) if rules is None else rules.spacing
        loose = allowed.loose[0]
        least = np.ceil((low - allowed.anchors[0]) / steps - ROUNDING)
        most = np.floor((high - allowed.anchors[0]) / steps + ROUNDING)
        # Between two steps and none of them within reach: the person stays.
        low, high = (np.where(loose & (most < least), x0, end) for end in (low, high))
        movable = low < high
        self.stepped, self.loose = allowed.stepped[0] & ~loose, loose & movable
        self.continuous = movable & ~self.stepped & ~self.loose
        self.moving = self.stepped | self.loose | self.continuous
        self.base = np.where(self.stepped, allowed.anchors[0], x0)
        self.unit = np.where(self.stepped, steps, cost.scale)
        ends = (low - self.base) / self.unit, (high - self.base) / self.unit
        self.lower = [*np.where(self.stepped, np.ceil(ends[0] - ROUNDING), ends[0])]
        self.upper = [*np.where(self.stepped, np.floor(ends[1] + ROUNDING), ends[1])]
        # A column that cannot move is where it must be, exactly.
        self.fixed_value = np.where(movable, np.nan, low)
        for column in np.flatnonzero(~movable):
            self.lower[column] = self.upper[column] = float((low[column] - self.base[column]) / self.unit[column])
        self.whole = [bool(stepped) for stepped in self.stepped]
        self.objective = [0.0] * d
        self.constant = 0.0
        self.rows: list[tuple[dict[int, float], float]] = []
        self.equal: list[tuple[dict[int, float], float]] = []
        self.part: dict[int, int] = {}
        self._lines: set[tuple[int, float]] = set()
        self.gap, self.bound, self.failed = 0.0, 0.0, False
        self._chosen: dict[int, tuple[int, int]] = {}
        for column in np.flatnonzero(self.loose):
            self._loosen(int(column), float(steps[column]), float(least[column]), float(most[column]))
        #: For each column with pieces that moves: its cells, and the two variables of each.
        self._choices: dict[int, list[tuple[Cell, int, int | None]]] = {}
        if cells is not None:
            for j in cells.lift.pieces:
                if self.moving[j]:
                    self._choose(j, self._on_steps(j, cells.of(j, float(low[j]), float(high[j]))))
        self._rules()
        self._prices()

    def _new(self, lower: float, upper: float, price: float = 0.0, *, whole: bool = False) -> int:
        self.lower.append(lower)
        self.upper.append(upper)
        self.whole.append(whole)
        self.objective.append(price)
        return len(self.lower) - 1

    def _moving(self) -> Places:
        return np.flatnonzero(self.moving)

    def _loosen(self, j: int, step: float, least: float, most: float) -> None:
        """Column j is at the person's own value or ``least`` to ``most`` steps from its anchor."""
        start = float(self.allowed.anchors[0, j])
        away = (start - float(self.x0[j])) / step
        stays = self._new(0.0, 1.0, whole=True)
        count = self._new(min(least, 0.0), max(most, 0.0), whole=True)
        self.rows += [({count: 1.0, stays: most}, most), ({count: -1.0, stays: -least}, -least)]
        # In steps: x - own = (1 - stays) (anchor - own) + count.
        unit = float(self.unit[j]) / step
        self.equal.append(({j: unit, stays: away, count: -1.0}, away))
        ends = 0.0, away + least, away + most
        self.lower[j], self.upper[j] = min(ends) / unit, max(ends) / unit
        self._chosen[j] = stays, count

    def _on_steps(self, j: int, cells: list[Cell]) -> list[Cell]:
        """Cells of column j that end at its steps: one that lies beside a cell by a rounding error is not inside."""
        if not (self.stepped[j] or self.loose[j]):
            return cells
        start, step = float(self.allowed.anchors[0, j]), float(self.allowed.rules.spacing[j])  # type: ignore[union-attr]
        own, found = float(self.x0[j]), []
        for cell in cells:
            least, most = ceil((cell.low - start) / step - ROUNDING), floor((cell.high - start) / step + ROUNDING)
            least += step_value(start, step, least) < cell.low
            most -= step_value(start, step, most) > cell.high
            if least <= most and not cell.own:
                found.append(Cell(step_value(start, step, least), step_value(start, step, most)))
            if cell.low <= own <= cell.high and not (found and found[-1].low <= own <= found[-1].high):
                found.append(Cell(own, own, own=True))
        return found

    def _choose(self, j: int, cells: list[Cell]) -> None:
        """Column j lies in one of these cells: a 0/1 variable each, and how far inside it."""
        parts, which, one = {j: -1.0}, [], {}
        for cell in cells:
            here = self._new(0.0, 1.0, whole=True)
            inside = self._new(0.0, 1.0) if cell.high > cell.low else None
            parts[here] = float((cell.low - self.base[j]) / self.unit[j])
            one[here] = 1.0
            if inside is not None:
                parts[inside] = float((cell.high - cell.low) / self.unit[j])
                self.rows.append(({inside: 1.0, here: -1.0}, 0.0))
            which.append((cell, here, inside))
        self._choices[j] = which
        self.equal += [(parts, 0.0), (one, 1.0)]

    def _in_columns(self, row: Array) -> tuple[dict[int, float], float]:
        """``row x`` as coefficients of z and a constant."""
        moving = self._moving()
        still = np.setdiff1d(np.arange(len(row)), moving)
        constant = float(row[still] @ self.fixed_value[still] + row[moving] @ self.base[moving])
        return {int(j): float(row[j] * self.unit[j]) for j in moving if row[j] != 0.0}, constant

    def _at_most(self, row: Array, limit: float, more: dict[int, float] | None = None) -> None:
        """``row x + more z <= limit``, in lengths of the row so that tolerances mean the same everywhere."""
        coefficients, constant = self._in_columns(row)
        coefficients |= more or {}
        length = max((abs(value) for value in coefficients.values()), default=0.0)
        if length == 0.0:
            size = abs(limit) + float(np.abs(row[row != 0.0]) @ np.abs(self.fixed_value[row != 0.0]))
            if constant > limit + ROUNDING * size:
                self.rows.append(({}, -1.0))  # no point at all
            return
        self.rows.append(({j: value / length for j, value in coefficients.items()}, (limit - constant) / length))

    def add_cuts(self, slopes: Array, aims: Array) -> None:
        """``slopes x >= aims``, x lifted where there are cells."""
        if self.cells is None:
            for slope, aim in zip(slopes, aims, strict=True):
                self._at_most(-slope, -aim)
            return
        lift = self.cells.lift
        rows, aims = slopes @ lift.matrix, aims - slopes @ lift.shift
        more: list[dict[int, float]] = [{} for _ in slopes]
        for j, pieces in lift.pieces.items():
            weights = slopes[:, pieces.places]
            if j not in self._choices:
                aims = aims - (pieces(self.fixed_value[[j]]) @ weights.T)[0]
            for cell, here, inside in self._choices.get(j, ()):
                at_low, at_high = cell.lines(pieces, weights)
                for cut, (low, high) in enumerate(zip(at_low.tolist(), at_high.tolist(), strict=True)):
                    more[cut][here] = -low
                    if inside is not None and high != low:
                        more[cut][inside] = low - high
        for row, aim, further in zip(rows, aims, more, strict=True):
            self._at_most(-row, -aim, further)

    def chosen_cell(self, j: int, z: Array) -> Cell:
        """The cell that column j is in."""
        return max(self._choices[j], key=lambda choice: z[choice[1]])[0]

    def local(self, z: Array, slopes: Array) -> tuple[Array, Array, Array, Array]:
        """Cuts (m, D) as they are inside the cells chosen: slopes (m, d) and constants (m,) in x; ends of the cells."""
        lower, upper = np.full(len(self.x0), -np.inf), np.full(len(self.x0), np.inf)
        if self.cells is None:
            return slopes, np.zeros(len(slopes)), lower, upper
        lift = self.cells.lift
        rows, constants = slopes @ lift.matrix, slopes @ lift.shift
        for j, pieces in lift.pieces.items():
            weights = slopes[:, pieces.places]
            if j not in self._choices:
                constants = constants + (pieces(self.fixed_value[[j]]) @ weights.T)[0]
                continue
            cell = self.chosen_cell(j, z)
            at_low, at_high = cell.lines(pieces, weights)
            lower[j], upper[j] = cell.low, cell.high
            rows[:, j] = (at_high - at_low) / (cell.high - cell.low) if cell.high > cell.low else 0.0
            constants = constants + at_low - rows[:, j] * cell.low
        return rows, constants, lower, upper

    def _rules(self) -> None:
        rules = self.allowed.rules
        if rules is None:
            return
        for attribute in rules.attributes:
            if attribute.categories is not None:
                row = np.zeros(len(self.x0))
                row[list(attribute.places)] = 1.0
                coefficients, constant = self._in_columns(row)
                one = self.allowed.complete(attribute)[0]
                (self.equal if one else self.rows).append((coefficients, 1.0 - constant))
        for relation, limit in zip(rules.relations, rules.limits, strict=True):
            self._at_most(relation, limit)
        excluded = () if self.allowed.excluded is None else self.allowed.excluded[0]
        if rules.most_changes is None and not excluded:
            return
        switches = {place: self._switch(attribute.places) for place, attribute in enumerate(rules.attributes)}
        moving = {place: switch for place, switch in switches.items() if switch is not None}
        if rules.most_changes is not None:
            self.rows.append((dict.fromkeys(moving.values(), 1.0), float(rules.most_changes)))
        for group in excluded:
            if group <= set(moving):
                self.rows.append(({moving[place]: 1.0 for place in group}, float(len(group) - 1)))

    def _switch(self, places: tuple[int, ...]) -> int | None:
        """A 0/1 variable without which none of these columns leaves its own value."""
        own = (self.x0 - self.base) / self.unit
        columns = [j for j in places if self.moving[j]]
        must = any(self.fixed_value[j] != self.x0[j] for j in places if j not in columns)
        if not columns:
            return self._new(1.0, 1.0, whole=True) if must else None
        switch = self._new(1.0 if must else 0.0, 1.0, whole=True)
        for j in columns:
            farthest = max(self.upper[j] - own[j], 0.0), max(own[j] - self.lower[j], 0.0)
            self.rows.append(({j: 1.0, switch: -farthest[0]}, float(own[j])))
            self.rows.append(({j: -1.0, switch: -farthest[1]}, float(-own[j])))
        return switch

    def _prices(self) -> None:
        up, down = (np.where(np.isfinite(p[0]), p[0], 0.0) for p in self.cost.prices(self.x0[None]))
        least, most = (
            self._parts(np.where(self.moving, self.base + self.unit * np.array(ends[: len(self.x0)]), self.fixed_value))
            for ends in (self.lower, self.upper)
        )
        self.constant += float(least[~self.moving].sum())
        for j in self._moving():
            if self.lower[j] == self.upper[j]:  # one step inside the box is no choice
                self.constant += float(least[j])
            elif self.stepped[j] and self.upper[j] - self.lower[j] == 1.0:
                self.objective[j] = float(most[j] - least[j])
                self.constant += float(least[j]) - self.lower[j] * self.objective[j]
            elif self.cost.norm is not Norm.L1:
                self.part[int(j)] = self._new(0.0, np.inf, 1.0)
            elif self.cost.curve(int(j)) is not None:
                self._curve(int(j))
            else:
                own = float((self.x0[j] - self.base[j]) / self.unit[j])
                more = self._new(0.0, np.inf, float(up[j] * self.unit[j]))
                less = self._new(0.0, np.inf, float(down[j] * self.unit[j]))
                self.equal.append(({int(j): 1.0, more: -1.0, less: 1.0}, own))

    def _value(self, j: int, place: float) -> float:
        return float(self.base[j] + self.unit[j] * place)

    def _parts(self, values: Array) -> Array:
        """What values (d,) cost in each column: their parts of the sum; nothing where the price is infinite."""
        parts = self.cost.parts((values - self.x0)[None] / self.cost.scale, self.x0[None])[0]
        return np.where(np.isfinite(parts), parts, 0.0)

    def _curve(self, j: int) -> None:
        """The price by pieces, outwards from the person's own value, each filled only once those before it are full.

        Where prices rise from piece to piece that comes by itself; where they fall a 0/1 variable sees to it.
        """
        values, heights = self.cost.curve(j)  # type: ignore[misc]
        ends = self._value(j, self.lower[j]), self._value(j, self.upper[j])
        start = float(np.clip(self.x0[j], *ends))
        self.constant += float(abs(np.interp(start, values, heights) - np.interp(self.x0[j], values, heights)))
        parts = {j: 1.0}
        for sign, end in ((1.0, ends[1]), (-1.0, ends[0])):
            if end == start:
                continue
            low, high = min(start, end), max(start, end)
            between = values[(values > low) & (values < high)]
            if self.stepped[j] and self.upper[j] - self.lower[j] < len(between):
                steps = self.base[j] + self.unit[j] * np.arange(self.lower[j], self.upper[j] + 0.5)
                between = steps[(steps > low) & (steps < high)]
            knots = np.array([low, *between, high])[:: int(sign)]
            widths = np.abs(np.diff(knots)) / self.unit[j]
            prices = np.abs(np.diff(np.interp(knots, values, heights)))
            for share, width in zip(self._pieces(widths, prices), widths, strict=True):
                parts[share] = -sign * float(width)
        self.equal.append((parts, float((start - self.base[j]) / self.unit[j])))

    def _pieces(self, widths: Array, prices: Array) -> list[int]:
        """Variables from 0 to 1: how far each piece of these widths and prices is filled."""
        shares = [self._new(0.0, 1.0, float(price)) for price in prices]
        first, full = 0, -1
        for piece in range(len(shares) - 1):
            if prices[piece + 1] * widths[piece] < prices[piece] * widths[piece + 1]:  # the next unit costs less
                full = self._new(0.0, 1.0, whole=True)
                self.rows += [({full: 1.0, share: -1.0}, 0.0) for share in shares[first : piece + 1]]
                first = piece + 1
            if first:
                self.rows.append(({shares[piece + 1]: 1.0, full: -1.0}, 0.0))
        return shares

    def add_lines(self, steps: Array) -> None:
        """Lines below the part of each column, touching it at these steps (d,).

        Between two neighbouring whole values the chord through both is a better line, and still below at all of them.
        """
        unit, first = self.unit / self.cost.scale, (self.base - self.x0) / self.cost.scale
        place = first + unit * np.floor((steps - first) / unit + 0.5)
        ends = np.array([place - unit, place, place + unit, steps])
        own = np.broadcast_to(self.x0, ends.shape)
        before, here, after, touched = self.cost.parts(ends, own)
        slopes = self.cost.slopes(steps[None], own[:1])[0]
        for j in self.part:
            if self.stepped[j]:
                self._line(j, float((here[j] - before[j]) / unit[j]), float(place[j]), float(here[j]))
                self._line(j, float((after[j] - here[j]) / unit[j]), float(place[j]), float(here[j]))
            else:
                self._line(j, float(slopes[j]), float(steps[j]), float(touched[j]))

    def _line(self, j: int, slope: float, step: float, height: float) -> None:
        """``part >= height + slope (u - step)`` with ``u = (x_j - x0_j) / scale_j``."""
        if (j, slope) in self._lines:
            return
        self._lines.add((j, slope))
        scale = float(self.cost.scale[j])
        rise = slope * float(self.unit[j]) / scale
        own = float((self.base[j] - self.x0[j]) / scale)
        length = max(1.0, abs(rise))
        self.rows.append(({j: rise / length, self.part[j]: -1.0 / length}, -(height + slope * (own - step)) / length))

    def solve(self, fixed: Array | None = None) -> Array | None:
        """The best z, or None if there is none or HiGHS failed (``failed``); ``fixed`` (z) holds the whole entries."""
        lower, upper, whole = np.array(self.lower, float), np.array(self.upper, float), np.array(self.whole)
        if fixed is not None:
            lower, upper = np.where(whole, fixed, lower), np.where(whole, fixed, upper)
        rows = [row for row, _ in (*self.rows, *self.equal)]
        most = np.array([limit for _, limit in (*self.rows, *self.equal)], float)
        least = np.where(np.arange(len(rows)) < len(self.rows), -np.inf, most)
        entries = np.array([value for row in rows for value in row.values()], float)
        places = np.array([j for row in rows for j in row], np.int32)
        starts = np.cumsum([0, *map(len, rows)], dtype=np.int32)
        matrix = csr_array((entries, places, starts), shape=(len(rows), len(whole)))
        # Where own values are chosen against steps, HiGHS 1.15's presolve at our tolerances loses optimal points.
        presolve = {"presolve": "off"} if self._chosen else {}
        free = whole if fixed is None else None
        answer = minimised(np.array(self.objective), (lower, upper), matrix, (least, most), free, **presolve)
        if answer.values is None:
            self.failed = not answer.infeasible
            return None
        if fixed is None:
            self.bound, total = answer.bound + self.constant, answer.value + self.constant
            gap = max(0.0, 1.0 - self.bound / total) if total > 1e-12 else 0.0
            self.gap = gap if gap > NO_GAP else 0.0
        return np.asarray(np.where(whole, np.rint(answer.values), answer.values))

    def point(self, z: Array) -> Array:
        """The point of schema space, own values and whole numbers to the last digit."""
        values = self.base + self.unit * z[: len(self.x0)]
        for j in np.flatnonzero(self.stepped).tolist():
            values[j] = step_value(float(self.base[j]), float(self.unit[j]), round(float(z[j])))
        values = np.where(np.isnan(self.fixed_value), values, self.fixed_value)
        for j, (stays, count) in self._chosen.items():
            start, step = float(self.allowed.anchors[0, j]), float(self.allowed.rules.steps[j])  # type: ignore[union-attr]
            values[j] = self.x0[j] if z[stays] > 0.5 else step_value(start, step, round(float(z[count])))
        # A move below a billionth of the column's scale is the solver's rounding.
        still = self.continuous & (np.abs(values - self.x0) <= 1e-9 * self.cost.scale)
        values = np.where(still, self.x0, values)
        # Own values on the grid of steps are themselves, not base + unit * n rounded.
        own = self.stepped & (np.abs(values - self.x0) <= ROUNDING * self.unit)
        values = np.clip(np.where(own, self.x0, values), self.allowed.lower[0], self.allowed.upper[0])
        for j in self._choices:  # to the last digit inside its cell: the next number may be of another bin
            cell = self.chosen_cell(j, z)
            values[j] = min(max(values[j], cell.low), cell.high)
        return np.asarray(values)

    def polished(self, z: Array) -> Array:
        """The point after the linear program with all whole entries fixed, which HiGHS solves to its full precision."""
        again = self.solve(np.rint(np.where(self.whole, z, 0.0)))
        return self.point(z if again is None else again)
