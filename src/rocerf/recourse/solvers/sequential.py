"""The cutting-plane idea where slopes are not cuts: the cheapest point behind the *latest* linearisations, repeated.

    first   x = x0; repeat: read value and slope at x; x = the cheapest allowed point where the linearised promise holds
    then    near the cheapest point found so far: the cheapest point behind the last few linearisations, no farther away
            than a trust in them allows; trust halves whenever that brings nothing

A smooth promise that is not concave (a network's) has no cuts that hold everywhere, so old ones are forgotten and none
is trusted far away. Where this settles, x meets the first-order condition of the true problem; other such points may be
cheaper. Every iterate is a candidate: it is pulled towards x0 (or pushed on) along its line until the promise just
holds, and the cheapest of all is returned.
"""

from __future__ import annotations

from dataclasses import replace

import numpy as np

from rocerf.promises.promise import NearPoint, Promise
from rocerf.recourse.master.master import Master
from rocerf.recourse.solvers.solution import GUARD, Solution
from rocerf.types import Array, Mask, Places, Progress

#: Rounds from x0 on with full steps, and rounds near the cheapest point found.
FULL_STEPS, ROUNDS = 8, 40
#: Linearisations kept for each person in the second part.
KEPT = 6
#: An improvement counts from this share on; a person is done when the trust has shrunk to this share of the cost.
IMPROVEMENT, LEAST_TRUST = 1e-5, 1e-3
#: The same share for somebody with steps or categories: close by there is hardly another allowed point.
LEAST_TRUST_MIXED = 0.1
#: Halvings when a candidate is moved along its line, and how far beyond itself it may be pushed.
HALVINGS, BEYOND = 14, 2.0


