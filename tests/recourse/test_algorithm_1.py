"""The paper's Algorithm 1 on networks: against repeated linearisation, and with constraints held or read anew."""

from __future__ import annotations

from functools import partial
from typing import Any

import numpy as np
import pytest

from networks import small_network
from problems import random_training_set
from recourse_problems import DELTA, costs, curved, holds, master, promises, refused, rules
from rocerf import LogisticModel
from rocerf.promises import FirstOrder
from rocerf.recourse.solvers import penalty
from rocerf.recourse.solvers.penalty import PenaltyOptions, PenaltyProblem, minimise_by_penalty, solve_by_penalty
from rocerf.recourse.solvers.sequential import solve_by_linearisation
from rocerf.recourse.solvers.solution import Outcome

pytestmark = pytest.mark.slow  # many small solves and retrainings: half a minute together

NETWORKS = {"small": small_network, "curved": curved}


@pytest.mark.slow
@pytest.mark.parametrize(("network", "name"), [("small", "plain"), ("curved", "plain"), ("curved", "first order")])
def test_linearisation_is_as_cheap_as_algorithm_1(
    name: str, network: str, figures: list[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(
        penalty,
        "PenaltyOptions",
        partial(PenaltyOptions, first_lambda=4.0, steps=50, doublings=8, bisections=2),
    )
    model = NETWORKS[network]()
    problem = master(model, refused(model, 0, 5), "l2", rules(model) if network == "small" else None)
    promise = promises(model)[name]
    found, paper = solve_by_linearisation(promise, problem, DELTA), solve_by_penalty(promise, problem, DELTA)
    for solution in (found, paper):
        holds(promise, solution)
    assert ((paper.outcomes == Outcome.FOUND) <= (found.outcomes == Outcome.FOUND)).all()
    both = paper.outcomes == Outcome.FOUND
    assert both.sum() >= 4
    ratio = costs(problem, found)[both] / costs(problem, paper)[both]
    figures.append(
        f"repeated linearisation against Algorithm 1, {network} network, {name}: cost ratio "
        f"{ratio.min():.4f} to {ratio.max():.4f}"
    )
    assert ratio.max() < 1.01
    assert np.median(ratio) > 0.97  # and Algorithm 1 is not far off either


@pytest.mark.slow
@pytest.mark.parametrize("make", [lambda: LogisticModel.fit(random_training_set(1, n=60), C=1.0), small_network])
def test_algorithm_1_finds_the_same_with_constraints_held_and_read_anew_at_every_step(make: Any) -> None:
    model = make()
    problem = master(model, refused(model, 0, 3))
    promise = FirstOrder(model, 3)
    arrays = PenaltyProblem(
        X0=problem.X0,
        lower=problem.X0 - 50 * problem.cost.scale,
        upper=problem.X0 + 50 * problem.cost.scale,
        price=problem.cost,
    )
    reads = {"true": 0, "held": 0}

    def read(points: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        reads["true"] += 1
        reading = promise.read(points)
        return reading.values, reading.slopes

    def hold(points: np.ndarray) -> Any:
        held = promise.frozen_at(points)

        def read_held(others: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
            reads["held"] += 1
            reading = held(others)
            return reading.values, reading.slopes

        return read_held

    options = PenaltyOptions(first_lambda=1.0, steps=60, halvings=2, doublings=8, bisections=2)
    (held, held_found), true_reads = minimise_by_penalty(read, arrays, DELTA, hold=hold, options=options), reads["true"]
    reads["true"] = 0
    anew, anew_found = minimise_by_penalty(read, arrays, DELTA, options=options)
    assert held_found.all()
    assert anew_found.all()
    assert true_reads < reads["true"] / 10  # which is what holding is for
    for points in (held, anew):
        assert (promise.read(points).values >= DELTA).all()
    ratio = arrays.cost(held) / arrays.cost(anew)
    np.testing.assert_allclose(ratio, 1.0, atol=0.01)
