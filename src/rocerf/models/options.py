"""Checks of options that several models share; each says what was expected, what came, and what to do."""

from __future__ import annotations

import math
from collections.abc import Iterable
from typing import Any

from rocerf.data.columns import is_number
from rocerf.data.training_set import TrainingSet
from rocerf.errors import DataError, OptionError


def checked_seed(seed: Any) -> int:
    """The seed, if it is one that NumPy takes."""
    if not is_number(seed, whole=True) or seed < 0:
        raise OptionError(f"Expected seed to be a whole number >= 0, got {seed!r}; use for example seed=0.")
    return int(seed)


def checked_threshold(threshold: Any) -> float:
    """A probability from which a person is accepted."""
    if not (is_number(threshold) and 0 < threshold < 1):
        raise OptionError(
            f"Expected a threshold strictly between 0 and 1 (a probability), got {threshold!r}; "
            "use for example threshold=0.5."
        )
    return float(threshold)


def positive(value: Any, name: str, *, zero: bool = False) -> float:
    """A finite number above 0 (or 0, where that is allowed)."""
    if not is_number(value) or not math.isfinite(value) or value < 0 or (value == 0 and not zero):
        raise OptionError(f"Expected {name} to be a number {'>= 0' if zero else '> 0'}, got {value!r}; correct it.")
    return float(value)


def positive_whole(value: Any, name: str) -> int:
    """A whole number of at least 1."""
    if not is_number(value, whole=True) or value < 1:
        raise OptionError(f"Expected {name} to be a whole number >= 1, got {value!r}; correct it.")
    return int(value)


def one_of(value: Any, name: str, known: Iterable[str]) -> Any:
    """The value, if it is one of the names known.

    >>> one_of("warm", "retraining", ("fresh", "warm"))
    'warm'
    """
    names = tuple(known)
    if not (isinstance(value, str) and value in names):
        raise OptionError(f"Expected {name} to be one of {', '.join(names)}, got {value!r}; choose one of these.")
    return value


def refuse_bare_rows(train: Any) -> None:
    """Models are trained on a TrainingSet, whose rows have ids."""
    if not isinstance(train, TrainingSet):
        raise DataError(
            f"Expected a TrainingSet, got {type(train).__name__}; put rows and labels in one: TrainingSet(X, y)."
        )


def proper_share(value: Any, name: str, example: float) -> float:
    """A share above 0 and below 1."""
    if not is_number(value) or not 0.0 < value < 1.0:
        raise OptionError(f"Expected {name} between 0 and 1, got {value!r}; use for example {example}.")
    return float(value)
