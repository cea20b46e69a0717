"""The paper's local linear stand-in for a network: a logistic model of its decisions around one person.

Following LIME: points are drawn around x0 and weighted by their distance, and a logistic model (C = 10,000) is fitted
to the network's decisions there. Distances are in units of the training spread. There are two ways of drawing:

* *widened*, ours: 10,000 points from a normal distribution of standard deviation 0.1, all of them drawn wider in steps
  of 0.05 until the network decides both ways; weights ``exp(-distance^2)``, distances shrunk by as much as the cloud
  was widened. Some points on either side show where the boundary runs.
* *authors*, that of the paper's code: points are drawn one at a time, each wider by 0.05 than the last, from 0.1 on,
  until the network accepts one; it is kept, those refused on the way are not, and the other 9,999 are all drawn with
  0.1. Weights are ``exp(-distance^2)`` as it is, and the intercept is penalised as liblinear does. Around a person far
  from the boundary that makes one accepted point (of little weight) and 9,999 refused ones beside x0: the boundary of
  the stand-in then runs somewhere between, its slope points to wherever the accepted one happened to lie, and what is
  asked for is farther away and depends on the draw.

The stand-in is then treated as if it were the linear model trained on the training rows: their gradients and curvature
are taken at its parameters,

    g_i = omega_i (p_i - y_i) x~_i,      H = sum_i omega_i p_i (1 - p_i) x~_i x~_i' + n damping I,

with the damping 0.01 of the authors' code. It depends on x0, and so does the promise made with it.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from typing import Any, Literal, NoReturn, get_args

import numpy as np
from numpy.typing import ArrayLike, NDArray

from rocerf.data.training_set import TrainingSet
from rocerf.errors import UnsupportedModelError
from rocerf.models.design import Design
from rocerf.models.logistic.curvature import Curvature
from rocerf.models.logistic.objective import LogisticObjective, Penalty
from rocerf.models.model import LinearModel, Refittable
from rocerf.models.options import one_of
from rocerf.types import Array, Places

SAMPLES = 10_000
WIDTH, WIDER, WIDEST = 0.1, 0.05, 5.0
C = 1e4
DAMPING = 0.01

#: Most points drawn for the authors' first accepted one, the last 500 spreads wide; theirs has no limit.
TRIES = 10_000
#: How many of them the model is asked about at a time.
BLOCK = 100

#: How the points are drawn that a stand-in is fitted to.
Sampling = Literal["widened", "authors"]
SAMPLINGS: tuple[Sampling, ...] = get_args(Sampling)


def checked_sampling(sampling: Any) -> Sampling:
    """The way of drawing, if it is one.

    >>> checked_sampling("authors")
    'authors'
    """
    found: Sampling = one_of(sampling, "sampling", SAMPLINGS)
    return found


@dataclass(frozen=True, eq=False)
class _Cloud:
    """Points (m, d) around a person, what the model says of them (m,), and how a logistic model is fitted to that."""

    points: Array
    accepted: NDArray[np.bool_]
    weights: Array
    design: Design
    intercept_penalty: float

    def theta(self) -> Array:
        """Parameters of the logistic model over the design row, (d + 1,)."""
        objective = LogisticObjective(
            self.points,
            self.accepted.astype(np.float64),
            self.weights,
            self.design,
            Penalty.fixed(C),
            self.intercept_penalty,
        )
        return objective.minimise(np.zeros(self.design.width)).theta


def _widened(model: Refittable, x0: Array, seed: int) -> _Cloud | None:
    """All points drawn wider until the model decides both ways; None if it does not as far as it was looked."""
    spread = np.asarray(model.train.spread)
    drawn = np.random.default_rng(seed).standard_normal((SAMPLES, len(x0)))
    width = WIDTH
    while True:
        points = x0 + width * drawn * spread
        accepted = model.score(points) >= 0
        if accepted.any() and not accepted.all():
            break
        width += WIDER
        if width > WIDEST:
            return None
    # The kernel widens with the cloud: measured in fixed units it would leave a handful of points in 60 dimensions.
    weights = np.exp(-((WIDTH * drawn) ** 2).sum(axis=1))
    return _Cloud(points, accepted, weights / weights.max(), Design(np.zeros(len(x0)), spread, True), 0.0)


def _as_the_authors(model: Refittable, x0: Array, seed: int) -> _Cloud | None:
    """One point drawn wider until it is accepted, the others beside x0; None if none is, or none is refused."""
    spread = np.asarray(model.train.spread)
    # With the same numbers for everybody the one accepted point would lie in the same direction for most, and a mean
    # over people would hang on it. A person's own numbers may not depend on who else is asked for: they come from x0.
    rng = np.random.default_rng([seed, *np.frombuffer((x0 + 0.0).tobytes(), np.uint32)])
    first = _first_accepted(model, x0, spread, rng)
    if first is None:
        return None
    drawn = np.vstack([first, WIDTH * rng.standard_normal((SAMPLES - 1, len(x0)))])
    points = x0 + drawn * spread
    accepted = model.score(points) >= 0
    # A batch may round otherwise than the few points among which the first was found.
    accepted[0] = True
    if accepted.all():
        return None
    # Standardised columns and liblinear's penalty, in which the place of the origin is felt.
    design = Design(np.asarray(model.train.centre), spread, True)
    return _Cloud(points, accepted, np.exp(-(drawn**2).sum(axis=1)), design, 1.0)


def _first_accepted(model: Refittable, x0: Array, spread: Array, rng: np.random.Generator) -> Array | None:
    """The first accepted step from x0, in spreads, of those drawn wider and wider; None after the most tries."""
    for begin in range(0, TRIES, BLOCK):
        widths = WIDTH + WIDER * np.arange(begin, begin + BLOCK)
        steps = widths[:, None] * rng.standard_normal((BLOCK, len(x0)))
        accepted = model.score(x0 + steps * spread) >= 0
        if accepted.any():
            return np.asarray(steps[int(np.argmax(accepted))])
    return None


class LocalLinearModel(LinearModel):
    """A logistic model of another model's decisions around one person; it cannot be retrained."""

    def __init__(self, train: TrainingSet, theta: Array, design: Design, class_counts: dict[Any, int]) -> None:
        self._train, self._theta, self._design, self._class_counts = train, theta, design, class_counts

    @classmethod
    def around(
        cls, model: Refittable, x0: Array, *, seed: int = 0, sampling: Sampling = "widened"
    ) -> LocalLinearModel | None:
        """The stand-in at one person (d,); None if the model decides one way as far as it was looked."""
        draw = _as_the_authors if checked_sampling(sampling) == "authors" else _widened
        cloud = draw(model, x0, seed)
        if cloud is None:
            return None
        train = model.train
        good = int(train.y.sum())
        counts = {train.favourable: good, train.unfavourable: len(train) - good}
        return cls(train, cloud.theta(), cloud.design, counts)

    @property
    def train(self) -> TrainingSet:
        """The rows whose deletion is feared: those of the model it stands in for."""
        return self._train

    @property
    def design(self) -> Design:
        """Columns in units of their spread, and an intercept."""
        return self._design

    @property
    def class_counts(self) -> dict[Any, int]:
        """Training rows of each label."""
        return self._class_counts

    @property
    def theta(self) -> Array:
        """Parameters over the design row, shape (d + 1,)."""
        return self._theta

    def score(self, X: ArrayLike) -> Array:
        """Scores of shape (P,)."""
        return self.design(np.asarray(X, dtype=np.float64)) @ self.theta

    @property
    def _objective(self) -> LogisticObjective:
        """The training rows' loss, with the damping as its penalty."""
        penalty = Penalty(per_model=len(self.train) * DAMPING)
        return LogisticObjective(self.train.X, self.train.y, self.train.weights, self.design, penalty, 1.0)

    def row_gradients(self, rows: slice | Places = slice(None)) -> Array:
        """``g_i`` of these training rows at the stand-in's parameters, shape (m, d + 1)."""
        return self._objective.row_gradients(self.theta, rows)

    def curvature(self) -> Curvature:
        """``H`` at the stand-in's parameters."""
        return Curvature(self._objective.gradient_and_hessian(self.theta)[1])

    def halfspaces(self, coefficients: Array) -> tuple[Array, Array]:
        """Slopes and constants in schema space."""
        return self.design.in_schema_space(coefficients)

    def without(self, ids: Iterable[Any]) -> NoReturn:
        """It has no training of its own."""
        raise UnsupportedModelError(
            "Expected a model that can be retrained, got a local linear stand-in; retrain the model it stands in for."
        )


class StandIns:
    """The stand-ins of one model, each fitted once: people are asked for when they are answered and when checked."""

    def __init__(self, model: Refittable, *, seed: int = 0, sampling: Sampling = "widened") -> None:
        self._model, self._seed, self._sampling = model, seed, checked_sampling(sampling)
        self._fitted: dict[bytes, LocalLinearModel | None] = {}

    def around(self, x0: Array) -> LocalLinearModel | None:
        """The stand-in at one person (d,), as :meth:`LocalLinearModel.around`."""
        name = x0.tobytes()
        if name not in self._fitted:
            self._fitted[name] = LocalLinearModel.around(self._model, x0, seed=self._seed, sampling=self._sampling)
        return self._fitted[name]
