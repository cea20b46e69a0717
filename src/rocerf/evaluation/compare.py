"""Several methods on a team's own rows and model: what each costs, and what it is worth when rows are deleted."""

from __future__ import annotations

import time
from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import partial
from typing import TYPE_CHECKING, Any, NamedTuple, cast

import numpy as np
from numpy.typing import ArrayLike

from rocerf.data.foreign import is_frame
from rocerf.data.schema import FeatureSchema
from rocerf.deletion.k import number_of_deletions
from rocerf.errors import DataError, OptionError, RocerfError
from rocerf.evaluation.costs import costs_of
from rocerf.evaluation.methods import (
    MethodOptions,
    explainer_named,
    method_names,
    methods_for,
    words_of,
)
from rocerf.evaluation.metrics import Validity, validity_curves, worst_case_validity
from rocerf.models.model import ExactModel, Refittable
from rocerf.models.sklearn.own_refit import RetrainingRule
from rocerf.progress import Step, showing
from rocerf.promises.simulated import Simulated
from rocerf.recourse.result import Recourses, Status
from rocerf.types import Array

if TYPE_CHECKING:
    import pandas as pd

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

    def __repr__(self) -> str:
        ran = ", ".join(row["method"] for row in self.rows if not row["failure"])
        return f"Comparison({ran} on {self.people} refused people; k={self.k} of {self.training_rows} rows)"

    def _repr_html_(self) -> str:
        from rocerf.evaluation.compared import comparison_html

        return comparison_html(self)


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
    schema: FeatureSchema | None = None,
    seed: int = 0,
    progress: Step | bool | None = None,
) -> Comparison:
    """Explain the refused among ``people`` by each method and measure all of them on the same retrained models.

    Without ``methods`` it is those of the paper and ours that suit the model.

    Validity is over ``trials`` random deletions of k rows; for logistic models also under the worst deletion of at most
    k rows that the adversary finds. Models taken over from scikit-learn are retrained by the user's own estimator
    (``refit="own"``) or exactly ("exact"), by default as their rule says. A ``schema`` holds for every method, as does
    that of a pipeline: a point that breaks a rule is no answer. Without one everything may change. ``progress=True``
    shows how far it is; a function is called with (what, done, total).

    >>> import rocerf
    >>> data = rocerf.load_dataset("german")
    >>> model = rocerf.LogisticModel.fit(data.train)
    >>> table = compare(model, data.test.X[:40], 4, methods=["scfe", "retrained"], trials=5)
    >>> [(row["method"], row["worst_case_validity"]) for row in table.rows]
    [('scfe', 0.0), ('retrained', 1.0)]
    """
    rows_deleted = number_of_deletions(k, len(model.train))
    chosen = _checked_methods(methods_for(model) if methods is None else methods)
    asked = _asked(model, people)
    options = MethodOptions(
        rows_deleted, "corrected", seed, effort, simulated or Simulated(), rows_deleted, schema=schema
    )
    with showing(quiet=progress is not True) as step:
        answers = _Answers(model, asked.refused, options, progress if callable(progress) else step)
        rows = answers.rows(chosen)
        validity = answers.judge(rows, trials, refit)
    return Comparison(
        rows=tuple({name: row.get(name) for name in COLUMNS} for row in rows.values()),
        validity=validity,
        recourses={name: answers.recourses[name] for name in chosen if name in answers.recourses},
        k=rows_deleted,
        training_rows=len(model.train),
        people=len(asked.refused),
        accepted=asked.accepted,
        incomplete=asked.incomplete,
        trials=trials,
        seed=seed,
    )


class _Asked(NamedTuple):
    """Who asked: those refused, how many are accepted as they are, and the names of those with missing values."""

    refused: Array
    accepted: int
    incomplete: tuple[Any, ...]


def _asked(model: Refittable, people: ArrayLike | pd.DataFrame) -> _Asked:
    matrix = model.matrix(people)
    whole = np.asarray(np.isfinite(matrix).all(axis=1))
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
        more = f" ({len(incomplete)} more have missing or infinite values)" if incomplete else ""
        raise DataError(
            f"Expected at least one person whom the model refuses, got none among {len(complete)}{more}; give the "
            "people who ask for recourse."
        )
    return _Asked(refused, len(complete) - len(refused), incomplete)


class _Answers:
    """The methods' answers, asked one after the other, and what they are worth."""

    def __init__(self, model: Refittable, people: Array, options: MethodOptions, progress: Step) -> None:
        self.model, self.people, self.options, self.progress = model, people, options, progress
        self.recourses: dict[str, Recourses] = {}

    def rows(self, methods: Sequence[str]) -> dict[str, dict[str, Any]]:
        """Costs by method; a method that does not suit this model says so in its row."""
        total = len(methods) + 1
        plain = explainer_named("plain", self.model, self.options).explain(self.people).matrix
        self.progress("methods", 1, total)
        rows = {}
        for method in methods:
            try:
                rows[method] = self._row(method, plain)
            except RocerfError as error:
                rows[method] = {"method": method, "people": len(self.people), "failure": str(error)}
            else:
                self.progress("methods", len(self.recourses) + 1, total)
        return rows

    def _row(self, method: str, plain: Array) -> dict[str, Any]:
        start = time.perf_counter()
        explainer = explainer_named(method, self.model, self.options)
        recourses = self.recourses[method] = explainer.explain(self.people)
        seconds = (time.perf_counter() - start) / len(self.people)
        costs = costs_of(self.model, self.people, recourses.matrix, plain)
        why = Counter(status.sentence for status in recourses.statuses if status is not Status.ANSWERED).most_common(1)
        said = {"parameters": words_of(explainer, recourses), "unanswered": why[0][0] if why else None}
        return {"method": method, **costs, "seconds_per_person": seconds, **said}

    def judge(self, rows: dict[str, dict[str, Any]], trials: int, refit: RetrainingRule | None) -> dict[str, Validity]:
        """Validity by method, entered in the rows too; all methods on the same retrained models."""
        points = {name: self.recourses[name].matrix for name, row in rows.items() if row.get("answered")}
        k, seed = int(self.options.k), self.options.seed + 1
        curves: dict[str, list[Validity]] = {}
        if points:
            step = partial(self.progress, "retraining")
            shares = [k / len(self.model.train)]
            curves = validity_curves(self.model, points, shares, trials, seed, refit=refit, progress=step)
        for place, (name, (validity,)) in enumerate(curves.items(), start=1):
            of_all = validity.mean * rows[name]["answered"] / len(self.people)
            rows[name] |= {"validity": validity.mean, "validity_se": validity.standard_error, "validity_all": of_all}
            if isinstance(self.model, ExactModel):
                effort = self.options.effort
                worst = worst_case_validity(self.model, points[name], k, effort=effort, seed=seed, refit=refit)
                rows[name]["worst_case_validity"] = worst
            self.progress("worst deletions", place, len(points))
        for row in rows.values():
            if row.get("answered") == 0:
                row["validity_all"] = 0.0
        return {name: curve[0] for name, curve in curves.items()}


def _checked_methods(methods: Sequence[str]) -> list[str]:
    known = method_names()
    unknown = [method for method in methods if method not in known]
    if unknown or not methods:
        got = ", ".join(map(repr, unknown)) or "none"
        raise OptionError(f"Expected methods among {', '.join(known)}, got {got}; name one or more of these.")
    return list(dict.fromkeys(methods))
