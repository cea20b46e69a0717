"""Newton's method for many deletions at once: the same rows, each model without some of them.

All models share passes over the rows: one product gives every model's scores, one gives every gradient, and one product
with the rows' pairwise columns ``x_j x_l`` gives every Hessian. A pass for M models costs a fraction of M single
passes.

Signs and factors are those of :mod:`rocerf.models.logistic.objective`; deletion multiplies a row's share by
``1 - amount``.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property
from typing import Any, NamedTuple
from weakref import WeakKeyDictionary

import numpy as np
from numpy.typing import NDArray

from rocerf.deletion.worst_rows import WorstRows, k_smallest_columns
from rocerf.errors import ModelError, NotConvergedError
from rocerf.models.logistic.objective import ROUNDING, TOLERANCE
from rocerf.models.model import ExactModel
from rocerf.passes import added, chunks, over_rows
from rocerf.types import Array, Places

#: Newton steps before a stubborn model is handed to the careful single-model method.
MAX_STEPS = 12

#: A guess from which Newton's decrement is larger than this is poor, and gets up to so many more passes.
POOR_GUESS = 0.5
MORE_PASSES = 3

#: Models with parameters beyond this are lost.
LOST = 1e12

#: Products of column pairs are kept in memory up to this size; beyond, they are made chunk by chunk.
PAIRS_BYTES = 2**28

#: Products are kept as sparse matrices if they take at most this share of the room.
SPARSE = 0.25

#: Rows of a chunk.
CHUNK = 4096

#: Below this many rows leverages are computed anew at every model; above, those at the full model serve.
EXACT_LEVERAGE_ROWS = 4096


@dataclass(frozen=True, eq=False)
class Deletions:
    """Which rows M models go without: row numbers (M, w) and the share of each that is deleted (M, w).

    A row number with amount 0 is padding.
    """

    rows: Places
    amounts: Array

    @classmethod
    def of(cls, sets: list[Places], width: int) -> Deletions:
        """Whole deletions of these sets of rows."""
        rows, amounts = np.zeros((len(sets), width), np.intp), np.zeros((len(sets), width))
        for place, chosen in enumerate(sets):
            rows[place, : len(chosen)], amounts[place, : len(chosen)] = np.sort(chosen), 1.0
        return cls(rows, amounts)

    @classmethod
    def worst(cls, worst: WorstRows, width: int) -> Deletions:
        """Whole deletions of the worst rows found for each model."""
        rows, amounts = np.zeros((len(worst), width), np.intp), np.zeros((len(worst), width))
        place = np.arange(len(worst.positions)) - worst.starts[worst.owners]
        rows[worst.owners, place], amounts[worst.owners, place] = worst.positions, 1.0
        return cls(rows, amounts)

    def __len__(self) -> int:
        return len(self.rows)

    def __getitem__(self, models: Places | NDArray[np.bool_] | slice) -> Deletions:
        return Deletions(self.rows[models], self.amounts[models])

    def set_of(self, model: int) -> Places:
        """Row numbers wholly or partly deleted for one model, ascending."""
        return np.unique(self.rows[model][self.amounts[model] > 0])

    def keys(self) -> list[bytes]:
        """One key for each model; equal sets have equal keys."""
        marked = np.where(self.amounts > 0, self.rows, -1)
        return [row.tobytes() for row in np.sort(marked, axis=1)]


class Look(NamedTuple):
    """Gradients (M, p) and Hessians (M, p, p) of M models, and how all rows pull on them (M, n), without weights."""

    gradients: Array
    hessians: Array
    pulls: Array


class BatchedNewton:
    """The objective of a fitted model, evaluated and minimised for many deletions at once."""

    @classmethod
    def of(cls, model: ExactModel) -> BatchedNewton:
        """The one for this model, made once however many adversaries ask."""
        if model not in _MADE:
            _MADE[model] = cls(model)
        return _MADE[model]

    def __init__(self, model: ExactModel) -> None:
        objective = self.objective = model.objective
        self.X = model.design(model.train.X)
        self.sign = 1.0 - 2.0 * model.train.y
        self.weights = np.ones(len(self.X)) if objective.weights is None else objective.weights
        self.penalised, self.loss = objective.penalised, objective.loss
        self.theta, self.curvature = model.theta, model.curvature()
        self.hessian = self.curvature.hessian
        self.pairs = np.triu_indices(self.X.shape[1])

    @cached_property
    def _products(self) -> tuple[int, list[Any] | None]:
        """Rows of a chunk, and for each chunk the products of its pairs of columns (m, p(p+1)/2) where memory allows.

        With them every Hessian is one row of a matrix product. One-hot columns are mostly zeros, and so are their
        products: those are kept as sparse matrices.
        """
        used, pairs = np.count_nonzero(self.X, axis=1), len(self.pairs[0])
        entries, dense = int((used * (used + 1) // 2).sum()), 8 * len(self.X) * pairs
        sparse = entries * 12 <= min(PAIRS_BYTES, dense * SPARSE)
        if not sparse and dense > PAIRS_BYTES:
            return max(1, PAIRS_BYTES // (64 * pairs)), None
        made = _sparse_products if sparse else self._dense_products
        return CHUNK, [made(self.X[rows]) for rows in chunks(len(self.X), CHUNK)]

    def _dense_products(self, x: Array) -> Array:
        first, second = self.pairs
        return x[:, first] * x[:, second]

    @cached_property
    def _lengths(self) -> Array:
        """``x_i'H^-1 x_i`` at the full model, (n,)."""
        whitened = self.curvature.whiten(self.X)
        return np.asarray(np.einsum("ij,ij->i", whitened, whitened))

    def prepare(self) -> None:
        """Make what all workers share, before they do."""
        _ = self._products, self._lengths

    def push(self) -> Array:
        """How hard each row pulls on the full model: the length of its gradient in the metric of the Hessian; (n,)."""
        pulls = self.loss.pull(self.sign * (self.X @ self.theta))
        return self.weights * pulls * np.sqrt(self._lengths)

    def _strength(self, deletions: Deletions) -> Array:
        """``lam`` of each model, shape (M, 1)."""
        penalty = self.objective.penalty
        remaining = len(self.X) - deletions.amounts.sum(axis=1)
        return np.asarray(penalty.per_model + penalty.per_row * remaining)[:, None]

    def first_guess(self, deletions: Deletions) -> Array:
        """One Newton step for each deletion from the full model, without touching the other rows; (M, p)."""
        return self.stepped(self.theta, self.hessian, deletions.rows, deletions.amounts)

    def carried(self, thetas: Array, hessians: Array, before: Deletions, after: Deletions) -> Array:
        """One Newton step for each model retrained without ``before`` (parameters (M, p), Hessians (M, p, p)) towards
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
        penalty = (self.objective.penalty.per_row * amounts.sum(axis=1))[:, None] * self.penalised
        hessians = hessians - _weighted_squares(XS, gone * self.loss.curvature_of_pull(pulls))
        hessians -= penalty[:, :, None] * np.eye(self.X.shape[1])
        return _unless_lost(thetas + solve_each(hessians, gradients + penalty * thetas))

    def look(self, thetas: Array, deletions: Deletions, hessians: Array | None = None) -> Look:
        """One pass over the rows at these parameters (M, p); known Hessians are taken over as they are."""
        chunk, products = self._products

        def partial(rows: slice) -> tuple[Array, Array | float, list[Array]]:
            x, weights = self.X[rows], self.weights[rows]
            margins = thetas @ x.T
            margins *= self.sign[rows]
            pulls = self.loss.quick_pull(margins)
            packed: Array | float = 0.0  # sum_i w_i l''_i x_ij x_il for every model and pair
            if hessians is None:
                made = self._dense_products(x) if products is None else products[rows.start // chunk]
                packed = np.asarray((self.loss.curvature_of_pull(pulls) * weights) @ made)
            return (pulls * (weights * self.sign[rows])) @ x, packed, [pulls]

        gradients, packed, parts = over_rows(partial, added, len(self.X), chunk)
        pulls = parts[0] if len(parts) == 1 else np.concatenate(parts, axis=1)
        rows, lam = deletions.rows, self._strength(deletions) * self.penalised
        XS, gone, pulled = self.X[rows], deletions.amounts * self.weights[rows], np.take_along_axis(pulls, rows, axis=1)
        gradients = gradients + lam * thetas - ((gone * self.sign[rows] * pulled)[:, None, :] @ XS)[:, 0, :]
        if hessians is None:
            hessians = np.empty((len(thetas), self.X.shape[1], self.X.shape[1]))
            first, second = self.pairs
            hessians[:, first, second] = hessians[:, second, first] = packed
            hessians -= _weighted_squares(XS, gone * self.loss.curvature_of_pull(pulled))
            diagonal = np.arange(self.X.shape[1])
            hessians[:, diagonal, diagonal] += lam
        return Look(gradients, hessians, pulls)

    def nearly(
        self, guesses: Array, deletions: Deletions, poor: float = POOR_GUESS
    ) -> tuple[Array, Array, Look, Places]:
        """Models from guesses by Newton steps until the next would hardly move them: one pass, more for poor guesses.

        Where the models were seen, where they are one step on, what was seen, and which of them are still astray: there
        may be no such model at all.
        """
        thetas, look = guesses.copy(), self.look(guesses, deletions)
        moves = solve_each(look.hessians, look.gradients)
        for passes in range(MORE_PASSES + 1):
            far = np.flatnonzero(~(_decrements(moves, look.gradients) <= poor))
            if not len(far) or passes == MORE_PASSES:
                break
            thetas[far] = _unless_lost(thetas[far] - moves[far])
            again = self.look(thetas[far], deletions[far])
            for seen, anew in zip(look, again, strict=True):
                seen[far] = anew
            moves[far] = solve_each(again.hessians, again.gradients)
        astray = np.union1d(far, np.flatnonzero(self._separated(look, deletions)))
        return thetas, _unless_lost(thetas - moves), look, astray

    def _separated(self, look: Look, deletions: Deletions) -> NDArray[np.bool_]:
        """Which models (M,) go without a penalty and get every remaining row right: larger ones are always better."""
        if self.objective.penalty.per_model or self.objective.penalty.per_row:
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
        thetas = _unless_lost(thetas)
        open_ = np.flatnonzero(~np.isnan(thetas).any(axis=1))
        arrived = np.zeros(len(thetas), dtype=bool)
        previous = np.full(len(thetas), np.inf)
        hessians: Array | None = None
        for step in range(MAX_STEPS if len(open_) else 0):
            look = self.look(thetas[open_], deletions[open_], hessians)
            move = solve_each(look.hessians, look.gradients)
            decrement = _decrements(move, look.gradients)
            thetas[open_] = _unless_lost(thetas[open_] - move)
            settled = decrement <= TOLERANCE
            settled |= (decrement < ROUNDING) & (decrement > previous[open_] / 2)
            settled &= ~self._separated(look, deletions[open_])
            previous[open_] = np.where(np.isfinite(decrement), decrement, np.inf)
            arrived[open_[settled]] = True
            onward = ~settled & ~np.isnan(thetas[open_]).any(axis=1)
            open_ = open_[onward]
            if not len(open_):
                break
            # Near the optimum the Hessian no longer changes: two fresh ones, then keep it.
            hessians = look.hessians[onward] if step in (1, 2, 4, 5) else None
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

    def harms(self, look: Look, thetas: Array, deletions: Deletions, directions: Array, *, leverage: bool) -> Array:
        """How each row's deletion changes the score in its model's direction, to first order; (M, n).

        With ``leverage`` the one-row formula that is exact for a quadratic loss: a row still in is divided by
        1 - leverage, a row already out (harm: what keeping it out does) by 1 + leverage.
        """
        solved = solve_each(look.hessians, directions)
        harms = solved @ self.X.T
        harms *= look.pulls
        harms *= self.weights * self.sign
        per_row = self.objective.penalty.per_row
        if per_row:
            harms += (per_row * (self.penalised * thetas * solved).sum(axis=1))[:, None]
        if leverage:
            levers = self.loss.curvature_of_pull(look.pulls) * (self.weights * self._lengths_at(look.hessians))
            denominators = 1.0 - np.minimum(levers, 0.999)
            model, place = np.nonzero(deletions.amounts > 0)
            gone = deletions.rows[model, place]
            denominators[model, gone] = 1.0 + levers[model, gone]
            harms /= denominators
        return harms

    def _lengths_at(self, hessians: Array) -> Array:
        """``x_i'H^-1 x_i`` for every row: of each model (M, n), or of the full one (n,) where there are many rows."""
        _, products = self._products
        if len(self.X) > EXACT_LEVERAGE_ROWS or products is None:
            return self._lengths
        try:
            inverse = np.linalg.inv(hessians)
        except np.linalg.LinAlgError:  # somewhere on the way of a search: the full model's lengths guide as well
            return self._lengths
        first, second = self.pairs
        packed = inverse[:, first, second] * np.where(first == second, 1.0, 2.0)
        return np.asarray(np.maximum(np.concatenate([packed @ part.T for part in products], axis=1), 0.0))


