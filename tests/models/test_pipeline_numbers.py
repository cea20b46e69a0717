"""Numbers that are written in transformers are found wherever they stand."""

from __future__ import annotations

from functools import partial
from types import SimpleNamespace
from typing import Any

import numpy as np
import pandas as pd
import pytest
from sklearn.preprocessing import FunctionTransformer

from rocerf.models.sklearn import pipeline_numbers
from rocerf.models.sklearn.pipeline_numbers import numbers_in

CODE = 4711.0
UNKNOWN = {"special": [CODE]}


def _by_global(X: Any) -> Any:
    return np.where(np.isin(X, UNKNOWN["special"]), 0, X)


def _by_constant(X: Any) -> Any:
    return np.where(X == 4711, 0, X)


def _by_default(X: Any, code: float = CODE) -> Any:
    return np.where(code == X, 0, X)


def _by_closure(code: float) -> Any:
    return lambda X: np.where(code == X, 0, X)


class Slotted:
    """A thing without a dictionary."""

    __slots__ = ("code",)

    def __init__(self, code: float) -> None:
        self.code = code


PLACES: dict[str, Any] = {
    "a global table": FunctionTransformer(_by_global),
    "a constant": FunctionTransformer(_by_constant),
    "a default": FunctionTransformer(_by_default),
    "a closure": FunctionTransformer(_by_closure(CODE)),
    "a partial function": FunctionTransformer(partial(_by_closure, CODE)),
    "an argument": FunctionTransformer(_by_default, kw_args={"code": CODE}),
    "a key": {CODE: "unknown"},
    "a set": frozenset([CODE]),
    "an array of whole numbers": np.arange(4700, 4720),
    "an array of things": np.array([None, [CODE]], dtype=object),
    "a column": SimpleNamespace(table=pd.DataFrame({"code": ["x", CODE]})),
    "a slot": Slotted(CODE),
}


@pytest.mark.parametrize("place", PLACES)
def test_a_code_is_found_wherever_it_stands(place: str) -> None:
    found = numbers_in([SimpleNamespace(step=[PLACES[place]])])
    assert found is not None
    assert CODE in found


def test_things_that_hold_each_other_are_looked_at_once_and_too_many_are_none(monkeypatch: pytest.MonkeyPatch) -> None:
    loop: list[Any] = [1.0, np.nan, np.inf, True, 10**400]
    loop.append(loop)
    found = numbers_in(loop)
    assert found is not None
    assert found.tolist() == [1.0]
    monkeypatch.setattr(pipeline_numbers, "MOST_THINGS", 3)
    assert numbers_in([[1], [2], [3], [4]]) is None
