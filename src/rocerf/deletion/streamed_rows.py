"""Training rows as a model's design sees them, made when they are asked for: a chunk, or some rows by their numbers.

Whoever receives them pickled finds the rows for itself where these are on the disk
(:mod:`rocerf.data.disk_rows`).
"""

from __future__ import annotations

import uuid
from collections import OrderedDict
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from threading import Lock
from typing import Any

import numpy as np

from rocerf.data.disk_rows import CHUNK
from rocerf.deletion.threshold_pass import block_rows
from rocerf.models.design import AnyDesign
from rocerf.models.logistic.curvature import Curvature
from rocerf.models.logistic.objective import LogisticObjective
from rocerf.models.loss import Loss
from rocerf.passes import Room, chunks
from rocerf.storage.scratch import Scratch
from rocerf.types import Array, Places

#: Rows of a chunk of a pass.
LONG_CHUNK = CHUNK


@dataclass(frozen=True, eq=False)
class StreamedRows:
    """Design rows ``x~`` (n, p) of an objective, their signs ``e = 1 - 2 y`` and weights; indexed as an array is."""

    X: Any
    y: Any
    given_weights: Array | None
    design: AnyDesign
    loss: Loss

    @classmethod
    def of(cls, objective: LogisticObjective) -> StreamedRows:
        """The rows of an objective."""
        return cls(objective.X, objective.y, objective.weights, objective.design, objective.loss)

    def __len__(self) -> int:
        return len(self.y)

    @property
    def shape(self) -> tuple[int, int]:
        """Rows and parameters."""
        return len(self.y), self.design.width

    def __getitem__(self, rows: slice | Places) -> Array:
        """Design rows of a chunk, or of row numbers of any shape (...); (..., p)."""
        found = self.X[rows]
        flat = self.design(found.reshape(-1, found.shape[-1]))
        return flat.reshape(*found.shape[:-1], self.design.width)

    def sign(self, rows: slice | Places) -> Array:
        """Their signs, (...)."""
        return np.asarray(1.0 - 2.0 * np.asarray(self.y[rows]))

    def weight(self, rows: slice | Places) -> Array | float:
        """Their weights, (...), or 1."""
        return 1.0 if self.given_weights is None else self.given_weights[rows]

    def blocks(self, rows: slice, people: int) -> Iterator[tuple[slice, Array, Array, Array | float]]:
        """Which rows, ``x~``, ``e`` and w of a chunk, in blocks that stay in cache with a number for each person.

        The next block is written over the design rows of the last.
        """
        given, labels, room = self.X[rows], np.asarray(self.y[rows]), Room()
        for part in chunks(len(given), block_rows(people)):
            own = slice(rows.start + part.start, rows.start + part.stop)
            x = self.design(given[part], out=room("x", part.stop - part.start, self.design.width))
            yield own, x, 1.0 - 2.0 * labels[part], self.weight(own)


class Lengths:
    """``x_i'H^-1 x_i`` of rows at a model with this curvature; those of a walk are kept, as the next one asks again.

    Rows on the disk have theirs on the disk. Whoever receives them pickled keeps those that it comes across.
    """

    def __init__(self, whitening: Array, rows: int, on_disk: bool, token: str = "") -> None:
        self.whitening, self.on_disk, self.token = whitening, on_disk, token or uuid.uuid4().hex
        self._kept = Scratch((rows,), np.float64) if on_disk else None
        self._values = np.zeros(rows) if self._kept is None else self._kept.values

    @classmethod
    def of(cls, curvature: Curvature, rows: int, *, on_disk: bool) -> Lengths:
        """In the norm of a curvature."""
        return cls(np.ascontiguousarray(curvature.whiten(np.eye(curvature.width))), rows, on_disk)

    def __reduce__(self) -> tuple[Any, ...]:
        return _received, (self.token, self.whitening, len(self._values), self.on_disk)

    def __call__(self, x: Array) -> Array:
        """Of design rows (m, p); (m,)."""
        white = x @ self.whitening
        return np.asarray(np.einsum("ij,ij->i", white, white))

    def of_block(self, rows: slice, x: Array) -> Array:
        """Of neighbouring rows, which are these; (m,)."""
        known = self._values[rows]
        if not known.all():  # 0 as long as nobody asked
            known = self(x)
            if self._kept is None:
                self._values[rows] = known
            else:
                self._kept.write(rows.start, known)
        return known


#: The last lengths that came from other processes, and how many of them are kept.
_RECEIVED: OrderedDict[str, Lengths] = OrderedDict()
_OPENING = Lock()
KEPT = 4


def _received(token: str, whitening: Array, rows: int, on_disk: bool) -> Lengths:
    """Lengths that were sent here: those at hand, with what is known of them, or new ones."""
    with _OPENING:
        if token not in _RECEIVED:
            _RECEIVED[token] = Lengths(whitening, rows, on_disk, token)
            while len(_RECEIVED) > KEPT:
                _RECEIVED.popitem(last=False)
        return _RECEIVED[token]


class RowArray:
    """Stands where an array with a number for each row would, and computes those that are asked for."""

    def __init__(self, made: Callable[[Any], Any], rows: int) -> None:
        self._made, self._rows = made, rows

    def __len__(self) -> int:
        return self._rows

    def __getitem__(self, rows: slice | Places) -> Array:
        shape = len(range(*rows.indices(self._rows))) if isinstance(rows, slice) else np.shape(rows)
        return np.broadcast_to(self._made(rows), shape)
