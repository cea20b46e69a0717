"""The k smallest values for each of many people, by one pass over rows that need not fit in memory.

As in :mod:`rocerf.deletion.worst_rows` a sample of the rows suggests a threshold a little above each person's k-th
smallest value, and only the few values below it are kept. Here the values come chunk by chunk from wherever a chunk is
worked on, what chunks keep is merged by joining it, and one partition at the end selects. If fewer than k were below a
person's threshold, a second pass with threshold 0 cannot miss. Memory: about 1.5 k values and row numbers a person.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any, Protocol, Self

import numpy as np

from rocerf.deletion.worst_rows import Flat, WorstRows, k_smallest, rank_in_sample
from rocerf.passes import SERIAL, Room, Runner, chunks, over_rows
from rocerf.types import Array, Places

#: Rows looked at to guess thresholds, at least and at most, and in between one in so many: those of a seeded draw.
SAMPLE, SAMPLE_MOST, SAMPLE_ONE_IN = 8192, 32_768, 128

#: Entries of one block of values, and rows and people at most: it stays in cache.
BLOCK, BLOCK_ROWS, BLOCK_PEOPLE = 2**17, 4096, 128

#: Kept values beyond what is wanted, as a multiple of it, from which they are selected from on the way.
LOOSE = 4


class RowValues(Protocol):
    """A value of every row for each of P people; whoever works on a chunk may receive it pickled."""

    def __len__(self) -> int:
        """Number of people."""
        ...

    def of(self, people: Places) -> Self:
        """The same for some of the people."""
        ...

    def at(self, rows: Places) -> Array:
        """The values of these rows, (P, m)."""
        ...

    def blocks(self, rows: slice) -> Iterator[tuple[int, int, Array]]:
        """First row, first person and values (Q, m) of the blocks that make up a chunk of rows; the next block may be
        written over them."""
        ...


@dataclass(frozen=True, eq=False)
class _Below:
    """Values below thresholds, as parts that were not selected from yet."""

    parts: list[Flat]
    held: int
    people: int
    k: int

    def __reduce__(self) -> tuple[Any, ...]:
        # Every array is a frame of its own on its way between processes.
        return _Below, (self.in_one_part().parts, self.held, self.people, self.k)

    def in_one_part(self) -> _Below:
        """The same: blocks leave thousands of small parts, each of which is to be handled."""
        whole: Any = tuple(map(np.concatenate, zip(*self.parts, strict=True)))
        return _Below([whole], self.held, self.people, self.k)

    def joined(self, other: _Below) -> _Below:
        """Both together; selected from where they have become many."""
        parts, held = [*self.parts, *other.parts], self.held + other.held
        if held > LOOSE * self.people * (self.k + 256):
            worst = k_smallest(parts, self.people, self.k)
            parts, held = [worst.flat], len(worst.values)
        return _Below(parts, held, self.people, self.k)


@dataclass(frozen=True, eq=False)
class _Keeping:
    """What a chunk of rows gives: the values below thresholds (P,)."""

    values: RowValues
    thresholds: Array
    k: int

    def __call__(self, rows: slice) -> _Below:
        kept = _Below([_NOTHING], 0, len(self.values), self.k)
        # Most of what a pass keeps and a cluster sends are these: as small as they can be.
        person, row = np.min_scalar_type(len(self.values)), np.min_scalar_type(rows.stop)
        room = Room()
        for start, first, values in self.values.blocks(rows):
            thresholds = self.thresholds[first : first + len(values), None]
            flat = np.flatnonzero(np.less(values, thresholds, out=room("below", *values.shape, kind=np.bool_)))
            owners, columns = np.divmod(flat, values.shape[1])
            part: Flat = (owners + first).astype(person), values.ravel()[flat], (columns + start).astype(row)
            kept = kept.joined(_Below([part], len(flat), kept.people, self.k))
        return kept.in_one_part()


_NOTHING: Flat = (np.empty(0, np.uint8), np.empty(0), np.empty(0, np.uint8))


def sampled_rows(rows: int) -> Places:
    """Row numbers of the sample that suggests thresholds, ascending; all of a small table."""
    if rows <= SAMPLE:
        return np.arange(rows)
    size = min(max(SAMPLE, rows // SAMPLE_ONE_IN), SAMPLE_MOST)
    return np.sort(np.random.default_rng(0).choice(rows, size, replace=False))


def worst_by_threshold(values: RowValues, k: int, rows: int, chunk: int, runner: Runner, sample: Places) -> WorstRows:
    """The at most k smallest negative values of each person over so many rows.

    ``sample`` are the row numbers whose values suggest the thresholds.
    """
    people = len(values)
    if people == 0 or k == 0:
        return WorstRows.counted(np.empty(0, np.intp), np.empty(0), np.zeros(people, np.intp))
    thresholds = _thresholds(values, k, rows, sample)
    found = _pass(values, thresholds, k, rows, chunk, runner)
    missed = np.flatnonzero((found.counts < k) & (thresholds < 0))
    if not len(missed):
        return found
    again = _pass(values.of(missed), np.zeros(len(missed)), k, rows, chunk, runner)
    owners, kept, positions = found.flat
    others = ~np.isin(owners, missed)
    anew = missed[again.owners], again.values, again.positions
    return k_smallest([(owners[others], kept[others], positions[others]), anew], people, k)


def worst_in_order(values: RowValues, k: int, rows: int, chunk: int) -> WorstRows:
    """The same for values that must be asked for in the order of the rows: in this process, one chunk after another."""
    keeping = _Keeping(values, np.zeros(len(values)), k)
    return k_smallest(SERIAL.run(keeping, _Below.joined, chunks(rows, chunk)).parts, len(values), k)


def _pass(values: RowValues, thresholds: Array, k: int, rows: int, chunk: int, runner: Runner) -> WorstRows:
    below = over_rows(_Keeping(values, thresholds, k), _Below.joined, rows, chunk, runner)
    return k_smallest(below.parts, len(values), k)


def _thresholds(values: RowValues, k: int, rows: int, sample: Places) -> Array:
    """A value a little above each person's k-th smallest, never above 0."""
    rank = rank_in_sample(k, len(sample), rows)
    if rank >= len(sample):
        return np.zeros(len(values))
    found = values.at(sample)
    found.partition(rank, axis=1)
    return np.nan_to_num(np.minimum(found[:, rank], 0.0), nan=0.0)


def block_rows(people: int) -> int:
    """Rows of a block of values for so many people."""
    return min(BLOCK_ROWS, max(256, BLOCK // min(max(people, 1), BLOCK_PEOPLE)))


def block_people(people: int) -> list[slice]:
    """Parts of so many people, each with blocks of its own."""
    return chunks(people, BLOCK_PEOPLE)
