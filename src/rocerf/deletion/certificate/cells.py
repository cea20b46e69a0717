"""Cells along one direction: the sharp bound on thin slices of the box, where the whole box is too wide.

Most of the uncertainty about the mean Hessian of a large table comes from one direction p. Bounds are kept for three
kinds of linear functionals of the move: every row's ``u_i``, every rest ``u_i - alpha_i s``, and ``s = p'Delta``. A
move in the slice ``l <= s <= h`` has each ``u_i`` in ``alpha_i [l, h]`` plus its rest: a much thinner box. Soundness:
docs/certificate.md, section 10.
"""

from __future__ import annotations

import time
from dataclasses import dataclass, replace
from itertools import pairwise
from typing import Literal

import numpy as np

from rocerf.deletion.certificate.options import BoxEffort
from rocerf.deletion.certificate.problem import White
from rocerf.deletion.certificate.sharp_bound import (
    ABSOLUTE_TOLERANCE,
    CLOSING_TOLERANCE,
    Interval,
    Pace,
    Sample,
    image_of_box,
    interval_on_box,
    search_sample,
)
from rocerf.models.loss import LARGEST_MOVE
from rocerf.types import Array, Places, Progress

_SEARCH_PASSES = 8
_STANDSTILL = 1.01  # the search ends when the sum of all bounds grows by less
_PROOF_PASSES = 30
_PROOF_PASSES_AFTER_SEARCH = 15  # each is dear on a large table; what closes does so in about seven
_PASSES_IN_A_CELL = 2
_ROOM = 1.06  # the first bounds of the proof, times what the search found: it saw a sample of the rows only
_FIRST_BOX = 1.3  # times the image of the empty box


@dataclass(frozen=True)
class Slicing:
    """The direction p (white) and every row's share ``alpha_i`` of it."""

    direction: Array  # (p,)
    share: Array  # (n,)

    def functionals(self, white: White, pick: Places) -> Array:
        """The rests of the picked rows, then the direction; (m + 1, p)."""
        rests = white.rows[pick] - self.share[pick, None] * self.direction
        return np.concatenate([rests, self.direction[None]])

    def box(self, bounds: Array, cell: tuple[float, float]) -> Array:
        """Bounds (2, n) of ``-u_i`` and ``u_i`` for the moves within bounds (2, 2 n + 1) of all functionals, s in the
        cell; they need not contain 0."""
        count = len(self.share)
        at_low, at_high = self.share * cell[0], self.share * cell[1]
        # The sum share * s + rest is rounded, so it is widened like every image.
        slack = ABSOLUTE_TOLERANCE + CLOSING_TOLERANCE * np.maximum(np.abs(at_low), np.abs(at_high))
        ends = np.stack([-np.minimum(at_low, at_high), np.maximum(at_low, at_high)])
        return np.minimum(bounds[:, :count], ends + bounds[:, count : 2 * count] + slack)

    def tightened(self, box: Array, image: Array, pick: Places, cell: tuple[float, float]) -> Array:
        """The part of a cell's box that its own image allows, for the picked rows."""
        tighter = box.copy()
        tighter[:, pick] = np.minimum(box[:, pick], Slicing(self.direction, self.share[pick]).box(image, cell))
        return tighter


@dataclass(frozen=True)
class ClosedCells:
    """Proven bounds of minus and plus all rows, rests and the direction, and the cells left."""

    slicing: Slicing
    bounds: Array  # (2, 2 n + 1)
    intervals: list[Interval]


@dataclass(frozen=True)
class _Sweep:
    """One pass over all cells: the image of K for the picked rows, their rests and the direction."""

    image: Array  # (2, 2 m + 1)
    schwarz: Array  # (n,), Cauchy-Schwarz bound of every row
    intervals: list[Interval]  # of the cells that may hold a solution


