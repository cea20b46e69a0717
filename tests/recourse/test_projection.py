"""The batched projection against a general solver and against known degenerate cases."""

from __future__ import annotations

import numpy as np
import pytest

from problems import quadratic_program
from rocerf.recourse.master.projection import least_distance, project


def random_problems(kind: str, seed: int, P: int, m: int, d: int) -> tuple[np.ndarray, ...]:
    rng = np.random.default_rng(seed)
    normals = rng.normal(size=(P, m, d))
    if kind == "nearly parallel":  # what a cutting-plane loop produces
        normals = rng.normal(size=(P, 1, d)) + 10.0 ** rng.uniform(-6, -1, size=(P, m, 1)) * normals
    offsets = rng.uniform(-0.5, 2.0, size=(P, m))
    width = np.inf if kind == "no box" else 1.0
    lower, upper = np.full((P, d), -min(width, 1e4)), np.full((P, d), min(width, 1e4))
    if kind == "some fixed":
        fixed = rng.random((P, d)) < 0.4
        lower[fixed] = upper[fixed] = 0.0
    if kind == "outside the box":
        lower[:, 0], upper[:, 0] = 0.3, 0.8
        lower[:, 1], upper[:, 1] = -0.8, -0.3
    return normals, offsets, lower, upper


@pytest.mark.parametrize(("m", "d"), [(1, 2), (3, 2), (4, 6), (8, 13)])
@pytest.mark.parametrize("kind", ["box", "no box", "nearly parallel", "some fixed", "outside the box"])
def test_equals_an_independent_solver(kind: str, m: int, d: int) -> None:
    problems = random_problems(kind, m * 100 + d, 40, m, d)
    found = project(*problems)
    for i, one in enumerate(zip(*problems, strict=True)):
        reference = quadratic_program(*one)
        assert found.feasible[i] == (reference is not None), (kind, i)
        if reference is None:
            assert np.isnan(found.points[i]).all()
            continue
        normals, offsets, lower, upper = one
        u = found.points[i]
        assert (normals @ u >= offsets - 1e-8 * (1 + np.linalg.norm(normals, axis=1))).all()
        assert (u >= lower).all()
        assert (u <= upper).all()
        assert np.linalg.norm(u) == pytest.approx(np.linalg.norm(reference), abs=1e-6)


def test_repeated_cuts_and_empty_places() -> None:
    cut = np.array([1.0, 2.0])
    normals = np.array([[cut, cut, 3 * cut, [0.0, 0.0]]])
    offsets = np.array([[1.0, 1.0, 3.0, -1.0]])
    found = project(normals, offsets, np.full((1, 2), -9.0), np.full((1, 2), 9.0))
    np.testing.assert_allclose(found.points, [[0.2, 0.4]], atol=1e-9)


def test_contradictory_cuts_are_infeasible() -> None:
    normals = np.array([[[1.0, 0.0], [-1.0, 0.0]]])
    found = project(normals, np.array([[1.0, 0.5]]), np.full((1, 2), -1e4), np.full((1, 2), 1e4))
    assert not found.feasible[0]


def test_a_corner_of_the_box_that_just_reaches_the_cut() -> None:
    found = project(np.array([[[1.0, 1.0]]]), np.array([[2.0]]), np.full((1, 2), -1.0), np.full((1, 2), 1.0))
    np.testing.assert_allclose(found.points, [[1.0, 1.0]], atol=1e-6)


def test_the_fallback_agrees_with_the_fast_path() -> None:
    problems = random_problems("box", 5, 60, 4, 5)
    found = project(*problems)
    for i, one in enumerate(zip(*problems, strict=True)):
        exact = least_distance(*one)
        assert (exact is not None) == found.feasible[i]
        if exact is not None:
            np.testing.assert_allclose(exact, found.points[i], atol=1e-6)
