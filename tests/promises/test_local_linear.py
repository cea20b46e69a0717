"""The linear stand-in around each person: against the network it stands for, and against its formulas written out."""

from __future__ import annotations

from functools import cache
from typing import Any

import numpy as np
import pytest
import torch
from scipy.special import expit
from sklearn.linear_model import LogisticRegression

from networks import moons, small_network
from problems import random_training_set, refused_people
from rocerf import FeatureSchema, LogisticModel, NeuralModel, Rocerf, Status, TrainingSet
from rocerf.errors import OptionError, UnsupportedModelError
from rocerf.models import local_linear
from rocerf.models.local_linear import LocalLinearModel
from rocerf.models.model import LinearModel
from rocerf.promises import FirstOrder, LocalLinear
from rocerf.recourse.costs.cost import Norm
from rocerf.recourse.costs.norms import NormCost
from rocerf.recourse.master.feasible_set import FeasibleSet
from rocerf.recourse.master.master import Master
from rocerf.recourse.solvers.cutting_plane import solve_by_cuts
from rocerf.recourse.solvers.solving import Solver

pytestmark = pytest.mark.slow  # many small solves and retrainings: half a minute together

WEIGHTS, BIAS = np.array([0.02, -3.0, 0.5]), 0.4


@cache
def straight() -> NeuralModel:
    """A network that is a straight line, on columns in different units."""
    rng = np.random.default_rng(0)
    X = rng.normal(size=(120, 3)) * [50.0, 0.3, 2.0] + [10.0, 0.1, 1.0]
    y = (X @ WEIGHTS + BIAS + rng.normal(size=120) > 0).astype(int)
    line = torch.nn.Linear(3, 1)
    line.weight.data, line.bias.data = torch.tensor(WEIGHTS[None]), torch.tensor([BIAS])
    return NeuralModel.from_torch(line, TrainingSet(X, y, sample_weight=rng.uniform(0.5, 2.0, 120)))


@cache
def curved() -> NeuralModel:
    return NeuralModel.fit(moons(120), epochs=150, learning_rate=0.5, width=6, weight_decay=0.001, seed=1)


class Counted:
    """A model that remembers the clouds it was asked about."""

    def __init__(self, model: Any) -> None:
        self.train, self._model, self.asked = model.train, model, []

    def score(self, X: np.ndarray) -> np.ndarray:
        self.asked.append(X)
        return self._model.score(X)


# --- the stand-in -----------------------------------------------------------------------------------------


def before_the_line(distance: float, seed: int) -> np.ndarray:
    """A person of ``straight()`` who is refused by so many standard deviations."""
    model, rng = straight(), np.random.default_rng(seed)
    spread = model.train.spread
    person, normal = model.train.X[rng.integers(len(model.train))], WEIGHTS * spread
    return (
        person
        - (model.score(person[None])[0] / np.linalg.norm(normal) + distance) * normal / np.linalg.norm(normal) * spread
    )


@pytest.mark.parametrize(("distance", "cosine"), [(0.02, 0.999), (0.1, 0.999), (0.2, 0.995), (1.0, 0.95)])
@pytest.mark.parametrize("seed", range(3))
def test_the_stand_in_of_a_straight_line_is_that_line(seed: int, distance: float, cosine: float) -> None:
    """The further the line, the fewer points of the cloud are beyond it to show where it runs."""
    model, person = straight(), before_the_line(distance, seed)
    spread = model.train.spread
    normal = WEIGHTS * spread
    local = LocalLinearModel.around(model, person, seed=seed)
    slopes, constant = local.halfspaces(local.theta)
    assert slopes * spread @ normal / np.linalg.norm(slopes * spread) / np.linalg.norm(normal) > cosine
    found = -(slopes @ person + constant) / np.linalg.norm(slopes * spread)
    assert found == pytest.approx(distance, rel=0.1, abs=0.003)
    near = person + 0.1 * np.random.default_rng(9).normal(size=(500, 3)) * spread
    assert (local.predict(near) == model.predict(near)).mean() > 0.97


