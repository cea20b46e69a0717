"""What is run: the jobs of each case of the paper's experiment, each after those it needs.

A case is a setting, a data set, a model and a seed. Cases of seeds above 0 say how far figures move with what is drawn
when a network or an autoencoder is trained: they have fewer people, share the retrained models that judge (a network
trained afresh does not depend on the one before) and, for logistic models, the model, which has no seed; there only the
methods that train something of their own are run again, and the authors' search, which has no seed but is not
continuous: people moved in the ninth digit get other points, so that one run of it is one draw.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Any

from rocerf.reproduction.as_published import C_OF, DATA, READ_IN, left_out
from rocerf.reproduction.jobs import Job
from rocerf.reproduction.published import VARIANT_OF, is_run
from rocerf.reproduction.settings import ExperimentSettings
from rocerf.reproduction.sweeps import KNOB_OF, own_value

#: Kinds of jobs, in the order in which they can be done.
KINDS = ("model", "retrain", "autoencoder", "explain", "measure", "worst", "sweep", "theorem")

#: People of one job of a method that works on each person alone and takes long.
PART = 500
ALONE = ("plain", "scfe", "margin", "roar", "cchvae", "cchvae_trained", "rocerf", "rocerf_exact")

#: Methods with an autoencoder that is trained anew, which is all that has a seed about a logistic model.
AUTOENCODERS = {"published": ("cchvae_trained",), "corrected": ("cchvae",)}

#: Methods by the authors' search, and by how much people are moved for seeds above 0, in standard deviations.
SEARCHES, MOVED = ("scfe", "rocerf"), 1e-9

#: The seed of the network that picks rows and has no other part.
OUTSIDER = 1001


@dataclass(frozen=True)
class Case:
    """One setting, data set, model and seed; the names of its jobs."""

    setting: str
    dataset: str
    model: str
    seed: int = 0

    @property
    def name(self) -> str:
        """Begins the name of each of its jobs."""
        return f"{self.setting}-{self.dataset}-{self.model}" + (f"-s{self.seed}" if self.seed else "")

    @property
    def first(self) -> Case:
        """The case of seed 0, whose retrained models judge here too."""
        return replace(self, seed=0)

    @property
    def model_job(self) -> str:
        """Name of the model's job."""
        return f"{self.first.name if self.model == 'lr' else self.name}-model"

    @property
    def outsider(self) -> str | None:
        """Name of the job of the network that picks rows; none where the adversary does."""
        return None if self.model == "lr" else f"{self.first.name}-outsider"

    @property
    def where(self) -> dict[str, Any]:
        """The columns of every table."""
        return {"setting": self.setting, "dataset": self.dataset, "model": self.model, "seed": self.seed}

    @property
    def group(self) -> str:
        """Jobs that take about as long."""
        return f"{self.dataset}-{self.model}"


@dataclass(frozen=True)
class CasePlan:
    """The jobs of one case: by method its measure and worst-case jobs, the sensitivity's by share k, the sweeps'."""

    case: Case
    jobs: tuple[Job, ...]
    methods: tuple[str, ...]
    sensitivity: tuple[float, ...]
    sweeps: tuple[str, ...] = ()

    @property
    def model_job(self) -> str:
        """Name of the model's job."""
        return self.case.model_job

    def measure(self, method: str) -> str:
        """Name of a method's measure job."""
        return f"{self.case.name}-{method}-measure"

    def worst(self, method: str) -> str:
        """Name of a method's worst-case job."""
        return f"{self.case.name}-{method}-worst"


def at_k(share: float) -> str:
    """The name of the paper's method at another k in the sensitivity figure."""
    return f"rocerf_k{share * 100:g}"


