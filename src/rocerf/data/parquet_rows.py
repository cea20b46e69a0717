"""Training rows in Parquet: read once, in batches, into a working copy on the disk.

What a row costs in memory is nothing, but for ids that are neither whole numbers nor texts (about 60 bytes). On the
disk it is 8 bytes a column, 8 for the label and 8 for the id (4 a letter of the longest text).
"""

from __future__ import annotations

import pickle
import uuid
from collections import OrderedDict
from collections.abc import Callable, Iterable
from functools import cached_property
from threading import Lock
from typing import Any
from weakref import WeakValueDictionary
from zlib import crc32

import numpy as np
from numpy.typing import NDArray

from rocerf.data.columns import first_repeated
from rocerf.data.disk_rows import LabelsOnDisk, RowsOnDisk
from rocerf.data.encoded_parquet import ColumnEncoder
from rocerf.data.parquet import (
    Labels,
    Piece,
    as_ids,
    batches,
    check_label,
    check_weight,
    dataset_of,
    feature_columns,
    numbers_in,
    pieces_of,
    pyarrow,
)
from rocerf.errors import DataError, FileFormatError, IdError
from rocerf.passes import chunks
from rocerf.storage.scratch import Scratch
from rocerf.types import Array

#: Sees rows in the user's columns, as points, what is wrong with each, and where they are.
Watch = Callable[[Any, Array, list[str], str], None]

#: Tables that a process keeps open which others sent it.
KEPT = 4

#: Rows of ids that are compared at a time.
CHUNK = 65_536


class ParquetTable:
    """Columns of numbers and the labels of pieces, in a working copy.

    Whoever receives it pickled decodes the pieces that it is asked for, and refuses one whose numbers are not those
    that were read here (by their checksums).
    """

    def __init__(
        self,
        pieces: list[Piece],
        schema: Any,
        columns: tuple[str, ...],
        labels: tuple[str, Any],
        encoder: ColumnEncoder | None = None,
        token: str = "",
    ) -> None:
        self.pieces, self.schema, self.columns = pieces, schema, columns
        self.labels_in, self.encoder = labels, encoder
        self.token = token or uuid.uuid4().hex
        self.shape = pieces[-1].start + pieces[-1].rows, len(columns if encoder is None else encoder.names)
        self.sums: dict[int, int] = {}
        self._starts = np.array([piece.start for piece in pieces])
        self._X, self._y = Scratch(self.shape, np.float64), Scratch(self.shape[:1], np.float64)
        self._decoded = np.zeros(len(pieces), dtype=bool)
        self._lock = Lock()
        if not token:
            _OWN[self.token] = self

    def __reduce__(self) -> tuple[Any, ...]:
        return _opened, (self.token, self._about)

    @cached_property
    def _about(self) -> bytes:
        """All that another process needs to open the table, looked into only by one that has not done so yet."""
        made_of = self.pieces, self.schema, self.columns, self.labels_in, self.encoder
        return pickle.dumps((made_of, self.sums))

    def put(self, at: int, values: Array, labels: Array) -> None:
        """Rows that were decoded, from row ``at`` on."""
        self._X.write(at, values)
        self._y.write(at, labels)

    def finish(self, number: int, total: int) -> None:
        """All rows of a piece are there, and their checksum is this; another one than known before is refused."""
        if self.sums.setdefault(number, total) != total:
            raise FileFormatError(
                f"Expected the rows of {self.pieces[number].name} that were read before, got others: the file was "
                "changed meanwhile; describe the table anew."
            )
        self._decoded[number] = True

    def features(self, start: int, stop: int) -> Array:
        """These rows, (stop - start, d)."""
        self._ensure(start, stop)
        return self._X.values[start:stop]

    def labels(self, start: int, stop: int) -> Array:
        """1 where the label of a row is the favourable one, else 0; (stop - start,)."""
        self._ensure(start, stop)
        return self._y.values[start:stop]

    def _ensure(self, start: int, stop: int) -> None:
        """Decode the pieces with these rows, where that has not been done."""
        if stop <= start:
            return
        first, last = np.searchsorted(self._starts, [start, stop - 1], side="right") - 1
        if self._decoded[first : last + 1].all():
            return
        with self._lock:
            for number in range(first, last + 1):
                if not self._decoded[number]:
                    self._decode(number)

    def _decode(self, number: int) -> None:
        piece, labels, total = self.pieces[number], Labels(*self.labels_in), 0
        for at, batch in batches(piece, self.schema, [*self.columns, labels.column]):
            values, good = self.values(batch, piece.name), labels.of(batch, piece.name)
            self.put(at, values, good)
            total = checksum(values, good, total)
        self.finish(number, total)

    def values(self, batch: Any, where: str, watch: Watch | None = None) -> Array:
        """A batch as numbers; ``watch`` sees what an encoder makes of it."""
        if self.encoder is None:
            return numbers_in(batch, self.columns, where)
        frame = self.encoder.frame(batch)
        values, problems = self.encoder.encoded(frame)
        if watch is not None:
            watch(frame, values, problems, where)
        return values


