"""Work cut into jobs that are done once: each a pure function of its inputs, kept in a file of its own.

A job's hash covers its inputs, the hashes of the jobs it needs and the version of rocerf, so a file is taken over
exactly when it would come out the same. Files are written beside and renamed: an interrupted run leaves finished jobs
and nothing else. A job that fails is recorded with its reason; the others go on, and the next run tries it again.
"""

from __future__ import annotations

import hashlib
import json
import math
import multiprocessing
import os
import signal
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from concurrent.futures import FIRST_COMPLETED, Future, ProcessPoolExecutor, wait
from concurrent.futures.process import BrokenProcessPool
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from rocerf.errors import OptionError, RocerfError
from rocerf.version import __version__

#: Changes when what a job of the same inputs computes changes.
FORMAT = "rocerf-job/1"

#: A job whose worker died is tried so often: another job may have been the one that took the memory.
ATTEMPTS = 2

Arrays = Mapping[str, NDArray[Any]]


@dataclass(frozen=True)
class Job:
    """One piece of work: its name (also its file), its kind, plain inputs, and the names of the jobs it needs.

    ``group`` names jobs that take about as long.
    """

    name: str
    kind: str
    inputs: Mapping[str, Any]
    needs: tuple[str, ...] = ()
    group: str = ""


#: What a job computes: plain values for JSON, and arrays. It may read what it needs from the folder.
Compute = Callable[[Job, "JobFolder"], tuple[dict[str, Any], Arrays]]


@dataclass(frozen=True)
class Standing:
    """How a run stands: jobs done and in all, the one that ended last, and an estimate of the seconds left."""

    done: int
    total: int
    failed: int
    last: str
    seconds_left: float | None

    def __str__(self) -> str:
        left = "" if self.seconds_left is None else f", about {_duration(self.seconds_left)} left"
        failed = f", {self.failed} failed" if self.failed else ""
        return f"{self.done} of {self.total} jobs{failed}{left}; last: {self.last}"


@dataclass
class Outcome:
    """What became of a plan: jobs run now, taken over from earlier, and failed with their reasons."""

    ran: list[str] = field(default_factory=list)
    kept: list[str] = field(default_factory=list)
    failed: dict[str, str] = field(default_factory=dict)

    @property
    def finished(self) -> set[str]:
        """Jobs that have a result."""
        return {*self.ran, *self.kept}


class JobFolder:
    """The files of finished jobs; a result counts only with the hash of the plan at hand."""

    def __init__(self, path: Path) -> None:
        self.path = path

    def record_path(self, name: str) -> Path:
        """Where a job's record is."""
        return self.path / f"{name}.json"

    def arrays_path(self, name: str) -> Path:
        """Where its arrays are."""
        return self.path / f"{name}.npz"

    def side_path(self, name: str) -> Path:
        """Where a job may keep one more file, to be written by :meth:`replace`."""
        return self.path / f"{name}.model.npz"

    def record(self, name: str) -> dict[str, Any] | None:
        """A job's record, if there is a readable one."""
        try:
            record = json.loads(self.record_path(name).read_text("utf-8"))
        except (OSError, ValueError):
            return None
        return record if isinstance(record, dict) else None

    def result(self, name: str) -> dict[str, Any]:
        """What a finished job found."""
        result: dict[str, Any] = json.loads(self.record_path(name).read_text("utf-8"))["result"]
        return result

    def arrays(self, name: str) -> dict[str, NDArray[Any]]:
        """The arrays of a finished job."""
        with np.load(self.arrays_path(name), allow_pickle=False) as file:
            return {key: file[key] for key in file.files}

    def is_done(self, name: str, digest: str) -> bool:
        """Whether the job was finished with this hash."""
        record = self.record(name)
        return record is not None and record.get("hash") == digest and record.get("status") == "done"

    def replace_text(self, path: Path, text: str) -> None:
        """The same for a text."""
        self.replace(path, lambda beside: _write_text(beside, text))

    def replace(self, path: Path, write: Callable[[Path], None]) -> None:
        """Let ``write`` fill a file beside and put it in place at once."""
        beside = path.with_name(f".{os.getpid()}-{path.name}")
        try:
            write(beside)
            os.replace(beside, path)
        finally:
            beside.unlink(missing_ok=True)

    def keep(self, job: Job, digest: str, seconds: float, result: dict[str, Any], arrays: Arrays) -> None:
        """Write a finished job, arrays first: the record says that all is there."""
        if arrays:

            def write(path: Path) -> None:
                with path.open("wb") as file:
                    np.savez(file, **arrays)  # type: ignore[arg-type]

            self.replace(self.arrays_path(job.name), write)
        self._write_record(job, {"hash": digest, "status": "done", "seconds": seconds, "result": _plain(result)})

    def keep_failure(self, job: Job, digest: str, reason: str) -> None:
        """Write down why a job has no result."""
        self._write_record(job, {"hash": digest, "status": "failed", "reason": reason})

    def _write_record(self, job: Job, more: dict[str, Any]) -> None:
        document = {"job": job.name, "kind": job.kind, "inputs": dict(job.inputs), "needs": list(job.needs), **more}
        text = json.dumps(document, indent=1, allow_nan=False)
        self.replace_text(self.record_path(job.name), text)


