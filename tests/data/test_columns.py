"""Arrays, lists and DataFrames into one matrix; everything else into an error of our own."""

from __future__ import annotations

from typing import Any

import numpy as np
import pandas as pd
import pytest

from rocerf.data.columns import default_columns, numeric_matrix, people_matrix
from rocerf.data.foreign import is_frame
from rocerf.errors import ColumnError, DataError


class OwnFrame(pd.DataFrame):  # type: ignore[misc]
    """A subclass, as geopandas and others have."""


def test_array_list_and_frame_give_the_same_matrix() -> None:
    values = [[1, 2], [3, 4], [5, 6]]
    frame = pd.DataFrame(values, columns=["a", "b"], index=[7, 8, 9])
    for given in (values, np.array(values), np.asfortranarray(values), frame, OwnFrame(frame)):
        matrix, columns, index = numeric_matrix(given, what="rows")
        assert matrix.dtype == np.float64
        assert matrix.flags.c_contiguous
        assert matrix.tolist() == [[1.0, 2.0], [3.0, 4.0], [5.0, 6.0]]
        if isinstance(given, pd.DataFrame):
            assert columns == ("a", "b")
            assert index is not None
            assert index.tolist() == [7, 8, 9]
        else:
            assert columns is None
            assert index is None


def test_the_matrix_is_a_copy_that_cannot_be_written() -> None:
    given = np.ones((2, 2))
    matrix, _, _ = numeric_matrix(given, what="rows")
    given[0, 0] = 5.0
    assert matrix[0, 0] == 1.0
    with pytest.raises(ValueError, match="read-only"):
        matrix[0, 0] = 2.0
    frame = pd.DataFrame(np.ones((2, 2)))
    numeric_matrix(frame, what="rows")
    frame.iloc[0, 0] = 7.0
    assert frame.iloc[0, 0] == 7.0


def test_booleans_and_nullable_integers_are_numbers() -> None:
    frame = pd.DataFrame({"yes": [True, False], "n": pd.array([1, 2], dtype="Int64"), "x": [0.5, 1.5]})
    matrix, _, _ = numeric_matrix(frame, what="rows")
    assert matrix.tolist() == [[1.0, 1.0, 0.5], [0.0, 2.0, 1.5]]


@pytest.mark.parametrize("bad", [np.nan, np.inf, -np.inf])
@pytest.mark.parametrize("as_frame", [True, False])
def test_missing_and_infinite_values(bad: float, as_frame: bool) -> None:
    values = np.array([[1.0, 2.0], [3.0, bad]])
    given: Any = pd.DataFrame(values, columns=["a", "b"]) if as_frame else values
    place = "column b" if as_frame else "column number 1"
    with pytest.raises(DataError, match=rf"Expected finite numbers in rows, got {bad} in row 1, {place} \(1 such"):
        numeric_matrix(given, what="rows")
    matrix, _, _ = numeric_matrix(given, what="rows", allow_missing=True)
    assert matrix[0].tolist() == [1.0, 2.0]


def test_a_missing_nullable_integer_is_missing() -> None:
    frame = pd.DataFrame({"n": pd.array([1, None], dtype="Int64")})
    with pytest.raises(DataError, match="got nan in row 1, column n"):
        numeric_matrix(frame, what="rows")


@pytest.mark.parametrize(
    "column",
    [
        ["red", "blue"],
        pd.to_datetime(["2020-01-01", "2020-01-02"]),
        pd.Categorical([1, 2]),
        [1 + 2j, 3],
        pd.Series([1, 2], dtype=object),
    ],
    ids=["text", "dates", "categories", "complex", "objects"],
)
def test_a_column_that_is_not_numbers_is_named(column: Any) -> None:
    frame = pd.DataFrame({"a": [1.0, 2.0], "colour": column})
    with pytest.raises(ColumnError, match=r"Expected numbers in every column of rows, got .* in column 'colour'"):
        numeric_matrix(frame, what="rows")


@pytest.mark.parametrize(
    "given",
    [
        [["a", 1.0]],
        [["1", "2"]],
        np.array([["2020-01-01"]], dtype="M8[D]"),
        np.array([[1 + 2j]]),
        [[1.0, 2.0], [3.0]],
        [[10**400]],
        [[object()]],
        None,
    ],
    ids=["text", "digits as text", "dates", "complex", "ragged", "too large", "objects", "none"],
)
def test_arrays_that_are_not_numbers(given: Any) -> None:
    with pytest.raises(ColumnError, match=r"Expected a (2-D )?table"):
        numeric_matrix(given, what="rows")


@pytest.mark.parametrize("given", [[1.0, 2.0], 5.0, np.ones((2, 2, 2)), pd.Series([1.0, 2.0])])
def test_other_than_two_dimensions(given: Any) -> None:
    with pytest.raises(ColumnError, match="2-D table"):
        numeric_matrix(given, what="rows")


@pytest.mark.parametrize("given", [np.empty((2, 0)), pd.DataFrame(index=[0, 1])])
def test_no_columns_at_all(given: Any) -> None:
    with pytest.raises(ColumnError, match="at least one column"):
        numeric_matrix(given, what="rows")


@pytest.mark.parametrize("names", [["a", "a"], [1, "1"]])
def test_repeated_column_names(names: list[Any]) -> None:
    with pytest.raises(ColumnError, match=r"distinct column names in rows, got '[a1]' twice"):
        numeric_matrix(pd.DataFrame([[1, 2]], columns=names), what="rows")


def test_people_are_matched_by_name() -> None:
    people = pd.DataFrame({"extra": ["x"], "b": [2.0], "a": [np.nan]}, index=["anna"])
    matrix, index = people_matrix(people, ("a", "b"), named=True)
    np.testing.assert_array_equal(matrix, [[np.nan, 2.0]])
    assert index is not None
    assert index.tolist() == ["anna"]


def test_people_without_names_are_matched_by_position() -> None:
    people = pd.DataFrame([[1.0, 2.0]], columns=["p", "q"])
    assert people_matrix(people, ("x0", "x1"), named=False)[0].tolist() == [[1.0, 2.0]]
    assert people_matrix([[1.0, 2.0]], ("a", "b"), named=True)[0].tolist() == [[1.0, 2.0]]


def test_people_lacking_columns() -> None:
    with pytest.raises(ColumnError, match=r"got none named 'b', 'c'; add or rename"):
        people_matrix(pd.DataFrame({"a": [1.0]}), ("a", "b", "c"), named=True)


def test_people_with_a_column_twice() -> None:
    with pytest.raises(ColumnError, match="got 'a' several times"):
        people_matrix(pd.DataFrame([[1, 2, 3]], columns=["a", "a", "b"]), ("a", "b"), named=True)


@pytest.mark.parametrize("width", [1, 3])
def test_people_of_the_wrong_width(width: int) -> None:
    with pytest.raises(ColumnError, match=rf"Expected people with 2 columns .* got {width}"):
        people_matrix(np.ones((4, width)), ("a", "b"), named=False)


def test_people_as_text() -> None:
    with pytest.raises(ColumnError, match="in column 'a'"):
        people_matrix(pd.DataFrame({"a": ["old"], "b": [1]}), ("a", "b"), named=True)


def test_small_helpers() -> None:
    assert default_columns(3) == ("x0", "x1", "x2")
    assert is_frame(pd.DataFrame())
    assert is_frame(OwnFrame())
    assert not is_frame(pd.Series([1]))
    assert not is_frame([[1]])
    assert not is_frame(pd.MultiIndex.from_tuples([(1, 2)]))
