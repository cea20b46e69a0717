"""The steps of training written out by hand for the CPU: the same networks to rounding, several times as fast.

:class:`rocerf.models.network.training._Run` is the same step as torch derives it, and the oracle of the tests. Here

- networks are trained in groups, one thread a group, instead of many threads inside every small product: threads that
  meet after each product wait for each other, and a group's numbers stay in the cache of its core;
- slopes are written out and products land in place, so that a step is some twenty calls and allocates nothing;
- sizes are padded to whole vectors of the processor. The first padded unit of a layer is the constant 1, so that
  biases are rows of the weights; the others are the constant 0. Their own weights keep them so: a bias at which
  softplus and its slope are exactly 0 in floating point, and which is therefore never moved.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable, Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from dataclasses import dataclass
from itertools import pairwise, repeat
from threading import Event

import numpy as np
import torch

from rocerf.models.network.network import LN2, Tensor
from rocerf.models.network.training import Rows, Task, Training, epoch_order
from rocerf.types import Array

#: Sizes are multiples of this: one vector of AVX2 and half a vector of AVX-512, in float32.
VECTOR = 8

#: The bias of padded units: exp of it is 0 in float32 and in float64.
SILENT = -1000.0

#: Bytes of a group of networks; about the second cache of a core.
GROUP_BYTES = 1 << 20

# What a step costs, counted in floating point operations of products (some 7e10 a second on one core). Only how
# networks are grouped hangs on these figures.
SOFTPLUS_COST = 150  #: softplus of one number and its slope
CALLS_COST = 2_000_000  #: the calls of a step, however much they do
LARGE_COST = 100_000_000  #: a step of one network that is worth several threads inside each call

# As torch's own softplus and its derivative, into a tensor that is there already.
softplus = torch.ops.aten.softplus.out
softplus_backward = torch.ops.aten.softplus_backward.grad_input


def train_on_cpu(
    task: Task,
    start: Sequence[Array],
    kept: Sequence[Rows],
    seeds: Sequence[int],
    training: Training,
    tell: Callable[[int], None] | None = None,
) -> list[Array]:
    """Train M networks as :func:`rocerf.models.network.training.train_stack` says; ``tell`` after each epoch of all."""
    plan = _Plan.of(start, training, torch.get_num_threads())
    shared = _Table.of(task, getattr(torch, training.precision))
    stop = Event()
    groups = []
    for part in plan.parts:
        stack = [parameter[part] for parameter in start]
        groups.append(_Group(shared, stack, kept[part], seeds[part], training, stop))
    with _spread(plan, stop) as each:
        for epoch in range(training.epochs):
            list(each(_Group.train, groups, repeat(epoch)))
            if tell is not None:
                tell((epoch + 1) * len(seeds))
    return [np.concatenate(pieces) for pieces in zip(*(group.result() for group in groups), strict=True)]


@dataclass(frozen=True)
class _Plan:
    """Which networks form a group, how many threads take groups, and how many threads torch uses inside a call."""

    parts: list[slice]
    workers: int
    inside: int

    @classmethod
    def of(cls, start: Sequence[Array], training: Training, threads: int) -> _Plan:
        """For a stack of M networks and so many threads in all."""
        many, item = len(start[0]), 4 if training.precision == "float32" else 8
        parameters = sum(parameter[0].size for parameter in start)
        hidden = sum(parameter.shape[1] for parameter in start[1:-2:2])
        held = item * (parameters + training.batch_size * (3 * hidden + start[0].shape[2]))
        cost = training.batch_size * (6 * parameters + SOFTPLUS_COST * hidden)
        # Calls hold the interpreter lock, so w threads need w times the calls one after another: w * calls <= work / w.
        workers = min(threads, max(1, math.isqrt(many * cost // CALLS_COST)), many)
        size = max(1, min(GROUP_BYTES // held, -(-many // workers)))
        count = workers * -(-many // (workers * size))
        edges = [many * place // count for place in range(count + 1)]
        parts = [slice(a, b) for a, b in pairwise(edges) if a < b]
        return cls(parts, workers, max(1, threads // workers) if cost >= LARGE_COST else 1)


@contextmanager
def _spread(plan: _Plan, stop: Event) -> Iterator[Callable[..., Iterable[None]]]:
    """``map`` over groups, by as many threads as planned; torch's own number of threads is as before afterwards."""
    before = torch.get_num_threads()
    try:
        if plan.workers == 1:
            torch.set_num_threads(plan.inside)
            yield map
            return
        with ThreadPoolExecutor(plan.workers, initializer=torch.set_num_threads, initargs=(plan.inside,)) as pool:
            try:
                yield pool.map
            finally:
                stop.set()  # so that nobody who leaves early waits for the end of an epoch
    finally:
        torch.set_num_threads(before)


