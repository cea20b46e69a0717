"""The numbers of letters: rounded so that people can use them, and checked again as they are written.

Rounding moves a number on in the direction of its change, so that the person does a little more than needed. That is no
proof that the promise still holds: the rounded point is held against the rules, the model and the promise as a whole.
Where it fails, more digits are tried, and at last the point as it was found. Whole numbers, steps and categories are
never rounded.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import replace
from decimal import ROUND_CEILING, ROUND_FLOOR, Context, Decimal
from math import floor, log10
from typing import TYPE_CHECKING

import numpy as np
from numpy.typing import NDArray

from rocerf.data.feature import Kind
from rocerf.recourse.gate import Verdict
from rocerf.recourse.master.feasible_set import FeasibleSet, step_value
from rocerf.recourse.ranges import Ranges, ranges_around, readable_range
from rocerf.recourse.result import Recourses, Status
from rocerf.types import Array

if TYPE_CHECKING:
    from rocerf.explainer.explainer import Rocerf

Mask = NDArray[np.bool_]

#: Further digits tried where the rounded point fails, before the point is taken as it was found.
FURTHER_DIGITS = 4

#: Digits of the change that rounding leaves at least: nobody is asked for more than a tenth beyond the change.
DIGITS_OF_CHANGE = 2

_EXACT = Context(prec=400)


def stated(explainer: Rocerf, recourses: Recourses, digits: int) -> tuple[Recourses, Mask]:
    """The recourses as letters state them, every point checked anew, and whose numbers were rounded, (P,).

    Costs, margins, scores and what held-out models say are those of the points stated. Who has no point that passes is
    unanswered. Ids of training rows are left out.
    """
    people = np.flatnonzero(recourses.answered)
    X0, found = recourses.people[people], recourses.matrix[people]
    if len(people):
        explainer.prepare()
    missing: list[Sequence[str]] = [() if recourses.missing is None else recourses.missing[person] for person in people]
    allowed = explainer.problem(X0, missing).allowed
    exact = _exact(allowed, found)

    def rounded(further: int) -> Callable[[NDArray[np.intp]], Array]:
        return lambda places: _rounded(explainer, allowed.of(places), exact[places], digits, further)

    variants = [*(rounded(further) for further in range(FURTHER_DIGITS + 1)), lambda places: exact[places]]
    verdict = explainer.gate.first_passing(variants, allowed, missing, recourses.frames)
    was_rounded = np.zeros(len(recourses), bool)
    was_rounded[people] = (verdict.points != exact).any(axis=1) & verdict.passed
    return _with_points(explainer, recourses, people, verdict), was_rounded


def stated_ranges(explainer: Rocerf, recourses: Recourses, *, overshoot: bool) -> Ranges:
    """Ranges that hold around the points that letters state, (P, d), as they are printed; without width where there is
    none.

    Inside bins always, and with ``overshoot`` onwards in the direction of a change.
    """
    low, high = recourses.matrix.copy(), recourses.matrix.copy()
    people = np.flatnonzero(recourses.answered)
    if len(people):
        X0, points = recourses.people[people], recourses.matrix[people]
        missing: list[Sequence[str]] = [() if recourses.missing is None else recourses.missing[i] for i in people]
        allowed, schema = explainer.problem(X0, missing).allowed, recourses.schema
        found = ranges_around(explainer.gate, points, allowed, schema, missing, recourses.frames, overshoot=overshoot)
        low[people], high[people] = found.low, found.high
        for person, column in np.argwhere(low < high):
            place = person, column
            ends = readable_range(float(low[place]), float(high[place]), float(recourses.matrix[place]))
            low[place], high[place] = ends if np.isfinite(ends).any() else (recourses.matrix[place],) * 2
    return Ranges(low, high)


def _with_points(explainer: Rocerf, recourses: Recourses, people: NDArray[np.intp], verdict: Verdict) -> Recourses:
    """The recourses with the points that passed for the people answered; who has none is unanswered."""
    points, given = verdict.points, verdict.passed
    statuses, reasons = list(recourses.statuses), list(recourses.reasons)
    for place in np.flatnonzero(~given):
        statuses[people[place]], reasons[people[place]] = Status.GAVE_UP, verdict.reasons[place]
    matrix, (costs, lowest, scores) = np.full(recourses.matrix.shape, np.nan), np.full((3, len(recourses)), np.nan)
    matrix[people], lowest[people] = points, verdict.margins
    costs[people] = explainer.cost.of(points, recourses.people[people])
    scores[people[given]] = explainer.model.score(points[given])
    return replace(
        recourses,
        matrix=matrix,
        costs=costs,
        margins=lowest,
        scores=scores,
        statuses=tuple(statuses),
        reasons=tuple(reasons),
        held_out=explainer.held_out(matrix),
        picked=None,  # of the points before they were rounded
        settings=explainer.settings(),  # what is promised is what the explainer promises, whatever a file says
        worst_ids=None,
        gaps=None,
    )


def _exact(allowed: FeasibleSet, points: Array) -> Array:
    """Points (P, d) without rounding errors: steps are whole steps."""
    X0, rules = allowed.X0, allowed.rules
    exact = points.copy()
    if rules is None:
        return exact
    for person, column in np.argwhere((points != X0) & (rules.steps > 0)):
        anchor, step = allowed.anchors[person, column], rules.steps[column]
        count = round((points[person, column] - anchor) / step)
        exact[person, column] = step_value(float(anchor), float(step), count)
    return exact


def _rounded(explainer: Rocerf, allowed: FeasibleSet, points: Array, digits: int, further: int) -> Array:
    """Points (P, d) with the numbers rounded that may be."""
    rounded = points.copy()
    continuous = np.ones(points.shape[1], bool)
    if explainer.schema is not None:
        continuous[:] = [f.kind is Kind.CONTINUOUS and f.step is None for f in explainer.schema.column_features]
    for person, column in np.argwhere(continuous & (points != allowed.X0)):
        own, value = allowed.X0[person, column], points[person, column]
        limits = allowed.lower[person, column], allowed.upper[person, column]
        rounded[person, column] = rounded_number(value, own, digits, limits, further)
    return rounded


def rounded_number(
    value: float, own: float, digits: int, limits: tuple[float, float] = (-np.inf, np.inf), further: int = 0
) -> float:
    """The value with so many significant digits, farther from the person's own, by at most a tenth of the change.

    ``further`` digits more make the grid finer. What would lie beyond a limit is rounded back towards the own value,
    and left alone if there is no room for that either.

    >>> rounded_number(31234.567, 20000.0, 3), rounded_number(31234.567, 31150.0, 3), rounded_number(0.1234, 0.5, 3)
    (31300.0, 31235.0, 0.123)
    >>> rounded_number(145.79, 5681.16, 3, limits=(145.79, np.inf))
    146.0
    """
    change = abs(value - own)
    grid = _exponent(change) + 1 - DIGITS_OF_CHANGE
    if value:
        grid = min(grid, _exponent(value) + 1 - digits)
    grid = max(grid, _exponent(change) + 1 - 2 * digits)  # what is next to 0 is 0
    on = ROUND_CEILING if value > own else ROUND_FLOOR
    back = ROUND_FLOOR if value > own else ROUND_CEILING
    for direction in (on, back):
        number = float(_decimal(value).quantize(Decimal(1).scaleb(grid - further), direction, _EXACT)) + 0.0
        if limits[0] <= number <= limits[1] and (number > own if value > own else number < own):
            return number
    return value


def _exponent(value: float) -> int:
    return floor(log10(abs(value)))


def _decimal(value: float) -> Decimal:
    """The number as it is written, not its binary neighbour."""
    return Decimal(repr(float(value)))
