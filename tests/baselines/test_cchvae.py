"""C-CHVAE: accepted points that resemble training rows."""

from __future__ import annotations

import subprocess
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch
from scipy.spatial import cKDTree
from sklearn.datasets import make_moons

from problems import random_training_set, refused_people
from rocerf import FeatureSchema, LogisticModel, NeuralModel, TrainingSet
from rocerf.baselines import CChvae, Scfe
from rocerf.baselines.vae import Vae, VaeOptions
from rocerf.errors import FileFormatError, OptionError
from rocerf.recourse.result import Status

SMALL = {"latent": 2, "hidden": (8, 16), "epochs": 5, "samples": 200}


@pytest.fixture(scope="module")
def moons() -> LogisticModel:
    """Two half circles in a plane that is seen through five columns in unlike units, and a linear boundary."""
    plane, y = make_moons(500, noise=0.05, random_state=0)
    rng = np.random.default_rng(1)
    X = np.hstack([plane, plane @ rng.normal(size=(2, 3))]) + 0.05 * rng.normal(size=(500, 5))
    return LogisticModel.fit(TrainingSet(X * [1.0, 100.0, 0.1, 1.0, 10.0] + [3.0, 0.0, 0.0, 0.0, 70.0], 1 - y))


@pytest.fixture(scope="module")
def trained(moons: LogisticModel) -> CChvae:
    explainer = CChvae(moons, latent=2, hidden=(32, 64), epochs=150, learning_rate=3e-3)
    assert explainer.vae is explainer.vae
    return explainer


@pytest.fixture(scope="module")
def denied(moons: LogisticModel) -> np.ndarray:
    return moons.train.X[moons.predict(moons.train.X) == 0][:60]


def to_the_rows(model: LogisticModel, points: np.ndarray) -> np.ndarray:
    """Distances of points (P, d) to the nearest training row, in units of the spread."""
    return cKDTree(model.train.X / model.train.spread).query(points / model.train.spread)[0]


@pytest.mark.slow
def test_points_are_accepted_and_nearer_to_the_rows_than_scfes(
    moons: LogisticModel, trained: CChvae, denied: np.ndarray
) -> None:
    found, plain = trained.explain(denied), Scfe(moons).explain(denied)
    assert found.answered.all()
    assert (moons.predict(found.matrix) == 1).all()
    assert to_the_rows(moons, found.matrix).mean() < 0.75 * to_the_rows(moons, plain.matrix).mean()
    assert (found.costs >= plain.costs * (1 - 1e-9)).all()
    assert (found.settings.method, found.settings.promise, found.settings.k) == ("cchvae", "plain", 0)
    assert found.settings.sentence == "is accepted by the model as it is today; nothing is promised about deletions"


@pytest.mark.slow
def test_the_autoencoder_reproduces_rows_and_the_authors_sees_other_columns(
    moons: LogisticModel, trained: CChvae
) -> None:
    rows = (moons.train.X - moons.train.X.mean(axis=0)) / moons.train.spread
    again = trained.vae.decode(trained.vae.encode(rows))
    assert ((again - rows) ** 2).mean() < 0.05  # of a variance of 1
    theirs = CChvae(moons, preset="authors", **SMALL)._learned_rows()
    assert (theirs.min(), theirs.max()) == (0.0, 1.0)


@pytest.mark.slow
def test_a_person_does_not_depend_on_the_others_and_seeds_decide(
    moons: LogisticModel, trained: CChvae, denied: np.ndarray
) -> None:
    together = trained.explain(denied[:5]).matrix
    alone = np.concatenate([trained.explain(person[None]).matrix for person in denied[:5]])
    np.testing.assert_allclose(together, alone, rtol=1e-5)
    first, same, other = (CChvae(moons, seed=seed, **SMALL).explain(denied[:5]).matrix for seed in (0, 0, 1))
    np.testing.assert_array_equal(first, same)
    assert not np.allclose(first, other)


