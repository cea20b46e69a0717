"""An explainer on disk: a folder of plain arrays and JSON, no pickle.

``model.npz`` (the model with its training rows), ``explainer.json`` (the options) and, for promises that learn or
prove, ``promise.npz`` (the pool of retrained models, or the certificate).
"""

from __future__ import annotations

import json
from os import PathLike
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from rocerf.data.schema import FeatureSchema
from rocerf.deletion.certificate import Certificate
from rocerf.errors import FileFormatError, OptionError
from rocerf.models.logistic import LogisticModel
from rocerf.promises.certified import Certified
from rocerf.promises.promise import Promise
from rocerf.promises.retrained import Pool, Retrained

FILE_FORMAT = "rocerf-explainer/1"


def write_explainer(
    path: str | PathLike[str],
    model: LogisticModel,
    options: dict[str, Any],
    schema: FeatureSchema | None,
    promise: Promise,
) -> None:
    """Write model, options, schema and what the promise has learned into a folder."""
    folder = Path(path)
    folder.mkdir(parents=True, exist_ok=True)
    model.save(folder / "model.npz")
    state = _learned(promise)
    if state:
        with open(folder / "promise.npz", "wb") as file:
            np.savez_compressed(file, **state)
    about = {"format": FILE_FORMAT, "options": options, "schema": None if schema is None else schema.to_dict()}
    (folder / "explainer.json").write_text(json.dumps(about, indent=1), encoding="utf-8")


def read_explainer(
    path: str | PathLike[str],
) -> tuple[LogisticModel, dict[str, Any], FeatureSchema | None, dict[str, NDArray[Any]]]:
    """Model, options, schema and the promise's state from a folder."""
    folder = Path(path)
    try:
        about = json.loads((folder / "explainer.json").read_text("utf-8"))
        if about["format"] != FILE_FORMAT:
            raise KeyError(about["format"])
        state: dict[str, NDArray[Any]] = {}
        if (folder / "promise.npz").is_file():
            with np.load(folder / "promise.npz", allow_pickle=False) as file:
                state = {name: file[name] for name in file.files}
    except (OSError, ValueError, KeyError, TypeError) as error:
        raise FileFormatError(
            f"Expected a folder written by Rocerf.save ({FILE_FORMAT}), got {folder} which is not "
            f"({type(error).__name__}: {error}); save the explainer again with this version."
        ) from error
    schema = None if about["schema"] is None else FeatureSchema.from_dict(about["schema"])
    return LogisticModel.load(folder / "model.npz"), about["options"], schema, state


def _learned(promise: Promise) -> dict[str, Any]:
    if isinstance(promise, Retrained):
        rows = promise.pool.deleted_rows
        return {
            "slack": np.array(promise.slack),
            "thetas": promise.pool.thetas,
            "rows": np.concatenate(rows) if rows else np.empty(0, np.intp),
            "sizes": np.array([len(chosen) for chosen in rows], dtype=np.intp),
        }
    if isinstance(promise, Certified):
        return promise.certificate.to_arrays()
    if promise.wording.name == "first_order":
        return {}
    raise OptionError(
        f"Expected a promise about deletions made by rocerf to save, got {promise.wording.name!r}; "
        "it needs no saving, or cannot be made again from a file."
    )


def restore(promise: Promise, state: dict[str, NDArray[Any]]) -> None:
    """Give a fresh promise what it had learned when it was saved."""
    if isinstance(promise, Retrained) and state:
        promise.slack = float(state["slack"])
        rows = np.split(state["rows"], np.cumsum(state["sizes"])[:-1])
        promise.pool = Pool(state["thetas"], rows)
    elif isinstance(promise, Certified) and state:
        promise.certificate = Certificate.from_arrays(state)
