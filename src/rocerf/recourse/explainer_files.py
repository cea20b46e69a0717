"""An explainer on disk: a folder of plain arrays and JSON, no pickle.

``model.npz`` (the model with its training rows), ``explainer.json`` (the options) and, for promises that learn or
prove, ``promise.npz`` (the pool of retrained models, the certificate, or the simulated models with the margin).
"""

from __future__ import annotations

import importlib
import json
from dataclasses import asdict
from os import PathLike
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from rocerf.data.schema import FeatureSchema
from rocerf.deletion.certificate import Certificate
from rocerf.errors import FileFormatError, OptionError
from rocerf.models.linear_ensemble import LinearEnsemble
from rocerf.models.model import Refittable
from rocerf.promises.certified import Certified
from rocerf.promises.first_order import FirstOrder
from rocerf.promises.local_linear import LocalLinear
from rocerf.promises.own_solver import OwnSolver
from rocerf.promises.promise import Promise
from rocerf.promises.retrained import Pool, Retrained
from rocerf.promises.simulated import Simulated, SimulatedPromise
from rocerf.recourse.cost import CostTable

FILE_FORMAT = "rocerf-explainer/1"

#: Kinds of models that explainers are saved with, and where they are defined.
MODELS = {
    "LogisticModel": "rocerf.models.logistic",
    "NeuralModel": "rocerf.models.neural",
    "EstimatorModel": "rocerf.models.estimator",
}


def write_explainer(
    path: str | PathLike[str],
    model: Refittable,
    options: dict[str, Any],
    schema: FeatureSchema | None,
    promise: Promise,
    table: CostTable | None = None,
) -> None:
    """Write model, options, schema and what the promise has learned into a folder."""
    folder = Path(path)
    folder.mkdir(parents=True, exist_ok=True)
    model.save(folder / "model.npz")
    state = _learned(promise)
    (folder / "promise.npz").unlink(missing_ok=True)  # what another explainer had learned is not this one's
    if state:
        with open(folder / "promise.npz", "wb") as file:
            np.savez_compressed(file, **state)
    about = {
        "format": FILE_FORMAT,
        "model": type(model).__name__,
        "fingerprint": _fingerprint(model),
        "options": options,
        "simulated": asdict(promise.options) if isinstance(promise, SimulatedPromise) else None,
        "schema": None if schema is None else schema.to_dict(),
        "prices": None if table is None else table.to_pairs(),
    }
    (folder / "explainer.json").write_text(json.dumps(about, indent=1), encoding="utf-8")


def read_explainer(
    path: str | PathLike[str],
    model: Refittable | None = None,
) -> tuple[Refittable, dict[str, Any], FeatureSchema | None, dict[str, NDArray[Any]]]:
    """Model, options, schema and the promise's state from a folder; the model may be given instead of read."""
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
    options = about["options"]
    if about.get("prices"):
        options["cost"] = CostTable.from_pairs(about["prices"])
    if about.get("simulated"):
        options["promise"] = Simulated(**about["simulated"])
    if model is not None:
        _refuse_another_model(model, about)
    else:
        model = _model_class(about.get("model", "LogisticModel")).load(folder / "model.npz")
    return model, options, schema, state


def _fingerprint(model: Refittable) -> dict[str, Any]:
    """Enough to know a model again: its rows, and its scores of a few of them."""
    scores = model.score(model.train.X[:: max(1, len(model.train) // 16)][:16])
    return {"data_checksum": model.train.checksum, "scores": [float(score) for score in scores]}


def _refuse_another_model(model: Refittable, about: dict[str, Any]) -> None:
    """What was found or proven about one model says nothing about another."""
    if not isinstance(model, Refittable):
        raise OptionError(
            f"Expected the model that the explainer was saved with, got {type(model).__name__}; a pipeline goes into "
            'LogisticModel.load(path / "model.npz", pipeline=pipeline), and that model here.'
        )
    saved, own = about["fingerprint"], _fingerprint(model)
    same = saved["data_checksum"] == own["data_checksum"] and np.allclose(saved["scores"], own["scores"], atol=1e-6)
    if not same:
        raise FileFormatError(
            "Expected the model that the explainer was saved with, got one with other rows or other scores; "
            "give that model, or make a new explainer for this one."
        )


def _model_class(name: str) -> Any:
    """The class that wrote the model; networks are imported only where there is one."""
    if name not in MODELS:
        raise FileFormatError(f"Expected a model of kind {', '.join(MODELS)}, got {name!r}; save the explainer again.")
    return getattr(importlib.import_module(MODELS[name]), name)


def _learned(promise: Promise) -> dict[str, Any]:
    if isinstance(promise, OwnSolver):
        return {**_learned(promise.inner), **promise.to_arrays()}
    if isinstance(promise, Retrained):
        rows = promise.pool.deleted_rows
        return {
            "slack": np.array(promise.slack),
            "slopes": promise.pool.models.slopes,
            "constants": promise.pool.models.constants,
            "rows": np.concatenate(rows) if rows else np.empty(0, np.intp),
            "sizes": np.array([len(chosen) for chosen in rows], dtype=np.intp),
        }
    if isinstance(promise, Certified):
        return promise.certificate.to_arrays()
    if isinstance(promise, SimulatedPromise):
        return promise.to_arrays()
    if isinstance(promise, FirstOrder) or (isinstance(promise, LocalLinear) and promise.sampling == "widened"):
        return {}
    if isinstance(promise, LocalLinear):
        raise OptionError(
            f"Expected the promise 'local_linear' with sampling='widened' to save, got sampling={promise.sampling!r}, "
            "which follows the paper's code and is made anew; make the explainer again instead."
        )
    raise OptionError(
        f"Expected a promise about deletions made by rocerf to save, got {promise.wording.name!r}; "
        "it needs no saving, or cannot be made again from a file."
    )


def restore(promise: Promise, state: dict[str, NDArray[Any]]) -> None:
    """Give a fresh promise what it had learned when it was saved."""
    if isinstance(promise, OwnSolver):
        promise.from_arrays(state)
        restore(promise.inner, state)
    elif isinstance(promise, Retrained) and "slopes" in state:
        promise.slack = float(state["slack"])
        rows = np.split(state["rows"], np.cumsum(state["sizes"])[:-1])
        promise.pool = Pool(LinearEnsemble(state["slopes"], state["constants"]), rows)
    elif isinstance(promise, SimulatedPromise) and state:
        promise.from_arrays(state)
    elif isinstance(promise, Certified) and state:
        promise.certificate = Certificate.from_arrays(state)
