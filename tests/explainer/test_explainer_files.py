"""A saved explainer is whole, is its own, and is believed only about the very model and k it was saved with."""

from __future__ import annotations

import io
import json
import os
import shutil
import stat
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from sklearn.ensemble import RandomForestClassifier
from sklearn.linear_model import LogisticRegression

from problems import random_training_set, refused_people
from rocerf import EstimatorModel, LogisticModel, NeuralModel, Recourses, Rocerf
from rocerf.errors import DataError, FileFormatError, OptionError
from rocerf.models.identity import first_difference, same_array
from rocerf.promises import Simulated
from rocerf.promises.certified import Certified
from rocerf.storage.seals import sealed, sha256_of

TRAIN = random_training_set(5, n=60, d=3)
C = 2.0


@pytest.fixture(scope="module")
def model() -> LogisticModel:
    return LogisticModel.fit(TRAIN, C=C)


@pytest.fixture(scope="module")
def explainer(model: LogisticModel) -> Rocerf:
    return Rocerf(model, 1, promise="certified")


@pytest.fixture
def folder(explainer: Rocerf, tmp_path: Path) -> Path:
    explainer.save(tmp_path / "explainer")
    return tmp_path / "explainer"


def reseal(folder: Path, **changes: Any) -> None:
    """Whoever edits on purpose can also make the checksums fit; then what is inside is looked at."""
    about = json.loads((folder / "explainer.json").read_text("utf-8"))
    about["options"] |= changes
    about["files"] = {name: sha256_of((folder / name).read_bytes()) for name in about["files"]}
    (folder / "explainer.json").write_text(json.dumps(sealed(about)))


def repacked(content: bytes, change: Callable[[dict[str, Any], dict[str, Any]], None]) -> bytes:
    """An ``.npz`` of ours with arrays or description changed, and a checksum that fits."""
    with np.load(io.BytesIO(content)) as file:
        arrays = {name: file[name] for name in file.files}
    about = json.loads(str(arrays.pop("about")))
    change(about, arrays)
    buffer = io.BytesIO()
    np.savez(buffer, about=np.array(json.dumps(sealed(about, arrays))), **arrays)
    return buffer.getvalue()


# --- about one model and k --------------------------------------------------------------------------------


def test_the_penalty_s_convention_is_part_of_the_model(folder: Path, model: LogisticModel) -> None:
    """C and gamma = 1/(2 C n) have the same parameters, and part ways when rows are deleted."""
    other = LogisticModel.fit(TRAIN, gamma=1 / (2 * C * len(TRAIN)))
    np.testing.assert_allclose(other.theta, model.theta, atol=1e-8)
    with pytest.raises(FileFormatError, match=r"the model that the explainer was saved with.*different penalty"):
        Rocerf.load(folder, model=other)
    assert Rocerf.load(folder, model=LogisticModel.fit(TRAIN, C=C)).k == 1


def logistic_models() -> dict[str, LogisticModel]:
    weights = np.ones(len(TRAIN))
    weights[0] = 1.0 + 1e-6
    deployed = LogisticRegression(C=C, tol=1e-3).fit(TRAIN.X, TRAIN.y)
    return {
        "C": LogisticModel.fit(TRAIN, C=C * (1 + 1e-6)),
        "threshold": LogisticModel.fit(TRAIN, C=C, threshold=0.5 + 1e-6),
        "class weights": LogisticModel.fit(TRAIN, C=C, class_weight={0: 1.0, 1: 1.0}),
        "row weights": LogisticModel.fit(TRAIN.with_weights(weights), C=C),
        "scaling": LogisticModel.fit(TRAIN, C=C, scale=False),
        "no intercept": LogisticModel.fit(TRAIN, C=C, fit_intercept=False),
        "a row less": LogisticModel.fit(TRAIN.without(TRAIN.ids[:1]), C=C),
        "taken over": LogisticModel.from_sklearn(deployed, TRAIN),
    }


@pytest.mark.parametrize("promise", ["first_order", "certified"])
def test_a_model_that_differs_in_anything_is_refused(promise: str, model: LogisticModel, tmp_path: Path) -> None:
    Rocerf(model, 1, promise=promise).save(tmp_path / "e")
    for name, other in logistic_models().items():
        with pytest.raises(FileFormatError, match="the model that the explainer was saved with"):
            Rocerf.load(tmp_path / "e", model=other)
        assert name
    assert Rocerf.load(tmp_path / "e", model=model).k == 1
    model.save(tmp_path / "again.npz")
    assert Rocerf.load(tmp_path / "e", model=LogisticModel.load(tmp_path / "again.npz")).k == 1


