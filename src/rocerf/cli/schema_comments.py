"""A guessed schema as a file to be corrected: with what was seen, and what is for a person to decide, as comments."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any

import numpy as np

from rocerf.cli.telling_names import is_sensitive, is_unchangeable, words_of
from rocerf.words import exact

if TYPE_CHECKING:
    import pandas as pd

    from rocerf.data.feature import Feature
    from rocerf.data.schema import FeatureSchema
    from rocerf.types import Array

#: Words in names of columns that may be times which nobody can make pass.
TIMES = {"days", "weeks", "months", "years", "experience", "seniority", "tenure"}

#: Whole numbers of so few values may be codes.
FEW = 10

#: A number is far from all others where it is so many times as far from the middle as all but this share of the rows.
FAR, SELDOM = 100.0, 0.01

HEAD = """\
# What the columns mean and what people may change about them. Everything below was guessed from your rows: correct it.
#
# For each column:
#   direction: any, increase, decrease or fixed. What a person cannot change must be fixed.
#   private: true    held fixed, and its value is not printed in letters, pages and pictures (needs direction: fixed).
#   lower, upper     how low and how high people may be sent; guessed: the smallest and largest value of your rows,
#                    rounded outwards.
#   step             numbers change by multiples of it. kind: integer means whole numbers.
#   label, unit      words for letters: label: Monthly income, unit: EUR.
#   changes          categories that may be reached, from each: changes: [[rent, [own]], [own, []]]. From categories
#                    that are not named people may go anywhere.
#   fixed_if         a condition on the person's own values: fixed_if: "age >= 60".
#   weight           how much a change of it counts, 1 is neutral.
# For the whole table: relations: ["months_employed <= 12 * age"].
#
# The part "guessed" at the end says what was read off the rows, so that it can be read off again when rows are
# forgotten. Leave it as it is: what you change above it counts as yours.
"""


def commented_schema(
    frame: pd.DataFrame, left_out: Mapping[str, str], immutable: Sequence[str], private: Sequence[str]
) -> str:
    """The text of schema.yaml."""
    schema = guessed_schema(frame, left_out, immutable, private)
    lines = [HEAD.rstrip()]
    lines += [f"# Left out: {one_line(name)}, since {why}." for name, why in left_out.items()]
    features = {feature.name: feature for feature in schema}
    for line, name in _lines_with_names(schema):
        if name is not None:
            lines += [f"# {remark}" for remark in _remarks(features[name], frame[name])]
        lines.append(line)
    return "\n".join(lines) + "\n"


def guessed_schema(
    frame: pd.DataFrame, left_out: Mapping[str, str], immutable: Sequence[str], private: Sequence[str]
) -> FeatureSchema:
    """The guess of ``FeatureSchema.from_frame``, with steps, and with what its name says nobody can change fixed."""
    from rocerf.data.feature import Direction
    from rocerf.data.schema import FeatureSchema

    used = frame[[name for name in frame.columns if name not in left_out]]
    schema = FeatureSchema.from_frame(used, immutable=immutable, private=private)
    for feature in schema:
        if is_unchangeable(feature.group or feature.name):
            hidden = feature.private or is_sensitive(feature.group or feature.name)
            schema = schema.edit(feature.name, direction=Direction.FIXED, private=hidden)
        step = _step(feature, used[feature.name])
        if step is not None:
            schema = schema.edit(feature.name, step=step)
    return schema


def _step(feature: Feature, column: pd.Series[Any]) -> float | None:
    """The largest round number of which all values of a column of whole numbers are multiples, if it is above 1."""
    if feature.kind not in ("integer", "continuous"):
        return None
    values = np.abs(column.dropna().to_numpy(dtype=np.float64))
    if not (np.isfinite(values) & (values < 2.0**53) & (values % 1 == 0)).all():
        return None
    found = int(np.gcd.reduce(values.astype(np.int64)))
    return next((float(step) for step in (1000, 500, 100, 50, 10, 5) if found and found % step == 0), None)


def _lines_with_names(schema: FeatureSchema) -> list[tuple[str, str | None]]:
    """The lines of the YAML; those that begin a feature with its name."""
    names = iter(schema.names)
    lines, inside = [], False
    for line in schema.to_yaml().rstrip("\n").split("\n"):
        inside = line == "features:" or (inside and not re.match(r"\w", line))
        lines.append((line, next(names) if inside and line.startswith("- ") else None))
    return lines


def _remarks(feature: Feature, column: pd.Series[Any]) -> list[str]:
    said = []
    gaps = int(column.isna().sum())
    if feature.private and is_sensitive(feature.group or feature.name):
        said.append("Held fixed, and not printed in letters, because of its name; private: false prints it.")
    elif feature.private:
        said.append("Held fixed, and not printed in letters, as --private says.")
    elif feature.direction == "fixed" and is_unchangeable(feature.group or feature.name):
        said.append("Held fixed because of its name; private: true keeps it out of letters, too.")
    if feature.direction == "any" and feature.kind in ("integer", "continuous") and TIMES & words_of(feature.name):
        said.append(
            "A time that only passes by waiting? Then direction: increase, and how long people can wait: upper."
        )
    if feature.kind == "integer" and column.nunique() <= FEW:
        said.append(f"Only {column.nunique()} different values: an amount, or codes (kind: categorical)?")
    if feature.kind in ("integer", "continuous"):
        said += _far_from_all(column.dropna().to_numpy(dtype=np.float64))
    if feature.step is not None:
        said.append(f"All values are multiples of {feature.step:g}.")
    if gaps:
        said.append(f"{gaps} of {len(column)} rows have no value.")
    return said


def _far_from_all(values: Array) -> list[str]:
    """That a few rows hold a number a hundred times as far off as nearly all others: 999999, say, for "unknown"."""
    middle = float(np.median(values))
    low, high = np.quantile(values, [SELDOM, 1 - SELDOM])
    ends = ((high - middle, values.max() - middle, values.max()), (middle - low, middle - values.min(), values.min()))
    return [
        f"{(values == end).sum()} of {len(values)} rows have {exact(float(end))}, far from all others: a code for no "
        "value? Then leave it empty in the rows, or set a bound."
        for usual, farthest, end in ends
        if 0 < FAR * usual < farthest
    ]


def one_line(text: str) -> str:
    """A name that stays in its line of comments."""
    from rocerf.visible import visible

    return visible(text)
