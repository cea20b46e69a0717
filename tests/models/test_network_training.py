"""Networks trained in a stack against networks trained alone, and against a plain loop of torch's own optimiser."""

from __future__ import annotations

import math
from itertools import pairwise
from typing import Any

import numpy as np
import pytest
import torch

from networks import DEVICES, moons, small_network
from problems import random_training_set
from rocerf import NeuralModel, TrainingSet
from rocerf.errors import DidNotTrainError, NoOptimumError
from rocerf.models.network import training as network_training
from rocerf.models.network.network import Architecture, state_arrays
from rocerf.models.network.retraining import refuse_diverged
from rocerf.models.network.training import Task, Training, train_stack

N, D = 50, 3
SHAPE = Architecture.of(D, width=4, hidden_layers=2)
#: Rows that are left after four deletions of different size, and one that deletes nothing.
KEPT = [np.delete(np.arange(N), gone) for gone in ([], [3], range(10, 31), [0, 7, 49], range(5))]
SEEDS = [11, 5, 2**62 + 3, 0, 12]

TRAININGS = [
    pytest.param({"batch_size": 7}, id="batches of 7"),
    pytest.param({"batch_size": 7, "shuffle": False}, id="in order"),
    pytest.param({"batch_size": 16, "weight_decay": 0.05}, id="weight decay"),
    pytest.param({"batch_size": 1, "epochs": 2}, id="single rows"),
    pytest.param({"batch_size": 25, "shuffle": False, "weight_decay": 0.2}, id="batches that divide"),
    pytest.param({"batch_size": N + 20, "weight_decay": 0.01}, id="one batch, longer than the rows"),
]


def training(**options: Any) -> Training:
    return Training(**({"learning_rate": 0.2, "epochs": 5} | options))


def task(*, weights: bool = True, seed: int = 0) -> Task:
    rng = np.random.default_rng(seed)
    X = rng.normal(size=(N, D))
    y = (X @ [1.0, -2.0, 0.5] + rng.normal(size=N) > 0).astype(float)
    return Task(X, y, rng.uniform(0.2, 3.0, size=N) if weights else np.ones(N))


class PlainNetwork(torch.nn.Module):
    """The paper's network as anybody would write it."""

    def __init__(self, start: list[np.ndarray]) -> None:
        super().__init__()
        self.layers = torch.nn.ModuleList()
        for weight, bias in zip(start[::2], start[1::2], strict=True):
            layer = torch.nn.Linear(weight.shape[1], weight.shape[0], dtype=torch.float64)
            layer.load_state_dict({"weight": torch.tensor(weight), "bias": torch.tensor(bias)})
            self.layers.append(layer)

    def forward(self, x: Any) -> Any:
        for layer in self.layers[:-1]:
            x = torch.log1p(torch.exp(layer(x))) - math.log(2.0)
        return self.layers[-1](x)[:, 0]


def plain_loop(given: Task, start: list[np.ndarray], rows: np.ndarray, seed: int, how: Training) -> list[np.ndarray]:
    """One network, ``torch.optim.SGD`` and a data loader, in float64."""
    network = PlainNetwork(start)
    optimiser = torch.optim.SGD(network.parameters(), lr=how.learning_rate, weight_decay=how.weight_decay)
    loss = torch.nn.BCEWithLogitsLoss(reduction="none")
    for epoch in range(how.epochs):
        order = np.random.default_rng([seed, 1 + epoch]).permutation(rows) if how.shuffle else rows
        for chosen in torch.utils.data.DataLoader(order.tolist(), batch_size=how.batch_size):
            batch = chosen.numpy()
            optimiser.zero_grad()
            losses = loss(network(torch.tensor(given.rows[batch])), torch.tensor(given.labels[batch]))
            (torch.tensor(given.weights[batch]) * losses).mean().backward()
            optimiser.step()
    return [parameter.detach().numpy() for parameter in network.parameters()]


