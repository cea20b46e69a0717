"""An explainer apart from where it is kept: its states go through any store, and what is not known is refused."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest
from sklearn.tree import DecisionTreeClassifier

from problems import random_training_set, refused_people
from rocerf import EstimatorModel, LogisticModel, Rocerf
from rocerf.errors import FileFormatError, OptionError
from rocerf.promises import Promise, Simulated
from rocerf.recourse.costs.cost import Norm
from rocerf.recourse.costs.norms import NormCost
from rocerf.storage.state import State

TRAIN = random_training_set(5, n=60, d=3)
FEW = Simulated(validity=0.6, shaping=10, choosing=20, checking=5)


@pytest.fixture(scope="module")
def model() -> LogisticModel:
    return LogisticModel.fit(TRAIN, C=2.0)


@pytest.mark.parametrize("promise", ["retrained", "certified", "first_order", FEW])
def test_states_go_through_a_store_of_bytes(promise: str | Simulated, model: LogisticModel) -> None:
    explainer = Rocerf(model, 1, promise=promise, cost="l1", effort="quick", seed=3)
    people = refused_people(model, 5, 4)
    answers = explainer.explain(people)
    shelf = {name: state.to_bytes() for name, state in explainer.state().items()}
    assert sorted(shelf) == ["model", "options", "promise"]
    again = Rocerf.from_state({name: State.from_bytes(content) for name, content in shelf.items()})
    assert again.promise.prepared
    found = again.explain(people)
    np.testing.assert_allclose(found.matrix, answers.matrix, atol=1e-9)
    np.testing.assert_allclose(found.margins, answers.margins, atol=1e-9)
    assert found.settings.sentence == answers.settings.sentence
    assert found.settings.assumptions == answers.settings.assumptions


def test_states_of_one_explainer_say_nothing_about_another(model: LogisticModel) -> None:
    one, other = Rocerf(model, 1).state(), Rocerf(LogisticModel.fit(TRAIN, C=1.0), 1).state()
    with pytest.raises(FileFormatError, match="the model that the explainer was saved with"):
        Rocerf.from_state({**one, "model": other["model"]})
    with pytest.raises(FileFormatError, match=r"rocerf-explainer/2.*its format is 'rocerf-promise/1'"):
        Rocerf.from_state({**one, "options": one["promise"]})


def test_parts_of_several_explainers_are_not_put_together(model: LogisticModel) -> None:
    first_order, retrained = (Rocerf(model, 1, promise=name).state() for name in ("first_order", "retrained"))
    with pytest.raises(FileFormatError, match="it is about the promise 'first_order'"):
        Rocerf.from_state({**retrained, "promise": first_order["promise"]})
    modest = Rocerf(model, 1, promise=FEW)
    modest.prepare()
    bold = Rocerf(model, 1, promise=Simulated(validity=0.9, shaping=10, choosing=20, checking=5))
    with pytest.raises(FileFormatError, match="it is about other options of the promise"):
        Rocerf.from_state({**modest.state(), "options": bold.state()["options"]})
    with pytest.raises(FileFormatError, match=r"rocerf-promise/1.*its format is 'other/1'"):
        Rocerf.from_state({**retrained, "promise": State("other/1")})
    with pytest.raises(OptionError, match="got none called 'model'"):
        Rocerf.from_state({name: retrained[name] for name in ("options", "promise")})


def test_states_written_before_the_promise_named_its_options_are_read(model: LogisticModel) -> None:
    explainer = Rocerf(model, 1, promise=FEW)
    kept = explainer.state()
    about = {name: value for name, value in kept["promise"].values.items() if name != "options"}
    again = Rocerf.from_state({**kept, "promise": State("rocerf-promise/1", about, kept["promise"].arrays)})
    assert again.settings().sentence == explainer.settings().sentence


def test_a_cost_of_the_user_s_own_answers_but_is_not_kept(model: LogisticModel, tmp_path: Path) -> None:
    cost = NormCost(Norm.L1, np.asarray(TRAIN.spread), "mine")
    explainer, named = (
        Rocerf(model, 1, promise="first_order", cost=cost),
        Rocerf(model, 1, promise="first_order", cost="l1"),
    )
    people = refused_people(model, 5, 4)
    answers = explainer.explain(people)
    np.testing.assert_allclose(answers.matrix, named.explain(people).matrix, atol=1e-9)
    assert answers.settings.cost == "mine"
    with pytest.raises(OptionError, match="Expected a cost by its name, or a CostTable, to save, got a NormCost"):
        explainer.save(tmp_path / "kept")
    assert explainer.forget(TRAIN.ids[:1]).cost is cost


def test_settings_calibrate_but_do_not_simulate(model: LogisticModel) -> None:
    explainer = Rocerf(EstimatorModel.fit(DecisionTreeClassifier(max_depth=3, random_state=0), TRAIN), 1, promise=FEW)
    assert "simulated" in explainer.settings().sentence
    assert not explainer.promise.prepared
    calibrated = Rocerf(model, 1, promise="first_order", delta="calibrate")
    with pytest.raises(OptionError, match=r"call prepare\(\) first"):
        _ = calibrated.delta
    assert calibrated.settings().delta == calibrated.delta >= 0


def test_a_promise_needs_a_name_and_a_reading(model: LogisticModel) -> None:
    with pytest.raises(TypeError, match="abstract"):
        Promise(model, 1)  # type: ignore[abstract]
