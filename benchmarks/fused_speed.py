"""The kernel that trains a stack on a GPU against the captured steps: the same networks, and how long an epoch takes.

Random tables of the sizes of COMPAS, Adult and German; launches of the kernel that might be the fastest. Kernel and
drawing of orders are timed apart, then a run as users have it. Under 90 seconds; what fails or does not fit in that
time says so and leaves the rest alone. Run: ``python -m benchmarks.fused_speed``.
"""

from __future__ import annotations

import argparse
import sys
import time
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from functools import cached_property
from typing import Any

import numpy as np
import torch

from rocerf.models.network import fused, training
from rocerf.models.network.fused import Launch, Orders, fused_run
from rocerf.models.network.network import Architecture, stacked_forward
from rocerf.models.network.training import Task, Training, train_stack
from rocerf.types import Array

#: Rows and columns of the tables.
SIZES = {"compas": (5554, 7), "adult": (36177, 13), "german": (800, 60)}

#: Launches to be timed, the most promising first.
LAUNCHES: dict[str, list[Launch]] = {
    "adult": [
        Launch(4, 128),
        Launch(2),
        Launch(8, 64),
        Launch(4),
        Launch(1),
        Launch(2, None, "tf32x3"),
        Launch(4, 128, "tf32x3"),
    ],
    "german": [Launch(8, None, "tf32x3"), Launch(16, None, "tf32x3"), Launch(4, None, "tf32x3")],
    "compas": [Launch(4, 128), Launch(2), Launch(1)],
}


