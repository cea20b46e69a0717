"""Which leaf of each tree a row falls into, for the tree ensembles that scikit-learn's users have.

Families are told by what they can do, so that no package but scikit-learn need be there: XGBoost, LightGBM and CatBoost
are asked through their own methods. Only HistGradientBoosting says nothing of its leaves: its trees predict for us with
every leaf's value replaced by the leaf's number.
"""

from __future__ import annotations

import copy
from collections.abc import Callable, Iterator
from dataclasses import dataclass, replace
from functools import partial
from typing import Any, TypeAlias

import numpy as np
from numpy.typing import NDArray

from rocerf.models.sklearn.estimator_fitting import names_of, rows_to_score
from rocerf.models.sklearn.pipeline_steps import by_halves, quietly, split
from rocerf.types import Array

#: Numbers of leaves, one row for each point and one column for each tree; below 0 where there is none.
Leaves: TypeAlias = NDArray[np.int64]

#: What stands for options left open: XGBoost's own defaults.
OPEN_RATE, OPEN_SHRINKAGE = 0.3, 1.0


@dataclass(frozen=True, eq=False)
class Trees:
    """T fitted trees of one ensemble.

    ``ask`` gives the leaves (m, T) of m rows. ``rate`` is what a boosted tree's values are multiplied with, None for
    trees whose shares are averaged; ``shrinkage`` is what is added to the curvature in a leaf. ``class_weight`` is as
    scikit-learn has it.
    """

    ask: Callable[[Any], Leaves]
    rate: float | None = None
    shrinkage: float = 0.0
    class_weight: Any = None

    def leaves(self, X: Array) -> Leaves:
        """The leaves of points (m, d), shape (m, T); -1 for points that a pipeline cannot take."""
        with quietly():
            try:
                return self.ask(X)
            except ValueError:
                nothing = np.full((1, self._count(X)), -1.0)
                found = by_halves(lambda part: self.ask(part).astype(np.float64), X, nothing, ValueError)
                return found.astype(np.int64)

    def _count(self, X: Array) -> int:
        """How many trees there are, by the first point that can be asked about."""
        for row in range(len(X)):
            try:
                return int(self.ask(X[row : row + 1]).shape[1])
            except ValueError:
                continue
        return 1

    def after(self, step: Callable[[Any], Any]) -> Trees:
        """The same trees, asked about rows that are prepared first."""
        ask = self.ask
        return replace(self, ask=lambda rows: ask(step(rows)))


def trees_in(estimator: Any) -> tuple[Trees, ...]:
    """The tree ensembles that a fitted classifier decides by, each asked about points (m, d); none: it has no trees.

    Pipelines, calibrated and bagged classifiers, votes, searches and thresholds are looked into.
    """
    return tuple(part.after(lambda X: rows_to_score(estimator, X)) for part in _within(estimator))


def _within(estimator: Any) -> Iterator[Trees]:
    """The ensembles inside an estimator, each asked about rows as the estimator takes them."""
    own = _own_trees(estimator)
    if own is not None:
        yield own
        return
    for inner, step in _parts(estimator):
        yield from (part if step is None else part.after(step) for part in _within(inner))


def _parts(estimator: Any) -> Iterator[tuple[Any, Callable[[Any], Any] | None]]:
    """The classifiers that an estimator is made of, and how it prepares rows for each."""
    steps, last = split(estimator)
    if last is not estimator:
        yield last, partial(_transformed, steps)
    elif hasattr(estimator, "pipeline_") and hasattr(estimator, "own_rows"):  # SchemaSpaceClassifier
        yield estimator.pipeline_, lambda X: estimator.as_shown(estimator.own_rows(X))
    elif hasattr(estimator, "calibrated_classifiers_"):
        yield from ((part.estimator, None) for part in estimator.calibrated_classifiers_)
    elif hasattr(estimator, "estimators_features_"):  # Bagging
        for part, columns in zip(estimator.estimators_, estimator.estimators_features_, strict=True):
            yield part, partial(_chosen, columns)
    elif hasattr(estimator, "named_estimators_"):  # Voting, Stacking
        yield from ((part, None) for part in estimator.named_estimators_.values() if hasattr(part, "get_params"))
    else:
        for name in ("best_estimator_", "estimator_"):
            if hasattr(estimator, name):
                yield getattr(estimator, name), None
                return


