"""How long preparing will take: told beforehand, and told on the way."""

from __future__ import annotations

import logging
from time import process_time
from typing import Any

import numpy as np
import pytest
from sklearn.tree import DecisionTreeClassifier

from networks import moons, small_network
from noisy import NOISES, REFUSED, Noisy
from problems import random_training_set
from rocerf import EstimatorModel, LogisticModel, NeuralModel, Rocerf
from rocerf.explainer import preparation
from rocerf.promises import Simulated, simulated
from rocerf.recourse.solvers import search, sequential
from stepped import Stepped

FEW = Simulated(validity=0.8, shaping=6, choosing=8, checking=4)


@pytest.fixture
def few(monkeypatch: pytest.MonkeyPatch) -> None:
    """Few people decide, and points are not polished."""
    monkeypatch.setattr(simulated, "PEOPLE", 5)
    monkeypatch.setattr(sequential, "FULL_STEPS", 5)
    monkeypatch.setattr(sequential, "ROUNDS", 1)


@pytest.fixture
def own_clock(monkeypatch: pytest.MonkeyPatch) -> None:
    """The processor's time of this process: other work on the machine is no part of what is expected or taken."""
    monkeypatch.setattr("rocerf.models.expected_time.perf_counter", process_time)


def within(expected_and_truth: Any, factor: float = 3.0) -> bool:
    """Whether one of three expectations is right up to a factor: each is of few and short trials."""
    for _ in range(3):
        expected, truth = expected_and_truth()
        if truth / factor < expected < truth * factor:
            return True
    return False


@pytest.mark.slow
@pytest.mark.usefixtures("own_clock")
@pytest.mark.parametrize("retraining", ["fresh", "warm"])
def test_networks_know_how_long_they_train(retraining: Any, figures: list[str]) -> None:
    model = NeuralModel.fit(moons(400), epochs=60, learning_rate=0.3, width=8)

    def expected_and_truth() -> tuple[float, float]:
        start = process_time()
        expected = model.seconds_to_retrain(100, retraining=retraining)
        asked = process_time()
        model.refitted([model.train.ids[:3]] * 100, retraining=retraining)
        tried, truth = asked - start, process_time() - asked
        figures.append(
            f"100 networks, {retraining}: {expected:.1f} s expected after {tried:.2f} s, {truth:.1f} s taken"
        )
        assert expected is not None
        return expected, truth

    assert within(expected_and_truth)


def test_estimators_know_how_long_they_train(monkeypatch: pytest.MonkeyPatch) -> None:
    model = EstimatorModel.fit(DecisionTreeClassifier(random_state=0), random_training_set(0, n=50))
    clock = iter(np.arange(100.0))
    monkeypatch.setattr("rocerf.models.expected_time.perf_counter", lambda: next(clock))
    assert model.seconds_to_retrain(70) == 70.0  # one fit takes a second by this clock


def test_a_users_own_training_is_tried_once() -> None:
    calls: list[int] = []
    module = small_network().module

    def refit(train: Any, seed: int, start: Any) -> Any:
        calls.append(seed)
        return module

    own = NeuralModel.from_torch(module, small_network().train, refit=refit)
    expected = own.seconds_to_retrain(50)
    assert expected is not None
    assert 0.0 < expected < 10.0
    assert 1 <= len(calls) <= 3
    assert NeuralModel.from_torch(module, small_network().train).seconds_to_retrain(50) is None


def test_who_does_not_know_says_nothing_and_what_is_there_takes_no_time() -> None:
    assert Rocerf(Noisy(NOISES["both"]), 6, promise=FEW).expected_seconds() is None
    assert Rocerf(LogisticModel.fit(random_training_set(1, n=60)), 1).expected_seconds() is None
    explainer = Rocerf(small_network(), 2, promise=FEW)
    assert explainer.expected_seconds() > 0.0
    explainer.promise.factor = 1.0
    assert explainer.expected_seconds() == 0.0


@pytest.mark.slow
@pytest.mark.usefixtures("own_clock")
def test_choosing_counts_as_well(monkeypatch: pytest.MonkeyPatch, figures: list[str]) -> None:
    monkeypatch.setattr(simulated, "PEOPLE", 8)
    model = NeuralModel.fit(moons(200), epochs=30, learning_rate=0.5, width=8)

    def expected_and_truth() -> tuple[float, float]:
        explainer = Rocerf(model, 4, promise=Simulated(validity=0.9, shaping=15, choosing=20, checking=10))
        expected = explainer.expected_seconds()
        assert expected is not None
        start = process_time()
        explainer.prepare(lambda done, total: None)
        truth = process_time() - start
        figures.append(f"simulated for a small network: {expected:.1f} s expected, {truth:.1f} s taken")
        return expected, truth

    assert within(expected_and_truth)


