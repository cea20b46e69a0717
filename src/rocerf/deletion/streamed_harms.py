"""Harms of rows that are asked for by passes: kept is what they follow from, two vectors of p numbers a model.

A row's harm is ``(H^-1 direction)'x~ e l'(e x~'theta) w``, divided by what its leverage says. So the worst rows for all
models at once are one pass over the rows (:mod:`rocerf.deletion.threshold_pass`), and nothing as long as the rows is
ever made.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass

import numpy as np

from rocerf.deletion import streamed_rows
from rocerf.deletion.deletions import Deletions
from rocerf.deletion.harms import Harms
from rocerf.deletion.streamed_rows import Lengths, StreamedRows
from rocerf.deletion.threshold_pass import RowValues, block_people, sampled_rows, worst_by_threshold, worst_in_order
from rocerf.passes import Room, Threads, chunks
from rocerf.types import Array, Places

#: A leverage above this counts as this much.
MOST_LEVERAGE = 0.999


@dataclass(frozen=True, eq=False)
class HarmValues(RowValues):
    """Harms of rows that are in, for models with parameters (M, p) and directions solved for (M, p).

    ``shrunk`` (M,) is what a row's share of the penalty adds; ``lengths`` are None where leverage does not count.
    """

    rows: StreamedRows
    lengths: Lengths | None
    thetas: Array
    solved: Array
    shrunk: Array

    def __len__(self) -> int:
        return len(self.thetas)

    def of(self, people: Places | slice) -> HarmValues:
        """As :meth:`RowValues.of`."""
        return HarmValues(self.rows, self.lengths, self.thetas[people], self.solved[people], self.shrunk[people])

    def at(self, rows: Places) -> Array:
        """As :meth:`RowValues.at`."""
        return self._values(self.rows[rows], self.rows.sign(rows), self.rows.weight(rows))[0]

    def blocks(self, rows: slice) -> Iterator[tuple[int, int, Array]]:
        """As :meth:`RowValues.blocks`."""
        parts, room = [(part.start, self.of(part)) for part in block_people(len(self))], Room()
        for own, x, sign, weight in self.rows.blocks(rows, len(self)):
            for first, people in parts:
                yield own.start, first, people._values(x, sign, weight, own, room)[0]

    def put_back(self, model: int, rows: Places) -> Array:
        """Harms of rows (m,) that are out, for one model: what keeping them out does; (m,)."""
        values, levers = self.of(np.array([model]))._values(
            self.rows[rows], self.rows.sign(rows), self.rows.weight(rows)
        )
        return np.asarray(values[0] if levers is None else values[0] * _out(levers[0]))

    def _values(
        self, x: Array, sign: Array, weight: Array | float, own: slice | None = None, room: Room | None = None
    ) -> tuple[Array, Array | None]:
        """Harms (M, m) of rows at hand, and their leverages; of a block, which these rows are, in its ``room``."""
        room, loss, shape = room or Room(), self.rows.loss, (len(self), len(x))
        signed = np.multiply(x, sign[:, None], out=room("signed", *x.shape))
        pulls = loss.quick_pull(np.matmul(self.thetas, signed.T, out=room("pulls", *shape)))
        harms = np.matmul(self.solved, signed.T, out=room("harms", *shape))
        harms *= pulls
        if not isinstance(weight, float):
            harms *= weight
        if self.shrunk.any():
            harms += self.shrunk[:, None]
        if self.lengths is None:
            return harms, None
        levers = loss.curvature_of_pull(pulls)
        levers *= (self.lengths(x) if own is None else self.lengths.of_block(own, x)) * weight
        kept_in = np.minimum(levers, MOST_LEVERAGE, out=room("kept in", *shape))
        harms /= np.subtract(1.0, kept_in, out=kept_in)
        return harms, levers


def _out(levers: Array) -> Array:
    """What the harm of a row that is in is multiplied by when it is out."""
    return np.asarray((1.0 - np.minimum(levers, MOST_LEVERAGE)) / (1.0 + levers))


@dataclass(eq=False)
class _Found:
    """At least the ``count`` most harmful rows for one model, and those of its set, with harms; rows ascending."""

    count: int
    rows: Places
    harms: Array

    def fill(self, count: int, rows: Places, harms: Array) -> None:
        order = np.argsort(rows, kind="stable")
        self.count, self.rows, self.harms = count, rows[order], harms[order]

    def smallest(self, count: int) -> Places:
        """The rows with the smallest harms below 0, smallest first."""
        order = np.argsort(self.harms, kind="stable")[:count]
        return self.rows[order[self.harms[order] < 0]]

    def at(self, rows: Places) -> Array | None:
        """The harms of rows, if all of them are among these."""
        if not len(self.rows):
            return None
        place = np.minimum(np.searchsorted(self.rows, rows), len(self.rows) - 1)
        return self.harms[place] if (self.rows[place] == rows).all() else None


class StreamedHarms(Harms):
    """The harms of all rows for M models, each without its set of rows ``gone``, asked for by passes."""

    def __init__(self, values: HarmValues, gone: list[Places]) -> None:
        self.values, self.gone = values, gone
        self._found = [_Found(0, _NONE, np.empty(0)) for _ in gone]

    def of(self, models: Places) -> StreamedHarms:
        """As :meth:`Harms.of`."""
        some = StreamedHarms(self.values.of(models), [self.gone[model] for model in models])
        some._found = [self._found[model] for model in models]  # what is found for either is found for both
        return some

    def put(self, models: Places, others: StreamedHarms) -> None:
        """As :meth:`Harms.put`."""
        mine, theirs = self.values, others.values
        mine.thetas[models], mine.solved[models], mine.shrunk[models] = theirs.thetas, theirs.solved, theirs.shrunk
        for place, model in enumerate(models):
            self.gone[model], self._found[model] = others.gone[place], others._found[place]

    def worst(self, count: int, width: int) -> Deletions:
        """As :meth:`Harms.worst`."""
        return Deletions.of([found.smallest(count) for found in self._worst(count)], width)

    def worst_outside(self, sets: Sequence[Places], count: int, width: int) -> Deletions:
        """As :meth:`Harms.worst_outside`."""
        most = count + max(map(len, sets), default=0)
        chosen = []
        for found, own in zip(self._worst(most), sets, strict=True):
            rows = found.smallest(most)
            chosen.append(rows[~np.isin(rows, own)][:count])
        return Deletions.of(chosen, width)

    def worst_shaken(self, noise: Callable[[int], np.random.Generator], count: int) -> Deletions:
        """As :meth:`Harms.worst_shaken`; drawn in this process, chunk by chunk in the order of the rows."""
        shaken = _Shaken(self.values, [noise(model) for model in range(len(self.values))])
        rows = len(self.values.rows)
        return Deletions.worst(worst_in_order(shaken, count, rows, streamed_rows.LONG_CHUNK), count)

    def at(self, model: int, rows: Places) -> Array:
        """As :meth:`Harms.at`."""
        known = self._found[model].at(rows)
        if known is not None:
            return known
        harms: Array = self.values.of(np.array([model])).at(rows)[0]
        out = np.isin(rows, self.gone[model])
        harms[out] = self.values.put_back(model, rows[out])
        return harms

    def tempting(self, model: int, chosen: Places, width: int) -> Places:
        """As :meth:`Harms.tempting`, of rows that harm."""
        most = width + max(map(len, [chosen, *self.gone]))
        rows = self._worst(most)[model].smallest(most)
        return np.asarray(rows[~np.isin(rows, chosen)][:width])

    def _worst(self, count: int) -> list[_Found]:
        """For each model at least the ``count`` most harmful rows, and those of its set."""
        models = np.array([model for model, found in enumerate(self._found) if found.count < count], np.intp)
        if len(models):
            # A row that is out comes back at less than it counts as one that is in: its place is free for another.
            most, rows = count + max(len(self.gone[model]) for model in models), len(self.values.rows)
            chunk, sample = streamed_rows.LONG_CHUNK, sampled_rows(rows)
            worst = worst_by_threshold(self.values.of(models), most, rows, chunk, Threads(), sample)
            for place, model in enumerate(models):
                part, own = slice(worst.starts[place], worst.starts[place + 1]), self.gone[model]
                inside = np.isin(worst.positions[part], own)
                outside, harms = worst.positions[part][~inside], worst.values[part][~inside]
                back = self.values.put_back(int(model), own) if len(own) else np.empty(0)
                self._found[model].fill(count, np.concatenate([outside, own]), np.concatenate([harms, back]))
        return self._found


_NONE: Places = np.empty(0, np.intp)


@dataclass(frozen=True, eq=False)
class _Shaken(RowValues):
    """Harms times ``exp(z/2)``; z is drawn as chunks come, which must be in the order of the rows."""

    values: HarmValues
    noise: list[np.random.Generator]

    def __len__(self) -> int:
        return len(self.values)

    def of(self, people: Places) -> _Shaken:
        """Not asked for: noise is drawn once."""
        raise NotImplementedError

    def at(self, rows: Places) -> Array:
        """Not asked for: noise is drawn in the order of the rows."""
        raise NotImplementedError

    def blocks(self, rows: slice) -> Iterator[tuple[int, int, Array]]:
        """As :meth:`RowValues.blocks`."""
        for start, first, values in self.values.blocks(rows):
            noise = self.noise[first : first + len(values)]
            drawn = np.stack([one.normal(size=values.shape[1]) for one in noise])
            yield start, first, values * np.exp(0.5 * drawn)


def own_rows(deletions: Deletions) -> list[Places]:
    """The rows that each model goes without, ascending."""
    return [deletions.set_of(model) for model in range(len(deletions))]


def parts_of(deletions: Deletions, width: int, entries: int) -> list[slice]:
    """Parts of the models whose deleted rows, of so many numbers each, are at most so many entries together."""
    return chunks(len(deletions), max(1, entries // max(deletions.rows.shape[1] * width, 1)))
