"""The sharp bound: an interval of matrices around the mean Hessian, closed over a box of moves.

Notation of docs/certificate.md. ``Delta = theta_S - theta``, ``u_i = x_i'Delta``. Exactly

    M Delta = a v,   M = sum_i omega_i m_i x_i x_i' + Lambda - a |S| Q,
    v = sum_{i in S} (omega_i rho_i x_i + Q theta) - g0,

with ``Q = 0`` for the fixed penalty. All vectors are held in *white* coordinates (``white = T'x`` with ``T'HT = I``),
so every matrix below is within a moderate factor of the identity and inverting it is harmless in floating point.
"""

from __future__ import annotations

from dataclasses import dataclass, replace

import numpy as np

from rocerf.deletion.certificate.bound_pieces import SharpPiece
from rocerf.deletion.certificate.group_sums import Columns, norm_of_group_sum, signed_top_k, top_k_sum
from rocerf.deletion.certificate.matrices import gram, length, lengths
from rocerf.deletion.certificate.options import BoxEffort
from rocerf.deletion.certificate.problem import White
from rocerf.types import Array, Places

#: A box counts as closed only when its image, widened by this much, is inside.
CLOSING_TOLERANCE = 1e-9
ABSOLUTE_TOLERANCE = 1e-12
_MATRIX_TOLERANCE = 1e-11
_FEW_DELETIONS = 8


@dataclass(frozen=True)
class Interval:
    """Everything (3) needs on one box: ``A``, ``D``, residual bounds and group sums."""

    half_a: Array  # A = half_a half_a'
    half_d: Array
    half_c: Array  # M_lo^{-1} = half_c half_c'
    residual: Array  # (n,), bound of omega_i |rho_i|; 0 where a row cannot be deleted
    coupling: Array  # (n,), g_j >= e_j x_j'D v_S
    pull_coupling: float  # h >= (Q theta)'D v_S
    gamma_d: float  # bound of |v_S|_D, g0 apart
    g0_a: float
    g0_d: float
    g0_c: float
    pull_c: float
    gamma_c: float
    kept: Places  # columns kept in tables of products
    dropped: Places
    spread: float  # lmax(A^{-1/2} D A^{-1/2}), for the record


@dataclass(frozen=True)
class Sample:
    """Rows of a search pass and their inverse sampling probabilities; all rows in a proof pass."""

    rows: Places
    factor: Array | None

    @classmethod
    def everything(cls, white: White) -> Sample:
        """All rows."""
        return cls(np.arange(len(white.z)), None)


def interval_on_box(white: White, box: Array, sample: Sample, keep: float) -> Interval | None:
    """Bound the matrix and the group sums for all moves in the box; None if M_lo is not safe or the box too large.

    A box (2, n) says how far the score of each row may move down, and up.
    """
    if not white.allows(box):
        return None
    matrices = _matrix_interval(white, box, sample)
    if matrices is None:
        return None
    half_a, half_d, half_c, spread = matrices
    k, residual = white.problem.k, white.residual_bound(*box)
    kept, dropped = _kept_columns(residual * lengths(white.rows @ half_a), k, keep)
    gamma_a, _, _ = _group_norm(white, half_a, residual, kept, dropped, np.inf)
    cap = np.sqrt(spread) * gamma_a
    gamma_d, coupling, pull_coupling = _group_norm(white, half_d, residual, kept, dropped, cap)
    pull_c = length(white.pull @ half_c)
    gamma_c = np.inf
    if k > _FEW_DELETIONS:
        gamma_c = norm_of_group_sum(((white.rows @ half_c) * residual[:, None])[residual > 0], k) + k * pull_c
    return Interval(
        half_a=half_a,
        half_d=half_d,
        half_c=half_c,
        residual=residual,
        coupling=coupling,
        pull_coupling=pull_coupling,
        gamma_d=max(gamma_d, 1e-30),
        g0_a=length(white.gradient @ half_a),
        g0_d=length(white.gradient @ half_d),
        g0_c=length(white.gradient @ half_c),
        pull_c=pull_c,
        gamma_c=min(gamma_c, np.sqrt(gamma_a**2 + gamma_d**2 / 2) * (1 + CLOSING_TOLERANCE)),
        kept=kept,
        dropped=dropped,
        spread=spread,
    )