def distance(first: list[np.ndarray], second: list[np.ndarray]) -> float:
    """Largest difference of any parameter of any network."""
    assert [a.shape for a in first] == [b.shape for b in second]
    return max(float(np.abs(a - b).max()) for a, b in zip(first, second, strict=True))


def member(stack: list[np.ndarray], place: int) -> list[np.ndarray]:
    return [parameter[place] for parameter in stack]


@pytest.mark.parametrize("device", DEVICES)
@pytest.mark.parametrize("weights", [False, True])
@pytest.mark.parametrize("options", TRAININGS)
def test_a_stack_equals_plain_loops_of_torch_one_network_at_a_time(options: dict, weights: bool, device: str) -> None:
    given, start = task(weights=weights), SHAPE.initial(SEEDS)
    loops = [plain_loop(given, member(start, m), KEPT[m], SEEDS[m], training(**options)) for m in range(len(SEEDS))]
    expected = [np.stack(parameters) for parameters in zip(*loops, strict=True)]
    for precision, tolerance in (("float64", 1e-11), ("float32", 1e-5)):
        how = training(**options, precision=precision)
        found = train_stack(given, start, KEPT, SEEDS, how, device=device)
        assert distance(found, expected) < tolerance
        assert all(parameter.dtype == np.float64 for parameter in found)
    assert distance(expected, start) > 0.05  # it did learn


@pytest.mark.parametrize("device", DEVICES)
@pytest.mark.parametrize("options", TRAININGS)
def test_a_stack_equals_its_networks_trained_one_by_one(options: dict, device: str) -> None:
    given, start = task(), SHAPE.initial(SEEDS)
    how = training(**options)
    together = train_stack(given, start, KEPT, SEEDS, how, device=device)
    for m, seed in enumerate(SEEDS):
        begun = [parameter[None] for parameter in member(start, m)]
        alone = train_stack(given, begun, [KEPT[m]], [seed], how, device=device)
        assert distance(alone, [parameter[m : m + 1] for parameter in together]) < 1e-5


@pytest.mark.parametrize("hidden_layers", [1, 2, 3])
def test_any_number_of_hidden_layers(hidden_layers: int) -> None:
    shape = Architecture.of(D, hidden_layers=hidden_layers)
    assert [len(shape.layers), shape.width] == [hidden_layers + 1, 2 * D]
    start = shape.initial([4])
    found = train_stack(task(), start, KEPT[1:2], [4], training(precision="float64"))
    expected = plain_loop(task(), member(start, 0), KEPT[1], 4, training())
    assert distance(member(found, 0), expected) < 1e-12
    assert shape.parameters == sum(parameter[0].size for parameter in start)


@pytest.mark.parametrize("size", [1, 2, 3, 5, 100])
def test_the_size_of_stacks_makes_no_difference(size: int, monkeypatch: pytest.MonkeyPatch) -> None:
    given, start, how = task(), SHAPE.initial(SEEDS), training(batch_size=8, precision="float64")
    whole = train_stack(given, start, KEPT, SEEDS, how)
    monkeypatch.setattr(network_training, "STACK_ON_CPU", size)
    assert distance(train_stack(given, start, KEPT, SEEDS, how), whole) < 1e-13


@pytest.mark.parametrize("order", [[4, 3, 2, 1, 0], [2, 0], [1, 1, 3], [2]])
def test_neighbours_and_their_order_make_no_difference(order: list[int]) -> None:
    given, start, how = task(), SHAPE.initial(SEEDS), training(batch_size=8, precision="float64")
    whole = train_stack(given, start, KEPT, SEEDS, how)
    found = train_stack(given, [p[order] for p in start], [KEPT[m] for m in order], [SEEDS[m] for m in order], how)
    assert distance(found, [parameter[order] for parameter in whole]) < 1e-13


