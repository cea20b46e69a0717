"""The leaves of a tree ensemble that one person can reach, and how high the ensemble can get over some levels."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from rocerf.models.trees.scored import ScoredTrees
from rocerf.recourse.master.levels import Levels
from rocerf.types import Array, Mask, Places


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
        nodes, inside = form.nodes, levels.inside
        at, tree = form.roots, np.arange(len(form))
        masks = np.ones((len(at), len(levels)), bool)
        found: list[tuple[Places, Mask, Array]] = []
        while len(at):
            leaf = nodes.column[at] < 0
            found.append((tree[leaf], masks[leaf], nodes.value[at[leaf]]))
            at, tree, masks = at[~leaf], tree[~leaf], masks[~leaf]
            about = inside[nodes.column[at]]
            left = _goes_left(trees, at, levels)
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

    def at(self, choices: Places) -> Array:
        """Scores at choices of one level for each axis, (m, A) -> (m,)."""
        raw = np.full(len(choices), self.base)
        if len(self.values):
            fixed = (choices == choices[0]).all(axis=0)  # mostly, choices differ in a few axes
            common = self.mask[choices[0, fixed]].all(axis=0)
            leaves = np.flatnonzero(common)
            reached = np.ones((len(choices), len(leaves)), bool)
            for axis in np.flatnonzero(~fixed):
                reached &= self.mask[choices[:, axis][:, None], leaves]
            raw += reached @ self.values[leaves]
        return self.trees.of_raw(raw)

    def ceilings(self, chosen: Places, starts: Places, leaves: Places) -> tuple[Array, Places]:
        """No choice at a level of those chosen (s,) scores higher than this, (s,); and the leaves still alive.

        ``starts`` is where each axis begins among the chosen, ``leaves`` are those that were alive before.
        """
        mask = self.mask[chosen[:, None], leaves]
        alive = _everywhere(mask, starts)
        leaves, mask = leaves[alive], mask[:, alive]
        if not len(leaves):
            return np.repeat(self.trees.of_raw(np.full(1, self.base)), len(chosen)), leaves
        first = np.flatnonzero(np.diff(self.tree[leaves], prepend=-1))
        heights = np.where(mask, self.values[leaves], -np.inf)
        sums = np.maximum.reduceat(heights, first, axis=1).sum(axis=1)
        return self.trees.of_raw(self.base + sums), leaves


def _everywhere(mask: Mask, starts: Places) -> Mask:
    """Leaves that can be at one level of each axis at least; (s, L) -> (L,)."""
    if not mask.shape[1]:
        return np.zeros(0, bool)
    return np.asarray(np.logical_or.reduceat(mask, starts, axis=0).all(axis=0))


def _goes_left(trees: ScoredTrees, at: Places, levels: Levels) -> NDArray[np.bool_]:
    """Whether each level goes left at each node, (n, S); anything where the level is not about its column."""
    form = trees.form
    column = form.nodes.column[at]
    left = levels.values.T[column] <= form.nodes.below[at, None]
    for place in np.flatnonzero(form.nodes.subset[at] >= 0):
        members = form.subsets[form.nodes.subset[at[place]]]
        left[place] = np.isin(levels.values[:, column[place]].astype(np.int64), list(members))
    return np.asarray(left)
