"""The Hessians of many models over the same rows, kept as matrices or as weights of rows.

``H = sum_i c_i x_i x_i' + lam P`` of each of M models is either the matrix itself (:class:`Matrices`, (M, p, p)), or
the weights ``c`` with ``lam`` behind them (:class:`RowWeights`, (M, n + 1)). Both are arrays, one entry a model; only
these classes know what is in them.

A matrix costs ``n p^2`` to make and ``p^3`` to solve with. Where columns are many, conjugate gradients are far shorter:
a deletion changes the Hessian little, so that the factor of the full model, made once, leaves a dozen steps or two of
``n p + p^2`` each, shared by all models.
"""

from __future__ import annotations

from typing import Any, Protocol

import numpy as np

from rocerf.data.disk_rows import Left
from rocerf.deletion.squares import Squares
from rocerf.models.logistic.curvature import Curvature
from rocerf.passes import chunks
from rocerf.types import Array, Mask, Places

#: Columns from which Hessians are kept as weights of rows.
WIDE = 256

#: Conjugate gradients end at this residual (far from an optimum: at up to the second one), relative to the beginning
#: and in the norm of the full model's inverse Hessian, or after so many steps. What they leave the next step of
#: Newton's method repairs.
RESIDUAL, LOOSE = 1e-3, 0.1
MOST_STEPS = 200

#: The move of a row's score up to which a Newton step is taken whole.
WHOLE_MOVE = 0.5

#: Entries of the largest array that holds deleted rows of several models.
ROW_ENTRIES = 2**22


#: Rows drawn where Hessians are estimated, and how many times as many there must be for it to pay.
SAMPLE, SAMPLE_PAYS = 4096, 4

#: Leverage, times the rows that a drawn one stands for, from which a row counts for itself; and how many may at most,
#: those of the highest leverage, so that time and memory do not grow with the rows.
ALONE, MOST_ALONE = 0.05, 2**14


class Weights(Protocol):
    """The weights of rows in the Hessians of M models."""

    def of(self, rows: slice | Places) -> Array:
        """Of the same rows for all, (M, m)."""
        ...

    def of_each(self, rows: Places) -> Array:
        """Of rows (M, w), its own for each model; (M, w)."""
        ...


class Hessians(Protocol):
    """What Newton's method for many models asks of Hessians, each model an entry of an array."""

    #: The full model's.
    full: Array
    #: Whether they are made from weights of rows after a pass, and not on it.
    afterwards: bool

    def partial(self, curvatures: Array, rows: slice) -> Array | float:
        """What a chunk of rows with weights (M, m) adds."""
        ...

    def made(self, added: Array | float, weights: Weights, amounts: Array, rows: Places, lam: Array) -> Array:
        """From what chunks added and the weights of rows, less amounts (M, w) of some rows (M, w); lam (M, 1)."""
        ...

    def less(self, hessians: Array, gone: Array, rows: Places, lam: Array) -> Array:
        """Others, with weights ``gone`` (M, w) taken from rows (M, w), and lam (M, 1) from the penalty's strength."""
        ...

    def solve(self, hessians: Array, vectors: Array, *, gradients: bool = False) -> Array:
        """``H^-1 v`` for each of M; NaN where H is singular. Of ``gradients`` no closer than Newton's step is worth."""
        ...


