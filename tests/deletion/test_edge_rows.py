"""The edge of the k worst rows: exact where it was made, never below the promise elsewhere, within its room."""

from __future__ import annotations

import numpy as np
import pytest

from rocerf.deletion.edge_rows import EdgeRows
from rocerf.deletion.worst_rows import find_worst_rows
from rocerf.types import Array

ROWS, WIDTH, PEOPLE = 3000, 4, 6


def problem(seed: int) -> tuple[Array, Array]:
    """Effects (n, p) and directions (P, p)."""
    rng = np.random.default_rng(seed)
    return rng.normal(size=(ROWS, WIDTH)), rng.normal(size=(PEOPLE, WIDTH))


def made(effects: Array, directions: Array, k: int, room: int) -> EdgeRows:
    """Edges from a quarter more rows than k."""
    found = find_worst_rows(directions, effects, int(1.25 * k))
    sums = find_worst_rows(directions, effects, k).shifts(effects)
    return EdgeRows(directions, found, sums, k, effects.__getitem__, room=room)


def drops(effects: Array, directions: Array, k: int) -> Array:
    """The sum of the k smallest values below 0, by sorting all."""
    return np.asarray(np.minimum(np.sort(directions @ effects.T, axis=1)[:, :k], 0.0).sum(axis=1))


def drops_of(shifts: Array, directions: Array) -> Array:
    """What moving the parameters so far does to each score."""
    return np.asarray(np.einsum("ij,ij->i", shifts, directions))


@pytest.mark.parametrize("room", [0, 60, 400, ROWS])
@pytest.mark.parametrize("k", [1, 40, 200, ROWS])
def test_exact_where_made_and_a_deletion_of_at_most_k_elsewhere(k: int, room: int) -> None:
    effects, at = problem(0)
    edges = made(effects, at, k, room)
    assert len(edges) <= room
    np.testing.assert_allclose(drops_of(edges.shifts(at, at), at), drops(effects, at, k), atol=1e-9)
    before = at
    for step in (0.01, 0.1, 1.0):
        now = at + step * np.random.default_rng(1).normal(size=at.shape)
        shifts = edges.shifts(now, before)
        elsewhere = np.random.default_rng(2).normal(size=(50, WIDTH))
        assert (drops_of(shifts, now) >= drops(effects, now, k) - 1e-9).all()
        assert (elsewhere @ shifts.T >= drops(effects, elsewhere, k)[:, None] - 1e-9).all()
        before = now


def test_with_room_the_rows_around_the_kth_are_chosen_anew() -> None:
    effects, at = problem(3)
    now = at + 0.01 * np.random.default_rng(1).normal(size=at.shape)
    true = drops(effects, now, 100)
    off = [float(np.max(drops_of(made(effects, at, 100, room).shifts(now, at), now) - true)) for room in (0, 150, ROWS)]
    assert off[0] > 1e-3
    assert off[2] < 1e-9
    assert off[0] > off[1]


def test_nothing_is_deleted_for_whom_nothing_was_found() -> None:
    effects, at = problem(4)
    edges = made(effects, at[:1], 20, ROWS)
    shifts = edges.shifts(at[:2], np.stack([at[0], np.full(WIDTH, np.nan)]))
    assert (shifts[0] != 0).any()
    np.testing.assert_array_equal(shifts[1], 0.0)
    np.testing.assert_array_equal(edges.shifts(at[1:2], at[2:3]), 0.0)


def test_fewer_harmful_rows_than_k() -> None:
    effects = np.abs(problem(5)[0])
    effects[:7] *= -1.0
    at = np.abs(problem(5)[1])
    edges = made(effects, at, 30, ROWS)
    now = at * 1.1
    np.testing.assert_allclose(drops_of(edges.shifts(now, at), now), drops(effects, now, 30), atol=1e-12)
