"""The searches behind the adversary, each over a block of points at once.

All of them move between sets of rows by *re-linearising*: retrain without the present set, score every row at
that model (rows in the set by what keeping them out does), exchange rows for more harmful ones, repeat while the
score falls. They differ in where they start (:mod:`rocerf.deletion.starts`) and how the set grows:

* ``relinearise``: from the leverage-corrected first-order set of the full model;
* ``greedy``: the set grows in blocks, with retraining between blocks; on small problems row by row,
  several sets side by side;
* ``adaptive``: adaptive greedy, the set grows row by row (many rows: in blocks) with retraining after each, and
  nothing leaves it; by first order and with leverage;
* ``relaxation``: Frank and Wolfe over row weights in [0, 1], rounded to the k heaviest;
* ``known``: from the set that hurts this point most among those found for other points;
* ``groups``: from the holders of a rare value, by label (:mod:`rocerf.deletion.rare_groups`);
* ``random``: from first-order sets with noise on the harms (seeded);
* ``kicks``: a random part of the best set so far is forgotten and grows again;
* ``swap``: from the best set so far, exchanges of one row, each one truly retrained;
* ``brute force``: all sets, where they are few.

On the way models are retrained approximately, enough to choose; whatever is reported has been retrained to
convergence.
"""

from __future__ import annotations

import itertools
from dataclasses import dataclass
from math import comb

import numpy as np
from numpy.typing import NDArray

from rocerf.deletion.efforts import Effort
from rocerf.deletion.finding import Finding
from rocerf.deletion.many_models import Deletions, Look, ManyModels
from rocerf.deletion.rare_groups import RareGroups
from rocerf.deletion.starts import harms_of_full_model, starts_of
from rocerf.types import Array

Rows = NDArray[np.intp]

#: Models retrained at a time when single sets are tried.
TRY_BATCH = 64

#: Shares of a set that kicks forget, in turn: much, to leave a valley; little, to look around.
FORGOTTEN = (0.5, 0.1, 0.3)

#: Up to this many rows times deletions a problem is small: every exchange is tried, and beams are affordable.
FEW_ROWS = 400


def search(
    models: ManyModels,
    directions: Array,
    k: int,
    effort: Effort,
    seed: int,
    *,
    groups: RareGroups | None = None,
    known: list[Rows] | None = None,
    first: int = 0,
    stop_below: Array | None = None,
) -> Finding:
    """Run the effort's searches for a block of points with these score gradients (M, p).

    ``groups`` are the training set's rare groups, if the effort starts from them; ``known`` is a set for each point
    that hurt elsewhere and is worth starting from.
    ``first`` is the number of the block's first point, so that random starts depend on (seed, point) alone.
    A point whose score fell below its ``stop_below`` (M,) is refuted and not searched further.
    """
    finding = Finding.nothing_deleted(models, directions)
    if k == 0 or not len(directions):
        return finding
    n = len(models.X)
    if effort.brute_force and sum(comb(n, size) for size in range(1, k + 1)) <= effort.brute_force:
        _brute_force(models, directions, k, finding)
        return finding
    base = harms_of_full_model(models, directions)
    floor = np.full(len(directions), -np.inf) if stop_below is None else stop_below
    starts = starts_of(models, directions, base, k, effort, groups, seed, first)
    if known is not None:
        again = "known", lambda points: Deletions.of([known[point] for point in points], k), [k] * effort.rounds
        starts = itertools.chain([again], starts)
    for name, start, sizes in starts:
        points = finding.open(floor)
        if not len(points):
            return finding
        if name not in finding.ran:
            finding.ran.append(name)
        begin = start(points)
        if name == "adaptive":  # a yardstick: it counts itself, whatever the walk from it finds
            _report(models, directions, points, models.first_guess(begin), begin, finding, name)
        _walk(models, directions, points, begin, sizes, effort.patience, finding, name)
    points = finding.open(floor)
    if effort.beam and n * k <= FEW_ROWS:
        for point in points:
            _beam(models, directions, int(point), k, effort.beam, finding)
    _kick(models, directions, floor, k, effort, seed, first, finding)
    points = finding.open(floor)
    for _ in range(effort.swaps):
        points = _swap(models, directions, points, k, effort.swap_width, finding)
        points = np.intersect1d(points, finding.open(floor))
        if not len(points):
            break
    return finding


def _kick(
    models: ManyModels, directions: Array, floor: Array, k: int, effort: Effort, seed: int, first: int, finding: Finding
) -> None:
    """Forget a random part of the best set, let it grow again and walk on; until ``kicks`` in a row changed nothing."""
    idle = np.zeros(len(directions), np.intp)
    for number in range(effort.most_kicks if k > 1 else 0):
        points = finding.open(floor)
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
        _walk(models, directions, points, Deletions.of(sets, k), sizes, effort.patience, finding, "kicks")
        idle[points] = np.where(finding.scores[points] < before - 1e-12, 0, idle[points] + 1)


