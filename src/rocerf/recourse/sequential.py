"""The cutting-plane idea where slopes are not cuts: the cheapest point behind the *latest* linearisation, repeated.

    x = x0
    repeat  read value and slope at x
            y = the cheapest allowed point at which the linearised promise holds
            x = x + step (y - x)

A smooth promise that is not concave (a network's) has no cuts that hold everywhere, so none are kept: each round
replaces the last one. Where this settles, x is the cheapest point of its own linearisation, the first-order condition
of the true problem; other such points may be cheaper. Steps shrink when rounds do not settle. Every iterate is a
candidate: it is pulled towards x0 (or pushed on) along its line until the promise just holds, and the cheapest of all
is returned.
"""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from rocerf.promises.promise import Promise
from rocerf.recourse.master import Master
from rocerf.recourse.solution import GUARD, Outcome, Progress, Solution

Array = NDArray[np.float64]
People = NDArray[np.intp]

ROUNDS = 60
#: Full steps for so many rounds, then ever shorter ones.
FULL_STEPS = 8
#: A person is done when the cheapest candidate has not improved by this share for so many rounds.
IMPROVEMENT, PATIENCE = 1e-4, 5
#: Halvings when a candidate is moved along its line, and how far beyond itself it may be pushed.
HALVINGS, BEYOND = 14, 2.0


def solve_by_linearisation(
    promise: Promise, master: Master, delta: float, *, progress: Progress | None = None
) -> Solution:
    """Cheap points with ``promise >= delta`` for each person of the master problem, for any smooth promise."""
    search = _Search(promise, master, delta)
    for round_ in range(ROUNDS):
        search.step(1.0 if round_ < FULL_STEPS else FULL_STEPS / (round_ + 1.0))
        if progress is not None:
            progress(len(master.X0) - len(search.open), len(master.X0))
        if not len(search.open):
            break
    return search.solution()


class _Search:
    """Where each of P people stands, and the cheapest point found for each."""

    def __init__(self, promise: Promise, master: Master, delta: float) -> None:
        self.promise, self.master, self.aim = promise, master, delta + GUARD / 2
        people = len(master.X0)
        self.x = np.clip(master.X0, master.allowed.lower, master.allowed.upper)
        self.best, self.best_cost = self.x.copy(), np.full(people, np.inf)
        self.open: People = np.arange(people)
        self.stale = np.zeros(people, np.intp)
        self.reads = np.zeros(people, np.intp)

    def _read(self, people: People, points: Array) -> Array:
        self.reads[people] += 1
        return self.promise.read(points, self.aim).values

    def step(self, length: float) -> None:
        """One round for everybody who is still open."""
        people, x = self.open, self.x[self.open]
        self.reads[people] += 1
        reading = self.promise.read(x)
        slopes, constants = reading.cuts(x)
        points, reachable, _ = self.master.cheapest(people, slopes[:, None], constants[:, None], self.aim + GUARD / 2)
        # Where even the linearisation cannot be satisfied inside the box, go as far along the slope as is allowed.
        far = np.where(slopes >= 0, self.master.allowed.upper[people], self.master.allowed.lower[people])
        points = np.where(reachable[:, None], points, np.where(np.isfinite(far), far, x))
        self.x[people] = x + length * (points - x)
        improved = self._keep(people)
        self.stale[people] = np.where(improved, 0, self.stale[people] + 1)
        self.open = people[self.stale[people] < PATIENCE]

    def _keep(self, people: People) -> NDArray[np.bool_]:
        """Remember the candidate on the line from x0 through x, if cheaper; whether it is, by a noticeable share."""
        x0, x = self.master.X0[people], self.x[people]
        low, high = np.zeros(len(people)), np.ones(len(people))
        if not (x != x0).any():
            return np.zeros(len(people), bool)
        short = self._read(people, x) < self.aim
        high[short] = BEYOND
        if short.any():
            low[short] = 1.0
        for _ in range(HALVINGS):
            middle = (low + high) / 2
            holds = self._read(people, self._on_line(people, x0, x, middle)) >= self.aim
            high, low = np.where(holds, middle, high), np.where(holds, low, middle)
        points = self._on_line(people, x0, x, high)
        costs = self.master.cost.of(points - x0)
        costs[self._read(people, points) < self.aim] = np.inf
        before = self.best_cost[people]
        better = costs < before
        self.best[people[better]], self.best_cost[people[better]] = points[better], costs[better]
        return np.asarray(costs < before * (1.0 - IMPROVEMENT))

    def _on_line(self, people: People, x0: Array, x: Array, share: Array) -> Array:
        return np.where(
            x == x0,
            x0,
            np.clip(
                x0 + share[:, None] * (x - x0),
                self.master.allowed.lower[people],
                self.master.allowed.upper[people],
            ),
        )

    def solution(self) -> Solution:
        """What was found, read once more."""
        solution = Solution.blank(*self.master.X0.shape)
        found = np.flatnonzero(np.isfinite(self.best_cost))
        solution.outcomes[:] = Outcome.GAVE_UP
        solution.rounds[:] = self.reads
        if not len(found):
            return solution
        reading = self.promise.read(self.best[found])
        solution.points[found], solution.values[found] = self.best[found], reading.foreseen
        solution.outcomes[found] = Outcome.FOUND
        for place, person in enumerate(found):
            solution.worst_ids[person] = reading.worst_ids(place)
        return solution
