"""What a solver hands back to the explainer."""

from __future__ import annotations

from dataclasses import dataclass
from enum import Enum, auto
from typing import Any

import numpy as np
from numpy.typing import NDArray

from rocerf.types import Array

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
    rounds: NDArray[np.intp]
    retrainings: NDArray[np.intp]
    gaps: Array

    def forget(self, people: NDArray[np.intp]) -> None:
        """Take back the points of these people."""
        self.points[people], self.values[people] = np.nan, np.nan

    def given_up(self) -> Solution:
        """The same without anybody's points."""
        self.forget(np.arange(len(self.points)))
        self.outcomes[:] = Outcome.GAVE_UP
        return self

    def take(self, person: int, alone: Solution) -> None:
        """Take over the solution of one person solved alone."""
        self.points[person], self.values[person] = alone.points[0], alone.values[0]
        self.outcomes[person], self.worst_ids[person] = alone.outcomes[0], alone.worst_ids[0]
        self.rounds[person], self.retrainings[person] = alone.rounds[0], alone.retrainings[0]
        self.gaps[person] = alone.gaps[0]

    def only(self, person: int) -> Solution:
        """The solution of one person."""
        part = slice(person, person + 1)
        return Solution(
            points=self.points[part],
            values=self.values[part],
            outcomes=self.outcomes[part],
            worst_ids=self.worst_ids[part],
            rounds=self.rounds[part],
            retrainings=self.retrainings[part],
            gaps=self.gaps[part],
        )

    @classmethod
    def blank(cls, people: int, d: int) -> Solution:
        """Nobody found yet; solvers fill the arrays in."""
        outcomes = np.empty(people, dtype=object)
        outcomes[:] = Outcome.GAVE_UP
        return cls(
            points=np.full((people, d), np.nan),
            values=np.full(people, np.nan),
            outcomes=outcomes,
            worst_ids=[None] * people,
            rounds=np.zeros(people, dtype=np.intp),
            retrainings=np.zeros(people, dtype=np.intp),
            gaps=np.full(people, np.nan),
        )
