"""The retraining that really happens: the user's own scikit-learn estimator, fitted again without some rows.

scikit-learn stops at a tolerance, so what the user retrains is not the exact optimum that :meth:`LogisticModel.without`
finds, and by how much it is off depends on the rows. Here the user's own object is fitted from scratch, and given as a
half-space of schema space like every other retrained model.
"""

from __future__ import annotations

import warnings
import zlib
from collections.abc import Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from typing import TYPE_CHECKING, Any, Literal, TypeVar

import numpy as np
from numpy.typing import NDArray
from scipy.special import logit

from rocerf.errors import OptionError, UnsupportedModelError
from rocerf.models.additive import AdditiveDesign
from rocerf.models.design import AffineDesign, AnyDesign, Design
from rocerf.models.logistic.ensemble import LinearEnsemble
from rocerf.models.model import ExactModel, Refittable
from rocerf.models.sklearn.estimator_fitting import open_states, own_labels, settled, unfitted_copy
from rocerf.models.sklearn.pipeline_steps import quietly
from rocerf.models.sklearn.reader import read_logistic_regression
from rocerf.types import Array

if TYPE_CHECKING:
    import pandas as pd

    from rocerf.data.training_set import TrainingSet
    from rocerf.models.logistic.fit import LogisticFit
    from rocerf.models.sklearn.pipeline_parts import PipelineParts
    from rocerf.models.sklearn.pipeline_steps import Preprocessing
    from rocerf.types import Progress


#: Solvers of scikit-learn that do not use the random state.
SETTLED_SOLVERS = ("lbfgs", "newton-cg", "newton-cholesky")

#: Who retrains after a deletion: the user's own estimator, or rocerf, to the exact optimum.
RetrainingRule = Literal["own", "exact"]
RETRAINING_RULES: tuple[RetrainingRule, ...] = ("own", "exact")


AnyModel = TypeVar("AnyModel", bound=Refittable)


def checked_retraining(retraining: Any) -> RetrainingRule:
    """The rule, if it is one."""
    if retraining not in RETRAINING_RULES:
        raise OptionError(
            "Expected retraining to be 'own' (your own estimator is fitted again, to its tolerance) or 'exact' "
            f"(model.without is what you deploy), got {retraining!r}."
        )
    rule: RetrainingRule = retraining
    return rule


def as_retrained_by(model: AnyModel, refit: RetrainingRule | None) -> AnyModel:
    """The model with the rule for who retrains it that an audit asks for; as it is where None is asked for."""
    if refit is None:
        return model
    rule = checked_retraining(refit)
    if isinstance(model, ExactModel) and model.retraining is not None:
        model = model.with_retraining(rule)
    if rule == "own" and model.own_refit is None:
        raise OptionError(
            f"Expected a model taken over from scikit-learn, with its estimator at hand, for refit='own', got a "
            f"{type(model).__name__} without one; make it with LogisticModel.from_sklearn or rocerf.from_pipeline, or "
            "read it with its pipeline."
        )
    return model


@dataclass(frozen=True, eq=False)
class OwnEstimator:
    """The user's classifier, unfitted, and how many iterations its fit took.

    ``warm_start`` is off: what a fit begun elsewhere ends at depends on more than the rows.
    """

    unfitted: Any
    iterations: int

    @classmethod
    def of(cls, fitted: Any) -> OwnEstimator:
        """Of a fitted LogisticRegression."""
        from sklearn.base import clone

        try:
            unfitted = clone(fitted).set_params(warm_start=False)
        except Exception as error:  # a subclass may be the user's own code
            raise UnsupportedModelError(
                f"Expected an estimator that scikit-learn can clone, got a {type(fitted).__name__} that it cannot "
                f"({type(error).__name__}: {error}); correct its __init__, or pass a plain LogisticRegression."
            ) from error
        return cls(unfitted, max(1, int(np.max(getattr(fitted, "n_iter_", 1)))))

    def __str__(self) -> str:
        """Its name and how it stops."""
        own = self.unfitted
        how = f"solver={own.solver!r}" if hasattr(own, "solver") else f"alpha={own.alpha:g}"
        tol = "None" if own.tol is None else f"{own.tol:g}"
        return f"{type(own).__name__}({how}, tol={tol}, max_iter={own.max_iter})"