def test_the_rows_deleted_make_no_difference_whatever_they_hold() -> None:
    given, start, how = task(), SHAPE.initial([1]), training(precision="float64")
    gone = np.setdiff1d(np.arange(N), KEPT[2])
    other = Task(given.rows.copy(), given.labels.copy(), given.weights.copy())
    other.rows[gone], other.labels[gone], other.weights[gone] = 1e3, 1.0, 7.0
    first, second = (train_stack(t, start, [KEPT[2]], [1], how) for t in (given, other))
    assert distance(first, second) == 0.0


def test_the_start_is_left_as_it_was() -> None:
    start = SHAPE.initial(SEEDS)
    before = [parameter.copy() for parameter in start]
    train_stack(task(), start, KEPT, SEEDS, training(precision="float64"))
    assert distance(start, before) == 0.0


@pytest.mark.parametrize("device", DEVICES)
def test_training_goes_on_where_it_stopped(device: str) -> None:
    """In given order, five epochs are two and then three more."""
    given, start = task(), SHAPE.initial(SEEDS)
    whole = train_stack(given, start, KEPT, SEEDS, training(shuffle=False, precision="float64"), device=device)
    for epochs in (2, 3):
        how = training(shuffle=False, precision="float64", epochs=epochs)
        start = train_stack(given, start, KEPT, SEEDS, how, device=device)
    assert distance(start, whole) < 1e-13


@pytest.mark.slow
def test_a_warm_start_is_a_plain_loop_from_the_present_parameters() -> None:
    model = small_network(weights=True)
    gone = [model.train.ids[:0], model.train.ids[[4, 40, 41]], model.train.ids[20:45]]
    later = model.refitted(gone, retraining="warm", seed=3)
    fresh = model.refitted(gone, retraining="fresh", seed=3)
    train = model.train
    given = Task(model.design(train.X), train.y, np.asarray(train.weights))
    start, how = state_arrays(model.module), model.retrainer.training
    for m, ids in enumerate(gone):
        kept = np.flatnonzero(~np.isin(train.ids, ids))
        seed = int(np.random.SeedSequence((3, m)).generate_state(1, np.uint64)[0] >> np.uint64(1))
        assert distance(member(later.arrays(), m), plain_loop(given, start, kept, seed, how)) < 1e-5
        begun = member(model.architecture.initial([seed]), 0)
        assert distance(member(fresh.arrays(), m), plain_loop(given, begun, kept, seed, how)) < 1e-5
        assert distance(member(later.arrays(), m), start) > 1e-3
        assert distance(member(later.arrays(), m), member(fresh.arrays(), m)) > 0.05


@pytest.mark.parametrize("device", DEVICES)
def test_the_same_seed_gives_the_same_network_and_another_seed_another(device: str) -> None:
    options = {"epochs": 20, "learning_rate": 0.5, "width": 4, "device": device}
    first, again, other = (NeuralModel.fit(moons(60), seed=seed, **options) for seed in (7, 7, 8))
    np.testing.assert_array_equal(first.theta, again.theta)
    assert np.abs(first.theta - other.theta).max() > 0.05


def test_the_seed_orders_the_rows_as_well_as_it_starts_the_network() -> None:
    given, start = task(), SHAPE.initial([0, 0])
    shuffled = train_stack(given, start, [KEPT[0]] * 2, [1, 2], training(precision="float64"))
    assert distance(member(shuffled, 0), member(shuffled, 1)) > 1e-3
    in_order = train_stack(given, start, [KEPT[0]] * 2, [1, 2], training(shuffle=False, precision="float64"))
    assert distance(member(in_order, 0), member(in_order, 1)) == 0.0


