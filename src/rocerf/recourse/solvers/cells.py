"""The solver for tree ensembles: the cheapest cell by branch and bound, with a proof.

A person chooses one level for each attribute (:mod:`rocerf.recourse.master.levels`); a node is a set of levels for
each. What a node can cost at least is the sum of its cheapest levels. How high an ensemble can get in it is at most the
sum of the highest leaves of each tree that it can still reach; the same is known for each of its levels alone, so
levels at which some ensemble must refuse are taken out before a node is split. Nodes are taken cheapest first, so the
first choice that every ensemble accepts is optimal.

A promise may rest on hundreds of ensembles. Only those that refused a choice so far are asked for bounds; the promise
itself is read at every choice that these accept, and whoever refuses joins them. Where the work allowed is used up, the
best point found is given with the gap to what is not excluded; where there is none, the search is asked.
"""

from __future__ import annotations

import heapq
import itertools
from dataclasses import dataclass, field
from typing import Any

import numpy as np

from rocerf.models.trees.scored import ScoredTrees
from rocerf.promises.promise import OverTrees, Promise
from rocerf.recourse.master.level_rules import affordable
from rocerf.recourse.master.levels import Levels
from rocerf.recourse.master.master import Master
from rocerf.recourse.solvers.cell_choices import climbed, pulled
from rocerf.recourse.solvers.cell_ensembles import Ensembles
from rocerf.recourse.solvers.search import solve_by_search
from rocerf.recourse.solvers.solution import GUARD, Outcome, Solution
from rocerf.types import Array, Mask, Places, Progress

#: Leaves looked at for one person at most, one for each level and tree: what bounds the time (about 1e8 a second).
WORK = 800_000_000

#: Training rows tried as first answers, and how many of them are then improved.
FIRST, IMPROVED = 512, 3

#: What a look at the levels of a node costs besides, in such leaves.
OVERHEAD = 4_000

#: A cost must be lower by this share to count as lower.
LOWER = 1e-9


def solve_by_cells(
    promise: Promise,
    master: Master,
    delta: float,
    *,
    anchors: Array,
    seed: int = 0,
    work: int = WORK,
    progress: Progress | None = None,
) -> Solution:
    """The cheapest point with ``promise >= delta`` for each person, where the promise rests on trees that can be read.

    ``gaps`` is 0 where the point is proven to be the cheapest. Who has no such point, by proof, is ``NOT_ROBUST`` or
    ``UNREACHABLE``. The search is asked, near ``anchors`` (m, d), for people whose ``work`` is used up without a point.
    """
    assert isinstance(promise, OverTrees)
    solution = Solution.blank(*master.X0.shape)
    models = promise.tree_models()
    refusing = np.zeros(len(models))
    left = []
    for person in range(len(master.X0)):
        alone = master.of(np.array([person]))
        if not alone.allowed.empty[0]:
            search = _Cells(promise, models, alone, delta, anchors, refusing, work)
            search.run()
            _take(solution, person, search)
            if solution.outcomes[person] is Outcome.GAVE_UP:
                left.append(person)
        else:
            solution.outcomes[person] = Outcome.UNREACHABLE
        if progress is not None:
            progress(person + 1, len(master.X0))
    if left:
        again = solve_by_search(promise, master.of(np.array(left)), delta, anchors=anchors, seed=seed)
        for place, person in enumerate(left):
            solution.take(person, again.only(place))
    return solution


def _take(solution: Solution, person: int, search: _Cells) -> None:
    solution.rounds[person] = search.reads
    solution.outcomes[person] = search.outcome
    if search.outcome is Outcome.FOUND:
        reading = search.promise.read(search.best[None])
        one = np.array([person])
        solution.count(one, reading)
        solution.keep(one, search.best[None], reading, np.ones(1, bool))
        solution.gaps[person] = search.gap


@dataclass(order=True)
class _Node:
    """Levels that are left (S,) and what the cheapest of them cost; ``point`` (d,) is the cheapest of a single cell."""

    cost: float
    number: int
    chosen: Mask = field(compare=False)
    point: Array | None = field(compare=False, default=None)


