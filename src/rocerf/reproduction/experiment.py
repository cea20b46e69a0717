"""The paper's experiment as jobs: what is run, and what each job computes.

Every (setting, data set, model) has one `model` job; from it come the `explain` jobs (one for each method, in parts of
people where each person is worked on alone), the `retrain` jobs (one for each share of rows and chunk of removals; what
they train judges every method alike), then for each method a `measure` job and, for logistic models, a `worst` job.
`theorem` jobs stand alone. Retrained models are kept as arrays, so that another method costs no retraining.
"""

from __future__ import annotations

import time
from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from rocerf.data.datasets import Dataset, load_dataset
from rocerf.deletion.random_deletions import random_deletions
from rocerf.evaluation.costs import costs_of
from rocerf.evaluation.methods import PRESET_OF, MethodOptions, explainer_named, words_of
from rocerf.evaluation.metrics import worst_case_validity
from rocerf.models.logistic.model import LogisticModel
from rocerf.models.model import Refittable
from rocerf.promises.simulated import Simulated
from rocerf.reproduction.jobs import Job, JobFolder, JobFound
from rocerf.reproduction.settings import ExperimentSettings
from rocerf.reproduction.theorem import extra_costs
from rocerf.types import Array

#: The data set of each setting, where it is another than the one of that name.
DATA = {("published", "german"): "german-as-published"}

#: The inverse penalty of the logistic models of each setting: that of the paper's code, and scikit-learn's default.
C_OF = {"published": 100.0, "corrected": 1.0}

#: Kinds of jobs, in the order in which they can be done.
KINDS = ("model", "retrain", "explain", "measure", "worst", "theorem")

#: People of one job of the paper's method for networks, which fits a stand-in around each person alone.
PART = 500


@dataclass(frozen=True)
class Case:
    """One setting, data set and model; the names of its jobs."""

    setting: str
    dataset: str
    model: str

    @property
    def name(self) -> str:
        """Begins the name of each of its jobs."""
        return f"{self.setting}-{self.dataset}-{self.model}"

    @property
    def where(self) -> dict[str, Any]:
        """The columns of every table."""
        return {"setting": self.setting, "dataset": self.dataset, "model": self.model}

    @property
    def group(self) -> str:
        """Jobs that take about as long."""
        return f"{self.dataset}-{self.model}"


@dataclass(frozen=True)
class CasePlan:
    """The jobs of one case: by method its measure and worst-case jobs, and the sensitivity's by share k."""

    case: Case
    jobs: tuple[Job, ...]
    methods: tuple[str, ...]
    sensitivity: tuple[float, ...]

    @property
    def model_job(self) -> str:
        """Name of the model's job."""
        return f"{self.case.name}-model"

    def measure(self, method: str) -> str:
        """Name of a method's measure job."""
        return f"{self.case.name}-{method}-measure"

    def worst(self, method: str) -> str:
        """Name of a method's worst-case job."""
        return f"{self.case.name}-{method}-worst"


def at_k(share: float) -> str:
    """The name of the paper's method at another k in the sensitivity figure."""
    return f"rocerf_k{share * 100:g}"


def plan_case(settings: ExperimentSettings, case: Case, test_rows: int) -> CasePlan:
    """All jobs of one case, each after those it needs."""
    methods = settings.methods_of(case.setting, case.model)
    shares = settings.sensitivity_k if (case.setting, case.model) == ("published", "lr") and "rocerf" in methods else ()
    model = Job(f"{case.name}-model", "model", _model_inputs(settings, case), group=case.group)
    retrained = _retrain_jobs(settings, case, model.name)
    plain = _explain_jobs(settings, case, "plain", settings.k, test_rows)
    jobs = [model, *retrained, *plain]
    asked = dict.fromkeys(methods, settings.k) | {at_k(share): share for share in shares if share != settings.k}
    for method, share in asked.items():
        parts = _explain_jobs(settings, case, method, share, test_rows)
        names = {"points": [job.name for job in parts], "plain": [job.name for job in plain]}
        inputs = {**case.where, "method": method, **names, "alphas": list(settings.alphas)}
        inputs["retrained"] = [[job.name, job.inputs["place"]] for job in retrained]
        needs = (model.name, *names["points"], *names["plain"], *(job.name for job in retrained))
        jobs += [*parts, Job(f"{case.name}-{method}-measure", "measure", inputs, needs, case.group)]
        if case.model == "lr" and method in methods:
            jobs.append(_worst_job(settings, case, method, names["points"]))
    return CasePlan(case, tuple(jobs), methods, shares)


def _model_inputs(settings: ExperimentSettings, case: Case) -> dict[str, Any]:
    inputs = {**case.where, "data": DATA.get((case.setting, case.dataset), case.dataset)}
    if case.model == "lr":
        return {**inputs, "C": C_OF[case.setting]}
    epochs = settings.epochs[inputs["data"]]
    return {**inputs, "epochs": epochs, "shuffle": case.setting != "published", "seed": settings.seed}


