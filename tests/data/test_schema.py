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
    assert [f.kind for f in schema] == [Kind.INTEGER, Kind.CONTINUOUS, Kind.BINARY]
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
    edited = schema.edit("a", upper=1, label="words", kind="binary", group="g")
    assert schema == FeatureSchema.free(["a", "b"])
    assert (edited["a"].lower, edited["a"].display, edited["a"].kind) == (0.0, "words", Kind.BINARY)
    assert edited["b"] == schema["b"]


def test_json_both_ways() -> None:
    schema = FeatureSchema.from_frame(FRAME, immutable=["age"]).edit("income", upper=np.inf, unit="EUR", label="pay")
    schema = schema.edit("owner", group="housing")
    text = json.dumps(schema.to_dict(), allow_nan=False)
    assert FeatureSchema.from_dict(json.loads(text)) == schema
    assert FeatureSchema.from_dict({"format": "rocerf-schema/1", "features": [{"name": "a"}]}).names == ("a",)


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
        ({"kind": "ordinal"}, "kind of 'a' to be one of continuous, integer, binary, categorical, got 'ordinal'"),
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
        ([{"name": "a", "colour": 2}], "got 'colour' for 'a'"),
        ([{"name": "a", "weight": 0}], "a weight above 0"),
        ([{"name": "a", "kind": "text"}], "kind of 'a'"),
        ([{"name": "a", "direction": "sideways"}], "direction of 'a'"),
        ([{"name": "a", "lower": "x"}], "lower bound of 'a'"),
        ([{"name": "a"}, {"name": "a"}], "'a' twice"),
    ],
)
def test_json_that_is_no_schema(rows: list[dict[str, Any]], message: str) -> None:
    with pytest.raises(SchemaError, match=message):
        FeatureSchema.from_dict({"format": "rocerf-schema/1", "features": rows})


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
        (FRAME.assign(age=["x", "y", "z"]), {"integer": ["age"]}, SchemaError, "categories for categorical features"),
        (FRAME.assign(age=[1.0, np.inf, 2.0]), {}, DataError, "finite numbers in 'age'"),
        (FRAME, {"quantiles": (0.9, 0.1)}, SchemaError, r"two shares such as \(0.01, 0.99\)"),
        (pd.DataFrame({"name": [f"person {i}" for i in range(101)]}), {}, SchemaError, "at most 100 different texts"),
        (FRAME.iloc[:0], {}, DataError, "at least one row"),
        (pd.DataFrame([[1, 2]], columns=["a", "a"]), {}, SchemaError, "got 'a' twice"),
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


# --- categories, steps, conditions, relations -----------------------------------------------------

RAW = pd.DataFrame(
    {
        "age": [30, 61, 40, 25],
        "pay": [1000.0, 2000.0, 1500.0, 900.0],
        "home": pd.Categorical(["rent", "own", "own", "free"], categories=["free", "rent", "own"]),
        "job": ["a", None, "b", "a"],
        "married": [True, False, True, False],
    }
)


def encoded(schema: FeatureSchema, **values: Any) -> np.ndarray:
    """A point of schema space by feature."""
    point = [
        float(values[f.name] == category) if f.categories else float(values[f.name])
        for f in schema
        for category in f.categories or (None,)
    ]
    return np.array([point])


def test_columns_of_schema_space_and_attributes() -> None:
    schema = FeatureSchema.from_frame(RAW)
    homes = ("home=free", "home=rent", "home=own")
    assert schema.columns == ("age", "pay", *homes, "job=a", "job=b", "job=missing", "married")
    assert [(a.name, a.places) for a in schema.attributes] == [
        ("age", (0,)),
        ("pay", (1,)),
        ("home", (2, 3, 4)),
        ("job", (5, 6, 7)),
        ("married", (8,)),
    ]
    assert schema["home"].categories == ("free", "rent", "own")  # the order of the pandas category
    assert schema["job"].categories == ("a", "b", None)


