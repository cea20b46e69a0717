"""The master problem: the cheapest allowed point on the right side of a set of cuts.

Works in *steps* ``u = (x - x0) / scale``, in which the person stands at 0. Where every point of the box is allowed, L2
is a projection, for all people at once, and prices are a linear program, many people in one; relations between columns
are further half-spaces. Steps, categories, limits on what may change and curved prices make it a mixed-integer program
for each person, and so do convex costs known by their slopes (:mod:`rocerf.recourse.master.mixed`).
"""

from __future__ import annotations

from dataclasses import dataclass, field
from functools import cached_property

import numpy as np

from rocerf.models.additive import AdditiveDesign
from rocerf.progress import tell_of_piece
from rocerf.recourse.costs.cost import Cost, Norm
from rocerf.recourse.master.feasible_set import FeasibleSet
from rocerf.recourse.master.highs import minimised
from rocerf.recourse.master.mixed import MixedProblem
from rocerf.recourse.master.projection import project
from rocerf.types import Array, Mask, Places

#: Nobody moves a column further than this many of its standard deviations. It makes every problem bounded, so that
#: contradictory cuts are recognised as such.
REACH = 1e4

#: An offset that no point within reach satisfies.
UNREACHABLE = 1e15

#: People joined in one linear program.
LP_BLOCK = 32


@dataclass(frozen=True, eq=False)
class Cheapest:
    """Answers of the master problem for Q people.

    ``points`` (Q, d); ``found`` (Q,) whether there is one; ``failed`` (Q,) whether the search for it failed, so that
    "none" is not known; ``gaps`` (Q,) by which share of the cost a cheaper point is not excluded.
    """

    points: Array
    found: Mask
    failed: Mask
    gaps: Array

    @classmethod
    def blank(cls, people: int, d: int) -> Cheapest:
        """Nobody found yet."""
        none = np.zeros(people, bool)
        return cls(np.full((people, d), np.nan), none, none.copy(), np.zeros(people))

    def put(self, places: Places, part: Cheapest) -> None:
        """Take over the answers of some people."""
        self.points[places], self.found[places] = part.points, part.found
        self.failed[places], self.gaps[places] = part.failed, part.gaps


@dataclass(frozen=True, eq=False)
class Master:
    """The problem of P people: where they stand, what moves cost, and where they may go.

    With a ``lift``, cuts are about lifted points, and columns that have pieces there are chosen piece by piece.
    """

    X0: Array
    cost: Cost
    allowed: FeasibleSet
    lift: AdditiveDesign | None = None
    #: Mixed problems by person, kept from one set of cuts to the next: what they learnt of cost and cells holds there.
    problems: dict[int, MixedProblem] = field(default_factory=dict, repr=False)

    @classmethod
    def over(cls, X0: Array, cost: Cost, allowed: FeasibleSet, lift: AdditiveDesign | None = None) -> Master:
        """With the moves closed whose price is infinite, and those to where it is not known what a column adds."""
        allowed = allowed.affordable(*cost.prices(X0))
        return cls(X0, cost, allowed if lift is None else allowed.within(*lift.bounds(X0)), lift)

    def of(self, people: Places) -> Master:
        """The problem of these people alone."""
        return Master(self.X0[people], self.cost, self.allowed.of(people), self.lift)

    @cached_property
    def mixed(self) -> Mask:
        """People whose problem is a mixed-integer program, (P,)."""
        if self.lift is not None:
            return np.ones(len(self.X0), bool)
        curved = np.array([self.cost.curve(column) is not None for column in range(self.X0.shape[1])])
        return np.asarray(self.allowed.mixed | (self.allowed.movable & curved).any(axis=1))

    def possible(self, person: int) -> bool:
        """Whether a point is allowed for a person, whatever the model says; a search that failed shows no "no"."""
        d = self.X0.shape[1] if self.lift is None else len(self.lift.shift)
        answer = self.cheapest(np.array([person]), np.zeros((1, 0, d)), np.zeros((1, 0)), 0.0)
        return bool(answer.found[0] or answer.failed[0])

    def cheapest(self, people: Places, slopes: Array, constants: Array, target: float) -> Cheapest:
        """The cheapest allowed points with ``slopes'x + constants >= target`` for these people.

        ``people`` (Q,) selects among the P; slopes (Q, m, d) and constants (Q, m) are in schema space, or (Q, m, D) in
        lifted space where there is a ``lift``; all-zero slopes with an infinite constant stand for "no cut".
        """
        answer = Cheapest.blank(len(people), self.X0.shape[1])
        mixed = self.mixed[people] | (self.cost.norm is Norm.CONVEX)
        plain = np.flatnonzero(~mixed)
        if len(plain):
            answer.put(plain, self._convex(people[plain], slopes[plain], constants[plain], target))
        apart = np.flatnonzero(mixed)
        for number, place in enumerate(apart, start=1):
            problem = self._problem(int(people[place]))
            real = ~np.isposinf(constants[place])
            found = problem.cheapest(slopes[place, real], constants[place, real], target)
            answer.points[place], answer.gaps[place] = found.point, found.gap
            answer.found[place], answer.failed[place] = found.found, found.failed
            tell_of_piece("cheapest points", number, len(apart))
        return answer

    def _problem(self, person: int) -> MixedProblem:
        if self.lift is None:
            return MixedProblem(person, self.X0, self.cost, self.allowed, REACH)
        if person not in self.problems:
            self.problems[person] = MixedProblem(person, self.X0, self.cost, self.allowed, REACH, self.lift)
        return self.problems[person]

    def _convex(self, people: Places, slopes: Array, constants: Array, target: float) -> Cheapest:
        x0, scale = self.X0[people], self.cost.scale
        lower = np.maximum((self.allowed.lower[people] - x0) / scale, -REACH)
        upper = np.minimum((self.allowed.upper[people] - x0) / scale, REACH)
        offsets = target - constants - (slopes @ x0[:, :, None])[:, :, 0]
        offsets = np.where(np.isposinf(constants), -1.0, np.minimum(offsets, UNREACHABLE))
        normals = slopes * scale
        rules = self.allowed.rules
        if rules is not None and len(rules.limits):
            related, beyond = rules.half_spaces(x0, scale)
            normals = np.concatenate([normals, np.broadcast_to(related, (len(people), *related.shape))], axis=1)
            offsets = np.concatenate([offsets, beyond], axis=1)
        if self.cost.norm is Norm.L2:
            projection = project(normals, offsets, lower, upper)
            steps, found, failed = projection.points, projection.feasible, projection.failed
        else:
            up, down = self.cost.prices(x0)
            steps, found, failed = _linear_programs(normals, offsets, lower, upper, up * scale, down * scale)
        # Back in the user's units a fixed column must be the person's own value to the last digit.
        points = np.where(steps == 0.0, x0, x0 + scale * steps)
        points = np.clip(points, self.allowed.lower[people], self.allowed.upper[people])
        return Cheapest(points, found, failed, np.zeros(len(people)))


