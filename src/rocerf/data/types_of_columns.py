"""Values in the types that the user's pandas columns have, or in the next that holds them as they are."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np

from rocerf.types import Array

if TYPE_CHECKING:
    import pandas as pd


def type_named(dtype: str) -> Any:
    """The type of this name: to pandas ``string[pyarrow]`` names another type than the one of Arrow whose name it is.

    >>> type_named("int8")
    'int8'
    """
    if dtype != "string[pyarrow]":
        return dtype
    import pandas as pd
    import pyarrow as pa

    return pd.ArrowDtype(pa.string())


def in_type(numbers: Array, dtype: str) -> pd.Series[Any]:
    """Numbers, NaN where missing, in this type, or else in the next that holds every one of them as it is."""
    import pandas as pd

    exact = pd.Series(numbers)
    try:
        numeric = pd.api.types.is_numeric_dtype(pd.api.types.pandas_dtype(dtype))
    except (TypeError, ValueError, NotImplementedError):  # not made from its name: Arrow's decimal128(10, 2), say
        numeric = False
    if not numeric:
        return exact
    nullable = dtype[0] in "IUF"  # the user's choice: Int64, UInt8, Float32
    wider = () if dtype.lower().startswith(("bool", "float")) else ("Int64",) if nullable else ("int64", "Int64")
    for wanted in (dtype, able_to_miss(dtype), *wider, "Float64" if nullable else "float64"):
        try:
            with np.errstate(invalid="ignore", over="ignore"):  # too large for the type: seen below
                series = exact.astype(wanted)
            same = series.to_numpy(dtype=np.float64, na_value=np.nan)
        except (TypeError, ValueError, NotImplementedError):
            continue
        if np.array_equal(same, numbers, equal_nan=True):
            return series
    return exact


def able_to_miss(dtype: str) -> str:
    """pandas' type for the same values that can also say "missing"."""
    if dtype == "bool":
        return "boolean"
    whole = dtype.startswith(("int", "uint")) and "[" not in dtype  # Arrow's types can
    return dtype.capitalize().replace("Uint", "UInt") if whole else dtype