def test_the_stand_in_agrees_with_a_bent_network_near_people_near_the_boundary() -> None:
    model = curved()
    rng = np.random.default_rng(0)
    scores, slopes = model.score_and_slope(model.train.X)
    steep = np.linalg.norm(slopes * model.train.spread, axis=1)
    close = model.train.X[np.abs(scores) < 0.2 * steep]
    assert len(close) >= 4
    for person in close:
        local = LocalLinearModel.around(model, person)
        near = person + 0.1 * rng.normal(size=(400, 2)) * model.train.spread
        assert (local.predict(near) == model.predict(near)).mean() > 0.95


@pytest.mark.parametrize("distance", [0.05, 0.6, 2.0])
def test_the_cloud_widens_until_the_network_decides_both_ways(distance: float) -> None:
    model, person, spread = Counted(straight()), before_the_line(distance, 0), straight().train.spread
    assert straight().score(person[None])[0] == pytest.approx(-distance * np.linalg.norm(WEIGHTS * spread))
    assert LocalLinearModel.around(model, person, seed=3) is not None
    widths = [float(((X - person) / spread).std()) for X in model.asked]
    np.testing.assert_allclose(widths, 0.1 + 0.05 * np.arange(len(widths)), rtol=0.02)
    decided = [np.unique(straight().score(X) >= 0).size for X in model.asked]
    assert decided == [1] * (len(decided) - 1) + [2]
    assert all(X.shape == (10_000, 3) for X in model.asked)
    # Of 10,000 normal numbers the largest is between 3 and 5 standard deviations out.
    assert distance / 5 - 0.05 < widths[-1] < max(0.11, distance / 3 + 0.05)


def test_where_the_network_decides_one_way_there_is_no_stand_in() -> None:
    model = Counted(straight())
    far = straight().train.X.mean(axis=0) - 200 * np.sign(WEIGHTS) * straight().train.spread
    assert LocalLinearModel.around(model, far) is None
    assert len(model.asked) == 99  # widths 0.1, 0.15, ..., 5
    assert LocalLinear(straight(), 2).for_person(far) is None


def test_the_seed_draws_the_cloud() -> None:
    person = refused_people(curved(), 0, 1)[0]
    first, again, other = (LocalLinearModel.around(curved(), person, seed=seed).theta for seed in (1, 1, 2))
    np.testing.assert_array_equal(first, again)
    assert np.abs(first - other).max() > 0


def test_the_stand_in_minimises_the_weighted_loss_of_the_cloud() -> None:
    """No slope is left in the objective written out: weights fall with the distance, C is 10,000."""
    person = refused_people(curved(), 0, 1)[0]
    asked = Counted(curved())
    local = LocalLinearModel.around(asked, person, seed=4)
    cloud = asked.asked[-1]
    u = (cloud - person) / curved().train.spread
    u = u * local_linear.WIDTH / (0.1 + 0.05 * (len(asked.asked) - 1))  # the kernel widens with the cloud
    weights = np.exp(-(u**2).sum(axis=1))
    weights /= weights.max()
    design = np.column_stack([cloud / curved().train.spread, np.ones(len(cloud))])
    labels = curved().score(cloud) >= 0
    slope = design.T @ (weights * (expit(design @ local.theta) - labels))
    slope[:-1] += local.theta[:-1] / 1e4
    assert np.abs(slope).max() < 1e-6 * weights.sum()


# --- points drawn as in the paper's code --------------------------------------------------------------------


