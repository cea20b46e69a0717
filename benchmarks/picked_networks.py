"""Networks under deletions picked to harm: share accepted and cost of every method, judged by true retraining.

Setting: the paper's network, all denied test people of German and COMPAS and 300 of Adult, k = 0.5 % of the rows. Each
point is judged by 20 networks trained from starts that nothing else has seen, without the k rows picked *for that
point* by first-order effects of (a) the model itself, (b, c) two networks with no part in anything, and, for
`retrained`, (d) by the thorough adversary with another seed; and by 100 networks after random deletions of k rows.
Then the same against other numbers of rows, picked by (b), for the picture. Run: ``make picked`` (``DEVICE=cuda``).
"""

from __future__ import annotations

import argparse
import sys
import time
from collections.abc import Callable
from functools import partial
from typing import Any

import numpy as np

import rocerf
from benchmarks.networks import _device
from benchmarks.record import joined_record, write_record
from rocerf.deletion.adversary import Adversary
from rocerf.deletion.guesses import worst_sets
from rocerf.deletion.k import number_of_deletions
from rocerf.deletion.random_deletions import random_deletions
from rocerf.errors import DatasetUnavailableError
from rocerf.evaluation.methods import MethodOptions, explainer_named

K = "0.5%"
PEOPLE = {"german": None, "compas": None, "adult": 300}
METHODS = ("scfe", "roar", "cchvae", "first_order", "rocerf", "simulated", "retrained")
#: For the picture: deletions as shares of the rows, and the methods shown.
SHARES = (0.0, 0.00125, 0.0025, 0.005, 0.01, 0.02)
CURVES = ("scfe", "first_order", "simulated", "retrained")
OUTSIDERS, THOROUGH, JUDGES = (1001, 1002), 777, 9000


def judged(model: Any, points: np.ndarray, deletions: list[Any], starts: int, seed: int) -> dict[str, float]:
    """Share of networks retrained without each point's own rows that accept it."""
    trials = [start for _ in deletions for start in range(starts)]  # the same starts for everybody
    models = model.refitted([ids for ids in deletions for _ in range(starts)], seed=seed, trials=trials)
    own = [models[j * starts : (j + 1) * starts].scores(points[j : j + 1])[:, 0] for j in range(len(points))]
    accepted = np.array(own) >= 0
    people = accepted.mean(axis=1)
    return {
        "accepted": float(accepted.mean()),
        "people_at_least_95": float((people >= 0.95).mean()),
        "lowest_person": float(people.min()),
        "mean_score": float(np.mean(own)),
        "standard_error": float(people.std(ddof=1) / np.sqrt(len(people))) if len(people) > 1 else 0.0,
    }


