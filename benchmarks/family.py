"""The rest of the logistic family, held against the retraining that really happens: L1, elasticnet, SGDClassifier.

German credit and Adult in raw columns, as in :mod:`benchmarks.own_fits`: how many answers of ``retrained`` (k = 0.5 %
of the rows) does the user's own estimator refuse, fitted from scratch without the worst rows that an adversary with
another seed finds. Where its random state is open, that fit is one that nobody has seen.

Run: ``python -m benchmarks.family`` (``--tasks`` picks some; what was measured before is kept in out/family.json).
"""

from __future__ import annotations

import argparse
import json
import warnings
from pathlib import Path
from typing import Any

from sklearn.linear_model import LogisticRegression, SGDClassifier
from sklearn.preprocessing import StandardScaler

from benchmarks.own_fits import AUDIT_SEED, RawTask, measured
from benchmarks.record import write_record

#: Table, people at most, and classifier; tolerances are scikit-learn's own.
TASKS: dict[str, tuple[str, int, Any]] = {
    "german l1, saga": ("german", 100, LogisticRegression(C=0.3, l1_ratio=1.0, solver="saga", max_iter=5000)),
    "german l1, liblinear": ("german", 100, LogisticRegression(C=0.3, l1_ratio=1.0, solver="liblinear")),
    "german elasticnet, saga": ("german", 100, LogisticRegression(C=0.3, l1_ratio=0.5, solver="saga", max_iter=5000)),
    "german SGDClassifier": ("german", 100, SGDClassifier(loss="log_loss", alpha=0.02)),
    "adult l1, liblinear": ("adult", 30, LogisticRegression(C=0.1, l1_ratio=1.0, solver="liblinear")),
}


def main() -> None:
    """Measure the tasks asked for and write the record."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--tasks", nargs="+", default=list(TASKS), choices=list(TASKS))
    path = Path("out/family.json")
    found = json.loads(path.read_text("utf-8"))["measured"] if path.is_file() else {}
    checksums = {}
    for name in parser.parse_args().tasks:
        table, most, classifier = TASKS[name]
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")  # fits that do not converge are part of what is measured
            task = RawTask(StandardScaler(), classifier, table, most)
            model = task.model("exact")
            found[name] = {"coefficients": int((model.theta != 0).sum()), **measured(task)}
        checksums[name] = model.train.checksum
        print(name, json.dumps(found[name]), flush=True)
        write_record("family", found, seed=AUDIT_SEED, checksums=checksums)


if __name__ == "__main__":
    main()
