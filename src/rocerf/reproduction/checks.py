"""Measurements behind the reasons that the report gives where a number is not the paper's.

Each asks one question of a baseline as its authors run it, on the data and models as published: what does the number
depend on that the paper does not fix? They need a finished run and take minutes: ``python -m rocerf.reproduction.checks
out/paper`` writes ``checks.csv`` beside the tables, and the report once more.
"""

from __future__ import annotations

import sys
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

import numpy as np

from rocerf import baselines
from rocerf.baselines.registry import Explainer
from rocerf.data.datasets import load_dataset
from rocerf.deletion.k import number_of_deletions
from rocerf.explainer.explainer import Rocerf
from rocerf.models.logistic.model import LogisticModel
from rocerf.promises.local_linear import LocalLinear
from rocerf.recourse.costs.cost import Norm
from rocerf.recourse.costs.norms import NormCost
from rocerf.recourse.master.feasible_set import FeasibleSet
from rocerf.recourse.master.master import Master
from rocerf.reproduction.experiment import people_of
from rocerf.reproduction.jobs import JobFolder
from rocerf.reproduction.settings import DATASETS, LONGER
from rocerf.reproduction.tidy import Row, write_csv
from rocerf.types import Array

if TYPE_CHECKING:
    from rocerf.models.local_linear import Sampling
    from rocerf.models.network.model import NeuralModel

COLUMNS = ("check", "dataset", "model", "value", "people", "answered", "denied", "l2", "l2_se", "share")

#: People of a check at most, the first of the denied.
PEOPLE = 200
SEEDS = (0, 1, 2, 3, 4)
STEPS = (1000, 4000, 10_000, 100_000)
#: Weights of ROAR that are tried, seen from the one that its rule chooses.
AROUND = (-0.2, -0.1, 0.0, 0.1, 0.2, 0.3, 0.4)
EPOCHS = (100, LONGER)
#: Half the side of ROAR's box of parameters.
BOX = 0.1
#: What the authors' code adds to the diagonal of the Hessian, and the share of rows that the paper deletes.
DIAGONAL, SHARE = 0.01, "0.5%"
#: People whose worst rows are looked for at a time.
BLOCK = 500


@dataclass(frozen=True, eq=False)
class LogisticCase:
    """The logistic model of a data set as published, whom it denies, and the run's other finished jobs."""

    dataset: str
    model: LogisticModel
    denied: Array
    jobs: JobFolder
    most: int

    @property
    def few(self) -> Array:
        """The first of the denied."""
        return self.denied[: self.most]

    def cost(self, explainer: Explainer) -> Row:
        """How many of the first people were answered, and the mean cost of those."""
        return mean_cost(self.few, explainer.explain(self.few).matrix, np.asarray(self.model.train.spread))


def write_checks(folder: Path, datasets: Sequence[str] = DATASETS, people: int = PEOPLE) -> Path:
    """Make every check that the run's finished jobs allow, and write ``checks.csv``."""
    jobs, rows = JobFolder(Path(folder) / "jobs"), list[Row]()
    for dataset in datasets:
        name = f"published-{dataset}-lr-model"
        if jobs.side_path(name).is_file():
            model, denied = LogisticModel.load(jobs.side_path(name)), jobs.arrays(name)["denied"]
            case = LogisticCase(dataset, model, denied, jobs, people)
            for check in (autoencoder_seeds, search_steps, roar_weights, roar_box, authors_problem):
                rows += [{"dataset": dataset, "model": "lr", **row} for row in check(case)]
    for dataset in datasets:
        name = f"published-{dataset}-nn-model"
        if jobs.side_path(name).is_file() and len(few := jobs.arrays(name)["denied"][:people]):
            from rocerf.models.network.model import NeuralModel

            network = NeuralModel.load(jobs.side_path(name))
            rows += [*roar_on_networks(dataset, network, few), *stand_ins(dataset, network, few)]
    if "german" in datasets:
        rows += german_networks()
    target = Path(folder) / "checks.csv"
    write_csv(target, COLUMNS, rows)
    return target


