"""Hessians kept as matrices, as weights of rows, or sampled, against sums over all rows; and no cliff."""

from __future__ import annotations

import time
from itertools import combinations

import numpy as np
import pytest

from problems import random_training_set
from rocerf import LogisticModel, TrainingSet
from rocerf.deletion import batched_newton, hessians, squares
from rocerf.deletion.adversary import Adversary
from rocerf.deletion.batched_newton import BatchedNewton
from rocerf.deletion.deletions import Deletions
from rocerf.deletion.hessians import Matrices, RowWeights, Sampled
from rocerf.deletion.searches import _few_sets
from rocerf.deletion.squares import Squares
from rocerf.passes import chunks, one_blas_thread

OPTIONS = [{"C": 1.0}, {"gamma": 0.02}, {"C": 5.0, "fit_intercept": False}, {"C": 0.5, "class_weight": {0: 2.0}}]


def random_sets(n: int, count: int, k: int, seed: int = 0) -> list[np.ndarray]:
    rng = np.random.default_rng(seed)
    return [rng.choice(n, size=rng.integers(1, k + 1), replace=False) for _ in range(count)]


@pytest.mark.parametrize("way", ["kept", "anew", "alone", "sparse"])
@pytest.mark.parametrize("models", [1, 9])
def test_weighted_squares_are_the_same_in_every_way(way: str, models: int, monkeypatch: pytest.MonkeyPatch) -> None:
    always, never = -np.inf, np.inf
    monkeypatch.setattr(squares, "SPARSE", always if way != "sparse" else never)
    monkeypatch.setattr(squares, "PAIRS_BYTES", 2**28 if way in ("kept", "sparse") else 0)
    monkeypatch.setattr(squares, "KEPT_PAYS", 0.0)
    monkeypatch.setattr(squares, "ANEW_PAYS", 0.0 if way == "anew" else never)
    monkeypatch.setattr(squares, "CHUNK", 13)
    rng = np.random.default_rng(1)
    X = rng.normal(size=(50, 6)) * (rng.random((50, 6)) < 0.4)
    weights = rng.random((models, 50))
    made = Squares(X)
    assert (made.kept is None) == (way in ("anew", "alone"))
    parts = [made.of(weights[:, rows], rows) for rows in chunks(50, made.chunk)]
    assert (parts[0].ndim == 3) == (way == "alone")
    np.testing.assert_allclose(made.whole(sum(parts)), np.einsum("mi,ij,il->mjl", weights, X, X), atol=1e-12)
    matrices = rng.normal(size=(models, 6, 6))
    matrices += matrices.transpose(0, 2, 1)
    np.testing.assert_allclose(made.lengths(matrices), np.einsum("ij,mjl,il->mi", X, matrices, X), atol=1e-12)


def kinds(monkeypatch: pytest.MonkeyPatch, kind: type, sample: int = 40) -> None:
    """Make every table wide, or tall enough to be sampled, or neither."""
    monkeypatch.setattr(batched_newton, "WIDE", 1 if kind is RowWeights else 10**9)
    monkeypatch.setattr(batched_newton, "SAMPLE", sample)
    monkeypatch.setattr(hessians, "SAMPLE", sample)
    monkeypatch.setattr(hessians, "SAMPLE_PAYS", 1 if kind is Sampled else 10**9)


