"""How far deleting each single row moves the parameters, to first order.

Deleting row i moves ``theta`` by ``+ v_i = + H^-1 g_i`` (H and g_i as in the model's objective: totals, no 1/n). All
rows share one factorisation of H. Where the n vectors fit in memory they are kept (:class:`RowEffects`); where they do
not, rows are walked over in chunks at every question and H is solved with on the person's side instead,
``beta'H^-1 g_i = (H^-1 beta)'g_i`` (:class:`StreamedRowEffects`).
"""

from __future__ import annotations

import operator
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from functools import cached_property
from typing import Any, Protocol, cast

import numpy as np
from scipy.sparse import csr_array

from rocerf.data.column_statistics import runner_for
from rocerf.deletion.edge_rows import EdgeRows
from rocerf.deletion.near_rows import NearRows
from rocerf.deletion.streamed_rows import StreamedRows
from rocerf.deletion.threshold_pass import RowValues, block_people, block_rows, sampled_rows, worst_by_threshold
from rocerf.deletion.worst_rows import WorstRows, find_worst_rows
from rocerf.models.logistic.objective import LogisticObjective
from rocerf.models.model import ExactModel, Model
from rocerf.passes import SERIAL, Room, chunks
from rocerf.types import Array, Places

#: Rows handled at a time, so that working memory does not grow with n.
CHUNK = 8192

#: Bytes that the effects of all rows may take; Adult's 36,177 rows x 1,093 parameters of a network take 0.3 GB.
IN_MEMORY = 2 * 2**30

#: Bytes of row gradients held at a time where effects are streamed.
CHUNK_BYTES = 128 * 2**20

#: The same where the rows are on the disk, and several chunks are worked on at a time.
DISK_CHUNK_BYTES = 8 * 2**20


#: Rows noted for each person that is asked about, as a multiple of k, and bytes of the effects that are kept of them.
NOTED, NOTED_BYTES = 1.25, 128 * 2**20

#: Rows noted in one question for all people together, beyond which theirs are no longer held against each other: who
#: looks for the worst among the rows of all keeps a list of several times k for each.
NOTED_AT_ONCE = 2**21


class Effects(Protocol):
    """What a first-order promise asks about the rows."""

    @property
    def rows(self) -> Places:
        """Row number (in the training set) of each position, shape (n,)."""
        ...

    def worst(self, directions: Array, k: int) -> WorstRows:
        """The at most k most harmful positions for each person, whose score gradients are (P, p)."""
        ...

    def shifts(self, worst: WorstRows) -> Array:
        """How far deleting each person's worst rows moves the parameters, shape (P, p)."""
        ...


def effects_of(model: Model, *, seed: int = 0, in_memory: int = IN_MEMORY) -> Effects:
    """The effects of a model's rows, kept or streamed by size, on the model's device."""
    n, width = len(model.train), model.curvature().width
    if 8 * n * width > in_memory or model.train.on_disk:
        return StreamedRowEffects(model)
    if model.device != "cpu":
        from rocerf.deletion.device_effects import DeviceModel, DeviceRowEffects

        return DeviceRowEffects.of(cast(DeviceModel, model))
    return RowEffects.of(model, seed=seed)


@dataclass(frozen=True, eq=False)
class RowEffects:
    """``v_i`` for all rows, in a shuffled order that makes any prefix a fair sample.

    ``vectors`` has shape (n, p); ``rows[j]`` is the row number (in the training set) of ``vectors[j]``.
    """

    vectors: Array
    rows: Places

    @classmethod
    def of(cls, model: Model, *, seed: int = 0) -> RowEffects:
        """Effects of all training rows of a model at its optimum.

        >>> import rocerf
        >>> train = rocerf.TrainingSet([[1.0], [2.0], [3.0], [4.0]], [0, 1, 0, 1])
        >>> RowEffects.of(rocerf.LogisticModel.fit(train)).vectors.shape
        (4, 2)
        """
        n = len(model.train)
        curvature = model.curvature()
        order = np.random.default_rng(seed).permutation(n)
        vectors = np.empty((n, curvature.width))
        for part in chunks(n, CHUNK):
            vectors[part] = curvature.solve(model.row_gradients(order[part]))
        return cls(vectors, order)

    def worst(self, directions: Array, k: int) -> WorstRows:
        """The at most k most harmful positions for each person."""
        return find_worst_rows(directions, self.vectors, k)

    @cached_property
    def near(self) -> NearRows:
        """What finds the worst rows for people about whom nearly the same was asked before."""
        return NearRows(self.vectors)

    def shifts(self, worst: WorstRows) -> Array:
        """Sum of the effects of each person's worst rows, shape (P, p)."""
        return worst.shifts(self.vectors)

    def in_training_order(self) -> Array:
        """The effects ordered as the training rows, shape (n, p)."""
        ordered = np.empty_like(self.vectors)
        ordered[self.rows] = self.vectors
        return ordered


