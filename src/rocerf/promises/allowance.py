"""An allowance for the user's own solver, which stops short of the optimum that promises of exact retraining are about.

After the deletion S the user's own fit scores ``own_S(x)``, where the exact optimum scores ``exact_S(x)``. The error
``D_S(x) = own_S(x) - exact_S(x)`` is affine in x, so every refit that is measured is one more affine function, and

    value(x) = exact value(x) - safety max_j |D_j(x)|

is concave if the exact value is: the cut is the exact one less that many times the slope of the largest error. Errors
count on both sides, since where a solver stops is chance: held against refits that had no part in it, 16 errors on
their own side left up to 2 % of the scores uncovered however large the factor, on both sides at most 0.4 % at 2.

The errors are measured after random deletions and after some that the adversary picked. What the exact promise says
stays as it was; the allowance is measured, never proven.
"""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Callable, Mapping, Sequence
from itertools import product
from threading import RLock
from typing import Any

import numpy as np
from numpy.typing import NDArray

from rocerf.deletion.adversary import Adversary
from rocerf.deletion.random_deletions import random_deletions
from rocerf.errors import ModelError, OptionError
from rocerf.models.logistic.ensemble import LinearEnsemble
from rocerf.models.model import Classifier, ExactModel, LinearModel
from rocerf.models.sklearn.own_refit import OwnFit, OwnRefit
from rocerf.promises.promise import STATE_FORMAT, Promise, Reading
from rocerf.storage.state import State
from rocerf.types import Array
from rocerf.words import Said

#: The largest error measured at a point is taken this many times; more often where fits of the same rows differ, as
#: the fit that the user will make is then one that nobody has seen.
SAFETY, SAFETY_OF_RANDOM_FITS = 2.0, 3.0

#: Fits after each deletion where fits of the same rows differ.
STARTS = 3

#: Refits after random deletions, and as many after picked ones; together at least FEWEST, whatever they take.
REFITS, FEWEST = 8, 4

#: Numbers that all refits of one measurement may go through (rows x columns x iterations): half a minute or so.
WORK = 6e9


