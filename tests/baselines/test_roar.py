"""ROAR: the worst model in the box, the cheapest point that withstands it, and the authors' descent."""

from __future__ import annotations

import itertools
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest
import torch
from scipy.optimize import linprog
from sklearn.linear_model import LogisticRegression
from torch.func import functional_call

from problems import quadratic_program, random_training_set, refused_people
from rocerf import FeatureSchema, LogisticModel, NeuralModel, TrainingSet
from rocerf.baselines import ParameterBox, Roar, Scfe
from rocerf.baselines.roar_descent import (
    TOLERANCE,
    Descent,
    Linear,
    Parts,
    choose_lambda,
    choose_lambdas,
    descend,
    find_by_descent,
)
from rocerf.baselines.standard import StandardProblem
from rocerf.errors import OptionError, UnsupportedModelError
from rocerf.models.local_linear import LocalLinearModel
from rocerf.recourse.costs.cost import Norm
from rocerf.recourse.costs.norms import NormCost
from rocerf.recourse.master.feasible_set import FeasibleSet
from rocerf.recourse.master.master import Master
from rocerf.recourse.result import Status

pytestmark = pytest.mark.slow  # many small programs solved by independent solvers


def standardised(model: LogisticModel, X: np.ndarray) -> np.ndarray:
    return (X - model.train.X.mean(axis=0)) / model.train.spread


@pytest.fixture(params=range(4))
def problem(request: pytest.FixtureRequest) -> tuple[LogisticModel, np.ndarray]:
    d = 2 + request.param
    model = LogisticModel.fit(random_training_set(request.param, n=90, d=d), C=10.0)
    return model, refused_people(model, request.param, 6)


@pytest.fixture
def wide() -> tuple[LogisticModel, np.ndarray]:
    """One problem, for what takes thousands of steps."""
    model = LogisticModel.fit(random_training_set(1, n=90, d=4), C=10.0)
    return model, refused_people(model, 1, 6)


# --- the inner maximum ------------------------------------------------------------------------------


def test_the_worst_score_is_that_of_the_linear_program(problem: tuple[LogisticModel, np.ndarray]) -> None:
    model, people = problem
    for delta_max in (0.02, 0.1, 1.0):
        values = ParameterBox(model, delta_max).read(people).values
        for row, value in zip(standardised(model, people), values, strict=True):
            design = np.append(row, 1.0)
            worst = linprog(design, bounds=[(-delta_max, delta_max)] * len(design))
            assert value == pytest.approx(model.theta @ design + worst.fun, rel=1e-9, abs=1e-9)


def test_the_worst_score_is_that_of_a_corner(problem: tuple[LogisticModel, np.ndarray]) -> None:
    model, people = problem
    corners = 0.1 * np.array(list(itertools.product((-1.0, 1.0), repeat=len(model.theta))))
    rows = np.column_stack([standardised(model, people), np.ones(len(people))])
    lowest = ((model.theta + corners) @ rows.T).min(axis=0)
    assert ParameterBox(model, 0.1).read(people).values == pytest.approx(lowest, rel=1e-9, abs=1e-9)


def test_the_box_is_over_standardised_columns_whatever_the_scaling() -> None:
    train = random_training_set(5)
    scaled, raw = LogisticModel.fit(train, C=1e6), LogisticModel.fit(train, C=1e6, scale=False)
    people = refused_people(scaled, 5, 4)
    np.testing.assert_allclose(
        ParameterBox(raw, 0.1).read(people).values, ParameterBox(scaled, 0.1).read(people).values, rtol=1e-2, atol=1e-2
    )


def test_without_an_intercept_none_is_moved() -> None:
    train = random_training_set(5)
    model = LogisticModel.fit(train, fit_intercept=False)
    people = train.X[:4]
    expected = model.score(people) - 0.1 * np.abs(model.score_gradient(people)).sum(axis=1)
    np.testing.assert_allclose(ParameterBox(model, 0.1).read(people).values, expected)


