"""The paper's promise for networks: first order on a linear stand-in fitted around each person."""

from __future__ import annotations

import numpy as np

from rocerf.errors import OptionError
from rocerf.models.local_linear import Sampling, StandIns, checked_sampling
from rocerf.models.model import Refittable
from rocerf.promises.first_order import FirstOrder
from rocerf.promises.promise import Reading, Wording, vanishing_class
from rocerf.types import Array


class LocalLinear:
    """First order at most k deletions, on a local linear model of the network; another one for each person.

    It says nothing about the network itself beyond being close to it near x0, and the change it asks for is often far.

    ``sampling`` says to which points the linear model is fitted: "widened" (ours) or "authors", those of the paper's
    code (:mod:`rocerf.models.local_linear`). Also with these the points are not the authors':

    * Theirs are checked on the stand-in and on the stand-in after the deletion, never by the network, which may refuse
      them. Here a point that the network refuses is moved on along the line from x0, in steps of 5 % up to 10 times
      its length, to the first one that the network accepts and that keeps the promise; where none does, the person is
      given up. That makes points dearer, and some people unanswered.
    * Theirs fear the k rows that are worst at x0, once; here those worst at the point itself.
    * Theirs come from a search with large steps, here from the optimum on the stand-in.

    Examples
    --------
    ``Rocerf(model, 25, promise=LocalLinear(model, 25, sampling="authors"))`` for a network ``model``.
    """

    wording = Wording(
        "local_linear",
        "meets the paper's first-order constraint, with margin {delta}, for every deletion of at most {k} training "
        "{rows} on a linear model fitted around the person; this is an estimate about a stand-in for the network, "
        "not a proof",
    )
    concave = True
    smooth = True
    searches: tuple[str, ...] = ()

    def __init__(self, model: Refittable, k: int, *, sampling: Sampling = "widened", seed: int = 0) -> None:
        self.model, self.k, self.sampling, self._seed = model, k, checked_sampling(sampling), seed
        self._stand_ins = StandIns(model, seed=seed, sampling=self.sampling)

    @property
    def assumptions(self) -> tuple[str, ...]:
        """What is done where stand-in and network differ, and to what the stand-in is fitted if not in our way."""
        moved = "where the network itself refuses the point found on the stand-in, the point is moved on along the line"
        drawn = "the linear model is fitted to points drawn as in the paper's code, often only one of them accepted"
        return (moved, drawn) if self.sampling == "authors" else (moved,)

    def for_person(self, x0: Array) -> FirstOrder | None:
        """The promise for one person (d,); None where no stand-in could be fitted."""
        local = self._stand_ins.around(x0)
        return None if local is None else FirstOrder(local, self.k, seed=self._seed)

    def known_cuts(self) -> tuple[Array, Array]:
        """None that hold for everybody."""
        raise OptionError("Expected one person's promise, as it is another one for each; use for_person(x0).")

    def read(self, X: Array, target: float = -np.inf) -> Reading:
        """It cannot be read without knowing for whom."""
        raise OptionError("Expected one person's promise, as it is another one for each; use for_person(x0).")

    def impossible(self) -> str | None:
        """If k deletions can remove a whole class."""
        return vanishing_class(self.model, self.k)
