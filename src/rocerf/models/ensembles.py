"""What models retrained many at a time can be asked together."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, Protocol, runtime_checkable

from rocerf.types import Array


class Ensemble(Protocol):
    """M models of one kind, retrained."""

    def __len__(self) -> int: ...

    def __getitem__(self, part: slice) -> Ensemble: ...

    def joined(self, other: Any) -> Ensemble:
        """These models and, after them, those of another ensemble of the same kind."""
        ...

    def arrays(self) -> list[Array]:
        """What :meth:`Refittable.restored` makes them of again; empty for models that are retrained instead."""
        ...

    def scores(self, X: Array) -> Array:
        """Score of every point (P, d) by every model, shape (M, P)."""
        ...


@runtime_checkable
class SmoothEnsemble(Ensemble, Protocol):
    """M models whose scores have slopes in x."""

    def scores_and_pullback(self, X: Array) -> tuple[Array, Callable[[Array], Array]]:
        """Scores (M, P), and the map from weights (M, P) to ``sum_m weights[m, j] dscore_m/dx`` at x_j, (P, d)."""
        ...