@pytest.mark.parametrize("distance", [0.02, 0.3, 2.0])
@pytest.mark.parametrize("seed", range(3))
def test_the_authors_draw_one_point_wider_until_it_is_accepted_and_the_rest_beside(seed: int, distance: float) -> None:
    model, person, spread = Counted(straight()), before_the_line(distance, seed), straight().train.spread
    assert LocalLinearModel.around(model, person, seed=seed, sampling="authors") is not None
    *tries, cloud = model.asked
    tried = np.vstack(tries)
    accepted = straight().score(tried) >= 0
    first = int(np.argmax(accepted))
    assert accepted[first]
    assert first // 100 == len(tries) - 1  # nobody is asked about once one is accepted, but for the rest of a hundred
    np.testing.assert_allclose(cloud[0], tried[first])
    steps = (tried - person) / spread / (0.1 + 0.05 * np.arange(len(tried)))[:, None]
    assert np.abs(steps.mean()) < 0.3
    assert steps.std() == pytest.approx(1.0, abs=0.2)
    others = (cloud[1:] - person) / spread
    assert others.shape == (9_999, 3)
    assert others.std(axis=0) == pytest.approx(np.full(3, 0.1), rel=0.03)
    if distance == 2.0:
        assert (straight().score(cloud) >= 0).sum() == 1


@pytest.mark.parametrize("distance", [0.02, 0.3, 2.0])
def test_the_authors_stand_in_is_liblinears_fit_in_standardised_columns(distance: float) -> None:
    model, person = Counted(straight()), before_the_line(distance, 1)
    local = LocalLinearModel.around(model, person, seed=1, sampling="authors")
    train, cloud = model.train, model.asked[-1]
    weights = np.exp(-(((cloud - person) / train.spread) ** 2).sum(axis=1))
    fit = LogisticRegression(C=1e4, solver="liblinear", tol=1e-8, max_iter=10_000)
    fit.fit((cloud - train.X.mean(axis=0)) / train.spread, straight().score(cloud) >= 0, sample_weight=weights)
    np.testing.assert_allclose(local.theta, np.append(fit.coef_[0], fit.intercept_), rtol=1e-3, atol=1e-3)
    np.testing.assert_allclose(
        local.score(person[None]),
        fit.decision_function(((person - train.X.mean(axis=0)) / train.spread)[None]),
        rtol=1e-3,
    )


def test_the_authors_draws_are_a_persons_own() -> None:
    """By the seed and the person, whoever else is asked for: not the same numbers for everybody."""
    people, drawn = [before_the_line(0.5, seed) for seed in (0, 1)], []
    for person, seed in ((0, 7), (0, 7), (1, 7), (0, 8)):
        model = Counted(straight())
        LocalLinearModel.around(model, people[person], seed=seed, sampling="authors")
        drawn.append((model.asked[-1][1:] - people[person]) / model.train.spread)
    np.testing.assert_array_equal(drawn[0], drawn[1])
    assert np.abs(drawn[0] - drawn[2]).max() > 0.1
    assert np.abs(drawn[0] - drawn[3]).max() > 0.1
    zero, minus = (
        LocalLinearModel.around(straight(), np.array([x, 0.1, -4.0]), sampling="authors").theta for x in (0.0, -0.0)
    )
    np.testing.assert_array_equal(zero, minus)


