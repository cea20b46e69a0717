"""What groups make of a point: against plain loops, finite differences, and the truth of normal scores."""

from __future__ import annotations

from itertools import pairwise

import numpy as np
import pytest
from scipy.stats import norm

from rocerf.promises.group_value import SHARED, GroupValues, tolerance_factor

SIZES = [np.array([1]), np.array([6]), np.array([20, 5, 1, 2]), np.array([1, 1, 1]), np.array([3, 4])]


def by_loop(scores: np.ndarray, sizes: np.ndarray, share: float, smooth: bool) -> np.ndarray:
    """Values (G, P), written out group by group and point by point."""
    ends, values = np.cumsum([0, *sizes]), np.empty((len(sizes), scores.shape[1]))
    for point in range(scores.shape[1]):
        own = [scores[first:last, point] for first, last in pairwise(ends)]
        squares = [sum((score - group.mean()) ** 2 for score in group) for group in own]
        common = sum(squares) / max(sum(len(group) - 1 for group in own), 1)
        for place, group in enumerate(own):
            m = len(group)
            if smooth:
                pooled = (SHARED * common + squares[place]) / (SHARED + m - 1)  # as if seen in so many more models
                values[place, point] = group.mean() - tolerance_factor(share, m) * max(np.sqrt(pooled), 1e-12)
            else:
                reached = [score for score in group if np.mean(group >= score) >= share - 1e-12]
                values[place, point] = max(reached)
    return values


@pytest.mark.parametrize("sizes", SIZES, ids=str)
@pytest.mark.parametrize("share", [0.5, 0.8, 0.95])
@pytest.mark.parametrize("smooth", [True, False])
def test_values_are_those_of_a_plain_loop(sizes: np.ndarray, share: float, smooth: bool) -> None:
    scores = np.random.default_rng(0).normal(size=(sizes.sum(), 6))
    scores[:, 0] = 0.7  # all alike
    values = GroupValues(scores, sizes, share, smooth).values()
    np.testing.assert_allclose(values, by_loop(scores, sizes, share, smooth), atol=1e-12)


@pytest.mark.parametrize("models", [1, 5, 10, 19, 20, 40, 100])
@pytest.mark.parametrize("share", [0.5, 0.8, 0.9, 0.95])
def test_a_score_that_jumps_is_that_which_the_wanted_share_reaches(models: int, share: float) -> None:
    scores = np.random.default_rng(models).permutation(models)[:, None].astype(float)
    (value,) = GroupValues(scores, np.array([models]), share, smooth=False).values()[0]
    assert np.mean(scores >= value) >= share - 1e-12
    if value + 1 < models:
        assert np.mean(scores >= value + 1) < share  # and no higher one


@pytest.mark.parametrize("sizes", SIZES, ids=str)
def test_weights_are_slopes_of_the_value_in_every_score(sizes: np.ndarray) -> None:
    rng = np.random.default_rng(1)
    scores = rng.normal(size=(sizes.sum(), 4))
    group = rng.integers(len(sizes), size=4)
    weights = GroupValues(scores, sizes, 0.9, smooth=True).weights(group)
    assert weights.shape == scores.shape
    slowly, step = np.empty_like(scores), 1e-6
    for m, point in np.ndindex(*scores.shape):
        moved = []
        for sign in (1.0, -1.0):
            other = scores.copy()
            other[m, point] += sign * step
            moved.append(by_loop(other, sizes, 0.9, smooth=True)[group[point], point])
        slowly[m, point] = (moved[0] - moved[1]) / (2 * step)
    np.testing.assert_allclose(weights, slowly, atol=2e-5 if sizes.max() == 1 else 1e-7)
    np.testing.assert_allclose(weights.sum(axis=0), 1.0)  # all scores moved alike move the value as far


def test_models_that_all_agree_have_finite_weights() -> None:
    weights = GroupValues(np.full((8, 3), 1.3), np.array([5, 3]), 0.95, smooth=True).weights(np.array([0, 1, 1]))
    np.testing.assert_allclose(weights[:5, 0], 0.2, atol=1e-3)
    np.testing.assert_allclose(weights[5:, 1], 1 / 3, atol=1e-3)


@pytest.mark.parametrize(
    ("sizes", "confidence"),
    [([20, 5], 0.87), ([20] + [5] * 10, 0.90), ([20] + [5] * 50, 0.92), ([20] + [2] * 100, 0.92)],
)
@pytest.mark.parametrize("share", [0.9, 0.95])
def test_where_the_value_is_0_the_wanted_share_of_new_models_accepts(
    sizes: list[int], confidence: float, share: float
) -> None:
    """Scores are normal: of draws of the last group, so many stand where at least the share of all models accepts.

    The spread is estimated, too, so the confidence is that of a known spread only with many groups, and less with few.
    """
    counts = np.array(sizes)
    scores = np.random.default_rng(2).normal(size=(counts.sum(), 10_000))
    boundary = GroupValues(scores, counts, share, smooth=True).values()[-1]
    held = np.mean(norm.sf(boundary) >= share)
    assert confidence <= held <= 0.98
    means = scores[-counts[-1] :].mean(axis=0) - norm.ppf(share)  # without allowing for few models it is about half
    assert np.mean(norm.sf(means) >= share) < 0.55
