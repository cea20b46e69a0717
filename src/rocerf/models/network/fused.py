"""Stacks trained on a GPU by the kernel that goes through an epoch at once (:mod:`rocerf.models.network.fused_kernel`).

For float32 and networks of up to two hidden layers that fit the chip. What does not fit, or a machine without Triton or
without the C compiler that Triton starts kernels with, is left to the captured steps of
:mod:`rocerf.models.network.training`; both train the same networks, to rounding.
"""

from __future__ import annotations

import math
import warnings
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np
import torch
from numpy.typing import NDArray

from rocerf.models.network import fused_kernel
from rocerf.models.network.network import Tensor
from rocerf.types import Array

if TYPE_CHECKING:
    from rocerf.models.network.training import Rows, Task, Training

#: Drawing an epoch's orders is handed out in so many shares: enough for all cores, few enough to cost nothing.
SHARES = 64


@dataclass(frozen=True)
class Tiles:
    """Sizes of a network and of its batches, as they are and as the kernel pads them: powers of two from 16 on.

    >>> tiles = Tiles(hidden=2, inputs=13, width=26, batch=32)
    >>> tiles.D, tiles.H, tiles.B, tiles.fit
    (16, 32, 32, True)
    """

    hidden: int
    inputs: int
    width: int
    batch: int

    @classmethod
    def of(cls, start: Sequence[Array], batch: int) -> Tiles | None:
        """Those of a stack; None if its hidden layers differ in width."""
        hidden, inputs = len(start) // 2 - 1, start[0].shape[2]
        widths = {parameter.shape[1] for parameter in start[:-2]}
        return cls(hidden, inputs, widths.pop() if widths else 1, batch) if len(widths) < 2 else None

    @property
    def D(self) -> int:
        """Inputs, padded."""
        return _padded(self.inputs)

    @property
    def H(self) -> int:
        """Units of a hidden layer, padded."""
        return _padded(self.width)

    @property
    def B(self) -> int:
        """Rows of a batch, padded."""
        return _padded(self.batch)

    @property
    def fit(self) -> bool:
        """Whether the kernel knows the shape and the chip holds it: a matrix of 128 by 128 with a batch of 32 rows."""
        known = self.hidden <= 2 and max(self.D, self.H, self.B) <= 128
        return known and self.B * max(self.D, self.H) <= 4096 and self.D * self.H <= 8192

    @property
    def shapes(self) -> list[tuple[int, ...]]:
        """Shapes of the padded parameters of one network, in the order of a stack."""
        hidden = [(self.H, self.D), (self.H,), (self.H, self.H), (self.H,)][: 2 * self.hidden]
        return [*hidden, (self.H if self.hidden else self.D,), ()]


def _padded(size: int) -> int:
    return max(16, 1 << (size - 1).bit_length())


@dataclass(frozen=True)
class Launch:
    """How the kernel is compiled: warps a program, registers a thread at most, and the arithmetic of the products.

    "ieee" multiplies in float32; "tf32x3" puts a float32 product together from three on the tensor cores, which is as
    good to a few units in the last place and the only way that large matrices are fast.
    """

    warps: int
    registers: int | None = None
    precision: str = "ieee"

    @classmethod
    def of(cls, tiles: Tiles) -> Launch:
        """What suits the size: several small networks share a processor of the GPU, a large one has it alone."""
        if max(tiles.D, tiles.H, tiles.B) > 32:
            return cls(8 if tiles.H > 64 else 4, None, "tf32x3")
        return cls(4, registers=128)  # so that four networks of Adult's size are on a processor at once


