"""Walks of the adversary that stop where they would find nothing new, and what they begin with."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import numpy as np
import pytest

from problems import random_training_set, refused_people
from rocerf import Adversary, LogisticModel
from rocerf.deletion import searches
from rocerf.deletion.batched_newton import BatchedNewton
from rocerf.deletion.deletions import Deletions
from rocerf.deletion.efforts import EFFORTS, SMALL_TABLE
from rocerf.deletion.harms import HarmsAtHand
from rocerf.deletion.starts import FullModelHarms


def test_walks_that_end_near_known_sets_find_as_much_in_fewer_passes(monkeypatch: pytest.MonkeyPatch) -> None:
    model = LogisticModel.fit(random_training_set(8, n=SMALL_TABLE + 500, d=5), C=1.0)
    points, k = refused_people(model, 8, 12), 100
    looked, look = [0], BatchedNewton.look

    def counted(self: BatchedNewton, thetas: np.ndarray, *others: Any, **options: Any) -> Any:
        looked[0] += len(thetas)
        return look(self, thetas, *others, **options)

    monkeypatch.setattr(BatchedNewton, "look", counted)
    found = {}
    for near in (0.0, EFFORTS["normal"].near):
        looked[0] = 0
        attacks = Adversary(model, k, effort=replace(EFFORTS["normal"], near=near)).attack_all(points)
        found[near] = attacks.scores, looked[0]
    (whole, all_passes), (ended, passes) = found[0.0], found[EFFORTS["normal"].near]
    assert EFFORTS["normal"].near > 0
    assert passes < 0.75 * all_passes
    drops = model.score(points) - whole
    assert (np.abs(ended - whole) <= 1e-3 * drops).all()


def test_audits_walk_to_the_end() -> None:
    thorough = EFFORTS["thorough"]
    assert thorough.near == 0
    assert thorough.on(100).near == EFFORTS["normal"].on(100).near == 0


def test_harms_at_the_full_model_are_made_once_and_those_of_each_point(monkeypatch: pytest.MonkeyPatch) -> None:
    model = LogisticModel.fit(random_training_set(9, n=300, d=4), C=1.0)
    models = BatchedNewton.of(model)
    directions = model.score_gradient(refused_people(model, 9, 6))
    none = Deletions.of([np.empty(0, np.intp)] * 6, 1)
    thetas = np.tile(models.theta, (6, 1))
    expected = models.harms(models.look(thetas, none), thetas, none, directions, leverage=True)
    assert isinstance(expected, HarmsAtHand)
    made, calls = models.harms_of_full_model, []
    monkeypatch.setattr(models, "harms_of_full_model", lambda some: calls.append(len(some)) or made(some))
    harms = FullModelHarms(models, directions)
    for points in ([0, 2, 3, 5], [2, 5], [3]):
        own = harms.of(np.array(points))
        assert isinstance(own, HarmsAtHand)
        np.testing.assert_allclose(own.values, expected.values[points], rtol=1e-9, atol=1e-12)
    assert calls == [4]
    own = harms.of(np.array([1, 2]))
    assert isinstance(own, HarmsAtHand)
    np.testing.assert_allclose(own.values, expected.values[[1, 2]], rtol=1e-9, atol=1e-12)


def test_deleted_rows_do_not_shorten_a_step_of_a_wide_model() -> None:
    model = LogisticModel.fit(random_training_set(10, n=400, d=300), C=0.1)
    models = BatchedNewton.of(model)
    row = models.X[[7]]
    moves = 2.0 * row / (row @ row.T)
    others = np.abs(moves @ np.delete(models.X, 7, axis=0).T).max()
    gone, here = np.array([[1.0]]), np.array([[0.0]])
    rows = np.array([[7]])
    assert others < 1.0
    shortened = np.log1p(others) / others if others > 0.5 else 1.0
    np.testing.assert_allclose(models._damped(moves, rows, gone), shortened * moves, rtol=1e-6)
    np.testing.assert_allclose(models._damped(moves, rows, here), np.log1p(2.0) / 2.0 * moves, rtol=1e-6)


def test_ends_of_walks_are_retrained_where_approximate_scores_are_off(monkeypatch: pytest.MonkeyPatch) -> None:
    """Where columns are many, a walk's end that only looks harmless beside the best set known is retrained as well."""
    model = LogisticModel.fit(random_training_set(11, n=SMALL_TABLE + 500, d=6), C=1.0)
    points = refused_people(model, 11, 8)
    adversary = Adversary(model, 40)
    known = list(adversary.attack_all(points).deleted_rows)
    nearly = BatchedNewton.nearly

    def off(self: BatchedNewton, *given: Any, **named: Any) -> Any:
        """As on a wide table: scores on the way are too high by a per cent of the drop."""
        thetas, retrained, look, astray = nearly(self, *given, **named)
        return thetas, retrained - 0.01 * (retrained - self.theta), look, astray

    monkeypatch.setattr(BatchedNewton, "nearly", off)
    retrainings = {}
    for wide in (1, 10**9):
        monkeypatch.setattr(searches, "WIDE", wide)
        retrainings[wide] = int(adversary.attack_all(points, known=[known[0]] * len(points)).retrainings.sum())
    assert retrainings[1] > retrainings[10**9]
