"""A schema knows what of it was guessed from rows; that, and no more, is guessed again from other rows."""

from __future__ import annotations

import json
from pathlib import Path

import numpy as np
import pandas as pd
import pytest

from rocerf.data.datasets import load_dataset
from rocerf.data.guess import guessed_again
from rocerf.data.raw_tables import load_raw
from rocerf.data.schema import Feature, FeatureSchema
from rocerf.errors import SchemaError


def rows() -> pd.DataFrame:
    """Five people; the last one is alone in every column."""
    return pd.DataFrame(
        {
            "age": [20, 30, 40, 50, 99],
            "income": [1.5, 2.5, 3.5, 4.5, 1234.5],
            "home": ["own", "rent", "own", "rent", "castle"],
            "size": pd.Categorical(["S", "L", "S", "L", "XXL"], categories=["S", "L", "XXL"], ordered=True),
            "member": [0, 1, 0, 1, 2],
            "visits": [1.0, 2.0, 3.0, 4.0, np.nan],
            "note": ["a", "b", "a", "b", None],
        }
    )


REST = rows().iloc[:4]


def same_guess(found: FeatureSchema, wanted: FeatureSchema) -> None:
    assert found == wanted
    assert found.guessed == wanted.guessed
    assert found.to_dict() == wanted.to_dict()


def test_a_guessed_schema_becomes_what_the_other_rows_alone_would_have_given() -> None:
    whole = rows().assign(visits=[1, 2, 3, 4, 5])
    rest = whole.iloc[:4].assign(size=whole["size"].iloc[:4].cat.remove_unused_categories())
    options = {"immutable": ["age"], "units": {"income": "EUR"}, "relations": ["income <= 40 * age"]}
    same_guess(
        guessed_again(FeatureSchema.from_frame(whole, **options), whole.iloc[:4]),
        FeatureSchema.from_frame(rest, **options),
    )


def test_whole_numbers_stay_whole_when_the_only_gap_goes() -> None:
    """pandas makes a column with a gap decimals, and it stays one; 1.98 visits are nobody's."""
    schema = FeatureSchema.from_frame(rows())
    assert str(schema["visits"].kind) == "integer"
    later = guessed_again(schema, REST)
    assert (str(later["visits"].kind), later["visits"].lower, later["visits"].upper) == ("integer", 1.0, 4.0)
    assert None not in later["note"].categories


@pytest.mark.parametrize("written", ["kept", "json", "yaml"])
def test_what_somebody_declared_stays(written: str, tmp_path: Path) -> None:
    schema = (
        FeatureSchema.from_frame(rows(), bounds={"age": (18.0, 99.0)})
        .edit("income", upper=2000.0)
        .edit("home", categories=["castle", "own", "rent"])
        .edit("member", kind="integer")
    )
    if written == "json":
        schema = FeatureSchema.from_dict(json.loads(json.dumps(schema.to_dict())))
    if written == "yaml":
        schema.to_yaml(tmp_path / "schema.yaml")
        schema = FeatureSchema.from_yaml(tmp_path / "schema.yaml")
    later = guessed_again(schema, REST)
    assert (later["age"].lower, later["age"].upper) == (18.0, 99.0)  # declared, though a guess would say 99 as well
    assert (later["income"].lower, later["income"].upper) == (1.5, 2000.0)  # one of them was guessed
    assert later["home"].categories == ("castle", "own", "rent")
    assert later["size"].categories == ("S", "L")
    assert (str(later["member"].kind), later["member"].upper) == ("integer", 1.0)
    assert guessed_again(later, REST) == later


def test_what_was_changed_by_hand_in_a_file_is_declared() -> None:
    text = FeatureSchema.from_frame(rows()).to_yaml()
    assert text.count("upper: 1240.0") == 2  # the feature's, and what was guessed
    edited = FeatureSchema.from_yaml(text.replace("upper: 1240.0", "upper: 5000.0", 1))
    later = guessed_again(edited, REST)
    assert later["income"].upper == 5000.0
    assert later["age"].upper == 50.0
    assert "1240" not in later.to_yaml()


