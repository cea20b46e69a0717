"""The master problem: the cheapest allowed point on the right side of a set of cuts.

Works in *steps* ``u = (x - x0) / scale``, in which the person stands at 0 and cost is a plain norm.
L2 is a projection, for all people at once; L1 is a linear program, many people in one.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from rocerf.recourse.cost import Cost, Norm
from rocerf.recourse.feasible_set import FeasibleSet
from rocerf.recourse.projection import project

Array = NDArray[np.float64]
Mask = NDArray[np.bool_]

#: Nobody moves a column further than this many of its standard deviations. It makes every
#: problem bounded, so that contradictory cuts are recognised as such.
REACH = 1e4

#: An offset that no point within reach satisfies.
UNREACHABLE = 1e15

#: SciPy's code for a linear program without a feasible point.
HIGHS_INFEASIBLE = 2

#: People joined in one linear program.
LP_BLOCK = 32


@dataclass(frozen=True, eq=False)
class Master:
    """The problem of P people: where they stand, what moves cost, and where they may go."""

    X0: Array
    cost: Cost
    allowed: FeasibleSet

    def of(self, people: NDArray[np.intp]) -> Master:
        """The problem of these people alone."""
        return Master(self.X0[people], self.cost, FeasibleSet(self.allowed.lower[people], self.allowed.upper[people]))

    def cheapest(
        self, people: NDArray[np.intp], slopes: Array, constants: Array, target: float
    ) -> tuple[Array, Mask, Mask]:
        """The cheapest allowed points with ``slopes'x + constants >= target`` for these people.

        ``people`` (Q,) selects among the P; slopes (Q, m, d) and constants (Q, m) are in schema space;
        all-zero slopes with an infinite constant stand for "no cut". Returns points (Q, d), whether there is one
        (Q,), and whether the search for it failed (Q,), so that "none" is not known.
        """
        x0, scale = self.X0[people], self.cost.scale
        lower = np.maximum((self.allowed.lower[people] - x0) / scale, -REACH)
        upper = np.minimum((self.allowed.upper[people] - x0) / scale, REACH)
        offsets = target - constants - (slopes @ x0[:, :, None])[:, :, 0]
        offsets = np.where(np.isposinf(constants), -1.0, np.minimum(offsets, UNREACHABLE))
        normals = slopes * scale
        if self.cost.norm is Norm.L2:
            projection = project(normals, offsets, lower, upper)
            steps, found, failed = projection.points, projection.feasible, projection.failed
        else:
            steps, found, failed = _linear_programs(normals, offsets, lower, upper)
        # Back in the user's units a fixed column must be the person's own value to the last digit.
        points = np.where(steps == 0.0, x0, x0 + scale * steps)
        return np.clip(points, self.allowed.lower[people], self.allowed.upper[people]), found, failed


def _linear_programs(normals: Array, offsets: Array, lower: Array, upper: Array) -> tuple[Array, Mask, Mask]:
    """``min sum|u|`` under cuts and box for each of Q people."""
    steps = np.full(lower.shape, np.nan)
    found, failed = np.zeros(len(lower), dtype=bool), np.zeros(len(lower), dtype=bool)
    reach = np.maximum(normals * lower[:, None, :], normals * upper[:, None, :]).sum(axis=2)
    possible = np.flatnonzero(
        (lower <= upper).all(axis=1) & (reach >= offsets - 1e-9 * (1 + np.abs(offsets))).all(axis=1)
    )
    for start in range(0, len(possible), LP_BLOCK):
        block = possible[start : start + LP_BLOCK]
        solved, _ = _joint_program(normals[block], offsets[block], lower[block], upper[block])
        if solved is not None:
            steps[block], found[block] = solved, True
            continue
        for person in block:  # somebody in the block has no solution: find out who
            one = slice(person, person + 1)
            alone, failed[person] = _joint_program(normals[one], offsets[one], lower[one], upper[one])
            if alone is not None:
                steps[one], found[person] = alone, True
    return steps, found, failed


def _joint_program(normals: Array, offsets: Array, lower: Array, upper: Array) -> tuple[Array | None, bool]:
    """One block-diagonal program for Q people in ``u = up - down``; None if none was found; whether HiGHS failed."""
    from scipy.optimize import linprog
    from scipy.sparse import block_diag, hstack

    cuts = block_diag(list(normals), format="csr")
    bounds = np.concatenate(
        [
            np.stack([np.maximum(lower, 0.0), np.maximum(upper, 0.0)], axis=-1).reshape(-1, 2),
            np.stack([np.maximum(-upper, 0.0), np.maximum(-lower, 0.0)], axis=-1).reshape(-1, 2),
        ]
    )
    size = lower.size
    result = linprog(
        np.ones(2 * size),
        A_ub=hstack([-cuts, cuts], format="csr"),
        b_ub=-offsets.ravel(),
        bounds=bounds,
        method="highs",
        # Tighter than the guard by which points clear their promise.
        options={"primal_feasibility_tolerance": 1e-9, "dual_feasibility_tolerance": 1e-9},
    )
    if result.status != 0:
        return None, result.status != HIGHS_INFEASIBLE
    return np.asarray(result.x[:size] - result.x[size:]).reshape(lower.shape), False
