"""Tables in Parquet files (or whatever else PyArrow reads as a dataset), looked at before a row is read.

A dataset is seen as *pieces*, one for each row group, in its order. What a piece holds is decoded in batches, checked,
and kept in a working copy on the disk (:mod:`rocerf.storage.scratch`), which is what passes over the rows then read.
"""

from __future__ import annotations

import math
import pickle
from collections.abc import Iterable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from functools import cached_property
from os import PathLike, fspath
from typing import Any

import numpy as np
from numpy.typing import NDArray

from rocerf.data.columns import not_favourable, some
from rocerf.errors import ColumnError, DataError, FileFormatError, LabelError, MissingExtraError
from rocerf.types import Array

#: Rows decoded at a time.
BATCH = 65_536


def pyarrow() -> Any:
    """PyArrow with its datasets, or an error that says how to install it."""
    try:
        import pyarrow as pa
        import pyarrow.compute
        import pyarrow.dataset
    except ImportError:
        raise MissingExtraError("pyarrow", "scale", "reading Parquet files") from None
    return pa


@contextmanager
def reading(name: str) -> Iterator[None]:
    """Errors of the file system and of PyArrow as ours, about what is called so."""
    pa = pyarrow()
    try:
        yield
    except FileNotFoundError as error:
        raise FileFormatError(
            f"Expected the partition {name}, found no such file; bring it back, or describe the table anew without it."
        ) from error
    except (OSError, pa.ArrowException) as error:
        said = " ".join(str(error).split()).rstrip(".")
        raise FileFormatError(f"Expected a readable table at {name}, got an error: {said}; check the file.") from error


class File:
    """A file of a dataset, or whatever else it is made of, with its row groups.

    Whoever receives it pickled opens it when something in it is read; if it is gone by then, the error names it.
    """

    def __init__(self, fragment: Any, name: str) -> None:
        self._fragment, self.name = fragment, name

    def __reduce__(self) -> tuple[Any, ...]:
        with reading(self.name):
            return File, (pickle.dumps(self.fragment), self.name)

    @cached_property
    def fragment(self) -> Any:
        """As PyArrow has it."""
        return pickle.loads(self._fragment) if isinstance(self._fragment, bytes) else self._fragment

    @cached_property
    def groups(self) -> list[Any]:
        """Its row groups; itself, where it has none. Their footer is read once for all of them."""
        return list(self.fragment.split_by_row_group()) if _in_groups(self.fragment) else [self.fragment]

    @property
    def sizes(self) -> list[int]:
        """How many rows each group has."""
        if not _in_groups(self.fragment):
            return [self.fragment.count_rows()]
        # A fragment of one row group counts the rows of the whole file.
        return [sum(part.num_rows for part in group.row_groups) for group in self.groups]


def _in_groups(fragment: Any) -> bool:
    return hasattr(type(fragment), "split_by_row_group")


@dataclass(frozen=True, eq=False)
class Piece:
    """A row group of a file: its rows are number ``start`` and on of the table."""

    file: File
    group: int
    start: int
    rows: int

    @property
    def name(self) -> str:
        """The file's."""
        return self.file.name


def dataset_of(source: Any) -> Any:
    """A PyArrow dataset as it is, or that of a file, a folder of files (partitioned as Hive does), or a list."""
    pa = pyarrow()
    if isinstance(source, pa.dataset.Dataset):
        return source
    paths = [fspath(_path(one)) for one in source] if isinstance(source, list | tuple) else fspath(_path(source))
    name = paths if isinstance(paths, str) else f"a list of {len(paths)} files"
    with reading(name):
        found = pa.dataset.dataset(paths, format="parquet", partitioning="hive")
    if not found.files:
        raise FileFormatError(f"Expected Parquet files in {name}, found none; check the path.")
    return found


def _path(source: Any) -> str | PathLike[str]:
    if isinstance(source, str | PathLike):
        return source
    raise FileFormatError(
        f"Expected a path, a list of paths or a PyArrow dataset, got {type(source).__name__}; pass one of these."
    )


def pieces_of(dataset: Any, needed: Sequence[str], *, no_others: bool = False) -> list[Piece]:
    """The pieces of a dataset, each of which has the columns needed, of one type throughout; and, if so, no others."""
    pieces: list[Piece] = []
    start = 0
    for number, fragment in enumerate(_fragments(dataset)):
        name = getattr(fragment, "path", None) or f"part {number}"
        with reading(name):
            _check_columns(dataset, fragment, name, needed)
            if no_others:
                _refuse_others(dataset, fragment, name)
            file = File(fragment, name)
            for group, rows in enumerate(file.sizes):
                if rows:
                    pieces.append(Piece(file, group, start, rows))
                start += rows
    if not pieces:
        raise DataError("Expected at least one training row, got none; check the files.")
    return pieces


