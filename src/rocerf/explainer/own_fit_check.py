"""Answers held against the model that will really be retrained, at the very points that were found.

The user's own estimator is fitted without the rows that are feared most for each person. Where it refuses the point,
its error joins those that the promise allows for, and whoever no longer keeps the promise is solved for again.
"""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
from numpy.typing import NDArray

from rocerf.promises.own_solver import OwnSolver
from rocerf.recourse.master.master import Master
from rocerf.recourse.solvers.solution import GUARD, Outcome, Solution
from rocerf.types import Progress

Solve = Callable[[Master, Progress | None], Solution]

#: How often people are solved for again before they stay without an answer.
ROUNDS = 3


def confirmed(promise: OwnSolver, solve: Solve, master: Master, delta: float, solution: Solution) -> Solution:
    """The solution with every point refused by the user's own refitted estimator replaced, or taken back."""
    for round_ in range(ROUNDS + 1):
        broken = _broken(promise, solution, delta)
        if not len(broken):
            break
        if round_ == ROUNDS:
            solution.forget(broken)
            solution.outcomes[broken] = Outcome.GAVE_UP
            break
        again = solve(master.of(broken), None)
        for place, person in enumerate(broken):
            solution.take(int(person), again.only(place))
    return solution


def _broken(promise: OwnSolver, solution: Solution, delta: float) -> NDArray[np.intp]:
    """People whose point the refitted estimator refuses, or who no longer keep the promise since errors joined it."""
    found = np.flatnonzero(solution.outcomes == Outcome.FOUND)
    if not len(found):
        return found
    points = solution.points[found]
    allowed = promise.allowance(points)
    scores = promise.confirm(points, [solution.worst_ids[person] for person in found], delta)
    solution.values[found] -= promise.allowance(points) - allowed  # errors that joined lower everybody's margin
    return found[(scores < delta) | (solution.values[found] < delta + GUARD / 2)]
