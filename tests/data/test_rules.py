"""Rules in words: parsed right, or refused."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from rocerf.data.rules import Condition, Relation
from rocerf.errors import SchemaError

COLUMNS = ("a", "b", "c-d", "h=own")


@pytest.mark.parametrize(
    ("words", "row", "upper"),
    [
        ("a <= 3", [1, 0, 0, 0], 3.0),
        ("a >= 3", [-1, 0, 0, 0], -3.0),
        ("2 * a - b / 4 <= 12 * `c-d` + 1", [2, -0.25, -12, 0], 1.0),
        ("-(a - 3) <= b * 2", [-1, -2, 0, 0], -3.0),
        ("`h=own` <= 0.5 * a", [-0.5, 0, 0, 1], 0.0),
        ("3 <= a + a", [-2, 0, 0, 0], -3.0),
    ],
)
def test_relations_are_read_as_rows(words: str, row: list[float], upper: float) -> None:
    (relation,) = Relation.parsed(words)
    assert relation.row(COLUMNS).tolist() == row
    assert relation.upper == upper
    assert relation.words == words


def test_an_equation_is_two_relations() -> None:
    upper, lower = Relation.parsed("a == 2 * b + 1")
    assert (upper.row(COLUMNS).tolist(), upper.upper) == ([1, -2, 0, 0], 1.0)
    assert (lower.row(COLUMNS).tolist(), lower.upper) == ([-1, 2, 0, 0], -1.0)


@given(st.lists(st.integers(-5, 5), min_size=4, max_size=4), st.integers(-9, 9), st.integers(0, 10_000))
def test_a_relation_holds_where_its_words_do(coefficients: list[int], constant: int, seed: int) -> None:
    if not any(coefficients[:2]):
        return
    a, b, p, q = coefficients
    words = f"{a} * a + {b} * b - {p} <= {q} - 2 * {constant}"
    (relation,) = Relation.parsed(words)
    x = np.random.default_rng(seed).integers(-20, 20, 2)
    said = a * x[0] + b * x[1] - p <= q - 2 * constant
    point = np.array([*x, 0, 0])
    assert (relation.row(COLUMNS) @ point <= relation.upper) == said


@pytest.mark.parametrize(
    "words", ["", "a", "a < 3", "a <= b <= c", "a <=", "a ** 2 <= 3", "f(a) <= 3", "a <= 'x'", "a / 0 <= 1", None, 3]
)
def test_what_is_no_relation(words: object) -> None:
    with pytest.raises(SchemaError, match="relation"):
        Relation.parsed(words)


@pytest.mark.parametrize("words", ["", "age", "age >=", "> 3", "1 < age < 3", None])
def test_what_is_no_condition(words: object) -> None:
    with pytest.raises(SchemaError, match="Expected a condition such as"):
        Condition.parsed(words)


@pytest.mark.parametrize(
    ("words", "expected"),
    [
        ("x == 2", [False, True, False]),
        ("x != 2", [True, False, True]),
        ("x > 1", [False, True, True]),
        ("x >= 2", [False, True, True]),
        ("x < 2", [True, False, False]),
        ("x <= 2", [True, True, False]),
    ],
)
def test_conditions_on_numbers(words: str, expected: list[bool]) -> None:
    assert Condition.parsed(words).holds(np.array([1.0, 2.0, 3.0])).tolist() == expected
    texts = np.array(["1", "2", "3"], dtype=object)  # categories that are numbers
    assert Condition.parsed(words).holds(texts).tolist() == expected


def test_conditions_on_texts_with_signs() -> None:
    condition = Condition.parsed("`home-now` == own")
    assert condition.column == "home-now"
    assert condition.holds(np.array(["own", "rent", None], dtype=object)).tolist() == [True, False, False]


@pytest.mark.parametrize(
    ("words", "column", "sign", "value"),
    [
        ("age>=60", "age", ">=", 60.0),
        (" `months employed` < -1.5e2 ", "months employed", "<", -150.0),
        ("home = own house", "home", "==", "own house"),
        ("home == 'own'", "home", "==", "own"),
        ("home != `a >= b`", "home", "!=", "a >= b"),
        ("`a<b` == nan", "a<b", "==", "nan"),  # a text like any other
    ],
)
def test_the_parts_of_a_condition(words: str, column: str, sign: str, value: object) -> None:
    assert Condition.parsed(words) == Condition(column, sign, value)


def test_a_missing_value_is_called_missing_and_is_no_number() -> None:
    values = np.array(["own", None], dtype=object)
    assert Condition.parsed("home == missing").holds(values).tolist() == [False, True]
    assert Condition.parsed("home != own").holds(values).tolist() == [False, True]
    numbers = np.array([2, None], dtype=object)
    for words, expected in (("x >= 1", [True, False]), ("x < 1", [False, False]), ("x == 2", [True, False])):
        assert Condition.parsed(words).holds(numbers).tolist() == expected


@settings(derandomize=True, deadline=None, max_examples=60)
@given(
    st.sampled_from(["<", "<=", ">", ">=", "==", "!="]), st.integers(-3, 3), st.lists(st.integers(-3, 3), min_size=1)
)
def test_conditions_mean_what_python_means(sign: str, value: int, values: list[int]) -> None:
    said = [eval(f"{own} {sign} {value}") for own in values]
    assert Condition.parsed(f"x {sign} {value}").holds(np.array(values, dtype=float)).tolist() == said
    assert Condition.parsed(f"x {sign} {value}").holds(np.array(values, dtype=object)).tolist() == said


@pytest.mark.parametrize(
    "words",
    [
        "a <= True",
        "a <= b * a",
        "a <= 1 / b",
        "a // 2 <= 3",
        "a <= 3; import os",
        "a <= __import__('os').getcwd()",
        "a[0] <= 3",
        "a <= lambda: 3",
        "a != 3",
        "a > 3",
        "12 months <= a",
        "a <= a",
        "3 <= 4",
    ],
)
def test_more_that_is_no_relation(words: str) -> None:
    with pytest.raises(SchemaError, match="relation"):
        Relation.parsed(words)


def test_words_of_a_relation_are_never_run() -> None:
    """They are read as sums; whatever else Python could do with them is refused."""
    with pytest.raises(SchemaError):
        Relation.parsed("a <= print('hello')")


def test_columns_that_cancel_out_are_left_out() -> None:
    (relation,) = Relation.parsed("a + b <= b + 2 * `c-d` - 0 * `h=own`")
    assert relation.coefficients == {"a": 1.0, "c-d": -2.0}


def test_a_relation_between_unknown_columns_and_without_finite_numbers() -> None:
    with pytest.raises(SchemaError, match="in the relation 'a <= z', got 'z'; known: a, b, c-d"):
        Relation.parsed("a <= z")[0].row(COLUMNS)
    with pytest.raises(SchemaError, match="finite numbers"):
        Relation({"a": np.inf}, 0.0).row(COLUMNS)
