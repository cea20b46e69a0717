"""Which parts of a schema were guessed from rows, and guessing those again from the rows that are left.

A schema keeps beside its features what was guessed about them. What still equals that guess is a statement about the
rows; what differs was changed by a person (in Python, or by hand in a YAML file) and is theirs. So when rows must be
forgotten, their extremes and categories leave a guessed schema, and a declared one stays as it was declared.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Mapping
from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING, Any

import numpy as np

from rocerf.data.columns import in_words, plain
from rocerf.data.feature import Feature, Kind
from rocerf.data.rules import Condition
from rocerf.data.schema_guess import guessed_feature, with_guessed_groups

if TYPE_CHECKING:
    import pandas as pd

    from rocerf.data.schema import FeatureSchema

#: What can be guessed about a feature.
GUESSED = ("kind", "lower", "upper", "categories")


@dataclass(frozen=True)
class Guess:
    """What was guessed: by feature and field; groups found open; from which quantiles of the rows bounds came.

    ``rounded`` says whether bounds were moved outwards to round numbers, ``groups`` which one-hot groups were found;
    None where none were looked for.
    """

    features: Mapping[str, Mapping[str, Any]] = field(default_factory=dict)
    open_groups: tuple[str, ...] = ()
    quantiles: tuple[float, float] = (0.0, 1.0)
    rounded: bool = True
    groups: Mapping[str, tuple[str, ...]] | None = None

    @classmethod
    def of(cls, features: Iterable[Feature], *, fields: Collection[str] = GUESSED, **options: Any) -> Guess:
        """That these fields of these features are guesses; bounds of numbers only, categories of categories."""
        return cls({feature.name: _said(feature, fields) for feature in features}, **options)

    def without(self, name: str, fields: Collection[str]) -> Guess:
        """The same less these fields of one feature, which somebody has declared."""
        said = {key: value for key, value in self.features.get(name, {}).items() if key not in fields}
        return replace(self, features={**self.features, name: said})

    def still_guessed(self, feature: Feature) -> set[str]:
        """Fields of the feature that are as they were guessed."""
        said = self.features.get(feature.name, {})
        return {key for key, value in said.items() if key in GUESSED and _plain(getattr(feature, key)) == _plain(value)}

    def to_dict(self) -> dict[str, Any]:
        """Plain values for JSON and YAML."""
        said = {name: {key: _plain(value) for key, value in fields.items()} for name, fields in self.features.items()}
        document: dict[str, Any] = {"features": {name: fields for name, fields in said.items() if fields}}
        if self.open_groups:
            document["open_groups"] = list(self.open_groups)
        if self.quantiles != (0.0, 1.0):
            document["quantiles"] = list(self.quantiles)
        if self.groups is not None:
            document["groups"] = {group: list(names) for group, names in self.groups.items()}
        return document if self.rounded else {**document, "rounded": False}

    @classmethod
    def from_dict(cls, document: Mapping[str, Any]) -> Guess:
        """The inverse of :meth:`to_dict`."""
        low, high = (float(share) for share in document.get("quantiles", (0.0, 1.0)))
        features = {str(name): dict(said) for name, said in document.get("features", {}).items()}
        groups = tuple(document.get("open_groups", ()))
        joined = document.get("groups")
        found = None if joined is None else {str(group): tuple(map(str, names)) for group, names in joined.items()}
        return cls(features, groups, (low, high), bool(document.get("rounded", True)), found)


def _said(feature: Feature, fields: Collection[str]) -> dict[str, Any]:
    """The fields' values, as far as they say anything of such a feature."""
    bounded = feature.kind in (Kind.CONTINUOUS, Kind.INTEGER)
    there = {"kind": True, "lower": bounded, "upper": bounded, "categories": feature.kind is Kind.CATEGORICAL}
    return {name: getattr(feature, name) for name in GUESSED if name in fields and there[name]}


def _plain(value: Any) -> Any:
    return list(value) if isinstance(value, tuple | list) else str(value) if isinstance(value, Kind) else value


def guessed_again(schema: FeatureSchema, frame: pd.DataFrame, declared: Collection[str] = ()) -> FeatureSchema:
    """The schema as these rows of its own columns would have it guessed; what somebody declared stays.

    A guessed category that no row has any more disappears, unless a rule names it: whoever wrote the rule knows it.
    ``declared`` are further columns of schema space (``feature=category``) that stay.
    """
    guess = schema.guessed
    if guess is None:
        return schema
    before, schema = schema, _ungrouped(schema, guess)
    named = named_categories(schema) | set(declared)
    features = [_feature_again(feature, guess, frame, named) for feature in schema]
    said = {feature.name: guess.still_guessed(before) for before, feature in zip(schema, features, strict=True)}
    groups = {group: _is_open(group, schema, frame) for group in guess.open_groups}
    made = replace(
        schema,
        features=tuple(features),
        open_groups=tuple(group for group in schema.open_groups if groups.get(group, True)),
        guessed=None,
    )
    fresh = {feature.name: _said(feature, said[feature.name]) for feature in features}
    still = tuple(group for group in made.open_groups if group in groups)
    made = replace(made, guessed=replace(guess, features=fresh, open_groups=still))
    if guess.groups is None:
        return made
    # Columns that were taken out of a guessed group, or whose group a rule speaks of, are as somebody wants them.
    theirs = {name for names in guess.groups.values() for name in names if schema[name].group == before[name].group}
    return with_guessed_groups(made, frame[list(made.names)], theirs)


