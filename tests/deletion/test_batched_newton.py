"""Many models at once against one at a time."""

from __future__ import annotations

import gc
import weakref
from collections.abc import Sequence
from functools import reduce
from typing import Any

import cloudpickle
import numpy as np
import pytest

from nasty import problems
from problems import random_training_set
from rocerf import LogisticModel, TrainingSet
from rocerf.deletion import hessians, squares
from rocerf.deletion.batched_newton import BatchedNewton
from rocerf.deletion.deletions import Deletions
from rocerf.passes import using

OPTIONS = [{"C": 1.0}, {"gamma": 0.02}, {"C": 5.0, "fit_intercept": False}, {"C": 0.5, "class_weight": {0: 2.0}}]


def random_sets(n: int, count: int, k: int, seed: int = 0) -> list[np.ndarray]:
    rng = np.random.default_rng(seed)
    return [rng.choice(n, size=rng.integers(1, k + 1), replace=False) for _ in range(count)]


@pytest.mark.parametrize("weights", [False, True])
@pytest.mark.parametrize("options", OPTIONS)
def test_converged_models_equal_exact_retraining(options: dict, weights: bool) -> None:
    model = LogisticModel.fit(random_training_set(1, n=50, weights=weights), **options)
    sets = random_sets(50, 20, 5)
    deletions = Deletions.of(sets, 5)
    models = BatchedNewton(model)
    found = models.converge(models.first_guess(deletions), deletions)
    exact = [model.without(model.train.ids[chosen]).theta for chosen in sets]
    np.testing.assert_allclose(found, exact, atol=1e-9)


@pytest.mark.parametrize("weights", [False, True])
@pytest.mark.parametrize("options", OPTIONS)
def test_carried_models_are_one_newton_step_from_where_they_were(options: dict, weights: bool) -> None:
    model = LogisticModel.fit(random_training_set(3, n=50, weights=weights), **options)
    before, after = random_sets(50, 12, 5, seed=1), random_sets(50, 12, 5, seed=2)
    models = BatchedNewton(model)
    there = np.array([model.without(model.train.ids[chosen]).theta for chosen in before])
    hessians = models.look(there, Deletions.of(before, 5)).hessians
    carried = models.carried(there, hessians, Deletions.of(before, 5), Deletions.of(after, 5))
    for theta, chosen, found in zip(there, after, carried, strict=True):
        gradient, hessian = model.without(model.train.ids[chosen]).objective.gradient_and_hessian(theta)
        np.testing.assert_allclose(found, theta - np.linalg.solve(hessian, gradient), atol=1e-8)


def test_nearly_retrained_models_are_near_or_called_astray() -> None:
    """From far away it takes more passes; where the classes are separated there is no model to come near."""
    X = np.array([[0.0], [1.0], [2.0], [3.5], [3.0], [4.0], [5.0], [6.0]])
    model = LogisticModel.fit(TrainingSet(X, [0, 0, 0, 0, 1, 1, 1, 1]), C=np.inf)
    models = BatchedNewton(model)
    deletions = Deletions.of([np.array([0]), np.array([3])], 1)
    guesses = models.first_guess(deletions)
    looked, retrained, look, astray = models.nearly(guesses, deletions)
    assert astray.tolist() == [1]
    exact = model.without([0]).theta
    assert np.abs(retrained[0] - exact).max() < 0.2 * np.abs(models.theta - exact).max()
    np.testing.assert_allclose(look.gradients, models.look(looked, deletions).gradients)
    np.testing.assert_allclose(models.nearly(guesses[:1], deletions[:1], 1e-4)[1][0], exact, atol=1e-5)


@pytest.mark.parametrize("C", [1.0, np.inf])
def test_wherever_a_model_starts_it_is_the_retrained_one(C: float) -> None:
    """From far out Newton's steps may lead nowhere: nothing on that way counts as arrived."""
    model = LogisticModel.fit(random_training_set(4, n=60, d=2), C=C)
    models = BatchedNewton(model)
    rng = np.random.default_rng(0)
    sets = random_sets(60, 40, 3)
    deletions = Deletions.of(sets, 3)
    exact = [model.without(model.train.ids[chosen]).theta for chosen in sets]
    for far in (3.0, 30.0, 1e3, 1e20, 1e62):
        found = models.converge(far * rng.normal(size=(40, 3)), deletions)
        np.testing.assert_allclose(found, exact, atol=1e-7)


