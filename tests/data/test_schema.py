"""The schema: rules, the box they leave, JSON both ways, and what is refused."""

from __future__ import annotations

import json
import sys
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pytest
from hypothesis import HealthCheck, given, settings

from rocerf.data.schema import Direction, Feature, FeatureSchema, Kind, Relation
from rocerf.errors import ColumnError, DataError, RocerfError, SchemaError
from schema_problems import Problem, problems

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


# --- what went wrong once: rules that were silently ignored, and errors that were not ours --------------


def grouped(**options: Any) -> FeatureSchema:
    """One-hot columns h_1, h_2 whose reference category may have been left out."""
    return FeatureSchema(tuple(Feature(f"h_{i}", "binary", group="h") for i in (1, 2)), **options)


@pytest.mark.parametrize(
    ("condition", "message"),
    [
        ("home == castle", r"a category of 'home' \(free, rent, own\) in the condition 'home == castle' of 'pay'"),
        ("home != castle", "got 'castle'"),
        ("home == 3", "got 3.0"),
        ("home >= own", "between numbers"),
        ("age == old", "between numbers in 'age == old'"),
        ("age >= old", "between numbers"),
        ("married == True", "got 'True'"),
        ("age >= nan", "got 'nan'"),
    ],
)
def test_a_condition_that_can_never_hold_is_refused(condition: str, message: str) -> None:
    """Such a feature would never be held, and nobody would notice."""
    with pytest.raises(SchemaError, match=message):
        FeatureSchema.from_frame(RAW).edit("pay", fixed_if=condition)


def test_a_condition_may_ask_for_a_missing_value() -> None:
    schema = FeatureSchema.from_frame(RAW).edit("pay", fixed_if="job == missing")
    for job, held in (("a", False), (None, True)):
        lower, upper = schema.box(encoded(schema, **(ME | {"job": job})))
        assert bool(lower[0, 1] == upper[0, 1]) is held


def test_a_condition_is_about_the_persons_own_values() -> None:
    schema = FeatureSchema.from_frame(RAW).edit("pay", fixed_if="pay <= 1000").edit("married", fixed_if="married == 1")
    lower, upper = schema.box(np.concatenate([encoded(schema, **(ME | {"pay": p, "married": 1})) for p in (900, 1100)]))
    assert (lower[:, 1] == upper[:, 1]).tolist() == [True, False]
    assert (lower[:, -1] == upper[:, -1]).tolist() == [True, True]


@pytest.mark.parametrize(
    ("make", "message"),
    [
        (lambda: Feature("a", "integer", lower=0.2, upper=0.8), "a whole number inside the bounds of 'a'"),
        (lambda: Feature("a", "binary", lower=0.2, upper=0.8), "a whole number inside the bounds of 'a'"),
        (lambda: Feature("a", step=np.inf), "a step above 0"),
        (lambda: Feature("a", step=np.nan), "a step above 0"),
        (lambda: Feature("a", step=True), "a step above 0"),
        (lambda: Feature("a", weight=np.inf), "a weight above 0"),
        (lambda: Feature("a", weight="2"), "a weight above 0"),  # type: ignore[arg-type]
        (lambda: Feature("a", "categorical", categories=[["x"]]), "categories of 'a' to be texts or numbers"),
        (lambda: Feature("a", "categorical", categories=["1", 1]), "each category of 'a' once"),
        (lambda: Feature("a", "categorical", categories=["missing", None]), "each category of 'a' once"),
        (lambda: Feature("a", "categorical", categories=["x", "y"], changes={"x": None}), "got None"),
        (lambda: FeatureSchema((Feature("h"), *grouped().features)), "groups and features with different names"),
        (lambda: FeatureSchema((Feature("a=x"), Feature("a", "categorical", categories=["x"]))), "'a=x' twice"),
        (lambda: grouped(group_changes={"h": {"h_1": ("h_3",)}}), "got 'h_3'"),
        (lambda: grouped(group_changes={"h": {"h_1": (None,)}}), "got None"),
        (lambda: grouped(group_changes={"h": {None: ("h_1",)}}, open_groups=("h",)), "from its reference category"),
        (lambda: grouped(group_changes={"o": {}}), r"names of one-hot groups \(h\), got 'o'"),
        (lambda: FeatureSchema.free(["a"]).relate(Relation({"a": np.nan}, 0.0)), "finite numbers in the relation"),
        (lambda: FeatureSchema.free(["a"]).relate("a <= 1e999"), "finite numbers in the relation"),
    ],
)
def test_more_rules_that_cannot_be(make: Any, message: str) -> None:
    with pytest.raises(SchemaError, match=message):
        make()


