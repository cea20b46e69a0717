"""The master problem of one person as a mixed-integer program, solved by HiGHS.

Columns that may move become variables: a whole number of steps where values are stepped (0/1 for answers and
categories), a number of ``scale`` otherwise; where the own value is between two steps, a 0/1 variable chooses between
it and the steps. One-hot groups sum to one, relations and cuts are rows, and where the number of changes is limited a
0/1 variable for each attribute says whether it may move.

Prices are linear in these variables; a curved price (percentiles) takes a 0/1 variable wherever it falls. The square of
an L2 cost and the parts of a convex one are approached from below by lines ``q_j >= line(u_j)``: exact for answers and
categories, whose move has one length; elsewhere added where they are missing (outer approximation). Each point found
gives an upper bound (for L2 after fixing all whole numbers and projecting); when both bounds meet, the point is
optimal. What is left is the *gap*.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from rocerf.models.additive import AdditiveDesign
from rocerf.recourse.costs.cost import Cost, Norm
from rocerf.recourse.master.cells import Cells
from rocerf.recourse.master.feasible_set import FeasibleSet
from rocerf.recourse.master.mixed_program import NO_GAP, Program
from rocerf.recourse.master.projection import project
from rocerf.types import Array

#: Bounds that differ by less than this share of the cost count as met.
GAP = 1e-6

#: Rounds of outer approximation, with projections (L2) and without.
ROUNDS, ROUNDS_ALONE = 40, 200

#: Steps of a column at which a cost has a line from the start, in both directions.
FIRST_LINES = (0.1, 0.3, 1.0, 3.0)

#: Points found for other cuts whose lines are kept.
KEPT_LINES = 6

#: How far from the person to look first, in scales of a column; farther only where that may bring something cheaper.
NEAR, FARTHER = 10.0, 16.0

#: With further cuts the cheapest point lies somewhat farther than it did: so many times as far to look for it first.
FURTHER_NEXT = 1.5

#: How often cells that hold several pieces are divided at most.
DIVISIONS = 100

#: How far a point that misses cuts is moved on, in shares of its way, and by what a reach that is too far shrinks.
PUSHES, SHRINK = (0.0, 1e-4, 1e-3, 3e-3, 0.01, 0.03, 0.1, 0.2, 0.4, 0.7, 1.0), 0.8

#: A point may miss a cut by this much, in units of the score: a quarter of the guard by which points clear promises.
MISS = 2.5e-7


@dataclass(frozen=True, eq=False)
class Found:
    """One person's point (d,), whether there is one, whether the search failed, and the relative gap."""

    point: Array
    found: bool
    failed: bool = False
    gap: float = 0.0


