"""The result of a proof: a concave lower bound of the score over all deletions of at most k rows.

A certificate is a list of pieces; each covers part of the deletions, together they cover all of them, and the bound is
their minimum, a concave function of x. The mathematics is in docs/certificate.md.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property
from typing import Any

import numpy as np
from numpy.typing import NDArray

from rocerf.deletion.certificate.about import FORMAT, CertifiedAbout
from rocerf.deletion.certificate.bound_pieces import Piece, Rows, piece_from_arrays, piece_to_arrays
from rocerf.deletion.certificate.stacked_pieces import Fears
from rocerf.errors import ModelError
from rocerf.storage.state import State
from rocerf.types import Array, Places


@dataclass(frozen=True)
class Certificate:
    """What :func:`~rocerf.deletion.certificate.certify` proved; plain arrays throughout.

    ``closed`` is false where there is no proof; ``reason`` then says why. Points are *design rows*: scaled columns,
    then 1 if there is an intercept.
    """

    closed: bool
    reason: str
    k: int
    version: str  # "exact", "sharp", "simple", "branched", "cells" or ""
    rows: Rows
    theta: Array
    pieces: tuple[Piece, ...]
    seconds: float = 0.0
    about: CertifiedAbout | None = None  # what was proven about; without it a certificate is not kept

    def lower(self, points: Array) -> Array:
        """Proven lower bounds of ``x'theta_S`` over all deletions, shape (P,); -inf if not closed."""
        return self._worst(np.atleast_2d(points))[0]

    def drop(self, points: Array) -> Array:
        """Upper bounds of how far the score ``x'theta`` can fall, shape (P,); inf if not closed."""
        points = np.atleast_2d(points)
        return points @ self.theta - self.lower(points)

    def value_and_cut(self, points: Array) -> tuple[Array, Array]:
        """The proven lower bounds (P,) and slopes of cutting planes (P, p) of that concave function.

        ``values[i] + slopes[i] @ (x - points[i])`` is at least the lower bound at every ``x``, up to the rounding
        margin (about 1e-10 of the sizes involved) that is already taken off the values.
        """
        points = np.atleast_2d(points)
        if not self.closed:
            raise ModelError(f"Expected a certificate that closes, got none: {self.reason}; ask for fewer deletions.")
        values, worst = self._worst(points)
        cuts = [self.pieces[at].linearise(x, self.rows)[1] for at, x in zip(worst, points, strict=True)]
        return values, np.array(cuts).reshape(points.shape)

    @cached_property
    def _fears(self) -> Fears:
        """Cheap bounds of all pieces, to skip those that cannot be the smallest."""
        return Fears(self.pieces, self.rows)

    def _worst(self, points: Array) -> tuple[Array, Places]:
        """Minimise over the pieces, skipping those that cannot be the smallest."""
        best = np.full(len(points), np.inf)
        worst = np.zeros(len(points), dtype=np.intp)
        if not self.closed:
            return -best, worst
        if len(self.pieces) == 1:
            return self.pieces[0].lower(points, self.rows), worst
        fears = self._fears.at(points)
        for at, point in enumerate(points):
            for which in np.argsort(fears[:, at]):
                if fears[which, at] >= best[at]:
                    break
                value = float(self.pieces[which].lower(point[None], self.rows)[0])
                if value < best[at]:
                    best[at], worst[at] = value, which
        return best, worst

    def state(self) -> State:
        """The proof with what it is about, in arrays alone."""
        if self.about is None:
            raise ModelError(
                "Expected a certificate that says what it is about, got one that does not; use certify_model."
            )
        arrays: dict[str, NDArray[Any]] = {
            **self.about.state().arrays,
            "closed": np.array(self.closed),
            "reason": np.array(self.reason),
            "way": np.array(self.version),
            "count": np.array(len(self.pieces)),
            "seconds": np.array(self.seconds),
        }
        for at, piece in enumerate(self.pieces):
            arrays |= piece_to_arrays(piece, f"piece{at}_")
        return State(FORMAT, {}, arrays)

    @classmethod
    def from_state(cls, state: State) -> Certificate:
        """The inverse of :meth:`state`; further arrays are left aside."""
        arrays, about = state.arrays, CertifiedAbout.from_state(state)
        return cls(
            closed=bool(arrays["closed"]),
            reason=str(arrays["reason"]),
            k=about.k,
            version=str(arrays["way"]),
            rows=Rows(about.design, about.sign),
            theta=about.theta,
            pieces=tuple(piece_from_arrays(arrays, f"piece{at}_") for at in range(int(arrays["count"]))),
            seconds=float(arrays["seconds"]),
            about=about,
        )
