"""Further answers for the same person, and what survives a file."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pandas as pd
import pytest

from problems import random_training_set, refused_people
from rocerf import CostTable, FeatureSchema, LogisticModel, Rocerf, TrainingSet


def changed(recourse_point: np.ndarray, person: np.ndarray) -> set[int]:
    return set(np.flatnonzero(recourse_point != person).tolist())


@pytest.mark.slow
@pytest.mark.parametrize("cost", ["l1", "l2"])
def test_without_a_schema_each_further_answer_leaves_something_alone(cost: str) -> None:
    model = LogisticModel.fit(random_training_set(3, d=4))
    people = refused_people(model, 3, 5)
    found = Rocerf(model, 2, promise="first_order", cost=cost).alternatives(people, 3)
    assert len(found) == 3
    for person in range(5):
        answers = [answer for answer in found if answer.answered[person]]
        assert len(answers) >= 2
        costs = [float(answer.costs[person]) for answer in answers]
        assert costs == sorted(costs)
        sets = [changed(answer.matrix[person], people[person]) for answer in answers]
        for later, own in enumerate(sets):
            assert all(not earlier <= own for earlier in sets[:later])


def test_an_alternative_is_no_near_copy() -> None:
    """By squares, sparing the smallest of many changes costs next to nothing; that is no other way to be accepted."""
    rng = np.random.default_rng(5)
    X = rng.normal(size=(300, 6))
    y = (X @ [1.0, 0.9, 0.3, 0.2, 0.1, 0.05] + 0.5 * rng.normal(size=300) > 0).astype(int)
    model = LogisticModel.fit(TrainingSet(X, y))
    people = X[model.predict(X) == 0][:4]
    first, *others = Rocerf(model, 2, promise="first_order").alternatives(people, 3)
    for person in range(4):
        squares = ((first.matrix[person] - people[person]) / X.std(axis=0)) ** 2
        assert set(np.argsort(squares)[-2:]) == {0, 1}
        moved = squares / squares.sum() > 0.5 / 2
        for other in others:
            kept = other.matrix[person] == people[person]
            assert (kept & moved).any()


def test_nobody_has_more_alternatives_than_there_are() -> None:
    rng = np.random.default_rng(0)
    X = rng.normal(size=(60, 1))
    model = LogisticModel.fit(TrainingSet(X, (X[:, 0] + 0.3 * rng.normal(size=60) > 0).astype(int)))
    found = Rocerf(model, 1, promise="first_order").alternatives(X[model.predict(X) == 0][:3], 3)
    assert found[0].answered.all()
    assert not found[1].answered.any()  # the only column must stay as it is
    assert {status.code for status in found[1].statuses} == {"no_further"}
    assert len(found) == 2


def test_prices_of_numbered_categories_survive_a_file(tmp_path: Path) -> None:
    rng = np.random.default_rng(1)
    frame = pd.DataFrame({"x": rng.normal(size=80), "floor=1": rng.integers(2, size=80).astype(float)})
    frame["floor=2"] = 1.0 - frame["floor=1"]
    label = (frame["x"] + frame["floor=1"] + 0.3 * rng.normal(size=80) > 0.5).astype(int)
    floor = {"kind": "categorical", "categories": [1, 2], "name": "floor"}
    schema = FeatureSchema.from_dict({"format": "rocerf-schema/1", "features": [{"name": "x"}, floor]})
    table = CostTable({"x": (2.0, 1.0), "floor": {1: {2: 5.0}, 2: {1: 0.1}}})
    model = LogisticModel.fit(TrainingSet(frame, label.to_numpy()))
    explainer = Rocerf(model, 1, promise="first_order", schema=schema, cost=table)
    people = frame[model.predict(frame) == 0].head(6)
    explainer.save(tmp_path / "explainer")
    again = Rocerf.load(tmp_path / "explainer")
    np.testing.assert_array_equal(again.explain(people).matrix, explainer.explain(people).matrix)
    np.testing.assert_allclose(again.explain(people).costs, explainer.explain(people).costs)


def test_rows_that_lack_a_number_are_told_not_refused() -> None:
    frame = pd.DataFrame({"a": [1.0, np.nan, 3.0], "b": ["x", "y", "x"]})
    schema = FeatureSchema.from_frame(frame)
    assert schema.validate(frame) == ("1 of 3 rows lack a number, and were not looked at further",)
