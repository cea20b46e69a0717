"""Rocerf: the conductor. People in, recourses with a stated promise out."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import replace
from os import PathLike
from typing import TYPE_CHECKING, Any, Literal

from numpy.typing import ArrayLike

from rocerf.audit.recheck import Recheck, recheck
from rocerf.audit.removal_budget import RemovalBudget, removal_budget
from rocerf.data.columns import complete
from rocerf.data.schema import FeatureSchema
from rocerf.deletion.efforts import checked_effort
from rocerf.deletion.k import number_of_deletions
from rocerf.errors import OptionError
from rocerf.explainer.alternatives import find_alternatives
from rocerf.explainer.assembly import assembled
from rocerf.explainer.calibration import calibrate_delta
from rocerf.explainer.checkpoints import resumable
from rocerf.explainer.confirmation import FindPoints, confirmed
from rocerf.explainer.files import read_states, write_states
from rocerf.explainer.options import checked_delta, checked_model, checked_schema, refuse_rules_unknown_to
from rocerf.explainer.preparation import finding_and_checking, points_for, warn_of_a_long_wait
from rocerf.explainer.states import explainer_from, states_of
from rocerf.models.model import LinearModel, Refittable
from rocerf.models.options import checked_seed, positive_whole
from rocerf.models.sklearn.own_refit import RetrainingRule
from rocerf.progress import Shown, Telling, shown
from rocerf.promises.held_out import HeldOut
from rocerf.promises.promise import Promise
from rocerf.promises.registry import PromiseOptions, default_k, promise_about
from rocerf.recourse.asked import Asked
from rocerf.recourse.costs.cost import Cost
from rocerf.recourse.costs.prices import CostTable
from rocerf.recourse.costs.registry import cost_named
from rocerf.recourse.gate import Gate
from rocerf.recourse.master.feasible_set import FeasibleSet
from rocerf.recourse.master.master import Master
from rocerf.recourse.result import Recourses, Settings
from rocerf.recourse.solvers.solution import Solution
from rocerf.recourse.solvers.solving import Solver, solver_for
from rocerf.recourse.triage import Triage
from rocerf.storage.state import State
from rocerf.types import Array, Progress
from rocerf.version import __version__

if TYPE_CHECKING:
    from datetime import date

    import pandas as pd

    from rocerf.letters.letter import Letter
    from rocerf.words import Language


class Rocerf:
    """Recourse that keeps a promise about deleted training rows.

    Parameters
    ----------
    model : LogisticModel, NeuralModel or EstimatorModel
        Who decides, with its training rows.
    k : int or str
        Deletions to withstand: a number, or a share of the training rows such as "0.5%" (rounded up). Only for
        "simulated" may it be left out: up to 5 % of the rows.
    promise : str or promise object
        For every model "retrained" (withstood every deletion the adversary could find, each truly retrained),
        "simulated" (accepted by nearly all models retrained after random deletions of 0 to k rows, on average over
        these numbers) and "plain" (nothing about deletions). For logistic models "certified" (proven for all
        deletions, where the proof closes); for these and networks "first_order" (the paper's estimate); for whatever is
        not linear "local_linear" (the paper's stand-in for networks). Options: the classes of :mod:`rocerf.promises`.
    delta : float or "calibrate"
        Margin the promise must keep above the acceptance boundary, in score units; "calibrate" chooses it by
        retraining after random deletions.
    cost : "l2", "l1", "mad", "percentile", a registered name, CostTable or Cost
        What a change costs: a norm of the change, each column in units of its training standard deviation (times the
        schema's weight) or of its median absolute deviation, how far values move among the training rows, or a table
        of prices (:mod:`rocerf.recourse.costs`).
    schema : FeatureSchema, optional
        What may change; without it, everything (for a pipeline, what its training rows say).
    max_changes : int, optional
        At most so many attributes change.
    solver : "auto", "cutting_plane", "sequential", "penalty", "cells" or "search"
        By default the cutting-plane method where the promise is concave (global optimum), repeated linearisation
        where it is smooth, "cells" for trees (global optimum), else a search. "penalty" is the paper's Algorithm 1.
    effort : "quick", "normal" or "thorough"
        How hard the adversary of "retrained" looks.
    seed : int
        For the random steps (calibration, random starts of the adversary).

    Examples
    --------
    >>> import rocerf
    >>> data = rocerf.load_dataset("german")
    >>> model = rocerf.LogisticModel.fit(data.train, C=1.0)
    >>> denied = data.test.frame()[model.predict(data.test.frame()) == 0]
    >>> recourses = Rocerf(model, k="0.5%", schema=data.schema).explain(denied.head(5))
    >>> recourses.settings.k, len(recourses)
    (4, 5)
    """

    def __init__(
        self,
        model: Refittable,
        k: int | str | None = None,
        *,
        promise: str | Promise | PromiseOptions = "retrained",
        delta: float | Literal["calibrate"] = 0.0,
        cost: str | CostTable | Cost = "l2",
        schema: FeatureSchema | None = None,
        max_changes: int | None = None,
        solver: str = "auto",
        effort: str = "normal",
        seed: int = 0,
    ) -> None:
        self._model = checked_model(model)
        deletions = number_of_deletions(default_k(promise) if k is None else k, len(model.train))
        self.seed = checked_seed(seed)
        self.effort = checked_effort(effort)
        self._promise = promise_about(promise, model, deletions, effort, seed)
        self.schema = checked_schema(schema, model)
        self.max_changes = None if max_changes is None else positive_whole(max_changes, "max_changes")
        #: The cost as it was asked for: a name, a table of prices, or a cost.
        self.cost_given = cost
        self.cost = cost_named(cost, model.train, self.schema)
        self.solver = solver_for(solver, self.promise)
        refuse_rules_unknown_to(self.solver, self.schema, self.max_changes)
        #: Finds the cheapest points under a promise: the solver with what it needs besides the problem.
        self.solve = Solver(self.solver, model.train, self.seed)
        margin = checked_delta(delta)
        #: Whether the margin is chosen by retraining after random deletions.
        self.calibrates = margin == "calibrate"
        self._delta = None if margin == "calibrate" else margin
        if self.calibrates and self.promise.chooses_margin:
            raise OptionError(
                f"Expected a number as delta for the promise {self.promise.name!r}, which chooses its own margin, got "
                "'calibrate'; leave delta out."
            )

    @property
    def model(self) -> Refittable:
        """The model that people are judged by. What was found or proven is about this one: it cannot be exchanged."""
        return self._model

    @property
    def promise(self) -> Promise:
        """The promise about this model and k."""
        return self._promise

    @property
    def k(self) -> int:
        """The number of deletions that the promise speaks of."""
        return self._promise.k

    @property
    def delta(self) -> float:
        """The margin in use; one that is to be calibrated is known once :meth:`prepare` was called."""
        if self._delta is None:
            raise OptionError("Expected a margin that is calibrated already, got none yet; call prepare() first.")
        return self._delta

    def __repr__(self) -> str:
        n = len(self.model.train)
        return f"Rocerf({self.promise.name}, k={self.k} of {n} rows, {self.cost.name}, {self.model!r})"

    def explain(
        self,
        X: ArrayLike | pd.DataFrame,
        *,
        id: str | None = None,
        progress: Telling = None,
        preparing: Telling = None,
        checkpoint: str | PathLike[str] | None = None,
    ) -> Recourses:
        """Recourse for each person of X, shape (P, d), in their order.

        A table (pandas, Polars, PyArrow) is matched by column names, and answers are tables of the same kind. People
        are called by its index, or by the column named as ``id``. Bad rows and impossible cases become results with
        a reason. ``progress=True`` shows how far it is and about how long the rest takes; a function is called with
        (done, total): of :meth:`prepare`, unless that has ``preparing`` to call, then of people, or of the models
        retrained for them. A ``checkpoint`` is a folder in which every round is
        written down as it is done; the same call, made again, goes on from there to the same answers.
        """
        find = self.find_points if checkpoint is None else resumable(self, checkpoint)
        with shown((progress, "people"), (preparing or progress is True, "preparation")) as (people, before):
            return self.explain_by(find, X, people, preparing=before, id=id)

    def find_points(self, problem: Master, progress: Progress | None = None) -> Solution:
        """The cheapest points that keep the promise, found by this explainer's solver."""
        return self.solve(self.promise, problem, self.delta, progress)

    def explain_by(
        self,
        find: FindPoints,
        X: ArrayLike | pd.DataFrame,
        progress: Progress | None = None,
        excluded: Sequence[tuple[frozenset[int], ...]] | None = None,
        preparing: Progress | None = None,
        id: str | None = None,
    ) -> Recourses:
        """Recourses out of what ``find`` finds for the people whom the model refuses; as :meth:`explain` otherwise.

        ``excluded`` holds for each person sets of attributes of which at least one must stay as it is.
        """
        asked = Asked.of(X, self.model, id)
        triage = Triage.of(asked, self.model, self.schema, self.promise)
        asking = triage.asking
        if len(asking):
            self._prepare(preparing or progress, len(asking))
        self._calibrate()
        problem = self.problem(asked.matrix[asking], asked.missing_of(asking), ruled=excluded is not None)
        if excluded is not None:
            problem = replace(problem, allowed=problem.allowed.excluding(tuple(excluded[person] for person in asking)))
        finding, checking = finding_and_checking(self.promise, progress)
        solution = Solution.blank(0, asked.matrix.shape[1])
        if len(asking):
            solution = confirmed(self.promise, find, problem, self.delta, find(problem, finding))
        return assembled(self, asked, triage, problem, solution, checking)

    def alternatives(
        self,
        X: ArrayLike | pd.DataFrame,
        most: int = 3,
        *,
        id: str | None = None,
        progress: Telling = None,
        preparing: Telling = None,
    ) -> tuple[Recourses, ...]:
        """Up to ``most`` answers for each person of X that ask for different changes, cheapest first.

        The first are those of :meth:`explain`. Each further one leaves alone at least one of the main changes of each
        earlier one, and is the cheapest of that kind; who has no further one is unanswered there, with a reason. The
        main changes are the dearest ones, as many as it takes for the rest to cost less than half: an answer that
        merely spares the smallest of ten changes is no alternative.
        """
        with shown((progress, "people"), (preparing or progress is True, "preparation")) as (people, before):
            return find_alternatives(self, X, most, people, before, id)

    def problem(self, X0: Array, missing: Sequence[Sequence[str]] | None = None, *, ruled: bool = False) -> Master:
        """The problem of people (P, d) who came without the features ``missing``.

        ``ruled`` with attributes to speak of, though there be no schema.
        """
        ruled = ruled or self.max_changes is not None
        schema = self.schema or (FeatureSchema.free(self.model.train.columns) if ruled else None)
        lift = self.model.lift if isinstance(self.model, LinearModel) else None
        frames = self.model.frames
        kept = None if frames is None else {name: frames.fills[name] for name in frames.kept}
        return Master.over(X0, self.cost, FeasibleSet.around(X0, schema, self.max_changes, missing, kept), lift)

    def prepare(self, progress: Telling = None) -> None:
        """Prove, simulate or calibrate what is needed before anybody can be answered, once; it may take minutes.

        :meth:`explain` does it by itself. ``progress`` is called with (done, total) of that work; True shows it.
        """
        with shown((progress, "preparation")) as (tell,):
            self._prepare(tell)

    def _prepare(self, progress: Progress | None, people: int = 0) -> None:
        if (progress is None or isinstance(progress, Shown)) and (people or not self.promise.prepared):
            warn_of_a_long_wait(self, people, shown=progress is not None)
        # A margin that is to be calibrated is so later: a promise has to be prepared before it can be read for that.
        self.promise.prepare(lambda promise, X0: points_for(self, promise, X0, self._delta or 0.0), progress)
        self._calibrate()

    def expected_seconds(self) -> float | None:
        """About how long :meth:`prepare` will take, by trying a small part of it; None where that is not known."""
        return self.promise.expected_seconds()

    def _calibrate(self) -> None:
        """Choose the margin, once, where it is to be chosen."""
        if self._delta is None and self.promise.impossible() is not None:
            self._delta = 0.0  # a promise that nobody can be given has nothing to calibrate
        if self._delta is None:
            self._delta = calibrate_delta(self.model, self.promise, self.problem, self.solve, seed=self.seed)

    def held_out(self, points: Array) -> HeldOut | None:
        """How points (P, d), missing where there are none, fare with models that the promise keeps for checking."""
        return self.promise.held_out(points)

    @property
    def gate(self) -> Gate:
        """What every point passes before it leaves, in answers and in letters."""
        return Gate(self.model, self.promise, self.delta)

    def letters(
        self,
        recourses: Recourses | Sequence[Recourses],
        *,
        valid_until: date | None,
        model_version: str | None = "",
        issued: date | None = None,
        language: str | Language = "en",
        digits: int = 3,
        refusal_reasons: Mapping[Any, Sequence[str]] | Sequence[Sequence[str]] | None = None,
        ranges: bool = False,
        progress: Telling = None,
    ) -> tuple[Letter, ...]:
        """A letter for each person: what to change, what was held fixed, the promise, until when it is valid.

        ``recourses`` are this explainer's, or what :meth:`alternatives` gave: then each letter lists the options,
        cheapest first. Numbers are rounded to so many significant ``digits`` in the direction of the change, and every
        point is checked again as it is written: against the rules, the model in use and the promise. Letters are of
        today where ``issued`` is left out. ``refusal_reasons``, by name or one list a person, get a section of their
        own. A number inside a bin is written as the bin ("between 12 and 23 months"): all of it was checked at once.
        With ``ranges`` so is whatever a person may overshoot while every model spoken of still accepts ("at least
        1,000"), over bins too. A pipeline itself is asked about every range before it is stated.
        """
        from rocerf.letters.writing import letters_and_points

        letters, *_ = letters_and_points(
            self,
            recourses,
            valid_until=valid_until,
            model_version=model_version,
            issued=issued,
            language=language,
            digits=digits,
            refusal_reasons=refusal_reasons,
            ranges=ranges,
            progress=progress,
        )
        return letters

    def recheck(
        self,
        recourses: Recourses | Sequence[Recourses],
        deleted_ids: Iterable[Any],
        *,
        refit: RetrainingRule | None = None,
    ) -> Recheck:
        """What deleting these rows does to recourses already given: retrain without them, see which still hold.

        They must be of this explainer's promise and k. What :meth:`alternatives` gave is checked option by option.
        ``refit`` says who retrains, as in :func:`rocerf.audit.recheck.recheck`.
        """
        return recheck(self.model, recourses, deleted_ids, promised=self.settings(), refit=refit)

    def forget(self, ids: Iterable[Any]) -> Rocerf:
        """A new explainer in which nothing of these training rows is left, with the same options otherwise.

        The model is made anew (its own ``forget``), and with it whatever was learned from rows: the guessed parts of
        the schema, the units of the cost, a calibrated delta, pool, certificate and simulated models, which come about
        again as they are asked for. k stays the same number. Letters already sent: :meth:`recheck` them first.

        This explainer still holds the rows, and so do folders it was saved in, copies and backups of them, and answers
        written with ``training_rows=True``; drop those. Other answers written before as JSON hold traces: a checksum of
        all rows, fills, guessed bounds and categories. (:meth:`LogisticModel.without` asks "what if": not this.)
        """
        from rocerf.explainer.forgetting import forgotten_explainer

        return forgotten_explainer(self, ids)

    def removal_budget(
        self,
        points: ArrayLike | pd.DataFrame | Recourses,
        *,
        most: int | None = None,
        share: float | None = None,
        progress: Telling = None,
    ) -> RemovalBudget:
        """How many deletions each point (P, d) survives: proven from below, found from above.

        Answers are taken by their points; whoever has none has -1. Deletions are tried up to ``most``, by default four
        times this explainer's k (at least 8). The proof is this explainer's own certificate if it has one, else that of
        a single deletion on tables of moderate size. A network or estimator breaks where fewer than a ``share`` of its
        retrainings accept: the promise's, else 0.95.
        """
        n = len(self.model.train)
        limit = min(n - 1, max(8, 4 * self.k)) if most is None else number_of_deletions(most, n)
        there = points.answered if isinstance(points, Recourses) else None
        given = points.matrix[there] if isinstance(points, Recourses) else self.model.matrix(points)
        X = complete(given, self.model.train.columns, what="points to find a removal budget for")
        with shown((progress, "points")) as (tell,):
            options: Any = {"given": self.promise, "share": share, "seed": self.seed, "progress": tell}
            found = removal_budget(self.model, X, limit, **options)
        return found if there is None else found.among(there)

    def save(self, path: str | PathLike[str]) -> None:
        """Write everything into a folder: model, options, and the pool of cuts or the certificate; no pickle.

        The folder holds **all training rows with their ids and labels**, so only its owner can read it. Everything is
        proven and calibrated first; then the folder takes the place of ``path`` in one step: whatever happens
        meanwhile, the old folder or the new one is there, whole. A folder that holds anything else is not replaced.
        """
        write_states(path, self.state())

    @classmethod
    def load(cls, path: str | PathLike[str], *, model: Refittable | None = None) -> Rocerf:
        """Read what :meth:`save` wrote; nothing found or proven has to be found or proven again.

        Files that are missing, damaged or changed are refused, and so is a ``model`` that is not in everything (rows,
        parameters, penalties, weights, design, threshold) the one that was saved. For a network that came from torch
        give the ``model``: ``NeuralModel.load(path / "model.npz", module=...)``.
        """
        return cls.from_state(read_states(path), model=model)

    def state(self) -> dict[str, State]:
        """Model, promise and options as plain values and arrays, by these names, to be kept anywhere.

        A margin that is to be calibrated is calibrated first, and what the promise proves is proven.
        """
        self._calibrate()
        return states_of(self)

    @classmethod
    def from_state(cls, states: Mapping[str, State], *, model: Refittable | None = None) -> Rocerf:
        """What :meth:`state` gave; as :meth:`load`."""
        return explainer_from(cls, states, model)

    def settings(self) -> Settings:
        """How this explainer makes its recourses; a margin that is to be calibrated is calibrated first."""
        self._calibrate()
        return Settings(
            method="rocerf",
            promise=self.promise.name,
            sentence=self.promise.sentence(self.delta),
            k=self.k,
            training_rows=len(self.model.train),
            delta=self.delta,
            cost=self.cost.name,
            solver=self.solver,
            seed=self.seed,
            version=__version__,
            data_checksum=self.model.train.checksum,
            max_changes=self.max_changes,
            searches=self.promise.searches,
            assumptions=(*self.model.assumptions(), *self.promise.assumptions),
            proven=self.promise.proven,
        )
