"""The loss of one row, with every formula about it written once.

A row with score z and label y is seen through its *margin* ``v = e z``, ``e = 1 - 2 y``: how far on the wrong side it
is. Objectives, models retrained in batches, the certificate and the local stand-in know of the loss only what
:class:`Loss` says. Another loss for two labels whose pull is a symmetric distribution function (a smoothed hinge, say)
is one more object like :data:`LOGISTIC` with a name in :data:`LOSSES`, handed to
:meth:`~rocerf.models.logistic.fit.LogisticFit.minimised`; retraining, attacks and files take it from there, and proofs
if it is ``bounded``. One whose curvature is not even (the probit likelihood) would first need the curvature to be asked
of the margin instead of the score.
"""

from __future__ import annotations

from typing import Protocol

import numpy as np
from scipy.special import expit

from rocerf.errors import OptionError
from rocerf.types import Array

#: Moves of a score beyond this are not considered: no bound below is ever asked for more.
LARGEST_MOVE = 60.0
#: Relative widening of every scalar bound; the formulas below are good to a few 1e-15.
SCALAR_TOLERANCE = 1e-11
_BISECTIONS = 22


class Loss(Protocol):
    """A convex loss of the margin whose curvature is even, so that it is the same function of the score.

    All functions work entry by entry. The bounds are about a score that moves from ``z`` to ``z + u``, and are what the
    certificate is proven with: nothing may be outside them, rounding included.
    """

    #: Whether it has the bounds, so that proofs can be made about it.
    bounded: bool = False

    def value(self, margin: Array) -> Array:
        """``l(v)``."""
        ...

    def pull(self, margin: Array) -> Array:
        """``l'(v) > 0``, without cancellation; it grows with v."""
        ...

    def curvature(self, score: Array) -> Array:
        """``l''(v) = l''(z)``, without cancellation."""
        ...

    def quick_pull(self, margin: Array) -> Array:
        """The pulls of a large array, which may be overwritten by them, to rounding errors of size 1."""
        return self.pull(margin)

    def curvature_of_pull(self, pull: Array) -> Array:
        """The curvature where the pull is this, to the same errors: for large arrays of which only pulls are kept."""
        ...

    def residual(self, score: Array, sign: Array) -> Array:
        """The derivative in the score, ``e l'(e z)``; for the logistic loss ``p - y``."""
        return sign * self.pull(sign * score)

    def residual_bound(self, z: Array, sign: Array, down: Array, up: Array) -> Array:
        """Bound the size of the residual for all ``u`` in ``[-down, up]``."""
        return self.pull(np.where(sign > 0, z + up, down - z)) * (1 + SCALAR_TOLERANCE)

    def curvature_interval(self, z: Array, down: Array, up: Array) -> tuple[Array, Array]:
        """Bound the mean curvature between z and z + u for all ``u`` in ``[-down, up]`` from below and above."""
        ...

    def second_order_factor(self, z: Array, radius: Array) -> Array:
        """``q`` with ``|curvature at z - mean curvature between z and z + u| <= q |u|`` for all ``|u| <= radius``."""
        ...


