"""The promise by simulation: accepted by nearly all models really retrained after random deletions.

Whatever can be trained again can be asked this way; for networks it is the only honest way, since a new initialisation
moves the score more than a few deleted rows do. Retrained models are simulated in three groups that share nothing:

* *shaping*: their scores at x make the value: ``value(x) = mean_m f_m(x) - factor * sd_m f_m(x)``, so that the margin
  follows the spread at x; or the score that a share of the models reaches (:mod:`rocerf.promises.margins`);
  or ``f(x) - factor``, one margin for everybody;
* *choosing*: the factor is the smallest at which the recourses of refused training rows are accepted by the share asked
  for, by a bound of nominally 95 % over these models at each factor tried, both as counted and as expected from the
  scores (counting alone would take 60 models that all accept for proof of 99 %);
* *checking*: what is reported. They are looked at once, when the points stand.

Where no factor serves the training rows, nobody is turned away for it: people are answered *one by one*. A point must
then be accepted by enough of the shaping and choosing models together, whatever becomes of other people's points; who
has no such point gets the reason. The checking models stay out of that, too.

The bound reported is Clopper and Pearson's. For one person the trials are the checking models, independent given the
point. For the batch, people share the models, so their pairs are not independent: one person is drawn (by seed) for
each model, and those trials are.
"""

from __future__ import annotations

from copy import copy
from dataclasses import asdict
from functools import cached_property
from typing import Any, Literal, Self

import numpy as np

from rocerf.errors import OptionError
from rocerf.models.ensembles import Ensemble, SmoothEnsemble
from rocerf.models.model import LinearModel, Refittable, Timed
from rocerf.models.sklearn.bulk import asked_together
from rocerf.models.trees.scored import trees_in_use
from rocerf.promises import margin_choice
from rocerf.promises.answering_time import seconds_to_answer
from rocerf.promises.held_out import HeldOut
from rocerf.promises.margins import LADDER, counted, enough_for, spread_below_mean
from rocerf.promises.picked import PickedCheck
from rocerf.promises.promise import STATE_FORMAT, Promise, Reading, Solve
from rocerf.promises.retrainings import after_random_deletions
from rocerf.promises.simulated_options import Simulated
from rocerf.promises.stages import in_turn
from rocerf.promises.tree_bounds import CountedTrees
from rocerf.storage.state import State
from rocerf.types import Array, Progress
from rocerf.words import Said

__all__ = ["Simulated", "SimulatedPromise"]

#: Refused training rows whose recourse decides the factor; fewer where each recourse is a search.
PEOPLE, PEOPLE_SEARCHED = 200, 20

#: Points that a search may read for each of them: what decides is the share accepted, not the last bit of the cost.
READS_TO_CHOOSE = 600

#: Seconds that a proof over the cells of trees takes for each leaf of each model, as measured on German (4e-6 to 2e-5).
A_LEAF = 1e-5

#: The groups of retrained models.
GROUPS = ("shaping", "choosing", "checking")

#: Share of people asked at a factor, on average (most are refused after a few); scores computed at a time.
SHARE_ASKED, BLOCK = 0.5, 200_000


