"""The user's own columns and schema space, to and fro."""

from __future__ import annotations

import json
from decimal import Decimal
from typing import Any

import numpy as np
import pandas as pd
import pytest
from hypothesis import HealthCheck, given, settings

from rocerf.data.frames import Frames, people_in_schema_space
from rocerf.data.schema import Feature, FeatureSchema
from rocerf.errors import ColumnError
from schema_problems import Problem, problems

FRAME = pd.DataFrame(
    {
        "age": np.array([30, 61, 40], dtype=np.int32),
        "pay": [1000.5, 2000.0, 1500.0],
        "home": pd.Categorical(["rent", "own", "own"], categories=["free", "rent", "own"]),
        "job": ["a", "c", "b"],
        "married": [True, False, True],
        "rooms": pd.array([1, 2, 3], dtype="Int64"),
    },
    index=["x", "y", "z"],
)
SCHEMA = FeatureSchema.from_frame(FRAME)


def test_rows_come_back_as_they_were() -> None:
    frames = Frames.of(SCHEMA, FRAME)
    matrix, index, problems = frames.encode(FRAME)
    assert matrix.shape == (3, len(SCHEMA.columns))
    assert problems == ["", "", ""]
    back = frames.decode(matrix, index=index)
    pd.testing.assert_frame_equal(back, FRAME)
    again = Frames.from_dict(frames.to_dict())
    pd.testing.assert_frame_equal(again.decode(matrix, index=index), FRAME)


def test_columns_are_found_by_name() -> None:
    frames = Frames.of(SCHEMA, FRAME)
    mixed = FRAME[list(reversed(FRAME.columns))].assign(more=1)
    np.testing.assert_array_equal(frames.encode(mixed)[0], frames.encode(FRAME)[0])


def test_unanswered_rows_are_missing_in_types_that_can_say_so() -> None:
    frames = Frames.of(SCHEMA, FRAME)
    matrix, index, _ = frames.encode(FRAME)
    matrix[1] = np.nan
    back = frames.decode(matrix, index=index)
    assert back.loc["y"].isna().all()
    assert back.loc["x", "age"] == 30
    assert str(back["age"].dtype) == "Int32"
    assert str(back["married"].dtype) == "boolean"
    assert bool(back.loc["z", "married"]) is True


def test_a_row_that_is_no_value_of_the_schema_says_why() -> None:
    frames = Frames.of(SCHEMA, FRAME)
    strange = FRAME.astype({"home": object, "age": object})
    strange.loc["x", "home"] = "castle"
    strange.loc["y", "age"] = "old"
    strange.loc["z", "pay"] = np.nan
    matrix, _, problems = frames.encode(strange)
    assert "'home' is 'castle', expected one of free, rent, own" in problems[0]
    assert "'age' is 'old', expected a number" in problems[1]
    assert "'pay' is" in problems[2]
    assert np.isnan(matrix).any(axis=1).all()


def test_what_was_missing_and_did_not_change_is_missing_again() -> None:
    frame = FRAME.assign(job=["a", None, "b"], pay=[1000.5, np.nan, 1500.0])
    schema = FeatureSchema.from_frame(frame)
    frames = Frames.of(schema, frame, fills={"pay": 1200.0})
    people, index, problems = frames.encode(frame)
    assert problems == ["", "", ""]
    assert people[1, 1] == 1200.0
    points = people.copy()
    points[:, 0] += 1
    back = frames.decode(points, index=index, people=people, missing=frames.missing(frame))
    assert np.isnan(back.loc["y", "pay"])
    assert back["job"].isna().tolist() == [False, True, False]
    assert back["age"].tolist() == [31, 62, 41]
    points[1, 1] = 1300.0
    back = frames.decode(points, index=index, people=people, missing=frames.missing(frame))
    assert back.loc["y", "pay"] == 1300.0


def test_types_that_pandas_does_not_make_from_their_names_give_way() -> None:
    arrow = pytest.importorskip("pyarrow")
    dtype = pd.ArrowDtype(arrow.decimal128(10, 2))
    frame = pd.DataFrame({"a": pd.Series([Decimal("1.25"), Decimal("2.50")], dtype=dtype)})
    frames = Frames.of(FeatureSchema.from_frame(frame), frame)
    assert frames.decode(frames.encode(frame)[0])["a"].tolist() == [1.25, 2.5]
    codes = Frames(FeatureSchema((Feature("a", "categorical", categories=(1, 2)),)), frames.dtypes)
    assert codes.decode(np.eye(2))["a"].tolist() == [1, 2]


