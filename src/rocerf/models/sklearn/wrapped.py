"""What stands around a logistic pipeline and does not change what it is: a search, a scorecard, a threshold, ...

A search for settings (GridSearchCV, LogisticRegressionCV) is the pipeline it chose: the settings stay when rows are
deleted. A scorecard (optbinning) is its binning and its estimator. A calibration that never falls, or the mean of
several of one classifier, is a threshold on the score below it: it stays, and so does that threshold. A classifier with
a threshold of its own is the one inside it with that. What stays is said with every answer. What cannot be seen through
so is left as it is, and refused later with the way out.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
from scipy.special import expit, logit

from rocerf.data.columns import plain
from rocerf.errors import UnsupportedModelError
from rocerf.models.sklearn.own_threshold import refuses_ties
from rocerf.types import Array

#: How far beyond the last score that is refused the threshold lies: rows stand exactly on edges of isotonic
#: calibrations, and their scores are known to rounding.
EDGE = 1e-12
#: Halvings after which a threshold on the score is known to the last digit.
HALVINGS = 200


@dataclass(frozen=True)
class Unwrapped:
    """A pipeline, the probability from which it accepts, and what was taken off it: keys of sentences.

    ``asked`` is what the user gave, but for searches: what an estimator is made of. ``tied`` says, once a threshold of
    its own was seen, whether who reaches that exactly is refused.
    """

    pipeline: Any
    threshold: float
    asked: Any
    notes: tuple[str, ...] = ()
    tied: bool | None = None

    def noting(self, note: str, **changes: Any) -> Unwrapped:
        """The same with one more note."""
        notes = self.notes if note in self.notes else (*self.notes, note)
        return replace(self, notes=notes, **changes)


def unwrapped(given: Any, threshold: float, favourable: Any) -> Unwrapped:
    """The pipeline inside searches, scorecards and calibrations; as it is where there are none.

    >>> from sklearn.linear_model import LogisticRegression
    >>> from sklearn.model_selection import GridSearchCV
    >>> search = GridSearchCV(LogisticRegression(), {"C": [0.1, 1.0]}, cv=2).fit([[0.0], [1.0]] * 4, [0, 1] * 4)
    >>> found = unwrapped(search, 0.5, 1)
    >>> type(found.pipeline).__name__, found.notes
    ('LogisticRegression', ('settings_chosen',))
    """
    found = Unwrapped(given, threshold, given)
    while True:
        inside = found.pipeline
        if hasattr(inside, "best_estimator_"):
            found = found.noting("settings_chosen", pipeline=inside.best_estimator_, asked=inside.best_estimator_)
        elif hasattr(inside, "binning_process_") and hasattr(inside, "estimator_"):
            found = replace(found, pipeline=_scorecard(inside))
        elif (below := _calibrated(inside)) is not None:
            tied = refuses_ties(inside, favourable, found.threshold) if found.tied is None else found.tied
            place = _threshold_below(below, found.threshold, favourable, beyond=tied)
            found = found.noting("calibrated", pipeline=_with_last(inside, _bare(below[0])), threshold=place)
        elif (last := _thresholded(inside)) is not None:
            place, tied = _own_threshold(last, found.threshold, favourable), refuses_ties(last, favourable, 0.5)
            found = replace(found, pipeline=_with_last(inside, last.estimator_), threshold=place, tied=tied)
        elif (chosen := _chosen(inside)) is not None:
            found = found.noting("settings_chosen", pipeline=_with_last(inside, chosen))
        else:
            return found


def _last(pipeline: Any) -> Any:
    from sklearn.pipeline import Pipeline

    return _last(pipeline.steps[-1][1]) if isinstance(pipeline, Pipeline) else pipeline


def _with_last(pipeline: Any, last: Any) -> Any:
    """The pipeline with another fitted classifier at its end."""
    from sklearn.pipeline import Pipeline

    if not isinstance(pipeline, Pipeline):
        return last
    *first, (name, end) = pipeline.steps
    return Pipeline([*first, (name, _with_last(end, last))])


def _scorecard(card: Any) -> Any:
    """The binning and the estimator of a fitted scorecard as a pipeline; refused where they are not all of it."""
    from sklearn.pipeline import Pipeline

    missing = [getattr(card, name, 0) for name in ("_metric_special", "_metric_missing")]
    if any(metric != 0 for metric in missing):
        raise UnsupportedModelError(
            f"Expected a scorecard in which missing and special values count 0, got metrics {missing}, which its "
            "binning process does not keep; set them in the binning process (binning_transform_params), fit again "
            "without them, or pass make_pipeline(binning_process, LogisticRegression()) fitted."
        )
    return Pipeline([("binning", card.binning_process_), ("estimator", card.estimator_)])


def _chosen(pipeline: Any) -> Any | None:
    """A LogisticRegression with the settings that a LogisticRegressionCV chose, fitted as that one is."""
    from sklearn.linear_model import LogisticRegression, LogisticRegressionCV

    last = _last(pipeline)
    if not isinstance(last, LogisticRegressionCV) or not hasattr(last, "C_"):
        return None
    ratio = getattr(last, "l1_ratio_", None)
    ratio = 0.0 if ratio is None else np.ravel(ratio)[0]
    known = LogisticRegression().get_params()
    shared = {name: value for name, value in last.get_params().items() if name in known}
    if shared.get("penalty", "deprecated") in ("deprecated", "elasticnet"):  # else the older option says it all
        shared["l1_ratio"] = float(ratio or 0.0)
    made = LogisticRegression(**{**shared, "C": float(np.ravel(last.C_)[0])})
    for name in ("coef_", "intercept_", "classes_", "n_features_in_", "feature_names_in_"):
        if hasattr(last, name):
            setattr(made, name, getattr(last, name))
    made.n_iter_ = np.array([int(np.max(last.n_iter_))])
    return made


def _thresholded(pipeline: Any) -> Any | None:
    """The classifier with a threshold of its own at the end of a pipeline; None where there is none."""
    from sklearn.model_selection import FixedThresholdClassifier, TunedThresholdClassifierCV

    last = _last(pipeline)
    fitted = isinstance(last, FixedThresholdClassifier | TunedThresholdClassifierCV) and hasattr(last, "estimator_")
    return last if fitted else None


def _own_threshold(last: Any, threshold: float, favourable: Any) -> float:
    """The probability of the favourable label from which it accepts; refused where another one was asked for."""
    name, chance = type(last).__name__, getattr(last, "best_threshold_", getattr(last, "threshold", "auto"))
    if last.response_method == "decision_function" or not hasattr(last.estimator_, "predict_proba"):
        raise UnsupportedModelError(
            f"Expected a {name} that decides by probabilities, got one that decides by the decision function; fit it "
            "with response_method='predict_proba', or pass the classifier inside it (estimator_) and threshold=..."
        )
    pos_label = getattr(last, "pos_label", None)  # of a tuned one the scorer says it
    if pos_label not in (None, last.classes_[1]):
        raise UnsupportedModelError(
            f"Expected a {name} whose threshold is about the label {plain(last.classes_[1])!r}, got one about "
            f"{plain(pos_label)!r}; pass the classifier inside it (estimator_) and threshold=..."
        )
    own = 0.5 if chance == "auto" else float(chance)
    own = own if favourable == last.classes_[1] else 1.0 - own
    if threshold not in (0.5, own):
        raise UnsupportedModelError(
            f"Expected the threshold that the {name} has itself, {own:g}, got threshold={threshold:g}; leave it out, "
            "or pass the classifier inside it (estimator_)."
        )
    return own


def _calibrated(pipeline: Any) -> list[Any] | None:
    """The calibrations of one classifier at the end of a pipeline; None where there are none."""
    from sklearn.calibration import CalibratedClassifierCV

    last = _last(pipeline)
    if not isinstance(last, CalibratedClassifierCV) or not hasattr(last, "calibrated_classifiers_"):
        return None
    parts = list(last.calibrated_classifiers_)
    if any(_bare(part) is not _bare(parts[0]) for part in parts):
        raise UnsupportedModelError(
            f"Expected one classifier under the calibration, got {len(parts)} different ones whose probabilities are "
            "averaged; fit CalibratedClassifierCV(..., ensemble=False), calibrate one that is fitted already "
            "(sklearn.frozen.FrozenEstimator), or take it over for the promises 'retrained' and 'simulated' with "
            "otherwise='estimator'."
        )
    return parts


def _bare(part: Any) -> Any:
    """The classifier under a calibration; a frozen one is in a case."""
    return getattr(part.estimator, "estimator", part.estimator)


def _threshold_below(parts: list[Any], threshold: float, favourable: Any, *, beyond: bool) -> float:
    """The probability, of the classifier under calibrations, from which their mean reaches the threshold.

    Or goes ``beyond`` it, where who only reaches it is refused: isotonic calibrations stay at 0.5 over whole ranges. A
    mean of maps of one score that never fall never falls.
    """
    upwards = parts[0].classes[1] == favourable

    def reached(scores: Array) -> Array:
        """Calibrated probabilities of the favourable label, for scores of it."""
        own = scores if upwards else -scores
        found = np.mean([_second(part.calibrators[0].predict(own)) for part in parts], axis=0, dtype=np.float64)
        return np.asarray(found if upwards else 1.0 - found)

    return float(expit(_lowest(reached, threshold, beyond=beyond)))


def _second(chances: Any) -> Array:
    """Probabilities of the second class (m,): most calibrators give these, a temperature those of both classes."""
    found = np.asarray(chances)
    return found[:, 1] if found.ndim == 2 and found.shape[1] == 2 else np.ravel(found)


def _lowest(reached: Callable[[Array], Array], threshold: float, *, beyond: bool = False) -> float:
    """The lowest score whose calibrated probability reaches the threshold, or goes beyond it; refused where the
    calibration ever falls."""
    low, high = float(logit(1e-12)), float(logit(1.0 - 1e-12))
    least = float(np.nextafter(threshold, np.inf)) if beyond else threshold
    heights = reached(np.linspace(low, high, 4001))
    if (np.diff(heights) < 0).any() or heights[-1] < least:
        falls = "falls somewhere" if (np.diff(heights) < 0).any() else f"stays below the threshold {threshold:g}"
        raise UnsupportedModelError(
            f"Expected a calibration that never falls as the score rises and reaches the threshold, got one that "
            f"{falls}; leave the calibration out, or take the classifier over for the promises 'retrained' "
            "and 'simulated' with otherwise='estimator'."
        )
    for _ in range(HALVINGS):
        middle = (low + high) / 2
        low, high = (low, middle) if reached(np.array([middle]))[0] >= least else (middle, high)
    return high + EDGE * max(1.0, abs(high)) if beyond else high
