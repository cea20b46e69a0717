"""States: what an object is, kept anywhere; a database from outside the package stands for anywhere."""

from __future__ import annotations

import sqlite3
import weakref
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

import rocerf
from pipelines import applicants, fitted, model_of, usual
from rocerf import FeatureSchema, LogisticModel, State, TrainingSet
from rocerf.deletion.certificate import Certificate, certify_model
from rocerf.errors import FileFormatError, OptionError


class Shelf:
    """A store that rocerf knows nothing of: one table of blobs."""

    def __init__(self) -> None:
        self.table = sqlite3.connect(":memory:")
        weakref.finalize(self, self.table.close)  # Python 3.13 warns of a connection that nobody closed
        self.table.execute("CREATE TABLE kept (name TEXT PRIMARY KEY, content BLOB)")

    def put(self, name: str, state: State) -> None:
        self.table.execute("REPLACE INTO kept VALUES (?, ?)", (name, state.to_bytes()))

    def get(self, name: str) -> State:
        ((content,),) = self.table.execute("SELECT content FROM kept WHERE name = ?", (name,))
        return State.from_bytes(content, source=f"row {name} of the table")

    def there_and_back(self, state: State) -> State:
        self.put("it", state)
        return self.get("it")


@pytest.fixture
def rows() -> TrainingSet:
    rng = np.random.default_rng(3)
    X = rng.normal(size=(60, 2))
    return TrainingSet(X, np.where(X @ [1.0, -1.0] + rng.normal(size=60) > 0, "yes", "no"), favourable="yes")


def test_a_model_kept_in_a_database_gives_the_same_answers(rows: TrainingSet) -> None:
    shelf = Shelf()
    model = LogisticModel.fit(rows, C=0.5)
    shelf.put("credit", model.state())
    again = LogisticModel.from_state(shelf.get("credit"))
    np.testing.assert_array_equal(again.theta, model.theta)
    people = rows.X[model.predict(rows.X) == 0][:5]
    before, after = (rocerf.Rocerf(each, 2).explain(people) for each in (model, again))
    np.testing.assert_allclose(after.points, before.points, rtol=0, atol=1e-9)
    np.testing.assert_allclose(after.margins, before.margins, rtol=0, atol=1e-9)


def test_an_explainer_is_one_row_of_a_database(rows: TrainingSet) -> None:
    shelf, explainer = Shelf(), rocerf.Rocerf(LogisticModel.fit(rows, C=0.5), 2)
    people = rows.X[explainer.model.predict(rows.X) == 0][:3]
    before = explainer.explain(people)
    shelf.put("credit", State.joined("our-explainers/1", explainer.state()))
    whole = shelf.get("credit")
    again = rocerf.Rocerf.from_state({name: whole.part(name) for name in whole.values["parts"]})
    np.testing.assert_allclose(again.explain(people).points, before.points, rtol=0, atol=1e-9)


def test_a_model_of_a_pipeline_comes_back_from_a_database() -> None:
    frame, y = applicants()
    model = model_of(fitted(usual(), frame, y), frame, y)
    again = LogisticModel.from_state(Shelf().there_and_back(model.state()))
    np.testing.assert_array_equal(again.score(frame), model.score(frame))
    assert again.schema == model.schema


