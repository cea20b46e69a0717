"""The objective a logistic model minimises, with every sign and factor written once.

For rows ``x~_i`` (the design row: scaled features, then 1 if there is an intercept), labels ``y_i`` in {0, 1}, weights
``w_i`` and ``e_i = 1 - 2 y_i``::

    z_i    = x~_i' theta
    F      = sum_i w_i log(1 + exp(e_i z_i))  +  (lam/2) theta' P theta           (a total, not a mean)
    g_i    = w_i e_i sigma(e_i z_i) x~_i  [+ c P theta]      gradient of row i,   shape (p,)
    grad F = sum_i w_i e_i sigma(e_i z_i) x~_i + lam P theta                      shape (p,)
    H      = sum_i w_i sigma(z_i) sigma(-z_i) x~_i x~_i'  + lam P                 shape (p, p)

``e_i sigma(e_i z_i)`` is ``p_i - y_i`` without the cancellation when ``p_i`` saturates. ``P`` is diagonal, 1 for
coefficients; for the intercept 0 (free) or ``1/s^2`` (liblinear). An L1 part adds ``sum_j a_j |theta_j|``, with the
kinks of :mod:`rocerf.models.logistic.kinks`; then grad F is the gradient of the rest, and g_i brings ``b sign(theta)``.

Two conventions for what happens to ``lam`` when rows go:

* fixed: ``lam = 1/C`` whatever the number of rows. Rows carry no penalty. scikit-learn's.
* mean:  ``lam = c n`` with ``c = 2 gamma``: each row brings its share, so ``[+ c P theta]`` above applies,
  ``sum_i g_i = grad F``, and deleting rows lowers ``lam``. The paper's.
"""

from __future__ import annotations

import math
import operator
from dataclasses import dataclass, replace

import numpy as np

from rocerf.data.column_statistics import runner_for
from rocerf.data.columns import is_number
from rocerf.data.disk_rows import RowsOnDisk, rows_left
from rocerf.errors import NoOptimumError, NotConvergedError, OptionError, SingularCurvatureError
from rocerf.models.design import AnyDesign
from rocerf.models.logistic.curvature import Curvature
from rocerf.models.logistic.kinks import Kinks
from rocerf.models.loss import LOGISTIC, Loss
from rocerf.passes import SERIAL, added, chunks, each, over_rows
from rocerf.types import Array, Places

#: Rows handled at a time: bounds working memory whatever n is, and stays in cache.
CHUNK = 8192

#: Newton stops when the length of the next step, in the Hessian's norm, is below this.
TOLERANCE = 1e-10

#: Curvature along a direction, relative to that at theta = 0, below which all rows are certain.
SATURATED = 1e-12

#: A step this short that no longer shrinks is rounding, not progress.
ROUNDING = 1e-7


@dataclass(frozen=True)
class Penalty:
    """``(lam/2) theta'P theta``, with what happens to ``lam`` when rows are deleted; and the same of an L1 part.

    >>> Penalty.fixed(C=2.0).strength(rows=100), Penalty.mean(gamma=0.25).strength(rows=100)
    (0.5, 50.0)
    >>> Penalty.fixed(C=2.0, l1_ratio=0.5).l1_strength(rows=100)
    0.25
    """

    per_model: float = 0.0
    per_row: float = 0.0
    l1_per_model: float = 0.0
    l1_per_row: float = 0.0

    def in_words(self) -> str:
        """As a user would ask for it.

        >>> Penalty.fixed(C=2.0).in_words(), Penalty.fixed(C=1.0, l1_ratio=0.5).in_words(), Penalty().in_words()
        ('C=2', 'C=1, l1_ratio=0.5', 'no penalty')
        """
        fixed, mean = self.per_model + self.l1_per_model, self.per_row + self.l1_per_row
        if fixed and mean:
            return repr(self)
        if not fixed and not mean:
            return "no penalty"
        strength = f"gamma={mean / 2:.6g}" if mean else f"C={1.0 / fixed:.6g}"
        share = (self.l1_per_model + self.l1_per_row) / (fixed + mean)
        return f"{strength}, l1_ratio={share:.6g}" if share else strength

    @classmethod
    def fixed(cls, C: float, l1_ratio: float = 0.0) -> Penalty:
        """scikit-learn's convention, ``lam = 1/C``; ``C=inf`` is no penalty, ``l1_ratio`` the share of the L1 part."""
        if not (is_number(C) and C > 0):
            raise OptionError(f"Expected C > 0 (the inverse penalty), got {C!r}; use for example C=1.0.")
        if not (is_number(l1_ratio) and 0 <= l1_ratio <= 1):
            raise OptionError(f"Expected l1_ratio from 0 (L2) to 1 (L1), got {l1_ratio!r}.")
        return cls(per_model=(1.0 - l1_ratio) / C, l1_per_model=l1_ratio / C)

    @classmethod
    def mean(cls, gamma: float) -> Penalty:
        """The paper's convention, mean loss plus ``gamma theta'P theta``: ``lam = 2 gamma n``."""
        if not (is_number(gamma) and gamma > 0 and np.isfinite(gamma)):
            raise OptionError(
                f"Expected gamma > 0 (the penalty of each row), got {gamma!r}; use for example gamma=1e-4."
            )
        return cls(per_row=2.0 * gamma)

    def strength(self, rows: int) -> float:
        """``lam`` for a training set of this many rows."""
        return self.per_model + self.per_row * rows

    def l1_strength(self, rows: int) -> float:
        """The same of the L1 part."""
        return self.l1_per_model + self.l1_per_row * rows

    @property
    def kinked(self) -> bool:
        """Whether there is an L1 part."""
        return self.l1_per_model > 0 or self.l1_per_row > 0

    @property
    def none(self) -> bool:
        """Whether nothing is penalised."""
        return not (self.per_model or self.per_row or self.kinked)