def test_slopes_are_cuts(problem: tuple[LogisticModel, np.ndarray]) -> None:
    model, people = problem
    box = ParameterBox(model, 0.3)
    slopes, constants = box.read(people).cuts(people)
    elsewhere = model.train.X[:40]
    values = box.read(elsewhere).values
    assert (values[:, None] <= elsewhere @ slopes.T + constants + 1e-8).all()


# --- corrected --------------------------------------------------------------------------------------


def cheapest(model: LogisticModel, x0: np.ndarray, delta_max: float, norm: str) -> float | None:
    """By a program with one constraint for each pattern of signs: ``||z||_1`` is the largest of ``s'z``."""
    w, b = model.theta[:-1], model.theta[-1]
    z0 = standardised(model, x0[None])[0]
    signs = np.array(list(itertools.product((-1.0, 1.0), repeat=len(w))))
    A = w - delta_max * signs
    needed = delta_max - b - A @ z0
    if norm == "l2":
        step = quadratic_program(A, needed, np.full(len(w), -1e5), np.full(len(w), 1e5))
        return None if step is None else float(np.linalg.norm(step))
    found = linprog(np.ones(2 * len(w)), A_ub=np.hstack([-A, A]), b_ub=-needed, bounds=(0, None))
    return float(found.fun) if found.status == 0 else None


@pytest.mark.parametrize("norm", ["l2", "l1"])
def test_the_corrected_point_is_the_cheapest(problem: tuple[LogisticModel, np.ndarray], norm: str) -> None:
    model, people = problem
    found = Roar(model, delta_max=0.1, cost=norm).explain(people)
    for person, recourse in zip(people, found, strict=True):
        best = cheapest(model, person, 0.1, norm)
        assert best is not None
        assert recourse.cost == pytest.approx(best, rel=1e-4, abs=1e-5)
        assert recourse.margin >= 0
    assert (found.costs >= Scfe(model, cost=norm).explain(people).costs).all()


def test_every_corner_accepts_the_point(problem: tuple[LogisticModel, np.ndarray]) -> None:
    model, people = problem
    points = standardised(model, Roar(model, delta_max=0.1).explain(people).matrix)
    rng = np.random.default_rng(0)
    moved = model.theta + 0.1 * np.sign(rng.normal(size=(2000, len(model.theta))))
    assert (moved @ np.column_stack([points, np.ones(len(points))]).T >= 0).all()


def test_a_width_of_zero_is_scfe(problem: tuple[LogisticModel, np.ndarray]) -> None:
    model, people = problem
    np.testing.assert_allclose(
        Roar(model, delta_max=0.0).explain(people).costs, Scfe(model).explain(people).costs, rtol=1e-6
    )


def test_a_deployed_model_is_kept_too() -> None:
    train = random_training_set(3)
    fitted = LogisticRegression(tol=1e-2).fit(standardised_rows(train), train.y)
    model = LogisticModel.from_sklearn(fitted, TrainingSet(standardised_rows(train), train.y))
    people = model.train.X[model.predict(model.train.X) == 0][:5]
    found = Roar(model, delta_max=0.02).explain(people)
    assert model.polish is not None
    assert model.polish.shift > 0
    assert found.answered.all()
    assert (fitted.decision_function(found.matrix) >= 0.02 * (np.abs(found.matrix).sum(axis=1) + 1)).all()


def standardised_rows(train: TrainingSet) -> np.ndarray:
    return (train.X - train.X.mean(axis=0)) / train.spread


def test_a_box_nobody_can_leave_is_told_in_its_own_words(problem: tuple[LogisticModel, np.ndarray]) -> None:
    model, people = problem
    found = Roar(model, delta_max=100.0).explain(people)
    assert set(found.statuses) == {Status.NOT_ROBUST}
    assert found.reasons[0] == (
        "some allowed changes are accepted today, but none inside the bounds by every model whose parameters differ by "
        "at most 100 each"
    )


