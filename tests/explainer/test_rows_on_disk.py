"""Recourses from rows on the disk are those from rows in memory, however the table is cut and whoever runs."""

from __future__ import annotations

from functools import cache
from pathlib import Path

import numpy as np
import pytest

from parquet_tables import table_of, written
from rocerf import Adversary, LogisticModel, Recourses, Rocerf, TrainingSet, load_dataset
from rocerf.audit.removal_budget import removal_budget
from rocerf.data.datasets import Dataset
from rocerf.deletion import batched_newton, streamed_rows
from rocerf.deletion.batched_newton import streams
from rocerf.errors import UnsupportedModelError
from rocerf.evaluation.metrics import average_validity
from rocerf.passes import using
from rocerf.promises import certified
from shared_data import SHARED, needs_shared

pytest.importorskip("pyarrow")


@cache
def in_memory(name: str, promise: str) -> Recourses:
    return _answers(LogisticModel.fit(_rows(name)), name, promise)


@cache
def _data(name: str) -> Dataset:
    return load_dataset(name, path=SHARED / "openxai") if name == "compas" else load_dataset(name)


def _rows(name: str) -> TrainingSet:
    """All rows of German and COMPAS, and as many of Adult as are streamed over."""
    train = _data(name).train
    return train if name != "adult" else train.without(train.ids[4300:])


def _answers(model: LogisticModel, name: str, promise: str) -> Recourses:
    data = _data(name)
    people = data.test.frame().iloc[:60]
    denied = people[model.predict(people) == 0].iloc[:3]
    return Rocerf(model, 4, promise=promise, effort="quick").explain(denied)


@pytest.mark.parametrize("promise", ["first_order", "retrained"])
@pytest.mark.parametrize("name", ["german", "adult", pytest.param("compas", marks=needs_shared)])
@pytest.mark.parametrize(
    "parts", [pytest.param(1, marks=pytest.mark.slow), 7, pytest.param(40, marks=pytest.mark.slow)]
)
def test_the_same_recourses(
    name: str, promise: str, parts: int, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Also where nothing is held of the rows: tables of more than 4,096 rows are made to count as large."""
    folder = written(table_of(_rows(name)), tmp_path / "rows", parts)
    train = TrainingSet.from_parquet(folder, label="good", id="who")
    expected = in_memory(name, promise)
    monkeypatch.setattr(batched_newton, "HELD", 0)
    monkeypatch.setattr(streamed_rows, "LONG_CHUNK", 1000)
    for runner in ("serial", "threads"):
        with using(runner):
            model = LogisticModel.fit(train)
            found = _answers(model, name, promise)
        assert streams(model) == (len(train) > 4096)
        assert expected.answered.any()
        assert found.statuses == expected.statuses
        assert found.settings.data_checksum == expected.settings.data_checksum
        np.testing.assert_allclose(found.matrix, expected.matrix, rtol=0, atol=1e-9)


def test_audits_and_attacks_are_the_same(tmp_path: Path) -> None:
    memory = load_dataset("german").train
    folder = written(table_of(memory), tmp_path / "rows", 7)
    disk = TrainingSet.from_parquet(folder, label="good", id="who")
    one, other = LogisticModel.fit(disk), LogisticModel.fit(memory)
    points = _answers(other, "german", "first_order")
    first, second = (Adversary(model, 4, effort="quick").attack(points.matrix[:3]) for model in (one, other))
    np.testing.assert_allclose(first.scores, second.scores, atol=1e-9)
    for mine, theirs in zip(first.deleted_ids, second.deleted_ids, strict=True):
        assert sorted(mine) == sorted(theirs)
    explainer = Rocerf(one, 4, promise="first_order", effort="quick")
    before = explainer.recheck(points, memory.ids[:9])
    truth = Rocerf(other, 4, promise="first_order", effort="quick").recheck(points, memory.ids[:9])
    np.testing.assert_allclose(before.after, truth.after, atol=1e-9)
    forgotten = explainer.forget(memory.ids[:9])
    assert forgotten.model.train.checksum == memory.without(memory.ids[:9]).checksum


def test_budgets_and_random_deletions_are_the_same(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Where nothing is held of the rows: the upper side of a budget, and validity after random deletions."""
    expected = in_memory("adult", "first_order")
    points = expected.matrix[expected.answered]
    folder = written(table_of(_rows("adult")), tmp_path / "rows", 7)
    disk, memory = TrainingSet.from_parquet(folder, label="good", id="who"), LogisticModel.fit(_rows("adult"))
    budget, validity = removal_budget(memory, points, 8, effort="quick"), average_validity(memory, points, 0.02, 4)
    monkeypatch.setattr(batched_newton, "HELD", 0)
    monkeypatch.setattr(streamed_rows, "LONG_CHUNK", 1000)
    model = LogisticModel.fit(disk)
    assert streams(model)
    found = removal_budget(model, points, 8, effort="quick")
    assert (found.found.tolist(), found.tried) == (budget.found.tolist(), budget.tried)
    assert 0 < found.found.min() < 8
    np.testing.assert_array_equal(average_validity(model, points, 0.02, 4).by_trial, validity.by_trial)


def test_a_proof_says_up_to_which_size_it_is_made(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    folder = written(table_of(load_dataset("german").train), tmp_path / "rows", 1)
    model = LogisticModel.fit(TrainingSet.from_parquet(folder, label="good", id="who"))
    Rocerf(model, 1, promise="certified")
    monkeypatch.setattr(certified, "MOST_ON_DISK", 1000)
    with pytest.raises(UnsupportedModelError, match="at most 1,000 numbers on the disk"):
        Rocerf(model, 1, promise="certified")
