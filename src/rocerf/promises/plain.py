"""No promise about deletions: the point is accepted by the model as it is."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, Self

import numpy as np

from rocerf.models.model import Classifier, LinearModel
from rocerf.models.trees.scored import ScoredTrees, trees_in_use
from rocerf.promises.promise import Promise, Reading
from rocerf.types import Array


class Plain(Promise):
    """The model's own score: what an ordinary counterfactual explanation promises.

    ``model`` is linear, smooth, or only refittable; what can be read is the value, with a slope where the model has
    one.
    """

    name = "plain"

    def __init__(self, model: Classifier) -> None:
        super().__init__(model, 0)

    def read(self, X: Array, target: float | Array = -np.inf) -> Reading:
        """The lower of the scores in force."""
        return self.today(X)

    def rises_by(self, directions: Array) -> Array:
        """By how much every model in force rises."""
        if not isinstance(self.model, LinearModel):
            return super().rises_by(directions)
        slopes, _ = self.known_cuts()
        return np.asarray((directions @ slopes.T).min(axis=1))

    @property
    def readable(self) -> bool:
        """Whether the model is made of trees that can be read."""
        return trees_in_use(self.model) is not None

    def tree_models(self) -> list[ScoredTrees | None]:
        """The model."""
        return [trees_in_use(self.model)]

    def ceiling(self, scores: Array, models: Sequence[int]) -> Array:
        """The model's own."""
        return np.asarray(scores.min(axis=0))

    def floors(self, target: float) -> Array:
        """What the model must score, (1,)."""
        return np.array([target])

    def impossible(self) -> None:
        """Never."""

    def anew(self, model: Any) -> Self:
        """The same about another model."""
        return type(self)(model)
