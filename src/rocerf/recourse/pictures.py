"""Pictures of answers, and how notebooks show them."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from textwrap import fill
from typing import TYPE_CHECKING, Any

import numpy as np

from rocerf.drawing import COLOURS, Picture, canvas
from rocerf.html import Html, Table, joined, tag

if TYPE_CHECKING:
    from rocerf.data.training_set import TrainingSet
    from rocerf.recourse.change import Change
    from rocerf.recourse.result import Recourse, Recourses

#: Changes that a picture has room for, and rows of a table in a notebook.
MOST_CHANGES, MOST_ROWS = 12, 20

#: Parts of a line in which training rows are counted.
BINS = 40

#: Letters of a label on one line.
WIDEST = 30

#: Share of a line below which two values would be written on each other.
CLOSE = 0.1

BEFORE, AFTER = COLOURS["plain"], COLOURS["retrained"]


def draw_recourse(recourse: Recourse, train: TrainingSet | None) -> Picture:
    """What moves, how far, and where the bounds are; the training rows as a shade, where they are given."""
    changes = recourse.changes[:MOST_CHANGES]
    ranges = [_range(recourse, change, train) for change in changes]
    with canvas(7.2, 1.1 + 0.62 * max(1, len(changes))) as (figure, (axes,)):
        for place, (change, ends) in enumerate(zip(changes, ranges, strict=True)):
            _draw_change(axes, place, change, *ends)
        axes.set_ylim(len(changes) - 0.4, -0.6)
        axes.set_xlim(-0.04, 1.04)
        axes.set_yticks(range(len(changes)), [fill(change.label, WIDEST) for change in changes])
        axes.set_xticks([])
        axes.grid(visible=False)
        axes.spines["bottom"].set_visible(False)
        more = len(recourse.changes) - len(changes)
        rest = f" and {more} more" if more else ""
        number = f"{len(changes)} change" + ("" if len(changes) == 1 else "s")
        axes.set_title(f"{recourse.name}: {number}{rest}, cost {recourse.cost:.2f}", loc="left")
        if not recourse.answered:
            axes.set_title(f"{recourse.name}: no answer", loc="left")
        axes.set_xlabel(_legend(ranges), fontsize=9)
    said = "; ".join(change.brief for change in changes) + rest or str(recourse.reason)
    return Picture(f"The answer for {recourse.name}: {said}.", figure)


def _legend(ranges: list[tuple[float, float, Any]]) -> str:
    """What the marks of these lines mean; of a word and of a missing number there are neither ends nor a shade."""
    said = "from the square to the triangle"
    if any(seen is not None or (low, high) != (0.0, 1.0) for low, high, seen in ranges):
        said += "; the line spans what is allowed or was seen"
    if any(seen is not None for *_, seen in ranges):
        said += "\nthe shade is where training rows are"
    return said


def _range(recourse: Recourse, change: Change, train: TrainingSet | None) -> tuple[float, float, Any]:
    """The ends of a change's line, and the training rows' values of a number, if known."""
    if isinstance(change.before, str) or isinstance(change.after, str) or change.before is None:
        return 0.0, 1.0, None
    seen = None
    if train is not None and change.feature in train.columns and not train.on_disk:
        seen = np.asarray(train.X)[:, train.columns.index(change.feature)]
    feature = None if recourse.schema is None or change.feature not in recourse.schema.names else change.feature
    lower, upper = -np.inf, np.inf
    if feature is not None and recourse.schema is not None:
        lower, upper = recourse.schema[feature].lower, recourse.schema[feature].upper
    known = [change.before, change.after, *([] if seen is None else np.quantile(seen, [0.01, 0.99]))]
    low = min([*known, lower] if np.isfinite(lower) else known)
    high = max([*known, upper] if np.isfinite(upper) else known)
    return float(low), float(high), seen


def _bins(seen: Any, low: float, high: float) -> Any:
    """Edges of about 40 bins; each of as many whole numbers as the others, where the values are whole."""
    if not (seen % 1 == 0).all():
        return np.linspace(low, high, BINS + 1)
    step = max(1.0, np.ceil((high - low + 1) / BINS))
    return np.arange(np.floor(low) - 0.5, np.ceil(high) + step, step)


def _draw_change(axes: Any, place: int, change: Change, low: float, high: float, seen: Any) -> None:
    """One line: before, after, and the values beside them."""
    word = isinstance(change.before, str) or isinstance(change.after, str) or change.before is None
    width = high - low or 1.0
    before, after = (0.25, 0.75) if word else ((float(v) - low) / width for v in (change.before, change.after))
    axes.plot([0, 1], [place, place], color="0.8", linewidth=2, zorder=1, solid_capstyle="round")
    if seen is not None:
        counts, edges = np.histogram(seen, bins=_bins(seen, low, low + width))
        heights = 0.34 * counts / max(1, counts.max())
        middles = np.clip(((edges[:-1] + edges[1:]) / 2 - low) / width, 0.0, 1.0)
        axes.fill_between(middles, place, place - heights, color="0.88")
    arrow = {"arrowstyle": "-|>", "color": "0.35", "shrinkA": 4, "shrinkB": 4}
    axes.annotate("", (after, place), (before, place), arrowprops=arrow, zorder=2)
    axes.plot(before, place, "s", color=BEFORE, zorder=3)
    axes.plot(after, place, "^", color=AFTER, zorder=3)
    close = abs(after - before) < CLOSE  # then the values stand beside each other, not on each other
    for x, other, value in ((before, after, change.before), (after, before, change.after)):
        shown = value if isinstance(value, str) else "missing" if value is None else f"{value:,.6g}"
        side = "center" if not close else "left" if x > other else "right"
        axes.annotate(shown, (x, place), (0, -14), textcoords="offset points", ha=side, fontsize=8.5)


def draw_recourses(recourses: Recourses) -> Picture:
    """What the answers cost, and which changes they ask for most often."""
    asked = Counter(change.label for recourse in recourses for change in recourse.changes)
    top = asked.most_common(MOST_CHANGES)
    costs = recourses.costs[recourses.answered]
    names = [fill(label, WIDEST) for label, _ in top]
    lines = max([2, *(name.count("\n") + 1 for name in names)])
    with canvas(9.0, max(2.6, 1.2 + 0.18 * lines * len(top)), panels=2, sharey=False) as (figure, (left, right)):
        if len(costs):
            left.hist(costs, bins=min(30, max(5, len(costs) // 4)), color=AFTER, alpha=0.85)
        left.yaxis.get_major_locator().set_params(integer=True)
        right.xaxis.get_major_locator().set_params(integer=True)
        left.set_xlabel("cost")
        left.set_ylabel("people")
        left.set_title(f"{len(costs)} of {len(recourses)} answered", loc="left")
        right.barh(names[::-1], [count for _, count in top][::-1], color=COLOURS["first_order"])
        for axes in (left, right):
            axes.set_axisbelow(True)
        right.set_xlabel("people asked to change it")
        right.set_title("changes asked for most", loc="left")
    most = ", ".join(f"{label} ({count})" for label, count in top[:3])
    mean = f", mean cost {costs.mean():.2f}" if len(costs) else ""
    return Picture(f"{len(costs)} of {len(recourses)} people answered{mean}; asked for most: {most}.", figure)


def recourse_html(recourse: Recourse) -> str:
    """One person's answer as a notebook shows it."""
    rows = [(change.label, *_sides(change)) for change in recourse.changes]
    head = tag("strong", str(recourse.name), ": ", str(recourse.status.sentence))
    body = Table(("change", "from", "to"), rows).html() if rows else tag("p", str(recourse.reason))
    said = f"Cost {recourse.cost:.3f}. The answer {recourse.promise}." if recourse.answered else f"{recourse.promise}."
    return tag("div", tag("p", head), body, tag("p", said[:1].upper() + said[1:]))


def recourses_html(recourses: Recourses) -> str:
    """A batch as a notebook shows it: a line a person."""
    rows = [
        (str(r.name), r.status.code, f"{r.cost:.3f}" if r.answered else "", _told(r) or r.reason)
        for r in recourses[:MOST_ROWS]
    ]
    more = len(recourses) - len(rows)
    rest = tag("p", f"and {more} more people") if more > 0 else Html("")
    return joined(tag("p", repr(recourses)), Table(("person", "status", "cost", "changes"), rows).html(), rest)


def _told(recourse: Recourse) -> str:
    """The changes in a line, as many as a picture has room for."""
    more = len(recourse.changes) - MOST_CHANGES
    told = "; ".join(change.brief for change in recourse.changes[:MOST_CHANGES])
    return told + (f"; and {more} more" if more > 0 else "")


def _sides(change: Change) -> Sequence[str]:
    before, _, after = change.brief.removeprefix(f"{change.label}: ").partition(" -> ")
    return before, after
