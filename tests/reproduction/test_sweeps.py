"""Curves: the figures of a sweep recomputed by plain loops; parts and seeds of a case."""

from __future__ import annotations

import csv
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from sklearn.linear_model import LogisticRegression

import rocerf
from paper_runs import drawn
from problems import random_training_set, refused_people
from rocerf import LogisticModel
from rocerf.baselines import Margin, Roar, Scfe, roar_descent
from rocerf.baselines.roar_descent import Parts
from rocerf.deletion.adversary import Adversary
from rocerf.deletion.random_deletions import random_deletions
from rocerf.reproduction import ExperimentSettings, planning, reproduce, runner
from rocerf.reproduction.as_published import whole_parts
from rocerf.reproduction.experiment import judging_seed
from rocerf.reproduction.jobs import JobFolder
from rocerf.reproduction.judges import accepted_without_picked, picked_rows
from rocerf.reproduction.planning import OUTSIDER, Case, cases_of, plan_case
from rocerf.reproduction.sweeps import KNOB_OF, VALUES, options_of, own_value

TINY: dict[str, Any] = {
    "datasets": ["german"],
    "models": ["lr"],
    "settings": ["corrected"],
    "methods": ["scfe", "margin", "roar", "rocerf"],
    "alphas": [0, 0.005],
    "trials": 4,
    "chunk": 3,
    "people": 8,
    "worst_people": 6,
    "sweep_people": 5,
    "sweeps": {"margin": [0.5, 1.0], "roar": [0.02], "rocerf": [0.01]},
    "theorem_sizes": [],
    "seeds": 1,
}
FRESH, EPOCHS = 2, 60


def tiny(**changes: Any) -> ExperimentSettings:
    return ExperimentSettings.preset_named("quick").changed(**TINY | changes)


def rows(path: Path) -> list[dict[str, str]]:
    with path.open(encoding="utf-8", newline="") as file:
        return list(csv.DictReader(file))


@pytest.fixture(autouse=True)
def no_report(monkeypatch: pytest.MonkeyPatch) -> None:
    """The report has tests of its own."""
    monkeypatch.setattr(runner, "_report", lambda target: (target / "report.html", ""))


@pytest.mark.slow
def test_every_figure_of_a_logistic_sweep_is_that_of_plain_loops(tmp_path: Path) -> None:
    settings = tiny()
    assert reproduce(settings, tmp_path).failed == {}
    found = {(row["method"], float(row["value"])): row for row in rows(tmp_path / "sweeps.csv")}
    model = rocerf.LogisticModel.fit(rocerf.load_dataset("german").train, C=1.0)
    denied = drawn(np.array([x for x in rocerf.load_dataset("german").test.X if model.predict(x[None])[0] == 0]), 5)
    makers: dict[tuple[str, float], Any] = {("scfe", 0.0): Scfe(model)}
    makers |= {("margin", value): Margin(model, margin=value) for value in (0.2, 0.5, 1.0)}
    makers |= {("roar", value): Roar(model, delta_max=value) for value in (0.02, 0.1)}
    makers |= {
        ("rocerf", value): rocerf.Rocerf(model, k, promise="first_order") for value, k in ((0.005, 4), (0.01, 8))
    }
    assert list(found) == list(makers)
    removals = random_deletions(model.train, 4, 4, seed=settings.evaluation_seed)
    later = [without(model, ids) for ids in removals]
    for key, maker in makers.items():
        points = np.array([maker.explain(person[None]).matrix[0] for person in denied])
        lengths = [np.linalg.norm((p - x) / model.train.spread) for p, x in zip(points, denied, strict=True)]
        random = [np.mean([score(p) >= 0 for p in points]) for score in later]
        attacks = Adversary(model, 4, effort="quick", seed=settings.evaluation_seed).attack_all(points)
        picked = [without(model, ids)(p) >= 0 for p, ids in zip(points, attacks.deleted_ids, strict=True)]
        row = found[key]
        assert (row["people"], row["answered"], row["knob"]) == ("5", "5", KNOB_OF[key[0]])
        assert float(row["l2"]) == pytest.approx(np.mean(lengths), rel=1e-4)
        assert float(row["l2_se"]) == pytest.approx(np.std(lengths, ddof=1) / np.sqrt(5), rel=1e-3)
        assert float(row["random"]) == pytest.approx(np.mean(random))
        assert float(row["random_se"]) == pytest.approx(np.std(random, ddof=1) / 2)
        assert float(row["picked"]) == pytest.approx(np.mean(picked))
        assert row["judge"] == "adversary (quick), retrained to the optimum"
    shares = [float(found["margin", value]["picked"]) for value in (0.2, 0.5, 1.0)]
    assert shares == sorted(shares)  # and it can tell them apart:
    assert shares[0] < shares[-1]
    worst = {row["method"]: row for row in rows(tmp_path / "worst.csv")}
    assert {name: row["people"] for name, row in worst.items()} == dict.fromkeys(TINY["methods"], "6")


