"""Figures, drawn from results that were computed elsewhere. SVG text, ready to be put in a page.

Style, colours and markers are those of :mod:`rocerf.drawing`.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from textwrap import fill
from typing import TYPE_CHECKING, Any

import numpy as np

from rocerf.drawing import COLOURS, MARKERS, Picture, canvas, svg_text

if TYPE_CHECKING:
    from rocerf.evaluation.demo import Method
    from rocerf.evaluation.portfolio import Portfolio
    from rocerf.evaluation.worst_deletions import WorstDeletions

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
        handles, labels = right.get_legend_handles_labels()  # plain lines, long enough for dashes to be seen
        figure.legend(handles, labels, loc="outside lower center", ncols=3, handlelength=3.4, frameon=False)
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


def draw_worst_deletions(seen: WorstDeletions) -> Picture:
    """Scores by number of deletions: the median of each method as a line, down to its lowest point as a shade."""
    steps, said = np.arange(seen.most + 1), []
    spare = iter([("#D55E00", "v"), ("#000000", "."), ("#CC79A7", "X"), ("#56B4E9", "P")] * len(seen.scores))
    with canvas(7.2, 4.0) as (figure, (axes,)):
        for name, lines in seen.scores.items():
            shown = np.where(np.isfinite(lines), lines, np.nan)
            colour, marker = (COLOURS[name], MARKERS[name]) if name in COLOURS else next(spare)
            middle = np.nanmedian(shown, axis=1)
            axes.plot(steps, middle, color=colour, marker=marker, linewidth=1.8, markersize=5, label=name)
            axes.fill_between(steps, np.nanmin(shown, axis=1), middle, color=colour, alpha=0.15, linewidth=0)
            said.append(f"{name} {seen.accepted(name)[0]:.0%} and {seen.accepted(name)[-1]:.0%}")
        axes.axhline(0, color="0.3", linewidth=1)
        for k in sorted(set(seen.promised.values())):
            if k <= seen.most:
                axes.axvline(k, color="0.4", linewidth=1.0, linestyle=(0, (1, 2)), zorder=0)
                axes.annotate(f"promised: {k}", (k, 1), (3, -10), xycoords=("data", "axes fraction"),
                              textcoords="offset points", color="0.3", fontsize=9)  # fmt: skip
        axes.set_xlabel("training rows deleted, the worst found; model retrained each time")
        axes.set_ylabel("score (accepted from 0 on)")
        axes.xaxis.get_major_locator().set_params(integer=True)
        axes.set_title("line: median of the answers; shade: down to the lowest", loc="left", fontsize=10)
        figure.legend(loc="outside upper center", ncols=4, frameon=False)
    few = f"Scores after the worst 0 to {seen.most} deletions found. Accepted before any and after the last: "
    return Picture(few + ", ".join(said) + ".", figure)


def draw_portfolio(seen: Portfolio) -> Picture:
    """How many are refused, have a recourse and keep it; and what groups pay, or else what is asked for most."""
    counts = {"refused": seen.asking, "with a recourse": seen.answered}
    if seen.tried:
        counts["survived what was tried"] = seen.survived
    if seen.proven:
        counts["proven"] = seen.proven
    groups = [(f"{row.attribute}: {row.group}", row.cost) for row in seen.groups if row.cost is not None]
    right_bars = groups or [(label, float(count)) for label, count in seen.changes[:12]]
    height = max(2.6, 1.2 + 0.34 * max(len(counts), len(right_bars)))
    with canvas(10.4, height, panels=2, sharey=False) as (figure, (left, right)):
        bars = left.barh(list(counts)[::-1], list(counts.values())[::-1], height=0.5, color=COLOURS["retrained"])
        left.bar_label(bars, padding=3)
        left.set_xlim(0, 1.15 * max(1, *counts.values()))
        left.xaxis.get_major_locator().set_params(integer=True)
        left.set_xlabel("people")
        left.set_title(f"promise {seen.promise}, k = {seen.k}", loc="left", fontsize=10)
        names = [fill(label if len(label) < 60 else label[:57] + "…", 34) for label, _ in right_bars]
        right.barh(range(len(names)), [value for _, value in right_bars], color=COLOURS["first_order"])
        right.set_yticks(range(len(names)), names, fontsize=8)
        right.invert_yaxis()
        right.set_xlabel("mean cost of the change" if groups else "people asked to change it")
        for axes in (left, right):
            axes.set_axisbelow(True)
    tested = f"{seen.survived} survived every deletion that was tried" if seen.tried else "no deletion was tried"
    proof = f", {seen.proven} are proven" if seen.proven else ""
    return Picture(f"{seen.asking} people refused, {seen.answered} have a recourse, {tested}{proof}.", figure)
