"""Options of the promise ``retrained`` for models whose retraining has no single outcome."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, ClassVar

from rocerf.deletion.efforts import checked_effort
from rocerf.errors import OptionError
from rocerf.models.model import Proposing, Refittable
from rocerf.models.options import positive_whole, proper_share

if TYPE_CHECKING:
    from rocerf.promises.retrained_groups import RetrainedGroups


@dataclass(frozen=True)
class FreshStarts:
    """Options of the promise ``retrained`` for models whose retraining has no single outcome.

    Give it to :class:`rocerf.Rocerf` as ``promise=FreshStarts(...)``.

    Parameters
    ----------
    share : float
        Share of the models trained again without the rows picked that should accept a recourse.
    starts : int
        Models retrained without each set of rows.
    rounds : int
        How often points are attacked and solved for again.
    attackers, checking : int
        Models without any part in choosing points that pick rows to check them, and models retrained without the rows
        picked by each of these.
    confidence : float
        Of the reported lower bounds.
    effort : "quick", "normal" or "thorough"
        How many ways there are to pick rows while points are chosen.

    Examples
    --------
    >>> FreshStarts(share=0.9).starts
    6
    """

    share: float = 0.95
    starts: int = 6
    rounds: int = 6
    attackers: int = 2
    checking: int = 10
    confidence: float = 0.95
    effort: str = "normal"
    #: Share of the training rows deleted at most, where the user does not say.
    default_k: ClassVar[str] = "0.5%"

    def __post_init__(self) -> None:
        for name in ("share", "confidence"):
            proper_share(getattr(self, name), name, 0.95)
        for name, least in (("starts", 2), ("rounds", 1), ("attackers", 1), ("checking", 1)):
            if positive_whole(getattr(self, name), name) < least:
                raise OptionError(f"Expected {name} to be at least {least}, got {getattr(self, name)}; use more.")
        checked_effort(self.effort)

    def about(self, model: Refittable, k: int, *, seed: int = 0) -> RetrainedGroups:
        """The promise about one model and up to k deletions."""
        if not isinstance(model, Proposing):
            raise OptionError(
                "Expected a network or an estimator that can say which rows hold a point up, got "
                f"{type(model).__name__}; for a logistic model use promise='retrained'."
            )
        from rocerf.promises.retrained_groups import RetrainedGroups

        return RetrainedGroups(model, k, self, seed)
