"""An explainer as plain values and arrays: its options, and what its promise found or proved about which model."""

from __future__ import annotations

import importlib
import json
from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

from rocerf.data.schema import FeatureSchema
from rocerf.errors import FileFormatError, OptionError
from rocerf.models.identity import Identity
from rocerf.models.model import Refittable
from rocerf.promises.promise import STATE_FORMAT
from rocerf.promises.registry import PROMISES
from rocerf.recourse.costs.prices import CostTable
from rocerf.storage.state import State
from rocerf.version import __version__

if TYPE_CHECKING:
    from rocerf.explainer.explainer import Rocerf

FORMAT = "rocerf-explainer/2"

#: Arrays by which the model is known that a promise is about.
ABOUT = "about "

#: Kinds of models that explainers are kept with, and where they are defined: networks are imported only if needed.
MODELS = {
    "LogisticModel": "rocerf.models.logistic.model",
    "NeuralModel": "rocerf.models.network.model",
    "EstimatorModel": "rocerf.models.sklearn.estimator",
}


def states_of(explainer: Rocerf) -> dict[str, State]:
    """The states "model", "promise" and "options"; what can only be made again by hand is refused."""
    model, promise = explainer.model, explainer.promise
    if promise.name not in PROMISES:
        raise OptionError(
            f"Expected a promise about deletions made by rocerf to save, got {promise.name!r}; "
            "it needs no saving, or cannot be made again from a file."
        )
    learned = promise.state()  # proves what is to be proven
    identity = Identity.of(model, promise.k)
    own = dict(learned.values) or None  # the promise's own options, whichever promise it is
    about = {"version": __version__, "promise": promise.name, "options": own, "values": identity.values}
    arrays = {f"{ABOUT}{name}": values for name, values in identity.arrays.items()}
    options = {
        "k": explainer.k,
        "promise": promise.name,
        "delta": explainer.delta,
        "calibrated": explainer.calibrates,
        "cost": explainer.cost.name,
        "solver": explainer.solver,
        "max_changes": explainer.max_changes,
        "effort": promise.effort or explainer.effort,
        "seed": explainer.seed,
    }
    document = {
        "version": __version__,
        "model": type(model).__name__,
        "options": options,
        "simulated": own,
        "schema": None if explainer.schema is None else explainer.schema.to_dict(),
        "prices": _prices(explainer.cost_given),
    }
    return {
        "model": model.state(),
        "promise": State(STATE_FORMAT, about, {**arrays, **learned.arrays}),
        "options": State(FORMAT, document),
    }


def _prices(cost: Any) -> list[Any] | None:
    """A table of prices as plain lists, None where the cost's name says it all."""
    if isinstance(cost, CostTable):
        return cost.to_pairs()
    if isinstance(cost, str):
        return None
    raise OptionError(
        f"Expected a cost by its name, or a CostTable, to save, got a {type(cost).__name__}, which cannot be made "
        "again from a file; register it by a name, or make the explainer again instead."
    )


def explainer_from(kind: type[Rocerf], states: Mapping[str, State], model: Refittable | None) -> Rocerf:
    """The explainer of these states; a model that is given must be the one that the promise is about."""
    if model is not None and not isinstance(model, Refittable):
        raise OptionError(
            f"Expected the model that the explainer was saved with, got {type(model).__name__}; a pipeline goes into "
            'LogisticModel.load(path / "model.npz", pipeline=pipeline), and that model here.'
        )
    missing = [part for part in ("options", "promise", *(["model"] if model is None else [])) if part not in states]
    if missing:
        raise OptionError(f"Expected the states that Rocerf.state gave, got none called {missing[0]!r}; give them all.")
    document, learned = states["options"].values, states["promise"]
    with states["options"].understood(FORMAT, "Rocerf.save", "save the explainer again with this version"):
        options = dict(document["options"])
        schema = None if document["schema"] is None else FeatureSchema.from_dict(document["schema"])
        if document["prices"]:
            options["cost"] = CostTable.from_pairs(document["prices"])
    with learned.understood(STATE_FORMAT, "Rocerf.save", "save the explainer again with this version"):
        if learned.values["promise"] != options["promise"]:
            raise ValueError(f"it is about the promise {learned.values['promise']!r}")
        # What was found was found under these: another share, say, was not aimed at.
        if _plain(learned.values.get("options", document["simulated"])) != _plain(document["simulated"]):
            raise ValueError("it is about other options of the promise")
        known = learned.values["values"]
    if model is None:
        model = _model_of(document["model"], states["model"])
    saved = {name.removeprefix(ABOUT): array for name, array in learned.arrays.items() if name.startswith(ABOUT)}
    difference = Identity(known, saved).difference(Identity.of(model, options["k"]))
    if difference is not None:
        raise FileFormatError(
            f"Expected the model that the explainer was saved with, got one with {difference}: what was found or "
            "proven about one says nothing about another; give that model, or make a new explainer for this one."
        )
    calibrated = options.pop("calibrated", False)
    explainer = kind(model, options.pop("k"), schema=schema, **options)
    explainer.calibrates = calibrated  # what was found is kept; once rows are forgotten it is to be found again
    own = {name: array for name, array in learned.arrays.items() if not name.startswith(ABOUT)}
    explainer.promise.restore(State(learned.format, document["simulated"] or {}, own))
    return explainer


def _plain(values: Any) -> Any:
    """Values as they come back from a file."""
    return json.loads(json.dumps(values))


def _model_of(kind: str, state: State) -> Refittable:
    if kind not in MODELS:
        raise FileFormatError(f"Expected a model of kind {', '.join(MODELS)}, got {kind!r}; save the explainer again.")
    model: Refittable = getattr(importlib.import_module(MODELS[kind]), kind).from_state(state)
    return model