@pytest.mark.parametrize("weights", [False, True])
@pytest.mark.parametrize("options", OPTIONS)
@pytest.mark.parametrize("kind", [RowWeights, Sampled])
def test_models_converge_to_exact_retraining_however_hessians_are_kept(
    kind: type, options: dict, weights: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    kinds(monkeypatch, kind)
    model = LogisticModel.fit(random_training_set(1, n=300, weights=weights), **options)
    sets = random_sets(300, 12, 6)
    deletions, models = Deletions.of(sets, 6), BatchedNewton(model)
    assert type(models.hessians) is kind
    monkeypatch.setattr(BatchedNewton, "_carefully", None)  # Newton for many must get there by itself
    exact = [model.without(model.train.ids[chosen]).theta for chosen in sets]
    for start in (models.first_guess(deletions), np.tile(model.theta, (12, 1))):
        np.testing.assert_allclose(models.converge(start, deletions), exact, atol=1e-8)


@pytest.mark.parametrize("options", OPTIONS)
def test_systems_by_rows_are_those_by_matrices(options: dict, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(hessians, "RESIDUAL", 1e-6)
    model = LogisticModel.fit(random_training_set(2, n=60), **options)
    sets, rng = random_sets(60, 7, 4), np.random.default_rng(0)
    deletions, thetas = Deletions.of(sets, 4), model.theta + 0.1 * rng.normal(size=(7, len(model.theta)))
    vectors, found = rng.normal(size=thetas.shape), []
    for kind in (Matrices, RowWeights):
        kinds(monkeypatch, kind)
        models = BatchedNewton(model)
        look = models.look(thetas, deletions)
        other = models.hessians.less(look.hessians, np.full((7, 1), 0.01), np.ones((7, 1), np.intp), np.zeros((7, 1)))
        found.append((look.gradients, models.solve(look.hessians, vectors), models.solve(other, vectors)))
    (gradients, *solved), (others, *solved_by_rows) = found
    np.testing.assert_allclose(gradients, others, rtol=1e-8, atol=1e-9)
    for one, two in zip(solved, solved_by_rows, strict=True):  # products with rows are in single precision
        np.testing.assert_allclose(one, two, rtol=1e-4, atol=1e-6)


def test_a_system_without_solution_is_called_so(monkeypatch: pytest.MonkeyPatch) -> None:
    kinds(monkeypatch, RowWeights)
    models = BatchedNewton(LogisticModel.fit(random_training_set(2, n=60), C=1.0))
    bent = np.stack([models.hessian, -models.hessian])
    solved = models.solve(bent, np.ones((2, len(models.theta))))
    assert np.isfinite(solved[0]).all()
    assert np.isnan(solved[1]).all()


def with_rare_column(n: int = 3000) -> LogisticModel:
    rng = np.random.default_rng(4)
    X = np.column_stack([rng.normal(size=(n, 3)), rng.permutation(n) < 4])
    return LogisticModel.fit(TrainingSet(X, X[:, :3].sum(axis=1) + rng.logistic(size=n) > 0), C=1.0)


def test_sampled_hessians_are_near_those_of_all_rows_rare_values_included(monkeypatch: pytest.MonkeyPatch) -> None:
    """The four holders of the rare value count for themselves; what a sample of a tenth says of the others is near."""
    model = with_rare_column()
    kinds(monkeypatch, Sampled, sample=300)
    models = BatchedNewton(model)
    holders = np.flatnonzero(model.train.X[:, 3])
    assert (models.hessians.stands_for(holders) == 1.0).all()
    deletions = Deletions.of([holders[:3], np.argsort(-models.push())[:15]], 15)
    thetas = models.first_guess(deletions)
    near, exact = (models.look(thetas, deletions, exactly=exactly).hessians for exactly in (False, True))
    for one, true in zip(near, exact, strict=True):
        root = np.linalg.inv(np.linalg.cholesky(true))
        assert np.abs(np.linalg.eigvalsh(root @ one @ root.T) - 1.0).max() < 0.03


def test_a_sample_of_all_rows_is_exact(monkeypatch: pytest.MonkeyPatch) -> None:
    model = with_rare_column(200)
    kinds(monkeypatch, Sampled, sample=200)
    monkeypatch.setattr(hessians, "SAMPLE_PAYS", 0)
    models, deletions = BatchedNewton(model), Deletions.of(random_sets(200, 5, 9), 9)
    thetas = model.theta + 0.3 * np.random.default_rng(0).normal(size=(5, len(model.theta)))
    looks = [models.look(thetas, deletions, exactly=exactly).hessians for exactly in (False, True)]
    np.testing.assert_allclose(*looks, atol=1e-10)


@pytest.mark.parametrize("kind", [RowWeights, Sampled])
def test_the_adversary_finds_as_much_however_hessians_are_kept(kind: type, monkeypatch: pytest.MonkeyPatch) -> None:
    train = random_training_set(7, n=800, d=5)
    points, scores = train.X[:6], []
    for which in (Matrices, kind):
        kinds(monkeypatch, which, sample=150)
        model = LogisticModel.fit(train, C=1.0)
        attacks = Adversary(model, 8, effort="quick").attack_all(points)
        true = [model.without(ids).score(points[place : place + 1])[0] for place, ids in enumerate(attacks.deleted_ids)]
        np.testing.assert_allclose(attacks.scores, true, atol=1e-8)
        scores.append(attacks.scores)
    drops = model.score(points) - np.array(scores)
    assert (np.abs(drops[1] - drops[0]) < 0.01 * drops[0]).all()


def test_few_sets_are_counted() -> None:
    for rows in range(6):
        for k in range(5):
            count = sum(len(list(combinations(range(rows), size))) for size in range(1, k + 1))
            for most in (1, 5, 12, 30):
                assert _few_sets(rows, k, most) == (count <= most)
    assert not _few_sets(10**6, 5000, 20_000)


@pytest.mark.slow
@pytest.mark.parametrize("shape", [(160_000, 20), (3000, 130), (3000, 400)])
def test_a_batch_is_never_slower_than_one_by_one(shape: tuple[int, int]) -> None:
    """The first two shapes are those at which all products of columns used to be made again for every pass."""
    rng = np.random.default_rng(0)
    X = rng.normal(size=shape)
    y = X[:, 0] + 2.0 * rng.logistic(size=len(X)) > 0
    model = LogisticModel.fit(TrainingSet(X, y), C=0.01)
    sets = random_sets(len(X), 2, 10)
    with one_blas_thread():
        models = BatchedNewton.of(model)
        models.prepare()
        deletions = Deletions.of(sets, 10)
        start = time.process_time()
        found = models.converge(models.first_guess(deletions), deletions)
        together = time.process_time() - start
        start = time.process_time()
        alone = [model.without(model.train.ids[chosen]).theta for chosen in sets]
        one_by_one = time.process_time() - start
    np.testing.assert_allclose(found, alone, atol=1e-8)
    assert together < one_by_one