@dataclass(frozen=True, eq=False)
class _Table:
    """Rows of a task, each with a 1 and zeros after its d values; labels, weights. A last row counts for nothing."""

    rows: Tensor
    labels: Tensor
    weights: Tensor

    @classmethod
    def of(cls, task: Task, precision: Tensor) -> _Table:
        """The same in this precision."""
        count, inputs = task.rows.shape
        rows = torch.zeros(count + 1, _padded(inputs), dtype=precision, device="cpu")
        rows[:count, :inputs] = torch.from_numpy(task.rows)
        rows[:, inputs] = 1.0
        labels, weights = (torch.from_numpy(np.append(values, 0.0)) for values in (task.labels, task.weights))
        return cls(rows, labels.to(precision), weights.to(precision))


def _padded(units: int) -> int:
    """Room for so many units and the constant 1."""
    return VECTOR * -(-(units + 1) // VECTOR)


class _Layer:
    """One layer of all networks of a group, and what a step writes to; ``at`` (M, batch, inputs) is what it is fed.

    ``weights`` (M, inputs, outputs) have the biases as a row. ``before`` and ``after`` softplus (M, batch, outputs) are
    one and the same in the last layer. ``below`` is the slope of the losses in ``at``; the first layer needs none.
    """

    def __init__(self, weight: Array, bias: Array, at: Tensor, *, first: bool, last: bool) -> None:
        many, self.outputs, self.inputs = weight.shape
        self.hidden, width = not last, self.outputs if last else _padded(self.outputs)
        # The one column of a last layer lies as a row: products are several times as quick with it.
        rows, columns = (width, at.shape[2]) if last else (at.shape[2], width)
        laid = at.new_zeros(many, rows, columns)
        self.weights, self.turned = (laid.mT, laid) if last else (laid, laid.mT)
        self.weights[:, : self.inputs, : self.outputs] = torch.from_numpy(weight).mT
        self.weights[:, self.inputs, : self.outputs] = torch.from_numpy(bias)
        self.weights[:, self.inputs, self.outputs :] = SILENT
        self.before = at.new_empty(many, at.shape[1], width)
        self.after = self.before if last else torch.empty_like(self.before)
        # Taken from softplus: ln 2 from real units; of the padded ones the first becomes 1, the others stay 0.
        self.shift = at.new_zeros(width)
        self.shift[: self.outputs], self.shift[self.outputs : self.outputs + 1] = LN2, -1.0
        self.at, self.below = at, None if first else torch.empty_like(at)
        # Views cost as much as small products.
        self.at_turned, self.after_turned = at.mT, self.after.mT

    def forward(self) -> None:
        """Fill ``before`` and ``after``."""
        torch.bmm(self.at, self.weights, out=self.before)
        if self.hidden:
            softplus(self.before, out=self.after)
            torch.sub(self.after, self.shift, out=self.after)

    def backward(self, slope: Tensor, rate: float, kept: Tensor | None) -> Tensor:
        """From the slope in ``after`` that in ``at``, which is returned; then the weights move by ``rate``.

        The slope in ``after`` is overwritten; in the last layer it is ``after`` itself.
        """
        if self.hidden:
            softplus_backward(slope, self.before, 1.0, 20.0, grad_input=slope)
        if self.below is not None:
            # A column by a row is quicker without the machinery of products.
            (torch.bmm if self.hidden else torch.mul)(slope, self.turned, out=self.below)
        if kept is not None:
            self.weights.mul_(kept)
            self.weights[:, self.inputs, self.outputs :] = SILENT
        if self.hidden:
            torch.baddbmm(self.weights, self.at_turned, slope, alpha=-rate, out=self.weights)
        else:
            torch.baddbmm(self.turned, self.after_turned, self.at, alpha=-rate, out=self.turned)
        return self.below

    def result(self) -> list[Array]:
        """Weights (M, outputs, inputs) and biases (M, outputs) as they are now."""
        values = self.weights[:, :, : self.outputs].double().numpy()
        return [values[:, : self.inputs].transpose(0, 2, 1), values[:, self.inputs]]


class _Group:
    """Networks that take their steps together, in one thread."""

    def __init__(
        self,
        table: _Table,
        start: Sequence[Array],
        kept: Sequence[Rows],
        seeds: Sequence[int],
        training: Training,
        stop: Event,
    ) -> None:
        self.table, self.kept, self.seeds, self.training, self.stop = table, kept, seeds, training, stop
        batch, many = training.batch_size, len(seeds)
        at = table.rows.new_empty(many, batch, table.rows.shape[1])
        self.flat, self.layers = at.view(many * batch, -1), list[_Layer]()
        for place in range(0, len(start), 2):
            first, last = place == 0, place == len(start) - 2
            self.layers.append(_Layer(start[place], start[place + 1], at, first=first, last=last))
            at = self.layers[-1].after
        steps = -(-max(map(len, kept)) // batch)
        left = np.array([len(rows) for rows in kept]) - batch * np.arange(steps)[:, None]
        #: Rows in each batch (steps, M, 1, 1); 0 where a network waits.
        self.there = torch.from_numpy(np.clip(left, 0, batch)).to(at.dtype)[:, :, None, None]

    def train(self, epoch: int) -> None:
        """One epoch of every network."""
        with torch.inference_mode():
            batches = torch.from_numpy(self._batches(epoch))
            shape = (*batches.shape, 1)
            labels = self.table.labels.index_select(0, batches.view(-1)).view(shape)
            shares = self.table.weights.index_select(0, batches.view(-1)).view(shape)
            shares.div_(self.there.clamp(min=1.0))
            kept: Sequence[Tensor | None] = [None] * len(batches)
            if self.training.weight_decay:
                decay = self.training.learning_rate * self.training.weight_decay
                kept = (1.0 - decay * (self.there > 0).to(shares.dtype)).unbind()
            flat = batches.view(len(batches), -1)
            for step in zip(flat.unbind(), labels.unbind(), shares.unbind(), kept, strict=True):
                if self.stop.is_set():
                    return
                self._step(*step)

    def _batches(self, epoch: int) -> Rows:
        """Row numbers of every batch of an epoch, (steps, M, batch); the last row where a network has no row left."""
        batch = self.training.batch_size
        table = np.full((len(self.there), len(self.kept), batch), len(self.table.labels) - 1, np.int64)
        for network, (rows, seed) in enumerate(zip(self.kept, self.seeds, strict=True)):
            order = epoch_order(rows, seed, epoch, self.training)
            full, rest = divmod(len(order), batch)
            table[:full, network] = order[: full * batch].reshape(full, batch)
            if rest:
                table[full, network, :rest] = order[full * batch :]
        return table

    def _step(self, batch: Tensor, labels: Tensor, shares: Tensor, kept: Tensor | None) -> None:
        """One step: row numbers (M * batch,), labels and weights over rows there (M, batch, 1), and what decay leaves
        of the weights (M, 1, 1), None without decay."""
        torch.index_select(self.table.rows, 0, batch, out=self.flat)
        for layer in self.layers:
            layer.forward()
        slope = self.layers[-1].after.sigmoid_().sub_(labels).mul_(shares)
        for layer in reversed(self.layers):
            slope = layer.backward(slope, self.training.learning_rate, kept)

    def result(self) -> list[Array]:
        """The stack as it is now."""
        return [values for layer in self.layers for values in layer.result()]
