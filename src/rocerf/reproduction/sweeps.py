"""Every method has a knob that buys validity with cost: which, at which values, and how it is set.

One point of a curve is one value of one method's knob: mean cost, and the share of the people asked for whose point is
accepted after random and after picked deletions (:mod:`rocerf.reproduction.judges`). A method as it is in the tables is
one such point, at its own value; `scfe` is a margin of 0.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from rocerf.baselines.margin import LINEAR, OTHERS
from rocerf.evaluation.methods import PRESET_OF, MethodOptions
from rocerf.promises.fresh_starts import FreshStarts
from rocerf.promises.simulated import Simulated
from rocerf.reproduction.as_published import weights_of

#: The knob of each method: a margin in score units, a width of ROAR's box, a width of C-CHVAE's shells (the radius
#: that it adds at a time), a share of the rows.
KNOB_OF = {
    "scfe": "margin",
    "margin": "margin",
    "roar": "delta_max",
    "cchvae": "shell",
    "cchvae_trained": "shell",
    "rocerf": "k",
    "rocerf_exact": "k",
    "first_order": "k",
    "retrained": "k",
    "simulated": "k",
}

#: Values in the tables, where it is not the share k of the settings.
OWN = {"scfe": 0.0, "roar": 0.1, "cchvae": 0.05, "cchvae_trained": 0.05, "simulated": 0.05}

#: The values of a full run beside the methods' own.
VALUES: dict[str, tuple[float, ...]] = {
    "margin": (0.02, 0.05, 0.1, 0.2, 0.3, 0.4, 0.5, 0.75, 1.0, 1.25, 1.5, 2.0, 2.5, 3.0, 5.0),
    "roar": (0.005, 0.01, 0.02, 0.03, 0.05, 0.1, 0.12, 0.15, 0.2),
    "cchvae": (0.05, 0.2, 0.5, 1.0),
    "rocerf": (0.0005, 0.001, 0.0025, 0.005, 0.006, 0.0065, 0.0075, 0.01, 0.02),
    "first_order": (0.001, 0.0025, 0.005, 0.01, 0.02),
    "retrained": (0.001, 0.0025, 0.005, 0.01),
    "simulated": (0.005, 0.01, 0.02, 0.05),
}


def own_value(method: str, model: str, k: float) -> float:
    """The value of a method's knob in the tables; ``k`` is the share of rows that robust methods are to withstand.

    >>> own_value("roar", "lr", 0.005), own_value("rocerf", "lr", 0.005)
    (0.1, 0.005)
    """
    if method == "margin":
        return LINEAR if model == "lr" else OTHERS
    return OWN.get(method, k)


def options_of(inputs: Mapping[str, Any]) -> MethodOptions:
    """The options of a method from the inputs of its job, with the knob turned where the inputs say so."""
    shaping, choosing, checking = inputs.get("simulated", (2, 2, 1))
    starts, rounds, judging = inputs.get("fresh_starts", (2, 1, 1))
    effort = inputs.get("search", "normal")
    given: dict[str, Any] = {"k": inputs.get("k", 0)}
    if "value" in inputs:
        share = f"{inputs['value'] * 100:g}%"
        if inputs["knob"] != "k":
            given["own"] = {inputs["knob"]: inputs["value"]}
        elif inputs["method"] == "simulated":
            given["simulated_k"] = share
        else:
            given["k"] = share
    return MethodOptions(
        weights=weights_of(inputs["setting"], inputs["dataset"]),
        preset=PRESET_OF[inputs["setting"]],
        seed=inputs.get("draw", 0),
        simulated=Simulated(shaping=shaping, choosing=choosing, checking=checking),
        fresh_starts=FreshStarts(starts=starts, rounds=rounds, checking=judging, effort=effort),
        **given,
    )
