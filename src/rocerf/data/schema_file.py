"""A schema as a table to print, as plain values, and as YAML."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import MISSING, fields
from os import PathLike
from pathlib import Path
from textwrap import wrap
from typing import TYPE_CHECKING, Any

import numpy as np

from rocerf.data.columns import in_words
from rocerf.data.documents import read_text, yaml_document
from rocerf.data.feature import Feature, Kind, refuse_unknown_fields
from rocerf.data.guess import Guess
from rocerf.data.rules import Relation
from rocerf.errors import FileFormatError, RocerfError, SchemaError
from rocerf.storage.whole_file import write_text
from rocerf.visible import visible

if TYPE_CHECKING:
    from rocerf.data.schema import FeatureSchema

#: Columns of a terminal, and the narrowest that a column of a table becomes.
WIDTH, NARROW = 80, 18

FILE_FORMAT = "rocerf-schema/1"

_PARTS = ("format", "features", "relations", "group_changes", "open_groups", "guessed")


def to_dict(schema: FeatureSchema) -> dict[str, Any]:
    """Plain values; fields at their defaults and infinite bounds are left out."""
    document: dict[str, Any] = {"format": FILE_FORMAT, "features": [_feature(feature) for feature in schema]}
    if schema.relations:
        document["relations"] = [
            {"coefficients": dict(r.coefficients), "upper": r.upper, "words": r.words} for r in schema.relations
        ]
    if schema.group_changes:
        changes = schema.group_changes.items()
        document["group_changes"] = {g: {before: list(after) for before, after in c.items()} for g, c in changes}
    if schema.open_groups:
        document["open_groups"] = list(schema.open_groups)
    if schema.guessed is not None:
        document["guessed"] = schema.guessed.to_dict()
    return document


def _feature(feature: Feature) -> dict[str, Any]:
    row: dict[str, Any] = {"name": feature.name, "kind": str(feature.kind)}
    for field in fields(Feature)[2:]:
        value = getattr(feature, field.name)
        implied = feature.kind is Kind.BINARY and (field.name, value) in (("lower", 0.0), ("upper", 1.0))
        if field.default is not MISSING and (value == field.default or implied):
            continue
        if field.name == "changes":  # pairs, since keys of JSON are texts
            value = [[before, list(after)] for before, after in value.items()]
        row[field.name] = (
            list(value) if isinstance(value, tuple) else value if not isinstance(value, str) else str(value)
        )
    return row


def from_dict(document: Any) -> FeatureSchema:
    """The schema of plain values; a relation may also be its words."""
    try:
        return _read(document)
    except RocerfError:
        raise
    except (TypeError, ValueError, ArithmeticError, LookupError, AttributeError) as error:
        raise SchemaError(
            f"Expected a schema as to_dict or to_yaml writes it, got something else ({type(error).__name__}: {error}); "
            "compare the file with one of these."
        ) from error


def _read(document: Any) -> FeatureSchema:
    from rocerf.data.schema import FeatureSchema

    if not isinstance(document, Mapping) or document.get("format") != FILE_FORMAT:
        got = document.get("format") if isinstance(document, Mapping) else type(document).__name__
        raise FileFormatError(
            f"Expected a schema ({FILE_FORMAT}), got {got!r}; write it again with to_dict or to_yaml."
        )
    strange = [name for name in document if name not in _PARTS]
    if strange or not isinstance(document.get("features"), list):
        raise SchemaError(
            f"Expected a schema of {', '.join(_PARTS)}, got {strange or 'no list of features'}; correct the spelling."
        )
    features = [_read_feature(row) for row in document["features"]]
    relations = [
        Relation({str(n): float(v) for n, v in r["coefficients"].items()}, float(r["upper"]), str(r.get("words", "")))
        if isinstance(r, Mapping)
        else r
        for r in document.get("relations", ())
    ]
    groups, guess = document.get("group_changes", {}), document.get("guessed")
    guessed = None if guess is None else Guess.from_dict(guess)
    return FeatureSchema(tuple(features), tuple(relations), groups, tuple(document.get("open_groups", ())), guessed)


def _read_feature(row: Any) -> Feature:
    if not isinstance(row, Mapping) or "name" not in row:
        raise SchemaError(f"Expected a name for every feature, got {row!r}; add 'name'.")
    values = dict(row)
    refuse_unknown_fields(values, values["name"])
    for side, unbounded in (("lower", -np.inf), ("upper", np.inf)):
        if values.get(side, unbounded) is None:
            values[side] = unbounded
    if isinstance(values.get("changes"), list):
        values["changes"] = {before: tuple(after) for before, after in values["changes"]}
    return Feature(**values)


def to_yaml(schema: FeatureSchema, path: str | PathLike[str] | None) -> str:
    """The text, also written to the path if there is one."""
    import yaml

    text = str(yaml.safe_dump(to_dict(schema), sort_keys=False, allow_unicode=True, default_flow_style=None))
    if path is not None:
        Path(path).parent.mkdir(parents=True, exist_ok=True)
        write_text(path, text)
    return text


def read_yaml(source: str | PathLike[str]) -> FeatureSchema:
    """From a path, or from the text itself."""
    try:
        document = yaml_document(source if isinstance(source, str) and "\n" in source else read_text(Path(source)))
    except (OSError, ValueError) as error:
        said = " ".join(str(error).split())
        raise FileFormatError(f"Expected a schema in YAML, got something else ({said}); correct the file.") from error
    return from_dict(document)


def as_table(schema: FeatureSchema) -> str:
    """One line for each feature: kind, what it may be, which way it may move."""
    rows: list[tuple[str, ...]] = [("feature", "kind", "may be", "may move", "unit")]
    rows += [tuple(map(visible, (f.name, f.kind, _range(f), _movement(f, schema), f.unit))) for f in schema]
    widths = _widths([max(len(row[column]) for row in rows) for column in range(5)])
    lines = [line for row in rows for line in _lines(row, widths)]
    lines += [visible(f"relation: {relation.words or dict(relation.coefficients)}") for relation in schema.relations]
    return "\n".join(lines)


def _widths(needed: Sequence[int]) -> list[int]:
    """Widths of the columns, so that a table fits a terminal where its names leave room for that."""
    widths, over = list(needed), sum(needed) + 2 * (len(needed) - 1) - WIDTH
    for column in (3, 2):  # what may move and what it may be go on in the next line
        given = min(max(over, 0), max(0, widths[column] - NARROW))
        widths[column] -= given
        over -= given
    return widths


def _lines(row: Sequence[str], widths: Sequence[int]) -> Iterator[str]:
    """One row of the table, cells that are too long on several lines."""
    cells = [wrap(text, width) or [""] for text, width in zip(row, widths, strict=True)]
    for number in range(max(map(len, cells))):
        parts = [cell[number] if number < len(cell) else "" for cell in cells]
        yield "  ".join(text.ljust(width) for text, width in zip(parts, widths, strict=True)).rstrip()


def _range(feature: Feature) -> str:
    if feature.kind is Kind.CATEGORICAL:
        shown = ", ".join(map(in_words, feature.categories))
        return shown if len(shown) <= 48 else f"{shown[:45]}..."
    if feature.kind is Kind.BINARY:
        return "0 or 1" + (f" ({feature.group})" if feature.group else "")
    low, high = (f"{side:.12g}" if np.isfinite(side) else "any" for side in (feature.lower, feature.upper))
    return f"{low} to {high}" + (f", steps of {feature.step:g}" if feature.step else "")


def _movement(feature: Feature, schema: FeatureSchema) -> str:
    words = str(feature.direction) + (", not printed" if feature.private else "")
    if feature.changes is not None or feature.group in schema.group_changes:
        words += f", listed changes{_unlisted(feature, schema)}"
    return words + (f", fixed if {feature.fixed_if}" if feature.fixed_if else "")


def _unlisted(feature: Feature, schema: FeatureSchema) -> str:
    """Which categories the list leaves free: those that it does not name may go anywhere."""
    if feature.group is not None:
        return "" if feature.name in schema.group_changes[feature.group] else " (none from here: anywhere)"
    free = [in_words(value) for value in feature.categories if value not in (feature.changes or {})]
    shown = ", ".join(free[:3]) + (f" and {len(free) - 3} more" if len(free) > 3 else "")
    return f" (from {shown}: anywhere)" if free else ""
