"""The promise by simulation: accepted by nearly all models really retrained after random deletions.

Whatever can be trained again can be asked this way; for networks it is the only honest way, since a new initialisation
moves the score more than a few deleted rows do. Retrained models are simulated in three groups that share nothing:

* *shaping*: their mean and spread at x make the value, ``value(x) = mean_m f_m(x) - factor * sd_m f_m(x)``, so the
  margin follows the spread at x (or ``f(x) - factor``, one margin for everybody);
* *choosing*: the factor is the smallest at which the recourses of refused training rows are accepted by the share asked
  for, by a bound of nominally 95 % over these models at each factor tried, both as counted and as expected from the
  mean and spread of the scores (counting alone would take 60 models that all accept for proof of 99 %);
* *checking*: what is reported. They are looked at once, when the points stand.

The bound reported is Clopper and Pearson's. For one person the trials are the checking models, independent given the
point. For the batch, people share the models, so their pairs are not independent: one person is drawn (by seed) for
each model, and those trials are.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field, replace
from functools import cached_property
from typing import Literal

import numpy as np

from rocerf.data.columns import is_number
from rocerf.deletion.random_deletions import random_deletion_sizes, random_deletions
from rocerf.errors import DidNotTrainError, NotConvergedError, OptionError
from rocerf.models.model import RETRAININGS, Ensemble, LinearModel, Refittable, Retraining, Smooth, SmoothEnsemble
from rocerf.models.options import positive_whole
from rocerf.promises.held_out import HeldOut, percent
from rocerf.promises.plain import Plain
from rocerf.promises.promise import Promise, Reading, Wording, vanishing_class
from rocerf.types import Array, Progress

#: Finds recourse under a promise for people (P, d): points (P, d), missing where there is none.
Solve = Callable[[Promise, Array], Array]

#: Share of the training rows deleted at most, where the user does not say.
DELETIONS = "5%"

#: Refused training rows whose recourse decides the factor; fewer where each recourse is a search.
PEOPLE, PEOPLE_SEARCHED = 200, 40

#: One-sided normal quantile for 95 %.
ONE_SIDED = 1.645

#: Factors tried: 0, FIRST, doubled up to so often; then the interval is halved so often.
FIRST, DOUBLINGS, HALVINGS = 0.5, 6, 4

#: Sets the seeds of simulated models apart from everybody else's.
STREAM = 0x51A7ED

#: Scores of retrained models computed at a time.
BLOCK = 200_000


@dataclass(frozen=True)
class Simulated:
    """Options of the promise; give it to :class:`rocerf.Rocerf` as ``promise=Simulated(...)``.

    Parameters
    ----------
    validity : float
        Share of retrained models that should accept a recourse.
    retraining : "fresh" or "warm"
        From a new initialisation, or on from the present parameters.
    margin : "spread" or "fixed"
        Whether the margin follows the spread of the retrained models at x, or is one number for everybody.
    shaping, choosing, checking : int
        Retrained models in each group; more checking models make the reported bound tighter.
    confidence : float
        Of the reported lower bounds.

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
    margin: Literal["spread", "fixed"] = "spread"
    shaping: int = 40
    choosing: int = 60
    checking: int = 100
    confidence: float = 0.95

    def __post_init__(self) -> None:
        for name in ("validity", "confidence"):
            if not is_number(getattr(self, name)) or not 0.0 < getattr(self, name) < 1.0:
                raise OptionError(
                    f"Expected {name} between 0 and 1, got {getattr(self, name)!r}; use for example 0.99."
                )
        if self.retraining not in RETRAININGS or self.margin not in ("spread", "fixed"):
            raise OptionError(
                "Expected retraining to be fresh or warm and margin to be spread or fixed, "
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
        return SimulatedPromise(model, k, self, seed)


@dataclass(eq=False)
class SimulatedPromise:
    """``value(x) >= 0`` at the factor chosen; made by :meth:`Simulated.about`, and idle until it is asked."""

    model: Refittable
    k: int
    options: Simulated
    seed: int
    #: Chosen by :meth:`choose`; until then the promise cannot be read.
    factor: float | None = None
    _models: Ensemble | None = field(default=None, repr=False)

    @property
    def wording(self) -> Wording:
        """The sentence states what was aimed at; how points fared is in the result's ``held_out``."""
        o = self.options
        how = "from a new start" if o.retraining == "fresh" else "on from its present parameters"
        return Wording(
            "simulated",
            f"was chosen so that, on average over people, at least {percent(o.validity)} of models accept it that are "
            f"really retrained, {how}, after "
            "random deletions of up to {k} training {rows}; this was simulated, not proven, and says nothing about "
            "deletions picked to do harm",
        )

    @property
    def smooth(self) -> bool:
        """Whether the retrained models have slopes, as the model has."""
        return isinstance(self.model, Smooth)

    @property
    def searches(self) -> tuple[str, ...]:
        """None: deletions are drawn, not searched for."""
        return ()

    @property
    def assumptions(self) -> tuple[str, ...]:
        """The random deletions, and how many models were used for what."""
        o = self.options
        return (
            f"deletions are uniformly random sets of 0 to {self.k} rows, all sizes equally likely",
            f"{o.shaping} retrained models shape the margin, {o.choosing} others choose its size, "
            f"{o.checking} others check the points",
        )

    @property
    def models(self) -> Ensemble:
        """All simulated models, trained at first use."""
        self.simulate()
        assert self._models is not None
        return self._models

    def simulate(self, progress: Progress | None = None) -> None:
        """Retrain the models of all three groups, once."""
        if self._models is None:
            self._models = self._retrained(progress)

    def _retrained(self, progress: Progress | None) -> Ensemble:
        o = self.options
        count = o.shaping + o.choosing + o.checking
        # A stream of its own: whoever evaluates with the same seed must not meet these models again.
        stream = int(np.random.SeedSequence([self.seed, STREAM]).generate_state(1)[0])
        sizes = random_deletion_sizes(self.k, count, seed=stream)
        deletions = [
            random_deletions(self.model.train, int(size), 1, seed=stream, first=trial)[0]
            for trial, size in enumerate(sizes)
        ]
        return self.model.refitted(deletions, retraining=o.retraining, seed=stream, progress=progress)

    def to_arrays(self) -> dict[str, Array]:
        """The factor chosen and, where they can be written as arrays, the simulated models."""
        if self.factor is None:
            return {}
        models: list[Array] = [] if self._models is None else self._models.arrays()
        return {"factor": np.array(self.factor), **{f"model_{i}": values for i, values in enumerate(models)}}

    def from_arrays(self, arrays: Mapping[str, Array]) -> None:
        """Take over what :meth:`to_arrays` gave; models that could not be written are simulated again when asked."""
        self.factor = float(arrays["factor"])
        stack = [arrays[f"model_{i}"] for i in range(len(arrays) - 1)]
        if stack:
            self._models = self.model.restored(stack)

    @cached_property
    def _shaping(self) -> Ensemble:
        return self.models[: self.options.shaping]

    @property
    def _choosing(self) -> Ensemble:
        return self.models[self.options.shaping : self.options.shaping + self.options.choosing]

    @property
    def _checking(self) -> Ensemble:
        return self.models[self.options.shaping + self.options.choosing :]

    @property
    def concave(self) -> bool:
        """For linear models: their mean is linear and their spread convex."""
        return isinstance(self.model, LinearModel)

    def known_cuts(self) -> tuple[Array, Array]:
        """The model in force, of a linear model."""
        return Plain(self.model).known_cuts()

    def read(self, X: Array, target: float = -np.inf) -> Reading:
        """The value and, where the models have slopes, its slope; never above the model as it is."""
        if self.factor is None:
            raise OptionError("Expected the margin to be chosen before the promise is read; call choose first.")
        plain = Plain(self.model).read(X)
        if self.options.margin == "fixed":
            return Reading(plain.values - self.factor, plain.slopes)
        size = max(1, BLOCK // self.options.shaping)
        parts = [self._read_block(X[first : first + size]) for first in range(0, len(X), size)]
        values = np.concatenate([part[0] for part in parts]) if parts else np.empty(0)
        slopes = np.concatenate([part[1] for part in parts]) if parts else np.empty(X.shape)
        return Reading(values, slopes).floored_by(plain)

    def _read_block(self, X: Array) -> tuple[Array, Array]:
        assert self.factor is not None
        pullback = None
        if isinstance(self._shaping, SmoothEnsemble):
            scores, pullback = self._shaping.scores_and_pullback(X)
        else:
            scores = self._shaping.scores(X)
        count = len(scores)
        mean, spread = scores.mean(axis=0), np.maximum(scores.std(axis=0, ddof=1), 1e-12)
        values = mean - self.factor * spread
        if pullback is None:
            return values, np.full(X.shape, np.nan)
        weights = 1.0 / count - self.factor * (scores - mean) / ((count - 1) * spread)
        return values, pullback(weights)

    def impossible(self) -> str | None:
        """If k deletions can remove a whole class, there may be no model."""
        return vanishing_class(self.model, self.k)

    def choose(self, solve: Solve) -> None:
        """Set the smallest factor at which refused training rows' recourses reach the validity asked for."""
        X0 = self._refused()
        if not len(X0):
            raise NotConvergedError(
                "Expected training rows that the model refuses, whose recourse decides the margin, got none; "
                "give the promise a model that refuses somebody."
            )
        unit = 1.0 if self.options.margin == "spread" else float(np.std(self.model.score(self.model.train.X)))
        tried = [0.0, *(FIRST * unit * 2.0**i for i in range(DOUBLINGS))]
        low, reached = 0.0, None
        for high in tried:
            verdict = self._reaches(high, X0, solve)
            if verdict is not False:
                reached = high if verdict else None
                break
            low = high
        for _ in range(HALVINGS if high > low else 0):
            middle = (low + high) / 2
            verdict = self._reaches(middle, X0, solve)
            reached = middle if verdict else reached
            low, high = (middle, high) if verdict is False else (low, middle)
        if reached is None:
            raise NotConvergedError(self._why_not(high, len(X0), unit))
        self.factor = reached

    def _why_not(self, tried: float, people: int, unit: float) -> str:
        if tried == 0.0:
            return (
                "Expected recourse for some of the training rows that the model refuses, found none for any of "
                f"{people}; widen the bounds of the schema, or look at the model."
            )
        return (
            f"Expected a margin at which {percent(self.options.validity)} of retrained models accept the recourses, "
            f"found none up to {tried:g} {'standard deviations' if unit == 1.0 else 'in score'}; ask for a lower "
            "validity or fewer deletions, let more models choose (choosing=...), or widen the bounds of the schema."
        )

    def _refused(self) -> Array:
        train = self.model.train
        refused = np.flatnonzero(self.model.predict(train.X) == 0)
        most = PEOPLE if self.smooth else PEOPLE_SEARCHED
        X: Array = train.X[np.sort(np.random.default_rng(self.seed).permutation(refused)[:most])]
        return X

    def _reaches(self, factor: float, X0: Array, solve: Solve) -> bool | None:
        """Whether the validity is reached at this factor; None if nobody can be answered there."""
        points = solve(self.at(factor), X0)
        answered = points[np.isfinite(points).all(axis=1)]
        if not len(answered):
            return None
        scores = self._choosing.scores(answered)
        return min(_counted_validity(scores), _expected_validity(scores)) >= self.options.validity

    def at(self, factor: float) -> SimulatedPromise:
        """The same promise with this factor."""
        return replace(self, factor=factor, _models=self.models)

    def check(self, points: Array) -> HeldOut:
        """How points (P, d) fare with the models kept for checking."""
        scores = self._checking.scores(points)
        if not np.isfinite(scores).all():
            raise DidNotTrainError("Expected finite scores from retrained models, got infinite ones or NaN.")
        accepted = scores >= 0
        drawn = np.random.default_rng(self.seed).integers(len(points), size=len(accepted))
        return HeldOut(
            accepted=accepted.sum(axis=0),
            by_model=accepted.mean(axis=1),
            drawn=int(accepted[np.arange(len(accepted)), drawn].sum()),
            confidence=self.options.confidence,
        )


def _counted_validity(scores: Array) -> float:
    """Lower bound of the share accepted, from the share of points that each model accepts; scores (M, P)."""
    by_model = (scores >= 0).mean(axis=1)
    return float(by_model.mean() - ONE_SIDED * by_model.std(ddof=1) / np.sqrt(len(by_model)))


def _expected_validity(scores: Array) -> float:
    """The same from normal scores (M, P): at each point ``mean / sd``, less what M models leave open about it."""
    from scipy.special import ndtr

    distance = scores.mean(axis=0) / np.maximum(scores.std(axis=0, ddof=1), 1e-12)
    error = np.sqrt((1.0 + distance**2 / 2.0) / len(scores))
    return float(ndtr(distance - ONE_SIDED * error).mean())
