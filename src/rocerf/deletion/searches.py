"""The searches behind the adversary, each over a block of points at once.

All of them move between sets of rows by *re-linearising*: retrain without the present set, score every row at that
model (rows in the set by what keeping them out does), exchange rows for more harmful ones, repeat while the score
falls. They differ in where they start (:mod:`rocerf.deletion.starts`) and how the set grows:

* ``relinearise``: from the leverage-corrected first-order set of the full model;
* ``greedy``: the set grows in blocks, with retraining between blocks;
* ``beams``: several sets grow side by side, row by row, each row rated at the model retrained without the set
  (:mod:`rocerf.deletion.together`; ``greedy`` on small problems, where every extension is truly retrained);
* ``adaptive``: adaptive greedy, the set grows row by row (many rows: in blocks) with retraining after each, and nothing
  leaves it; by first order and with leverage;
* ``relaxation``: Frank and Wolfe over row weights in [0, 1], rounded to the k heaviest;
* ``known``: from the set that hurts this point most among those found for other points;
* ``groups``: from the holders of a rare value, by label (:mod:`rocerf.deletion.rare_groups`);
* ``random``: from first-order sets with noise on the harms (seeded);
* ``kicks``: a random part of the best set so far is forgotten and grows again;
* ``swap``: from the best set so far, exchanges of one row, rated without the row that goes, each one truly retrained;
* ``brute force``: all sets, where they are few.

On the way models are retrained approximately, enough to choose; whatever is reported has been retrained to convergence.
"""

from __future__ import annotations

import itertools
from collections.abc import Callable
from dataclasses import dataclass, field
from math import comb

import numpy as np
from numpy.typing import NDArray

from rocerf.deletion.batched_newton import BatchedNewton
from rocerf.deletion.deletions import Deletions
from rocerf.deletion.efforts import Effort
from rocerf.deletion.finding import Finding
from rocerf.deletion.harms import Harms
from rocerf.deletion.rare_groups import RareGroups
from rocerf.deletion.starts import FullModelHarms, starts_of
from rocerf.deletion.together import MOST_LEAVING, exchanges, side_by_side
from rocerf.passes import chunks
from rocerf.types import Array, Places

#: Models retrained at a time when single exchanges, or the sets of a beam, are tried.
TRY_BATCH, BEAM_BATCH = 64, 256

#: Shares of a set that kicks forget, in turn: much, to leave a valley; little, to look around.
FORGOTTEN = (0.5, 0.1, 0.3)

#: By which share of the drop the end of a walk is above the best set known, from which it is not retrained fully; and
#: the same, with so many columns, where models retrained approximately are further off.
CLEAR_LOSER, WIDE_LOSER, WIDE = 1e-5, 0.05, 256

#: A point, a set, and the model retrained without it.
_Standing = tuple[int, Places, Array]

#: Up to this many rows times deletions a problem is small: every exchange is tried, and beams are affordable.
FEW_ROWS = 400


def search(
    models: BatchedNewton,
    directions: Array,
    k: int,
    effort: Effort,
    seed: int,
    *,
    groups: RareGroups | None = None,
    known: list[Places] | None = None,
    first: int = 0,
    stop_below: Array | None = None,
) -> Finding:
    """Run the effort's searches for a block of points with these score gradients (M, p).

    ``groups`` are the training set's rare groups, if the effort starts from them; ``known`` is a set for each point
    that hurt elsewhere and is worth starting from. ``first`` is the number of the block's first point, so that random
    starts depend on (seed, point) alone. A point whose score fell below its ``stop_below`` (M,) is refuted and not
    searched further.
    """
    floor = np.full(len(directions), -np.inf) if stop_below is None else stop_below
    block = _Block(models, directions, k, effort, floor, Finding.nothing_deleted(models, directions))
    if k == 0 or not len(directions):
        return block.finding
    if _few_sets(len(models.X), k, effort.brute_force):
        block.try_all()
        return block.finding
    base = FullModelHarms(models, directions)
    starts = starts_of(models, directions, base, k, effort, groups, seed, first)
    if known is not None:
        again = "known", lambda points: Deletions.of([known[point] for point in points], k), [k] * effort.rounds
        starts = itertools.chain([again], starts)
    for name, start, sizes in starts:
        block.walk_from(name, start, sizes)
    block.grow_beams()
    block.kick(seed, first)
    block.swap()
    return block.finding


