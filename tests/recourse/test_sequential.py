"""Repeated linearisation against the global optimum where cuts show it, elsewhere against SciPy."""

from __future__ import annotations

from functools import partial
from itertools import pairwise

import numpy as np
import pytest
import torch
from scipy.optimize import minimize

from networks import small_network
from problems import random_training_set
from recourse_problems import DELTA, costs, curved, holds, master, promises, refused, rules
from rocerf import FeatureSchema, LogisticModel, NeuralModel, Rocerf, Status, TrainingSet
from rocerf.baselines import Scfe
from rocerf.promises import FirstOrder, Plain, Promise
from rocerf.recourse.master.master import Master
from rocerf.recourse.solvers import penalty, sequential
from rocerf.recourse.solvers.cutting_plane import solve_by_cuts
from rocerf.recourse.solvers.penalty import PenaltyOptions
from rocerf.recourse.solvers.sequential import solve_by_linearisation
from rocerf.recourse.solvers.solution import Outcome

pytestmark = pytest.mark.slow  # many small solves and retrainings: half a minute together

# --- where cuts show the global optimum ---------------------------------------------------------------


@pytest.mark.parametrize("with_rules", [False, True])
@pytest.mark.parametrize("norm", ["l2", "l1"])
@pytest.mark.parametrize("name", ["plain", "first order"])
@pytest.mark.parametrize("seed", [1, 3])
def test_linearisation_comes_within_a_hundredth_of_the_global_optimum(
    seed: int, name: str, norm: str, with_rules: bool
) -> None:
    model = LogisticModel.fit(random_training_set(seed, n=60), C=1.0)
    people = refused(model, seed, 6)
    problem = master(model, people, norm, rules(model) if with_rules else None)
    promise = promises(model)[name]
    cuts, found = solve_by_cuts(promise, problem, DELTA), solve_by_linearisation(promise, problem, DELTA)
    holds(promise, found)
    both = (cuts.outcomes == Outcome.FOUND) & (found.outcomes == Outcome.FOUND)
    assert (both == (cuts.outcomes == Outcome.FOUND)).all()
    ratio = costs(problem, found)[both] / costs(problem, cuts)[both]
    assert ratio.min(initial=1.0) > 1 - 1e-5  # nothing is cheaper than the optimum, but for half the guard
    assert ratio.max(initial=1.0) < 1.01


# --- where nobody knows the global optimum: networks ----------------------------------------------------


def by_slsqp(promise: Promise, problem: Master, norm: str, starts: int = 2) -> np.ndarray:
    """The cheapest of several runs of SciPy's SLSQP for each person, started at random points around them."""
    rng, best = np.random.default_rng(0), []
    scale = problem.cost.scale
    for i, x0 in enumerate(problem.X0):
        d = len(x0)
        lower = np.maximum((problem.allowed.lower[i] - x0) / scale, -20.0)
        upper = np.minimum((problem.allowed.upper[i] - x0) / scale, 20.0)
        # u = up - down, both at least 0: then L1 is linear, and the square of L2 smooth.
        bounds = [*zip(np.maximum(lower, 0), np.maximum(upper, 0), strict=True)]
        bounds += [*zip(np.maximum(-upper, 0), np.maximum(-lower, 0), strict=True)]

        def step(v: np.ndarray, d: int = d) -> np.ndarray:
            return v[:d] - v[d:]

        def value(v: np.ndarray, x0: np.ndarray = x0) -> float:
            return promise.read((x0 + scale * step(v))[None]).values[0] - DELTA

        def slope(v: np.ndarray, x0: np.ndarray = x0) -> np.ndarray:
            s = promise.read((x0 + scale * step(v))[None]).slopes[0] * scale
            return np.concatenate([s, -s])

        def price(v: np.ndarray) -> tuple[float, np.ndarray]:
            if norm == "l1":
                return float(v.sum()), np.ones(len(v))
            u = step(v)
            return float(u @ u + 1e-9 * v.sum()), np.concatenate([2 * u, -2 * u]) + 1e-9

        found = [np.inf]
        for trial in range(starts):
            u = np.clip((0.5 + trial) * rng.normal(size=d), lower, upper)
            result = minimize(
                price,
                np.concatenate([np.maximum(u, 0), np.maximum(-u, 0)]),
                jac=True,
                bounds=bounds,
                constraints=[{"type": "ineq", "fun": value, "jac": slope}],
                method="SLSQP",
                options={"maxiter": 150, "ftol": 1e-10},
            )
            if value(result.x) > -1e-6:
                u = step(result.x)
                found.append(np.abs(u).sum() if norm == "l1" else np.linalg.norm(u))
        best.append(min(found))
    return np.array(best)


