"""What a solver hands back to the explainer."""

from __future__ import annotations

from dataclasses import dataclass, fields
from enum import Enum, auto
from typing import Any

import numpy as np
from numpy.typing import NDArray

from rocerf.promises.promise import Reading
from rocerf.types import Array, Mask, Places

#: Points clear their promise by this much, so that rounding in the user's own ``predict`` cannot undo it.
GUARD = 1e-6


class Outcome(Enum):
    """How the search for one person's recourse ended."""

    FOUND = auto()
    UNREACHABLE = auto()  # not even the model as it is can be satisfied inside the allowed set
    NOT_ROBUST = auto()  # the model can, the promise cannot
    GAVE_UP = auto()  # neither found nor shown impossible within the limit


@dataclass(frozen=True, eq=False)
class Solution:
    """Points (P, d) with the promise's value there (P,), NaN where not found.

    ``rounds`` counts how often each person's promise was read, ``retrainings`` the models retrained for it. ``gaps``
    says by which share of the cost a cheaper point is not excluded; NaN where the solver cannot tell.
    """

    points: Array
    values: Array
    outcomes: NDArray[Any]
    worst_ids: list[NDArray[Any] | None]
    rounds: Places
    retrainings: Places
    gaps: Array

    def forget(self, people: Places) -> None:
        """Take back the points of these people."""
        self.points[people], self.values[people] = np.nan, np.nan

    def given_up(self) -> Solution:
        """The same without anybody's points."""
        self.forget(np.arange(len(self.points)))
        self.outcomes[:] = Outcome.GAVE_UP
        return self

    def keep(self, people: Places, points: Array, reading: Reading, holds: Mask) -> None:
        """Take over the points (Q, d) of people (Q,) at which a reading says that the promise holds (Q,)."""
        for place in np.flatnonzero(holds):
            person = people[place]
            self.points[person], self.values[person] = points[place], reading.foreseen[place]
            self.outcomes[person], self.worst_ids[person] = Outcome.FOUND, reading.worst_ids(int(place))

    def count(self, people: Places, reading: Reading) -> None:
        """Add what a reading retrained for these people."""
        if reading.retrainings is not None:
            self.retrainings[people] += reading.retrainings

    def take(self, person: int, alone: Solution) -> None:
        """Take over the solution of one person solved alone."""
        for field in fields(self):
            getattr(self, field.name)[person] = getattr(alone, field.name)[0]

    def only(self, person: int) -> Solution:
        """The solution of one person."""
        return Solution(*(getattr(self, field.name)[person : person + 1] for field in fields(self)))

    @classmethod
    def blank(cls, people: int, d: int) -> Solution:
        """Nobody found yet; solvers fill the arrays in."""
        outcomes = np.full(people, Outcome.GAVE_UP, dtype=object)
        values, gaps = np.full((2, people), np.nan)
        rounds, retrainings = np.zeros((2, people), np.intp)
        return cls(np.full((people, d), np.nan), values, outcomes, [None] * people, rounds, retrainings, gaps)
