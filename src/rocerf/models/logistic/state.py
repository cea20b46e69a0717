"""A logistic model as plain values and arrays, and back.

Of a pipeline the state keeps what it does, which is the affine map, the schema with columns and types, the numbers put
for missing ones and the deployed coefficients; the pipeline itself is given again when the model is read, if it is
needed.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import asdict, replace
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from rocerf.data.frames import Frames
from rocerf.data.given_rows import plain_label
from rocerf.data.training_set import rows_in
from rocerf.errors import OptionError
from rocerf.models.additive import AdditiveDesign
from rocerf.models.arithmetic import Arithmetic
from rocerf.models.design import AffineDesign, AnyDesign, Design
from rocerf.models.logistic.fit import LogisticFit, Polish
from rocerf.models.logistic.objective import Penalty
from rocerf.models.loss import LOGISTIC, name_of
from rocerf.models.sklearn.estimator_fitting import unfitted_copy
from rocerf.models.sklearn.own_refit import OwnEstimator
from rocerf.models.sklearn.pipeline_steps import split
from rocerf.storage.state import State
from rocerf.types import Array

if TYPE_CHECKING:
    from rocerf.models.sklearn.pipeline_parts import PipelineParts


FORMAT = "rocerf-logistic-model/2"

#: The largest move of training scores, by their size, when the optimum is found again from where a state has it.
SAME_OPTIMUM = 1e-6


def state_of(fit: LogisticFit) -> State:
    """Model and training rows."""
    weights, parts, design = fit.class_weight, fit.parts, fit.objective.design
    values: dict[str, Any] = {
        "class_weight": [[plain_label(a), b] for a, b in weights.items()] if isinstance(weights, Mapping) else weights,
        "threshold": fit.threshold,
        "penalty": {name: v for name, v in asdict(fit.objective.penalty).items() if v or not name.startswith("l1")},
        "intercept": design.intercept,
        "standardises": isinstance(design, Design) and design.standardises,
        "intercept_penalty": fit.objective.intercept_penalty,
        "polish": None if fit.polish is None else asdict(fit.polish),
        "arithmetic": {"bits": fit.arithmetic.bits, "score_error": fit.arithmetic.score_error},
        "retraining": fit.retraining,
        "pipeline": None if parts is None else {"frames": parts.frames.to_dict(), "preprocessing": parts.rule},
    }
    if fit.notes:
        values["notes"] = list(fit.notes)
    if fit.objective.loss is not LOGISTIC:
        values["loss"] = name_of(fit.objective.loss)
    arrays = {
        "theta": fit.minimum.theta,
        **_design_arrays(design),
        "deployed_theta": fit.deployed_theta,
        "design_error": fit.arithmetic.design_error,
        "handicap": None if parts is None else parts.handicap,
        "images": None if parts is None else parts.training_images(),
        "missing": parts.recipe.missing if parts and parts.recipe and parts.recipe.missing.any() else None,
    }
    return fit.train.state().extended(FORMAT, values, {k: v for k, v in arrays.items() if v is not None})


def _design_arrays(design: AnyDesign) -> dict[str, Array]:
    if isinstance(design, AdditiveDesign):
        return {"matrix": design.matrix, "shift": design.shift, **design.arrays()}
    if isinstance(design, AffineDesign):
        return {"matrix": design.matrix, "shift": design.shift}
    assert isinstance(design, Design)
    return {"centre": design.centre, "scale": design.scale}


def fit_from(state: State, pipeline: Any = None) -> LogisticFit:
    """The model of a state, its optimum found again by Newton; with its pipeline, if that is given."""
    with state.understood(FORMAT, "LogisticModel.save"):
        fit = _fit(state)
    if pipeline is None:
        return fit
    if fit.parts is None:
        raise OptionError(
            f"Expected a pipeline only for a model made from one, got one for {state.source}; leave it out."
        )
    parts = _with_pipeline(fit, fit.parts, pipeline, state.arrays.get("missing"))
    own = None if fit.retraining is None else OwnEstimator.of(split(pipeline)[1])
    return replace(fit, parts=parts, own=own, unfitted=unfitted_copy(pipeline))


def _fit(state: State) -> LogisticFit:
    """The model, at the very parameters of the state once Newton has found the same optimum there."""
    about, arrays = state.values, state.arrays
    design: AnyDesign = (
        AdditiveDesign.from_arrays(arrays, about["intercept"])
        if "pieces_columns" in arrays
        else AffineDesign(arrays["matrix"], arrays["shift"], about["intercept"])
        if "matrix" in arrays
        else Design(arrays["centre"], arrays["scale"], about["intercept"], about["standardises"])
    )
    theta = arrays["theta"]
    fit = LogisticFit.minimised(
        rows_in(state),
        design,
        Penalty(**about["penalty"]),
        dict(about["class_weight"]) if isinstance(about["class_weight"], list) else about["class_weight"],
        about["threshold"],
        intercept_penalty=about["intercept_penalty"],
        start=theta,
        loss=about.get("loss", "logistic"),
    )
    rows = design(fit.train.X)
    moved = float(np.abs(rows @ (fit.minimum.theta - theta)).max())
    if not moved <= SAME_OPTIMUM * (1.0 + float(np.abs(rows @ theta).max())):
        raise ValueError(f"its parameters are not the optimum: a score moves by {moved:.2g} on the way there")
    return replace(
        fit,
        minimum=replace(fit.minimum, theta=theta),
        deployed_theta=arrays.get("deployed_theta"),
        polish=None if about["polish"] is None else Polish(**about["polish"]),
        parts=_parts(state),
        arithmetic=Arithmetic(**about.get("arithmetic", {}), design_error=arrays.get("design_error")),
        retraining=about["retraining"],
        notes=tuple(about.get("notes", ())),
    )


def _parts(state: State) -> PipelineParts | None:
    from rocerf.models.sklearn.pipeline_parts import PipelineParts, checked_rule

    said = state.values.get("pipeline")
    if said is None:
        return None
    frames, rule = Frames.from_dict(said["frames"]), checked_rule(said["preprocessing"])
    return PipelineParts(frames, rule, handicap=state.arrays.get("handicap"), stored_images=state.arrays.get("images"))


def _with_pipeline(
    fit: LogisticFit, parts: PipelineParts, pipeline: Any, missing: NDArray[np.bool_] | None
) -> PipelineParts:
    """The parts with the pipeline that the model was made from; another one is refused."""
    from rocerf.models.sklearn.pipeline_again import connected

    gone = np.zeros(fit.train.X.shape, bool) if missing is None else missing
    frame = parts.frames.decode(fit.train.X)
    for column in np.flatnonzero(gone.any(axis=0)):  # numbers that the rows did not have
        name = parts.frames.columns[column]
        frame[name] = frame[name].mask(gone[:, column])
    return connected(fit, parts, pipeline, frame, gone)
