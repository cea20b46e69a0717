"""The proven promise: the point stays accepted after *every* deletion of at most k rows.

The certificate (:mod:`rocerf.deletion.certificate`, proof in docs/certificate.md) gives for any point a lower bound of
its score over all those deletions, each followed by exact retraining. It is made once for each (model, k); asking it
for a person is cheap. The bound is a concave function of x, so it is a promise like any other: value and cut. Where the
proof does not close it abstains, with the reason.
"""

from __future__ import annotations

from dataclasses import replace
from functools import cached_property
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from rocerf.data.columns import is_frame
from rocerf.deletion.certificate import Certificate, Options, certify_model, largest_k_that_closes
from rocerf.errors import UnsupportedModelError
from rocerf.models.model import ExactModel
from rocerf.promises.plain import Plain
from rocerf.promises.promise import Reading, Wording, refuse_refitted_preprocessing, vanishing_class
from rocerf.types import Array, Progress

if TYPE_CHECKING:
    import pandas as pd


#: Rows up to which an abstention also looks for a smaller k that closes; beyond, ask :meth:`Certified.largest_k`.
SMALL = 3000


class Certified:
    """Proven for all deletions of at most k rows, or an abstention.

    Examples
    --------
    >>> import rocerf
    >>> data = rocerf.load_dataset("german")
    >>> model = rocerf.LogisticModel.fit(data.train)
    >>> promise = Certified(model, k=1)
    >>> promise.certificate.closed
    True
    >>> point = data.test.X[:1]
    >>> bound = promise.bound(point)[0]
    >>> attack = rocerf.Adversary(model, k=1, effort="thorough").attack(point[0])
    >>> bool(bound <= attack.score)
    True
    """

    wording = Wording(
        "certified",
        "is proven to stay accepted, with a score of at least {delta}, after every deletion of at most {k} training "
        "{rows} followed by exact retraining, under the stated assumptions",
        proven=True,
    )
    concave = True
    smooth = True
    searches: tuple[str, ...] = ()

    def __init__(self, model: ExactModel, k: int, *, options: Options | None = None) -> None:
        refuse_refitted_preprocessing(model, self.wording.name)
        _refuse_unknown_arithmetic(model)
        self.model = model
        self._k = k
        self.options = options

    @property
    def k(self) -> int:
        """The number of deletions that it speaks of, for good: what was found or proven is about so many."""
        return self._k

    @cached_property
    def certificate(self) -> Certificate:
        """The proof for this model and k, made at first use; ``closed`` is false where it abstains."""
        return certify_model(self.model, self.k, self.options)

    def prove(self, progress: Progress | None = None) -> None:
        """Make the proof now, if it is not made yet, telling how far it is; :attr:`certificate` does it untold."""
        if progress is not None and "certificate" not in self.__dict__:
            options = Options() if self.options is None else self.options
            self.certificate = certify_model(self.model, self.k, replace(options, progress=progress))

    @property
    def assumptions(self) -> tuple[str, ...]:
        """What the proof takes for granted beyond the model's own assumptions."""
        said = (
            "bounds are computed in double precision with explicit tolerances, not in interval arithmetic",
            "the proof speaks of the rows handed over, retrained to the exact optimum",
        )
        parts = self.model.parts
        if parts is None or parts.recipe is not None:
            return said
        return (
            *said,
            "the pipeline is not at hand: what it makes of a row is taken to differ from the affine map read off it by "
            "no more than was measured when it was taken over (with twice as much allowed for)",
        )

    def largest_k(self, most: int | None = None) -> int:
        """The largest number of deletions for which the proof closes, at most ``most`` (default: k); may take long."""
        found, _ = largest_k_that_closes(
            lambda k: certify_model(self.model, k, self.options), self.k if most is None else most
        )
        return found

    def bound(self, points: ArrayLike | pd.DataFrame) -> Array:
        """Proven lower bounds of the scores of any points (P, d) after every covered deletion; -inf on abstention."""
        return self.proven(points)

    def proven(self, points: ArrayLike | pd.DataFrame) -> Array:
        """The bound at exactly these rows, (P,): where there is a pipeline, at what that makes of them itself.

        Points are handed out in the user's own columns; give them so (a DataFrame) to ask about precisely what a person
        gets, missing values included. Deleting nothing is one of the deletions: the score in use today is a bound, too.
        Missing where a point is, or where the pipeline fails on it.
        """
        matrix = self.model.matrix(points)
        if self.impossible() is not None:
            return np.full(len(matrix), -np.inf)
        values = np.full(len(matrix), np.nan)
        design, own = self.model.own_design(points)
        good = np.flatnonzero(np.isfinite(design).all(axis=1) & np.isfinite(matrix).all(axis=1))
        if len(good):
            values[good] = self.certificate.lower(design[good]) + self.model.beyond_design(matrix[good])
            values[good] -= np.where(own[good], 0.0, self._allowance(matrix[good])[0])
            today = self.model.deployed_score(_rows_of(points, matrix, good))
            values[good] = np.minimum(values[good], today)
        return values

    def known_cuts(self) -> tuple[Array, Array]:
        """The model in force: deleting nothing is one of the deletions."""
        return Plain(self.model).known_cuts()

    def read(self, X: Array, target: float = -np.inf) -> Reading:
        """The proven lower bound and its cut at each point."""
        values, slopes = self.certificate.value_and_cut(self.model.score_gradient(X))
        in_schema, _ = self.model.design.in_schema_space(slopes)
        allowance, steepness = self._allowance(X)
        parts = self.model.parts
        if parts is not None and parts.handicap is not None:
            in_schema = in_schema + parts.handicap
        values = values + self.model.beyond_design(X) - allowance
        return Reading(values, in_schema - steepness).floored_by(Plain(self.model).read(X))

    def _allowance(self, X: Array) -> tuple[Array, Array]:
        """How much lower scores may be for what a pipeline makes of points (P, d) than for its stand-in; slopes (P, d).

        An affine map read off two points at the ends of a column's range errs by what these two err by at most; beyond
        the range the error grows as the distance does. Convex, so that the bound less this is concave.
        """
        if self._error == 0:
            return np.zeros(len(X)), np.zeros(X.shape)
        low, high = self.model.train.X.min(axis=0), self.model.train.X.max(axis=0)
        width = np.where(high > low, high - low, 1.0)
        away = 1.0 + 2.0 * np.abs((X - low) / width).sum(axis=1)
        return self._error * away, self._error * 2.0 * np.sign(X - low) / width

    @cached_property
    def _error(self) -> float:
        """By how much ``x~'theta_S`` differs for any covered S, at most, if ``x~`` is off by the design error."""
        error = self.model.arithmetic.design_error
        if error is None or not error.any():
            return 0.0
        units = np.eye(self.model.design.width)[: len(error)]
        # theta_S has no entry of larger size, as the bound at plus and minus a unit row says.
        lowest = [
            piece.cheap_lower(np.vstack([units, -units]), self.certificate.rows) for piece in self.certificate.pieces
        ]
        largest = -np.min(lowest, axis=0).reshape(2, -1).min(axis=0)
        return float(error @ largest)

    def margins_at(self, X: Array, delta: float = -np.inf, rows: Any = None) -> Array:
        """What is proven of points (P, d) that leave, as they are handed out (``rows``), none above today's scores."""
        proven = self.proven(X if rows is None else rows)
        return np.asarray(np.minimum(np.nan_to_num(proven, nan=-np.inf), Plain(self.model).read(X).values))

    def impossible(self) -> str | None:
        """Why the certificate abstains, if it does."""
        return self._abstention

    @cached_property
    def _abstention(self) -> str | None:
        reason = vanishing_class(self.model, self.k)
        if reason is not None or self.certificate.closed:
            return reason
        return f"the proof for {self.k} deletions does not close ({self.certificate.reason}){self._what_closes()}"

    def _what_closes(self) -> str:
        if len(self.model.train) > SMALL:
            return "; Certified.largest_k() finds the largest number for which it does"
        quick = Options(branch_nodes=0)
        found, _ = largest_k_that_closes(lambda k: certify_model(self.model, k, quick), self.k - 1)
        return f"; it closes for up to {found} at least" if found else ""


def _rows_of(points: Any, matrix: Array, which: NDArray[np.intp]) -> Any:
    """Some of the points, in the form in which they were given."""
    return points.iloc[which] if is_frame(points) else matrix[which]


def _refuse_unknown_arithmetic(model: ExactModel) -> None:
    """A proof about numbers that the user's model does not compute with says nothing about that model."""
    if model.arithmetic.narrow:
        raise UnsupportedModelError(
            f"Expected a model that computes in double precision for the promise 'certified', got one that computes in "
            f"{model.arithmetic.bits} bits (its scores are off by up to {model.arithmetic.score_error:.2g}): no proof "
            "covers its rounding. Cast the columns to float64 (df.astype({name: 'float64'}), and dtype=float64 in "
            "encoders), fit again and take that over; or use the promise 'retrained'."
        )
    parts = model.parts
    if parts is not None and parts.recipe is None and parts.stored_images is None:
        raise UnsupportedModelError(
            "Expected a model with the rows that its pipeline makes for the promise 'certified', got one read from a "
            "file of an earlier version, in which they are not kept; read it with LogisticModel.load(path, "
            "pipeline=...), giving the fitted pipeline."
        )
