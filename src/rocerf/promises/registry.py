"""Promises by name: one line each, with the models it can be given about. The command line and the docs list these."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, Protocol, runtime_checkable

from rocerf.errors import OptionError
from rocerf.models.model import ExactModel, FirstOrderModel, LinearModel, Proposing, Refittable
from rocerf.promises.certified import Certified
from rocerf.promises.first_order import FirstOrder
from rocerf.promises.fresh_starts import FreshStarts
from rocerf.promises.local_linear import LocalLinear
from rocerf.promises.plain import Plain
from rocerf.promises.promise import Promise
from rocerf.promises.retrained import Retrained
from rocerf.promises.retrained_groups import RetrainedGroups
from rocerf.promises.simulated import Simulated, SimulatedPromise

#: Makes a promise about a model, at most k deletions, with an effort and a seed.
Factory = Callable[[Any, int, str, int], Promise]


@runtime_checkable
class PromiseOptions(Protocol):
    """Options of a promise, given in place of its name."""

    @property
    def default_k(self) -> str:
        """The deletions to withstand where the user says none."""
        ...

    def about(self, model: Refittable, k: int, *, seed: int = 0) -> Promise:
        """The promise about one model and at most k deletions."""
        ...


@dataclass(frozen=True)
class NamedPromise:
    """A promise that can be asked for by its name.

    ``suits`` says which models it can be given about; ``default_k`` is the share of rows where no k is given.
    """

    name: str
    make: Factory
    suits: Callable[[Any], bool]
    summary: str
    default_k: str | None = None


def _exact(model: Any) -> bool:
    return isinstance(model, ExactModel)


PROMISES: dict[str, NamedPromise] = {}

#: Promises of ours, whose sentences are said of nothing else.
_OURS: dict[str, tuple[type[Promise], ...]] = {
    "retrained": (Retrained, RetrainedGroups),
    **{kind.name: (kind,) for kind in (Certified, FirstOrder, LocalLinear, Plain, SimulatedPromise)},
}


def register_promise(
    name: str, make: Factory, suits: Callable[[Any], bool], summary: str, default_k: str | None = None
) -> None:
    """Make a promise known by a name, for :class:`rocerf.Rocerf`, files and the command line.

    ``make(model, k, effort, seed)`` gives the promise (a :class:`Promise` of this ``name``), ``suits(model)`` says
    whether it can be given about a model, ``summary`` is one line for users.
    """
    if name in PROMISES:
        raise OptionError(f"Expected a new name for a promise, got {name!r}, which is taken; choose another.")
    PROMISES[name] = NamedPromise(name, make, suits, summary, default_k)


register_promise(
    "retrained",
    lambda model, k, effort, seed: (
        Retrained(model, k, effort=effort, seed=seed)
        if _exact(model)
        else FreshStarts(effort=effort).about(model, k, seed=seed)
    ),
    lambda model: isinstance(model, ExactModel | Proposing),
    "survives every deletion our search finds, each truly retrained",
)
register_promise(
    "certified",
    lambda model, k, _effort, _seed: Certified(model, k),
    _exact,
    "proven for all deletions, or an abstention with its reason",
)
register_promise(
    "first_order",
    lambda model, k, _effort, seed: FirstOrder(model, k, seed=seed),
    lambda model: isinstance(model, FirstOrderModel),
    "the paper's estimate",
)
register_promise(
    "local_linear",
    lambda model, k, _effort, seed: LocalLinear(model, k, seed=seed),
    lambda model: not isinstance(model, LinearModel),
    "the paper's estimate on a linear stand-in, for whatever is not linear",
)
register_promise(
    "simulated",
    lambda model, k, _effort, seed: Simulated().about(model, k, seed=seed),
    lambda model: isinstance(model, Refittable),
    "accepted by nearly all models really retrained after random deletions",
    Simulated.default_k,
)
register_promise(
    "plain",
    lambda model, _k, _effort, _seed: Plain(model),
    lambda model: isinstance(model, Refittable),
    "accepted by the model as it is; nothing about deletions, whatever k",
    "0%",
)


def default_k(promise: Any) -> str:
    """The deletions of a promise that has a default for them."""
    named = PROMISES.get(promise) if isinstance(promise, str) else promise
    if isinstance(named, NamedPromise | PromiseOptions) and named.default_k is not None:
        return named.default_k
    raise OptionError(
        'Expected k, the number of deletions to withstand, got none; give a number or a share like "0.5%".'
    )


def promise_about(promise: Any, model: Refittable, k: int, effort: str, seed: int) -> Promise:
    """The promise that is meant by a name, by options, or by a promise object about this model and k.

    About a model that its user retrains by an estimator of their own, it allows for the error of that one.
    """
    meant = _promise_meant(promise, model, k, effort, seed)
    if isinstance(promise, str) and meant.name != promise:  # files and results know it by its own name
        raise OptionError(f"Expected a promise named {promise!r}, got one named {meant.name!r}; register it by that.")
    ours = _OURS.get(meant.name)
    if ours is not None and (not isinstance(meant, ours) or meant.proven != ours[0].proven):
        raise OptionError(
            f"Expected a promise with a name of its own, as what is said of it goes by its name, got {meant.name!r}, "
            "which is one of ours; choose another name."
        )
    meant.allow_for_own_fits(seed)
    return meant


def _promise_meant(promise: Any, model: Refittable, k: int, effort: str, seed: int) -> Promise:
    if isinstance(promise, PromiseOptions):
        return promise.about(model, k, seed=seed)
    if isinstance(promise, str) and promise in PROMISES:
        named = PROMISES[promise]
        if not named.suits(model):
            able = ", ".join(repr(other.name) for other in PROMISES.values() if other.suits(model))
            raise OptionError(
                f"Expected one of {able} for this {type(model).__name__}, got promise={promise!r}; choose another "
                "promise."
            )
        return named.make(model, k, effort, seed)
    if not isinstance(promise, Promise):
        raise OptionError(
            f"Expected promise to be one of {', '.join(PROMISES)}, or a promise object, got {promise!r}; "
            "the objects are in rocerf.promises."
        )
    if promise.model is not model:
        raise OptionError("Expected a promise about this model, got one about another; make it with the same model.")
    # The sentence names k, so it must be the k that was kept.
    if promise.k != k:
        raise OptionError(f"Expected a promise about k={k} deletions, got one about {promise.k}; give both the same k.")
    return promise
