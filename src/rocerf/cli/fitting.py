"""A pipeline fitted on the spot, for tables with texts and gaps: sensible, said, and nothing hidden.

Numbers are scaled (gaps filled by the median), texts become one column a category (a gap is a category of its own),
and a LogisticRegression is fitted to a tight tolerance, so that fitting it again gives the same model.
"""

from __future__ import annotations

import warnings
from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np

from rocerf.cli.telling_names import words_of
from rocerf.data.schema_guess import MOST_CATEGORIES
from rocerf.errors import DataError

if TYPE_CHECKING:
    import pandas as pd

#: Parts of the cross-validation.
FOLDS = 5

#: Accuracy from which on a column may say the label in other words, and rows on which such a column is looked for.
TOO_GOOD, LOOKED_AT = 0.95, 2000

#: Words in names of columns that tell rows apart.
ID_WORDS = {"id", "ids", "key", "no", "nr", "num", "number", "nummer", "kundennummer", "index", "uid", "uuid"}

#: Where the fit stops, in the gradient: far below what decides anything.
TOLERANCE = 1e-10


@dataclass(frozen=True, eq=False)
class Fitted:
    """A fitted pipeline, the columns that it takes, and what is to be said of it."""

    pipeline: Any
    columns: tuple[str, ...]
    sentences: tuple[str, ...]


def fitted_here(
    frame: pd.DataFrame, labels: Any, *, c: float = 1.0, validate: bool = True, seed: int = 0, chosen: bool = False
) -> Fitted:
    """A pipeline for these columns and labels, with its accuracy on rows that it was not fitted on.

    Columns that somebody has ``chosen`` stay in, though they look like ids.
    """
    left_out = unusable(frame, chosen=chosen)
    used = frame[[name for name in frame.columns if name not in left_out]]
    if not used.shape[1]:
        raise DataError("Expected at least one column to fit a pipeline on, got none that can be used; check the file.")
    pipeline = _unfitted(used, c)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # scikit-learn's remarks about categories that a part of the rows lacks
        accuracy = _accuracy(pipeline, used, labels, seed) if validate else None
    pipeline.fit(used, labels)
    said = [*_said(used, left_out, labels, accuracy), *_perhaps_too_good(pipeline, used, labels, accuracy)]
    return Fitted(pipeline, tuple(map(str, used.columns)), tuple(said))


def text_columns(frame: pd.DataFrame) -> list[str]:
    """Columns that are neither numbers nor true and false."""
    from pandas.api.types import is_bool_dtype, is_numeric_dtype

    return [
        str(name)
        for name, column in frame.items()
        if not is_numeric_dtype(column.dtype) or (is_bool_dtype(column.dtype) and bool(column.isna().any()))
    ]


def looks_like_ids(frame: pd.DataFrame) -> list[str]:
    """Texts that are different in every row, and whole numbers that count rows: names of rows rather than traits."""
    if len(frame) <= MOST_CATEGORIES:
        return []
    return [str(name) for name, column in frame.items() if _names_rows(str(name), column)]


def _names_rows(name: str, column: pd.Series[Any]) -> bool:
    """Whether values that differ in every row are names; incomes may differ as well, but leave most numbers out."""
    from pandas.api.types import is_float_dtype, is_integer_dtype

    if is_float_dtype(column.dtype) or column.nunique(dropna=False) != len(column):
        return False
    if not is_integer_dtype(column.dtype) or ID_WORDS & words_of(name):
        return True
    return int(column.max()) - int(column.min()) < 2 * len(column)


def unusable(frame: pd.DataFrame, *, chosen: bool = False) -> dict[str, str]:
    """Columns that no sensible model has, with the reason; numbers that look like ids, unless somebody has ``chosen``
    the columns."""
    texts, found = set(text_columns(frame)), {}
    ids = [name for name in looks_like_ids(frame) if not chosen or name in texts]
    for name, column in frame.items():
        if column.isna().all():
            found[str(name)] = "it has no value"
        elif name in ids:
            found[str(name)] = "it is different in every row, as ids are"
        elif name in texts and column.nunique() > MOST_CATEGORIES:
            found[str(name)] = f"it has {column.nunique()} different texts"
    return found


