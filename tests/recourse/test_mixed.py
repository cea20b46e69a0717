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
from rocerf import FeatureSchema, LogisticModel, Rocerf, Status, TrainingSet
from rocerf.baselines import Scfe
from rocerf.data.schema import Feature
from rocerf.recourse.costs.cost import Norm
from rocerf.recourse.costs.norms import NormCost
from rocerf.recourse.costs.registry import cost_named
from rocerf.recourse.master import highs, mixed
from rocerf.recourse.master.feasible_set import FeasibleSet
from rocerf.recourse.master.master import REACH, Cheapest, Master
from rocerf.recourse.master.mixed import GAP, MISS, MixedProblem
from rocerf.recourse.solvers.solution import GUARD
from rule_checker import TooManyPointsError, allowed_points, attributes, broken_rules, changed, columns_of
from schema_problems import COSTS, DISCRETE, KINDS, Problem, cost_of, problems, unit_prices

quiet = settings(derandomize=True, deadline=None, suppress_health_check=list(HealthCheck))

Cuts = tuple[np.ndarray, np.ndarray]

#: How far, in standard deviations, the oracle for free numbers looks. The package looks farther, but not without end.
FAR = 100.0


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
    if not answer.found[0]:
        assert expected is None
        return
    x = answer.points[0]
    price = cost_of(cost, problem, x0, x)
    assert broken_rules(problem.schema, x0, x, **limits) == []
    assert (cuts[0] @ x + cuts[1] >= -MISS).all()
    assert answer.gaps[0] <= GAP
    if (np.abs(x - x0) > FAR * problem.model.train.spread).any():
        assert expected is None or price <= expected * (1 + GAP)
    else:
        assert expected is not None
        assert price == pytest.approx(expected, rel=GAP, abs=1e-9)


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


@pytest.mark.slow
@pytest.mark.parametrize("cost", COSTS)
@settings(quiet, max_examples=40)
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
        feature, own = places[column], x0[column]
        far = FAR * problem.model.train.spread[column]
        lower.append(max(feature.lower, own if feature.direction == "increase" else own - far))
        upper.append(min(feature.upper, own if feature.direction == "decrease" else own + far))
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


@pytest.mark.slow
@pytest.mark.parametrize("cost", COSTS)
@settings(quiet, max_examples=40)
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


# --- no whole numbers: the plain solvers -----------------------------------------------------------------


@pytest.mark.parametrize("norm", ["l2", "l1"])
@pytest.mark.parametrize("seed", range(3))
def test_without_whole_numbers_and_rules_answers_are_those_without_a_schema(seed: int, norm: str) -> None:
    model = LogisticModel.fit(random_training_set(seed, n=40, d=4), C=1.0)
    people = refused_people(model, seed, 6)
    plain = Rocerf(model, 2, promise="first_order", cost=norm).explain(people)
    wide = FeatureSchema(tuple(Feature(name, lower=-1e12, upper=1e12) for name in model.train.columns))
    for schema in (FeatureSchema.free(model.train.columns), wide):
        same = Rocerf(model, 2, promise="first_order", cost=norm, schema=schema).explain(people)
        assert same.statuses == plain.statuses
        np.testing.assert_allclose(same.matrix, plain.matrix, rtol=1e-8, atol=1e-8)
        np.testing.assert_allclose(same.costs, plain.costs, rtol=1e-8)
    # A limit that forbids nothing sends everybody through the mixed-integer program.
    loose = Rocerf(model, 2, promise="first_order", cost=norm, max_changes=4).explain(people)
    assert loose.statuses == plain.statuses
    np.testing.assert_allclose(loose.costs, plain.costs, rtol=GAP)


@pytest.mark.parametrize("norm", list(Norm))
@pytest.mark.parametrize("seed", range(5))
def test_a_mixed_program_without_whole_numbers_is_the_plain_one(seed: int, norm: Norm) -> None:
    rng = np.random.default_rng(seed)
    X0, scale = rng.normal(size=(4, 5)), rng.uniform(0.1, 10.0, size=5)
    slopes, constants = rng.normal(size=(4, 3, 5)) / scale, rng.normal(size=(4, 3)) - 2.0
    box = FeasibleSet(X0 - rng.uniform(0, 2, size=X0.shape) * scale, X0 + rng.uniform(0, 2, size=X0.shape) * scale, X0)
    master = Master(X0, NormCost(norm, scale), box)
    plain = master.cheapest(np.arange(4), slopes, constants, 0.0)
    for person in range(4):
        found = MixedProblem(person, X0, master.cost, box, REACH).cheapest(slopes[person], constants[person], 0.0)
        assert (found.found, found.failed) == (plain.found[person], False)
        if found.found:
            costs = [master.cost.of(x[None], X0[[person]])[0] for x in (found.point, plain.points[person])]
            assert costs[0] == pytest.approx(costs[1], rel=GAP)


