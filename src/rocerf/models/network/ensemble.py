"""Many networks of one shape, trained already, asked for their scores at once.

Training many at once is :mod:`rocerf.models.network.training`.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass

import numpy as np
import torch
from torch.func import functional_call, vmap

from rocerf.models.design import Design
from rocerf.models.network.network import Mlp, Tensor, forward_and_pullback, state_names
from rocerf.types import Array

#: Scores computed at a time, networks times people: bounds the memory of their hidden layers.
BLOCK = 200_000


@dataclass(frozen=True, eq=False)
class NetworkEnsemble:
    """M networks: one module and a stack of states for it (parameters, then buffers), in float64.

    ``design`` is the scaling before the module, ``offset`` what is taken from its logit.
    """

    module: Tensor
    stack: tuple[Tensor, ...]
    design: Design
    offset: float

    @classmethod
    def of(cls, module: Tensor, stack: Sequence[Array], design: Design, offset: float) -> NetworkEnsemble:
        """From arrays, onto the module's device."""
        device = next(module.parameters()).device
        return cls(module, tuple(torch.as_tensor(values, device=device) for values in stack), design, offset)

    def __len__(self) -> int:
        return len(self.stack[0])

    def __getitem__(self, part: slice) -> NetworkEnsemble:
        return NetworkEnsemble(self.module, tuple(values[part] for values in self.stack), self.design, self.offset)

    def joined(self, other: NetworkEnsemble) -> NetworkEnsemble:
        """These networks and, after them, the others."""
        stack = tuple(torch.cat(pair) for pair in zip(self.stack, other.stack, strict=True))
        return NetworkEnsemble(self.module, stack, self.design, self.offset)

    def arrays(self) -> list[Array]:
        """The stack as arrays."""
        return [values.cpu().numpy() for values in self.stack]

    def _forward(self, points: Tensor) -> Tensor:
        names = state_names(self.module)

        def one(*parameters: Tensor) -> Tensor:
            return functional_call(self.module, dict(zip(names, parameters, strict=True)), (points,)).reshape(-1)

        return vmap(one, randomness="error")(*self.stack) - self.offset

    def _tensor(self, X: Array) -> Tensor:
        return torch.as_tensor(self.design(X), device=self.stack[0].device)

    def scores(self, X: Array) -> Array:
        """Score of every point (P, d) by every network, shape (M, P)."""
        size = max(1, BLOCK // len(self))
        with torch.no_grad():
            parts = [
                self._forward(self._tensor(X[first : first + size])).cpu().numpy() for first in range(0, len(X), size)
            ]
        return np.concatenate(parts, axis=1) if parts else np.empty((len(self), 0))

    def scores_and_pullback(self, X: Array) -> tuple[Array, Callable[[Array], Array]]:
        """Scores (M, P), and the map from weights (M, P) to the weighted sum of slopes in x, (P, d)."""
        if type(self.module) is Mlp:  # a subclass may do otherwise
            return self._by_hand(X)
        points = self._tensor(X).requires_grad_()
        scores = self._forward(points)

        def pullback(weights: Array) -> Array:
            (slopes,) = torch.autograd.grad(scores, points, torch.as_tensor(weights, device=points.device))
            return np.asarray(slopes.cpu().numpy() / self.design.scale)

        return scores.detach().cpu().numpy(), pullback

    def _by_hand(self, X: Array) -> tuple[Array, Callable[[Array], Array]]:
        """The same for networks whose layers we know, without autograd."""
        with torch.no_grad():
            logits, back = forward_and_pullback(self.stack, self._tensor(X))

        def pullback(weights: Array) -> Array:
            with torch.no_grad():
                slopes = back(torch.as_tensor(weights, device=logits.device))
            return np.asarray(slopes.cpu().numpy() / self.design.scale)

        return (logits - self.offset).cpu().numpy(), pullback