def test_nasty_problems_too() -> None:
    for problem in problems(36, seed=5):
        sets = random_sets(len(problem.model.train), 10, problem.k)
        deletions = Deletions.of(sets, problem.k)
        models = BatchedNewton(problem.model)
        found = models.converge(models.first_guess(deletions), deletions)
        for theta, chosen in zip(found, sets, strict=True):
            if np.isnan(theta).any():
                assert problem.model.removable_class(len(chosen)) is not None
                continue
            exact = problem.model.without(problem.model.train.ids[chosen])
            gap = problem.model.score_gradient(problem.model.train.X) @ (theta - exact.theta)
            assert np.abs(gap).max() < 1e-7, problem.kind


@pytest.mark.parametrize("options", OPTIONS)
def test_a_look_sees_the_gradient_and_hessian_of_the_reduced_objective(options: dict) -> None:
    model = LogisticModel.fit(random_training_set(2, n=40), **options)
    sets = random_sets(40, 6, 4)
    thetas = model.theta + np.random.default_rng(0).normal(size=(6, len(model.theta)))
    look = BatchedNewton(model).look(thetas, Deletions.of(sets, 4))
    for theta, chosen, gradient, hessian in zip(thetas, sets, look.gradients, look.hessians, strict=True):
        reduced = model.without(model.train.ids[chosen]).objective
        expected = reduced.gradient_and_hessian(theta)
        np.testing.assert_allclose(gradient, expected[0], atol=1e-9)
        np.testing.assert_allclose(hessian, expected[1], atol=1e-9)


def test_fractional_deletions_weigh_rows() -> None:
    model = LogisticModel.fit(random_training_set(3, n=30), C=1.0)
    rows = np.array([[2, 5, 5]])
    amounts = np.array([[0.5, 0.25, 0.25]])
    half = BatchedNewton(model).look(model.theta[None], Deletions(rows, amounts)).gradients[0]
    g = model.row_gradients()
    np.testing.assert_allclose(half, -0.5 * g[2] - 0.5 * g[5], atol=1e-9)


def test_pairs_made_in_chunks_change_nothing(monkeypatch: pytest.MonkeyPatch) -> None:
    model = LogisticModel.fit(random_training_set(4, n=50), C=1.0)
    deletions = Deletions.of(random_sets(50, 5, 3), 3)
    thetas = np.tile(model.theta, (5, 1))
    whole = BatchedNewton(model).look(thetas, deletions)
    monkeypatch.setattr(squares, "PAIRS_BYTES", 1000)
    chunked = BatchedNewton(model)
    assert chunked.squares.kept is None
    np.testing.assert_allclose(chunked.look(thetas, deletions).hessians, whole.hessians, atol=1e-10)


def test_harms_with_leverage_are_exact_one_row_newton_steps() -> None:
    """The formula v_i / (1 - lev_i) is the Newton step of the objective without row i, in closed form."""
    model = LogisticModel.fit(random_training_set(5, n=30), C=1.0)
    models = BatchedNewton(model)
    x = model.score_gradient(model.train.X[:1])
    none = Deletions(np.zeros((1, 1), np.intp), np.zeros((1, 1)))
    look = models.look(model.theta[None], none)
    harms = models.harms(look, model.theta[None], none, x, leverage=True).at(0, np.arange(30))
    each = Deletions.of([np.array([i]) for i in range(30)], 1)
    np.testing.assert_allclose(harms, (models.first_guess(each) - model.theta) @ x[0], atol=1e-9)


