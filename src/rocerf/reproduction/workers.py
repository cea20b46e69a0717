"""A few processes that do tasks, and that never outlive an interruption.

Each worker has a pipe of its own, so a worker that dies (for want of memory, say) costs its own task only, and there is
no thread to wait for when the interpreter ends. Ctrl-C reaches every process of a terminal at once: workers are born
deaf to it, and the parent notes it and acts between two tasks (:func:`interruptible`), never in the middle of starting
a process or of writing a file. Stopping means terminate, and kill after a grace period. A worker whose parent is gone
finds its pipe closed and ends.
"""

from __future__ import annotations

import multiprocessing
import os
import signal
import threading
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from multiprocessing import resource_tracker
from multiprocessing.connection import Connection, wait
from multiprocessing.context import SpawnProcess
from typing import Any

#: Seconds between two looks at whether Ctrl-C was pressed.
LOOK = 0.2

#: Environment variables in which numerical libraries look for the number of their threads.
THREADS = ("OMP_NUM_THREADS", "OPENBLAS_NUM_THREADS", "MKL_NUM_THREADS")

#: Seconds that a terminated worker gets before it is killed.
GRACE = 3.0


@dataclass(eq=False)
class _Worker:
    process: SpawnProcess
    pipe: Connection
    name: str = ""
    kind: str = ""


class WorkerPool:
    """At most ``size`` processes, started when there is work; ``function(*arguments)`` is what they do.

    Used as a context: at its end every process is gone, idle ones by themselves, busy ones by force.
    """

    def __init__(self, function: Callable[..., Any], size: int) -> None:
        self.function, self.size = function, size
        self._workers: list[_Worker] = []

    def __enter__(self) -> WorkerPool:
        return self

    def __exit__(self, *details: object) -> None:
        self.stop()

    @property
    def running(self) -> list[str]:
        """Names of the tasks that are being done."""
        return [worker.name for worker in self._workers if worker.name]

    @property
    def free(self) -> int:
        """How many more tasks can be taken now."""
        return self.size - len(self.running)

    def submit(self, name: str, arguments: tuple[Any, ...], kind: str = "") -> None:
        """Give a task to an idle worker that last did the same kind, to a new one, or else to any idle one.

        What is prepared for a kind (a place on a GPU, say) is then prepared in few processes.
        """
        idle = [worker for worker in self._workers if not worker.name]
        alike = next((worker for worker in idle if worker.kind == kind), None)
        full = len(self._workers) >= self.size and bool(idle)
        worker = alike or (idle[0] if full else self._start())
        worker.name, worker.kind = name, kind
        with suppress(OSError):  # one that has just died is found by `ended`, its task lost
            worker.pipe.send(arguments)

    def ended(self) -> list[tuple[str, Any, bool]]:
        """Tasks that ended within a moment: name, result, and whether the process died instead of answering."""
        busy = {worker.pipe: worker for worker in self._workers if worker.name}
        found = []
        for pipe in wait(list(busy), timeout=LOOK):
            worker = busy[pipe]  # type: ignore[index]
            try:
                result, died = worker.pipe.recv(), False
            except (EOFError, OSError):
                result, died = None, True
                self._workers.remove(worker)
                _end([worker])
            found.append((worker.name, result, died))
            worker.name = ""
        return found

    def stop(self) -> None:
        """End every worker; a busy one is not waited for."""
        workers, self._workers = self._workers, []
        _end(workers)

    def _start(self) -> _Worker:
        context = multiprocessing.get_context("spawn")
        here, there = context.Pipe()
        process = context.Process(target=_work, args=(there, self.function), daemon=True)
        with _deaf_children(), _single_threaded_children():
            process.start()
        there.close()  # so that the end of the worker is the end of the pipe
        self._workers.append(_Worker(process, here))
        return self._workers[-1]


def _end(workers: Sequence[_Worker]) -> None:
    for worker in workers:
        worker.pipe.close()
        if worker.name:
            worker.process.terminate()
    until = time.monotonic() + GRACE
    for worker in workers:
        worker.process.join(max(0.0, until - time.monotonic()))
        if worker.process.is_alive():
            worker.process.kill()
            worker.process.join(GRACE)


def _work(pipe: Connection, function: Callable[..., Any]) -> None:
    """What a worker does until its pipe is closed."""
    _quiet()
    while True:
        try:
            arguments = pipe.recv()
        except (EOFError, OSError):
            return
        result = function(*arguments)
        try:
            pipe.send(result)
        except OSError:  # nobody is there any more
            return


def _quiet() -> None:
    """One thread a process: the processes are the parallelism. Ctrl-C is for the parent, which stops us."""
    signal.signal(signal.SIGINT, signal.SIG_IGN)
    from threadpoolctl import threadpool_limits

    threadpool_limits(1)
    try:
        import torch
    except ImportError:
        return
    torch.set_num_threads(1)


@contextmanager
def _single_threaded_children() -> Iterator[None]:
    """Numerical libraries of processes started in here have one thread from the first import on."""
    before = {name: os.environ.get(name) for name in THREADS}
    os.environ.update(dict.fromkeys(THREADS, "1"))
    try:
        yield
    finally:
        for name, value in before.items():
            if value is None:
                del os.environ[name]
            else:
                os.environ[name] = value


@contextmanager
def _deaf_children() -> Iterator[None]:
    """Processes started in here do not hear Ctrl-C, not even while they import; the parent hears it afterwards."""
    if not hasattr(signal, "pthread_sigmask"):
        yield
        return
    resource_tracker.ensure_running()  # it would unblock the signal when it is started by the first process
    before = signal.pthread_sigmask(signal.SIG_BLOCK, {signal.SIGINT})
    try:
        yield
    finally:
        signal.pthread_sigmask(signal.SIG_SETMASK, before)


@contextmanager
def interruptible() -> Iterator[Callable[[], None]]:
    """Hold Ctrl-C back; the function that is yielded raises KeyboardInterrupt if it was pressed.

    A KeyboardInterrupt that comes at any moment can be lost (raised in a destructor, it is printed and ignored) or
    leave a process half started. Pressed a second time, it is raised at once. Outside the main thread, where signals
    never arrive, this does nothing.
    """
    pressed = threading.Event()

    def note(_number: int, _frame: object) -> None:
        if pressed.is_set():
            raise KeyboardInterrupt
        pressed.set()

    def check() -> None:
        if pressed.is_set():
            raise KeyboardInterrupt

    before = signal.getsignal(signal.SIGINT)
    if threading.current_thread() is not threading.main_thread() or before is not signal.default_int_handler:
        yield check  # somebody else's way of handling it is left alone
        return
    signal.signal(signal.SIGINT, note)
    try:
        yield check
    finally:
        signal.signal(signal.SIGINT, before)
    check()
