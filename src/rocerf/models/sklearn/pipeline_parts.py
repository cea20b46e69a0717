"""What a logistic model that came from a pipeline knows beyond its numbers.

Its :class:`~rocerf.data.frames.Frames` (between the user's columns and schema space), the user's own pipeline (which
judges people today), and the rows and steps that it takes to fit the preprocessing again.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any, Literal

import numpy as np
from numpy.typing import NDArray

from rocerf.data.feature import Kind
from rocerf.data.foreign import as_pandas, is_frame
from rocerf.data.frames import Frames
from rocerf.data.training_set import TrainingSet
from rocerf.errors import NotAtOptimumError, OptionError, UnsupportedModelError
from rocerf.models.design import AnyDesign
from rocerf.models.sklearn.pipeline_numbers import numbers_in
from rocerf.models.sklearn.pipeline_probe import AffineMap, Probe, Ranges, close
from rocerf.models.sklearn.pipeline_steps import CannotTransformError, Preprocessing, quietly
from rocerf.types import Array
from rocerf.words import Said

if TYPE_CHECKING:
    import pandas as pd


#: What happens to the preprocessing when rows are deleted.
PreprocessingRule = Literal["frozen", "refitted"]
RULES: tuple[PreprocessingRule, ...] = ("frozen", "refitted")

#: By how much the log-odds fall of a person whose category the pipeline, fitted again, refuses to encode.
UNSEEN = 1000.0

#: Largest relative difference between a preprocessing and the same fitted again on the same rows.
REPRODUCED = 1e-6


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

    @classmethod
    def of(cls, pipeline: Any, steps: Preprocessing, train: TrainingSet) -> Deployed:
        """A fitted pipeline of two classes, one of them favourable."""
        return cls(pipeline, steps, 1.0 if pipeline.classes_[1] == train.favourable else -1.0)

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
        """The preprocessing fitted on these rows; ``X`` (n, d) are the same rows in schema space.

        What the fit made of the rows must be what the map found makes of them.
        """
        steps, images = self.steps.fitted_again(self.frame, self.labels)
        probe = Probe(steps, frames, replace(self.ranges, counts=Ranges.counted(X, frames)))
        try:
            found = probe.found(fills=bool(frames.fills))
        except CannotTransformError as error:
            raise UnsupportedModelError(
                f"Expected preprocessing that takes the rows it was fitted on, got one that cannot ({error}) after "
                "deletions; keep it as it is: preprocessing='frozen'."
            ) from error
        X = filled(X, self.missing, found.fills, frames)
        if not close(images, found, X, 10 * probe.tolerance):
            raise NotAtOptimumError(
                "Expected preprocessing that, fitted again, makes of its rows what it makes of others, got one that "
                "does not: it is random, or treats the rows it is fitted on unlike others (TargetEncoder). Use "
                "preprocessing='frozen'."
            )
        fills = {name: found.fills[name] for name in frames.fills if name in found.fills}  # those that were checked
        return Refit(replace(self, steps=steps), found, replace(frames, fills=fills), X, images)

    def refuse_two_ways(self) -> None:
        """The classifier must have been shown of its rows what others are shown of theirs (TargetEncoder does not)."""
        try:
            steps, images = self.steps.fitted_again(self.frame, self.labels)
            others = steps(self.frame)
        except (UnsupportedModelError, CannotTransformError):
            return
        if images.shape == others.shape and np.allclose(images, others, rtol=REPRODUCED, atol=REPRODUCED):
            return
        raise UnsupportedModelError(
            "Expected preprocessing that makes of the rows it is fitted on what it makes of others, got one that does "
            "not (TargetEncoder gives them codes from folds of the rows): what the classifier was fitted on is not "
            "known. Encode by OneHotEncoder, OrdinalEncoder or optbinning's BinningProcess; or take the pipeline over "
            "as it is, for promise='simulated', with otherwise='estimator'."
        )


@dataclass(frozen=True, eq=False)
class Refit:
    """Preprocessing fitted again: as a map, with the rows (n, d) as it fills them and what it makes of them (n, q)."""

    recipe: Recipe
    found: AffineMap
    frames: Frames
    X: Array
    images: Array

    @property
    def handicap(self) -> Array | None:
        """What categories that it refuses to encode add to the score, (d,); None where there are none."""
        return np.where(self.found.refused, -UNSEEN, 0.0) if self.found.refused.any() else None


def filled(X: Array, missing: NDArray[np.bool_], fills: Mapping[str, float], frames: Frames) -> Array:
    """Rows (n, d) with these numbers in place of missing ones."""
    X = X.copy()
    for column in np.flatnonzero(missing.any(axis=0)):
        X[missing[:, column], column] = fills.get(frames.columns[column], np.nan)
    return X


@dataclass(frozen=True, eq=False)
class PipelineParts:
    """What a logistic model has that came from a pipeline.

    ``deployed`` is None for retrained models and for models read from a file, ``recipe`` for the latter, which have
    ``stored_images`` (n, q) instead: what the preprocessing made of the training rows. ``handicap`` (d,) is added to
    the slopes in schema space.
    """

    frames: Frames
    rule: PreprocessingRule
    deployed: Deployed | None = None
    recipe: Recipe | None = None
    handicap: Array | None = None
    stored_images: Array | None = None

    def own_log_odds(self, X: Any, matrix: Array) -> Array:
        """Log-odds (P,) by the user's pipeline; NaN where it was not asked, as its columns cannot hold the point."""
        log_odds = np.full(len(matrix), np.nan)
        asked = self._askable(X, matrix)
        if self.deployed is not None and asked.any():
            log_odds[asked] = self.deployed.log_odds(self._own_rows(X, matrix, asked))
        return log_odds

    def training_images(self) -> Array | None:
        """What the preprocessing makes of the training rows (n, q); None for a file that does not say."""
        if self.stored_images is not None or self.recipe is None:
            return self.stored_images
        return self.recipe.steps(self.recipe.frame)

    def numbers_written(self) -> Array | None:
        """Numbers that stand somewhere in the preprocessing, in order; None where it cannot be looked through."""
        return None if self.recipe is None else numbers_in(self.recipe.steps.parts)

    def own_design(self, X: Any, matrix: Array, design: AnyDesign) -> tuple[Array, NDArray[np.bool_]]:
        """Design rows of people, who are X and the points (P, d), by the preprocessing itself, (P, p); of whom, (P,).

        It is asked about everybody whom the user's columns can hold, where it is at hand; NaN where it fails.
        """
        rows, asked = design(matrix), self._askable(X, matrix)
        if self.handicap is not None:  # categories that the preprocessing, fitted again, does not know
            asked &= matrix @ self.handicap == 0
        if self.recipe is None:
            asked[:] = False
        elif asked.any():
            width = design.width - int(design.intercept)
            rows[asked, :width] = self.recipe.steps.where_possible(self._own_rows(X, matrix, asked), width)
        return rows, asked

    def _askable(self, X: Any, matrix: Array) -> NDArray[np.bool_]:
        """Whether the user's columns can hold each of these people, who are X and the points (P, d); (P,)."""
        complete = np.isfinite(matrix).all(axis=1)
        return np.asarray(complete if self.frames.are_of(X) else complete & self._expressible(matrix))

    def _own_rows(self, X: Any, matrix: Array, which: NDArray[np.bool_]) -> pd.DataFrame:
        """Some of these people in the user's columns: as they were given, if they were given so, in pandas' types."""
        if is_frame(X) and self.frames.are_of(X):
            rows: pd.DataFrame = X[which]
            return rows
        missing = self.frames.missing(as_pandas(X)[which]) if self.frames.are_of(X) else None
        return self.frames.decode(matrix[which], people=matrix[which], missing=missing)

    def _expressible(self, matrix: Array) -> NDArray[np.bool_]:
        """Points that the user's columns can hold: whole numbers whole, one category each; (P,)."""
        schema = self.frames.schema
        whole = [feature.kind is not Kind.CONTINUOUS for feature in schema.column_features]
        discrete = matrix[:, whole]
        good = (discrete == np.rint(discrete)).all(axis=1)
        return np.asarray(good & np.array([not said for said in schema.problems(matrix)], bool))

    def retrained_without(self, rows: NDArray[np.intp]) -> PipelineParts:
        """What the model retrained without these rows has, where its preprocessing stays."""
        recipe = (
            None if self.recipe is None else self.recipe.keeping(np.delete(np.arange(len(self.recipe.frame)), rows))
        )
        images = None if self.stored_images is None else np.delete(self.stored_images, rows, axis=0)
        return replace(self, deployed=None, recipe=recipe, stored_images=images)

    def assumptions(self) -> tuple[Said, ...]:
        """What happens to the pipeline when rows are deleted, in sentences."""
        keys = ("frozen",) if self.rule == "frozen" else ("refitted", "refitted_people")
        return tuple(Said.of(f"models.pipeline.{key}") for key in keys)

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
        if not close(again.found(again.X), found, X, REPRODUCED):
            raise NotAtOptimumError(
                "Expected preprocessing that, fitted again on the rows given, makes the same of them, got one that "
                "does not: it was fitted on other rows, or with weights. Pass the rows it was fitted on, or use "
                "preprocessing='frozen'."
            )