@pytest.mark.parametrize("preset", ["corrected", "authors"])
def test_rules_are_kept(problem: tuple[LogisticModel, np.ndarray], preset: Any) -> None:
    model, people = problem
    schema = FeatureSchema.free(model.train.columns).edit("x0", direction="fixed")
    X = np.concatenate([people, people[:1] * np.nan])
    found = Roar(model, delta_max=0.02, preset=preset, schema=schema).explain(X)
    answered = found.answered
    np.testing.assert_array_equal(found.matrix[answered, 0], X[answered, 0])
    assert (model.predict(found.matrix[answered]) == 1).all()
    assert found.statuses[-1] is Status.INVALID_INPUT


def test_the_words(problem: tuple[LogisticModel, np.ndarray], network: NeuralModel) -> None:
    model, people = problem
    settings = Roar(model).explain(people[:1]).settings
    assert (settings.method, settings.promise, settings.k) == ("roar", "parameter_box", 0)
    assert settings.sentence == (
        "accepted by every linear model whose parameters differ from today's by at most 0.1 each (over standardised "
        "columns); nothing is promised about deletions"
    )
    assert ParameterBox(network, 0.1).sentence(0.0) == (
        "to first order, an estimate and not a proof, accepted by every network whose parameters differ from today's "
        "by at most 0.1 each; nothing is promised about deletions"
    )


# --- networks ---------------------------------------------------------------------------------------


def test_a_networks_worst_score_is_first_order(network: NeuralModel) -> None:
    X = network.train.X[:20]
    slopes = network.score_gradient(X)
    expected = network.score(X) - 0.05 * np.abs(slopes).sum(axis=1)
    np.testing.assert_allclose(ParameterBox(network, 0.05).read(X).values, expected, rtol=1e-9)
    # At the corner itself the true score differs by a multiple of the squared width.
    errors = []
    for width in (0.02, 0.01):
        moved = [true_score(network, x, -width * np.sign(s)) for x, s in zip(X, slopes, strict=True)]
        errors.append(np.abs(np.array(moved) - ParameterBox(network, width).read(X).values))
    assert errors[1].mean() < 0.35 * errors[0].mean()


def true_score(network: NeuralModel, x: np.ndarray, shift: np.ndarray) -> float:
    """The score of the network with its parameters really moved."""
    named = dict(network.module.named_parameters())
    pieces = torch.split(torch.tensor(shift), [p.numel() for p in named.values()])
    moved = {name: p + piece.reshape(p.shape) for (name, p), piece in zip(named.items(), pieces, strict=True)}
    row = torch.tensor(network.design(x[None]))
    return float(functional_call(network.module, moved, (row,))[0]) - network.offset


def test_a_networks_slope_is_that_of_finite_differences(network: NeuralModel) -> None:
    box, X, step = ParameterBox(network, 0.05), network.train.X[:15], 1e-6
    slopes = box.read(X).slopes
    for column, spread in enumerate(network.train.spread):
        up, down = X.copy(), X.copy()
        up[:, column] += step * spread
        down[:, column] -= step * spread
        numeric = (box.read(up).values - box.read(down).values) / (2 * step * spread)
        # A kink of ||beta(x)||_1 may lie inside the step of one of the points, hardly of two.
        close = np.isclose(slopes[:, column], numeric, rtol=1e-3, atol=1e-4 / spread)
        assert close.mean() > 0.9


def test_blocks_make_no_difference(network: NeuralModel, monkeypatch: pytest.MonkeyPatch) -> None:
    X = network.train.X[:11]
    whole = ParameterBox(network, 0.05).read(X)
    monkeypatch.setattr("rocerf.baselines.roar.BLOCK", 3 * len(network.theta))
    parts = ParameterBox(network, 0.05).read(X)
    np.testing.assert_allclose(parts.values, whole.values, rtol=1e-12)
    np.testing.assert_allclose(parts.slopes, whole.slopes, rtol=1e-9)
    assert ParameterBox(network, 0.05).read(X[:0]).values.shape == (0,)