@dataclass(frozen=True)
class Problem:
    """M networks of one shape on a random table, each without a hundredth of the rows."""

    name: str
    networks: int
    device: torch.device

    @cached_property
    def task(self) -> Task:
        """Rows, labels that depend on them, weights."""
        n, d = SIZES[self.name]
        rng = np.random.default_rng(0)
        X = rng.normal(size=(n, d))
        return Task(X, (X @ rng.normal(size=d) + rng.normal(size=n) > 0).astype(float), rng.uniform(0.5, 2.0, n))

    @cached_property
    def kept(self) -> list[Any]:
        """Rows of each network."""
        n, rng = len(self.task.rows), np.random.default_rng(1)
        return [np.delete(np.arange(n), rng.choice(n, n // 100, replace=False)) for _ in range(self.networks)]

    @cached_property
    def seeds(self) -> list[int]:
        """A seed for each network."""
        return list(range(100, 100 + self.networks))

    @cached_property
    def start(self) -> list[Array]:
        """Their first parameters."""
        return Architecture.of(self.task.rows.shape[1]).initial(self.seeds)

    @property
    def steps(self) -> int:
        """Steps of an epoch."""
        return -(-max(map(len, self.kept)) // Training().batch_size)

    def scores(self, stack: list[Array]) -> Array:
        """Logits (M, 200) on some rows."""
        rows = torch.as_tensor(self.task.rows[:200]).expand(self.networks, -1, -1)
        return np.asarray(stacked_forward([torch.as_tensor(parameter) for parameter in stack], rows).numpy())

    def captured(self, epochs: int) -> tuple[list[Array], float, float]:
        """By replayed steps: the stack, seconds of the steps, seconds of drawing and loading."""
        how = Training(epochs=epochs)
        run = training._Run(self.task, self.start, max(map(len, self.kept)), how, self.device, torch.float32)
        advance, stepping, loading = run.captured(), 0.0, 0.0
        with ThreadPoolExecutor() as pool:
            for epoch in range(epochs):
                begun = time.perf_counter()
                run.load(training._batches(self.kept, self.seeds, epoch, how, pool))
                run.wait()
                loaded = time.perf_counter()
                for _ in range(run.steps):
                    advance()
                run.wait()
                loading, stepping = loading + loaded - begun, stepping + time.perf_counter() - loaded
        return run.result(), stepping, loading

    def fused(self, launch: Launch | None, epochs: int) -> tuple[list[Array], float, float, float]:
        """By the kernel: the stack, seconds of the kernel, of drawing and copying, of compiling."""
        begun = time.perf_counter()
        run = fused_run(self.task, self.start, self.kept, Training(epochs=epochs), self.device, launch)
        if run is None:
            raise RuntimeError("the kernel does not run here (see the warning)")
        compiling, working, drawing = time.perf_counter() - begun, 0.0, 0.0
        orders = Orders(self.kept, self.seeds, shuffle=True, device=self.device)
        with ThreadPoolExecutor() as pool:
            for epoch in range(epochs):
                begun = time.perf_counter()
                present = orders.of_epoch(epoch, pool)
                drawn = time.perf_counter()
                run.epoch(present, orders.which)
                run.wait()
                drawing, working = drawing + drawn - begun, working + time.perf_counter() - drawn
        return run.result(), working, drawing, compiling


def tried(what: str, action: Callable[[], None], deadline: float) -> None:
    """Do it; if it fails, or there is no time left, say so and go on."""
    if time.perf_counter() > deadline:
        print(f"{what:34} left out: no time left", flush=True)
        return
    try:
        action()
    except Exception as error:  # one launch that fails must not lose the others
        print(f"{what:34} FAILED {type(error).__name__}: {str(error)[:300]}", flush=True)


def line(what: str, problem: Problem, epochs: int, working: float, drawing: float, more: str = "") -> None:
    """One line of the table: milliseconds an epoch, microseconds a step."""
    kernel, draw = 1e3 * working / epochs, 1e3 * drawing / epochs
    step = 1e3 * kernel / problem.steps
    print(f"{what:34}{problem.networks:6}{kernel:11.2f}{step:10.2f}{draw:10.2f}  {more}", flush=True)


def compare(problem: Problem, epochs: int, deadline: float) -> None:
    """Both ways, with the launch that the package would choose, and the largest difference of scores."""
    found: dict[str, Array] = {}

    def by_steps() -> None:
        stack, working, drawing = problem.captured(epochs)
        found["steps"] = problem.scores(stack)
        line(f"{problem.name} captured", problem, epochs, working, drawing)

    def by_kernel() -> None:
        stack, working, drawing, compiling = problem.fused(None, epochs)
        scores = problem.scores(stack)
        moved = np.abs(scores - problem.scores(problem.start)).max()
        gap = np.abs(scores - found["steps"]).max() if "steps" in found else np.nan
        more = f"score difference {gap:.1e} (scores moved by {moved:.2f}); compiled in {compiling:.1f} s"
        line(f"{problem.name} fused", problem, epochs, working, drawing, more)

    tried(f"{problem.name} captured", by_steps, deadline)
    tried(f"{problem.name} fused", by_kernel, deadline)


def time_launch(problem: Problem, launch: Launch, epochs: int) -> None:
    """One launch of the kernel."""
    _, working, drawing, compiling = problem.fused(launch, epochs)
    what = f"{problem.name} {launch.warps} warps {launch.registers or 'any'} {launch.precision}"
    line(what, problem, epochs, working, drawing, f"compiled in {compiling:.1f} s")


def as_users_do(problem: Problem, epochs: int) -> None:
    """``train_stack`` with all that it does; 100 epochs are extrapolated from the difference of two lengths."""
    seconds = []
    for length in (1, 1 + epochs):
        begun = time.perf_counter()
        how = Training(epochs=length)
        train_stack(problem.task, problem.start, problem.kept, problem.seeds, how, device=str(problem.device))
        seconds.append(time.perf_counter() - begun)
    each = (seconds[1] - seconds[0]) / epochs
    print(
        f"{problem.name} train_stack, {problem.networks} networks: {1e3 * each:.2f} ms an epoch, "
        f"100 epochs in {seconds[0] + 99 * each:.2f} s",
        flush=True,
    )


def main() -> int:
    """Print the table."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--device", default="cuda")
    parser.add_argument("--networks", type=int, default=500)
    parser.add_argument("--seconds", type=float, default=75.0)
    options = parser.parse_args()
    deadline = time.perf_counter() + options.seconds
    device = torch.device(options.device)
    problems = {name: Problem(name, options.networks, device) for name in ("adult", "german", "compas")}
    print(f"{'':34}{'nets':>6}{'ms/epoch':>11}{'us/step':>10}{'draw ms':>10}")
    for problem in problems.values():
        compare(problem, 3, deadline)
    tried("adult train_stack", lambda: as_users_do(problems["adult"], 5), deadline)
    tried("adult, one network", lambda: compare(Problem("adult", 1, device), 1, deadline), deadline)
    for name, launches in LAUNCHES.items():
        for launch in launches:
            epochs = 5 if name == "adult" else 20
            tried(f"{name} {launch}", lambda n=name, c=launch, e=epochs: time_launch(problems[n], c, e), deadline)  # type: ignore[misc]
    print(f"{fused.SHARES} shares of drawing; {options.seconds - (deadline - time.perf_counter()):.0f} s in all")
    return 0


if __name__ == "__main__":
    sys.exit(main())
