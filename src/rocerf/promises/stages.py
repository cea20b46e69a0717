"""Progress of work in several stages, told as one number that only rises."""

from __future__ import annotations

from collections.abc import Sequence

from rocerf.progress import SHARES
from rocerf.types import Progress

#: Steps that the whole is told in.
STEPS = SHARES


def in_turn(progress: Progress | None, weights: Sequence[float]) -> list[Progress | None]:
    """A progress for each of several stages, one after the other, that take these shares of the time.

    >>> told = []
    >>> first, second = in_turn(lambda done, total: told.append(done), (1.0, 3.0))
    >>> first(1, 2), second(1, 3), second(3, 3)
    (None, None, None)
    >>> told
    [125, 500, 1000]
    """
    if progress is None:
        return [None] * len(weights)
    told, whole = [0], sum(weights)

    def stage(before: float, weight: float) -> Progress:
        def tell(done: int, total: int) -> None:
            share = (before + weight * done / max(total, 1)) / whole
            told[0] = max(told[0], min(STEPS, round(STEPS * share)))
            progress(told[0], STEPS)

        return tell

    return [stage(sum(weights[:place]), weight) for place, weight in enumerate(weights)]
