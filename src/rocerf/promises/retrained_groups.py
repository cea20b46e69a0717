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

from dataclasses import asdict, dataclass
from functools import cached_property
from typing import Any, ClassVar, Self

import numpy as np
from numpy.typing import NDArray

from rocerf.data.columns import is_number
from rocerf.deletion.cover import SERVES, serving
from rocerf.deletion.efforts import EFFORTS, checked_effort
from rocerf.deletion.group_attack import refits_differ, seed_for
from rocerf.deletion.groups import Groups
from rocerf.deletion.guesses import Guesses
from rocerf.errors import OptionError
from rocerf.models.model import Proposing, Refittable, SmoothEnsemble
from rocerf.models.options import positive_whole
from rocerf.passes import chunks
from rocerf.promises.group_value import GroupValues
from rocerf.promises.held_out import HeldOut
from rocerf.promises.picked import PickedCheck
from rocerf.promises.promise import STATE_FORMAT, Promise, Reading, Solve
from rocerf.storage.state import State
from rocerf.types import Array, Places, Progress
from rocerf.words import Said

#: Sets the seeds of the pool apart from everybody else's.
STREAM = 0x9E7A1

#: Share of the drop by which points aim deeper than what was found, as other sets may be worse by a hair.
SLACK = 0.02

#: Models retrained without any deletion, which every point must convince too.
BASE_MODELS = 20

#: Groups retrained together that have no start in common.
STARTS = 8

#: Scores of retrained models computed at a time, and numbers in one matrix of harms.
BLOCK, HARMS = 400_000, 2**24


@dataclass(frozen=True)
class FreshStarts:
    """Options of the promise ``retrained`` for models whose retraining has no single outcome.

    Give it to :class:`rocerf.Rocerf` as ``promise=FreshStarts(...)``.

    Parameters
    ----------
    share : float
        Share of the models trained again without the rows picked that should accept a recourse.
    starts : int
        Models retrained without each set of rows.
    rounds : int
        How often points are attacked and solved for again.
    attackers, checking : int
        Models without any part in choosing points that pick rows to check them, and models retrained without the rows
        picked by each of these.
    confidence : float
        Of the reported lower bounds.
    effort : "quick", "normal" or "thorough"
        How many ways there are to pick rows while points are chosen.

    Examples
    --------
    >>> FreshStarts(share=0.9).starts
    5
    """

    share: float = 0.95
    starts: int = 5
    rounds: int = 6
    attackers: int = 2
    checking: int = 10
    confidence: float = 0.95
    effort: str = "normal"
    #: Share of the training rows deleted at most, where the user does not say.
    default_k: ClassVar[str] = "0.5%"

    def __post_init__(self) -> None:
        for name in ("share", "confidence"):
            if not is_number(getattr(self, name)) or not 0.0 < getattr(self, name) < 1.0:
                raise OptionError(
                    f"Expected {name} between 0 and 1, got {getattr(self, name)!r}; use for example 0.95."
                )
        for name, least in (("starts", 2), ("rounds", 1), ("attackers", 1), ("checking", 1)):
            if positive_whole(getattr(self, name), name) < least:
                raise OptionError(f"Expected {name} to be at least {least}, got {getattr(self, name)}; use more.")
        checked_effort(self.effort)

    def about(self, model: Refittable, k: int, *, seed: int = 0) -> RetrainedGroups:
        """The promise about one model and up to k deletions."""
        if not isinstance(model, Proposing):
            raise OptionError(
                "Expected a network or an estimator that can say which rows hold a point up, got "
                f"{type(model).__name__}; for a logistic model use promise='retrained'."
            )
        return RetrainedGroups(model, k, self, seed)


