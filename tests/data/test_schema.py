"""The schema: rules, the box they leave, JSON both ways, and what is refused."""

from __future__ import annotations

import json
from typing import Any

import numpy as np
import pandas as pd
import pytest

from rocerf.data.schema import Direction, Feature, FeatureSchema, Kind
from rocerf.errors import ColumnError, DataError, RocerfError, SchemaError

FRAME = pd.DataFrame({"age": [30, 50, 40], "income": [1.5, 9.0, 4.0], "owner": [0, 1, 1]})


def test_free_schema_leaves_everything_open() -> None:
    schema = FeatureSchema.free(["a", "b"])
    lower, upper = schema.box(np.zeros((3, 2)))
    assert lower.shape == upper.shape == (3, 2)
    assert np.isneginf(lower).all()
    assert np.isposinf(upper).all()
    assert (schema.names, len(schema), [f.display for f in schema]) == (("a", "b"), 2, ["a", "b"])


def test_from_frame_guesses_kinds_and_bounds() -> None:
    schema = FeatureSchema.from_frame(FRAME, immutable=["age"], units={"income": "EUR"}, bounds={"income": (0, 20)})
    assert [f.kind for f in schema] == [Kind.CONTINUOUS, Kind.CONTINUOUS, Kind.BINARY]
    assert [(f.lower, f.upper) for f in schema] == [(30.0, 50.0), (0.0, 20.0), (0.0, 1.0)]
    assert (schema["age"].direction, schema["income"].unit) == (Direction.FIXED, "EUR")


def test_from_frame_takes_the_three_directions() -> None:
    schema = FeatureSchema.from_frame(FRAME, immutable=["age"], increase_only=["income"], decrease_only=["owner"])
    assert [f.direction for f in schema] == [Direction.FIXED, Direction.INCREASE, Direction.DECREASE]


@pytest.mark.parametrize(
    ("direction", "expected"),
    [("any", (0.0, 10.0)), ("fixed", (4.0, 4.0)), ("increase", (4.0, 10.0)), ("decrease", (0.0, 4.0))],
)
@pytest.mark.parametrize("how", ["edit", "text", "member"])
def test_box_of_each_direction(direction: str, expected: tuple[float, float], how: str) -> None:
    plain = Feature("a", lower=0, upper=10)
    if how == "edit":
        schema = FeatureSchema((plain,)).edit("a", direction=direction)
    else:
        given: Any = direction if how == "text" else Direction(direction)
        schema = FeatureSchema((Feature("a", lower=0, upper=10, direction=given),))
    lower, upper = schema.box(np.array([[4.0]]))
    assert (lower[0, 0], upper[0, 0]) == expected


def test_box_follows_each_person() -> None:
    schema = FeatureSchema((Feature("a", lower=0, upper=10, direction=Direction.INCREASE), Feature("b", upper=5)))
    lower, upper = schema.box(np.array([[4.0, 0.0], [-3.0, 9.0], [12.0, 0.0]]))
    assert lower.tolist() == [[4.0, -np.inf], [0.0, -np.inf], [12.0, -np.inf]]
    assert upper.tolist() == [[10.0, 5.0]] * 3
    # The third person stands above the bound and may only rise: an empty box, answered elsewhere.
    assert lower[2, 0] > upper[2, 0]


def test_box_can_be_written_to() -> None:
    lower, upper = FeatureSchema.free(["a"]).box(np.zeros((1, 1)))
    lower[0, 0] = upper[0, 0] = 1.0


def test_a_fixed_column_ignores_its_bounds() -> None:
    schema = FeatureSchema((Feature("a", lower=0, upper=1, direction=Direction.FIXED),))
    lower, upper = schema.box(np.array([[7.0]]))
    assert lower[0, 0] == upper[0, 0] == 7.0


def test_edit_leaves_the_original_alone() -> None:
    schema = FeatureSchema.free(["a", "b"])
    edited = schema.edit("a", lower=1, label="words", kind="indicator", group="g")
    assert schema == FeatureSchema.free(["a", "b"])
    assert (edited["a"].lower, edited["a"].display, edited["a"].kind) == (1.0, "words", Kind.BINARY)
    assert edited["b"] == schema["b"]


def test_json_both_ways() -> None:
    schema = FeatureSchema.from_frame(FRAME, immutable=["age"]).edit("income", upper=np.inf, unit="EUR", label="pay")
    schema = schema.edit("owner", group="housing")
    text = json.dumps(schema.to_dict(), allow_nan=False)
    assert FeatureSchema.from_dict(json.loads(text)) == schema
    assert FeatureSchema.from_dict([{"name": "a"}]) == FeatureSchema.free(["a"])


