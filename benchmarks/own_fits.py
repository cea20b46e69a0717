"""Answers held against the retraining that really happens: the user's own scikit-learn estimator, fitted from scratch.

German credit in raw columns through pipelines that a lender would fit, at scikit-learn's default tolerance, and the
prepared tables through a bare LogisticRegression. For each, ``retrained`` at k = 0.5 % of the rows, with retraining
"exact" (the promise speaks of the exact optimum) and "own" (it allows for the error of the user's own solver): how
many answers does the user's own refit refuse after the worst deletion that an adversary with another seed finds, of
the classifier alone (preprocessing frozen) and of ``clone(pipeline).fit``; and what does the allowance cost.

Run: ``python -m benchmarks.own_fits`` (``--tasks`` picks some; what was measured before is kept in out/own_fits.json).
"""

from __future__ import annotations

import argparse
import json
import time
import warnings
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray
from sklearn.base import clone
from sklearn.linear_model import LogisticRegression
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import MinMaxScaler, StandardScaler

import rocerf
from benchmarks.raw_pipelines import unfitted_pipeline
from benchmarks.record import write_record
from rocerf.data.raw_tables import load_raw
from rocerf.deletion.adversary import Adversary
from rocerf.promises.allowance import ExactRetraining

Array = NDArray[np.float64]

AUDIT_SEED = 20_001
SHARE = "0.5%"

#: Scaler of the numbers and options of the classifier, for German credit in raw columns.
PIPELINES: dict[str, tuple[Any, dict[str, Any]]] = {
    "german standardised": (StandardScaler(), {"max_iter": 1000}),
    "german MinMaxScaler": (MinMaxScaler(), {"max_iter": 1000}),
    "german C=1e6": (StandardScaler(), {"C": 1e6, "max_iter": 5000}),
    "german raw numbers": ("passthrough", {"max_iter": 5000}),
}

#: Prepared tables of numbers, standardised, through LogisticModel.from_sklearn.
PREPARED = ("german", "compas", "adult")


class RawTask:
    """A table in raw columns through one pipeline, given by its scaler and classifier."""

    def __init__(self, scaler: Any, classifier: Any, table: Any = "german", most: int | None = None) -> None:
        self.data = load_raw(table)
        self.y = np.asarray(self.data.y_train)
        before = unfitted_pipeline(self.data, scaler)[:-1]
        self.pipeline = make_pipeline(*before, classifier).fit(self.data.train, self.y)
        refused = self.data.test[self.pipeline.predict(self.data.test) == 0]
        self.people = refused if most is None else refused.sample(min(most, len(refused)), random_state=0)

    def model(self, retraining: Any) -> Any:
        """The pipeline taken over."""
        return rocerf.from_pipeline(
            self.pipeline, self.data.train, self.y, schema=self.data.schema, retraining=retraining
        )

    def refits(self, kept: NDArray[np.intp], points: Any) -> tuple[Array, Array]:
        """Scores of points by the classifier fitted again alone, and by the whole pipeline fitted again."""
        before = self.pipeline[:-1]
        alone = clone(self.pipeline[-1]).fit(before.transform(self.data.train.iloc[kept]), self.y[kept])
        whole = clone(self.pipeline).fit(self.data.train.iloc[kept], self.y[kept])
        return alone.decision_function(before.transform(points)), whole.decision_function(points)


class PreparedTask:
    """A prepared table, standardised, through a bare LogisticRegression."""

    def __init__(self, name: str, most: int) -> None:
        data = rocerf.load_dataset(name)
        centre, spread = data.train.X.mean(axis=0), np.asarray(data.train.spread)
        X, people = (data.train.X - centre) / spread, (data.test.X - centre) / spread
        self.train = rocerf.TrainingSet(X, data.train.y)
        self.fitted = LogisticRegression(max_iter=1000).fit(X, data.train.y)
        refused = people[self.fitted.predict(people) == 0]
        self.people = refused[np.random.default_rng(0).permutation(len(refused))[:most]]

    def model(self, retraining: Any) -> Any:
        """The fit taken over."""
        return rocerf.LogisticModel.from_sklearn(self.fitted, self.train, retraining=retraining)

    def refits(self, kept: NDArray[np.intp], points: Array) -> tuple[Array, Array]:
        """Scores of points by the estimator fitted again."""
        scores = clone(self.fitted).fit(self.train.X[kept], self.train.y[kept]).decision_function(points)
        return scores, scores


def measured(task: RawTask | PreparedTask, rules: tuple[str, ...] = ("exact", "own"), **options: Any) -> dict[str, Any]:
    """What each rule's answers cost, and what the user's own refits make of them; ``options`` are the explainer's."""
    found: dict[str, Any] = {"people": len(task.people)}
    for retraining in rules:
        model = task.model(retraining)
        explainer = rocerf.Rocerf(model, SHARE, **options)
        start = time.process_time()
        recourses = explainer.explain(task.people)
        seconds = time.process_time() - start
        places = np.flatnonzero(recourses.answered)
        attacks = Adversary(model, explainer.k, seed=AUDIT_SEED).attack_all(recourses.matrix[places])
        scores = np.empty((len(places), 2))
        for at, (place, rows) in enumerate(zip(places, attacks.deleted_rows, strict=True)):
            kept = np.setdiff1d(np.arange(len(model.train)), rows)
            points = recourses.points
            one = points.iloc[[place]] if hasattr(points, "iloc") else points[[place]]
            scores[at] = [float(score[0]) for score in task.refits(kept, one)]
        found |= {"k": explainer.k, "largest_shift": model.polish.largest_shift}
        found[retraining] = {
            "answered": len(places),
            "mean_cost": float(recourses.costs[places].mean()),
            "exactly_refused": int((attacks.scores < 0).sum()),
            "refused": int((scores[:, 0] < 0).sum()),
            "refused_whole": int((scores[:, 1] < 0).sum()),
            "lowest": float(scores.min()),
            "cpu_seconds": seconds,
        }
        promise = explainer.promise
        if isinstance(promise, ExactRetraining) and promise.allowance is not None:
            found["largest_error"] = promise.allowance.largest_error()
            found["fits"] = len(promise.allowance.errors)
    return found


def _task(name: str, people: int) -> RawTask | PreparedTask:
    if name not in PIPELINES:
        return PreparedTask(name, people)
    scaler, options = PIPELINES[name]
    return RawTask(scaler, LogisticRegression(**options))


def main() -> None:
    """Measure the tasks asked for and write the record."""
    names = [*PIPELINES, *PREPARED]
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--tasks", nargs="+", default=names, choices=names)
    parser.add_argument("--people", type=int, default=100, help="of a prepared table, drawn at random")
    options = parser.parse_args()
    path = Path("out/own_fits.json")
    found = json.loads(path.read_text("utf-8"))["measured"] if path.is_file() else {}
    checksums = {}
    for name in options.tasks:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")  # fits that do not converge are part of what is measured
            task = _task(name, options.people)
            found[name] = measured(task)
        checksums[name] = task.model("exact").train.checksum
        print(name, json.dumps(found[name]), flush=True)
        write_record("own_fits", found, seed=AUDIT_SEED, checksums=checksums)


if __name__ == "__main__":
    main()
