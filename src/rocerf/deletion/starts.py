"""Where the walks of :mod:`rocerf.deletion.searches` start, for a block of points at once."""

from __future__ import annotations

from collections.abc import Callable, Iterator

import numpy as np

from rocerf.deletion.batched_newton import BatchedNewton
from rocerf.deletion.deletions import Deletions
from rocerf.deletion.efforts import Effort
from rocerf.deletion.harms import Harms
from rocerf.deletion.rare_groups import RareGroups
from rocerf.types import Array, Places

#: Adaptive greedy chooses row by row, among rows that differ little: its models are retrained up to this decrement.
CLOSE = 1e-3


class FullModelHarms:
    """Harms at the model as it is, for a block of points with these score gradients (M, p).

    They are made when they are first asked for: most points are refuted by what is known before.
    """

    def __init__(self, models: BatchedNewton, directions: Array) -> None:
        self._models, self._directions = models, directions
        self._points: Places = np.empty(0, np.intp)
        self._made: Harms | None = None

    def of(self, points: Places) -> Harms:
        """The harms for some points, ascending; later ones are mostly among the first."""
        if self._made is None or not np.isin(points, self._points).all():
            self._points, self._made = points, self._models.harms_of_full_model(self._directions[points])
        return self._made.of(np.searchsorted(self._points, points))


def starts_of(
    models: BatchedNewton,
    directions: Array,
    base: FullModelHarms,
    k: int,
    effort: Effort,
    groups: RareGroups | None,
    seed: int,
    first: int,
) -> Iterator[tuple[str, Callable[[Places], Deletions], list[int]]]:
    """Name, a function that gives the first sets of some points, and the sizes of the sets to come."""
    steady = [k] * effort.rounds
    if "relinearise" in effort.searches:
        yield "relinearise", lambda points: base.of(points).worst(k, k), steady
    if "greedy" in effort.searches and k > 1:
        blocks = sorted({max(1, k * part // 4) for part in (1, 2, 3)})
        yield "greedy", lambda points: base.of(points).worst(blocks[0], k), [*blocks[1:], *steady]
    for leverage in (False, True) if "adaptive" in effort.searches and k > 1 else ():

        def grown(points: Places, leverage: bool = leverage) -> Deletions:
            return _adaptive(models, directions[points], k, effort.growth, leverage=leverage)

        yield "adaptive", grown, steady
    if "groups" in effort.searches and groups is not None:
        for which in range(min(effort.group_starts, len(groups.sets))):

            def from_group(points: Places, which: int = which) -> Deletions:
                return groups.starts(directions[points], base.of(points), k, which)

            yield "groups", from_group, steady
    if "relaxation" in effort.searches:
        steps = effort.relaxation_steps
        yield "relaxation", lambda points: _relaxation(models, directions[points], base.of(points), k, steps), steady
    for number in range(effort.random_starts if "random" in effort.searches else 0):

        def noisy(points: Places, number: int = number) -> Deletions:
            drawn = [np.random.default_rng([seed, number, first + point]) for point in points]
            return base.of(points).worst_shaken(drawn.__getitem__, k)

        yield "random", noisy, steady


def _adaptive(models: BatchedNewton, directions: Array, k: int, steps: int, *, leverage: bool) -> Deletions:
    """Adaptive greedy: the most harmful rows join the set, one by one or in ``steps`` blocks, and none leaves it.

    The model is retrained after each step. With one row at a time this is the yardstick of Hu and others (2024).
    """
    count = len(directions)
    sets, present = [np.empty(0, np.intp)] * count, Deletions.of([np.empty(0, np.intp)] * count, k)
    guesses = np.tile(models.theta, (count, 1))
    for size in sorted({max(1, k * part // steps) for part in range(1, steps + 1)}):
        looked, thetas, look, _ = models.nearly(guesses, present, CLOSE)
        harms = models.harms(look, looked, present, directions, leverage=leverage)
        coming = harms.worst_outside(sets, size - int(present.amounts.sum(axis=1).max(initial=0)), k)
        sets = [np.union1d(chosen, coming.set_of(place)) for place, chosen in enumerate(sets)]
        grown = Deletions.of(sets, k)
        guesses, present = models.carried(thetas, look.hessians, present, grown), grown
    return present


def _relaxation(models: BatchedNewton, directions: Array, base: Harms, k: int, steps: int) -> Deletions:
    """Frank and Wolfe on the score of the model with row weights ``1 - amount``, rounded to k whole rows."""
    count = len(directions)
    rows, amounts = np.zeros((count, k * steps), np.intp), np.zeros((count, k * steps))
    vertex = base.worst(k, k)
    thetas = np.tile(models.theta, (count, 1))
    for step in range(steps):
        rate = 2.0 / (step + 2.0)
        amounts *= 1.0 - rate
        own = slice(step * k, (step + 1) * k)
        rows[:, own], amounts[:, own] = vertex.rows, rate * vertex.amounts
        present = Deletions(rows[:, : (step + 1) * k], amounts[:, : (step + 1) * k])
        if step == steps - 1:
            break
        look = models.look(thetas, present)
        thetas = models.moved(thetas, -models.solve(look.hessians, look.gradients))
        look = models.look(thetas, present, look.hessians)
        vertex = models.harms(look, thetas, present, directions, leverage=False).worst(k, k)
    sets = []
    for point in range(count):
        named, places = np.unique(rows[point], return_inverse=True)
        total = np.bincount(places, amounts[point])
        heaviest = np.argsort(-total, kind="stable")[:k]
        sets.append(named[heaviest[total[heaviest] > 0]])
    return Deletions.of(sets, k)
