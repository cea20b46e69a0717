"""The mixed-integer master problem against enumeration, and against plain projections and linear programs."""

from __future__ import annotations

import itertools
from collections.abc import Collection, Iterator
from dataclasses import replace
from typing import Any

import numpy as np
import pytest
from hypothesis import HealthCheck, given, reject, settings
from hypothesis import strategies as st
from scipy.optimize import linprog

from problems import quadratic_program, random_training_set, refused_people
from rocerf import LogisticModel, Rocerf, TrainingSet
from rocerf.data.schema import Feature, FeatureSchema
from rocerf.recourse.cost import CostTable, Norm, NormCost, cost_named
from rocerf.recourse.feasible_set import FeasibleSet
from rocerf.recourse.master import REACH, Cheapest, Master
from rocerf.recourse.mixed import GAP, MISS, MixedProblem
from rule_checker import TooManyPointsError, allowed_points, attributes, broken_rules, changed, columns_of
from schema_problems import COSTS, DISCRETE, KINDS, Problem, cost_of, problems, unit_prices

quiet = settings(derandomize=True, deadline=None, suppress_health_check=list(HealthCheck))

Cuts = tuple[np.ndarray, np.ndarray]


def random_cuts(problem: Problem, x0: np.ndarray, count: int) -> Cuts:
    """The model itself and other half-spaces that leave the person outside: slopes (m, d) and constants (m,)."""
    rng = np.random.default_rng(problem.seed)
    slopes, constants = problem.model.halfspaces(problem.model.theta[None])
    spread = np.asarray(problem.model.train.spread)
    others = slopes[0] + rng.normal(size=(count - 1, len(x0))) / spread * np.linalg.norm(slopes[0] * spread) / 2
    missing = rng.uniform(0.0, 1.0, size=count - 1)
    return np.vstack([slopes, others]), np.concatenate([constants, -others @ x0 - missing])


def solve(
    problem: Problem,
    cost: str,
    x0: np.ndarray,
    cuts: Cuts,
    max_changes: int | None,
    excluded: Collection[Collection[str]],
) -> Cheapest:
    """The package's answer for one person, exclusions given by name."""
    names = list(attributes(problem.schema))
    allowed = FeasibleSet.around(x0[None], problem.schema, max_changes)
    if excluded:
        allowed = allowed.excluding((tuple(frozenset(names.index(name) for name in group) for group in excluded),))
    master = Master.over(x0[None], cost_named(problem.cost(cost), problem.model.train, problem.schema), allowed)
    return master.cheapest(np.array([0]), cuts[0][None], cuts[1][None], 0.0)


def check(
    problem: Problem,
    x0: np.ndarray,
    answer: Cheapest,
    expected: float | None,
    cost: str,
    cuts: Cuts,
    limits: dict[str, Any],
) -> None:
    """The answer is allowed, behind all cuts, and as cheap as the cheapest; or there is none, and none is given."""
    assert not answer.failed[0]
    assert answer.found[0] == (expected is not None), expected
    if expected is not None:
        x = answer.points[0]
        assert broken_rules(problem.schema, x0, x, **limits) == []
        assert (cuts[0] @ x + cuts[1] >= -MISS).all()
        assert answer.gaps[0] <= GAP
        assert cost_of(cost, problem, x0, x) == pytest.approx(expected, rel=GAP, abs=1e-9)


def some_exclusions(problem: Problem, x0: np.ndarray, cost: str, cuts: Cuts, max_changes: int | None) -> list[set[str]]:
    """What the cheapest answer changes, twice over, as if alternatives were asked for."""
    excluded: list[set[str]] = []
    for _ in range(2):
        answer = solve(problem, cost, x0, cuts, max_changes, excluded)
        if answer.found[0]:
            excluded.append(changed(problem.schema, x0, answer.points[0]))
    return excluded


# --- everything stepped: all points are looked at ------------------------------------------------------


