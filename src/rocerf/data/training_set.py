"""The rows a model was learned from: numbers, two labels, stable ids."""

from __future__ import annotations

import hashlib
from collections.abc import Hashable, Iterable
from dataclasses import dataclass, fields
from functools import cached_property
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from rocerf.data.column_statistics import centre_of, spread_of, units
from rocerf.data.columns import (
    default_columns,
    numeric_matrix,
    some,
)
from rocerf.data.disk_rows import CHUNK, RowsOnDisk, numbers_left
from rocerf.data.foreign import with_origin
from rocerf.data.given_rows import (
    checked_ids,
    checked_weights,
    frozen,
    names_of,
    one_dimensional,
    other_label,
    plain_ids,
    plain_label,
)
from rocerf.errors import DataError, FileFormatError, IdError
from rocerf.passes import chunks
from rocerf.storage.state import State

if TYPE_CHECKING:
    import pandas as pd


#: The state of a training set.
FORMAT = "rocerf-training-set/1"

#: Spreads beyond which slopes, moves or costs of a column are no numbers any more.
SMALLEST_SPREAD, LARGEST_SPREAD = 1e-300, 1e300


@dataclass(frozen=True, eq=False, init=False, repr=False)
class TrainingSet:
    """Rows with stable ids and two labels, one of them favourable. Whatever it holds is read-only.

    Parameters
    ----------
    X : array of shape (n, d), or table with d numeric columns (pandas, Polars, PyArrow)
        Feature values in the user's own units. NaN and infinities are refused.
    y : sequence of n labels
        Any two distinct values.
    ids : sequence of n unique values, or the name of the column of X that has them, optional
        Names of the rows, kept when other rows go. Default: the DataFrame's index, or 0..n-1.
    favourable : label
        The label a person hopes for (loan granted, bail granted).
    sample_weight : array of shape (n,), optional
        Non-negative weights of the rows in the training loss.

    Examples
    --------
    >>> train = TrainingSet([[1.0], [2.0], [3.0]], ["no", "yes", "yes"], favourable="yes")
    >>> len(train), train.y.tolist(), train.ids.tolist()
    (3, [0.0, 1.0, 1.0], [0, 1, 2])
    >>> train.without([1]).ids.tolist()
    [0, 2]
    """

    X: NDArray[np.float64]  # feature values, shape (n, d)
    y: NDArray[np.float64]  # 1.0 where the label is the favourable one, else 0.0; shape (n,)
    ids: NDArray[Any]  # stable row ids, shape (n,)
    weights: NDArray[np.float64] | None  # sample weights, shape (n,), or None where every row counts once
    columns: tuple[str, ...]  # names of the d feature columns
    favourable: Any  # the label a person hopes for
    unfavourable: Any  # the other label
    from_frame: bool  # whether the rows came as a DataFrame, so that column names are the user's own

    def __init__(
        self,
        X: ArrayLike | pd.DataFrame,
        y: ArrayLike,
        ids: ArrayLike | str | None = None,
        *,
        favourable: Any = 1,
        sample_weight: ArrayLike | None = None,
    ) -> None:
        if isinstance(ids, str):
            X, ids = with_origin(X, id=ids)[0], None
        matrix, columns, index = numeric_matrix(X, what="the training rows")
        n = len(matrix)
        if n == 0:
            raise DataError("Expected at least one training row, got none; check the file or filter.")
        if ids is None:
            ids = index if index is not None else np.arange(n)
        labels = one_dimensional(y, n, "labels (y)")
        unfavourable = other_label(labels, favourable)
        self.__dict__.update(
            X=matrix,
            y=frozen((labels == favourable).astype(np.float64)),
            ids=checked_ids(ids, n),
            weights=checked_weights(sample_weight, n),
            columns=columns if columns is not None else default_columns(matrix.shape[1]),
            favourable=favourable,
            unfavourable=unfavourable,
            from_frame=columns is not None,
        )

    @classmethod
    def from_parquet(
        cls,
        source: Any,
        *,
        label: str,
        id: str | None = None,
        columns: Iterable[str] | None = None,
        favourable: Any = 1,
        sample_weight: str | None = None,
    ) -> TrainingSet:
        """Rows in Parquet that stay on the disk: a file, a folder of files, a list, or a PyArrow dataset.

        ``label``, ``id`` and ``sample_weight`` name columns; ``columns`` are the features, by default all others.
        Without ``id``, ids are the index that pandas wrote, or row numbers. The rows are read once, in batches, into a
        working copy among the temporary files, over which deletions are masks: ``docs/scale.md``. Extra ``scale``.
        """
        from rocerf.data.parquet_rows import read_parquet

        options: dict[str, Any] = {"columns": columns, "favourable": favourable, "weight": sample_weight}
        return cls.of_fields(read_parquet(source, label=label, id=id, **options))

    @classmethod
    def of_fields(cls, values: dict[str, Any]) -> TrainingSet:
        """With these fields, which are checked already."""
        (made := object.__new__(cls)).__dict__.update(values)
        return made

    @property
    def on_disk(self) -> bool:
        """Whether the rows are on the disk, and ``X`` only stands for them."""
        return isinstance(self.X, RowsOnDisk)

    def _with(self, **changes: Any) -> TrainingSet:
        """The same training set with these arrays, which are checked already."""
        return TrainingSet.of_fields({part.name: getattr(self, part.name) for part in fields(self)} | changes)

    def __len__(self) -> int:
        return len(self.y)

    def __repr__(self) -> str:
        n, d = self.X.shape
        good = int(self.y.sum())
        asked = True if self.unfavourable is False else self.favourable  # 1 of labels that are True and False
        return f"TrainingSet({n} rows x {d} columns, {good} {asked!r}, {n - good} {self.unfavourable!r})"

    @cached_property
    def spread(self) -> NDArray[np.float64]:
        """Standard deviation of each column, 1 where a column is constant; shape (d,)."""
        spread = spread_of(self.X, self._unit)
        beyond = np.flatnonzero((spread < SMALLEST_SPREAD) | (spread > LARGEST_SPREAD))
        if len(beyond):
            raise DataError(
                f"Expected columns with a spread from {SMALLEST_SPREAD:g} to {LARGEST_SPREAD:g}, which numbers of 64 "
                f"bits can be divided by, got {spread[beyond[0]]:.3g} in {self.columns[beyond[0]]!r}; give that column "
                "in another unit."
            )
        return frozen(spread)

    @cached_property
    def centre(self) -> NDArray[np.float64]:
        """Mean of each column, the number itself where it is the same in all rows; shape (d,)."""
        return frozen(centre_of(self.X, self._unit))

    @cached_property
    def _unit(self) -> NDArray[np.float64]:
        return units(self.X)

    @cached_property
    def _position(self) -> dict[Any, int]:
        return {row_id: i for i, row_id in enumerate(self.ids.tolist())}

    def positions(self, ids: Iterable[Any]) -> NDArray[np.intp]:
        """Row numbers of these ids, in ascending order; a repeated id counts once.

        >>> TrainingSet([[1.0], [2.0]], [0, 1], ids=["a", "b"]).positions(["b"]).tolist()
        [1]
        """
        # A bare text is iterable too: without("ab") must not delete the rows "a" and "b".
        if isinstance(ids, str | bytes) or not isinstance(ids, Iterable):
            raise IdError(f"Expected a sequence of ids, got {ids!r} alone; put it in a list: [{ids!r}].")
        wanted = names_of(ids) if isinstance(ids, np.ndarray) and ids.ndim else list(ids)
        wanted = [
            names_of(np.asarray([one]))[0] if isinstance(one, np.datetime64 | np.timedelta64) else one for one in wanted
        ]
        places, unknown = self._found(wanted)
        if unknown:
            raise IdError(
                f"Expected ids of rows in the training set, got {len(unknown)} unknown: {some(unknown)}; known ids "
                f"look like {self.ids[:1].tolist()[0]!r}. Check that the ids come from this training set."
            )
        return places

    def _found(self, wanted: list[Any]) -> tuple[NDArray[np.intp], list[Any]]:
        """Row numbers of these ids, ascending, and those that no row has."""
        if self.on_disk and self.ids.dtype != object:  # a dictionary of all ids would be larger than the rows
            from rocerf.data.parquet_rows import places_of

            return places_of(self.ids, wanted)
        unknown = [row_id for row_id in wanted if not isinstance(row_id, Hashable) or row_id not in self._position]
        known = () if unknown else wanted
        return np.unique(np.asarray([self._position[row_id] for row_id in known], dtype=np.intp)), unknown

    def without(self, ids: Iterable[Any]) -> TrainingSet:
        """The same training set with these rows deleted; all other rows keep their ids."""
        gone = self.positions(ids)
        if len(gone) >= len(self):
            raise DataError(
                f"Expected to delete fewer than all {len(self)} rows, got {len(gone)} ids; at least one row must "
                "remain."
            )
        rows: Any = self.X
        kept = numbers_left if isinstance(rows, RowsOnDisk) else _kept
        weights = None if self.weights is None else kept(self.weights, gone)
        if weights is not None and not (weights > 0).any():
            raise DataError(
                f"Expected a row of positive weight to remain, got {len(weights)} rows of weight 0 only; delete "
                "fewer rows or give the others weight."
            )
        ids = kept(self.ids, gone) if self.ids.dtype != object else _kept(self.ids, gone)
        if isinstance(rows, RowsOnDisk):
            left = rows.without(gone)
            return self._with(X=left, y=left.labels(), ids=ids, weights=weights)
        return self._with(X=kept(self.X, gone), y=kept(self.y, gone), ids=ids, weights=weights)

    def forget(self, ids: Iterable[Any]) -> TrainingSet:
        """The rows left as if these had never been there; as :meth:`without`, and texts as ids take no more room
        than the longest of those left.

        >>> TrainingSet([[1.0], [2.0]], [0, 1], ids=np.array(["a", "somebody"])).forget(["somebody"]).ids.dtype.str
        '<U1'
        """
        left = self.without(ids)
        return left._with(ids=frozen(np.array(left.ids.tolist()))) if left.ids.dtype.kind in "US" else left

    def with_weights(self, sample_weight: ArrayLike) -> TrainingSet:
        """The same rows with these weights in the training loss."""
        return self._with(weights=checked_weights(sample_weight, len(self)))

    def with_values(self, X: NDArray[np.float64]) -> TrainingSet:
        """The same rows, ids, labels and weights with other finite values (n, d)."""
        if X.shape != self.X.shape or not np.isfinite(X).all():
            raise DataError(
                f"Expected finite values of shape {self.X.shape}, got {X.shape} or missing ones; fill them."
            )
        return self._with(X=frozen(np.array(X, dtype=np.float64, order="C")))

    def frame(self) -> pd.DataFrame:
        """The feature values as a DataFrame whose index is the row ids."""
        import pandas as pd

        return pd.DataFrame(np.asarray(self.X), columns=list(self.columns), index=self.ids)

    def state(self) -> State:
        """The rows as plain values and arrays, to be kept anywhere; models hold this among what else they say.

        >>> state = TrainingSet([[1.0], [2.0]], ["no", "yes"], favourable="yes").state()
        >>> state.values["favourable"], sorted(state.arrays)
        ('yes', ['X', 'favourable_rows', 'ids'])
        """
        values = {
            "columns": self.columns,
            "from_frame": self.from_frame,
            "favourable": plain_label(self.favourable),
            "unfavourable": plain_label(self.unfavourable),
            "checksum": self.checksum,
        }
        X, y = np.asarray(self.X), np.asarray(self.y)
        arrays: dict[str, NDArray[Any]] = {"X": X, "favourable_rows": y, "ids": plain_ids(self.ids)}
        return State(FORMAT, values, arrays if self.weights is None else {**arrays, "weights": self.weights})

    @classmethod
    def from_state(cls, state: State) -> TrainingSet:
        """The inverse of :meth:`state`; rows that do not match their checksum are refused."""
        with state.understood(FORMAT, "TrainingSet.state"):
            return rows_in(state)

    @cached_property
    def checksum(self) -> str:
        """SHA-256 over values, labels, weights and column names: which rows these were."""
        digest = hashlib.sha256()
        for values in (self.X, self.y, *(() if self.weights is None else (self.weights,))):
            for rows in chunks(len(self), CHUNK):
                digest.update(np.ascontiguousarray(values[rows]).data)
        digest.update("\x1f".join(self.columns).encode())
        return digest.hexdigest()


def _kept(values: NDArray[Any], gone: NDArray[np.intp]) -> NDArray[Any]:
    """Entries or rows without some of them, read-only."""
    return frozen(np.delete(values, gone, axis=0))


def rows_in(state: State) -> TrainingSet:
    """The rows that a state holds, a training set's or a model's; those that do not match their checksum are refused.

    To be called inside :meth:`~rocerf.storage.state.State.understood`.
    """
    about, arrays = state.values, state.arrays
    X: Any = arrays["X"]
    if about["from_frame"]:
        import pandas as pd

        X = pd.DataFrame(X, columns=list(about["columns"]))
    labels = np.empty(len(X), dtype=object)
    is_good = arrays["favourable_rows"] == 1
    labels[is_good], labels[~is_good] = about["favourable"], about["unfavourable"]
    train = TrainingSet(X, labels, arrays["ids"], favourable=about["favourable"], sample_weight=arrays.get("weights"))
    if train.checksum != about["checksum"]:
        raise FileFormatError("Expected the training rows to match their checksum, they do not: the file was altered.")
    return train