class MixedProblem:
    """Person ``person`` of the master problem.

    >>> from rocerf.data.schema import FeatureSchema
    >>> from rocerf.recourse.costs.norms import NormCost
    >>> schema = FeatureSchema.free(["a", "b"]).edit("a", kind="integer")
    >>> X0 = np.array([[0.0, 0.0]])
    >>> problem = MixedProblem(0, X0, NormCost(Norm.L1, np.ones(2)), FeasibleSet.around(X0, schema), 100.0)
    >>> problem.cheapest(np.array([[2.0, 1.0]]), np.array([0.0]), 3.0).point.tolist()  # 2 a + b >= 3
    [1.0, 1.0]
    """

    def __init__(
        self,
        person: int,
        X0: Array,
        cost: Cost,
        allowed: FeasibleSet,
        reach: float,
        lift: AdditiveDesign | None = None,
    ) -> None:
        self.one = np.array([person])
        self.allowed = allowed.of(self.one)
        self.cost, self.x0 = cost, X0[person]
        self.reach = reach
        self.d = len(self.x0)
        self.lift = lift
        self.cells = None if lift is None else Cells(lift, self.x0, self.allowed.stepped[0])
        #: How far to look first, and what was found last.
        self.near, self.last = NEAR, None if lift is None else self.x0
        #: Steps (d,) at which lines touch the cost: below it whatever the cuts and cells are, so that they are kept.
        self.touched = [np.full(self.d, sign * step) for step in FIRST_LINES for sign in (-1.0, 1.0)]

    def cheapest(self, slopes: Array, constants: Array, target: float) -> Found:
        """The cheapest allowed point with ``slopes x + constants >= target``; slopes (m, d), constants (m,).

        With a lift slopes are (m, D), and x is lifted.
        """
        nowhere = Found(np.full(self.d, np.nan), False)
        if self.allowed.empty[0]:
            return nowhere
        aims = target - constants
        deeper = 0
        self._begin()
        for _ in range(DIVISIONS):
            found = self._solve(slopes, aims)
            if not found.found:
                return found
            missed = self._missed(found.point, slopes, target - constants)
            if (missed <= MISS).all():
                self.last = found.point
                return found
            if self.cells is not None and self.cells.divide(found.point):
                continue
            deeper += 1
            if deeper == 4:
                break
            # HiGHS is content with rows met to its tolerance; whole numbers cannot be moved a little afterwards.
            aims = aims + np.where(missed > MISS, 2.0 * missed, 0.0)
        return Found(nowhere.point, False, failed=True)

    def _begin(self) -> None:
        """What was learnt for other cuts is kept as far as it is near the point found then: all of it would be slow."""
        del self.touched[2 * len(FIRST_LINES) : -KEPT_LINES]
        if self.cells is not None:
            self.cells.begin(self.last)

    def _missed(self, point: Array, slopes: Array, aims: Array) -> Array:
        """By how much a point (d,) misses cuts ``slopes x >= aims``, (m,)."""
        lifted = point if self.lift is None else self.lift.lifted(point[None])[0]
        return np.asarray(aims - slopes @ lifted)

    def _divided_at(self, points: list[Array], slopes: Array, aims: Array) -> bool:
        """Divide the cells at those points that miss a cut because of them; whether there was any."""
        if self.cells is None:
            return False
        missing = [point for point in points if (self._missed(point, slopes, aims) > MISS).any()]
        divided = [self.cells.divide(point) for point in missing]  # at all of them
        return any(divided)

    def _solve(self, slopes: Array, aims: Array) -> Found:
        """Near the person first: wide ranges make HiGHS slow and, beside 0/1 variables, at times wrong."""
        reach = min(self.near, self.reach)
        found = self._solve_within(reach, slopes, aims)
        while not found.found and reach < self.reach and len(self._sides(reach)):
            reach = min(FARTHER * reach, self.reach)
            found = self._solve_within(reach, slopes, aims)
        needed = self._reach_needed(found.point, reach) if found.found else reach
        if needed != reach and self.cells is not None:  # divided and asked again, it would be so once more
            self.near = needed
        again = self._solve_within(needed, slopes, aims) if needed != reach else found
        return again if again.found else found

    def _sides(self, reach: float) -> Array:
        """Points (s, d) that move by the reach in one column, for each side to which more is allowed."""
        moves = np.concatenate([np.diag(-reach * self.cost.scale), np.diag(reach * self.cost.scale)])
        beyond = np.concatenate([self.allowed.lower[0], -self.allowed.upper[0]])
        ends = np.concatenate([self.x0, -self.x0]) - reach * np.tile(self.cost.scale, 2)
        return np.asarray((self.x0 + moves)[(beyond < ends) & np.tile(self.allowed.movable[0], 2)])

    def _reach_needed(self, point: Array, reach: float) -> float:
        """A reach, of at least the given one, beyond which every point costs at least what this one does."""
        cost = float(self.cost.of(point[None], self.x0[None])[0])
        while reach < self.reach:
            sides = self._sides(reach)
            if (self.cost.of(sides, np.broadcast_to(self.x0, sides.shape)) >= cost).all():
                break
            reach = min(2.0 * reach, self.reach)
        return reach

    def _solve_within(self, reach: float, slopes: Array, aims: Array) -> Found:
        if self.cost.norm is not Norm.L1:
            return self._outer_approximation(reach, slopes, aims)
        program = self._program(reach, slopes, aims)
        solved = program.solve()
        if solved is None:
            return Found(np.full(self.d, np.nan), False, failed=program.failed)
        point = program.polished(solved) if program.continuous.any() else program.point(solved)
        price = self._price(point)
        unsure = 1.0 - max(program.bound, 0.0) / price if price > 0 else 0.0  # what the program itself may have missed
        return Found(point, True, gap=max(program.gap, unsure if unsure > NO_GAP else 0.0))

    def _program(self, reach: float, slopes: Array, aims: Array) -> Program:
        program = Program(self.x0, self.cost, self.allowed, reach, self.cells)
        program.add_cuts(slopes, aims)
        if self.cost.norm is not Norm.L1:
            for steps in self.touched:
                program.add_lines(steps)
        return program

    def _touch(self, program: Program, points: list[Array]) -> None:
        """Lines that touch the cost at these points, now and in programs to come."""
        for point in points:
            steps = (point - self.x0) / self.cost.scale
            program.add_lines(steps)
            self.touched.append(steps)

    def _outer_approximation(self, reach: float, slopes: Array, aims: Array) -> Found:
        """Cells are divided on the way: nothing is gained by an exact cost of a point that misses a cut for them."""
        program = self._program(reach, slopes, aims)
        best, best_cost, bound = np.full(self.d, np.nan), np.inf, 0.0
        projects = self.cost.norm is Norm.L2
        power, left, divisions = (2, ROUNDS, DIVISIONS) if projects else (1, ROUNDS_ALONE, DIVISIONS)
        while left:
            solved = program.solve()
            if solved is None:
                if np.isfinite(best_cost):
                    break
                return Found(best, False, failed=program.failed)
            bound = max(bound, program.bound)
            rough = program.point(solved)
            point = self._projected(program, solved, rough, slopes, aims) if projects else rough
            tried = [rough] if point is None or point is rough else [point, rough]
            pushed = self._pushed(tried[0], slopes, aims)
            if pushed is not None and self._price(pushed) < best_cost:
                best, best_cost = pushed, self._price(pushed)
                reach = self._reach_of(best_cost if power == 1 else np.sqrt(best_cost), reach)
            if divisions and self._divided_at(tried, slopes, aims):
                divisions -= 1
                self._touch(program, tried)
                program = self._program(reach, slopes, aims)
                continue
            left -= 1
            if point is not None and self._price(point) < best_cost:
                best, best_cost = point, self._price(point)
            self._touch(program, tried)
            if best_cost - bound <= power * GAP * best_cost + 1e-15:
                break
        if not np.isfinite(best_cost):
            return Found(best, False, failed=True)
        self.near = min(NEAR, FURTHER_NEXT * reach)
        gap = max(0.0, 1.0 - (max(bound, 0.0) / best_cost) ** (1 / power)) if best_cost > 0 else 0.0
        return Found(best, True, gap=float(gap) if gap > GAP else 0.0)

    def _price(self, point: Array) -> float:
        """What the parts of the cost add up to: of an L2 cost its square."""
        steps = (point - self.x0) / self.cost.scale
        return float(self.cost.parts(steps[None], self.x0[None]).sum())

    def _pushed(self, point: Array, slopes: Array, aims: Array) -> Array | None:
        """The point, moved on in its continuous columns until it meets all cuts; None where that does not come to pass.

        It need not be the cheapest: it says how far from the person nobody has to look.
        """
        free = self.allowed.movable[0] & ~self.allowed.stepped[0] & ~self.allowed.loose[0]
        for more in PUSHES:
            onwards = np.where(free, point + more * (point - self.x0), point)
            onwards = np.clip(onwards, self.allowed.lower[0], self.allowed.upper[0])
            if (self._missed(onwards, slopes, aims) <= 0).all():
                return onwards if self.allowed.holds(onwards[None])[0] else None
        return None

    def _reach_of(self, cost: float, reach: float) -> float:
        """A reach not above the given one, beyond which every point costs more than ``cost``."""
        while True:
            sides = self._sides(SHRINK * reach)
            if not len(sides) or not (self.cost.of(sides, np.broadcast_to(self.x0, sides.shape)) > cost).all():
                return reach
            reach *= SHRINK

    def _projected(self, program: Program, solved: Array, rough: Array, slopes: Array, aims: Array) -> Array | None:
        """The nearest point with the whole numbers, and what does not change, of ``rough``, which ``solved`` (z) is."""
        held = ~program.continuous | (rough == self.x0)
        scale, rules = self.cost.scale, self.allowed.rules
        slopes, constants, least, most = program.local(solved, slopes)
        aims = aims - constants
        lower = np.where(
            held, rough, np.maximum(np.maximum(self.allowed.lower[0], least), self.x0 - self.reach * scale)
        )
        upper = np.where(held, rough, np.minimum(np.minimum(self.allowed.upper[0], most), self.x0 + self.reach * scale))
        if held.all():
            return rough
        normals, offsets = slopes * scale, aims - slopes @ self.x0
        if rules is not None and len(rules.limits):
            related, beyond = rules.half_spaces(self.x0[None], scale)
            normals, offsets = np.vstack([normals, related]), np.concatenate([offsets, beyond[0]])
        low, high = (lower - self.x0) / scale, (upper - self.x0) / scale
        answer = project(normals[None], offsets[None], low[None], high[None])
        if not answer.feasible[0]:
            return None
        steps = answer.points[0]
        point = np.where(held, rough, np.where(steps == 0.0, self.x0, self.x0 + scale * steps))
        return np.clip(point, lower, upper)
