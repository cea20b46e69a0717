"""The model that a command speaks of, from its files: a pipeline, a LogisticRegression, a model of ours that was saved
(a network, say), or one fitted on the spot."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

from rocerf.cli.options import PreprocessingName
from rocerf.cli.terminal import say_aside
from rocerf.errors import DataError, FileFormatError, OptionError

if TYPE_CHECKING:
    from rocerf.cli.files import LabelledRows
    from rocerf.cli.parquet_files import RowsInParquet
    from rocerf.data.schema import FeatureSchema
    from rocerf.data.training_set import TrainingSet
    from rocerf.explainer.explainer import Rocerf
    from rocerf.models.logistic.model import LogisticModel
    from rocerf.models.model import Refittable

#: What is said where training rows stay on the disk for a model that was fitted elsewhere.
STAYS = (
    "The training rows stay on the disk, so retraining means the exact optimum of the same objective: your own "
    "estimator, fitted again, would need all rows in memory."
)

#: Kinds of models that are read from what their ``save`` wrote, by the format in the file, and where they are defined.
SAVED = {
    "rocerf-logistic-model": ("rocerf.models.logistic.model", "LogisticModel"),
    "rocerf-neural-model": ("rocerf.models.network.model", "NeuralModel"),
    "rocerf-estimator-model": ("rocerf.models.sklearn.estimator", "EstimatorModel"),
}


@dataclass(frozen=True)
class ModelFiles:
    """What a command knows of the model: at most one of the two files, and what goes with it."""

    model: Path | None = None
    pipeline: Path | None = None
    preprocessing: PreprocessingName | None = None
    c: float = 1.0

    def __post_init__(self) -> None:
        if self.pipeline is None and self.preprocessing is not None:
            raise OptionError("Expected --preprocessing only with --pipeline, got it alone; add one or drop the other.")
        if self.pipeline is not None and self.model is not None:
            raise OptionError("Expected --model or --pipeline, got both; drop one.")


def model_of(rows: LabelledRows | RowsInParquet, files: ModelFiles, rules: FeatureSchema | None = None) -> Refittable:
    """The model with its training rows; ``rules`` is the schema that a pipeline's columns are read by."""
    if files.pipeline is not None:
        return _pipeline_model(files.pipeline, rows, rules, str(files.preprocessing or PreprocessingName.FROZEN))
    return _numeric_model(rows, rules, files.model, files.c)


def read_schema(path: Path) -> FeatureSchema:
    """A schema from its file."""
    from rocerf.data.schema import FeatureSchema

    if not path.is_file():
        raise FileFormatError(f"Expected a schema file at {path}, found none; write one with rocerf schema --out.")
    return FeatureSchema.from_yaml(path)


def load_explainer(folder: Path, pipeline: Path | None) -> Rocerf:
    """A saved explainer, with the pipeline that its model was made from, if that is given."""
    from rocerf.explainer.explainer import Rocerf
    from rocerf.models.logistic.model import LogisticModel
    from rocerf.models.sklearn.skops_file import load_skops_pipeline

    if pipeline is None:
        return Rocerf.load(folder)
    fitted = load_skops_pipeline(pipeline)
    return Rocerf.load(folder, model=LogisticModel.load(folder / "model.npz", pipeline=fitted))


def _pipeline_model(
    path: Path, rows: LabelledRows | RowsInParquet, rules: FeatureSchema | None, preprocessing: str
) -> LogisticModel:
    """The model of a pipeline read from a file, on the columns that it takes."""
    from rocerf.cli.parquet_files import RowsInParquet
    from rocerf.models.sklearn.pipeline import from_pipeline
    from rocerf.models.sklearn.skops_file import load_skops_pipeline

    options: dict[str, Any]
    fitted = load_skops_pipeline(path)
    if isinstance(rows, RowsInParquet) and rows.large and preprocessing == PreprocessingName.FROZEN:
        say_aside(STAYS)
        options = {"favourable": rows.favourable, "ids": rows.id_column, "schema": rules, "retraining": "exact"}
        on_disk: LogisticModel = from_pipeline(fitted, rows.path, rows.label, **options)
        return on_disk
    taken = rules.names if rules is not None else getattr(fitted, "feature_names_in_", rows.frame.columns)
    frame = rows.frame[[name for name in rows.frame.columns if name in set(taken)]]
    options = {"favourable": rows.favourable, "preprocessing": preprocessing}
    model: LogisticModel = from_pipeline(fitted, frame, rows.labels, schema=rules, **options)
    return model


def _numeric_model(
    rows: LabelledRows | RowsInParquet, rules: FeatureSchema | None, path: Path | None, c: float
) -> Refittable:
    """A model of a table of numbers: a logistic one fitted here, or whatever is in the file."""
    from rocerf.cli.parquet_files import RowsInParquet
    from rocerf.data.feature import Kind
    from rocerf.models.logistic.model import LogisticModel
    from rocerf.models.sklearn.skops_file import load_skops_model

    texts = [feature.name for feature in rules or () if feature.kind is Kind.CATEGORICAL]
    if texts:
        raise OptionError(
            f"Expected --pipeline for a schema with categories such as {texts[0]!r}, got none: something must turn "
            "them into numbers; fit a pipeline, or make them columns of 0 and 1."
        )
    saved = path is not None and path.name.lower().endswith(".npz")
    stays = path is None or (not saved and isinstance(rows, RowsInParquet) and rows.large)
    train = rows.kept_on_disk() if stays else rows.training_set()
    if path is None:
        return LogisticModel.fit(train, C=c)
    if saved:
        return _saved_model(path, train)
    if stays:
        say_aside(STAYS)
    return LogisticModel.from_sklearn(load_skops_model(path), train, retraining="exact" if stays else "own")


def _saved_model(path: Path, train: TrainingSet) -> Refittable:
    """A model of ours as its ``save`` wrote it, which must be about the training rows given."""
    from importlib import import_module

    from rocerf.storage.state import State

    if not path.is_file():
        raise FileFormatError(f"Expected a model file at {path}, found none; check the path.")
    state = State.from_bytes(path.read_bytes(), source=path.name)
    kind = SAVED.get(state.format.rpartition("/")[0])
    if kind is None:
        raise FileFormatError(
            f"Expected a model that was written by its save method in {path.name}, got {state.format!r}; save a "
            "LogisticModel, NeuralModel or EstimatorModel."
        )
    model: Refittable = getattr(import_module(kind[0]), kind[1]).from_state(state)
    if model.train.checksum != train.checksum or str(model.train.favourable) != str(train.favourable):
        raise DataError(
            f"Expected the training rows that the model in {path.name} was saved with, got others (or another label as "
            "the favourable one, or columns in another order); give the table that it was trained on to --train."
        )
    return model
