"""How many rows: a number, or a share of the training rows."""

from __future__ import annotations

import math
from typing import Literal

from rocerf.errors import OptionError


def number_of_deletions(k: int | str, n: int, *, rounded: Literal["up", "down"] = "up") -> int:
    """k as a number: 181, "181" or "0.5%" of n rows, rounded up (the paper's code rounds down).

    >>> number_of_deletions("0.5%", 36177), number_of_deletions(4, 800)
    (181, 4)
    >>> number_of_deletions("0.5%", 36177, rounded="down")
    180
    """
    wanted: float
    try:
        if isinstance(k, str) and k.strip().endswith("%"):
            # Rounded at 1e-9 first: 0.5 % of 800 is 4, whatever binary fractions say.
            share = float(k.strip()[:-1])
            whole = math.ceil if rounded == "up" else math.floor
            wanted = whole(round(share * n / 100.0, 9)) if share >= 0 else math.nan
        else:
            wanted = float(k)
    except (TypeError, ValueError, OverflowError):
        wanted = math.nan
    if isinstance(k, bool) or not wanted == int(wanted if math.isfinite(wanted) else 0) or wanted < 0:
        raise OptionError(
            f"Expected k to be a whole number of rows or a share such as '0.5%', got {k!r}; "
            "for half a percent write k='0.5%'."
        )
    if wanted >= n:
        raise OptionError(
            f"Expected k smaller than the {n} training rows, got {int(wanted)}; no model is left when all rows go."
        )
    return int(wanted)
