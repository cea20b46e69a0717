"""Axes on which what matters can be seen: shares near 100 %, costs on a log scale."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any

#: Shares from here on are drawn together, just below the strip of exactly 100 %.
NEARLY = 0.999
#: Ticks of a share.
TICKS = (0.0, 0.5, 0.8, 0.9, 0.96, 0.99, 0.999)
#: Height of one method's lane in a strip, and the gap to it; the unit is a tenth of the refused share.
LANE, GAP = 0.2, 0.18
#: Lanes left free above the highest one, where its label has room.
HEAD = 0.9


def height(share: float) -> float:
    """Where a share below 1 stands: each step of one is a tenth of the share that is refused.

    >>> [round(height(share), 2) for share in (0.0, 0.9, 0.96, 0.996, 0.99999)]
    [0.0, 1.0, 1.4, 2.4, 3.0]
    """
    return 0.0 - math.log10(1 - min(share, NEARLY))


TOP = height(NEARLY)


class Shares:
    """The vertical axis of a panel: valid shares by what is refused, with strips for exactly 0 and exactly 100 %.

    In a strip every method has a lane of its own, so that methods that are all at 100 % do not hide each other.
    """

    def __init__(self, methods: Sequence[str], zeros: Sequence[str] = ()) -> None:
        self.methods, self.zeros = list(methods), list(zeros)

    @property
    def limits(self) -> tuple[float, float]:
        """Lowest and highest place of the axis."""
        below = GAP + LANE * (len(self.zeros) + 0.2) if self.zeros else 0.1
        return -below, TOP + GAP + LANE * (len(self.methods) + HEAD)

    def place(self, share: float, method: str) -> float:
        """Where a method's share stands."""
        if share >= 1:
            return TOP + GAP + LANE * (len(self.methods) - self.methods.index(method) - 0.5)
        if share <= 0 and method in self.zeros:
            return -GAP - LANE * (self.zeros.index(method) + 0.5)
        return height(share)

    def draw(self, axes: Any) -> None:
        """Ticks, limits and strips."""
        low, high = self.limits
        strip = TOP + GAP + LANE * len(self.methods) / 2
        places = [height(tick) for tick in TICKS if tick > 0 or not self.zeros]
        names = [f"{100 * tick:g}" for tick in TICKS if tick > 0 or not self.zeros]
        axes.set_ylim(low, high)
        axes.axhspan(TOP + GAP * 0.6, high, color="#eaf3ee", zorder=0, linewidth=0)
        if self.zeros:
            axes.axhspan(low, -GAP * 0.6, color="#f6ecea", zorder=0, linewidth=0)
            places, names = [low / 2 - GAP / 2, *places], ["0", *names]
        axes.set_yticks([*places, strip], [*names, "100"])
        axes.grid(visible=True, axis="y")


def log_ticks(axis: Any, low: float, high: float) -> None:
    """Plain numbers in each decade between two values; only the decades where there are many."""
    from matplotlib.ticker import FixedLocator, NullLocator

    decades = range(math.floor(math.log10(low)), math.ceil(math.log10(high)) + 1)
    ratio = high / low
    steps: tuple[float, ...] = (1, 1.25, 1.5, 2, 2.5, 3, 4, 5, 6, 8)
    if ratio > 3:
        steps = (1, 1.5, 2, 3, 4, 5, 6, 8) if ratio < 8 else (1, 2, 3, 5) if len(decades) <= 4 else (1,)
    ticks = [step * 10.0**decade for decade in decades for step in steps if low <= step * 10.0**decade <= high]
    axis.set_major_locator(FixedLocator(ticks))
    axis.set_minor_locator(NullLocator())
    axis.set_major_formatter(lambda value, _: f"{value:g}")
