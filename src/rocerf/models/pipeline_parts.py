"""What a logistic model that came from a pipeline knows beyond its numbers.

Its :class:`~rocerf.data.frames.Frames` (between the user's columns and schema space), the user's own pipeline (which
judges people today), and the rows and steps that it takes to fit the preprocessing again.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any, Literal

import numpy as np
from numpy.typing import NDArray

from rocerf.data.columns import is_frame, people_matrix
from rocerf.data.feature import Kind
from rocerf.data.frames import Frames
from rocerf.errors import NotAtOptimumError, OptionError, UnsupportedModelError
from rocerf.models.pipeline_check import refuse_what_is_not_affine
from rocerf.models.pipeline_probe import AffineMap, Probe, Ranges
from rocerf.models.pipeline_steps import Preprocessing, quietly

if TYPE_CHECKING:
    import pandas as pd

Array = NDArray[np.float64]

#: What happens to the preprocessing when rows are deleted.
PreprocessingRule = Literal["frozen", "refitted"]
RULES: tuple[PreprocessingRule, ...] = ("frozen", "refitted")

#: By how much the log-odds fall of a person whose category the pipeline, fitted again, refuses to encode.
UNSEEN = 1000.0

#: Rows on which a refitted preprocessing is compared with its affine map; before the first deletion, all are.
CHECKED_ROWS = 256


def checked_rule(preprocessing: Any) -> PreprocessingRule:
    """The rule, if it is one."""
    if preprocessing not in RULES:
        raise OptionError(
            f"Expected preprocessing to be 'frozen' (it stays as it is when rows are deleted) or 'refitted' (it is "
            f"fitted again on the rows left), got {preprocessing!r}."
        )
    rule: PreprocessingRule = preprocessing
    return rule


@dataclass(frozen=True, eq=False)
class Deployed:
    """The user's fitted pipeline, asked in their own columns; ``sign`` is -1 if it scores the unfavourable label."""

    pipeline: Any
    steps: Preprocessing
    sign: float

    def log_odds(self, frame: pd.DataFrame) -> Array:
        """Log-odds of the favourable label for rows of the user's columns, shape (m,)."""
        with quietly():
            scores = self.pipeline.decision_function(self.steps.given(frame))
        return self.sign * np.asarray(scores, dtype=np.float64)


@dataclass(frozen=True, eq=False)
class Recipe:
    """What it takes to fit the preprocessing again: its steps, and the training rows in the user's columns.

    ``missing`` (n, d) marks the numbers that the rows do not have.
    """

    steps: Preprocessing
    frame: pd.DataFrame
    labels: NDArray[Any]
    missing: NDArray[np.bool_]
    ranges: Ranges

    def keeping(self, rows: NDArray[np.intp]) -> Recipe:
        """The same with these rows only."""
        return replace(self, frame=self.frame.iloc[rows], labels=self.labels[rows], missing=self.missing[rows])

    def fitted_again(self, X: Array, frames: Frames) -> Refit:
        """The preprocessing fitted on these rows; ``X`` (n, d) are the same rows in schema space."""
        steps, images = self.steps.fitted_again(self.frame, self.labels)
        probe = Probe(steps, frames, replace(self.ranges, counts=Ranges.counted(X, frames)))
        found = probe.found()
        X = filled(X, self.missing, found, frames)
        checked = np.linspace(0, len(X) - 1, min(len(X), CHECKED_ROWS)).astype(np.intp)
        refuse_what_is_not_affine(probe, found, self.frame.iloc[checked], X[checked])
        return Refit(replace(self, steps=steps), found, replace(frames, fills=dict(found.fills)), X, images)


@dataclass(frozen=True, eq=False)
class Refit:
    """Preprocessing fitted again: as a map, with the rows (n, d) as it fills them, and its own fit's images (n, q)."""

    recipe: Recipe
    found: AffineMap
    frames: Frames
    X: Array
    images: Array

    @property
    def handicap(self) -> Array | None:
        """What categories that it refuses to encode add to the score, (d,); None where there are none."""
        return -UNSEEN * self.found.refused if self.found.refused.any() else None


