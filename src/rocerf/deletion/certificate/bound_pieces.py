"""Concave lower bounds of the score after a deletion: the pieces a certificate is made of.

Every piece covers some family of deletions and offers

- ``lower(points)``: a lower bound of ``x'theta_S`` for every S of its family;
- ``linearise(point)``: ``(value, slope)`` such that ``value + slope'(x' - x)`` is at least the piece's concave bound at
  every ``x'`` (a cutting plane);
- ``cheap_lower(points)``: a cheap lower bound of ``lower``, to skip pieces that cannot matter.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, fields
from typing import Any

import numpy as np
from numpy.typing import NDArray

from rocerf.deletion.certificate.group_sums import SUM_TOLERANCE, largest_values
from rocerf.deletion.certificate.matrices import gram, length, lengths
from rocerf.passes import SERIAL, chunks, each
from rocerf.types import Array, Places

_BISECTIONS = 48
_BLOCK_ENTRIES = 2_000_000


@dataclass(frozen=True)
class Rows:
    """What all pieces share: the design and the label signs."""

    design: Array  # (n, p)
    sign: Array  # (n,), 1 - 2 y


@dataclass(frozen=True)
class CutsPiece:
    """Retrained models, each within ``error`` (in the norm ``|x @ to_norm|``) of its optimum."""

    thetas: Array  # (m, p)
    error: Array  # (m,)
    to_norm: Array  # (p, p)

    def lower(self, points: Array, rows: Rows) -> Array:
        """The bound at each point."""
        size = lengths(points @ self.to_norm)

        def of_block(part: slice) -> Array:
            return np.asarray((points[part] @ self.thetas.T - np.outer(size[part], self.error)).min(axis=1))

        return _in_blocks(of_block, len(points), len(self.thetas))

    cheap_lower = lower

    def linearise(self, point: Array, rows: Rows) -> tuple[float, Array]:
        """Value and slope of a cutting plane at one point."""
        white = point @ self.to_norm
        size = length(white)
        values = self.thetas @ point - size * self.error
        worst = int(np.argmin(values))
        direction = self.to_norm @ white / size if size > 0 else np.zeros_like(point)
        return float(values[worst]), self.thetas[worst] - self.error[worst] * direction


@dataclass(frozen=True)
class SharpPiece:
    """The sharp bound (3) at sign minus, minimised over ``zeta = 1/eta``.

    With ``r = |x|_D`` the bound of the drop is ``min over zeta >= 0`` of

        top-k_j[ (-w_j'Ax + zeta c_j/4)_+ + s(x) + zeta h/4 ]_+ + psi(r, zeta)
        + r |g0|_D / 2 + |x|_A |g0|_A,

    ``w_j = omega_j rbar_j e_j x_j``, ``c_j = rbar_j g_j``, ``s(x) = -x'A Q theta`` and ``psi = r^2/(4 zeta)`` for
    ``zeta >= r/Gamma``, else ``r Gamma/2 - zeta Gamma^2/4``. The brace is jointly convex in (x, zeta), so its minimum
    over zeta is convex in x.
    """

    theta: Array  # (p,)
    to_a: Array  # (p, p): x'Ax = |x @ to_a|^2
    to_d: Array  # (p, p)
    residual: Array  # (n,), 0 where a row cannot be deleted
    coupled: Array  # (n,)
    pull: Array  # (p,), Q theta
    pull_coupling: float
    gamma_d: float
    g0_a: float
    g0_d: float
    k: int

    def cheap_lower(self, points: Array, rows: Rows) -> Array:
        """The bound at a few values of zeta instead of the best one, many points at once."""
        zetas = Zetas(self.coupled / 4, self.pull_coupling / 4, self.gamma_d, self.k, (0.0, 1.0, 2.0))

        def of_block(part: slice) -> Array:
            r = lengths(points[part] @ self.to_d)
            size = lengths(points[part] @ self.to_a)
            drop = zetas.drop(*self._linear(points[part], rows), r) + r * self.g0_d / 2 + size * self.g0_a
            return a_hair_lower(points[part] @ self.theta - drop - self.rounding(size, r))

        return _in_blocks(of_block, len(points), len(self.residual))

    def lower(self, points: Array, rows: Rows) -> Array:
        """The bound at each point."""
        return np.array([self._solve(point, rows)[0] for point in points])

    def linearise(self, point: Array, rows: Rows) -> tuple[float, Array]:
        """Value and slope of a cutting plane at one point."""
        _, value, slope = self._solve(point, rows)
        return value, slope

    def _linear(self, points: Array, rows: Rows) -> tuple[Array, Array]:
        """Return ``-w_j'Ax`` for every row and ``s(x)``."""
        image = (points @ self.to_a) @ self.to_a.T
        return -(image @ rows.design.T) * (rows.sign * self.residual), -image @ self.pull

    def _solve(self, point: Array, rows: Rows) -> tuple[float, float, Array]:
        """Return the bound at a point, and value and slope of its cutting plane.

        Bisection brackets the best zeta by the sign of the derivative. The two ends give two supporting planes of the
        jointly convex brace; mixed so that their zeta-slopes cancel they give a plane in x alone that lies below the
        brace for every zeta.
        """
        r = length(point @ self.to_d)
        size = length(point @ self.to_a)
        linear, shift = self._linear(point[None], rows)
        brace = _Brace(linear[0], self.coupled, float(shift[0]), self, r)
        low, high = brace.bracket()
        best = min(low.value, high.value)
        total = high.slope - low.slope
        mix = high.slope / total if total > 0 else 1.0
        base = mix * (low.value - low.slope * low.zeta) + (1 - mix) * (high.value - high.slope * high.zeta)
        gradient = self._gradient(point, rows, low, high, mix, r, size)
        fixed = r * self.g0_d / 2 + size * self.g0_a
        score = float(point @ self.theta)
        return score - best - fixed - float(self.rounding(size, r)), score - base - fixed, self.theta - gradient

    def rounding(self, size: Array | float, r: Array | float) -> Array:
        """What is taken off the bound for rounding, with a crude size of the linear term per unit of ``|x|_A``."""
        reach = self.k * float(self.residual.max(initial=0.0)) * 10 + self.g0_a
        return np.asarray(SUM_TOLERANCE * (size * reach + r * self.gamma_d))

    def _gradient(self, point: Array, rows: Rows, low: _End, high: _End, mix: float, r: float, size: float) -> Array:
        weight = np.zeros(len(self.residual))
        weight[low.members] += mix
        weight[high.members] += 1 - mix
        chosen = np.flatnonzero(weight)
        factor = (weight * rows.sign * self.residual)[chosen]
        image = rows.design[chosen].T @ factor + (mix * low.count + (1 - mix) * high.count) * self.pull
        gradient = -self.to_a @ (self.to_a.T @ image)
        by_r = mix * _psi(r, low.zeta, self.gamma_d)[1] + (1 - mix) * _psi(r, high.zeta, self.gamma_d)[1]
        if r > 0:
            gradient += (by_r + self.g0_d / 2) / r * (self.to_d @ (point @ self.to_d))
        if size > 0:
            gradient += self.g0_a / size * (self.to_a @ (point @ self.to_a))
        return gradient


def _in_blocks(of_block: Callable[[slice], Array], count: int, width: int) -> Array:
    """What a function says of so many points, (count,), asked about a few at a time: each takes ``width`` numbers."""
    return np.concatenate(each(of_block, chunks(count, max(1, _BLOCK_ENTRIES // max(1, width))), SERIAL))


def a_hair_lower(lower: Array) -> Array:
    """A cheap bound, lowered so that no piece is skipped because of rounding."""
    return lower - 1e-9 * (1 + np.abs(lower))


@dataclass(frozen=True)
class Zetas:
    """The brace of the sharp bound at a few zeta: of one piece at many points, or of many pieces at one point.

    ``coupled`` is (n,) or (m, n), ``pull`` and ``gamma`` are numbers or (m,). ``factors`` are the multiples of
    ``r / Gamma_D`` at which zeta is tried; 0 and any positive number give valid bounds.
    """

    coupled: Array
    pull: Any
    gamma: Any
    k: int
    factors: tuple[float, ...]

    def drop(self, linear: Array, shift: Array, r: Array) -> Array:
        """The smallest value found, (m,), for ``-w_j'Ax`` (m, n), ``s(x)`` (m,) and ``|x|_D`` (m,)."""
        drop = np.full(len(r), np.inf)
        for factor in self.factors:
            zeta = factor * r / self.gamma
            moved = shift + zeta * self.pull
            top = largest_values(linear + zeta[:, None] * self.coupled, self.k)
            terms = np.maximum(top + np.minimum(moved, 0.0)[:, None], 0.0).sum(axis=1)
            share = 0.5 - factor / 4 if factor <= 1 else 0.25 / factor  # psi at this zeta, over r Gamma_D
            drop = np.minimum(drop, terms + self.k * np.maximum(moved, 0.0) + r * self.gamma * share)
        return drop


def _psi(r: float, zeta: float, gamma: float) -> tuple[float, float, float]:
    """Return psi, its derivative in r and its derivative in zeta."""
    if zeta * gamma <= r:
        return r * gamma / 2 - zeta * gamma**2 / 4, gamma / 2, -(gamma**2) / 4
    return r * r / (4 * zeta), r / (2 * zeta), -r * r / (4 * zeta**2)


@dataclass(frozen=True)
class _End:
    """The brace at one zeta: value, derivative, rows with a positive linear part, rows counted."""

    zeta: float
    value: float
    slope: float
    members: Places
    count: int


class _Brace:
    """The function of zeta inside the sharp bound, at one point."""

    def __init__(self, linear: Array, coupled: Array, shift: float, piece: SharpPiece, r: float):
        self.rows = np.flatnonzero(coupled + np.maximum(linear, 0.0) > 0)
        self.linear, self.coupled = linear[self.rows], coupled[self.rows] / 4
        self.shift, self.pull = shift, piece.pull_coupling / 4
        self.k, self.gamma, self.r = piece.k, piece.gamma_d, r
        self.shifted = shift != 0.0 or self.pull != 0.0

    def at(self, zeta: float) -> _End:
        """Evaluate: the k rows with the largest terms, positive ones only."""
        values = self.linear + zeta * self.coupled
        shift = self.shift + zeta * self.pull
        top = np.argpartition(-values, self.k - 1)[: self.k] if self.k < len(values) else slice(None)
        chosen = np.arange(len(values))[top]
        terms = np.maximum(values[chosen], 0.0) + shift
        chosen = chosen[(values[chosen] > 0) & (terms > 0)]
        # Rows whose linear part is clipped at 0 still pay a positive shift, k rows in all.
        count = self.k if shift > 0 else len(chosen)
        value = float(values[chosen].sum()) + (count * shift if self.shifted else 0.0)
        slope = float(self.coupled[chosen].sum()) + count * self.pull
        psi, _, psi_slope = _psi(self.r, zeta, self.gamma)
        return _End(zeta, value + psi, slope + psi_slope, self.rows[chosen], count)

    def bracket(self) -> tuple[_End, _End]:
        """Return two ends around the minimiser whose derivatives have opposite signs."""
        low = self.at(0.0)
        if low.slope >= 0 or self.r == 0.0:
            return low, low
        high = self.at(2 * self.r / self.gamma)
        for _ in range(60):
            if high.slope >= 0:
                break
            low, high = high, self.at(4 * high.zeta)
        else:  # the brace only falls towards its limit: its end counts as flat
            flat = _End(high.zeta, high.value, 0.0, high.members, high.count)
            return flat, flat
        self._keep_possible(low, high)
        for _ in range(_BISECTIONS):
            middle = self.at((low.zeta + high.zeta) / 2)
            low, high = (middle, high) if middle.slope < 0 else (low, middle)
            if high.zeta - low.zeta <= 1e-13 * high.zeta:
                break
        return low, high

    def _keep_possible(self, low: _End, high: _End) -> None:
        """Drop rows that are outside the top k for every zeta of the bracket (terms only grow)."""
        if len(self.linear) <= self.k:
            return
        at_low = self.linear + low.zeta * self.coupled
        kth = np.partition(at_low, len(at_low) - self.k)[len(at_low) - self.k]
        possible = self.linear + high.zeta * self.coupled >= max(kth, 0.0)
        self.rows, self.linear = self.rows[possible], self.linear[possible]
        self.coupled = self.coupled[possible]


@dataclass(frozen=True)
class SimplePiece:
    """The simple bound with one of its two remainders (``spectral`` or the plain sum)."""

    theta: Array  # (p,)
    to_white: Array  # (p, p)
    residual: Array  # (n,)
    remainder: Array  # (n,): q_i t^2 (spectral) or q_i U_i^2
    pull: Array  # (p,)
    pull_rest: float  # k times the bound of |Q^{1/2} Delta|
    root_penalty: Array  # (p,), diagonal of Q^{1/2}
    g0: float
    k: int
    spectral: bool

    def lower(self, points: Array, rows: Rows) -> Array:
        """The bound at each point."""
        return np.array([self.linearise(point, rows)[0] for point in points])

    cheap_lower = lower

    def linearise(self, point: Array, rows: Rows) -> tuple[float, Array]:
        """Value and slope of a cutting plane at one point."""
        white = point @ self.to_white
        size = length(white)
        image = self.to_white @ white  # H^{-1} x
        effect = rows.design @ image
        values = -effect * rows.sign * self.residual
        shift = -float(image @ self.pull)
        top = np.argsort(-values)[: self.k]
        top = top[values[top] > 0]
        if shift < 0:
            top = top[values[top] + shift > 0]
        count = self.k if shift > 0 else len(top)
        drop = float(values[top].sum()) + count * shift
        inner = rows.design[top].T @ (rows.sign * self.residual)[top] + count * self.pull
        rest, by_effect = self._rest(effect, rows)
        pulled = self.root_penalty * image
        pulled_size = length(pulled)
        total = drop + rest + self.pull_rest * pulled_size + size * self.g0
        direction = -inner + rows.design.T @ by_effect
        if pulled_size > 0:
            direction += self.pull_rest / pulled_size * self.root_penalty * pulled
        gradient = self.to_white @ (self.to_white.T @ direction)
        if size > 0:
            gradient += self.g0 / size * image
        score = float(point @ self.theta)
        rounding = SUM_TOLERANCE * (total + size)
        return score - total - rounding, self.theta - gradient

    def _rest(self, effect: Array, rows: Rows) -> tuple[float, Array]:
        """The second-order remainder and its derivative in the row effects."""
        direction = np.sign(effect) * self.remainder
        if not self.spectral:
            return float(np.abs(effect) @ self.remainder), direction
        white = rows.design @ self.to_white
        weight = np.abs(effect) * self.remainder
        values, vectors = np.linalg.eigh(gram(white, weight))
        along = (white @ vectors[:, -1]) ** 2
        return float(max(values[-1], 0.0)), direction * along


Piece = CutsPiece | SharpPiece | SimplePiece
KINDS: dict[str, type] = {"cuts": CutsPiece, "sharp": SharpPiece, "simple": SimplePiece}


def piece_to_arrays(piece: Piece, prefix: str) -> dict[str, NDArray[Any]]:
    """Flatten a piece into named plain arrays."""
    kind = next(name for name, cls in KINDS.items() if isinstance(piece, cls))
    arrays = {f"{prefix}kind": np.array(kind)}
    for field in fields(piece):
        arrays[prefix + field.name] = np.asarray(getattr(piece, field.name))
    return arrays


def piece_from_arrays(arrays: Mapping[str, NDArray[Any]], prefix: str) -> Piece:
    """Rebuild a piece from :func:`piece_to_arrays`."""
    cls = KINDS[str(arrays[f"{prefix}kind"])]
    values = {field.name: arrays[prefix + field.name] for field in fields(cls)}
    piece: Piece = cls(**{name: v.item() if np.ndim(v) == 0 else v for name, v in values.items()})
    return piece
