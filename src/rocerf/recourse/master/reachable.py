"""The leaves of a tree ensemble that one person can reach, and how high the ensemble can get over some levels."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property

import numpy as np
from numpy.typing import NDArray

from rocerf.models.trees.scored import ScoredTrees
from rocerf.recourse.master.levels import Levels
from rocerf.types import Array, Mask, Places

#: Words of 64 leaves that are joined at a time.
WORDS = 1_000_000


@dataclass(frozen=True, eq=False)
class Reachable:
    """L leaves, tree by tree, of trees that still have several; ``base`` is what all else adds up to.

    ``mask`` (S, L) says at which levels a leaf can be: at a choice of one level for each axis it is reached where it
    can be at all of them. ``values`` (L,) are the leaves', ``tree`` (L,) the numbers of their trees.
    """

    trees: ScoredTrees
    base: float
    mask: Mask
    values: Array
    tree: Places

    @classmethod
    def of(cls, trees: ScoredTrees, levels: Levels) -> Reachable:
        """Walk all trees with all levels at once, and drop what no choice of levels reaches."""
        form = trees.form
        nodes, inside, seen = form.nodes, levels.inside, form.seen(levels.values)
        at, tree = form.roots, np.arange(len(form))
        masks = np.ones((len(at), len(levels)), bool)
        found: list[tuple[Places, Mask, Array]] = []
        while len(at):
            leaf = nodes.column[at] < 0
            found.append((tree[leaf], masks[leaf], nodes.value[at[leaf]]))
            at, tree, masks = at[~leaf], tree[~leaf], masks[~leaf]
            about = inside[nodes.column[at]]
            left = _goes_left(trees, at, seen)
            sides = []
            for child, here in ((nodes.left, left), (nodes.right, ~left)):
                own = masks & (here | ~about)
                kept = (own & about).any(axis=1)
                sides.append((child[at[kept]], tree[kept], own[kept]))
            at, tree, masks = (np.concatenate(pair) for pair in zip(*sides, strict=True))
        owner, mask, values = (np.concatenate(part) for part in zip(*found, strict=True))
        order = np.argsort(owner, kind="stable")
        return cls._folded(trees, form.base, owner[order], mask[order].T, values[order])

    @classmethod
    def _folded(cls, trees: ScoredTrees, base: float, tree: Places, mask: Mask, values: Array) -> Reachable:
        """Without the trees that have one leaf left."""
        several = np.bincount(tree, minlength=1)[tree] > 1
        base += float(values[~several].sum())
        return cls(trees, base, np.ascontiguousarray(mask[:, several]), values[several], tree[several])

    def within(self, starts: Places, kept: Mask) -> Reachable:
        """The same over some of the levels (S,); ``starts`` (A,) is where each axis begins among those kept."""
        mask = self.mask[kept]
        alive = _everywhere(mask, starts)
        return self._folded(self.trees, self.base, self.tree[alive], mask[:, alive], self.values[alive])

    @property
    def size(self) -> int:
        """Entries of the mask."""
        return self.mask.size

    @cached_property
    def _table(self) -> _Table:
        return _Table.of(self.mask, self.values, self.tree)

    def at(self, choices: Places) -> Array:
        """Scores at choices of one level for each axis, (m, A) -> (m,)."""
        raw = np.full(len(choices), self.base)
        if len(self.values):
            size = max(1, WORDS // (choices.shape[1] * self._table.words.shape[1]))
            for first in range(0, len(choices), size):
                part = slice(first, first + size)
                raw[part] += self._table.highest(np.bitwise_and.reduce(self._table.words[choices[part]], axis=1))
        return self.trees.of_raw(raw)

    def ceilings(self, chosen: Places, starts: Places) -> tuple[Array, int]:
        """No choice at a level of those chosen (s,) scores higher than this, (s,); and how many leaves are alive there.

        ``starts`` is where each axis begins among the chosen.
        """
        if not len(self.values):
            return np.repeat(self.trees.of_raw(np.full(1, self.base)), len(chosen)), 0
        words = self._table.words[chosen]
        alive = np.bitwise_and.reduce(np.bitwise_or.reduceat(words, starts, axis=0), axis=0)
        sums = self._table.highest(words & alive)
        return self.trees.of_raw(self.base + sums), int(np.bitwise_count(alive).sum())


@dataclass(frozen=True, eq=False)
class _Table:
    """Masks of leaves in words of 64, (S, words): a row of slots for each tree, its leaves from the highest downwards.

    After a tree's leaves comes a slot that is always there, of value -inf; ``values`` is (trees, slots).
    """

    words: NDArray[np.uint64]
    values: Array

    @classmethod
    def of(cls, mask: Mask, values: Array, tree: Places) -> _Table:
        """Of leaves (L,) tree by tree and their mask (S, L)."""
        _, tree, counts = np.unique(tree, return_inverse=True, return_counts=True)
        slots = -(-(int(counts.max()) + 1) // 8) * 8
        order = np.lexsort((-values, tree))
        slot = np.arange(len(tree)) - np.repeat(np.cumsum(counts) - counts, counts)
        table = np.full((len(counts), slots), -np.inf)
        table[tree[order], slot] = values[order]
        bits = np.zeros((len(mask), -(-len(counts) * slots // 64) * 64), bool)
        bits[:, slots - 1 : len(counts) * slots : slots] = True
        bits[:, tree[order] * slots + slot] = mask[:, order]
        return cls(np.packbits(bits, axis=1).view(np.uint64), table)

    def highest(self, words: NDArray[np.uint64]) -> Array:
        """The sum over trees of the highest leaf among those in the words, (m, words) -> (m,)."""
        trees, slots = self.values.shape
        bits = np.unpackbits(words.view(np.uint8), axis=1, count=trees * slots).view(bool)
        first = bits.reshape(len(words), trees, slots).argmax(axis=2)
        return np.asarray(self.values[np.arange(trees), first].sum(axis=1))


def _everywhere(mask: Mask, starts: Places) -> Mask:
    """Leaves that can be at one level of each axis at least; (s, L) -> (L,)."""
    if not mask.shape[1]:
        return np.zeros(0, bool)
    return np.asarray(np.logical_or.reduceat(mask, starts, axis=0).all(axis=0))


def _goes_left(trees: ScoredTrees, at: Places, seen: Array) -> NDArray[np.bool_]:
    """Whether each level goes left at each node, (n, S); anything where the level is not about its column."""
    return trees.form.goes_left(at[:, None], seen.T[trees.form.nodes.column[at]])
