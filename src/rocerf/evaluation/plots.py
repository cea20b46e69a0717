"""Figures, drawn from results that were computed elsewhere. SVG text, ready to be put in a page.

One method has one colour in every figure (Okabe and Ito's palette, safe for colour-blind readers) and
one marker, so that print in grey can be read too.
"""

from __future__ import annotations

import io
from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

import numpy as np

if TYPE_CHECKING:
    from rocerf.evaluation.demo import Method

COLOURS = {
    "plain": "#E69F00",
    "first_order": "#0072B2",
    "first_order_0.5%": "#0072B2",
    "first_order_2%": "#009E73",
}
MARKERS = {"plain": "s", "first_order": "o", "first_order_0.5%": "o", "first_order_2%": "^"}

#: Curves that lie on top of each other must both be seen.
LINES = {"first_order_2%": (0, (4, 3))}

_STYLE: dict[str, Any] = {
    "font.size": 10,
    "axes.spines.top": False,
    "axes.spines.right": False,
    "axes.grid": True,
    "grid.alpha": 0.3,
    "svg.fonttype": "none",
    "svg.hashsalt": "rocerf",  # the same figure is the same file
    "font.family": "sans-serif",
}


def draw_validity(methods: Sequence[Method]) -> str:
    """Validity against the share of rows deleted at random, with two standard errors."""
    with _canvas(6.4, 3.6) as (figure, axes):
        for method in methods:
            x = [100 * v.fraction for v in method.validity]
            y = [100 * v.mean for v in method.validity]
            error = [200 * v.standard_error for v in method.validity]
            axes.errorbar(
                x,
                y,
                yerr=error,
                label=method.name,
                color=COLOURS[method.key],
                marker=MARKERS[method.key],
                capsize=3,
                linewidth=1.8,
                linestyle=LINES.get(method.key, "-"),
            )
        axes.set_ylim(0, 105)
        axes.set_xlim(-0.1, 5.3)
        axes.set_xlabel("training rows deleted at random (%)")
        axes.set_ylabel("recourses still accepted (%)")
        axes.legend(frameon=False, loc="center right", bbox_to_anchor=(1.0, 0.26))
        return _svg(figure)


def draw_costs(methods: Sequence[Method]) -> str:
    """What each person pays: a box a method, with the mean as a diamond."""
    with _canvas(6.4, 1.2 + 0.65 * len(methods)) as (figure, axes):
        costs = [method.recourses.costs[method.recourses.answered] for method in methods]
        boxes = axes.boxplot(
            costs,
            orientation="horizontal",
            widths=0.42,
            patch_artist=True,
            showmeans=True,
            meanprops={"marker": "D", "markerfacecolor": "white", "markeredgecolor": "black", "markersize": 5},
            medianprops={"color": "black"},
            flierprops={"markersize": 3},
        )
        for box, method in zip(boxes["boxes"], methods, strict=True):
            box.set_facecolor(COLOURS[method.key])
            box.set_alpha(0.75)
        axes.set_yticks(range(1, len(methods) + 1), [method.name for method in methods])
        axes.invert_yaxis()
        axes.set_xlim(left=0)
        axes.set_xlabel("cost of the change (L2 norm, in standard deviations)")
        for place, cost in enumerate(costs, start=1):
            label = f"mean {np.mean(cost):.2f}"
            axes.annotate(label, (np.mean(cost), place), (0, 17), textcoords="offset points", ha="center", fontsize=9)
        return _svg(figure)


class _canvas:  # noqa: N801  (used like a function)
    """A figure drawn off screen in our style, closed at the end."""

    def __init__(self, width: float, height: float) -> None:
        self._size = (width, height)

    def __enter__(self) -> tuple[Any, Any]:
        import matplotlib

        self._context = matplotlib.rc_context(_STYLE)
        self._context.__enter__()
        from matplotlib.backends.backend_svg import FigureCanvasSVG
        from matplotlib.figure import Figure

        self._figure = Figure(figsize=self._size, layout="constrained")
        FigureCanvasSVG(self._figure)
        return self._figure, self._figure.add_subplot()

    def __exit__(self, *details: object) -> None:
        self._context.__exit__(None, None, None)


def _svg(figure: Any) -> str:
    buffer = io.StringIO()
    figure.savefig(buffer, format="svg", metadata={"Date": None, "Creator": None})
    text = buffer.getvalue()
    return text[text.index("<svg") :]
