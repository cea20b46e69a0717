"""The check by models that had no part in choosing points: its bookkeeping by hand, its bounds by simulation."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Sequence
from itertools import pairwise
from typing import Any

import numpy as np
import pytest

from networks import people_near, small_network
from rocerf import NeuralModel, TrainingSet
from rocerf.models.model import Proposing
from rocerf.promises import FreshStarts, HeldOut, picked
from rocerf.promises.held_out import clopper_pearson
from rocerf.promises.picked import PickedCheck, drawn_pairs, most_trials


class Drawn:
    """Models that accept a point when what they drew is below its chance, given which rows were deleted."""

    def __init__(self, model: Chancy, luck: np.ndarray, sets: list[Any]) -> None:
        self.model, self.luck, self.sets = model, luck, sets

    def __len__(self) -> int:
        return len(self.luck)

    def __getitem__(self, part: slice) -> Drawn:
        return Drawn(self.model, self.luck[part], self.sets[part])

    def joined(self, other: Drawn) -> Drawn:
        return Drawn(self.model, np.concatenate([self.luck, other.luck]), self.sets + other.sets)

    def arrays(self) -> list[Any]:
        return []

    def scores(self, X: np.ndarray) -> np.ndarray:
        """What a start drew is the same for all people and sets: models of one start are as dependent as can be."""
        chances = np.array([self.model.chances(X, rows) for rows in self.sets])
        return chances - self.luck[:, None]


class Chancy(Proposing):
    """Points are (group, chance): group g is held up by row g, and accepted with that chance once it is gone."""

    def __init__(self, rows: int = 60) -> None:
        self._train = TrainingSet(np.arange(2.0 * rows).reshape(rows, 2), np.arange(rows) % 2)

    @property
    def train(self) -> TrainingSet:
        return self._train

    @property
    def proposals(self) -> tuple[str, ...]:
        return ("told",)

    def score(self, X: Any) -> np.ndarray:
        return np.ones(len(X))

    def without(self, ids: Iterable[Any]) -> Chancy:
        return self

    def assumptions(self) -> tuple[Any, ...]:
        return ()

    def restored(self, arrays: Sequence[Any]) -> Any:
        raise NotImplementedError

    def chances(self, X: np.ndarray, rows: Any) -> np.ndarray:
        return np.where([int(group) in rows for group in X[:, 0]], X[:, 1], 1.0)

    def harms(self, X: np.ndarray, proposal: str) -> np.ndarray:
        return -(np.arange(len(self.train)) == X[:, :1]).astype(float)

    def as_retrained(self, models: Any, place: int) -> Chancy:
        return self

    def refitted(
        self,
        deletions: Sequence[Any],
        *,
        retraining: str = "fresh",
        seed: int = 0,
        trials: Any = None,
        progress: Any = None,
    ) -> Drawn:
        numbers = range(len(deletions)) if trials is None else trials
        luck = np.array([np.random.default_rng([seed, trial]).random() for trial in numbers])
        return Drawn(self, luck, [set(ids.tolist()) for ids in deletions])


def check(points: np.ndarray, seed: int, *, attackers: int = 2, models: int = 10, confidence: float = 0.9) -> HeldOut:
    found = PickedCheck(Chancy(), 1, attackers, models, confidence, seed).of(points)
    assert found is not None
    return found


CROWDS = {
    # Group by group: how many people, and with which chance they are accepted.
    "one group refuses, and has nearly everybody": [(60, 0.8), *[(1, 1.0)] * 12],
    "one group for all": [(20, 0.85)],
    "everybody their own": [(1, 0.9)] * 15,
    "more groups than starts": [(2, 0.7 + 0.005 * g) for g in range(45)],
}


@pytest.mark.slow
@pytest.mark.parametrize("crowd", CROWDS)
def test_bounds_are_below_the_truth_as_often_as_they_say(crowd: str) -> None:
    points = np.array([[g, chance] for g, (people, chance) in enumerate(CROWDS[crowd]) for _ in range(people)])
    truth, runs = points[:, 1].mean(), 250
    found = [check(points, seed) for seed in range(runs)]
    slack = 3 * np.sqrt(0.9 * 0.1 / runs)
    assert np.mean([one.lower_bound <= truth for one in found]) >= 0.9 - slack
    assert np.mean([one.bound_of(0) <= points[0, 1] for one in found]) >= 0.9 - slack
    drawn = np.mean([one.drawn / one.trials for one in found])
    sure = 4 * np.sqrt(truth * (1 - truth) / (runs * found[0].trials))
    assert drawn == pytest.approx(truth, abs=sure + 1e-3)  # what is drawn is, on average, what is true of all people
    assert np.mean([one.validity for one in found]) == pytest.approx(truth, abs=0.03)
    # As if each group counted the same, and as if all pairs were independent: both promise too much somewhere.
    if crowd == "one group refuses, and has nearly everybody":
        by_group = np.mean([chance for _, chance in CROWDS[crowd]])
        assert by_group > truth + 0.1
    if crowd == "one group for all":
        pairs = [clopper_pearson(int(one.accepted.sum()), one.accepted.size * 20, 0.9) <= truth for one in found]
        assert np.mean(pairs) < 0.75


@pytest.mark.parametrize("crowd", [[1], [3, 1], [60, *[1] * 12], [2] * 45, [7, 7, 1, 30]], ids=str)
@pytest.mark.parametrize("models", [1, 3, 10])
def test_no_start_is_asked_twice_and_everybody_has_the_same_chance(crowd: list[int], models: int) -> None:
    block = np.repeat(np.arange(len(crowd)), crowd)
    trials = most_trials(block, models)
    assert trials >= models
    assert max(crowd) * (trials + 1) > models * len(block)  # one more would not do
    times = np.zeros(len(block))
    for seed in range(200):
        people, model = drawn_pairs(block, trials, models, np.random.default_rng(seed))
        assert len(people) == len(model) == trials
        assert max(Counter(zip(block[people], model, strict=True)).values()) == 1
        assert model.max() < models
        np.add.at(times, people, 1)
    expected = 200 * trials / len(block)
    assert times.sum() == 200 * trials
    assert np.abs(times - expected).max() < 5 * np.sqrt(max(expected, 1.0)) + 1


def test_groups_in_a_block_share_all_starts_and_others_none(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(picked, "STARTS", 17)  # five groups of three, and two starts unused
    tester = PickedCheck(Chancy(), 1, 1, 3, 0.9, 0)
    first = np.column_stack([np.arange(12), np.full(12, 0.5)])
    tester.of(first)
    tester.of(np.column_stack([np.arange(20), np.full(20, 0.5)]))
    (groups,), blocks = tester._groups, tester._blocks(0)
    assert len(groups) == 20
    starts = []
    for seed, count, each, different in groups.calls:
        assert each <= different
        numbers = [number % different for number in range(count * each)]
        starts += [{(seed, n) for n in numbers[a:b]} for a, b in pairwise(range(0, count * each + 1, each))]
    assert all(len(own) == 3 for own in starts)
    for a in range(20):
        for b in range(20):
            assert (starts[a] == starts[b]) == (blocks[a] == blocks[b])
            assert bool(starts[a] & starts[b]) == (blocks[a] == blocks[b])


@pytest.mark.parametrize("models", [150, 201, 450])
def test_many_models_of_one_group_all_have_their_own_start(models: int) -> None:
    """Starts were once repeated within a group beyond 200, and the copies counted as further trials."""
    tester = PickedCheck(Chancy(), 1, 1, models, 0.9, 0)
    found = tester.of(np.array([[3.0, 0.5]]))
    assert found is not None
    assert found.retrainings == found.trials == models
    assert len(np.unique(tester._groups[0].models.luck)) == models
    assert found.drawn == found.accepted[0]


def test_what_is_counted_is_what_the_models_say() -> None:
    points = np.array([[0, 0.5], [np.nan, 1.0], [0, 0.9], [1, 0.2]])
    tester = PickedCheck(Chancy(), 1, 2, 6, 0.9, 3)
    found = tester.of(points)
    assert found is not None
    assert found.picked
    whole = points[[0, 2, 3]]
    accepted = np.array(
        [
            [int(group) in groups.models.sets[m] and chance >= groups.models.luck[m] for group, chance in whole]
            for groups in tester._groups
            for m in range(len(groups.models))
        ]
    )
    assert found.accepted.tolist() == [accepted[:, 0].sum(), -1, accepted[:, 1].sum(), accepted[:, 2].sum()]
    assert found.retrainings == 12
    assert found.validity == pytest.approx(accepted.sum() / 36)
    assert found.trials == 2 * 9  # two thirds of 9 share six starts
    assert HeldOut.from_dict(found.to_dict()).to_dict() == found.to_dict()
    again = tester.of(points)
    assert again is not None
    assert again.to_dict() == found.to_dict()
    assert [len(groups) for groups in tester._groups] == [2, 2]  # nothing was retrained once more
    assert tester.of(np.full((2, 2), np.nan)) is None
    assert tester.of(np.empty((0, 2))) is None


def test_nothing_that_chooses_shares_a_seed_with_what_checks(monkeypatch: pytest.MonkeyPatch) -> None:
    model = small_network()
    seeds: list[set[int]] = [set(), set()]
    stack, checking = type(model.retrainer).stack, 0

    def noted(self: Any, work: Any) -> Any:
        seeds[checking].update(work.seeds)
        return stack(self, work)

    monkeypatch.setattr(type(model.retrainer), "stack", noted)
    promise = FreshStarts(attackers=3, checking=4, effort="thorough").about(model, 2, seed=5)
    X = people_near(model, 12)
    promise.harden(X[:6])
    promise.harden(X)
    checking = 1
    promise.held_out(X[:4])
    promise.held_out(X)
    assert len(seeds[0]) > 20
    assert len(seeds[1]) > 3 + 3 * 4
    assert not seeds[0] & seeds[1]
    assert model.seed not in seeds[0] | seeds[1]


def test_spoiling_what_chose_changes_nothing_of_the_check() -> None:
    model = small_network()
    X, promises = people_near(model, 5), [FreshStarts(checking=4).about(model, 2, seed=5) for _ in range(2)]
    for promise in promises:
        promise.harden(X)
    pool = promises[1].pool
    spoilt = [array * 0.0 + 9.0 for array in pool.models.arrays()]
    pool.models = model.restored(spoilt)
    assert np.abs(promises[0].check(X, X) - promises[1].check(X, X)).max() > 1
    found = [promise.held_out(X) for promise in promises]
    assert found[0] is not None
    assert found[1] is not None
    assert found[0].to_dict() == found[1].to_dict()


def test_rows_are_picked_by_the_attackers_and_really_gone() -> None:
    model = small_network()
    X = people_near(model, 4)
    tester = PickedCheck(model, 3, 2, 2, 0.9, 8)
    tester.of(X)
    for attacker, groups in zip(tester.attackers, tester._groups, strict=True):
        assert isinstance(attacker, NeuralModel)
        assert np.abs(attacker.score(X) - model.score(X)).max() > 1e-3
        harms = attacker.harms(X, "first order")
        for own in harms:  # everybody is served by a set nearly as harmful as their own worst
            worst = np.sort(own)[:3]
            assert min(own[rows].sum() for rows in groups.sets) <= 0.97 * worst[worst < 0].sum()
        seed, count, each, starts = groups.calls[0]
        assert (count, each) == (len(groups), 2)
        again = model.refitted(
            [model.train.ids[rows] for rows in groups.sets for _ in range(2)],
            seed=seed,
            trials=[number % starts for number in range(2 * count)],
        )
        np.testing.assert_allclose(again.scores(X), groups.models.scores(X), atol=1e-6)


def test_the_stub_is_what_it_says() -> None:
    model = Chancy()
    models = model.refitted([np.array([2])] * 4000, seed=1)
    assert np.mean(models.scores(np.array([[2.0, 0.3]])) >= 0) == pytest.approx(0.3, abs=0.03)
    assert np.mean(models.scores(np.array([[3.0, 0.3]])) >= 0) == 1.0


def test_copies_of_one_model_are_no_trials() -> None:
    from sklearn.neighbors import KNeighborsClassifier

    from rocerf import EstimatorModel, load_dataset

    train = load_dataset("german").train
    model = EstimatorModel.fit(KNeighborsClassifier(), train)
    assert PickedCheck(model, 3, 2, 4, 0.95, 0).of(train.X[:2]) is None
