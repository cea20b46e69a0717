"""Models retrained by passes over rows that are not held are those retrained over rows that are, and so are attacks."""

from __future__ import annotations

import pickle
from typing import Any

import numpy as np
import pytest

from problems import random_training_set, refused_people
from rocerf import Adversary, LogisticModel, Rocerf, TrainingSet, load_dataset
from rocerf.deletion import batched_newton, hessians, rare_groups, streamed_newton, streamed_rows, threshold_pass
from rocerf.deletion.batched_newton import BatchedNewton
from rocerf.deletion.deletions import Deletions
from rocerf.deletion.rare_groups import RareGroups
from rocerf.deletion.streamed_newton import StreamedNewton
from rocerf.deletion.streamed_rows import Lengths
from rocerf.deletion.worst_rows import k_smallest
from rocerf.passes import using
from rocerf.promises import Retrained

OPTIONS: list[dict[str, Any]] = [{"C": 1.0}, {"gamma": 1e-3}, {"C": np.inf}, {"C": 1.0, "fit_intercept": False}]


@pytest.fixture
def small_chunks(monkeypatch: pytest.MonkeyPatch) -> None:
    """Passes of many chunks and blocks, few deleted rows at a time, thresholds from a sample."""
    monkeypatch.setattr(streamed_rows, "LONG_CHUNK", 70)
    monkeypatch.setattr(rare_groups, "LONG_CHUNK", 70)
    monkeypatch.setattr(streamed_rows, "block_rows", lambda people: 32)
    monkeypatch.setattr(streamed_newton, "LOOKED_UP", 50)
    monkeypatch.setattr(threshold_pass, "SAMPLE", 60)


def random_sets(n: int, count: int, k: int, seed: int = 0) -> list[np.ndarray]:
    rng = np.random.default_rng(seed)
    return [rng.choice(n, size=rng.integers(1, k + 1), replace=False) for _ in range(count)]


def options_of(options: dict[str, Any], weights: bool) -> LogisticModel:
    return LogisticModel.fit(random_training_set(1, n=300, weights=weights), **options)


