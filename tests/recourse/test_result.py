"""Results: frozen, in sequence, JSON both ways, and careful with other people's data."""

from __future__ import annotations

import dataclasses
import json
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pytest

from problems import random_training_set, refused_people
from rocerf import Feature, FeatureSchema, LogisticModel, Recourse, Recourses, Rocerf, Status, TrainingSet
from rocerf.baselines import Scfe
from rocerf.errors import ColumnError, FileFormatError, IdError
from rocerf.recourse.change import Change
from rocerf.storage.seals import sealed

first_order = partial(Rocerf, promise="first_order")

NAMES = ["income", "debt", "age"]


@pytest.fixture(scope="module")
def model() -> LogisticModel:
    train = random_training_set(31)
    return LogisticModel.fit(TrainingSet(pd.DataFrame(train.X, columns=NAMES), train.y.astype(int), ids=train.ids))


@pytest.fixture(scope="module")
def people(model: LogisticModel) -> pd.DataFrame:
    """Six refused people, one accepted, one with a missing value."""
    refused = refused_people(model, 1, 6)
    accepted = model.train.X[model.predict(model.train.X) == 1][:1]
    matrix = np.vstack([refused, accepted, [[np.nan, 1.0, 2.0]]])
    return pd.DataFrame(matrix, columns=NAMES, index=list("abcdefgh"))


@pytest.fixture(scope="module")
def recourses(model: LogisticModel, people: pd.DataFrame) -> Recourses:
    schema = FeatureSchema(
        (
            Feature("income", label="monthly income", unit="EUR"),
            Feature("debt", direction="fixed"),
            Feature("age", unit="years"),
        )
    )
    return first_order(model, 3, schema=schema, delta=0.25, seed=5).explain(people)


# --- statuses -------------------------------------------------------------------------------------


@pytest.mark.parametrize("status", Status)
def test_every_status_has_a_code_and_a_sentence(status: Status) -> None:
    assert status.code == status.name.lower()
    assert len(status.sentence.split()) >= 5
    assert status.sentence[0].islower()
    assert not status.sentence.endswith(".")
    assert Status.of_code(status.code) is status


def test_a_model_asked_about_answers_is_told_where_the_points_are(model: LogisticModel, recourses: Recourses) -> None:
    with pytest.raises(ColumnError, match=r"pass its \.points\."):
        model.score(recourses)  # type: ignore[arg-type]
    assert (model.score(recourses.points[recourses.answered]) >= 0).all()


def test_statuses_are_told_apart() -> None:
    assert len({status.sentence for status in Status}) == len(Status)
    with pytest.raises(KeyError, match="maybe"):
        Status.of_code("maybe")


# --- one recourse ---------------------------------------------------------------------------------


def test_changes_are_the_columns_that_moved(recourses: Recourses) -> None:
    for place in range(6):
        recourse = recourses[place]
        assert recourse.answered
        assert [change.feature for change in recourse.changes] == ["income", "age"]  # debt is fixed
        assert [change.unit for change in recourse.changes] == ["EUR", "years"]
        assert [change.label for change in recourse.changes] == ["monthly income", "age"]
        for change, column in zip(recourse.changes, (0, 2), strict=True):
            assert change.before == recourse.person[column] != change.after == recourse.point[column]
        assert recourse.point[1] == recourse.person[1]


def test_few_columns_move_under_the_l1_cost(model: LogisticModel, people: pd.DataFrame) -> None:
    changes = [recourse.changes for recourse in Scfe(model, cost="l1").explain(people) if recourse.answered]
    assert [len(moved) for moved in changes] == [1] * 6


def test_unanswered_people_have_no_changes(recourses: Recourses) -> None:
    for place, status in ((6, Status.ALREADY_ACCEPTED), (7, Status.INVALID_INPUT)):
        recourse = recourses[place]
        assert recourse.status is status
        assert not recourse.answered
        assert recourse.changes == ()
        assert np.isnan(recourse.point).all()
        assert np.isnan([recourse.cost, recourse.margin]).all()
        assert recourse.worst_ids is None