def test_blocks_make_no_difference(trained: CChvae, denied: np.ndarray, monkeypatch: pytest.MonkeyPatch) -> None:
    whole = trained.explain(denied[:7]).matrix
    monkeypatch.setattr("rocerf.baselines.cchvae.BLOCK", 2 * 1000 * 64)
    np.testing.assert_allclose(trained.explain(denied[:7]).matrix, whole, rtol=1e-5)


def test_the_point_is_the_nearest_accepted_one_of_its_shell(
    moons: LogisticModel, trained: CChvae, denied: np.ndarray
) -> None:
    """The search for one person written out: shell by shell, one sample at a time."""
    centre, spread = moons.train.X.mean(axis=0), moons.train.spread
    for person in denied[:2]:
        z0 = trained.vae.encode(((person - centre) / spread)[None])[0]
        for shell in range(200):
            draws = trained._draws(shell, 2)
            lengths = np.linalg.norm(draws, axis=1)
            assert (lengths >= 0.05 * shell - 1e-12).all()
            assert (lengths <= 0.05 * (shell + 1) + 1e-12).all()
            points = centre + spread * trained.vae.decode(z0 + draws)
            good = moons.score(points) >= 5e-7
            if good.any():
                break
        costs = np.linalg.norm((points[good] - person) / spread, axis=1)
        assert trained.explain(person[None]).costs[0] == pytest.approx(costs.min(), rel=1e-5)


@pytest.mark.slow
def test_immutable_columns_stay_and_bounds_hold(moons: LogisticModel, trained: CChvae, denied: np.ndarray) -> None:
    upper = float(np.median(moons.train.X[:, 1]))
    schema = FeatureSchema.free(moons.train.columns).edit("x0", direction="fixed").edit("x1", upper=upper)
    explainer = CChvae(moons, latent=2, hidden=(32, 64), epochs=150, learning_rate=3e-3, schema=schema, shells=100)
    explainer._vae = trained.vae
    found = explainer.explain(denied[:20])
    answered = found.answered
    assert answered.sum() > 10
    np.testing.assert_array_equal(found.matrix[answered, 0], denied[:20][answered, 0])
    assert (found.matrix[answered, 1] <= upper).all()
    assert (moons.predict(found.matrix[answered]) == 1).all()


def test_whoever_cannot_be_answered_is_told_so(moons: LogisticModel, denied: np.ndarray) -> None:
    schema = FeatureSchema.free(moons.train.columns)
    for name in moons.train.columns:
        schema = schema.edit(name, direction="fixed")
    accepted = moons.train.X[moons.predict(moons.train.X) == 1][:1]
    X = np.concatenate([denied[:2], accepted, denied[:1] * np.nan])
    found = CChvae(moons, schema=schema, shells=3, **SMALL).explain(X)
    expected = (Status.GAVE_UP, Status.GAVE_UP, Status.ALREADY_ACCEPTED, Status.INVALID_INPUT)
    assert found.statuses == expected
    assert np.isnan(found.matrix).all()


@pytest.mark.slow
def test_the_decoders_variance_is_learned() -> None:
    rng = np.random.default_rng(0)
    t = rng.normal(size=(600, 1))
    rows = np.hstack([t, -t, t]) + rng.normal(size=(600, 3)) * [0.05, 0.05, 0.8]
    options = VaeOptions(inputs=3, hidden=(16, 32), latent=1, epochs=60, learning_rate=3e-3, warm_up=0.5)
    vae = Vae.train(rows, options, seed=0)
    variance = vae.variance(vae.encode(rows)).mean(axis=0)
    assert variance[2] == pytest.approx(0.64, rel=0.4)
    assert (variance[:2] < 0.1).all()
    floored = Vae.train(rows[:100], VaeOptions(inputs=3, hidden=(8, 8), latent=1, epochs=1, variance_floor=0.3))
    assert (floored.variance(floored.encode(rows)) >= 0.3 - 1e-6).all()


def test_torchs_own_stream_of_chance_is_left_alone(moons: LogisticModel, denied: np.ndarray) -> None:
    torch.manual_seed(7)
    expected = torch.rand(3)
    torch.manual_seed(7)
    CChvae(moons, **SMALL).explain(denied[:2])
    assert torch.equal(torch.rand(3), expected)


