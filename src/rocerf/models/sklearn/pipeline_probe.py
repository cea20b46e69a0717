"""Preprocessing as an affine map of schema space, found by asking it.

A fitted preprocessing T is asked for the image of one base row, of that row with each category in turn, and with each
number moved. From these follow A and b with ``T(x) = A x + b``, if there are such; whether there are is then held
against all training rows and against random rows (:mod:`rocerf.models.sklearn.pipeline_check`). No kind of transformer
is known by name, so every one that is affine will do.

What a number is filled in with where it is missing follows in the same way: the image of the base row without it lies
on the line of its images. Whether other rows get the same number is asked there, too.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from rocerf.data.feature import Feature, Kind
from rocerf.data.frames import Frames
from rocerf.errors import UnsupportedModelError
from rocerf.models.arithmetic import bits_of
from rocerf.models.design import AffineDesign
from rocerf.models.sklearn.pipeline_steps import CannotTransformError, Preprocessing
from rocerf.types import Array

if TYPE_CHECKING:
    import pandas as pd


#: Largest difference, relative to the size of what is added up, between an affine map and what it stands for.
TOLERANCE = 1e-9

#: The same where the map follows a curve by straight pieces.
CURVED_TOLERANCE = 2e-7

#: The same where the user's columns are numbers of single precision.
NARROW_TOLERANCE = 1e-5


@dataclass(frozen=True, eq=False)
class AffineMap:
    """``T(x) = matrix x + shift``, shapes (q, d) and (q,).

    ``fills`` are the numbers that T puts for missing ones, by column; ``refused`` (d,) marks categories that T cannot
    take; ``tangled`` are columns whose missing values T treats as more than a number.
    """

    matrix: Array
    shift: Array
    fills: Mapping[str, float]
    refused: NDArray[np.bool_]
    tangled: frozenset[str]

    def __call__(self, X: Array) -> Array:
        """Images (m, q) of points (m, d)."""
        return np.asarray(X @ self.matrix.T + self.shift)

    def design(self, *, intercept: bool) -> AffineDesign:
        """The map as a model's design."""
        return AffineDesign(self.matrix, self.shift, intercept)

    def marks(self, columns: Sequence[str]) -> tuple[str, ...]:
        """Names of columns whose fill only marks that the number is missing; here a fill counts as the number."""
        return ()

    @property
    def curved(self) -> bool:
        """Whether the map only comes close to what it stands for."""
        return False

    def inside(self, points: Array) -> Array:
        """Points (m, d) where the map is known: everywhere."""
        return points

    def scale(self, X: Array) -> Array:
        """What is added up in each image column at most, over these points; (q,)."""
        return np.asarray(np.abs(self.matrix) @ np.abs(X).max(axis=0, initial=0.0) + np.abs(self.shift))


@dataclass(frozen=True, eq=False)
class Ranges:
    """What the training rows hold in each column of schema space, each of shape (d,).

    ``low`` and ``high`` are two values of each number, the extremes where they differ; ``counts`` says how many rows
    have each category (1 for numbers).
    """

    low: Array
    high: Array
    middle: Array
    counts: Array

    @classmethod
    def of(cls, X: Array, frames: Frames) -> Ranges:
        """Over rows (n, d) in which missing numbers are NaN."""
        low, high, middle = np.zeros(X.shape[1]), np.ones(X.shape[1]), np.zeros(X.shape[1])
        for j, feature in enumerate(frames.schema.column_features):
            known = X[np.isfinite(X[:, j]), j]
            if feature.kind in (Kind.CONTINUOUS, Kind.INTEGER) and len(known):
                low[j], high[j] = known.min(), known.max()
                if low[j] == high[j]:
                    high[j] += 1.0 if high[j] < limits_of(frames.dtypes[feature.name])[1] else -1.0
            middle[j] = np.median(known) if len(known) else 0.0
        return cls(low, high, middle, cls.counted(X, frames))

    @staticmethod
    def counted(X: Array, frames: Frames) -> Array:
        """Rows that have each category; 1 for numbers."""
        return np.where(_is_category(frames), np.nansum(X, axis=0), 1.0)


