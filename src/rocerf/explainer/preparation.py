"""What an explainer does before anybody can be answered, and how long that takes."""

from __future__ import annotations

import logging
from dataclasses import replace
from typing import TYPE_CHECKING

import numpy as np

from rocerf.progress import say_before
from rocerf.promises.promise import Promise
from rocerf.promises.stages import in_turn
from rocerf.recourse.solvers.solving import SOLVERS
from rocerf.types import Array, Progress

if TYPE_CHECKING:
    from rocerf.explainer.explainer import Rocerf

#: From so many seconds on nobody should have to wait without knowing how long.
LONG = 60.0

#: How long finding points and checking them by retraining take against each other: guessed, for progress.
FINDING, CHECKING = 3.0, 1.0


def points_for(explainer: Rocerf, promise: Promise, X0: Array, delta: float) -> Array:
    """Recourse under a promise for people (P, d) outside any request; missing where there is none.

    Steps, categories and limits on changes are relaxed: these points only choose a margin, and hundreds of
    mixed-integer programs at each margin tried would take longer than everything else. Over trees they are kept: rules
    leave fewer levels to choose among, and what trees say of half a category says nothing of the points that leave.
    """
    problem = explainer.problem(X0)
    if problem.mixed.any() and SOLVERS[explainer.solver].needs != "trees":
        problem = replace(problem, cost=explainer.cost.relaxed(), allowed=problem.allowed.boxes())
    possible = np.flatnonzero(~problem.allowed.empty)
    points = np.full(X0.shape, np.nan)
    points[possible] = explainer.solve(promise, problem.of(possible), delta).points
    return points


def finding_and_checking(promise: Promise, progress: Progress | None) -> tuple[Progress | None, Progress | None]:
    """Who is told of finding points, and who of checking them, where models are retrained for that."""
    if progress is None or not promise.checks_at_length:
        return progress, None
    finding, checking = in_turn(progress, (FINDING, CHECKING))
    return finding, checking


def announcement(explainer: Rocerf, people: int = 0) -> str | None:
    """One line about how long preparing, and answering so many people, will take, and what makes it shorter.

    None if it is short or not known. Finding that out takes about a hundredth of the time itself.
    """
    before = explainer.expected_seconds()
    then = explainer.promise.answering_seconds(people) if people else 0.0
    seconds = (before or 0.0) + (then or 0.0)
    if seconds <= LONG:
        return None
    rest = f"; {explainer.promise.shorter}" if explainer.promise.shorter else ""
    if not then:
        return f"about {in_words(seconds)} before anybody can be answered{rest}"
    what = f"for {people} {'person' if people == 1 else 'people'}, as models are retrained for each"
    return f"very roughly {in_words(seconds)} {what}: how many, depends on what is found{rest}"


def in_words(seconds: float) -> str:
    """A rough time, for people.

    >>> in_words(100), in_words(20 * 60), in_words(3 * 3600)
    ('2 minutes', '20 minutes', '3 hours')
    """
    minutes = max(1, round(seconds / 60))
    if minutes >= 120:
        return f"{round(minutes / 60)} hours"
    return f"{minutes} minute{'' if minutes == 1 else 's'}"


def warn_of_a_long_wait(explainer: Rocerf, people: int = 0, *, shown: bool = False) -> None:
    """Say how long preparing and answering will take: above the bar that is ``shown``, else to the log."""
    line = announcement(explainer, people)
    if line is not None and shown:
        say_before(line)
    elif line is not None:
        logging.getLogger("rocerf").warning("%s; progress=True shows how far it is", line)
