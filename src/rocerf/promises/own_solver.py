"""A promise about exact retraining, with an allowance for the user's own solver, which stops short of the optimum.

After the deletion S the user's own fit scores ``own_S(x)``, where the exact optimum scores ``exact_S(x)``. The error
``D_S(x) = own_S(x) - exact_S(x)`` is affine in x, so every refit that is measured is one more affine function, and

    value(x) = inner(x) - SAFETY max_j |D_j(x)|

is concave if the inner promise is: the cut is the inner one less SAFETY times the slope of the largest error. Errors
count on both sides, since where a solver stops is chance: held against refits that had no part in it, 16 errors on
their own side left up to 2 % of the scores uncovered however large the factor, on both sides at most 0.4 % at 2.

The errors are measured after random deletions and after some that the adversary picked. What the exact promise says
stays as it was; the allowance is measured, never proven.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from threading import RLock
from typing import Any

import numpy as np
from numpy.typing import NDArray

from rocerf.deletion.adversary import Adversary
from rocerf.deletion.random_deletions import random_deletions
from rocerf.errors import ModelError
from rocerf.models.logistic.ensemble import LinearEnsemble
from rocerf.models.model import ExactModel
from rocerf.models.sklearn.own_refit import OwnFit, OwnRefit
from rocerf.promises.certified import Certified
from rocerf.promises.first_order import FirstOrder
from rocerf.promises.promise import Promise, Reading, Rereadable, Wording
from rocerf.promises.retrained import Retrained
from rocerf.types import Array

#: The largest error measured at a point is taken this many times.
SAFETY = 2.0

#: Refits after random deletions, and as many after picked ones; together at least FEWEST, whatever they take.
REFITS, FEWEST = 8, 4

#: Numbers that all refits of one measurement may go through (rows x columns x iterations): half a minute or so.
WORK = 6e9


def own_solver(inner: Promise, *, seed: int = 0) -> Promise:
    """The promise with an allowance for the user's own solver, where that is what retrains its model."""
    model = getattr(inner, "model", None)
    if not isinstance(inner, Retrained | Certified | FirstOrder) or not isinstance(model, ExactModel):
        return inner
    return _kind(inner)(inner, seed=seed) if model.own_refit is not None else inner


def own_solver_from_arrays(inner: Promise, arrays: dict[str, NDArray[Any]]) -> Promise:
    """The promise with the errors that were saved, though the estimator may not be at hand; as it is, if none were."""
    if "own_slopes" not in arrays or isinstance(inner, OwnSolver):
        return inner
    made = _kind(inner)(inner)
    made.from_arrays(arrays)
    return made


def without_allowance(promise: Promise) -> Promise:
    """The promise about exact retraining inside, or the promise itself."""
    return promise.inner if isinstance(promise, OwnSolver) else promise


