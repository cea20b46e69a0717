"""Boosted trees, followed to first order through all trees: what is grown later makes up for what a deletion does.

The structure of the trees is kept. Without a row a leaf adds something else, which changes the residuals of its other
rows, and with them what later trees add. Derivatives of a point's log-odds by the weight of every row are gathered
backwards, from the last tree to the first: ``pulls`` holds how much the point hangs on the log-odds of each row then.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray
from scipy.sparse import csr_array
from scipy.special import expit, logit

from rocerf.models.sklearn.leaves import Leaves, Trees
from rocerf.types import Array

#: The least curvature divided by.
LEAST = 1e-9


@dataclass(frozen=True, eq=False)
class Stage:
    """One tree as it was grown, (n,) each: places of the leaves (0 for none), log-odds before it, chances,
    slopes and curvatures of the loss, the sum of curvatures in the leaf with the shrinkage, and what the leaf adds.
    """

    places: NDArray[np.int64]
    margin: Array
    chance: Array
    slope: Array
    curvature: Array
    size: Array
    step: Array


def replayed(leaves: Leaves, trees: Trees, y: Array, weights: Array) -> Iterator[Stage]:
    """The boosting once more, tree by tree, from the leaves (n, T) of the rows alone."""
    usual = float(weights @ y / weights.sum())
    margin = np.full(len(y), logit(np.clip(usual, LEAST, 1.0 - LEAST)))
    for places in np.ascontiguousarray(leaves.T) + 1:
        chance = expit(margin)
        slope, curvature = weights * (chance - y), weights * chance * (1.0 - chance)
        sizes = np.bincount(places, curvature) + trees.shrinkage
        steps = -(trees.rate or 1.0) * np.bincount(places, slope) / np.maximum(sizes, LEAST)
        stage = Stage(places, margin, chance, slope, curvature, sizes[places], steps[places])
        margin = margin + stage.step
        yield stage


def stages(leaves: Leaves, trees: Trees, y: Array, weights: Array) -> tuple[Array, Array]:
    """Log-odds of the rows before each tree and what it adds to them, (T, n) each, from their leaves (n, T) alone."""
    margins, steps = np.empty(leaves.T.shape), np.empty(leaves.T.shape)
    for tree, stage in enumerate(replayed(leaves, trees, y, weights)):
        margins[tree], steps[tree] = stage.margin, stage.step
    return margins, steps


def followed(leaves: Leaves, asked: Leaves, trees: Trees, y: Array, weights: Array) -> Array:
    """What taking away the weight of each row does to points with leaves ``asked`` (m, T), to first order: (m, n)."""
    rate, (count, number) = trees.rate or 1.0, asked.shape
    pulls, effects = np.zeros((count, len(y))), np.zeros((count, len(y)))
    every = enumerate(replayed(leaves[:, :number], trees, y, weights))
    for tree, stage in reversed(list(every)):
        column, chance, size = stage.places, stage.chance, np.maximum(stage.size, LEAST)
        width = int(max(column.max(), asked[:, tree].max(initial=-1) + 1)) + 1
        members = csr_array((np.ones(len(y)), column, np.arange(len(y) + 1)), shape=(len(y), width))
        hang = pulls @ members
        hang[np.arange(count), asked[:, tree] + 1] += 1.0
        hang[:, 0] = 0.0  # of points and rows that fall into no leaf
        own = hang[:, column]
        effects += own * ((rate * stage.slope + stage.step * stage.curvature) / size)
        own *= (rate * stage.curvature + stage.step * stage.curvature * (1.0 - 2.0 * chance)) / size
        pulls -= own
    usual = weights @ y / weights.sum()
    first = weights * (y - usual) / max(weights.sum() * usual * (1.0 - usual), LEAST)
    return np.asarray(effects - (1.0 + pulls.sum(axis=1))[:, None] * first)


def in_leaf(leaves: Leaves, values: Array) -> Array:
    """For each row the sum of the values (n,) in its leaf."""
    return np.asarray(np.bincount(leaves + 1, values)[leaves + 1])
