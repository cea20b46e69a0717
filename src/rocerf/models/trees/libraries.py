"""The trees of XGBoost, LightGBM and CatBoost, out of what these packages write of their models."""

from __future__ import annotations

import json
from typing import Any

import numpy as np
from numpy.typing import NDArray

from rocerf.models.trees.form import Nodes, TreeForm, last_rounding_to, strictly_below
from rocerf.storage.scratch import text_written_by
from rocerf.types import Array

#: Numbers up to this are 0 to LightGBM.
LIGHTGBM_ZERO = float(np.float32(1e-35))


def xgboost(estimator: Any, place: int) -> TreeForm | None:
    """Boosted trees (not linear ones, nor those with dropout); categories in a node's list go right."""
    booster = estimator.get_booster()
    last = getattr(estimator, "best_iteration", None) if hasattr(estimator, "early_stopping_rounds") else None
    model = json.loads(booster.save_raw("json").decode())["learner"]["gradient_booster"]
    if "trees" not in model.get("model", {}):
        return None
    own = model["model"]
    trees = own["trees"]
    if last is not None and getattr(estimator, "early_stopping_rounds", None) is not None:
        trees = trees[: own["iteration_indptr"][int(last) + 1]]
    sign, subsets = (1.0 if place == 1 else -1.0), list[frozenset[int]]()
    return TreeForm.joined([_xgboost_tree(tree, sign, subsets) for tree in trees], False, subsets=subsets)


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


def catboost(estimator: Any, place: int) -> TreeForm | None:
    """Trees over numbers, oblivious or not; categories become statistics of other rows there and are not read."""
    model = json.loads(text_written_by(lambda path: estimator.save_model(path, format="json")))
    if model["features_info"].get("categorical_features"):
        return None
    columns = [feature["flat_feature_index"] for feature in model["features_info"]["float_features"]]
    treated = [feature["nan_value_treatment"] == "AsTrue" for feature in model["features_info"]["float_features"]]
    scale = (1.0 if place == 1 else -1.0) * float(model["scale_and_bias"][0])
    if "oblivious_trees" in model:
        trees = [_oblivious(tree, columns, treated, scale) for tree in model["oblivious_trees"]]
    else:
        trees = [_grown(tree, columns, treated, scale) for tree in model["trees"]]
    return TreeForm.joined(trees, False)


def _border(split: dict[str, Any]) -> Array:
    if split["split_type"] != "FloatFeature":
        raise ValueError("only numbers are read")
    return last_rounding_to(np.array([split["border"]], np.float32))


def _oblivious(tree: dict[str, Any], columns: list[int], treated: list[bool], scale: float) -> Nodes:
    """A full tree whose levels ask one question each; leaf number: bit i is the answer to question i."""
    splits, values = tree.get("splits") or [], np.array(tree["leaf_values"])
    depth = len(splits)
    size, inner = 2 ** (depth + 1) - 1, 2**depth - 1
    level = np.floor(np.log2(np.arange(1, size + 1))).astype(np.intp)
    asked, below = np.full(size, -1, np.intp), np.zeros(size)
    missing_left = np.zeros(size, bool)
    for place, split in enumerate(splits):
        feature = split["float_feature_index"]
        at = level == place
        asked[at], below[at] = columns[feature], _border(split)[0]
        missing_left[at] = not treated[feature]
    node = np.arange(size)
    left, right = np.where(node < inner, 2 * node + 1, 0), np.where(node < inner, 2 * node + 2, 0)
    # In heap order the answers to the first questions are the highest bits: turned round.
    leaf = np.arange(2**depth)
    number = sum((((leaf >> (depth - 1 - bit)) & 1) << bit for bit in range(depth)), np.zeros(2**depth, np.intp))
    held = np.zeros(size)
    held[inner:] = scale * values[number]
    return Nodes.of(asked, below, left, right, held, missing_left)


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
