"""A network as a model: every slope against autograd one row at a time, retraining, options and refusals."""

from __future__ import annotations

import copy
import re
import subprocess
import sys
from typing import Any

import numpy as np
import pandas as pd
import pytest
import torch
from scipy.special import expit, logit
from sklearn.linear_model import LogisticRegression

from networks import (
    DEVICES,
    MODULES,
    dense_curvature,
    finite_differences,
    fitted,
    from_torch,
    jacobian_by_loop,
    logits_at,
    moons,
    people_near,
    row_gradients_by_loop,
    slopes_by_loop,
    small_network,
    standardised,
)
from problems import random_training_set
from rocerf import LogisticModel, NeuralModel, RocerfError, TrainingSet
from rocerf.errors import (
    ColumnError,
    DataError,
    DidNotTrainError,
    FileFormatError,
    OptionError,
    UnsupportedModelError,
)
from rocerf.models.design import Design
from rocerf.models.ensembles import SmoothEnsemble
from rocerf.models.local_linear import LocalLinearModel
from rocerf.models.model import (
    FirstOrderModel,
    LinearModel,
    Model,
    Refittable,
    Smooth,
)
from rocerf.models.network import objective as neural
from rocerf.models.network.ensemble import NetworkEnsemble
from rocerf.models.network.network import Architecture, Mlp
from rocerf.models.network.options import NetworkOptions
from rocerf.models.network.retraining import OwnTraining

TRAIN = random_training_set(5, n=90, d=3)

EVERY_MODEL = [
    *(pytest.param(lambda device, n=name: from_torch(n, device=device, weights=True), id=name) for name in MODULES),
    pytest.param(lambda device: small_network(device=device), id="fit"),
    pytest.param(lambda device: small_network(device=device, weights=True, threshold=0.7), id="fit with weights"),
]
every_model = pytest.mark.parametrize("make", EVERY_MODEL)
every_device = pytest.mark.parametrize("device", DEVICES)


# --- what it is ------------------------------------------------------------------------------------


def test_a_network_is_every_kind_of_model_but_linear() -> None:
    model = small_network()
    for kind in (Refittable, Smooth, Model, FirstOrderModel):
        assert isinstance(model, kind)
        assert isinstance(from_torch("linear"), kind)
    assert not isinstance(model, LinearModel)
    assert isinstance(model.refitted([model.train.ids[:1]]), SmoothEnsemble)


def test_a_logistic_model_is_every_kind_and_a_stand_in_cannot_be_refitted() -> None:
    logistic = LogisticModel.fit(TRAIN)
    for kind in (Refittable, Smooth, Model, FirstOrderModel, LinearModel):
        assert isinstance(logistic, kind)
    local = LocalLinearModel.around(small_network(), TRAIN.X[0])
    for kind in (Smooth, Model, FirstOrderModel, LinearModel):
        assert isinstance(local, kind)
    assert not isinstance(local, Refittable)
    for stranger in (LogisticRegression(), torch.nn.Linear(3, 1), TRAIN, None):
        assert not isinstance(stranger, Refittable)


def test_the_shape_says_what_it_is() -> None:
    model = small_network()
    assert model.architecture.layers == ((3, 5), (5, 5), (5, 1))
    assert len(model.theta) == model.architecture.parameters == 56
    assert repr(model).startswith("NeuralModel(5x5x1, 56 parameters, threshold=0.5, train=TrainingSet(90 rows")
    taken = from_torch("linear")
    assert repr(taken).startswith("NeuralModel(module, 4 parameters")
    with pytest.raises(OptionError, match=r"made by NeuralModel\.fit, got one taken over from torch"):
        _ = taken.architecture


# --- scores and slopes -----------------------------------------------------------------------------


@every_device
@every_model
def test_scores_are_the_module_s_logits_less_those_of_the_threshold(make: Any, device: str) -> None:
    model = make(device)
    X = people_near(model, 30)
    expected = logits_at(model, model.theta, X) - logit(model.threshold)
    np.testing.assert_allclose(model.score(X), expected, atol=1e-12)
    np.testing.assert_array_equal(model.deployed_score(X), model.score(X))
    assert model.predict(X).tolist() == (expected >= 0).astype(int).tolist()
    assert 0 < model.predict(X).mean() < 1
    assert model.score(X[:0]).shape == model.predict(X[:0]).shape == (0,)


