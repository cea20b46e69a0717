"""The hand-written step of the CPU against the same step derived by autograd; its threads, groups and padding."""

from __future__ import annotations

import threading
from concurrent.futures import ThreadPoolExecutor
from typing import Any

import numpy as np
import pytest
import torch

from rocerf.models.network import cpu_training
from rocerf.models.network import training as network_training
from rocerf.models.network.network import Architecture, stacked_forward
from rocerf.models.network.training import Task, Training, train_stack

N = 70
#: What five networks are left with: everything, all but one, half, a few, and a number that batches of 8 divide.
KEPT = [np.delete(np.arange(N), gone) for gone in ([], [3], range(10, 45), range(1, 66), range(6))]
SEEDS = [11, 5, 2**62 + 3, 0, 12]


def task(inputs: int, *, scale: float = 1.0) -> Task:
    rng = np.random.default_rng(inputs)
    X = rng.normal(size=(N, inputs))
    y = (X.sum(axis=1) + rng.normal(size=N) > 0).astype(float)
    return Task(scale * X, y, rng.uniform(0.2, 3.0, size=N))


def how(**options: Any) -> Training:
    return Training(**({"learning_rate": 0.2, "epochs": 5, "batch_size": 8, "precision": "float64"} | options))


def by_autograd(given: Task, start: list[np.ndarray], training: Training) -> list[np.ndarray]:
    """The oracle: the step as torch derives it, all networks of ``KEPT`` in one stack."""
    precision, longest = getattr(torch, training.precision), max(map(len, KEPT))
    run = network_training._Run(given, start, longest, training, torch.device("cpu"), precision)
    with ThreadPoolExecutor(1) as pool:
        for epoch in range(training.epochs):
            run.load(network_training._batches(KEPT, SEEDS, epoch, training, pool))
            for _ in range(run.steps):
                run.step()
    return run.result()


def distance(first: list[np.ndarray], second: list[np.ndarray]) -> float:
    """Largest difference of any parameter of any network."""
    assert [a.shape for a in first] == [b.shape for b in second]
    return max(float(np.abs(a - b).max()) for a, b in zip(first, second, strict=True))


@pytest.fixture
def many_threads(monkeypatch: pytest.MonkeyPatch) -> Any:
    """Three threads and groups of one network, however small the networks are."""
    before = torch.get_num_threads()
    torch.set_num_threads(3)
    monkeypatch.setattr(cpu_training, "CALLS_COST", 1)
    monkeypatch.setattr(cpu_training, "GROUP_BYTES", 1)
    yield
    torch.set_num_threads(before)


# Inputs and widths below, at and above a whole vector, with the constant 1 counted in.
@pytest.mark.parametrize(("inputs", "width"), [(3, 4), (7, 15), (8, 16), (1, 1), (16, 7)])
@pytest.mark.parametrize("hidden_layers", [1, 2, 3])
@pytest.mark.parametrize("decay", [0.0, 0.05])
def test_the_step_is_the_one_that_autograd_derives(inputs: int, width: int, hidden_layers: int, decay: float) -> None:
    given, start = task(inputs), Architecture(inputs, width, hidden_layers).initial(SEEDS)
    for precision, tolerance in (("float64", 1e-12), ("float32", 2e-5)):
        training = how(weight_decay=decay, precision=precision)
        expected = by_autograd(given, start, training)
        assert distance(train_stack(given, start, KEPT, SEEDS, training), expected) < tolerance
        assert distance(expected, start) > 0.05  # it did learn


@pytest.mark.parametrize("options", [{"batch_size": 1}, {"batch_size": 200}, {"shuffle": False}, {"batch_size": 35}])
def test_the_step_is_that_of_autograd_whatever_the_batches(options: dict[str, Any]) -> None:
    given, start = task(4), Architecture.of(4).initial(SEEDS)
    training = how(weight_decay=0.02, epochs=3, **options)
    assert distance(train_stack(given, start, KEPT, SEEDS, training), by_autograd(given, start, training)) < 1e-12


@pytest.mark.parametrize("precision", ["float32", "float64"])
def test_numbers_beyond_the_range_of_exp_are_no_trouble(precision: str) -> None:
    """Values before softplus reach thousands on both sides, where exp is infinite or 0."""
    given, start = task(3, scale=3000.0), Architecture.of(3).initial(SEEDS)
    reached = stacked_forward([torch.as_tensor(p) for p in start[:2]], torch.as_tensor(given.rows).expand(5, -1, -1))
    assert float(reached.min()) < -1000
    assert float(reached.max()) > 1000
    training = how(learning_rate=1e-8, precision=precision)
    found, expected = train_stack(given, start, KEPT, SEEDS, training), by_autograd(given, start, training)
    assert np.isfinite(distance(found, expected))
    assert distance(found, expected) < (1e-5 if precision == "float32" else 1e-11)


def test_scores_after_a_hundred_epochs_in_float32_differ_by_rounding() -> None:
    given, start = task(6), Architecture.of(6).initial(SEEDS)
    training = Training(epochs=100, precision="float32")
    stacks = train_stack(given, start, KEPT, SEEDS, training), by_autograd(given, start, training)
    rows = torch.as_tensor(given.rows).expand(len(SEEDS), -1, -1)
    first, second = (stacked_forward([torch.as_tensor(p) for p in stack], rows).numpy() for stack in stacks)
    assert np.abs(first - second).max() < 1e-5
    assert np.ptp(first) > 0.5