class RetrainedGroups(Promise):
    """``value(x) >= 0`` with every group retrained so far; made by :meth:`FreshStarts.about`."""

    name = "retrained"
    chooses_margin = True
    model: Proposing
    effort: str

    def __init__(self, model: Proposing, k: int, options: FreshStarts, seed: int) -> None:
        super().__init__(model, k)
        self.options, self.seed = options, seed
        self.effort = options.effort
        self._stream = seed_for(seed, STREAM)
        self._ran: dict[str, None] = {}
        self._pool: Groups | None = None

    @property
    def rounds(self) -> int:
        """How often points are attacked and solved for again."""
        return self.options.rounds

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
            pool.retrain(self.model, nothing, BASE_MODELS, seed=seed, starts=BASE_MODELS, progress=progress)
            self._pool = pool

    @cached_property
    def random(self) -> bool:
        """Whether models retrained on the same rows differ at all; where not, one is a group."""
        return refits_differ(self.pool, self.model)

    @cached_property
    def _guesses(self) -> Guesses:
        count = EFFORTS[self.effort].groups.others if self.random else 0
        # Those of the first group took part already: they need not be trained again to propose rows.
        return Guesses(self.model, [self.model.as_retrained(self.pool.models, place) for place in range(count)])

    def harden(self, X: Array) -> None:
        """Attack points (P, d): sets picked for them that no group of the pool serves are retrained and join it."""
        for part in chunks(len(X), max(1, HARMS // len(self.model.train))) if len(X) else ():
            for name, harms in self._picked(X[part]):
                self._ran[name] = None
                # A model whose score jumps may do so at one row more: there every point's own rows are tried.
                new, _ = serving(harms, self.k, self.pool, SERVES if self._smooth else 1.0)
                if new:
                    seed, each = seed_for(self._stream, len(self.pool)), self.options.starts if self.random else 1
                    self.pool.retrain(self.model, new, each, seed=seed, starts=STARTS * each)

    def _picked(self, X: Array) -> Any:
        """Harms of points (P, d), (P, n), by each search of the effort, with its name."""
        searches, proposals = EFFORTS[self.effort].groups.searches, self.model.proposals
        yield proposals[0], self._guesses.proposed(X, proposals[0])
        for proposal in proposals[1:] if "proposals" in searches and not self._smooth else ():
            yield proposal, self._guesses.proposed(X, proposal)
        if "other starts" in searches and self._guesses.others:
            yield "other starts", self._guesses.by_other_starts(X)
        if "relinearised" in searches or not self.random:
            worst = self._group_values(X).values().argmin(axis=0)
            yield "relinearised", self._guesses.relinearised(X, self.pool, worst)

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
        pullback = None
        if isinstance(models, SmoothEnsemble):
            scores, pullback = models.scores_and_pullback(X)
        else:
            assert models is not None
            scores = models.scores(X)
        seen = GroupValues(scores, self.pool.sizes, self.options.share, pullback is not None)
        values = seen.values()
        group = values.argmin(axis=0)
        slopes = np.full(X.shape, np.nan) if pullback is None else pullback(seen.weights(group))
        return values[group, np.arange(len(X))], slopes, group

    def check(self, X: Array, X0: Array, delta: float = -np.inf, rows: Any = None) -> Array:
        """The lowest value at points (P, d) that are about to leave, attacked there first where the pool serves not."""
        self.harden(X)
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

    def held_out(self, points: Array) -> HeldOut | None:
        """How points (P, d) fare without rows picked by models that had no part in choosing them.

        None where training again always gives the same model: no other one could pick, and one retraining is no sample.
        """
        return self._check.of(points) if np.isfinite(points).any() and self.random else None

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
        arrays: dict[str, NDArray[Any]] = {}
        if self._pool is not None:
            pool = self._pool
            arrays = {
                "rows": np.concatenate([np.empty(0, np.intp), *pool.sets]),
                "set_sizes": np.array([len(rows) for rows in pool.sets], np.intp),
                "sizes": pool.sizes,
                "calls": np.array(pool.calls, np.int64).reshape(-1, 4),
            }
            models = [] if pool.models is None else pool.models.arrays()
            arrays |= {f"model_{place}": array for place, array in enumerate(models)}
        return State(STATE_FORMAT, values, arrays)

    def restore(self, state: State) -> None:
        """Take over what :meth:`state` gave; models that could not be written are retrained from their seeds."""
        if state.values:
            self.options = FreshStarts(**state.values["options"])
            self.effort = self.options.effort
            self._ran = dict.fromkeys(state.values["searches"])
        found = state.arrays
        if "rows" not in found:
            return
        sets = [rows.astype(np.intp) for rows in np.split(found["rows"], np.cumsum(found["set_sizes"])[:-1])]
        stack = [found[f"model_{place}"] for place in range(sum(name.startswith("model_") for name in found))]
        calls = [(int(seed), int(count), int(each), int(starts)) for seed, count, each, starts in found["calls"]]
        if stack:
            self._pool = Groups(sets, found["sizes"].astype(np.intp), self.model.restored(stack), calls)
            return
        pool, first = Groups(), 0
        for seed, count, each, starts in calls:
            pool.retrain(self.model, sets[first : first + count], each, seed=seed, starts=starts)
            first += count
        self._pool = pool

    def anew(self, model: Any) -> Self:
        """The same about another model."""
        return type(self)(model, self.k, self.options, self.seed)


def _nobody(_promise: Any, X0: Array) -> Array:
    return np.full(X0.shape, np.nan)
