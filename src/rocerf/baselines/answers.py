"""What the baselines share: options, and recourses made of the points that a method of its own found.

A baseline that is a promise goes through :class:`rocerf.Rocerf` as it is. One with a search of its own (a gradient
method, samples of a decoder) hands its points to :func:`answer`, which sorts people as Rocerf does and asks the model
whether it accepts each point. A point it does not accept is no recourse, whatever the method says; only with an
:class:`Unconfirmed` explainer is it kept, for a method whose authors never ask the model.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from typing import TYPE_CHECKING, Any, Literal

import numpy as np
from numpy.typing import ArrayLike

from rocerf.errors import OptionError
from rocerf.explainer.explainer import Rocerf
from rocerf.models.options import one_of
from rocerf.promises.plain import Plain
from rocerf.recourse.gate import Gate
from rocerf.recourse.master.master import Master
from rocerf.recourse.result import Recourses
from rocerf.recourse.solvers.solution import GUARD, Outcome, Solution
from rocerf.types import Array, Mask, Progress

if TYPE_CHECKING:
    import pandas as pd


Preset = Literal["corrected", "authors"]
PRESETS: tuple[Preset, ...] = ("corrected", "authors")

#: A method: points (P, d) for the people of a problem, missing (NaN) where it found none.
Find = Callable[[Master, Progress | None], Array]


class Unconfirmed(Rocerf):
    """An explainer that keeps points which the model refuses, as long as they obey the rules.

    For methods whose own check is on something else than the model. What they keep must be said in the words of the
    promise; the scores of the recourses show which points the model refuses.
    """

    @property
    def gate(self) -> Gate:
        """Rules alone are checked."""
        return Gate(self.model, self.promise, self.delta, confirms=False)


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


def answer(
    method: str,
    explainer: Rocerf,
    X: ArrayLike | pd.DataFrame,
    progress: Progress | None,
    find: Find | None = None,
    solver: str = "authors",
) -> Recourses:
    """Recourses for the people X (P, d), by the explainer or out of the points that ``find`` gives those refused.

    With ``find`` the explainer only says model, cost, schema and the words of the promise.
    """
    if find is None:
        recourses = explainer.explain(X, progress=progress)
        solver = recourses.settings.solver
    else:
        recourses = explainer.explain_by(lambda *asked: _accepted(explainer, asked[0], find(*asked)), X, progress)
    return replace(recourses, settings=replace(recourses.settings, method=method, solver=solver))


def valid(scores: Array) -> Mask:
    """Which scores are accepted, with room for the rounding of the user's own ``predict``."""
    return np.asarray(scores >= GUARD / 2)


def _accepted(explainer: Rocerf, master: Master, points: Array) -> Solution:
    """The points (Q, d) that obey the rules and that the model in force accepts, with their scores.

    An :class:`Unconfirmed` explainer's are taken whether the model accepts them or not.
    """
    solution = Solution.blank(*master.X0.shape)
    found = np.asarray(np.isfinite(points).all(axis=1))
    points = np.where(found[:, None], master.allowed.landed(points), points)
    solution.values[found] = Plain(explainer.model).read(points[found]).values
    good = found & master.allowed.holds(points)
    if not isinstance(explainer, Unconfirmed):
        good &= valid(solution.values)
    solution.points[good] = points[good]
    solution.forget(np.flatnonzero(~good))
    solution.outcomes[good] = Outcome.FOUND
    return solution
