"""Tables on disk in any of their forms: CSV (also gzipped), Parquet, JSON; types are kept where the form has them."""

from __future__ import annotations

import json
import zlib
from collections.abc import Collection, Mapping
from io import BytesIO
from pathlib import Path
from typing import TYPE_CHECKING, Any

from rocerf.cli.csv_files import read_csv, write_csv
from rocerf.cli.parquet_files import is_parquet, parquet_frame
from rocerf.data.documents import json_document, read_text
from rocerf.errors import FileFormatError, MissingExtraError, RocerfError
from rocerf.storage.whole_file import write_bytes, write_text

if TYPE_CHECKING:
    import pandas as pd

#: How the files end that a command can write a table to.
WRITTEN = (".csv", ".json", ".parquet")


def read_table(path: Path, id_column: str | None = None, texts: Collection[str] | None = None) -> pd.DataFrame:
    """A CSV (also gzipped), Parquet or JSON file as a DataFrame; ids in a CSV are kept as they are written, and
    ``texts``, where they are known, are texts there, too."""
    if not path.exists():
        raise FileFormatError(f"Expected a file at {path}, found none; check the path.")
    name = path.name.lower()
    try:
        if is_parquet(path):
            return parquet_frame(path)
        if name.endswith((".csv", ".csv.gz", ".tsv", ".tsv.gz")):
            return read_csv(path, id_column, texts)
        if name.endswith((".json", ".jsonl")):
            return _json_frame(path)
    except RocerfError:
        raise
    except ImportError:
        raise MissingExtraError("pyarrow", "scale", "reading Parquet files") from None
    except (ValueError, OSError, EOFError, zlib.error) as error:
        said = str(error).strip().rstrip(".")
        raise FileFormatError(f"Expected a readable table at {path}, got an error: {said}; check the file.") from error
    raise FileFormatError(
        f"Expected a .csv, .csv.gz, .parquet, .tsv, .json or .jsonl file, got {path.name}; convert it first."
    )


def _json_frame(path: Path) -> pd.DataFrame:
    """A list of rows, one object each, or one row a line (.jsonl); texts stay texts and numbers numbers."""
    import pandas as pd

    text = read_text(path)
    if path.name.lower().endswith(".jsonl"):
        rows = [json_document(line) for line in text.splitlines() if line.strip()]
    else:
        rows = json_document(text)
    if not isinstance(rows, list) or not all(isinstance(row, Mapping) for row in rows):
        raise FileFormatError(
            f'Expected a list of rows such as [{{"age": 31, "home": "rent"}}] in {path.name}, got something else; '
            "write one object for each row."
        )
    frame = pd.DataFrame.from_records(rows)
    nested = [name for name in frame if frame[name].map(lambda cell: isinstance(cell, list | dict)).any()]
    if nested:
        raise FileFormatError(
            f"Expected a number, a text, true, false or null in every cell of {path.name}, got a list or an object in "
            f"{nested[0]!r}; give it columns of its own."
        )
    return frame


def check_output(path: Path) -> None:
    """Refuse a name that no table could be written to, before any work is done."""
    if path.suffix.lower() not in WRITTEN:
        raise FileFormatError(f"Expected an output file ending in .csv, .json or .parquet, got {path.name}; rename it.")
    if path.suffix.lower() == ".parquet":
        try:
            import pyarrow  # noqa: F401
        except ImportError:
            raise MissingExtraError("pyarrow", "scale", "writing Parquet files") from None


def write_records(records: list[dict[str, Any]], path: Path, *, private: bool = False) -> None:
    """Records to ``.csv``, ``.parquet`` or ``.json``; ``private`` ones only their owner can read."""
    import pandas as pd

    check_output(path)
    path.parent.mkdir(parents=True, exist_ok=True)
    if path.suffix.lower() == ".json":
        write_text(path, json.dumps(records, indent=1, default=str), private=private)
    else:
        write_frame(pd.DataFrame(records), path, private=private)


def write_frame(frame: pd.DataFrame, path: Path, *, private: bool = False) -> None:
    """The columns of a table, not its index, to ``.csv`` or ``.parquet``."""
    if path.suffix.lower() != ".parquet":
        write_csv(frame, path, private=private)
        return
    kept = BytesIO()
    try:
        frame.reset_index(drop=True).to_parquet(kept, index=False)
    except (ValueError, TypeError) as error:  # pyarrow's own errors are of these kinds
        said = " ".join(str(error).split())
        raise FileFormatError(
            f"Expected columns of one type each for {path.name}, got a mixture ({said}); write .csv or .json instead."
        ) from error
    write_bytes(path, kept.getvalue(), private=private)