class RowGradients(Protocol):
    """The gradients of rows; whoever works on a chunk may receive them pickled."""

    def __call__(self, rows: Any) -> Array:
        """Those of these rows, (m, p)."""
        ...

    def blocks(self, rows: slice, people: int) -> Iterator[tuple[int, Array]]:
        """First row and gradients (m, p) of the blocks of a chunk, which stay in cache with a number for each person;
        the next one may be written over them."""
        ...


@dataclass(frozen=True, eq=False)
class GradientsOfModel(RowGradients):
    """As any model gives them."""

    of_rows: Callable[[Any], Array]

    def __call__(self, rows: Any) -> Array:
        """As :meth:`RowGradients.__call__`."""
        return self.of_rows(rows)

    def blocks(self, rows: slice, people: int) -> Iterator[tuple[int, Array]]:
        """As :meth:`RowGradients.blocks`."""
        found = self.of_rows(rows)
        for part in chunks(len(found), block_rows(people)):
            yield rows.start + part.start, found[part]


@dataclass(frozen=True, eq=False)
class GradientsOfObjective(RowGradients):
    """Those of an objective, which is known without the ids, that are as many as the rows."""

    objective: LogisticObjective
    theta: Array

    def __call__(self, rows: Any) -> Array:
        """As :meth:`RowGradients.__call__`."""
        return self.objective.row_gradients(self.theta, rows)

    def blocks(self, rows: slice, people: int) -> Iterator[tuple[int, Array]]:
        """As :meth:`RowGradients.blocks`."""
        for own, x, sign, weight in StreamedRows.of(self.objective).blocks(rows, people):
            yield own.start, self.objective.gradients_from(self.theta, x, sign, weight)


@dataclass(frozen=True, eq=False)
class EffectValues(RowValues):
    """``beta'H^-1 g_i`` of all rows for P people, whose gradients were solved for (P, p)."""

    gradients: RowGradients
    solved: Array

    def __len__(self) -> int:
        return len(self.solved)

    def of(self, people: Places) -> EffectValues:
        """As :meth:`RowValues.of`."""
        return EffectValues(self.gradients, self.solved[people])

    def at(self, rows: Places) -> Array:
        """As :meth:`RowValues.at`."""
        return np.asarray(self.solved @ self.gradients(rows).T)

    def blocks(self, rows: slice) -> Iterator[tuple[int, int, Array]]:
        """As :meth:`RowValues.blocks`."""
        room = Room()
        for start, found in self.gradients.blocks(rows, len(self)):
            for people in block_people(len(self)):
                values = room("values", people.stop - people.start, len(found))
                yield start, people.start, np.matmul(self.solved[people], found.T, out=values)


def sorted_rows(positions: Places) -> tuple[Places, Places]:
    """The different ones of these positions (m,), ascending, and the place of each among them (m,).

    >>> [found.tolist() for found in sorted_rows(np.array([7, 3, 7]))]
    [[3, 7], [1, 0, 1]]
    """
    order = np.argsort(positions)
    ordered = positions[order]
    first = np.ones(len(ordered), dtype=bool)
    np.not_equal(ordered[1:], ordered[:-1], out=first[1:])
    places = np.empty(len(ordered), np.intp)
    places[order] = np.cumsum(first) - 1
    return ordered[first], places


class _InTheirOrder:
    """The row number of each position where positions are row numbers."""

    def __init__(self, rows: int) -> None:
        self._rows = rows

    def __len__(self) -> int:
        return self._rows

    def __getitem__(self, positions: Places) -> Places:
        return positions

    def tolist(self) -> list[int]:
        """All of them, as of an array."""
        return list(range(self._rows))