def test_categories_are_plain_values_and_missing_ones_none() -> None:
    """NumPy's values can be written to no file, and NaN is equal to nothing."""
    feature = Feature("a", "categorical", categories=(*np.array(["x", "y"]), np.float64("nan")))
    assert feature.categories == ("x", "y", None)
    assert [type(value) for value in feature.categories[:2]] == [str, str]
    schema = FeatureSchema((feature, Feature("b", "categorical", categories=tuple(np.arange(3)))))
    assert FeatureSchema.from_yaml(schema.to_yaml()) == schema
    assert Feature(3).columns == ("3",)  # type: ignore[arg-type]


def test_a_single_goal_of_a_change_needs_no_list() -> None:
    assert Feature("a", "categorical", categories=(1, 2, 3), changes={1: 2, 2: (1, 3)}).changes == {
        1: (2,),
        2: (1, 3),
    }


def test_who_may_go_to_the_reference_category_of_an_open_group() -> None:
    """It has no column; None among the changes stands for it, else the list forbids it."""
    assert [a.tied for a in grouped(open_groups=("h",)).attributes] == [()]
    listed = grouped(open_groups=("h",), group_changes={"h": {"h_1": (), "h_2": ("h_1", None)}})
    assert [(a.complete, a.tied) for a in listed.attributes] == [(False, (0,))]
    assert FeatureSchema.from_yaml(listed.to_yaml()) == listed
    assert FeatureSchema.from_dict(json.loads(json.dumps(listed.to_dict()))) == listed


EVERYTHING = FeatureSchema(
    (
        Feature("age", "integer", lower=18, upper=99, direction="increase", unit="years", label="your age"),
        Feature("pay", lower=0, step=12.5, weight=0.25, fixed_if="age >= 65"),
        Feature("home", "categorical", categories=("free", None, "own"), changes={None: ("own",), "own": ()}),
        Feature("rate", "categorical", categories=(1, 2.5, "yes"), direction="decrease"),
        Feature("ok", "binary", direction="fixed"),
        Feature("h_1", "binary", group="h"),
        Feature("h_2", "binary", group="h", lower=1),
    ),
    ("pay <= 100 * age", "`home=own` + ok <= 1", Relation({"age": 1.0, "pay": 0.5}, 1e6)),
    {"h": {"h_1": ("h_2",)}},
    ("h",),
)


def test_every_rule_survives_json_yaml_and_a_file(tmp_path: Any) -> None:
    assert FeatureSchema.from_dict(json.loads(json.dumps(EVERYTHING.to_dict(), allow_nan=False))) == EVERYTHING
    assert FeatureSchema.from_yaml(EVERYTHING.to_yaml(tmp_path / "s.yaml")) == EVERYTHING
    assert FeatureSchema.from_yaml(str(tmp_path / "s.yaml")) == EVERYTHING


@settings(derandomize=True, deadline=None, max_examples=40, suppress_health_check=list(HealthCheck))
@given(problems(people=1))
def test_random_schemas_survive_json_and_yaml(problem: Problem) -> None:
    schema = problem.schema
    assert FeatureSchema.from_dict(json.loads(json.dumps(schema.to_dict(), allow_nan=False))) == schema
    assert FeatureSchema.from_yaml(schema.to_yaml()) == schema
    begun = [line for line in str(schema).splitlines() if not line.startswith(" ")]  # long cells go on below
    assert len(begun) == 1 + len(schema) + len(schema.relations)


