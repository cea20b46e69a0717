"""The attack on any model that can be refitted: one refit at a time, through the model's own ``without``.

The batched searches (:mod:`rocerf.deletion.batched_attack`) know the objective. This one knows only the model
protocol: scores, row gradients, curvature, and exact refits. It re-linearises (refit without the present set, score
the remaining rows at the refitted model, take the k most harmful, repeat) and, where the sets are few, tries all.
"""

from __future__ import annotations

import itertools
from math import comb
from typing import Any

import numpy as np

from rocerf.deletion.attacks import Attacks, Search
from rocerf.deletion.efforts import Effort
from rocerf.deletion.finding import Finding
from rocerf.deletion.row_effects import RowEffects
from rocerf.errors import ModelError, NotConvergedError
from rocerf.models.model import Model
from rocerf.types import Array, Places


class RefitAttacker:
    """Searches by one refit after another."""

    def __init__(self, model: Model, k: int) -> None:
        self.model, self.k = model, k

    def attack(self, X: Array, search: Search) -> Attacks:
        """The worst deletions found for points (P, d); scores are the model's own, parameters are not reported.

        It has no random starts, no use for what is known, and leaves nothing out.
        """
        return Attacks.of([_found(self.model, X, self.k, search.effort)], self.model.train.ids)


def _found(model: Model, X: Array, k: int, effort: Effort) -> Finding:
    finding = Finding(
        scores=np.array(model.score(X), dtype=np.float64),
        thetas=np.empty((len(X), 0)),
        sets=[np.empty(0, np.intp)] * len(X),
        found_by=["nothing deleted"] * len(X),
        retrainings=np.zeros(len(X), np.intp),
    )
    n = len(model.train)
    if k == 0 or not len(X):
        return finding
    if sum(comb(n, size) for size in range(1, k + 1)) <= effort.brute_force:
        every = itertools.chain.from_iterable(itertools.combinations(range(n), size) for size in range(1, k + 1))
        for chosen in every:
            _try(model, X, np.arange(len(X)), np.array(chosen, np.intp), "brute force", finding)
        return finding
    base = model.score_gradient(X) @ RowEffects.of(model).in_training_order().T
    for point in range(len(X)):
        _relinearise(model, X, point, base[point], k, effort.rounds, finding)
    return finding


def _relinearise(model: Model, X: Array, point: int, base: Array, k: int, rounds: int, finding: Finding) -> None:
    harms, met = base.copy(), set()
    for _ in range(rounds):
        chosen = np.sort(np.argsort(harms, kind="stable")[:k])
        chosen = chosen[harms[chosen] < 0]
        if not len(chosen) or chosen.tobytes() in met:
            return
        met.add(chosen.tobytes())
        later = _try(model, X, np.array([point]), chosen, "relinearise", finding)
        if later is None:
            return
        # Rows still in are scored at the refitted model; for those out, the full model's word stands.
        remaining = np.setdiff1d(np.arange(len(model.train)), chosen)
        harms = base.copy()
        harms[remaining] = (later.score_gradient(X[[point]]) @ RowEffects.of(later).in_training_order().T)[0]


def _try(model: Model, X: Array, points: Places, chosen: Places, name: str, finding: Finding) -> Any:
    """Refit without these rows and take the scores over where they are lower; None if there is no such model."""
    try:
        later = model.without(model.train.ids[chosen])
    except NotConvergedError:
        return None
    except ModelError:  # there is no model without these rows: nothing is worse
        for point in points:
            finding.scores[point], finding.sets[point], finding.found_by[point] = -np.inf, chosen, name
        return None
    finding.retrainings[points] += 1
    if name not in finding.ran:
        finding.ran.append(name)
    for point, score in zip(points, later.score(X[points]), strict=True):
        if score < finding.scores[point]:
            finding.scores[point], finding.sets[point], finding.found_by[point] = score, chosen, name
    return later
