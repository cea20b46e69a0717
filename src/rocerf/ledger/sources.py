"""Where training rows are that stay with the user: a row source gives them by id, and says which it no longer has.

The ledger keeps of such rows only their ids, sealed. It fetches the rows to make the model again and, before it
certifies a deletion, looks whether the rows are gone at the source. A source may mask rows instead of removing them:
masked rows are never given out, but they are still stored, and the certificate says so.
"""

from __future__ import annotations

import hashlib
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass
from os import PathLike
from pathlib import Path
from typing import TYPE_CHECKING, Any, Protocol, runtime_checkable

from rocerf.data.exact_csv import exact_numbers
from rocerf.errors import DataError, FileFormatError, OptionError
from rocerf.storage.reading import told_as

if TYPE_CHECKING:
    import pandas as pd


@dataclass(frozen=True)
class Look:
    """What a source said about rows, by id: ``gone`` are not there at all, ``masked`` are stored but never given out,
    ``there`` are given out still. ``sha256`` is over what was looked at, "" where the source cannot say."""

    gone: tuple[Any, ...]
    masked: tuple[Any, ...]
    there: tuple[Any, ...]
    sha256: str = ""


@runtime_checkable
class RowSource(Protocol):
    """What the ledger asks of rows that stay with the user. ``name`` stands in certificates: let it name no person.

    A source that can list its rows may have a method ``given_out()``, their ids: then a model is not registered while
    the source gives out a row under the id of an erased one.
    """

    name: str
    #: The columns that hold the label and the weight of a row.
    label: str
    weight: str | None

    def fetch(self, ids: Sequence[Any]) -> pd.DataFrame:
        """The rows of these ids that the source gives out, by id as index, with features, label and weight."""
        ...

    def look(self, ids: Sequence[Any]) -> Look:
        """Which of these rows are gone, masked, or still there."""
        ...


class FileRows:
    """Rows in a Parquet or CSV file, or in a folder of such files.

    Parameters
    ----------
    path : path
        The file or folder; it is read anew each time, and never written to.
    label, weight : str, str or None
        The columns of the label and of the sample weight.
    id : str or None
        The column of row ids; without one they are the index that pandas wrote (Parquet), or row numbers (one CSV).
    mask : path, optional
        A text file of ids, one a line: rows that are stored and must not be used. They count as masked, not as gone.

    Examples
    --------
    >>> import tempfile
    >>> path = Path(tempfile.mkdtemp()) / "rows.csv"
    >>> _ = path.write_text("customer,income,repaid\\nA1,2100.5,1\\nA2,900,0\\n")
    >>> rows = FileRows(path, label="repaid", id="customer")
    >>> rows.fetch(["A2"])["income"].tolist(), rows.look(["A1", "A9"]).gone
    ([900.0], ('A9',))
    """

    def __init__(
        self,
        path: str | PathLike[str],
        *,
        label: str,
        id: str | None = None,
        weight: str | None = None,
        mask: str | PathLike[str] | None = None,
    ) -> None:
        self.path, self.label, self.id, self.weight = Path(path), label, id, weight
        self.mask = None if mask is None else Path(mask)
        self.name = self.path.name

    def fetch(self, ids: Sequence[Any]) -> pd.DataFrame:
        """The rows of these ids that are there and not masked."""
        frame = self._table()
        for needed in (self.label, *([self.weight] if self.weight else [])):
            if needed not in frame.columns:
                raise DataError(f"Expected a column {needed!r} in {self.name}, got none of that name; check the name.")
        return _chosen(frame, ids, self._masked())

    def given_out(self) -> list[Any]:
        """The ids of all rows that are there and not masked."""
        masked = self._masked()
        return [name for name in self._table().index.tolist() if str(name) not in masked]

    def look(self, ids: Sequence[Any]) -> Look:
        """By id, and with a SHA-256 over the names and bytes of all files at that moment."""
        before = self._fingerprint()
        stored, masked = set(map(str, self._table().index)), self._masked()
        if self._fingerprint() != before:
            raise DataError(f"Expected {self.name} to stay as it is while it was looked at, it changed; look again.")
        return _sorted(ids, stored, masked, before)

    def _files(self) -> list[Path]:
        if self.path.is_dir():
            found = sorted(p for p in self.path.rglob("*") if p.suffix.lower() in (".parquet", ".csv"))
        else:
            found = [self.path] if self.path.is_file() else []
        if not found:
            raise FileFormatError(
                f"Expected training rows at {self.path} (a .parquet or .csv file, or a folder of them), got none; "
                "check the path. An emptied folder is not taken for rows that were removed."
            )
        return found

    def _table(self) -> pd.DataFrame:
        import pandas as pd

        parts = [self._one(path) for path in self._files()]
        if len(parts) > 1 and self.id is None and any(isinstance(part.index, pd.RangeIndex) for part in parts):
            raise OptionError("Expected the column of row ids for several files, got none; name it (id=...).")
        frame = pd.concat(parts)
        names = frame.index.map(str)
        if not names.is_unique:
            raise DataError(f"Expected each row id once in {self.name}, got some twice; give every row its own id.")
        return frame

    def _one(self, path: Path) -> pd.DataFrame:
        import pandas as pd

        got = f"{path.name}, which cannot be read"
        with told_as("training rows in a .parquet or .csv file", got, "check the file"):
            if path.suffix.lower() == ".parquet":
                frame = pd.read_parquet(path)
            else:
                # Ids as text: "007" is not 7.
                kinds = None if self.id is None else {self.id: str}
                frame = pd.read_csv(path, dtype=kinds, **exact_numbers())
            return frame if self.id is None else frame.set_index(self.id)

    def _masked(self) -> set[str]:
        if self.mask is None or not self.mask.exists():
            return set()
        return {line.strip() for line in self.mask.read_text("utf-8").splitlines() if line.strip()}

    def _fingerprint(self) -> str:
        digest = hashlib.sha256()
        for path in (*self._files(), *([self.mask] if self.mask is not None and self.mask.exists() else [])):
            own = hashlib.sha256()
            with path.open("rb") as file:
                for part in _parts(file.read):
                    own.update(part)
            digest.update(f"{path.name}\0{own.hexdigest()}\0".encode())
        return digest.hexdigest()


