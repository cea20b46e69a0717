"""The worst rows at a direction close to one at which they were looked for before: found among few rows, exactly.

Whoever searches for a cheapest point asks for the worst rows again and again at points that hardly differ. At the first
of them all rows are looked at, and those below a threshold ``t`` are written down: a :class:`Shortlist` of two or three
times k. At a direction ``beta'`` a row that is not on the list has

    beta'v_i  =  beta v_i + (beta' - beta)v_i  >=  t - |beta' - beta| |v_i|

by Cauchy and Schwarz, in any metric: here the one in which the effects of all rows are equally long in all directions.
The few longest rows are looked at every time. So if the k-th smallest value found among those and the list is below
``t - |beta' - beta| r``, r being the length of the longest other row, the k smallest of all rows have been found. Where
it is not, all rows are looked at again.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from rocerf.deletion.worst_rows import PEOPLE_BLOCK, WorstRows, find_with_survivors
from rocerf.passes import Threads, chunks, each
from rocerf.types import Array, Mask, Places

#: One row in so many is long: looked at every time.
LONG = 128

#: Rows handled at a time when lengths are measured, and entries of the largest array of listed rows.
CHUNK, LISTED_ENTRIES = 8192, 2**21

#: Added to the metric, whose diagonal is 1, so that it is one even where effects lie in a subspace.
RIDGE = 1e-9

#: By how much more than arithmetic says a bound must hold, for rounding.
ROUNDING = 1e-9


@dataclass(frozen=True, eq=False)
class Shortlist:
    """Positions of all rows, but for long ones, whose value at ``direction`` (p,) is below ``threshold``."""

    direction: Array
    positions: Places
    threshold: float


class NearRows:
    """Finds the worst rows of effects (n, p) with the help of shortlists.

    Examples
    --------
    >>> effects = np.random.default_rng(0).normal(size=(5000, 3))
    >>> rows = NearRows(effects)
    >>> directions = np.array([[1.0, 2.0, 0.5]])
    >>> worst, lists = rows.worst(directions, 10, [None])
    >>> nearby, again = rows.worst(directions + 1e-4, 10, lists)
    >>> again[0] is lists[0], bool(np.isclose(nearby.drops[0], np.sort(effects @ (directions[0] + 1e-4))[:10].sum()))
    (True, True)
    """

    def __init__(self, effects: Array) -> None:
        self._effects = effects
        n, width = effects.shape
        scale = np.sqrt(np.einsum("ij,ij->j", effects, effects) / max(n, 1))
        scale[scale == 0] = 1.0
        parts = chunks(n, CHUNK)
        square = sum((effects[part] / scale).T @ (effects[part] / scale) for part in parts) / max(n, 1)
        whitened = np.linalg.cholesky(square + RIDGE * np.eye(width))
        #: ``|beta|`` of a direction is the length of ``beta @ factor``.
        self._factor = scale[:, None] * whitened
        squares = [(np.linalg.solve(whitened, (effects[part] / scale).T) ** 2).sum(axis=0) for part in parts]
        lengths = np.sqrt(np.concatenate(squares))
        order = np.argsort(-lengths, kind="stable")
        long = n // LONG
        self._long = np.sort(order[:long])
        self._is_long = np.zeros(n, dtype=bool)
        self._is_long[self._long] = True
        self._effects_of_long = effects[self._long]
        self._reach = float(lengths[order[long]]) if long < n else 0.0

    def worst(
        self, directions: Array, k: int, lists: Sequence[Shortlist | None]
    ) -> tuple[WorstRows, list[Shortlist | None]]:
        """The at most k worst rows for each of P directions (P, p), with a list each where one is known.

        Besides them lists for the next time: the same ones where they sufficed.
        """
        lists = list(lists)
        listed = np.flatnonzero([known is not None and k > 0 for known in lists])
        parts = chunks(len(listed), self._block(lists)) if len(listed) else []

        def of_part(part: slice) -> tuple[WorstRows, Mask]:
            known = [own for place in listed[part] if (own := lists[place]) is not None]
            return self._among(known, directions[listed[part]], k)

        found = each(of_part, parts, Threads()) if parts else []
        done = np.zeros(len(directions), dtype=bool)
        for part, (_, safe) in zip(parts, found, strict=True):
            done[listed[part][safe]] = True
        rest = np.flatnonzero(~done)
        anew, among, thresholds = find_with_survivors(directions[rest], self._effects, k)
        for place, own in zip(rest, self._listed(directions[rest], among, thresholds), strict=True):
            lists[place] = own
        return _put_together([worst for worst, _ in found], np.flatnonzero(done), anew, rest), lists

    def _block(self, lists: Sequence[Shortlist | None]) -> int:
        """People at a time, so that the effects of their listed rows stay few."""
        longest = max(len(known.positions) for known in lists if known is not None)
        return max(1, min(PEOPLE_BLOCK, LISTED_ENTRIES // (max(longest, 1) * len(self._factor))))

    def _listed(self, directions: Array, among: WorstRows, thresholds: Array) -> list[Shortlist | None]:
        kept = ~self._is_long[among.positions]
        positions = among.positions[kept]
        ends = np.concatenate([[0], np.cumsum(kept)])[among.starts]
        return [
            Shortlist(direction, positions[start:end], float(threshold)) if threshold < 0 else None
            for direction, start, end, threshold in zip(directions, ends[:-1], ends[1:], thresholds, strict=True)
        ]

    def _among(self, lists: list[Shortlist], block: Array, k: int) -> tuple[WorstRows, Mask]:
        """The k smallest values of directions (m, p) among their lists and long rows, of those for which they are the
        k smallest of all; and which these are."""
        sizes = np.array([len(known.positions) for known in lists])
        rows = np.zeros((len(lists), int(sizes.max())), np.intp)
        for place, known in enumerate(lists):
            rows[place, : sizes[place]] = known.positions
        values = (self._effects[rows] @ block[:, :, None])[:, :, 0]
        values[np.arange(rows.shape[1]) >= sizes[:, None]] = np.inf
        values = np.concatenate([values, block @ self._effects_of_long.T], axis=1)
        if values.shape[1] < k:
            return WorstRows.counted(np.empty(0, np.intp), np.empty(0), np.empty(0, np.intp)), np.zeros(
                len(lists), bool
            )
        best = np.argpartition(values, k - 1, axis=1)[:, :k]
        smallest = np.take_along_axis(values, best, axis=1)
        moved = np.linalg.norm((block - np.array([known.direction for known in lists])) @ self._factor, axis=1)
        least = np.array([known.threshold for known in lists])
        safe = smallest.max(axis=1) < least - (1.0 + ROUNDING) * self._reach * moved - ROUNDING * np.abs(least)
        rows = np.concatenate([rows, np.broadcast_to(self._long, (len(rows), len(self._long)))], axis=1)
        chosen = np.take_along_axis(rows, best, axis=1)[safe]
        return WorstRows.counted(chosen.ravel(), smallest[safe].ravel(), np.full(len(chosen), k)), safe


def _put_together(found: list[WorstRows], places: Places, anew: WorstRows, rest: Places) -> WorstRows:
    """What was found for people at ``places``, block by block, and anew for the ``rest``, in the order of people."""
    counts = np.zeros(len(places) + len(rest), np.intp)
    counts[places] = np.concatenate([worst.counts for worst in found]) if found else 0
    counts[rest] = anew.counts
    whole = WorstRows.counted(np.empty(int(counts.sum()), np.intp), np.empty(int(counts.sum())), counts)
    of_places = np.repeat(np.isin(np.arange(len(counts)), places), counts)
    for own, parts in ((of_places, found), (~of_places, [anew])):
        if parts:
            whole.positions[own] = np.concatenate([worst.positions for worst in parts])
            whole.values[own] = np.concatenate([worst.values for worst in parts])
    return whole
