"""No promise about deletions: the point is accepted by the model as it is."""

from __future__ import annotations

import numpy as np

from rocerf.models.model import FirstOrderModel, LinearModel, Refittable, Smooth
from rocerf.promises.promise import Reading, Wording
from rocerf.types import Array


def models_in_force(model: LinearModel) -> Array:
    """Parameters of the model at its optimum and, where it differs, as the user deployed it; (m, p).

    A recourse must be accepted by both: by the first because retraining starts from it, by the
    second because people are judged by it today.
    """
    if model.deployed_theta is None:
        return model.theta[None, :]
    return np.stack([model.theta, model.deployed_theta])


class Plain:
    """The model's own score: what an ordinary counterfactual explanation promises.

    ``model`` is linear, smooth, or only refittable; what can be read is the value, with a slope where the model has
    one.
    """

    wording = Wording("plain", "is accepted by the model as it is today; nothing is promised about deletions")
    k = 0
    searches: tuple[str, ...] = ()
    assumptions: tuple[str, ...] = ()

    def __init__(self, model: Refittable | FirstOrderModel) -> None:
        self.model = model

    @property
    def concave(self) -> bool:
        """Whether slopes are cuts."""
        return isinstance(self.model, LinearModel)

    @property
    def smooth(self) -> bool:
        """Whether there are slopes."""
        return isinstance(self.model, Smooth)

    def known_cuts(self) -> tuple[Array, Array]:
        """The model in force."""
        assert isinstance(self.model, LinearModel)
        return self.model.halfspaces(models_in_force(self.model))

    def read(self, X: Array, target: float = -np.inf) -> Reading:
        """The lower of the scores in force."""
        if isinstance(self.model, LinearModel):
            slopes, constants = self.known_cuts()
            scores = X @ slopes.T + constants
            lower = scores.argmin(axis=1)
            return Reading(scores[np.arange(len(X)), lower], slopes[lower])
        if isinstance(self.model, Smooth):
            return Reading(*self.model.score_and_slope(X))
        return Reading(self.model.score(X), np.full(X.shape, np.nan))

    def impossible(self) -> str | None:
        """Never."""
        return None
