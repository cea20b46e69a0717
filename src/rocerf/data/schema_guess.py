"""What a table says about its columns: guessed features, and where rows and schema disagree."""

from __future__ import annotations

import sys
from collections.abc import Collection, Hashable, Iterator, Mapping, Sequence
from dataclasses import replace
from decimal import ROUND_CEILING, ROUND_FLOOR, Decimal
from math import floor, isfinite, log10
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from rocerf.data.columns import default_columns, is_number, plain, refuse_no_numbers, without_decimals
from rocerf.data.feature import Feature, Kind, listed
from rocerf.data.foreign import as_pandas, is_frame
from rocerf.data.group_guess import guessed_groups
from rocerf.errors import ColumnError, DataError, SchemaError

if TYPE_CHECKING:
    import pandas as pd

    from rocerf.data.schema import FeatureSchema

#: A text column with more values than this is no category but a name or a number in disguise.
MOST_CATEGORIES = 100

#: Guessed bounds are rounded outwards to so many digits behind the first one of their distance.
BOUND_DIGITS = 2

#: The largest number of float64.
MOST = sys.float_info.max

#: Up to here float64 has every whole number.
MOST_WHOLE = 2.0**53


def guessed_features(frame: Any, quantiles: tuple[float, float]) -> Iterator[Feature]:
    """A feature for each column, with its kind and bounds guessed."""
    import pandas as pd

    frame = as_pandas(frame)
    if not is_frame(frame):
        array = np.asarray(frame)
        if array.ndim != 2:
            raise ColumnError(f"Expected a table (rows x columns), got shape {array.shape}; pass a DataFrame.")
        frame = pd.DataFrame(array, columns=list(default_columns(array.shape[1])))
    if len(frame) == 0:
        raise DataError("Expected at least one row to take the bounds from, got none; check the file or filter.")
    if (
        not isinstance(quantiles, Sequence)
        or len(quantiles) != 2
        or not all(is_number(q) for q in quantiles)
        or not 0 <= quantiles[0] < quantiles[1] <= 1
    ):
        raise SchemaError(f"Expected quantiles as two shares such as (0.01, 0.99), got {quantiles!r}; correct them.")
    for place, name in enumerate(frame.columns):
        yield guessed_feature(str(name), frame.iloc[:, place], quantiles)


def guessed_feature(
    name: str,
    column: pd.Series[Any],
    quantiles: tuple[float, float],
    *,
    whole: bool = False,
    rounded: bool = True,
) -> Feature:
    """What this column says about itself; ``whole`` numbers it is known to hold, whatever its type.

    Bounds are ``rounded`` outwards.
    """
    import pandas as pd

    refuse_no_numbers(name, column)
    column = without_decimals(column)
    dtype = column.dtype
    known = column.dropna()
    if isinstance(dtype, pd.CategoricalDtype):
        values = [plain(value) for value in dtype.categories]
        return Feature(name, Kind.CATEGORICAL, categories=(*values, *_missing(column)))
    if pd.api.types.is_bool_dtype(dtype) and not column.isna().any():
        return Feature(name, Kind.BINARY)
    if not pd.api.types.is_numeric_dtype(dtype) or pd.api.types.is_bool_dtype(dtype):
        values = _different(name, known)
        if not values or len(values) > MOST_CATEGORIES:
            raise SchemaError(
                f"Expected at most {MOST_CATEGORIES} different texts in a categorical column, got {len(values)} in "
                f"{name!r}; leave it out, group its values, or make it numbers."
            )
        return Feature(name, Kind.CATEGORICAL, categories=(*values, *_missing(column)))
    numbers = known.to_numpy(dtype=np.float64)
    if not len(numbers) or not np.isfinite(numbers).all():
        raise DataError(f"Expected finite numbers in {name!r}, got none or infinite ones; fill or drop them first.")
    if np.isin(numbers, (0.0, 1.0)).all():
        return Feature(name, Kind.BINARY)
    whole = whole or bool(pd.api.types.is_integer_dtype(dtype)) or _counts_with_gaps(column, numbers)
    low, high = np.quantile(numbers, quantiles).tolist()
    if rounded:
        low, high = round_bounds(low, high, whole=whole)
    return Feature(name, Kind.INTEGER if whole else Kind.CONTINUOUS, lower=float(low), upper=float(high))


