"""German credit and Adult as their owners would have them: words for categories, numbers in their units, a schema."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from rocerf.data.feature import Direction, Feature, Kind
from rocerf.data.schema import FeatureSchema
from rocerf.data.tables import split_rows
from rocerf.errors import OptionError

if TYPE_CHECKING:
    import pandas as pd

#: Levels of schooling in ascending order; education-num counts them from 1.
_SCHOOLING = (
    "Preschool",
    "1st-4th",
    "5th-6th",
    "7th-8th",
    "9th",
    "10th",
    "11th",
    "12th",
    "HS-grad",
    "Some-college",
    "Assoc-voc",
    "Assoc-acdm",
    "Bachelors",
    "Masters",
    "Prof-school",
    "Doctorate",
)

#: Who one is, what has been, and what nobody is advised to do.
_ADULT_FIXED = ("age", "fnlwgt", "marital-status", "relationship", "race", "sex", "native-country")
_ADULT_NUMBERS = ("age", "fnlwgt", "education-num", "capital-gain", "capital-loss", "hours-per-week")
_ADULT_UNITS = {"age": "years", "capital-gain": "USD", "capital-loss": "USD", "hours-per-week": "hours per week"}


@dataclass(frozen=True, eq=False)
class RawDataset:
    """Training and test rows as DataFrames in the owners' own columns, their labels (1 favourable), and a schema."""

    name: str
    train: pd.DataFrame
    y_train: NDArray[np.int64]
    test: pd.DataFrame
    y_test: NDArray[np.int64]
    schema: FeatureSchema


def load_raw(name: str) -> RawDataset:
    """German credit with its 20 attributes, or Adult with its 14, split as in :func:`rocerf.load_dataset`.

    The schemas hold fixed who a person is (age, sex, race, nationality, family) and what has been.

    >>> data = load_raw("german")
    >>> data.train.shape, data.schema["housing"].categories
    ((800, 20), ('for free', 'rented', 'owned'))
    """
    if name == "german":
        from rocerf.data.german import LABEL, raw_schema, raw_table

        return _split(name, raw_table(), LABEL, raw_schema)
    if name == "adult":
        from rocerf.data import adult

        table = adult.raw_table()
        numbers = {column: table[column].astype(np.int64) for column in _ADULT_NUMBERS}
        # adult.test writes a full stop behind the label.
        label = table[adult.LABEL].str.startswith(">50K").astype(np.int64)
        return _split(name, table.assign(**numbers, **{adult.LABEL: label}), adult.LABEL, _adult_schema)
    raise OptionError(f"Expected german or adult, got {name!r}; COMPAS has no categories (see load_dataset).")


def _split(name: str, table: pd.DataFrame, label: str, schema_of: Any) -> RawDataset:
    train, test = (table.loc[rows] for rows in split_rows(name))
    X = train.drop(columns=label)
    return RawDataset(name, X, train[label].to_numpy(), test.drop(columns=label), test[label].to_numpy(), schema_of(X))


def _adult_schema(train: pd.DataFrame) -> FeatureSchema:
    """Schooling only rises, its two columns together; occupation, employer and hours may change."""
    schema = FeatureSchema.from_frame(train, immutable=_ADULT_FIXED, units=_ADULT_UNITS)
    found = schema["education"].categories
    features = [
        Feature(
            "education",
            Kind.CATEGORICAL,
            categories=tuple(level for level in _SCHOOLING if level in found),
            direction=Direction.INCREASE,
        )
        if feature.name == "education"
        else feature
        for feature in schema
    ]
    levels = " + ".join(f"{place} * `education={level}`" for place, level in enumerate(_SCHOOLING, 1) if level in found)
    return replace(schema, features=tuple(features)).relate(f"`education-num` == {levels}")
