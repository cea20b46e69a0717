"""One-hot groups that are guessed: found where they are, and not where columns are merely alike."""

from __future__ import annotations

import numpy as np
import pandas as pd
import pytest

from rocerf import FeatureSchema
from rocerf.data.group_guess import guessed_groups
from rocerf.data.guess import guessed_again
from rocerf.errors import SchemaError

RNG = np.random.default_rng(0)


def texts(n: int) -> pd.DataFrame:
    return pd.DataFrame(
        {
            "age": RNG.integers(20, 60, n),
            "home": RNG.choice(["own", "rent", "free"], n),
            "purpose": RNG.choice(["car_new", "car_used", "tv"], n),
            "has_car": RNG.integers(0, 2, n),
            "has_dog": RNG.integers(0, 2, n),
        }
    )


@pytest.mark.parametrize("drop_first", [False, True])
@pytest.mark.parametrize("prefix_sep", ["_", "=", "__", ": "])
def test_what_get_dummies_makes_is_found(drop_first: bool, prefix_sep: str) -> None:
    dummies = pd.get_dummies(texts(200), drop_first=drop_first, prefix_sep=prefix_sep)
    schema = FeatureSchema.from_frame(dummies)
    groups: dict[str | None, list[str]] = {}
    for feature in schema:
        groups.setdefault(feature.group, []).append(feature.name)
    assert set(groups) == {None, "home", "purpose"}
    assert groups[None] == ["age", "has_car", "has_dog"]
    assert len(groups["purpose"]) == 3 - drop_first
    assert schema.open_groups == (("home", "purpose") if drop_first else ())
    assert FeatureSchema.from_yaml(schema.to_yaml()) == schema


def test_a_group_is_called_by_all_that_its_columns_have_in_common() -> None:
    kinds = np.eye(4)[np.arange(80) % 4]
    names = ["credit_history_none", "credit_history_late", "credit_history_late_twice", "credit_history_good"]
    columns = dict(zip(names, kinds.T, strict=True))
    assert guessed_groups(columns) == {"credit_history": names}
    assert list(guessed_groups(columns, ["credit_history"])) == ["credit_history (one of)"]
    purposes = ["purpose_car_new", "purpose_car_used", "purpose_tv", "purpose_other"]
    assert guessed_groups(dict(zip(purposes, kinds.T, strict=True))) == {"purpose": purposes}


def test_unrelated_columns_are_joined_in_few_tables_of_a_thousand() -> None:
    """The chance that is promised, with rare columns, which seldom meet."""
    joined = 0
    for _ in range(2000):
        n = int(RNG.integers(5, 80))
        columns = {f"has_{name}": (RNG.random(n) < RNG.uniform(0.02, 0.6)).astype(float) for name in "abc"}
        joined += bool(guessed_groups(columns))
    assert joined <= 20


def test_groups_that_are_given_are_the_only_ones() -> None:
    dummies = pd.get_dummies(texts(200), dtype=int)
    assert not any(feature.group for feature in FeatureSchema.from_frame(dummies, groups={}))
    given = FeatureSchema.from_frame(dummies, groups={"living": ["home_own", "home_rent", "home_free"]})
    assert {feature.group for feature in given} == {None, "living"}


def test_forgetting_guesses_groups_again_as_if_the_rows_had_never_been_there() -> None:
    dummies = pd.get_dummies(texts(200), dtype=int)
    odd = dummies.copy()
    odd.loc[0, ["home_own", "home_rent"]] = 1  # one row with two of them: no group
    schema = FeatureSchema.from_frame(odd)
    assert {feature.group for feature in schema} == {None, "purpose"}
    again = guessed_again(schema, odd.iloc[1:])
    assert again == FeatureSchema.from_frame(odd.iloc[1:])
    assert again.guessed == FeatureSchema.from_frame(odd.iloc[1:]).guessed
    assert {feature.group for feature in again} == {None, "home", "purpose"}


def test_forgetting_leaves_groups_as_somebody_wants_them() -> None:
    dummies = pd.get_dummies(texts(200), dtype=int)
    apart = FeatureSchema.from_frame(dummies)
    for name in ("home_free", "home_own", "home_rent"):
        apart = apart.edit(name, group=None)
    assert {f.group for f in guessed_again(apart, dummies.iloc[5:])} == {None, "purpose"}


def test_private_features_are_fixed_and_said_to_be_so() -> None:
    schema = FeatureSchema.from_frame(texts(30), private=["age"])
    assert schema["age"].private
    assert schema["age"].direction == "fixed"
    assert "fixed, not printed" in str(schema)
    assert FeatureSchema.from_yaml(schema.to_yaml())["age"].private
    with pytest.raises(SchemaError, match="to be fixed where it is private"):
        schema.edit("home", private=True)
    with pytest.raises(SchemaError, match="true or false"):
        schema.edit("age", private="yes")


def test_categories_that_a_list_leaves_free_are_named() -> None:
    schema = FeatureSchema.from_frame(texts(50))
    listed = str(schema.edit("home", changes={"rent": ["own"]}))
    assert "(from free, own: anywhere)" in " ".join(listed.split())
    closed = str(schema.edit("home", changes={"rent": ["own"], "own": [], "free": []}))
    assert "anywhere" not in closed
    assert all(len(line) <= 80 for line in listed.split("\n"))


@pytest.mark.parametrize(
    ("words", "said"),
    [
        ("age < 3", "got '<'; write <="),
        ("capital-gain <= 3", "backticks: `capital-gain`"),
        ("home == own", "`home=free`"),
        ("agee <= 3", "perhaps 'age' is meant"),
    ],
)
def test_relations_that_cannot_be_say_what_is_wrong(words: str, said: str) -> None:
    schema = FeatureSchema.from_frame(texts(30).assign(**{"capital-gain": np.arange(30.0)}))
    with pytest.raises(SchemaError, match=said):
        schema.relate(words)
