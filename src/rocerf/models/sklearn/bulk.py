"""Many models asked about the same points: decoded once for all of them, without checks that the first one passed."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from contextvars import ContextVar
from typing import Any, TypeVar

Made = TypeVar("Made")

#: What was made of arrays inside :func:`asked_in_bulk`, by the array itself and a key; None outside.
_MADE: ContextVar[dict[Any, tuple[Any, Any]] | None] = ContextVar("made", default=None)


@contextmanager
def asked_together() -> Iterator[None]:
    """Inside, an array is decoded once for each kind of model, whoever is asked about it; forgotten at the end."""
    made = _MADE.get()
    token = _MADE.set({} if made is None else made)
    try:
        yield
    finally:
        _MADE.reset(token)


@contextmanager
def asked_in_bulk() -> Iterator[None]:
    """The same, and scikit-learn does not check options or numbers.

    Whoever asks has looked for missing numbers already, and options were checked when the models were fitted.
    """
    from sklearn import config_context

    with asked_together(), config_context(assume_finite=True, skip_parameter_validation=True):
        yield


def in_bulk() -> bool:
    """Whether many models are being asked about the same points."""
    return _MADE.get() is not None


def remembered(X: Any, key: Any, make: Callable[[], Made]) -> Made:
    """What ``make()`` gives of an array; inside :func:`asked_in_bulk` that of the first time, if it is the same array.

    >>> import numpy as np
    >>> calls, X = [], np.zeros((2, 2))
    >>> with asked_in_bulk():
    ...     _ = remembered(X, "rows", lambda: calls.append(1)), remembered(X, "rows", lambda: calls.append(2))
    >>> calls
    [1]
    """
    made = _MADE.get()
    if made is None:
        return make()
    place = (id(X), key)
    if place not in made:
        made[place] = (X, make())  # the array is kept, so that its id stays its own
    found: Made = made[place][1]
    return found
