"""How far a person may overshoot: onwards in the direction of a change, while every model spoken of still accepts.

What is looked at is by how much a column's next values lower the score of any model at most, compared with the answer:
that is so whatever the other columns are at. Straight lines go on for ever where they lower none. Of bins and curves
every further piece is asked at both ends, between which it is straight. What they lower is taken out of the room that
the answer has above the margin, which all columns of a person share: so their ranges hold together, at any value of
each.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

import numpy as np

from rocerf.models.additive import Pieces
from rocerf.models.model import LinearModel
from rocerf.promises.promise import Promise
from rocerf.types import Array, Mask

#: Further pieces of one column that are looked at, nearest first.
MOST_PIECES = 300


def widen_onwards(promise: Promise, model: LinearModel, points: Array, X0: Array, changed: Mask, ends: Ends) -> None:
    """Widen boxes around answers (P, d) for people ``X0`` in the columns that they change; what it takes is spent."""
    d = points.shape[1]
    pieces = {} if model.lift is None else model.lift.pieces
    lines = np.array([column not in pieces for column in range(d)])
    steps = np.concatenate([np.eye(d), -np.eye(d)])
    directions = steps if model.lift is None else steps @ model.lift.matrix.T
    up, down = promise.rises_along(directions).reshape(2, d) & lines
    ends.high[changed & up & (points > X0)] = np.inf
    ends.low[changed & down & (points < X0)] = -np.inf
    _over_pieces(promise, model, points, X0, changed, ends)


@dataclass(frozen=True, eq=False)
class Ends:
    """Boxes ``low <= x <= high`` (P, d) that are made wider, within ``least`` and ``most`` (P, d).

    ``whole`` (d,) marks columns of whole numbers. ``room`` (P,) is how far scores may fall in all, ``spent`` (P, d) by
    how much each column may make them.
    """

    low: Array
    high: Array
    least: Array
    most: Array
    whole: Mask
    room: Array
    spent: Array


@dataclass(frozen=True, eq=False)
class _Walk:
    """One person's way over the pieces of one column: the values (m,) where each step ends, two steps a piece."""

    person: int
    column: int
    values: Array
    added: Array  # (m, t), less what is added at the answer
    reach: float  # of the last piece

    def take(self, rises: Array, ends: Ends) -> None:
        """Move the end to the last piece up to which there is room for what is lost, ``rises`` (m,) being negative."""
        losses = np.maximum.accumulate(np.maximum(-rises.reshape(-1, 2).min(axis=1), 0.0))
        left = max(ends.room[self.person] - ends.spent[self.person].sum(), 0.0)
        count = int((losses <= left).sum())
        if not count:
            return
        last = self.reach if count == len(losses) else self.values[2 * count - 1]
        place = self.person, self.column
        ends.low[place], ends.high[place] = min(ends.low[place], last), max(ends.high[place], last)
        ends.spent[place] = losses[count - 1]


def _over_pieces(promise: Promise, model: LinearModel, points: Array, X0: Array, changed: Mask, ends: Ends) -> None:
    if model.lift is None:
        return
    walks = [
        walk
        for column, pieces in model.lift.pieces.items()
        for walk in _walks(pieces, column, points[:, column], X0[:, column], changed[:, column], ends)
    ]
    if not walks:
        return
    directions = np.zeros((sum(len(walk.values) for walk in walks), len(model.lift.shift)))
    places = np.cumsum([0, *(len(walk.values) for walk in walks)])
    for start, walk in zip(places, walks, strict=False):
        columns = model.lift.pieces[walk.column].places
        directions[start : start + len(walk.values), columns] = walk.added
    distinct, which = np.unique(directions, axis=0, return_inverse=True)
    rises = promise.rises_by(distinct)[which.ravel()]
    for start, walk in zip(places, walks, strict=False):
        walk.take(rises[start : start + len(walk.values)], ends)


def _walks(pieces: Pieces, column: int, points: Array, X0: Array, changed: Mask, ends: Ends) -> Iterator[_Walk]:
    marked = pieces.missing is not None
    for person in np.flatnonzero(changed).tolist():
        point, own = float(points[person]), float(X0[person])
        if marked and point == pieces.fill:
            continue
        up = point > own
        limit = (
            min(ends.most[person, column], pieces.high[-1]) if up else max(ends.least[person, column], pieces.low[0])
        )
        here, last = pieces.piece_of(np.array([point, limit])).tolist()
        inside = pieces.low[here] <= point <= pieces.high[here]
        if not inside or (limit <= point if up else limit >= point):
            continue
        order = np.arange(here, last + 1)[:MOST_PIECES] if up else np.arange(here, last - 1, -1)[:MOST_PIECES]
        order = order[: _without_gaps(pieces, order, bool(ends.whole[column]))]
        first, then = (pieces.low, pieces.high) if up else (pieces.high, pieces.low)
        values = np.column_stack([first[order], then[order]]).ravel()
        values = np.clip(values, min(point, limit), max(point, limit))
        at = pieces.on_lines(values, np.repeat(order, 2)) - pieces.on_lines(np.array([point]), np.array([here]))
        yield _Walk(person, column, values, at, float(pieces.reach(1 if up else -1)[order[-1]]))


def _without_gaps(pieces: Pieces, order: Array, whole: bool) -> int:
    """How many of these neighbouring pieces follow each other with no value between that the column can have."""
    below, above = np.minimum(order[:-1], order[1:]), np.maximum(order[:-1], order[1:])
    ended = pieces.high[below]
    joined = pieces.low[above] <= (ended + 1.0 if whole else np.nextafter(ended, np.inf))
    return len(order) if joined.all() else int(np.argmin(joined)) + 1