@pytest.mark.parametrize("share", [0.0, np.inf], ids=["dense", "sparse"])
def test_products_of_columns_are_the_same_however_they_are_kept(share: float, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(squares, "SPARSE", share)
    monkeypatch.setattr(squares, "CHUNK", 7)
    rng = np.random.default_rng(3)
    X = np.column_stack([rng.normal(size=50), np.eye(5)[rng.integers(5, size=50)], np.eye(4)[rng.integers(4, size=50)]])
    model = LogisticModel.fit(TrainingSet(X, rng.integers(2, size=50)), scale=False)
    many = BatchedNewton(model)
    products = many.squares.kept
    assert len(products) == 8
    assert all(isinstance(part, np.ndarray) == (share == 0.0) for part in products)
    first, second = many.squares.pairs
    together = np.concatenate([part if share == 0.0 else part.toarray() for part in products])
    np.testing.assert_allclose(together, many.X[:, first] * many.X[:, second], atol=1e-12)
    thetas = model.theta + rng.normal(size=(3, len(model.theta)))
    for theta, hessian in zip(
        thetas, many.look(thetas, Deletions.of([np.array([], int)] * 3, 1)).hessians, strict=True
    ):
        np.testing.assert_allclose(hessian, model.objective.gradient_and_hessian(theta)[1], atol=1e-12)


def test_the_batches_of_a_model_are_made_once_and_let_it_go() -> None:
    model = LogisticModel.fit(random_training_set(6, n=30), C=1.0)
    made = weakref.ref(BatchedNewton.of(model))
    assert BatchedNewton.of(model) is made()
    model_gone = weakref.ref(model)
    del model
    gc.collect()
    assert model_gone() is None
    assert made() is None


@pytest.mark.parametrize("options", [{"C": 1.0}, {"gamma": 1e-4}, {"C": 1.0, "class_weight": {0: 2.0}}])
@pytest.mark.parametrize("far", [0.0, 1e9])
def test_a_rough_look_sees_what_a_full_one_does(options: dict, far: float, monkeypatch: pytest.MonkeyPatch) -> None:
    """Single precision errs by millionths of what a deletion changes, wherever a column's numbers begin."""
    monkeypatch.setattr(hessians, "SAMPLE", 64)
    rng = np.random.default_rng(0)
    X = rng.normal(size=(3000, 4))
    y = rng.random(3000) < 1.0 / (1.0 + np.exp(1.0 - X.sum(axis=1)))
    X[:, 0] += far
    model = LogisticModel.fit(TrainingSet(X, y.astype(int)), **options)
    models = BatchedNewton(model)
    assert models._rough is not None
    deletions = Deletions.of(random_sets(3000, 8, 40), 40)
    thetas, directions = models.first_guess(deletions), rng.normal(size=(8, 5))
    rough, full = models.look(thetas, deletions, rough=True), models.look(thetas, deletions)
    assert rough.pulls.dtype == np.float32
    moved = np.sqrt(np.einsum("ij,ij->i", full.gradients, models.curvature.solve(full.gradients)))
    away = rough.gradients - full.gradients
    assert (np.sqrt(np.einsum("ij,ij->i", away, models.curvature.solve(away))) < 1e-5 + 1e-5 * moved).all()
    found, wanted = (
        models.harms(look, thetas, deletions, directions, leverage=True).values  # type: ignore[attr-defined]
        for look in (rough, full)
    )
    np.testing.assert_allclose(found, wanted, atol=1e-5 * np.abs(wanted).max())
    exact = [model.without(model.train.ids[deletions.set_of(place)]).theta for place in range(8)]
    np.testing.assert_allclose(
        model.design(X[:50]) @ models.converge(thetas, deletions).T,
        model.design(X[:50]) @ np.transpose(exact),
        atol=1e-9,
    )


class Elsewhere:
    """A runner whose every chunk is worked on by a copy, as in another process: what is not returned is lost."""

    def run(self, partial: Any, merge: Any, chunks: Sequence[slice]) -> Any:
        parts = [cloudpickle.loads(cloudpickle.dumps(partial))(chunk) for chunk in chunks]
        return reduce(merge, parts)


@pytest.mark.parametrize("sample", [64, 10**6])
def test_what_chunks_find_comes_back_from_elsewhere(sample: int, monkeypatch: pytest.MonkeyPatch) -> None:
    """Looks and harms, in single and double precision, of a table of several chunks that is sent to workers."""
    monkeypatch.setattr(hessians, "SAMPLE", sample)
    model = LogisticModel.fit(random_training_set(6, n=9000), C=1.0)
    models = BatchedNewton(model)
    assert (models._rough is None) == (sample > 64)
    deletions = Deletions.of(random_sets(9000, 3, 20), 20)
    thetas = models.first_guess(deletions)

    def seen() -> list[np.ndarray]:
        looks = [models.look(thetas, deletions, rough=rough) for rough in (False, True)]
        harms = [models.harms(look, thetas, deletions, thetas, leverage=True).values for look in looks]  # type: ignore[attr-defined]
        return [*(part for look in looks for part in look), *harms]

    here = seen()
    with using(Elsewhere()):
        elsewhere = seen()
    for one, other in zip(here, elsewhere, strict=True):
        np.testing.assert_array_equal(one, other)
