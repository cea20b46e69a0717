"""Networks on disk: what comes back is what was saved, and nothing else is taken for it."""

from __future__ import annotations

import io
import json
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pytest
import torch

from networks import (
    DEVICES,
    MODULES,
    from_torch,
    people_near,
    refit_of,
    small_network,
)
from problems import random_training_set
from rocerf import LogisticModel, NeuralModel, TrainingSet
from rocerf.errors import (
    FileFormatError,
    UnsupportedModelError,
)
from rocerf.storage.seals import sealed

TRAIN = random_training_set(5, n=90, d=3)


@pytest.mark.slow
@pytest.mark.parametrize("device", DEVICES)
@pytest.mark.parametrize("weights", [False, True])
def test_a_network_of_ours_comes_back_from_its_file_as_it_was(tmp_path: Path, weights: bool, device: str) -> None:
    model = small_network(weights=weights, threshold=0.7, damping=0.25, device=device)
    model.save(tmp_path / "model.npz")
    again = NeuralModel.load(tmp_path / "model.npz")
    X, gone = people_near(model, 15), model.train.ids[:3]
    np.testing.assert_array_equal(again.theta, model.theta)
    np.testing.assert_allclose(again.score(X), model.score(X), atol=1e-12)
    assert (again.threshold, again.damping, again.seed, again.device) == (0.7, 0.25, model.seed, device)
    assert again.train.checksum == model.train.checksum
    assert again.train.ids.tolist() == model.train.ids.tolist()
    assert again.assumptions() == model.assumptions()
    np.testing.assert_array_equal(again.without(gone).theta, model.without(gone).theta)
    warm = [m.without(gone, retraining="warm").theta for m in (model, again)]
    np.testing.assert_array_equal(*warm)
    np.testing.assert_allclose(again.row_gradients(), model.row_gradients(), atol=1e-12)


def test_labels_and_columns_of_a_frame_survive_the_file(tmp_path: Path) -> None:
    frame = pd.DataFrame(TRAIN.X, columns=["a", "b", "c"], index=[f"p{i}" for i in range(90)])
    train = TrainingSet(frame, np.where(TRAIN.y == 1, "good", "bad"), favourable="good")
    model = NeuralModel.fit(train, epochs=40, learning_rate=0.1)
    model.save(tmp_path / "model.npz")
    again = NeuralModel.load(tmp_path / "model.npz")
    assert (again.train.columns, again.train.favourable, again.train.from_frame) == (("a", "b", "c"), "good", True)
    assert again.damping == model.damping  # "auto" stays so
    np.testing.assert_array_equal(again.score(frame[["c", "a", "b"]]), model.score(frame))


@pytest.mark.parametrize("name", MODULES)
def test_a_network_from_torch_needs_its_module_again(name: str, tmp_path: Path) -> None:
    model = from_torch(name, refit=refit_of(name), seed=3, threshold=0.6, weights=True)
    path = tmp_path / "model.npz"
    model.save(path)
    with pytest.raises(
        FileFormatError, match=r"the module too.*came from torch.*give it: NeuralModel\.load\(path, module"
    ):
        NeuralModel.load(path)
    skeleton = MODULES[name]()
    again = NeuralModel.load(path, module=skeleton, refit=refit_of(name))
    X, gone = people_near(model, 15), model.train.ids[:3]
    np.testing.assert_allclose(again.score(X), model.score(X), atol=1e-12)
    np.testing.assert_allclose(again.score_gradient(X), model.score_gradient(X), atol=1e-12)
    assert (again.seed, again.threshold, again.damping) == (3, 0.6, 0.01)
    np.testing.assert_allclose(again.without(gone, seed=1).score(X), model.without(gone, seed=1).score(X), atol=1e-12)
    assert all(p.dtype == torch.float32 for p in skeleton.parameters() if p.dtype != torch.float64)
    for wrong in (torch.nn.Linear(4, 1), torch.nn.Sequential(torch.nn.Linear(3, 7), torch.nn.Linear(7, 1))):
        with pytest.raises(FileFormatError, match="a module whose parameters and buffers have the shapes"):
            NeuralModel.load(path, module=wrong)
    without_refit = NeuralModel.load(path, module=skeleton)
    with pytest.raises(UnsupportedModelError, match="refit="):
        without_refit.without(gone)


