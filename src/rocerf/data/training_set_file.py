"""A training set as plain arrays and JSON values, for files without pickle."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np
from numpy.typing import NDArray

from rocerf.data.training_set import TrainingSet
from rocerf.errors import DataError, FileFormatError


def pack(train: TrainingSet) -> tuple[dict[str, Any], dict[str, NDArray[Any]]]:
    """What JSON holds of the rows, and what arrays hold.

    >>> about, arrays = pack(TrainingSet([[1.0], [2.0]], ["no", "yes"], favourable="yes"))
    >>> about["favourable"], sorted(arrays)
    ('yes', ['X', 'favourable_rows', 'ids'])
    """
    about = {
        "columns": train.columns,
        "from_frame": train.from_frame,
        "favourable": plain_label(train.favourable),
        "unfavourable": plain_label(train.unfavourable),
        "checksum": train.checksum,
    }
    arrays: dict[str, NDArray[Any]] = {"X": train.X, "favourable_rows": train.y, "ids": _plain_ids(train.ids)}
    if train.weights is not None:
        arrays["weights"] = train.weights
    return about, arrays


def plain_label(label: Any) -> Any:
    """A label as JSON can hold it."""
    value = label.item() if isinstance(label, np.generic) else label
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


def unpack(about: Mapping[str, Any], arrays: Mapping[str, NDArray[Any]]) -> TrainingSet:
    """The inverse of :func:`pack`; rows that do not match their checksum are refused."""
    favourable, unfavourable = about["favourable"], about["unfavourable"]
    X: Any = arrays["X"]
    if about["from_frame"]:
        import pandas as pd

        X = pd.DataFrame(X, columns=list(about["columns"]))
    labels = np.empty(len(arrays["X"]), dtype=object)
    is_good = arrays["favourable_rows"] == 1
    labels[is_good], labels[~is_good] = favourable, unfavourable
    train = TrainingSet(X, labels, arrays["ids"], favourable=favourable, sample_weight=arrays.get("weights"))
    if train.checksum != about["checksum"]:
        raise FileFormatError("Expected the training rows to match their checksum, they do not: the file was altered.")
    return train
