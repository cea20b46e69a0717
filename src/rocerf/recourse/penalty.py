"""The paper's Algorithm 1, a penalty method, for any differentiable promise and all people at once.

For each person it minimises ``J(x) = lam max(aim - f(x), 0)^2 + cost(x - x0)`` for a sequence of ``lam``:
from 0.1, halved until the minimiser is infeasible, doubled until it is feasible, then bisected.
As printed the algorithm has defects, handled here on purpose:

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
from numpy.typing import NDArray

from rocerf.promises.promise import Promise
from rocerf.recourse.cost import Norm
from rocerf.recourse.master import REACH, Master
from rocerf.recourse.solution import GUARD, Outcome, Progress, Solution

Array = NDArray[np.float64]

#: How far above delta the penalty aims, in score units.
AIM = 0.02

#: Reads a batch of points (P, d): values (P,) and gradients (P, d), arrays of the same kind.
Read = Callable[[Any], tuple[Any, Any]]


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
    """Arrays of one kind (NumPy or torch): people X0 (P, d), scale (d,), box lower and upper (P, d)."""

    X0: Any
    scale: Any
    lower: Any
    upper: Any
    norm: Norm


def minimise_by_penalty(
    read: Read,
    problem: PenaltyProblem,
    delta: float,
    *,
    options: PenaltyOptions | None = None,
    progress: Progress | None = None,
) -> tuple[Any, Any]:
    """The cheapest points found with ``value >= delta`` (P, d), and for whom one was found (P,).

    Where none was found the point is the person's own.
    """
    search = _Search(read, problem, delta, options or PenaltyOptions(), progress)
    return search.run()


class _Search:
    """One run of Algorithm 1 over a batch. ``lam`` and the masks hold one entry for each person."""

    def __init__(
        self, read: Read, problem: PenaltyProblem, delta: float, options: PenaltyOptions, progress: Progress | None
    ) -> None:
        self.xp = _namespace(problem.X0)
        self.read, self.problem, self.delta, self.options, self.progress = read, problem, delta, options, progress
        self.stages = 1 + options.halvings + options.doublings + options.bisections
        self.stage = 0
        self.best = self._clip(problem.X0 + 0.0)
        self.best_cost = self._ones() * float("inf")

    def run(self) -> tuple[Any, Any]:
        xp, options = self.xp, self.options
        lam = self._ones() * options.first_lambda
        everyone = self._ones() > 0
        x = self._minimise(self._clip(self.problem.X0 + 0.0), lam, everyone)
        feasible = self._keep(x)
        for _ in range(options.halvings):  # halve until infeasible
            if not bool(xp.any(feasible)):
                break
            lam = xp.where(feasible, lam / 2, lam)
            x = self._minimise(x, lam, feasible)
            feasible = feasible & self._keep(x)
        low, high = lam + 0.0, lam + 0.0
        waiting = ~self._holds(x)
        for _ in range(options.doublings):  # double until feasible
            if not bool(xp.any(waiting)):
                break
            low = xp.where(waiting, high, low)
            high = xp.where(waiting, high * 2, high)
            x = self._minimise(x, high, waiting)
            waiting = waiting & ~self._keep(x)
        for _ in range(options.bisections):
            middle = (low + high) / 2
            x = self._minimise(x, middle, everyone)
            reached = self._keep(x)
            high = xp.where(reached, middle, high)
            low = xp.where(reached, low, middle)
        return self.best, xp.isfinite(self.best_cost)

    def _minimise(self, x: Any, lam: Any, active: Any) -> Any:
        """Adam on J for the active people, in units of the scale, kept inside the box."""
        xp, p = self.xp, self.problem
        u = (x - p.X0) / p.scale
        first, second = xp.zeros_like(u), xp.zeros_like(u)
        for step in range(1, self.options.steps + 1):
            value, slope = self.read(p.X0 + p.scale * u)
            short = xp.clip(self.delta + AIM - value, 0.0, None)
            gradient = -2.0 * (lam * short)[:, None] * slope * p.scale + self._norm_gradient(u)
            first = 0.9 * first + 0.1 * gradient
            second = 0.99 * second + 0.01 * gradient * gradient
            rate = self.options.step_size * (1.0 - (step - 1) / self.options.steps) ** 2
            move = rate * (first / (1 - 0.9**step)) / (xp.sqrt(second / (1 - 0.99**step)) + 1e-12)
            u = xp.where(active[:, None], (self._clip(p.X0 + p.scale * (u - move)) - p.X0) / p.scale, u)
        self.stage += 1
        if self.progress is not None:
            self.progress(self.stage, self.stages)
        return p.X0 + p.scale * u

    def _norm_gradient(self, u: Any) -> Any:
        xp = self.xp
        if self.problem.norm is Norm.L1:
            return xp.sign(u)
        length = xp.sqrt(xp.sum(u * u, axis=1))
        return u / xp.where(length > 1e-12, length, length + 1.0)[:, None]

    def _keep(self, x: Any) -> Any:
        """Whether x is feasible; remember the point where the line from x0 through x first is, if cheaper."""
        xp, x0 = self.xp, self.problem.X0
        low, high = xp.zeros_like(self.best_cost), self._ones()
        for _ in range(8):  # a point just short of the boundary: go a little further
            high = xp.where(self._holds(self._clip(x0 + high[:, None] * (x - x0))), high, high * 1.1)
        for _ in range(40):
            middle = (low + high) / 2
            holds = self._holds(self._clip(x0 + middle[:, None] * (x - x0)))
            high, low = xp.where(holds, middle, high), xp.where(holds, low, middle)
        point = self._clip(x0 + high[:, None] * (x - x0))
        cost = xp.where(self._holds(point), self._cost(point), self._ones() * float("inf"))
        better = cost < self.best_cost
        self.best = xp.where(better[:, None], point, self.best)
        self.best_cost = xp.where(better, cost, self.best_cost)
        return self._holds(x)

    def _cost(self, x: Any) -> Any:
        xp, u = self.xp, (x - self.problem.X0) / self.problem.scale
        return xp.sum(xp.abs(u), axis=1) if self.problem.norm is Norm.L1 else xp.sqrt(xp.sum(u * u, axis=1))

    def _holds(self, x: Any) -> Any:
        return self.read(x)[0] >= self.delta

    def _clip(self, x: Any) -> Any:
        xp = self.xp
        return xp.maximum(xp.minimum(x, self.problem.upper), self.problem.lower)

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
        scale=scale,
        lower=np.maximum(master.allowed.lower, master.X0 - REACH * scale),
        upper=np.minimum(master.allowed.upper, master.X0 + REACH * scale),
        norm=master.cost.norm,
    )

    def read(points: Array) -> tuple[Array, Array]:
        reading = promise.read(points)
        solution.rounds[:] += 1
        return reading.values, reading.slopes

    points, found = minimise_by_penalty(read, problem, delta + GUARD / 2, progress=progress)
    reading = promise.read(points)
    solution.points[found], solution.values[found] = points[found], reading.values[found]
    for place in np.flatnonzero(found):
        solution.outcomes[place] = Outcome.FOUND
        solution.worst_ids[place] = reading.worst_ids(int(place))
    return solution
