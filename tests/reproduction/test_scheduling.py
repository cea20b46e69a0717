"""Which job comes next: the longest way first, few at a time on one GPU, and the same results in any order."""

from __future__ import annotations

import os
import time
from pathlib import Path
from typing import Any

import pytest

from rocerf.reproduction.expected import expected_seconds, uses_network
from rocerf.reproduction.jobs import Job, JobFolder, Plan
from rocerf.reproduction.scheduling import Order, PlanOutcome, _Queue, run_jobs


def nn(name: str, seconds: float, needs: tuple[str, ...] = ()) -> Job:
    return Job(name, "any", {"model": "nn", "seconds": seconds}, needs)


def lr(name: str, seconds: float, needs: tuple[str, ...] = ()) -> Job:
    return Job(name, "any", {"model": "lr", "seconds": seconds}, needs)


#: A short job on which the longest way hangs, long ones on their own, and short ones.
JOBS = [lr("short", 1), lr("long", 50), nn("root", 1), nn("leaf", 99, ("root",)), nn("n1", 9), nn("n2", 8), lr("l", 7)]


def order(at_a_time: int | None = None) -> Order:
    return Order(lambda job: float(job.inputs["seconds"]), uses_network, at_a_time)


def test_ranks_are_the_longest_ways() -> None:
    """Against all ways, walked one by one."""
    plan = Plan([*JOBS, lr("both", 5, ("leaf", "long"))])

    def longest(name: str) -> float:
        after = [longest(job.name) for job in plan if name in job.needs]
        return float(plan.jobs[name].inputs["seconds"]) + max(after, default=0.0)

    assert order().ranks(plan) == {name: longest(name) for name in plan.jobs}


def queue(tmp_path: Path, at_a_time: int | None) -> _Queue:
    return _Queue(Plan(JOBS), JobFolder(tmp_path), 4, None, PlanOutcome(), order(at_a_time))


def test_the_most_urgent_jobs_begin(tmp_path: Path) -> None:
    assert queue(tmp_path, None).next([], 4) == ["root", "long", "n1", "n2"]
    assert queue(tmp_path, None).next(["root", "long"], 2) == ["n1", "n2"]
    assert queue(tmp_path, None).next(["root"], 0) == []


def test_networks_are_limited_and_the_others_fill_up(tmp_path: Path) -> None:
    few = queue(tmp_path, 1)
    assert few.next([], 4) == ["root", "long", "l", "short"]
    assert few.next(["root", "l"], 2) == ["long", "short"]
    assert queue(tmp_path, 2).next(["n1"], 3) == ["root", "long", "l"]


def note_when(job: Job, folder: JobFolder) -> Any:
    """How many networks were at work with this one."""
    mark = folder.path / f"{job.name}.busy"
    if job.inputs["model"] == "nn":
        mark.touch()
    time.sleep(0.15)
    busy = len(list(folder.path.glob("*.busy")))
    mark.unlink(missing_ok=True)
    return {"busy": busy, "pid": os.getpid(), "threads": os.environ.get("OPENBLAS_NUM_THREADS")}, {}


@pytest.mark.slow
def test_processes_keep_to_the_limit(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("OPENBLAS_NUM_THREADS", "2")
    jobs = [nn(f"n{i}", 1) for i in range(4)] + [lr(f"l{i}", 1) for i in range(3)]
    folder = JobFolder(tmp_path, {"sitting": "one"})
    outcome = run_jobs(Plan(jobs), folder, note_when, workers=2, order=order(1))
    assert outcome.finished == {job.name for job in jobs}
    assert max(folder.result(name)["busy"] for name in outcome.finished) == 1
    for name in outcome.finished:
        assert folder.result(name)["threads"] == "1"
        made = folder.record(name)["made"]
        assert (made["sitting"], made["threads"]) == ("one", 1)
        assert made["started"] <= made["ended"]
    assert os.environ["OPENBLAS_NUM_THREADS"] == "2"


def fail_first(job: Job, _folder: JobFolder) -> Any:
    if job.name == "root":
        raise ZeroDivisionError("on purpose")
    return {}, {}


def test_what_needs_a_failed_job_fails_with_it(tmp_path: Path) -> None:
    jobs = [nn("root", 1), nn("leaf", 99, ("root",)), lr("below", 200, ("leaf",)), lr("apart", 1)]
    outcome = run_jobs(Plan(jobs), JobFolder(tmp_path), fail_first)
    assert outcome.failed == {
        "root": "ZeroDivisionError: on purpose",
        "leaf": "needs root, which failed",
        "below": "needs leaf, which failed",
    }
    assert outcome.ran == ["apart"]


def test_what_another_command_did_meanwhile_in_the_folder_is_taken_over(tmp_path: Path) -> None:
    plan, folder, done = Plan([lr("first", 1), lr("shared", 1)]), JobFolder(tmp_path), []

    def work(job: Job, _folder: JobFolder) -> Any:
        done.append(job.name)
        if job.name == "first":  # the other command
            run_jobs(Plan([lr("shared", 1)]), folder, lambda _job, _folder: ({"by": "other"}, {}))
        return {"by": "this"}, {}

    assert run_jobs(plan, folder, work).ran == ["first", "shared"]
    assert done == ["first"]
    assert folder.result("shared") == {"by": "other"}


def test_longer_work_is_expected_to_take_longer() -> None:
    def seconds(**inputs: Any) -> float:
        return expected_seconds(Job("a", inputs.pop("kind", "explain"), inputs))

    assert seconds(dataset="adult", model="lr", method="roar") > seconds(dataset="german", model="lr", method="roar")
    assert seconds(dataset="adult", model="nn", method="roar") > seconds(dataset="adult", model="lr", method="roar")
    assert seconds(dataset="compas-risk", method="rocerf_k2") == seconds(dataset="compas", method="rocerf")
    assert seconds(kind="something new") > 0


def test_a_record_changed_by_hand_is_not_taken_over(tmp_path: Path) -> None:
    plan, folder = Plan([Job("one", "any", {})]), JobFolder(tmp_path)
    run_jobs(plan, folder, lambda _job, _folder: ({"l2": 0.5}, {}))
    assert run_jobs(plan, folder, lambda _job, _folder: ({"l2": 0.5}, {})).kept == ["one"]
    path = folder.record_path("one")
    path.write_text(path.read_text("utf-8").replace("0.5", "0.001"), "utf-8")
    assert run_jobs(plan, folder, lambda _job, _folder: ({"l2": 0.5}, {})).ran == ["one"]
    assert folder.result("one") == {"l2": 0.5}