def _ungrouped(schema: FeatureSchema, guess: Guess) -> FeatureSchema:
    """The schema without the groups that were guessed and that no rule of a person speaks of."""
    members = {
        group: tuple(f.name for f in schema if f.group == group)
        for group in guess.groups or {}
        if group not in schema.group_changes
    }
    guessed = {group for group, names in members.items() if guess.groups and names == tuple(guess.groups[group])}
    features = tuple(replace(f, group=None) if f.group in guessed else f for f in schema)
    left = tuple(group for group in schema.open_groups if group not in guessed)
    return replace(schema, features=features, open_groups=left)


def _feature_again(feature: Feature, guess: Guess, frame: pd.DataFrame, named: Collection[str]) -> Feature:
    """One feature with those of its fields guessed again that still are as they were guessed."""
    fields = guess.still_guessed(feature)
    if not fields:
        return feature
    if feature.kind is Kind.CATEGORICAL:
        present = _present(frame[feature.name]) if "categories" in fields else set(feature.categories)
        places = zip(feature.columns, feature.categories, strict=True)
        return replace(feature, categories=tuple(c for name, c in places if c in present or name in named))
    # A column of whole numbers stays one where the type that said so was lost (a gap in it, say).
    whole = _plain(guess.features[feature.name].get("kind")) == str(Kind.INTEGER)
    fresh = guessed_feature(feature.name, frame[feature.name], guess.quantiles, whole=whole, rounded=guess.rounded)
    declared = any(np.isfinite(getattr(feature, side)) and side not in fields for side in ("lower", "upper"))
    if fresh.kind is Kind.BINARY and "kind" in fields and not declared and feature.step is None:
        return replace(feature, kind=Kind.BINARY, lower=0.0, upper=1.0)
    kind = fresh.kind if "kind" in fields and fresh.kind is not Kind.BINARY else feature.kind
    lower = fresh.lower if "lower" in fields else feature.lower
    upper = fresh.upper if "upper" in fields else feature.upper
    lower = min(lower, upper) if "lower" in fields else lower  # a guess gives way to a declared bound
    return replace(feature, kind=kind, lower=lower, upper=max(lower, upper))


def _present(column: pd.Series[Any]) -> set[Any]:
    """The categories that the rows have; None where some have none."""
    values = set(map(plain, column.dropna().tolist()))
    return values | ({None} if bool(column.isna().any()) else set())


def named_categories(schema: FeatureSchema) -> set[str]:
    """Columns of schema space whose category a rule of the schema names: changes, relations, conditions."""
    named = {column for relation in schema.relations for column in relation.coefficients}
    for feature in schema:
        for column, category in zip(feature.columns, feature.categories, strict=False):
            moves = feature.changes or {}
            if category in moves or any(category in after for after in moves.values()):
                named.add(column)
        if feature.fixed_if is not None:
            condition = Condition.parsed(feature.fixed_if)
            other = schema[condition.column]
            named |= {
                column
                for column, category in zip(other.columns, other.categories, strict=False)
                if condition.value in (category, in_words(category))
            }
    return named


def leaving_out(schema: FeatureSchema, columns: Collection[str]) -> FeatureSchema:
    """The schema without the categories of these columns of schema space, guessed or declared.

    Moves to and from them go with them; a relation or condition that names one is refused by the schema itself.
    """

    def lesser(feature: Feature) -> Feature:
        places = zip(feature.columns, feature.categories, strict=False)
        gone = {category for column, category in places if column in columns}
        if not gone:
            return feature
        moves = None
        if feature.changes is not None:
            kept = {before: after for before, after in feature.changes.items() if before not in gone}
            moves = {before: tuple(c for c in after if c not in gone) for before, after in kept.items()}
        return replace(feature, categories=tuple(c for c in feature.categories if c not in gone), changes=moves)

    features = tuple(lesser(feature) for feature in schema)
    guess = schema.guessed
    if guess is not None:
        said = {f.name: _said(f, guess.still_guessed(old)) for old, f in zip(schema, features, strict=True)}
        guess = replace(guess, features=said)
    return replace(schema, features=features, guessed=guess)


def _is_open(group: str, schema: FeatureSchema, frame: pd.DataFrame) -> bool:
    """Whether some row has no column of the group, or a rule counts on it."""
    names = [feature.name for feature in schema if feature.group == group]
    counted_on = any(None in after for after in schema.group_changes.get(group, {}).values())
    return counted_on or bool((frame[names].to_numpy(dtype=np.float64).sum(axis=1) == 0).any())