def without(model: rocerf.LogisticModel, ids: Any) -> Callable[[np.ndarray], float]:
    """The score of scikit-learn's model fitted without some rows, scaled as before."""
    kept = np.setdiff1d(np.arange(len(model.train)), model.train.positions(ids))
    centre, spread = model.train.X.mean(axis=0), model.train.spread
    fitted = LogisticRegression(C=1.0, tol=1e-10, max_iter=10_000)
    fitted.fit((model.train.X[kept] - centre) / spread, model.train.y[kept])
    return lambda point: float(fitted.decision_function(((point - centre) / spread)[None])[0])


@pytest.mark.slow
def test_picked_deletions_of_networks_are_those_of_plain_loops(tmp_path: Path) -> None:
    few: dict[str, Any] = {"models": ["nn"], "methods": ["scfe", "margin"], "epochs": EPOCHS, "judge_starts": FRESH}
    settings = tiny(**few, sweeps={"margin": [0.5]}, sweep_people=2, alphas=[0.005])
    assert reproduce(settings, tmp_path).failed == {}
    found = {(row["method"], float(row["value"])): row for row in rows(tmp_path / "sweeps.csv")}
    assert list(found) == [("scfe", 0.0), ("margin", 0.5), ("margin", 2.0)]
    data = rocerf.load_dataset("german")
    model = rocerf.NeuralModel.fit(data.train, seed=0, epochs=EPOCHS)
    outsider = rocerf.NeuralModel.fit(data.train, seed=OUTSIDER, epochs=EPOCHS)
    denied = drawn(data.test.X[model.predict(data.test.X) == 0], 2)
    for (method, value), row in found.items():
        points = Margin(model, margin=value).explain(denied).matrix
        shares = []
        for point in points:
            order = np.argsort(outsider.harms(point[None])[0], kind="stable")
            gone = data.train.ids[order[:4]]
            own = model.refitted([gone] * FRESH, seed=judging_seed(settings.evaluation_seed))
            shares.append(float((own.scores(point[None])[:, 0] >= 0).mean()))
        assert float(row["picked"]) == pytest.approx(np.mean(shares)), (method, value)
        assert row["judge"] == f"rows picked by another network, {FRESH} fresh starts"
        later = model.refitted(random_deletions(data.train, 4, 3, seed=settings.evaluation_seed), seed=2023)
        kept = JobFolder(tmp_path / "jobs").arrays("corrected-german-nn-retrain-0.5-0")
        judges = model.restored([kept[key] for key in sorted(kept)])
        np.testing.assert_allclose(judges.scores(points), later.scores(points), rtol=1e-6)
    worst = {row["method"]: float(row["validity"]) for row in rows(tmp_path / "worst.csv")}
    assert worst == {name: float(found[name, value]["picked"]) for name, value in (("scfe", 0.0), ("margin", 2.0))}


