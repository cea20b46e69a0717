"""Reading a fitted scikit-learn ``LogisticRegression``: what it minimised, or why we must refuse."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np

from rocerf.data.training_set import TrainingSet
from rocerf.errors import ColumnError, LabelError, NotAtOptimumError, UnsupportedModelError
from rocerf.models.logistic.class_weight import ClassWeight
from rocerf.types import Array

if TYPE_CHECKING:
    from rocerf.models.logistic.fit import LogisticFit, Polish


#: Largest move of the scores, in their standard deviations, that polishing may cause.
LARGEST_SHIFT = 0.1


@dataclass(frozen=True)
class SklearnReading:
    """The objective behind a fitted estimator, in our terms; theta scores the favourable label."""

    theta: Array
    intercept: bool
    intercept_penalty: float
    C: float
    class_weight: ClassWeight


def read_logistic_regression(fitted: Any, train: TrainingSet, *, same_columns: bool = True) -> SklearnReading:
    """Check that the estimator is one we can retrain exactly, and read its objective.

    ``same_columns`` is false for the end of a pipeline, which sees other columns than the training rows have.
    """
    _refuse_other_estimators(fitted)
    _refuse_other_penalties(fitted)
    _check_labels(fitted, train)
    if same_columns:
        _check_columns(fitted, train)
    toward_favourable = 1.0 if fitted.classes_[1] == train.favourable else -1.0
    theta = np.asarray(fitted.coef_, dtype=np.float64)[0] * toward_favourable
    if fitted.fit_intercept:
        theta = np.append(theta, toward_favourable * float(fitted.intercept_[0]))
    # liblinear penalises its intercept: a column of constant value s with a penalised weight b/s.
    penalised = fitted.fit_intercept and fitted.solver == "liblinear"
    return SklearnReading(
        theta=theta,
        intercept=bool(fitted.fit_intercept),
        intercept_penalty=1.0 / float(fitted.intercept_scaling) ** 2 if penalised else 0.0,
        C=np.inf if getattr(fitted, "penalty", "l2") is None else float(fitted.C),
        class_weight=fitted.class_weight,
    )


def refuse_far_from_optimum(fit: LogisticFit, given: Array, fitted: Any) -> Polish:
    """Measure what polishing changed; refuse where it is more than a loose tolerance explains."""
    from rocerf.models.logistic.fit import Polish

    theta = fit.minimum.theta
    moved = fit.objective.scores(theta - given)
    spread = max(float(fit.objective.scores(theta).std()), 1e-12)
    shift = float(np.sqrt(moved @ moved / len(moved)))
    polish = Polish(shift=shift / spread, largest_shift=float(np.abs(moved).max()) / spread)
    if not polish.shift <= LARGEST_SHIFT:
        iterations = int(np.max(getattr(fitted, "n_iter_", 0)))
        likely = (
            f"it stopped at its limit of max_iter={fitted.max_iter} iterations before converging: "
            "scale the columns or raise max_iter, and fit again"
            if iterations >= fitted.max_iter
            else "it was fitted on other rows, columns, labels or sample weights than those given (scaled, say), "
            "or its settings (C, class_weight) were changed after the fit: pass exactly what it was fitted on"
        )
        raise NotAtOptimumError(
            f"Expected a model at the optimum of its own objective on these {len(fit.train)} rows, got one whose "
            f"scores move by {polish.shift:.2g} standard deviations when carried there (at most {LARGEST_SHIFT} is "
            f"allowed). Most likely {likely}. (A few missing rows, or many that resemble the rest, would not be "
            "noticed by this check.)"
        )
    return polish


def _refuse_other_estimators(fitted: Any) -> None:
    from sklearn.linear_model import LogisticRegression, LogisticRegressionCV

    name = type(fitted).__name__
    if isinstance(fitted, LogisticRegressionCV):
        raise UnsupportedModelError(
            "Expected LogisticRegression, got LogisticRegressionCV, which chooses C anew at each retraining; "
            "fit LogisticRegression(C=...) with the C it chose (its attribute C_) and pass that."
        )
    if not isinstance(fitted, LogisticRegression):
        raise UnsupportedModelError(
            f"Expected a fitted scikit-learn LogisticRegression, got {name}; fit one on the prepared numeric "
            "columns. A StandardScaler followed by LogisticRegression(C=...) is LogisticModel.fit(train, C=...); "
            "pipelines are taken over by rocerf.from_pipeline."
        )
    if not hasattr(fitted, "coef_"):
        raise UnsupportedModelError(
            "Expected a fitted LogisticRegression, got one that is not fitted; call its fit first."
        )


def _refuse_other_penalties(fitted: Any) -> None:
    penalty = getattr(fitted, "penalty", "deprecated")
    l1_ratio = fitted.l1_ratio or 0.0
    if penalty == "l1" or (penalty not in ("l2", None) and l1_ratio > 0):
        raise UnsupportedModelError(
            f"Expected an L2 penalty, got {'l1' if penalty == 'l1' or l1_ratio == 1 else 'elasticnet'}: an L1 part has "
            "kinks, so deleting rows moves the model in jumps that row effects cannot follow; "
            "refit with an L2 penalty (l1_ratio=0); or take it over for promise='simulated' with "
            "rocerf.from_pipeline(..., otherwise='estimator')."
        )


def _check_labels(fitted: Any, train: TrainingSet) -> None:
    classes = fitted.classes_.tolist()
    if len(classes) != 2:
        raise UnsupportedModelError(
            f"Expected a model of two classes, got {len(classes)}: {classes[:5]}; "
            "recourse is defined for accept/refuse decisions, so fit on two labels."
        )
    if set(classes) != {train.favourable, train.unfavourable}:
        raise LabelError(
            f"Expected a model fitted on the labels {train.unfavourable!r} and {train.favourable!r} of the training "
            f"set, got one for {classes[0]!r} and {classes[1]!r}; pass the labels it was fitted on."
        )


def _check_columns(fitted: Any, train: TrainingSet) -> None:
    width = fitted.coef_.shape[1]
    if width != train.X.shape[1]:
        raise ColumnError(
            f"Expected training rows with the model's {width} columns, got {train.X.shape[1]}; "
            "pass the columns it was fitted on."
        )
    names = getattr(fitted, "feature_names_in_", None)
    if names is None or not train.from_frame:
        return
    for place, (fitted_on, given) in enumerate(zip(map(str, names), train.columns, strict=True), start=1):
        if fitted_on != given:
            raise ColumnError(
                f"Expected the columns the model was fitted on, in that order, got {given!r} as column {place} where "
                f"the model has {fitted_on!r}; reorder or rename them."
            )
