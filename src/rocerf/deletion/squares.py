"""Weighted sums of squares ``sum_i c_i x_i x_i'`` of the same rows for many models: their Hessians.

Three ways lead to the same matrices, and arithmetic decides which is shortest:

* *packed*: with the products ``x_j x_l`` of pairs of columns at hand, all models are one matrix product. Reading the
  products takes longer than multiplying them unless many models share them. They are kept where they fit in
  :data:`PAIRS_BYTES`, and made anew for every chunk of rows where they do not;
* *sparse*: the same where rows are mostly zeros, as one-hot columns are;
* *alone*: one product ``(C X)'X`` a model. It needs no room, and is what retraining one by one does.

The time is linear in rows and quadratic in columns, and never above that of *alone*.
"""

from __future__ import annotations

from functools import cached_property
from typing import Any

import numpy as np

from rocerf.passes import chunks
from rocerf.types import Array

#: Products of column pairs are kept in memory up to this size.
PAIRS_BYTES = 2**28

#: Products are kept as sparse matrices if they take at most this share of the room.
SPARSE = 0.25

#: Models, as a share of the columns, from which products pay that are kept, and those made anew for every chunk.
KEPT_PAYS, ANEW_PAYS = 0.2, 0.5

#: Columns up to which products are ever made anew: their chunk has to stay in cache.
ANEW_COLUMNS = 64

#: Rows of a chunk.
CHUNK = 4096


class Squares:
    """The rows X (n, p) whose weighted squares are asked for, chunk by chunk of :data:`CHUNK` rows.

    Without ``keep`` nothing is kept, and the rows may be anything that is indexed as an array is.
    """

    def __init__(self, X: Any, *, keep: bool = True) -> None:
        self.X, self.keep = X, keep
        self.pairs = np.triu_indices(X.shape[1])
        self.chunk = CHUNK

    @cached_property
    def kept(self) -> list[Any] | None:
        """For each chunk the products of its pairs of columns (m, p(p+1)/2), dense or sparse, where memory allows."""
        if not self.keep:
            return None
        dense = 8 * len(self.X) * len(self.pairs[0])
        used = np.count_nonzero(self.X, axis=1)
        sparse = int((used * (used + 1) // 2).sum()) * 12 <= min(PAIRS_BYTES, dense * SPARSE)
        if not sparse and dense > PAIRS_BYTES:
            return None
        made = _sparse_products if sparse else self._products
        return [made(self.X[rows]) for rows in chunks(len(self.X), self.chunk)]

    def of(self, weights: Array, rows: slice) -> Array:
        """``sum_i c_i x_i x_i'`` over a chunk of rows for M models with weights (M, m).

        As they add up: packed (M, p(p+1)/2), or (M, p, p), the same for every chunk of as many models.
        """
        return self.of_rows(weights, self.X[rows], rows)

    def of_rows(self, weights: Array, x: Array, rows: slice) -> Array:
        """The same for rows (m, p) that are at hand."""
        width, kept = self.X.shape[1], self.kept
        products: Any = None
        if kept is not None and (not isinstance(kept[0], np.ndarray) or len(weights) >= KEPT_PAYS * width):
            products = kept[rows.start // self.chunk]
        elif kept is None and width <= ANEW_COLUMNS and len(weights) >= ANEW_PAYS * width:
            products = self._products(x)
        if products is not None:
            return np.asarray(weights @ products)
        alone = np.empty((len(weights), width, width))
        for own, squares in zip(weights, alone, strict=True):
            np.matmul((x * own[:, None]).T, x, out=squares)
        return alone

    def lengths(self, inverses: Array) -> Array:
        """``x_i'A x_i`` of all rows for symmetric matrices A (M, p, p); (M, n)."""
        kept = self.kept
        if kept is None:
            return np.stack([np.einsum("ij,ij->i", self.X @ inverse, self.X) for inverse in inverses])
        first, second = self.pairs
        packed = inverses[:, first, second] * np.where(first == second, 1.0, 2.0)
        return np.concatenate([packed @ part.T for part in kept], axis=1)

    def _products(self, x: Array) -> Array:
        """Products of pairs of columns, (m, p(p+1)/2); made column by column, which reads no place twice."""
        width, columns = x.shape[1], np.ascontiguousarray(x.T)
        made, at = np.empty((len(self.pairs[0]), len(x))), 0
        for column in range(width):
            np.multiply(columns[column:], columns[column], out=made[at : at + width - column])
            at += width - column
        return made.T

    def whole(self, added: Array) -> Array:
        """Sums of what chunks gave, as matrices (M, p, p)."""
        if added.ndim == 3:
            return added
        width = self.X.shape[1]
        squares = np.empty((len(added), width, width))
        first, second = self.pairs
        squares[:, first, second] = squares[:, second, first] = added
        return squares


def _sparse_products(x: Array) -> Any:
    """The products of pairs of columns that are not zero, as a sparse matrix (m, p(p+1)/2)."""
    from scipy.sparse import csr_array

    p = x.shape[1]
    rows, columns = np.nonzero(x)
    counts = np.bincount(rows, minlength=len(x))
    starts = np.repeat(np.cumsum(counts) - counts, counts)
    # Each entry of a row meets itself and the later ones of its row.
    later = counts[rows] - (np.arange(len(rows)) - starts)
    left = np.repeat(np.arange(len(rows)), later)
    right = left + np.arange(len(left)) - np.repeat(np.cumsum(later) - later, later)
    one, other = columns[left], columns[right]
    place = one * p - one * (one - 1) // 2 + (other - one)
    values = x[rows[left], one] * x[rows[right], other]
    return csr_array((values, (rows[left], place)), shape=(len(x), p * (p + 1) // 2))