def filled(X: Array, missing: NDArray[np.bool_], found: AffineMap, frames: Frames) -> Array:
    """Rows (n, d) with the map's numbers in place of missing ones."""
    X = X.copy()
    for column in np.flatnonzero(missing.any(axis=0)):
        X[missing[:, column], column] = found.fills.get(frames.columns[column], np.nan)
    return X


@dataclass(frozen=True, eq=False)
class PipelineParts:
    """What a logistic model has that came from a pipeline.

    ``deployed`` is None for retrained models and for models read from a file, ``recipe`` for the latter;
    ``handicap`` (d,) is added to the slopes in schema space.
    """

    frames: Frames
    rule: PreprocessingRule
    deployed: Deployed | None = None
    recipe: Recipe | None = None
    handicap: Array | None = None

    def matrix(self, X: Any) -> Array:
        """People (P, d) in schema space, from the user's own columns, or given as points of schema space."""
        if is_frame(X) and (self.of_user(X) or not set(self.frames.columns) <= set(map(str, X.columns))):
            return self.frames.encode(X)[0]
        matrix, _ = people_matrix(X, self.frames.columns, named=True)
        return matrix

    def of_user(self, X: Any) -> bool:
        """Whether X is a DataFrame of the user's own columns."""
        return is_frame(X) and set(self.frames.schema.names) <= set(map(str, X.columns))

    def own_log_odds(self, X: Any, matrix: Array) -> Array:
        """The user's pipeline's log-odds (P,), NaN where it was not asked: values missing, or no values of the schema."""
        log_odds = np.full(len(matrix), np.nan)
        asked = np.isfinite(matrix).all(axis=1)
        if not self.of_user(X):
            asked &= self._expressible(matrix)
        if self.deployed is not None and asked.any():
            frame = X[asked] if self.of_user(X) else self.frames.decode(matrix[asked])
            log_odds[asked] = self.deployed.log_odds(frame)
        return log_odds

    def _expressible(self, matrix: Array) -> NDArray[np.bool_]:
        """Points that the user's columns can hold: whole numbers whole, one category each; (P,)."""
        schema = self.frames.schema
        whole = [feature.kind is not Kind.CONTINUOUS for feature in schema.column_features]
        discrete = matrix[:, whole]
        good = np.asarray((discrete == np.rint(discrete)).all(axis=1))
        return good & np.array([not said for said in schema.problems(matrix)], bool)

    def retrained(self, rows: NDArray[np.intp]) -> PipelineParts:
        """What the model retrained on these rows has, where its preprocessing stays."""
        recipe = None if self.recipe is None else self.recipe.keeping(rows)
        return replace(self, deployed=None, recipe=recipe)

    def needed_recipe(self) -> Recipe:
        """The recipe, or a refusal."""
        if self.recipe is None:
            raise UnsupportedModelError(
                "Expected the pipeline itself to fit its preprocessing again, got a model read from a file, in which "
                "pipelines are not kept; read it with LogisticModel.load(path, pipeline=...), giving the fitted "
                "pipeline it was made from, or ask model.frozen."
            )
        return self.recipe

    def refuse_what_is_not_reproduced(self, X: Array, found: AffineMap) -> None:
        """Fitting the preprocessing again on all rows must give what was handed over."""
        again = self.needed_recipe().fitted_again(X, self.frames)
        images = found(X)
        scale = 1e-6 * (1e-12 + found.scale(X))
        same = again.images.shape == images.shape and bool((np.abs(again.images - images) <= scale).all())
        if not same:
            raise NotAtOptimumError(
                "Expected preprocessing that, fitted again on the rows given, makes the same of them, got one that does "
                "not: it was fitted on other rows, or with weights, or is random, or treats the rows it is fitted on "
                "unlike others (TargetEncoder). Pass the rows it was fitted on, or use preprocessing='frozen'."
            )
