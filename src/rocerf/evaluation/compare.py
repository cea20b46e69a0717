"""Several methods on a team's own rows and model: what each costs, and what it is worth when rows are deleted."""

from __future__ import annotations

import time
from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, cast

import numpy as np
from numpy.typing import ArrayLike, NDArray

from rocerf.data.columns import is_frame
from rocerf.deletion.k import number_of_deletions
from rocerf.errors import DataError, OptionError, RocerfError
from rocerf.evaluation.costs import costs_of
from rocerf.evaluation.methods import ALL_METHODS, METHODS, MethodOptions, explainer_named, words_of
from rocerf.evaluation.metrics import Validity, validity_curves, worst_case_validity
from rocerf.models.model import ExactModel, Refittable
from rocerf.models.sklearn.own_refit import RetrainingRule
from rocerf.promises.simulated import Simulated
from rocerf.recourse.result import Recourses, Status
from rocerf.types import Array

if TYPE_CHECKING:
    import pandas as pd

Step = Callable[[str, int, int], None]

#: Columns of the table, in order.
COLUMNS = (
    *("method", "people", "answered", "l2", "l2_se", "l1", "l1_se", "changed", "distance_to_data"),
    *("cost_over_plain", "validity", "validity_se", "validity_all", "worst_case_validity", "seconds_per_person"),
    *("parameters", "unanswered", "failure"),
)


@dataclass(frozen=True, eq=False)
class Comparison:
    """A row for each method (the keys are :data:`COLUMNS`), the validity trial by trial, and the answers.

    ``people`` asked and were refused; ``accepted`` others are accepted as they are; ``incomplete`` names the rest, who
    have missing or infinite values (index of a frame, else row numbers from 0). In the rows ``validity`` is about the
    people whom a method answered, ``validity_all`` about all who were refused: no answer is no valid answer. Where
    somebody was not answered ``unanswered`` says the commonest reason. A method that could not be run has its reason
    under ``failure``.
    """

    rows: tuple[dict[str, Any], ...]
    validity: Mapping[str, Validity]
    recourses: Mapping[str, Recourses]
    k: int
    training_rows: int
    people: int
    accepted: int
    incomplete: tuple[Any, ...]
    trials: int
    seed: int


