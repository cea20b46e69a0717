"""Which training rows hold a point up, guessed for any classifier: by the leaves it shares with them, or by nearness.

*Leaves.* The structure of the trees is kept and one row's weight taken away. In a leaf of weight W and favourable share
m, whose trees are averaged, the share moves by ``-w (y - m) / (W - w)``. A boosted tree adds ``c = -rate G / (H + l)``
of the gradients and curvatures in its leaf, and without the row ``(rate g + c h) w / (H + l - w h)`` more; g and h are
those of the stage at which the tree was grown, so the boosting is replayed from the leaves alone. The effects of all
the leaves that the point and the row share are added up. Every leaf counts one average row more than it has: a row that
is alone in its leaf would have no effect otherwise, since what takes its place is not in the leaf.

*Later trees.* The same for boosted trees, with what later trees make of the change (:mod:`.replay`).

*Neighbours.* Rows count by their residual and their distance to the point, in units of the columns' spread. Models
know their training rows by heart, more or less, so the residual is one between the model's and the usual chance.

*Nearest.* The favourable rows nearest to the point, whatever the model says of them: votes of neighbours rest on them.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from functools import cached_property
from typing import Any

import numpy as np
from scipy.sparse import csr_array

from rocerf.data.training_set import TrainingSet
from rocerf.errors import OptionError
from rocerf.models.sklearn.estimator_fitting import own_labels
from rocerf.models.sklearn.leaves import Leaves, Trees, trees_in
from rocerf.models.sklearn.replay import followed, in_leaf, replayed
from rocerf.types import Array

LEAVES, LATER, NEIGHBOURS, NEAREST = "leaves", "later trees", "neighbours", "nearest"

#: Harms (points times rows) computed at a time.
BLOCK = 4_000_000

#: Pairs of a row and a tree kept; of more trees, every so many are asked.
PAIRS = 40_000_000

#: Pairs of a row and a boosted tree up to which changes are followed through later trees.
FOLLOWED = 10_000_000

#: Points up to which rows that share a leaf are looked up tree by tree; a table of all leaves costs as much as that.
FEW = 24

#: The kernel of a point reaches as far as this many of its nearest rows.
WITHIN = 10


@dataclass(frozen=True, eq=False)
class Proposals:
    """How a fitted classifier guesses, about one set of training rows."""

    train: TrainingSet
    estimator: Any
    #: Says the probability of the favourable label at points, (m, d) -> (m,), NaN where there is none.
    chance: Callable[[Array], Array]

    @cached_property
    def names(self) -> tuple[str, ...]:
        """Ways to guess, the most trustworthy first; one row is asked about, not all."""
        if not self._trees:
            return NEIGHBOURS, NEAREST
        return (LEAVES, LATER, NEIGHBOURS) if self._boosted is not None else (LEAVES, NEIGHBOURS)

    def harms(self, X: Array, proposal: str) -> Array:
        """How far deleting each row is guessed to move the scores of points (P, d), shape (P, n)."""
        if proposal not in self.names:
            raise OptionError(f"Expected proposal to be one of {', '.join(self.names)}, got {proposal!r}.")
        harms = np.zeros((len(X), len(self.train)))
        for part in _chunks(len(X), len(self.train)):
            if proposal == LEAVES:
                for shared in self._shared:
                    harms[part] += shared.harms(X[part])
            elif proposal == LATER and self._boosted is not None:
                y, weights = _taught(self._boosted, self.train)
                asked = self._boosted.leaves(X[part])
                harms[part] = followed(self._leaves, asked, self._boosted, y, weights)
            else:
                harms[part] = self._by_distance(X[part], 1.0 if proposal == NEAREST else 0.5)
        return harms

    @property
    def held(self) -> int:
        """Numbers held in memory for the next guess."""
        return sum(2 * shared.leaves.size for shared in self.__dict__.get("_shared", ()))

    @cached_property
    def _trees(self) -> tuple[Trees, ...]:
        try:
            found = trees_in(self.estimator)
            return found if all(trees.leaves(self.train.X[:1]).size for trees in found) else ()
        except Exception:  # other packages' trees, or a user's own, that cannot be asked: a guess without them will do
            return ()

    @cached_property
    def _boosted(self) -> Trees | None:
        """The one ensemble of boosted trees that decides, if it is one and not too large to be followed."""
        if len(self._trees) != 1 or self._trees[0].rate is None:
            return None
        count = self._trees[0].leaves(self.train.X[:1]).shape[1]
        return self._trees[0] if count * len(self.train) <= FOLLOWED else None

    @cached_property
    def _leaves(self) -> Leaves:
        """Of the training rows in the one ensemble, (n, T)."""
        return self._trees[0].leaves(self.train.X)

    @cached_property
    def _shared(self) -> tuple[SharedLeaves, ...]:
        return tuple(SharedLeaves.of(trees, self.train) for trees in self._trees)

    @cached_property
    def _chances(self) -> Array:
        """Of the training rows (n,), the usual one where the model says nothing."""
        chances = self.chance(self.train.X)
        return np.where(np.isnan(chances), _usual(self.train.y, _weights(self.train)), chances)

    def _by_distance(self, X: Array, usual: float) -> Array:
        """Residuals times a kernel of the distance, for points (m, d): shape (m, n).

        The residual is from the model's chance, and to the share ``usual`` from that of all rows.
        """
        train, weights = self.train, _weights(self.train)
        centre = train.X.mean(axis=0)  # far from 0 the differences of squares would be rounded away
        rows, points = (train.X - centre) / train.spread, (X - centre) / train.spread
        squares = (points**2).sum(axis=1)[:, None] + (rows**2).sum(axis=1) - 2.0 * points @ rows.T
        width = np.partition(squares, min(WITHIN, len(rows)) - 1, axis=1)[:, [min(WITHIN, len(rows)) - 1]]
        kernel = np.exp(-np.maximum(squares, 0.0) / np.maximum(width, 1e-12))
        expected = usual * _usual(train.y, weights) + (1.0 - usual) * self._chances
        return np.asarray(-(train.y - expected) * weights * kernel)


@dataclass(eq=False)
class SharedLeaves:
    """The rows in each leaf of one ensemble, and what their deletion does to the leaf.

    ``leaves`` and ``effects`` are (T, n), tree by tree, of the trees ``kept``.
    """

    trees: Trees
    kept: slice
    leaves: Leaves
    effects: Array
    #: Points asked about so far.
    asked: int = 0

    @classmethod
    def of(cls, trees: Trees, train: TrainingSet) -> SharedLeaves:
        """Of an ensemble and the rows that it was trained on."""
        leaves = trees.leaves(train.X)
        effects = leaf_effects(leaves, trees, train)
        kept = slice(None, None, max(-(-leaves.size // PAIRS), 1))
        return cls(trees, kept, np.ascontiguousarray(leaves[:, kept].T), np.ascontiguousarray(effects[:, kept].T))

    def harms(self, X: Array) -> Array:
        """Effects of the rows (n,) in the leaves of points (m, d), added up: shape (m, n)."""
        leaves = self.trees.leaves(X)[:, self.kept]
        self.asked += len(X)
        if self.asked <= FEW:
            return self._one_by_one(leaves)
        starts, effects = self._table
        shared = (leaves >= 0) & (leaves < np.diff(starts))
        point, tree = np.nonzero(shared)
        at = starts[tree] + leaves[point, tree]
        asked = csr_array((np.ones(len(at)), (point, at)), shape=(len(X), starts[-1]))
        return np.asarray((asked @ effects).toarray())

    def _one_by_one(self, asked: Leaves) -> Array:
        harms = np.zeros((len(asked), self.leaves.shape[1]))
        for places, effects, own in zip(self.leaves, self.effects, asked.T, strict=True):
            for point in np.flatnonzero(own >= 0):
                harms[point] += np.where(places == own[point], effects, 0.0)
        return harms

    @cached_property
    def _table(self) -> tuple[Leaves, csr_array]:
        """Where the leaves of each tree begin among all leaves, (T + 1,), and effects, (all leaves, n)."""
        starts = np.concatenate([[0], np.cumsum(self.leaves.max(axis=1) + 1)]).astype(np.int64)
        tree, row = np.nonzero(self.leaves >= 0)
        at = starts[tree] + self.leaves[tree, row]
        return starts, csr_array((self.effects[tree, row], (at, row)), shape=(starts[-1], self.leaves.shape[1]))


def leaf_effects(leaves: Leaves, trees: Trees, train: TrainingSet) -> Array:
    """What deleting each row does to its leaf of each tree, for leaves (n, T) of the rows: shape (n, T)."""
    y, weights = _taught(trees, train)
    return _share_effects(leaves, y, weights) if trees.rate is None else _boosting_effects(leaves, trees, y, weights)


def _share_effects(leaves: Leaves, y: Array, weights: Array) -> Array:
    """Of trees whose leaves' favourable shares are averaged."""
    effects = np.zeros(leaves.shape)
    usual, average = _usual(y, weights), weights.mean()
    for tree, column in enumerate(leaves.T):
        size = in_leaf(column, weights) + average
        share = (in_leaf(column, weights * y) + average * usual) / size
        effects[:, tree] = -weights * (y - share) / (size - weights) / leaves.shape[1]
    return effects


