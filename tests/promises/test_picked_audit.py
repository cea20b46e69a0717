"""The audit of simulated answers: what picked rows do to points that were chosen for random ones."""

from __future__ import annotations

import json
from functools import cache
from typing import Any

import numpy as np
import pytest

from held_up import HeldUp
from problems import random_training_set
from rocerf import LogisticModel, Recourses, Rocerf
from rocerf.errors import OptionError
from rocerf.promises import Simulated, margin_choice, simulated
from rocerf.promises.picked import AUDIT, PickedCheck
from rocerf.recourse.solvers import sequential

#: Four rows hold everybody up; random deletions of up to 4 of 80 rows seldom meet one of them.
LIFTS, K = (1.0, 1.0, 1.0, 1.0), 4
PEOPLE = np.array([[-1.0], [-2.0], [0.5], [np.nan]])
FEW: dict[str, Any] = {"validity": 0.8, "shaping": 10, "choosing": 12, "checking": 20}


@pytest.fixture(autouse=True)
def few(monkeypatch: pytest.MonkeyPatch) -> None:
    """Few people decide the margin, roughly, and points are not polished."""
    monkeypatch.setattr(simulated, "PEOPLE", 3)
    monkeypatch.setattr(margin_choice, "HALVINGS", 1)
    monkeypatch.setattr(sequential, "FULL_STEPS", 3)
    monkeypatch.setattr(sequential, "ROUNDS", 1)


@cache
def answers(*, audit: bool, lifts: tuple[float, ...] = LIFTS) -> tuple[Rocerf, Recourses]:
    explainer = Rocerf(HeldUp(lifts, 0.1, rows=80), K, promise=Simulated(**FEW, audit=audit))
    return explainer, explainer.explain(PEOPLE)


def test_points_that_random_deletions_spare_fall_to_picked_ones() -> None:
    explainer, recourses = answers(audit=True)
    assert recourses.held_out is not None
    assert recourses.picked is not None
    assert recourses.held_out.validity > 0.7
    model = explainer.model
    assert isinstance(model, HeldUp)
    assert model.chance(float(recourses.matrix[0, 0]), K) < 1e-6  # by hand
    assert recourses.picked.validity == 0.0
    assert recourses.picked.accepted.tolist() == [0, 0, -1, -1]
    assert recourses.picked.retrainings == AUDIT[0] * AUDIT[1]
    assert recourses.picked.picked
    spared = answers(audit=True, lifts=())[1]
    assert spared.picked is not None
    assert spared.picked.validity > 0.7  # where no row matters, picking does no harm


def test_the_promise_is_the_same_with_and_without() -> None:
    (_, plain), (_, audited) = answers(audit=False), answers(audit=True)
    np.testing.assert_array_equal(plain.matrix, audited.matrix)
    assert plain.settings == audited.settings
    assert plain.held_out is not None
    assert audited.held_out is not None
    assert plain.held_out.to_dict() == audited.held_out.to_dict()
    assert [r.promise for r in plain] == [r.promise for r in audited]  # letters grow no longer
    assert plain.picked is None
    assert [r.picked for r in plain] == [None] * 4


def test_each_person_s_audit_is_a_sentence_in_both_languages() -> None:
    _, recourses = answers(audit=True)
    said: Any = recourses[0].picked
    assert said.startswith(
        "beyond what is promised, with at most 4 training rows deleted that were picked to do harm: "
    )
    assert "accepted by 0 of 20 models retrained to check it without rows picked" in said
    german = said.in_language("de")
    assert german.startswith("über das Zugesagte hinaus, wenn höchstens 4 Trainingszeilen gelöscht werden")
    assert "angenommen von 0 von 20 Modellen" in german
    assert [recourses[place].picked for place in (2, 3)] == ["nothing was checked"] * 2


def test_json_keeps_it_and_files_without_it_are_read() -> None:
    _, recourses = answers(audit=True)
    again = Recourses.from_json(recourses.to_json())
    assert again.picked is not None
    assert recourses.picked is not None
    assert again.picked.to_dict() == recourses.picked.to_dict()
    assert [r.picked for r in again] == [r.picked for r in recourses]
    assert json.loads(recourses.to_json())["picked"]["picked"] is True
    without = answers(audit=False)[1]
    assert "picked" not in json.loads(without.to_json())  # as files were before
    assert Recourses.from_json(without.to_json()).picked is None


def test_letters_do_not_carry_it_over_to_rounded_points() -> None:
    explainer, recourses = answers(audit=True)
    (letter, *_) = explainer.letters(recourses, valid_until=None)
    text = " ".join(letter.to_text().split())
    assert "beyond what is promised" not in text
    assert "says nothing about deletions picked to do harm" in text


def test_its_models_have_starts_of_their_own() -> None:
    model = HeldUp(LIFTS, 0.1)
    promise = Simulated(**FEW, audit=True).about(model, K, seed=3)
    point = np.array([[4.0]])
    promise.picked(point)
    check = promise._audit
    audited = np.concatenate([groups.models.bars for groups in check._groups]) - 4.0
    assert len(np.unique(audited)) == len(audited) == 20
    assert not set(np.round(audited, 9)) & set(np.round(promise.models.bars, 9))
    other = PickedCheck.auditing(model, K, 0.95, 4)
    other.of(point)
    assert not np.array_equal(other._groups[0].models.bars, check._groups[0].models.bars)
    before = model.retrained
    promise.picked(point)
    assert model.retrained == before  # groups are kept


def test_its_option_is_kept_and_absent_from_former_states() -> None:
    model = HeldUp(LIFTS, 0.1)
    promise = Simulated(**FEW, audit=True).about(model, K)
    again = Simulated().about(model, K)
    again.restore(promise.state())
    assert again.options.audit
    former = promise.state()
    values = {name: value for name, value in former.values.items() if name != "audit"}
    again.restore(type(former)(former.format, values, former.arrays))
    assert not again.options.audit


def test_the_time_of_an_audit_is_told() -> None:
    model = HeldUp(LIFTS, 0.1)
    assert Simulated(**FEW, audit=True).about(model, K).answering_seconds(7) == 2 * (1 + 10 * 7)
    assert Simulated(**FEW).about(model, K).answering_seconds(7) == 0.0
    told: list[tuple[int, int]] = []
    explainer = Rocerf(model, K, promise=Simulated(**FEW, audit=True))
    explainer.prepare(lambda done, total: None)
    explainer.explain(PEOPLE, progress=lambda done, total: told.append((done, total)))
    assert told == sorted(told)
    assert told[-1] == (1000, 1000)


def test_a_logistic_model_is_sent_to_its_adversary() -> None:
    model = LogisticModel.fit(random_training_set(1, n=60))
    with pytest.raises(OptionError, match=r"audit=True.*got LogisticModel; attack the points themselves"):
        Rocerf(model, 1, promise=Simulated(audit=True))
