"""The demonstration: German Credit, what each promise is worth under random and under worst-case deletion."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from rocerf.baselines.margin import margin_of_cost
from rocerf.baselines.scfe import Scfe
from rocerf.data.datasets import Dataset, load_dataset
from rocerf.data.schema import Direction, FeatureSchema, Kind
from rocerf.deletion.adversary import Adversary
from rocerf.deletion.budget import largest_survived
from rocerf.evaluation.metrics import Validity, validity_curves
from rocerf.explainer.explainer import Rocerf
from rocerf.models.logistic.model import LogisticModel
from rocerf.recourse.result import Recourse, Recourses

FRACTIONS = (0.0, 0.005, 0.01, 0.02, 0.03, 0.05)

#: Promise and share of rows (or number) for each way of giving recourse, in the order shown.
WAYS = (
    ("first_order", "0.5%"),
    ("first_order", "2%"),
    ("retrained", "0.5%"),
    ("retrained", "2%"),
    ("certified", 1),
)

#: The promise whose price the constant margin is given: the simplest rival, for the same money.
PRICED_AS = "retrained 0.5%"

#: What ways without a promise about deletions are called.
SAID = {"plain": "plain counterfactual", "margin": "constant margin"}

#: How hard the adversary looks when the answers are judged; the solver's own looked less hard.
AUDIT_EFFORT = "thorough"

#: Worst-case deletions are tried up to this number of rows.
MOST_DELETIONS = 24


@dataclass(frozen=True, eq=False)
class Method:
    """One way of giving recourse, with its answers and how they fared.

    ``audited`` are the scores after the worst deletion found of at most k rows (without a promise, of the smallest k
    shown); ``survived`` is the number of worst-case deletions each point withstood.
    """

    name: str
    key: str
    recourses: Recourses
    validity: tuple[Validity, ...]
    audited_k: int
    audited: NDArray[np.float64]
    survived: NDArray[np.intp]

    @property
    def mean_cost(self) -> float:
        """Mean cost over answered people."""
        return float(self.recourses.costs[self.recourses.answered].mean())

    @property
    def survivors(self) -> int:
        """People whose point withstood every deletion of at most ``audited_k`` rows that was tried."""
        return int((self.audited >= 0).sum())

    def share_after(self, deletions: int) -> float:
        """Share of points still accepted after the worst deletion found of this many rows."""
        return float((self.survived >= deletions).mean())


@dataclass(frozen=True, eq=False)
class Example:
    """One person's recourse when only amounts and durations may change, and how many it could serve."""

    number: int
    plain: Recourse
    robust: Recourse
    answered: int


@dataclass(frozen=True, eq=False)
class Demo:
    """All that the demonstration measured.

    Of ``applicants`` the model refuses ``refused``; the first ``denied`` of these were looked at. ``example`` is None
    where none of them can be served by amounts and durations alone.
    """

    dataset: Dataset
    accuracy: float
    denied: int
    refused: int
    applicants: int
    methods: tuple[Method, ...]
    abstention: str
    trials: int
    seed: int
    example: Example | None

    @property
    def summary(self) -> str:
        """How many were refused, and how many of them were looked at."""
        shown = "" if self.denied == self.refused else f", the first {self.denied} of them shown"
        return f"{self.refused} of {self.applicants} applicants refused{shown}"

    def method(self, key: str) -> Method:
        """The method with this key."""
        return next(method for method in self.methods if method.key == key)

    def to_dict(self) -> dict[str, Any]:
        """Plain values for JSON."""
        return {
            "dataset": self.dataset.name,
            "accuracy": self.accuracy,
            "applicants": self.applicants,
            "refused": self.refused,
            "denied": self.denied,
            "trials": self.trials,
            "seed": self.seed,
            "data_checksum": self.dataset.train.checksum,
            "abstention": self.abstention,
            "methods": [
                {
                    "method": method.name,
                    "promise": method.recourses.settings.promise,
                    "sentence": method.recourses.settings.sentence,
                    "k": method.recourses.settings.k,
                    "mean_cost": method.mean_cost,
                    "answered": int(method.recourses.answered.sum()),
                    "validity": {str(v.fraction): [v.mean, v.standard_error] for v in method.validity},
                    "worst_case": {"k": method.audited_k, "survive": method.survivors, "of": len(method.audited)},
                    "deletions_survived_median": float(np.median(method.survived)),
                }
                for method in self.methods
            ],
        }


