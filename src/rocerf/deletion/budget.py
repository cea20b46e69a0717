"""How many deletions a point survives: what was found, from above."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from math import ceil

import numpy as np

from rocerf.deletion.adversary import Adversary
from rocerf.deletion.efforts import EFFORTS
from rocerf.deletion.group_attack import refits_differ, seed_for
from rocerf.deletion.groups import Groups
from rocerf.models.model import ExactModel, Proposing
from rocerf.types import Array, Places, Progress

#: Models at least that say which share accepts a point, and where the seeds of those retrained on all rows are apart.
MODELS, ALL_ROWS = 20, 0xB0D6E

#: For some of the points and a number of deletions: the size of one found of at most so many that breaks each; -1 if
#: there is none.
Breaks = Callable[[Places, int], Places]


def largest_survived(
    model: ExactModel,
    X: Array,
    most: int,
    *,
    effort: str = "normal",
    seed: int = 0,
    progress: Progress | None = None,
) -> Places:
    """For each point (P, d) the largest number of deletions that no deletion found contradicts, at most ``most``; (P,).

    -1 where the model refuses the point as it is. A broken point cannot survive that many deletions (a fact); that it
    survives one fewer is only what was not refuted.
    """
    adversaries: dict[int, Adversary] = {}  # kept, so that what they compute of the model is computed once

    def breaks(points: Places, size: int) -> Places:
        if size not in adversaries:
            adversaries[size] = Adversary(model, size, effort=effort, seed=seed)
        scores = adversaries[size].attack_all(X[points], stop_below=np.zeros(len(points))).scores
        return np.where(scores >= 0, -1, size)

    survives = np.where(model.score(X) >= 0, 0, -1).astype(np.intp)
    return _doubled_then_halved(survives, most, breaks, progress)


def largest_accepted(
    model: Proposing,
    X: Array,
    most: int,
    *,
    share: float,
    effort: str = "quick",
    seed: int = 0,
    progress: Progress | None = None,
) -> tuple[Places, int]:
    """The same where retraining has no single outcome, and by how many models it is counted.

    A deletion breaks a point where less than ``share`` of the models retrained without it accept the point: an estimate
    by models that had no part in finding the deletion, not a fact. -1 where the model refuses the point, or too many
    models do that are retrained on all rows.
    """
    models = models_for(share)
    everything = Groups().retrain(model, [np.empty(0, np.intp)], models, seed=seed_for(seed, ALL_ROWS), starts=models)
    differ = refits_differ(everything, model)
    chosen = EFFORTS[effort].on(*model.train.X.shape)
    counting = replace(chosen, groups=replace(chosen.groups, confirming=models), on_small_tables=None)

    def breaks(points: Places, size: int) -> Places:
        attacks = Adversary(model, size, effort=counting, seed=seed).attack_all(X[points])
        sizes = np.array([len(rows) for rows in attacks.deleted_rows], np.intp)
        return np.where(attacks.shares >= share, -1, sizes)

    held = everything.outcomes(X).shares[0] >= share if len(X) else np.empty(0, bool)
    survives = np.where((model.score(X) >= 0) & held, 0, -1).astype(np.intp)
    return _doubled_then_halved(survives, most, breaks, progress), models if differ else 1


def models_for(share: float) -> int:
    """How many models tell whether a share accepts: at least so many that one of them may refuse.

    >>> models_for(0.95), models_for(0.99)
    (20, 100)
    """
    return max(MODELS, ceil(1.0 / (1.0 - share) - 1e-9))


def _doubled_then_halved(survives: Places, most: int, breaks: Breaks, progress: Progress | None) -> Places:
    """From 0 (-1: not accepted at all) for each point: numbers tried double until one breaks it, then bisection; (P,).

    What withstood a larger number may have been broken by a smaller one that nobody tried, so this is one less than the
    smallest deletion that was found to break the point, and not shown to be survived.
    """
    broken = np.full(len(survives), most + 1, dtype=np.intp)
    while True:
        open_ = np.flatnonzero((survives >= 0) & (broken - survives > 1))
        if progress is not None:
            progress(len(survives) - len(open_), len(survives))
        if not len(open_):
            return np.minimum(survives, broken - 1)
        never_broken = broken[open_] > most
        doubled = np.minimum(np.maximum(2 * survives[open_], 1), most)
        sizes = np.where(never_broken, doubled, (survives[open_] + broken[open_]) // 2)
        for size in np.unique(sizes):
            points = open_[sizes == size]
            found = breaks(points, int(size))
            survives[points[found < 0]] = size
            broken[points[found >= 0]] = found[found >= 0]