class Unequal:
    """A network whose fresh starts accept the first point, and a network that names rows."""

    def __init__(self) -> None:
        self.train = rocerf.TrainingSet(np.arange(12.0).reshape(6, 2), [0, 1, 0, 1, 0, 1], ids=list("abcdef"))
        self.asked: list[Any] = []

    def harms(self, X: np.ndarray) -> np.ndarray:
        return np.where(np.arange(6) % 2 == (X[:, :1] > 0), -1.0 - np.arange(6), 1.0)

    def refitted(self, deletions: Any, *, seed: int, trials: Any) -> Any:
        self.asked = [(list(ids), trial) for ids, trial in zip(deletions, trials, strict=True)]
        return Later([1.0 if trial == 0 else -1.0 for trial in trials])


class Later(list[float]):
    def __getitem__(self, part: Any) -> Any:
        return Later(list.__getitem__(self, part))

    def scores(self, X: np.ndarray) -> np.ndarray:
        return np.array(self)[:, None] * np.ones(len(X))


def test_each_point_is_judged_without_its_own_rows_and_no_point_has_no_share() -> None:
    network = Unequal()
    points = np.array([[1.0, 0.0], [np.nan, np.nan], [-1.0, 0.0]])
    shares = accepted_without_picked(network, network, points, 2, starts=4, seed=0)
    assert shares.tolist()[::2] == [0.25, 0.25]
    assert np.isnan(shares[1])
    assert [(sorted(ids), trial) for ids, trial in network.asked] == [
        *((["d", "f"], start) for start in range(4)),
        *((["c", "e"], start) for start in range(4)),
    ]
    assert [sorted(ids) for ids in picked_rows(network, points[:1], 1)] == [["f"]]


