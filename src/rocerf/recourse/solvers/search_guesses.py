"""Where a search looks next: guesses made from the promise's values along a few lines, without reading it again.

Works in *steps* ``u = (x - x0) / scale``, in which the person stands at 0. Arrays hold R spots and d columns; guesses
have shape (R, c, d) and may leave the box, the search clips them.
"""

from __future__ import annotations

from dataclasses import dataclass, fields
from functools import cached_property

import numpy as np

from rocerf.recourse.costs.cost import Cost, Norm
from rocerf.recourse.master.feasible_set import FeasibleSet
from rocerf.recourse.master.master import Master
from rocerf.recourse.solvers.solution import GUARD
from rocerf.types import Array, Mask, Places

#: Columns scanned in one round. In higher dimension columns take turns; those that moved are this much ahead.
MOST_COLUMNS, AHEAD = 24, 0.5

#: Places of a scan in one column: to both sides of the spot (in shares of its cost), pulls back, and far out.
NEAR = np.array([0.3, 0.01])
PULLS = 0.5 ** np.arange(8)
FAR = 6

#: Sums over columns weighed in one round, and guessed; random moves; columns pulled back together; random places.
SUMS, BEST_SUMS, JUMPS, TOGETHER, SWEEP = 256, 24, 16, 8, 64

#: The part of chance in weighing the sums, in shares of the cost.
CHANCE = 0.05

#: Numbers weighed at a time.
MOST_WEIGHED = 500_000

#: Slopes smaller than this, as a share of the steepest, count as none.
FLAT = 1e-9


@dataclass(frozen=True, eq=False)
class Room:
    """Where Q people stand, where they may go (closed boxes, in the user's units), and what moving costs.

    ``up`` and ``down`` (Q, d) are what a step of one scale costs in each column, for L2 its square.
    """

    x0: Array
    price: Cost
    lower: Array
    upper: Array
    allowed: FeasibleSet
    up: Array
    down: Array

    @classmethod
    def of(cls, master: Master, people: Places, lower: Array, upper: Array) -> Room:
        """The people's boxes; open sides end with the training range (d,), or where the person stands beyond it."""
        x0, low, high = master.X0[people], master.allowed.lower[people], master.allowed.upper[people]
        ones = np.ones(x0.shape)
        return cls(
            x0,
            master.cost,
            np.where(np.isneginf(low), np.minimum(np.minimum(lower, x0), high), low),
            np.where(np.isposinf(high), np.maximum(np.maximum(upper, x0), low), high),
            master.allowed.of(people),
            master.cost.parts(ones, x0),
            master.cost.parts(-ones, x0),
        )

    @cached_property
    def rate(self) -> Array:
        """What a step of one scale costs at least, (Q, d); 1 where it costs nothing or cannot be paid."""
        payable = [np.where(np.isfinite(price) & (price > 0), price, np.inf) for price in (self.up, self.down)]
        least = np.minimum(*payable)
        return np.where(np.isfinite(least), least, 1.0)

    def landed(self, people: Places, points: Array) -> tuple[Array, Mask]:
        """Points (R, d) of these people (R,) on their steps and categories, and which of them obey every rule (R,)."""
        allowed = self.allowed.of(people)
        points = allowed.landed(points)
        return points, allowed.holds(points)

    def points(self, people: Places, steps: Array) -> Array:
        """Steps (R, c, d) of these people (R,) as points; a column not moved keeps its value to the last digit."""
        x0 = self.x0[people][:, None, :]
        points = np.where(steps == 0.0, x0, x0 + self.price.scale * steps)
        return np.clip(points, self.lower[people][:, None, :], self.upper[people][:, None, :])

    def snapped(self, people: Places, steps: Array) -> Array:
        """Steps (R, c, d) to where their points land: only allowed values are paid for, none between them."""
        if not self.allowed.stepped.any():
            return steps
        points, x0 = self.points(people, steps), self.x0[people][:, None, :]
        landed, _ = self.landed(np.repeat(people, steps.shape[1]), points.reshape(-1, steps.shape[2]))
        landed = landed.reshape(points.shape)
        return np.where(landed == points, steps, (landed - x0) / self.price.scale)

    def parts(self, people: Places, steps: Array) -> Array:
        """What steps (R, ..., d) of these people (R,) add to the cost, or for L2 to its square, in each column."""
        d = steps.shape[-1]
        own = self.x0[people].reshape(len(people), *(1,) * (steps.ndim - 2), d)
        parts = self.price.parts(steps.reshape(-1, d), np.broadcast_to(own, steps.shape).reshape(-1, d))
        # What cannot be paid is closed by the box, into which guesses are brought before they are read.
        return np.where(np.isfinite(parts), parts, 0.0).reshape(steps.shape)

    def cost(self, people: Places, steps: Array) -> Array:
        """Cost of steps (R, ..., d) of these people (R,), (R, ...)."""
        return np.asarray(self.price.norm.total(self.parts(people, steps)))

    def share(self, people: Places, columns: Places, places: Array) -> Array:
        """What steps to places (R, k, g) in columns (R, k) add to the cost (for L2 to its square), (R, k, g)."""
        steps = np.zeros((len(places), places.shape[2], self.x0.shape[1]))
        which = np.broadcast_to(columns[:, None, :], (*steps.shape[:2], columns.shape[1]))
        np.put_along_axis(steps, which, places.swapaxes(1, 2), axis=2)
        return np.take_along_axis(self.parts(people, steps), which, 2).swapaxes(1, 2)