def test_where_the_authors_draws_are_decided_one_way_there_is_no_stand_in(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(local_linear, "TRIES", 300)
    model, spread = Counted(straight()), straight().train.spread
    far = straight().train.X.mean(axis=0) - 2000 * np.sign(WEIGHTS) * spread
    assert LocalLinearModel.around(model, far, sampling="authors") is None
    assert [len(X) for X in model.asked] == [100] * 3
    inside = straight().train.X.mean(axis=0) + 20 * np.sign(WEIGHTS) * spread
    assert LocalLinearModel.around(straight(), inside, sampling="authors") is None


@pytest.mark.parametrize("make", [straight, curved, small_network], ids=["straight", "curved", "small"])
def test_recourse_with_the_authors_draws(make: Any) -> None:
    model = make()
    people = refused_people(model, 3, 5)
    promise = LocalLinear(model, 2, sampling="authors", seed=4)
    recourses = Rocerf(model, 2, promise=promise).explain(people)
    assert recourses.answered.sum() >= 3
    assert (model.score(recourses.matrix[recourses.answered]) >= 0).all()
    for i in np.flatnonzero(recourses.answered):
        assert promise.for_person(people[i]).read(recourses.matrix[[i]]).values[0] >= 0
        np.testing.assert_array_equal(
            Rocerf(model, 2, promise=promise).explain(people[[i]]).matrix[0], recourses.matrix[i]
        )
    assert recourses.settings.promise == "local_linear"
    assert any("drawn as in the paper's code" in sentence for sentence in recourses.settings.assumptions)
    assert not any("drawn as" in sentence for sentence in LocalLinear(model, 2).assumptions)


def test_ways_of_drawing_that_are_none() -> None:
    with pytest.raises(OptionError, match="sampling to be one of widened, authors, got 'paper'"):
        LocalLinear(straight(), 2, sampling="paper")  # type: ignore[arg-type]
    with pytest.raises(OptionError, match="sampling to be one of widened, authors"):
        LocalLinearModel.around(straight(), straight().train.X[0], sampling=None)  # type: ignore[arg-type]


# --- its first order --------------------------------------------------------------------------------------


@pytest.mark.parametrize("make", [straight, small_network], ids=["straight", "network"])
def test_gradients_and_curvature_are_those_of_the_rows_at_the_stand_in(make: Any) -> None:
    model = make()
    local = LocalLinearModel.around(model, refused_people(model, 0, 1)[0])
    train = model.train
    omega = np.ones(len(train)) if train.weights is None else train.weights
    gradients, H = [], 0.01 * len(train) * np.eye(4)
    for x, y, w in zip(train.X, train.y, omega, strict=True):
        row = np.append(x / train.spread, 1.0)
        p = expit(row @ local.theta)
        gradients.append(w * (p - y) * row)
        H += w * p * (1 - p) * np.outer(row, row)
    np.testing.assert_allclose(local.row_gradients(), gradients, atol=1e-10)
    np.testing.assert_allclose(local.row_gradients(np.array([5, 2])), np.array(gradients)[[5, 2]], atol=1e-10)
    np.testing.assert_allclose(local.curvature().hessian, H, rtol=1e-10)
    vectors = np.eye(4)
    np.testing.assert_allclose(local.curvature().solve(vectors), np.linalg.inv(H), rtol=1e-8, atol=1e-12)
    assert isinstance(local, LinearModel)
    # And the promise made with them is the sum of the k most harmful.
    promise = LocalLinear(model, 3).for_person(refused_people(model, 0, 1)[0])
    X = train.X[:5]
    for j, x in enumerate(X):
        row = np.append(x / train.spread, 1.0)
        effects = np.sort(np.array(gradients) @ np.linalg.solve(H, row))[:3]
        value = row @ local.theta + np.minimum(effects, 0).sum()
        assert promise.read(X).values[j] == pytest.approx(value, abs=1e-8)


def test_scores_slopes_and_shifts_of_the_stand_in_agree() -> None:
    model = straight()
    local = LocalLinearModel.around(model, refused_people(model, 0, 1)[0])
    X = model.train.X[:6]
    scores, slopes = local.score_and_slope(X)
    np.testing.assert_allclose(scores, local.score(X), rtol=1e-10, atol=1e-8)
    np.testing.assert_allclose(scores, local.score_gradient(X) @ local.theta, rtol=1e-10, atol=1e-8)
    assert local.predict(X).tolist() == (scores >= 0).astype(int).tolist()
    shifts = np.random.default_rng(0).normal(size=(6, 4))
    values, moved = local.shifted_score(shifts)(X)
    expected = [local.score_gradient(x[None])[0] @ (local.theta + s) for x, s in zip(X, shifts, strict=True)]
    np.testing.assert_allclose(values, expected, rtol=1e-9, atol=1e-8)
    np.testing.assert_allclose(moved - slopes, shifts[:, :3] / model.train.spread, rtol=1e-6, atol=1e-8)


def test_a_stand_in_has_no_training_of_its_own() -> None:
    local = LocalLinearModel.around(straight(), refused_people(straight(), 0, 1)[0])
    with pytest.raises(UnsupportedModelError, match="retrain the model it stands in for"):
        local.without([0])


# --- recourse with it -----------------------------------------------------------------------------------


def alone(model: NeuralModel, person: np.ndarray, norm: str = "l2") -> Master:
    return Master(
        person[None], NormCost(Norm(norm), np.asarray(model.train.spread)), FeasibleSet.around(person[None], None)
    )


@pytest.mark.parametrize("delta", [0.0, 0.3])
@pytest.mark.parametrize("norm", ["l2", "l1"])
@pytest.mark.parametrize("make", [straight, curved, small_network], ids=["straight", "curved", "small"])
def test_points_are_accepted_by_the_network_itself_and_keep_the_promise_of_the_stand_in(
    make: Any, norm: str, delta: float
) -> None:
    model = make()
    people = refused_people(model, 3, 6)
    explainer = Rocerf(model, 2, promise="local_linear", cost=norm, delta=delta)
    assert explainer.solver == "cutting_plane"
    recourses = explainer.explain(people)
    assert recourses.answered.sum() >= 4
    assert set(recourses.statuses) <= {Status.ANSWERED, Status.GAVE_UP}
    moved = 0
    for i in np.flatnonzero(recourses.answered):
        point = recourses.matrix[i]
        assert model.score(point[None])[0] >= delta
        own = LocalLinear(model, 2).for_person(people[i])
        assert own.read(point[None]).values[0] >= delta
        assert recourses.margins[i] == pytest.approx(own.read(point[None]).values[0], abs=1e-8)
        # It is the optimum on the stand-in, or further on along the same line where the network refuses that.
        best = solve_by_cuts(own, alone(model, people[i], norm), delta).points[0]
        share = np.linalg.norm(point - people[i]) / np.linalg.norm(best - people[i])
        np.testing.assert_allclose(point - people[i], share * (best - people[i]), rtol=1e-6, atol=1e-9)
        assert 1 - 1e-9 <= share <= 10.0
        moved += share > 1 + 1e-6
        if share > 1 + 1e-6:
            assert model.score(best[None])[0] < delta + 1e-6
    if make is curved and norm == "l2":
        assert moved > 0  # else this test would have shown nothing about moving on


def test_the_rows_feared_are_those_feared_at_the_point_given() -> None:
    model = curved()
    people = refused_people(model, 3, 12)
    recourses = Rocerf(model, 2, promise="local_linear").explain(people)
    for i in np.flatnonzero(recourses.answered):
        own = LocalLinear(model, 2).for_person(people[i])
        assert recourses[i].worst_ids.tolist() == own.read(recourses.matrix[[i]]).worst_ids(0).tolist()


def test_people_without_a_stand_in_end_with_a_result() -> None:
    model = straight()
    far = model.train.X.mean(axis=0) - 200 * np.sign(WEIGHTS) * model.train.spread
    people = np.vstack([far, refused_people(model, 0, 2)])
    recourses = Rocerf(model, 2, promise="local_linear").explain(people)
    assert recourses.statuses == (Status.GAVE_UP, Status.ANSWERED, Status.ANSWERED)
    assert np.isnan(recourses.matrix[0]).all()
    assert recourses[0].promise == "nothing is promised"


def test_a_network_that_refuses_along_the_whole_line_ends_with_a_result(monkeypatch: pytest.MonkeyPatch) -> None:
    model = curved()
    people = refused_people(model, 3, 2)
    expected = Rocerf(model, 2, promise="local_linear").explain(people)
    assert expected.answered.all()
    monkeypatch.setattr("rocerf.recourse.solvers.solving.FARTHEST", 1.0001)  # may not be moved on
    monkeypatch.setattr(NeuralModel, "score_and_slope", lambda self, X: (np.full(len(X), -1.0), np.zeros(X.shape)))
    recourses = Rocerf(model, 2, promise="local_linear").explain(people)
    assert recourses.statuses == (Status.GAVE_UP,) * 2
    assert np.isnan(recourses.matrix).all()


def test_rules_are_kept_to_the_last_digit() -> None:
    model = straight()
    people = refused_people(model, 5, 8)
    X = model.train.X
    schema = FeatureSchema.free(model.train.columns).edit("x0", direction="fixed").edit("x1", direction="decrease")
    schema = schema.edit("x2", lower=float(X[:, 2].min()) - 3, upper=float(X[:, 2].max()) + 3)
    recourses = Rocerf(model, 2, promise="local_linear", schema=schema).explain(people)
    answered = recourses.answered
    assert answered.sum() >= 4
    lower, upper = schema.box(people)
    points = recourses.matrix[answered]
    assert (points[:, 0] == people[answered, 0]).all()
    assert (points >= lower[answered]).all()
    assert (points <= upper[answered]).all()
    assert (model.predict(points) == 1).all()


def test_people_are_solved_one_by_one_and_counted() -> None:
    model = straight()
    people, told = refused_people(model, 0, 3), []
    explainer = Rocerf(model, 2, promise="local_linear")
    recourses = explainer.explain(people, progress=lambda done, total: told.append((done, total)))
    assert told == [(1, 3), (2, 3), (3, 3)]
    for i in range(3):
        np.testing.assert_array_equal(explainer.explain(people[[i]]).matrix[0], recourses.matrix[i])


def test_the_words_say_that_it_is_about_a_stand_in() -> None:
    recourses = Rocerf(straight(), 2, promise="local_linear").explain(refused_people(straight(), 0, 1))
    assert "on a linear model fitted around the person" in recourses[0].promise
    assert "not a proof" in recourses[0].promise
    assert any("moved on along the line" in sentence for sentence in recourses.settings.assumptions)


def test_linear_models_need_no_stand_in() -> None:
    model = LogisticModel.fit(random_training_set(1))
    with pytest.raises(OptionError, match="got promise='local_linear'; choose another promise"):
        Rocerf(model, 2, promise="local_linear")


def test_it_cannot_be_read_without_knowing_for_whom() -> None:
    promise = LocalLinear(straight(), 2)
    with pytest.raises(OptionError, match="another one for each; use for_person"):
        promise.read(straight().train.X)
    with pytest.raises(OptionError, match="another one for each; use for_person"):
        promise.known_cuts()


@pytest.mark.parametrize("solver", ["penalty", "sequential", "search"])
def test_other_solvers_are_refused_for_a_reason_that_is_true(solver: str) -> None:
    """It is solved *by* cuts, so "which has no cuts" would not be a reason."""
    with pytest.raises(OptionError, match="Expected solver='cutting_plane' for the promise 'local_linear'") as error:
        Rocerf(straight(), 2, promise="local_linear", solver=solver)
    assert "which has no cuts" not in str(error.value)


def test_a_class_that_can_vanish_makes_it_impossible() -> None:
    model = straight()
    few = int(min(model.train.y.sum(), (1 - model.train.y).sum()))
    assert LocalLinear(model, few - 1).impossible() is None
    assert "and then no model can be trained" in (LocalLinear(model, few).impossible() or "")
    local = LocalLinearModel.around(model, refused_people(model, 0, 1)[0])
    assert (local.removable_class(few - 1), local.removable_class(few)) == (None, model.removable_class(few))


def test_nobody_asking() -> None:
    model = straight()
    nobody = Master(np.empty((0, 3)), NormCost(Norm("l2"), np.ones(3)), FeasibleSet.around(np.empty((0, 3)), None))
    assert len(Solver("cutting_plane", model.train)(LocalLinear(model, 2), nobody, 0.0).points) == 0
    assert isinstance(LocalLinear(model, 2).for_person(model.train.X[0]), FirstOrder)
