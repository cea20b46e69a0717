"""The autoencoders that the authors ship: against plain NumPy, and files that are something else."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest
import torch

from rocerf import LogisticModel, load_dataset
from rocerf.baselines import CChvae
from rocerf.baselines.authors_vae import LAYERS, read_weights
from rocerf.baselines.vae import VaeOptions
from rocerf.data.authors_code import SAVED, VARIABLE, weights_file
from rocerf.errors import FileFormatError, OptionError
from shared_data import SHARED, needs_shared

SIZES = {"german": (60, (24, 48)), "compas": (7, (14, 28)), "adult": (13, (26, 52))}


def softplus(values: np.ndarray) -> np.ndarray:
    return np.logaddexp(0.0, values)


def through(arrays: dict[str, np.ndarray], values: np.ndarray, first: str, second: str, last: str) -> np.ndarray:
    """Two hidden layers and a linear one, by the authors' names."""
    for name in (first, second):
        values = softplus(values @ arrays[f"{name}.weight"].T + arrays[f"{name}.bias"])
    return values @ arrays[f"{last}.weight"].T + arrays[f"{last}.bias"]


@needs_shared
@pytest.mark.parametrize("table", SIZES)
def test_shipped_weights_encode_and_decode_as_plain_numpy(table: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv(VARIABLE, str(SHARED / "rocerf_code"))
    file, (columns, hidden) = weights_file(table), SIZES[table]
    assert file is not None
    vae = read_weights(file, VaeOptions(inputs=columns, hidden=hidden))
    with np.load(file) as found:
        arrays = {name: found[name].astype(np.float64) for name in found}
    rng = np.random.default_rng(0)
    rows, latents = rng.normal(size=(20, columns)), 3.0 * rng.normal(size=(20, 6))
    np.testing.assert_allclose(vae.encode(rows), through(arrays, rows, "enc.0", "enc.2", "mu_enc.1"), atol=1e-4)
    np.testing.assert_allclose(vae.decode(latents), through(arrays, latents, "dec.0", "dec.2", "mu_dec.1"), atol=1e-4)
    variance = np.exp(through(arrays, latents, "dec.0", "dec.2", "log_var_dec.1"))
    np.testing.assert_allclose(vae.variance(latents), variance, rtol=1e-3)


def some_weights(options: VaeOptions) -> dict[str, np.ndarray]:
    rng = np.random.default_rng(1)
    made = {}
    for ours, (inputs, outputs) in options.layers.items():
        made[f"{LAYERS[ours]}.weight"] = rng.normal(size=(outputs, inputs)).astype(np.float32)
        made[f"{LAYERS[ours]}.bias"] = rng.normal(size=outputs).astype(np.float32)
    return made


def test_files_of_torch_and_numpy_are_the_same(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    options = VaeOptions(inputs=3, hidden=(4, 5))
    arrays = some_weights(options)
    np.savez(tmp_path / "vae_adult_rr_cfe.npz", **arrays)
    saved = tmp_path / "copy" / SAVED
    saved.mkdir(parents=True)
    torch.save({name: torch.as_tensor(value) for name, value in arrays.items()}, saved / "vae_adult_rr_cfe.pt")
    found = []
    for folder in (tmp_path, tmp_path / "copy"):
        monkeypatch.setenv(VARIABLE, str(folder))
        file = weights_file("adult")
        assert file is not None
        found.append(read_weights(file, options).decode(np.ones((1, 6))))
    np.testing.assert_array_equal(*found)


@pytest.mark.parametrize("spoilt", ["shape", "missing", "nan", "text", "object"])
def test_other_files_are_refused(spoilt: str, tmp_path: Path) -> None:
    options = VaeOptions(inputs=3, hidden=(4, 5))
    arrays = some_weights(options)
    file = tmp_path / ("weights.pt" if spoilt == "object" else "weights.npz")
    if spoilt == "missing":
        del arrays["dec.2.bias"]
    elif spoilt == "nan":
        arrays["dec.2.bias"][0] = np.nan
    elif spoilt == "shape":
        arrays["dec.2.bias"] = arrays["dec.2.bias"][1:]
    if spoilt == "object":
        torch.save({"enc.0.weight": Path}, file)  # an object, not weights: refused without running anything
    elif spoilt == "text":
        file.write_text("no weights")
    else:
        np.savez(file, **arrays)
    with pytest.raises(FileFormatError, match=r"weights"):
        read_weights(file, options)


@needs_shared
def test_german_with_the_shipped_weights_costs_what_an_audit_found(monkeypatch: pytest.MonkeyPatch) -> None:
    """8.40 over the 19 denied; the paper prints 8.51 (0.38)."""
    from rocerf.reproduction.as_published import people_of, weights_of

    monkeypatch.setenv(VARIABLE, str(SHARED / "rocerf_code"))
    data = load_dataset("german-as-published")
    model = LogisticModel.fit(data.train, C=100.0)
    people = people_of(data, "published")
    people = people[model.predict(people) == 0]
    explainer = CChvae(model, preset="authors", weights=weights_of("published", "german"))
    found = explainer.explain(people)
    assert len(people) == 19
    assert found.answered.all()
    assert found.costs.mean() == pytest.approx(8.40, abs=0.03)


def test_weights_are_the_authors_only(tmp_path: Path) -> None:
    model = LogisticModel.fit(load_dataset("german").train)
    with pytest.raises(OptionError, match="weights only with preset='authors'"):
        CChvae(model, weights=tmp_path / "x.npz")
