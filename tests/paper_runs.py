"""Synthetic runs of the paper's study, as ``rocerf reproduce`` leaves them: every number is known."""

from __future__ import annotations

import csv
import json
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from rocerf.evaluation.methods import METHODS as RUN
from rocerf.reproduction.published import COSTS, DATASETS, SETTINGS, is_run, printed
from rocerf.reproduction.tables import Curve, spread_of, verdict


def drawn(people: NDArray[np.float64], count: int) -> NDArray[np.float64]:
    """Whom a run asks, of those refused (P, d), where the authors have no parts."""
    return people[np.random.default_rng(2023).permutation(len(people))[:count]]


ALPHAS = (0.0, 0.005, 0.01, 0.02, 0.03, 0.05)
VALIDITY = {"scfe": 0.5, "cchvae": 0.93, "roar": 0.97, "rocerf": 0.999, "first_order": 0.9, "retrained": 1.0}


def write(folder: Path, name: str, rows: list[dict[str, Any]]) -> None:
    with (folder / f"{name}.csv").open("w", encoding="utf-8", newline="") as file:
        writer = csv.DictWriter(file, list(rows[0]))
        writer.writeheader()
        writer.writerows(rows)


def method_row(setting: str, dataset: str, model: str, method: str, **changes: Any) -> dict[str, Any]:
    paper = printed("l2", model, method, dataset)
    l2 = paper.mean if paper else 0.95
    row = {
        "seed": 0,
        "setting": setting,
        "dataset": dataset,
        "model": model,
        "method": method,
        "people": 40,
        "answered": 40,
    }
    row |= {"l2": l2 + 1 / 3000, "l2_se": 0.01, "l1": 2.5 * l2, "l1_se": 0.02, "changed": 5.0, "distance_to_data": 1.5}
    row |= {"seconds_per_person": 0.01, "cost_over_plain": 1.2, "k": 4, "parameters": "{}"}
    return row | changes


def result_rows(setting: str, dataset: str, model: str, method: str, seed: int = 0) -> list[dict[str, Any]]:
    where = {"setting": setting, "dataset": dataset, "model": model, "method": method, "people": 40, "seed": seed}
    share = VALIDITY.get(method, 0.99) - 0.01 * seed
    return [
        where | {"alpha": alpha, "trial": trial, "validity": 1.0 if alpha == 0 else min(1.0, share + 0.001 * trial)}
        for alpha in ALPHAS
        for trial in range(3 if alpha else 1)
    ]


def cases(datasets: tuple[str, ...]) -> list[tuple[str, str, str, str]]:
    """Setting, data set, model and method of a whole run; a variant of a data set is published alone."""
    return [
        (setting, dataset, model, method)
        for (setting, model), methods in RUN.items()
        for dataset in datasets
        for method in methods
        if is_run(setting, dataset, model, method)
    ]


#: What each setting of a knob keeps valid and costs: (value, cost, random, picked).
SWEPT = {
    "scfe": ("margin", [(0.0, 0.5, 0.5, 0.0)]),
    "margin": ("margin", [(0.1, 0.6, 0.9, 0.0), (0.5, 0.8, 1.0, 0.2), (2.0, 1.6, 1.0, 1.0)]),
    "roar": ("delta_max", [(0.02, 0.85, 0.99, 0.1), (0.1, 1.8, 1.0, 0.9)]),
    "cchvae": ("shell", [(0.05, 7.0, 0.99, 0.9)]),
    "rocerf": ("k", [(0.005, 0.9, 0.999, 0.0), (0.02, 1.5, 1.0, 1.0)]),
    "first_order": ("k", [(0.005, 0.9, 0.99, 0.1)]),
    "simulated": ("k", [(0.05, 0.95, 1.0, 0.4)]),
    "retrained": ("k", [(0.001, 0.85, 0.99, 0.5), (0.005, 1.0, 1.0, 1.0)]),
}


def sweep_rows(
    dataset: str, model: str, swept: dict[str, tuple[str, list[tuple[float, float, float, float]]]], seed: int = 0
) -> list[dict[str, Any]]:
    """Rows of sweeps.csv of one case in the corrected setting."""
    where = {"setting": "corrected", "dataset": dataset, "model": model, "seed": seed, "people": 40, "answered": 40}
    errors = {"l2_se": 0.05, "l1_se": 0.1, "random_se": 0.002, "picked_se": 0.02, "judge": "a <judge>"}
    return [
        {**where, "method": m, "knob": knob, "value": value, "l2": cost, "l1": 2 * cost, **errors}
        | {"random": random, "picked": picked}
        for m, (knob, points) in swept.items()
        for value, cost, random, picked in points
    ]