@pytest.mark.parametrize(
    ("fields", "message"),
    [
        ({"lower": 2, "upper": 1}, "lower <= upper for feature 'a', got 2.0 and 1.0"),
        ({"lower": np.nan}, "lower <= upper"),
        ({"upper": np.nan}, "lower <= upper"),
        ({"lower": np.inf}, "lower <= upper"),
        ({"upper": -np.inf}, "lower <= upper"),
        ({"lower": "low"}, "a number as lower bound of 'a', got 'low'"),
        ({"upper": None}, "a number as upper bound of 'a', got None"),
        ({"direction": "up"}, "direction of 'a' to be one of any, increase, decrease, fixed, got 'up'"),
        ({"kind": "ordinal"}, "kind of 'a' to be one of numeric, indicator, got 'ordinal'"),
    ],
)
def test_a_feature_that_contradicts_itself(fields: dict[str, Any], message: str) -> None:
    with pytest.raises(SchemaError, match=message):
        Feature("a", **fields)
    with pytest.raises(SchemaError, match=message):
        FeatureSchema.free(["a"]).edit("a", **fields)


def test_a_feature_twice() -> None:
    with pytest.raises(SchemaError, match="each feature once, got 'a' twice"):
        FeatureSchema.free(["a", "b", "a"])
    with pytest.raises(SchemaError, match="each feature once, got 'b' twice"):
        FeatureSchema.free(["a", "b"]).edit("a", name="b")


def test_unknown_features_and_fields() -> None:
    schema = FeatureSchema.free(["a", "b"])
    with pytest.raises(ColumnError, match="a feature of the schema, got 'c'; known: a, b"):
        schema["c"]
    with pytest.raises(ColumnError, match="got 'c'"):
        schema.edit("c", lower=0)
    with pytest.raises(SchemaError, match=r"fields of a feature .* got 'colour' for 'a'"):
        schema.edit("a", colour="red")


@pytest.mark.parametrize(
    ("rows", "message"),
    [
        ([{"unit": "DM"}], "a name for every feature"),
        ([{"name": "a", "weight": 2}], "got 'weight' for 'a'"),
        ([{"name": "a", "kind": "text"}], "kind of 'a'"),
        ([{"name": "a", "direction": "sideways"}], "direction of 'a'"),
        ([{"name": "a", "lower": "x"}], "lower bound of 'a'"),
        ([{"name": "a"}, {"name": "a"}], "'a' twice"),
    ],
)
def test_json_that_is_no_schema(rows: list[dict[str, Any]], message: str) -> None:
    with pytest.raises(SchemaError, match=message):
        FeatureSchema.from_dict(rows)


@pytest.mark.parametrize(
    ("frame", "options", "error", "message"),
    [
        (FRAME, {"immutable": ["height"]}, ColumnError, "got 'height'"),
        (FRAME, {"bounds": {"height": (0, 1)}}, ColumnError, "got 'height'"),
        (FRAME, {"units": {"height": "cm"}}, ColumnError, "got 'height'"),
        (FRAME, {"bounds": {"age": (5, 1)}}, SchemaError, "lower <= upper for feature 'age'"),
        (FRAME, {"bounds": {"age": 5}}, SchemaError, r"\(lower, upper\) as bounds of 'age', got 5"),
        (FRAME, {"bounds": {"age": (1, 2, 3)}}, SchemaError, "as bounds of 'age'"),
        (FRAME, {"immutable": ["age"], "increase_only": ["age"]}, SchemaError, "got 'age' listed twice"),
        (FRAME.assign(age=["x", "y", "z"]), {}, ColumnError, "in column 'age'"),
        (FRAME.assign(age=[1.0, np.nan, 2.0]), {}, DataError, "got nan in row 1, column age"),
        (FRAME.iloc[:0], {}, DataError, "at least one row"),
        (pd.DataFrame([[1, 2]], columns=["a", "a"]), {}, ColumnError, "got 'a' twice"),
    ],
)
def test_from_frame_refuses(
    frame: pd.DataFrame, options: dict[str, Any], error: type[RocerfError], message: str
) -> None:
    with pytest.raises(error, match=message):
        FeatureSchema.from_frame(frame, **options)


@pytest.mark.parametrize(
    ("columns", "message"),
    [
        (["a"], r"the model's 1 columns, got one for 2 \(missing \[\], not in the data \['b'\]\)"),
        (["a", "b", "c"], r"missing \['c'\]"),
        (["b", "a"], "the order differs"),
    ],
)
def test_a_schema_for_other_columns(columns: list[str], message: str) -> None:
    schema = FeatureSchema.free(["a", "b"])
    schema.check_columns(["a", "b"])
    with pytest.raises(SchemaError, match=message):
        schema.check_columns(columns)