class _Cells:
    """Branch and bound for one person."""

    def __init__(
        self,
        promise: Any,
        models: list[ScoredTrees | None],
        alone: Master,
        delta: float,
        anchors: Array,
        refusing: Array,
        work: int,
    ) -> None:
        self.promise, self.master, self.anchors = promise, alone, anchors
        self.enough, self.work, self.reads = delta + GUARD / 2, work, 0
        self.ensembles = Ensembles(promise, models, refusing, delta + GUARD, self.enough)
        self.best, self.best_cost, self.gap = np.full(alone.X0.shape[1], np.nan), np.inf, np.nan
        self.outcome, self.bound = Outcome.GAVE_UP, 0.0
        self._numbers = itertools.count()
        self.heap: list[_Node] = []

    def run(self) -> None:
        """Find the cheapest point, or show that there is none."""
        levels = self._cut()
        if levels is None:
            self.outcome = Outcome.UNREACHABLE
            return
        self.levels = levels
        self.work -= self.ensembles.cut_to(levels)
        self._first_answer()
        self._narrow()
        everything = np.ones(len(self.levels), bool)
        self.heap = [_Node(self._least(everything), next(self._numbers), everything)]
        self._branch()

    # --- levels -----------------------------------------------------------------------------------------

    def _cut(self) -> Levels | None:
        """The columns cut where the ensembles asked do; None where an attribute has no allowed value."""
        asked = self.ensembles
        thresholds = asked.thresholds(self.master.X0.shape[1])
        return Levels.of(self.master.allowed, self.master.cost, thresholds, asked.gaps())

    def _recut(self) -> None:
        """Cut further, as ensembles have joined: what was shown of nodes holds for the levels inside theirs."""
        finer = self._cut()
        assert finer is not None  # a level is cut into levels
        inside = self.levels.around(finer)
        kept = inside >= 0
        self.levels, parents = finer.only(kept), inside[kept]
        self.work -= self.ensembles.cut_to(self.levels, parents)
        self.heap = [_Node(node.cost, node.number, node.chosen[parents]) for node in self.heap]
        heapq.heapify(self.heap)

    def _narrow(self) -> None:
        """Leave out the levels that alone cost more than the first answer."""
        least = np.minimum.reduceat(self.levels.parts, self.levels.starts)[self.levels.axis]
        alone = self.levels.parts + float(least[self.levels.starts].sum()) - least
        kept = np.asarray((alone <= self.best_cost) | (self.levels.parts == least))
        if not kept.all():
            self.levels = self.levels.only(kept)
            self.ensembles.narrow(self.levels, kept)

    # --- a first answer, to have a cost to beat ----------------------------------------------------------

    def _first_answer(self) -> None:
        """Try training rows, made cheaper; where none is accepted, those nearest to it, changed until they are."""
        step = max(1, -(-len(self.anchors) // FIRST))
        for _ in range(IMPROVED):
            choices = np.unique(self.levels.nearest(self.anchors[::step]), axis=0)
            accepted = choices[self._accepted(choices)]
            if not len(accepted):
                nearest = choices[np.argsort(-self._slack(choices), kind="stable")[:IMPROVED]]
                nearer = np.array([climbed(self.levels, choice, self._slack) for choice in nearest])
                accepted = nearer[self._accepted(nearer)]
            if not len(accepted):
                return
            cost = self.levels.parts[accepted].sum(axis=1)
            cheapest = accepted[np.argsort(cost, kind="stable")[:IMPROVED]]
            improved = [pulled(self.levels, choice, self._accepted) for choice in cheapest]
            improved.sort(key=lambda choice: float(self.levels.parts[choice].sum()))
            if sum(self._try(choice) for choice in improved):  # all of them
                return
            if not self.ensembles.join(self.levels.points(improved[0][None])[0]):
                return
            self._recut()

    def _accepted(self, choices: Places) -> Mask:
        self.work -= len(choices) * self.ensembles.size
        return self.ensembles.accepted(choices)

    def _slack(self, choices: Places) -> Array:
        self.work -= len(choices) * self.ensembles.size
        return self.ensembles.slack(choices)

    def _try(self, choice: Places) -> bool:
        """Read the promise at a choice, if it obeys the rules and would be cheaper; whether it holds."""
        point = self.levels.points(choice[None])
        return bool(self.master.allowed.holds(point)[0]) and self._read(point[0])

    def _read(self, point: Array) -> bool:
        if not self.ensembles.foreseen(point):
            return False
        self.reads += 1
        reading = self.promise.read(point[None], self.enough)
        if reading.values[0] < self.enough:
            return False
        cost = self._cost(point)
        if cost < self.best_cost:
            self.best, self.best_cost = point, cost
        return True

    def _cost(self, point: Array) -> float:
        """The sum of the parts."""
        cost, x0 = self.master.cost, self.master.X0
        return float(cost.parts((point[None] - x0) / cost.scale, x0).sum())

    # --- branch and bound ---------------------------------------------------------------------------------

    def _branch(self) -> None:
        """Take nodes cheapest first until the end is known."""
        while self.heap:
            node = heapq.heappop(self.heap)
            self.bound = max(self.bound, node.cost)
            if not self._beats(node.cost):
                break
            if self.work < 0:
                self._end(proven=False)
                return
            children, joined = self._processed(node)
            for child in children:
                if self._beats(child.cost):
                    heapq.heappush(self.heap, child)
            if joined:
                self._recut()
                if not np.isfinite(self.best_cost):
                    self._first_answer()
        self._end(proven=True)

    def _end(self, *, proven: bool) -> None:
        if np.isfinite(self.best_cost):
            self.outcome = Outcome.FOUND
            norm = self.master.cost.norm
            below = float(norm.total(np.array([[self.bound]]))[0] / norm.total(np.array([[self.best_cost]]))[0])
            self.gap = 0.0 if proven else max(0.0, 1.0 - below)
        elif proven:
            self.outcome = Outcome.NOT_ROBUST

    def _beats(self, cost: float) -> bool:
        return cost < self.best_cost * (1.0 - LOWER) or not np.isfinite(self.best_cost)

    def _least(self, chosen: Mask) -> float:
        parts = np.where(chosen, self.levels.parts, np.inf)
        return float(np.minimum.reduceat(parts, self.levels.starts).sum())

    def _processed(self, node: _Node) -> tuple[list[_Node], bool]:
        """What is left to look at of a node: nothing, or the parts that it was split into; whether ensembles joined."""
        if node.point is not None:  # the cheapest point of one cell, whose turn has come
            joined = not self._read(node.point) and self.ensembles.join(node.point)
            return [node] if joined else [], joined
        chosen, tops = self._propagated(node)
        if chosen is None or not self._beats(self._least(chosen)):
            return [], False
        choice = self.levels.cheapest(chosen)
        single = int(chosen.sum()) == len(self.levels.starts)
        if not self._accepted(choice[None])[0]:
            return ([] if single else self._split(node, chosen, tops, choice)), False
        point = self.levels.points(choice[None])[0]
        if not self.master.allowed.holds(point[None])[0]:
            return (self._in_cell(choice) if single else self._split(node, chosen, tops, choice)), False
        if self._read(point):
            return [], False
        joined = self.ensembles.join(point)
        again = [_Node(node.cost, node.number, chosen)] if joined else []
        return again if joined or single else self._split(node, chosen, tops, choice), joined

    def _in_cell(self, choice: Places) -> list[_Node]:
        """Where relations keep a cell's cheapest values from going together: its cheapest point that keeps them."""
        low, high = self.levels.box(choice)
        alone = Master(self.master.X0, self.master.cost, self.master.allowed.within(low[None], high[None]))
        d = len(low)
        found = alone.cheapest(np.array([0]), np.zeros((1, 0, d)), np.zeros((1, 0)), 0.0)
        if not found.found[0] or not self.master.allowed.holds(found.points)[0]:
            return []
        single = np.zeros(len(self.levels), bool)
        single[choice] = True
        return [_Node(self._cost(found.points[0]), next(self._numbers), single, found.points[0])]

    def _propagated(self, node: _Node) -> tuple[Mask | None, Array]:
        """Levels of a node at which no ensemble must refuse and that may be cheaper; what it adds up to there at most.

        The second is (asked, S), -inf elsewhere.
        """
        chosen = node.chosen.copy()
        starts, nothing = self.levels.starts, np.empty(0)
        tops = np.full((len(self.ensembles.asked), len(chosen)), -np.inf)
        while True:
            before = int(chosen.sum())
            chosen &= affordable(self.levels, self.master.allowed, chosen, self.best_cost * (1.0 - LOWER))
            for place, (model, reachable) in enumerate(self.ensembles.active()):
                if not np.logical_or.reduceat(chosen, starts).all():
                    return None, nothing
                kept = np.flatnonzero(chosen)
                leaves = reachable.tops(kept, np.searchsorted(self.levels.axis[kept], np.arange(len(starts))))
                self.work -= leaves.size + OVERHEAD
                tops[place] = -np.inf
                tops[place, kept] = reachable.base + leaves.sum(axis=1)
                chosen[kept] &= tops[place, kept] >= self.ensembles.need[model]
            kept = np.flatnonzero(chosen)
            chosen[kept] &= self.ensembles.bearable(tops[:, kept])
            if not np.logical_or.reduceat(chosen, starts).all():
                return None, nothing
            if int(chosen.sum()) > before - max(1, before // 8):
                return chosen, np.where(chosen, tops, -np.inf)

    def _split(self, node: _Node, chosen: Mask, tops: Array, choice: Places) -> list[_Node]:
        """Two nodes: the cheap levels of the axis whose cheapest one holds an ensemble down most, and the others."""
        levels = self.levels
        with np.errstate(invalid="ignore"):
            rise = np.where(chosen, tops - tops[:, choice[levels.axis]], 0.0).max(axis=0)
        counts = np.add.reduceat(chosen.astype(np.intp), levels.starts)
        need = np.where(counts > 1, np.maximum.reduceat(rise, levels.starts), -1.0)
        axis = int(need.argmax())
        own = np.flatnonzero(chosen & (levels.axis == axis))
        own = own[np.argsort(levels.parts[own], kind="stable")]
        higher = np.flatnonzero(rise[own] >= 0.5 * need[axis]) if need[axis] > 0 else np.array([len(own) // 2])
        first = max(1, int(higher[0])) if len(higher) else len(own) // 2
        children = []
        for part in (own[:first], own[first:]):
            mine = chosen & (levels.axis != axis)
            mine[part] = True
            children.append(_Node(max(node.cost, self._least(mine)), next(self._numbers), mine))
        return children
