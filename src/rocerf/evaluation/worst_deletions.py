"""Scores after the 0, 1, 2, ... worst deletions, for several ways of giving recourse to the same people."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np

from rocerf.deletion.adversary import Adversary
from rocerf.deletion.k import number_of_deletions
from rocerf.errors import DataError, OptionError
from rocerf.models.model import Classifier
from rocerf.recourse.result import Recourses
from rocerf.types import Array, Progress

if TYPE_CHECKING:
    from rocerf.drawing import Picture


@dataclass(frozen=True, eq=False)
class WorstDeletions:
    """Scores (most + 1, P) of each method's P points, at row j after the worst deletion found of at most j rows.

    They are what retrained models really say (their mean where retraining starts anew), so a deletion that nobody
    found may be worse. ``promised`` has the k of each method's promise, where it has one.
    """

    scores: Mapping[str, Array]
    promised: Mapping[str, int]

    @property
    def most(self) -> int:
        """The largest number of rows deleted."""
        return len(next(iter(self.scores.values()))) - 1

    def accepted(self, method: str) -> Array:
        """Share of the method's points still accepted after the worst deletion found of at most j rows, (most + 1,)."""
        return np.asarray((self.scores[method] >= 0).mean(axis=1))

    def __repr__(self) -> str:
        kept = ", ".join(f"{name} {self.accepted(name)[-1]:.0%}" for name in self.scores)
        return f"WorstDeletions(accepted after the worst {self.most} found: {kept})"

    def _repr_html_(self) -> str:
        from rocerf.html import Table

        sizes = sorted({0, *(k for k in self.promised.values() if k <= self.most), self.most})
        head = ("method", "promised", *(f"after {size}" for size in sizes))
        rows = [
            (name, str(self.promised.get(name, "")), *(f"{self.accepted(name)[size]:.0%}" for size in sizes))
            for name in self.scores
        ]
        return Table(head, rows).html()

    def plot(self) -> Picture:
        """A line for each method: the median score, and below it the lowest; accepted from 0 on."""
        from rocerf.evaluation.plots import draw_worst_deletions

        return draw_worst_deletions(self)


def worst_deletions(
    model: Classifier,
    answers: Mapping[str, Recourses | Any],
    most: int | str,
    *,
    effort: str = "quick",
    seed: int = 0,
    progress: Progress | None = None,
) -> WorstDeletions:
    """What the worst deletions of 0 to ``most`` rows leave of several methods' answers.

    Parameters
    ----------
    model : LogisticModel, NeuralModel or EstimatorModel
        Whose training rows are deleted.
    answers : for each name a Recourses, or points (P, d)
        Who was not answered is left out.
    most : int or str
        A number of rows, or a share such as "1%".
    effort : "quick", "normal" or "thorough"
        How hard the adversary looks. Where its search for a few rows found worse than its search for more, the few
        count: they are a deletion of at most that many.
    seed : int
        Of the adversary; take another than the explainer's.

    Examples
    --------
    >>> import rocerf
    >>> data = rocerf.load_dataset("german")
    >>> model = rocerf.LogisticModel.fit(data.train)
    >>> denied = data.test.X[model.predict(data.test.X) == 0][:5]
    >>> answers = {name: rocerf.Rocerf(model, 2, promise=name).explain(denied) for name in ("plain", "retrained")}
    >>> seen = worst_deletions(model, answers, 2, seed=1)
    >>> [(name, float(seen.accepted(name)[2])) for name in answers]
    [('plain', 0.0), ('retrained', 1.0)]
    """
    if not answers:
        raise OptionError("Expected the answers of at least one method, got none; give a dictionary, a name for each.")
    rows = number_of_deletions(most, len(model.train))
    points = {name: _points(model, name, given) for name, given in answers.items()}
    scores = {name: [model.score(X)] for name, X in points.items()}
    done, total = 0, rows * len(points)
    for size in range(1, rows + 1):
        adversary = Adversary(model, size, effort=effort, seed=seed)
        for name, X in points.items():
            found = adversary.attack_all(X).scores
            scores[name].append(np.minimum(found, scores[name][-1]))
            done += 1
            if progress is not None:
                progress(done, total)
    promised = {
        name: given.settings.k
        for name, given in answers.items()
        if isinstance(given, Recourses) and given.settings.promise != "plain"
    }
    return WorstDeletions({name: np.array(lines) for name, lines in scores.items()}, promised)


def _points(model: Classifier, name: str, given: Recourses | Any) -> Array:
    matrix = given.matrix[given.answered] if isinstance(given, Recourses) else model.matrix(given)
    if not len(matrix) or np.isnan(matrix).any():
        got = "none" if not len(matrix) else "missing values"
        raise DataError(f"Expected points of {name!r} to attack, got {got}; give recourses, or complete points.")
    return np.asarray(matrix, np.float64)
