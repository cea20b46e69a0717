"""How points fare without rows that others picked: models that had no part in choosing the points.

For each of a few *attackers*, trained again on all rows from starts that nothing else has seen, the rows picked at a
point by the attacker's own first proposal are deleted, and models are retrained from fresh starts without them. A group
retrained for one point serves others at which it does at least 97 % of the harm that the attacker guesses for their own
worst rows (:mod:`rocerf.deletion.cover`).

For one person the trials are the models of their groups, independent given the point and the rows. For the batch,
people share models, and models of different groups may share a start, so not all their pairs are independent. So people
are drawn, everybody with the same chance, as many as can each have a start of their own: what is said of them is said
of all people, and a group that serves many counts as many.
"""

from __future__ import annotations

from functools import cached_property
from typing import Any

import numpy as np

from rocerf.deletion.cover import serving
from rocerf.deletion.group_attack import other_starts, refits_differ, seed_for
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

#: Different starts of the models retrained together, about; where there are more models, some have a start in common.
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
        """How points (P, d) fare; missing points are counted as -1. ``progress`` is told of models retrained.

        None where training again always gives the same model: its copies are no trials.
        """
        found = np.flatnonzero(np.isfinite(points).all(axis=1))
        if not len(found):
            return None
        accepted = np.full(len(points), -1, np.intp)
        stages = in_turn(progress, [1.0] * self._attackers)
        seen = [self._verdicts(points[found], number, stage) for number, stage in enumerate(stages)]
        if self.models > 1 and not refits_differ(self._groups[0], self.model):
            return None
        verdicts = [own for own, _ in seen]
        accepted[found] = sum(own.sum(axis=0) for own in verdicts)
        shares = np.concatenate([own.mean(axis=1) for own in verdicts])
        blocks = [self._blocks(number)[group] for number, (_, group) in enumerate(seen)]
        # As many for each attacker, so that none counts more than another.
        asked = min(most_trials(own, self.models) for own in blocks)
        drawn = 0
        for number, (own, block) in enumerate(zip(verdicts, blocks, strict=True)):
            people, models = drawn_pairs(block, asked, self.models, np.random.default_rng([self.seed, number]))
            drawn += int(own[models, people].sum())
        return HeldOut(accepted, shares, drawn, self.confidence, asked * self._attackers, picked=True)

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
                groups.retrain(
                    self.model, sets, self.models, seed=seed, starts=self._turns * self.models, progress=tell
                )
            if tell is not None:
                tell(1, 1)
        verdicts = np.empty((self.models, len(X)), bool)
        for group in np.unique(own):
            verdicts[:, own == group] = groups.of(int(group)).scores(X[own == group]) >= 0
        return verdicts, own

    @property
    def _turns(self) -> int:
        """Groups retrained together that have no start in common."""
        return max(1, STARTS // self.models)

    def _blocks(self, number: int) -> Places:
        """A number for the starts of each group of an attacker, (G,): groups have all starts in common, or none."""
        parts, seen = [np.empty(0, np.intp)], 0
        for _, count, _, _ in self._groups[number].calls:
            parts.append(seen + np.arange(count) % self._turns)
            seen += min(count, self._turns)
        return np.concatenate(parts)


def most_trials(block: Places, models: int) -> int:
    """People, of those whose groups have these blocks (P,), that can be drawn evenly with a start of their own each.

    >>> most_trials(np.array([0, 0, 1]), 10)  # two thirds of 15 share 10 starts
    15
    """
    return int(models * len(block) // np.unique(block, return_counts=True)[1].max())


def drawn_pairs(block: Places, trials: int, models: int, rng: np.random.Generator) -> tuple[Places, Places]:
    """People drawn, each of P with the same chance, and for each a model of their group; (trials,) both.

    People stand block by block, in a random order within, and every so many-th is taken: each block then has its share
    up to one, so never more than it has ``models``, which are drawn without repetition.
    """
    shuffled = rng.permutation(len(block))
    line = shuffled[np.argsort(block[shuffled], kind="stable")]
    people = line[(np.arange(trials) * len(block) + rng.integers(len(block))) // trials]
    model = np.empty(trials, np.intp)
    for own in np.unique(block[people]):
        places = np.flatnonzero(block[people] == own)
        model[places] = rng.permutation(models)[: len(places)]
    return people, model