def picked(network: Any, points: np.ndarray, k: int) -> list[Any]:
    """Ids of the k rows that first-order effects of a network pick for each point."""
    size = max(1, 2**24 // len(network.train))
    parts = [network.harms(points[first : first + size]) for first in range(0, len(points), size)]
    return [network.train.ids[rows] for part in parts for rows in worst_sets(part, k)]


class Table:
    """One table: the model, its denied people, what judges, and what was measured."""

    def __init__(self, name: str, options: argparse.Namespace) -> None:
        self.name, self.options = name, options
        self.data = rocerf.load_dataset(name)
        fit = {"epochs": options.epochs, "device": options.device}
        self.model = rocerf.NeuralModel.fit(self.data.train, seed=0, **fit)
        self.outsiders = [rocerf.NeuralModel.fit(self.data.train, seed=seed, **fit) for seed in OUTSIDERS]
        denied = self.data.test.X[self.model.predict(self.data.test.X) == 0]
        most = options.people or PEOPLE[name]
        drawn = np.random.default_rng(1).permutation(len(denied))[:most]
        self.people, self.denied = denied[np.sort(drawn)], len(denied)
        self.k = number_of_deletions(K, len(self.data.train))

    def measure(self, method: str, keep: Callable[[dict[str, Any]], None]) -> None:
        """Cost, seconds and survival of one method, handed to `keep` as soon as there is more of it."""
        start = time.perf_counter()
        explainer = explainer_named(method, self.model, MethodOptions(k=K))
        recourses = explainer.explain(self.people)
        seconds = time.perf_counter() - start
        answered = recourses.answered
        points, starts = recourses.matrix[answered], self.options.starts
        row: dict[str, Any] = {
            "people": len(self.people),
            "answered": int(answered.sum()),
            "l2": float(recourses.costs[answered].mean()),
            "seconds": seconds,
            "retrained_networks": int(explainer.promise.pool.sizes.sum()) if method == "retrained" else None,  # type: ignore[attr-defined]
            "groups": len(explainer.promise.pool) if method == "retrained" else None,  # type: ignore[attr-defined]
        }
        if recourses.held_out is not None:
            held = recourses.held_out
            row["held_out"] = [held.validity, held.lower_bound, held.retrainings]
        start = time.perf_counter()
        judges = {"itself": self.model, "outsider_1": self.outsiders[0], "outsider_2": self.outsiders[1]}
        for number, (judge, network) in enumerate(judges.items()):
            if method in ("retrained", "simulated", "first_order") or judge != "outsider_2":
                row[judge] = judged(self.model, points, picked(network, points, self.k), starts, JUDGES + number)
        row["random"] = self._random(points)
        row["seconds_judging"] = time.perf_counter() - start
        self._tell(method, row, keep)
        if method == "retrained":
            row |= self._thorough(points)
            self._tell(method, row, keep)
        if method in CURVES and self.options.curves:
            row["curve"] = self._curve(points)
            keep(row)

    def _tell(self, method: str, row: dict[str, Any], keep: Callable[[dict[str, Any]], None]) -> None:
        keep(row)
        print(f"{self.name:8}{method:12}{row['seconds']:7.1f} s  cost {row['l2']:.3f}  {_short(row)}", flush=True)

    def _random(self, points: np.ndarray) -> float:
        deletions = random_deletions(self.model.train, self.k, 100, seed=JUDGES)
        return float((self.model.refitted(deletions, seed=JUDGES + 5).scores(points) >= 0).mean())

    def _thorough(self, points: np.ndarray) -> dict[str, Any]:
        start = time.perf_counter()
        attacks = Adversary(self.model, self.k, effort="thorough", seed=THOROUGH).attack_all(points)
        names, counts = np.unique(attacks.found_by, return_counts=True)
        found = {str(name): int(count) for name, count in zip(names, counts, strict=True)}
        seconds = time.perf_counter() - start
        verdict = judged(self.model, points, list(attacks.deleted_ids), self.options.starts, JUDGES + 7)
        return {"thorough": verdict, "thorough_found_by": found, "thorough_seconds": seconds}

    def _curve(self, points: np.ndarray) -> dict[str, list[float]]:
        some = points[:: max(1, len(points) // self.options.curves)]
        n, starts, curve = len(self.model.train), 10, {}
        for number, share in enumerate(SHARES):
            k = round(share * n)
            sets = picked(self.outsiders[0], some, k)
            harmed = judged(self.model, some, sets, starts, JUDGES + 20 + number)["accepted"]
            drawn = random_deletions(self.model.train, k, 30, seed=JUDGES + number)
            spared = self.model.refitted(drawn, seed=JUDGES + 40 + number).scores(some) >= 0
            curve[str(share)] = [harmed, float(spared.mean())]
        return curve


def _short(row: dict[str, Any]) -> str:
    parts = [
        f"{judge} {row[judge]['accepted']:.4f}" for judge in ("itself", "outsider_1", "outsider_2") if judge in row
    ]
    if "thorough" in row:
        parts.append(f"thorough {row['thorough']['accepted']:.4f} ({row['thorough_seconds']:.0f} s)")
    if row["groups"]:
        parts.append(f"{row['groups']} groups, {row['retrained_networks']} networks, held out {row['held_out']}")
    return f"answered {row['answered']}/{row['people']}  random {row['random']:.4f}  " + "  ".join(parts)


def main() -> int:
    """Print the table and write out/picked_networks.json."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--device", default="cpu")
    parser.add_argument("--epochs", type=int, default=100)
    parser.add_argument("--starts", type=int, default=20)
    parser.add_argument("--people", type=int, default=0, help="at most so many people of each table")
    parser.add_argument("--curves", type=int, default=60, help="people of the picture; 0: none")
    parser.add_argument("--methods", nargs="+", default=list(METHODS))
    parser.add_argument("--tables", nargs="+", default=["german", "compas", "adult"])
    parser.add_argument("--record", default="picked_networks")
    parser.add_argument("--join", nargs="+", help="put these records of the same commit together instead of measuring")
    options = parser.parse_args()
    if options.join:
        return joined_record(options.join, options.record)
    measured: dict[str, Any] = {"device": _device(options.device), "k": K, "epochs": options.epochs}
    checksums: dict[str, str] = {}
    for name in options.tables:
        try:
            table = Table(name, options)
        except DatasetUnavailableError as missing:
            print(f"{name:8}left out: {missing}")
            continue
        measured[name] = {"rows": len(table.data.train), "denied": table.denied, "k": table.k, "methods": {}}
        checksums[name] = table.data.train.checksum
        methods = measured[name]["methods"]

        def keep(method: str, row: dict[str, Any], methods: dict[str, Any] = methods) -> None:
            methods[method] = row
            write_record(options.record, measured, seed=0, checksums=checksums)

        for method in options.methods:
            table.measure(method, partial(keep, method))
    print("written:", write_record(options.record, measured, seed=0, checksums=checksums), flush=True)
    return 0


if __name__ == "__main__":
    sys.exit(main())