@dataclass(eq=False)
class _Walkers:
    """Where the walk of each point stands: its set, its retrained model, the score there and the harm of every row."""

    deletions: Deletions
    thetas: Array
    hessians: Array
    scores: Array
    harms: Array

    @classmethod
    def at(cls, deletions: Deletions, thetas: Array, hessian: Array, rows: int) -> _Walkers:
        count = len(deletions)
        hessians = np.broadcast_to(hessian, (count, *hessian.shape)).copy()
        return cls(deletions, thetas, hessians, np.full(count, np.inf), np.zeros((count, rows)))

    def move(
        self, who: Rows, deletions: Deletions, thetas: Array, hessians: Array, scores: Array, harms: Array
    ) -> None:
        self.deletions.rows[who], self.deletions.amounts[who] = deletions.rows, deletions.amounts
        self.thetas[who], self.hessians[who], self.scores[who], self.harms[who] = thetas, hessians, scores, harms


def _walk(
    models: ManyModels,
    directions: Array,
    points: Rows,
    start: Deletions,
    sizes: list[int],
    patience: int,
    finding: Finding,
    name: str,
) -> None:
    """Walk from a start for these points; converge the set each walk ends at and report it.

    A step exchanges rows of the set for more harmful ones outside, at first all that first order suggests. A step
    that does not lower the score is taken back and tried with half as many rows: the harms are true only nearby.
    """
    k = start.rows.shape[1]
    toward = directions[points]
    now = _Walkers.at(start, models.first_guess(start), models.hessian, len(models.X))
    radius, failures = np.full(len(points), k), np.zeros(len(points), np.intp)
    open_ = np.arange(len(points))
    trial, guesses = start, now.thetas
    for step in range(len(sizes)):
        thetas, retrained, look, astray = models.nearly(guesses, trial)
        _report(models, directions, points[open_[astray]], retrained[astray], trial[astray], finding, name)
        scores = np.einsum("ij,ij->i", toward[open_], retrained)
        lower = scores < now.scores[open_] - 1e-10
        if lower.any():
            own = np.flatnonzero(lower)
            part = Look(look.gradients[own], look.hessians[own], look.pulls[own])
            harms = models.harms(part, thetas[own], trial[own], toward[open_[own]], leverage=True)
            now.move(open_[own], trial[own], retrained[own], look.hessians[own], scores[own], harms)
        radius[open_] = np.where(lower, np.minimum(2 * radius[open_], k), radius[open_] // 2)
        failures[open_] = np.where(lower, 0, failures[open_] + 1)
        if step == len(sizes) - 1:
            break
        trial, changed = _exchange(models, now, open_, radius, sizes[step + 1])
        changed &= failures[open_] < patience
        open_, trial = open_[changed], trial[changed]
        if not len(open_):
            break
        guesses = models.carried(now.thetas[open_], now.hessians[open_], now.deletions[open_], trial)
    # Scores on the way are good to a few parts in a million of the drop: clear losers need no full retraining.
    best = finding.scores[points]
    ended = np.flatnonzero(now.scores - best < 1e-5 * np.abs(toward @ models.theta - best))
    _report(models, directions, points[ended], now.thetas[ended], now.deletions[ended], finding, name)


def _report(
    models: ManyModels,
    directions: Array,
    points: Rows,
    thetas: Array,
    deletions: Deletions,
    finding: Finding,
    name: str,
) -> None:
    """Retrain to convergence without those sets that were not yet, from these parameters, and report them."""
    news = finding.unseen(points, deletions.keys())
    if len(news):
        final = deletions[news]
        finding.consider(points[news], models.converge(thetas[news], final), final, directions, name)


def _exchange(
    models: ManyModels, now: _Walkers, open_: Rows, radius: Rows, size: int
) -> tuple[Deletions, NDArray[np.bool_]]:
    """The next sets of the open walks: up to ``radius`` rows exchanged; and whose set changes at all."""
    width = now.deletions.rows.shape[1]
    wanted = models.worst_of(now.harms[open_], size, width)
    sets, changed = [], np.zeros(len(open_), dtype=bool)
    for place, walk in enumerate(open_):
        have, want, harms = now.deletions.set_of(int(walk)), wanted.set_of(place), now.harms[walk]
        coming, leaving = np.setdiff1d(want, have), np.setdiff1d(have, want)
        room = size - len(have)
        count = len(coming) if size < width else min(radius[walk], len(coming))  # a growing set takes all it can
        coming = coming[np.argsort(harms[coming], kind="stable")[:count]]
        leaving = leaving[np.argsort(-harms[leaving], kind="stable")[: max(len(coming) - max(room, 0), 0)]]
        sets.append(np.concatenate([np.setdiff1d(have, leaving), coming]))
        changed[place] = len(coming) > 0
    return Deletions.of(sets, width), changed


def _swap(models: ManyModels, directions: Array, points: Rows, k: int, width: int, finding: Finding) -> Rows:
    """Try exchanges of the least harmful rows of each set for the most harmful outside; the points it helped."""
    few_rows = len(models.X) * k <= FEW_ROWS  # every exchange
    if not len(points) or not (few_rows or width):
        return points[:0]
    present = Deletions.of([finding.sets[point] for point in points], k)
    thetas = finding.thetas[points]
    look = models.look(thetas, present)
    harms = models.harms(look, thetas, present, directions[points], leverage=True)
    places, sets = [], []
    for place, point in enumerate(points):
        chosen = finding.sets[point]
        outside = np.setdiff1d(np.arange(len(models.X)), chosen) if few_rows else _tempting(harms[place], chosen, width)
        leaving = chosen if few_rows else chosen[np.argsort(-harms[place, chosen], kind="stable")[:width]]
        options = [np.setdiff1d(chosen, [row]) for row in leaving] + ([chosen] if len(chosen) < k else [])
        candidates = [np.append(rest, row) for rest in options for row in outside]
        if candidates:
            keys = Deletions.of(candidates, k).keys()
            for news in finding.unseen(np.full(len(candidates), point), keys):
                places.append(place)
                sets.append(candidates[news])
    before = finding.scores[points].copy()
    where = np.array(places, np.intp)
    for start in range(0, len(sets), TRY_BATCH):
        part = slice(start, start + TRY_BATCH)
        deletions, own = Deletions.of(sets[part], k), where[part]
        guess = models.carried(thetas[own], look.hessians[own], present[own], deletions)
        finding.consider(points[own], models.converge(guess, deletions), deletions, directions, "swap")
    return points[finding.scores[points] < before - 1e-12]


def _beam(models: ManyModels, directions: Array, point: int, k: int, width: int, finding: Finding) -> None:
    """The set grows by one row at a time, every extension truly retrained; the ``width`` lowest sets go on."""
    frontier = [np.empty(0, np.intp)]
    for _ in range(k):
        grown: dict[bytes, Rows] = {}
        for chosen in frontier:
            for row in np.setdiff1d(np.arange(len(models.X)), chosen):
                candidate = np.sort(np.append(chosen, row))
                grown[candidate.tobytes()] = candidate
        sets = list(grown.values())
        scores = np.concatenate(
            [_try(models, directions, point, k, sets[i : i + 256], finding) for i in range(0, len(sets), 256)]
        )
        frontier = [sets[place] for place in np.argsort(scores, kind="stable")[:width]]


def _try(models: ManyModels, directions: Array, point: int, k: int, sets: list[Rows], finding: Finding) -> Array:
    """Retrain without each of these sets and report it; the scores at the point."""
    deletions = Deletions.of(sets, k)
    thetas = models.converge(models.first_guess(deletions), deletions)
    finding.consider(np.full(len(sets), point), thetas, deletions, directions, "greedy")
    return np.asarray(np.nan_to_num(thetas @ directions[point], nan=-np.inf))


def _tempting(harms: Array, chosen: Rows, width: int) -> Rows:
    """The most harmful rows outside the set."""
    count = min(len(harms), width + len(chosen))
    candidates = np.argpartition(harms, count - 1)[:count] if count < len(harms) else np.arange(len(harms))
    candidates = candidates[np.argsort(harms[candidates], kind="stable")]
    return candidates[~np.isin(candidates, chosen)][:width]


def _brute_force(models: ManyModels, directions: Array, k: int, finding: Finding) -> None:
    """Retrain after every deletion of at most k rows; the models serve all points of the block."""
    n = len(models.X)
    every = itertools.chain.from_iterable(itertools.combinations(range(n), size) for size in range(1, k + 1))
    everyone = np.arange(len(directions))
    while batch := list(itertools.islice(every, 512)):
        deletions = Deletions.of([np.array(chosen, np.intp) for chosen in batch], k)
        thetas = models.converge(models.first_guess(deletions), deletions)
        scores = directions @ thetas.T
        lowest = np.where(np.isnan(scores), -np.inf, scores).argmin(axis=1)
        finding.consider(everyone, thetas[lowest], deletions[lowest], directions, "brute force")
        finding.retrainings[everyone] += len(batch) - 1
