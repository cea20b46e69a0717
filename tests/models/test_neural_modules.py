"""Modules of torch taken over as they are, the training functions that come with them, and what is refused."""

from __future__ import annotations

import copy
from typing import Any

import numpy as np
import pytest
import torch
from sklearn.linear_model import LogisticRegression

from networks import (
    DEVICES,
    MODULES,
    Tied,
    fitted,
    from_torch,
    people_near,
    standardised,
)
from rocerf import NeuralModel, TrainingSet
from rocerf.errors import (
    DataError,
    DidNotTrainError,
    UnsupportedModelError,
)


@pytest.mark.parametrize("device", DEVICES)
@pytest.mark.parametrize("name", MODULES)
def test_a_module_is_taken_over_as_it_decides_in_evaluation_mode(name: str, device: str) -> None:
    train = standardised()
    module = fitted(name, train)
    module.train()
    before = copy.deepcopy(module.state_dict())
    model = NeuralModel.from_torch(module, train, device=device)
    X = people_near(model, 20)
    with torch.no_grad():
        expected = copy.deepcopy(module).double().eval()(torch.tensor(X)).reshape(-1).numpy()
    np.testing.assert_allclose(model.score(X), expected, atol=1e-12)
    np.testing.assert_array_equal(model.score(X), model.score(X))  # dropout is off
    # The module given stays as it was: precision, mode, values.
    assert module.training
    assert all(p.dtype == torch.float32 and p.requires_grad for p in module.parameters())
    assert all(torch.equal(before[key], value) for key, value in module.state_dict().items())


def test_later_changes_of_the_module_given_do_not_reach_the_model() -> None:
    train = standardised()
    module = fitted("linear", train)
    model = NeuralModel.from_torch(module, train)
    before = model.score(train.X)
    module.weight.data.zero_()
    np.testing.assert_array_equal(model.score(train.X), before)


@pytest.mark.parametrize(
    ("module", "message"),
    [
        (torch.nn.Linear(3, 2), r"one logit a row, shape \(2,\) or \(2, 1\), got \(2, 2\); .*their difference"),
        (torch.nn.Linear(4, 1), "takes rows of 3 columns in float64, got RuntimeError"),
        (None, "a torch.nn.Module, got NoneType; pass the trained module"),
        ("net.pt", "a torch.nn.Module, got str"),
        (LogisticRegression(), "a torch.nn.Module, got LogisticRegression"),
        (lambda x: x[:, 0], "a torch.nn.Module, got function"),
        (torch.zeros(3), "a torch.nn.Module, got Tensor"),
        (torch.nn.Linear, "a torch.nn.Module, got type"),
    ],
)
def test_what_gives_no_logit_for_a_row_is_refused(module: Any, message: str) -> None:
    with pytest.raises(UnsupportedModelError, match=message):
        NeuralModel.from_torch(module, standardised())


def test_a_logit_that_depends_on_who_else_is_asking_is_refused() -> None:
    """Its slopes, taken row by row, would be those of another function."""

    class Relative(torch.nn.Module):
        def __init__(self) -> None:
            super().__init__()
            self.line = torch.nn.Linear(3, 1)

        def forward(self, x: Any) -> Any:
            return self.line(x) + self.line(x - x.mean(dim=0)) ** 3

    torch.manual_seed(0)
    for module in (Relative(), torch.nn.Sequential(torch.nn.BatchNorm1d(3, track_running_stats=False), Tied())):
        with pytest.raises(UnsupportedModelError):
            NeuralModel.from_torch(module, standardised())


def test_slopes_that_cannot_be_taken_row_by_row_are_refused() -> None:
    class Detour(torch.nn.Module):
        """Leaves torch on its way."""

        def __init__(self) -> None:
            super().__init__()
            self.line = torch.nn.Linear(3, 1)

        def forward(self, x: Any) -> Any:
            return self.line(x) * float(np.cos(0.0 * x.detach().numpy().sum()))

    with pytest.raises(UnsupportedModelError, match=r"slopes torch.func can take row by row, got \w+"):
        NeuralModel.from_torch(Detour(), standardised())


def test_rows_must_come_as_a_training_set() -> None:
    train = standardised()
    for make in (
        lambda: NeuralModel.fit(train.X),
        lambda: NeuralModel.from_torch(torch.nn.Linear(3, 1), train.X),
    ):
        with pytest.raises(DataError, match="a TrainingSet, got ndarray"):
            make()


class Recorder:
    """A training function that remembers what it was given."""

    def __init__(self, name: str) -> None:
        self.name = name
        self.calls: list[tuple[list[Any], int, Any]] = []

    def __call__(self, train: TrainingSet, seed: int, start: Any) -> Any:
        seen = None if start is None else copy.deepcopy(start)
        self.calls.append((train.ids.tolist(), seed, seen))
        return fitted(self.name, train, seed % 2**31, start)


@pytest.mark.parametrize("name", MODULES)
def test_the_refit_function_gets_the_rows_left_a_seed_and_the_start(name: str) -> None:
    refit = Recorder(name)
    model = from_torch(name, refit=refit)
    ids, X = model.train.ids, people_near(model, 8)
    before = model.score(X)
    later = model.without(ids[[3, 8]])
    warm = model.without(ids[[3, 8]], retraining="warm", seed=17)
    (rows, _, start), (warm_rows, warm_seed, warm_start) = refit.calls
    assert rows == warm_rows == np.delete(ids, [3, 8]).tolist() == later.train.ids.tolist()
    assert start is None
    assert warm_seed == warm.seed == 17
    assert isinstance(warm_start, torch.nn.Module)
    with torch.no_grad():
        np.testing.assert_allclose(warm_start.double().eval()(torch.tensor(X)).reshape(-1).numpy(), before, atol=1e-12)
    np.testing.assert_array_equal(model.score(X), before)  # training on from it left the model alone
    for found in (later, warm):
        assert np.abs(found.score(X) - before).max() > 1e-3
        assert np.isfinite(found.score(X)).all()


