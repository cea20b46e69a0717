"""Scalar bounds for one row whose score moves from ``z`` to ``z + u`` with ``u`` in ``[-down, up]``.

``sigma`` is the logistic function and ``sigma'(z) = sigma(z) sigma(-z)``; the product form is
used throughout because ``p (1 - p)`` loses all its digits when the row is saturated.
"""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray
from scipy.special import expit

from rocerf.types import Array

Indices = NDArray[np.intp]
Mask = NDArray[np.bool_]

#: Relative widening of every scalar bound; the formulas below are good to a few 1e-15.
SCALAR_TOLERANCE = 1e-11
#: Boxes that move some live row further than this are not considered: no bound below is ever asked beyond it.
LARGEST_BOX = 60.0
_BISECTIONS = 22


def within_limits(down: Array, up: Array, live: Mask) -> bool:
    """Whether no live row moves by more than LARGEST_BOX in this box; False also where a bound is not a number."""
    return bool((np.maximum(np.abs(down), np.abs(up)) <= LARGEST_BOX)[live].all())


def slope(z: Array) -> Array:
    """Return ``sigma'(z)``."""
    return np.asarray(expit(z) * expit(-z))


def mean_slope(z: Array, u: Array) -> Array:
    """Return ``(sigma(z + u) - sigma(z)) / u``, the mean of ``sigma'`` between z and z + u.

    With ``w = |u|`` and ``t = z`` for ``u < 0``, ``-z`` otherwise, it is
    ``sigma'(z) (1 - e^-w)/w / (sigma(-t) + sigma(t) e^-w)``, which cancels nothing and cannot overflow.
    """
    w = np.abs(u)
    ratio = np.where(w == 0.0, 1.0, -np.expm1(-w) / np.where(w == 0.0, 1.0, w))
    t = np.where(u < 0, z, -z)
    return np.asarray(slope(z) * ratio / (expit(-t) + expit(t) * np.exp(-w)))


def curvature_interval(z: Array, down: Array, up: Array) -> tuple[Array, Array]:
    """Bound the mean slope over all ``u`` in ``[-down, up]`` from below and above.

    For ``z >= 0`` (reflect otherwise) the mean slope decreases in ``u > 0`` and is unimodal in
    ``w = -u > 0`` with its mode in ``[z, 2 z]``. The minimum is therefore at an end. The maximum
    is ``g(-down)`` before the mode; past it, it is at most ``sigma'(w0 - z)`` for any ``w0``
    between z and the mode, because the mean slope at its mode equals ``sigma'`` there and
    ``sigma'(w - z)`` decreases for ``w >= z``. The interval need not contain 0 (``down`` or
    ``up`` may be negative); wholly past the mode the maximum is at its other end.
    """
    reflected = z < 0
    z = np.abs(z)
    toward = np.where(reflected, up, down)
    away = np.where(reflected, down, up)
    at_toward, at_away = mean_slope(z, -toward), mean_slope(z, away)
    low = np.minimum(at_toward, at_away)
    high = at_toward.copy()
    past = (toward > z) & (slope(z - toward) < at_toward)  # the mode is not before z
    beyond = past & (-away >= 2 * z)
    high[beyond] = at_away[beyond]
    past &= ~beyond
    if past.any():
        high[past] = _slope_before_mode(z[past], toward[past])
    return low * (1 - SCALAR_TOLERANCE), np.maximum(high, low) * (1 + SCALAR_TOLERANCE)


def _slope_before_mode(z: Array, toward: Array) -> Array:
    """Bisect for the mode of ``w -> g(-w)`` and return ``sigma'`` at a point not beyond it."""
    below, above = z.copy(), np.minimum(toward, 2 * z)
    above = np.maximum(above, below)
    for _ in range(_BISECTIONS):
        middle = (below + above) / 2
        rising = slope(z - middle) >= mean_slope(z, -middle)
        below, above = np.where(rising, middle, below), np.where(rising, above, middle)
    # A point a hair before the bracket keeps the bound valid when the comparison itself rounds.
    return slope(np.maximum(below - 1e-7 * (1 + z), z) - z)


def residual_bound(z: Array, sign: Array, down: Array, up: Array) -> Array:
    """Bound ``|sigma(z + u) - y|``; ``sign = 1 - 2 y`` is the sign of that residual."""
    return np.asarray(np.where(sign > 0, expit(z + up), expit(down - z)) * (1 + SCALAR_TOLERANCE))


def second_order_factor(z: Array, radius: Array) -> Array:
    """Return ``q`` with ``|sigma'(z) - mean slope| <= q |u|`` for all ``|u| <= radius``.

    The smaller of half the largest ``|sigma''|`` on the interval and
    ``sigma'(z) (e^r - 1 - r)/r^2`` (from ``|sigma''| <= sigma'``).
    """
    peak = np.log(2.0 + np.sqrt(3.0))  # |sigma''| is largest here, with value 1/(6 sqrt 3)
    low, high = np.abs(z) - radius, np.abs(z) + radius
    low = np.maximum(low, -high)

    def second(t: Array) -> Array:
        return np.asarray(np.abs(slope(t) * (1 - 2 * expit(t))))

    largest = np.maximum(second(low), second(high))
    covered = ((low <= peak) & (high >= peak)) | (low <= -peak)
    largest = np.where(covered, 1 / (6 * np.sqrt(3.0)), largest)
    r = np.clip(radius, 1e-4, LARGEST_BOX)
    taylor = slope(z) * (np.expm1(r) - r) / r**2
    return np.minimum(largest / 2, taylor) * (1 + 1e-9)
