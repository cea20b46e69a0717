"""Whether something of a row is left: in any object that can be reached from another, and in any byte of its files."""

from __future__ import annotations

import gc
import io
import types
import zipfile
from collections import Counter
from collections.abc import Callable, Iterable, Iterator
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
        waiting += _neighbours(thing)


def _of_function(thing: Any) -> list[Any]:
    cells = [cell.cell_contents for cell in thing.__closure__ or ()]
    return [*cells, *(thing.__defaults__ or ()), *(thing.__kwdefaults__ or {}).values()]


def _of_index(thing: Any) -> list[Any]:
    levels = list(thing.levels) if isinstance(thing, pd.MultiIndex) else []
    return [np.asarray(thing), thing.array, thing.dtype, list(thing.names), levels]


#: What objects hold that the garbage collector does not tell of.
HELD: tuple[tuple[type, Callable[[Any], list[Any]]], ...] = (
    (types.FunctionType, _of_function),
    (np.ndarray, lambda array: [array.base, *(array.ravel().tolist() if array.dtype == object else ())]),
    (pd.DataFrame, lambda f: [f.index, f.columns, f.attrs, *(f.iloc[:, j] for j in range(f.shape[1]))]),
    (pd.Series, lambda s: [s.index, s.array, np.asarray(s), s.attrs, s.name, s.dtype]),
    (pd.Index, _of_index),
    (pd.CategoricalDtype, lambda dtype: [dtype.categories]),
)


def _neighbours(thing: Any) -> list[Any]:
    for kind, held in HELD:
        if isinstance(thing, kind):
            return held(thing)
    home = type(thing).__module__
    if home.startswith("sklearn") and hasattr(thing, "__getstate__"):  # trees and the like, written in C
        return [*gc.get_referents(thing), thing.__getstate__()]
    if home.startswith("torch") and hasattr(thing, "detach"):
        return [thing.detach().cpu().numpy().copy(), thing.grad if thing.is_leaf else None]
    return gc.get_referents(thing)


class Planted:
    """A row to be looked for: texts that nobody else has, and numbers."""

    def __init__(self, texts: Iterable[str], numbers: Iterable[float]) -> None:
        self.texts, self.numbers = tuple(texts), np.array(list(numbers), dtype=np.float64)

    def within(self, root: Any) -> list[str]:
        """Where it is found among what can be reached."""
        return [f"{type(thing).__name__}: {thing!r:.200}" for thing in reachable(root) if self._is_in(thing)]

    def _is_in(self, thing: Any) -> bool:
        if isinstance(thing, np.ndarray) and thing.dtype.names is not None:
            return any(self._is_in(np.asarray(thing[name])) for name in thing.dtype.names)
        if isinstance(thing, np.ndarray) and thing.dtype.kind in "US":
            return any(self._is_in(str(value)) for value in thing.ravel())
        if isinstance(thing, np.ndarray):
            return thing.dtype.kind in "iuf" and self._among(thing.ravel().astype(np.float64))
        if isinstance(thing, bytes | bytearray):
            return self._in_bytes(bytes(thing))
        number = isinstance(thing, float | int | np.number) and abs(thing) < 1e300
        return self._among(np.array([float(thing)])) if number else any(t in str(thing) for t in self._texts_for(thing))

    def _texts_for(self, thing: Any) -> tuple[str, ...]:
        return self.texts if isinstance(thing, str) else ()

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
        with zipfile.ZipFile(io.BytesIO(data[start:])) as archive:
            for member in archive.namelist():
                yield from _opened(f"{name}/{member}", archive.read(member))


def contents(root: Any) -> Counter[Any]:
    """All arrays, texts and numbers that can be reached, each as often as it is there: what an object knows."""
    found: Counter[Any] = Counter()
    for thing in reachable(root):
        if isinstance(thing, np.ndarray) and thing.dtype != object:
            parts = [thing] if thing.dtype.names is None else [thing[name] for name in thing.dtype.names]
            found.update((part.dtype.str, part.shape, np.ascontiguousarray(part).tobytes()) for part in parts)
        elif isinstance(thing, str | bytes | float | int | np.number):
            found[type(thing).__name__, thing if thing == thing else "nan"] += 1  # noqa: PLR0124
    return found
