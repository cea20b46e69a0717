"""The paper's figures and two that it did not draw, from tables computed elsewhere; SVG text.

One method has one colour and one marker in all of them (:data:`rocerf.evaluation.plots.COLOURS`).
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Sequence
from itertools import product
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from rocerf.evaluation.plots import COLOURS, MARKERS, canvas, svg_text
from rocerf.reproduction.published import DATASETS, METHODS, MODELS, SETTINGS
from rocerf.reproduction.tables import Curve, Results, Row, validity_curves_of, where
from rocerf.storage.whole_file import write_files

if TYPE_CHECKING:
    import pandas as pd

#: Light to dark in even steps of lightness, for one method at several k, or several n. Purple is no method's colour,
#: and a single hue is read by its lightness, whatever colours a reader sees; every second marker is hollow.
SHADES = ("#C9AFE8", "#A487DC", "#8E5CC6", "#6F35AC", "#4F0F8A", "#2B0052")
SHADE_MARKERS = ("o", "s", "^", "D", "v", "P")
#: How much of the way from one alpha to the next is used to draw methods side by side.
WIDTH = 0.85


def look(method: str) -> dict[str, Any]:
    """Colour, marker and line of a method: the same in every figure."""
    hollow = method == "first_order"  # shares ROCERF's colour, so it also differs in line and filling
    return {
        "color": COLOURS[method],
        "marker": MARKERS[method],
        "markerfacecolor": "white" if hollow else COLOURS[method],
        "markersize": {"*": 9, "X": 6.5, "P": 6.5}.get(MARKERS[method], 5),
        "linestyle": (0, (4, 2)) if hollow else "-",
        "linewidth": 1.5,
        "label": METHODS[method],
    }


def draw_validity(curves: Sequence[Curve], model: str) -> str:
    """Average validity of all denied people against the share of deleted rows: a panel a data set, a row a setting."""
    shown = [curve for curve in curves if curve.model == model]
    settings = _present(SETTINGS, (c.setting for c in shown))
    datasets = _present(DATASETS, (c.dataset for c in shown))
    methods = _present(METHODS, (c.method for c in shown))
    alphas = sorted({alpha for c in shown for alpha in c.alphas})
    height = 0.9 + 2.5 * len(settings)
    with canvas(_width(datasets), height, panels=len(datasets), rows=len(settings)) as (figure, panels):
        for place, (axes, (setting, dataset)) in enumerate(zip(panels, product(settings, datasets), strict=True)):
            for curve in (c for c in shown if (c.setting, c.dataset) == (setting, dataset)):
                _curve(axes, curve, alphas, _shift(methods.index(curve.method), len(methods)))
            axes.set_title(f"{DATASETS[dataset]}, {SETTINGS[setting]}", loc="left", fontsize=10)
            axes.set_ylim(-4, 106)
            _alpha_axis(axes, alphas, labelled=place // len(datasets) == len(settings) - 1)
            if place % len(datasets) == 0:
                axes.set_ylabel("average validity (%)")
        _legend(figure, panels, [METHODS[key] for key in methods], columns=3)
        return svg_text(figure)


def _present(names: dict[str, str], found: Iterable[str]) -> list[str]:
    """What was found, in the order in which it is named."""
    known = set(found)
    return [key for key in names if key in known]


def _width(datasets: Sequence[str]) -> float:
    """Inches for so many panels, and never so few that the legend is cut off."""
    return max(6.5, 1.6 + 2.9 * len(datasets))


def _curve(axes: Any, curve: Curve, alphas: Sequence[float], shift: float) -> None:
    x = [alphas.index(alpha) + shift for alpha in curve.alphas]
    y, error = [100 * m for m in curve.means_all], [200 * e for e in curve.errors_all]
    axes.errorbar(x, y, yerr=error, capsize=2.5, elinewidth=1, **look(curve.method))


def _shift(place: int, count: int) -> float:
    """Where one of several curves is drawn beside an alpha; close curves must not hide each other."""
    return (place - (count - 1) / 2) * WIDTH / count


def _alpha_axis(axes: Any, alphas: Sequence[float], *, labelled: bool = True) -> None:
    """The shares, evenly spaced: to scale, the small ones would leave no room for several methods."""
    axes.set_xticks(range(len(alphas)), [f"{100 * alpha:g}" for alpha in alphas])
    axes.set_xlim(-0.5, len(alphas) - 0.5)
    axes.grid(visible=False, axis="x")
    for between in range(1, len(alphas)):
        axes.axvline(between - 0.5, color="#b0b0b0", alpha=0.3, linewidth=0.8, zorder=0)
    axes.tick_params(axis="x", length=0)
    if labelled:
        axes.set_xlabel("training rows deleted, α (%)")


def _legend(figure: Any, panels: Iterable[Any], order: Sequence[str], columns: int) -> None:
    """One legend under all panels, each label once, and some air around everything."""
    found: dict[str, Any] = {}
    for axes in panels:
        found |= {label: handle for handle, label in zip(*axes.get_legend_handles_labels(), strict=True)}
    figure.get_layout_engine().set(w_pad=0.08, h_pad=0.08)
    labels = [label for label in order if label in found]
    handles = [found[label] for label in labels]
    figure.legend(handles, labels, loc="outside lower center", ncols=columns, frameon=False, fontsize=9.5)


def draw_sensitivity(table: pd.DataFrame) -> str:
    """Validity of the paper's method for several k: a panel a data set, darker for a larger k."""
    datasets = _present(DATASETS, table["dataset"])
    shares, alphas = (sorted(set(table[name])) for name in ("k_share", "alpha"))
    with canvas(_width(datasets), 3.6, panels=len(datasets)) as (figure, panels):
        lowest = 100.0
        for axes, dataset in zip(panels, datasets, strict=True):
            for place, share in enumerate(shares):
                rows = where(table, dataset=dataset, k_share=share).sort_values("alpha")
                errors = 200 * rows["validity_se"].fillna(0.0)
                lowest = min(lowest, float((100 * rows["validity"] - errors).min()) if len(rows) else lowest)
                style = _shade(place, len(shares)) | {"markersize": 5, "zorder": 9 - place}
                x = [alphas.index(alpha) + _shift(place, len(shares)) for alpha in rows["alpha"]]
                y = 100 * rows["validity"]
                axes.errorbar(x, y, yerr=errors, capsize=2.5, elinewidth=1, label=f"k = {100 * share:g} %", **style)
            axes.set_title(DATASETS[dataset], loc="left", fontsize=10)
            _alpha_axis(axes, alphas)
        panels[0].set_ylabel("average validity (%)")
        below = max(0.5, 0.12 * (100 - lowest))
        panels[0].set_ylim(lowest - below, 100 + 0.5 * below)
        panels[0].set_yticks([tick for tick in panels[0].get_yticks() if lowest - below <= tick <= 100])
        _legend(figure, panels, [f"k = {100 * share:g} %" for share in shares], columns=len(shares))
        return svg_text(figure)


