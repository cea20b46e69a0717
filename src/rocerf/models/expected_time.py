"""How long work takes, seen by doing a small part of it."""

from __future__ import annotations

from collections.abc import Callable
from time import perf_counter
from typing import Any

#: Seconds that nobody minds.
LITTLE = 0.5


def seconds_of(work: Callable[[], Any]) -> float:
    """The time of one call; of the quickest of three where that costs little: a first call may set things up."""
    first = _timed(work)
    return first if first > LITTLE else min(first, _timed(work), _timed(work))


def _timed(work: Callable[[], Any]) -> float:
    start = perf_counter()
    work()
    return perf_counter() - start