class Logistic(Loss):
    """``log(1 + exp(v))``: the pull is ``sigma(v)``, the curvature ``sigma'(z) = sigma(z) sigma(-z)``.

    The product form is used because ``p (1 - p)`` loses all its digits when the row is saturated.
    """

    bounded = True

    def value(self, margin: Array) -> Array:
        """``log(1 + exp(v))``."""
        return np.logaddexp(0.0, margin)

    def pull(self, margin: Array) -> Array:
        """``sigma(v)``."""
        return np.asarray(expit(margin))

    def curvature(self, score: Array) -> Array:
        """``sigma'(z)``."""
        return np.asarray(expit(score) * expit(-score))

    def quick_pull(self, margin: Array) -> Array:
        """``1 / (1 + exp(-v))``; NumPy's exp is several times faster than SciPy's expit on large arrays."""
        with np.errstate(over="ignore"):
            np.exp(np.negative(margin, out=margin), out=margin)
        margin += 1.0
        return np.reciprocal(margin, out=margin)

    def curvature_of_pull(self, pull: Array) -> Array:
        """``q (1 - q)``."""
        curvature = 1.0 - pull
        curvature *= pull
        return curvature

    def mean_curvature(self, z: Array, u: Array) -> Array:
        """``(sigma(z + u) - sigma(z)) / u``, the mean of ``sigma'`` between z and z + u.

        With ``w = |u|`` and ``t = z`` for ``u < 0``, ``-z`` otherwise, it is
        ``sigma'(z) (1 - e^-w)/w / (sigma(-t) + sigma(t) e^-w)``, which cancels nothing and cannot overflow.
        """
        w = np.abs(u)
        ratio = np.where(w == 0.0, 1.0, -np.expm1(-w) / np.where(w == 0.0, 1.0, w))
        t = np.where(u < 0, z, -z)
        return np.asarray(self.curvature(z) * ratio / (expit(-t) + expit(t) * np.exp(-w)))

    def curvature_interval(self, z: Array, down: Array, up: Array) -> tuple[Array, Array]:
        """Bound the mean curvature over all ``u`` in ``[-down, up]``; the interval need not contain 0.

        For ``z >= 0`` (reflect otherwise) the mean curvature decreases in ``u > 0`` and is unimodal in ``w = -u > 0``
        with its mode in ``[z, 2 z]``. The minimum is therefore at an end. The maximum is ``g(-down)`` before the mode;
        past it, it is at most ``sigma'(w0 - z)`` for any ``w0`` between z and the mode, because the mean curvature at
        its mode equals ``sigma'`` there and ``sigma'(w - z)`` decreases for ``w >= z``. Wholly past the mode the
        maximum is at the interval's other end.
        """
        reflected = z < 0
        z = np.abs(z)
        toward, away = np.where(reflected, up, down), np.where(reflected, down, up)
        at_toward, at_away = self.mean_curvature(z, -toward), self.mean_curvature(z, away)
        low = np.minimum(at_toward, at_away)
        past = (toward > z) & (self.curvature(z - toward) < at_toward)  # the mode is not before z
        beyond = past & (-away >= 2 * z)
        high = np.where(beyond, at_away, at_toward)
        past &= ~beyond
        if past.any():
            high[past] = self._curvature_before_mode(z[past], toward[past])
        return low * (1 - SCALAR_TOLERANCE), np.maximum(high, low) * (1 + SCALAR_TOLERANCE)

    def _curvature_before_mode(self, z: Array, toward: Array) -> Array:
        """Bisect for the mode of ``w -> g(-w)`` and return ``sigma'`` at a point not beyond it."""
        below, above = z.copy(), np.maximum(np.minimum(toward, 2 * z), z)
        for _ in range(_BISECTIONS):
            middle = (below + above) / 2
            rising = self.curvature(z - middle) >= self.mean_curvature(z, -middle)
            below, above = np.where(rising, middle, below), np.where(rising, above, middle)
        # A point a hair before the bracket keeps the bound valid when the comparison itself rounds.
        return self.curvature(np.maximum(below - 1e-7 * (1 + z), z) - z)

    def second_order_factor(self, z: Array, radius: Array) -> Array:
        """The smaller of half the largest ``|sigma''|`` on the interval and ``sigma'(z) (e^r - 1 - r)/r^2``.

        The latter follows from ``|sigma''| <= sigma'``.
        """
        peak = np.log(2.0 + np.sqrt(3.0))  # |sigma''| is largest here, with value 1/(6 sqrt 3)
        high = np.abs(z) + radius
        low = np.maximum(np.abs(z) - radius, -high)
        at_low, at_high = (np.abs(self.curvature(t) * (1 - 2 * expit(t))) for t in (low, high))
        covered = ((low <= peak) & (high >= peak)) | (low <= -peak)
        largest = np.where(covered, 1 / (6 * np.sqrt(3.0)), np.maximum(at_low, at_high))
        r = np.clip(radius, 1e-4, LARGEST_MOVE)
        taylor = self.curvature(z) * (np.expm1(r) - r) / r**2
        return np.asarray(np.minimum(largest / 2, taylor) * (1 + 1e-9))


LOGISTIC = Logistic()

#: The losses that models may be fitted with, by the name that files keep.
LOSSES: dict[str, Loss] = {"logistic": LOGISTIC}


def loss_named(loss: str | Loss) -> Loss:
    """The loss of this name, or a loss as it is."""
    if not isinstance(loss, str):
        return loss
    if loss not in LOSSES:
        raise OptionError(f"Expected a loss among {', '.join(LOSSES)}, got {loss!r}; put it into LOSSES first.")
    return LOSSES[loss]


def name_of(loss: Loss) -> str:
    """The name of a loss, for files."""
    for name, known in LOSSES.items():
        if known is loss:
            return name
    raise OptionError(
        f"Expected a loss with a name to save, got a {type(loss).__name__}; put it into LOSSES by a name first."
    )