def over_all(network: NeuralModel, delta_max: float) -> Roar:
    return Roar(network, delta_max=delta_max, parameters="all")


def test_networks_get_points_that_withstand_the_box(network: NeuralModel) -> None:
    people = network.train.X[network.predict(network.train.X) == 0][:6]
    plain, robust = Scfe(network).explain(people), over_all(network, 0.005).explain(people)
    assert robust.answered.all()
    assert (ParameterBox(network, 0.005).read(robust.matrix).values >= 0).all()
    assert robust.costs.mean() > plain.costs.mean()
    impossible = over_all(network, 10.0).explain(people[:2])
    assert impossible.statuses == (Status.GAVE_UP,) * 2
    assert "at most 10 each, nor shown" in impossible.reasons[0]


def test_networks_through_a_stand_in(network: NeuralModel, bare: Callable[[LogisticModel], Any]) -> None:
    people = network.train.X[network.predict(network.train.X) == 0][:4]
    for options in ({}, {"preset": "authors"}):
        found = Roar(network, **options).explain(people)  # type: ignore[arg-type]
        assert found.answered.mean() >= 0.5, options
        assert (network.score(found.matrix[found.answered]) >= 0).all()
        assert "every network" not in found.settings.sentence
    model = LogisticModel.fit(random_training_set(0))
    with pytest.raises(UnsupportedModelError, match="parameters that can be moved, got Bare"):
        Roar(bare(model), parameters="all")
    found = Roar(bare(model)).explain(refused_people(model, 0, 2))
    assert found.answered.all()


# --- the authors ------------------------------------------------------------------------------------


def descent(model: LogisticModel, x0: np.ndarray, lam: float) -> np.ndarray:
    """Their loop for one person, with torch and the linear program's solution; where it ends, standardised."""
    theta = torch.tensor(model.theta)
    z0 = torch.tensor(standardised(model, x0[None])[0])
    z = z0.clone().requires_grad_()
    adam, loss, change = torch.optim.Adam([z], lr=1e-3), 1.0, 1.0
    while change > TOLERANCE:
        design = torch.cat([z, torch.ones(1, dtype=torch.float64)])
        shift = -0.1 * torch.sign(design.detach())
        adam.zero_grad()
        value = torch.nn.functional.softplus(-(theta + shift) @ design) + lam * torch.dist(z, z0)
        value.backward()
        adam.step()
        change, loss = abs(float(value.detach()) - loss), float(value.detach())
    return z.detach().numpy()


@pytest.mark.parametrize("lam", [0.0, 0.3])
def test_the_authors_descent_is_their_loop_written_out(wide: tuple[LogisticModel, np.ndarray], lam: float) -> None:
    model, people = wide
    found = Roar(model, preset="authors", lam=lam).explain(people[:2])
    for person, recourse in zip(people[:2], found, strict=True):
        z = descent(model, person, lam)
        if recourse.answered:
            np.testing.assert_allclose(standardised(model, recourse.point[None])[0], z, rtol=1e-5, atol=1e-5)
        else:
            assert model.theta @ np.append(z, 1.0) < 1e-6


def test_the_authors_lambda_is_the_last_that_works(wide: tuple[LogisticModel, np.ndarray]) -> None:
    model, people = wide
    lam = 0.0
    while Roar(model, preset="authors", lam=lam + 0.1).explain(people[:5]).answered.all():
        lam += 0.1
    chosen = Roar(model, preset="authors").explain(people)
    given = Roar(model, preset="authors", lam=lam).explain(people)
    np.testing.assert_allclose(chosen.matrix, given.matrix, rtol=1e-9)
    assert chosen.answered[:5].all()


