"""No answer breaks a rule: random schemas, models, people, costs and promises, checked by code of its own.

And no answer is withheld: on small grids all allowed points are looked at.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from functools import cache
from typing import Any

import numpy as np
import pandas as pd
import pytest
from hypothesis import HealthCheck, given, reject, settings
from hypothesis import strategies as st
from sklearn.impute import SimpleImputer
from sklearn.linear_model import LogisticRegression
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler
from sklearn.tree import DecisionTreeClassifier

from rocerf import EstimatorModel, LogisticModel, NeuralModel, Recourses, Rocerf, Status, TrainingSet, from_pipeline
from rocerf.baselines import Scfe
from rocerf.data.schema import Feature, FeatureSchema
from rocerf.errors import DidNotTrainError, OptionError
from rocerf.promises import Plain, Simulated, margin_choice, simulated
from rocerf.recourse.costs.registry import cost_named
from rocerf.recourse.master.feasible_set import FeasibleSet
from rocerf.recourse.master.master import Master
from rocerf.recourse.solvers import sequential
from rule_checker import TooManyPointsError, allowed_points, attributes, broken_rules, changed, columns_of
from schema_problems import COSTS, DISCRETE, Problem, cost_of, problems

quiet = settings(derandomize=True, deadline=None, suppress_health_check=list(HealthCheck))

SMALL = Simulated(validity=0.5, shaping=3, choosing=3, checking=3)

limits = st.sampled_from([None, None, 1, 2, 3])


@pytest.fixture(autouse=True)
def _few_people_choose(monkeypatch: pytest.MonkeyPatch) -> None:
    """What a simulated promise tries out before it is given, made short."""
    monkeypatch.setattr(simulated, "PEOPLE", 4)
    monkeypatch.setattr(simulated, "PEOPLE_SEARCHED", 2)
    monkeypatch.setattr(margin_choice, "DOUBLINGS", 2)
    monkeypatch.setattr(margin_choice, "HALVINGS", 1)


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


def explainer_of(problem: Any, promise: str, cost: str, max_changes: int | None, k: int = 1) -> Rocerf:
    small = replace(SMALL, retraining="warm") if isinstance(problem.model, NeuralModel) else SMALL
    meant: dict[str, Any] = {"plain": Plain(problem.model), "simulated": small}
    return Rocerf(
        problem.model,
        0 if promise == "plain" else k,
        promise=meant.get(promise, promise),
        cost=problem.cost(cost),
        schema=problem.schema,
        max_changes=max_changes,
        effort="quick",
    )


def alternatives(explainer: Rocerf, problem: Any) -> tuple[Recourses, ...]:
    """Three answers a person."""
    return explainer.alternatives(problem.people, 3)


#: Random problems for each promise, and how many answers must come out of them at least.
LOGISTIC = {
    "plain": (40, 50),
    "first_order": (20, 25),
    "retrained": (20, 25),
    "certified": (20, 25),
    "simulated": (8, 10),
}


@pytest.mark.slow
@pytest.mark.parametrize("promise", LOGISTIC)
def test_answers_of_logistic_models_break_no_rule(promise: str) -> None:
    answers = []

    @settings(quiet, max_examples=LOGISTIC[promise][0])
    @given(problems(), st.sampled_from(COSTS), limits, st.integers(1, 2))
    def check(problem: Problem, cost: str, max_changes: int | None, k: int) -> None:
        explainer = explainer_of(problem, promise, cost, max_changes, 1 if promise == "certified" else k)
        batches = alternatives(explainer, problem)
        answers.append(keeps_everything(explainer, problem, batches, cost, max_changes))
        assert all(Status.GAVE_UP not in batch.statuses for batch in batches)

    check()
    assert sum(answers) >= LOGISTIC[promise][1]


@pytest.mark.slow
@settings(quiet, max_examples=10)
@given(problems(), st.sampled_from(COSTS))
def test_the_plain_baseline_answers_as_the_plain_promise(problem: Problem, cost: str) -> None:
    plain = explainer_of(problem, "plain", cost, None).explain(problem.people)
    same = Scfe(problem.model, cost=problem.cost(cost), schema=problem.schema).explain(problem.people)  # type: ignore[arg-type]
    assert same.statuses == plain.statuses
    np.testing.assert_array_equal(same.matrix, plain.matrix)


# --- networks and trees ----------------------------------------------------------------------------------


@dataclass(frozen=True, eq=False)
class Other:
    """A problem with another model, and two people whom it refuses."""

    schema: FeatureSchema
    model: Any
    people: np.ndarray
    seed: int

    cost = Problem.cost

    @classmethod
    def of(cls, problem: Problem, model: Any) -> Other:
        people = np.concatenate([problem.people, problem.model.train.X])
        return cls(problem.schema, model, people[model.predict(people) == 0][:2], problem.seed)


def network(problem: Problem) -> Other:
    try:
        return Other.of(problem, NeuralModel.fit(problem.model.train, width=4, epochs=30, learning_rate=0.3, seed=0))
    except DidNotTrainError:
        reject()


def tree(problem: Problem) -> Other:
    grown = DecisionTreeClassifier(max_depth=4, random_state=0)
    return Other.of(problem, EstimatorModel.fit(grown, problem.model.train))


NETWORKS = {"plain": (6, 5), "first_order": (3, 3), "local_linear": (6, 5), "simulated": (3, 2)}


@pytest.mark.slow
@pytest.mark.parametrize("promise", NETWORKS)
def test_answers_of_networks_break_no_rule(promise: str, monkeypatch: pytest.MonkeyPatch) -> None:
    # Fewer rounds bring dearer answers, to which the same rules apply.
    for name, fewer in (("FULL_STEPS", 3), ("ROUNDS", 3), ("HALVINGS", 2)):
        monkeypatch.setattr(sequential, name, fewer)
    answers = []

    @settings(quiet, max_examples=NETWORKS[promise][0])
    @given(problems(most=4), st.sampled_from(COSTS), limits)
    def check(problem: Problem, cost: str, max_changes: int | None) -> None:
        other = network(problem)
        explainer = explainer_of(other, promise, cost, max_changes)
        answers.append(keeps_everything(explainer, other, alternatives(explainer, other), cost, max_changes))

    check()
    assert sum(answers) >= NETWORKS[promise][1]


TREES = {"plain": (12, 10), "local_linear": (8, 5), "simulated": (4, 3)}


@pytest.mark.slow
@pytest.mark.parametrize("promise", TREES)
def test_answers_of_trees_break_no_rule(promise: str) -> None:
    answers = []

    @settings(quiet, max_examples=TREES[promise][0])
    @given(problems(), st.sampled_from(["l2", "l1", "mad"]), limits)
    def check(problem: Problem, cost: str, max_changes: int | None) -> None:
        other = tree(problem)
        explainer = explainer_of(other, promise, cost, max_changes)
        answers.append(keeps_everything(explainer, other, alternatives(explainer, other), cost, max_changes))

    check()
    assert sum(answers) >= TREES[promise][1]


# --- no answer is withheld: all points of small grids ------------------------------------------------------


def first_order_value(problem: Problem, X: np.ndarray, k: int) -> np.ndarray:
    """``f_A`` by a dense inverse and a sort; for k = 0 the score itself."""
    model = problem.model
    effects = model.score_gradient(X) @ (model.row_gradients() @ np.linalg.inv(model.curvature().hessian)).T
    return model.score(X) + np.minimum(np.sort(effects, axis=1)[:, :k], 0.0).sum(axis=1)


@pytest.mark.slow
@pytest.mark.parametrize("k", [0, 1, 3])
@settings(quiet, max_examples=40)
@given(problems(kinds=DISCRETE, most=4, people=2), st.sampled_from(COSTS), limits, st.sampled_from([0.0, 0.0, 0.3]))
def test_who_gets_no_answer_has_none_among_all_points(
    k: int, problem: Problem, cost: str, max_changes: int | None, delta: float
) -> None:
    """Brute force: an answer where there is one, as cheap as the cheapest; where there is none, the right reason."""
    explainer = Rocerf(
        problem.model,
        k,
        promise="first_order" if k else Plain(problem.model),
        cost=problem.cost(cost),
        schema=problem.schema,
        max_changes=max_changes,
        delta=delta,
    )
    for recourse in explainer.explain(problem.people):
        x0 = recourse.person
        try:
            points = np.array(list(allowed_points(problem.schema, x0, max_changes=max_changes, most=2000)))
        except TooManyPointsError:
            reject()
        costs = np.array([cost_of(cost, problem, x0, x) for x in points])
        points, costs = points.reshape(-1, len(x0))[np.isfinite(costs)], costs[np.isfinite(costs)]
        good = first_order_value(problem, points, k) >= delta + 1e-6
        today = problem.model.score(points) >= 1e-6
        assert (recourse.status is Status.ANSWERED) == bool(good.any())
        if good.any():
            assert recourse.cost == pytest.approx(costs[good].min(), rel=1e-6, abs=1e-9)
        else:
            expected = Status.NOT_ROBUST if today.any() else Status.UNREACHABLE
            assert recourse.status in (expected, Status.CONTRADICTION)
            assert recourse.status is not Status.CONTRADICTION or not len(points)


@pytest.mark.slow
@settings(quiet, max_examples=30)
@given(problems(kinds=DISCRETE, most=4, people=2), st.sampled_from(COSTS), limits)
def test_alternatives_are_the_cheapest_that_leave_something_as_it_is(
    problem: Problem, cost: str, max_changes: int | None
) -> None:
    explainer = Rocerf(
        problem.model,
        0,
        promise=Plain(problem.model),
        cost=problem.cost(cost),
        schema=problem.schema,
        max_changes=max_changes,
    )
    batches = explainer.alternatives(problem.people, 4)
    keeps_everything(explainer, problem, batches, cost, max_changes)
    for person, x0 in enumerate(problem.people):
        earlier: list[set[str]] = []
        for batch in batches:
            try:
                allowed = list(allowed_points(problem.schema, x0, max_changes=max_changes, excluded=earlier, most=1000))
            except TooManyPointsError:
                reject()
            points = np.array(allowed).reshape(-1, len(x0))
            costs = [cost_of(cost, problem, x0, x) for x in points[problem.model.score(points) >= 1e-6]]
            best = min(costs, default=np.inf)
            assert batch.answered[person] == np.isfinite(best)
            if not batch.answered[person]:
                break
            assert batch.costs[person] == pytest.approx(best, rel=1e-6, abs=1e-9)
            earlier.append(changed(problem.schema, x0, batch.matrix[person]))


# --- the checker itself, and the package's own check of points ---------------------------------------------

HOUSE = FeatureSchema(
    (
        Feature("age", "integer", lower=18, upper=99, direction="increase"),
        Feature("pay", lower=0, upper=5000, step=50, fixed_if="age >= 60"),
        Feature("home", "categorical", categories=("free", "rent", "own", None), changes={"rent": ("own", None)}),
        Feature("owner", "binary", direction="decrease"),
        Feature("h_1", "binary", group="h"),
        Feature("h_2", "binary", group="h"),
    ),
    ("pay <= 100 * age",),
    {"h": {"h_1": ()}},
    ("h",),
)
MINE = [30.0, 1020.0, 0.0, 1.0, 0.0, 0.0, 0.0, 1.0, 0.0]


@pytest.mark.parametrize(
    ("change", "words"),
    [
        ({}, None),
        ({0: 31.0, 1: 1070.0, 3: 0.0, 4: 1.0}, None),
        ({0: 29.0}, "age may only rise"),
        ({0: 100.0}, "outside 18.0 to 99.0"),
        ({0: 30.5}, "no whole number"),
        ({1: 1000.0}, "no multiple of 50.0"),
        ({1: -30.0}, "pay is -30.0, outside"),
        ({1: 3020.0}, "the relation 'pay <= 100 * age' is broken"),
        ({3: 0.0, 2: 1.0}, "home may not go from rent to free"),
        ({3: 0.0, 5: 1.0}, "home went from rent to missing"),
        ({2: 1.0}, "not one category"),
        ({3: 0.5, 4: 0.5}, "not one category"),
        ({6: 1.0}, "owner may only fall"),
        ({6: 0.5}, "neither 0 nor 1"),
        ({7: 0.0, 8: 1.0}, "h may not go from h_1 to ['h_2']"),
        ({7: 0.0}, "h may not go from h_1 to its reference"),
        ({8: 1.0}, "h has 2 categories"),
        ({0: 31.0, 1: 1070.0, 3: 0.0, 4: 1.0, 6: np.nan}, "owner is no number"),
    ],
)
def test_the_checker_says_which_rule_is_broken(change: dict[int, float], words: str | None) -> None:
    x = [change.get(place, value) for place, value in enumerate(MINE)]
    said = broken_rules(HOUSE, MINE, x)
    if words is None:
        assert said == []
    else:
        assert any(words in text for text in said), said


def test_the_checker_counts_changes_and_knows_conditions() -> None:
    x = [31.0, 1070.0, 0.0, 0.0, 1.0, 0.0, 0.0, 1.0, 0.0]
    assert changed(HOUSE, MINE, x) == {"age", "pay", "home"}
    assert broken_rules(HOUSE, MINE, x, max_changes=2) == ["3 attributes change, at most 2 may"]
    assert broken_rules(HOUSE, MINE, x, excluded=[{"age"}]) == ["all of ['age'] change"]
    assert broken_rules(HOUSE, MINE, x, excluded=[{"age", "owner"}]) == []
    old = [60.0, *MINE[1:]]
    assert broken_rules(HOUSE, old, [60.0, 1070.0, *MINE[2:]]) == ["pay cannot change, but went from 1020.0 to 1070.0"]
    few = HOUSE.edit("age", direction="fixed").edit("pay", upper=1100, lower=950)
    points = list(allowed_points(few, MINE))
    assert len(points) == 3 * 2  # pay 970, 1020, 1070; home rent, own
    assert all(broken_rules(few, MINE, x) == [] for x in points)


@pytest.mark.slow
@settings(quiet, max_examples=60)
@given(problems(people=4), limits)
def test_the_package_and_the_checker_agree_about_random_points(problem: Problem, max_changes: int | None) -> None:
    """What is looked at last, before an answer leaves the house, sees what the checker sees."""
    rng = np.random.default_rng(problem.seed)
    names = list(attributes(problem.schema))
    rows = np.concatenate([problem.people, problem.model.train.X])
    for x0 in problem.people:
        points = np.where(rng.random((60, len(x0))) < 0.3, rows[rng.integers(len(rows), size=60)], x0)
        whole = columns_of(problem.schema)[names[rng.integers(len(names))]]
        swapped = np.tile(x0, (len(rows), 1))
        swapped[:, whole] = rows[:, whole]  # one attribute at a time: often allowed
        points = np.concatenate([points, swapped, x0[None]])
        groups = [set(rng.choice(names, size=rng.integers(1, 3)).tolist())]
        excluded = (tuple(frozenset(names.index(name) for name in group) for group in groups),) * len(points)
        allowed = FeasibleSet.around(np.tile(x0, (len(points), 1)), problem.schema, max_changes).excluding(excluded)
        expected = [not broken_rules(problem.schema, x0, x, max_changes=max_changes, excluded=groups) for x in points]
        assert allowed.holds(points).tolist() == expected


@settings(quiet, max_examples=30)
@given(problems(people=3))
def test_landed_points_are_on_steps_and_in_categories(problem: Problem) -> None:
    rng = np.random.default_rng(problem.seed)
    plain = FeatureSchema(problem.schema.features, (), problem.schema.group_changes, problem.schema.open_groups)
    allowed = FeasibleSet.around(problem.people, plain)
    wild = problem.people + 2 * rng.normal(size=problem.people.shape) * problem.model.train.spread
    closed = [feature.group for feature in plain if feature.group is not None]
    for x0, x, empty in zip(problem.people, allowed.landed(wild), allowed.empty, strict=True):
        said = broken_rules(plain, x0, x)
        # One column of a group that may not move can leave no category at all; that is for others to find out.
        assert empty or all(any(group in words for group in closed) for words in said)


# --- single rules, by hand ---------------------------------------------------------------------------------


@cache
def simple() -> Any:
    """A model that likes every column to be high."""
    rng = np.random.default_rng(0)
    X = rng.integers(0, 5, size=(200, 3)).astype(float)
    y = (X.sum(axis=1) + rng.normal(size=200) > 6).astype(int)
    return LogisticModel.fit(TrainingSet(X, y), C=1.0)


def answer_for(schema: FeatureSchema, x0: list[float], **options: Any) -> Any:
    return Rocerf(simple(), 0, promise=Plain(simple()), schema=schema, **options).explain([x0])[0]


@pytest.mark.parametrize("step", [None, 2])
@pytest.mark.parametrize("cost", ["l2", "l1", "mad", "percentile"])
def test_whole_numbers_that_came_with_decimals_stay_or_go_to_whole_ones(step: int | None, cost: str) -> None:
    """A number that the model fills in for a missing one need not be whole."""
    schema = FeatureSchema(tuple(Feature(f"x{j}", "integer", lower=0, upper=5, step=step) for j in range(3)))
    recourse = answer_for(schema, [0.5, 1.0, 1.0], cost=cost)
    assert recourse.answered
    assert ((recourse.point == np.rint(recourse.point)) | (recourse.point == recourse.person)).all()
    assert broken_rules(schema, recourse.person.tolist(), recourse.point.tolist()) == []
    for held in ("x1", "x2"):
        schema = schema.edit(held, direction="fixed")
    alone = answer_for(schema.edit("x0", upper=20), [2.5, 1.0, 1.0], cost=cost)
    assert alone.answered
    assert alone.point[0] == np.rint(alone.point[0]) > 2.5


def test_who_stands_between_steps_need_not_change_there() -> None:
    schema = FeatureSchema(
        (Feature("x0", "integer", lower=0, upper=5, direction="increase"), Feature("x1"), Feature("x2"))
    )
    recourse = answer_for(schema, [1.4, 1.0, 1.0], cost="l1", max_changes=1)
    assert recourse.answered
    x0 = np.array([[1.4, 1.0, 1.0]])
    narrow = FeasibleSet.around(x0, schema.edit("x0", upper=1.9, lower=0.5, direction="increase"))
    assert not narrow.empty[0]  # no whole number is left, but the own value is
    assert narrow.landed(x0 + 0.4)[0, 0] == 1.4
    wide = FeasibleSet.around(np.repeat(x0, 4, axis=0), schema)
    landed = wide.landed(np.array([[1.5, 1, 1], [1.71, 1, 1], [0.0, 1, 1], [2.6, 1, 1]], float))
    assert landed[:, 0].tolist() == [1.4, 2.0, 1.4, 3.0]
    assert wide.holds(landed).all()
    assert not wide.holds(landed - [0.1, 0.0, 0.0]).any()


# --- numbers that are missing and filled in ----------------------------------------------------------------


def with_gaps(fill: Any) -> tuple[pd.DataFrame, Any, Any]:
    """Rows of which some lack a whole number or an answer, a pipeline that fills them in, and its model."""
    rng = np.random.default_rng(0)
    frame = pd.DataFrame(
        {
            "income": rng.normal(3000, 800, 200).round(2),
            "children": pd.array(rng.integers(0, 5, 200), dtype="Int64"),
            "phone": rng.integers(0, 2, 200).astype(float),
        }
    )
    z = (frame["income"] - 3000) / 800 - 0.3 * frame["children"].astype(float) + 0.5 * frame["phone"]
    frame.loc[::7, "children"] = pd.NA
    frame.loc[::5, "phone"] = np.nan
    y = (z + rng.normal(0, 0.7, 200) > 0).astype(int)
    pipeline = make_pipeline(fill, StandardScaler(), LogisticRegression()).fit(frame, y)
    return frame, pipeline, from_pipeline(pipeline, frame, y)


@pytest.mark.parametrize("cost", ["l1", "l2"])
@pytest.mark.parametrize("rules", [{}, {"direction": "increase"}, {"step": 2}])
@pytest.mark.slow
def test_nobody_must_change_what_they_did_not_give(cost: str, rules: dict[str, Any]) -> None:
    """The mean of whole numbers is none; everybody was told to change it from "not given" to a whole number."""
    frame, pipeline, model = with_gaps(SimpleImputer())
    schema = model.schema.edit("children", **rules)
    assert [feature.kind for feature in schema] == ["continuous", "integer", "binary"]
    assert all(model.frames.fills[name] % 1 for name in ("children", "phone"))
    refused = frame[pipeline.predict(frame) == 0]
    lacking = refused[refused[["children", "phone"]].isna().any(axis=1)]
    explainer = Rocerf(model, 1, promise="first_order", cost=cost, schema=schema, max_changes=1)
    recourses = explainer.explain(lacking)
    assert recourses.answered.all()
    points: Any = recourses.points
    assert (points.isna() == lacking.isna()).all(axis=None)
    assert points.dtypes.to_dict() == lacking.dtypes.to_dict()
    assert (pipeline.predict(points) == 1).all()
    assert {change.feature for recourse in recourses for change in recourse.changes} == {"income"}
    cheaper = Rocerf(model, 1, promise="first_order", cost=cost, schema=schema).explain(lacking)
    assert (cheaper.costs <= recourses.costs * (1 + 1e-6)).all()


def test_what_was_not_given_may_be_given() -> None:
    frame, pipeline, model = with_gaps(SimpleImputer())
    schema = model.schema.edit("income", direction="fixed").edit("phone", direction="fixed")
    lacking = frame[(pipeline.predict(frame) == 0) & frame["children"].isna()]
    recourses = Rocerf(model, 0, promise=Plain(model), cost="l1", schema=schema).explain(lacking)
    assert recourses.answered.any()
    points: Any = recourses.points
    assert points["children"][recourses.answered].isin([0, 1]).all()
    assert (pipeline.predict(points[recourses.answered]) == 1).all()


# --- small units -------------------------------------------------------------------------------------------


@pytest.mark.parametrize("cost", ["l1", "l2", "percentile"])
@pytest.mark.parametrize("unit", [1e-12, 1e-9, 1.0, 1e9])
def test_relations_hold_in_every_unit(unit: float, cost: str) -> None:
    """A tolerance of 1e-9 is small for euros, and everything for billions of them."""
    X = np.array(simple().train.X) * unit
    schema = FeatureSchema.free(["x0", "x1", "x2"]).relate(f"x0 <= {2.5 * unit!r}", f"x1 + x2 <= {6 * unit!r}")
    x0 = np.array([[1.0, 1.0, 1.0]]) * unit
    train = TrainingSet(X, simple().train.y)
    allowed = FeasibleSet.around(x0, schema)
    master = Master.over(x0, cost_named(cost, train, schema), allowed)
    slopes = np.array([[[3.0, 1.0, 1.0]]]) / unit
    found = master.cheapest(np.array([0]), slopes, np.array([[-11.0]]), 0.0)
    assert found.found[0]
    assert found.points[0, 0] <= 2.5 * unit * (1 + 2e-9)
    assert broken_rules(schema, x0[0].tolist(), found.points[0].tolist()) == []
    assert allowed.holds(found.points)[0]
    beyond = np.array([[2.6, 1.0, 1.0]]) * unit
    assert not allowed.holds(beyond)[0]
    assert broken_rules(schema, x0[0].tolist(), beyond[0].tolist())


def test_steps_count_from_the_persons_own_value() -> None:
    schema = FeatureSchema(tuple(Feature(f"x{j}", step=0.75, lower=0, upper=5) for j in range(3)))
    recourse = answer_for(schema, [0.1, 1.2, 0.3])
    counts = (recourse.point - recourse.person) / 0.75
    np.testing.assert_allclose(counts, np.rint(counts), atol=1e-9)
    assert recourse.answered


@pytest.mark.parametrize("own", [0.1, 0.2, 0.3, -0.1, 1.1])
def test_the_last_step_is_the_bound_though_rounding_says_otherwise(own: float) -> None:
    """0.1 + 6 * 0.1 is a little more than 0.7, and 0.3 - 3 * 0.1 a little less than 0."""
    schema = FeatureSchema((Feature("x0", step=0.1, lower=0, upper=0.7), Feature("x1"), Feature("x2")))
    x0 = np.array([[own, 1.0, 1.0]])
    allowed = FeasibleSet.around(x0, schema)
    for aim in np.linspace(-1, 2, 31):
        landed = allowed.landed(np.array([[aim, 1.0, 1.0]]))
        assert allowed.holds(landed)[0]
        assert broken_rules(schema, x0[0], landed[0]) == []


def test_own_values_that_leave_no_step_inside_the_bounds_are_a_contradiction() -> None:
    schema = FeatureSchema.free(["x0", "x1", "x2"]).edit("x0", step=10.0, lower=3.0, upper=4.0)
    assert answer_for(schema, [0.0, 1.0, 1.0]).status is Status.CONTRADICTION
    assert answer_for(schema, [3.5, 1.0, 1.0]).answered


def test_an_empty_batch_of_alternatives_and_people_who_need_none() -> None:
    explainer = Rocerf(simple(), 0, promise=Plain(simple()), max_changes=1)
    assert [len(batch) for batch in explainer.alternatives(np.empty((0, 3)), 3)] == [0]
    accepted = explainer.alternatives([[5.0, 5.0, 5.0]], 3)
    assert [batch.statuses for batch in accepted] == [(Status.ALREADY_ACCEPTED,)]


def test_alternatives_of_one_changed_attribute_each_are_as_many_as_attributes() -> None:
    batches = Rocerf(simple(), 0, promise=Plain(simple()), max_changes=1).alternatives([[1.0, 1.0, 1.0]], 5)
    changes = [batch[0].changes[0].feature for batch in batches[:3]]
    assert sorted(changes) == ["x0", "x1", "x2"]
    assert batches[3][0].status is Status.NO_FURTHER
    assert len(batches) == 4
    assert all(batch.settings.max_changes == 1 for batch in batches)


@pytest.mark.parametrize("most", [0, -1, 1.5, True, "two"])
def test_a_limit_on_changes_is_a_whole_number_above_0(most: Any) -> None:
    with pytest.raises(OptionError, match="max_changes"):
        Rocerf(simple(), 1, max_changes=most)