def _counts_with_gaps(column: pd.Series[Any], numbers: NDArray[np.float64]) -> bool:
    """Whether the column was whole numbers before pandas, which has no gaps in int64, made them float64."""
    gaps = column.dtype == np.float64 and bool(column.isna().any())
    # Beyond MOST_WHOLE floats have no digits behind the point to tell them by.
    return gaps and bool((np.abs(numbers) <= MOST_WHOLE).all() and (numbers == np.rint(numbers)).all())


def round_bounds(low: float, high: float, *, whole: bool) -> tuple[float, float]:
    """Bounds moved outwards to round numbers.

    The smallest and largest value of a column are those of single people, and a bound can end up in a letter; a rounded
    one is nobody's.

    >>> round_bounds(1081.41, 4601.91, whole=False), round_bounds(250.0, 18424.0, whole=True)
    ((1080.0, 4610.0), (200.0, 18500.0))
    >>> round_bounds(0.0, 4.0, whole=True), round_bounds(-0.0123, 0.9871, whole=False)
    ((0.0, 4.0), (-0.013, 0.988))
    """
    if low == high or not isfinite(high - low):
        return float(low), float(high)
    grid = Decimal(1).scaleb(floor(log10(high - low)) - BOUND_DIGITS)
    grid = max(grid, Decimal(1)) if whole else grid
    down, up = (Decimal(repr(float(value))) / grid for value in (low, high))
    below, above = down.to_integral_value(ROUND_FLOOR) * grid, up.to_integral_value(ROUND_CEILING) * grid
    # Rounded beyond the largest number there is, it would be no bound.
    return max(float(below), -MOST), min(float(above), MOST)


def _different(name: str, known: pd.Series[Any]) -> list[Any]:
    """The values of a column of texts, in alphabetical order."""
    try:
        return sorted({plain(value) for value in known}, key=str)
    except TypeError as error:
        strange = next(value for value in known if not isinstance(value, Hashable))
        raise SchemaError(
            f"Expected texts or numbers in {name!r}, got {type(strange).__name__} ({strange!r:.60}); split it into "
            "columns, or leave it out."
        ) from error


def refuse_direction_without_order(schema: FeatureSchema, frame: Any, names: Sequence[str]) -> None:
    """Refuse "only upwards" for categories whose order nobody gave: the alphabet's is none."""
    for name in names:
        if schema[name].kind is not Kind.CATEGORICAL:
            continue
        column = frame.iloc[:, schema.names.index(name)]
        if not getattr(column.dtype, "ordered", False):
            raise SchemaError(
                f"Expected an order of the categories of {name!r} for it to rise or fall along, got "
                f"{', '.join(map(str, schema[name].categories[:5]))}, in which only the alphabet orders them; make the "
                "column an ordered pandas category, or list them in order with schema.edit(name, categories=[...], "
                "direction=...)."
            )


def edited(schema: FeatureSchema, **fields: Mapping[str, Any]) -> FeatureSchema:
    """The schema with these fields replaced, each by feature."""
    for key, values in fields.items():
        for name, value in values.items():
            schema = schema.edit(name, **{key: value})
    return schema


def bounded(schema: FeatureSchema, bounds: Mapping[str, Any]) -> FeatureSchema:
    """The schema with (lower, upper) of these features."""
    for name, pair in bounds.items():
        if not isinstance(pair, Sequence) or len(pair) != 2:
            raise SchemaError(f"Expected (lower, upper) as bounds of {name!r}, got {pair!r}; pass two numbers.")
        schema = schema.edit(name, lower=pair[0], upper=pair[1])
    return schema


