"""The promise by simulation, against a model whose retrainings have a known distribution, and with real ones."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from functools import cache
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from scipy.stats import norm

from networks import DEVICES, finite_differences, moons, people_near, small_network
from noisy import ACCEPTANCE, NOISES, REFUSED, SLOPES, Noisy, chosen, climb
from problems import random_training_set, refused_people
from rocerf import LogisticModel, NeuralModel, Rocerf, Status
from rocerf.baselines import Scfe
from rocerf.deletion.random_deletions import random_deletion_sizes, random_deletions
from rocerf.errors import FileFormatError, OptionError
from rocerf.evaluation import average_validity
from rocerf.models.model import Refittable, Smooth
from rocerf.promises import HeldOut, Simulated, margin_choice, simulated
from rocerf.promises.simulated import SimulatedPromise
from rocerf.recourse.solvers import sequential

pytestmark = pytest.mark.slow  # many small solves and retrainings: half a minute together


@pytest.fixture
def few(monkeypatch: pytest.MonkeyPatch) -> None:
    """Few people decide the margin, roughly, and points are not polished, where it does not matter how well."""
    monkeypatch.setattr(simulated, "PEOPLE", 10)
    monkeypatch.setattr(margin_choice, "HALVINGS", 2)
    monkeypatch.setattr(sequential, "FULL_STEPS", 5)
    monkeypatch.setattr(sequential, "ROUNDS", 1)


def test_the_fake_is_a_model_as_far_as_the_promise_can_tell() -> None:
    assert isinstance(Noisy(NOISES["both"]), Refittable)
    assert isinstance(Noisy(NOISES["both"]), Smooth)


# --- choosing the margin ------------------------------------------------------------------------------


@pytest.mark.parametrize("margin", ["spread", "fixed"])
@pytest.mark.parametrize("noise", NOISES)
def test_the_margin_chosen_reaches_the_validity_asked_and_hardly_more(
    noise: str, margin: str, figures: list[str]
) -> None:
    """Thirty explainers: the exact share of accepting models, for people the choice never saw."""
    model, target = Noisy(NOISES[noise]), 0.9
    options = Simulated(validity=target, margin=margin, checking=1)
    reached = []
    for seed in range(30):
        points = climb(chosen(model, options, seed), REFUSED)
        assert np.isfinite(points).all()
        reached.append(float(model.chances(points).mean()))
    figures.append(
        f"validity asked for 90 %, noise {noise}, margin {margin}: reached by "
        f"{np.mean(np.array(reached) >= target):.0%} of 30 choices, on average {np.mean(reached):.1%}"
    )
    assert np.mean(np.array(reached) >= target) >= 0.85
    assert np.mean(reached) < 0.97  # not by asking for far too much
    fresh = np.random.default_rng(0).normal(size=(20_000, 3)) @ model.noise.T
    scores = points @ (SLOPES + fresh[:, :2]).T + ACCEPTANCE + fresh[:, 2]
    assert (scores >= 0).mean() == pytest.approx(reached[-1], abs=0.01)  # the exact share is what drawing gives


def test_a_share_so_near_to_all_cannot_be_shown_by_so_few_models_where_people_share_their_fate() -> None:
    """60 models that all accept show 95 % of models with 95 % confidence, not 99 %: then more must be asked for."""
    model, options = Noisy(NOISES["shared by people"]), Simulated(checking=1)
    assert (options.validity, options.choosing) == (0.99, 60)
    reached = []
    for seed in range(30):
        promise = chosen(model, options, seed)
        if promise.one_by_one:
            continue  # no margin was found: an honest answer, too
        reached.append(float(model.chances(climb(promise, REFUSED)).mean()) >= 0.99)
    assert np.mean(reached or [True]) >= 0.85


@pytest.mark.parametrize("margin", ["spread", "fixed"])
def test_no_smaller_margin_of_the_search_would_have_done(margin: str) -> None:
    """The rule written out, over the choosing models, at the factor and one step below it.

    The share counted less 1.645 of its standard errors, and the share expected of normal scores at each point, whose
    distance from 0 in standard deviations is lowered by 1.645 of *its* standard errors.
    """
    model, options = Noisy(NOISES["both"]), Simulated(validity=0.9, margin=margin, checking=1)
    promise = chosen(model, options, seed=3)
    X0 = model.train.X[model.predict(model.train.X) == 0]

    def reaches(factor: float) -> bool:
        scores = promise.models[40:100].scores(climb(promise.at(factor), X0))
        shares = (scores >= 0).mean(axis=1)
        expected = []
        for column in scores.T:
            distance = np.mean(column) / np.std(column, ddof=1)
            expected.append(norm.cdf(distance - 1.645 * np.sqrt((1 + distance**2 / 2) / 60)))
        return bool(shares.mean() - 1.645 * shares.std(ddof=1) / np.sqrt(60) >= 0.9 and np.mean(expected) >= 0.9)

    unit = 1.0 if margin == "spread" else float(model.score(model.train.X).std())
    grid = [0.0, *(unit * 0.5 * 2.0**i for i in range(6))]
    high = next(factor for factor in grid if reaches(factor))
    low = grid[grid.index(high) - 1]
    width = (high - low) / 16
    assert promise.factor is not None
    assert reaches(promise.factor)
    assert not reaches(promise.factor - width)
    assert low < promise.factor <= high


def test_the_people_who_decide_are_refused_training_rows() -> None:
    model = Noisy(NOISES["both"], n=900)
    seen: list[np.ndarray] = []

    def solve(promise: SimulatedPromise, X0: np.ndarray) -> np.ndarray:
        seen.append(X0)
        return climb(promise, X0)

    Simulated(validity=0.9, checking=1).about(model, 6).choose(solve)
    rows = {tuple(row) for row in model.train.X[model.predict(model.train.X) == 0]}
    tried: list[np.ndarray] = []
    for X0 in seen:  # the same people at each margin, a few of them first, which often is enough
        if len(X0) == 10:
            tried.append(X0)
        else:
            tried[-1] = np.concatenate([tried[-1], X0])
    everybody = max(tried, key=len)
    assert len(everybody) == 200
    assert {tuple(row) for row in everybody} < rows
    assert all((everybody[: len(X0)] == X0).all() for X0 in tried)
    assert min(map(len, tried)) < 200


def test_people_without_an_answer_do_not_count_in_choosing() -> None:
    model, options = Noisy(NOISES["both"]), Simulated(validity=0.9, checking=1)
    promise = options.about(model, 6)

    def half(asked: SimulatedPromise, X0: np.ndarray) -> np.ndarray:
        points = climb(asked, X0)
        points[::2] = np.nan
        return points

    promise.choose(half)
    assert promise.factor == pytest.approx(chosen(model, options, 0).factor, rel=0.5)


def test_a_margin_too_large_for_everybody_is_searched_below() -> None:
    """At twice the spread nobody finds a point; the factor is then looked for between that and the last one tried."""
    model = Noisy(NOISES["both"])
    promise = Simulated(validity=0.9, checking=1).about(model, 6)

    def solve(asked: Any, X0: np.ndarray) -> np.ndarray:
        return np.full_like(X0, np.nan) if asked.factor >= 2.0 else climb(asked, X0)

    promise.choose(solve)
    assert promise.factor is not None
    assert 1.0 < promise.factor < 2.0


def test_an_explainer_is_not_loaded_with_another_model(tmp_path: Path) -> None:
    """What was chosen or proven for one model says nothing about another."""
    explainer = Rocerf(logistic(), 1, promise="certified")
    explainer.explain(refused_people(logistic(), 0, 2))
    explainer.save(tmp_path / "explainer")
    assert Rocerf.load(tmp_path / "explainer", model=logistic()).k == 1
    with pytest.raises(FileFormatError, match="the model that the explainer was saved with"):
        Rocerf.load(tmp_path / "explainer", model=LogisticModel.fit(logistic().train, C=0.01))


def test_nothing_is_said_about_a_person_without_a_point() -> None:
    held_out = HeldOut(np.array([3, -1]), np.full(4, 1.0), drawn=4, confidence=0.95)
    assert held_out.sentence_of(1) == "nothing was checked"
    assert np.isnan(held_out.bound_of(1))


def test_the_promise_cannot_be_read_before_its_margin_is_chosen() -> None:
    promise = Simulated().about(Noisy(NOISES["both"]), 6)
    with pytest.raises(OptionError, match="the margin to be chosen before"):
        promise.read(REFUSED)


# --- three groups that share nothing ------------------------------------------------------------------------


def test_all_models_are_trained_together_and_each_has_its_own_seed_and_deletion() -> None:
    model = Noisy(NOISES["both"], n=400)
    promise = Simulated(shaping=30, choosing=50, checking=70).about(model, 40, seed=5)
    promise.simulate()
    promise.simulate()
    _ = promise.models
    ((deletions, retraining, _),) = model.asked  # once
    assert (len(deletions), retraining) == (150, "fresh")
    assert len({rows for rows in deletions if rows}) == len([rows for rows in deletions if rows])
    sizes = [len(rows) for rows in deletions]
    assert (min(sizes), max(sizes)) == (0, 40)
    assert np.mean(sizes) == pytest.approx(20, abs=3)  # all sizes from 0 to k are equally likely
    parts = [promise._shaping, promise._choosing, promise._checking]
    assert [len(part) for part in parts] == [30, 50, 70]
    constants = np.concatenate([part.constants for part in parts])
    np.testing.assert_array_equal(constants, promise.models.constants)
    assert len(set(constants.tolist())) == 150


def test_networks_of_the_three_groups_start_from_different_seeds(monkeypatch: pytest.MonkeyPatch) -> None:
    model = small_network()
    seen: list[int] = []
    stack = type(model.retrainer).stack

    def spy(self: Any, work: Any) -> Any:
        seen.extend(work.seeds)
        return stack(self, work)

    monkeypatch.setattr(type(model.retrainer), "stack", spy)
    Simulated(shaping=4, choosing=5, checking=6).about(model, 3, seed=0).simulate()
    assert len(set(seen)) == len(seen) == 15
    simulated_seeds = set(seen)
    seen.clear()
    average_validity(model, people_near(model, 3), 0.05, trials=8, seed=0)  # with the same seed as the promise
    assert len(seen) == 8
    assert not simulated_seeds & set(seen)


def test_whoever_evaluates_with_the_same_seed_does_not_meet_the_same_deletions() -> None:
    model = Noisy(NOISES["both"])
    Simulated().about(model, 6, seed=0).simulate()
    ((deletions, _, stream),) = model.asked
    assert stream != 0
    others = {tuple(ids.tolist()) for ids in random_deletions(model.train, 6, 200, seed=0)}
    assert not others & {rows for rows in deletions if len(rows) == 6}


@pytest.mark.usefixtures("few")
@pytest.mark.parametrize("margin", ["spread", "fixed"])
def test_choosing_never_sees_the_models_that_check(margin: str) -> None:
    options = Simulated(validity=0.9, margin=margin, shaping=20, choosing=30, checking=40)
    found = {
        name: Rocerf(Noisy(NOISES["both"], spoil=spoil), 6, promise=options, seed=2).explain(REFUSED[:40])
        for name, spoil in {
            "none": (slice(0, 0), 0.0),
            "checking": (slice(50, 90), -1.0),
            "choosing": (slice(20, 50), -1.0),
            "shaping": (slice(0, 20), -1.0),
        }.items()
    }
    np.testing.assert_array_equal(found["checking"].matrix, found["none"].matrix)
    assert found["checking"].held_out.validity < found["none"].held_out.validity - 0.2  # but they do judge
    assert found["choosing"].costs.mean() > found["none"].costs.mean() + 0.1
    assert found["choosing"].held_out.validity > found["none"].held_out.validity
    if margin == "fixed":  # one margin for everybody has no shape
        np.testing.assert_array_equal(found["shaping"].matrix, found["none"].matrix)
    else:
        assert np.abs(found["shaping"].matrix - found["none"].matrix).max() > 1e-3


@pytest.mark.usefixtures("few")
def test_the_seed_decides_everything() -> None:
    options = Simulated(validity=0.9, checking=10)
    first, again, other = (
        Rocerf(Noisy(NOISES["both"]), 6, promise=options, seed=seed).explain(REFUSED[:5]) for seed in (1, 1, 2)
    )
    np.testing.assert_array_equal(first.matrix, again.matrix)
    assert first.held_out.to_dict() == again.held_out.to_dict()
    assert np.abs(first.matrix - other.matrix).max() > 1e-3


# --- value and slope --------------------------------------------------------------------------------


@cache
def logistic() -> LogisticModel:
    return LogisticModel.fit(random_training_set(1, n=80), C=1.0)


MODELS = {"noisy": lambda: Noisy(NOISES["both"]), "logistic": logistic, "network": small_network}


def with_factor(model: Any, factor: float, k: int = 8, **options: Any) -> SimulatedPromise:
    given = {"shaping": 7, "choosing": 2, "checking": 1} | options
    return Simulated(**given).about(model, k, seed=1).at(factor)


@pytest.mark.parametrize("name", MODELS)
@pytest.mark.parametrize("factor", [0.0, 1.7])
def test_the_value_is_mean_less_factor_times_deviation_and_never_above_the_model(
    name: str, factor: float, monkeypatch: pytest.MonkeyPatch
) -> None:
    model = MODELS[name]()
    X = people_near(model, 15)
    promise = with_factor(model, factor)
    scores = promise.models[:7].scores(X)
    expected = []
    for j in range(15):
        column = scores[:, j]
        mean = sum(column) / 7
        deviation = (sum((s - mean) ** 2 for s in column) / 6) ** 0.5
        expected.append(min(mean - factor * deviation, float(model.score(X[[j]])[0])))
    np.testing.assert_allclose(promise.read(X).values, expected, atol=1e-9)
    monkeypatch.setattr(simulated, "BLOCK", 14)  # two people at a time
    np.testing.assert_allclose(promise.read(X).values, expected, atol=1e-9)
    assert promise.read(X[:0]).values.shape == (0,)
    fixed = with_factor(model, factor, margin="fixed")
    np.testing.assert_allclose(fixed.read(X).values, model.score(X) - factor, atol=1e-12)


@pytest.mark.parametrize("margin", ["spread", "fixed"])
@pytest.mark.parametrize("name", MODELS)
def test_slopes_match_finite_differences(name: str, margin: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(simulated, "BLOCK", 21)  # three people at a time
    model = MODELS[name]()
    promise = with_factor(model, 1.7, margin=margin)
    X, spread = people_near(model, 7), model.train.spread
    slopes = promise.read(X).slopes
    for j, x in enumerate(X):
        differences = finite_differences(lambda x: promise.read(x[None]).values, x, 1e-5 * spread)[0]
        np.testing.assert_allclose(slopes[j] * spread, differences * spread, atol=1e-6)


def test_models_that_all_agree_leave_no_spread_to_divide_by() -> None:
    model = Noisy(np.zeros((3, 3)))
    reading = with_factor(model, 2.0).read(REFUSED[:4])
    np.testing.assert_allclose(reading.values, model.score(REFUSED[:4]), atol=1e-9)
    assert np.isfinite(reading.slopes).all()


# --- real models --------------------------------------------------------------------------------------

FEW = Simulated(validity=0.9, shaping=12, choosing=20, checking=25)


def explainer_for(model: Any, k: Any = 4, seed: int = 0, **options: Any) -> Rocerf:
    return Rocerf(model, k, promise=replace(FEW, **options), seed=seed)


@cache
def network(device: str = "cpu") -> NeuralModel:
    return NeuralModel.fit(moons(100), epochs=60, learning_rate=0.5, width=5, weight_decay=0.003, device=device)


@pytest.mark.usefixtures("few")
@pytest.mark.parametrize("device", DEVICES)
@pytest.mark.parametrize("margin", ["spread", "fixed"])
@pytest.mark.parametrize("retraining", ["fresh", "warm"])
def test_networks_really_retrained_accept_the_points(retraining: str, margin: str, device: str) -> None:
    model = network(device)
    people = refused_people(model, 0, 10)
    explainer = explainer_for(model, retraining=retraining, margin=margin)
    assert explainer.solver == "sequential"
    recourses = explainer.explain(people)
    assert recourses.answered.all()
    how = "from a new start" if retraining == "fresh" else "on from its present parameters"
    assert how in recourses.settings.sentence
    assert recourses.held_out.validity >= 0.85
    assert (model.score(recourses.matrix) >= 0).all()
    assert average_validity(model, recourses.matrix, 0.04, trials=20, seed=7, retraining=retraining).mean >= 0.85
    if retraining == "fresh":  # it has its price
        assert recourses.costs.mean() > 1.02 * Scfe(model).explain(people).costs.mean()


@pytest.mark.usefixtures("few")
@pytest.mark.parametrize("margin", ["spread", "fixed"])
def test_logistic_models_really_retrained_accept_the_points(margin: str) -> None:
    model = logistic()
    explainer = explainer_for(model, 8, margin=margin, shaping=30, choosing=60, checking=60)
    recourses = explainer.explain(refused_people(model, 0, 20))
    assert recourses.answered.all()
    assert recourses.settings.solver == "cutting_plane"
    assert recourses.held_out.validity >= 0.85
    assert average_validity(model, recourses.matrix, 0.1, trials=40, seed=9).mean >= 0.75  # always all k rows


@pytest.mark.usefixtures("few")
def test_k_is_a_twentieth_of_the_rows_unless_said() -> None:
    model = logistic()
    assert Rocerf(model, promise="simulated").k == 4  # of 80
    assert Rocerf(model, promise=FEW).k == 4
    assert Rocerf(small_network(), promise="simulated").k == 5  # of 90, rounded up
    with pytest.raises(OptionError, match="Expected k, the number of deletions to withstand, got none"):
        Rocerf(model, promise="first_order")
    recourses = Rocerf(model, promise=FEW).explain(refused_people(model, 0, 3))
    assert recourses.settings.k == 4
    assert "up to 4 training rows" in recourses[0].promise


@pytest.mark.usefixtures("few")
def test_with_nothing_deleted_an_exact_model_needs_no_margin_and_a_network_still_does() -> None:
    exact = explainer_for(logistic(), 0)
    recourses = exact.explain(refused_people(logistic(), 0, 3))
    assert exact.promise.factor == 0.0
    assert recourses.held_out.validity == 1.0
    fresh = explainer_for(network(), 0)
    assert fresh.explain(refused_people(network(), 0, 8)).held_out.validity >= 0.8
    assert fresh.promise.factor > 0.0


@pytest.mark.usefixtures("few")
def test_a_network_trained_on_without_deletions_moves_too() -> None:
    """Training on from the present parameters is more training, even where no row is gone."""
    model = NeuralModel.fit(moons(100), epochs=25, learning_rate=0.3, width=5)
    recourses = explainer_for(model, 0, retraining="warm").explain(refused_people(model, 0, 8))
    assert recourses.held_out.validity >= 0.8


def test_a_class_that_can_vanish_is_told_before_anything_is_retrained(monkeypatch: pytest.MonkeyPatch) -> None:
    model = network()
    monkeypatch.setattr(NeuralModel, "refitted", lambda *_, **__: pytest.fail("nothing should be retrained"))
    recourses = explainer_for(model, 50).explain(refused_people(model, 0, 2))
    assert recourses.statuses == (Status.PROMISE_IMPOSSIBLE,) * 2
    accepted = model.train.X[model.predict(model.train.X) == 1][:2]
    assert explainer_for(model, 3).explain(accepted).held_out is None


@pytest.mark.usefixtures("few")
def test_the_margin_is_chosen_once_for_everybody() -> None:
    model = Noisy(NOISES["both"])
    explainer = explainer_for(model, 6)
    first, second = explainer.explain(REFUSED[:5]), explainer.explain(REFUSED[3:9])
    assert len(model.asked) == 1
    np.testing.assert_allclose(first.matrix[3:], second.matrix[:2], rtol=1e-6)
    assert first.held_out.retrainings == second.held_out.retrainings == 25


@pytest.mark.usefixtures("few")
def test_progress_tells_of_the_retraining_and_may_interrupt_it() -> None:
    told: list[tuple[int, int]] = []

    class StopError(Exception):
        pass

    def stop(done: int, total: int) -> None:
        told.append((done, total))
        if len(told) == 2:
            raise StopError

    explainer = explainer_for(logistic())
    with pytest.raises(StopError):
        explainer.explain(refused_people(logistic(), 0, 2), progress=stop)
    assert [done for done, _ in told] == sorted(done for done, _ in told)
    assert {total for _, total in told} == {1000}
    assert 0 < told[0][0] < told[1][0] < 100
    assert explainer.explain(refused_people(logistic(), 0, 2)).answered.all()  # and it can be asked again


# --- files ------------------------------------------------------------------------------------------


@pytest.mark.usefixtures("few")
@pytest.mark.parametrize("margin", ["spread", "fixed"])
@pytest.mark.parametrize("make", [logistic, network], ids=["logistic", "network"])
def test_an_explainer_comes_back_with_its_margin_and_its_models(
    make: Any, margin: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    model = make()
    people = refused_people(model, 0, 4)
    explainer = explainer_for(model, 3, margin=margin, seed=4)
    recourses = explainer.explain(people)
    explainer.save(tmp_path / "explainer")
    for kind in (LogisticModel, NeuralModel):
        monkeypatch.setattr(kind, "refitted", lambda *_, **__: pytest.fail("nothing should be retrained"))
    again = Rocerf.load(tmp_path / "explainer")
    assert again.promise.options == explainer.promise.options
    assert again.promise.factor == explainer.promise.factor
    found = again.explain(people)
    np.testing.assert_array_equal(found.matrix, recourses.matrix)
    assert found.held_out.to_dict() == recourses.held_out.to_dict()
    assert found.settings == recourses.settings


@pytest.mark.usefixtures("few")
def test_an_explainer_saved_before_it_was_asked_answers_the_same(tmp_path: Path) -> None:
    people = refused_people(logistic(), 0, 4)
    explainer = explainer_for(logistic(), 3)
    explainer.save(tmp_path / "explainer")
    again = Rocerf.load(tmp_path / "explainer")
    assert again.promise.factor is None
    np.testing.assert_array_equal(again.explain(people).matrix, explainer.explain(people).matrix)


@pytest.mark.usefixtures("few")
def test_a_folder_written_over_keeps_nothing_of_what_it_held(tmp_path: Path) -> None:
    """The margin of another explainer must not be taken for this one's."""
    first = explainer_for(logistic(), 8)
    first.explain(refused_people(logistic(), 0, 2))
    first.save(tmp_path / "explainer")
    explainer_for(logistic(), 2).save(tmp_path / "explainer")
    again = Rocerf.load(tmp_path / "explainer")
    assert again.k == 2
    assert again.promise.factor is None