def run_demo(
    *,
    trials: int = 100,
    seed: int = 0,
    people: int | None = None,
    progress: Callable[[str, int, int], None] | None = None,
) -> Demo:
    """Train, list the denied, give recourse in every way, delete at random and at worst, retrain, compare.

    ``people`` limits the demonstration to the first so many of the denied.
    """
    data = load_dataset("german")
    model = LogisticModel.fit(data.train, C=1.0)
    applicants = data.test.frame()
    accepted = model.predict(applicants)
    refused = applicants[accepted == 0]
    denied = refused[:people]
    explained = _recourses(model, denied, seed)
    curves = validity_curves(
        model,
        {key: recourses.points for key, recourses in explained.items()},
        FRACTIONS,
        trials,
        seed,
        progress=None if progress is None else lambda done, total: progress("random deletions", done, total),
    )
    methods = []
    for place, (key, found) in enumerate(explained.items()):
        methods.append(_audited(model, key, found, tuple(curves[key]), seed))
        if progress is not None:
            progress("worst deletions", place + 1, len(explained))
    return Demo(
        dataset=data,
        accuracy=float((accepted == data.test.y).mean()),
        denied=len(denied),
        refused=len(refused),
        applicants=len(applicants),
        methods=tuple(methods),
        abstention=_abstention(model, denied),
        trials=trials,
        seed=seed,
        example=_example(model, data, denied),
    )


def _recourses(model: LogisticModel, denied: Any, seed: int) -> dict[str, Recourses]:
    found = {"plain": Scfe(model).explain(denied)}
    for promise, k in WAYS:
        found[f"{promise} {k}"] = Rocerf(model, k, promise=promise, seed=seed).explain(denied)
    price = float(found[PRICED_AS].costs[found[PRICED_AS].answered].mean())
    return {"plain": found.pop("plain"), "margin": margin_of_cost(model, denied, price).explain(denied), **found}


def _audited(model: LogisticModel, key: str, recourses: Recourses, validity: tuple[Validity, ...], seed: int) -> Method:
    """Attack the points with another seed and more effort than the solver used."""
    settings = recourses.settings
    points = recourses.matrix[recourses.answered]
    k = settings.k or Rocerf(model, WAYS[0][1], promise="first_order").k
    audit = Adversary(model, k, effort=AUDIT_EFFORT, seed=seed + 1).attack_all(points)
    survived = largest_survived(model, points, MOST_DELETIONS, effort="normal", seed=seed + 1)
    name = SAID.get(key, f"{settings.promise}, k = {settings.k}")
    return Method(name, key, recourses, validity, k, audit.scores, survived)


def _abstention(model: LogisticModel, denied: Any) -> str:
    """What the certificate says where it cannot prove anything."""
    from rocerf.deletion.certificate import Options
    from rocerf.promises.certified import Certified

    k = Rocerf(model, WAYS[0][1], promise="first_order").k
    promise = Certified(model, k, options=Options(branch_nodes=0))
    answer = Rocerf(model, k, promise=promise).explain(denied[:1])[0]
    return "" if answer.certified else answer.certificate.reason


def amounts_only(schema: FeatureSchema) -> FeatureSchema:
    """The schema with every category held fixed, so that an answer reads as amounts and durations."""
    for feature in schema:
        if feature.kind is Kind.BINARY:
            schema = schema.edit(feature.name, direction=Direction.FIXED)
    return schema


def _example(model: LogisticModel, data: Dataset, denied: Any) -> Example | None:
    schema = amounts_only(data.schema)
    plain = Scfe(model, cost="l1", schema=schema).explain(denied)
    robust = Rocerf(model, WAYS[0][1], promise="retrained", cost="l1", schema=schema).explain(denied)
    both = np.flatnonzero(plain.answered & robust.answered)
    if not len(both):
        return None
    # A telling case that reads at a glance: few columns change, and the price of robustness shows.
    columns = np.array([len(robust[int(i)].changes) for i in both])
    extra = robust.costs[both] - plain.costs[both]
    shown = int(both[np.lexsort((both, -extra, np.abs(columns - 2)))[0]])
    return Example(shown + 1, plain[shown], robust[shown], int(robust.answered.sum()))
