"""Class weights: a factor on the loss of every row with a label, kept when rows are deleted."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np

from rocerf.data.columns import is_number
from rocerf.data.training_set import TrainingSet
from rocerf.errors import LabelError, OptionError
from rocerf.types import Array


def row_weights(train: TrainingSet, class_weight: Mapping[Any, float] | None) -> Array | None:
    """Sample weights times class weights, shape (n,); None where every row counts once."""
    if class_weight is None:
        return train.weights
    if not isinstance(class_weight, Mapping):
        raise OptionError(
            f"Expected class_weight to be None or a dict from label to weight, got {class_weight!r}; balanced weights, "
            f"kept fixed when rows are deleted, are class_weight={balanced_weights(train)}."
        )
    labels = {train.favourable, train.unfavourable}
    unknown = [label for label in class_weight if label not in labels]
    given = [class_weight.get(label, 1.0) for label in (train.unfavourable, train.favourable)]
    if unknown:
        raise LabelError(
            f"Expected class_weight for {train.favourable!r} and {train.unfavourable!r}, got {unknown[0]!r}; "
            "use the labels of the training set as keys."
        )
    if not all(is_number(weight) and weight > 0 and np.isfinite(weight) for weight in given):
        raise OptionError(
            f"Expected positive numbers as class weights, got {dict(class_weight)}; give each label a number above 0."
        )
    weights = np.array(given, dtype=np.float64)[train.y.astype(np.intp)]
    return weights if train.weights is None else weights * train.weights


def balanced_weights(train: TrainingSet) -> dict[Any, float]:
    """The weights that scikit-learn's "balanced" gives these labels, ``n / (2 n_label)``."""
    weights = np.ones(len(train)) if train.weights is None else train.weights
    total, good = float(weights.sum()), float(weights @ train.y)
    return {train.unfavourable: round(total / (2 * (total - good)), 6), train.favourable: round(total / (2 * good), 6)}
