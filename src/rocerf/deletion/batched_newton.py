"""Newton's method for many deletions at once: the same rows, each model without some of them.

All models share passes over the rows: one product gives every model's scores, one gives every gradient, and their
Hessians are weighted squares of the same rows (:mod:`rocerf.deletion.squares`). A pass for M models costs a fraction of
M single passes, and never more than these.

Signs and factors are those of :mod:`rocerf.models.logistic.objective`; deletion multiplies a row's share by
``1 - amount``.
"""

from __future__ import annotations

from functools import cached_property
from typing import Any
from weakref import WeakKeyDictionary

import numpy as np
from numpy.typing import NDArray

from rocerf.data.disk_rows import CHUNK as LONG_CHUNK
from rocerf.data.disk_rows import row_by_row
from rocerf.deletion.deletions import Deletions
from rocerf.deletion.harms import Harms, HarmsAtHand
from rocerf.deletion.hessians import (
    ALONE,
    ROW_ENTRIES,
    SAMPLE,
    WIDE,
    Hessians,
    Matrices,
    RowWeights,
    Sampled,
    most_alone,
    solve_each,
)
from rocerf.deletion.looks import Look, RowCurvatures, decrements, unless_lost
from rocerf.deletion.rough_rows import RoughRows
from rocerf.deletion.row_harms import Levers, row_harms
from rocerf.deletion.squares import Squares
from rocerf.errors import ModelError, NotConvergedError
from rocerf.models.logistic.objective import ROUNDING, TOLERANCE
from rocerf.models.model import ExactModel
from rocerf.passes import SERIAL, added, chunks, each, over_rows
from rocerf.types import Array, Places

#: Newton steps before a stubborn model is handed to the careful single-model method.
MAX_STEPS = 12

#: The same where steps are damped.
MOST_DAMPED_STEPS = 40

#: Newton steps by estimated Hessians, where there are any, before they are made from all rows.
ESTIMATED_STEPS = 7

#: Newton's decrement from which on Hessians no longer change by more than they are off where they are estimated.
NEAR_OPTIMUM = 0.02

#: Newton's decrement up to which passes in single precision lead, where there are any.
ROUGH_ENDS = 1e-3

#: A guess from which Newton's decrement is larger than this is poor, and gets up to so many more passes.
POOR_GUESS = 0.5
MORE_PASSES = 3

#: Entries of the rows up to which they are solved with once and for all, where columns are many.
MOST_SOLVED = 2**25

#: Up to so many rows and columns leverages are computed anew at every model; above, those at the full model serve.
EXACT_LEVERAGE_ROWS, EXACT_LEVERAGE_COLUMNS = 4096, 120

#: Entries of the design rows from which these are read chunk by chunk and not held.
HELD = 2**22


