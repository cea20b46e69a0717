"""Slopes of a network: of its logit in the parameters, and of its logit in x while the parameters move."""

from __future__ import annotations

import warnings
from collections.abc import Callable
from dataclasses import dataclass
from functools import cache
from typing import Any

import numpy as np
import torch
from torch.func import functional_call, grad, grad_and_value, jvp, vmap

from rocerf.data.training_set import TrainingSet
from rocerf.errors import UnsupportedModelError
from rocerf.models.network.network import Tensor


@dataclass(frozen=True, eq=False)
class NetworkSlopes:
    """Slopes of one module with one logit a row, taken row by row in float64 on the module's device."""

    module: Tensor

    @property
    def parameters(self) -> dict[str, Tensor]:
        """The module's parameters by name, in order."""
        return {name: parameter.detach() for name, parameter in self.module.named_parameters()}

    def _logit(self, parameters: dict[str, Tensor], row: Tensor) -> Tensor:
        return functional_call(self.module, parameters, (row[None],)).reshape(())

    def jacobian(self, rows: Tensor) -> Tensor:
        """Gradients of the logits in all parameters at rows (m, d), shape (m, p)."""
        parameters = self.parameters
        slopes = vmap(grad(self._logit), in_dims=(None, 0))(parameters, rows)
        return torch.cat([slopes[name].reshape(len(rows), -1) for name in parameters], dim=1)

    def along(self, shifts: Tensor) -> Callable[[Tensor], tuple[Tensor, Tensor]]:
        """For shifts (P, p) of the parameters: the map from rows (P, d) to ``logit + gradient'shift`` and its slopes.

        One Jacobian-vector product in the direction of the shift gives the value; its gradient in x is the slope.
        """
        _forward_mode_ready()
        parameters = self.parameters
        sizes = [values.numel() for values in parameters.values()]
        moved = [
            piece.reshape(len(shifts), *values.shape)
            for piece, values in zip(torch.split(shifts, sizes, dim=1), parameters.values(), strict=True)
        ]

        def value(row: Tensor, *shift: Tensor) -> Tensor:
            tangent = dict(zip(parameters, shift, strict=True))
            logit, change = jvp(lambda p: self._logit(p, row), (parameters,), (tangent,))
            return logit + change

        both = vmap(grad_and_value(value))

        def read(rows: Tensor) -> tuple[Tensor, Tensor]:
            slopes, values = both(rows, *moved)
            return values, slopes

        return read


@cache
def _forward_mode_ready() -> None:
    """Use forward mode once: torch 2.13 warns about itself (torch.jit.script) when that is first loaded."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", DeprecationWarning)
        jvp(torch.sin, (torch.zeros(1),), (torch.ones(1),))


def refuse_strange_module(module: Any, train: TrainingSet, device: str) -> None:
    """Refuse what does not give one logit a row, or whose slopes cannot be taken row by row."""
    rows = torch.as_tensor(np.array(train.X[:2]), device=device)
    try:
        with torch.no_grad():
            logits = module(rows)
            alone = [module(row[None]) for row in rows]
        shape = tuple(logits.shape)
    except Exception as error:  # whatever the user's forward raises
        raise UnsupportedModelError(
            f"Expected a module that takes rows of {train.X.shape[1]} columns in float64, got "
            f"{type(error).__name__}: {error}; pass the columns it was trained on."
        ) from error
    if shape not in ((len(rows),), (len(rows), 1)):
        raise UnsupportedModelError(
            f"Expected one logit a row, shape ({len(rows)},) or ({len(rows)}, 1), got {shape}; for two outputs "
            "wrap the module so that it returns their difference, favourable minus unfavourable."
        )
    if not torch.allclose(logits.reshape(-1), torch.cat([logit.reshape(-1) for logit in alone]), equal_nan=True):
        raise UnsupportedModelError(
            "Expected a logit that depends on its own row alone, got one that depends on the other rows given with it; "
            "avoid operations across the batch (batch statistics, for example)."
        )
    try:
        NetworkSlopes(module).jacobian(rows)
    except Exception as error:  # torch.func names many reasons
        raise UnsupportedModelError(
            f"Expected a module whose slopes torch.func can take row by row, got {type(error).__name__}: {error}; "
            "avoid operations across the batch and in-place changes in forward."
        ) from error
