"""One feature: what it holds, how it is called, and what a person may do about it."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, fields
from enum import StrEnum
from typing import TYPE_CHECKING, Any, Literal

import numpy as np

from rocerf.data.columns import in_words, is_number, plain
from rocerf.data.rules import Condition
from rocerf.errors import SchemaError


class Kind(StrEnum):
    """What a feature holds."""

    CONTINUOUS = "continuous"
    INTEGER = "integer"
    BINARY = "binary"  # 0/1: a yes/no question, or one column of a one-hot group
    CATEGORICAL = "categorical"  # one column of texts (or other values), one of ``categories``


class Direction(StrEnum):
    """Which way a person may move a feature; for categories, along their order."""

    ANY = "any"
    INCREASE = "increase"
    DECREASE = "decrease"
    FIXED = "fixed"


@dataclass(frozen=True)
class Feature:
    """One feature: its name, meaning and rules.

    Parameters
    ----------
    name : str
        The column, as the table calls it.
    kind : "continuous", "integer", "binary" or "categorical"
        Which values it takes.
    label, unit : str
        Words for people.
    lower, upper : float
        Bounds of numbers, in their own unit.
    step : float, optional
        Numbers change by multiples of it, counted from the person's own value.
    direction : "any", "increase", "decrease" or "fixed"
        Of categories: along the order in which they are listed.
    group : str, optional
        The attribute that a 0/1 column is one category of.
    categories : sequence
        The values of a categorical feature; None among them stands for a missing value, which nobody is sent to.
    changes : mapping from category to categories, optional
        Where a person with a category may go; categories that are not named may go anywhere.
    fixed_if : str, optional
        A condition on the person's own values under which the feature cannot change: "age >= 60", "housing == own".
    weight : float
        How much a change counts, relative to the other features.
    private : bool
        Not to be printed: letters, pages and pictures do not show a person's value. Only for what is fixed: a change
        that nobody is told of cannot be made.

    Examples
    --------
    >>> Feature("housing", "categorical", categories=["free", "rent", "own"], direction="increase").columns
    ('housing=free', 'housing=rent', 'housing=own')
    """

    name: str
    kind: Kind = Kind.CONTINUOUS
    label: str = ""
    unit: str = ""
    lower: float = -np.inf
    upper: float = np.inf
    direction: Direction = Direction.ANY
    group: str | None = None
    step: float | None = None
    categories: tuple[Any, ...] = ()
    changes: Mapping[Any, tuple[Any, ...]] | None = None
    fixed_if: str | None = None
    weight: float = 1.0
    private: bool = False

    if TYPE_CHECKING:
        # The constructor takes more than the fields hold afterwards: texts for the enums, lists for the tuples.
        def __init__(
            self,
            name: str,
            kind: Kind | Literal["continuous", "integer", "binary", "categorical"] = Kind.CONTINUOUS,
            label: str = "",
            unit: str = "",
            lower: float = -np.inf,
            upper: float = np.inf,
            direction: Direction | Literal["any", "increase", "decrease", "fixed"] = Direction.ANY,
            group: str | None = None,
            step: float | None = None,
            categories: Iterable[Any] = (),
            changes: Mapping[Any, Any] | None = None,
            fixed_if: str | None = None,
            weight: float = 1.0,
            private: bool = False,
        ) -> None: ...

    def __post_init__(self) -> None:
        object.__setattr__(self, "name", str(self.name))
        for words in ("label", "unit"):
            if not isinstance(getattr(self, words), str):
                raise SchemaError(
                    f"Expected a text as {words} of {self.name!r}, got {getattr(self, words)!r}; leave it out where "
                    "there is none."
                )
        # Plain text is welcome for the enums; rules compare members, so it must not stay text.
        for enum, field in ((Kind, "kind"), (Direction, "direction")):
            try:
                object.__setattr__(self, field, enum(getattr(self, field)))
            except ValueError as error:
                raise SchemaError(
                    f"Expected {field} of {self.name!r} to be one of {', '.join(enum)}, got {getattr(self, field)!r}."
                ) from error
        self._check_bounds()
        self._check_numbers()
        self._check_categories()
        self._check_privacy()
        if self.group is not None and self.kind is not Kind.BINARY:
            raise SchemaError(
                f"Expected a group only for binary columns, got {self.group!r} for {self.name!r}, which is "
                f"{self.kind}; leave it out or make the column binary."
            )
        if self.fixed_if is not None:
            Condition.parsed(self.fixed_if)

    def _check_bounds(self) -> None:
        for side in ("lower", "upper"):
            try:
                object.__setattr__(self, side, float(getattr(self, side)))
            except (TypeError, ValueError) as error:
                raise SchemaError(
                    f"Expected a number as {side} bound of {self.name!r}, got {getattr(self, side)!r}; leave it out "
                    "where there is no bound."
                ) from error
        if self.kind is Kind.BINARY:
            object.__setattr__(self, "lower", max(self.lower, 0.0))
            object.__setattr__(self, "upper", min(self.upper, 1.0))
        if not self.lower <= self.upper or self.lower == np.inf or self.upper == -np.inf:
            raise SchemaError(
                f"Expected lower <= upper for feature {self.name!r}, got {self.lower} and {self.upper}; swap or drop "
                "one."
            )
        if self.kind in (Kind.INTEGER, Kind.BINARY) and np.floor(self.upper) < np.ceil(self.lower):
            raise SchemaError(
                f"Expected a whole number inside the bounds of {self.name!r} ({self.kind}), got {self.lower} and "
                f"{self.upper}; widen them or make it continuous."
            )
        if self.kind is Kind.CATEGORICAL and (np.isfinite(self.lower) or np.isfinite(self.upper)):
            raise SchemaError(
                f"Expected no bounds for the categorical feature {self.name!r}, got {self.lower} and {self.upper}; say "
                "where it may go with direction or changes."
            )

    def _check_numbers(self) -> None:
        if self.step is not None:
            if self.kind not in (Kind.CONTINUOUS, Kind.INTEGER) or not (
                is_number(self.step) and 0 < self.step < np.inf
            ):
                raise SchemaError(
                    f"Expected a step above 0 for a continuous or integer feature, got {self.step!r} for {self.name!r} "
                    f"({self.kind}); correct or drop it."
                )
            if self.kind is Kind.INTEGER and self.step != int(self.step):
                raise SchemaError(f"Expected a whole step for the integer {self.name!r}, got {self.step}; round it.")
            object.__setattr__(self, "step", float(self.step))
        if not (is_number(self.weight) and 0 < self.weight < np.inf):
            raise SchemaError(f"Expected a weight above 0 for {self.name!r}, got {self.weight!r}; 1 is neutral.")
        object.__setattr__(self, "weight", float(self.weight))

    def _check_privacy(self) -> None:
        if not isinstance(self.private, bool | np.bool_):
            raise SchemaError(f"Expected private of {self.name!r} to be true or false, got {self.private!r}.")
        object.__setattr__(self, "private", bool(self.private))
        if self.private and self.direction is not Direction.FIXED:
            raise SchemaError(
                f"Expected {self.name!r} to be fixed where it is private, got direction {self.direction}: nobody can "
                "make a change that is not printed; add direction 'fixed', or leave private out."
            )

    def _check_categories(self) -> None:
        given: Any = self.categories
        if isinstance(given, str) or not isinstance(given, Iterable):
            raise SchemaError(f"Expected a list of categories for {self.name!r}, got {given!r}; write a list.")
        object.__setattr__(self, "categories", tuple(_category(value, self.name) for value in given))
        if (self.kind is Kind.CATEGORICAL) != bool(self.categories):
            raise SchemaError(
                f"Expected categories for categorical features and for no others, got {self.kind} with "
                f"{len(self.categories)} categories for {self.name!r}; give its kind and categories together."
            )
        if len(set(self.columns)) != len(self.columns):
            raise SchemaError(
                f"Expected each category of {self.name!r} once, got {list(self.categories)}; drop copies."
            )
        if self.changes is not None:
            if self.kind is not Kind.CATEGORICAL:
                raise SchemaError(
                    f"Expected changes only for categorical features, got them for {self.name!r} ({self.kind}); for a "
                    "one-hot group give them to the schema, by the group's name."
                )
            object.__setattr__(self, "changes", checked_changes(self.changes, self.categories, self.name))

    @property
    def display(self) -> str:
        """The words shown to people: the label where there is one, else the column name."""
        return self.label or self.name

    @property
    def columns(self) -> tuple[str, ...]:
        """Names of its columns in schema space: itself, or one for each category."""
        if self.kind is not Kind.CATEGORICAL:
            return (self.name,)
        return tuple(f"{self.name}={in_words(value)}" for value in self.categories)


#: Fields that only numbers have, with what says nothing.
NUMBERS_ALONE = {"lower": -np.inf, "upper": np.inf, "step": None}


def _category(value: Any, name: str) -> Any:
    """A category as Python's own value; not a number (NaN) is a missing one."""
    value = plain(value)
    if not (value is None or isinstance(value, str | int | float)):
        raise SchemaError(
            f"Expected the categories of {name!r} to be texts or numbers, got {value!r}; write them as texts, or make "
            "the column numbers."
        )
    return None if isinstance(value, float) and np.isnan(value) else value