def _matrix_interval(white: White, box: Array, sample: Sample) -> tuple[Array, Array, Array, float] | None:
    """Factor A, D and M_lo^{-1}; a proof pass sums the bounds directly over all rows."""
    problem = white.problem
    pick = sample.rows
    rows, weight = white.rows[pick], problem.weight[pick]
    low, high = (weight * end for end in problem.loss.curvature_interval(white.z[pick], *box[:, pick]))
    lost = problem.k * white.row_penalty
    if sample.factor is None:
        matrix_low = gram(rows, low) + white.penalty - lost
        matrix_high = gram(rows, high) + white.penalty
    else:
        here, one = white.slope[pick], np.eye(rows.shape[1])
        matrix_low = one - lost - gram(rows, sample.factor * (here - low))
        matrix_high = one + gram(rows, sample.factor * (high - here))
    if not (np.isfinite(matrix_low).all() and np.isfinite(matrix_high).all()):
        return None
    slack = (_MATRIX_TOLERANCE * float(np.trace(matrix_high)) + white.margin(high, pick)) * np.eye(len(matrix_low))
    low_values, low_vectors = np.linalg.eigh(matrix_low - slack)
    if low_values[0] <= 1e-6:
        return None
    inverse_high = (low_vectors / low_values) @ low_vectors.T
    inverse_low = np.linalg.inv(matrix_high + slack)
    middle = (inverse_low + inverse_high) / 2
    middle = (middle + middle.T) / 2
    width = inverse_high - inverse_low
    values, vectors = np.linalg.eigh((width + width.T) / 2)
    half_d = vectors * np.sqrt(np.maximum(values, 0.0) + _MATRIX_TOLERANCE * values[-1])
    half_a = np.linalg.cholesky(middle)
    ratio = np.linalg.norm(np.linalg.solve(half_a, half_d), 2) ** 2
    return half_a, half_d, low_vectors / np.sqrt(low_values), float(ratio) * (1 + 1e-9)


def _kept_columns(size: Array, k: int, keep: float) -> tuple[Places, Places]:
    """Split the deletable rows into those kept as columns, the largest, and the rest."""
    candidates = np.flatnonzero(size > 0)
    count = max(int(np.ceil(keep * len(candidates))), 4 * k, 1)
    if count >= len(candidates):
        return candidates, candidates[:0]
    order = np.argpartition(-size[candidates], count)
    # Shuffled, so that every eighth column is a fair sample of them all.
    kept = np.random.default_rng(1).permutation(candidates[order[:count]])
    return kept, candidates[order[count:]]


def _group_norm(
    white: White, half: Array, residual: Array, kept: Places, dropped: Places, cap: float
) -> tuple[float, Array, float]:
    """Bound ``|v_S|_G`` (g0 apart), every ``e_i x_i'G v_S`` and ``(Q theta)'G v_S``.

    ``|v_S|_G^2 = sum_S omega_i|rho_i| e_i x_i'G v_S + |S| (Q theta)'G v_S``, and each inner product is a top-k sum over
    the columns, or Cauchy-Schwarz.
    """
    problem, k = white.problem, white.problem.k
    rows = white.rows @ half
    norms = lengths(rows)
    signed = rows * problem.sign[:, None]
    pull = white.pull @ half
    pull_norm = length(pull)
    alpha = signed * residual[:, None]
    # For a few deletions the bound of the norm by an eigenvalue is no better than what follows, and dearer.
    steps = 10 if k > _FEW_DELETIONS else 0
    gamma = min(norm_of_group_sum(alpha[residual > 0], k, steps) + k * pull_norm, cap)
    floor = float((norms * residual)[dropped].max(initial=0.0))
    columns = Columns(alpha[kept], floor)
    coupling = norms * gamma
    pairwise, _ = signed_top_k(signed[kept], columns, k, shift=signed[kept] @ pull, minus_too=False)
    coupling[kept] = np.minimum(coupling[kept], pairwise)
    pull_coupling = 0.0
    if pull_norm > 0:
        both, _ = signed_top_k(pull[None], columns, k, shift=np.array([pull_norm**2]), minus_too=False)
        pull_coupling = min(float(both[0]), pull_norm * gamma)
    square = float(top_k_sum(residual * coupling, k)) + k * pull_coupling
    gamma = min(gamma, np.sqrt(square)) * (1 + CLOSING_TOLERANCE)
    return gamma, np.minimum(coupling, norms * gamma), min(pull_coupling, pull_norm * gamma)


