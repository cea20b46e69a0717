"""Margins of scores against counting by hand, and the choice of their level against trying all of them."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from scipy.stats import norm

from networks import finite_differences, small_network
from noisy import NOISES, Noisy, chosen
from problems import random_training_set
from rocerf import LogisticModel, Rocerf
from rocerf.promises import Simulated, margin_choice, simulated
from rocerf.promises.held_out import clopper_pearson
from rocerf.promises.margins import LADDER, counted, enough_for, spread_below_mean
from rocerf.recourse.solvers import sequential
from stepped import Stepped

OPTIONS = Simulated(validity=0.8, margin="count", shaping=20, choosing=30, checking=40)


def cheapest(promise: Any, X0: np.ndarray) -> np.ndarray:
    """Brute force: the first place of a fine grid, upwards from each person, at which the promise holds."""
    grid = np.arange(-2.0, 12.0, 0.05)[:, None]
    holds = promise.read(grid).values >= 0
    found = [grid[(grid[:, 0] >= x) & holds][:1] for x in X0[:, 0]]
    return np.array([places[0] if len(places) else [np.nan] for places in found])


# --- values -------------------------------------------------------------------------------------------


@pytest.mark.parametrize("level", [0.05, 0.5, 0.8, 0.9, 0.95, 1.0])
@pytest.mark.parametrize("models", [2, 7, 20, 40])
def test_a_count_holds_exactly_where_so_many_models_accept(level: float, models: int) -> None:
    rng = np.random.default_rng(models)
    scores = rng.normal(rng.uniform(-4.0, 6.0, 300), 1.0, size=(models, 300))
    values, weights = counted(scores, level)
    accepting = (scores >= 0).sum(axis=0)
    np.testing.assert_array_equal(values >= 0, accepting >= level * models - 1e-9)
    assert 0 < (values >= 0).sum() < 300
    np.testing.assert_allclose((weights * scores).sum(axis=0), values)


def test_beyond_all_of_them_the_lowest_must_clear_so_many_spreads() -> None:
    scores = np.random.default_rng(0).normal(size=(9, 50))
    values, _ = counted(scores, 1.75)
    np.testing.assert_allclose(values, scores.min(axis=0) - 0.75 * scores.std(axis=0, ddof=1), atol=1e-12)
    levels = np.array([counted(scores, level)[0] for level in LADDER])
    assert (np.diff(levels, axis=0) <= 1e-12).all()  # each level asks for more than the one below


@pytest.mark.parametrize("value_of", [counted, spread_below_mean])
@pytest.mark.parametrize("level", [0.8, 1.0, 1.6])
def test_weights_are_the_slopes_of_the_value(value_of: Any, level: float) -> None:
    scores = np.random.default_rng(1).normal(size=(6, 1))
    _, weights = value_of(scores, level)
    differences = finite_differences(lambda s: value_of(s[:, None], level)[0], scores[:, 0], np.full(6, 1e-6))
    np.testing.assert_allclose(weights[:, 0], differences[0], atol=1e-6)


@pytest.mark.parametrize(("validity", "models"), [(0.5, 10), (0.8, 30), (0.9, 100), (0.95, 60), (0.99, 100)])
def test_enough_models_are_the_fewest_whose_bound_shows_it(validity: float, models: int) -> None:
    enough = enough_for(validity, models, 0.95)
    assert enough == models or clopper_pearson(enough, models) >= validity
    assert clopper_pearson(enough - 1, models) < validity


def by_normal_scores(scores: np.ndarray) -> float:
    distances = [np.mean(column) / np.std(column, ddof=1) for column in scores.T]
    return float(np.mean([norm.cdf(d - 1.645 * np.sqrt((1 + d * d / 2) / len(scores))) for d in distances]))


def by_their_lower_half(scores: np.ndarray) -> float:
    shares = []
    for column in scores.T:
        middle = np.median(column)
        d = middle / np.sqrt(2 * np.mean([min(score - middle, 0) ** 2 for score in column]))
        shares.append(norm.cdf(d - 1.645 * np.sqrt((np.pi / 2 + d * d) / len(column))))
    return float(np.mean(shares))


def test_a_lower_half_says_of_normal_scores_what_all_of_them_say_but_for_what_it_leaves_open() -> None:
    rng = np.random.default_rng(2)
    scores = rng.normal(2.0, 1.0, size=(20_000, 30))
    assert margin_choice.expected_from_lower_half(scores) == pytest.approx(norm.cdf(2.0), abs=0.005)
    few = scores[:60]
    assert margin_choice.expected_from_lower_half(few) == pytest.approx(by_their_lower_half(few))
    assert margin_choice.expected_validity(few) == pytest.approx(by_normal_scores(few))
    sure = np.where(few > 3.0, few + 50.0, few)  # very sure of a yes, which is no reason for doubt
    assert margin_choice.expected_validity(sure) < 0.9
    assert not margin_choice.reaches(sure, 0.9)
    assert margin_choice.reaches(few + 1.5, 0.9)
    assert margin_choice.reaches(sure + 1.5, 0.9, skewed=True)
    assert not margin_choice.reaches(sure - 2.0, 0.9, skewed=True)


# --- the level chosen ---------------------------------------------------------------------------------


@pytest.mark.parametrize("seed", range(8))
def test_the_level_chosen_is_the_lowest_that_will_do(seed: int) -> None:
    """All levels tried one by one, each judged by the rule written out."""
    model = Stepped(noise=0.3)
    promise = OPTIONS.about(model, 3, seed=seed)
    assert promise.margin == "count"
    promise.choose(cheapest)
    refused = promise._refused()
    assert len(refused) == simulated.PEOPLE_SEARCHED

    def will_do(level: float) -> bool:
        points = cheapest(promise.at(level), refused)
        scores = promise.models[20:50].scores(points)
        expected = max(by_normal_scores(scores), by_their_lower_half(scores))
        return min(margin_choice.counted_validity(scores), expected) >= 0.8

    doing = [level for level in LADDER if will_do(level)]
    assert promise.factor == doing[0]
    assert not promise.one_by_one
    first = LADDER.index(doing[0])  # below the levels that no point reaches, verdicts change once, as is assumed
    assert doing == list(LADDER[first : first + len(doing)])


@pytest.mark.parametrize("answer", [None, False])
def test_no_level_will_do(answer: bool | None) -> None:
    tried: list[float] = []
    assert margin_choice.lowest_on_ladder(lambda level: tried.append(level) or answer, LADDER) is None
    assert len(tried) <= margin_choice.verdicts_on_ladder(len(LADDER))
    assert margin_choice.lowest_on_line(lambda level: answer, 1.0) is None


@pytest.mark.parametrize("least", range(len(LADDER)))
def test_a_ladder_is_halved_to_the_first_level_that_will_do(least: int) -> None:
    tried: list[float] = []
    found = margin_choice.lowest_on_ladder(lambda level: tried.append(level) or level >= LADDER[least], LADDER)
    assert found == LADDER[least]
    assert len(tried) <= margin_choice.verdicts_on_ladder(len(LADDER))


def test_refusing_early_never_changes_a_verdict() -> None:
    """Whatever the other people's points are like, where it is refused early it would have been refused."""
    rng, early = np.random.default_rng(0), 0
    for _ in range(400):
        scores = rng.normal(rng.uniform(0.0, 3.0), 1.0, size=(12, 40))
        verdict = margin_choice.reaches(scores, 0.9)
        for _, last in margin_choice.parts_of(40):
            if margin_choice.cannot_reach(scores[:, :last], 0.9, others=40 - last):
                assert not verdict
                early += last < 40
                break
    assert early > 100


