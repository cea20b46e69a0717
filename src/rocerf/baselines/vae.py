"""The variational autoencoder behind C-CHVAE.

Encoder ``D -> H1 -> H2 -> latent``, decoder back the same way, softplus between; both ends are Gaussians whose mean and
log variance are read off the last hidden layer. It minimises the mean over rows of

    1/2 sum_j (log var_x,j + (x_j - mean_x,j)^2 / var_x,j)  +  w/2 sum_l (mean_z,l^2 + var_z,l - log var_z,l),

one latent draw a row and step, by Adam with weight decay. Two options make it learn to reproduce rows, which with the
defaults (the original's: no floor, w = 1) it hardly does on tables of 0/1 columns:

* Because the decoder's variance is learned, the first sum has no lower bound where a column is known exactly, and
  those columns drown the others. ``variance_floor`` is added to the variance.
* With w = 1 from the start latent columns are given up before they carry anything. ``warm_up`` is the share of the
  epochs over which w rises from 0 to 1.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import asdict, dataclass
from os import PathLike
from typing import Any

import numpy as np

from rocerf.errors import DidNotTrainError, MissingExtraError
from rocerf.storage.state import State
from rocerf.types import Array, Progress

try:
    import torch
    from torch.nn import functional
except ImportError as error:  # the other baselines work without torch
    raise MissingExtraError("torch", "nn", "C-CHVAE") from error

Tensor = Any

FILE_FORMAT = "rocerf-vae/2"


@dataclass(frozen=True)
class VaeOptions:
    """Sizes and training of an autoencoder of rows with ``inputs`` columns; the defaults are the authors'."""

    inputs: int
    hidden: tuple[int, int]
    latent: int = 6
    learning_rate: float = 1e-3
    batch_size: int = 32
    epochs: int = 100
    weight_decay: float = 1e-6
    variance_floor: float = 0.0
    warm_up: float = 0.0

    @property
    def layers(self) -> dict[str, tuple[int, int]]:
        """(inputs, outputs) of each linear layer, by name."""
        d, (first, second), latent = self.inputs, self.hidden, self.latent
        return {
            "encode_first": (d, first),
            "encode_second": (first, second),
            "latent_mean": (second, latent),
            "latent_log_variance": (second, latent),
            "decode_first": (latent, second),
            "decode_second": (second, first),
            "row_mean": (first, d),
            "row_log_variance": (first, d),
        }


class _Module(torch.nn.Module):  # type: ignore[misc]
    """The autoencoder as a torch module, in float32."""

    def __init__(self, options: VaeOptions) -> None:
        super().__init__()
        self.floor = options.variance_floor
        for name, sizes in options.layers.items():
            # Its values come from the seed or a file: torch's own stream of chance is left alone.
            setattr(self, name, torch.nn.utils.skip_init(torch.nn.Linear, *sizes))

    def encode(self, rows: Tensor) -> tuple[Tensor, Tensor]:
        """Mean and log variance (m, latent) of rows (m, D)."""
        hidden = functional.softplus(self.encode_second(functional.softplus(self.encode_first(rows))))
        return self.latent_mean(hidden), self.latent_log_variance(hidden)

    def _decoded(self, latents: Tensor) -> Tensor:
        return functional.softplus(self.decode_second(functional.softplus(self.decode_first(latents))))

    def decode_mean(self, latents: Tensor) -> Tensor:
        """Mean (m, D) of latents (m, latent)."""
        return self.row_mean(self._decoded(latents))

    def decode(self, latents: Tensor) -> tuple[Tensor, Tensor]:
        """Mean and log variance (m, D) of latents (m, latent)."""
        hidden = self._decoded(latents)
        log_variance = self.row_log_variance(hidden)
        if self.floor > 0:
            log_variance = torch.log(self.floor + torch.exp(log_variance))
        return self.row_mean(hidden), log_variance

    def loss(self, rows: Tensor, noise: Tensor, weight: float) -> Tensor:
        """The objective on rows (m, D), with standard normal noise (m, latent) and weight w."""
        mean_z, log_z = self.encode(rows)
        mean_x, log_x = self.decode(mean_z + torch.exp(0.5 * log_z) * noise)
        misfit = (log_x + (rows - mean_x) ** 2 * torch.exp(-log_x)).sum(dim=1)
        divergence = (mean_z**2 + torch.exp(log_z) - log_z).sum(dim=1)
        return 0.5 * (misfit + weight * divergence).mean()


