"""The worst-k kernel against a full sort."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from rocerf.deletion import worst_rows
from rocerf.deletion.worst_rows import WorstRows, find_worst_rows, merge


def by_full_sort(directions: np.ndarray, effects: np.ndarray, k: int) -> list[np.ndarray]:
    """The k smallest negative values of each person, ascending."""
    return [np.sort(row[row < 0])[:k] for row in directions @ effects.T]


def check(found: WorstRows, directions: np.ndarray, effects: np.ndarray, k: int) -> None:
    scores = directions @ effects.T
    expected = by_full_sort(directions, effects, k)
    assert len(found) == len(directions)
    for person, values in enumerate(expected):
        positions = found.of(person)
        assert len(set(positions.tolist())) == len(positions) == len(values)
        np.testing.assert_allclose(np.sort(scores[person, positions]), values, atol=1e-12)
    np.testing.assert_allclose(found.drops, [values.sum() for values in expected], atol=1e-11)
    sums = np.array([effects[found.of(person)].sum(axis=0) for person in range(len(directions))])
    np.testing.assert_allclose(found.shifts(effects), sums.reshape(len(directions), -1), atol=1e-11)


@pytest.fixture(params=["one block", "many blocks", "tiny sample"])
def _blocks(request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch) -> None:
    sizes = {"one block": (64, 2048, 1024), "many blocks": (3, 7, 4), "tiny sample": (5, 50, 2)}[request.param]
    for name, value in zip(("PEOPLE_BLOCK", "ROW_BLOCK", "SAMPLE_LEAST"), sizes, strict=True):
        monkeypatch.setattr(worst_rows, name, value)


@pytest.mark.usefixtures("_blocks")
@pytest.mark.parametrize("k", [0, 1, 5, 50, 199])
@pytest.mark.parametrize("kind", ["normal", "ties", "all equal", "sorted", "all positive", "heavy", "zeros"])
def test_equals_a_full_sort(kind: str, k: int) -> None:
    rng = np.random.default_rng(k)
    n, p = 200, 3
    effects = {
        "normal": lambda: rng.normal(size=(n, p)),
        "ties": lambda: rng.integers(-2, 3, size=(n, p)).astype(float),
        "all equal": lambda: np.full((n, p), -1.0),
        "sorted": lambda: np.sort(rng.normal(size=(n, 1)), axis=0)[::-1] * np.ones(p),  # the sample sees the best only
        "all positive": lambda: rng.uniform(1, 2, size=(n, p)),
        "heavy": lambda: rng.standard_cauchy(size=(n, p)),
        "zeros": lambda: np.zeros((n, p)),
    }[kind]()
    directions = (
        rng.normal(size=(11, p)) if kind not in ("sorted", "all positive") else np.abs(rng.normal(size=(11, p)))
    )
    check(find_worst_rows(directions, effects, k), directions, effects, k)


@settings(max_examples=80, deadline=None)
@given(st.integers(0, 10**6), st.integers(1, 300), st.integers(0, 40), st.integers(1, 9))
def test_equals_a_full_sort_at_random(seed: int, n: int, k: int, people: int) -> None:
    rng = np.random.default_rng(seed)
    effects = np.round(rng.normal(size=(n, 2)), int(rng.integers(0, 4)))
    directions = np.round(rng.normal(size=(people, 2)), 1)
    check(find_worst_rows(directions, effects, min(k, n - 1)), directions, effects, min(k, n - 1))


@pytest.mark.parametrize("k", [1, 4, 30])
def test_chunks_merge_exactly_in_any_grouping(k: int) -> None:
    rng = np.random.default_rng(k)
    effects, directions = rng.normal(size=(90, 3)), rng.normal(size=(6, 3))
    parts = []
    for start in range(0, 90, 20):
        part = find_worst_rows(directions, effects[start : start + 20], k)
        parts.append(WorstRows(part.positions + start, part.values, part.starts))
    left = parts[0]
    for part in parts[1:]:
        left = merge(left, part, k)
    right = merge(merge(parts[0], parts[1], k), merge(merge(parts[2], parts[3], k), parts[4], k), k)
    for merged in (left, right):
        check(merged, directions, effects, k)


def test_nobody_and_no_rows() -> None:
    assert len(find_worst_rows(np.empty((0, 2)), np.ones((3, 2)), 1)) == 0
    empty = find_worst_rows(np.ones((2, 2)), np.empty((0, 2)), 1)
    assert empty.drops.tolist() == [0.0, 0.0]


def test_working_memory_is_bounded_when_the_threshold_is_loose(monkeypatch: pytest.MonkeyPatch) -> None:
    """With threshold 0 every negative row survives; the kernel must squeeze, not pile up."""
    monkeypatch.setattr(worst_rows, "ROW_BLOCK", 64)
    largest = 0
    original = worst_rows.k_smallest

    def watched(parts: list, *rest: object) -> WorstRows:
        nonlocal largest
        largest = max(largest, sum(len(owners) for owners, _, _ in parts))
        return original(parts, *rest)

    monkeypatch.setattr(worst_rows, "k_smallest", watched)
    monkeypatch.setattr(worst_rows, "_guess_threshold", lambda block, effects, k: np.zeros(len(block)))
    rng = np.random.default_rng(0)
    effects = -np.sort(rng.uniform(1, 2, size=(50_000, 1)), axis=0)  # ever worse rows: thresholds never help
    directions = np.ones((4, 1))
    check(find_worst_rows(directions, effects, 10), directions, effects, 10)
    assert largest < 4 * 5 * (10 + 64) + 4 * 64


@pytest.mark.parametrize("at_a_time", [1, 30, 10**6])
def test_many_values_are_selected_from_for_some_people_at_a_time(
    at_a_time: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The same rows, however many entries are handled at a time; also of people who have fewer than k, or none."""
    monkeypatch.setattr(worst_rows, "AT_A_TIME", at_a_time)
    rng, people, k = np.random.default_rng(0), 9, 12
    parts = []
    for number in range(4):
        owners = rng.choice([0, 1, 1, 1, 4, 5, 6, 8, 8], size=50)
        parts.append((owners.astype(np.uint8), -rng.random(50), 1000 * number + rng.permutation(50)))
    found = worst_rows.k_smallest(parts, people, k)
    owners, values, rows = map(np.concatenate, zip(*parts, strict=True))
    for person in range(people):
        own = owners == person
        smallest = np.argsort(values[own])[:k]
        assert found.of(person).tolist() == rows[own][smallest].tolist()
    fewer = found.smallest(5)
    assert [fewer.of(person).tolist() for person in range(people)] == [found.of(p).tolist()[:5] for p in range(people)]
