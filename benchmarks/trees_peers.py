"""The same people asked of other libraries about XGBoost's trees (treecf, DiCE), each in an environment of its own."""

from __future__ import annotations

import json
import subprocess
import tempfile
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd

import rocerf
from rocerf.data.feature import Direction, Kind
from rocerf.types import Array


def asked_of(
    library: str, python: str, model: rocerf.EstimatorModel, people: Array, schema: rocerf.FeatureSchema, scale: Array
) -> tuple[Array, dict[str, Any]]:
    """A library's points (P, d), missing where it has none, and what it says of them."""
    columns = list(schema.columns)
    groups: dict[str, list[str]] = {}
    for feature in schema:
        if feature.group is not None and feature.direction is not Direction.FIXED:
            groups.setdefault(feature.group, []).append(feature.name)
    task = {
        "fixed": [f.name for f in schema if f.direction is Direction.FIXED],
        "directions": {f.name: str(f.direction) for f in schema if f.direction in ("increase", "decrease")},
        "ranges": {f.name: [f.lower, f.upper] for f in schema if f.direction is not Direction.FIXED},
        "groups": list(groups.values()),
        "whole": [f.name for f in schema if f.kind is not Kind.CONTINUOUS],
        "scale": dict(zip(columns, np.asarray(scale).tolist(), strict=True)),
    }
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        (folder / "task.json").write_text(json.dumps(task), "utf-8")
        model.estimator.save_model(folder / "model.json")
        pd.DataFrame(np.asarray(model.train.X), columns=columns).to_csv(folder / "train.csv", index=False)
        pd.DataFrame(people, columns=columns).to_csv(folder / "people.csv", index=False)
        runner = Path(__file__).with_name("trees_runner.py")
        done = subprocess.run([python, str(runner), name, library], check=False, capture_output=True, text=True)
        if done.returncode:
            raise RuntimeError(f"the environment of {library} failed: {done.stderr[-500:]}")
        about: dict[str, Any] = json.loads((folder / "about.json").read_text("utf-8"))
        return pd.read_csv(folder / "answers.csv").to_numpy(dtype=np.float64), about