def _shade(place: int, count: int) -> dict[str, Any]:
    step = round(place * (len(SHADES) - 1) / (count - 1)) if count > 1 else 3
    face = "white" if place % 2 else SHADES[step]
    return {"color": SHADES[step], "marker": SHADE_MARKERS[step], "markerfacecolor": face, "linewidth": 1.2}


def worst_case_points(results: Results) -> pd.DataFrame:
    """Logistic regression, corrected setting (the published one if that is all there is): survivors and cost."""
    rows = where(results.methods, model="lr")
    rows = rows[rows["worst_case_validity"].notna()]
    settings = _present(SETTINGS, rows["setting"])
    return where(rows, setting=settings[-1]) if settings else rows


def draw_worst_case(points: pd.DataFrame) -> str:
    """Share that survives the worst deletion found against mean cost; 95 % intervals both ways."""
    datasets = _present(DATASETS, points["dataset"])
    with canvas(_width(datasets), 3.7, panels=len(datasets)) as (figure, panels):
        for axes, dataset in zip(panels, datasets, strict=True):
            group = where(points, dataset=dataset)
            for method in METHODS:
                for row in where(group, method=method).to_dict("records"):
                    _survivors(axes, row)
            axes.set_xscale("log")
            axes.set_xlim(0.7 * group["l2"].min(), 1.4 * group["l2"].max())
            _log_ticks(axes.xaxis, *axes.get_xlim())
            size = f", k = {group['k'].max():.0f}" if group["k"].max() > 0 else ""  # a baseline alone has no k
            axes.set_title(f"{DATASETS[dataset]}{size}", loc="left", fontsize=10)
            axes.set_xlabel("mean cost (L2, log scale)")
            axes.set_ylim(-6, 106)
        panels[0].set_ylabel("survive the worst k found (%)")
        _legend(figure, panels, list(METHODS.values()), columns=3)
        return svg_text(figure)


