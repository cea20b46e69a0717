"""The trees of XGBoost, LightGBM and CatBoost, out of what these packages write of their models."""

from __future__ import annotations

import json
from collections.abc import Mapping
from typing import Any

import numpy as np
from numpy.typing import NDArray

from rocerf.models.trees.form import Nodes, TreeForm, last_rounding_to, strictly_below
from rocerf.storage.scratch import text_written_by
from rocerf.types import Array

#: Numbers up to this are 0 to LightGBM.
LIGHTGBM_ZERO = float(np.float32(1e-35))


def xgboost(estimator: Any, place: int) -> TreeForm | None:
    """Boosted trees, with dropout or not (not linear ones); categories in a node's list go right."""
    own, weights = xgboost_trees(estimator)
    if "trees" not in own:
        return None
    count = own["iteration_indptr"][_best_iteration(estimator) + 1] if _best_iteration(estimator) >= 0 else None
    sign, subsets = (1.0 if place == 1 else -1.0), list[frozenset[int]]()
    weighted = zip(own["trees"][:count], (weights or [1.0] * len(own["trees"]))[:count], strict=True)
    trees = [_xgboost_tree(tree, sign * weight, subsets) for tree, weight in weighted]
    form = TreeForm.joined(trees, False, subsets=subsets)
    return form if _alike_if_missing(form, estimator.missing) else None


def xgboost_trees(estimator: Any) -> tuple[dict[str, Any], list[float]]:
    """What XGBoost writes of its trees (nothing of a linear model), and their weights where some were dropped."""
    model = json.loads(estimator.get_booster().save_raw("json").decode())["learner"]["gradient_booster"]
    return model.get("gbtree", model).get("model", {}), model.get("weight_drop", [])


def _best_iteration(estimator: Any) -> int:
    """The last round whose trees are asked; -1 for all: XGBoost has no such attribute where nothing stopped it."""
    return int(getattr(estimator, "best_iteration", -1))


def _alike_if_missing(form: TreeForm, number: float) -> bool:
    """Whether a number that stands for missing values goes where any number of its size goes, at every node."""
    if number is None or np.isnan(number):
        return True
    inner = np.flatnonzero(form.nodes.column >= 0)
    return bool((form.goes_left(inner, np.full(len(inner), float(number))) == form.nodes.missing_left[inner]).all())


def _xgboost_tree(tree: dict[str, Any], sign: float, subsets: list[frozenset[int]]) -> Nodes:
    left = np.array(tree["left_children"], np.intp)
    leaf = left < 0
    single = np.array(tree["split_conditions"], np.float32)
    right, subset = np.array(tree["right_children"], np.intp), np.full(len(left), -1, np.intp)
    missing_left = np.array(tree["default_left"], bool)
    starts = zip(tree["categories_nodes"], tree["categories_segments"], tree["categories_sizes"], strict=True)
    for node, first, count in starts:
        subset[node] = len(subsets)
        subsets.append(frozenset(tree["categories"][first : first + count]))
        # Those listed go right: the children change places.
        left[node], right[node] = right[node], left[node]
        missing_left[node] = not missing_left[node]
    return Nodes.of(
        np.where(leaf, -1, np.array(tree["split_indices"])),
        np.where(leaf, 0.0, strictly_below(single)),
        np.where(leaf, 0, left),
        np.where(leaf, 0, right),
        np.where(leaf, sign * single.astype(np.float64), 0.0),
        missing_left,
        subset,
    )


def lightgbm(estimator: Any, place: int) -> TreeForm | None:
    """Boosted trees; a forest of LightGBM, whose trees are averaged log-odds, is one with smaller leaves."""
    text = estimator.booster_.model_to_string(num_iteration=estimator.booster_.best_iteration)
    head, *blocks = text.split("end of trees")[0].split("\nTree=")
    if "linear_tree=1" in text.split("parameters:")[-1].replace(": ", "=").replace("]", ""):
        return None
    sign = (1.0 if place == 1 else -1.0) / (len(blocks) if "average_output" in head else 1)
    subsets: list[frozenset[int]] = []
    trees = [_lightgbm_tree(dict(_entries(block)), sign, subsets) for block in blocks]
    return None if any(tree is None for tree in trees) else TreeForm.joined(trees, False, subsets=subsets)  # type: ignore[arg-type]


