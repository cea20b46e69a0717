"""What groups of retrained models make of a point: a value per group, and its slope.

Smooth scores (networks): ``value_g(x) = mean_g(x) - factor_g spread_g(x)``. A group has few models, so its own spread
is a poor guess; it is drawn towards the one that all groups share at x, as if that had been seen in ``SHARED`` models.
The factor is a tolerance factor: if scores are normal, a share q of new starts accepts with about 95 % confidence where
the value is 0. It would be 97.5 % if the spread were known; estimating it takes a few of these away.

Scores that move in steps (trees) have no use for a spread: the value is the score that the wanted share of the group
reaches, all of them in a small group.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from scipy.special import ndtri

from rocerf.types import Array, Places

#: Models in which the spread that all groups share counts as seen.
SHARED = 20

#: Confidence of the tolerance factor, one-sided, were the spread known.
CONFIDENCE = 0.975


def tolerance_factor(share: float, models: int) -> float:
    """Spreads below the mean of so many models at which a share of all models lies above, with 97.5 % confidence.

    The mean of the group is known up to ``spread / sqrt(models)``; the spread counts as known.

    >>> round(tolerance_factor(0.95, 5), 2)
    2.52
    """
    return float(ndtri(share) + ndtri(CONFIDENCE) / np.sqrt(models))


def refusing_in(models: int, share: float) -> int:
    """How many of so many models may refuse where this share must accept.

    >>> refusing_in(20, 0.95), refusing_in(3, 0.95)
    (1, 0)
    """
    return int(np.floor((1.0 - share) * models + 1e-9))


@dataclass(frozen=True, eq=False)
class GroupValues:
    """Values (G, P) of G groups at P points from the scores (M, P) of their models, ``sizes`` (G,) of them in each."""

    scores: Array
    sizes: Places
    share: float
    smooth: bool

    @property
    def _starts(self) -> Places:
        return np.cumsum(self.sizes) - self.sizes

    def _within(self) -> tuple[Array, Array, Array, Array]:
        """Means (G, P), distances from them (M, P), spreads as used (G, P), and the weight of a group's own (G, 1)."""
        count = self.sizes[:, None]
        means = np.add.reduceat(self.scores, self._starts, axis=0) / count
        apart = self.scores - np.repeat(means, self.sizes, axis=0)
        squares = np.add.reduceat(apart**2, self._starts, axis=0)
        own = (count - 1.0) / (count - 1.0 + SHARED)
        common = squares.sum(axis=0) / self._degrees
        spreads = np.sqrt((1.0 - own) * common + own * squares / np.maximum(count - 1, 1))
        return means, apart, np.maximum(spreads, 1e-12), own

    @property
    def _degrees(self) -> int:
        return max(int(self.sizes.sum()) - len(self.sizes), 1)

    @property
    def _factors(self) -> Array:
        return np.array([tolerance_factor(self.share, size) for size in self.sizes.tolist()])[:, None]

    def values(self) -> Array:
        """The value of each group at each point, (G, P)."""
        if self.smooth:
            means, _, spreads, _ = self._within()
            return means - self._factors * spreads
        ends = self._starts + self.sizes
        return np.stack([self._reached(self.scores[a:b]) for a, b in zip(self._starts, ends, strict=True)])

    def _reached(self, scores: Array) -> Array:
        """What the wanted share of a group (m, P) reaches: the lowest, but for those that may refuse; (P,)."""
        refusing = refusing_in(len(scores), self.share)
        return np.asarray(np.partition(scores, refusing, axis=0)[refusing])

    def weights(self, group: Places) -> Array:
        """How much the value of one group for each point, (P,), moves with the score of each model; (M, P)."""
        _, apart, spreads, own = self._within()
        points = np.arange(len(group))
        size, factor, weight = self.sizes[group], self._factors[group, 0], own[group, 0]
        spread = spreads[group, points]
        members = np.repeat(np.arange(len(self.sizes)), self.sizes)[:, None] == group
        common = (1.0 - weight) / self._degrees
        alone = weight / np.maximum(size - 1, 1)
        return np.asarray(members / size - factor / spread * apart * (common + members * alone))
