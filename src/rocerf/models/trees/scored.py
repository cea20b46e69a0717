"""Trees that are scored as a model is: what their leaves add up to, as a score that is 0 where people are accepted."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, Protocol, runtime_checkable

import numpy as np
from scipy.special import expit, logit

from rocerf.models.sklearn.estimator_fitting import CLIP
from rocerf.models.trees.form import TreeForm
from rocerf.types import Array


@runtime_checkable
class TreeModel(Protocol):
    """A model that may be made of trees that can be read."""

    @property
    def trees(self) -> ScoredTrees | None:
        """The trees over the columns of schema space; None where there are none to be read."""
        ...

    def trees_retrained(self, models: Any) -> list[ScoredTrees | None]:
        """The same of each of the models that ``refitted`` gave."""
        ...


def trees_in_use(model: Any) -> ScoredTrees | None:
    """The trees of a model, if it has any that can be read."""
    found: ScoredTrees | None = getattr(model, "trees", None)  # isinstance looks through the whole protocol each time
    return found


@dataclass(frozen=True, eq=False)
class ScoredTrees:
    """A form over the columns of schema space, and the log-odds from which people are accepted."""

    form: TreeForm
    offset: float

    def of_raw(self, raw: Array) -> Array:
        """Scores of what leaves add up to; they never fall when that rises."""
        return self.form.log_odds(raw, CLIP) - self.offset

    def raw_for(self, score: float) -> float:
        """What leaves must add up to for such a score in the library, but for a hair; infinite where nothing gives it.

        The library may round in the person's favour (``form.rounding``).
        """
        odds, most = score - self.form.rounding + self.offset, float(logit(1.0 - CLIP))
        if odds > most:
            return np.inf
        if odds <= -most:
            return -np.inf
        raw = float(expit(odds)) if self.form.averaged else odds
        return raw - 1e-12 * max(1.0, abs(raw))

    def scores(self, X: Array) -> Array:
        """Scores of points (m, d), (m,)."""
        return self.of_raw(self.form.raw(X))
