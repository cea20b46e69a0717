"""Ten thousand letters outstanding on Adult: what a deletion costs, as a ratio to one retraining plus one product.

A product is people x parameters: the least that any recheck of all letters must do. Letters are issued first (not
counted), a request is previewed, then carried out by a worker: retrain, recheck all, reissue what broke, erase,
certify.
Seconds are of the processor, beside those of the clock; ratios are within one run.

    python -m benchmarks.ledger [--letters 10000] [--rows 40] [--promise first_order] [--k 5]
"""

from __future__ import annotations

import argparse
import tempfile
import time
from collections.abc import Callable
from datetime import date
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd

import rocerf
from benchmarks.record import write_record
from rocerf.ledger import Ledger
from rocerf.ledger.deletions import STEPS, Deletions
from rocerf.ledger.worker import Worker

SEED = 0


def timed(action: Callable[[], Any]) -> tuple[dict[str, float], Any]:
    """Seconds of the clock and of the processor, and what the action returned."""
    wall, own = time.perf_counter(), time.process_time()
    result = action()
    return {"seconds": round(time.perf_counter() - wall, 3), "cpu": round(time.process_time() - own, 3)}, result


def people(model: Any, frame: pd.DataFrame, count: int) -> pd.DataFrame:
    """Refused people, so many: those of the test rows, and again with slightly other ages where these are too few."""
    refused = frame[model.predict(frame) == 0]
    rng = np.random.default_rng(SEED)
    parts: list[pd.DataFrame] = []
    while sum(len(part) for part in parts) < count:
        again = refused.copy()
        if parts:
            again.iloc[:, 0] = again.iloc[:, 0] + rng.integers(-3, 4, len(again))
            again = again[model.predict(again) == 0]
        parts.append(again)
    chosen = pd.concat(parts).iloc[:count]
    return chosen.set_axis([f"person-{i}" for i in range(len(chosen))], axis=0)


def measured(count: int, rows: int, promise: str, k: int, folder: Path) -> dict[str, Any]:
    """All figures, printed as they come."""
    data = rocerf.load_dataset("adult")
    model = rocerf.LogisticModel.fit(data.train, C=1.0)
    explainer = rocerf.Rocerf(model, k=k, promise=promise, effort="quick", seed=SEED)
    asking = people(model, data.test.frame(), count)
    figures: dict[str, Any] = {"letters": count, "rows": rows, "promise": promise, "k": explainer.k}
    with Ledger.open(f"sqlite:///{folder}/ledger.db") as ledger:
        figures["register"], _ = timed(lambda: ledger.models.register(explainer, actor="benchmark"))
        until = date(2100, 1, 1)
        figures["issue"], _ = timed(lambda: ledger.letters.issue(asking, valid_until=until, actor="benchmark"))
        print(figures, flush=True)
        accepted = data.train.ids[data.train.y == 1.0]
        gone = np.random.default_rng(SEED).choice(accepted, rows, replace=False).tolist()
        number = ledger.requests.receive("somebody", actor="benchmark", rows=gone).id
        ledger.requests.verify_identity(number, actor="benchmark")
        left = model.train.forget(gone)
        figures["one retraining"], later = timed(lambda: rocerf.LogisticModel.fit(left, C=1.0))
        points = asking[list(model.train.columns)].to_numpy(float)
        figures["one product"], _ = timed(lambda: later.score(points))
        figures["preview"], preview = timed(lambda: ledger.requests.preview(number, actor="benchmark"))
        figures["broken"], figures["outstanding"] = len(preview.broken), preview.letters
        ledger.requests.approve(number, actor="benchmark")
        ledger.deletions.carry_out(number, actor="benchmark")
        figures["steps"] = by_step(ledger)
        figures["carry out"], job = timed(lambda: Worker(ledger).run_once())
        assert job is not None
        assert job.error == "", job.error
        figures["result"] = dict(job.result)
        figures["verify chain"], report = timed(ledger.audit.verify)
        assert report.whole
    least = figures["one retraining"]["cpu"] + figures["one product"]["cpu"]
    figures["preview / (one retraining + one product)"] = round(figures["preview"]["cpu"] / least, 2)
    figures["carry out / (one retraining + one product)"] = round(figures["carry out"]["cpu"] / least, 2)
    return figures


def by_step(ledger: Ledger) -> dict[str, dict[str, float]]:
    """A table that fills with what each step of a deletion takes."""
    table: dict[str, dict[str, float]] = {}
    for step in STEPS:
        name = f"_{step}"
        plain = getattr(Deletions, name)

        def watched(self: Deletions, *given: Any, plain: Any = plain, step: str = step) -> None:
            table[step], _ = timed(lambda: plain(self, *given))

        setattr(Deletions, name, watched)
    return table


def main() -> None:
    """Measure, print, and write the record."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--letters", type=int, default=10_000)
    parser.add_argument("--rows", type=int, default=40)
    parser.add_argument("--promise", default="first_order")
    parser.add_argument("--k", type=int, default=5)
    given = parser.parse_args()
    with tempfile.TemporaryDirectory() as folder:
        figures = measured(given.letters, given.rows, given.promise, given.k, Path(folder))
    for name, figure in figures.items():
        print(f"{name}: {figure}")
    checksum = rocerf.load_dataset("adult").train.checksum
    print("written:", write_record("ledger", figures, seed=SEED, checksums={"adult": checksum}))


if __name__ == "__main__":
    main()