def test_a_refit_function_may_go_on_training_the_start_it_is_given() -> None:
    """As anybody would write it: an optimiser over its parameters, and a loss that is differentiated.

    The start is as the module was given: in its precision, and in training mode.
    """
    train = standardised()

    def refit(left: TrainingSet, seed: int, start: Any) -> Any:
        module = torch.nn.Linear(3, 1) if start is None else start
        assert module.training
        optimiser = torch.optim.SGD(module.parameters(), lr=0.1)
        for _ in range(3):
            optimiser.zero_grad()
            rows, labels = torch.tensor(left.X, dtype=torch.float32), torch.tensor(left.y, dtype=torch.float32)
            torch.nn.functional.binary_cross_entropy_with_logits(module(rows)[:, 0], labels).backward()
            optimiser.step()
        return module

    model = NeuralModel.from_torch(fitted("linear", train), train, refit=refit)
    later = model.without(train.ids[:2], retraining="warm")
    assert np.abs(later.theta - model.theta).max() > 1e-4


def test_refitted_asks_the_function_once_for_each_deletion() -> None:
    refit, told = Recorder("tanh and batch norm"), []
    model = from_torch("tanh and batch norm", refit=refit)
    ids, X = model.train.ids, people_near(model, 8)
    deletions = [ids[:0], ids[5:9], ids[[1]]]
    later = model.refitted(deletions, seed=4, progress=lambda done, total: told.append((done, total)))
    assert told == [(1, 3), (2, 3), (3, 3)]
    assert [rows for rows, _, _ in refit.calls] == [ids[~np.isin(ids, gone)].tolist() for gone in deletions]
    seeds = [seed for _, seed, _ in refit.calls]
    assert len(set(seeds)) == 3
    again = model.refitted(deletions[:2], seed=4)
    assert [seed for _, seed, _ in refit.calls[3:]] == seeds[:2]  # the m-th depends on (seed, m) alone
    np.testing.assert_array_equal(again.scores(X), later.scores(X)[:2])
    for m, (rows, seed, _) in enumerate(refit.calls[:3]):
        gone = ids[~np.isin(ids, rows)]
        module = fitted("tanh and batch norm", model.train.without(gone) if len(gone) else model.train, seed % 2**31)
        with torch.no_grad():
            expected = module.double().eval()(torch.tensor(X)).reshape(-1).numpy()
        np.testing.assert_allclose(later.scores(X)[m], expected, atol=1e-12)


@pytest.mark.parametrize(
    ("returned", "message"),
    [
        (None, "to return a torch module, got NoneType; return the trained module"),
        (3, "to return a torch module, got int"),
        (torch.optim.SGD([torch.zeros(1, requires_grad=True)]), "to return a torch module, got SGD"),
        (torch.nn.Linear(2, 1), "the same shape as the one given"),
        (torch.nn.Sequential(torch.nn.Linear(3, 1), torch.nn.Linear(1, 1)), "the same shape as the one given"),
        (torch.nn.Sequential(torch.nn.Linear(3, 1), torch.nn.BatchNorm1d(1)), "the same shape as the one given"),
    ],
)
def test_what_a_refit_function_may_not_return(returned: Any, message: str) -> None:
    model = from_torch("linear", refit=lambda train, seed, start: returned)
    with pytest.raises(UnsupportedModelError, match=message):
        model.without(model.train.ids[:1])


def test_a_refit_function_that_diverges_is_named() -> None:
    broken = torch.nn.Linear(3, 1)
    broken.weight.data.fill_(torch.nan)
    model = from_torch("linear", refit=lambda train, seed, start: broken)
    with pytest.raises(DidNotTrainError, match=r"1 of 1 networks with .* NaN \(the refit function given\)"):
        model.without(model.train.ids[:1])


def test_without_a_refit_function_nothing_can_be_retrained_but_all_else_works() -> None:
    model = from_torch("linear")
    for ask in (model.without, lambda ids: model.refitted([ids])):
        with pytest.raises(UnsupportedModelError, match=r"a way to train this network again, got none; pass.*refit="):
            ask(model.train.ids[:1])
    assert model.curvature().width == 4
    assert any("the function the user gave" in sentence for sentence in model.assumptions())


def test_buffers_that_are_not_saved_with_the_module_are_kept_all_the_same() -> None:
    class Centred(torch.nn.Module):
        def __init__(self) -> None:
            super().__init__()
            self.line = torch.nn.Linear(3, 1)
            self.register_buffer("centre", torch.tensor([0.1, 0.2, 0.3]), persistent=False)

        def forward(self, x: Any) -> Any:
            return self.line(x - self.centre)

    train = standardised()
    torch.manual_seed(0)
    module = Centred()
    model = NeuralModel.from_torch(module, train, refit=lambda left, seed, start: module)
    later = model.without(train.ids[:1])
    np.testing.assert_allclose(later.score(train.X), model.score(train.X), atol=1e-12)
