"""How long the long tests are: a third of their cases, or less, in ``make test``, all of them in ``make thorough``."""

from __future__ import annotations

import os

#: `make thorough` sets it: every long test at its full length, which takes two cores half an hour.
THOROUGH = os.environ.get("ROCERF_THOROUGH") == "1"


def share(full: int, part: int = 3) -> int:
    """The number of cases of a test that has so many at its full length; otherwise one in ``part`` of them."""
    return full if THOROUGH else max(1, full // part)
