"""The curves: validity against cost, one panel for each table and way of deletion; a constant margin in black."""

from __future__ import annotations

import math
from collections.abc import Sequence
from itertools import product
from typing import Any

from rocerf.drawing import COLOURS, MARKERS, canvas, svg_text
from rocerf.reproduction.frontier import KINDS, Frontier, Tried
from rocerf.reproduction.labels import Drawn, Label, write_labels
from rocerf.reproduction.published import DATASETS, METHODS, TABLES
from rocerf.reproduction.scales import TOP, Shares, height, log_ticks
from rocerf.reproduction.words import percent

#: Methods in the panels, drawn in this order; the constant margin lies under all.
SHOWN = ("margin", "scfe", "cchvae", "roar", "rocerf", "first_order", "simulated", "retrained")
SHORT = {"margin": "constant margin", "rocerf": "ROCERF", "first_order": "first_order", "simulated": "simulated"}
SHORT |= {"retrained": "retrained", "scfe": "SCFE", "cchvae": "C-CHVAE", "roar": "ROAR"}
#: The cost axis ends at so many times the dearest of ROCERF and ours at their own knob.
ROOM = 1.9


def panels_of(frontiers: Sequence[Frontier], model: str) -> list[tuple[str, str]]:
    """Table and way of deletion of each panel that a run allows."""
    known = {f.dataset for f in frontiers if f.model == model and f.setting == "corrected"}
    return [(dataset, kind) for dataset, kind in product(TABLES, KINDS) if dataset in known]


def draw_curves(frontiers: Sequence[Frontier], model: str, panels: Sequence[tuple[str, str]] | None = None) -> str:
    """Corrected setting: a panel for each table (down) and way of deletion (across), or for some of them alone."""
    shown = panels_of(frontiers, model) if panels is None else list(panels)
    across = min(2, len(shown))
    rows = math.ceil(len(shown) / across)
    with canvas(4.7 * across, 3.75 * rows, panels=across, rows=rows) as (figure, drawn):
        figure.get_layout_engine().set(w_pad=0.08, h_pad=0.08)
        curves = [
            [f for f in frontiers if (f.model, f.dataset, f.setting) == (model, d, "corrected")] for d, _ in shown
        ]
        scale = _scale([f for found in curves for f in found])  # one for all: panels share their upright axis
        waiting = [
            _panel(axes, scale, found, kind) for axes, found, (_, kind) in zip(drawn, curves, shown, strict=False)
        ]
        for axes, (dataset, kind) in zip(drawn, shown, strict=False):
            axes.set_title(f"{DATASETS[dataset]}: {KINDS[kind]}", loc="left", fontsize=10)
            axes.set_xlabel("mean cost (L2, log scale)")
            axes.set_ylabel("answers still valid (%)")
            axes.tick_params(axis="y", labelleft=True)
        figure.draw_without_rendering()
        for axes, panel in zip(drawn, waiting, strict=False):
            write_labels(axes, panel)
        return svg_text(figure)


def panel_words(frontiers: Sequence[Frontier], model: str, dataset: str, kind: str) -> str:
    """What a panel shows, for whoever does not see it: each method at its own knob, or its cheapest full setting."""
    said = []
    for curve in (f for f in frontiers if (f.setting, f.model, f.dataset) == ("corrected", model, dataset)):
        point = curve.own or curve.cheapest(kind, curve.best(kind))
        if point is not None and math.isfinite(point.share(kind)):
            said.append(f"{METHODS[curve.method]} {percent(point.share(kind))} at a cost of {point.l2:.2f}")
    return f"{DATASETS[dataset]}, {KINDS[kind]}, validity against cost: {'; '.join(said)}"


def _scale(frontiers: Sequence[Frontier]) -> Shares:
    """An upright axis with lanes for every method that is drawn."""
    known = [f for f in frontiers if any(math.isfinite(f.best(kind)) for kind in KINDS)]
    methods = [method for method in SHOWN if any(f.method == method for f in known)]
    return Shares(methods, [m for m in methods if any(f.method == m and _has_zero(f) for f in known)])


