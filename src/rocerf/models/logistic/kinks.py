"""An L1 part of the penalty: ``sum_j a_j |theta_j|``, whose kinks hold coefficients at exactly 0.

Newton's method goes on with one change. Its step is not where the quadratic model of the loss is lowest but where that
model plus the kinks is, and this is found exactly: some coefficients (the *active* ones) solve linear equations with
the slopes of their kinks, the others stay at 0, and coefficients change sides one at a time, each time to a lower
value, so that it ends.

An optimum is recognised by its subgradient: 0 at every active coefficient, and at the others a slope of the loss of at
most a_j. Where columns depend on each other (both columns of a category of two, with an intercept) the optimal
coefficients are many, and what they say of training rows is one; then a corner is taken, whose columns are independent.
"""

from __future__ import annotations

import numpy as np
from scipy.linalg import cho_factor, cho_solve

from rocerf.errors import NotConvergedError, SingularCurvatureError
from rocerf.models.logistic.curvature import Curvature
from rocerf.types import Array, Mask, Places

#: A coefficient at 0 moves if its slope beats its kink by this much, in the norm of its curvature (as Newton's
#: decrement), or by this share of the kink, which is rounding.
ENTERS, ROUNDED = 1e-10, 1e-12

#: Share of the diagonal added to the model of a step, so that dependent columns can be solved for; of the step only,
#: so that where it ends is not moved by it.
RIDGE = 1e-12

#: Coefficients that may change sides in one step, times the columns.
MOST_CHANGES = 20


class Kinks:
    """``sum_j a_j |theta_j|`` with strengths a (p,), 0 where a coefficient has no kink."""

    def __init__(self, strengths: Array) -> None:
        self.strengths = strengths

    def value(self, theta: Array) -> float:
        """Of the parameters (p,)."""
        return float(self.strengths @ np.abs(theta))

    def subgradients(self, thetas: Array, gradients: Array, diagonals: Array) -> tuple[Array, Mask]:
        """The shortest subgradients (M, p) at parameters (M, p), and which coefficients are held at 0, (M, p).

        ``gradients`` are those of the rest of the objective, ``diagonals`` of its Hessians, all (M, p).

        >>> Kinks(np.array([1.0, 1.0])).subgradients(np.zeros((1, 2)), np.array([[0.5, -3.0]]), np.ones((1, 2)))
        (array([[ 0., -2.]]), array([[ True, False]]))
        """
        a = self.strengths
        beyond = np.abs(gradients) - a
        tiny = np.maximum(ENTERS * np.sqrt(np.maximum(diagonals, 0.0)), ROUNDED * a)
        held = (thetas == 0) & (a > 0) & ~(beyond > tiny)
        side = np.where(thetas == 0, -np.sign(gradients), np.sign(thetas))
        return np.where(held, 0.0, gradients + a * side), held

    def slopes(self, thetas: Array) -> Array:
        """The slopes of the kinks where coefficients are not 0, (..., p)."""
        return self.strengths * np.sign(thetas)

    def step(self, theta: Array, gradient: Array, hessian: Array) -> Array:
        """From parameters (p,) to where ``gradient'd + d'H d/2`` and the kinks are lowest together; (p,)."""
        model, place = _Model(self.strengths, theta, gradient, hessian), theta.copy()
        active = (theta != 0) | (self.strengths == 0)
        side = np.sign(theta)
        for _ in range(MOST_CHANGES * (len(theta) + 1)):
            place, active = model.lowest(place, active, side)
            slopes = model.slopes(place)
            _, held = self.subgradients(place[None], slopes[None], model.diagonal[None])
            waiting = np.flatnonzero(~active & ~held[0])
            if not len(waiting):
                return np.asarray(place - theta)
            beyond = (np.abs(slopes) - self.strengths)[waiting] / np.sqrt(model.diagonal[waiting])
            enters = waiting[int(beyond.argmax())]
            active[enters], side[enters] = True, -np.sign(slopes[enters])
        raise NotConvergedError(
            f"Expected the coefficients that an L1 penalty leaves to be found within {MOST_CHANGES} changes each, they "
            "were not; scale the columns, or use a stronger penalty (smaller C)."
        )

    def decrement(self, theta: Array, gradient: Array, step: Array) -> float:
        """Length of a step, as Newton's decrement: the root of what the model's linear part and the kinks fall by."""
        after, side = theta + step, np.where(theta == 0, np.sign(step), np.sign(theta))
        crossing = side * after < 0
        grown = np.where(crossing, np.abs(after) - np.abs(theta), side * step)
        return float(np.sqrt(max(-float(step @ gradient + self.strengths @ grown), 0.0)))

    def corner(self, theta: Array, hessian: Array) -> tuple[Array, Curvature]:
        """Optimal parameters (p,), as good as these, whose columns are independent; with the curvature of these."""
        theta = theta.copy()
        while True:
            try:
                return theta, Curvature(hessian, fixed=(theta == 0) & (self.strengths > 0))
            except SingularCurvatureError:
                if not self._to_next_zero(theta, hessian):
                    raise

    def _to_next_zero(self, theta: Array, hessian: Array) -> bool:
        """Move, in place, along a direction that changes no score until a coefficient is 0; whether there is one."""
        free = np.flatnonzero((theta != 0) | (self.strengths == 0))
        scale = 1.0 / np.sqrt(np.maximum(np.diagonal(hessian)[free], np.finfo(float).tiny))
        along = np.zeros(len(theta))
        along[free] = scale * np.linalg.eigh(hessian[np.ix_(free, free)] * np.outer(scale, scale))[1][:, 0]
        along *= -1.0 if self.slopes(theta) @ along > 0 else 1.0
        shrinking = np.flatnonzero((theta * along < 0) & (self.strengths > 0))
        if not len(shrinking):
            return False
        lengths = -theta[shrinking] / along[shrinking]
        first = int(lengths.argmin())
        theta += lengths[first] * along
        theta[shrinking[first]] = 0.0
        return True


