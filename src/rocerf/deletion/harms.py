"""How harmful each row is to the score that a model gives a point: what walks over sets of rows choose by.

Where rows are few their harms are a matrix (:class:`HarmsAtHand`); where they are many, what the harm of a row follows
from is kept instead, a few numbers a model, and rows are asked for by passes (:mod:`rocerf.deletion.streamed_harms`).
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any, Protocol

import numpy as np

from rocerf.deletion.deletions import Deletions, worst_of
from rocerf.types import Array, Places


class Harms(Protocol):
    """By how much deleting a row lowers the scores of M models' points: less than 0 where it does."""

    def of(self, models: Places) -> Harms:
        """The harms for some of the models."""
        ...

    def put(self, models: Places, others: Any) -> None:
        """Take over others for these models."""
        ...

    def worst(self, count: int, width: int) -> Deletions:
        """The at most ``count`` most harmful rows for each model."""
        ...

    def worst_outside(self, sets: Sequence[Places], count: int, width: int) -> Deletions:
        """The same among the rows that are not in a model's set, where a model has any harms at all."""
        ...

    def worst_shaken(self, noise: Callable[[int], np.random.Generator], count: int) -> Deletions:
        """The same after harms were multiplied by ``exp(z/2)``, z drawn for all rows from the generator of a model."""
        ...

    def at(self, model: int, rows: Places) -> Array:
        """The harms of some rows for one model, (m,)."""
        ...

    def tempting(self, model: int, chosen: Places, width: int) -> Places:
        """The most harmful rows for one model outside a set, worst first; at most ``width``."""
        ...


class HarmsAtHand(Harms):
    """A matrix (M, n) of them."""

    def __init__(self, values: Array) -> None:
        self.values = values

    def of(self, models: Places) -> HarmsAtHand:
        """As :meth:`Harms.of`."""
        return HarmsAtHand(self.values[models])

    def put(self, models: Places, others: HarmsAtHand) -> None:
        """As :meth:`Harms.put`."""
        self.values[models] = others.values

    def worst(self, count: int, width: int) -> Deletions:
        """As :meth:`Harms.worst`."""
        return worst_of(self.values, count, width)

    def worst_outside(self, sets: Sequence[Places], count: int, width: int) -> Deletions:
        """As :meth:`Harms.worst_outside`; the matrix is no more what it was."""
        self.values[np.isnan(self.values)] = np.inf  # no model any more: the set stays as it is
        for model, chosen in enumerate(sets):
            self.values[model, chosen] = np.inf
        return worst_of(self.values, count, width)

    def worst_shaken(self, noise: Callable[[int], np.random.Generator], count: int) -> Deletions:
        """As :meth:`Harms.worst_shaken`."""
        draws = [noise(model).normal(size=self.values.shape[1]) for model in range(len(self.values))]
        return worst_of(self.values * np.exp(0.5 * np.stack(draws)), count, count)

    def at(self, model: int, rows: Places) -> Array:
        """As :meth:`Harms.at`."""
        return np.asarray(self.values[model, rows])

    def tempting(self, model: int, chosen: Places, width: int) -> Places:
        """As :meth:`Harms.tempting`."""
        harms = self.values[model]
        count = min(len(harms), width + len(chosen))
        candidates = np.argpartition(harms, count - 1)[:count] if count < len(harms) else np.arange(len(harms))
        candidates = candidates[np.argsort(harms[candidates], kind="stable")]
        return np.asarray(candidates[~np.isin(candidates, chosen)][:width])
