"""Between the user's own columns (a DataFrame with texts, whole numbers, missing values) and schema space."""

from __future__ import annotations

from collections.abc import Hashable, Mapping, Sequence
from dataclasses import dataclass, field
from decimal import Decimal
from functools import cached_property
from numbers import Real
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from rocerf.data.columns import in_words, people_matrix, plain, refuse_no_numbers, some
from rocerf.data.feature import Feature, Kind
from rocerf.data.foreign import as_pandas, is_frame
from rocerf.data.schema import FeatureSchema
from rocerf.data.types_of_columns import able_to_miss, in_type, type_named
from rocerf.errors import ColumnError
from rocerf.types import Array

if TYPE_CHECKING:
    import pandas as pd


#: Floating-point types of pandas with fewer than 64 bits.
NARROW: Mapping[str, type[np.float32 | np.float16]] = {
    "float32": np.float32,
    "float[pyarrow]": np.float32,
    "float16": np.float16,
    "halffloat[pyarrow]": np.float16,
}

#: Characters of a cell in a message.
LONGEST_SHOWN = 60


@dataclass(frozen=True, eq=False)
class Frames:
    """Encodes rows of the user's columns as points of schema space and decodes points into the same columns and types.

    ``dtypes`` are pandas' names of the columns' types; ``fills`` says which number stands for a missing one, where the
    model fills it in; ``nones`` are the columns whose missing values are None and not NaN, which pipelines tell apart;
    ``ordered`` are the pandas categories with an order; ``marks`` the columns whose fill is a number that nobody has,
    and comes out missing; ``kept`` the columns in which a missing number stays missing, having no distance to any.

    Examples
    --------
    >>> import pandas as pd
    >>> df = pd.DataFrame({"age": [30, 50], "home": ["own", "rent"]})
    >>> frames = Frames.of(FeatureSchema.from_frame(df), df)
    >>> matrix, index, problems = frames.encode(df)
    >>> matrix.tolist()
    [[30.0, 1.0, 0.0], [50.0, 0.0, 1.0]]
    >>> frames.decode(matrix[::-1], index=index).values.tolist()
    [[50, 'rent'], [30, 'own']]
    """

    schema: FeatureSchema
    dtypes: Mapping[str, str]
    fills: Mapping[str, float] = field(default_factory=dict)
    nones: tuple[str, ...] = ()
    ordered: tuple[str, ...] = ()
    marks: tuple[str, ...] = ()
    kept: tuple[str, ...] = ()

    @classmethod
    def of(cls, schema: FeatureSchema, frame: pd.DataFrame, fills: Mapping[str, float] | None = None) -> Frames:
        """With the types of this frame's columns."""
        frame = named(schema, frame)
        dtypes = {name: str(frame[name].dtype) for name in schema.names}
        nones = [name for name in schema.names if dtypes[name] == "object" and _has_none(frame[name])]
        ordered = [name for name in schema.names if getattr(frame[name].dtype, "ordered", None)]
        return cls(schema, dtypes, dict(fills or {}), tuple(nones), tuple(ordered))

    @property
    def columns(self) -> tuple[str, ...]:
        """Names of the columns of schema space."""
        return self.schema.columns

    @cached_property
    def narrow(self) -> NDArray[np.bool_]:
        """Columns of schema space whose numbers the user keeps in fewer than 64 bits, and which have no steps, (d,)."""
        return np.array(
            [
                feature.kind is Kind.CONTINUOUS and feature.step is None and self._held_as(feature.name) is not None
                for feature in self.schema.column_features
            ],
            bool,
        )

    def _held_as(self, name: str) -> type[np.float32 | np.float16] | None:
        """The narrow type of floating-point numbers that a column has, if it has one."""
        return NARROW.get(self.dtypes.get(name, "float64").lower())

    def next_held(self, column: int, number: float, towards: float) -> float:
        """The number itself, where a narrow column of schema space can hold it, or else the next one that it can.

        >>> import pandas as pd
        >>> df = pd.DataFrame({"income": np.array([1.5, 2.5, 2.25], "float32")})
        >>> frames = Frames.of(FeatureSchema.from_frame(df), df)
        >>> frames.next_held(0, 0.1, np.inf), frames.next_held(0, 2.5, np.inf)
        (0.10000000149011612, 2.5)
        """
        kind = self._held_as(self.schema.column_features[column].name)
        assert kind is not None
        with np.errstate(over="ignore"):  # beyond what the type can hold
            held = kind(number)
            beyond = float(held) < number if towards > number else float(held) > number
            return float(np.nextafter(held, kind(towards)) if beyond else held)

    def are_of(self, X: Any) -> bool:
        """Whether X is a DataFrame with the user's own columns, and not a table of points of schema space.

        What is neither is refused here, in terms of the user's columns: a frame that lacks some, a single person as a
        Series or a dict, texts without names.
        """
        X = as_pandas(X)
        if not is_frame(X):
            if _is_person_or_texts(X):
                raise _no_frame(self.schema, X)
            return False
        given, own = set(map(str, X.columns)), set(self.schema.names)
        if own <= given:
            return True
        if not given & (set(self.columns) - own) and not set(self.columns) <= given:
            named(self.schema, X)  # refuses: nothing in it is of schema space alone
        return False

    def encode(self, frame: pd.DataFrame) -> tuple[Array, NDArray[Any], list[str]]:
        """Points (P, d), the frame's index, and for each row what makes it no value of the schema, or "".

        Rows with a problem have NaN in the columns concerned.
        """
        frame = named(self.schema, frame)
        matrix = np.full((len(frame), len(self.columns)), np.nan)
        problems = [""] * len(frame)
        for feature, columns in self.schema.slices:
            matrix[:, columns], wrong = self._encoded(feature, frame[feature.name])
            for row, said in wrong.items():
                problems[row] = problems[row] or said
        for row, said in enumerate(self.schema.problems(matrix, self.missing(frame))):
            problems[row] = problems[row] or said
        return matrix, np.asarray(frame.index), problems

    def _encoded(self, feature: Feature, column: pd.Series[Any]) -> tuple[Array, dict[int, str]]:
        if feature.kind is not Kind.CATEGORICAL:
            refuse_no_numbers(feature.name, column)
            numbers = np.where(column.isna().to_numpy(), self.fills.get(feature.name, np.nan), _numbers(column))
            bad = np.flatnonzero(~np.isfinite(numbers))
            numbers[bad] = np.nan
            return numbers[:, None], {
                int(row): f"{feature.display!r} is {_shown(column.iloc[row])}, expected a number" for row in bad
            }
        places = {value: place for place, value in enumerate(feature.categories)}
        codes = np.array([_place(value, places) for value in column], dtype=np.intp)
        encoded = np.where(codes[:, None] >= 0, codes[:, None] == np.arange(len(places)), np.nan)
        known = ", ".join(map(in_words, feature.categories[:8]))
        texts = all(isinstance(category, str) for category in feature.categories if category is not None)
        wrong = {int(row): column.iloc[row] for row in np.flatnonzero(codes < 0)}
        return encoded, {
            row: f"{feature.display!r} is {_shown(value)}, expected one of "
            f"{'' if _fits(value, texts) else 'the texts '}{known}"
            for row, value in wrong.items()
        }

    def missing(self, frame: pd.DataFrame) -> tuple[tuple[str, ...], ...]:
        """The features that each row of the frame has no value of."""
        frame = named(self.schema, frame)
        gone = {feature.name: frame[feature.name].isna().to_numpy() for feature in self.schema}
        gone = {name: rows for name, rows in gone.items() if rows.any()}
        return tuple(tuple(name for name, rows in gone.items() if rows[row]) for row in range(len(frame)))

    def decode(
        self,
        matrix: Array,
        *,
        index: Any = None,
        people: Array | None = None,
        missing: Sequence[Sequence[str]] | None = None,
    ) -> pd.DataFrame:
        """Points (P, d) in the user's columns and types; rows of NaN come out missing, in types that can say so.

        ``people`` (P, d) are the encoded rows that the points started from and ``missing`` the features they came
        without: what was missing and has not changed is missing again. Whole numbers are given as such where the schema
        says that they are. A type that cannot hold the values gives way to one that can: a recommended number is never
        rounded to one of 32 bits.
        """
        import pandas as pd

        given = np.asarray(np.isfinite(matrix).all(axis=1))
        columns: dict[str, Any] = {}
        for feature, part in self.schema.slices:
            known = given
            if people is not None and missing is not None and feature.kind is not Kind.CATEGORICAL:
                gone = np.array([feature.name in names for names in missing], bool)
                known = given & ~(gone & (matrix[:, part] == people[:, part]).all(axis=1))
            if feature.name in self.marks:
                known = known & (matrix[:, part.start] != self.fills[feature.name])
            columns[feature.name] = self._decoded(feature, matrix[:, part], known)
        frame = pd.DataFrame(columns)
        frame.index = pd.RangeIndex(len(matrix)) if index is None else pd.Index(index)
        return frame

    def _decoded(self, feature: Feature, values: Array, given: NDArray[np.bool_]) -> pd.Series[Any]:
        dtype = self.dtypes.get(feature.name, "float64")
        if feature.kind is Kind.CATEGORICAL:
            return self._categories(feature, values, given, dtype)
        numbers = values[:, 0]
        whole = feature.kind in (Kind.INTEGER, Kind.BINARY)
        # A number that the model fills in for a missing one need not be whole.
        whole = whole and bool(np.isclose(numbers[given], np.rint(numbers[given]), rtol=0.0, atol=1e-6).all())
        return in_type(np.where(given, np.rint(numbers) if whole else numbers, np.nan), dtype)

    def _categories(self, feature: Feature, values: Array, given: NDArray[np.bool_], dtype: str) -> pd.Series[Any]:
        import pandas as pd

        places = np.where(given[:, None], values, 0.0).argmax(axis=1)
        if given.all() and None not in feature.categories:
            known = self._known(feature, dtype)
            if known is not None:
                return known.take(places).reset_index(drop=True)
        names = np.empty(len(values), dtype=object)
        names[:] = [feature.categories[place] if ok else None for place, ok in zip(places, given, strict=True)]
        if dtype == "category":
            categories = [category for category in feature.categories if category is not None]
            return pd.Series(pd.Categorical(names, categories=categories, ordered=feature.name in self.ordered))
        missing = pd.isna(names)
        if feature.name not in self.nones:
            names[missing] = np.nan
        texts = pd.Series(names, dtype=object)
        try:
            series = pd.Series(names, dtype=type_named(able_to_miss(dtype) if missing.any() else dtype))
        except (TypeError, ValueError, NotImplementedError):  # categories that this type cannot hold
            return texts
        return series if series.dropna().tolist() == texts.dropna().tolist() else texts

    def _known(self, feature: Feature, dtype: str) -> pd.Series[Any] | None:
        """The categories of a feature in the type of its column; None where that cannot hold them as they are."""
        import pandas as pd

        names = np.empty(len(feature.categories), dtype=object)
        names[:] = feature.categories
        if dtype == "category" or pd.isna(names).any():
            return None
        try:
            series = pd.Series(names, dtype=type_named(dtype))
        except (TypeError, ValueError, NotImplementedError):
            return None
        return series if series.tolist() == names.tolist() else None

    def to_dict(self) -> dict[str, Any]:
        """Plain values for JSON."""
        return {
            "schema": self.schema.to_dict(),
            "dtypes": dict(self.dtypes),
            "fills": dict(self.fills),
            "nones": list(self.nones),
            "ordered": list(self.ordered),
            **({"marks": list(self.marks)} if self.marks else {}),
            **({"kept": list(self.kept)} if self.kept else {}),
        }

    @classmethod
    def from_dict(cls, document: Mapping[str, Any]) -> Frames:
        """The inverse of :meth:`to_dict`."""
        schema = FeatureSchema.from_dict(document["schema"])
        rest = (tuple(document.get(name, ())) for name in ("nones", "ordered", "marks", "kept"))
        return cls(schema, document["dtypes"], document["fills"], *rest)


