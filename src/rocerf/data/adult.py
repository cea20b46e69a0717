"""Adult: the 45,222 complete rows of the 1994 census extract in 13 columns.

Every categorical attribute is reduced to one yes/no question (``race_White``), so there are no
one-hot groups. Ids count UCI's rows: adult.data 0..32560, then adult.test from 32561 on.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING

import numpy as np

from rocerf.data.schema import Direction, Feature, FeatureSchema, Kind
from rocerf.data.tables import bounded_schema, embedded_bytes, labelled_rows, split_rows
from rocerf.data.training_set import TrainingSet

if TYPE_CHECKING:
    import pandas as pd

LABEL = "income"

_ATTRIBUTES = (
    "age",
    "workclass",
    "fnlwgt",
    "education",
    "education-num",
    "marital-status",
    "occupation",
    "relationship",
    "race",
    "sex",
    "capital-gain",
    "capital-loss",
    "hours-per-week",
    "native-country",
    "income",
)

_FEATURES = (
    Feature("age", Kind.INTEGER, label="age", unit="years", direction=Direction.FIXED),
    # How many people of the population the row stands for: the survey's number, not the person's.
    Feature("fnlwgt", Kind.INTEGER, label="survey weight", unit="people", direction=Direction.FIXED),
    # Schooling is added to, never undone.
    Feature("education-num", Kind.INTEGER, label="education", unit="level 1 to 16", direction=Direction.INCREASE),
    Feature("capital-gain", Kind.INTEGER, label="capital gain", unit="USD"),
    Feature("capital-loss", Kind.INTEGER, label="capital loss", unit="USD"),
    Feature("hours-per-week", Kind.INTEGER, label="working time", unit="hours per week"),
    Feature("sex_Male", kind=Kind.BINARY, label="sex: male", direction=Direction.FIXED),
    Feature("workclass_Private", kind=Kind.BINARY, label="employer: private"),
    # Nobody is advised to marry or to divorce.
    Feature(
        "marital-status_Non-Married",
        kind=Kind.BINARY,
        label="marital status: not married, or living apart",
        direction=Direction.FIXED,
    ),
    Feature(
        "occupation_Other",
        kind=Kind.BINARY,
        label="occupation: other than clerical, managerial, professional or machine operator",
    ),
    Feature(
        "relationship_Non-Husband",
        kind=Kind.BINARY,
        label="role in the household: other than husband",
        direction=Direction.FIXED,
    ),
    Feature("race_White", kind=Kind.BINARY, label="race: white", direction=Direction.FIXED),
    Feature("native-country_US", kind=Kind.BINARY, label="native country: United States", direction=Direction.FIXED),
)

_MARRIED = ("Married-civ-spouse", "Married-AF-spouse")
_NAMED_OCCUPATIONS = ("Adm-clerical", "Exec-managerial", "Machine-op-inspct", "Prof-specialty")


def _raw_rows() -> Iterator[list[str]]:
    for name in ("adult.data.gz", "adult.test.gz"):
        for line in embedded_bytes(name).decode("ascii").splitlines():
            # The test file opens with a comment, both end with an empty line; neither has a comma.
            if "," in line:
                yield line.split(", ")


def raw_table() -> pd.DataFrame:
    """The complete rows of both UCI files with all 14 attributes and the label, as text; the index is the row number.

    >>> raw_table()["native-country"].nunique()
    41
    """
    import pandas as pd

    rows = list(_raw_rows())
    complete = [number for number, row in enumerate(rows) if "?" not in row]
    return pd.DataFrame([rows[number] for number in complete], columns=list(_ATTRIBUTES), index=complete, dtype=str)


def uci_table() -> pd.DataFrame:
    """The complete rows of both UCI files in the 13 columns and the label (1 for above 50K).

    The index is the row number over both files; rows with an unknown value ("?") are left out.

    >>> uci_table().shape
    (45222, 14)
    """
    import pandas as pd

    attributes = raw_table()
    raw = {name: attributes[name].to_numpy(dtype=np.str_) for name in attributes.columns}
    answers = {
        "sex_Male": raw["sex"] == "Male",
        "workclass_Private": raw["workclass"] == "Private",
        "marital-status_Non-Married": ~np.isin(raw["marital-status"], _MARRIED),
        "occupation_Other": ~np.isin(raw["occupation"], _NAMED_OCCUPATIONS),
        "relationship_Non-Husband": raw["relationship"] != "Husband",
        "race_White": raw["race"] == "White",
        "native-country_US": raw["native-country"] == "United-States",
        # adult.test writes a full stop behind the label.
        LABEL: np.char.startswith(raw["income"], ">50K"),
    }
    columns = {
        name: (answers[name] if name in answers else raw[name]).astype(np.int64)
        for name in (*(feature.name for feature in _FEATURES), LABEL)
    }
    return pd.DataFrame(columns, index=attributes.index)


def adult_rows() -> tuple[TrainingSet, TrainingSet]:
    """Training and test rows; the ids are UCI's row numbers over both files.

    >>> [len(rows) for rows in adult_rows()]
    [36177, 9045]
    """
    table = uci_table()
    train, test = split_rows("adult")
    return labelled_rows(table.loc[train], LABEL), labelled_rows(table.loc[test], LABEL)


def adult_schema(train: TrainingSet) -> FeatureSchema:
    """Labels, units and rules of the 13 columns, with bounds from the training rows.

    >>> adult_schema(adult_rows()[0])["hours-per-week"].unit
    'hours per week'
    """
    return bounded_schema(_FEATURES, train)
