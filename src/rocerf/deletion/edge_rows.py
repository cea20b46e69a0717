"""The rows at the edge of each person's k worst: those whose turn changes first when the direction does.

Of a person's k worst rows most stay among them at a direction nearby; which of those around the k-th do is another
matter. So what a pass over all rows found is kept as the *sum* of the effects of the surely bad rows and, one by one,
the rows around the k-th. At another direction the sum stays as it is and the lowest of the edge are chosen anew. That
is a deletion of at most k rows like any other, so the score without them is never below the promise; near the direction
of the pass it is the promise itself. What is kept does not grow with k but where there is room for it.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

import numpy as np

from rocerf.deletion.worst_rows import WorstRows
from rocerf.passes import Threads, chunks, each
from rocerf.types import Array, Places

#: People worked on at a time by each thread.
PEOPLE_BLOCK = 4


@dataclass(frozen=True, eq=False)
class _Edge:
    """One person's: the sum (p,) of the effects of the surely bad rows, places of the others, how many of them go."""

    core: Array
    places: Places
    most: int


@dataclass(frozen=True, eq=False)
class _Around:
    """Rows around a person's k-th, smallest value first: ``inside`` of them are among the k, besides ``core`` more."""

    rows: Places
    inside: int
    core: int

    @classmethod
    def of(cls, rows: Places, values: Array, k: int, reach: int) -> _Around:
        """Up to ``reach`` rows on either side, of at least the k rows with the smallest values below 0."""
        first, last, inside = max(0, k - reach), min(len(rows), k + reach), min(k, len(rows))
        ends = [end for end in (first, last) if 0 < end < len(rows)]
        order = np.argpartition(values, ends) if ends else np.arange(len(rows))
        first = min(first, inside)
        part = order[first:last]
        return cls(rows[part[np.argsort(values[part], kind="stable")]], inside - first, first)

    def narrowed(self, reach: int) -> _Around:
        """Fewer of them."""
        first = max(0, self.inside - reach)
        return _Around(self.rows[first : self.inside + reach], self.inside - first, self.core + first)


class EdgeRows:
    """What a pass found for people whose score gradients were ``directions`` (P, p), for directions nearby.

    ``found`` are at least the k worst rows of each and ``sums`` (P, p) what the k worst move the parameters by;
    ``effects_of`` gives the effects (m, p) of rows (m,), of which at most ``room`` are kept.

    Examples
    --------
    >>> from rocerf.deletion.worst_rows import find_worst_rows
    >>> effects = np.random.default_rng(0).normal(size=(5000, 3))
    >>> before, now = np.array([[1.0, 2.0, 0.5]]), np.array([[1.01, 2.0, 0.5]])
    >>> found = find_worst_rows(before, effects, 125)
    >>> edges = EdgeRows(before, found, found.smallest(100).shifts(effects), 100, effects.__getitem__, room=1000)
    >>> sums = find_worst_rows(now, effects, 100).shifts(effects)
    >>> bool(np.allclose(edges.shifts(now, before), sums))
    True
    """

    def __init__(
        self,
        directions: Array,
        found: WorstRows,
        sums: Array,
        k: int,
        effects_of: Callable[[Places], Array],
        *,
        room: int,
    ) -> None:
        around = self._around(found, k, room)
        sizes = [len(own.rows) for own in around]
        kept, places = np.unique(np.concatenate([own.rows for own in around]), return_inverse=True)
        self._effects = effects_of(kept)
        self._edges: dict[bytes, _Edge] = {}
        for direction, sum_, own, its in zip(
            directions, sums, around, np.split(places, np.cumsum(sizes)[:-1]), strict=True
        ):
            core = sum_ - self._effects[its[: own.inside]].sum(axis=0)
            self._edges[direction.tobytes()] = _Edge(core, its, k - own.core)

    def __len__(self) -> int:
        return len(self._effects)

    @staticmethod
    def _around(found: WorstRows, k: int, room: int) -> list[_Around]:
        """The rows around each person's k-th: as many before it as were found beyond, if there is room for them."""
        reach = max(1, int(found.counts.max(initial=0)) - k)
        parts = [slice(start, end) for start, end in zip(found.starts[:-1], found.starts[1:], strict=True)]
        around = [_Around.of(found.positions[own], found.values[own], k, reach) for own in parts]
        while len(np.unique(np.concatenate([own.rows for own in around]))) > room and reach:
            reach //= 2
            around = [own.narrowed(reach) for own in around]
        return around

    def shifts(self, directions: Array, before: Array) -> Array:
        """How far deleting at most k rows moves the parameters (P, p), chosen for ``directions`` (P, p).

        They are known by where they were asked about ``before`` (P, p); nothing is deleted for whoever is not.
        """
        known = [self._edges.get(direction.tobytes()) for direction in before]

        def of_block(block: slice) -> Array:
            return np.array([self._shift(*one) for one in zip(directions[block], known[block], strict=True)])

        sums = np.concatenate(each(of_block, chunks(len(directions), PEOPLE_BLOCK), Threads()))
        for direction in before:
            self._edges.pop(direction.tobytes(), None)
        for direction, own in zip(directions, known, strict=True):
            if own is not None:
                self._edges[direction.tobytes()] = own
        return sums

    def _shift(self, direction: Array, own: _Edge | None) -> Array:
        if own is None:
            return np.zeros_like(direction)
        effects = self._effects[own.places]
        values = effects @ direction
        chosen = values < 0
        if np.count_nonzero(chosen) > own.most:
            chosen = np.zeros(len(values), bool)
            chosen[np.argpartition(values, own.most - 1)[: own.most]] = own.most > 0
        return np.asarray(own.core + chosen @ effects)
