"""What promises about tree ensembles are at most over a box, from what their ensembles are at most there."""

from __future__ import annotations

from collections.abc import Sequence
from functools import cached_property
from typing import TYPE_CHECKING, Any

import numpy as np

from rocerf.deletion.groups import Groups
from rocerf.models.trees.scored import ScoredTrees, TreeModel, trees_in_use
from rocerf.promises.group_value import GroupValues, refusing_in
from rocerf.promises.margins import counted, needed
from rocerf.types import Array

#: Training rows at which the usual spread of simulated models is read.
ROWS = 256


class GroupTrees:
    """The trees of a model in use and of a pool of groups that grows, each ensemble read once."""

    def __init__(self, model: Any, share: float) -> None:
        self.model, self.share = model, share
        self._known: list[ScoredTrees | None] = []

    def all(self, pool: Groups) -> list[ScoredTrees | None]:
        """The model's, then those of every model of the pool."""
        if isinstance(self.model, TreeModel) and pool.models is not None:
            self._known += self.model.trees_retrained(pool.models[len(self._known) :])
        return [trees_in_use(self.model), *self._known]

    def ceiling(self, pool: Groups, scores: Array, models: Sequence[int], margin: float) -> Array:
        """The lowest value over groups less the margin, and the model's own score: at most this, (P,)."""
        places = np.asarray(models) - 1
        lowest = np.full(scores.shape[1], np.inf)
        group = np.searchsorted(pool.starts, places, side="right") - 1
        for number in np.unique(group[places >= 0]):
            own = np.full((int(pool.sizes[number]), scores.shape[1]), np.inf)
            mine = (group == number) & (places >= 0)
            own[places[mine] - int(pool.starts[number])] = scores[mine]
            value = GroupValues(own, pool.sizes[number : number + 1], self.share, smooth=False).values()[0]
            lowest = np.minimum(lowest, value - margin)
        today = scores[places < 0]
        return np.minimum(lowest, today[0]) if len(today) else lowest

    def floors(self, pool: Groups, target: float, margin: float) -> Array:
        """What the model and those of the pool must score: all of a group, or none alone where some may refuse."""
        alone = np.array([refusing_in(size, self.share) == 0 for size in pool.sizes.tolist()], bool)
        of_groups = np.where(alone, target + margin, -np.inf)
        return np.concatenate([[target], np.repeat(of_groups, pool.sizes)])


class PoolTrees:
    """What ``retrained`` adds for models made of trees that can be read: bounds over boxes, from a pool of groups."""

    if TYPE_CHECKING:
        model: Any
        options: Any

        @property
        def _step_margin(self) -> float: ...

        @property
        def pool(self) -> Groups: ...  # noqa: D102

    @cached_property
    def _trees(self) -> GroupTrees:
        return GroupTrees(self.model, self.options.share)

    @property
    def readable(self) -> bool:
        """Whether the model is made of trees that can be read."""
        return trees_in_use(self.model) is not None

    def tree_models(self) -> list[ScoredTrees | None]:
        """The model's, then those of every model of the pool."""
        return self._trees.all(self.pool)

    def ceiling(self, scores: Array, models: Sequence[int]) -> Array:
        """What the value is at most where these ensembles score at most this, (m, P) -> (P,)."""
        return self._trees.ceiling(self.pool, scores, models, self._step_margin)

    def floors(self, target: float) -> Array:
        """What each ensemble must score at least for the value to reach a target, (M,)."""
        return self._trees.floors(self.pool, target, self._step_margin)


class CountedTrees:
    """What ``simulated`` adds for models made of trees that can be read: margins by counting, with bounds over boxes.

    Beyond unanimity the lowest score must be higher by some spreads; for trees these are the usual spread of scores at
    training rows, the same for all points, so that what is not known of a box does not matter.
    """

    if TYPE_CHECKING:
        model: Any
        options: Any
        factor: float | None
        one_by_one: bool

        @property
        def margin(self) -> str: ...  # noqa: D102

        @property
        def _shaping(self) -> Any: ...

        @property
        def _unchecking(self) -> Any: ...

    @property
    def readable(self) -> bool:
        """Whether margins count, and the model is made of trees that can be read."""
        return self.options.margin in ("auto", "count", "fixed") and trees_in_use(self.model) is not None

    @cached_property
    def usual_spread(self) -> float:
        """The median over training rows of the spread of shaping models' scores."""
        X = np.asarray(self.model.train.X)
        scores = self._shaping.scores(X[:: max(1, len(X) // ROWS)])
        return float(np.median(scores.std(axis=0, ddof=1)))

    def tree_models(self) -> list[ScoredTrees | None]:
        """The model's, then those of the models that shape the value."""
        if self.margin == "fixed":
            return [self.model.trees]
        return [self.model.trees, *(self._read_unchecking if self.one_by_one else self._read_shaping)]

    @cached_property
    def _read_shaping(self) -> list[ScoredTrees | None]:
        return list(self.model.trees_retrained(self._shaping))

    @cached_property
    def _read_unchecking(self) -> list[ScoredTrees | None]:
        return list(self.model.trees_retrained(self._unchecking))

    def ceiling(self, scores: Array, models: Sequence[int]) -> Array:
        """What the value is at most where these ensembles score at most this, (m, P) -> (P,)."""
        assert self.factor is not None
        places = np.asarray(models) - 1
        today = scores[places < 0]
        floor = today[0] if len(today) else np.full(scores.shape[1], np.inf)
        if self.margin == "fixed":
            return np.asarray(floor - self.factor)
        count = len(self._unchecking if self.one_by_one else self._shaping)
        every = np.full((count, scores.shape[1]), np.inf)
        every[places[places >= 0]] = scores[places >= 0]
        return np.asarray(np.minimum(floor, self.counted_by(every)))

    def floors(self, target: float) -> Array:
        """What each ensemble must score at least for the value to reach a target, (M,): alone where all must accept."""
        assert self.factor is not None
        if self.margin == "fixed":
            return np.array([target + self.factor])
        count = len(self._unchecking if self.one_by_one else self._shaping)
        each = target if needed(self.factor, count) >= count else -np.inf
        if self.factor > 1.0:
            each = target + (self.factor - 1.0) * self.usual_spread
        return np.concatenate([[target], np.full(count, each)])

    def counted_by(self, scores: Array) -> Array:
        """The value by counting of scores (M, P), with the usual spread beyond unanimity; (P,)."""
        assert self.factor is not None
        if self.factor <= 1.0:
            return counted(scores, self.factor)[0]
        return np.asarray(scores.min(axis=0) - (self.factor - 1.0) * self.usual_spread)
