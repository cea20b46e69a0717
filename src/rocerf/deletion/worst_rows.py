"""The k rows whose deletion lowers the score most, for many people at once: the hot kernel.

For people with score gradients ``beta`` (P, p) and row effects ``v`` (n, p) it finds, for each person, the k smallest
*negative* values among ``beta' v_i``: "at most k" rows, since deleting a row that helps is never worst. Exact, by a
threshold:

1. a prefix of the (shuffled) rows suggests a threshold just above the k-th smallest value;
2. one pass over chunks of rows keeps the few values below it (a product and a comparison);
3. only the survivors are partitioned. If fewer than k survived, the threshold was too low for that person, who is done
   again with threshold 0, which cannot miss.

Chunks of rows merge exactly (:func:`merge`): where the effects do not fit in memory this is what each chunk gives in a
pass over the rows. Working memory is bounded by the block sizes, k and p, whatever n is.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy.sparse import csr_array

from rocerf.passes import Threads, chunks, each
from rocerf.types import Array, Places

#: People and rows in one block of products: 64 x 2048 float64 is 1 MiB, which stays in cache.
PEOPLE_BLOCK = 64
ROW_BLOCK = 2048

#: The same where nothing is selected.
DUAL_PEOPLE, DUAL_ROWS = 128, 1024

#: Entries that are selected from at a time.
AT_A_TIME = 2**20

#: Share of the rows looked at to guess the threshold, and how many of them at least and at most.
SAMPLE_SHARE = 1 / 16
SAMPLE_LEAST = 1024
SAMPLE_MOST = 8192


#: Owners, values and positions of rows, one entry for each; owners and positions are whole numbers of any size.
Flat = tuple[NDArray[Any], Array, NDArray[Any]]


@dataclass(frozen=True, eq=False)
class WorstRows:
    """For each of P people at most k positions in the effects, with their (negative) values.

    ``positions`` and ``values`` are flat; person p owns ``starts[p]:starts[p + 1]``, in no particular order.
    """

    positions: Places
    values: Array
    starts: Places

    @classmethod
    def counted(cls, positions: Places, values: Array, counts: Places) -> WorstRows:
        """From how many each person has, in the order of the people."""
        return cls(positions, values, np.concatenate([[0], np.cumsum(counts)]).astype(np.intp))

    def __len__(self) -> int:
        return len(self.starts) - 1

    @property
    def counts(self) -> Places:
        """Number of rows for each person, shape (P,)."""
        return np.diff(self.starts)

    @property
    def owners(self) -> Places:
        """The person of each position, flat."""
        return np.repeat(np.arange(len(self)), self.counts)

    @property
    def flat(self) -> Flat:
        """Person, value and position of every row."""
        return self.owners, self.values, self.positions

    @property
    def drops(self) -> Array:
        """Sum of the values for each person, <= 0; shape (P,)."""
        return np.asarray(np.bincount(self.owners, self.values, minlength=len(self)), dtype=np.float64)

    def thresholds(self, k: int) -> Array:
        """The k-th smallest value of each person, 0 where fewer than k are negative; shape (P,)."""
        largest = np.full(len(self), -np.inf)
        np.maximum.at(largest, self.owners, self.values)
        return np.where(self.counts == k, largest, 0.0) if k else np.zeros(len(self))

    def shifts(self, effects: Array) -> Array:
        """Sum of the effects of each person's rows, shape (P, p)."""
        ones = np.ones(len(self.positions))
        indicator = csr_array((ones, self.positions, self.starts), shape=(len(self), len(effects)))
        return np.asarray(indicator @ effects)

    def smallest(self, k: int) -> WorstRows:
        """The k smallest of each person's."""
        groups = _parts(self.counts)
        if len(groups) == 1 or self.counts.max() <= k:
            return self._smallest(k)
        return _joined([self.among(people)._smallest(k) for people in groups], len(self))

    def _smallest(self, k: int) -> WorstRows:
        counts, first, owners = self.counts, self.starts[:-1], self.owners
        if counts.max(initial=0) <= k:
            return self
        table = np.full((len(self), int(counts.max())), np.inf)
        table[owners, np.arange(len(owners)) - first[owners]] = self.values
        best = np.argpartition(table, k - 1, axis=1)[:, :k]
        chosen = (best + first[:, None])[np.take_along_axis(table, best, axis=1) < np.inf]
        return WorstRows.counted(self.positions[chosen], self.values[chosen], np.minimum(counts, k))

    def among(self, people: slice) -> WorstRows:
        """What neighbouring people have."""
        first, last = self.starts[people.start], self.starts[people.stop]
        starts = self.starts[people.start : people.stop + 1] - first
        return WorstRows(self.positions[first:last], self.values[first:last], starts)

    def moved(self, by: int) -> WorstRows:
        """The same with positions counted from so many rows before."""
        return WorstRows(self.positions + by, self.values, self.starts)

    def of(self, person: int) -> Places:
        """Positions for one person, most harmful first."""
        own = slice(self.starts[person], self.starts[person + 1])
        return self.positions[own][np.argsort(self.values[own], kind="stable")]


