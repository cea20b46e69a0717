"""Passes over rows by the workers of a Dask cluster (``distributed``), a user's own or one at an address.

Neighbouring chunks go to a worker as one task, which merges what they give; what tasks give is merged by further
tasks, two and two, so that one result comes back. The same rows go to the same worker in every pass, unless it is gone
or behind, since it has decoded them already. What is sent is the pass itself with its parameters: rows on the disk
(:meth:`rocerf.TrainingSet.from_parquet`) go as a way to their files, and every worker decodes the row groups that it is
asked for, once. Parameters that are large are scattered to the workers once a pass. A pass that holds a large array, as
passes over rows in memory do, stays in this process, in threads.

A worker that is lost costs its tasks, which others do again. A scheduler that is gone is an error.
"""

from __future__ import annotations

import io
from collections.abc import Callable, Sequence
from functools import reduce
from itertools import count
from threading import Event
from typing import Any, TypeVar

import numpy as np

from rocerf.errors import MissingExtraError, OptionError, RunnerError
from rocerf.passes import Threads, tell_of

T = TypeVar("T")

#: Bytes of an array from which a pass is not sent.
LARGE = 2**20

#: Bytes of a pass from which it is scattered to all workers and not sent with each task.
SCATTERED = 2**15

#: Tasks for each thread of the workers: enough that a slow one holds nobody up.
TASKS_A_THREAD = 4

#: Seconds without a worker after which a pass is given up, and times that a task may take its worker with it.
PATIENCE, RETRIES = 30.0, 3

#: Seconds between looks at who works on a pass, and without anybody who does, though there are workers, after which it
#: is sent again.
LOOK, STRANDED = 2.0, 10.0


def distributed() -> Any:
    """The package, or an error that says how to install it."""
    try:
        import distributed as package
    except ImportError:
        raise MissingExtraError("distributed", "scale", "running on a Dask cluster") from None
    return package


class DaskRunner:
    """Sends passes to the workers that a ``distributed.Client`` knows."""

    def __init__(self, client: Any) -> None:
        self.client = client

    @classmethod
    def at(cls, address: str) -> DaskRunner:
        """Of the scheduler at this address."""
        package = distributed()
        try:
            return cls(package.Client(address, timeout=PATIENCE, set_as_default=False))
        except (OSError, TimeoutError, ValueError) as error:
            raise OptionError(
                f"Expected a Dask scheduler at {address!r}, got no answer ({error}); start it, or check the address."
            ) from error

    def run(self, partial: Callable[[slice], T], merge: Callable[[T, T], T], chunks: Sequence[slice]) -> T:
        """As :meth:`rocerf.passes.Runner.run`."""
        sent = packed((partial, merge))
        if sent is None or len(chunks) == 1:
            return Threads().run(partial, merge, chunks)
        try:
            found: T = self._finished(sent, chunks)
        except (Exception, distributed().CancelledError) as error:
            if self.client.status == "running" and not _lost(error):
                raise
            raise RunnerError(
                f"Expected the Dask cluster to finish a pass over the rows, got {type(error).__name__} "
                f"({' '.join(str(error).split())[:200]}); nothing was computed: see to scheduler and workers, and run "
                "this again."
            ) from error
        return found

    def _finished(self, sent: bytes, chunks: Sequence[slice]) -> Any:
        """Once more, with its parameters in every task, if a pass was lost with its workers."""
        package = distributed()
        gone = package.CancelledError, package.comm.CommClosedError, _StrandedError
        for attempt in range(RETRIES):
            try:
                return self._sent(sent, chunks, scattered=attempt == 0 and len(sent) >= SCATTERED)
            except gone:
                if self.client.status != "running" or attempt + 1 == RETRIES:
                    raise
        raise AssertionError

    def _sent(self, sent: bytes, chunks: Sequence[slice], *, scattered: bool) -> Any:
        client = self.client
        if not client.nthreads():
            client.wait_for_workers(1, timeout=PATIENCE)
        threads = [worker for worker, count_ in sorted(client.nthreads().items()) for _ in range(count_)]
        size = max(1, -(-len(chunks) // (TASKS_A_THREAD * len(threads))))
        options = {"pure": False, "retries": RETRIES}
        # To all workers, so that no one of them takes it with it.
        what = client.scatter(sent, broadcast=True, hash=False) if scattered else sent
        level = []
        for at in range(0, len(chunks), size):
            own = threads[at * len(threads) // len(chunks)]
            task = client.submit(
                _part, what, chunks[at : at + size], workers=[own], allow_other_workers=True, **options
            )
            level.append(task)
        done, total, keys = count(1), len(level), {task.key for task in level}
        for task in level:
            task.add_done_callback(lambda _: tell_of(next(done), total))
        while len(level) > 1:
            pairs = [level[at : at + 2] for at in range(0, len(level), 2)]
            level = [client.submit(_merged, what, *pair, **options) if len(pair) > 1 else pair[0] for pair in pairs]
            keys |= {task.key for task in level}
        return self._waited_for(level[0], keys)

    def _waited_for(self, task: Any, keys: set[Any]) -> Any:
        """The result of the last of these tasks, as long as somebody works on one of them.

        Tasks that wait for a worker while there is none wait for that very one, and for ever if others take its place.
        """
        idle, done = 0.0, Event()
        task.add_done_callback(lambda _: done.set())
        while not done.wait(LOOK):
            busy = {key for own in self.client.processing().values() for key in own}
            idle = idle + LOOK if busy.isdisjoint(keys) else 0.0
            if idle >= (STRANDED if self.client.nthreads() else PATIENCE):
                raise _StrandedError(f"no worker has taken up the pass for {idle:.0f} seconds")
        return task.result()


def _lost(error: BaseException) -> bool:
    """Whether an error is about the cluster, and not from the pass itself."""
    known = isinstance(error, TimeoutError | _StrandedError)
    return known or type(error).__module__.startswith(("distributed", "asyncio", "tornado"))


def _part(sent: bytes, chunks: Sequence[slice]) -> Any:
    from cloudpickle import loads

    from rocerf.passes import one_blas_thread

    partial, merge = loads(sent)
    with one_blas_thread():
        return reduce(merge, map(partial, chunks))


def _merged(sent: bytes, one: Any, two: Any) -> Any:
    from cloudpickle import loads

    return loads(sent)[1](one, two)


class _StrandedError(Exception):
    """A pass that nobody works on."""


class _TooLargeError(Exception):
    """An array that should not be sent."""


def packed(what: Any) -> bytes | None:
    """What is sent to a worker, pickled; None if there is a large array in it, or something that cannot be sent."""
    import pickle

    from cloudpickle import CloudPickler

    class Pickler(CloudPickler):  # type: ignore[misc]
        def reducer_override(self, found: Any) -> Any:
            own_way = getattr(found, "source", None) is not None  # an array that is pickled as a way to its table
            if isinstance(found, np.ndarray) and found.nbytes > LARGE and not own_way:
                raise _TooLargeError
            return super().reducer_override(found)

    out = io.BytesIO()
    try:
        Pickler(out).dump(what)
    except (_TooLargeError, pickle.PicklingError, TypeError, AttributeError):
        return None
    return out.getvalue()
