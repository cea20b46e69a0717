"""Small networks shared by the tests, and slow, obvious oracles for what is computed about them in one go."""

from __future__ import annotations

import copy
from collections.abc import Callable
from functools import cache
from typing import Any

import numpy as np
import torch
from scipy.special import expit

from problems import random_training_set
from rocerf import NeuralModel, TrainingSet
from rocerf.models.design import Design
from rocerf.models.network.network import Architecture
from rocerf.models.network.options import NetworkOptions
from rocerf.models.network.retraining import OwnTraining
from rocerf.models.network.training import Training

DEVICES = ["cpu", *(["cuda"] if torch.cuda.is_available() else [])]


def trained(
    train: TrainingSet,
    training: Training,
    *,
    seed: int = 0,
    width: int = 4,
    hidden_layers: int = 2,
    threshold: float = 0.5,
    damping: float | str = "auto",
    device: str = "cpu",
) -> NeuralModel:
    """A network of ours trained just so: what ``NeuralModel.fit`` makes, with the precision to be chosen as well."""
    design = Design(train.X.mean(axis=0), np.array(train.spread), False)
    shape = Architecture.of(train.X.shape[1], width=width, hidden_layers=hidden_layers)
    options = NetworkOptions(seed, threshold, damping, device)
    return NeuralModel._trained(train, design, OwnTraining(shape, training), options)


@cache
def small_network(
    seed: int = 5, *, n: int = 90, d: int = 3, device: str = "cpu", weights: bool = False, **options: Any
) -> NeuralModel:
    """A network of ours that has learned something, on overlapping classes; trained once a session."""
    chosen = {"epochs": 60, "learning_rate": 0.5, "width": 5, "weight_decay": 0.01} | options
    return NeuralModel.fit(random_training_set(seed, n=n, d=d, weights=weights), seed=seed, device=device, **chosen)


@cache
def moons(n: int = 120, seed: int = 0) -> TrainingSet:
    """Two half moons, overlapping: no straight line parts them."""
    rng = np.random.default_rng(seed)
    angle, label = np.pi * rng.random(n), np.arange(n) % 2
    x = np.where(label == 1, np.cos(angle), 1.0 - np.cos(angle))
    y = np.where(label == 1, np.sin(angle), 0.5 - np.sin(angle))
    return TrainingSet(np.column_stack([x, y]) + 0.25 * rng.normal(size=(n, 2)), label)


def people_near(model: Any, count: int, seed: int = 0) -> np.ndarray:
    """Points near the training rows, (count, d), on both sides of the boundary."""
    rng = np.random.default_rng(seed)
    X = model.train.X
    return X[rng.integers(len(X), size=count)] + 0.5 * rng.normal(size=(count, X.shape[1])) * model.train.spread


def logits_at(model: NeuralModel, theta: np.ndarray, X: np.ndarray) -> np.ndarray:
    """Logits of the model's module with other parameters: torch and nothing else."""
    module = copy.deepcopy(model.module).cpu()
    torch.nn.utils.vector_to_parameters(torch.tensor(theta), module.parameters())
    rows = torch.tensor((X - model.design.centre) / model.design.scale)
    with torch.no_grad():
        return module(rows).reshape(-1).numpy()


def jacobian_by_loop(model: NeuralModel, X: np.ndarray) -> np.ndarray:
    """``dscore/dtheta`` (P, p): one backward pass a person."""
    module = copy.deepcopy(model.module).cpu().requires_grad_(True)
    found = []
    for x in X:
        row = torch.tensor((x - model.design.centre) / model.design.scale)
        slopes = torch.autograd.grad(module(row[None]).reshape(()), list(module.parameters()))
        found.append(torch.cat([slope.reshape(-1) for slope in slopes]).numpy())
    return np.array(found)


def slopes_by_loop(model: NeuralModel, X: np.ndarray) -> np.ndarray:
    """``dscore/dx`` (P, d) in the user's units: one backward pass a person."""
    module = copy.deepcopy(model.module).cpu()
    found = []
    for x in X:
        row = torch.tensor(x, requires_grad=True)
        scaled = (row - torch.tensor(model.design.centre)) / torch.tensor(model.design.scale)
        (slope,) = torch.autograd.grad(module(scaled[None]).reshape(()), row)
        found.append(slope.numpy())
    return np.array(found)


