"""A fitted scikit-learn pipeline in two parts: the preprocessing, and the classifier at its end."""

from __future__ import annotations

import warnings
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from rocerf.errors import ColumnError, UnsupportedModelError
from rocerf.models.arithmetic import bits_of
from rocerf.types import Array

if TYPE_CHECKING:
    import pandas as pd


#: Rows transformed at a time: sparse results are made dense, so this bounds memory.
CHUNK = 8192

#: Rows in which each column is left out to see whether the preprocessing misses it.
FEW = 100


class CannotTransformError(Exception):
    """The preprocessing raised, or gave no finite numbers; internal, always turned into an error for users."""


@contextmanager
def quietly() -> Iterator[None]:
    """Transformers warn about unknown categories, constant columns and the like while they are probed."""
    with warnings.catch_warnings(), np.errstate(all="ignore"):
        warnings.simplefilter("ignore")
        yield


def split(pipeline: Any) -> tuple[tuple[Any, ...], Any]:
    """The transformers before the classifier, in the order in which they are applied, and the classifier.

    >>> from sklearn.linear_model import LogisticRegression
    >>> from sklearn.pipeline import make_pipeline
    >>> from sklearn.preprocessing import MinMaxScaler, StandardScaler
    >>> inner = make_pipeline(MinMaxScaler(), LogisticRegression())
    >>> parts, last = split(make_pipeline(StandardScaler(), inner))
    >>> len(parts), type(last).__name__
    (2, 'LogisticRegression')
    """
    from sklearn.pipeline import Pipeline

    parts, last = [], pipeline
    while isinstance(last, Pipeline):
        # One by one: a pipeline of the first steps asks the last of them whether it is fitted, and not all can tell.
        parts += [step for _, step in last.steps[:-1] if step not in (None, "passthrough")]
        last = last.steps[-1][1]
    return tuple(parts), last


def weight_name(pipeline: Any) -> tuple[str, Any]:
    """Under which name a pipeline's ``fit`` takes weights of rows, which go to the classifier at its end; that one."""
    from sklearn.pipeline import Pipeline

    prefix, last = "", pipeline
    while isinstance(last, Pipeline):
        name, last = last.steps[-1]
        prefix += f"{name}__"
    return f"{prefix}sample_weight", last


def by_halves(ask: Callable[[Any], Array], rows: Any, nothing: Array, failure: type[Exception]) -> Array:
    """What is said of the rows, ``nothing`` (1, ...) of those that fail, which are looked for by halving."""
    try:
        return ask(rows)
    except failure:
        if len(rows) == 1:
            return nothing
    middle = len(rows) // 2
    return np.concatenate([by_halves(ask, part, nothing, failure) for part in (rows[:middle], rows[middle:])])


