"""German credit: UCI's 1000 applicants in the 60 columns of the published benchmark.

Eight numeric columns, then twelve categorical attributes as complete one-hot groups. The numbers in the column names
(``status_1``) are the benchmark's own codes; ``embedded/german.yaml`` says which UCI code (``A14``) each stands for and
puts UCI's description into words.
"""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from rocerf.data.guess import Guess
from rocerf.data.schema import Direction, Feature, FeatureSchema, Kind
from rocerf.data.tables import Loaded, bounded_schema, described, embedded_bytes, labelled_rows, split_rows

if TYPE_CHECKING:
    import pandas as pd

LABEL = "credit-risk"


def _numbers() -> dict[int, Feature]:
    """The numeric columns by their position in UCI's file."""
    return {position: Feature(**row) for position, row in described("german")["numbers"].items()}


def _groups() -> dict[str, Any]:
    """The categorical attributes: position, words, direction, and (number, UCI's code, words) of each category."""
    return dict(described("german")["groups"])


def raw_table() -> pd.DataFrame:
    """All 1000 applicants in UCI's order and its 20 attributes, categories in words, and the label (1 good, 0 bad).

    >>> raw_table().iloc[0][["purpose", "housing", "foreign-worker"]].tolist()
    ['radio or television', 'owned', 'yes']
    """
    import pandas as pd

    rows = [line.split() for line in embedded_bytes("german.data.gz").decode("ascii").splitlines()]
    uci = pd.DataFrame(rows)
    columns = {p: (f.name, uci[p].astype(np.int64)) for p, f in _numbers().items() if f.name != "foreign-worker"}
    columns[19] = "foreign-worker", uci[19].map({"A201": "yes", "A202": "no"})
    for group, about in _groups().items():
        words = {code: said for _, code, said in about["categories"]}
        columns[about["position"]] = group, uci[about["position"]].map(words)
    table = dict(columns[position] for position in sorted(columns))
    return pd.DataFrame(table).assign(**{LABEL: (uci[20] == "1").astype(np.int64)})


def uci_table() -> pd.DataFrame:
    """All 1000 applicants in UCI's order: the 60 columns and the true label (1 good, 0 bad).

    >>> uci_table().shape
    (1000, 61)
    """
    import pandas as pd

    raw = raw_table()
    raw["foreign-worker"] = np.where(raw["foreign-worker"] == "yes", 1, 2)
    columns = {feature.name: raw[feature.name] for feature in _numbers().values()}
    for group, about in _groups().items():
        for number, _, said in about["categories"]:
            columns[f"{group}_{number}"] = (raw[group] == said).astype(np.int64)
    return pd.DataFrame({**columns, LABEL: raw[LABEL]})


def load(name: str = "german", path: str | Path | None = None) -> Loaded:
    """Training and test rows, whose ids are UCI's row numbers, and the schema of the 60 columns.

    In "german-as-published" row i of either part carries the label of UCI row i instead of its own: the published files
    shuffled the features and left the labels where they were.

    >>> train, test, schema = load()
    >>> len(train), len(test), schema["status_1"].label
    (800, 200, 'checking account: no checking account')
    """
    table = uci_table()
    parts = []
    for rows in split_rows("german"):
        part = table.iloc[rows]
        if name == "german-as-published":
            part = part.assign(**{LABEL: table[LABEL].to_numpy()[: len(rows)]})
        parts.append(labelled_rows(part, LABEL))
    indicators = (
        Feature(
            f"{group}_{number}", Kind.BINARY, f"{about['words']}: {said}", direction=about["direction"], group=group
        )
        for group, about in _groups().items()
        for number, _, said in about["categories"]
    )
    return parts[0], parts[1], bounded_schema([*_numbers().values(), *indicators], parts[0])


def raw_schema(train: pd.DataFrame) -> FeatureSchema:
    """Words, units, rules and bounds of the 20 attributes as UCI has them; categories in the order of the codes.

    Nobody is sent to a category that begins with "unknown": that is no way to act.

    >>> raw_schema(raw_table().drop(columns=LABEL))["age"].direction.value
    'fixed'
    """
    numbers, groups = {feature.name: feature for feature in _numbers().values()}, _groups()
    features = []
    for name in train.columns:
        if name in groups:
            about = groups[name]
            values = tuple(said for _, _, said in about["categories"])
            known = tuple(value for value in values if not value.startswith("unknown"))
            moves = None if known == values else dict.fromkeys(values, known)
            direction = about["direction"]
            feature = Feature(
                name, Kind.CATEGORICAL, about["words"], categories=values, direction=direction, changes=moves
            )
        elif name == "foreign-worker":
            feature = Feature(
                name, Kind.CATEGORICAL, "foreign worker", categories=("yes", "no"), direction=Direction.FIXED
            )
        else:
            feature = replace(numbers[name], lower=float(train[name].min()), upper=float(train[name].max()))
        features.append(feature)
    return FeatureSchema(tuple(features), guessed=Guess.of(features, fields=("lower", "upper"), rounded=False))
