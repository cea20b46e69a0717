"""What may be asked of an explainer: its options, checked."""

from __future__ import annotations

import math
from typing import Any, Literal

from rocerf.data.columns import is_number
from rocerf.data.schema import FeatureSchema, Kind
from rocerf.errors import OptionError, SchemaError
from rocerf.models.model import Refittable
from rocerf.recourse.solvers.solving import SOLVERS

#: What a column of a kind may be in a stricter schema, besides the same.
_STRICTER = {Kind.CONTINUOUS: (Kind.INTEGER, Kind.BINARY), Kind.INTEGER: (Kind.BINARY,)}


def checked_model(model: Any) -> Refittable:
    """The model, if it is one of rocerf's."""
    if not isinstance(model, Refittable):
        raise OptionError(
            f"Expected a rocerf model, got {type(model).__name__}; wrap a fitted scikit-learn model with "
            "LogisticModel.from_sklearn(fitted, train) or EstimatorModel.from_sklearn(fitted, train), a pipeline "
            "with rocerf.from_pipeline(pipeline, frame, y), a torch module with "
            "NeuralModel.from_torch(module, train)."
        )
    return model


def checked_schema(schema: Any, model: Refittable) -> FeatureSchema | None:
    """The schema, if it is about the model's columns; by default the one that the model was taken over with."""
    own = model.schema
    schema = own if schema is None else schema
    if schema is None:
        return None
    if not isinstance(schema, FeatureSchema):
        raise OptionError(
            f"Expected schema to be a FeatureSchema, got {type(schema).__name__}; "
            "make one with FeatureSchema.from_frame or FeatureSchema.free."
        )
    schema.check_columns(model.train.columns)
    if own is not None:
        _refuse_looser_kinds(schema, own)
    return schema


def _refuse_looser_kinds(schema: FeatureSchema, own: FeatureSchema) -> None:
    """Points must be values of the user's columns as their model has them: 1.98 children are nobody's."""
    for feature, known in zip(schema.column_features, own.column_features, strict=True):
        if feature.kind is not known.kind and feature.kind not in _STRICTER.get(known.kind, ()):
            raise SchemaError(
                f"Expected {known.name!r} to be {known.kind.value}, as in the schema that the pipeline was taken over "
                f"with, got {feature.kind.value}, which allows values that this column cannot hold; start from "
                "model.schema, or take the pipeline over with this schema: rocerf.from_pipeline(..., schema=...)."
            )


def checked_delta(delta: Any) -> float | Literal["calibrate"]:
    """The margin, if it is one."""
    if isinstance(delta, str) and delta == "calibrate":
        return "calibrate"
    if not is_number(delta) or not math.isfinite(delta) or delta < 0:
        raise OptionError(
            f"Expected delta to be a number >= 0 or 'calibrate', got {delta!r}; 0 asks for no extra margin."
        )
    return float(delta)


def refuse_rules_unknown_to(solver: str, schema: FeatureSchema | None, max_changes: int | None) -> None:
    """Refuse rules that this solver does not know."""
    ruled = max_changes is not None or (
        schema is not None and (schema.relations or any(f.kind is not Kind.CONTINUOUS or f.step for f in schema))
    )
    if ruled and not SOLVERS[solver].knows_rules:
        raise OptionError(
            f"Expected a schema with bounds and directions only for the solver {solver!r} ({SOLVERS[solver].summary}), "
            "got steps, categories, relations or a limit on changes; leave the solver to 'auto'."
        )
