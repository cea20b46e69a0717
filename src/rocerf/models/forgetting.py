"""Models in which nothing of some rows is left: everything learned from rows is learned anew from those that are left.

``without`` asks what would be if rows were deleted, and may keep what the present model has (scaling, categories,
ranges, a start next to the optimum). Here nothing is carried over but what the user said: options, the estimator
itself, unfitted, and the declared parts of the schema.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterable, Iterator, Mapping
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any, TypeVar

import numpy as np
from numpy.typing import NDArray

from rocerf.data.feature import Kind
from rocerf.data.guess import guessed_again, leaving_out
from rocerf.data.schema import FeatureSchema
from rocerf.data.training_set import TrainingSet
from rocerf.errors import UnsupportedModelError
from rocerf.models.design import Design
from rocerf.models.logistic.fit import LogisticFit
from rocerf.models.logistic.model import LogisticModel
from rocerf.models.sklearn.estimator import EstimatorModel
from rocerf.models.sklearn.estimator_fitting import fitted_on, names_of, settled, weight_option
from rocerf.models.sklearn.pipeline_steps import quietly

if TYPE_CHECKING:
    import pandas as pd

    from rocerf.models.sklearn.pipeline_estimator import SchemaSpaceClassifier

AnyModel = TypeVar("AnyModel")


def logistic_forgetting(model: LogisticModel, ids: Iterable[Any], declared: Collection[str]) -> LogisticModel:
    """What :meth:`LogisticModel.forget` gives."""
    gone = model.train.positions(ids)
    left, fit = model.train.forget(model.train.ids[gone]), model._fit
    if fit.parts is not None:
        return _logistic_pipeline(model, left, np.delete(np.arange(len(model.train)), gone), declared)
    if fit.unfitted is not None:
        names = left.columns if left.from_frame else None
        again, rule = _fitted(fit.unfitted, left, names), fit.retraining or "own"
        return LogisticModel.from_sklearn(again, left, threshold=fit.threshold, retraining=rule)
    design = fit.objective.design
    assert isinstance(design, Design)
    made = LogisticFit.minimised(
        left,
        design.made_anew(left),
        fit.objective.penalty,
        fit.class_weight,
        fit.threshold,
        intercept_penalty=fit.objective.intercept_penalty,
        loss=fit.objective.loss,
    )
    # Fitted elsewhere, and its estimator is not at hand: from now on we fit it, and that must be said.
    return LogisticModel(replace(made, retraining=None if fit.retraining is None else "exact"))


def _logistic_pipeline(
    model: LogisticModel, left: TrainingSet, kept: NDArray[np.intp], declared: Collection[str]
) -> LogisticModel:
    from rocerf.models.sklearn.pipeline import from_pipeline

    parts, unfitted = model._fit.parts, model._fit.unfitted
    assert parts is not None
    if unfitted is None or parts.recipe is None:
        raise UnsupportedModelError(
            "Expected the pipeline itself to fit it on the rows left, got a model read from a file, in which pipelines "
            "are not kept, or a pipeline that scikit-learn cannot clone; read the model with "
            "LogisticModel.load(path, pipeline=...), giving the fitted pipeline it was made from (on the command line: "
            "--pipeline), or fit a pipeline on the rows left and take it over with rocerf.from_pipeline."
        )
    rows = _Rows(parts.recipe.frame.iloc[kept], parts.recipe.labels[kept], left, parts.recipe.steps.given)

    def taken_over(fitted: Any, frame: pd.DataFrame, schema: FeatureSchema) -> LogisticModel:
        made: LogisticModel = from_pipeline(
            fitted,
            frame,
            rows.labels,
            schema=schema,
            preprocessing=parts.rule,
            threshold=model.threshold,
            retraining=model._fit.retraining or "own",
            **rows.options,
        )
        return LogisticModel(replace(made._fit, notes=model._fit.notes))  # what was around it stays, and is said

    return _pipeline_again(unfitted, 0, parts.frames.schema, rows, taken_over, declared)


def estimator_forgetting(model: EstimatorModel, ids: Iterable[Any], declared: Collection[str]) -> EstimatorModel:
    """What :meth:`EstimatorModel.forget` gives."""
    from rocerf.models.sklearn.pipeline import estimator_from_pipeline
    from rocerf.models.sklearn.pipeline_estimator import frames_of

    left, own = model.train.forget(ids), model.estimator
    if model.frames is None:
        _refuse_frozen_parts(own)
        fitted = _fitted(own, left, names_of(own), model.seed)
        return EstimatorModel._taken_over(fitted, left, threshold=model.threshold, seed=model.seed)
    around: SchemaSpaceClassifier = own
    labels = _labels(left, own.classes_)
    rows = _Rows(around.own_rows(left.X), labels, left, around.as_shown)

    def taken_over(fitted: Any, frame: pd.DataFrame, schema: FeatureSchema) -> EstimatorModel:
        return estimator_from_pipeline(fitted, frame, labels, schema, model.threshold, **rows.options)

    made = _pipeline_again(around.pipeline, model.seed, model.frames.schema, rows, taken_over, declared)
    frames_of.cache_clear()  # it may hold the schema as it was
    return made


@dataclass(frozen=True, eq=False)
class _Rows:
    """The rows left: in the user's columns (as they came), with labels, ids and weights; how a pipeline takes them."""

    frame: pd.DataFrame
    labels: NDArray[Any]
    train: TrainingSet
    shown: Callable[[pd.DataFrame], Any]

    @property
    def options(self) -> dict[str, Any]:
        return {"ids": self.train.ids, "favourable": self.train.favourable, "sample_weight": self.train.weights}

    def clean(self, schema: FeatureSchema) -> pd.DataFrame:
        """The rows in a table of their own: no index, notes or categories of pandas that other rows have left.

        Categories are those of the schema, all of them: which ones the table came with tells who was in it.
        """
        import pandas as pd

        frame = self.frame.reset_index(drop=True)
        frame.attrs = {}
        for feature in schema:
            column = frame[feature.name]
            if not isinstance(column.dtype, pd.CategoricalDtype):
                continue
            known = [c for c in feature.categories if c is not None]
            own = column.cat.set_categories(known) if known else column.cat.remove_unused_categories()
            frame[feature.name] = own
        return frame

    def lost(self, schema: FeatureSchema) -> list[str]:
        """Columns of schema space whose category none of the rows has."""
        found = []
        for feature in schema:
            if feature.kind is Kind.CATEGORICAL:
                present, gaps = set(self.frame[feature.name].dropna()), bool(self.frame[feature.name].isna().any())
                places = zip(feature.columns, feature.categories, strict=True)
                found += [name for name, c in places if not (gaps if c is None else c in present)]
        return found