def checksum(values: Array, labels: Array, before: int) -> int:
    """Of rows and their labels, after those before."""
    return crc32(labels.data, crc32(values.data, before))


#: Tables read by this process, and the last few that came from others.
_OWN: WeakValueDictionary[str, ParquetTable] = WeakValueDictionary()
_RECEIVED: OrderedDict[str, ParquetTable] = OrderedDict()
_OPENING = Lock()


def _opened(token: str, about: bytes) -> ParquetTable:
    """A table that was sent here: the one at hand, or a new working copy with nothing in it yet."""
    with _OPENING:
        table = _OWN.get(token) or _RECEIVED.get(token)
        if table is None:
            (pieces, schema, columns, labels, encoder), sums = pickle.loads(about)
            table = ParquetTable(pieces, schema, columns, labels, encoder, token)
            table.sums = sums
            _RECEIVED[token] = table
            while len(_RECEIVED) > KEPT:
                _RECEIVED.popitem(last=False)
        return table


def read_parquet(
    source: Any,
    *,
    label: str,
    id: str | None,
    columns: Iterable[str] | None,
    favourable: Any,
    weight: str | None,
    encoder: ColumnEncoder | None = None,
    watch: Watch | None = None,
) -> dict[str, Any]:
    """The fields of a :class:`~rocerf.data.training_set.TrainingSet` whose rows stay on the disk.

    With an ``encoder`` columns may hold anything that it knows; ``watch`` is called with what it makes of each batch.
    """
    dataset = dataset_of(source)
    named = id if id is not None else _index(dataset.schema)
    besides = label, named, weight
    names = feature_columns(dataset, columns, besides) if encoder is None else encoder.columns
    needed = [*names, *(column for column in (label, named, weight) if column is not None)]
    check_weight(dataset, weight)
    check_label(dataset, label)
    pieces = pieces_of(dataset, needed, no_others=columns is None)
    labels, schema = Labels(label, favourable), dataset.schema
    table = ParquetTable(pieces, schema, names, (label, favourable), encoder)
    ids = _Ids(named, schema, pieces)
    weights = None if weight is None else Scratch(table.shape[:1], np.float64)
    for number, piece in enumerate(pieces):
        total = 0
        for at, batch in batches(piece, schema, needed):
            values, good = table.values(batch, piece.name, watch), labels.of(batch, piece.name)
            table.put(at, values, good)
            total = checksum(values, good, total)
            ids.put(at, batch, piece.name)
            if weights is not None and weight is not None:
                weights.write(at, numbers_in(batch, [weight], piece.name)[:, 0])
        table.finish(number, total)
    other = labels.other()
    return {
        "X": RowsOnDisk(table),
        "y": LabelsOnDisk.of(table.labels(0, table.shape[0]), table),
        "ids": ids.checked(),
        "weights": None if weights is None else _usable(weights.values),
        "columns": names if encoder is None else encoder.names,
        "favourable": favourable,
        "unfavourable": other,
        "from_frame": True,
    }


def _index(schema: Any) -> str | None:
    """The column in which pandas keeps the index of a table, if it does: those are the ids, as in memory."""
    kept = (schema.pandas_metadata or {}).get("index_columns", [])
    return kept[0] if len(kept) == 1 and isinstance(kept[0], str) and kept[0] in schema.names else None


def _usable(weights: Array) -> Array:
    if (weights < 0).any() or not (weights > 0).any():
        raise DataError(
            f"Expected sample weights that are finite, not negative and not all zero, got values from {weights.min()} "
            f"to {weights.max()}; correct them or leave them out."
        )
    return weights


