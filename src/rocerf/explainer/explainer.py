"""Rocerf: the conductor. People in, recourses with a stated promise out."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import replace
from functools import cached_property
from os import PathLike
from typing import TYPE_CHECKING, Any, Literal

import numpy as np
from numpy.typing import ArrayLike, NDArray

from rocerf.audit.recheck import Recheck, recheck
from rocerf.audit.removal_budget import RemovalBudget, removal_budget
from rocerf.data.columns import complete, is_number
from rocerf.data.schema import FeatureSchema, Kind
from rocerf.deletion.efforts import checked_effort
from rocerf.deletion.k import number_of_deletions
from rocerf.errors import OptionError, SchemaError, UnsupportedModelError
from rocerf.explainer.calibration import calibrate_delta
from rocerf.explainer.files import read_explainer, restore, write_explainer
from rocerf.explainer.own_fit_check import confirmed
from rocerf.models.model import ExactModel, Refittable
from rocerf.models.options import checked_seed, positive_whole
from rocerf.models.sklearn.own_refit import RetrainingRule
from rocerf.promises.by_name import default_k, promise_about
from rocerf.promises.certified import Certified
from rocerf.promises.held_out import HeldOut
from rocerf.promises.own_solver import OwnSolver, own_solver_from_arrays, without_allowance
from rocerf.promises.promise import Promise
from rocerf.promises.simulated import Simulated, SimulatedPromise
from rocerf.recourse.asked import Asked
from rocerf.recourse.cost import CostTable, Norm, NormCost, cost_named
from rocerf.recourse.gate import Gate
from rocerf.recourse.master.feasible_set import FeasibleSet
from rocerf.recourse.master.master import Master
from rocerf.recourse.result import Recourses, Settings, Status
from rocerf.recourse.solvers.solution import Outcome, Solution
from rocerf.recourse.solvers.solving import Solver, solver_for
from rocerf.recourse.triage import Triage
from rocerf.types import Array, Progress
from rocerf.version import __version__

if TYPE_CHECKING:
    from datetime import date

    import pandas as pd

    from rocerf.letters.letter import Letter
    from rocerf.letters.words import Words


#: A move of less than this share of a column's spread is a rounding error of a solver, and no change to ask for.
UNMOVED = 1e-9

_STATUS_OF = {
    Outcome.FOUND: Status.ANSWERED,
    Outcome.UNREACHABLE: Status.UNREACHABLE,
    Outcome.NOT_ROBUST: Status.NOT_ROBUST,
    Outcome.GAVE_UP: Status.GAVE_UP,
}


class Rocerf:
    """Recourse that keeps a promise about deleted training rows.

    Parameters
    ----------
    model : LogisticModel, NeuralModel or EstimatorModel
    k : int or str
        Deletions to withstand: a number, or a share of the training rows such as "0.5%" (rounded up). Only for
        "simulated" may it be left out: up to 5 % of the rows.
    promise : str or promise object
        For logistic models "retrained" (survives every deletion the adversary could find, truly retrained) and
        "certified" (proven for all deletions, where the proof closes). For logistic models and networks "first_order"
        (the paper's estimate). For whatever is not linear "local_linear" (the paper's stand-in for networks). For
        every model "simulated" (accepted by nearly all models retrained after random deletions; options:
        :class:`rocerf.promises.Simulated`).
    delta : float or "calibrate"
        Margin the promise must keep above the acceptance boundary, in score units; "calibrate" chooses it by
        retraining after random deletions.
    cost : "l2", "l1", "mad", "percentile" or CostTable
        What a change costs: a norm of the change, each column in units of its training standard deviation (times the
        schema's weight) or of its median absolute deviation, how far values move among the training rows, or a table
        of prices (:mod:`rocerf.recourse.cost`).
    schema : FeatureSchema, optional
        What may change; without it, everything (for a pipeline, what its training rows say).
    max_changes : int, optional
        At most so many attributes change.
    solver : "auto", "cutting_plane", "sequential", "penalty" or "search"
        By default the cutting-plane method where the promise is concave (global optimum), repeated linearisation
        where it is smooth, a search where it only has values. "penalty" is the paper's Algorithm 1.
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
    >>> recourses = Rocerf(model, k="0.5%", schema=data.schema).explain(denied)
    >>> recourses.settings.k, len(recourses) == len(denied)
    (4, True)
    """

    def __init__(
        self,
        model: Refittable,
        k: int | str | None = None,
        *,
        promise: str | Promise | Simulated = "retrained",
        delta: float | Literal["calibrate"] = 0.0,
        cost: str | CostTable = "l2",
        schema: FeatureSchema | None = None,
        max_changes: int | None = None,
        solver: str = "auto",
        effort: str = "normal",
        seed: int = 0,
    ) -> None:
        if not isinstance(model, Refittable):
            raise OptionError(
                f"Expected a rocerf model, got {type(model).__name__}; wrap a fitted scikit-learn model with "
                "LogisticModel.from_sklearn(fitted, train) or EstimatorModel.from_sklearn(fitted, train), a pipeline "
                "with rocerf.from_pipeline(pipeline, frame, y), a torch module with "
                "NeuralModel.from_torch(module, train)."
            )
        self._model = model
        deletions = number_of_deletions(default_k(promise) if k is None else k, len(model.train))
        self.seed = checked_seed(seed)
        self.effort = checked_effort(effort)
        self._promise = promise_about(promise, model, deletions, effort, seed)
        if schema is None:
            schema = model.schema
        if schema is not None:
            if not isinstance(schema, FeatureSchema):
                raise OptionError(
                    f"Expected schema to be a FeatureSchema, got {type(schema).__name__}; "
                    "make one with FeatureSchema.from_frame or FeatureSchema.free."
                )
            schema.check_columns(model.train.columns)
            _refuse_looser_kinds(schema, model.schema)
        self.schema = schema
        self.max_changes = None if max_changes is None else positive_whole(max_changes, "max_changes")
        self._table = cost if isinstance(cost, CostTable) else None
        self.cost = cost_named(cost, model.train, schema)
        self.solver = solver_for(solver, self.promise)
        self._refuse_rules_that_the_solver_does_not_know()
        self._solver = Solver(self.solver, model.train, self.seed)
        self._delta = _checked_delta(delta)
        if self._delta == "calibrate" and isinstance(self.promise, SimulatedPromise):
            raise OptionError(
                "Expected a number as delta for the promise 'simulated', which chooses its own margin, got "
                "'calibrate'; leave delta out."
            )

    def _refuse_rules_that_the_solver_does_not_know(self) -> None:
        ruled = self.max_changes is not None or (
            self.schema is not None
            and (self.schema.relations or any(f.kind is not Kind.CONTINUOUS or f.step for f in self.schema))
        )
        if self.solver == "penalty" and ruled:
            raise OptionError(
                "Expected a schema with bounds and directions only for the solver 'penalty' (Algorithm 1), got steps, "
                "categories, relations or a limit on changes; leave the solver to 'auto'."
            )
        if self.solver in ("penalty", "search") and not isinstance(self.cost, NormCost):
            raise OptionError(
                f"Expected the cost l2, l1 or mad for the solver {self.solver!r}, got {self.cost.name!r}; use a model "
                "with slopes, or one of these costs."
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

    @cached_property
    def delta(self) -> float:
        """The margin in use; the first access may retrain some models if it is to be calibrated."""
        if self._delta == "calibrate":
            if self.promise.impossible() is not None:  # everybody is told so; there is nothing to calibrate
                return 0.0
            return calibrate_delta(self.model, self.promise, self._master, self._solver, seed=self.seed)
        return self._delta

    def __repr__(self) -> str:
        n = len(self.model.train)
        return f"Rocerf({self.promise.wording.name}, k={self.k} of {n} rows, {self.cost.name}, {self.model!r})"

    def explain(self, X: ArrayLike | pd.DataFrame, *, progress: Progress | None = None) -> Recourses:
        """Recourse for each person of X, shape (P, d), in their order.

        A DataFrame is matched by column names and its index is kept. Bad rows and impossible cases
        become results with a reason. ``progress`` is called with (done, total).
        """
        return self.explain_by(lambda master, tell: self._solver(self.promise, master, self.delta, tell), X, progress)

    def explain_by(
        self,
        solve: Callable[[Master, Progress | None], Solution],
        X: ArrayLike | pd.DataFrame,
        progress: Progress | None = None,
        excluded: Sequence[tuple[frozenset[int], ...]] | None = None,
    ) -> Recourses:
        """Recourses out of what ``solve`` finds for the people whom the model refuses; as :meth:`explain` otherwise.

        ``excluded`` holds for each person sets of attributes of which at least one must stay as it is.
        """
        asked = Asked.of(X, self.model)
        triage = Triage.of(asked, self.model, self.schema, self.promise)
        asking = triage.asking
        if len(asking):
            self.prepare(progress)
        master = self._master(asked.matrix[asking], asked.missing_of(asking), ruled=excluded is not None)
        if excluded is not None:
            master = replace(master, allowed=master.allowed.excluding(tuple(excluded[person] for person in asking)))
        solution = solve(master, progress) if len(asking) else Solution.blank(0, asked.matrix.shape[1])
        if isinstance(self.promise, OwnSolver) and len(asking):
            solution = confirmed(self.promise, solve, master, self.delta, solution)
        return self._assemble(asked, triage, master, solution)

    def alternatives(
        self, X: ArrayLike | pd.DataFrame, most: int = 3, *, progress: Progress | None = None
    ) -> tuple[Recourses, ...]:
        """Up to ``most`` answers for each person of X that ask for different changes, cheapest first.

        The first are those of :meth:`explain`. Each further one leaves alone at least one of the main changes of each
        earlier one, and is the cheapest of that kind; who has no further one is unanswered there, with a reason. The
        main changes are the dearest ones, as many as it takes for the rest to cost less than half: an answer that
        merely spares the smallest of ten changes is no alternative.
        """
        positive_whole(most, "most")
        found = [self.explain(X, progress=progress)]
        schema = found[0].schema
        excluded: list[tuple[frozenset[int], ...]] = [()] * len(found[0])
        while len(found) < most and found[-1].answered.any():
            changed = FeasibleSet.around(found[-1].people, schema).changed(found[-1].matrix)
            for person in np.flatnonzero(found[-1].answered):
                main = self._main_changes(found[-1], int(person), np.flatnonzero(changed[person]))
                excluded[person] = (*excluded[person], main)

            def further(master: Master, tell: Progress | None) -> Solution:
                return self._solver(self.promise, master, self.delta, tell)

            found.append(self.explain_by(further, X, progress, excluded))
        return tuple(found)

    def _main_changes(self, found: Recourses, person: int, changed: NDArray[np.intp]) -> frozenset[int]:
        """Of the attributes that an answer changes, the dearest: without them the rest costs less than half."""
        x0, x = found.people[person], found.matrix[person]
        attributes = found.schema.attributes

        def cost_without(left_out: Iterable[int]) -> float:
            point = x.copy()
            for place in left_out:
                columns = list(attributes[place].places)
                point[columns] = x0[columns]
            return float(self.cost.of(point[None], x0[None])[0])

        dearest = sorted(changed.tolist(), key=lambda place: cost_without((place,)))
        whole = cost_without(())
        most = next((n for n in range(1, len(dearest)) if cost_without(dearest[:n]) < 0.5 * whole), len(dearest))
        return frozenset(dearest[:most])

    def _master(self, X0: Array, missing: Sequence[Sequence[str]] | None = None, *, ruled: bool = False) -> Master:
        """The problem of people (P, d) who came without the features ``missing``.

        ``ruled`` with attributes to speak of, though there be no schema.
        """
        ruled = ruled or self.max_changes is not None
        schema = self.schema or (FeatureSchema.free(self.model.train.columns) if ruled else None)
        return Master.over(X0, self.cost, FeasibleSet.around(X0, schema, self.max_changes, missing))

    def prepare(self, progress: Progress | None = None) -> None:
        """Prove, or simulate, what the promise needs before anybody can be answered, once; it may take minutes.

        :meth:`explain` does it by itself. ``progress`` is called with (done, total) in steps of that work.
        """
        proof = without_allowance(self.promise)
        if isinstance(proof, Certified):
            proof.prove(progress)
        if isinstance(self.promise, SimulatedPromise) and self.promise.factor is None:
            self.promise.simulate(progress)
            self.promise.choose(self._points_for)

    def _points_for(self, promise: Promise, X0: Array) -> Array:
        """Recourse under a promise for people (P, d) outside any request; missing where there is none.

        Steps, categories and limits on changes are relaxed: these points only choose a margin, and hundreds of
        mixed-integer programs at each margin tried would take longer than everything else.
        """
        master = self._master(X0)
        if master.mixed.any():
            curved = not isinstance(self.cost, NormCost)
            cost = NormCost(Norm.L1, self.cost.scale) if curved else self.cost
            master = Master(X0, cost, master.allowed.boxes())
        possible = np.flatnonzero(~master.allowed.empty)
        points = np.full(X0.shape, np.nan)
        points[possible] = self._solver(promise, master.of(possible), self.delta).points
        return points

    def _held_out(self, points: Array) -> HeldOut | None:
        """How the points found fare with models kept for checking, for a promise that has them."""
        found = np.isfinite(points).all(axis=1)
        if not isinstance(self.promise, SimulatedPromise) or not found.any():
            return None
        held_out = self.promise.check(points[found])
        accepted = np.full(len(points), -1, np.intp)
        accepted[found] = held_out.accepted
        return replace(held_out, accepted=accepted)

    def _assemble(self, asked: Asked, triage: Triage, master: Master, solution: Solution) -> Recourses:
        matrix, asking = asked.matrix, triage.asking
        withheld = self._through_the_gate(solution, master, asked, asking)
        people = len(matrix)
        points, costs, margins, gaps, scores = np.full(matrix.shape, np.nan), *np.full((4, people), np.nan)
        points[asking], margins[asking] = solution.points, solution.values
        found = np.isfinite(solution.points).all(axis=1)
        costs[asking] = self.cost.of(solution.points, matrix[asking])
        gaps[asking[found]] = solution.gaps[found]
        scores[asking[found]] = self.model.score(solution.points[found])
        retrainings = np.zeros(people, np.intp)
        retrainings[asking] = solution.retrainings
        statuses, reasons = list(triage.statuses), list(triage.reasons)
        worst: list[NDArray[np.generic] | None] = [None] * people
        for place, person in enumerate(asking):
            statuses[person], reasons[person] = self._told(solution.outcomes[place], master, place)
            reasons[person] = withheld.get(place, reasons[person])
            worst[person] = solution.worst_ids[place]
        return Recourses(
            people=matrix,
            matrix=points,
            costs=costs,
            margins=margins,
            statuses=tuple(statuses),
            reasons=tuple(reasons),
            schema=self.schema or FeatureSchema.free(self.model.train.columns),
            settings=self.settings(),
            index=asked.index,
            worst_ids=tuple(worst),
            retrainings=retrainings,
            scores=scores,
            held_out=self._held_out(points),
            frame_columns=asked.frame_columns,
            gaps=gaps,
            frames=asked.frames,
            missing=asked.missing,
        )

    @property
    def gate(self) -> Gate:
        """What every point passes before it leaves, in answers and in letters."""
        return Gate(self.model, self.promise, self.delta)

    def _through_the_gate(
        self, solution: Solution, master: Master, asked: Asked, asking: NDArray[np.intp]
    ) -> dict[int, str]:
        """Points as they leave, with the margins read there; the places of those who have none that passes, and why.

        First without changes that are only a solver's rounding; where that fails, as the solver found them.
        """
        found = np.flatnonzero(np.isfinite(solution.points).all(axis=1))
        own, allowed = solution.points[found], master.allowed.of(found)
        tidied = self._without_rounding(own, allowed)
        verdict = self.gate.first_passing(
            [tidied.__getitem__, own.__getitem__], allowed, asked.missing_of(asking[found]), asked.frames
        )
        solution.points[found], solution.values[found] = verdict.points, verdict.margins
        # Whoever says so, only what passed here was found.
        solution.outcomes[solution.outcomes == Outcome.FOUND] = Outcome.GAVE_UP
        solution.outcomes[found[verdict.passed]] = Outcome.FOUND
        return {int(found[place]): verdict.reasons[place] for place in np.flatnonzero(~verdict.passed)}

    def _without_rounding(self, points: Array, allowed: FeasibleSet) -> Array:
        """Points (P, d) without what moved by a solver's rounding only, unless a rule needs it: a value just outside.

        Of a model without slopes the least move may matter, so there nothing is put back.
        """
        if not self.promise.smooth:
            return points
        still = np.abs(points - allowed.X0) <= UNMOVED * np.asarray(self.model.train.spread)
        settled = np.where(still, allowed.X0, points)
        keeps = allowed.holds(settled) | ~allowed.holds(points)
        return np.where(keeps[:, None], settled, points)

    def _told(self, outcome: Outcome, master: Master, place: int) -> tuple[Status, str]:
        """How a person's request ended, with the limit that may be why."""
        status, allowed = _STATUS_OF[outcome], master.allowed
        if status not in (Status.UNREACHABLE, Status.NOT_ROBUST):
            return status, status.sentence
        if allowed.excluded is not None and allowed.excluded[place]:
            return Status.NO_FURTHER, Status.NO_FURTHER.sentence
        if status is Status.UNREACHABLE and not master.possible(place):
            return Status.CONTRADICTION, Status.CONTRADICTION.sentence
        limit = "" if self.max_changes is None else f" (at most {self.max_changes} may change)"
        return status, status.sentence + limit

    def letters(
        self,
        recourses: Recourses | Sequence[Recourses],
        *,
        valid_until: date | None,
        model_version: str | None = "",
        issued: date | None = None,
        language: str | Words = "en",
        digits: int = 3,
        refusal_reasons: Mapping[Any, Sequence[str]] | Sequence[Sequence[str]] | None = None,
    ) -> tuple[Letter, ...]:
        """A letter for each person: what to change, what was held fixed, the promise, until when it is valid.

        ``recourses`` are this explainer's, or what :meth:`alternatives` gave: then each letter lists the options,
        cheapest first. Numbers are rounded to so many significant ``digits`` in the direction of the change, and every
        point is checked again as it is written: against the rules, the model in use and the promise. Letters are of
        today where ``issued`` is left out. ``refusal_reasons``, by name or one list a person, get a section of their
        own.
        """
        from rocerf.letters.writing import write_letters

        return write_letters(
            self,
            recourses,
            valid_until=valid_until,
            model_version=model_version,
            issued=issued,
            language=language,
            digits=digits,
            refusal_reasons=refusal_reasons,
        )

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
        self, points: ArrayLike | pd.DataFrame, *, most: int | None = None, progress: Progress | None = None
    ) -> RemovalBudget:
        """How many deletions each point (P, d) survives: proven from below, found from above.

        Deletions are tried up to ``most``, by default four times this explainer's k (at least 8). The proof is this
        explainer's own certificate if it has one, else that of a single deletion on tables of moderate size.
        """
        if not isinstance(self.model, ExactModel):
            raise UnsupportedModelError(
                f"Expected a LogisticModel to look for the worst deletions in, got {type(self.model).__name__}, whose "
                "retraining has no single outcome; use the promise 'simulated' and its held_out validity."
            )
        n = len(self.model.train)
        limit = min(n - 1, max(8, 4 * self.k)) if most is None else number_of_deletions(most, n)
        proof = without_allowance(self.promise)
        proofs = [proof] if isinstance(proof, Certified) else None
        X = complete(self.model.matrix(points), self.model.train.columns, what="points to find a removal budget for")
        return removal_budget(self.model, X, limit, proofs=proofs, seed=self.seed, progress=progress)

    def save(self, path: str | PathLike[str]) -> None:
        """Write everything into a folder: model, options, and the pool of cuts or the certificate; no pickle.

        The folder holds **all training rows with their ids and labels**, so only its owner can read it. Everything is
        proven and calibrated first; then the folder takes the place of ``path`` in one step: whatever happens
        meanwhile, the old folder or the new one is there, whole. A folder that holds anything else is not replaced.
        """
        options = {
            "k": self.k,
            "promise": self.promise.wording.name,
            "delta": self.delta,
            "calibrated": self._delta == "calibrate",
            "cost": self.cost.name,
            "solver": self.solver,
            "max_changes": self.max_changes,
            "effort": getattr(without_allowance(self.promise), "effort", self.effort),
            "seed": self.seed,
        }
        write_explainer(path, self.model, options, self.schema, self.promise, self._table)

    @classmethod
    def load(cls, path: str | PathLike[str], *, model: Refittable | None = None) -> Rocerf:
        """Read what :meth:`save` wrote; nothing found or proven has to be found or proven again.

        Files that are missing, damaged or changed are refused, and so is a ``model`` that is not in everything (rows,
        parameters, penalties, weights, design, threshold) the one that was saved. For a network that came from torch
        give the ``model``: ``NeuralModel.load(path / "model.npz", module=...)``.
        """
        model, options, schema, state = read_explainer(path, model)
        k, calibrated = options.pop("k"), options.pop("calibrated", False)
        explainer = cls(model, k, schema=schema, **options)
        if calibrated:  # what was found is kept; once rows are forgotten it is to be found again
            explainer.delta, explainer._delta = options["delta"], "calibrate"
        explainer._promise = own_solver_from_arrays(explainer.promise, state)
        restore(explainer.promise, state)
        return explainer

    def settings(self) -> Settings:
        """How this explainer makes its recourses."""
        return Settings(
            method="rocerf",
            promise=self.promise.wording.name,
            sentence=self.promise.wording.filled(self.k, self.delta),
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
            proven=self.promise.wording.proven,
        )


