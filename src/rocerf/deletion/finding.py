"""The best sets found so far for a block of points."""

from __future__ import annotations

from dataclasses import dataclass, field

import numpy as np

from rocerf.deletion.batched_newton import BatchedNewton
from rocerf.deletion.deletions import Deletions
from rocerf.types import Array, Places


@dataclass(eq=False)
class Finding:
    """The best set so far for each point of a block; scores are ``x~'theta``, without the model's offset."""

    scores: Array
    thetas: Array
    sets: list[Places]
    found_by: list[str]
    retrainings: Places
    seen: list[set[bytes]] = field(default_factory=list)
    ran: list[str] = field(default_factory=list)

    @classmethod
    def nothing_deleted(cls, models: BatchedNewton, directions: Array) -> Finding:
        """Before any search: the model as it is."""
        count = len(directions)
        return cls(
            scores=directions @ models.theta,
            thetas=np.tile(models.theta, (count, 1)),
            sets=[np.empty(0, np.intp)] * count,
            found_by=["nothing deleted"] * count,
            retrainings=np.zeros(count, np.intp),
            seen=[set() for _ in range(count)],
        )

    def __len__(self) -> int:
        return len(self.scores)

    def open(self, floor: Array) -> Places:
        """The points worth searching on: not below their floor (M,), and there is still something worse."""
        return np.flatnonzero((self.scores >= floor) & ~np.isneginf(self.scores))

    def unseen(self, points: Places, keys: list[bytes]) -> Places:
        """Places of the sets that were not yet retrained for their point; they count as seen from now on."""
        news = []
        for place, (point, key) in enumerate(zip(points, keys, strict=True)):
            if key not in self.seen[point]:
                self.seen[point].add(key)
                news.append(place)
        return np.array(news, np.intp)

    def consider(self, points: Places, thetas: Array, deletions: Deletions, directions: Array, name: str) -> None:
        """Take over converged models (one for each of these points; points may repeat) that are worse.

        NaN parameters stand for a deletion after which there is no model: nothing is worse.
        """
        scores = np.einsum("ij,ij->i", directions[points], thetas)
        scores[np.isnan(scores)] = -np.inf
        if name not in self.ran:
            self.ran.append(name)
        np.add.at(self.retrainings, points, 1)
        for place, (point, score) in enumerate(zip(points, scores, strict=True)):
            if score < self.scores[point] - 1e-13:
                self.scores[point], self.thetas[point] = score, thetas[place]
                self.sets[point], self.found_by[point] = deletions.set_of(place), name
