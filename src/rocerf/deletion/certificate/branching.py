"""Branching on dangerous rows: exact where they are deleted, an interval bound elsewhere."""

from __future__ import annotations

import time
from collections.abc import Iterator
from concurrent.futures import FIRST_COMPLETED, Future, ThreadPoolExecutor, wait
from dataclasses import dataclass, field, replace
from itertools import count, islice

import numpy as np

from rocerf.deletion.certificate.bound_pieces import CutsPiece, Piece, SharpPiece
from rocerf.deletion.certificate.checkpoint import Checkpoint
from rocerf.deletion.certificate.exact_deletions import delete_row, rows_to_delete, single_deletions
from rocerf.deletion.certificate.options import BoxEffort, Options
from rocerf.deletion.certificate.problem import Problem, White, whiten
from rocerf.deletion.certificate.sharp_bound import Sample, close_box, interval_on_box, sharp_piece
from rocerf.passes import workers
from rocerf.types import Array, Places

#: Numbers of undeletable rows that are tried, one after another.
_STEPS = (0, 3, 8, 15, 24, 35, 48, 63, 80, 99, 120, 143, 168, 195, 224)
#: Rows nearest to the decision boundary at which bounds are compared.
REFERENCE_POINTS = 32

_Part = tuple[Problem, int]


class Tree:
    """Branching on dangerous rows: exact where they are deleted, an interval bound elsewhere.

    With rows ``i_1, i_2, ..`` in any order, the deletions of at most k rows split into those that avoid ``i_1..i_R``
    altogether and, for each r, those that contain ``i_r`` and none of the rows before it. The first family is bounded
    by the sharp bound with these rows undeletable; each other family is the same problem again, at the model retrained
    without ``i_r``, for k - 1.

    The branches of the whole are independent: they are shared among the cores, and each is kept in the checkpoint.
    """

    def __init__(self, options: Options, effort: BoxEffort):
        self.options = options
        self.work = _Work(options, effort)
        self.pieces: list[Piece] = []
        self.reason = ""

    def cover(self, problem: Problem) -> bool:
        """Collect pieces that cover all deletions of the problem; False, with a reason, if that fails."""
        root = _Branch(self.work)
        self.work.refer_to(problem)
        parts = root.split(problem)
        if parts is not None:
            self.work.most = self.work.drop(root.pieces)
            found = self._all(list(parts), Checkpoint(self.options.checkpoint, problem, self.options))
            if found is not None:
                self.pieces = [*root.pieces, *(piece for at in range(len(found)) for piece in found[at])]
                return True
        self.reason = self.work.reason
        return False

    def _all(self, parts: list[_Part], kept: Checkpoint) -> dict[int, list[Piece]] | None:
        """The pieces of every branch, from the checkpoint or proven now; None as soon as one fails."""
        found = {at: pieces for at in range(len(parts)) if (pieces := kept.load(at)) is not None}
        todo = iter([at for at in range(len(parts)) if at not in found])
        progress = self.options.progress or (lambda done, of: None)
        progress(len(found), len(parts))
        with ThreadPoolExecutor(workers()) as pool:
            running: dict[Future[list[Piece] | None], int] = {}
            try:
                while True:
                    for at in islice(todo, workers() - len(running)):
                        running[pool.submit(self._one, parts[at])] = at
                    if not running:
                        return found
                    for future in wait(running, return_when=FIRST_COMPLETED).done:
                        at, pieces = running.pop(future), future.result()
                        if pieces is None:
                            return None
                        found[at] = pieces
                        kept.save(at, pieces)
                        progress(len(found), len(parts))
            finally:  # a failure, or Ctrl-C: what still runs looks at this and ends
                self.work.stopped = self.work.stopped or len(found) < len(parts)

    def _one(self, part: _Part) -> list[Piece] | None:
        branch = _Branch(self.work)
        return branch.pieces if branch.cover_without(*part) else None


class _Work:
    """What all branches share: how to search, when to stop, and how loose a piece may be."""

    def __init__(self, options: Options, effort: BoxEffort):
        self.options = options
        self.goals = (options.spread_goal, *options.looser_goals)
        shrink, passes = min(effort.shrink_passes, 3), min(effort.passes, 30)
        self.effort = replace(effort, shrink_passes=shrink, passes=passes, patience=3)
        self.until = time.perf_counter() + options.seconds
        self.most = -np.inf  # a piece that falls no further than this at the reference points is tight enough
        self.stopped, self.reason = False, ""
        self._counter = count(1)

    def refer_to(self, problem: Problem) -> None:
        """Measure pieces at the rows nearest to the decision boundary of the undeleted model."""
        self.rows, self.points = problem.rows, problem.nearest(REFERENCE_POINTS)
        self.scores = self.points @ problem.theta

    def drop(self, pieces: list[Piece]) -> float:
        """The mean drop at the reference points that the loosest of these pieces allows."""
        return max(float(np.mean(self.scores - piece.cheap_lower(self.points, self.rows))) for piece in pieces)

    def go_on(self) -> bool:
        """Count one more model; False once too many were looked at, the time is over, or another branch failed."""
        nodes = next(self._counter)
        if nodes > self.options.branch_nodes or time.perf_counter() > self.until:
            self.fail(f"gave up branching after {nodes - 1} nodes")
        return not self.stopped

    def fail(self, reason: str) -> None:
        """Stop all branches; the first reason is reported."""
        self.reason = self.reason or reason
        self.stopped = True


