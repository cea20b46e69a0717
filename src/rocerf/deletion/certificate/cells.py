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


Bounds = tuple[Array, Array]


@dataclass(frozen=True)
class Slicing:
    """The direction p (white) and every row's share ``alpha_i`` of it."""

    direction: Array  # (p,)
    share: Array  # (n,)

    def functionals(self, white: White, pick: Places) -> Array:
        """The rests of the picked rows, then the direction; (m + 1, p)."""
        rests = white.rows[pick] - self.share[pick, None] * self.direction
        return np.concatenate([rests, self.direction[None]])

    def box(self, bounds: Bounds, cell: tuple[float, float]) -> Bounds:
        """Bounds of ``u_i`` (from, to) for the moves within bounds of all functionals, s in the cell; may lack 0."""
        count, (down, up) = len(self.share), bounds
        at_low, at_high = self.share * cell[0], self.share * cell[1]
        # The sum share * s + rest is rounded, so it is widened like every image.
        slack = ABSOLUTE_TOLERANCE + CLOSING_TOLERANCE * np.maximum(np.abs(at_low), np.abs(at_high))
        below = np.minimum(at_low, at_high) - down[count : 2 * count] - slack
        above = np.maximum(at_low, at_high) + up[count : 2 * count] + slack
        return np.maximum(-down[:count], below), np.minimum(up[:count], above)

    def tightened(self, box: Bounds, image: Bounds, pick: Places, cell: tuple[float, float]) -> Bounds:
        """The part of a cell's box that its own image allows, for the picked rows."""
        below, above = Slicing(self.direction, self.share[pick]).box(image, cell)
        low, high = box[0].copy(), box[1].copy()
        low[pick], high[pick] = np.maximum(low[pick], below), np.minimum(high[pick], above)
        return low, high


@dataclass(frozen=True)
class ClosedCells:
    """Proven bounds ``-down <= functional <= up`` of all rows, rests and the direction, and the cells left."""

    slicing: Slicing
    down: Array  # (2 n + 1,)
    up: Array
    intervals: list[Interval]


@dataclass(frozen=True)
class _Sweep:
    """One pass over all cells: the image of K for the picked rows, their rests and the direction."""

    down: Array  # (2 m + 1,)
    up: Array
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
    slicing, down, up = start
    passes = _PROOF_PASSES
    if sample.factor is not None:
        found = _search(white, slicing, (down, up), sample, effort, cells)
        if found is None:
            return None
        passes = _PROOF_PASSES_AFTER_SEARCH
        down, up = found[0] * _ROOM, found[1] * _ROOM
    moving = np.concatenate([white.live, white.live, [True]])
    for done in range(passes):
        progress(done, passes)
        if time.perf_counter() > until:
            return None
        sweep = _sweep(white, slicing, (down, up), everything, effort.keep, cells)
        if sweep is None:
            return None
        if ((sweep.down < down) & (sweep.up < up))[moving].all():
            progress(passes, passes)
            return ClosedCells(slicing, sweep.down, sweep.up, sweep.intervals)
        down, up = _beyond(down, sweep.down, effort.growth), _beyond(up, sweep.up, effort.growth)
    return None


def _beyond(old: Array, new: Array, growth: float) -> Array:
    """Grow what was exceeded, beyond the image by as much as the image was beyond the bounds, and a little more."""
    exceeded = np.clip(new / np.maximum(old, 1e-300), 1.0, 1.1)
    return np.where(new >= old, new * exceeded * growth, old)


def _start(white: White, sample: Sample, keep: float) -> tuple[Slicing, Array, Array] | None:
    """Choose the direction in which the mean Hessian is least known, and a first set of bounds."""
    zero, everything = np.zeros(len(white.z)), np.arange(len(white.z))
    point = interval_on_box(white, zero, zero, sample, keep)
    if point is None:
        return None
    down, up, _ = image_of_box(white, point, everything)
    first = interval_on_box(white, down, up, sample, keep)
    if first is None:
        return None
    half = np.linalg.solve(first.half_a, first.half_d)
    _, vectors = np.linalg.eigh(half @ half.T)
    direction = np.linalg.solve(first.half_a.T, vectors[:, -1])
    direction = direction / np.linalg.norm(direction)
    along = point.half_a @ (point.half_a.T @ direction)
    slicing = Slicing(direction, white.rows @ along / float(direction @ along))
    down, up, _ = image_of_box(white, point, everything, slicing.functionals(white, everything))
    return slicing, down * _FIRST_BOX, up * _FIRST_BOX


