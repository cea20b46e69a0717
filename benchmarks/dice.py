"""Side by side with DiCE on German credit's 20 raw attributes: immutable features, ranges, categories.

DiCE runs in an environment of its own, named by ``--python`` (``python -m venv DIR; DIR/bin/pip install dice-ml``); it
is no dependency of ours. The task is what DiCE can be told: which features may vary, and their ranges. Counted for
each: answers, broken rules, acceptance by the pipeline, acceptance after the worst deletion of 0.5 % of the rows that
our adversary finds, cost, and seconds a person.

Run: ``python -m benchmarks.dice --python DIR/bin/python``.
"""

from __future__ import annotations

import argparse
import json
import subprocess
import tempfile
import time
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd

import rocerf
from benchmarks.raw_pipelines import fitted_pipeline
from benchmarks.record import write_record
from rocerf.data.feature import Direction
from rocerf.data.raw_tables import RawDataset, load_raw
from rocerf.deletion.adversary import Adversary

METHODS = ("random", "genetic", "kdtree")
SHARE = "0.5%"


def simple_task(data: RawDataset) -> RawDataset:
    """The task without directions and allowed changes of a category, which DiCE cannot be told."""
    features = tuple(
        f if f.direction is Direction.FIXED else replace(f, direction=Direction.ANY, changes=None) for f in data.schema
    )
    return replace(data, schema=rocerf.FeatureSchema(features))


def ask_dice(python: str, data: RawDataset, people: pd.DataFrame, method: str) -> tuple[pd.DataFrame, dict[str, Any]]:
    """DiCE's answers, a row for each person (missing where it has none), and its times."""
    schema = data.schema
    numbers = [f.name for f in schema if f.kind != "categorical"]
    vary = [f.name for f in schema if f.direction != "fixed"]
    task = {
        "label": "good",
        "numbers": numbers,
        "categories": [f.name for f in schema if f.kind == "categorical"],
        "vary": vary,
        "ranges": {f.name: [f.lower, f.upper] for f in schema if f.name in vary and f.name in numbers},
    }
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        (folder / "task.json").write_text(json.dumps(task), "utf-8")
        data.train.assign(good=data.y_train).to_csv(folder / "train.csv", index=False)
        people.to_csv(folder / "people.csv", index=False)
        runner = Path(__file__).with_name("dice_runner.py")
        done = subprocess.run([python, str(runner), name, method], check=False, capture_output=True, text=True)
        if done.returncode:
            raise RuntimeError(f"DiCE's environment failed: {done.stderr[-2000:]}")
        answers = pd.read_csv(folder / f"answers_{method}.csv", keep_default_na=False, na_values=[""])
        record: dict[str, Any] = json.loads((folder / f"times_{method}.json").read_text("utf-8"))
    return answers.set_axis(people.index), record


def broken_rules(schema: rocerf.FeatureSchema, before: pd.Series, after: pd.Series) -> list[str]:
    """Which rules an answer breaks, looked at in the user's own columns."""
    broken = []
    for feature in schema:
        value = after[feature.name]
        if feature.direction == "fixed" and value != before[feature.name]:
            broken.append("immutable")
        elif feature.kind == "categorical":
            if value not in feature.categories:
                broken.append("category")
        elif value != before[feature.name]:
            if not feature.lower <= float(value) <= feature.upper:
                broken.append("range")
            if float(value) != int(float(value)):
                broken.append("whole number")
    return broken


def judged(data: RawDataset, pipeline: Any, model: Any, people: pd.DataFrame, answers: pd.DataFrame) -> dict[str, Any]:
    """What the answers are worth."""
    given = answers.notna().all(axis=1).to_numpy()
    explainer = rocerf.Rocerf(model, SHARE, promise="first_order", cost="l1")
    matrix, _, problems = model.frames.encode(answers[given])
    home = model.matrix(people[given])
    rules = [
        rule
        for (_, before), (_, after) in zip(people[given].iterrows(), answers[given].iterrows(), strict=True)
        for rule in broken_rules(data.schema, before, after)
    ]
    usable = np.array([not problem for problem in problems], bool)
    accepted = pipeline.predict(answers[given].astype(data.train.dtypes.to_dict(), errors="ignore")) == 1
    worst = Adversary(model, SHARE, seed=7).attack_all(matrix[usable])
    return {
        "people": len(people),
        "answered": int(given.sum()),
        "broken_rules": len(rules),
        "broken": {rule: rules.count(rule) for rule in dict.fromkeys(rules)},
        "accepted_today": float(accepted.mean()),
        "accepted_after_the_worst_deletion": float((worst.scores >= 0).mean()),
        "mean_cost_l1": float(explainer.cost.of(matrix[usable], home[usable]).mean()),
        "mean_cost_l2": float(
            rocerf.Rocerf(model, SHARE, promise="first_order").cost.of(matrix[usable], home[usable]).mean()
        ),
        "features_changed": float(
            (answers[given].astype(str).to_numpy() != people[given].astype(str).to_numpy()).sum(1).mean()
        ),
    }


def main() -> None:
    """Compare and write the record."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--python", required=True, help="the interpreter of an environment with dice-ml")
    parser.add_argument("--methods", nargs="+", default=list(METHODS))
    options = parser.parse_args()
    data = simple_task(load_raw("german"))
    pipeline = fitted_pipeline(data)
    model = rocerf.from_pipeline(pipeline, data.train, data.y_train, schema=data.schema)
    people = data.test[pipeline.predict(data.test) == 0]
    found: dict[str, Any] = {}
    for method in options.methods:
        answers, record = ask_dice(options.python, data, people, method)
        found[f"DiCE {method}"] = judged(data, pipeline, model, people, answers) | {
            "seconds_a_person": float(np.mean(record["seconds"])),
            "version": record["dice_ml"],
        }
    for promise in ("plain", "retrained"):
        explainer = (
            rocerf.baselines.Scfe(model, cost="l1")
            if promise == "plain"
            else rocerf.Rocerf(model, SHARE, promise="retrained", cost="l1")
        )
        start = time.perf_counter()
        recourses = explainer.explain(people)
        seconds = time.perf_counter() - start
        name = f"rocerf {promise}"
        found[name] = judged(data, pipeline, model, people, recourses.points) | {
            "seconds_a_person": seconds / len(people)
        }
    for name, values in found.items():
        for key, value in values.items():
            print(f"{name:16} {key:34} {value if not isinstance(value, float) else f'{value:.4g}'}")
    print(f"written: {write_record('dice', found, seed=7, checksums={'german': model.train.checksum})}")


if __name__ == "__main__":
    main()
