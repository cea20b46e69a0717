"""The promise ``certified``: for how many deletions does the proof close, how tight is it, and what does it cost?

One row for each (table, k, C), made by ``python -m benchmarks.certificate``: the certified drop of the score over the
largest drop that the adversary (effort normal, truly retrained) found, at the first-order recourse points of some
denied people. A ratio of 1 cannot be beaten; one below 1 would refute the proof, and ends the run with status 1.

``--quick`` takes German k = 1, 2 and COMPAS k = 12 at C = 1; ``--table``, ``--k`` and ``--c`` pick rows.
out/certificate.json is written after every row; rows found there with the same settings are not measured again:
delete it to start afresh.
"""

from __future__ import annotations

import argparse
import json
import resource
import sys
import time
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

import rocerf
from benchmarks.record import write_record
from rocerf.deletion.certificate import Certificate, Options, certify_model
from rocerf.errors import DatasetUnavailableError
from rocerf.explainer.explainer import Rocerf

Array = NDArray[np.float64]

NAME = "certificate"
PEOPLE = 20
SEED = 0
DELETIONS = {"german": (1, 2, 3, 4), "compas": (12, 25), "adult": (181,)}
STRENGTHS = (0.01, 1.0, 100.0)
QUICK = [("german", 1, 1.0), ("german", 2, 1.0), ("compas", 12, 1.0)]


def recourse_points(model: rocerf.LogisticModel, people: Array, k: int) -> Array:
    """First-order recourse points of some of the people the model denies."""
    denied = people[model.predict(people) == 0]
    chosen = denied[np.random.default_rng(SEED).permutation(len(denied))[:PEOPLE]]
    recourses = Rocerf(model, k, promise="first_order").explain(chosen)
    return np.asarray(recourses.matrix[recourses.answered])


def tell(done: int, total: int) -> None:
    """Say on standard error how far a proof is: branches, or passes over all rows."""
    print(f"\r{done} of {total} ", end="" if done < total else "\r", file=sys.stderr, flush=True)


def measure(model: rocerf.LogisticModel, people: Array, k: int) -> dict[str, Any]:
    """Make the certificate, then hold it against the worst deletions found."""
    certificate = certify_model(model, k, Options(progress=tell))
    peak = 1024 * resource.getrusage(resource.RUSAGE_SELF).ru_maxrss  # of the process, up to here
    row: dict[str, Any] = {
        "closed": certificate.closed,
        "reason": certificate.reason,
        "version": certificate.version,
        "pieces": len(certificate.pieces),
        "seconds": certificate.seconds,
        "peak_megabytes": peak / 1e6,
    }
    if certificate.closed:
        row |= tightness(certificate, model, recourse_points(model, people, k), k)
    return row


def tightness(certificate: Certificate, model: rocerf.LogisticModel, points: Array, k: int) -> dict[str, Any]:
    """The certified drop over the largest found, and the time to ask for one person."""
    began = time.perf_counter()
    attacks = rocerf.Adversary(model, k, effort="normal", seed=SEED).attack_all(points)
    searching = time.perf_counter() - began
    design = model.design(points)
    began = time.perf_counter()
    for x in design:
        certificate.value_and_cut(x[None])
    asking = (time.perf_counter() - began) / len(design)
    found, proven = model.score(points) - attacks.scores, certificate.drop(design)
    ratio = proven / found
    return {
        "people": len(points),
        "mean_found_drop": float(found.mean()),
        "mean_certified_drop": float(proven.mean()),
        "ratio": {"median": float(np.median(ratio)), "min": float(ratio.min()), "max": float(ratio.max())},
        "milliseconds_a_person": 1000 * asking,
        "seconds_of_the_adversary": searching,
    }


def known_rows() -> tuple[list[dict[str, Any]], dict[str, str]]:
    """Rows and data checksums of an earlier run, if there was one."""
    path = Path("out") / f"{NAME}.json"
    if not path.exists():
        return [], {}
    document = json.loads(path.read_text(encoding="utf-8"))
    return document["measured"]["rows"], document["data_sha256"]


def show(row: dict[str, Any]) -> None:
    """Print one line of the table."""
    head = f"{row['table']:8}{row['k']:>5}{row['C']:>8g}  {row['version'] or 'open':9}"
    cost = f"{row['seconds']:>9.1f}{row['peak_megabytes']:>7.0f}"
    if not row["closed"]:
        print(f"{head}{'':>24}{cost}  {row['reason']}", flush=True)
        return
    ratio = row["ratio"]
    spread = f"{ratio['median']:.3f} ({ratio['min']:.3f}..{ratio['max']:.3f})"
    print(f"{head}{spread:>24}{cost}{row['milliseconds_a_person']:>9.2f}", flush=True)


def wanted(arguments: argparse.Namespace) -> list[tuple[str, int, float]]:
    """The (table, k, C) asked for."""
    every = QUICK if arguments.quick else [(t, k, C) for t, ks in DELETIONS.items() for k in ks for C in STRENGTHS]
    chosen = [row for row in every if arguments.table in (None, row[0])]
    return [row for row in chosen if arguments.k in (None, row[1]) and arguments.c in (None, row[2])]


def main() -> int:
    """Print the table, write out/certificate.json; 1 if a found drop exceeds a certified one."""
    parser = argparse.ArgumentParser(description="Certified reach next to the worst deletions found.")
    parser.add_argument("--quick", action="store_true", help="German k = 1, 2 and COMPAS k = 12 at C = 1")
    parser.add_argument("--table", choices=sorted(DELETIONS), help="one table only")
    parser.add_argument("--k", type=int, help="one number of deletions only")
    parser.add_argument("--c", type=float, help="one inverse penalty only")
    arguments = parser.parse_args()
    rows, checksums = known_rows()
    shown: list[dict[str, Any]] = []
    print(
        f"{'table':8}{'k':>5}{'C':>8}  {'version':9}{'certified / found drop':>24}{'seconds':>9}{'MB':>7}  ms a person"
    )
    for name, k, C in wanted(arguments):
        try:
            data = rocerf.load_dataset(name)
        except DatasetUnavailableError as missing:
            print(f"{name:8}left out: {missing}")
            continue
        model = rocerf.LogisticModel.fit(data.train, C=C)
        checksum = model.train.checksum
        settings = {"table": name, "k": k, "C": C, "people_asked": PEOPLE, "rocerf": rocerf.__version__}
        row = next((r for r in rows if settings.items() <= r.items() and checksums.get(name) == checksum), None)
        if row is None:
            row = settings | measure(model, data.test.X, k)
            if checksums.get(name, checksum) != checksum:  # rows of other data do not belong in one record
                rows = [r for r in rows if r["table"] != name]
            rows, checksums = [*rows, row], checksums | {name: checksum}
            write_record(NAME, {"rows": rows}, seed=SEED, checksums=checksums)
        show(row)
        shown.append(row)
    print("written:", Path("out") / f"{NAME}.json")
    return int(any(r["closed"] and r["ratio"]["min"] < 1 - 1e-6 for r in shown))


if __name__ == "__main__":
    sys.exit(main())
