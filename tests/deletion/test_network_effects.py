"""First-order effects of rows on a network: against real retraining, a plain loop, and each other's forms."""

from __future__ import annotations

from functools import cache
from typing import Any

import numpy as np
import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st

from networks import (
    DEVICES,
    dense_curvature,
    finite_differences,
    jacobian_by_loop,
    logits_at,
    moons,
    people_near,
    row_gradients_by_loop,
    small_network,
    trained,
)
from problems import random_training_set
from rocerf import LogisticModel, NeuralModel, TrainingSet
from rocerf.deletion import device_effects, row_effects
from rocerf.deletion.device_effects import DeviceRowEffects
from rocerf.deletion.row_effects import Effects, RowEffects, StreamedRowEffects, effects_of
from rocerf.models.network.training import Training
from rocerf.promises import FirstOrder, Plain

pytestmark = pytest.mark.slow  # many small solves and retrainings: half a minute together

# --- against networks really trained again ------------------------------------------------------------


def stationary(train: TrainingSet, weight_decay: float) -> NeuralModel:
    """A network trained to the bottom: full batches, no damping, until the objective has no slope left."""
    how = Training(
        learning_rate=2.0,
        batch_size=len(train),
        epochs=400,
        shuffle=False,
        weight_decay=weight_decay,
        precision="float64",
    )
    model = trained(train, how, seed=1, damping=0.0)
    for _ in range(5):  # each goes on from where the last one stopped
        model = model.without([], retraining="warm")
    slope = np.linalg.norm(model.row_gradients().sum(axis=0))
    assert slope < 1e-5 * np.linalg.norm(model.row_gradients(), axis=1).mean()
    assert model.accuracy > model.majority_rate + 0.2
    return model


def hessian(model: NeuralModel) -> np.ndarray:
    """Of the objective, with the terms that Gauss and Newton leave out."""
    train = model.train
    module, names = model.module, [name for name, _ in model.module.named_parameters()]
    shapes = [parameter.shape for parameter in module.parameters()]
    rows, labels = torch.tensor(model.design(train.X)), torch.tensor(np.array(train.y))

    def objective(theta: Any) -> Any:
        pieces = torch.split(theta, [shape.numel() for shape in shapes])
        values = {name: piece.reshape(shape) for name, piece, shape in zip(names, pieces, shapes, strict=True)}
        logits = torch.func.functional_call(module, values, (rows,))
        loss = torch.nn.functional.binary_cross_entropy_with_logits(logits, labels, reduction="sum")
        return loss + len(train) * model.weight_decay / 2 * theta @ theta

    return torch.autograd.functional.hessian(objective, torch.tensor(model.theta)).numpy()


@pytest.mark.slow
@pytest.mark.parametrize(
    ("train", "weight_decay"),
    [
        pytest.param(random_training_set(5, n=80, d=3), 0.03, id="three columns"),
        pytest.param(moons(160), 0.03, id="moons"),
    ],
)
def test_effects_predict_what_deleting_one_row_and_retraining_does(
    train: TrainingSet, weight_decay: float, figures: list[str]
) -> None:
    """The change of every held-out score after deleting each of 20 rows, networks trained on to convergence.

    What the Gauss-Newton matrix leaves out is all that is left: with the true Hessian the prediction is better still.
    """
    model = stationary(train, weight_decay)
    people = people_near(model, 40, seed=3)
    rows = np.random.default_rng(0).choice(len(train), 20, replace=False)
    later = model.refitted([train.ids[[row]] for row in rows], retraining="warm")
    changes = later.scores(people) - model.score(people)
    predicted = RowEffects.of(model).in_training_order()[rows] @ model.score_gradient(people).T
    exact = model.row_gradients(rows) @ np.linalg.inv(hessian(model)) @ model.score_gradient(people).T
    correlation, with_hessian = (float(np.corrcoef(changes.ravel(), p.ravel())[0, 1]) for p in (predicted, exact))
    slope = float((changes * predicted).sum() / (predicted**2).sum())
    figures.append(
        f"one row deleted from a network of {len(model.theta)} parameters and {len(train)} rows, {changes.size} "
        f"changes of score: correlation with first order {correlation:.4f} (true Hessian {with_hessian:.4f}), "
        f"slope {slope:.2f}"
    )
    assert correlation > 0.95
    assert 0.8 < slope < 1.6
    assert with_hessian > 0.99
    assert np.abs(changes).max() > 0.02  # there was something to predict


# --- the forms of effects against each other ------------------------------------------------------------


def logistic() -> LogisticModel:
    return LogisticModel.fit(random_training_set(1, n=70, weights=True), C=1.0)


