"""The attack on models whose retraining has no single outcome: networks from fresh starts, ensembles of trees.

Sets are guessed in several ways (:mod:`rocerf.deletion.guesses`), and every one is really retrained, from several fresh
starts, many at a time. The worst is the one with the lowest mean score at the point, over all sets retrained for
anybody. Choosing the lowest of many noisy means flatters the adversary, so the one chosen is retrained once more, from
starts that chose nothing, and those report it.
"""

from __future__ import annotations

import itertools
from collections.abc import Iterator, Sequence
from math import comb

import numpy as np

from rocerf.deletion.attacks import Attacks, Search
from rocerf.deletion.each_row import EACH_ROW, each_row_alone
from rocerf.deletion.efforts import GroupEffort
from rocerf.deletion.groups import Groups, Outcomes
from rocerf.deletion.guesses import Guesses, worst_sets
from rocerf.models.model import Proposing
from rocerf.passes import chunks
from rocerf.types import Array, Mask, Places, Progress

#: Numbers in one matrix of harms, points times rows.
HARMS = 2**24

#: Training rows at which retrained models are compared, to see whether they differ at all.
COMPARED = 256

#: Times as many rounds where training again always gives the same model: a set is then retrained but once.
WITHOUT_CHANCE = 4

#: Where the seeds of different uses are set apart.
BASE, OTHERS, CONFIRMING = 1, 2, 3


def seed_for(*entropy: int) -> int:
    """A seed that depends on all of these numbers."""
    return int(np.random.SeedSequence(entropy).generate_state(1)[0])


def refits_differ(groups: Groups, model: Proposing) -> bool:
    """Whether models retrained on the same rows (the first group) differ in what they say."""
    scores = groups.of(0).scores(model.train.X[:COMPARED])
    return bool(np.ptp(scores, axis=0).max() > 0)


def other_starts(model: Proposing, count: int, *, seed: int) -> list[Proposing]:
    """So many models trained again on all rows, from starts of their own."""
    if not count:
        return []
    everything = model.train.ids[:0]
    models = model.refitted([everything] * count, seed=seed)
    return [model.as_retrained(models, place) for place in range(count)]


