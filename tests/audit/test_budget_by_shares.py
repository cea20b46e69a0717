"""How many deletions a point survives where retraining has no single outcome: a share of models must accept."""

from __future__ import annotations

from functools import cache

import numpy as np
import pytest
from sklearn.tree import DecisionTreeClassifier

from held_up import HeldUp
from networks import moons
from noisy import NOISES, Noisy
from problems import random_training_set
from rocerf import Adversary, EstimatorModel, LogisticModel, NeuralModel, Rocerf
from rocerf.audit.removal_budget import RemovalBudget, removal_budget
from rocerf.deletion.budget import _doubled_then_halved, models_for
from rocerf.errors import OptionError, UnsupportedModelError
from rocerf.promises import FreshStarts, Simulated

LIFTS = (0.5, 0.4, 0.3, 0.3, 0.2, 0.2, 0.1, 0.1, 0.1, 0.05)


@cache
def network() -> NeuralModel:
    return NeuralModel.fit(moons(), epochs=20, learning_rate=0.5, width=6)


@pytest.mark.parametrize("noise", [0.0, 0.001])
@pytest.mark.parametrize("most", [1, 3, 8, 12])
def test_budgets_are_those_of_every_size_tried_by_hand(noise: float, most: int) -> None:
    """Noise far below the steps between sizes: the share is 0 or 1, whatever the starts."""
    model = HeldUp(LIFTS, noise)
    heights = np.array([-0.1, 0.07, 0.55, 0.95, 1.25, 1.55, 1.75, 2.12, 2.22, 9.0])
    budget = removal_budget(model, heights[:, None], most)
    assert budget.found.tolist() == [model.budget(x, 0.95, most) for x in heights]
    assert budget.certified.tolist() == [-1, *[0] * 9]
    assert (budget.certified <= budget.found).all()
    assert budget.models == (20 if noise else 1)


def test_the_share_decides() -> None:
    model = HeldUp([1.0] * 6, noise=1.0)
    heights = np.array([[-0.5], [0.7], [3.0], [4.5], [7.5]])
    found = {share: removal_budget(model, heights, 6, share=share).found for share in (0.05, 0.5, 0.95)}
    assert (found[0.05] >= found[0.5]).all()
    assert (found[0.5] >= found[0.95]).all()
    assert found[0.95][1] == -1  # three quarters of the models accept it with nothing deleted
    for share in (0.05, 0.5, 0.95):
        truth = np.array([model.budget(x, share, 6) for x in heights[1:, 0]])
        assert np.abs(found[share][1:] - truth).max() <= 1


def test_a_promise_about_picked_rows_brings_its_share() -> None:
    model, points = HeldUp([1.0] * 6, noise=1.0), np.array([[3.0], [4.5]])
    assert Rocerf(model, 2, promise=FreshStarts(share=0.5)).removal_budget(points).share == 0.5
    assert Rocerf(model, 2, promise=FreshStarts(share=0.5)).removal_budget(points, share=0.9).share == 0.9
    random_only = Rocerf(model, 2, promise=Simulated(validity=0.5)).removal_budget(points)
    assert random_only.share == 0.95  # which its validity does not speak of
    assert random_only.tried == 8
    assert models_for(0.99) == 100  # fewer could not tell 99 % from all


def test_what_broke_with_fewer_rows_than_were_allowed_counts_as_that_many() -> None:
    """A size that withstood does not show that a smaller one does: the smallest found to break decides."""
    tried: list[int] = []

    def breaks(points: np.ndarray, size: int) -> np.ndarray:
        tried.append(size)
        return np.array([3 if size >= 8 else -1])

    assert _doubled_then_halved(np.zeros(1, np.intp), 16, breaks, None).tolist() == [2]
    assert tried == [1, 2, 4, 8]
    nothing_needed = _doubled_then_halved(np.zeros(1, np.intp), 16, lambda points, size: np.zeros(1, np.intp), None)
    assert nothing_needed.tolist() == [-1]


def test_sentences_say_share_and_prove_nothing() -> None:
    model = HeldUp(LIFTS, 0.001)
    budget = Rocerf(model, 2, promise=FreshStarts()).removal_budget([[-1.0], [0.95], [1.55]], most=8)
    english, german = str(budget), budget.sentence.in_language("de")
    assert english == (
        "2 points: none was broken by fewer than 3 deletions, half only by more than 3 (up to 8 were tried); broken "
        "means that a share of less than 95% of 20 models, trained again without the worst rows that were found, "
        "accepts the point; this is estimated, nothing is proven; 1 is refused today, or by too many models trained "
        "again on all rows"
    )
    assert "ein Anteil von weniger als 95 % von 20 Modellen" in german.replace("\u00a0", " ").replace("\u202f", " ")
    nobody = RemovalBudget(np.full(2, -1), np.full(2, -1), 8, (), 0.95, 20)
    assert str(nobody).startswith("no accepted points; 2 are refused today")


def test_who_cannot_be_asked_is_refused() -> None:
    with pytest.raises(UnsupportedModelError, match="hold a point up"):
        Rocerf(Noisy(NOISES["both"]), 2, promise=Simulated()).removal_budget([[0.0, 0.0]])
    logistic = LogisticModel.fit(random_training_set(1, n=60))
    with pytest.raises(OptionError, match=r"a single outcome, got 0\.9"):
        Rocerf(logistic, 1).removal_budget(logistic.train.X[:1], share=0.9)
    with pytest.raises(OptionError, match="share between 0 and 1, got 1"):
        Rocerf(HeldUp(), 1, promise=FreshStarts()).removal_budget([[1.0]], share=1.0)


def test_of_a_network_it_is_what_its_adversary_finds() -> None:
    model = network()
    points = model.train.X[np.argsort(-model.score(model.train.X))[[0, 40, 45, -1]]]
    told: list[tuple[int, int]] = []
    explainer = Rocerf(model, 2, promise=FreshStarts())
    budget = explainer.removal_budget(points, most=20, progress=lambda done, total: told.append((done, total)))
    again = explainer.removal_budget(points, most=20)
    assert budget.found.tolist() == again.found.tolist()  # seeded
    assert budget.found[-1] == -1
    assert budget.found[0] > budget.found.min()
    assert told[-1] == (4, 4)
    broken = np.flatnonzero((budget.found >= 0) & (budget.found < 20))
    assert len(broken)
    for place in broken:  # by starts of another seed, so up to chance
        attack = Adversary(model, int(budget.found[place]) + 1, effort="normal", seed=7).attack(points[place])
        assert attack.share < 1.0


def test_of_an_estimator_without_chance_one_model_says_it() -> None:
    model = EstimatorModel.fit(DecisionTreeClassifier(max_depth=3, random_state=0), moons(60))
    accepted = model.train.X[model.predict(model.train.X) == 1][:2]
    budget = Rocerf(model, 1, promise=FreshStarts()).removal_budget(accepted, most=4)
    assert budget.models in (1, 20)
    assert (budget.found >= -1).all()
    assert (budget.found <= 4).all()
