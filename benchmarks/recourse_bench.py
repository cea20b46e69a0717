"""Our methods on recourse_bench's German task `future_robustness`, beside its published figures and a constant margin.

The task is made again without the benchmark's code (:mod:`benchmarks.recourse_bench_task` says how, and why the people
are the very ones of its results); the methods are those that :mod:`benchmarks.recourse_bench_methods` offers under its
interface. The two tables are not ours to ship: ``--tables`` names a folder with ``german.csv`` and ``german_roar.csv``,
as the benchmark has them.

Run: ``python -m benchmarks.recourse_bench --tables FOLDER`` (a part: ``--models linear``, ``--methods plain margin``).
Parts are put together with ``--join out/PART.json ...``.
"""

from __future__ import annotations

import argparse
import hashlib
import time
from collections import Counter
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np
import torch

import rocerf
from benchmarks.record import joined_record, write_record
from benchmarks.recourse_bench_methods import METHODS, method_of, taken_over
from benchmarks.recourse_bench_task import PUBLISHED, PUBLISHED_PEOPLE, Task, make_task

MARGINS = (0.1, 0.25, 0.5, 1.0, 2.0)
#: Shares of the rows that promises are about: 5, 24 and 96 of the 480. What retrains hundreds of models is asked for
#: fewer; 0.2% is a single deletion.
SHARES = {"first_order": ("1%", "5%", "20%"), "retrained": ("0.2%", "5%"), "simulated": ("5%",)}


def settings(method: str) -> Iterator[dict[str, Any]]:
    """What a method is asked with."""
    if method == "plain":
        yield from ({"rules": rules} for rules in ("categories", "free"))
    elif method == "margin":
        yield from ({"margin": margin, "rules": rules} for margin in MARGINS for rules in ("categories", "free"))
    else:
        yield from ({"k": k, "rules": "categories"} for k in SHARES[method])


def measured(task: Task, method: str, options: dict[str, Any]) -> dict[str, Any]:
    """One method with one setting, judged as the benchmark judges, with processor seconds."""
    start = time.process_time()
    ours = method_of(method)(task.model, seed=0, desired_class=1, **options)
    ours.fit(task.train)
    figures = task.judged(ours.get_counterfactuals(task.people))
    how = dict(Counter(status.code for status in ours.answers.statuses))  # why there is no point, where there is none
    seconds = round(time.process_time() - start, 1)
    row = {"method": method, **options, **figures, "statuses": how, "processor_seconds": seconds}
    print(row, flush=True)
    return row


def safest(task: Task, *, k: int = 24, drawn: int = 4000, networks: int = 20, attacked: int = 8) -> dict[str, Any]:
    """Whether any allowed point survives k picked deletions: those that random deletions spare most are attacked.

    Points are drawn evenly within the training rows' range, with whole categories; networks are trained without k
    random rows. The points whose lowest score is highest are attacked, each by an adversary that really retrains.
    """
    model = taken_over(task.model, task.train, 1)
    rng, X = np.random.default_rng(0), model.train.X
    points = np.zeros((drawn, X.shape[1]))
    points[:, :3] = rng.uniform(X[:, :3].min(axis=0), X[:, :3].max(axis=0), (drawn, 3))
    points[np.arange(drawn), 3 + rng.integers(0, X.shape[1] - 3, drawn)] = 1.0
    rows = torch.tensor(points, dtype=torch.float32)
    scores = []
    for seed in range(networks):
        kept = model.train.without(rng.choice(model.train.ids, k, replace=False))
        scores.append(model.retrainer.refit(kept, seed, None)(rows).detach().numpy())
    lowest = np.min(scores, axis=0)
    attacks = rocerf.Adversary(model, k).attack(points[np.argsort(-lowest)[:attacked]])
    figures = {"k": k, "drawn": drawn, "networks": networks, "accepted_by_all": float((lowest >= 0).mean())}
    row = figures | {"attacked": attacked, "models": attacks.models, "shares": sorted(attacks.shares.tolist())}
    print(row, flush=True)
    return row


def main() -> int:
    """Measure and write the record."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    parser.add_argument("--tables", type=Path, default=Path(), help="folder with german.csv and german_roar.csv")
    parser.add_argument("--models", nargs="+", default=list(PUBLISHED), choices=list(PUBLISHED))
    parser.add_argument("--methods", nargs="+", default=[*METHODS, "safest"], choices=[*METHODS, "safest"])
    parser.add_argument("--name", default="recourse_bench", help="of the record in out/")
    parser.add_argument("--join", nargs="+", help="records of parts, to be put together")
    chosen = parser.parse_args()
    if chosen.join:
        return joined_record(chosen.join, "recourse_bench")
    files = {name: chosen.tables / f"{name}.csv" for name in ("german", "german_roar")}
    result: dict[str, Any] = {}
    for model in chosen.models:
        task = make_task(files["german"], files["german_roar"], model)
        result[model] = {
            "people": len(task.people),
            "people_as_published": tuple(task.people.index) == PUBLISHED_PEOPLE[model],
            "nothing_changed": task.judged(task.people)["future_validity"],
            "published": {name: {"future_validity": v, "l1": cost} for name, (v, cost) in PUBLISHED[model].items()},
            **{
                method: [measured(task, method, options) for options in settings(method)]
                for method in chosen.methods
                if method != "safest"
            },
        }
        if model == "mlp" and "safest" in chosen.methods:
            result[model]["safest"] = safest(task)
    sums = {name: hashlib.sha256(path.read_bytes()).hexdigest() for name, path in files.items()}
    print("written:", write_record(chosen.name, result, seed=0, checksums=sums))
    return 0


if __name__ == "__main__":
    raise SystemExit(main())