@dataclass(frozen=True, eq=False)
class Spots:
    """R places under improvement: ``at`` (R, d) in the box from ``low`` to ``high``, with ``value`` and ``cost`` there.

    The cost is infinite where the promise does not hold; ``ceiling`` is the cost from which a point is of no interest.
    ``home`` is the place in the box nearest to the person, ``reads`` how often the promise may be read yet, ``idle``
    counts what brought no progress.
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

    @classmethod
    def at_home(cls, room: Room, reads: int) -> Spots:
        """One spot for each person, where the person stands, not read yet."""
        size, nothing = len(room.x0), np.full(len(room.x0), np.inf)
        low, high = ((end - room.x0) / room.price.scale for end in (room.lower, room.upper))
        home, idle = np.clip(0.0, low, high), np.zeros(size, dtype=np.intp)
        costs = nothing, nothing.copy()
        return cls(np.arange(size), low, high, home, home.copy(), -nothing, *costs, np.full(size, reads), idle)

    def take(self, which: Places) -> Spots:
        """A copy of some of them."""
        return Spots(*(getattr(self, field.name)[which] for field in fields(self)))

    def put(self, which: Places, changed: Spots) -> None:
        """Write some of them back."""
        for field in fields(self):
            getattr(self, field.name)[which] = getattr(changed, field.name)

    def joined(self, others: Spots) -> Spots:
        """These, then the others."""
        return Spots(*(np.concatenate([getattr(s, field.name) for s in (self, others)]) for field in fields(self)))

    def best(self, kept: int) -> Spots:
        """Each person's cheapest spots or, where the promise does not hold, the highest; sorted by person."""
        order = np.lexsort((-self.value, self.cost, self.person))
        people = self.person[order]
        rank = np.arange(len(order)) - np.searchsorted(people, people)
        return self.take(order[rank < kept])

    def reach(self, room: Room) -> Array:
        """How far to look, as a cost (R,): to the ceiling, or through the whole box where nothing holds yet."""
        width = self.high - self.low
        across = np.minimum(room.parts(self.person, width), room.parts(self.person, -width))
        return np.where(np.isfinite(self.ceiling), self.ceiling, room.price.norm.total(across))

    def steps(self, room: Room) -> Array:
        """How far that is in each column at most, in steps (R, d)."""
        return np.asarray(self.reach(room)[:, None] / room.rate[self.person])


@dataclass(frozen=True, eq=False)
class Profile:
    """The promise along k columns through each spot: ``columns`` (R, k), ``values`` (R, k, g) at ``places`` (R, k, g).

    Places lie to the sides of the spot (up, then down, at the distances ``NEAR``), then on the way home, then far out.
    Values are minus infinity where the promise was not read.
    """

    columns: Places
    places: Array
    values: Array


def places_to_scan(room: Room, spots: Spots, rng: np.random.Generator) -> tuple[Places, Array]:
    """Columns (R, k) and places (R, k, g) of the next profile."""
    d = spots.at.shape[1]
    order = rng.random(d) - AHEAD * (spots.at != spots.home) + 9.0 * (spots.low == spots.high)
    columns = np.argsort(order, axis=1)[:, :MOST_COLUMNS]
    here, home, low, high, reach = (
        np.take_along_axis(a, columns, 1)[:, :, None]
        for a in (spots.at, spots.home, spots.low, spots.high, spots.steps(room))
    )
    strata = ((np.arange(FAR) + rng.random((d, FAR))) / FAR)[columns]
    first, last = np.maximum(low, -reach), np.minimum(high, reach)
    far = first + strata * (last - first)
    places = [here + reach * NEAR, here - reach * NEAR, here + (home - here) * PULLS, far]
    return columns, np.clip(np.concatenate(places, axis=2), low, high)


