"""What a promise is: a constraint on x that can be asked its value and its slope there.

A promise about deletions says ``value(x) >= delta``. Its value is the lowest score it foresees for
x after the deletions it speaks of. Solvers see nothing else, so a new promise needs no new
solver, and a new cost no new promise.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace
from typing import Any, Protocol, runtime_checkable

import numpy as np
from numpy.typing import NDArray

from rocerf.errors import OptionError
from rocerf.models.model import Classifier, FirstOrderModel, Refittable
from rocerf.types import Array


def no_rows(_: int) -> NDArray[Any]:
    """The worst rows of a promise that fears none."""
    return np.empty(0, dtype=np.int64)


@dataclass(frozen=True, eq=False)
class Reading:
    """A promise read at P points: values (P,) and gradients in schema space (P, d).

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
        """The cuts as slopes (P, d) and constants (P,): ``slopes'x + constants >= delta``."""
        return self.slopes, self.values - np.einsum("ij,ij->i", self.slopes, X)


@dataclass(frozen=True)
class Wording:
    """The exact words of a promise towards people; ``{k}`` deletions, ``{delta}`` the margin.

    ``proven`` is true only of a promise that holds by proof: nothing else may be called certified.
    """

    name: str
    sentence: str
    proven: bool = False

    def filled(self, k: int, delta: float) -> str:
        """The sentence with its numbers filled in."""
        return self.sentence.format(k=k, delta=exact(delta), rows="row" if k == 1 else "rows")


def exact(number: float) -> str:
    """A number with all its digits: rounded, it may say more than was checked.

    >>> exact(5.1234567), exact(2.0), exact(0.1 + 0.2)
    ('5.1234567', '2', '0.30000000000000004')
    """
    return repr(float(number)).removesuffix(".0")


class Promise(Protocol):
    """A constraint ``value(x) >= delta`` on points of schema space."""

    @property
    def wording(self) -> Wording:
        """What may be said to a person who gets this promise."""
        ...

    @property
    def k(self) -> int:
        """The number of deletions it speaks of."""
        ...

    @property
    def concave(self) -> bool:
        """Whether gradients are cuts, so that the cutting-plane solver finds the global optimum."""
        ...

    @property
    def smooth(self) -> bool:
        """Whether readings have slopes at all; without, only a search can find points."""
        ...

    @property
    def searches(self) -> tuple[str, ...]:
        """The searches a point withstood, for a promise that searches."""
        ...

    @property
    def assumptions(self) -> tuple[str, ...]:
        """What must be so for the promise to mean what it says, beyond the model's own assumptions."""
        ...

    def known_cuts(self) -> tuple[Array, Array]:
        """Cuts known before any point was read, valid for everybody: slopes (m, d), constants (m,).

        The first one is the model as it is.
        """
        ...

    def read(self, X: Array, target: float = -np.inf) -> Reading:
        """Value and gradient at points of shape (P, d).

        Where a value below ``target`` has been shown, a promise that searches need not search on.
        """
        ...

    def impossible(self) -> str | None:
        """Why nobody can be given this promise, if that is so."""
        ...


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
class Rereadable(Protocol):
    """What a promise adds that can be read by other code than the one solvers read it with."""

    def margins_at(self, X: Array, delta: float = -np.inf, rows: Any = None) -> Array:
        """The lowest score foreseen at points (P, d) that are about to leave, (P,).

        It may not rest on anything that a solver says of them. Below ``delta`` any value below it will do. ``rows`` are
        the same points as they are handed out, a DataFrame, where the user has columns of their own.
        """
        ...


@runtime_checkable
class PerPerson(Protocol):
    """What a promise adds that is another one for each person."""

    @property
    def model(self) -> Refittable:
        """The model that people are judged by."""
        ...

    def for_person(self, x0: Array) -> Promise | None:
        """The promise for one person (d,), if there is one."""
        ...


@runtime_checkable
class Held(Protocol):
    """What a promise adds that is dear to read but cheap near a point, once its worst rows there are known."""

    def held_at(self, X: Array) -> Callable[[Array], Reading]:
        """The promise as it is at X (P, d): equal there, never below elsewhere; for points of the same people."""
        ...


def refuse_refitted_preprocessing(model: Classifier, promise: str) -> None:
    """Promises whose mathematics knows one design only are not for pipelines whose preprocessing is fitted again."""
    if model.preprocessing == "refitted":
        raise OptionError(
            f"Expected a pipeline with preprocessing='frozen' for the promise {promise!r}, whose mathematics is about "
            "preprocessing that stays as it is, got preprocessing='refitted'; use the promise 'retrained' or "
            "'simulated', or give it model.frozen."
        )


def vanishing_class(model: Refittable | FirstOrderModel, k: int) -> str | None:
    """The reason why nothing can be promised, if k deletions can remove every row of a class."""
    label = model.removable_class(k)
    if label is None:
        return None
    return f"{k} deletions can remove every training row labelled {label!r}, and then no model can be trained"