def test_networks_begin_as_torch_s_own_layers_do() -> None:
    """Uniform up to 1/sqrt(inputs), from the seed alone: neither neighbours nor order matter."""
    shape = Architecture.of(9, width=16, hidden_layers=2)
    stack = shape.initial(range(50))
    for place, (inputs, outputs) in enumerate(shape.layers):
        for values in (stack[2 * place], stack[2 * place + 1]):
            assert np.abs(values).max() <= 1 / math.sqrt(inputs)
            assert values.std() == pytest.approx(1 / math.sqrt(3 * inputs), rel=0.12)
            assert abs(values.mean()) < 0.1 / math.sqrt(inputs) * math.sqrt(800 / values.size)
        assert stack[2 * place].shape == (50, outputs, inputs)
    again = shape.initial([7, 3])
    assert distance([parameter[[7, 3]] for parameter in stack], again) == 0.0


# --- interruptions and failures ---------------------------------------------------------------------


class StopError(Exception):
    pass


def test_progress_counts_up_to_the_end(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(network_training, "STACK_ON_CPU", 2)
    told: list[tuple[int, int]] = []
    train_stack(
        task(), SHAPE.initial(SEEDS), KEPT, SEEDS, training(), progress=lambda done, total: told.append((done, total))
    )
    assert {total for _, total in told} == {5 * len(SEEDS)}
    done = [d for d, _ in told]
    assert all(a < b for a, b in pairwise(done))
    assert (done[0], done[-1], len(done)) == (2, 25, 15)  # three stacks of 2, 2 and 1 networks, five epochs each


def test_an_exception_in_progress_interrupts_training() -> None:
    """A million epochs would take hours."""
    train, calls = random_training_set(0, n=40), []

    def stop(done: int, total: int) -> None:
        calls.append((done, total))
        if len(calls) == 3:
            raise StopError

    with pytest.raises(StopError):
        NeuralModel.fit(train, epochs=1_000_000, progress=stop)
    assert calls == [(1, 1_000_000), (2, 1_000_000), (3, 1_000_000)]
    calls.clear()
    with pytest.raises(StopError):
        small_network().refitted([small_network().train.ids[:1]] * 3, progress=stop)
    assert calls == [(3, 180), (6, 180), (9, 180)]


@pytest.mark.parametrize("device", DEVICES)
def test_training_that_diverges_is_an_error(device: str) -> None:
    with pytest.raises(DidNotTrainError, match=r"finite parameters, got 1 of 1 networks.*learning_rate=1e\+06.*lower"):
        NeuralModel.fit(random_training_set(0, n=40), learning_rate=1e6, epochs=20, device=device)


def test_diverged_networks_are_counted() -> None:
    stack = [np.zeros((4, 2, 3)), np.zeros((4, 2))]
    refuse_diverged(stack, "the setting")
    stack[0][1, 1, 2], stack[1][1, 0], stack[1][3, 1] = np.nan, np.inf, -np.inf
    with pytest.raises(DidNotTrainError, match=r"got 2 of 4 networks with infinite ones or NaN \(the setting\)"):
        refuse_diverged(stack, "the setting")


@pytest.mark.parametrize("retraining", ["fresh", "warm"])
@pytest.mark.parametrize("left", [0.0, 1.0])
def test_one_class_left_leaves_nothing_to_learn(left: float, retraining: str) -> None:
    model = small_network()
    gone = model.train.ids[model.train.y != left]
    count = len(model.train) - len(gone)
    with pytest.raises(NoOptimumError, match=f"rows of both classes to train on, got {count} rows of one class"):
        model.without(gone, retraining=retraining)
    with pytest.raises(NoOptimumError, match=f"got {count} rows of one class"):
        model.refitted([model.train.ids[:2], gone], retraining=retraining)
    with pytest.raises(NoOptimumError, match="got 0 rows"):
        model.refitted([model.train.ids], retraining=retraining)


@pytest.mark.slow
def test_one_row_of_each_class_is_enough() -> None:
    train = TrainingSet([[0.0], [1.0], [0.2], [0.9]], [0, 1, 0, 1])
    model = NeuralModel.fit(train, epochs=500, learning_rate=0.5, width=2, batch_size=1)
    later = model.without([2, 3])
    assert later.predict([[0.0], [1.0]]).tolist() == [0, 1]
    assert len(later.train) == 2