def close_cells(
    white: White, effort: BoxEffort, cells: int, seconds: float = np.inf, progress: Progress = lambda done, of: None
) -> ClosedCells | None:
    """Find bounds of all functionals that the bounds of the cells map strictly inside; None if none are found.

    As for a single box, only the last strict self-map over all live rows is the proof. Gives up after ``seconds``.
    ``progress`` is called with how many passes over all rows were made, of how many at most.
    """
    until = time.perf_counter() + seconds
    everything = Sample.everything(white)
    # Every pass is made for each cell, and for two functionals a row: a smaller sample than that of one box does.
    sample = everything if effort.sample is None else search_sample(white, effort.sample // 2, 0.05)
    start = _start(white, sample, effort.keep)
    if start is None:
        return None
    slicing, bounds = start
    passes = _PROOF_PASSES
    if sample.factor is not None:
        found = _search(white, slicing, bounds, sample, effort, cells)
        if found is None:
            return None
        passes, bounds = _PROOF_PASSES_AFTER_SEARCH, found * _ROOM
    moving = np.concatenate([white.live, white.live, [True]])
    for done in range(passes):
        progress(done, passes)
        if time.perf_counter() > until:
            return None
        sweep = _sweep(white, slicing, bounds, everything, effort.keep, cells)
        if sweep is None:
            return None
        if (sweep.image < bounds)[:, moving].all():
            progress(passes, passes)
            return ClosedCells(slicing, sweep.image, sweep.intervals)
        # What was exceeded grows beyond the image by as much as the image was beyond it, and a little more.
        exceeded = np.clip(sweep.image / np.maximum(bounds, 1e-300), 1.0, 1.1)
        bounds = np.where(sweep.image >= bounds, sweep.image * exceeded * effort.growth, bounds)
    return None


def _start(white: White, sample: Sample, keep: float) -> tuple[Slicing, Array] | None:
    """Choose the direction in which the mean Hessian is least known, and a first set of bounds."""
    everything = np.arange(len(white.z))
    point = interval_on_box(white, np.zeros((2, len(white.z))), sample, keep)
    if point is None:
        return None
    first = interval_on_box(white, image_of_box(white, point, everything)[0], sample, keep)
    if first is None:
        return None
    half = np.linalg.solve(first.half_a, first.half_d)
    _, vectors = np.linalg.eigh(half @ half.T)
    direction = np.linalg.solve(first.half_a.T, vectors[:, -1])
    direction = direction / np.linalg.norm(direction)
    along = point.half_a @ (point.half_a.T @ direction)
    slicing = Slicing(direction, white.rows @ along / float(direction @ along))
    return slicing, image_of_box(white, point, everything, slicing.functionals(white, everything))[0] * _FIRST_BOX


def _search(
    white: White, slicing: Slicing, bounds: Array, sample: Sample, effort: BoxEffort, cells: int
) -> Array | None:
    """Grow the bounds on the sample's rows, then evaluate them for all rows once; no proof."""
    count, pick = len(white.z), sample.rows
    picked = np.concatenate([pick, count + pick, [2 * count]])
    pace, size, left = Pace(np.ones(len(picked)), effort.patience), 0.0, _SEARCH_PASSES
    while True:
        sweep = _sweep(white, slicing, bounds, sample, effort.keep, cells)
        ahead = None if sweep is None else pace.factor(sweep.image)
        if sweep is None or ahead is None:
            return None
        before, size = size, float(np.sum(sweep.image))
        left -= 1
        if left == 0 or size <= before * _STANDSTILL:
            break
        bounds = bounds.copy()
        ratio = sweep.image[:, :-1].reshape(2, 2, -1) / sweep.schwarz[pick]  # of rows, and of rests
        # Rows outside the sample follow the median ratio to Cauchy-Schwarz.
        follow = (np.median(ratio, axis=2)[:, :, None] * sweep.schwarz).reshape(2, -1)
        bounds[:, :-1] = np.maximum(bounds[:, :-1], follow)
        exceeded = sweep.image >= bounds[:, picked]
        bounds[:, picked] = np.where(exceeded, sweep.image * (effort.growth * ahead), bounds[:, picked])
    everything = np.arange(count)
    others = slicing.functionals(white, everything)
    return np.asarray(
        np.max([image_of_box(white, interval, everything, others)[0] for interval in sweep.intervals], axis=0)
    )


def _sweep(white: White, slicing: Slicing, bounds: Array, sample: Sample, keep: float, cells: int) -> _Sweep | None:
    """Bound all functionals of the sample in every cell and take the largest; None if a cell cannot be bounded."""
    edges = np.linspace(-bounds[0, -1], bounds[1, -1], cells + 1).tolist()
    found: list[_Sweep] = []
    for cell in pairwise(edges):
        image = _image_of_cell(white, slicing, bounds, cell, sample, keep)
        if image == "unbounded":
            return None
        if image != "no move":
            found.append(image)
    if not found:
        return None
    largest = np.max([sweep.image for sweep in found], axis=0).clip(0.0)
    if not largest.max() <= LARGEST_MOVE:
        return None
    schwarz = np.max([sweep.schwarz for sweep in found], axis=0)
    return _Sweep(largest, schwarz, [sweep.intervals[0] for sweep in found])


def _image_of_cell(
    white: White, slicing: Slicing, bounds: Array, cell: tuple[float, float], sample: Sample, keep: float
) -> _Sweep | Literal["no move", "unbounded"]:
    """Bound all functionals for the moves of one cell, twice: the image of a cell holds its moves as well."""
    pick = sample.rows
    others = slicing.functionals(white, pick)
    box = slicing.box(bounds, cell)
    found = _Sweep(np.full((2, 2 * len(pick) + 1), np.inf), np.full(len(white.z), np.inf), [])
    for _ in range(_PASSES_IN_A_CELL):
        if found.intervals:
            box = slicing.tightened(box, found.image, pick, cell)
        if (-box[0] > box[1])[pick][white.live[pick]].any():
            return "no move"
        interval = interval_on_box(white, _uncrossed(box), sample, keep)
        if interval is None:
            return "unbounded"
        image, schwarz = image_of_box(white, interval, pick, others)
        found = _Sweep(np.minimum(found.image, image), np.minimum(found.schwarz, schwarz), [interval])
        cell = (max(cell[0], -float(found.image[0, -1])), min(cell[1], float(found.image[1, -1])))
        if cell[0] > cell[1]:
            return "no move"
    if sample.factor is None:  # the constants of a proof are those of what the last image left of the cell
        box = slicing.tightened(box, found.image, pick, cell)
        if (-box[0] > box[1])[white.live].any():
            return "no move"
        last = interval_on_box(white, _uncrossed(box), sample, keep)
        found = found if last is None else replace(found, intervals=[last])
    return found


def _uncrossed(box: Array) -> Array:
    """Rows that do not count (or are not in the sample) may have crossed bounds: any box does for them."""
    return np.stack([np.maximum(box[0], -box[1]), box[1]])