def test_a_change_reads_like_a_sentence() -> None:
    assert str(Change("amount", "credit amount", 5000.0, 4200.5, "DM")) == "credit amount: 5000 DM -> 4200.5 DM"
    assert str(Change("x0", "x0", -1.0, 0.25)) == "x0: -1 -> 0.25"


def test_a_recourse_repeats_what_the_batch_says(recourses: Recourses) -> None:
    recourse = recourses[2]
    assert isinstance(recourse, Recourse)
    assert recourse.cost == recourses.costs[2]
    assert recourse.margin == recourses.margins[2] >= 0.25
    assert recourse.reason == recourses.reasons[2] == Status.ANSWERED.sentence
    assert recourse.promise == recourses.settings.sentence
    assert recourse.worst_ids is not None
    assert len(recourse.worst_ids) == 3
    np.testing.assert_array_equal(recourse.point, recourses.matrix[2])


def test_training_rows_do_not_show_in_a_repr(recourses: Recourses) -> None:
    assert "row-" in str(recourses[0].worst_ids)
    for text in (repr(recourses), repr(recourses[0]), str(recourses[0]), repr(recourses.settings)):
        assert "row-" not in text


def test_recourses_can_be_compared_and_kept_in_sets(recourses: Recourses) -> None:
    first = recourses[0]
    assert first == first  # noqa: PLR0124  (arrays inside must not make this ambiguous)
    assert first != recourses[1]
    assert len({first, recourses[1]}) == 2


# --- the batch ------------------------------------------------------------------------------------


def test_a_batch_is_a_sequence(recourses: Recourses, model: LogisticModel) -> None:
    assert len(recourses) == len(list(recourses)) == 8
    assert recourses[-1].status is recourses.statuses[7]
    assert [recourse.reason for recourse in recourses[5:]] == list(recourses.reasons[5:])
    assert [recourse.status for recourse in recourses[::-4]] == [recourses.statuses[7], recourses.statuses[3]]
    assert recourses[8:] == []
    for place in (8, -9):
        with pytest.raises(IndexError, match=f"Expected a place from 0 to 7, not {place}; whole numbers are places"):
            recourses[place]
    with pytest.raises(IndexError, match="Expected answers, got none, not 0"):
        first_order(model, 1).explain(np.empty((0, 3)))[0]
    with pytest.raises(IdError, match=r"one person called 'Ada', got nobody, but 'a', .*, 'e', \.\.\.; name one"):
        recourses["Ada"]


def test_a_batch_is_frozen(recourses: Recourses) -> None:
    for thing in (recourses, recourses[0], recourses.settings):
        with pytest.raises(dataclasses.FrozenInstanceError):
            setattr(thing, dataclasses.fields(thing)[0].name, None)


def test_the_repr_says_how_many_at_which_price(recourses: Recourses, model: LogisticModel) -> None:
    mean = recourses.costs[:6].mean()
    assert repr(recourses) == f"Recourses(6 of 8 answered, mean cost {mean:.3f}; first_order, k=3, l2)"
    nobody = first_order(model, 1, cost="l1").explain(np.full((2, 3), np.nan))
    assert repr(nobody) == "Recourses(0 of 2 answered; first_order, k=1, l1)"


def test_the_settings_say_how_it_was_made(recourses: Recourses, model: LogisticModel) -> None:
    settings = recourses.settings
    assert (settings.method, settings.promise, settings.k, settings.training_rows) == ("rocerf", "first_order", 3, 60)
    assert (settings.delta, settings.cost, settings.solver, settings.seed) == (0.25, "l2", "cutting_plane", 5)
    assert settings.data_checksum == model.train.checksum
    assert "with margin 0.25, for every deletion of at most 3 training rows" in settings.sentence
    assert "not a proof" in settings.sentence
    one = first_order(model, 1).settings().sentence
    assert "at most 1 training row;" in one