@pytest.mark.slow
@pytest.mark.parametrize(
    ("name", "norm", "with_rules"),
    [
        ("plain", "l2", False),
        ("plain", "l1", False),
        ("plain", "l2", True),
        ("plain", "l1", True),
        ("first order", "l2", False),
        ("first order", "l1", True),
    ],
)
def test_linearisation_on_a_bent_network_is_as_cheap_as_the_best_of_many_runs_of_scipy(
    name: str, norm: str, with_rules: bool
) -> None:
    model = curved()
    problem = master(model, refused(model, 0, 2), norm, rules(model) if with_rules else None)
    promise = promises(model)[name]
    found, reference = solve_by_linearisation(promise, problem, DELTA), by_slsqp(promise, problem, norm)
    holds(promise, found)
    assert (np.isfinite(reference) <= (found.outcomes == Outcome.FOUND)).all()
    known = np.isfinite(reference)
    assert known.any()
    assert (costs(problem, found)[known] / reference[known]).max() < 1.01


# --- what is allowed --------------------------------------------------------------------------------


@pytest.mark.parametrize("solver", ["sequential", "penalty"])
@pytest.mark.parametrize("norm", ["l2", "l1"])
def test_bounds_and_immutable_columns_are_kept_to_the_last_digit(
    norm: str, solver: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(penalty, "PenaltyOptions", partial(PenaltyOptions, steps=20, doublings=12, bisections=3))
    model = small_network()
    people, X = refused(model, 1, 10), model.train.X
    schema = rules(model).edit("x1", lower=float(np.quantile(X[:, 1], 0.3)), upper=float(np.quantile(X[:, 1], 0.7)))
    assert [str(f.direction) for f in schema] == ["increase", "any", "fixed"]
    lower, upper = schema.box(people)
    assert ((people < lower) | (people > upper)).any()  # some must move to be allowed at all
    recourses = Scfe(model, cost=norm, schema=schema, solver=solver).explain(people)
    answered = recourses.answered
    assert answered.sum() >= 5
    points = recourses.matrix[answered]
    assert (points >= lower[answered]).all()
    assert (points <= upper[answered]).all()
    assert (points[:, 2] == people[answered, 2]).all()
    assert (points[:, 0] >= people[answered, 0]).all()
    assert (model.predict(points) == 1).all()
    if (solver, norm) == ("sequential", "l2"):
        robust = Rocerf(model, 2, promise="first_order", cost=norm, schema=schema).explain(people)
        points = robust.matrix[robust.answered]
        assert len(points) >= 3
        assert (points >= lower[robust.answered]).all()
        assert (points <= upper[robust.answered]).all()
        assert (FirstOrder(model, 2).read(points).values >= 0).all()


def test_what_need_not_move_does_not_move() -> None:
    """A network that does not look at a column leaves it alone, exactly."""
    train = TrainingSet(np.random.default_rng(0).normal(size=(60, 3)), np.arange(60) % 2)
    module = torch.nn.Linear(3, 1)
    module.weight.data = torch.tensor([[1.0, 0.0, -2.0]])
    module.bias.data.fill_(-0.5)
    model = NeuralModel.from_torch(module, train)
    people = train.X[model.predict(train.X) == 0]
    recourses = Scfe(model).explain(people)
    assert recourses.answered.all()
    np.testing.assert_array_equal(recourses.matrix[:, 1], people[:, 1])
    scale = train.spread
    normal = np.array([1.0, 0.0, -2.0]) * scale
    np.testing.assert_allclose(recourses.costs, -model.score(people) / np.linalg.norm(normal), rtol=1e-3)


# --- people who cannot be answered ------------------------------------------------------------------------


def test_people_who_cannot_be_answered_are_results() -> None:
    model = small_network()
    people = refused(model, 2, 5)
    frozen = FeatureSchema.free(model.train.columns)
    for name in model.train.columns:
        frozen = frozen.edit(name, direction="fixed")
    recourses = Rocerf(model, 2, promise="first_order", schema=frozen).explain(people)
    assert recourses.statuses == (Status.GAVE_UP,) * 5
    assert all("without an answer" in reason for reason in recourses.reasons)
    assert np.isnan(recourses.matrix).all()


def test_with_one_column_free_the_first_good_point_of_a_fine_grid_is_found_or_there_is_none() -> None:
    model = small_network()
    people, spread = refused(model, 2, 3), model.train.spread[0]
    bound = float(model.train.X[:, 0].mean() + 0.4 * spread)
    schema = FeatureSchema.free(model.train.columns).edit("x0", lower=bound - 9 * spread, upper=bound)
    schema = schema.edit("x1", direction="fixed").edit("x2", direction="fixed")
    asked = Plain(model)
    recourses = Rocerf(model, asked.k, promise=asked, schema=schema).explain(people)
    for i, person in enumerate(people):
        grid = np.repeat(person[None], 4001, axis=0)
        grid[:, 0] = np.linspace(bound - 9 * spread, bound, 4001)
        good = asked.read(grid).values >= 0
        assert recourses.statuses[i] is (Status.ANSWERED if good.any() else Status.GAVE_UP)
        if good.any():
            nearest = np.abs(grid[good, 0] - person[0]).min() / spread
            assert recourses.costs[i] == pytest.approx(nearest, abs=0.01)
    assert len(set(recourses.statuses)) == 2
    alone = Rocerf(model, asked.k, promise=asked, schema=schema).explain(people[-1:])  # nobody depends on the others
    assert alone.statuses[0] is recourses.statuses[-1]
    np.testing.assert_allclose(alone.matrix[0], recourses.matrix[-1], rtol=1e-6)


def test_nobody_is_led_up_a_flat_slope() -> None:
    """Where a ReLU is dead the score has no slope: the search ends, without an exception and without a point."""
    first, last = torch.nn.Linear(2, 1), torch.nn.Linear(1, 1)
    first.weight.data, first.bias.data = torch.tensor([[1.0, 1.0]]), torch.tensor([0.0])
    last.weight.data, last.bias.data = torch.tensor([[1.0]]), torch.tensor([-1.0])
    rng = np.random.default_rng(0)
    train = TrainingSet(rng.normal(size=(50, 2)) * 2, np.arange(50) % 2)
    model = NeuralModel.from_torch(torch.nn.Sequential(first, torch.nn.ReLU(), last), train)
    dead, alive = np.array([-3.0, -3.0]), np.array([0.3, 0.2])
    assert np.abs(model.score_and_slope(dead[None])[1]).max() == 0.0
    recourses = Scfe(model).explain(np.array([dead, alive]))
    assert recourses.statuses == (Status.GAVE_UP, Status.ANSWERED)
    bounded = FeatureSchema.free(train.columns).edit("x0", lower=-5, upper=5).edit("x1", lower=-5, upper=5)
    inside = Scfe(model, schema=bounded).explain(np.array([dead, alive]))
    assert inside.statuses[1] is Status.ANSWERED
    assert (model.score(inside.matrix[inside.answered]) >= 0).all()


def test_nobody_asking_and_everybody_accepted() -> None:
    model = small_network()
    accepted = model.train.X[model.predict(model.train.X) == 1][:4]
    explainer = Rocerf(model, 2, promise="first_order")
    assert explainer.solver == "sequential"
    assert explainer.explain(accepted).statuses == (Status.ALREADY_ACCEPTED,) * 4
    assert len(explainer.explain(np.empty((0, 3)))) == 0


def test_a_class_that_can_vanish_is_told_before_any_search() -> None:
    model = small_network()
    k = int(min(model.train.y.sum(), (1 - model.train.y).sum()))
    recourses = Rocerf(model, k, promise="first_order").explain(refused(model, 2, 3))
    assert recourses.statuses == (Status.PROMISE_IMPOSSIBLE,) * 3


def test_progress_counts_people_up_and_may_interrupt() -> None:
    model = small_network()
    people, told = refused(model, 2, 6), []
    Scfe(model).explain(people, progress=lambda done, total: told.append((done, total)))
    assert {total for _, total in told} == {6}
    assert all(a <= b for (a, _), (b, _) in pairwise(told))
    assert told[-1][0] == 6

    class StopError(Exception):
        pass

    def stop(done: int, total: int) -> None:
        raise StopError

    with pytest.raises(StopError):
        Scfe(model).explain(people, progress=stop)


def test_the_worst_rows_and_the_rounds_are_told(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(sequential, "ROUNDS", 1)
    model = small_network()
    problem = master(model, refused(model, 2, 4))
    promise = FirstOrder(model, 3)
    solution = solve_by_linearisation(promise, problem, DELTA)
    reading = promise.read(solution.points)
    for j in range(4):
        assert solution.worst_ids[j] is not None
        assert solution.worst_ids[j].tolist() == reading.worst_ids(j).tolist()
    assert (solution.rounds > 0).all()
