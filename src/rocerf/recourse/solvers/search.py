"""A search for recourse under a promise that only says its value: forests, boosted trees, anything.

There is no slope to follow, and a tree's score is flat almost everywhere. The search improves *spots*, places in a
person's box where the promise holds or nearly does, in rounds::

    scan    read the promise along columns through the spot: pulled back toward the person, a little to both sides,
            and far out
    guess   (a) as if the score were a sum over columns: weigh many sums of scanned places, keep the best;
            (b) as if it were a plane, from differences at two distances: the cheapest place behind it;
            (c) columns pulled back together; (d) random moves              (`search_guesses.py`)
    try     read the guesses cheaper than the spot; the cheapest that holds is the new spot; pull it back by halves

A first attempt starts from anchors (training rows, say) where the promise holds. When its spots improve no more,
further attempts start at the person and at random places, looking only below the cost already reached. Nothing is
proven: where no point was found there may still be one.
"""

from __future__ import annotations

import itertools
from collections.abc import Iterator

import numpy as np

from rocerf.promises.promise import Promise
from rocerf.recourse.master.master import Master
from rocerf.recourse.solvers import search_guesses as guess
from rocerf.recourse.solvers.search_guesses import FAR, MOST_COLUMNS, NEAR, PULLS, SUMS, SWEEP, Profile, Room, Spots
from rocerf.recourse.solvers.solution import GUARD, Solution
from rocerf.types import Array, Mask, Places, Progress

#: Reads of the promise for each person, and more for each column that has to wait for its turn in a scan.
BUDGET, MORE = 4000, 100

#: Spots improved at once for each person; attempts without progress after which a person is left alone.
SPOTS, ATTEMPTS = 2, 4

#: Progress of a round or attempt: cheaper by this share or, where the promise does not hold yet, the promise higher by
#: this share of what was missing at the start. A round without progress ends a spot.
CHEAPER, HIGHER = 0.003, 0.01

#: Anchors read once for everybody, and tried as starts for each person; starts pulled back.
MOST_ANCHORS, STARTS, PULLED = 2048, 24, 8

#: Points in one read, and numbers in one array of candidates: what bounds memory.
MOST_POINTS, MOST_NUMBERS = 32768, 4_000_000

#: Values beyond this are all the same to the search, which computes with their differences.
LARGEST = 1e9


def solve_by_search(
    promise: Promise,
    master: Master,
    delta: float,
    *,
    anchors: Array,
    lower: Array | None = None,
    upper: Array | None = None,
    seed: int = 0,
    budget: int | None = None,
    progress: Progress | None = None,
) -> Solution:
    """The cheapest point found with ``promise >= delta`` for each person, from values of the promise alone.

    The search aims at ``delta + GUARD``; a point counts as found from ``delta + GUARD / 2`` on, read once more at the
    end. Who is not ``FOUND`` is ``GAVE_UP``. It looks near ``anchors`` (m, d), such as training rows, brought into each
    person's box. Where a box is open to a side, it goes as far as the range from ``lower`` to ``upper`` (d,), by
    default that of the anchors, or to where the person stands, if beyond. ``rounds`` counts the points read for each
    person, at most ``budget`` (by default 4000, and 100 more for each column beyond 24); the anchors are read once for
    everybody and not counted. Everybody sees the same random numbers: an answer does not depend on who else asks.

    >>> import rocerf
    >>> from rocerf.promises import Plain
    >>> from rocerf.recourse.costs.registry import cost_named
    >>> from rocerf.recourse.master.feasible_set import FeasibleSet
    >>> train = rocerf.TrainingSet([[1.0], [2.0], [3.0], [4.0]], [0, 0, 1, 1])
    >>> x0 = np.array([[1.0]])
    >>> master = Master(x0, cost_named("l2", train, None), FeasibleSet.around(x0, None))
    >>> found = solve_by_search(Plain(rocerf.LogisticModel.fit(train)), master, 0.0, anchors=train.X)
    >>> found.outcomes[0].name, found.points.round(4).tolist()
    ('FOUND', [[2.5]])
    """
    solution, d = Solution.blank(*master.X0.shape), master.X0.shape[1]
    budget = BUDGET + MORE * max(d - MOST_COLUMNS, 0) if budget is None else budget
    bounds = anchors.min(axis=0) if lower is None else lower, anchors.max(axis=0) if upper is None else upper
    pool = _pool(promise, anchors, delta + GUARD, seed)
    asking = np.flatnonzero(~master.allowed.empty)
    done = len(master.X0) - len(asking)
    for people in _blocks(asking, d):
        search = _Search(promise, Room.of(master, people, *bounds), delta, seed, budget - 1)
        points, obeys = search.room.landed(np.arange(len(people)), search.run(pool))
        points = np.where(obeys[:, None], points, master.X0[people])  # where nobody is accepted
        solution.rounds[people], solution.retrainings[people] = search.used + 1, search.retrainings
        reading = promise.read(points)  # once more, on their own
        solution.count(people, reading)
        solution.keep(people, points, reading, reading.values >= delta + GUARD / 2)
        done += len(people)
        if progress is not None:
            progress(done, len(master.X0))
    return solution


