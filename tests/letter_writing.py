"""What the tests of letters share: people to write to, and letters read back as a person or a program reads them."""

from __future__ import annotations

import json
import re
from typing import Any

import numpy as np
import pandas as pd
from numpy.typing import NDArray
from sklearn.compose import make_column_transformer
from sklearn.impute import SimpleImputer
from sklearn.linear_model import LogisticRegression
from sklearn.pipeline import Pipeline, make_pipeline
from sklearn.preprocessing import OneHotEncoder, StandardScaler

import rocerf
from rocerf import FeatureSchema, Letter
from rocerf.words import Language

Array = NDArray[np.float64]

SECRET = "TRAINROW"
YES, NO = "granted", "refused"


def raw_table(n: int, seed: int = 0) -> tuple[pd.DataFrame, NDArray[Any]]:
    """Applicants with numbers, a category, a yes/no question and missing values, telltale ids, and decisions."""
    rng = np.random.default_rng(seed)
    table = pd.DataFrame(
        {
            "income": rng.lognormal(10.3, 0.4, n),
            "debt": rng.lognormal(8.3, 0.7, n),
            "kids": rng.integers(0, 4, n),
            "home": rng.choice(["rent", "own", "with <parents>"], n),
            "phone": rng.integers(0, 2, n),
            "age": rng.integers(20, 70, n),
        },
        index=[f"{SECRET}-{i:04d}" for i in range(n)],
    )
    score = table["income"] / 2e4 - table["debt"] / 4e3 + (table["home"] == "own") + rng.normal(0, 0.7, n)
    table.loc[rng.random(n) < 0.05, "debt"] = np.nan
    return table, np.where(score.fillna(0.0) > 0.6, YES, NO)


def raw_schema(table: pd.DataFrame) -> FeatureSchema:
    return FeatureSchema.from_frame(
        table,
        immutable=["age"],
        bounds={"income": (5_000, 90_000), "debt": (0, 50_000)},
        units={"income": "EUR", "debt": "EUR", "kids": "children", "age": "years"},
        labels={"income": "yearly income", "home": "housing", "phone": "telephone"},
    )


def raw_pipeline(table: pd.DataFrame, decided: NDArray[Any]) -> Pipeline:
    numbers = make_pipeline(SimpleImputer(), StandardScaler())
    encode = make_column_transformer(
        (numbers, ["income", "debt", "kids", "age"]), (OneHotEncoder(), ["home"]), remainder="passthrough"
    )
    return make_pipeline(encode, LogisticRegression(max_iter=5000)).fit(table, decided)


def raw_model(n: int = 250, seed: int = 0) -> tuple[Any, pd.DataFrame]:
    """A model of a pipeline, and other applicants in their own columns."""
    table, decided = raw_table(n + 60, seed)
    train, people = table[:n], table[n:].set_axis([f"person-{i}" for i in range(60)])
    pipeline = raw_pipeline(train, decided[:n])
    return rocerf.from_pipeline(pipeline, train, decided[:n], schema=raw_schema(train), favourable=YES), people


def as_read_by_programs(letter: Letter) -> list[dict[str, Any]]:
    """For each option of the JSON the new value of each feature."""
    document = json.loads(letter.to_json())
    return [{change["feature"]: change["to"] for change in option["changes"]} for option in document["options"]]


def as_read_by_people(letter: Letter, schema: FeatureSchema) -> list[dict[str, Any]]:
    """The same out of the plain text, by the labels and words that stand there."""
    say = letter.say
    if not letter.options:
        assert say("changes_title") not in letter.to_text()
        return []
    text = letter.to_text().split(f"\n{say('changes_title')}\n")[1].split(f"\n{say('held_title')}\n")[0]
    heading = re.escape(say("option", number=0)).replace("0", r"\d+")
    parts = re.split(f"^{heading}$", text, flags=re.MULTILINE)[1:] if len(letter.options) > 1 else [text]
    written = f"^  (\\S.*)\n    {say('now')}: .*\n    {say('change_to')}: +(.*)$"
    found = []
    for part in parts:
        option = {}
        for label, to in re.findall(written, part, flags=re.MULTILINE):
            attribute = next(a for a in schema.attributes if a.label == label)
            option[attribute.name] = _value(schema, attribute, to, letter.language)
        found.append(option)
    return found


def _value(schema: FeatureSchema, attribute: Any, text: str, language: Language) -> Any:
    if attribute.categories is not None:
        return attribute.categories[attribute.words.index(text)]
    feature = schema.column_features[attribute.places[0]]
    if feature.kind == "binary":
        return {language.say("letters.yes"): 1, language.say("letters.no"): 0}[text]
    number = language.parsed(text.removesuffix(f" {feature.unit}"))
    return int(number) if feature.kind == "integer" else number


def put_into(schema: FeatureSchema, x0: Array, option: dict[str, Any]) -> Array:
    """The person's point (d,) with the values of an option in their places."""
    x = x0.copy()
    for name, value in option.items():
        attribute = next(a for a in schema.attributes if a.name == name)
        if attribute.categories is None:
            x[attribute.places[0]] = value
        else:
            x[list(attribute.places)] = [category == value for category in attribute.categories]
    return x
