"""Boosted trees asked without the toll of a call per tree: HistGradientBoosting, packed for the older boosting.

HistGradientBoosting is asked tree by tree, which costs more than walking the trees where points are few. The older
gradient boosting walks all trees in one call, on numbers of single precision. So points are brought to whole numbers
first: how many of a column's thresholds lie below the value. Those compare with the place of a threshold exactly as the
value does with the threshold itself, and points in the same cell of this grid are asked only once. What is packed is
compared with the estimator's own answers; where anything is not as expected, the estimator itself is asked.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property
from typing import Any
from weakref import WeakKeyDictionary

import numpy as np
from numpy.typing import NDArray
from scipy.special import expit

from rocerf.models.sklearn.estimator_fitting import rows_for
from rocerf.types import Array, Places

#: Points on which what is packed is compared with the estimator itself.
COMPARED = 16

#: Ensembles packed so far, None where one cannot be.
_PACKED: WeakKeyDictionary[Any, PackedTrees | None] = WeakKeyDictionary()


@dataclass(frozen=True, eq=False)
class _Tree:
    """What the walk asks of an estimator."""

    tree_: Any


@dataclass(frozen=True, eq=False)
class PackedTrees:
    """The trees of one fitted ensemble over a grid, asked as the ensemble is.

    ``thresholds`` holds those of each column, in order; most columns of categories have a single one.
    """

    thresholds: tuple[Array, ...]
    trees: NDArray[Any]
    baseline: float
    classes_: NDArray[Any]

    @classmethod
    def of(cls, estimator: Any, X: Array) -> PackedTrees | None:
        """An ensemble packed, and remembered; None where it cannot be. ``X`` (m, d) are points to compare at."""
        try:
            if estimator not in _PACKED:
                _PACKED[estimator] = _packed(estimator, X)
            return _PACKED[estimator]
        except TypeError:  # of an estimator that cannot be remembered
            return None

    @cached_property
    def _single(self) -> tuple[Places, Array]:
        columns = [column for column, own in enumerate(self.thresholds) if len(own) == 1]
        return np.array(columns, np.intp), np.array([self.thresholds[column][0] for column in columns])

    @cached_property
    def _several(self) -> tuple[int, ...]:
        return tuple(column for column, own in enumerate(self.thresholds) if len(own) > 1)

    def cells(self, X: Array) -> NDArray[np.float32]:
        """How many thresholds of each column lie below the values of points (P, d)."""
        cells = np.zeros(X.shape, np.float32)
        single, edges = self._single
        cells[:, single] = X[:, single] > edges
        for column in self._several:
            cells[:, column] = np.searchsorted(self.thresholds[column], X[:, column])
        return cells

    def decision_function(self, X: Array) -> Array:
        """Log-odds of the second class at points (P, d) without gaps, (P,)."""
        from sklearn.ensemble._gradient_boosting import predict_stages

        cells = self.cells(X)
        own, inverse = _different(cells)
        found = np.full((len(own), 1), self.baseline)
        predict_stages(self.trees, np.ascontiguousarray(cells[own]), 1.0, found)
        return np.asarray(found[inverse, 0])

    def predict_proba(self, X: Array) -> Array:
        """Chances of both classes, (P, 2)."""
        chance = expit(self.decision_function(X))
        return np.stack([1.0 - chance, chance], axis=1)


def _different(cells: NDArray[np.float32]) -> tuple[NDArray[np.intp], NDArray[np.intp]]:
    """Rows (P, d) that differ, and which of them each row equals."""
    mixed = cells @ np.random.default_rng(0).random(cells.shape[1])
    _, own, inverse = np.unique(mixed, return_index=True, return_inverse=True)
    if (cells[own][inverse] == cells).all():
        return own, inverse
    return np.arange(len(cells)), np.arange(len(cells))


def _packed(estimator: Any, X: Array) -> PackedTrees | None:
    """The ensemble packed, if it is one of HistGradientBoosting on numbers and answers as it does itself."""
    if not hasattr(estimator, "_predictors") or not hasattr(estimator, "_bin_mapper"):
        return None
    try:
        stages = [predictor.nodes for (predictor,) in estimator._predictors]
        if any(nodes["is_categorical"].any() for nodes in stages) or estimator._preprocessor is not None:
            return None
        every = np.concatenate(stages)
        every = every[every["is_leaf"] == 0]
        columns = estimator.n_features_in_
        thresholds = tuple(
            np.unique(every["num_threshold"][every["feature_idx"] == column]) for column in range(columns)
        )
        trees = np.array([[_Tree(_walked(nodes, thresholds, columns))] for nodes in stages], dtype=object)
        baseline = float(np.ravel(estimator._baseline_prediction)[0])
        packed = PackedTrees(thresholds, trees, baseline, estimator.classes_)
        some = X[:COMPARED][np.isfinite(X[:COMPARED]).all(axis=1)]
        asked = estimator.decision_function(rows_for(estimator, some))
        same = len(some) > 0 and np.allclose(packed.decision_function(some), asked, rtol=0.0, atol=1e-9)
    except (AttributeError, ImportError, KeyError, TypeError, ValueError):  # another scikit-learn
        return None
    return packed if same else None


def _walked(nodes: NDArray[Any], thresholds: tuple[Array, ...], columns: int) -> Any:
    """One tree over the grid, as scikit-learn's older trees have it."""
    from sklearn.tree._tree import NODE_DTYPE, Tree

    own = np.zeros(len(nodes), NODE_DTYPE)
    leaf = nodes["is_leaf"] != 0
    for name, side in (("left_child", "left"), ("right_child", "right")):
        children = nodes[side].astype(np.int64)
        if not ((children > np.arange(len(nodes))) & (children < len(nodes)))[~leaf].all():  # nobody else checks them
            raise ValueError("the children of a node stand after it, in the same tree")
        own[name] = np.where(leaf, np.int64(-1), children)
    own["feature"] = np.where(leaf, -2, nodes["feature_idx"])
    places = [
        -2.0 if ends else float(np.searchsorted(thresholds[column], value))
        for ends, column, value in zip(leaf, nodes["feature_idx"], nodes["num_threshold"], strict=True)
    ]
    own["threshold"] = places
    tree = Tree(columns, np.array([1], np.intp), 1)
    values = np.ascontiguousarray(nodes["value"], dtype=np.float64).reshape(-1, 1, 1)
    depth = int(nodes["depth"].max(initial=0))
    tree.__setstate__({"max_depth": depth, "node_count": len(nodes), "nodes": own, "values": values})
    return tree
