"""The gate: nothing is handed out that was not checked at the very point that leaves.

Solvers find points, rounding makes them readable, types of the user's columns may change them once more. Whatever came
before, a point passes here and nowhere else, as it will be handed out: it must obey every rule, the model that people
are judged by today must accept it, and the promise, read again there by other code than the solver's, must keep its
margin. The margin reported is the one of this reading.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from rocerf.data.foreign import is_frame
from rocerf.data.frames import Frames
from rocerf.models.model import Refittable
from rocerf.promises.promise import Promise
from rocerf.recourse.asked import handed_out, leaving
from rocerf.recourse.master.feasible_set import FeasibleSet
from rocerf.types import Array
from rocerf.words import Said

Missing = Sequence[Sequence[str]] | None


@dataclass(frozen=True, eq=False)
class Verdict:
    """What the gate says of points (P, d), which are those that leave.

    ``margins`` (P,) is the lowest score that the promise foresees there, NaN where the point is withheld; ``reasons``
    then says why.
    """

    points: Array
    margins: Array
    reasons: tuple[str, ...]

    @property
    def passed(self) -> NDArray[np.bool_]:
        """Points that may leave, (P,)."""
        return np.asarray(~np.isnan(self.margins))


@dataclass(frozen=True, eq=False)
class Gate:
    """Checks points about one model, one promise and its margin ``delta``."""

    model: Refittable
    promise: Promise
    delta: float

    def __call__(
        self, points: Array, allowed: FeasibleSet, missing: Missing = None, frames: Frames | None = None
    ) -> Verdict:
        """Points (P, d) for the people of ``allowed``, who came without the features ``missing``.

        They are handed out in the user's columns of ``frames``, or as they are.
        """
        points = leaving(frames, points, allowed.X0, missing)
        margins = np.full(len(points), np.nan)
        reasons = [""] * len(points)
        left = self._keeping("a_rule_is_broken", allowed.holds(points), np.arange(len(points)), reasons)
        rows = self._rows(points, allowed.X0, missing, left)
        if len(left):
            accepted = np.asarray(self.model.deployed_score(rows)) >= 0
            rows = rows[accepted]
            left = self._keeping("the_model_refuses", accepted, left, reasons)
        if len(left):
            handed = rows if is_frame(rows) else None
            found = self.promise.check(points[left], allowed.X0[left], self.delta, handed)
            kept = found >= self.delta
            margins[left[kept]] = found[kept]
            self._keeping("the_promise_is_not_kept", kept, left, reasons)
        return Verdict(points, margins, tuple(reasons))

    def first_passing(
        self,
        variants: Iterable[Callable[[NDArray[np.intp]], Array]],
        allowed: FeasibleSet,
        missing: Missing = None,
        frames: Frames | None = None,
    ) -> Verdict:
        """For each person of ``allowed`` the first of several points that passes; each variant gives points of places.

        Who has none that passes gets the reason of the last one.
        """
        points, margins = np.full(allowed.X0.shape, np.nan), np.full(len(allowed.X0), np.nan)
        reasons = [""] * len(points)
        todo = np.arange(len(points))
        for variant in variants:
            if not len(todo):
                break
            without = None if missing is None else [missing[int(place)] for place in todo]
            verdict = self(variant(todo), allowed.of(todo), without, frames)
            good = verdict.passed
            points[todo[good]], margins[todo[good]] = verdict.points[good], verdict.margins[good]
            for place, reason in zip(todo, verdict.reasons, strict=True):
                reasons[place] = reason
            todo = todo[~good]
        return Verdict(points, margins, tuple(reasons))

    def _rows(self, points: Array, people: Array, missing: Missing, places: NDArray[np.intp]) -> Any:
        """The points at these places as the model is asked about them."""
        without = None if missing is None else [missing[int(place)] for place in places]
        return handed_out(self.model, points[places], people[places], without)

    @staticmethod
    def _keeping(why: str, good: NDArray[np.bool_], places: NDArray[np.intp], reasons: list[str]) -> NDArray[np.intp]:
        """The places that are good; the others get their reason."""
        for place in places[~good]:
            reasons[place] = Said.of("recourse.withheld", why=Said.of(f"recourse.{why}"))
        return places[good]
