"""A search for recourse under a promise that only says its value: forests, boosted trees, anything.

There is no slope to follow, and a tree's score is flat almost everywhere. The search improves *spots*, places in a
person's box that hold the promise or come near it, in rounds::

    scan    read the promise along columns through the spot: pulled back toward the person, a little to both sides,
            far out
    guess   (a) as if the score were a sum over columns: by chance weigh many sums of places, read the best;
            (b) as if it were a plane, from differences at three distances: the cheapest place behind it;
            (c) columns pulled back together; (d) random moves
    try     read the guesses cheaper than the spot; the cheapest that holds is the new spot; pull it back by halves

A first attempt starts from anchors (training rows, say) where the promise holds. When its spots improve no more, further
attempts start at the person and at random places near, looking only below the cost already reached.
Nothing is proven: where no point was found there may still be one.
"""

from __future__ import annotations

import itertools
from collections.abc import Iterator
from dataclasses import dataclass, fields

import numpy as np
from numpy.typing import NDArray

from rocerf.promises.promise import Promise
from rocerf.recourse.cost import Cost, Norm
from rocerf.recourse.master import Master
from rocerf.recourse.solution import GUARD, Outcome, Progress, Solution

Array = NDArray[np.float64]
Mask = NDArray[np.bool_]
Places = NDArray[np.intp]

#: Reads of the promise for each person.
BUDGET = 4000

#: Spots improved at once for each person; attempts without progress after which a person is left alone.
SPOTS, ATTEMPTS = 2, 4

#: A spot is left alone after so many rounds that improve it by less than this share.
PATIENCE, PROGRESS = 1, 1e-3

#: Anchors read once for everybody; anchors and random points tried as starts for each person.
MOST_ANCHORS, STARTS, SWEEP = 2048, 24, 64

#: Columns scanned in one round; the others wait for their turn.
MOST_COLUMNS = 24

#: Places of a scan in one column: to both sides of the spot (in shares of its cost), pulls back, and far out.
NEAR = np.array([0.3, 0.03, 0.003])
PULLS = 0.5 ** np.arange(8)
FAR = 6

#: Sums over columns weighed in one round, and read; random moves; columns pulled back together.
SUMS, BEST_SUMS, JUMPS, TOGETHER = 200, 40, 16, 8

#: The part of chance in weighing the sums, in shares of the cost.
CHANCE = 0.05
RANK, CLIMB, TURN = 1, 0.01, 0.5

#: Points in one read, and numbers in one array of candidates: what bounds memory.
MOST_POINTS, MOST_NUMBERS = 32768, 4_000_000


def solve_by_search(
    promise: Promise,
    master: Master,
    delta: float,
    *,
    lower: Array,
    upper: Array,
    anchors: Array,
    seed: int = 0,
    budget: int = BUDGET,
    progress: Progress | None = None,
) -> Solution:
    """The cheapest point found with ``promise >= delta`` for each person, from values of the promise alone.

    The search aims at ``delta + GUARD``; a point counts as found from ``delta + GUARD / 2`` on, read once more at the
    end. ``rounds`` of the solution counts the points read for each person, at most ``budget``; the anchors are read
    once for everybody and not counted. Everybody sees the same random numbers, so an answer depends on the person and
    the seed, not on who else asks (as far as the promise's values do not).

    Parameters
    ----------
    lower, upper : arrays of shape (d,)
        The range of the training columns. Where a person's box is open to a side, the search goes as far as this
        range (or to where the person stands, if beyond), no further.
    anchors : array of shape (m, d)
        Points near which to look, such as training rows; brought into each person's box before use.
    """
    solution = Solution.blank(*master.X0.shape)
    pool = _pool(promise, anchors, delta + GUARD, seed)
    asking = np.flatnonzero(~master.allowed.empty)
    done = len(master.X0) - len(asking)
    for people in _blocks(asking, master.X0.shape[1]):
        search = _Search(promise, _Room.of(master, people, lower, upper), delta, seed, budget)
        _report(promise, people, search.run(pool), delta, solution)
        solution.rounds[people] = search.used
        done += len(people)
        if progress is not None:
            progress(done, len(master.X0))
    return solution