def _retrain_jobs(settings: ExperimentSettings, case: Case, model: str) -> list[Job]:
    jobs = []
    for place, alpha in enumerate(settings.alphas):
        # The optimum of a logistic model without removals is the model itself.
        trials = 1 if case.model == "lr" and alpha == 0 else settings.trials
        for first in range(0, trials, settings.chunk):
            count = min(settings.chunk, trials - first)
            inputs = {**case.where, "alpha": alpha, "place": place, "first": first, "count": count}
            inputs["seed"] = settings.evaluation_seed
            name = f"{case.name}-retrain-{alpha * 100:g}-{first}"
            jobs.append(Job(name, "retrain", inputs, (model,), case.group))
    return jobs


def _explain_jobs(settings: ExperimentSettings, case: Case, method: str, share: float, test_rows: int) -> list[Job]:
    inputs: dict[str, Any] = {**case.where, "method": method, "people": settings.people}
    if method != "plain":
        inputs |= {"k": f"{share * 100:g}%", "seed": settings.seed}
    if method == "simulated":
        inputs["simulated"] = list(settings.simulated)
    name, needs = f"{case.name}-{method}", (f"{case.name}-model",)
    group = f"{case.group}-{method}"
    most = test_rows if settings.people is None else min(settings.people, test_rows)
    if (case.model, method) != ("nn", "rocerf") or most <= PART:
        return [Job(f"{name}-explain", "explain", {**inputs, "first": 0, "count": None}, needs, group)]
    return [
        Job(f"{name}-explain-{first}", "explain", {**inputs, "first": first, "count": PART}, needs, group)
        for first in range(0, most, PART)
    ]


def _worst_job(settings: ExperimentSettings, case: Case, method: str, points: list[str]) -> Job:
    inputs = {**case.where, "method": method, "points": points, "k": f"{settings.k * 100:g}%"}
    inputs |= {"effort": settings.worst_effort, "people": settings.worst_people, "seed": settings.evaluation_seed}
    return Job(f"{case.name}-{method}-worst", "worst", inputs, (f"{case.name}-model", *points), case.group)


def theorem_jobs(settings: ExperimentSettings) -> list[Job]:
    """One job for each number of training rows."""
    common = {"ks": list(settings.theorem_k), "people": settings.worst_people, "seed": settings.seed}
    return [Job(f"theorem-{n}", "theorem", {"n": n, **common}) for n in settings.theorem_sizes]


