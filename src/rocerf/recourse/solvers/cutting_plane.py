"""The cutting-plane solver: the global optimum under any concave promise, for all people at once.

keep a set of cuts for each person, beginning with what the promise knows beforehand
repeat  x = the cheapest allowed point behind all cuts
        read the promise at x; if it holds there, x is optimal (a relaxation's optimum that is feasible)
        otherwise add the cut found at x

Where people are many, a cut found for somebody else that cuts x off as well spares the reading. Where a reading is a
pass over rows on the disk, x is first held against a reading of the few rows that mattered so far, which is never below
the promise: whoever it has nothing against waits until it has nothing against anybody, and all of them share a pass.
"""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np

from rocerf.promises.promise import Learning, Promise, Reading, Relaxing, Rereading
from rocerf.recourse.master.master import Master
from rocerf.recourse.solvers.solution import GUARD, Outcome, Solution
from rocerf.types import Array, Mask, Places, Progress

#: Rounds in which cuts are shared: later ones are about what only a reading tells.
SHARED_ROUNDS = 2

#: By how much a point may fall short by few rows before the first passes that people share: they tell what matters.
SHORT = (3e-3, 3e-5)

#: Rounds in which few rows are asked, as a multiple of the rounds in which all are: they are as many times cheaper.
FEW_ROUNDS = 10

#: People from which cuts found for a few are held against all, how many are read first, and how many cuts are kept.
MANY_PEOPLE, FIRST_READ, MOST_SHARED = 1024, 256, 1024


def solve_by_cuts(
    promise: Promise, master: Master, delta: float, *, max_rounds: int = 200, progress: Progress | None = None
) -> Solution:
    """The cheapest point with ``promise >= delta`` for each person of the master problem.

    Cuts aim at ``delta + GUARD``; a point counts as found from ``delta + GUARD / 2`` on. A promise that learns
    sees people in growing waves, so that most of them profit from what was found for a few.
    """
    solution = Solution.blank(*master.X0.shape)
    done = 0
    for wave in _waves(len(master.X0), promise.first_wave if isinstance(promise, Learning) else len(master.X0)):
        _solve_wave(promise, master, delta, wave, solution, max_rounds, _shifted(progress, done, len(master.X0)))
        done += len(wave)
    # What was found for later people may refute a point given to an earlier one: such people come once more. A promise
    # that wants to be searched further is, at every point that was found, until nothing more is.
    withstood = np.zeros(len(master.X0), np.intp)
    for number in range(max_rounds):
        refuted = _hold_against_memory(promise, solution, delta)
        if len(refuted):
            withstood[refuted] = 0
            _solve_wave(promise, master, delta, refuted, solution, max_rounds, None)
        elif not _search_on(promise, solution, delta, withstood, number):
            break
    else:
        refuted = _hold_against_memory(promise, solution, delta)
        solution.forget(refuted)
        solution.outcomes[refuted] = Outcome.GAVE_UP
    return solution


def _hold_against_memory(promise: Promise, solution: Solution, delta: float) -> Places:
    """Lower the values of found points to what the promise has learned since; the people whose point fell."""
    if not isinstance(promise, Learning):
        return np.empty(0, np.intp)
    found = np.flatnonzero(solution.outcomes == Outcome.FOUND)
    _lower(solution, found, promise.remembered(solution.points[found]))
    return found[solution.values[found] < delta + GUARD / 2]


def _search_on(promise: Promise, solution: Solution, delta: float, withstood: Places, number: int) -> bool:
    """One further search at the found points that have not ``withstood`` enough of them; False if there are none."""
    if not isinstance(promise, Learning):
        return False
    asking = np.flatnonzero((solution.outcomes == Outcome.FOUND) & (withstood < promise.again))
    if not len(asking):
        return False
    reading = promise.search_on(solution.points[asking], delta + GUARD / 2, number)
    solution.count(asking, reading)
    _lower(solution, asking, reading)
    withstood[asking] += 1
    hopeless = asking[np.isneginf(solution.values[asking])]  # no cut says so: no point survives having no model
    solution.forget(hopeless)
    solution.outcomes[hopeless] = Outcome.NOT_ROBUST
    return True


def _lower(solution: Solution, people: Places, reading: Reading) -> None:
    """Values and worst rows of these people's points, where the reading knows of worse."""
    for place in np.flatnonzero(reading.values < solution.values[people] - 1e-12):
        solution.values[people[place]] = reading.values[place]
        solution.worst_ids[people[place]] = reading.worst_ids(int(place))


def _waves(people: int, first: int) -> Iterator[Places]:
    start, size = 0, max(first, 1)
    while start < people:
        yield np.arange(start, min(start + size, people))
        start, size = start + size, 2 * size


