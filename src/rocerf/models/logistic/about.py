"""What is said of a logistic model and its retraining, and what tells it from others."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

from numpy.typing import NDArray

from rocerf.models.additive import AdditiveDesign
from rocerf.models.design import AffineDesign, Design
from rocerf.models.loss import LOGISTIC, name_of
from rocerf.words import Said

if TYPE_CHECKING:
    from rocerf.models.logistic.model import LogisticModel


def assumptions_of(model: LogisticModel) -> tuple[Said, ...]:
    """What "retrained" means, in sentences: objective, scaling, threshold, tolerance."""
    convention = _convention(model)
    stays = (Said.of("models.logistic.stays"),) if model.parts is None else model.parts.assumptions()
    reached = Said.of("models.logistic.optimum", decrement=max(model.optimality, 1e-10))
    notes = [*model._fit.notes, *(["balanced"] if model.weighs_anew else [])]
    stays = (*stays, *(Said.of(f"models.logistic.{note}") for note in notes))
    return (convention, *stays, *_who_retrains(model), *model.arithmetic.assumptions(), reached)


def _convention(model: LogisticModel) -> Said:
    """What retraining minimises."""
    penalty = model.penalty
    if penalty.per_row == 0 and penalty.l1_per_row == 0:
        if not model.kinked:
            return Said.of("models.logistic.fixed_penalty", strength=penalty.per_model)
        return Said.of("models.logistic.fixed_l1", strength=penalty.per_model, l1=penalty.l1_per_model)
    if not model.kinked:
        return Said.of("models.logistic.mean_penalty", strength=penalty.per_row / 2)
    return Said.of("models.logistic.mean_l1", strength=penalty.per_row / 2, l1=penalty.l1_per_row)


def _who_retrains(model: LogisticModel) -> tuple[Said, ...]:
    if model.retraining is None:
        return ()
    if model.own_refit is not None:
        return (Said.of("models.logistic.user_retrains", estimator=str(model.own_refit.own)),)
    return (Said.of("models.logistic.unknown_fit" if model.retraining == "own" else "models.logistic.exact"),)


def known_by(model: LogisticModel) -> tuple[dict[str, Any], dict[str, NDArray[Any]]]:
    """Everything that retraining depends on, as plain values and arrays."""
    objective, design, weights = model.objective, model.design, model.class_weight
    values: dict[str, Any] = {
        "penalty of the model": model.penalty.per_model,
        "penalty of each row": model.penalty.per_row,
        "penalty of the intercept": objective.intercept_penalty,
        "intercept": design.intercept,
        "class weights": sorted([str(label), float(w)] for label, w in weights.items())
        if isinstance(weights, Mapping)
        else weights,
        "preprocessing rule": model.preprocessing,
        "rule of retraining": model.retraining,
    }
    if model.kinked:  # models without are known as they were before there were any
        values["L1 penalty"] = [model.penalty.l1_per_model, model.penalty.l1_per_row]
    if objective.loss is not LOGISTIC:
        values["loss"] = name_of(objective.loss)
    arrays = {
        "parameters": model.theta,
        "penalties": objective.penalty_diagonal,
        "design's matrix": design.matrix if isinstance(design, AffineDesign) else None,
        "design's shift": design.shift if isinstance(design, AffineDesign) else None,
        "design's centre": design.centre if isinstance(design, Design) else None,
        "design's scale": design.scale if isinstance(design, Design) else None,
        "deployed parameters": model.deployed_theta,
        "weights of rows": objective.weights,
        "handicap": None if model.parts is None else model.parts.handicap,
    }
    if isinstance(design, AdditiveDesign):
        arrays |= {f"design's {name}": array for name, array in design.arrays().items()}
    return values, {name: array for name, array in arrays.items() if array is not None}
