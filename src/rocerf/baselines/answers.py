"""What the baselines share: options, and recourses made of the points that a method of its own found.

A baseline that is a promise goes through :class:`rocerf.Rocerf` as it is. One with a search of its own (a gradient
method, samples of a decoder) hands its points to :func:`answered`, which sorts people as Rocerf does and asks the model
whether it accepts each point. A point it does not accept is no recourse, whatever the method says. Some authors never
ask, and count the cost of every point: theirs are the ``ends`` of an :class:`Explained`.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any, Literal

import numpy as np
from numpy.typing import ArrayLike

from rocerf.errors import OptionError
from rocerf.explainer.explainer import Rocerf
from rocerf.models.options import one_of
from rocerf.promises.plain import Plain
from rocerf.recourse.asked import Asked
from rocerf.recourse.master.master import Master
from rocerf.recourse.result import Recourses, Status
from rocerf.recourse.solvers.solution import GUARD, Outcome, Solution
from rocerf.recourse.triage import Triage
from rocerf.types import Array, Mask, Places, Progress
from rocerf.words import Said

if TYPE_CHECKING:
    import pandas as pd


Preset = Literal["corrected", "authors"]
PRESETS: tuple[Preset, ...] = ("corrected", "authors")

#: A method: points (Q, d) for the people of a problem, who are these of all that were asked for (Q,); missing (NaN)
#: where it found none.
Find = Callable[[Master, Places, Progress | None], Array]


@dataclass(frozen=True, eq=False)
class Explained:
    """Recourses, and where the method ended for each person.

    ``ends`` (P, d) has also the points that the model refuses, which are no recourses: what authors count who never ask
    the model. It is missing (NaN) where a method ended nowhere or the person did not need one.
    """

    recourses: Recourses
    ends: Array


def checked_preset(preset: Any, solver: str = "auto", own: str = "search") -> Preset:
    """The preset, if it is one; that of the authors has a search of its own and takes no solver.

    >>> checked_preset("authors")
    'authors'
    """
    found: Preset = one_of(preset, "preset", PRESETS)
    if found == "authors" and solver != "auto":
        raise OptionError(
            f"Expected solver='auto' with preset='authors', which has its own {own}, got {solver!r}; drop one."
        )
    return found


def answered(
    method: str,
    explainer: Rocerf,
    X: ArrayLike | pd.DataFrame,
    progress: Progress | None,
    find: Find | None = None,
    solver: str = "authors",
) -> Explained:
    """Answers for the people X (P, d), by the explainer or out of the points that ``find`` gives those refused.

    With ``find`` the explainer only says model, cost, schema and the words of the promise.
    """
    if find is None:
        recourses = explainer.explain(X, progress=progress)
        named = replace(recourses.settings, method=method)
        return Explained(replace(recourses, settings=named), recourses.matrix)
    asked = Asked.of(X, explainer.model)
    places = Triage.of(asked, explainer.model, explainer.schema, explainer.promise).asking
    ends = np.full(asked.matrix.shape, np.nan)

    def found(master: Master, tell: Progress | None) -> Solution:
        ends[places] = _landed(master, find(master, places, tell))
        return _accepted(explainer, master, ends[places])

    recourses = explainer.explain_by(found, X, progress)
    told = recourses.answered
    ends[told] = recourses.matrix[told]
    refused = Said.of("baselines.end_refused")
    reasons = tuple(
        refused if status is Status.GAVE_UP and np.isfinite(end).all() else reason
        for status, reason, end in zip(recourses.statuses, recourses.reasons, ends, strict=True)
    )
    named = replace(recourses.settings, method=method, solver=solver)
    return Explained(replace(recourses, reasons=reasons, settings=named), ends)


def valid(scores: Array) -> Mask:
    """Which scores are accepted, with room for the rounding of the user's own ``predict``."""
    return np.asarray(scores >= GUARD / 2)


def _landed(master: Master, points: Array) -> Array:
    """The points (Q, d), moved to values that the rules allow."""
    found = np.asarray(np.isfinite(points).all(axis=1))
    return np.where(found[:, None], master.allowed.landed(points), np.nan)


def _accepted(explainer: Rocerf, master: Master, points: Array) -> Solution:
    """The points (Q, d) that obey the rules and that the model in force accepts, with their scores."""
    solution = Solution.blank(*master.X0.shape)
    found = np.asarray(np.isfinite(points).all(axis=1))
    solution.values[found] = Plain(explainer.model).read(points[found]).values
    good = found & master.allowed.holds(points) & valid(solution.values)
    solution.points[good] = points[good]
    solution.forget(np.flatnonzero(~good))
    solution.outcomes[good] = Outcome.FOUND
    return solution
