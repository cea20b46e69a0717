"""Few sets for many points: a set picked at one point serves every other at which it does nearly the same harm.

Retraining costs far more than guessing. So before a set is retrained for a point, those retrained already are asked
what the same guess makes of them there; and among new sets, the fewest are chosen that serve everybody.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from rocerf.deletion.groups import Groups
from rocerf.deletion.guesses import promised_harm, worst_sets
from rocerf.types import Array, Mask, Places

#: Share of the harm guessed for a point's own worst set from which another set serves it as well.
SERVES = 0.97

#: The same share from which the models of one group stand for those of another when new rows are guessed there.
REPRESENTS = 0.9


def serving(harms: Array, k: int, known: Groups, share: float = SERVES) -> tuple[list[Places], Places]:
    """For points with harms (P, n): new sets to retrain, and the group that serves each point, (P,).

    Groups are numbered as they will stand once the new sets are added to the ``known``. A point that no row holds up is
    served by the first group.
    """
    own = worst_sets(harms, k)
    # Added up in the order of `promised_harm`, to the bit: otherwise a share of 1 may part a set from its own point.
    needed = share * np.array([_in_order(harms[point, rows]) for point, rows in enumerate(own)])
    group = np.zeros(len(own), np.intp)
    open_ = np.flatnonzero(needed < 0)
    if len(known) and len(open_):
        offered = promised_harm(harms[open_], known.sets)
        best = offered.argmin(axis=1)
        met = offered[np.arange(len(open_)), best] <= needed[open_]
        group[open_[met]] = best[met]
        open_ = open_[~met]
    offered_new = list({own[point].tobytes(): own[point] for point in open_}.values())
    chosen = _fewest(promised_harm(harms[open_], offered_new) <= needed[open_, None])
    new = [offered_new[column] for column in chosen]
    if new:
        offered = promised_harm(harms[open_], new)
        group[open_] = len(known) + offered.argmin(axis=1)
    return new, group


def shared_worst(harms: Array, known: Groups, worst: Places, share: float = REPRESENTS) -> Places:
    """For points with harms (P, n) and a worst group each (P,): few of these groups, one for each point, (P,).

    A group stands for another one where it does nearly the same harm: guesses at a retrained model then serve many.
    """
    groups = np.unique(worst)
    offered = promised_harm(harms, [known.sets[group] for group in groups])
    own = offered[np.arange(len(worst)), np.searchsorted(groups, worst)]
    chosen = np.array(_fewest(offered <= share * own[:, None] + 1e-12), np.intp)
    return np.asarray(groups[chosen[offered[:, chosen].argmin(axis=1)]])


def _in_order(harms: Array) -> float:
    """The sum from first to last; NumPy's own adds in pairs."""
    return float(np.cumsum(harms)[-1]) if len(harms) else 0.0


def _fewest(serves: Mask) -> Sequence[int]:
    """Columns of a Boolean matrix, few, so that every row that has any has one: that which serves most, and again.

    >>> _fewest(np.array([[True, True, False], [False, True, False], [False, False, True]]))
    [1, 2]
    """
    chosen: list[int] = []
    left = serves.any(axis=1)
    while bool(left.any()):
        column = int(serves[left].sum(axis=0).argmax())
        chosen.append(column)
        left &= ~serves[:, column]
    return chosen
