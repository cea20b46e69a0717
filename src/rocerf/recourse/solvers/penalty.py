"""The paper's Algorithm 1, a penalty method, for any differentiable promise and all people at once.

For each person it minimises ``J(x) = lam max(aim - f(x), 0)^2 + cost(x - x0)`` for a sequence of ``lam``: from 0.1,
halved until the minimiser is infeasible, doubled until it is feasible, then bisected. As printed the algorithm has
defects, handled here on purpose:

* With a squared hinge and an unsquared norm the exact minimiser violates the constraint for
  *every* lam, so "double until feasible" would end only by inexact arithmetic. We aim at
  ``delta + AIM`` and count as feasible what reaches ``delta``; doublings are capped.
* The doubling loop minimises with the previous lam. Here each lam is set, then used.
* The last line returns the infeasible end of the bisection. Here the cheapest feasible iterate is
  returned, after moving it along the line from x0 until the constraint just holds.

Only functions that NumPy and torch share are used, so arrays of both kinds work; the promise decides which it wants by
what it is given.
"""

from __future__ import annotations

import importlib
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np

from rocerf.promises.promise import NearPoint, Promise
from rocerf.recourse.costs.cost import Cost, gradient
from rocerf.recourse.master.master import REACH, Master
from rocerf.recourse.solvers.adam import Adam
from rocerf.recourse.solvers.solution import GUARD, Solution
from rocerf.types import Array, Progress

#: How far above delta the penalty aims, in score units.
AIM = 0.02

#: How often a candidate is moved on where the worst rows at it are not those it was found with.
RELOCATIONS = 4

#: Reads a batch of points (P, d): values (P,) and gradients (P, d), arrays of the same kind.
Read = Callable[[Any], tuple[Any, Any]]

#: A cheap reading for the same people that equals the true one at the given points and is never below it elsewhere.
Hold = Callable[[Any], Read]


@dataclass(frozen=True)
class PenaltyOptions:
    """Numbers of the method; the defaults reach a few tenths of a percent of the optimum on our tables."""

    first_lambda: float = 0.1
    halvings: int = 10
    doublings: int = 30
    bisections: int = 8
    steps: int = 150
    step_size: float = 0.05


@dataclass(frozen=True)
class PenaltyProblem:
    """Arrays of one kind (NumPy or torch): people X0 (P, d), box lower and upper (P, d), and what moves cost."""

    X0: Any
    lower: Any
    upper: Any
    price: Cost

    def of(self, people: Any) -> PenaltyProblem:
        """The problem of these people, a mask (P,)."""
        return PenaltyProblem(self.X0[people], self.lower[people], self.upper[people], self.price)

    def clip(self, x: Any) -> Any:
        """The nearest points in the boxes."""
        xp = _namespace(x)
        return xp.maximum(xp.minimum(x, self.upper), self.lower)

    def cost(self, x: Any) -> Any:
        """Cost of moving to x, shape (P,)."""
        return self.price.norm.total(self.price.parts((x - self.X0) / self.price.scale, self.X0))


def minimise_by_penalty(
    read: Read,
    problem: PenaltyProblem,
    delta: float,
    *,
    hold: Hold | None = None,
    options: PenaltyOptions | None = None,
    progress: Progress | None = None,
) -> tuple[Any, Any]:
    """The cheapest points found with ``value >= delta`` (P, d), and for whom one was found (P,).

    Where none was found the point is the person's own. With ``hold`` the inner steps read the constraint as it was held
    at the stage's first point, which is never below the true one, and every candidate is read truly.
    """
    search = _Search(read, hold or (lambda _: read), problem, delta, options or PenaltyOptions(), progress)
    return search.run()


