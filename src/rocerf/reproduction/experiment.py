"""The paper's experiment as jobs: what each job computes. What is run is in :mod:`rocerf.reproduction.planning`.

Every case has one `model` job; from it come the `explain` jobs (one for each method, in parts of people where each
person is worked on alone; an `autoencoder` is trained before them), the `retrain` jobs (one for each share of rows and
chunk of removals; what they train judges every method alike), then for each method a `measure` job, a `worst` job (rows
picked for each point) and `sweep` jobs (one for each value of the method's knob). `theorem` jobs stand alone. Retrained
models are kept as arrays, so that another method costs no retraining.
"""

from __future__ import annotations

import math
import time
from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from rocerf.data.datasets import load_dataset
from rocerf.deletion.random_deletions import random_deletions
from rocerf.evaluation.costs import costs_of
from rocerf.evaluation.methods import explained, explainer_named, words_of
from rocerf.models.logistic.model import LogisticModel
from rocerf.models.model import Refittable
from rocerf.reproduction.as_published import ORDER, READ_IN, drawn_order, parts_of, people_of, rows_in, whole_parts
from rocerf.reproduction.jobs import Job, JobFolder, JobFound
from rocerf.reproduction.judges import accepted_by, accepted_without_picked, survived
from rocerf.reproduction.sweeps import options_of
from rocerf.reproduction.theorem import extra_costs
from rocerf.types import Array


@dataclass(frozen=True)
class Experiment:
    """What the jobs compute; ``device`` is where networks live."""

    device: str = "cpu"

    def __call__(self, job: Job, folder: JobFolder) -> JobFound:
        """Do one job: each kind has its method."""
        done: JobFound = getattr(self, f"_{job.kind}")(job, folder)
        return done

    def _model(self, job: Job, folder: JobFolder) -> JobFound:
        inputs = job.inputs
        data = load_dataset(inputs["data"])
        start = time.perf_counter()
        options = {name: inputs[name] for name in ("C", "epochs", "shuffle") if name in inputs}
        options |= {"seed": inputs["draw"]} if "draw" in inputs else {}
        model: Any = _kind(inputs["model"]).fit(data.train, **options, **self._place(inputs["model"]))
        seconds = time.perf_counter() - start
        model.save(folder.side_path(job.name))
        read_in = READ_IN.get(inputs["dataset"])
        people = people_of(data, inputs["setting"], inputs["model"], parts=read_in)
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
            "asked": f"drawn, seed {ORDER}",
        }
        denied, parts = people[accepted == 0], parts_of(data, inputs["setting"], parts=read_in)[accepted == 0]
        order = drawn_order(parts)  # whoever takes the first so many takes a random sample
        return result, {"denied": denied[order], "parts": parts[order], "places": order}

    def _place(self, model: str) -> dict[str, str]:
        """Where a model lives, as an option; a logistic one has no choice."""
        return {"device": self.device} if model == "nn" else {}

    def _load(self, job: Job, folder: JobFolder) -> Any:
        model = job.inputs["model"]
        return _kind(model).load(folder.side_path(job.needs[0]), **self._place(model))

    def _autoencoder(self, job: Job, folder: JobFolder) -> JobFound:
        start = time.perf_counter()
        self._explainer(job, folder, self._load(job, folder)).save_vae(folder.side_path(job.name))
        return {"seconds": time.perf_counter() - start}, {}

    def _explainer(self, job: Job, folder: JobFolder, model: Refittable) -> Any:
        """The method of a job, with its knob turned and its autoencoder in place where it has one."""
        method = "rocerf" if job.inputs["method"].startswith("rocerf_k") else job.inputs["method"]
        explainer: Any = explainer_named(method, model, options_of(job.inputs))
        if "autoencoder" in job.inputs:
            explainer.load_vae(folder.side_path(job.inputs["autoencoder"]))
        return explainer

    def _explain(self, job: Job, folder: JobFolder) -> JobFound:
        inputs = job.inputs
        denied, parts, places = (folder.arrays(job.needs[0])[name] for name in ("denied", "parts", "places"))
        most, first = len(denied[: inputs["people"]]), inputs["first"]
        last = most if inputs["count"] is None else min(most, first + inputs["count"])
        if first and first >= most:
            return {"seconds": 0.0}, {"people": denied[:0], "points": denied[:0]}
        taken, own, lambdas = np.arange(first, last), np.arange(last - first), None
        if (inputs["setting"], inputs["method"]) == ("published", "roar"):
            # Lambda is chosen on the first people of each of the authors' parts.
            share = whole_parts(parts, places, first, last)
            taken, own, lambdas = share.taken, share.own, share.parts
        people = denied[taken]
        model = self._load(job, folder)
        if "moved" in inputs:
            noise = np.random.default_rng([inputs["draw"], first]).standard_normal(people.shape)
            people = people + inputs["moved"] * model.train.spread * noise
        start = time.perf_counter()
        explainer = self._explainer(job, folder, model)
        found = explained(explainer, people, lambdas)
        recourses = found.recourses
        seconds = time.perf_counter() - start
        result = {
            "seconds": seconds,
            "k": recourses.settings.k,
            "sentence": recourses.settings.sentence,
            "parameters": words_of(explainer, recourses),
            "statuses": dict(Counter(recourses.statuses[place].code for place in own)),
        }
        # As published every end counts, also one that the model refuses: the statuses say how many are accepted.
        return result, {"people": people[own], "points": found.ends[own]}

    def _retrain(self, job: Job, folder: JobFolder) -> JobFound:
        inputs = job.inputs
        model: Refittable = self._load(job, folder)
        count = rows_in(inputs["alpha"], len(model.train), inputs["setting"])
        first, seed = inputs["first"], inputs["judge"]
        deletions = random_deletions(model.train, count, inputs["count"], seed=seed, first=first)
        retrained: Any = model.refitted(deletions, seed=training_seed(seed, inputs["place"], first))
        return {"rows_removed": count}, {f"a{i:03d}": values for i, values in enumerate(retrained.arrays())}

    def _measure(self, job: Job, folder: JobFolder) -> JobFound:
        inputs = job.inputs
        model: Refittable = self._load(job, folder)
        people, points = joined(folder, inputs["points"])
        _, plain = joined(folder, inputs["plain"])
        plain = plain[: len(people)]  # some methods are asked about fewer people
        answered = np.isfinite(points).all(axis=1)
        result = costs_of(model, people, points, plain)
        seconds = sum(float(folder.result(name)["seconds"]) for name in [*inputs["prepared"], *inputs["points"]])
        result["seconds_per_person"] = seconds / len(people) if len(people) else None
        # Over the answered and over everybody who was denied: whoever got no answer has no valid one.
        result |= {name: [[] for _ in inputs["alphas"]] for name in ("validity", "validity_all")}
        for name, place in inputs["retrained"] if len(people) else []:
            valid = accepted_by(_restored(model, folder, name), points)
            result["validity"][place] += (valid / answered.sum() if answered.any() else valid * np.nan).tolist()
            result["validity_all"][place] += (valid / len(people)).tolist()
        return result, {}

    def _worst(self, job: Job, folder: JobFolder) -> JobFound:
        inputs = job.inputs
        _, points = joined(folder, inputs["points"])
        model = self._load(job, folder)
        shares = self._without_picked(job, folder, model, points[: inputs["people"]])
        answered = shares[np.isfinite(shares)]
        mean, error = mean_and_error(answered.tolist())
        result = {"validity": mean, "validity_se": error, "people": len(answered), "judge": _words(inputs)}
        result["k"] = rows_in(inputs["share"], len(model.train), inputs["setting"])
        return result, {"shares": shares}

    def _without_picked(self, job: Job, folder: JobFolder, model: Any, points: Array) -> Array:
        """Share of the models retrained without the rows picked for each point (P, d) that accept it; (P,)."""
        inputs = job.inputs
        k = rows_in(inputs["share"], len(model.train), inputs["setting"])
        if inputs["model"] == "lr":
            return survived(model, points, k, effort=inputs["effort"], seed=inputs["judge"])
        outsider = _kind("nn").load(folder.side_path(inputs["outsider"]), **self._place("nn"))
        starts, seed = inputs["starts"], judging_seed(inputs["judge"])
        return accepted_without_picked(model, outsider, points, k, starts=starts, seed=seed)

    def _sweep(self, job: Job, folder: JobFolder) -> JobFound:
        inputs, model = job.inputs, self._load(job, folder)
        if "points" in inputs:
            people, points = joined(folder, inputs["points"])
            people, points = people[: inputs["people"]], points[: inputs["people"]]
            shares = folder.arrays(inputs["worst"])["shares"][: inputs["people"]]
        else:
            people = folder.arrays(job.needs[0])["denied"][: inputs["people"]]
            points = self._explainer(job, folder, model).explain(people).matrix
            shares = self._without_picked(job, folder, model, points)
        costs = costs_of(model, people, points, points)
        result = {name: costs[name] for name in ("people", "answered", "l2", "l2_se", "l1", "l1_se")}
        for column, judges in (("random", inputs["retrained"]), ("random_most", inputs["retrained_most"])):
            later = [_restored(model, folder, name) for name in (judges if len(people) else [])]
            kept = [float(count) / len(people) for models in later for count in accepted_by(models, points)]
            result[column], result[f"{column}_se"] = mean_and_error(kept) if kept else (None, None)
        # Whoever got no answer has no valid one.
        result["picked"], result["picked_se"] = mean_and_error(np.nan_to_num(shares).tolist())
        return {**result, "judge": _words(inputs)}, {"people": people, "points": points, "shares": shares}

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


