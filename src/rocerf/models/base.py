"""What most models have in common, so that a new kind writes only what is its own."""

from __future__ import annotations

from collections.abc import Collection, Iterable
from functools import cached_property
from os import PathLike
from typing import TYPE_CHECKING, Any, Self

import numpy as np
from numpy.typing import ArrayLike, NDArray
from scipy.special import logit

from rocerf.data.columns import people_matrix
from rocerf.data.frames import Frames, people_in_schema_space
from rocerf.data.training_set import TrainingSet
from rocerf.errors import UnsupportedModelError
from rocerf.models.model import Classifier, LinearModel, ValueAndSlope
from rocerf.storage.state import State
from rocerf.types import Array

if TYPE_CHECKING:
    import pandas as pd

    from rocerf.data.schema import FeatureSchema
    from rocerf.models.sklearn.own_refit import OwnRefit
    from rocerf.models.sklearn.pipeline_parts import PreprocessingRule


#: Training rows whose scores are compared, for models that are known by what they say.
COMPARED_ROWS = 4096


class BaseModel(Classifier):
    """A classifier of its training rows' columns, in double precision, retrained by rocerf; whoever differs says so.

    A subclass has ``train``, ``score``, ``without`` and whatever else of :mod:`rocerf.models.model` it can do.
    """

    @property
    def threshold(self) -> float:
        """Probability of the favourable label from which a person is accepted."""
        return 0.5

    @property
    def offset(self) -> float:
        """``score = log-odds - offset``."""
        return float(logit(self.threshold))

    @property
    def frames(self) -> Frames | None:
        """Between the user's own columns and schema space, for a model made by :func:`rocerf.from_pipeline`."""
        return None

    @property
    def schema(self) -> FeatureSchema | None:
        """What the user's columns mean, for a model from a pipeline."""
        return None if self.frames is None else self.frames.schema

    @property
    def preprocessing(self) -> PreprocessingRule | None:
        """Whether a pipeline's preprocessing stays ("frozen") or is fitted again ("refitted") when rows are deleted."""
        return None

    @property
    def own_refit(self) -> OwnRefit | None:
        """The user's own estimator to be fitted again; None where retraining is ours or the estimator not at hand."""
        return None

    @property
    def device(self) -> str:
        """Where its arrays live while it computes."""
        return "cpu"

    @property
    def damping(self) -> float | None:
        """What is added to the diagonal of the mean curvature; None for a model at its optimum."""
        return None

    def own_rows(self) -> pd.DataFrame:
        """The training rows in the user's own columns, gaps included."""
        return self.train.frame()

    def matrix(self, X: ArrayLike | pd.DataFrame) -> Array:
        """People as numbers in the model's column order, shape (P, d); a DataFrame is matched by name.

        For a model from a pipeline a DataFrame has the user's own columns, or those of schema space.
        """
        if self.frames is not None:
            return people_in_schema_space(X, self.frames)
        matrix, _ = people_matrix(X, self.train.columns, named=self.train.from_frame)
        return matrix

    def deployed_score(self, X: ArrayLike | pd.DataFrame) -> Array:
        """Scores of the model people are judged by today, shape (P,): this one, unless it says otherwise."""
        return self.score(X)

    def predict(self, X: ArrayLike | pd.DataFrame) -> NDArray[np.int64]:
        """1 where accepted, else 0, by the model as deployed; shape (P,)."""
        return (self.deployed_score(X) >= 0).astype(np.int64)

    @property
    def row_weights(self) -> Array | None:
        """Factors on the rows' losses, (n,); None where every row counts once."""
        return self.train.weights

    @cached_property
    def class_counts(self) -> dict[Any, int]:
        """Rows of each label that carry weight."""
        return class_counts(self.train, self.row_weights)

    def removable_class(self, k: int) -> Any | None:
        """A label all of whose rows k deletions could remove: then there is nothing left to tell apart."""
        label, count = min(self.class_counts.items(), key=lambda item: item[1])
        return label if count <= k else None

    def forget(self, ids: Iterable[Any], *, declared: Collection[str] = ()) -> Self:
        """A new model in which nothing of these rows is left; each kind says how it is made."""
        raise UnsupportedModelError(
            f"Expected a LogisticModel, NeuralModel or EstimatorModel to forget rows, got {type(self).__name__}; "
            "train it on the rows left and take it over again."
        )

    def known_by(self) -> tuple[dict[str, Any], dict[str, NDArray[Any]]]:
        """What tells this model from others, as plain values and arrays: by default what it says of training rows."""
        return {}, {"scores": self.score(self.train.X[:COMPARED_ROWS])}

    @cached_property
    def accuracy(self) -> float:
        """Share of training rows decided as labelled."""
        return float((self.predict(self.train.X) == self.train.y).mean())

    def state(self) -> State:
        """Model and training rows as plain values and arrays; a kind of model that has none cannot be kept."""
        raise UnsupportedModelError(
            f"Expected a model that can be kept, got a {type(self).__name__}; make it again from its training rows."
        )

    def save(self, path: str | PathLike[str]) -> None:
        """Write the :meth:`state` to one ``.npz`` file (plain arrays and JSON, no pickle).

        It holds all training rows with their ids and labels, so only its owner can read it.
        """
        self.state().write(path)


class BaseLinearModel(BaseModel, LinearModel):
    """A model whose score is ``x~'theta - offset``, with design rows ``x~`` that are affine in schema space."""

    def score_gradient(self, X: Array) -> Array:
        """The design rows: ``d score / d theta``, shape (P, p)."""
        return self.design(X)

    def score_and_slope(self, X: Array) -> tuple[Array, Array]:
        """Scores (P,) and their gradients in x, (P, d): the same everywhere."""
        slopes, constants = self.halfspaces(self.theta)
        return X @ slopes + constants, np.broadcast_to(slopes, X.shape)

    def shifted_score(self, shifts: Array) -> ValueAndSlope:
        """For shifts of the parameters (P, p): the map from points (P, d) to the moved models' scores and slopes."""
        slopes, constants = self.halfspaces(self.theta + shifts)
        return lambda X: (np.einsum("ij,ij->i", slopes, X) + constants, slopes)


def class_counts(train: TrainingSet, weights: Array | None) -> dict[Any, int]:
    """Rows of each label whose weight (n,) is not 0."""
    counted = train.y if weights is None else train.y[weights > 0]
    good = int(counted.sum())
    return {train.favourable: good, train.unfavourable: len(counted) - good}