@pytest.mark.parametrize("kind", ["rows", "schema", "certificate", "estimator", "network"])
def test_what_gives_a_state_is_made_from_it(kind: str, rows: TrainingSet) -> None:
    kept = Shelf().there_and_back
    if kind == "rows":
        weighted = rows.with_weights(np.linspace(1, 2, len(rows)))
        again = TrainingSet.from_state(kept(weighted.state()))
        assert again.checksum == weighted.checksum
        assert again.ids.tolist() == rows.ids.tolist()
        assert again.unfavourable == "no"
    elif kind == "schema":
        schema = FeatureSchema.free(["a", "b"]).edit("a", direction="increase", upper=4).relate("a <= 2 * b")
        assert FeatureSchema.from_state(kept(schema.state())) == schema
    elif kind == "certificate":
        proof = certify_model(LogisticModel.fit(rows, C=0.1), 1)
        points = np.c_[rows.X, np.ones(len(rows))]
        np.testing.assert_array_equal(Certificate.from_state(kept(proof.state())).lower(points), proof.lower(points))
    elif kind == "estimator":
        from sklearn.tree import DecisionTreeClassifier

        tree = rocerf.EstimatorModel.fit(DecisionTreeClassifier(max_depth=3), rows)
        np.testing.assert_array_equal(
            rocerf.EstimatorModel.from_state(kept(tree.state())).score(rows.X), tree.score(rows.X)
        )
    else:
        network = rocerf.NeuralModel.fit(rows, width=4, epochs=20, learning_rate=0.1)
        np.testing.assert_array_equal(
            rocerf.NeuralModel.from_state(kept(network.state())).score(rows.X), network.score(rows.X)
        )


def test_states_inside_each_other_come_apart_again(rows: TrainingSet) -> None:
    model = LogisticModel.fit(rows)
    inner = State.joined("promise/1", {"proof": State("proof/1", {"k": 1}, {"a": np.arange(3)})}, {"said": "yes"})
    whole = Shelf().there_and_back(State.joined("explainer/1", {"model": model.state(), "promise": inner}))
    assert LogisticModel.from_state(whole.part("model")).theta.tolist() == model.theta.tolist()
    assert whole.part("promise").values["said"] == "yes"
    assert whole.part("promise").part("proof").arrays["a"].tolist() == [0, 1, 2]


def _another_format(content: bytes) -> State:
    state = State.from_bytes(content)
    return State("rocerf-logistic-model/1", state.values, state.arrays)


def _without_rows(content: bytes) -> State:
    state = State.from_bytes(content)
    return State(state.format, state.values, {})


@pytest.mark.parametrize(
    ("damage", "said"),
    [
        (lambda content: State.from_bytes(content[:-9], source="row 7"), "got row 7 which is not"),
        (lambda content: State.from_bytes(content, "rocerf-neural-model/2"), "its format is 'rocerf-logistic-model/2'"),
        (_another_format, "written by LogisticModel.save .* its format is 'rocerf-logistic-model/1'"),
        (_without_rows, "written by LogisticModel.save"),
    ],
)
def test_a_state_that_is_none_of_ours_is_refused(damage: Callable[[bytes], Any], said: str, rows: TrainingSet) -> None:
    content = LogisticModel.fit(rows).state().to_bytes()
    with pytest.raises(FileFormatError, match=said):
        LogisticModel.from_state(damage(content))


@pytest.mark.parametrize("state", [State("a/1", {"sha256": "x"}), State("a/1", {}, {"about": np.zeros(1)})])
def test_names_that_the_bytes_need_themselves_are_refused(state: State) -> None:
    with pytest.raises(OptionError, match="rename it"):
        state.to_bytes()


def test_changed_rows_are_refused(rows: TrainingSet) -> None:
    state = rows.state()
    changed = State(state.format, state.values, {**state.arrays, "X": rows.X + 1})
    with pytest.raises(FileFormatError, match="match their checksum"):
        TrainingSet.from_state(changed)


def test_answers_are_a_state_too() -> None:
    data = rocerf.load_dataset("german")
    model = rocerf.LogisticModel.fit(data.train)
    frame = data.test.frame().head(12)
    found = rocerf.Rocerf(model, 2, promise="first_order").explain(frame)
    again = rocerf.Recourses.from_state(State.from_bytes(found.state().to_bytes()))
    assert again.to_json() == found.to_json()
    assert again.settings == found.settings
    with pytest.raises(FileFormatError, match="rocerf-recourses"):
        rocerf.Recourses.from_state(model.state())