def autoencoder_seeds(case: LogisticCase) -> Iterator[Row]:
    """What the authors' C-CHVAE costs, by the seed of its autoencoder and its draws."""
    for seed in SEEDS:
        found = case.cost(baselines.CChvae(case.model, preset="authors", seed=seed))
        yield {"check": "cchvae_seed", "value": seed, **found}


def search_steps(case: LogisticCase) -> Iterator[Row]:
    """What the authors' SCFE costs, by the most steps that a person gets (a tenth of them for one weight).

    ``share`` is its cost over that of the nearest accepted point.
    """
    nearest = case.cost(baselines.Scfe(case.model))["l2"]
    for steps in STEPS:
        found = case.cost(baselines.Scfe(case.model, preset="authors", max_steps=steps))
        yield {"check": "scfe_steps", "value": steps, **found, "share": found["l2"] / nearest}


def roar_weights(case: LogisticCase) -> Iterator[Row]:
    """What the authors' ROAR costs, by its one weight lambda; first the one that its rule chooses for everybody."""
    chosen = _chosen_weight(case)
    yield {"check": "roar_chosen", "value": chosen, "people": len(case.denied)}
    for step in AROUND:
        lam = round(chosen + step, 3)
        if lam >= 0:
            found = case.cost(baselines.Roar(case.model, preset="authors", lam=lam))
            yield {"check": "roar_lambda", "value": lam, **found}


def _chosen_weight(case: LogisticCase) -> float:
    from rocerf.baselines.roar_descent import Descent, choose_lambda
    from rocerf.baselines.standard import Standard, StandardProblem

    descent, space = Descent(case.model, BOX), Standard.of(case.model.train)
    problem = StandardProblem.of(_anywhere(case.denied, np.asarray(case.model.train.spread)), space)
    return round(choose_lambda(descent, descent.linear_models(case.denied, space, None), problem), 3)


def _anywhere(people: Array, spread: Array) -> Master:
    """People who may change everything, at L2 cost."""
    return Master(people, NormCost(Norm.L2, spread), FeasibleSet.around(people, None))


def roar_box(case: LogisticCase) -> Iterator[Row]:
    """Share of all points of ROAR in the run that every model in ROAR's own box accepts."""
    from rocerf.baselines.roar import ParameterBox

    name = f"published-{case.dataset}-lr-roar-explain"
    if not case.jobs.arrays_path(name).is_file():
        return
    arrays = case.jobs.arrays(name)
    points = arrays["points"][np.isfinite(arrays["points"]).all(axis=1)]
    if len(points):
        share = float((ParameterBox(case.model, BOX).read(points).values >= 0).mean())
        counts = {"people": len(arrays["people"]), "answered": len(points)}
        yield {"check": "roar_box", "value": BOX, **counts, "share": share}


def authors_problem(case: LogisticCase) -> Iterator[Row]:
    """The optimum of the problem that the authors' code poses for ROCERF, over all denied people.

    Their Hessian is that of the mean loss without the penalty, with 0.01 added to its diagonal; the k worst rows are
    chosen once, at the person's present point. The model without them is then linear, and the nearest point that it
    accepts is a projection.
    """
    model, spread = case.model, np.asarray(case.model.train.spread)
    middle = model.train.X.mean(axis=0)

    def standardised(rows: Array) -> Array:
        return np.column_stack([(rows - middle) / spread, np.ones(len(rows))])

    X, people = standardised(model.train.X), standardised(case.denied)
    # The model's parameters in these coordinates, from its scores: the model may keep others.
    origin = np.vstack([middle, middle + np.diag(spread)])
    scores = np.asarray(model.score(origin))
    theta = np.append(scores[1:] - scores[0], scores[0])
    accepted = 1 / (1 + np.exp(-X @ theta))
    hessian = (X * (accepted * (1 - accepted))[:, None]).T @ X / len(X) + DIAGONAL * np.eye(len(theta))
    gradients = (accepted - (model.train.y > 0))[:, None] * X
    shifts = np.linalg.solve(hessian, gradients.T).T / len(X)
    k = number_of_deletions(SHARE, len(X))
    moved = np.empty_like(people)
    for first in range(0, len(people), BLOCK):  # all people against all rows would be gigabytes
        part = slice(first, first + BLOCK)
        worst = np.argpartition(people[part] @ shifts.T, k, axis=1)[:, :k]
        moved[part] = theta + shifts[worst].sum(axis=1)
    slopes = moved[:, :-1]
    short = np.maximum(-(moved * people).sum(axis=1), 0)
    steps = slopes * (short / (slopes**2).sum(axis=1))[:, None]
    points = case.denied + steps * spread
    yield {"check": "authors_problem", "value": DIAGONAL, **mean_cost(case.denied, points, spread)}