@dataclass(eq=False)
class _Walkers:
    """Where the walk of each point stands: its set, its retrained model, the score there and the harm of every row."""

    deletions: Deletions
    thetas: Array
    hessians: Array
    scores: Array
    harms: Harms
    rows: int

    @classmethod
    def at(cls, deletions: Deletions, models: BatchedNewton) -> _Walkers:
        count, hessian = len(deletions), models.hessian
        hessians = np.broadcast_to(hessian, (count, *hessian.shape)).copy()
        thetas, scores = models.first_guess(deletions), np.full(count, np.inf)
        return cls(deletions, thetas, hessians, scores, models.no_harms(count), len(models.X))

    def move(
        self, who: Places, deletions: Deletions, thetas: Array, hessians: Array, scores: Array, harms: Harms
    ) -> None:
        self.deletions.rows[who], self.deletions.amounts[who] = deletions.rows, deletions.amounts
        self.thetas[who], self.hessians[who], self.scores[who] = thetas, hessians, scores
        self.harms.put(who, harms)

    def exchange(self, open_: Places, radius: Places, size: int) -> tuple[Deletions, NDArray[np.bool_]]:
        """The next sets of the open walks: up to ``radius`` rows exchanged; and whose set changes at all."""
        width = self.deletions.rows.shape[1]
        harms = self.harms.of(open_)
        wanted = harms.worst(size, width)
        sets, changed = [], np.zeros(len(open_), dtype=bool)
        inside, wished = np.zeros((2, self.rows), dtype=bool)
        for place, walk in enumerate(open_):
            have, want = self.deletions.members(int(walk)), wanted.members(place)
            inside[have] = wished[want] = True
            coming, leaving = want[~inside[want]], have[~wished[have]]
            room = size - len(have)
            count = len(coming) if size < width else min(radius[walk], len(coming))  # a growing set takes all it can
            coming = coming[np.argsort(harms.at(place, coming), kind="stable")[:count]]
            leaving = leaving[
                np.argsort(-harms.at(place, leaving), kind="stable")[: max(len(coming) - max(room, 0), 0)]
            ]
            inside[leaving] = False
            sets.append(np.concatenate([have[inside[have]], coming]))
            changed[place] = len(coming) > 0
            inside[have] = wished[want] = False
        return Deletions.of(sets, width), changed