def dense_curvature(model: NeuralModel) -> np.ndarray:
    """The damped Gauss-Newton matrix (p, p), written out from the formula."""
    train = model.train
    omega = np.ones(len(train)) if train.weights is None else train.weights
    probability = expit(logits_at(model, model.theta, train.X))
    J = jacobian_by_loop(model, train.X)
    ridge = len(train) * (model.weight_decay + model.damping)
    return sum(
        w * p * (1 - p) * np.outer(j, j) for w, p, j in zip(omega, probability, J, strict=True)
    ) + ridge * np.eye(J.shape[1])


def row_gradients_by_loop(model: NeuralModel) -> np.ndarray:
    """``g_i`` of all training rows (n, p), written out from the formula."""
    train = model.train
    omega = np.ones(len(train)) if train.weights is None else train.weights
    probability = expit(logits_at(model, model.theta, train.X))
    J = jacobian_by_loop(model, train.X)
    return (omega * (probability - train.y))[:, None] * J + model.weight_decay * model.theta


def finite_differences(value: Callable[[np.ndarray], np.ndarray], at: np.ndarray, step: np.ndarray) -> np.ndarray:
    """Central differences of ``value`` (m,) at one point (d,), with a step for each coordinate; shape (m, d)."""
    columns = []
    for j, h in enumerate(np.broadcast_to(step, at.shape)):
        move = np.zeros_like(at)
        move[j] = h
        columns.append((value(at + move) - value(at - move)) / (2 * h))
    return np.stack(columns, axis=-1)


# --- modules from elsewhere -------------------------------------------------------------------------


def standardised(*, weights: bool = False) -> TrainingSet:
    """Rows that a module can take as they are."""
    train = random_training_set(5, n=90, d=3)
    sample_weight = np.random.default_rng(0).uniform(0.2, 3.0, len(train)) if weights else None
    X = (train.X - train.X.mean(0)) / train.spread
    return TrainingSet(X, train.y.astype(int), ids=train.ids, sample_weight=sample_weight)


def with_dropout() -> Any:
    nn = torch.nn
    return nn.Sequential(nn.Linear(3, 6), nn.ReLU(), nn.Dropout(0.5), nn.Linear(6, 1), nn.Flatten(0))


def with_batch_norm() -> Any:
    nn = torch.nn
    return nn.Sequential(nn.Linear(3, 6), nn.BatchNorm1d(6), nn.Tanh(), nn.Linear(6, 1))


class Tied(torch.nn.Module):
    """One matrix used twice, and a residual connection."""

    def __init__(self) -> None:
        super().__init__()
        self.first = torch.nn.Linear(3, 3)
        self.second = torch.nn.Linear(3, 3)
        self.second.weight = self.first.weight
        self.last = torch.nn.Linear(3, 1)

    def forward(self, x: Any) -> Any:
        x = x + torch.nn.functional.gelu(self.first(x))
        return self.last(torch.sigmoid(self.second(x))).squeeze(-1)


MODULES: dict[str, Callable[[], Any]] = {
    "linear": lambda: torch.nn.Linear(3, 1),
    "relu and dropout": with_dropout,
    "tanh and batch norm": with_batch_norm,
    "tied": Tied,
    "our own": lambda: Architecture.of(3).module().float(),
}


def fitted(name: str, train: TrainingSet, seed: int = 0, start: Any = None) -> Any:
    """A module after a few steps of Adam, as a user would train it: float32, training mode."""
    torch.manual_seed(seed)
    module = MODULES[name]() if start is None else start
    module = module.float().train().requires_grad_(True)
    optimiser = torch.optim.Adam(module.parameters(), lr=0.05)
    X, y = torch.tensor(train.X, dtype=torch.float32), torch.tensor(train.y, dtype=torch.float32)
    for _ in range(25):
        optimiser.zero_grad()
        torch.nn.functional.binary_cross_entropy_with_logits(module(X).reshape(-1), y).backward()
        optimiser.step()
    return module


def from_torch(name: str, **options: Any) -> NeuralModel:
    train = standardised(weights=options.pop("weights", False))
    return NeuralModel.from_torch(fitted(name, train), train, **options)


def refit_of(name: str) -> Callable[[TrainingSet, int, Any], Any]:
    return lambda train, seed, start: fitted(name, train, seed, start)
