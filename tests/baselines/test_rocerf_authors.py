"""ROCERF as the authors run it: the shifted model by the book, the search by their loop, and honest statuses."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from scipy.special import expit

from authors_loops import Loop
from problems import random_training_set, refused_people
from rocerf import FeatureSchema, LogisticModel, NeuralModel, Rocerf, TrainingSet
from rocerf.baselines import AuthorsRocerf
from rocerf.baselines.roar_descent import Linear
from rocerf.baselines.shifted import DAMPING, Rows, shifted
from rocerf.errors import OptionError
from rocerf.models.local_linear import LocalLinearModel
from rocerf.recourse.result import Status


def shifted_by_hand(train: TrainingSet, theta: np.ndarray, z0: np.ndarray, k: int) -> np.ndarray:
    """theta without the k rows that lower the score at z0 most, row by row; theirs if two rows tie at the limit."""
    Z = (train.X - train.X.mean(axis=0)) / train.X.std(axis=0)
    H, gradients = DAMPING * np.eye(len(theta)), []
    for z, y in zip(Z, train.y, strict=True):
        row = np.append(z, 1.0)
        p = expit(row @ theta)
        gradients.append((p - y) * row)
        H += p * (1.0 - p) * np.outer(row, row) / len(Z)
    moves = [np.linalg.solve(H, gradient) / len(Z) for gradient in gradients]
    drops = [float(np.append(z0, 1.0) @ move) for move in moves]
    limit = sorted(drops)[k]
    return theta + sum((move for move, drop in zip(moves, drops, strict=True) if drop < limit - 1e-12), 0.0 * theta)


def standardised(train: TrainingSet, X: np.ndarray) -> np.ndarray:
    return (X - train.X.mean(axis=0)) / train.X.std(axis=0)


@pytest.mark.parametrize("k", [0, 1, 5])
def test_the_shifted_model_is_that_of_one_row_after_the_other(k: int) -> None:
    train = random_training_set(2, n=60, d=3)
    model = LogisticModel.fit(train, C=100.0)
    z0 = standardised(train, refused_people(model, 2, 4))
    own = Linear(np.tile(model.theta[:-1], (4, 1)), np.full(4, model.theta[-1]))
    moved = shifted(own, Rows(train), z0, k)
    for i in range(4):
        expected = shifted_by_hand(train, model.theta, z0[i], k)
        np.testing.assert_allclose(np.append(moved.w[i], moved.b[i]), expected, rtol=1e-7, atol=1e-9)
    others = Linear(own.w * np.arange(1.0, 5.0)[:, None], own.b)  # another model for each
    moved = shifted(others, Rows(train), z0, k)
    for i in range(4):
        expected = shifted_by_hand(train, np.append(others.w[i], others.b[i]), z0[i], k)
        np.testing.assert_allclose(np.append(moved.w[i], moved.b[i]), expected, rtol=1e-7, atol=1e-9)


def test_rows_that_are_the_same_are_feared_together_or_not_at_all() -> None:
    once = random_training_set(3, n=40, d=3)
    train = TrainingSet(np.repeat(once.X, 4, axis=0), np.repeat(once.y, 4))
    model = LogisticModel.fit(train, C=100.0)
    z0 = standardised(train, refused_people(model, 3, 3))
    own = Linear(np.tile(model.theta[:-1], (3, 1)), np.full(3, model.theta[-1]))
    at = {k: shifted(own, Rows(train), z0, k) for k in (0, 3, 4, 7, 8)}
    np.testing.assert_array_equal(at[3].w, at[0].w)
    np.testing.assert_array_equal(at[7].w, at[4].w)
    assert (at[8].score(z0) < at[4].score(z0) - 1e-9).all()
    assert (at[4].score(z0) < at[3].score(z0) - 1e-9).all()


def test_the_search_is_their_loop_on_the_shifted_model() -> None:
    train = random_training_set(1, n=90, d=4)
    model = LogisticModel.fit(train, C=100.0)
    people = refused_people(model, 1, 8)
    found = AuthorsRocerf(model, 3, max_steps=200).explained(people)
    z0 = standardised(train, people)
    expected = [Loop(shifted_by_hand(train, model.theta, z, 3), z, 200).run() for z in z0]
    costs = np.sqrt(((standardised(train, found.ends) - z0) ** 2).sum(axis=1))
    assert np.nan_to_num(costs, nan=np.inf) == pytest.approx(expected, rel=1e-6)
    plain = [Loop(model.theta, z, 200).run() for z in z0]
    assert np.mean(expected) > np.mean(plain) * 1.01  # else the shift would not show


def test_points_lie_beyond_the_optimum_and_statuses_are_those_of_the_model() -> None:
    train = random_training_set(4, n=120, d=3)
    model = LogisticModel.fit(train, C=100.0)
    people = refused_people(model, 4, 6)
    found = AuthorsRocerf(model, "5%", max_steps=3000).explained(people)
    assert found.recourses.settings.k == 6
    np.testing.assert_array_equal(found.recourses.answered, model.score(found.ends) >= 0)
    z0 = standardised(train, people)
    for z, end in zip(z0, standardised(train, found.ends), strict=True):
        theta = shifted_by_hand(train, model.theta, z, 6)
        nearest = -(theta @ np.append(z, 1.0)) / np.linalg.norm(theta[:-1])
        assert theta @ np.append(end, 1.0) >= 0
        assert nearest * (1 - 1e-6) <= np.linalg.norm(end - z) < 2.0 * nearest
    assert "the 6 rows that are worst for the person as they stand" in " ".join(
        found.recourses.settings.sentence.split()
    )
    assert Rocerf(model, 6, promise="first_order").explain(people).answered.all()


def test_a_share_is_rounded_down() -> None:
    model = LogisticModel.fit(random_training_set(0, n=90))
    assert AuthorsRocerf(model, "5%").k == 4
    with pytest.raises(OptionError, match="Expected k"):
        AuthorsRocerf(model, 2.5)  # type: ignore[arg-type]
    with pytest.raises(OptionError, match="max_steps"):
        AuthorsRocerf(model, 2, max_steps=0)
    with pytest.raises(OptionError, match="Expected a rocerf model, got str"):
        AuthorsRocerf("model", 2)  # type: ignore[arg-type]


def test_rules_are_kept() -> None:
    model = LogisticModel.fit(random_training_set(0), C=3.0)
    people = refused_people(model, 1, 4)
    schema = FeatureSchema.free(model.train.columns).edit("x0", direction="fixed")
    found = AuthorsRocerf(model, 2, schema=schema, max_steps=1000).explain(people)
    assert found.answered.any()
    np.testing.assert_array_equal(found.matrix[found.answered, 0], people[found.answered, 0])


@pytest.mark.slow
def test_on_networks_stand_in_and_shifted_stand_in_are_asked_and_the_network_is_not(network: NeuralModel) -> None:
    people = network.train.X[network.predict(network.train.X) == 0][:6]
    explainer = AuthorsRocerf(network, 15, max_steps=3000, seed=3)
    found = explainer.explained(people)
    z0 = standardised(network.train, people)
    ends = standardised(network.train, found.ends)
    for i, person in enumerate(people):
        local: Any = LocalLinearModel.around(network, person, seed=3, sampling="authors")
        w, b = local.halfspaces(local.theta)
        own = np.append(np.ravel(w) * network.train.spread, np.ravel(b) + np.ravel(w) @ network.train.X.mean(axis=0))
        moved = shifted_by_hand(network.train, own, z0[i], 15)
        assert min(own @ np.append(ends[i], 1.0), moved @ np.append(ends[i], 1.0)) >= -1e-6
        expected = Loop(moved, z0[i], 3000, others=[own]).run()
        # Their search wanders from the last digits on; what it finds is the same until then.
        assert np.linalg.norm(ends[i] - z0[i]) == pytest.approx(expected, rel=0.35)
    accepted = network.score(found.ends) >= 0
    np.testing.assert_array_equal(found.recourses.answered, accepted)
    assert all(found.recourses.statuses[i] is Status.GAVE_UP for i in np.flatnonzero(~accepted))
