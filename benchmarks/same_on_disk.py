"""Recourses from German, COMPAS and Adult on the disk, however they are cut and whoever runs, against rows in memory.

A part of :mod:`benchmarks.out_of_core`.
"""

from __future__ import annotations

from contextlib import ExitStack
from pathlib import Path
from typing import Any

import numpy as np

import rocerf
from rocerf.errors import DatasetUnavailableError

PARTS, PROMISES, PEOPLE, K = (1, 7, 40), ("first_order", "retrained"), 10, "0.5%"


def measure_equality(folder: Path) -> tuple[dict[str, Any], dict[str, str]]:
    """The largest difference of a recourse, in standard deviations of its column, by promise, files and runner."""
    import distributed

    found: dict[str, Any] = {}
    checksums = {}
    with ExitStack() as opened:
        made = distributed.LocalCluster(n_workers=2, threads_per_worker=1, dashboard_address=":0", processes=True)
        client = opened.enter_context(distributed.Client(opened.enter_context(made)))
        runners = {"serial": "serial", "threads": "threads", "dask": client}
        for name in ("german", "compas", "adult"):
            try:
                data = rocerf.load_dataset(name)
            except DatasetUnavailableError as missing:
                print(f"{name} left out: {missing}")
                continue
            checksums[name] = data.train.checksum
            found[name] = _of_table(data, folder / name, runners)
            print(name, found[name], flush=True)
    return found, checksums


def _of_table(data: Any, folder: Path, runners: dict[str, Any]) -> dict[str, Any]:
    table = data.train.frame().assign(good=data.train.y.astype(int), who=data.train.ids).reset_index(drop=True)
    memory = rocerf.LogisticModel.fit(data.train)
    people = data.test.frame()
    people = people[memory.predict(people) == 0].iloc[:PEOPLE]
    expected = {promise: rocerf.Rocerf(memory, K, promise=promise).explain(people) for promise in PROMISES}
    differences: dict[str, float] = {}
    for parts in PARTS:
        own = folder / str(parts)
        own.mkdir(parents=True)
        for number, rows in enumerate(np.array_split(np.arange(len(table)), parts)):
            table.iloc[rows].to_parquet(own / f"part-{number:03d}.parquet", index=False)
        train = rocerf.TrainingSet.from_parquet(own, label="good", id="who")
        for called, runner in runners.items():
            with rocerf.running(runner):
                model = rocerf.LogisticModel.fit(train)
                for promise in PROMISES:
                    recourses = rocerf.Rocerf(model, K, promise=promise).explain(people)
                    away = np.abs(recourses.matrix - expected[promise].matrix) / data.train.spread
                    same = recourses.statuses == expected[promise].statuses
                    key = f"{promise} {parts} {called}"
                    differences[key] = float(np.nanmax(away)) if same else float("inf")
    return {
        "rows": len(data.train),
        "people": len(people),
        "answered": {promise: int(recourses.answered.sum()) for promise, recourses in expected.items()},
        "largest": max(differences.values()),
        "differences": differences,
    }