def solve_by_linearisation(
    promise: Promise, master: Master, delta: float, *, progress: Progress | None = None
) -> Solution:
    """Cheap points with ``promise >= delta`` for each person of the master problem, for any smooth promise."""
    search = _Search(promise, master, delta)
    total = FULL_STEPS + ROUNDS
    for round_ in range(total):
        if round_ < FULL_STEPS:
            search.step(search.everybody, together=False)
        elif not search.refine():
            break
        if progress is not None:  # in people, as other solvers count
            progress(len(master.X0) * (round_ + 1) // total, len(master.X0))
    if progress is not None:
        progress(len(master.X0), len(master.X0))
    return search.solution()


class _Search:
    """Where each of P people stands, and the cheapest point found for each."""

    def __init__(self, promise: Promise, master: Master, delta: float) -> None:
        self.promise, self.master, self.aim = promise, master, delta + GUARD / 2
        people, d = master.X0.shape
        self.x = np.clip(master.X0, master.allowed.lower, master.allowed.upper)
        self.best, self.best_cost = self.x.copy(), np.full(people, np.inf)
        self.reads = np.zeros(people, np.intp)
        #: How far from the best point the linearisations are trusted, in standard deviations of a column.
        self.trust = np.full(people, np.inf)
        self.slopes, self.constants = np.zeros((people, KEPT, d)), np.full((people, KEPT), np.inf)

    def _read(self, people: Places, points: Array) -> Array:
        self.reads[people] += 1
        return self.promise.read(points, self.aim).values

    def _linearise(self, people: Places, points: Array) -> tuple[Array, Array]:
        """Read at points (Q, d) and remember the linearisations there, the oldest making room."""
        self.reads[people] += 1
        slopes, constants = self.promise.read(points).cuts(self.promise.lifted(points))
        self.slopes[people] = np.concatenate([slopes[:, None], self.slopes[people, :-1]], axis=1)
        self.constants[people] = np.concatenate([constants[:, None], self.constants[people, :-1]], axis=1)
        return slopes, constants

    @property
    def everybody(self) -> Places:
        """All people."""
        return np.arange(len(self.x))

    def step(self, people: Places, *, together: bool) -> None:
        """A full step for these people, from where they are, behind the latest linearisation or the last few."""
        slopes, constants = self._linearise(people, self.x[people])
        target = self.aim + GUARD / 2
        latest = self.master.cheapest(people, slopes[:, None], constants[:, None], target)
        points, reachable = latest.points, latest.found
        if together:  # where rounds go back and forth between two sides of a kink
            behind = self.master.cheapest(people, self.slopes[people], self.constants[people], target)
            points, reachable = np.where(behind.found[:, None], behind.points, points), reachable | behind.found
        # Where even the linearisation cannot be satisfied inside the box, go as far along the slope as is allowed.
        far = np.where(slopes >= 0, self.master.allowed.upper[people], self.master.allowed.lower[people])
        self.x[people] = np.where(reachable[:, None], points, np.where(np.isfinite(far), far, self.x[people]))
        self._keep(people)

    def refine(self) -> bool:
        """One round near the cheapest points found, a full one for the others; whether anybody was left to improve."""
        lost = np.flatnonzero(np.isinf(self.best_cost))
        if len(lost):
            self.step(lost, together=True)
        fresh = np.flatnonzero(np.isfinite(self.best_cost) & np.isinf(self.trust))
        if len(fresh):
            self.trust[fresh] = self._distance(fresh) / 2
            self._linearise(fresh, self.best[fresh])
        least = np.where(self.master.mixed, LEAST_TRUST_MIXED, LEAST_TRUST)
        settled = self.trust <= least * self._distance(self.everybody)
        people = np.flatnonzero(np.isfinite(self.trust) & ~settled)
        if not len(people):
            return bool(len(lost))
        near, reach = self.master.of(people), (self.trust[people, None] * self.master.cost.scale)
        nearby = near.allowed.within(self.best[people] - reach, self.best[people] + reach)
        trusted = replace(near, allowed=nearby).cheapest(
            np.arange(len(people)), self.slopes[people], self.constants[people], self.aim + GUARD / 2
        )
        reachable = trusted.found
        self.x[people] = np.where(reachable[:, None], trusted.points, self.best[people])
        improved = self._keep(people)
        self._linearise(people, self.x[people])
        self.trust[people] = np.where(improved, self.trust[people], self.trust[people] / 2)
        # Linearisations that contradict each other here are forgotten, all but the latest.
        self.constants[people[~reachable], 1:] = np.inf
        self.slopes[people[~reachable], 1:] = 0.0
        return True

    def _distance(self, people: Places) -> Array:
        """How far the cheapest points are, in scales of the columns: a cost may be in any unit."""
        return self.master.cost.relaxed().of(self.best[people], self.master.X0[people])

    def _keep(self, people: Places) -> Mask:
        """Remember the candidate on the line from x0 through x, if cheaper; whether it is, by a noticeable share.

        A promise that can be held says cheaply where on the line it is met; if the true one disagrees there (other rows
        are worst), it is held anew and the search goes on outwards.
        """
        x0, x = self.master.X0[people], self.x[people]
        if not (x != x0).any():
            return np.zeros(len(people), bool)
        low = np.where(self._read(people, x) < self.aim, 1.0, 0.0)
        share = self._first_on_line(people, low, x)
        # Between allowed points of somebody with steps or categories there is nothing: take x itself.
        share = np.where(self.master.mixed[people], 1.0, share)
        points = self._on_line(people, x0, x, share)
        short = self._read(people, points) < self.aim
        if short.any() and isinstance(self.promise, NearPoint):
            again = short & ~self.master.mixed[people]
            share = np.where(again, self._first_on_line(people, share, points), share)
            points = self._on_line(people, x0, x, share)
            short = self._read(people, points) < self.aim
        short |= ~self.master.allowed.of(people).holds(points)
        costs = np.where(short, np.inf, self.master.cost.of(points, x0))
        before = self.best_cost[people]
        better = costs < before
        self.best[people[better]], self.best_cost[people[better]] = points[better], costs[better]
        return np.asarray(costs < before * (1.0 - IMPROVEMENT))

    def _first_on_line(self, people: Places, low: Array, held_at: Array) -> Array:
        """The least share of the way to x, above ``low``, at which the promise (held there, if it can be) is met."""
        x0, x = self.master.X0[people], self.x[people]
        high = np.where(low < 1.0, 1.0, BEYOND)
        held = self.promise.frozen_at(held_at) if isinstance(self.promise, NearPoint) else None
        for _ in range(HALVINGS):
            middle = (low + high) / 2
            points = self._on_line(people, x0, x, middle)
            values = self._read(people, points) if held is None else held(points).values
            holds = values >= self.aim
            high, low = np.where(holds, middle, high), np.where(holds, low, middle)
        return high

    def _on_line(self, people: Places, x0: Array, x: Array, share: Array) -> Array:
        lower, upper = self.master.allowed.lower[people], self.master.allowed.upper[people]
        return np.where(x == x0, x0, np.clip(x0 + share[:, None] * (x - x0), lower, upper))

    def solution(self) -> Solution:
        """What was found, read once more."""
        solution = Solution.blank(*self.master.X0.shape)
        found = np.flatnonzero(np.isfinite(self.best_cost))
        solution.rounds[:] = self.reads
        if len(found):
            solution.keep(found, self.best[found], self.promise.read(self.best[found]), np.ones(len(found), bool))
        return solution