def _report(promise: Promise, people: Places, points: Array, delta: float, solution: Solution) -> None:
    """Read the points (Q, d) once more, alone, and keep those that hold."""
    reading = promise.read(points)
    for place in np.flatnonzero(reading.values >= delta + GUARD / 2):
        person = people[place]
        solution.points[person], solution.values[person] = points[place], reading.foreseen[place]
        solution.outcomes[person] = Outcome.FOUND
        solution.worst_ids[person] = reading.worst_ids(int(place))


def _blocks(asking: Places, d: int) -> Iterator[Places]:
    """People in blocks whose candidates fit the memory we allow ourselves."""
    most = SPOTS * min(d, MOST_COLUMNS) * (2 * len(NEAR) + len(PULLS) + FAR)
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
    values = np.nan_to_num(promise.read(anchors, aim).values, nan=-np.inf)
    holding = values >= aim
    return anchors[holding] if holding.any() else anchors[np.argsort(-values, kind="stable")[:STARTS]]


@dataclass(frozen=True, eq=False)
class _Room:
    """Where Q people stand and may go; *steps* are ``u = (x - x0) / scale``, so that ``low <= u <= high``."""

    x0: Array
    scale: Array
    norm: Norm
    lower: Array
    upper: Array

    @classmethod
    def of(cls, master: Master, people: Places, lower: Array, upper: Array) -> _Room:
        """The people's boxes, closed where they are open by the training range, and by where the person stands."""
        x0, low, high = master.X0[people], master.allowed.lower[people], master.allowed.upper[people]
        return cls(
            x0,
            master.cost.scale,
            master.cost.norm,
            np.where(np.isneginf(low), np.minimum(np.minimum(lower, x0), high), low),
            np.where(np.isposinf(high), np.maximum(np.maximum(upper, x0), low), high),
        )

    @property
    def low(self) -> Array:
        return (self.lower - self.x0) / self.scale

    @property
    def high(self) -> Array:
        return (self.upper - self.x0) / self.scale

    def points(self, people: Places, steps: Array) -> Array:
        """Steps (R, c, d) of these people (R,) as points; who does not move keeps the value to the last digit."""
        x0 = self.x0[people][:, None, :]
        points = np.where(steps == 0.0, x0, x0 + self.scale * steps)
        return np.clip(points, self.lower[people][:, None, :], self.upper[people][:, None, :])

    def cost(self, steps: Array) -> Array:
        """Cost of steps (..., d)."""
        cost = Cost(self.norm, np.ones(steps.shape[-1]))
        return cost.of(steps.reshape(-1, steps.shape[-1])).reshape(steps.shape[:-1])

    def share(self, steps: Array) -> Array:
        """What each column adds to the cost (L1) or to its square (L2)."""
        return steps**2 if self.norm is Norm.L2 else np.abs(steps)


@dataclass(frozen=True, eq=False)
class _Spots:
    """R places under improvement, in steps: ``at`` (R, d), with the promise's ``value`` and the ``cost`` there.

    The cost is infinite where the promise does not hold; ``ceiling`` is the cost from which a point is of no
    interest. ``home`` is the place in the box nearest to the person, ``reads`` how often the promise may be read yet,
    ``idle`` the rounds without progress.
    """

    person: Places
    low: Array
    high: Array
    home: Array
    at: Array
    value: Array
    cost: Array
    ceiling: Array
    reads: Places
    idle: Places

    def take(self, which: Places) -> _Spots:
        return _Spots(*(getattr(self, field.name)[which] for field in fields(self)))

    def put(self, which: Places, changed: _Spots) -> None:
        for field in fields(self):
            getattr(self, field.name)[which] = getattr(changed, field.name)

    def joined(self, others: _Spots) -> _Spots:
        return _Spots(*(np.concatenate([getattr(s, field.name) for s in (self, others)]) for field in fields(self)))


@dataclass(frozen=True, eq=False)
class _Profile:
    """The promise along columns (R, k) through R spots: values (R, k, g) at places (R, k, g)."""

    columns: Places
    places: Array
    values: Array


