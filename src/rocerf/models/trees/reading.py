"""Fitted tree ensembles of scikit-learn, XGBoost, LightGBM and CatBoost, read into one form and held against them.

Families are told by what they have, so that no package but scikit-learn need be there. Whatever is read is compared
with the estimator's own probabilities at training rows and at the very thresholds; what differs is not used.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any
from weakref import WeakKeyDictionary

import numpy as np
from numpy.typing import NDArray

from rocerf.data.feature import Kind
from rocerf.models.sklearn.estimator_fitting import rows_for
from rocerf.models.sklearn.own_threshold import steps_and_trees
from rocerf.models.trees.form import Nodes, TreeForm, below_or_equal
from rocerf.types import Array

#: Rows at which a form is compared with its estimator, fewer where that was fitted again, and how far probabilities may
#: be apart: single precision.
COMPARED, COMPARED_AGAIN, APART = 1024, 128, 2e-6

#: Thresholds at which a form is compared with its estimator.
THRESHOLDS = 256

#: Ensembles read so far by favourable label, None where one cannot be.
_READ: WeakKeyDictionary[Any, dict[Any, TreeForm | None]] = WeakKeyDictionary()


def trees_of(estimator: Any, favourable: Any, X: Array, compared: int = COMPARED) -> TreeForm | None:
    """The trees of a fitted classifier over its own columns, as they add up for the favourable label; None if it is no
    ensemble that can be read, or answers otherwise than what was read. ``X`` (n, d) are rows to compare at.
    """
    try:
        known = _READ.setdefault(estimator, {})
        if favourable not in known:
            known[favourable] = _verified(estimator, favourable, X, compared)
        return known[favourable]
    except TypeError:  # of an estimator that cannot be remembered
        return _verified(estimator, favourable, X, compared)


def _verified(estimator: Any, favourable: Any, X: Array, compared: int = COMPARED) -> TreeForm | None:
    if not hasattr(estimator, "predict_proba"):
        return None
    place = np.asarray(estimator.classes_).tolist().index(favourable)
    rows = X[:: max(1, -(-len(X) // compared))]
    rows = rows[np.isfinite(rows).all(axis=1)]
    try:
        form = _form_of(estimator, place, rows)
        if form is None or not len(form) or (form.columns >= X.shape[1]).any() or not len(rows):
            return None
        form = form.based_on(rows, _chances(estimator, rows, place))
        near = at_thresholds(form, rows, _whole_columns(estimator))[:compared]
        asked = np.concatenate([rows, near, at_categories(form, rows)])
        return form if form.apart(asked, _chances(estimator, asked, place)) <= APART else None
    except (AttributeError, ImportError, IndexError, KeyError, TypeError, ValueError):  # another version of it
        return None


def _whole_columns(estimator: Any) -> Sequence[int]:
    """Columns whose values are shown to the estimator as whole numbers."""
    if not hasattr(estimator, "own_rows"):
        return ()
    from rocerf.models.sklearn.pipeline_estimator import frames_of

    features = frames_of(estimator.frames).schema.column_features
    return [place for place, feature in enumerate(features) if feature.kind in (Kind.INTEGER, Kind.BINARY)]


def _form_of(estimator: Any, place: int, rows: Array) -> TreeForm | None:
    if hasattr(estimator, "own_rows") and hasattr(estimator, "pipeline_"):  # SchemaSpaceClassifier
        from rocerf.models.trees.own_columns import form_in_schema_space

        return form_in_schema_space(estimator, place, rows)
    steps, last = steps_and_trees(estimator)
    read = None if steps else reader_of(last)
    return None if read is None else read(last, place)


def _chances(estimator: Any, rows: Array, place: int) -> Array:
    return np.asarray(estimator.predict_proba(rows_for(estimator, rows))[:, place], dtype=np.float64)


def at_thresholds(form: TreeForm, rows: Array, whole: Sequence[int] = ()) -> Array:
    """Rows with one value moved to a threshold, or to the next double beyond it: (m, d).

    Columns of ``whole`` numbers are moved to those on both sides.
    """
    asks = (form.nodes.column >= 0) & (form.nodes.subset < 0)
    inner = np.flatnonzero(asks & np.isfinite(form.nodes.below))  # an infinite one tells missing from all others
    if not len(inner) or not len(rows):
        return rows[:0]
    nodes = inner[:: max(1, -(-len(inner) // THRESHOLDS))]
    moved = np.repeat(rows[np.arange(len(nodes)) % len(rows)], 2, axis=0)
    below = form.nodes.below[nodes]
    ends = np.stack([below, np.nextafter(below, np.inf)], axis=1)
    steps = np.stack([np.floor(below), np.floor(below) + 1.0], axis=1)
    ends = np.where(np.isin(form.nodes.column[nodes], whole)[:, None], steps, ends)
    moved[np.arange(len(moved)), np.repeat(form.nodes.column[nodes], 2)] = ends.ravel()
    return moved


def at_categories(form: TreeForm, rows: Array) -> Array:
    """Rows with one category replaced, each by each, and rows with each number that may be missing missing: (m, d)."""
    moved = [rows[:0]]
    for number, columns in enumerate(form.groups.values()):
        own = np.repeat(rows[[number % len(rows), -1 - number % len(rows)]], len(columns), axis=0)
        own[:, list(columns)] = np.tile(np.eye(len(columns)), (2, 1))
        moved.append(own)
    for column, value in form.gaps.items():
        own = rows[:8].copy()
        own[:, column] = value
        moved.append(own)
    return np.concatenate(moved)


def reader_of(estimator: Any) -> Callable[[Any, int], TreeForm | None] | None:  # noqa: PLR0911
    """What reads this kind of ensemble; None where nothing does."""
    from rocerf.models.trees import libraries

    if hasattr(estimator, "_predictors") and hasattr(estimator, "_bin_mapper"):
        return _hist_boosting
    if hasattr(estimator, "calc_leaf_indexes"):
        return libraries.catboost
    if hasattr(estimator, "booster_"):
        return libraries.lightgbm
    if hasattr(estimator, "get_booster"):
        return libraries.xgboost
    if hasattr(estimator, "tree_"):
        return _tree
    if hasattr(estimator, "estimators_") and hasattr(estimator, "init_"):
        return _boosting
    trees = getattr(estimator, "estimators_", None)
    forest = isinstance(trees, list) and all(hasattr(tree, "tree_") for tree in trees) and hasattr(estimator, "apply")
    return _forest if forest else None


# --- scikit-learn ------------------------------------------------------------------------------------


def _own_nodes(tree: Any, values: Array) -> Nodes:
    """Of scikit-learn's older trees, with these values of all nodes."""
    leaf = tree.children_left < 0
    missing = getattr(tree, "missing_go_to_left", np.zeros(len(leaf)))
    return Nodes.of(
        np.where(leaf, -1, tree.feature),
        np.where(leaf, 0.0, below_or_equal(tree.threshold)),
        np.where(leaf, 0, tree.children_left),
        np.where(leaf, 0, tree.children_right),
        np.where(leaf, values, 0.0),
        np.asarray(missing) != 0,
    )


