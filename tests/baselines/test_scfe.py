"""SCFE: the nearest accepted point, exactly; and the authors' search, which comes near it."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pandas as pd
import pytest
import torch

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


class Loop:
    """The authors' search for one person, written out with torch: slow and obvious."""

    def __init__(self, model: LogisticModel, x0: np.ndarray, budget: int) -> None:
        self.w, self.b = torch.tensor(model.theta[:-1]), float(model.theta[-1])
        self.z0 = torch.tensor((x0 - model.train.X.mean(axis=0)) / model.train.spread)
        self.z = self.z0.clone().requires_grad_()
        self.budget, self.taken, self.nearest = budget, 0, np.inf

    def descend(self, lam: float) -> bool:
        adam, accepted = torch.optim.Adam([self.z], lr=0.5), False
        for _ in range(self.budget // 10):
            before = self.z.detach().clone()
            adam.zero_grad()
            (torch.relu(-(self.z @ self.w + self.b)) ** 2 + lam * torch.dist(self.z, self.z0)).backward()
            adam.step()
            self.taken += 1
            now = self.z.detach()
            if float(now @ self.w + self.b) >= 5e-7:
                accepted = True
                self.nearest = min(self.nearest, float(torch.dist(now, self.z0)))
            if float(torch.dist(now, before) / torch.linalg.vector_norm(now)) < 1e-5:
                break
        return accepted

    def run(self) -> float:
        lam, last = 2.5, False
        while self.taken < self.budget:
            accepted = self.descend(lam)
            if last and not accepted:
                self.bisect(lam / 2, lam)
                break
            last, lam = accepted, lam * 2 if accepted else lam / 2
        return self.nearest

    def bisect(self, low: float, high: float) -> None:
        while self.taken < self.budget:
            middle = (low + high) / 2
            low, high = (middle, high) if self.descend(middle) else (low, middle)


@pytest.mark.slow
def test_the_authors_search_is_their_loop_written_out(problem: tuple[LogisticModel, np.ndarray]) -> None:
    model, people = problem
    # Longer searches are chaotic: a change of x0 in the fourteenth digit changes the first digits of the cost.
    found = Scfe(model, preset="authors", max_steps=300).explain(people[:4])
    expected = [Loop(model, person, 300).run() for person in people[:4]]
    assert np.nan_to_num(found.costs, nan=np.inf) == pytest.approx(expected, rel=1e-6)


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