def train_fused(
    task: Task,
    start: Sequence[Array],
    kept: Sequence[Rows],
    seeds: Sequence[int],
    training: Training,
    device: Tensor,
    tell: Callable[[int], None] | None,
) -> list[Array] | None:
    """The trained stack in float64, or None if this stack is not for the kernel; ``tell`` hears of network epochs."""
    run = fused_run(task, start, kept, training, device)
    if run is None:
        return None
    orders = Orders(kept, seeds, shuffle=training.shuffle, device=device)
    # The next orders are drawn and copied while the device works through the present ones.
    with ThreadPoolExecutor(1) as ahead, ThreadPoolExecutor() as pool:
        coming = ahead.submit(orders.of_epoch, 0, pool)
        for epoch in range(training.epochs):
            present = coming.result()
            if epoch + 1 < training.epochs:
                coming = ahead.submit(orders.of_epoch, epoch + 1, pool)
            run.epoch(present, orders.which)
            run.wait()
            if tell is not None:
                tell((epoch + 1) * len(seeds))
    return run.result()


def fused_run(
    task: Task,
    start: Sequence[Array],
    kept: Sequence[Rows],
    training: Training,
    device: Tensor,
    launch: Launch | None = None,
) -> FusedRun | None:
    """The run, compiled and ready; None where there is no Triton, the stack does not fit, or the kernel fails."""
    tiles = Tiles.of(start, training.batch_size)
    if not fused_kernel.AVAILABLE or training.precision != "float32" or tiles is None or not tiles.fit:
        return None
    if len(task.rows) * tiles.D >= 2**31 or max(map(len, kept)) >= 2**30:  # places are counted in 32 bits
        return None
    run = FusedRun(task, start, kept, training, device, tiles, launch or Launch.of(tiles))
    try:
        run.compile()
    except Exception as error:  # whatever a compiler, a driver or a missing tool may raise: there is another way
        said = f"{type(error).__name__}: {error}".partition("\n")[0]
        warnings.warn(f"The training kernel does not run here ({said}); training step by step.", stacklevel=2)
        return None
    return run


class Orders:
    """The orders in which networks see their rows, as *places* in the list of the rows that a network kept.

    Drawn as :mod:`rocerf.models.network.training` draws them, by seed and epoch. A shuffle moves places and does not
    look at what lies there, so networks with one seed and as many rows share one order. There are two buffers: one in
    use, one being filled.
    """

    def __init__(self, kept: Sequence[Rows], seeds: Sequence[int], *, shuffle: bool, device: Tensor) -> None:
        # In order, all go by one line: 0, 1, 2, ...
        asked = [(seed, len(rows)) if shuffle else (0, 0) for seed, rows in zip(seeds, kept, strict=True)]
        self.distinct = list(dict.fromkeys(asked))
        place = {key: i for i, key in enumerate(self.distinct)}
        self.which = torch.tensor([place[key] for key in asked], dtype=torch.int32, device=device)
        self.shuffle, self.device = shuffle, device
        gpu, shape = device.type == "cuda", (len(self.distinct), max(map(len, kept)))
        # What stands beyond the end of a shorter order is never read.
        self.host = [torch.empty(shape, dtype=torch.int32, pin_memory=gpu) for _ in range(2)] if shuffle else []
        self.on_device = [buffer.to(device) if gpu else buffer for buffer in self.host]
        self.in_order = torch.arange(shape[1], dtype=torch.int32, device=device)[None]
        self.stream = torch.cuda.Stream(device) if gpu else None

    def of_epoch(self, epoch: int, pool: ThreadPoolExecutor) -> Tensor:
        """Places (orders, longest) on the device; good until the epoch after the next is asked for."""
        if not self.shuffle:
            return self.in_order
        host, on_device = self.host[epoch % 2], self.on_device[epoch % 2]
        table = host.numpy()

        def draw(first: int) -> None:
            for line in range(first, len(self.distinct), SHARES):
                seed, count = self.distinct[line]
                table[line, :count] = places_of(count, seed, epoch)

        list(pool.map(draw, range(min(SHARES, len(self.distinct)))))
        if self.stream is not None:
            with torch.cuda.stream(self.stream):
                on_device.copy_(host, non_blocking=True)
            self.stream.synchronize()
        return on_device


def places_of(count: int, seed: int, epoch: int) -> NDArray[np.int64]:
    """The order of so many rows in this epoch: ``rows[places]`` is what NumPy's permutation makes of the rows."""
    # From 1: NumPy takes [seed, 0] for seed alone, which draws the network's first weights.
    return np.random.default_rng([seed, 1 + epoch]).permutation(count)


