"""Newton's method for many deletions over rows that need not be in memory: all models share every pass.

The same mathematics as :class:`~rocerf.deletion.batched_newton.BatchedNewton`, from which it inherits the steps. What
differs is what is kept: no number a row, and of every model only its parameters, its Hessian and the rows it goes
without. A pass over the rows, wherever it runs (:mod:`rocerf.passes`), sums the gradients of all models; the few rows
that a model goes without are looked up by their numbers and taken off afterwards.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property
from typing import Any, NamedTuple

import numpy as np

from rocerf.deletion import streamed_rows
from rocerf.deletion.batched_newton import BatchedNewton
from rocerf.deletion.deletions import Deletions
from rocerf.deletion.hessians import ALONE, SAMPLE, Matrices, Sampled, Weights, most_alone, squares_of
from rocerf.deletion.squares import Squares
from rocerf.deletion.streamed_harms import HarmValues, StreamedHarms, own_rows, parts_of
from rocerf.deletion.streamed_rows import Lengths, RowArray, StreamedRows
from rocerf.models.model import ExactModel
from rocerf.passes import Room, Threads, added, over_rows
from rocerf.types import Array, Mask, Places

#: Entries of deleted rows that are looked up at a time.
LOOKED_UP = 2**19


class StreamedLook(NamedTuple):
    """Gradients (M, p), Hessians (M, p, p), and how many remaining rows M models get wrong (M,)."""

    gradients: Array
    hessians: Array
    wrong: Array

    def of(self, models: Places) -> StreamedLook:
        """What was seen of these models."""
        return StreamedLook(*(seen[models] for seen in self))


class StreamedNewton(BatchedNewton):
    """As :class:`BatchedNewton`, by passes over rows that are read chunk by chunk."""

    def __init__(self, model: ExactModel) -> None:
        objective = self.objective = model.objective
        self.rows = StreamedRows.of(objective)
        self.X: Any = self.rows
        self.sign: Any = RowArray(self.rows.sign, len(self.rows))
        self.weights: Any = RowArray(self.rows.weight, len(self.rows))
        self.penalised, self.loss = objective.penalised, objective.loss
        self.theta, self.curvature = model.theta, model.curvature()
        self.lengths = Lengths.of(self.curvature, len(self.rows), on_disk=model.train.on_disk)

    @cached_property
    def squares(self) -> Squares:
        """Weighted squares of the rows, made anew in every pass."""
        return Squares(self.rows, keep=False)

    @cached_property
    def hessians(self) -> Matrices:
        """Estimated by a sample of the rows, where these are many."""
        rows, leverages = self._over(_Alone(self.rows, self.theta, self.lengths))
        alone = most_alone(np.concatenate(rows), np.concatenate(leverages))
        if not Sampled.pays(len(self.rows), alone):
            return self._exactly
        before = RowArray(self._weights_before, len(self.rows))
        strength = self.objective.penalty.strength(len(self.rows))
        return Sampled(self.squares, self.curvature, self.penalised, before, strength, alone)

    def _weights_before(self, rows: Places) -> Array:
        """Weights of rows in the Hessian of the full model."""
        return np.asarray(self.rows.weight(rows) * self.loss.curvature(self.rows[rows] @ self.theta))

    def _over(self, partial: Any) -> Any:
        return over_rows(partial, added, len(self.rows), streamed_rows.LONG_CHUNK, Threads())

    def prepare(self) -> None:
        """Make what all models share."""
        _ = self.hessians

    def push(self, rows: Any = slice(None)) -> Array:
        """How hard rows pull on the full model."""
        x = self.rows[rows]
        pulls = self.loss.pull(self.rows.sign(rows) * (x @ self.theta))
        return np.asarray(self.rows.weight(rows) * pulls * np.sqrt(self.lengths(x)))

    @property
    def _solved(self) -> None:
        return None

    @property
    def _rough(self) -> None:
        return None

    def stepped(self, thetas: Array, hessians: Array, rows: Places, amounts: Array) -> Array:
        """As :meth:`BatchedNewton.stepped`, for some models at a time."""
        step, deletions = super().stepped, Deletions(rows, amounts)
        made = [
            step(thetas if thetas.ndim == 1 else thetas[part], hessians if hessians.ndim == 2 else hessians[part], *own)
            for part in parts_of(deletions, self.rows.shape[1], LOOKED_UP)
            for own in [(rows[part], amounts[part])]
        ]
        return np.concatenate(made)

    def look(  # type: ignore[override]
        self,
        thetas: Array,
        deletions: Deletions,
        hessians: Array | None = None,
        *,
        exactly: bool = False,
        rough: bool = False,
    ) -> StreamedLook:
        """One pass over the rows at these parameters (M, p); as :meth:`BatchedNewton.look`."""
        kept = self._exactly if exactly else self.hessians
        squares = self.squares if hessians is None and not kept.afterwards else None
        gradients, curved, wrong = self._over(_Seen(self.rows, thetas, squares, self._unpenalised))
        lam = self._strength(deletions)
        gradients = gradients + lam * self.penalised * thetas
        fresh = hessians is None
        if hessians is None:
            hessians = kept.undeleted(curved, _SampleWeights(self, thetas))
            kept.penalised(hessians, lam - kept.strength)
        wrong = np.broadcast_to(np.asarray(wrong, np.float64), len(thetas)).copy()
        for part in parts_of(deletions, self.rows.shape[1], LOOKED_UP):
            own, rows, amounts = thetas[part], deletions.rows[part], deletions.amounts[part]
            x, sign, weight = self.rows[rows], self.rows.sign(rows), self.rows.weight(rows)
            pulls = self.loss.quick_pull(sign * (x @ own[:, :, None])[:, :, 0])
            gradients[part] -= ((amounts * weight * sign * pulls)[:, None, :] @ x)[:, 0, :]
            if fresh:
                now, before = weight * self.loss.curvature_of_pull(pulls), weight * self.loss.curvature(x @ self.theta)
                hessians[part] -= squares_of(x, amounts * kept.counted(rows, now, before))
            if self._unpenalised:
                wrong[part] -= (_wrong(self.loss, pulls) & (weight > np.zeros(1)) & (amounts >= 1.0)).sum(axis=1)
        return StreamedLook(gradients, hessians, wrong)

    @property
    def _unpenalised(self) -> bool:
        return not (self.objective.penalty.per_model or self.objective.penalty.per_row)

    def _separated(self, look: Any, deletions: Deletions) -> Mask:
        if not self._unpenalised:
            return np.zeros(len(deletions), dtype=bool)
        return np.asarray(look.wrong <= 0)

    def harms(  # type: ignore[override]
        self, look: StreamedLook, thetas: Array, deletions: Deletions, directions: Array, *, leverage: bool
    ) -> StreamedHarms:
        """As :meth:`BatchedNewton.harms`, to be asked for rows by passes."""
        solved = self.solve(look.hessians, directions)
        shrunk = self.objective.penalty.per_row * (self.penalised * thetas * solved).sum(axis=1)
        values = HarmValues(self.rows, self.lengths if leverage else None, thetas.copy(), solved, shrunk)
        return StreamedHarms(values, own_rows(deletions) if leverage else [_NONE] * len(deletions))

    def harms_of_full_model(self, directions: Array) -> StreamedHarms:
        """How each row's deletion changes the scores of points (M, p), at the model as it is."""
        count = len(directions)
        thetas = np.tile(self.theta, (count, 1))
        solved = self.solve(np.broadcast_to(self.hessian, (count, *self.hessian.shape)), directions)
        shrunk = self.objective.penalty.per_row * (self.penalised * thetas * solved).sum(axis=1)
        return StreamedHarms(HarmValues(self.rows, self.lengths, thetas, solved, shrunk), [_NONE] * count)

    def no_harms(self, count: int) -> StreamedHarms:
        """Of models of which nothing is known yet."""
        width = self.rows.shape[1]
        values = HarmValues(
            self.rows, self.lengths, np.zeros((count, width)), np.zeros((count, width)), np.zeros(count)
        )
        return StreamedHarms(values, [_NONE] * count)


