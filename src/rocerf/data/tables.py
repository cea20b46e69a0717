"""What the named data sets share: the files inside the package, the split, the bounds of a schema.

The train/test splits of the published tables follow no seed, so they are kept as row numbers of the source files
(``embedded/splits.npz``, made by ``tools/make_splits.py``), in published order.
"""

from __future__ import annotations

import gzip
import io
from collections.abc import Iterable, Mapping
from dataclasses import replace
from functools import cache
from importlib import resources
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from rocerf.data.column_statistics import extremes
from rocerf.data.documents import yaml_document
from rocerf.data.guess import Guess
from rocerf.data.schema import Feature, FeatureSchema, Kind
from rocerf.data.training_set import TrainingSet

if TYPE_CHECKING:
    import pandas as pd

#: Training rows, test rows and the schema of a data set.
Loaded = tuple[TrainingSet, TrainingSet, FeatureSchema]


def embedded_bytes(name: str) -> bytes:
    """The content of a file that ships with the package, unpacked where it is gzip.

    >>> embedded_bytes("german.data.gz")[:13]
    b'A11 6 A34 A43'
    """
    content = (resources.files("rocerf.data") / "embedded" / name).read_bytes()
    return gzip.decompress(content) if name.endswith(".gz") else content


@cache
def described(name: str) -> Mapping[str, Any]:
    """What a file in ``embedded/`` says of a data set: its source, its notes, its columns.

    >>> described("adult")["sets"]["adult"]["licence"]
    'CC BY 4.0'
    """
    document: Mapping[str, Any] = yaml_document(embedded_bytes(f"{name}.yaml").decode("utf-8"))
    return document


def features_of(name: str) -> tuple[Feature, ...]:
    """The features that the file of a data set lists."""
    return tuple(Feature(**row) for row in described(name)["features"])


def split_rows(name: str) -> tuple[NDArray[np.intp], NDArray[np.intp]]:
    """Row numbers of the training and the test rows of a data set, in published order.

    >>> [len(rows) for rows in split_rows("german")]
    [800, 200]
    """
    with np.load(io.BytesIO(embedded_bytes("splits.npz"))) as splits:
        return splits[f"{name}_train"].astype(np.intp), splits[f"{name}_test"].astype(np.intp)


def labelled_rows(table: pd.DataFrame, label: str) -> TrainingSet:
    """The table as a training set: ``label`` 1 is the favourable one, the index gives the ids.

    >>> import pandas as pd
    >>> labelled_rows(pd.DataFrame({"a": [1, 2], "good": [0, 1]}, index=[7, 9]), "good").ids.tolist()
    [7, 9]
    """
    return TrainingSet(table.drop(columns=label), table[label].to_numpy(), favourable=1)


def bounded_schema(features: Iterable[Feature], train: TrainingSet) -> FeatureSchema:
    """The schema with bounds: 0 and 1 for indicators, the training rows' extremes for the others.

    >>> train = TrainingSet([[3.0, 0], [5.0, 0]], [0, 1])
    >>> schema = bounded_schema([Feature("x0"), Feature("x1", kind=Kind.BINARY)], train)
    >>> [(f.lower, f.upper) for f in schema]
    [(3.0, 5.0), (0.0, 1.0)]
    """
    lowest, highest = extremes(train.X)
    bounded = tuple(
        # An indicator that no training row has is still a yes/no question.
        replace(feature, lower=0.0, upper=1.0)
        if feature.kind is Kind.BINARY
        else replace(feature, lower=float(lowest[j]), upper=float(highest[j]))
        for j, feature in enumerate(features)
    )
    schema = FeatureSchema(bounded, guessed=Guess.of(bounded, fields=("lower", "upper"), rounded=False))
    schema.check_columns(train.columns)
    return schema
