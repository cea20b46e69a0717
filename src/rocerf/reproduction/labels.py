"""Labels of curves: each stands beside a point of its curve where it hides nothing, with a thin line if that is away.

All places are tried, near and around each point, and what a label hides is counted: other labels, marks, lines, the
edges of the panel. Labels are moved in turn until none finds a better place.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass, field
from itertools import pairwise
from typing import Any

import numpy as np

from rocerf.types import Array

#: Distances from a point at which a label may stand, in points, and directions.
GAPS = (8.0, 12.0, 18.0, 26.0, 36.0, 48.0, 62.0)
WAYS = 24
#: From this distance on a thin line leads to the point.
LED = 14.0
#: How bad it is to hide something: a label or the edge, a mark, a piece of a line or of a bar; and to be far.
LABEL, MARK, LINE, FAR = 1000.0, 60.0, 12.0, 0.5
#: Points between the pieces of a line.
PIECE = 3.0
#: Rounds in which every label may move.
ROUNDS = 6


@dataclass(frozen=True)
class Label:
    """A label and the points (x, y) of its curve; it stands beside any of them."""

    text: str
    colour: str
    points: tuple[tuple[float, float], ...]


@dataclass
class Drawn:
    """What a panel holds: labels to be placed, marks (x, y, radius in points), and lines through points (x, y)."""

    labels: list[Label] = field(default_factory=list)
    marks: list[tuple[float, float, float]] = field(default_factory=list)
    lines: list[list[tuple[float, float]]] = field(default_factory=list)


@dataclass(frozen=True, eq=False)
class _Things:
    """What a label should not hide: centres (m, 2), radii and weights (m,), all in pixels, and the panel's box."""

    centres: Array
    radii: Array
    weights: Array
    bounds: tuple[float, float, float, float]

    def hidden(self, boxes: Array, own: Array) -> Array:
        """How much each of the boxes (c, 4) hides, and the line from it to its point (c, 2)."""
        gap = np.maximum(boxes[:, None, :2] - self.centres, self.centres - boxes[:, None, 2:]).clip(0)
        touched = np.hypot(gap[..., 0], gap[..., 1]) < self.radii
        left, low, right, high = self.bounds
        out = np.maximum(left - boxes[:, 0], 0) + np.maximum(boxes[:, 2] - right, 0)
        out = out + np.maximum(low - boxes[:, 1], 0) + np.maximum(boxes[:, 3] - high, 0)
        return np.asarray(touched @ self.weights + np.where(out > 0, LABEL, 0) + 3 * out + self._crossed(boxes, own))

    def _crossed(self, boxes: Array, own: Array) -> Array:
        """What the lines from the boxes to their points cross."""
        way = np.clip(own, boxes[:, :2], boxes[:, 2:]) - own
        from_own = self.centres[None] - own[:, None]
        along = (from_own * way[:, None]).sum(axis=2) / np.maximum((way**2).sum(axis=1), 1e-9)[:, None]
        away = np.linalg.norm(from_own - np.clip(along, 0, 1)[..., None] * way[:, None], axis=2)
        others = np.linalg.norm(from_own, axis=2) > self.radii
        return np.asarray((0.25 * self.weights * ((away < self.radii) & others)).sum(axis=1))


def write_labels(axes: Any, drawn: Drawn) -> None:
    """Write the labels of a panel. The figure must have been laid out: before, no place is known."""
    if not drawn.labels:
        return
    scale = axes.figure.dpi / 72
    things = _things(axes, drawn, scale)
    texts = [axes.text(0, 0, label.text, color=label.colour, fontsize=8.5, zorder=9) for label in drawn.labels]
    options, costs = [], []
    for label, text in zip(drawn.labels, texts, strict=True):
        size = text.get_window_extent()
        places, away = _places(axes.transData.transform(label.points), size.width, size.height, scale)
        options.append(places)
        costs.append(things.hidden(places[:, :4], places[:, 4:]) + away)
    inward = axes.transData.inverted()
    for label, text, place in zip(drawn.labels, texts, _settled(options, costs), strict=True):
        low, high, at = place[:2], place[2:4], place[4:]
        text.set(position=inward.transform((low + high) / 2), ha="center", va="center")
        foot = np.clip(at, low, high)
        if math.dist(foot, at) > LED * scale:
            x, y = zip(*inward.transform([at, foot]), strict=True)
            axes.plot(x, y, color=label.colour, linewidth=0.6, alpha=0.8, zorder=3, scalex=False, scaley=False)


def _places(points: Array, wide: float, tall: float, scale: float) -> tuple[Array, Array]:
    """Boxes of a label around points, in pixels, each with its point (c, 6), and how bad it is that it is away (c,).

    Right of the curve's last point is best.
    """
    angles = np.arange(WAYS) * 2 * np.pi / WAYS
    ways = np.column_stack([np.cos(angles), np.sin(angles)])
    gaps, ways = np.repeat(np.array(GAPS), WAYS), np.tile(ways, (len(GAPS), 1))
    half = np.array([wide, tall]) / 2
    found, away = [], []
    for back, at in enumerate(points[::-1]):
        middle = at + scale * gaps[:, None] * ways + half * ways
        found.append(np.column_stack([middle - half, middle + half, np.broadcast_to(at, middle.shape)]))
        away.append(FAR * gaps + 2 * (1 - ways[:, 0]) + min(back, 4))
    return np.concatenate(found), np.concatenate(away)


def _things(axes: Any, drawn: Drawn, scale: float) -> _Things:
    """Marks and lines of a panel in pixels; lines as pieces."""
    found = [(*axes.transData.transform((x, y)), scale * radius, MARK) for x, y, radius in drawn.marks]
    for line in drawn.lines:
        for first, second in pairwise(axes.transData.transform(line)):
            for part in np.linspace(0, 1, 2 + int(math.dist(first, second) / (PIECE * scale))):
                found.append((*(first + part * (second - first)), 1.5 * scale, LINE))
    table = np.array(found, float).reshape(-1, 4)
    box = axes.get_window_extent()
    return _Things(table[:, :2], table[:, 2], table[:, 3], (box.x0, box.y0, box.x1, box.y1))


def _settled(options: Sequence[Array], costs: Sequence[Array]) -> list[Array]:
    """One of each label's options, none over another if that can be; each in turn takes its best place."""
    chosen = [boxes[int(np.argmin(cost))] for boxes, cost in zip(options, costs, strict=True)]
    for _ in range(ROUNDS):
        moved = False
        for place, (boxes, cost) in enumerate(zip(options, costs, strict=True)):
            others = np.array([box[:4] for other, box in enumerate(chosen) if other != place]).reshape(-1, 4)
            best = boxes[int(np.argmin(cost + LABEL * _over(boxes[:, :4], others)))]
            moved |= not np.array_equal(best, chosen[place])
            chosen[place] = best
        if not moved:
            break
    return chosen


def _over(boxes: Array, others: Array) -> Array:
    """How many of the others each box lies over."""
    apart = (boxes[:, None, :2] >= others[:, 2:]) | (others[:, :2] >= boxes[:, None, 2:])
    return np.asarray((~apart.any(axis=2)).sum(axis=1))
