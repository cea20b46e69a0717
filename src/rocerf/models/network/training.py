"""Many networks trained at once: parameters stacked, every network on its own rows and in its own order.

Plain stochastic gradient descent on the mean cross entropy of a batch,

    theta <- theta - rate (1/|B| sum_{i in B} omega_i dloss_i/dtheta + weight_decay theta),

over the rows that a network still has, batch after batch. Networks with fewer rows have fewer batches in an epoch and
wait, untouched, for the others; the last batch of an epoch is as short as it comes out. So a network in a stack is
the network that would have been trained alone. On a GPU a kernel of our own does an epoch at once, where it fits
(:mod:`rocerf.models.network.fused`); otherwise one step is captured as a CUDA graph and replayed.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, replace
from typing import Literal

import numpy as np
import torch
from numpy.typing import NDArray
from torch.nn import functional

from rocerf.models.network.network import Tensor, stacked_forward
from rocerf.models.options import positive, positive_whole
from rocerf.types import Array, Progress

Rows = NDArray[np.intp]

#: Networks trained side by side: more share each call's overhead, fewer fit the caches of a small machine.
STACK_ON_CPU = 1024
STACK_ON_GPU = 1024


@dataclass(frozen=True)
class Training:
    """How a network is trained; the defaults are the paper's.

    ``shuffle``: a new order of the rows in each epoch, drawn from the network's seed (the authors' code keeps the order
    of the file, which a table sorted by label would not forgive). ``precision`` is that of training; whatever is
    promised about the result is computed in float64.
    """

    learning_rate: float = 0.01
    batch_size: int = 32
    epochs: int = 100
    shuffle: bool = True
    weight_decay: float = 0.0
    precision: Literal["float32", "float64"] = "float32"

    def checked(self) -> Training:
        """The same, if its numbers are such as can be trained by."""
        return replace(
            self,
            learning_rate=positive(self.learning_rate, "learning_rate"),
            batch_size=positive_whole(self.batch_size, "batch_size"),
            epochs=positive_whole(self.epochs, "epochs"),
            weight_decay=positive(self.weight_decay, "weight_decay", zero=True),
        )

    def steps(self, rows: int) -> int:
        """Number of steps over so many rows."""
        return self.epochs * -(-rows // self.batch_size)


@dataclass(frozen=True, eq=False)
class Task:
    """What is learned from: scaled rows (n, d), labels 0 or 1 (n,), and weights (n,) of the rows' losses."""

    rows: Array
    labels: Array
    weights: Array


def train_stack(
    task: Task,
    start: Sequence[Array],
    kept: Sequence[Rows],
    seeds: Sequence[int],
    training: Training,
    *,
    device: str = "cpu",
    progress: Progress | None = None,
) -> list[Array]:
    """Train M networks from the stack ``start``; network m sees the rows ``kept[m]`` and orders them by ``seeds[m]``.

    Returns the trained stack in float64. ``progress`` is called with (network epochs done, in all) and may raise.
    """
    size = STACK_ON_CPU if torch.device(device).type == "cpu" else STACK_ON_GPU
    parts: list[list[Array]] = []
    total = len(seeds) * training.epochs
    for first in range(0, len(seeds), size):
        part = slice(first, first + size)
        tell = None if progress is None else _part_of(progress, first * training.epochs, total)
        stack = [parameter[part] for parameter in start]
        parts.append(_train_part(task, stack, kept[part], seeds[part], training, device, tell))
    return [np.concatenate(pieces) for pieces in zip(*parts, strict=True)]


def _part_of(progress: Progress, before: int, total: int) -> Callable[[int], None]:
    return lambda done: progress(before + done, total)


def _train_part(
    task: Task,
    start: Sequence[Array],
    kept: Sequence[Rows],
    seeds: Sequence[int],
    training: Training,
    device: str,
    tell: Callable[[int], None] | None,
) -> list[Array]:
    precision = getattr(torch, training.precision)
    where = torch.device(device)
    if where.type == "cpu":
        from rocerf.models.network.cpu_training import train_on_cpu

        return train_on_cpu(task, start, kept, seeds, training, tell)
    # A graph is captured on the current device, which must be the one that is meant.
    if where.type == "cuda" and where.index is not None:
        torch.cuda.set_device(where)
    if where.type == "cuda":
        from rocerf.models.network.fused import train_fused

        trained = train_fused(task, start, kept, seeds, training, where, tell)
        if trained is not None:
            return trained
    run = _Run(task, start, max(map(len, kept)), training, where, precision)
    advance = run.captured() if run.device.type == "cuda" else run.step
    # Drawing orders lets go of the interpreter lock, so many are drawn at once, and the next epoch's ahead of time.
    with ThreadPoolExecutor(1) as ahead, ThreadPoolExecutor() as pool:
        coming = ahead.submit(_batches, kept, seeds, 0, training, pool)
        for epoch in range(training.epochs):
            run.load(coming.result())
            if epoch + 1 < training.epochs:
                coming = ahead.submit(_batches, kept, seeds, epoch + 1, training, pool)
            for _ in range(run.steps):
                advance()
            if tell is not None:
                run.wait()
                tell((epoch + 1) * len(seeds))
    return run.result()


