"""Answers held against models that are really retrained, at the very points that were found.

Where a real refit refuses a point, or what was found since lowers it below the margin, the person is solved for again.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import TypeAlias

import numpy as np

from rocerf.promises.promise import Promise
from rocerf.recourse.master.master import Master
from rocerf.recourse.solvers.solution import GUARD, Outcome, Solution
from rocerf.types import Places, Progress

#: Finds points for the people of a problem.
FindPoints: TypeAlias = Callable[[Master, Progress | None], Solution]

#: How often people are solved for again before they stay without an answer.
ROUNDS = 3


def confirmed(promise: Promise, find: FindPoints, master: Master, delta: float, solution: Solution) -> Solution:
    """The solution with every point that the promise does not confirm replaced, or taken back."""
    for round_ in range(ROUNDS + 1):
        broken = _broken(promise, solution, delta)
        if not len(broken):
            break
        if round_ == ROUNDS:
            solution.forget(broken)
            solution.outcomes[broken] = Outcome.GAVE_UP
            break
        again = find(master.of(broken), None)
        for place, person in enumerate(broken):
            solution.take(int(person), again.only(place))
    return solution


def _broken(promise: Promise, solution: Solution, delta: float) -> Places:
    """People whose point is not confirmed, or no longer keeps the promise; values become what is now foreseen."""
    found = np.flatnonzero(solution.outcomes == Outcome.FOUND)
    worst = [solution.worst_ids[person] for person in found]
    values = promise.confirm(solution.points[found], solution.values[found], worst, delta) if len(found) else None
    if values is None:
        return np.empty(0, np.intp)
    solution.values[found] = values
    return found[values < delta + GUARD / 2]
