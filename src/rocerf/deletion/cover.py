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

#: What sums of the same harms may be off, as a share.
ROUNDING = 1e-9


def serving(harms: Array, k: int, known: Groups, share: float = SERVES) -> tuple[list[Places], Places]:
    """For points with harms (P, n): new sets to retrain, and the group that serves each point, (P,).

    Groups are numbered as they will stand once the new sets are added to the ``known``. A point that no row holds up is
    served by the first group.
    """
    own = worst_sets(harms, k)
    # Sums in another order differ in their last digits: a set must always serve the point that it was picked for.
    needed = (1.0 - ROUNDING) * share * np.array([harms[point, rows].sum() for point, rows in enumerate(own)])
    group = np.zeros(len(own), np.intp)
    open_ = np.flatnonzero(needed < 0)
    if len(known) and len(open_):
        offered = promised_harm(harms[open_], known.sets)
        best = offered.argmin(axis=1)
        met = offered[np.arange(len(open_)), best] <= needed[open_]
        group[open_[met]] = best[met]
        open_ = open_[~met]
    chosen = _fewest(promised_harm(harms[open_], [own[point] for point in open_]) <= needed[open_, None])
    new = [own[open_[column]] for column in chosen]
    if new:
        offered = promised_harm(harms[open_], new)
        group[open_] = len(known) + offered.argmin(axis=1)
    return new, group


def _fewest(serves: Mask) -> Sequence[int]:
    """Columns of a Boolean matrix, few, so that every row has one: the one that serves most, and again.

    >>> _fewest(np.array([[True, True, False], [False, True, False], [False, False, True]]))
    [1, 2]
    """
    chosen: list[int] = []
    left = np.ones(len(serves), bool)
    while bool(serves[left].any()):
        column = int(serves[left].sum(axis=0).argmax())
        chosen.append(column)
        left &= ~serves[:, column]
    return chosen
