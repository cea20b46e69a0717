"""Work cut into jobs that are done once: each a pure function of its inputs, kept in a file of its own.

A job's hash covers its kind and inputs, the hashes of the jobs it needs, the version of rocerf and :data:`FORMAT`; a
file with the same hash is taken over. Code that was changed without changing either number is not noticed: remove the
folder then. Files are written beside and renamed: an interrupted run leaves finished jobs and nothing else. A record
lists the sizes of the files that belong to it; if one is lost or cut short and a job still to be done needs it, it is
made again. A job that fails is recorded with its reason; the others go on, and the next run tries it again.

joblib was tried and not taken: where one of its workers dies, whatever the others were doing is lost with it; Ctrl-C
while workers start prints their traces; and `joblib.Memory` knows neither jobs that need others nor files to be read by
people, and forgets when code is reformatted.
"""

from __future__ import annotations

import hashlib
import io
import json
import math
import os
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from rocerf.errors import OptionError, RocerfError
from rocerf.reproduction.workers import WorkerPool, interruptible
from rocerf.storage.whole_file import write_bytes, write_text
from rocerf.version import __version__

#: Changes when what a job of the same inputs computes changes.
FORMAT = "rocerf-job/2"

#: A job whose worker died is tried so often: another job may have been the one that took the memory.
ATTEMPTS = 2

Arrays = Mapping[str, NDArray[Any]]

#: What a job found: plain values for JSON, and arrays.
JobFound = tuple[dict[str, Any], Arrays]


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


#: What a job computes; it may read what it needs from the folder.
Compute = Callable[[Job, "JobFolder"], JobFound]


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
class PlanOutcome:
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
        """Where a job may keep one more file, to be put in place at once."""
        return self.path / f"{name}.model.npz"

    def record(self, name: str) -> dict[str, Any]:
        """A job's record, empty if there is no readable one."""
        try:
            record = json.loads(self.record_path(name).read_text("utf-8"))
        except (OSError, ValueError):
            return {}
        return record if isinstance(record, dict) else {}

    def result(self, name: str) -> dict[str, Any]:
        """What a finished job found."""
        result: dict[str, Any] = self.record(name)["result"]
        return result

    def arrays(self, name: str) -> dict[str, NDArray[Any]]:
        """The arrays of a finished job."""
        with np.load(self.arrays_path(name), allow_pickle=False) as file:
            return {key: file[key] for key in file.files}

    def is_done(self, name: str, digest: str) -> bool:
        """Whether the job was finished with this hash: its result is in the record."""
        record = self.record(name)
        finished = (record.get("hash"), record.get("status")) == (digest, "done")
        return finished and isinstance(record.get("result"), dict)

    def is_whole(self, name: str) -> bool:
        """Whether the arrays and further files of a finished job are there, as long as they were written."""
        files = self.record(name).get("files")
        if not isinstance(files, dict):
            return False
        return all((path := self.path / file).is_file() and path.stat().st_size == size for file, size in files.items())

    def keep(self, job: Job, digest: str, seconds: float, result: dict[str, Any], arrays: Arrays) -> None:
        """Write a finished job, arrays first: the record says that all is there."""
        if arrays:
            packed = io.BytesIO()
            np.savez(packed, **arrays)  # type: ignore[arg-type]
            write_bytes(self.arrays_path(job.name), packed.getvalue())
        else:
            self.arrays_path(job.name).unlink(missing_ok=True)  # those of other inputs
        written = [path for path in (self.arrays_path(job.name), self.side_path(job.name)) if path.is_file()]
        files = {path.name: path.stat().st_size for path in written}
        done = {"hash": digest, "status": "done", "seconds": seconds, "files": files, "result": _plain(result)}
        self._write_record(job, done)

    def keep_failure(self, job: Job, digest: str, reason: str) -> None:
        """Write down why a job has no result."""
        self._write_record(job, {"hash": digest, "status": "failed", "reason": reason})

    def _write_record(self, job: Job, more: dict[str, Any]) -> None:
        document = {"job": job.name, "kind": job.kind, "inputs": dict(job.inputs), "needs": list(job.needs), **more}
        write_text(self.record_path(job.name), json.dumps(document, indent=1, allow_nan=False))


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

    def __iter__(self) -> Iterator[Job]:
        return iter(self.jobs.values())