class _Ids:
    """The ids of all rows, written batch by batch; row numbers where no column names them."""

    def __init__(self, column: str | None, schema: Any, pieces: list[Piece]) -> None:
        self.column = column
        rows, types = pieces[-1].start + pieces[-1].rows, pyarrow().types
        kind = None if column is None else schema.field(column).type
        if kind is not None and types.is_nested(kind):
            raise IdError(
                f"Expected a single value as the id of a row, got {kind} in column {column!r}; name another column."
            )
        if kind is None or types.is_integer(kind):
            self._kind: Any = np.dtype(np.int64 if kind is None else kind.to_pandas_dtype())
        elif _are_texts(kind):
            self._kind = np.dtype(f"<U{_longest(column, schema, pieces)}")
        else:
            self._kind = np.dtype(object)
        plain = self._kind.kind != "O"
        self._kept = Scratch((rows,), self._kind) if plain else None
        self._values: NDArray[Any] = self._kept.values if self._kept else np.empty(rows, object)
        self._keys = Scratch((rows,), np.uint64) if plain else None

    def put(self, at: int, batch: Any, where: str) -> None:
        """The ids of a batch, whose first row has this number."""
        own = np.arange(at, at + len(batch)) if self.column is None else as_ids(batch, self.column, where)
        if self._kept is None or self._keys is None:
            self._values[at : at + len(own)] = batch.column(self.column).to_pylist()
            return
        kept = own.astype(self._kind)
        if self._kind.kind == "U" and not (kept == own).all():
            raise IdError(f"Expected ids without an empty letter at their end, got one in {where}; leave it out.")
        self._kept.write(at, kept)
        self._keys.write(at, _keys(own))

    def checked(self) -> NDArray[Any]:
        """The ids, if no two rows have the same."""
        suspects: Any = self._values
        if self._keys is not None:
            keys = self._keys.writable
            keys.sort()
            twice = [keys[rows][:-1][np.diff(keys[rows]) == 0] for rows in _overlapping(len(keys))]
            suspects = _with_keys(self._values, np.concatenate(twice)) if any(map(len, twice)) else []
        repeated = first_repeated(suspects.tolist() if len(suspects) else [])
        if repeated is not None:
            raise IdError(
                f"Expected a unique id for each of {len(self._values)} rows, got {repeated!r} more than once in "
                f"column {self.column!r}; give every row an id of its own."
            )
        self._values.flags.writeable = False
        return self._values


def _are_texts(kind: Any) -> bool:
    """Whether a column of this type holds texts, said once each or not."""
    types = pyarrow().types
    kind = kind.value_type if types.is_dictionary(kind) else kind
    return any(test(kind) for test in (types.is_string, types.is_large_string, types.is_string_view))


def _longest(column: str | None, schema: Any, pieces: list[Piece]) -> int:
    """Letters of the longest text of a column, at least 1."""
    most, compute, plain = 1, pyarrow().compute, pyarrow().large_string()
    for piece in pieces:
        for _, batch in batches(piece, schema, [str(column)]):
            most = max(most, compute.max(compute.utf8_length(batch.column(column).cast(plain))).as_py() or 0)
    return most


def _keys(ids: NDArray[Any]) -> NDArray[np.uint64]:
    """A number for each id: the same for the same ones, and hardly ever for others."""
    if ids.dtype.kind in "iu":
        return ids.astype(np.int64).view(np.uint64) if ids.dtype.kind == "i" else ids.astype(np.uint64)
    import pandas as pd

    return np.asarray(pd.util.hash_array(ids.astype(object), categorize=False), np.uint64)


def _overlapping(rows: int) -> list[slice]:
    """Parts of so many rows, each with the first row of the next."""
    return [slice(part.start, part.stop + 1) for part in chunks(rows, CHUNK)]


def _with_keys(ids: NDArray[Any], keys: NDArray[np.uint64]) -> NDArray[Any]:
    """The ids that have one of these keys; sorted, as NumPy 2.0's table of them overflows above half of 64 bits."""
    return np.concatenate([ids[rows][np.isin(_keys(ids[rows]), keys, kind="sort")] for rows in chunks(len(ids), CHUNK)])


def places_of(ids: NDArray[Any], wanted: list[Any]) -> tuple[NDArray[np.intp], list[Any]]:
    """Row numbers of the ids wanted, ascending, by a pass over all ids (n,); and those that no row has."""
    sought = _sought(ids.dtype, wanted)
    parts = [rows.start + np.flatnonzero(np.isin(ids[rows], sought, kind="sort")) for rows in chunks(len(ids), CHUNK)]
    places = np.concatenate(parts)
    known = set(ids[places].tolist())
    return places, [one for one in wanted if one not in known]


def _sought(dtype: np.dtype[Any], wanted: list[Any]) -> NDArray[Any]:
    """Those wanted that ids of this type can be, of this type: two types of whole numbers would meet as fractions, in
    which neighbours beyond 53 bits are the same."""
    if dtype.kind == "U":
        return np.unique(np.array([one for one in wanted if isinstance(one, str)], dtype=np.str_))
    least, most = np.iinfo(dtype).min, np.iinfo(dtype).max
    whole = [one for one in wanted if isinstance(one, int | np.integer) and not isinstance(one, bool)]
    return np.unique(np.array([int(one) for one in whole if least <= one <= most], dtype=dtype))