def _entries(block: str) -> list[tuple[str, str]]:
    return [(name, value) for name, found, value in (line.partition("=") for line in block.splitlines()) if found]


def _numbers(text: str, kind: type) -> NDArray[Any]:
    return np.array(text.split(), dtype=kind)


def _lightgbm_tree(entries: dict[str, str], sign: float, subsets: list[frozenset[int]]) -> Nodes | None:
    """Inner nodes first, then leaves; a child below 0 is the leaf -1 - child."""
    values = sign * _numbers(entries["leaf_value"], np.float64)
    if entries.get("is_linear", "0") == "1":
        return None
    if "split_feature" not in entries or not entries["split_feature"]:
        return Nodes.of(np.array([-1]), np.zeros(1), np.zeros(1), np.zeros(1), values[:1])
    column, kinds = _numbers(entries["split_feature"], np.intp), _numbers(entries["decision_type"], np.intp)
    below, inner = _around_zero(_numbers(entries["threshold"], np.float64), kinds & 1), len(column)
    children = [np.array(_numbers(entries[name], np.intp)) for name in ("left_child", "right_child")]
    left, right = (np.where(child < 0, inner - 1 - child, child) for child in children)
    subset = np.full(inner, -1, np.intp)
    if (kinds & 1).any():
        ends, words = _numbers(entries["cat_boundaries"], np.intp), _numbers(entries["cat_threshold"], np.int64)
        for node in np.flatnonzero(kinds & 1):
            own = words[ends[int(below[node])] : ends[int(below[node]) + 1]].tolist()
            subset[node] = len(subsets)
            subsets.append(
                frozenset(32 * w + bit for w, bits in enumerate(own) for bit in range(32) if bits >> bit & 1)
            )
    if ((kinds >> 2 & 3) == 1).any():  # zeros count as missing: no threshold says so
        return None
    nan = (kinds >> 2 & 3) == 2
    missing_left = np.where(kinds & 1, False, np.where(nan, (kinds & 2) > 0, below >= 0.0))
    leaves = len(values)
    return Nodes.of(
        np.concatenate([column, np.full(leaves, -1)]),
        np.concatenate([below, np.zeros(leaves)]),
        np.concatenate([left, np.zeros(leaves, np.intp)]),
        np.concatenate([right, np.zeros(leaves, np.intp)]),
        np.concatenate([np.zeros(inner), values]),
        np.concatenate([missing_left, np.zeros(leaves, bool)]),
        np.concatenate([subset, np.full(leaves, -1)]),
    )


def _around_zero(thresholds: Array, categories: NDArray[Any]) -> Array:
    """Where ``x <= t`` ends though numbers next to 0 are read as 0."""
    moved = np.where(thresholds < 0.0, np.nextafter(-LIGHTGBM_ZERO, -np.inf), LIGHTGBM_ZERO)
    return np.where((np.abs(thresholds) <= LIGHTGBM_ZERO) & (categories == 0), moved, thresholds)


def catboost(estimator: Any, place: int, answers: Mapping[int, NDArray[Any]] | None = None) -> TreeForm | None:
    """Trees over numbers, oblivious or not, and oblivious ones over categories where each question is about one alone.

    What a category counts as there comes from statistics of training rows; what is answered for each category of a
    column is read off the leaves (categories, T) that rows with it fall into, ``answers`` by column.
    """
    model = json.loads(text_written_by(lambda path: estimator.save_model(path, format="json")))
    info, answers = model["features_info"], answers or {}
    categories = {one["feature_index"]: one["flat_feature_index"] for one in info.get("categorical_features", [])}
    if not set(categories.values()) <= set(answers):
        return None
    scale = (1.0 if place == 1 else -1.0) * float(model["scale_and_bias"][0])
    if "oblivious_trees" not in model:
        if categories:
            return None
        columns = [feature["flat_feature_index"] for feature in info["float_features"]]
        treated = [feature["nan_value_treatment"] == "AsTrue" for feature in info["float_features"]]
        return TreeForm.joined([_grown(tree, columns, treated, scale) for tree in model["trees"]], False)
    subsets: list[frozenset[int]] = []
    trees = []
    for number, tree in enumerate(model["oblivious_trees"]):
        asked = [
            _question(split, bit, info, categories, answers, number, subsets)
            for bit, split in enumerate(tree.get("splits") or [])
        ]
        trees.append(_oblivious(asked, np.array(tree["leaf_values"]), scale))
    return TreeForm.joined(trees, False, subsets=subsets)