def worst_of(harms: Array, k: int, width: int) -> Deletions:
    """The at most k most harmful rows of each model, by harms (M, n)."""
    return Deletions.worst(k_smallest_columns(harms, k), width)


#: The one of each model that is alive. It holds the model's objective, not the model, which would else never be let go.
_MADE: WeakKeyDictionary[ExactModel, BatchedNewton] = WeakKeyDictionary()


def _sparse_products(x: Array) -> Any:
    """The products of pairs of columns that are not zero, as a sparse matrix (m, p(p+1)/2)."""
    from scipy.sparse import csr_array

    p = x.shape[1]
    rows, columns = np.nonzero(x)
    counts = np.bincount(rows, minlength=len(x))
    starts = np.repeat(np.cumsum(counts) - counts, counts)
    # Each entry of a row meets itself and the later ones of its row.
    later = counts[rows] - (np.arange(len(rows)) - starts)
    left = np.repeat(np.arange(len(rows)), later)
    right = left + np.arange(len(left)) - np.repeat(np.cumsum(later) - later, later)
    one, other = columns[left], columns[right]
    place = one * p - one * (one - 1) // 2 + (other - one)
    values = x[rows[left], one] * x[rows[right], other]
    return csr_array((values, (rows[left], place)), shape=(len(x), p * (p + 1) // 2))


def _weighted_squares(rows: Array, weights: Array) -> Array:
    """``sum_w weights_w x_w x_w'`` of each model's rows (M, w, p); (M, p, p)."""
    return (rows * weights[:, :, None]).transpose(0, 2, 1) @ rows


def _decrements(moves: Array, gradients: Array) -> Array:
    """Newton's decrements (M,); far out, rounding leaves descents below zero, which are no sign of having arrived."""
    with np.errstate(over="ignore", invalid="ignore"):
        return np.asarray(np.sqrt(np.abs(np.einsum("ij,ij->i", moves, gradients))))


def _unless_lost(thetas: Array) -> Array:
    """These parameters, but NaN for models that are so far out that no step leads back."""
    largest = np.abs(thetas).max(axis=-1, keepdims=True)
    return np.where(largest <= LOST, thetas, np.nan)


def solve_each(hessians: Array, vectors: Array) -> Array:
    """``H^-1 v`` for each of M; NaN where H is singular."""
    try:
        return np.asarray(np.linalg.solve(hessians, vectors[:, :, None])[:, :, 0])
    except np.linalg.LinAlgError:
        return np.stack([_solve_one(h, v) for h, v in zip(hessians, vectors, strict=True)])


def _solve_one(hessian: Array, vector: Array) -> Array:
    try:
        return np.asarray(np.linalg.solve(hessian, vector))
    except np.linalg.LinAlgError:
        return np.full_like(vector, np.nan)
