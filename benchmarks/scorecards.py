"""Scorecards held against the retraining that really happens: bins and weights of evidence by optbinning.

German credit and Adult in raw columns through ``BinningProcess`` and LogisticRegression at its own tolerance, as a
lender would fit them: how many of the refused people are answered by ``retrained`` (k = 0.5 % of the rows, L1 cost, the
schema's rules), and how many of these answers does the user's own classifier refuse, fitted from scratch without the
worst rows that an adversary with another seed finds: on the bins as they were, which the promise is about, and with
bins made anew, which it is not.

Run: ``python -m benchmarks.scorecards`` (``--tasks`` picks some; what was measured before is kept in
out/scorecards.json). Whoever is not answered has a reason, counted by its status.
"""

from __future__ import annotations

import argparse
import json
import warnings
from collections import Counter
from typing import Any

import numpy as np
from numpy.typing import NDArray
from sklearn.base import clone
from sklearn.linear_model import LogisticRegression
from sklearn.pipeline import make_pipeline

import rocerf
from benchmarks.own_fits import AUDIT_SEED, SHARE, Array, RawTask, measured
from benchmarks.record import add_to_record
from rocerf.data.raw_tables import load_raw

#: Table, and people at most.
TASKS: dict[str, tuple[str, int | None]] = {"german scorecard": ("german", None), "adult scorecard": ("adult", 100)}


class ScorecardTask(RawTask):
    """A table in raw columns through bins and their weights of evidence."""

    def __init__(self, table: Any, most: int | None) -> None:
        from optbinning import BinningProcess

        self.data = load_raw(table)
        self.y = np.asarray(self.data.y_train)
        categories = [feature.name for feature in self.data.schema if feature.kind == "categorical"]
        bins = BinningProcess(list(self.data.train.columns), categorical_variables=categories)
        self.pipeline = make_pipeline(bins, LogisticRegression(max_iter=1000)).fit(self.data.train, self.y)
        refused = self.data.test[self.pipeline.predict(self.data.test) == 0]
        self.people = refused if most is None else refused.sample(min(most, len(refused)), random_state=0)

    def refits(self, kept: NDArray[np.intp], points: Any) -> tuple[Array, Array]:
        """As of every pipeline; the bins are asked themselves: slices of this pipeline do not pass for fitted."""
        bins, classifier = self.pipeline[0], self.pipeline[-1]
        alone = clone(classifier).fit(bins.transform(self.data.train.iloc[kept]), self.y[kept])
        whole = clone(self.pipeline).fit(self.data.train.iloc[kept], self.y[kept])
        return alone.decision_function(bins.transform(points)), whole.decision_function(points)


def statuses(task: ScorecardTask) -> dict[str, int]:
    """How many people have an answer or which reason."""
    recourses = rocerf.Rocerf(task.model("own"), SHARE, cost="l1").explain(task.people)
    return dict(Counter(recourse.status.name for recourse in recourses))


def main() -> None:
    """Measure the tasks asked for and write the record."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--tasks", nargs="+", default=list(TASKS), choices=list(TASKS))
    for name in parser.parse_args().tasks:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")  # optbinning's and scikit-learn's own, about their own names
            task = ScorecardTask(*TASKS[name])
            found = {**measured(task, ("own",), cost="l1"), "statuses": statuses(task)}
        print(name, json.dumps(found), flush=True)
        checksums = {name: task.model("exact").train.checksum}
        add_to_record("scorecards", {name: found}, seed=AUDIT_SEED, checksums=checksums)


if __name__ == "__main__":
    main()
