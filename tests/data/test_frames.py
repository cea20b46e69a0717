"""The user's own columns and schema space, to and fro."""

from __future__ import annotations

import numpy as np
import pandas as pd
import pytest

from rocerf.data.frames import Frames
from rocerf.data.schema import FeatureSchema
from rocerf.errors import ColumnError

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


def test_other_columns_are_refused() -> None:
    with pytest.raises(ColumnError, match="none named 'pay'"):
        Frames.of(SCHEMA, FRAME.drop(columns="pay"))
    with pytest.raises(ColumnError, match="Expected a DataFrame"):
        Frames.of(SCHEMA, FRAME).encode(FRAME.to_numpy())  # type: ignore[arg-type]
    twice = pd.concat([FRAME, FRAME[["pay"]]], axis=1)
    with pytest.raises(ColumnError, match="'pay' several times"):
        Frames.of(SCHEMA, FRAME).encode(twice)
