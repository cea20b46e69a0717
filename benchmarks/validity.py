"""The paper's figures for logistic regression, on its own tables: validity under random deletions, and cost.

Setting: train scaler, C = 1, k = 0.5 % of the rows rounded up, delta = 0, 100 random deletions at each share,
every denied test person. COMPAS is read from ROCERF_COMPAS, the cache or the network; without it,
that table is left out and named. Run: ``make validity``.
"""

from __future__ import annotations

import sys
from typing import Any

import rocerf
from benchmarks.record import write_record
from rocerf.baselines import Scfe
from rocerf.errors import DatasetUnavailableError
from rocerf.evaluation import validity_curves

FRACTIONS = (0.005, 0.01, 0.02, 0.03, 0.05)
TRIALS = 100


def measure(name: str) -> tuple[dict[str, Any], str]:
    """Cost and validity of plain counterfactuals, the paper's promise and the retrained one on one table."""
    data = rocerf.load_dataset(name)
    model = rocerf.LogisticModel.fit(data.train, C=1.0)
    denied = data.test.X[model.predict(data.test.X) == 0]
    found = {"plain": Scfe(model).explain(denied)}
    for promise in ("first_order", "retrained"):
        found[promise] = rocerf.Rocerf(model, "0.5%", promise=promise).explain(denied)
    curves = validity_curves(model, {key: r.matrix for key, r in found.items()}, FRACTIONS, TRIALS, seed=0)
    return {
        "denied": len(denied),
        "k": found["first_order"].settings.k,
        **{
            key: {
                "mean_cost": float(recourses.costs.mean()),
                "answered": int(recourses.answered.sum()),
                "validity": {str(v.fraction): [v.mean, v.standard_error] for v in curves[key]},
            }
            for key, recourses in found.items()
        },
    }, data.train.checksum


def main() -> int:
    """Print the table and write out/validity.json."""
    measured: dict[str, Any] = {}
    checksums: dict[str, str] = {}
    head = "".join(f"{f:>9.1%}" for f in FRACTIONS)
    print(f"{'table':8}{'denied':>7}{'k':>5}  {'method':12}{'cost':>7}  still accepted, rows deleted:{head}")
    for name in ("german", "compas", "adult"):
        try:
            measured[name], checksums[name] = measure(name)
        except DatasetUnavailableError as missing:
            print(f"{name:8}left out: {missing}")
            continue
        row = measured[name]
        for key in ("plain", "first_order", "retrained"):
            shares = "".join(f"{mean:>9.2%}" for mean, _ in row[key]["validity"].values())
            print(f"{name:8}{row['denied']:>7}{row['k']:>5}  {key:12}{row[key]['mean_cost']:>7.3f}  {'':29}{shares}")
    print("written:", write_record("validity", measured, seed=0, checksums=checksums))
    return 0


if __name__ == "__main__":
    sys.exit(main())
