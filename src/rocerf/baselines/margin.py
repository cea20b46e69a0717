"""The plain counterfactual with a constant margin: the nearest point whose score is ``margin`` above the boundary.

The simplest thing that could withstand deletions: it knows nothing about which rows hold a point up, and asks for the
same distance from the boundary everywhere. Whatever claims to withstand deletions has to do better than this. The score
is the log-odds of the model, so that a margin of 0.5 asks for a probability of 62 %. It goes the way of
:class:`rocerf.baselines.Scfe`: the promise `plain`, whose value has to reach the margin instead of 0.
"""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING

from numpy.typing import ArrayLike

from rocerf.baselines.answers import Preset, answered, checked_preset
from rocerf.data.schema import FeatureSchema
from rocerf.errors import OptionError
from rocerf.explainer.explainer import Rocerf
from rocerf.models.model import LinearModel, Refittable
from rocerf.models.options import positive
from rocerf.promises.plain import Plain
from rocerf.recourse.result import Recourses, Status
from rocerf.types import Progress
from rocerf.words import Said

if TYPE_CHECKING:
    import pandas as pd

#: The margin where none is asked for, of linear models and of others: of 0.1, 0.2, 0.5, 1, 2 and 5 the least at which
#: 99 % of the points of refused *training* people of German Credit, COMPAS and Adult each are accepted by models
#: retrained without a random 0.5 % of the rows. Networks need more, since each training begins elsewhere.
LINEAR, OTHERS = 0.2, 2.0

#: How near :func:`margin_of_cost` comes to the mean cost that it is given.
CLOSE = 1e-3


class Margin:
    """Nearest point whose score is at least ``margin``; same ``explain`` as :class:`rocerf.Rocerf`.

    Parameters
    ----------
    model : LogisticModel, NeuralModel or EstimatorModel
        Which has to accept the points.
    margin : float, optional
        How far above the boundary the score (log-odds) has to be; with 0 it is :class:`rocerf.baselines.Scfe`. By
        default 0.2 for linear models and 2 for others: about the least with which 99 % of refused training people's
        points survived random deletions of 0.5 % of the rows, on each of our three tables.
    preset : "corrected"
        There is no other: the authors have no such method.
    cost, schema, solver, seed
        As for :class:`rocerf.Rocerf`.

    Examples
    --------
    >>> import rocerf
    >>> data = rocerf.load_dataset("german")
    >>> model = rocerf.LogisticModel.fit(data.train)
    >>> denied = data.test.X[model.predict(data.test.X) == 0]
    >>> recourses = Margin(model, margin=0.3).explain(denied[:3])
    >>> model.score(recourses.matrix).round(3).tolist(), recourses.settings.method
    ([0.3, 0.3, 0.3], 'margin')
    >>> print(recourses.settings.sentence)
    is accepted by the model as it is today, with a score of at least 0.3; nothing is promised about deletions
    """

    def __init__(
        self,
        model: Refittable,
        *,
        margin: float | None = None,
        preset: Preset = "corrected",
        cost: str = "l2",
        schema: FeatureSchema | None = None,
        solver: str = "auto",
        seed: int = 0,
    ) -> None:
        self.margin = usual_margin(model) if margin is None else positive(margin, "margin", zero=True)
        self.preset = checked_preset(preset, solver)
        if self.preset == "authors":
            raise OptionError(
                "Expected preset='corrected' for Margin, got 'authors', who have no such method; drop it."
            )
        promise = _WithMargin(model)
        self._explainer = Rocerf(
            model, 0, promise=promise, delta=self.margin, cost=cost, schema=schema, solver=solver, seed=seed
        )

    def explain(self, X: ArrayLike | pd.DataFrame, *, progress: Progress | None = None) -> Recourses:
        """The nearest point that clears the margin for each person of X, shape (P, d), in their order."""
        recourses = answered("margin", self._explainer, X, progress).recourses
        return replace(recourses, reasons=tuple(map(self._reason, recourses.statuses, recourses.reasons)))

    def _reason(self, status: Status, reason: str) -> str:
        """Rocerf's own words speak of deletions."""
        return Said.of("baselines.margin_not_reached", margin=self.margin) if status is Status.NOT_ROBUST else reason


def margin_of_cost(
    model: Refittable, X: ArrayLike | pd.DataFrame, mean_cost: float, *, cost: str = "l2", seed: int = 0
) -> Margin:
    """The constant margin that asks the people X (P, d) for as much on average as ``mean_cost``: a rival at one price.

    Found by halving, to a thousandth of the cost and never above it. A cost that the plain counterfactual exceeds
    already is an :class:`~rocerf.errors.OptionError`.

    Examples
    --------
    >>> import rocerf
    >>> data = rocerf.load_dataset("german")
    >>> model = rocerf.LogisticModel.fit(data.train)
    >>> denied = data.test.X[model.predict(data.test.X) == 0]
    >>> rival = margin_of_cost(model, denied, 0.9)
    >>> bool(0.899 <= rival.explain(denied).costs.mean() <= 0.9)
    True
    """

    def asked(margin: float) -> float:
        recourses = Margin(model, margin=margin, cost=cost, seed=seed).explain(X)
        # Who cannot be answered with so much of a margin would have to pay more than anything.
        return float(recourses.costs[recourses.answered].mean()) if recourses.answered.all() else float("inf")

    low, high = 0.0, usual_margin(model)
    paid = asked(low)
    if paid > mean_cost:
        raise OptionError(
            f"Expected a mean cost of at least {paid:.4g}, which the plain counterfactual asks for, got "
            f"{mean_cost:.4g}; give that of a promise."
        )
    while (more := asked(high)) <= mean_cost:
        low, paid, high = high, more, 2 * high
    # The second condition ends it where costs jump, between categories for instance.
    while paid < (1 - CLOSE) * mean_cost and high - low > CLOSE**2 * high:
        middle = (low + high) / 2
        if (more := asked(middle)) <= mean_cost:
            low, paid = middle, more
        else:
            high = middle
    return Margin(model, margin=low, cost=cost, seed=seed)


def usual_margin(model: Refittable) -> float:
    """The margin where none is asked for."""
    return LINEAR if isinstance(model, LinearModel) else OTHERS


class _WithMargin(Plain):
    """No promise about deletions, in words that say the margin."""

    def sentence(self, delta: float) -> Said:
        """What holds today."""
        return Said.of("baselines.margin", accepted=Said.of("baselines.accepted_today"), margin=delta)
