"""How points fared with retrained models that had no part in choosing them."""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from rocerf.errors import DidNotTrainError
from rocerf.models.ensembles import Ensemble
from rocerf.types import Array
from rocerf.words import Said


def clopper_pearson(successes: int, trials: int, confidence: float = 0.95) -> float:
    """One-sided lower bound of a probability after so many successes in independent trials.

    >>> round(clopper_pearson(100, 100), 4)
    0.9705
    >>> clopper_pearson(0, 10)
    0.0
    """
    from scipy.stats import beta

    return 0.0 if successes == 0 else float(beta.ppf(1.0 - confidence, successes, trials - successes + 1))


def percent(share: float) -> str:
    """A share as it was given: 0.995 is 99.5%.

    >>> percent(0.95), percent(0.999)
    ('95%', '99.9%')
    """
    return f"{100.0 * share:.10g}%"


def rounded_down(share: float) -> float:
    """A lower bound in whole thousandths, never rounded up.

    >>> rounded_down(0.97099)
    0.97
    """
    return math.floor(1000.0 * share + 1e-9) / 1000.0


@dataclass(frozen=True, eq=False)
class HeldOut:
    """How P points fared with models retrained for this purpose only.

    ``accepted`` (P,) counts the models that accept each point, of ``retrainings`` (-1 where a person has no point);
    ``by_model`` (M,) is the share of points each model accepts; ``drawn`` counts the models that accept the one
    person drawn for them, of ``trials`` models (all M, where they are the same for everybody). ``picked`` says that
    rows were picked to harm each point, by models that had no part in choosing it, rather than drawn at random; the
    m-th model is then another one for people for whom other rows were picked.
    """

    accepted: NDArray[np.intp]
    by_model: Array
    drawn: int
    confidence: float
    trials: int | None = None
    picked: bool = False

    @classmethod
    def by(cls, models: Ensemble, points: Array, confidence: float, seed: int) -> HeldOut | None:
        """How points (P, d) fare with these models, the same for everybody; missing points are counted as -1."""
        found = np.isfinite(points).all(axis=1)
        if not found.any():
            return None
        scores = models.scores(points[found])
        if not np.isfinite(scores).all():
            raise DidNotTrainError("Expected finite scores from retrained models, got infinite ones or NaN.")
        verdicts = scores >= 0
        person = np.random.default_rng(seed).integers(verdicts.shape[1], size=len(verdicts))
        accepted = np.full(len(points), -1, np.intp)
        accepted[found] = verdicts.sum(axis=0)
        drawn = int(verdicts[np.arange(len(verdicts)), person].sum())
        return cls(accepted, verdicts.mean(axis=1), drawn, confidence)

    @property
    def retrainings(self) -> int:
        """Number of models M that each point was shown to."""
        return len(self.by_model)

    @property
    def validity(self) -> float:
        """Share of (point, model) pairs that are accepted."""
        return float(self.by_model.mean())

    @property
    def lower_bound(self) -> float:
        """Lower confidence bound of the validity over all people."""
        return clopper_pearson(self.drawn, self.trials or self.retrainings, self.confidence)

    def bound_of(self, place: int) -> float:
        """Lower confidence bound of the share of retrained models that accept this point; NaN where there is none."""
        if self.accepted[place] < 0:
            return math.nan
        return clopper_pearson(int(self.accepted[place]), self.retrainings, self.confidence)

    def sentence_of(self, place: int) -> Said:
        """What may be said about one point."""
        if self.accepted[place] < 0:
            return Said.of("promises.nothing_checked")
        return Said.of(
            "promises.held_out_picked" if self.picked else "promises.held_out",
            accepted=int(self.accepted[place]),
            models=self.retrainings,
            bound=rounded_down(self.bound_of(place)),
            confidence=self.confidence,
        )

    def audit_of(self, place: int, k: int) -> Said:
        """The same for a promise that is not about picked rows, at most ``k`` of which were deleted."""
        if self.accepted[place] < 0:
            return Said.of("promises.nothing_checked")
        rows = Said.of("promises.rows", k=k)
        return Said.of("promises.audited", check=self.sentence_of(place), k=k, rows=rows)

    def to_dict(self) -> dict[str, Any]:
        """Plain numbers for JSON."""
        return {
            "accepted": self.accepted.tolist(),
            "by_model": self.by_model.tolist(),
            "drawn": self.drawn,
            "confidence": self.confidence,
            **({"trials": self.trials, "picked": True} if self.picked else {}),
        }

    @classmethod
    def from_dict(cls, document: Mapping[str, Any]) -> HeldOut:
        """Read what :meth:`to_dict` wrote."""
        accepted, by_model = np.array(document["accepted"], np.intp), np.array(document["by_model"], np.float64)
        trials, picked = document.get("trials"), bool(document.get("picked", False))
        return cls(accepted, by_model, int(document["drawn"]), float(document["confidence"]), trials, picked)

    def __str__(self) -> str:
        if self.picked:
            return (
                f"{self.validity:.2%} accepted over {int((self.accepted >= 0).sum())} points, by {self.retrainings} "
                "models each, retrained without rows that models with no part in choosing the points picked to harm "
                f"them (at least {rounded_down(self.lower_bound):.1%} with {percent(self.confidence)} confidence)"
            )
        return (
            f"{self.validity:.2%} accepted over {int((self.accepted >= 0).sum())} points and {self.retrainings} "
            f"retrained models never used to choose them (at least {rounded_down(self.lower_bound):.1%} with "
            f"{percent(self.confidence)} confidence)"
        )