def test_deployed_parameters_are_part_of_the_model(tmp_path: Path) -> None:
    """Two fits that stopped at different places have one optimum, and are not the same in force."""
    loose, tight = (LogisticRegression(C=C, tol=tol).fit(TRAIN.X, TRAIN.y) for tol in (1e-2, 1e-8))
    one, other = (LogisticModel.from_sklearn(fitted, TRAIN) for fitted in (loose, tight))
    Rocerf(one, 1, promise="first_order").save(tmp_path / "e")
    with pytest.raises(FileFormatError, match="different deployed parameters"):
        Rocerf.load(tmp_path / "e", model=other)


@pytest.mark.slow
def test_networks_and_estimators_are_compared_too(network: NeuralModel, tmp_path: Path) -> None:
    Rocerf(network, 1, promise="first_order").save(tmp_path / "n")
    other = NeuralModel.fit(network.train, seed=1, width=8, epochs=150, learning_rate=0.1)
    with pytest.raises(FileFormatError, match="got one with different scores"):
        Rocerf.load(tmp_path / "n", model=other)
    assert Rocerf.load(tmp_path / "n", model=network).k == 1

    def forest(**options: Any) -> EstimatorModel:
        return EstimatorModel.fit(RandomForestClassifier(n_estimators=5, random_state=0, **options), TRAIN)

    Rocerf(forest(), 1, promise=Simulated(shaping=2, choosing=2, checking=2)).save(tmp_path / "f")
    assert Rocerf.load(tmp_path / "f", model=forest()).k == 1
    for unlike in (forest(max_depth=1), forest(warm_start=True), LogisticModel.fit(TRAIN)):
        with pytest.raises(FileFormatError, match="the model that the explainer was saved with"):
            Rocerf.load(tmp_path / "f", model=unlike)


@pytest.mark.parametrize("promise", ["first_order", "retrained", "certified"])
def test_an_edited_k_is_refused(promise: str, model: LogisticModel, tmp_path: Path) -> None:
    folder = tmp_path / "e"
    Rocerf(model, 1, promise=promise, effort="quick").save(folder)
    text = (folder / "explainer.json").read_text("utf-8")
    (folder / "explainer.json").write_text(text.replace('"k": 1', '"k": 3'))
    with pytest.raises(FileFormatError, match="changed after it was written"):
        Rocerf.load(folder)
    reseal(folder, k=3)
    with pytest.raises(FileFormatError, match=r"different number of deletions \(3, not 1\)"):
        Rocerf.load(folder)


@pytest.mark.parametrize("name", ["model.npz", "promise.npz"])
def test_a_file_of_another_explainer_is_refused(name: str, folder: Path, tmp_path: Path) -> None:
    other = LogisticModel.fit(TRAIN.without(TRAIN.ids[:20]), C=C)
    Rocerf(other, 1, promise="certified").save(tmp_path / "other")
    shutil.copy(tmp_path / "other" / name, folder / name)
    with pytest.raises(FileFormatError, match=rf"its {name} is damaged, or was changed or replaced"):
        Rocerf.load(folder)
    reseal(folder)
    with pytest.raises(FileFormatError, match="different training rows"):
        Rocerf.load(folder)


def test_missing_files_and_the_former_format_are_refused(folder: Path) -> None:
    shutil.copytree(folder, folder.with_name("without"))
    (folder.with_name("without") / "promise.npz").unlink()
    with pytest.raises(FileFormatError, match=r"its promise\.npz is missing"):
        Rocerf.load(folder.with_name("without"))
    (folder.with_name("without") / "explainer.json").unlink()
    with pytest.raises(FileFormatError, match=r"no explainer\.json.*save the explainer again"):
        Rocerf.load(folder.with_name("without"))
    about = json.loads((folder / "explainer.json").read_text("utf-8"))
    (folder / "explainer.json").write_text(json.dumps({**about, "format": "rocerf-explainer/1"}))
    with pytest.raises(FileFormatError, match=r"rocerf-explainer/1.*save the explainer again"):
        Rocerf.load(folder)


# --- the proof itself -------------------------------------------------------------------------------------


