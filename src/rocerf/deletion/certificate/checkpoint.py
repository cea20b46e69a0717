"""Finished branches of a proof, kept in a folder so that an interrupted proof goes on where it stopped."""

from __future__ import annotations

import hashlib
import os
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from rocerf.deletion.certificate.bound_pieces import Piece, piece_from_arrays, piece_to_arrays
from rocerf.deletion.certificate.options import Options
from rocerf.deletion.certificate.problem import Problem
from rocerf.storage.state import State

#: Raised whenever pieces or the way branches are chosen change: branches kept by other code are not taken over.
_FORMAT = "rocerf-branch/1"


class Checkpoint:
    """One file for each finished branch; the name says which problem, options and code it belongs to.

    Without a folder nothing is kept. A file that cannot be read counts as absent: its branch is proven again.
    """

    def __init__(self, folder: str | os.PathLike[str] | None, problem: Problem, options: Options):
        self.folder = None if folder is None else Path(folder)
        self.name = "" if folder is None else _fingerprint(problem, options)

    def load(self, at: int) -> list[Piece] | None:
        """The pieces of branch ``at``, if they were kept."""
        path = self._path(at)
        if path is None or not path.exists():
            return None
        try:
            state = State.read(path, _FORMAT, "Checkpoint.save")
            if state.values["problem"] != self.name or state.values["branch"] != at:
                return None
            return [piece_from_arrays(state.arrays, f"piece{i}_") for i in range(int(state.values["count"]))]
        except Exception:  # a damaged file may raise anything; the branch is proven again
            return None

    def save(self, at: int, pieces: list[Piece]) -> None:
        """Keep the pieces of branch ``at``; the file appears whole or not at all, for its owner only."""
        path = self._path(at)
        if path is None:
            return
        path.parent.mkdir(parents=True, exist_ok=True)
        arrays: dict[str, NDArray[Any]] = {}
        for i, piece in enumerate(pieces):
            arrays |= piece_to_arrays(piece, f"piece{i}_")
        State(_FORMAT, {"problem": self.name, "branch": at, "count": len(pieces)}, arrays).write(path)

    def _path(self, at: int) -> Path | None:
        return None if self.folder is None else self.folder / f"{self.name[:20]}-{at}.npz"


def _fingerprint(problem: Problem, options: Options) -> str:
    """A checksum of everything that the branches follow from."""
    sha = hashlib.sha256(repr((_FORMAT, problem.k, options.spread_goal, options.looser_goals, options.effort)).encode())
    for name in ("design", "sign", "weight", "theta", "penalty", "row_penalty", "deletable"):
        array = np.ascontiguousarray(getattr(problem, name))
        sha.update(f"{name} {array.shape} {array.dtype}".encode())
        sha.update(array.tobytes())
    return sha.hexdigest()
