"""How long a solver takes to find one person's point, guessed from what one score costs."""

from __future__ import annotations

from typing import Protocol, runtime_checkable

import numpy as np

from rocerf.models.ensembles import Ensemble
from rocerf.models.expected_time import seconds_of
from rocerf.models.model import Classifier, LinearModel, Smooth, Stackable

#: How often a promise is read for one person: by cuts, by repeated linearisation (as measured on German), by a search,
#: which ends at a limit.
READ_BY_CUTS, READ_BY_SLOPES, READ_BY_SEARCH = 10, 300, 4000

#: Seconds that a solver takes for one person between two readings, roughly; a search reads many points at a time.
BETWEEN, BETWEEN_SEARCHED = 2e-4, 2e-5

#: Training rows scored to see what a score costs, and copies of a model that can be asked many at a time.
ROWS, COPIES = 500, 256


@runtime_checkable
class Repeatable(Protocol):
    """A model whose retrained ones are asked together, which costs less than one after the other."""

    def repeated(self, count: int) -> Ensemble:
        """The model itself so many times."""
        ...


def seconds_to_answer(model: Classifier, models: int, searched: int = READ_BY_SEARCH) -> float:
    """About how long the search for one person's point takes where so many retrained models make the promise.

    ``searched`` is how many points are read for a person of a model that has no slopes.
    """
    X = model.train.X[:ROWS]
    model.score(X[:1])  # libraries set themselves up
    if isinstance(model, LinearModel):
        return READ_BY_CUTS * (models * seconds_of(lambda: model.score(X)) / len(X) + BETWEEN)
    if isinstance(model, Smooth):
        model.score_and_slope(X[:1])
        return READ_BY_SLOPES * (models * seconds_of(lambda: model.score_and_slope(X)) / len(X) + BETWEEN)
    if isinstance(model, Repeatable):
        many = model.repeated(models)
        reading = seconds_of(lambda: many.scores(X)) / len(X)
    else:
        reading = models * seconds_of(lambda: model.score(X)) / len(X)
    return searched * (reading + BETWEEN_SEARCHED)


def seconds_to_answer_all(model: Classifier, models: int, people: int) -> float:
    """The same for many people by hundreds of models: where these are asked together, that costs little more."""
    if not isinstance(model, Stackable):
        return people * seconds_to_answer(model, models)
    copies, X = model.copies(min(models, COPIES)), model.train.X[: min(people, ROWS)]

    def asked() -> None:
        scores, pullback = copies.scores_and_pullback(X)
        pullback(np.ones_like(scores))

    asked()  # libraries set themselves up
    reading = seconds_of(asked) * max(1.0, models / len(copies)) * max(1.0, people / len(X))
    return READ_BY_SLOPES * (reading + people * BETWEEN)
