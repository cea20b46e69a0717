"""The model that a command speaks of, from its files: a pipeline, a LogisticRegression, a model of ours that was saved
(a network, say), or one fitted on the spot."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

from rocerf.cli.options import PreprocessingName
from rocerf.cli.terminal import say_aside
from rocerf.errors import ColumnError, DataError, FileFormatError, OptionError

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
    """What a command knows of the model: at most one of the two files, or that a pipeline is to be fitted here."""

    model: Path | None = None
    pipeline: Path | None = None
    preprocessing: PreprocessingName | None = None
    c: float = 1.0
    fit: bool = False
    #: Whether the pipeline that is fitted here is also tried on rows that it was not fitted on.
    validate: bool = False
    #: From which probability people are accepted, where the user says so.
    threshold: float | None = None

    def __post_init__(self) -> None:
        if self.pipeline is None and not self.fit and self.preprocessing is not None:
            raise OptionError(
                "Expected --preprocessing only with --pipeline or --fit, got it alone; add one or drop it."
            )
        named = {"--model": self.model is not None, "--pipeline": self.pipeline is not None, "--fit": self.fit}
        given = [name for name, is_given in named.items() if is_given]
        if len(given) > 1:
            raise OptionError(f"Expected one of --model, --pipeline and --fit, got {' and '.join(given)}; keep one.")
        if self.threshold is not None and self.model is not None and self.model.name.lower().endswith(".npz"):
            raise OptionError(
                f"Expected --threshold with --pipeline, --fit or a scikit-learn model, got it with {self.model.name}, "
                "which was saved with its own; drop it."
            )

    @property
    def accepting(self) -> dict[str, Any]:
        """The threshold as an option of whatever takes the model over."""
        return {} if self.threshold is None else {"threshold": self.threshold}


def model_of(rows: LabelledRows | RowsInParquet, files: ModelFiles, rules: FeatureSchema | None = None) -> Refittable:
    """The model with its training rows; ``rules`` is the schema that a pipeline's columns are read by."""
    from rocerf.models.sklearn.skops_file import load_skops_pipeline

    preprocessing = str(files.preprocessing or PreprocessingName.FROZEN)
    if files.pipeline is not None:
        pipeline = load_skops_pipeline(files.pipeline)
        _refuse_another_threshold(pipeline, rows.favourable, files.threshold)
        return _pipeline_model(pipeline, rows, rules, preprocessing, files.accepting)
    if files.fit:
        return _pipeline_model(_fitted_here(rows, files, rules), rows, rules, preprocessing, files.accepting)
    return _numeric_model(rows, rules, files)


def _fitted_here(rows: LabelledRows | RowsInParquet, files: ModelFiles, rules: FeatureSchema | None) -> Any:
    """The pipeline of ``--fit``, on the columns of the schema where there is one; what it is, is told aside."""
    from rocerf.cli.fitting import fitted_here
    from rocerf.data.columns import some

    frame = rows.frame
    if rules is not None:
        unknown = [name for name in rules.names if name not in frame.columns]
        if unknown:
            raise ColumnError(
                f"Expected the columns of the schema among the training rows, got none named {some(unknown)}; give the "
                "schema that was written from these rows, or correct it."
            )
        frame = frame[[name for name in frame.columns if name in rules.names]]
    made = fitted_here(frame, rows.labels, c=files.c, validate=files.validate, chosen=rules is not None)
    for sentence in made.sentences:
        say_aside(sentence)
    return made.pipeline


