"""Rows of Parquet in the user's own columns, texts included, as points of schema space, batch by batch."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np

from rocerf.data.frames import Frames
from rocerf.types import Array

if TYPE_CHECKING:
    import pandas as pd


@dataclass(frozen=True, eq=False)
class ColumnEncoder:
    """From batches of these columns to points (m, d), gaps filled in as ``frames`` says.

    ``like`` has the types that the columns have as a whole: a batch without gaps must not be of another type. Whoever
    receives it pickled encodes in the same way.
    """

    frames: Frames
    columns: tuple[str, ...]
    like: pd.DataFrame

    @property
    def names(self) -> tuple[str, ...]:
        """The columns of schema space."""
        return self.frames.columns

    def frame(self, batch: Any) -> pd.DataFrame:
        """A batch in the user's columns and types."""
        return as_frame(batch, self.columns, self.like)

    def encoded(self, frame: pd.DataFrame) -> tuple[Array, list[str]]:
        """Points (m, d), and what is wrong with each row, or ""."""
        X, _, problems = self.frames.encode(frame)
        return np.ascontiguousarray(X), problems


def as_frame(batch: Any, columns: tuple[str, ...], like: pd.DataFrame) -> pd.DataFrame:
    """Columns of a batch with the types of another frame's."""
    frame: pd.DataFrame = batch.select(list(columns)).to_pandas()
    for name in columns:
        wanted = like[name].dtype
        if frame[name].dtype != wanted:
            frame[name] = frame[name].astype(wanted)
    return frame
