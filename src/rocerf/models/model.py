"""What models can do: small interfaces that everything above the models is written against.

Each says what one kind of work needs, and no more; whatever anybody reads from a model is declared here::

    Classifier          scores people, knows its rows, and can be trained again without some of them
    Refittable          a Classifier retrained many at a time, in the user's own columns: `simulated`, audits, results
    Timed               what a Refittable adds that knows how long retraining takes: announcements
    Smooth              has a slope of the score at x: gradient solvers
    Model               a Classifier with its objective: row gradients and curvature, so first-order effects of rows
    FirstOrderModel     a smooth Model: the paper's constraint with its slope
    LinearModel         a FirstOrderModel whose score is affine in x, so that slopes are cuts
    ExactModel          a LinearModel at the one optimum of a known objective: what can be proven about deletions
    Proposing           a Refittable without one optimum that can name rows which hold a point up: the adversary tries

A new kind of model inherits from the ones that it follows: they have the usual answer wherever there is one, so that it
writes only what is its own.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterable, Sequence
from os import PathLike
from typing import TYPE_CHECKING, Any, Literal, Protocol, Self, runtime_checkable

import numpy as np
from numpy.typing import ArrayLike, NDArray
from scipy.special import logit

from rocerf.data.columns import people_matrix
from rocerf.data.frames import Frames, people_in_schema_space
from rocerf.data.training_set import TrainingSet
from rocerf.errors import UnsupportedModelError
from rocerf.models.additive import AdditiveDesign
from rocerf.models.ensembles import Ensemble, SmoothEnsemble
from rocerf.types import Array, Mask, Progress
from rocerf.words import Said

if TYPE_CHECKING:
    import pandas as pd

    from rocerf.data.schema import FeatureSchema
    from rocerf.models.arithmetic import Arithmetic
    from rocerf.models.design import AnyDesign
    from rocerf.models.logistic.curvature import Curvature
    from rocerf.models.logistic.objective import LogisticObjective, Penalty
    from rocerf.models.sklearn.own_refit import OwnRefit, RetrainingRule
    from rocerf.models.sklearn.pipeline_parts import PipelineParts, PreprocessingRule
    from rocerf.storage.state import State

#: How a model is trained again: from a new initialisation, or on from the present parameters.
Retraining = Literal["fresh", "warm"]
RETRAININGS: tuple[Retraining, ...] = ("fresh", "warm")

#: Values (P,) and gradients in x (P, d) at points (P, d).
ValueAndSlope = Callable[[Array], tuple[Array, Array]]

#: Training rows whose scores are compared.
COMPARED_ROWS = 4096


class LinearSolver(Protocol):
    """``H^-1 v`` for a positive definite H of ``width`` rows."""

    @property
    def width(self) -> int:
        """Number of parameters p."""
        ...

    def solve(self, vectors: Array) -> Array:
        """``H^-1 v`` for one vector (p,) or for each row of (m, p)."""
        ...


@runtime_checkable
class Classifier(Protocol):
    """Says yes or no to people of d columns: yes from score 0 on."""

    @property
    def train(self) -> TrainingSet:
        """The rows it was fitted on."""
        ...

    @property
    def class_counts(self) -> dict[Any, int]:
        """Rows of each label that carry weight."""
        return class_counts(self.train, self.train.weights)

    @property
    def frames(self) -> Frames | None:
        """Between the user's own columns and schema space, for a model made by :func:`rocerf.from_pipeline`."""
        return None

    @property
    def preprocessing(self) -> PreprocessingRule | None:
        """Whether a pipeline's preprocessing stays ("frozen") or is fitted again ("refitted") when rows are deleted."""
        return None

    def matrix(self, X: ArrayLike | pd.DataFrame) -> Array:
        """People as numbers in the model's column order, shape (P, d); a DataFrame is matched by name.

        For a model from a pipeline a DataFrame has the user's own columns, or those of schema space.
        """
        if self.frames is not None:
            return people_in_schema_space(X, self.frames)
        matrix, _ = people_matrix(X, self.train.columns, named=self.train.from_frame)
        return matrix

    def score(self, X: ArrayLike | pd.DataFrame) -> Array:
        """Scores of shape (P,) for people of shape (P, d)."""
        ...

    def deployed_score(self, X: ArrayLike | pd.DataFrame) -> Array:
        """Scores of the model people are judged by today, shape (P,): this one, unless it says otherwise."""
        return self.score(X)

    def predict(self, X: ArrayLike | pd.DataFrame) -> NDArray[np.int64]:
        """1 where accepted, else 0, by the model as deployed; shape (P,)."""
        return (self.deployed_score(X) >= 0).astype(np.int64)

    def removable_class(self, k: int) -> Any | None:
        """A label all of whose rows k deletions could remove, if there is then no model."""
        label, count = min(self.class_counts.items(), key=lambda item: item[1])
        return label if count <= k else None

    def without(self, ids: Iterable[Any]) -> Self:
        """The model retrained after deleting these rows."""
        ...


