"""Ranges that were stated, held against another model: the worst value of each column, as that model sees it.

A letter says "between 12 and 23 months", and the bins of the model after a deletion are others. Scores of exact models
add up column by column, so that the worst point of a box has the worst value of each column, whatever the others are.
"""

from __future__ import annotations

from collections.abc import Callable

import numpy as np

from rocerf.data.feature import Kind
from rocerf.models.model import ExactModel
from rocerf.recourse.ranges_asked import MOST_WHOLE, far_from, numbers_to_ask, whole_numbers
from rocerf.types import Array


def lowest_in(model: ExactModel, points: Array, low: Array, high: Array) -> Array:
    """The lowest score in force of boxes ``low <= x <= high`` around points, (m, d) each; (m,).

    Ends that are not there are looked at as far away as ranges are when they are stated.
    """
    reach = far_from(model, points)
    low, high = np.maximum(low, points - reach), np.minimum(high, points + reach)
    lowest = np.full(len(points), np.inf)
    for score in (model.score, model.deployed_score):
        worst = points.copy()
        for column in np.flatnonzero((high > low).any(axis=0)).tolist():
            people = np.flatnonzero(high[:, column] > low[:, column])
            ends = low[people, column], high[people, column]
            values = _values(model, column, points[people, column], *ends)
            worst[people, column] = _worst(score, points[people[0]], column, values, *ends)
        lowest = np.minimum(lowest, np.minimum(score(points), score(worst)))
    return np.asarray(np.nan_to_num(lowest, nan=-np.inf))


def _worst(score: Callable[[Array], Array], point: Array, column: int, values: Array, low: Array, high: Array) -> Array:
    """Of values (v,) in order the one between each pair of ends (m,) at which the score is lowest, (m,)."""
    moved = np.tile(point, (len(values), 1))
    moved[:, column] = values
    scores = np.nan_to_num(score(moved), nan=-np.inf)
    first, last = np.searchsorted(values, low), np.searchsorted(values, high, side="right")
    return np.array([values[a + scores[a:b].argmin()] for a, b in zip(first, last, strict=True)])


def _values(model: ExactModel, column: int, points: Array, low: Array, high: Array) -> Array:
    """Values to look at in one column's ranges (m,): their ends, and wherever the model may do something else."""
    frames = model.frames
    feature = None if frames is None else frames.schema.column_features[column]
    if feature is not None and feature.kind is Kind.INTEGER and (high - low).max() <= MOST_WHOLE:
        return np.union1d(whole_numbers(low, high), points)
    pieces = None if model.lift is None else model.lift.pieces.get(column)
    edges = np.empty(0) if pieces is None else np.concatenate([pieces.low, pieces.high])
    written = None if model.parts is None else model.parts.numbers_written()
    known = np.union1d(edges, np.empty(0) if written is None else written)
    inside = edges[(edges >= low.min()) & (edges <= high.max())]
    return np.unique(np.concatenate([numbers_to_ask(known, points, low, high), inside, points, low, high]))
