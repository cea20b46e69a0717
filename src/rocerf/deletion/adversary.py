"""The adversary: the worst deletion of at most k rows it can find, every claim truly retrained.

It tells the truth about any recourse, ours or another method's: it looks for the set of rows whose deletion
lowers the score at a point most, by an ensemble of searches (:mod:`rocerf.deletion.searches`), retrains to
convergence, and reports only what that retrained model really says.
"""

from __future__ import annotations

from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from copy import copy
from dataclasses import dataclass, field
from functools import cached_property
from typing import Any

import numpy as np
from numpy.typing import NDArray

from rocerf.data.columns import complete, people_matrix
from rocerf.deletion.batched_newton import BatchedNewton
from rocerf.deletion.efforts import EFFORTS, Effort, checked_effort
from rocerf.deletion.finding import Finding
from rocerf.deletion.k import number_of_deletions
from rocerf.deletion.rare_groups import RareGroups
from rocerf.deletion.refit_search import search_by_refits
from rocerf.deletion.refitted import joined, truly_refitted
from rocerf.deletion.searches import search
from rocerf.errors import DataError, OptionError
from rocerf.models.logistic.model import LogisticModel
from rocerf.models.model import Model
from rocerf.models.options import checked_seed
from rocerf.passes import one_blas_thread, workers
from rocerf.types import Array, Progress

#: Entries of one (points x rows) block: bounds working memory at a few arrays of this size for each worker.
BLOCK_ENTRIES = 2_000_000


@dataclass(frozen=True, eq=False)
class Attack:
    """The worst deletion found for one point.

    ``score`` is the retrained model's score there (-inf: no model can be trained), ``theta`` its parameters.
    ``deleted_ids`` are other people's data.
    """

    score: float
    deleted_ids: NDArray[Any] = field(repr=False)
    found_by: str
    retrainings: int
    theta: Array = field(repr=False)


@dataclass(frozen=True, eq=False)
class Attacks:
    """The worst deletions found for P points: arrays over points, and a sequence of :class:`Attack`.

    ``scores`` (P,), ``thetas`` (P, p), ``retrainings`` (P,): models retrained to convergence for each point;
    ``deleted_rows`` are row numbers in the training set, ``ids`` its ids. Linear models are also given in schema
    space, ``slopes`` (P, d) and ``constants`` (P,): the one for point j scores ``slopes[j]'x + constants[j]``. Where
    the preprocessing of a pipeline was fitted again, that is all there is: ``thetas``, of another design, are NaN.
    """

    scores: Array
    thetas: Array = field(repr=False)
    slopes: Array = field(repr=False)
    constants: Array = field(repr=False)
    deleted_rows: tuple[NDArray[np.intp], ...] = field(repr=False)
    ids: NDArray[Any] = field(repr=False)
    found_by: tuple[str, ...]
    retrainings: NDArray[np.intp]
    searches: tuple[str, ...]

    @property
    def deleted_ids(self) -> tuple[NDArray[Any], ...]:
        """Ids of the rows deleted for each point: other people's data."""
        return tuple(self.ids[rows] for rows in self.deleted_rows)

    def __len__(self) -> int:
        return len(self.scores)

    def __getitem__(self, place: int) -> Attack:
        return Attack(
            float(self.scores[place]),
            self.ids[self.deleted_rows[place]],
            self.found_by[place],
            int(self.retrainings[place]),
            self.thetas[place],
        )

    def __iter__(self) -> Iterator[Attack]:
        return (self[place] for place in range(len(self)))