def test_only_the_users_columns_that_are_absent_are_named() -> None:
    frames = Frames.of(SCHEMA, FRAME)
    for ask in (frames.are_of, lambda X: people_in_schema_space(X, frames), frames.encode):
        with pytest.raises(ColumnError, match=r"got none named 'pay', 'rooms'; add"):
            ask(FRAME.drop(columns=["pay", "rooms"]))
    points = pd.DataFrame(frames.encode(FRAME)[0], columns=list(frames.columns))
    assert not frames.are_of(points)
    np.testing.assert_array_equal(people_in_schema_space(points, frames), points)
    with pytest.raises(ColumnError, match=r"the model's .* columns, got none named 'home=own'; add"):
        people_in_schema_space(points.drop(columns="home=own"), frames)


@pytest.mark.parametrize(
    "one",
    [
        FRAME.iloc[0],
        FRAME["pay"],
        FRAME.iloc[0].to_dict(),
        [FRAME.iloc[0].to_dict()],
        FRAME.to_numpy(),
        [["a", "b"]],
        "people.csv",
    ],
    ids=["person", "column", "dict", "dicts", "cells", "texts", "path"],
)
def test_people_without_names_of_columns_are_asked_for_as_a_frame(one: Any) -> None:
    frames = Frames.of(SCHEMA, FRAME)
    for ask in (frames.are_of, lambda X: people_in_schema_space(X, frames)):
        with pytest.raises(ColumnError, match=r"got \w+; pass a DataFrame.*; one person as df\.iloc\[\[0\]\]"):
            ask(one)
    assert not frames.are_of(frames.encode(FRAME)[0])  # points are fine
    assert not frames.are_of([[1, 2], [3]])  # refused as a table of numbers


def test_other_columns_are_refused() -> None:
    with pytest.raises(ColumnError, match="none named 'pay'"):
        Frames.of(SCHEMA, FRAME.drop(columns="pay"))
    with pytest.raises(ColumnError, match="Expected a DataFrame"):
        Frames.of(SCHEMA, FRAME).encode(FRAME.to_numpy())
    twice = pd.concat([FRAME, FRAME[["pay"]]], axis=1)
    with pytest.raises(ColumnError, match="'pay' several times"):
        Frames.of(SCHEMA, FRAME).encode(twice)


@pytest.mark.parametrize(
    "column",
    [
        pd.Series([1, 2, 3], dtype="int8"),
        pd.Series([1, 2, 3], dtype="UInt16"),
        pd.Series([1.5, 2.5, 3.0]),
        pd.Series([1.5, 2.5, 3.0], dtype="Float64"),
        pd.Series([1.5, 2.1, 3.0], dtype="float32"),
        pd.Series([1.5, 2.1, 3.0], dtype="Float32"),
        pd.Series([1.5, 2.1, 3.0], dtype="double[pyarrow]"),
        pd.Series([4, 2, 3], dtype="int64[pyarrow]"),
        pd.Series(pd.arrays.SparseArray([1.5, np.nan, 3.0])),
        pd.Series([0, None, 1], dtype="Int64"),
        pd.Series([0.0, np.nan, 1.0]),
        pd.Series([True, False, True]),
        pd.Series([True, None, False], dtype="boolean"),
        pd.Series([0, 1, 1]),
        pd.Series(["x", "y", "x"]),
        pd.Series(["x", None, "x"], dtype=object),
        pd.Series(["x", np.nan, "x"], dtype=object),
        pd.Series(["x", None, "y"], dtype="string"),
        pd.Series([3, 1, 2], dtype=object),
        pd.Series(pd.Categorical(["lo", "hi", None], categories=["lo", "mid", "hi"])),
        pd.Series(pd.Categorical(["lo", "hi", "lo"], categories=["lo", "mid", "hi"], ordered=True)),
        pd.Series(pd.Categorical([3, 1, 2])),
    ],
    ids=lambda column: f"{column.dtype}-{column.iloc[1]}",
)
def test_every_type_of_column_comes_back_as_it_was(column: pd.Series) -> None:
    frame = pd.DataFrame({"a": column})
    frames = Frames.of(FeatureSchema.from_frame(frame), frame, fills={"a": 0.4})
    frames = Frames.from_dict(json.loads(json.dumps(frames.to_dict())))
    matrix, index, problems = frames.encode(frame)
    assert problems == ["", "", ""]
    came = {"people": matrix.copy(), "missing": frames.missing(frame)}
    pd.testing.assert_frame_equal(frames.decode(matrix, index=index, **came), frame)
    matrix[0] = np.nan  # nobody answered
    back = frames.decode(matrix, index=index, **came)
    assert back["a"].isna().tolist() == [True, *frame["a"].isna().tolist()[1:]]
    assert back["a"].dropna().tolist() == frame["a"].iloc[1:].dropna().tolist()


