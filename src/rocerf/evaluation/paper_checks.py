"""Measurements behind the reasons that the report gives where a number is not the paper's.

Each asks one question of a baseline as its authors run it, on the data and models as published: what does the number
depend on that the paper does not fix? They need a finished run and take minutes: ``python -m
rocerf.evaluation.paper_checks out/paper`` writes ``checks.csv`` beside the tables and the report once more.
"""

from __future__ import annotations

import sys
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from rocerf.evaluation.settings import LONGER
from rocerf.evaluation.tidy import write_csv

Array = NDArray[np.float64]
Row = dict[str, Any]

COLUMNS = ("check", "dataset", "model", "value", "people", "answered", "denied", "l2", "l2_se", "share")

#: People of each check, the first of the denied.
PEOPLE = 200
SEEDS = (0, 1, 2, 3, 4)
STEPS = (1000, 4000, 10_000, 100_000)
LAMBDAS = (0.0, 0.1, 0.2, 0.3, 0.4, 0.5)
EPOCHS = (100, LONGER)
DATASETS = ("german", "compas", "adult")


def write_checks(folder: Path, datasets: Sequence[str] = DATASETS, people: int = PEOPLE) -> Path:
    """Make every check that the run's finished jobs allow, and write ``checks.csv``."""
    rows = [
        row
        for dataset in datasets
        for check in (autoencoder_seeds, search_steps, roar_weights, roar_box)
        for row in _made(check, Path(folder), dataset, people)
    ]
    if "german" in datasets:
        rows += german_networks()
    target = Path(folder) / "checks.csv"
    write_csv(target, COLUMNS, rows)
    return target


def _made(check: Any, folder: Path, dataset: str, people: int) -> Iterator[Row]:
    """The rows of one check on one data set; none where the run has no such model."""
    found = _published(folder, dataset)
    if found is None:
        return
    model, denied = found
    for row in check(model, denied[:people], folder, dataset):
        yield {"dataset": dataset, "model": "lr", **row}


def _published(folder: Path, dataset: str) -> tuple[Any, Array] | None:
    """The logistic model as published and the people it denies."""
    from rocerf.evaluation.jobs import JobFolder
    from rocerf.models.logistic import LogisticModel

    jobs, name = JobFolder(folder / "jobs"), f"published-{dataset}-lr-model"
    if not jobs.side_path(name).is_file():
        return None
    return LogisticModel.load(jobs.side_path(name)), jobs.arrays(name)["denied"]


def autoencoder_seeds(model: Any, denied: Array, _folder: Path, _dataset: str) -> Iterator[Row]:
    """What the authors' C-CHVAE costs, by the seed of its autoencoder and samples."""
    from rocerf.baselines import CChvae

    for seed in SEEDS:
        points = CChvae(model, preset="authors", seed=seed).explain(denied).matrix
        yield {"check": "cchvae_seed", "value": seed, **_cost(model, denied, points)}


def search_steps(model: Any, denied: Array, _folder: Path, _dataset: str) -> Iterator[Row]:
    """What the authors' SCFE costs, by the most steps that a person gets (a tenth of them for one weight).

    ``share`` is its cost over that of the nearest accepted point.
    """
    from rocerf.baselines import Scfe

    plain = _cost(model, denied, Scfe(model).explain(denied).matrix)["l2"]
    for steps in STEPS:
        found = _cost(model, denied, Scfe(model, preset="authors", max_steps=steps).explain(denied).matrix)
        yield {"check": "scfe_steps", "value": steps, **found, "share": found["l2"] / plain}


def roar_weights(model: Any, denied: Array, _folder: Path, _dataset: str) -> Iterator[Row]:
    """What the authors' ROAR costs, by its one weight lambda, which they choose on the first 5 % of the people."""
    from rocerf.baselines import Roar

    for lam in LAMBDAS:
        points = Roar(model, preset="authors", lam=lam).explain(denied).matrix
        yield {"check": "roar_lambda", "value": lam, **_cost(model, denied, points)}


def roar_box(model: Any, _denied: Array, folder: Path, dataset: str) -> Iterator[Row]:
    """Share of all points of ROAR in the run that every model in ROAR's own box of 0.1 accepts."""
    from rocerf.baselines.roar import ParameterBox
    from rocerf.evaluation.jobs import JobFolder

    jobs, name = JobFolder(folder / "jobs"), f"published-{dataset}-lr-roar-explain"
    if not jobs.arrays_path(name).is_file():
        return
    arrays = jobs.arrays(name)
    people, points = arrays["people"], arrays["points"]
    answered = np.isfinite(points).all(axis=1)
    worst = ParameterBox(model, 0.1).read(points[answered]).values
    share = float((worst >= 0).mean()) if len(worst) else None
    yield {"check": "roar_box", "value": 0.1, **_cost(model, people, points), "share": share}


def german_networks() -> Iterator[Row]:
    """How many test people the network on German's published labels denies, by epochs and seed."""
    from rocerf.data.datasets import load_dataset
    from rocerf.evaluation.experiment import people_of
    from rocerf.models.neural import NeuralModel

    data = load_dataset("german-as-published")
    people = people_of(data, "published")
    for epochs in EPOCHS:
        for seed in SEEDS[:3]:
            model = NeuralModel.fit(data.train, epochs=epochs, shuffle=False, seed=seed)
            denied = int((model.predict(people) == 0).sum())
            where = {"dataset": "german", "model": "nn", "people": len(people)}
            yield {"check": f"german_{epochs}_epochs", **where, "value": seed, "denied": denied}


def _cost(model: Any, people: Array, points: Array) -> Row:
    """People, how many of them were answered, and the mean L2 cost of those in training standard deviations."""
    answered = np.isfinite(points).all(axis=1)
    costs = np.sqrt((((points[answered] - people[answered]) / model.train.spread) ** 2).sum(axis=1))
    found: Row = {"people": len(people), "answered": len(costs)}
    if len(costs):
        found |= {"l2": float(costs.mean())}
    if len(costs) > 1:
        found |= {"l2_se": float(costs.std(ddof=1) / np.sqrt(len(costs)))}
    return found


if __name__ == "__main__":
    from rocerf.evaluation.paper_report import write_report

    write_checks(Path(sys.argv[1]))
    write_report(Path(sys.argv[1]))