def listed(given: Any, what: str) -> Sequence[Any]:
    """What was given, if it is a list (or the like) and no single text."""
    if isinstance(given, str):
        raise SchemaError(f"Expected a list for {what}, got the text {given!r}; write [{given!r}].")
    if not isinstance(given, Iterable):
        raise SchemaError(f"Expected a list for {what}, got {given!r}; leave it out where there is nothing to say.")
    return list(given)


def checked_changes(changes: Any, categories: tuple[Any, ...], name: str) -> dict[Any, tuple[Any, ...]]:
    """Allowed changes with every category known."""
    if not isinstance(changes, Mapping):
        raise SchemaError(f"Expected changes of {name!r} as a mapping from category to categories, got {changes!r}.")
    found = {
        before: tuple([after] if isinstance(after, str) or not isinstance(after, Iterable) else after)
        for before, after in changes.items()
    }
    for before, after in found.items():
        strange = [value for value in (before, *after) if value not in categories]
        if strange:
            raise SchemaError(
                f"Expected changes between categories of {name!r} ({', '.join(map(str, categories))}), got "
                f"{strange[0]!r}; correct the spelling."
            )
    return found


def refuse_unknown_fields(values: Mapping[str, Any], name: Any) -> None:
    """Refuse fields that features do not have."""
    known = [field.name for field in fields(Feature)]
    unknown = [key for key in values if key not in known]
    if unknown:
        raise SchemaError(
            f"Expected fields of a feature ({', '.join(known)}), got {unknown[0]!r} for {name!r}; correct the spelling."
        )