def _fragments(dataset: Any) -> list[Any]:
    try:
        with reading("the dataset"):
            return list(dataset.get_fragments())
    except ValueError as error:
        if isinstance(error, FileFormatError):
            raise
        raise DataError(
            f"Expected a dataset of whole files, got another ({error}); write the rows that you filter to files of "
            "their own."
        ) from error


def _check_columns(dataset: Any, fragment: Any, name: str, needed: Sequence[str]) -> None:
    """Refuse a file without a column, or with another type of it: PyArrow would put nothing, or convert, in silence."""
    own, said = fragment.physical_schema, pyarrow().dataset.get_partition_keys(fragment.partition_expression)
    absent = [column for column in needed if column not in own.names and column not in said]
    if absent:
        raise ColumnError(
            f"Expected the columns of the first file in every partition, got none named {some(absent)} in {name}; "
            "write that partition again with the same columns."
        )
    for column in needed:
        if column in own.names and own.field(column).type != dataset.schema.field(column).type:
            raise ColumnError(
                f"Expected {column!r} to be {dataset.schema.field(column).type} in every partition, as in the first, "
                f"got {own.field(column).type} in {name}; write that partition again with the same types."
            )


def _refuse_others(dataset: Any, fragment: Any, name: str) -> None:
    """Refuse a file with a column that the first has not: nobody could say whether it was meant to be used."""
    others = [column for column in fragment.physical_schema.names if column not in dataset.schema.names]
    if others:
        raise ColumnError(
            f"Expected the columns of the first file in every partition, got {some(others)} besides in {name}; write "
            "that partition, or the first, again with the same columns, or name the features with columns=..."
        )


def table_in(dataset: Any, where: str) -> Any:
    """All rows of a dataset whose files have the same columns and types, as a table in memory."""
    pieces_of(dataset, dataset.schema.names, no_others=True)
    with reading(where):
        return dataset.to_table()


def feature_columns(dataset: Any, columns: Iterable[str] | None, besides: Sequence[str | None]) -> tuple[str, ...]:
    """The columns asked for, by default all but the label, the ids and the weights; each of numbers."""
    schema = dataset.schema
    if isinstance(columns, str):
        raise ColumnError(
            f"Expected a list of feature columns, got {columns!r} alone; put it in a list: [{columns!r}]."
        )
    names = [name for name in schema.names if name not in besides] if columns is None else list(columns)
    for name in (*names, *filter(None, besides)):
        if schema.names.count(name) != 1:
            what = "one column" if schema.names.count(name) else "a column"
            raise ColumnError(f"Expected {what} {name!r} in the table, got {some(schema.names)}; name one of these.")
    if not names:
        raise ColumnError("Expected at least one column in the training rows, got none; pass the feature columns.")
    if len(set(names)) < len(names):
        raise ColumnError("Expected each column once, got some twice; drop the copies.")
    if besides[0] in names:
        raise ColumnError(f"Expected features without the label, got {besides[0]!r} among them; leave it out.")
    for name in names:
        kind = schema.field(name).type
        if not _are_numbers(kind):
            raise ColumnError(
                f"Expected numbers in every column of the training rows, got {kind} in column {name!r}; encode it as "
                "numbers (one 0/1 column for each category), or leave it out with columns=..."
            )
    return tuple(names)


def batches(piece: Piece, schema: Any, columns: Sequence[str]) -> Iterator[tuple[int, Any]]:
    """Batches of some columns of a piece, with the number of the first row of each; one at a time in memory."""
    how = {"use_buffered_stream": True, "pre_buffer": False, "page_checksum_verification": True}
    parquet = pyarrow().dataset.ParquetFragmentScanOptions(**how)
    start = piece.start
    with reading(piece.name):
        options = {"fragment_scan_options": parquet} if _in_groups(piece.file.fragment) else {}
        scanned = piece.file.groups[piece.group].to_batches(
            schema=schema,
            columns=list(dict.fromkeys(columns)),
            batch_size=BATCH,
            batch_readahead=1,
            fragment_readahead=1,
            use_threads=False,
            **options,
        )
        for batch in scanned:
            yield start, batch
            start += len(batch)
    if start - piece.start != piece.rows:
        raise FileFormatError(
            f"Expected {piece.rows} rows in a row group of {piece.name}, got {start - piece.start}: the file was "
            "changed meanwhile; describe the table anew."
        )


