"""From what a solver found to recourses: every point through the gate, everybody with a status and a reason."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np
from numpy.typing import NDArray

from rocerf.data.frames import Frames
from rocerf.data.schema import FeatureSchema
from rocerf.errors import OptionError
from rocerf.promises.held_out import HeldOut
from rocerf.recourse.asked import Asked
from rocerf.recourse.master.feasible_set import FeasibleSet
from rocerf.recourse.master.master import Master
from rocerf.recourse.result import Recourses, Status
from rocerf.recourse.solvers.solution import Outcome, Solution
from rocerf.recourse.triage import Triage
from rocerf.types import Array, Places, Progress
from rocerf.words import Said

if TYPE_CHECKING:
    from rocerf.explainer.explainer import Rocerf

#: A move of less than this share of a column's spread is a rounding error of a solver, and no change to ask for.
UNMOVED = 1e-9

#: A cost may be below 0 by so much, which is rounding.
ROUNDING = 1e-9

_STATUS_OF = {
    Outcome.FOUND: Status.ANSWERED,
    Outcome.UNREACHABLE: Status.UNREACHABLE,
    Outcome.NOT_ROBUST: Status.NOT_ROBUST,
    Outcome.GAVE_UP: Status.GAVE_UP,
}

#: Of these a limit that somebody set may be the reason.
_MAY_BE_A_LIMIT = (Status.UNREACHABLE, Status.NOT_ROBUST)


def assembled(
    explainer: Rocerf,
    asked: Asked,
    triage: Triage,
    master: Master,
    solution: Solution,
    progress: Progress | None = None,
) -> Recourses:
    """Recourses for everybody asked for, out of the solution for those whom the solver saw.

    ``progress`` is told of models retrained to check the points, by a promise that has such.
    """
    matrix, asking = asked.matrix, triage.asking
    withheld = _through_the_gate(explainer, solution, master, asked, asking)
    people = len(matrix)
    points, costs, margins, gaps, scores = np.full(matrix.shape, np.nan), *np.full((4, people), np.nan)
    found = np.isfinite(solution.points).all(axis=1)
    points[asking], margins[asking] = solution.points, np.where(found, solution.values, np.nan)
    costs[asking] = explainer.cost.of(solution.points, matrix[asking])
    _refuse_strange_costs(explainer.cost.name, costs[asking[found]])
    gaps[asking[found]] = solution.gaps[found]
    scores[asking[found]] = explainer.model.score(solution.points[found])
    retrainings = np.zeros(people, np.intp)
    retrainings[asking] = solution.retrainings
    statuses, reasons = list(triage.statuses), list(triage.reasons)
    worst: list[NDArray[np.generic] | None] = [None] * people
    usual = {outcome: (status, status.sentence) for outcome, status in _STATUS_OF.items()}
    for place, person in enumerate(asking):
        outcome = solution.outcomes[place]
        ended = usual[outcome] if usual[outcome][0] not in _MAY_BE_A_LIMIT else None
        statuses[person], reasons[person] = ended or _ended(outcome, master, place, explainer.max_changes)
        reasons[person] = withheld.get(place, reasons[person])
        worst[person] = solution.worst_ids[place]
    held_out, picked = _checked(explainer, points, progress)
    return Recourses(
        people=matrix,
        matrix=points,
        costs=costs,
        margins=margins,
        statuses=tuple(statuses),
        reasons=tuple(reasons),
        schema=explainer.schema or FeatureSchema.free(explainer.model.train.columns),
        settings=explainer.settings(),
        index=asked.index,
        worst_ids=tuple(worst),
        retrainings=retrainings,
        scores=scores,
        held_out=held_out,
        frame_columns=asked.frame_columns,
        gaps=gaps,
        frames=asked.frames,
        missing=asked.missing,
        picked=picked,
        origin=asked.origin,
    )


def _checked(explainer: Rocerf, points: Array, progress: Progress | None) -> tuple[HeldOut | None, HeldOut | None]:
    """How points (P, d) fare with models kept for checking, and without rows picked to harm them."""
    told = [] if progress is None else [progress]
    held_out, picked = explainer.promise.held_out(points, *told), explainer.promise.picked(points, *told)
    if progress is not None:
        progress(1, 1)
    return held_out, picked


def _through_the_gate(
    explainer: Rocerf, solution: Solution, master: Master, asked: Asked, asking: Places
) -> dict[int, str]:
    """Points as they leave, with the margins read there; the places of those who have none that passes, and why.

    First without changes that are only a solver's rounding, in numbers that the user's own columns hold (of 32 bits,
    say); where that fails, as the solver found them.
    """
    found = np.flatnonzero(np.isfinite(solution.points).all(axis=1))
    own, allowed = solution.points[found], master.allowed.of(found)
    # Of a model without slopes the least move may matter, so there nothing is put back.
    spread = np.asarray(explainer.model.train.spread)
    tidied = _without_rounding(own, allowed, spread) if explainer.promise.smooth else own
    variants = [tidied.__getitem__, own.__getitem__]
    if asked.frames is not None and asked.frames.narrow.any():
        variants.insert(0, _held_by_their_types(tidied, allowed, asked.frames).__getitem__)
    verdict = explainer.gate.first_passing(variants, allowed, asked.missing_of(asking[found]), asked.frames)
    solution.points[found], solution.values[found] = verdict.points, verdict.margins
    # Whoever says so, only what passed here was found.
    solution.outcomes[solution.outcomes == Outcome.FOUND] = Outcome.GAVE_UP
    solution.outcomes[found[verdict.passed]] = Outcome.FOUND
    return {int(found[place]): verdict.reasons[place] for place in np.flatnonzero(~verdict.passed)}


def _refuse_strange_costs(name: str, costs: Array) -> None:
    """Points are the cheapest only of costs that no change can bring below 0."""
    strange = costs[~(costs >= -ROUNDING)]
    if len(strange):
        raise OptionError(
            f"Expected the cost {name!r} of every change to be a number >= 0, got {strange[0]:g}; correct its prices."
        )


def _without_rounding(points: Array, allowed: FeasibleSet, spread: Array) -> Array:
    """Points (P, d) without what moved by a solver's rounding only, unless a rule needs it: a value just outside."""
    settled = np.where(np.abs(points - allowed.X0) <= UNMOVED * spread, allowed.X0, points)
    keeps = allowed.holds(settled) | ~allowed.holds(points)
    return np.where(keeps[:, None], settled, points)