def test_words_may_be_written_into_a_yaml_file_by_hand() -> None:
    schema = FeatureSchema.from_yaml(
        "format: rocerf-schema/1\n"
        "features:\n"
        "- {name: age, kind: integer, lower: null}\n"
        "- {name: home, kind: categorical, categories: [rent, own], changes: {own: []}, fixed_if: age > 60}\n"
        "- {name: 7}\n"
        "relations: [age <= 90]\n"
    )
    assert (schema["age"].lower, schema["home"].changes, schema.names) == (-np.inf, {"own": ()}, ("age", "home", "7"))
    assert schema.relations[0].words == "age <= 90"


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("format: rocerf-schema/1\nfeatures: [3]\n", "a name for every feature"),
        ("format: rocerf-schema/1\nfeatures: []\nrules: []\n", "got \\['rules'\\]"),
        ("format: rocerf-schema/0\nfeatures: []\n", "got 'rocerf-schema/0'"),
        ("format: rocerf-schema/1\nfeatures: [{name: a}]\nrelations: [b <= 3]\n", "got 'b'"),
    ],
)
def test_yaml_that_is_no_schema(text: str, message: str) -> None:
    with pytest.raises(RocerfError, match=message):
        FeatureSchema.from_yaml(text)


@pytest.mark.parametrize(
    "broken",
    [
        pytest.param("relations: 3", id="relations that are no list"),
        pytest.param("relations: [{upper: 3}]", id="a relation without coefficients"),
        pytest.param("relations: [{coefficients: {a: x}, upper: 3}]", id="a coefficient that is no number"),
        pytest.param("group_changes: 3", id="changes that are no mapping"),
        pytest.param("open_groups: 3", id="groups that are no list"),
    ],
)
def test_parts_of_a_file_that_are_not_what_they_should_be(broken: str) -> None:
    with pytest.raises(RocerfError, match="Expected"):
        FeatureSchema.from_yaml(f"format: rocerf-schema/1\nfeatures: [{{name: a}}]\n{broken}\n")


def test_features_of_a_file_that_are_not_what_they_should_be() -> None:
    for row in (
        "{name: a, kind: categorical, categories: 3}",
        "{name: a, kind: categorical, categories: xyz}",
        "{name: a, kind: categorical, categories: [x], changes: 3}",
    ):
        with pytest.raises(RocerfError, match="Expected"):
            FeatureSchema.from_yaml(f"format: rocerf-schema/1\nfeatures: [{row}]\n")


# --- guesses ------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("column", "kind", "ends", "categories"),
    [
        ([1, 2, 9], "integer", (1, 9), ()),
        (np.array([3, 1], dtype=np.uint8), "integer", (1, 3), ()),
        ([1.0, 2.0, 9.0], "continuous", (1, 9), ()),
        ([0, 1, 1], "binary", (0, 1), ()),
        ([0.0, 1.0], "binary", (0, 1), ()),
        ([True, False], "binary", (0, 1), ()),
        ([0.0, 1.0, np.nan], "binary", (0, 1), ()),
        ([4.0, np.nan, 2.0], "integer", (2, 4), ()),  # pandas' form of counts with gaps
        ([4.5, np.nan, 2.0], "continuous", (2, 4.5), ()),
        ([1e17, np.nan, 3e17], "continuous", (1e17, 3e17), ()),
        (pd.array([4.0, None, 2.0], dtype="Float64"), "continuous", (2, 4), ()),
        ([-1e308, 0.5, 1e308], "continuous", (-1e308, 1e308), ()),
        ([0.5, 1.797e308], "continuous", (0, sys.float_info.max), ()),
        (pd.array([1, None, 0], dtype="Int64"), "binary", (0, 1), ()),
        (pd.array([4, None, 2], dtype="Int64"), "integer", (2, 4), ()),
        (pd.array([True, None], dtype="boolean"), "categorical", None, (True, None)),
        (["b", "a", "b"], "categorical", None, ("a", "b")),
        (["b", None], "categorical", None, ("b", None)),
        (pd.Categorical(["lo", "hi"], categories=["lo", "mid", "hi"]), "categorical", None, ("lo", "mid", "hi")),
        (pd.Categorical([2, 1, None]), "categorical", None, (1, 2, None)),
        (pd.array(["x", None], dtype="string"), "categorical", None, ("x", None)),
    ],
)
def test_what_is_guessed_of_a_column(column: Any, kind: str, ends: Any, categories: tuple[Any, ...]) -> None:
    (feature,) = FeatureSchema.from_frame(pd.DataFrame({"a": column}))
    assert (feature.kind, feature.categories) == (kind, categories)
    if ends is not None:
        assert (feature.lower, feature.upper) == ends