@dataclass(frozen=True, eq=False)
class Preprocessing:
    """Fitted transformers one after the other: from the user's columns to the columns that the classifier sees.

    ``columns`` are the user's columns in the order that the pipeline expects; ``named`` says whether it was fitted on a
    DataFrame or on the bare values.

    >>> import pandas as pd
    >>> from sklearn.linear_model import LogisticRegression
    >>> from sklearn.pipeline import make_pipeline
    >>> from sklearn.preprocessing import StandardScaler
    >>> df = pd.DataFrame({"age": [20.0, 40.0]})
    >>> steps = Preprocessing.of(make_pipeline(StandardScaler(), LogisticRegression()).fit(df, [0, 1]), df)
    >>> steps(df).tolist()
    [[-1.0], [1.0]]
    """

    parts: tuple[Any, ...]
    columns: tuple[str, ...]
    named: bool

    @classmethod
    def of(cls, pipeline: Any, frame: pd.DataFrame) -> Preprocessing:
        """Of a fitted pipeline; ``frame`` holds rows that it was fitted on."""
        parts, _ = split(pipeline)
        known = getattr(pipeline, "feature_names_in_", None)
        if known is None and set(getattr(pipeline, "feature_names_", None) or [None]) <= set(frame.columns):
            known = pipeline.feature_names_  # CatBoost's name for it
        columns = [str(name) for name in (frame.columns if known is None else known)]
        made = cls(parts, tuple(name for name in columns if name in frame.columns), True)
        return made if known is not None or made._takes_names(frame) else replace(made, named=False)

    def _takes_names(self, frame: pd.DataFrame) -> bool:
        """Whether rows with names are taken without complaint."""
        with warnings.catch_warnings():
            warnings.simplefilter("error")
            try:
                self.transformed(frame.iloc[:2])
            except Exception:
                return False
        return True

    def given(self, frame: pd.DataFrame) -> Any:
        """Rows of the user's columns as the pipeline was shown them."""
        chosen = frame[list(self.columns)]
        return chosen if self.named else chosen.to_numpy()

    def transformed(self, frame: pd.DataFrame) -> Array:
        """The transformers' result (m, q), whatever they raise."""
        return dense(self.seen(frame))

    def seen(self, frame: pd.DataFrame) -> Any:
        """What the classifier sees of these rows, in the type in which it sees it."""
        rows = self.given(frame)
        for part in self.parts:
            rows = part.transform(rows)
        return rows

    def bits(self, frame: pd.DataFrame) -> int:
        """Bits of the floating-point numbers that these rows are, or that the classifier sees of them: 64, 32, 16."""
        chosen = frame[list(self.columns)]
        with quietly():
            seen = self.seen(frame.iloc[:2])
        dtypes = seen.dtypes if hasattr(seen, "dtypes") else [seen.dtype]
        return bits_of(*chosen.dtypes, *dtypes)

    def where_possible(self, frame: pd.DataFrame, width: int) -> Array:
        """What the classifier sees of these rows (m, q = width), NaN for rows that the transformers fail on."""
        return by_halves(self, frame, np.full((1, width), np.nan), CannotTransformError)

    def __call__(self, frame: pd.DataFrame) -> Array:
        """What the classifier sees of these rows, shape (m, q)."""
        try:
            with quietly():
                parts = [self.transformed(frame.iloc[at : at + CHUNK]) for at in range(0, max(1, len(frame)), CHUNK)]
        except Exception as error:  # transformers are the user's own code
            raise CannotTransformError(f"{type(error).__name__}: {error}") from error
        return np.concatenate(parts)

    def fitted_again(self, frame: pd.DataFrame, labels: NDArray[Any]) -> tuple[Preprocessing, Array]:
        """Clones of the transformers fitted on these rows, and what their fit made of the rows, (m, q)."""
        from sklearn.base import clone

        fresh, rows = tuple(clone(part) for part in self.parts), self.given(frame)
        try:
            with quietly():
                for part in fresh:
                    rows = part.fit_transform(rows, labels)
                found = dense(rows)
        except Exception as error:
            raise UnsupportedModelError(
                f"Expected preprocessing that can be fitted on the {len(frame)} rows that are left, got an error "
                f"({type(error).__name__}: {error}); delete fewer rows, or keep it as it is: preprocessing='frozen'."
            ) from error
        return replace(self, parts=fresh), found


def with_used_categories(frame: pd.DataFrame) -> pd.DataFrame:
    """The frame, its pandas categories only those that occur: the others were never shown to the pipeline."""
    import pandas as pd

    used = {
        name: frame[name].cat.remove_unused_categories()
        for name in frame.columns
        if isinstance(frame[name].dtype, pd.CategoricalDtype)
    }
    return frame.assign(**used)


def unused_columns(pipeline: Any, frame: pd.DataFrame, labels: NDArray[Any]) -> tuple[str, ...]:
    """The columns that the preprocessing does without, found by leaving them out: it makes the same of the rows.

    So must the preprocessing fitted again, which may choose its columns by place or by type.
    """
    few, needed = frame.iloc[:FEW], list(frame.columns)
    try:
        images = Preprocessing.of(pipeline, frame)(few)
        for name in frame.columns:
            rest = few[[other for other in needed if other != name]]
            if rest.shape[1] and _makes(pipeline, rest, images):
                needed.remove(name)
        if len(needed) == frame.shape[1]:
            return ()
        left = frame[needed]
        again, found = (Preprocessing.of(pipeline, rows).fitted_again(rows, labels)[0](rows) for rows in (frame, left))
    except (CannotTransformError, UnsupportedModelError):
        return ()
    same = again.shape == found.shape and np.allclose(again, found, rtol=1e-9, atol=0.0, equal_nan=True)
    return tuple(name for name in frame.columns if name not in needed) if same else ()


def _makes(pipeline: Any, rows: pd.DataFrame, images: Array) -> bool:
    try:
        return np.array_equal(Preprocessing.of(pipeline, rows)(rows), images, equal_nan=True)
    except CannotTransformError:
        return False


def dense(rows: Any) -> Array:
    """Whatever transformers give (sparse, a DataFrame, objects) as float64."""
    from scipy.sparse import issparse

    return np.asarray(rows.toarray() if issparse(rows) else rows, dtype=np.float64)


def refuse_other_columns(frame: Any) -> None:
    """The training rows must be a DataFrame with columns named by text, each once."""
    from rocerf.data.foreign import is_frame

    if not is_frame(frame):
        raise ColumnError(
            f"Expected the training rows as a DataFrame, as the pipeline was fitted on, got {type(frame).__name__}; "
            "put them in one: pandas.DataFrame(rows, columns=[...])."
        )
    strange = [name for name in frame.columns if not isinstance(name, str)]
    repeated = [name for name in frame.columns if list(frame.columns).count(name) > 1]
    if strange or repeated:
        got = f"{strange[0]!r}" if strange else f"{repeated[0]!r} several times"
        raise ColumnError(f"Expected columns with distinct names that are text, got {got}; rename them.")