@dataclass(frozen=True)
class Experiment:
    """What the jobs compute; ``device`` is where networks live."""

    device: str = "cpu"

    def __call__(self, job: Job, folder: JobFolder) -> JobFound:
        """Do one job: each kind of :data:`KINDS` has its method."""
        done: JobFound = getattr(self, f"_{job.kind}")(job, folder)
        return done

    def _model(self, job: Job, folder: JobFolder) -> JobFound:
        inputs = job.inputs
        data = load_dataset(inputs["data"])
        start = time.perf_counter()
        options = {name: inputs[name] for name in ("C", "epochs", "shuffle", "seed") if name in inputs}
        model: Any = _kind(inputs["model"]).fit(data.train, **options, **self._place(inputs["model"]))
        seconds = time.perf_counter() - start
        model.save(folder.side_path(job.name))
        people = people_of(data, inputs["setting"])
        accepted = model.predict(people)
        result = {
            "train_rows": len(data.train),
            "test_rows": len(people),
            "denied": int((accepted == 0).sum()),
            "accuracy": float((accepted == data.test.y).mean()),
            "parameters": len(model.theta),
            "seconds_fit": seconds,
            "epochs": inputs.get("epochs"),
            "data_sha256": data.train.checksum,
        }
        return result, {"denied": people[accepted == 0]}

    def _place(self, model: str) -> dict[str, str]:
        """Where a model lives, as an option; a logistic one has no choice."""
        return {"device": self.device} if model == "nn" else {}

    def _load(self, job: Job, folder: JobFolder) -> Any:
        model = job.inputs["model"]
        return _kind(model).load(folder.side_path(job.needs[0]), **self._place(model))

    def _explain(self, job: Job, folder: JobFolder) -> JobFound:
        inputs = job.inputs
        people = folder.arrays(job.needs[0])["denied"][: inputs["people"]]
        first, count = inputs["first"], inputs["count"]
        people = people[first : None if count is None else first + count]
        if not len(people) and first:
            return {"seconds": 0.0}, {"people": people, "points": people}
        model = self._load(job, folder)
        shaping, choosing, checking = inputs.get("simulated", (2, 2, 1))
        options = MethodOptions(
            k=inputs.get("k", 0),
            preset=PRESET_OF[inputs["setting"]],
            seed=inputs.get("seed", 0),
            simulated=Simulated(shaping=shaping, choosing=choosing, checking=checking),
        )
        method = "rocerf" if inputs["method"].startswith("rocerf_k") else inputs["method"]
        start = time.perf_counter()
        explainer = explainer_named(method, model, options)
        recourses = explainer.explain(people)
        seconds = time.perf_counter() - start
        result = {
            "seconds": seconds,
            "k": recourses.settings.k,
            "sentence": recourses.settings.sentence,
            "parameters": words_of(explainer, recourses),
            "statuses": dict(Counter(status.code for status in recourses.statuses)),
        }
        return result, {"people": people, "points": recourses.matrix}

    def _retrain(self, job: Job, folder: JobFolder) -> JobFound:
        inputs = job.inputs
        model: Refittable = self._load(job, folder)
        count = rows_in(inputs["alpha"], len(model.train))
        first, seed = inputs["first"], inputs["seed"]
        deletions = random_deletions(model.train, count, inputs["count"], seed=seed, first=first)
        retrained: Any = model.refitted(deletions, seed=training_seed(seed, inputs["place"], first))
        return {"rows_removed": count}, {f"a{i:03d}": values for i, values in enumerate(retrained.arrays())}

    def _measure(self, job: Job, folder: JobFolder) -> JobFound:
        inputs = job.inputs
        model: Refittable = self._load(job, folder)
        people, points = joined(folder, inputs["points"])
        _, plain = joined(folder, inputs["plain"])
        answered = np.isfinite(points).all(axis=1)
        result = costs_of(model, people, points, plain)
        seconds = sum(float(folder.result(name)["seconds"]) for name in inputs["points"])
        result["seconds_per_person"] = seconds / len(people) if len(people) else None
        # Over the answered and over everybody who was denied: whoever got no answer has no valid one.
        result |= {name: [[] for _ in inputs["alphas"]] for name in ("validity", "validity_all")}
        for name, place in inputs["retrained"] if len(people) else []:
            arrays = folder.arrays(name)
            retrained = model.restored([arrays[key] for key in sorted(arrays)])
            if answered.any():
                valid = (retrained.scores(points[answered]) >= 0).sum(axis=1)
            else:
                valid = np.zeros(len(arrays[min(arrays)]))
            result["validity"][place] += (valid / answered.sum() if answered.any() else valid * np.nan).tolist()
            result["validity_all"][place] += (valid / len(people)).tolist()
        return result, {}

    def _worst(self, job: Job, folder: JobFolder) -> JobFound:
        inputs = job.inputs
        _, points = joined(folder, inputs["points"])
        chosen = points[np.isfinite(points).all(axis=1)][: inputs["people"]]
        if not len(chosen):
            return {"validity": None, "people": 0}, {}
        model = self._load(job, folder)
        share = worst_case_validity(model, chosen, inputs["k"], effort=inputs["effort"], seed=inputs["seed"])
        return {"validity": share, "people": len(chosen)}, {}

    def _theorem(self, job: Job, _folder: JobFolder) -> JobFound:
        inputs = job.inputs
        rows = extra_costs(inputs["n"], inputs["ks"], people=inputs["people"], seed=inputs["seed"])
        return {"rows": rows}, {}


def _kind(model: str) -> Any:
    """The class of ``lr`` or ``nn``; torch is imported where a network is asked for."""
    if model == "lr":
        return LogisticModel
    from rocerf.models.network.model import NeuralModel

    return NeuralModel


def people_of(data: Dataset, setting: str) -> Array:
    """Test people (P, d) as the setting sees them.

    The paper's code standardises the test file by the test file's own mean and spread: a person is then ``mean_train +
    sd_train (x - mean_test) / sd_test`` in the columns of the training rows.
    """
    if setting != "published":
        return data.test.X
    train, X = data.train, data.test.X
    return np.asarray(train.X.mean(axis=0) + train.spread * (X - X.mean(axis=0)) / data.test.spread)


def rows_in(share: float, n: int) -> int:
    """A share of n rows as a number, rounded up as everywhere."""
    from rocerf.deletion.k import number_of_deletions

    return number_of_deletions(f"{share * 100!r}%", n)


def training_seed(seed: int, place: int, first: int) -> int:
    """The seed of the fresh networks of one chunk; the first chunk's is that of ``validity_curves``."""
    return seed + place if first == 0 else int(np.random.SeedSequence([seed, place, first]).generate_state(1)[0])


def joined(folder: JobFolder, names: Sequence[str]) -> tuple[Array, Array]:
    """People and points of the parts of one method, in order."""
    parts = [folder.arrays(name) for name in names]
    return np.concatenate([part["people"] for part in parts]), np.concatenate([part["points"] for part in parts])
