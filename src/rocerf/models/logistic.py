"""Logistic regression whose retraining after deletions is exact."""

from __future__ import annotations

import json
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import asdict, dataclass
from functools import cached_property
from os import PathLike
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import ArrayLike, NDArray
from scipy.special import logit

from rocerf.data.columns import people_matrix
from rocerf.data.training_set import TrainingSet
from rocerf.data.training_set_file import pack, plain_label, unpack
from rocerf.errors import NotConvergedError, OptionError
from rocerf.models.class_weight import row_weights
from rocerf.models.curvature import Curvature
from rocerf.models.design import Design
from rocerf.models.linear_ensemble import LinearEnsemble
from rocerf.models.logistic_objective import LogisticObjective, Minimum, Penalty
from rocerf.models.model import Progress, Retraining, ValueAndSlope
from rocerf.models.npz_file import arrays_and_about, reading
from rocerf.models.options import checked_threshold, refuse_bare_rows

if TYPE_CHECKING:
    import pandas as pd
    from sklearn.linear_model import LogisticRegression

Array = NDArray[np.float64]

FILE_FORMAT = "rocerf-logistic-model/1"


@dataclass(frozen=True)
class Polish:
    """What Newton changed about a model fitted elsewhere, over the training rows.

    ``shift`` is the root mean square change of the scores and ``largest_shift`` the largest,
    both in standard deviations of the scores.
    """

    shift: float
    largest_shift: float