def worst_row(setting: str, dataset: str, model: str, method: str, seed: int = 0) -> dict[str, Any]:
    """One row of worst.csv: only `retrained` survives."""
    where = {"setting": setting, "dataset": dataset, "model": model, "seed": seed, "method": method}
    return {**where, "k": 4, "people": 40, "validity": 1.0 if method == "retrained" else 0.25, "judge": "ours"}


def build(folder: Path, datasets: tuple[str, ...] = tuple(DATASETS), **changes: Any) -> Path:
    """A run as ``rocerf reproduce`` leaves it, networks with two seeds; ``changes`` go into each row of methods.csv."""
    folder.mkdir(parents=True, exist_ok=True)
    each = [(case, seed) for case in cases(datasets) for seed in range(2 if case[2] == "nn" else 1)]
    rows = [method_row(*case, **{"seed": seed} | changes) for case, seed in each]
    for row in rows:
        row["l2"] *= 1 + 0.1 * row["seed"]  # of the second network everything costs a tenth more
    write(folder, "methods", rows)
    write(folder, "results", [row for case, seed in each for row in result_rows(*case, seed)])
    write(folder, "worst", [worst_row(*case, seed) for case, seed in each])
    swept = [(d, m) for s, d, m, method in cases(datasets) if (s, method) == ("corrected", "rocerf")]
    write(
        folder,
        "sweeps",
        [
            row
            for dataset, model in swept
            for row in sweep_rows(dataset, model, {m: SWEPT[m] for m in RUN["corrected", model]})
        ],
    )
    models = [
        {"setting": s, "dataset": d, "model": m, "seed": seed, "train_rows": 800, "test_rows": 200}
        | {"denied": 45 + seed, "accuracy": 0.7}
        for s, d, m in dict.fromkeys((s, d, m) for s, d, m, _ in cases(datasets))
        for seed in range(2 if m == "nn" else 1)
    ]
    write(folder, "models", models)
    _write_theory(folder, datasets)
    missing = {key: f"no file <{key}> & none could be fetched" for key in DATASETS if key not in datasets}
    record = {"preset": "full", "wall_seconds": 5400.0, "seeds": {"seed": 0}, "versions": {"numpy": "9.9"}}
    (folder / "run.json").write_text(json.dumps(record | {"missing": missing, "failed": {}}), "utf-8")
    (folder / "settings.yaml").write_text("preset: full\ntrials: 3\n", "utf-8")
    return folder


def _write_theory(folder: Path, datasets: tuple[str, ...]) -> None:
    where = [{"dataset": d, "k_share": share, "k": 5, "l2": 0.9 + 20 * share} for d in datasets for share in ALPHAS[1:]]
    write(
        folder,
        "sensitivity",
        [w | {"alpha": alpha, "validity": 1.0 - 0.1 * alpha, "validity_se": 0.001} for w in where for alpha in ALPHAS],
    )
    sizes = [(n, k) for n in (1000, 4000, 16000) for k in (1, 5, 20)]
    theorem = [{"n": n, "k": k, "k_over_n": k / n, "extra_cost": 8 * k / n, "bound": 100 * k / n} for n, k in sizes]
    theorem[2]["bound"] = ""
    write(folder, "theorem", theorem)


def cost_row(ours: float, error: float, **changes: Any) -> dict[str, Any]:
    """A row of a cost table: COMPAS, SCFE, whose paper's value is 0.78 ± 0.02, or what ``changes`` say."""
    paper = COSTS["l2"]["lr"]["scfe"]["compas"]
    row = {"dataset": "compas", "method": "scfe", "paper": paper.mean, "paper_se": paper.standard_error} | {
        name: changes[name] for name in ("paper", "paper_se") if name in changes
    }
    spread = spread_of(error, row["paper_se"])
    for setting in SETTINGS:
        row |= {setting: ours, f"{setting}_se": error, f"{setting}_people": 40, f"{setting}_answered": 40}
        row |= {f"{setting}_{end}": ours for end in ("low", "high")} | {f"{setting}_seeds": 1}
        row |= {f"{setting}_spread": spread, f"{setting}_verdict": verdict(ours, row["paper"], spread)}
    return row | changes


def curve(dataset: str, model: str, method: str, *means: float, **more: Any) -> Curve:
    """A published curve with these means at growing shares above 0."""
    alphas = [0.01 * place for place in range(len(means) + 1)]
    setting = more.pop("setting", "published")
    return Curve(setting, dataset, model, method, alphas, [1.0, *means], [0.0] * len(alphas), 3, **more)
