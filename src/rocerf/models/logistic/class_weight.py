"""Class weights: a factor on the loss of every row with a label, kept when rows are deleted unless "balanced"."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Literal

import numpy as np

from rocerf.data.columns import is_number
from rocerf.data.training_set import TrainingSet
from rocerf.errors import LabelError, NoOptimumError, OptionError
from rocerf.types import Array

#: None, a weight for each label, or "balanced": whatever gives both labels the same weight in all.
ClassWeight = Mapping[Any, float] | Literal["balanced"] | None


def row_weights(train: TrainingSet, class_weight: ClassWeight) -> Array | None:
    """Sample weights times class weights, shape (n,); None where every row counts once."""
    if class_weight is None:
        return train.weights
    if class_weight == "balanced":
        class_weight = balanced_weights(train, digits=None)
    if not isinstance(class_weight, Mapping):
        raise OptionError(
            f"Expected class_weight to be None, 'balanced' or a dict from label to weight, got {class_weight!r}; "
            f"balanced weights, kept fixed when rows are deleted, are class_weight={balanced_weights(train)}."
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


def balanced_weights(train: TrainingSet, digits: int | None = 6) -> dict[Any, float]:
    """The weights that scikit-learn's "balanced" gives these labels, ``n / (2 n_label)``."""
    weights = np.ones(len(train)) if train.weights is None else train.weights
    total, good = float(weights.sum()), float(weights @ train.y)
    if not 0 < good < total:
        raise NoOptimumError(
            f"Expected rows of both classes for balanced class weights, got {len(train)} of one class only; keep at "
            "least one row of each class."
        )
    found = {train.unfavourable: total / (2 * (total - good)), train.favourable: total / (2 * good)}
    return found if digits is None else {label: round(weight, digits) for label, weight in found.items()}
