"""An explainer whose training rows stay with the user: its states without the rows, and joined with them again."""

from __future__ import annotations

import io
import zipfile
from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

from rocerf.data.frames import Frames
from rocerf.data.given_rows import plain_label
from rocerf.errors import OptionError, RowSourceError
from rocerf.ledger.sources import RowSource
from rocerf.storage.state import State
from rocerf.types import Array

#: Arrays of a model's state that are training rows, or are made from them row by row.
ROWS = ("X", "favourable_rows", "weights", "images", "missing")

#: Models that hold their rows in these arrays and nowhere else.
_KINDS = ("rocerf-logistic-model/", "rocerf-neural-model/")


def without_rows(states: Mapping[str, State], source: RowSource) -> dict[str, State]:
    """The states without training rows, once the source has shown that it gives the very same ones."""
    model = states["model"]
    if not model.format.startswith(_KINDS):
        raise _not_apart("a fitted estimator, which may hold rows of its own")
    bare = State(model.format, model.values, {n: a for n, a in model.arrays.items() if n not in ROWS})
    kept = {**states, "model": bare}
    count = len(model.arrays["ids"])
    for name, state in kept.items():
        for what, array in state.arrays.items():
            if what not in ("ids", "skops") and array.ndim and len(array) == count:
                raise _not_apart(f"{what!r} of its {name}, which has an entry for each row")
    if "pipeline" in kept and count in _lengths(kept["pipeline"].arrays["skops"].tobytes()):
        raise _not_apart("a step of its pipeline that has an entry for each row")
    with_rows(kept, source)
    return kept


def with_rows(states: Mapping[str, State], source: RowSource | None) -> dict[str, State]:
    """The states with the rows that the source gives; other rows than those it was trained on are refused."""
    model = states["model"]
    if "X" in model.arrays:
        return dict(states)
    if source is None:
        raise RowSourceError(
            "Expected the source of the training rows, which stay outside this ledger, got none; open the ledger with "
            "it (Ledger.open(rows=...), rocerf serve --rows ...)."
        )
    ids = model.arrays["ids"].tolist()
    frame = source.fetch(ids)
    if len(frame) != len(ids):
        raise RowSourceError(
            f"Expected all {len(ids)} training rows of this model at {source.name}, got {len(frame)}: some were "
            "removed or masked before the model had unlearned them. Put them back until the deletion asks for their "
            "removal, or register a model that was trained without them."
        )
    arrays = {**model.arrays, **_row_arrays(model, frame, source)}
    joined = State(model.format, model.values, arrays, model.source)
    _check(joined, source)
    return {**states, "model": joined}


def given_out(source: RowSource) -> list[Any]:
    """All ids that a source gives out, where it can tell (a method ``given_out``, as files have)."""
    told = getattr(source, "given_out", None)
    return [] if told is None else list(told())


def ids_of(states: Mapping[str, State]) -> list[Any]:
    """The ids of the rows that a model was trained on."""
    return list(states["model"].arrays["ids"].tolist())


def _row_arrays(model: State, frame: Any, source: RowSource) -> dict[str, NDArray[Any]]:
    about = model.values
    good = np.array([plain_label(value) == about["favourable"] for value in frame[source.label]])
    other = np.array([plain_label(value) == about["unfavourable"] for value in frame[source.label]])
    if not (good | other).all():
        raise _changed(source)
    found: dict[str, NDArray[Any]] = {"X": _values(model, frame, source), "favourable_rows": good.astype(np.float64)}
    if source.weight is not None:
        found["weights"] = _numbers(frame[source.weight], source)
    said = about.get("pipeline")
    if said is not None:
        frames = Frames.from_dict(said["frames"])
        gone = np.zeros(found["X"].shape, bool)
        for place, name in enumerate(frames.columns):
            if name in frame.columns:
                gone[:, place] = frame[name].isna().to_numpy()
        if gone.any():
            found["missing"] = gone
    return found


def _values(model: State, frame: Any, source: RowSource) -> Array:
    """The rows in the model's own columns, (n, d)."""
    said, columns = model.values.get("pipeline"), list(model.values["columns"])
    if said is not None:
        matrix, _, problems = Frames.from_dict(said["frames"]).encode(frame)
        if any(problems):
            raise _changed(source)
        return matrix
    missing = [name for name in columns if name not in frame.columns]
    if missing:
        raise RowSourceError(
            f"Expected the model's {len(columns)} columns at {source.name}, got none called {missing[0]!r}; name them "
            "there as in training."
        )
    return np.ascontiguousarray(_numbers(frame[columns], source))


def _numbers(frame: Any, source: RowSource) -> Array:
    """What are numbers in training; where a text stands there now, the rows are others."""
    try:
        numbers: Array = frame.to_numpy(np.float64)
    except (TypeError, ValueError):
        raise _changed(source) from None
    return numbers


def _check(model: State, source: RowSource) -> None:
    """The very rows of training: their checksum is kept with the model."""
    import hashlib

    digest, arrays = hashlib.sha256(), model.arrays
    for name in ("X", "favourable_rows", "weights"):
        if name in arrays:
            digest.update(np.ascontiguousarray(arrays[name]).data)
    digest.update("\x1f".join(model.values["columns"]).encode())
    if digest.hexdigest() != model.values["checksum"]:
        raise _changed(source)


def _changed(source: RowSource) -> RowSourceError:
    return RowSourceError(
        f"Expected the rows that this model was trained on at {source.name}, got others under the same ids (their "
        "checksum differs); bring the former values back, or register a model that was trained on these."
    )


def _not_apart(what: str) -> OptionError:
    return OptionError(
        f"Expected an explainer that can be kept apart from its training rows, got one with {what}; keep the rows "
        "inside (register without a row source), or choose another promise or model."
    )


def _lengths(skops: bytes) -> Sequence[int]:
    """The lengths of all arrays that a skops file holds."""
    found = []
    with zipfile.ZipFile(io.BytesIO(skops)) as archive:
        for name in archive.namelist():
            if name.endswith(".npy"):
                array = np.load(io.BytesIO(archive.read(name)), allow_pickle=False)
                found += [len(array)] if array.ndim else []
    return found