class LogisticModel:
    """An L2-penalised logistic regression at its exact optimum, with the rows it was fitted on.

    Make one with :meth:`fit` or :meth:`from_sklearn`. It accepts a person when
    ``score >= 0``, that is when the probability of the favourable label reaches ``threshold``.

    Examples
    --------
    >>> import rocerf
    >>> train = rocerf.TrainingSet([[1.0], [2.0], [3.0], [4.0]], [0, 1, 0, 1])
    >>> model = LogisticModel.fit(train, C=1.0)
    >>> model.predict([[0.0], [5.0]]).tolist()
    [0, 1]
    >>> later = model.without([3])  # exactly as if row 3 had never been there
    >>> bool(later.score([[5.0]])[0] < model.score([[5.0]])[0])
    True
    """

    def __init__(
        self,
        train: TrainingSet,
        minimum: Minimum,
        objective: LogisticObjective,
        *,
        class_weight: Mapping[Any, float] | None,
        threshold: float,
        deployed_theta: Array | None = None,
        polish: Polish | None = None,
    ) -> None:
        self._train = train
        self._minimum = minimum
        self._objective = objective
        self._class_weight = class_weight
        self._threshold = threshold
        self._deployed_theta = deployed_theta
        self.polish = polish
        #: What other rooms have computed from this model and want to find again, by type.
        self.derived: dict[type, object] = {}

    @classmethod
    def fit(
        cls,
        train: TrainingSet,
        *,
        C: float | None = None,
        gamma: float | None = None,
        scale: bool = True,
        fit_intercept: bool = True,
        class_weight: Mapping[Any, float] | None = None,
        threshold: float = 0.5,
    ) -> LogisticModel:
        """Fit by Newton's method to 1e-10.

        Parameters
        ----------
        train : TrainingSet
            n rows, d columns.
        C : float, default 1.0
            Inverse penalty as in scikit-learn; it stays as it is when rows are deleted.
        gamma : float
            Instead of C: the paper's penalty ``gamma`` on the mean loss; each row carries its share.
        scale : bool
            Standardise columns inside the model. The scaling is kept when rows are deleted.
        class_weight : mapping from label to weight, optional
        threshold : float in (0, 1)
            Probability of the favourable label from which a person is accepted.
        """
        refuse_bare_rows(train)
        if C is not None and gamma is not None:
            raise OptionError("Expected C (fixed penalty) or gamma (mean penalty), got both; drop one.")
        penalty = Penalty.mean(gamma) if gamma is not None else Penalty.fixed(1.0 if C is None else C)
        if scale:
            design = Design(train.X.mean(axis=0), np.array(train.spread), fit_intercept)
        else:
            design = Design.identity(train.X.shape[1], intercept=fit_intercept)
        return cls._minimised(train, design, penalty, class_weight, checked_threshold(threshold))

    @classmethod
    def from_sklearn(
        cls,
        fitted: LogisticRegression,
        train: TrainingSet,
        *,
        sample_weight: ArrayLike | None = None,
        threshold: float = 0.5,
    ) -> LogisticModel:
        """Take over a fitted scikit-learn ``LogisticRegression``; ``train`` must hold its training rows.

        scikit-learn stops at a tolerance. Newton carries the fit on to its optimum, and
        :attr:`polish` records how far the scores moved. A move of more than 0.1 standard deviations
        is refused: the model was fitted on other rows, columns or settings, or did not converge.
        This check cannot notice a few missing rows, or many that resemble the rest; passing the right
        ones is up to the caller.

        Examples
        --------
        >>> import rocerf
        >>> from sklearn.linear_model import LogisticRegression
        >>> X, y = [[1.0], [2.0], [3.0], [4.0]], [0, 1, 0, 1]
        >>> model = LogisticModel.from_sklearn(LogisticRegression().fit(X, y), rocerf.TrainingSet(X, y))
        >>> model.polish.shift < 0.1
        True
        """
        from rocerf.models.sklearn_reader import read_logistic_regression, refuse_far_from_optimum

        refuse_bare_rows(train)
        if sample_weight is not None:
            train = train.with_weights(sample_weight)
        read = read_logistic_regression(fitted, train)
        design = Design.identity(train.X.shape[1], intercept=read.intercept)
        options = (design, Penalty.fixed(read.C), read.class_weight, checked_threshold(threshold))
        try:
            model = cls._minimised(train, *options, intercept_penalty=read.intercept_penalty, start=read.theta)
        except NotConvergedError:  # coefficients of other (say, scaled) columns: so far off that Newton cannot start
            model = cls._minimised(train, *options, intercept_penalty=read.intercept_penalty)
        model.polish = refuse_far_from_optimum(model, read.theta, fitted)
        model._deployed_theta = read.theta
        return model

    @classmethod
    def _minimised(
        cls,
        train: TrainingSet,
        design: Design,
        penalty: Penalty,
        class_weight: Mapping[Any, float] | None,
        threshold: float,
        *,
        intercept_penalty: float = 0.0,
        start: Array | None = None,
    ) -> LogisticModel:
        weights = row_weights(train, class_weight)
        objective = LogisticObjective(train.X, train.y, weights, design, penalty, intercept_penalty)
        minimum = objective.minimise(np.zeros(design.width) if start is None else start)
        return cls(train, minimum, objective, class_weight=class_weight, threshold=threshold)

    @property
    def train(self) -> TrainingSet:
        """The rows it was fitted on."""
        return self._train

    @property
    def theta(self) -> Array:
        """Parameters over the design row, shape (p,): scaled columns, then the intercept."""
        return self._minimum.theta

    @property
    def deployed_theta(self) -> Array | None:
        """Parameters as scikit-learn left them, or None for our own fit."""
        return self._deployed_theta

    @property
    def design(self) -> Design:
        """The map from the user's columns to design rows."""
        return self._objective.design

    @property
    def objective(self) -> LogisticObjective:
        """What the parameters minimise."""
        return self._objective

    @property
    def penalty(self) -> Penalty:
        """The penalty and what happens to it when rows go."""
        return self._objective.penalty

    @property
    def threshold(self) -> float:
        """Probability of the favourable label from which a person is accepted."""
        return self._threshold

    @property
    def offset(self) -> float:
        """``score = x~'theta - offset``."""
        return float(logit(self._threshold))

    @property
    def optimality(self) -> float:
        """Length of the Newton step that would come next, in the Hessian's norm."""
        return self._minimum.optimality

    def __repr__(self) -> str:
        return f"LogisticModel({self.penalty}, threshold={self.threshold}, train={self.train!r})"

    def score(self, X: ArrayLike | pd.DataFrame) -> Array:
        """Log-odds of the favourable label minus those of the threshold; shape (P,)."""
        return self.score_gradient(self.matrix(X)) @ self.theta - self.offset

    def predict(self, X: ArrayLike | pd.DataFrame) -> NDArray[np.int64]:
        """1 where accepted, else 0, by the model as deployed; shape (P,).

        For a model taken over from scikit-learn these are scikit-learn's own decisions.
        """
        return (self.deployed_score(X) >= 0).astype(np.int64)

    def deployed_score(self, X: ArrayLike | pd.DataFrame) -> Array:
        """Scores of the model people are judged by today, shape (P,); for our own fit, :meth:`score`."""
        theta = self.theta if self._deployed_theta is None else self._deployed_theta
        return self.score_gradient(self.matrix(X)) @ theta - self.offset

    def matrix(self, X: ArrayLike | pd.DataFrame) -> Array:
        """People as numbers in the model's column order, shape (P, d); a DataFrame is matched by name."""
        matrix, _ = people_matrix(X, self.train.columns, named=self.train.from_frame)
        return matrix

    def score_gradient(self, X: Array) -> Array:
        """The design rows: ``d score / d theta``, shape (P, p)."""
        return self.design(X)

    def row_gradients(self, rows: slice | NDArray[np.intp] = slice(None)) -> Array:
        """``g_i`` of the objective for these training rows, shape (m, p)."""
        return self._objective.row_gradients(self.theta, rows)

    def curvature(self) -> Curvature:
        """Hessian at the optimum, factorised."""
        return self._minimum.curvature

    def halfspaces(self, coefficients: Array) -> tuple[Array, Array]:
        """Models with these parameters (m, p) as slopes (m, d) and constants (m,) in schema space."""
        slopes, constants = self.design.in_schema_space(coefficients)
        return slopes, constants - self.offset

    def score_and_slope(self, X: Array) -> tuple[Array, Array]:
        """Scores (P,) and their gradients in x, (P, d): the same everywhere."""
        slopes, constants = self.halfspaces(self.theta)
        return X @ slopes + constants, np.broadcast_to(slopes, X.shape)

    def shifted_score(self, shifts: Array) -> ValueAndSlope:
        """For shifts of the parameters (P, p): the map from points (P, d) to the moved models' scores and slopes."""
        slopes, constants = self.halfspaces(self.theta + shifts)
        return lambda X: (np.einsum("ij,ij->i", slopes, X) + constants, slopes)

    def refitted(
        self,
        deletions: Sequence[NDArray[Any]],
        *,
        retraining: Retraining = "fresh",
        seed: int = 0,
        progress: Progress | None = None,
    ) -> LinearEnsemble:
        """The model exactly retrained after each of M deletions.

        The optimum is one, so where retraining starts and the seed make no difference.
        """
        thetas = np.empty((len(deletions), len(self.theta)))
        for trial, ids in enumerate(deletions):
            thetas[trial] = self.without(ids).theta if len(ids) else self.theta
            if progress is not None:
                progress(trial + 1, len(deletions))
        return LinearEnsemble(*self.halfspaces(thetas))

    def restored(self, arrays: Sequence[Array]) -> LinearEnsemble:
        """Retrained models from their saved arrays."""
        return LinearEnsemble(*arrays)

    def without(self, ids: Iterable[Any]) -> LogisticModel:
        """The model retrained after deleting these rows: Newton from the present optimum to 1e-10.

        Scaling, penalty convention, class weights and threshold stay as they are.
        """
        return LogisticModel._minimised(
            self.train.without(ids),
            self.design,
            self.penalty,
            self._class_weight,
            self._threshold,
            intercept_penalty=self._objective.intercept_penalty,
            start=self.theta,
        )

    @cached_property
    def class_counts(self) -> dict[Any, int]:
        """Rows of each label that carry weight."""
        counted = np.ones(len(self.train), bool) if self._objective.weights is None else self._objective.weights > 0
        good = int(self.train.y[counted].sum())
        return {self.train.favourable: good, self.train.unfavourable: int(counted.sum()) - good}

    def removable_class(self, k: int) -> Any | None:
        """A label all of whose rows k deletions could remove, if retraining then has no optimum."""
        lam = self.penalty.strength(len(self.train))
        if not self.design.intercept or self._objective.intercept_penalty * lam > 0:
            return None
        label, count = min(self.class_counts.items(), key=lambda item: item[1])
        return label if count <= k else None

    def assumptions(self) -> tuple[str, ...]:
        """What "retrained" means for this model, in sentences: objective, scaling, threshold, tolerance."""
        penalty = self.penalty
        convention = (
            f"retraining minimises the summed loss plus a penalty that stays {penalty.per_model:g}/2 |theta|^2 "
            "whatever the number of rows (scikit-learn's convention)"
            if penalty.per_row == 0
            else f"retraining minimises the mean loss plus {penalty.per_row / 2:g} |theta|^2 (the paper's convention)"
        )
        return (
            convention,
            "scaling, class weights and the decision threshold stay as they are when rows are deleted",
            f"the model is at the optimum of this objective to {max(self.optimality, 1e-10):.0e} (Newton decrement)",
        )

    def save(self, path: str | PathLike[str]) -> None:
        """Write model and training rows to one ``.npz`` file (plain arrays and JSON, no pickle)."""
        rows_about, arrays = pack(self.train)
        weights = self._class_weight
        about = rows_about | {
            "format": FILE_FORMAT,
            "class_weight": None if weights is None else [[plain_label(a), b] for a, b in weights.items()],
            "threshold": self._threshold,
            "penalty": asdict(self.penalty),
            "intercept": self.design.intercept,
            "intercept_penalty": self._objective.intercept_penalty,
            "polish": None if self.polish is None else asdict(self.polish),
        }
        arrays |= {"theta": self.theta, "centre": self.design.centre, "scale": self.design.scale}
        if self._deployed_theta is not None:
            arrays["deployed_theta"] = self._deployed_theta
        with open(path, "wb") as file:
            np.savez_compressed(file, **{"about": np.array(json.dumps(about)), **arrays})  # type: ignore[arg-type]

    @classmethod
    def load(cls, path: str | PathLike[str]) -> LogisticModel:
        """Read what :meth:`save` wrote. The optimum is verified by Newton, not believed."""
        with reading(path, FILE_FORMAT, "LogisticModel.save"):
            arrays, about = arrays_and_about(path, FILE_FORMAT)
        train = unpack(about, arrays)
        design = Design(arrays["centre"], arrays["scale"], about["intercept"])
        class_weight = None if about["class_weight"] is None else dict(about["class_weight"])
        model = cls._minimised(
            train,
            design,
            Penalty(**about["penalty"]),
            class_weight,
            about["threshold"],
            intercept_penalty=about["intercept_penalty"],
            start=arrays["theta"],
        )
        model._deployed_theta = arrays.get("deployed_theta")
        model.polish = None if about["polish"] is None else Polish(**about["polish"])
        return model
