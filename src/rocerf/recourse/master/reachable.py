"""The leaves of a tree ensemble that one person can reach, and how high the ensemble can get over some levels."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property
from typing import Any

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
        return self._left(self.mask[kept], starts)

    def refined(self, starts: Places, parents: Places) -> Reachable:
        """The same over levels that lie inside these (S',), where these trees cut none of them further."""
        return self._left(self.mask[parents], starts)

    def _left(self, mask: Mask, starts: Places) -> Reachable:
        alive = _everywhere(mask, starts)
        return self._folded(self.trees, self.base, self.tree[alive], mask[:, alive], self.values[alive])

    @cached_property
    def _table(self) -> _Table:
        return _Table.of(self.mask, self.values, self.tree)

    def at(self, choices: Places) -> Array:
        """What leaves add up to at choices of one level for each axis, (m, A) -> (m,)."""
        raw = np.full(len(choices), self.base)
        if len(self.values):
            table = self._table
            size = max(1, WORDS // (choices.shape[1] * table.words[0].size))
            for first in range(0, len(choices), size):
                part = slice(first, first + size)
                raw[part] += table.highest(np.bitwise_and.reduce(table.words[choices[part]], axis=1)).sum(axis=1)
        return raw

    def tops(self, chosen: Places, starts: Places) -> Array:
        """The highest leaf of each tree that may still be reached at a level of those chosen (s,), (s, trees).

        ``starts`` is where each axis begins among the chosen. No choice at a level adds up to more than ``base`` and
        what its trees have there.
        """
        if not len(self.values):
            return np.zeros((len(chosen), 0))
        words = self._table.words[chosen]
        alive = np.bitwise_and.reduce(np.bitwise_or.reduceat(words, starts, axis=0), axis=0)
        return self._table.highest(words & alive)


@dataclass(frozen=True, eq=False)
class _Table:
    """Masks of leaves as whole numbers, a bit for each leaf of a tree from its highest downwards.

    ``words`` is (S, trees), or (S, trees, words of 64) for larger trees. ``values`` has a row for each tree, flat, with
    -inf behind its leaves; ``first`` (trees,) is where the row begins.
    """

    words: NDArray[Any]
    values: Array
    first: Places

    @classmethod
    def of(cls, mask: Mask, values: Array, tree: Places) -> _Table:
        """Of leaves (L,) tree by tree and their mask (S, L)."""
        _, tree, counts = np.unique(tree, return_inverse=True, return_counts=True)
        most = int(counts.max())
        size = next((bits for bits in (8, 16, 32, 64) if most <= bits), -(-most // 64) * 64)
        order = np.lexsort((-values, tree))
        slot = np.arange(len(tree)) - np.repeat(np.cumsum(counts) - counts, counts)
        table = np.full((len(counts), size + 1), -np.inf)
        table[tree[order], slot] = values[order]
        bits = np.zeros((len(mask), len(counts), size), bool)
        bits[:, tree[order], slot] = mask[:, order]
        packed = np.packbits(bits, axis=2, bitorder="little")
        words = packed.view(np.dtype(f"<u{min(size, 64) // 8}"))
        return cls(words if size > 64 else words[:, :, 0], table.ravel(), np.arange(len(counts)) * (size + 1))

    def highest(self, words: NDArray[Any]) -> Array:
        """The highest leaf of each tree among those in the words, (m, trees) or (m, trees, words) -> (m, trees)."""
        below = np.asarray(np.bitwise_count((words - words.dtype.type(1)) & ~words), np.intp)  # bits below the lowest
        if words.ndim == 2:
            return self.values.take(below + self.first)
        some = words != 0
        word = np.where(some.any(axis=2), some.argmax(axis=2), words.shape[2] - 1)
        lowest = np.take_along_axis(below, word[:, :, None], axis=2)[:, :, 0]
        place: Places = lowest + (64 * word + self.first)
        return self.values.take(place)


def _everywhere(mask: Mask, starts: Places) -> Mask:
    """Leaves that can be at one level of each axis at least; (s, L) -> (L,)."""
    if not mask.shape[1]:
        return np.zeros(0, bool)
    return np.asarray(np.logical_or.reduceat(mask, starts, axis=0).all(axis=0))


def _goes_left(trees: ScoredTrees, at: Places, seen: Array) -> NDArray[np.bool_]:
    """Whether each level goes left at each node, (n, S); anything where the level is not about its column."""
    return trees.form.goes_left(at[:, None], seen.T[trees.form.nodes.column[at]])
