"""COMPAS as the paper's own code loads it: oversampled training rows, and recidivism as the label.

The training file is that of the authors' repository: the published 4,937 training rows, each with ``risk`` 0 four
times, shuffled. The test rows are those of "compas". The label is ``two_year_recid``, and 1, charged again, is what
everybody is helped towards; ``risk`` is a column like the others. What follows from that is the paper's, not advice.
"""

from __future__ import annotations

import hashlib
from pathlib import Path

import numpy as np
import pandas as pd

from rocerf.data import compas
from rocerf.data.authors_code import authors_file, why_missing
from rocerf.data.tables import Loaded, bounded_schema, features_of, labelled_rows
from rocerf.errors import DatasetUnavailableError, FileFormatError

LABEL = "two_year_recid"
#: Where the training file lies in a folder of its own and in a copy of the authors' repository.
TRAIN_NAMES = ("compas-train-oversampled.csv", "Data_Sets/COMPAS/compas-train.csv")
#: SHA-256 of its rows, in order, as little-endian 32-bit integers.
_ROWS_SHA256 = "ab293283eacc06d438ef2555fe5f623c39818aa70939d2c373954b71954ce6cc"


def load(name: str = "compas-as-published", path: Path | None = None) -> Loaded:
    """Training rows, test rows whose ids count on after them, and a schema that leaves everything free.

    With the files at hand (they are not shipped, so this is no doctest)::

        train, test, schema = load()
        len(train), len(test)  # (7682, 1235)
    """
    file = authors_file(*TRAIN_NAMES)
    if file is None:
        raise DatasetUnavailableError(why_missing(f"the training table of COMPAS ({TRAIN_NAMES[0]})"))
    train = compas.read_table(file)
    if rows_digest(train) != _ROWS_SHA256:
        raise FileFormatError(
            f"Expected the authors' 7682 oversampled rows in {file}, got {len(train)} rows that are others or in "
            f"another order; use an unchanged {TRAIN_NAMES[0]}."
        )
    _, rest, _ = compas.load("compas", None)
    test = pd.DataFrame(rest.X, columns=list(rest.columns)).astype(np.int64)
    test[compas.LABEL] = rest.y.astype(np.int64)
    test.index = test.index + len(train)
    known = labelled_rows(train, LABEL)
    features = features_of("compas_as_published")
    return known, labelled_rows(test[list(train.columns)], LABEL), bounded_schema(features, known)


def rows_digest(table: pd.DataFrame) -> str:
    """SHA-256 of the rows in their order: networks are trained on them in that order."""
    return hashlib.sha256(np.ascontiguousarray(table.to_numpy().astype("<i4")).tobytes()).hexdigest()
