"""Rocerf with pipelines: who is judged and what is handed out is put to the user's own pipeline."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pytest
from sklearn.impute import KNNImputer, SimpleImputer
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler

from pipelines import applicants, classifier, columns, fitted, model_of, usual
from rocerf import FeatureSchema, LogisticModel, Rocerf, TrainingSet
from rocerf.data.frames import Frames
from rocerf.errors import IdError, OptionError, SchemaError
from rocerf.models.sklearn.pipeline_parts import Deployed
from rocerf.recourse.asked import judged
from rocerf.recourse.master.master import Cheapest, Master
from rocerf.recourse.result import Recourses, Status


def _loans() -> tuple[pd.DataFrame, np.ndarray]:
    rng = np.random.default_rng(2)
    income = rng.normal(size=300)
    frame = pd.DataFrame({"income": income, "debt": income + rng.normal(0, 0.3, 300), "other": rng.normal(size=300)})
    return frame, (frame["other"] - 1.5 * frame["debt"] + rng.normal(0, 0.5, 300) > 0).to_numpy().astype(int)


def _codes(found: Recourses) -> set[str]:
    return {status.code for status in found.statuses}


def test_nobody_is_judged_by_a_number_that_the_pipeline_does_not_put() -> None:
    frame, y = _loans()
    pipeline = fitted(make_pipeline(StandardScaler(), KNNImputer(), classifier()), frame, y)
    model = model_of(pipeline, frame, y)
    people = frame.head(60).assign(debt=np.nan)
    found = Rocerf(model, 2, promise="first_order").explain(people)
    assert _codes(found) == {"invalid_input"}
    assert all("'debt'" in reason for reason in found.reasons)
    found = Rocerf(model, 2, promise="first_order").explain(frame.head(60))
    own = pipeline.predict(frame.head(60))
    assert [status is Status.ALREADY_ACCEPTED for status in found.statuses] == (own == 1).tolist()


def test_people_without_a_number_are_judged_without_it(monkeypatch: pytest.MonkeyPatch) -> None:
    frame, y = _loans()
    frame.loc[::9, "debt"] = np.nan
    pipeline = fitted(make_pipeline(SimpleImputer(), StandardScaler(), classifier()), frame, y)
    model = model_of(pipeline, frame, y)
    people = frame.assign(debt=np.where(np.arange(300) % 2, frame["debt"], np.nan)).head(80)
    asked: list[pd.DataFrame] = []
    log_odds = Deployed.log_odds
    monkeypatch.setattr(Deployed, "log_odds", lambda self, rows: asked.append(rows) or log_odds(self, rows))
    schema = model.schema.edit("debt", direction="fixed")
    found = Rocerf(model, 2, promise="first_order", schema=schema).explain(people)
    # Once about the people as they came, once about the answers as they are handed out.
    pd.testing.assert_frame_equal(asked[0], people, check_index_type=False)
    pd.testing.assert_frame_equal(asked[-1].reset_index(drop=True), found.points[found.answered].reset_index(drop=True))
    assert asked[-1]["debt"].isna().any()
    assert (pipeline.predict(found.points[found.answered]) == 1).all()


def test_an_answer_that_the_pipeline_refuses_as_handed_out_is_taken_back(monkeypatch: pytest.MonkeyPatch) -> None:
    frame, y = _loans()
    pipeline = fitted(make_pipeline(StandardScaler(), KNNImputer(), classifier()), frame, y)
    model = model_of(pipeline, frame, y)
    # As if the fill had been believed.
    assert model.frames is not None
    monkeypatch.setitem(model.frames.fills, "debt", float(frame["debt"].min()))
    people = frame.assign(debt=np.nan).head(100)
    schema = model.schema.edit("debt", direction="fixed")
    found = Rocerf(model, 2, promise="first_order", schema=schema).explain(people)
    own = pipeline.predict(people)
    assert [status is Status.ALREADY_ACCEPTED for status in found.statuses] == (own == 1).tolist()
    assert "gave_up" in _codes(found)
    if found.answered.any():
        assert (pipeline.predict(found.points[found.answered]) == 1).all()


def test_judged_asks_about_the_rows_that_are_handed_out() -> None:
    frame, y = applicants(120, missing=True)
    texts = make_pipeline(SimpleImputer(strategy="most_frequent"), usual()[0].transformers[1][1])
    pipeline = fitted(make_pipeline(columns(SimpleImputer(), texts), classifier()), frame, y)
    model = model_of(pipeline, frame, y)
    frames: Any = model.frames
    assert isinstance(frames, Frames)
    X, _, _ = frames.encode(frame)
    np.testing.assert_allclose(
        judged(model, X, X, frames.missing(frame)), pipeline.decision_function(frame), atol=1e-12
    )
    np.testing.assert_allclose(judged(model, X), pipeline.decision_function(frame), atol=1e-9)


@pytest.mark.parametrize(
    ("name", "changes"),
    [
        ("cars", {"kind": "continuous"}),
        ("member", {"kind": "continuous"}),
        ("member", {"kind": "integer"}),
    ],
)
def test_a_schema_must_not_allow_what_the_columns_cannot_hold(name: str, changes: dict[str, Any]) -> None:
    frame, y = applicants(120)
    model = model_of(fitted(usual(), frame, y), frame, y)
    assert model.schema is not None
    with pytest.raises(SchemaError, match=f"'{name}' to be (integer|binary), .* got {changes['kind']}.*from_pipeline"):
        Rocerf(model, 1, schema=model.schema.edit(name, **changes))


def test_a_schema_may_be_stricter_than_the_models() -> None:
    frame, y = applicants(120)
    pipeline = fitted(usual(), frame, y)
    model = model_of(pipeline, frame, y)
    assert model.schema is not None
    people = frame[pipeline.predict(frame) == 0].head(5).round({"income": 0})
    schema = model.schema.edit("income", kind="integer").edit("age", direction="fixed")
    found = Rocerf(model, 1, promise="first_order", cost="l1", schema=schema).explain(people)
    assert found.answered.any()
    points = found.points[found.answered]
    assert (points["income"] == points["income"].round()).all()


def test_a_number_filled_in_outside_the_bounds_need_not_be_given() -> None:
    frame, y = _loans()
    frame.loc[::9, "debt"] = np.nan
    pipeline = fitted(make_pipeline(SimpleImputer(strategy="constant", fill_value=-50.0), classifier()), frame, y)
    model = model_of(pipeline, frame, y)
    explainer = Rocerf(model, 1, promise="first_order", cost="l1")
    people = frame[(pipeline.predict(frame) == 0) & (np.arange(300) % 9 == 0)]
    people = people if len(people) else frame.assign(other=-90.0).iloc[::9]
    found = explainer.explain(people)
    assert found.answered.any()
    assert not any(change.feature == "debt" for recourse in found for change in recourse.changes)
    letters = explainer.letters(found, valid_until=None)
    assert [bool(letter.options) for letter in letters] == found.answered.tolist()


@pytest.mark.slow
def test_steps_do_not_count_from_what_is_filled_in() -> None:
    frame, y = _loans()
    frame = frame * 100.0
    frame.loc[::9, "debt"] = np.nan
    pipeline = fitted(make_pipeline(SimpleImputer(), StandardScaler(), classifier()), frame, y)
    model = model_of(pipeline, frame, y)
    schema = model.schema.edit("income", direction="fixed").edit("other", direction="fixed").edit("debt", step=50)
    explainer = Rocerf(model, 1, promise="first_order", schema=schema)
    people = frame.assign(debt=np.nan, other=-100.0).head(20)
    found = explainer.explain(people)
    assert found.answered.any()
    asked = found.points.loc[found.answered, "debt"]
    assert (asked % 50 == 0).all()
    letters = [letter for letter in explainer.letters(found, valid_until=None) if letter.options]
    assert {letter.options[0].changes[0].after % 50 for letter in letters} == {0}


def test_people_without_a_name_are_refused() -> None:
    frame, y = _loans()
    model = model_of(fitted(make_pipeline(StandardScaler(), classifier()), frame, y), frame, y)
    people = frame.head(3).set_axis(["a", None, "c"])
    with pytest.raises(IdError, match="a name in the index for each of 3 people, got none for row 1"):
        Rocerf(model, 1, promise="first_order").explain(people)
    twofold = frame.head(2).set_axis(pd.MultiIndex.from_tuples([("a", 1), ("a", 2)]))
    with pytest.raises(IdError, match="an index of one level, which people are called by, got 2"):
        Rocerf(model, 1, promise="first_order").explain(twofold)


def _two_columns() -> LogisticModel:
    rng = np.random.default_rng(0)
    X = rng.normal(size=(200, 2))
    return LogisticModel.fit(TrainingSet(X, (X @ [1.0, 1.0] + 0.3 * rng.normal(size=200) > 0).astype(int)))


@pytest.mark.parametrize("cost", ["l1", "l2"])
def test_who_is_outside_a_bound_by_rounding_is_answered(cost: str) -> None:
    schema = FeatureSchema.free(["x0", "x1"]).edit("x0", upper=-1.0)
    person = np.array([[np.nextafter(-1.0, 0.0), -3.0]])
    found = Rocerf(_two_columns(), 1, promise="first_order", cost=cost, schema=schema).explain(person)
    assert found.answered.all()
    assert found.matrix[0, 0] <= -1.0


def test_a_limit_on_changes_is_named_where_it_may_be_why() -> None:
    schema = FeatureSchema.free(["x0", "x1"]).edit("x0", upper=0.5).edit("x1", upper=0.5)
    explainer = Rocerf(_two_columns(), 1, promise="first_order", schema=schema, max_changes=1)
    found = explainer.explain(np.array([[-4.0, -4.0], [-0.5, 0.0]]))
    assert found.statuses[0] is Status.UNREACHABLE
    assert found.reasons[0] == f"{Status.UNREACHABLE.sentence} (at most 1 may change)"
    assert found.statuses[1] is Status.ANSWERED


@pytest.mark.parametrize("cost", ["l1", "l2"])
def test_own_values_that_break_a_relation_and_may_not_change_contradict_it(cost: str) -> None:
    schema = FeatureSchema.free(["x0", "x1"]).edit("x0", direction="fixed").edit("x1", upper=0.0)
    schema = schema.relate("x0 <= x1")
    explainer = Rocerf(_two_columns(), 1, promise="first_order", cost=cost, schema=schema)
    found = explainer.explain(np.array([[1.0, -5.0], [-1.0, -5.0]]))
    assert [status.code for status in found.statuses] == ["contradiction", "unreachable"]


def test_a_search_that_failed_shows_no_contradiction(monkeypatch: pytest.MonkeyPatch) -> None:
    schema = FeatureSchema.free(["x0", "x1"]).edit("x0", direction="fixed").relate("x0 <= x1")
    schema = schema.edit("x1", upper=0.0)
    master = Rocerf(_two_columns(), 1, promise="first_order", schema=schema).problem(np.array([[1.0, -5.0]]))
    assert not master.possible(0)
    unknown = Cheapest.blank(1, 2)
    unknown.failed[:] = True
    monkeypatch.setattr(Master, "cheapest", lambda *_: unknown)
    assert master.possible(0)


def test_explainers_and_answers_say_who_they_are() -> None:
    explainer = Rocerf(_two_columns(), 3, promise="first_order", cost="l1")
    assert repr(explainer).startswith("Rocerf(first_order, k=3 of 200 rows, l1, LogisticModel(")
    people = pd.DataFrame([[-1.0, -1.0]], columns=["x0", "x1"], index=["A-7"])
    assert explainer.explain(people)[0].name == "A-7"


def test_options_are_rechecked_one_by_one() -> None:
    model = _two_columns()
    explainer = Rocerf(model, 1, promise="first_order")
    options = explainer.alternatives(np.array([[-1.0, -1.0], [-2.0, 0.5]]), 2)
    check = explainer.recheck(options, [0, 1])
    assert [(row["person"], row["option"]) for row in check.records()] == [(0, 1), (1, 1), (0, 2), (1, 2)]
    alone = [explainer.recheck(batch, [0, 1]) for batch in options]
    np.testing.assert_array_equal(check.after, np.concatenate([one.after for one in alone]))
    assert "options in answers" in str(check)
    for wrong in (options[0].points, (), [None]):
        with pytest.raises(OptionError, match="Expected recourses"):
            explainer.recheck(wrong, [0])


def test_a_pipeline_is_no_model_to_load_with(tmp_path: Path) -> None:
    frame, y = _loans()
    pipeline = fitted(make_pipeline(StandardScaler(), classifier()), frame, y)
    Rocerf(model_of(pipeline, frame, y), 1, promise="first_order").save(tmp_path)
    with pytest.raises(OptionError, match="the model that the explainer was saved with, got Pipeline"):
        Rocerf.load(tmp_path, model=pipeline)
