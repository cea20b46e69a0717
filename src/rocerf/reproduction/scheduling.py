"""How the jobs of a plan are done: what waits, who works on what, and how the run stands.

With several workers the jobs that most work hangs on come first (the longest way through what still needs them), so
that no long one is left for the end. Jobs that share one GPU can be limited to a few at a time; the other workers do
other jobs meanwhile. A job that fails is recorded with its reason; the others go on, and the next run tries it again.

joblib was tried and not taken: where one of its workers dies, whatever the others were doing is lost with it; Ctrl-C
while workers start prints their traces; and `joblib.Memory` knows neither jobs that need others nor files to be read by
people, and forgets when code is reformatted.
"""

from __future__ import annotations

import os
import sys
import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field

from rocerf.errors import RocerfError
from rocerf.reproduction.jobs import Compute, Job, JobFolder, Plan
from rocerf.reproduction.provenance import now, threads_in_use
from rocerf.reproduction.workers import WorkerPool, interruptible

#: A job whose worker died is tried so often: another job may have been the one that took the memory.
ATTEMPTS = 2


@dataclass(frozen=True)
class Order:
    """Which of the jobs that could be done comes next.

    ``expected`` estimates a job's seconds (only ratios count). Of jobs that are ``limited``, at most ``at_a_time`` are
    done at once; None is no limit.
    """

    expected: Callable[[Job], float] = lambda _job: 1.0
    limited: Callable[[Job], bool] = lambda _job: False
    at_a_time: int | None = None

    def ranks(self, plan: Plan) -> dict[str, float]:
        """For each job the seconds of the longest way through it and what needs it."""
        found = {job.name: 0.0 for job in plan}
        for job in reversed(plan.jobs.values()):
            found[job.name] += self.expected(job)
            for need in job.needs:
                found[need] = max(found[need], found[job.name])
        return found


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


class _Queue:
    """The state of one run: what waits, what is done, what failed, and how long jobs take."""

    def __init__(
        self,
        plan: Plan,
        folder: JobFolder,
        workers: int,
        progress: Callable[[Standing], None] | None,
        outcome: PlanOutcome,
        order: Order,
    ) -> None:
        self.plan, self.folder, self.workers, self.progress, self.outcome = plan, folder, workers, progress, outcome
        self.order = order
        self.times: dict[str, list[float]] = {}
        waiting, ranks = _to_do(plan, folder), order.ranks(plan)
        # A stable sort: jobs of equal rank stay in the order of the plan.
        self.waiting = sorted((name for name in plan.jobs if name in waiting), key=lambda name: -ranks[name])
        for name in (name for name in plan.jobs if name not in waiting):
            outcome.kept.append(name)
            seconds = folder.record(name).get("seconds")
            self._note(name, float(seconds) if isinstance(seconds, int | float) else 0.0)

    def ready(self, running: Sequence[str] = ()) -> list[str]:
        """Waiting jobs whose needs are there; those that can never run are failed on the way."""
        jobs, waiting = self.plan.jobs, set(self.waiting)
        for name in jobs if self.outcome.failed else ():  # in the plan's order: a cause comes before what it costs
            lost = [need for need in jobs[name].needs if need in self.outcome.failed] if name in waiting else []
            if lost:
                self.settle(name, reason=f"needs {lost[0]}, which failed")
        finished = self.outcome.finished
        return [name for name in self.waiting if name not in running and finished.issuperset(jobs[name].needs)]

    def next(self, running: Sequence[str], free: int) -> list[str]:
        """At most so many jobs to begin now, the most urgent first, within the limit of those that share the GPU."""
        order, jobs = self.order, self.plan.jobs
        room = len(jobs) if order.at_a_time is None else order.at_a_time
        room -= sum(order.limited(jobs[name]) for name in running)
        chosen: list[str] = []
        for name in self.ready(running):
            if len(chosen) >= free:
                break
            limited = order.limited(jobs[name])
            if not limited or room > 0:
                chosen.append(name)
                room -= limited
        return chosen

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
    order: Order | None = None,
) -> PlanOutcome:
    """Do what is not yet done; with several workers in processes of their own, with one here in the plan's order.

    KeyboardInterrupt passes through after the workers were stopped; finished jobs stay. ``outcome`` is filled as jobs
    end, for those who want to know how far an interrupted run came.
    """
    folder.path.mkdir(parents=True, exist_ok=True)
    several = workers > 1
    chosen = order if several and order is not None else Order(lambda _job: 0.0)
    queue = _Queue(plan, folder, workers, progress, PlanOutcome() if outcome is None else outcome, chosen)
    if several and len(queue.waiting) > 1:
        _run_in_processes(queue, compute, workers)
    else:
        while ready := queue.ready():
            queue.settle(ready[0], *perform(folder, compute, plan.jobs[ready[0]], plan.hashes[ready[0]]))
    return queue.outcome


def perform(folder: JobFolder, compute: Compute, job: Job, digest: str) -> tuple[float, str]:
    """Do one job and keep it: the seconds it took, and the reason if it failed.

    Another command at work in the same folder, on other models say, may have done it in the meantime.
    """
    if folder.is_done(job.name, digest) and folder.is_whole(job.name):
        return float(folder.record(job.name)["seconds"]), ""
    start, started = time.perf_counter(), now()
    try:
        result, arrays = compute(job, folder)
        seconds = time.perf_counter() - start
        timing = {"seconds": seconds, "started": started, "ended": now(), "threads": threads_in_use()}
        folder.keep(job, digest, timing, result, arrays)
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
            for name in queue.next(pool.running, pool.free):
                job = queue.plan.jobs[name]
                kind = "limited" if queue.order.limited(job) else ""
                pool.submit(name, (queue.folder, compute, job, queue.plan.hashes[name]), kind)
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
    finally:
        _leave_the_gpu()


def _leave_the_gpu() -> None:
    """Give back GPU memory that torch keeps for this process's next job: others share the GPU."""
    torch = sys.modules.get("torch")
    if torch is not None and torch.cuda.is_initialized():
        torch.cuda.empty_cache()


def _duration(seconds: float) -> str:
    """In words.

    >>> _duration(50), _duration(200), _duration(8000)
    ('50 s', '3 min', '2 h 13 min')
    """
    if seconds < 90:
        return f"{seconds:.0f} s"
    minutes = round(seconds / 60)
    return f"{minutes} min" if minutes < 90 else f"{minutes // 60} h {minutes % 60:02d} min"
