"""How fast networks are retrained together, and how long first_order takes a person.

On a GPU the retraining is the full one: 500 networks of Adult, 100 epochs, absolute seconds. Anywhere: a stack against
the same networks one by one, as a ratio in one run. first_order for 500 people of Adult, all parameters, by the paper's
Algorithm 1 and by repeated linearisation. Run: ``python -m benchmarks.network_speed --device cuda``.
"""

from __future__ import annotations

import argparse
import sys
import time
from typing import Any

import numpy as np

import rocerf
from benchmarks.record import write_record
from rocerf.deletion.random_deletions import random_deletions


def together_and_alone(device: str, many: int, alone: int, epochs: int) -> dict[str, float]:
    """Seconds a network in a stack, and one by one, on Adult."""
    train = rocerf.load_dataset("adult").train
    model = rocerf.NeuralModel.fit(train, epochs=1, device=device)
    model = _for(model, epochs)
    deletions = random_deletions(train, len(train) // 100, many, seed=0)
    start = time.perf_counter()
    stack = model.refitted(deletions, seed=1)
    together = (time.perf_counter() - start) / many
    start = time.perf_counter()
    single = [model.refitted(deletions[:1], seed=1) for _ in range(alone)]
    apart = (time.perf_counter() - start) / alone
    gap = float(np.abs(stack[:1].scores(train.X[:500]) - single[0].scores(train.X[:500])).max())
    return {
        "networks": many,
        "epochs": epochs,
        "seconds_together": together * many,
        "seconds_a_network_together": together,
        "seconds_a_network_alone": apart,
        "ratio": apart / together,
        "largest_score_difference": gap,
    }


def _for(model: rocerf.NeuralModel, epochs: int) -> rocerf.NeuralModel:
    """The same kind of network, to be trained for so many epochs from now on."""
    from dataclasses import replace

    from rocerf.models.network.retraining import OwnTraining

    own = model.retrainer
    assert isinstance(own, OwnTraining)
    return model.with_retrainer(replace(own, training=replace(own.training, epochs=epochs)))


def first_order(device: str, epochs: int, asking: int) -> dict[str, float]:
    """Seconds a person for first_order on Adult's network, by both solvers; the row effects apart."""
    data = rocerf.load_dataset("adult")
    model = rocerf.NeuralModel.fit(data.train, seed=0, epochs=epochs, device=device)
    people = data.test.X[model.predict(data.test.X) == 0][:asking]
    measured: dict[str, float] = {"people": len(people), "parameters": len(model.theta), "epochs": epochs}
    for solver in ("sequential", "penalty"):
        explainer = rocerf.Rocerf(model, "0.5%", promise="first_order", solver=solver)
        start = time.perf_counter()
        effects = explainer.promise.effects  # type: ignore[attr-defined]
        measured["seconds_row_effects"] = time.perf_counter() - start
        start = time.perf_counter()
        recourses = explainer.explain(people)
        measured[f"seconds_a_person_{solver}"] = (time.perf_counter() - start) / len(people)
        measured[f"cost_{solver}"] = float(recourses.costs.mean())
        del effects
    return measured


def main() -> int:
    """Print the figures and write out/network_speed.json."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--device", default="cpu")
    parser.add_argument("--first-order-epochs", type=int, default=100)
    parser.add_argument("--people", type=int, default=500)
    options = parser.parse_args()
    gpu = options.device == "cuda"
    measured: dict[str, Any] = {
        "device": _device(options.device),
        "retraining": together_and_alone(options.device, 500 if gpu else 100, 2, 100 if gpu else 2),
        "first_order": first_order(options.device, options.first_order_epochs, options.people),
    }
    for part in ("retraining", "first_order"):
        for key, value in measured[part].items():
            print(f"{part:12}{key:32}{value:12.4g}")
    checksum = rocerf.load_dataset("adult").train.checksum
    print("written:", write_record(f"network_speed_{options.device}", measured, seed=0, checksums={"adult": checksum}))
    return 0


def _device(name: str) -> str:
    import torch

    return str(torch.cuda.get_device_name()) if name == "cuda" else "cpu"


if __name__ == "__main__":
    sys.exit(main())
