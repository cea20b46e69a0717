"""German credit: UCI's 1000 applicants in the 60 columns of the published benchmark.

Eight numeric columns, then twelve categorical attributes as complete one-hot groups. The
numbers in the column names (``status_1``) are the benchmark's own codes; ``_GROUPS`` says which
UCI code (``A14``) each stands for and puts UCI's description into words.
"""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING

import numpy as np

from rocerf.data.guess import Guess
from rocerf.data.schema import Direction, Feature, FeatureSchema, Kind
from rocerf.data.tables import bounded_schema, embedded_bytes, labelled_rows, split_rows
from rocerf.data.training_set import TrainingSet

if TYPE_CHECKING:
    import pandas as pd

LABEL = "credit-risk"

# Position in UCI's file, and what a person may do about it.
_NUMERIC = (
    (1, Feature("duration", Kind.INTEGER, label="credit duration", unit="months")),
    (4, Feature("amount", Kind.INTEGER, label="credit amount", unit="DM")),
    # UCI calls it a percentage; the values are classes 1 to 4.
    (
        7,
        Feature("installment-rate", Kind.INTEGER, label="installment rate, share of disposable income (class 1 to 4)"),
    ),
    # Time at one address can be waited for, and is not given back.
    (
        10,
        Feature(
            "present-residence",
            Kind.INTEGER,
            label="time at the present residence (class 1 to 4)",
            direction=Direction.INCREASE,
        ),
    ),
    # Age moves by itself: to wait is no advice.
    (12, Feature("age", Kind.INTEGER, label="age", unit="years", direction=Direction.FIXED)),
    # A credit can be paid off; to take a further one is nothing to recommend to a refused applicant.
    (
        15,
        Feature(
            "number-credits",
            Kind.INTEGER,
            label="number of existing credits at this bank",
            direction=Direction.DECREASE,
        ),
    ),
    (
        17,
        Feature(
            "people-liable",
            Kind.INTEGER,
            label="number of people the applicant must provide for",
            direction=Direction.FIXED,
        ),
    ),
    # Coded 1 and 2 in the published table, hence no 0/1 indicator.
    (19, Feature("foreign-worker", Kind.INTEGER, label="foreign worker (1 yes, 2 no)", direction=Direction.FIXED)),
)

# Group, position in UCI's file, words for the attribute, and (number in the column name, UCI code, words).
_GROUPS: tuple[tuple[str, int, str, tuple[tuple[int, str, str], ...]], ...] = (
    (
        "status",
        0,
        "checking account",
        (
            (1, "A14", "no checking account"),
            (2, "A11", "balance below 0 DM"),
            (3, "A12", "balance from 0 to below 200 DM"),
            (4, "A13", "balance of 200 DM or more, or salary paid in for at least 1 year"),
        ),
    ),
    (
        "credit-history",
        2,
        "credit history",
        (
            (0, "A33", "delay in paying off in the past"),
            (1, "A34", "critical account, or other credits elsewhere"),
            (2, "A30", "no credits taken, or all paid back duly"),
            (3, "A32", "existing credits paid back duly till now"),
            (4, "A31", "all credits at this bank paid back duly"),
        ),
    ),
    (
        "purpose",
        3,
        "purpose",
        (
            (0, "A410", "other"),
            (1, "A40", "new car"),
            (2, "A41", "used car"),
            (3, "A42", "furniture or equipment"),
            (4, "A43", "radio or television"),
            (5, "A44", "domestic appliances"),
            (6, "A45", "repairs"),
            (7, "A46", "education"),
            (9, "A48", "retraining"),
            (10, "A49", "business"),
        ),
    ),
    (
        "savings",
        5,
        "savings",
        (
            (1, "A65", "unknown, or no savings account"),
            (2, "A61", "below 100 DM"),
            (3, "A62", "from 100 to below 500 DM"),
            (4, "A63", "from 500 to below 1000 DM"),
            (5, "A64", "1000 DM or more"),
        ),
    ),
    (
        "employment-duration",
        6,
        "present employment",
        (
            (1, "A71", "unemployed"),
            (2, "A72", "for less than 1 year"),
            (3, "A73", "for 1 to less than 4 years"),
            (4, "A74", "for 4 to less than 7 years"),
            (5, "A75", "for 7 years or more"),
        ),
    ),
    (
        "personal-status-sex",
        8,
        "personal status and sex",
        (
            (1, "A91", "man, divorced or separated"),
            (2, "A92", "woman, divorced, separated or married"),
            (3, "A94", "man, married or widowed"),
            (5, "A93", "man, single"),
        ),
    ),
    (
        "other-debtors",
        9,
        "other debtors",
        ((1, "A101", "none"), (2, "A102", "co-applicant"), (3, "A103", "guarantor")),
    ),
    (
        "property",
        11,
        "property",
        (
            (1, "A124", "unknown, or none"),
            (2, "A123", "car or other"),
            (3, "A122", "building society savings or life insurance"),
            (4, "A121", "real estate"),
        ),
    ),
    (
        "other-installment-plans",
        13,
        "other installment plans",
        ((1, "A141", "at a bank"), (2, "A142", "at a store"), (3, "A143", "none")),
    ),
    ("housing", 14, "housing", ((1, "A153", "for free"), (2, "A151", "rented"), (3, "A152", "owned"))),
    (
        "job",
        16,
        "job",
        (
            (1, "A171", "unemployed, or unskilled and not resident"),
            (2, "A172", "unskilled, resident"),
            (3, "A173", "skilled employee or official"),
            (4, "A174", "manager, self-employed, highly qualified employee or officer"),
        ),
    ),
    ("telephone", 18, "telephone", ((1, "A191", "none"), (2, "A192", "registered under the customer's name"))),
)