def find_worst_rows(directions: Array, effects: Array, k: int) -> WorstRows:
    """The at most k rows with the smallest negative ``directions @ effects.T``, for each person.

    Parameters
    ----------
    directions : (P, p), score gradients of the people.
    effects : (n, p), row effects; shuffled, so that a prefix is a fair sample (otherwise slower, never wrong).
    k : number of rows, 0 <= k.

    Examples
    --------
    >>> worst = find_worst_rows(np.array([[1.0]]), np.array([[-3.0], [2.0], [-1.0], [-2.0]]), k=2)
    >>> worst.of(0).tolist(), worst.drops.tolist()
    ([0, 3], [-5.0])
    """
    return _joined([survivors.smallest(k) for survivors, _ in _of_blocks(directions, effects, k)], len(directions))


def find_with_survivors(directions: Array, effects: Array, k: int) -> tuple[WorstRows, WorstRows, Array]:
    """As :func:`find_worst_rows`, with the rows it was found among, and a threshold (P,) below which they are all."""
    found = _of_blocks(directions, effects, k)
    worst = _joined([survivors.smallest(k) for survivors, _ in found], len(directions))
    among = _joined([survivors for survivors, _ in found], len(directions))
    return (
        worst,
        among,
        np.concatenate([threshold for _, threshold in found]) if found else np.full(len(worst), -np.inf),
    )


def _of_blocks(directions: Array, effects: Array, k: int) -> list[tuple[WorstRows, Array]]:
    """Survivors and thresholds of blocks of people, in their order; none where nothing is to be found."""
    if len(directions) == 0 or k == 0 or len(effects) == 0:
        return []
    blocks = chunks(len(directions), PEOPLE_BLOCK)
    return each(lambda block: _survivors_of_block(directions[block], effects, k), blocks, Threads())


def _joined(found: list[WorstRows], people: int) -> WorstRows:
    """What blocks of people found, one after another."""
    if not found:
        return WorstRows.counted(np.empty(0, np.intp), np.empty(0), np.zeros(people, np.intp))
    parts = zip(*((worst.positions, worst.values, worst.counts) for worst in found), strict=True)
    return WorstRows.counted(*map(np.concatenate, parts))


def drops_by_duality(directions: Array, effects: Array, thresholds: Array, k: int) -> Array:
    """``k t + sum_i min(beta'v_i - t, 0)``: at most the sum of the k smallest negative ``beta'v_i``, for any t <= 0.

    At the k-th smallest value it is that sum. So it checks what :func:`find_worst_rows` selected without selecting
    anything: a wrong threshold can only make it lower. ``directions`` (P, p), ``effects`` (n, p), ``thresholds`` (P,);
    shape (P,).

    >>> effects = np.array([[-3.0], [2.0], [-1.0], [-2.0]])
    >>> drops_by_duality(np.array([[1.0]] * 3), effects, np.array([-2.0, -1.5, 0.0]), k=2).tolist()
    [-5.0, -5.0, -6.0]
    """
    if k == 0:
        return np.zeros(len(directions))

    t = np.minimum(thresholds, 0.0)
    less = np.column_stack([directions, -t])  # a column of ones beside the effects takes the threshold off

    def of_block(people: slice) -> Array:
        block, total = less[people], k * t[people]
        room = np.empty(len(block) * DUAL_ROWS)
        for rows in chunks(len(effects), DUAL_ROWS):
            part = np.column_stack([effects[rows], np.ones(rows.stop - rows.start)])
            scores = np.matmul(block, part.T, out=room[: len(block) * len(part)].reshape(len(block), len(part)))
            total += np.minimum(scores, 0.0, out=scores) @ part[:, -1]
        return total

    return np.concatenate(each(of_block, chunks(len(directions), DUAL_PEOPLE), Threads()))


def merge(first: WorstRows, second: WorstRows, k: int) -> WorstRows:
    """The worst k rows of two sets of rows, from the worst k of each; both speak of the same people.

    >>> a = find_worst_rows(np.array([[1.0]]), np.array([[-3.0], [-1.0]]), k=1)
    >>> b = WorstRows(np.array([7]), np.array([-2.0]), np.array([0, 1]))
    >>> merge(a, b, k=2).of(0).tolist()
    [0, 7]
    """
    return k_smallest([first.flat, second.flat], len(first), k)


