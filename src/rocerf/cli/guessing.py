"""What may change where no schema says so: guessed from the training rows, and told."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Sequence
from dataclasses import replace
from typing import TYPE_CHECKING, Any

import numpy as np

from rocerf.errors import OptionError

if TYPE_CHECKING:
    from rocerf.cli.files import LabelledRows
    from rocerf.cli.parquet_files import RowsInParquet
    from rocerf.data.schema import FeatureSchema
    from rocerf.recourse.result import Recourses

#: Changes at once from which on people are told that it is many.
MANY = 5


def rules_of(
    given: FeatureSchema | None,
    fitted: Any,
    rows: LabelledRows | RowsInParquet,
    immutable: Sequence[str] | None,
    *,
    free: bool = False,
) -> FeatureSchema:
    """The schema of the file, however little it says; else the model's; else one guessed from the rows.

    ``free`` numbers have no bounds, and need not be whole where the model does not say that they are.
    """
    from rocerf.data.schema import Direction

    if free and given is not None:
        raise OptionError("Expected --schema or --free, got both; drop one.")
    rules = fitted.schema if given is None else given
    if rules is None:
        rules = _plain_schema(fitted.train) if free else _guessed(fitted.train, rows)
    elif free:
        rules = _unbounded(rules)
    for name in immutable or ():
        rules = rules.edit(name, direction=Direction.FIXED)
    return rules


def _guessed(train: Any, rows: LabelledRows | RowsInParquet) -> FeatureSchema:
    """As the rows have it: whole numbers, bounds, questions, one-hot groups."""
    from rocerf.cli.parquet_files import RowsInParquet
    from rocerf.data.schema import FeatureSchema

    if train.on_disk and isinstance(rows, RowsInParquet) and rows.large:
        return _of_rows_on_disk(train, rows.whole_columns())
    return FeatureSchema.from_frame(rows.frame[list(train.columns)])


def _of_rows_on_disk(train: Any, whole_columns: Sequence[str]) -> FeatureSchema:
    """The same by passes over rows that are too many to be held; groups are not looked for there."""
    from rocerf.data.column_statistics import are_answers, extremes
    from rocerf.data.guess import Guess
    from rocerf.data.schema import Feature, FeatureSchema, Kind
    from rocerf.data.schema_guess import round_bounds

    features = []
    for name, answers, low, high in zip(train.columns, are_answers(train.X), *extremes(train.X), strict=True):
        whole = name in whole_columns
        if answers:
            features.append(Feature(name, Kind.BINARY))
            continue
        lower, upper = round_bounds(float(low), float(high), whole=whole)
        features.append(Feature(name, Kind.INTEGER if whole else Kind.CONTINUOUS, lower=lower, upper=upper))
    return FeatureSchema(features, guessed=Guess.of(features))


def _plain_schema(train: Any) -> FeatureSchema:
    """Numbers move freely; columns of 0 and 1 are questions, and nobody is asked to be 1.13 of something."""
    from rocerf.data.column_statistics import are_answers
    from rocerf.data.guess import Guess
    from rocerf.data.schema import FeatureSchema, Kind

    made = FeatureSchema.free(train.columns)
    for name, answers in zip(train.columns, are_answers(train.X), strict=True):
        if answers:
            made = made.edit(name, kind=Kind.BINARY)
    return replace(made, guessed=Guess.of(made, fields=("kind",)))


def _unbounded(rules: FeatureSchema) -> FeatureSchema:
    from rocerf.data.schema import Kind

    for feature in rules:
        if feature.kind in (Kind.CONTINUOUS, Kind.INTEGER):
            rules = rules.edit(feature.name, lower=-np.inf, upper=np.inf)
    return rules


def what_was_guessed(rules: FeatureSchema, immutable: Sequence[str] | None, *, free: bool) -> Iterator[str]:
    """Sentences about rules that nobody has looked at yet."""
    counted = Counter(str(feature.kind) for feature in rules if feature.group is None)
    words = {
        "integer": ("whole number", "whole numbers"),
        "continuous": ("other number", "other numbers"),
        "binary": ("yes/no question", "yes/no questions"),
        "categorical": ("column of categories", "columns of categories"),
    }
    said = [f"{counted[kind]} {names[counted[kind] != 1]}" for kind, names in words.items() if counted[kind]]
    groups = dict.fromkeys(feature.group for feature in rules if feature.group is not None)
    said += [f"the 0/1 columns of {', '.join(map(repr, groups))} as one choice each"] if groups else []
    bounds = "without bounds" if free else "each between the smallest and the largest seen, rounded outwards"
    yield f"No --schema, so what may change was guessed from the training rows: {', '.join(said)}; numbers {bounds}."
    held = f"Nothing but {', '.join(map(repr, immutable))}" if immutable else "Nothing, age and the like included,"
    yield (
        f"{held} was held fixed. Write the guess down with rocerf schema --out schema.yaml, correct it, and give it as "
        "--schema."
    )


def many_changes(recourses: Recourses) -> Iterator[str]:
    """A word about answers that ask for more changes at once than anybody makes."""
    asked = np.array([len(recourse.changes) for recourse in recourses if recourse.answered])
    if len(asked) and asked.max() > MANY:
        count = int((asked > MANY).sum())
        yield (
            f"{count} of {len(asked)} answers ask for more than {MANY} changes at once, up to {asked.max()}: "
            f"--max-changes {MANY} asks for fewer (at a higher cost), --cost l1 mostly does."
        )
