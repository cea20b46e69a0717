"""Columns that add to a design by pieces, in one person's master problem: each is in exactly one of its *cells*.

A cell is a range of values within which a line is not below what the column adds to a cut. Inside one piece (a bin, a
whole number, a straight stretch) the line is the thing itself. Where a column has many pieces, a cell first holds many
of them, under one line, so that the problem solved is a relaxation; where its point misses a cut for that reason, the
cell is divided at the point and the problem solved again. A point that misses nothing is the cheapest there is.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

import numpy as np

from rocerf.models.additive import AdditiveDesign, Pieces
from rocerf.types import Array

#: Pieces up to which each is a cell of its own from the start, and the cells that there are otherwise.
MOST_CELLS, FIRST_CELLS = 60, 16

#: How many pieces from a point cells begin around it: they widen with the distance, as the cost rises with its square.
STEPS = tuple(4**power for power in range(1, 8))


@dataclass(frozen=True)
class Cell:
    """Values from ``low`` to ``high``, both included; ``own`` marks the person's own value alone."""

    low: float
    high: float
    own: bool = False

    def lines(self, pieces: Pieces, weights: Array) -> tuple[Array, Array]:
        """At both ends, lines not below ``weights`` (k, t) times what is added; (k,) each."""
        if self.own:
            here = (pieces(np.array([self.low])) @ weights.T)[0]
            return here, here
        return pieces.upper_line(self.low, self.high, weights)


class Cells:
    """The cells of one person's columns, divided further as they are asked to be."""

    def __init__(self, lift: AdditiveDesign, x0: Array, whole: Array) -> None:
        self.lift, self.x0, self.whole = lift, x0, whole
        #: The pieces at which cells begin, by column, and a point near which they begin narrow.
        self.starts: dict[int, set[int]] = {}
        self._near: Array | None = None

    def begin(self, near: Array | None) -> None:
        """Undivided but around a point (d,), where the next one may be: cells elsewhere make HiGHS slow."""
        self.starts.clear()
        self._near = near

    def of(self, column: int, low: float, high: float) -> list[Cell]:
        """The cells of a column between two values, in their order; the person's own value is in one of them."""
        pieces, own = self.lift.pieces[column], float(self.x0[column])
        found = list(self._ranges(column, pieces, low, high))
        if pieces.missing is not None and own == pieces.fill:  # a missing value is no number: it is left, or stays
            found = [part for cell in found for part in self._beside(cell, own, bool(self.whole[column]))]
        if low <= own <= high and not any(cell.low <= own <= cell.high for cell in found):
            found.append(Cell(own, own, own=True))
        return found

    def _ranges(self, column: int, pieces: Pieces, low: float, high: float) -> Iterator[Cell]:
        first, last = (int(piece) for piece in pieces.piece_of(np.array([low, high])))
        starts = self.starts.get(column)
        if starts is None:
            starts = self.starts[column] = self._first_starts(column, first, last)
        edges = sorted({first, *(start for start in starts if first < start <= last)})
        for start, after in zip(edges, [*edges[1:], last + 1], strict=True):
            least = low if start == first else float(pieces.low[start])
            most = high if after == last + 1 else float(pieces.high[after - 1])
            most = min(most, high)
            if after == last + 1 and last + 1 < len(pieces):
                most = min(most, float(pieces.high[last]))
            if least <= most:
                yield Cell(least, most)

    def _first_starts(self, column: int, first: int, last: int) -> set[int]:
        pieces = self.lift.pieces[column]
        if len(pieces) <= MOST_CELLS:
            return set(range(len(pieces)))
        here = int(pieces.piece_of(self.x0[[column]])[0])
        even = np.linspace(first, last, min(FIRST_CELLS, last - first + 1)).astype(int)
        starts = {*even.tolist(), here, here + 1}
        if self._near is not None and self._near[column] != self.x0[column]:
            near = int(pieces.piece_of(self._near[[column]])[0])
            starts |= {near, near + 1, *(near - step for step in STEPS), *(near + 1 + step for step in STEPS)}
        return starts

    @staticmethod
    def _beside(cell: Cell, own: float, whole: bool) -> list[Cell]:
        if not cell.low <= own <= cell.high:
            return [cell]
        below = np.floor(own) if whole else np.nextafter(own, -np.inf)
        above = np.ceil(own) if whole else np.nextafter(own, np.inf)
        sides = Cell(cell.low, min(cell.high, float(below))), Cell(max(cell.low, float(above)), cell.high)
        return [side for side in sides if side.low <= side.high]

    def divide(self, point: Array) -> bool:
        """Divide, at a point (d,), every cell that holds several pieces; whether there was one."""
        divided = False
        for column, starts in self.starts.items():
            pieces = self.lift.pieces[column]
            # Where two pieces meet, the point may be the end of the one or the beginning of the other.
            beside = np.nextafter(point[column], [-np.inf, np.inf])
            for here in sorted(set(pieces.piece_of(np.array([beside[0], point[column], beside[1]])).tolist())):
                before = max((start for start in starts if start <= here), default=0)
                after = min((start for start in starts if start > here), default=len(pieces))
                if after - before > 1:
                    starts |= {here, here + 1, (before + here) // 2, (here + 1 + after) // 2}
                    divided = True
        return divided
