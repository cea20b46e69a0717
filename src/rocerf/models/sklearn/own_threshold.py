"""Classifiers with a threshold of their own: scikit-learn's FixedThresholdClassifier, TunedThresholdClassifierCV.

Their probabilities are those of the classifier inside; only their decisions are their own. One that is fitted again
decides by the threshold that it then has: a tuned one tunes again.
"""

from __future__ import annotations

from typing import Any

from rocerf.models.sklearn.pipeline_steps import split


def deciding(fitted: Any) -> Any:
    """The fitted classifier with a threshold of its own at the end of a pipeline; None where there is none."""
    from sklearn.model_selection import FixedThresholdClassifier, TunedThresholdClassifierCV

    _, last = split(getattr(fitted, "pipeline_", fitted))
    known = isinstance(last, FixedThresholdClassifier | TunedThresholdClassifierCV) and hasattr(last, "estimator_")
    return last if known else None


def label_decided_about(last: Any) -> Any:
    """The label whose probability must reach the threshold."""
    scorer = getattr(last, "_curve_scorer", None)  # of a tuned one the scorer says it
    label = getattr(last, "pos_label", None) if scorer is None else scorer._get_pos_label()
    return last.classes_[1] if label is None else label


def own_threshold(fitted: Any, favourable: Any) -> float | None:
    """The probability of the favourable label from which a classifier with a threshold of its own accepts.

    None of any other, and of one that decides by the decision function.
    """
    last = deciding(fitted)
    if last is None or last.response_method == "decision_function" or not hasattr(last.estimator_, "predict_proba"):
        return None
    chance = getattr(last, "best_threshold_", getattr(last, "threshold", "auto"))
    own = 0.5 if chance == "auto" else float(chance)
    return own if favourable == label_decided_about(last) else 1.0 - own


def refuses_ties(fitted: Any, favourable: Any, threshold: float) -> bool:
    """Whether a classifier's own ``predict`` refuses who reaches its threshold exactly.

    Of two classes that are equally likely the first one is chosen; a threshold of its own is reached for the label that
    it is about. Any other threshold was said by the user, and reaching it is enough.
    """
    last = deciding(fitted)
    if last is not None:
        return bool(favourable != label_decided_about(last))
    return bool(threshold == 0.5 and favourable == fitted.classes_[1])


def steps_and_trees(pipeline: Any) -> tuple[tuple[Any, ...], Any]:
    """The transformers before a classifier and the classifier, whatever threshold is set on its probabilities."""
    steps, last = split(pipeline)
    inner = deciding(last)
    if inner is None:
        return steps, last
    more, last = steps_and_trees(inner.estimator_)
    return (*steps, *more), last