def _search(
    white: White, slicing: Slicing, bounds: Bounds, sample: Sample, effort: BoxEffort, cells: int
) -> Bounds | None:
    """Grow the bounds on the sample's rows, then evaluate them for all rows once; no proof."""
    count, pick = len(white.z), sample.rows
    picked = np.concatenate([pick, count + pick, [2 * count]])
    down, up = bounds
    pace, size, left = Pace(np.ones(len(picked)), effort.patience), 0.0, _SEARCH_PASSES
    while True:
        sweep = _sweep(white, slicing, (down, up), sample, effort.keep, cells)
        ahead = None if sweep is None else pace.factor(sweep.down, sweep.up)
        if sweep is None or ahead is None:
            return None
        before, size = size, float(np.sum(sweep.down + sweep.up))
        left -= 1
        if left == 0 or size <= before * _STANDSTILL:
            break
        down = _grown(down, sweep.down, picked, sweep.schwarz, pick, effort.growth * ahead)
        up = _grown(up, sweep.up, picked, sweep.schwarz, pick, effort.growth * ahead)
    everything = np.arange(count)
    others = slicing.functionals(white, everything)
    images = [image_of_box(white, interval, everything, others)[:2] for interval in sweep.intervals]
    downs, ups = zip(*images, strict=True)
    return np.max(downs, axis=0), np.max(ups, axis=0)


def _grown(old: Array, new: Array, picked: Places, schwarz: Array, pick: Places, growth: float) -> Array:
    """Grow what was exceeded; rows outside the sample follow the median ratio to Cauchy-Schwarz."""
    count, size = len(schwarz), len(pick)
    out = old.copy()
    for start, part in ((0, new[:size]), (count, new[size : 2 * size])):
        follow = schwarz * np.median(part / schwarz[pick])
        out[start : start + count] = np.maximum(out[start : start + count], follow)
    out[picked] = np.where(new >= out[picked], new * growth, out[picked])
    return out


def _sweep(white: White, slicing: Slicing, bounds: Bounds, sample: Sample, keep: float, cells: int) -> _Sweep | None:
    """Bound all functionals of the sample in every cell and take the largest; None if a cell cannot be bounded."""
    edges = np.linspace(-bounds[0][-1], bounds[1][-1], cells + 1).tolist()
    images: list[_Sweep] = []
    for cell in pairwise(edges):
        image = _image_of_cell(white, slicing, bounds, cell, sample, keep)
        if image == "unbounded":
            return None
        if image != "no move":
            images.append(image)
    if not images:
        return None
    down, up, schwarz = (
        np.maximum(np.max([getattr(image, name) for image in images], axis=0), 0.0)
        for name in ("down", "up", "schwarz")
    )
    if not max(down.max(), up.max()) <= LARGEST_MOVE:
        return None
    return _Sweep(down, up, schwarz, [image.intervals[0] for image in images])


def _image_of_cell(
    white: White, slicing: Slicing, bounds: Bounds, cell: tuple[float, float], sample: Sample, keep: float
) -> _Sweep | Literal["no move", "unbounded"]:
    """Bound all functionals for the moves of one cell, twice: the image of a cell holds its moves as well."""
    pick = sample.rows
    others = slicing.functionals(white, pick)
    box = slicing.box(bounds, cell)
    infinite = np.full(2 * len(pick) + 1, np.inf)
    found = _Sweep(infinite, infinite, np.full(len(white.z), np.inf), [])
    for _ in range(_PASSES_IN_A_CELL):
        if found.intervals:
            box = slicing.tightened(box, (found.down, found.up), pick, cell)
        if (box[0] > box[1])[pick][white.live[pick]].any():
            return "no move"
        # Rows that do not count (or are not in the sample) may have crossed bounds: any box does for them.
        interval = interval_on_box(white, -np.minimum(*box), box[1], sample, keep)
        if interval is None:
            return "unbounded"
        down, up, size = image_of_box(white, interval, pick, others)
        down, up = np.minimum(found.down, down), np.minimum(found.up, up)
        found = _Sweep(down, up, np.minimum(found.schwarz, size), [interval])
        cell = (max(cell[0], -float(down[-1])), min(cell[1], float(up[-1])))
        if cell[0] > cell[1]:
            return "no move"
    if sample.factor is None:  # the constants of a proof are those of what the last image left of the cell
        box = slicing.tightened(box, (found.down, found.up), pick, cell)
        if (box[0] > box[1])[white.live].any():
            return "no move"
        last = interval_on_box(white, -np.minimum(*box), box[1], sample, keep)
        found = found if last is None else replace(found, intervals=[last])
    return found
