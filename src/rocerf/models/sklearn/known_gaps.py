"""Which of None, NaN and ``pd.NA`` a fitted pipeline knows as the gap of a column.

Encoders and imputers tell them apart, and the same file has other ones with each way of reading it (``dtype_backend``
of pandas, the type that a column had when it was written, the version of pandas). An encoder that ignores what it does
not know would make something else of the wrong one, and say nothing.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np

from rocerf.data.encoded_parquet import ColumnTypes
from rocerf.models.sklearn.pipeline_steps import CannotTransformError, Preprocessing
from rocerf.types import Array

if TYPE_CHECKING:
    import pandas as pd

#: A text that no column has.
UNHEARD = "\x00unheard of"


def types_known(pipeline: Any, seen: pd.DataFrame) -> ColumnTypes:
    """The types of rows that were read, with another gap in the columns where the pipeline knows just that one.

    >>> import pandas as pd
    >>> from sklearn.linear_model import LogisticRegression
    >>> from sklearn.pipeline import make_pipeline
    >>> from sklearn.preprocessing import OneHotEncoder
    >>> read = pd.DataFrame({"flag": pd.Series([True, False, None, True], dtype=object)})
    >>> pipeline = make_pipeline(OneHotEncoder(handle_unknown="ignore"), LogisticRegression())
    >>> types_known(pipeline.fit(read.astype("boolean"), [0, 1, 0, 1]), read).gaps
    {'flag': nan}
    >>> types_known(pipeline.fit(read, [0, 1, 0, 1]), read).gaps
    {}
    """
    from pandas.api.types import infer_dtype

    dtypes, gaps = dict(ColumnTypes.of(seen).dtypes), {}
    gapped = [name for name in seen.columns if seen[name].isna().any()]
    kinds = {name: infer_dtype(seen[name], skipna=True) for name in gapped}
    if asked := [name for name in gapped if kinds[name] in ("boolean", "string")]:
        person = _Person.of(Preprocessing.of(pipeline, seen), seen)
        for name in asked:
            column = person.known_gap(seen[name], yes_or_no=kinds[name] == "boolean")
            if column is None:
                continue
            dtypes[name] = column.dtype
            if column.dtype == object:
                gaps[name] = column.iloc[0]
    return ColumnTypes(dtypes, gaps)


@dataclass(frozen=True, eq=False)
class _Person:
    """Somebody who has a value in every column, to ask the pipeline about one column at a time."""

    steps: Preprocessing
    row: pd.DataFrame

    @classmethod
    def of(cls, steps: Preprocessing, seen: pd.DataFrame) -> _Person:
        import pandas as pd

        values = {name: seen[name].sort_values(key=pd.isna, kind="stable").iloc[:1] for name in seen.columns}
        return cls(steps, pd.DataFrame({name: value.reset_index(drop=True) for name, value in values.items()}))

    def image(self, column: pd.Series[Any]) -> Array | None:
        """What becomes of the person with each of these values (m, q); None if the pipeline does not take them."""
        rows = self.row.iloc[np.zeros(len(column), int)].reset_index(drop=True)
        try:
            return self.steps(rows.assign(**{str(column.name): column}))
        except CannotTransformError:
            return None

    def known_gap(self, column: pd.Series[Any], *, yes_or_no: bool) -> pd.Series[Any] | None:
        """A gap (1,) that the pipeline knows better than the one that was read; None to leave that."""
        import pandas as pd

        values = self.image(column.dropna().drop_duplicates().reset_index(drop=True))
        unheard = self.image(pd.Series([UNHEARD], name=column.name, dtype=object))

        def how_well(gap: pd.Series[Any]) -> int:
            """0: like what it never heard of; 1: as a value, which an imputer fills in; 2: for what it is."""
            found = self.image(gap)
            if found is None or (unheard is not None and np.array_equal(found, unheard)):
                return 0
            return 1 if values is not None and (values == found).all(axis=1).any() else 2

        read = column[column.isna()].iloc[:1].reset_index(drop=True)
        others = [pd.Series([gap], name=column.name, dtype=object) for gap in (None, np.nan)]
        if yes_or_no:
            others.append(pd.Series([pd.NA], name=column.name, dtype="boolean"))
        best = max([read, *others], key=how_well)
        return None if best is read else best
