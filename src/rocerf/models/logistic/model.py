"""Logistic regression whose retraining after deletions is exact."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Sequence
from dataclasses import replace
from functools import cached_property
from os import PathLike
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from rocerf.data.training_set import TrainingSet
from rocerf.errors import OptionError
from rocerf.models.arithmetic import Arithmetic
from rocerf.models.design import AnyDesign, Design, with_ones
from rocerf.models.logistic import about
from rocerf.models.logistic.class_weight import ClassWeight
from rocerf.models.logistic.curvature import Curvature
from rocerf.models.logistic.dependent import dependences, keeping, refuse_breakable
from rocerf.models.logistic.ensemble import LinearEnsemble
from rocerf.models.logistic.fit import LogisticFit, Polish
from rocerf.models.logistic.objective import LogisticObjective, Penalty
from rocerf.models.model import ExactModel, Retraining, class_counts
from rocerf.models.options import checked_threshold, refuse_bare_rows
from rocerf.storage.state import State
from rocerf.types import Array, Mask, Progress

if TYPE_CHECKING:
    import pandas as pd
    from sklearn.linear_model import LogisticRegression

    from rocerf.data.frames import Frames
    from rocerf.models.sklearn.own_refit import OwnRefit, RetrainingRule
    from rocerf.models.sklearn.pipeline_parts import PipelineParts, PreprocessingRule


class LogisticModel(ExactModel):
    """A penalised logistic regression at its exact optimum, with the rows it was fitted on.

    Make one with :meth:`fit`, :meth:`from_sklearn` or :func:`rocerf.from_pipeline`. It accepts a person when
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

    def __init__(self, fit: LogisticFit) -> None:
        self._fit = fit

    @classmethod
    def fit(
        cls,
        train: TrainingSet,
        *,
        C: float | None = None,
        gamma: float | None = None,
        l1_ratio: float = 0.0,
        scale: bool = True,
        fit_intercept: bool = True,
        class_weight: ClassWeight = None,
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
        l1_ratio : float from 0 to 1
            With C, the share of an L1 penalty as in scikit-learn: it holds coefficients at exactly 0.
        scale : bool
            Standardise columns inside the model. The scaling is kept when rows are deleted.
        class_weight : mapping from label to weight, optional
            Or "balanced": then retraining weighs the labels of the rows left anew.
        threshold : float in (0, 1)
            Probability of the favourable label from which a person is accepted.
        """
        refuse_bare_rows(train)
        if C is not None and gamma is not None:
            raise OptionError("Expected C (fixed penalty) or gamma (mean penalty), got both; drop one.")
        if gamma is not None and l1_ratio:
            raise OptionError("Expected l1_ratio with C, got it with gamma, whose penalty is L2; give C.")
        penalty = Penalty.mean(gamma) if gamma is not None else Penalty.fixed(1.0 if C is None else C, l1_ratio)
        design = Design.for_rows(train, scale=scale, intercept=fit_intercept)
        made = LogisticFit.minimised(train, design, penalty, class_weight, checked_threshold(threshold))
        return cls(refuse_breakable(made))

    @classmethod
    def from_sklearn(
        cls,
        fitted: LogisticRegression,
        train: TrainingSet,
        *,
        sample_weight: ArrayLike | None = None,
        threshold: float = 0.5,
        retraining: RetrainingRule = "own",
    ) -> LogisticModel:
        """Take over a fitted scikit-learn ``LogisticRegression``; ``train`` must hold its training rows.

        scikit-learn stops at a tolerance. Newton carries the fit on to its optimum, and :attr:`polish` records how far
        the scores moved. A move of more than 0.1 standard deviations is refused: the model was fitted on other rows,
        columns or settings, or did not converge. This check cannot notice a few missing rows, or many that resemble the
        rest; passing the right ones is up to the caller.

        ``retraining`` says who retrains after a deletion: "own", you do, by fitting this estimator again, whose
        tolerance promises then allow for; or "exact", what you deploy is :meth:`without`.

        Examples
        --------
        >>> import rocerf
        >>> from sklearn.linear_model import LogisticRegression
        >>> X, y = [[1.0], [2.0], [3.0], [4.0]], [0, 1, 0, 1]
        >>> model = LogisticModel.from_sklearn(LogisticRegression().fit(X, y), rocerf.TrainingSet(X, y))
        >>> model.polish.shift < 0.1
        True
        """
        from rocerf.models.sklearn.own_refit import checked_retraining, fit_taken_over

        rule = checked_retraining(retraining)
        refuse_bare_rows(train)
        if sample_weight is not None:
            train = train.with_weights(sample_weight)
        return cls(refuse_breakable(fit_taken_over(fitted, train, checked_threshold(threshold), rule)))

    @property
    def train(self) -> TrainingSet:
        """The rows it was fitted on."""
        return self._fit.train

    @property
    def theta(self) -> Array:
        """Parameters over the design row, shape (p,): scaled columns, then the intercept."""
        return self._fit.minimum.theta

    @property
    def deployed_theta(self) -> Array | None:
        """Parameters as scikit-learn left them, or None for our own fit."""
        return self._fit.deployed_theta

    @property
    def polish(self) -> Polish | None:
        """How far scikit-learn's fit was from its optimum, or None for our own fit."""
        return self._fit.polish

    @property
    def arithmetic(self) -> Arithmetic:
        """How the model taken over computes; our own fit does in double precision."""
        return self._fit.arithmetic

    @property
    def design(self) -> AnyDesign:
        """The map from the user's columns to design rows."""
        return self._fit.objective.design

    @property
    def objective(self) -> LogisticObjective:
        """What the parameters minimise."""
        return self._fit.objective

    @property
    def penalty(self) -> Penalty:
        """The penalty and what happens to it when rows go."""
        return self._fit.objective.penalty

    @property
    def class_weight(self) -> ClassWeight:
        """Factors on the loss of rows by label, which stay when rows are deleted unless they are "balanced"."""
        return self._fit.class_weight

    @property
    def threshold(self) -> float:
        """Probability of the favourable label from which a person is accepted."""
        return self._fit.threshold

    @property
    def parts(self) -> PipelineParts | None:
        """What a model has that came from a pipeline."""
        return self._fit.parts

    @property
    def frames(self) -> Frames | None:
        """Between the user's own columns and schema space, for a model from a pipeline."""
        return None if self.parts is None else self.parts.frames

    @property
    def preprocessing(self) -> PreprocessingRule | None:
        """Whether a pipeline's preprocessing stays ("frozen") or is fitted again ("refitted") when rows are deleted."""
        return None if self.parts is None else self.parts.rule

    @cached_property
    def frozen(self) -> LogisticModel:
        """The same model, whose preprocessing stays as it is when rows are deleted; itself, where it does."""
        return self.with_preprocessing("frozen") if self.preprocessing == "refitted" else self

    def with_preprocessing(self, preprocessing: PreprocessingRule) -> LogisticModel:
        """The same model of a pipeline with another rule for its preprocessing when rows are deleted."""
        from rocerf.models.sklearn.pipeline_parts import checked_rule

        if self.parts is None:
            raise OptionError("Expected a model made by rocerf.from_pipeline, got one whose preprocessing is unknown.")
        return LogisticModel(replace(self._fit, parts=replace(self.parts, rule=checked_rule(preprocessing))))

    @property
    def retraining(self) -> RetrainingRule | None:
        """Who retrains a model taken over from scikit-learn: its user ("own") or rocerf ("exact"); None for our fit."""
        return self._fit.retraining

    def with_retraining(self, retraining: RetrainingRule) -> LogisticModel:
        """The same model taken over from scikit-learn with another rule for who retrains it."""
        from rocerf.models.sklearn.own_refit import checked_retraining

        rule = checked_retraining(retraining)
        if self.retraining is None:
            raise OptionError(
                "Expected a model taken over from scikit-learn, got one that rocerf fitted, whose retraining is "
                "exact; leave this out."
            )
        return LogisticModel(replace(self._fit, retraining=rule))

    @cached_property
    def own_refit(self) -> OwnRefit | None:
        """The user's own estimator to be fitted again; None where retraining is exact or the estimator not at hand."""
        from rocerf.models.sklearn.own_refit import OwnRefit

        own, parts = self._fit.own, self.parts
        if self.retraining != "own" or own is None or (parts is not None and parts.recipe is None):
            return None
        return OwnRefit(self._fit, own)

    @property
    def weighs_anew(self) -> bool:
        """Whether class weights are other ones when rows are deleted."""
        return self.class_weight == "balanced"

    @property
    def kinked(self) -> bool:
        """Whether an L1 penalty holds coefficients at 0."""
        return self.penalty.kinked

    @cached_property
    def _dependences(self) -> Array:
        return dependences(self.objective, self.theta)

    def determined(self, X: Array) -> Mask:
        """Where the training rows say what the score of points (P, d) is; (P,). Everywhere but for an L1 penalty."""
        return keeping(self._dependences, self.design(X)) if self.kinked else np.ones(len(X), bool)

    @property
    def optimality(self) -> float:
        """Length of the Newton step that would come next, in the Hessian's norm."""
        return self._fit.minimum.optimality

    def __repr__(self) -> str:
        return f"LogisticModel({self.penalty.in_words()}, threshold={self.threshold}, train={self.train!r})"

    def score(self, X: ArrayLike | pd.DataFrame) -> Array:
        """Log-odds of the favourable label minus those of the threshold; shape (P,)."""
        return self._scores(self.matrix(X), self.theta)

    def _scores(self, X: Array, theta: Array) -> Array:
        scores = self.score_gradient(X) @ theta + self.beyond_design(X)
        if self.parts is not None:
            scores[np.isnan(X).any(axis=1)] = np.nan
        return scores

    def beyond_design(self, X: Array) -> Array:
        """What scores are besides ``x~'theta``, for points (P, d): the threshold, categories refused; shape (P,)."""
        beyond = np.full(len(X), -self.offset)
        if self.parts is not None and self.parts.handicap is not None:
            beyond += X @ self.parts.handicap
        return beyond

    def deployed_score(self, X: ArrayLike | pd.DataFrame) -> Array:
        """Scores of the model people are judged by today, shape (P,); for our own fit, :meth:`score`.

        A pipeline is asked itself, in its own columns and types, about every point that these can hold.
        """
        matrix = self.matrix(X)
        scores = self._scores(matrix, self.theta if self._fit.deployed_theta is None else self._fit.deployed_theta)
        if self.parts is None or self.parts.deployed is None:
            return scores
        own = self.parts.own_log_odds(X, matrix) - self.offset
        return np.where(np.isnan(own), scores, own)

    def training_design(self) -> Array:
        """The design rows that it is trained on, (n, p): those that a pipeline itself makes of its training rows."""
        images = None if self.parts is None else self.parts.training_images()
        return self.design(self.train.X) if images is None else with_ones(images, self.design)

    def own_design(self, X: ArrayLike | pd.DataFrame) -> tuple[Array, NDArray[np.bool_]]:
        """Design rows of people as its pipeline itself makes them, (P, p), and whether it made them, (P,).

        The others, where no pipeline is at hand or its columns cannot hold a point, are what :attr:`design` makes; for
        a model without a pipeline that is the thing itself. NaN where the pipeline fails.
        """
        matrix = self.matrix(X)
        if self.parts is not None:
            return self.parts.own_design(X, matrix, self.design)
        return self.design(matrix), np.ones(len(matrix), bool)

    def row_gradients(self, rows: slice | NDArray[np.intp] = slice(None)) -> Array:
        """``g_i`` of the objective for these training rows, shape (m, p)."""
        return self._fit.objective.row_gradients(self.theta, rows)

    def curvature(self) -> Curvature:
        """Hessian at the optimum, factorised."""
        return self._fit.minimum.curvature

    def halfspaces(self, coefficients: Array) -> tuple[Array, Array]:
        """Models with these parameters (m, p) as slopes (m, D) and constants (m,) in lifted space."""
        slopes, constants = self.design.in_schema_space(coefficients)
        if self.parts is not None and self.parts.handicap is not None:
            slopes = slopes + self.parts.handicap
        return slopes, constants - self.offset

    def refitted(
        self,
        deletions: Sequence[NDArray[Any]],
        *,
        retraining: Retraining = "fresh",
        seed: int = 0,
        trials: Sequence[int] | None = None,
        progress: Progress | None = None,
    ) -> LinearEnsemble:
        """The model retrained after each of M deletions, by its own rule: exactly, or by the user's own estimator.

        The optimum is one, so where retraining starts and the seed make no difference.
        """
        if self.own_refit is not None:
            return self.own_refit.halfspaces([self.train.positions(ids) for ids in deletions], progress)

        def halfspace(ids: NDArray[Any]) -> tuple[Array, Array]:
            later = self.without(ids) if len(ids) else self
            return later.halfspaces(later.theta)

        return LinearEnsemble.of(deletions, halfspace, self.lifted(self.train.X[:1]).shape[1], progress, self.lift)

    def restored(self, arrays: Sequence[Array]) -> LinearEnsemble:
        """Retrained models from their saved arrays."""
        slopes, constants = arrays
        return LinearEnsemble(slopes, constants, self.lift)

    def without(self, ids: Iterable[Any]) -> LogisticModel:
        """The model retrained after deleting these rows: Newton from the present optimum to 1e-10.

        Scaling, penalty convention, class weights and threshold stay as they are; so does the preprocessing of a
        pipeline, unless its rule is "refitted". With ``retraining="exact"`` this is the model to deploy after a
        deletion: an estimator fitted again stops somewhere near it. This answers "what if": the scaling it keeps gives
        a deleted row away (``centre * (n + 1) - X.sum(0)``), categories and ranges do in part. To be rid of rows:
        :meth:`forget`.
        """
        return LogisticModel(self._fit.without(ids))

    def forget(self, ids: Iterable[Any], *, declared: Collection[str] = ()) -> LogisticModel:
        """A new model in which nothing of these rows is left, as if they had never been there.

        Our own fit is made anew with the same options: scaling from the rows left, parameters from 0. A model taken
        over from scikit-learn is fitted again by its own estimator, from scratch, and taken over again; a pipeline
        with all its preprocessing, whatever its rule for deletions is, and what was guessed of its schema is guessed
        again (what was declared stays, see :class:`rocerf.FeatureSchema`). Files keep no estimators: read from one, a
        bare LogisticRegression becomes our exact optimum on the rows left, without deployed coefficients, and
        retraining means :meth:`without` from then on (:attr:`retraining` is "exact"); of a pipeline, give it to
        :meth:`load`. ``declared`` are columns of schema space (``feature=category``) that stay though no row left has
        the category. This object and what was saved of it keep the rows: drop them.
        """
        from rocerf.models.forgetting import logistic_forgetting

        return logistic_forgetting(self, ids, declared)

    @cached_property
    def class_counts(self) -> dict[Any, int]:
        """Rows of each label that carry weight."""
        return class_counts(self.train, self.objective.weights)

    def removable_class(self, k: int) -> Any | None:
        """A label all of whose rows k deletions could remove, if there is then no model.

        Without a free intercept the optimum of one class exists, but scikit-learn's estimators fit no such rows.
        """
        alone = not self.objective.free_intercept and self.retraining != "own"
        return None if alone else super().removable_class(k)

    def own_rows(self) -> pd.DataFrame:
        """The training rows in the user's own columns, gaps included."""
        return super().own_rows() if self.parts is None else self.parts.needed_recipe().frame

    assumptions = about.assumptions_of
    known_by = about.known_by

    def state(self) -> State:
        """Model and training rows as plain values and arrays, to be kept anywhere.

        Of a pipeline, what it does is kept (the affine map, columns, types and settings), not the object.
        """
        from rocerf.models.logistic.state import state_of

        return state_of(self._fit)

    @classmethod
    def from_state(cls, state: State, *, pipeline: Any = None) -> LogisticModel:
        """What :meth:`state` gave; as :meth:`load`."""
        from rocerf.models.logistic.state import fit_from

        return cls(fit_from(state, pipeline))

    @classmethod
    def load(cls, path: str | PathLike[str], *, pipeline: Any = None) -> LogisticModel:
        """Read what :meth:`save` wrote. The optimum is verified by Newton, not believed.

        ``pipeline`` is the fitted one that the model was made from: it is needed to fit its preprocessing again, and is
        then the one asked by :meth:`deployed_score`.
        """
        from rocerf.models.logistic.state import FORMAT

        return cls.from_state(State.read(path, FORMAT, "LogisticModel.save"), pipeline=pipeline)
