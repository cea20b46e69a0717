"""Pipelines over training rows in Parquet: texts and categories become points of schema space chunk by chunk.

A few rows that show all there is in every column (its ends, its categories, a gap) say what the schema is and where the
pipeline is asked; then every row is read once, held against the map found, and kept as numbers in a working copy on the
disk (:mod:`rocerf.data.parquet_rows`). What needs all rows in the user's own columns at once is not offered: fitting
the preprocessing again, and fitting the user's own estimator again.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, replace
from os import PathLike
from typing import TYPE_CHECKING, Any

import numpy as np

from rocerf.data.encoded_parquet import ColumnEncoder, as_read
from rocerf.data.frames import Frames
from rocerf.data.parquet import Labels, batches, dataset_of, pieces_of
from rocerf.data.parquet_rows import read_parquet
from rocerf.data.schema import FeatureSchema
from rocerf.data.training_set import TrainingSet
from rocerf.errors import DataError, OptionError, SchemaError, UnsupportedModelError
from rocerf.models.arithmetic import Arithmetic
from rocerf.models.design import AffineDesign
from rocerf.models.logistic.fit import LogisticFit
from rocerf.models.logistic.model import LogisticModel
from rocerf.models.sklearn.estimator_fitting import own_copy, refuse_unfitted, unfitted_copy
from rocerf.models.sklearn.known_gaps import types_known
from rocerf.models.sklearn.pipeline_check import largest_error, refuse_what_is_not_affine, with_checked_fills
from rocerf.models.sklearn.pipeline_parts import Deployed, PipelineParts
from rocerf.models.sklearn.pipeline_probe import AffineMap, Probe, Ranges, refuse_unknown_categories
from rocerf.models.sklearn.pipeline_steps import CannotTransformError, Preprocessing, split, with_used_categories
from rocerf.models.sklearn.reader import read_logistic_regression
from rocerf.types import Array

if TYPE_CHECKING:
    import pandas as pd

#: Rows from the beginning of the table that are looked at besides those at its ends.
FIRST_ROWS = 1000


def is_on_disk(source: Any) -> bool:
    """Whether training rows are given by where they are: a path, a list of paths, a PyArrow dataset."""
    if isinstance(source, str | PathLike):
        return True
    if isinstance(source, list | tuple) and source and all(isinstance(path, str | PathLike) for path in source):
        return True
    return type(source).__module__.startswith("pyarrow") and hasattr(source, "get_fragments")


def pipeline_from_parquet(
    pipeline: Any,
    source: Any,
    label: Any,
    schema: FeatureSchema | None,
    threshold: float,
    *,
    favourable: Any,
    ids: Any,
    sample_weight: Any,
) -> LogisticModel:
    """The model of a fitted pipeline, whose rows stay on the disk; ``label`` and ``ids`` name columns."""
    from sklearn.linear_model import LogisticRegression

    if not isinstance(label, str) or not isinstance(ids, str | None) or not isinstance(sample_weight, str | None):
        raise OptionError("Expected names of columns as labels, ids and weights of rows in Parquet, got values.")
    refuse_unfitted(pipeline)
    _, last = split(pipeline)
    if not isinstance(last, LogisticRegression):
        raise UnsupportedModelError(
            f"Expected a pipeline that ends in LogisticRegression for rows in Parquet, got {type(last).__name__}; read "
            "the rows into memory for others."
        )
    pipeline = own_copy(pipeline)
    dataset = dataset_of(source)
    taken = _taken(pipeline, dataset, schema, (label, ids, sample_weight))
    seen = _telling_rows(dataset, taken, label, favourable)
    types = types_known(pipeline, seen)
    seen = types.put_on(seen)
    rows = _Rows.of(pipeline, seen, schema)
    encoder = ColumnEncoder(rows.frames, taken, types)
    fields = read_parquet(
        dataset,
        label=label,
        id=ids,
        columns=taken,
        favourable=favourable,
        weight=sample_weight,
        encoder=encoder,
        watch=rows.check,
    )
    train = TrainingSet.of_fields(fields)
    read = read_logistic_regression(last, train, same_columns=False)
    deployed = Deployed.of(pipeline, rows.probe.steps, train)
    design = AffineDesign(rows.found.matrix, rows.found.shift, read.intercept)
    fit = LogisticFit.taken_over(last, read, train, design, threshold)

    def own() -> Array:
        return np.concatenate([deployed.log_odds(frame) for frame in _frames_in(dataset, taken, encoder)])

    arithmetic = Arithmetic.of(rows.probe.steps.bits(seen), own, fit.deployed_scores, rows.error)
    parts = PipelineParts(rows.frames, "frozen", deployed=deployed)
    fit = replace(fit, parts=parts, arithmetic=arithmetic, unfitted=unfitted_copy(pipeline), retraining="exact")
    return LogisticModel(fit)


def _taken(pipeline: Any, dataset: Any, schema: FeatureSchema | None, besides: tuple[Any, ...]) -> tuple[str, ...]:
    """The columns that the pipeline or the schema knows, in the table's order."""
    known = getattr(pipeline, "feature_names_in_", None)
    names = [name for name in dataset.schema.names if name not in besides]
    if known is None and schema is None:
        return tuple(names)
    wanted = set(schema.names if schema is not None else ()) | set(map(str, () if known is None else known))
    return tuple(name for name in names if name in wanted)


