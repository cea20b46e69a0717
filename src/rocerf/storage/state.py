"""What an object is, apart from where it is kept: plain values and arrays, with the version of their format.

Training sets, schemas, models, promises, certificates and explainers give a :class:`State` (``x.state()``) and are made
from one (``X.from_state(state)``). A sealed file is one place to keep it; any other is a table, bucket or cache that
takes bytes: nothing has to be registered.

>>> import numpy as np
>>> shelf = {}  # stands for a database
>>> shelf["a"] = State("example/1", {"k": 2}, {"theta": np.ones(3)}).to_bytes()
>>> state = State.from_bytes(shelf["a"])
>>> state.format, state.values["k"], state.arrays["theta"].tolist()
('example/1', 2, [1.0, 1.0, 1.0])
"""

from __future__ import annotations

import io
import json
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, field
from os import PathLike
from pathlib import Path
from typing import Any, Self

import numpy as np
from numpy.typing import NDArray

from rocerf.errors import OptionError
from rocerf.storage.reading import reading, told_as
from rocerf.storage.seals import SEAL, check_seal, sealed
from rocerf.storage.whole_file import write_bytes

#: Names of values and of arrays that the bytes of a state have for themselves ("file" is NumPy's).
_VALUES, _ARRAYS = ("format", SEAL), ("about", "file")

_ADVICE = "save the model again with this version"


@dataclass(frozen=True, eq=False)
class State:
    """Plain values (what JSON holds) and arrays, of a format such as "rocerf-logistic-model/2".

    States may hold others, each under a name: :meth:`joined` and :meth:`part`. ``source`` says in messages where this
    one came from.
    """

    format: str
    values: Mapping[str, Any] = field(default_factory=dict)
    arrays: Mapping[str, NDArray[Any]] = field(default_factory=dict)
    source: str = "a state"

    def extended(self, form: str, values: Mapping[str, Any], arrays: Mapping[str, NDArray[Any]]) -> State:
        """A state of another format that holds all of this one, and more."""
        return State(form, {**self.values, **values}, {**self.arrays, **arrays}, self.source)

    @classmethod
    def joined(cls, form: str, parts: Mapping[str, State], values: Mapping[str, Any] | None = None) -> Self:
        """One state of several, each under a name without a slash, and further values.

        >>> whole = State.joined("whole/1", {"one": State("part/1", {"k": 2})}, {"said": "yes"})
        >>> whole.part("one").format, whole.part("one").values["k"], whole.values["said"]
        ('part/1', 2, 'yes')
        """
        about = {name: {"format": part.format, **part.values} for name, part in parts.items()}
        arrays = {f"{name}/{key}": array for name, part in parts.items() for key, array in part.arrays.items()}
        return cls(form, {**(values or {}), "parts": about}, arrays)

    def part(self, name: str) -> State:
        """The state that was joined under this name."""
        about, start = dict(self.values["parts"][name]), f"{name}/"
        arrays = {key.removeprefix(start): array for key, array in self.arrays.items() if key.startswith(start)}
        return State(about.pop("format"), about, arrays, f"{self.source}: {name}")

    @contextmanager
    def understood(self, form: str, writer: str, advice: str = _ADVICE) -> Iterator[None]:
        """Whatever goes wrong while something is made from this state is one error of ours, another format first."""
        with reading(self.source, form, writer, advice):
            _refuse_other_format(self.format, form)
            yield

    def to_bytes(self) -> bytes:
        """All of it, sealed with a checksum, as the bytes of an ``.npz`` file: arrays and one JSON text, no pickle."""
        taken = [*(name for name in self.values if name in _VALUES), *(name for name in self.arrays if name in _ARRAYS)]
        if taken:
            raise OptionError(
                f"Expected values not named {' or '.join(_VALUES)} and arrays not named {' or '.join(_ARRAYS)} in a "
                f"state, got {taken[0]!r}; rename it."
            )
        plain = json.loads(json.dumps({"format": self.format, **self.values}))
        buffer = io.BytesIO()
        about = np.array(json.dumps(sealed(plain, self.arrays)))
        np.savez_compressed(buffer, **{"about": about, **self.arrays})  # type: ignore[arg-type]
        return buffer.getvalue()

    @classmethod
    def from_bytes(cls, content: bytes, form: str | None = None, source: str = "a state") -> Self:
        """What :meth:`to_bytes` gave, of this format if one is named; what was damaged or changed is refused."""
        expected = "the bytes of a state" if form is None else f"the bytes of a state ({form})"
        with told_as(expected, f"{source} which is not", _ADVICE):
            return cls._unpacked(content, source, form)

    @classmethod
    def _unpacked(cls, content: bytes, source: str, form: str | None) -> Self:
        with np.load(io.BytesIO(content), allow_pickle=False) as file:
            arrays = {name: file[name] for name in file.files}
        about = json.loads(str(arrays.pop("about")))
        _refuse_other_format(about["format"], form or about["format"])  # first: former formats have no seal
        check_seal(about, arrays)
        return cls(about["format"], {key: about[key] for key in about if key not in _VALUES}, arrays, source)

    def write(self, path: str | PathLike[str], *, private: bool = True) -> None:
        """Keep it in one file, written in one step; a ``private`` one is its owner's only."""
        write_bytes(path, self.to_bytes(), private=private)

    @classmethod
    def read(cls, path: str | PathLike[str], form: str, writer: str, advice: str = _ADVICE) -> Self:
        """From a file of this format, written by ``writer``; whatever is wrong with it is one error of ours."""
        with reading(path, form, writer, advice):
            return cls._unpacked(Path(path).read_bytes(), str(path), form)


def _refuse_other_format(found: str, form: str) -> None:
    if found.rpartition("/")[0] != form.rpartition("/")[0]:
        raise ValueError(f"its format is {found!r}, which something else wrote: read it with that")
    if found != form:
        raise ValueError(f"its format is {found!r}")
