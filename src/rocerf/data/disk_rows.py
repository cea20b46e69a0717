"""Rows that stay on the disk: what stands where an array of them would, and reads no more than it is asked for.

A deletion is a mask: the rows left are the same table and the sorted numbers of the rows that are gone. Whatever walks
over rows in chunks (:mod:`rocerf.passes`) never holds more than a chunk; ``np.asarray`` gives all rows to whoever needs
them at once, as pages of the working copy where none are gone.

Pickled, rows and labels are only a way to the table, which whoever receives them opens for itself.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, Protocol

import numpy as np
from numpy.typing import NDArray

from rocerf.passes import chunks
from rocerf.storage.scratch import Scratch
from rocerf.types import Array, Places

#: Rows handled at a time where a pass is about columns.
CHUNK = 65_536

NONE: Places = np.empty(0, np.intp)


class Table(Protocol):
    """Rows of a table of numbers with labels, wherever they are."""

    @property
    def shape(self) -> tuple[int, int]:
        """Rows and columns."""
        ...

    def features(self, start: int, stop: int) -> Array:
        """These rows, (stop - start, d)."""
        ...

    def labels(self, start: int, stop: int) -> Array:
        """1 where the label of a row is the favourable one, else 0; (stop - start,)."""
        ...


class Left:
    """Which rows of a table are left when the rows ``gone`` (row numbers, ascending) are not."""

    def __init__(self, rows: int, gone: Places) -> None:
        self.gone = gone
        self.count = rows - len(gone)
        self._before = gone - np.arange(len(gone))

    def rows(self, places: Any) -> Places:
        """Row numbers in the table of these places among the rows left.

        >>> Left(6, np.array([1, 4])).rows(np.arange(4)).tolist()
        [0, 2, 3, 5]
        """
        return np.asarray(places + np.searchsorted(self._before, places, side="right"), np.intp)

    def between(self, part: slice, read: Callable[[int, int], Array]) -> Array:
        """Neighbouring places, of a table that is read by the numbers of the first and the last row."""
        if part.stop <= part.start:
            return read(0, 0)
        first, last = (int(row) for row in self.rows(np.array([part.start, part.stop - 1])))
        block = read(first, last + 1)
        low, high = np.searchsorted(self.gone, [first, last])
        return np.delete(block, self.gone[low:high] - first, axis=0) if high > low else block


class RowsOnDisk:
    """Rows (n, d) of a table on the disk, without those that are gone; indexed as an array is."""

    ndim = 2
    dtype = np.dtype(np.float64)

    def __init__(self, table: Table, gone: Places = NONE) -> None:
        self.table = table
        self._left = Left(table.shape[0], gone)

    def __reduce__(self) -> tuple[Any, ...]:
        return RowsOnDisk, (self.table, self.gone)

    def __len__(self) -> int:
        return self._left.count

    @property
    def gone(self) -> Places:
        """Numbers of the rows of the table that are not there any more, ascending."""
        return self._left.gone

    @property
    def shape(self) -> tuple[int, int]:
        """Rows left and columns."""
        return len(self), self.table.shape[1]

    @property
    def T(self) -> Array:
        """Columns, each as long as there are rows."""
        return np.asarray(self).T

    def __getitem__(self, key: Any) -> Any:
        if isinstance(key, slice):
            part = slice(*key.indices(len(self)))
            if part.step == 1:
                return self._left.between(part, self.table.features)
            key = np.arange(part.start, part.stop, part.step)
        if isinstance(key, tuple):
            return np.asarray(self)[key]
        places = np.asarray(key)
        places = np.flatnonzero(places) if places.dtype == bool else np.where(places < 0, places + len(self), places)
        if places.size and not 0 <= places.min() <= places.max() < len(self):
            raise IndexError(f"row {key!r} of {len(self)}")
        return self._whole()[self._left.rows(places)]

    def __array__(self, dtype: Any = None, copy: bool | None = None) -> NDArray[Any]:
        whole = np.delete(self._whole(), self.gone, axis=0) if len(self.gone) else self._whole()
        return np.array(whole, dtype) if copy or (dtype is not None and dtype != whole.dtype) else whole

    def _whole(self) -> Array:
        return self.table.features(0, self.table.shape[0])

    def without(self, rows: Places) -> RowsOnDisk:
        """The same without these rows of the present ones."""
        return RowsOnDisk(self.table, np.union1d(self.gone, self._left.rows(rows)).astype(np.intp))

    def labels(self) -> Array:
        """Labels of the rows left, (n,)."""
        left = _copied(len(self), np.dtype(np.float64), lambda part: self._left.between(part, self.table.labels))
        return LabelsOnDisk.of(left, self.table, self.gone)


class LabelsOnDisk(np.ndarray[Any, np.dtype[np.float64]]):
    """Labels (n,) at hand, of which only the way to the table is pickled; parts of them are arrays as any other."""

    source: tuple[Table, Places] | None

    @classmethod
    def of(cls, labels: Array, table: Table, gone: Places = NONE) -> LabelsOnDisk:
        """These labels, which are the table's but for the rows gone."""
        made: LabelsOnDisk = labels.view(cls)
        made.source = table, gone
        return made

    def __array_finalize__(self, given: Any) -> None:
        self.source = None

    def __reduce__(self) -> Any:
        return super().__reduce__() if self.source is None else (LabelsElsewhere, self.source)


class LabelsElsewhere:
    """Labels as whoever received them pickled has them: read when they are asked for."""

    def __init__(self, table: Table, gone: Places) -> None:
        self.table = table
        self._left = Left(table.shape[0], gone)

    def __len__(self) -> int:
        return self._left.count

    def __getitem__(self, key: Any) -> Array:
        if isinstance(key, slice):
            part = slice(*key.indices(len(self)))
            return self._left.between(part, self.table.labels)
        return self.table.labels(0, self.table.shape[0])[self._left.rows(np.asarray(key))]


def rows_left(X: Any, rows: Places) -> Any:
    """Rows (n, d) in memory or on the disk, without some of them."""
    return X.without(rows) if isinstance(X, RowsOnDisk) else np.delete(X, rows, axis=0)


def numbers_left(values: NDArray[Any], rows: Places) -> NDArray[Any]:
    """Entries (n,) that belong to rows on the disk, without those of some rows; kept on the disk, too."""
    left = Left(len(values), rows)

    def read(start: int, stop: int) -> NDArray[Any]:
        return values[start:stop]

    return _copied(left.count, values.dtype, lambda part: left.between(part, read))


def _copied(count: int, kind: np.dtype[Any], read: Callable[[slice], NDArray[Any]]) -> NDArray[Any]:
    """So many entries that are read chunk by chunk, as a working copy."""
    made = Scratch((count,), kind)
    for part in chunks(count, CHUNK):
        made.write(part.start, read(part))
    return made.values


def row_by_row(function: Callable[[Array], Array], X: Any, width: int) -> Array:
    """What a function makes of rows (n, d), (n, width): in memory, or as a working copy where the rows are on disk."""
    if not isinstance(X, RowsOnDisk):
        return function(X)
    made = Scratch((len(X), width), np.float64)
    for rows in chunks(len(X), CHUNK):
        made.write(rows.start, function(X[rows]))
    return made.values
