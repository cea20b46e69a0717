"""How a CSV file is written: what stands between its cells, decimal commas, codes that begin with a zero.

Nothing here is guessed where two readings are possible: such a file is refused with a sentence.
"""

from __future__ import annotations

import gzip
import re
from collections.abc import Callable, Collection, Iterable
from pathlib import Path
from typing import TYPE_CHECKING, Any

from rocerf.errors import FileFormatError

if TYPE_CHECKING:
    import pandas as pd

#: What may stand between cells instead of commas, as spreadsheets write it where the comma belongs to numbers.
OTHERS = (";", "\t")

#: Reads columns once more as they are written: names to a table of texts.
AsWritten = Callable[[list[str]], "pd.DataFrame"]

_COMMA_NUMBER = re.compile(r"\s*[+-]?([0-9]+|[0-9]{1,3}(\.[0-9]{3})+)(,[0-9]+)?([eE][+-]?[0-9]+)?\s*")
_MAY_BE_THOUSANDS = re.compile(r"\s*[+-]?[1-9][0-9]{0,2}([.,][0-9]{3})+\s*")
_LONG = re.compile(r"\s*[+-]?[0-9]{4,}\s*")
_CODE = re.compile(r"\s*0[0-9]+\s*")
_MAY_BE_CODE = re.compile(rb"(?:^|[,;\t\r\n\" ])0[0-9]")


def content_of(path: Path) -> bytes:
    """What stands in a file, unpacked; refused where it is no text in UTF-8."""
    packed = path.name.lower().endswith(".gz")
    content = gzip.decompress(path.read_bytes()) if packed else path.read_bytes()
    try:
        content.decode("utf-8")
    except UnicodeDecodeError as error:
        line = content.count(b"\n", 0, error.start) + 1
        likely = "UTF-16" if content[:2] in (b"\xff\xfe", b"\xfe\xff") else "WINDOWS-1252"
        if likely != "UTF-16" and b"\x00" in content:
            raise FileFormatError(
                f"Expected a readable table at {path}, got something that is no text (a spreadsheet or an archive?); "
                "export it as CSV in UTF-8."
            ) from None
        raise FileFormatError(
            f"Expected a readable table at {path}, in UTF-8, got bytes that do not decode as that (in line {line}); "
            f"save it as UTF-8 (spreadsheets: 'CSV UTF-8'), or convert it, perhaps with iconv -f {likely} -t UTF-8."
        ) from None
    return content


def separator_of(path: Path, first_line: Iterable[str]) -> str:
    """What stands between cells: a comma, but where the first line has none, and semicolons or tabs instead."""
    if path.name.lower().endswith((".tsv", ".tsv.gz")):
        return "\t"
    cells = list(first_line)
    return next((other for other in OTHERS if len(cells) == 1 and other in cells[0]), ",")


def with_numbers(frame: pd.DataFrame, name: str, again: AsWritten, *, but: Collection[str] = ()) -> pd.DataFrame:
    """Columns of numbers with decimal commas (``2101,26``, ``1.234,50``) as numbers, where cells are not parted by
    commas; the columns ``but`` are left as they are.

    Points and commas in one file are refused, since ``1.234`` could be either number; and so are files in which every
    number with a mark has it before three digits, as ``1,234`` does.
    """
    from pandas.api.types import is_float_dtype

    names = [str(column) for column in frame if str(column) not in but]
    commas = [column for column in names if _has_decimal_commas(frame[column])]
    floats = [column for column in names if is_float_dtype(frame[column].dtype)]
    written = again(floats) if floats else frame.iloc[:, :0]
    points = [column for column in floats if written[column].str.contains(".", regex=False).any()]
    if points and commas:
        raise FileFormatError(
            f"Expected numbers of {name} written in one way, got decimal commas in {commas[0]!r} and points in "
            f"{points[0]!r}; write all of them with points or all with commas."
        )
    marked = {column: _texts(written[column] if points else frame[column]) for column in points or commas}
    if marked and all(map(_perhaps_thousands, marked.values())):
        column, cells = next(iter(marked.items()))
        shown = next(cell for cell in cells if _MAY_BE_THOUSANDS.fullmatch(cell)).strip()
        raise FileFormatError(
            f"Expected numbers of {name} that can be read in one way only, got {shown} in {column!r}, which may have "
            "a decimal mark or one for thousands, and no other number that tells; write the file with commas between "
            "cells and points in numbers, without marks for thousands."
        )
    changed = frame.copy() if commas else frame
    for column in commas:
        changed[column] = frame[column].map(_number, na_action="ignore").astype("float64")
    return changed


def with_codes(frame: pd.DataFrame, content: bytes, again: AsWritten, *, but: str | None) -> pd.DataFrame:
    """Columns of digits some of which begin with a zero (``01067``) as the texts that they are: codes, no amounts."""
    from pandas.api.types import is_bool_dtype, is_numeric_dtype

    if not _MAY_BE_CODE.search(content):
        return frame
    numbers = [
        str(column)
        for column in frame
        if str(column) != but and is_numeric_dtype(frame[column].dtype) and not is_bool_dtype(frame[column].dtype)
    ]
    if not numbers:
        return frame
    written = again(numbers)
    changed = frame.copy()
    for column in numbers:
        if written[column].str.fullmatch(_CODE, na=False).any():
            changed[column] = written[column]
    return changed


def _has_decimal_commas(column: pd.Series[Any]) -> bool:
    """Whether all cells of a column of texts are numbers, and some with a comma."""
    if column.dtype.kind in "biufc":
        return False
    cells = _texts(column)
    return any("," in cell for cell in cells) and all(_COMMA_NUMBER.fullmatch(cell) for cell in cells)


def _perhaps_thousands(cells: list[str]) -> bool:
    """Whether marks in these numbers may be for thousands: in each before three digits, and no long one without."""
    whole, marked = (
        [cell for cell in cells if _has_mark(cell) == with_mark and cell.strip()] for with_mark in (False, True)
    )
    return all(map(_MAY_BE_THOUSANDS.fullmatch, marked)) and not any(map(_LONG.fullmatch, whole))


def _has_mark(cell: str) -> bool:
    return "," in cell or "." in cell


def _texts(column: pd.Series[Any]) -> list[str]:
    return [cell for cell in column.dropna().tolist() if isinstance(cell, str)]


def _number(cell: str) -> float:
    return float(cell.strip().replace(".", "").replace(",", "."))
