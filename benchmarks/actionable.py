"""Recourse on raw columns: a pipeline, a schema with rules, the promise ``retrained`` at k = 0.5 %.

For German credit (20 attributes) and Adult (14): is everybody answered or given a reason; does every answer keep every
rule; is it still accepted by the user's own pipeline after the worst deletions found, truly retrained by scikit-learn
from scratch, with preprocessing frozen and refitted; what do the rules cost; and what does a person
take to compute, in units of one plain mixed-integer solve (the cheapest allowed point that today's model accepts).

Run: ``python -m benchmarks.actionable`` (``--people`` limits Adult's people, drawn at random; ``--processes`` shares
them out). What is done stays in out/actionable, and a run that was stopped goes on from there.
"""

from __future__ import annotations

import argparse
import hashlib
import time
from collections import Counter
from concurrent.futures import ProcessPoolExecutor
from dataclasses import dataclass, replace
from functools import cached_property
from multiprocessing import get_context
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
from numpy.typing import NDArray
from sklearn.base import clone

import rocerf
from benchmarks.raw_pipelines import fitted_pipeline
from benchmarks.record import write_record
from rocerf.data.raw_tables import RawDataset, load_raw
from rocerf.deletion.adversary import Adversary
from rocerf.promises import Plain
from rocerf.recourse.master.feasible_set import FeasibleSet
from rocerf.recourse.master.master import Master

Array = NDArray[np.float64]

AUDIT_SEED = 20_001
SHARE = "0.5%"

#: Changes when what is kept of a chunk changes.
FORMAT = 2

#: People a process takes at once: enough for the pool of deletions to pay, few enough to share out evenly.
CHUNK = 100


@dataclass
class Task:
    """One table and one cost."""

    name: str
    cost: str

    @cached_property
    def data(self) -> RawDataset:
        """The raw table and its preset schema."""
        return load_raw(self.name)

    @cached_property
    def pipeline(self) -> Any:
        """What a lender would have fitted."""
        return fitted_pipeline(self.data)

    @cached_property
    def model(self) -> Any:
        """The pipeline with its rows."""
        return rocerf.from_pipeline(self.pipeline, self.data.train, self.data.y_train, schema=self.data.schema)

    @cached_property
    def denied(self) -> pd.DataFrame:
        """The test rows that the pipeline refuses."""
        return self.data.test[self.pipeline.predict(self.data.test) == 0]

    def explainer(self) -> rocerf.Rocerf:
        """With the promise that is measured."""
        return rocerf.Rocerf(self.model, SHARE, promise="retrained", cost=self.cost)

    def costs_without_rules(self, people: pd.DataFrame) -> Array:
        """What the same promise costs where every number of schema space may be anything, (P,)."""
        bare = rocerf.LogisticModel(replace(self.model._fit, parts=None, own=None, retraining=None))
        return rocerf.Rocerf(bare, SHARE, promise="retrained", cost=self.cost).explain(self.model.matrix(people)).costs

    def kept_answers(self, at: int, people: pd.DataFrame, audited: int) -> pd.DataFrame:
        """:meth:`answers`, from the file that an earlier run left, or kept in one.

        Code that was changed without another :data:`FORMAT` is not noticed: remove out/actionable then.
        """
        told = repr((FORMAT, rocerf.__version__, people.to_csv(), audited, SHARE, AUDIT_SEED))
        folder = Path("out/actionable")
        path = folder / f"{self.name}-{self.cost}-{at}-{hashlib.sha256(told.encode()).hexdigest()[:12]}.csv"
        if not path.is_file():
            folder.mkdir(parents=True, exist_ok=True)
            found = self.answers(people, audited)
            whole = path.with_suffix(".part")
            found.to_csv(whole, index=False)
            whole.rename(path)
        return pd.read_csv(path)

    def answers(self, people: pd.DataFrame, audited: int) -> pd.DataFrame:
        """One row a person: status and cost; of the first ``audited`` the cost without rules and what they survive."""
        explainer = self.explainer()
        start = time.perf_counter()
        recourses = explainer.explain(people)
        taken = (time.perf_counter() - start) / len(people)
        answered = recourses.answered
        accepted = np.zeros(len(people), dtype=bool)
        accepted[answered] = self.pipeline.predict(recourses.points[answered]) == 1
        found = pd.DataFrame(
            {
                "status": [status.code for status in recourses.statuses],
                "gap": np.nan if recourses.gaps is None else recourses.gaps,
                "accepted": accepted,
                "cost": recourses.costs,
                "cost_without_rules": np.nan,
                "changed": [len(recourse.changes) if recourse.answered else np.nan for recourse in recourses],
                "seconds": taken,
            }
        )
        if audited:
            found.loc[: audited - 1, "cost_without_rules"] = self.costs_without_rules(people.iloc[:audited])
        return found.join(self.survival(recourses, explainer.k, audited))

    def survival(self, recourses: Any, k: int, most: int) -> pd.DataFrame:
        """Whether the retrained pipeline accepts each answer after the worst deletion found for it.

        The deletions are those of an adversary with another seed than the solver's. "frozen" retrains the classifier on
        the preprocessing as it is, "refitted" the whole pipeline, both by scikit-learn to its tolerance and from
        scratch, as the user would. The same deletion is not retrained twice.
        """
        places = np.flatnonzero(recourses.answered[:most])
        if not len(places):
            return pd.DataFrame(columns=["frozen", "refitted"])
        attacks = Adversary(self.model, k, seed=AUDIT_SEED).attack_all(recourses.matrix[places])
        sets: dict[bytes, list[int]] = {}
        rows = [np.sort(np.asarray(deleted)) for deleted in attacks.deleted_rows]
        for place, deleted in zip(places, rows, strict=True):
            sets.setdefault(deleted.tobytes(), []).append(int(place))
        label, encoded = self.data.y_train, self.pipeline[:-1].transform(self.data.train)
        found = pd.DataFrame(index=places, columns=["frozen", "refitted"], dtype=object)
        for key, members in sets.items():
            kept = np.setdiff1d(np.arange(len(label)), np.frombuffer(key, dtype=rows[0].dtype))
            answers = recourses.points.iloc[members]
            frozen = clone(self.pipeline[-1]).fit(encoded[kept], label[kept])
            found.loc[members, "frozen"] = frozen.predict(self.pipeline[:-1].transform(answers)) == 1
            refitted = clone(self.pipeline).fit(self.data.train.iloc[kept], label[kept])
            found.loc[members, "refitted"] = refitted.predict(answers) == 1
        return found