def _are_numbers(kind: Any) -> bool:
    types = pyarrow().types
    return any(test(kind) for test in (types.is_integer, types.is_floating, types.is_boolean, types.is_decimal))


def check_weight(dataset: Any, weight: str | None) -> None:
    """Refuse weights that are no numbers."""
    kind = None if weight is None else dataset.schema.field(weight).type
    if kind is not None and not _are_numbers(kind):
        raise ColumnError(
            f"Expected numbers as sample weights, got {kind} in column {weight!r}; convert them or name another column."
        )


def check_label(dataset: Any, label: str) -> None:
    """Refuse labels that are no single values."""
    kind = dataset.schema.field(label).type if label in dataset.schema.names else None
    if kind is not None and pyarrow().types.is_nested(kind):
        raise LabelError(
            f"Expected a single value as the label of a row, got {kind} in column {label!r}; name another."
        )


def numbers_in(batch: Any, columns: Sequence[str], where: str) -> Array:
    """The columns of a batch as finite numbers, (m, d)."""
    values = np.empty((len(batch), len(columns)))
    for place, name in enumerate(columns):
        column = batch.column(name)
        if not column.null_count:
            values[:, place] = column.cast("float64", safe=False).to_numpy(zero_copy_only=False)
            if np.isfinite(values[:, place]).all():
                continue
        missing = column.null_count or int((~np.isfinite(values[:, place])).sum())
        raise DataError(
            f"Expected finite numbers in the training rows, got {missing} missing or infinite ones in column {name!r} "
            f"of {where}; fill or drop them first."
        )
    return values


class Labels:
    """Which label is the favourable one; the other is whatever else turns up, as long as it is one."""

    def __init__(self, column: str, favourable: Any) -> None:
        self.column, self.favourable = column, favourable
        self.found: list[Any] = []

    def of(self, batch: Any, where: str) -> Array:
        """1 where the label is the favourable one, else 0; (m,)."""
        column = batch.column(self.column)
        coded = column if hasattr(column, "indices") else column.dictionary_encode()
        values = coded.dictionary.to_pylist()
        if coded.null_count or any(value is None or is_nan(value) for value in values):
            raise LabelError(
                f"Expected a label for every row, got missing ones in column {self.column!r} of {where}; drop or fill "
                "those rows."
            )
        places = coded.indices.to_numpy(zero_copy_only=False)
        for place in np.unique(places):
            if values[place] not in self.found:
                self.found.append(values[place])
        if len(self.found) > 2:
            raise self._not_two("at least ")
        good = np.array([value == self.favourable for value in values], np.float64)
        return np.asarray(good[places])

    def other(self) -> Any:
        """The label that is not the favourable one, once all rows were seen."""
        if len(self.found) != 2:
            raise self._not_two("")
        others = [label for label in self.found if label != self.favourable]
        if len(others) != 1:
            raise LabelError(not_favourable(self.found, self.favourable))
        return others[0]

    def _not_two(self, least: str) -> LabelError:
        return LabelError(
            f"Expected exactly two classes in the labels, got {least}{len(self.found)}: {some(self.found)}; recourse "
            "is defined for accept/refuse decisions, so map the labels to two."
        )


def is_nan(value: Any) -> bool:
    """Whether a value is the number that is none."""
    return isinstance(value, float) and math.isnan(value)


def distinct(dataset: Any, column: str) -> list[Any]:
    """The values of a column, each once and up to the first hundred, in the order of the rows."""
    if column not in dataset.schema.names:
        raise ColumnError(f"Expected a column {column!r}, got only {some(dataset.schema.names)}; name one of these.")
    found: dict[Any, None] = {}
    for piece in pieces_of(dataset, [column]):
        for _, batch in batches(piece, dataset.schema, [column]):
            found.update(dict.fromkeys(batch.column(column).unique().to_pylist()))
            if len(found) > 100:
                return list(found)
    return list(found)


def as_ids(batch: Any, column: str, where: str) -> NDArray[Any]:
    """Ids of a batch as Python spells them, (m,)."""
    values = batch.column(column)
    if values.null_count:
        raise DataError(f"Expected an id in every row of {where}, got {values.null_count} without; fill {column!r}.")
    found = np.asarray(values.to_numpy(zero_copy_only=False))
    if pyarrow().types.is_floating(values.type) and np.isnan(found).any():
        raise DataError(f"Expected an id in every row of {where}, got one that is no number; fill {column!r}.")
    return found