def cheapest_of_all(problem: Problem, cost: str, x0: np.ndarray, cuts: Cuts, limits: dict[str, Any]) -> float | None:
    try:
        points = np.array(list(allowed_points(problem.schema, x0, most=2000, **limits))).reshape(-1, len(x0))
    except TooManyPointsError:
        reject()
    behind = points[(points @ cuts[0].T + cuts[1] >= 0).all(axis=1)]
    best = min((cost_of(cost, problem, x0, x) for x in behind), default=np.inf)
    return best if np.isfinite(best) else None


@pytest.mark.parametrize("cost", COSTS)
@settings(quiet, max_examples=25)
@given(problems(kinds=DISCRETE, most=4, people=1), st.sampled_from([None, 1, 2]), st.integers(1, 3), st.booleans())
def test_the_optimum_of_whole_numbers_and_categories_is_that_of_all_points(
    cost: str, problem: Problem, max_changes: int | None, count: int, alternatives: bool
) -> None:
    for x0 in problem.people:
        cuts = random_cuts(problem, x0, count)
        excluded = some_exclusions(problem, x0, cost, cuts, max_changes) if alternatives else []
        limits = {"max_changes": max_changes, "excluded": excluded}
        answer = solve(problem, cost, x0, cuts, **limits)
        check(problem, x0, answer, cheapest_of_all(problem, cost, x0, cuts, limits), cost, cuts, limits)


# --- numbers in between: all points of the stepped part, and the best of the rest for each ---------------


def skeletons(problem: Problem, x0: np.ndarray) -> Iterator[tuple[np.ndarray, list[int]]]:
    """Each choice of the stepped part with other numbers as they are, and the columns left free."""
    free = [f.name for f in problem.schema if f.kind == "continuous" and f.step is None and f.direction != "fixed"]
    still = problem.schema
    for name in free:
        still = still.edit(name, direction="fixed")
    columns = [columns_of(problem.schema)[name][0] for name in free]
    for x in allowed_points(replace(still, relations=()), x0, most=300):
        yield np.array(x), columns


def free_box(problem: Problem, x0: np.ndarray, columns: list[int]) -> tuple[np.ndarray, np.ndarray]:
    """Bounds and directions of free numbers; conditions are left to the checker."""
    names = list(columns_of(problem.schema))
    places = {
        columns_of(problem.schema)[name][0]: problem.schema[name] for name in names if name in problem.schema.names
    }
    lower, upper = [], []
    for column in columns:
        feature = places[column]
        lower.append(max(feature.lower, x0[column]) if feature.direction == "increase" else feature.lower)
        upper.append(min(feature.upper, x0[column]) if feature.direction == "decrease" else feature.upper)
    return np.array(lower), np.array(upper)


def halfspaces(problem: Problem, cuts: Cuts) -> Cuts:
    """Cuts and relations as ``rows x >= limits``."""
    columns = list(problem.schema.columns)
    rows, limits = [*cuts[0]], [*-cuts[1]]
    for relation in problem.schema.relations:
        row = np.zeros(len(columns))
        for name, value in relation.coefficients.items():
            row[columns.index(name)] = -value
        rows.append(row)
        limits.append(-relation.upper)
    return np.array(rows), np.array(limits)


def cheapest_of_the_rest(
    problem: Problem, cost: str, x0: np.ndarray, x: np.ndarray, columns: list[int], cuts: Cuts
) -> float | None:
    """The cheapest way to meet all half-spaces by these columns, from x on: by Clarabel, by HiGHS, by hand."""
    rows, limits = halfspaces(problem, cuts)
    missing = limits - rows @ x
    lower, upper = free_box(problem, x0, columns)
    if (lower > upper).any():
        return None
    if not columns:
        return 0.0 if (missing <= 0).all() else None
    if cost == "percentile":
        return _nearest_in_interval(problem, x0, columns, rows, missing, lower, upper)
    up, down = np.array([unit_prices(cost, problem, column) for column in columns]).T
    part = rows[:, columns]
    low, high = lower - x0[columns], upper - x0[columns]
    empty = np.abs(part).max(axis=1) == 0
    if (missing[empty] > 0).any():
        return None
    part, missing = part[~empty], missing[~empty]
    if cost == "l2":
        A = part / up
        lengths = np.linalg.norm(A, axis=1)
        u = quadratic_program(A / lengths[:, None], missing / lengths, low * up, high * up)
        return None if u is None else float((u**2).sum())
    d = len(columns)
    bounds = [(max(a, 0.0), max(b, 0.0)) for a, b in zip(low, high, strict=True)]
    bounds += [(max(-b, 0.0), max(-a, 0.0)) for a, b in zip(low, high, strict=True)]
    scale = np.concatenate([1 / up, 1 / down])  # in units that cost 1, which HiGHS likes better
    matrix = np.hstack([-part, part]) * scale
    result = linprog(np.ones(2 * d), A_ub=matrix, b_ub=-missing, bounds=np.array(bounds) / scale[:, None])
    return float(result.fun) if result.status == 0 else None


