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
from typing import Any, Self

import numpy as np

from rocerf.deletion.edge_rows import EdgeRows
from rocerf.deletion.near_rows import Shortlist
from rocerf.deletion.row_effects import Effects, RowEffects, StreamedRowEffects, effects_of
from rocerf.deletion.worst_rows import WorstRows, drops_by_duality
from rocerf.models.model import ExactModel, FirstOrderModel
from rocerf.promises.allowance import ExactRetraining
from rocerf.promises.promise import Reading
from rocerf.types import Array
from rocerf.words import Said

#: Points whose threshold is remembered; beyond, all are forgotten and found again when they are asked for.
MOST_THRESHOLDS = 200_000

#: Rows on all lists of rows that may be the worst near a point, beyond which they are forgotten: 64 MiB or so.
MOST_LISTED = 2**23


class FirstOrder(ExactRetraining):
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

    name = "first_order"
    estimate = True
    one_design = True
    model: FirstOrderModel

    def __init__(self, model: FirstOrderModel, k: int, *, seed: int = 0) -> None:
        super().__init__(model, k)
        self._seed = seed
        #: The k-th smallest effect at points read so far, by their bytes: what a check by duality begins with.
        self._thresholds: dict[bytes, float] = {}
        #: The rows that may be the worst near points read so far, by their bytes, and how many they are together.
        self._lists: dict[bytes, Shortlist] = {}
        self._listed = 0
        #: The same promise about few rows, where effects are streamed.
        self._few: FirstOrder | None = None

    @property
    def assumptions(self) -> tuple[str, ...]:
        """For a network, what its first order is worth."""
        damping = self.model.damping
        own = () if damping is None else (Said.of("promises.gauss_newton", damping=damping),)
        anew = isinstance(self.model, ExactModel) and self.model.weighs_anew
        weights = (Said.of("promises.frozen_weights"),) if anew else ()
        return (*own, *weights, *super().assumptions)

    @cached_property
    def effects(self) -> Effects:
        """Row effects of the model, computed at first use."""
        return effects_of(self.model, seed=self._seed)

    def read_exactly(self, X: Array, target: float | Array = -np.inf) -> Reading:
        """``f_A`` and its slope at each point."""
        return self._read(X, None)

    def read_near(self, X: Array, before: Array, target: float | Array = -np.inf) -> Reading:
        """As :meth:`read`, looking only at rows that may be the worst, as far as what was seen at ``before`` tells."""
        return self.less_allowance(X, lambda points, _: self._read(points, before), target)

    @property
    def relaxes(self) -> bool:
        """Whether effects are streamed, so that a reading is a pass over all rows."""
        return isinstance(self.effects, StreamedRowEffects)

    def read_above(self, X: Array, before: Array) -> Reading:
        """``f_A`` over the rows that were among the worst of any reading: deleting k of them is allowed, too.

        Where these are too many to be kept, over those of each person's last reading.
        """
        effects = self.effects
        edges = effects.edges if isinstance(effects, StreamedRowEffects) else None
        if edges is not None:
            return self.less_allowance(X, lambda points, _: self._read_edges(edges, points, before))
        few = effects.few if isinstance(effects, StreamedRowEffects) else None
        if few is None:
            return self.less_allowance(X, lambda points, _: self.today(points))
        if self._few is None or self._few.effects is not few:
            self._few = FirstOrder(self.model, self.k)
            self._few.effects = few
        inner = self._few
        return self.less_allowance(X, lambda points, _: inner._read(points, before))

    def _read_edges(self, edges: EdgeRows, X: Array, before: Array) -> Reading:
        nowhere = np.asarray(np.isnan(before).any(axis=1))
        known = self.model.score_gradient(np.where(nowhere[:, None], X, before))
        known[nowhere] = np.nan
        shifts = edges.shifts(self.model.score_gradient(X), known)
        return Reading(*self.model.shifted_score(shifts)(X)).floored_by(self.today(X))

    def _read(self, X: Array, before: Array | None) -> Reading:
        worst, shifts = self._worst(X, before)
        ids, rows = self.model.train.ids, self.effects.rows
        reading = Reading(*self.model.shifted_score(shifts)(X), lambda point: ids[rows[worst.of(point)]])
        return reading.floored_by(self.today(X))

    def frozen_at(self, X: Array) -> Callable[[Array], Reading]:
        """The promise with each person's worst rows as they are at X (P, d): equal there, never below elsewhere."""
        shifted = self.model.shifted_score(self._worst(X)[1])

        def exactly(points: Array, _: float | Array) -> Reading:
            return Reading(*shifted(points)).floored_by(self.today(points))

        return lambda points: self.less_allowance(points, exactly)

    def check_exactly(self, X: Array, delta: float, rows: Any) -> Array:
        """``f_A`` at points (P, d) without selecting rows, by duality where the effects are kept; (P,)."""
        if not isinstance(self.effects, RowEffects):
            return self.read_exactly(X).foreseen
        known = [x.tobytes() in self._thresholds for x in X]
        if not all(known):
            self._worst(X[~np.array(known)])
        thresholds = np.array([self._thresholds.get(x.tobytes(), 0.0) for x in X])
        gradients, score = self.model.score_gradient(X), self.model.score(X)
        if isinstance(self.model, ExactModel) and self.model.lift is not None:  # as the pipeline itself makes the rows
            gradients, _ = self.model.own_design(X if rows is None else rows)
            score = np.nan_to_num(gradients @ self.model.theta + self.model.beyond_design(X), nan=-np.inf)
            gradients = np.nan_to_num(gradients)
        drops = drops_by_duality(gradients, self.effects.vectors, thresholds, self.k)
        return np.minimum(score + drops, self.today(X).values)

    def _worst(self, X: Array, before: Array | None = None) -> tuple[WorstRows, Array]:
        worst = self._found(X, before)
        if isinstance(self.effects, StreamedRowEffects) and self.effects.crowded:
            self._few = None  # its rows give way to the edges that are made next
        if len(self._thresholds) > MOST_THRESHOLDS:
            self._thresholds.clear()
        self._thresholds.update(zip((x.tobytes() for x in X), worst.thresholds(self.k).tolist(), strict=True))
        return worst, self.effects.shifts(worst)

    def _found(self, X: Array, before: Array | None) -> WorstRows:
        directions = self.model.score_gradient(X)
        if before is None or not isinstance(self.effects, RowEffects):
            return self.effects.worst(directions, self.k)
        known = [self._lists.get(x.tobytes()) for x in before]
        worst, lists = self.effects.near.worst(directions, self.k, known)
        for point in before:  # whose list is about to be that of another point
            left = self._lists.pop(point.tobytes(), None)
            self._listed -= 0 if left is None else len(left.positions)
        for x, own in zip(X, lists, strict=True):
            if own is not None and x.tobytes() not in self._lists:
                self._lists[x.tobytes()] = own
                self._listed += len(own.positions)
        if self._listed > MOST_LISTED or len(self._lists) > MOST_THRESHOLDS:
            self._lists, self._listed = {}, 0
        return worst

    def anew(self, model: Any) -> Self:
        """The same about another model."""
        return type(self)(model, self.k, seed=self._seed)