def test_the_authors_points_are_accepted_and_say_no_more(wide: tuple[LogisticModel, np.ndarray]) -> None:
    model, people = wide
    found = Roar(model, preset="authors", lam=0.1).explain(people)
    assert found.answered.any()
    assert (model.predict(found.matrix[found.answered]) == 1).all()
    assert (found.costs[found.answered] >= Scfe(model).explain(people).costs[found.answered] * (1 - 1e-9)).all()
    assert found.settings.sentence == (
        "is accepted by the model as it is today; chosen by weighing the worst loss over models whose parameters "
        "differ by at most 0.1 each against the cost, which does not make all of those accept it; nothing is promised "
        "about deletions"
    )


# --- the authors on networks ------------------------------------------------------------------------


def test_the_authors_count_every_end_and_only_accepted_ones_are_recourses(network: NeuralModel) -> None:
    people = network.train.X[network.predict(network.train.X) == 0][:25]
    found = Roar(network, preset="authors", lam=9.0, seed=3).explained(people)
    master = Master(people, NormCost(Norm.L2, np.asarray(network.train.spread)), FeasibleSet.around(people, None))
    np.testing.assert_allclose(found.ends, find_by_descent(Descent(network, 0.1, 3), master, 9.0), rtol=1e-9)
    assert np.isfinite(found.ends).all()
    recourses, accepted = found.recourses, network.score(found.ends) >= 0
    assert 0 < accepted.sum() < len(people)  # else this would show nothing
    np.testing.assert_array_equal(recourses.answered, accepted)
    np.testing.assert_array_equal(recourses.matrix[accepted], found.ends[accepted])
    assert np.isnan(recourses.matrix[~accepted]).all()
    refused = np.flatnonzero(~accepted)
    assert {recourses.statuses[i] for i in refused} == {Status.GAVE_UP}
    assert {recourses.reasons[i] for i in refused} == {"the authors' procedure ended at a point that the model refuses"}
    # Also ends that the person's own stand-in refuses are there.
    own = [LocalLinearModel.around(network, person, seed=3, sampling="authors") for person in people]
    scores = [local.score(end[None])[0] for local, end in zip(own, found.ends, strict=True) if local is not None]
    assert min(scores) < 0 < max(scores)
    assert recourses.settings.sentence.startswith("is accepted by the model as it is today; chosen by weighing")


@pytest.mark.slow
def test_the_authors_lambda_is_chosen_for_each_part(wide: tuple[LogisticModel, np.ndarray]) -> None:
    model, people = wide[0], refused_people(wide[0], 1, 13)
    labels = np.repeat([0, 1, 2], [6, 6, 1])
    explainer = Roar(model, preset="authors")
    together = explainer.explained(people, parts=Parts(labels, len(people)))
    for label in range(3):
        alone = explainer.explained(people[labels == label])
        np.testing.assert_array_equal(together.ends[labels == label], alone.ends)
    # Who needs nothing is in no part: the labels follow the people.
    accepted = Scfe(model).explain(people[:1]).matrix + 1e-3 * model.theta[:-1] * model.train.spread
    more = explainer.explained(
        np.concatenate([accepted, people]), parts=Parts(np.concatenate([[7], labels]), len(people))
    )
    assert np.isnan(more.ends[0]).all()
    np.testing.assert_array_equal(more.ends[1:], together.ends)


def test_stand_ins_of_a_part_are_as_many_as_everybody_asks_for(network: NeuralModel) -> None:
    models, problem = stand_ins(12)
    one = choose_lambda(Descent(network, 0.1), models, problem)
    assert one > 0.1
    for total, expected in ((119, one), (400, 0.1)):  # of 400 people 20 would be tried, who are not there
        parts = Parts(np.zeros(12, np.intp), total)
        assert choose_lambdas(Descent(network, 0.1), models, problem, parts) == pytest.approx(np.full(12, expected))