def _transformed(steps: tuple[Any, ...], rows: Any) -> Any:
    for step in steps:
        rows = step.transform(rows)
    return rows


def _chosen(columns: Any, rows: Any) -> Any:
    return (rows.to_numpy() if hasattr(rows, "to_numpy") else rows)[:, columns]


# --- the families ------------------------------------------------------------------------------------


def _own_trees(estimator: Any) -> Trees | None:
    """The trees that this estimator itself is made of."""
    if hasattr(estimator, "_predictors") and hasattr(estimator, "_bin_mapper"):
        return _boosted(estimator, lambda rows: _hist_leaves(estimator, rows))
    if hasattr(estimator, "calc_leaf_indexes"):  # CatBoost
        return _boosted(estimator, lambda rows: _table(estimator.calc_leaf_indexes(rows)))
    if hasattr(estimator, "booster_"):  # LightGBM
        made = _boosted(estimator, lambda rows: _table(estimator.predict(rows, pred_leaf=True)))
        return replace(made, rate=None) if _option(estimator, "boosting_type") == "rf" else made
    linear = hasattr(estimator, "get_booster") and _option(estimator, "booster") == "gblinear"
    if linear or not hasattr(estimator, "apply"):
        return None
    if hasattr(estimator, "get_booster") and names_of(estimator) is not None:
        return _boosted(estimator, lambda rows: _table(_xgboost_leaves(estimator, rows)))
    made = _boosted(estimator, lambda rows: _table(estimator.apply(rows)))
    one_by_one = hasattr(estimator, "get_booster") or hasattr(estimator, "learning_rate")  # XGBoost, GradientBoosting
    return made if one_by_one else replace(made, rate=None)


def _boosted(estimator: Any, ask: Callable[[Any], Leaves]) -> Trees:
    """Trees added up one after the other, with the options that their values depend on.

    CatBoost's shrinkage is left out: it takes many Newton steps in a leaf, after which little of it is left.
    """
    rate = getattr(estimator, "learning_rate_", None) or _option(estimator, "learning_rate") or OPEN_RATE
    options = estimator.get_params()
    given = [options[name] for name in ("reg_lambda", "l2_regularization") if name in options]
    shrinkage = 0.0 if not given else OPEN_SHRINKAGE if given[0] is None else float(given[0])
    weight = _option(estimator, "class_weight")
    if weight is None and _option(estimator, "scale_pos_weight") is not None:
        weight = {estimator.classes_[1]: float(_option(estimator, "scale_pos_weight"))}
    return Trees(ask, float(rate), shrinkage, weight)


def _option(estimator: Any, name: str) -> Any:
    return estimator.get_params().get(name)


def _table(leaves: Any) -> Leaves:
    """Leaves as (m, T), also of one tree and of trees for one of two classes."""
    found = np.asarray(leaves)
    return found.reshape(len(found), -1).astype(np.int64)


def _xgboost_leaves(estimator: Any, rows: Any) -> Any:
    """As the ``apply`` of one fitted on a table says, of plain arrays too: they have no names to be looked at."""
    from xgboost import DMatrix

    options = {name: getattr(estimator, name) for name in ("missing", "feature_types", "enable_categorical")}
    asked = DMatrix(rows, nthread=estimator.n_jobs, **options)
    rounds = (0, int(getattr(estimator, "best_iteration", -1)) + 1)
    return estimator.get_booster().predict(asked, pred_leaf=True, iteration_range=rounds, validate_features=False)


def _hist_leaves(estimator: Any, rows: Any) -> Leaves:
    """The leaves of a HistGradientBoostingClassifier, by its own trees: gaps and categories go where they do there."""
    X = estimator._preprocess_X(rows, reset=False)
    known, places = estimator._bin_mapper.make_known_categories_bitsets()
    found = np.empty((len(X), len(estimator._predictors)), dtype=np.int64)
    for tree, (predictor,) in enumerate(estimator._predictors):
        numbering = copy.copy(predictor)
        numbering.nodes = predictor.nodes.copy()
        numbering.nodes["value"] = np.arange(len(numbering.nodes))
        found[:, tree] = numbering.predict(X, known_cat_bitsets=known, f_idx_map=places, n_threads=1)
    return found
