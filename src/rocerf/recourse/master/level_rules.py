"""Which levels of a choice are still open under rules that are about several attributes at once, and under a cost."""

from __future__ import annotations

import numpy as np

from rocerf.recourse.master.feasible_set import FeasibleSet
from rocerf.recourse.master.levels import Levels
from rocerf.types import Mask


def affordable(levels: Levels, allowed: FeasibleSet, chosen: Mask, below: float) -> Mask:
    """Levels (S,) that leave the whole below a cost (a sum of parts), and within what one person may change."""
    parts = np.where(chosen, levels.parts, np.inf)
    least = np.minimum.reduceat(parts, levels.starts)
    fits = np.ones(len(chosen), bool)
    if np.isfinite(below):
        fits = parts + (least.sum() - least[levels.axis]) < below
    rules, nothing = allowed.rules, np.zeros(len(chosen), bool)
    if rules is None:
        return fits
    must = ~np.logical_or.reduceat(chosen & levels.own, levels.starts)
    if rules.most_changes is not None:
        count = int(must.sum())
        if count > rules.most_changes:
            return nothing
        if count == rules.most_changes:
            fits &= levels.own | must[levels.axis]
    for group in () if allowed.excluded is None else allowed.excluded[0]:
        free = [place for place in group if not must[place]]
        if not free:
            return nothing
        if len(free) == 1:
            fits &= levels.own | (levels.axis != free[0])
    return fits if _related(levels, allowed, chosen) else nothing


def _related(levels: Levels, allowed: FeasibleSet, chosen: Mask) -> bool:
    """Whether the relations can be kept by some values of the levels chosen."""
    rules = allowed.rules
    if rules is None or not len(rules.limits):
        return True
    low, high = np.where(chosen[:, None], levels.low, np.inf), np.where(chosen[:, None], levels.high, -np.inf)
    columns = np.arange(low.shape[1])
    least = np.minimum.reduceat(low, levels.starts, axis=0)[levels.columns, columns]
    most = np.maximum.reduceat(high, levels.starts, axis=0)[levels.columns, columns]
    with np.errstate(invalid="ignore"):
        ends = np.where(rules.relations > 0, rules.relations * least, rules.relations * most)
    lowest = np.where(rules.relations == 0, 0.0, ends).sum(axis=1)
    room = rules.room(np.where(np.isfinite(most), most, 0.0)[None], allowed.X0)[0]
    return bool((lowest <= rules.limits + room).all())
