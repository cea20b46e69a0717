"""How recourses fare when rows are really deleted and the model is really retrained."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import ArrayLike

from rocerf.data.columns import is_number
from rocerf.deletion.adversary import Adversary
from rocerf.deletion.attacks import Attacks
from rocerf.deletion.random_deletions import random_deletions
from rocerf.errors import DataError, OptionError, UnsupportedModelError
from rocerf.models.model import ExactModel, LinearModel, Refittable, Retraining
from rocerf.models.sklearn.own_refit import OwnRefit, RetrainingRule, as_retrained_by
from rocerf.types import Array, Progress

if TYPE_CHECKING:
    import pandas as pd


@dataclass(frozen=True, eq=False)
class Validity:
    """Share of points that retrained models accept: one figure a trial, shape (M,)."""

    fraction: float
    by_trial: Array

    @property
    def mean(self) -> float:
        """Average validity: the mean over trials."""
        return float(self.by_trial.mean())

    @property
    def standard_error(self) -> float:
        """Standard error of that mean over trials (0 for a single trial)."""
        trials = len(self.by_trial)
        return float(self.by_trial.std(ddof=1) / math.sqrt(trials)) if trials > 1 else 0.0

    def __str__(self) -> str:
        return f"{self.mean:.1%} ± {self.standard_error:.1%}"


def average_validity(
    model: Refittable,
    points: ArrayLike | pd.DataFrame,
    fraction: float,
    trials: int = 100,
    seed: int = 0,
    *,
    retraining: Retraining = "fresh",
    refit: RetrainingRule | None = None,
) -> Validity:
    """The paper's average validity: delete a random fraction of the rows, retrain, count who is accepted.

    Networks are retrained "fresh" or "warm" (from a new start, or on from the present parameters). Models taken over
    from scikit-learn are retrained by the user's own estimator (``refit="own"``) or exactly ("exact"), by default as
    their rule says. Rows of ``points`` with missing values (unanswered people) are left out.

    >>> import rocerf
    >>> data = rocerf.load_dataset("german")
    >>> model = rocerf.LogisticModel.fit(data.train)
    >>> average_validity(model, data.test.X[model.predict(data.test.X) == 1], 0.0, trials=1).mean
    1.0
    """
    curves = validity_curves(model, {"points": points}, [fraction], trials, seed, retraining=retraining, refit=refit)
    return curves["points"][0]


def validity_curves(
    model: Refittable,
    points_by_method: Mapping[str, ArrayLike | pd.DataFrame],
    fractions: Sequence[float],
    trials: int = 100,
    seed: int = 0,
    *,
    retraining: Retraining = "fresh",
    refit: RetrainingRule | None = None,
    progress: Progress | None = None,
) -> dict[str, list[Validity]]:
    """Average validity of several methods at several fractions, on the same retrained models.

    Deleting nothing needs no second trial where retraining always ends at the same optimum; a network is trained afresh
    every time.
    """
    if not is_number(trials, whole=True) or trials < 1:
        raise OptionError(f"Expected trials to be a whole number >= 1, got {trials!r}; use for example trials=100.")
    matrices = {name: _complete(model, points, name) for name, points in points_by_method.items()}
    curves: dict[str, list[Validity]] = {name: [] for name in matrices}
    model = as_retrained_by(model, refit)
    counts = [_rows_in(fraction, len(model.train)) for fraction in fractions]
    exact = isinstance(model, LinearModel)
    trials_at = [int(trials) if count or not exact else 1 for count in counts]
    for place, (fraction, count) in enumerate(zip(fractions, counts, strict=True)):
        deletions = random_deletions(model.train, count, trials_at[place], seed=seed)
        part = _part_of(progress, sum(trials_at[:place]), trials_at[place], sum(trials_at))
        retrained = model.refitted(deletions, retraining=retraining, seed=seed + place, progress=part)
        for name, matrix in matrices.items():
            curves[name].append(Validity(fraction, (retrained.scores(matrix) >= 0).mean(axis=1)))
    return curves


def worst_case_validity(
    model: ExactModel,
    points: ArrayLike | pd.DataFrame,
    k: int | str,
    *,
    effort: str = "normal",
    seed: int = 1,
    refit: RetrainingRule | None = None,
    progress: Progress | None = None,
) -> float:
    """Share of points still accepted after the worst deletion of at most k rows that the adversary finds.

    Every point has its own worst deletion, truly retrained. "Survived" means that no deletion tried refuted the point,
    so the share is an upper bound. Deletions are looked for with exact retraining; a model taken over from scikit-learn
    is then really retrained by the user's own estimator (``refit="own"``), which judges the point, unless ``refit`` or
    its rule is "exact". Rows of ``points`` with missing values are left out.

    >>> import rocerf
    >>> data = rocerf.load_dataset("german")
    >>> model = rocerf.LogisticModel.fit(data.train)
    >>> plain = rocerf.baselines.Scfe(model).explain(data.test.X[:20])
    >>> worst_case_validity(model, plain.points, 4, effort="quick")
    0.0
    """
    if not isinstance(model, ExactModel):
        raise UnsupportedModelError(
            f"Expected a LogisticModel for the worst case, got {type(model).__name__}; its adversary retrains exactly, "
            "a network has no single optimum to retrain to: use average_validity for it."
        )
    matrix = _complete(model, points, "points")
    model = as_retrained_by(model, refit)
    attacks = Adversary(model, k, effort=effort, seed=seed).attack_all(matrix, progress=progress)
    scores = attacks.scores if model.own_refit is None else _own_scores(model.own_refit, matrix, attacks)
    return float((scores >= 0).mean())


def _own_scores(own: OwnRefit, X: Array, attacks: Attacks) -> Array:
    """Scores of points (P, d) by the user's own estimator, fitted without the rows found for each; (P,)."""
    scores, members = np.array(attacks.scores), dict[bytes, list[int]]()
    for place in np.flatnonzero(np.isfinite(attacks.scores)):  # else there is no model to fit
        members.setdefault(np.sort(attacks.deleted_rows[place]).tobytes(), []).append(int(place))
    for places in members.values():
        scores[places] = own.without(attacks.deleted_rows[places[0]]).scores(X[places])
    return scores


def _part_of(progress: Progress | None, before: int, size: int, total: int) -> Progress | None:
    """Progress of one fraction's retrainings, counted in models, as a part of all."""
    if progress is None:
        return None
    return lambda done, whole: progress(before + size * done // whole, total)


def _rows_in(fraction: Any, n: int) -> int:
    if not (is_number(fraction) and 0 <= fraction < 1):
        raise OptionError(
            f"Expected a fraction of rows from 0 up to (not including) 1, got {fraction!r}; write 0.01 for one percent."
        )
    return math.ceil(round(float(fraction) * n, 9))


def _complete(model: Refittable, points: ArrayLike | pd.DataFrame, name: str) -> Array:
    matrix = model.matrix(points)
    matrix = matrix[np.isfinite(matrix).all(axis=1)]
    if not len(matrix):
        raise DataError(f"Expected at least one answered point for {name!r}, got none; check the recourses' statuses.")
    return matrix