def sums(room: Room, spots: Spots, profile: Profile, aim: float, rng: np.random.Generator) -> Array:
    """A place in each column, good together if the score were a sum over columns.

    At a price of score against cost the best place of a column is known at once. Prices are drawn, and chance is added
    so that sums differ; those under the ceiling that should hold, or come nearest, are returned.
    """
    here = np.take_along_axis(spots.at, profile.columns, 1)[:, :, None]
    places = np.concatenate([here, profile.places], axis=2)
    gains = np.concatenate([np.zeros_like(here), profile.values - spots.value[:, None, None]], axis=2)
    shares = np.where(np.isfinite(gains), room.share(spots.person, profile.columns, places), np.inf)
    gains = np.where(np.isfinite(gains), gains, 0.0)
    unit = room.price.norm.untotal(spots.reach(room))[:, None, None]
    worth = unit / np.maximum(gains.max(axis=(1, 2), keepdims=True), GUARD) * gains
    prices, chance = 2.0 ** rng.uniform(-4, 4, SUMS), CHANCE * rng.gumbel(size=(SUMS, *gains.shape[1:]))
    chance[::4] = 0.0
    guesses, hopes = np.repeat(spots.at[:, None, :], SUMS, axis=1), np.empty((len(spots.at), SUMS))
    for part in np.array_split(np.arange(SUMS), 1 + SUMS * gains.size // MOST_WEIGHED):
        weighed = shares[:, None] - prices[part, None, None] * worth[:, None] - unit[:, None] * chance[part]
        best = weighed.argmin(axis=3)[:, :, :, None]
        chosen = np.take_along_axis(places[:, None], best, 3)[:, :, :, 0]
        guesses[np.arange(len(best))[:, None, None], part[:, None], profile.columns[:, None, :]] = chosen
        hopes[:, part] = np.take_along_axis(gains[:, None], best, 3).sum(axis=(2, 3))
    cost = room.cost(spots.person, guesses)
    lacks = np.maximum(aim - spots.value[:, None] - hopes, 0.0) + GUARD * cost
    order = np.argsort(np.where(cost < spots.ceiling[:, None], lacks, np.inf), axis=1, kind="stable")[:, :BEST_SUMS]
    return np.take_along_axis(guesses, order[:, :, None], 1)


def planes(room: Room, spots: Spots, profile: Profile, aim: float, slopes: Array) -> Array:
    """The cheapest places behind planes through the spots, and on the way there.

    ``slopes`` (2, Q, d) remembers each person's slopes at the distances ``NEAR``, for columns not scanned this time.
    """
    guesses = []
    for near, reach in enumerate(NEAR):
        up, down = near, len(NEAR) + near
        run = profile.places[:, :, up] - profile.places[:, :, down]
        with np.errstate(invalid="ignore", divide="ignore"):
            secant = (profile.values[:, :, up] - profile.values[:, :, down]) / run
        slope = slopes[near, spots.person]
        np.put_along_axis(slope, profile.columns, np.where(np.isfinite(secant), secant, 0.0), axis=1)
        slopes[near, spots.person] = slope
        rise = reach * np.sqrt(((spots.steps(room) * slope) ** 2).sum(axis=1))
        for margin in (0.0, 0.3):
            need = aim - spots.value + margin * rise + (slope * spots.at).sum(axis=1)
            goal = cheapest_behind(slope, need, spots, room)
            guesses += [spots.at + way * (goal - spots.at) for way in (1.0, 0.5, 0.2)]
    return np.stack(guesses, axis=1)


def pulled_together(room: Room, spots: Spots, profile: Profile, enough: float) -> Array:
    """The column that saves most as far back as it goes alone, then with the second, the third, ..."""
    here = np.take_along_axis(spots.at, profile.columns, 1)[:, :, None]
    shares = room.share(spots.person, profile.columns, np.concatenate([here, profile.places], axis=2))
    saved = shares[:, :, :1] - shares[:, :, 1:]
    saved = np.where(profile.values >= enough, np.maximum(saved, 0.0), 0.0)
    best = saved.argmax(axis=2)[:, :, None]
    most = np.take_along_axis(saved, best, 2)
    place = np.where(most > 0, np.take_along_axis(profile.places, best, 2), here)[:, :, 0]
    order = np.argsort(-most[:, :, 0], axis=1, kind="stable")[:, :TOGETHER]
    columns, place = np.take_along_axis(profile.columns, order, 1), np.take_along_axis(place, order, 1)
    guesses = np.repeat(spots.at[:, None, :], columns.shape[1], axis=1)
    for j in range(columns.shape[1]):
        guesses[np.arange(len(place)), j:, columns[:, j]] = place[:, j, None]
    return guesses


def jumps(room: Room, spots: Spots, rng: np.random.Generator) -> Array:
    """Random moves of a few columns or of many, short or long, drawn back under the ceiling."""
    d, reach, home = spots.at.shape[1], spots.reach(room)[:, None], spots.home[:, None, :]
    moved = rng.random((JUMPS, d)) < rng.random((JUMPS, 1))
    noise = np.where(moved, rng.normal(size=(JUMPS, d)), 0.0) * 10.0 ** -(3 * rng.random((JUMPS, 1)))
    steps = spots.at[:, None, :] + spots.steps(room)[:, None, :] * noise
    steps = np.clip(steps, spots.low[:, None, :], spots.high[:, None, :])
    under = reach * (1 - 0.2 * rng.random(JUMPS)) / np.maximum(room.cost(spots.person, steps), 1e-300)
    return np.asarray(home + np.minimum(under, 1.0)[:, :, None] * (steps - home))


def scattered(room: Room, spots: Spots, rng: np.random.Generator) -> Array:
    """Random places around home below the ceiling, mostly with few columns moved."""
    d, free = spots.at.shape[1], (spots.low < spots.high)[:, None, :]
    moved = np.minimum(1 + np.floor(2 * rng.exponential(size=SWEEP)), d)
    rank = np.argsort(np.argsort(np.where(free, rng.random((SWEEP, d)), 2.0), axis=2), axis=2)
    noise = np.where(free & (rank < moved[:, None]), rng.normal(size=(SWEEP, d)), 0.0) / room.rate[spots.person, None]
    radius = spots.reach(room)[:, None] * rng.random(SWEEP) ** (1 / moved)
    length = np.maximum(room.cost(spots.person, noise), 1e-300)
    return np.asarray(spots.home[:, None, :] + noise * (radius / length)[:, :, None])


def cheapest_behind(slope: Array, need: Array, spots: Spots, room: Room) -> Array:
    """The cheapest steps in the boxes with ``slope'u >= need``, (R, d); as far as the box goes where there is none.

    Exactly so for L2 and for prices that are the same everywhere.
    """
    size = np.abs(slope)
    slope = np.where(size > FLAT * size.max(axis=1, keepdims=True), slope, 0.0)
    far = np.where(slope > 0, spots.high, np.where(slope < 0, spots.low, spots.home))
    if room.price.norm is not Norm.L2:
        price = np.where(slope > 0, room.up[spots.person], room.down[spots.person])
        return _best_first(slope, need, spots.home, far, np.abs(slope) / np.maximum(price, FLAT))
    # L2: u = clip(t slope) for the smallest t that reaches; at the first `high` every column is at its end.
    ratio = np.divide(np.abs(far), np.abs(slope), out=np.zeros_like(far), where=slope != 0)
    low, high = np.zeros(len(slope)), ratio.max(axis=1)
    for _ in range(60):
        middle = (low + high) / 2
        reached = (slope * np.clip(middle[:, None] * slope, spots.low, spots.high)).sum(axis=1) >= need
        high, low = np.where(reached, middle, high), np.where(reached, low, middle)
    return np.asarray(np.clip(high[:, None] * slope, spots.low, spots.high))


def _best_first(slope: Array, need: Array, home: Array, far: Array, worth: Array) -> Array:
    """From home to far in the column most worth its price, then in the next, until ``slope'u`` is what is needed."""
    order = np.argsort(-worth, axis=1, kind="stable")
    gains = np.take_along_axis(slope * (far - home), order, 1)
    missing = (need - (slope * home).sum(axis=1))[:, None] - (np.cumsum(gains, axis=1) - gains)
    part = np.where(missing >= gains, 1.0, np.maximum(missing, 0.0) / np.where(gains > 0, gains, 1.0))
    parts = np.empty_like(part)
    np.put_along_axis(parts, order, part, axis=1)
    return np.asarray(home + parts * (far - home))