def grouped(schema: FeatureSchema, groups: Mapping[str, Sequence[str]], rows: NDArray[Any]) -> FeatureSchema:
    """The schema with these one-hot groups, open where some row, in the features' order, has none of the columns."""
    for group, names in groups.items():
        members = listed(names, f"the columns of the group {group!r}")
        binary = dict.fromkeys(members, Kind.BINARY)
        schema = edited(schema, kind=binary, group=dict.fromkeys(members, group))
    places = {group: [schema.names.index(name) for name in names] for group, names in groups.items()}
    given = {group: rows[:, own].astype(np.float64) for group, own in places.items() if own}
    found = tuple(group for group, values in given.items() if not values.any(axis=1).all())
    guess = None if schema.guessed is None else replace(schema.guessed, open_groups=found)
    return replace(schema, open_groups=found, guessed=guess)


def with_guessed_groups(schema: FeatureSchema, frame: Any, declared: Collection[str] = ()) -> FeatureSchema:
    """The schema with the one-hot groups that these rows of its features show, kept as guesses.

    Columns ``declared`` to be as they are stay so.
    """
    if schema.guessed is None:
        return schema
    rows = as_pandas(frame)
    of_place = (lambda place: rows.iloc[:, place]) if is_frame(rows) else (lambda place: np.asarray(rows)[:, place])
    columns = {
        feature.name: np.asarray(of_place(place), dtype=np.float64)
        for place, feature in enumerate(schema)
        if feature.kind is Kind.BINARY and feature.group is None and feature.name not in declared
    }
    whole = {name: column for name, column in columns.items() if np.isfinite(column).all()}
    found = {
        group: tuple(names)
        for group, names in guessed_groups(whole, schema.names).items()
        if len({(schema[name].direction, schema[name].private) for name in names}) == 1
    }
    told = schema.guessed
    for group, names in found.items():
        schema = edited(schema, group=dict.fromkeys(names, group))
    found_open = [g for g, names in found.items() if not np.any([whole[name] for name in names], axis=0).all()]
    guess = replace(told, groups=found, open_groups=(*told.open_groups, *found_open))
    return replace(schema, open_groups=(*schema.open_groups, *found_open), guessed=guess)


def _missing(column: pd.Series[Any]) -> tuple[None, ...]:
    return (None,) if bool(column.isna().any()) else ()


def findings(schema: FeatureSchema, frame: pd.DataFrame) -> tuple[str, ...]:
    """Sentences about what is unusual; SchemaError for what cannot be."""
    from rocerf.data.frames import Frames, named

    frame = as_pandas(frame)
    frames = Frames.of(schema, frame)
    numbers = [feature.name for feature in schema if feature.kind is not Kind.CATEGORICAL]
    without = named(schema, frame)[numbers].isna().any(axis=1).to_numpy()
    matrix, _, problems = frames.encode(frame[~without])
    wrong = [(place, said) for place, said in enumerate(problems) if said]
    if wrong:
        place, said = wrong[0]
        row = int(np.flatnonzero(~without)[place])
        raise SchemaError(
            f"Expected rows that are values of the schema, got {len(wrong)} that are not; the first is row {row}: "
            f"{said}. Correct the rows or the schema."
        )
    unusual: list[str] = []
    if without.any():
        unusual.append(f"{int(without.sum())} of {len(frame)} rows lack a number, and were not looked at further")
    for column, feature in enumerate(schema.column_features):
        values = matrix[:, column]
        outside = int(((values < feature.lower) | (values > feature.upper)).sum())
        if outside and feature.kind is not Kind.CATEGORICAL:
            unusual.append(f"{outside} of {len(matrix)} rows are outside the bounds of {feature.name!r}")
        if feature.kind is Kind.INTEGER and (values[np.isfinite(values)] % 1 != 0).any():
            unusual.append(
                f"{int((values % 1 != 0).sum())} of {len(matrix)} rows have no whole number in {feature.name!r}"
            )
    rows, limits = schema.relation_rows
    for relation, row, limit in zip(schema.relations, rows, limits, strict=True):
        broken = int((matrix @ row > limit + 1e-9 * (abs(limit) + np.abs(matrix) @ np.abs(row))).sum())
        if broken:
            unusual.append(f"{broken} of {len(matrix)} rows break the relation {relation.words or row.tolist()}")
    return tuple(unusual)