@pytest.mark.parametrize("scale", [1e-7, 0.01, 1.0, 13.0, 4321.0, 9e8])
def test_guessed_bounds_are_nobody_s_value_and_leave_nobody_out(scale: float) -> None:
    rng = np.random.default_rng(int(scale) + 1)
    for centre in (0.0, 5.0, -300.0):
        values = scale * (rng.normal(size=300) + centre)
        lower, upper = (
            getattr(FeatureSchema.from_frame(pd.DataFrame({"a": values}))["a"], side) for side in ("lower", "upper")
        )
        assert lower < values.min()
        assert upper > values.max()
        assert max(values.min() - lower, upper - values.max()) <= 0.1 * np.ptp(values)


def test_bounds_may_be_quantiles_and_those_of_whole_numbers_are_whole() -> None:
    frame = pd.DataFrame({"a": np.arange(101.0), "b": np.arange(101)})
    schema = FeatureSchema.from_frame(frame, quantiles=(0.105, 0.895), bounds={"a": (5, 50)})
    assert [(f.lower, f.upper) for f in schema] == [(5.0, 50.0), (10.0, 90.0)]


@pytest.mark.parametrize(
    ("frame", "options", "message"),
    [
        (FRAME, {"immutable": "age"}, r"a list for immutable, got the text 'age'; write \['age'\]"),
        (FRAME, {"integer": "age"}, "a list for integer"),
        *(
            (FRAME, {name: None}, f"a list for {name}, got None")
            for name in ("immutable", "increase_only", "relations")
        ),
        *((FRAME, {name: ["a"]}, f"{name} as a mapping by name") for name in ("bounds", "units", "labels", "groups")),
        (FRAME, {"units": {"age": None}}, "a text as unit of 'age', got None"),
        (FRAME, {"groups": {"h": "owner"}}, "a list for the columns of the group 'h'"),
        (FRAME.assign(age=[[1], [2], [3]]), {}, r"texts or numbers in 'age', got list \(\[1\]\)"),
        (FRAME.assign(age=["lo", "hi", "lo"]), {"increase_only": ["age"]}, "an order of the categories of 'age'"),
        (
            FRAME.assign(age=pd.Categorical(["lo", "hi", "lo"])),
            {"decrease_only": ["age"]},
            "an order of the categories",
        ),
        (FRAME.assign(age=pd.to_timedelta([1, 2, 3], "D")), {}, "numbers or texts in 'age', got timedelta64"),
        (FRAME, {"quantiles": 0.9}, "two shares"),
        (FRAME, {"steps": {"owner": 1}}, "a step above 0"),
        (FRAME, {"groups": {"h": ["age"]}}, "lower <= upper"),
        (FRAME, {"relations": ["age <= height"]}, "got 'height'"),
        (FRAME, {"bounds": {"owner": (0.2, 0.7)}}, "a whole number inside"),
        (FRAME.assign(age=[1j, 2j, 3j]), {}, "numbers or texts in 'age', got complex"),
        (FRAME.assign(age=pd.to_datetime(["2020-01-01"] * 3)), {}, "numbers or texts in 'age', got datetime64"),
        (FRAME.assign(age=np.nan), {}, "finite numbers in 'age', got none"),
        (FRAME.assign(age=None), {}, "in 'age'"),
    ],
)
def test_guesses_that_are_refused(frame: pd.DataFrame, options: dict[str, Any], message: str) -> None:
    with pytest.raises(RocerfError, match=message):
        FeatureSchema.from_frame(frame, **options)


def test_ordered_pandas_categories_may_rise_and_fall_along_their_order() -> None:
    size = pd.Categorical(["mid", "low", "high"], categories=["low", "mid", "high"], ordered=True)
    schema = FeatureSchema.from_frame(FRAME.assign(size=size), increase_only=["size"])
    assert (schema["size"].categories, schema["size"].direction) == (("low", "mid", "high"), Direction.INCREASE)


def test_numbers_that_become_categories_lose_what_only_numbers_have() -> None:
    """As the refusal of pipelines in which numbers are codes advises."""
    schema = FeatureSchema.from_frame(FRAME.assign(age=[1, 2, 3]), steps={"age": 1})
    codes = schema.edit("age", kind="categorical", categories=[1, 2, 3])["age"]
    assert (codes.lower, codes.upper, codes.step, codes.categories) == (-np.inf, np.inf, None, (1, 2, 3))
    with pytest.raises(SchemaError, match="no bounds for the categorical feature"):
        schema.edit("age", kind="categorical", categories=[1, 2, 3], lower=0)
    with pytest.raises(SchemaError, match="categories for categorical features and for no others"):
        FeatureSchema((codes,)).edit("age", kind="integer")