def people_in_schema_space(X: Any, frames: Frames) -> Array:
    """People (P, d) as points, from the user's own columns, or given in those of schema space."""
    if frames.are_of(X):
        return frames.encode(X)[0]
    matrix, _ = people_matrix(X, frames.columns, named=True)
    return matrix


def _has_none(column: pd.Series[Any]) -> bool:
    return any(value is None for value in column[column.isna().to_numpy()])


def _numbers(column: pd.Series[Any]) -> Array:
    """A column's cells as numbers, each by itself: NaN where a cell is none."""
    import pandas as pd

    if pd.api.types.is_numeric_dtype(column.dtype):
        return np.asarray(column.to_numpy(dtype=np.float64, na_value=np.nan))
    return np.array([_number(value) for value in column], dtype=np.float64)


def _number(value: Any) -> float:
    """A cell as a number; texts that are one count, as in tables read from files."""
    written = isinstance(value, str) and "_" not in value  # 1_000 is a number to Python only
    if not (written or isinstance(value, Real | Decimal | np.bool_)):
        return np.nan
    try:
        return float(value)
    except (ValueError, OverflowError):
        return np.nan


def _place(value: Any, places: Mapping[Any, int]) -> int:
    """Where a cell stands among the categories, -1 where it does not: every kind of missing is None."""
    import pandas as pd

    if isinstance(value, str):  # most cells
        return places.get(value, -1)
    if pd.api.types.is_scalar(value) and pd.isna(value):
        value = None
    value = plain(value)
    return places.get(value, -1) if isinstance(value, Hashable) and not isinstance(value, tuple) else -1


