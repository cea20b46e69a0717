"""Tables that are not pandas' (Polars, PyArrow, what narwhals knows): read at the boundary, given back in their type.

Inside the package there are NumPy and pandas only. A column comes in by its values: whole numbers, truth values, floats
(decimal numbers are read as such, missing ones are NaN), and texts as Python's, missing ones None.
"""

from __future__ import annotations

import sys
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from decimal import Decimal
from typing import TYPE_CHECKING, Any

from rocerf.errors import ColumnError

if TYPE_CHECKING:
    import pandas as pd

#: Modules one of which is loaded where somebody holds a table of theirs: without any, narwhals is not asked.
MAKERS = ("polars", "pyarrow", "modin", "cudf", "narwhals")


def is_frame(X: Any) -> bool:
    """Whether X is a pandas DataFrame, asked without importing pandas."""
    # The whole ancestry: a subclass of DataFrame lives in a module of its own.
    return any(c.__name__ == "DataFrame" and c.__module__.split(".")[0] == "pandas" for c in type(X).__mro__)


@dataclass(frozen=True)
class Origin:
    """What a table was that is not pandas': whose, its columns' types, and the column that people are called by.

    ``types`` are the maker's own: several of Arrow's (short and long texts, dictionaries) are one to narwhals.
    """

    maker: str
    types: Mapping[str, Any]
    id: str | None = None

    def give_back(self, frame: pd.DataFrame) -> Any:
        """A pandas frame as a table of the same kind, its columns in the types they had wherever the values allow it.

        The index becomes the id column, first, if there was one, and is dropped otherwise.
        """
        import narwhals.stable.v2 as nw

        if self.id is not None:
            frame = frame.rename_axis(index=self.id).reset_index()
        made = {str(name): self._series(str(name), frame[name]).to_native() for name in frame.columns}
        return nw.to_native(nw.from_dict(made, backend=self.maker))

    def _series(self, name: str, column: pd.Series[Any]) -> Any:
        import narwhals.stable.v2 as nw

        values = [None if gone else value for value, gone in zip(column.tolist(), column.isna(), strict=True)]
        if name in self.types:
            try:
                series = self._of_type(name, values, self.types[name])
            except Exception:  # each maker has errors of its own for a value that a type cannot hold
                series = None
            # What was checked is what is given back: a type that would round it is not taken.
            if series is not None and _same(series.to_list(), values):
                return series
        return nw.new_series(name, values, backend=self.maker)

    def _of_type(self, name: str, values: list[Any], kind: Any) -> Any:
        """The values as a column of this type of the maker's."""
        import narwhals.stable.v2 as nw

        if self.maker == "pyarrow":
            import pyarrow as pa

            values = _decimals(values) if pa.types.is_decimal(kind) else values
            return nw.from_native(pa.chunked_array([pa.array(values, type=kind)]), series_only=True)
        if self.maker == "polars":
            import polars as pl

            values = _decimals(values) if isinstance(kind, pl.Decimal) else values
            return nw.from_native(pl.Series(name, values, dtype=kind, strict=True), series_only=True)
        return nw.new_series(name, values, kind, backend=self.maker)


def _decimals(values: Sequence[Any]) -> list[Any]:
    """Numbers as decimal ones, by the fewest digits that tell them apart from others."""
    return [None if value is None else Decimal(repr(value)) for value in values]


def _same(found: Sequence[Any], values: Sequence[Any]) -> bool:
    """Whether a column holds just these values."""
    plain = [float(value) if isinstance(value, Decimal) else value for value in found]
    return plain == list(values)


def as_pandas(X: Any) -> Any:
    """A table of another maker as a pandas DataFrame; whatever else, pandas' own included, as it is.

    >>> as_pandas([[1, 2]])
    [[1, 2]]
    """
    return with_origin(X)[0]


def with_origin(X: Any, id: str | None = None) -> tuple[Any, Origin | None]:
    """As :func:`as_pandas`, with what the table was (None for pandas' and for arrays).

    ``id`` names the column that rows are called by: it becomes the index, of a pandas frame too.
    """
    origin = None
    if not is_frame(X):
        table = _narwhal(X)
        if table is not None:
            import pandas as pd

            origin = Origin(table.implementation.value, _own_types(table), id)
            X = pd.DataFrame({name: _values(table[name]) for name in table.columns})
    return (X if id is None else _called_by(X, id)), origin


def _own_types(table: Any) -> dict[str, Any]:
    """The types of a table's columns, by name, as its maker has them."""
    own = table.to_native()
    if table.implementation.value == "pyarrow":
        return dict(zip(own.schema.names, own.schema.types, strict=True))
    return dict(own.schema) if table.implementation.value == "polars" else dict(table.schema)


def _narwhal(X: Any) -> Any | None:
    """X as narwhals sees it, or None if it is no table of those who make them."""
    maker = type(X).__module__.partition(".")[0]
    if maker not in MAKERS or maker not in sys.modules:
        return None
    import narwhals.stable.v2 as nw

    if type(X).__name__ == "LazyFrame":
        raise ColumnError("Expected a table in memory, got a LazyFrame, which is still to be read; pass X.collect().")
    X = X.to_native() if maker == "narwhals" and hasattr(X, "to_native") else X
    table = nw.from_native(X, eager_only=True, pass_through=True)
    return table if isinstance(table, nw.DataFrame) else None


def _values(column: Any) -> Any:
    """The values of a column as pandas takes them."""
    import numpy as np
    import pandas as pd

    dtype = column.dtype
    if dtype.is_float():
        return column.to_numpy()
    if dtype.is_decimal():
        return np.array([np.nan if value is None else float(value) for value in column.to_list()], np.float64)
    if dtype.is_integer() or str(dtype) == "Boolean":
        kind = str(dtype).replace("Boolean", "boolean")
        return pd.array(column.to_list(), dtype=kind) if column.null_count() else column.to_numpy()
    if dtype.is_temporal():
        return column.to_numpy()
    return pd.Series(column.to_list(), dtype=object)


def _called_by(X: Any, id: str) -> Any:
    if not is_frame(X):
        raise ColumnError(
            f"Expected a table with column names, of which {id!r} is the id, got {type(X).__name__}; pass a table, or "
            "leave the id out."
        )
    if id not in X.columns:
        known = ", ".join(map(str, X.columns[:5]))
        raise ColumnError(f"Expected a column {id!r} with the ids, got columns {known}, ...; correct the name.")
    return X.set_index(id)
