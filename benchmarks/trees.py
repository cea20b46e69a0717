"""Tree ensembles: cheapest points, and what is left of them after deletions picked to harm, judged by true refits.

Setting: denied test people of German and Adult (Adult with 200 trees), deletions of 0.5 % of the rows, cost L1 in
standard deviations. `plain`, a constant margin of the score, `simulated` (small groups of models, since each is a fit)
and `retrained` are asked about the same people. Then every point is attacked by the adversary with a seed of its own:
rows that its trees' leaves and its neighbours propose, proposed again at the refits, each set really refitted; and by
random deletions. XGBoost, LightGBM and CatBoost where they are installed; treecf and DiCE, about XGBoost's trees, where
``--peers`` names the interpreter of an environment that has them (``pip install treecf dice-ml xgboost``).

Run: ``python -m benchmarks.trees`` (``--people 5`` for a look).
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
from sklearn.ensemble import HistGradientBoostingClassifier, RandomForestClassifier

import rocerf
from benchmarks.record import code_sha256, joined_record, write_record
from benchmarks.trees_peers import asked_of
from rocerf.baselines import Margin
from rocerf.deletion.adversary import Adversary
from rocerf.deletion.random_deletions import random_deletions
from rocerf.errors import DatasetUnavailableError, RocerfError
from rocerf.promises import Simulated
from rocerf.recourse.master.feasible_set import FeasibleSet
from rocerf.reproduction.intervals import binomial_interval
from rocerf.types import Array

SHARES = ("0.5%",)
METHODS = ("plain", "margin", "simulated", "retrained")

#: Constant margins beside the usual one, as methods of their own: what `retrained` must be held against at equal cost.
CURVE = tuple(f"margin {margin:g}" for margin in (1.0, 3.0, 4.0, 6.0))
PEERS = ("treecf", "dice")
PEOPLE, TREES = 20, {"german": 100, "adult": 200}
ATTACKING, JUDGES, DRAWN, COST = 4242, 9000, 3, "l1"
EFFORTS = ("normal", "thorough")
SCIKIT = ("HistGradientBoosting", "random forest")

#: Trees of other packages: package, class and options that keep them to one thread and silent.
OTHERS: dict[str, tuple[str, str, dict[str, Any]]] = {
    "XGBoost": ("xgboost", "XGBClassifier", {"n_jobs": 1, "max_depth": 4}),
    "LightGBM": ("lightgbm", "LGBMClassifier", {"n_jobs": 1, "verbose": -1, "max_depth": 4}),
    "CatBoost": (
        "catboost",
        "CatBoostClassifier",
        {"thread_count": 1, "verbose": 0, "allow_writing_files": False, "depth": 4},
    ),
}


def families(wanted: list[str], trees: int) -> Iterator[tuple[str, Any]]:
    """Names of the kinds of trees at hand, and one of each with so many trees, not fitted."""
    if "HistGradientBoosting" in wanted:
        yield "HistGradientBoosting", HistGradientBoostingClassifier(max_iter=trees, max_depth=4, random_state=0)
    if "random forest" in wanted:
        yield "random forest", RandomForestClassifier(trees, max_depth=8, random_state=0)
    for name, (package, kind, options) in OTHERS.items():
        if name not in wanted:
            continue
        try:
            yield name, getattr(import_module(package), kind)(random_state=0, n_estimators=trees, **options)
        except ImportError:
            print(f"{name} left out: {package} is not installed")


def answers(
    method: str, model: rocerf.EstimatorModel, people: Array, schema: Any, share: str, options: Any
) -> tuple[Array, dict[str, Any]]:
    """Points (P, d), missing where there are none, and processor seconds with what is said of them."""
    start = time.process_time()
    if method in PEERS:
        scale = rocerf.Rocerf(model, 0, promise="plain", schema=schema, cost=COST).cost.scale
        points, about = asked_of(method, options.peers, model, people, schema, scale)
        proven = int(sum(proof == "optimal" for proof in about["proofs"]))
        return points, {"seconds": float(np.sum(about["seconds"])), "proven": proven, "version": about["version"]}
    if method.startswith("margin"):
        asked = float(method.partition(" ")[2]) if " " in method else None
        found = Margin(model, margin=asked, schema=schema, cost=COST).explain(people)
    else:
        m = options.models
        promise = Simulated(shaping=m, choosing=m, checking=m) if method == "simulated" else method
        found = rocerf.Rocerf(model, share, promise=promise, schema=schema, cost=COST).explain(people)
    gaps = np.asarray(found.gaps, dtype=float)[found.answered]
    return found.matrix, {"seconds": time.process_time() - start, "proven": int((gaps == 0).sum())}


def measure(
    model: rocerf.EstimatorModel, people: Array, schema: Any, method: str, share: str, options: Any
) -> dict[str, Any]:
    """Cost, seconds, broken rules and survival of one method's answers."""
    try:
        points, said = answers(method, model, people, schema, share, options)
    except (RocerfError, RuntimeError) as refusal:
        return {"refused": str(refusal)}
    given = np.isfinite(points).all(axis=1)
    row: dict[str, Any] = {"people": len(people), "answered": int(given.sum()), **said, "code_sha256": code_sha256()}
    row["seconds_per_person"] = row.pop("seconds") / len(people)
    if not given.any():
        return row
    points, before = points[given], people[given]
    cost = rocerf.Rocerf(model, 0, promise="plain", schema=schema, cost=COST).cost
    rules = FeasibleSet.around(before, schema)
    row |= {
        "cost": float(cost.of(points, before).mean()),
        "score": float(model.score(points).mean()),
        "broken_rules": int((~rules.holds(points)).sum()),
        "refused_today": int((model.score(points) < 0).sum()),
    }
    start = time.process_time()
    for effort in options.efforts:
        attacks = Adversary(model, share, effort=effort, seed=ATTACKING).attack(points)
        row[f"survive_{effort}"] = float((attacks.scores >= 0).mean())
        row[f"interval_{effort}"] = binomial_interval(row[f"survive_{effort}"], len(points))
        row[f"score_{effort}"] = float(attacks.scores.mean())
        row[f"found_by_{effort}"] = dict(Counter(attacks.found_by))
    k = Adversary(model, share).k
    drawn = random_deletions(model.train, k, options.models, seed=JUDGES)
    at_random = model.refitted(drawn, seed=JUDGES).scores(points) >= 0
    return row | {"k": k, "survive_random": float(at_random.mean()), "seconds_judging": time.process_time() - start}


