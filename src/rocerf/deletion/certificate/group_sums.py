"""Upper bounds for sums over the worst ``k`` rows: scalars, norms of group sums, whole tables.

Everything here bounds a maximum over all sets of at most ``k`` rows without enumerating them. The workhorse is
linear-programming duality: for every ``t >= 0``

    sum of the k largest positive parts of v  <=  k t + sum_j (v_j - t)_+ .
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from rocerf.deletion.certificate.matrices import gram, largest_eigenvalue, lengths
from rocerf.passes import SERIAL, Threads, chunks, each
from rocerf.types import Array

#: Relative widening of every float64 sum.
SUM_TOLERANCE = 1e-10
#: Beyond this many columns the table of products is computed in single precision.
_MANY_COLUMNS = 2000
#: Columns looked at when a threshold t is chosen: every eighth. The bound is flat in t near the best one.
_STRIDE = 8
#: Bytes of a block of products: what a core's own cache holds. Larger blocks wait for memory.
_BLOCK_BYTES = 400_000
#: A threshold is improved if the number of columns above it is off by more than this, in logarithms.
_TAIL = 0.15
#: Tables with more entries are shared among the cores.
_SHARED_ENTRIES = 5_000_000
#: Up to this many, the largest values are found one after another: quicker than a partition.
_FEW = 8
_GOLDEN = (np.sqrt(5.0) - 1) / 2


def top_k_sum(values: Array, k: int) -> Array:
    """Return the sum of the k largest positive parts along the last axis."""
    n = values.shape[-1]
    if k <= 0 or n == 0:
        return np.zeros(values.shape[:-1])
    if k == 1:
        return np.asarray(np.maximum(values.max(axis=-1), 0.0))
    positive = np.maximum(values, 0.0)
    if k >= n:
        return np.asarray(positive.sum(-1))
    return np.asarray(np.partition(positive, n - k, axis=-1)[..., n - k :].sum(-1))


def largest_values(values: NDArray[Any], k: int) -> Array:
    """Return the k largest values of each row, in any order, -inf where there are fewer; ``values`` is overwritten."""
    rows, n = values.shape
    out = np.full((rows, k), -np.inf)
    if k >= n:
        out[:, :n] = values
    elif k > _FEW:
        values.partition(n - k, axis=1)
        out[:] = values[:, n - k :]
    else:
        every = np.arange(rows)
        for at in range(k):
            where = values.argmax(axis=1)
            out[:, at] = values[every, where]
            values[every, where] = -np.inf
    return out


def norm_of_group_sum(vectors: Array, k: int, steps: int = 10) -> float:
    """Bound ``max_{|S| <= k} |sum_{i in S} t_i vectors_i|`` over all ``t_i`` in ``[0, 1]``.

    For a unit vector y, ``sum_S t_i y'a_i <= k t + sum (|y'a_i| - t)_+`` and ``(s - t)_+ <= c_i s^2`` for
    ``0 <= s <= |a_i|`` with ``c_i = 0`` if ``|a_i| <= t``, ``(|a_i| - t)/|a_i|^2`` if ``|a_i| <= 2 t``, ``1/(4 t)``
    beyond. So the norm is at most ``k t + lmax(sum c_i a_i a_i')`` for every ``t > 0``; a golden section picks t.
    Without ``steps`` the k largest norms are added up, no more.
    """
    norms = lengths(vectors)
    order = np.argsort(-norms)
    norms = norms[order]
    best = float(norms[:k].sum())
    if k <= 0 or best == 0.0:
        return 0.0
    if k == 1 or steps <= 0:
        return best * (1 + SUM_TOLERANCE)
    vectors = vectors[order]

    def bound(log_t: float) -> float:
        t = float(np.exp(log_t))
        count = int(np.searchsorted(-norms, -t))
        if count == 0:
            return k * t
        q = norms[:count]
        factor = np.where(q <= 2 * t, (q - t) / q**2, 1 / (4 * t))
        return k * t + largest_eigenvalue(gram(vectors[:count], factor))

    kth = max(float(norms[min(k, len(norms)) - 1]), 1e-300)
    return min(best, _golden_section(bound, np.log(0.05 * kth), np.log(kth), steps)) * (1 + SUM_TOLERANCE)


def _golden_section(function: Callable[[float], float], low: float, high: float, steps: int) -> float:
    """Return the smallest value met while narrowing [low, high]; any value met is a bound."""
    left, right = high - _GOLDEN * (high - low), low + _GOLDEN * (high - low)
    at_left, at_right = function(left), function(right)
    best = min(at_left, at_right)
    for _ in range(steps):
        if at_left < at_right:
            high, right, at_right = right, left, at_left
            left = high - _GOLDEN * (high - low)
            at_left = function(left)
        else:
            low, left, at_left = left, right, at_right
            right = low + _GOLDEN * (high - low)
            at_right = function(right)
        best = min(best, at_left, at_right)
    return best


@dataclass(frozen=True)
class Columns:
    """The deletable rows as columns of a table of products, the small ones dropped.

    ``vectors[j]`` stands for a row that may be deleted; every dropped column is known only through
    ``|vector| <= floor`` and ``addend <= addend_floor``.
    """

    vectors: Array  # (m, p)
    floor: float
    addend: Array | None = None  # (m,), nonnegative
    addend_floor: float = 0.0


def signed_top_k(
    points: Array,
    columns: Columns,
    k: int,
    addend_scale: Array | None = None,
    shift: Array | None = None,
    shift_both: Array | float = 0.0,
    minus_too: bool = True,
) -> tuple[Array, Array]:
    """Bound, for every point ``y_i`` and both signs, a top-k sum over the columns ``w_j``.

    Returns upper bounds of ``top-k_j [(+-y_i'w_j + addend_scale_i addend_j)_+ + s_i]_+`` with
    ``s_i = +-shift_i + shift_both_i``, for plus and for minus (zeros unless ``minus_too``). Worked in blocks of rows,
    never with the whole table in memory.
    """
    count = len(points)
    if k <= 0:
        return np.zeros(count), np.zeros(count)
    norms = lengths(points)
    floor = norms * columns.floor
    if addend_scale is not None:
        floor = floor + addend_scale * columns.addend_floor
    shift = np.zeros(count) if shift is None else shift
    both = np.broadcast_to(np.asarray(shift_both, dtype=float), (count,))
    if len(columns.vectors) == 0:
        return k * np.maximum(both + shift, 0.0), k * np.maximum(both - shift, 0.0)
    single = len(columns.vectors) > _MANY_COLUMNS and k >= 8
    dtype = np.float32 if single else np.float64
    vectors = columns.vectors
    if columns.addend is not None and addend_scale is not None:  # one more coordinate, the same for both signs
        points, vectors = np.c_[points, addend_scale], np.c_[vectors, columns.addend]
    signs = np.ones(points.shape[1])
    signs[columns.vectors.shape[1] :] = -1.0
    table: NDArray[Any] = np.ascontiguousarray(vectors.T.astype(dtype))

    def of_block(part: slice) -> list[Array]:
        both_signs = []
        for sign in (1.0, -1.0)[: 2 if minus_too else 1]:
            signed = points[part] if sign > 0 else points[part] * -signs
            products: NDArray[Any] = signed.astype(dtype) @ table
            both_signs.append(_block_top_k(products, floor[part], k, sign * shift[part] + both[part], single))
        return both_signs

    parts = chunks(count, max(1, _BLOCK_BYTES // (table.shape[1] * table.itemsize)))
    found = each(of_block, parts, Threads() if count * table.shape[1] > _SHARED_ENTRIES else SERIAL)
    rounding = _rounding(columns, norms, addend_scale, k, single)
    plus, *minus = (np.concatenate(blocks) + rounding for blocks in zip(*found, strict=True))
    return plus, minus[0] if minus else rounding


def _block_top_k(values: NDArray[Any], floor: Array, k: int, shift: Array, fast: bool) -> Array:
    """Top-k sum of ``(values + shift)_+`` where unseen columns are at most ``floor``; ``values`` is overwritten.

    A negative shift moves every value down before the positive part; a positive one is paid at most k times.
    """
    down = np.minimum(shift, 0.0)
    paid = k * np.maximum(shift, 0.0)
    if not fast:
        top = np.maximum(largest_values(values, k), floor[:, None]) + down[:, None]
        return np.asarray(np.maximum(top, 0.0).sum(axis=1) + paid)
    sample = values[:, ::_STRIDE]
    rank = sample.shape[1] - max(1, round(k / _STRIDE))
    guess = np.partition(sample, rank, axis=1)[:, rank].astype(float) + down
    lowest = np.maximum(floor + down, 0.0)  # any t above the dropped columns is valid
    t = np.maximum(guess, lowest)
    values -= (t - down)[:, None].astype(values.dtype)
    total = _positive_sums(values)
    above = np.add.reduce(values > 0, axis=1, dtype=np.int32)
    bound = k * t + total
    # Where far more or fewer than k columns are above t, a better one follows from an exponential tail.
    off = np.log(np.maximum(above, 1) / k)
    again = np.flatnonzero(np.abs(off) > _TAIL)
    if len(again):
        step = (total / np.maximum(above, 1) * off)[again]
        step = np.maximum(t[again] + step, lowest[again]) - t[again]
        better = _positive_sums(values[again] - step[:, None].astype(values.dtype))
        bound[again] = np.minimum(bound[again], k * (t[again] + step) + better)
    return np.asarray(bound + paid)


def _positive_sums(values: NDArray[Any]) -> Array:
    """Sum the positive parts of each row. ``v + |v|`` is twice the positive part, and quicker than a maximum."""
    twice = np.abs(values)
    twice += values
    return np.asarray(twice.sum(axis=1) / 2, dtype=float)


def _rounding(columns: Columns, norms: Array, scale: Array | None, k: int, single: bool) -> Array:
    """What the arithmetic of one block may lose: (p + 8) units a product, plus the long sum."""
    unit = 1.2e-7 if single else 2.3e-16
    p = columns.vectors.shape[1]
    sizes = lengths(columns.vectors)
    largest = float(sizes.max()) if len(sizes) else 0.0
    size = norms * max(float(top_k_sum(sizes, k)), k * largest if single else 0.0)
    if scale is not None and columns.addend is not None:
        size = size + scale * k * float(columns.addend.max(initial=0.0))
    return np.asarray(unit * (p + 8 + (24 if single else 0)) * size + SUM_TOLERANCE * size)