def _batches(
    kept: Sequence[Rows], seeds: Sequence[int], epoch: int, training: Training, pool: ThreadPoolExecutor
) -> Rows:
    """Row numbers of every batch of an epoch, (steps, M, batch); -1 where a network has no row left."""
    steps = -(-max(map(len, kept)) // training.batch_size)
    table = np.full((len(kept), steps * training.batch_size), -1, np.int64)

    def fill(network: int) -> None:
        rows = epoch_order(kept[network], seeds[network], epoch, training)
        table[network, : len(rows)] = rows

    list(pool.map(fill, range(len(kept))))
    return table.reshape(len(kept), steps, training.batch_size).transpose(1, 0, 2)


def epoch_order(rows: Rows, seed: int, epoch: int, training: Training) -> Rows:
    """The rows in the order in which the network of this seed sees them in an epoch."""
    if not training.shuffle:
        return rows
    # From 1: NumPy takes [seed, 0] for seed alone, which draws the network's first weights.
    return np.random.default_rng([seed, 1 + epoch]).permutation(rows)


class _Run:
    """Tensors of one run and the step that moves them; all in place, so that a graph can replay it."""

    def __init__(
        self, task: Task, start: Sequence[Array], longest: int, training: Training, device: Tensor, precision: Tensor
    ) -> None:
        def tensor(values: Array) -> Tensor:
            return torch.as_tensor(values, dtype=precision, device=device)

        self.device, self.training = device, training
        # One row of zeros with weight 0 stands at the end, where the row number -1 points.
        self.rows = tensor(np.vstack([task.rows, np.zeros(task.rows.shape[1])]))
        self.labels = tensor(np.append(task.labels, 0.0))
        self.weights = tensor(np.append(task.weights, 0.0))
        self.real = tensor(np.append(np.ones(len(task.labels)), 0.0))
        self.stack = [tensor(parameter).clone().requires_grad_() for parameter in start]
        self.steps = -(-longest // training.batch_size)
        shape = (self.steps, len(start[0]), training.batch_size)
        self.batches = torch.zeros(shape, dtype=torch.int64, device=device)
        self.position = torch.zeros(1, dtype=torch.int64, device=device)

    def load(self, batches: Rows) -> None:
        """Put the batches of the next epoch in place."""
        self.batches.copy_(torch.from_numpy(np.ascontiguousarray(batches)))
        self.position.zero_()

    def step(self) -> None:
        """One step of every network, on the batch at the present position."""
        batch = self.batches.index_select(0, self.position).squeeze(0)
        logits = stacked_forward(self.stack, self.rows[batch])
        loss = functional.binary_cross_entropy_with_logits(logits, self.labels[batch], reduction="none")
        there = self.real[batch].sum(dim=1)
        mean = (self.weights[batch] * loss).sum(dim=1) / there.clamp(min=1.0)
        slopes = list(torch.autograd.grad(mean.sum(), self.stack))
        with torch.no_grad():
            if self.training.weight_decay:
                awake = (there > 0).to(there.dtype) * self.training.weight_decay
                for slope, parameter in zip(slopes, self.stack, strict=True):
                    slope.addcmul_(awake.reshape(-1, *[1] * (parameter.ndim - 1)), parameter)
            torch._foreach_add_(self.stack, slopes, alpha=-self.training.learning_rate)
            self.position.add_(1)

    def captured(self) -> Callable[[], None]:
        """The step as a CUDA graph; parameters and position are as before when this returns."""
        before = [parameter.detach().clone() for parameter in self.stack]
        side = torch.cuda.Stream(self.device)
        side.wait_stream(torch.cuda.current_stream(self.device))
        with torch.cuda.stream(side):
            for _ in range(3):  # lets libraries set themselves up outside the capture
                self.position.zero_()
                self.step()
        torch.cuda.current_stream(self.device).wait_stream(side)
        self.position.zero_()
        graph = torch.cuda.CUDAGraph()
        with torch.cuda.graph(graph):
            self.step()
        with torch.no_grad():
            for parameter, value in zip(self.stack, before, strict=True):
                parameter.copy_(value)
        return graph.replay  # type: ignore[no-any-return]

    def wait(self) -> None:
        """Until the device has done all its work."""
        if self.device.type == "cuda":
            torch.cuda.synchronize(self.device)

    def result(self) -> list[Array]:
        """The stack as it is now."""
        return [parameter.detach().cpu().double().numpy() for parameter in self.stack]