def fit_taken_over(fitted: Any, train: TrainingSet, threshold: float, retraining: RetrainingRule) -> LogisticFit:
    """A fitted LogisticRegression over the training rows' own columns, carried on to its optimum."""
    from rocerf.models.logistic.fit import LogisticFit

    if train.on_disk and retraining == "own":
        raise OptionError(
            "Expected retraining='exact' for training rows that stay on the disk, got 'own': your own estimator is "
            "fitted on all rows at once. Say so, or read the rows into memory."
        )
    read = read_logistic_regression(fitted, train)
    design = Design.identity(train.X.shape[1], intercept=read.intercept)
    fit = LogisticFit.taken_over(fitted, read, train, design, threshold).computing_as(fitted)
    return replace(fit, own=OwnEstimator.of(fitted), retraining=retraining, unfitted=unfitted_copy(fitted))


@dataclass(frozen=True, eq=False)
class OwnFit:
    """The user's estimator fitted without some rows: ``estimator``, and what it scores in schema space.

    The score is ``slopes'x + constant``, slopes (d,), or of x lifted where there is a ``lift``; ``parts`` asks a
    pipeline itself, in the user's columns.
    """

    estimator: Any
    slopes: Array
    constant: float
    offset: float
    parts: PipelineParts | None
    lift: AdditiveDesign | None = None

    def affine_scores(self, X: Array) -> Array:
        """Scores of points (P, d) by the half-space."""
        return (X if self.lift is None else self.lift.lifted(X)) @ self.slopes + self.constant

    def scores(self, X: Array) -> Array:
        """Scores of points (P, d); a pipeline is asked itself about every point that its columns can hold."""
        found = self.affine_scores(X)
        if self.parts is None:
            return found
        try:
            own = self.parts.own_log_odds(X, X) - self.offset
        except ValueError:  # a category that the pipeline fitted again refuses to encode
            return found
        return np.where(np.isnan(own), found, own)


