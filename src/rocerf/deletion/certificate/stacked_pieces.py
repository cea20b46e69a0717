"""Many sharp pieces at once: the cheap bound of all of them at a point costs little more than that of one."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from rocerf.deletion.certificate.bound_pieces import Piece, Rows, SharpPiece, Zetas, a_hair_lower
from rocerf.deletion.certificate.matrices import lengths
from rocerf.types import Array

#: Fewer pieces with the same k than this are asked one by one.
_WORTH_STACKING = 8
_FACTORS = (0.0, 0.6, 1.0, 1.6, 3.0)


class SharpStack:
    """Sharp pieces with the same k; :meth:`cheap_lower` is what each piece's own would say, or a little higher."""

    def __init__(self, pieces: Sequence[SharpPiece], rows: Rows):
        self.pieces, self.design = pieces, rows.design
        self.thetas = np.stack([piece.theta for piece in pieces])
        self.to_a = np.stack([piece.to_a for piece in pieces])
        self.to_d = np.stack([piece.to_d for piece in pieces])
        self.residual = np.stack([-rows.sign * piece.residual for piece in pieces])
        self.pull = np.stack([piece.pull for piece in pieces])
        scalars = np.array([(p.pull_coupling / 4, p.gamma_d, p.g0_a, p.g0_d) for p in pieces])
        pull_coupling, gamma_d, self.g0_a, self.g0_d = scalars.T
        coupled = np.stack([piece.coupled for piece in pieces]) / 4
        self.zetas = Zetas(coupled, pull_coupling, gamma_d, pieces[0].k, _FACTORS)

    def cheap_lower(self, points: Array) -> Array:
        """Lower bounds of every piece's ``lower`` at every point, shape (pieces, P)."""
        return np.stack([self._at(point) for point in points], axis=1)

    def _at(self, point: Array) -> Array:
        white = point @ self.to_a  # (pieces, p)
        size, r = lengths(white), lengths(point @ self.to_d)
        image = np.einsum("fpq,fq->fp", self.to_a, white)
        linear = (image @ self.design.T) * self.residual
        shift = -np.einsum("fp,fp->f", image, self.pull)
        lower = self.thetas @ point - self.zetas.drop(linear, shift, r) - r * self.g0_d / 2 - size * self.g0_a
        lower -= [float(piece.rounding(*sizes)) for piece, *sizes in zip(self.pieces, size, r, strict=True)]
        return a_hair_lower(lower)


class Fears:
    """A cheap lower bound of every piece of a certificate at every point."""

    def __init__(self, pieces: Sequence[Piece], rows: Rows):
        self.pieces, self.rows = pieces, rows
        by_k: dict[int, list[int]] = {}
        for at, piece in enumerate(pieces):
            if isinstance(piece, SharpPiece):
                by_k.setdefault(piece.k, []).append(at)
        many = [at for at in by_k.values() if len(at) >= _WORTH_STACKING]
        self.stacks = [(at, SharpStack([pieces[i] for i in at], rows)) for at in many]  # type: ignore[misc]
        self.single = sorted({*range(len(pieces))}.difference(*many))

    def at(self, points: Array) -> Array:
        """Cheap lower bounds, shape (pieces, P)."""
        fears = np.empty((len(self.pieces), len(points)))
        for at, stack in self.stacks:
            fears[at] = stack.cheap_lower(points)
        for single in self.single:
            fears[single] = self.pieces[single].cheap_lower(points, self.rows)
        return fears