class _Search:
    """One run of Algorithm 1 over a batch. ``lam`` and the masks hold one entry for each person."""

    def __init__(
        self,
        read: Read,
        hold: Hold,
        problem: PenaltyProblem,
        delta: float,
        options: PenaltyOptions,
        progress: Progress | None,
    ) -> None:
        self.xp = _namespace(problem.X0)
        self.read, self.hold = read, hold
        self.problem, self.delta, self.options, self.progress = problem, delta, options, progress
        self.stages = 1 + options.halvings + options.doublings + options.bisections
        self.stage = 0
        self.best = problem.clip(problem.X0 + 0.0)
        self.best_cost = self._ones() * float("inf")

    def run(self) -> tuple[Any, Any]:
        xp, options = self.xp, self.options
        lam = self._ones() * options.first_lambda
        everyone = self._ones() > 0
        x = self._minimise(self.problem.clip(self.problem.X0 + 0.0), lam, everyone)
        feasible = self._keep(x, everyone)
        for _ in range(options.halvings):  # halve until infeasible
            if not bool(xp.any(feasible)):
                break
            lam = xp.where(feasible, lam / 2, lam)
            x = self._minimise(x, lam, feasible)
            feasible = self._keep(x, feasible)
        low, high = lam + 0.0, lam + 0.0
        waiting = ~self._holds(x)
        for _ in range(options.doublings):  # double until feasible
            if not bool(xp.any(waiting)):
                break
            low = xp.where(waiting, high, low)
            high = xp.where(waiting, high * 2, high)
            x = self._minimise(x, high, waiting)
            waiting = waiting & ~self._keep(x, waiting)
        for _ in range(options.bisections):
            middle = (low + high) / 2
            x = self._minimise(x, middle, everyone)
            reached = self._keep(x, everyone)
            high = xp.where(reached, middle, high)
            low = xp.where(reached, low, middle)
        return self.best, xp.isfinite(self.best_cost)

    def _minimise(self, x: Any, lam: Any, active: Any) -> Any:
        """Adam on J for the active people, in units of the scale, kept inside the box."""
        xp, p = self.xp, self.problem.of(active)
        read, scale = self.hold(x[active]), p.price.scale
        u = (x[active] - p.X0) / scale
        adam = Adam(u, self.options.step_size, second=0.99, epsilon=1e-12)
        for step in range(self.options.steps):
            value, slope = read(p.X0 + scale * u)
            short = xp.clip(self.delta + AIM - value, 0.0, None)
            pull = -2.0 * (lam[active] * short)[:, None] * slope * scale + gradient(p.price, u, p.X0)
            move = adam.move(pull) * (1.0 - step / self.options.steps) ** 2
            u = (p.clip(p.X0 + scale * (u - move)) - p.X0) / scale
        self.stage += 1
        if self.progress is not None:
            self.progress(self.stage, self.stages)
        moved = x + 0.0
        moved[active] = p.X0 + scale * u
        return moved

    def _keep(self, x: Any, active: Any) -> Any:
        """Whether x is feasible, of the active people; remember where the line from x0 through x first is, if cheaper.

        The held constraint says where that is; if the true one disagrees there (other rows are worst), it is held anew
        at that point and the search goes on from it, outwards.
        """
        xp, p = self.xp, self.problem.of(active)
        own, low = x[active], xp.zeros_like(self.best_cost[active])
        reached = self._holds(own)
        point, holds = own, reached
        for _ in range(RELOCATIONS):
            low, point = self._first_on_line(p, own, low, self.hold(point))
            holds = self._holds(point)
            if bool(xp.all(holds)):
                break
        point = xp.where((~holds & reached)[:, None], own, point)
        cost = xp.where(self._holds(point), p.cost(point), xp.zeros_like(low) + float("inf"))
        better = cost < self.best_cost[active]
        self.best[active] = xp.where(better[:, None], point, self.best[active])
        self.best_cost[active] = xp.where(better, cost, self.best_cost[active])
        everybody = self._ones() < 0
        everybody[active] = reached
        return everybody

    def _first_on_line(self, p: PenaltyProblem, x: Any, low: Any, read: Read) -> tuple[Any, Any]:
        """The least share of the line from x0 through x, from ``low`` on, at which the held constraint is met."""
        xp = self.xp

        def at(share: Any) -> Any:
            return p.clip(p.X0 + share[:, None] * (x - p.X0))

        high = xp.maximum(low, xp.ones_like(low))
        for _ in range(8):  # a point just short of the boundary: go a little further
            high = xp.where(read(at(high))[0] >= self.delta, high, high * 1.1)
        for _ in range(40):
            middle = (low + high) / 2
            holds = read(at(middle))[0] >= self.delta
            high, low = xp.where(holds, middle, high), xp.where(holds, low, middle)
        return high, at(high)

    def _holds(self, x: Any) -> Any:
        return self.read(x)[0] >= self.delta

    def _ones(self) -> Any:
        return self.xp.ones_like(self.problem.X0[:, 0])


def _namespace(array: Any) -> Any:
    """The module whose functions fit this array: numpy or torch, never imported unless already in use."""
    return importlib.import_module("torch" if type(array).__module__.split(".")[0] == "torch" else "numpy")


def solve_by_penalty(promise: Promise, master: Master, delta: float, *, progress: Progress | None = None) -> Solution:
    """Algorithm 1 behind the same interface as the cutting-plane solver."""
    solution = Solution.blank(*master.X0.shape)
    scale = master.cost.scale
    problem = PenaltyProblem(
        X0=master.X0,
        lower=np.maximum(master.allowed.lower, master.X0 - REACH * scale),
        upper=np.minimum(master.allowed.upper, master.X0 + REACH * scale),
        price=master.cost,
    )

    def read(points: Array) -> tuple[Array, Array]:
        reading = promise.read(points)
        solution.rounds[:] += 1
        return reading.values, reading.slopes

    def hold(points: Array) -> Read:
        if not isinstance(promise, NearPoint):
            return read
        held = promise.frozen_at(points)

        def read_held(others: Array) -> tuple[Array, Array]:
            reading = held(others)
            return reading.values, reading.slopes

        return read_held

    points, found = minimise_by_penalty(read, problem, delta + GUARD / 2, hold=hold, progress=progress)
    solution.keep(np.arange(len(points)), points, promise.read(points), found)
    return solution