@dataclass(frozen=True)
class CalledRows:
    """Rows that a function of the user's gives: ``function(ids)`` returns a DataFrame of those rows, ids as its index.

    ``masked``, if given, returns those of the ids whose rows are stored but not given out. What the function says is
    believed: there is nothing that could be hashed.

    >>> import pandas as pd
    >>> table = pd.DataFrame({"income": [2100.5], "repaid": [1]}, index=["A1"])
    >>> rows = CalledRows(lambda ids: table.loc[[i for i in ids if i in table.index]], label="repaid", name="warehouse")
    >>> rows.look(["A1", "A2"])
    Look(gone=('A2',), masked=(), there=('A1',), sha256='')
    """

    function: Callable[[Sequence[Any]], pd.DataFrame]
    label: str
    name: str
    weight: str | None = None
    masked: Callable[[Sequence[Any]], Iterable[Any]] | None = None

    def fetch(self, ids: Sequence[Any]) -> pd.DataFrame:
        """What the function gives for these ids."""
        return _chosen(self.function(list(ids)), ids, set())

    def look(self, ids: Sequence[Any]) -> Look:
        """Rows that the function gives are there; others are masked where it says so, else gone."""
        given = set(map(str, self.function(list(ids)).index))
        hidden = set() if self.masked is None else set(map(str, self.masked(list(ids))))
        return _sorted(ids, given | hidden, hidden - given, "")


def _chosen(frame: pd.DataFrame, ids: Sequence[Any], masked: set[str]) -> pd.DataFrame:
    """The rows of these ids, in their order and by these very ids; an id that is written alike is the same."""
    place = {str(name): at for at, name in enumerate(frame.index)}
    found = [i for i in ids if str(i) in place and str(i) not in masked]
    import pandas as pd

    return frame.iloc[[place[str(i)] for i in found]].set_axis(pd.Index(found, dtype=object), axis=0)


def _sorted(ids: Sequence[Any], stored: set[str], masked: set[str], sha256: str) -> Look:
    gone = tuple(i for i in ids if str(i) not in stored)
    hidden = tuple(i for i in ids if str(i) in stored and str(i) in masked)
    there = tuple(i for i in ids if str(i) in stored and str(i) not in masked)
    return Look(gone, hidden, there, sha256)


def _parts(read: Callable[[int], bytes]) -> Iterator[bytes]:
    while part := read(1 << 20):
        yield part
