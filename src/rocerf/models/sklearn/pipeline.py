"""scikit-learn pipelines taken over: preprocessing, then LogisticRegression, as one model of schema space.

>>> import pandas as pd
>>> from sklearn.compose import make_column_transformer
>>> from sklearn.linear_model import LogisticRegression
>>> from sklearn.pipeline import make_pipeline
>>> from sklearn.preprocessing import OneHotEncoder, StandardScaler
>>> df = pd.DataFrame({"income": [10.0, 20.0, 30.0, 40.0], "home": ["rent", "own", "rent", "own"]})
>>> encode = make_column_transformer((StandardScaler(), ["income"]), (OneHotEncoder(), ["home"]))
>>> pipeline = make_pipeline(encode, LogisticRegression()).fit(df, ["no", "no", "yes", "yes"])
>>> model = from_pipeline(pipeline, df, ["no", "no", "yes", "yes"], favourable="yes")
>>> model.train.columns, model.predict(df).tolist()
(('income', 'home=own', 'home=rent'), [0, 0, 1, 1])
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from typing import TYPE_CHECKING, Any, Literal, TypedDict, Unpack, overload

import numpy as np
from numpy.typing import ArrayLike

from rocerf.data.foreign import as_pandas, with_origin
from rocerf.data.frames import Frames
from rocerf.data.schema import FeatureSchema
from rocerf.data.training_set import TrainingSet
from rocerf.errors import (
    DataError,
    NoOptimumError,
    NotAtOptimumError,
    OptionError,
    SchemaError,
    SingularCurvatureError,
    UnsupportedModelError,
)
from rocerf.models.arithmetic import Arithmetic
from rocerf.models.logistic.dependent import refuse_breakable
from rocerf.models.logistic.fit import LogisticFit
from rocerf.models.logistic.model import LogisticModel
from rocerf.models.options import checked_threshold
from rocerf.models.sklearn.estimator_fitting import (
    own_copy,
    refuse_unfitted,
    refuse_unfitted_end,
    refuse_what_is_no_classifier,
    unfitted_copy,
)
from rocerf.models.sklearn.known_gaps import types_known
from rocerf.models.sklearn.own_refit import OwnEstimator, RetrainingRule, checked_retraining
from rocerf.models.sklearn.pipeline_check import largest_error, refuse_what_is_not_affine, with_checked_fills
from rocerf.models.sklearn.pipeline_parquet import is_on_disk, pipeline_from_parquet
from rocerf.models.sklearn.pipeline_parts import (
    Deployed,
    PipelineParts,
    PreprocessingRule,
    Recipe,
    checked_rule,
    filled,
)
from rocerf.models.sklearn.pipeline_pieces import AdditiveMap, additive_map
from rocerf.models.sklearn.pipeline_probe import AffineMap, Probe, Ranges, refuse_unknown_categories
from rocerf.models.sklearn.pipeline_steps import (
    CannotTransformError,
    Preprocessing,
    refuse_other_columns,
    split,
    unused_columns,
    with_used_categories,
)
from rocerf.models.sklearn.reader import is_logistic, read_logistic_regression
from rocerf.models.sklearn.wrapped import Unwrapped, unwrapped
from rocerf.types import Array

if TYPE_CHECKING:
    import pandas as pd

    from rocerf.models.sklearn.estimator import EstimatorModel


class PipelineOptions(TypedDict, total=False):
    """The options of :func:`from_pipeline` that do not change what it returns."""

    schema: FeatureSchema | None
    preprocessing: PreprocessingRule
    retraining: RetrainingRule
    favourable: Any
    ids: ArrayLike | Sequence[Any] | None
    threshold: float
    sample_weight: ArrayLike | None


@overload
def from_pipeline(
    pipeline: Any,
    train_df: pd.DataFrame,
    y: ArrayLike,
    *,
    otherwise: Literal["refuse"] = "refuse",
    **options: Unpack[PipelineOptions],
) -> LogisticModel: ...


@overload
def from_pipeline(
    pipeline: Any,
    train_df: pd.DataFrame,
    y: ArrayLike,
    *,
    otherwise: Literal["estimator"],
    **options: Unpack[PipelineOptions],
) -> LogisticModel | EstimatorModel: ...


def from_pipeline(
    pipeline: Any,
    train_df: pd.DataFrame,
    y: ArrayLike,
    *,
    schema: FeatureSchema | None = None,
    preprocessing: PreprocessingRule = "frozen",
    retraining: RetrainingRule = "own",
    favourable: Any = 1,
    ids: ArrayLike | Sequence[Any] | None = None,
    threshold: float = 0.5,
    sample_weight: ArrayLike | None = None,
    otherwise: Literal["refuse", "estimator"] = "refuse",
) -> LogisticModel | EstimatorModel:
    """Take over a fitted scikit-learn pipeline that ends in LogisticRegression, with the rows it was fitted on.

    Points live in schema space: numbers as they are, one 0/1 column ``feature=category`` for each category. Whatever
    comes before the classifier must be a sum of what each column adds by itself (scaling, encoding, bins, weight of
    evidence, logarithms, powers, splines, one value or a mark for missing ones); this is found by asking it and checked
    on all rows. A number that is missing is answered where it counts the same in every row (not with KNNImputer, say).
    The pipeline is copied: fitting it again later changes nothing here.

    Parameters
    ----------
    pipeline : fitted Pipeline, or a bare LogisticRegression
        Also inside a search for settings (GridSearchCV, LogisticRegressionCV), a scorecard (optbinning) or one
        calibration (CalibratedClassifierCV), which then stay as they are when rows are deleted.
    train_df : table (pandas, Polars, PyArrow) of n rows in the columns that the pipeline takes
        Columns that it ignores become no part of the schema, unless one is given that has them. Rows in Parquet are
        given by their path (or as a PyArrow dataset), with ``retraining="exact"``.
    y : n labels
        Of rows in Parquet the name of the label's column.
    schema : FeatureSchema of the same columns
        What may change; by default guessed by ``FeatureSchema.from_frame``.
    preprocessing : "frozen" or "refitted"
        Whether scalers, encoders and imputers stay as they are when rows are deleted, or are fitted again on the rows
        left (slower, and without the promises "first_order" and "certified").
    retraining : "own" or "exact"
        Who retrains after a deletion: you do, by fitting this pipeline again to its tolerance, which promises then
        allow for; or what you deploy is ``model.without``, the exact optimum.
    favourable : label
        The good one.
    ids : sequence of n unique values, or the name of their column
        Names of the rows, kept when others go; by default the DataFrame's index.
    threshold : float
        Probability of the favourable label from which a person is accepted.
    sample_weight : array of shape (n,)
        The weights that LogisticRegression was fitted with.
    otherwise : "refuse" or "estimator"
        What to do with a pipeline that joins columns, ends in another classifier, or in a LogisticRegression whose
        retraining cannot be followed exactly (an L1 penalty, ...): refuse it with the reason, or return an
        :class:`rocerf.EstimatorModel` over schema space, for the promises "retrained" and "simulated", where columns
        may have missing numbers that the pipeline deals with in its own way.
    """
    if otherwise not in ("refuse", "estimator"):
        raise OptionError(f"Expected otherwise to be 'refuse' or 'estimator', got {otherwise!r}.")
    rule, threshold, by = checked_rule(preprocessing), checked_threshold(threshold), checked_retraining(retraining)
    options = {"ids": ids, "favourable": favourable, "sample_weight": sample_weight}
    if is_on_disk(train_df):
        if (rule, by, otherwise) != ("frozen", "exact", "refuse"):
            raise OptionError(
                "Expected preprocessing='frozen' and retraining='exact' for training rows that stay on the disk, got "
                f"{rule!r} and {by!r}: what you fit again yourself is fitted on all rows at once. Say so, or read them."
            )
        return pipeline_from_parquet(pipeline, train_df, y, schema, threshold, **options)
    try:
        inside = unwrapped(pipeline, threshold, favourable)
        taken, rows = _taken(inside.pipeline, train_df, y, schema, options)
        return _logistic(taken, rows, rule, by, inside)
    except (UnsupportedModelError, SingularCurvatureError, NoOptimumError):
        if otherwise == "refuse":
            raise
        taken, rows = _taken(getattr(pipeline, "best_estimator_", pipeline), train_df, y, schema, options)
        return _estimator(taken, rows, threshold)


def _taken(
    pipeline: Any, frame: pd.DataFrame, y: ArrayLike, schema: FeatureSchema | None, options: dict[str, Any]
) -> tuple[Any, Rows]:
    """A copy of the pipeline, and the training rows in the columns of the schema."""
    if isinstance(options["ids"], str):
        frame, options = with_origin(frame, options["ids"])[0], options | {"ids": None}
    frame = as_pandas(frame)
    refuse_other_columns(frame)
    pipeline = own_copy(pipeline)
    # Polars and PyArrow have one kind of gap; the pipeline may have been fitted on another one of pandas'.
    frame = types_known(pipeline, frame).put_on(frame)
    schema = _schema_of(pipeline, frame, y, schema)
    used = frame[[name for name in frame.columns if name in schema.names]]
    return pipeline, Rows(used, y, Frames.of(schema, used), options)


class Rows:
    """The training rows as the user has them, and in schema space with missing numbers marked."""

    def __init__(self, frame: pd.DataFrame, y: ArrayLike, frames: Frames, options: dict[str, Any]) -> None:
        # A copy: what the user does with their table later must not change what is retrained on.
        self.frame, self.y, self.frames, self.options = frame.copy(), y, frames, options
        self.X, _, self.problems = frames.encode(frame)
        numbers = [place for place, f in enumerate(frames.schema.column_features) if not f.categories]
        self.missing = np.zeros(self.X.shape, bool)
        for place in numbers:
            self.missing[:, place] = frame[frames.columns[place]].isna().to_numpy()

    def training_set(self, X: Array) -> TrainingSet:
        """The rows in schema space (n, d), complete."""
        import pandas as pd

        ids = self.frame.index if self.options["ids"] is None else self.options["ids"]
        table = pd.DataFrame(X, columns=list(self.frames.columns))
        options = {name: self.options[name] for name in ("favourable", "sample_weight")}
        return TrainingSet(table, self.y, ids, **options)

    def refuse_incomplete(self, X: Array) -> None:
        """Every training row must be a point of schema space once missing numbers are filled in."""
        bad = np.flatnonzero(~np.isfinite(X).all(axis=1))
        unreadable = [place for place, said in enumerate(self.problems) if said and not self.missing[place].any()]
        if unreadable:
            raise SchemaError(
                f"Expected training rows that are values of the schema, got {len(unreadable)} that are not; the first "
                f"is row {unreadable[0]}: {self.problems[unreadable[0]]}. Correct the rows or the schema."
            )
        if len(bad):
            raise DataError(
                f"Expected a number, or one that the pipeline fills in, everywhere, got {len(bad)} training rows "
                f"without; the first is row {bad[0]}: {self.problems[bad[0]]}. Fill them in, in the pipeline "
                "(SimpleImputer) or before."
            )


def _schema_of(pipeline: Any, frame: pd.DataFrame, y: ArrayLike, schema: FeatureSchema | None) -> FeatureSchema:
    """The schema given, if it is about the columns that the pipeline uses, else a guess about these."""
    if schema is None:
        frame = frame.drop(columns=list(unused_columns(pipeline, frame, np.asarray(y))))
        return FeatureSchema.from_frame(with_used_categories(frame))
    if not isinstance(schema, FeatureSchema):
        raise OptionError(
            f"Expected schema to be a FeatureSchema, got {type(schema).__name__}; make one with "
            "FeatureSchema.from_frame(train_df)."
        )
    absent = [name for name in schema.names if name not in frame.columns]
    extra = [name for name in frame.columns if name not in schema.names]
    if extra:
        unused = unused_columns(pipeline, frame, np.asarray(y))
        extra = [name for name in extra if name not in unused]
    if absent or extra:
        raise SchemaError(
            f"Expected a schema of the training rows' {len(frame.columns)} columns, got one that "
            f"{f'has {absent[0]!r} besides' if absent else f'lacks {extra[0]!r}'}; make it with "
            "FeatureSchema.from_frame(train_df), or leave the column out of both."
        )
    return schema


def _logistic(
    pipeline: Any, rows: Rows, rule: PreprocessingRule, retraining: RetrainingRule, inside: Unwrapped
) -> LogisticModel:
    _, last = split(pipeline)
    refuse_unfitted_end(last)
    if not is_logistic(last):
        raise UnsupportedModelError(
            f"Expected a pipeline that ends in LogisticRegression, got one that ends in {type(last).__name__}; take it "
            "over for the promises 'retrained' and 'simulated' with otherwise='estimator'."
        )
    steps, ranges = Preprocessing.of(pipeline, rows.frame), Ranges.of(rows.X, rows.frames)
    probe = Probe(steps, rows.frames, ranges)
    found = map_of(probe, rows)
    if rule == "refitted" and isinstance(found, AdditiveMap):
        raise _refitted_pieces(found, rows.frames)
    X = filled(rows.X, rows.missing, found.fills, rows.frames)
    frames = Frames.of(rows.frames.schema, rows.frame, found.fills)
    frames = replace(frames, marks=found.marks(frames.columns))
    train = rows.training_set(X)
    read = read_logistic_regression(last, train, same_columns=False)
    deployed = Deployed.of(pipeline, steps, train)
    recipe = Recipe(steps, rows.frame, np.array(rows.y), rows.missing, ranges)
    parts = PipelineParts(frames, rule, deployed=deployed, recipe=recipe)
    if rule == "refitted":
        parts.refuse_what_is_not_reproduced(X, found)
    design = found.design(intercept=read.intercept)
    try:
        fit = LogisticFit.taken_over(last, read, train, design, inside.threshold)
    except NotAtOptimumError:
        recipe.refuse_two_ways()
        raise
    error = largest_error(probe, found, rows.frame, X)
    arithmetic = Arithmetic.of(
        steps.bits(rows.frame), lambda: deployed.log_odds(rows.frame), fit.deployed_scores, error
    )
    fit = replace(fit, parts=parts, arithmetic=arithmetic, unfitted=unfitted_copy(pipeline), notes=inside.notes)
    return LogisticModel(refuse_breakable(replace(fit, own=OwnEstimator.of(last), retraining=retraining)))


def map_of(probe: Probe, rows: Rows) -> AffineMap:
    """What the preprocessing does, as an affine map or, where it is none, as a sum of functions of one column each."""
    try:
        found = probe.found()
        refuse_unknown_categories(found, probe.frames)
        try:
            return _checked(probe, found, rows)
        except UnsupportedModelError:
            return _checked(probe, additive_map(probe, rows.X, rows.missing), rows)
    except CannotTransformError as error:
        raise UnsupportedModelError(
            f"Expected a pipeline that takes rows of the training DataFrame's columns, got one that cannot ({error}); "
            "pass the columns it was fitted on, and in the schema only categories that it knows."
        ) from error


def _checked(probe: Probe, found: AffineMap, rows: Rows) -> AffineMap:
    """The map with the fills that hold, if it makes of all training rows and of random ones what the steps do."""
    found = with_checked_fills(probe, found)
    X = filled(rows.X, rows.missing, found.fills, probe.frames)
    tangled = [name for name in found.tangled if rows.frame[name].isna().any()]
    if not tangled:  # else that is the reason to give
        rows.refuse_incomplete(X)
    refuse_what_is_not_affine(probe, found, rows.frame, X)
    return found


def _refitted_pieces(found: AdditiveMap, frames: Frames) -> UnsupportedModelError:
    names = ", ".join(repr(frames.columns[column]) for column in found.pieces)
    return UnsupportedModelError(
        f"Expected preprocessing='frozen' for a pipeline with bins, codes or curves (in {names}), whose pieces stay as "
        "they are when rows are deleted, got 'refitted'; use 'frozen', or take the pipeline over for "
        "the promises 'retrained' and 'simulated' with otherwise='estimator'."
    )


def _estimator(pipeline: Any, rows: Rows, threshold: float) -> EstimatorModel:
    from rocerf.models.sklearn.estimator import EstimatorModel
    from rocerf.models.sklearn.pipeline_estimator import SchemaSpaceClassifier, stand_ins

    refuse_what_is_no_classifier(split(pipeline)[1])
    refuse_unfitted(pipeline)
    fills = stand_ins(rows.X, rows.missing, rows.frames)
    frames = replace(rows.frames, fills=fills, kept=tuple(fills))
    X = filled(rows.X, rows.missing, frames.fills, frames)
    rows.refuse_incomplete(X)
    fitted = SchemaSpaceClassifier.of(pipeline, frames, Preprocessing.of(pipeline, rows.frame))
    return EstimatorModel._taken_over(fitted, rows.training_set(X), threshold=threshold, seed=0)


def estimator_from_pipeline(
    pipeline: Any, frame: pd.DataFrame, y: ArrayLike, schema: FeatureSchema, threshold: float, **options: Any
) -> EstimatorModel:
    """What ``otherwise="estimator"`` leads to, of any fitted pipeline; further options as in :func:`from_pipeline`."""
    return _estimator(own_copy(pipeline), Rows(frame, y, Frames.of(schema, frame), options), threshold)