def image_of_box(
    white: White, interval: Interval, pick: Places, others: Array | None = None, kappa: float = 0.8
) -> tuple[Array, Array]:
    """Bound ``-u_i`` and ``u_i`` for the picked rows by (3), Cauchy-Schwarz and the energy; (2, m).

    ``others`` are further linear functionals of the move (white vectors, (m, p)); their bounds follow those of the
    rows. Also returns the Cauchy-Schwarz bound of every row, (n,). ``zeta = |x|_D / (kappa Gamma_D)`` here.
    """
    problem, k = white.problem, white.problem.k
    rows_a = white.rows @ interval.half_a
    norm_rows = lengths(white.rows @ interval.half_c)
    points = white.rows[pick] if others is None else np.concatenate([white.rows[pick], others])
    points_a = points @ interval.half_a
    norm_c = lengths(points @ interval.half_c)
    norm_d = lengths(points @ interval.half_d)
    norm_a = lengths(points_a)
    factor = 1 / (4 * kappa * interval.gamma_d)
    plus, minus = signed_top_k(
        points_a,
        _columns_with_coupling(white, interval, rows_a, factor),
        k,
        addend_scale=norm_d,
        shift=points_a @ (white.pull @ interval.half_a),
        shift_both=norm_d * factor * interval.pull_coupling,
    )
    rest = norm_d * (kappa * interval.gamma_d / 4 + interval.g0_d / 2) + norm_a * interval.g0_a
    energy = interval.gamma_c + interval.g0_c
    image = np.minimum(np.stack([minus, plus]) + rest, norm_c * energy)
    side = norm_rows * energy
    side[pick] = np.where(problem.sign[pick] > 0, image[1, : len(pick)], image[0, : len(pick)])
    total = float(top_k_sum(interval.residual * side, k))
    linear = interval.g0_c + k * interval.pull_c
    energy = min(energy, (linear + np.sqrt(linear**2 + 4 * total)) / 2)
    widened = 1 + CLOSING_TOLERANCE
    # A row's own rounding times the length of the move; the others are made of rows.
    longest = energy * float(np.linalg.norm(interval.half_c, axis=0).max())
    slack = np.full(len(points), ABSOLUTE_TOLERANCE + longest * float(white.rounding[pick].max(initial=0.0)))
    slack[: len(pick)] = ABSOLUTE_TOLERANCE + longest * white.rounding[pick]
    image = np.minimum(image, norm_c * energy) * widened + slack
    return image, norm_rows * energy * widened + ABSOLUTE_TOLERANCE


def _columns_with_coupling(white: White, interval: Interval, rows_a: Array, factor: float) -> Columns:
    problem, kept = white.problem, interval.kept
    coupled = interval.residual * interval.coupling * factor
    norms = lengths(rows_a[interval.dropped])
    return Columns(
        vectors=rows_a[kept] * (problem.sign * interval.residual)[kept, None],
        floor=float((norms * interval.residual[interval.dropped]).max(initial=0.0)),
        addend=coupled[kept],
        addend_floor=float(coupled[interval.dropped].max(initial=0.0)),
    )


def close_box(white: White, effort: BoxEffort, guess: Array | None = None) -> tuple[Array, Interval] | None:
    """Find a box that the bounds map strictly into itself, then shrink it; None if none is found.

    Only the last strict self-map over *all* live rows is the proof; how the box was grown is irrelevant to it, and so
    is a ``guess`` to start from.
    """
    everything = Sample.everything(white)
    found = None if guess is None else _grow(white, replace(effort, passes=12), everything, guess)
    if found is None:
        nothing = np.zeros((2, len(white.z)))
        sample = everything if effort.sample is None else search_sample(white, effort.sample)
        found = _grow(white, effort, sample, nothing)
        if found is None and effort.patience > effort.passes:  # a leap may have gone past a wide box that closes
            found = _grow(white, effort, sample, nothing, leaps=False)
        if found is None:
            return None
        if sample.factor is not None:
            image, _ = image_of_box(white, found[1], everything.rows)
            slowly = replace(effort, passes=effort.proof_passes, growth=1 + (effort.growth - 1) / 5)
            found = _grow(white, slowly, everything, image * slowly.growth)
            if found is None:
                return None
    return _shrink(white, effort, found[0])