class _Search:
    """The search for one block of Q people; ``used`` counts the points read for each."""

    def __init__(self, promise: Promise, room: _Room, delta: float, seed: int, budget: int) -> None:
        self.promise, self.room, self.seed, self.budget = promise, room, seed, budget
        self.aim = delta + GUARD
        # A read among other points may differ in the last digits: between the aim and what the last reading asks.
        self.enough = delta + 0.75 * GUARD
        self.used = np.zeros(len(room.x0), dtype=np.intp)
        self.home_value = np.full(len(room.x0), -np.inf)
        self.slopes = np.zeros((len(NEAR), *room.x0.shape))

    def run(self, pool: Array) -> Array:
        """The cheapest points found, (Q, d); for whom none was found, the one that came nearest to holding."""
        spots = self._starts(pool)
        best = _best(spots, 1)
        for attempt in itertools.count():
            self._attempt(spots, attempt)
            self._keep_best(best, spots)
            left = self.budget - self.used >= SPOTS
            asking = np.flatnonzero(left & (best.idle < ATTEMPTS) & self._improvable(best))
            if not len(asking):
                break
            spots = self._restarts(best.take(asking), np.random.default_rng([self.seed, 3, attempt]))
        return self.room.points(best.person, best.at[:, None, :])[:, 0]

    def _attempt(self, spots: _Spots, attempt: int) -> None:
        """Improve the spots in rounds until they are left alone."""
        for round_ in itertools.count():
            active = np.flatnonzero((spots.reads > 0) & (spots.idle < PATIENCE) & self._improvable(spots))
            if not len(active):
                break
            some = spots.take(active)
            self._improve(some, np.random.default_rng([self.seed, 2, attempt, round_]))
            spots.put(active, some)

    def _improvable(self, spots: _Spots) -> Mask:
        """Whether there is anything between home and the ceiling."""
        return (spots.low < spots.high).any(axis=1) & (spots.ceiling > self.room.cost(spots.home))

    def _keep_best(self, best: _Spots, spots: _Spots) -> None:
        found = _best(spots, 1)
        known = best.take(found.person)
        idle = np.where(self._progress(known.cost, known.value, found), 0, known.idle + 1)
        better = (found.cost < known.cost) | (np.isinf(known.cost) & (found.value > known.value))
        best.put(found.person[better], found.take(np.flatnonzero(better)))
        best.idle[found.person] = idle

    def _progress(self, cost: Array, value: Array, spots: _Spots) -> Mask:
        """Where spots are cheaper, or as long as none holds higher, than they were."""
        holds = np.isfinite(spots.cost)
        return np.where(holds, spots.cost < (1 - PROGRESS) * cost, np.isinf(cost) & (spots.value - value > CLIMB * (self.aim - self.home_value[spots.person])))

    # --- starts ------------------------------------------------------------------------------------

    def _starts(self, pool: Array) -> _Spots:
        """The best of home, nearby anchors and random places, pulled back."""
        people, home = np.arange(len(self.used)), np.clip(0.0, self.room.low, self.room.high)
        size = len(self.used)
        crowd = _Spots(
            people,
            self.room.low,
            self.room.high,
            home,
            home.copy(),
            np.full(size, -np.inf),
            np.full(size, np.inf),
            np.full(size, np.inf),
            np.full(size, self.budget),
            np.zeros(size, dtype=np.intp),
        )
        seeds = np.concatenate([home[:, None], self._near(pool), self._around(crowd, np.random.default_rng([self.seed, 1]))], axis=1)
        values = self._read(crowd, seeds, np.ones(seeds.shape[:2], dtype=bool))
        self.home_value[:] = values[:, 0]
        spots = crowd.take(np.repeat(people, seeds.shape[1]))
        spots.at[:], spots.value[:] = seeds.reshape(spots.at.shape), values.ravel()
        spots.cost[:] = np.where(spots.value >= self.enough, self.room.cost(spots.at), np.inf)
        spots.ceiling[:] = spots.cost
        spots = _best(spots, 4 * SPOTS)
        spots.reads[:] //= 4 * SPOTS
        self._pull(spots)
        spots = _best(spots, SPOTS)
        spots.reads[:] = (self.budget - self.used[spots.person]) // SPOTS
        return spots

    def _near(self, pool: Array) -> Array:
        """The anchors nearest to each person once brought into the box, as steps (Q, c, d)."""
        room = self.room
        near = []
        for x0, low, high in zip(room.x0, room.low, room.high, strict=True):
            steps = np.clip((pool - x0) / room.scale, low, high)
            near.append(steps[np.argsort(room.cost(steps), kind="stable")[:STARTS]])
        return np.array(near).reshape(len(room.x0), -1, room.x0.shape[1])

    def _around(self, spots: _Spots, rng: np.random.Generator) -> Array:
        """Random places around home below the ceiling, mostly with few columns moved, as steps (R, c, d)."""
        d, free = spots.at.shape[1], (spots.low < spots.high)[:, None, :]
        moved = np.minimum(1 + np.floor(2 * rng.exponential(size=SWEEP)), d)
        rank = np.argsort(np.argsort(np.where(free, rng.random((SWEEP, d)), 2.0), axis=2), axis=2)
        noise = np.where(free & (rank < moved[:, None]), rng.normal(size=(SWEEP, d)), 0.0)
        radius = self._reach(spots)[:, None] * rng.random(SWEEP) ** (1 / moved)
        steps = noise * (radius / np.maximum(self.room.cost(noise), 1e-300))[:, :, None]
        return np.clip(spots.home[:, None, :] + steps, spots.low[:, None, :], spots.high[:, None, :])

    def _restarts(self, best: _Spots, rng: np.random.Generator) -> _Spots:
        """Two spots for each person below the cost reached: home, and the best of random places."""
        best.at[:], best.value[:], best.cost[:] = best.home, self.home_value[best.person], np.inf
        best.reads[:] = (self.budget - self.used[best.person]) // SPOTS
        best.idle[:] = 0
        best.ceiling[:] *= 1 - PROGRESS
        wild = best.take(np.arange(len(best.at)))
        self._try(wild, self._around(wild, rng))
        return best.joined(wild)

    def _reach(self, spots: _Spots) -> Array:
        """How far to look, (R,): to the ceiling, or through the whole box where nothing holds yet."""
        return np.where(np.isfinite(spots.ceiling), spots.ceiling, self.room.cost(spots.high - spots.low))

    # --- one round ---------------------------------------------------------------------------------

    def _improve(self, spots: _Spots, rng: np.random.Generator) -> None:
        cost, value = spots.cost.copy(), spots.value.copy()
        profile = self._scan(spots, rng)
        guesses = [
            self._sums(spots, profile, rng),
            self._planes(spots, profile),
            self._together(spots, profile),
            self._jumps(spots, rng),
        ]
        self._try(spots, np.concatenate(guesses, axis=1))
        self._pull(spots)
        spots.idle[:] = np.where(self._progress(cost, value, spots), 0, spots.idle + 1)

    def _scan(self, spots: _Spots, rng: np.random.Generator) -> _Profile:
        """Read the promise along columns through each spot."""
        size, d = spots.at.shape
        order = rng.random(d) - TURN * (spots.at != spots.home) + 9.0 * (spots.low == spots.high)
        columns = np.argsort(order, axis=1)[:, :MOST_COLUMNS]
        here, home, low, high = (
            np.take_along_axis(a, columns, 1)[:, :, None] for a in (spots.at, spots.home, spots.low, spots.high)
        )
        reach = self._reach(spots)[:, None, None]
        strata = ((np.arange(FAR) + rng.random((d, FAR))) / FAR)[columns]
        nearest, farthest = np.maximum(low, -reach), np.minimum(high, reach)
        far = nearest + strata * np.maximum(farthest - nearest, 0.0)
        places = [here + reach * NEAR, here - reach * NEAR, here + (home - here) * PULLS, far]
        places = np.clip(np.concatenate(places, axis=2), low, high)
        steps = np.empty((*places.shape, d))
        steps[:] = spots.at[:, None, None, :]
        np.put_along_axis(steps, columns[:, :, None, None], places[:, :, :, None], axis=3)
        steps, moved = steps.reshape(size, -1, d), places != here
        values = self._read(spots, steps, moved.reshape(size, -1))
        profile = _Profile(columns, places, np.where(moved, values.reshape(places.shape), spots.value[:, None, None]))
        return profile

    def _sums(self, spots: _Spots, profile: _Profile, rng: np.random.Generator) -> Array:
        """Guesses (R, c, d): a place in each column, good together if the score were a sum over columns.

        At a price of score against cost the best place of a column is known at once; prices are drawn, and chance is
        added so that sums differ. The promising ones are returned.
        """
        here = np.take_along_axis(spots.at, profile.columns, 1)[:, :, None]
        places = np.concatenate([here, profile.places], axis=2)
        gains = np.concatenate([np.zeros_like(here), profile.values - spots.value[:, None, None]], axis=2)
        known = np.isfinite(gains)
        gains = np.where(known, gains, 0.0)
        shares = np.where(known, self.room.share(places), np.inf)
        unit = self.room.share(self._reach(spots))[:, None, None]
        price = unit / np.maximum(gains.max(axis=(1, 2), keepdims=True), GUARD)
        guesses = np.repeat(spots.at[:, None, :], SUMS, axis=1)
        hopes = np.empty(guesses.shape[:2])
        for j in range(SUMS):
            noise = CHANCE * (j % 4 > 0) * rng.gumbel(size=(spots.at.shape[1], places.shape[2]))[profile.columns]
            weighed = shares - price * 2.0 ** rng.uniform(-4, 4) * gains - unit * noise
            best = weighed.argmin(axis=2)[:, :, None]
            np.put_along_axis(guesses[:, j], profile.columns, np.take_along_axis(places, best, 2)[:, :, 0], axis=1)
            hopes[:, j] = np.take_along_axis(gains, best, 2).sum(axis=(1, 2))
        cost = self.room.cost(guesses)
        if RANK == 1:
            lack = np.maximum(self.aim - spots.value[:, None] - hopes, 0)
            hopes = -lack - 1e-6 * cost
        elif RANK == 2:
            need = np.maximum(self.aim - spots.value[:, None], 0.1)
            hopes = hopes / need - self.room.share(cost) / unit[:, :, 0]
        hopes = np.where(cost < spots.ceiling[:, None], hopes, -np.inf)
        order = np.argsort(-hopes, axis=1, kind="stable")[:, :BEST_SUMS]
        return np.take_along_axis(guesses, order[:, :, None], 1)

    def _planes(self, spots: _Spots, profile: _Profile) -> Array:
        """Guesses: the cheapest places on the right side of planes through the spot, and on the way there."""
        guesses = []
        for near, reach in enumerate(NEAR):
            up, down = near, len(NEAR) + near
            run = profile.places[:, :, up] - profile.places[:, :, down]
            with np.errstate(invalid="ignore", divide="ignore"):
                secant = (profile.values[:, :, up] - profile.values[:, :, down]) / run
            # Columns that were not scanned keep the slope they had when they last were.
            slope = self.slopes[near, spots.person]
            np.put_along_axis(slope, profile.columns, np.where(np.isfinite(secant), secant, 0.0), axis=1)
            self.slopes[near, spots.person] = slope
            rise = reach * self._reach(spots) * np.sqrt((slope**2).sum(axis=1))
            for margin in (0.0, 0.3):
                need = self.aim - spots.value + margin * rise + (slope * spots.at).sum(axis=1)
                goal = _cheapest_behind(slope, need, spots, self.room.norm)
                guesses += [spots.at + way * (goal - spots.at) for way in (1.0, 0.5, 0.2)]
        return np.stack(guesses, axis=1)

    def _together(self, spots: _Spots, profile: _Profile) -> Array:
        """Guesses: the column that saves most as far back as it goes alone, then with the second, the third, ..."""
        here = np.take_along_axis(spots.at, profile.columns, 1)[:, :, None]
        saved = self.room.share(here) - self.room.share(profile.places)
        saved = np.where(profile.values >= self.enough, np.maximum(saved, 0.0), 0.0)
        best = saved.argmax(axis=2)[:, :, None]
        most = np.take_along_axis(saved, best, 2)
        place = np.where(most > 0, np.take_along_axis(profile.places, best, 2), here)[:, :, 0]
        order = np.argsort(-most[:, :, 0], axis=1, kind="stable")[:, :TOGETHER]
        columns, place = np.take_along_axis(profile.columns, order, 1), np.take_along_axis(place, order, 1)
        guesses = np.repeat(spots.at[:, None, :], columns.shape[1], axis=1)
        for j in range(columns.shape[1]):
            guesses[np.arange(len(place)), j:, columns[:, j]] = place[:, j, None]
        return guesses

    def _jumps(self, spots: _Spots, rng: np.random.Generator) -> Array:
        """Guesses: random moves of a few columns or of many, short or long, drawn back under the ceiling."""
        d, reach, home = spots.at.shape[1], self._reach(spots)[:, None], spots.home[:, None, :]
        moved = rng.random((JUMPS, d)) < rng.random((JUMPS, 1))
        noise = np.where(moved, rng.normal(size=(JUMPS, d)), 0.0) * 10.0 ** -(3 * rng.random((JUMPS, 1)))
        jumps = spots.at[:, None, :] + reach[:, :, None] * noise
        jumps = np.clip(jumps, spots.low[:, None, :], spots.high[:, None, :])
        under = reach * (1 - 0.2 * rng.random(JUMPS)) / np.maximum(self.room.cost(jumps), 1e-300)
        return home + np.minimum(under, 1.0)[:, :, None] * (jumps - home)

    def _pull(self, spots: _Spots) -> None:
        """Draw the spots that hold back toward home along a line."""
        back = spots.at[:, None, :] + (spots.home - spots.at)[:, None, :] * PULLS[:, None]
        self._try(spots, np.where(np.isfinite(spots.cost)[:, None, None], back, spots.at[:, None, :]))

    # --- reading -----------------------------------------------------------------------------------

    def _try(self, spots: _Spots, guesses: Array) -> None:
        """Read guesses (R, c, d) that could be an improvement and move the spots to the best of them."""
        guesses = np.clip(guesses, spots.low[:, None, :], spots.high[:, None, :])
        wanted = (self.room.cost(guesses) < spots.ceiling[:, None]) & (guesses != spots.at[:, None, :]).any(axis=2)
        self._move(spots, guesses, self._read(spots, guesses, wanted))

    def _move(self, spots: _Spots, guesses: Array, values: Array) -> None:
        costs = np.where(values >= self.enough, self.room.cost(guesses), np.inf)
        rows = np.arange(len(guesses))
        cheapest, highest = costs.argmin(axis=1), values.argmax(axis=1)
        holds = costs[rows, cheapest] < spots.ceiling
        climbs = ~holds & np.isinf(spots.cost) & (values[rows, highest] > spots.value)
        best, moves = np.where(holds, cheapest, highest), holds | climbs
        spots.at[moves], spots.value[moves] = guesses[rows, best][moves], values[rows, best][moves]
        spots.cost[holds] = spots.ceiling[holds] = costs[rows, best][holds]

    def _read(self, spots: _Spots, steps: Array, wanted: Mask) -> Array:
        """Values (R, c) at steps (R, c, d); minus infinity where not wanted, or more than may be read yet."""
        wanted = wanted & (np.cumsum(wanted, axis=1) <= spots.reads[:, None])
        counts = wanted.sum(axis=1)
        spots.reads[:] -= counts
        np.add.at(self.used, spots.person, counts)
        values = np.full(wanted.shape, -np.inf)
        points = self.room.points(spots.person, steps)[wanted]
        if len(points):
            values[wanted] = np.nan_to_num(self.promise.read(points, self.aim).values, nan=-np.inf)
        return values


