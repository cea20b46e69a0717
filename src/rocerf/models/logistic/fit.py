"""How logistic models come about: minimised, taken over from scikit-learn, retrained without some rows."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from rocerf.data.column_statistics import extremes
from rocerf.data.training_set import TrainingSet
from rocerf.errors import DataError, NotConvergedError, OptionError
from rocerf.models.arithmetic import Arithmetic, allowed_error, bits_of
from rocerf.models.design import AffineDesign, AnyDesign
from rocerf.models.logistic.class_weight import ClassWeight, row_weights
from rocerf.models.logistic.objective import CHUNK, LogisticObjective, Minimum, Penalty
from rocerf.models.loss import LOGISTIC, Loss, loss_named
from rocerf.passes import chunks
from rocerf.types import Array

if TYPE_CHECKING:
    from rocerf.models.sklearn.own_refit import OwnEstimator, RetrainingRule
    from rocerf.models.sklearn.pipeline_parts import PipelineParts
    from rocerf.models.sklearn.reader import SklearnReading


@dataclass(frozen=True)
class Polish:
    """What Newton changed about a model fitted elsewhere, over the training rows.

    ``shift`` is the root mean square change of the scores and ``largest_shift`` the largest, both in standard
    deviations of the scores.
    """

    shift: float
    largest_shift: float


@dataclass(frozen=True, eq=False)
class LogisticFit:
    """All that a logistic model consists of.

    ``deployed_theta`` (p,) are the parameters people are judged by today, if they were fitted elsewhere, and
    ``arithmetic`` how that model computes; ``parts`` is what a model has that came from a pipeline; ``unfitted`` is a
    clone of what the user fitted, to be fitted anew, and ``own`` its classifier, where they can be cloned;
    ``retraining`` says who retrains a model that was fitted elsewhere; ``notes`` are keys of sentences about what was
    around it and stays. Class weights may be "balanced": then they are other ones for other rows.
    """

    train: TrainingSet
    objective: LogisticObjective
    minimum: Minimum
    class_weight: ClassWeight
    threshold: float
    deployed_theta: Array | None = None
    polish: Polish | None = None
    parts: PipelineParts | None = None
    unfitted: Any = None
    arithmetic: Arithmetic = field(default_factory=Arithmetic)
    own: OwnEstimator | None = None
    retraining: RetrainingRule | None = None
    notes: tuple[str, ...] = ()

    @classmethod
    def minimised(
        cls,
        train: TrainingSet,
        design: AnyDesign,
        penalty: Penalty,
        class_weight: ClassWeight,
        threshold: float,
        *,
        intercept_penalty: float = 0.0,
        start: Array | None = None,
        loss: str | Loss = LOGISTIC,
    ) -> LogisticFit:
        """At the optimum of this objective, found by Newton from ``start`` (p,)."""
        _refuse_too_large(train, design)
        if penalty.kinked and train.on_disk:
            raise OptionError(
                "Expected an L2 penalty for training rows that stay on the disk, got one with an L1 part; read the "
                "rows into memory, or fit with l1_ratio=0."
            )
        weights = row_weights(train, class_weight)
        objective = LogisticObjective(train.X, train.y, weights, design, penalty, intercept_penalty, loss_named(loss))
        minimum = objective.minimise(np.zeros(design.width) if start is None else start)
        kept = dict(class_weight) if isinstance(class_weight, Mapping) else class_weight  # the user may change theirs
        return cls(train, objective, minimum, kept, threshold)

    @classmethod
    def taken_over(
        cls, fitted: Any, read: SklearnReading, train: TrainingSet, design: AnyDesign, threshold: float
    ) -> LogisticFit:
        """A scikit-learn fit over this design, carried on to its optimum; refused if that is far away."""
        from rocerf.models.sklearn.reader import refuse_far_from_optimum

        def made(start: Array | None) -> LogisticFit:
            return cls.minimised(
                train,
                design,
                read.penalty,
                read.class_weight,
                threshold,
                intercept_penalty=read.intercept_penalty,
                start=start,
            )

        try:
            fit = made(read.theta)
        except NotConvergedError:  # coefficients of other (say, scaled) columns: so far off that Newton cannot start
            fit = made(None)
        return replace(fit, deployed_theta=read.theta, polish=refuse_far_from_optimum(fit, read.theta, fitted))

    def deployed_scores(self) -> Array:
        """``x~'theta`` of the training rows by the parameters in use, in double precision; (n,)."""
        return self.objective.scores(self.minimum.theta if self.deployed_theta is None else self.deployed_theta)

    def computing_as(self, fitted: Any) -> LogisticFit:
        """The same with the arithmetic of the bare scikit-learn model that it was taken over from."""
        dtype, sign = fitted.coef_.dtype, 1.0 if fitted.classes_[1] == self.train.favourable else -1.0

        def own() -> Array:
            X = self.train.X
            parts = [fitted.decision_function(X[rows].astype(dtype)) for rows in chunks(len(X), CHUNK)]
            return sign * np.concatenate(parts).astype(np.float64)

        return replace(self, arithmetic=Arithmetic.of(bits_of(dtype), own, self.deployed_scores))

    def without(self, ids: Iterable[Any]) -> LogisticFit:
        """Retrained without these rows; a pipeline's preprocessing stays, or is fitted again if that is its rule."""
        gone = self.train.positions(ids)
        left = self.train.without(self.train.ids[gone])
        if self.parts is not None and self.parts.rule == "refitted":
            return self._refitted_on(left, np.delete(np.arange(len(self.train)), gone))
        parts = None if self.parts is None else self.parts.retrained_without(gone)
        again = self._again(left, self.objective.design, self.minimum.theta)
        return replace(again, parts=parts, arithmetic=self.arithmetic)

    def _refitted_on(self, left: TrainingSet, kept: NDArray[np.intp]) -> LogisticFit:
        """Retrained on these rows, the preprocessing of the pipeline fitted again."""
        from rocerf.models.sklearn.pipeline_parts import PipelineParts

        assert self.parts is not None
        refit = self.parts.needed_recipe().keeping(kept).fitted_again(left.X, self.parts.frames)
        design = AffineDesign(refit.found.matrix, refit.found.shift, self.objective.design.intercept)
        # The present scores in the new design: Newton starts next to the optimum.
        some = refit.X[:: max(1, len(kept) // (4 * design.width))]
        scores = self.objective.design(some) @ self.minimum.theta
        start = np.asarray(np.linalg.lstsq(design(some), scores)[0], dtype=np.float64)
        train = left.with_values(refit.X) if refit.recipe.missing.any() else left
        parts = PipelineParts(refit.frames, "refitted", recipe=refit.recipe, handicap=refit.handicap)
        error = allowed_error(refit.images, refit.found(refit.X), refit.found.scale(refit.X))
        arithmetic = replace(self.arithmetic, design_error=error)
        return replace(self._again(train, design, start), parts=parts, arithmetic=arithmetic)

    def _again(self, train: TrainingSet, design: AnyDesign, start: Array) -> LogisticFit:
        """The same objective on other rows, or over another design."""
        old = self.objective
        made = LogisticFit.minimised(
            train,
            design,
            old.penalty,
            self.class_weight,
            self.threshold,
            intercept_penalty=old.intercept_penalty,
            start=start,
            loss=old.loss,
        )
        return replace(made, unfitted=self.unfitted, notes=self.notes)


#: Size of an entry of a design row up to which sums of squares are numbers.
LARGEST_ENTRY = 1e150


def _refuse_too_large(train: TrainingSet, design: AnyDesign) -> None:
    """Curvature is a sum of squares of design rows: refuse columns of which it would be infinite."""
    ends = np.vstack(extremes(train.X))
    with np.errstate(over="ignore", invalid="ignore"):
        sizes = np.abs(design(ends)).max(axis=0)
    if not (sizes <= LARGEST_ENTRY).all():
        worst = int(np.argmax(np.nan_to_num(sizes, nan=np.inf)))
        name = train.columns[worst] if len(train.columns) + int(design.intercept) == len(sizes) else f"number {worst}"
        raise DataError(
            f"Expected columns whose squares are numbers (up to {LARGEST_ENTRY:g} in size), got {sizes[worst]:.3g} in "
            f"column {name}; scale the columns, or give that one in another unit."
        )