def class_counts(train: TrainingSet, weights: Array | None) -> dict[Any, int]:
    """Rows of each label whose weight (n,) is not 0."""
    counted = train.y if weights is None else train.y[weights > 0]
    good = int(counted.sum())
    return {train.favourable: good, train.unfavourable: len(counted) - good}


@runtime_checkable
class Refittable(Classifier, Protocol):
    """A classifier that people are judged by, and that can be retrained after many deletions."""

    @property
    def threshold(self) -> float:
        """Probability of the favourable label from which a person is accepted."""
        return 0.5

    @property
    def offset(self) -> float:
        """``score = log-odds - offset``."""
        return float(logit(self.threshold))

    @property
    def schema(self) -> FeatureSchema | None:
        """What the user's columns mean, for a model from a pipeline."""
        return None if self.frames is None else self.frames.schema

    @property
    def own_refit(self) -> OwnRefit | None:
        """The user's own estimator to be fitted again; None where retraining is ours or the estimator not at hand."""
        return None

    def own_rows(self) -> pd.DataFrame:
        """The training rows in the user's own columns, gaps included."""
        return self.train.frame()

    def refitted(
        self,
        deletions: Sequence[NDArray[Any]],
        *,
        retraining: Retraining = "fresh",
        seed: int = 0,
        trials: Sequence[int] | None = None,
        progress: Progress | None = None,
    ) -> Ensemble:
        """The model retrained after each of M deletions (arrays of ids); model m depends on (seed, trials[m]) alone.

        ``trials`` are 0, 1, 2, ... where they are left out; those with the same number have the same start.
        """
        ...

    def restored(self, arrays: Sequence[Any]) -> Ensemble:
        """Retrained models from their saved arrays, for models whose ensembles have some."""
        ...

    def forget(self, ids: Iterable[Any], *, declared: Collection[str] = ()) -> Self:
        """A new model in which nothing of these rows is left, as if they had never been there.

        ``declared`` are columns of schema space (``feature=category``) that stay though no row left has the category.
        """
        raise UnsupportedModelError(
            f"Expected a LogisticModel, NeuralModel or EstimatorModel to forget rows, got {type(self).__name__}; "
            "train it on the rows left and take it over again."
        )

    def known_by(self) -> tuple[dict[str, Any], dict[str, NDArray[Any]]]:
        """What tells this model from others, all that retraining depends on: plain values, and arrays.

        By default it is known by what it says of its training rows.
        """
        return {}, {"scores": self.score(self.train.X[:COMPARED_ROWS])}

    def assumptions(self) -> tuple[Said, ...]:
        """What "retrained" means for this model, in sentences."""
        ...

    def state(self) -> State:
        """Model and training rows as plain values and arrays, to be kept anywhere."""
        raise UnsupportedModelError(
            f"Expected a model that can be kept, got a {type(self).__name__}; make it again from its training rows."
        )

    def save(self, path: str | PathLike[str]) -> None:
        """Write the :meth:`state` to one ``.npz`` file (plain arrays and JSON, no pickle).

        It holds all training rows with their ids and labels, so only its owner can read it.
        """
        self.state().write(path)


