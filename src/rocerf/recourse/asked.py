"""The people of a request: their values in schema space, and what is needed to answer in their own form."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
from numpy.typing import NDArray

from rocerf.data.columns import people_matrix
from rocerf.data.foreign import Origin, is_frame, with_origin
from rocerf.data.frames import Frames
from rocerf.errors import IdError
from rocerf.models.model import Refittable
from rocerf.types import Array


@dataclass(frozen=True, eq=False)
class Asked:
    """People (P, d) in schema space with the index and column order they came in.

    ``problems`` says for each person what makes their values unusable, or "". ``frames`` is there if they came in the
    columns of a pipeline, ``missing`` then names the features each came without. ``origin`` is what their table was, if
    not one of pandas.
    """

    matrix: Array
    problems: tuple[str, ...]
    index: NDArray[Any] | None = None
    frame_columns: tuple[str, ...] | None = None
    frames: Frames | None = None
    missing: tuple[tuple[str, ...], ...] | None = None
    origin: Origin | None = None

    @classmethod
    def of(cls, X: Any, model: Refittable, id: str | None = None) -> Asked:
        """From what the user handed over: a table of numbers, or a DataFrame in the model's own columns.

        ``id`` names the column that people are called by, where it is not the index.
        """
        X, origin = with_origin(X, id)
        return replace(cls._of(X, model), origin=origin)

    @classmethod
    def _of(cls, X: Any, model: Refittable) -> Asked:
        train = model.train
        frames = model.frames
        if frames is not None and frames.are_of(X):
            _refuse_nameless(X)
            matrix, names, problems = frames.encode(X)
            order = tuple(str(name) for name in X.columns if str(name) in frames.schema.names)
            return cls(matrix, tuple(problems), names, order, frames, frames.missing(X))
        matrix, index = people_matrix(X, train.columns, named=train.from_frame)
        given = is_frame(X)
        if given:
            _refuse_nameless(X)
        named = given and train.from_frame
        columns = tuple(str(name) for name in X.columns if str(name) in train.columns) if named else None
        return cls(matrix, ("",) * len(matrix), index if given else None, columns)

    def judged(self, model: Refittable, points: Array, places: NDArray[np.intp]) -> Array:
        """What :func:`judged` says of points (m, d) for the people at these places, (m,)."""
        return judged(model, points, self.matrix[places], self.missing_of(places))

    def missing_of(self, places: NDArray[np.intp]) -> list[tuple[str, ...]] | None:
        """The features that the people at these places came without."""
        return None if self.missing is None else [self.missing[place] for place in places]


def _refuse_nameless(people: Any) -> None:
    """Answers and letters are addressed by the index of a DataFrame."""
    if people.index.nlevels > 1:
        raise IdError(
            f"Expected an index of one level, which people are called by, got {people.index.nlevels} levels; choose "
            "one with reset_index."
        )
    nameless = np.flatnonzero(people.index.isna())
    if len(nameless):
        raise IdError(
            f"Expected a name in the index for each of {len(people)} people, got none for row {nameless[0]} (from 0); "
            "fill it in, or leave the index out with reset_index(drop=True)."
        )


def handed_out(
    model: Refittable, points: Array, people: Array | None = None, missing: Sequence[Sequence[str]] | None = None
) -> Any:
    """Points (P, d) as the model is asked about them: for a pipeline in the user's own columns, else as they are.

    In those columns ``people`` (P, d) who came without the features ``missing`` and do not change them are without them
    again, and it is the pipeline that fills them in.
    """
    return points if model.frames is None else model.frames.decode(points, people=people, missing=missing)


def judged(
    model: Refittable, points: Array, people: Array | None = None, missing: Sequence[Sequence[str]] | None = None
) -> Array:
    """Scores (P,) by the model people are judged by today, asked about exactly the rows that are handed out."""
    return model.deployed_score(handed_out(model, points, people, missing))


def leaving(
    frames: Frames | None, points: Array, people: Array, missing: Sequence[Sequence[str]] | None = None
) -> Array:
    """Points (P, d) as they are once handed out in the user's own columns and types, ``frames``, and read back.

    A whole number that a solver missed by its rounding is whole there. Without frames they leave as they are.
    """
    given = np.isfinite(points).all(axis=1)
    if frames is None or not given.any():
        return points
    known = None if missing is None else [missing[int(place)] for place in np.flatnonzero(given)]
    back, _, _ = frames.encode(frames.decode(points[given], people=people[given], missing=known))
    handed_out = points.copy()
    handed_out[given] = back
    return handed_out