class Vae:
    """A trained autoencoder: NumPy in, NumPy out.

    Examples
    --------
    >>> rng = np.random.default_rng(0)
    >>> line = rng.normal(size=(64, 1)) @ np.ones((1, 3))
    >>> vae = Vae.train(line, VaeOptions(inputs=3, hidden=(8, 16), latent=1, epochs=2), seed=0)
    >>> vae.encode(line).shape, vae.decode(np.zeros((5, 1))).shape
    ((64, 1), (5, 3))
    """

    def __init__(self, options: VaeOptions, module: Tensor) -> None:
        self.options = options
        self._module = module.eval()
        for parameter in module.parameters():
            parameter.requires_grad_(False)

    @classmethod
    def train(cls, rows: Array, options: VaeOptions, *, seed: int = 0, progress: Progress | None = None) -> Vae:
        """Fit to rows (n, D), scaled as the caller likes; the same seed gives the same autoencoder."""
        module = _initial(options, seed)
        adam = torch.optim.Adam(
            module.parameters(), lr=options.learning_rate, weight_decay=options.weight_decay, fused=True
        )
        data = torch.as_tensor(rows, dtype=torch.float32)
        chance = torch.Generator().manual_seed(seed)
        for epoch in range(options.epochs):
            weight = min(1.0, epoch / (options.warm_up * options.epochs)) if options.warm_up > 0 else 1.0
            order = torch.randperm(len(data), generator=chance)
            for batch in torch.split(order, options.batch_size):
                adam.zero_grad()
                module.loss(data[batch], torch.randn(len(batch), options.latent, generator=chance), weight).backward()
                adam.step()
            if progress is not None:
                progress(epoch + 1, options.epochs)
        if not all(bool(torch.isfinite(parameter).all()) for parameter in module.parameters()):
            raise DidNotTrainError(
                "Expected an autoencoder with finite parameters, got infinite ones or NaN after training; lower the "
                "learning rate, or use preset='corrected', which bounds the decoder's variance from below."
            )
        return cls(options, module)

    @classmethod
    def of_arrays(cls, options: VaeOptions, arrays: Mapping[str, Any]) -> Vae:
        """With these weights and biases, by the names of the layers (:attr:`VaeOptions.layers`)."""
        module = _Module(options)
        module.load_state_dict({name: torch.as_tensor(value) for name, value in arrays.items()})
        return cls(options, module)

    def _call(self, function: Any, values: Array) -> Any:
        with torch.no_grad():
            return function(torch.as_tensor(values, dtype=torch.float32))

    def encode(self, rows: Array) -> Array:
        """Means of the latent Gaussians of rows (m, D), shape (m, latent)."""
        return _array(self._call(self._module.encode, rows)[0])

    def decode(self, latents: Array) -> Array:
        """Means of the rows that latents (m, latent) stand for, shape (m, D)."""
        return _array(self._call(self._module.decode_mean, latents))

    def variance(self, latents: Array) -> Array:
        """The decoder's variance around those means, shape (m, D)."""
        return _array(torch.exp(self._call(self._module.decode, latents)[1]))

    def save(self, path: str | PathLike[str], about: dict[str, Any] | None = None) -> None:
        """Write it to one ``.npz`` file (plain arrays and JSON, no pickle), with whatever else is to be known of it."""
        arrays = {name: value.cpu().numpy() for name, value in self._module.state_dict().items()}
        document = {"options": asdict(self.options), "about": about or {}}
        State(FILE_FORMAT, document, arrays).write(path, private=False)

    @classmethod
    def load(cls, path: str | PathLike[str]) -> tuple[Vae, dict[str, Any]]:
        """What :meth:`save` wrote, and what was to be known of it."""
        kept = FILE_FORMAT, "CChvae.save_vae", "train and save it again with this version"
        state = State.read(path, *kept)
        with state.understood(*kept):
            given = state.values["options"]
            options = VaeOptions(**{**given, "hidden": tuple(given["hidden"])})
            return cls.of_arrays(options, state.arrays), state.values["about"]


def _initial(options: VaeOptions, seed: int) -> Tensor:
    """A fresh module with torch's usual ``U(-1, 1) / sqrt(inputs)``, drawn by NumPy from the seed alone."""
    module, rng = _Module(options), np.random.default_rng(seed)
    with torch.no_grad():
        for name, (inputs, outputs) in options.layers.items():
            layer, bound = getattr(module, name), 1.0 / np.sqrt(inputs)
            layer.weight.copy_(torch.as_tensor(rng.uniform(-bound, bound, (outputs, inputs))))
            layer.bias.copy_(torch.as_tensor(rng.uniform(-bound, bound, outputs)))
    return module


def _array(values: Tensor) -> Array:
    return np.asarray(values.double().numpy())
