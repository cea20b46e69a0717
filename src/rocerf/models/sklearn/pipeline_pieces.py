"""Preprocessing as a sum of functions of one column each, found by asking it.

One row is held still and one number of it moved over the values that the column has, between them and beyond: what
the preprocessing makes of these rows is what the column adds. Neighbouring values of which it makes the same, or that
lie on one line, are one piece; a jump is closed in on until no number is left between its sides; a curve is halved
until its pieces are straight. No kind of transformer is known by name. Whether columns really add up, each by itself,
is then held against all training rows and random ones (:mod:`rocerf.models.sklearn.pipeline_check`).
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import cached_property

import numpy as np
from numpy.typing import NDArray

from rocerf.data.feature import Feature, Kind
from rocerf.models.additive import AdditiveDesign, Pieces
from rocerf.models.sklearn.pipeline_estimator import stand_in
from rocerf.models.sklearn.pipeline_probe import AffineMap, Probe, limits_of
from rocerf.models.sklearn.pipeline_steps import CannotTransformError
from rocerf.types import Array

#: How far beyond the training rows a column is asked, in widths of its range.
BEYOND = 0.5

#: Whole numbers of a column up to which each is asked; values of the training rows asked of any other column, and as
#: many evenly between its ends.
MOST_WHOLE, MOST_VALUES, GRID = 40_000, 2_000, 257

#: Values of the training rows that are asked as they occur so often.
MOST_FREQUENT = 200

#: Relative differences that are rounding, and by which a straight piece may miss a curve.
SAME, STRAIGHT = 1e-12, 2e-8

#: Halvings that bring any two numbers next to each other, and pieces that one column may come to.
HALVINGS, MOST_PIECES = 1100, 40_000

#: Pieces at an end of the values asked that are at least this share of what was asked beyond the rows go on for ever.
LONG = 0.25

#: What a column adds at values (m,): (m, q), NaN where the preprocessing fails.
Ask = Callable[[Array], Array]


@dataclass(frozen=True, eq=False)
class AdditiveMap(AffineMap):
    """``T(x) = matrix x + shift + sum of pieces``, the columns of matrix that have pieces being 0."""

    pieces: Mapping[int, Pieces] = field(default_factory=dict)
    curves: bool = False

    @property
    def curved(self) -> bool:
        """Whether some of the pieces follow a curve."""
        return self.curves

    def __call__(self, X: Array) -> Array:
        """Images (m, q) of points (m, d)."""
        return self.design(intercept=False)(X)

    def design(self, *, intercept: bool) -> AdditiveDesign:
        """The map as a model's design."""
        return AdditiveDesign(self.matrix, self.shift, intercept, self.pieces)

    def scale(self, X: Array) -> Array:
        """What is added up in each image column at most, over these points; (q,)."""
        size = super().scale(X)
        for column, pieces in self.pieces.items():
            size[pieces.places] += np.abs(pieces(X[:, column])).max(axis=0, initial=0.0)
        return size

    def marks(self, columns: Sequence[str]) -> tuple[str, ...]:
        """Names of columns whose fill only marks that the number is missing."""
        marked = [columns[column] for column, pieces in self.pieces.items() if pieces.missing is not None]
        return tuple(name for name in marked if name in self.fills)

    def inside(self, points: Array) -> Array:
        """Points (m, d) with their numbers moved to where it is known what they add."""
        points = points.copy()
        for column, pieces in self.pieces.items():
            points[:, column] = np.clip(points[:, column], *pieces.domain)
        return points


def additive_map(probe: Probe, X: Array, missing: NDArray[np.bool_]) -> AdditiveMap:
    """The only such map that there can be; ``X`` (n, d) are the training rows, whose numbers are ``missing`` (n, d)."""
    affine = probe.found()
    start = probe.images(probe.base[None])[0]
    matrix, shift, fills, pieces = affine.matrix.copy(), affine.shift.copy(), dict(affine.fills), {}
    curved = False
    numbers = [feature for feature in probe.frames.schema if feature.kind is not Kind.CATEGORICAL]
    without = probe.images_without([feature.name for feature in numbers])
    for feature, gone in zip(numbers, without, strict=True):
        j, known = probe.places[feature.name].start, X[~missing[:, probe.places[feature.name].start], :]
        asked = _Asked.of(probe, feature, j, known[:, j], start)
        found = asked.pieces()
        curved = curved or (found is not None and not asked.consecutive)
        if found is None and (gone is None or feature.name in affine.fills):
            continue  # a straight line, on which a missing value lies too
        low, high = probe.ranges.low[j], probe.ranges.high[j]
        if found is None:
            found = _Table(
                np.array([low]), np.array([high]), np.zeros((1, len(start))), (high - low) * matrix[None, :, j]
            )
        shift += matrix[:, j] * low  # what the affine map took off for its slope
        matrix[:, j] = 0.0
        fills.pop(feature.name, None)
        if gone is not None:
            fills[feature.name] = stand_in(feature, known[:, j])
        pieces[j] = found.compressed(fills.get(feature.name, np.nan), None if gone is None else gone - start)
    return AdditiveMap(matrix, shift, fills, affine.refused, frozenset(), pieces, curved)


