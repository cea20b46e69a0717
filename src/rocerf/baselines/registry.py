"""Baselines by name: one line each. Comparisons and the paper's study ask for these."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, Protocol

from rocerf.baselines.cchvae import CChvae
from rocerf.baselines.margin import Margin
from rocerf.baselines.roar import Roar
from rocerf.baselines.scfe import Scfe
from rocerf.errors import OptionError
from rocerf.recourse.result import Recourses


class Explainer(Protocol):
    """Whatever explains people."""

    def explain(self, X: Any, *, progress: Any = None) -> Recourses:
        """Recourse for each person of X, shape (P, d)."""
        ...


BASELINES: dict[str, Callable[..., Explainer]] = {}


def register_baseline(name: str, factory: Callable[..., Explainer]) -> None:
    """Make a baseline known by a name: ``factory(model, preset=..., seed=...)`` gives whatever explains people."""
    if name in BASELINES:
        raise OptionError(f"Expected a new name for a baseline, got {name!r}, which is taken; choose another.")
    BASELINES[name] = factory


register_baseline("scfe", Scfe)
register_baseline("margin", Margin)
register_baseline("roar", Roar)
register_baseline("cchvae", CChvae)