class OwnRefit:
    """Fits the user's own object again, from scratch, on the rows left.

    Where the rule for a pipeline's preprocessing is "frozen" only the classifier is fitted again, on what the
    preprocessing as it is makes of the rows; where it is "refitted", the whole pipeline is, as by
    ``clone(pipeline).fit``. ``refits`` counts fits, ``unconverged`` those that ended with a warning about it.

    Examples
    --------
    >>> import rocerf
    >>> from sklearn.linear_model import LogisticRegression
    >>> X, y = [[1.0], [2.0], [3.0], [4.0]], [0, 1, 0, 1]
    >>> model = rocerf.LogisticModel.from_sklearn(LogisticRegression().fit(X, y), rocerf.TrainingSet(X, y))
    >>> own = model.own_refit.without(np.array([1]))
    >>> scratch = LogisticRegression().fit([X[0], X[2], X[3]], [0, 0, 1])
    >>> bool(np.isclose(own.slopes[0], scratch.coef_[0, 0], rtol=1e-12))
    True
    """

    def __init__(self, fit: LogisticFit, own: OwnEstimator) -> None:
        self._fit, self.own = fit, own
        self.refits = 0
        self.unconverged = 0

    @property
    def work(self) -> int:
        """Numbers gone through in one fit, about: rows, columns, iterations."""
        return len(self._fit.train) * self._fit.objective.design.width * self.own.iterations

    def fitted_without(self, rows: NDArray[np.intp]) -> Any:
        """The user's own object, fitted without these rows (row numbers): a classifier, or a whole pipeline."""
        return self.without(rows).estimator

    def halfspaces(self, deletions: Sequence[NDArray[np.intp]], progress: Progress | None = None) -> LinearEnsemble:
        """The user's own models after each of M deletions (row numbers), in schema space."""

        def halfspace(rows: NDArray[np.intp]) -> tuple[Array, float]:
            again = self.without(rows)
            return again.slopes, again.constant

        design = self._fit.objective.design
        lift = design if isinstance(design, AdditiveDesign) else None
        width = self._fit.train.X.shape[1] if lift is None else len(lift.shift)
        return LinearEnsemble.of(deletions, halfspace, width, progress, lift)

    @cached_property
    def varies(self) -> bool:
        """Whether fits of the same rows differ, as the user left a random state open and the solver uses it."""
        if getattr(self.own.unfitted, "solver", None) in SETTLED_SOLVERS or not open_states(self.own.unfitted):
            return False
        nothing = np.empty(0, np.intp)
        first, second = self.without(nothing), self.without(nothing, start=1)
        return not (np.array_equal(first.slopes, second.slopes) and first.constant == second.constant)

    def without(self, rows: NDArray[np.intp], start: int = 0) -> OwnFit:
        """The user's own object fitted without these rows (row numbers), as a model of schema space.

        Where the user left a random state open, every deletion and ``start`` has one of its own.
        """
        fit, rows = self._fit, np.sort(np.asarray(rows, dtype=np.intp))
        kept = np.delete(np.arange(len(fit.train)), rows)
        seen = self._prepared(kept)
        classifier = self._fitted(seen.images, kept, zlib.crc32(rows.tobytes(), start))
        sign = 1.0 if classifier.classes_[1] == fit.train.favourable else -1.0
        theta = sign * np.asarray(classifier.coef_, dtype=np.float64)[0]
        if seen.design.intercept:
            theta = np.append(theta, sign * float(classifier.intercept_[0]))
        slopes, constant = seen.design.in_schema_space(theta)
        if seen.handicap is not None:
            slopes = slopes + seen.handicap
        offset = float(logit(fit.threshold))
        estimator, parts = self._whole(classifier, seen)
        lift = seen.design if isinstance(seen.design, AdditiveDesign) else None
        return OwnFit(estimator, slopes, float(constant) - offset, offset, parts, lift)

    def _prepared(self, kept: NDArray[np.intp]) -> _Prepared:
        """What the classifier sees of the rows kept, and the map from schema space to it."""
        fit, parts, design = self._fit, self._fit.parts, self._fit.objective.design
        if parts is None or parts.rule == "frozen":
            steps = None if parts is None else parts.needed_recipe().steps
            handicap = None if parts is None else parts.handicap
            return _Prepared(_rows_of(self._images, kept), design, steps, handicap)
        recipe = parts.needed_recipe().keeping(kept)
        refit = recipe.fitted_again(fit.train.X[kept], parts.frames)
        again = AffineDesign(refit.found.matrix, refit.found.shift, design.intercept)
        return _Prepared(_images(refit.recipe.steps, recipe.frame), again, refit.recipe.steps, refit.handicap)

    @cached_property
    def _images(self) -> Any:
        """All training rows as the classifier sees them today, in the form it was shown (sparse, say)."""
        parts = self._fit.parts
        return self._fit.train.X if parts is None else _images(parts.needed_recipe().steps, parts.needed_recipe().frame)

    @cached_property
    def _labels(self) -> NDArray[Any]:
        """The user's own labels."""
        train, parts = self._fit.train, self._fit.parts
        if parts is not None:
            return parts.needed_recipe().labels
        return own_labels(train)

    def _fitted(self, images: Any, kept: NDArray[np.intp], seed: int) -> Any:
        """The classifier fitted on these rows; an open random state becomes ``seed``, another one for each deletion."""
        weights = self._fit.train.weights
        with warnings.catch_warnings(record=True) as caught:
            warnings.simplefilter("always")
            try:
                fitted = settled(self.own.unfitted, seed).fit(
                    images, self._labels[kept], sample_weight=None if weights is None else weights[kept]
                )
            except Exception as error:
                raise UnsupportedModelError(
                    f"Expected an estimator that can be fitted on the {len(kept)} rows that are left, got an error "
                    f"({type(error).__name__}: {error}); delete fewer rows, or use retraining='exact'."
                ) from error
        self.refits += 1
        self.unconverged += any("ConvergenceWarning" in warning.category.__name__ for warning in caught)
        return fitted

    def _whole(self, classifier: Any, seen: _Prepared) -> tuple[Any, PipelineParts | None]:
        """The classifier with its preprocessing, if it has one, and the parts that ask it."""
        from sklearn.pipeline import make_pipeline

        from rocerf.models.sklearn.pipeline_parts import Deployed

        if self._fit.parts is None or seen.steps is None:
            return classifier, None
        pipeline = make_pipeline(*seen.steps.parts, classifier)
        deployed = Deployed.of(pipeline, seen.steps, self._fit.train)
        return pipeline, replace(self._fit.parts, deployed=deployed, recipe=None)


@dataclass(frozen=True, eq=False)
class _Prepared:
    """Rows as a classifier sees them, the map from schema space to that, and the steps that made them."""

    images: Any
    design: AnyDesign
    steps: Preprocessing | None
    handicap: Array | None


def _images(steps: Preprocessing, frame: pd.DataFrame) -> Any:
    with quietly():
        rows = steps.seen(frame)
    return rows.tocsr() if hasattr(rows, "tocsr") else rows


def _rows_of(images: Any, kept: NDArray[np.intp]) -> Any:
    return images.iloc[kept] if hasattr(images, "iloc") else images[kept]