class GroupAttacker:
    """Searches by guessing sets and retraining without them, each from several fresh starts."""

    def __init__(self, model: Proposing, k: int) -> None:
        self.model, self.k = model, k

    def attack(self, X: Array, search: Search) -> Attacks:
        """The worst deletions found for points (P, d); ``scores`` are means over models that had no part in choosing.

        Points whose mean is brought below ``stop_below`` are not attacked further.
        """
        effort, label = search.effort.groups, self.model.removable_class(self.k)
        if label is not None:
            wanted = 1.0 if label == self.model.train.favourable else 0.0
            return self._no_model(X, np.flatnonzero((self.model.train.y == wanted) & self._weighty()))
        if not len(X):
            return Attacks.of([], self.model.train.ids)
        hunt = _Hunt(self.model, self.k, effort, search.seed, search.progress, len(X))
        size = max(1, HARMS // len(self.model.train))
        for part in chunks(len(X), size):
            known = [] if search.known is None else search.known[part]
            floor = None if search.stop_below is None else search.stop_below[part]
            hunt.block(X[part], known, floor)
        return hunt.attacks()

    def _weighty(self) -> Mask:
        """Rows that carry weight, (n,)."""
        weights = self.model.train.weights
        return np.ones(len(self.model.train), bool) if weights is None else np.asarray(weights > 0)

    def _no_model(self, X: Array, rows: Places) -> Attacks:
        count = len(X)
        return Attacks(
            np.full(count, -np.inf),
            np.empty((count, 0)),
            np.empty((count, 0)),
            np.full(count, np.nan),
            (rows,) * count,
            self.model.train.ids,
            ("a whole class",) * count,
            np.zeros(count, np.intp),
            ("a whole class",),
        )


class _Hunt:
    """One attack: what was retrained so far, for all points, and what it found, block by block of points."""

    def __init__(
        self, model: Proposing, k: int, effort: GroupEffort, seed: int, progress: Progress | None, points: int
    ) -> None:
        self.model, self.k, self.effort, self.seed = model, k, effort, seed
        self._progress, self._points, self._done = progress, points, 0
        self.groups, self.names, self._seen = Groups(), ["nothing deleted"], {b""}
        base = max(2, effort.starts)
        self.groups.retrain(model, [np.empty(0, np.intp)], base, seed=seed_for(seed, BASE), starts=base)
        differ = refits_differ(self.groups, model)
        self.starts, self.confirming = (effort.starts, effort.confirming) if differ else (1, 0)
        self.rounds = effort.rounds if differ else WITHOUT_CHANCE * effort.rounds
        self._each_row = not differ and len(model.train) <= effort.each_row
        others = other_starts(model, effort.others if differ else 0, seed=seed_for(seed, OTHERS))
        self.guesses = Guesses(model, others)
        self._found: list[tuple[Places, list[Places], list[str], Places, Outcomes]] = []
        self._ran: dict[str, None] = {}

    def block(self, X: Array, known: Sequence[Places], floor: Array | None) -> None:
        """Attack points (P, d), from sets known elsewhere too."""
        first = len(self.groups)
        everything = np.arange(len(self.model.train))
        if self._few_sets(len(everything)):
            every = [np.array(rows, np.intp) for rows in self._all_sets(len(everything))]
            self._try(every, "brute force")
        else:
            self._search(X, known, floor)
        worst = self.groups.outcomes(X).means.argmin(axis=0)
        tried = int(self.groups.sizes[first:].sum())
        self._confirm(X, worst, tried)

    def _few_sets(self, rows: int) -> bool:
        return sum(comb(rows, size) for size in range(1, self.k + 1)) <= self.effort.brute_force

    def _all_sets(self, rows: int) -> Iterator[tuple[int, ...]]:
        return itertools.chain.from_iterable(itertools.combinations(range(rows), size) for size in range(1, self.k + 1))

    def _search(self, X: Array, known: Sequence[Places], floor: Array | None) -> None:
        if len(known):
            self._try(known, "known")
        if self._each_row:
            self._try_each_row(X)
        proposals = self.model.proposals
        base = self.guesses.proposed(X, proposals[0])
        self._try(worst_sets(base, self.k), proposals[0])
        searches = self.effort.searches
        for proposal in proposals[1:] if "proposals" in searches else ():
            self._try(worst_sets(self.guesses.proposed(X, proposal), self.k), proposal)
        if "other starts" in searches and self.guesses.others:
            base = self.guesses.by_other_starts(X)
            self._try(worst_sets(base, self.k), "other starts")
        for _ in range(self.rounds):
            before = len(self.groups)
            means = self.groups.outcomes(X).means
            open_ = np.arange(len(X)) if floor is None else np.flatnonzero(means.min(axis=0) >= floor)
            if not len(open_):
                return
            if "relinearised" in searches:
                harms = self.guesses.relinearised(X[open_], self.groups, means[:, open_].argmin(axis=0))
                self._try(worst_sets(harms, self.k), "relinearised")
            if "regression" in searches:
                harms_regressed = self.guesses.regressed(self.groups, self.groups.outcomes(X[open_]).means, base[open_])
                if harms_regressed is not None:
                    self._try(worst_sets(harms_regressed, self.k), "regression")
            if len(self.groups) == before:  # the next round would ask the same
                return

    def _try_each_row(self, X: Array) -> None:
        """Every row alone, and of each point (P, d) those together that lower its score most so."""
        alone = each_row_alone(self.model)
        if EACH_ROW not in self._ran:
            self._ran[EACH_ROW] = None
            self._seen.update(rows.tobytes() for rows in alone.sets)
            self.names.extend([EACH_ROW] * len(alone))
            self.groups.add(alone)
        lowered = alone.outcomes(X).means - self.groups.of(0).scores(X)[:1]
        self._try(worst_sets(lowered.T, self.k), EACH_ROW)

    def _try(self, sets: Sequence[Places], name: str) -> None:
        """Retrain without those sets that were not yet."""
        self._ran[name] = None
        new = []
        for rows in sets:
            if rows.tobytes() not in self._seen:
                self._seen.add(rows.tobytes())
                new.append(rows)
        if new:
            # All sets from the same starts: they are compared, and whoever wins is retrained from others.
            self.groups.retrain(self.model, new, self.starts, seed=seed_for(self.seed, BASE), starts=self.starts)
            self.names.extend([name] * len(new))

    def _confirm(self, X: Array, worst: Places, tried: int) -> None:
        """Retrain once more without the worst sets and report those models; without confirming ones, the first."""
        distinct, own = np.unique(worst, return_inverse=True)
        outcomes = self.groups.outcomes(X)
        reported = Outcomes(
            *(getattr(outcomes, name)[worst, np.arange(len(X))] for name in ("means", "spreads", "shares"))
        )
        if self.confirming:
            again = Groups().retrain(
                self.model,
                [self.groups.sets[group] for group in distinct],
                self.confirming,
                seed=seed_for(self.seed, CONFIRMING, self._done),
                starts=self.confirming,
            )
            outcomes = again.outcomes(X)
            reported = Outcomes(
                *(getattr(outcomes, name)[own, np.arange(len(X))] for name in ("means", "spreads", "shares"))
            )
        # Models serve all points of a block; each is counted for the points that it was retrained for.
        count = np.full(len(X), -(-(tried + self.confirming * len(distinct)) // max(len(X), 1)), np.intp)
        sets, names = [self.groups.sets[group] for group in worst], [self.names[group] for group in worst]
        self._found.append((count, sets, names, worst, reported))
        self._done += len(X)
        if self._progress is not None:
            self._progress(self._done, self._points)

    def attacks(self) -> Attacks:
        """What was found, in the order of the points."""
        reported = [found[-1] for found in self._found]
        count = sum(len(found[0]) for found in self._found)
        return Attacks(
            np.concatenate([one.means for one in reported]),
            np.empty((count, 0)),
            np.empty((count, 0)),
            np.full(count, np.nan),
            tuple(rows for found in self._found for rows in found[1]),
            self.model.train.ids,
            tuple(name for found in self._found for name in found[2]),
            np.concatenate([found[0] for found in self._found]),
            tuple(self._ran),
            np.concatenate([one.spreads for one in reported]),
            np.concatenate([one.shares for one in reported]),
            self.confirming or self.starts,
        )