def _restored(model: Any, folder: JobFolder, name: str) -> Any:
    """The models that a `retrain` job kept."""
    arrays = folder.arrays(name)
    return model.restored([arrays[key] for key in sorted(arrays)])


def _words(inputs: Mapping[str, Any]) -> str:
    """Who picked rows and who judged, in words."""
    if inputs["model"] == "lr":
        return f"adversary ({inputs['effort']}), retrained to the optimum"
    return f"rows picked by another network, {inputs['starts']} fresh starts"


def judging_seed(seed: int) -> int:
    """The seed of the fresh starts that judge picked deletions: other ones than those of random deletions."""
    return int(np.random.SeedSequence([seed, 9000]).generate_state(1)[0])


def mean_and_error(shares: Sequence[float]) -> tuple[float | None, float | None]:
    """Mean and its standard error (0 for one value); nothing of nothing.

    >>> mean_and_error([1.0, 0.5])
    (0.75, 0.25)
    """
    if not shares:
        return None, None
    error = float(np.std(shares, ddof=1) / math.sqrt(len(shares))) if len(shares) > 1 else 0.0
    return float(np.mean(shares)), error


def training_seed(seed: int, place: int, first: int) -> int:
    """The seed of the fresh networks of one chunk; the first chunk's is that of ``validity_curves``."""
    return seed + place if first == 0 else int(np.random.SeedSequence([seed, place, first]).generate_state(1)[0])


def joined(folder: JobFolder, names: Sequence[str]) -> tuple[Array, Array]:
    """People and points of the parts of one method, in order."""
    parts = [folder.arrays(name) for name in names]
    return np.concatenate([part["people"] for part in parts]), np.concatenate([part["points"] for part in parts])