def told(row: dict[str, Any]) -> str:
    """One line of the table."""
    if "cost" not in row:
        return f" {row.get('refused', 'nobody answered')}"
    survive = "".join(f"{row.get(f'survive_{name}', np.nan):>10.1%}" for name in (*EFFORTS, "random"))
    return (
        f"{row['answered']:>4}/{row['people']:<4}{row['cost']:>8.3f}{row['seconds_per_person']:>10.3f}"
        f"{row['proven']:>7}{row['broken_rules']:>7}{survive}{row['score']:>9.2f}"
    )


def main() -> int:
    """Print the table and write out/trees.json."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--tables", nargs="+", default=list(TREES))
    parser.add_argument("--families", nargs="+", default=[*OTHERS, *SCIKIT])
    parser.add_argument("--methods", nargs="+", default=[*METHODS, *CURVE, *PEERS])
    parser.add_argument("--shares", nargs="+", default=list(SHARES))
    parser.add_argument("--efforts", nargs="*", default=list(EFFORTS), choices=EFFORTS)
    parser.add_argument("--people", type=int, default=PEOPLE, help="at most so many people of each table")
    parser.add_argument("--models", type=int, default=10, help="models in each group of `simulated`, random deletions")
    parser.add_argument("--peers", help="the interpreter of an environment with treecf, dice-ml and xgboost")
    parser.add_argument("--record", default="trees")
    parser.add_argument(
        "--join", nargs="+", help="put these records together instead of measuring: rows name their code"
    )
    options = parser.parse_args()
    if options.join:
        return joined_record(options.join, options.record, part="people")
    if options.peers is None:
        print("treecf and DiCE left out: --peers names no interpreter that has them")
    measured: dict[str, Any] = {"attacking_seed": ATTACKING, "models": options.models, "cost": COST, "packages": {}}
    checksums: dict[str, str] = {}
    print(
        f"{'table':8}{'trees':22}{'method':11}{'rows':>5} answered{'cost':>8}{'cpu s':>10}{'proven':>7}{'broken':>7}",
        end="",
    )
    print(f"{'normal':>10}{'thorough':>10}{'random':>10}{'score':>9}")
    for table in options.tables:
        try:
            data = rocerf.load_dataset(table)
        except DatasetUnavailableError as missing:
            print(f"{table:8}left out: {missing}")
            continue
        checksums[table] = data.train.checksum
        measured[table] = {"rows": len(data.train), "trees": TREES[table], "families": {}}
        for family, estimator in families(options.families, TREES[table]):
            if family in OTHERS:
                measured["packages"][family] = import_module(OTHERS[family][0]).__version__
            model = rocerf.EstimatorModel.fit(estimator, data.train)
            denied = data.test.X[model.predict(data.test.X) == 0]
            people = denied[np.sort(np.random.default_rng(DRAWN).permutation(len(denied))[: options.people])]
            rows: dict[str, Any] = {}
            measured[table]["families"][family] = {"denied": len(denied), "methods": rows}
            for share in options.shares:
                for method in options.methods:
                    if method in PEERS and (options.peers is None or family != "XGBoost"):
                        continue
                    row = measure(model, people, data.schema, method, share, options)
                    rows.setdefault(method, {})[share] = row
                    print(f"{table:8}{family:22}{method:11}{share:>5}{told(row)}", flush=True)
                    write_record(options.record, measured, seed=0, checksums=checksums)
    print("written:", write_record(options.record, measured, seed=0, checksums=checksums))
    return 0


if __name__ == "__main__":
    sys.exit(main())