def rewritten(path: Path, *, seal: bool = True, **changes: Any) -> Path:
    """The file with some arrays replaced, or fields of its description; the checksum made to fit, or left."""
    with np.load(path, allow_pickle=False) as file:
        arrays = {name: file[name] for name in file.files}
    about = json.loads(str(arrays.pop("about")))
    for name, value in changes.items():
        if name in arrays or name.startswith("state_"):
            arrays[name] = value
        else:
            about[name] = value
    arrays["about"] = np.array(json.dumps(sealed(about, arrays) if seal else about))
    buffer = io.BytesIO()
    np.savez_compressed(buffer, **arrays)
    altered = path.with_name("altered.npz")
    altered.write_bytes(buffer.getvalue())
    return altered


@pytest.mark.parametrize(
    "changes",
    [
        {"format": "rocerf-neural-model/1"},
        {"X": np.zeros((90, 3))},
        {"ids": np.arange(3)},
        {"state_0": np.zeros((2, 2))},
        {"state_6": np.zeros(2)},
        {"architecture": {"inputs": 3, "width": 9, "hidden_layers": 2}},
        {"architecture": {"inputs": 3, "width": 5}},
        {"architecture": {"inputs": 3, "width": 5, "hidden_layers": 2, "kind": "odd"}},
        {"training": {"learning_rate": 0.1, "momentum": 0.9}},
        {"training": None},
        {"checksum": "0"},
    ],
    ids=lambda changes: next(iter(changes)),
)
def test_an_altered_file_is_refused(changes: dict[str, Any], tmp_path: Path) -> None:
    small_network().save(tmp_path / "model.npz")
    assert rewritten(tmp_path / "model.npz").exists()
    NeuralModel.load(rewritten(tmp_path / "model.npz"))  # nothing changed: still good
    with pytest.raises(FileFormatError):
        NeuralModel.load(rewritten(tmp_path / "model.npz", **changes))
    if "format" not in changes:
        with pytest.raises(FileFormatError, match="was changed after it was written"):
            NeuralModel.load(rewritten(tmp_path / "model.npz", seal=False, **changes))


@pytest.mark.parametrize("damage", ["empty", "text", "half", "noise", "array", "list"])
def test_a_file_that_is_none_of_ours_is_refused(damage: str, tmp_path: Path) -> None:
    small_network().save(tmp_path / "model.npz")
    whole = (tmp_path / "model.npz").read_bytes()
    noisy = bytearray(whole)
    noisy[len(noisy) // 3 : len(noisy) // 3 + 200] = b"\x5a" * 200
    array, listed = io.BytesIO(), io.BytesIO()
    np.save(array, np.zeros(3))
    np.savez(listed, about=np.array(json.dumps([1, 2])))
    contents = {
        "empty": b"",
        "text": b"once upon a time",
        "half": whole[: len(whole) // 2],
        "noise": bytes(noisy),
        "array": array.getvalue(),
        "list": listed.getvalue(),
    }
    (tmp_path / "bad.npz").write_bytes(contents[damage])
    with pytest.raises(FileFormatError, match=r"a file written by NeuralModel\.save"):
        NeuralModel.load(tmp_path / "bad.npz")


def test_a_file_of_another_kind_of_model_is_refused(tmp_path: Path) -> None:
    LogisticModel.fit(TRAIN).save(tmp_path / "logistic.npz")
    small_network().save(tmp_path / "network.npz")
    with pytest.raises(FileFormatError, match=r"written by NeuralModel\.save"):
        NeuralModel.load(tmp_path / "logistic.npz")
    with pytest.raises(FileFormatError, match=r"written by LogisticModel\.save"):
        LogisticModel.load(tmp_path / "network.npz")
    with pytest.raises(FileNotFoundError):
        NeuralModel.load(tmp_path / "nothing.npz")
