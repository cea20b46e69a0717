"""An explainer on disk: a folder of plain arrays and JSON, no pickle.

``model.npz`` (the model with its training rows), ``promise.npz`` (which model and how many deletions the promise is
about, and what it has learned or proven: the pool of retrained models, the certificate, or the simulated models with
the margin) and ``explainer.json`` (the options, and the checksums of the others). The folder is written in one step,
after everything has been computed, and is its owner's only: all training rows are in it. What is read must match its
checksums, and what was learned or proven must be about the model at hand, in full.
"""

from __future__ import annotations

import importlib
import json
from collections.abc import Collection, Mapping
from dataclasses import asdict
from os import PathLike
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from rocerf.data.schema import FeatureSchema
from rocerf.deletion.certificate import Certificate
from rocerf.deletion.certificate.about import CertifiedAbout
from rocerf.errors import FileFormatError, OptionError
from rocerf.models.identity import Identity
from rocerf.models.logistic.ensemble import LinearEnsemble
from rocerf.models.model import Refittable
from rocerf.promises.certified import Certified
from rocerf.promises.first_order import FirstOrder
from rocerf.promises.local_linear import LocalLinear
from rocerf.promises.own_solver import OwnSolver
from rocerf.promises.promise import Promise
from rocerf.promises.retrained import Pool, Retrained
from rocerf.promises.simulated import Simulated, SimulatedPromise
from rocerf.recourse.costs.prices import CostTable
from rocerf.storage.reading import FileRead, arrays_and_about, packed_arrays, told_as
from rocerf.storage.seals import check_seal, sealed, sha256_of
from rocerf.storage.whole_file import write_bytes, write_text
from rocerf.storage.whole_folder import check_replaceable, read_folder, write_folder
from rocerf.version import __version__

FILE_FORMAT, FORMER_FORMAT = "rocerf-explainer/2", "rocerf-explainer/1"

PROMISE_FORMAT = "rocerf-promise/1"

#: The files of an explainer, the list of the others first; no folder that holds anything else is replaced.
MANIFEST, MODEL, PROMISE = FILES = ("explainer.json", "model.npz", "promise.npz")

#: Kinds of models that explainers are saved with, and where they are defined.
MODELS = {
    "LogisticModel": "rocerf.models.logistic.model",
    "NeuralModel": "rocerf.models.network.model",
    "EstimatorModel": "rocerf.models.sklearn.estimator",
}


def write_explainer(
    path: str | PathLike[str],
    model: Refittable,
    options: dict[str, Any],
    schema: FeatureSchema | None,
    promise: Promise,
    table: CostTable | None = None,
) -> None:
    """Write model, options, schema and what the promise has learned into a folder, in one step."""
    learned = _learned(promise)  # proves what is to be proven: before anything is written
    identity = Identity.of(model, promise.k)
    about = {"version": __version__, "promise": promise.wording.name, "values": identity.values}
    arrays = {f"about {name}": values for name, values in identity.arrays.items()} | learned
    state = packed_arrays(PROMISE_FORMAT, about, arrays)
    document = {
        "format": FILE_FORMAT,
        "version": __version__,
        "model": type(model).__name__,
        "options": options,
        "simulated": asdict(promise.options) if isinstance(promise, SimulatedPromise) else None,
        "schema": None if schema is None else schema.to_dict(),
        "prices": None if table is None else table.to_pairs(),
    }
    plain = json.loads(json.dumps(document))

    def fill(folder: Path) -> None:
        model.save(folder / MODEL)
        write_bytes(folder / PROMISE, state, private=True)
        plain["files"] = {name: sha256_of((folder / name).read_bytes()) for name in (MODEL, PROMISE)}
        write_text(folder / MANIFEST, json.dumps(sealed(plain), indent=1), private=True)

    write_folder(path, fill, known=FILES, ours=_ours)


def check_folder(path: str | PathLike[str]) -> None:
    """Refuse a folder into which no explainer would be written, before the work that is to be saved there."""
    check_replaceable(path, FILES, _ours)


def _ours(contents: Mapping[str, bytes]) -> Collection[str]:
    """Of the files of a folder, those that its list, if it is one of ours, knows as they are.

    The first format listed no files: there, names must do.
    """
    try:
        about = json.loads(contents[MANIFEST].decode("utf-8"))
        if about["format"] == FORMER_FORMAT:
            return FILES
        if about["format"] != FILE_FORMAT:
            return ()
        check_seal(about)
        listed = [name for name in about["files"] if name in contents]
        return [MANIFEST, *(name for name in listed if sha256_of(contents[name]) == about["files"][name])]
    except Exception:  # whatever it is, it is no list of ours
        return ()