@every_device
@every_model
def test_slopes_in_x_are_those_of_autograd_one_person_at_a_time(make: Any, device: str) -> None:
    model = make(device)
    X = people_near(model, 12)
    scores, slopes = model.score_and_slope(X)
    np.testing.assert_allclose(scores, model.score(X), atol=1e-12)
    np.testing.assert_allclose(slopes, slopes_by_loop(model, X), rtol=1e-10, atol=1e-12)


@every_device
@every_model
def test_slopes_in_the_parameters_are_those_of_autograd_whatever_the_chunks(
    make: Any, device: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    model = make(device)
    X = people_near(model, 11)
    expected = jacobian_by_loop(model, X)
    assert expected.shape == (11, len(model.theta))
    for rows in (1, 4, 11, 1000):
        monkeypatch.setattr(neural, "JACOBIAN_BYTES", rows * 8 * len(model.theta))
        np.testing.assert_allclose(model.score_gradient(X), expected, rtol=1e-10, atol=1e-12)
    assert model.score_gradient(X[:0]).shape == (0, len(model.theta))


@every_model
def test_slopes_in_the_parameters_match_finite_differences(make: Any) -> None:
    """Where no kink of a ReLU is within the step, which autograd could not tell from a smooth function."""
    model = make("cpu")
    X = people_near(model, 6)
    differences = finite_differences(lambda theta: logits_at(model, theta, X), model.theta, np.array(1e-5))
    assert (np.abs(model.score_gradient(X) - differences) < 1e-6).mean() > 0.98


@every_device
@every_model
def test_row_gradients_follow_the_formula(make: Any, device: str) -> None:
    model = make(device)
    expected = row_gradients_by_loop(model)
    np.testing.assert_allclose(model.row_gradients(), expected, atol=1e-10)
    np.testing.assert_allclose(model.row_gradients(slice(3, 9)), expected[3:9], atol=1e-10)
    rows = np.array([80, 2, 2, 41])
    np.testing.assert_allclose(model.row_gradients(rows), expected[rows], atol=1e-10)


@pytest.mark.slow
@pytest.mark.parametrize("weights", [False, True])
def test_row_gradients_are_shares_of_the_objective_s_slope(weights: bool) -> None:
    """``F = sum_i omega_i loss_i + n weight_decay/2 |theta|^2`` by central differences, with and without a row."""
    model = small_network(weights=weights)
    train = model.train
    omega = np.ones(len(train)) if train.weights is None else train.weights

    def objective(theta: np.ndarray, rows: np.ndarray) -> np.ndarray:
        z = logits_at(model, theta, train.X[rows])
        losses = np.logaddexp(0.0, z) - train.y[rows] * z
        return np.array([omega[rows] @ losses + len(rows) * model.weight_decay / 2 * theta @ theta])

    everybody, step = np.arange(len(train)), np.array(1e-5)
    whole = finite_differences(lambda theta: objective(theta, everybody), model.theta, step)[0]
    np.testing.assert_allclose(model.row_gradients().sum(axis=0), whole, atol=1e-6 * np.abs(whole).max())
    for row in (0, 33):
        rest = finite_differences(lambda theta: objective(theta, np.delete(everybody, row)), model.theta, step)[0]  # noqa: B023
        np.testing.assert_allclose(model.row_gradients()[row], whole - rest, atol=1e-6 * np.abs(whole).max())


@every_device
@every_model
@pytest.mark.parametrize("damping", ["auto", 0.05])
def test_the_curvature_is_the_dense_formula(make: Any, damping: Any, device: str) -> None:
    model = make(device)
    model = copy.copy(model) if damping == "auto" else remade(model, damping=damping)
    vectors = np.random.default_rng(0).normal(size=(5, len(model.theta)))
    expected = np.linalg.solve(dense_curvature(model), vectors.T).T
    np.testing.assert_allclose(
        model.curvature().solve(vectors), expected, rtol=1e-7, atol=1e-9 * np.abs(expected).max()
    )
    assert model.curvature().width == len(model.theta)


def remade(model: NeuralModel, **changes: Any) -> NeuralModel:
    options = {"seed": model.seed, "threshold": model.threshold, "damping": "auto", "device": model.device} | changes
    kept = (model.train, copy.deepcopy(model.module), model.design, model.retrainer)
    return NeuralModel(*kept, NetworkOptions(**options))


def test_the_curvature_of_a_linear_module_is_the_true_hessian() -> None:
    """Where the logit is linear in the parameters, nothing is left out: central differences of the gradient."""
    model = from_torch("linear", damping=0.0, weights=True)
    train = model.train
    Z = np.column_stack([train.X, np.ones(len(train))])

    def gradient(theta: np.ndarray) -> np.ndarray:
        return Z.T @ (train.weights * (expit(Z @ theta) - train.y))

    hessian = finite_differences(gradient, model.theta, np.array(1e-5))
    np.testing.assert_allclose(model.curvature().solve(hessian), np.eye(4), atol=1e-6)


def test_damping_is_that_of_gradient_descent_stopped_early_or_the_paper_s() -> None:
    model = NeuralModel.fit(moons(60), epochs=7, learning_rate=0.5, batch_size=25)
    assert model.damping == pytest.approx(1 / (0.5 * 7 * 3))  # 60 rows make three batches
    assert from_torch("linear").damping == 0.01
    assert from_torch("linear", damping=0.3).damping == 0.3
    assert NeuralModel.fit(moons(60), epochs=7, learning_rate=0.5, damping=0).damping == 0.0


@every_device
@every_model
def test_the_shifted_score_is_a_sum_and_its_slope_is_right(make: Any, device: str) -> None:
    """``score + score_gradient'shift``, and autograd through that very sum, one person at a time."""
    model = make(device)
    rng = np.random.default_rng(1)
    X, shifts = people_near(model, 9), 0.3 * rng.normal(size=(9, len(model.theta)))
    values, slopes = model.shifted_score(shifts)(X)
    np.testing.assert_allclose(
        values, model.score(X) + np.einsum("ij,ij->i", jacobian_by_loop(model, X), shifts), atol=1e-10
    )
    module = copy.deepcopy(model.module).cpu().requires_grad_(True)
    parameters = list(module.parameters())
    for j, x in enumerate(X):
        row = torch.tensor(x, requires_grad=True)
        scaled = (row - torch.tensor(model.design.centre)) / torch.tensor(model.design.scale)
        value = module(scaled[None]).reshape(())
        gradients = torch.autograd.grad(value, parameters, create_graph=True)
        total = value + torch.cat([g.reshape(-1) for g in gradients]) @ torch.tensor(shifts[j])
        (expected,) = torch.autograd.grad(total, row)
        np.testing.assert_allclose(slopes[j], expected.numpy(), rtol=1e-8, atol=1e-10)
    zero, plain = model.shifted_score(np.zeros_like(shifts))(X), model.score_and_slope(X)
    for found, expected in zip(zero, plain, strict=True):
        np.testing.assert_allclose(found, expected, atol=1e-10)


def test_the_shifted_score_can_be_read_elsewhere_for_the_same_people() -> None:
    model = small_network()
    shifts = 0.3 * np.random.default_rng(1).normal(size=(4, len(model.theta)))
    read, X = model.shifted_score(shifts), people_near(model, 4)
    spread = model.train.spread
    for _ in range(2):
        for j in range(4):

            def value(x: np.ndarray, j: int = j, X: np.ndarray = X) -> np.ndarray:
                return read(np.where(np.arange(4)[:, None] == j, x, X))[0][[j]]

            differences = finite_differences(value, X[j], 1e-5 * spread)[0]
            np.testing.assert_allclose(read(X)[1][j] * spread, differences * spread, atol=1e-7)
        X = people_near(model, 4, seed=2)


@every_device
@every_model
def test_an_ensemble_scores_as_its_networks_do(make: Any, device: str, monkeypatch: pytest.MonkeyPatch) -> None:
    model = make(device)
    if isinstance(model.retrainer, OwnTraining):
        states = model.refitted([model.train.ids[:2], model.train.ids[5:9], model.train.ids[:0]]).arrays()
    else:
        alone = model._alone.arrays()
        states = [np.concatenate([a * s for s in (1.0, 0.5, 1.3)]).astype(a.dtype) for a in alone]
    ensemble, X = model.restored(states), people_near(model, 7)
    scores = ensemble.scores(X)
    assert (scores.shape, len(ensemble)) == ((3, 7), 3)
    weights = np.random.default_rng(0).normal(size=(3, 7))
    expected = np.zeros_like(X)
    for m in range(3):
        one = remade(model)
        one.module.load_state_dict(
            dict(zip(one.module.state_dict(), tensors_of(one, [values[m] for values in states]), strict=True))
        )
        one = remade(one)
        np.testing.assert_allclose(scores[m], one.score(X), atol=1e-11)
        np.testing.assert_allclose(ensemble[m : m + 1].scores(X)[0], scores[m], atol=1e-12)
        expected += weights[m][:, None] * slopes_by_loop(one, X)
    again, pullback = ensemble.scores_and_pullback(X)
    np.testing.assert_allclose(again, scores, atol=1e-12)
    np.testing.assert_allclose(pullback(weights), expected, rtol=1e-8, atol=1e-10)
    monkeypatch.setattr("rocerf.models.network.ensemble.BLOCK", 4)  # one person at a time
    np.testing.assert_allclose(ensemble.scores(X), scores, atol=1e-12)
    assert ensemble.scores(X[:0]).shape == (3, 0)


def tensors_of(model: NeuralModel, values: list[np.ndarray]) -> list[Any]:
    """State values in the order of ``state_dict``: layer by layer, where ours has parameters first, then buffers."""
    module = model.module
    names = [name for name, _ in (*module.named_parameters(), *module.named_buffers())]
    by_name = dict(zip(names, values, strict=True))
    same = {id(tensor): name for name, tensor in (*module.named_parameters(), *module.named_buffers())}
    everything = dict(module.named_parameters(remove_duplicate=False)) | dict(module.named_buffers())
    return [torch.as_tensor(by_name[same[id(everything[name])]]) for name in module.state_dict()]


# --- people, threshold, retraining -----------------------------------------------------------------


def test_a_frame_is_matched_by_name() -> None:
    names = ["income", "debt", "age"]
    frame = pd.DataFrame(TRAIN.X, columns=names, index=TRAIN.ids)
    model = NeuralModel.fit(TrainingSet(frame, TRAIN.y.astype(int)), epochs=40, learning_rate=0.1)
    people = people_near(model, 5)
    shuffled = pd.DataFrame(people, columns=names).assign(note="x")[["age", "note", "debt", "income"]]
    np.testing.assert_array_equal(model.score(shuffled), model.score(people))
    np.testing.assert_array_equal(model.predict(shuffled), model.predict(people))
    np.testing.assert_array_equal(model.matrix(shuffled), people)
    with pytest.raises(ColumnError, match="none named 'debt'"):
        model.score(shuffled.drop(columns="debt"))
    for wrong in (people[:, :2], people[0], [["a", "b", "c"]]):
        with pytest.raises(ColumnError):
            model.score(wrong)


@pytest.mark.slow
def test_the_threshold_moves_the_score_and_nothing_else() -> None:
    low, high = (small_network(threshold=threshold) for threshold in (0.5, 0.8))
    X = people_near(low, 40)
    np.testing.assert_array_equal(low.theta, high.theta)
    np.testing.assert_allclose(high.score(X), low.score(X) - np.log(0.8 / 0.2), atol=1e-12)
    np.testing.assert_array_equal(high.predict(X), (expit(low.score(X)) >= 0.8).astype(int))
    np.testing.assert_allclose(high.row_gradients(), low.row_gradients(), atol=1e-12)
    np.testing.assert_allclose(high.score_gradient(X), low.score_gradient(X), atol=1e-12)
    gone = low.train.ids[:3]
    np.testing.assert_allclose(high.without(gone).score(X), low.without(gone).score(X) - np.log(0.8 / 0.2), atol=1e-12)
    shift = high.refitted([gone]).scores(X) - low.refitted([gone]).scores(X)
    np.testing.assert_allclose(shift, -np.log(0.8 / 0.2), atol=1e-12)


def test_scaling_is_inside_the_model_and_stays_when_rows_go() -> None:
    scaled = NeuralModel.fit(standardised(), epochs=20, learning_rate=0.5, scale=False)
    inside = NeuralModel.fit(TRAIN, epochs=20, learning_rate=0.5)
    np.testing.assert_allclose(scaled.theta, inside.theta, atol=1e-5)
    np.testing.assert_allclose(scaled.score(standardised().X), inside.score(TRAIN.X), atol=1e-5)
    later = inside.without(TRAIN.ids[:30])
    np.testing.assert_array_equal(later.design.centre, TRAIN.X.mean(axis=0))
    np.testing.assert_array_equal(later.design.scale, TRAIN.spread)
    assert scaled.design.scale.tolist() == [1.0, 1.0, 1.0]


@pytest.mark.slow
def test_without_is_fresh_or_warm_and_always_the_same() -> None:
    model = small_network()
    ids, X = model.train.ids, people_near(model, 20)
    fresh, again = model.without(ids[:4]), model.without(ids[[3, 2, 1, 0, 0]])
    np.testing.assert_array_equal(fresh.theta, again.theta)
    assert len(fresh.train) == 86
    assert (fresh.threshold, fresh.damping) == (model.threshold, pytest.approx(model.damping, rel=0.1))
    warm = model.without(ids[:4], retraining="warm")
    np.testing.assert_array_equal(warm.theta, model.without(ids[:4], retraining="warm").theta)
    moved = [np.abs(found.score(X) - model.score(X)).mean() for found in (warm, fresh)]
    assert 0 < moved[0] < moved[1]  # a new start moves the score more than four rows do
    seeded = [model.without(ids[:4], seed=seed) for seed in (1, 1, 2)]
    np.testing.assert_array_equal(seeded[0].theta, seeded[1].theta)
    assert np.abs(seeded[0].theta - seeded[2].theta).max() > 0.05
    assert np.abs(seeded[0].theta - fresh.theta).max() > 0.05
    assert seeded[0].seed == 1
    twice = fresh.without(ids[10:12])
    assert twice.train.ids.tolist() == np.delete(ids, [0, 1, 2, 3, 10, 11]).tolist()


@pytest.mark.slow
def test_deleting_other_rows_starts_another_network() -> None:
    """So that two deletions do not agree only because they began alike."""
    model = small_network()
    ids = model.train.ids
    seeds = [model.without(gone).seed for gone in (ids[:0], ids[[0]], ids[[1]], ids[:2], ids[[1, 0]], ids[[89]])]
    assert seeds[3] == seeds[4]
    assert len(set(seeds)) == 5


@pytest.mark.slow
def test_refitted_networks_depend_on_seed_and_place_alone() -> None:
    model = small_network()
    ids, X = model.train.ids, people_near(model, 10)
    deletions = [ids[:3], ids[10:40], ids[[7]], ids[:0]]
    whole = model.refitted(deletions, seed=2).scores(X)
    np.testing.assert_allclose(model.refitted(deletions[:2], seed=2).scores(X), whole[:2], atol=1e-5)
    assert np.abs(model.refitted(deletions, seed=3).scores(X) - whole).max(axis=1).min() > 0.01
    warm = model.refitted(deletions, seed=2, retraining="warm").scores(X)
    assert np.abs(warm - model.score(X)).mean() < np.abs(whole - model.score(X)).mean()
    for m, gone in enumerate(deletions):
        seed = int(np.random.SeedSequence((2, m)).generate_state(1, np.uint64)[0] >> np.uint64(1))
        np.testing.assert_allclose(model.without(gone, seed=seed).score(X), whole[m], atol=1e-5)


def test_another_way_of_retraining_is_refused() -> None:
    model = small_network()
    for ask in (
        lambda: model.without(model.train.ids[:1], retraining="cold"),
        lambda: model.refitted([model.train.ids[:1]], retraining=None),
    ):
        with pytest.raises(OptionError, match="retraining to be one of fresh, warm, got"):
            ask()
    for seed in (-1, 0.5, "x"):
        with pytest.raises(OptionError, match="seed to be a whole number >= 0"):
            model.without(model.train.ids[:1], seed=seed)
    with pytest.raises(DataError, match="unknown"):
        model.without(["nobody"])


# --- networks that did not train -------------------------------------------------------------------


def test_a_network_that_decides_the_same_for_everybody_is_an_error() -> None:
    for threshold, word in ((0.9999, "refuses"), (0.0001, "accepts")):
        with pytest.raises(DidNotTrainError, match=f"tells people apart, got one that {word} every training row"):
            NeuralModel.fit(TRAIN, epochs=1, threshold=threshold)
    constant = torch.nn.Linear(3, 1)
    constant.weight.data.zero_()
    with pytest.raises(DidNotTrainError, match="tells people apart"):
        NeuralModel.from_torch(constant, standardised())


def test_a_module_that_ends_in_a_sigmoid_is_told_so() -> None:
    train = standardised()
    module = torch.nn.Sequential(torch.nn.Linear(3, 1), torch.nn.Sigmoid()).double()
    with pytest.raises(DidNotTrainError, match=r"got one that accepts every .* leave out the sigmoid"):
        NeuralModel.from_torch(module, train)
    with pytest.raises(DidNotTrainError, match=r"majority rate [0-9.]*%\); train longer"):
        NeuralModel.fit(TRAIN, epochs=1, threshold=0.0001)


def test_the_accuracy_of_a_constant_network_is_called_what_it_is() -> None:
    """Refusing everybody where most are accepted is *below* the majority rate."""
    train = TrainingSet(np.random.default_rng(0).normal(size=(40, 3)), [1] * 30 + [0] * 10)
    constant = torch.nn.Linear(3, 1)
    constant.weight.data.zero_()
    constant.bias.data.fill_(-1.0)
    with pytest.raises(DidNotTrainError, match=r"accuracy 25\.0%") as error:
        NeuralModel.from_torch(constant, train)
    assert "25.0%, the majority rate" not in str(error.value)


@pytest.mark.parametrize("value", [torch.nan, torch.inf])
def test_a_module_with_parameters_that_are_no_numbers_is_an_error(value: float) -> None:
    module = torch.nn.Linear(3, 1)
    module.weight.data[0, 1] = value
    with pytest.raises(DidNotTrainError, match="finite scores on the training rows"):
        NeuralModel.from_torch(module, standardised())


def one_column() -> Any:
    """Accepts from 0 on."""
    module = torch.nn.Linear(1, 1)
    module.weight.data.fill_(1.0)
    module.bias.data.zero_()
    return module


def test_a_network_no_better_than_the_majority_says_so() -> None:
    train = standardised()
    good = NeuralModel.from_torch(fitted("linear", train), train)
    assert good.accuracy == (good.predict(train.X) == train.y).mean()
    assert good.accuracy > good.majority_rate
    assert good.majority_rate == max(train.y.mean(), 1 - train.y.mean())
    assert not any("majority" in sentence for sentence in good.assumptions())
    reversed_ = copy.deepcopy(good.module)
    for parameter in reversed_.parameters():
        parameter.data.neg_()
    bad = NeuralModel.from_torch(reversed_, train)
    assert bad.accuracy < bad.majority_rate
    said = f"the network's accuracy on its training rows, {bad.accuracy:.1%}, is not above the majority rate"
    assert said in bad.assumptions()
    edge = NeuralModel.from_torch(one_column(), TrainingSet([[-2.0], [-1.0], [1.0], [2.0]], [0, 1, 0, 1]))
    assert edge.accuracy == edge.majority_rate == 0.5  # equal is not above
    assert any("majority" in sentence for sentence in edge.assumptions())


def test_assumptions_name_the_training() -> None:
    said = " ".join(small_network().assumptions())
    assert "rate 0.5, batches of 32, 60 epochs, weight decay 0.01, rows shuffled" in said
    assert "scaling and the decision threshold stay" in said
    ordered = NeuralModel.fit(moons(60), epochs=20, learning_rate=0.5, shuffle=False)
    assert "rows in given order" in " ".join(ordered.assumptions())


def tilted() -> Any:
    """Refuses far below the origin of two columns."""
    module = torch.nn.Linear(2, 1)
    module.weight.data.fill_(1.0)
    module.bias.data.fill_(3.0)
    return module


def test_a_class_that_k_deletions_can_remove() -> None:
    rng = np.random.default_rng(0)
    X = rng.normal(size=(30, 2))
    X[:4] -= 3.0
    train = TrainingSet(X, ["no"] * 4 + ["yes"] * 26, favourable="yes")
    model = NeuralModel.from_torch(tilted(), train)
    assert model.class_counts == {"yes": 26, "no": 4}
    assert [model.removable_class(k) for k in (0, 3, 4, 29)] == [None, None, "no", "no"]


def test_rows_without_weight_do_not_save_a_class_from_vanishing() -> None:
    """As for logistic models: a class whose only rows that count are gone is gone."""
    rng = np.random.default_rng(0)
    X = rng.normal(size=(30, 2))
    X[:10] -= 3.0
    weights = np.where(np.arange(30) < 7, 0.0, 1.0)
    train = TrainingSet(X, [0] * 10 + [1] * 20, sample_weight=weights)
    assert LogisticModel.fit(train).removable_class(3) == 0
    assert NeuralModel.from_torch(tilted(), train).removable_class(3) == 0


# --- options ---------------------------------------------------------------------------------------


BAD_OPTIONS: list[tuple[dict[str, Any], str]] = [
    *[({"seed": seed}, "seed to be a whole number >= 0") for seed in (-1, 0.5, "x", None)],
    *[({"threshold": t}, "threshold strictly between 0 and 1") for t in (0, 1, -0.5, np.nan, "x", None)],
    *[
        ({name: value}, f"{name} to be a whole number >= 1, got .*; correct it")
        for name in ("hidden_layers", "width", "batch_size", "epochs")
        for value in (0, -3, 2.5, "x", True)
    ],
    *[({name: None}, f"{name} to be a whole number >= 1") for name in ("hidden_layers", "batch_size", "epochs")],
    *[
        ({"learning_rate": value}, "learning_rate to be a number > 0, got .*; correct it")
        for value in (0, -0.1, np.nan, np.inf, "fast", None, True)
    ],
    *[({"weight_decay": value}, "weight_decay to be a number >= 0") for value in (-0.1, np.nan, np.inf, "x", None)],
    *[({"damping": value}, "damping to be a number >= 0") for value in (-0.1, np.nan, "Auto", None)],
    *[({"device": d}, "a device that torch can use here, got .*use 'cpu'") for d in ("warp", "cuda:99", 77, None)],
]


@pytest.mark.parametrize(("options", "message"), BAD_OPTIONS, ids=lambda value: str(value)[:40])
def test_bad_options(options: dict[str, Any], message: str) -> None:
    with pytest.raises(OptionError, match=message):
        NeuralModel.fit(TRAIN, **({"epochs": 1} | options))
    if options.keys() <= {"seed", "threshold", "damping", "device"}:
        with pytest.raises(OptionError, match=message):
            NeuralModel.from_torch(torch.nn.Linear(3, 1), TRAIN, **options)


# --- where torch is missing ------------------------------------------------------------------------


MISSING = """
import sys
sys.modules["torch"] = None
import rocerf
data = rocerf.load_dataset("german")
try:
    {ask}
except rocerf.RocerfError as error:
    print(type(error).__name__, isinstance(error, ImportError), error)
model = rocerf.LogisticModel.fit(data.train)
promise = rocerf.promises.Simulated(validity=0.9, shaping=5, choosing=5, checking=5)
recourses = rocerf.Rocerf(model, 4, promise=promise).explain(data.test.X[:20])
print(int(recourses.answered.sum()) > 0, recourses.held_out.retrainings)
"""


@pytest.mark.slow
@pytest.mark.parametrize("ask", ["rocerf.NeuralModel.fit(data.train)", "from rocerf import NeuralModel"])
def test_without_torch_a_network_names_the_extra_and_all_else_works(ask: str) -> None:
    code = [sys.executable, "-W", "error", "-c", MISSING.format(ask=ask)]
    done = subprocess.run(code, capture_output=True, text=True, check=False)
    assert (done.returncode, done.stderr) == (0, "")
    first, second = done.stdout.strip().splitlines()
    expected = r"MissingExtraError True A neural network needs the package 'torch'.*pip install \"rocerf\[nn\]\""
    assert re.match(expected.replace('\\"', '"'), first)
    assert second == "True 5"


def test_every_refusal_here_is_an_error_of_ours() -> None:
    for error in (DidNotTrainError, FileFormatError, OptionError, UnsupportedModelError, DataError, ColumnError):
        assert issubclass(error, RocerfError)


@pytest.mark.parametrize("hidden_layers", [1, 2, 3])
def test_slopes_written_out_are_those_of_autograd(hidden_layers: int) -> None:
    class Other(Mlp):  # the same network, of which nothing is known
        pass

    architecture = Architecture.of(4, width=7, hidden_layers=hidden_layers)
    rng = np.random.default_rng(3)
    design = Design(np.ones(4), np.array([1.0, 2.0, 0.5, 3.0]), intercept=False)
    X, weights = rng.normal(size=(6, 4)) * 40, rng.normal(size=(3, 6))  # softplus is linear above 20
    stack = architecture.initial([1, 2, 3])
    modules = (architecture.module(), Other(architecture).double())
    ours, theirs = (NetworkEnsemble.of(module, stack, design, 0.3).scores_and_pullback(X) for module in modules)
    np.testing.assert_allclose(ours[0], theirs[0], rtol=1e-13, atol=1e-13)
    np.testing.assert_allclose(ours[1](weights), theirs[1](weights), rtol=1e-12, atol=1e-13)
