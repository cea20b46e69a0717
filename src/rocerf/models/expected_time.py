"""How long work takes, seen by doing a small part of it."""

from __future__ import annotations

from collections.abc import Callable
from time import perf_counter
from typing import Any


def seconds_of(work: Callable[[], Any]) -> float:
    """The time of one call; of the quicker of two where that costs next to nothing."""
    first = _timed(work)
    return first if first > 0.1 else min(first, _timed(work))


def _timed(work: Callable[[], Any]) -> float:
    start = perf_counter()
    work()
    return perf_counter() - start