def write_pipeline(model: Any, path: Path) -> None:
    """The fitted pipeline of a model, whole or not at all: the file may be the one that it replaces."""
    from skops.io import dumps

    from rocerf.storage.whole_file import write_bytes

    path.parent.mkdir(parents=True, exist_ok=True)
    write_bytes(path, dumps(model.parts.deployed.pipeline))


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
    fitted: Any,
    rows: LabelledRows | RowsInParquet,
    rules: FeatureSchema | None,
    preprocessing: str,
    accepting: dict[str, Any],
) -> LogisticModel:
    """The model of a fitted pipeline, on the columns that it takes, ``accepting`` from its threshold on."""
    from rocerf.cli.parquet_files import RowsInParquet
    from rocerf.models.sklearn.pipeline import from_pipeline

    options: dict[str, Any]
    if isinstance(rows, RowsInParquet) and rows.large and preprocessing == PreprocessingName.FROZEN:
        say_aside(STAYS)
        options = {"favourable": rows.favourable, "ids": rows.id_column, "schema": rules, "retraining": "exact"}
        on_disk: LogisticModel = from_pipeline(fitted, rows.path, rows.label, **(options | accepting))
        return on_disk
    taken = rules.names if rules is not None else getattr(fitted, "feature_names_in_", rows.frame.columns)
    frame = rows.frame[[name for name in rows.frame.columns if name in set(taken)]]
    options = {"favourable": rows.favourable, "preprocessing": preprocessing}
    model: LogisticModel = from_pipeline(fitted, frame, rows.labels, schema=rules, **(options | accepting))
    return model


def _numeric_model(rows: LabelledRows | RowsInParquet, rules: FeatureSchema | None, files: ModelFiles) -> Refittable:
    """A model of a table of numbers: a logistic one fitted here, or whatever is in the file."""
    from rocerf.cli.parquet_files import RowsInParquet
    from rocerf.data.feature import Kind
    from rocerf.models.logistic.model import LogisticModel
    from rocerf.models.sklearn.skops_file import load_skops_model

    texts = [feature.name for feature in rules or () if feature.kind is Kind.CATEGORICAL]
    if texts:
        raise OptionError(
            f"Expected --pipeline or --fit for a schema with categories such as {texts[0]!r}, got neither: something "
            "must turn them into numbers; --fit fits a pipeline here, --pipeline takes yours."
        )
    _refuse_what_needs_a_pipeline(rows)
    path = files.model
    saved = path is not None and path.name.lower().endswith(".npz")
    stays = path is None or (not saved and isinstance(rows, RowsInParquet) and rows.large)
    train = rows.kept_on_disk() if stays else rows.training_set()
    if path is None:
        return LogisticModel.fit(train, C=files.c, **files.accepting)
    if saved:
        return _saved_model(path, train)
    if stays:
        say_aside(STAYS)
    options: dict[str, Any] = {"retraining": "exact" if stays else "own", **files.accepting}
    fitted = load_skops_model(path)
    _refuse_another_threshold(fitted, rows.favourable, files.threshold)
    return LogisticModel.from_sklearn(fitted, train, **options)


def _refuse_another_threshold(fitted: Any, favourable: Any, said: float | None) -> None:
    """Refuse 0.5 for a classifier with another threshold of its own; the library takes that for nothing said."""
    from rocerf.models.sklearn.own_threshold import deciding, own_threshold

    own = own_threshold(fitted, favourable) if said == 0.5 else None
    if own is not None and own != said:
        raise OptionError(
            f"Expected the threshold that the {type(deciding(fitted)).__name__} has itself, {own:g}, got --threshold "
            "0.5; leave it out, or save the classifier inside it (estimator_) and give that."
        )


def _refuse_what_needs_a_pipeline(rows: LabelledRows | RowsInParquet) -> None:
    """Texts and gaps are for pipelines; rows that stay on the disk are looked at when they are read."""
    from rocerf.cli.fitting import text_columns
    from rocerf.cli.parquet_files import RowsInParquet

    if isinstance(rows, RowsInParquet):
        texts, gaps = rows.text_columns(), []
    else:
        texts = text_columns(rows.frame)
        gaps = [str(name) for name, column in rows.frame.items() if column.isna().any()]
    for what, names in (("texts", texts), ("missing values", gaps)):
        if names:
            some = ", ".join(map(repr, names[:3])) + (", ..." if len(names) > 3 else "")
            raise OptionError(
                f"Expected numbers in every cell of the training rows, got {what} in {some}: something must turn them "
                "into numbers; --fit fits a pipeline here, --pipeline takes your own (skops.io.dump), or leave the "
                f"{'column' if len(names) == 1 else 'columns'} out of the file."
            )


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
