"""No answer breaks a rule: random schemas, models, people, costs and promises, checked by code of its own.

And no answer is withheld: on small grids all allowed points are looked at.
"""

from __future__ import annotations

from collections.abc import Iterator
from functools import cache
from typing import Any

import numpy as np
import pytest
from hypothesis import HealthCheck, given, reject, settings
from hypothesis import strategies as st
from sklearn.tree import DecisionTreeClassifier

from rocerf import EstimatorModel, NeuralModel, Recourses, Rocerf, Status, TrainingSet
from rocerf.baselines import Scfe
from rocerf.data.schema import Feature, FeatureSchema
from rocerf.errors import NotConvergedError
from rocerf.promises import Plain, Simulated, simulated
from rule_checker import TooManyPointsError, allowed_points, broken_rules, changed
from schema_problems import COSTS, DISCRETE, Problem, cost_of, problems

quiet = settings(derandomize=True, deadline=None, suppress_health_check=list(HealthCheck))

SMALL = Simulated(validity=0.8, shaping=4, choosing=4, checking=4)

limits = st.sampled_from([None, None, 1, 2, 3])


@pytest.fixture(autouse=True)
def _few_people_choose(monkeypatch: pytest.MonkeyPatch) -> None:
    """What a simulated promise tries out before it is given, made short."""
    monkeypatch.setattr(simulated, "PEOPLE", 4)
    monkeypatch.setattr(simulated, "PEOPLE_SEARCHED", 2)
    monkeypatch.setattr(simulated, "HALVINGS", 1)


def keeps_everything(
    explainer: Any, problem: Any, batches: tuple[Recourses, ...], cost: str, max_changes: int | None
) -> int:
    """Answers obey all rules, are accepted, keep the promise, cost what they say and differ; how many there are."""
    model, promise = problem.model, explainer.promise
    count = 0
    for person, x0 in enumerate(problem.people):
        earlier: list[set[str]] = []
        before = 0.0
        for batch in batches:
            x, price = batch.matrix[person], batch.costs[person]
            if batch.statuses[person] is not Status.ANSWERED:
                assert np.isnan(x).all()
                assert np.isnan(price)
                assert batch.reasons[person]
                continue
            count += 1
            assert broken_rules(problem.schema, x0, x, max_changes=max_changes, excluded=earlier) == []
            assert model.predict(x[None])[0] == 1
            assert price == pytest.approx(cost_of(cost, problem, x0, x), rel=1e-9)
            if not hasattr(promise, "for_person"):  # else it is another promise for each person
                again = promise.read(x[None])
                assert again.values[0] >= 0
                assert batch.margins[person] >= 0
            if promise.concave:  # then every answer is the cheapest of its kind
                assert price >= before * (1 - 2e-6) - 1e-9
                assert batch.gaps is not None
                assert batch.gaps[person] <= 1e-6
                before = price
            moved = changed(problem.schema, x0, x)
            assert {change.feature for change in batch[person].changes} == moved
            earlier.append(moved)
    return count


# --- logistic models -------------------------------------------------------------------------------------


@settings(quiet, max_examples=60)
@given(problems(), st.sampled_from(COSTS), limits)
def test_plain_counterfactuals_break_no_rule(problem: Problem, cost: str, max_changes: int | None) -> None:
    explainer = Rocerf(
        problem.model,
        0,
        promise=Plain(problem.model),
        cost=problem.cost(cost),
        schema=problem.schema,
        max_changes=max_changes,
    )
    recourses = explainer.explain(problem.people)
    keeps_everything(explainer, problem, (recourses,), cost, max_changes)
    assert Status.GAVE_UP not in recourses.statuses
    if max_changes is None:
        same = Scfe(problem.model, cost=problem.cost(cost), schema=problem.schema).explain(problem.people)  # type: ignore[arg-type]
        assert same.statuses == recourses.statuses
        np.testing.assert_array_equal(same.matrix, recourses.matrix)


@pytest.mark.parametrize("promise", ["first_order", "retrained", "certified"])
@settings(quiet, max_examples=25)
@given(problems(), st.sampled_from(COSTS), limits, st.integers(1, 2))
def test_answers_that_keep_a_promise_break_no_rule(
    promise: str, problem: Problem, cost: str, max_changes: int | None, k: int
) -> None:
    explainer = Rocerf(
        problem.model,
        1 if promise == "certified" else k,
        promise=promise,
        cost=problem.cost(cost),
        schema=problem.schema,
        max_changes=max_changes,
        effort="quick",
    )
    batches = explainer.alternatives(problem.people, 3)
    keeps_everything(explainer, problem, batches, cost, max_changes)
    assert all(Status.GAVE_UP not in batch.statuses for batch in batches)
