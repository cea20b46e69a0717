"""The attack on models retrained from fresh starts: against exact optima, against all sets, and at its edges."""

from __future__ import annotations

from dataclasses import replace
from functools import cache
from itertools import combinations
from typing import Any

import numpy as np
import pytest
import torch
from sklearn.ensemble import RandomForestClassifier

from networks import people_near, small_network
from problems import random_training_set
from rocerf import Adversary, EstimatorModel, LogisticModel, NeuralModel, TrainingSet
from rocerf.deletion.attackers import attacker_for
from rocerf.deletion.efforts import EFFORTS, GroupEffort
from rocerf.deletion.group_attack import GroupAttacker, refits_differ
from rocerf.deletion.groups import Groups

QUICK = replace(EFFORTS["normal"].on(90), groups=GroupEffort(("proposals", "other starts"), 2, 3, 0, 4))


# --- a network with one optimum -----------------------------------------------------------------------


def exact_fit(train: TrainingSet, seed: int = 0, start: Any = None) -> Any:
    """One linear layer at the optimum of the logistic objective, whatever the seed."""
    logistic = LogisticModel.fit(train, C=1.0, scale=False)
    slopes, constant = logistic.halfspaces(logistic.theta)
    layer = torch.nn.Linear(train.X.shape[1], 1).double()
    layer.weight.data, layer.bias.data = torch.tensor(slopes)[None], torch.tensor([float(constant)])
    return layer


def convex(seed: int, n: int, d: int) -> tuple[NeuralModel, LogisticModel]:
    """The same model as a network that its user trains, and as a logistic one."""
    drawn = random_training_set(seed, n=n, d=d)
    train = TrainingSet((drawn.X - drawn.X.mean(axis=0)) / drawn.spread, drawn.y.astype(int))
    network = NeuralModel.from_torch(exact_fit(train), train, refit=exact_fit, damping=1.0 / n)
    return network, LogisticModel.fit(train, C=1.0, scale=False)


@pytest.mark.slow
@pytest.mark.parametrize(("seed", "n", "d", "k"), [(5, 90, 3, 3), (6, 120, 4, 6)])
def test_with_one_optimum_it_finds_what_the_exact_adversary_finds(seed: int, n: int, d: int, k: int) -> None:
    network, logistic = convex(seed, n, d)
    X = network.train.X[:12] + 0.1
    exactly = Adversary(logistic, k, effort="thorough").attack(X)
    found = Adversary(network, k, effort="thorough").attack(X)
    assert found.models == 1
    truly = [logistic.without(ids).score(x[None])[0] for ids, x in zip(found.deleted_ids, X, strict=True)]
    np.testing.assert_allclose(found.scores, truly, atol=1e-6)
    today = logistic.score(X)
    share = (today - found.scores) / (today - exactly.scores)
    assert share.max() <= 1 + 1e-6
    assert share.min() > 0.98  # the exact adversary also grows sets side by side, which groups do not
    assert share.mean() > 0.995
    normally = Adversary(network, k, effort="normal").attack(X)  # without any further round
    assert ((today - normally.scores) / (today - exactly.scores)).min() > 0.94


def test_a_model_that_is_always_the_same_is_retrained_once() -> None:
    network, _ = convex(5, 60, 2)
    groups = Groups()
    groups.retrain(network, [np.empty(0, np.intp)], 2, seed=0, starts=2)
    assert not refits_differ(groups, network)
    found = Adversary(network, 2, effort="normal").attack(network.train.X[:3])
    assert found.models == 1
    assert found.spreads.tolist() == [0.0] * 3
    assert set(found.shares.tolist()) <= {0.0, 1.0}


# --- all sets of a tiny table -------------------------------------------------------------------------


@cache
def tiny() -> NeuralModel:
    train = random_training_set(5, n=30, d=3)
    return NeuralModel.fit(train, width=4, hidden_layers=1, epochs=20, learning_rate=0.5, batch_size=30)


@pytest.mark.slow
def test_on_a_tiny_table_the_set_found_is_within_the_noise_of_the_worst() -> None:
    model = tiny()
    X = model.train.X[model.score(model.train.X) > 0][:4]
    sets = [np.array(rows, np.intp) for size in (0, 1, 2) for rows in combinations(range(30), size)]
    truth = Groups().retrain(model, sets, 20, seed=999, starts=20)
    means, place = truth.outcomes(X).means, {rows.tobytes(): number for number, rows in enumerate(sets)}
    worst, today = means.argmin(axis=0), means[0]
    thorough = EFFORTS["thorough"].on(30)
    for effort in (thorough, replace(thorough, groups=replace(thorough.groups, brute_force=0))):
        found = Adversary(model, 2, effort=effort, seed=3).attack(X)
        assert ("brute force" in found.searches) == (effort is thorough)
        for point, rows in enumerate(found.deleted_rows):
            own = place[rows.tobytes()]
            apart = (truth.of(own).scores(X[[point]]) - truth.of(int(worst[point])).scores(X[[point]]))[:, 0]
            noise = 3 * apart.std(ddof=1) / np.sqrt(20)
            assert apart.mean() <= noise + 0.05 * (today[point] - means[worst[point], point])
            assert (means[:, point] < means[own, point]).sum() <= 10  # of 466
            # What is reported was retrained anew: it agrees with the truth up to the noise of both.
            spread = truth.outcomes(X).spreads[own, point]
            assert abs(found.scores[point] - means[own, point]) < 4 * spread * np.sqrt(2 / 20)