def read_explainer(
    path: str | PathLike[str],
    model: Refittable | None = None,
) -> tuple[Refittable, dict[str, Any], FeatureSchema | None, dict[str, NDArray[Any]]]:
    """Model, options, schema and the promise's state from a folder; the model may be given instead of read.

    Files that are missing or changed are refused, and a model that is not the one the promise is about.
    """
    if model is not None and not isinstance(model, Refittable):
        raise OptionError(
            f"Expected the model that the explainer was saved with, got {type(model).__name__}; a pipeline goes into "
            'LogisticModel.load(path / "model.npz", pipeline=pipeline), and that model here.'
        )
    folder = Path(path)
    advice = "check the path, or save the explainer again with this version"
    with told_as(f"a folder written by Rocerf.save ({FILE_FORMAT})", f"{folder} which is not", advice):
        contents, about = _checked(folder)
        arrays, told = arrays_and_about(FileRead(folder / PROMISE, contents[PROMISE]), PROMISE_FORMAT)
        schema = None if about["schema"] is None else FeatureSchema.from_dict(about["schema"])
        options = about["options"]
        if told["promise"] != options["promise"]:
            raise ValueError(f"its {PROMISE} is about the promise {told['promise']!r}")
        if about["prices"]:
            options["cost"] = CostTable.from_pairs(about["prices"])
        if about["simulated"]:
            options["promise"] = Simulated(**about["simulated"])
        kind = _model_class(about["model"])
    if model is None:
        model = kind.load(FileRead(folder / MODEL, contents[MODEL]))
        assert model is not None
    saved = {name.removeprefix("about "): values for name, values in arrays.items() if name.startswith("about ")}
    difference = Identity(told["values"], saved).difference(Identity.of(model, options["k"]))
    if difference is not None:
        raise FileFormatError(
            f"Expected the model that the explainer was saved with, got one with {difference}: what was found or "
            "proven about one says nothing about another; give that model, or make a new explainer for this one."
        )
    return model, options, schema, {name: values for name, values in arrays.items() if not name.startswith("about ")}


def _checked(folder: Path) -> tuple[Mapping[str, bytes], dict[str, Any]]:
    """The files of a folder, all of one moment, and its list of them, which they match."""
    contents = read_folder(folder, FILES)
    if MANIFEST not in contents:
        raise FileNotFoundError(f"it has no {MANIFEST}")
    about = json.loads(contents[MANIFEST].decode("utf-8"))
    if about["format"] != FILE_FORMAT:
        raise ValueError(f"its format is {about['format']!r}, which said less about itself")
    check_seal(about)
    for name in (MODEL, PROMISE):
        if name not in contents:
            raise ValueError(f"its {name} is missing")
        if sha256_of(contents[name]) != about["files"][name]:
            raise ValueError(f"its {name} is damaged, or was changed or replaced after the explainer was saved")
    return contents, about


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
    """Give a fresh promise what it had learned when it was saved; a proof about anything else is refused."""
    if isinstance(promise, OwnSolver):
        promise.from_arrays(state)
        restore(promise.inner, state)
    elif isinstance(promise, Retrained) and "slopes" in state:
        promise.slack = float(state["slack"])
        rows = np.split(state["rows"], np.cumsum(state["sizes"])[:-1])
        promise.pool = Pool(LinearEnsemble(state["slopes"], state["constants"]), rows)
    elif isinstance(promise, SimulatedPromise) and state:
        promise.from_arrays(state)
    elif isinstance(promise, Certified):
        promise.certificate = _proof_about(promise, state)


def _proof_about(promise: Certified, state: dict[str, NDArray[Any]]) -> Certificate:
    with told_as("a proof to be in the explainer's folder", "none", "save the explainer again"):
        certificate = Certificate.from_arrays(state)
    own = CertifiedAbout.of(promise.model, promise.k)
    difference = "nothing said about it" if certificate.about is None else certificate.about.difference(own)
    if difference is not None:
        raise FileFormatError(
            f"Expected a proof about this model, {promise.k} deletions and this version of rocerf, got one about "
            f"{difference}; make the explainer again and save it."
        )
    return certificate
