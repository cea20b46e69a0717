"""Working copies of arrays on the disk: read as pages that the system keeps or drops, gone with the process.

The file has no name from the start on (on Windows: from its closing on), so that nothing of the rows stays behind, not
even when the process is killed. It lies where Python puts temporary files: set TMPDIR to a disk with room for it, and
not to one that is kept in memory.
"""

from __future__ import annotations

import tempfile
from collections.abc import Callable
from pathlib import Path
from threading import Lock
from typing import Any
from weakref import finalize

import numpy as np
from numpy.typing import DTypeLike, NDArray

from rocerf.errors import FileFormatError


def text_written_by(write: Callable[[str], Any]) -> str:
    """What ``write(path)`` writes, of a library that can only write to a file; the file is gone afterwards.

    >>> text_written_by(lambda path: Path(path).write_text("leaf"))
    'leaf'
    """
    return bytes_written_by(write).decode("utf-8")


def bytes_written_by(write: Callable[[str], Any]) -> bytes:
    """The same, as bytes."""
    with tempfile.TemporaryDirectory(prefix="rocerf-") as folder:
        path = Path(folder) / "written"
        write(str(path))
        return path.read_bytes()


def read_from_file(data: bytes, read: Callable[[str], Any]) -> Any:
    """What ``read(path)`` makes of these bytes, for a library that can only read from a file."""
    with tempfile.TemporaryDirectory(prefix="rocerf-") as folder:
        path = Path(folder) / "given"
        path.write_bytes(data)
        return read(str(path))


class Scratch:
    """An array of this shape on the disk, zeros until written.

    >>> kept = Scratch((3, 2), np.float64)
    >>> kept.write(1, np.array([[5.0, 6.0]]))
    >>> kept.values.tolist()
    [[0.0, 0.0], [5.0, 6.0], [0.0, 0.0]]
    """

    def __init__(self, shape: tuple[int, ...], dtype: DTypeLike) -> None:
        kind = np.dtype(dtype)
        self._row = kind.itemsize * int(np.prod(shape[1:], dtype=np.int64))
        self._file = tempfile.TemporaryFile()  # noqa: SIM115 (open as long as it is written to)
        self._lock = Lock()
        finalize(self, self._file.close)  # the mapping stays as long as an array needs it
        self._size = self._row * shape[0]
        try:
            self._file.truncate(self._size)
            mapped: Any = np.memmap(self._file, kind, mode="r+", shape=shape)
        except OSError as error:
            raise self._no_room(error) from error
        self.writable: NDArray[Any] = np.asarray(mapped)
        #: The array, read-only.
        self.values: NDArray[Any] = self.writable.view()
        self.values.flags.writeable = False

    def write(self, at: int, rows: NDArray[Any]) -> None:
        """Put rows in their places, from row ``at`` on."""
        # Not through the mapping: a full disk is then an error here, not the end of the process.
        try:
            with self._lock:
                self._file.seek(at * self._row)
                self._file.write(np.ascontiguousarray(rows, self.values.dtype).data)
                self._file.flush()
        except OSError as error:
            raise self._no_room(error) from error

    def _no_room(self, error: OSError) -> FileFormatError:
        return FileFormatError(
            f"Expected room for a working copy of {self._size / 2**20:.0f} MiB in {tempfile.gettempdir()}, got "
            f"{error.strerror or error}; make room, or set TMPDIR to a folder on a larger disk."
        )
