"""The compared methods by their short names, for any model and either preset."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from rocerf.baselines.answers import Explained
from rocerf.baselines.registry import BASELINES, Explainer
from rocerf.baselines.roar import Roar
from rocerf.baselines.roar_descent import Parts
from rocerf.baselines.rocerf_authors import AuthorsRocerf
from rocerf.baselines.scfe import Scfe
from rocerf.data.schema import FeatureSchema
from rocerf.deletion.k import number_of_deletions
from rocerf.errors import OptionError
from rocerf.explainer.explainer import Rocerf
from rocerf.models.local_linear import Sampling
from rocerf.models.model import ExactModel, Refittable
from rocerf.promises.fresh_starts import FreshStarts
from rocerf.promises.local_linear import LocalLinear
from rocerf.promises.simulated import Simulated
from rocerf.recourse.result import Recourses

#: Methods of each setting and model, in the order of the tables. `rocerf` is the paper's: as published the authors'
#: search, elsewhere (and as `rocerf_exact`) the optimum of its constraint, which is first_order for logistic models and
#: local_linear for networks. `cchvae` as published has the weights that the authors ship, `cchvae_trained` is trained
#: anew. The last ones are ours.
METHODS: dict[tuple[str, str], tuple[str, ...]] = {
    ("published", "lr"): ("scfe", "roar", "cchvae", "cchvae_trained", "rocerf", "rocerf_exact"),
    ("published", "nn"): ("scfe", "roar", "cchvae", "cchvae_trained", "rocerf", "rocerf_exact"),
    ("corrected", "lr"): ("scfe", "margin", "roar", "cchvae", "rocerf", "retrained"),
    ("corrected", "nn"): ("scfe", "margin", "roar", "cchvae", "rocerf", "first_order", "simulated", "retrained"),
}

#: The authors' choices for the setting as published, corrected defaults elsewhere.
PRESET_OF = {"published": "authors", "corrected": "corrected"}


@dataclass(frozen=True)
class MethodOptions:
    """What the methods are made with: deletions to withstand, preset of the baselines, seed, effort, networks.

    ``simulated_k`` is the most that `simulated` deletes, by default its own 5 % of the rows. With the preset "authors"
    a share k is rounded down, and ``weights`` is the file of the autoencoder that `cchvae` uses; without it one is
    trained. ``schema`` says what may change, for every method. ``own`` are further options of a baseline, such as its
    ``margin`` or ``delta_max``, ``fresh_starts`` those of `retrained` for networks.
    """

    k: int | str
    preset: str = "corrected"
    seed: int = 0
    effort: str = "normal"
    simulated: Simulated = field(default_factory=Simulated)
    simulated_k: int | str | None = None
    weights: Path | None = None
    own: Mapping[str, Any] = field(default_factory=dict)
    fresh_starts: FreshStarts | None = None
    schema: FeatureSchema | None = None

    def rows(self, model: Refittable) -> int:
        """k of the model's rows."""
        return number_of_deletions(self.k, len(model.train), rounded="down" if self.preset == "authors" else "up")


Factory = Callable[[Refittable, MethodOptions], Explainer]


def explainer_named(method: str, model: Refittable, options: MethodOptions) -> Explainer:
    """The method called ``scfe``, ``roar``, ... about this model; ``plain`` is the nearest accepted point.

    >>> import rocerf
    >>> train = rocerf.TrainingSet([[1.0], [2.0], [3.0], [4.0]], [0, 1, 0, 1])
    >>> explainer_named("rocerf", rocerf.LogisticModel.fit(train), MethodOptions(k=1)).promise.name
    'first_order'
    """
    if method == "plain":
        return Scfe(model, schema=options.schema)
    if method in BASELINES:
        weights = {"weights": options.weights} if method == "cchvae" and options.weights is not None else {}
        return BASELINES[method](
            model, preset=options.preset, seed=options.seed, **_rules(options), **weights, **options.own
        )
    if method not in _FACTORIES:
        known = ", ".join(method_names())
        raise OptionError(f"Expected a method among {known}, got {method!r}; choose one of these.")
    return _FACTORIES[method](model, options)