# --- what it reports ----------------------------------------------------------------------------------


def test_it_reports_models_that_chose_nothing() -> None:
    """Spoiling the models that choose changes what is chosen, not what is said of it."""
    model, asked = small_network(), []
    refitted = NeuralModel.refitted

    def noted(self: Any, deletions: Any, **options: Any) -> Any:
        asked.append((options["seed"], {tuple(ids) for ids in deletions}, len(deletions)))
        return refitted(self, deletions, **options)

    X = people_near(model, 5)
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(NeuralModel, "refitted", noted)
        found = Adversary(model, 3, effort=QUICK, seed=1).attack(X)
    confirming, sets, count = asked[-1]
    assert confirming not in {seed for seed, _, _ in asked[:-1]}
    assert sets == {tuple(ids) for ids in found.deleted_ids}
    assert count == 4 * len(sets)
    assert found.models == 4
    for point, ids in enumerate(found.deleted_ids):
        assert len(ids) <= 3
        scores = model.refitted([ids] * 4, seed=confirming).scores(X[[point]])[:, 0]
        assert found.scores[point] == pytest.approx(scores.mean(), abs=1e-6)
        assert found.spreads[point] == pytest.approx(scores.std(ddof=1), abs=1e-6)
        assert found.shares[point] == np.mean(scores >= 0)
    assert np.mean(found.scores) < np.mean(model.refitted([model.train.ids[:0]] * 8, seed=9).scores(X))
    again = Adversary(model, 3, effort=QUICK, seed=1).attack(X)
    np.testing.assert_array_equal(again.scores, found.scores)


def test_blocks_of_points_do_not_change_what_is_tried_for_each(monkeypatch: pytest.MonkeyPatch) -> None:
    from rocerf.deletion import group_attack

    model = small_network()
    X = people_near(model, 5)
    at_once = Adversary(model, 2, effort=QUICK).attack(X)
    told: list[tuple[int, int]] = []
    monkeypatch.setattr(group_attack, "HARMS", 2 * len(model.train))  # two points at a time
    apart = Adversary(model, 2, effort=QUICK).attack(X, progress=lambda done, total: told.append((done, total)))
    assert told == [(2, 5), (4, 5), (5, 5)]
    assert len(apart) == 5
    assert apart.retrainings.shape == (5,)
    # The last block chose among all sets of the earlier ones, so the same as at once.
    assert apart.deleted_rows[4].tolist() == at_once.deleted_rows[4].tolist()


@pytest.mark.parametrize("effort", EFFORTS)
def test_nothing_to_attack_and_nothing_to_delete(effort: str) -> None:
    model = tiny()
    assert isinstance(model, NeuralModel)
    assert attacker_for(model) is GroupAttacker
    none = Adversary(model, 2, effort=effort).attack(np.empty((0, 3)))
    assert len(none) == 0
    assert none.shares.shape == (0,)
    found = Adversary(model, 0, effort=effort).attack(model.train.X[:2])
    assert found.found_by == ("nothing deleted",) * 2
    assert [len(rows) for rows in found.deleted_rows] == [0, 0]
    assert np.isfinite(found.scores).all()


def test_a_class_that_can_go_is_the_worst_deletion() -> None:
    drawn = random_training_set(5, n=40, d=2)
    y = np.arange(40) < 4
    weights = np.where(np.arange(40) == 0, 0.0, 1.0)  # a row without weight need not be deleted
    train = TrainingSet(drawn.X + 3.0 * y[:, None], y.astype(int), sample_weight=weights)
    model = EstimatorModel.fit(RandomForestClassifier(5), train)
    found = Adversary(model, 3).attack(train.X[:2])
    assert np.isneginf(found.scores).all()
    assert found.deleted_rows[0].tolist() == [1, 2, 3]
    assert found[0].found_by == "a whole class"


def test_known_sets_are_tried_and_a_floor_ends_the_search() -> None:
    model = small_network()
    X = people_near(model, 3)
    known = [np.array([0, 1]), np.array([5]), np.array([], np.intp)]
    found = Adversary(model, 2, effort=QUICK).attack_all(X, known=known)
    assert "known" in found.searches
    thorough = replace(QUICK, groups=GroupEffort(("proposals", "relinearised"), 0, 2, 2, 2))
    stopped = Adversary(model, 2, effort=thorough).attack_all(X, stop_below=np.full(3, np.inf))
    assert "relinearised" not in stopped.searches
    assert "relinearised" in Adversary(model, 2, effort=thorough).attack_all(X).searches


def test_an_estimator_is_attacked_too() -> None:
    model = EstimatorModel.fit(RandomForestClassifier(10, min_samples_leaf=3), random_training_set(5, n=60, d=3))
    X = model.train.X[model.score(model.train.X) > 0.3][:4]
    effort = replace(EFFORTS["normal"], groups=GroupEffort(("proposals",), 0, 3, 0, 4), on_small_tables=None)
    found = Adversary(model, 6, effort=effort).attack(X)
    untouched = model.refitted([model.train.ids[:0]] * 8, seed=77).scores(X).mean(axis=0)
    assert found.scores.mean() < untouched.mean() - 0.2
    assert found.models == 4