@pytest.mark.slow
@pytest.mark.usefixtures("own_clock")
def test_answering_with_picked_deletions_is_guessed_up_to_a_factor_of_five(figures: list[str]) -> None:
    model = NeuralModel.fit(moons(300), epochs=40, learning_rate=0.5, width=8)
    people = model.train.X[model.predict(model.train.X) == 0][:12]

    def expected_and_truth() -> tuple[float, float]:
        explainer = Rocerf(model, 3, promise="retrained")
        guess = (explainer.expected_seconds() or 0.0) + (explainer.promise.answering_seconds(len(people)) or 0.0)
        start = process_time()
        explainer.explain(people, progress=lambda done, total: None)
        truth = process_time() - start
        figures.append(
            f"retrained for a small network, {len(people)} people: {guess:.1f} s expected, {truth:.1f} s taken"
        )
        return guess, truth

    assert within(expected_and_truth, 5.0)


class Slow(Stepped):
    """Says how long it trains, and does not."""

    def __init__(self, seconds: float) -> None:
        super().__init__()
        self.seconds = seconds

    def seconds_to_retrain(self, count: int, *, retraining: Any = "fresh") -> float:
        return self.seconds


def test_a_long_wait_is_announced_unless_progress_is_shown(
    monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    monkeypatch.setattr(simulated, "seconds_to_answer", lambda model, models, searched: 0.0)
    monkeypatch.setattr(simulated, "PEOPLE_SEARCHED", 2)
    monkeypatch.setattr(search, "BUDGET", 300)
    people = np.array([[0.0]])
    with caplog.at_level(logging.WARNING, logger="rocerf"):
        Rocerf(Slow(30.0), 2, promise=FEW).explain(people)  # half a minute is no long wait
        Rocerf(Slow(600.0), 2, promise=FEW).explain(people, progress=lambda done, total: None)
        assert not caplog.records
        Rocerf(Slow(600.0), 2, promise=FEW).explain(people)
    (record,) = caplog.records
    assert record.getMessage().startswith("about 10 minutes before anybody can be answered; 18 models are retrained")
    assert "Simulated(shaping=3, choosing=4, checking=2)" in record.getMessage()


def test_a_wait_that_nobody_knows_of_is_not_announced() -> None:
    assert preparation.announcement(Rocerf(Noisy(NOISES["both"]), 6, promise=FEW)) is None


# --- on the way ---------------------------------------------------------------------------------------


def steady(told: list[tuple[int, int]]) -> None:
    """Progress rises, never beyond the total, which stays and is reached."""
    assert len(told) > 2
    done = [step for step, _ in told]
    assert done == sorted(done)
    assert {total for _, total in told} == {told[-1][1]}
    assert told[-1][0] == told[-1][1]


@pytest.mark.usefixtures("few")
@pytest.mark.parametrize("margin", ["spread", "fixed", "count"])
@pytest.mark.parametrize("kind", ["network", "noisy", "stepped"])
def test_progress_rises_through_retraining_and_choosing_to_its_end(kind: str, margin: Any) -> None:
    model: Any = {"network": small_network, "noisy": lambda: Noisy(NOISES["both"]), "stepped": Stepped}[kind]()
    told: list[tuple[int, int]] = []
    options = Simulated(validity=0.8, shaping=5, choosing=6, checking=3, margin=margin)
    promise = options.about(model, 2)
    tried = iter(np.linspace(0.2, 30.0, 50))

    def solve(asked: Any, X0: np.ndarray) -> np.ndarray:  # points that get better
        return X0 + next(tried)

    promise.prepare(solve, lambda done, total: told.append((done, total)))
    steady(told)


@pytest.mark.usefixtures("few")
def test_preparing_and_people_can_be_told_apart() -> None:
    people: list[tuple[int, int]] = []
    preparing: list[tuple[int, int]] = []
    explainer = Rocerf(Noisy(NOISES["both"]), 6, promise=FEW)
    told = {
        "progress": lambda done, total: people.append((done, total)),
        "preparing": lambda done, total: preparing.append((done, total)),
    }
    explainer.explain(REFUSED[:3], **told)
    assert preparing[-1] == (1000, 1000)
    assert people[-1] == (3, 3)
    assert all(total == 3 for _, total in people)