def test_whole_numbers_too_large_for_their_type_get_a_larger_one() -> None:
    frame = pd.DataFrame({"a": np.array([1, 100], dtype=np.int8), "b": pd.array([1, 2], dtype="UInt8")})
    schema = FeatureSchema.from_frame(frame, bounds={"a": (0, 1000), "b": (-5, 5)})
    back = Frames.of(schema, frame).decode(np.array([[300.0, -1.0], [1.0, 2.0]]))
    assert back["a"].tolist() == [300, 1]
    assert back["b"].tolist() == [-1, 2]
    assert (str(back["a"].dtype), str(back["b"].dtype)) == ("int64", "Int64")


def test_a_number_that_a_narrow_type_cannot_hold_is_not_rounded_to_it() -> None:
    """What is handed out is what was found to be accepted, to the last digit."""
    frame = pd.DataFrame({"a": np.array([1.5, 2.5], dtype=np.float32), "b": pd.array([1.5, 2.5], dtype="Float32")})
    back = Frames.of(FeatureSchema.from_frame(frame), frame).decode(np.array([[0.1, 0.1], [1.5, 2.5]]))
    assert [str(dtype) for dtype in back.dtypes] == ["float64", "Float64"]
    assert (back["a"].tolist(), back["b"].tolist()) == ([0.1, 1.5], [0.1, 2.5])


def test_categories_of_numbers_and_answers_come_back_in_their_types() -> None:
    frame = pd.DataFrame({"a": [3, 1], "b": [True, False]})
    features = (Feature("a", "categorical", categories=[1, 3]), Feature("b", "categorical", categories=[False, True]))
    frames = Frames.of(FeatureSchema(features), frame)
    matrix, index, _ = frames.encode(frame)
    pd.testing.assert_frame_equal(frames.decode(matrix, index=index), frame)
    matrix[0] = np.nan  # nobody answered
    back = frames.decode(matrix, index=index)
    assert [str(dtype) for dtype in back.dtypes] == ["Int64", "boolean"]
    assert back.iloc[1].tolist() == [1, False]
    names = Frames(FeatureSchema((Feature("b", "categorical", categories=["no", "yes"]),)), {"b": "bool"})
    assert names.decode(np.array([[1.0, 0.0]]))["b"].tolist() == ["no"]


NO_NUMBERS: tuple[Any, ...] = (
    [1, 2], {"a": 1}, {1}, np.array([1, 2]), (1, 2), "abc", "1_000", b"x", 1 + 2j, 10**400, 10**5000, float("inf"),
    pd.Timestamp("2020-01-01"), pd.Timedelta(days=1), Decimal("1e999"), object,
)  # fmt: skip


@pytest.mark.parametrize("cell", NO_NUMBERS, ids=lambda cell: type(cell).__name__)
@pytest.mark.parametrize("column", ["pay", "age", "married", "job", "home"])
def test_one_bad_cell_is_one_persons_problem(column: str, cell: Any) -> None:
    strange = FRAME.assign(**{column: FRAME[column].astype(object)})
    strange[column] = pd.Series([*strange[column][:1], cell, *strange[column][2:]], index=FRAME.index, dtype=object)
    matrix, _, problems = Frames.of(SCHEMA, FRAME).encode(strange)
    assert [bool(said) for said in problems] == [False, True, False]
    assert f"{column!r} is " in problems[1]
    assert len(problems[1]) < 200
    assert np.isnan(matrix[1]).any()
    np.testing.assert_array_equal(matrix[[0, 2]], Frames.of(SCHEMA, FRAME).encode(FRAME)[0][[0, 2]])


