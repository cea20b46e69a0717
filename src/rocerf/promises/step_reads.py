"""Groups whose scores move in steps, asked one after the other: those that refuse most first.

A solver asks about thousands of points, and most of them are refused by a few of the groups. Whether a point is
accepted needs every group only where none refuses; a point that one refuses is let go. The first few groups are asked
about every point, so that points refused can still be compared.
"""

from __future__ import annotations

import numpy as np

from rocerf.deletion.efforts import GroupEffort
from rocerf.deletion.groups import Groups
from rocerf.models.model import Proposing
from rocerf.promises.group_value import GroupValues
from rocerf.types import Array, Places

#: Groups that are asked about every point.
ALWAYS = 4

#: Times that rows are picked anew by a model retrained without the worst set known.
PICKED_ANEW = 4

#: How much of what was counted before is kept at each reading.
KEPT = 0.9


def step_searches(model: Proposing, effort: GroupEffort, random: bool) -> list[str]:
    """The searches for harmful rows where scores move in steps, those that find most first.

    Where retraining has a single outcome a set costs one model, and rows are picked anew at models retrained already.
    """
    first, *rest = model.proposals
    thorough = "relinearised" in effort.searches
    rounds = max(effort.rounds, 0 if random else PICKED_ANEW)
    found = [first, "relinearised"] if rounds else [first]
    if "proposals" in effort.searches:
        found += rest
    if "other starts" in effort.searches and random:
        found.append("other starts")
    anew = ["relinearised", "regression"] if thorough or not random else []
    return found + anew * max(rounds - 1, 0)


class StepReads:
    """The lowest value over groups at points, and which group has it; a share of a group's models must accept."""

    def __init__(self, share: float) -> None:
        self.share = share
        self._refusing = np.empty(0)

    def lowest(self, pool: Groups, X: Array, floor: Array | float = -np.inf, first: int = 0) -> tuple[Array, Places]:
        """Values (P,) at points (P, d) over the groups from the ``first`` on, and the groups (P,) that have them.

        A value not below the ``floor``, one for all points or one for each, is the lowest of all groups. One below it
        may be that of the groups asked until then.
        """
        self._refusing = np.pad(self._refusing, (0, len(pool) - len(self._refusing)))
        order = np.argsort(-self._refusing, kind="stable")
        values, group = np.full(len(X), np.inf), np.full(len(X), first, np.intp)
        for number, place in enumerate(order[order >= first].tolist()):
            asked = np.flatnonzero(values >= floor) if number >= ALWAYS else np.arange(len(X))
            if not len(asked):
                break
            found = self._value(pool, place, X[asked])
            lower = found < values[asked]
            values[asked[lower]], group[asked[lower]] = found[lower], place
        refused = np.bincount(group[values < floor], minlength=len(pool))
        self._refusing = KEPT * self._refusing + refused / max(len(X), 1)
        return values, group

    def _value(self, pool: Groups, place: int, X: Array) -> Array:
        """The value of one group, (P,)."""
        scores = pool.of(place).scores(X)
        return np.asarray(GroupValues(scores, pool.sizes[place : place + 1], self.share, smooth=False).values()[0])