# --- groups and threads -----------------------------------------------------------------------------


@pytest.mark.usefixtures("many_threads")
@pytest.mark.parametrize("decay", [0.0, 0.05])
def test_threads_and_groups_make_no_difference_but_rounding_and_none_between_runs(decay: float) -> None:
    given, start = task(5), Architecture.of(5).initial(SEEDS)
    training = how(weight_decay=decay)
    plan = cpu_training._Plan.of(start, training, 3)
    assert (len(plan.parts), plan.workers) == (5, 3)
    found = train_stack(given, start, KEPT, SEEDS, training)
    assert distance(found, by_autograd(given, start, training)) < 1e-12
    assert distance(found, train_stack(given, start, KEPT, SEEDS, training)) == 0.0


@pytest.mark.parametrize("threads", [1, 2, 16])
@pytest.mark.parametrize("many", [1, 2, 7, 40, 200])
@pytest.mark.parametrize("inputs", [2, 7, 39, 100])
@pytest.mark.parametrize("batch_size", [32, 5000])
def test_every_network_is_in_one_group_and_threads_are_not_exceeded(
    threads: int, many: int, inputs: int, batch_size: int
) -> None:
    start = [np.repeat(parameter, many, axis=0) for parameter in Architecture.of(inputs).initial([0])]
    plan = cpu_training._Plan.of(start, Training(batch_size=batch_size), threads)
    assert [place for part in plan.parts for place in range(many)[part]] == list(range(many))
    assert 1 <= plan.workers * plan.inside <= threads
    sizes = [part.stop - part.start for part in plan.parts]
    assert max(sizes) - min(sizes) <= 1  # nobody waits long for the last group
    assert plan.workers <= len(sizes)


def test_large_steps_of_one_network_use_all_threads_and_small_ones_do_not() -> None:
    start = Architecture.of(39).initial([0])
    assert cpu_training._Plan.of(start, Training(), 4).inside == 1
    assert cpu_training._Plan.of(start, Training(batch_size=10_000), 4).inside == 4


class StopError(Exception):
    pass


@pytest.mark.usefixtures("many_threads")
def test_progress_comes_after_each_epoch_of_all_groups_and_may_stop_them() -> None:
    given, start, told, running = task(3), Architecture.of(3).initial(SEEDS), [], threading.active_count()

    def progress(done: int, total: int) -> None:
        told.append((done, total))
        assert threading.current_thread() is threading.main_thread()
        if len(told) == 3:
            raise StopError

    with pytest.raises(StopError):
        train_stack(given, start, KEPT, SEEDS, how(epochs=100_000), progress=progress)
    assert told == [(5, 500_000), (10, 500_000), (15, 500_000)]
    assert threading.active_count() == running
    assert torch.get_num_threads() == 3


@pytest.mark.usefixtures("many_threads")
def test_an_error_in_a_thread_is_raised_and_stops_the_others(monkeypatch: pytest.MonkeyPatch) -> None:
    def order(rows: np.ndarray, seed: int, epoch: int, training: Training) -> np.ndarray:
        if (seed, epoch) == (SEEDS[1], 2):
            raise StopError
        return rows

    monkeypatch.setattr(cpu_training, "epoch_order", order)
    with pytest.raises(StopError):
        train_stack(task(3), Architecture.of(3).initial(SEEDS), KEPT, SEEDS, how(epochs=100_000))


def test_groups_that_are_told_to_stop_take_no_further_step() -> None:
    start, stop = Architecture.of(3).initial(SEEDS), threading.Event()
    group = cpu_training._Group(cpu_training._Table.of(task(3), torch.float64), start, KEPT, SEEDS, how(), stop)
    stop.set()
    group.train(0)
    assert distance(group.result(), start) == 0.0
    stop.clear()
    group.train(0)
    assert distance(group.result(), start) > 0.01


@pytest.mark.parametrize("precision", ["float32", "float64"])
@pytest.mark.parametrize("decay", [0.0, 0.1])
def test_padded_units_never_move(precision: str, decay: float) -> None:
    training = how(weight_decay=decay, precision=precision, learning_rate=1.0)
    table = cpu_training._Table.of(task(3), getattr(torch, precision))
    group = cpu_training._Group(table, Architecture(3, 4, 3).initial(SEEDS), KEPT, SEEDS, training, threading.Event())
    for epoch in range(5):
        group.train(epoch)
    for layer in group.layers[:-1]:
        assert layer.weights[:, layer.inputs, layer.outputs :].unique().tolist() == [cpu_training.SILENT]
        assert layer.weights[:, : layer.inputs, layer.outputs :].unique().tolist() == [0.0]
        assert layer.after[:, :, layer.outputs].unique().tolist() == [1.0]
        assert layer.after[:, :, layer.outputs + 1 :].unique().tolist() == [0.0]
    for layer in group.layers:
        assert layer.weights[:, layer.inputs + 1 :].unique().tolist() == [0.0]


def test_the_device_that_a_user_prefers_elsewhere_is_not_used() -> None:
    given, start = task(3), Architecture.of(3).initial(SEEDS)
    expected = train_stack(given, start, KEPT, SEEDS, how())
    with torch.device("meta"):
        found = train_stack(given, start, KEPT, SEEDS, how())
    assert distance(found, expected) == 0.0
