"""The autoencoders that the paper's code ships, read from files: nothing of them is in this package.

Their layers are named ``enc.0``, ``enc.2`` (hidden), ``mu_enc.1`` and ``log_var_enc.1`` (mean and log variance of the
latent point), ``dec.0``, ``dec.2``, ``mu_dec.1`` and ``log_var_dec.1`` (the same of the row), each with ``.weight`` and
``.bias``; the hidden ones are there more than once, with the same values. Softplus between, as in
:mod:`rocerf.baselines.vae`.
"""

from __future__ import annotations

import zipfile
from pathlib import Path
from typing import Any

import numpy as np

from rocerf.baselines.vae import Vae, VaeOptions
from rocerf.errors import FileFormatError

#: Their names of our layers.
LAYERS = {
    "encode_first": "enc.0",
    "encode_second": "enc.2",
    "latent_mean": "mu_enc.1",
    "latent_log_variance": "log_var_enc.1",
    "decode_first": "dec.0",
    "decode_second": "dec.2",
    "row_mean": "mu_dec.1",
    "row_log_variance": "log_var_dec.1",
}


def read_weights(path: Path, options: VaeOptions) -> Vae:
    """The autoencoder of a file, which must have the sizes of ``options``."""
    arrays = _arrays(path)
    named = {
        f"{ours}.{part}": arrays.get(f"{theirs}.{part}")
        for ours, theirs in LAYERS.items()
        for part in ("weight", "bias")
    }
    for ours, (inputs, outputs) in options.layers.items():
        for name, shape in ((f"{ours}.weight", (outputs, inputs)), (f"{ours}.bias", (outputs,))):
            value = named[name]
            if value is None or value.shape != shape or not np.isfinite(value).all():
                got = "none" if value is None else f"shape {value.shape}"
                raise FileFormatError(
                    f"Expected finite weights of shape {shape} for the layer {LAYERS[ours]!r} in {path}, got {got}; "
                    "use the file that the paper's code ships for this table, or give CChvae its sizes."
                )
    return Vae.of_arrays(options, named)


def _arrays(path: Path) -> dict[str, Any]:
    """The arrays of a file by their names: NumPy's own format, or torch's read without running anything in it."""
    import pickle

    import torch

    try:
        if path.suffix == ".npz":
            with np.load(path, allow_pickle=False) as found:
                return {name: found[name] for name in found}
        state = torch.load(path, map_location="cpu", weights_only=True)
        return {name: value.numpy() for name, value in state.items()}
    except (
        OSError,
        ValueError,
        EOFError,
        RuntimeError,
        AttributeError,
        zipfile.BadZipFile,
        pickle.UnpicklingError,
    ) as e:
        raise FileFormatError(
            f"Expected the weights of an autoencoder in {path} (.npz or .pt), got something unreadable ({e}); use an "
            "unchanged file."
        ) from e
