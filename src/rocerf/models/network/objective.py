"""The objective of a network, and what deleting rows does to it, to first order.

Written once for all: ``F(theta) = sum_i omega_i loss_i(theta) + n weight_decay/2 |theta|^2``, a total over the n
training rows with cross entropy ``loss_i``. Then, with logits ``z_i``, ``p_i = sigma(z_i)`` and Jacobians
``J_i = dz_i/dtheta``,

    g_i = omega_i (p_i - y_i) J_i + weight_decay theta,        (a row's share: the penalty is on the mean loss)
    H   = sum_i omega_i p_i (1 - p_i) J_i J_i' + n (weight_decay + damping) I,

the generalised Gauss-Newton matrix with a damping. Deleting row i moves theta by ``+ H^-1 g_i`` to first order. A
network stops before its optimum, so this describes retraining *on from the present parameters*; a fresh
initialisation moves the score more than a few deleted rows do, which is what the promise ``simulated`` is for.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from functools import cached_property

import numpy as np
from numpy.typing import NDArray
from torch.nn import functional

from rocerf.data.training_set import TrainingSet
from rocerf.models.design import Design
from rocerf.models.loss import LOGISTIC
from rocerf.models.model import ValueAndSlope
from rocerf.models.network.ensemble import NetworkEnsemble
from rocerf.models.network.gauss_newton import GaussNewton, gauss_newton
from rocerf.models.network.network import Tensor, array, state_arrays, tensor
from rocerf.models.network.slopes import NetworkSlopes
from rocerf.passes import chunks
from rocerf.types import Array

#: Bytes of the Jacobians held at a time while people are asked for theirs.
JACOBIAN_BYTES = 128 * 2**20


@dataclass(frozen=True, eq=False)
class NetworkObjective:
    """F of the module's docstring at the parameters of one module, behind one scaling, on one device."""

    module: Tensor
    train: TrainingSet
    design: Design
    weight_decay: float
    damping: float
    device: str

    @cached_property
    def theta(self) -> Array:
        """Parameters of shape (p,), in the module's order."""
        return np.concatenate([array(parameter).ravel() for parameter in self.module.parameters()])

    @cached_property
    def _slopes(self) -> NetworkSlopes:
        return NetworkSlopes(self.module)

    def _tensor(self, X: Array) -> Tensor:
        return tensor(self.design(X), self.device)

    def logit_gradients(self, X: Array) -> Array:
        """``d logit / d theta`` at each person, shape (P, p)."""
        size = max(1, JACOBIAN_BYTES // (8 * len(self.theta)))
        blocks = [self._tensor(X[first : first + size]) for first in range(0, len(X), size)]
        parts = [array(self._slopes.jacobian(block)) for block in blocks]
        return np.concatenate(parts) if parts else np.empty((0, len(self.theta)))

    @cached_property
    def _weights(self) -> Array:
        return np.ones(len(self.train)) if self.train.weights is None else self.train.weights

    @cached_property
    def _logits(self) -> Array:
        alone = NetworkEnsemble.of(
            self.module, [values[None] for values in state_arrays(self.module)], self.design, 0.0
        )
        return np.asarray(alone.scores(self.train.X)[0])

    def row_gradients(self, rows: slice | NDArray[np.intp]) -> Array:
        """``g_i`` for these training rows, shape (m, p)."""
        gradients = self._residuals(rows)[:, None] * self.logit_gradients(self.train.X[rows])
        return np.asarray(gradients + self.weight_decay * self.theta if self.weight_decay else gradients)

    def effects(self, X: Array) -> Array:
        """How far deleting each row alone moves the logits of points (P, d) to first order, shape (P, n)."""
        solved = self.curvature.solve_tensor(self._jacobian(X))
        residuals = tensor(self._residuals(slice(None)), self.device)
        parts = [solved @ J.T * residuals[rows] for rows, J in self._row_jacobians()]
        decayed = self.weight_decay * (array(solved) @ self.theta)[:, None] if self.weight_decay else 0.0
        return np.asarray(np.concatenate([array(part) for part in parts], axis=1) + decayed)

    def kinship(self, X: Array) -> Array:
        """The cosine between the logit's slopes in the parameters at points (P, d) and at each row, shape (P, n)."""
        own = functional.normalize(self._jacobian(X), dim=1)
        parts = [array(own @ functional.normalize(J, dim=1).T) for _, J in self._row_jacobians()]
        return np.concatenate(parts, axis=1)

    def _jacobian(self, X: Array) -> Tensor:
        return tensor(self.logit_gradients(X), self.device)

    def _row_jacobians(self) -> Iterator[tuple[slice, Tensor]]:
        """``J_i`` of all training rows in chunks, on the device."""
        scaled = self._tensor(self.train.X)
        for rows in chunks(len(scaled), max(1, JACOBIAN_BYTES // (8 * len(self.theta)))):
            yield rows, self._slopes.jacobian(scaled[rows])

    def _residuals(self, rows: slice | NDArray[np.intp]) -> Array:
        return np.asarray(self._weights[rows] * LOGISTIC.residual(self._logits[rows], 1.0 - 2.0 * self.train.y[rows]))

    @cached_property
    def curvature(self) -> GaussNewton:
        """``H``, ready to solve with."""
        rows = self._tensor(self.train.X)
        weights = tensor(self._weights * LOGISTIC.curvature(self._logits), self.device)
        ridge = len(self.train) * (self.weight_decay + self.damping)
        return gauss_newton(lambda part: self._slopes.jacobian(rows[part]), weights, ridge, width=len(self.theta))

    def shifted_logit(self, shifts: Array) -> ValueAndSlope:
        """For shifts (P, p): the map from points (P, d) to ``logit + logit_gradient'shift`` and its slopes in x.

        One Jacobian-vector product in the direction of the shift, and its gradient in x.
        """
        along = self._slopes.along(tensor(shifts, self.device))

        def read(X: Array) -> tuple[Array, Array]:
            values, slopes = along(self._tensor(X))
            return array(values), array(slopes) / self.design.scale

        return read
