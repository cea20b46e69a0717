"""Turning what users hand over (arrays, lists, DataFrames) into one float64 matrix."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Sequence
from numbers import Integral, Real
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from rocerf.data.foreign import as_pandas, is_frame
from rocerf.errors import ColumnError, DataError

if TYPE_CHECKING:
    import pandas as pd


def default_columns(d: int) -> tuple[str, ...]:
    """Names for columns that came without any: x0, x1, ..."""
    return tuple(f"x{j}" for j in range(d))


def plain(value: Any) -> Any:
    """A single value as Python's own, where it is NumPy's."""
    return value.item() if isinstance(value, np.generic) else value


def as_python_tells_time(values: NDArray[Any]) -> NDArray[Any]:
    """Times in nanoseconds, for which NumPy's ``tolist`` gives bare numbers, in microseconds, for which it gives times;
    as pandas' own where that would lose something. All else as it is.

    >>> as_python_tells_time(np.array(["2020-01-01"], "datetime64[ns]")).tolist()
    [datetime.datetime(2020, 1, 1, 0, 0)]
    """
    if values.dtype.kind not in "mM" or np.datetime_data(values.dtype)[0] != "ns":
        return values
    import pandas as pd

    coarser = values.astype(f"{values.dtype.kind}8[us]")
    return coarser if (coarser == values).all() else pd.Index(values).astype(object).to_numpy()


def in_words(category: Any) -> str:
    """A category as people read it; None is a missing one."""
    return "missing" if category is None else str(category)


def first_repeated(names: Iterable[Any]) -> Any | None:
    """The first of these that is there more than once, if any.

    >>> first_repeated(["a", "b", "b", "a"])
    'a'
    """
    return next((name for name, count in Counter(names).items() if count > 1), None)


def not_favourable(found: Sequence[Any], favourable: Any) -> str:
    """What to say where the favourable label is none of the two found; 1 is what nobody may have asked for.

    >>> not_favourable(["repaid", "default"], 1)
    "Expected the favourable label to be one of 'repaid' and 'default', got 1, which is meant where none is named; name it with favourable=..."
    """  # noqa: E501
    unsaid = ", which is meant where none is named" if isinstance(favourable, int) and favourable == 1 else ""
    return (
        f"Expected the favourable label to be one of {found[0]!r} and {found[1]!r}, got {favourable!r}{unsaid}; name "
        "it with favourable=..."
    )


def some(values: Sequence[Any]) -> str:
    """The first five of these, for a message.

    >>> some(["a", "b"]), some(range(9))
    ("'a', 'b'", '0, 1, 2, 3, 4, ...')
    """
    return ", ".join(map(repr, values[:5])) + (", ..." if len(values) > 5 else "")


def is_number(value: Any, *, whole: bool = False) -> bool:
    """Whether an option is one real number (a whole one), Python's or NumPy's; True and False are none.

    >>> is_number(0.5), is_number("0.5"), is_number(0.5, whole=True), is_number(np.int64(3), whole=True)
    (True, False, False, True)
    """
    return isinstance(value, Integral if whole else Real) and not isinstance(value, bool)


def unmasked(values: Any) -> Any:
    """Values of NumPy's masked arrays with the masked ones missing; whatever else as it is.

    NumPy alone hands out the number under the mask, which nobody meant to give.

    >>> unmasked(np.ma.masked_array([1, 2], mask=[False, True])).tolist()
    [1.0, nan]
    """
    if isinstance(values, list | tuple) and any(isinstance(part, np.ma.MaskedArray) for part in values):
        values = np.ma.array(values)
    if not isinstance(values, np.ma.MaskedArray):
        return values
    hidden = np.ma.getmaskarray(values)
    if not hidden.any():
        return values.data
    if values.dtype.kind in "biuf":
        return np.ma.filled(values.astype(np.float64), np.nan)
    return np.where(hidden, None, np.asarray(values.data, dtype=object))  # type: ignore[call-overload]


def complete(X: NDArray[np.float64], columns: tuple[str, ...], *, what: str) -> NDArray[np.float64]:
    """The points (P, d) themselves, if every one is of finite numbers, or of none at all.

    A row of NaN throughout is how an answer that was not given stands among those that were.
    """
    finite = np.isfinite(X)
    bad = np.argwhere(~finite & ~np.isnan(X).all(axis=1, keepdims=True))
    if len(bad):
        row, column = bad[0]
        raise DataError(
            f"Expected finite numbers in {what}, got {X[row, column]} in {columns[column]!r} of row {row} "
            f"({len(np.unique(bad[:, 0]))} such rows in all); fill them in, or leave these rows out."
        )
    return X


def refuse_no_numbers(name: str, column: pd.Series[Any]) -> None:
    """Refuse columns whose type would pass for numbers and is none: dates, durations, complex numbers.

    A date, say, would be read as its nanoseconds since 1970.
    """
    import pandas as pd

    dtype = column.dtype
    # An Arrow type says by its kind ("M", "m") what pandas' own say by their class.
    kind = getattr(dtype, "kind", "O")
    if kind in "mMc" or isinstance(dtype, pd.DatetimeTZDtype | pd.PeriodDtype | pd.IntervalDtype):
        raise ColumnError(
            f"Expected numbers or texts in {name!r}, got {dtype}; make it numbers (a duration in days, an age in "
            "years, a real part), or leave the column out."
        )


def without_decimals(column: pd.Series[Any]) -> pd.Series[Any]:
    """A column of Python's decimal numbers, as databases give them, as floats; any other as it is.

    >>> import pandas as pd
    >>> from decimal import Decimal
    >>> without_decimals(pd.Series([Decimal("17.63"), None])).tolist()
    [17.63, nan]
    """
    import pandas as pd

    decimals = column.dtype == object and pd.api.types.infer_dtype(column, skipna=True) == "decimal"
    return column.astype("float64") if decimals else column


def numeric_matrix(
    X: ArrayLike | pd.DataFrame, *, what: str, allow_missing: bool = False
) -> tuple[NDArray[np.float64], tuple[str, ...] | None, NDArray[Any] | None]:
    """A read-only float64 matrix of shape (n, d), with column names and index if X is a DataFrame.

    With ``allow_missing`` NaN and infinities pass (the caller answers row by row).
    """
    columns: tuple[str, ...] | None = None
    index: NDArray[Any] | None = None
    X = as_pandas(X)
    if is_frame(X):
        columns, index = _frame_names(X, what)
        matrix = _from_frame(X, what)
    else:
        matrix = _from_array(X, what)
    if matrix.shape[1] == 0:
        raise ColumnError(f"Expected at least one column in {what}, got none; pass the feature columns.")
    if not allow_missing and not np.isfinite(matrix).all():
        row, column = np.argwhere(~np.isfinite(matrix))[0]
        name = columns[column] if columns else f"number {column}"
        bad = int((~np.isfinite(matrix)).sum())
        raise DataError(
            f"Expected finite numbers in {what}, got {matrix[row, column]} in row {row}, column {name} ({bad} such "
            "cells in all); fill or drop them first."
        )
    matrix.flags.writeable = False
    return matrix, columns, index


def people_matrix(
    X: ArrayLike | pd.DataFrame, columns: tuple[str, ...], *, named: bool
) -> tuple[NDArray[np.float64], NDArray[Any] | None]:
    """The people's values as (P, d) in the model's column order, with the index of a DataFrame.

    A DataFrame is matched by name: its columns may stand in another order, and further columns are left aside. Where
    the model knows no names (``named`` false), position counts. Missing values pass through as NaN: the row is answered
    by a reason, the batch goes on.
    """
    X = as_pandas(X)
    if is_frame(X) and named:
        frame: Any = X
        absent = [name for name in columns if name not in set(map(str, frame.columns))]
        if absent:
            raise ColumnError(
                f"Expected the people to have the model's {len(columns)} columns, got none named {some(absent)}; add "
                "or rename the columns."
            )
        frame = frame.set_axis([str(name) for name in frame.columns], axis=1)
        repeated = [name for name in columns if int((frame.columns == name).sum()) > 1]
        if repeated:
            raise ColumnError(f"Expected each column once, got {repeated[0]!r} several times; drop the copies.")
        X = frame[list(columns)]
    matrix, _, index = numeric_matrix(X, what="the people", allow_missing=True)
    if matrix.shape[1] != len(columns):
        raise ColumnError(
            f"Expected people with {len(columns)} columns as in the training rows, got {matrix.shape[1]}; pass the "
            "same columns in the same order."
        )
    return matrix, index


def _frame_names(frame: Any, what: str) -> tuple[tuple[str, ...], NDArray[Any]]:
    names = tuple(str(name) for name in frame.columns)
    if (repeated := first_repeated(names)) is not None:
        raise ColumnError(f"Expected distinct column names in {what}, got {repeated!r} twice; rename one.")
    return names, np.asarray(frame.index)


def _from_frame(frame: Any, what: str) -> NDArray[np.float64]:
    import pandas as pd

    for name, dtype in zip(frame.columns, frame.dtypes, strict=True):
        real = pd.api.types.is_numeric_dtype(dtype) and not pd.api.types.is_complex_dtype(dtype)
        if not (real or pd.api.types.is_bool_dtype(dtype)):
            example = next((v for v in frame[name] if v is not None), None)
            raise ColumnError(
                f"Expected numbers in every column of {what}, got {dtype} in column {name!r} (for example "
                f"{example!r}); encode it as numbers (one 0/1 column for each category) or leave it out."
            )
    return np.array(frame.to_numpy(dtype=np.float64, na_value=np.nan), order="C")


def _from_array(X: ArrayLike, what: str) -> NDArray[np.float64]:
    try:
        given = np.asarray(unmasked(X))
        # NumPy would turn text such as "1", dates and complex numbers into floats without a word.
        if given.dtype.kind not in "biufO":
            raise TypeError(f"values of type {given.dtype}")
        matrix = np.array(given, dtype=np.float64, order="C")
    except (TypeError, ValueError, OverflowError) as error:
        remedy = "pass its .points" if hasattr(X, "points") else "convert it to numbers first"
        raise ColumnError(
            f"Expected a table of numbers for {what}, got something that does not convert ({error}); {remedy}."
        ) from error
    if matrix.ndim != 2:
        raise ColumnError(
            f"Expected a 2-D table (rows x columns) for {what}, got {matrix.ndim} dimension(s) of shape "
            f"{matrix.shape}; for one person pass X.reshape(1, -1)."
        )
    return matrix
