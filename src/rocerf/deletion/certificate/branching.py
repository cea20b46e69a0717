"""Branching on dangerous rows: exact where they are deleted, an interval bound elsewhere."""

from __future__ import annotations

import time
from dataclasses import replace

import numpy as np
from scipy.special import expit

from rocerf.deletion.certificate.bound_pieces import CutsPiece, Piece
from rocerf.deletion.certificate.curvature_bounds import Array, Indices
from rocerf.deletion.certificate.exact_deletions import delete_row, rows_to_delete, single_deletions
from rocerf.deletion.certificate.options import Effort, Options
from rocerf.deletion.certificate.problem import Problem, White, whiten
from rocerf.deletion.certificate.sharp_bound import Sample, close_box, interval_on_box, sharp_piece


class Tree:
    """Branching on dangerous rows: exact where they are deleted, an interval bound elsewhere.

    With rows ``i_1, i_2, ..`` in any order, the deletions of at most k rows split into those that
    avoid ``i_1..i_R`` altogether and, for each r, those that contain ``i_r`` and none of the rows
    before it. The first family is bounded by the sharp bound with these rows undeletable; each
    other family is the same problem again, at the model retrained without ``i_r``, for k - 1.
    """

    def __init__(self, options: Options, effort: Effort):
        self.options = options
        self.effort = replace(effort, spread_limit=2 * options.spread_goal)
        self.pieces: list[Piece] = []
        self.reason, self.nodes = "", 0
        self.usual: dict[int, int] = {}  # undeletable dangerous rows when k last closed
        self.until = time.perf_counter() + options.seconds

    def cover(self, problem: Problem, depth: int = 0, guess: tuple[Array, Array] | None = None) -> bool:
        """Append pieces that cover all deletions of the problem; False if that fails.

        ``depth`` rows are already undeletable on the way here; ``guess`` is a box to start from.
        """
        self.nodes += 1
        if self.nodes > self.options.branch_nodes or time.perf_counter() > self.until:
            self.reason = f"gave up branching after {self.nodes - 1} nodes"
            return False
        white = whiten(problem)
        if white is None:
            self.reason = "after some deletion the Hessian is singular to working precision"
            return False
        if problem.k <= 1:
            return self._exactly(white)
        order = _dangerous_first(white)
        avoided = self._avoiding(white, order, depth, guess)
        if avoided is None:
            self.reason = "the bound does not close, even with many rows branched on"
            return False
        return self._deleting(problem, order[: avoided[0]], depth, avoided[1])

    def _deleting(self, problem: Problem, rows: Indices, depth: int, box: tuple[Array, Array]) -> bool:
        """Cover the deletions that contain one of these rows, each together with none of those before it."""
        deletable = problem.deletable.copy()
        for at, row in enumerate(rows):
            child = delete_row(replace(problem, deletable=deletable.copy()), int(row))
            deletable[row] = False
            if child is None:
                self.reason = "after some deletion the model has no optimum"
                return False
            if not self.cover(child, depth + at, _scaled(box, 1.1 * child.k / problem.k)):
                return False
        return True

    def _exactly(self, white: White) -> bool:
        cuts = single_deletions(white)
        if cuts is None:
            self.reason = "after some deletion the model has no usable optimum"
            return False
        self.pieces.extend(condense(white, cuts))
        return True

    def _avoiding(
        self, white: White, order: Indices, depth: int, guess: tuple[Array, Array] | None
    ) -> tuple[int, tuple[Array, Array]] | None:
        """Close the box with the first R dangerous rows undeletable; return R and the box.

        R starts where the last problem with the same k closed, counting rows that are already
        undeletable, and grows from there.
        """
        k = white.problem.k
        usual = self.usual.get(k, 0) - depth
        steps = [0, *np.add.accumulate(np.arange(3, 30, 2)).tolist()]
        for step in [s for s in steps if s >= usual - 2]:
            count = min(step, len(order))
            deletable = white.problem.deletable.copy()
            deletable[order[:count]] = False
            part = replace(white, problem=replace(white.problem, deletable=deletable))
            box = close_box(part, self.effort, guess)
            if box is not None and box[2].spread <= self.options.spread_goal:
                self.pieces.append(sharp_piece(part, box[2]))
                self.usual[k] = depth + count
                return count, (box[0], box[1])
            if count == len(order):
                break
        return None


def _scaled(box: tuple[Array, Array], factor: float) -> tuple[Array, Array]:
    return box[0] * factor, box[1] * factor


def condense(white: White, cuts: CutsPiece, most: int = 96) -> list[Piece]:
    """Replace the many cuts of small moves by one sharp piece, to save memory.

    The retrained models are known, so the hull of their moves (widened by their errors) is a box
    that contains them: the sharp bound applies on it without any closing argument.
    """
    problem = white.problem
    if len(cuts.thetas) <= 2 * most:
        return [cuts]
    rows = rows_to_delete(problem)  # in the order of cuts.thetas[1:]
    moves = (cuts.thetas[1:] - problem.theta) @ problem.design.T
    size = np.abs(moves * np.sqrt(white.slope)).sum(axis=1)
    order = np.argsort(-size)
    far, near = order[:most], order[most:]
    widened = white.norms * float(cuts.error.max()) + 1e-9
    deletable = np.zeros_like(problem.deletable)
    deletable[rows[near]] = True
    part = replace(white, problem=replace(problem, deletable=deletable))
    down = np.maximum(-moves[near].min(axis=0), 0.0) + widened
    up = np.maximum(moves[near].max(axis=0), 0.0) + widened
    interval = interval_on_box(part, down, up, Sample(np.arange(len(white.z)), None), 1.0)
    if interval is None:
        return [cuts]
    exact = CutsPiece(cuts.thetas[1:][far], cuts.error[1:][far], cuts.to_norm)
    return [exact, sharp_piece(part, interval)]


def _dangerous_first(white: White) -> Indices:
    """Order the deletable rows by the norm of what their deletion may push, most first.

    The residual is taken where the model has already moved twice the row's norm against it:
    groups of rows of a rare category are harmless one by one and not together.
    """
    problem = white.problem
    push = problem.weight * white.norms * expit(problem.sign * white.z + 2 * white.norms)
    rows = np.flatnonzero(problem.deletable & (problem.weight > 0) & (white.norms > 0))
    return rows[np.argsort(-push[rows])]
