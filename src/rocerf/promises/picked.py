"""How points fare without rows that others picked: models that had no part in choosing the points.

For each of a few *attackers*, trained again on all rows from starts that nothing else has seen, the rows picked at a
point by the attacker's own first proposal are deleted, and models are retrained from fresh starts without them. A group
retrained for one point serves others at which it does at least 97 % of the harm that the attacker guesses for their own
worst rows (:mod:`rocerf.deletion.cover`).

For one person the trials are the models of their groups, independent given the point and the rows. For the batch,
people share models, and models of different groups may share a start, so their pairs are not independent: for each
start one model and one of its people are drawn (by seed), and those are.
"""

from __future__ import annotations

from functools import cached_property
from typing import Any

import numpy as np

from rocerf.deletion.cover import serving
from rocerf.deletion.group_attack import other_starts, seed_for
from rocerf.deletion.groups import Groups
from rocerf.errors import OptionError
from rocerf.models.model import Proposing, Refittable, Timed
from rocerf.passes import chunks
from rocerf.promises.held_out import HeldOut
from rocerf.promises.stages import in_turn
from rocerf.types import Array, Mask, Places, Progress

#: Numbers in one matrix of harms, points times rows.
HARMS = 2**24

#: Models that pick rows for an audit and models retrained without the rows of each; where its seeds are set apart.
AUDIT, AUDIT_STREAM = (2, 10), 0xA0D17

#: Different starts of the models retrained together; where there are more models, some have a start in common.
STARTS = 200


def refuse_what_picks_nothing(model: Refittable) -> None:
    """Refuse an audit of a model that this check cannot be made for, and say what can be done instead."""
    if not isinstance(model, Proposing):
        raise OptionError(
            "Expected a network or an estimator for audit=True, whose retraining has no single outcome to be counted, "
            f"got {type(model).__name__}; attack the points themselves: rocerf.Adversary(model, k).attack(points), or "
            "rocerf attack on the command line."
        )


class PickedCheck:
    """Checks points of one model against deletions of at most k rows picked by ``attackers`` models.

    Groups of ``models`` each are retrained as they are asked for, and kept: a point that is merely rounded later is
    served by those of the point itself.
    """

    def __init__(self, model: Proposing, k: int, attackers: int, models: int, confidence: float, seed: int) -> None:
        self.model, self.k, self.models, self.confidence, self.seed = model, k, models, confidence, seed
        self._attackers = attackers
        self._groups = [Groups() for _ in range(attackers)]

    @classmethod
    def auditing(cls, model: Any, k: int, confidence: float, seed: int) -> PickedCheck:
        """For a promise that is not about picked rows: by starts that nothing else of this seed has."""
        return cls(model, k, *AUDIT, confidence, seed_for(seed, AUDIT_STREAM))

    @cached_property
    def attackers(self) -> list[Proposing]:
        """The models that pick, trained at first use."""
        return other_starts(self.model, self._attackers, seed=seed_for(self.seed, 0))

    def expected_seconds(self, people: int) -> float | None:
        """About how long models are retrained for so many people, if none can share a group with another."""
        count = self._attackers * (1 + self.models * people)
        return self.model.seconds_to_retrain(count) if isinstance(self.model, Timed) else None

    def of(self, points: Array, progress: Progress | None = None) -> HeldOut | None:
        """How points (P, d) fare; missing points are counted as -1. ``progress`` is told of models retrained."""
        found = np.flatnonzero(np.isfinite(points).all(axis=1))
        if not len(found):
            return None
        accepted = np.full(len(points), -1, np.intp)
        accepted[found] = 0
        shares, drawn, trials = [], 0, 0
        stages = in_turn(progress, [1.0] * self._attackers)
        for number in range(self._attackers):
            verdicts, group = self._verdicts(points[found], number, stages[number])
            accepted[found] += verdicts.sum(axis=0)
            shares.append(verdicts.mean(axis=1))
            accepting, asked = self._drawn(verdicts, group, number)
            drawn, trials = drawn + accepting, trials + asked
        return HeldOut(accepted, np.concatenate(shares), drawn, self.confidence, trials, picked=True)

    def _verdicts(self, X: Array, number: int, progress: Progress | None) -> tuple[Mask, Places]:
        """Whether the models without the rows picked for each point accept it, (models, P), and its group, (P,)."""
        groups, attacker = self._groups[number], self.attackers[number]
        own = np.empty(len(X), np.intp)
        parts = list(chunks(len(X), max(1, HARMS // len(self.model.train))))
        for part, tell in zip(parts, in_turn(progress, [1.0] * len(parts)), strict=True):
            harms = attacker.harms(X[part], attacker.proposals[0])
            new, own[part] = serving(harms, self.k, groups)
            if new or not len(groups):
                sets = new or [np.empty(0, np.intp)]
                seed = seed_for(self.seed, 1 + number, len(groups))
                groups.retrain(self.model, sets, self.models, seed=seed, starts=STARTS, progress=tell)
            if tell is not None:
                tell(1, 1)
        verdicts = np.empty((self.models, len(X)), bool)
        for group in np.unique(own):
            verdicts[:, own == group] = groups.of(int(group)).scores(X[own == group]) >= 0
        return verdicts, own

    def _drawn(self, verdicts: Mask, group: Places, number: int) -> tuple[int, int]:
        """How many starts accept the one person drawn for them, and how many there are.

        For each start one of its models is drawn, and one of the people whom that model's group serves.
        """
        rng, starts, accepted = np.random.default_rng([self.seed, number]), self._groups[number].own_starts, 0
        used = np.unique(group)
        models = (used[:, None] * self.models + np.arange(self.models)).ravel()
        different = np.unique(starts[models])
        for start in different:
            model = int(rng.choice(models[starts[models] == start]))
            person = rng.choice(np.flatnonzero(group == model // self.models))
            accepted += int(verdicts[model % self.models, person])
        return accepted, len(different)
