"""What the columns mean and what a person may change about them.

This first schema knows rules that keep the set of allowed points a box: bounds, immutable
columns, and columns that may only rise or only fall. Kinds are descriptions: the solvers treat
an indicator as any number between its bounds (as the paper does), and results say so.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import asdict, dataclass, fields, replace
from enum import StrEnum
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from rocerf.data.columns import default_columns, numeric_matrix
from rocerf.errors import ColumnError, DataError, SchemaError

if TYPE_CHECKING:
    import pandas as pd


class Kind(StrEnum):
    """What a column holds."""

    NUMERIC = "numeric"
    INDICATOR = "indicator"  # 0/1: one category of a group, or a yes/no question


class Direction(StrEnum):
    """Which way a person may move a column."""

    ANY = "any"
    INCREASE = "increase"
    DECREASE = "decrease"
    FIXED = "fixed"


@dataclass(frozen=True)
class Feature:
    """One column: its name, meaning and rules.

    ``lower`` and ``upper`` are in the column's own unit; ``group`` names the categorical
    attribute an indicator belongs to.
    """

    name: str
    kind: Kind = Kind.NUMERIC
    label: str = ""
    unit: str = ""
    lower: float = -np.inf
    upper: float = np.inf
    direction: Direction = Direction.ANY
    group: str | None = None

    def __post_init__(self) -> None:
        # Plain text is welcome for the enums; box() compares members, so it must not stay text.
        for enum, field in ((Kind, "kind"), (Direction, "direction")):
            try:
                object.__setattr__(self, field, enum(getattr(self, field)))
            except ValueError as error:
                raise SchemaError(
                    f"Expected {field} of {self.name!r} to be one of {', '.join(enum)}, got {getattr(self, field)!r}."
                ) from error
        for side in ("lower", "upper"):
            try:
                object.__setattr__(self, side, float(getattr(self, side)))
            except (TypeError, ValueError) as error:
                raise SchemaError(
                    f"Expected a number as {side} bound of {self.name!r}, got {getattr(self, side)!r}; "
                    "leave it out where there is no bound."
                ) from error
        if not self.lower <= self.upper or self.lower == np.inf or self.upper == -np.inf:
            raise SchemaError(
                f"Expected lower <= upper for feature {self.name!r}, got {self.lower} and {self.upper}; "
                "swap or drop one."
            )

    @property
    def display(self) -> str:
        """The words shown to people: the label where there is one, else the column name."""
        return self.label or self.name


@dataclass(frozen=True)
class FeatureSchema:
    """The columns of schema space, in order, with their rules.

    Examples
    --------
    >>> schema = FeatureSchema.free(["age", "income"]).edit("age", direction="fixed").edit("income", lower=0)
    >>> lower, upper = schema.box(np.array([[40.0, 10.0]]))
    >>> lower.tolist(), upper.tolist()
    ([[40.0, 0.0]], [[40.0, inf]])
    """

    features: tuple[Feature, ...]

    def __post_init__(self) -> None:
        names = self.names
        if len(set(names)) != len(names):
            repeated = next(name for name in names if names.count(name) > 1)
            raise SchemaError(f"Expected each feature once, got {repeated!r} twice; rename one.")

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
        increase_only: Sequence[str] = (),
        decrease_only: Sequence[str] = (),
        bounds: Mapping[str, tuple[float, float]] | None = None,
        units: Mapping[str, str] | None = None,
    ) -> FeatureSchema:
        """A schema guessed from data: 0/1 columns are indicators, bounds are the smallest and largest value seen.

        ``bounds`` replaces the guessed bounds of the columns it names.

        >>> import pandas as pd
        >>> df = pd.DataFrame({"age": [30, 50], "owns_home": [0, 1]})
        >>> schema = FeatureSchema.from_frame(df, immutable=["age"])
        >>> [(f.name, str(f.kind), str(f.direction)) for f in schema]
        [('age', 'numeric', 'fixed'), ('owns_home', 'indicator', 'any')]
        """
        values, columns, _ = numeric_matrix(frame, what="the rows of the schema")
        if len(values) == 0:
            raise DataError("Expected at least one row to take the bounds from, got none; check the file or filter.")
        features = []
        for j, name in enumerate(columns or default_columns(values.shape[1])):
            column = values[:, j]
            kind = Kind.INDICATOR if np.isin(column, (0.0, 1.0)).all() else Kind.NUMERIC
            features.append(Feature(name, kind=kind, lower=float(column.min()), upper=float(column.max())))
        schema = cls(tuple(features))
        directed = [*immutable, *increase_only, *decrease_only]
        if len(set(directed)) != len(directed):
            repeated = next(name for name in directed if directed.count(name) > 1)
            raise SchemaError(f"Expected one direction for each column, got {repeated!r} listed twice; keep one.")
        for names, direction in (
            (immutable, Direction.FIXED),
            (increase_only, Direction.INCREASE),
            (decrease_only, Direction.DECREASE),
        ):
            for name in names:
                schema = schema.edit(name, direction=direction)
        for name, pair in (bounds or {}).items():
            if not isinstance(pair, Sequence) or len(pair) != 2:
                raise SchemaError(f"Expected (lower, upper) as bounds of {name!r}, got {pair!r}; pass two numbers.")
            schema = schema.edit(name, lower=pair[0], upper=pair[1])
        for name, unit in (units or {}).items():
            schema = schema.edit(name, unit=unit)
        return schema

    @property
    def names(self) -> tuple[str, ...]:
        """Column names in order."""
        return tuple(feature.name for feature in self.features)

    def __len__(self) -> int:
        return len(self.features)

    def __iter__(self) -> Iterator[Feature]:
        return iter(self.features)

    def __getitem__(self, name: str) -> Feature:
        for feature in self.features:
            if feature.name == name:
                return feature
        raise ColumnError(f"Expected a feature of the schema, got {name!r}; known: {', '.join(self.names)}.")

    def edit(self, name: str, /, **changes: Any) -> FeatureSchema:
        """The schema with some fields of one feature replaced."""
        _refuse_unknown_fields(changes, name)
        edited = replace(self[name], **changes)
        return FeatureSchema(tuple(edited if f.name == name else f for f in self.features))

    def check_columns(self, columns: Sequence[str]) -> None:
        """Refuse a schema that is not about exactly these columns in this order."""
        if self.names != tuple(columns):
            missing = [c for c in columns if c not in self.names]
            extra = [c for c in self.names if c not in columns]
            detail = f"missing {missing[:5]}, not in the data {extra[:5]}" if missing or extra else "the order differs"
            raise SchemaError(
                f"Expected a schema for the model's {len(columns)} columns, got one for {len(self)} ({detail}); "
                "build it from the training columns."
            )

    def box(self, X0: NDArray[np.float64]) -> tuple[NDArray[np.float64], NDArray[np.float64]]:
        """The allowed box around each person, two arrays of shape (P, d).

        Lower may exceed upper where a person's own value and a rule contradict each other
        (above the bound, but may only rise): such a person has no recourse.
        """
        lower = np.broadcast_to([f.lower for f in self.features], X0.shape).copy()
        upper = np.broadcast_to([f.upper for f in self.features], X0.shape).copy()
        for j, feature in enumerate(self.features):
            if feature.direction is Direction.FIXED:
                lower[:, j] = upper[:, j] = X0[:, j]
            elif feature.direction is Direction.INCREASE:
                lower[:, j] = np.maximum(lower[:, j], X0[:, j])
            elif feature.direction is Direction.DECREASE:
                upper[:, j] = np.minimum(upper[:, j], X0[:, j])
        return lower, upper

    def to_dict(self) -> list[dict[str, Any]]:
        """Plain values for JSON, infinite bounds as null."""
        rows = []
        for feature in self.features:
            row = asdict(feature)
            for side in ("lower", "upper"):
                row[side] = row[side] if np.isfinite(row[side]) else None
            rows.append(row)
        return rows

    @classmethod
    def from_dict(cls, rows: Iterable[Mapping[str, Any]]) -> FeatureSchema:
        """The inverse of :meth:`to_dict`."""
        features = []
        for row in rows:
            values = dict(row)
            if "name" not in values:
                raise SchemaError(f"Expected a name for every feature, got {values!r}; add 'name'.")
            _refuse_unknown_fields(values, values["name"])
            for side, unbounded in (("lower", -np.inf), ("upper", np.inf)):
                if values.get(side) is None:
                    values[side] = unbounded
            features.append(Feature(**values))
        return cls(tuple(features))


def _refuse_unknown_fields(values: Mapping[str, Any], name: Any) -> None:
    known = [field.name for field in fields(Feature)]
    unknown = [key for key in values if key not in known]
    if unknown:
        raise SchemaError(
            f"Expected fields of a feature ({', '.join(known)}), got {unknown[0]!r} for {name!r}; correct the spelling."
        )
