"""Many sharp pieces at once: the cheap bound of all of them at a point costs little more than that of one."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from rocerf.deletion.certificate.bound_pieces import Piece, Rows, SharpPiece
from rocerf.deletion.certificate.curvature_bounds import Indices
from rocerf.deletion.certificate.group_sums import largest_values
from rocerf.types import Array

#: Fewer pieces with the same k than this are asked one by one.
_WORTH_STACKING = 8
#: Multiples of ``r / Gamma_D`` at which zeta is tried; 0 and any positive number give valid bounds.
_FACTORS = (0.0, 0.6, 1.0, 1.6, 3.0)


class SharpStack:
    """Sharp pieces with the same k; :meth:`cheap_lower` is what each piece's own would say, or a little higher."""

    def __init__(self, pieces: Sequence[SharpPiece], rows: Rows):
        self.k = pieces[0].k
        self.design = rows.design
        self.thetas = np.stack([piece.theta for piece in pieces])
        self.to_a = np.stack([piece.to_a for piece in pieces])
        self.to_d = np.stack([piece.to_d for piece in pieces])
        self.residual = np.stack([-rows.sign * piece.residual for piece in pieces])
        self.coupled = np.stack([piece.coupled for piece in pieces]) / 4
        self.pull = np.stack([piece.pull for piece in pieces])
        self.pieces = pieces
        scalars = np.array([(p.pull_coupling / 4, p.gamma_d, p.g0_a, p.g0_d) for p in pieces])
        self.pull_coupling, self.gamma_d, self.g0_a, self.g0_d = scalars.T

    def cheap_lower(self, points: Array) -> Array:
        """Lower bounds of every piece's ``lower`` at every point, shape (pieces, P)."""
        return np.stack([self._at(point) for point in points], axis=1)

    def _at(self, point: Array) -> Array:
        white = point @ self.to_a  # (pieces, p)
        size, r = np.linalg.norm(white, axis=1), np.linalg.norm(point @ self.to_d, axis=1)
        image = np.einsum("fpq,fq->fp", self.to_a, white)
        linear = (image @ self.design.T) * self.residual
        shift = -np.einsum("fp,fp->f", image, self.pull)
        drop = np.full(len(r), np.inf)
        for factor in _FACTORS:
            zeta = factor * r / self.gamma_d
            moved = shift + zeta * self.pull_coupling
            top = largest_values(linear + zeta[:, None] * self.coupled, self.k)
            terms = np.maximum(top + np.minimum(moved, 0.0)[:, None], 0.0).sum(axis=1)
            share = 0.5 - factor / 4 if factor <= 1 else 0.25 / factor  # psi at this zeta, over r Gamma_D
            drop = np.minimum(drop, terms + self.k * np.maximum(moved, 0.0) + r * self.gamma_d * share)
        lower = self.thetas @ point - drop - r * self.g0_d / 2 - size * self.g0_a
        lower -= [float(piece.rounding(*sizes)) for piece, *sizes in zip(self.pieces, size, r, strict=True)]
        # A hair lower, so that a piece is never skipped because of rounding.
        return np.asarray(lower - 1e-9 * (1 + np.abs(lower)))


class Fears:
    """A cheap lower bound of every piece of a certificate at every point."""

    def __init__(self, pieces: Sequence[Piece], rows: Rows):
        self.pieces, self.rows = pieces, rows
        by_k: dict[int, list[int]] = {}
        for at, piece in enumerate(pieces):
            if isinstance(piece, SharpPiece):
                by_k.setdefault(piece.k, []).append(at)
        many: list[Indices] = [np.array(at, dtype=np.intp) for at in by_k.values() if len(at) >= _WORTH_STACKING]
        sharp = {at: piece for at, piece in enumerate(pieces) if isinstance(piece, SharpPiece)}
        self.stacks = [(at, SharpStack([sharp[i] for i in at.tolist()], rows)) for at in many]
        stacked = {i for at in many for i in at.tolist()}
        self.single = [at for at in range(len(pieces)) if at not in stacked]

    def at(self, points: Array) -> Array:
        """Cheap lower bounds, shape (pieces, P)."""
        fears = np.empty((len(self.pieces), len(points)))
        for at, stack in self.stacks:
            fears[at] = stack.cheap_lower(points)
        for single in self.single:
            fears[single] = self.pieces[single].cheap_lower(points, self.rows)
        return fears