MODELS = {"network": lambda: small_network(weights=True), "logistic": logistic}


def plainly(model: Any) -> np.ndarray:
    """``v_i`` of all rows, (n, p), with a dense inverse."""
    if isinstance(model, LogisticModel):
        return model.row_gradients() @ np.linalg.inv(model.curvature().hessian)
    return np.linalg.solve(dense_curvature(model), row_gradients_by_loop(model).T).T


def same_rows(effects: Effects, model: Any, X: np.ndarray, k: int) -> None:
    """Worst rows, their values and the shifts they make, against a sort of all effects."""
    vectors = plainly(model)
    directions = model.score_gradient(X)
    worst = effects.worst(directions, k)
    shifts = effects.shifts(worst)
    assert len(worst) == len(X)
    assert sorted(effects.rows.tolist()) == list(range(len(model.train)))
    for person, direction in enumerate(directions):
        values = vectors @ direction
        order = [row for row in np.argsort(values) if values[row] < 0][:k]
        assert effects.rows[worst.of(person)].tolist() == order
        np.testing.assert_allclose(shifts[person], vectors[order].sum(axis=0), rtol=1e-7, atol=1e-10)
    np.testing.assert_allclose(worst.drops, np.einsum("ij,ij->i", directions, shifts), atol=1e-9)


