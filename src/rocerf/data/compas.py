"""COMPAS: ProPublica's two-year table after ProPublica's filter, 6,172 people in 7 columns.

The table may not be passed on, so nothing of it ships here. What ships is the published split, as positions in the
lexicographically sorted table: it fits any order of the user's rows and each of the three forms the table is met in.
What the columns mean is in ``embedded/compas.yaml``.
"""

from __future__ import annotations

import gzip
import hashlib
import io
import zlib
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from rocerf.data.compas_source import RAW_NAME, TEST_NAME, TRAIN_NAME, locate
from rocerf.data.tables import Loaded, bounded_schema, described, features_of, labelled_rows, split_rows
from rocerf.errors import FileFormatError

if TYPE_CHECKING:
    import pandas as pd

LABEL = "risk"
ROWS = 6172
# SHA-256 of the sorted table as little-endian 32-bit integers: which 6,172 rows the split is about.
_TABLE_SHA256 = "9d12aa372c70ca1dea8e08e0921f1e5448c781f7626395415e93dedafb858334"

FINAL_COLUMNS = (*(feature.name for feature in features_of("compas")), LABEL)

_RAW_COLUMNS = tuple(described("compas")["raw_columns"])


def load(name: str = "compas", path: str | Path | None = None) -> Loaded:
    """Training and test rows, whose ids are row numbers in the user's file, and the schema of the 7 columns.

    ``path`` is read as :func:`rocerf.data.datasets.load_dataset` describes. Where the table comes as the two published
    files they are taken as they are, test ids counting on after train.

    With the file at hand (it may not be shipped, so this is no doctest)::

        train, test, schema = load()
        len(train), len(test)  # (4937, 1235)
    """
    files = locate(path)
    tables = [read_table(file) for file in files]
    if len(tables) == 2:
        train, test = tables
        test.index = test.index + len(train)
        _refuse_other_rows(np.concatenate([train.to_numpy(), test.to_numpy()]), f"{files[0]} and {files[1]} together")
    else:
        (table,) = tables
        _refuse_other_rows(table.to_numpy(), str(files[0]))
        order = sorted_order(table.to_numpy())
        train, test = (table.iloc[order[positions]] for positions in split_rows("compas"))
    known = labelled_rows(train, LABEL)
    return known, labelled_rows(test, LABEL), bounded_schema(features_of("compas"), known)


def sorted_order(table: NDArray[Any]) -> NDArray[np.intp]:
    """Row numbers that put the rows in lexicographic order, the first column counting most.

    >>> sorted_order(np.array([[2, 1], [1, 9], [1, 3]])).tolist()
    [2, 1, 0]
    """
    return np.lexsort(table.T[::-1])


def table_digest(table: NDArray[Any]) -> str:
    """SHA-256 of the sorted rows: the same for every order of the same rows.

    >>> table_digest(np.array([[1, 2], [3, 4]])) == table_digest(np.array([[3, 4], [1, 2]]))
    True
    """
    return hashlib.sha256(np.ascontiguousarray(table[sorted_order(table)].astype("<i4")).tobytes()).hexdigest()


def read_table(file: Path) -> pd.DataFrame:
    """A file in any of the three forms as the 8 final columns; the index is the file's row number.

    ``read_table(Path("compas-scores-two-years.csv")).shape`` is (6172, 8).
    """
    frame = _read_csv(file)
    if LABEL in frame.columns or "length_of_stay" in frame.columns:
        _refuse_missing(frame, FINAL_COLUMNS, file)
        return _whole_numbers(frame[list(FINAL_COLUMNS)], file)
    _refuse_missing(frame, _RAW_COLUMNS, file)
    return _filtered(frame, file)


def _read_csv(file: Path) -> pd.DataFrame:
    import pandas as pd

    try:
        content = file.read_bytes()
        if content.startswith(b"\x1f\x8b"):
            content = gzip.decompress(content)
        # Everything as text: what a column should hold is decided below, with a message.
        return pd.read_csv(io.BytesIO(content), dtype=str)
    except (OSError, EOFError, zlib.error, ValueError) as error:
        raise FileFormatError(
            f"Expected a CSV table, plain or gzip, in {file}, got something unreadable ({error}); use an unchanged "
            f"{RAW_NAME}."
        ) from error


def _filtered(frame: pd.DataFrame, file: Path) -> pd.DataFrame:
    """ProPublica's own filter, then the 8 final columns."""
    import pandas as pd

    gap = pd.to_numeric(frame["days_b_screening_arrest"], errors="coerce")
    kept = frame[
        (gap.abs() <= 30)
        & (frame["is_recid"] != "-1")
        & frame["c_charge_degree"].isin(("F", "M"))
        & frame["score_text"].isin(("Low", "Medium", "High"))
    ]
    moments = [pd.to_datetime(kept[name], errors="coerce", format="ISO8601") for name in ("c_jail_in", "c_jail_out")]
    final = pd.DataFrame(
        {
            "age": kept["age"],
            "two_year_recid": kept["two_year_recid"],
            "priors_count": kept["priors_count"],
            # Whole days rounded down, so a release stamped before the arrest gives -1, as published.
            "length_of_stay": (moments[1] - moments[0]).dt.days,
            "c_charge_degree_F": kept["c_charge_degree"] == "F",
            "sex_Female": kept["sex"] == "Female",
            "race": kept["race"] == "African-American",
            LABEL: kept["score_text"] != "High",
        }
    )
    if len(final) != ROWS:
        raise FileFormatError(
            f"Expected {ROWS} rows after ProPublica's filter in {file}, got {len(final)} of {len(frame)}; use an "
            f"unchanged {RAW_NAME}."
        )
    return _whole_numbers(final, file)


def _whole_numbers(frame: pd.DataFrame, file: Path) -> pd.DataFrame:
    import pandas as pd

    numbers = frame.apply(pd.to_numeric, errors="coerce")
    values = numbers.to_numpy(dtype=np.float64)
    # The digest is taken of 32-bit integers: what does not fit must not wrap around into a match.
    bad = ~((values == np.floor(values)) & (np.abs(values) < 2**31))
    if bad.any():
        row, column = np.argwhere(bad)[0]
        raise FileFormatError(
            f"Expected whole numbers in column {frame.columns[column]!r} of {file}, got {frame.iat[row, column]!r} in "
            f"row {frame.index[row]}; use an unchanged file."
        )
    return pd.DataFrame(values.astype(np.int64), columns=frame.columns, index=frame.index)


def _refuse_missing(frame: pd.DataFrame, columns: tuple[str, ...], file: Path) -> None:
    absent = [name for name in columns if name not in frame.columns]
    if absent:
        raise FileFormatError(
            f"Expected the columns {', '.join(columns)} in {file}, got none named {', '.join(absent)}; use {RAW_NAME} "
            f"with its 53 columns, or without the identifying ones (46), or the 8 columns {', '.join(FINAL_COLUMNS)}."
        )


def _refuse_other_rows(table: NDArray[np.int64], where: str) -> None:
    if len(table) != ROWS:
        raise FileFormatError(
            f"Expected {ROWS} rows in {where}, got {len(table)}; pass the whole table in one file, or the pair "
            f"{TRAIN_NAME} and {TEST_NAME} side by side."
        )
    if table_digest(table) != _TABLE_SHA256:
        raise FileFormatError(
            f"Expected ProPublica's {ROWS} filtered rows in {where}, got as many rows with other values; use an "
            f"unchanged {RAW_NAME}."
        )
