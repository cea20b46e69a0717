"""The promise of true retraining: it survives the strongest deletion that the adversary can find.

Each truly retrained model ``theta_S`` is one exact cut ``theta_S'x~ >= delta``, **the same for every person**: which
points survive S does not depend on who asks. So there is one growing pool of cuts for each (model, k). A point is first
held against the pool, which costs one small product; only where the pool has nothing against it does the
adversary search, and what it finds joins the pool. The pool is kept in schema space, where a pipeline whose
preprocessing was fitted again is a half-space like any other.

A search may miss a set that is worse by a hair. Cuts therefore aim a little deeper than found: by ``slack`` times the
drop, ``theta_S + slack (theta_S - theta)``, still linear. A point passes when the worst found leaves it at least
half of that depth; the other half spares rounds that would move it by next to nothing. The margin reported is
the true one. At effort "thorough" a point is given only after further searches from fresh random starts, ``again`` of
them in a row, have found nothing against it (:meth:`Retrained.search_on`).
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, field, replace
from functools import cached_property
from threading import Lock
from typing import Any, Self

import numpy as np
from numpy.typing import NDArray

from rocerf.deletion.adversary import Adversary
from rocerf.deletion.attacks import Attacks
from rocerf.deletion.batched_attack import MOST_TOGETHER
from rocerf.deletion.batched_newton import streams
from rocerf.errors import OptionError
from rocerf.models.logistic.ensemble import LinearEnsemble
from rocerf.models.model import ExactModel
from rocerf.promises.allowance import ExactRetraining
from rocerf.promises.promise import Reading
from rocerf.storage.state import State
from rocerf.types import Array
from rocerf.words import Said

#: Share of the drop by which cuts aim deeper than the deletion found.
SLACK = 0.01


@dataclass(eq=False)
class Pool:
    """Retrained models found so far, m half-spaces of lifted space, and the numbers of the rows each went without."""

    models: LinearEnsemble
    deleted_rows: list[NDArray[np.intp]] = field(default_factory=list)

    def __len__(self) -> int:
        return len(self.models)

    def add(self, models: LinearEnsemble, deleted_rows: Iterable[NDArray[np.intp]]) -> None:
        """Take over models, each retrained without its rows."""
        self.models = self.models.joined(models)
        self.deleted_rows.extend(deleted_rows)


class Retrained(ExactRetraining):
    """Survives every deletion of at most k rows that was tried, each one truly retrained.

    Parameters
    ----------
    effort : "quick", "normal" or "thorough"
        How hard the adversary looks before a point counts as surviving; "thorough" searches on from fresh starts until
        that finds nothing more.
    slack : float
        Share of the drop by which cuts aim deeper than found.

    Examples
    --------
    >>> import rocerf
    >>> data = rocerf.load_dataset("german")
    >>> model = rocerf.LogisticModel.fit(data.train)
    >>> promise = Retrained(model, k=4)
    >>> reading = promise.read(data.test.X[:2])
    >>> bool((reading.values <= model.score(data.test.X[:2])).all()), len(promise.pool) > 1
    (True, True)
    """

    name = "retrained"
    model: ExactModel
    effort: str

    def __init__(
        self, model: ExactModel, k: int, *, effort: str = "normal", slack: float = SLACK, seed: int = 0
    ) -> None:
        if not 0 <= slack < 1:
            raise OptionError(f"Expected slack to be a share of the drop from 0 up to 1, got {slack}.")
        super().__init__(model, k)
        if streams(model.frozen):  # what a pass costs is nearly the same for few and for many
            self.first_wave = MOST_TOGETHER
        self.slack = slack
        self.effort = effort
        self.adversary = Adversary(model, k, effort=effort, seed=seed)
        self._searching = True
        self._ran: dict[str, None] = {}
        #: Points, as bytes, at which a search ran to its end without breaking them.
        self._searched: set[bytes] = set()
        self._lock = Lock()

    @cached_property
    def pool(self) -> Pool:
        """The shared pool; at first only the model itself, without which nothing was deleted."""
        only = LinearEnsemble(*self.model.halfspaces(self.model.theta[None, :]), self.model.lift)
        return Pool(only, [np.empty(0, np.intp)])

    def __getstate__(self) -> dict[str, Any]:
        return {name: value for name, value in self.__dict__.items() if name != "_lock"}  # a lock cannot be copied

    def __setstate__(self, state: dict[str, Any]) -> None:
        self.__dict__.update(state, _lock=Lock())

    def known_deletions_only(self) -> Retrained:
        """The same promise about the deletions found so far, exactly and without further search.

        Its optimum bounds from below the cost of any point that truly survives all deletions.
        """
        same = Retrained(self.model, self.k, effort=self.effort, slack=0.0)
        same.pool = Pool(self.pool.models, list(self.pool.deleted_rows))
        same._searching = False
        return same

    @property
    def assumptions(self) -> tuple[str, ...]:
        """How deletions of a pipeline that is fitted again are looked for."""
        said = ["looked_for_frozen"] if self.model.preprocessing == "refitted" else []
        said += ["looked_for_frozen_weights"] if self.model.weighs_anew else []
        return (*(Said.of(f"promises.{key}") for key in said), *super().assumptions)

    @property
    def searches(self) -> tuple[str, ...]:
        """The searches that ran so far."""
        return tuple(self._ran)

    @property
    def again(self) -> int:
        """How many further searches in a row a point must withstand, by the effort."""
        return self.adversary.effort.again if self._searching else 0

    def learn_of(self, rows: NDArray[np.intp], slopes: Array, constant: float) -> None:
        """The pool takes over a model that was retrained elsewhere: what it refuses was not survived."""
        with self._lock:
            if not any(np.array_equal(np.sort(rows), np.sort(known)) for known in self.pool.deleted_rows):
                self.pool.add(LinearEnsemble(slopes[None, :], np.array([constant]), self.model.lift), [rows])

    def remembered(self, X: Array) -> Reading:
        """The lowest score of each point over the pool, as found, and the rows that bring it about."""
        return self.less_allowance(X, lambda points, _: self.known_exactly(points))

    def known_exactly(self, X: Array) -> Reading:
        """What the pool has against points (P, d)."""
        lowest, which = self._against_pool(X)
        return self._reading(X, lowest, which, np.zeros(len(X), np.intp), np.zeros(len(X)))

    def read_exactly(self, X: Array, target: float | Array = -np.inf) -> Reading:
        """The lowest retrained score known or found at each point, and the cut of that model."""
        with self._lock:  # the pool grows while it is read
            return self._read(X, target)

    def search_on(self, X: Array, target: float, number: int) -> Reading:
        """The lowest score known or found by one further search from fresh starts, ended early below ``target``."""

        def exactly(points: Array, deeper: float | Array) -> Reading:
            with self._lock:
                lowest, which = self._against_pool(points)
                # Not from what is known: a search that begins with the best known set never leaves the next best ones.
                stop = np.full(len(points), deeper)
                attacks = self.adversary.reseeded(number).attack_all(points, stop_below=stop)
                retrainings = self._learn(attacks, np.arange(len(points)), lowest, which)
                return self._reading(points, lowest, which, retrainings, np.zeros(len(points)))

        return self.less_allowance(X, exactly, target)

    def _read(self, X: Array, target: float | Array) -> Reading:
        # (1 + depth) score - depth today < target  <=>  score < floor
        depth = self.slack / 2
        floor = (target + depth * self.model.score(X)) / (1.0 + depth)
        lowest, which = self._against_pool(X)
        asking = np.flatnonzero(lowest >= floor) if self._searching else np.empty(0, np.intp)
        retrainings = np.zeros(len(X), np.intp)
        if len(asking):
            known = [self.pool.deleted_rows[best] for best in which[asking]]
            attacks = self.adversary.attack_all(X[asking], stop_below=floor[asking], known=known)
            retrainings = self._learn(attacks, asking, lowest, which)
            self._searched.update(X[place].tobytes() for place in asking[lowest[asking] >= floor[asking]])
        return self._reading(X, lowest, which, retrainings, np.where(lowest >= floor, depth, self.slack))

    def was_searched(self, X: Array) -> None:
        """A search ran to its end at these points (P, d) without breaking them, in a run that this one goes on with."""
        self._searched.update(point.tobytes() for point in X)

    def check_exactly(self, X: Array, delta: float, rows: Any) -> Array:
        """The lowest score of points (P, d) over every model retrained so far and those in force, (P,).

        Where no search was made yet it is made now, whoever found the point.
        """
        margins = np.full(len(X), np.inf)
        new = [place for place in range(len(X)) if X[place].tobytes() not in self._searched]
        if new and self._searching:
            margins[new] = self.read_exactly(X[new], delta).foreseen  # -inf after a deletion that leaves no model
        with self._lock:
            found = self.pool.models.of_lifted(self.model.own_lifted(X, rows)).min(axis=0)
        found = np.nan_to_num(found, nan=-np.inf)  # where the pipeline itself fails on a point
        return np.asarray(np.minimum(np.minimum(margins, found), self.today(X).values))

    def rises_exactly(self, directions: Array) -> Array:
        """The lowest slope along directions (m, D) over every model retrained so far, (m,)."""
        with self._lock:
            return np.asarray((directions @ self.pool.models.slopes.T).min(axis=1))

    def _against_pool(self, X: Array) -> tuple[Array, NDArray[np.intp]]:
        """Lowest score over the pool (P,), and which model gives it."""
        scores = self.pool.models.scores(X).T
        which = scores.argmin(axis=1)
        return scores[np.arange(len(scores)), which], which

    def _learn(
        self, attacks: Attacks, asking: NDArray[np.intp], lowest: Array, which: NDArray[np.intp]
    ) -> NDArray[np.intp]:
        """Put what was found for the asking ones into the pool, ``lowest`` and ``which`` (P,); retrainings of all."""
        self._ran.update(dict.fromkeys(attacks.searches))
        found = attacks.scores
        better = np.flatnonzero(found < lowest[asking])
        lowest[asking[better]] = found[better]
        trained = better[np.isfinite(found[better])]  # a deletion after which there is no model is no cut
        which[asking[trained]] = len(self.pool) + np.arange(len(trained))
        found_models = LinearEnsemble(attacks.slopes[trained], attacks.constants[trained], self.model.lift)
        self.pool.add(found_models, [attacks.deleted_rows[place] for place in trained])
        retrainings = np.zeros(len(lowest), np.intp)
        retrainings[asking] = attacks.retrainings
        return retrainings

    def _reading(
        self, X: Array, lowest: Array, which: NDArray[np.intp], retrainings: NDArray[np.intp], depths: Array
    ) -> Reading:
        slopes, constants = self.pool.models.slopes, self.pool.models.constants
        constants = constants[which] + depths * (constants[which] - constants[0])
        slopes = slopes[which] + depths[:, None] * (slopes[which] - slopes[0])
        values = np.einsum("ij,ij->i", slopes, self.model.lifted(X)) + constants
        hopeless = np.isneginf(lowest)  # no point survives a deletion after which there is no model
        values, slopes = np.where(hopeless, -np.inf, values), np.where(hopeless[:, None], 0.0, slopes)
        ids, rows = self.model.train.ids, self.pool.deleted_rows
        reading = Reading(values, slopes, lambda point: ids[rows[which[point]]], lowest, retrainings)
        return reading.floored_by(self.today(X))

    def state(self) -> State:
        """The pool, and how much deeper cuts aim."""
        kept, rows = super().state(), self.pool.deleted_rows
        pool = {
            "slack": np.array(self.slack),
            "slopes": self.pool.models.slopes,
            "constants": self.pool.models.constants,
            "rows": np.concatenate(rows) if rows else np.empty(0, np.intp),
            "sizes": np.array([len(chosen) for chosen in rows], dtype=np.intp),
        }
        return replace(kept, arrays={**pool, **kept.arrays})

    def restore(self, state: State) -> None:
        """Take over a pool."""
        super().restore(state)
        found = state.arrays
        if "slopes" in found:
            self.slack = float(found["slack"])
            rows = np.split(found["rows"], np.cumsum(found["sizes"])[:-1])
            self.pool = Pool(LinearEnsemble(found["slopes"], found["constants"], self.model.lift), rows)

    def anew(self, model: Any) -> Self:
        """The same about another model."""
        return type(self)(model, self.k, effort=self.effort, slack=self.slack, seed=self.adversary.seed)