def roar_on_networks(dataset: str, model: NeuralModel, people: Array) -> Iterator[Row]:
    """Where ROAR's descent on stand-ins ends: mean cost of *all* ends, and the ``share`` that the network accepts."""
    from rocerf.baselines.roar_descent import Descent, find_by_descent

    spread = np.asarray(model.train.spread)
    points = find_by_descent(Descent(model, BOX), _anywhere(people, spread), None)
    there = np.isfinite(points).all(axis=1)
    share = float((model.score(points[there]) >= 0).sum() / len(people))
    where = {"dataset": dataset, "model": "nn", "value": BOX}
    yield {"check": "roar_stand_in", **where, **mean_cost(people, points, spread), "share": share}


def stand_ins(dataset: str, model: NeuralModel, people: Array) -> Iterator[Row]:
    """What the paper's method costs, by the points that its stand-in is fitted to: the authors' and ours."""
    k = number_of_deletions(SHARE, len(model.train))
    samplings: tuple[Sampling, ...] = ("authors", "widened")
    for sampling in samplings:
        found = Rocerf(model, k, promise=LocalLinear(model, k, sampling=sampling)).explain(people)
        cost = mean_cost(people, found.matrix, np.asarray(model.train.spread))
        yield {"check": f"stand_in_{sampling}", "dataset": dataset, "model": "nn", "value": k, **cost}


def german_networks() -> Iterator[Row]:
    """How many test people the network on German's published labels denies, by epochs and seed."""
    from rocerf.models.network.model import NeuralModel

    data = load_dataset("german-as-published")
    people = people_of(data, "published")
    where = {"dataset": "german", "model": "nn", "people": len(people)}
    for epochs in EPOCHS:
        for seed in SEEDS[:3]:
            model = NeuralModel.fit(data.train, epochs=epochs, shuffle=False, seed=seed)
            denied = int((model.predict(people) == 0).sum())
            yield {"check": f"german_{epochs}_epochs", **where, "value": seed, "denied": denied}


def mean_cost(people: Array, points: Array, spread: Array) -> Row:
    """People, how many of them were answered, mean L2 cost of those and its standard error.

    >>> mean_cost(np.zeros((2, 1)), np.array([[4.0], [np.nan]]), np.array([2.0]))
    {'people': 2, 'answered': 1, 'l2': 2.0, 'l2_se': None}
    """
    answered = np.isfinite(points).all(axis=1)
    costs = np.sqrt((((points[answered] - people[answered]) / spread) ** 2).sum(axis=1))
    error = float(costs.std(ddof=1) / np.sqrt(len(costs))) if len(costs) > 1 else None
    mean = float(costs.mean()) if len(costs) else None
    return {"people": len(people), "answered": len(costs), "l2": mean, "l2_se": error}


if __name__ == "__main__":
    from rocerf.reproduction.report import write_report

    write_checks(Path(sys.argv[1]))
    write_report(Path(sys.argv[1]))