@runtime_checkable
class Timed(Protocol):
    """What a Refittable adds that can tell beforehand how long retraining will take."""

    def seconds_to_retrain(self, count: int, *, retraining: Retraining = "fresh") -> float | None:
        """About how long retraining after so many deletions takes, by trying a small part; None if not known."""
        ...


@runtime_checkable
class Stackable(Protocol):
    """What a Smooth Refittable adds of which many are asked at once: how long that takes can be tried beforehand."""

    train: TrainingSet

    def copies(self, count: int) -> SmoothEnsemble:
        """This model so many times, to be asked as retrained ones are."""
        ...


@runtime_checkable
class Smooth(Protocol):
    """A model whose score has a slope in x."""

    def score_and_slope(self, X: Array) -> tuple[Array, Array]:
        """Scores (P,) and their gradients in x (P, d)."""
        ...


@runtime_checkable
class Model(Classifier, Protocol):
    """A fitted classifier together with the objective it minimises; ``theta`` has p entries, people d columns."""

    @property
    def device(self) -> str:
        """Where its arrays live while it computes: "cpu", "cuda", ..."""
        return "cpu"

    def score_gradient(self, X: Array) -> Array:
        """``d score / d theta`` at each person, shape (P, p)."""
        ...

    def row_gradients(self, rows: slice | NDArray[np.intp]) -> Array:
        """Gradient of these training rows' shares of the objective, shape (m, p)."""
        ...

    def curvature(self) -> LinearSolver:
        """Hessian of the objective (a total over rows), ready to solve with."""
        ...


@runtime_checkable
class FirstOrderModel(Model, Smooth, Protocol):
    """A model whose score can be followed, to first order, when its parameters move."""

    @property
    def damping(self) -> float | None:
        """What is added to the diagonal of the mean curvature; None for a model at its optimum, which needs none."""
        return None

    def shifted_score(self, shifts: Array) -> ValueAndSlope:
        """For shifts of the parameters (P, p), the map from points (P, d) to values and slopes in x.

        The value at x_j is ``score(x_j) + score_gradient(x_j)'shifts[j]``.
        """
        ...


@runtime_checkable
class LinearModel(FirstOrderModel, Protocol):
    """A model whose score is ``score_gradient(x)'theta - offset``, affine in schema space, or else in *lifted* space.

    Lifted space is schema space unless :attr:`lift` says how it comes about: then half-spaces, slopes and cuts of this
    model have D columns, those of :meth:`lifted` points.
    """

    @property
    def lift(self) -> AdditiveDesign | None:
        """How points are lifted; None where they are taken as they are."""
        design = self.design
        return design if isinstance(design, AdditiveDesign) else None

    def lifted(self, X: Array) -> Array:
        """Points (P, d) where scores are affine, (P, D)."""
        return X if self.lift is None else self.lift.lifted(X)

    @property
    def theta(self) -> Array:
        """Parameters of shape (p,)."""
        ...

    @property
    def deployed_theta(self) -> Array | None:
        """Parameters as the user deployed them, where they differ from the exact optimum."""
        return None

    @property
    def design(self) -> AnyDesign:
        """The map from the user's columns to design rows."""
        ...

    def halfspaces(self, coefficients: Array) -> tuple[Array, Array]:
        """Slopes (m, D) and constants (m,) in lifted space of models with these parameters (m, p).

        The model with parameters ``coefficients[j]`` scores ``slopes[j]'lifted(x) + constants[j]``.
        """
        ...

    def score_gradient(self, X: Array) -> Array:
        """The design rows: ``d score / d theta``, shape (P, p)."""
        return self.design(X)

    def score_and_slope(self, X: Array) -> tuple[Array, Array]:
        """Scores (P,) and their gradients in lifted x, (P, D): the same everywhere."""
        slopes, constants = self.halfspaces(self.theta)
        Z = self.lifted(X)
        return Z @ slopes + constants, np.broadcast_to(slopes, Z.shape)

    def shifted_score(self, shifts: Array) -> ValueAndSlope:
        """For shifts of the parameters (P, p): the map from points (P, d) to the moved models' scores and slopes."""
        slopes, constants = self.halfspaces(self.theta + shifts)
        return lambda X: (np.einsum("ij,ij->i", slopes, self.lifted(X)) + constants, slopes)


