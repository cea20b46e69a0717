"""Rows of Parquet in the user's own columns, texts included, as points of schema space, batch by batch."""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

import numpy as np

from rocerf.data.frames import Frames
from rocerf.types import Array

if TYPE_CHECKING:
    import pandas as pd


@dataclass(frozen=True, eq=False)
class ColumnTypes:
    """The types that columns have as a whole, and what stands for a missing value among Python's own.

    A batch without gaps must not be of another type than one with some.
    """

    dtypes: Mapping[str, Any]
    gaps: Mapping[str, Any] = field(default_factory=dict)

    @classmethod
    def of(cls, frame: pd.DataFrame) -> ColumnTypes:
        """Those of a frame."""
        return cls({name: frame[name].dtype for name in frame.columns})

    def put_on(self, frame: pd.DataFrame) -> pd.DataFrame:
        """The frame with its columns in these types."""
        changed: dict[str, Any] = {}
        for name, wanted in self.dtypes.items():
            if frame[name].dtype != wanted:
                changed[name] = frame[name].astype(wanted)
            if name in self.gaps:
                changed[name] = _with_gap(changed.get(name, frame[name]), self.gaps[name])
        return frame.assign(**changed)


def _with_gap(column: pd.Series[Any], gap: Any) -> pd.Series[Any]:
    """Python's own values, with this one where a value is missing."""
    values = column.to_numpy(dtype=object, copy=True)
    values[column.isna().to_numpy()] = gap
    return type(column)(values, index=column.index, name=column.name, dtype=object)


@dataclass(frozen=True, eq=False)
class ColumnEncoder:
    """From batches of these columns to points (m, d), gaps filled in as ``frames`` says.

    Whoever receives it pickled encodes in the same way.
    """

    frames: Frames
    columns: tuple[str, ...]
    types: ColumnTypes

    @property
    def names(self) -> tuple[str, ...]:
        """The columns of schema space."""
        return self.frames.columns

    def frame(self, batch: Any) -> pd.DataFrame:
        """A batch in the user's columns and types."""
        return self.types.put_on(as_read(batch, self.columns))

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
    try:
        frame: pd.DataFrame = chosen.replace_schema_metadata({b"pandas": json.dumps(types).encode()}).to_pandas()
    # Types of another version, or whose name pandas writes but does not read (dictionaries of Arrow).
    except (TypeError, ValueError):
        frame = chosen.replace_schema_metadata(None).to_pandas()
    return frame