def related(rng: np.random.Generator, model: LogisticModel) -> FeatureSchema:
    """Bounds from the rows, and one or two relations that matter, equations among them."""
    X, spread = model.train.X, model.train.spread
    schema = FeatureSchema.free(model.train.columns)
    for place, name in enumerate(model.train.columns):
        schema = schema.edit(name, lower=X[:, place].min(), upper=X[:, place].max())
    for sign in rng.choice(["<=", ">=", "=="], size=rng.integers(1, 3)):
        one, other = rng.choice(X.shape[1], 2, replace=False)
        factors = 1 / float(spread[one]), float(rng.normal() / spread[other])
        middle = float(X[:, one].mean() * factors[0] - X[:, other].mean() * factors[1] + 0.5 * rng.normal())
        schema = schema.relate(f"x{one} * {factors[0]} {sign} x{other} * {factors[1]} + {middle}")
    return schema


@pytest.mark.parametrize("norm", ["l2", "l1"])
@pytest.mark.parametrize("seed", range(8))
def test_relations_between_plain_numbers_are_half_spaces(seed: int, norm: str) -> None:
    rng = np.random.default_rng(seed)
    model = LogisticModel.fit(random_training_set(seed, n=40, d=4), C=1.0)
    schema, scale = related(rng, model), np.asarray(model.train.spread)
    slopes, constants = model.halfspaces(model.theta[None])
    relations = np.array([[r.coefficients.get(name, 0.0) for name in schema.names] for r in schema.relations])
    tops = np.array([relation.upper for relation in schema.relations])
    recourses = Scfe(model, cost=norm, schema=schema).explain(refused_people(model, seed, 4))
    for recourse in recourses:
        x0 = recourse.person
        A = np.vstack([slopes, -relations]) * scale
        b = np.concatenate([GUARD - constants - slopes @ x0, relations @ x0 - tops])
        ends = [([f.lower for f in schema] - x0) / scale, ([f.upper for f in schema] - x0) / scale]
        lengths = np.linalg.norm(A, axis=1)
        if norm == "l2":
            u = quadratic_program(A / lengths[:, None], b / lengths, *ends)
            expected = None if u is None else float(np.linalg.norm(u))
        else:
            bounds = np.concatenate([np.maximum(np.stack(ends, 1), 0), np.maximum(-np.stack(ends[::-1], 1), 0)])
            program = linprog(np.ones(8), A_ub=np.hstack([-A, A]), b_ub=-b, bounds=bounds)
            expected = float(program.fun) if program.status == 0 else None
        assert recourse.status is (Status.ANSWERED if expected is not None else Status.UNREACHABLE)
        if expected is not None:
            assert recourse.cost == pytest.approx(expected, rel=1e-6, abs=1e-8)
            assert broken_rules(schema, x0, recourse.point) == []


# --- the gap, and cases that went wrong once --------------------------------------------------------------