@pytest.mark.slow
def test_parts_give_the_same_points_as_the_whole(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    methods = ["margin", "cchvae", "rocerf"]
    settings = tiny(models=["nn"], methods=methods, sweep_people=0, people=4, epochs=100)
    reproduce(settings, tmp_path / "whole", only=["explain"])
    monkeypatch.setattr(planning, "PART", 3)
    reproduce(settings, tmp_path / "parts", only=["explain"])
    whole, parts = JobFolder(tmp_path / "whole" / "jobs"), JobFolder(tmp_path / "parts" / "jobs")
    case, spread = Case("corrected", "german", "nn"), rocerf.load_dataset("german").train.spread
    planned = [job.name for job in plan_case(settings, case, 200).jobs if job.kind == "explain"]
    for method in ("plain", *methods):
        own = [name for name in planned if name.startswith(f"{case.name}-{method}-explain-")]
        assert [name.rsplit("-", 1)[1] for name in own] == ["0", "3"]
        one = whole.arrays(f"{case.name}-{method}-explain")
        many = {key: np.concatenate([parts.arrays(name)[key] for name in own]) for key in ("people", "points")}
        np.testing.assert_array_equal(one["people"], many["people"])
        assert np.isfinite(one["points"]).any()
        # Autoencoders decode in single precision, in other batches.
        np.testing.assert_allclose(one["points"] / spread, many["points"] / spread, atol=1e-5, err_msg=method)


def test_seeds_share_what_judges_and_name_their_jobs() -> None:
    settings = tiny(models=["lr", "nn"], methods=["scfe", "cchvae", "retrained"], seeds=3, people=None)
    cases = cases_of(settings, "corrected", "german")
    assert [(case.model, case.seed) for case in cases] == [
        ("lr", 0),
        ("lr", 1),
        ("lr", 2),
        ("nn", 0),
        ("nn", 1),
        ("nn", 2),
    ]
    plans = [plan_case(settings, case, 200) for case in cases]
    assert plans[1].methods == ("cchvae",)  # a logistic model has no seed, its autoencoder has one
    assert plans[4].methods == plans[3].methods == ("scfe", "cchvae", "retrained")
    kinds = [{job.kind for job in plan.jobs} for plan in plans]
    assert all("retrain" in kinds[place] for place in (0, 3))
    assert not any("retrain" in kinds[place] for place in (1, 2, 4, 5))
    assert ["model" in found for found in kinds] == [True, False, False, True, True, True]
    jobs = [job for plan in plans for job in plan.jobs]
    planned = {job.name: job for job in jobs}
    assert all(planned[job.name] == job for job in jobs)
    twice = len(jobs) - len(planned)
    assert twice == 3 * 2  # a network's case plans the autoencoder of its rows too, and the model that this needs
    first, later = plans[3].jobs, plans[5].jobs
    own = [job.name for job in later if "-lr-" not in job.name]
    assert all(name.startswith("corrected-german-nn-s2-") for name in own)
    assert len(later) - len(own) == 2
    draws = {job.name: job.inputs["draw"] for job in (*first, *later) if "draw" in job.inputs}
    assert draws["corrected-german-nn-model"] == draws["corrected-german-nn-scfe-explain"] == 0
    assert draws["corrected-german-nn-s2-model"] == draws["corrected-german-nn-s2-scfe-explain"] == 2
    assert draws["corrected-german-nn-outsider"] == OUTSIDER
    people = {job.name.split("german-")[1]: job.inputs["people"] for job in later if job.kind in ("explain", "worst")}
    assert people["nn-s2-scfe-explain"] == settings.seed_people
    assert people["nn-s2-retrained-explain"] == people["nn-s2-scfe-worst"] == settings.seed_worst_people
    # Every value of a knob for the first seed, that of the tables for the others.
    assert len(plans[5].sweeps) == 3


def test_knobs_reach_the_methods() -> None:
    where = {"setting": "corrected", "dataset": "german", "model": "nn", "draw": 3, "k": "0.5%"}
    for method, values in VALUES.items():
        options = options_of({**where, "method": method, "knob": KNOB_OF[method], "value": values[1]})
        assert options.seed == 3
        share = f"{values[1] * 100:g}%"
        knob = KNOB_OF[method]
        own = {} if knob == "k" else {knob: values[1]}
        simulated = share if method == "simulated" else None
        withstood = share if knob == "k" and method != "simulated" else "0.5%"
        assert (dict(options.own), options.simulated_k, options.k) == (own, simulated, withstood)
    table = options_of({**where, "method": "roar"})
    assert (dict(table.own), table.k, own_value("margin", "nn", 0.005)) == ({}, "0.5%", 2.0)


def test_the_values_of_the_tables_are_the_methods_own_defaults() -> None:
    model = rocerf.LogisticModel.fit(rocerf.TrainingSet([[1.0], [2.0], [3.0], [4.0]], [0, 1, 0, 1]))
    assert own_value("margin", "lr", 0.005) == Margin(model).margin
    assert own_value("roar", "lr", 0.005) == Roar(model).delta_max
    assert own_value("cchvae", "lr", 0.005) == rocerf.baselines.CChvae(model).shell
    assert f"{own_value('simulated', 'lr', 0.005):.0%}" == rocerf.promises.Simulated.default_k


def test_the_authors_lambda_does_not_depend_on_how_people_are_cut(monkeypatch: pytest.MonkeyPatch) -> None:
    """Of each of the authors' parts the first few people choose it, also where a job ends inside of a part."""
    monkeypatch.setattr(roar_descent, "STEP_SIZE", 0.03)
    model = LogisticModel.fit(random_training_set(3, n=200), C=10.0)
    people = refused_people(model, 3, 60)
    people = people[np.argsort(-model.score(people))]
    denied, labels = people[[*range(0, 24, 2), *range(48, 60)]], np.repeat(np.arange(2), 12)
    denied[[12, 13, 14]] = people[:3]  # the second part begins with people who need little
    roar = Roar(model, preset="authors")
    whole = roar.explained(denied, parts=Parts(labels, 24)).ends
    for order in (np.arange(24), np.random.default_rng(0).permutation(24)):  # asked as they come, or drawn
        for first, last in ((0, 14), (14, 24)):  # of the second part the first job has two people only
            share = whole_parts(labels[order], order, first, last)
            ends = roar.explained(denied[order][share.taken], parts=share.parts).ends[share.own]
            np.testing.assert_allclose(ends, whole[order][first:last], rtol=1e-9)
    alone = roar.explained(denied[:14], parts=Parts(labels[:14], 24)).ends
    assert not np.allclose(alone[12:], whole[12:14])  # the two alone would have chosen another
