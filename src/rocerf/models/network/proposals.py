"""Which rows a network guesses to hold a point up."""

from __future__ import annotations

import copy
from typing import Any

import numpy as np

from rocerf.models.network.ensemble import NetworkEnsemble
from rocerf.models.network.network import with_state
from rocerf.models.options import one_of
from rocerf.types import Array

#: Ways to guess which rows hold a point up.
PROPOSALS = ("first order", "kernel")


class NetworkProposals:
    """The part of :class:`~rocerf.models.network.model.NeuralModel` that the adversary asks."""

    @property
    def proposals(self) -> tuple[str, ...]:
        """First-order effects (Gauss-Newton), and favourable rows that move the network as the point does."""
        return PROPOSALS

    def harms(self: Any, X: Array, proposal: str = "first order") -> Array:
        """How far deleting each training row alone is guessed to move the scores of points (P, d); shape (P, n)."""
        if one_of(proposal, "proposal", PROPOSALS) == "kernel":
            return np.asarray(-self.train.y * np.maximum(self._objective.kinship(X), 0.0))
        return np.asarray(self._objective.effects(X))

    def as_retrained(self: Any, models: NetworkEnsemble, place: int) -> Any:
        """One of the networks that :meth:`refitted` gave, with these training rows: to guess with."""
        state = [values[0] for values in models[place : place + 1].arrays()]
        module = with_state(copy.deepcopy(self.module), state)
        return type(self)(self.train, module, self.design, self.retrainer, self._options)
