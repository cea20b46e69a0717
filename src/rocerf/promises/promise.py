"""What a promise is: a constraint on x that can be asked its value and its slope there.

A promise about deletions says ``value(x) >= delta``. Its value is the lowest score it foresees for x after the
deletions it speaks of. Solvers see nothing else, so a new promise needs no new solver, and a new cost no new promise.

One life of a promise: it is made about a model and k deletions, **prepared** (simulated, proven: whatever must be there
before anybody can be answered), **read** by solvers, **checked** by other code at the points that leave, **confirmed**
against real refits, and **said**. Its state goes out and comes in, and it is made **anew** about another model.
A new promise is one class below this one, and one line in :mod:`rocerf.promises.registry`.
"""

# ruff: noqa: B027  (a hook that does nothing is a default here)
from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from typing import Any, Protocol, Self, TypeAlias, runtime_checkable

import numpy as np
from numpy.typing import NDArray

from rocerf.errors import OptionError
from rocerf.models.model import Classifier, LinearModel, Refittable, Smooth
from rocerf.models.trees.scored import ScoredTrees
from rocerf.promises.held_out import HeldOut
from rocerf.storage.state import State
from rocerf.types import Array, Progress
from rocerf.words import Said

#: The format of what a promise has learned or proven.
STATE_FORMAT = "rocerf-promise/1"


def no_rows(_: int) -> NDArray[Any]:
    """The worst rows of a promise that fears none."""
    return np.empty(0, dtype=np.int64)


@dataclass(frozen=True, eq=False)
class Reading:
    """A promise read at P points: values (P,) and gradients in schema space (P, d), or (P, D) in lifted space.

    Of a *concave* promise each gradient is also a cut: ``value(x') <= values[j] + slopes[j]'(x' - x_j)``
    for every x'. ``worst_ids(j)`` names the training rows whose deletion is feared most at point j
    (asked only for points that are kept: naming rows for all would cost more than reading). A promise
    that aims deeper than it must says in ``margins`` what it really foresees; one that retrains counts
    its ``retrainings``.
    """

    values: Array
    slopes: Array
    worst_ids: Callable[[int], NDArray[Any]] = no_rows
    margins: Array | None = None
    retrainings: NDArray[np.intp] | None = None

    def floored_by(self, other: Reading) -> Reading:
        """This reading, but the other's value and slope wherever that one is lower."""
        lower = other.values < self.values
        return replace(
            self,
            values=np.where(lower, other.values, self.values),
            slopes=np.where(lower[:, None], other.slopes, self.slopes),
            margins=None if self.margins is None else np.minimum(self.margins, other.values),
        )

    @property
    def foreseen(self) -> Array:
        """The lowest score foreseen at each point (P,): ``margins`` where the promise aims deeper than it must."""
        return self.values if self.margins is None else self.margins

    def cuts(self, X: Array) -> tuple[Array, Array]:
        """The cuts as slopes and constants (P,): ``slopes'x + constants >= delta``; X are the points read, lifted."""
        return self.slopes, self.values - np.einsum("ij,ij->i", self.slopes, X)


def models_in_force(model: LinearModel) -> Array:
    """Parameters of the model at its optimum and, where it differs, as the user deployed it; (m, p).

    A recourse must be accepted by both: by the first because retraining starts from it, by the second because people
    are judged by it today.
    """
    if model.deployed_theta is None:
        return model.theta[None, :]
    return np.stack([model.theta, model.deployed_theta])


def vanishing_class(model: Classifier, k: int) -> Said | None:
    """The reason why nothing can be promised, if k deletions can remove every row of a class."""
    label = model.removable_class(k)
    return None if label is None else Said.of("promises.vanishing_class", k=k, label=repr(label))


