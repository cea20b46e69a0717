"""Files with a bit turned or an end cut off: our sentence every time, or the very same content, never another one."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from sklearn.naive_bayes import GaussianNB

from problems import random_training_set, refused_people
from rocerf import EstimatorModel, LogisticModel, NeuralModel, Recourses, Rocerf, TrainingSet
from rocerf.errors import FileFormatError
from rocerf.promises import Simulated

#: What a reader makes of a file, in a form that can be compared.
Reader = Callable[[Path], Any]


def of_model(model: Any) -> Any:
    rows = model.train.X
    return model.train.checksum, model.train.ids.tolist(), model.threshold, model.score(rows).tobytes()


def of_explainer(explainer: Rocerf) -> Any:
    promise, told = explainer.promise, explainer.settings()
    rows = explainer.model.train.X[:5]
    values = promise.read(rows).values if explainer.promise.name != "simulated" else np.array(promise.factor)
    return told, of_model(explainer.model), values.tobytes()


def of_recourses(recourses: Recourses) -> Any:
    return recourses.settings, recourses.statuses, recourses.matrix.tobytes(), recourses.margins.tobytes()


class Saved:
    """Files of every kind with how each is read."""

    def __init__(self, folder: Path) -> None:
        train = random_training_set(2, n=40, d=2)
        model = LogisticModel.fit(train)
        people = refused_people(model, 0, 4)
        self.readers: list[tuple[Path, Reader]] = []
        quick = Simulated(validity=0.5, shaping=3, choosing=3, checking=3)
        for promise in ("retrained", "certified", quick):
            explainer = Rocerf(model, 1, promise=promise, effort="quick")
            answers = explainer.explain(people)
            name = promise if isinstance(promise, str) else "simulated"
            explainer.save(folder / name)
            answers.to_json(folder / f"{name}.json")
            for file in ("explainer.json", "model.npz", "promise.npz"):
                self.readers.append((folder / name / file, lambda path: of_explainer(Rocerf.load(path.parent))))
            self.readers.append((folder / f"{name}.json", lambda path: of_recourses(Recourses.from_json(path))))
        model.save(folder / "logistic.npz")
        self.readers.append((folder / "logistic.npz", lambda path: of_model(LogisticModel.load(path))))
        EstimatorModel.fit(GaussianNB(), train).save(folder / "estimator.npz")
        self.readers.append((folder / "estimator.npz", lambda path: of_model(EstimatorModel.load(path))))
        labels = np.where(train.y == 1, "yes", "no")
        network = NeuralModel.fit(TrainingSet(train.X, labels, favourable="yes"), width=4, epochs=60, learning_rate=0.1)
        network.save(folder / "network.npz")
        self.readers.append((folder / "network.npz", lambda path: of_model(NeuralModel.load(path))))


@pytest.fixture(scope="module")
def saved(tmp_path_factory: pytest.TempPathFactory) -> Saved:
    return Saved(tmp_path_factory.mktemp("saved"))


def turned(content: bytes, rng: np.random.Generator) -> bytes:
    place, bit = int(rng.integers(len(content))), int(rng.integers(8))
    return content[:place] + bytes([content[place] ^ (1 << bit)]) + content[place + 1 :]


def cut(content: bytes, rng: np.random.Generator) -> bytes:
    return content[: int(rng.integers(len(content)))]


def refused(saved: Saved, times: int, damage: Callable[[bytes, np.random.Generator], bytes]) -> tuple[int, int]:
    """So often, file by file: how many were refused in our words, and how many read as what they were."""
    rng, counts = np.random.default_rng(0), [0, 0]
    expected = {path: reader(path) for path, reader in saved.readers}
    for turn in range(times):
        path, reader = saved.readers[turn % len(saved.readers)]
        whole = path.read_bytes()
        path.write_bytes(damage(whole, rng))
        try:
            found = reader(path)
        except FileFormatError:
            counts[0] += 1
        else:
            assert found == expected[path], f"{path.name} was read as something else"
            counts[1] += 1
        finally:
            path.write_bytes(whole)
    return counts[0], counts[1]


@pytest.mark.parametrize(("damage", "times"), [(turned, 105), (cut, 45)])
def test_a_damaged_file_is_refused_in_our_words(damage: Any, times: int, saved: Saved, figures: list[str]) -> None:
    said, same = refused(saved, times, damage)
    figures.append(f"{damage.__name__}: {said} of {times} damaged files refused, {same} read as they were")
    assert said > 0.8 * times


@pytest.mark.slow
@pytest.mark.parametrize(("damage", "times"), [(turned, 600), (cut, 200)])
def test_many_damaged_files_are_refused(damage: Any, times: int, saved: Saved, figures: list[str]) -> None:
    said, same = refused(saved, times, damage)
    figures.append(f"{damage.__name__}: {said} of {times} damaged files refused, {same} read as they were")
    assert said > 0.8 * times


def test_absurd_arrays_folders_and_nesting_are_refused(saved: Saved, tmp_path: Path) -> None:
    import io
    import zipfile

    def npz(header: bytes) -> bytes:
        buffer = io.BytesIO()
        with zipfile.ZipFile(buffer, "w") as archive:
            archive.writestr("about.npy", b"\x93NUMPY\x01\x00" + len(header).to_bytes(2, "little") + header)
        return buffer.getvalue()

    huge = b"{'descr': '<f8', 'fortran_order': False, 'shape': (1000000000000000,), }"
    for content in (npz(huge), npz(b"(" * 5000), npz(b"{'descr': '<f8'"), b"[" * 100_000, b"", b"\xff" * 50):
        for path, reader in saved.readers:
            whole = path.read_bytes()
            path.write_bytes(content)
            try:
                with pytest.raises(FileFormatError, match="Expected"):
                    reader(path)
            finally:
                path.write_bytes(whole)
    for load in (LogisticModel.load, EstimatorModel.load, NeuralModel.load, Recourses.from_json, Rocerf.load):
        with pytest.raises(FileFormatError, match="Expected"):
            load(tmp_path)


def test_a_document_with_its_checksum_removed_is_refused(saved: Saved) -> None:
    path = next(path for path, _ in saved.readers if path.name == "explainer.json")
    whole = path.read_text("utf-8")
    document = json.loads(whole)
    del document["sha256"]
    path.write_text(json.dumps(document))
    try:
        with pytest.raises(FileFormatError, match="changed after it was written"):
            Rocerf.load(path.parent)
    finally:
        path.write_text(whole)