# --- options ------------------------------------------------------------------------------------------

BAD_OPTIONS: list[tuple[dict[str, Any], str]] = [
    *[
        ({name: value}, f"{name} between 0 and 1, got .*; use for example")
        for name in ("validity", "confidence")
        for value in (0.0, 1.0, -0.1, 99, np.nan, True, "0.9", None)
    ],
    ({"retraining": "cold"}, "retraining to be fresh or warm .*got 'cold'"),
    ({"retraining": None}, "retraining to be fresh or warm"),
    ({"margin": "wide"}, "margin to be auto, spread, count or fixed, got 'fresh' and 'wide'"),
    *[
        ({name: value}, f"{name} to be a whole number >= 1")
        for name in ("shaping", "choosing", "checking")
        for value in (0, -1, 2.5, "x", None)
    ],
    ({"shaping": 1}, "shaping to be at least 2 retrained models, got 1"),
    ({"choosing": 1}, "choosing to be at least 2 retrained models, got 1"),
]


@pytest.mark.parametrize(("options", "message"), BAD_OPTIONS, ids=lambda value: str(value)[:40])
def test_bad_options(options: dict[str, Any], message: str) -> None:
    with pytest.raises(OptionError, match=message):
        Simulated(**options)


def test_only_what_can_be_trained_again_can_be_simulated() -> None:
    for stranger in (None, "german", logistic().train):
        with pytest.raises(OptionError, match="a model that can be trained again for the promise 'simulated'"):
            Simulated().about(stranger, 3)


