"""Any pipeline as a scikit-learn classifier over schema space, for models that are scored and refitted as they are."""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping
from functools import lru_cache
from typing import TYPE_CHECKING, Any, Self

import numpy as np
from numpy.typing import NDArray
from sklearn.base import BaseEstimator, ClassifierMixin, clone
from sklearn.utils.metaestimators import available_if

from rocerf.data.feature import Feature, Kind
from rocerf.data.frames import Frames
from rocerf.errors import DataError
from rocerf.models.sklearn.blockwise import Kin, Quick
from rocerf.models.sklearn.bulk import in_bulk, remembered
from rocerf.models.sklearn.pipeline_steps import by_halves, quietly, weight_name
from rocerf.types import Array

if TYPE_CHECKING:
    import pandas as pd

    from rocerf.models.sklearn.pipeline_steps import Preprocessing


GOLDEN = 0.6180339887498949


@lru_cache(maxsize=8)
def frames_of(text: str) -> Frames:
    """The frames of a classifier, from their JSON text."""
    return Frames.from_dict(json.loads(text))


def _has(method: str) -> Any:
    return available_if(lambda self: hasattr(getattr(self, "pipeline_", self.pipeline), method))


class SchemaSpaceClassifier(ClassifierMixin, BaseEstimator):  # type: ignore[misc]
    """The user's pipeline, asked and fitted in points of schema space (m, d), which are decoded for it.

    ``frames`` is a JSON text, so that the classifier is made of plain values; ``columns`` are the user's columns in the
    pipeline's order, ``named`` says whether it takes a DataFrame. A number that equals the frames' fill of its column
    is a missing one, and is shown to the pipeline as such (:func:`stand_ins`).
    """

    _quick: Quick | None = None
    _kin: Kin | None = None

    def __init__(self, pipeline: Any, frames: str, columns: tuple[str, ...], named: bool = True) -> None:
        self.pipeline = pipeline
        self.frames = frames
        self.columns = columns
        self.named = named

    @classmethod
    def of(cls, fitted: Any, frames: Frames, steps: Preprocessing) -> Self:
        """Around a pipeline that is fitted already."""
        made = cls(fitted, json.dumps(frames.to_dict()), steps.columns, steps.named)
        made._take(fitted)
        return made

    def _take(self, fitted: Any) -> None:
        self.pipeline_ = fitted
        self.classes_ = fitted.classes_
        self.n_features_in_ = len(frames_of(self.frames).columns)

    def fit(self, X: Any, y: Any, sample_weight: Any = None) -> Self:
        """Fit a clone of the pipeline on the decoded rows."""
        weights = {} if sample_weight is None else {weight_name(self.pipeline)[0]: sample_weight}
        with quietly():
            self._take(clone(self.pipeline).fit(self._decoded(X), y, **weights))
        return self

    def _decoded(self, X: Any) -> pd.DataFrame | NDArray[Any]:
        return self.as_shown(self.own_rows(X))

    def as_shown(self, frame: pd.DataFrame) -> pd.DataFrame | NDArray[Any]:
        """Rows of the user's columns as the pipeline takes them: with their names, or bare."""
        return frame if self.named else frame.to_numpy()

    def own_rows(self, X: Any) -> pd.DataFrame:
        """Points (m, d) in the user's own columns, in the pipeline's order, gaps included."""
        key = (self.frames, self.columns)
        return remembered(X, key, lambda: self._own_rows(np.asarray(X, dtype=np.float64)))

    def _own_rows(self, points: Array) -> pd.DataFrame:
        frames = frames_of(self.frames)
        gone: list[list[str]] = [[] for _ in points]
        for name, number in frames.fills.items():
            for row in np.flatnonzero(points[:, frames.columns.index(name)] == number):
                gone[row].append(name)
        return frames.decode(points, people=points, missing=gone)[list(self.columns)]

    def predict(self, X: Any) -> NDArray[Any]:
        """The pipeline's labels, shape (m,)."""
        with quietly():
            return np.asarray(self.pipeline_.predict(self._decoded(X)))

    @_has("predict_proba")  # type: ignore[untyped-decorator]
    def predict_proba(self, X: Any) -> Array:
        """The pipeline's probabilities, shape (m, 2); NaN for points that it cannot take, having lost a category."""
        with quietly():
            return _asked(self._in_use.predict_proba, self._decoded(X))

    @_has("decision_function")  # type: ignore[untyped-decorator]
    def decision_function(self, X: Any) -> Array:
        """The pipeline's scores, shape (m,); NaN for points that it cannot take, having lost a category."""
        with quietly():
            return _asked(self._in_use.decision_function, self._decoded(X))

    @property
    def _in_use(self) -> Any:
        """The pipeline, or what answers for it where many are asked about the same points."""
        if not in_bulk():
            return self.pipeline_
        if self._quick is None or self._quick.whole is not self.pipeline_:
            self._quick = Quick(self.pipeline_, self._kin)
        return self._quick

    def related(self, kin: Kin) -> None:
        """Say that this is one of several refits, of which only the rows differ."""
        self._kin = kin

    def __getstate__(self) -> dict[str, Any]:
        # What only saves time is not written, and not copied.
        return {name: value for name, value in super().__getstate__().items() if name not in ("_quick", "_kin")}


def stand_ins(X: Array, missing: NDArray[np.bool_], frames: Frames) -> Mapping[str, float]:
    """For each column of the rows (n, d) with missing numbers, one number in its middle that stands for them.

    Points are finite numbers, also those of a pipeline that does more with a missing value than fill it in. So it is
    marked by a number that nobody has: it divides a gap beside the median in the golden ratio, and is not round.
    """
    found = {}
    for column in np.flatnonzero(missing.any(axis=0)):
        feature, known = frames.schema.column_features[column], X[~missing[:, column], column]
        known = np.sort(known[np.isfinite(known)])
        if not len(known):
            raise DataError(
                f"Expected numbers in {feature.name!r} in some of the {len(X)} training rows, got none; leave the "
                "column out and fit the pipeline again."
            )
        found[feature.name] = stand_in(feature, known)
    return found


def stand_in(feature: Feature, known: Array) -> float:
    """A number in the middle of those known (m,), sorted or not, at least one, that is none of them."""
    known = np.sort(known[np.isfinite(known)])
    below, above = (0.0, 1.0) if feature.kind is Kind.BINARY else _gap(known)
    return _within(below, above, known)


def _gap(known: Array) -> tuple[float, float]:
    """Two neighbours among these sorted numbers: the median and the next above it, or else below it.

    Of one number alone: 0 and itself, which is about its size whatever its unit; 0 and 1 where it is 0.
    """
    values, median = np.unique(known), known[(len(known) - 1) // 2]
    if len(values) == 1:
        return 0.0, float(median) or 1.0
    lower = min(int(np.searchsorted(values, median)), len(values) - 2)
    return float(values[lower]), float(values[lower + 1])


def _within(below: float, above: float, known: Array) -> float:
    """A number between the two, and none of those known."""
    number = (1.0 - GOLDEN) * below + GOLDEN * above
    while number in known:  # the two are neighbours among all floating-point numbers
        number = float(np.nextafter(number, np.inf))
    return number


def _asked(method: Callable[[Any], Any], rows: Any) -> Array:
    """What the method says of the rows; NaN for rows that make it raise."""
    nothing = np.full((1, 2) if method.__name__ == "predict_proba" else 1, np.nan)
    return by_halves(lambda part: np.asarray(method(part), dtype=np.float64), rows, nothing, ValueError)
