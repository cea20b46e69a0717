"""Which rows a network guesses to hold a point up."""

from __future__ import annotations

import copy
from typing import TYPE_CHECKING, Any, Self

import numpy as np

from rocerf.models.network.ensemble import NetworkEnsemble
from rocerf.models.network.network import with_state
from rocerf.models.options import one_of
from rocerf.types import Array

if TYPE_CHECKING:
    from rocerf.data.training_set import TrainingSet
    from rocerf.models.design import Design
    from rocerf.models.network.network import Tensor
    from rocerf.models.network.objective import NetworkObjective
    from rocerf.models.network.options import NetworkOptions
    from rocerf.models.network.retraining import Retrainer

#: Ways to guess which rows hold a point up.
PROPOSALS = ("first order", "kernel")


class NetworkProposals:
    """The part of :class:`~rocerf.models.network.model.NeuralModel` that the adversary asks."""

    if TYPE_CHECKING:
        design: Design
        retrainer: Retrainer
        module: Tensor
        _options: NetworkOptions
        _objective: NetworkObjective

        def __init__(
            self, train: TrainingSet, module: Any, design: Design, retrainer: Retrainer, options: NetworkOptions
        ) -> None: ...

        @property
        def train(self) -> TrainingSet: ...

    @property
    def proposals(self) -> tuple[str, ...]:
        """First-order effects (Gauss-Newton), and favourable rows that move the network as the point does."""
        return PROPOSALS

    def harms(self, X: Array, proposal: str = "first order") -> Array:
        """How far deleting each training row alone is guessed to move the scores of points (P, d); shape (P, n)."""
        if one_of(proposal, "proposal", PROPOSALS) == "kernel":
            return np.asarray(-self.train.y * np.maximum(self._objective.kinship(X), 0.0))
        return self._objective.effects(X)

    def as_retrained(self, models: NetworkEnsemble, place: int) -> Self:
        """One of the networks that :meth:`refitted` gave, with these training rows: to guess with."""
        state = [values[0] for values in models[place : place + 1].arrays()]
        module = with_state(copy.deepcopy(self.module), state)
        return type(self)(self.train, module, self.design, self.retrainer, self._options)
