"""The Hessians of many models over the same rows, kept as matrices or as weights of rows.

``H = sum_i c_i x_i x_i' + lam P`` of each of M models is either the matrix itself (:class:`Matrices`, (M, p, p)), or
the weights ``c`` with ``lam`` behind them (:class:`RowWeights`, (M, n + 1)). Both are arrays, one entry a model; only
these classes know what is in them.

A matrix costs ``n p^2`` to make and ``p^3`` to solve with. Where columns are many, conjugate gradients are far shorter:
a deletion changes the Hessian little, so that the factor of the full model, made once, leaves a dozen steps or two of
``n p + p^2`` each, shared by all models.
"""

from __future__ import annotations

from typing import Protocol

import numpy as np

from rocerf.deletion.squares import Squares
from rocerf.models.logistic.curvature import Curvature
from rocerf.passes import chunks
from rocerf.types import Array, Places

#: Columns from which Hessians are kept as weights of rows.
WIDE = 256

#: Conjugate gradients end at this residual, relative to the beginning and in the norm of the full model's inverse
#: Hessian, or after so many steps. What they leave the next step of Newton's method repairs.
RESIDUAL = 1e-3
MOST_STEPS = 200

#: Entries of the largest array that holds deleted rows of several models.
ROW_ENTRIES = 2**22


#: Rows drawn where Hessians are estimated, and how many times as many there must be for it to pay.
SAMPLE, SAMPLE_PAYS = 4096, 4

#: Leverage, times the rows that a drawn one stands for, from which a row counts for itself.
ALONE = 0.05


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

    def solve(self, hessians: Array, vectors: Array) -> Array:
        """``H^-1 v`` for each of M; NaN where H is singular."""
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
        whole = self._squares.whole(np.asarray(added))
        return self._moved(whole, amounts * weights.of_each(rows), rows, lam)

    def less(self, hessians: Array, gone: Array, rows: Places, lam: Array) -> Array:
        """A copy without these rows."""
        copies = np.array(np.broadcast_to(hessians, (len(rows), *hessians.shape[-2:])))
        return self._moved(copies, gone, rows, -lam)

    def _moved(self, hessians: Array, gone: Array, rows: Places, lam: Array) -> Array:
        x = self._squares.X[rows]
        hessians -= (x * gone[:, :, None]).transpose(0, 2, 1) @ x
        diagonal = np.arange(hessians.shape[-1])
        hessians[:, diagonal, diagonal] += lam * self._penalised
        return hessians

    def solve(self, hessians: Array, vectors: Array) -> Array:
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
        self, squares: Squares, curvature: Curvature, penalised: Array, weights: Array, strength: float, alone: Places
    ) -> None:
        super().__init__(squares, curvature, penalised)
        self._before, self._strength = weights, strength
        n = len(weights)
        others = np.setdiff1d(np.arange(n), alone)
        drawn = np.sort(np.random.default_rng(0).choice(others, min(SAMPLE, len(others)), replace=False))
        self._rows = np.concatenate([alone, drawn])
        self._stands_for = np.zeros(n)
        self._stands_for[alone], self._stands_for[drawn] = 1.0, len(others) / max(len(drawn), 1)
        self._sample = Squares(squares.X[self._rows])

    @classmethod
    def pays(cls, rows: int, alone: Places) -> bool:
        """Whether the rows looked at are few enough."""
        return (SAMPLE + len(alone)) * SAMPLE_PAYS <= rows

    def partial(self, curvatures: Array, rows: slice) -> float:
        """Nothing: it needs only the sample."""
        return 0.0

    def made(self, added: Array | float, weights: Weights, amounts: Array, rows: Places, lam: Array) -> Array:
        """The full model's, with the estimated change, less the rows deleted."""
        change = weights.of(self._rows)
        change -= self._before[self._rows]
        change *= self._stands_for[self._rows]
        parts = [self._sample.of(change[:, part], part) for part in chunks(len(self._rows), self._sample.chunk)]
        hessians = self._sample.whole(np.add.reduce(parts))
        hessians += self.full
        before = self._before[rows]
        gone = amounts * (before + self._stands_for[rows] * (weights.of_each(rows) - before))
        return self._moved(hessians, gone, rows, lam - self._strength)


class RowWeights(Hessians):
    """Weights of rows with the penalty's strength behind them, (M, n + 1)."""

    afterwards = True

    def __init__(self, X: Array, curvature: Curvature, penalised: Array, weights: Array, strength: float) -> None:
        self._X, self._curvature, self._penalised = X, curvature, penalised
        self.full = np.append(weights, strength)

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

    def solve(self, hessians: Array, vectors: Array) -> Array:
        """By conjugate gradients, all models at once; those that have arrived take no further part."""
        solved, rest = np.zeros_like(vectors), np.array(vectors)
        near = self._curvature.solve(rest)
        toward, size = near.copy(), np.einsum("ij,ij->i", rest, near)
        goal = RESIDUAL**2 * size
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

    def _times(self, hessians: Array, vectors: Array) -> Array:
        """``H v`` for each of M."""
        scores = vectors @ self._X.T
        scores *= hessians[:, :-1]
        return scores @ self._X + hessians[:, -1:] * self._penalised * vectors


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
