"""Rounds of attack tell how far they are, can be interrupted, and are announced where they take long."""

from __future__ import annotations

import logging
from functools import cache
from typing import Any

import numpy as np
import pytest

from held_up import HeldUp
from networks import moons
from rocerf import NeuralModel, Rocerf
from rocerf.explainer import preparation
from rocerf.promises import FreshStarts
from rocerf.promises.retrained_groups import BASE_MODELS
from rocerf.recourse.solvers import sequential

LIFTS = (0.5, 0.4, 0.3, 0.2)
QUICK = FreshStarts(starts=2, rounds=3, attackers=1, checking=3)
PEOPLE = np.array([[-1.0], [-2.0], [-0.5]])


class InterruptedByUserError(Exception):
    """Raised by whoever has waited long enough."""


@cache
def network() -> NeuralModel:
    return NeuralModel.fit(moons(), epochs=15, learning_rate=0.5, width=6)


@pytest.fixture(autouse=True)
def rough(monkeypatch: pytest.MonkeyPatch) -> None:
    """Points are not polished."""
    monkeypatch.setattr(sequential, "FULL_STEPS", 3)
    monkeypatch.setattr(sequential, "ROUNDS", 1)


@pytest.mark.parametrize("kind", ["held up", "network"])
def test_progress_rises_through_rounds_and_checks_to_its_end(kind: str) -> None:
    model: Any = HeldUp(LIFTS, 0.1) if kind == "held up" else network()
    people = PEOPLE if kind == "held up" else model.train.X[model.predict(model.train.X) == 0][:3]
    told: list[tuple[int, int]] = []
    preparing: list[tuple[int, int]] = []
    explainer = Rocerf(model, 2, promise=QUICK)
    recourses = explainer.explain(
        people,
        progress=lambda done, total: told.append((done, total)),
        preparing=lambda done, total: preparing.append((done, total)),
    )
    assert recourses.answered.any()
    assert told == sorted(told)
    assert {total for _, total in told} == {1000}
    assert told[-1] == (1000, 1000)
    assert len({done for done, _ in told if 0 < done < 1000}) >= 4  # not only the two ends
    assert preparing[-1][0] == preparing[-1][1] > 0


def test_what_is_told_does_not_change_the_answers() -> None:
    silent = Rocerf(HeldUp(LIFTS, 0.1), 2, promise=QUICK).explain(PEOPLE)
    told = Rocerf(HeldUp(LIFTS, 0.1), 2, promise=QUICK).explain(PEOPLE, progress=lambda done, total: None)
    np.testing.assert_array_equal(silent.matrix, told.matrix)


def interrupted_after(explainer: Rocerf, calls: int) -> bool:
    """Whether an explanation was interrupted at this call of its progress."""
    seen = 0

    def progress(done: int, total: int) -> None:
        nonlocal seen
        seen += 1
        if seen == calls:
            raise InterruptedByUserError

    try:
        explainer.explain(PEOPLE, progress=progress)
    except InterruptedByUserError:
        return True
    return False


def test_whenever_it_is_interrupted_the_promise_stays_usable() -> None:
    """In preparing, attacking and checking; afterwards people are answered, at about the cost of a fresh one."""
    told: list[int] = []
    fresh = Rocerf(HeldUp(LIFTS, 0.1), 2, promise=QUICK)
    undisturbed = fresh.explain(PEOPLE, progress=lambda done, total: told.append(done))
    for calls in np.unique(np.linspace(1, len(told), 9).astype(int)):
        explainer = Rocerf(HeldUp(LIFTS, 0.1), 2, promise=QUICK)
        promise: Any = explainer.promise
        assert interrupted_after(explainer, calls)
        if promise.prepared:  # whole groups, and what the searches of the pool are said to be has really run
            pool = promise.pool
            assert len(pool.models) == pool.sizes.sum() == sum(count * each for _, count, each, _ in pool.calls)
            assert promise.searches == () or len(pool) > 1
        recourses = explainer.explain(PEOPLE)
        assert recourses.answered.all()
        assert (promise.check(recourses.matrix, PEOPLE) >= 0).all()
        np.testing.assert_allclose(recourses.costs, undisturbed.costs, rtol=0.25)


def test_an_interrupted_preparation_has_not_happened() -> None:
    explainer = Rocerf(HeldUp(LIFTS, 0.1), 2, promise=QUICK)
    assert interrupted_after(explainer, 3)
    assert not explainer.promise.prepared
    assert explainer.expected_seconds() == BASE_MODELS


def test_the_wait_is_announced_as_the_rough_guess_it_is(caplog: pytest.LogCaptureFixture) -> None:
    """The model says that a fit takes a second."""
    explainer = Rocerf(HeldUp(LIFTS, 0.1), 2, promise=QUICK)
    assert explainer.expected_seconds() == BASE_MODELS
    ten = explainer.promise.answering_seconds(10)
    assert ten == pytest.approx(10 * 3 * 2 + 1 + 10 * 3, abs=2.0)  # groups, and models that check
    line = preparation.announcement(explainer, 10)
    assert line is not None
    assert line.startswith("very roughly 2 minutes for 10 people, as models are retrained for each")
    assert "FreshStarts(starts=2, rounds=1, checking=1)" in line
    assert preparation.announcement(explainer) is None  # preparing alone is short
    with caplog.at_level(logging.WARNING, logger="rocerf"):
        explainer.explain(PEOPLE, progress=lambda done, total: None)
        assert not caplog.records
        Rocerf(HeldUp(LIFTS, 0.1), 2, promise=FreshStarts()).explain(PEOPLE)
    (record,) = caplog.records
    assert "very roughly" in record.getMessage()
    assert "for 3 people" in record.getMessage()
    assert explainer.expected_seconds() == 0.0
