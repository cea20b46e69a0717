"""The proven promise: the point stays accepted after *every* deletion of at most k rows.

The certificate (:mod:`rocerf.deletion.certificate`, proof in docs/certificate.md) gives for any point a lower bound of
its score over all those deletions, each followed by exact retraining. It is made once for each (model, k); asking it
for a person is cheap. The bound is a concave function of x, so it is a promise like any other: value and cut. Where the
proof does not close it abstains, with the reason.
"""

from __future__ import annotations

from dataclasses import replace
from functools import cached_property
from typing import TYPE_CHECKING, Any, Self

import numpy as np
from numpy.typing import ArrayLike, NDArray

from rocerf.data.foreign import is_frame
from rocerf.deletion.certificate import Certificate, Options, certify_model, largest_k_that_closes
from rocerf.deletion.certificate.about import FORMAT, CertifiedAbout
from rocerf.errors import FileFormatError, UnsupportedModelError
from rocerf.models.model import ExactModel
from rocerf.promises.allowance import ExactRetraining
from rocerf.promises.promise import Reading, Solve, vanishing_class
from rocerf.storage.reading import told_as
from rocerf.storage.state import State
from rocerf.types import Array, Progress
from rocerf.words import Said

if TYPE_CHECKING:
    import pandas as pd


#: Rows up to which an abstention also looks for a smaller k that closes; beyond, ask :meth:`Certified.largest_k`.
SMALL = 3000

#: Numbers of a table on the disk up to which it is read as a whole for a proof.
MOST_ON_DISK = 2**24


class Certified(ExactRetraining):
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

    name = "certified"
    proven = True
    one_design = True
    model: ExactModel

    def __init__(self, model: ExactModel, k: int, *, options: Options | None = None) -> None:
        super().__init__(model, k)
        _refuse_unknown_arithmetic(model)
        _refuse_too_many_on_disk(model)
        self.options = options

    @cached_property
    def certificate(self) -> Certificate:
        """The proof for this model and k, made at first use; ``closed`` is false where it abstains."""
        return certify_model(self.model, self.k, self.options)

    @property
    def prepared(self) -> bool:
        """Whether the proof is made."""
        return "certificate" in self.__dict__

    def prepare(self, solve: Solve, progress: Progress | None = None) -> None:
        """Make the proof now, saying how far it is; :attr:`certificate` makes it without that."""
        if not self.prepared:
            options = self.options if progress is None else replace(self.options or Options(), progress=progress)
            self.certificate = certify_model(self.model, self.k, options)

    @property
    def assumptions(self) -> tuple[str, ...]:
        """What the proof takes for granted beyond the model's own assumptions."""
        parts = self.model.parts
        by_stand_in = parts is not None and parts.recipe is None
        said = ["double_precision", "rows_handed_over", *(["pipeline_not_at_hand"] if by_stand_in else [])]
        said += ["frozen_weights"] if self.model.weighs_anew else []
        return (*(Said.of(f"promises.{key}") for key in said), *super().assumptions)

    def largest_k(self, most: int | None = None) -> int:
        """The largest number of deletions for which the proof closes, at most ``most`` (default: k); may take long."""
        found, _ = largest_k_that_closes(
            lambda k: certify_model(self.model, k, self.options), self.k if most is None else most
        )
        return found

    def bound(self, points: ArrayLike | pd.DataFrame) -> Array:
        """Proven lower bounds of the scores of points (P, d) after every covered deletion, (P,); -inf on abstention.

        Where there is a pipeline, at what that makes of these rows itself. Points are handed out in the user's own
        columns; give them so (a DataFrame) to ask about precisely what a person gets, missing values included. Deleting
        nothing is one of the deletions: the score in use today is a bound, too. Missing where a point is, or where the
        pipeline fails on it.
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

    def read_exactly(self, X: Array, target: float | Array = -np.inf) -> Reading:
        """The proven lower bound and its cut at each point."""
        values, slopes = self.certificate.value_and_cut(self.model.score_gradient(X))
        in_schema, _ = self.model.design.in_schema_space(slopes)
        allowance, steepness = self._allowance(X)
        parts = self.model.parts
        if parts is not None and parts.handicap is not None:
            in_schema = in_schema + parts.handicap
        values = values + self.model.beyond_design(X) - allowance
        return Reading(values, in_schema - steepness).floored_by(self.today(X))

    def _allowance(self, X: Array) -> tuple[Array, Array]:
        """How much lower scores may be for what a pipeline makes of points (P, d) than for its stand-in; slopes (P, D).

        An affine map read off two points at the ends of a column's range errs by what these two err by at most; beyond
        the range the error grows as the distance does. Convex, so that the bound less this is concave. Of pieces, the
        largest error measured counts everywhere: points that leave are read as the pipeline itself makes them.
        """
        if self._error == 0:
            return np.zeros(len(X)), np.zeros(self.lifted(X).shape)
        if self.model.lift is not None:
            return np.full(len(X), self._error), np.zeros(self.lifted(X).shape)
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

    def rises_exactly(self, directions: Array) -> Array:
        """A proven lower bound of the slope of every covered retrained model along directions (m, D), (m,).

        Less what the stand-in for a pipeline may be off.
        """
        if self.impossible() is not None:
            return super().rises_exactly(directions)
        rows = directions
        if self.model.lift is None:  # what a step in x is in the design: the map is affine
            rows = self.model.design(directions) - self.model.design(np.zeros_like(directions))
        elif self.model.design.intercept:
            rows = np.column_stack([directions, np.zeros(len(directions))])
        steepest = np.zeros(len(directions))
        if self.model.lift is None and self._error:
            low, high = self.model.train.X.min(axis=0), self.model.train.X.max(axis=0)
            steepest = np.abs(directions) @ (2.0 * self._error / np.where(high > low, high - low, 1.0))
        return np.asarray(self.certificate.lower(rows) - steepest)

    def check_exactly(self, X: Array, delta: float, rows: Any) -> Array:
        """What is proven of points (P, d) that leave, as they are handed out (``rows``), none above today's scores."""
        proven = self.bound(X if rows is None else rows)
        return np.asarray(np.minimum(np.nan_to_num(proven, nan=-np.inf), self.today(X).values))

    def impossible(self) -> str | None:
        """Why the certificate abstains, if it does."""
        return self._abstention

    @cached_property
    def _abstention(self) -> str | None:
        reason = vanishing_class(self.model, self.k)
        if reason is not None or self.certificate.closed:
            return reason
        return Said.of(
            "promises.does_not_close", k=self.k, reason=self.certificate.reason, what_closes=self._what_closes()
        )

    def _what_closes(self) -> str:
        if len(self.model.train) > SMALL:
            return Said.of("promises.ask_largest_k")
        quick = Options(branch_nodes=0)
        found, _ = largest_k_that_closes(lambda k: certify_model(self.model, k, quick), self.k - 1)
        return Said.of("promises.closes_for", found=found) if found else ""

    def state(self) -> State:
        """The proof, made first where it is not there yet."""
        kept = super().state()
        return replace(kept, arrays={**self.certificate.state().arrays, **kept.arrays})

    def restore(self, state: State) -> None:
        """Take over a proof; one about anything else is refused."""
        super().restore(state)
        with told_as("a proof to be in the explainer's folder", "none", "save the explainer again"):
            certificate = Certificate.from_state(State(FORMAT, {}, state.arrays))
        own = CertifiedAbout.of(self.model, self.k)
        difference = "nothing said about it" if certificate.about is None else certificate.about.difference(own)
        if difference is not None:
            raise FileFormatError(
                f"Expected a proof about this model, {self.k} deletions and this version of rocerf, got one about "
                f"{difference}; make the explainer again and save it."
            )
        self.certificate = certificate

    def anew(self, model: Any) -> Self:
        """The same about another model."""
        return type(self)(model, self.k, options=self.options)