def milliseconds(task: Task, people: pd.DataFrame) -> dict[str, float]:
    """Median time of one person asked for alone, and of one plain mixed-integer solve for the same people."""
    alone, plain = [], []
    explainer = task.explainer()
    explainer.explain(people.iloc[:1])  # what is prepared once is not a person's time
    matrix = task.model.matrix(people)
    slopes, constants = Plain(task.model).known_cuts()
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


def measured(task: Task, most: int | None, audited: int, timed: int, processes: int) -> tuple[dict[str, Any], str]:
    """Everything about one table and cost; and the checksum of its rows."""
    denied = task.denied
    people = denied.sample(min(most or len(denied), len(denied)), random_state=0)
    times = milliseconds(task, people.iloc[:timed])  # while no other process is busy
    starts = range(0, len(people), CHUNK)
    chunks, audits = (
        [people.iloc[at : at + CHUNK] for at in starts],
        [max(0, min(CHUNK, audited - at)) for at in starts],
    )
    parts = []
    with ProcessPoolExecutor(processes, mp_context=get_context("spawn")) as pool:
        for part in pool.map(Task(task.name, task.cost).kept_answers, starts, chunks, audits):
            parts.append(part)
            print(f"{task.name} {task.cost}: {sum(map(len, parts)):,} of {len(people):,} people", flush=True)
    found = pd.concat(parts, ignore_index=True)
    audit = found[found["frozen"].notna()]
    both = found["cost"].notna() & found["cost_without_rules"].notna()
    answered = found["status"] == "answered"
    result = {
        "denied": len(denied),
        "people": len(people),
        "k": task.explainer().k,
        "statuses": dict(Counter(found["status"])),
        "largest_gap": float(found["gap"].max()),
        "accepted_by_the_pipeline": float(found.loc[answered, "accepted"].mean()),
        "mean_cost": float(found.loc[both, "cost"].mean()),
        "mean_cost_unconstrained": float(found.loc[both, "cost_without_rules"].mean()),
        "features_changed": float(found["changed"].mean()),
        "ms_a_person_in_the_batch": 1e3 * float(found["seconds"].mean()),
        "audited": len(audit),
        "frozen": float(audit["frozen"].astype(bool).mean()),
        "refitted": float(audit["refitted"].astype(bool).mean()),
        **times,
    }
    return result, task.model.train.checksum


def main() -> None:
    """Measure both tables and write the record."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--tables", nargs="+", default=["german", "adult"])
    parser.add_argument("--costs", nargs="+", default=["l1", "l2"])
    parser.add_argument("--people", type=int, default=200, help="of Adult, drawn at random; 0 for all")
    parser.add_argument("--audited", type=int, default=50, help="answers audited by true retraining, a table and cost")
    parser.add_argument("--timed", type=int, default=40)
    parser.add_argument("--processes", type=int, default=1)
    options = parser.parse_args()
    found: dict[str, Any] = {}
    checksums: dict[str, str] = {}
    for name in options.tables:
        for cost in options.costs:
            most = None if name == "german" or not options.people else options.people
            found[f"{name} {cost}"], checksums[name] = measured(
                Task(name, cost), most, options.audited, options.timed, options.processes
            )
            for key, value in found[f"{name} {cost}"].items():
                print(
                    f"{name:7} {cost:3} {key:26} {value if not isinstance(value, float) else f'{value:.4g}'}",
                    flush=True,
                )
            print(f"written: {write_record('actionable', found, seed=AUDIT_SEED, checksums=checksums)}", flush=True)


if __name__ == "__main__":
    main()
