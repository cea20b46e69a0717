"""The adversary against adaptive greedy and masking examples, both written apart from its searches."""

from __future__ import annotations

import numpy as np
import pytest
from benchmarks.yardsticks import PlainLogistic, judged, masking_examples, points_to_attack, waveform

from rocerf import Adversary, LogisticModel, TrainingSet


def waves(rows: int, points: int, seed: int) -> tuple[PlainLogistic, LogisticModel, np.ndarray]:
    X, y = waveform(rows, seed)
    plain = PlainLogistic(X, y)
    theta = plain.fit(np.ones(rows, dtype=bool))
    people = points_to_attack(plain.to_rows @ theta, points, seed + 1)
    return plain, LogisticModel.fit(TrainingSet(X, y), C=float("inf")), people


def greedy_scores(plain: PlainLogistic, people: np.ndarray, k: int) -> np.ndarray:
    both = [
        [plain.score_without(plain.adaptive_greedy(x, k, leverage=lever), x) for lever in (False, True)] for x in people
    ]
    return np.min(both, axis=1)


def test_waves_are_breimans_and_both_codes_fit_the_same_model() -> None:
    plain, model, people = waves(2000, 6, 0)
    means = np.array([plain.X[plain.y == label].mean(axis=0) for label in (0, 1)])
    # Half of the first triangle plus half of the second (top at 15) or the third (top at 7).
    expected = [
        [np.maximum(6 - abs(i - 11), 0) / 2 + np.maximum(6 - abs(i - t), 0) / 2 for i in range(1, 22)] for t in (15, 7)
    ]
    np.testing.assert_allclose(means, expected, atol=0.2)
    scores = [plain.score_without(np.empty(0, np.intp), x) for x in people]
    np.testing.assert_allclose(scores, model.score(people), atol=1e-7)
    np.testing.assert_allclose(scores[1::3], 0.05, atol=1e-7)
    gone = np.array([3, 14, 159])
    np.testing.assert_allclose(
        plain.score_without(gone, people[0]), model.without(gone).score(people[:1])[0], atol=1e-7
    )


@pytest.mark.slow
@pytest.mark.parametrize(("rows", "k", "seed"), [(800, 16, 1), (1000, 4, 2)])
def test_thorough_does_at_least_as_well_as_adaptive_greedy(rows: int, k: int, seed: int) -> None:
    """(800, 16, 1) is near separation: one exchange of a row changes a score by whole units."""
    plain, model, people = waves(rows, 12, seed)
    greedy = greedy_scores(plain, people, k)
    assert np.isfinite(greedy).all()
    thorough = Adversary(model, k, effort="thorough").attack(people)
    assert (thorough.scores <= greedy + 1e-9).all()
    normal = Adversary(model, k).attack(people).scores
    assert (normal <= greedy + 1e-9).sum() >= 10
    ours = [plain.score_without(rows, x) for rows, x in zip(thorough.deleted_rows, people, strict=True)]
    np.testing.assert_allclose(ours, thorough.scores, atol=1e-6)


@pytest.mark.slow
def test_deletions_that_separate_the_classes_are_found() -> None:
    """Greedy gets to a set after which there is no model at all, or hardly one, for every point; the adversary must."""
    plain, model, people = waves(500, 12, 0)
    greedy = greedy_scores(plain, people, 20)
    assert (greedy < -100).all()
    assert (
        np.isneginf(greedy).sum() >= 10
    )  # the last rows are nearly equal: which go depends on the processor's rounding
    for effort in ("normal", "thorough"):
        assert np.isneginf(Adversary(model, 20, effort=effort).attack(people).scores).all()


@pytest.mark.slow
def test_masked_sets_are_found() -> None:
    """Where rows hide each other, ours is never behind adaptive greedy, and on small tables it is the truth."""
    missed = {"one_shot": 0, "greedy": 0}
    for example in masking_examples(0):
        row = judged(example)
        for effort in ("normal", "thorough"):
            assert row[effort] <= min(row["greedy"], row["planted"]) + 1e-9, (example.name, effort)
            if row["truth"] is not None:
                assert row[effort] == pytest.approx(row["truth"], abs=1e-7)
        for name in missed:
            missed[name] += row[name] > row["thorough"] + 1e-3
    assert missed["one_shot"] >= 2  # or these would be no masking examples
    assert missed["greedy"] >= 1