class Promise(ABC):
    """A constraint ``value(x) >= delta`` on points of schema space, about a model and at most k deletions.

    A promise has a ``name`` and says how to :meth:`read` it; everything else has a default. ``proven`` is true only of
    a promise that holds by proof: nothing else may be called certified.
    """

    name: str
    proven: bool = False
    #: Whether the promise chooses its own margin, so that there is none to calibrate.
    chooses_margin: bool = False
    #: Share of the models retrained without rows picked to do harm that should accept, where it is about such a share.
    share: float | None = None
    #: How hard it searches, where it does.
    effort: str | None = None
    #: People that are solved for together at first where it learns from each; then twice as many, and so on.
    first_wave: int = 32
    #: Points that a solver by search may read for a person; None: as many as it usually does.
    most_reads: int | None = None
    model: Classifier

    def __init__(self, model: Classifier, k: int) -> None:
        self.model, self._k = model, k

    @property
    def k(self) -> int:
        """The number of deletions that it speaks of, for good: what was found or proven is about so many."""
        return self._k

    @property
    def concave(self) -> bool:
        """Whether gradients are cuts, so that the cutting-plane solver finds the global optimum."""
        return isinstance(self.model, LinearModel)

    @property
    def smooth(self) -> bool:
        """Whether readings have slopes in x at all; without (and without cuts), only a search can find points."""
        lifts = isinstance(self.model, LinearModel) and self.model.lift is not None  # slopes are of lifted points
        return isinstance(self.model, Smooth) and not lifts

    @property
    def searches(self) -> tuple[str, ...]:
        """The searches a point withstood, for a promise that searches."""
        return ()

    # --- before anybody is answered -----------------------------------------------------------------

    def impossible(self) -> str | None:
        """Why nobody can be given this promise, if that is so."""
        return vanishing_class(self.model, self.k)

    @property
    def prepared(self) -> bool:
        """Whether it can be read without further work."""
        return True

    def prepare(self, solve: Solve, progress: Progress | None = None) -> None:
        """Do what must be done before it can be read, once; ``solve`` finds points under a promise."""

    def expected_seconds(self) -> float | None:
        """About how long :meth:`prepare` will take, by trying a small part of it; None where that is not known."""
        return None

    def answering_seconds(self, people: int) -> float | None:
        """About how long models are then retrained for so many people, a rough guess; None where that is not known."""
        return 0.0

    @property
    def shorter(self) -> str:
        """How to make :meth:`prepare` shorter, in a few words for whoever waits; nothing if there is no way."""
        return ""

    def allow_for_own_fits(self, seed: int) -> None:
        """Allow, from now on, for the error of the user's own estimator, where that retrains the model."""

    # --- reading and checking -----------------------------------------------------------------------

    def today(self, X: Array) -> Reading:
        """The lower of the scores in force at points (P, d): deleting nothing is one of the deletions."""
        if isinstance(self.model, LinearModel):
            slopes, constants = self.model.halfspaces(models_in_force(self.model))
            scores = self.model.lifted(X) @ slopes.T + constants
            lower = scores.argmin(axis=1)
            return Reading(scores[np.arange(len(X)), lower], slopes[lower])
        if isinstance(self.model, Smooth):
            return Reading(*self.model.score_and_slope(X))
        return Reading(self.model.score(X), np.full(X.shape, np.nan))

    def lifted(self, X: Array) -> Array:
        """Points (P, d) in the space of slopes and cuts, (P, D): as they are, unless the model lifts them."""
        return self.model.lifted(X) if isinstance(self.model, LinearModel) else X

    def known_cuts(self) -> tuple[Array, Array]:
        """Cuts known before any point was read, valid for everybody: slopes (m, D), constants (m,).

        They are those of the model in force, the first one of the model as it is; asked of a linear model only.
        """
        assert isinstance(self.model, LinearModel)
        return self.model.halfspaces(models_in_force(self.model))

    @abstractmethod
    def read(self, X: Array, target: float | Array = -np.inf) -> Reading:
        """Value and gradient at points of shape (P, d).

        Where a value below ``target``, one for all points or one for each (P,), has been shown, a promise that searches
        need not search on.
        """

    def check(self, X: Array, X0: Array, delta: float = -np.inf, rows: Any = None) -> Array:
        """The lowest score foreseen at points (P, d), of people ``X0``, that are about to leave; (P,).

        It may not rest on anything that a solver says of them, and is other code than :meth:`read` where it can be.
        Below ``delta`` any value below it will do. ``rows`` are the same points as they are handed out, a DataFrame,
        where the user has columns of their own.
        """
        return self.read(X, delta).foreseen

    def rises_by(self, directions: Array) -> Array:
        """By how much, at least, what is foreseen rises from anywhere along directions (m, D) of lifted space, (m,).

        Negative where it may fall; by default nothing is known, -inf.
        """
        return np.full(len(directions), -np.inf)

    def rises_along(self, directions: Array) -> NDArray[np.bool_]:
        """Whether moving along each direction (m, D) of lifted space can never lower what is foreseen, (m,)."""
        return np.asarray(self.rises_by(directions) >= 0)

    def confirm(self, X: Array, values: Array, worst_ids: Sequence[NDArray[Any] | None], delta: float) -> Array | None:
        """The values (P,) of points found, once they are held against real refits; None if there is nothing to hold.

        Below ``delta`` where a refit refuses the point.
        """
        return None

    def bound(self, points: Any) -> Array:
        """Proven lower bounds of the scores of points (P, d) after every deletion spoken of, (P,); -inf without proof.

        Points may be a DataFrame in the user's own columns.
        """
        return np.full(len(points), -np.inf)

    @property
    def checks_at_length(self) -> bool:
        """Whether models are retrained for :meth:`held_out` or :meth:`picked`, so that these tell of their progress."""
        return False

    def held_out(self, points: Array, progress: Progress | None = None) -> HeldOut | None:
        """How points (P, d) fare with models kept for checking, for a promise that has such models."""
        return None

    def picked(self, points: Array, progress: Progress | None = None) -> HeldOut | None:
        """How points (P, d) fare without rows picked to do harm, where the promise is not about that but was asked."""
        return None

    # --- what is said -------------------------------------------------------------------------------

    def sentence(self, delta: float) -> str:
        """What may be said to a person who gets this promise with the margin ``delta``."""
        return Said.of(f"promises.{self.name}", k=self.k, rows=Said.of("promises.rows", k=self.k), delta=float(delta))

    @property
    def assumptions(self) -> tuple[str, ...]:
        """What must be so for the promise to mean what it says, beyond the model's own assumptions."""
        return ()

    # --- state --------------------------------------------------------------------------------------

    def state(self) -> State:
        """What was learned or proven, and options of its own; whatever is to be proven is proven first."""
        return State(STATE_FORMAT)

    def restore(self, state: State) -> None:
        """Take over what :meth:`state` gave for the same promise about the same model."""

    def anew(self, model: Any) -> Self:
        """The same promise about another model, with nothing found, proven or simulated yet."""
        raise OptionError(
            f"Expected one of our own promises to be made anew, got {type(self).__name__}; forget the rows in the "
            "model (model.forget(ids)) and make your promise and a new explainer for it."
        )