@dataclass(frozen=True, eq=False)
class _Table:
    """Pieces over all image columns: ends (m,) and what is added there (m, q)."""

    low: Array
    high: Array
    start: Array
    end: Array
    domain: tuple[float, float] = (-np.inf, np.inf)

    def compressed(self, fill: float, missing: Array | None) -> Pieces:
        """The same over those image columns that the column adds something to."""
        touched = (self.start != 0).any(axis=0) | (self.end != 0).any(axis=0)
        places = np.flatnonzero(touched if missing is None else touched | (missing != 0))
        ends = self.start[:, places], self.end[:, places]
        return Pieces(
            places, self.low, self.high, *ends, self.domain, fill, None if missing is None else missing[places]
        )


@dataclass(frozen=True, eq=False)
class _Asked:
    """One number of a row that is otherwise held still: which values were asked (m,), and what they add (m, q)."""

    ask: Ask
    values: Array
    added: Array
    whole: bool
    ends: tuple[float, float]  # of the training rows

    @classmethod
    def of(cls, probe: Probe, feature: Feature, j: int, known: Array, start: Array) -> _Asked:
        """Column j, of which the training rows have the values ``known``; ``start`` (q,) is the row's own image."""

        def ask(values: Array) -> Array:
            points = np.tile(probe.base, (len(values), 1))
            points[:, j] = values
            return probe.steps.where_possible(probe.frames.decode(points), len(start)) - start

        low, high = float(probe.ranges.low[j]), float(probe.ranges.high[j])
        low, high = min(low, high), max(low, high)
        ends = (
            min(low, feature.lower) if np.isfinite(feature.lower) else low,
            max(high, feature.upper) if np.isfinite(feature.upper) else high,
        )
        least, most = limits_of(probe.frames.dtypes[feature.name])
        beyond = BEYOND * (ends[1] - ends[0])
        first, last = max(ends[0] - beyond, least), min(ends[1] + beyond, most)
        whole = feature.kind is not Kind.CONTINUOUS
        if feature.kind is Kind.BINARY:
            values = np.array([0.0, 1.0])
        elif whole and last - first < MOST_WHOLE:
            values = np.arange(np.floor(first), np.ceil(last) + 1)
            values = values[(values >= least) & (values <= most)]
        else:
            own, counts = np.unique(known, return_counts=True)
            some = own[np.unique(np.linspace(0, len(own) - 1, min(len(own), MOST_VALUES)).astype(int))]
            often = own[np.argsort(-counts, kind="stable")[:MOST_FREQUENT]]  # codes for "unknown" and the like
            values = np.unique(np.concatenate([some, often, np.linspace(first, last, GRID), [low, high]]))
            values = np.unique(np.rint(values)) if whole else values
        added = ask(values)
        return cls(ask, values, added, whole, (low, high))._finite_part(low)

    def _finite_part(self, own: float) -> _Asked:
        """The values around the row's own at which the preprocessing gives numbers."""
        good = np.asarray(np.isfinite(self.added).all(axis=1), bool)
        here = int(np.searchsorted(self.values, own))
        if not good[here]:
            raise CannotTransformError("it gives values that are not finite")
        bad = np.flatnonzero(~good)
        first = int(bad[bad < here].max(initial=-1)) + 1
        last = int(bad[bad > here].min(initial=len(good)))
        return replace(self, values=self.values[first:last], added=self.added[first:last])

    @property
    def consecutive(self) -> bool:
        """Whether every value that there is was asked."""
        return self.whole and bool((np.diff(self.values) == 1.0).all())

    @cached_property
    def _size(self) -> Array:
        """How much each image column changes over the training rows' values, about, (q,): rounding is a share of it."""
        inside = (self.values >= self.ends[0]) & (self.values <= self.ends[1])
        return np.asarray(np.abs(self.added[inside]).max(axis=0) + np.finfo(float).tiny)

    def pieces(self) -> _Table | None:
        """The pieces of the column; None where there is one line alone."""
        if self._straight():
            return None
        asked = self if self.consecutive else self._refined()
        low, high, start, end = asked._joined()
        first, last = self._goes_on(low, high, start, end)
        return _Table(low, high, start, end, (-np.inf if first else float(low[0]), np.inf if last else float(high[-1])))

    def _straight(self) -> bool:
        if len(self.values) < 3:
            return True
        share = (self.values - self.values[0]) / (self.values[-1] - self.values[0])
        line = self.added[0] + share[:, None] * (self.added[-1] - self.added[0])
        return bool((np.abs(self.added - line) <= 1e3 * SAME * self._size).all())

    def _refined(self) -> _Asked:
        """With further values, until every two neighbours have a straight line, or no number, between them."""
        values, added, size = self.values, self.added, self._size
        open_ = np.arange(len(values) - 1)
        for _ in range(HALVINGS):
            below, above = values[open_], values[open_ + 1]
            middle = below + (above - below) / 2
            middle = np.rint(middle) if self.whole else middle
            between = (middle > below) & (middle < above)
            open_, middle = open_[between], middle[between]
            if not len(open_) or len(values) > MOST_PIECES:
                break
            found = self.ask(middle)
            share = ((middle - values[open_]) / (values[open_ + 1] - values[open_]))[:, None]
            line = added[open_] + share * (added[open_ + 1] - added[open_])
            bent = ~(np.abs(found - line) <= STRAIGHT * size).all(axis=1)  # true where the preprocessing fails
            # Of what is straight nothing more is asked; of what is bent both halves are.
            new = open_[bent]
            values = np.insert(values, new + 1, middle[bent])
            added = np.insert(added, new + 1, found[bent], axis=0)
            places = new + np.arange(len(new))
            open_ = np.sort(np.concatenate([places, places + 1]))
        good = np.isfinite(added).all(axis=1)
        return replace(self, values=values[good], added=added[good])

    def _joined(self) -> tuple[Array, Array, Array, Array]:
        """Neighbouring values on one line as one piece: ends (m,), (m,), and what is added there, (m, q) each."""
        values, added, size = self.values, self.added, self._size
        rise = np.diff(added, axis=0) / np.diff(values)[:, None]
        flat = np.asarray((np.abs(np.diff(added, axis=0)) <= SAME * size).all(axis=1), bool)
        jump = ~flat & ~self._connected()
        alike = np.zeros(len(rise), bool)
        alike[1:] = (np.abs(np.diff(rise, axis=0)) <= 1e2 * SAME * (np.abs(rise[1:]) + np.abs(rise[:-1]))).all(axis=1)
        alike[1:] |= flat[1:] & flat[:-1]
        kept = np.flatnonzero(~jump)
        first: list[int] = []
        last: list[int] = []
        for place in kept.tolist():  # the line from value `place` to the next
            if last and last[-1] == place and alike[place] and self._on_one_line(first[-1], place + 1):
                last[-1] = place + 1
            else:
                first.append(place)
                last.append(place + 1)
        alone = np.setdiff1d(np.arange(len(values)), np.concatenate([kept, kept + 1]))
        a, b = np.concatenate([first, alone]).astype(int), np.concatenate([last, alone]).astype(int)
        order = np.argsort(a, kind="stable")
        a, b = a[order], b[order]
        end = np.where((np.abs(added[b] - added[a]) <= SAME * size).all(axis=1)[:, None], added[a], added[b])
        return values[a], values[b], added[a], end

    def _on_one_line(self, first: int, last: int) -> bool:
        """Whether the values between two others lie on their line, asked of one in the middle: curves drift."""
        middle = (first + last) // 2
        share = (self.values[middle] - self.values[first]) / (self.values[last] - self.values[first])
        line = self.added[first] + share * (self.added[last] - self.added[first])
        return bool((np.abs(self.added[middle] - line) <= 10 * SAME * self._size).all())

    def _connected(self) -> NDArray[np.bool_]:
        """Whether a line leads from each value to the next: not over a jump, nor between lone whole numbers."""
        below, above = self.values[:-1], self.values[1:]
        if not self.whole:
            middle = below + (above - below) / 2
            return (middle > below) & (middle < above)
        rise = np.diff(self.added, axis=0) / (above - below)[:, None]
        same = (np.abs(np.diff(rise, axis=0)) <= 1e2 * SAME * self._size).all(axis=1)
        connected = above - below > 1.0
        connected[1:] |= same
        connected[:-1] |= same
        return np.asarray(connected)

    def _goes_on(self, low: Array, high: Array, start: Array, end: Array) -> tuple[bool, bool]:
        """Whether the first and last piece are long enough to believe that they never end."""
        room = LONG * BEYOND * (self.ends[1] - self.ends[0])
        return bool(high[0] - low[0] >= room), bool(high[-1] - low[-1] >= room)