def _frames_in(dataset: Any, columns: tuple[str, ...], encoder: ColumnEncoder) -> Iterator[pd.DataFrame]:
    """The rows of a dataset in batches, in the types in which they are encoded."""
    for piece in pieces_of(dataset, columns):
        for _, batch in batches(piece, dataset.schema, list(columns)):
            yield encoder.frame(batch)


def _telling_rows(dataset: Any, columns: tuple[str, ...], label: str, favourable: Any) -> pd.DataFrame:
    """Rows that show what every column holds: its ends, each text, a gap, a number that is not whole; and the first."""
    import pyarrow as pa

    kept, labels = None, Labels(label, favourable)
    for piece in pieces_of(dataset, [*columns, label]):
        for at, batch in batches(piece, dataset.schema, [*columns, label]):
            labels.of(batch, piece.name)
            table = pa.Table.from_batches([batch]).select(list(columns))
            first = FIRST_ROWS if at == 0 else 0
            own = table.take(_telling(as_read(table, columns), first))
            together = own if kept is None else pa.concat_tables([kept, own]).unify_dictionaries()
            kept = together.take(_telling(as_read(together, columns), FIRST_ROWS)) if kept is not None else own
    assert kept is not None
    labels.other()
    return as_read(kept, columns)


def _telling(frame: pd.DataFrame, first: int) -> list[int]:
    """Places of the first rows and of those that tell of columns."""
    import pandas as pd

    chosen = set(range(min(first, len(frame))))
    for name in frame.columns:
        column = frame[name].reset_index(drop=True)
        gaps = np.flatnonzero(column.isna().to_numpy())
        chosen.update(gaps[:1].tolist())
        if pd.api.types.is_numeric_dtype(column.dtype) and len(gaps) < len(column):
            numbers = column.to_numpy(dtype=np.float64, na_value=np.nan)
            broken = np.flatnonzero(np.isfinite(numbers) & (numbers != np.rint(numbers)))
            chosen.update([int(np.nanargmin(numbers)), int(np.nanargmax(numbers)), *broken[:1].tolist()])
        else:
            chosen.update(np.flatnonzero(~column.duplicated().to_numpy()).tolist())
    return sorted(chosen)


@dataclass(eq=False)
class _Rows:
    """What is known of the rows before they are read, and is held against them as they are."""

    probe: Probe
    found: AffineMap
    frames: Frames
    error: Array
    seen: int = 0

    @classmethod
    def of(cls, pipeline: Any, seen: pd.DataFrame, schema: FeatureSchema | None) -> _Rows:
        """From the rows that tell what there is."""
        schema = FeatureSchema.from_frame(with_used_categories(seen)) if schema is None else schema
        absent = [name for name in schema.names if name not in seen.columns]
        if absent:
            raise SchemaError(f"Expected a schema of the table's columns, got one that has {absent[0]!r} besides.")
        bare = Frames.of(schema, seen)
        steps = Preprocessing.of(pipeline, seen)
        probe = Probe(steps, bare, Ranges.of(bare.encode(seen)[0], bare))
        try:
            found = probe.found()
            refuse_unknown_categories(found, bare)
            found = with_checked_fills(probe, found)
        except CannotTransformError as error:
            raise UnsupportedModelError(
                f"Expected a pipeline that takes rows of the table's columns, got one that cannot ({error}); name the "
                "columns it was fitted on."
            ) from error
        return cls(probe, found, Frames.of(schema, seen, found.fills), np.zeros(len(found.shift)))

    def check(self, frame: pd.DataFrame, X: Array, problems: list[str], where: str) -> None:
        """Hold rows, as points (m, d), against the map; refuse what is no value of the schema or not as mapped."""
        bad = np.flatnonzero(~np.isfinite(X).all(axis=1))
        if len(bad):
            raise DataError(
                f"Expected a value of the schema, or a number that the pipeline fills in, everywhere, got {len(bad)} "
                f"rows of {where} without; the first is its row {bad[0]}: {problems[bad[0]]}. Correct them, "
                "or read the rows into memory, where more of what pipelines do with missing numbers is taken over."
            )
        try:
            refuse_what_is_not_affine(self.probe, self.found, frame, X)
            self.error = np.maximum(self.error, largest_error(self.probe, self.found, frame, X))
        except UnsupportedModelError as error:
            raise UnsupportedModelError(
                "Expected preprocessing that is affine in every column (scaling, encoding, one number for missing "
                "ones) for rows that stay on the disk, got one that does not come out so: bins and curves are taken "
                "over from rows in memory, so read them and pass the table; what joins columns is not, there as here. "
                f"In memory it would be asked this: {error}"
            ) from error
        except CannotTransformError as error:
            raise UnsupportedModelError(
                f"Expected a pipeline that takes the rows of {where}, got one that cannot ({error})."
            ) from error
