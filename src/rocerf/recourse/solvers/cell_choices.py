"""Choices of one level for each attribute, improved one attribute at a time: first answers for the solver of cells."""

from __future__ import annotations

from collections.abc import Callable, Iterator

import numpy as np

from rocerf.recourse.master.levels import Levels
from rocerf.types import Array, Mask, Places

#: Times that all attributes are gone through.
SWEEPS = 2


def pulled(levels: Levels, choice: Places, accepted: Callable[[Places], Mask]) -> Places:
    """A choice (A,) with levels made cheaper one by one as long as choices (m, A) are accepted, the dearest first."""

    def cheaper(choice: Places, own: Places, tried: Places) -> int | None:
        better = levels.parts[own] < levels.parts[choice[levels.axis[own[0]]]]
        good = own[better][accepted(tried[better])] if better.any() else own[:0]
        return int(good[levels.parts[good].argmin()]) if len(good) else None

    return _improved(levels, choice, cheaper)


def climbed(levels: Levels, choice: Places, slack: Callable[[Places], Array]) -> Places:
    """A choice (A,) with levels that raise the slack of choices (m, A) -> (m,) most, one by one until it is 0."""

    def higher(choice: Places, own: Places, tried: Places) -> int | None:
        here, there = slack(choice[None])[0], slack(tried)
        if here >= 0.0 or there.max() <= here:
            return None
        enough = np.flatnonzero(there >= 0.0)
        return int(own[enough[levels.parts[own[enough]].argmin()]] if len(enough) else own[there.argmax()])

    return _improved(levels, choice, higher)


def _improved(levels: Levels, choice: Places, better: Callable[[Places, Places, Places], int | None]) -> Places:
    choice = choice.copy()
    for _ in range(SWEEPS):
        before = choice.copy()
        for own, tried in _neighbours(levels, choice):
            found = better(choice, own, tried)
            if found is not None:
                choice[levels.axis[found]] = found
        if (choice == before).all():
            break
    return choice


def _neighbours(levels: Levels, choice: Places) -> Iterator[tuple[Places, Places]]:
    """The levels of each axis, the dearest first, and the choice with each of them instead of its own."""
    for axis in np.argsort(-levels.parts[choice], kind="stable"):
        own = np.flatnonzero(levels.axis == axis)
        tried = np.tile(choice, (len(own), 1))
        tried[:, axis] = own
        yield own, tried