@dataclass(frozen=True, eq=False)
class _Asked:
    """The last pass, until it is known what its worst rows move: what was found for which directions (P, p)."""

    worst: WorstRows
    found: WorstRows
    directions: Array
    k: int

    def edges(self, shifts: Array, effects_of: Callable[[Places], Array], room: int) -> EdgeRows:
        """What is kept of it."""
        return EdgeRows(self.directions, self.found, shifts, self.k, effects_of, room=room)


class StreamedRowEffects:
    """The same answers without the n vectors: one walk over the rows for each question.

    >>> import rocerf
    >>> model = rocerf.LogisticModel.fit(rocerf.TrainingSet([[1.0], [2.0], [3.0], [4.0]], [0, 1, 0, 1]))
    >>> beta = model.score_gradient(np.array([[5.0]]))
    >>> StreamedRowEffects(model).worst(beta, 1).of(0).tolist() == [3]
    True
    """

    def __init__(self, model: Model) -> None:
        self._model = model
        self._curvature = model.curvature()
        size = DISK_CHUNK_BYTES if model.train.on_disk else CHUNK_BYTES
        self._chunk = max(1, size // (8 * self._curvature.width))
        self._runner = runner_for(model.train.X)
        self.rows: Any = _InTheirOrder(len(model.train))
        self._noted: Places = np.empty(0, np.intp)
        self._few: RowEffects | None = None
        #: Whether more rows were noted than there is room for.
        self.crowded = False
        self._asked: _Asked | None = None
        #: What the last pass found, once there is no room for all rows that were noted.
        self.edges: EdgeRows | None = None

    def worst(self, directions: Array, k: int) -> WorstRows:
        """The at most k most harmful rows for each person, by one pass over the rows; a few more are noted."""
        values, n = EffectValues(self._gradients, self._curvature.solve(directions)), len(self.rows)
        found = worst_by_threshold(values, int(NOTED * k), n, self._chunk, self._runner, sampled_rows(n))
        worst = found.smallest(k)
        self._note(found.positions)
        if self.crowded:
            self.edges, self._asked = None, _Asked(worst, found, directions, k)
        return worst

    def _note(self, positions: Places) -> None:
        """Rows that may be among the worst for others, unless they are more than there is room for."""
        if not self.crowded:
            self.crowded = len(positions) > NOTED_AT_ONCE
            noted = self._noted if self.crowded else sorted_rows(np.concatenate([self._noted, positions]))[0]
            self.crowded |= len(noted) > self._room
            self._noted, self._few = np.empty(0, np.intp) if self.crowded else noted, None

    @property
    def _room(self) -> int:
        return max(1, NOTED_BYTES // (8 * self._curvature.width))

    @property
    def few(self) -> RowEffects | None:
        """The effects of the rows noted so far; None before the first question, and where they are too many."""
        if self._few is None and len(self._noted):
            order = np.random.default_rng(0).permutation(self._noted)
            self._few = RowEffects(self._effects_of(order), order)
        return self._few

    def _effects_of(self, rows: Places) -> Array:
        """The effects (m, p) of some rows, looked up by their numbers."""
        vectors = np.empty((len(rows), self._curvature.width))
        for part in chunks(len(rows), self._chunk):
            vectors[part] = self._curvature.solve(self._gradients(rows[part]))
        return vectors

    @property
    def _gradients(self) -> RowGradients:
        if isinstance(self._model, ExactModel):
            return GradientsOfObjective(self._model.objective, self._model.theta)
        return GradientsOfModel(self._model.row_gradients)

    def shifts(self, worst: WorstRows) -> Array:
        """``H^-1`` times the sum of the worst rows' gradients, shape (P, p)."""
        order = np.argsort(worst.positions)
        rows = worst.positions[order]
        owners = np.repeat(np.arange(len(worst), dtype=np.min_scalar_type(len(worst))), worst.counts)[order]
        del order  # where k is large, as large as what it sorts

        def of_chunk(part: slice) -> Array:
            chosen, places = sorted_rows(rows[part])
            shape = len(worst), len(chosen)
            indicator = csr_array((np.ones(len(places)), (owners[part], places)), shape=shape)
            return np.asarray(indicator @ self._gradients(chosen))

        # Rows that are looked up by their numbers, in this process: they are few.
        sums: Array = SERIAL.run(of_chunk, operator.add, chunks(len(rows), self._chunk))
        shifts = self._curvature.solve(sums)
        if self._asked is not None and worst is self._asked.worst:
            self.edges, self._asked = self._asked.edges(shifts, self._effects_of, self._room), None
        return shifts
