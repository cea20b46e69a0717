"""What the columns mean and what a person may change about them.

A schema lists *features*, the columns as users know them. *Schema space*, in which points, costs and cuts live, has one
column for each number and each yes/no question, and one 0/1 column for each category of a categorical feature. An
*attribute* is what a person thinks of as one thing: a feature, or all columns of a one-hot group.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import cached_property
from itertools import accumulate
from os import PathLike
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from rocerf.data.attribute import Attribute, attributes_of
from rocerf.data.columns import first_repeated, in_words
from rocerf.data.feature import NUMBERS_ALONE, Direction, Feature, Kind, checked_changes, listed, refuse_unknown_fields
from rocerf.data.guess import Guess
from rocerf.data.rules import Condition, Relation
from rocerf.errors import ColumnError, SchemaError
from rocerf.storage.state import State
from rocerf.types import Array

if TYPE_CHECKING:
    import pandas as pd

__all__ = ["Attribute", "Direction", "Feature", "FeatureSchema", "Kind", "Relation"]


@dataclass(frozen=True)
class FeatureSchema:
    """Features in order, with their rules.

    Parameters
    ----------
    features : sequence of Feature
        One for each column of the table, in its order.
    relations : sequence of Relation or str
        Linear relations that must hold, such as "months_employed <= 12 * age"; a category is the column
        ``feature=category``, in backticks.
    group_changes : mapping from group to allowed changes
        For one-hot groups of 0/1 columns: from column to columns, as a feature's ``changes``. In an open group None
        among the columns stands for the reference category.
    open_groups : sequence of str
        Groups in which every column may be 0, because their reference category was left out.
    guessed : Guess, optional
        What :meth:`from_frame` read off the rows. Where a feature still says the same, it is guessed again when rows
        are forgotten; what was edited since, or written without a guess, is declared and stays.

    Examples
    --------
    >>> schema = FeatureSchema.free(["age", "income"]).edit("age", direction="fixed").edit("income", lower=0)
    >>> lower, upper = schema.box(np.array([[40.0, 10.0]]))
    >>> lower.tolist(), upper.tolist()
    ([[40.0, 0.0]], [[40.0, inf]])
    """

    features: tuple[Feature, ...]
    relations: tuple[Relation, ...] = ()
    group_changes: Mapping[str, Mapping[str, tuple[str, ...]]] = field(default_factory=dict)
    open_groups: tuple[str, ...] = ()
    guessed: Guess | None = field(default=None, compare=False, repr=False)

    if TYPE_CHECKING:
        # The constructor takes more than the fields hold afterwards: lists for the tuples, relations in words.
        def __init__(
            self,
            features: Iterable[Feature],
            relations: Iterable[Relation | str] = (),
            group_changes: Mapping[str, Mapping[Any, Any]] = ...,
            open_groups: Iterable[str] = (),
            guessed: Guess | None = None,
        ) -> None: ...

    def __post_init__(self) -> None:
        object.__setattr__(self, "features", tuple(listed(self.features, "features")))
        strange = [feature for feature in self.features if not isinstance(feature, Feature)]
        if strange:
            raise SchemaError(
                f"Expected a list of Feature objects, got {strange[0]!r} in it; write Feature(name, ...)."
            )
        _refuse_other_than_mappings({"group_changes": self.group_changes})
        for names in (self.names, self.columns):
            if (repeated := first_repeated(names)) is not None:
                raise SchemaError(f"Expected each feature once, got {repeated!r} twice; rename one.")
        object.__setattr__(self, "relations", tuple(_relations(self.relations)))
        for relation in self.relations:
            relation.row(self.columns)
        groups = {feature.group for feature in self.features if feature.group is not None}
        object.__setattr__(self, "open_groups", tuple(listed(self.open_groups, "open_groups")))
        unknown = [name for name in (*self.group_changes, *self.open_groups) if name not in groups]
        if unknown:
            raise SchemaError(
                f"Expected names of one-hot groups ({', '.join(sorted(groups)) or 'there are none'}), got "
                f"{unknown[0]!r}; a categorical feature has its own changes."
            )
        changes = {name: self._checked_changes(name, given) for name, given in self.group_changes.items()}
        object.__setattr__(self, "group_changes", changes)
        for feature in self.features:
            if feature.name in groups and feature.group != feature.name:
                raise SchemaError(
                    f"Expected groups and features with different names, got {feature.name!r} for both; rename one."
                )
            if feature.fixed_if is not None:
                self._check_condition(feature.name, feature.fixed_if)

    def _check_condition(self, name: str, words: str) -> None:
        condition = Condition.parsed(words)
        if condition.column not in self.names:
            raise SchemaError(
                f"Expected a feature of the schema in the condition {words!r} of {name!r}; known: "
                f"{', '.join(self.names[:20])}."
            )
        condition.refuse_strange_values(words, name, self[condition.column].categories)

    def _checked_changes(self, group: str, given: Any) -> dict[Any, tuple[Any, ...]]:
        columns = tuple(feature.name for feature in self.features if feature.group == group)
        changes = checked_changes(given, (*columns, None) if group in self.open_groups else columns, group)
        if None in changes:
            raise SchemaError(
                f"Expected changes of {group!r} from columns, got some from its reference category; people there may "
                "go anywhere, so leave it out or make it a column."
            )
        return changes

    @classmethod
    def free(cls, columns: Iterable[str]) -> FeatureSchema:
        """Every column may change without limit: the paper's setting."""
        return cls(tuple(Feature(str(name)) for name in columns))

    @classmethod
    def from_frame(
        cls,
        frame: pd.DataFrame,
        *,
        immutable: Sequence[str] = (),
        integer: Sequence[str] = (),
        increase_only: Sequence[str] = (),
        decrease_only: Sequence[str] = (),
        bounds: Mapping[str, tuple[float, float]] | None = None,
        quantiles: tuple[float, float] = (0.0, 1.0),
        units: Mapping[str, str] | None = None,
        labels: Mapping[str, str] | None = None,
        steps: Mapping[str, float] | None = None,
        groups: Mapping[str, Sequence[str]] | None = None,
        relations: Sequence[Relation | str] = (),
        private: Sequence[str] = (),
    ) -> FeatureSchema:
        """A schema guessed from data, to be looked at and corrected.

        Text and pandas categories become categorical, True/False and 0/1 columns binary, whole numbers in columns of an
        integer type integer, other numbers continuous. Bounds are the ``quantiles`` of the column (by default the
        smallest and largest value seen), rounded outwards; ``bounds`` replaces those of the columns it names.
        ``groups`` joins 0/1 columns to one-hot groups by name; without it, columns such as ``pd.get_dummies`` makes are
        joined where no row has two of them (``groups={}`` joins none). ``private`` columns are fixed and not printed.

        >>> import pandas as pd
        >>> df = pd.DataFrame({"age": [30, 50], "home": ["own", "rent"], "married": [0, 1]})
        >>> schema = FeatureSchema.from_frame(df, immutable=["age"])
        >>> [(f.name, str(f.kind), str(f.direction)) for f in schema]
        [('age', 'integer', 'fixed'), ('home', 'categorical', 'any'), ('married', 'binary', 'any')]
        """
        from rocerf.data import schema_guess as guess

        _refuse_other_than_mappings(
            {"bounds": bounds, "units": units, "labels": labels, "steps": steps, "groups": groups}, or_none=True
        )
        private, integer = listed(private, "private"), listed(integer, "integer")
        immutable = [*listed(immutable, "immutable"), *(name for name in private if name not in immutable)]
        increase_only, decrease_only = listed(increase_only, "increase_only"), listed(decrease_only, "decrease_only")
        seen = tuple(guess.guessed_features(frame, quantiles))
        schema = cls(seen, guessed=Guess.of(seen, quantiles=(float(quantiles[0]), float(quantiles[1]))))
        if (repeated := first_repeated([*immutable, *increase_only, *decrease_only])) is not None:
            raise SchemaError(f"Expected one direction for each column, got {repeated!r} listed twice; keep one.")
        directions = ((immutable, "fixed"), (increase_only, "increase"), (decrease_only, "decrease"))
        directed = {name: direction for names, direction in directions for name in names}
        schema = guess.edited(schema, kind=dict.fromkeys(integer, Kind.INTEGER), direction=directed)
        guess.refuse_direction_without_order(schema, frame, [*increase_only, *decrease_only])
        schema = guess.bounded(schema, bounds or {})
        schema = guess.edited(schema, unit=units or {}, label=labels or {}, step=steps or {})
        schema = guess.edited(schema, private=dict.fromkeys(private, True))
        if groups is None:
            return guess.with_guessed_groups(schema, frame).relate(*_relations(relations))
        return guess.grouped(schema, groups, np.asarray(frame)).relate(*_relations(relations))

    @cached_property
    def names(self) -> tuple[str, ...]:
        """Names of the features, the user's own columns, in order."""
        return tuple(feature.name for feature in self.features)

    @cached_property
    def columns(self) -> tuple[str, ...]:
        """Names of the columns of schema space: numbers and questions as they are, categories as ``name=value``."""
        return tuple(column for feature in self.features for column in feature.columns)

    @cached_property
    def column_features(self) -> tuple[Feature, ...]:
        """The feature that each column of schema space belongs to."""
        return tuple(feature for feature in self.features for _ in feature.columns)

    @cached_property
    def slices(self) -> tuple[tuple[Feature, slice], ...]:
        """Each feature with its columns of schema space."""
        ends = list(accumulate((len(feature.columns) for feature in self.features), initial=0))
        return tuple(zip(self.features, map(slice, ends, ends[1:]), strict=False))

    @cached_property
    def labels(self) -> tuple[str, ...]:
        """Words for each column of schema space."""
        return tuple(
            f"{feature.display}: {in_words(value)}" if feature.categories else feature.display
            for feature in self.features
            for value in feature.categories or (None,)
        )

    @cached_property
    def attributes(self) -> tuple[Attribute, ...]:
        """What people think of as one thing each, in the order of their first columns."""
        return attributes_of(self)

    def __len__(self) -> int:
        return len(self.features)

    def __iter__(self) -> Iterator[Feature]:
        return iter(self.features)

    def __getitem__(self, name: str) -> Feature:
        for feature in self.features:
            if feature.name == name:
                return feature
        raise ColumnError(f"Expected a feature of the schema, got {name!r}; known: {', '.join(self.names)}.")

    def __repr__(self) -> str:
        kinds = Counter(str(feature.kind) for feature in self.features)
        fixed = sum(feature.direction is Direction.FIXED for feature in self.features)
        said = [f"{count} {kind}" for kind, count in kinds.items()] + ([f"{fixed} fixed"] if fixed else [])
        said += [f"{len(self.relations)} relations"] if self.relations else []
        return f"FeatureSchema({len(self.features)} features: {', '.join(said)})"

    def __str__(self) -> str:
        from rocerf.data.schema_file import as_table

        return as_table(self)

    def _repr_html_(self) -> str:
        from rocerf.html import tag

        return tag("pre", str(self))

    def edit(self, name: str, /, **changes: Any) -> FeatureSchema:
        """The schema with some fields of one feature replaced.

        Numbers that become categories lose their bounds and steps, which were often guessed:

        >>> codes = FeatureSchema((Feature("job", "integer", lower=1, upper=2),))
        >>> codes.edit("job", kind="categorical", categories=[1, 2])["job"].upper
        inf
        """
        refuse_unknown_fields(changes, name)
        before = self[name]
        if before.kind is not Kind.CATEGORICAL and changes.get("kind") == Kind.CATEGORICAL:
            changes = NUMBERS_ALONE | changes
        edited = replace(before, **changes)
        guess = None if self.guessed is None else self.guessed.without(name, changes)
        return replace(self, features=tuple(edited if f.name == name else f for f in self.features), guessed=guess)

    def relate(self, *relations: Relation | str) -> FeatureSchema:
        """The schema with further relations between its columns.

        >>> FeatureSchema.free(["age", "employed"]).relate("employed <= 12 * age").relations[0].upper
        0.0
        """
        return replace(self, relations=(*self.relations, *_relations(relations)))

    def check_columns(self, columns: Sequence[str]) -> None:
        """Refuse a schema that is not about exactly these columns of schema space in this order."""
        if self.columns != tuple(columns):
            missing = [c for c in columns if c not in self.columns]
            extra = [c for c in self.columns if c not in columns]
            detail = f"missing {missing[:5]}, not in the data {extra[:5]}" if missing or extra else "the order differs"
            raise SchemaError(
                f"Expected a schema for the model's {len(columns)} columns, got one for {len(self.columns)} "
                f"({detail}); build it from the training columns."
            )

    def validate(self, frame: pd.DataFrame) -> tuple[str, ...]:
        """Hold the schema against rows of the user's own columns: refuse what cannot be, say what is unusual.

        Raises SchemaError for missing columns, unknown categories, 0/1 columns with other values and groups that do not
        sum to one. Returns sentences about bounds and relations that some rows break, which is allowed: a person there
        is sent inside.
        """
        from rocerf.data.schema_guess import findings

        return findings(self, frame)

    def box(self, X0: Array, missing: Sequence[Sequence[str]] | None = None) -> tuple[Array, Array]:
        """The allowed box around each person, two arrays of shape (P, d) over the columns of schema space.

        Directions, allowed category changes and conditions are all said by the box. Lower may exceed upper where a
        person's own value and a rule contradict each other (above the bound, but may only rise): such a person has no
        recourse. ``missing`` are the features each of them came without: a number filled in from outside the bounds
        (-1, say) is held, as nobody is sent inside for what they did not give.
        """
        from rocerf.data.box import box_around

        return box_around(self, X0, missing)

    def values_of(self, name: str, X: Array) -> NDArray[Any]:
        """A feature's own values (P,) at points of schema space (P, d)."""
        feature = self[name]
        columns = self.slices[self.names.index(feature.name)][1]
        if feature.kind is not Kind.CATEGORICAL:
            return np.asarray(X[:, columns.start])
        values = np.empty(len(X), dtype=object)
        values[:] = [feature.categories[place] for place in X[:, columns].argmax(axis=1)]
        return values

    @cached_property
    def steps(self) -> tuple[Array, NDArray[np.bool_]]:
        """The distance between allowed values of each column (d,), 0 where all are; and where it counts from own ones.

        Else it counts from 0: whole numbers stay whole numbers.
        """
        features = self.column_features
        sizes = [float(f.kind is not Kind.CONTINUOUS) if f.step is None else f.step for f in features]
        return np.array(sizes), np.array([f.step is not None for f in features])

    def problems(self, X0: Array, missing: Sequence[Sequence[str]] | None = None) -> list[str]:
        """For each person (P, d) what makes their values no values of this schema, or "".

        ``missing`` are the features each of them came without: what a model fills in for an answer need not be one.
        """
        said = [""] * len(X0)
        for attribute in self.attributes:
            values = X0[:, list(attribute.places)]
            if self.column_features[attribute.places[0]].kind not in (Kind.BINARY, Kind.CATEGORICAL):
                continue
            bad = ~np.isin(values, (0.0, 1.0)).all(axis=1)
            if attribute.categories is not None:
                total = values.sum(axis=1)
                bad |= (total != 1) if attribute.complete else (total > 1)
            elif missing is not None:
                bad &= np.array([attribute.name not in names for names in missing], bool)
            for person in np.flatnonzero(bad & np.isfinite(values).all(axis=1)):
                said[person] = said[person] or f"{attribute.label!r} is no one of its categories or not 0 or 1"
        return said

    @cached_property
    def relation_rows(self) -> tuple[Array, Array]:
        """Relations as rows (r, d) and limits (r,): ``rows x <= limits``."""
        rows = [relation.row(self.columns) for relation in self.relations]
        return np.array(rows).reshape(len(rows), len(self.columns)), np.array([r.upper for r in self.relations])

    def to_dict(self) -> dict[str, Any]:
        """Plain values for JSON and YAML; what says nothing is left out."""
        from rocerf.data.schema_file import to_dict

        return to_dict(self)

    @classmethod
    def from_dict(cls, document: Mapping[str, Any]) -> FeatureSchema:
        """The inverse of :meth:`to_dict`."""
        from rocerf.data.schema_file import from_dict

        return from_dict(document)

    def state(self) -> State:
        """The same as a state, to be kept anywhere."""
        values = self.to_dict()
        return State(values.pop("format"), values)

    @classmethod
    def from_state(cls, state: State) -> FeatureSchema:
        """The inverse of :meth:`state`."""
        return cls.from_dict({"format": state.format, **state.values})

    def to_yaml(self, path: str | PathLike[str] | None = None) -> str:
        """The schema as YAML text to edit by hand, also written to ``path`` if given."""
        from rocerf.data.schema_file import to_yaml

        return to_yaml(self, path)

    @classmethod
    def from_yaml(cls, source: str | PathLike[str]) -> FeatureSchema:
        """Read what :meth:`to_yaml` wrote: a path, or the text itself (which has several lines)."""
        from rocerf.data.schema_file import read_yaml

        return read_yaml(source)


def _refuse_other_than_mappings(options: Mapping[str, Any], *, or_none: bool = False) -> None:
    for what, given in options.items():
        if not isinstance(given, Mapping) and not (or_none and given is None):
            raise SchemaError(f"Expected {what} as a mapping by name, got {given!r}; write {{name: ...}}.")


def _relations(given: Iterable[Relation | str]) -> Iterator[Relation]:
    for relation in [given] if isinstance(given, str) else listed(given, "relations"):
        yield from [relation] if isinstance(relation, Relation) else Relation.parsed(relation)