class BatchedNewton:
    """The objective of a fitted model, evaluated and minimised for many deletions at once."""

    @classmethod
    def of(cls, model: ExactModel) -> BatchedNewton:
        """The one for this model, made once however many adversaries ask; of many rows none is held."""
        if model not in _MADE:
            from rocerf.deletion.kinked_newton import KinkedNewton
            from rocerf.deletion.streamed_newton import StreamedNewton

            _MADE[model] = (KinkedNewton if model.kinked else StreamedNewton if streams(model) else cls)(model)
        return _MADE[model]

    def __init__(self, model: ExactModel) -> None:
        objective = self.objective = model.objective
        self.X = row_by_row(model.design, model.train.X, model.design.width)
        self.sign = 1.0 - 2.0 * model.train.y
        self.signed = self.X * self.sign[:, None]
        self.weights = np.ones(len(self.X)) if objective.weights is None else objective.weights
        self._weighted = bool((self.weights != 1.0).any())
        self.penalised, self.loss = objective.penalised, objective.loss
        self.theta, self.curvature = model.theta, model.curvature()

    @cached_property
    def squares(self) -> Squares:
        """Weighted squares of the rows."""
        return Squares(self.X)

    @cached_property
    def hessians(self) -> Hessians:
        """How Hessians are kept and solved with: as weights of rows where columns are many, sampled where rows are."""
        weights = self.weights * self.loss.curvature(self.X @ self.theta)
        strength = self.objective.penalty.strength(len(self.X))
        if self.X.shape[1] >= WIDE:
            return RowWeights(self.X, self.curvature, self.penalised, weights, strength)
        leverages = weights * self._lengths * len(self.X)
        alone = np.flatnonzero(leverages > ALONE * SAMPLE)
        alone = most_alone(alone, leverages[alone])
        if Sampled.pays(len(self.X), alone):
            return Sampled(self.squares, self.curvature, self.penalised, weights, strength, alone)
        return self._exactly

    @cached_property
    def _rough(self) -> RoughRows | None:
        """The rows in single precision, where they are many."""
        if not isinstance(self.hessians, Sampled):
            return None
        weights = self.weights if self._weighted else None
        return RoughRows(self.signed, weights, self.theta, self.curvature, self.loss)

    @cached_property
    def _exactly(self) -> Matrices:
        return Matrices(self.squares, self.curvature, self.penalised)

    @property
    def hessian(self) -> Array:
        """The full model's, as Hessians are kept."""
        return self.hessians.full

    def solve(self, hessians: Array, vectors: Array) -> Array:
        """``H^-1 v`` for each of M Hessians as they are kept; NaN where H is singular."""
        return self.hessians.solve(hessians, vectors)

    @cached_property
    def _lengths(self) -> Array:
        """``x_i'H^-1 x_i`` at the full model, (n,)."""

        def partial(rows: slice) -> Array:
            whitened = self.curvature.whiten(self.X[rows])
            return np.asarray(np.einsum("ij,ij->i", whitened, whitened))

        return np.concatenate(each(partial, chunks(len(self.X), LONG_CHUNK), SERIAL))

    def prepare(self) -> None:
        """Make what all workers share, before they do."""
        _ = self._lengths, self._solved, self._rough, None if self.hessians.afterwards else self.squares.kept

    def push(self, rows: Any = slice(None)) -> Array:
        """How hard rows pull on the full model: the length of their gradients in the metric of the Hessian."""
        pulls = self.loss.pull(self.sign[rows] * (self.X[rows] @ self.theta))
        return np.asarray(self.weights[rows] * pulls * np.sqrt(self._lengths[rows]))

    def _strength(self, deletions: Deletions) -> Array:
        """``lam`` of each model, shape (M, 1)."""
        penalty = self.objective.penalty
        remaining = len(self.X) - deletions.amounts.sum(axis=1)
        return np.asarray(penalty.per_model + penalty.per_row * remaining)[:, None]

    def first_guess(self, deletions: Deletions) -> Array:
        """One Newton step for each deletion from the full model, without touching the other rows; (M, p)."""
        width = deletions.rows.shape[1]
        some = max(1, ROW_ENTRIES // (max(width, 1) * self.X.shape[1]))
        step = self._stepped_from_full if self._solved is not None and 2 * width < self.X.shape[1] else self.stepped
        parts = [deletions[models] for models in chunks(len(deletions), some)]
        return np.concatenate([step(self.theta, self.hessian, part.rows, part.amounts) for part in parts])

    @cached_property
    def _solved(self) -> Array | None:
        """``H^-1 x_i`` of all rows at the full model, (n, p), where columns are many and rows are not."""
        return self.curvature.solve(self.X) if self.X.shape[1] >= WIDE and self.X.size <= MOST_SOLVED else None

    def _stepped_from_full(self, theta: Array, hessian: Array, rows: Places, amounts: Array) -> Array:
        """As :meth:`stepped` from the full model, by the few rows that leave it: ``(H - U'DU)^-1 U'a``.

        What the penalty of these rows takes from the Hessian is left out.
        """
        assert self._solved is not None
        x, solved, gone = self.X[rows], self._solved[rows], amounts * self.weights[rows]
        pulls = self.loss.quick_pull(self.sign[rows] * (x @ theta))
        cross = x @ solved.transpose(0, 2, 1)
        left = np.eye(rows.shape[1]) - (gone * self.loss.curvature_of_pull(pulls))[:, :, None] * cross
        moves = solve_each(left, gone * self.sign[rows] * pulls)
        shrunk = amounts.sum(axis=1)[:, None] * self.curvature.solve(self.shares(theta))
        return self.moved(theta, self._damped((moves[:, None, :] @ solved)[:, 0, :] + shrunk, rows, amounts))

    def carried(self, thetas: Array, hessians: Array, before: Deletions, after: Deletions) -> Array:
        """One Newton step for each model retrained without ``before`` (parameters (M, p), Hessians as kept) towards
        the one without ``after``, touching no other rows; (M, p)."""
        rows = np.concatenate([before.rows, after.rows], axis=1)
        amounts = np.concatenate([-before.amounts, after.amounts], axis=1)
        return self.stepped(thetas, hessians, rows, amounts)

    def stepped(self, thetas: Array, hessians: Array, rows: Places, amounts: Array) -> Array:
        """One Newton step from optima ((p,) or (M, p)) whose rows lose these amounts (M, w); less than 0: get back."""
        XS, sign, gone = self.X[rows], self.sign[rows], amounts * self.weights[rows]
        scores = XS @ thetas if thetas.ndim == 1 else (XS @ thetas[:, :, None])[:, :, 0]
        pulls = self.loss.quick_pull(sign * scores)
        gradients = ((gone * sign * pulls)[:, None, :] @ XS)[:, 0, :]
        count = amounts.sum(axis=1)[:, None]
        lighter = self.objective.penalty.per_row * count
        hessians = self.hessians.less(hessians, gone * self.loss.curvature_of_pull(pulls), rows, lighter)
        moves = self.solve(hessians, gradients + count * self.shares(thetas))
        return self.moved(thetas, self._damped(moves, rows, amounts))

    def shares(self, thetas: Array) -> Array:
        """What each row brings of the penalty's gradient at parameters (..., p)."""
        return np.asarray(self.objective.penalty.per_row * self.penalised * thetas)

    def moved(self, thetas: Array, moves: Array) -> Array:
        """Parameters ((p,) or (M, p)) after moves (M, p); NaN where they are lost."""
        return unless_lost(thetas + moves)

    def look(
        self,
        thetas: Array,
        deletions: Deletions,
        hessians: Array | None = None,
        *,
        exactly: bool = False,
        rough: bool = False,
    ) -> Look:
        """One pass over the rows at these parameters (M, p); known Hessians are taken over as they are.

        With ``exactly`` Hessians that would be estimated are made from all rows. ``rough`` is in single precision,
        where rows are many.
        """
        kept = self._exactly if exactly and isinstance(self.hessians, Sampled) else self.hessians
        curved: Array | float = 0.0  # sum_i w_i l''_i x_i x_i' for every model
        if rough and not exactly and self._rough is not None:
            gradients, pulls = self._rough.look(thetas, self.squares.chunk)
        else:
            gradients, curved, pulls = self._seen(thetas, kept if hessians is None and not kept.afterwards else None)
        rows, lam = deletions.rows, self._strength(deletions)
        gone, pulled = deletions.amounts * self.weights[rows], np.take_along_axis(pulls, rows, axis=1)
        lost = ((gone * self.sign[rows] * pulled)[:, None, :] @ self.X[rows])[:, 0, :]
        gradients = gradients + lam * self.penalised * thetas - lost
        if hessians is None:
            hessians = kept.made(
                curved,
                RowCurvatures(self.loss, None if not self._weighted else self.weights, pulls),
                deletions.amounts,
                rows,
                lam,
            )
        return Look(gradients, hessians, pulls)

    def _seen(self, thetas: Array, kept: Hessians | None) -> tuple[Array, Array | float, Array]:
        """Gradients (M, p) of all rows, what they add to Hessians if these are asked for, and pulls (M, n)."""

        def partial(rows: slice) -> tuple[Array, Array | float, list[Array]]:
            x = self.signed[rows]
            own = self.loss.quick_pull(thetas @ x.T)
            curved: Array | float = 0.0
            if kept is not None:
                curved = kept.partial(self._times_weights(self.loss.curvature_of_pull(own), rows), rows)
            return (own * self.weights[rows] if self._weighted else own) @ x, curved, [own]

        gradients, added_up, pulls = over_rows(partial, added, len(self.X), self.squares.chunk)
        return gradients, added_up, np.concatenate(pulls, axis=1)

    def _times_weights(self, values: Array, rows: slice | Places) -> Array:
        """These values (M, m) of rows, times the rows' weights, in place."""
        if self._weighted:
            values *= self.weights[rows]
        return values

    def _moves(self, look: Look, deletions: Deletions) -> Array:
        """Newton's steps (M, p), to be taken off."""
        moves = self.hessians.solve(look.hessians, look.gradients, gradients=True)
        return self._damped(moves, deletions.rows, deletions.amounts)

    def _damped(self, moves: Array, rows: Places, amounts: Array) -> Array:
        """Steps (M, p) of models without amounts (M, w) of rows (M, w), shortened where columns are many."""
        return self.hessians.shortened(moves, rows, amounts) if isinstance(self.hessians, RowWeights) else moves

    def nearly(
        self, guesses: Array, deletions: Deletions, poor: float = POOR_GUESS
    ) -> tuple[Array, Array, Look, Places]:
        """Models from guesses by Newton steps until the next would hardly move them: one pass, more for poor guesses.

        Where the models were seen, where they are one step on, what was seen, and which of them are still astray: there
        may be no such model at all.
        """
        thetas, look = guesses.copy(), self.look(guesses, deletions, rough=True)
        moves = self._moves(look, deletions)
        for passes in range(MORE_PASSES + 1):
            far = np.flatnonzero(~(decrements(moves, look.gradients) <= poor))
            if not len(far) or passes == MORE_PASSES:
                break
            thetas[far] = self.moved(thetas[far], -moves[far])
            again = self.look(thetas[far], deletions[far], rough=True)
            for seen, anew in zip(look, again, strict=True):
                seen[far] = anew
            moves[far] = self._moves(again, deletions[far])
        astray = np.union1d(far, np.flatnonzero(self._separated(look, deletions)))
        return thetas, self.moved(thetas, -moves), look, astray

    def _separated(self, look: Look, deletions: Deletions) -> NDArray[np.bool_]:
        """Which models (M,) go without a penalty and get every remaining row right: larger ones are always better."""
        if not self.objective.penalty.none:
            return np.zeros(len(look.pulls), dtype=bool)
        wrong = (look.pulls >= self.loss.pull(np.zeros(1))) & (self.weights > 0)
        model, place = np.nonzero(deletions.amounts >= 1.0)
        wrong[model, deletions.rows[model, place]] = False
        return np.asarray(~wrong.any(axis=1))

    def converge(self, thetas: Array, deletions: Deletions) -> Array:
        """Newton from these parameters to the tolerance of exact retraining, for every model; (M, p).

        Where Newton without step control does not get there, the single-model method with step control does. A model
        without an optimum (a class is gone) comes back as NaN.
        """
        thetas = unless_lost(thetas)
        open_ = np.flatnonzero(~np.isnan(thetas).any(axis=1))
        arrived = np.zeros(len(thetas), dtype=bool)
        previous = np.full(len(thetas), np.inf)
        hessians: Array | None = None
        rough = self._rough is not None
        most = MOST_DAMPED_STEPS if isinstance(self.hessians, RowWeights) else MAX_STEPS
        for step in range(most if len(open_) else 0):
            rough = rough and step < ESTIMATED_STEPS
            exactly = step >= ESTIMATED_STEPS
            look = self.look(thetas[open_], deletions[open_], hessians, exactly=exactly, rough=rough)
            move = self._moves(look, deletions[open_])
            decrement = decrements(move, look.gradients)
            thetas[open_] = self.moved(thetas[open_], -move)
            settled = decrement <= TOLERANCE
            settled |= (decrement < ROUNDING) & (decrement > previous[open_] / 2)
            settled &= ~self._separated(look, deletions[open_]) & (not rough)
            previous[open_] = np.where(np.isfinite(decrement) & (not rough), decrement, np.inf)
            arrived[open_[settled]] = True
            onward = ~settled & ~np.isnan(thetas[open_]).any(axis=1)
            open_ = open_[onward]
            if not len(open_):
                break
            # Near the optimum the Hessian no longer changes: two fresh ones, then keep it. An estimated one is kept as
            # soon as the optimum is near: another estimate would be no better.
            rough = rough and bool((decrement[onward] > ROUGH_ENDS).any())
            if isinstance(self.hessians, Sampled) and step + 1 < ESTIMATED_STEPS:
                keep = bool((decrement[onward] < NEAR_OPTIMUM).all())
            else:
                keep = step in (1, 2, 4, 5) and not isinstance(self.hessians, RowWeights)
            hessians = look.hessians[onward] if keep else None
        for place in np.flatnonzero(~arrived):
            thetas[place] = self._carefully(deletions.set_of(int(place)))
        return thetas

    def _carefully(self, rows: Places) -> Array:
        try:
            return self.objective.without(rows).minimise(self.theta).theta
        except NotConvergedError:
            return self.theta  # nothing is known of this deletion: it must not count as harmful
        except ModelError:
            return np.full_like(self.theta, np.nan)

    def harms(self, look: Look, thetas: Array, deletions: Deletions, directions: Array, *, leverage: bool) -> Harms:
        """How each row's deletion changes the score in its model's direction, to first order.

        With ``leverage`` the one-row formula that is exact for a quadratic loss: a row still in is divided by
        1 - leverage, a row already out (harm: what keeping it out does) by 1 + leverage.
        """
        solved = self.solve(look.hessians, directions)
        lengths = self._lengths_at(look.hessians) if leverage else self._lengths
        shares = self.shares(thetas)
        shrunk = (shares * solved).sum(axis=1)[:, None] if shares.any() else None
        rough = self._rough if look.pulls.dtype == np.float32 else None
        signed, toward = (self.signed, solved) if rough is None else (rough.rows, rough.along(solved))
        levers = Levers(self.loss, lengths, self.weights) if leverage else None
        weights = self.weights if self._weighted else None
        return HarmsAtHand(row_harms(signed, toward, look.pulls, weights, shrunk, levers, deletions))

    def harms_of_full_model(self, directions: Array) -> Harms:
        """How each row's deletion changes the scores of points (M, p), at the model as it is."""
        none = Deletions(np.zeros((1, 1), np.intp), np.zeros((1, 1)))
        look = self.look(self.theta[None, :], none, self.hessian[None], rough=True)  # one model for all points
        hessians = np.broadcast_to(self.hessian, (len(directions), *self.hessian.shape))
        return self.harms(look._replace(hessians=hessians), self.theta[None, :], none, directions, leverage=True)

    def no_harms(self, count: int) -> Harms:
        """Of models of which nothing is known yet."""
        return HarmsAtHand(np.zeros((count, len(self.X)), np.float64 if self._rough is None else np.float32))

    def _lengths_at(self, hessians: Array) -> Array:
        """``x_i'H^-1 x_i`` for every row: of each model (M, n), or of the full one (n,) where there are many rows."""
        n, p = self.X.shape
        if isinstance(self.hessians, RowWeights) or n > EXACT_LEVERAGE_ROWS or p > EXACT_LEVERAGE_COLUMNS:
            return self._lengths
        try:
            inverse = np.linalg.inv(hessians)
        except np.linalg.LinAlgError:  # somewhere on the way of a search: the full model's lengths guide as well
            return self._lengths
        return np.asarray(np.maximum(self.squares.lengths(np.asarray(inverse, np.float64)), 0.0))


#: The one of each model that is alive. It holds the model's objective, not the model, which would else never be let go.
_MADE: WeakKeyDictionary[ExactModel, BatchedNewton] = WeakKeyDictionary()


def streams(model: ExactModel) -> bool:
    """Whether the rows of a model are too many to be held, and its columns few enough to walk over them."""
    n, p = len(model.train), model.design.width
    return not model.kinked and p < WIDE and n > EXACT_LEVERAGE_ROWS and n * p > HELD
