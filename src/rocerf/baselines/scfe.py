"""SCFE (Wachter et al. 2017): the plain counterfactual, nearest accepted point, no promise about deletions.

For a logistic model the optimum of Wachter's objective is the projection on the decision boundary, found here exactly
by the same master problem as everything else. For a network the boundary is followed by linearising it again and again
(``solver="penalty"``: by a penalty method as Wachter's), and for a model without slopes by a search. The authors' own
search is the preset ``authors`` (:mod:`rocerf.baselines.wachter`).
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from numpy.typing import ArrayLike

from rocerf.baselines.answers import Explained, Preset, answered, checked_preset
from rocerf.baselines.wachter import WachterOptions, search
from rocerf.data.schema import FeatureSchema
from rocerf.errors import UnsupportedModelError
from rocerf.explainer.explainer import Rocerf
from rocerf.models.model import Refittable, Smooth
from rocerf.models.options import positive_whole
from rocerf.promises.plain import Plain
from rocerf.recourse.master.master import Master
from rocerf.recourse.result import Recourses
from rocerf.types import Array, Places, Progress

if TYPE_CHECKING:
    import pandas as pd


class Scfe:
    """Nearest accepted point for each person; same ``explain`` as :class:`rocerf.Rocerf`.

    Parameters
    ----------
    model : LogisticModel, NeuralModel or EstimatorModel
        Which has to accept the points.
    preset : "corrected" or "authors"
        By default the nearest accepted point: exactly for linear models, to first-order conditions for smooth ones.
        "authors" runs Wachter's search with the numbers of the paper's code (Adam with steps of 0.5, lambda from 2.5 by
        factors of 2, for networks 4; finds of its bisection that it throws away), for any smooth model; its points lie
        some 15 % (Adult) to 45 % (German) farther away, and a change of a person in the ninth digit moves single ones
        by as much.
    cost : "l2" or "l1"
        Norm of the change, each column in units of its training standard deviation.
    schema : FeatureSchema, optional
        What may change; without it, everything. The authors' search is kept inside by clipping every step.
    solver : str
        As for :class:`rocerf.Rocerf`; only with the preset "corrected".
    max_steps : int
        Most steps of the authors' search for one person.
    seed : int
        For the search in models without slopes.

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
        preset: Preset = "corrected",
        cost: str = "l2",
        schema: FeatureSchema | None = None,
        solver: str = "auto",
        max_steps: int = WachterOptions.steps,
        seed: int = 0,
    ) -> None:
        self.preset = checked_preset(preset, solver)
        self._explainer = Rocerf(model, 0, promise=Plain(model), cost=cost, schema=schema, solver=solver, seed=seed)
        self._options = WachterOptions.about(model, positive_whole(max_steps, "max_steps"))
        if self.preset == "authors" and not isinstance(model, Smooth):
            raise UnsupportedModelError(
                f"Expected a model whose score has slopes for Wachter's search, got {type(model).__name__}; "
                "use preset='corrected'."
            )

    def explain(self, X: ArrayLike | pd.DataFrame, *, progress: Progress | None = None) -> Recourses:
        """The plain counterfactual of each person of X, shape (P, d), in their order."""
        return self.explained(X, progress=progress).recourses

    def explained(self, X: ArrayLike | pd.DataFrame, *, progress: Progress | None = None) -> Explained:
        """The same with where the search ended for everybody."""
        find = self._search if self.preset == "authors" else None
        return answered("scfe", self._explainer, X, progress, find)

    def _search(self, master: Master, _: Places, progress: Progress | None) -> Array:
        return search(self._explainer.model, master, self._options, progress)