def k_smallest_columns(scores: Array, k: int) -> WorstRows:
    """The at most k smallest negative entries of each row of a given matrix (P, n), by the same threshold.

    Exact for any order of the columns; a strided sample sets the threshold.

    >>> k_smallest_columns(np.array([[3.0, -1.0, -4.0, -2.0]]), 2).of(0).tolist()
    [2, 3]
    """
    people, n = scores.shape
    sample = scores[:, :: max(1, n // SAMPLE_LEAST)]
    rank = rank_in_sample(k, sample.shape[1], n)
    threshold = np.zeros(people)
    if rank < sample.shape[1]:
        threshold = np.minimum(np.partition(sample, rank, axis=1)[:, rank], 0.0)
    owners, columns = np.divmod(np.flatnonzero(scores < threshold[:, None]), n)
    missed = (np.bincount(owners, minlength=people) < k) & (threshold < 0)
    if missed.any():
        owners, columns = np.divmod(np.flatnonzero(scores < np.where(missed, 0.0, threshold)[:, None]), n)
    return k_smallest([(owners, scores[owners, columns], columns)], people, k)


def rank_in_sample(k: int, sample: int, n: int) -> int:
    """The rank in a sample that is hardly ever below rank k of all n: three deviations of sampling noise above it."""
    expected = k * sample / n
    return int(expected + 3.0 * np.sqrt(expected) + 2.0)


def _survivors_of_block(block: Array, effects: Array, k: int) -> tuple[WorstRows, Array]:
    """Rows below a threshold (m,) for each person of a block, all of them, and at least k wherever so many are below 0.

    What is held on to is bounded by k: survivors are squeezed to the k smallest where they are too many.
    """
    found, threshold = _below(block, effects, _guess_threshold(block, effects, k), k)
    missed = np.flatnonzero((found.counts < k) & (threshold < 0))
    if len(missed) == 0:
        return found, threshold
    again, threshold[missed] = _below(block[missed], effects, np.zeros(len(missed)), k)
    owners, values, positions = found.flat
    kept = ~np.isin(owners, missed)
    anew = missed[again.owners], again.values, again.positions
    return _by_owner([(owners[kept], values[kept], positions[kept]), anew], len(block)), threshold


def _guess_threshold(block: Array, effects: Array, k: int) -> Array:
    """A value a little above each person's k-th smallest, never above 0."""
    n = len(effects)
    sample = min(n, SAMPLE_MOST, max(SAMPLE_LEAST, int(n * SAMPLE_SHARE)))
    rank = rank_in_sample(k, sample, n)
    if rank >= sample:
        return np.zeros(len(block))
    scores = block @ effects[:sample].T
    scores.partition(rank, axis=1)
    return np.minimum(scores[:, rank], 0.0)


def _below(block: Array, effects: Array, threshold: Array, k: int) -> tuple[WorstRows, Array]:
    """The values strictly below each person's threshold, and that; lower than it was where they were too many."""
    room = len(block) * 4 * (k + ROW_BLOCK)
    kept: list[Flat] = []
    held = 0
    for rows in chunks(len(effects), ROW_BLOCK):
        scores = block @ effects[rows].T
        flat = np.flatnonzero(scores < threshold[:, None])
        owners, columns = np.divmod(flat, scores.shape[1])
        kept.append((owners, scores.ravel()[flat], columns + rows.start))
        held += len(flat)
        if held > room:  # only when the threshold is loose: squeeze, and tighten it
            squeezed = k_smallest(kept, len(block), k)
            threshold = np.minimum(threshold, squeezed.thresholds(k))
            kept, held = [squeezed.flat], len(squeezed.values)
    return _by_owner(kept, len(block)), threshold


def k_smallest(parts: list[Flat], people: int, k: int) -> WorstRows:
    """Keep each owner's k smallest values of flat lists in any order."""
    parts = [(part[0][few], part[1][few], part[2][few]) for part in parts for few in chunks(len(part[0]), AT_A_TIME)]
    counts = sum((_counted(owners, people) for owners, _, _ in parts), np.zeros(people, np.intp))
    groups = _parts(counts)
    if len(groups) == 1:
        return _by_owner(parts, people).smallest(k)
    found = []
    for group in groups:
        inside = [np.flatnonzero((owners >= group.start) & (owners < group.stop)) for owners, _, _ in parts]
        theirs = [
            (owners[at] - group.start, values[at], rows[at])
            for (owners, values, rows), at in zip(parts, inside, strict=True)
        ]
        found.append(_by_owner(theirs, group.stop - group.start).smallest(k))
    return _joined(found, people)


def _parts(counts: Places) -> list[slice]:
    """Parts of people with so many entries each that are worked on at a time, as what that takes is many times them."""
    size = max(1, AT_A_TIME // max(1, int(counts.max(initial=0))))
    return chunks(len(counts), size)


def _counted(owners: NDArray[Any], people: int) -> Places:
    return np.bincount(owners.astype(np.intp, copy=False), minlength=people)


def _by_owner(parts: list[Flat], people: int) -> WorstRows:
    """All entries of flat lists in any order."""
    owners, values, positions = map(np.concatenate, zip(*parts, strict=True))
    # Small numbers are sorted by counting.
    order = np.argsort(owners.astype(np.uint16) if people < 2**16 else owners, kind="stable")
    counts = _counted(owners, people)
    return WorstRows.counted(positions[order].astype(np.intp, copy=False), values[order], counts)
