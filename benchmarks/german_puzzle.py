"""The puzzle of the paper's German network: validity *rises* to 100 % for every method as more rows are deleted.

Measured: the share of refused test people and the validity of plain counterfactuals (a) after deletions of 0 to 5 %
with everything else kept, and (b) with nothing deleted but training stopped earlier; for the true labels and for the
published ones, which are scrambled. If deletion were the cause, (a) would rise. Run: ``make networks``.
"""

from __future__ import annotations

import argparse
import itertools
import sys
from dataclasses import replace
from typing import Any

import numpy as np
from numpy.typing import NDArray

import rocerf
from benchmarks.record import write_record
from rocerf.baselines import Scfe
from rocerf.deletion.random_deletions import random_deletions
from rocerf.models.network.ensemble import NetworkEnsemble
from rocerf.models.network.retraining import OwnTraining

Array = NDArray[np.float64]

FRACTIONS = (0.0, 0.005, 0.01, 0.02, 0.03, 0.05)
EPOCHS = (2, 5, 10, 20, 40, 100)


def without(model: rocerf.NeuralModel, fraction: float, trials: int) -> NetworkEnsemble:
    """Networks retrained without a share of the rows."""
    count = round(fraction * len(model.train))
    return model.refitted(random_deletions(model.train, count, trials, seed=7), seed=7)


def stopped(model: rocerf.NeuralModel, epochs: int, trials: int) -> NetworkEnsemble:
    """Networks retrained on all rows, but for so many epochs only."""
    own = model.retrainer
    assert isinstance(own, OwnTraining)
    shorter = model.with_retrainer(replace(own, training=replace(own.training, epochs=epochs)))
    return without(shorter, 0.0, trials)


def look(networks: NetworkEnsemble, points: Array, people: Array) -> dict[str, float]:
    """How retrained networks treat the test people and the counterfactuals."""
    refused = (networks.scores(people) < 0).mean(axis=1)
    return {
        "refused": float(refused.mean()),
        "refused_sd": float(refused.std()),
        "accept_everybody": float((refused == 0).mean()),
        "validity": float((networks.scores(points) >= 0).mean()),
    }


def measure(name: str, shuffle: bool, trials: int, device: str) -> dict[str, Any]:
    """Both questions for one version of the labels, rows shuffled in each epoch or in the order of the file."""
    data = rocerf.load_dataset(name)
    people = data.test.X
    model = rocerf.NeuralModel.fit(data.train, seed=0, shuffle=shuffle, device=device)
    points = Scfe(model).explain(people[model.predict(people) == 0]).matrix
    return {
        "refused_by_the_model": int((model.predict(people) == 0).sum()),
        "test_accuracy": float((model.predict(people) == data.test.y).mean()),
        "majority": float(max(data.test.y.mean(), 1 - data.test.y.mean())),
        "by_deletion": {str(f): look(without(model, f, trials), points, people) for f in FRACTIONS},
        "by_epochs": {str(e): look(stopped(model, e, trials), points, people) for e in EPOCHS},
    }


def main() -> int:
    """Print both tables and write out/german_puzzle.json."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--trials", type=int, default=100)
    parser.add_argument("--device", default="cpu")
    options = parser.parse_args()
    measured, checksums = {}, {}
    for name, shuffle in itertools.product(("german", "german-as-published"), (True, False)):
        row = measure(name, shuffle, options.trials, options.device)
        measured[f"{name}, {'shuffled' if shuffle else 'in file order'}"] = row
        checksums[name] = rocerf.load_dataset(name).train.checksum
        print(
            f"{name}, shuffle={shuffle}: {row['refused_by_the_model']} of 200 refused, accuracy "
            f"{row['test_accuracy']:.3f} (majority {row['majority']:.3f})"
        )
        for question in ("by_deletion", "by_epochs"):
            for value, figures in row[question].items():
                print(
                    f"  {question:12}{value:>6}  refused {figures['refused']:6.1%} (sd {figures['refused_sd']:5.1%})"
                    f"  accept everybody {figures['accept_everybody']:6.1%}  validity {figures['validity']:7.2%}"
                )
    print("written:", write_record("german_puzzle", measured, seed=0, checksums=checksums))
    return 0


if __name__ == "__main__":
    sys.exit(main())