#: What a column of a kind may be in a stricter schema, besides the same.
_STRICTER = {Kind.CONTINUOUS: (Kind.INTEGER, Kind.BINARY), Kind.INTEGER: (Kind.BINARY,)}


def _refuse_looser_kinds(schema: FeatureSchema, own: FeatureSchema | None) -> None:
    """Points must be values of the user's columns as their model has them: 1.98 children are nobody's."""
    if own is None:
        return
    for feature, known in zip(schema.column_features, own.column_features, strict=True):
        if feature.kind is not known.kind and feature.kind not in _STRICTER.get(known.kind, ()):
            raise SchemaError(
                f"Expected {known.name!r} to be {known.kind.value}, as in the schema that the pipeline was taken over "
                f"with, got {feature.kind.value}, which allows values that this column cannot hold; start from "
                "model.schema, or take the pipeline over with this schema: rocerf.from_pipeline(..., schema=...)."
            )


def _checked_delta(delta: Any) -> float | Literal["calibrate"]:
    if isinstance(delta, str) and delta == "calibrate":
        return "calibrate"
    if not is_number(delta) or not math.isfinite(delta) or delta < 0:
        raise OptionError(
            f"Expected delta to be a number >= 0 or 'calibrate', got {delta!r}; 0 asks for no extra margin."
        )
    return float(delta)
