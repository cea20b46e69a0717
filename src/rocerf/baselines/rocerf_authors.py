"""ROCERF as the authors run it: Wachter's search on the model that first order foresees without the k worst rows.

The paper states a constrained problem; its code searches instead. :mod:`rocerf.baselines.shifted` says what the search
is on, :mod:`rocerf.baselines.wachter` how it goes. Three things keep its points from being the paper's:

* The k rows are those worst for the person as they stand. At the point found others may be worse.
* Steps of 0.5 overshoot: points end some 15 % (Adult), 17 % (COMPAS) and 43 % (German) beyond the nearest one that
  would do, and that is all the robustness they have beyond it.
* For networks everything is about a linear stand-in fitted around the person; the network is never asked.

The exact optimum of the paper's own constraint is ``Rocerf(model, k, promise="first_order")``.
"""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING

import numpy as np
from numpy.typing import ArrayLike

from rocerf.baselines.answers import Explained, answered
from rocerf.baselines.roar_descent import Descent
from rocerf.baselines.shifted import Rows, ShiftedTarget, shifted
from rocerf.baselines.standard import Standard
from rocerf.baselines.wachter import WachterOptions, search_on
from rocerf.data.schema import FeatureSchema
from rocerf.deletion.k import number_of_deletions
from rocerf.errors import OptionError
from rocerf.explainer.explainer import Rocerf
from rocerf.models.model import LinearModel, Refittable
from rocerf.models.options import positive_whole
from rocerf.promises.plain import Plain
from rocerf.recourse.master.master import Master
from rocerf.recourse.result import Recourses
from rocerf.types import Array, Places, Progress
from rocerf.words import Said

if TYPE_CHECKING:
    import pandas as pd


class AuthorsRocerf:
    """The paper's method with the choices of its code; same ``explain`` as :class:`rocerf.Rocerf`.

    It measures the published method and promises nothing. Points that the model refuses are no recourses (status
    gave_up); the authors count them all, and :meth:`explained` has them as ``ends``.

    Parameters
    ----------
    model : LogisticModel, NeuralModel or EstimatorModel
        One that is not logistic is replaced by a linear stand-in around each person.
    k : int or share
        Rows that are feared; a share such as ``"0.5%"`` is rounded *down*, as in the authors' code.
    cost : "l2" or "l1"
        Norm of the change, each column in units of its training standard deviation.
    schema : FeatureSchema, optional
        What may change; without it, everything. The search is kept inside by clipping every step.
    max_steps : int
        Most steps for one person, a tenth of them with one weight. On stand-ins the authors allow ten times as many, as
        many with each weight; mean costs are the same to four digits (German 4.448, 60 people of COMPAS 1.273).
    seed : int
        Of the points that stand-ins are fitted to.

    Examples
    --------
    >>> import rocerf
    >>> model = rocerf.LogisticModel.fit(rocerf.TrainingSet([[1.0], [2.0], [3.0], [4.0]], [0, 1, 0, 1]))
    >>> recourses = AuthorsRocerf(model, 1, max_steps=100).explain([[0.0]])
    >>> recourses.settings.method, recourses.settings.k, recourses.settings.promise
    ('rocerf', 1, 'plain')
    """

    preset = "authors"

    def __init__(
        self,
        model: Refittable,
        k: int | str,
        *,
        cost: str = "l2",
        schema: FeatureSchema | None = None,
        max_steps: int = WachterOptions.steps,
        seed: int = 0,
    ) -> None:
        if not isinstance(model, Refittable):
            raise OptionError(f"Expected a rocerf model, got {type(model).__name__}; fit or adopt one first.")
        self.k = number_of_deletions(k, len(model.train), rounded="down")
        self._explainer = Rocerf(model, 0, promise=_Shifted(model, self.k), cost=cost, schema=schema, seed=seed)
        self._linear = isinstance(model, LinearModel)
        self._options = WachterOptions(steps=positive_whole(max_steps, "max_steps"))

    def explain(self, X: ArrayLike | pd.DataFrame, *, progress: Progress | None = None) -> Recourses:
        """What the search found for each person of X, shape (P, d), in their order."""
        return self.explained(X, progress=progress).recourses

    def explained(self, X: ArrayLike | pd.DataFrame, *, progress: Progress | None = None) -> Explained:
        """The same with where the search ended for everybody."""
        found = answered("rocerf", self._explainer, X, progress, self._search)
        settings = replace(found.recourses.settings, k=self.k)
        return replace(found, recourses=replace(found.recourses, settings=settings))

    def _search(self, master: Master, _: Places, progress: Progress | None) -> Array:
        model = self._explainer.model
        space = Standard.of(model.train)
        own = Descent(model, 0.0, self._explainer.seed).linear_models(master.X0, space, progress)
        moved = shifted(own, Rows(model.train), space.inwards(master.X0), self.k)
        points = np.full(master.X0.shape, np.nan)
        there = np.flatnonzero(np.isfinite(own.b))
        if len(there):
            # On a stand-in they ask it as well; a linear model itself is not asked.
            target = ShiftedTarget(moved.rows(there), None if self._linear else own.rows(there))
            points[there] = search_on(target, master.of(there), space, self._options, progress)
        return points


class _Shifted(Plain):
    """No promise, in words that say what was searched on."""

    def __init__(self, model: Refittable, feared: int) -> None:
        super().__init__(model)
        self.feared = feared

    def sentence(self, delta: float) -> Said:
        """What the search was on."""
        return Said.of("baselines.shifted", k=self.feared)
