"""Options of the promise ``simulated``."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, ClassVar, Literal

from rocerf.errors import OptionError
from rocerf.models.model import RETRAININGS, Refittable, Retraining
from rocerf.models.options import positive_whole, proper_share
from rocerf.promises.picked import refuse_what_picks_nothing

if TYPE_CHECKING:
    from rocerf.promises.simulated import SimulatedPromise


@dataclass(frozen=True)
class Simulated:
    """Options of the promise; give it to :class:`rocerf.Rocerf` as ``promise=Simulated(...)``.

    Parameters
    ----------
    validity : float
        Share of retrained models that should accept a recourse.
    retraining : "fresh" or "warm"
        From a new initialisation, or on from the present parameters.
    margin : "auto", "spread", "count" or "fixed"
        Whether the margin follows the spread of the retrained models at x, counts those that accept x, or is one number
        for everybody. By default the count for tree ensembles that can be read, the spread for other models.
    shaping, choosing, checking : int
        Retrained models in each group; more checking models make the reported bound tighter.
    confidence : float
        Of the reported lower bounds.
    audit : bool
        Whether answers also say how points fare without up to k rows *picked* to harm them, by models that had no part
        in anything (``recourses.picked``), for networks and estimators. The promise is not about these.

    Examples
    --------
    >>> import rocerf
    >>> data = rocerf.load_dataset("german")
    >>> model = rocerf.LogisticModel.fit(data.train)
    >>> promise = Simulated(validity=0.95, shaping=10, choosing=10, checking=20)
    >>> recourses = rocerf.Rocerf(model, "1%", promise=promise).explain(data.test.X[:20])
    >>> recourses.held_out.retrainings, recourses.held_out.validity > 0.9
    (20, True)
    """

    validity: float = 0.99
    retraining: Retraining = "fresh"
    margin: Literal["auto", "spread", "count", "fixed"] = "auto"
    shaping: int = 40
    choosing: int = 60
    checking: int = 100
    confidence: float = 0.95
    audit: bool = False
    #: Share of the training rows deleted at most, where the user does not say.
    default_k: ClassVar[str] = "5%"

    def __post_init__(self) -> None:
        for name in ("validity", "confidence"):
            proper_share(getattr(self, name), name, 0.99)
        if self.retraining not in RETRAININGS or self.margin not in ("auto", "spread", "count", "fixed"):
            raise OptionError(
                "Expected retraining to be fresh or warm and margin to be auto, spread, count or fixed, "
                f"got {self.retraining!r} and {self.margin!r}."
            )
        for name, least in (("shaping", 2), ("choosing", 2), ("checking", 1)):
            if positive_whole(getattr(self, name), name) < least:
                raise OptionError(f"Expected {name} to be at least {least} retrained models, got 1; use more.")

    def about(self, model: Refittable, k: int, *, seed: int = 0) -> SimulatedPromise:
        """The promise about one model and up to k deletions."""
        if not isinstance(model, Refittable):
            raise OptionError(
                f"Expected a model that can be trained again for the promise 'simulated', got {type(model).__name__}."
            )
        if self.audit:
            refuse_what_picks_nothing(model)
        from rocerf.promises.simulated import SimulatedPromise

        return SimulatedPromise(model, k, self, seed)
