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

import numpy as np
from scipy.sparse import csr_array

from rocerf.passes import Threads, chunks, each
from rocerf.types import Array, Places

#: People and rows in one block of products: 64 x 2048 float64 is 1 MiB, which stays in cache.
PEOPLE_BLOCK = 64
ROW_BLOCK = 2048

#: Share of the rows looked at to guess the threshold, and how many of them at least and at most.
SAMPLE_SHARE = 1 / 16
SAMPLE_LEAST = 1024
SAMPLE_MOST = 8192


#: Owners, values and positions of rows, one entry for each.
Flat = tuple[Places, Array, Places]


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
    people = len(directions)
    if people == 0 or k == 0 or len(effects) == 0:
        return WorstRows.counted(np.empty(0, np.intp), np.empty(0), np.zeros(people, np.intp))
    blocks = chunks(people, PEOPLE_BLOCK)
    found = each(lambda block: _worst_of_block(directions[block], effects, k), blocks, Threads())
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

    def of_block(people: slice) -> Array:
        block, t = directions[people], np.minimum(thresholds[people], 0.0)
        total = k * t
        for rows in chunks(len(effects), ROW_BLOCK):
            scores = block @ effects[rows].T
            scores -= t[:, None]
            total += np.minimum(scores, 0.0, out=scores).sum(axis=1)
        return total

    return np.concatenate(each(of_block, chunks(len(directions), PEOPLE_BLOCK), Threads()))


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


def _worst_of_block(block: Array, effects: Array, k: int) -> WorstRows:
    threshold = _guess_threshold(block, effects, k)
    found = _below(block, effects, threshold, k)
    missed = np.flatnonzero((found.counts < k) & (threshold < 0))
    if len(missed) == 0:
        return found
    again = _below(block[missed], effects, np.zeros(len(missed)), k)
    owners, values, positions = found.flat
    kept = ~np.isin(owners, missed)
    anew = missed[again.owners], again.values, again.positions
    return k_smallest([(owners[kept], values[kept], positions[kept]), anew], len(block), k)


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


def _below(block: Array, effects: Array, threshold: Array, k: int) -> WorstRows:
    """The k smallest values strictly below each person's threshold."""
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
    return k_smallest(kept, len(block), k)


def k_smallest(parts: list[Flat], people: int, k: int) -> WorstRows:
    """Keep each owner's k smallest values of flat lists in any order."""
    owners, values, positions = map(np.concatenate, zip(*parts, strict=True))
    order = np.argsort(owners, kind="stable")
    owners, values, positions = owners[order], values[order], positions[order]
    counts = np.bincount(owners, minlength=people)
    if counts.max(initial=0) > k:
        first = np.cumsum(counts) - counts
        table = np.full((people, int(counts.max())), np.inf)
        table[owners, np.arange(len(owners)) - first[owners]] = values
        best = np.argpartition(table, k - 1, axis=1)[:, :k]
        chosen = (best + first[:, None])[np.take_along_axis(table, best, axis=1) < np.inf]
        values, positions = values[chosen], positions[chosen]
        counts = np.minimum(counts, k)
    return WorstRows.counted(positions, values, counts)