def compare(
    model: Refittable,
    people: ArrayLike | pd.DataFrame,
    k: int | str,
    *,
    methods: Sequence[str] | None = None,
    trials: int = 100,
    effort: str = "normal",
    simulated: Simulated | None = None,
    refit: RetrainingRule | None = None,
    seed: int = 0,
    progress: Step | None = None,
) -> Comparison:
    """Explain the refused among ``people`` by each method and measure all of them on the same retrained models.

    Without ``methods`` it is those of the paper and ours that suit the model.

    Validity is over ``trials`` random deletions of k rows; for logistic models also under the worst deletion of at
    most k rows that the adversary finds. Models taken over from scikit-learn are retrained by the user's own estimator
    (``refit="own"``) or exactly ("exact"), by default as their rule says. Nothing is held immutable, since not every
    method could hold it.

    >>> import rocerf
    >>> data = rocerf.load_dataset("german")
    >>> model = rocerf.LogisticModel.fit(data.train)
    >>> table = compare(model, data.test.X[:40], 4, methods=["scfe", "retrained"], trials=5)
    >>> [(row["method"], row["worst_case_validity"]) for row in table.rows]
    [('scfe', 0.0), ('retrained', 1.0)]
    """
    rows_deleted = number_of_deletions(k, len(model.train))
    linear = isinstance(model, ExactModel)
    methods = _checked_methods(METHODS["corrected", "lr" if linear else "nn"] if methods is None else methods)
    matrix = model.matrix(people)
    whole: NDArray[np.bool_] = np.asarray(np.isfinite(matrix).all(axis=1))
    complete = matrix[whole]
    names = cast("pd.DataFrame", people).index if is_frame(people) else range(len(matrix))
    incomplete = tuple(name for name, known in zip(names, whole.tolist(), strict=True) if not known)
    if len(matrix) and not len(complete):
        raise DataError(
            f"Expected people with a number in every column, got {len(matrix)} who all have missing or infinite "
            "values; fill them in."
        )
    refused = complete[model.predict(complete) == 0] if len(complete) else complete
    if not len(refused):
        raise DataError(
            f"Expected at least one person whom the model refuses, got none among {len(complete)}"
            f"{f' ({len(incomplete)} more have missing or infinite values)' if incomplete else ''}; "
            "give the people who ask for recourse."
        )
    options = MethodOptions(
        rows_deleted, seed=seed, effort=effort, simulated=simulated or Simulated(), simulated_k=rows_deleted
    )
    found = _Found(model, refused, options, progress, len(methods) + 1)
    plain = found.ask("plain").matrix
    rows = {method: found.row(method, plain) for method in methods}
    points = {name: found.recourses[name].matrix for name in methods if rows[name].get("answered")}
    curves: dict[str, list[Validity]] = {}
    if points:
        tell = None if progress is None else lambda done, total: progress("retraining", done, total)
        share = rows_deleted / len(model.train)
        curves = validity_curves(model, points, [share], trials, seed + 1, refit=refit, progress=tell)
    for place, name in enumerate(points):
        validity = curves[name][0]
        of_all = validity.mean * rows[name]["answered"] / len(refused)
        rows[name] |= {"validity": validity.mean, "validity_se": validity.standard_error, "validity_all": of_all}
        if isinstance(model, ExactModel):
            worst = worst_case_validity(model, points[name], rows_deleted, effort=effort, seed=seed + 1, refit=refit)
            rows[name]["worst_case_validity"] = worst
        if progress is not None:
            progress("worst deletions", place + 1, len(points))
    for row in rows.values():
        if row.get("answered") == 0:
            row["validity_all"] = 0.0
    return Comparison(
        rows=tuple({name: row.get(name) for name in COLUMNS} for row in rows.values()),
        validity={name: curve[0] for name, curve in curves.items()},
        recourses={name: found.recourses[name] for name in methods if name in found.recourses},
        k=rows_deleted,
        training_rows=len(model.train),
        people=len(refused),
        accepted=len(complete) - len(refused),
        incomplete=incomplete,
        trials=trials,
        seed=seed,
    )


class _Found:
    """The methods' answers, asked one after the other."""

    def __init__(
        self, model: Refittable, people: Array, options: MethodOptions, progress: Step | None, total: int
    ) -> None:
        self.model, self.people, self.options = model, people, options
        self.progress, self.total = progress, total
        self.recourses: dict[str, Recourses] = {}
        self.words = ""

    def ask(self, method: str) -> Recourses:
        explainer = explainer_named(method, self.model, self.options)
        self.recourses[method] = explainer.explain(self.people)
        self.words = words_of(explainer, self.recourses[method])
        if self.progress is not None:
            self.progress("methods", len(self.recourses), self.total)
        return self.recourses[method]

    def row(self, method: str, plain: Array) -> dict[str, Any]:
        """A method's costs; a method that does not suit this model says so in its row."""
        start = time.perf_counter()
        try:
            recourses = self.ask(method)
        except RocerfError as error:
            return {"method": method, "people": len(self.people), "failure": str(error)}
        seconds = (time.perf_counter() - start) / len(self.people)
        costs = costs_of(self.model, self.people, recourses.matrix, plain)
        why = Counter(status.sentence for status in recourses.statuses if status is not Status.ANSWERED).most_common(1)
        said = {"parameters": self.words, "unanswered": why[0][0] if why else None}
        return {"method": method, **costs, "seconds_per_person": seconds, **said}


def _checked_methods(methods: Sequence[str]) -> list[str]:
    unknown = [method for method in methods if method not in ALL_METHODS]
    if unknown or not methods:
        got = ", ".join(map(repr, unknown)) or "none"
        raise OptionError(f"Expected methods among {', '.join(ALL_METHODS)}, got {got}; name one or more of these.")
    return list(dict.fromkeys(methods))
