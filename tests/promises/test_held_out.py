"""What is said about points that retrained models checked: counts, bounds that cover, words that do not round up."""

from __future__ import annotations

import json
import re

import numpy as np
import pytest
from scipy.stats import binomtest

from noisy import NOISES, PEOPLE, REFUSED, SLOPES, Noisy
from problems import random_training_set
from rocerf import FeatureSchema, LogisticModel, Recourses, Rocerf, Status
from rocerf.promises import HeldOut, Simulated, margin_choice, simulated
from rocerf.promises.held_out import clopper_pearson
from rocerf.promises.simulated import SimulatedPromise
from rocerf.recourse.solvers import sequential


@pytest.fixture
def few(monkeypatch: pytest.MonkeyPatch) -> None:
    """Few people decide the margin, roughly, and points are not polished, where it does not matter how well."""
    monkeypatch.setattr(simulated, "PEOPLE", 10)
    monkeypatch.setattr(margin_choice, "HALVINGS", 2)
    monkeypatch.setattr(sequential, "FULL_STEPS", 5)
    monkeypatch.setattr(sequential, "ROUNDS", 1)


@pytest.mark.parametrize("confidence", [0.5, 0.9, 0.95, 0.999])
@pytest.mark.parametrize(
    ("successes", "trials"), [(0, 10), (1, 1), (1, 10), (57, 60), (60, 60), (99, 100), (500, 1000)]
)
def test_clopper_pearson_is_scipy_s(successes: int, trials: int, confidence: float) -> None:
    exact = binomtest(successes, trials, alternative="greater").proportion_ci(confidence, method="exact")
    assert clopper_pearson(successes, trials, confidence) == pytest.approx(exact.low, abs=1e-12)


def check(promise: SimulatedPromise, points: np.ndarray, seed: int) -> HeldOut:
    """The check with other models, drawn anew."""
    found = promise.options.about(promise.model, promise.k, seed=seed).held_out(points)
    assert found is not None
    return found


@pytest.mark.slow
@pytest.mark.parametrize("noise", NOISES)
def test_bounds_are_below_the_truth_as_often_as_they_say(noise: str) -> None:
    """400 checks of the same points with new models each time, people sharing the models of a check."""
    model, options = Noisy(NOISES[noise]), Simulated(shaping=2, choosing=2, checking=60, confidence=0.9)
    promise = options.about(model, 6)
    wanted = np.linspace(0.38, 0.46, 25)
    points = REFUSED[:25] + np.outer((wanted - model.score(REFUSED[:25])) / (SLOPES @ SLOPES), SLOPES)
    chances = model.chances(points)
    covered, alone, pooled = [], [], []
    for seed in range(400):
        held_out = check(promise, points, seed)
        covered.append(held_out.lower_bound <= chances.mean())
        alone.append([held_out.bound_of(j) <= chances[j] for j in (0, 9)])
        pooled.append(clopper_pearson(int(held_out.accepted.sum()), 60 * len(points), 0.9) <= chances.mean())
    slack = 3 * np.sqrt(0.9 * 0.1 / 400)
    assert np.mean(covered) >= 0.9 - slack
    assert np.mean(alone, axis=0).min() >= 0.9 - slack
    if noise == "shared by people":  # which is why pairs are not counted as if they were trials
        assert np.mean(pooled) < 0.8


def test_what_is_counted_is_what_the_checking_models_say() -> None:
    model = Noisy(NOISES["both"])
    promise = Simulated(shaping=3, choosing=4, checking=50).about(model, 6)
    points = REFUSED[:9] + 0.9 * SLOPES
    held_out = promise.held_out(points)
    assert held_out is not None
    accepted = promise.models[7:].scores(points) >= 0
    assert held_out.retrainings == 50
    assert held_out.accepted.tolist() == accepted.sum(axis=0).tolist()
    np.testing.assert_allclose(held_out.by_model, accepted.mean(axis=1))
    assert held_out.validity == pytest.approx(accepted.mean())
    assert 0 < held_out.drawn <= 50
    assert held_out.lower_bound == clopper_pearson(held_out.drawn, 50, 0.95)
    assert held_out.bound_of(4) == clopper_pearson(int(accepted[:, 4].sum()), 50, 0.95)
    one = promise.held_out(points[:1])
    assert one is not None
    assert one.drawn == one.accepted[0]  # with one person, the person drawn is that one