def cases_of(settings: ExperimentSettings, setting: str, dataset: str) -> list[Case]:
    """The cases of one setting and data set: seed 0 of each model, then the other seeds where something has one."""
    cases: list[Case] = []
    variant = dataset in VARIANT_OF  # of what was published
    for model in (model for model in settings.models if is_run(setting, dataset, model)):
        seeded = not variant and (
            model == "nn" or any(name in settings.methods_of(setting, "lr") for name in drawn(setting))
        )
        cases += [Case(setting, dataset, model, seed) for seed in range(settings.of(model).seeds if seeded else 1)]
    return cases


def drawn(setting: str) -> tuple[str, ...]:
    """Methods about logistic models whose points are one draw of many."""
    return (*AUTOENCODERS[setting], *(SEARCHES if setting == "published" else ()))


def plan_case(settings: ExperimentSettings, case: Case, test_rows: int) -> CasePlan:
    """All jobs of one case, each after those it needs; those of seed 0 are planned before those of other seeds."""
    settings = settings.of(case.model)
    plan = _Planner(settings, case, test_rows)
    methods = plan.methods
    paper = (case.setting, case.model, case.seed) == ("published", "lr", 0) and "rocerf" in methods
    shares = settings.sensitivity_k if paper and case.dataset not in READ_IN else ()
    plain = plan.explain("plain", settings.k)
    jobs = [*plan.shared(), *plain]
    sweeps: list[Job] = []
    for method in methods:
        parts = plan.explain(method, settings.k)
        worst = plan.worst(method, parts)
        jobs += [*plan.prepared(method), *parts, plan.measure(method, parts, plain), worst]
        sweeps += plan.sweep(method, parts, worst)
    for share in (share for share in shares if share != settings.k):
        parts = plan.explain(at_k(share), share)
        jobs += [*parts, plan.measure(at_k(share), parts, plain)]
    return CasePlan(case, (*jobs, *sweeps), methods, shares, tuple(job.name for job in sweeps))


def model_inputs(settings: ExperimentSettings, case: Case) -> dict[str, Any]:
    """What a case's model is made from."""
    inputs = {**case.where, "data": DATA.get((case.setting, case.dataset), case.dataset)}
    if case.model == "lr":
        return {**inputs, "C": C_OF[case.setting]}
    epochs = settings.epochs[inputs["data"]]
    return {**inputs, "epochs": epochs, "shuffle": case.setting != "published", "draw": settings.seed + case.seed}


