"""Whether something of a row is left: in any object that can be reached from another, and in any byte of its files."""

from __future__ import annotations

import gc
import io
import types
import zipfile
from collections.abc import Iterable, Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd

#: What leads out of an object into the whole program.
OUTSIDE = (
    type,
    types.ModuleType,
    types.BuiltinFunctionType,
    types.FrameType,
    types.CodeType,
    types.GetSetDescriptorType,
)


def reachable(root: Any) -> Iterator[Any]:
    """Every object that can be reached from this one: attributes, containers, closures, arrays and their owners."""
    waiting, seen = [root], {}
    while waiting:
        thing = waiting.pop()
        if id(thing) in seen or isinstance(thing, OUTSIDE):
            continue
        seen[id(thing)] = thing  # kept, so that no id is used twice
        yield thing
        waiting += neighbours(thing)


def neighbours(thing: Any) -> list[Any]:
    """What an object holds."""
    if isinstance(thing, types.FunctionType):
        cells = [cell.cell_contents for cell in thing.__closure__ or ()]
        return [*cells, *(thing.__defaults__ or ()), *(thing.__kwdefaults__ or {}).values()]
    if isinstance(thing, np.ndarray):
        return [thing.base, *(thing.ravel().tolist() if thing.dtype == object else ())]
    if isinstance(thing, pd.DataFrame):
        return [thing.index, thing.columns, thing.attrs, *(thing.iloc[:, j] for j in range(thing.shape[1]))]
    if isinstance(thing, pd.Series):
        return [thing.index, thing.array, np.asarray(thing), thing.attrs, thing.name, thing.dtype]
    if isinstance(thing, pd.Index):
        levels = list(thing.levels) if isinstance(thing, pd.MultiIndex) else []
        return [np.asarray(thing), thing.array, thing.dtype, list(thing.names), levels]
    if isinstance(thing, pd.CategoricalDtype):
        return [thing.categories]
    if type(thing).__module__.startswith("sklearn") and hasattr(thing, "__getstate__"):
        return [*gc.get_referents(thing), thing.__getstate__()]
    if type(thing).__module__.startswith("torch") and hasattr(thing, "detach"):
        return [thing.detach().cpu().numpy(), thing.grad if thing.is_leaf else None]
    return gc.get_referents(thing)


class Planted:
    """A row to be looked for: texts that nobody else has, and numbers."""

    def __init__(self, texts: Iterable[str], numbers: Iterable[float]) -> None:
        self.texts = tuple(texts)
        self.numbers = np.array([number for number in numbers if abs(number) > 2.0])

    def within(self, root: Any) -> list[str]:
        """Where it is found among what can be reached."""
        return [f"{type(thing).__name__}: {thing!r:.200}" for thing in reachable(root) if self._is_in(thing)]

    def _is_in(self, thing: Any) -> bool:
        if isinstance(thing, str):
            return any(text in thing for text in self.texts)
        if isinstance(thing, bytes | bytearray):
            return self._in_bytes(bytes(thing))
        if isinstance(thing, np.ndarray):
            if thing.dtype.kind in "US":
                return any(self._is_in(str(value)) for value in thing.ravel())
            if thing.dtype.names is not None:
                return any(self._is_in(np.asarray(thing[name])) for name in thing.dtype.names)
            return thing.dtype.kind in "iuf" and self._among(thing.ravel().astype(np.float64))
        if isinstance(thing, float | int | np.number) and not isinstance(thing, bool):
            return abs(thing) < 1e300 and self._among(np.array([float(thing)]))
        return False

    def _among(self, values: np.ndarray) -> bool:
        return any(bool(np.isclose(values, number, rtol=1e-9, atol=0.0).any()) for number in self.numbers)

    def _in_bytes(self, data: bytes) -> bool:
        texts = [text.encode(code) for text in self.texts for code in ("utf-8", "utf-16-le", "utf-32-le")]
        numbers = [np.array(number, kind).tobytes() for number in self.numbers for kind in ("<f8", ">f8")]
        written = [repr(float(number)).encode() for number in self.numbers]
        return any(part in data for part in (*texts, *numbers, *written))

    def in_files(self, folder: Path) -> list[str]:
        """Files below the folder, and files packed in them, that hold it."""
        return [name for name, data in unpacked(folder) if self._in_bytes(data)]


def unpacked(folder: Path) -> Iterator[tuple[str, bytes]]:
    """Name and bytes of every file, and of every file in a zip file (an .npz, a .skops), however deep."""
    for path in sorted(folder.rglob("*")):
        if path.is_file():
            yield from _opened(str(path.relative_to(folder)), path.read_bytes())


def _opened(name: str, data: bytes) -> Iterator[tuple[str, bytes]]:
    yield name, data
    start = data.find(b"PK\x03\x04")  # an array of bytes may hold a zip file behind its header
    if start >= 0:
        try:
            with zipfile.ZipFile(io.BytesIO(data[start:])) as archive:
                for member in archive.namelist():
                    yield from _opened(f"{name}/{member}", archive.read(member))
        except zipfile.BadZipFile:
            pass
