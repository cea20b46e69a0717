"""The folder with files of the paper's own code, which are not shipped: the environment variable ROCERF_AUTHORS_CODE.

It is a copy of the repository AI4LIFE-GROUP/rocerf_code (commit 7f0a1160), or a folder with the few files that are
read: the training table of COMPAS as ``compas-train-oversampled.csv``, and autoencoder weights as
``vae_{german,compas,adult}_rr_cfe.npz``. Nothing is looked for elsewhere.
"""

from __future__ import annotations

import os
from pathlib import Path

VARIABLE = "ROCERF_AUTHORS_CODE"
REPOSITORY = "https://github.com/AI4LIFE-GROUP/rocerf_code"

#: Where a copy of it has the weights.
SAVED = "src/Recourse_Methods/Generative_Model/Saved_Models"


def authors_folder() -> Path | None:
    """The folder that the variable names, whether it exists or not; None where it is not set."""
    named = os.environ.get(VARIABLE)
    return Path(named).expanduser() if named else None


def authors_file(*names: str) -> Path | None:
    """The first of these files, relative to the folder, that is there; None if none is."""
    folder = authors_folder()
    there = [] if folder is None else [folder / name for name in names if (folder / name).is_file()]
    return there[0] if there else None


def weights_file(table: str) -> Path | None:
    """The file with the autoencoder's weights for ``german``, ``compas`` or ``adult``; None where it is not there."""
    name = f"vae_{table}_rr_cfe"
    return authors_file(f"{name}.npz", f"{name}.pt", f"{SAVED}/{name}.pt")


def why_missing(what: str) -> str:
    """What to do about a file that was not found.

    >>> "ROCERF_AUTHORS_CODE" in why_missing("weights")
    True
    """
    folder = authors_folder()
    got = f"{VARIABLE} is not set" if folder is None else f"{VARIABLE} names {folder}, which has none"
    return (
        f"Expected {what} of the paper's code, which is not shipped with rocerf, got none ({got}); copy {REPOSITORY} "
        f"and set the environment variable {VARIABLE} to its folder."
    )