def _panel(axes: Any, shares: Shares, frontiers: Sequence[Frontier], kind: str) -> Drawn:
    """Draw every method; returns what is to be labelled, and what labels must not hide."""
    curves = {f.method: f for f in frontiers if f.method in SHOWN and math.isfinite(f.best(kind))}
    shares.draw(axes)
    drawn = Drawn()
    if not curves:
        return drawn
    low, high = _cost_limits(curves)
    axes.set_xscale("log")
    axes.set_xlim(low, high)
    log_ticks(axes.xaxis, low, high)
    for method in (method for method in SHOWN if method in curves):
        points = [p for p in curves[method].tried if math.isfinite(p.share(kind)) and math.isfinite(p.l2)]
        points = sorted(points, key=lambda p: p.l2)
        _line(axes, shares, method, points, curves[method].own, kind, drawn)
        inside = [p for p in points if p.l2 <= high]
        places = [(p.l2, shares.place(p.share(kind), method)) for p in inside]
        if not inside:  # dearer than the axis goes: an arrow at its end
            places = [(high, shares.place(points[0].share(kind), method))]
            axes.plot(*zip(*places, strict=True), marker=">", color=COLOURS[method], clip_on=False, markersize=6)
            drawn.marks.append((*places[0], 5.0))
        text = SHORT[method] if inside else f"{SHORT[method]} at {points[0].l2:.1f}"
        drawn.labels.append(Label(text, COLOURS[method], tuple(places)))
    return drawn


def _has_zero(frontier: Frontier) -> bool:
    return any(point.share(kind) <= 0 for point in frontier.tried for kind in KINDS)


def _cost_limits(curves: dict[str, Frontier]) -> tuple[float, float]:
    costs = [p.l2 for f in curves.values() for p in f.tried if math.isfinite(p.l2)]
    own = [f.own.l2 for m, f in curves.items() if m in ("rocerf", "simulated", "retrained") and f.own]
    wide = max((cost for cost in own if math.isfinite(cost)), default=max(costs))
    return 0.93 * min(costs), 1.02 * max(min(max(costs), ROOM * wide), 1.1 * min(costs))


def _line(
    axes: Any, shares: Shares, method: str, points: Sequence[Tried], own: Tried | None, kind: str, drawn: Drawn
) -> None:
    """A method's curve with its bars and ring; what it takes up goes into ``drawn``."""
    x, y = [p.l2 for p in points], [shares.place(p.share(kind), method) for p in points]
    thick, colour = method == "margin", COLOURS[method]
    hollow = method == "first_order"
    axes.plot(
        x,
        y,
        color=colour,
        linewidth=2.4 if thick else 1.3,
        linestyle=(0, (4, 2)) if hollow else "-",
        marker=MARKERS[method],
        markersize=6 if thick else 4.5,
        markerfacecolor="white" if hollow else colour,
        zorder=2 if thick else 4,
    )
    drawn.lines.append([*zip(x, y, strict=True)])
    for point, place in zip(points, y, strict=True):
        if point.l2 > axes.get_xlim()[1]:  # beyond the axis
            continue
        drawn.marks.append((point.l2, place, 6.5 if point is own else 4.0))
        down, up = (_bar_end(end, place) for end in getattr(point, f"{kind}_range"))
        if up - down > 0.02 and 0 < point.share(kind) < 1:
            axes.plot([point.l2] * 2, [down, up], color=colour, linewidth=0.9, alpha=0.55, zorder=1)
            drawn.lines.append([(point.l2, down), (point.l2, up)])
        if point.seeds > 1:  # over people costs go up and down together, so that their errors say little here
            axes.plot(list(point.l2_range), [place] * 2, color=colour, linewidth=0.9, alpha=0.55, zorder=1)
            drawn.lines.append([(cost, place) for cost in point.l2_range])
    if own in points and own is not None:
        place = shares.place(own.share(kind), method)
        ring = {"markersize": 10.5, "markerfacecolor": "none", "markeredgewidth": 1.3, "zorder": 5}
        axes.plot([own.l2], [place], marker="o", color=colour, linestyle="none", **ring)


def _bar_end(share: float, place: float) -> float:
    """The end of a bar on the axis; one that reaches 100 % stops at the strip."""
    return TOP if share >= 1 else height(share) if place <= TOP else place
