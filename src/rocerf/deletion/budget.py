"""How many deletions a point survives: what was found, from above."""

from __future__ import annotations

import numpy as np

from rocerf.deletion.adversary import Adversary
from rocerf.models.model import ExactModel
from rocerf.types import Array, Places, Progress


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

    -1 where the model refuses the point as it is. The number tried doubles until the adversary breaks the point,
    then bisection. A broken point cannot survive that many deletions (a fact); that it survives one fewer is only what
    was not refuted.
    """
    survives = np.where(model.score(X) >= 0, 0, -1).astype(np.intp)
    broken = np.full(len(X), most + 1, dtype=np.intp)
    adversaries: dict[int, Adversary] = {}  # kept, so that what they compute of the model is computed once
    while True:
        open_ = np.flatnonzero((survives >= 0) & (broken - survives > 1))
        if progress is not None:
            progress(len(X) - len(open_), len(X))
        if not len(open_):
            return survives
        never_broken = broken[open_] > most
        doubled = np.minimum(np.maximum(2 * survives[open_], 1), most)
        sizes = np.where(never_broken, doubled, (survives[open_] + broken[open_]) // 2)
        for size in np.unique(sizes):
            points = open_[sizes == size]
            if size not in adversaries:
                adversaries[size] = Adversary(model, int(size), effort=effort, seed=seed)
            scores = adversaries[size].attack_all(X[points], stop_below=np.zeros(len(points))).scores
            survives[points[scores >= 0]] = size
            broken[points[scores < 0]] = size
