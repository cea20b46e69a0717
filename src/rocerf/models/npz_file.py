"""Reading the files that models are saved in: arrays and one JSON text, never pickle."""

from __future__ import annotations

import json
import zlib
from collections.abc import Iterator
from contextlib import contextmanager
from os import PathLike
from typing import Any
from zipfile import BadZipFile

import numpy as np
from numpy.typing import NDArray

from rocerf.errors import FileFormatError


@contextmanager
def reading(path: str | PathLike[str], form: str, writer: str) -> Iterator[None]:
    """Whatever goes wrong while a file is read and understood is one error: it was not written by that writer."""
    try:
        yield
    except (ValueError, KeyError, TypeError, IndexError, AttributeError, EOFError, BadZipFile, zlib.error) as error:
        raise FileFormatError(
            f"Expected a file written by {writer} ({form}), got {path} which is not ({error}); "
            "save the model again with this version."
        ) from error


def arrays_and_about(path: str | PathLike[str], form: str) -> tuple[dict[str, NDArray[Any]], dict[str, Any]]:
    """The arrays of a file and its JSON text, which must name this form; to be called inside :func:`reading`."""
    with open(path, "rb") as opened:
        file = np.load(opened, allow_pickle=False)
        arrays = {name: file[name] for name in file.files}
    about = json.loads(str(arrays["about"]))
    if about["format"] != form:
        raise ValueError(f"its format is {about['format']!r}")
    return arrays, about