@pytest.mark.slow
def test_questions_are_answered_by_0_or_1() -> None:
    train = random_training_set(32)
    X = np.column_stack([train.X, train.X[:, 0] > 0, train.X[:, 1] > 0]).astype(float)
    made = LogisticModel.fit(TrainingSet(X, train.y.astype(int)))
    schema = FeatureSchema.from_frame(X, immutable=["x4"])
    refused = X[made.predict(X) == 0][:10]
    found = first_order(made, 2, schema=schema).explain(refused)
    points = found.matrix[found.answered]
    assert np.isin(points[:, 3], (0.0, 1.0)).all()
    assert (points[:, 4] == refused[found.answered, 4]).all()
    free = first_order(made, 2).explain(refused)
    assert not np.isin(free.matrix[:, 3], (0.0, 1.0)).all()
    assert (free.costs <= found.costs + 1e-9)[found.answered].all()


def test_to_frame_has_one_row_a_person(recourses: Recourses) -> None:
    frame = recourses.to_frame()
    assert list(frame.columns) == ["status", "reason", "cost", "margin", *NAMES]
    assert list(frame.index) == list("abcdefgh")
    assert frame["status"].tolist() == ["answered"] * 6 + ["already_accepted", "invalid_input"]
    assert frame["reason"].tolist() == list(recourses.reasons)
    np.testing.assert_array_equal(frame[NAMES].to_numpy(), recourses.matrix)
    assert frame[["cost", *NAMES]].isna().all(axis=1).tolist() == [False] * 6 + [True, True]


def test_to_frame_of_an_array(model: LogisticModel, people: pd.DataFrame) -> None:
    frame = first_order(model, 3).explain(people.to_numpy()).to_frame()
    assert frame.shape == (8, 7)
    assert list(frame.index) == list(range(8))


# --- JSON -----------------------------------------------------------------------------------------


def assert_same(found: Recourses, expected: Recourses) -> None:
    for name in ("people", "matrix", "costs", "margins"):
        np.testing.assert_array_equal(getattr(found, name), getattr(expected, name))
    for name in ("statuses", "reasons", "columns", "schema", "settings"):
        assert getattr(found, name) == getattr(expected, name), name
    assert type(found.points) is type(expected.points)
    assert (found.index is None) == (expected.index is None)
    if expected.index is not None and found.index is not None:
        assert found.index.tolist() == expected.index.tolist()
    for one, other in zip(found, expected, strict=True):
        assert one.changes == other.changes


@pytest.mark.parametrize("training_rows", [False, True])
@pytest.mark.parametrize("form", ["frame", "numbered frame", "array"])
def test_json_both_ways(
    model: LogisticModel, people: pd.DataFrame, tmp_path: Path, form: str, training_rows: bool
) -> None:
    given: Any = {"frame": people, "numbered frame": people.reset_index(drop=True), "array": people.to_numpy()}[form]
    expected = first_order(model, 3).explain(given)
    text = expected.to_json(tmp_path / "answers.json", training_rows=training_rows)
    assert (tmp_path / "answers.json").read_text("utf-8") == text
    assert expected.to_json(training_rows=training_rows) == text
    for source in (text, "\n" + text, tmp_path / "answers.json", str(tmp_path / "answers.json")):
        found = Recourses.from_json(source)
        assert_same(found, expected)
        assert found.to_json(training_rows=training_rows) == text
    if training_rows:
        assert found.worst_ids is not None
        assert expected.worst_ids is not None
        for one, other in zip(found.worst_ids, expected.worst_ids, strict=True):
            assert (one is None) == (other is None)
            assert one is None or one.tolist() == other.tolist()  # type: ignore[union-attr]
        assert "row-" in text
    else:
        assert found.worst_ids is None
        assert "row-" not in text


def test_json_is_standard_and_one_line_a_person(recourses: Recourses) -> None:
    text = recourses.to_json()
    document = json.loads(text, parse_constant=lambda word: pytest.fail(f"{word} is no JSON"))
    assert document["format"] == "rocerf-recourses/3"
    assert len(document["people"]) == 8
    assert document["people"][7]["person"] == [None, 1.0, 2.0]
    assert document["people"][7]["point"] == [None, None, None]
    assert len(text.splitlines()) == 8 + 3


def test_json_of_nobody(model: LogisticModel) -> None:
    for nobody in (np.empty((0, 3)), pd.DataFrame(columns=NAMES, dtype=float)):
        expected = first_order(model, 3).explain(nobody)
        assert_same(Recourses.from_json(expected.to_json()), expected)


