"""The compared methods by their short names, for any model and either preset."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any, Protocol

from rocerf import baselines
from rocerf.deletion.k import number_of_deletions
from rocerf.errors import OptionError
from rocerf.explainer.explainer import Rocerf
from rocerf.models.local_linear import Sampling
from rocerf.models.model import ExactModel, Refittable
from rocerf.promises.local_linear import LocalLinear
from rocerf.promises.simulated import Simulated
from rocerf.recourse.result import Recourses

#: Methods of each setting and model, in the order of the tables. `rocerf` is the paper's: first_order for logistic
#: models, local_linear for networks; the last ones are ours.
METHODS: dict[tuple[str, str], tuple[str, ...]] = {
    ("published", "lr"): ("scfe", "roar", "cchvae", "rocerf"),
    ("published", "nn"): ("scfe", "roar", "cchvae", "rocerf"),
    ("corrected", "lr"): ("scfe", "roar", "cchvae", "rocerf", "retrained"),
    ("corrected", "nn"): ("scfe", "roar", "cchvae", "rocerf", "first_order", "simulated"),
}

#: The authors' choices for the setting as published, corrected defaults elsewhere.
PRESET_OF = {"published": "authors", "corrected": "corrected"}


class Explainer(Protocol):
    """Whatever explains people."""

    def explain(self, X: Any, *, progress: Any = None) -> Recourses:
        """Recourse for each person of X, shape (P, d)."""
        ...


@dataclass(frozen=True)
class MethodOptions:
    """What the methods are made with: deletions to withstand, preset of the baselines, seed, effort, networks.

    ``simulated_k`` is the most that `simulated` deletes, by default its own 5 % of the rows.
    """

    k: int | str
    preset: str = "corrected"
    seed: int = 0
    effort: str = "normal"
    simulated: Simulated = field(default_factory=Simulated)
    simulated_k: int | str | None = None


Factory = Callable[[Refittable, MethodOptions], Explainer]


def explainer_named(method: str, model: Refittable, options: MethodOptions) -> Explainer:
    """The method called ``scfe``, ``roar``, ... about this model; ``plain`` is the nearest accepted point.

    >>> import rocerf
    >>> train = rocerf.TrainingSet([[1.0], [2.0], [3.0], [4.0]], [0, 1, 0, 1])
    >>> explainer_named("rocerf", rocerf.LogisticModel.fit(train), MethodOptions(k=1)).promise.wording.name
    'first_order'
    """
    if method == "plain":
        return baselines.Scfe(model)
    if method not in _FACTORIES:
        known = ", ".join(method_names())
        raise OptionError(f"Expected a method among {known}, got {method!r}; choose one of these.")
    return _FACTORIES[method](model, options)


def method_names() -> tuple[str, ...]:
    """All methods that can be asked for by name."""
    return tuple(_FACTORIES)


def register_method(name: str, factory: Factory) -> None:
    """Make a method known by its name: ``factory(model, options)`` gives whatever explains people."""
    _FACTORIES[name] = factory


def methods_for(model: Refittable) -> tuple[str, ...]:
    """The paper's methods and ours that suit a model."""
    return METHODS["corrected", "lr" if isinstance(model, ExactModel) else "nn"]


def _baseline(name: str) -> Factory:
    # Looked up when it is asked for, so that a baseline can be replaced by one with other options.
    return lambda model, options: getattr(baselines, name)(model, preset=options.preset, seed=options.seed)


def _promise(name: str) -> Factory:
    return lambda model, options: Rocerf(model, options.k, promise=name, effort=options.effort, seed=options.seed)


def _papers(model: Refittable, options: MethodOptions) -> Explainer:
    """The paper's method; for networks, with the preset ``authors``, its stand-in is fitted to their points."""
    if isinstance(model, ExactModel):
        return _promise("first_order")(model, options)
    sampling: Sampling = "authors" if options.preset == "authors" else "widened"
    k = number_of_deletions(options.k, len(model.train))
    promise = LocalLinear(model, k, sampling=sampling, seed=options.seed)
    return Rocerf(model, k, promise=promise, effort=options.effort, seed=options.seed)


def _simulated(model: Refittable, options: MethodOptions) -> Explainer:
    return Rocerf(model, options.simulated_k, promise=options.simulated, seed=options.seed)


#: One line a method, in the order in which they are named.
_FACTORIES: dict[str, Factory] = {
    "scfe": _baseline("Scfe"),
    "roar": _baseline("Roar"),
    "cchvae": _baseline("CChvae"),
    "rocerf": _papers,
    "first_order": _promise("first_order"),
    "retrained": _promise("retrained"),
    "simulated": _simulated,
}


def words_of(explainer: Explainer, recourses: Recourses) -> str:
    """Hyper-parameters in one line: preset and numbers of a baseline, promise and margin of ours."""
    settings = recourses.settings
    named = [(name, getattr(explainer, name, None)) for name in ("preset", "delta_max", "lam")]
    said = [f"{name}={value}" for name, value in named if value is not None]
    promised = [f"promise={settings.promise}", f"delta={settings.delta:g}"]
    sampling = getattr(getattr(explainer, "promise", None), "sampling", None)
    promised += [] if sampling is None else [f"sampling={sampling}"]
    return "; ".join([*(said or promised), f"solver={settings.solver}", f"seed={settings.seed}"])
