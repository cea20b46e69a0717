"""Lengths, sums of squares and eigenvalues, as the certificate writes them all the time."""

from __future__ import annotations

import numpy as np

from rocerf.types import Array


def length(vector: Array) -> float:
    """Of one vector."""
    return float(np.linalg.norm(vector))


def lengths(rows: Array) -> Array:
    """Of every row, (n,)."""
    return np.asarray(np.linalg.norm(rows, axis=1))


def gram(rows: Array, weight: Array) -> Array:
    """``sum_i weight_i x_i x_i'``, (p, p)."""
    return (rows * weight[:, None]).T @ rows


def largest_eigenvalue(matrix: Array) -> float:
    """Of a symmetric matrix."""
    return float(np.linalg.eigvalsh(matrix)[-1])
