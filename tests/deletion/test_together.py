"""Sets that grow side by side and exchanges, against a search that shares no code and against dense algebra."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest
from benchmarks.own_beam import OwnBeam
from sklearn.datasets import load_breast_cancer, load_wine
from sklearn.preprocessing import StandardScaler

from rocerf import Adversary, LogisticModel, Rocerf, TrainingSet
from rocerf.deletion.batched_newton import BatchedNewton
from rocerf.deletion.efforts import EFFORTS
from rocerf.deletion.together import exchanges, rated, side_by_side
from rocerf.types import Array


def table(name: str) -> tuple[Array, Array]:
    """Standardised rows and labels of one of scikit-learn's tables: nearly separable, columns nearly collinear."""
    loaded = load_breast_cancer() if name == "cancer" else load_wine()
    labels = loaded.target if name == "cancer" else (loaded.target == 1).astype(int)
    return StandardScaler().fit_transform(loaded.data), labels


@pytest.mark.parametrize(("name", "C", "k"), [("cancer", 1.0, 3), ("cancer", 100.0, 2), ("wine", 100.0, 3)])
def test_nothing_worse_is_found_by_a_beam_of_other_code(name: str, C: float, k: int) -> None:
    """Of answers to these, up to five of eight fell to such a beam while sets grew one at a time."""
    rows, labels = table(name)
    model = LogisticModel.fit(TrainingSet(rows, labels), C=C)
    answers = Rocerf(model, k).explain(rows[model.predict(rows) == 0][:4])
    assert answers.answered.any()
    own = OwnBeam(rows, labels, C)
    points = answers.matrix[answers.answered]
    found = Adversary(model, k, seed=5).attack_all(points).scores
    for point, score in zip(points, found, strict=True):
        theirs, gone = own.worst(point, k, width=12)
        today = float(model.score(point[None])[0])
        assert theirs >= -1e-9, f"{sorted(gone)} undo a point with the promise retrained: {theirs}"
        assert today - score >= 0.999 * (today - theirs), f"{sorted(gone)} are worse: {theirs}, reported {score}"


def test_one_path_alone_misses_worse_sets() -> None:
    """Without beams the same search finds less: the test above can fail."""
    rows, labels = table("cancer")
    model = LogisticModel.fit(TrainingSet(rows, labels), C=100.0)
    points = Rocerf(model, 1).explain(rows[model.predict(rows) == 0][:6])
    points_at = points.matrix[points.answered]
    small = EFFORTS["normal"].on(len(rows), rows.shape[1])
    alone = Adversary(model, 5, effort=replace(small, beam_size=0, swap_width=0)).attack_all(points_at).scores
    beams = Adversary(model, 5, effort=small).attack_all(points_at).scores
    assert (beams <= alone + 1e-9).all()
    assert (beams < alone - 1e-3).any()


@pytest.fixture(scope="module")
def wines() -> tuple[LogisticModel, BatchedNewton, OwnBeam]:
    """A model of wines, the batched one of it, and the one of other code."""
    rows, labels = table("wine")
    model = LogisticModel.fit(TrainingSet(rows, labels), C=1.0)
    return model, BatchedNewton(model), OwnBeam(rows, labels, 1.0)


def test_rows_are_rated_at_the_model_without_the_set(wines: tuple[LogisticModel, BatchedNewton, OwnBeam]) -> None:
    model, models, own = wines
    point = np.append(model.train.X[3], 1.0)
    sets = [np.array([], np.intp), np.array([5, 70, 71], np.intp)]
    guesses = np.tile(models.theta, (2, 1))
    found = rated(models, np.tile(point, (2, 1)), sets, sets, guesses, 6, 4)
    for chosen, options in zip(sets, found, strict=True):
        gone = tuple(chosen.tolist())
        theta = own.fitted(gone, own.full)
        harms = theta @ point + own.harms(gone, point, theta)
        best = np.argsort(harms)[:6]
        assert [int(one[1][-1]) for one in options] == best.tolist()
        np.testing.assert_allclose([one[0] for one in options], harms[best], atol=1e-3)


def test_sets_of_a_beam_are_different_and_full(wines: tuple[LogisticModel, BatchedNewton, OwnBeam]) -> None:
    model, models, _ = wines
    directions = np.column_stack([model.train.X[:2], np.ones(2)])
    for sets in side_by_side(models, directions, 3, 5):
        assert [len(set(chosen.tolist())) for chosen in sets] == [3] * 5
        assert len({tuple(sorted(chosen.tolist())) for chosen in sets}) == 5


def test_an_exchange_changes_one_row_and_brings_none_back(wines: tuple[LogisticModel, BatchedNewton, OwnBeam]) -> None:
    model, models, _ = wines
    direction = np.append(model.train.X[0], 1.0)[None]
    chosen = np.array([2, 60, 90], np.intp)
    (found,) = exchanges(models, direction, [chosen], [chosen[:2]], 3, 8)
    assert 0 < len(found) <= 8
    for candidate in found:
        left, came = set(chosen.tolist()) - set(candidate.tolist()), set(candidate.tolist()) - set(chosen.tolist())
        assert len(left) == len(came) == 1
        assert 90 not in left
    (grown,) = exchanges(models, direction, [chosen], [chosen[:0]], 4, 8)  # less than k rows: it may also grow
    assert all(set(chosen.tolist()) < set(candidate.tolist()) for candidate in grown)