class Matrices(Hessians):
    """Matrices (M, p, p)."""

    afterwards = False

    def __init__(self, squares: Squares, curvature: Curvature, penalised: Array) -> None:
        self._squares, self._penalised = squares, penalised
        self.full = curvature.hessian

    def partial(self, curvatures: Array, rows: slice) -> Array | float:
        """Weighted squares of the chunk."""
        return self._squares.of(curvatures, rows)

    def made(self, added: Array | float, weights: Weights, amounts: Array, rows: Places, lam: Array) -> Array:
        """The sum of the chunks, less the rows deleted, with the penalty."""
        gone = amounts * self.counted(rows, weights.of_each(rows))
        return self._moved(self.undeleted(added, weights), gone, rows, lam - self.strength)

    #: How much of the penalty is in :meth:`undeleted` already.
    strength = 0.0

    def undeleted(self, added: Array | float, weights: Weights) -> Array:
        """The Hessians as if no row was deleted and, but for :attr:`strength`, nothing penalised."""
        return self._squares.whole(np.asarray(added))

    def counted(self, rows: Places, now: Array, before: Array | None = None) -> Array:
        """With which weights rows (M, w) are in :meth:`undeleted`, by their weights in M models.

        ``before`` are those in the full model, where they are known.
        """
        return now

    def less(self, hessians: Array, gone: Array, rows: Places, lam: Array) -> Array:
        """A copy without these rows."""
        copies = np.array(np.broadcast_to(hessians, (len(rows), *hessians.shape[-2:])))
        return self._moved(copies, gone, rows, -lam)

    def _moved(self, hessians: Array, gone: Array, rows: Places, lam: Array) -> Array:
        for models in chunks(len(rows), max(1, ROW_ENTRIES // max(rows.shape[1] * hessians.shape[-1], 1))):
            x = self._squares.X[rows[models]]
            hessians[models] -= squares_of(x, gone[models])
        return self.penalised(hessians, lam)

    def penalised(self, hessians: Array, lam: Array) -> Array:
        """These Hessians with penalties of strengths (M, 1) more, in place."""
        diagonal = np.arange(hessians.shape[-1])
        hessians[:, diagonal, diagonal] += lam * self._penalised
        return hessians

    def solve(self, hessians: Array, vectors: Array, *, gradients: bool = False) -> Array:
        """By factorisation."""
        return solve_each(hessians, vectors)


class Sampled(Matrices):
    """Matrices (M, p, p) that differ from the full model's by what a sample of the rows tells.

    A deletion moves the weights of rows a little, ``c_i = c_i0 + d_i``, and the sum of ``c_i0 x_i x_i'`` is known. So
    only the small part is estimated, ``sum_i d_i x_i x_i'``, by rows that count for as many as they stand for; the rows
    deleted and those of high leverage, on which a coefficient may hang alone, count for themselves. The time for a
    Hessian then does not grow with the rows. It is off by a percent or so, which costs Newton's method a step.
    """

    afterwards = True

    def __init__(
        self, squares: Squares, curvature: Curvature, penalised: Array, weights: Any, strength: float, alone: Places
    ) -> None:
        super().__init__(squares, curvature, penalised)
        self._before, self.strength = weights, strength
        n = len(weights)
        others = n - len(alone)
        chosen = np.random.default_rng(0).choice(others, min(SAMPLE, others), replace=False)
        drawn = np.sort(Left(n, alone).rows(chosen))
        self._rows = np.concatenate([alone, drawn])
        self._known, self._drawn = np.sort(alone), drawn
        self._each = others / max(len(drawn), 1)
        self._shares = np.where(np.arange(len(self._rows)) < len(alone), 1.0, self._each)
        self._then = np.array(weights[self._rows])
        self._sample = Squares(squares.X[self._rows])

    @property
    def rows(self) -> Places:
        """The rows looked at."""
        return self._rows

    @property
    def sample(self) -> Array:
        """These rows, (m, p)."""
        return np.asarray(self._sample.X)

    def stands_for(self, rows: Places) -> Array:
        """As how many rows a row counts that is looked at; else 0."""
        return np.where(_among(rows, self._known), 1.0, np.where(_among(rows, self._drawn), self._each, 0.0))

    @classmethod
    def pays(cls, rows: int, alone: Places) -> bool:
        """Whether the rows looked at are few enough."""
        return (SAMPLE + len(alone)) * SAMPLE_PAYS <= rows

    def partial(self, curvatures: Array, rows: slice) -> float:
        """Nothing: it needs only the sample."""
        return 0.0

    def undeleted(self, added: Array | float, weights: Weights) -> Array:
        """The full model's, with the estimated change."""
        change = np.asarray(weights.of(self._rows), np.float64)
        change -= self._then
        change *= self._shares
        parts = [self._sample.of(change[:, part], part) for part in chunks(len(self._rows), self._sample.chunk)]
        hessians = self._sample.whole(np.add.reduce(parts))
        hessians += self.full
        return hessians

    def counted(self, rows: Places, now: Array, before: Array | None = None) -> Array:
        """What the full model's has of them, and what of their change was estimated."""
        before = self._before[rows] if before is None else before
        return np.asarray(before + self.stands_for(rows) * (now - before))


class RowWeights(Hessians):
    """Weights of rows with the penalty's strength behind them, (M, n + 1)."""

    afterwards = True

    def __init__(self, X: Array, curvature: Curvature, penalised: Array, weights: Array, strength: float) -> None:
        self._X, self._curvature, self._penalised = X, curvature, penalised
        self.full = np.append(weights, strength)
        # Single precision and unit lengths: a step is solved for to a thousandth, and repaired by the next one.
        self._unit = 1.0 / np.sqrt(np.diagonal(curvature.hessian))
        self._scaled = np.asarray(X * self._unit, np.float32)

    def partial(self, curvatures: Array, rows: slice) -> float:
        """Nothing: the weights are all there is to know."""
        return 0.0

    def made(self, added: Array | float, weights: Weights, amounts: Array, rows: Places, lam: Array) -> Array:
        """The weights, less those deleted."""
        made = np.concatenate([weights.of(slice(None)), lam], axis=1)
        np.subtract.at(made, (np.arange(len(rows))[:, None], rows), amounts * weights.of_each(rows))
        return made

    def less(self, hessians: Array, gone: Array, rows: Places, lam: Array) -> Array:
        """A copy without these rows."""
        copies = np.array(np.broadcast_to(hessians, (len(rows), hessians.shape[-1])))
        np.subtract.at(copies, (np.arange(len(rows))[:, None], rows), gone)
        copies[:, -1:] -= lam
        return copies

    def solve(self, hessians: Array, vectors: Array, *, gradients: bool = False) -> Array:
        """By conjugate gradients, all models at once; those that have arrived take no further part.

        A Newton step is off by about its decrement, relative to its length, however closely it is solved for.
        """
        solved, rest = np.zeros_like(vectors), np.array(vectors)
        near = self._curvature.solve(rest)
        toward, size = near.copy(), np.einsum("ij,ij->i", rest, near)
        residual = np.clip(0.5 * np.sqrt(np.maximum(size, 0.0)), RESIDUAL, LOOSE) if gradients else RESIDUAL
        goal = residual**2 * size
        open_ = np.flatnonzero(size > 0)
        with np.errstate(over="ignore", divide="ignore", invalid="ignore"):  # models that are lost
            for _ in range(MOST_STEPS if len(open_) else 0):
                open_ = self._step(hessians, (solved, rest, toward, size), open_, goal)
                if not len(open_):
                    break
        solved[~np.isfinite(size)] = np.nan
        return solved

    def _step(self, hessians: Array, state: tuple[Array, Array, Array, Array], open_: Places, goal: Array) -> Places:
        """One step of the open models, in place: what is solved, what rests, where to, and how much; those open on."""
        solved, rest, toward, size = state
        own = toward[open_]
        image = self._times(hessians[open_], own)
        bend = np.einsum("ij,ij->i", own, image)
        length = np.where(bend > 0, size[open_] / bend, np.nan)  # not positive definite: nothing to solve
        solved[open_] += length[:, None] * own
        rest[open_] -= length[:, None] * image
        near = self._curvature.solve(rest[open_])
        left = np.einsum("ij,ij->i", rest[open_], near)
        toward[open_] = near + (left / size[open_])[:, None] * own
        size[open_] = left
        return np.asarray(open_[left > goal[open_]])

    def shortened(self, moves: Array, rows: Places, amounts: Array) -> Array:
        """Newton steps (M, p) shortened to ``log(1 + D)/D``, D their largest move of the score of any row.

        Rows (M, w) that are wholly deleted, by their amounts (M, w), do not count, though their scores move most. So
        shortened, a step on the logistic loss always descends. With few columns whole steps hardly ever fail; with
        nearly as many as rows, a deletion can move scores by any amount.
        """
        with np.errstate(over="ignore", invalid="ignore"):
            moved = np.abs(np.asarray(moves / self._unit, np.float32) @ self._scaled.T)
            model, place = np.nonzero(amounts >= 1.0)
            moved[model, rows[model, place]] = 0.0
            largest = np.asarray(moved.max(axis=1, keepdims=True), np.float64)
            return np.where(largest > WHOLE_MOVE, np.log1p(largest) / largest, 1.0) * moves

    def _times(self, hessians: Array, vectors: Array) -> Array:
        """``H v`` for each of M, to single precision."""
        scores = np.asarray(vectors / self._unit, np.float32) @ self._scaled.T
        scores *= hessians[:, :-1]
        return (scores @ self._scaled) / self._unit + hessians[:, -1:] * self._penalised * vectors


def squares_of(x: Array, weights: Array) -> Array:
    """``sum_i c_i x_i x_i'`` of rows (M, w, p) with weights (M, w), each model its own; (M, p, p)."""
    return np.asarray((x * weights[:, :, None]).transpose(0, 2, 1) @ x)


def _among(rows: Places, known: Places) -> Mask:
    """Which rows (M, w) are among those known, ascending."""
    if not len(known):
        return np.zeros(rows.shape, dtype=bool)
    return np.asarray(known[np.minimum(np.searchsorted(known, rows), len(known) - 1)] == rows)


def most_alone(rows: Places, leverages: Array) -> Places:
    """Of rows that would count for themselves, by their leverages, as many as may; ascending."""
    if len(rows) > MOST_ALONE:
        rows = rows[np.argsort(-leverages, kind="stable")[:MOST_ALONE]]
    return np.sort(rows)


def solve_each(hessians: Array, vectors: Array) -> Array:
    """``H^-1 v`` for each of M matrices; NaN where H is singular."""
    try:
        return np.asarray(np.linalg.solve(hessians, vectors[:, :, None])[:, :, 0])
    except np.linalg.LinAlgError:
        return np.stack([_solve_one(h, v) for h, v in zip(hessians, vectors, strict=True)])


def _solve_one(hessian: Array, vector: Array) -> Array:
    try:
        return np.asarray(np.linalg.solve(hessian, vector))
    except np.linalg.LinAlgError:
        return np.full_like(vector, np.nan)