class OwnSolver:
    """Another promise about a model that its user retrains, less what their solver was measured to be off.

    Examples
    --------
    >>> import rocerf
    >>> from sklearn.linear_model import LogisticRegression
    >>> data = rocerf.load_dataset("german")
    >>> train = rocerf.TrainingSet(data.train.X / data.train.spread, data.train.y)
    >>> model = rocerf.LogisticModel.from_sklearn(LogisticRegression(max_iter=1000).fit(train.X, train.y), train)
    >>> promise = rocerf.Rocerf(model, k=4).promise
    >>> len(promise.errors)  # today's fit, 8 random deletions, 8 picked ones
    17
    >>> bool((promise.allowance(train.X) > 0).all())
    True
    """

    def __init__(self, inner: Promise, *, seed: int = 0) -> None:
        model = getattr(inner, "model", None)
        assert isinstance(model, ExactModel)
        self.inner, self.model = inner, model
        self._seed = seed
        self._errors: LinearEnsemble | None = None
        self._fits: dict[bytes, OwnFit | None] = {}
        self._lock = RLock()

    def __getstate__(self) -> dict[str, Any]:
        return {name: value for name, value in self.__dict__.items() if name != "_lock"}  # a lock cannot be copied

    def __setstate__(self, state: dict[str, Any]) -> None:
        self.__dict__.update(state, _lock=RLock())

    @property
    def k(self) -> int:
        """The number of deletions it speaks of."""
        return self.inner.k

    @property
    def concave(self) -> bool:
        """As the inner promise."""
        return self.inner.concave

    @property
    def smooth(self) -> bool:
        """As the inner promise."""
        return self.inner.smooth

    @property
    def searches(self) -> tuple[str, ...]:
        """Those of the inner promise."""
        return self.inner.searches

    @property
    def wording(self) -> Wording:
        """The inner promise's words, and what is allowed for."""
        said = self.inner.wording
        return Wording(
            said.name,
            f"{said.sentence}; the margin includes an allowance for the estimator that really retrains the model, "
            "which stops short of the exact optimum: that part is measured, not proven",
            proven=said.proven,
        )

    @property
    def assumptions(self) -> tuple[str, ...]:
        """Those of the inner promise, and what was measured about the estimator that retrains."""
        measured = (
            "by how much the user's own fits are off the exact optimum is measured when it is first needed"
            if self._errors is None
            else f"in {len(self._errors)} fits the user's own estimator was measured to score training rows up to "
            f"{self.largest_error():.2g} off the exact optimum; {SAFETY:g} times the largest error measured at a point "
            f"is taken off its margin{self._stopped_early()}"
        )
        return (*self.inner.assumptions, measured)

    def _stopped_early(self) -> str:
        own = self.model.own_refit
        return f"; {own.unconverged} of its fits ended before they converged" if own and own.unconverged else ""

    @property
    def errors(self) -> LinearEnsemble:
        """The errors ``D_j`` measured, affine functions of schema space; measured at first use."""
        with self._lock:
            if self._errors is None:
                self._errors = self._measured()
            return self._errors

    def largest_error(self) -> float:
        """The largest error measured, over the training rows."""
        X = self.model.train.X
        return max(float(np.abs(self.errors.scores(X[at : at + 8192])).max()) for at in range(0, len(X), 8192))

    def allowance(self, X: Array) -> Array:
        """What is taken off the inner promise's value at points (P, d): ``SAFETY max_j |D_j(x)|``, (P,)."""
        return self._allowed(X)[0]

    def _allowed(self, X: Array) -> tuple[Array, Array]:
        """The allowance (P,) and its slopes (P, d)."""
        errors = self.errors
        scores = errors.scores(X).T
        largest = np.abs(scores).argmax(axis=1)
        found = scores[np.arange(len(X)), largest]
        return SAFETY * np.abs(found), SAFETY * np.sign(found)[:, None] * errors.slopes[largest]

    def _lowered(self, reading: Reading, allowed: tuple[Array, Array]) -> Reading:
        size, slopes = allowed
        hopeless = np.isneginf(reading.values)[:, None]
        return Reading(
            reading.values - size,
            np.where(hopeless, reading.slopes, reading.slopes - slopes),
            reading.worst_ids,
            reading.foreseen - size,
            reading.retrainings,
        )

    def known_cuts(self) -> tuple[Array, Array]:
        """Those of the inner promise: valid for the lower value too."""
        return self.inner.known_cuts()

    def read(self, X: Array, target: float | Array = -np.inf) -> Reading:
        """The inner promise less the allowance, and its cut, at each point."""
        allowed = self._allowed(X)
        inner = self.inner.read(X, target + allowed[0]) if isinstance(self.inner, Retrained) else self.inner.read(X)
        return self._lowered(inner, allowed)

    def margins_at(self, X: Array, delta: float = -np.inf, rows: Any = None) -> Array:
        """The inner promise less the allowance, none above what any fit of the user's own made so far says; (P,).

        Of an estimate, which picked deletions are known to break, the fits after those say nothing.
        """
        inner = self.inner
        found = inner.margins_at(X, delta, rows) if isinstance(inner, Rereadable) else inner.read(X).foreseen
        with self._lock:
            fits = [] if isinstance(inner, FirstOrder) else [fit for fit in self._fits.values() if fit is not None]
        own = [X @ fit.slopes + fit.constant for fit in fits]
        return np.asarray(np.min([found - self.allowance(X), *own], axis=0))

    def impossible(self) -> str | None:
        """Why nobody can be given the inner promise, if that is so."""
        return self.inner.impossible()

    def confirm(self, X: Array, worst_ids: Sequence[NDArray[Any] | None], delta: float = 0.0) -> Array:
        """Scores of points (P, d) by the user's own estimator, really fitted without each one's worst rows; (P,).

        NaN where it was not fitted: the promise names no rows, is an estimate that its worst rows are known to break,
        or the fits would take too long (the points with the smallest margins come first). Errors of fits that leave a
        point below ``delta`` join those measured, so that a point found again allows for them.
        """
        scores = np.full(len(X), np.nan)
        own = self.model.own_refit
        if own is None or isinstance(self.inner, FirstOrder) or not len(X):
            return scores
        for members, rows in self._distinct(own, X, worst_ids):
            again = self._fit_without(own, rows)
            scores[members] = -np.inf if again is None else again.scores(X[members])
            if again is not None and (scores[members] < delta).any():
                self._join(again, rows)
        return scores

    def _distinct(
        self, own: OwnRefit, X: Array, worst_ids: Sequence[NDArray[Any] | None]
    ) -> list[tuple[list[int], NDArray[np.intp]]]:
        """Points by their worst rows, the smallest margins first, as many different deletions as may be refitted."""
        train = self.model.train
        if isinstance(self.inner, Certified):  # a proof knows no worst rows: an adversary does
            rows: list[NDArray[np.intp]] = list(self._adversary().attack_all(X).deleted_rows)
        else:
            rows = [np.empty(0, np.intp) if ids is None else train.positions(ids) for ids in worst_ids]
        found: dict[bytes, tuple[list[int], NDArray[np.intp]]] = {}
        for place in np.argsort(self._margins(X), kind="stable"):
            deleted = np.sort(rows[place])
            if len(deleted) and (deleted.tobytes() in found or len(found) < _affordable(own)):
                found.setdefault(deleted.tobytes(), ([], deleted))[0].append(int(place))
        return list(found.values())

    def _margins(self, X: Array) -> Array:
        """What is foreseen at points (P, d) without searching on."""
        inner = self.inner.remembered(X) if isinstance(self.inner, Retrained) else self.inner.read(X)
        return inner.foreseen - self.allowance(X)

    def _adversary(self) -> Adversary:
        return Adversary(self.model, self.k, effort="quick", seed=self._seed)

    def _fit_without(self, own: OwnRefit, rows: NDArray[np.intp]) -> OwnFit | None:
        """The user's own fit without these rows, once for each deletion; None if there is none."""
        key = np.sort(rows).tobytes()
        with self._lock:
            if key in self._fits:
                return self._fits[key]
        try:
            again = own.without(rows)
        except ModelError:
            again = None
        with self._lock:  # two threads may have fitted it, from the same start: the first one stays
            return self._fits.setdefault(key, again)

    def _error(self, again: OwnFit, rows: NDArray[np.intp]) -> tuple[Array, float]:
        later = self.model.without(self.model.train.ids[rows]) if len(rows) else self.model
        slopes, constant = later.halfspaces(later.theta)
        return again.slopes - slopes, again.constant - float(constant)

    def _join(self, again: OwnFit, rows: NDArray[np.intp]) -> None:
        slopes, constant = self._error(again, rows)
        with self._lock:
            known = self.errors
            if not ((known.slopes == slopes).all(axis=1) & (known.constants == constant)).any():
                self._errors = LinearEnsemble(np.vstack([known.slopes, slopes]), np.append(known.constants, constant))

    def _measured(self) -> LinearEnsemble:
        """Errors of the fit in use, and of fits after random and picked deletions."""
        own, model = self.model.own_refit, self.model
        assert own is not None, "errors were neither saved nor can be measured"
        thetas = model.theta if model.deployed_theta is None else model.deployed_theta
        now, exact = model.halfspaces(thetas), model.halfspaces(model.theta)
        found = [(now[0] - exact[0], float(now[1]) - float(exact[1]))]
        for rows in self._deletions(min(2 * REFITS, _affordable(own))):
            again = self._fit_without(own, rows)
            if again is not None:
                found.append(self._error(again, rows))
        return LinearEnsemble(np.array([slopes for slopes, _ in found]), np.array([at for _, at in found]))

    def _deletions(self, count: int) -> list[NDArray[np.intp]]:
        """Row numbers of deletions to measure after: half of them random, half the worst ones for some refused rows."""
        train = self.model.train
        if self.k == 0 or self.inner.impossible() is not None:
            return []
        drawn = random_deletions(train, self.k, count - count // 2, seed=self._seed)
        rows = [train.positions(ids) for ids in drawn]
        scores = self.model.score(train.X)
        near = np.argsort(np.where(scores < 0, -scores, scores + np.ptp(scores)), kind="stable")[: count // 2]
        return [*rows, *self._adversary().attack_all(train.X[near]).deleted_rows]

    def to_arrays(self) -> dict[str, NDArray[Any]]:
        """The errors, for a file: whoever reads it may not have the estimator to measure them."""
        return {"own_slopes": self.errors.slopes, "own_constants": self.errors.constants}

    def from_arrays(self, arrays: dict[str, NDArray[Any]]) -> None:
        """Take over errors that were saved."""
        if "own_slopes" in arrays:
            self._errors = LinearEnsemble(arrays["own_slopes"], arrays["own_constants"])


class LearningOwnSolver(OwnSolver):
    """Of a promise that remembers what it found."""

    def remembered(self, X: Array) -> Reading:
        """What the inner promise remembers, less the allowance."""
        assert isinstance(self.inner, Retrained)
        return self._lowered(self.inner.remembered(X), self._allowed(X))

    @property
    def again(self) -> int:
        """As the inner promise."""
        assert isinstance(self.inner, Retrained)
        return self.inner.again

    def search_on(self, X: Array, target: float, number: int) -> Reading:
        """A further search of the inner promise, less the allowance."""
        assert isinstance(self.inner, Retrained)
        allowed = self._allowed(X)
        return self._lowered(self.inner.search_on(X, target + allowed[0], number), allowed)


class HeldOwnSolver(OwnSolver):
    """Of a promise that is cheap to read near a point."""

    def held_at(self, X: Array) -> Callable[[Array], Reading]:
        """The inner promise as it is at X (P, d), less the allowance where it is asked."""
        assert isinstance(self.inner, FirstOrder)
        held = self.inner.held_at(X)
        return lambda points: self._lowered(held(points), self._allowed(points))


def _kind(inner: Promise) -> type[OwnSolver]:
    """What the promise can do besides being read, the one around it can, too."""
    if isinstance(inner, Retrained):
        return LearningOwnSolver
    return HeldOwnSolver if isinstance(inner, FirstOrder) else OwnSolver


def _affordable(own: OwnRefit) -> int:
    """Refits of this estimator that one measurement may take; by its size, so that answers do not depend on clocks."""
    return max(FEWEST, int(WORK / own.work))