class _Queue:
    """The state of one run: what waits, what is done, what failed, and how long jobs take."""

    def __init__(
        self,
        plan: Plan,
        folder: JobFolder,
        workers: int,
        progress: Callable[[Standing], None] | None,
        outcome: PlanOutcome,
    ) -> None:
        self.plan, self.folder, self.workers, self.progress, self.outcome = plan, folder, workers, progress, outcome
        self.times: dict[str, list[float]] = {}
        waiting = _to_do(plan, folder)
        self.waiting = [name for name in plan.jobs if name in waiting]
        for name in (name for name in plan.jobs if name not in waiting):
            outcome.kept.append(name)
            seconds = folder.record(name).get("seconds")
            self._note(name, float(seconds) if isinstance(seconds, int | float) else 0.0)

    def ready(self, running: Sequence[str] = ()) -> list[str]:
        """Waiting jobs whose needs are there; those that can never run are failed on the way."""
        found = []
        for name in list(self.waiting):
            needs = self.plan.jobs[name].needs
            lost = [need for need in needs if need in self.outcome.failed]
            if lost:
                self.settle(name, reason=f"needs {lost[0]}, which failed")
            elif name not in running and self.outcome.finished.issuperset(needs):
                found.append(name)
        return found

    def settle(self, name: str, seconds: float = 0.0, reason: str = "") -> None:
        """Note that a job ended, with the reason if it failed, and say how the run stands."""
        self.waiting.remove(name)
        if reason:
            self.outcome.failed[name] = reason
            self.folder.keep_failure(self.plan.jobs[name], self.plan.hashes[name], reason)
        else:
            self.outcome.ran.append(name)
            self._note(name, seconds)
        if self.progress is not None:
            total, failed = len(self.plan.jobs), len(self.outcome.failed)
            done, last = total - len(self.waiting) - failed, f"{name} failed" if reason else name
            self.progress(Standing(done, total, failed, last, self._seconds_left()))

    def _kinds(self, name: str) -> tuple[str, ...]:
        """Jobs that take about as long, the most alike first: of the same group, of the same kind, any."""
        job = self.plan.jobs[name]
        return f"{job.kind}/{job.group}", job.kind, ""

    def _note(self, name: str, seconds: float) -> None:
        for kind in self._kinds(name):
            self.times.setdefault(kind, []).append(seconds)

    def _seconds_left(self) -> float | None:
        if not self.times:
            return None
        known = [next(self.times[kind] for kind in self._kinds(name) if kind in self.times) for name in self.waiting]
        total = sum(sum(times) / len(times) for times in known)
        return total / min(self.workers, max(1, len(self.waiting)))


def _to_do(plan: Plan, folder: JobFolder) -> set[str]:
    """Jobs without a result, and finished ones whose files are lost while a job to be done needs them.

    Files that nobody needs any more may be missing: retrained networks are large, what was measured with them is not.
    """
    waiting: set[str] = set()
    needed: set[str] = set()
    for job in reversed(plan.jobs.values()):
        whole = job.name not in needed or folder.is_whole(job.name)
        if not (whole and folder.is_done(job.name, plan.hashes[job.name])):
            waiting.add(job.name)
            needed.update(job.needs)
    return waiting


def run_jobs(
    plan: Plan,
    folder: JobFolder,
    compute: Compute,
    *,
    workers: int = 1,
    progress: Callable[[Standing], None] | None = None,
    outcome: PlanOutcome | None = None,
) -> PlanOutcome:
    """Do what is not yet done; with several workers in processes of their own, with one here.

    KeyboardInterrupt passes through after the workers were stopped; finished jobs stay. ``outcome`` is filled as jobs
    end, for those who want to know how far an interrupted run came.
    """
    folder.path.mkdir(parents=True, exist_ok=True)
    queue = _Queue(plan, folder, workers, progress, PlanOutcome() if outcome is None else outcome)
    if workers > 1 and len(queue.waiting) > 1:
        _run_in_processes(queue, compute, workers)
    else:
        while ready := queue.ready():
            queue.settle(ready[0], *perform(folder, compute, plan.jobs[ready[0]], plan.hashes[ready[0]]))
    return queue.outcome


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


def _run_in_processes(queue: _Queue, compute: Compute, workers: int) -> None:
    """As many jobs at a time as there are workers; fewer of them after a process died, perhaps for want of memory."""
    lost: dict[str, int] = {}
    with interruptible() as check, WorkerPool(_attempt, workers) as pool:
        while True:
            for name in queue.ready(pool.running)[: max(0, pool.free)]:
                pool.submit(name, (queue.folder, compute, queue.plan.jobs[name], queue.plan.hashes[name]))
            if not pool.running:
                return
            for name, ended, died in pool.ended():
                if isinstance(ended, Exception):
                    raise ended
                if not died:
                    queue.settle(name, *ended)
                    continue
                lost[name] = lost.get(name, 0) + 1
                pool.size = max(1, pool.size // 2)
                if lost[name] >= ATTEMPTS:
                    said = "the process that worked on it ended abruptly, perhaps for want of memory"
                    queue.settle(name, reason=said)
            check()


def _attempt(folder: JobFolder, compute: Compute, job: Job, digest: str) -> tuple[float, str] | Exception:
    """Do one job in a worker; what is raised there (only for debugging) is raised by the parent."""
    try:
        return perform(folder, compute, job, digest)
    except Exception as error:
        import traceback

        traceback.print_exc()
        return error


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


def _duration(seconds: float) -> str:
    """In words.

    >>> _duration(50), _duration(200), _duration(8000)
    ('50 s', '3 min', '2 h 13 min')
    """
    if seconds < 90:
        return f"{seconds:.0f} s"
    minutes = round(seconds / 60)
    return f"{minutes} min" if minutes < 90 else f"{minutes // 60} h {minutes % 60:02d} min"