def _pipeline_again(
    pipeline: Any,
    seed: int,
    schema: FeatureSchema,
    rows: _Rows,
    taken_over: Callable[[Any, pd.DataFrame, FeatureSchema], AnyModel],
    declared: Collection[str],
) -> AnyModel:
    """A clone of the pipeline fitted on the rows and taken over, with the schema that goes with them.

    A declared category that no row has stays, if the pipeline fitted again can take it; else nobody can have it.
    """
    _refuse_frozen_parts(pipeline)

    def made(schema: FeatureSchema) -> AnyModel:
        frame = rows.clean(schema)
        return taken_over(_fitted_pipeline(pipeline, seed, frame, rows), frame, schema)

    schema = guessed_again(schema, rows.frame, declared)
    lost = rows.lost(schema)
    if not lost:
        return made(schema)
    try:
        return made(schema)
    except UnsupportedModelError:
        return made(leaving_out(schema, lost))


def _fitted_pipeline(pipeline: Any, seed: int, frame: pd.DataFrame, rows: _Rows) -> Any:
    unfitted = settled(pipeline, seed)
    option = weight_option(unfitted, rows.train)
    weights = {} if option is None else {option: rows.train.weights}
    try:
        with quietly():
            return unfitted.fit(rows.shown(frame), rows.labels, **weights)
    except Exception as error:  # the steps may be the user's own code
        raise UnsupportedModelError(
            f"Expected a pipeline that can be fitted on the {len(frame)} rows that are left, got an error "
            f"({type(error).__name__}: {error}); forget fewer rows, or fit another pipeline on them."
        ) from error


def _fitted(estimator: Any, left: TrainingSet, names: Any, seed: int = 0) -> Any:
    """A clone fitted on the rows; that it stopped early is said where it is taken over."""
    with quietly():
        return fitted_on(settled(estimator, seed), left, names)


def _labels(train: TrainingSet, classes: NDArray[Any]) -> NDArray[Any]:
    """The user's labels of the rows, (n,), as the classifier spells them."""
    good = classes == train.favourable
    return np.asarray(np.where(train.y == 1.0, classes[good][0], classes[~good][0]), dtype=classes.dtype)


def _refuse_frozen_parts(estimator: Any) -> None:
    """A part that clones do not fit again still knows the rows it was fitted on."""
    for name, part in _parts_within(type(estimator).__name__, estimator):
        if _is_frozen(part):
            raise UnsupportedModelError(
                f"Expected an estimator that is fitted again as a whole, got one whose part {name!r} is a "
                f"{type(part).__name__}, which keeps what it learned from all rows; fit that part on the rows left, "
                "and take the whole over again."
            )


def _parts_within(name: str, given: Any) -> Iterator[tuple[str, Any]]:
    """Everything with parameters in an estimator, itself included, however deep, with its name."""
    if hasattr(given, "get_params") and not isinstance(given, type):
        yield name, given
        given = given.get_params(deep=False)
    if isinstance(given, Mapping):
        for key, value in given.items():
            yield from _parts_within(str(key), value)
    elif isinstance(given, list | tuple):  # scikit-learn keeps steps as (name, estimator, ...)
        own = given[0] if isinstance(given, tuple) and given and isinstance(given[0], str) else name
        for value in given:
            yield from _parts_within(own, value)


def _is_frozen(part: Any) -> bool:
    """Whether scikit-learn's ``clone`` hands back what was fitted."""
    from sklearn.base import clone

    if any(kind.__name__ == "FrozenEstimator" for kind in type(part).__mro__):  # scikit-learn has it since 1.6
        return True
    try:
        return clone(part) is part
    except Exception:  # the user's own code; that it cannot be cloned is said where it must be
        return False