class Plan:
    """Jobs in an order in which each comes after those it needs, with their hashes."""

    def __init__(self, jobs: Sequence[Job]) -> None:
        self.jobs: dict[str, Job] = {}
        self.hashes: dict[str, str] = {}
        for job in jobs:
            missing = [name for name in job.needs if name not in self.jobs]
            if job.name in self.jobs or missing:
                raise OptionError(f"Expected each job once and after {missing or 'others'}, got {job.name!r}.")
            self.jobs[job.name] = job
            needed = [self.hashes[name] for name in job.needs]
            content = json.dumps([FORMAT, __version__, job.kind, dict(job.inputs), needed], sort_keys=True)
            self.hashes[job.name] = hashlib.sha256(content.encode()).hexdigest()

    def only(self, kinds: Sequence[str]) -> Plan:
        """The jobs of these kinds and all that they need; their hashes stay."""
        wanted: set[str] = set()
        for job in reversed(self.jobs.values()):
            if job.kind in kinds or job.name in wanted:
                wanted.update((job.name, *job.needs))
        return Plan([job for job in self if job.name in wanted])

    def __len__(self) -> int:
        return len(self.jobs)

    def __iter__(self) -> Iterator[Job]:
        return iter(self.jobs.values())


class _Clock:
    """Estimates the time left from finished jobs: of the same group, else of the same kind, else of any."""

    def __init__(self, plan: Plan, folder: JobFolder, workers: int) -> None:
        self.plan, self.folder, self.workers = plan, folder, workers
        self.times: dict[str, list[float]] = {}

    def note(self, job: Job, seconds: float) -> None:
        for key in (f"{job.kind}/{job.group}", job.kind, ""):
            self.times.setdefault(key, []).append(seconds)

    def left(self, waiting: Sequence[str]) -> float | None:
        if not self.times:
            return None
        total = 0.0
        for name in waiting:
            job = self.plan.jobs[name]
            keys = (f"{job.kind}/{job.group}", job.kind, "")
            known = next(self.times[key] for key in keys if key in self.times)
            total += sum(known) / len(known)
        return total / min(self.workers, max(1, len(waiting)))


class _Run:
    """The state of one run: what waits, what is done, what failed."""

    def __init__(
        self, plan: Plan, folder: JobFolder, workers: int, progress: Callable[[Standing], None] | None
    ) -> None:
        self.plan, self.folder, self.progress = plan, folder, progress
        self.outcome = Outcome()
        self.waiting: list[str] = []
        self.clock = _Clock(plan, folder, workers)
        for name, job in plan.jobs.items():
            if folder.is_done(name, plan.hashes[name]):
                self.outcome.kept.append(name)
                record = folder.record(name)
                self.clock.note(job, float(record["seconds"]) if record else 0.0)
            else:
                self.waiting.append(name)

    def ready(self, running: Sequence[str] = ()) -> list[str]:
        """Waiting jobs whose needs are there; those that can never run are failed on the way."""
        found = []
        for name in list(self.waiting):
            needs = self.plan.jobs[name].needs
            lost = [need for need in needs if need in self.outcome.failed]
            if lost:
                self.fail(name, f"needs {lost[0]}, which failed")
            elif name not in running and self.outcome.finished.issuperset(needs):
                found.append(name)
        return found

    def finish(self, name: str, seconds: float) -> None:
        self.waiting.remove(name)
        self.outcome.ran.append(name)
        self.clock.note(self.plan.jobs[name], seconds)
        self._tell(name)

    def fail(self, name: str, reason: str) -> None:
        self.waiting.remove(name)
        self.outcome.failed[name] = reason
        self.folder.keep_failure(self.plan.jobs[name], self.plan.hashes[name], reason)
        self._tell(f"{name} failed")

    def _tell(self, last: str) -> None:
        if self.progress is not None:
            total, failed = len(self.plan), len(self.outcome.failed)
            done = total - len(self.waiting) - failed
            self.progress(Standing(done, total, failed, last, self.clock.left(self.waiting)))


