"""Adult: the 45,222 complete rows of the 1994 census extract in 13 columns.

Every categorical attribute is reduced to one yes/no question (``race_White``), so there are no one-hot groups. Ids
count UCI's rows: adult.data 0..32560, then adult.test from 32561 on. What the columns mean is in
``embedded/adult.yaml``.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING

import numpy as np

from rocerf.data.schema import Direction, Feature, FeatureSchema, Kind
from rocerf.data.tables import Loaded, bounded_schema, described, embedded_bytes, features_of, labelled_rows, split_rows

if TYPE_CHECKING:
    import pandas as pd

LABEL = "income"

_MARRIED = ("Married-civ-spouse", "Married-AF-spouse")
_NAMED_OCCUPATIONS = ("Adm-clerical", "Exec-managerial", "Machine-op-inspct", "Prof-specialty")


def _raw_rows() -> Iterator[list[str]]:
    for name in ("adult.data.gz", "adult.test.gz"):
        for line in embedded_bytes(name).decode("ascii").splitlines():
            # The test file opens with a comment, both end with an empty line; neither has a comma.
            if "," in line:
                yield line.split(", ")


def text_table() -> pd.DataFrame:
    """The complete rows of both UCI files with all 14 attributes and the label, as text; the index is the row number.

    >>> text_table()["native-country"].nunique()
    41
    """
    import pandas as pd

    rows = list(_raw_rows())
    complete = [number for number, row in enumerate(rows) if "?" not in row]
    attributes = described("adult")["attributes"]
    return pd.DataFrame([rows[number] for number in complete], columns=attributes, index=complete, dtype=str)


def raw_table() -> pd.DataFrame:
    """The same with numbers as such, and the label as 1 for above 50K."""
    table = text_table()
    numbers = {name: table[name].astype(np.int64) for name in described("adult")["raw"]["numbers"]}
    # adult.test writes a full stop behind the label.
    return table.assign(**numbers, **{LABEL: table[LABEL].str.startswith(">50K").astype(np.int64)})


def uci_table() -> pd.DataFrame:
    """The complete rows of both UCI files in the 13 columns and the label (1 for above 50K).

    The index is the row number over both files; rows with an unknown value ("?") are left out.

    >>> uci_table().shape
    (45222, 14)
    """
    table = raw_table()
    answers = {
        "sex_Male": table["sex"] == "Male",
        "workclass_Private": table["workclass"] == "Private",
        "marital-status_Non-Married": ~table["marital-status"].isin(_MARRIED),
        "occupation_Other": ~table["occupation"].isin(_NAMED_OCCUPATIONS),
        "relationship_Non-Husband": table["relationship"] != "Husband",
        "race_White": table["race"] == "White",
        "native-country_US": table["native-country"] == "United-States",
    }
    columns = [*(feature.name for feature in features_of("adult")), LABEL]
    return table.assign(**{name: answer.astype(np.int64) for name, answer in answers.items()})[columns]


def load(name: str = "adult", path: str | Path | None = None) -> Loaded:
    """Training and test rows, whose ids are UCI's row numbers over both files, and the schema of the 13 columns.

    >>> train, test, schema = load()
    >>> len(train), len(test), schema["hours-per-week"].unit
    (36177, 9045, 'hours per week')
    """
    table = uci_table()
    train, test = (labelled_rows(table.loc[rows], LABEL) for rows in split_rows("adult"))
    return train, test, bounded_schema(features_of("adult"), train)


def raw_schema(train: pd.DataFrame) -> FeatureSchema:
    """Schooling only rises, its two columns together; occupation, employer and hours may change."""
    about = described("adult")["raw"]
    schema = FeatureSchema.from_frame(train, immutable=about["fixed"], units=about["units"])
    found = schema["education"].categories
    levels = {level: place for place, level in enumerate(about["schooling"], 1) if level in found}
    education = Feature("education", Kind.CATEGORICAL, categories=tuple(levels), direction=Direction.INCREASE)
    features = tuple(education if feature.name == "education" else feature for feature in schema)
    total = " + ".join(f"{place} * `education={level}`" for level, place in levels.items())
    return replace(schema, features=features).relate(f"`education-num` == {total}")
