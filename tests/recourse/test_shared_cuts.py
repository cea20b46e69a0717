"""Cuts found for a few people spare the others readings, and change no answer."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from problems import random_training_set
from rocerf import LogisticModel, Rocerf
from rocerf.deletion.near_rows import NearRows
from rocerf.recourse.solvers import cutting_plane


@pytest.mark.parametrize("rounds", [1, 2, 50])
def test_shared_cuts_spare_readings_and_change_no_answer(rounds: int, monkeypatch: pytest.MonkeyPatch) -> None:
    model = LogisticModel.fit(random_training_set(3, n=400, d=4), C=1.0)
    people = random_training_set(4, n=600, d=4).X
    people = people[model.predict(people) == 0]
    read, found = [0], NearRows.worst

    def counted(self: NearRows, directions: np.ndarray, *others: Any) -> Any:
        read[0] += len(directions)
        return found(self, directions, *others)

    monkeypatch.setattr(NearRows, "worst", counted)
    answers = []
    for many in (10**9, 1):
        monkeypatch.setattr(cutting_plane, "MANY_PEOPLE", many)
        monkeypatch.setattr(cutting_plane, "FIRST_READ", 20)
        monkeypatch.setattr(cutting_plane, "SHARED_ROUNDS", rounds)
        recourses = Rocerf(model, 6, promise="first_order").explain(people)
        answers.append((recourses.costs, recourses.answered, read[0]))
        read[0] = 0
    (alone, answered, readings), (shared, too, fewer) = answers
    assert len(people) > 100
    assert (answered == too).all()
    assert fewer < 0.9 * readings
    np.testing.assert_allclose(shared, alone, atol=1e-5)