@runtime_checkable
class ExactModel(LinearModel, Refittable, Protocol):
    """A linear model at the one optimum of a known objective, so that what a deletion does to it is a fact.

    Deletions are searched for in batches, and bounds proven, from :attr:`objective` and the design rows.
    """

    @property
    def objective(self) -> LogisticObjective:
        """What the parameters minimise."""
        ...

    @property
    def penalty(self) -> Penalty:
        """The penalty and what happens to it when rows go."""
        ...

    @property
    def arithmetic(self) -> Arithmetic:
        """How the model taken over computes; our own fit does in double precision."""
        ...

    @property
    def parts(self) -> PipelineParts | None:
        """What a model has that came from a pipeline."""
        ...

    @property
    def frozen(self) -> Self:
        """The same model, whose preprocessing stays as it is when rows are deleted; itself, where it does."""
        ...

    @property
    def retraining(self) -> RetrainingRule | None:
        """Who retrains a model taken over from scikit-learn: its user ("own") or rocerf ("exact"); None for our fit."""
        ...

    @property
    def weighs_anew(self) -> bool:
        """Whether class weights are other ones when rows are deleted."""
        return False

    @property
    def kinked(self) -> bool:
        """Whether its objective has kinks (an L1 penalty), so that first order and proofs do not hold for it."""
        return False

    def determined(self, X: Array) -> Mask:
        """Where the training rows say what the score of points (P, d) is; (P,)."""
        return np.ones(len(X), dtype=bool)

    def with_retraining(self, retraining: RetrainingRule) -> Self:
        """The same model taken over from scikit-learn with another rule for who retrains it."""
        ...

    def with_preprocessing(self, preprocessing: PreprocessingRule) -> Self:
        """The same model of a pipeline with another rule for its preprocessing when rows are deleted."""
        ...

    def curvature(self) -> Curvature:
        """Hessian at the optimum, factorised."""
        ...

    def training_design(self) -> Array:
        """The design rows that it is trained on, (n, p)."""
        ...

    def own_design(self, X: ArrayLike | pd.DataFrame) -> tuple[Array, NDArray[np.bool_]]:
        """Design rows of people as its pipeline itself makes them, (P, p), and whether it made them, (P,)."""
        ...

    def own_lifted(self, X: Array, rows: Any = None) -> Array:
        """Points (P, d) that leave, lifted (P, D) as a pipeline itself makes them of ``rows``, as they are handed out.

        As :meth:`lifted` where there is nothing to lift, or no pipeline at hand; NaN where it fails.
        """
        if self.lift is None:
            return X
        design, _ = self.own_design(X if rows is None else rows)
        return design[:, : len(self.lift.shift)]

    def beyond_design(self, X: Array) -> Array:
        """What scores are besides ``x~'theta``, for points (P, d): the threshold, categories refused; shape (P,)."""
        ...


@runtime_checkable
class Proposing(Refittable, Protocol):
    """A model whose retraining has no single outcome, and that can guess which rows hold a point up.

    Guesses are free: whatever is said about a deletion is said after it was really retrained.
    """

    @property
    def proposals(self) -> tuple[str, ...]:
        """Names of its ways to guess, the most trustworthy first."""
        ...

    def harms(self, X: Array, proposal: str) -> Array:
        """How far deleting each training row alone is guessed to move the scores of points (P, d); shape (P, n).

        The lower, the more harmful; the units are those of the proposal, the same for all rows of a point.
        """
        ...

    def as_retrained(self, models: Any, place: int) -> Self:
        """One of the models that :meth:`refitted` gave, as a model of these training rows: to guess with."""
        ...
