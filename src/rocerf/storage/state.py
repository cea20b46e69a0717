"""What an object is, apart from where it is kept: plain values and arrays, with the version of their format.

Models, promises, explainers and results give a :class:`State` and are made from one. A file or a folder
is one way to keep it; a database could be another.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from os import PathLike
from typing import Any, Self

from numpy.typing import NDArray

from rocerf.storage.reading import arrays_and_about, packed_arrays, reading
from rocerf.storage.whole_file import write_bytes


@dataclass(frozen=True, eq=False)
class State:
    """Plain values (what JSON holds) and arrays, of a format such as "rocerf-logistic-model/2"."""

    format: str
    values: Mapping[str, Any] = field(default_factory=dict)
    arrays: Mapping[str, NDArray[Any]] = field(default_factory=dict)

    def write(self, path: str | PathLike[str]) -> None:
        """Keep it in one sealed ``.npz`` file for its owner only."""
        write_bytes(path, packed_arrays(self.format, self.values, self.arrays), private=True)

    @classmethod
    def read(cls, path: str | PathLike[str], form: str, writer: str) -> Self:
        """From a file of this format, written by ``writer``; whatever is wrong with it is one error of ours."""
        with reading(path, form, writer):
            arrays, values = arrays_and_about(path, form)
        return cls(form, values, arrays)
