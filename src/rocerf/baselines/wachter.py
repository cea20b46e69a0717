"""Wachter's search as the authors run it, for all people at once.

For a person z0 (standardised columns) and a weight ``lam`` it descends by Adam on

    J(z) = relu(-f(z))^2 + lam ||z - z0||,

from where the last ``lam`` ended, until z changes by less than a share of 1e-5 of its length. A ``lam`` counts as valid
if *any* iterate on the way was accepted. It begins at 2.5, is doubled while valid, halved while not (for networks the
factor is 4), and bisected once a valid one was followed by an invalid one. The nearest accepted iterate of all is the
counterfactual, with a slip of the original kept: what the bisection found is thrown away if the last ``lam`` that it
tried was invalid.

The exact minimiser of J is refused for every ``lam`` > 0 (squared hinge, unsquared norm), so accepted iterates exist
only because steps of 0.5 overshoot: Adam's first step is 0.5 in *every* column, whatever its slope. Hence points some
way beyond the nearest accepted one, more so the more columns there are.

The paper's method is the same search on another model for each person (:mod:`rocerf.baselines.shifted`): what is
descended on is a :class:`Target`.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Protocol

import numpy as np

from rocerf.baselines.answers import valid
from rocerf.baselines.standard import BoxedAdam, Standard, StandardProblem, points_of, scores_in
from rocerf.models.model import LinearModel, Refittable, ValueAndSlope
from rocerf.recourse.master.master import Master
from rocerf.types import Array, Mask, Progress

#: By what the authors change the weight for networks.
NETWORK_FACTOR = 4.0


@dataclass(frozen=True)
class WachterOptions:
    """Numbers of the search, the authors'.

    ``steps`` is how many a person may have taken before another weight is begun; one weight gets a tenth of them.

    >>> WachterOptions.about(None).factor  # whatever is not linear
    4.0
    """

    first_lambda: float = 2.5
    factor: float = 2.0
    step_size: float = 0.5
    tolerance: float = 1e-5
    steps: int = 100_000

    @classmethod
    def about(cls, model: object, steps: int | None = None) -> WachterOptions:
        """The authors' numbers for this model: for networks they change the weight by a larger factor."""
        factor = cls.factor if isinstance(model, LinearModel) else NETWORK_FACTOR
        return cls(steps=cls.steps if steps is None else steps, factor=factor)

    @property
    def steps_per_lambda(self) -> int:
        """Most steps with one weight."""
        return -(-self.steps // 10)


class Target(Protocol):
    """What is descended on, for people who are closed one after the other."""

    def read(self, z: Array) -> tuple[Array, Array, Mask]:
        """Scores (Q,) and slopes (Q, d) of the open people's points (Q, d), and which of these are accepted."""
        ...

    def keep(self, open_: Mask) -> None:
        """Go on with these people only, a mask (Q,)."""
        ...


class _One:
    """The same model for everybody."""

    def __init__(self, scores: ValueAndSlope) -> None:
        self._scores = scores

    def read(self, z: Array) -> tuple[Array, Array, Mask]:
        scores, slopes = self._scores(z)
        return scores, slopes, valid(scores)

    def keep(self, open_: Mask) -> None:
        """Nothing here is one person's."""


def search(
    model: Refittable, master: Master, options: WachterOptions | None = None, progress: Progress | None = None
) -> Array:
    """Accepted points near the people of the problem (P, d), missing where no iterate was accepted.

    >>> import rocerf
    >>> from rocerf.recourse.costs.registry import cost_named
    >>> from rocerf.recourse.master.feasible_set import FeasibleSet
    >>> model = rocerf.LogisticModel.fit(rocerf.TrainingSet([[1.0], [2.0], [3.0], [4.0]], [0, 1, 0, 1]))
    >>> X0 = np.array([[0.0]])
    >>> master = Master(X0, cost_named("l2", model.train, None), FeasibleSet.around(X0, None))
    >>> bool(model.score(search(model, master))[0] >= 0)
    True
    """
    space = Standard.of(model.train)
    options = options or WachterOptions.about(model)
    return search_on(_One(scores_in(space, model)), master, space, options, progress)


def search_on(
    target: Target, master: Master, space: Standard, options: WachterOptions, progress: Progress | None = None
) -> Array:
    """The same for whatever is descended on in the standardised columns of ``space``."""
    run = _Run(target, StandardProblem.of(master, space), options)
    while len(run.people):
        run.advance()
        if progress is not None and run.closed:
            progress(len(master.X0) - len(run.people), len(master.X0))
    found = np.isfinite(run.best_cost)
    return np.where(found[:, None], points_of(master, space, run.best), np.nan)


class _Run(BoxedAdam):
    """Where the open people stand: one row each, but everybody's in what was found (``best``, ``bisected``)."""

    def __init__(self, target: Target, problem: StandardProblem, options: WachterOptions) -> None:
        super().__init__(problem, options.step_size)
        self.target, self.options = target, options
        people = len(problem.z0)
        self.best, self.best_cost = problem.z0.copy(), np.full(people, np.inf)
        self.bisected, self.bisected_cost = problem.z0.copy(), np.full(people, np.inf)
        self.scores, self.slopes, self.good = self.target.read(self.z)
        self.lam, self.low, self.high = np.full((3, people), options.first_lambda)
        self.steps, self.steps_here = np.zeros((2, people), np.intp)
        self.accepted, self.last_valid, self.bisecting = np.zeros((3, people), bool)
        self.closed = False

    def advance(self) -> None:
        """One step of Adam for everybody, then new weights for those who have settled."""
        before = self.z
        self.step(-2.0 * np.maximum(-self.scores, 0.0)[:, None] * self.slopes, self.lam[:, None])
        self.scores, self.slopes, self.good = self.target.read(self.z)
        self._remember()
        change = np.sqrt(((self.z - before) ** 2).sum(axis=1))
        size = np.sqrt((self.z * self.z).sum(axis=1))
        self.steps_here += 1
        settled = (change < self.options.tolerance * size) | (self.steps_here >= self.options.steps_per_lambda)
        self.closed = False
        if settled.any():
            self._turn(settled)

    def _remember(self) -> None:
        good = self.good
        if not good.any():
            return
        self.accepted |= good
        cost = np.where(good, self.cost(), np.inf)
        for best, least, now in (
            (self.best, self.best_cost, ~self.bisecting),
            (self.bisected, self.bisected_cost, self.bisecting),
        ):
            better = now & (cost < least[self.people])
            best[self.people[better]], least[self.people[better]] = self.z[better], cost[better]

    def _turn(self, settled: Mask) -> None:
        """Choose the next weight of the settled, begin its descent, and close those who are through."""
        self.steps[settled] += self.steps_here[settled]
        good, bad = settled & self.accepted, settled & ~self.accepted
        begin = bad & ~self.bisecting & self.last_valid
        self.high = np.where(begin | (bad & self.bisecting), self.lam, self.high)
        self.low = np.where(good, self.lam, self.low)
        self.last_valid = np.where(settled, good, self.last_valid)
        self.bisecting |= begin
        factor = self.options.factor
        outwards = np.where(good, self.lam * factor, self.lam / factor)
        self.lam = np.where(settled, np.where(self.bisecting, (self.low + self.high) / 2, outwards), self.lam)
        self.steps_here[settled], self.accepted[settled] = 0, False
        self.adam.restart(settled)
        met = self.bisecting & ((self.lam <= self.low) | (self.lam >= self.high))
        # The bisection is begun once more where the steps are used up to the last.
        spent = np.where(self.bisecting, self.steps > self.options.steps, self.steps >= self.options.steps)
        open_ = ~(settled & (met | spent))
        if not open_.all():
            self.closed = True
            self._take_bisected(~open_ & self.last_valid)
            self.keep(open_)

    def _take_bisected(self, closing: Mask) -> None:
        """What the bisection found counts for these people, a mask (Q,): the last weight tried was valid."""
        people = self.people[closing]
        people = people[self.bisected_cost[people] < self.best_cost[people]]
        self.best[people], self.best_cost[people] = self.bisected[people], self.bisected_cost[people]

    def keep(self, open_: Mask) -> None:
        """Go on with these people only, a mask (Q,)."""
        super().keep(open_)
        self.target.keep(open_)
        for name in ("scores", "good", "slopes", "lam", "low", "high", "steps", "steps_here", "accepted", "last_valid"):
            setattr(self, name, getattr(self, name)[open_])
        self.bisecting = self.bisecting[open_]