def _parts(problem: Problem, rows: Places) -> Iterator[_Part]:
    """For each row branched on, the problem in which it may be deleted and those before it may not; and the row."""
    for at, row in enumerate(rows):
        deletable = problem.deletable.copy()
        deletable[rows[:at]] = False
        yield replace(problem, deletable=deletable), int(row)


@dataclass
class _Branch:
    """One branch of the tree, worked through depth first."""

    work: _Work
    pieces: list[Piece] = field(default_factory=list)

    def cover(self, problem: Problem) -> bool:
        """Append pieces that cover all deletions of the problem; False if that fails."""
        parts = self.split(problem)
        return parts is not None and all(self.cover_without(*part) for part in parts)

    def cover_without(self, problem: Problem, row: int) -> bool:
        """Cover the deletions that contain this row: those of the model retrained without it."""
        child = delete_row(problem, row)
        if child is None:
            self.work.fail("after some deletion the model has no optimum")
            return False
        return self.cover(child)

    def split(self, problem: Problem) -> Iterator[_Part] | None:
        """Cover what avoids the dangerous rows, and say what is left to branch on; None if that fails."""
        if not self.work.go_on():
            return None
        white = whiten(problem)
        if white is None:
            self.work.fail("after some deletion the Hessian is singular to working precision")
            return None
        if problem.k <= 1:
            return iter(()) if self._exactly(white) else None
        return self._avoiding(white, _dangerous_first(white))

    def _exactly(self, white: White) -> bool:
        cuts = single_deletions(white)
        if cuts is None:
            self.work.fail("after some deletion the model has no usable optimum")
            return False
        self.pieces.extend(condense(white, cuts))
        return True

    def _avoiding(self, white: White, order: Places) -> Iterator[_Part] | None:
        """Close the box with the first R dangerous rows undeletable, R as small as the goals allow.

        A piece is tight enough if the interval of matrices is narrow, or if it is no looser than the piece of the whole
        tree's first split. Where no R gives that, the first looser goal that some R reached is taken.
        """
        problem = white.problem
        reached: dict[float, tuple[SharpPiece, int]] = {}
        start: Array | None = None
        for step in _STEPS:
            deletable = problem.deletable.copy()
            deletable[order[:step]] = False
            part = replace(white, problem=replace(problem, deletable=deletable))
            found = close_box(part, self.work.effort, start)
            if found is not None:
                box, interval = found
                piece = sharp_piece(part, interval)
                enough = self.work.drop([piece]) <= self.work.most
                for goal in self.work.goals:
                    if enough or interval.spread <= goal:
                        reached.setdefault(goal, (piece, step))
                # A wide box may be one of several that close, and a start from it would not find the smallest.
                start = box if interval.spread <= 1 else None
            if self.work.goals[0] in reached or step >= len(order) or self.work.stopped:
                break
        if not reached:
            self.work.fail("the bound does not close, even with many rows branched on")
            return None
        piece, step = reached[min(reached)]
        self.pieces.append(piece)
        return _parts(problem, order[:step])


def condense(white: White, cuts: CutsPiece, most: int = 96) -> list[Piece]:
    """Replace the many cuts of small moves by one sharp piece, to save memory.

    The retrained models are known, so the hull of their moves (widened by their errors) is a box that contains them:
    the sharp bound applies on it without any closing argument.
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
    hull = np.stack([-moves[near].min(axis=0), moves[near].max(axis=0)])
    interval = interval_on_box(part, np.maximum(hull, 0.0) + widened, Sample.everything(white), 1.0)
    if interval is None:
        return [cuts]
    exact = CutsPiece(cuts.thetas[1:][far], cuts.error[1:][far], cuts.to_norm)
    return [exact, sharp_piece(part, interval)]


def _dangerous_first(white: White) -> Places:
    """Order the deletable rows by the norm of what their deletion may push, most first.

    The residual is taken where the model has already moved twice the row's norm against it: groups of rows of a rare
    category are harmless one by one and not together.
    """
    problem = white.problem
    push = problem.weight * white.norms * problem.loss.pull(problem.sign * white.z + 2 * white.norms)
    rows = np.flatnonzero(problem.deletable & (problem.weight > 0) & (white.norms > 0))
    return rows[np.argsort(-push[rows])]