class Allowance:
    """What the user's own fits of a model were measured to be off the exact optimum, and the fits made so far.

    Examples
    --------
    >>> import rocerf
    >>> from sklearn.linear_model import LogisticRegression
    >>> data = rocerf.load_dataset("german")
    >>> train = rocerf.TrainingSet(data.train.X / data.train.spread, data.train.y)
    >>> model = rocerf.LogisticModel.from_sklearn(LogisticRegression(max_iter=1000).fit(train.X, train.y), train)
    >>> allowance = rocerf.Rocerf(model, k=4).promise.allowance
    >>> len(allowance.errors)  # today's fit, 8 random deletions, 8 picked ones
    17
    >>> bool((allowance.at(train.X)[0] > 0).all())
    True
    """

    def __init__(self, promise: ExactRetraining, model: ExactModel, seed: int) -> None:
        self.promise, self.model, self._seed = promise, model, seed
        self._errors: LinearEnsemble | None = None
        self._fits: dict[tuple[bytes, int], OwnFit | None] = {}
        self._varies: bool | None = None
        self._lock = RLock()

    def __getstate__(self) -> dict[str, Any]:
        return {name: value for name, value in self.__dict__.items() if name != "_lock"}  # a lock cannot be copied

    def __setstate__(self, state: dict[str, Any]) -> None:
        self.__dict__.update(state, _lock=RLock())

    @property
    def errors(self) -> LinearEnsemble:
        """The errors ``D_j`` measured, affine functions of schema space; measured at first use."""
        with self._lock:
            if self._errors is None:
                self._errors = self._measured()
            return self._errors

    @property
    def fits(self) -> list[OwnFit]:
        """The user's own fits made so far."""
        with self._lock:
            return [fit for fit in self._fits.values() if fit is not None]

    def largest_error(self) -> float:
        """The largest error measured, over the training rows."""
        X = self.model.train.X
        return max(float(np.abs(self.errors.scores(X[at : at + 8192])).max()) for at in range(0, len(X), 8192))

    def at(self, X: Array) -> tuple[Array, Array]:
        """What is taken off at points (P, d), ``safety max_j |D_j(x)|`` (P,), and its slopes (P, d)."""
        errors = self.errors
        scores = errors.scores(X).T
        largest = np.abs(scores).argmax(axis=1)
        found = scores[np.arange(len(X)), largest]
        return self.safety * np.abs(found), self.safety * np.sign(found)[:, None] * errors.slopes[largest]

    @property
    def varies(self) -> bool:
        """Whether the user's fits of the same rows differ."""
        if self._varies is None:
            own = self.model.own_refit
            self._varies = own is not None and own.varies
        return self._varies

    @property
    def safety(self) -> float:
        """How many times the largest error is taken off."""
        return SAFETY_OF_RANDOM_FITS if self.varies else SAFETY

    @property
    def assumption(self) -> Said:
        """What was measured about the estimator that retrains."""
        if self._errors is None:
            return Said.of("promises.own_fits_unmeasured")
        own = self.model.own_refit
        stopped = Said.of("promises.own_fits_stopped", fits=own.unconverged) if own and own.unconverged else ""
        fits, error = len(self._errors), self.largest_error()
        varied = Said.of("promises.own_fits_vary") if self.varies else ""
        return Said.of("promises.own_fits", fits=fits, error=error, safety=self.safety, stopped=stopped, varied=varied)

    def confirm(self, X: Array, worst_ids: Sequence[NDArray[Any] | None], delta: float = 0.0) -> Array:
        """Scores of points (P, d) by the user's own estimator, really fitted without each one's worst rows; (P,).

        NaN where it was not fitted: there are no worst rows, or the fits would take too long (the points with the
        smallest margins come first); and where none of the fits made for others refuses the point. Errors of fits that
        leave a point below ``delta`` join those measured, so that a point found again allows for them.
        """
        scores = np.full(len(X), np.nan)
        own = self.model.own_refit
        if own is None or self.promise.estimate or not len(X):
            return scores
        for members, rows in self._distinct(own, X, worst_ids):
            scores[members] = np.inf
            for start in self._starts:
                again = self._fit_without(own, rows, start)
                found = np.full(len(members), -np.inf) if again is None else again.scores(X[members])
                scores[members] = np.minimum(scores[members], found)
                if again is not None and (found < delta).any():
                    self._join(again, rows)
        return np.asarray(np.fmin(scores, self._refused(X, delta)))

    def _refused(self, X: Array, delta: float) -> Array:
        """Scores of points (P, d) by whichever fit made so far, for anybody, puts them lowest; NaN where none refuses.

        Every answer is held against all of these fits before it leaves: who falls by one is to be found another point.
        """
        lowest = np.full(len(X), np.nan)
        with self._lock:
            made = [(np.frombuffer(rows, np.intp), fit) for (rows, _), fit in self._fits.items() if fit is not None]
        for rows, fit in made:
            scores = fit.affine_scores(X)
            if (scores < delta).any():
                self._join(fit, rows)
                lowest = np.fmin(lowest, np.where(scores < delta, scores, np.nan))
        return lowest

    @property
    def _starts(self) -> range:
        return range(STARTS if self.varies else 1)

    def _distinct(
        self, own: OwnRefit, X: Array, worst_ids: Sequence[NDArray[Any] | None]
    ) -> list[tuple[list[int], NDArray[np.intp]]]:
        """Points by their worst rows, the smallest margins first, as many different deletions as may be refitted."""
        train = self.model.train
        if self.promise.proven:  # a proof knows no worst rows: an adversary does
            rows: list[NDArray[np.intp]] = list(self._adversary().attack_all(X).deleted_rows)
        else:
            rows = [np.empty(0, np.intp) if ids is None else train.positions(ids) for ids in worst_ids]
        margins = self.promise.known_exactly(X).foreseen - self.at(X)[0]
        found: dict[bytes, tuple[list[int], NDArray[np.intp]]] = {}
        for place in np.argsort(margins, kind="stable"):
            deleted = np.sort(rows[place])
            if len(deleted) and (deleted.tobytes() in found or len(found) < _affordable(own)):
                found.setdefault(deleted.tobytes(), ([], deleted))[0].append(int(place))
        return list(found.values())

    def _adversary(self) -> Adversary:
        return Adversary(self.model, self.promise.k, effort="quick", seed=self._seed)

    def _fit_without(self, own: OwnRefit, rows: NDArray[np.intp], start: int = 0) -> OwnFit | None:
        """The user's own fit without these rows, once for each deletion and start; None if there is none."""
        key = np.sort(rows).tobytes(), start
        with self._lock:
            if key in self._fits:
                return self._fits[key]
        try:
            again = own.without(rows, start)
        except ModelError:
            again = None
        with self._lock:  # two threads may have fitted it, from the same start: the first one stays
            return self._fits.setdefault(key, again)

    def _error(self, again: OwnFit, rows: NDArray[np.intp]) -> tuple[Array, float]:
        later = self.model.without(self.model.train.ids[rows]) if len(rows) else self.model
        slopes, constant = later.halfspaces(later.theta)
        if len(rows):
            self.promise.learn_of(rows, slopes, float(constant))
        return again.slopes - slopes, again.constant - float(constant)

    def _join(self, again: OwnFit, rows: NDArray[np.intp]) -> None:
        slopes, constant = self._error(again, rows)
        with self._lock:
            known = self.errors
            if not ((known.slopes == slopes).all(axis=1) & (known.constants == constant)).any():
                joined = np.vstack([known.slopes, slopes]), np.append(known.constants, constant)
                self._errors = LinearEnsemble(*joined, self.model.lift)

    def _measured(self) -> LinearEnsemble:
        """Errors of the fit in use, and of fits after random and picked deletions."""
        own, model = self.model.own_refit, self.model
        assert own is not None, "errors were neither saved nor can be measured"
        thetas = model.theta if model.deployed_theta is None else model.deployed_theta
        now, exact = model.halfspaces(thetas), model.halfspaces(model.theta)
        found = [(now[0] - exact[0], float(now[1]) - float(exact[1]))]
        deletions = self._deletions(min(2 * REFITS, _affordable(own)))
        for rows, start in product(deletions, self._starts):
            again = self._fit_without(own, rows, start)
            if again is not None:
                found.append(self._error(again, rows))
        slopes, constants = np.array([slopes for slopes, _ in found]), np.array([at for _, at in found])
        return LinearEnsemble(slopes, constants, model.lift)

    def _deletions(self, count: int) -> list[NDArray[np.intp]]:
        """Row numbers of deletions to measure after: half of them random, half the worst ones for some refused rows."""
        train, k = self.model.train, self.promise.k
        if k == 0 or self.promise.impossible() is not None:
            return []
        drawn = random_deletions(train, k, count - count // 2, seed=self._seed)
        rows = [train.positions(ids) for ids in drawn]
        scores = self.model.score(train.X)
        near = np.argsort(np.where(scores < 0, -scores, scores + np.ptp(scores)), kind="stable")[: count // 2]
        return [*rows, *self._adversary().attack_all(train.X[near]).deleted_rows]

    def arrays(self) -> dict[str, NDArray[Any]]:
        """The errors, for a file: whoever reads it may not have the estimator to measure them."""
        return {
            "own_slopes": self.errors.slopes,
            "own_constants": self.errors.constants,
            "own_fits_vary": np.array(self.varies),
        }

    def take(self, arrays: Mapping[str, NDArray[Any]]) -> None:
        """Take over errors that were saved."""
        self._errors = LinearEnsemble(arrays["own_slopes"], arrays["own_constants"], self.model.lift)
        if "own_fits_vary" in arrays:  # files of 0.1 do not say
            self._varies = bool(arrays["own_fits_vary"])


def _affordable(own: OwnRefit) -> int:
    """Refits of this estimator that one measurement may take; by its size, so that answers do not depend on clocks."""
    return max(FEWEST, int(WORK / own.work))


class ExactRetraining(Promise):
    """A promise about exact retraining, less an allowance where the user's own estimator is what retrains the model.

    Whoever comes below says what the exact promise is (``read_exactly``, ``check_exactly``); what is taken off is taken
    off here. ``estimate`` marks one that picked deletions are known to break: it is not held against fits after those.
    ``one_design`` marks one whose mathematics is about preprocessing that stays as it is when rows are deleted.
    """

    estimate: bool = False
    one_design: bool = False
    allowance: Allowance | None = None

    def __init__(self, model: Classifier, k: int) -> None:
        super().__init__(model, k)
        if self.one_design and model.preprocessing == "refitted":
            raise OptionError(
                f"Expected a pipeline with preprocessing='frozen' for the promise {self.name!r}, whose mathematics is "
                "about preprocessing that stays as it is, got preprocessing='refitted'; use the promise 'retrained' or "
                "'simulated', or give it model.frozen."
            )
        if self.one_design and isinstance(model, ExactModel) and model.kinked:
            raise OptionError(
                f"Expected a model with an L2 penalty for the promise {self.name!r}, whose mathematics is about an "
                "objective without kinks, got one with an L1 part, which takes coefficients to 0 and back as rows go; "
                "use the promise 'retrained' or 'simulated', which retrain it exactly."
            )

    @abstractmethod
    def read_exactly(self, X: Array, target: float | Array) -> Reading:
        """The promise about exact retraining, as :meth:`read`."""

    @abstractmethod
    def check_exactly(self, X: Array, delta: float, rows: Any) -> Array:
        """The promise about exact retraining, as :meth:`check`."""

    def known_exactly(self, X: Array) -> Reading:
        """What the promise about exact retraining foresees at points (P, d) without searching on."""
        return self.read_exactly(X, -np.inf)

    def learn_of(self, rows: NDArray[np.intp], slopes: Array, constant: float) -> None:
        """A model was retrained exactly without these rows, elsewhere: a promise that keeps such models keeps it."""
        return

    def allow_for_own_fits(self, seed: int) -> None:
        """Measure, when it is first needed, by how much the user's own fits are off, and take that off."""
        model = self.model
        if self.allowance is None and isinstance(model, ExactModel) and model.own_refit is not None:
            self.allowance = Allowance(self, model, seed)

    def less_allowance(
        self, X: Array, exactly: Callable[[Array, float | Array], Reading], target: float | Array = -np.inf
    ) -> Reading:
        """A reading of the exact promise at points (P, d), less what is allowed for there."""
        if self.allowance is None:
            return exactly(X, target)
        size, slopes = self.allowance.at(X)
        reading = exactly(X, target + size)
        hopeless = np.isneginf(reading.values)[:, None]
        return Reading(
            reading.values - size,
            np.where(hopeless, reading.slopes, reading.slopes - slopes),
            reading.worst_ids,
            reading.foreseen - size,
            reading.retrainings,
        )

    def read(self, X: Array, target: float | Array = -np.inf) -> Reading:
        """The exact promise less the allowance, and its cut, at each point."""
        return self.less_allowance(X, self.read_exactly, target)

    def rises_exactly(self, directions: Array) -> Array:
        """By how much, at least, the promise about exact retraining rises along directions (m, D); (m,)."""
        return np.full(len(directions), -np.inf)

    def rises_by(self, directions: Array) -> Array:
        """By how much it rises, less what the allowance may."""
        least = self.rises_exactly(directions)
        if isinstance(self.model, LinearModel):  # deleting nothing is one of the deletions
            least = np.minimum(least, (directions @ self.known_cuts()[0].T).min(axis=1))
        if self.allowance is not None:
            steepest = np.abs(directions @ self.allowance.errors.slopes.T).max(axis=1)
            least = least - self.allowance.safety * steepest
        return np.asarray(least)

    def check(self, X: Array, X0: Array, delta: float = -np.inf, rows: Any = None) -> Array:
        """The exact promise less the allowance, none above what any fit of the user's own made so far says; (P,).

        Of an estimate, which picked deletions are known to break, the fits after those say nothing.
        """
        found = self.check_exactly(X, delta, rows)
        if isinstance(self.model, ExactModel) and self.model.kinked:  # elsewhere retraining has no one outcome
            found = np.where(self.model.determined(X), found, -np.inf)
        if self.allowance is None:
            return found
        fits = [] if self.estimate else self.allowance.fits
        own = [fit.affine_scores(X) for fit in fits]
        return np.asarray(np.min([found - self.allowance.at(X)[0], *own], axis=0))

    def confirm(self, X: Array, values: Array, worst_ids: Sequence[NDArray[Any] | None], delta: float) -> Array | None:
        """The values less the errors that joined meanwhile; below ``delta`` where the user's own fit refuses."""
        if self.allowance is None:
            return None
        before = self.allowance.at(X)[0]
        scores = self.allowance.confirm(X, worst_ids, delta)
        return np.where(scores < delta, scores, values - (self.allowance.at(X)[0] - before))

    def sentence(self, delta: float) -> str:
        """The exact promise's words, and what is allowed for."""
        said = super().sentence(delta)
        return said if self.allowance is None else Said.of("promises.with_allowance", sentence=said)

    @property
    def assumptions(self) -> tuple[str, ...]:
        """What was measured about the user's own fits, where they are allowed for."""
        return () if self.allowance is None else (self.allowance.assumption,)

    def state(self) -> State:
        """The errors measured, where there is an allowance."""
        return State(STATE_FORMAT, {}, {} if self.allowance is None else self.allowance.arrays())

    def restore(self, state: State) -> None:
        """Take over the errors, though the estimator may not be at hand."""
        if "own_slopes" in state.arrays:
            assert isinstance(self.model, ExactModel)
            self.allowance = self.allowance or Allowance(self, self.model, 0)
            self.allowance.take(state.arrays)
