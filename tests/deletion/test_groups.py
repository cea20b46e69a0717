"""Groups of retrained models: what they say of points against plain loops, and where their starts come from."""

from __future__ import annotations

from itertools import pairwise
from typing import Any

import numpy as np
import pytest

from networks import people_near, small_network
from rocerf.deletion.groups import Groups, Outcomes, membership

SIZES = [np.array([1]), np.array([4]), np.array([3, 1, 5]), np.array([1, 1, 2]), np.array([20, 5, 5, 5])]


@pytest.mark.parametrize("sizes", SIZES, ids=str)
@pytest.mark.parametrize("points", [0, 1, 7])
def test_outcomes_are_those_of_a_plain_loop(sizes: np.ndarray, points: int) -> None:
    scores = np.random.default_rng(0).normal(size=(sizes.sum(), points))
    scores[0] = 0.0  # a score of 0 is a yes
    outcomes, ends = Outcomes.of(scores, sizes), np.cumsum([0, *sizes])
    assert outcomes.means.shape == outcomes.spreads.shape == outcomes.shares.shape == (len(sizes), points)
    for group, (first, last) in enumerate(pairwise(ends)):
        own = scores[first:last]
        np.testing.assert_allclose(outcomes.means[group], own.mean(axis=0), atol=1e-14)
        spread = own.std(axis=0, ddof=1) if len(own) > 1 else np.zeros(points)
        np.testing.assert_allclose(outcomes.spreads[group], spread, atol=1e-14)
        assert outcomes.shares[group].tolist() == [np.mean([score >= 0 for score in column]) for column in own.T]


def test_membership_is_what_sets_contain() -> None:
    rng = np.random.default_rng(1)
    sets = [np.sort(rng.permutation(11)[:size]) for size in (0, 3, 11, 1, 0)]
    dense = membership(sets, 11).toarray()
    assert dense.shape == (5, 11)
    assert all(dense[place, row] == float(row in rows) for place, rows in enumerate(sets) for row in range(11))
    assert membership([], 4).shape == (0, 4)


class Noted:
    """Stands for a model and notes what is retrained; a retrained one is (seed, trial, rows gone)."""

    def __init__(self, model: Any) -> None:
        self.train, self.asked = model.train, []

    def refitted(self, deletions: Any, *, seed: int, trials: Any, progress: Any = None) -> Any:
        self.asked.append((seed, list(trials), [ids.tolist() for ids in deletions]))
        return Models([(seed, trial, tuple(ids)) for trial, ids in zip(trials, deletions, strict=True)])


class Models(list[Any]):
    def joined(self, other: Any) -> Models:
        return Models([*self, *other])


def test_groups_know_their_models_and_sets_take_starts_in_turn() -> None:
    model, groups = Noted(small_network()), Groups()
    ids = model.train.ids
    groups.retrain(model, [np.array([], np.intp)], 3, seed=7, starts=3)
    fresh = groups.retrain(model, [np.array([1]), np.array([2, 5]), np.array([0])], 2, seed=8, starts=4)
    assert model.asked[1][1] == [0, 1, 2, 3, 0, 1]  # the third set has the starts of the first
    assert len(fresh) == 3
    assert groups.sizes.tolist() == [3, 2, 2, 2]
    assert groups.starts.tolist() == [0, 3, 5, 7]
    assert [len(groups.of(group)) for group in range(4)] == [3, 2, 2, 2]
    assert {gone for _, _, gone in groups.of(2)} == {tuple(ids[[2, 5]])}
    assert groups.calls == [(7, 1, 3, 3), (8, 3, 2, 4)]
    assert groups.membership(len(ids)).sum(axis=1).tolist() == [0, 1, 2, 1]


def test_the_same_start_without_the_same_rows_is_the_same_network() -> None:
    model = small_network()
    rows, other, X = np.array([1, 4]), np.array([7]), people_near(model, 4)
    together = Groups().retrain(model, [rows, other, rows], 2, seed=3, starts=4).models
    assert together is not None
    scores = together.scores(X)
    np.testing.assert_allclose(scores[4:], scores[:2], atol=1e-9)
    assert np.abs(scores[0] - scores[1]).max() > 1e-3
    alone = Groups().retrain(model, [rows], 2, seed=3, starts=2).models
    assert alone is not None
    np.testing.assert_allclose(alone.scores(X), scores[:2], atol=1e-6)