@pytest.mark.parametrize("cell", [1500, "1500", " 1500 ", np.float32(1500), Decimal(1500), np.int16(1500)])
def test_a_number_in_a_column_of_other_things_is_that_number(cell: Any) -> None:
    column = pd.Series([cell, "nonsense", 3.0], index=FRAME.index, dtype=object)
    matrix, _, problems = Frames.of(SCHEMA, FRAME).encode(FRAME.assign(pay=column))
    assert (matrix[0, 1], [bool(said) for said in problems]) == (1500.0, [False, True, False])


@pytest.mark.parametrize(
    "column",
    [
        pd.to_datetime(["2020-01-01"] * 3),
        pd.to_datetime(["2020-01-01"] * 3).tz_localize("UTC"),
        pd.to_timedelta([1, 2, 3], "D"),
        pd.period_range("2020", periods=3, freq="M"),
        pd.interval_range(0, 3),
        np.array([1j, 2j, 3j]),
        pd.array([0, 1, 2], dtype="timestamp[s][pyarrow]"),
    ],
    ids=lambda column: str(column.dtype),
)
def test_a_column_whose_type_is_no_number_is_refused(column: Any) -> None:
    """Dates were read as nanoseconds since 1970, complex numbers lost a part."""
    with pytest.raises(ColumnError, match="numbers or texts in 'pay', got "):
        Frames.of(SCHEMA, FRAME).encode(FRAME.assign(pay=column))


def test_columns_without_texts_as_names_are_found() -> None:
    frame = pd.DataFrame([[1, 2.5], [3, np.nan]], columns=[0, 1])
    frames = Frames.of(FeatureSchema.from_frame(frame), frame)
    matrix, _, problems = frames.encode(frame)
    assert matrix[:, 0].tolist() == [1.0, 3.0]
    assert problems == ["", "'1' is missing, expected a number"]
    assert frames.missing(frame) == ((), ("1",))


def test_a_recourse_between_whole_numbers_is_not_rounded_in_silence() -> None:
    """A number that the model fills in need not be whole; 2.5 must not come back as 2."""
    frame = pd.DataFrame({"a": [1, 2]})
    back = Frames.of(FeatureSchema.from_frame(frame), frame).decode(np.array([[2.5], [1.0]]))
    assert back["a"].tolist() == [2.5, 1.0]


def test_every_kind_of_missing_is_the_missing_category() -> None:
    schema = FeatureSchema((Feature("a", "categorical", categories=("x", None)),))
    frame = pd.DataFrame({"a": np.array(["x", None, np.nan, pd.NA, pd.NaT], dtype=object)})
    matrix, _, problems = Frames.of(schema, frame).encode(frame)
    assert matrix.tolist() == [[1.0, 0.0]] + [[0.0, 1.0]] * 4
    assert problems == [""] * 5
    without = FeatureSchema((Feature("a", "categorical", categories=("x", "y")),))
    assert [bool(said) for said in Frames.of(without, frame).encode(frame)[2]] == [False, True, True, True, True]


@pytest.mark.slow
@settings(derandomize=True, deadline=None, max_examples=30, suppress_health_check=list(HealthCheck))
@given(problems(people=3))
def test_random_people_come_back_as_they_were(problem: Problem) -> None:
    """Points of schema space, as a table in the user's own columns, and encoded again."""
    schema = problem.schema
    dtypes = {f.name: {"categorical": "object", "integer": "int64"}.get(f.kind, "float64") for f in schema}
    frames = Frames(schema, dtypes)
    table = frames.decode(problem.people)
    assert tuple(table.columns) == schema.names
    for feature in schema:
        if feature.categories:
            assert all(value in feature.categories or pd.isna(value) for value in table[feature.name])
    matrix, _, problems_ = frames.encode(table)
    assert problems_ == [""] * len(table)
    np.testing.assert_array_equal(matrix, problem.people)