# The past and who one is cannot be changed. Purpose, job or housing can, hard as it may be; so can
# the employment's duration (found, or waited for), whose order one-hot columns cannot express.
_FIXED_GROUPS = frozenset({"credit-history", "personal-status-sex"})


def raw_table() -> pd.DataFrame:
    """All 1000 applicants in UCI's order and its 20 attributes, categories in words, and the label (1 good, 0 bad).

    >>> raw_table().iloc[0][["purpose", "housing", "foreign-worker"]].tolist()
    ['radio or television', 'owned', 'yes']
    """
    import pandas as pd

    rows = [line.split() for line in embedded_bytes("german.data.gz").decode("ascii").splitlines()]
    attributes = list(zip(*rows, strict=True))
    columns: dict[int, tuple[str, list[int] | list[str]]] = {}
    for position, feature in _NUMERIC:
        if feature.name == "foreign-worker":
            columns[position] = feature.name, ["yes" if code == "A201" else "no" for code in attributes[position]]
        else:
            columns[position] = feature.name, [int(value) for value in attributes[position]]
    for group, position, _, categories in _GROUPS:
        words = {code: said for _, code, said in categories}
        columns[position] = group, [words[code] for code in attributes[position]]
    table = dict(columns[position] for position in sorted(columns))
    return pd.DataFrame(table).assign(**{LABEL: [int(code == "1") for code in attributes[-1]]})


def uci_table() -> pd.DataFrame:
    """All 1000 applicants in UCI's order: the 60 columns and the true label (1 good, 0 bad).

    >>> uci_table().shape
    (1000, 61)
    """
    import pandas as pd

    rows = [line.split() for line in embedded_bytes("german.data.gz").decode("ascii").splitlines()]
    attributes = [np.array(values) for values in zip(*rows, strict=True)]
    columns: dict[str, np.ndarray] = {}
    for position, feature in _NUMERIC:
        if feature.name == "foreign-worker":
            columns[feature.name] = np.where(attributes[position] == "A201", 1, 2)
        else:
            columns[feature.name] = attributes[position].astype(np.int64)
    for group, position, _, categories in _GROUPS:
        for number, code, _ in categories:
            columns[f"{group}_{number}"] = (attributes[position] == code).astype(np.int64)
    columns[LABEL] = (attributes[-1] == "1").astype(np.int64)
    return pd.DataFrame(columns)


def german_rows(*, published_labels: bool = False) -> tuple[TrainingSet, TrainingSet]:
    """Training and test rows; the ids are UCI's row numbers.

    With ``published_labels`` row i of either file carries the label of UCI row i instead of its
    own: the published files shuffled the features and left the labels where they were.

    >>> [len(rows) for rows in german_rows()]
    [800, 200]
    """
    table = uci_table()
    parts = []
    for rows in split_rows("german"):
        part = table.iloc[rows]
        if published_labels:
            part = part.assign(**{LABEL: table[LABEL].to_numpy()[: len(rows)]})
        parts.append(labelled_rows(part, LABEL))
    return parts[0], parts[1]


def german_schema(train: TrainingSet) -> FeatureSchema:
    """Labels, units, groups and rules of the 60 columns, with bounds from the training rows.

    >>> german_schema(german_rows()[0])["status_1"].label
    'checking account: no checking account'
    """
    features = [feature for _, feature in _NUMERIC]
    for group, _, words, categories in _GROUPS:
        direction = Direction.FIXED if group in _FIXED_GROUPS else Direction.ANY
        features += [
            Feature(
                f"{group}_{number}",
                kind=Kind.BINARY,
                label=f"{words}: {category}",
                direction=direction,
                group=group,
            )
            for number, _, category in categories
        ]
    return bounded_schema(features, train)


def raw_schema(train: pd.DataFrame) -> FeatureSchema:
    """Words, units, rules and bounds of the 20 attributes as UCI has them; categories in the order of the codes.

    Nobody is sent to a category that begins with "unknown": that is no way to act.

    >>> raw_schema(raw_table().drop(columns=LABEL))["age"].direction.value
    'fixed'
    """
    numbers = {feature.name: feature for _, feature in _NUMERIC}
    groups = {group: (words, categories) for group, _, words, categories in _GROUPS}
    features = []
    for name in train.columns:
        if name in groups:
            words, categories = groups[name]
            direction = Direction.FIXED if name in _FIXED_GROUPS else Direction.ANY
            values = tuple(said for _, _, said in categories)
            known = tuple(value for value in values if not value.startswith("unknown"))
            changes = None if known == values else dict.fromkeys(values, known)
            features.append(
                Feature(name, Kind.CATEGORICAL, words, categories=values, direction=direction, changes=changes)
            )
        elif name == "foreign-worker":
            values = ("yes", "no")
            features.append(
                Feature(name, Kind.CATEGORICAL, "foreign worker", categories=values, direction=Direction.FIXED)
            )
        else:
            low, high = float(train[name].min()), float(train[name].max())
            features.append(replace(numbers[name], lower=low, upper=high))
    return FeatureSchema(tuple(features), guessed=Guess.of(features, fields=("lower", "upper"), rounded=False))
