"""The paper's figures and two that it did not draw, from tables computed elsewhere; SVG text.

One method has one colour and one marker in all of them (:data:`rocerf.evaluation.plots.COLOURS`).
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from itertools import product
from pathlib import Path
from typing import TYPE_CHECKING, Any

from rocerf.drawing import COLOURS, MARKERS, canvas, svg_text
from rocerf.reproduction.curve_figures import draw_curves, panels_of
from rocerf.reproduction.frontier import frontiers_of
from rocerf.reproduction.published import DATASETS, METHODS, MODELS, SETTINGS, TABLES
from rocerf.reproduction.scales import TOP, Shares, height, log_ticks
from rocerf.reproduction.tables import Curve, Results, validity_curves_of, where
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
    # What shares a colour with another method also differs in line and filling.
    hollow = method in ("first_order", "rocerf_exact", "cchvae_trained")
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
    shown = [curve for curve in curves if curve.model == model and curve.dataset in TABLES]
    settings = _present(SETTINGS, (c.setting for c in shown))
    datasets = _present(DATASETS, (c.dataset for c in shown))
    methods = _present(METHODS, (c.method for c in shown))
    alphas = sorted({alpha for c in shown for alpha in c.alphas})
    scale = Shares(methods, [m for m in methods if any(c.method == m and min(c.means_all) <= 0 for c in shown)])
    with canvas(_width(datasets), 0.9 + 3.3 * len(settings), panels=len(datasets), rows=len(settings)) as (fig, panels):
        for place, (axes, (setting, dataset)) in enumerate(zip(panels, product(settings, datasets), strict=True)):
            scale.draw(axes)
            for curve in (c for c in shown if (c.setting, c.dataset) == (setting, dataset)):
                _curve(axes, curve, alphas, _shift(methods.index(curve.method), len(methods)), scale)
            axes.set_title(f"{DATASETS[dataset]}, {SETTINGS[setting]}", loc="left", fontsize=10)
            _alpha_axis(axes, alphas, labelled=place // len(datasets) == len(settings) - 1)
            if place % len(datasets) == 0:
                axes.set_ylabel("average validity (%)")
        _legend(fig, panels, [METHODS[key] for key in methods], columns=4)
        return svg_text(fig)


def _present(names: dict[str, str], found: Iterable[str]) -> list[str]:
    """What was found, in the order in which it is named."""
    known = set(found)
    return [key for key in names if key in known]


def _width(datasets: Sequence[str]) -> float:
    """Inches for so many panels, and never so few that the legend is cut off."""
    return max(6.5, 1.6 + 2.9 * len(datasets))


def _curve(axes: Any, curve: Curve, alphas: Sequence[float], shift: float, scale: Shares) -> None:
    x = [alphas.index(alpha) + shift for alpha in curve.alphas]
    axes.plot(x, [scale.place(mean, curve.method) for mean in curve.means_all], **look(curve.method))
    for across, mean, (low, high) in zip(x, curve.means_all, curve.ranges, strict=True):
        if 0 < mean < 1:
            ends = [height(low), TOP if high >= 1 else height(high)]
            axes.plot([across] * 2, ends, color=COLOURS[curve.method], linewidth=1, alpha=0.6)


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
        log_ticks(axes.xaxis, *axes.get_xlim())
        log_ticks(axes.yaxis, *axes.get_ylim())
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
    if results.theorem is not None:
        figures["theorem.svg"] = draw_theorem(results.theorem)
    frontiers = frontiers_of(results)
    figures |= {f"curves_{m}.svg": draw_curves(frontiers, m) for m in MODELS if panels_of(frontiers, m)}
    write_files((folder / name, text) for name, text in figures.items())
    return figures
