"""What is computed from a model once, however many ask, and forgotten when nobody needs it any more."""

from __future__ import annotations

from typing import Any, TypeVar
from weakref import WeakValueDictionary

Made = TypeVar("Made")

_MADE: WeakValueDictionary[tuple[type, int], Any] = WeakValueDictionary()


def shared(kind: type[Made], model: Any) -> Made:
    """``kind(model)``, the same one for everybody as long as anybody has it.

    What is made keeps its model, so that the model's id is its own while the entry lives.
    """
    key = kind, id(model)
    found = _MADE.get(key)
    if found is None:
        found = _MADE[key] = kind(model)  # type: ignore[call-arg]
    made: Made = found
    return made