def _survivors(axes: Any, row: Row) -> None:
    share = row["worst_case_validity"]
    low, high = binomial_interval(share, row["worst_case_people"])
    style = look(row["method"]) | {"linestyle": "none", "markersize": 9 if row["method"] == "retrained" else 7}
    across = 2 * row["l2_se"] if np.isfinite(row["l2_se"]) else 0.0
    up = [[100 * (share - low)], [100 * (high - share)]]
    axes.errorbar([row["l2"]], [100 * share], xerr=across, yerr=up, capsize=2.5, elinewidth=1, zorder=3, **style)


def _log_ticks(axis: Any, low: float, high: float) -> None:
    """Plain numbers 1, 2, 3, 5 in each decade between two values; only the decades where there are many."""
    from matplotlib.ticker import FixedLocator, NullLocator

    decades = range(math.floor(math.log10(low)), math.ceil(math.log10(high)) + 1)
    steps = (1, 2, 3, 5) if len(decades) <= 4 else (1,)
    ticks = [step * 10.0**decade for decade in decades for step in steps if low <= step * 10.0**decade <= high]
    axis.set_major_locator(FixedLocator(ticks))
    axis.set_minor_locator(NullLocator())
    axis.set_major_formatter(lambda value, _: f"{value:g}")


def binomial_interval(share: float, people: float) -> tuple[float, float]:
    """Clopper and Pearson's 95 % interval for a share of so many people.

    >>> low, high = binomial_interval(1.0, 40)
    >>> round(low, 3), high
    (0.912, 1.0)
    """
    from scipy.special import betaincinv

    if not people > 0:
        return share, share
    hits = round(share * people)
    low = 0.0 if hits == 0 else float(betaincinv(hits, people - hits + 1, 0.025))
    high = 1.0 if hits == people else float(betaincinv(hits + 1, people - hits, 0.975))
    return min(low, share), max(high, share)


#: The bounds of the theorem check: column, line, what the legend says.
BOUNDS = {
    "bound": ((0, (4, 2)), "bound of Theorem 4.1, same shade"),
    "bound_42": ((0, (1, 1.5)), "bound of Theorem 4.2, same shade"),
}


def draw_theorem(table: pd.DataFrame) -> str:
    """Extra cost of the paper's method over the plain optimum against k/n, and the bounds; both axes logarithmic."""
    sizes = sorted(set(table["n"]))
    bounds = {name: what for name, what in BOUNDS.items() if name in table and table[name].notna().any()}
    with canvas(8.6, 4.8) as (figure, (axes,)):
        for place, n in enumerate(sizes):
            rows = table[table["n"] == n].sort_values("k_over_n")
            share, style = 100 * rows["k_over_n"], _shade(place, len(sizes))
            seen = rows["extra_cost"].where(rows["extra_cost"] > 0)
            axes.plot(share, seen, label=f"measured, n = {n:,}", markersize=6, **style)
            for name, (dashes, _) in bounds.items():
                axes.plot(share, rows[name], linestyle=dashes, linewidth=1.3, marker=".", color=style["color"])
        for dashes, label in bounds.values():
            axes.plot([], [], linestyle=dashes, color="#555555", label=label)
        axes.set_xscale("log")
        axes.set_yscale("log")
        _log_ticks(axes.xaxis, *axes.get_xlim())
        _log_ticks(axes.yaxis, *axes.get_ylim())
        axes.set_xlabel("training rows deleted, k/n (%, log scale)")
        axes.set_ylabel("extra cost over the plain optimum (L2, log scale)")
        _legend(figure, [axes], axes.get_legend_handles_labels()[1], columns=3)
        return svg_text(figure)


def write_figures(results: Results, folder: Path) -> dict[str, str]:
    """Write every figure that the results allow as SVG; returns their text by file name."""
    curves = validity_curves_of(results)
    figures = {f"validity_{m}.svg": draw_validity(curves, m) for m in MODELS if any(c.model == m for c in curves)}
    if results.sensitivity is not None:
        figures["sensitivity.svg"] = draw_sensitivity(results.sensitivity)
    points = worst_case_points(results)
    if len(points):
        figures["worst_case.svg"] = draw_worst_case(points)
    if results.theorem is not None:
        figures["theorem.svg"] = draw_theorem(results.theorem)
    write_files((folder / name, text) for name, text in figures.items())
    return figures
