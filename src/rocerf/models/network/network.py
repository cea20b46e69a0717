"""The paper's network, alone and stacked.

``d -> width -> ... -> width -> 1`` with the centred softplus ``softplus(z) - ln 2`` after every layer but the last. The
paper's text speaks of three hidden layers, its code has two: the number is an option.

A *stack* is M networks of one shape with their parameters side by side: one tensor for each parameter of the
module, in the module's order, with a leading axis of M. One batched product then works for all of them.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from itertools import pairwise
from typing import Any

import numpy as np
import torch
from numpy.typing import NDArray
from torch.nn import functional

from rocerf.errors import FileFormatError, OptionError

#: Tensors of torch; the package is typed without it, so that it can be checked where torch is missing.
Tensor = Any

LN2 = math.log(2.0)


@dataclass(frozen=True)
class Architecture:
    """Sizes of a network: inputs, units in each hidden layer, number of hidden layers.

    >>> Architecture.of(7).layers
    ((7, 14), (14, 14), (14, 1))
    >>> Architecture.of(7).parameters
    337
    """

    inputs: int
    width: int
    hidden_layers: int

    @classmethod
    def of(cls, inputs: int, *, width: int | None = None, hidden_layers: int = 2) -> Architecture:
        """The paper's: hidden layers twice as wide as the input."""
        return cls(inputs, 2 * inputs if width is None else width, hidden_layers)

    @property
    def layers(self) -> tuple[tuple[int, int], ...]:
        """(inputs, outputs) of each linear layer."""
        sizes = [self.inputs, *[self.width] * self.hidden_layers, 1]
        return tuple(pairwise(sizes))

    @property
    def parameters(self) -> int:
        """Number of parameters p."""
        return sum((inputs + 1) * outputs for inputs, outputs in self.layers)

    def module(self) -> Mlp:
        """A network of this shape, in float64; its values are whatever torch puts there."""
        module: Mlp = Mlp(self).double()
        return module

    def initial(self, seeds: Sequence[int]) -> list[NDArray[np.float64]]:
        """A stack of M fresh networks, one for each seed: torch's usual ``U(-1, 1) / sqrt(inputs)``.

        Drawn by NumPy from each seed alone, so that a network does not depend on its neighbours or on the device.
        """
        drawn: list[list[NDArray[np.float64]]] = [[] for _ in range(2 * len(self.layers))]
        for seed in seeds:
            rng = np.random.default_rng(seed)
            for place, (inputs, outputs) in enumerate(self.layers):
                bound = 1.0 / math.sqrt(inputs)
                drawn[2 * place].append(rng.uniform(-bound, bound, (outputs, inputs)))
                drawn[2 * place + 1].append(rng.uniform(-bound, bound, outputs))
        return [np.stack(parameter) for parameter in drawn]


class Mlp(torch.nn.Module):  # type: ignore[misc]
    """The network as a torch module: (m, d) to logits (m,)."""

    def __init__(self, architecture: Architecture) -> None:
        super().__init__()
        self.layers = torch.nn.ModuleList(torch.nn.Linear(*sizes) for sizes in architecture.layers)

    def forward(self, rows: Tensor) -> Tensor:
        """Logits of rows (m, d)."""
        for layer in self.layers[:-1]:
            rows = functional.softplus(layer(rows)) - LN2
        return self.layers[-1](rows).squeeze(-1)


def stacked_forward(stack: Sequence[Tensor], rows: Tensor) -> Tensor:
    """Logits (M, m) of a stack of networks, each at its own rows (M, m, d)."""
    last = len(stack) - 2
    for place in range(0, len(stack), 2):
        rows = torch.baddbmm(stack[place + 1][:, None, :], rows, stack[place].transpose(1, 2))
        if place < last:
            rows = functional.softplus(rows) - LN2
    return rows.squeeze(-1)


def forward_and_pullback(stack: Sequence[Tensor], points: Tensor) -> tuple[Tensor, Callable[[Tensor], Tensor]]:
    """Logits (M, P) of every network of a stack at points (P, d), and the map from weights (M, P) to slopes (P, d).

    What autograd would find, written out: for a few points its bookkeeping takes thirty times as long as the products.
    """
    layers = [(stack[place], stack[place + 1]) for place in range(0, len(stack), 2)]
    rows, inside = points.expand(len(stack[0]), *points.shape), []
    for place, (weights, biases) in enumerate(layers):
        if place:
            inside.append(rows)
            rows = functional.softplus(rows) - LN2
        rows = torch.baddbmm(biases[:, None, :], rows, weights.transpose(1, 2))

    def pullback(given: Tensor) -> Tensor:
        slopes = given[:, :, None] * layers[-1][0]
        for (weights, _), before in zip(layers[-2::-1], reversed(inside), strict=True):
            slopes = torch.ops.aten.softplus_backward(slopes, before, 1.0, 20.0) @ weights
        return slopes.sum(dim=0)

    return rows.squeeze(-1), pullback


def state_names(module: Tensor) -> list[str]:
    """Names of parameters, then of buffers: what makes two modules of one shape different."""
    return [name for name, _ in (*module.named_parameters(), *module.named_buffers())]


def state_arrays(module: Tensor) -> list[NDArray[np.float64]]:
    """Values of parameters and buffers in that order; floating ones as float64."""
    tensors = [tensor.detach().cpu() for _, tensor in (*module.named_parameters(), *module.named_buffers())]
    return [(tensor.double() if tensor.is_floating_point() else tensor).numpy().copy() for tensor in tensors]


def tensor(values: NDArray[Any], device: str) -> Tensor:
    """The values on the device, in their own precision."""
    return torch.as_tensor(values, device=device)


def array(values: Tensor) -> NDArray[np.float64]:
    """The values as float64 on this side."""
    return np.asarray(values.detach().cpu().double().numpy())


def is_module(thing: Any) -> bool:
    """Whether this is a torch module (and not a class of modules)."""
    return isinstance(thing, torch.nn.Module)


def precision_of(module: Tensor) -> Any:
    """The type of a module's parameters, torch's default if it has none."""
    return next((parameter.dtype for parameter in module.parameters()), torch.get_default_dtype())


def with_state(module: Tensor, values: Sequence[NDArray[np.float64]]) -> Tensor:
    """The module with this state put in."""
    tensors = [*module.parameters(), *module.buffers()]
    shapes = [tuple(value.shape) for value in values]
    if [tuple(held.shape) for held in tensors] != shapes:
        raise FileFormatError(
            f"Expected a module whose parameters and buffers have the shapes {shapes}, got another; "
            "build it as it was when the model was saved."
        )
    with torch.no_grad():
        for held, value in zip(tensors, values, strict=True):
            held.copy_(torch.as_tensor(value))
    return module


def checked_device(device: str) -> str:
    """The device, if torch can use it here."""
    try:
        if not isinstance(device, str):
            raise RuntimeError("not a name")
        if torch.empty(1, dtype=torch.float64, device=device).is_meta:
            raise RuntimeError("it holds no values")
    except (RuntimeError, AssertionError, TypeError, NotImplementedError) as error:
        said = str(error).partition("\n")[0]
        raise OptionError(f"Expected a device that torch can use here, got {device!r} ({said}); use 'cpu'.") from error
    return device
