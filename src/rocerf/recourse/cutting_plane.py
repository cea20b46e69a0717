"""The cutting-plane solver: the global optimum under any concave promise, for all people at once.

keep a set of cuts for each person, beginning with what the promise knows beforehand
repeat  x = the cheapest allowed point behind all cuts
        read the promise at x; if it holds there, x is optimal (a relaxation's optimum that is feasible)
        otherwise add the cut found at x
"""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from rocerf.promises.promise import Promise
from rocerf.recourse.master import Master
from rocerf.recourse.solution import GUARD, Outcome, Progress, Solution

Array = NDArray[np.float64]


def solve_by_cuts(
    promise: Promise,
    master: Master,
    delta: float,
    *,
    max_rounds: int = 200,
    progress: Progress | None = None,
) -> Solution:
    """The cheapest point with ``promise >= delta`` for each person of the master problem.

    Cuts aim at ``delta + GUARD``; a point counts as found from ``delta + GUARD / 2`` on.
    """
    people, d = master.X0.shape
    solution = Solution.blank(people, d)
    pool = _Cuts.shared(people, *promise.known_cuts())
    open_ = np.arange(people)
    for round_ in range(max_rounds):
        points, reachable = master.cheapest(open_, *pool.of(open_), delta + GUARD)
        solution.outcomes[open_[~reachable]] = Outcome.UNREACHABLE if round_ == 0 else Outcome.NOT_ROBUST
        open_, points = open_[reachable], points[reachable]
        if not len(open_):
            break
        reading = promise.read(points)
        solution.rounds[open_] += 1
        holds = reading.values >= delta + GUARD / 2
        found = open_[holds]
        solution.points[found], solution.values[found] = points[holds], reading.values[holds]
        solution.outcomes[found] = Outcome.FOUND
        for place in np.flatnonzero(holds):
            solution.worst_ids[open_[place]] = reading.worst_ids(int(place))
        slopes, constants = reading.cuts(points)
        open_ = open_[~holds]
        pool.add(open_, slopes[~holds], constants[~holds])
        if progress is not None:
            progress(people - len(open_), people)
        if not len(open_):
            break
    return solution


class _Cuts:
    """Up to m cuts for each of P people; unused places are "no cut" (constant = infinity)."""

    def __init__(self, slopes: Array, constants: Array, used: NDArray[np.intp]) -> None:
        self._slopes, self._constants, self._used = slopes, constants, used

    @classmethod
    def shared(cls, people: int, slopes: Array, constants: Array) -> _Cuts:
        m, d = slopes.shape
        return cls(
            np.broadcast_to(slopes, (people, m, d)).copy(),
            np.broadcast_to(constants, (people, m)).copy(),
            np.full(people, m),
        )

    def of(self, people: NDArray[np.intp]) -> tuple[Array, Array]:
        width = int(self._used[people].max(initial=0))
        return self._slopes[people, :width], self._constants[people, :width]

    def add(self, people: NDArray[np.intp], slopes: Array, constants: Array) -> None:
        if not len(people):
            return
        total, room, d = self._slopes.shape
        if int(self._used[people].max()) == room:
            self._slopes = np.concatenate([self._slopes, np.zeros((total, room, d))], axis=1)
            self._constants = np.concatenate([self._constants, np.full((total, room), np.inf)], axis=1)
        self._slopes[people, self._used[people]] = slopes
        self._constants[people, self._used[people]] = constants
        self._used[people] += 1