def _fits(value: Any, texts: bool) -> bool:
    """Whether a cell is of the kind of the categories, as far as they are all texts."""
    return isinstance(value, str) or not texts or _is_gap(value)


def _is_gap(value: Any) -> bool:
    """Whether a cell is a missing value, of whatever kind."""
    import pandas as pd

    return value is None or value is pd.NA or value is pd.NaT or (isinstance(value, float) and np.isnan(value))


def _shown(value: Any) -> str:
    """A cell in a message: short, whatever it is."""
    if _is_gap(value):
        return "missing"
    try:
        text = repr(value.item() if isinstance(value, np.generic) else value)
    except ValueError:  # Python writes no whole number of thousands of digits
        text = f"a {type(value).__name__}"
    return text if len(text) <= LONGEST_SHOWN else f"{text[: LONGEST_SHOWN - 3]}..."


def named(schema: FeatureSchema, frame: Any) -> Any:
    """The frame with texts as names of its columns, each column of the schema once."""
    frame = as_pandas(frame)
    if not is_frame(frame):
        raise _no_frame(schema, frame)
    names: Sequence[str] = list(map(str, frame.columns))
    absent = [name for name in schema.names if name not in names]
    repeated = [name for name in schema.names if names.count(name) > 1]
    if absent or repeated:
        got = f"none named {some(absent)}" if absent else f"{repeated[0]!r} several times"
        raise ColumnError(f"Expected each column of the schema once, got {got}; add, rename or drop columns.")
    return frame.set_axis(names, axis=1)


def _no_frame(schema: FeatureSchema, X: Any) -> ColumnError:
    """The refusal of what has no columns with names."""
    return ColumnError(
        f"Expected a DataFrame with the columns {', '.join(schema.names[:5])}{', ...' if len(schema) > 5 else ''}, got "
        f"{type(X).__name__}; pass a DataFrame, which keeps the names and the categories; one person as df.iloc[[0]]."
    )


def _is_person_or_texts(X: Any) -> bool:
    """Whether X, no DataFrame, is one person with names, or holds texts: no table of numbers."""
    import pandas as pd

    if isinstance(X, Mapping | pd.Series):
        return True
    try:
        cells = np.asarray(X)
    except ValueError:  # rows of different lengths
        return False
    return cells.dtype.kind in "US" or (
        cells.dtype.kind == "O" and any(isinstance(cell, str | Mapping) for cell in cells.flat)
    )
