"""One form for every tree ensemble: nodes in flat arrays, each asking about one column in double precision.

Libraries compare differently: XGBoost asks ``float32(x) < t``, CatBoost ``float32(x) > t``, scikit-learn's older trees
``float32(x) <= t``, LightGBM and HistGradientBoosting ``x <= t``. Here every node asks ``x <= below`` of the double x,
where ``below`` is the largest double that goes left in the library itself.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import cached_property
from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy.special import expit, logit

from rocerf.types import Array, Places

#: What rounding may take off log-odds near 0 at most, or the form is another model.
LARGEST_ROUNDING = 1e-4

#: Numbers for one walk of points down the trees.
BLOCK = 2_000_000


def last_rounding_to(number: NDArray[np.float32]) -> Array:
    """The largest doubles that single precision rounds to these numbers (or below).

    The largest number of all is CatBoost's way to tell missing values from all others: infinity, here as elsewhere.

    >>> bool(np.float32(last_rounding_to(np.float32([0.1]))[0]) == np.float32(0.1))
    True
    """
    with np.errstate(over="ignore"):
        middle = (number.astype(np.float64) + np.nextafter(number, np.float32(np.inf)).astype(np.float64)) / 2.0
    if np.isinf(middle).any():
        return np.where(np.isinf(middle), middle, last_rounding_to(np.where(np.isinf(middle), np.float32(0), number)))
    return np.where(middle.astype(np.float32) <= number, middle, np.nextafter(middle, -np.inf))


def below_or_equal(thresholds: Array) -> Array:
    """Where ``float32(x) <= t`` ends for thresholds t in double precision."""
    single = thresholds.astype(np.float32)
    single = np.where(single.astype(np.float64) > thresholds, np.nextafter(single, np.float32(-np.inf)), single)
    return last_rounding_to(single)


def strictly_below(thresholds: NDArray[np.float32]) -> Array:
    """Where ``float32(x) < t`` ends for thresholds t in single precision."""
    return last_rounding_to(np.nextafter(thresholds, np.float32(-np.inf)))


@dataclass(frozen=True, eq=False)
class Nodes:
    """The nodes of one tree: ``column`` (-1 for a leaf), ``below``, ``left`` and ``right`` (children), ``value``.

    ``missing_left`` says where a missing value goes; ``subset`` (-1 for none) names the set of categories that go left
    among the form's ``subsets``.
    """

    column: Places
    below: Array
    left: Places
    right: Places
    value: Array
    missing_left: NDArray[np.bool_]
    subset: Places

    @classmethod
    def of(
        cls,
        column: Any,
        below: Any,
        left: Any,
        right: Any,
        value: Any,
        missing_left: Any = None,
        subset: Any = None,
    ) -> Nodes:
        """Of arrays of any kind of number."""
        size = len(column)
        return cls(
            np.asarray(column, np.intp),
            np.asarray(below, np.float64),
            np.asarray(left, np.intp),
            np.asarray(right, np.intp),
            np.asarray(value, np.float64),
            np.zeros(size, bool) if missing_left is None else np.asarray(missing_left, bool),
            np.full(size, -1, np.intp) if subset is None else np.asarray(subset, np.intp),
        )


@dataclass(frozen=True, eq=False)
class TreeForm:
    """T trees whose leaves add up: ``raw(z) = base + sum of the leaves that z falls into``.

    z (m, f) is a row as the library sees it, with NaN for what is missing. ``averaged`` trees add up to a probability,
    others to log-odds of the favourable label. ``subsets`` are the categories that go left.

    Over schema space a category is a group of 0/1 columns: nodes then ask about the first of them, and ``subsets`` are
    places in the group; ``groups`` maps that column to all of them. ``gaps`` are the numbers that stand for a missing
    one, by column.
    """

    nodes: Nodes
    roots: Places
    base: float
    averaged: bool
    subsets: tuple[frozenset[int], ...] = ()
    rounding: float = 1e-9  # by how much the library's own log-odds may differ near 0: it may add in single precision
    groups: Mapping[int, tuple[int, ...]] = field(default_factory=dict)
    gaps: Mapping[int, float] = field(default_factory=dict)

    @classmethod
    def joined(
        cls, trees: Sequence[Nodes], averaged: bool, base: float = 0.0, subsets: Sequence[frozenset[int]] = ()
    ) -> TreeForm:
        """Of trees whose children are numbered from 0 in each."""
        sizes = np.array([len(tree.column) for tree in trees], np.intp)
        roots = np.cumsum(sizes) - sizes
        parts: dict[str, Any] = {}
        for name in Nodes.__dataclass_fields__:
            shift = roots if name in ("left", "right") else np.zeros(len(trees), np.intp)
            own = [getattr(tree, name) + add if name in ("left", "right") else getattr(tree, name)
                   for tree, add in zip(trees, shift, strict=True)]  # fmt: skip
            parts[name] = np.concatenate(own)
        return cls(Nodes(**parts), roots, base, averaged, tuple(subsets))

    def __len__(self) -> int:
        return len(self.roots)

    @cached_property
    def leaves(self) -> int:
        """How many leaves there are."""
        return int((self.nodes.column < 0).sum())

    @cached_property
    def depth(self) -> int:
        """Steps from a root to the lowest leaf."""
        level, deepest = self.roots, 0
        while True:
            inner = level[self.nodes.column[level] >= 0]
            if not len(inner):
                return deepest
            level, deepest = np.concatenate([self.nodes.left[inner], self.nodes.right[inner]]), deepest + 1

    def thresholds(self, column: int) -> Array:
        """Where the trees cut a column, sorted: values up to and with a threshold are on its left."""
        asks = self.nodes.column == column
        cuts = [self.nodes.below[asks & (self.nodes.subset < 0) & np.isfinite(self.nodes.below)]]
        if column in self.gaps:  # a level of its own
            cuts.append(np.array([np.nextafter(self.gaps[column], -np.inf), self.gaps[column]]))
        subsets = np.unique(self.nodes.subset[asks & (self.nodes.subset >= 0)])
        if len(subsets) and column not in self.groups:  # categories as whole numbers, fractions cut off
            last = max((max(self.subsets[number], default=0) for number in subsets), default=0)
            cuts += [np.array([-1.0]), np.nextafter(np.arange(1.0, last + 2.0), -np.inf)]
        return np.unique(np.concatenate(cuts))

    @cached_property
    def columns(self) -> Places:
        """The columns that are asked about."""
        return np.unique(self.nodes.column[self.nodes.column >= 0])

    @cached_property
    def _members(self) -> NDArray[np.bool_]:
        """Whether a category is in a subset, (subsets, categories + 1); the last column is for all others."""
        most = max((max(subset, default=-1) for subset in self.subsets), default=-1)
        table = np.zeros((len(self.subsets), most + 2), bool)
        for number, subset in enumerate(self.subsets):
            table[number, list(subset)] = True
        return table

    def seen(self, X: Array) -> Array:
        """Rows (m, f) as the nodes ask about them: places of categories in their groups, NaN for what is missing."""
        if not self.groups and not self.gaps:
            return X
        Z = X.copy()
        for lead, columns in self.groups.items():
            Z[:, lead] = X[:, list(columns)].argmax(axis=1)
        for column, number in self.gaps.items():
            Z[X[:, column] == number, column] = np.nan
        return Z

    def goes_left(self, nodes: Places, values: Array) -> NDArray[np.bool_]:
        """Whether values, as :meth:`seen`, go left at these nodes; nodes and values are broadcast."""
        own = self.nodes
        left = np.where(np.isnan(values), own.missing_left[nodes], values <= own.below[nodes])
        if not len(self.subsets):
            return left
        table, subset = self._members, own.subset[nodes]
        codes = np.nan_to_num(values, nan=-1.0)
        codes = np.where((codes > -1.0) & (codes < table.shape[1] - 1), codes, table.shape[1] - 1).astype(np.intp)
        return np.where((subset >= 0) & ~np.isnan(values), table[np.maximum(subset, 0), codes], left)

    def sums(self, Z: Array) -> Array:
        """What the leaves of rows (m, f) add up to, without the base; (m,)."""
        found = np.empty(len(Z))
        size = max(1, BLOCK // max(len(self), 1))
        for first in range(0, len(Z), size):
            part = self.seen(Z[first : first + size])
            at = np.tile(self.roots, (len(part), 1))
            while True:
                row, tree = np.nonzero(self.nodes.column[at] >= 0)
                if not len(row):
                    break
                node = at[row, tree]
                left = self.goes_left(node, part[row, self.nodes.column[node]])
                at[row, tree] = np.where(left, self.nodes.left[node], self.nodes.right[node])
            found[first : first + size] = self.nodes.value[at].sum(axis=1)
        return found

    def raw(self, Z: Array) -> Array:
        """Log-odds, or the probability of averaged trees, of rows (m, f); (m,)."""
        return self.base + self.sums(Z)

    def log_odds(self, raw: Array, clip: float) -> Array:
        """Log-odds of what trees add up to, of probabilities kept ``clip`` away from 0 and 1; never falling in it."""
        most = float(logit(1.0 - clip))
        if self.averaged:
            return np.asarray(logit(np.clip(raw, clip, 1.0 - clip)))
        return np.clip(raw, -most, most)

    def based_on(self, Z: Array, chances: Array) -> TreeForm:
        """The same trees with the base at which they say these chances (m,) of rows (m, f)."""
        if self.averaged:
            return self
        rows = np.argsort(np.abs(chances - 0.5), kind="stable")[: max(1, len(chances) // 2)]
        rows = rows[(chances[rows] > 0.0) & (chances[rows] < 1.0)]
        if not len(rows):
            return self
        bases = logit(chances[rows]) - self.sums(Z[rows])  # near 0, where chances say most of log-odds
        rounding = max(self.rounding, 8.0 * float(np.ptp(bases)))
        return replace(self, base=float(np.median(bases)), rounding=min(rounding, LARGEST_ROUNDING))

    def apart(self, Z: Array, chances: Array) -> float:
        """By how much these trees differ at most from chances (m,) of rows (m, f)."""
        raw = self.raw(Z)
        return float(np.abs((raw if self.averaged else expit(raw)) - chances).max(initial=0.0))