def method_names() -> tuple[str, ...]:
    """All methods that can be asked for by name."""
    return (*BASELINES, *_FACTORIES)


def methods_for(model: Refittable) -> tuple[str, ...]:
    """The paper's methods and ours that suit a model; for networks without `retrained`, which takes minutes."""
    if isinstance(model, ExactModel):
        return METHODS["corrected", "lr"]
    return tuple(method for method in METHODS["corrected", "nn"] if method != "retrained")


def explained(explainer: Explainer, X: Any, parts: Parts | None = None) -> Explained:
    """Recourses for the people X (P, d), and the points that count for the method's cost and validity.

    For the authors' presets these are where it ended for everybody, also points that the model refuses (which are no
    recourses: their status says so); elsewhere the recourses' own. ``parts`` are those for each of which the authors'
    ROAR chooses its lambda.
    """
    if isinstance(explainer, Roar):
        return explainer.explained(X, parts=parts)
    own: Callable[[Any], Explained] | None = getattr(explainer, "explained", None)
    if own is not None:
        return own(X)
    recourses = explainer.explain(X)
    return Explained(recourses, recourses.matrix)


def _promise(name: str) -> Factory:
    return lambda model, options: Rocerf(
        model, options.rows(model), promise=name, effort=options.effort, seed=options.seed, schema=options.schema
    )


def _rules(options: MethodOptions) -> dict[str, Any]:
    """The schema as an option of its own, where there is one: a baseline of somebody else's may know none."""
    return {} if options.schema is None else {"schema": options.schema}


def _papers(model: Refittable, options: MethodOptions) -> Explainer:
    """The paper's method: the authors' search with their preset, else the optimum."""
    if options.preset == "authors":
        return AuthorsRocerf(model, options.rows(model), seed=options.seed, schema=options.schema)
    return _exact(model, options)


def _exact(model: Refittable, options: MethodOptions) -> Explainer:
    """The optimum of the paper's constraint; for networks on stand-ins, fitted as the preset says."""
    if isinstance(model, ExactModel):
        return _promise("first_order")(model, options)
    sampling: Sampling = "authors" if options.preset == "authors" else "widened"
    k = options.rows(model)
    promise = LocalLinear(model, k, sampling=sampling, seed=options.seed)
    return Rocerf(model, k, promise=promise, effort=options.effort, seed=options.seed, schema=options.schema)


def _trained(model: Refittable, options: MethodOptions) -> Explainer:
    """C-CHVAE with an autoencoder trained anew, whatever weights there are."""
    return BASELINES["cchvae"](model, preset=options.preset, seed=options.seed, **_rules(options), **options.own)


def _retrained(model: Refittable, options: MethodOptions) -> Explainer:
    if options.fresh_starts is None or isinstance(model, ExactModel):
        return _promise("retrained")(model, options)
    return Rocerf(model, options.k, promise=options.fresh_starts, seed=options.seed, schema=options.schema)


def _simulated(model: Refittable, options: MethodOptions) -> Explainer:
    return Rocerf(model, options.simulated_k, promise=options.simulated, seed=options.seed, schema=options.schema)


#: The methods that are no baselines: one line each, in the order in which they are named.
_FACTORIES: dict[str, Factory] = {
    "cchvae_trained": _trained,
    "rocerf": _papers,
    "rocerf_exact": _exact,
    "first_order": _promise("first_order"),
    "retrained": _retrained,
    "simulated": _simulated,
}


def words_of(explainer: Explainer, recourses: Recourses) -> str:
    """Hyper-parameters in one line: preset and numbers of a baseline, promise and margin of ours."""
    settings = recourses.settings
    named = [(name, getattr(explainer, name, None)) for name in ("preset", "margin", "delta_max", "lam")]
    said = [f"{name}={value}" for name, value in named if value is not None]
    weights = getattr(explainer, "weights", None)
    said += [] if weights is None else [f"weights={weights.name}"]
    promised = [f"promise={settings.promise}", f"delta={settings.delta:g}"]
    sampling = getattr(getattr(explainer, "promise", None), "sampling", None)
    promised += [] if sampling is None else [f"sampling={sampling}"]
    return "; ".join([*(said or promised), f"solver={settings.solver}", f"seed={settings.seed}"])
