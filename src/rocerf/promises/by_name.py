"""Promises by name, and which models can be given which."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from rocerf.errors import OptionError
from rocerf.models.model import ExactModel, FirstOrderModel, LinearModel, Refittable
from rocerf.promises.certified import Certified
from rocerf.promises.first_order import FirstOrder
from rocerf.promises.local_linear import LocalLinear
from rocerf.promises.own_solver import own_solver
from rocerf.promises.promise import Promise
from rocerf.promises.retrained import Retrained
from rocerf.promises.simulated import DELETIONS, Simulated

#: What each named promise can be given about: a test of the model, and the promise about it.
PROMISES: dict[str, tuple[Callable[[Any], bool], Callable[[Any, int, str, int], Promise]]] = {
    "retrained": (
        lambda model: isinstance(model, ExactModel),
        lambda model, k, effort, seed: Retrained(model, k, effort=effort, seed=seed),
    ),
    "certified": (
        lambda model: isinstance(model, ExactModel),
        lambda model, k, _effort, _seed: Certified(model, k),
    ),
    "first_order": (
        lambda model: isinstance(model, FirstOrderModel),
        lambda model, k, _effort, seed: FirstOrder(model, k, seed=seed),
    ),
    "local_linear": (
        lambda model: not isinstance(model, LinearModel),
        lambda model, k, _effort, seed: LocalLinear(model, k, seed=seed),
    ),
    "simulated": (
        lambda model: isinstance(model, Refittable),
        lambda model, k, _effort, seed: Simulated().about(model, k, seed=seed),
    ),
}


def default_k(promise: Any) -> str:
    """The deletions of a promise that has a default for them."""
    if isinstance(promise, Simulated) or promise == "simulated":
        return DELETIONS
    raise OptionError(
        'Expected k, the number of deletions to withstand, got none; give a number or a share like "0.5%".'
    )


def promise_about(promise: Any, model: Refittable, k: int, effort: str, seed: int) -> Promise:
    """The promise that is meant by a name, by options, or by a promise object about this model and k.

    About a model that its user retrains by an estimator of their own, it allows for the error of that one.
    """
    return own_solver(_promise_meant(promise, model, k, effort, seed), seed=seed)


def _promise_meant(promise: Any, model: Refittable, k: int, effort: str, seed: int) -> Promise:
    if isinstance(promise, Simulated):
        return promise.about(model, k, seed=seed)
    if isinstance(promise, str) and promise in PROMISES:
        fits, make = PROMISES[promise]
        if not fits(model):
            able = ", ".join(repr(name) for name, (test, _) in PROMISES.items() if test(model))
            raise OptionError(
                f"Expected one of {able} for a {type(model).__name__}, got promise={promise!r}; choose another promise."
            )
        return make(model, k, effort, seed)
    if isinstance(promise, str) or not hasattr(promise, "wording"):
        raise OptionError(
            f"Expected promise to be one of {', '.join(PROMISES)}, or a promise object, got {promise!r}; "
            "the objects are in rocerf.promises."
        )
    if getattr(promise, "model", model) is not model:
        raise OptionError("Expected a promise about this model, got one about another; make it with the same model.")
    # The words told to people name k, so they must name the k that was kept.
    if promise.k != k:
        raise OptionError(f"Expected a promise about k={k} deletions, got one about {promise.k}; give both the same k.")
    found: Promise = promise
    return found