def test_a_group_of_columns_is_one_attribute_named_by_its_labels() -> None:
    frame = pd.DataFrame({"h_1": [1, 0], "h_2": [0, 1], "x": [1.5, 2.5], "o_1": [1, 0]})
    schema = FeatureSchema.from_frame(frame, groups={"h": ["h_1", "h_2"], "o": ["o_1"]})
    schema = schema.edit("h_1", label="home: rented").edit("h_2", label="home: owned")
    home, x, other = schema.attributes
    assert (home.label, home.words, home.complete) == ("home", ("rented", "owned"), True)
    assert (x.categories, other.label, other.complete) == (None, "o", False)  # a row has none of o's
    assert schema.open_groups == ("o",)
    assert schema.problems(np.array([[1.0, 1.0, 0.0, 0.0], [0.0, 1.0, 0.0, 0.0], [0.0, 0.5, 0.0, 0.0]])) == [
        "'home' is no one of its categories or not 0 or 1",
        "",
        "'home' is no one of its categories or not 0 or 1",
    ]


def open_to(schema: FeatureSchema, name: str, **values: Any) -> list[Any]:
    """The categories a person may have afterwards."""
    X0 = encoded(schema, **values)
    _, upper = schema.box(X0)
    places = [place for place, f in enumerate(schema.column_features) if f.name == name]
    return [c for c, place in zip(schema[name].categories, places, strict=True) if upper[0, place] >= 1]


ME = {"age": 40, "pay": 1000, "home": "rent", "job": "a", "married": 0}


def test_ordered_categories_follow_their_direction() -> None:
    schema = FeatureSchema.from_frame(RAW)
    assert open_to(schema, "home", **ME) == ["free", "rent", "own"]
    assert open_to(schema.edit("home", direction="increase"), "home", **ME) == ["rent", "own"]
    assert open_to(schema.edit("home", direction="decrease"), "home", **ME) == ["free", "rent"]


def test_nobody_is_sent_to_a_missing_value_and_changes_are_listed() -> None:
    schema = FeatureSchema.from_frame(RAW)
    assert open_to(schema, "job", **ME) == ["a", "b"]
    assert open_to(schema, "job", **(ME | {"job": None})) == ["a", "b", None]
    listed = schema.edit("home", changes={"rent": ["own"], "own": []})
    assert open_to(listed, "home", **ME) == ["rent", "own"]
    assert open_to(listed, "home", **(ME | {"home": "own"})) == ["own"]
    assert open_to(listed, "home", **(ME | {"home": "free"})) == ["free", "rent", "own"]


@pytest.mark.parametrize(
    ("condition", "held"),
    [("age >= 40", True), ("age < 40", False), ("home == rent", True), ("home != rent", False), ("job = 'b'", False)],
)
def test_conditions_hold_features(condition: str, held: bool) -> None:
    schema = FeatureSchema.from_frame(RAW).edit("pay", fixed_if=condition, lower=0, upper=9000)
    lower, upper = schema.box(encoded(schema, **ME))
    assert bool(lower[0, 1] == upper[0, 1] == 1000.0) is held


def test_group_changes_close_columns() -> None:
    frame = pd.DataFrame({"h_1": [1, 0, 0], "h_2": [0, 1, 0], "h_3": [0, 0, 1]})
    plain = FeatureSchema.from_frame(frame, groups={"h": ["h_1", "h_2", "h_3"]})
    schema = FeatureSchema(plain.features, group_changes={"h": {"h_1": ("h_3",)}})
    _, upper = schema.box(np.eye(3))
    assert upper.tolist() == [[1.0, 0.0, 1.0], [1.0, 1.0, 1.0], [1.0, 1.0, 1.0]]
    assert FeatureSchema.from_dict(json.loads(json.dumps(schema.to_dict()))) == schema


def test_steps_count_from_own_values_and_whole_numbers_from_zero() -> None:
    schema = FeatureSchema.from_frame(RAW).edit("pay", step=50)
    sizes, own = schema.steps
    assert dict(zip(schema.columns, sizes.tolist(), strict=True))["pay"] == 50.0
    assert own.tolist() == [name == "pay" for name in schema.columns]
    assert sizes[0] == 1.0