def _rows_of(points: Any, matrix: Array, which: NDArray[np.intp]) -> Any:
    """Some of the points, in the form in which they were given."""
    return points.iloc[which] if is_frame(points) else matrix[which]


def _refuse_too_many_on_disk(model: ExactModel) -> None:
    """A proof looks at all rows at once: refuse tables that are on the disk because they are too many for that."""
    n, d = model.train.X.shape
    if model.train.on_disk and n * d > MOST_ON_DISK:
        raise UnsupportedModelError(
            f"Expected at most {MOST_ON_DISK:,} numbers on the disk for the promise 'certified', whose proof looks at "
            f"all rows at once, got {n:,} rows of {d}; use 'retrained', or read the rows into memory and wait."
        )


def _refuse_unknown_arithmetic(model: ExactModel) -> None:
    """A proof about numbers that the user's model does not compute with says nothing about that model."""
    if model.arithmetic.narrow:
        raise UnsupportedModelError(
            f"Expected a model that computes in double precision for the promise 'certified', got one that computes in "
            f"{model.arithmetic.bits} bits (its scores are off by up to {model.arithmetic.score_error:.2g}): no proof "
            "covers its rounding. Cast the columns to float64 (df.astype({name: 'float64'}), and dtype=float64 in "
            "encoders), fit again and take that over; or use the promise 'retrained'."
        )
    loss = model.objective.loss
    if not loss.bounded:
        raise UnsupportedModelError(
            f"Expected a loss with proven bounds of its curvature for the promise 'certified', got "
            f"{type(loss).__name__}, which has none; use the promise 'retrained'."
        )
    parts = model.parts
    if parts is not None and parts.recipe is None and parts.stored_images is None:
        if model.train.on_disk:
            raise UnsupportedModelError(
                "Expected rows in memory for the promise 'certified' about a pipeline, whose proof is about what the "
                "pipeline makes of each row, got rows on the disk, of which that is not kept; read them with "
                "pandas.read_parquet and give from_pipeline the frame, or use the promise 'retrained'."
            )
        raise UnsupportedModelError(
            "Expected a model with the rows that its pipeline makes for the promise 'certified', got one read from a "
            "file of an earlier version, in which they are not kept; read it with LogisticModel.load(path, "
            "pipeline=...), giving the fitted pipeline."
        )