@pytest.mark.parametrize("sampled", [False, True])
@pytest.mark.parametrize("weights", [False, True])
@pytest.mark.parametrize("options", OPTIONS)
def test_looks_and_harms_are_the_same(
    options: dict[str, Any], weights: bool, sampled: bool, small_chunks: None, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(batched_newton, "EXACT_LEVERAGE_ROWS", 0)
    for module in (hessians, batched_newton, streamed_newton):
        monkeypatch.setattr(module, "SAMPLE", 40)
    monkeypatch.setattr(hessians, "SAMPLE_PAYS", 1 if sampled else 10**9)
    model = options_of(options, weights)
    deletions = Deletions.of(random_sets(300, 9, 20), 20)
    directions = model.score_gradient(refused_people(model, 0, 9))
    held, streamed = BatchedNewton(model), StreamedNewton(model)
    assert type(held.hessians) is type(streamed.hessians)
    thetas = held.first_guess(deletions)
    np.testing.assert_allclose(streamed.first_guess(deletions), thetas, atol=1e-9)
    one, two = held.look(thetas, deletions), streamed.look(thetas, deletions)
    np.testing.assert_allclose(two.gradients, one.gradients, atol=1e-8)
    np.testing.assert_allclose(two.hessians, one.hessians, atol=1e-8)
    np.testing.assert_array_equal(streamed._separated(two, deletions), held._separated(one, deletions))
    for leverage in (False, True):
        first = held.harms(one, thetas, deletions, directions, leverage=leverage)
        second = streamed.harms(two, thetas, deletions, directions, leverage=leverage)
        for count in (1, 7, 40, 300):
            mine, theirs = first.worst(count, 300), second.worst(count, 300)
            assert [mine.set_of(m).tolist() for m in range(9)] == [theirs.set_of(m).tolist() for m in range(9)]
        for place in range(9):
            np.testing.assert_allclose(second.at(place, np.arange(300)), first.at(place, np.arange(300)), atol=1e-10)
    np.testing.assert_allclose(streamed.push(), held.push(), atol=1e-10)
    found, truth = (made.converge(thetas, deletions) for made in (streamed, held))
    np.testing.assert_allclose(found, truth, atol=1e-8)


def test_separated_rows_are_noticed(small_chunks: None) -> None:
    X = np.array([[0.0], [1.0], [2.0], [3.5], [3.0], [4.0], [5.0], [6.0]])
    model = LogisticModel.fit(TrainingSet(X, [0, 0, 0, 0, 1, 1, 1, 1]), C=np.inf)
    models, deletions = StreamedNewton(model), Deletions.of([np.array([0]), np.array([3])], 1)
    assert models.nearly(models.first_guess(deletions), deletions)[-1].tolist() == [1]
    found = models.converge(models.first_guess(deletions), deletions)
    assert np.isfinite(found[0]).all()
    assert np.isnan(found[1]).all()


def test_rare_groups_are_the_same(small_chunks: None) -> None:
    rng = np.random.default_rng(0)
    X = np.column_stack([rng.normal(size=400) ** 3, rng.random(400) < 0.01, rng.integers(0, 3, 400), rng.random(400)])
    model = LogisticModel.fit(TrainingSet(X, (X[:, 0] + rng.logistic(size=400) > 0).astype(int)), C=1.0)
    one, two = (RareGroups.of(made, 3) for made in (BatchedNewton(model), StreamedNewton(model)))
    assert sorted(map(tuple, one.sets)) == sorted(map(tuple, two.sets))
    assert len(one.sets) > 2


@pytest.mark.parametrize("effort", ["normal", pytest.param("thorough", marks=pytest.mark.slow)])
@pytest.mark.parametrize("runner", ["serial", "threads"])
def test_the_adversary_finds_the_same(effort: str, runner: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """At every effort, as there is one way to walk: the same sets, the same scores."""
    monkeypatch.setattr(streamed_rows, "LONG_CHUNK", 1700)
    monkeypatch.setattr(rare_groups, "LONG_CHUNK", 1700)
    data = load_dataset("adult")
    model = LogisticModel.fit(data.train.without(data.train.ids[6000:]))
    points = data.test.X[:3] if effort == "normal" else data.test.X[:1]
    found = []
    for held in (2**60, 0):
        monkeypatch.setattr(batched_newton, "HELD", held)
        batched_newton._MADE.clear()
        with using(runner):
            found.append(Adversary(model, 12, effort=effort).attack_all(points))
        assert isinstance(BatchedNewton.of(model), StreamedNewton) == (held == 0)
    np.testing.assert_allclose(found[1].scores, found[0].scores, atol=1e-9)
    assert found[0].searches == found[1].searches
    for one, two in zip(found[0].deleted_rows, found[1].deleted_rows, strict=True):
        assert model.train.X[one].tolist() == model.train.X[two].tolist()  # of equal rows either will do


def test_a_threshold_that_is_too_low_misses_nothing(monkeypatch: pytest.MonkeyPatch) -> None:
    model = options_of({"C": 1.0}, weights=False)
    models = StreamedNewton(model)
    directions = model.score_gradient(refused_people(model, 0, 4))
    truth = models.harms_of_full_model(directions).worst(30, 30)
    monkeypatch.setattr(threshold_pass, "_thresholds", lambda values, *_: np.full(len(values), -1e-2))
    again = models.harms_of_full_model(directions).worst(30, 30)
    assert [truth.set_of(m).tolist() for m in range(4)] == [again.set_of(m).tolist() for m in range(4)]
    monkeypatch.setattr(threshold_pass, "_thresholds", lambda values, *_: np.zeros(len(values)))
    monkeypatch.setattr(threshold_pass, "LOOSE", 0)
    monkeypatch.setattr(streamed_rows, "LONG_CHUNK", 40)
    squeezed = models.harms_of_full_model(directions).worst(30, 30)
    assert [truth.set_of(m).tolist() for m in range(4)] == [squeezed.set_of(m).tolist() for m in range(4)]


def test_what_a_chunk_keeps_is_sent_as_one_part() -> None:
    """Parts of different widths of whole numbers, sent and joined again: the same smallest values."""
    rng = np.random.default_rng(0)
    parts = [
        (rng.integers(0, 5, 40).astype(np.uint8), rng.normal(size=40), rng.integers(0, most, 40).astype(kind))
        for most, kind in ((200, np.uint8), (60_000, np.uint16), (10**7, np.uint32))
    ]
    kept = threshold_pass._Below(parts, 120, 5, 3)
    sent = pickle.loads(pickle.dumps(kept))
    assert (len(sent.parts), sent.held, sent.people, sent.k) == (1, 120, 5, 3)
    for both in (sent, sent.joined(threshold_pass._Below(parts[:1], 40, 5, 3))):
        parts_of = parts if both is sent else [*parts, parts[0]]
        mine, theirs = k_smallest(both.parts, 5, 3), k_smallest(parts_of, 5, 3)
        assert [mine.of(p).tolist() for p in range(5)] == [theirs.of(p).tolist() for p in range(5)]


@pytest.mark.parametrize("on_disk", [False, True])
def test_lengths_of_rows_are_computed_once(on_disk: bool) -> None:
    """Also by whoever receives them pickled; those of single rows are not kept."""
    model = LogisticModel.fit(random_training_set(1, n=300))
    x, curvature = model.training_design(), model.curvature()
    truth = np.einsum("ij,ij->i", x, curvature.solve(x))
    lengths = Lengths.of(curvature, 300, on_disk=on_disk)
    np.testing.assert_allclose(lengths(x[[7, 3]]), truth[[7, 3]])
    for part in (slice(0, 100), slice(50, 300), slice(0, 300)):
        np.testing.assert_allclose(lengths.of_block(part, x[part]), truth[part])
    np.testing.assert_array_equal(lengths.of_block(slice(0, 300), np.zeros_like(x)), lengths.of_block(slice(0, 300), x))
    sent = pickle.dumps(lengths)
    assert len(sent) < 3000  # not the numbers of all rows
    there, again = pickle.loads(sent), pickle.loads(sent)
    assert there is again
    np.testing.assert_allclose(there.of_block(slice(0, 300), x), truth)
    np.testing.assert_allclose(there.of_block(slice(0, 300), np.zeros_like(x)), truth)


def test_people_whose_passes_are_shared_are_solved_for_together(monkeypatch: pytest.MonkeyPatch) -> None:
    """A pass costs nearly the same for one model and for many: no waves that begin small."""
    model = LogisticModel.fit(random_training_set(1, n=300))
    assert Retrained(model, 3).first_wave == 32
    for name in ("EXACT_LEVERAGE_ROWS", "HELD"):
        monkeypatch.setattr(batched_newton, name, 0)
    assert Retrained(model, 3).first_wave == 256
    asked: list[int] = []
    whole = Adversary.attack_all
    monkeypatch.setattr(Adversary, "attack_all", lambda self, X, **more: asked.append(len(X)) or whole(self, X, **more))
    Rocerf(model, 3, promise="retrained", effort="quick").explain(refused_people(model, 0, 40))
    assert asked[0] == 40
