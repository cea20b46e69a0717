"""One way over the rows: every chunk of rows gives a partial result, and partial results merge into one.

Whoever walks over training rows says what a chunk gives and how two results become one. Merging is associative (sums:
to rounding), so chunks may be worked on anywhere and merged in any grouping, and memory need not grow with the rows.
Where that happens is up to a *runner*: one chunk after another, or in threads. Every place names the runner that suits
it; within :func:`using` all passes over rows take another one.

Another runner (a cluster, say) is one file: an object with ``run``, and ``register_runner(its name, it)``.
"""

from __future__ import annotations

import math
import operator
import os
from collections import deque
from collections.abc import Callable, Iterable, Iterator, Sequence
from concurrent.futures import Future, ThreadPoolExecutor
from contextlib import AbstractContextManager, contextmanager
from dataclasses import dataclass
from functools import cache, reduce
from typing import Any, Protocol, TypeVar

import numpy as np
from numpy.typing import NDArray

from rocerf.errors import OptionError
from rocerf.types import Progress

T = TypeVar("T")


class Runner(Protocol):
    """What works on chunks and merges what they give."""

    def run(self, partial: Callable[[slice], T], merge: Callable[[T, T], T], chunks: Sequence[slice]) -> T:
        """``partial`` of every chunk (at least one), merged in the order of the chunks."""
        ...


class Serial:
    """One chunk after another: one partial result in memory besides the merged one."""

    def run(self, partial: Callable[[slice], T], merge: Callable[[T, T], T], chunks: Sequence[slice]) -> T:
        """As :meth:`Runner.run`."""
        return reduce(merge, told_of(map(partial, chunks), len(chunks)))


@dataclass(frozen=True)
class Threads:
    """Chunks in ``count`` threads (0: one for each core), each with one BLAS thread; a few partial results in memory.

    They are merged in the order of the chunks, so the result is to the bit that of :class:`Serial`.
    """

    count: int = 0

    def run(self, partial: Callable[[slice], T], merge: Callable[[T, T], T], chunks: Sequence[slice]) -> T:
        """As :meth:`Runner.run`."""
        count = min(self.count or workers(), len(chunks))
        with one_blas_thread():
            if count == 1:
                return SERIAL.run(partial, merge, chunks)
            with ThreadPoolExecutor(count) as pool:
                return reduce(merge, told_of(_in_order(pool, partial, chunks, 2 * count), len(chunks)))


def _in_order(
    pool: ThreadPoolExecutor, partial: Callable[[slice], T], chunks: Sequence[slice], ahead: int
) -> Iterator[T]:
    """The partial results in the order of the chunks, of which at most so many are begun before they are asked for."""
    begun: deque[Future[T]] = deque()
    for chunk in chunks:
        if len(begun) == ahead:
            yield begun.popleft().result()
        begun.append(pool.submit(partial, chunk))
    while begun:
        yield begun.popleft().result()


SERIAL = Serial()
RUNNERS: dict[str, Runner] = {"serial": SERIAL, "threads": Threads()}
_chosen: list[Runner] = []  # by whoever is within `using`, innermost last
_told: list[Progress] = []  # whoever is within `watching`, innermost last


def register_runner(name: str, runner: Runner) -> None:
    """Make a runner known by name."""
    if name in RUNNERS:
        raise OptionError(f"Expected a new name for a runner, got {name!r}, which is taken; choose another.")
    RUNNERS[name] = runner


@contextmanager
def using(runner: str | Runner) -> Iterator[None]:
    """Within this context the passes over rows of the whole process take this runner, or the one of this name."""
    if isinstance(runner, str) and runner not in RUNNERS:
        raise OptionError(f"Expected one of the runners {', '.join(RUNNERS)}, got {runner!r}; register it first.")
    _chosen.append(RUNNERS[runner] if isinstance(runner, str) else runner)
    try:
        yield
    finally:
        _chosen.pop()


@contextmanager
def watching(tell: Progress) -> Iterator[None]:
    """Within this context ``tell`` is called with (done, total) chunks of each pass of several, as they are done.

    >>> with watching(lambda done, total: print(done, "of", total)):
    ...     over_rows(lambda part: sum(range(10)[part]), operator.add, rows=10, chunk=5)
    1 of 2
    2 of 2
    45
    """
    _told.append(tell)
    try:
        yield
    finally:
        _told.pop()


def tell_of(done: int, total: int) -> None:
    """Say to whoever watches how much of a pass is done."""
    if total > 1 and _told:
        _told[-1](done, total)


def told_of(parts: Iterable[T], total: int) -> Iterator[T]:
    """These partial results, of so many, and whoever watches is told of each."""
    for done, part in enumerate(parts, start=1):
        yield part
        tell_of(done, total)


def over_rows(
    partial: Callable[[slice], T], merge: Callable[[T, T], T], rows: int, chunk: int, runner: Runner = SERIAL
) -> T:
    """One pass over so many rows, at most ``chunk`` of them at a time.

    >>> over_rows(lambda part: sum(range(10)[part]), operator.add, rows=10, chunk=3)
    45
    """
    return (_chosen[-1] if _chosen else runner).run(partial, merge, chunks(rows, chunk))


def chunks(rows: int, chunk: int) -> list[slice]:
    """Slices of at most ``chunk`` rows; a single empty one where there are no rows.

    >>> chunks(5, 2)
    [slice(0, 2, None), slice(2, 4, None), slice(4, 5, None)]
    """
    return [slice(start, min(start + chunk, rows)) for start in range(0, max(rows, 1), chunk)]


def each(partial: Callable[[slice], T], parts: Sequence[slice], runner: Runner) -> list[T]:
    """What the parts give, unmerged, in their order."""
    return runner.run(lambda part: [partial(part)], operator.iadd, parts)


def added(first: tuple[Any, ...], second: tuple[Any, ...]) -> tuple[Any, ...]:
    """The merge of partial results that are tuples: numbers and arrays are added, lists appended.

    >>> added((1, ["a"]), (2, ["b"]))
    (3, ['a', 'b'])
    """
    return tuple(map(operator.add, first, second))


class Room:
    """Arrays that are filled anew for every block of a chunk.

    Where freed memory goes back to the system at once, as on the workers of a Dask cluster, asking for it again takes
    longer than the arithmetic.
    """

    def __init__(self) -> None:
        self._kept: dict[str, NDArray[Any]] = {}

    def __call__(self, name: str, *shape: int, kind: Any = np.float64) -> NDArray[Any]:
        """An array of this shape with anything in it, the one of this name as far as that is large enough."""
        size = math.prod(shape)
        kept = self._kept.get(name)
        if kept is None or len(kept) < size:
            kept = self._kept[name] = np.empty(size, kind)
        return kept[:size].reshape(shape)


def workers() -> int:
    """How many cores this process may use."""
    return len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1


def one_blas_thread() -> AbstractContextManager[Any]:
    """Within this context BLAS calls use one thread.

    BLAS threads of their own fight with ours (and with other processes) for the cores; on small blocks that costs more
    than it brings, up to a factor of twenty on a busy machine.
    """
    context: AbstractContextManager[Any] = _blas().limit(limits=1, user_api="blas")
    return context


@cache
def _blas() -> Any:
    from threadpoolctl import ThreadpoolController

    return ThreadpoolController()
