"""German credit and Adult as their owners would have them: words for categories, numbers in their units, a schema."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np
from numpy.typing import NDArray

from rocerf.data import adult, german
from rocerf.data.schema import FeatureSchema
from rocerf.data.tables import split_rows
from rocerf.errors import OptionError

if TYPE_CHECKING:
    import pandas as pd


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
    if name not in ("german", "adult"):
        raise OptionError(f"Expected german or adult, got {name!r}; COMPAS has no categories (see load_dataset).")
    kept = german if name == "german" else adult
    table = kept.raw_table()
    train, test = (table.loc[rows] for rows in split_rows(name))
    y_train, y_test = (part.pop(kept.LABEL).to_numpy() for part in (train, test))
    return RawDataset(name, train, y_train, test, y_test, kept.raw_schema(train))