@pytest.mark.parametrize("cost", ["l1", "l2"])
def test_a_solver_that_stops_early_says_how_much_cheaper_it_might_be(
    cost: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    rng = np.random.default_rng(3)
    train = TrainingSet(rng.integers(0, 9, size=(60, 8)).astype(float), np.arange(60) % 2)
    schema = FeatureSchema(tuple(Feature(f"x{j}", "integer", lower=0, upper=60) for j in range(8)))
    x0 = np.zeros((1, 8))
    problem = MixedProblem(0, x0, cost_named(cost, train, schema), FeasibleSet.around(x0, schema), REACH)
    cuts = rng.uniform(1.0, 2.0, size=(6, 8)), -rng.uniform(20.0, 40.0, size=6)
    best = problem.cheapest(*cuts, 0.0)
    assert best.gap == 0.0
    monkeypatch.setitem(highs._OPTIONS, "mip_rel_gap", 0.2)
    monkeypatch.setattr(mixed, "ROUNDS", 2)
    rough = problem.cheapest(*cuts, 0.0)
    costs = [problem.cost.of(found.point[None], x0)[0] for found in (best, rough)]
    assert rough.gap > GAP
    assert costs[1] * (1 - rough.gap) <= costs[0] * (1 + GAP) <= costs[1] * (1 + 2 * GAP)


def test_one_step_inside_the_box_is_no_contradiction_for_a_curved_price() -> None:
    """A column with a single value left used to make the program of percentiles infeasible."""
    rng = np.random.default_rng(0)
    train = TrainingSet(rng.uniform(0, 4, size=(40, 2)), np.arange(40) % 2)
    schema = FeatureSchema((Feature("x0", "integer", lower=1.5, upper=2.5), Feature("x1", lower=0, upper=4)))
    x0 = np.array([[2.0, 1.0]])
    master = Master.over(x0, cost_named("percentile", train, schema), FeasibleSet.around(x0, schema))
    found = master.cheapest(np.array([0]), np.array([[[0.0, 1.0]]]), np.array([[-3.0]]), 0.0)
    np.testing.assert_allclose(found.points, [[2.0, 3.0]], atol=1e-9)


def test_a_limit_on_changes_of_numbers_without_bounds_is_solved_to_the_optimum() -> None:
    """With bounds of 10,000 standard deviations HiGHS 1.15 gave 2.79 here, and called it optimal."""
    schema = FeatureSchema(
        (Feature("a"), Feature("b"), Feature("c", "binary")),
        ("c <= 21.532423323528437 * a",),
    )
    x0 = np.array([[0.01112090792548513, 0.04226459635178745, 1.0]])
    scale = np.array([0.01460958193583202, 0.03049101120316238, 0.4582575694955839])
    allowed = FeasibleSet.around(x0, schema, 2)
    slopes = np.array([[14.634910350948477, -50.70986370951939, -2.0368889869343563]])
    found = MixedProblem(0, x0, NormCost(Norm.L1, scale), allowed, REACH).cheapest(slopes, np.array([1.850131901]), 0.0)
    assert NormCost(Norm.L1, scale).of(found.point[None], x0)[0] == pytest.approx(2.26648, abs=1e-5)
    assert changed(schema, x0[0], found.point) == {"b", "c"}


def test_answers_far_away_are_found_too() -> None:
    """The search begins near the person and goes farther where nothing is found, or something might be cheaper."""
    schema = FeatureSchema((Feature("a", "integer"), Feature("b")))
    x0 = np.zeros((1, 2))
    for norm, expected in ((Norm.L1, 5000.0), (Norm.L2, 5000.0 / np.sqrt(1.04))):
        cost = NormCost(norm, np.ones(2))
        problem = MixedProblem(0, x0, cost, FeasibleSet.around(x0, schema), REACH)
        found = problem.cheapest(np.array([[0.2, 1.0]]), np.array([0.0]), 5000.0)
        assert cost.of(found.point[None], x0)[0] == pytest.approx(expected, rel=GAP)
    nowhere = problem.cheapest(np.array([[1.0, 0.0]]), np.array([0.0]), 1e6)
    assert not nowhere.found
    assert not nowhere.failed


def test_people_outside_the_bounds_are_sent_inside_and_that_is_a_change() -> None:
    schema = FeatureSchema(
        (Feature("a", lower=0, upper=1), Feature("b", "integer", lower=0, upper=5), Feature("c", lower=0, upper=9))
    )
    x0 = np.array([[3.0, 7.0, 0.0]])
    for most, possible in ((3, True), (2, False)):
        allowed = FeasibleSet.around(x0, schema, most)
        problem = MixedProblem(0, x0, NormCost(Norm.L2, np.ones(3)), allowed, REACH)
        found = problem.cheapest(np.array([[0.0, 0.0, 1.0]]), np.array([-2.0]), 0.0)
        assert found.found is possible
        if possible:
            np.testing.assert_allclose(found.point, [1.0, 5.0, 2.0], atol=1e-9)


@pytest.mark.parametrize(("norm", "expected"), [(Norm.L1, 0.89537), (Norm.L2, 0.79548)])
def test_own_values_between_two_steps_compete_with_all_the_steps(norm: Norm, expected: float) -> None:
    """HiGHS 1.15 with its presolve gave a point of cost 1.34 here (L1), and called it optimal."""
    features = (
        Feature("a", "integer", lower=-4, upper=5),
        Feature("b", "integer", lower=-3, upper=6, direction="decrease"),
        Feature("c", "binary"),
    )
    x0 = np.array([[2.4673268615338984, 4.244496953370135, 0.0]])
    cost = NormCost(norm, np.array([0.6513116116742395, 3.623621159916882, 3.5647568]))
    slopes, target = np.array([[-1.97483057, -0.47435223, -0.01796523]]), -5.582316333787498
    allowed = FeasibleSet.around(x0, FeatureSchema(features), 2, [["a", "b", "c"]])
    found = MixedProblem(0, x0, cost, allowed, REACH).cheapest(slopes, np.zeros(1), target)
    choices = [(x0[0, 0], *range(-4, 6)), (x0[0, 1], *range(-3, 5)), (0.0, 1.0)]
    points = np.array(list(itertools.product(*choices)))
    points = points[(points @ slopes[0] >= target) & ((points != x0).sum(axis=1) <= 2)]
    best = cost.of(points, np.broadcast_to(x0, points.shape)).min()
    assert best == pytest.approx(expected, abs=1e-5)
    assert cost.of(found.point[None], x0)[0] == pytest.approx(best, rel=GAP)
