"""Trees in the user's own columns, native categories and missing values included, as trees over schema space.

What a library is shown (or what the steps of a pipeline make of it) are *design columns*. Each that trees ask about
must follow one attribute alone: a number that is passed on as it is, or a category, whatever code it gets. Which one it
is, and the codes, are found by asking the steps, or in what the library has written down of its categories. A node then
asks about the number itself, or which places of the category go left. The form that comes out is compared with the
user's own model like any other, at thresholds, at every category and at missing values; what differs is not used.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from itertools import pairwise
from typing import Any

import numpy as np

from rocerf.data.columns import plain
from rocerf.data.feature import Feature
from rocerf.data.frames import Frames
from rocerf.models.sklearn.own_threshold import steps_and_trees
from rocerf.models.sklearn.pipeline_steps import quietly
from rocerf.models.trees.form import Nodes, TreeForm
from rocerf.types import Array

#: Training rows around which each attribute is moved, and values of a number that are tried.
BASES, VALUES = 3, 7


@dataclass(frozen=True, eq=False)
class Column:
    """What a design column follows: an attribute by its columns of schema space.

    ``codes`` are the values of its categories (c,), NaN where missing; None for a number passed on as it is, ``gap`` is
    then what stands in the design for a missing one.
    """

    places: tuple[int, ...]
    codes: Array | None = None
    gap: float = np.nan


def form_in_schema_space(classifier: Any, place: int, rows: Array) -> TreeForm | None:
    """The trees inside a :class:`SchemaSpaceClassifier` over schema space; None where they cannot be read.

    ``rows`` (m, d) are training rows in schema space.
    """
    from rocerf.models.sklearn.pipeline_estimator import frames_of

    frames = frames_of(classifier.frames)
    steps, last = steps_and_trees(classifier.pipeline_)
    read = _read_encoded(classifier, last, place, frames, rows) if not steps else _read_plain(last, place)
    if read is None:
        return None
    form, columns = read
    if columns is None:
        columns = _by_asking(classifier, steps, frames, rows, form.columns.tolist())
    return None if columns is None else _over_schema_space(form, columns, frames)


def _read_plain(last: Any, place: int) -> tuple[TreeForm, None] | None:
    from rocerf.models.trees.reading import reader_of

    read = reader_of(last)
    form = None if read is None else read(last, place)
    return None if form is None else (form, None)


# --- libraries that encode categories themselves ---------------------------------------------------------


def _read_encoded(
    classifier: Any, last: Any, place: int, frames: Frames, rows: Array
) -> tuple[TreeForm, Mapping[int, Column]] | None:
    """The form over the library's own columns, and what each follows."""
    from rocerf.models.trees.reading import _hist_boosting, reader_of

    read = reader_of(last)
    if read is None:
        return None
    slices = {feature.name: (feature, part) for feature, part in frames.schema.slices}
    own = [slices[name] for name in classifier.columns]
    if hasattr(last, "calc_leaf_indexes"):
        return _catboost(classifier, last, place, own, rows)
    order = list(range(len(own)))
    if hasattr(last, "_predictors"):
        mask = last.is_categorical_ if last.is_categorical_ is not None else np.zeros(len(own), bool)
        order = [*np.flatnonzero(mask).tolist(), *np.flatnonzero(~np.asarray(mask)).tolist()]
        form = _hist_boosting(last, place, encoded=True)
    else:
        form = read(last, place)
    if form is None:
        return None
    known = _known_categories(last, [feature for feature, _ in own], frames)
    columns = {}
    for column, source in enumerate(order):
        feature, part = own[source]
        at = tuple(range(part.start, part.stop))
        codes = None if not feature.categories else _codes(feature, known.get(source))
        columns[column] = Column(at, codes)
    return form, columns


def _codes(feature: Feature, known: Sequence[Any] | None) -> Array:
    """The number of each category in a library's own list; NaN for missing and unknown ones."""
    listed = list(feature.categories) if known is None else [plain(value) for value in known]
    found = [np.nan if value is None or value not in listed else listed.index(value) for value in feature.categories]
    return np.array(found, dtype=np.float64)


def _known_categories(last: Any, features: list[Feature], frames: Frames) -> dict[int, Sequence[Any]]:
    """The categories that a library wrote down, by column, in its order."""
    if hasattr(last, "_predictors"):
        if last._preprocessor is None:
            return {}
        names = np.flatnonzero(last.is_categorical_).tolist()
        return dict(zip(names, last._preprocessor.named_transformers_["encoder"].categories_, strict=True))
    typed = [place for place, feature in enumerate(features) if frames.dtypes.get(feature.name) == "category"]
    if hasattr(last, "booster_"):
        return dict(zip(typed, last.booster_.pandas_categorical or [], strict=True))
    if hasattr(last, "get_booster"):
        from rocerf.models.trees.libraries import xgboost_trees

        return _of_xgboost(xgboost_trees(last)[0].get("cats", {}).get("enc", []))
    return {}


def _of_xgboost(encoded: list[dict[str, Any]]) -> dict[int, Sequence[Any]]:
    """XGBoost's lists: texts one after the other in bytes, with where each begins; or numbers."""
    found: dict[int, Sequence[Any]] = {}
    for column, own in enumerate(encoded):
        values, ends = own["values"], own.get("offsets")
        if ends:
            found[column] = [bytes(values[a:b]).decode() for a, b in pairwise(ends)]
        elif values:
            found[column] = values
    return found


