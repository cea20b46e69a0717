"""Rows of Parquet in the user's own columns, texts included, as points of schema space, batch by batch."""

from __future__ import annotations

import json
from collections.abc import Mapping
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


def as_read(rows: Any, columns: tuple[str, ...]) -> pd.DataFrame:
    """Columns of a batch or a table in the types that ``pandas.read_parquet`` gives them: the files may name these.

    A nullable boolean column, say, must not come out as Python's True, False and None: an encoder that was fitted on
    ``pd.NA`` takes None for something else. What the files say of an index is left out, as every column is a column.
    """
    chosen = rows.select(list(columns))
    said = json.loads((rows.schema.metadata or {}).get(b"pandas", b"{}"))
    types = {"columns": said.get("columns", []), "index_columns": [], "column_indexes": []}
    frame: pd.DataFrame = chosen.replace_schema_metadata({b"pandas": json.dumps(types).encode()}).to_pandas()
    return frame


def as_frame(batch: Any, columns: tuple[str, ...], like: pd.DataFrame) -> pd.DataFrame:
    """Columns of a batch with the types of another frame's."""
    return in_types(as_read(batch, columns), {name: like[name].dtype for name in columns})


def in_types(frame: pd.DataFrame, types: Mapping[str, Any]) -> pd.DataFrame:
    """The frame with columns of these types; what is missing among Python's own values is None."""
    changed = {name: frame[name].astype(wanted) for name, wanted in types.items() if frame[name].dtype != wanted}
    nones = {name: column.where(column.notna(), None) for name, column in changed.items() if column.dtype == object}
    return frame.assign(**changed | nones)
