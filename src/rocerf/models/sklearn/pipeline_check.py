"""Whether preprocessing is the affine map that was found for it, and which columns are to blame if not."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING

import numpy as np
from numpy.typing import NDArray

from rocerf.data.feature import Kind
from rocerf.errors import UnsupportedModelError
from rocerf.models.arithmetic import allowed_error
from rocerf.models.sklearn.pipeline_probe import AffineMap, Probe, close, limits_of
from rocerf.models.sklearn.pipeline_steps import CHUNK, CannotTransformError
from rocerf.types import Array

if TYPE_CHECKING:
    import pandas as pd


#: Random rows that an affine map is held against.
RANDOM_ROWS = 64

#: Random rows in which each column is changed to find the ones to blame.
BLAMED_ROWS = 8

#: Random rows in which each number that is filled in is left out, and as many that lack several.
ROWS_WITH_GAPS = 8

#: How far beyond the training rows random numbers lie, in widths of their range: people may be there.
BEYOND = 0.5


def refuse_what_is_not_affine(probe: Probe, found: AffineMap, frame: pd.DataFrame, X: Array) -> None:
    """Hold the map against all training rows (the user's frame, and as points (n, d)) and random rows.

    Complete rows come first: where those are no affine image, gaps are not the reason, though they show it too.
    """
    gone = frame.isna()
    complete = ~gone.any(axis=1).to_numpy()
    differently = "the training rows come out differently than any sum over their columns"
    if not _same_on(probe, found, frame[complete], X[complete]):
        raise not_affine(_blamed(probe, found), differently)
    _refuse_random_rows(probe, found)
    tangled = [name for name in sorted(found.tangled) if bool(gone[name].any())]
    if tangled:
        raise not_affine(tangled, "a missing value counts as more than one number put in its place")
    # All rows once more: beside complete ones, what is put for a gap is distinguished from rounding (a fill of 0, say).
    if not complete.all() and not _same_on(probe, found, frame, X):
        incomplete = [feature for feature in probe.frames.schema if bool(gone[feature.name].any())]
        numbers = [feature.name for feature in incomplete if feature.kind is not Kind.CATEGORICAL]
        raise not_affine(numbers or [feature.name for feature in incomplete], differently)


def _refuse_random_rows(probe: Probe, found: AffineMap) -> None:
    points = random_points(probe, found, RANDOM_ROWS, np.random.default_rng(0))
    try:
        same = close(_images(probe, points), found, points, probe.tolerance_of(found))
    except CannotTransformError as error:
        raise not_affine(_blamed(probe, found), f"some values make it fail ({error})") from error
    if not same:
        raise not_affine(
            _blamed(probe, found), "rows within and somewhat beyond the training rows' ranges come out differently"
        )


def largest_error(probe: Probe, found: AffineMap, frame: pd.DataFrame, X: Array) -> Array:
    """What to allow for between the preprocessing and the map, over all training rows and random rows; (q,).

    ``frame`` and ``X`` (n, d) are the training rows, as for :func:`refuse_what_is_not_affine`.
    """
    points = random_points(probe, found, RANDOM_ROWS, np.random.default_rng(3))
    error = allowed_error(_images(probe, points), found(points), found.scale(np.vstack([points, X])))
    for start in range(0, len(X), CHUNK):
        part = slice(start, start + CHUNK)
        error = np.maximum(error, allowed_error(probe.steps(frame.iloc[part]), found(X[part]), 0.0 * error))
    return error


def with_checked_fills(probe: Probe, found: AffineMap) -> AffineMap:
    """The map with those fills alone that are put for missing numbers in every row, whatever else it holds or lacks.

    A fill is read off one row. Imputers that look at the other columns (neighbours, regressions) put another number
    in the next one: then none stands for the missing one, and the column is tangled.
    """
    names = sorted(found.fills)
    if not names:
        return found
    rng, tangled = np.random.default_rng(2), set(found.tangled)
    points = random_points(probe, found, ROWS_WITH_GAPS, rng)
    for name in names:
        if not _fills_hold(probe, found, points, [[name]] * len(points)).all():
            tangled.add(name)
    left = [name for name in names if name not in tangled]
    if len(left) > 1:
        several = [rng.choice(left, rng.integers(2, len(left) + 1), replace=False).tolist() for _ in points]
        for row in np.flatnonzero(~_fills_hold(probe, found, points, several)):
            tangled.update(several[row])
    fills = {name: number for name, number in found.fills.items() if name not in tangled}
    return replace(found, fills=fills, tangled=frozenset(tangled))


def _fills_hold(probe: Probe, found: AffineMap, points: Array, gaps: list[list[str]]) -> NDArray[np.bool_]:
    """Whether points (m, d) that lack these numbers come out as with the fills in their place, (m,)."""
    X = points.copy()
    for row, names in enumerate(gaps):
        for name in names:
            X[row, probe.places[name]] = found.fills[name]
    try:
        images = probe.steps(probe.frames.decode(points, people=points, missing=gaps))
    except CannotTransformError:
        return np.zeros(len(points), bool)
    # Relative to what is usual in a column: where 0 is filled in, nothing but rounding would be left of it.
    scale = found.scale(np.vstack([X, probe.ranges.low, probe.ranges.high]))
    good = np.abs(images - found(X)) <= probe.tolerance_of(found) * scale  # false for NaN
    return np.asarray(good.all(axis=1))


def _same_on(probe: Probe, found: AffineMap, frame: pd.DataFrame, X: Array) -> bool:
    for start in range(0, len(X), CHUNK):
        part = slice(start, start + CHUNK)
        if not close(probe.steps(frame.iloc[part]), found, X[part], probe.tolerance_of(found)):
            return False
    return True


def _images(probe: Probe, points: Array) -> Array:
    """What the preprocessing makes of points (m, d), if it is finite; (m, q)."""
    images = probe.images(points)
    if not np.isfinite(images).all():
        raise CannotTransformError("it gives values that are not finite")
    return images


def random_points(probe: Probe, found: AffineMap, count: int, rng: np.random.Generator) -> Array:
    """Points of schema space (count, d): categories that are taken, numbers around the training rows'."""
    points = np.empty((count, len(probe.base)))
    for feature in probe.frames.schema:
        part = probe.places[feature.name]
        if feature.kind is Kind.CATEGORICAL:
            taken = np.flatnonzero(~found.refused[part])
            points[:, part] = np.eye(len(feature.columns))[rng.choice(taken, count)]
            continue
        low, high = probe.ranges.low[part.start], probe.ranges.high[part.start]
        if feature.kind is Kind.BINARY:
            points[:, part.start] = rng.integers(0, 2, count)
            continue
        low, high = (
            min(low, high, feature.lower if np.isfinite(feature.lower) else low),
            max(low, high, feature.upper if np.isfinite(feature.upper) else high),
        )
        smallest, largest = limits_of(probe.frames.dtypes[feature.name])
        beyond = BEYOND * (high - low)
        values = rng.uniform(max(low - beyond, smallest), min(high + beyond, largest), count)
        points[:, part.start] = np.rint(values) if feature.kind is Kind.INTEGER else values
    return found.inside(points)


def _blamed(probe: Probe, found: AffineMap) -> list[str]:
    """Features whose change, somewhere, does not do what the map says."""
    rng = np.random.default_rng(1)
    before, after = (random_points(probe, found, BLAMED_ROWS, rng) for _ in range(2))
    blamed = []
    for name, part in probe.places.items():
        changed = before.copy()
        changed[:, part] = after[:, part]
        try:
            moved = _images(probe, changed) - _images(probe, before)
        except CannotTransformError:
            blamed.append(name)
            continue
        expected = found(changed) - found(before)
        scale = found.scale(np.vstack([before, changed]))
        if not (np.abs(moved - expected).max(axis=0, initial=0.0) <= 2 * probe.tolerance_of(found) * scale).all():
            blamed.append(name)
    # Where some values make it fail, every change does: then only columns whose own values do are to blame.
    return blamed if len(blamed) < len(probe.places) else _failing_alone(probe, found, after) or blamed


def _failing_alone(probe: Probe, found: AffineMap, after: Array) -> list[str]:
    blamed = []
    for name, part in probe.places.items():
        points = np.tile(probe.base, (len(after), 1))
        points[:, part] = after[:, part]
        try:
            same = close(_images(probe, points), found, points, probe.tolerance_of(found))
        except CannotTransformError:
            same = False
        if not same:
            blamed.append(name)
    return blamed


def not_affine(columns: list[str], said: str) -> UnsupportedModelError:
    """The refusal, with what can be done instead."""
    shown = ", ".join(map(repr, columns[:5])) + (", ..." if len(columns) > 5 else "")
    return UnsupportedModelError(
        f"Expected preprocessing that counts each column of the DataFrame by itself (scaling, encoding, bins, "
        f"logarithms, splines, one value for missing ones), got one that does not"
        f"{f' in {shown}' if columns else ''}: {said}. Make the step that joins columns (products, ratios, neighbours, "
        "...) outside the pipeline, so that the DataFrame has its result as a column; or take the pipeline over as it "
        "is, for the promises 'retrained' and 'simulated', with otherwise='estimator'."
    )