@dataclass(eq=False)
class _Block:
    """A block of points under search, with what all searches share; ``directions`` are (M, p), ``floor`` is (M,)."""

    models: BatchedNewton
    directions: Array
    k: int
    effort: Effort
    floor: Array
    finding: Finding
    ends: list[_Standing] = field(default_factory=list)

    @property
    def few_rows(self) -> bool:
        return len(self.models.X) * self.k <= FEW_ROWS

    def walk_from(self, name: str, start: Callable[[Places], Deletions], sizes: list[int]) -> None:
        """Walk from a start for all points still open."""
        points = self.finding.open(self.floor)
        if not len(points):
            return
        if name not in self.finding.ran:
            self.finding.ran.append(name)
        begin = start(points)
        if name == "adaptive":  # a yardstick: it counts itself, whatever the walk from it finds
            self._report(points, self.models.first_guess(begin), begin, name)
        self._walk(points, begin, sizes, name)

    def _walk(self, points: Places, start: Deletions, sizes: list[int], name: str) -> None:
        """Walk from a start for these points; converge the set each walk ends at and report it.

        A step exchanges rows of the set for more harmful ones outside, at first all that first order suggests. A step
        that does not lower the score is taken back and tried with half as many rows: the harms are true only nearby.
        """
        k, models, toward = start.rows.shape[1], self.models, self.directions[points]
        now = _Walkers.at(start, models)
        radius, failures = np.full(len(points), k), np.zeros(len(points), np.intp)
        open_ = np.arange(len(points))
        trial, guesses = start, now.thetas
        for step in range(len(sizes)):
            thetas, retrained, look, astray = models.nearly(guesses, trial)
            self._report(points[open_[astray]], retrained[astray], trial[astray], name)
            scores = np.einsum("ij,ij->i", toward[open_], retrained)
            lower = scores < now.scores[open_] - 1e-10
            if lower.any():
                own = np.flatnonzero(lower)
                part = look.of(own)
                harms = models.harms(part, thetas[own], trial[own], toward[open_[own]], leverage=True)
                now.move(open_[own], trial[own], retrained[own], part.hessians, scores[own], harms)
            radius[open_] = np.where(lower, np.minimum(2 * radius[open_], k), radius[open_] // 2)
            failures[open_] = np.where(lower, 0, failures[open_] + 1)
            if step == len(sizes) - 1:
                break
            trial, changed = now.exchange(open_, radius, sizes[step + 1])
            changed &= failures[open_] < self.effort.patience
            changed &= ~self._arriving(points[open_], now, open_, trial)
            open_, trial = open_[changed], trial[changed]
            if not len(open_):
                break
            guesses = models.carried(now.thetas[open_], now.hessians[open_], now.deletions[open_], trial)
        # Scores on the way are good to a few parts in a million of the drop, where columns are many to a few in a
        # hundred: clear losers need no full retraining.
        share = CLEAR_LOSER if toward.shape[1] < WIDE else WIDE_LOSER
        best = self.finding.scores[points]
        ended = np.flatnonzero(now.scores - best < share * np.abs(toward @ models.theta - best))
        self._report(points[ended], now.thetas[ended], now.deletions[ended], name)

    def _arriving(self, points: Places, now: _Walkers, open_: Places, trial: Deletions) -> NDArray[np.bool_]:
        """Which walks are about to go hardly further, or where an earlier one ended without being below it yet."""
        few = int(self.effort.near * self.k)
        coming, inside = np.zeros(len(points), dtype=bool), np.zeros(len(self.models.X), dtype=bool)
        for place in range(len(points)) if self.effort.near else ():
            wanted, own = trial.members(place), now.deletions.members(int(open_[place]))
            above = now.scores[open_[place]] >= self.finding.scores[points[place]]
            for known in (own, *([self.finding.sets[points[place]]] if above else [])):
                inside[known] = True
                apart = max(len(wanted), len(known)) - np.count_nonzero(inside[wanted])
                inside[known] = False
                coming[place] |= apart <= few
        return coming

    def _report(self, points: Places, thetas: Array, deletions: Deletions, name: str) -> None:
        """Retrain to convergence without those sets that were not yet, from these parameters, and report them."""
        news = self.finding.unseen(points, deletions.keys())
        if len(news):
            self._consider(points[news], thetas[news], deletions[news], name)

    def _consider(self, points: Places, thetas: Array, deletions: Deletions, name: str) -> Array:
        """Retrain to convergence without these sets, from these parameters, and report them; the models (m, p)."""
        thetas = self.models.converge(thetas, deletions)
        self.finding.consider(points, thetas, deletions, self.directions, name)
        return thetas

    def grow_beams(self) -> None:
        """Sets grow by a row at a time, several side by side. On small problems every extension is truly retrained."""
        points = self.finding.open(self.floor)
        if not self.effort.beam or not len(points):
            return
        if self.few_rows:
            for point in points:
                self._grow_truly(int(point))
        elif self.k > 1 and len(self.models.X) * self.directions.shape[1] * self.k <= self.effort.beam_size:
            found = side_by_side(self.models, self.directions[points], self.k, self.effort.beam)
            owners = np.repeat(points, [len(own) for own in found])
            grown = Deletions.of([chosen for own in found for chosen in own], self.k)
            self.finding.unseen(owners, grown.keys())
            thetas = self._consider(owners, self.models.first_guess(grown), grown, "beams")
            scores = np.einsum("ij,ij->i", self.directions[owners], thetas)
            for point in points:
                own_ends = np.flatnonzero(owners == point)
                lowest = own_ends[np.argsort(scores[own_ends], kind="stable")[: self.effort.beam_ends]]
                self.ends += [(int(point), grown.members(int(end)), thetas[end]) for end in lowest]

    def _grow_truly(self, point: int) -> None:
        frontier = [np.empty(0, np.intp)]
        for _ in range(self.k):
            grown: dict[bytes, Places] = {}
            for chosen in frontier:
                for row in np.setdiff1d(np.arange(len(self.models.X)), chosen):
                    candidate = np.sort(np.append(chosen, row))
                    grown[candidate.tobytes()] = candidate
            sets = list(grown.values())
            scores = np.concatenate([self._scores(point, sets[part]) for part in chunks(len(sets), BEAM_BATCH)])
            frontier = [sets[place] for place in np.argsort(scores, kind="stable")[: self.effort.beam]]

    def _scores(self, point: int, sets: list[Places]) -> Array:
        """Retrain without each of these sets and report it; the scores at the point."""
        deletions = Deletions.of(sets, self.k)
        thetas = self._consider(np.full(len(sets), point), self.models.first_guess(deletions), deletions, "greedy")
        return np.asarray(np.nan_to_num(thetas @ self.directions[point], nan=-np.inf))

    def kick(self, seed: int, first: int) -> None:
        """Forget a random part of the best set, let it grow again and walk on; until so many changed nothing."""
        k, effort, finding = self.k, self.effort, self.finding
        idle = np.zeros(len(self.directions), np.intp)
        for number in range(effort.most_kicks if k > 1 else 0):
            points = finding.open(self.floor)
            points = points[idle[points] < effort.kicks]
            if not len(points):
                return
            kept = max(1, round(k * (1.0 - FORGOTTEN[number % len(FORGOTTEN)])))
            sets = []
            for point in points:
                chosen = finding.sets[point]
                order = np.random.default_rng([seed, number, first + point]).permutation(len(chosen))
                sets.append(chosen[order[:kept]])
            sizes = [kept, *(kept + (k - kept) * part // 3 for part in (1, 2)), *[k] * effort.rounds]
            before = finding.scores[points].copy()
            self._walk(points, Deletions.of(sets, k), sizes, "kicks")
            idle[points] = np.where(finding.scores[points] < before - 1e-12, 0, idle[points] + 1)

    def swap(self) -> None:
        """Rounds of single exchanges, from the worst set of every point and the ends of its beams, while they help."""
        finding = self.finding
        if not self.few_rows and not self.effort.swap_width:
            return
        standing = [(int(point), finding.sets[point], finding.thetas[point]) for point in finding.open(self.floor)]
        standing += [end for end in self.ends if not np.array_equal(end[1], finding.sets[end[0]])]
        for _ in range(self.effort.swaps):
            open_ = set(finding.open(self.floor).tolist())
            standing = self._swapped([one for one in standing if one[0] in open_])
            if not standing:
                return

    def _swapped(self, standing: list[_Standing]) -> list[_Standing]:
        """Try exchanges of a row of each set for one outside, truly retrained; where those stand that it helped."""
        if not standing:
            return []
        models = self.models
        points, thetas = np.array([one[0] for one in standing]), np.stack([one[2] for one in standing])
        sets, toward = [one[1] for one in standing], self.directions[points]
        present = Deletions.of(sets, self.k)
        look = models.look(thetas, present)
        harms = models.harms(look, thetas, present, toward, leverage=True)
        places, tried = [], []
        for place, candidates in enumerate(self._exchanges(sets, toward, harms)):
            keys = Deletions.of(candidates, self.k).keys()
            for news in self.finding.unseen(np.full(len(candidates), points[place]), keys):
                places.append(place)
                tried.append(candidates[news])
        where, best = np.array(places, np.intp), np.einsum("ij,ij->i", toward, thetas)
        moved: dict[int, _Standing] = {}
        for part in chunks(len(tried), TRY_BATCH) if tried else ():
            deletions, own = Deletions.of(tried[part], self.k), where[part]
            guess = models.carried(thetas[own], look.hessians[own], present[own], deletions)
            found = self._consider(points[own], guess, deletions, "swap")
            scores = np.einsum("ij,ij->i", toward[own], found)
            for place, score, chosen, theta in zip(own, scores, tried[part], found, strict=True):
                if score < best[place] - 1e-12:
                    best[place], moved[int(place)] = score, (int(points[place]), np.sort(chosen), theta)
        return list(moved.values())

    def _exchanges(self, sets: list[Places], toward: Array, harms: Harms) -> list[list[Places]]:
        """The sets that differ from each of these by one row: all on small problems, else the most promising.

        ``harms`` are those of the models without these sets: rows go that do least. ``toward`` (m, p) are their points'
        directions.
        """
        if not self.few_rows:
            least = [np.argsort(-harms.at(place, rows), kind="stable") for place, rows in enumerate(sets)]
            leaving = [rows[order[:MOST_LEAVING]] for rows, order in zip(sets, least, strict=True)]
            return exchanges(self.models, toward, sets, leaving, self.k, self.effort.swap_width**2)
        everything = []
        for chosen in sets:
            options = [np.setdiff1d(chosen, [row]) for row in chosen] + ([chosen] if len(chosen) < self.k else [])
            outside = np.setdiff1d(np.arange(len(self.models.X)), chosen)
            everything.append([np.append(rest, row) for rest in options for row in outside])
        return everything

    def try_all(self) -> None:
        """Retrain after every deletion of at most k rows; the models serve all points of the block."""
        n, everyone = len(self.models.X), np.arange(len(self.directions))
        every = itertools.chain.from_iterable(itertools.combinations(range(n), size) for size in range(1, self.k + 1))
        while batch := list(itertools.islice(every, 512)):
            deletions = Deletions.of([np.array(chosen, np.intp) for chosen in batch], self.k)
            thetas = self.models.converge(self.models.first_guess(deletions), deletions)
            scores = self.directions @ thetas.T
            lowest = np.where(np.isnan(scores), -np.inf, scores).argmin(axis=1)
            self.finding.consider(everyone, thetas[lowest], deletions[lowest], self.directions, "brute force")
            self.finding.retrainings[everyone] += len(batch) - 1


def _few_sets(rows: int, k: int, most: int) -> bool:
    """Whether there are at most so many sets of 1 to k rows; counted no further than that, as the numbers explode."""
    count = 0
    for size in range(1, min(k, rows) + 1):
        count += comb(rows, size)
        if count > most:
            return False
    return most > 0
