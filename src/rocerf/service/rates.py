"""How often somebody may ask: a bucket of requests for each token, and a few wrong tokens for each address.

Counted in the memory of one process: a limit per process, which keeps reading free of writes to the database. Behind
several processes the whole allows so many times more.
"""

from __future__ import annotations

import math
import threading
import time
from collections import OrderedDict
from collections.abc import Callable

from rocerf.errors import TooOftenError

#: Tokens and addresses that are kept in mind; beyond, the one that was quiet for longest is forgotten.
KEPT = 10_000


class _Buckets:
    """So many requests a minute and at once for each name."""

    def __init__(self, per_minute: float, most: float, clock: Callable[[], float]) -> None:
        self._per_second, self._most, self._clock = per_minute / 60, most, clock
        self._left: OrderedDict[str, tuple[float, float]] = OrderedDict()
        self._lock = threading.Lock()

    def take(self, name: str) -> int:
        """Take one; 0 if there was one, else the seconds to wait."""
        with self._lock:
            now = self._clock()
            left, then = self._left.pop(name, (self._most, now))
            left = min(self._most, left + max(0.0, now - then) * self._per_second)
            enough = left >= 1.0
            self._left[name] = (left - 1.0 if enough else left, now)
            if len(self._left) > KEPT:
                self._left.popitem(last=False)
        return 0 if enough else max(1, math.ceil((1.0 - left) / self._per_second))


class Rates:
    """The limits of one process."""

    def __init__(
        self,
        *,
        per_minute: int = 1200,
        failures_per_minute: int = 30,
        clock: Callable[[], float] = time.monotonic,
    ) -> None:
        self.per_minute = per_minute
        self._requests = _Buckets(per_minute, max(1.0, per_minute / 4), clock)
        self._failures = _Buckets(failures_per_minute, failures_per_minute, clock)

    def take(self, token_id: str) -> int:
        """Count a request; 0, or the seconds until the next is allowed."""
        return self._requests.take(token_id)

    def count_failure(self, address: str) -> None:
        """Count a wrong token; an address that has shown too many is told to wait.

        Whoever shows a right one is let in all the same: behind one address there may be many, and a program whose
        token has ended must not lock them out. A secret of 256 bits is not found by trying, however often.
        """
        wait = self._failures.take(address)
        if wait:
            raise TooOftenError(f"Expected a right token, got too many wrong ones; wait {wait} s.", wait)