def _catboost(
    classifier: Any, last: Any, place: int, own: list[tuple[Feature, slice]], rows: Array
) -> tuple[TreeForm, Mapping[int, Column]] | None:
    """CatBoost says by the leaf of a row what it answers to each question of an oblivious tree."""
    from rocerf.models.trees import libraries

    answers, columns = {}, {}
    for column, (feature, part) in enumerate(own):
        at = tuple(range(part.start, part.stop))
        columns[column] = Column(at, np.arange(float(len(at))) if feature.categories else None)
        if feature.categories:
            asked = np.repeat(rows[:1], len(at), axis=0)
            asked[:, list(at)] = np.eye(len(at))
            answers[column] = np.asarray(last.calc_leaf_indexes(classifier._decoded(asked))).reshape(len(at), -1)
    form = libraries.catboost(last, place, answers)
    return None if form is None else (form, columns)


# --- steps before the trees ------------------------------------------------------------------------------


def _by_asking(
    classifier: Any, steps: Any, frames: Frames, rows: Array, wanted: Sequence[int]
) -> dict[int, Column] | None:
    """What each design column follows, by moving each attribute alone around some rows; None where one follows two."""
    asked: list[tuple[Array, int, float]] = []
    for base in rows[:: max(1, len(rows) // BASES)][:BASES]:
        asked.append((base, -1, 0.0))
        for number, (feature, part) in enumerate(frames.schema.slices):
            for value in _tried(feature, part, frames, rows):
                point = base.copy()
                point[part] = np.eye(part.stop - part.start)[int(value)] if feature.categories else value
                asked.append((point, number, value))
    with quietly():
        made: Any = classifier._decoded(np.array([point for point, _, _ in asked]))
        for step in steps:
            made = step.transform(made)
    design = np.asarray(made.toarray() if hasattr(made, "toarray") else made, dtype=np.float64)
    owner, moved_to = np.array([number for _, number, _ in asked]), np.array([to for _, _, to in asked])
    start = np.maximum.accumulate(np.where(owner < 0, np.arange(len(owner)), 0))
    return _columns(design, design[start], owner, moved_to, frames, wanted)


def _tried(feature: Feature, part: slice, frames: Frames, rows: Array) -> list[float]:
    if feature.categories:
        return [float(place) for place in range(len(feature.categories))]
    seen = np.unique(rows[:, part.start])
    known = seen[:: max(1, len(seen) // VALUES)].tolist()
    return [*known, *([frames.fills[feature.name]] if feature.name in frames.fills else [])]


def _columns(
    design: Array, base: Array, owner: Any, value: Array, frames: Frames, wanted: Sequence[int]
) -> dict[int, Column] | None:
    columns: dict[int, Column] = {}
    differs = ~((design == base) | (np.isnan(design) & np.isnan(base)))
    for column in wanted:
        mine = np.unique(owner[differs[:, column]])
        if len(mine) != 1:
            return None
        feature, part = frames.schema.slices[int(mine[0])]
        rows, found = owner == mine[0], design[:, column]
        places = tuple(range(part.start, part.stop))
        if feature.categories:
            codes = [_one(found[rows & (value == place)]) for place in range(len(places))]
            if any(code is None for code in codes):
                return None
            columns[column] = Column(places, np.array(codes, dtype=np.float64))
            continue
        gap = rows & (value == frames.fills.get(feature.name, np.nan))
        if not (found[rows & ~gap] == value[rows & ~gap]).all():
            return None
        filled = _one(found[gap]) if gap.any() else np.nan
        if filled is None:
            return None
        columns[column] = Column(places, gap=filled)
    return columns


def _one(found: Array) -> float | None:
    """The value that all of them are, NaN where all are missing; None where they differ."""
    if np.isnan(found).all():
        return float(np.nan)
    return float(found[0]) if (found == found[0]).all() else None


# --- over schema space -----------------------------------------------------------------------------------


def _over_schema_space(form: TreeForm, columns: Mapping[int, Column], frames: Frames) -> TreeForm:
    """The same trees, asking about columns of schema space."""
    nodes, subsets = form.nodes, list(form.subsets)
    column, subset, missing = nodes.column.copy(), nodes.subset.copy(), nodes.missing_left.copy()
    groups: dict[int, tuple[int, ...]] = {}
    gaps = {frames.columns.index(name): number for name, number in frames.fills.items()}
    for node in np.flatnonzero(nodes.column >= 0):
        own = columns[int(nodes.column[node])]
        column[node] = own.places[0]
        if own.codes is None:
            missing[node] = form.goes_left(np.array([node]), np.array([own.gap]))[0]
            continue
        groups[own.places[0]] = own.places
        left = form.goes_left(np.full(len(own.codes), node), own.codes)
        subset[node] = len(subsets)
        subsets.append(frozenset(np.flatnonzero(left).tolist()))
    moved = Nodes(column, nodes.below, nodes.left, nodes.right, nodes.value, missing, subset)
    return replace(form, nodes=moved, subsets=tuple(subsets), groups=groups, gaps=gaps)
