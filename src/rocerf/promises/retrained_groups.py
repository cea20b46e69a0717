"""The promise of true retraining where a deletion has no single outcome: networks, forests, boosted trees.

A pool of groups is shared by all people: one set of deleted rows each, and the models retrained without it from fresh
starts (:mod:`rocerf.deletion.groups`). A point must have a value of at least 0 with every group
(:mod:`rocerf.promises.group_value`). Between solving, points are attacked: sets are picked for them in several ways, by
the model and by models of other starts; what the pool does not yet serve (:mod:`rocerf.deletion.cover`) is retrained
and joins it; whoever no longer holds is solved for again.

What chooses never reports: :meth:`RetrainedGroups.held_out` has rows picked by models that had no part in any of it,
and retrains without them from starts of their own.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import asdict
from functools import cached_property, partial
from typing import Any, Self

import numpy as np

from rocerf.deletion.cover import SERVES, serving, shared_worst
from rocerf.deletion.each_row import EACH_ROW, each_row_alone, harmful_alone, rows_tried_alone
from rocerf.deletion.efforts import EFFORTS
from rocerf.deletion.group_attack import refits_differ, seed_for
from rocerf.deletion.groups import Groups
from rocerf.deletion.guesses import Guesses
from rocerf.models.ensembles import SmoothEnsemble
from rocerf.models.model import Proposing, Smooth, Timed
from rocerf.passes import chunks
from rocerf.promises.answering_time import seconds_to_answer_all
from rocerf.promises.fresh_starts import FreshStarts
from rocerf.promises.group_value import GroupValues
from rocerf.promises.held_out import HeldOut
from rocerf.promises.picked import PickedCheck
from rocerf.promises.promise import STATE_FORMAT, Promise, Reading, Solve
from rocerf.promises.stages import in_turn
from rocerf.promises.step_reads import StepReads, step_searches
from rocerf.promises.tree_bounds import PoolTrees
from rocerf.storage.state import State
from rocerf.types import Array, Places, Progress
from rocerf.words import Said

#: Sets the seeds of the pool apart from everybody else's.
STREAM = 0x9E7A1

#: Share of the drop by which points aim deeper than what was found, as other sets may be worse by a hair.
SLACK = 0.02

#: The same where scores move in steps, of the usual drop: the next step may be one row away, and the cheapest point
#: stands right behind it. With 0.05 a thorough adversary broke 4 of 10 answers of LightGBM on German, with 0.25 one.
STEP_SLACK = 0.4

#: How many times as often points are attacked and solved for again where scores move in steps.
STEP_ROUNDS = 3

#: Models retrained without any deletion, which every point must convince too.
BASE_MODELS = 20

#: For guesses of the time: groups that join the pool for each person (1.2 to 5.3 on the paper's three tables), times
#: that a person is solved for, which is a guess itself, and groups asked about a point where scores move in steps.
GROUPS_A_PERSON, TIMES_SOLVED, STEPS_ASKED = 3, 3, 6

#: About as many rows as are retrained without in one search, for progress.
ROWS_A_SEARCH = 20

#: Groups retrained together that have no start in common.
STARTS = 8

#: Scores of retrained models computed at a time, and numbers in one matrix of harms.
BLOCK, HARMS = 400_000, 2**24


class RetrainedGroups(PoolTrees, Promise):
    """``value(x) >= 0`` with every group retrained so far; made by :meth:`FreshStarts.about`."""

    name = "retrained"
    chooses_margin = True
    model: Proposing
    options: FreshStarts
    effort: str

    def __init__(self, model: Proposing, k: int, options: FreshStarts, seed: int) -> None:
        super().__init__(model, k)
        self.options, self.seed = options, seed
        self.effort = options.effort
        self._stream = seed_for(seed, STREAM)
        self._ran: dict[str, None] = {}
        self._pool: Groups | None = None
        self._drops = np.zeros(2)  # sum and count over points attacked

    @property
    def share(self) -> float:  # type: ignore[override]
        """Share of the models retrained without the rows picked that should accept."""
        return self.options.share

    @property
    def rounds(self) -> int:
        """How often points are attacked and solved for again."""
        return self.options.rounds * (1 if self._smooth else STEP_ROUNDS)

    # --- the pool -----------------------------------------------------------------------------------

    @property
    def pool(self) -> Groups:
        """All groups; the first one had nothing deleted."""
        if self._pool is None:
            self.prepare(_nobody)
        assert self._pool is not None
        return self._pool

    @property
    def prepared(self) -> bool:
        """Whether there is a pool to read."""
        return self._pool is not None

    def prepare(self, solve: Solve, progress: Progress | None = None) -> None:
        """Retrain the first group, without any deletion."""
        if self._pool is None:
            pool = Groups()
            nothing = [np.empty(0, np.intp)]
            seed = seed_for(self._stream)
            if not isinstance(self.model, Smooth):  # most trees come out the same: two say so
                pool.retrain(self.model, nothing, 2, seed=seed, starts=2, progress=progress)
            if not len(pool) or refits_differ(pool, self.model):
                pool = Groups()
                pool.retrain(self.model, nothing, BASE_MODELS, seed=seed, starts=BASE_MODELS, progress=progress)
            self._pool = pool

    def expected_seconds(self) -> float | None:
        """About how long the first group takes; None where the model does not know how long it trains."""
        if self.prepared:
            return 0.0
        return self.model.seconds_to_retrain(BASE_MODELS) if isinstance(self.model, Timed) else None

    def answering_seconds(self, people: int) -> float | None:
        """About how long attacking, solving and checking so many people takes: a rough guess."""
        if not isinstance(self.model, Timed):
            return None
        slopes = isinstance(self.model, Smooth)
        random = self.random if self.prepared else slopes  # most trees come out the same each time
        models = GROUPS_A_PERSON * people * (self.options.starts if random else 1)
        models += rows_tried_alone(self.model, self.effort, random=random)
        retraining = self.model.seconds_to_retrain(models)
        checking = self._check.expected_seconds(people) if random else 0.0
        # The pool grows from nothing; of groups in steps a few are asked about most points.
        asked = BASE_MODELS + models // 2 if slopes else STEPS_ASKED * (self.options.starts if random else 1)
        solving = TIMES_SOLVED * seconds_to_answer_all(self.model, asked, people)
        return None if retraining is None or checking is None else retraining + checking + solving

    @property
    def shorter(self) -> str:
        """Fewer models."""
        o = self.options
        half = {name: max(least, getattr(o, name) // 2) for name, least in (("starts", 2), ("rounds", 1))}
        half["checking"] = max(1, o.checking // 2)
        return f"FreshStarts({', '.join(f'{name}={value}' for name, value in half.items())}) takes about half the time"

    @cached_property
    def random(self) -> bool:
        """Whether models retrained on the same rows differ at all; where not, one is a group."""
        return refits_differ(self.pool, self.model)

    @cached_property
    def _guesses(self) -> Guesses:
        count = EFFORTS[self.effort].groups.others if self.random else 0
        # Those of the first group took part already: they need not be trained again to propose rows.
        return Guesses(self.model, [self.model.as_retrained(self.pool.models, place) for place in range(count)])

    def harden(self, X: Array, progress: Progress | None = None) -> None:
        """Attack points (P, d): sets picked for them that no group of the pool serves are retrained and join it.

        A group joins whole or not at all: who raises out of ``progress`` leaves what was found until then.
        """
        parts = list(chunks(len(X), max(1, HARMS // len(self.model.train)))) if len(X) else []
        if not self._smooth:
            for part, tell in zip(parts, in_turn(progress, [1.0] * len(parts)), strict=True):
                self._harden_steps(X[part], tell)
            return
        work = [(part, *way) for part in parts for way in self._ways_to_pick()]
        for (part, name, harms_at), tell in zip(work, in_turn(progress, [1.0] * len(work)), strict=True):
            self._retrain_for(name, harms_at(X[part]), SERVES, tell)
            if tell is not None:
                tell(1, 1)

    def _ways_to_pick(self) -> list[tuple[str, Callable[[Array], Array]]]:
        """The searches of the effort by name: each gives harms of points, (P, d) -> (P, n), from the pool as it is."""
        searches, proposals = EFFORTS[self.effort].groups.searches, self.model.proposals
        ways: list[tuple[str, Callable[[Array], Array]]]
        ways = [(proposals[0], partial(self._guesses.proposed, proposal=proposals[0]))]
        if "other starts" in searches and self._guesses.others:
            ways.append(("other starts", self._guesses.by_other_starts))
        if "relinearised" in searches or not self.random:
            ways.append(("relinearised", self._relinearised))
        return ways

    def _relinearised(self, X: Array) -> Array:
        first = self._guesses.proposed(X, self.model.proposals[0])
        worst = shared_worst(first, self.pool, self._group_values(X).values().argmin(axis=0))
        return self._guesses.relinearised(X, self.pool, worst)

    def _retrain_for(self, name: str, harms: Array, share: float, progress: Progress | None = None) -> None:
        """Retrain without the worst rows by harms (P, n) where no group does this share of the harm guessed."""
        new, _ = serving(harms, self.k, self.pool, share)
        if new:
            seed, each = seed_for(self._stream, len(self.pool)), self.options.starts if self.random else 1
            self.pool.retrain(self.model, new, each, seed=seed, starts=STARTS * each, progress=progress)
        self._ran[name] = None

    def _harden_steps(self, X: Array, progress: Progress | None) -> None:
        """Attack points (P, d) of models whose scores move in steps until each is broken or no search is left.

        Such a score may jump at one row more, so every point's own rows are tried.
        """
        values, worst = self._steps.lowest(self.pool, X)
        today = self.today(X).values
        searches = step_searches(self.model, EFFORTS[self.effort].groups, self.random)
        searching, retraining = in_turn(progress, (len(searches), self._rows_tried_alone / ROWS_A_SEARCH))
        for place, name in enumerate(searches):
            if searching is not None:
                searching(place, len(searches))
            holding = np.flatnonzero(values >= 0)
            if not len(holding):
                break
            harms = self._step_harms(name, X[holding], worst[holding])
            known = len(self.pool)
            if harms is not None:
                self._retrain_for(name, harms, 1.0)
            self._lower(values, worst, X, holding, known)
        holding = np.flatnonzero(values >= 0)
        if self._rows_tried_alone and len(holding):
            known = len(self.pool)
            self._retrain_each_row(each_row_alone(self.model, retraining), X[holding], values[holding])
            self._lower(values, worst, X, holding, known)
        self._drops += [float(np.maximum(today - values, 0.0).sum()), float(len(X))]
        if progress is not None:
            progress(1, 1)

    def _lower(self, values: Array, worst: Places, X: Array, holding: Places, known: int) -> None:
        """Take over what groups from ``known`` on say of the points (P, d) that are still ``holding``."""
        if len(self.pool) > known:
            found, group = self._steps.lowest(self.pool, X[holding], first=known)
            lower = found < values[holding]
            values[holding[lower]], worst[holding[lower]] = found[lower], group[lower]

    @property
    def _rows_tried_alone(self) -> int:
        return rows_tried_alone(self.model, self.effort, random=self.random) if self.k else 0

    def _retrain_each_row(self, alone: Groups, X: Array, values: Array) -> None:
        """The rows that alone bring points (P, d) below their values join the pool, and those together that do most."""
        new, harms = harmful_alone(alone, X, values, self.pool)
        if new:
            self.pool.retrain(self.model, new, 1, seed=seed_for(self._stream, len(self.pool)), starts=STARTS)
        self._retrain_for(EACH_ROW, harms, 1.0)

    def _step_harms(self, name: str, X: Array, worst: Places) -> Array | None:
        """Harms of points (P, d) whose worst groups (P,) are known, by one search; (P, n), or None if it has none."""
        if name == "other starts":
            return self._guesses.by_other_starts(X)
        if name == "relinearised":
            return self._guesses.relinearised(X, self.pool, worst)
        if name == "regression":
            around = self._guesses.proposed(X, self.model.proposals[0])
            return self._guesses.regressed(self.pool, self.pool.outcomes(X).means, around)
        return self._guesses.proposed(X, name)

    @property
    def _step_margin(self) -> float:
        """By how much points aim deeper where scores move in steps."""
        return float(STEP_SLACK * self._drops[0] / max(self._drops[1], 1.0))

    @cached_property
    def _steps(self) -> StepReads:
        return StepReads(self.options.share)

    @property
    def searches(self) -> tuple[str, ...]:
        """The searches that ran so far."""
        return tuple(self._ran)

    # --- reading ------------------------------------------------------------------------------------

    @property
    def _smooth(self) -> bool:
        return isinstance(self.pool.models, SmoothEnsemble)

    def _group_values(self, X: Array) -> GroupValues:
        assert self.pool.models is not None
        return GroupValues(self.pool.models.scores(X), self.pool.sizes, self.options.share, self._smooth)

    def read(self, X: Array, target: float | Array = -np.inf) -> Reading:
        """The lowest value over the pool, aimed a little deeper, and its slope where models have one."""
        if not self._smooth:
            return self._read_steps(X, target)
        size = max(1, BLOCK // max(int(self.pool.sizes.sum()), 1))
        parts = [self._read_block(X[first : first + size]) for first in range(0, len(X), size)]
        if not parts:
            return Reading(np.empty(0), np.empty(X.shape))
        values, slopes, group = (np.concatenate(piece) for piece in zip(*parts, strict=True))
        today, ids, sets = self.today(X), self.model.train.ids, self.pool.sets
        drop = np.maximum(today.values - values, 0.0)
        aimed = np.where((drop > 0)[:, None], (1.0 + SLACK) * slopes - SLACK * today.slopes, slopes)
        reading = Reading(values - SLACK * drop, aimed, lambda point: ids[sets[group[point]]], values)
        return reading.floored_by(today)

    def _read_block(self, X: Array) -> tuple[Array, Array, Places]:
        models = self.pool.models
        assert isinstance(models, SmoothEnsemble)
        scores, pullback = models.scores_and_pullback(X)
        seen = GroupValues(scores, self.pool.sizes, self.options.share, smooth=True)
        values = seen.values()
        group = values.argmin(axis=0)
        return values[group, np.arange(len(X))], pullback(seen.weights(group)), group

    def _read_steps(self, X: Array, target: float | Array) -> Reading:
        """The same of models whose scores move in steps: values below the target may be those of some groups alone."""
        today, ids, sets = self.today(X), self.model.train.ids, self.pool.sets
        # From there on a group's value, aimed deeper by the margin, reaches the target.
        floor = np.where(today.values >= target, target + self._step_margin, np.inf)
        values, group = self._steps.lowest(self.pool, X, floor)
        reading = Reading(values - self._step_margin, today.slopes, lambda point: ids[sets[group[point]]], values)
        return reading.floored_by(today)

    def check(self, X: Array, X0: Array, delta: float = -np.inf, rows: Any = None) -> Array:
        """The lowest value at points (P, d) that are about to leave, attacked there first where the pool serves not."""
        self.harden(X)
        if not self._smooth:
            return np.asarray(np.minimum(self._steps.lowest(self.pool, X)[0], self.today(X).values))
        size = max(1, BLOCK // max(int(self.pool.sizes.sum()), 1))
        found = [self._group_values(X[part]).values().min(axis=0) for part in chunks(len(X), size)] if len(X) else []
        values = np.concatenate([np.empty(0), *found])
        return np.asarray(np.minimum(values, self.today(X).values))

    # --- what is reported ---------------------------------------------------------------------------

    @cached_property
    def _check(self) -> PickedCheck:
        options = self.options
        return PickedCheck(
            self.model, self.k, options.attackers, options.checking, options.confidence, seed_for(self._stream, 1)
        )

    checks_at_length = True

    def held_out(self, points: Array, progress: Progress | None = None) -> HeldOut | None:
        """How points (P, d) fare without rows picked by models that had no part in choosing them.

        None where training again always gives the same model: no other one could pick, and one retraining is no sample.
        """
        return self._check.of(points, progress) if np.isfinite(points).any() and self.random else None

    def sentence(self, delta: float) -> Said:
        """What was aimed at; how points fared is in the result's ``held_out``."""
        rows = Said.of("promises.rows", k=self.k)
        if not self.random:
            return Said.of("promises.retrained", k=self.k, rows=rows)
        return Said.of("promises.retrained_starts", share=self.options.share, k=self.k, rows=rows)

    @property
    def assumptions(self) -> tuple[Said, ...]:
        """How rows were picked and how many models retrained, and that nothing is proven."""
        if self._pool is None or not self.searches:
            return ()
        # The first group went without nothing.
        picked = Said.of("promises.picked", searches=", ".join(self.searches), models=int(self.pool.sizes[1:].sum()))
        checked = Said.of("promises.picked_check", attackers=self.options.attackers, models=self.options.checking)
        return (picked, checked) if self.random else (picked,)

    # --- state --------------------------------------------------------------------------------------

    def state(self) -> State:
        """The options and the pool: sets of rows, and models where they can be written as arrays."""
        values: dict[str, Any] = {"options": asdict(self.options), "searches": list(self._ran)}
        values["drops"] = self._drops.tolist()
        return State(STATE_FORMAT, values, {} if self._pool is None else self._pool.arrays())

    def restore(self, state: State) -> None:
        """Take over what :meth:`state` gave; models that could not be written are retrained from their seeds."""
        if state.values:
            self.options = FreshStarts(**state.values["options"])
            self.effort = self.options.effort
            self._ran = dict.fromkeys(state.values["searches"])
            self._drops = np.array(state.values.get("drops", [0.0, 0.0]))
        if "rows" in state.arrays:
            self._pool = Groups.restored(self.model, state.arrays)

    def anew(self, model: Any) -> Self:
        """The same about another model."""
        return type(self)(model, self.k, self.options, self.seed)


def _nobody(_promise: Any, X0: Array) -> Array:
    return np.full(X0.shape, np.nan)
