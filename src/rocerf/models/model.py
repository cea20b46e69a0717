"""The small interface that everything above the models is written against."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any, Protocol, Self, runtime_checkable

import numpy as np
from numpy.typing import ArrayLike, NDArray

from rocerf.data.training_set import TrainingSet
from rocerf.models.curvature import Curvature

Array = NDArray[np.float64]


@runtime_checkable
class Model(Protocol):
    """A fitted classifier together with the objective it minimises.

    It accepts a person when the score is at least 0. ``theta`` has p entries, people d columns.
    """

    @property
    def train(self) -> TrainingSet:
        """The rows it was fitted on."""
        ...

    def score(self, X: ArrayLike) -> Array:
        """Scores of shape (P,) for people of shape (P, d)."""
        ...

    def predict(self, X: ArrayLike) -> NDArray[np.int64]:
        """1 where accepted (score >= 0), else 0; shape (P,)."""
        ...

    def score_gradient(self, X: Array) -> Array:
        """``d score / d theta`` at each person, shape (P, p)."""
        ...

    def row_gradients(self, rows: slice | NDArray[np.intp]) -> Array:
        """Gradient of these training rows' shares of the objective, shape (m, p)."""
        ...

    def curvature(self) -> Curvature:
        """Hessian of the objective (a total over rows), factorised."""
        ...

    def without(self, ids: Iterable[Any]) -> Self:
        """The exactly retrained model after deleting these rows."""
        ...


@runtime_checkable
class LinearModel(Model, Protocol):
    """A model whose score is ``score_gradient(x)'theta - offset``, affine in schema space."""

    @property
    def theta(self) -> Array:
        """Parameters of shape (p,)."""
        ...

    @property
    def deployed_theta(self) -> Array | None:
        """Parameters as the user deployed them, where they differ from the exact optimum."""
        ...

    def halfspaces(self, coefficients: Array) -> tuple[Array, Array]:
        """Slopes (m, d) and constants (m,) in schema space of models with these parameters (m, p).

        The model with parameters ``coefficients[j]`` scores ``slopes[j]'x + constants[j]``.
        """
        ...

    def removable_class(self, k: int) -> Any | None:
        """A label all of whose rows k deletions could remove, if retraining then has no optimum."""
        ...
