"""How far deleting each single row moves the parameters, to first order.

Deleting row i moves ``theta`` by ``+ v_i = + H^-1 g_i`` (H and g_i as in the model's objective: totals,
no 1/n). All rows share one factorisation of H.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from rocerf.models.model import Model

#: Rows handled at a time, so that working memory does not grow with n.
CHUNK = 8192


@dataclass(frozen=True, eq=False)
class RowEffects:
    """``v_i`` for all rows, in a shuffled order that makes any prefix a fair sample.

    ``vectors`` has shape (n, p); ``rows[j]`` is the row number (in the training set) of
    ``vectors[j]``.
    """

    vectors: NDArray[np.float64]
    rows: NDArray[np.intp]

    @classmethod
    def of(cls, model: Model, *, seed: int = 0) -> RowEffects:
        """Effects of all training rows of a model at its optimum.

        >>> import rocerf
        >>> train = rocerf.TrainingSet([[1.0], [2.0], [3.0], [4.0]], [0, 1, 0, 1])
        >>> RowEffects.of(rocerf.LogisticModel.fit(train)).vectors.shape
        (4, 2)
        """
        n = len(model.train)
        curvature = model.curvature()
        order = np.random.default_rng(seed).permutation(n)
        vectors = np.empty((n, curvature.hessian.shape[0]))
        for start in range(0, n, CHUNK):
            part = slice(start, start + CHUNK)
            vectors[part] = curvature.solve(model.row_gradients(order[part]))
        return cls(vectors, order)

    def in_training_order(self) -> NDArray[np.float64]:
        """The effects ordered as the training rows, shape (n, p)."""
        ordered = np.empty_like(self.vectors)
        ordered[self.rows] = self.vectors
        return ordered