def _shifted(progress: Progress | None, done: int, total: int) -> Progress | None:
    return None if progress is None else lambda wave_done, _: progress(done + wave_done, total)


def _solve_wave(
    promise: Promise,
    master: Master,
    delta: float,
    wave: Places,
    solution: Solution,
    max_rounds: int,
    progress: Progress | None,
) -> None:
    pool = _Cuts.shared(len(master.X0), wave, *promise.known_cuts())
    solution.outcomes[wave] = Outcome.GAVE_UP
    open_, reader, waiting = wave, _Reader(promise, master.X0), _Waiting(master.X0)
    alone = isinstance(promise, Learning) or len(wave) < MANY_PEOPLE
    shared = None if alone else _Shared.none(promise.lifted(master.X0[:1]).shape[1])
    for round_ in range(max_rounds * (FEW_ROUNDS if reader.relaxes else 1)):
        cheapest = master.cheapest(open_, *pool.of(open_), delta + GUARD)
        points, reachable, failed = cheapest.points, cheapest.found, cheapest.failed
        solution.gaps[open_] = cheapest.gaps
        solution.forget(open_[~reachable])
        solution.outcomes[open_[~reachable]] = Outcome.UNREACHABLE if round_ == 0 else Outcome.NOT_ROBUST
        solution.outcomes[open_[failed]] = Outcome.GAVE_UP
        open_, points = waiting.after(reader, open_[reachable], points[reachable], delta, pool)
        if not len(points) and len(open_):
            continue
        if not len(open_):
            break
        shared = None if round_ == SHARED_ROUNDS else shared
        parts = _parts(len(open_), shared is not None)
        left = [_cut_off(reader, open_[part], points[part], delta, solution, pool, shared) for part in parts]
        open_ = np.concatenate(left)
        if progress is not None:
            progress(len(wave) - len(open_), len(wave))
        if not len(open_):
            break
    solution.forget(np.concatenate([open_, waiting.people]))
    _tell_margin_from_reach(promise, master, delta, wave, solution)


def _parts(people: int, share: bool) -> list[slice]:
    """Who is read together: a few first, whose cuts may spare the others a reading."""
    ends = [end for end in (FIRST_READ, 4 * FIRST_READ) if share and end < people] + [people]
    return [slice(start, end) for start, end in zip([0, *ends], ends, strict=False)]


def _cut_off(
    reader: _Reader,
    people: Places,
    points: Array,
    delta: float,
    solution: Solution,
    pool: _Cuts,
    shared: _Shared | None,
) -> Places:
    """Keep the points at which the promise holds, and cut off the others; whose they are."""
    refuted = np.zeros(len(people), dtype=bool)
    if shared is not None:
        slopes, constants, refuted = shared.against(reader.lifted(points), delta + GUARD / 2)
        pool.add(people[refuted], slopes[refuted], constants[refuted])
    read, points = people[~refuted], points[~refuted]
    reading = reader.read(read, points, delta + GUARD / 2)
    solution.rounds[read] += 1
    solution.count(read, reading)
    holds = reading.values >= delta + GUARD / 2
    solution.keep(read, points, reading, holds)
    slopes, constants = reading.cuts(reader.lifted(points))
    pool.add(read[~holds], slopes[~holds], constants[~holds])
    if shared is not None:
        shared.add(slopes[~holds], constants[~holds])
    refuted[~refuted] = ~holds
    return people[refuted]


def _belongs(promise: Promise, cheaper: str) -> bool:
    """Whether a cheaper reading belongs to the reading: a class that reads otherwise than its parent has none."""
    kinds = type(promise).__mro__
    read, near = (next(kind for kind in kinds if name in vars(kind)) for name in ("read", cheaper))
    return issubclass(near, read)


class _Reader:
    """Reads a promise, telling it where it was last read for the same people if that helps it."""

    def __init__(self, promise: Promise, X0: Array) -> None:
        self._promise = promise
        again = isinstance(promise, Rereading) and _belongs(promise, "read_near")
        self._before = np.full(X0.shape, np.nan) if again else None
        self._above = np.full(X0.shape, np.nan) if _relaxes(promise) else None

    @property
    def relaxes(self) -> bool:
        """Whether few rows are asked first."""
        return self._above is not None

    def read_above(self, people: Places, points: Array) -> Reading | None:
        """What few rows tell, where the promise has that."""
        if self._above is None or not isinstance(self._promise, Relaxing):
            return None
        reading = self._promise.read_above(points, self._above[people])
        self._above[people] = points
        return reading

    def lifted(self, points: Array) -> Array:
        """Points (P, d) in the space of cuts."""
        return self._promise.lifted(points)

    def read(self, people: Places, points: Array, target: float) -> Reading:
        if self._before is None or not isinstance(self._promise, Rereading):
            return self._promise.read(points, target)
        reading = self._promise.read_near(points, self._before[people], target)
        self._before[people] = points
        return reading