def test_the_authors_points_on_networks_keep_the_rules(network: NeuralModel) -> None:
    people = network.train.X[network.predict(network.train.X) == 0][:8]
    schema = FeatureSchema.free(network.train.columns).edit("x0", direction="fixed").edit("x1", step=0.5)
    found = Roar(network, preset="authors", lam=0.1, schema=schema).explain(people)
    answered = found.answered
    assert answered.any()
    np.testing.assert_array_equal(found.matrix[answered, 0], people[answered, 0])
    assert FeasibleSet.around(people[answered], schema).holds(found.matrix[answered]).all()
    assert (network.score(found.matrix[answered]) >= 0).all()


def test_the_authors_leave_people_without_a_stand_in_unanswered(
    network: NeuralModel, monkeypatch: pytest.MonkeyPatch
) -> None:
    people = network.train.X[network.predict(network.train.X) == 0][:3]
    monkeypatch.setattr("rocerf.models.local_linear.TRIES", 0)
    found = Roar(network, preset="authors").explain(people)
    assert found.statuses == (Status.GAVE_UP,) * 3
    assert np.isnan(found.matrix).all()


def stand_ins(people: int, seed: int = 0) -> tuple[Linear, StandardProblem]:
    """Linear models of so many people who are refused by theirs."""
    rng = np.random.default_rng(seed)
    w, z0 = rng.normal(loc=[2.0, 0.0], scale=0.3, size=(people, 2)), rng.normal(size=(people, 2))
    wide = np.full((people, 2), np.inf)
    return Linear(w, -(w * z0).sum(axis=1) - rng.uniform(0.2, 0.6, people)), StandardProblem(z0, -wide, wide, Norm.L2)


@pytest.mark.parametrize(("people", "tried"), [(5, 5), (60, 5), (139, 6), (600, 20)])
def test_the_authors_lambda_for_networks_is_the_first_that_fails(network: NeuralModel, people: int, tried: int) -> None:
    models, problem = stand_ins(people)
    few = np.arange(tried)

    def fails(lam: float) -> bool:
        z = descend(models.rows(few), problem.rows(few), 0.1, lam)
        return not (models.rows(few).score(z) > 0).all()

    lam = 0.1
    while not fails(lam):
        lam *= 2
    assert lam > 0.1
    assert choose_lambda(Descent(network, 0.1), models, problem) == pytest.approx(lam)
    # One more person who cannot do with it is not looked at.
    if people > tried:
        models.b[tried] = -1e3
        assert choose_lambda(Descent(network, 0.1), models, problem) == pytest.approx(lam)


def test_the_authors_lambda_for_networks_where_there_is_none(network: NeuralModel) -> None:
    assert choose_lambda(Descent(network, 0.1), *stand_ins(4)) == pytest.approx(0.1)  # fewer than are to be tried
    models, problem = stand_ins(5)
    content = Linear(models.w, models.b + 5.0)  # accepted as they stand: theirs doubles for ever
    lam = choose_lambda(Descent(network, 0.1), content, problem)
    assert np.linalg.norm(models.w, axis=1).max() < lam < 20.0


def test_options_that_cannot_be() -> None:
    model = LogisticModel.fit(random_training_set(0))
    with pytest.raises(OptionError, match="delta_max"):
        Roar(model, delta_max=-0.1)
    with pytest.raises(OptionError, match="lam only with preset='authors'"):
        Roar(model, lam=0.1)
    with pytest.raises(OptionError, match="solver='auto' with preset='authors'"):
        Roar(model, preset="authors", solver="penalty")
    with pytest.raises(OptionError, match="parameters to be one of local, all"):
        Roar(model, parameters="some")  # type: ignore[arg-type]
    with pytest.raises(OptionError, match="Expected a rocerf model, got LogisticRegression"):
        Roar(LogisticRegression())  # type: ignore[arg-type]
