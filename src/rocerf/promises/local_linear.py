"""The paper's promise for networks: first order on a linear stand-in fitted around each person."""

from __future__ import annotations

from typing import Any, Self

from rocerf.errors import OptionError
from rocerf.models.local_linear import Sampling, StandIns, checked_sampling
from rocerf.models.model import Refittable
from rocerf.promises.first_order import FirstOrder
from rocerf.promises.promise import PerPerson
from rocerf.storage.state import State
from rocerf.types import Array
from rocerf.words import Said


class LocalLinear(PerPerson):
    """First order at most k deletions, on a local linear model of the network; another one for each person.

    It says nothing about the network itself beyond being close to it near x0, and the change it asks for is often far.

    ``sampling`` says to which points the linear model is fitted: "widened" (ours) or "authors", those of the paper's
    code (:mod:`rocerf.models.local_linear`). Also with these the points are not the authors', which are those of
    :class:`rocerf.baselines.AuthorsRocerf`:

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

    name = "local_linear"

    def __init__(self, model: Refittable, k: int, *, sampling: Sampling = "widened", seed: int = 0) -> None:
        super().__init__(model, k)
        self.sampling, self._seed = checked_sampling(sampling), seed
        self._stand_ins = StandIns(model, seed=seed, sampling=self.sampling)

    @property
    def assumptions(self) -> tuple[Said, ...]:
        """What is done where stand-in and network differ, and to what the stand-in is fitted if not in our way."""
        moved, drawn = Said.of("promises.moved_on"), Said.of("promises.drawn_as_authors")
        return (moved, drawn) if self.sampling == "authors" else (moved,)

    def for_person(self, x0: Array) -> FirstOrder | None:
        """The promise for one person (d,); None where no stand-in could be fitted."""
        local = self._stand_ins.around(x0)
        return None if local is None else FirstOrder(local, self.k, seed=self._seed)

    def state(self) -> State:
        """Nothing is learned; only what can be made again by its name can be kept."""
        if self.sampling != "widened":
            raise OptionError(
                f"Expected the promise 'local_linear' with sampling='widened' to save, got sampling={self.sampling!r}, "
                "which follows the paper's code and is made anew; make the explainer again instead."
            )
        return super().state()

    def anew(self, model: Any) -> Self:
        """The same about another model."""
        return type(self)(model, self.k, sampling=self.sampling, seed=self._seed)