class FusedRun:
    """Tensors of one run and the kernel that moves them."""

    def __init__(
        self,
        task: Task,
        start: Sequence[Array],
        kept: Sequence[Rows],
        training: Training,
        device: Tensor,
        tiles: Tiles,
        launch: Launch,
    ) -> None:
        self.training, self.device, self.tiles, self.launch = training, device, tiles, launch
        self.shapes = [parameter.shape for parameter in start]
        rows = np.zeros((len(task.rows), tiles.D), np.float32)
        rows[:, : tiles.inputs] = task.rows
        facts = np.column_stack([task.labels, task.weights]).astype(np.float32)
        self.longest = max(map(len, kept))
        numbers = np.zeros((len(kept), self.longest), np.int32)
        for line, own in zip(numbers, kept, strict=True):
            line[: len(own)] = own
        counts = np.array([len(own) for own in kept], np.int32)
        self.rows, self.facts, self.kept, self.counts = (
            torch.as_tensor(values, device=device) for values in (rows, facts, numbers, counts)
        )
        self.stack = torch.as_tensor(np.hstack(list(self._padded_stack(start))), device=device)

    def compile(self) -> None:
        """Have the kernel compiled, by an epoch of no rows, which leaves every network as it is."""
        nothing = torch.zeros_like(self.counts)
        self._start(self.kept, nothing, nothing)
        self.wait()

    def epoch(self, orders: Tensor, which: Tensor) -> None:
        """Start one epoch of every network: network m takes its rows by the order ``orders[which[m]]``."""
        self._start(orders, which, self.counts)

    def _start(self, orders: Tensor, which: Tensor, counts: Tensor) -> None:
        tiles, launch, training = self.tiles, self.launch, self.training
        tensors = (self.rows, self.facts, self.kept, orders, which, counts)
        compiled = {"HIDDEN": tiles.hidden, "WIDTH": tiles.width, "BATCH": tiles.batch}
        compiled |= {"D": tiles.D, "H": tiles.H, "B": tiles.B}
        limits = {} if launch.registers is None else {"maxnreg": launch.registers}
        fused_kernel.epoch[(len(self.kept),)](
            self.stack,
            self.stack.shape[1],
            *tensors,
            self.longest,
            float(training.learning_rate),
            float(training.weight_decay),
            **compiled,
            PRECISION=launch.precision,
            num_warps=launch.warps,
            num_stages=1,
            **limits,
        )

    def wait(self) -> None:
        """Until the device has done all its work."""
        if self.device.type == "cuda":
            torch.cuda.synchronize(self.device)

    def _padded_stack(self, start: Sequence[Array]) -> Iterator[NDArray[np.float32]]:
        """Parameters (M, .) in float32, each with zeros up to its padded shape and laid out in one line."""
        for parameter, narrow, shape in zip(start, self._narrow, self.tiles.shapes, strict=True):
            wide = np.zeros((len(parameter), *shape), np.float32)
            wide[tuple(slice(size) for size in narrow)] = parameter.reshape(narrow)
            yield wide.reshape(len(parameter), -1)

    @property
    def _narrow(self) -> list[tuple[int, ...]]:
        """Shapes (M, ...) of the parameters in the kernel: the output layer goes without its axis of one unit."""
        return [*self.shapes[:-2], *((shape[0], *shape[2:]) for shape in self.shapes[-2:])]

    def result(self) -> list[Array]:
        """The stack as it is now, in its own shapes."""
        found, first = [], 0
        stack = self.stack.cpu().double().numpy()
        for shape, narrow, padded in zip(self.shapes, self._narrow, self.tiles.shapes, strict=True):
            last = first + math.prod(padded)
            wide = stack[:, first:last].reshape(-1, *padded)
            found.append(wide[tuple(slice(size) for size in narrow)].reshape(shape))
            first = last
        return found
