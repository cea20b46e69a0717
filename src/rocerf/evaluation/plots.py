"""Figures, drawn from results that were computed elsewhere. SVG text, ready to be put in a page.

Style, colours and markers are those of :mod:`rocerf.drawing`.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any

import numpy as np

from rocerf.drawing import COLOURS, MARKERS, canvas, svg_text

if TYPE_CHECKING:
    from rocerf.evaluation.demo import Method

#: How the figure of picked deletions names them.
PICKED_LABELS = {"scfe": "plain (SCFE)"}
DASHED = ("2%",)


def _look(method: Method) -> dict[str, Any]:
    promise, _, size = method.key.partition(" ")
    return {
        "color": COLOURS[promise],
        "marker": MARKERS[promise],
        "linestyle": (0, (4, 2)) if size in DASHED else "-",
        "label": method.name,
        "linewidth": 1.8,
        "markersize": 5,
    }


def draw_survival(methods: Sequence[Method], most: int) -> str:
    """Two panels: rows deleted at random, and rows deleted by the adversary; share still accepted in both."""
    with canvas(8.6, 4.1, panels=2) as (figure, (left, right)):
        for method in methods:
            x = [100 * v.fraction for v in method.validity]
            y = [100 * v.mean for v in method.validity]
            error = [200 * v.standard_error for v in method.validity]
            left.errorbar(x, y, yerr=error, capsize=3, **_look(method))
            steps = range(most + 1)
            shares = [100 * method.share_after(deletions) for deletions in steps]
            right.step(steps, shares, where="mid", markevery=2, **_look(method))
        left.set_title("rows deleted at random", loc="left", fontsize=11)
        left.set_xlabel("training rows deleted (%)")
        left.set_ylabel("recourses still accepted (%)")
        right.set_title("the worst rows deleted, model retrained", loc="left", fontsize=11)
        right.set_xlabel("number of rows deleted")
        right.set_xlim(-0.3, most + 0.3)
        for axes in (left, right):
            axes.set_ylim(-4, 105)
        handles, labels = left.get_legend_handles_labels()
        figure.legend(handles, labels, loc="outside lower center", ncols=3, frameon=False)
        return svg_text(figure)


def draw_picked(tables: Mapping[str, Mapping[str, Mapping[float, tuple[float, float]]]], k: float) -> str:
    """A panel a table: share accepted against the share of rows deleted, picked (lines) and random (dots), by promise.

    ``tables`` has for every title and promise the shares accepted (picked, random) by share of the rows; the promises
    were made for the share ``k``.
    """
    with canvas(9.6, 3.7, panels=len(tables)) as (figure, panels):
        for axes, (title, promises) in zip(panels, tables.items(), strict=True):
            for name, curve in promises.items():
                x, (picked, spared) = 100 * np.array(list(curve)), 100 * np.transpose(list(curve.values()))
                look = {"color": COLOURS[name], "marker": MARKERS[name], "markersize": 5}
                axes.plot(x, picked, linewidth=1.8, label=PICKED_LABELS.get(name, name), **look)
                axes.plot(x, spared, linewidth=1.2, linestyle=":", **{**look, "markersize": 3})
            axes.axvline(100 * k, color="0.4", linewidth=1.0, linestyle=(0, (1, 2)), zorder=0)
            axes.set_title(title, loc="left", fontsize=11)
            axes.set_ylim(-4, 105)
        panels[0].annotate("k", (100 * k, 0), (3, 0), textcoords="offset points", color="0.3", fontsize=9)
        panels[0].set_ylabel("retrained networks that accept (%)")
        figure.supxlabel("training rows deleted (%); line: picked to harm each point, dots: at random", fontsize=10)
        handles, labels = panels[0].get_legend_handles_labels()
        figure.legend(handles, labels, loc="outside upper center", ncols=len(labels), frameon=False)
        return svg_text(figure)


def draw_costs(methods: Sequence[Method]) -> str:
    """What each person pays: a box a method, with the mean as a diamond."""
    with canvas(8.6, 1.0 + 0.6 * len(methods)) as (figure, (axes,)):
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
            box.set_facecolor(_look(method)["color"])
            box.set_alpha(0.75)
        axes.set_yticks(range(1, len(methods) + 1), [method.name for method in methods])
        axes.invert_yaxis()
        axes.set_xlim(left=0)
        axes.set_xlabel("cost of the change (L2 norm, in standard deviations)")
        for place, cost in enumerate(costs, start=1):
            label = f"mean {np.mean(cost):.2f}"
            axes.annotate(label, (np.mean(cost), place), (0, 13), textcoords="offset points", ha="center", fontsize=9)
        return svg_text(figure)
