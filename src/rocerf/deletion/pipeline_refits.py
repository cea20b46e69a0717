"""Deletions of a pipeline whose preprocessing is fitted again: found with it frozen, then truly refitted.

The searches know one design. A refitted scaler, encoder or imputer is another one, so what they find is retrained
once more with the whole pipeline, and only that is reported. So are those of a model whose class weights are balanced
anew on the rows left. Every set refitted for one point is held against all
points of the request. Besides, the rows of every category that so few rows have that all of them can be deleted are a
set of their own: a category that no row is left of may be one that the pipeline refuses.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import replace

import numpy as np

from rocerf.data.feature import Kind
from rocerf.deletion.attacks import Attacks
from rocerf.deletion.balanced_guesses import balanced_guesses
from rocerf.deletion.shared import shared
from rocerf.errors import ModelError, NotConvergedError
from rocerf.models.model import ExactModel
from rocerf.types import Array, Places

#: What found the deletion of all rows of a category, and one by what it does to balanced class weights.
VANISHED, BALANCED = "a category vanishes", "balanced weights"


class PipelineRefits:
    """Pipelines refitted after deletions, as half-spaces of schema space, by the rows deleted."""

    @classmethod
    def of(cls, model: ExactModel) -> PipelineRefits:
        """The ones of this model, however many adversaries ask."""
        return shared(cls, model)

    def __init__(self, model: ExactModel) -> None:
        if model.preprocessing == "refitted":
            assert model.parts is not None
            model.parts.needed_recipe()  # without its pipeline nothing can be refitted, which is no deletion's fault
        self.model = model
        self._known: dict[bytes, tuple[Array, float]] = {}

    def halfspaces(self, sets: Iterable[Places]) -> tuple[Array, Array]:
        """Slopes (m, d) and constants (m,) of the pipeline refitted without each set; -inf where there is no model."""
        found = [self._halfspace(np.sort(rows)) for rows in sets]
        return np.array([slope for slope, _ in found]), np.array([constant for _, constant in found])

    def _halfspace(self, rows: Places) -> tuple[Array, float]:
        key = rows.tobytes()
        if key not in self._known:
            self._known[key] = self._halfspace_without(rows)
        return self._known[key]

    def _halfspace_without(self, rows: Places) -> tuple[Array, float]:
        later = self.model
        try:
            later = self.model.without(self.model.train.ids[rows]) if len(rows) else self.model
        except NotConvergedError:
            pass  # nothing is known of this deletion: it must not count as harmful
        except ModelError:
            return np.zeros(self.model.lifted(self.model.train.X[:1]).shape[1]), -np.inf
        slope, constant = later.halfspaces(later.theta)
        return slope, float(constant)


def rare_categories(model: ExactModel, X: Array, k: int) -> list[Places]:
    """For each category that some point (P, d) has and at most k training rows, those rows."""
    assert model.schema is not None
    sets = []
    for place, feature in enumerate(model.schema.column_features):
        if feature.kind is Kind.CATEGORICAL and (X[:, place] > 0.5).any():
            rows = np.flatnonzero(model.train.X[:, place] == 1)
            if 0 < len(rows) <= k:
                sets.append(rows)
    return sets


def with_pipeline_refits(refits: PipelineRefits, attacks: Attacks, X: Array, k: int) -> Attacks:
    """The attacks on points (P, d) with every set refitted by the whole pipeline, the worst of all for each point."""
    sets: dict[bytes, tuple[Places, str]] = {b"": (np.empty(0, np.intp), "nothing deleted")}
    for rows, name in zip(attacks.deleted_rows, attacks.found_by, strict=True):
        sets.setdefault(np.sort(rows).tobytes(), (rows, name))
    refitted = refits.model.preprocessing == "refitted"
    for rows in rare_categories(refits.model, X, k) if refitted else ():
        sets.setdefault(rows.tobytes(), (rows, VANISHED))
    for rows in balanced_guesses(refits.model, X, k) if refits.model.weighs_anew else ():
        sets.setdefault(np.sort(rows).tobytes(), (rows, BALANCED))
    chosen = list(sets.values())
    slopes, constants = refits.halfspaces(rows for rows, _ in chosen)
    scores = refits.model.lifted(X) @ slopes.T + constants
    which = scores.argmin(axis=1)
    return replace(
        attacks,
        scores=scores[np.arange(len(X)), which],
        slopes=slopes[which],
        constants=constants[which],
        thetas=np.full(attacks.thetas.shape, np.nan),
        deleted_rows=tuple(chosen[place][0] for place in which),
        found_by=tuple(chosen[place][1] for place in which),
        retrainings=attacks.retrainings + len(chosen) - 1,
        searches=(*attacks.searches, *(name for name in (VANISHED, BALANCED) if any(n == name for _, n in chosen))),
    )