def test_a_certificate_says_in_full_what_it_is_about(explainer: Rocerf, model: LogisticModel) -> None:
    about = explainer.promise.certificate.about
    assert (about.k, about.rows) == (1, TRAIN.checksum)
    np.testing.assert_array_equal(about.design, model.design(TRAIN.X))
    np.testing.assert_array_equal(about.sign, 1 - 2 * TRAIN.y)
    np.testing.assert_array_equal(about.weights, np.ones(len(TRAIN)))
    np.testing.assert_array_equal(about.penalty, [1 / C, 1 / C, 1 / C, 0.0])
    np.testing.assert_array_equal(about.row_penalty, np.zeros(4))
    mean = Certified(LogisticModel.fit(TRAIN, gamma=0.01), 1).certificate.about
    np.testing.assert_allclose(mean.row_penalty, [0.02, 0.02, 0.02, 0.0])


@pytest.mark.parametrize(
    "changed", ["k", "design", "sign", "theta", "weights", "penalty", "row_penalty", "rows", "format", "version"]
)
def test_a_proof_about_anything_else_is_refused(changed: str, folder: Path) -> None:
    """The description of the model is right and the checksums fit; only the proof is another one's."""

    def change(_: dict[str, Any], arrays: dict[str, Any]) -> None:
        values = arrays[changed]
        arrays[changed] = (
            np.array("0.0.9")
            if values.dtype.kind == "U"
            else values + (values.dtype.type(1) if values.ndim == 0 else 1e-6)
        )

    path = folder / "promise.npz"
    path.write_bytes(repacked(path.read_bytes(), lambda about, arrays: None))
    reseal(folder)
    assert Rocerf.load(folder).promise.certificate.closed  # nothing changed: still good
    path.write_bytes(repacked(path.read_bytes(), change))
    reseal(folder)
    with pytest.raises(FileFormatError, match=r"Expected a proof about this model, 1 deletions.*got one about another"):
        Rocerf.load(folder)


def test_a_loaded_model_has_the_very_parameters_it_was_saved_with(tmp_path: Path) -> None:
    """Bit by bit, steep models too, on which Newton stops by its own rounding: what was proven is about these."""
    rng = np.random.default_rng(0)
    for seed in range(6):
        train = random_training_set(seed, n=50, d=4)
        steep = LogisticModel.fit(train, C=float(10.0 ** rng.integers(0, 9)))
        steep.save(tmp_path / "model.npz")
        np.testing.assert_array_equal(LogisticModel.load(tmp_path / "model.npz").theta, steep.theta)


def test_parameters_that_are_no_optimum_are_refused(model: LogisticModel, tmp_path: Path) -> None:
    model.save(tmp_path / "model.npz")

    def change(_: dict[str, Any], arrays: dict[str, Any]) -> None:
        arrays["theta"] = arrays["theta"] + 0.1

    (tmp_path / "model.npz").write_bytes(repacked((tmp_path / "model.npz").read_bytes(), change))
    with pytest.raises(FileFormatError, match="its parameters are not the optimum"):
        LogisticModel.load(tmp_path / "model.npz")


# --- written in one step ----------------------------------------------------------------------------------


def test_a_proof_that_fails_leaves_the_old_folder(
    folder: Path, monkeypatch: pytest.MonkeyPatch, explainer: Rocerf
) -> None:
    """Everything is proven before anything is written: a new model with the old proof is believed by nobody."""

    def interrupted(*_: Any) -> Any:
        raise KeyboardInterrupt

    monkeypatch.setattr("rocerf.promises.certified.certify_model", interrupted)
    other = LogisticModel.fit(TRAIN.without(TRAIN.ids[:20]), C=C)
    with pytest.raises(KeyboardInterrupt):
        Rocerf(other, 1, promise="certified").save(folder)
    again = Rocerf.load(folder)
    assert again.model.train.checksum == TRAIN.checksum
    points = TRAIN.X[:5]
    np.testing.assert_array_equal(again.promise.bound(points), explainer.promise.bound(points))
    assert [path.name for path in folder.parent.iterdir()] == ["explainer"]


def test_training_rows_are_readable_by_their_owner_only(
    explainer: Rocerf, model: LogisticModel, tmp_path: Path
) -> None:
    before = os.umask(0)
    try:
        explainer.save(tmp_path / "new")
        (tmp_path / "old").mkdir(mode=0o777)
        (tmp_path / "old" / "explainer.json").write_text('{"format": "rocerf-explainer/1"}')
        (tmp_path / "old" / "model.npz").write_text("of a former format")
        explainer.save(tmp_path / "old")
        model.save(tmp_path / "model.npz")
    finally:
        os.umask(before)
    for folder in (tmp_path / "new", tmp_path / "old"):
        assert stat.S_IMODE(folder.stat().st_mode) == 0o700
        files = sorted(folder.iterdir())
        assert [path.name for path in files] == ["explainer.json", "model.npz", "promise.npz"]
        assert {stat.S_IMODE(path.stat().st_mode) for path in files} == {0o600}
    assert stat.S_IMODE((tmp_path / "model.npz").stat().st_mode) == 0o600