def _linear_programs(
    normals: Array, offsets: Array, lower: Array, upper: Array, up: Array, down: Array
) -> tuple[Array, Mask, Mask]:
    """``min sum up u+ + down u-`` under cuts and box for each of Q people."""
    steps = np.full(lower.shape, np.nan)
    found, failed = np.zeros(len(lower), dtype=bool), np.zeros(len(lower), dtype=bool)
    reach = np.maximum(normals * lower[:, None, :], normals * upper[:, None, :]).sum(axis=2)
    possible = np.flatnonzero(
        (lower <= upper).all(axis=1) & (reach >= offsets - 1e-9 * (1 + np.abs(offsets))).all(axis=1)
    )
    up, down = (np.where(np.isfinite(prices), prices, 0.0) for prices in (up, down))  # closed by the box
    for start in range(0, len(possible), LP_BLOCK):
        block = possible[start : start + LP_BLOCK]
        prices = (up[block], down[block])
        solved, _ = _joint_program(normals[block], offsets[block], lower[block], upper[block], *prices)
        if solved is not None:
            steps[block], found[block] = solved, True
            continue
        for person in block:  # somebody in the block has no solution: find out who
            one = slice(person, person + 1)
            alone, failed[person] = _joint_program(
                normals[one], offsets[one], lower[one], upper[one], up[one], down[one]
            )
            if alone is not None:
                steps[one], found[person] = alone, True
    return steps, found, failed


def _joint_program(
    normals: Array, offsets: Array, lower: Array, upper: Array, up: Array, down: Array
) -> tuple[Array | None, bool]:
    """One block-diagonal program for Q people in ``u = up - down``; None if none was found; whether HiGHS failed."""
    from scipy.sparse import block_diag, hstack

    cuts = block_diag(list(normals), format="csr")
    answer = minimised(
        np.concatenate([up.ravel(), down.ravel()]),
        (
            np.concatenate([np.maximum(lower, 0.0).ravel(), np.maximum(-upper, 0.0).ravel()]),
            np.concatenate([np.maximum(upper, 0.0).ravel(), np.maximum(-lower, 0.0).ravel()]),
        ),
        hstack([-cuts, cuts], format="csr"),
        (np.full(offsets.size, -np.inf), -offsets.ravel()),
        dual_feasibility_tolerance=1e-9,
    )
    if answer.values is None:
        return None, not answer.infeasible
    more, less = answer.values.reshape(2, *lower.shape)
    return more - less, False
