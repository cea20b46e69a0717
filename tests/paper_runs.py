"""Synthetic runs of the paper's study, as ``rocerf reproduce`` leaves them: every number is known."""

from __future__ import annotations

import csv
import json
from pathlib import Path
from typing import Any

from rocerf.evaluation.methods import METHODS as RUN
from rocerf.reproduction.published import COSTS, DATASETS, MODELS, SETTINGS
from rocerf.reproduction.tables import Curve, verdict

ALPHAS = (0.0, 0.005, 0.01, 0.02, 0.03, 0.05)
VALIDITY = {"scfe": 0.5, "cchvae": 0.93, "roar": 0.97, "rocerf": 0.999, "first_order": 0.9, "retrained": 1.0}


def write(folder: Path, name: str, rows: list[dict[str, Any]]) -> None:
    with (folder / f"{name}.csv").open("w", encoding="utf-8", newline="") as file:
        writer = csv.DictWriter(file, list(rows[0]))
        writer.writeheader()
        writer.writerows(rows)


def method_row(setting: str, dataset: str, model: str, method: str, **changes: Any) -> dict[str, Any]:
    paper = COSTS["l2"][model].get(method, {}).get(dataset)
    l2 = paper.mean if paper else 0.95
    lr = model == "lr"
    row = {"setting": setting, "dataset": dataset, "model": model, "method": method, "people": 40, "answered": 40}
    row |= {"l2": l2 + 1 / 3000, "l2_se": 0.01, "l1": 2.5 * l2, "l1_se": 0.02, "changed": 5.0, "distance_to_data": 1.5}
    row |= {"seconds_per_person": 0.01, "cost_over_plain": 1.2, "worst_case_people": 40 if lr else None}
    row |= {"worst_case_validity": (1.0 if method == "retrained" else 0.0) if lr else None, "k": 4, "parameters": "{}"}
    return row | changes


def result_rows(setting: str, dataset: str, model: str, method: str) -> list[dict[str, Any]]:
    where = {"setting": setting, "dataset": dataset, "model": model, "method": method, "people": 40, "seed": 7}
    share = VALIDITY.get(method, 0.99)
    return [
        where | {"alpha": alpha, "trial": trial, "validity": 1.0 if alpha == 0 else min(1.0, share + 0.001 * trial)}
        for alpha in ALPHAS
        for trial in range(3 if alpha else 1)
    ]


def build(folder: Path, datasets: tuple[str, ...] = tuple(DATASETS), **changes: Any) -> Path:
    """A run as ``rocerf reproduce`` leaves it; ``changes`` go into every row of methods.csv."""
    folder.mkdir(parents=True, exist_ok=True)
    cases = [(s, d, m, method) for (s, m), methods in RUN.items() for d in datasets for method in methods]
    write(folder, "methods", [method_row(*case, **changes) for case in cases])
    write(folder, "results", [row for case in cases for row in result_rows(*case)])
    write(
        folder,
        "models",
        [
            {"setting": s, "dataset": d, "model": m, "train_rows": 800, "test_rows": 200, "denied": 45, "accuracy": 0.7}
            for s in SETTINGS
            for d in datasets
            for m in MODELS
        ],
    )
    where = [{"dataset": d, "k_share": share, "k": 5, "l2": 0.9} for d in datasets for share in ALPHAS[1:]]
    write(
        folder,
        "sensitivity",
        [w | {"alpha": alpha, "validity": 1.0 - 0.1 * alpha, "validity_se": 0.001} for w in where for alpha in ALPHAS],
    )
    sizes = [(n, k) for n in (1000, 4000, 16000) for k in (1, 5, 20)]
    theorem = [{"n": n, "k": k, "k_over_n": k / n, "extra_cost": 8 * k / n, "bound": 100 * k / n} for n, k in sizes]
    theorem[2]["bound"] = ""
    write(folder, "theorem", theorem)
    missing = {key: f"no file <{key}> & none could be fetched" for key in DATASETS if key not in datasets}
    record = {"preset": "full", "wall_seconds": 5400.0, "seeds": {"seed": 0}, "versions": {"numpy": "9.9"}}
    (folder / "run.json").write_text(json.dumps(record | {"missing": missing, "failed": {}}), "utf-8")
    (folder / "settings.yaml").write_text("preset: full\ntrials: 3\n", "utf-8")
    return folder


def cost_row(ours: float, error: float, **changes: Any) -> dict[str, Any]:
    paper = COSTS["l2"]["lr"]["scfe"]["compas"]  # 0.78 ± 0.02
    row = {"dataset": "compas", "method": "scfe", "paper": paper.mean, "paper_se": paper.standard_error}
    for setting in SETTINGS:
        row |= {setting: ours, f"{setting}_se": error, f"{setting}_people": 40, f"{setting}_answered": 40}
        row[f"{setting}_verdict"] = verdict(ours, error, paper.mean, paper.standard_error)
    return row | changes


def curve(dataset: str, model: str, method: str, *means: float, **more: Any) -> Curve:
    """A published curve with these means at growing shares above 0."""
    alphas = [0.01 * place for place in range(len(means) + 1)]
    setting = more.pop("setting", "published")
    return Curve(setting, dataset, model, method, alphas, [1.0, *means], [0.0] * len(alphas), 3, **more)
