"""Which rows to try: sets guessed to harm points, from what models propose and from what was retrained already.

Guesses cost no retraining. Every one is a matrix of *harms* (P, n), how far deleting each row alone is guessed to move
the score of each point; its at most k lowest negative entries are the set to try. The searches:

* the proposals of the model itself (first-order effects, rows that move it as the point does, rows in the same leaves);
* ``other starts``: its first proposal averaged over models trained again on all rows, since the harm is in the rows and
  not in one model;
* ``relinearised``: the first proposal at a model already retrained without the worst set known;
* ``regression``: what the retrained models themselves say. Their scores at the point are regressed on which rows were
  gone, around the first proposal; the ridge is the one that predicts left-out groups best.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np

from rocerf.deletion.groups import Groups, membership
from rocerf.models.model import Proposing
from rocerf.types import Array, Places

#: Ridges tried by the regression, in units of the mean squared size of a set's row in the regression.
RIDGES = tuple(10.0**power for power in range(-3, 4))

#: Numbers that models asked before may hold in memory, to be asked again.
KEPT = 80_000_000

#: Groups below which a regression says nothing that the proposals do not.
LEAST_GROUPS = 8


def worst_sets(harms: Array, k: int) -> list[Places]:
    """The at most k rows of lowest negative harm at each point, (P, n) -> P sets in increasing order of rows.

    >>> [rows.tolist() for rows in worst_sets(np.array([[-1.0, 2.0, -3.0], [1.0, 1.0, -0.5]]), 2)]
    [[0, 2], [2]]
    """
    size = min(k, harms.shape[1])
    if size == 0:
        return [np.empty(0, np.intp)] * len(harms)
    lowest = np.argpartition(harms, size - 1, axis=1)[:, :size]
    return [np.sort(rows[own[rows] < 0]).astype(np.intp) for own, rows in zip(harms, lowest, strict=True)]


def promised_harm(harms: Array, sets: Sequence[Places]) -> Array:
    """What deleting each set is guessed to do to each point: sums of harms (P, n) over the sets, (P, sets)."""
    return np.asarray((membership(sets, harms.shape[1]) @ harms.T).T)


@dataclass(eq=False)
class Guesses:
    """Harms of points by every search, from a model, models of other starts, and groups retrained already."""

    model: Proposing
    others: Sequence[Proposing]
    #: Models of groups asked last, by the group, and whose groups they are: the worst are asked again and again.
    _asked: dict[int, Proposing] = field(default_factory=dict)
    _groups: Groups | None = None

    def proposed(self, X: Array, proposal: str) -> Array:
        """The model's own, (P, n)."""
        return self.model.harms(X, proposal)

    def by_other_starts(self, X: Array) -> Array:
        """The first proposal averaged over models of other starts, each weighing the same at each point; (P, n)."""
        total = np.zeros((len(X), len(self.model.train)))
        for model in self.others:
            total += unit(model.harms(X, model.proposals[0]))
        return total / max(len(self.others), 1)

    def relinearised(self, X: Array, groups: Groups, worst: Places) -> Array:
        """The first proposal at the first model of the group ``worst`` (P,) of each point; (P, n)."""
        harms = np.empty((len(X), len(self.model.train)))
        for group in np.unique(worst):
            own = worst == group
            there = self._there(groups, int(group))
            harms[own] = there.harms(X[own], there.proposals[0])
            self._let_go()
        return harms

    def _there(self, groups: Groups, group: int) -> Proposing:
        if groups is not self._groups:
            self._groups, self._asked = groups, {}
        found = self._asked.pop(group, None)
        self._asked[group] = (
            self.model.as_retrained(groups.models, int(groups.starts[group])) if found is None else found
        )
        return self._asked[group]

    def _let_go(self) -> None:
        """Of models asked, keep the last ones that hold no more than ``KEPT`` numbers in memory."""
        held = 0
        for group in reversed(list(self._asked)):
            held += getattr(self._asked[group], "held", 0)
            if held > KEPT:
                del self._asked[group]

    def regressed(self, groups: Groups, scores: Array, around: Array) -> Array | None:
        """Harms by which the mean scores (G, P) of groups are best explained, around others (P, n); None if too few."""
        if len(groups) < LEAST_GROUPS:
            return None
        gone = groups.membership(len(self.model.train))
        return _ridge_around(gone, scores, around)


def unit(harms: Array) -> Array:
    """Harms (P, n) of each point brought to unit length, so that models with other scales weigh the same."""
    lengths = np.linalg.norm(harms, axis=1, keepdims=True)
    return np.asarray(harms / np.where(lengths > 0, lengths, 1.0))


def _ridge_around(gone: Any, scores: Array, around: Array) -> Array:
    """Ridge regression of scores (G, P) on membership (G, n), towards a multiple of ``around`` (P, n); (P, n)."""
    drops = scores - scores.mean(axis=0)
    guessed = np.asarray(gone @ around.T)
    guessed -= guessed.mean(axis=0)
    steps = np.maximum((guessed * drops).sum(axis=0), 0.0) / np.maximum((guessed**2).sum(axis=0), 1e-300)
    rest = drops - steps * guessed
    kernel = (gone @ gone.T).toarray()
    centred = kernel - kernel.mean(axis=0) - kernel.mean(axis=1, keepdims=True) + kernel.mean()
    values, vectors = np.linalg.eigh(centred)
    values, turned = np.maximum(values, 0.0), vectors.T @ rest
    size = max(float(np.trace(centred)) / len(centred), 1e-300)
    best, weights = np.full(rest.shape[1], np.inf), np.zeros_like(rest)
    for ridge in (share * size for share in RIDGES):
        inverse = 1.0 / (values + ridge)
        fitted = vectors @ (inverse[:, None] * turned)
        # rest - prediction of a group left out = dual weight / diagonal of the inverse
        left_out = ((fitted / (vectors**2 @ inverse)[:, None]) ** 2).sum(axis=0)
        better = left_out < best
        best, weights = np.where(better, left_out, best), np.where(better, fitted, weights)
    moved = (gone.T @ (weights - weights.mean(axis=0))).T
    return np.asarray(np.where(steps[:, None] > 0, steps[:, None], 1.0) * around + moved)