def run_jobs(
    plan: Plan,
    folder: JobFolder,
    compute: Compute,
    *,
    workers: int = 1,
    progress: Callable[[Standing], None] | None = None,
) -> Outcome:
    """Do what is not yet done; with several workers in processes of their own, with one here.

    KeyboardInterrupt passes through after the workers were stopped; finished jobs stay.
    """
    folder.path.mkdir(parents=True, exist_ok=True)
    run = _Run(plan, folder, workers, progress)
    if workers > 1 and len(run.waiting) > 1:
        _run_in_processes(run, compute, workers)
    else:
        while ready := run.ready():
            _settle(run, ready[0], perform(folder, compute, plan.jobs[ready[0]], plan.hashes[ready[0]]))
    return run.outcome


def perform(folder: JobFolder, compute: Compute, job: Job, digest: str) -> tuple[float, str]:
    """Do one job and keep it: the seconds it took, and the reason if it failed."""
    start = time.perf_counter()
    try:
        result, arrays = compute(job, folder)
        seconds = time.perf_counter() - start
        folder.keep(job, digest, seconds, result, arrays)
    except Exception as error:  # one method's mistake must not cost the others' hours
        if os.environ.get("ROCERF_DEBUG"):
            raise
        said = str(error) if isinstance(error, RocerfError) else f"{type(error).__name__}: {error}"
        return time.perf_counter() - start, said
    return seconds, ""


def _settle(run: _Run, name: str, ended: tuple[float, str]) -> None:
    seconds, reason = ended
    if reason:
        run.fail(name, reason)
    else:
        run.finish(name, seconds)


def _run_in_processes(run: _Run, compute: Compute, workers: int) -> None:
    lost: dict[str, int] = {}
    while run.ready():
        broken = _run_one_pool(run, compute, workers)
        for name in broken:
            lost[name] = lost.get(name, 0) + 1
            if lost[name] >= ATTEMPTS:
                run.fail(name, "the process that worked on it ended abruptly, perhaps for want of memory")
        workers = max(1, workers // 2) if broken else workers


def _run_one_pool(run: _Run, compute: Compute, workers: int) -> list[str]:
    """Run until nothing is ready, or until a process died; the jobs that were running then."""
    before = set(multiprocessing.active_children())
    pool = ProcessPoolExecutor(workers, multiprocessing.get_context("spawn"), initializer=_quiet_worker)
    running: dict[Future[tuple[float, str]], str] = {}
    try:
        while True:
            for name in run.ready(list(running.values()))[: workers - len(running)]:
                job, digest = run.plan.jobs[name], run.plan.hashes[name]
                running[pool.submit(perform, run.folder, compute, job, digest)] = name
            if not running:
                pool.shutdown()
                return []
            for future in wait(running, return_when=FIRST_COMPLETED).done:
                _settle(run, running[future], future.result())
                del running[future]
    except BrokenProcessPool:
        pool.shutdown(wait=False, cancel_futures=True)
        return list(running.values())
    except BaseException:
        for child in set(multiprocessing.active_children()) - before:
            child.terminate()
        pool.shutdown(wait=False, cancel_futures=True)
        raise


def _quiet_worker() -> None:
    """One thread a process: the processes are the parallelism. Ctrl-C is for the parent, which stops us."""
    signal.signal(signal.SIGINT, signal.SIG_IGN)
    os.environ["OMP_NUM_THREADS"] = "1"
    from threadpoolctl import threadpool_limits

    threadpool_limits(1)
    try:
        import torch
    except ImportError:
        return
    torch.set_num_threads(1)


def _plain(value: Any) -> Any:
    """Values that JSON has: NumPy's numbers made Python's, what is not finite made null."""
    if isinstance(value, Mapping):
        return {str(key): _plain(entry) for key, entry in value.items()}
    if isinstance(value, list | tuple | np.ndarray):
        return [_plain(entry) for entry in value]
    if isinstance(value, np.generic):
        value = value.item()
    if isinstance(value, float) and not math.isfinite(value):
        return None
    return value


def _write_text(path: Path, text: str) -> None:
    path.write_text(text, "utf-8")


def _duration(seconds: float) -> str:
    """In words.

    >>> _duration(50), _duration(200), _duration(8000)
    ('50 s', '3 min', '2 h 13 min')
    """
    if seconds < 90:
        return f"{seconds:.0f} s"
    minutes = round(seconds / 60)
    return f"{minutes} min" if minutes < 90 else f"{minutes // 60} h {minutes % 60:02d} min"