@dataclass(frozen=True, eq=False)
class Probe:
    """One fitted preprocessing, the columns it is asked in, and what the training rows hold there."""

    steps: Preprocessing
    frames: Frames
    ranges: Ranges

    @cached_property
    def places(self) -> dict[str, slice]:
        """Where each feature's columns stand in schema space."""
        found, place = {}, 0
        for feature in self.frames.schema:
            found[feature.name] = slice(place, place + len(feature.columns))
            place += len(feature.columns)
        return found

    @cached_property
    def base(self) -> Array:
        """The row that everything is compared with: lowest numbers, most frequent categories; (d,)."""
        row = self.ranges.low.copy()
        for feature in self._categorical():
            part = self.places[feature.name]
            row[part] = np.arange(len(feature.columns)) == self.ranges.counts[part].argmax()
        return row

    def _categorical(self) -> Iterator[Feature]:
        return (feature for feature in self.frames.schema if feature.kind is Kind.CATEGORICAL)

    def _numbers(self) -> Iterator[Feature]:
        return (feature for feature in self.frames.schema if feature.kind is not Kind.CATEGORICAL)

    def images(self, X: Array) -> Array:
        """What the preprocessing makes of points (m, d), in the user's own columns; (m, q)."""
        return self.steps(self.frames.decode(X))

    def found(self, *, fills: bool = True) -> AffineMap:
        """The only affine map that there can be; without ``fills`` it is not asked about missing numbers."""
        start, moved, refused = self._moved()
        low, high = self.ranges.low, self.ranges.high
        matrix, shift = np.zeros((moved.shape[1], moved.shape[0])), start.copy()
        for feature in self._numbers():
            j = self.places[feature.name].start
            matrix[:, j] = (moved[j] - start) / (high[j] - low[j])
            shift -= matrix[:, j] * low[j]
        for feature in self._categorical():
            part = self.places[feature.name]
            known = ~refused[part]
            usual = _usual(moved[part][known])
            matrix[:, part] = np.where(known, (moved[part] - usual).T, 0.0)
            shift += usual - start
        put, tangled = self._missing(start, moved) if fills else ({}, frozenset())
        return AffineMap(matrix, shift, put, refused, tangled)

    def _moved(self) -> tuple[Array, Array, NDArray[np.bool_]]:
        """Image of the base row (q,), of the row moved in each column (d, q), and where there is none (d,)."""
        points = np.tile(self.base, (len(self.base), 1))
        for feature in self._numbers():
            j = self.places[feature.name].start
            points[j, j] = self.ranges.high[j]
        for feature in self._categorical():
            part = self.places[feature.name]
            points[part, part] = np.eye(len(feature.columns))
        refused = np.zeros(len(points), bool)
        try:
            images = self.images(np.vstack([self.base, points]))
        except CannotTransformError:
            # Only a category that no training row has can be the reason: those are asked one by one.
            images = self._one_by_one(points, self.ranges.counts == 0, refused)
        refused |= ~np.isfinite(images[1:]).all(axis=1)
        if not np.isfinite(images[0]).all() or (refused & (self.ranges.counts > 0)).any():
            raise CannotTransformError("it gives values that are not finite")
        return images[0], np.where(refused[:, None], images[0], images[1:]), refused

    def _one_by_one(self, points: Array, unseen: NDArray[np.bool_], refused: NDArray[np.bool_]) -> Array:
        rest = self.images(np.vstack([self.base, points[~unseen]]))
        images = np.tile(rest[0], (len(points) + 1, 1))
        images[1:][~unseen] = rest[1:]
        for place in np.flatnonzero(unseen):
            try:
                images[1 + place] = self.images(points[[place]])[0]
            except CannotTransformError:
                refused[place] = True
        return images

    def _missing(self, start: Array, moved: Array) -> tuple[dict[str, float], frozenset[str]]:
        """What stands for a missing number, by feature, and the features of which no number can."""
        fills: dict[str, float] = {}
        tangled = []
        names = [feature.name for feature in self._numbers()]
        for name, image in zip(names, self.images_without(names), strict=True):
            if image is None:
                continue
            j = self.places[name].start
            line, off = moved[j] - start, image - start
            length = float(line @ line)
            share = float(off @ line) / length if length else 0.0
            gap = np.abs(off - share * line).max(initial=0.0)
            if gap > self.tolerance * (1.0 + np.abs(image).max(initial=0.0)):
                tangled.append(name)
            elif length:
                fills[name] = float(self.ranges.low[j] + share * (self.ranges.high[j] - self.ranges.low[j]))
            else:  # the preprocessing does not look at it
                fills[name] = float(self.ranges.middle[j])
        return fills, frozenset(tangled)

    def images_without(self, names: list[str]) -> list[Array | None]:
        """Image of the base row without each of these numbers; None where there is none."""
        if not names:
            return []
        rows = self.frames.decode(np.tile(self.base, (len(names), 1)))
        for row, name in enumerate(names):
            rows[name] = _without(rows[name], row)
        try:
            images: list[Any] = list(self.steps(rows))
        except CannotTransformError:
            images = [self._image_or_none(rows.iloc[[row]]) for row in range(len(names))]
        return [image if image is not None and np.isfinite(image).all() else None for image in images]

    def _image_or_none(self, row: pd.DataFrame) -> Array | None:
        try:
            image: Array = self.steps(row)[0]
        except CannotTransformError:
            return None
        return image

    @property
    def tolerance(self) -> float:
        """The largest relative difference that counts as none."""
        return NARROW_TOLERANCE if bits_of(*self.frames.dtypes.values()) < 64 else TOLERANCE

    def tolerance_of(self, found: AffineMap) -> float:
        """The largest relative difference from this map that counts as none."""
        return max(self.tolerance, CURVED_TOLERANCE) if found.curved else self.tolerance