@pytest.mark.parametrize("features", ["abc", 3, None, ["a"], [("a", "integer")]])
def test_a_schema_of_something_else_than_features(features: Any) -> None:
    with pytest.raises(SchemaError, match=r"a list (for features|of Feature objects)"):
        FeatureSchema(features)


def test_a_schema_is_written_into_a_folder_that_is_made_for_it(tmp_path: Path) -> None:
    schema = FeatureSchema.from_frame(FRAME)
    schema.to_yaml(tmp_path / "new" / "schema.yaml")
    assert FeatureSchema.from_yaml(tmp_path / "new" / "schema.yaml") == schema


def test_relations_in_small_units_are_held_against_rows_in_those() -> None:
    frame = pd.DataFrame({"a": [1e-9, 3e-9], "b": [1.0, 2.0]})
    schema = FeatureSchema.from_frame(frame).relate("a <= 2e-9")
    assert schema.validate(frame) == ("1 of 2 rows break the relation a <= 2e-9",)


def test_what_is_filled_in_for_a_missing_answer_is_no_wrong_answer() -> None:
    schema = FeatureSchema((Feature("a", "binary"), *(Feature(f"h_{i}", "binary", group="h") for i in (1, 2))))
    X0 = np.array([[0.4, 1.0, 0.0], [0.4, 1.0, 0.0], [1.0, 0.4, 0.0]])
    assert [bool(said) for said in schema.problems(X0)] == [True, True, True]
    assert [bool(said) for said in schema.problems(X0, (("a",), (), ("h_1",)))] == [False, True, True]


def test_a_number_filled_in_from_outside_the_bounds_is_held() -> None:
    """-1 for "not given", say: nobody is sent inside for what they did not give."""
    schema = FeatureSchema((Feature("a", "integer", lower=0, upper=9, direction="increase"), Feature("b", lower=0)))
    X0 = np.array([[-1.0, -1.0], [-1.0, -1.0], [2.5, 1.0]])
    lower, upper = schema.box(X0, (("a",), (), ("a", "b")))
    assert (lower.tolist(), upper.tolist()) == (
        [[-1.0, 0.0], [0.0, 0.0], [2.5, 0.0]],
        [[-1.0, np.inf], [9.0, np.inf], [9.0, np.inf]],
    )


def test_arrays_have_made_up_names_and_groups_are_found_open_in_them() -> None:
    table = np.array([[1.0, 0.0, 7.5], [0.0, 1.0, 2.5], [0.0, 0.0, 3.0]])
    schema = FeatureSchema.from_frame(table, groups={"g": ["x0", "x1"]})
    assert (schema.names, schema.open_groups) == (("x0", "x1", "x2"), ("g",))
    numbered = pd.DataFrame(table, columns=[0, 1, 2])
    schema = FeatureSchema.from_frame(numbered, groups={"g": ["0", "1"]})
    assert (schema.names, schema.open_groups, schema.validate(numbered)) == (("0", "1", "2"), ("g",), ())


def test_validation_tells_of_numbers_that_are_not_whole_and_groups_that_are_none() -> None:
    frame = pd.DataFrame({"a": [1.0, 2.5], "h_1": [1, 0], "h_2": [0, 1]})
    schema = FeatureSchema.from_frame(frame, integer=["a"], groups={"h": ["h_1", "h_2"]})
    assert schema.validate(frame) == ("1 of 2 rows have no whole number in 'a'",)
    with pytest.raises(SchemaError, match=r"got 1 that are not; the first is row 1: 'h' is no one of its categories"):
        schema.validate(frame.assign(h_2=[0, 0]))
    with pytest.raises(SchemaError, match="the first is row 0: 'h' is no one of its categories or not 0 or 1"):
        schema.validate(frame.assign(h_2=[1, 2]))
    with pytest.raises(SchemaError, match="the first is row 1: "):
        schema.validate(frame.assign(a=[np.nan, 1.0], h_2=[0, 0]))
    assert schema.validate(frame.assign(a=[np.nan, 1.0])) == (
        "1 of 2 rows lack a number, and were not looked at further",
    )
