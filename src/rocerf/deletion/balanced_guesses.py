"""Which deletions to try of a model whose class weights are balanced anew on the rows left.

Deleting a row of a class takes away its pull, as ever, and then makes every other row of that class weigh a little
more. To first order both add up: with effects ``v_i`` of rows on a score, deleting m_c rows of each class c moves it by

    sum of their v_i  -  sum_c e_c V_c,    V_c = sum of v_i over class c,    e_c = (1 - m / n) n_c / (n_c - m_c) - 1,

so that for every pair of numbers the worst rows are the worst ones of each class. The pairs that look worst are tried:
guesses, each of which is then truly retrained.
"""

from __future__ import annotations

import numpy as np

from rocerf.deletion.row_effects import RowEffects, effects_of
from rocerf.models.model import ExactModel
from rocerf.types import Array, Places

#: Pairs of numbers tried at each point, and deletions up to which pairs with fewer rows in all are tried too.
TRIED, FEW = 4, 30


def balanced_guesses(model: ExactModel, X: Array, k: int) -> list[Places]:
    """Sets of at most k rows that look worst for some of the points (P, d)."""
    effects = effects_of(model, seed=0)
    if not isinstance(effects, RowEffects) or not k:
        return []
    classes = [effects.rows[model.train.y[effects.rows] == label] for label in (0.0, 1.0)]
    where = [np.flatnonzero(model.train.y[effects.rows] == label) for label in (0.0, 1.0)]
    pairs = [(m, total - m) for total in range(1 if k <= FEW else k, k + 1) for m in range(total + 1)]
    pairs = [pair for pair in pairs if all(m < len(own) for m, own in zip(pair, classes, strict=True))]
    sets = []
    for direction in model.score_gradient(X):
        moves = [effects.vectors[own] @ direction for own in where]
        order = [np.argsort(move) for move in moves]
        worst = [np.concatenate([[0.0], np.cumsum(np.sort(move)[:k])]) for move in moves]
        foreseen = [_move(pair, moves, worst) for pair in pairs]
        for place in np.argsort(foreseen)[:TRIED]:
            chosen = [own[some[:m]] for own, some, m in zip(classes, order, pairs[place], strict=True)]
            sets.append(np.concatenate(chosen).astype(np.intp))
    return sets


def _move(pair: tuple[int, int], moves: list[Array], worst: list[Array]) -> float:
    counts = [len(move) for move in moves]
    left = 1.0 - sum(pair) / sum(counts)
    heavier = [left * n / (n - m) - 1.0 for n, m in zip(counts, pair, strict=True)]
    pulled = sum(e * float(move.sum()) for e, move in zip(heavier, moves, strict=True))
    return float(sum(sums[m] for sums, m in zip(worst, pair, strict=True))) - pulled
