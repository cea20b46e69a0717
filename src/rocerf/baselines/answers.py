"""What the baselines share: options, and recourses made of the points that a method of its own found.

A baseline that is a promise goes through :class:`rocerf.Rocerf` as it is. One with a search of its own (a gradient
method, samples of a decoder) hands its points to :func:`answer`, which sorts people as Rocerf does and asks the model
whether it accepts each point. A point it does not accept is no recourse, whatever the method says.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from typing import TYPE_CHECKING, Any, Literal

import numpy as np
from numpy.typing import ArrayLike, NDArray

from rocerf.data.columns import is_frame, people_matrix
from rocerf.data.schema import FeatureSchema
from rocerf.errors import OptionError
from rocerf.promises.plain import Plain
from rocerf.recourse.explainer import Rocerf
from rocerf.recourse.feasible_set import FeasibleSet
from rocerf.recourse.master import Master
from rocerf.recourse.result import Recourses, Status
from rocerf.recourse.solution import GUARD, Progress
from rocerf.recourse.triage import Triage

if TYPE_CHECKING:
    import pandas as pd

Array = NDArray[np.float64]

Preset = Literal["corrected", "authors"]
PRESETS: tuple[Preset, ...] = ("corrected", "authors")

#: A method: points (P, d) for the people of a problem, missing (NaN) where it found none.
Find = Callable[[Master, Progress | None], Array]


def checked_preset(preset: Any) -> Preset:
    """The preset, if it is one.

    >>> checked_preset("authors")
    'authors'
    """
    if preset not in PRESETS:
        raise OptionError(f"Expected preset to be one of {', '.join(PRESETS)}, got {preset!r}; choose one of these.")
    found: Preset = preset
    return found


def answer(
    explainer: Rocerf,
    find: Find,
    X: ArrayLike | pd.DataFrame,
    *,
    method: str,
    solver: str,
    progress: Progress | None = None,
) -> Recourses:
    """Recourses for the people X (P, d) out of the points that ``find`` gives those whom the model refuses.

    ``explainer`` says model, cost, schema and the words of the promise; its own solver is not used.
    """
    model, schema = explainer.model, explainer.schema
    matrix, index = people_matrix(X, model.train.columns, named=model.train.from_frame)
    triage = Triage.of(matrix, model, schema, explainer.promise)
    asking = triage.asking
    master = Master(matrix[asking], explainer.cost, FeasibleSet.around(matrix[asking], schema))
    points = find(master, progress) if len(asking) else np.empty((0, matrix.shape[1]))
    recourses = _assembled(explainer, matrix, triage, *_accepted(explainer, points))
    settings = replace(recourses.settings, method=method, solver=solver)
    recourses = replace(recourses, settings=settings, index=index if is_frame(X) else None)
    if not (is_frame(X) and model.train.from_frame):
        return recourses
    order = [str(name) for name in X.columns if str(name) in model.train.columns]  # type: ignore[union-attr]
    return replace(recourses, frame_columns=tuple(order))


def valid(scores: Array) -> NDArray[np.bool_]:
    """Which scores are accepted, with room for the rounding of the user's own ``predict``."""
    return np.asarray(scores >= GUARD / 2)


def _accepted(explainer: Rocerf, points: Array) -> tuple[Array, Array]:
    """The points (Q, d) that the model in force accepts and their scores (Q,), missing elsewhere."""
    found = np.isfinite(points).all(axis=1)
    margins = np.full(len(points), np.nan)
    margins[found] = Plain(explainer.model).read(points[found]).values
    refused = ~valid(margins)
    return np.where(refused[:, None], np.nan, points), np.where(refused, np.nan, margins)


def _assembled(explainer: Rocerf, matrix: Array, triage: Triage, found: Array, values: Array) -> Recourses:
    people, asking = len(matrix), triage.asking
    points, margins, scores = np.full(matrix.shape, np.nan), np.full(people, np.nan), np.full(people, np.nan)
    points[asking], margins[asking] = found, values
    answered = np.isfinite(margins)
    if answered.any():
        scores[answered] = explainer.model.score(points[answered])
    statuses, reasons = list(triage.statuses), list(triage.reasons)
    for person in asking:
        statuses[person] = Status.ANSWERED if answered[person] else Status.GAVE_UP
        reasons[person] = statuses[person].sentence
    schema = explainer.schema or FeatureSchema.free(explainer.model.train.columns)
    return Recourses(
        people=matrix,
        matrix=points,
        costs=explainer.cost.of(points - matrix),
        margins=margins,
        statuses=tuple(statuses),
        reasons=tuple(reasons),
        columns=explainer.model.train.columns,
        labels=tuple(feature.display for feature in schema),
        units=tuple(feature.unit for feature in schema),
        settings=explainer.settings(),
        retrainings=np.zeros(people, np.intp),
        scores=scores,
    )
