"""How fast networks are retrained together, and how long first_order takes a person.

On a GPU the retraining is the full one: 500 networks of Adult, 100 epochs, absolute seconds. Anywhere: a stack against
the same networks one by one, as a ratio in one run. On the CPU also the hand-written step against the one that autograd
derives, for several shapes and numbers of networks. first_order for 500 people of Adult, all parameters, by the paper's
Algorithm 1 and by repeated linearisation. Run: ``python -m benchmarks.network_speed --device cuda``.
"""

from __future__ import annotations

import argparse
import sys
import time
from itertools import product
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
    _for(model, 1).refitted(deletions, seed=1)  # kernels are compiled at first use
    first = time.perf_counter() - start
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
        "seconds_first_epoch": first,
        "seconds_together": together * many,
        "seconds_a_network_together": together,
        "seconds_a_network_alone": apart,
        "ratio": apart / together,
        "largest_score_difference": gap,
    }


#: Rows and columns of tables: a wide one, Adult's, a small one, and German's with its categories.
SHAPES = ((6000, 39), (36177, 13), (4900, 7), (800, 60))


def by_hand_and_by_autograd(rows: int, columns: int, many: int) -> dict[str, float]:
    """Milliseconds an epoch of one network takes on the CPU, in a stack, by our step and by the one torch derives."""
    from rocerf.models.network.cpu_training import train_on_cpu
    from rocerf.models.network.network import Architecture
    from rocerf.models.network.training import Task, Training

    rng = np.random.default_rng(0)
    X = rng.normal(size=(rows, columns))
    task = Task(X, (X.sum(axis=1) > 0).astype(float), np.ones(rows))
    kept = [np.sort(rng.permutation(rows)[rows // 100 :]) for _ in range(many)]
    seeds, training = list(range(many)), Training(epochs=1)
    start = Architecture.of(columns).initial(seeds)
    measured: dict[str, float] = {}
    stacks = []
    for name, train in (("by_hand", train_on_cpu), ("by_autograd", _by_autograd)):
        wall, work = time.perf_counter(), time.process_time()
        stacks.append(train(task, start, kept, seeds, training))
        measured[f"ms_{name}"] = (time.perf_counter() - wall) / many * 1e3
        measured[f"cpu_ms_{name}"] = (time.process_time() - work) / many * 1e3
    measured["ratio"] = measured["ms_by_autograd"] / measured["ms_by_hand"]
    measured["cpu_ratio"] = measured["cpu_ms_by_autograd"] / measured["cpu_ms_by_hand"]
    measured["largest_difference"] = max(float(np.abs(a - b).max()) for a, b in zip(*stacks, strict=True))
    return measured


def _by_autograd(task: Any, start: Any, kept: Any, seeds: Any, training: Any, size: int = 128) -> list[Any]:
    """One epoch by the step of the GPU, on the CPU, for at most ``size`` networks at a time."""
    from concurrent.futures import ThreadPoolExecutor

    import torch

    from rocerf.models.network.training import _batches, _Run

    parts = []
    with ThreadPoolExecutor() as pool:
        for first in range(0, len(seeds), size):
            part = slice(first, first + size)
            longest = max(map(len, kept[part]))
            stack = [values[part] for values in start]
            run = _Run(task, stack, longest, training, torch.device("cpu"), torch.float32)
            run.load(_batches(kept[part], seeds[part], 0, training, pool))
            for _ in range(run.steps):
                run.step()
            parts.append(run.result())
    return [np.concatenate(pieces) for pieces in zip(*parts, strict=True)]


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
    if not gpu:
        for (rows, columns), many in product(SHAPES, (1, 8, 40, 200)):
            measured[f"step {rows}x{columns}, {many}"] = by_hand_and_by_autograd(rows, columns, many)
    for part in [key for key, value in measured.items() if isinstance(value, dict)]:
        for key, value in measured[part].items():
            print(f"{part:22}{key:32}{value:12.4g}")
    checksum = rocerf.load_dataset("adult").train.checksum
    print("written:", write_record(f"network_speed_{options.device}", measured, seed=0, checksums={"adult": checksum}))
    return 0


def _device(name: str) -> str:
    import torch

    return str(torch.cuda.get_device_name()) if name == "cuda" else "cpu"


if __name__ == "__main__":
    sys.exit(main())