def close(images: Array, found: AffineMap, X: Array, tolerance: float) -> bool:
    """Whether the map makes these images (m, q) of the points (m, d), relative to what it adds up."""
    if images.shape != (len(X), len(found.shift)):
        return False
    gap = np.abs(images - found(X)).max(axis=0, initial=0.0)
    return bool((gap <= tolerance * found.scale(X)).all())  # false for NaN


def _is_category(frames: Frames) -> NDArray[np.bool_]:
    return np.array([feature.kind is Kind.CATEGORICAL for feature in frames.schema.column_features], bool)


def limits_of(dtype: str) -> tuple[float, float]:
    """The smallest and largest number that a column of this type can hold."""
    try:
        whole = np.iinfo(np.dtype(dtype.lower()))
    except (TypeError, ValueError):
        return -np.inf, np.inf
    return float(whole.min), float(whole.max)


def _without(column: pd.Series[Any], row: int) -> pd.Series[Any]:
    """The column with one missing value, in a type that can say so."""
    import pandas as pd

    own = column if pd.api.types.is_extension_array_dtype(column.dtype) else column.astype(np.float64)
    return own.mask(np.arange(len(own)) == row)


def _usual(images: Array) -> Array:
    """The most frequent entry of each column of (c, q), the one nearest 0 among equals: then A has the most zeros."""
    counts = (images[:, None, :] == images[None, :, :]).sum(axis=1)
    nearness = 0.5 / (1.0 + np.abs(images))
    return np.asarray(images[(counts + nearness).argmax(axis=0), np.arange(images.shape[1])])


def refuse_unknown_categories(found: AffineMap, frames: Frames) -> None:
    """Every category of the schema must be one that the pipeline takes."""
    if found.refused.any():
        column = frames.columns[int(found.refused.argmax())]
        raise UnsupportedModelError(
            f"Expected a schema whose categories the pipeline was fitted on, got {column!r}, which it cannot take; "
            "leave that category out of the schema, or fit the encoder with handle_unknown='ignore'."
        )
