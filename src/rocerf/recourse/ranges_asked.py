"""Ranges end where the user's own pipeline was not asked, or makes something else of a value than what is known of it.

A number inside a range may be a code that no training row has ("999: unknown"), of which the pipeline makes something
of its own. So before a range is stated the pipeline itself is asked: of whole numbers at every value, of others at
every number written in the pipeline, at whole numbers and evenly between. The first answer that is not the expected one
ends the range, and no range goes farther than was asked.
"""

from __future__ import annotations

import numpy as np

from rocerf.models.arithmetic import bits_of
from rocerf.models.model import ExactModel
from rocerf.promises.promise import models_in_force
from rocerf.recourse.asked import handed_out
from rocerf.types import Array, Mask

#: Values on each side of an answer that are asked of a column of whole numbers, and so how far its ranges go at most.
MOST_WHOLE = 5_000

#: Numbers written in a pipeline that are asked of any other column; where more lie in its ranges, it has none.
MOST_WRITTEN = 20_000

#: Numbers asked evenly over the ranges of any other column.
GRID = 65

#: Differences between a pipeline and what is known of it that count as none, relative to what is usual in its columns:
#: curves are known by straight pieces; the second is for columns of single precision.
SAME, SAME_NARROW = 2e-7, 1e-5

#: Differences between scores that are rounding, relative to them.
ROUNDING = 1e-12

#: A number in place of an end that is not there, in widths of the training rows.
FAR = 10.0

#: Training rows that tell what is usual in a column, and the least that is, as a share of the largest.
SOME_ROWS, NEARLY_EMPTY = 1_000, 1e-6


def far_from(model: ExactModel, points: Array) -> Array:
    """How far from points (P, d) columns other than of whole numbers are asked about, (P, d)."""
    return np.asarray(FAR * (np.abs(points) + np.asarray(model.train.spread)))


def end_where_asked(
    model: ExactModel, points: Array, whole: Mask, far: Array, spent: Array, low: Array, high: Array
) -> None:
    """Shorten boxes (P, d) around ``points`` to where the user's own pipeline does what is known of it.

    ``whole`` (d,) marks columns of whole numbers; other ranges go no farther than ``far`` (P, d) from the point.
    ``spent`` (P, d) is by how much each column may lower the scores of models in force. Without the pipeline at hand
    nothing can be asked, and no range is left. A model of our own is what is known of it.
    """
    if model.frames is None or not (high > low).any():
        return
    numbers = None if model.parts is None else model.parts.numbers_written()
    if numbers is None:
        low[:], high[:] = points, points
        return
    reach = np.where(whole, float(MOST_WHOLE), far)
    np.maximum(low, points - reach, out=low)
    np.minimum(high, points + reach, out=high)
    for column in np.flatnonzero((high > low).any(axis=0)).tolist():
        people = np.flatnonzero(high[:, column] > low[:, column])
        ends = low[people, column], high[people, column]
        values = whole_numbers(*ends) if whole[column] else numbers_to_ask(numbers, points[people, column], *ends)
        good, scores = _as_known(model, points[people[0]], column, values)
        for person in people.tolist():
            own = points[person, column]
            here = good & _no_lower(scores, values, own, spent[person, column])
            low[person, column], high[person, column] = _around(
                values, here, own, low[person, column], high[person, column]
            )


def _no_lower(scores: Array, values: Array, own: float, spent: float) -> Mask:
    """At which values (m,) no score (m, r) of a model in force is lower than at the answer's own by more than spent."""
    place = int(np.searchsorted(values, own))
    if place == len(values) or values[place] != own:
        return np.zeros(len(values), bool)
    return np.asarray((scores >= scores[place] - spent - ROUNDING * (1.0 + np.abs(scores[place]))).all(axis=1))


def _around(values: Array, good: Mask, own: float, low: float, high: float) -> tuple[float, float]:
    """The first and last value (m,) between the ends with nothing but good ones from there to the person's own."""
    below, above = (values >= low) & (values <= own), (values <= high) & (values >= own)
    down = np.logical_and.accumulate(good[below][::-1])[::-1]
    up = np.logical_and.accumulate(good[above])
    return float(values[below][down].min(initial=own)), float(values[above][up].max(initial=own))


def whole_numbers(low: Array, high: Array) -> Array:
    """Every whole number of these ranges, once."""
    return np.unique(np.concatenate([np.arange(np.ceil(a), np.floor(b) + 1) for a, b in zip(low, high, strict=True)]))


def numbers_to_ask(written: Array, points: Array, low: Array, high: Array) -> Array:
    """Numbers to ask within these ranges: those written somewhere with their neighbours, whole ones, a grid, ends."""
    least, most = float(low.min()), float(high.max())
    written = written[(written >= least) & (written <= most)]
    if len(written) > MOST_WRITTEN:
        return np.unique(points)
    first = np.ceil(least)
    some = np.concatenate(
        [
            written,
            np.nextafter(written, -np.inf),
            np.nextafter(written, np.inf),
            np.arange(first, min(np.floor(most), first + 2 * MOST_WHOLE) + 1),
            np.linspace(least, most, GRID),
            *(points, low, high),
        ]
    )
    return np.unique(some[(some >= least) & (some <= most)])


def _as_known(model: ExactModel, point: Array, column: int, values: Array) -> tuple[Mask, Array]:
    """Whether the pipeline makes of the point with each of these values (m,) what the model's design says, (m,).

    And the scores of the models in force there, by what the pipeline makes, (m, r).
    """
    assert model.frames is not None
    moved = np.tile(point, (len(values), 1))
    moved[:, column] = values
    rows = handed_out(model, moved)
    own, asked = model.own_design(rows)
    back = model.frames.encode(rows)[0]
    known = model.design(back)
    size = np.abs(np.vstack([known, model.design(model.train.X[:SOME_ROWS])])).max(axis=0)
    size = np.maximum(size, NEARLY_EMPTY * size.max())  # of a category that few have, all that is seen is rounding
    tolerance = SAME_NARROW if bits_of(*model.frames.dtypes.values()) < 64 else SAME
    good = (np.abs(own - known) <= tolerance * size).all(axis=1)  # false where the pipeline fails
    held = np.abs(back[:, column] - values) <= tolerance * np.abs(values)  # what the user's column can hold
    return np.asarray(good & held & asked), np.asarray(own @ models_in_force(model).T)
