"""CSV files: read without guesses that change what stands there, written so that no spreadsheet runs a cell.

A spreadsheet takes a cell that begins with ``=``, ``+``, ``-``, ``@`` or a tab for a formula and obeys it. Such texts
are written with an apostrophe before them, as is usual, and so are texts that begin with an apostrophe and then one of
these: one apostrophe taken away gives every text back. Numbers are written as they are.
"""

from __future__ import annotations

import csv
import re
import warnings
from collections.abc import Collection
from io import BytesIO
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from rocerf.cli.csv_dialect import content_of, separator_of, with_codes, with_numbers
from rocerf.data.exact_csv import exact_numbers
from rocerf.errors import ColumnError, FileFormatError
from rocerf.storage.whole_file import write_text

if TYPE_CHECKING:
    import pandas as pd

#: The first columns of answers as we write them; each may be called ``recourse_...`` beside a feature of its name.
OURS = ("person", "status", "reason", "cost", "margin")

# The last four are the full-width forms, which some spreadsheets obey too.
_FORMULA = re.compile("'*[=+\\-@\t\r\n＝＋－＠]")
_NUMBER = re.compile(r"[+-]?([0-9]+\.?[0-9]*|\.[0-9]+)([eE][+-]?[0-9]+)?")


def neutral(cell: Any) -> Any:
    """A text as it can stand in a spreadsheet; numbers, and texts that are one, as they are.

    >>> neutral("=1+1"), neutral("'=1+1"), neutral("-5"), neutral(-5.0), neutral("A-17")
    ("'=1+1", "''=1+1", '-5', -5.0, 'A-17')
    """
    obeyed = isinstance(cell, str) and _FORMULA.match(cell) and not _NUMBER.fullmatch(cell)
    return f"'{cell}" if obeyed else cell


def original(cell: Any) -> Any:
    """The inverse of :func:`neutral`.

    >>> [original(neutral(text)) for text in ("=1+1", "'=1+1", "''@", "-5", "'A")]
    ['=1+1', "'=1+1", "''@", '-5', "'A"]
    """
    return cell[1:] if isinstance(cell, str) and cell.startswith("'") and _FORMULA.match(cell) else cell


def write_csv(frame: pd.DataFrame, path: Path, *, private: bool = False) -> None:
    """The columns of a table, not its index, with texts that no spreadsheet obeys."""
    cells = _each_text(frame, neutral)
    texts = [*cells.columns, *(cell for name in cells for cell in cells[name].array if isinstance(cell, str))]
    # The writer knows no end of a line but its own: a bare carriage return would go on as a row of its own.
    quoting = csv.QUOTE_NONNUMERIC if any("\r" in str(text) for text in texts) else csv.QUOTE_MINIMAL
    write_text(path, cells.to_csv(index=False, quoting=quoting), private=private)


def read_csv(path: Path, id_column: str | None = None, texts: Collection[str] | None = None) -> pd.DataFrame:
    """A table; ids are kept as they are written (007 is not 7, and a person may be called NA).

    Cells may be parted by semicolons or tabs, and numbers then have decimal commas. ``texts`` names the columns that
    are texts whatever stands in them; where nobody knows, a column with codes such as 01067 is one. Answers that we
    wrote are given back without the apostrophes that :func:`write_csv` added.
    """
    import pandas as pd

    content = content_of(path)
    first: dict[str, Any] = {"header": None, "nrows": 1, "dtype": str, "keep_default_na": False}
    separator = separator_of(path, pd.read_csv(BytesIO(content), **first).iloc[0].tolist())
    header = pd.read_csv(BytesIO(content), sep=separator, **first).iloc[0].tolist()
    twice = [name for name in header if header.count(name) > 1]
    if twice:
        raise ColumnError(
            f"Expected every column of {path.name} once, got {twice[0]!r} {header.count(twice[0])} times; rename or "
            "drop the others."
        )
    exact = {id_column: "id {}".format} if id_column in header else None  # or pandas takes NA and null for missing
    kinds = {name: str for name in texts or () if name in header and name != id_column}

    def again(names: list[str]) -> pd.DataFrame:
        return pd.read_csv(BytesIO(content), sep=separator, index_col=False, usecols=names, dtype=str)

    try:
        with warnings.catch_warnings():
            warnings.simplefilter("error", pd.errors.ParserWarning)
            # The first column is a column, and numbers are those that are written, to the last digit.
            options: dict[str, Any] = {"sep": separator, "index_col": False, "dtype": kinds or None, **exact_numbers()}
            frame = pd.read_csv(BytesIO(content), converters=exact, **options)
    except pd.errors.ParserWarning:
        parted = {",": "commas", ";": "semicolons", "\t": "tabs"}[separator]
        raise FileFormatError(
            f"Expected as many cells in each row of {path.name} as names in its first line ({len(header)}), got more; "
            f"look for {parted} in texts without quotation marks."
        ) from None
    if exact is not None:
        frame[id_column] = frame[id_column].str.removeprefix("id ")
    if tuple(name.removeprefix("recourse_") for name in header[: len(OURS)]) == OURS:
        frame = _each_text(frame, original)
    if texts is None:
        frame = with_codes(frame, content, again, but=id_column)
    if separator != ",":
        frame = with_numbers(frame, path.name, again, but={*kinds, *filter(None, [id_column])})
    if exact is not None:
        frame[id_column] = _ids(frame[id_column])
    return frame


def _ids(texts: pd.Series[Any]) -> Any:
    """Ids as numbers where that loses nothing, as pandas reads them, else as they are written; "" is missing."""
    import pandas as pd

    for kind in (int, float):
        try:
            numbers = [kind(text) for text in texts]
            if (
                all(str(number) == text for number, text in zip(numbers, texts, strict=True))
                and np.isfinite(numbers).all()
            ):
                return pd.array(np.array(numbers, dtype={int: np.int64, float: np.float64}[kind]))
        except (ValueError, OverflowError):
            continue
    return texts.mask(texts.str.strip() == "")


def _each_text(frame: pd.DataFrame, change: Any) -> pd.DataFrame:
    """A copy with every text changed, names of columns too."""
    changed = frame.copy()
    for place in range(frame.shape[1]):
        column = frame.iloc[:, place]
        if column.dtype.kind not in "biufcmM":
            changed.isetitem(place, column.astype(object).map(change))
    changed.columns = [change(name) for name in frame.columns]
    return changed
