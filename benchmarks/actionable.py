"""Recourse on raw columns: a pipeline, a schema with rules, the promise ``retrained`` at k = 0.5 %.

For German credit (20 attributes) and Adult (14): is everybody answered or given a reason; does every answer keep every
rule; is it still accepted by the user's own pipeline after the worst deletions found, truly retrained by scikit-learn
from scratch, with preprocessing frozen and refitted; what do the rules cost; and what does a person take to compute, in
units of one plain mixed-integer solve (the cheapest allowed point that today's model accepts).

Run: ``python -m benchmarks.actionable`` (``--people`` limits Adult's people, drawn at random).
"""

from __future__ import annotations

import argparse
import time
from typing import Any

import numpy as np
from numpy.typing import NDArray
from sklearn.base import clone

import rocerf
from benchmarks.raw_pipelines import fitted_pipeline
from benchmarks.record import write_record
from rocerf.data.raw_tables import RawDataset, load_raw
from rocerf.deletion.adversary import Adversary
from rocerf.promises import Plain
from rocerf.recourse.feasible_set import FeasibleSet
from rocerf.recourse.master import Master

Array = NDArray[np.float64]

AUDIT_SEED = 20_001
SHARE = "0.5%"


def survival(data: RawDataset, pipeline: Any, model: Any, recourses: Any, k: int, most: int) -> dict[str, Any]:
    """Shares of answers that the retrained pipeline accepts after the worst deletion found for each of them.

    The deletions are those of an adversary with another seed than the solver's. "frozen" retrains the classifier on the
    preprocessing as it is, "refitted" the whole pipeline, both by scikit-learn.
    """
    places = np.flatnonzero(recourses.answered)[:most]
    points, answers = recourses.matrix[places], recourses.points.iloc[places]
    attacks = Adversary(model, k, seed=AUDIT_SEED).attack_all(points)
    counted: dict[str, list[bool]] = {"frozen": [], "refitted": []}
    encoded, label = pipeline[:-1].transform(data.train), data.y_train
    for place, deleted in enumerate(attacks.deleted_rows):
        kept = np.setdiff1d(np.arange(len(label)), deleted)
        answer = answers.iloc[[place]]
        frozen = clone(pipeline[-1]).fit(encoded[kept], label[kept])
        counted["frozen"].append(bool(frozen.predict(pipeline[:-1].transform(answer))[0] == 1))
        refitted = clone(pipeline).fit(data.train.iloc[kept], label[kept])
        counted["refitted"].append(bool(refitted.predict(answer)[0] == 1))
    return {"audited": len(places)} | {name: float(np.mean(held)) for name, held in counted.items()}


def milliseconds(explainer: rocerf.Rocerf, people: Any, most: int) -> dict[str, float]:
    """Median time of one person asked for alone, and of one plain mixed-integer solve for the same people."""
    alone, plain = [], []
    matrix = explainer.model.matrix(people.iloc[:most])
    slopes, constants = Plain(explainer.model).known_cuts()
    for place in range(len(matrix)):
        start = time.perf_counter()
        explainer.explain(people.iloc[[place]])
        alone.append(time.perf_counter() - start)
        X0 = matrix[[place]]
        master = Master(X0, explainer.cost, FeasibleSet.around(X0, explainer.schema))
        start = time.perf_counter()
        master.cheapest(np.array([0]), slopes[None], constants[None], 0.0)
        plain.append(time.perf_counter() - start)
    person, solve = 1e3 * float(np.median(alone)), 1e3 * float(np.median(plain))
    return {"ms_a_person": person, "ms_a_plain_solve": solve, "ratio": person / solve}


def measured(name: str, cost: str, most: int | None, audited: int, timed: int) -> tuple[dict[str, Any], str]:
    """Everything about one table and cost; and the checksum of its rows."""
    data = load_raw(name)
    pipeline = fitted_pipeline(data)
    model = rocerf.from_pipeline(pipeline, data.train, data.y_train, schema=data.schema)
    denied = data.test[pipeline.predict(data.test) == 0]
    people = denied if most is None else denied.sample(min(most, len(denied)), random_state=0)
    explainer = rocerf.Rocerf(model, SHARE, promise="retrained", cost=cost)
    start = time.perf_counter()
    recourses = explainer.explain(people)
    batch = time.perf_counter() - start
    free = rocerf.Rocerf(
        model, SHARE, promise="retrained", cost=cost, schema=rocerf.FeatureSchema.free(model.train.columns)
    ).explain(people.iloc[: 4 * audited])
    both = recourses.answered[: len(free)] & free.answered
    codes = [status.code for status in recourses.statuses]
    answers = recourses.points[recourses.answered]
    result = {
        "denied": len(denied),
        "people": len(people),
        "k": explainer.k,
        "statuses": {code: codes.count(code) for code in dict.fromkeys(codes)},
        "largest_gap": float(np.nanmax(np.asarray(recourses.gaps))),
        "accepted_by_the_pipeline": float((pipeline.predict(answers) == 1).mean()),
        "mean_cost": float(recourses.costs[: len(free)][both].mean()),
        "mean_cost_unconstrained": float(free.costs[both].mean()),
        "features_changed": float(np.mean([len(recourse.changes) for recourse in recourses if recourse.answered])),
        "ms_a_person_in_the_batch": 1e3 * batch / len(people),
        **survival(data, pipeline, model, recourses, explainer.k, audited),
        **milliseconds(explainer, people, timed),
    }
    return result, model.train.checksum


def main() -> None:
    """Measure both tables and write the record."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--tables", nargs="+", default=["german", "adult"])
    parser.add_argument("--costs", nargs="+", default=["l1", "l2"])
    parser.add_argument("--people", type=int, default=200, help="of Adult, drawn at random; 0 for all")
    parser.add_argument("--audited", type=int, default=50, help="answers audited by true retraining, a table and cost")
    parser.add_argument("--timed", type=int, default=40)
    options = parser.parse_args()
    found: dict[str, Any] = {}
    checksums: dict[str, str] = {}
    for name in options.tables:
        for cost in options.costs:
            most = None if name == "german" or not options.people else options.people
            found[f"{name} {cost}"], checksums[name] = measured(name, cost, most, options.audited, options.timed)
            for key, value in found[f"{name} {cost}"].items():
                print(
                    f"{name:7} {cost:3} {key:26} {value if not isinstance(value, float) else f'{value:.4g}'}",
                    flush=True,
                )
            print(f"written: {write_record('actionable', found, seed=AUDIT_SEED, checksums=checksums)}", flush=True)


if __name__ == "__main__":
    main()