class _Planner:
    """Makes the jobs of one case."""

    def __init__(self, settings: ExperimentSettings, case: Case, test_rows: int) -> None:
        self.settings, self.case, self.test_rows = settings, case, test_rows
        self.retrained = self._retrain_jobs(enumerate(settings.alphas))
        at_own_k = [job for job in self.retrained if job.inputs["alpha"] == settings.k]
        #: Those that judge sweeps: without as many rows as the methods are to withstand, and without the most.
        self.judging = at_own_k or self._retrain_jobs([(len(settings.alphas), settings.k)])
        largest = max(settings.alphas)
        self.judging_most = [job for job in self.retrained if job.inputs["alpha"] == largest > settings.k]

    @property
    def methods(self) -> tuple[str, ...]:
        """The methods of this case, in the order of the tables."""
        missing = left_out(self.case.setting, self.case.dataset)
        asked = self.settings.methods_of(self.case.setting, self.case.model)
        run = (name for name in asked if is_run(self.case.setting, self.case.dataset, self.case.model, name))
        methods = tuple(name for name in run if name not in missing)
        if self.case.model == "nn" or not self.case.seed:
            return methods
        return tuple(name for name in methods if name in drawn(self.case.setting))

    def shared(self) -> list[Job]:
        """The model and what judges, as far as it is not that of seed 0."""
        case, inputs = self.case, model_inputs(self.settings, self.case)
        if case.seed:
            return [] if case.model == "lr" else [Job(case.model_job, "model", inputs, group=case.group)]
        others = [] if self.judging[0] in self.retrained or not self.settings.sweep_people else self.judging
        jobs = [Job(case.model_job, "model", inputs, group=case.group), *self.retrained, *others]
        if case.outsider is not None:
            jobs.append(Job(case.outsider, "model", {**inputs, "draw": OUTSIDER}, group=case.group))
        return jobs

    def _retrain_jobs(self, places: Any) -> list[Job]:
        settings, case, jobs = self.settings, self.case.first, []
        for place, alpha in places:
            # The optimum of a logistic model without removals is the model itself.
            trials = 1 if case.model == "lr" and alpha == 0 else settings.trials
            for first in range(0, trials, settings.chunk):
                count = min(settings.chunk, trials - first)
                inputs = {**case.where, "alpha": alpha, "place": place, "first": first, "count": count}
                inputs["judge"] = settings.evaluation_seed
                name = f"{case.name}-retrain-{alpha * 100:g}-{first}"
                jobs.append(Job(name, "retrain", inputs, (case.model_job,), case.group))
        return jobs

    def _most(self, method: str) -> int | None:
        """At most so many people are asked about by a method; None is all."""
        settings, case = self.settings, self.case
        limits = [settings.people] + ([settings.seed_people] if case.seed else [])
        if (case.model, method) == ("nn", "retrained"):
            limits.append(settings.seed_worst_people if case.seed else settings.retrained_people)
        return min((limit for limit in limits if limit is not None), default=None)

    def _autoencoder(self, method: str) -> str | None:
        """Name of the job that trains a method's autoencoder, once for all models, parts and values of its knob."""
        return f"{self._learning.name}-{method}-autoencoder" if method in AUTOENCODERS[self.case.setting] else None

    @property
    def _learning(self) -> Case:
        """The case whose autoencoders serve here: they learn the training rows, whatever the model."""
        return replace(self.case, model="lr")

    def prepared(self, method: str) -> list[Job]:
        """What is done once for all people of a method; cases of other models plan the very same job."""
        name, case = self._autoencoder(method), self._learning
        if name is None:
            return []
        inputs = {**case.where, "method": method, "draw": self.settings.seed + case.seed}
        trained = Job(name, "autoencoder", inputs, (case.model_job,), case.group)
        if self.case.model == "lr":  # its first seed plans the model
            return [trained]
        return [Job(case.model_job, "model", model_inputs(self.settings, case.first), group=case.group), trained]

    def explain(self, method: str, share: float) -> list[Job]:
        """One job, or one for each part of the people."""
        settings, case = self.settings, self.case
        people = self._most(method)
        inputs: dict[str, Any] = {**case.where, "method": method, "people": people}
        if method != "plain":
            inputs |= {"k": f"{share * 100:g}%", "draw": settings.seed + case.seed}
        if case.seed and case.model == "lr" and method in SEARCHES:
            inputs["moved"] = MOVED
        if method == "simulated":
            inputs["simulated"] = list(settings.simulated)
        if (case.model, method) == ("nn", "retrained"):
            inputs |= {"fresh_starts": list(settings.fresh_starts), "search": settings.worst_effort}
        name, group = f"{case.name}-{method}", f"{case.group}-{method}"
        autoencoder = self._autoencoder(method)
        inputs |= {} if autoencoder is None else {"autoencoder": autoencoder}
        needs = (case.model_job, *([autoencoder] if autoencoder else []))
        most = self.test_rows if people is None else min(people, self.test_rows)
        if most <= PART or not self._in_parts(method):
            return [Job(f"{name}-explain", "explain", {**inputs, "first": 0, "count": None}, needs, group)]
        return [
            Job(f"{name}-explain-{first}", "explain", {**inputs, "first": first, "count": PART}, needs, group)
            for first in range(0, most, PART)
        ]

    def _in_parts(self, method: str) -> bool:
        """Whether a method takes long and works on each person alone."""
        base = "rocerf" if method.startswith("rocerf_k") else method
        slow = self.case.setting == "published" or self.case.model == "nn" or base == "cchvae"
        return slow and base in ALONE

    def measure(self, method: str, parts: Sequence[Job], plain: Sequence[Job]) -> Job:
        """Costs, and validity under random deletions."""
        names = {"points": [job.name for job in parts], "plain": [job.name for job in plain]}
        inputs = {**self.case.where, "method": method, **names, "alphas": list(self.settings.alphas)}
        inputs["retrained"] = [[job.name, job.inputs["place"]] for job in self.retrained]
        inputs["prepared"] = [job.name for job in self.prepared(method) if job.kind == "autoencoder"]
        judges = (job.name for job in self.retrained)
        needs = (self.case.model_job, *inputs["prepared"], *names["points"], *names["plain"], *judges)
        return Job(f"{self.case.name}-{method}-measure", "measure", inputs, needs, self.case.group)

    def worst(self, method: str, parts: Sequence[Job]) -> Job:
        """The share accepted without the rows picked for each point."""
        points = [job.name for job in parts]
        inputs = {**self.case.where, "method": method, "points": points, **self._judge()}
        needs = (self.case.model_job, *points, *([self.case.outsider] if self.case.outsider else []))
        return Job(f"{self.case.name}-{method}-worst", "worst", inputs, needs, self.case.group)

    def _judge(self) -> dict[str, Any]:
        """How points are judged without the rows picked for each: at how many people, and how."""
        settings, case = self.settings, self.case
        limits = [settings.worst_people] + ([settings.seed_worst_people] if case.seed else [])
        if case.model == "nn" and settings.sweep_people:  # each point has networks of its own retrained
            limits.append(settings.sweep_people)
        people = min(limits)
        inputs = {"share": settings.k, "people": people, "judge": settings.evaluation_seed}
        if case.model == "lr":
            return {**inputs, "effort": settings.worst_effort}
        return {**inputs, "outsider": case.outsider, "starts": settings.judge_starts}

    def sweep(self, method: str, parts: Sequence[Job], worst: Job) -> list[Job]:
        """Jobs of a method's own value of its knob and, for corrected methods, of the other values."""
        settings, case = self.settings, self.case
        if not settings.sweep_people or method not in KNOB_OF:
            return []
        own = own_value(method, case.model, settings.k)
        judge = self._judge()
        judge["people"] = min(judge["people"], settings.sweep_people)
        inputs = {**case.where, "method": method, "knob": KNOB_OF[method], **judge}
        inputs["retrained"] = [job.name for job in self.judging]
        inputs["retrained_most"] = [job.name for job in self.judging_most]
        needs = (case.model_job, *inputs["retrained"], *inputs["retrained_most"])
        points = [job.name for job in parts]
        answered = {**inputs, "value": own, "points": points, "worst": worst.name}
        jobs = [self._sweep_job(answered, (*needs, *points, worst.name))]
        if case.setting != "corrected" or case.seed >= settings.sweep_seeds:
            return jobs
        given = ("draw", "simulated", "fresh_starts", "search", "autoencoder")
        inputs |= {key: parts[0].inputs[key] for key in given if key in parts[0].inputs}
        needs = (*needs, *(name for name in (case.outsider, inputs.get("autoencoder")) if name))
        values = [value for value in settings.sweeps.get(method, ()) if value != own]
        return jobs + [self._sweep_job({**inputs, "value": value}, needs) for value in values]

    def _sweep_job(self, inputs: dict[str, Any], needs: tuple[str, ...]) -> Job:
        name = f"{self.case.name}-{inputs['method']}-sweep-{inputs['value']:g}"
        return Job(name, "sweep", inputs, needs, f"{self.case.group}-{inputs['method']}")


def theorem_jobs(settings: ExperimentSettings) -> list[Job]:
    """One job for each number of training rows."""
    common = {"ks": list(settings.theorem_k), "people": settings.worst_people, "seed": settings.seed}
    return [Job(f"theorem-{n}", "theorem", {"n": n, **common}) for n in settings.theorem_sizes]