def test_yaml_both_ways_and_by_hand(tmp_path: Any) -> None:
    schema = FeatureSchema.from_frame(RAW, immutable=["age"], labels={"pay": "wage"}, relations=["pay <= 100 * age"])
    schema = schema.edit("home", changes={"rent": ["own"]}, fixed_if="age >= 60").edit("pay", step=25, weight=2.0)
    text = schema.to_yaml(tmp_path / "schema.yaml")
    assert FeatureSchema.from_yaml(tmp_path / "schema.yaml") == FeatureSchema.from_yaml(text) == schema
    by_hand = text.replace("weight: 2.0", "weight: 3")
    assert FeatureSchema.from_yaml(by_hand)["pay"].weight == 3.0
    for bad in ("features: [}", "- 1\n- 2\n", "format: rocerf-schema/1\nfeatures: 3\n"):
        with pytest.raises(RocerfError, match="Expected a schema"):
            FeatureSchema.from_yaml(bad + "\n")
    with pytest.raises(RocerfError, match="Expected a schema in YAML"):
        FeatureSchema.from_yaml(tmp_path / "gone.yaml")


def test_the_printed_table_has_a_line_for_each_feature() -> None:
    schema = FeatureSchema.from_frame(RAW, immutable=["age"]).relate("pay <= 100 * age").edit("pay", unit="EUR", step=5)
    lines = str(schema).splitlines()
    assert len(lines) == 1 + 5 + 1
    assert lines[1].split() == ["age", "integer", "25", "to", "61", "fixed"]
    assert "steps of 5" in lines[2]
    assert "free, rent, own" in lines[3]
    assert lines[-1] == "relation: pay <= 100 * age"


@pytest.mark.parametrize(
    ("change", "message"),
    [
        (lambda s: s.edit("home", categories=["a", "a"]), "each category of 'home' once"),
        (lambda s: s.edit("home", kind="integer"), "categories for categorical features"),
        (lambda s: s.edit("home", lower=0), "no bounds for the categorical"),
        (lambda s: s.edit("home", changes={"rent": ["castle"]}), "got 'castle'"),
        (lambda s: s.edit("home", changes=["rent"]), "as a mapping"),
        (lambda s: s.edit("pay", changes={1: [2]}), "changes only for categorical"),
        (lambda s: s.edit("pay", group="g"), "a group only for binary"),
        (lambda s: s.edit("pay", step=0), "a step above 0"),
        (lambda s: s.edit("age", step=0.5), "a whole step"),
        (lambda s: s.edit("married", step=1), "a step above 0"),
        (lambda s: s.edit("pay", fixed_if="age"), "a condition such as"),
        (lambda s: s.edit("pay", fixed_if="height > 3"), "in the condition 'height > 3'"),
        (lambda s: s.relate("height <= 3"), "got 'height'"),
        (lambda s: s.relate("pay * age <= 3"), "products of columns"),
        (lambda s: s.relate("pay"), "a relation such as"),
        (lambda s: s.relate("pay <= pay"), "names none that matters"),
        (lambda s: FeatureSchema(s.features, open_groups=("g",)), "names of one-hot groups"),
    ],
)
def test_rules_that_cannot_be(change: Any, message: str) -> None:
    with pytest.raises(SchemaError, match=message):
        change(FeatureSchema.from_frame(RAW))


def test_validation_against_rows() -> None:
    schema = FeatureSchema.from_frame(RAW)
    assert schema.validate(RAW) == ()
    tight = schema.edit("pay", upper=1500).relate("pay <= 35 * age")
    assert tight.validate(RAW) == (
        "1 of 4 rows are outside the bounds of 'pay'",
        "2 of 4 rows break the relation pay <= 35 * age",
    )
    with pytest.raises(SchemaError, match=r"the first is row 0: 'home' is 'castle'"):
        schema.validate(RAW.assign(home="castle"))
    with pytest.raises(ColumnError, match="none named 'pay'"):
        schema.validate(RAW.drop(columns="pay"))
