"""Which solver goes with which promise, and the one call that runs it.

A promise with cuts goes to the cutting-plane method; a smooth one to repeated linearisation or the paper's penalty
method; one that only says its value to a search. A promise that is another one for each person is solved person by
person.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, Literal

import numpy as np

from rocerf.data.training_set import TrainingSet
from rocerf.errors import OptionError
from rocerf.models.model import Refittable
from rocerf.models.options import one_of
from rocerf.promises.plain import Plain
from rocerf.promises.promise import Hardening, Learning, OverTrees, PerPerson, Promise
from rocerf.promises.stages import STEPS, in_turn
from rocerf.recourse.master.master import Master
from rocerf.recourse.solvers.cells import solve_by_cells
from rocerf.recourse.solvers.cutting_plane import solve_by_cuts
from rocerf.recourse.solvers.penalty import solve_by_penalty
from rocerf.recourse.solvers.search import solve_by_search
from rocerf.recourse.solvers.sequential import solve_by_linearisation
from rocerf.recourse.solvers.solution import GUARD, Outcome, Solution
from rocerf.types import Progress

#: How far a point found on a stand-in may be moved on along its line, and in which steps.
FARTHEST, FARTHER = 10.0, 1.05

#: Doublings of the margin tried on a stand-in where points cannot be moved along a line.
MARGINS = 4


#: How long solving and attacking take against each other, where points are attacked in rounds: guessed, for progress.
SOLVING, ATTACKING = 1.0, 2.0

#: What a solver asks of a promise, from the most to the least.
Needs = Literal["cuts", "slopes", "trees", "values"]


@dataclass(frozen=True)
class NamedSolver:
    """A solver that can be asked for by its name; ``knows_rules`` if it can keep more than bounds and directions."""

    name: str
    solve: Callable[..., Solution]
    needs: Needs
    summary: str
    knows_rules: bool = True

    def suits(self, promise: Promise) -> bool:
        """Whether the promise has what the solver needs."""
        if self.needs == "trees":
            return isinstance(promise, OverTrees) and promise.readable
        return promise.concave if self.needs == "cuts" else promise.smooth or self.needs == "values"


SOLVERS: dict[str, NamedSolver] = {}


def register_solver(
    name: str, solve: Callable[..., Solution], needs: Needs, summary: str, *, knows_rules: bool = True
) -> None:
    """Make a solver known by a name; "auto" is the first registered one that suits a promise.

    ``solve(promise, master, delta, progress=...)`` gives a :class:`Solution`. One that needs only trees or values is
    also given ``anchors``, the training rows (n, d) near which to look, and a ``seed``.
    """
    if name in SOLVERS or name == "auto":
        raise OptionError(f"Expected a new name for a solver, got {name!r}, which is taken; choose another.")
    SOLVERS[name] = NamedSolver(name, solve, needs, summary, knows_rules)


register_solver("cutting_plane", solve_by_cuts, "cuts", "the global optimum behind cuts")
register_solver("sequential", solve_by_linearisation, "slopes", "repeated linearisation")
register_solver("penalty", solve_by_penalty, "slopes", "Algorithm 1", knows_rules=False)
register_solver("cells", solve_by_cells, "trees", "the cheapest cell of tree ensembles, by branch and bound")
register_solver("search", solve_by_search, "values", "a search that reads values alone")


def solver_for(name: str, promise: Promise) -> str:
    """The solver to use: the named one if it can solve under this promise, for "auto" the best that can."""
    one_of(name, "solver", ("auto", *SOLVERS))
    best = next(solver.name for solver in SOLVERS.values() if solver.suits(promise))
    if name == "auto":
        return best
    cuts = SOLVERS[name].needs == "cuts"
    searching, personal = isinstance(promise, Learning) and not cuts, isinstance(promise, PerPerson) and not cuts
    if searching or personal or not SOLVERS[name].suits(promise):
        reason = (
            "whose every reading is a search, and this solver would ask thousands of them"
            if searching
            else "which is another one for each person"
            if isinstance(promise, PerPerson)
            else "which has no cuts"
            if promise.smooth
            else "which rests on no trees that can be read"
            if SOLVERS[name].needs == "trees"
            else "which has no slopes"
        )
        raise OptionError(
            f"Expected solver={best!r} for the promise {promise.name!r}, {reason}, got {name!r}; leave it to 'auto'."
        )
    return name


@dataclass(frozen=True)
class Solver:
    """A named solver with what it may need besides the problem: the training rows to search near, and a seed."""

    name: str
    train: TrainingSet
    seed: int = 0

    def __call__(self, promise: Promise, master: Master, delta: float, progress: Progress | None = None) -> Solution:
        """The cheapest points found with ``promise >= delta``."""
        if not len(master.X0):
            return Solution.blank(*master.X0.shape)
        if isinstance(promise, PerPerson):
            return _person_by_person(promise, master, delta, progress)
        solver = SOLVERS[self.name]
        searches = solver.needs in ("trees", "values")
        near: dict[str, Any] = {"anchors": self.train.X, "seed": self.seed} if searches else {}
        if solver.needs == "values" and promise.most_reads is not None:
            near["budget"] = promise.most_reads

        def solve(problem: Master, tell: Progress | None = None) -> Solution:
            return solver.solve(promise, problem, delta, progress=tell, **near)

        if isinstance(promise, Hardening):
            return hardened(promise, master, delta, solve, progress)
        return solve(master, progress)


def hardened(
    promise: Any, master: Master, delta: float, solve: Callable[..., Solution], progress: Progress | None = None
) -> Solution:
    """The solution after rounds of attack: whoever no longer holds once their point was attacked is solved for again.

    Who still does not after the last round keeps the point, and the gate will see to it. ``progress`` is told of all
    rounds as one; those that nobody needs any more are jumped.
    """
    first, *stages = in_turn(progress, [SOLVING, *(ATTACKING, SOLVING) * promise.rounds])
    solution = solve(master, first)
    for attacking, solving in zip(stages[::2], stages[1::2], strict=True):
        found = np.flatnonzero(solution.outcomes == Outcome.FOUND)
        promise.harden(solution.points[found], *([] if attacking is None else [attacking]))
        reading = promise.read(solution.points[found])
        solution.values[found] = reading.foreseen
        broken = found[reading.foreseen < delta + GUARD / 2]
        if not len(broken):
            break
        again = solve(master.of(broken), solving)
        for place, person in enumerate(broken):
            solution.take(int(person), again.only(place))
    if progress is not None:
        progress(STEPS, STEPS)
    return solution


def _person_by_person(promise: PerPerson, master: Master, delta: float, progress: Progress | None) -> Solution:
    solution = Solution.blank(*master.X0.shape)
    for person in range(len(master.X0)):
        own = promise.for_person(master.X0[person])
        if own is not None:
            alone = master.of(np.array([person]))
            accepted = _accepted_with_a_margin if alone.mixed[0] else _accepted_on_the_line
            solution.take(person, accepted(promise.model, own, alone, solve_by_cuts(own, alone, delta), delta))
        if progress is not None:
            progress(person + 1, len(master.X0))
    return solution


def _accepted_with_a_margin(model: Refittable, own: Promise, alone: Master, found: Solution, delta: float) -> Solution:
    """One person's solution where nothing lies between allowed points: solved again with growing margins."""
    if found.outcomes[0] is not Outcome.FOUND:
        return found
    first = abs(float(found.values[0] - Plain(model).read(found.points).values[0])) + GUARD
    for margin in (0.0, *(first * 2.0**doubling for doubling in range(MARGINS))):
        again = solve_by_cuts(own, alone, delta + margin) if margin else found
        if again.outcomes[0] is Outcome.FOUND and Plain(model).read(again.points).values[0] >= delta + GUARD / 2:
            return again
    return found.given_up()


def _accepted_on_the_line(model: Refittable, own: Promise, alone: Master, found: Solution, delta: float) -> Solution:
    """One person's solution, moved on along its line until the model itself accepts it too; given up if none does."""
    if found.outcomes[0] is not Outcome.FOUND:
        return found
    shares = np.exp(np.arange(0.0, np.log(FARTHEST), np.log(FARTHER)))[:, None]
    line = alone.allowed.clip(alone.X0 + shares * (found.points - alone.X0))
    good = Plain(model).read(line).values >= delta + GUARD / 2
    good &= alone.allowed.of(np.zeros(len(line), int)).holds(line)
    good &= np.array([own.read(point[None]).values[0] >= delta for point in line]) if good.any() else False
    if not good.any():
        return found.given_up()
    first = int(np.argmax(good))
    reading = own.read(line[[first]])
    found.points[0], found.values[0], found.worst_ids[0] = line[first], reading.values[0], reading.worst_ids(0)
    return found