class Adversary:
    """Searches for the worst deletion of at most k rows at any point.

    Parameters
    ----------
    model : LogisticModel, or any model of the protocol :class:`rocerf.models.model.Model`
        Logistic models are retrained many at a time; others one at a time, by their own ``without``.
    k : int or str
        A number of rows, or a share such as "0.5%".
    effort : "quick", "normal" or "thorough"
    seed : int
        For random starts.

    Examples
    --------
    >>> import rocerf
    >>> data = rocerf.load_dataset("german")
    >>> model = rocerf.LogisticModel.fit(data.train)
    >>> attack = Adversary(model, k=4).attack(data.test.X[0])
    >>> bool(np.isclose(attack.score, model.without(attack.deleted_ids).score(data.test.X[:1])[0]))
    True
    """

    def __init__(self, model: Model, k: int | str, *, effort: str | Effort = "normal", seed: int = 0) -> None:
        if not isinstance(model, Model):
            raise OptionError(
                f"Expected a model with score, row gradients, curvature and without(ids) to attack, got "
                f"{type(model).__name__}; wrap a scikit-learn model with LogisticModel.from_sklearn(fitted, train)."
            )
        self.model = model
        self.k = number_of_deletions(k, len(model.train))
        self.seed = checked_seed(seed)
        chosen = EFFORTS[checked_effort(effort)] if isinstance(effort, str) else effort
        self.effort = chosen.on(len(model.train))

    @cached_property
    def models(self) -> BatchedNewton:
        """The batched objective of a logistic model, made at first use."""
        assert isinstance(self.model, LogisticModel)
        return BatchedNewton.of(self.model.frozen)

    @cached_property
    def groups(self) -> RareGroups | None:
        """The training set's rare groups, where the effort starts from them."""
        return RareGroups.of(self.models, self.k) if "groups" in self.effort.searches else None

    def reseeded(self, number: int) -> Adversary:
        """The same adversary with other random starts, others for each number."""
        same = copy(self)
        same.seed = int(np.random.SeedSequence([self.seed, number]).generate_state(1)[0])
        return same

    def attack(self, points: Any, *, progress: Progress | None = None) -> Any:
        """The worst deletion for one point (d,) -> :class:`Attack`, or for P points (P, d) -> :class:`Attacks`."""
        if np.ndim(points) == 1:
            return self.attack_all(self._matrix(np.asanyarray(points)[None, :]))[0]
        return self.attack_all(self._matrix(points), progress=progress)

    def _matrix(self, points: Any) -> Array:
        """Points (P, d) of finite numbers."""
        columns = self.model.train.columns
        if isinstance(self.model, LogisticModel):
            matrix = self.model.matrix(points)
        else:
            matrix, _ = people_matrix(points, columns, named=self.model.train.from_frame)
        blank = int(np.isnan(matrix).all(axis=1).sum())
        if blank:
            raise DataError(
                f"Expected complete points to attack, got {blank} that are missing altogether; leave unanswered people "
                "out: recourses.points[recourses.answered]."
            )
        return complete(matrix, columns, what="points to attack")

    def attack_all(
        self,
        X: Array,
        *,
        stop_below: Array | None = None,
        known: list[NDArray[np.intp]] | None = None,
        progress: Progress | None = None,
    ) -> Attacks:
        """The worst deletions for P points (P, d).

        ``known`` is a set of rows for each point, found elsewhere, from which the search starts too.
        A point whose score was brought below its ``stop_below`` (P,) is not attacked further: what is
        reported for it is a true retraining, but perhaps not the worst.
        """
        if not isinstance(self.model, LogisticModel):
            finding = search_by_refits(self.model, X, self.k, self.effort)
            return self._collected([finding], np.zeros(len(X)))
        label = self.model.removable_class(self.k)
        if label is not None:
            return self._vanished(label, len(X))
        found = self._searched(X, stop_below, known, progress)
        if self.model.preprocessing != "refitted" or not len(X):
            return found
        attacks = truly_refitted(self.model, found, X, self.k)
        # Searches that stopped because of a model with frozen preprocessing go on where the refitted one is harmless.
        floor = np.full(len(X), -np.inf) if stop_below is None else stop_below
        places = np.flatnonzero((found.scores < floor) & (attacks.scores >= floor))
        if not len(places):
            return attacks
        own = None if known is None else [known[place] for place in places]
        again = truly_refitted(self.model, self._searched(X[places], None, own, None), X[places], self.k)
        return joined(attacks, places, again)

    def _searched(
        self,
        X: Array,
        stop_below: Array | None,
        known: list[NDArray[np.intp]] | None,
        progress: Progress | None,
    ) -> Attacks:
        """What the searches find for a logistic model, the preprocessing of a pipeline frozen."""
        assert isinstance(self.model, LogisticModel)
        findings = self._search_in_blocks(self.model.frozen, X, stop_below, known, progress)
        return self._collected(findings, self.model.beyond_design(X))

    def _search_in_blocks(
        self,
        model: LogisticModel,
        X: Array,
        stop_below: Array | None,
        known: list[NDArray[np.intp]] | None,
        progress: Progress | None,
    ) -> list[Finding]:
        directions, beyond = model.score_gradient(X), model.beyond_design(X)
        size = max(1, min(64, BLOCK_ENTRIES // len(model.train), -(-len(X) // workers())))
        blocks = [slice(start, start + size) for start in range(0, len(X), size)]
        self.models.prepare()
        groups = self.groups
        findings: list[Finding] = []

        def one(block: slice) -> Finding:
            floor = None if stop_below is None else stop_below[block] - beyond[block]
            own = directions[block]
            return search(
                self.models,
                own,
                self.k,
                self.effort,
                self.seed,
                groups=groups,
                known=None if known is None else known[block],
                first=block.start,
                stop_below=floor,
            )

        with one_blas_thread(), ThreadPoolExecutor(workers()) as pool:
            for finding in pool.map(one, blocks):
                findings.append(finding)
                if progress is not None:
                    progress(sum(map(len, findings)), len(X))
        return findings

    def _collected(self, findings: list[Finding], beyond: Array) -> Attacks:
        """What was found, with what scores are besides the searched ``x~'theta``, (P,)."""
        scores = np.concatenate([f.scores for f in findings]) if findings else np.empty(0)
        thetas = np.concatenate([f.thetas for f in findings]) if findings else np.empty((0, 0))
        slopes, constants = np.empty((len(scores), 0)), np.full(len(scores), np.nan)
        if findings and isinstance(self.model, LogisticModel):
            slopes, constants = self.model.halfspaces(thetas)
        return Attacks(
            scores=scores + beyond,
            thetas=thetas,
            slopes=slopes,
            constants=constants,
            deleted_rows=tuple(rows for f in findings for rows in f.sets),
            ids=self.model.train.ids,
            found_by=tuple(name for f in findings for name in f.found_by),
            retrainings=np.concatenate([f.retrainings for f in findings]) if findings else np.empty(0, np.intp),
            searches=tuple(dict.fromkeys(name for f in findings for name in f.ran)),
        )

    def _vanished(self, label: Any, count: int) -> Attacks:
        train = self.model.train
        gone = np.flatnonzero((train.y == float(label == train.favourable)) & (self.models.weights > 0))
        return Attacks(
            scores=np.full(count, -np.inf),
            thetas=np.full((count, len(self.models.theta)), np.nan),
            slopes=np.full((count, train.X.shape[1]), np.nan),
            constants=np.full(count, -np.inf),
            deleted_rows=(gone,) * count,
            ids=train.ids,
            found_by=("a class vanishes",) * count,
            retrainings=np.zeros(count, np.intp),
            searches=("a class vanishes",),
        )
