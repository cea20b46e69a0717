"""The ensembles that a promise rests on, as the solver of cells asks them: those that refuse most, and bounds of them.

A promise may rest on hundreds of ensembles. Only those that refused a choice so far are *asked* for bounds; every other
one is looked at where those accept, and joins them where it refuses.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import numpy as np

from rocerf.models.trees.scored import ScoredTrees
from rocerf.recourse.master.levels import Levels
from rocerf.recourse.master.reachable import Reachable
from rocerf.types import Array, Mask, Places

#: Ensembles that are asked for bounds from the start: those that refused most often before.
REMEMBERED = 4

#: Ensembles that join those asked at a time.
JOINING = 2

#: How much of what was counted before is kept whenever an ensemble joins.
KEPT = 0.99


class Ensembles:
    """The M ensembles under a promise, for one person; ``refusing`` (M,) counts refusals for all people.

    ``aim`` is what the value should reach by the trees as they were read, ``enough`` what it must reach in the library.
    """

    def __init__(
        self, promise: Any, models: list[ScoredTrees | None], refusing: Array, aim: float, enough: float
    ) -> None:
        self.promise, self.models, self.refusing = promise, models, refusing
        self.aim, self.enough = aim, enough
        floors, least = promise.floors(aim), promise.floors(enough)
        self.known = [m for m, trees in enumerate(models) if trees is not None]
        #: What their leaves must add up to, (M,); the same for what must be reached in the library.
        self.need, self.least = (
            np.array([-np.inf if t is None else t.raw_for(f) for t, f in zip(models, found, strict=True)])
            for found in (floors, least)
        )
        #: Whether some may refuse if others accept, so that all have to be asked together.
        self.together = bool(np.isneginf(floors[self.known]).any())
        worst = np.argsort(-refusing, kind="stable")[:REMEMBERED]
        asked = dict.fromkeys([0, *(int(m) for m in worst if refusing[m] > 0)])
        self.asked: dict[int, Reachable | None] = {m: None for m in asked if models[m] is not None}

    def trees(self, model: int) -> ScoredTrees:
        """One that can be read."""
        found = self.models[model]
        assert found is not None
        return found

    # --- the levels --------------------------------------------------------------------------------------

    def thresholds(self, d: int) -> list[Array]:
        """Where any of those asked cuts each of the d columns."""
        forms = [self.trees(m).form for m in self.asked]
        return [np.unique(np.concatenate([np.empty(0), *(form.thresholds(j) for form in forms)])) for j in range(d)]

    def gaps(self) -> dict[int, float]:
        """The numbers that stand for missing ones, by column."""
        return {column: number for m in self.asked for column, number in self.trees(m).form.gaps.items()}

    def cut_to(self, levels: Levels, parents: Places | None = None) -> int:
        """Look at those asked over these levels, which lie inside former ones at ``parents`` (S,); numbers read."""
        work = 0
        for model, known in self.asked.items():
            if known is not None and parents is not None:
                self.asked[model] = known.refined(levels.starts, parents)
            else:
                self.asked[model] = Reachable.of(self.trees(model), levels)
                work += self.trees(model).form.leaves * len(levels)
        return work

    def narrow(self, levels: Levels, kept: Mask) -> None:
        """The same over some of the levels (S,), which are ``levels`` now."""
        self.asked = {m: None if r is None else r.within(levels.starts, kept) for m, r in self.asked.items()}

    def active(self) -> Iterator[tuple[int, Reachable]]:
        """Those asked, each over the levels."""
        for model, reachable in self.asked.items():
            assert reachable is not None
            yield model, reachable

    # --- what they say -----------------------------------------------------------------------------------

    def accepted(self, choices: Places) -> Mask:
        """Whether all those asked accept choices of one level for each axis, (m, A) -> (m,)."""
        good = np.ones(len(choices), bool)
        raw = np.full((len(self.asked), len(choices)), np.inf)
        for place, (model, reachable) in enumerate(self.active()):
            left = np.flatnonzero(good)
            if not len(left):
                return good
            raw[place, left] = reachable.at(choices[left])
            good[left] = raw[place, left] >= self.need[model]
        return good & self.bearable(raw) if self.together else good

    def slack(self, choices: Places) -> Array:
        """By how much the one that is lowest exceeds what those asked must add up to at choices (m, A), (m,)."""
        lowest = np.full(len(choices), np.inf)
        for model, reachable in self.active():
            if np.isfinite(self.need[model]):
                lowest = np.minimum(lowest, reachable.at(choices) - self.need[model])
        return lowest

    @property
    def size(self) -> int:
        """Leaves of those asked."""
        return sum(len(reachable.values) for _, reachable in self.active())

    def bearable(self, raw: Array) -> Mask:
        """Whether the value may reach the aim where those asked add up to this at most, (asked, P) -> (P,)."""
        if not self.together:
            return np.ones(raw.shape[1], bool)
        of_asked = zip(map(self.trees, self.asked), raw, strict=True)
        scores = np.array([trees.of_raw(row) + trees.form.rounding for trees, row in of_asked])
        return np.asarray(self.promise.ceiling(scores, list(self.asked)) >= self.aim)

    def foreseen(self, point: Array) -> bool:
        """Whether the promise may hold at a point (d,), by the trees as they were read: libraries are asked then."""
        raw = {}
        for model in self._worst_first(self.known):
            raw[model] = float(self.trees(model).form.raw(point[None])[0])
            if raw[model] < self.least[model]:
                return False
        if not self.together:
            return True
        scores = [self.trees(m).of_raw(np.array([value])) + self.trees(m).form.rounding for m, value in raw.items()]
        return bool(self.promise.ceiling(np.array(scores), list(raw))[0] >= self.enough)

    def join(self, point: Array) -> bool:
        """Ask some more that keep the value below the aim at a point, or refuse it; whether there are any."""
        found = 0
        for model in self._worst_first([m for m in self.known if m not in self.asked]):
            score = self.trees(model).scores(point[None])
            if score[0] < self.aim or self.promise.ceiling(score[:, None], [model])[0] < self.aim:
                self.refusing *= KEPT
                self.refusing[model] += 1.0
                self.asked[model] = None
                found += 1
                if found == JOINING:
                    break
        return found > 0

    def _worst_first(self, models: list[int]) -> list[int]:
        return sorted(models, key=lambda m: -self.refusing[m])