def test_solvers_that_need_more_than_the_promise_has_are_refused(bare: Callable[[LogisticModel], Any]) -> None:
    with pytest.raises(OptionError, match="Expected solver"):
        Rocerf(logistic(), 3, promise=FEW, solver="guess")
    for solver in ("cutting_plane", "sequential"):  # of a model that is not linear, or has no slopes
        with pytest.raises(OptionError, match="Expected solver='search' for the promise 'simulated'"):
            Rocerf(bare(logistic()), 3, promise=FEW, solver=solver)


@pytest.mark.usefixtures("few")
def test_a_margin_that_is_chosen_cannot_be_calibrated_as_well() -> None:
    """One of the two must be refused in words that say so, or both must work."""
    people = refused_people(logistic(), 0, 2)
    try:
        recourses = Rocerf(logistic(), 3, promise=FEW, delta="calibrate").explain(people)
    except OptionError as error:
        assert "calibrate" in str(error)  # noqa: PT017
        return
    assert recourses.answered.all()


def test_sizes_of_deletions_are_drawn_evenly_and_by_seed() -> None:
    sizes = random_deletion_sizes(5, 6000, seed=3)
    counts = np.bincount(sizes, minlength=6)
    assert len(counts) == 6
    assert counts.min() > 850
    np.testing.assert_array_equal(sizes, random_deletion_sizes(5, 6000, seed=3))
    assert (sizes != random_deletion_sizes(5, 6000, seed=4)).any()
    assert random_deletion_sizes(0, 4, seed=0).tolist() == [0, 0, 0, 0]
