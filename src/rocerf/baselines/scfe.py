"""SCFE (Wachter et al. 2017): the plain counterfactual, nearest accepted point, no promise about deletions.

For a logistic model the optimum of Wachter's objective is the projection on the decision boundary, found here exactly
by the same master problem as everything else. For a network the boundary is followed by linearising it again and
again (``solver="penalty"``: by a penalty method as Wachter's), and for a model without slopes by a search.
"""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING

from numpy.typing import ArrayLike

from rocerf.data.schema import FeatureSchema
from rocerf.models.model import Refittable
from rocerf.promises.plain import Plain
from rocerf.recourse.explainer import Rocerf
from rocerf.recourse.result import Recourses
from rocerf.recourse.solution import Progress

if TYPE_CHECKING:
    import pandas as pd


class Scfe:
    """Nearest accepted point for each person; same ``explain`` as :class:`rocerf.Rocerf`.

    Examples
    --------
    >>> import rocerf
    >>> train = rocerf.TrainingSet([[1.0], [2.0], [3.0], [4.0]], [0, 1, 0, 1])
    >>> recourses = Scfe(rocerf.LogisticModel.fit(train)).explain([[0.0]])
    >>> bool(recourses.margins[0] >= 0), recourses.settings.method, recourses.settings.promise
    (True, 'scfe', 'plain')
    """

    def __init__(
        self,
        model: Refittable,
        *,
        cost: str = "l2",
        schema: FeatureSchema | None = None,
        solver: str = "auto",
        seed: int = 0,
    ) -> None:
        self._explainer = Rocerf(model, 0, promise=Plain(model), cost=cost, schema=schema, solver=solver, seed=seed)

    def explain(self, X: ArrayLike | pd.DataFrame, *, progress: Progress | None = None) -> Recourses:
        """The plain counterfactual of each person of X, shape (P, d), in their order."""
        recourses = self._explainer.explain(X, progress=progress)
        return replace(recourses, settings=replace(recourses.settings, method="scfe"))