def _nearest_in_interval(
    problem: Problem, x0: np.ndarray, columns: list[int], rows: np.ndarray, missing: np.ndarray, low: Any, high: Any
) -> float | None:
    """Of one column: percentiles never fall, so the nearest value is the cheapest."""
    (column,) = columns
    least, most = low[0] - x0[column], high[0] - x0[column]
    for slope, need in zip(rows[:, column], missing, strict=True):
        if slope > 0:
            least = max(least, need / slope)
        elif slope < 0:
            most = min(most, need / slope)
        elif need > 0:
            return None
    if least > most:
        return None
    x = x0.copy()
    x[column] += min(max(least, 0.0), most)
    return cost_of("percentile", problem, x0, x)


def cheapest_mixture(problem: Problem, cost: str, x0: np.ndarray, cuts: Cuts, limits: dict[str, Any]) -> float | None:
    names = {places[0]: name for name, places in columns_of(problem.schema).items()}
    best = np.inf
    try:
        parts = list(skeletons(problem, x0))
    except TooManyPointsError:
        reject()
    for x, columns in parts:
        price = cost_of(cost, problem, x0, x)
        if not np.isfinite(price):
            continue
        outside = {j for j, a, b in zip(columns, *free_box(problem, x0, columns), strict=True) if not a <= x0[j] <= b}
        already = changed(problem.schema, x0, x)
        for size in range(len(columns) + 1):
            for moving in itertools.combinations(columns, size):
                moved = already | {names[column] for column in moving}
                most = limits["max_changes"]
                if not outside <= set(moving) or (most is not None and len(moved) > most):
                    continue
                if any(set(group) <= moved for group in limits["excluded"]):
                    continue
                rest = cheapest_of_the_rest(problem, cost, x0, x, list(moving), cuts)
                if rest is not None:
                    best = min(best, np.sqrt(price**2 + rest) if cost == "l2" else price + rest)
    return float(best) if np.isfinite(best) else None


def without_conditions(problem: Problem, free: int) -> Problem:
    """At most so many free numbers, and no conditions, of which the oracle for free numbers knows nothing."""
    schema = problem.schema
    for feature in schema:
        schema = schema.edit(feature.name, fixed_if=None)
        if feature.kind == "continuous" and feature.step is None and feature.direction != "fixed":
            free -= 1
            if free < 0:
                schema = schema.edit(feature.name, direction="fixed")
    return replace(problem, schema=schema)


@pytest.mark.parametrize("cost", COSTS)
@settings(quiet, max_examples=20)
@given(
    problems(kinds=("continuous", "continuous", *KINDS), most=4, people=1),
    st.sampled_from([None, 1, 2]),
    st.integers(1, 3),
    st.booleans(),
)
def test_the_optimum_of_mixed_columns_is_the_best_over_all_stepped_parts(
    cost: str, problem: Problem, max_changes: int | None, count: int, alternatives: bool
) -> None:
    problem = without_conditions(problem, 1 if cost == "percentile" else 2)
    for x0 in problem.people:
        cuts = random_cuts(problem, x0, count)
        excluded = some_exclusions(problem, x0, cost, cuts, max_changes) if alternatives else []
        limits = {"max_changes": max_changes, "excluded": excluded}
        answer = solve(problem, cost, x0, cuts, **limits)
        check(problem, x0, answer, cheapest_mixture(problem, cost, x0, cuts, limits), cost, cuts, limits)
