"""The small interfaces that everything above the models is written against.

Each says what one kind of work needs, and no more::

    Refittable          scores people and can be trained again without some rows: `simulated`, evaluation, recheck
    Smooth              also has a slope of the score at x: gradient solvers
    Model               a classifier with its objective: row gradients and curvature, so first-order effects of rows
    FirstOrderModel     both: the paper's constraint with its slope
    LinearModel         a FirstOrderModel whose score is affine in x, so that slopes are cuts
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from typing import Any, Literal, Protocol, Self, runtime_checkable

import numpy as np
from numpy.typing import ArrayLike, NDArray

from rocerf.data.training_set import TrainingSet
from rocerf.types import Array, Progress

#: How a model is trained again: from a new initialisation, or on from the present parameters.
Retraining = Literal["fresh", "warm"]
RETRAININGS: tuple[Retraining, ...] = ("fresh", "warm")


#: Values (P,) and gradients in x (P, d) at points (P, d).
ValueAndSlope = Callable[[Array], tuple[Array, Array]]


class LinearSolver(Protocol):
    """``H^-1 v`` for a positive definite H of ``width`` rows."""

    @property
    def width(self) -> int:
        """Number of parameters p."""
        ...

    def solve(self, vectors: Array) -> Array:
        """``H^-1 v`` for one vector (p,) or for each row of (m, p)."""
        ...


class Ensemble(Protocol):
    """M models of one kind, retrained."""

    def __len__(self) -> int: ...

    def __getitem__(self, part: slice) -> Ensemble: ...

    def scores(self, X: Array) -> Array:
        """Score of every point (P, d) by every model, shape (M, P)."""
        ...


@runtime_checkable
class SmoothEnsemble(Ensemble, Protocol):
    """M models whose scores have slopes in x."""

    def scores_and_pullback(self, X: Array) -> tuple[Array, Callable[[Array], Array]]:
        """Scores (M, P), and the map from weights (M, P) to ``sum_m weights[m, j] dscore_m/dx`` at x_j, (P, d)."""
        ...


@runtime_checkable
class Refittable(Protocol):
    """A classifier that can be trained again without some of its rows. It accepts a person from score 0 on."""

    @property
    def train(self) -> TrainingSet:
        """The rows it was fitted on."""
        ...

    def matrix(self, X: Any) -> Array:
        """People as numbers in the model's column order, shape (P, d); a DataFrame is matched by name."""
        ...

    def score(self, X: ArrayLike) -> Array:
        """Scores of shape (P,) for people of shape (P, d)."""
        ...

    def deployed_score(self, X: ArrayLike) -> Array:
        """Scores of the model people are judged by today, shape (P,)."""
        ...

    def predict(self, X: ArrayLike) -> NDArray[np.int64]:
        """1 where accepted (score >= 0), else 0; shape (P,)."""
        ...

    def without(self, ids: Iterable[Any]) -> Self:
        """The model retrained after deleting these rows."""
        ...

    def refitted(
        self,
        deletions: Sequence[NDArray[Any]],
        *,
        retraining: Retraining = "fresh",
        seed: int = 0,
        progress: Progress | None = None,
    ) -> Ensemble:
        """The model retrained after each of M deletions (arrays of ids)."""
        ...

    def restored(self, arrays: Sequence[Any]) -> Ensemble:
        """Retrained models from their saved arrays, for models whose ensembles have ``arrays()``."""
        ...

    def removable_class(self, k: int) -> Any | None:
        """A label all of whose rows k deletions could remove, if there is then no model."""
        ...

    def assumptions(self) -> tuple[str, ...]:
        """What "retrained" means for this model, in sentences."""
        ...

    def save(self, path: Any) -> None:
        """Write model and training rows to one file, without pickle."""
        ...


@runtime_checkable
class Smooth(Protocol):
    """A model whose score has a slope in x."""

    def score_and_slope(self, X: Array) -> tuple[Array, Array]:
        """Scores (P,) and their gradients in x (P, d)."""
        ...


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

    def curvature(self) -> LinearSolver:
        """Hessian of the objective (a total over rows), ready to solve with."""
        ...

    def without(self, ids: Iterable[Any]) -> Self:
        """The exactly retrained model after deleting these rows."""
        ...


@runtime_checkable
class FirstOrderModel(Model, Smooth, Protocol):
    """A model whose score can be followed, to first order, when its parameters move."""

    def removable_class(self, k: int) -> Any | None:
        """A label all of whose rows k deletions could remove, if there is then no model."""
        ...

    def shifted_score(self, shifts: Array) -> ValueAndSlope:
        """For shifts of the parameters (P, p), the map from points (P, d) to values and slopes in x.

        The value at x_j is ``score(x_j) + score_gradient(x_j)'shifts[j]``.
        """
        ...


@runtime_checkable
class LinearModel(FirstOrderModel, Protocol):
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