def _relaxes(promise: Promise) -> bool:
    return isinstance(promise, Relaxing) and _belongs(promise, "read_above") and promise.relaxes


class _Waiting:
    """People against whose points few rows tell nothing, until that is so for everybody."""

    def __init__(self, X0: Array) -> None:
        self.people: Places = np.empty(0, np.intp)
        self._points: Array = X0[:0]
        self._shared = 0

    def after(self, reader: _Reader, people: Places, points: Array, delta: float, pool: _Cuts) -> tuple[Places, Array]:
        """Who is to be read, and where; or who has been cut off, and nobody is to be read yet."""
        reading = reader.read_above(people, points) if len(people) else None
        if reading is not None:
            short = SHORT[self._shared] if self._shared < len(SHORT) else 0.0
            low = reading.values < delta + GUARD / 2 - short
            slopes, constants = reading.cuts(reader.lifted(points))
            pool.add(people[low], slopes[low], constants[low])
            self.people = np.concatenate([self.people, people[~low]])
            self._points = np.concatenate([self._points, points[~low]])
            if low.any():
                return people[low], points[:0]
            people, points = people[:0], points[:0]
        people, points = np.concatenate([self.people, people]), np.concatenate([self._points, points])
        self.people, self._points, self._shared = self.people[:0], self._points[:0], self._shared + 1
        return people, points


class _Shared:
    """Cuts found for anybody: which points survive does not depend on who asks, so that they hold for everybody.

    A point that one of them cuts off need not be read, which takes a pass over the training rows.
    """

    def __init__(self, slopes: Array, constants: Array) -> None:
        self._slopes, self._constants = slopes, constants

    @classmethod
    def none(cls, d: int) -> _Shared:
        return cls(np.empty((0, d)), np.empty(0))

    def add(self, slopes: Array, constants: Array) -> None:
        """Take over some of these cuts, evenly, in place of the oldest."""
        some = slice(None, None, max(1, -(-len(slopes) // (MOST_SHARED // 2))))
        usable = np.isfinite(constants[some])
        self._slopes = np.concatenate([self._slopes, slopes[some][usable]])[-MOST_SHARED:]
        self._constants = np.concatenate([self._constants, constants[some][usable]])[-MOST_SHARED:]

    def against(self, points: Array, least: float) -> tuple[Array, Array, Mask]:
        """For points (P, d) the deepest cut each, slopes (P, d) and constants (P,), and who falls below ``least``."""
        if not len(self._slopes):
            return np.zeros_like(points), np.zeros(len(points)), np.zeros(len(points), dtype=bool)
        values = points @ self._slopes.T + self._constants
        deepest = values.argmin(axis=1)
        return self._slopes[deepest], self._constants[deepest], values.min(axis=1) < least


def _tell_margin_from_reach(promise: Promise, master: Master, delta: float, wave: Places, solution: Solution) -> None:
    """Where only the margin (or the guard, for scores next to 0) was out of reach, the model itself is not: say so."""
    stuck = wave[solution.outcomes[wave] == Outcome.UNREACHABLE]
    if len(stuck):
        cuts = _Cuts.shared(len(master.X0), wave, *promise.known_cuts())
        reachable = master.cheapest(stuck, *cuts.of(stuck), 0.0).found
        solution.outcomes[stuck[reachable]] = Outcome.NOT_ROBUST


class _Cuts:
    """Up to m cuts for each person of a wave; unused places are "no cut" (constant = infinity)."""

    def __init__(self, place: Places, slopes: Array, constants: Array) -> None:
        self._place, self._slopes, self._constants = place, slopes, constants
        self._used = np.full(len(slopes), slopes.shape[1])

    @classmethod
    def shared(cls, people: int, wave: Places, slopes: Array, constants: Array) -> _Cuts:
        place = np.full(people, -1)
        place[wave] = np.arange(len(wave))
        return cls(place, np.tile(slopes, (len(wave), 1, 1)), np.tile(constants, (len(wave), 1)))

    def of(self, people: Places) -> tuple[Array, Array]:
        places = self._place[people]
        width = int(self._used[places].max(initial=0))
        return self._slopes[places, :width], self._constants[places, :width]

    def add(self, people: Places, slopes: Array, constants: Array) -> None:
        if not len(people):
            return
        places = self._place[people]
        total, room, d = self._slopes.shape
        if int(self._used[places].max()) == room:
            self._slopes = np.concatenate([self._slopes, np.zeros((total, room, d))], axis=1)
            self._constants = np.concatenate([self._constants, np.full((total, room), np.inf)], axis=1)
        self._slopes[places, self._used[places]] = slopes
        self._constants[places, self._used[places]] = constants
        self._used[places] += 1
