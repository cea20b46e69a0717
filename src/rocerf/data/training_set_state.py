"""A training set as plain values and arrays, and back."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

from rocerf.data.columns import plain
from rocerf.data.training_set import TrainingSet
from rocerf.errors import DataError, FileFormatError
from rocerf.storage.state import State

FORMAT = "rocerf-training-set/1"


def state_of(train: TrainingSet) -> State:
    """The rows; models hold this among what else they say of themselves.

    >>> state = state_of(TrainingSet([[1.0], [2.0]], ["no", "yes"], favourable="yes"))
    >>> state.values["favourable"], sorted(state.arrays)
    ('yes', ['X', 'favourable_rows', 'ids'])
    """
    values = {
        "columns": train.columns,
        "from_frame": train.from_frame,
        "favourable": plain_label(train.favourable),
        "unfavourable": plain_label(train.unfavourable),
        "checksum": train.checksum,
    }
    arrays: dict[str, NDArray[Any]] = {"X": train.X, "favourable_rows": train.y, "ids": _plain_ids(train.ids)}
    return State(FORMAT, values, arrays if train.weights is None else {**arrays, "weights": train.weights})


def plain_label(label: Any) -> Any:
    """A label as JSON can hold it."""
    value = plain(label)
    if not isinstance(value, str | int | float | bool):
        raise DataError(f"Expected labels that are text or numbers to save a model, got {label!r}; map them first.")
    return value


def _plain_ids(ids: NDArray[Any]) -> NDArray[Any]:
    if ids.dtype != object:
        return ids
    values = ids.tolist()
    for kind in (str, int):
        if all(isinstance(value, kind) for value in values):
            return np.array(values, dtype=np.str_ if kind is str else np.int64)
    raise DataError(
        "Expected row ids that are all text or all whole numbers to save a model, got a mixture; convert them."
    )


def rows_in(state: State) -> TrainingSet:
    """The rows that a state holds, a training set's or a model's; those that do not match their checksum are refused.

    To be called inside :meth:`~rocerf.storage.state.State.understood`.
    """
    about, arrays = state.values, state.arrays
    X: Any = arrays["X"]
    if about["from_frame"]:
        import pandas as pd

        X = pd.DataFrame(X, columns=list(about["columns"]))
    labels = np.empty(len(X), dtype=object)
    is_good = arrays["favourable_rows"] == 1
    labels[is_good], labels[~is_good] = about["favourable"], about["unfavourable"]
    train = TrainingSet(X, labels, arrays["ids"], favourable=about["favourable"], sample_weight=arrays.get("weights"))
    if train.checksum != about["checksum"]:
        raise FileFormatError("Expected the training rows to match their checksum, they do not: the file was altered.")
    return train