class _Model:
    """The quadratic model of a loss about parameters (p,), with kinks of these strengths (p,)."""

    def __init__(self, strengths: Array, theta: Array, gradient: Array, hessian: Array) -> None:
        diagonal = np.diagonal(hessian)
        self.diagonal = np.maximum(diagonal, max(1e-24 * float(diagonal.max(initial=0.0)), np.finfo(float).tiny))
        self._strengths, self._theta, self._gradient = strengths, theta, gradient
        self._unit = 1.0 / np.sqrt(self.diagonal)
        self._hessian = hessian
        self._scaled = hessian * np.outer(self._unit, self._unit)

    def slopes(self, place: Array) -> Array:
        """The model's gradient without kinks, (p,)."""
        return np.asarray(self._gradient + self._hessian @ (place - self._theta))

    def lowest(self, place: Array, active: Mask, side: Array) -> tuple[Array, Mask]:
        """The lowest place with only these coefficients active, each on its side of 0; those that reach 0 stay there.

        Returns the place and who is still active.
        """
        place, active = place.copy(), active.copy()
        while active.any():
            free = np.flatnonzero(active)
            wanted = self._solved(free, -(self.slopes(place) + self._strengths * side)[free])
            ends = place[free] + wanted
            leaving = np.flatnonzero((self._strengths[free] > 0) & (side[free] * ends <= 0))
            if not len(leaving):
                place[free] = ends
                break
            lengths = -place[free][leaving] / np.where(wanted[leaving] == 0, -1.0, wanted[leaving])
            first = int(lengths.argmin())
            place[free] += min(max(float(lengths[first]), 0.0), 1.0) * wanted
            gone = free[leaving[first]]
            place[gone], active[gone] = 0.0, False
        return place, active

    def _solved(self, free: Places, vector: Array) -> Array:
        """``H^-1 v`` over these coefficients, with a ridge that leaves dependent columns solvable."""
        unit, ridge = self._unit[free], RIDGE
        while True:
            matrix = self._scaled[np.ix_(free, free)] + ridge * np.eye(len(free))
            try:
                return np.asarray(unit * cho_solve(cho_factor(matrix, check_finite=False), unit * vector))
            except np.linalg.LinAlgError:
                if not ridge < 1.0:
                    raise SingularCurvatureError(
                        "Expected a Hessian without numbers that are not finite; scale the columns."
                    ) from None
                ridge *= 100.0
