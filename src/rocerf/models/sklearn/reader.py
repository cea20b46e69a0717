"""Reading a fitted scikit-learn ``LogisticRegression``: what it minimised, or why we must refuse."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np

from rocerf.data.training_set import TrainingSet
from rocerf.errors import NotAtOptimumError, UnsupportedModelError
from rocerf.models.logistic.class_weight import ClassWeight
from rocerf.models.logistic.objective import Penalty
from rocerf.models.sklearn.estimator_fitting import check_columns, check_labels
from rocerf.types import Array

if TYPE_CHECKING:
    from rocerf.models.logistic.fit import LogisticFit, Polish


#: Largest move of the scores, in their standard deviations, that polishing may cause.
LARGEST_SHIFT = 0.1

#: The same of SGDClassifier, which stops where chance leaves it; what its fits are off is allowed for.
LARGEST_SHIFT_OF_DESCENT = 0.3

#: Standard deviation of scores (log-odds) that counts as such where an L1 penalty leaves less, or none.
SMALLEST_SPREAD = 0.05


@dataclass(frozen=True)
class SklearnReading:
    """The objective behind a fitted estimator, in our terms; theta scores the favourable label."""

    theta: Array
    intercept: bool
    intercept_penalty: float
    penalty: Penalty
    class_weight: ClassWeight


def read_logistic_regression(fitted: Any, train: TrainingSet, *, same_columns: bool = True) -> SklearnReading:
    """Check that the estimator is one we can retrain exactly, and read its objective.

    ``same_columns`` is false for the end of a pipeline, which sees other columns than the training rows have.
    """
    _refuse_other_estimators(fitted)
    check_labels(fitted, train)
    if same_columns:
        check_columns(fitted, train, width=fitted.coef_.shape[1])
    toward_favourable = 1.0 if fitted.classes_[1] == train.favourable else -1.0
    theta = np.asarray(fitted.coef_, dtype=np.float64)[0] * toward_favourable
    if fitted.fit_intercept:
        theta = np.append(theta, toward_favourable * float(fitted.intercept_[0]))
    # liblinear penalises its intercept: a column of constant value s with a penalised weight b/s.
    penalised = fitted.fit_intercept and getattr(fitted, "solver", None) == "liblinear"
    return SklearnReading(
        theta=theta,
        intercept=bool(fitted.fit_intercept),
        intercept_penalty=1.0 / float(fitted.intercept_scaling) ** 2 if penalised else 0.0,
        penalty=_penalty_of(fitted),
        class_weight=fitted.class_weight,
    )


def refuse_far_from_optimum(fit: LogisticFit, given: Array, fitted: Any) -> Polish:
    """Measure what polishing changed; refuse where it is more than a loose tolerance explains."""
    from rocerf.models.logistic.fit import Polish

    theta = fit.minimum.theta
    moved = fit.objective.scores(theta - given)
    smallest = SMALLEST_SPREAD if fit.objective.penalty.kinked else 1e-12  # an L1 penalty may leave an intercept alone
    spread = max(float(fit.objective.scores(theta).std()), smallest)
    shift = float(np.sqrt(moved @ moved / len(moved)))
    polish = Polish(shift=shift / spread, largest_shift=float(np.abs(moved).max()) / spread)
    allowed = LARGEST_SHIFT_OF_DESCENT if is_sgd(fitted) else LARGEST_SHIFT
    if not polish.shift <= allowed:
        said = (
            f"Expected a model at the optimum of its own objective on these {len(fit.train)} rows, got one whose "
            f"scores move by {polish.shift:.2g} standard deviations when carried there (at most {allowed} is "
            f"allowed). Most likely {_likely(fit, fitted)}. (A few missing rows, or many that resemble the rest, would "
            "not be noticed by this check.)"
        )
        raise UnsupportedModelError(said) if is_sgd(fitted) else NotAtOptimumError(said)
    return polish


def _likely(fit: LogisticFit, fitted: Any) -> str:
    """Why a fit may be far from its optimum, and what to do."""
    if is_sgd(fitted):
        share = fitted.alpha * len(fit.train)
        return (
            "single rows left it there by chance, as they do SGDClassifier's fits: fit LogisticRegression("
            f"C={1.0 / share if share > 0 else np.inf:.6g}), which with an l2 penalty has the same objective; or let "
            "its learning rate fall further (a larger alpha; or learning_rate='invscaling', a smaller tol, more "
            "max_iter); or take it over for the promises 'retrained' and 'simulated' with "
            "rocerf.from_pipeline(..., otherwise='estimator'). Or it was fitted on other rows, columns, labels or "
            "sample weights than those given"
        )
    if fit.objective.penalty.kinked and fitted.solver == "saga" and not np.asarray(fitted.coef_).any():
        return (
            "saga stopped as soon as all coefficients were 0, before it had found the intercept: use a weaker penalty "
            "(a larger C), or the solver liblinear"
        )
    if int(np.max(getattr(fitted, "n_iter_", 0))) >= fitted.max_iter:
        return (
            f"it stopped at its limit of max_iter={fitted.max_iter} iterations before converging: scale the columns or "
            "raise max_iter, and fit again"
        )
    return (
        "it was fitted on other rows, columns, labels or sample weights than those given (scaled, say), or its "
        "settings (C, class_weight) were changed after the fit: pass exactly what it was fitted on"
    )


def is_sgd(fitted: Any) -> bool:
    """Whether it is fitted by single rows, so that where it stops is chance."""
    from sklearn.linear_model import SGDClassifier

    return isinstance(fitted, SGDClassifier)


def is_logistic(fitted: Any) -> bool:
    """Whether it is an estimator whose objective is read here."""
    from sklearn.linear_model import LogisticRegression

    return isinstance(fitted, LogisticRegression) or is_sgd(fitted)


def _refuse_other_estimators(fitted: Any) -> None:
    from sklearn.linear_model import LogisticRegressionCV

    name = type(fitted).__name__
    if isinstance(fitted, LogisticRegressionCV):
        raise UnsupportedModelError(
            "Expected LogisticRegression, got LogisticRegressionCV, which chooses C anew at each retraining; "
            "fit LogisticRegression(C=...) with the C it chose (its attribute C_) and pass that."
        )
    if is_sgd(fitted):
        _refuse_other_descents(fitted)
    if not is_logistic(fitted):
        raise UnsupportedModelError(
            f"Expected a fitted scikit-learn LogisticRegression, got {name}; fit one on the prepared numeric "
            "columns. A StandardScaler followed by LogisticRegression(C=...) is LogisticModel.fit(train, C=...); "
            "pipelines are taken over by rocerf.from_pipeline."
        )
    if not hasattr(fitted, "coef_"):
        raise UnsupportedModelError(f"Expected a fitted {name}, got one that is not fitted; call its fit first.")


def _refuse_other_descents(fitted: Any) -> None:
    if fitted.loss != "log_loss":
        raise UnsupportedModelError(
            f"Expected SGDClassifier(loss='log_loss'), got loss={fitted.loss!r}, which has no log-odds; fit with "
            "loss='log_loss', or take it over for the promises 'retrained' and 'simulated' with otherwise='estimator'."
        )
    if fitted.early_stopping:
        raise UnsupportedModelError(
            "Expected SGDClassifier to learn from all rows, got early_stopping=True, which holds some back; fit with "
            "early_stopping=False, or take it over for the promises 'retrained' and 'simulated' with "
            "otherwise='estimator'."
        )


def _penalty_of(fitted: Any) -> Penalty:
    """The penalty, by the older option ``penalty`` or, where that is not used, by C and l1_ratio."""
    named = getattr(fitted, "penalty", "deprecated")
    if is_sgd(fitted):  # of the mean loss, so that each row brings its share
        share = {"l1": 1.0, "elasticnet": fitted.l1_ratio}.get(named, 0.0)
        alpha = 0.0 if named is None else float(fitted.alpha)
        return Penalty(per_row=(1.0 - share) * alpha, l1_per_row=share * alpha)
    ratios = {"l1": 1.0, "l2": 0.0, None: 0.0}
    ratio = ratios[named] if named in ratios else float(fitted.l1_ratio or 0.0)
    return Penalty.fixed(np.inf if named is None else float(fitted.C), ratio)
