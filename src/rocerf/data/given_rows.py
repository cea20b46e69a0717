"""What is given for rows beside their numbers (labels, ids, weights), checked before anything is learned from it."""

from __future__ import annotations

from collections.abc import Hashable, Sequence
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from rocerf.data.columns import as_python_tells_time, first_repeated, not_favourable, plain, some, unmasked
from rocerf.errors import DataError, IdError, LabelError


def frozen(array: NDArray[Any]) -> NDArray[Any]:
    """The array, which nobody writes to from now on."""
    array.flags.writeable = False
    return array


def _as_given(values: Any) -> NDArray[Any]:
    """An array of the values themselves: NumPy alone turns NaN or 1 into text where one value is text."""
    values = unmasked(values)
    array = np.asarray(values)
    if array.dtype.kind in "US" and not isinstance(values, np.ndarray):
        array = np.asarray(values, dtype=object)
    return array


def one_dimensional(values: ArrayLike, n: int, what: str) -> NDArray[Any]:
    """One value for each of n rows."""
    try:
        array = _as_given(values)
    except ValueError as error:
        raise DataError(f"Expected {n} {what}, one for each row, got a ragged list; pass one value a row.") from error
    if array.ndim == 2 and array.shape[1] == 1:
        array = array[:, 0]
    if array.shape != (n,):
        raise DataError(
            f"Expected {n} {what}, one for each row, got shape {array.shape}; pass a sequence as long as X."
        )
    return array


def other_label(labels: NDArray[Any], favourable: Any) -> Any:
    """The label of two that is not the favourable one."""
    import pandas as pd

    if pd.isna(labels).any():
        raise LabelError(
            f"Expected a label for every row, got {int(pd.isna(labels).sum())} missing ones; drop or fill those rows."
        )
    found = pd.unique(pd.Series(labels)).tolist()
    if len(found) != 2:
        raise LabelError(
            f"Expected exactly two classes in the labels, got {len(found)}: {some(found)}; recourse is defined for "
            "accept/refuse decisions, so map the labels to two."
        )
    others = [label for label in found if label != favourable]
    if len(others) != 1:
        raise LabelError(not_favourable(found, favourable))
    return others[0]


def checked_ids(ids: ArrayLike | Sequence[Any], n: int) -> NDArray[Any]:
    """Ids that name n rows, each another."""
    import pandas as pd

    array = as_python_tells_time(one_dimensional(ids, n, "ids"))
    if pd.isna(array).any() or (array.dtype == object and not all(isinstance(one, Hashable) for one in array)):
        raise IdError("Expected a value that names the row for every id, got a missing or compound one; fill it in.")
    if (repeated := first_repeated(array.tolist())) is not None:
        raise IdError(
            f"Expected a unique id for each of {n} rows, got {n - len(set(array.tolist()))} repeated (for example "
            f"{repeated!r}); pass ids=... or reset the DataFrame's index."
        )
    return frozen(array.copy())


def names_of(ids: NDArray[Any]) -> list[Any]:
    """Ids as Python's own values, as a training set keeps them."""
    return list(as_python_tells_time(ids).tolist())


def checked_weights(weights: ArrayLike | None, n: int) -> NDArray[np.float64] | None:
    """Weights of n rows: finite, not negative, not all zero."""
    if weights is None:
        return None
    try:
        array = one_dimensional(weights, n, "sample weights").astype(np.float64)
    except (TypeError, ValueError) as error:
        if isinstance(error, DataError):
            raise
        raise DataError(f"Expected numbers as sample weights, got something else ({error}); convert them.") from error
    if not np.isfinite(array).all() or (array < 0).any() or not (array > 0).any():
        raise DataError(
            f"Expected sample weights that are finite, not negative and not all zero, got values from {array.min()} to "
            f"{array.max()}; correct them or leave them out."
        )
    return frozen(array.copy())


def plain_label(label: Any) -> Any:
    """A label as JSON can hold it."""
    value = plain(label)
    if not isinstance(value, str | int | float | bool):
        raise DataError(f"Expected labels that are text or numbers to save a model, got {label!r}; map them first.")
    return value


def plain_ids(ids: NDArray[Any]) -> NDArray[Any]:
    """Ids as a file can hold them."""
    if ids.dtype != object:
        return ids
    values = ids.tolist()
    for kind in (str, int):
        if all(isinstance(value, kind) for value in values):
            return np.array(values, dtype=np.str_ if kind is str else np.int64)
    raise DataError(
        "Expected row ids that are all text or all whole numbers to save a model, got a mixture; convert them."
    )
