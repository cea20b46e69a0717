"""Deletions really retrained several times: groups of models that went without the same rows.

A network trained again starts anew, so one deletion has no single outcome but a distribution of them. A *group* is one
set of rows and the models retrained without it, each from a start of its own. Which points a group accepts does not
depend on who asks, so groups found for one person serve all.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy.sparse import csr_array

from rocerf.models.ensembles import Ensemble
from rocerf.models.model import Refittable
from rocerf.types import Array, Places, Progress


@dataclass(frozen=True, eq=False)
class Outcomes:
    """What G groups say of P points: mean and spread (within the group) of the scores, and share accepted; (G, P)."""

    means: Array
    spreads: Array
    shares: Array

    @classmethod
    def of(cls, scores: Array, sizes: Places) -> Outcomes:
        """From scores (M, P) of models that stand group by group, ``sizes`` (G,) of them in each.

        >>> scores = np.array([[1.0], [3.0], [-1.0]])
        >>> outcomes = Outcomes.of(scores, np.array([2, 1]))
        >>> outcomes.means.ravel().tolist(), outcomes.shares.ravel().tolist(), outcomes.spreads[1].tolist()
        ([2.0, -1.0], [1.0, 0.0], [0.0])
        """
        starts, count = np.concatenate([[0], np.cumsum(sizes)[:-1]]), sizes[:, None]
        means = np.add.reduceat(scores, starts, axis=0) / count
        apart = (scores - np.repeat(means, sizes, axis=0)) ** 2
        squares = np.add.reduceat(apart, starts, axis=0) / np.maximum(count - 1, 1)
        shares = np.add.reduceat((scores >= 0).astype(np.float64), starts, axis=0) / count
        return cls(means, np.sqrt(squares), shares)


@dataclass(eq=False)
class Groups:
    """G sets of deleted rows, the models retrained without each, and how they came about.

    ``sizes`` (G,) counts the models of each group; they stand one after another in ``models``. ``calls`` are the
    (seed, groups, models in each, different starts) of every retraining, from which models that cannot be written down
    come about again.
    """

    sets: list[Places] = field(default_factory=list)
    sizes: Places = field(default_factory=lambda: np.empty(0, np.intp))
    models: Ensemble | None = None
    calls: list[tuple[int, int, int, int]] = field(default_factory=list)

    def __len__(self) -> int:
        return len(self.sets)

    @property
    def starts(self) -> Places:
        """The place of each group's first model, (G,)."""
        return np.cumsum(self.sizes) - self.sizes

    def retrain(
        self,
        model: Refittable,
        sets: Sequence[Places],
        each: int,
        *,
        seed: int,
        starts: int,
        progress: Progress | None = None,
    ) -> Groups:
        """Retrain without each of these sets, so many models ``each``; the new groups, which are added here.

        There are at most so many different ``starts``, which the sets take in turn: as many as models in a group, and
        all sets have the same ones, which compares them most sharply. Starts in common also spare drawing orders.
        """
        ids = model.train.ids
        trials = [trial % starts for trial in range(each * len(sets))]
        deletions = [ids[rows] for rows in sets for _ in range(each)]
        fresh = Groups(
            list(sets),
            np.full(len(sets), each, np.intp),
            model.refitted(deletions, seed=seed, trials=trials, progress=progress),
            [(seed, len(sets), each, starts)],
        )
        self.add(fresh)
        return fresh

    def add(self, others: Groups) -> None:
        """Take over other groups."""
        self.models = others.models if self.models is None else self.models.joined(others.models)
        self.sets = [*self.sets, *others.sets]
        self.sizes = np.concatenate([self.sizes, others.sizes])
        self.calls = [*self.calls, *others.calls]

    def of(self, group: int) -> Any:
        """The models of one group."""
        assert self.models is not None
        first = int(self.starts[group])
        return self.models[first : first + int(self.sizes[group])]

    def outcomes(self, X: Array) -> Outcomes:
        """What the groups say of points (P, d)."""
        assert self.models is not None
        return Outcomes.of(self.models.scores(X), self.sizes)

    def arrays(self) -> dict[str, NDArray[Any]]:
        """Sets of rows, and models where they can be written as arrays."""
        written = [] if self.models is None else self.models.arrays()
        return {
            "rows": np.concatenate([np.empty(0, np.intp), *self.sets]),
            "set_sizes": np.array([len(rows) for rows in self.sets], np.intp),
            "sizes": self.sizes,
            "calls": np.array(self.calls, np.int64).reshape(-1, 4),
            **{f"model_{place}": array for place, array in enumerate(written)},
        }

    @classmethod
    def restored(cls, model: Refittable, found: Mapping[str, NDArray[Any]]) -> Groups:
        """What :meth:`arrays` gave; models that could not be written are retrained from their seeds."""
        sets = [rows.astype(np.intp) for rows in np.split(found["rows"], np.cumsum(found["set_sizes"])[:-1])]
        stack = [found[f"model_{place}"] for place in range(sum(name.startswith("model_") for name in found))]
        calls = [(int(seed), int(count), int(each), int(starts)) for seed, count, each, starts in found["calls"]]
        if stack:
            return cls(sets, found["sizes"].astype(np.intp), model.restored(stack), calls)
        groups, first = cls(), 0
        for seed, count, each, starts in calls:
            groups.retrain(model, sets[first : first + count], each, seed=seed, starts=starts)
            first += count
        return groups

    def membership(self, rows: int) -> csr_array:
        """1 where a set (G) contains a row (n)."""
        return membership(self.sets, rows)


def membership(sets: Sequence[Places], rows: int) -> csr_array:
    """1 where a set contains a row; sparse, (sets, rows)."""
    ends = np.cumsum([0, *(len(chosen) for chosen in sets)])
    places = np.concatenate([np.empty(0, np.intp), *sets])
    return csr_array((np.ones(len(places)), places, ends), shape=(len(sets), rows))