def _held_by_their_types(points: Array, allowed: FeasibleSet, frames: Frames) -> Array:
    """Points (P, d) whose changed numbers the user's columns hold: the next such number, onwards where that is allowed.

    Whoever puts an answer into a table of their own types would else be asked about another one.
    """
    held = points.copy()
    for person, column in np.argwhere(frames.narrow & (points != allowed.X0) & np.isfinite(points)):
        value, own = points[person, column], allowed.X0[person, column]
        for towards in (np.copysign(np.inf, value - own), own):
            number = frames.next_held(int(column), value, towards)
            if allowed.lower[person, column] <= number <= allowed.upper[person, column]:
                held[person, column] = number
                break
    return held


def _ended(outcome: Outcome, master: Master, place: int, max_changes: int | None) -> tuple[Status, str]:
    """How a person's request ended, with the limit that may be why."""
    status, allowed = _STATUS_OF[outcome], master.allowed
    if status not in _MAY_BE_A_LIMIT:
        return status, status.sentence
    if allowed.excluded is not None and allowed.excluded[place]:
        return Status.NO_FURTHER, Status.NO_FURTHER.sentence
    if status is Status.UNREACHABLE and not master.possible(place):
        return Status.CONTRADICTION, Status.CONTRADICTION.sentence
    if max_changes is None:
        return status, status.sentence
    return status, Said.of("recourse.at_most", sentence=status.sentence, most=max_changes)
