"""What a person thinks of as one thing: a feature, or all columns of a one-hot group."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from rocerf.data.columns import in_words

if TYPE_CHECKING:
    from rocerf.data.schema import FeatureSchema


@dataclass(frozen=True)
class Attribute:
    """What a person thinks of as one thing: its places in schema space, and its values if it is a category.

    ``words`` are the categories as people read them. ``complete`` says whether exactly one of the columns is 1; else
    none may be (a left-out reference category), but for people at one of the places ``tied``. The value of a
    ``private`` one is not to be printed.
    """

    name: str
    label: str
    places: tuple[int, ...]
    categories: tuple[Any, ...] | None = None
    words: tuple[str, ...] = ()
    complete: bool = True
    tied: tuple[int, ...] = ()
    private: bool = False


def attributes_of(schema: FeatureSchema) -> tuple[Attribute, ...]:
    """What people think of as one thing each, in the order of their first columns."""
    found: dict[tuple[bool, str], Attribute] = {}  # by whether it is a group, and its name
    for feature, columns in schema.slices:
        if feature.group is None:
            places, words = tuple(range(columns.start, columns.stop)), tuple(map(in_words, feature.categories))
            what = (feature.name, feature.display, places, feature.categories or None, words)
            attribute = Attribute(*what, private=feature.private)
            found[False, feature.name] = attribute
        elif (True, feature.group) not in found:
            found[True, feature.group] = _group(schema, feature.group)
    return tuple(found.values())


def _group(schema: FeatureSchema, group: str) -> Attribute:
    """A one-hot group; where all its columns are labelled "attribute: category", people read just that."""
    members = [(place, f) for place, f in enumerate(schema.column_features) if f.group == group]
    parts = [feature.display.partition(": ") for _, feature in members]
    split = len({part[0] for part in parts}) == 1 and all(part[2] for part in parts)
    changes = schema.group_changes.get(group, {})
    return Attribute(
        group,
        parts[0][0] if split else group,
        tuple(place for place, _ in members),
        tuple(feature.name for _, feature in members),
        tuple(part[2] if split else feature.display for part, (_, feature) in zip(parts, members, strict=True)),
        group not in schema.open_groups,
        tuple(place for place, feature in members if None not in changes.get(feature.name, (None,))),
        any(feature.private for _, feature in members),
    )
