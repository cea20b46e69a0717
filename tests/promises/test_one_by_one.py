"""Where no margin serves the training rows, nobody is lost: people are answered one by one, or told why not."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pytest
from sklearn.ensemble import RandomForestClassifier
from sklearn.tree import DecisionTreeClassifier

from noisy import NOISES, REFUSED, SLOPES, Noisy
from problems import random_training_set, refused_people
from rocerf import EstimatorModel, FeatureSchema, LogisticModel, Rocerf, Status, TrainingSet
from rocerf.promises import Simulated, margin_choice, simulated
from rocerf.recourse.solvers import search, sequential
from rocerf.words import language_named
from stepped import Stepped

OPTIONS = Simulated(validity=0.8, shaping=20, choosing=20, checking=30)


@pytest.fixture(autouse=True)
def _short(monkeypatch: pytest.MonkeyPatch) -> None:
    """Few people decide, and points are not polished."""
    monkeypatch.setattr(simulated, "PEOPLE", 5)
    monkeypatch.setattr(simulated, "PEOPLE_SEARCHED", 5)
    monkeypatch.setattr(margin_choice, "DOUBLINGS", 3)
    monkeypatch.setattr(sequential, "FULL_STEPS", 5)
    monkeypatch.setattr(sequential, "ROUNDS", 1)
    monkeypatch.setattr(search, "BUDGET", 600)


def everybody_has_an_answer_or_a_reason(recourses: Any) -> None:
    for person in range(len(recourses)):
        if recourses.statuses[person] is Status.ANSWERED:
            assert np.isfinite(recourses.matrix[person]).all()
        else:
            assert np.isnan(recourses.matrix[person]).all()
            assert recourses.reasons[person]


@pytest.mark.parametrize("margin", ["spread", "fixed"])
def test_people_are_told_why_where_slopes_change_their_sign(margin: str) -> None:
    """However far a person goes, a third of the models refuses: no margin, and no point, but no error either."""
    model = Noisy(np.diag([3.0, 3.0, 0.0]))
    explainer = Rocerf(model, 6, promise=Simulated(validity=0.9, margin=margin, checking=5))
    recourses = explainer.explain(REFUSED[:3])
    assert explainer.promise.one_by_one
    assert not recourses.answered.any()
    everybody_has_an_answer_or_a_reason(recourses)
    assert set(recourses.statuses) <= {Status.NOT_ROBUST, Status.GAVE_UP}


def test_nothing_that_may_change_is_no_error() -> None:
    model = Noisy(NOISES["both"])
    schema = FeatureSchema.free(model.train.columns)
    for name in model.train.columns:
        schema = schema.edit(name, direction="fixed")
    recourses = Rocerf(model, 6, promise=OPTIONS, schema=schema).explain(REFUSED[:3])
    everybody_has_an_answer_or_a_reason(recourses)
    assert not recourses.answered.any()


def test_a_model_that_refuses_none_of_its_rows_answers_people_one_by_one() -> None:
    """Nobody in the training rows can decide the margin, but people beyond them are refused and do ask."""
    model = Noisy(NOISES["shared by people"])
    model._train = TrainingSet(model.train.X + 4 * SLOPES, model.train.y.astype(int))
    assert model.predict(model.train.X).all()
    explainer = Rocerf(model, 6, promise=Simulated(validity=0.9))
    recourses = explainer.explain(REFUSED[:10])
    assert explainer.promise.one_by_one
    assert recourses.answered.all()
    assert model.chances(recourses.matrix).mean() >= 0.9
    assert recourses.held_out.validity >= 0.85


def test_each_point_is_accepted_by_enough_models_and_the_checking_ones_stay_out_of_it() -> None:
    """Some models are beyond reach, so no margin holds on average; a share that can be had is had one by one."""
    model = Stepped(noise=0.2, moody=0.04)
    explainer = Rocerf(model, 3, promise=OPTIONS, seed=1)
    promise: Any = explainer.promise
    promise.choose(lambda promise, X0: np.full_like(X0, np.nan))  # nobody can be answered at any margin
    assert promise.one_by_one
    people = np.array([[-1.0], [0.0], [0.6]])
    recourses = explainer.explain(people)
    assert recourses.answered.all()
    deciding = promise.models[:40].scores(recourses.matrix) >= 0
    enough = promise._enough["enough"]
    assert 33 <= enough <= 38
    assert (deciding.sum(axis=0) >= enough).all()
    below = promise.models[:40].scores(recourses.matrix - 0.25) >= 0  # one step less would not have done
    assert (below.sum(axis=0) < enough).all()
    checked = promise.models[40:].scores(recourses.matrix) >= 0
    np.testing.assert_array_equal(recourses.held_out.accepted, checked.sum(axis=0))

    promise._models = promise.models[:40].joined(type(promise.models)(np.full(30, 1e3), np.ones(30)))
    spoilt = explainer.explain(people)
    np.testing.assert_array_equal(spoilt.matrix, recourses.matrix)  # they decide nothing
    assert spoilt.held_out.validity == 0.0  # but they report


def test_an_answer_does_not_depend_on_who_else_asks() -> None:
    explainer = Rocerf(Stepped(noise=0.2), 3, promise=OPTIONS)
    explainer.promise.choose(lambda promise, X0: np.full_like(X0, np.nan))
    people = np.array([[-1.0], [0.0], [0.6]])
    together = explainer.explain(people)
    for place in range(3):
        np.testing.assert_array_equal(explainer.explain(people[[place]]).matrix[0], together.matrix[place])


def test_it_is_said_which_way_the_margin_was_made() -> None:
    model = Stepped(noise=0.2)
    explainer = Rocerf(model, 3, promise=OPTIONS)
    assert any("a number of standard deviations" in sentence for sentence in explainer.settings().assumptions)
    explainer.promise.choose(lambda promise, X0: np.full_like(X0, np.nan))
    enough = explainer.promise._enough["enough"]
    settings = explainer.settings()
    assert f"was accepted by at least {enough} of 40 models really retrained" in settings.sentence
    assert "on average" not in settings.sentence
    assert any("no margin was found at which 80%" in sentence for sentence in settings.assumptions)
    german = language_named("de")
    said = [german.written(sentence) for sentence in (settings.sentence, *explainer.promise.assumptions)]
    assert f"von mindestens {enough} von 40 Modellen" in said[0]
    assert "kein Abstand" in said[2]


def test_sizes_of_deletions_are_averaged_over_and_that_is_said() -> None:
    promise = OPTIONS.about(Stepped(), 3)
    assert "up to 3 training rows, on average over all numbers from 0 to 3" in promise.sentence(0.0)
    assert any("not about 3 deleted rows alone" in sentence for sentence in promise.assumptions)


@pytest.mark.parametrize("slopes", [True, False])
def test_what_was_decided_one_by_one_comes_back_from_a_file(slopes: bool, tmp_path: Path) -> None:
    train = random_training_set(1, n=60)
    model: Any = (
        LogisticModel.fit(train)
        if slopes
        else EstimatorModel.fit(DecisionTreeClassifier(max_depth=3, splitter="random", random_state=0), train)
    )
    explainer = Rocerf(model, 2, promise=Simulated(validity=0.6, shaping=4, choosing=4, checking=4))
    explainer.promise.choose(lambda promise, X0: np.full_like(X0, np.nan))
    people = refused_people(model, 0, 2)
    found = explainer.explain(people)
    explainer.save(tmp_path / "explainer")
    again = Rocerf.load(tmp_path / "explainer")
    assert again.promise.one_by_one
    assert again.promise.factor == explainer.promise.factor
    np.testing.assert_array_equal(again.explain(people).matrix, found.matrix)
    assert again.settings() == explainer.settings()


def test_options_and_factors_written_before_there_were_counts_still_mean_a_spread() -> None:
    model = LogisticModel.fit(random_training_set(1, n=60))
    promise = Simulated(shaping=3, choosing=3, checking=3, margin="spread").about(model, 2)
    promise.factor = 1.5
    _ = promise.models
    state = promise.state()
    assert set(state.arrays) == {"factor", "model_0", "model_1"}  # what the former code wrote
    options = {
        "validity": 0.99,
        "retraining": "fresh",
        "margin": "spread",
        "shaping": 3,
        "choosing": 3,
        "checking": 3,
        "confidence": 0.95,
    }
    assert state.values == options | {"audit": False}  # which former files do not have
    again = Simulated().about(model, 2)
    again.restore(state)
    assert (again.margin, again.factor, again.one_by_one) == ("spread", 1.5, False)
    np.testing.assert_array_equal(again.read(model.train.X).values, promise.read(model.train.X).values)


@pytest.mark.slow
def test_a_forest_that_no_margin_serves_answers_whom_it_can() -> None:
    """Trees so few that retraining turns them about: 99 % is out of reach, and the batch is there all the same."""
    train = random_training_set(3, n=70, d=3)
    model = EstimatorModel.fit(RandomForestClassifier(3, max_depth=4, random_state=0), train)
    explainer = Rocerf(model, "10%", promise=Simulated(validity=0.99, shaping=20, choosing=20, checking=20))
    recourses = explainer.explain(refused_people(model, 0, 4))
    everybody_has_an_answer_or_a_reason(recourses)
    assert explainer.promise.one_by_one
    if recourses.answered.any():
        scores = explainer.promise.models[:40].scores(recourses.matrix[recourses.answered])
        assert (scores >= 0).all()