@pytest.mark.slow
@pytest.mark.usefixtures("few")
def test_a_recourse_says_how_it_fared() -> None:
    recourses = Rocerf(Noisy(NOISES["both"]), 6, promise=Simulated(validity=0.9, checking=80)).explain(REFUSED[:6])
    held_out = recourses.held_out
    for i, recourse in enumerate(recourses):
        count = int(held_out.accepted[i])
        assert f"accepted by {count} of 80 models retrained to check it" in recourse.promise
        assert "with 95% confidence" in recourse.promise
        assert "at least 90% of models accept it" in recourse.promise
        assert "random deletions of up to 6 training rows" in recourse.promise
    assert f"over 6 points and {held_out.retrainings} retrained models" in str(held_out)
    assumed = " ".join(recourses.settings.assumptions)
    assert "retraining adds noise" in assumed
    assert "sets of 0 to 6 rows" in assumed
    assert "40 retrained models shape the margin, 60 others choose its size, 80 others check the points" in assumed


@pytest.mark.parametrize(("validity", "said"), [(0.9, "90%"), (0.99, "99%"), (0.995, "99.5%"), (0.999, "99.9%")])
def test_the_sentence_does_not_round_the_validity_up(validity: float, said: str) -> None:
    promise = Simulated(validity=validity).about(Noisy(NOISES["both"]), 6)
    assert f"at least {said} of models" in promise.sentence(0.0)


@pytest.mark.parametrize("confidence", [0.9, 0.95, 0.999])
def test_at_least_is_never_rounded_up(confidence: float) -> None:
    accepted = np.arange(101)
    held_out = HeldOut(accepted, np.full(100, 0.5), drawn=96, confidence=confidence)
    for place in accepted:
        said = re.search(r"at least ([\d.]+)% of such models with ([\d.]+)% confidence", held_out.sentence_of(place))
        assert said is not None
        assert float(said[1]) / 100 <= held_out.bound_of(place) + 1e-12
        assert float(said[2]) / 100 <= confidence + 1e-12
    said = re.search(r"at least ([\d.]+)%", str(held_out))
    assert said is not None
    assert float(said[1]) / 100 <= held_out.lower_bound + 1e-12


@pytest.mark.slow
@pytest.mark.usefixtures("few")
def test_held_out_figures_survive_json() -> None:
    recourses = Rocerf(Noisy(NOISES["both"]), 6, promise=Simulated(validity=0.9, checking=20)).explain(PEOPLE[:12])
    assert 0 < recourses.answered.sum() < 12
    again = Recourses.from_json(recourses.to_json())
    assert again.held_out is not None
    assert again.held_out.to_dict() == recourses.held_out.to_dict()
    assert [r.promise for r in again] == [r.promise for r in recourses]
    assert str(again.held_out) == str(recourses.held_out)
    document = json.loads(recourses.to_json())
    assert document["held_out"]["confidence"] == 0.95
    logistic = LogisticModel.fit(random_training_set(1, n=80), C=1.0)
    first_order = Rocerf(logistic, 2, promise="first_order").explain(logistic.train.X[:5])
    assert Recourses.from_json(first_order.to_json()).held_out is None


@pytest.mark.slow
@pytest.mark.usefixtures("few")
def test_people_without_a_point_are_left_out_of_the_figures() -> None:
    model = Noisy(NOISES["both"])
    schema = FeatureSchema.free(model.train.columns).edit("x0", upper=2.5).edit("x1", direction="fixed")
    explainer = Rocerf(model, 6, promise=Simulated(validity=0.9, checking=30), schema=schema)
    people = np.vstack([REFUSED[:8], [[-1.0, 9.0]], [[np.nan, 0.0]], [[9.0, 0.0]]])
    recourses = explainer.explain(people)
    assert recourses.statuses[8:] == (Status.GAVE_UP, Status.INVALID_INPUT, Status.ALREADY_ACCEPTED)
    answered = recourses.answered
    assert answered[:8].sum() >= 4
    assert [r.promise for r in recourses if not r.answered] == ["nothing is promised"] * int((~answered).sum())
    points = recourses.matrix[answered]
    accepted = explainer.promise.models[100:].scores(points) >= 0
    assert recourses.held_out.accepted[answered].tolist() == accepted.sum(axis=0).tolist()
    assert recourses.held_out.validity == pytest.approx(accepted.mean())
    assert f"over {int(answered.sum())} points" in str(recourses.held_out)
    nobody = explainer.explain(people[8:9])
    assert nobody.held_out is None
    assert nobody.statuses == (Status.GAVE_UP,)