def test_save_and_load(moons: LogisticModel, denied: np.ndarray, tmp_path: Path) -> None:
    explainer, path = CChvae(moons, **SMALL), tmp_path / "vae.npz"
    explainer.save_vae(path)
    expected = explainer.explain(denied[:5]).matrix
    with np.load(path, allow_pickle=False) as file:
        assert "about" in file.files
    again = CChvae(moons, **SMALL)
    again.load_vae(path)
    assert again._vae is not None
    np.testing.assert_array_equal(again.explain(denied[:5]).matrix, expected)
    with pytest.raises(FileFormatError, match="an autoencoder of these training rows"):
        CChvae(moons, preset="authors", **SMALL).load_vae(path)
    with pytest.raises(FileFormatError, match="an autoencoder of these training rows"):
        CChvae(moons.without(moons.train.ids[:1]), **SMALL).load_vae(path)
    moons.save(tmp_path / "model.npz")
    with pytest.raises(FileFormatError, match=r"written by CChvae\.save_vae"):
        again.load_vae(tmp_path / "model.npz")
    with pytest.raises(FileNotFoundError):
        again.load_vae(tmp_path / "nothing.npz")


@pytest.mark.slow
def test_any_model_will_do(bare: Callable[[LogisticModel], Any], network: NeuralModel) -> None:
    model = LogisticModel.fit(random_training_set(0))
    people = refused_people(model, 0, 2)
    with_slopes, without = (CChvae(m, **SMALL).explain(people) for m in (model, bare(model)))
    np.testing.assert_array_equal(with_slopes.matrix, without.matrix)
    denied = network.train.X[network.predict(network.train.X) == 0][:3]
    found = CChvae(network, **SMALL).explain(denied)
    assert (network.score(found.matrix[found.answered]) >= 0).all()


def test_sizes_follow_the_table() -> None:
    def sizes(n: int, d: int) -> VaeOptions:
        rng = np.random.default_rng(0)
        return CChvae(LogisticModel.fit(TrainingSet(rng.normal(size=(n, d)), rng.permutation(n) % 2))).vae_options

    assert [sizes(200, d).hidden for d in (7, 13, 60)] == [(14, 28), (26, 52), (24, 48)]
    assert [sizes(200, d).hidden for d in (2, 20, 50)] == [(16, 32), (40, 80), (64, 128)]
    few, many = sizes(200, 2), sizes(20_000, 2)
    assert (few.epochs, few.batch_size, few.learning_rate) == (100, 32, 1e-3)
    assert (many.epochs, many.batch_size, many.learning_rate) == (50, 256, 2e-3)


@pytest.mark.parametrize(
    "options",
    [{"latent": 0}, {"hidden": (3,)}, {"epochs": 0}, {"samples": 0}, {"shell": 0.0}, {"shells": 0}, {"preset": "a"}],
)
def test_options_that_cannot_be(moons: LogisticModel, options: dict[str, Any]) -> None:
    with pytest.raises(OptionError, match=next(iter(options))):
        CChvae(moons, **options)


@pytest.mark.slow
def test_the_baselines_import_without_torch_and_say_what_is_missing() -> None:
    code = """
import sys
import rocerf.baselines
assert "torch" not in sys.modules
sys.modules["torch"] = None
import rocerf
model = rocerf.LogisticModel.fit(rocerf.TrainingSet([[1.0], [2.0], [3.0], [4.0]], [0, 1, 0, 1]))
for make in (rocerf.baselines.Scfe, rocerf.baselines.Roar):
    for preset in ("corrected", "authors"):
        make(model, preset=preset).explain([[0.0]])
try:
    rocerf.baselines.CChvae(model)
except rocerf.errors.MissingExtraError as error:
    print(error)
"""
    done = subprocess.run([sys.executable, "-W", "error", "-c", code], capture_output=True, text=True, check=False)
    assert (done.returncode, done.stderr) == (0, "")
    assert done.stdout.startswith("C-CHVAE needs the package 'torch'")
