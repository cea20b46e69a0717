"""Columns that depend on each other, where a penalty that is L1 alone does not say which of them gets the weight.

Then the optimum is many coefficients, all of which say the same of the training rows, and of every point that keeps the
dependence: categories in one column each, pieces of a curve. Of other points they say different things, so that what a
retrained model makes of them is no fact. A dependence that people's values can break is refused; points that break
another one all the same are not promised anything.

Only columns whose slope reaches their kink, or comes near it, can share weight: a dependence that needs others, which
are held at 0, leaves one optimum. Deletions move slopes, which is why near is near enough to count.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from rocerf.errors import SingularCurvatureError
from rocerf.types import Array, Mask

if TYPE_CHECKING:
    from rocerf.data.schema import FeatureSchema
    from rocerf.models.logistic.fit import LogisticFit
    from rocerf.models.logistic.objective import LogisticObjective

#: Smallest eigenvalue of the rows' unit-diagonal squares that is a dependence, and how closely points must keep one.
DEPENDENT, KEPT = 1e-12, 1e-6

#: Share of its kink from which a slope is near it.
NEAR = 0.8

#: Training rows that exchange values to see whether a dependence is kept.
EXCHANGED = 200


def dependences(objective: LogisticObjective, theta: Array) -> Array:
    """Combinations of columns that may share weight and are 0 in every row, in units of the columns; (p, r).

    ``theta`` (p,) is the optimum. None where something besides an L1 penalty says how weights are shared.
    """
    p, kinks = objective.design.width, objective.kinks
    if kinks is None or objective.penalty.strength(len(objective.y)) > 0:
        return np.empty((p, 0))
    slopes, _ = objective.gradient_and_hessian(theta)
    _, squares = objective.gradient_and_hessian(np.zeros(p))
    size = np.sqrt(np.diagonal(squares))
    some = np.flatnonzero((size > 0) & (np.abs(slopes) >= NEAR * kinks.strengths))
    unit = 1.0 / size[some]
    values, vectors = np.linalg.eigh(squares[np.ix_(some, some)] * np.outer(unit, unit))
    found = np.zeros((p, int((values < DEPENDENT * len(some)).sum())))
    found[some] = unit[:, None] * vectors[:, : found.shape[1]] * np.sqrt(len(objective.y))
    return found


def keeping(dependent: Array, design: Array) -> Mask:
    """Which design rows (P, p) keep the dependences (p, r); (P,)."""
    sizes = 1.0 + np.abs(design) @ np.abs(dependent)
    return np.asarray((np.abs(design @ dependent) <= KEPT * sizes).all(axis=1))


def refuse_breakable(fit: LogisticFit) -> LogisticFit:
    """The fit, if no value of one person put in place of another's breaks a dependence of its columns."""
    dependent = dependences(fit.objective, fit.minimum.theta)
    if not dependent.shape[1]:
        return fit
    X = np.asarray(fit.train.X[:EXCHANGED])
    schema = None if fit.parts is None else fit.parts.frames.schema
    for name, places in _features(X, fit.train.columns, schema):
        mixed = X.copy()
        mixed[:, places] = X[::-1][:, places]
        if not keeping(dependent, fit.objective.design(mixed)).all():
            raise SingularCurvatureError(
                f"Expected columns that do not depend on each other for an L1 penalty, got {name!r} among some that "
                "do: nothing says then which of them gets the weight, and retrained models may share it in any way; "
                "drop a column, use elasticnet (l1_ratio below 1), or, where these are columns of one category, take "
                "the table over with its encoder (rocerf.from_pipeline), which keeps categories whole."
            )
    return fit


def _features(X: Array, columns: tuple[str, ...], schema: FeatureSchema | None) -> list[tuple[str, list[int]]]:
    """Names and columns of what changes by itself; columns of 0 and 1 without a schema may be those of a category."""
    if schema is None:
        measured = [place for place, values in enumerate(X.T) if not np.isin(values, (0.0, 1.0)).all()]
        return [(columns[place], [place]) for place in measured]
    found: dict[str, list[int]] = {}
    for place, feature in enumerate(schema.column_features):
        found.setdefault(feature.name, []).append(place)
    return list(found.items())
