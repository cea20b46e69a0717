"""Reading files: whatever is wrong with one is told in one sentence; arrays come with one JSON text, never pickle."""

from __future__ import annotations

import io
import json
from collections.abc import Iterator, Mapping
from contextlib import AbstractContextManager, contextmanager
from dataclasses import dataclass
from os import PathLike, fspath
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from rocerf.errors import FileFormatError, MissingExtraError, RocerfError
from rocerf.storage.seals import check_seal, sealed


@dataclass(frozen=True)
class FileRead(PathLike[str]):
    """A file whose bytes were read already, and checked: they are taken as they are, and not read again."""

    path: Path
    content: bytes

    def __fspath__(self) -> str:
        return fspath(self.path)

    def __str__(self) -> str:
        return str(self.path)


def bytes_of(path: str | PathLike[str]) -> bytes:
    """The bytes of a file."""
    return path.content if isinstance(path, FileRead) else Path(path).read_bytes()


@contextmanager
def told_as(
    expected: str, got: str, advice: str, *, but: tuple[type[Exception], ...] = (MissingExtraError,)
) -> Iterator[None]:
    """Whatever goes wrong while something is read and understood is one error of ours, ``but`` these.

    A damaged file can make any library raise anything (zip, zlib, JSON, arrays of absurd sizes, endless nesting), so
    no list of errors would be complete.
    """
    try:
        yield
    except but:
        raise
    except Exception as error:
        text = str(error).strip().rstrip(".")
        said = text if isinstance(error, RocerfError) else f"{type(error).__name__}: {text}"
        raise FileFormatError(f"Expected {expected}, got {got} ({said}); {advice}.") from error


def reading(
    path: str | PathLike[str], form: str, writer: str, advice: str = "save the model again with this version"
) -> AbstractContextManager[None]:
    """As :func:`told_as`, of a file written by that writer; one that is not there, or closed to us, is told as such."""
    expected = f"a file written by {writer} ({form})"
    return told_as(
        expected, f"{path} which is not", advice, but=(FileNotFoundError, PermissionError, MissingExtraError)
    )


def packed_arrays(form: str, about: Mapping[str, Any], arrays: Mapping[str, NDArray[Any]]) -> bytes:
    """Arrays and a JSON text that names the form, sealed, as the bytes of an ``.npz`` file."""
    plain = json.loads(json.dumps({"format": form, **about}))
    buffer = io.BytesIO()
    text = np.array(json.dumps(sealed(plain, arrays)))
    np.savez_compressed(buffer, **{"about": text, **arrays})  # type: ignore[arg-type]
    return buffer.getvalue()


def arrays_and_about(path: str | PathLike[str], form: str) -> tuple[dict[str, NDArray[Any]], dict[str, Any]]:
    """The arrays of a file and its JSON text, which must name this form; to be called inside :func:`reading`."""
    with np.load(io.BytesIO(bytes_of(path)), allow_pickle=False) as file:
        arrays = {name: file[name] for name in file.files}
    about = json.loads(str(arrays.pop("about")))
    if about["format"] != form:
        raise ValueError(f"its format is {about['format']!r}")
    check_seal(about, arrays)
    return arrays, about
