"""What looks for harmful rows and retrains without them, for each kind of model.

The adversary knows no kind of model. It asks the first attacker below whose capability the model has
(:mod:`rocerf.models.model`). To attack another family, networks or trees say, write one file with a class that is made
with (model, k) and has ``attack``, as :class:`~rocerf.deletion.refit_attack.RefitAttacker` is, and add its line
to :data:`ATTACKERS`, above those that are more general; from outside the package, call :func:`register_attacker`.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, Protocol

from rocerf.deletion.attacks import Attacks, Search
from rocerf.deletion.batched_attack import BatchedAttacker
from rocerf.deletion.group_attack import GroupAttacker
from rocerf.deletion.refit_attack import RefitAttacker
from rocerf.errors import OptionError
from rocerf.models.model import ExactModel, Model, Proposing
from rocerf.types import Array


class Attacker(Protocol):
    """Searches for the worst deletion of at most k rows of one model at any point."""

    def attack(self, X: Array, search: Search) -> Attacks:
        """The worst deletions found for P points (P, d)."""
        ...


#: A capability of models and the attacker that goes with it, the more special first.
ATTACKERS: list[tuple[type, Callable[[Any, int], Attacker]]] = [
    (ExactModel, BatchedAttacker),
    (Proposing, GroupAttacker),
    (Model, RefitAttacker),
]


def register_attacker(capability: type, attacker: Callable[[Any, int], Attacker]) -> None:
    """Have models with this capability (a runtime protocol, or a class) attacked by ``attacker(model, k)``."""
    ATTACKERS.insert(0, (capability, attacker))


def attacker_for(model: Any) -> Callable[[Any, int], Attacker]:
    """What makes, of this model and k, that which attacks it."""
    for capability, attacker in ATTACKERS:
        if isinstance(model, capability):
            return attacker
    raise OptionError(
        f"Expected a model with score, row gradients, curvature and without(ids) to attack, got "
        f"{type(model).__name__}; wrap a scikit-learn model with LogisticModel.from_sklearn(fitted, train)."
    )