def test_a_folder_with_other_things_in_it_is_not_replaced(explainer: Rocerf, tmp_path: Path) -> None:
    (tmp_path / "thesis.tex").write_text("years of work")
    with pytest.raises(OptionError, match=r"'thesis\.tex' in it.*name a new folder"):
        explainer.save(tmp_path)
    assert [path.name for path in tmp_path.iterdir()] == ["thesis.tex"]


@pytest.mark.parametrize("before", ["none", "explainer"])
def test_a_model_of_ones_own_is_not_replaced(before: str, explainer: Rocerf, tmp_path: Path) -> None:
    """It has the name that an explainer's has, and is none of its files."""
    if before == "explainer":
        explainer.save(tmp_path / "models")
    (tmp_path / "models").mkdir(exist_ok=True)
    LogisticModel.fit(TRAIN, C=7.0).save(tmp_path / "models" / "model.npz")
    mine = (tmp_path / "models" / "model.npz").read_bytes()
    with pytest.raises(OptionError, match=r"'model\.npz' in it, which was not written there.*name a new folder"):
        explainer.save(tmp_path / "models")
    assert (tmp_path / "models" / "model.npz").read_bytes() == mine


def test_thresholds_are_compared_as_what_is_taken_off_the_log_odds(tmp_path: Path) -> None:
    one, other = (LogisticModel.fit(TRAIN, threshold=1.0 - gap) for gap in (1e-10, 2e-10))
    Rocerf(one, 1, promise="first_order").save(tmp_path / "e")
    with pytest.raises(FileFormatError, match="different threshold"):
        Rocerf.load(tmp_path / "e", model=other)
    assert Rocerf.load(tmp_path / "e", model=LogisticModel.fit(TRAIN, threshold=1.0 - 1e-10)).k == 1


def test_numbers_are_compared_column_by_column() -> None:
    one = np.array([[1e9, 1e-3], [2e9, 2e-3]])
    assert same_array(one, one * (1.0 + 1e-12))
    assert not same_array(one, one * [[1.0, 2.0]]), "nothing beside 2e9, and twice itself"
    assert not same_array(one[0], one[0] * [1.0, 2.0])
    assert same_array(np.array([1.0, np.nan]), np.array([1.0, np.nan]))
    assert first_difference({"scores": one[:, 1]}, {"scores": one[:, 1] + [1e-10, 0.0]}) is None
    assert first_difference({"scores": one[:, 1]}, {"scores": one[:, 1] + [1e-8, 0.0]}) == "different scores"


# --- what letters and rechecks say ------------------------------------------------------------------------


@pytest.fixture(scope="module")
def answers(explainer: Rocerf, model: LogisticModel) -> Recourses:
    found = explainer.explain(refused_people(model, 0, 6))
    assert found.answered.any()
    return found


def test_letters_say_what_the_explainer_promises(explainer: Rocerf, answers: Recourses) -> None:
    """A sentence or an assumption in the answers' file is not what was checked, and is not printed."""
    told = replace(answers.settings, sentence="is certain for ever", assumptions=("nothing can go wrong",))
    letters = explainer.letters(replace(answers, settings=told), valid_until=None)
    own = explainer.settings()
    options = [option for letter in letters for option in letter.options]
    assert options
    for option in options:
        assert own.sentence in option.promise.sentence
        assert "certain for ever" not in option.promise.sentence
        assert option.promise.assumptions == own.assumptions
        assert (option.promise.k, option.promise.proven) == (1, True)


@pytest.mark.parametrize("forged", [{"k": 50}, {"promise": "retrained"}])
def test_recheck_refuses_answers_of_another_promise(
    forged: dict[str, Any], explainer: Rocerf, answers: Recourses
) -> None:
    other = replace(answers, settings=replace(answers.settings, **forged))
    with pytest.raises(DataError, match=f"Expected recourses made with {next(iter(forged))} "):
        explainer.recheck(other, TRAIN.ids[:1])
    with pytest.raises(DataError, match=f"Expected recourses made with {next(iter(forged))} "):
        explainer.recheck([answers, other], TRAIN.ids[:1])
    assert explainer.recheck(answers, TRAIN.ids[:1]).k == 1
