"""How far long work is: said in time, rightly, and only to people."""

from __future__ import annotations

import logging

import numpy as np
import pytest

import rocerf
import rocerf.progress
from problems import random_training_set, refused_people
from rocerf import Adversary, LogisticModel, Rocerf
from rocerf.progress import FIRST, LONG, NEXT, SHARES, Foretold, Lines, following, showing, shown


class Clock:
    def __init__(self) -> None:
        self.now = 0.0

    def __call__(self) -> float:
        return self.now


def test_lines_come_late_seldom_and_with_the_time_that_is_left() -> None:
    clock, lines = Clock(), []
    tell = Lines(lines.append, clock)
    for second in range(100):
        clock.now = float(second)
        tell("people", second, 100)
    assert len(lines) == 1 + (99 - int(FIRST)) // int(NEXT)
    assert lines[0] == "people: 2 of 100, about 1 min 38 s left"
    assert lines[-1] == "people: 92 of 100, about 8 s left"
    quick: list[str] = []
    clock.now = 0.0
    tell = Lines(quick.append, clock)
    for place in range(10):
        clock.now += FIRST / 20
        tell("people", place + 1, 10)
    assert quick == []


def test_shares_of_several_stages_are_no_counts_of_people() -> None:
    clock, lines = Clock(), []
    tell = Lines(lines.append, clock)
    for second in range(4):
        clock.now = float(second)
        tell("people", 50 * second, SHARES)
    assert lines[0] == "people: 10%, about 18 s left"


def test_short_passes_say_nothing_however_many_there_are_and_a_long_one_does() -> None:
    clock, lines, foretold = Clock(), [], []
    tell = Foretold(Lines(lines.append, clock), foretold.append, "ask for less", clock)
    for _ in range(30):  # a tenth of a second each, four seconds apart: two minutes in all
        for part in range(8):
            tell("pass over the rows", part + 1, 8)
            clock.now += 0.1 / 8
        clock.now += 4.0
    assert (lines, foretold) == ([], [])
    for part in range(8):
        tell("pass over the rows", part + 1, 8)
        clock.now += 20.0
    assert lines[0] == "pass over the rows: 2 of 8, about 2 min 0 s left"
    assert foretold == ["pass over the rows: about 2 min 0 s to go; ask for less"]


def test_work_of_which_nothing_is_done_is_named_once_it_takes_long() -> None:
    clock, lines = Clock(), []
    tell = Lines(lines.append, clock)
    for second in range(int(NEXT) + 1):
        assert lines == []
        clock.now = float(second)
        tell("people", 0, 16)
    assert lines == ["people: 0 of 16"]


def test_that_minutes_are_left_is_said_once_with_what_takes_less() -> None:
    clock, said, passed = Clock(), [], []
    tell = Foretold(lambda *step: passed.append(step), said.append, "ask for less", clock)
    for second in range(5):
        clock.now = float(second)
        tell("points", second, 1000)
    assert said == ["points: about 16 min 38 s to go; ask for less"]
    assert len(passed) == 5
    short: list[str] = []
    tell = Foretold(lambda *_: None, short.append, "ask for less", clock)
    clock.now = 0.0
    for second in range(int(LONG)):
        clock.now = float(second)
        tell("points", second, int(LONG))
    assert short == []


def test_progress_true_shows_it_and_a_function_is_called(
    capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(rocerf.progress, "FIRST", 0.0)
    monkeypatch.setattr(rocerf.progress, "NEXT", 0.0)
    model = LogisticModel.fit(random_training_set(3, n=80))
    people = refused_people(model, 0, 4)
    explainer = Rocerf(model, 2, promise="first_order")
    calls: list[tuple[int, int]] = []
    given = explainer.explain(people, progress=lambda done, total: calls.append((done, total)))
    assert calls
    assert capsys.readouterr() == ("", "")
    np.testing.assert_array_equal(explainer.explain(people, progress=True).matrix, given.matrix)
    Adversary(model, 2, effort="quick").attack(given.matrix, progress=True)
    explainer.letters(given, valid_until=None, progress=True)
    explainer.removal_budget(given, most=2, progress=True)
    out, err = capsys.readouterr()
    assert out == ""
    assert "letters: 1 of 4" in err
    assert err.count("\n") == len(err.splitlines())


def test_nothing_is_shown_where_nobody_asked(capsys: pytest.CaptureFixture[str]) -> None:
    with showing(quiet=True) as step:
        step("people", 1, 2)
    for nothing in (None, False):
        with shown((nothing, "people")) as (tell,):
            assert tell is None
    assert capsys.readouterr() == ("", "")


def test_a_long_wait_is_said_before_and_not_logged_where_it_is_shown(
    capsys: pytest.CaptureFixture[str], caplog: pytest.LogCaptureFixture, monkeypatch: pytest.MonkeyPatch
) -> None:
    from rocerf.promises.first_order import FirstOrder

    monkeypatch.setattr(FirstOrder, "expected_seconds", lambda self: 660.0)
    model = LogisticModel.fit(random_training_set(3, n=80))
    people = refused_people(model, 0, 2)
    with caplog.at_level(logging.WARNING, "rocerf"):
        Rocerf(model, 2, promise="first_order").explain(people, progress=True)
        assert caplog.messages == []
        assert "About 11 minutes before anybody can be answered" in capsys.readouterr().err
        Rocerf(model, 2, promise="first_order").explain(people)
    assert "progress=True shows how far it is" in caplog.messages[0]


def test_budgets_of_answers_leave_out_who_has_none() -> None:
    model = LogisticModel.fit(random_training_set(3, n=80))
    people = np.vstack([refused_people(model, 0, 2), np.full((1, model.train.X.shape[1]), np.nan)])
    explainer = Rocerf(model, 2, promise="first_order")
    answers = explainer.explain(people)
    assert answers.answered.tolist() == [True, True, False]
    budget = explainer.removal_budget(answers, most=3)
    assert len(budget) == 3
    assert (budget.found[2], budget.certified[2]) == (-1, -1)
    assert (budget.found[:2] >= 0).all()


def test_mixed_integer_programs_are_counted_one_by_one(monkeypatch: pytest.MonkeyPatch) -> None:
    """They are most of the wait where there are whole numbers, and nobody is done before all of a round are."""
    data = rocerf.load_dataset("german")
    model = LogisticModel.fit(data.train)
    refused = data.test.X[model.predict(data.test.X) == 0][:5]
    explainer = Rocerf(model, 2, promise="first_order", schema=data.schema, cost="l1", max_changes=2)
    seen: list[tuple[str, int, int]] = []
    with following(lambda *step: seen.append(step)):
        explainer.explain(refused)
    assert seen[:5] == [("cheapest points", number, 5) for number in range(1, 6)]

    monkeypatch.setattr(rocerf.progress, "FIRST", 0.0)
    monkeypatch.setattr(rocerf.progress, "NEXT", 0.0)
    lines: list[str] = []
    monkeypatch.setattr(rocerf.progress, "_to_stderr", lines.append)
    explainer.explain(refused, progress=True)
    assert any(line.startswith("cheapest points: ") and line.endswith(" left") for line in lines)