def _unfitted(frame: pd.DataFrame, c: float) -> Any:
    from sklearn.compose import ColumnTransformer
    from sklearn.impute import SimpleImputer
    from sklearn.linear_model import LogisticRegression
    from sklearn.pipeline import Pipeline, make_pipeline
    from sklearn.preprocessing import OneHotEncoder, StandardScaler

    texts = text_columns(frame)
    numbers = [str(name) for name in frame.columns if name not in texts]
    gaps = [name for name in numbers if frame[name].isna().any()]
    questions = [name for name in gaps if frame[name].dropna().isin((0, 1)).all()]
    median = [name for name in gaps if name not in questions]
    whole = [name for name in numbers if name not in gaps]
    parts = [
        ("numbers", StandardScaler(), whole),
        ("gaps", make_pipeline(SimpleImputer(strategy="median"), StandardScaler()), median),
        ("questions", make_pipeline(SimpleImputer(strategy="most_frequent"), StandardScaler()), questions),
        ("texts", OneHotEncoder(handle_unknown="ignore", sparse_output=False), texts),
    ]
    # A fit that is exact is the same on every machine, whatever the order of the rows.
    model = LogisticRegression(C=c, solver="newton-cholesky", tol=TOLERANCE, max_iter=1000)
    return Pipeline([("columns", ColumnTransformer([part for part in parts if part[2]])), ("model", model)])


def _accuracy(pipeline: Any, frame: pd.DataFrame, labels: Any, seed: int) -> tuple[float, int] | None:
    from sklearn.model_selection import StratifiedKFold, cross_val_score

    folds = min(FOLDS, int(np.unique(np.asarray(labels), return_counts=True)[1].min()))
    if folds < 2:
        return None
    parts = StratifiedKFold(folds, shuffle=True, random_state=seed)
    return float(cross_val_score(pipeline, frame, labels, cv=parts).mean()), folds


def _said(
    frame: pd.DataFrame, left_out: dict[str, str], labels: Any, accuracy: tuple[float, int] | None
) -> Sequence[str]:
    texts = text_columns(frame)
    gaps = [str(name) for name in frame.columns if name not in texts and frame[name].isna().any()]
    numbers = frame.shape[1] - len(texts)
    filled = f", gaps filled by the median or the commonest answer in {len(gaps)} of them" if gaps else ""
    said = [
        f"Fitted here: a logistic regression on {numbers} {'column' if numbers == 1 else 'columns'} of numbers (scaled"
        f"{filled}) and {len(texts)} of texts (one-hot)."
    ]
    commonest = np.unique(np.asarray(labels), return_counts=True)[1].max() / len(frame)
    if accuracy is not None:
        said.append(
            f"Accuracy on rows it was not fitted on, by {accuracy[1]}-fold cross-validation: {accuracy[0]:.1%} (always "
            f"saying the commonest label: {commonest:.1%})."
        )
    said += [f"Left out of the model: {name!r}, since {why}." for name, why in left_out.items()]
    return said


def _perhaps_too_good(
    pipeline: Any, frame: pd.DataFrame, labels: Any, accuracy: tuple[float, int] | None
) -> Sequence[str]:
    """A question where the model hardly errs: does a column tell what became known only after the decision?"""
    commonest = np.unique(np.asarray(labels), return_counts=True)[1].max() / len(frame)
    if accuracy is None or accuracy[0] < TOO_GOOD or 1 - accuracy[0] > (1 - commonest) / 4:
        return []
    return [
        f"Hardly ever wrong, which is rare: does a column say the label in other words, known only afterwards? "
        f"{_weightiest(pipeline, frame)!r} decides most here. If it does, delete it from the file or from the schema."
    ]


def _weightiest(pipeline: Any, frame: pd.DataFrame) -> str:
    """The column that moves scores most: whose own part of them, all else kept, differs most from row to row."""
    rows = frame.iloc[:LOOKED_AT]
    scores = pipeline.decision_function(rows)
    parts = {}
    for name in frame.columns:
        same = rows.copy()
        same[name] = rows[name].iloc[[0] * len(rows)].to_numpy()
        same[name] = same[name].astype(rows[name].dtype)
        parts[str(name)] = float(np.std(scores - pipeline.decision_function(same)))
    return max(parts, key=lambda name: parts[name])
