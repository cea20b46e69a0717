"""Numbers that are written somewhere in fitted transformers: edges of bins, special codes, marks of missing values.

A transformer that treats one number unlike its neighbours has that number somewhere: in an attribute, in a table of
its own, in the text of a function. Such numbers are what a column is asked at before a whole range of it is stated.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from functools import partial
from types import CodeType, FunctionType, MethodType, ModuleType
from typing import Any

import numpy as np

from rocerf.types import Array

#: Things looked at, at most.
MOST_THINGS = 500_000


def numbers_in(things: Any) -> Array | None:
    """All finite numbers written in these things and whatever they are made of, in order, each once.

    None where there are too many things to look at.

    >>> from sklearn.impute import SimpleImputer
    >>> 999.0 in numbers_in([SimpleImputer(missing_values=999)])
    True
    >>> list(map(float, numbers_in([lambda x: x if x != 77 else 3, {"a": (1, "2", None)}])))
    [1.0, 3.0, 77.0]
    """
    found: list[Array] = [np.empty(0)]
    seen: dict[int, Any] = {}  # the things themselves, so that none goes and leaves its id to another
    todo = [things]
    while todo and len(seen) < MOST_THINGS:
        thing = todo.pop()
        if isinstance(thing, bool | np.bool_ | str | bytes | ModuleType) or thing is None or id(thing) in seen:
            continue
        if isinstance(thing, int | float | np.number) and not isinstance(thing, np.complexfloating):
            found.append(np.array([_as_float(thing)]))
            continue
        seen[id(thing)] = thing
        if isinstance(thing, np.ndarray) and thing.dtype.kind in "iuf":
            found.append(np.unique(thing).astype(np.float64))
            continue
        todo.extend(_inside(thing))
    if todo:
        return None
    numbers = np.unique(np.concatenate(found))
    return np.asarray(numbers[np.isfinite(numbers)])


def _as_float(number: Any) -> float:
    try:
        return float(number)
    except OverflowError:
        return np.inf


def _inside(thing: Any) -> Iterator[Any]:
    """What a thing is made of, as far as it can be looked into."""
    if isinstance(thing, np.ndarray):
        yield from thing.ravel().tolist() if thing.dtype == object else ()
    elif isinstance(thing, Mapping):
        yield from thing.keys()
        yield from thing.values()
    elif isinstance(thing, list | tuple | set | frozenset):
        yield from thing
    elif isinstance(thing, CodeType):
        yield from thing.co_consts
    elif isinstance(thing, MethodType):
        yield from (thing.__func__, thing.__self__)
    elif isinstance(thing, partial):
        yield from (thing.func, thing.args, thing.keywords)
    elif isinstance(thing, FunctionType):
        yield from (thing.__code__, thing.__defaults__, thing.__kwdefaults__)
        yield from (cell.cell_contents for cell in thing.__closure__ or () if _is_full(cell))
        yield from (thing.__globals__.get(name) for name in thing.__code__.co_names)
    elif hasattr(thing, "to_numpy"):  # tables and columns
        yield np.asarray(thing.to_numpy())
    elif not isinstance(thing, type):
        yield getattr(thing, "__dict__", None)
        yield from (getattr(thing, name, None) for name in getattr(type(thing), "__slots__", ()))


def _is_full(cell: Any) -> bool:
    try:
        return cell.cell_contents is not None
    except ValueError:
        return False
