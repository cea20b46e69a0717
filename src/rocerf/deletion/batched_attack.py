"""The attack on a model at the optimum of a known objective: searches that retrain many models at a time.

A pipeline's preprocessing is frozen while they search; where it is fitted again after deletions, what they find is
retrained once more with the whole pipeline (:mod:`rocerf.deletion.pipeline_refits`).
"""

from __future__ import annotations

from concurrent.futures import ThreadPoolExecutor
from functools import cached_property
from typing import Any

import numpy as np

from rocerf.deletion import searches
from rocerf.deletion.attacks import Attacks, Search
from rocerf.deletion.batched_newton import BatchedNewton, streams
from rocerf.deletion.finding import Finding
from rocerf.deletion.pipeline_refits import PipelineRefits, with_pipeline_refits
from rocerf.deletion.rare_groups import RareGroups
from rocerf.models.model import ExactModel
from rocerf.passes import one_blas_thread, workers
from rocerf.types import Array

#: Entries of one (points x rows) block: bounds working memory at a few arrays of this size for each worker.
BLOCK_ENTRIES = 2_000_000

#: Points that share passes where rows are streamed, and entries of the sets of rows that are compared for them.
MOST_TOGETHER, SET_ENTRIES = 256, 2**22


class BatchedAttacker:
    """Searches over :class:`BatchedNewton`, in blocks of points shared out among threads."""

    def __init__(self, model: ExactModel, k: int) -> None:
        self.model, self.k = model, k

    @cached_property
    def models(self) -> BatchedNewton:
        """The batched objective, made at first use and shared with others who attack this model."""
        return BatchedNewton.of(self.model.frozen)

    @cached_property
    def _refits(self) -> PipelineRefits:
        """Pipelines fitted again after deletions, kept as long as anybody attacks this model."""
        return PipelineRefits.of(self.model)

    @cached_property
    def _groups(self) -> RareGroups:
        """The training set's rare groups, made at first use."""
        return RareGroups.of(self.models, self.k)

    def attack(self, X: Array, search: Search) -> Attacks:
        """The worst deletions for P points (P, d)."""
        label = self.model.removable_class(self.k)
        if label is not None:
            return self._vanished(label, len(X))
        found = self._searched(X, search)
        moves = self.model.preprocessing == "refitted" or self.model.weighs_anew
        if not moves or not len(X):
            return found
        attacks = with_pipeline_refits(self._refits, found, X, self.k)
        # Searches that stopped because of a model with frozen preprocessing go on where the refitted one is harmless.
        floor = np.full(len(X), -np.inf) if search.stop_below is None else search.stop_below
        places = np.flatnonzero((found.scores < floor) & (attacks.scores >= floor))
        if not len(places):
            return attacks
        again = self._searched(X[places], search.at(places))
        return attacks.with_worse(places, with_pipeline_refits(self._refits, again, X[places], self.k))

    def _searched(self, X: Array, search: Search) -> Attacks:
        """What the searches find, the preprocessing of a pipeline frozen."""
        directions, beyond = self.model.score_gradient(X), self.model.beyond_design(X)
        self.models.prepare()
        size = self._block(len(X))
        groups = self._groups if "groups" in search.effort.searches else None
        findings: list[Finding] = []

        def one(block: slice) -> Finding:
            return searches.search(
                self.models,
                directions[block],
                self.k,
                search.effort,
                search.seed,
                groups=groups,
                known=None if search.known is None else search.known[block],
                first=block.start,
                stop_below=None if search.stop_below is None else search.stop_below[block] - beyond[block],
            )

        # Where rows are streamed, it is each pass over them that threads or a cluster share.
        threads = 1 if streams(self.model.frozen) else workers()
        with one_blas_thread(), ThreadPoolExecutor(threads) as pool:
            for finding in pool.map(one, (slice(start, start + size) for start in range(0, len(X), size))):
                findings.append(finding)
                if search.progress is not None:
                    search.progress(sum(map(len, findings)), len(X))
        return Attacks.of(findings, self.model.train.ids, beyond=beyond, halfspaces=self.model.halfspaces)

    def _block(self, points: int) -> int:
        """How many of so many points are attacked together."""
        if streams(self.model.frozen):
            return max(1, min(MOST_TOGETHER, SET_ENTRIES // max(self.k, 1)))
        return max(1, min(64, BLOCK_ENTRIES // len(self.model.train), -(-points // workers())))

    def _vanished(self, label: Any, count: int) -> Attacks:
        train = self.model.train
        gone = np.flatnonzero((train.y == float(label == train.favourable)) & (self.models.weights[:] > 0))
        return Attacks(
            scores=np.full(count, -np.inf),
            thetas=np.full((count, len(self.models.theta)), np.nan),
            slopes=np.full((count, self.model.lifted(train.X[:1]).shape[1]), np.nan),
            constants=np.full(count, -np.inf),
            deleted_rows=(gone,) * count,
            ids=train.ids,
            found_by=("a class vanishes",) * count,
            retrainings=np.zeros(count, np.intp),
            searches=("a class vanishes",),
        )
