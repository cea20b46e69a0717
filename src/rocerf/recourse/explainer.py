"""Rocerf: the conductor. People in, recourses with a stated promise out."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable
from dataclasses import replace
from functools import cached_property
from os import PathLike
from typing import TYPE_CHECKING, Any, Literal

import numpy as np
from numpy.typing import ArrayLike, NDArray

from rocerf.data.columns import is_frame, is_number, people_matrix
from rocerf.data.schema import FeatureSchema, Kind
from rocerf.deletion.efforts import checked_effort
from rocerf.deletion.k import number_of_deletions
from rocerf.deletion.retraining import checked_seed
from rocerf.errors import OptionError
from rocerf.models.logistic import LogisticModel
from rocerf.promises.certified import Certified
from rocerf.promises.first_order import FirstOrder
from rocerf.promises.promise import Learning, Promise
from rocerf.promises.retrained import Retrained
from rocerf.recourse.calibration import calibrate_delta
from rocerf.recourse.cost import Cost
from rocerf.recourse.cutting_plane import solve_by_cuts
from rocerf.recourse.explainer_files import read_explainer, restore, write_explainer
from rocerf.recourse.feasible_set import FeasibleSet
from rocerf.recourse.master import Master
from rocerf.recourse.penalty import solve_by_penalty
from rocerf.recourse.recheck import Recheck, recheck
from rocerf.recourse.removal_budget import RemovalBudget, removal_budget
from rocerf.recourse.result import Recourses, Settings, Status
from rocerf.recourse.solution import Outcome, Progress, Solution
from rocerf.recourse.triage import Triage
from rocerf.version import __version__

if TYPE_CHECKING:
    import pandas as pd

Array = NDArray[np.float64]

#: The promises known by name.
PROMISES: dict[str, Callable[[LogisticModel, int, str, int], Promise]] = {
    "retrained": lambda model, k, effort, seed: Retrained(model, k, effort=effort, seed=seed),
    "certified": lambda model, k, _effort, _seed: Certified(model, k),
    "first_order": lambda model, k, _effort, seed: FirstOrder(model, k, seed=seed),
}
SOLVERS = ("auto", "cutting_plane", "penalty")

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
    model : LogisticModel
    k : int or str
        Deletions to withstand: a number, or a share of the training rows such as "0.5%" (rounded up).
    promise : str or Promise
        "retrained" (survives every deletion the adversary could find, truly retrained), "certified" (proven for all
        deletions, where the proof closes), "first_order" (the paper's estimate), or a promise object.
    delta : float or "calibrate"
        Margin the promise must keep above the acceptance boundary, in score units; "calibrate" chooses it by
        retraining after random deletions.
    cost : "l2" or "l1"
        Norm of the change, each column in units of its training standard deviation.
    schema : FeatureSchema, optional
        What may change; without it, everything.
    solver : "auto", "cutting_plane" or "penalty"
        The cutting-plane method (global optimum, the default) or the paper's Algorithm 1.
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
        model: LogisticModel,
        k: int | str,
        *,
        promise: str | Promise = "retrained",
        delta: float | Literal["calibrate"] = 0.0,
        cost: str = "l2",
        schema: FeatureSchema | None = None,
        solver: str = "auto",
        effort: str = "normal",
        seed: int = 0,
    ) -> None:
        if not isinstance(model, LogisticModel):
            raise OptionError(
                f"Expected a rocerf model, got {type(model).__name__}; "
                "wrap a fitted scikit-learn model with LogisticModel.from_sklearn(fitted, train)."
            )
        self.model = model
        self.k = number_of_deletions(k, len(model.train))
        self.seed = checked_seed(seed)
        self.effort = checked_effort(effort)
        self.promise = _promise(promise, model, self.k, effort, seed)
        self.cost = Cost.named(cost, np.asarray(model.train.spread))
        self.schema = schema
        if schema is not None:
            if not isinstance(schema, FeatureSchema):
                raise OptionError(
                    f"Expected schema to be a FeatureSchema, got {type(schema).__name__}; "
                    "make one with FeatureSchema.from_frame or FeatureSchema.free."
                )
            schema.check_columns(model.train.columns)
        if solver not in SOLVERS:
            raise OptionError(f"Expected solver to be one of {', '.join(SOLVERS)}, got {solver!r}.")
        if solver == "penalty" and isinstance(self.promise, Learning):
            raise OptionError(
                f"Expected solver='cutting_plane' for the promise {self.promise.wording.name!r}, whose every reading "
                "is a search: the penalty method would ask thousands of them."
            )
        if solver == "cutting_plane" and not self.promise.concave:
            raise OptionError(
                f"Expected solver='penalty' for the promise {self.promise.wording.name!r}, which has no cuts."
            )
        self.solver = solver if solver != "auto" else ("cutting_plane" if self.promise.concave else "penalty")
        self._delta = _checked_delta(delta)

    @cached_property
    def delta(self) -> float:
        """The margin in use; the first access may retrain some models if it is to be calibrated."""
        if self._delta == "calibrate":
            if self.promise.impossible() is not None:  # everybody is told so; there is nothing to calibrate
                return 0.0
            return calibrate_delta(self.model, self.promise, self.cost, self.schema, seed=self.seed)
        return self._delta

    def explain(self, X: ArrayLike | pd.DataFrame, *, progress: Progress | None = None) -> Recourses:
        """Recourse for each person of X, shape (P, d), in their order.

        A DataFrame is matched by column names and its index is kept. Bad rows and impossible cases
        become results with a reason. ``progress`` is called with (done, total).
        """
        train = self.model.train
        matrix, index = people_matrix(X, train.columns, named=train.from_frame)
        triage = Triage.of(matrix, self.model, self.schema, self.promise)
        asking = triage.asking
        solution = self._solve(matrix[asking], progress)
        recourses = self._assemble(matrix, index if is_frame(X) else None, triage, asking, solution)
        if not (is_frame(X) and train.from_frame):
            return recourses
        order = [str(name) for name in X.columns if str(name) in train.columns]  # type: ignore[union-attr]
        return replace(recourses, frame_columns=tuple(order))

    def _solve(self, X0: Array, progress: Progress | None) -> Solution:
        master = Master(X0, self.cost, FeasibleSet.around(X0, self.schema))
        if not len(X0):
            return Solution.blank(*X0.shape)
        if self.solver == "cutting_plane":
            return solve_by_cuts(self.promise, master, self.delta, progress=progress)
        return solve_by_penalty(self.promise, master, self.delta, progress=progress)

    def _assemble(
        self,
        matrix: Array,
        index: NDArray[np.generic] | None,
        triage: Triage,
        asking: NDArray[np.intp],
        solution: Solution,
    ) -> Recourses:
        people, d = matrix.shape
        points, costs, margins = np.full((people, d), np.nan), np.full(people, np.nan), np.full(people, np.nan)
        points[asking], margins[asking] = solution.points, solution.values
        costs[asking] = self.cost.of(solution.points - matrix[asking])
        scores = np.full(people, np.nan)
        found = np.isfinite(solution.points).all(axis=1)
        scores[asking[found]] = self.model.score(solution.points[found])
        retrainings = np.zeros(people, np.intp)
        retrainings[asking] = solution.retrainings
        statuses, reasons = list(triage.statuses), list(triage.reasons)
        worst: list[NDArray[np.generic] | None] = [None] * people
        for place, person in enumerate(asking):
            statuses[person] = _STATUS_OF[solution.outcomes[place]]
            reasons[person] = statuses[person].sentence
            worst[person] = solution.worst_ids[place]
        schema = self.schema or FeatureSchema.free(self.model.train.columns)
        return Recourses(
            people=matrix,
            matrix=points,
            costs=costs,
            margins=margins,
            statuses=tuple(statuses),
            reasons=tuple(reasons),
            columns=self.model.train.columns,
            labels=tuple(feature.display for feature in schema),
            units=tuple(feature.unit for feature in schema),
            settings=self.settings(),
            index=index,
            worst_ids=tuple(worst),
            retrainings=retrainings,
            scores=scores,
        )

    def recheck(self, recourses: Recourses, deleted_ids: Iterable[Any]) -> Recheck:
        """What deleting these rows does to recourses already given: retrain without them, see which still hold."""
        return recheck(self.model, recourses, deleted_ids)

    def removal_budget(
        self, points: ArrayLike | pd.DataFrame, *, most: int | None = None, progress: Progress | None = None
    ) -> RemovalBudget:
        """How many deletions each point (P, d) survives: proven from below, found from above.

        Deletions are tried up to ``most``, by default four times this explainer's k (at least 8). The proof is this
        explainer's own certificate if it has one, else that of a single deletion on tables of moderate size.
        """
        n = len(self.model.train)
        limit = min(n - 1, max(8, 4 * self.k)) if most is None else number_of_deletions(most, n)
        proofs = [self.promise] if isinstance(self.promise, Certified) else None
        X = self.model.matrix(points)
        return removal_budget(self.model, X, limit, proofs=proofs, seed=self.seed, progress=progress)

    def save(self, path: str | PathLike[str]) -> None:
        """Write everything into a folder: model, options, and the pool of cuts or the certificate; no pickle."""
        options = {
            "k": self.k,
            "promise": self.promise.wording.name,
            "delta": self.delta,
            "cost": str(self.cost.norm),
            "solver": self.solver,
            "effort": getattr(self.promise, "effort", self.effort),
            "seed": self.seed,
        }
        write_explainer(path, self.model, options, self.schema, self.promise)

    @classmethod
    def load(cls, path: str | PathLike[str]) -> Rocerf:
        """Read what :meth:`save` wrote; nothing found or proven has to be found or proven again."""
        model, options, schema, state = read_explainer(path)
        k = options.pop("k")
        explainer = cls(model, k, schema=schema, **options)
        restore(explainer.promise, state)
        return explainer

    def settings(self) -> Settings:
        """How this explainer makes its recourses."""
        relaxed = [f.name for f in self.schema or () if f.kind is Kind.INDICATOR and f.direction != "fixed"]
        return Settings(
            method="rocerf",
            promise=self.promise.wording.name,
            sentence=self.promise.wording.filled(self.k, self.delta),
            k=self.k,
            training_rows=len(self.model.train),
            delta=self.delta,
            cost=str(self.cost.norm),
            solver=self.solver,
            seed=self.seed,
            version=__version__,
            data_checksum=self.model.train.checksum,
            relaxed=tuple(relaxed),
            searches=self.promise.searches,
            assumptions=(*self.model.assumptions(), *self.promise.assumptions),
        )


def _promise(promise: str | Promise, model: LogisticModel, k: int, effort: str, seed: int) -> Promise:
    if isinstance(promise, str) and promise in PROMISES:
        return PROMISES[promise](model, k, effort, seed)
    if isinstance(promise, str) or not hasattr(promise, "wording"):
        raise OptionError(
            f"Expected promise to be one of {', '.join(PROMISES)}, or a promise object, got {promise!r}; "
            "the objects are in rocerf.promises."
        )
    if getattr(promise, "model", model) is not model:
        raise OptionError("Expected a promise about this model, got one about another; make it with the same model.")
    # The words told to people name k, so they must name the k that was kept.
    if promise.k != k:
        raise OptionError(f"Expected a promise about k={k} deletions, got one about {promise.k}; give both the same k.")
    return promise


def _checked_delta(delta: Any) -> float | Literal["calibrate"]:
    if isinstance(delta, str) and delta == "calibrate":
        return "calibrate"
    if not is_number(delta) or not math.isfinite(delta) or delta < 0:
        raise OptionError(
            f"Expected delta to be a number >= 0 or 'calibrate', got {delta!r}; 0 asks for no extra margin."
        )
    return float(delta)