def _border(split: dict[str, Any]) -> Array:
    if split["split_type"] != "FloatFeature":
        raise ValueError("only numbers are read")
    return last_rounding_to(np.array([split["border"]], np.float32))


def _question(
    split: dict[str, Any],
    bit: int,
    info: dict[str, Any],
    categories: Mapping[int, int],
    answers: Mapping[int, NDArray[Any]],
    tree: int,
    subsets: list[frozenset[int]],
) -> tuple[int, float, bool, int]:
    """Column, threshold, where missing values go, and subset (-1 for none) of one question of an oblivious tree."""
    if split["split_type"] == "FloatFeature":
        feature = info["float_features"][split["float_feature_index"]]
        missing_left = feature["nan_value_treatment"] != "AsTrue"
        return feature["flat_feature_index"], float(_border(split)[0]), missing_left, -1
    column = categories[_category_asked(split, info)]
    leaves = answers[column][:, tree].astype(np.int64)
    subsets.append(frozenset(np.flatnonzero((leaves >> bit & 1) == 0).tolist()))
    return column, 0.0, False, len(subsets) - 1


def _category_asked(split: dict[str, Any], info: dict[str, Any]) -> int:
    """The one category that a question is about, by its number; a statistic of several columns is not read.

    Questions are numbered: those about numbers first, then single categories, then statistics.
    """
    if split["split_type"] == "OneHotFeature":
        return int(split["cat_feature_index"])
    before = sum(len(feature["borders"] or ()) for feature in info["float_features"])
    before += sum(len(feature.get("values") or ()) for feature in info["categorical_features"])
    for statistic in info["ctrs"]:
        before += len(statistic["borders"])
        if split["split_index"] < before:
            asked = {part.get("cat_feature_index") for part in statistic["elements"]}
            if len(asked) == 1 and None not in asked:
                return int(asked.pop())
            break
    raise ValueError("a statistic of several columns")


def _oblivious(asked: list[tuple[int, float, bool, int]], values: Array, scale: float) -> Nodes:
    """A full tree whose levels ask one question each; leaf number: bit i is the answer to question i."""
    depth = len(asked)
    size, inner = 2 ** (depth + 1) - 1, 2**depth - 1
    level = np.floor(np.log2(np.arange(1, size + 1))).astype(np.intp)
    columns, below, subset = np.full(size, -1, np.intp), np.zeros(size), np.full(size, -1, np.intp)
    missing_left = np.zeros(size, bool)
    for place, question in enumerate(asked):
        at = level == place
        columns[at], below[at], missing_left[at], subset[at] = question
    node = np.arange(size)
    left, right = np.where(node < inner, 2 * node + 1, 0), np.where(node < inner, 2 * node + 2, 0)
    # In heap order the answers to the first questions are the highest bits: turned round.
    leaf = np.arange(2**depth)
    number = sum((((leaf >> (depth - 1 - bit)) & 1) << bit for bit in range(depth)), np.zeros(2**depth, np.intp))
    held = np.zeros(size)
    held[inner:] = scale * values[number]
    return Nodes.of(columns, below, left, right, held, missing_left, subset)


def _grown(tree: dict[str, Any], columns: list[int], treated: list[bool], scale: float) -> Nodes:
    """A tree that need not be oblivious, nested."""
    asked: list[tuple[int, float, int, int, float, bool]] = []

    def walk(node: dict[str, Any]) -> int:
        place = len(asked)
        if "split" not in node:
            asked.append((-1, 0.0, 0, 0, scale * float(node["value"]), False))
            return place
        asked.append((0, 0.0, 0, 0, 0.0, False))
        feature = node["split"]["float_feature_index"]
        left, right = walk(node["left"]), walk(node["right"])
        asked[place] = (columns[feature], float(_border(node["split"])[0]), left, right, 0.0, not treated[feature])
        return place

    walk(tree)
    return Nodes.of(*(np.array(part) for part in zip(*asked, strict=True)))