def _blocks(asking: Places, d: int) -> Iterator[Places]:
    """People in blocks whose candidates fit the memory we allow ourselves."""
    scan = SPOTS * min(d, MOST_COLUMNS) * (2 * len(NEAR) + len(PULLS) + FAR)
    most = max(scan, SPOTS * SUMS, 1 + STARTS + SWEEP)
    size = max(1, min(MOST_POINTS // most, MOST_NUMBERS // (most * d)))
    for start in range(0, len(asking), size):
        yield asking[start : start + size]


def _pool(promise: Promise, anchors: Array, aim: float, seed: int) -> Array:
    """The anchors at which the promise holds; where it holds at none, those where it is highest."""
    if len(anchors) > MOST_ANCHORS:
        drawn = np.random.default_rng([seed, 0]).choice(len(anchors), MOST_ANCHORS, replace=False)
        anchors = anchors[np.sort(drawn)]
    if not len(anchors):
        return anchors
    values = _usable(promise.read(anchors, aim).values)
    holding = values >= aim
    return anchors[holding] if holding.any() else anchors[np.argsort(-values, kind="stable")[:STARTS]]


def _usable(values: Array) -> Array:
    return np.clip(np.where(np.isnan(values), -np.inf, values), -LARGEST, LARGEST)


class _Search:
    """The search for one block of Q people; ``used`` counts the points read for each."""

    def __init__(self, promise: Promise, room: Room, delta: float, seed: int, budget: int) -> None:
        self.promise, self.room, self.seed, self.budget = promise, room, seed, budget
        self.aim = delta + GUARD
        # A value read among others may differ in its last digits: midway between the aim and what the end asks for.
        self.enough = delta + 0.75 * GUARD
        self.used, self.retrainings = np.zeros((2, len(room.x0)), dtype=np.intp)
        self.home_value = np.full(len(room.x0), -np.inf)
        self.slopes = np.zeros((len(NEAR), *room.x0.shape))

    def run(self, pool: Array) -> Array:
        """The cheapest points found, (Q, d); for whom none was found, the one that came nearest to holding."""
        spots = self._starts(pool)
        best = spots.best(1)
        for attempt in itertools.count():
            self._attempt(spots, attempt)
            self._keep_best(best, spots)
            affordable = self.budget - self.used >= SPOTS
            asking = np.flatnonzero(affordable & (best.idle < ATTEMPTS) & self._improvable(best))
            if not len(asking):
                break
            spots = self._restarts(best.take(asking), np.random.default_rng([self.seed, 3, attempt]))
        return self.room.points(best.person, best.at[:, None, :])[:, 0]

    def _attempt(self, spots: Spots, attempt: int) -> None:
        """Improve the spots in rounds until none brings progress."""
        for round_ in itertools.count():
            active = np.flatnonzero((spots.reads > 0) & (spots.idle == 0) & self._improvable(spots))
            if not len(active):
                break
            some = spots.take(active)
            self._improve(some, np.random.default_rng([self.seed, 2, attempt, round_]))
            spots.put(active, some)

    def _improvable(self, spots: Spots) -> Mask:
        """Whether there is anything between home and the ceiling."""
        return np.asarray(
            (spots.low < spots.high).any(axis=1) & (spots.ceiling > self.room.cost(spots.person, spots.home))
        )

    def _keep_best(self, best: Spots, spots: Spots) -> None:
        """Let the best spot of each person replace the best so far, if it is better."""
        found = spots.best(1)
        known = best.take(found.person)
        idle = np.where(self._progress(known.cost, known.value, found), 0, known.idle + 1)
        better = np.flatnonzero((found.cost < known.cost) | (np.isinf(known.cost) & (found.value > known.value)))
        best.put(found.person[better], found.take(better))
        best.idle[found.person] = idle

    def _progress(self, cost: Array, value: Array, spots: Spots) -> Mask:
        """Where the spots are cheaper than before or, as long as the promise does not hold, higher."""
        missing = self.aim - self.home_value[spots.person]
        climbed = np.isinf(cost) & (spots.value > value + HIGHER * missing)
        return np.where(np.isfinite(spots.cost), spots.cost < (1 - CHEAPER) * cost, climbed)

    # --- where attempts start ------------------------------------------------------------------------

    def _starts(self, pool: Array) -> Spots:
        """The best of home, nearby anchors and random places, pulled back."""
        crowd = Spots.at_home(self.room, self.budget)
        somewhere = guess.scattered(self.room, crowd, np.random.default_rng([self.seed, 1]))
        steps = np.concatenate([crowd.home[:, None, :], self._near(pool, crowd), somewhere], axis=1)
        steps = self.room.snapped(crowd.person, np.clip(steps, crowd.low[:, None, :], crowd.high[:, None, :]))
        values = self._read(crowd, steps, np.ones(steps.shape[:2], dtype=bool))
        self.home_value[:] = np.maximum(values[:, 0], -LARGEST)  # finite, though the budget were nil
        spots = crowd.take(np.repeat(crowd.person, steps.shape[1]))
        spots.at[:], spots.value[:] = steps.reshape(spots.at.shape), values.ravel()
        spots.cost[:] = np.where(spots.value >= self.enough, self.room.cost(spots.person, spots.at), np.inf)
        spots.ceiling[:] = spots.cost
        spots = self._allowed(spots.best(PULLED), PULLED)
        self._pull(spots)
        return self._allowed(spots.best(SPOTS), SPOTS)

    def _near(self, pool: Array, crowd: Spots) -> Array:
        """The anchors nearest to each person once brought into the box, as steps (Q, c, d)."""
        near = []
        for person, low, high in zip(crowd.person, crowd.low, crowd.high, strict=True):
            steps = np.clip((pool - self.room.x0[person]) / self.room.price.scale, low, high)
            cost = self.room.cost(np.full(len(steps), person), steps)
            near.append(steps[np.argsort(cost, kind="stable")[:STARTS]])
        return np.array(near).reshape(len(crowd.at), -1, crowd.at.shape[1])

    def _restarts(self, best: Spots, rng: np.random.Generator) -> Spots:
        """Two spots for each person, below the cost reached: home, and the best of random places."""
        best.at[:], best.value[:], best.cost[:] = best.home, self.home_value[best.person], np.inf
        best.ceiling[:] *= 1 - CHEAPER
        best.idle[:] = 0
        wild = self._allowed(best.take(np.arange(len(best.at))), SPOTS)
        self._try(wild, guess.scattered(self.room, wild, rng))
        return self._allowed(best, SPOTS).joined(wild)

    def _allowed(self, spots: Spots, parts: int) -> Spots:
        """The spots, allowed to spend this part of their person's reads each."""
        spots.reads[:] = (self.budget - self.used[spots.person]) // parts
        return spots

    # --- one round -----------------------------------------------------------------------------------

    def _improve(self, spots: Spots, rng: np.random.Generator) -> None:
        cost, value = spots.cost.copy(), spots.value.copy()
        profile = self._scan(spots, rng)
        guesses = [
            guess.sums(self.room, spots, profile, self.aim, rng),
            guess.planes(self.room, spots, profile, self.aim, self.slopes),
            guess.pulled_together(self.room, spots, profile, self.enough),
            guess.jumps(self.room, spots, rng),
        ]
        self._try(spots, np.concatenate(guesses, axis=1))
        self._pull(spots)
        spots.idle[:] = np.where(self._progress(cost, value, spots), 0, spots.idle + 1)

    def _scan(self, spots: Spots, rng: np.random.Generator) -> Profile:
        """Read the promise along columns through each spot."""
        columns, places = guess.places_to_scan(self.room, spots, rng)
        size, d = spots.at.shape
        steps = np.empty((*places.shape, d))
        steps[:] = spots.at[:, None, None, :]
        np.put_along_axis(steps, columns[:, :, None, None], places[:, :, :, None], axis=3)
        moved = places != np.take_along_axis(spots.at, columns, 1)[:, :, None]
        values = self._read(spots, steps.reshape(size, -1, d), moved.reshape(size, -1)).reshape(places.shape)
        return Profile(columns, places, np.where(moved, values, spots.value[:, None, None]))

    def _pull(self, spots: Spots) -> None:
        """Draw the spots that hold back toward home along a line."""
        back = spots.at[:, None, :] + (spots.home - spots.at)[:, None, :] * PULLS[:, None]
        self._try(spots, np.where(np.isfinite(spots.cost)[:, None, None], back, spots.at[:, None, :]))

    def _try(self, spots: Spots, guesses: Array) -> None:
        """Read guesses (R, c, d) that could be an improvement and move the spots to the best of them."""
        guesses = np.clip(guesses, spots.low[:, None, :], spots.high[:, None, :])
        guesses = self.room.snapped(spots.person, guesses)
        costs = self.room.cost(spots.person, guesses)
        wanted = (costs < spots.ceiling[:, None]) & (guesses != spots.at[:, None, :]).any(axis=2)
        values = self._read(spots, guesses, wanted)
        costs = np.where(values >= self.enough, costs, np.inf)
        rows, cheapest, highest = np.arange(len(guesses)), costs.argmin(axis=1), values.argmax(axis=1)
        holds = costs[rows, cheapest] < spots.ceiling
        climbs = ~holds & np.isinf(spots.cost) & (values[rows, highest] > spots.value)
        best, moves = np.where(holds, cheapest, highest), holds | climbs
        spots.at[moves], spots.value[moves] = guesses[rows, best][moves], values[rows, best][moves]
        spots.cost[holds] = spots.ceiling[holds] = costs[rows, best][holds]

    def _read(self, spots: Spots, steps: Array, wanted: Mask) -> Array:
        """Values (R, c) at steps (R, c, d); minus infinity where not wanted, or more than may be read yet."""
        wanted = wanted & (np.cumsum(wanted, axis=1) <= spots.reads[:, None])
        counts = wanted.sum(axis=1)
        spots.reads[:] -= counts
        np.add.at(self.used, spots.person, counts)
        values = np.full(wanted.shape, -np.inf)
        owners = np.broadcast_to(spots.person[:, None], wanted.shape)[wanted]
        points, obeys = self.room.landed(owners, self.room.points(spots.person, steps)[wanted])
        if len(points):
            reading = self.promise.read(points, self.aim)
            values[wanted] = np.where(obeys, _usable(reading.values), -LARGEST)
            if reading.retrainings is not None:
                np.add.at(self.retrainings, np.repeat(spots.person, counts), reading.retrainings)
        return values