def _best(spots: _Spots, kept: int) -> _Spots:
    """Each person's cheapest spots, then the highest; everybody has as many."""
    order = np.lexsort((-spots.value, spots.cost, spots.person))
    people = spots.person[order]
    rank = np.arange(len(order)) - np.searchsorted(people, people)
    return spots.take(order[rank < kept])


def _cheapest_behind(slope: Array, need: Array, spots: _Spots, norm: Norm) -> Array:
    """The cheapest steps in the boxes with ``slope'u >= need``, (R, d); as far as the box goes where there is none."""
    far = np.where(slope > 0, spots.high, np.where(slope < 0, spots.low, spots.home))
    if norm is Norm.L1:  # the steepest columns first
        gains = slope * (far - spots.home)
        order = np.argsort(-np.abs(slope), axis=1, kind="stable")
        sorted_gains = np.take_along_axis(gains, order, 1)
        missing = need - (slope * spots.home).sum(axis=1)
        before = np.cumsum(sorted_gains, axis=1) - sorted_gains
        part = np.clip((missing[:, None] - before) / np.maximum(sorted_gains, 1e-300), 0.0, 1.0)
        parts = np.empty_like(part)
        np.put_along_axis(parts, order, part, axis=1)
        return np.asarray(spots.home + parts * (far - spots.home))
    size = np.abs(slope)
    high = (np.abs(far) / np.maximum(size, 1e-300)).max(axis=1, where=size > 0, initial=0.0)
    low = np.zeros_like(high)
    for _ in range(60):
        middle = (low + high) / 2
        enough = (slope * np.clip(middle[:, None] * slope, spots.low, spots.high)).sum(axis=1) >= need
        high, low = np.where(enough, middle, high), np.where(enough, low, middle)
    return np.clip(high[:, None] * slope, spots.low, spots.high)