def _boosting_effects(leaves: Leaves, trees: Trees, y: Array, weights: Array) -> Array:
    """Of trees that are added up: logistic loss, Newton's steps in the leaves, replayed."""
    rate = 1.0 if trees.rate is None else trees.rate
    effects = np.zeros(leaves.T.shape)
    for tree, stage in enumerate(replayed(leaves, trees, y, weights)):
        size = stage.size + stage.curvature.mean()
        effects[tree] = (rate * stage.slope + stage.step * stage.curvature) / np.maximum(size - stage.curvature, 1e-9)
    return effects.T


def _weights(train: TrainingSet) -> Array:
    return np.ones(len(train)) if train.weights is None else np.asarray(train.weights, dtype=np.float64)


def _taught(trees: Trees, train: TrainingSet) -> tuple[Array, Array]:
    """Labels 0 and 1 and weights of the rows as the trees were taught them, (n,) each."""
    weights = _weights(train)
    if trees.class_weight is not None:
        weights = weights * _class_weights(trees.class_weight, train)
    return train.y.astype(np.float64), weights


def _usual(y: Array, weights: Array) -> float:
    """The favourable share of all rows."""
    return float(weights @ y / weights.sum())


def _class_weights(given: Any, train: TrainingSet) -> Array:
    """Factors of the rows' weights for their labels, (n,)."""
    from sklearn.utils.class_weight import compute_sample_weight

    rule = "balanced" if given == "balanced_subsample" else given
    return np.asarray(compute_sample_weight(rule, own_labels(train)), dtype=np.float64)


def _chunks(points: int, rows: int) -> Iterator[slice]:
    size = max(BLOCK // max(rows, 1), 1)
    return (slice(start, start + size) for start in range(0, points, size))
