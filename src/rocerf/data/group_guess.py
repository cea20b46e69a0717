"""Which 0/1 columns belong together: one-hot columns as get_dummies or a OneHotEncoder names and fills them.

Columns with a common beginning (``home_own``, ``home_rent``) are one attribute where no row has two of them, unless
that could well be chance: columns that have nothing to do with each other would look so in one table of a thousand at
most.
"""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from math import log1p

import numpy as np

from rocerf.types import Array

#: Chance at which unrelated columns may look like a group.
CHANCE = 1e-3

#: What stands between the name of an attribute and its category; get_dummies and OneHotEncoder write an underscore.
_SEPARATOR = re.compile(r"__|_|=|: ?|\.")


def guessed_groups(columns: Mapping[str, Array], taken: Sequence[str] = ()) -> dict[str, list[str]]:
    """One-hot groups among columns (n,) of 0 and 1, by name; ``taken`` are names that no group may have.

    >>> home, car = np.eye(2)[[0, 1] * 10], np.tile([1.0, 1.0, 0.0, 0.0], 5)
    >>> guessed_groups({"home_own": home[:, 0], "home_rent": home[:, 1], "has_car": car})
    {'home': ['home_own', 'home_rent']}
    """
    left, found = dict(columns), {}
    # The shortest beginning first: purpose_car_new and purpose_car_used are categories of one purpose with purpose_tv.
    for beginning in sorted({start for name in columns for start in _beginnings(name)}, key=lambda s: (len(s), s)):
        members = [name for name in left if beginning in _beginnings(name)]
        if len(members) > 1 and _is_one_of(np.array([left[name] for name in members])):
            # Its name is all that they have in common: credit_history, where no column is another credit_...
            name = max((start for start in _beginnings(members[0]) if _all_begin(members, start)), key=len)
            found[name if name not in taken and name not in columns else f"{name} (one of)"] = members
            for name in members:
                del left[name]
    order = list(columns)
    return dict(sorted(found.items(), key=lambda item: order.index(item[1][0])))


def _all_begin(names: Sequence[str], beginning: str) -> bool:
    return all(beginning in _beginnings(name) for name in names)


def _beginnings(name: str) -> list[str]:
    ends = [(match.start(), match.end()) for match in _SEPARATOR.finditer(name)]
    return [name[:start] for start, end in ends if start > 0 and end < len(name)]


def _is_one_of(values: Array) -> bool:
    """Whether columns (m, n) are one attribute: never two of them, and that for a reason."""
    total = values.sum(axis=0)
    if not values.any(axis=1).all() or (total > 1).any():
        return False
    shares = np.minimum(values.mean(axis=1), 1 - 1e-12)
    none = float(np.prod(1 - shares))
    one = none * float((shares / (1 - shares)).sum())
    likely = one if (total == 1).all() else none + one
    return bool(len(total) * log1p(min(likely, 1.0) - 1.0) < np.log(CHANCE)) if likely > 0 else True
