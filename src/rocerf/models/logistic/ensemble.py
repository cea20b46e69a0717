"""Many linear models, retrained already, asked for their scores at once.

Retraining many at once is :mod:`rocerf.deletion.batched_newton`; networks have :mod:`rocerf.models.network.ensemble`.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from rocerf.models.additive import AdditiveDesign
from rocerf.types import Array, Progress


@dataclass(frozen=True, eq=False)
class LinearEnsemble:
    """M models that score ``slopes[m]'x + constants[m]`` in schema space; slopes (M, d), constants (M,).

    Where there is a ``lift``, x is the lifted point, and slopes have its columns.

    >>> import numpy as np
    >>> models = LinearEnsemble(np.array([[1.0, 0.0], [0.0, 2.0]]), np.array([0.0, -1.0]))
    >>> models.scores(np.array([[3.0, 4.0]])).tolist()
    [[3.0], [7.0]]
    """

    slopes: Array
    constants: Array
    lift: AdditiveDesign | None = None

    @classmethod
    def of(
        cls,
        deletions: Sequence[NDArray[Any]],
        halfspace: Callable[[NDArray[Any]], tuple[Array, Array | float]],
        columns: int,
        progress: Progress | None = None,
        lift: AdditiveDesign | None = None,
    ) -> LinearEnsemble:
        """The models after each of M deletions, whose slopes (d,) and constant ``halfspace`` finds one by one."""
        slopes, constants = np.empty((len(deletions), columns)), np.empty(len(deletions))
        for trial, deleted in enumerate(deletions):
            slopes[trial], constants[trial] = halfspace(deleted)
            if progress is not None:
                progress(trial + 1, len(deletions))
        return cls(slopes, constants, lift)

    def __len__(self) -> int:
        return len(self.constants)

    def __getitem__(self, part: slice) -> LinearEnsemble:
        return LinearEnsemble(self.slopes[part], self.constants[part], self.lift)

    def joined(self, other: LinearEnsemble) -> LinearEnsemble:
        """These models and, after them, the others."""
        slopes, constants = (self.slopes, other.slopes), (self.constants, other.constants)
        return LinearEnsemble(np.concatenate(slopes), np.concatenate(constants), self.lift)

    def arrays(self) -> list[Array]:
        """What makes the ensemble."""
        return [self.slopes, self.constants]

    def scores(self, X: Array) -> Array:
        """Score of every point (P, d) by every model, shape (M, P)."""
        return self.of_lifted(X if self.lift is None else self.lift.lifted(X))

    def of_lifted(self, Z: Array) -> Array:
        """Score of every lifted point (P, D) by every model, shape (M, P)."""
        return self.slopes @ Z.T + self.constants[:, None]

    def scores_and_pullback(self, X: Array) -> tuple[Array, Callable[[Array], Array]]:
        """Scores (M, P), and the map from weights (M, P) to the weighted sum of slopes, (P, d)."""
        return self.scores(X), lambda weights: weights.T @ self.slopes
