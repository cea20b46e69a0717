"""Cost and validity of every method when a network is really retrained, from a new start, without some rows.

Setting: the paper's network (d-2d-2d-1, centred softplus, SGD 0.01, batches of 32, 100 epochs), up to 500 denied test
people, first_order and local_linear with k = 0.5 % of the rows, `simulated` with validity 0.99 and deletions up to 5 %.
Validity: networks trained from initialisations that nothing else has seen, after random deletions of 0.5 to 5 %.
Run: ``make networks`` (``DEVICE=cuda`` on a GPU; without one Adult takes an hour). COMPAS as in ``make validity``.
"""

from __future__ import annotations

import argparse
import sys
import time
from typing import Any

import numpy as np

import rocerf
from benchmarks.record import write_record
from rocerf.baselines import Scfe
from rocerf.errors import DatasetUnavailableError
from rocerf.evaluation import validity_curves
from rocerf.promises import Simulated

FRACTIONS = (0.005, 0.01, 0.02, 0.03, 0.05)
PEOPLE = 500
EVALUATION_SEED = 2023


def explainers(model: rocerf.NeuralModel, checking: int) -> dict[str, Any]:
    """Every method of the table, ready to explain."""
    return {
        "scfe": Scfe(model),
        "first_order (Algorithm 1)": rocerf.Rocerf(model, "0.5%", promise="first_order", solver="penalty"),
        "first_order (linearised)": rocerf.Rocerf(model, "0.5%", promise="first_order"),
        "local_linear": rocerf.Rocerf(model, "0.5%", promise="local_linear"),
        "simulated, fixed margin": rocerf.Rocerf(model, promise=Simulated(margin="fixed", checking=checking)),
        "simulated": rocerf.Rocerf(model, promise=Simulated(checking=checking)),
    }


def measure(name: str, options: argparse.Namespace) -> tuple[dict[str, Any], str]:
    """Cost, validity and seconds of each method on one table."""
    device, trials, epochs = options.device, options.trials, options.epochs
    data = rocerf.load_dataset(name)
    start = time.perf_counter()
    model = rocerf.NeuralModel.fit(data.train, seed=0, epochs=epochs, device=device)
    fitted = time.perf_counter() - start
    denied = data.test.X[model.predict(data.test.X) == 0]
    people = denied[:PEOPLE]
    found, seconds = {}, {}
    for method, explainer in explainers(model, max(trials, 50)).items():
        if options.methods is not None and method not in options.methods:
            continue
        start = time.perf_counter()
        found[method] = explainer.explain(people)
        seconds[method] = time.perf_counter() - start
        print(f"{name:8}{method:28}{seconds[method]:8.1f} s  {found[method]}", flush=True)
    start = time.perf_counter()
    matrices = {method: recourses.matrix for method, recourses in found.items()}
    curves = validity_curves(model, matrices, FRACTIONS, trials, seed=EVALUATION_SEED)
    evaluated = time.perf_counter() - start
    measured: dict[str, Any] = {
        "rows": len(data.train),
        "parameters": len(model.theta),
        "test_accuracy": float((model.predict(data.test.X) == data.test.y).mean()),
        "denied": len(denied),
        "people": len(people),
        "damping": model.damping,
        "seconds_one_network": fitted,
        "seconds_evaluation": evaluated,
        "networks_evaluation": trials * len(FRACTIONS),
        "methods": {},
    }
    for method, recourses in found.items():
        answered = recourses.answered
        steps = (recourses.matrix[answered] - people[answered]) / data.train.spread
        row = {
            "answered": int(answered.sum()),
            "l2": float(recourses.costs[answered].mean()),
            "l1": float(np.abs(steps).sum(axis=1).mean()),
            "seconds_per_person": seconds[method] / len(people),
            "validity": {str(v.fraction): [v.mean, v.standard_error] for v in curves[method]},
        }
        if recourses.held_out is not None:
            held = recourses.held_out
            row["held_out"] = [held.validity, held.lower_bound, held.retrainings]
        measured["methods"][method] = row
    return measured, data.train.checksum


def main() -> int:
    """Print the table and write out/networks.json."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--device", default="cpu")
    parser.add_argument("--trials", type=int, default=100)
    parser.add_argument("--epochs", type=int, default=100)
    parser.add_argument("--methods", nargs="+", help="only these methods of the table")
    parser.add_argument("--tables", nargs="+", default=["german", "compas", "adult"])
    options = parser.parse_args()
    measured: dict[str, Any] = {"device": _device(options.device)}
    checksums: dict[str, str] = {}
    for name in options.tables:
        try:
            measured[name], checksums[name] = measure(name, options)
        except DatasetUnavailableError as missing:
            print(f"{name:8}left out: {missing}")
            continue
        head = "".join(f"{f:>9.1%}" for f in FRACTIONS)
        row = measured[name]
        print(f"{name}: {row['denied']} denied; validity by {row['networks_evaluation']} networks")
        print(f"  {'method':28}{'answered':>9}{'L2':>8}{'L1':>8}{'s/person':>10}{head}")
        for method, figures in row["methods"].items():
            shares = "".join(f"{mean:>9.2%}" for mean, _ in figures["validity"].values())
            costs = f"{figures['l2']:>8.3f}{figures['l1']:>8.2f}{figures['seconds_per_person']:>10.3f}"
            print(f"  {method:28}{figures['answered']:>9}{costs}{shares}", flush=True)
        print("written:", write_record("networks", measured, seed=0, checksums=checksums), flush=True)
    return 0


def _device(name: str) -> str:
    import torch

    return str(torch.cuda.get_device_name()) if name == "cuda" else "cpu"


if __name__ == "__main__":
    sys.exit(main())
