"""A model read from a file, and the pipeline that it was made from: joined again once both are seen to agree."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from rocerf.errors import OptionError
from rocerf.models.logistic.fit import LogisticFit
from rocerf.models.sklearn.estimator_fitting import own_copy, own_labels
from rocerf.models.sklearn.pipeline import Rows, map_of
from rocerf.models.sklearn.pipeline_parts import REPRODUCED, Deployed, PipelineParts, Recipe
from rocerf.models.sklearn.pipeline_probe import Probe, Ranges
from rocerf.models.sklearn.pipeline_steps import FEW, Preprocessing, split
from rocerf.models.sklearn.reader import read_logistic_regression

if TYPE_CHECKING:
    import pandas as pd


def connected(
    fit: LogisticFit, parts: PipelineParts, pipeline: Any, frame: pd.DataFrame, missing: NDArray[np.bool_]
) -> PipelineParts:
    """The parts that a model read from a file has with its pipeline; ``frame`` holds its training rows."""
    pipeline, frames, train = own_copy(pipeline), parts.frames, fit.train
    X = np.where(missing, np.nan, train.X)
    steps, ranges = Preprocessing.of(pipeline, frame), Ranges.of(X, frames)
    labels = own_labels(train)
    recipe = Recipe(_own_steps(steps, fit, parts, frame, labels), frame, labels, missing, ranges)
    if fit.deployed_theta is None:  # retrained: no pipeline is this model
        return replace(parts, recipe=recipe)
    rows = Rows(frame, labels, frames, {})
    _, last = split(pipeline)
    read = read_logistic_regression(last, train, same_columns=False)
    design = map_of(Probe(steps, frames, ranges), rows).design(intercept=read.intercept)
    some = train.X[:100]
    own = fit.objective.design(some) @ fit.deployed_theta
    same = design.width == len(fit.deployed_theta) and np.allclose(design(some) @ read.theta, own)
    if not same:
        raise _another_pipeline()
    return replace(parts, recipe=recipe, deployed=Deployed.of(pipeline, steps, train))


def _own_steps(
    steps: Preprocessing, fit: LogisticFit, parts: PipelineParts, frame: pd.DataFrame, labels: NDArray[Any]
) -> Preprocessing:
    """The preprocessing of the model: that of the pipeline given, or of a retrained model the same fitted again."""
    design = fit.objective.design(fit.train.X[:FEW])
    known = design[:, : design.shape[1] - int(fit.objective.design.intercept)]
    error = REPRODUCED * (1.0 + np.abs(known).max(axis=0, initial=0.0))
    if parts.stored_images is not None and fit.arithmetic.design_error is not None:
        known, error = parts.stored_images[:FEW], fit.arithmetic.design_error

    def makes_the_design(candidate: Preprocessing) -> bool:
        images = candidate.where_possible(frame.iloc[:FEW], known.shape[1])
        return images.shape == known.shape and bool((np.abs(images - known) <= error).all())  # false for NaN

    if makes_the_design(steps):
        return steps
    if fit.deployed_theta is None:
        again, _ = steps.fitted_again(frame, labels)
        if makes_the_design(again):
            return again
    raise _another_pipeline()


def _another_pipeline() -> OptionError:
    return OptionError(
        "Expected the fitted pipeline that the model was made from, got one that makes something else of its training "
        "rows, or scores them differently; give that one, or take this one over with rocerf.from_pipeline."
    )