class SimulatedPromise(CountedTrees, Promise):
    """``value(x) >= 0`` at the factor chosen; made by :meth:`Simulated.about`, and idle until it is asked."""

    name = "simulated"
    chooses_margin = True
    model: Refittable
    options: Simulated
    #: Chosen by :meth:`prepare`; until then the promise cannot be read.
    factor: float | None = None
    #: Whether no factor served the training rows, so that each point is held against shaping and choosing models.
    one_by_one: bool = False
    _models: Ensemble | None = None

    def __init__(self, model: Refittable, k: int, options: Simulated, seed: int) -> None:
        super().__init__(model, k)
        self.options, self.seed = options, seed

    @property
    def margin(self) -> Literal["spread", "count", "fixed"]:
        """How the margin is made."""
        if self.one_by_one:
            return "count"
        if self.options.margin != "auto":
            return self.options.margin
        return "count" if self.readable else "spread"  # by counting, the cheapest point can be proven to be so

    @property
    def concave(self) -> bool:
        """Whether gradients are cuts: of affine scores less their spread they are, and of the lowest of them."""
        return super().concave and self.options.margin != "count"

    # --- what is said -------------------------------------------------------------------------------

    def sentence(self, delta: float) -> Said:
        """What may be said before anybody looks; how points fared is in the result's ``held_out``."""
        how, rows = Said.of(f"promises.{self.options.retraining}"), Said.of("promises.rows", k=self.k)
        if self.one_by_one:
            return Said.of("promises.simulated_one_by_one", **self._enough, how=how, k=self.k, rows=rows)
        return Said.of("promises.simulated", validity=self.options.validity, how=how, k=self.k, rows=rows)

    @property
    def assumptions(self) -> tuple[Said, ...]:
        """The random deletions, how the margin was made, and how many models were used for what."""
        o = self.options
        deletions = Said.of("promises.random_deletions", k=self.k)
        if self.one_by_one:
            checking = {**self._enough, "checking": o.checking, "validity": o.validity}
            return deletions, Said.of("promises.margin_one_by_one", **checking)
        groups = {"shaping": o.shaping, "choosing": o.choosing, "checking": o.checking}
        return deletions, Said.of(f"promises.margin_{self.margin}"), Said.of("promises.three_groups", **groups)

    @property
    def _enough(self) -> dict[str, int]:
        """How many models must accept a point of people answered one by one, and of how many."""
        o = self.options
        models = o.shaping + o.choosing
        # Of affine scores only the lowest is concave, and the cutting-plane method takes it to be.
        affine = isinstance(self.model, LinearModel)
        enough = models if affine else enough_for(o.validity, models, margin_choice.CONFIDENCE)
        return {"enough": enough, "models": models}

    # --- retrained models ---------------------------------------------------------------------------

    @property
    def models(self) -> Ensemble:
        """All simulated models, trained at first use."""
        self.simulate()
        assert self._models is not None
        return self._models

    def simulate(self, progress: Progress | None = None) -> None:
        """Retrain the models of all three groups, once."""
        if self._models is None:
            self._models = self._retrained(progress)

    @property
    def _count(self) -> int:
        return self.options.shaping + self.options.choosing + self.options.checking

    def _retrained(self, progress: Progress | None) -> Ensemble:
        o = self.options
        return after_random_deletions(self.model, self.k, self._count, o.retraining, self.seed, progress)

    @cached_property
    def _shaping(self) -> Ensemble:
        return self.models[: self.options.shaping]

    @property
    def _choosing(self) -> Ensemble:
        return self.models[self.options.shaping : self.options.shaping + self.options.choosing]

    @cached_property
    def _unchecking(self) -> Ensemble:
        return self.models[: self.options.shaping + self.options.choosing]

    @property
    def _checking(self) -> Ensemble:
        return self.models[self.options.shaping + self.options.choosing :]

    # --- state --------------------------------------------------------------------------------------

    def state(self) -> State:
        """The options, the factor chosen and, where they can be written as arrays, the simulated models."""
        arrays: dict[str, Array] = {}
        if self.factor is not None:
            models = [] if self._models is None else self._models.arrays()
            arrays = {"factor": np.array(self.factor), **{f"model_{i}": values for i, values in enumerate(models)}}
            arrays |= {"one_by_one": np.array(True)} if self.one_by_one else {}
        return State(STATE_FORMAT, asdict(self.options), arrays)

    def restore(self, state: State) -> None:
        """Take over what :meth:`state` gave; models that could not be written are simulated again when asked."""
        if state.values:
            self.options = Simulated(**state.values)
        if "factor" in state.arrays:
            self.factor = float(state.arrays["factor"])
            self.one_by_one = "one_by_one" in state.arrays
            stack = [state.arrays[f"model_{i}"] for i in range(sum(name.startswith("model_") for name in state.arrays))]
            self._models = self.model.restored(stack) if stack else None

    def anew(self, model: Any) -> Self:
        """The same about another model."""
        return type(self)(model, self.k, self.options, self.seed)

    # --- reading ------------------------------------------------------------------------------------

    def read(self, X: Array, target: float | Array = -np.inf) -> Reading:
        """The value and, where the models have slopes, its slope; never above the model as it is."""
        if self.factor is None:
            raise OptionError("Expected the margin to be chosen before the promise is read; call choose first.")
        if self.margin == "fixed":
            today = self.today(X)
            return Reading(today.values - self.factor, today.slopes)
        models = self._unchecking if self.one_by_one else self._shaping
        size = max(1, BLOCK // len(models))
        with asked_together():
            today = self.today(X)
            blocks = [X] if len(X) <= size else [X[first : first + size] for first in range(0, len(X), size)]
            parts = [self._read_block(models, block) for block in blocks if len(block)]
        values = np.concatenate([part[0] for part in parts]) if parts else np.empty(0)
        slopes = np.concatenate([part[1] for part in parts]) if parts else np.empty(X.shape)
        return Reading(values, slopes).floored_by(today)

    def _read_block(self, models: Ensemble, X: Array) -> tuple[Array, Array]:
        assert self.factor is not None
        value_of = spread_below_mean if self.margin == "spread" else counted
        if isinstance(models, SmoothEnsemble):
            scores, pullback = models.scores_and_pullback(X)
            values, weights = value_of(scores, self.factor)
            return values, pullback(weights)
        scores, slopes = models.scores(X), np.full(X.shape, np.nan)
        trees = self.readable and self.margin == "count"
        return self.counted_by(scores) if trees else value_of(scores, self.factor)[0], slopes

    # --- choosing the margin ------------------------------------------------------------------------

    @property
    def prepared(self) -> bool:
        """Whether the factor is chosen."""
        return self.factor is not None

    def prepare(self, solve: Solve, progress: Progress | None = None) -> None:
        """Retrain the models and choose the factor."""
        if not self.prepared:
            retraining, choosing = in_turn(progress, self._stages if progress is not None else (1.0, 1.0))
            self.simulate(retraining)
            self.choose(solve, choosing)

    def expected_seconds(self) -> float | None:
        """About how long :meth:`prepare` will take; None where the model does not know how long it trains."""
        if self.prepared:
            return 0.0
        retraining, choosing = self._expected
        return None if retraining is None else retraining + choosing

    @property
    def shorter(self) -> str:
        """Fewer models."""
        half = ", ".join(f"{name}={max(2, getattr(self.options, name) // 2)}" for name in GROUPS)
        when = " before the audit" if self.options.audit else ""
        return f"{self._count} models are retrained{when}, and half of them, Simulated({half}), take half the time"

    @cached_property
    def _expected(self) -> tuple[float | None, float]:
        """Seconds of retraining, where they are known, and of choosing."""
        model, how = self.model, self.options.retraining
        retraining = model.seconds_to_retrain(self._count, retraining=how) if isinstance(model, Timed) else None
        people = len(self._refused()) * SHARE_ASKED * self._verdicts
        trees = trees_in_use(model) if self.readable else None
        if trees is not None:
            return retraining, people * self.options.shaping * trees.form.leaves * A_LEAF
        return retraining, people * seconds_to_answer(model, self.options.shaping, READS_TO_CHOOSE)

    @property
    def _stages(self) -> tuple[float, float]:
        """How long retraining and choosing take against each other."""
        retraining, choosing = self._expected
        return (1.0, 1.0) if retraining is None else (retraining + 1e-9, choosing + 1e-9)

    def choose(self, solve: Solve, progress: Progress | None = None) -> None:
        """Set the smallest factor at which refused training rows' recourses reach the validity asked for.

        Where there is none, people are answered one by one from now on.
        """
        self.one_by_one = False
        X0, tried = self._refused(), 0

        def verdict(factor: float) -> bool | None:
            nonlocal tried
            said, tried = self._reaches(factor, X0, solve), tried + 1
            if progress is not None:
                progress(min(tried, self._verdicts - 1), self._verdicts)
            return said

        self.factor = self._lowest(verdict) if len(X0) else None
        self.one_by_one = self.factor is None
        if self.factor is None:
            self.factor = self._enough["enough"] / self._enough["models"]
        if progress is not None:
            progress(self._verdicts, self._verdicts)

    def _lowest(self, verdict: margin_choice.Verdict) -> float | None:
        if self.margin == "count":
            return margin_choice.lowest_on_ladder(verdict, LADDER)
        unit = 1.0 if self.margin == "spread" else float(np.std(self.model.score(self.model.train.X)))
        return margin_choice.lowest_on_line(verdict, unit)

    @property
    def _verdicts(self) -> int:
        on_ladder = self.margin == "count"
        return margin_choice.verdicts_on_ladder(len(LADDER)) if on_ladder else margin_choice.verdicts_on_line()

    def _refused(self) -> Array:
        train = self.model.train
        refused = np.flatnonzero(self.model.predict(train.X) == 0)
        most = PEOPLE if self.smooth else PEOPLE_SEARCHED
        X: Array = train.X[np.sort(np.random.default_rng(self.seed).permutation(refused)[:most])]
        return X

    def _reaches(self, factor: float, X0: Array, solve: Solve) -> bool | None:
        """Whether the validity is reached at this factor; None if nobody can be answered there.

        Most factors are refused after the first few people: they are asked first.
        """
        asked, o = self.at(factor), self.options
        scores = np.empty((o.choosing, 0))
        # A search asks for all its people at once, and few cost as much as many there.
        parts = margin_choice.parts_of(len(X0)) if self.smooth or self.readable else [(0, len(X0))]
        for first, last in parts:
            points = solve(asked, X0[first:last])
            answered = points[np.isfinite(points).all(axis=1)]
            if len(answered):
                scores = np.concatenate([scores, self._choosing.scores(answered)], axis=1)
            if margin_choice.cannot_reach(scores, o.validity, others=len(X0) - last):
                return False
        skewed = self.margin == "count"
        return margin_choice.reaches(scores, o.validity, skewed=skewed) if scores.shape[1] else None

    def at(self, factor: float) -> Self:
        """The same promise, with the same models, at this factor."""
        self.simulate()
        same = copy(self)
        same.factor, same.most_reads = factor, READS_TO_CHOOSE
        return same

    # --- checking -----------------------------------------------------------------------------------

    def held_out(self, points: Array, progress: Progress | None = None) -> HeldOut | None:
        """How points (P, d) fare with the models kept for checking; missing points are counted as -1."""
        somebody = np.isfinite(points).all(axis=1).any()  # for nobody nothing need be retrained
        return HeldOut.by(self._checking, points, self.options.confidence, self.seed) if somebody else None

    @property
    def checks_at_length(self) -> bool:
        """Whether there is an audit to make."""
        return self.options.audit

    def answering_seconds(self, people: int) -> float | None:
        """Of the audit."""
        return self._audit.expected_seconds(people) if self.options.audit else 0.0

    @cached_property
    def _audit(self) -> PickedCheck:
        return PickedCheck.auditing(self.model, self.k, self.options.confidence, self.seed)

    def picked(self, points: Array, progress: Progress | None = None) -> HeldOut | None:
        """How points (P, d) fare without at most k rows picked to do harm, of which the promise says nothing."""
        return self._audit.of(points, progress) if self.options.audit else None
