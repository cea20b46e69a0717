"""An explainer on disk: a folder of plain arrays and JSON, no pickle.

``model.npz`` (the model with its training rows), ``promise.npz`` (which model and how many deletions the promise is
about, and what it has learned or proven: the pool of retrained models, the certificate, or the simulated models with
the margin) and ``explainer.json`` (the options, and the checksums of the others). The folder is written in one step,
after everything has been computed, and is its owner's only: all training rows are in it. What is read must match its
checksums, and what was learned or proven must be about the model at hand, in full.
"""

from __future__ import annotations

import json
from collections.abc import Collection, Mapping
from os import PathLike
from pathlib import Path
from typing import Any

from rocerf.explainer.states import FORMAT
from rocerf.promises.promise import STATE_FORMAT
from rocerf.storage.reading import told_as
from rocerf.storage.seals import SEAL, check_seal, sealed, sha256_of
from rocerf.storage.state import State
from rocerf.storage.whole_file import write_text
from rocerf.storage.whole_folder import check_replaceable, read_folder, write_folder

FORMER_FORMAT = "rocerf-explainer/1"

#: The files of an explainer, the list of the others first; no folder that holds anything else is replaced.
MANIFEST, MODEL, PROMISE = FILES = ("explainer.json", "model.npz", "promise.npz")


def write_states(path: str | PathLike[str], states: Mapping[str, State]) -> None:
    """Write model, options and what the promise has learned into a folder, in one step."""
    document = json.loads(json.dumps({"format": FORMAT, **states["options"].values}))

    def fill(folder: Path) -> None:
        states["model"].write(folder / MODEL)
        states["promise"].write(folder / PROMISE)
        document["files"] = {name: sha256_of((folder / name).read_bytes()) for name in (MODEL, PROMISE)}
        write_text(folder / MANIFEST, json.dumps(sealed(document), indent=1), private=True)

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
        if about["format"] != FORMAT:
            return ()
        check_seal(about)
        listed = [name for name in about["files"] if name in contents]
        return [MANIFEST, *(name for name in listed if sha256_of(contents[name]) == about["files"][name])]
    except Exception:  # whatever it is, it is no list of ours
        return ()


def read_states(path: str | PathLike[str]) -> dict[str, State]:
    """The states of a folder; files that are missing or changed are refused."""
    folder = Path(path)
    advice = "check the path, or save the explainer again with this version"
    with told_as(f"a folder written by Rocerf.save ({FORMAT})", f"{folder} which is not", advice):
        contents, about = _checked(folder)
        promise = State.from_bytes(contents[PROMISE], STATE_FORMAT)
        if promise.values["promise"] != about["options"]["promise"]:
            raise ValueError(f"its {PROMISE} is about the promise {promise.values['promise']!r}")
    model = State.from_bytes(contents[MODEL], source=str(folder / MODEL))
    options = {name: value for name, value in about.items() if name not in ("format", "files", SEAL)}
    return {"options": State(FORMAT, options, source=str(folder)), "promise": promise, "model": model}


def _checked(folder: Path) -> tuple[Mapping[str, bytes], dict[str, Any]]:
    """The files of a folder, all of one moment, and its list of them, which they match."""
    contents = read_folder(folder, FILES)
    if MANIFEST not in contents:
        raise FileNotFoundError(f"it has no {MANIFEST}")
    about = json.loads(contents[MANIFEST].decode("utf-8"))
    if about["format"] != FORMAT:
        raise ValueError(f"its format is {about['format']!r}, which said less about itself")
    check_seal(about)
    for name in (MODEL, PROMISE):
        if name not in contents:
            raise ValueError(f"its {name} is missing")
        if sha256_of(contents[name]) != about["files"][name]:
            raise ValueError(f"its {name} is damaged, or was changed or replaced after the explainer was saved")
    return contents, about
