"""The checks beside a run: they find what the run left, and say what is true of it."""

from __future__ import annotations

import csv
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from rocerf.reproduction import checks as paper_checks
from rocerf.reproduction.runner import reproduce
from rocerf.reproduction.settings import ExperimentSettings

pytestmark = pytest.mark.slow  # minutes of retraining and of commands


@pytest.mark.slow
def test_checks_of_a_small_run(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    settings = ExperimentSettings.preset_named("quick").changed(
        datasets=["german"], models=["lr"], methods=["roar"], trials=1, theorem_sizes=[400], theorem_k=[1]
    )
    reproduce(settings, tmp_path)
    monkeypatch.setattr(paper_checks, "SEEDS", (0,))
    monkeypatch.setattr(paper_checks, "STEPS", (1000, 10_000))
    monkeypatch.setattr(paper_checks, "AROUND", (-0.1, 0.0, 0.1))
    monkeypatch.setattr(paper_checks, "EPOCHS", (2,))
    path = paper_checks.write_checks(tmp_path, datasets=["german", "adult"], people=4)  # adult was not run
    with path.open(encoding="utf-8", newline="") as file:
        rows = list(csv.DictReader(file))
    found: dict[str, list[dict[str, Any]]] = {}
    for row in rows:
        found.setdefault(row["check"], []).append(row)
    expected = {"cchvae_seed": 1, "scfe_steps": 2, "roar_chosen": 1, "roar_lambda": 3, "roar_box": 1}
    expected["authors_problem"] = 1
    assert {name: len(group) for name, group in found.items()} == expected | {"german_2_epochs": 1}
    assert {row["dataset"] for row in rows} == {"german"}
    chosen = float(found["roar_chosen"][0]["value"])
    assert [float(row["value"]) for row in found["roar_lambda"]][1] == chosen
    costs = [float(row["l2"]) for row in found["roar_lambda"]]
    assert costs == sorted(costs, reverse=True)  # a larger weight on cost makes it cheaper
    assert all(float(row["share"]) > 1 for row in found["scfe_steps"])  # beyond the nearest accepted point
    assert float(found["roar_box"][0]["share"]) < 0.1
    (theirs,) = found["authors_problem"]
    assert (theirs["people"], theirs["answered"]) == ("19", "19")
    assert float(theirs["l2"]) == pytest.approx(0.962, abs=0.002)  # as other code found it
    assert (tmp_path / "checks.csv").is_file()


def test_the_paper_s_method_costs_by_the_points_of_its_stand_in() -> None:
    pytest.importorskip("torch", reason="networks need torch")
    from networks import moons
    from rocerf import NeuralModel, Rocerf
    from rocerf.promises import LocalLinear

    model = NeuralModel.fit(moons(120), epochs=150, learning_rate=0.5, width=6, weight_decay=0.001, seed=1)
    people = model.train.X[model.predict(model.train.X) == 0][:4]
    rows = list(paper_checks.stand_ins("german", model, people))
    assert [row["check"] for row in rows] == ["stand_in_authors", "stand_in_widened"]
    for row, sampling in zip(rows, ("authors", "widened"), strict=True):
        found = Rocerf(model, 1, promise=LocalLinear(model, 1, sampling=sampling)).explain(people)
        assert row["l2"] == pytest.approx(np.nanmean(found.costs))
    assert rows[0]["l2"] != rows[1]["l2"]


def test_mean_cost_counts_only_the_answered() -> None:
    people, points = np.zeros((3, 2)), np.array([[3.0, 8.0], [np.nan, 1.0], [0.0, 2.0]])
    found = paper_checks.mean_cost(people, points, np.array([1.0, 2.0]))
    assert (found["people"], found["answered"], found["l2"]) == (3, 2, 3.0)
    assert found["l2_se"] == pytest.approx(2.0)
    nobody = paper_checks.mean_cost(people[:1], points[1:2], np.ones(2))
    assert (nobody["answered"], nobody["l2"], nobody["l2_se"]) == (0, None, None)