def _shrink(white: White, effort: BoxEffort, box: Array) -> tuple[Array, Interval] | None:
    """Reapply the bounds to a proven box: its image contains all moves as well."""
    everything = Sample.everything(white)
    for _ in range(effort.shrink_passes):
        interval = interval_on_box(white, box, everything, effort.keep)
        if interval is None:  # cannot happen on a smaller box, up to rounding
            return None
        smaller = np.minimum(box, image_of_box(white, interval, everything.rows)[0])
        gain = 1 - float(np.sum(smaller[1]) / np.sum(box[1]))
        box = smaller
        if gain < 1e-3:
            break
    interval = interval_on_box(white, box, everything, effort.keep)
    return None if interval is None else (box, interval)


def _grow(
    white: White, effort: BoxEffort, sample: Sample, start: Array, leaps: bool = True
) -> tuple[Array, Interval] | None:
    """Grow a box until it maps into itself on the sample's rows (all rows: a proof)."""
    pick, live = sample.rows, white.live
    proof = sample.factor is None
    box = start.copy()
    pace = Pace(white.norms[pick] * live[pick], effort.patience)
    for _ in range(effort.passes):
        interval = interval_on_box(white, box, sample, effort.keep)
        if interval is None or interval.spread > effort.spread_limit:
            return None
        image, schwarz = image_of_box(white, interval, pick)
        if (image < box[:, pick])[:, live[pick]].all():
            return (image if proof else box), interval
        ahead = pace.factor(image)
        if ahead is None:
            return None
        if not proof:  # rows outside the sample follow the median ratio to Cauchy-Schwarz
            box = np.maximum(box, schwarz * np.median(image / schwarz[pick], axis=1)[:, None])
        grown = effort.growth * (ahead if leaps else 1.0)
        box[:, pick] = np.where(image >= box[:, pick], image * grown, box[:, pick])
    return None


class Pace:
    """How fast the images of a growing box approach each other: a guess of where they end, or that they do not."""

    def __init__(self, weight: Array, patience: int):
        self.weight, self.patience = weight, patience
        self.sizes: list[float] = []
        self.diverging = 0

    def factor(self, image: Array) -> float | None:
        """By how much the next box should exceed this image; None where the images drift apart for good."""
        self.sizes.append(float(self.weight @ image.sum(axis=0)))
        if not np.isfinite(self.sizes[-1]):
            return None
        if len(self.sizes) < 3:
            return 1.0
        first, second, third = self.sizes[-3:]
        before, now = second - first, third - second
        if now <= 0 or before <= 0:
            return 1.0
        ratio = now / before
        self.diverging = self.diverging + 1 if ratio >= 1 else 0
        if self.diverging >= self.patience:
            return None
        if ratio >= 0.9:
            return 1.0
        self.sizes = self.sizes[-1:]  # what follows the leap is a new sequence
        return 1 + ratio / (1 - ratio) * now / third


def search_sample(white: White, size: int, harmful: float = 0.1, seed: int = 0) -> Sample:
    """Draw rows for the search: by leverage, and all of the share of rows most able to do harm."""
    count = len(white.z)
    if size >= count:
        return Sample.everything(white)
    leverage = np.sqrt(white.slope) * white.norms
    share = np.minimum(1.0, 0.6 * size * leverage / leverage.sum() + 0.4 * size / count)
    harm = white.problem.weight * white.problem.loss.pull(white.problem.sign * white.z + 0.5) * white.norms
    share[np.argsort(-harm)[: int(count * harmful)]] = 1.0
    pick = np.flatnonzero(np.random.default_rng(seed).random(count) < share)
    return Sample(pick, 1 / share[pick])


def sharp_piece(white: White, interval: Interval) -> SharpPiece:
    """Turn the constants of a closed box into a function of x."""
    problem = white.problem
    return SharpPiece(
        theta=problem.theta,
        to_a=white.to_white @ interval.half_a,
        to_d=white.to_white @ interval.half_d,
        residual=interval.residual,
        coupled=interval.residual * interval.coupling,
        pull=problem.row_penalty * problem.theta,
        pull_coupling=interval.pull_coupling,
        gamma_d=interval.gamma_d,
        g0_a=interval.g0_a,
        g0_d=interval.g0_d,
        k=problem.k,
    )