@pytest.mark.parametrize("name", MODELS)
@pytest.mark.parametrize("k", [0, 1, 5, 69])
def test_kept_and_streamed_effects_are_those_of_a_dense_inverse(
    name: str, k: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    model = MODELS[name]()
    X, width = people_near(model, 6), model.curvature().width
    same_rows(RowEffects.of(model), model, X, k)
    for chunk in (1, 7, 1000):
        monkeypatch.setattr(row_effects, "CHUNK_BYTES", chunk * 8 * width)
        same_rows(StreamedRowEffects(model), model, X, k)


@pytest.mark.parametrize("name", MODELS)
def test_what_does_not_fit_is_streamed_and_answers_the_same(name: str) -> None:
    model = MODELS[name]()
    n, width = len(model.train), model.curvature().width
    kept, streamed = effects_of(model, in_memory=8 * n * width), effects_of(model, in_memory=8 * n * width - 1)
    assert (type(kept), type(streamed)) == (RowEffects, StreamedRowEffects)
    X = people_near(model, 5)
    for effects in (kept, streamed):
        same_rows(effects, model, X, 4)
    nobody = streamed.worst(model.score_gradient(X[:0]), 3)
    assert len(nobody) == 0
    assert streamed.shifts(nobody).shape == (0, width)


@pytest.mark.parametrize("device", DEVICES)
@pytest.mark.parametrize("k", [0, 1, 5, 200])
def test_effects_on_a_device_are_the_same(k: int, device: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """Plain torch, so it can be held against the others on any machine."""
    model = small_network(weights=True, device=device)
    X = people_near(model, 6)
    effects = DeviceRowEffects.of(model)
    np.testing.assert_allclose(effects.vectors.cpu().numpy(), plainly(model), rtol=1e-7, atol=1e-10)
    for block in (1, 200, 2**27):  # a person at a time, two, all
        monkeypatch.setattr(device_effects, "BLOCK", block)
        same_rows(effects, model, X, k)
    assert effects.shifts(effects.worst(model.score_gradient(X[:0]), k)).shape == (0, len(model.theta))
    assert isinstance(effects_of(model), RowEffects if device == "cpu" else DeviceRowEffects)


def test_row_effects_of_a_network_in_chunks(monkeypatch: pytest.MonkeyPatch) -> None:
    model = small_network(weights=True)
    for chunk in (1, 13, 1000):
        monkeypatch.setattr(row_effects, "CHUNK", chunk)
        found = RowEffects.of(model, seed=chunk).in_training_order()
        np.testing.assert_allclose(found, plainly(model), rtol=1e-7, atol=1e-10)


# --- the promise of first order, for networks -----------------------------------------------------------


@cache
def network(device: str) -> NeuralModel:
    return small_network(weights=True, device=device, threshold=0.6)


def first_order_by_loop(model: NeuralModel, x: np.ndarray, k: int) -> tuple[float, list[Any]]:
    """``f_A`` at one person: autograd, a dense matrix, a sort; and the ids of the worst rows."""
    beta = jacobian_by_loop(model, x[None])[0]
    effects = row_gradients_by_loop(model) @ np.linalg.solve(dense_curvature(model), beta)
    worst = [row for row in np.argsort(effects) if effects[row] < 0][:k]
    score = float(logits_at(model, model.theta, x[None])[0] - model.offset)
    return score + float(effects[worst].sum()), model.train.ids[worst].tolist()


@pytest.mark.parametrize("device", DEVICES)
@pytest.mark.parametrize("k", [0, 1, 4, 89])
def test_the_promise_is_a_plain_loop_over_people_and_rows(k: int, device: str) -> None:
    model = network(device)
    X = people_near(model, 7)
    reading = FirstOrder(model, k).read(X)
    for j, x in enumerate(X):
        value, worst = first_order_by_loop(model, x, k)
        assert reading.values[j] == pytest.approx(value, abs=1e-8)
        assert reading.worst_ids(j).tolist() == worst
    assert (reading.values <= model.score(X) + 1e-12).all()
    assert FirstOrder(model, k).concave is False


@pytest.mark.parametrize("k", [1, 4])
def test_the_slope_of_the_promise_matches_finite_differences(k: int) -> None:
    """Including how the worst rows' effects change with x; the rows themselves are the same within the step."""
    model = network("cpu")
    promise, X, spread = FirstOrder(model, k), people_near(model, 8), model.train.spread
    slopes = promise.read(X).slopes
    for j, x in enumerate(X):
        differences = finite_differences(lambda x: promise.read(x[None]).values, x, 1e-5 * spread)[0]
        np.testing.assert_allclose(slopes[j] * spread, differences * spread, atol=1e-6)
    plain = Plain(model).read(X).slopes
    assert np.abs((slopes - plain) * spread).max() > 1e-3  # and it is not just the score's


def test_a_person_is_read_the_same_alone_and_among_others() -> None:
    model = network("cpu")
    promise, X = FirstOrder(model, 3), people_near(model, 130)
    together = promise.read(X)
    for j in (0, 64, 129):
        alone = promise.read(X[[j]])
        np.testing.assert_allclose(alone.values[0], together.values[j], atol=1e-10)
        np.testing.assert_allclose(alone.slopes[0], together.slopes[j], rtol=1e-8, atol=1e-10)
        assert alone.worst_ids(0).tolist() == together.worst_ids(j).tolist()


@pytest.mark.parametrize("name", MODELS)
def test_streamed_effects_keep_the_same_promise(name: str, monkeypatch: pytest.MonkeyPatch) -> None:
    model = MODELS[name]()
    X = people_near(model, 8)
    expected = FirstOrder(model, 4).read(X)
    monkeypatch.setattr("rocerf.promises.first_order.effects_of", lambda model, seed: StreamedRowEffects(model))
    promise = FirstOrder(model, 4)
    assert isinstance(promise.effects, StreamedRowEffects)
    found = promise.read(X)
    np.testing.assert_allclose(found.values, expected.values, atol=1e-9)
    np.testing.assert_allclose(found.slopes, expected.slopes, rtol=1e-7, atol=1e-9)
    assert [found.worst_ids(j).tolist() for j in range(8)] == [expected.worst_ids(j).tolist() for j in range(8)]


@pytest.mark.parametrize("name", MODELS)
def test_a_promise_held_somewhere_equals_the_true_one_there(name: str) -> None:
    model = MODELS[name]()
    promise, X = FirstOrder(model, 4), people_near(model, 12)
    held, true = promise.frozen_at(X)(X), promise.read(X)
    np.testing.assert_allclose(held.values, true.values, atol=1e-10)
    np.testing.assert_allclose(held.slopes, true.slopes, rtol=1e-8, atol=1e-10)


@settings(max_examples=60, deadline=None)
@given(data=st.data(), name=st.sampled_from(sorted(MODELS)), k=st.integers(0, 12))
def test_a_promise_held_somewhere_is_never_below_the_true_one_elsewhere(data: st.DataObject, name: str, k: int) -> None:
    """Other rows may be worst there: whoever goes by the held one must read the true one in the end."""
    model = _cached(name)
    coordinate = st.floats(-4.0, 4.0)
    person = st.lists(st.tuples(coordinate, coordinate, coordinate), min_size=3, max_size=3)
    centre, spread = model.train.X.mean(axis=0), model.train.spread
    at, elsewhere = (centre + spread * np.array(data.draw(person)) for _ in range(2))
    promise = _promise(name, k)
    held, true = promise.frozen_at(at), promise.read(elsewhere)
    assert (held(elsewhere).values >= true.values - 1e-9).all()
    np.testing.assert_allclose(held(at).values, promise.read(at).values, atol=1e-9)


@cache
def _cached(name: str) -> Any:
    return MODELS[name]()


@cache
def _promise(name: str, k: int) -> FirstOrder:
    return FirstOrder(_cached(name), k)
