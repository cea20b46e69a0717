"""The demonstration: German Credit, plain counterfactuals beside recourse that expects deletions."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np

from rocerf.baselines.scfe import Scfe
from rocerf.data.datasets import Dataset, load_dataset
from rocerf.data.schema import Direction, FeatureSchema, Kind
from rocerf.evaluation.metrics import Validity, validity_curves
from rocerf.models.logistic import LogisticModel
from rocerf.recourse.explainer import Rocerf
from rocerf.recourse.result import Recourse, Recourses

FRACTIONS = (0.0, 0.005, 0.01, 0.02, 0.03, 0.05)
SHARES = ("0.5%", "2%")


@dataclass(frozen=True, eq=False)
class Method:
    """One way of giving recourse, with its answers and how they fared."""

    name: str
    key: str
    recourses: Recourses
    validity: tuple[Validity, ...]

    @property
    def mean_cost(self) -> float:
        """Mean cost over answered people."""
        return float(self.recourses.costs[self.recourses.answered].mean())


@dataclass(frozen=True, eq=False)
class Demo:
    """All that the demonstration measured."""

    dataset: Dataset
    accuracy: float
    denied: int
    applicants: int
    methods: tuple[Method, ...]
    trials: int
    seed: int
    example: Example

    def to_dict(self) -> dict[str, Any]:
        """Plain values for JSON."""
        return {
            "dataset": self.dataset.name,
            "accuracy": self.accuracy,
            "applicants": self.applicants,
            "denied": self.denied,
            "trials": self.trials,
            "seed": self.seed,
            "data_checksum": self.dataset.train.checksum,
            "methods": [
                {
                    "method": method.name,
                    "k": method.recourses.settings.k,
                    "mean_cost": method.mean_cost,
                    "answered": int(method.recourses.answered.sum()),
                    "validity": {str(v.fraction): [v.mean, v.standard_error] for v in method.validity},
                }
                for method in self.methods
            ],
        }


@dataclass(frozen=True, eq=False)
class Example:
    """One person's recourse when only amounts and durations may change, and how many it could serve."""

    number: int
    plain: Recourse
    robust: Recourse
    answered: int


def run_demo(*, trials: int = 100, seed: int = 0, progress: Callable[[str, int, int], None] | None = None) -> Demo:
    """Train, list the denied, give each a plain and two robust recourses, delete at random, retrain, compare."""
    data = load_dataset("german")
    model = LogisticModel.fit(data.train, C=1.0)
    people = data.test.frame()
    accepted = model.predict(people)
    denied = people[accepted == 0]
    explained = [("plain counterfactual", "plain", Scfe(model).explain(denied))]
    explained += [
        (f"ROCERF first_order, k = {share}", f"first_order_{share}", Rocerf(model, share, seed=seed).explain(denied))
        for share in SHARES
    ]
    curves = validity_curves(
        model,
        {key: recourses.points for _, key, recourses in explained},
        FRACTIONS,
        trials,
        seed,
        progress=None if progress is None else lambda done, total: progress("retraining", done, total),
    )
    return Demo(
        dataset=data,
        accuracy=float((accepted == data.test.y).mean()),
        denied=len(denied),
        applicants=len(people),
        methods=tuple(Method(name, key, found, tuple(curves[key])) for name, key, found in explained),
        trials=trials,
        seed=seed,
        example=_example(model, data, denied),
    )


def amounts_only(schema: FeatureSchema) -> FeatureSchema:
    """The schema with every category held fixed, so that an answer reads as amounts and durations."""
    for feature in schema:
        if feature.kind is Kind.INDICATOR:
            schema = schema.edit(feature.name, direction=Direction.FIXED)
    return schema


def _example(model: LogisticModel, data: Dataset, denied: Any) -> Example:
    schema = amounts_only(data.schema)
    plain = Scfe(model, cost="l1", schema=schema).explain(denied)
    robust = Rocerf(model, SHARES[0], cost="l1", schema=schema).explain(denied)
    both = np.flatnonzero(plain.answered & robust.answered)
    # A telling case that reads at a glance: few columns change, and the price of robustness shows.
    columns = np.array([len(robust[int(i)].changes) for i in both])
    extra = robust.costs[both] - plain.costs[both]
    shown = int(both[np.lexsort((both, -extra, np.abs(columns - 2)))[0]])
    return Example(shown + 1, plain[shown], robust[shown], int(robust.answered.sum()))