@dataclass(frozen=True)
class LogisticObjective:
    """F of the module's docstring for one set of rows; walks over them in chunks."""

    X: Array
    y: Array
    weights: Array | None
    design: AnyDesign
    penalty: Penalty
    intercept_penalty: float  # the last entry of P; unused without an intercept
    loss: Loss = LOGISTIC

    @property
    def penalty_diagonal(self) -> Array:
        """``lam P`` as a vector of shape (p,)."""
        return self.penalty.strength(len(self.y)) * self.penalised

    @property
    def penalised(self) -> Array:
        """The diagonal of ``P``, shape (p,)."""
        diagonal = np.ones(self.design.width)
        if self.design.intercept:
            diagonal[-1] = self.intercept_penalty
        return diagonal

    @property
    def kinks(self) -> Kinks | None:
        """The L1 part; None where there is none."""
        return None if not self.penalty.kinked else Kinks(self.penalty.l1_strength(len(self.y)) * self.l1_penalised)

    @property
    def l1_penalised(self) -> Array:
        """How much of the L1 strength each coefficient has, (p,): of a penalised intercept ``|b| / s``."""
        return np.sqrt(self.penalised)

    @property
    def free_intercept(self) -> bool:
        """Whether there is an intercept that nothing holds back."""
        return self.design.intercept and (self.intercept_penalty == 0 or self.penalty.none)

    def scores(self, theta: Array) -> Array:
        """``z_i`` of all rows, (n,)."""
        return np.concatenate(each(lambda rows: self.design(self.X[rows]) @ theta, chunks(len(self.y), CHUNK), SERIAL))

    def without(self, rows: Places) -> LogisticObjective:
        """The objective of the other rows."""
        weights = None if self.weights is None else np.delete(self.weights, rows)
        X = rows_left(self.X, rows)
        y = X.labels() if isinstance(X, RowsOnDisk) else np.delete(self.y, rows)
        return replace(self, X=X, y=y, weights=weights)

    def _rows(self, rows: slice | Places) -> tuple[Array, Array, Array | float]:
        sign = 1.0 - 2.0 * self.y[rows]
        return self.design(self.X[rows]), sign, 1.0 if self.weights is None else self.weights[rows]

    def value(self, theta: Array) -> float:
        """``F(theta)``."""

        def partial(rows: slice) -> float:
            x, sign, weight = self._rows(rows)
            return float(np.sum(weight * self.loss.value(sign * (x @ theta))))

        loss: float = over_rows(partial, operator.add, len(self.y), CHUNK, runner_for(self.X))
        kinks = 0.0 if self.kinks is None else self.kinks.value(theta)
        return 0.5 * float(self.penalty_diagonal @ theta**2) + kinks + loss

    def gradient_and_hessian(self, theta: Array) -> tuple[Array, Array]:
        """``grad F`` of shape (p,) and ``H`` of shape (p, p) from one pass over the rows."""

        def partial(rows: slice) -> tuple[Array, Array]:
            x, sign, weight = self._rows(rows)
            z = x @ theta
            return (weight * self.loss.residual(z, sign)) @ x, (x * (weight * self.loss.curvature(z))[:, None]).T @ x

        gradient, hessian = over_rows(partial, added, len(self.y), CHUNK, runner_for(self.X))
        lam = self.penalty_diagonal
        hessian += np.diag(lam)
        return gradient + lam * theta, (hessian + hessian.T) / 2

    def row_gradients(self, theta: Array, rows: slice | Places) -> Array:
        """``g_i`` for these rows, shape (m, p)."""
        return self.gradients_from(theta, *self._rows(rows))

    def gradients_from(self, theta: Array, x: Array, sign: Array, weight: Array | float) -> Array:
        """The same of design rows (m, p), signs and weights at hand; written over the rows."""
        x *= (weight * self.loss.residual(x @ theta, sign))[:, None]
        shares = self.penalty.per_row * self.penalised * theta
        shares += self.penalty.l1_per_row * self.l1_penalised * np.sign(theta)
        if shares.any():
            x += shares
        return x

    def minimise(self, start: Array, *, max_iterations: int = 100) -> Minimum:
        """Newton's method with backtracking, from ``start``, to :data:`TOLERANCE`."""
        self._refuse_one_class()
        theta, value = start, self.value(start)
        previous: float = np.inf
        for iteration in range(max_iterations):
            gradient, hessian = self.gradient_and_hessian(theta)
            step, decrement = self._step(theta, gradient, hessian)
            settled = decrement <= TOLERANCE or (decrement < ROUNDING and decrement > previous / 2)
            if settled:
                self._refuse_saturated(hessian)
                theta, curvature = (
                    (theta, self._factorise(hessian)) if self.kinks is None else self.kinks.corner(theta, hessian)
                )
                return Minimum(theta, curvature, decrement, iteration)
            theta, value = self._backtrack(theta, value, step, decrement)
            previous = decrement
        raise NotConvergedError(
            f"Expected Newton's method to reach {TOLERANCE:g} within {max_iterations} iterations, got {previous:.1e}; "
            "scale the columns (scaling is on by default) or use a stronger penalty (smaller C)."
        )

    def _step(self, theta: Array, gradient: Array, hessian: Array) -> tuple[Array, float]:
        """Newton's step from parameters (p,), and its length in the Hessian's norm."""
        if self.kinks is not None:
            step = self.kinks.step(theta, gradient, hessian)
            return step, self.kinks.decrement(theta, gradient, step)
        step = -self._factorise(hessian).solve(gradient)
        return step, math.sqrt(max(-float(gradient @ step), 0.0))

    def _backtrack(self, theta: Array, value: float, step: Array, decrement: float) -> tuple[Array, float]:
        length = 1.0
        slack = 1e-13 * (1.0 + abs(value))  # the value's own rounding: near the optimum it hides the decrease
        for _ in range(60):
            candidate = theta + length * step
            new_value = self.value(candidate)
            if new_value <= value - 1e-4 * length * decrement**2 + slack:
                return candidate, new_value
            length /= 2
        raise NotConvergedError(
            f"Expected a Newton step that lowers the loss, found none (step length {decrement:.1e}); "
            "the columns are too badly scaled: standardise them or use a stronger penalty (smaller C)."
        )

    def _factorise(self, hessian: Array) -> Curvature:
        try:
            return Curvature(hessian)
        except SingularCurvatureError:
            self._refuse_saturated(hessian)
            raise

    def _refuse_saturated(self, hessian: Array) -> None:
        """Without a penalty, refuse rows that some direction separates.

        Along such a direction the loss falls for ever. Newton's steps still shrink, so that it would call a place far
        out the optimum; but there all rows that the direction moves are certain, and the curvature along it is nothing
        compared with that at theta = 0.
        """
        if not self.penalty.none:
            return
        _, at_zero = self.gradient_and_hessian(np.zeros(self.design.width))
        unit = Curvature(at_zero)  # dependent columns are singular here already: another error
        half = unit.whiten(hessian)
        if np.linalg.eigvalsh(unit.whiten(half.T))[0] < SATURATED:
            raise NoOptimumError(
                "Expected classes that overlap, got rows in which some combination of columns separates the classes, "
                "so that without a penalty its coefficients grow without end; use a finite C (for example C=1)."
            )

    def _refuse_one_class(self) -> None:
        counted = self.y if self.weights is None else self.y[self.weights > 0]
        if self.free_intercept and (counted.min() == counted.max()):
            raise NoOptimumError(
                f"Expected rows of both classes, got {len(counted)} rows of one class only: with an unpenalised "
                "intercept such a model has no optimum; keep at least one row of each class."
            )


@dataclass(frozen=True)
class Minimum:
    """Where Newton stopped.

    ``optimality`` is the length of the next Newton step in the Hessian's norm: how far from the exact minimiser, in
    units that do not depend on scaling.
    """

    theta: Array
    curvature: Curvature
    optimality: float
    iterations: int
