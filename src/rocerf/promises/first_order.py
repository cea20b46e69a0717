"""The paper's promise: the score stays up after the worst k deletions *as far as first order can tell*.

    f_A(x) = f(x) + (sum of the k smallest values of beta(x)'v_i, none above 0)  >=  delta

For a linear model ``beta(x) = x~``, so ``f_A`` is a minimum of linear functions: concave, and the worst set at x
gives the cut ``(theta + sum_S v_i)'x~ >= delta``. For a network ``beta(x)`` is the Jacobian of the score in all
parameters, the worst rows are chosen anew at each x, and one Jacobian-vector product gives value and slope. First
order understates what deleting a group of rows does: under the worst deletion, truly retrained, such points can fail.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import cached_property
from typing import Any

import numpy as np

from rocerf.deletion.row_effects import Effects, RowEffects, effects_of
from rocerf.deletion.worst_rows import WorstRows, drops_by_duality
from rocerf.models.model import FirstOrderModel, LinearModel
from rocerf.promises.plain import Plain
from rocerf.promises.promise import Reading, Wording, refuse_refitted_preprocessing, vanishing_class
from rocerf.types import Array

#: Points whose threshold is remembered; beyond, all are forgotten and found again when they are asked for.
MOST_THRESHOLDS = 200_000


class FirstOrder:
    """``f_A(x)`` of a logistic model or a network (all parameters), at most k deletions.

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
        "meets the paper's first-order constraint, with margin {delta}, for every deletion of at most {k} training "
        "{rows}; this is an estimate, not a proof, and the worst deletions can break it",
    )
    smooth = True
    searches: tuple[str, ...] = ()

    def __init__(self, model: FirstOrderModel, k: int, *, seed: int = 0) -> None:
        refuse_refitted_preprocessing(model, self.wording.name)
        self.model = model
        self._k = k
        self._seed = seed
        #: The k-th smallest effect at points read so far, by their bytes: what a check by duality begins with.
        self._thresholds: dict[bytes, float] = {}

    @property
    def k(self) -> int:
        """The number of deletions that it speaks of, for good: what was found or proven is about so many."""
        return self._k

    @property
    def concave(self) -> bool:
        """Whether slopes are cuts: for linear models."""
        return isinstance(self.model, LinearModel)

    @property
    def assumptions(self) -> tuple[str, ...]:
        """For a network, what its first order is worth."""
        damping = self.model.damping
        if damping is None:
            return ()
        return (
            f"first order is taken by the Gauss-Newton matrix with damping {damping:.3g} on the mean loss, and "
            "describes "
            "retraining on from the present parameters, not from a new start",
        )

    @cached_property
    def effects(self) -> Effects:
        """Row effects of the model, computed at first use."""
        return effects_of(self.model, seed=self._seed)

    def known_cuts(self) -> tuple[Array, Array]:
        """The model in force: deleting nothing is one of the deletions."""
        return Plain(self.model).known_cuts()

    def read(self, X: Array, target: float = -np.inf) -> Reading:
        """``f_A`` and its slope at each point."""
        worst, shifts = self._worst(X)
        ids, rows = self.model.train.ids, self.effects.rows
        reading = Reading(*self.model.shifted_score(shifts)(X), lambda point: ids[rows[worst.of(point)]])
        return reading.floored_by(Plain(self.model).read(X))

    def held_at(self, X: Array) -> Callable[[Array], Reading]:
        """The promise with each person's worst rows as they are at X (P, d): equal there, never below elsewhere."""
        shifted = self.model.shifted_score(self._worst(X)[1])
        return lambda points: Reading(*shifted(points)).floored_by(Plain(self.model).read(points))

    def margins_at(self, X: Array, delta: float = -np.inf, rows: Any = None) -> Array:
        """``f_A`` at points (P, d) without selecting rows, by duality where the effects are kept; (P,)."""
        if not isinstance(self.effects, RowEffects):
            return self.read(X).foreseen
        known = [x.tobytes() in self._thresholds for x in X]
        if not all(known):
            self._worst(X[~np.array(known)])
        thresholds = np.array([self._thresholds.get(x.tobytes(), 0.0) for x in X])
        drops = drops_by_duality(self.model.score_gradient(X), self.effects.vectors, thresholds, self.k)
        return np.minimum(self.model.score(X) + drops, Plain(self.model).read(X).values)

    def _worst(self, X: Array) -> tuple[WorstRows, Array]:
        worst = self.effects.worst(self.model.score_gradient(X), self.k)
        if len(self._thresholds) > MOST_THRESHOLDS:
            self._thresholds.clear()
        self._thresholds.update(zip((x.tobytes() for x in X), worst.thresholds(self.k).tolist(), strict=True))
        return worst, self.effects.shifts(worst)

    def impossible(self) -> str | None:
        """If k deletions can remove a whole class, retraining may have no optimum at all."""
        return vanishing_class(self.model, self.k)