#: Finds recourse under a promise for people (P, d): points (P, d), missing where there is none.
Solve: TypeAlias = Callable[[Any, Array], Array]


class PerPerson(Promise):
    """A promise that is another one for each person."""

    model: Refittable
    concave = True
    smooth = True

    @abstractmethod
    def for_person(self, x0: Array) -> Promise | None:
        """The promise for one person (d,), if there is one."""

    def known_cuts(self) -> tuple[Array, Array]:
        """None that hold for everybody."""
        raise OptionError("Expected one person's promise, as it is another one for each; use for_person(x0).")

    def read(self, X: Array, target: float | Array = -np.inf) -> Reading:
        """It cannot be read without knowing for whom."""
        raise OptionError("Expected one person's promise, as it is another one for each; use for_person(x0).")

    def check(self, X: Array, X0: Array, delta: float = -np.inf, rows: Any = None) -> Array:
        """Each person's own promise at their point; -inf where it cannot be made for somebody."""
        margins = np.full(len(X), -np.inf)
        for place in range(len(X)):
            own, one = self.for_person(X0[place]), slice(place, place + 1)
            if own is not None:
                margins[one] = own.check(X[one], X0[one], delta, None if rows is None else rows[one])
        return margins


@runtime_checkable
class Learning(Protocol):
    """What a promise adds for which reading for some people makes reading for others cheaper."""

    def remembered(self, X: Array) -> Reading:
        """The lowest score at each point (P, d) that anything read so far implies, as found."""
        ...

    @property
    def again(self) -> int:
        """How many further searches in a row a point that holds must withstand before it is given."""
        ...

    def search_on(self, X: Array, target: float, number: int) -> Reading:
        """The lowest score at each point (P, d) after one further search, other for each ``number``, as found."""
        ...


@runtime_checkable
class NearPoint(Protocol):
    """What a promise adds that is dear to read but cheap near a point, once its worst rows there are known."""

    def frozen_at(self, X: Array) -> Callable[[Array], Reading]:
        """The promise as it is at X (P, d): equal there, never below elsewhere; for points of the same people."""
        ...


@runtime_checkable
class Rereading(Protocol):
    """What a promise adds that is cheaper to read next to a point at which it was read before."""

    def read_near(self, X: Array, before: Array, target: float | Array = -np.inf) -> Reading:
        """The same as ``read(X, target)``; ``before`` (P, d) is where it was last read for each person, NaN if never.

        It may say anything: it changes how long reading takes, and nothing else.
        """
        ...


@runtime_checkable
class Relaxing(Protocol):
    """What a promise adds whose every reading is a pass over rows that are not in memory."""

    @property
    def relaxes(self) -> bool:
        """Whether it is such a promise at all."""
        ...

    def read_above(self, X: Array, before: Array) -> Reading:
        """Never below ``read(X)`` and with cuts as good for everybody, from the few rows that readings so far were
        about; ``before`` as in :meth:`Rereading.read_near`."""
        ...


@runtime_checkable
class OverTrees(Protocol):
    """What a promise adds whose value rests on tree ensembles: bounds of it over boxes follow from theirs."""

    @property
    def readable(self) -> bool:
        """Whether the model's trees can be read at all."""
        ...

    def tree_models(self) -> list[ScoredTrees | None]:
        """The M ensembles that the value rests on, the model in use first; None for one that cannot be read."""
        ...

    def ceiling(self, scores: Array, models: Sequence[int]) -> Array:
        """What the value is at most, (P,), where these ensembles score at most this, (m, P), and others anything."""
        ...

    def floors(self, target: float) -> Array:
        """What each ensemble must score at least for the value to reach a target, (M,); -inf where others may do so."""
        ...


@runtime_checkable
class Hardening(Protocol):
    """What a promise adds that is read from deletions found so far, and learns of others by attacking points."""

    @property
    def rounds(self) -> int:
        """How often points are attacked and, where they no longer hold, solved for again."""
        ...

    def harden(self, X: Array, progress: Progress | None = None) -> None:
        """Look for deletions that harm points (P, d); what is found lowers the promise from now on."""
        ...
