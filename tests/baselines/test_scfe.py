"""SCFE: the nearest accepted point, exactly; and the authors' search, which comes near it."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pandas as pd
import pytest
import torch

from authors_loops import Loop
from problems import random_training_set, refused_people
from rocerf import FeatureSchema, LogisticModel, NeuralModel, Recourses, TrainingSet
from rocerf.baselines import Scfe
from rocerf.baselines.wachter import WachterOptions, search
from rocerf.errors import OptionError, UnsupportedModelError
from rocerf.recourse.costs.cost import Norm
from rocerf.recourse.costs.norms import NormCost
from rocerf.recourse.master.feasible_set import FeasibleSet
from rocerf.recourse.master.master import Master
from rocerf.recourse.result import Status
from rocerf.recourse.solvers.adam import Adam


@pytest.fixture(params=range(3))
def problem(request: pytest.FixtureRequest) -> tuple[LogisticModel, np.ndarray]:
    model = LogisticModel.fit(random_training_set(request.param, weights=request.param == 1), C=3.0)
    return model, refused_people(model, request.param, 8)


def distances(model: LogisticModel, people: np.ndarray, norm: str) -> np.ndarray:
    """To the boundary, in units of the spread: by hand for a linear score."""
    w = model.theta[:-1]  # over standardised columns
    return -model.score(people) / (np.linalg.norm(w) if norm == "l2" else np.abs(w).max())


@pytest.mark.parametrize("norm", ["l2", "l1"])
def test_the_corrected_point_is_the_projection(problem: tuple[LogisticModel, np.ndarray], norm: str) -> None:
    model, people = problem
    found = Scfe(model, cost=norm).explain(people)
    assert found.costs == pytest.approx(distances(model, people, norm), rel=1e-4)
    if norm == "l2":
        z0 = (people - model.train.X.mean(axis=0)) / model.train.spread
        w = model.theta[:-1]
        z = z0 - (model.score(people) / (w @ w))[:, None] * w
        assert found.matrix == pytest.approx(model.train.X.mean(axis=0) + z * model.train.spread, rel=1e-3, abs=1e-4)


@pytest.mark.slow
@pytest.mark.parametrize("norm", ["l2", "l1"])
def test_the_authors_points_are_accepted_and_near_the_optimum(
    problem: tuple[LogisticModel, np.ndarray], norm: str
) -> None:
    model, people = problem
    found = Scfe(model, preset="authors", cost=norm, max_steps=5_000).explain(people)
    best = distances(model, people, norm)
    assert found.answered.all()
    assert (model.predict(found.matrix) == 1).all()
    assert (found.costs >= best * (1 - 1e-9)).all()
    assert found.costs.mean() < 1.5 * best.mean()
    assert (found.settings.method, found.settings.promise, found.settings.solver) == ("scfe", "plain", "authors")
    assert found.settings.sentence == "is accepted by the model as it is today; nothing is promised about deletions"


def test_a_person_of_the_authors_search_does_not_depend_on_the_others(
    problem: tuple[LogisticModel, np.ndarray],
) -> None:
    model, people = problem
    explainer = Scfe(model, preset="authors", max_steps=1_000)
    together = explainer.explain(people).matrix
    alone = [explainer.explain(person[None]).matrix[0] for person in people[:3]]
    np.testing.assert_array_equal(together[:3], alone)


def loop_of(model: LogisticModel, x0: np.ndarray, budget: int) -> Loop:
    return Loop(model.theta, (x0 - model.train.X.mean(axis=0)) / model.train.spread, budget)


@pytest.mark.slow
def test_the_authors_search_is_their_loop_written_out(problem: tuple[LogisticModel, np.ndarray]) -> None:
    model, people = problem
    # Longer searches are chaotic: a change of x0 in the fourteenth digit changes the first digits of the cost.
    found = Scfe(model, preset="authors", max_steps=300).explain(people[:4])
    expected = [loop_of(model, person, 300).run() for person in people[:4]]
    assert np.nan_to_num(found.costs, nan=np.inf) == pytest.approx(expected, rel=1e-6)


def test_what_the_bisection_found_is_thrown_away_as_the_authors_do() -> None:
    model = LogisticModel.fit(random_training_set(0, n=90, d=4), C=3.0)
    people = refused_people(model, 0, 16)
    found = Scfe(model, preset="authors", max_steps=200).explain(people).costs
    kept, all_of_it = ([loop_of(model, x0, 200).run(slip) for x0 in people] for slip in (True, False))
    assert np.nan_to_num(found, nan=np.inf) == pytest.approx(kept, rel=1e-6)
    assert sum(a < 0.999 * b for a, b in zip(all_of_it, kept, strict=True)) >= 2  # else this would show nothing


def test_adam_is_that_of_torch() -> None:
    rng = np.random.default_rng(0)
    gradients = rng.normal(size=(40, 3, 2)) * 10.0 ** rng.integers(-3, 3, size=(40, 1, 1))
    z = torch.zeros((3, 2), dtype=torch.float64, requires_grad=True)
    theirs, ours, at = torch.optim.Adam([z], lr=0.5), Adam(np.zeros((3, 2)), 0.5), np.zeros((3, 2))
    for gradient in gradients:
        z.grad = torch.tensor(gradient)
        theirs.step()
        at = at - ours.move(gradient)
    np.testing.assert_allclose(at, z.detach().numpy(), rtol=1e-10)


@pytest.mark.slow
def test_networks(network: NeuralModel) -> None:
    people = network.train.X[network.predict(network.train.X) == 0][:8]
    best = Scfe(network).explain(people)
    found = Scfe(network, preset="authors", max_steps=1000).explain(people)
    assert found.answered.mean() > 0.7
    ours, theirs = best.costs[found.answered], found.costs[found.answered]
    assert (network.score(found.matrix[found.answered]) >= 0).all()
    assert (theirs > 0.98 * ours).all()  # a local optimum may be beaten, hardly by much


@pytest.mark.slow
def test_the_authors_change_the_weight_by_four_for_networks(network: NeuralModel) -> None:
    people = network.train.X[network.predict(network.train.X) == 0][:4]
    master = Master(people, NormCost(Norm.L2, np.asarray(network.train.spread)), FeasibleSet.around(people, None))
    found = Scfe(network, preset="authors", max_steps=500).explain(people).matrix
    np.testing.assert_array_equal(found, search(network, master, WachterOptions(steps=500, factor=4.0)))
    assert WachterOptions.about(network) == WachterOptions(factor=4.0)
    assert WachterOptions.about(LogisticModel.fit(random_training_set(0))) == WachterOptions(factor=2.0)


@pytest.mark.parametrize("preset", ["corrected", "authors"])
def test_rules_and_triage_are_those_of_rocerf(preset: Any) -> None:
    train = random_training_set(0)
    model = LogisticModel.fit(train, C=3.0)
    people = refused_people(model, 1, 3)
    accepted = Scfe(model).explain(people[:1]).matrix + 1e-3 * model.theta[:-1] * train.spread
    missing = people[:1] * np.nan
    schema = FeatureSchema.free(train.columns).edit("x0", direction="fixed").edit("x1", direction="increase")
    X = np.concatenate([people, accepted, missing])
    found = Scfe(model, preset=preset, schema=schema, **({"max_steps": 3000} if preset == "authors" else {})).explain(X)
    assert found.statuses[3:] == (Status.ALREADY_ACCEPTED, Status.INVALID_INPUT)
    answered = found.answered
    assert answered.any()
    np.testing.assert_array_equal(found.matrix[answered, 0], X[answered, 0])
    assert (found.matrix[answered, 1] >= X[answered, 1]).all()
    assert (model.predict(found.matrix[answered]) == 1).all()
    # x1 has no room left: whoever stands above the bound and may only rise contradicts the rules.
    narrow = schema.edit("x1", upper=float(people[0, 1]) - 1.0)
    assert Scfe(model, preset=preset, schema=narrow).explain(people[:1]).statuses == (Status.CONTRADICTION,)


def test_frames_come_back_as_frames_and_results_as_json() -> None:
    rows = random_training_set(0)
    frame = pd.DataFrame(rows.X, columns=["a", "b", "c"], index=[f"r{i}" for i in range(len(rows))])
    model = LogisticModel.fit(TrainingSet(frame, rows.y))
    people = frame[model.predict(frame) == 0][["c", "a", "b"]].head(3)
    found = Scfe(model, preset="authors", max_steps=500).explain(people)
    assert list(found.points.columns) == ["c", "a", "b"]
    assert found.points.index.tolist() == people.index.tolist()
    again = Recourses.from_json(found.to_json())
    np.testing.assert_allclose(again.matrix, found.matrix)
    assert again.settings == found.settings
    nobody = Scfe(model, preset="authors").explain(people.iloc[:0])
    assert len(nobody) == 0


def test_progress_is_told(problem: tuple[LogisticModel, np.ndarray]) -> None:
    model, people = problem
    told: list[tuple[int, int]] = []
    Scfe(model, preset="authors", max_steps=500).explain(people, progress=lambda *done: told.append(done))
    assert told[-1] == (len(people), len(people))
    assert told == sorted(told)


def test_options_that_cannot_be(bare: Callable[[LogisticModel], Any]) -> None:
    model = LogisticModel.fit(random_training_set(0))
    with pytest.raises(OptionError, match="one of corrected, authors, got 'paper'"):
        Scfe(model, preset="paper")  # type: ignore[arg-type]
    with pytest.raises(OptionError, match="solver='auto' with preset='authors'"):
        Scfe(model, preset="authors", solver="penalty")
    with pytest.raises(UnsupportedModelError, match="slopes for Wachter's search, got Bare"):
        Scfe(bare(model), preset="authors")
    with pytest.raises(OptionError, match="max_steps"):
        Scfe(model, preset="authors", max_steps=0)
    with pytest.raises(OptionError, match="Expected a rocerf model, got str"):
        Scfe("model", preset="authors")  # type: ignore[arg-type]
