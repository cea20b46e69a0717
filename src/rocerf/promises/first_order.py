"""The paper's promise: the score stays up after the worst k deletions *as far as first order can tell*.

    f_A(x) = f(x) + (sum of the k smallest values of beta(x)'v_i, none above 0)  >=  delta

For a linear model ``beta(x) = x~``, so ``f_A`` is a minimum of linear functions: concave, and the worst
set at x gives the cut ``(theta + sum_S v_i)'x~ >= delta``. First order understates what deleting a
group of rows does: under the worst deletion, truly retrained, such points can fail.
"""

from __future__ import annotations

from functools import cached_property

import numpy as np
from numpy.typing import NDArray

from rocerf.deletion.row_effects import RowEffects
from rocerf.deletion.worst_rows import find_worst_rows
from rocerf.models.model import LinearModel
from rocerf.promises.plain import Plain
from rocerf.promises.promise import Reading, Wording, vanishing_class

Array = NDArray[np.float64]


class FirstOrder:
    """``f_A(x)`` of a linear model, at most k deletions.

    Examples
    --------
    >>> import rocerf
    >>> train = rocerf.TrainingSet([[1.0], [2.0], [3.0], [4.0]], [0, 1, 0, 1])
    >>> model = rocerf.LogisticModel.fit(train)
    >>> reading = FirstOrder(model, k=1).read(np.array([[5.0]]))
    >>> bool(reading.values[0] < model.score([[5.0]])[0]), reading.worst_ids(0).tolist()
    (True, [3])
    """

    wording = Wording(
        "first_order",
        "meets the paper's first-order constraint, with margin {delta:g}, for every deletion of at most {k} training "
        "{rows}; this is an estimate, not a proof, and the worst deletions can break it",
    )
    concave = True
    searches: tuple[str, ...] = ()
    assumptions: tuple[str, ...] = ()

    def __init__(self, model: LinearModel, k: int, *, seed: int = 0) -> None:
        self.model = model
        self.k = k
        self._seed = seed

    @cached_property
    def effects(self) -> RowEffects:
        """Row effects of the model, computed at first use."""
        return RowEffects.of(self.model, seed=self._seed)

    def known_cuts(self) -> tuple[Array, Array]:
        """The model in force: deleting nothing is one of the deletions."""
        return Plain(self.model).known_cuts()

    def read(self, X: Array, target: float = -np.inf) -> Reading:
        """``f_A`` and its cut at each point."""
        directions = self.model.score_gradient(X)
        worst = find_worst_rows(directions, self.effects.vectors, self.k)
        slopes, constants = self.model.halfspaces(self.model.theta + worst.shifts(self.effects.vectors))
        values = np.einsum("ij,ij->i", slopes, X) + constants
        ids, rows = self.model.train.ids, self.effects.rows
        reading = Reading(values, slopes, lambda point: ids[rows[worst.of(point)]])
        return reading.floored_by(Plain(self.model).read(X))

    def impossible(self) -> str | None:
        """If k deletions can remove a whole class, retraining may have no optimum at all."""
        return vanishing_class(self.model, self.k)