def test_schemas_that_people_write_are_declared_through_and_through() -> None:
    written = FeatureSchema((Feature("age", "integer", lower=18, upper=99), Feature("income")))
    assert written.guessed is None
    assert "guessed" not in written.to_dict()
    assert guessed_again(written, REST[["age", "income"]]) is written


def test_categories_that_a_rule_names_stay() -> None:
    schema = FeatureSchema.from_frame(rows(), relations=["age >= 18 * `home=castle`"])
    schema = schema.edit("size", changes={"S": ["XXL"]}).edit("income", fixed_if="note == missing")
    later = guessed_again(schema, REST)
    assert later["home"].categories == ("castle", "own", "rent")
    assert later["size"].categories == ("S", "L", "XXL")
    assert None in later["note"].categories


def test_a_group_is_open_as_long_as_some_row_says_so() -> None:
    frame = pd.DataFrame({"red": [1, 0, 1, 0], "blue": [0, 1, 0, 0]})
    schema = FeatureSchema.from_frame(frame, groups={"colour": ["red", "blue"]})
    assert schema.open_groups == ("colour",)
    assert guessed_again(schema, frame.iloc[:3]).open_groups == ()
    assert guessed_again(schema, frame.iloc[1:]).open_groups == ("colour",)
    ruled = FeatureSchema(schema.features, (), {"colour": {"red": [None]}}, ("colour",), schema.guessed)
    assert guessed_again(ruled, frame.iloc[:3]).open_groups == ("colour",)
    declared = FeatureSchema(schema.features, open_groups=("colour",))
    assert guessed_again(declared, frame.iloc[:3]).open_groups == ("colour",)


def test_a_guessed_bound_gives_way_to_a_declared_one() -> None:
    schema = FeatureSchema.from_frame(rows()).edit("age", upper=25.0)
    later = guessed_again(schema, rows().iloc[2:4])
    assert (later["age"].lower, later["age"].upper) == (25.0, 25.0)


def test_quantiles_are_used_again_and_a_column_without_values_is_refused() -> None:
    frame = pd.DataFrame({"x": np.arange(101.0), "y": [np.nan] * 100 + [7.5]})
    schema = FeatureSchema.from_frame(frame[["x"]], quantiles=(0.1, 0.9))
    read = FeatureSchema.from_yaml(schema.to_yaml())
    half = frame.iloc[:51][["x"]]
    same_guess(guessed_again(read, half), FeatureSchema.from_frame(half, quantiles=(0.1, 0.9)))
    with pytest.raises(Exception, match="finite numbers in 'y'"):
        guessed_again(FeatureSchema.from_frame(frame), frame.iloc[:100])


@pytest.mark.parametrize("guess", [3, {"features": 3}, {"quantiles": [1]}, {"features": {"age": 3}}])
def test_a_record_of_guesses_that_is_none_is_refused(guess: object) -> None:
    document = {**FeatureSchema.free(["age"]).to_dict(), "guessed": guess}
    with pytest.raises(SchemaError, match="as to_dict or to_yaml writes it"):
        FeatureSchema.from_dict(document)


def test_bounds_of_the_data_sets_are_their_rows() -> None:
    data = load_dataset("german")
    frame = data.train.frame()
    largest = frame["amount"].idxmax()
    left = guessed_again(data.schema, frame.drop(index=largest))
    assert left["amount"].upper == frame["amount"].drop(index=largest).max() < data.schema["amount"].upper
    raw = load_raw("german")
    left = guessed_again(raw.schema, raw.train.drop(index=raw.train["amount"].idxmax()))
    assert left["amount"].upper < raw.schema["amount"].upper
    assert left["purpose"].categories == raw.schema["purpose"].categories  # declared
