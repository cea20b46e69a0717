"""Boosted trees, followed to first order through all trees: what is grown later makes up for what a deletion does.

The structure of the trees is kept. Without a row a leaf adds something else, which changes the residuals of its other
rows, and with them what later trees add. Derivatives of a point's log-odds by the weight of every row are gathered
backwards, from the last tree to the first: ``pulls`` holds how much the point hangs on the log-odds of each row then.
"""

from __future__ import annotations

import numpy as np
from scipy.sparse import csr_array
from scipy.special import expit, logit

from rocerf.models.sklearn.leaves import Leaves, Trees
from rocerf.types import Array

#: The least curvature divided by.
LEAST = 1e-9


def stages(leaves: Leaves, trees: Trees, y: Array, weights: Array) -> tuple[Array, Array]:
    """Log-odds of the rows before each tree and what it adds to them, (T, n) each, from their leaves (n, T) alone."""
    margins, steps = np.empty(leaves.T.shape), np.empty(leaves.T.shape)
    usual = float(weights @ y / weights.sum())
    margin = np.full(len(y), logit(np.clip(usual, LEAST, 1.0 - LEAST)))
    for tree, column in enumerate(leaves.T):
        chance = expit(margin)
        slope = in_leaf(column, weights * (chance - y))
        size = in_leaf(column, weights * chance * (1.0 - chance)) + trees.shrinkage
        margins[tree] = margin
        steps[tree] = -(trees.rate or 1.0) * slope / np.maximum(size, LEAST)
        margin = margin + steps[tree]
    return margins, steps


def followed(leaves: Leaves, asked: Leaves, trees: Trees, y: Array, weights: Array) -> Array:
    """What taking away the weight of each row does to points with leaves ``asked`` (m, T), to first order: (m, n)."""
    margins, steps = stages(leaves, trees, y, weights)
    rate, (count, number) = trees.rate or 1.0, asked.shape
    pulls, effects = np.zeros((count, len(y))), np.zeros((count, len(y)))
    for tree in reversed(range(number)):
        column, chance, step = leaves[:, tree] + 1, expit(margins[tree]), steps[tree]
        curvature = chance * (1.0 - chance)
        size = np.maximum(in_leaf(leaves[:, tree], weights * curvature) + trees.shrinkage, LEAST)
        width = int(max(column.max(), asked[:, tree].max(initial=-1) + 1)) + 1
        members = csr_array((np.ones(len(y)), (np.arange(len(y)), column)), shape=(len(y), width))
        hang = pulls @ members
        hang[np.arange(count), asked[:, tree] + 1] += 1.0
        hang[:, 0] = 0.0  # of points and rows that fall into no leaf
        own = hang[:, column]
        effects += own * (weights * (rate * (chance - y) + step * curvature) / size)
        pulls -= own * (weights * (rate * curvature + step * curvature * (1.0 - 2.0 * chance)) / size)
    usual = weights @ y / weights.sum()
    first = weights * (y - usual) / max(weights.sum() * usual * (1.0 - usual), LEAST)
    return np.asarray(effects - (1.0 + pulls.sum(axis=1))[:, None] * first)


def in_leaf(leaves: Leaves, values: Array) -> Array:
    """For each row the sum of the values (n,) in its leaf."""
    return np.asarray(np.bincount(leaves + 1, values)[leaves + 1])
