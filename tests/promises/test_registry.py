"""A promise from outside the package: one class and one line make it known by name everywhere."""

from __future__ import annotations

from collections.abc import Iterator
from datetime import date
from pathlib import Path
from typing import Any, Self

import numpy as np
import pytest

from problems import random_training_set, refused_people
from rocerf import FeatureSchema, LogisticModel, Rocerf, load_dataset
from rocerf.errors import OptionError
from rocerf.promises import Certified, Promise, Reading, register_promise
from rocerf.promises.promise import STATE_FORMAT, Solve
from rocerf.promises.registry import PROMISES
from rocerf.storage.state import State
from rocerf.types import Array, Progress


class Cautious(Promise):
    """A margin for each deletion, chosen from the spread of the scores; solvers aim at it."""

    name = "cautious"
    share: float | None = None

    def __init__(self, model: LogisticModel, k: int, room: float = 0.01) -> None:
        super().__init__(model, k)
        self.room = room

    @property
    def prepared(self) -> bool:
        return self.share is not None

    def prepare(self, solve: Solve, progress: Progress | None = None) -> None:
        if not self.prepared:
            self.share = self.room * float(np.std(self.model.score(self.model.train.X)))
            assert np.isfinite(solve(self, self.model.train.X[:3])).all()

    def read(self, X: Array, target: float | Array = -np.inf) -> Reading:
        assert self.share is not None
        today = self.today(X)
        return Reading(today.values - self.k * self.share, today.slopes)

    def sentence(self, delta: float) -> str:
        return f"keeps {self.room:g} spreads for each of {self.k} deletions"

    @property
    def assumptions(self) -> tuple[str, ...]:
        return ("deletions do no more harm than that",)

    def state(self) -> State:
        return State(STATE_FORMAT, {"room": self.room}, {"share": np.array(self.share)})

    def restore(self, state: State) -> None:
        self.room, self.share = state.values["room"], float(state.arrays["share"])

    def anew(self, model: Any) -> Self:
        return type(self)(model, self.k, self.room)


@pytest.fixture
def model() -> LogisticModel:
    return LogisticModel.fit(random_training_set(3, n=80), C=1.0)


@pytest.fixture
def registered() -> Iterator[None]:
    register_promise(
        "cautious",
        lambda model, k, _effort, _seed: Cautious(model, k),
        lambda model: isinstance(model, LogisticModel),
        "a margin for each deletion",
        default_k="10%",
    )
    yield
    del PROMISES["cautious"]


@pytest.mark.usefixtures("registered")
def test_a_promise_from_outside_answers_writes_and_forgets(model: LogisticModel, tmp_path: Path) -> None:
    people = refused_people(model, 3, 6)
    explainer = Rocerf(model, promise="cautious", schema=FeatureSchema.free(model.train.columns))
    assert explainer.k == 8
    answers = explainer.explain(people)
    assert answers.answered.all()
    share = explainer.promise.share
    np.testing.assert_allclose(answers.margins, model.score(answers.matrix) - 8 * share, atol=1e-9)
    assert not answers.certified.any()
    assert answers[0].promise == "keeps 0.01 spreads for each of 8 deletions"
    assert answers.settings.assumptions[-1] == "deletions do no more harm than that"

    letters = explainer.letters(answers, valid_until=date(2030, 1, 1), issued=date(2029, 1, 1))
    assert all("keeps 0.01 spreads" in letter.options[0].promise.sentence for letter in letters)

    explainer.promise.room = 0.02  # an option of its own, not the one that the name stands for
    explainer.save(tmp_path / "kept")
    again = Rocerf.load(tmp_path / "kept")
    assert isinstance(again.promise, Cautious)
    assert (again.promise.room, again.promise.share) == (0.02, share)
    np.testing.assert_allclose(again.explain(people).matrix, answers.matrix, atol=1e-9)

    later = again.forget(model.train.ids[:1])
    assert isinstance(later.promise, Cautious)
    assert (later.promise.room, later.promise.share, later.k) == (0.02, None, 8)
    assert later.promise.model is later.model
    assert later.explain(people).answered.any()


@pytest.mark.usefixtures("registered")
def test_names_are_taken_once_and_suit_some_models(model: LogisticModel) -> None:
    with pytest.raises(OptionError, match="a new name for a promise, got 'cautious'"):
        register_promise("cautious", lambda *_: Cautious(model, 1), lambda _: True, "")
    with pytest.raises(OptionError, match=r"one of retrained, .*, cautious, or a promise object, got 'bold'"):
        Rocerf(model, 1, promise="bold")


def test_what_is_not_registered_answers_but_is_not_saved(model: LogisticModel, tmp_path: Path) -> None:
    explainer = Rocerf(model, 2, promise=Cautious(model, 2))
    assert explainer.explain(refused_people(model, 3, 2)).answered.all()
    with pytest.raises(OptionError, match="made by rocerf to save, got 'cautious'"):
        explainer.save(tmp_path / "kept")
    with pytest.raises(OptionError, match="a promise about k=3 deletions, got one about 2"):
        Rocerf(model, 3, promise=Cautious(model, 2))


def test_k_stays_what_it_was(model: LogisticModel) -> None:
    for named in PROMISES.values():
        if named.suits(model):
            promise = named.make(model, 2, "quick", 0)
            assert promise.name == named.name
            assert named.summary
            with pytest.raises(AttributeError):
                promise.k = 3  # type: ignore[misc]


class Pretender(Cautious):
    """Goes by the name of a promise of ours, whose sentence it does not keep."""

    name = "certified"
    sentence = Promise.sentence


class Unproven(Certified):
    """A proof that does not claim to be one, though its sentence does."""

    proven = False


@pytest.mark.parametrize("kind", [Pretender, Unproven])
def test_nobody_speaks_the_sentence_of_another_promise(kind: type[Any], model: LogisticModel) -> None:
    with pytest.raises(OptionError, match=r"a name of its own.*got 'certified'"):
        Rocerf(model, 1, promise=kind(model, 1))


def test_a_promise_is_called_what_it_is_registered_as(model: LogisticModel) -> None:
    register_promise("renamed", lambda model, k, _effort, _seed: Cautious(model, k), lambda _: True, "")
    try:
        with pytest.raises(OptionError, match="a promise named 'renamed', got one named 'cautious'"):
            Rocerf(model, 1, promise="renamed")
    finally:
        del PROMISES["renamed"]


class Boundless(Cautious):
    """Foresees no harm at all where the model accepts."""

    def read(self, X: Array, target: float | Array = -np.inf) -> Reading:
        today = self.today(X)
        return Reading(np.where(today.values > 0, np.inf, today.values), today.slopes)


def test_a_promise_without_a_limit_is_kept(model: LogisticModel) -> None:
    found = Rocerf(model, 1, promise=Boundless(model, 1)).explain(refused_people(model, 3, 4))
    assert found.answered.all()
    assert np.isposinf(found.margins).all()
    assert '"margin": null' in found.to_json()


def test_plain_by_name_promises_nothing_and_can_be_kept(tmp_path: Path) -> None:
    data = load_dataset("german")
    model = LogisticModel.fit(data.train)
    explainer = Rocerf(model, promise="plain")
    answers = explainer.explain(data.test.X[model.predict(data.test.X) == 0][:3])
    assert explainer.k == 0
    assert "deletion" in str(answers[0].promise)
    assert (model.score(answers.points) >= 0).all()
    explainer.save(tmp_path / "kept")
    again = Rocerf.load(tmp_path / "kept").explain(data.test.X[model.predict(data.test.X) == 0][:3])
    assert (again.points == answers.points).all()