def edited(recourses: Recourses, **changes: Any) -> str:
    """With a checksum that fits, so that what is looked at is the content."""
    return json.dumps(sealed({**json.loads(recourses.to_json()), **changes}))


def person_edited(recourses: Recourses, **changes: Any) -> str:
    first, *others = json.loads(recourses.to_json())["people"]
    return edited(recourses, people=[{**first, **changes}, *others])


GARBAGE: list[Any] = [
    pytest.param(lambda r: "", id="empty"),
    pytest.param(lambda r: "hello", id="words"),
    pytest.param(lambda r: "hello " * 200, id="many words"),
    pytest.param(lambda r: "{", id="open"),
    pytest.param(lambda r: "{}", id="no format"),
    pytest.param(lambda r: "[]", id="a list"),
    pytest.param(lambda r: "/", id="a folder"),
    pytest.param(lambda r: None, id="nothing"),
    pytest.param(lambda r: r.to_json()[:-20], id="cut off"),
    pytest.param(lambda r: r.to_json().replace("recourses/3", "recourses/2"), id="other format"),
    pytest.param(lambda r: '{"format": "rocerf-recourses/3"}', id="format only"),
    pytest.param(lambda r: edited(r, settings=None), id="no settings"),
    pytest.param(lambda r: r.to_json().replace('"k": 3', '"q": 3'), id="other settings"),
    pytest.param(lambda r: edited(r, people=[3]), id="people are numbers"),
    pytest.param(lambda r: edited(r, schema=FeatureSchema.free(["income", "debt"]).to_dict()), id="a column less"),
    pytest.param(lambda r: edited(r, index=["a"]), id="short index"),
    pytest.param(lambda r: person_edited(r, status="maybe"), id="unknown status"),
    pytest.param(lambda r: person_edited(r, point=[1.0]), id="short point"),
    pytest.param(lambda r: person_edited(r, point=["a", "b", "c"]), id="text for a point"),
    pytest.param(lambda r: person_edited(r, cost="dear"), id="text for a cost"),
]


@pytest.mark.parametrize("make", GARBAGE)
def test_garbage_is_no_json_of_ours(recourses: Recourses, make: Any) -> None:
    with pytest.raises(FileFormatError, match=r"Expected recourses written by Recourses.to_json .*write them again"):
        Recourses.from_json(make(recourses))


FORGERIES: dict[str, tuple[str, str]] = {
    "promise": ('"promise": "first_order"', '"promise": "certified"'),
    "k": ('"k": 3', '"k": 30'),
    "sentence": ('"sentence": "', '"sentence": "is proven and '),
    "assumption": ('"assumptions": ["', '"assumptions": ["nothing and '),
    "point": ('"point": [', '"point": [1'),
    "margin": ('"margin": ', '"margin": 1'),
    "certified": ('"certified": false', '"certified": true'),
    "checksum": ('"sha256": "', '"sha256": "0'),
}


@pytest.mark.parametrize("what", FORGERIES)
def test_what_was_changed_after_it_was_written_is_refused(recourses: Recourses, what: str) -> None:
    old, new = FORGERIES[what]
    text = recourses.to_json()
    assert old in text
    with pytest.raises(FileFormatError, match="was changed after it was written"):
        Recourses.from_json(text.replace(old, new, 1))


def test_the_layout_of_a_document_is_not_its_content(recourses: Recourses) -> None:
    laid_out = json.dumps(json.loads(recourses.to_json()), indent=4, sort_keys=True)
    assert_same(Recourses.from_json(laid_out), recourses)


def test_endless_nesting_is_no_json_of_ours(tmp_path: Path) -> None:
    (tmp_path / "deep.json").write_text("[" * 200_000)
    (tmp_path / "latin.json").write_bytes(b'{"format": "\xff"}')
    for name in ("deep.json", "latin.json"):
        with pytest.raises(FileFormatError, match=r"Expected recourses written by Recourses\.to_json"):
            Recourses.from_json(tmp_path / name)


def test_a_missing_file_is_named(tmp_path: Path) -> None:
    with pytest.raises(FileFormatError, match=r"found nothing at .*gone\.json; check the path"):
        Recourses.from_json(tmp_path / "gone.json")
