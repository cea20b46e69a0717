"""Retrained ensembles asked by the shortest way that their packages offer.

A search asks hundreds of refits about single points, and then most of the time goes into what surrounds a prediction:
tables with names, checks of options, a job for each tree of a forest. XGBoost and LightGBM are asked through their
boosters, a forest tree by tree, HistGradientBoosting packed (:mod:`rocerf.models.sklearn.packed`). Each is compared
with the estimator's own answers first; where anything is not as expected, the estimator itself is asked.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any
from weakref import WeakKeyDictionary

import numpy as np
from numpy.typing import NDArray

from rocerf.models.sklearn.estimator_fitting import rows_for
from rocerf.models.sklearn.packed import PackedTrees
from rocerf.types import Array

#: Points on which a shorter way is compared with the estimator itself, and how far chances may be apart.
COMPARED, APART = 16, 1e-12

#: The way found for each estimator so far, None where it is to be asked itself.
_KNOWN: WeakKeyDictionary[Any, Any] = WeakKeyDictionary()


@dataclass(frozen=True, eq=False)
class ShortWay:
    """Chances of the second class, asked of what an estimator is made of; it answers as the estimator does."""

    chances: Callable[[Array], Array]
    classes_: NDArray[Any]

    def predict_proba(self, X: Array) -> Array:
        """Chances of both classes at points (P, d) without gaps, (P, 2)."""
        chance = self.chances(X)
        return np.stack([1 - chance, chance], axis=1)  # in the precision of the package


def shortest(estimator: Any, X: Array) -> Any:
    """What to ask instead of a fitted estimator, remembered; itself where nothing is shorter.

    ``X`` (m, d) are points to compare at.
    """
    try:
        if estimator not in _KNOWN:
            _KNOWN[estimator] = PackedTrees.of(estimator, X) or _compared(estimator, X)
        found = _KNOWN[estimator]
    except TypeError:  # of an estimator that cannot be remembered
        found = None
    return estimator if found is None else found


def _compared(estimator: Any, X: Array) -> ShortWay | None:
    """The shorter way, if it says what the estimator says."""
    some = X[:COMPARED][np.isfinite(X[:COMPARED]).all(axis=1)]
    try:
        chances = _way(estimator)
        if chances is None or not len(some) or len(estimator.classes_) != 2:
            return None
        way = ShortWay(chances, estimator.classes_)
        own = np.asarray(estimator.predict_proba(rows_for(estimator, some)))
        same = np.allclose(way.predict_proba(some), own, rtol=0.0, atol=APART)
    except (AttributeError, KeyError, TypeError, ValueError):  # another version of the package
        return None
    return way if same else None


def _way(estimator: Any) -> Callable[[Array], Array] | None:
    if hasattr(estimator, "get_booster"):
        return _xgboost(estimator)
    if hasattr(estimator, "booster_"):
        return _lightgbm(estimator)
    trees = getattr(estimator, "estimators_", None)
    if isinstance(trees, list) and hasattr(estimator, "apply") and all(hasattr(tree, "tree_") for tree in trees):
        return _forest(estimator)
    return None


def _xgboost(estimator: Any) -> Callable[[Array], Array] | None:
    if estimator.booster == "gblinear":
        return None
    booster, rounds = estimator.get_booster(), int(getattr(estimator, "best_iteration", -1)) + 1
    options = {"iteration_range": (0, rounds), "missing": estimator.missing, "validate_features": False}
    return lambda X: np.asarray(booster.inplace_predict(X, **options))


def _lightgbm(estimator: Any) -> Callable[[Array], Array] | None:
    if any(name.startswith("pred") for name in estimator.get_params()):  # options for predicting, given as others are
        return None
    booster = estimator.booster_
    return lambda X: np.asarray(booster.predict(X, num_threads=1))


def _forest(estimator: Any) -> Callable[[Array], Array]:
    trees = [tree.tree_ for tree in estimator.estimators_]

    def chances(X: Array) -> Array:
        single, total = np.ascontiguousarray(X, dtype=np.float32), np.zeros(len(X))
        for tree in trees:
            total += tree.predict(single)[:, 1]
        return total / len(trees)

    return chances