def _shares(tree: Any, place: int) -> Array:
    counts = tree.value[:, 0, :]
    return np.asarray(counts[:, place] / counts.sum(axis=1))


def _tree(estimator: Any, place: int) -> TreeForm:
    return TreeForm.joined([_own_nodes(estimator.tree_, _shares(estimator.tree_, place))], averaged=True)


def _forest(estimator: Any, place: int) -> TreeForm:
    count = len(estimator.estimators_)
    trees = [_own_nodes(one.tree_, _shares(one.tree_, place) / count) for one in estimator.estimators_]
    return TreeForm.joined(trees, averaged=True)


def _boosting(estimator: Any, place: int) -> TreeForm:
    rate = estimator.learning_rate * (1.0 if place == 1 else -1.0)
    trees = [_own_nodes(stage[0].tree_, rate * stage[0].tree_.value[:, 0, 0]) for stage in estimator.estimators_]
    return TreeForm.joined(trees, averaged=False)


def _hist_boosting(estimator: Any, place: int, *, encoded: bool = False) -> TreeForm | None:
    """Over its own columns; ``encoded``: over the columns that its encoder makes, categories first."""
    sign, trees = (1.0 if place == 1 else -1.0), []
    subsets: list[frozenset[int]] = []
    if estimator._preprocessor is not None and not encoded:  # columns are put in another order for categories
        return None
    for (predictor,) in estimator._predictors:
        nodes, cats = predictor.nodes, predictor.raw_left_cat_bitsets
        leaf, subset = nodes["is_leaf"] != 0, np.full(len(predictor.nodes), -1, np.intp)
        for node in np.flatnonzero(nodes["is_categorical"] != 0):
            subset[node] = len(subsets)
            subsets.append(_members(cats[nodes["bitset_idx"][node]]))
        trees.append(
            Nodes.of(
                np.where(leaf, -1, nodes["feature_idx"]),
                nodes["num_threshold"],
                np.where(leaf, 0, nodes["left"]),
                np.where(leaf, 0, nodes["right"]),
                np.where(leaf, sign * nodes["value"], 0.0),
                nodes["missing_go_to_left"] != 0,
                subset,
            )
        )
    return TreeForm.joined(trees, averaged=False, subsets=subsets)


def _members(words: NDArray[np.uint32]) -> frozenset[int]:
    """The numbers whose bits are set in a bitset."""
    return frozenset(
        32 * word + bit for word, bits in enumerate(words.tolist()) for bit in range(32) if bits >> bit & 1
    )
