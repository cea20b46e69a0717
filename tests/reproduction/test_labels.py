"""Labels of curves: none over another, over a mark, or outside of the panel; each beside a point of its own curve."""

from __future__ import annotations

import math
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from rocerf.drawing import canvas
from rocerf.reproduction import curve_figures
from rocerf.reproduction.curve_figures import draw_curves
from rocerf.reproduction.frontier import frontiers_of
from rocerf.reproduction.labels import GAPS, Drawn, Label, write_labels
from rocerf.reproduction.tables import read_results

RESULTS = Path(__file__).parents[2] / "docs" / "results"
NAMES = ("constant margin", "SCFE", "C-CHVAE at 7.3", "ROAR", "ROCERF", "first_order", "simulated", "retrained")


def boxes_of(axes: Any) -> list[tuple[float, float, float, float]]:
    return [(b.x0, b.y0, b.x1, b.y1) for b in (text.get_window_extent() for text in axes.texts)]


def overlaps(first: tuple[float, ...], second: tuple[float, ...]) -> bool:
    return min(first[2], second[2]) > max(first[0], second[0]) + 0.1 and min(first[3], second[3]) > (
        max(first[1], second[1]) + 0.1
    )


def hidden(box: tuple[float, ...], mark: Any, radius: float) -> bool:
    """Whether a box reaches into a mark, but for a pixel."""
    near = (min(max(mark[0], box[0]), box[2]), min(max(mark[1], box[1]), box[3]))
    return math.dist(near, mark) < radius - 1


def check(axes: Any, drawn: Drawn, allowed: int = 0) -> None:
    """Labels apart and inside; at most so many marks touched; none farther from its curve than labels may be."""
    boxes, scale = boxes_of(axes), axes.figure.dpi / 72
    bounds = axes.get_window_extent()
    assert [text.get_text() for text in axes.texts] == [label.text for label in drawn.labels]
    for place, box in enumerate(boxes):
        assert not any(overlaps(box, other) for other in boxes[:place])
        assert bounds.x0 - 1 <= box[0] < box[2] <= bounds.x1 + 1
        assert bounds.y0 - 1 <= box[1] < box[3] <= bounds.y1 + 1
        away = [
            math.dist((min(max(x, box[0]), box[2]), min(max(y, box[1]), box[3])), (x, y))
            for x, y in axes.transData.transform(drawn.labels[place].points)
        ]
        assert min(away) <= (max(GAPS) + 1) * scale
    marks = [(axes.transData.transform((x, y)), radius * scale) for x, y, radius in drawn.marks]
    assert sum(hidden(box, mark, radius) for box in boxes for mark, radius in marks) <= allowed


@pytest.mark.parametrize("seed", range(6))
def test_labels_of_crowded_panels_hide_nothing(seed: int) -> None:
    """Eight curves with four points each, all in a quarter of the panel, where labels at the ends would be a heap."""
    rng = np.random.default_rng(seed)
    with canvas(4.7, 3.75) as (figure, (axes,)):
        axes.set(xlim=(0, 10), ylim=(0, 10))
        drawn = Drawn()
        for name in NAMES:
            points = [
                (float(x), float(y)) for x, y in zip(np.sort(rng.uniform(1, 6, 4)), rng.uniform(1, 6, 4), strict=True)
            ]
            drawn.labels.append(Label(name, "black", tuple(points)))
            drawn.marks += [(x, y, 4.0) for x, y in points]
            drawn.lines.append(points)
        figure.draw_without_rendering()
        write_labels(axes, drawn)
        check(axes, drawn, allowed=1)


def test_all_at_one_point_are_told_apart_by_thin_lines() -> None:
    with canvas(4.7, 3.75) as (figure, (axes,)):
        axes.set(xlim=(0, 10), ylim=(0, 10))
        labels = [Label(name, "black", ((5.0, 5.0),)) for name in NAMES]
        drawn = Drawn(labels, [(5.0, 5.0, 6.5)])
        figure.draw_without_rendering()
        write_labels(axes, drawn)
        check(axes, drawn)
        assert axes.get_lines()  # who had to move away is led back


@pytest.mark.parametrize(("folder", "model"), [("reproduction", "lr"), ("reproduction-networks", "nn")])
def test_no_label_of_the_recorded_curves_hides_a_mark(folder: str, model: str, monkeypatch: pytest.MonkeyPatch) -> None:
    panels = []

    def watched(axes: Any, drawn: Drawn) -> None:
        write_labels(axes, drawn)
        check(axes, drawn, allowed=1)
        panels.append(axes)

    monkeypatch.setattr(curve_figures, "write_labels", watched)
    draw_curves(frontiers_of(read_results(RESULTS / folder)), model)
    assert len(panels) == 6
