"""Newton's method for many deletions at once where an L1 penalty holds coefficients at 0.

A coefficient that is held counts as far stiffer than any other: then it does not move, and first-order effects of rows
are those on the coefficients that are not held. Steps end where a coefficient would change its sign; it stays at 0
until its slope beats its kink. Who gets to the tolerance that way is at the optimum, as its whole subgradient is 0;
who does not is retrained by the single-model method, which always gets there.

Rows are held in memory, and Hessians are matrices or estimated ones, however many rows and columns there are.
"""

from __future__ import annotations

from functools import cached_property

import numpy as np

from rocerf.deletion.batched_newton import BatchedNewton
from rocerf.deletion.deletions import Deletions
from rocerf.deletion.hessians import ALONE, SAMPLE, Matrices, Sampled, most_alone
from rocerf.deletion.looks import Look, unless_lost
from rocerf.models.logistic.kinks import Kinks
from rocerf.types import Array, Mask

#: Curvature of a coefficient that is held, and from which on one counts as held: beyond anything that data have.
STIFF, HELD = 1e200, 1e190

#: Moves this small are of coefficients that are held.
STILL = 1e-100


class KinkedNewton(BatchedNewton):
    """As :class:`BatchedNewton`, for an objective with kinks."""

    @cached_property
    def hessians(self) -> Matrices:
        """Matrices, estimated from a sample where rows are many."""
        weights = self.weights * self.loss.curvature(self.X @ self.theta)
        leverages = weights * self._lengths * len(self.X)
        alone = np.flatnonzero(leverages > ALONE * SAMPLE)
        alone = most_alone(alone, leverages[alone])
        if not Sampled.pays(len(self.X), alone):
            return self._exactly
        strength = self.objective.penalty.strength(len(self.X))
        return Sampled(self.squares, self.curvature, self.penalised, weights, strength, alone)

    @cached_property
    def hessian(self) -> Array:
        """The full model's, stiff where coefficients are held."""
        held = (self.theta == 0) & (self.objective.l1_penalised > 0)
        return np.asarray(_stiffened(self.hessians.full[None], held[None])[0])

    @property
    def _solved(self) -> None:
        return None

    @property
    def _rough(self) -> None:
        return None

    def shares(self, thetas: Array) -> Array:
        """As :meth:`BatchedNewton.shares`, with the slopes of the kinks."""
        of_row = self.objective.penalty.l1_per_row * self.objective.l1_penalised
        return super().shares(thetas) + of_row * np.sign(thetas)

    def moved(self, thetas: Array, moves: Array) -> Array:
        """Parameters after moves, 0 where they change sign or are held; NaN where they are lost."""
        ends = thetas + np.where(np.abs(moves) <= STILL, 0.0, moves)
        kinked = self.objective.l1_penalised > 0
        return unless_lost(np.where(kinked & (np.sign(thetas) * np.sign(ends) < 0), 0.0, ends))

    def look(
        self,
        thetas: Array,
        deletions: Deletions,
        hessians: Array | None = None,
        *,
        exactly: bool = False,
        rough: bool = False,
    ) -> Look:
        """As :meth:`BatchedNewton.look`; gradients are the shortest subgradients, and what is held is stiff.

        Rows are in double precision, always. Known Hessians in which a coefficient is stiff that is held no more are
        made anew.
        """
        seen = super().look(thetas, deletions, hessians, exactly=exactly)
        subgradients, held = self._subgradients(thetas, deletions, seen)
        if hessians is not None and (_stiff(hessians) & ~held).any():
            seen = super().look(thetas, deletions, None, exactly=exactly)
            subgradients, held = self._subgradients(thetas, deletions, seen)
        return Look(subgradients, _stiffened(seen.hessians, held), seen.pulls)

    def _subgradients(self, thetas: Array, deletions: Deletions, seen: Look) -> tuple[Array, Mask]:
        penalty = self.objective.penalty
        remaining = len(self.X) - deletions.amounts.sum(axis=1)
        strengths = (penalty.l1_per_model + penalty.l1_per_row * remaining)[:, None] * self.objective.l1_penalised
        diagonals = np.where(_stiff(seen.hessians), 0.0, np.einsum("ijj->ij", seen.hessians))
        return Kinks(strengths).subgradients(thetas, seen.gradients, diagonals)


def _stiff(hessians: Array) -> Mask:
    """Which coefficients are held in these Hessians (M, p, p); (M, p)."""
    return np.asarray(np.einsum("ijj->ij", hessians) > HELD)


def _stiffened(hessians: Array, held: Mask) -> Array:
    """Copies of Hessians (M, p, p) in which these coefficients (M, p) are held, too."""
    hessians = hessians.copy()
    model, place = np.nonzero(held)
    hessians[model, place, place] = STIFF
    return hessians