@pytest.mark.parametrize("margin", ["spread", "fixed", "count"])
@pytest.mark.parametrize("validity", [0.8, 0.95])
def test_asking_a_few_people_first_chooses_the_same_margin(
    validity: float, margin: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Against the same choice with everybody asked at every margin."""
    options = Simulated(validity=validity, margin=margin, shaping=20, choosing=30, checking=1)
    factors = [chosen(Noisy(NOISES["both"], n=200), options, seed).factor for seed in range(3)]
    monkeypatch.setattr(margin_choice, "parts_of", lambda people: [(0, people)])
    assert [chosen(Noisy(NOISES["both"], n=200), options, seed).factor for seed in range(3)] == factors
    assert len(set(factors)) > 1 or margin == "count"


def test_most_margins_are_refused_after_a_few_people(monkeypatch: pytest.MonkeyPatch) -> None:
    """As many people asked as before only where a margin will do; but a search asks everybody at once, in bulk."""
    monkeypatch.setattr(simulated, "PEOPLE_SEARCHED", 40)
    monkeypatch.setattr(simulated.SimulatedPromise, "readable", True)
    asked: list[int] = []

    def solve(promise: Any, X0: np.ndarray) -> np.ndarray:
        asked.append(len(X0))
        return cheapest(promise, X0)

    promise = Simulated(validity=0.95, shaping=20, choosing=30, checking=1, margin="spread").about(Stepped(0.3), 3)
    promise.choose(solve)
    assert len(promise._refused()) == 30
    assert asked[:2] == [10, 10]  # without a margin, and with a small one
    assert asked[-1] == 20


# --- which margin -------------------------------------------------------------------------------------


def test_the_margin_is_a_spread_unless_said() -> None:
    logistic = LogisticModel.fit(random_training_set(1, n=80))
    for model, margin, solver in ((logistic, "spread", "cutting_plane"), (small_network(), "spread", "sequential")):
        explainer = Rocerf(model, 2, promise="simulated")
        assert (explainer.promise.margin, explainer.solver) == (margin, solver)
    assert Simulated().about(Stepped(), 2).margin == "spread"
    assert Simulated(margin="count").about(Stepped(), 2).margin == "count"
    # The score of a share of models is not concave in x, though every model be affine.
    assert Rocerf(logistic, 2, promise=Simulated(margin="count")).solver == "sequential"


@pytest.mark.slow
def test_a_count_can_be_asked_of_models_with_slopes(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(simulated, "PEOPLE", 5)
    monkeypatch.setattr(sequential, "FULL_STEPS", 5)
    monkeypatch.setattr(sequential, "ROUNDS", 1)
    model = small_network()
    people = model.train.X[model.predict(model.train.X) == 0][:4]
    found = Rocerf(model, 3, promise=Simulated(validity=0.8, margin="count", shaping=15, choosing=20, checking=30))
    answers = found.explain(people)
    assert answers.answered.all()
    assert answers.held_out.validity > 0.75
    assert any("counting the retrained models" in sentence for sentence in answers.settings.assumptions)
