"""Boosted trees under deletions picked to harm: before (`simulated`) and after (`retrained`), judged by true refits.

Setting: denied test people of German and Adult, deletions of 0.5 % and of 1 % of the rows. Both promises are asked
about that number of rows; `simulated` (of random deletions) with small groups of models, since each is a fit. Then
every point is attacked by the adversary with a seed of its own: rows that its trees' leaves and its neighbours propose,
proposed again at the refits, each set really refitted; and by random deletions. HistGradientBoosting always, XGBoost
and LightGBM where they are installed. Run: ``python -m benchmarks.trees`` (``--people 5`` for a look).
"""

from __future__ import annotations

import argparse
import sys
import time
from collections import Counter
from collections.abc import Iterator
from importlib import import_module
from typing import Any

import numpy as np
from sklearn.ensemble import HistGradientBoostingClassifier

import rocerf
from benchmarks.record import joined_record, write_record
from rocerf.deletion.adversary import Adversary
from rocerf.deletion.random_deletions import random_deletions
from rocerf.errors import DatasetUnavailableError, RocerfError
from rocerf.promises import Simulated

SHARES = ("0.5%", "1%")
METHODS = ("simulated", "retrained")
PEOPLE = {"german": 20, "adult": 10}
ATTACKING, JUDGES, DRAWN = 4242, 9000, 3
EFFORTS = ("normal", "thorough")

#: Boosted trees of other packages: package, class and options that keep them to one thread and silent.
OTHERS = {
    "XGBoost": ("xgboost", "XGBClassifier", {"n_jobs": 1}),
    "LightGBM": ("lightgbm", "LGBMClassifier", {"n_jobs": 1, "verbose": -1}),
}


def families(wanted: list[str]) -> Iterator[tuple[str, Any]]:
    """Names of the kinds of boosted trees at hand, and one of each, not fitted."""
    if "HistGradientBoosting" in wanted:
        yield "HistGradientBoosting", HistGradientBoostingClassifier(random_state=0)
    for name, (package, kind, options) in OTHERS.items():
        if name not in wanted:
            continue
        try:
            yield name, getattr(import_module(package), kind)(random_state=0, **options)
        except ImportError:
            print(f"{name} left out: {package} is not installed")


def promise(method: str, models: int) -> Any:
    """What is asked for, with so many models in each group of `simulated`."""
    return Simulated(shaping=models, choosing=models, checking=models) if method == "simulated" else method


def measure(
    model: rocerf.EstimatorModel, people: np.ndarray, schema: Any, method: str, share: str, options: Any
) -> dict[str, Any]:
    """Cost, seconds and survival of one method's answers."""
    start = time.perf_counter()
    try:
        recourses = rocerf.Rocerf(model, share, promise=promise(method, options.models), schema=schema).explain(people)
    except RocerfError as refusal:
        return {"refused": str(refusal), "seconds_per_person": (time.perf_counter() - start) / len(people)}
    row: dict[str, Any] = {
        "people": len(people),
        "answered": int(recourses.answered.sum()),
        "seconds_per_person": (time.perf_counter() - start) / len(people),
    }
    if not row["answered"]:
        return row
    points = recourses.matrix[recourses.answered]
    start = time.perf_counter()
    judged: dict[str, Any] = {}
    for effort in EFFORTS:
        adversary = Adversary(model, share, effort=effort, seed=ATTACKING)
        attacks = adversary.attack(points)
        judged[f"survive_{effort}"] = float((attacks.scores >= 0).mean())
        judged[f"score_{effort}"] = float(attacks.scores.mean())
        judged[f"found_by_{effort}"] = dict(Counter(attacks.found_by))
    drawn = random_deletions(model.train, adversary.k, options.models, seed=JUDGES)
    at_random = model.refitted(drawn, seed=JUDGES).scores(points) >= 0
    return row | {
        "cost": float(recourses.costs[recourses.answered].mean()),
        "score": float(model.score(points).mean()),
        "k": adversary.k,
        **judged,
        "survive_random": float(at_random.mean()),
        "seconds_judging": time.perf_counter() - start,
    }


def told(row: dict[str, Any]) -> str:
    """One line of the table."""
    if "cost" not in row:
        return f" {row.get('refused', 'nobody answered')} ({row['seconds_per_person']:.1f} s/person)"
    return (
        f"{row['answered']:>4}/{row['people']:<4}{row['cost']:>8.3f}{row['seconds_per_person']:>10.2f}"
        f"{row['survive_normal']:>10.1%}{row['survive_thorough']:>10.1%}{row['survive_random']:>10.1%}"
        f"{row['score']:>9.2f}{row['score_thorough']:>9.2f}"
    )


def main() -> int:
    """Print the table and write out/trees.json."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--tables", nargs="+", default=list(PEOPLE))
    parser.add_argument("--families", nargs="+", default=["HistGradientBoosting", *OTHERS])
    parser.add_argument("--methods", nargs="+", default=list(METHODS), choices=METHODS)
    parser.add_argument("--shares", nargs="+", default=list(SHARES))
    parser.add_argument("--people", type=int, default=0, help="at most so many people of each table")
    parser.add_argument("--models", type=int, default=10, help="models in each group of `simulated`, random deletions")
    parser.add_argument("--record", default="trees")
    parser.add_argument("--join", nargs="+", help="put these records of the same code together instead of measuring")
    options = parser.parse_args()
    if options.join:
        return joined_record(options.join, options.record)
    measured: dict[str, Any] = {
        "efforts": EFFORTS,
        "attacking_seed": ATTACKING,
        "models": options.models,
        "packages": {},
    }
    checksums: dict[str, str] = {}
    print(f"{'table':8}{'trees':22}{'method':11}{'rows':>5} answered{'cost':>8}{'s/person':>10}", end="")
    print(f"{'normal':>10}{'thorough':>10}{'random':>10}{'score':>9}{'attacked':>9}")
    for table in options.tables:
        try:
            data = rocerf.load_dataset(table)
        except DatasetUnavailableError as missing:
            print(f"{table:8}left out: {missing}")
            continue
        checksums[table] = data.train.checksum
        measured[table] = {"rows": len(data.train), "families": {}}
        for family, estimator in families(options.families):
            if family in OTHERS:
                measured["packages"][family] = import_module(OTHERS[family][0]).__version__
            model = rocerf.EstimatorModel.fit(estimator, data.train)
            denied = data.test.X[model.predict(data.test.X) == 0]
            drawn = np.random.default_rng(DRAWN).permutation(len(denied))[: options.people or PEOPLE[table]]
            people = denied[np.sort(drawn)]
            rows: dict[str, Any] = {}
            measured[table]["families"][family] = {"denied": len(denied), "methods": rows}
            for share in options.shares:
                for method in options.methods:
                    row = measure(model, people, data.schema, method, share, options)
                    rows.setdefault(method, {})[share] = row
                    print(f"{table:8}{family:22}{method:11}{share:>5}{told(row)}", flush=True)
                    write_record(options.record, measured, seed=0, checksums=checksums)
    print("written:", write_record(options.record, measured, seed=0, checksums=checksums))
    return 0


if __name__ == "__main__":
    sys.exit(main())
