"""Figures, drawn from results that were computed elsewhere. SVG text, ready to be put in a page.

One method has one colour in every figure (Okabe and Ito's palette, safe for colour-blind readers) and one marker, so
that print in grey can be read too.
"""

from __future__ import annotations

import io
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from typing import TYPE_CHECKING, Any

import numpy as np

if TYPE_CHECKING:
    from rocerf.evaluation.demo import Method

#: One colour and marker for each promise or method; a dashed line for the larger k. Two names of one thing share a
#: colour: SCFE is the plain counterfactual, the paper's ROCERF its first-order constraint (on a stand-in for networks).
#: `certified` and C-CHVAE are never in one figure.
LOOKS = {
    "plain": ("#E69F00", "s"),
    "first_order": ("#0072B2", "o"),
    "retrained": ("#009E73", "^"),
    "certified": ("#CC79A7", "D"),
    "scfe": ("#E69F00", "s"),
    "margin": ("#000000", "."),
    "cchvae": ("#CC79A7", "X"),
    "cchvae_trained": ("#CC79A7", "D"),
    "roar": ("#D55E00", "v"),
    "rocerf": ("#0072B2", "P"),
    "rocerf_exact": ("#0072B2", "H"),
    "local_linear": ("#0072B2", "P"),
    "simulated": ("#56B4E9", "*"),
}
#: How the figure of picked deletions names them.
PICKED_LABELS = {"scfe": "plain (SCFE)"}
COLOURS, MARKERS = ({name: look[place] for name, look in LOOKS.items()} for place in (0, 1))
DASHED = ("2%",)

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


@contextmanager
def canvas(width: float, height: float, panels: int = 1, rows: int = 1) -> Iterator[tuple[Any, tuple[Any, ...]]]:
    """A figure drawn off screen in our style, and its panels row by row."""
    import matplotlib

    with matplotlib.rc_context(_STYLE):
        from matplotlib.backends.backend_svg import FigureCanvasSVG
        from matplotlib.figure import Figure

        figure = Figure(figsize=(width, height), layout="constrained")
        FigureCanvasSVG(figure)
        yield figure, tuple(figure.subplots(rows, panels, sharey=True, squeeze=False).ravel())


def svg_text(figure: Any) -> str:
    """The figure as SVG, without anything that differs from run to run."""
    buffer = io.StringIO()
    figure.savefig(buffer, format="svg", metadata={"Date": None, "Creator": None})
    text = buffer.getvalue()
    return text[text.index("<svg") :]
