"""Passes over the rows: whatever the chunks, the runner and the grouping, the answer is that of the whole arrays."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy.special import expit

from problems import random_training_set
from rocerf import LogisticModel
from rocerf.deletion import row_effects, squares
from rocerf.deletion.batched_newton import BatchedNewton
from rocerf.deletion.deletions import Deletions
from rocerf.deletion.row_effects import StreamedRowEffects
from rocerf.errors import OptionError
from rocerf.models.logistic import objective
from rocerf.passes import RUNNERS, SERIAL, Threads, chunks, each, over_rows, register_runner, using

OPTIONS = [{"C": 1.0}, {"gamma": 0.02}, {"C": 5.0, "fit_intercept": False}, {"C": 0.5, "class_weight": {0: 2.0}}]


class AnyGrouping:
    """Merges neighbours in any order: what a cluster may do."""

    def __init__(self, seed: int) -> None:
        self.rng = np.random.default_rng(seed)

    def run(self, partial: Callable, merge: Callable, parts: list[slice]) -> object:
        found = [partial(part) for part in parts]
        while len(found) > 1:
            at = int(self.rng.integers(len(found) - 1))
            found[at : at + 2] = [merge(found[at], found[at + 1])]
        return found[0]


@pytest.fixture(autouse=True)
def _runners() -> Iterator[None]:
    register_runner("three threads", Threads(3))
    register_runner("any grouping", AnyGrouping(0))
    yield
    del RUNNERS["three threads"], RUNNERS["any grouping"]


def model_of(options: dict, weights: bool) -> LogisticModel:
    return LogisticModel.fit(random_training_set(3, n=53, weights=weights), **options)


def sums(model: LogisticModel, theta: np.ndarray) -> tuple[np.ndarray, ...]:
    return np.array(model.objective.value(theta)), *model.objective.gradient_and_hessian(theta)


def sums_at_once(model: LogisticModel, theta: np.ndarray, left: np.ndarray | None = None) -> tuple[np.ndarray, ...]:
    """Loss, gradient and Hessian of the rows left, each with all rows in one expression."""
    own = model.objective
    left = np.ones(len(own.y)) if left is None else left
    weights = left * (1.0 if own.weights is None else own.weights)
    lam = own.penalty.strength(int(left.sum())) * own.penalised
    x = own.design(own.X)
    p = expit(x @ theta)
    value = -weights @ np.log(np.where(own.y > 0, p, 1 - p)) + lam @ theta**2 / 2
    gradient = (weights * (p - own.y)) @ x + lam * theta
    return value, gradient, (x.T * (weights * p * (1 - p))) @ x + np.diag(lam)


def looks(model: LogisticModel, thetas: np.ndarray, sets: list[np.ndarray]) -> tuple[np.ndarray, ...]:
    return tuple(BatchedNewton(model).look(thetas, Deletions.of(sets, 4)))


def streamed(model: LogisticModel, people: np.ndarray, k: int) -> tuple[np.ndarray, ...]:
    effects = StreamedRowEffects(model)
    worst = effects.worst(model.score_gradient(people), k)
    rows = np.full((len(people), k), -1)
    for person in range(len(people)):
        found = np.sort(worst.of(person))
        rows[person, : len(found)] = found
    return rows, worst.drops, effects.shifts(worst)


def in_every_way(
    compute: Callable[[], tuple[np.ndarray, ...]], chunk_sizes: Callable[[int], None]
) -> list[tuple[np.ndarray, ...]]:
    """What comes out for chunks of some sizes by each runner; threads are to the bit what one after another gives."""
    found = []
    for size in (1, 7, 53, 1000):
        chunk_sizes(size)
        by_name = {}
        for name in ("serial", "three threads", "any grouping"):
            with using(name):
                by_name[name] = compute()
        found += by_name.values()
        for one, other in zip(by_name["serial"], by_name["three threads"], strict=True):
            np.testing.assert_array_equal(one, other)
    return found


@pytest.mark.parametrize("weights", [False, True])
@pytest.mark.parametrize("options", OPTIONS)
def test_newton_sums(options: dict, weights: bool, monkeypatch: pytest.MonkeyPatch) -> None:
    model = model_of(options, weights)
    theta = model.theta + np.random.default_rng(0).normal(size=len(model.theta))
    truth = sums_at_once(model, theta)
    for found in in_every_way(lambda: sums(model, theta), lambda size: monkeypatch.setattr(objective, "CHUNK", size)):
        for one, true in zip(found, truth, strict=True):
            np.testing.assert_allclose(one, true, rtol=1e-12, atol=1e-12)


@pytest.mark.parametrize("pairs", ["kept", "made in chunks"])
@pytest.mark.parametrize("options", OPTIONS)
def test_looks_at_many_models(options: dict, pairs: str, monkeypatch: pytest.MonkeyPatch) -> None:
    model, rng = model_of(options, True), np.random.default_rng(1)
    thetas = model.theta + rng.normal(size=(6, len(model.theta)))
    sets = [rng.choice(53, size=4, replace=False) for _ in thetas]

    def chunk_sizes(size: int) -> None:
        columns = len(np.triu_indices(len(model.theta))[0])
        monkeypatch.setattr(squares, "CHUNK", size)
        monkeypatch.setattr(squares, "PAIRS_BYTES", 2**28 if pairs == "kept" else 64 * columns * min(size, 6))

    x, sign = model.design(model.train.X), 1 - 2 * model.train.y
    for gradients, hessians, pulls in in_every_way(lambda: looks(model, thetas, sets), chunk_sizes):
        np.testing.assert_allclose(pulls, expit(sign * (thetas @ x.T)), rtol=1e-12)
        for theta, chosen, gradient, hessian in zip(thetas, sets, gradients, hessians, strict=True):
            left = np.ones(53)
            left[chosen] = 0.0
            _, true_gradient, true_hessian = sums_at_once(model, theta, left)
            np.testing.assert_allclose(gradient, true_gradient, rtol=1e-11, atol=1e-11)
            np.testing.assert_allclose(hessian, true_hessian, rtol=1e-11, atol=1e-11)


@pytest.mark.parametrize("k", [1, 5, 40])
@pytest.mark.parametrize("options", OPTIONS)
def test_streamed_row_effects_and_their_worst_rows(options: dict, k: int, monkeypatch: pytest.MonkeyPatch) -> None:
    model = model_of(options, True)
    people = np.random.default_rng(2).normal(size=(9, model.train.X.shape[1]))
    effects = model.row_gradients() @ np.linalg.inv(model.curvature().hessian)
    values = model.score_gradient(people) @ effects.T
    drops = [row[np.argsort(row)[:k]].clip(max=0).sum() for row in values]
    chosen = [np.flatnonzero((row <= np.sort(row)[k - 1]) & (row < 0)) for row in values]

    def chunk_sizes(size: int) -> None:
        monkeypatch.setattr(row_effects, "CHUNK_BYTES", 8 * len(model.theta) * size)

    for rows, found, shifts in in_every_way(lambda: streamed(model, people, k), chunk_sizes):
        assert [row[row >= 0].tolist() for row in rows] == [own.tolist() for own in chosen]
        np.testing.assert_allclose(found, drops, rtol=1e-10, atol=1e-12)
        np.testing.assert_allclose(shifts, [effects[own].sum(axis=0) for own in chosen], rtol=1e-9, atol=1e-12)


@settings(max_examples=60, deadline=None)
@given(st.integers(0, 200), st.integers(1, 50), st.integers(1, 5), st.integers(0, 10**6))
def test_any_chunks_threads_and_grouping(rows: int, chunk: int, threads: int, seed: int) -> None:
    values = np.random.default_rng(seed).normal(size=rows)
    parts = chunks(rows, chunk)
    assert np.concatenate([np.arange(rows)[part] for part in parts]).tolist() == list(range(rows))
    assert all(part.stop - part.start <= chunk for part in parts)
    for runner in (SERIAL, Threads(threads), AnyGrouping(seed)):
        total = over_rows(lambda part: values[part].sum(), lambda a, b: a + b, rows, chunk, runner)
        assert total == pytest.approx(values.sum(), abs=1e-10)
        together = np.concatenate(each(lambda part: values[part], parts, runner))
        np.testing.assert_array_equal(together, values)


@pytest.mark.parametrize("runner", [SERIAL, Threads(2)], ids=["serial", "threads"])
def test_partial_results_do_not_pile_up(runner: object) -> None:
    alive, most = 0, 0

    class Partial:
        def __init__(self) -> None:
            nonlocal alive, most
            alive += 1
            most = max(most, alive)

        def __del__(self) -> None:
            nonlocal alive
            alive -= 1

    def merge(first: Partial, second: Partial) -> Partial:
        time.sleep(0.001)  # slower than what is merged
        return first

    over_rows(lambda part: Partial(), merge, 200, 1, runner)
    assert most <= 8


def test_an_error_in_a_chunk_comes_out() -> None:
    for runner in (SERIAL, Threads(3)):
        with pytest.raises(ZeroDivisionError):
            over_rows(lambda part: 1 // (part.start - 5), lambda a, b: a + b, 20, 1, runner)


def test_a_runner_is_chosen_for_all_threads_and_only_within() -> None:
    class Counting:
        calls = 0

        def run(self, partial: Callable, merge: Callable, parts: list[slice]) -> object:
            Counting.calls += 1
            return SERIAL.run(partial, merge, parts)

    RUNNERS["any grouping"] = Counting()
    model = model_of({"C": 1.0}, False)
    with using("any grouping"), ThreadPoolExecutor(1) as pool:
        pool.submit(model.objective.value, model.theta).result()
        with using("serial"):
            model.objective.value(model.theta)
    model.objective.value(model.theta)
    assert Counting.calls == 1
    with pytest.raises(OptionError, match="Expected one of the runners serial, threads"), using("cluster"):
        pass
