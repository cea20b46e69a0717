"""Worst rows found among those written down nearby, against a full sort; and when that may not be trusted."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from problems import random_training_set
from rocerf import LogisticModel, Rocerf
from rocerf.deletion import near_rows, worst_rows
from rocerf.deletion.near_rows import NearRows, Shortlist
from rocerf.promises import FirstOrder
from rocerf.promises.promise import Reading


def check(directions: np.ndarray, effects: np.ndarray, k: int, found: worst_rows.WorstRows) -> None:
    for person, scores in enumerate(directions @ effects.T):
        expected = np.sort(scores[scores < 0])[:k]
        positions = found.of(person)
        assert len(set(positions.tolist())) == len(positions) == len(expected)
        np.testing.assert_allclose(np.sort(scores[positions]), expected, atol=1e-12)
        np.testing.assert_allclose(found.drops[person], expected.sum(), atol=1e-10)


@settings(max_examples=60, deadline=None)
@given(st.integers(0, 10**6), st.integers(1, 2500), st.integers(0, 60), st.floats(-9, 1))
def test_worst_rows_near_a_list_are_those_of_a_full_sort(seed: int, n: int, k: int, step: float) -> None:
    rng = np.random.default_rng(seed)
    kind = rng.integers(3)
    effects = [rng.normal(size=(n, 3)), rng.standard_cauchy(size=(n, 3)), rng.integers(-2, 3, size=(n, 3)) / 1.0][kind]
    effects[:, 2] *= 10.0 ** rng.integers(-6, 6)
    if rng.random() < 0.2:
        effects[:, 1] = effects[:, 0]  # effects in a subspace
    rows, directions = NearRows(effects), rng.normal(size=(70, 3))
    lists: Sequence[Shortlist | None] = [None] * len(directions)
    for _ in range(3):
        found, lists = rows.worst(directions, k, lists)
        check(directions, effects, k, found)
        directions = directions + 10.0**step * rng.normal(size=directions.shape)


def test_a_small_step_looks_at_few_rows_and_a_large_one_at_all(monkeypatch: pytest.MonkeyPatch) -> None:
    rng = np.random.default_rng(0)
    effects, directions, k = rng.normal(size=(20_000, 4)), rng.normal(size=(100, 4)), 50
    rows, asked, find = NearRows(effects), [], near_rows.find_with_survivors

    def counted(directions: np.ndarray, *others: Any) -> Any:
        asked.append(len(directions))
        return find(directions, *others)

    monkeypatch.setattr(near_rows, "find_with_survivors", counted)
    _, lists = rows.worst(directions, k, [None] * 100)
    longest = max(len(known.positions) for known in lists if known is not None)
    found, same = rows.worst(directions + 1e-3, k, lists)
    check(directions + 1e-3, effects, k, found)
    far, _ = rows.worst(-directions, k, same)
    check(-directions, effects, k, far)
    assert asked == [100, 0, 100]
    assert longest < 10 * k  # of 20,000 rows
    assert all(one is two for one, two in zip(lists, same, strict=True))


def test_a_row_left_off_a_list_is_found_when_the_bound_does_not_hold() -> None:
    """A list that says too much of itself would hide a row: the bound, not the list, decides."""
    effects = np.concatenate([np.full((400, 1), -1.0), [[-1.5]]]) * np.array([[1.0, 0.0]])
    effects[-1] = [-0.9, -5.0]  # hardly harmful in the first direction, most in the second
    rows = NearRows(effects)
    _, lists = rows.worst(np.array([[1.0, 0.0]]), 1, [None])
    found, _ = rows.worst(np.array([[1.0, 1.0]]), 1, lists)
    assert found.of(0).tolist() == [400]


def test_first_order_read_near_is_first_order(monkeypatch: pytest.MonkeyPatch) -> None:
    model = LogisticModel.fit(random_training_set(3, n=3000, d=4), C=1.0)
    people = random_training_set(4, n=300, d=4).X
    promise, plain = FirstOrder(model, 15), FirstOrder(model, 15)
    before, points = np.full(people.shape, np.nan), people
    for step in (0.0, 1e-6, 1e-3, 1.0):
        points = points + step
        near, alone = promise.read_near(points, before), plain.read(points)
        np.testing.assert_allclose(near.values, alone.values, atol=1e-12)
        np.testing.assert_allclose(near.slopes, alone.slopes, atol=1e-12)
        assert all(set(near.worst_ids(one)) == set(alone.worst_ids(one)) for one in range(len(people)))
        before = points


def test_answers_do_not_depend_on_what_is_remembered(monkeypatch: pytest.MonkeyPatch) -> None:
    model = LogisticModel.fit(random_training_set(3, n=3000, d=4), C=1.0)
    people = random_training_set(4, n=300, d=4).X
    people = people[model.predict(people) == 0]
    near = Rocerf(model, 15, promise="first_order").explain(people)

    def afresh(self: FirstOrder, X: np.ndarray, before: np.ndarray, target: Any = -np.inf) -> Reading:
        return self.read(X, target)

    monkeypatch.setattr(FirstOrder, "read_near", afresh)
    alone = Rocerf(model, 15, promise="first_order").explain(people)
    assert near.answered.all()
    np.testing.assert_allclose(near.matrix, alone.matrix, atol=1e-9)
    np.testing.assert_allclose(near.margins, alone.margins, atol=1e-9)


def test_lists_are_forgotten_when_they_are_many(monkeypatch: pytest.MonkeyPatch) -> None:
    model = LogisticModel.fit(random_training_set(3, n=3000, d=4), C=1.0)
    people = random_training_set(4, n=50, d=4).X
    monkeypatch.setattr("rocerf.promises.first_order.MOST_LISTED", 500)
    promise = FirstOrder(model, 15)
    for _ in range(3):
        reading = promise.read_near(people, people)
        np.testing.assert_allclose(reading.values, FirstOrder(model, 15).read(people).values, atol=1e-12)
        assert sum(len(known.positions) for known in promise._lists.values()) <= 500