_NONE: Places = np.empty(0, np.intp)


def _wrong(loss: Any, pulls: Array) -> Mask:
    """Which rows, by their pulls, a model gets wrong."""
    return np.asarray(pulls >= loss.pull(np.zeros(1)))


@dataclass(frozen=True, eq=False)
class _Seen:
    """What a chunk adds to the gradients and, with ``squares``, the Hessians of M models; wrong rows, if asked."""

    rows: StreamedRows
    thetas: Array
    squares: Squares | None
    count_wrong: bool

    def __call__(self, rows: slice) -> tuple[Array, Array | float, Array | float]:
        loss = self.rows.loss
        gradients = np.zeros_like(self.thetas)
        curved: Array | float = 0.0
        wrong: Array | float = 0.0
        room = Room()
        for own, x, sign, weight in self.rows.blocks(rows, len(self.thetas)):
            signed = np.multiply(x, sign[:, None], out=room("signed", *x.shape))
            pulls = loss.quick_pull(np.matmul(self.thetas, signed.T, out=room("pulls", len(self.thetas), len(x))))
            if self.count_wrong:
                wrong = wrong + (_wrong(loss, pulls) & (weight > np.zeros(1))).sum(axis=1)
            if self.squares is not None:
                curved = curved + self.squares.of_rows(loss.curvature_of_pull(pulls) * weight, x, own)
            if not isinstance(weight, float):
                pulls *= weight
            gradients += pulls @ signed
        return gradients, curved, wrong


@dataclass(frozen=True, eq=False)
class _Alone:
    """The rows of a chunk whose leverage is so high that they count for themselves, and that leverage."""

    rows: StreamedRows
    theta: Array
    lengths: Lengths

    def __call__(self, rows: slice) -> tuple[list[Places], list[Array]]:
        x = self.rows[rows]
        leverages = self.rows.weight(rows) * self.rows.loss.curvature(x @ self.theta) * self.lengths.of_block(rows, x)
        leverages *= len(self.rows)
        found = np.flatnonzero(leverages > ALONE * SAMPLE)
        return [rows.start + found], [leverages[found]]


@dataclass(frozen=True, eq=False)
class _SampleWeights(Weights):
    """Weights of the sampled rows in the Hessians of models with parameters (M, p)."""

    models: StreamedNewton
    thetas: Array

    def of(self, rows: Any) -> Array:
        """As :meth:`Weights.of`, of the sample alone."""
        models = self.models
        assert isinstance(models.hessians, Sampled)
        pulls = models.loss.quick_pull(self.thetas @ models.hessians.sample.T)
        curvatures = models.loss.curvature_of_pull(pulls)
        curvatures *= models.rows.weight(rows)
        return curvatures

    def of_each(self, rows: Places) -> Array:
        """Not asked for: rows deleted are looked up with their values."""
        raise NotImplementedError
